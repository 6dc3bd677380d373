//! One fast hash for short byte strings, and the tables built on it.
//!
//! The hash is fixed, not seeded: results never depend on it, only speed does. The tables of a vocabulary are filled
//! from a file the user chose; the table of counted pieces is only used in training.

use std::hash::{BuildHasherDefault, Hasher};

use crate::memory::{prefetch, Table};

const K0: u64 = 0x9e37_79b9_7f4a_7c15;
const K1: u64 = 0xd6e8_feb8_6659_fd93;

/// A 64-bit hash of two words.
#[inline]
pub fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ K0) * u128::from(b ^ K1);
    (product as u64) ^ ((product >> 64) as u64)
}

#[inline]
fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

/// A 64-bit hash of a byte string.
#[inline]
pub fn hash(bytes: &[u8]) -> u64 {
    let len = bytes.len() as u64;
    if let (Some(head), Some(tail)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        let mut h = len;
        if bytes.len() > 16 {
            for chunk in bytes.chunks(16) {
                let (a, b) = chunk.split_at(chunk.len().min(8));
                h = mix(h ^ word(a), word(b));
            }
        }
        return mix(h ^ u64::from_le_bytes(*head), u64::from_le_bytes(*tail));
    }
    if let (Some(head), Some(tail)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        return mix(len ^ u64::from(u32::from_le_bytes(*head)), u64::from(u32::from_le_bytes(*tail)));
    }
    mix(len, word(bytes))
}

/// Up to 15 bytes as a number, their count in its last byte. Reads 16 bytes where the text has them.
#[inline]
pub fn key_of(text: &[u8], start: usize, end: usize) -> u128 {
    let len = end - start;
    let bytes = match text.get(start..).and_then(|rest| rest.first_chunk::<16>()) {
        Some(bytes) => u128::from_le_bytes(*bytes) & KEPT[len],
        None => {
            let mut bytes = [0; 16];
            bytes[..len].copy_from_slice(&text[start..end]);
            u128::from_le_bytes(bytes)
        }
    };
    bytes | (len as u128) << 120
}

/// The first so many bytes of a number.
const KEPT: [u128; 16] = {
    let (mut kept, mut len) = ([0; 16], 0);
    while len < 16 {
        kept[len] = (1 << (8 * len)) - 1;
        len += 1;
    }
    kept
};

/// A checksum of many bytes, against accidents and not against attacks.
pub fn checksum(bytes: &[u8]) -> u64 {
    // Four sums, none of which waits for another.
    let (rows, rest) = bytes.split_at(bytes.len() / 64 * 64);
    let sums = rows.chunks_exact(64).fold([bytes.len() as u64, 1, 2, 3], |mut sums, row| {
        for (sum, chunk) in sums.iter_mut().zip(row.chunks_exact(16)) {
            let (a, b) = chunk.split_at(8);
            *sum = mix(*sum ^ word(a), word(b));
        }
        sums
    });
    sums.into_iter().fold(hash(rest), mix)
}

/// Hashes the integer keys of a `HashMap`.
#[derive(Default, Clone, Copy)]
pub struct IntHasher(u64);

pub type IntMap<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<IntHasher>>;

impl Hasher for IntHasher {
    #[inline]
    fn write_u64(&mut self, n: u64) {
        self.0 = mix(self.0 ^ n, n.rotate_left(32));
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = mix(self.0, hash(bytes));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Open addressing from hashes to indices: the caller keeps the keys and says which index is meant.
#[derive(Default, Clone)]
pub struct IndexTable {
    slots: Table<(u32, u32)>,
    len: usize,
}

const EMPTY: u32 = u32::MAX;

impl IndexTable {
    pub fn with_capacity(entries: usize) -> Self {
        Self { slots: Table::filled((0, EMPTY), (entries * 2).next_power_of_two().max(16)), len: 0 }
    }

    /// Has the memory read ahead that `find` will look into first.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        prefetch(&self.slots, hash as usize & self.slots.len().wrapping_sub(1));
    }

    /// The index that `find` will ask about first, if that memory holds one.
    #[inline]
    pub fn first(&self, hash: u64) -> Option<u32> {
        let &(_, index) = self.slots.get(hash as usize & self.slots.len().wrapping_sub(1))?;
        (index != EMPTY).then_some(index)
    }

    #[inline]
    pub fn find(&self, hash: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        let mask = self.slots.len().wrapping_sub(1);
        let (mut at, tag) = (hash as usize & mask, (hash >> 32) as u32);
        loop {
            let &(slot_tag, index) = self.slots.get(at)?;
            if index == EMPTY {
                return None;
            }
            if slot_tag == tag && is(index) {
                return Some(index);
            }
            at = (at + 1) & mask;
        }
    }

    /// The index that `find` gives, or, where it gives none, adds `index`. The table must have been made with room for it.
    #[inline]
    pub fn find_or_add(&mut self, hash: u64, index: u32, is: impl Fn(u32) -> bool) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let (mut at, tag) = (hash as usize & mask, (hash >> 32) as u32);
        while self.slots[at].1 != EMPTY {
            if self.slots[at].0 == tag && is(self.slots[at].1) {
                return Some(self.slots[at].1);
            }
            at = (at + 1) & mask;
        }
        self.slots[at] = (tag, index);
        self.len += 1;
        None
    }

    /// Adds an index that `find` does not give yet. `hash_of` is asked for the hashes of the others when it grows.
    pub fn insert(&mut self, hash: u64, index: u32, hash_of: impl Fn(u32) -> u64) {
        if (self.len + 1) * 2 > self.slots.len() {
            let old = std::mem::replace(self, Self::with_capacity((self.len + 1) * 2));
            for &(_, index) in old.slots.iter().filter(|&&(_, index)| index != EMPTY) {
                self.place(hash_of(index), index);
            }
        }
        self.place(hash, index);
    }

    fn place(&mut self, hash: u64, index: u32) {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at].1 != EMPTY {
            at = (at + 1) & mask;
        }
        self.slots[at] = ((hash >> 32) as u32, index);
        self.len += 1;
    }
}
