//! Pieces that were met before, with their ids: in ordinary text all but a few of a hundred.
//!
//! What is found here is what encoding gave, compared byte for byte, so forgetting a piece costs time and nothing else.
//! Each piece has one place where it can be, and a new one takes the place of an old one: no input makes a search long.
//! A cache starts small, so that a short job does not pay for it, and grows while it forgets much, up to `MOST`.

use crate::hash::{hash, mix};
use crate::pipeline::BATCH;

/// Pieces of up to so many bytes are kept with their ids in one slot, if these are few.
const SHORT: usize = 15;
const FEW: usize = 4;
/// Longer pieces up to this length are kept as well.
const LONG: usize = 128;

/// Slots at the start and at most: 16 KiB and 2 MiB of short pieces.
const FIRST: usize = 1 << 9;
const MOST: usize = 1 << 18;
/// Bytes and ids of long pieces at most.
const ARENA: usize = 1 << 24;

/// A short piece: its bytes and its length in the last byte; its ids, their number in the two highest bits.
#[derive(Clone, Copy, Default)]
#[repr(C, align(32))]
pub struct Slot {
    key: u128,
    ids: [u32; FEW],
}

/// A place for two pieces, the one added last first. One cache line.
#[derive(Clone, Copy, Default)]
#[repr(C, align(64))]
struct Bucket([Slot; 2]);

/// A long piece: its hash, and where its bytes and ids are.
#[derive(Clone, Copy, Default)]
struct LongSlot {
    hash: u64,
    bytes: (u32, u32),
    ids: (u32, u32),
}

pub struct Cache {
    slots: Vec<Bucket>,
    /// Short pieces added since it grew.
    added: usize,
    long_slots: Vec<LongSlot>,
    long_added: usize,
    bytes: Vec<u8>,
    ids: Vec<u32>,
}

impl Slot {
    #[inline]
    fn len(&self) -> usize {
        (self.ids[0] >> COUNT_AT) as usize + 1
    }
}

const COUNT_AT: u32 = 30;
const ID: u32 = (1 << COUNT_AT) - 1;

impl Default for Cache {
    fn default() -> Self {
        let (slots, long_slots) = (vec![Default::default(); FIRST / 2], vec![LongSlot::default(); FIRST / 2]);
        Self { slots, added: 0, long_slots, long_added: 0, bytes: Vec::new(), ids: Vec::new() }
    }
}

/// A short piece as one number. Reads 16 bytes where the text has them.
#[inline]
fn key(text: &[u8], start: usize, end: usize) -> u128 {
    let len = end - start;
    let bytes = match text.get(start..start + 16) {
        Some(bytes) => u128::from_le_bytes(bytes.try_into().unwrap_or_default()) & ((1 << (8 * len)) - 1),
        None => {
            let mut bytes = [0; 16];
            bytes[..len].copy_from_slice(&text[start..end]);
            u128::from_le_bytes(bytes)
        }
    };
    bytes | (len as u128) << 120
}

#[inline]
fn hash_of(key: u128) -> usize {
    mix(key as u64, (key >> 64) as u64) as usize
}

impl Cache {
    /// Gives the ids of pieces to `out`; `encode` appends those of a piece that is not known.
    pub fn encode(
        &mut self,
        text: &[u8],
        bounds: &[(usize, usize)],
        out: &mut impl Output,
        encode: impl Fn(&[u8], &mut Vec<u32>),
    ) {
        // While one bucket is looked at, the next ones are on their way from memory.
        let mut keys = [0; BATCH];
        let mut hashes = [0; BATCH];
        for (i, &(start, end)) in bounds.iter().enumerate() {
            keys[i] = if end - start <= SHORT { key(text, start, end) } else { 0 };
            hashes[i] = hash_of(keys[i]);
            prefetch(&self.slots[hashes[i] & (self.slots.len() - 1)]);
        }
        for (i, &(start, end)) in bounds.iter().enumerate() {
            let Bucket([first, second]) = &self.slots[hashes[i] & (self.slots.len() - 1)];
            let slot = if first.key == keys[i] { first } else { second };
            if slot.key == keys[i] && keys[i] != 0 {
                out.known(slot);
            } else {
                out.added(|out| self.miss(&text[start..end], out, &encode));
            }
        }
    }

    #[inline(never)]
    fn miss(&mut self, piece: &[u8], out: &mut Vec<u32>, encode: impl FnOnce(&[u8], &mut Vec<u32>)) {
        let from = out.len();
        if piece.len() > LONG {
            return encode(piece, out);
        }
        let hash = hash(piece);
        if self.find_long(hash, piece, out) {
            return;
        }
        encode(piece, out);
        let ids = &out[from..];
        if piece.len() <= SHORT && (1..=FEW).contains(&ids.len()) && ids.iter().all(|&id| id <= ID) {
            let mut slot = Slot { key: key(piece, 0, piece.len()), ids: [0; FEW] };
            slot.ids[..ids.len()].copy_from_slice(ids);
            slot.ids[0] |= ((ids.len() - 1) as u32) << COUNT_AT;
            self.add(slot);
        } else {
            self.add_long(hash, piece, ids);
        }
    }

    fn add(&mut self, slot: Slot) {
        self.added += 1;
        if self.added > self.slots.len() * 2 && self.slots.len() * 2 < MOST {
            let larger = vec![Default::default(); self.slots.len() * 4];
            let old = std::mem::replace(&mut self.slots, larger);
            for slot in old.iter().flat_map(|bucket| &bucket.0).rev().filter(|slot| slot.key != 0) {
                self.place(*slot);
            }
            self.added = 0;
        }
        self.place(slot);
    }

    fn place(&mut self, slot: Slot) {
        let at = hash_of(slot.key) & (self.slots.len() - 1);
        let Bucket([first, _]) = self.slots[at];
        self.slots[at] = Bucket([slot, first]);
    }

    fn find_long(&mut self, hash: u64, piece: &[u8], out: &mut Vec<u32>) -> bool {
        let LongSlot { hash: known, bytes, ids } = self.long_slots[hash as usize & (self.long_slots.len() - 1)];
        let is_known = known == hash && &self.bytes[bytes.0 as usize..bytes.1 as usize] == piece;
        if is_known {
            out.extend_from_slice(&self.ids[ids.0 as usize..ids.1 as usize]);
        }
        is_known
    }

    fn add_long(&mut self, hash: u64, piece: &[u8], ids: &[u32]) {
        if self.bytes.len() + piece.len() > ARENA || self.ids.len() + ids.len() > ARENA {
            self.bytes.clear();
            self.ids.clear();
            self.long_slots.fill(LongSlot::default());
        }
        self.long_added += 1;
        if self.long_added > self.long_slots.len() / 2 && self.long_slots.len() < MOST {
            let larger = vec![LongSlot::default(); self.long_slots.len() * 4];
            for slot in std::mem::replace(&mut self.long_slots, larger).into_iter().filter(|slot| slot.bytes.1 > 0) {
                let at = slot.hash as usize & (self.long_slots.len() - 1);
                self.long_slots[at] = slot;
            }
            self.long_added = 0;
        }
        let at = hash as usize & (self.long_slots.len() - 1);
        let bytes = (self.bytes.len() as u32, (self.bytes.len() + piece.len()) as u32);
        self.long_slots[at] =
            LongSlot { hash, bytes, ids: (self.ids.len() as u32, (self.ids.len() + ids.len()) as u32) };
        self.bytes.extend_from_slice(piece);
        self.ids.extend_from_slice(ids);
    }
}

/// What becomes of the ids.
pub trait Output {
    fn known(&mut self, slot: &Slot);
    /// `add` appends ids.
    fn added(&mut self, add: impl FnOnce(&mut Vec<u32>));
}

impl Output for Vec<u32> {
    #[inline]
    fn known(&mut self, slot: &Slot) {
        push(self, slot);
    }

    fn added(&mut self, add: impl FnOnce(&mut Vec<u32>)) {
        add(self);
    }
}

/// Only counts them.
#[derive(Default)]
pub struct Count {
    pub count: usize,
    ids: Vec<u32>,
}

impl Output for Count {
    #[inline]
    fn known(&mut self, slot: &Slot) {
        self.count += slot.len();
    }

    fn added(&mut self, add: impl FnOnce(&mut Vec<u32>)) {
        self.ids.clear();
        add(&mut self.ids);
        self.count += self.ids.len();
    }
}

/// Appends the ids of a slot: all that there is room for at once, of which as many count as there are.
#[inline]
fn push(out: &mut Vec<u32>, slot: &Slot) {
    let [first, rest @ ..] = slot.ids;
    let ids = [first & ID, rest[0], rest[1], rest[2]];
    if out.capacity() - out.len() < FEW {
        out.reserve(FEW);
    }
    let len = out.len();
    // SAFETY: there is room for all four, which are written before as many as are wanted of them are counted in.
    unsafe {
        out.as_mut_ptr().add(len).cast::<[u32; FEW]>().write_unaligned(ids);
        out.set_len(len + slot.len());
    }
}

#[inline]
fn prefetch(bucket: &Bucket) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint; it reads nothing that the program sees.
    unsafe {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(bucket).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bucket;
}
