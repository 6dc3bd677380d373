//! Pieces that were met before, with their ids: in ordinary text all but a few of a hundred.
//!
//! What is found here is what encoding gave, compared byte for byte, so forgetting a piece costs time and nothing else.
//! Each piece has one place where it can be, and a new one takes the place of an old one: no input makes a search long.
//! A cache starts small, so that a short job does not pay for it, and grows while it forgets much, up to `MOST`.

use crate::hash::{hash, mix};

/// Pieces of up to so many bytes are kept with their ids in one slot, if these are few.
const SHORT: usize = 15;
const FEW: usize = 4;
/// Longer pieces up to this length are kept as well.
const LONG: usize = 128;

/// Slots at the start and at most: 16 KiB and 2 MiB of short pieces.
const FIRST: usize = 1 << 9;
const MOST: usize = 1 << 16;
/// Bytes and ids of long pieces at most.
const ARENA: usize = 1 << 20;

/// A short piece: its bytes and its length in the last byte; its ids, their number in the two highest bits.
#[derive(Clone, Copy, Default)]
#[repr(C, align(32))]
struct Slot {
    key: u128,
    ids: [u32; FEW],
}

/// A long piece: its hash, and where its bytes and ids are.
#[derive(Clone, Copy, Default)]
struct LongSlot {
    hash: u64,
    bytes: (u32, u32),
    ids: (u32, u32),
}

pub struct Cache {
    /// Buckets of two slots, the one filled last first.
    slots: Vec<[Slot; 2]>,
    /// Short pieces added since it grew.
    added: usize,
    long_slots: Vec<LongSlot>,
    long_added: usize,
    bytes: Vec<u8>,
    ids: Vec<u32>,
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

impl Cache {
    /// Appends the ids of the piece `text[start..end]`; `encode` appends them where they are not known.
    #[inline]
    pub fn encode(
        &mut self,
        text: &[u8],
        start: usize,
        end: usize,
        out: &mut Vec<u32>,
        encode: impl FnOnce(&[u8], &mut Vec<u32>),
    ) {
        if end - start <= SHORT {
            let key = key(text, start, end);
            let bucket = self.bucket(key);
            let [first, second] = &self.slots[bucket];
            let slot = if first.key == key { first } else { second };
            if slot.key == key {
                push(out, slot);
                return;
            }
        }
        self.miss(&text[start..end], out, encode);
    }

    /// The number of ids of the piece.
    #[inline]
    pub fn count(
        &mut self,
        text: &[u8],
        start: usize,
        end: usize,
        out: &mut Vec<u32>,
        encode: impl FnOnce(&[u8], &mut Vec<u32>),
    ) -> usize {
        if end - start <= SHORT {
            let key = key(text, start, end);
            let [first, second] = &self.slots[self.bucket(key)];
            let slot = if first.key == key { first } else { second };
            if slot.key == key {
                return (slot.ids[0] >> COUNT_AT) as usize + 1;
            }
        }
        out.clear();
        self.miss(&text[start..end], out, encode);
        out.len()
    }

    #[inline]
    fn bucket(&self, key: u128) -> usize {
        mix(key as u64, (key >> 64) as u64) as usize & (self.slots.len() - 1)
    }

    #[inline(never)]
    fn miss(&mut self, piece: &[u8], out: &mut Vec<u32>, encode: impl FnOnce(&[u8], &mut Vec<u32>)) {
        let from = out.len();
        if piece.len() > LONG {
            return encode(piece, out);
        }
        if piece.len() > SHORT {
            return self.long(piece, out, encode);
        }
        encode(piece, out);
        let ids = &out[from..];
        if (1..=FEW).contains(&ids.len()) && ids.iter().all(|&id| id <= ID) {
            let mut slot = Slot { key: key(piece, 0, piece.len()), ids: [0; FEW] };
            slot.ids[..ids.len()].copy_from_slice(ids);
            slot.ids[0] |= ((ids.len() - 1) as u32) << COUNT_AT;
            self.add(slot);
        }
    }

    fn add(&mut self, slot: Slot) {
        self.added += 1;
        if self.added > self.slots.len() * 2 && self.slots.len() * 2 < MOST {
            let larger = vec![Default::default(); self.slots.len() * 4];
            let old = std::mem::replace(&mut self.slots, larger);
            for slot in old.iter().flatten().rev().filter(|slot| slot.key != 0) {
                self.place(*slot);
            }
            self.added = 0;
        }
        self.place(slot);
    }

    fn place(&mut self, slot: Slot) {
        let at = self.bucket(slot.key);
        let bucket = &mut self.slots[at];
        *bucket = [slot, bucket[0]];
    }

    fn long(&mut self, piece: &[u8], out: &mut Vec<u32>, encode: impl FnOnce(&[u8], &mut Vec<u32>)) {
        let hash = hash(piece);
        let at = hash as usize & (self.long_slots.len() - 1);
        let LongSlot { hash: known, bytes, ids } = self.long_slots[at];
        if known == hash && &self.bytes[bytes.0 as usize..bytes.1 as usize] == piece {
            out.extend_from_slice(&self.ids[ids.0 as usize..ids.1 as usize]);
            return;
        }
        let from = out.len();
        encode(piece, out);
        if self.bytes.len() + piece.len() > ARENA || self.ids.len() + out.len() - from > ARENA {
            self.bytes.clear();
            self.ids.clear();
            self.long_slots.fill(LongSlot::default());
        }
        self.long_added += 1;
        if self.long_added > self.long_slots.len() && self.long_slots.len() < MOST {
            let larger = vec![LongSlot::default(); self.long_slots.len() * 4];
            for slot in std::mem::replace(&mut self.long_slots, larger).into_iter().filter(|slot| slot.bytes.1 > 0) {
                let at = slot.hash as usize & (self.long_slots.len() - 1);
                self.long_slots[at] = slot;
            }
            self.long_added = 0;
        }
        let bytes = (self.bytes.len() as u32, (self.bytes.len() + piece.len()) as u32);
        let ids = (self.ids.len() as u32, (self.ids.len() + out.len() - from) as u32);
        self.bytes.extend_from_slice(piece);
        self.ids.extend_from_slice(&out[from..]);
        let at = hash as usize & (self.long_slots.len() - 1);
        self.long_slots[at] = LongSlot { hash, bytes, ids };
    }
}

/// Appends the ids of a slot: all that there is room for at once, of which as many count as there are.
#[inline]
fn push(out: &mut Vec<u32>, slot: &Slot) {
    let [first, rest @ ..] = slot.ids;
    let ids = [first & ID, rest[0], rest[1], rest[2]];
    out.reserve(FEW);
    let len = out.len();
    // SAFETY: there is room for all four, which are written before as many as are wanted of them are counted in.
    unsafe {
        out.as_mut_ptr().add(len).cast::<[u32; FEW]>().write_unaligned(ids);
        out.set_len(len + (first >> COUNT_AT) as usize + 1);
    }
}
