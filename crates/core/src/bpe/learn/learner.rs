//! One run of learning.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::error::Result;
use crate::lost::Lost;

use super::alphabet::Alphabet;
use super::pairs::{Pair, Pairs};
use super::queue::{Candidate, Queue, Tie};
use super::rivals::Rivals;
use super::text::{Text, BORDER};
use super::{Learned, Progress};

/// How many places are visited, at least, between two calls of `progress`.
const PROGRESS_EVERY: usize = 1 << 18;

/// So many places ahead memory is read.
const AHEAD: usize = 16;

pub struct Learner<'l, T> {
    text: Text,
    /// What each token spells, and of how many symbols of the alphabet it is made.
    spellings: Vec<Arc<[u8]>>,
    lengths: Vec<u32>,
    pairs: Pairs,
    queue: Queue<T>,
    rivals: Option<Rivals<'l, T>>,
    before: Neighbours,
    after: Neighbours,
    joins: Vec<Join>,
}

/// Where two tokens became one, and its neighbours.
struct Join {
    place: u32,
    before: u32,
    after: u32,
}

/// The tokens on one side of a token that is being made.
#[derive(Default)]
struct Neighbours {
    /// By the id of the neighbour.
    of: Vec<Neighbour>,
    ids: Vec<u32>,
    places: usize,
}

/// How often a token is a neighbour, and at how many places; then where the next place is written.
#[derive(Clone, Copy, Default)]
struct Neighbour {
    count: u64,
    places: u32,
    next: u32,
}

impl Neighbours {
    #[inline]
    fn add(&mut self, id: u32, weight: u64) {
        if id == BORDER {
            return;
        }
        let neighbour = &mut self.of[id as usize];
        if neighbour.count == 0 {
            self.ids.push(id);
        }
        neighbour.count += weight;
        neighbour.places += 1;
        self.places += 1;
    }
}

impl<'l, T: Tie> Learner<'l, T> {
    /// `pieces` in the order of the text.
    pub fn new(mut pieces: Vec<(&[u8], u64)>, alphabet: &impl Alphabet, lost: Option<&'l Lost>) -> Result<Self> {
        if !T::ASKS_FOR_PLACE {
            pieces.sort_by_key(|&(_, count)| Reverse(count));
        }
        let text = Text::new(pieces.into_iter(), alphabet)?;
        let spellings = alphabet.symbols();
        let pairs = Pairs::of(&text, spellings.len());
        let most = pairs.iter().map(|(_, count)| count).max();
        let mut learner = Self {
            text,
            lengths: vec![1; spellings.len()],
            spellings,
            pairs,
            queue: Queue::new(most.unwrap_or(0).saturating_add(1)),
            rivals: lost.map(Rivals::new),
            before: Neighbours::default(),
            after: Neighbours::default(),
            joins: Vec::new(),
        };
        if let Some(rivals) = &mut learner.rivals {
            for (pair, count) in learner.pairs.iter() {
                rivals.saw(pair, count, &learner.spellings);
            }
            for id in 0..learner.spellings.len() as u32 {
                rivals.expect(id, &learner.pairs, &learner.spellings);
            }
        }
        Ok(learner)
    }

    pub fn run(mut self, limit: usize, progress: Progress<'_>) -> Result<Learned> {
        let mut learned = Learned::default();
        let mut visited = 0;
        while learned.merges.len() < limit {
            let Some((pair, count)) = self.most_frequent() else { break };
            if self.is_certain(pair, count) {
                learned.certain += 1;
            } else {
                self.rivals = None;
            }
            visited += 64 + self.merge(pair);
            learned.merges.push(pair);
            learned.counts.push(count);
            if visited >= PROGRESS_EVERY {
                visited = 0;
                progress(learned.merges.len())?;
            }
        }
        progress(learned.merges.len())?;
        Ok(learned)
    }

    /// Takes the winner out of the queue. A candidate whose count or tie key has changed goes back with the new one:
    /// both only ever get worse, so whatever comes out unchanged is the best there is.
    fn most_frequent(&mut self) -> Option<(Pair, u64)> {
        loop {
            while let Some(candidate) = self.queue.pop() {
                let pair = candidate.tie.pair();
                let count = self.pairs.count(pair);
                if !self.queue.takes(count) {
                    continue;
                }
                let Some(current) = self.candidate(pair, count) else { continue };
                if current == candidate {
                    return Some((pair, count));
                }
                self.queue.push(current);
            }
            let counts = self.queue.lower()?;
            let found: Vec<_> = self.pairs.iter().filter(|(_, count)| counts.contains(count)).collect();
            for (pair, count) in found {
                self.enqueue(pair, count);
            }
        }
    }

    fn is_certain(&mut self, pair: Pair, count: u64) -> bool {
        let Self { rivals, pairs, spellings, .. } = self;
        rivals.as_mut().is_some_and(|rivals| rivals.all_lose(pair, count, pairs, spellings))
    }

    fn candidate(&mut self, pair: Pair, count: u64) -> Option<Candidate<T>> {
        let Self { text, lengths, pairs, .. } = self;
        let left_len = lengths[pair.0 as usize];
        let place =
            if T::ASKS_FOR_PLACE { pairs.first_place(pair, |place| text.is_at(pair, left_len, place))? } else { 0 };
        Some(Candidate { count, tie: T::new(pair, place, |id| Arc::clone(&self.spellings[id as usize])) })
    }

    fn enqueue(&mut self, pair: Pair, count: u64) {
        if let Some(candidate) = self.candidate(pair, count) {
            self.queue.push(candidate);
        }
    }

    /// Makes one token of `pair` wherever it stands. Returns how many places it looked at.
    fn merge(&mut self, pair: Pair) -> usize {
        let (left, right) = pair;
        let new = self.spellings.len() as u32;
        self.spellings.push([&*self.spellings[left as usize], &*self.spellings[right as usize]].concat().into());
        self.lengths.push(self.lengths[left as usize] + self.lengths[right as usize]);
        let places = self.pairs.take(pair);
        let visited = places.len();
        self.join(pair, new, places);
        self.count(pair, new);
        self.list(new);
        visited
    }

    /// Makes the tokens, from left to right, and notes their neighbours, as they are when all are made.
    fn join(&mut self, pair: Pair, new: u32, places: std::ops::Range<usize>) {
        let Self { text, pairs, before, after, joins, lengths, .. } = self;
        let (left_len, len) = (lengths[pair.0 as usize], lengths[new as usize]);
        before.of.resize(lengths.len(), Neighbour::default());
        after.of.resize(lengths.len(), Neighbour::default());
        let places = &pairs.places()[places];
        let mut stretch = 0;
        // What stands behind the last one, and its weight; it may be made a part of the next.
        let mut behind = (BORDER, 0);
        for (i, &place) in places.iter().enumerate() {
            if let Some(&ahead) = places.get(i + AHEAD) {
                text.prefetch(ahead);
            }
            if !text.is_at(pair, left_len, place) {
                continue;
            }
            let weight = text.weight(place, &mut stretch);
            let (token_before, token_after) = text.join(place, left_len, len, new);
            if token_before != new {
                after.add(behind.0, behind.1);
            } else if let Some(last) = joins.last_mut() {
                last.after = BORDER;
            }
            before.add(token_before, weight);
            behind = (token_after, weight);
            joins.push(Join { place, before: token_before, after: token_after });
        }
        after.add(behind.0, behind.1);
    }

    /// Counts the pairs of the new token, and those that were there before.
    fn count(&mut self, (left, right): Pair, new: u32) {
        let Self { pairs, before, after, .. } = self;
        pairs.reserve(before.ids.len() + after.ids.len(), before.places + after.places);
        for &id in &after.ids {
            pairs.prefetch((right, id));
            pairs.prefetch((new, id));
        }
        for &id in &after.ids {
            let neighbour = &mut after.of[id as usize];
            pairs.lose((right, id), neighbour.count);
            neighbour.next = pairs.add((new, id), neighbour.count, neighbour.places);
        }
        for &id in &before.ids {
            pairs.prefetch((id, left));
            pairs.prefetch((id, new));
        }
        for &id in &before.ids {
            let neighbour = &mut before.of[id as usize];
            pairs.lose((if id == new { right } else { id }, left), neighbour.count);
            neighbour.next = pairs.add((id, new), neighbour.count, neighbour.places);
        }
    }

    /// Writes the lists of the pairs of the new token, and puts them into the queue.
    fn list(&mut self, new: u32) {
        let places = self.pairs.places_mut();
        for &Join { place, before, after } in &self.joins {
            if before != BORDER {
                let neighbour = &mut self.before.of[before as usize];
                places[neighbour.next as usize] = place - self.lengths[before as usize];
                neighbour.next += 1;
            }
            if after != BORDER {
                let neighbour = &mut self.after.of[after as usize];
                places[neighbour.next as usize] = place;
                neighbour.next += 1;
            }
        }
        self.joins.clear();
        for (before, ids) in
            [(true, std::mem::take(&mut self.before.ids)), (false, std::mem::take(&mut self.after.ids))]
        {
            let mut ids = ids;
            for id in ids.drain(..) {
                let (pair, side) = if before { ((id, new), &mut self.before) } else { ((new, id), &mut self.after) };
                let count = std::mem::take(&mut side.of[id as usize]).count;
                if let Some(rivals) = &mut self.rivals {
                    rivals.saw(pair, count, &self.spellings);
                }
                if self.queue.takes(count) {
                    self.enqueue(pair, count);
                }
            }
            let side = if before { &mut self.before } else { &mut self.after };
            side.ids = ids;
            side.places = 0;
        }
        if let Some(rivals) = &mut self.rivals {
            rivals.expect(new, &self.pairs, &self.spellings);
        }
    }
}
