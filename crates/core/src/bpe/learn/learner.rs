//! One run of learning.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::merger::Merger;
use super::pairs::{Pair, Pairs};
use super::queue::{Candidate, Queue, Tie};
use super::rivals::Rivals;
use super::text::Text;
use super::{Alphabet, Learned, Options, Progress};
use crate::error::Result;
use crate::lost::Lost;

/// How many places are visited, at least, between two calls of `progress`.
const PROGRESS_EVERY: usize = 1 << 18;

pub struct Learner<'l, T> {
    limits: Limits<'l>,
    /// The merges, in their order.
    made: Vec<Made>,
    certain: usize,
    /// The symbols that have no entry yet, and what they are made of.
    late: BTreeMap<u32, Pair>,
    n_symbols: u32,
    text: Text,
    /// What each token spells, and of how many symbols of the alphabet it is made.
    spellings: Vec<Arc<[u8]>>,
    lengths: Vec<u32>,
    pairs: Pairs,
    queue: Queue<T>,
    rivals: Option<Rivals<'l, T>>,
    merger: Merger,
}

/// A merge: what it joins, its id, and how often the pair was counted.
pub struct Made {
    pub pair: Pair,
    pub id: u32,
    pub count: u64,
}

/// What tokens may be.
#[derive(Clone, Copy)]
struct Limits<'l> {
    alphabet: &'l dyn Alphabet,
    most_bytes: usize,
}

impl Limits<'_> {
    /// Whether there may be a token made of two.
    fn allow(&self, pair: Pair, spellings: &[Arc<[u8]>]) -> bool {
        let (left, right) = (&spellings[pair.0 as usize], &spellings[pair.1 as usize]);
        let bytes = left.len() + right.len();
        (bytes <= self.most_bytes || bytes - self.alphabet.marker_len(right) <= self.most_bytes)
            && self.alphabet.allows(left, right)
    }
}

impl<'l, T: Tie> Learner<'l, T> {
    /// `pieces` in the order of the text.
    pub fn new(mut pieces: Vec<(&[u8], u64)>, alphabet: &'l impl Alphabet, options: &Options<'_>) -> Result<Self> {
        if !T::ASKS_FOR_PLACE {
            pieces.sort_by_key(|&(_, count)| Reverse(count)); // as the text would have it
        }
        let text = Text::new(&pieces, alphabet)?;
        drop(pieces);
        let spellings = alphabet.symbols();
        Ok(Self {
            limits: Limits { alphabet, most_bytes: options.most_bytes },
            made: Vec::new(),
            certain: 0,
            late: alphabet.late(),
            n_symbols: spellings.len() as u32,
            pairs: Pairs::of(&text, spellings.len()),
            text,
            lengths: vec![1; spellings.len()],
            spellings,
            queue: Queue::above(0),
            rivals: None,
            merger: Merger::default(),
        })
    }

    /// Notes what was made of the `n_symbols` symbols of an alphabet before.
    pub fn go_on_behind(&mut self, made: Vec<Made>, certain: usize, n_symbols: usize) {
        for Made { id, .. } in &made {
            self.late.remove(id);
        }
        (self.made, self.certain, self.n_symbols) = (made, certain, n_symbols as u32);
    }

    /// Goes on until there are `limit` merges, or no pair is left.
    pub fn run(&mut self, limit: usize, lost: Option<&'l Lost>, progress: Progress<'_>) -> Result<()> {
        self.queue = Queue::above(self.pairs.iter().map(|(_, count)| count).max().unwrap_or(0));
        if let Some(lost) = lost {
            self.certain = self.made.len();
            self.rivals = Some(self.rivals(lost));
        }
        let mut visited = 0;
        while self.made.len() < limit {
            let Some((pair, count)) = self.most_frequent() else { break };
            if self.symbols_needed(pair.0).len() >= limit - self.made.len() {
                continue; // there is no room for all that it needs, nor will there ever be
            }
            if self.is_certain(pair, count) {
                self.certain += 1;
            } else {
                self.rivals = None;
            }
            visited += 64 + self.join(pair);
            if visited >= PROGRESS_EVERY {
                visited = 0;
                progress(self.made.len(), &|| self.learned())?;
            }
        }
        progress(self.made.len(), &|| self.learned())
    }

    /// The merges that join tokens, without those that make symbols.
    pub fn pairs_joined(&self) -> impl Iterator<Item = Pair> + '_ {
        self.made.iter().filter(|made| made.id >= self.n_symbols).map(|made| made.pair)
    }

    /// The merges by the ids of the entries: the symbols that are entries from the start, then one a merge.
    pub fn learned(&self) -> Learned {
        let first = self.n_symbols - self.limits.alphabet.late().len() as u32;
        let mut entries: Vec<u32> = (0..self.spellings.len() as u32).collect();
        for (made, entry) in self.made.iter().zip(first..) {
            entries[made.id as usize] = entry;
        }
        let entry = |id: u32| entries[id as usize];
        Learned {
            merges: self.made.iter().map(|Made { pair, .. }| (entry(pair.0), entry(pair.1))).collect(),
            counts: self.made.iter().map(|made| made.count).collect(),
            certain: self.certain,
            bytes: self.text.bytes,
            tokens: self.sizes(),
        }
    }

    /// How many tokens the pieces are before the first merge and after each. A merge is done as often as what it makes
    /// is there in the end, by itself or in what was made of it; not as often as its pair was counted: of the two pairs
    /// in `aaa`, one is merged. (Only of whole characters it is a little more than encoding gives, where the text holds
    /// beginnings of characters that do not end.)
    fn sizes(&self) -> Vec<u64> {
        let (mut used, mut tokens) = self.text.tokens(&self.lengths);
        // What made a symbol that has no entry to this day is undone first.
        let never = self.late.iter().rev().map(|(&id, &pair)| (pair, id));
        let made = self.made.iter().rev().map(|made| (made.pair, made.id));
        let mut sizes = vec![tokens];
        for ((left, right), id) in never.chain(made) {
            let times = used[id as usize];
            used[left as usize] += times;
            used[right as usize] += times;
            tokens += times;
            sizes.push(tokens);
        }
        sizes.drain(..self.late.len());
        sizes.reverse();
        sizes
    }

    /// Takes the winner out of the queue. A candidate whose count or tie key has changed goes back with the new one:
    /// both only ever get worse, so whatever comes out unchanged is the best there is.
    fn most_frequent(&mut self) -> Option<(Pair, u64)> {
        loop {
            while let Some(candidate) = self.queue.pop() {
                let pair = candidate.tie.pair();
                let count = self.pairs.count(pair);
                match self.candidate(pair, count) {
                    Some(current) if current == candidate => return Some((pair, count)),
                    Some(current) => self.queue.push(current),
                    None => {}
                }
            }
            let counts = self.queue.lower()?;
            let found: Vec<(Pair, u64)> = self.pairs.iter().filter(|(_, count)| counts.contains(count)).collect();
            for (pair, count) in found {
                self.enqueue(pair, count);
            }
        }
    }

    /// A pair with what it is worth now, if that is enough for the queue.
    fn candidate(&mut self, pair: Pair, count: u64) -> Option<Candidate<T>> {
        if !self.queue.takes(count) {
            return None;
        }
        let Self { text, lengths, pairs, spellings, .. } = self;
        let left_len = lengths[pair.0 as usize];
        let place =
            if T::ASKS_FOR_PLACE { pairs.first_place(pair, |place| text.is_at(pair, left_len, place))? } else { 0 };
        Some(Candidate { count, tie: T::new(pair, place, spellings) })
    }

    fn enqueue(&mut self, pair: Pair, count: u64) {
        if !self.queue.takes(count) || !self.limits.allow(pair, &self.spellings) {
            return;
        }
        if let Some(candidate) = self.candidate(pair, count) {
            self.queue.push(candidate);
        }
    }

    /// The symbols without an entry that `left` is, or is made of, the longest first.
    fn symbols_needed(&self, left: u32) -> Vec<u32> {
        let next = |id: &u32| self.late.get(id).map(|pair| pair.0).filter(|left| self.late.contains_key(left));
        std::iter::successors(Some(left).filter(|left| self.late.contains_key(left)), next).collect()
    }

    /// Makes one token of `pair`, wherever it stands, and entries of the symbols it needs. Returns how many places it
    /// looked at.
    pub fn join(&mut self, pair: Pair) -> usize {
        let count = self.pairs.count(pair);
        for id in self.symbols_needed(pair.0).into_iter().rev() {
            if let Some(pair) = self.late.remove(&id) {
                self.made.push(Made { pair, id, count });
            }
        }
        let new = self.spellings.len() as u32;
        self.made.push(Made { pair, id: new, count });
        let rest = &self.spellings[pair.1 as usize][self.limits.alphabet.prefix().len()..];
        self.spellings.push([&*self.spellings[pair.0 as usize], rest].concat().into());
        self.lengths.push(self.lengths[pair.0 as usize] + self.lengths[pair.1 as usize]);
        let Self { text, pairs, lengths, merger, .. } = self;
        let list = pairs.take(pair);
        let visited = list.len();
        let mut found = Vec::new();
        merger.merge(pair, list, text, pairs, lengths, &mut found);
        for (pair, count) in found {
            self.take_up(pair, count);
        }
        let Self { limits, rivals, pairs, spellings, .. } = self;
        if let Some(rivals) = rivals {
            rivals.expect(new, pairs, spellings, |pair| limits.allow(pair, spellings));
        }
        visited
    }

    /// Takes up a pair that was not there before.
    fn take_up(&mut self, pair: Pair, count: u64) {
        self.enqueue(pair, count);
        if let Some(rivals) = &mut self.rivals {
            if self.limits.allow(pair, &self.spellings) {
                rivals.saw(pair, count, &self.spellings);
            }
        }
    }

    /// All pairs as rivals, but for those that were joined.
    fn rivals(&self, lost: &'l Lost) -> Rivals<'l, T> {
        let Self { limits, made, pairs, spellings, .. } = self;
        let joined: BTreeSet<Pair> = made.iter().map(|made| made.pair).collect();
        let mut rivals = Rivals::new(lost);
        for (pair, count) in pairs.iter().filter(|&(pair, _)| limits.allow(pair, spellings)) {
            rivals.saw(pair, count, spellings);
        }
        for id in 0..spellings.len() as u32 {
            rivals.expect(id, pairs, spellings, |pair| !joined.contains(&pair) && limits.allow(pair, spellings));
        }
        rivals
    }

    fn is_certain(&mut self, pair: Pair, count: u64) -> bool {
        let Self { rivals, pairs, spellings, .. } = self;
        rivals.as_mut().is_some_and(|rivals| rivals.all_lose(pair, count, pairs, spellings))
    }
}
