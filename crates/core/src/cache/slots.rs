//! Slots for pieces that are not long: a piece, as a number, and its ids side by side.

use super::{Output, MIDDLE};
use crate::hash::{key_of, mix};
use crate::memory::{prefetch, Table};

/// Bytes of slots at most.
pub const MOST: usize = 1 << 25;
/// Ids for which slots have no room, at most.
const MORE: usize = 1 << 22;

pub const FACTORS: [u64; 3] = [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93, 0xff51_afd7_ed55_8ccd];

/// The bytes of a piece and their number, in the last of its bytes; 0 for no piece.
pub trait Key: Copy + PartialEq {
    const NONE: Self;
    /// Buckets at the start.
    const FIRST: usize;

    fn hash(self) -> u64;
}

impl Key for u128 {
    const NONE: Self = 0;
    const FIRST: usize = 1 << 8;

    /// Of multiplications that keep the low half alone: vector instructions have no others.
    #[inline]
    fn hash(self) -> u64 {
        let both = (self as u64).wrapping_mul(FACTORS[0]) ^ ((self >> 64) as u64).wrapping_mul(FACTORS[1]);
        let mixed = (both ^ both >> 32).wrapping_mul(FACTORS[2]);
        mixed ^ mixed >> 32
    }
}

impl Key for [u128; 2] {
    const NONE: Self = [0; 2];
    const FIRST: usize = 1 << 6;

    #[inline]
    fn hash(self) -> u64 {
        let [head, tail] = self;
        mix(head.hash() ^ tail as u64, (tail >> 64) as u64)
    }
}

/// The key of a piece that is not short.
#[inline]
pub fn middle_key(text: &[u8], (start, end): (usize, usize)) -> [u128; 2] {
    let head = text[start..].first_chunk().map_or(0, |head| u128::from_le_bytes(*head));
    [head, key_of(text, start + 16, end) | 16 << 120]
}

const COUNT_AT: u32 = 28;
pub const ID: u32 = (1 << COUNT_AT) - 1;
/// The first of the ids in a slot has their count in its highest bits, less one. More than a slot has room for are
/// elsewhere: then they are all set, below is how many ids there are, and the next word says where.
pub const ELSEWHERE: u32 = !ID;

/// How many ids a slot has, of which this is the first, if they are not elsewhere.
#[inline]
pub fn count(first: u32) -> usize {
    (first >> COUNT_AT) as usize + 1
}

/// A piece and its ids.
#[derive(Clone, Copy)]
pub struct Slot<K, const IDS: usize> {
    key: K,
    ids: [u32; IDS],
}

/// A place for two pieces, the one added last first. One cache line, or two.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct Bucket<K, const IDS: usize> {
    pub keys: [K; 2],
    pub ids: [[u32; IDS]; 2],
}

impl<K: Key, const IDS: usize> Bucket<K, IDS> {
    const EMPTY: Self = Self { keys: [K::NONE; 2], ids: [[0; IDS]; 2] };

    fn slots(&self) -> [Slot<K, IDS>; 2] {
        [0, 1].map(|i| Slot { key: self.keys[i], ids: self.ids[i] })
    }

    fn put(&mut self, i: usize, slot: Slot<K, IDS>) {
        (self.keys[i], self.ids[i]) = (slot.key, slot.ids);
    }
}

/// Pieces of one kind. Each has a bucket where it belongs, and one where it may stand aside.
pub struct Slots<K: Key, const IDS: usize> {
    pub buckets: Table<Bucket<K, IDS>>,
    added: usize,
    /// Ids that slots have no room for.
    more: Vec<u32>,
}

impl<K: Key, const IDS: usize> Default for Slots<K, IDS> {
    fn default() -> Self {
        Self { buckets: Table::filled(Bucket::EMPTY, K::FIRST), added: 0, more: Vec::new() }
    }
}

impl<K: Key, const IDS: usize> Slots<K, IDS> {
    const EMPTY: Slot<K, IDS> = Slot { key: K::NONE, ids: [0; IDS] };

    #[inline]
    pub fn at(&self, hash: u64) -> usize {
        hash as usize & (self.buckets.len() - 1)
    }

    /// Bytes that they take.
    pub fn size(&self) -> usize {
        size_of_val(&*self.buckets) + self.more.capacity() * size_of::<u32>()
    }

    /// The other bucket where a piece may be.
    #[inline]
    pub fn aside(&self, hash: u64) -> usize {
        (hash >> 32) as usize & (self.buckets.len() - 1)
    }

    #[inline]
    pub fn prefetch(&self, hash: u64) {
        let at = self.at(hash);
        prefetch(&self.buckets, at);
        if size_of::<Bucket<K, IDS>>() > 64 {
            if let Some(bucket) = self.buckets.get(at) {
                prefetch(&bucket.ids, 0);
            }
        }
    }

    /// A piece that stands where it belongs.
    #[inline]
    pub fn first(&self, key: K, hash: u64) -> Option<&[u32; IDS]> {
        let Bucket { keys, ids } = &self.buckets[self.at(hash)];
        let i = usize::from(keys[0] != key);
        (keys[i] == key).then_some(&ids[i])
    }

    /// Puts the ids that a slot tells of at the start of `place`, of which all words of a slot may be written; how many.
    #[inline]
    pub fn give<O: Output>(&self, known: &[u32; IDS], place: &mut [u32]) -> usize {
        if known[0] >= ELSEWHERE {
            return self.give_from_elsewhere::<O>(known, place);
        }
        if O::KEEPS {
            if let Some(place) = place.first_chunk_mut() {
                *place = *known;
                place[0] &= ID;
            }
        }
        count(known[0])
    }

    #[inline(never)]
    pub fn give_from_elsewhere<O: Output>(&self, known: &[u32], place: &mut [u32]) -> usize {
        let ids = self.elsewhere(known);
        if O::KEEPS {
            place[..ids.len()].copy_from_slice(ids);
        }
        ids.len()
    }

    fn elsewhere(&self, known: &[u32]) -> &[u32] {
        &self.more[known[1] as usize..][..(known[0] & ID) as usize]
    }

    /// Adds a piece, if it is not there, and if it has few enough ids.
    pub fn add(&mut self, key: K, hash: u64, ids: &[u32]) -> bool {
        if !(1..=MIDDLE).contains(&ids.len()) || ids.iter().any(|&id| id > ID) {
            return false;
        }
        if self.first(key, hash).is_some() {
            return true;
        }
        let mut slot = Slot { key, ids: [0; IDS] };
        if ids.len() <= IDS {
            slot.ids[..ids.len()].copy_from_slice(ids);
            slot.ids[0] |= ((ids.len() - 1) as u32) << COUNT_AT;
        } else {
            if self.more.len() > MORE {
                self.more.clear();
                self.buckets.fill(Bucket::EMPTY);
                self.added = 0;
            }
            (slot.ids[0], slot.ids[1]) = (ELSEWHERE | ids.len() as u32, self.more.len() as u32);
            self.more.extend_from_slice(ids);
        }
        self.added += 1;
        if self.added > self.buckets.len() && size_of_val(&*self.buckets) < MOST {
            let larger = Table::filled(Bucket::EMPTY, self.buckets.len() * 2);
            let old = std::mem::replace(&mut self.buckets, larger);
            let pieces = old.iter().flat_map(|bucket| bucket.slots().into_iter().rev());
            pieces.filter(|slot| slot.key != K::NONE).for_each(|slot| self.place(slot));
        }
        self.place(slot);
        true
    }

    /// Puts a piece where it belongs. The one that has to leave stands aside, in place of another.
    fn place(&mut self, slot: Slot<K, IDS>) {
        let at = self.at(slot.key.hash());
        let [first, second] = self.buckets[at].slots();
        self.buckets[at].put(1, first);
        self.buckets[at].put(0, slot);
        if second.key != K::NONE {
            let aside = self.aside(second.key.hash());
            let bucket = &mut self.buckets[aside];
            bucket.put(usize::from(bucket.keys[0] != K::NONE), second);
        }
    }

    /// A piece that stands aside is put where it belongs, and its ids are appended.
    pub fn take_aside(&mut self, key: K, hash: u64, out: &mut Vec<u32>) -> bool {
        let aside = self.aside(hash);
        let bucket = &mut self.buckets[aside];
        let Some(i) = bucket.keys.iter().position(|&other| other == key) else { return false };
        let slot = bucket.slots()[i];
        bucket.put(i, Self::EMPTY);
        self.place(slot);
        let ids = if slot.ids[0] >= ELSEWHERE { self.elsewhere(&slot.ids) } else { &slot.ids[..count(slot.ids[0])] };
        let from = out.len();
        out.extend_from_slice(ids);
        out[from] &= ID;
        true
    }
}
