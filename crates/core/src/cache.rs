//! Pieces that were met before, with their ids: in ordinary text all but a few of a hundred.
//!
//! What is found here is what encoding gave, compared byte for byte, so forgetting a piece costs time and nothing else.
//! Each piece has a few places where it can be, and a new one pushes out the oldest: no input makes a search long.
//! A cache starts small, so that a short job does not pay for it, and grows with what is added, up to `MOST`.

use crate::hash::{self, key_of, mix};
use crate::memory::{prefetch, Table};
use crate::pipeline::BATCH;

/// Pieces of up to so many bytes are kept with their ids in one slot, if these are few.
const SHORT: usize = 15;
const FEW: usize = 4;
/// Longer pieces up to this length are kept as well.
const LONG: usize = 128;

/// Slots at the start and at most: 16 KiB and 16 MiB of short pieces, 8 KiB and 8 MiB of long ones.
const FIRST: usize = 1 << 9;
const MOST: usize = 1 << 19;
/// Bytes of long pieces and their ids at most.
const ARENA: usize = 1 << 26;

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

/// A long piece: its hash, and where its bytes and behind them its ids are.
#[derive(Clone, Copy, Default)]
struct LongSlot {
    hash: u64,
    at: u32,
    len: u16,
    ids: u16,
}

/// A place for four long pieces, the one added last first. One cache line.
#[derive(Clone, Copy, Default)]
#[repr(C, align(64))]
struct LongBucket([LongSlot; 4]);

/// In one place, as it is taken and given back with every call.
pub struct Cache(Box<Inner>);

struct Inner {
    pieces: Pieces,
    batch: Batch,
}

/// Room to work in.
struct Batch {
    keys: [u128; BATCH],
    hashes: [u64; BATCH],
    /// Ids on their way out: whole slots are written, of which the next one overwrites what is too many.
    ids: [u32; BATCH * FEW],
    /// Which pieces are not known, and how many ids those before each have.
    missing: [(u32, u32); BATCH],
    /// Ids of these, and where those of each are.
    new: Vec<u32>,
    places: [(usize, usize); BATCH],
}

struct Pieces {
    slots: Table<Bucket>,
    /// Short pieces added; long ones since their table grew.
    added: usize,
    long_slots: Table<LongBucket>,
    long_added: usize,
    /// The bytes and the ids of long pieces.
    arena: Vec<u8>,
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
        let (slots, long_slots) =
            (Table::filled(Bucket::default(), FIRST / 2), Table::filled(LongBucket::default(), FIRST / 4));
        Self(Box::new(Inner {
            pieces: Pieces { slots, added: 0, long_slots, long_added: 0, arena: Vec::new() },
            batch: Batch {
                keys: [0; BATCH],
                hashes: [0; BATCH],
                ids: [0; BATCH * FEW],
                missing: [(0, 0); BATCH],
                new: Vec::new(),
                places: [(0, 0); BATCH],
            },
        }))
    }
}

#[inline]
fn hash_of(key: u128) -> u64 {
    mix(key as u64, (key >> 64) as u64)
}

impl Cache {
    /// Gives the ids of pieces to `out`.
    pub fn encode(&mut self, text: &[u8], bounds: &[(usize, usize)], out: &mut impl Output, encoder: &impl Encoder) {
        debug_assert!(bounds.len() <= BATCH);
        // While one is looked at, what is known of the next ones is on its way from memory.
        let Inner { pieces, batch } = &mut *self.0;
        let Batch { keys, hashes, ids, missing, .. } = batch;
        let mut long = 0u64;
        for (i, ((&(start, end), key), hash)) in bounds.iter().zip(&mut *keys).zip(&mut *hashes).enumerate() {
            if end - start <= SHORT {
                *key = key_of(text, start, end);
                *hash = hash_of(*key);
                prefetch(&pieces.slots, pieces.at(*hash));
                continue;
            }
            *key = 0;
            if end - start <= LONG {
                *hash = hash::hash(&text[start..end]);
                long |= 1 << i;
                prefetch(&pieces.long_slots, pieces.long_at(*hash));
            }
        }
        while long != 0 {
            if let Some(slot) = pieces.long_slot(hashes[long.trailing_zeros() as usize]) {
                prefetch(&pieces.arena, slot.at as usize);
            }
            long &= long - 1;
        }
        let (mut len, mut missed) = (0, 0);
        for (i, (&key, &hash)) in keys[..bounds.len()].iter().zip(&*hashes).enumerate() {
            let Bucket([first, second]) = &pieces.slots[pieces.at(hash)];
            let slot = if first.key == key { first } else { second };
            if slot.key == key && key != 0 {
                len += out.known(slot, &mut ids[len..]);
            } else {
                missing[missed] = (i as u32, len as u32);
                missed += 1;
            }
        }
        if missed > 0 {
            return self.encode_missing(text, bounds, (missed, len), out, encoder);
        }
        out.take(&ids[..len]);
    }

    /// The rest of `encode`: so many pieces are missing, and so many ids are known of the others.
    #[inline(never)]
    fn encode_missing(
        &mut self,
        text: &[u8],
        bounds: &[(usize, usize)],
        (missed, len): (usize, usize),
        out: &mut impl Output,
        encoder: &impl Encoder,
    ) {
        let Inner { pieces, batch } = &mut *self.0;
        let Batch { hashes, ids, missing, new, places, .. } = batch;
        let missing = &missing[..missed];
        let piece = |i: u32| &text[bounds[i as usize].0..bounds[i as usize].1];
        // What all of them need first is on its way from memory before it is needed.
        for &(i, _) in missing.iter().filter(|&&(i, _)| piece(i).len() <= LONG) {
            prefetch(&pieces.slots, pieces.aside(hashes[i as usize]));
            encoder.prepare(piece(i));
        }
        new.clear();
        let (mut unknown, mut which, mut count) = ([&[][..]; BATCH], [0; BATCH], 0);
        for (number, &(i, _)) in missing.iter().enumerate().filter(|&(_, &(i, _))| piece(i).len() <= LONG) {
            let from = new.len();
            if pieces.find_elsewhere(piece(i), hashes[i as usize], new) {
                places[number] = (from, new.len());
            } else {
                (unknown[count], which[count]) = (piece(i), number);
                count += 1;
            }
        }
        let mut found = [(0, 0); BATCH];
        encoder.encode_all(&unknown[..count], new, &mut found[..count]);
        for ((&number, &(from, to)), piece) in which[..count].iter().zip(&found).zip(unknown) {
            pieces.learn(piece, hashes[missing[number].0 as usize], &new[from..to]);
            places[number] = (from, to);
        }
        let mut done = 0;
        for (&(i, before), &(from, to)) in missing.iter().zip(&*places) {
            out.take(&ids[done..before as usize]);
            done = before as usize;
            match piece(i) {
                piece if piece.len() > LONG => out.add(|out| encoder.encode(piece, out)),
                _ => out.take(&new[from..to]),
            }
        }
        out.take(&ids[done..len]);
    }

    /// Bytes that it takes.
    pub fn size(&self) -> usize {
        let Pieces { slots, long_slots, arena, .. } = &self.0.pieces;
        size_of_val(&**slots) + size_of_val(&**long_slots) + arena.capacity()
    }
}

impl Pieces {
    #[inline]
    fn at(&self, hash: u64) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    #[inline]
    fn long_at(&self, hash: u64) -> usize {
        hash as usize & (self.long_slots.len() - 1)
    }

    #[inline]
    fn long_slot(&self, hash: u64) -> Option<&LongSlot> {
        self.long_slots[self.long_at(hash)].0.iter().find(|slot| slot.hash == hash)
    }

    /// Appends the ids of a piece that is not where `encode` looks first, if they are known.
    fn find_elsewhere(&mut self, piece: &[u8], hash: u64, out: &mut Vec<u32>) -> bool {
        if piece.len() <= SHORT {
            if let Some(slot) = self.take_aside(key_of(piece, 0, piece.len()), hash) {
                let [first, rest @ ..] = slot.ids;
                out.push(first & ID);
                out.extend_from_slice(&rest[..slot.len() - 1]);
                return true;
            }
        }
        let Some(slot) = self.long_slot(hash).filter(|slot| slot.len as usize == piece.len()) else { return false };
        let known = &self.arena[slot.at as usize..];
        let (bytes, ids) = known[..piece.len() + 4 * slot.ids as usize].split_at(piece.len());
        if bytes == piece {
            out.extend(ids.chunks_exact(4).map(|id| u32::from_le_bytes([id[0], id[1], id[2], id[3]])));
        }
        bytes == piece
    }

    /// Adds a piece, if it has not been added since it was looked for.
    fn learn(&mut self, piece: &[u8], hash: u64, ids: &[u32]) {
        if piece.len() <= SHORT && (1..=FEW).contains(&ids.len()) && ids.iter().all(|&id| id <= ID) {
            let mut slot = Slot { key: key_of(piece, 0, piece.len()), ids: [0; FEW] };
            slot.ids[..ids.len()].copy_from_slice(ids);
            slot.ids[0] |= ((ids.len() - 1) as u32) << COUNT_AT;
            if self.slots[self.at(hash)].0.iter().all(|other| other.key != slot.key) {
                self.add(slot);
            }
        } else if self.long_slot(hash).is_none() {
            self.add_long(hash, piece, ids);
        }
    }

    fn add(&mut self, slot: Slot) {
        self.added += 1;
        if self.added > self.slots.len() && self.slots.len() * 2 < MOST {
            let larger = Table::filled(Bucket::default(), self.slots.len() * 2);
            let old = std::mem::replace(&mut self.slots, larger);
            for slot in old.iter().flat_map(|bucket| bucket.0.iter().rev()).filter(|slot| slot.key != 0) {
                self.place(*slot);
            }
        }
        self.place(slot);
    }

    /// Puts a piece where it belongs. The one that has to leave stands aside, in place of another.
    fn place(&mut self, slot: Slot) {
        let at = self.at(hash_of(slot.key));
        let Bucket([first, second]) = self.slots[at];
        self.slots[at] = Bucket([slot, first]);
        if second.key != 0 {
            let aside = self.aside(hash_of(second.key));
            let Bucket(slots) = &mut self.slots[aside];
            slots[usize::from(slots[0].key != 0)] = second;
        }
    }

    /// The other bucket where a piece may be.
    fn aside(&self, hash: u64) -> usize {
        (hash >> 32) as usize & (self.slots.len() - 1)
    }

    /// A piece that stands aside is put where it belongs.
    fn take_aside(&mut self, key: u128, hash: u64) -> Option<Slot> {
        let aside = self.aside(hash);
        let place = self.slots[aside].0.iter_mut().find(|slot| slot.key == key)?;
        let slot = std::mem::take(place);
        self.place(slot);
        Some(slot)
    }

    fn add_long(&mut self, hash: u64, piece: &[u8], ids: &[u32]) {
        if self.arena.len() > ARENA {
            self.arena.clear();
            self.long_slots.fill(LongBucket::default());
        }
        self.long_added += 1;
        if self.long_added > self.long_slots.len() * 2 && self.long_slots.len() * 4 < MOST {
            let larger = Table::filled(LongBucket::default(), self.long_slots.len() * 4);
            let old = std::mem::replace(&mut self.long_slots, larger);
            for slot in old.iter().flat_map(|bucket| bucket.0.iter().rev()).filter(|slot| slot.len > 0) {
                self.place_long(*slot);
            }
            self.long_added = 0;
        }
        self.place_long(LongSlot { hash, at: self.arena.len() as u32, len: piece.len() as u16, ids: ids.len() as u16 });
        self.arena.extend_from_slice(piece);
        self.arena.extend(ids.iter().flat_map(|id| id.to_le_bytes()));
    }

    fn place_long(&mut self, slot: LongSlot) {
        let at = self.long_at(slot.hash);
        let LongBucket([first, second, third, _]) = self.long_slots[at];
        self.long_slots[at] = LongBucket([slot, first, second, third]);
    }
}

/// How pieces that are not known are encoded.
pub trait Encoder {
    /// A hint that a piece will be encoded soon.
    fn prepare(&self, piece: &[u8]);
    /// Appends the ids of a piece.
    fn encode(&self, piece: &[u8], out: &mut Vec<u32>);
    /// Appends the ids of some pieces, in any order, and says where those of each are.
    fn encode_all(&self, pieces: &[&[u8]], out: &mut Vec<u32>, places: &mut [(usize, usize)]);
}

/// What becomes of the ids.
pub trait Output {
    /// Puts the ids of a slot at the start of `place`, as all of its `FEW` words; how many of them count.
    fn known(&self, slot: &Slot, place: &mut [u32]) -> usize;
    /// Takes over what `known` has put somewhere.
    fn take(&mut self, ids: &[u32]);
    /// `add` appends ids to those there are.
    fn add(&mut self, add: impl FnOnce(&mut Vec<u32>));
}

impl Output for Vec<u32> {
    #[inline]
    fn known(&self, slot: &Slot, place: &mut [u32]) -> usize {
        let [first, rest @ ..] = slot.ids;
        if let Some(place) = place.first_chunk_mut() {
            let [second, third, fourth] = rest;
            *place = [first & ID, second, third, fourth];
        }
        slot.len()
    }

    #[inline]
    fn take(&mut self, ids: &[u32]) {
        self.extend_from_slice(ids);
    }

    fn add(&mut self, add: impl FnOnce(&mut Vec<u32>)) {
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
    fn known(&self, slot: &Slot, _: &mut [u32]) -> usize {
        slot.len()
    }

    #[inline]
    fn take(&mut self, ids: &[u32]) {
        self.count += ids.len();
    }

    fn add(&mut self, add: impl FnOnce(&mut Vec<u32>)) {
        self.ids.clear();
        add(&mut self.ids);
        self.count += self.ids.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives ids that tell the piece, one for each three bytes.
    struct Spelled;

    impl Encoder for Spelled {
        fn prepare(&self, _: &[u8]) {}

        fn encode_all(&self, pieces: &[&[u8]], out: &mut Vec<u32>, places: &mut [(usize, usize)]) {
            for (piece, place) in pieces.iter().zip(places).rev() {
                let from = out.len();
                self.encode(piece, out);
                *place = (from, out.len());
            }
        }

        fn encode(&self, piece: &[u8], out: &mut Vec<u32>) {
            let id = |chunk: &[u8]| chunk.iter().fold(chunk.len() as u32, |id, &byte| id << 8 | u32::from(byte));
            out.extend(piece.chunks(3).map(id));
        }
    }

    /// Pieces of all lengths, more than it can hold, some again and again: what comes out is never another's, and what it
    /// takes is bounded.
    #[test]
    fn ids_are_those_of_the_piece_whatever_was_forgotten() {
        let mut cache = Cache::default();
        let mut state = 1u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        let longest = [3, 8, 15, 16, 17, 40, LONG, 2 * LONG];
        for round in 0..40_000 {
            let (mut text, mut bounds) = (Vec::new(), Vec::new());
            for _ in 0..random(BATCH + 1) {
                let most = longest[random(longest.len())];
                let (start, len) = (text.len(), 1 + random(most));
                let letters = [2, 3, 26, 256][random(4)];
                let zeros = random(10) == 0;
                text.extend((0..len).map(|_| if zeros { 0 } else { random(letters) as u8 }));
                bounds.push((start, text.len()));
            }
            text.extend((0..random(20)).map(|_| b'x'));
            let (mut ids, mut count, mut right) = (vec![7], Count::default(), vec![7]);
            cache.encode(&text, &bounds, &mut ids, &Spelled);
            cache.encode(&text, &bounds, &mut count, &Spelled);
            bounds.iter().for_each(|&(start, end)| Spelled.encode(&text[start..end], &mut right));
            assert_eq!(ids, right, "round {round}");
            assert_eq!(count.count, right.len() - 1);
        }
        assert!(
            cache.0.pieces.slots.len() * 2 <= MOST
                && cache.0.pieces.long_slots.len() * 4 <= MOST
                && cache.0.pieces.arena.len() < 2 * ARENA
        );
        assert!(cache.size() < 200 << 20);
        assert!(cache.0.pieces.slots.len() * 2 > FIRST && cache.0.pieces.long_slots.len() * 4 > FIRST);
    }

    /// Hundreds of pieces with one place for all, short and long ones, again and again: they push each other out, nothing
    /// grows without end, and ids stay right.
    #[test]
    fn pieces_that_share_a_place_are_not_taken_for_each_other() {
        const SAME: u64 = (1 << 12) - 1;
        let short = (0u64..).map(|n| format!("{n:x}")).filter(|piece| {
            let key = key_of(piece.as_bytes(), 0, piece.len());
            hash_of(key) & SAME == 0
        });
        let long = (0u64..).map(|n| format!("{n:030x}")).filter(|piece| hash::hash(piece.as_bytes()) & SAME == 0);
        let pieces: Vec<String> = short.take(300).chain(long.take(300)).collect();
        let mut cache = Cache::default();
        for _ in 0..5 {
            for some in pieces.chunks(BATCH / 2) {
                let (mut text, mut bounds, mut right) = (Vec::new(), Vec::new(), Vec::new());
                for piece in some.iter().chain(some) {
                    bounds.push((text.len(), text.len() + piece.len()));
                    text.extend(piece.bytes());
                    Spelled.encode(piece.as_bytes(), &mut right);
                }
                let mut ids = Vec::new();
                cache.encode(&text, &bounds, &mut ids, &Spelled);
                assert_eq!(ids, right);
            }
        }
        assert!(cache.size() < 1 << 20, "{}", cache.size());
    }
}
