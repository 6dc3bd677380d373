//! Every pair of neighbours: how often it is counted now, and the places where it was seen.

use std::ops::Range;

use super::text::Text;
use crate::hash::{mix, IntMap};
use crate::memory::{prefetch, Table};

/// The ids of two tokens.
pub type Pair = (u32, u32);

#[inline]
fn key((left, right): Pair) -> u64 {
    (u64::from(left) << 32) | u64::from(right)
}

/// The key of no pair: `u32::MAX` is no token.
const FREE: Slot = Slot { key: u64::MAX, count: 0, start: 0, len: 0 };

/// A pair.
#[derive(Clone, Copy)]
pub struct Slot {
    key: u64,
    count: u64,
    /// Its places, in rising order; where it is no more is passed over.
    start: u32,
    len: u32,
}

impl Slot {
    fn pair(&self) -> Pair {
        ((self.key >> 32) as u32, self.key as u32)
    }

    fn places(&self) -> Range<usize> {
        self.start as usize..self.start as usize + self.len as usize
    }
}

/// Open addressing, in the order of hashes.
///
/// All places of a pair are known at once, when the newer of its two tokens is made. So its list is as long as it is,
/// and its count only ever falls. Pairs whose count is 0 go when room is made for others, and their lists with them.
pub struct Pairs {
    slots: Table<Slot>,
    used: usize,
    places: Vec<u32>,
    /// How many of the places are those of pairs that are counted no more.
    dead: usize,
}

/// How many places lists may have together, so that 32 bits tell where each starts. (Few in tests, to see what happens.)
const MOST_PLACES: usize = if cfg!(test) { 100 } else { u32::MAX as usize };

/// So many slots for so many pairs make short searches.
fn slots_for(pairs: usize) -> usize {
    pairs + pairs / 3 + 1
}

impl Pairs {
    /// The pairs of a text whose symbols are below `symbols`.
    pub fn of(text: &Text, symbols: usize) -> Self {
        let mut found: Vec<Slot> = Vec::new();
        // The numbers of pairs in `found`: in a square if it is a small one.
        let width = if symbols <= 1 << 8 { symbols } else { 0 };
        let (mut square, mut others) = (vec![u32::MAX; width * width], IntMap::default());
        text.pairs(|pair, _, weight| {
            let number = match square.get_mut(pair.0 as usize * width + pair.1 as usize) {
                Some(number) => number,
                None => others.entry(key(pair)).or_insert(u32::MAX),
            };
            if *number == u32::MAX {
                *number = found.len() as u32;
                found.push(Slot { key: key(pair), ..FREE });
            }
            let slot = &mut found[*number as usize];
            slot.count += weight;
            slot.len += 1;
        });
        let places = found.iter().map(|slot| slot.len as usize).sum();
        let mut pairs = Self { slots: Table::default(), used: 0, places: Vec::new(), dead: 0 };
        pairs.reserve(found.len(), places, |_, _| true);
        for slot in &mut found {
            slot.start = pairs.add(slot.pair(), slot.count, slot.len);
        }
        text.pairs(|pair, place, _| {
            let number = square.get(pair.0 as usize * width + pair.1 as usize).or_else(|| others.get(&key(pair)));
            if let Some(&number) = number {
                let next = &mut found[number as usize].start;
                pairs.places[*next as usize] = place;
                *next += 1;
            }
        });
        pairs
    }

    #[inline]
    fn home(&self, key: u64) -> usize {
        ((u128::from(mix(key, key.rotate_left(32))) * self.slots.len() as u128) >> 64) as usize
    }

    /// The slot of a key, or the free one where it belongs.
    #[inline]
    fn slot(&self, key: u64) -> usize {
        let mut at = self.home(key);
        while self.slots[at].key != key && self.slots[at].key != FREE.key {
            at += 1;
            if at == self.slots.len() {
                at = 0;
            }
        }
        at
    }

    #[inline]
    pub fn prefetch(&self, pair: Pair) {
        prefetch(&self.slots, self.home(key(pair)));
    }

    /// How often a pair is counted.
    pub fn count(&self, pair: Pair) -> u64 {
        self.slots[self.slot(key(pair))].count
    }

    /// The pairs that are counted, and how often.
    pub fn iter(&self) -> impl Iterator<Item = (Pair, u64)> + '_ {
        self.slots.iter().filter(|slot| slot.count > 0).map(|slot| (slot.pair(), slot.count))
    }

    /// Counts a pair so many times less.
    #[inline]
    pub fn lose(&mut self, pair: Pair, weight: u64) {
        let at = self.slot(key(pair));
        let slot = &mut self.slots[at];
        if slot.count > 0 {
            slot.count -= weight;
            if slot.count == 0 {
                self.dead += slot.len as usize;
            }
        }
    }

    /// Makes room for so many more pairs, which have so many places. Lists may move. `is_there` says whether a pair still
    /// stands at a place.
    pub fn reserve(&mut self, pairs: usize, places: usize, is_there: impl Fn(Pair, u32) -> bool) {
        if slots_for(self.used + pairs) > self.slots.len() {
            let live = self.iter().count();
            self.rehash(slots_for((live + pairs) * 3 / 2));
        }
        if self.places.len() + places > MOST_PLACES {
            self.compact(is_there); // what is left, and comes now, is less than the places of the text
        } else if self.places.len() + places > self.places.capacity() && self.dead > self.places.len() / 5 {
            self.compact(|_, _| true);
        }
        if self.places.len() + places > self.places.capacity() {
            self.places.reserve_exact(places + self.places.len() / 5);
        }
    }

    /// Leaves out the pairs that are counted no more.
    fn rehash(&mut self, size: usize) {
        let old = std::mem::replace(&mut self.slots, Table::filled(FREE, size));
        self.used = 0;
        for slot in old.iter().filter(|slot| slot.count > 0) {
            let at = self.slot(slot.key);
            self.slots[at] = *slot;
            self.used += 1;
        }
    }

    /// Moves the lists together, over those of the pairs that are counted no more, with only the places that `keep`.
    fn compact(&mut self, keep: impl Fn(Pair, u32) -> bool) {
        let live = self.slots.iter().zip(0u32..).filter(|(slot, _)| slot.count > 0);
        let mut live: Vec<(u32, u32)> = live.map(|(slot, at)| (slot.start, at)).collect();
        live.sort_unstable();
        let mut end = 0;
        for (_, at) in live {
            let slot = &mut self.slots[at as usize];
            let start = end;
            for from in slot.places() {
                let place = self.places[from];
                if keep(slot.pair(), place) {
                    self.places[end] = place;
                    end += 1;
                }
            }
            (slot.start, slot.len) = (start as u32, (end - start) as u32);
        }
        self.places.truncate(end);
        self.dead = 0;
    }

    /// Adds a pair that is not there yet, with a list for so many places. Gives where it starts.
    #[inline]
    pub fn add(&mut self, pair: Pair, count: u64, len: u32) -> u32 {
        let at = self.slot(key(pair));
        let start = self.places.len() as u32;
        self.slots[at] = Slot { key: key(pair), count, start, len };
        self.used += 1;
        self.places.resize(self.places.len() + len as usize, 0);
        start
    }

    /// Counts a pair no more. Gives where its list is, until room is made for others; an empty one if there is none.
    pub fn take(&mut self, pair: Pair) -> Range<usize> {
        let at = self.slot(key(pair));
        let slot = &mut self.slots[at];
        slot.count = 0;
        self.dead += slot.len as usize;
        slot.places()
    }

    /// The first place of a pair for which `is` holds; those before it are forgotten.
    pub fn first_place(&mut self, pair: Pair, is: impl Fn(u32) -> bool) -> Option<u32> {
        let at = self.slot(key(pair));
        let slot = &mut self.slots[at];
        let ahead = self.places[slot.places()].iter().position(|&place| is(place))? as u32;
        slot.start += ahead;
        slot.len -= ahead;
        self.dead += ahead as usize;
        Some(self.places[slot.start as usize])
    }

    #[inline]
    pub fn places(&self) -> &[u32] {
        &self.places
    }

    #[inline]
    pub fn places_mut(&mut self) -> &mut [u32] {
        &mut self.places
    }
}
