//! Slots for pieces that are not long: a piece, as a number, and its ids side by side.

use super::MOST;
use crate::hash::{key_of, mix};
use crate::memory::{prefetch, Table};

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

pub const COUNT_AT: u32 = 29;
pub const ID: u32 = (1 << COUNT_AT) - 1;

/// How many ids a slot has, of which this is the first.
#[inline]
pub fn count(first: u32) -> usize {
    (first >> COUNT_AT) as usize + 1
}

/// A piece and its ids, how many they are in the highest bits of the first.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Slot<K, const IDS: usize> {
    key: K,
    ids: [u32; IDS],
}

impl<K, const IDS: usize> Slot<K, IDS> {
    #[inline]
    fn push(&self, out: &mut Vec<u32>) {
        let from = out.len();
        out.extend_from_slice(&self.ids[..count(self.ids[0])]);
        out[from] &= ID;
    }
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
}

impl<K: Key, const IDS: usize> Default for Slots<K, IDS> {
    fn default() -> Self {
        Self { buckets: Table::filled(Bucket::EMPTY, K::FIRST), added: 0 }
    }
}

impl<K: Key, const IDS: usize> Slots<K, IDS> {
    pub const EMPTY: Slot<K, IDS> = Slot { key: K::NONE, ids: [0; IDS] };

    #[inline]
    pub fn at(&self, hash: u64) -> usize {
        hash as usize & (self.buckets.len() - 1)
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

    /// Adds a piece, if it is not there, and if it has few enough ids.
    pub fn add(&mut self, key: K, hash: u64, ids: &[u32]) -> bool {
        if !(1..=IDS).contains(&ids.len()) || ids.iter().any(|&id| id > ID) {
            return false;
        }
        if self.first(key, hash).is_some() {
            return true;
        }
        let mut slot = Slot { key, ids: [0; IDS] };
        slot.ids[..ids.len()].copy_from_slice(ids);
        slot.ids[0] |= ((ids.len() - 1) as u32) << COUNT_AT;
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
        slot.push(out);
        true
    }
}
