//! Making one token of a pair wherever it stands.

use std::ops::Range;

use super::pairs::{Pair, Pairs};
use super::text::{Text, BORDER};

/// So many places ahead memory is read.
const AHEAD: usize = 16;

/// Room to work in. Between merges all is empty, and the neighbours are 0.
#[derive(Default)]
pub struct Merger {
    joins: Vec<Join>,
    before: Neighbours,
    after: Neighbours,
}

/// Where two tokens became one, and what stands on its sides now.
struct Join {
    place: u32,
    before: u32,
    after: u32,
}

/// What stands on one side of the tokens that are being made.
#[derive(Default)]
struct Neighbours {
    /// By the ids of the neighbours.
    of: Vec<Neighbour>,
    /// The ids of those that were seen.
    ids: Vec<u32>,
    places: usize,
}

#[derive(Clone, Copy, Default)]
struct Neighbour {
    /// How often it is counted there, and at how many places.
    count: u64,
    places: u32,
    /// Where the next place of its pair is to be written.
    next: u32,
}

impl Neighbours {
    #[inline]
    fn add(&mut self, id: u32, weight: u64) {
        if id == BORDER {
            return;
        }
        let neighbour = &mut self.of[id as usize];
        if neighbour.places == 0 {
            self.ids.push(id);
        }
        neighbour.count += weight;
        neighbour.places += 1;
        self.places += 1;
    }

    #[inline]
    fn write(&mut self, id: u32, places: &mut [u32], place: u32) {
        let next = &mut self.of[id as usize].next;
        places[*next as usize] = place;
        *next += 1;
    }

    /// Tells `each` the neighbours and their counts, and forgets them.
    fn drain(&mut self, mut each: impl FnMut(u32, u64)) {
        for id in self.ids.drain(..) {
            each(id, std::mem::take(&mut self.of[id as usize]).count);
        }
        self.places = 0;
    }
}

impl Merger {
    /// Makes tokens `new`, which is the last of `lengths`, of a pair whose places are in the list at `list`. Appends the
    /// pairs that come of it, with their counts, to `found`.
    pub fn merge(
        &mut self,
        pair: Pair,
        list: Range<usize>,
        text: &mut Text,
        pairs: &mut Pairs,
        lengths: &[u32],
        found: &mut Vec<(Pair, u64)>,
    ) {
        let new = lengths.len() as u32 - 1;
        self.join(pair, &pairs.places()[list], text, lengths);
        let is_there = |pair: Pair, place| text.is_at(pair, lengths[pair.0 as usize], place);
        self.count(pair, new, pairs, is_there);
        let places = pairs.places_mut();
        for Join { place, before, after } in self.joins.drain(..) {
            if before != BORDER {
                self.before.write(before, places, place - lengths[before as usize]);
            }
            if after != BORDER {
                self.after.write(after, places, place);
            }
        }
        self.before.drain(|id, count| found.push(((id, new), count)));
        self.after.drain(|id, count| found.push(((new, id), count)));
    }

    /// Makes the tokens, from left to right, and notes what stands beside them when all are made.
    fn join(&mut self, pair: Pair, places: &[u32], text: &mut Text, lengths: &[u32]) {
        let Self { joins, before, after } = self;
        let (new, left_len, len) = (lengths.len() as u32 - 1, lengths[pair.0 as usize], lengths[lengths.len() - 1]);
        before.of.resize(lengths.len(), Neighbour::default());
        after.of.resize(lengths.len(), Neighbour::default());
        let mut stretch = 0;
        // What stands behind the last one, which may be a part of the next, and its weight.
        let mut behind = (BORDER, 0);
        for (at, &place) in places.iter().enumerate() {
            if let Some(&ahead) = places.get(at + AHEAD) {
                text.prefetch(ahead);
            }
            if !text.is_at(pair, left_len, place) {
                continue;
            }
            let weight = text.weight(place, &mut stretch);
            let (id_before, id_after) = text.join(place, left_len, len, new);
            if id_before != new {
                after.add(behind.0, behind.1);
            } else if let Some(last) = joins.last_mut() {
                last.after = BORDER;
            }
            before.add(id_before, weight);
            joins.push(Join { place, before: id_before, after: id_after });
            behind = (id_after, weight);
        }
        after.add(behind.0, behind.1);
    }

    /// Counts the pairs that come, and less often those that go.
    fn count(&mut self, (left, right): Pair, new: u32, pairs: &mut Pairs, is_there: impl Fn(Pair, u32) -> bool) {
        let Self { before, after, .. } = self;
        pairs.reserve(before.ids.len() + after.ids.len(), before.places + after.places, is_there);
        for &id in &before.ids {
            pairs.prefetch((id, left));
            pairs.prefetch((id, new));
        }
        for &id in &before.ids {
            let neighbour = &mut before.of[id as usize];
            // Where two new tokens stand side by side, the right half of one stood before the left half of the other.
            pairs.lose((if id == new { right } else { id }, left), neighbour.count);
            neighbour.next = pairs.add((id, new), neighbour.count, neighbour.places);
        }
        for &id in &after.ids {
            pairs.prefetch((right, id));
            pairs.prefetch((new, id));
        }
        for &id in &after.ids {
            let neighbour = &mut after.of[id as usize];
            pairs.lose((right, id), neighbour.count);
            neighbour.next = pairs.add((new, id), neighbour.count, neighbour.places);
        }
    }
}
