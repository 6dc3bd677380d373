//! Learning by likelihood: again and again the pair that is counted most often for what its parts are counted becomes one
//! token, count(ab) / (count(a) · count(b)) (M. Schuster and K. Nakajima 2012, in the form in which it is taught).
//!
//! A merge makes its two parts rarer, and by that all other pairs with them worth more. So every symbol knows the pairs
//! that it stands in, and these are queued anew. Ratios are compared exactly, as products of whole numbers.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use crate::bpe::alphabet::Alphabet;
use crate::bpe::learn::{Learned, Progress, TieRule};
use crate::error::{Error, Result};
use crate::hash::IntMap;

/// How many symbols are visited, at least, between two calls of `progress`.
const PROGRESS_EVERY: usize = 1 << 18;

/// A pair waiting in the queue with the counts and the tie key that it had when it was put there.
#[derive(PartialEq, Eq)]
struct Candidate {
    count: u64,
    left: u64,
    right: u64,
    key: TieKey,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        let mine = product(self.count, other.left, other.right);
        let theirs = product(other.count, self.left, self.right);
        mine.cmp(&theirs).then_with(|| self.key.cmp(&other.key))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// `a * b * c`: the bits above the lowest 64, and these.
fn product(a: u64, b: u64, c: u64) -> (u128, u64) {
    let (ab, c) = (u128::from(a) * u128::from(b), u128::from(c));
    let low = u128::from(ab as u64) * c;
    ((ab >> 64) * c + (low >> 64), low as u64)
}

/// Orders equal ratios: the greatest wins.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum TieKey {
    FirstSeen(std::cmp::Reverse<u32>, (u32, u32)),
    SmallestIds(std::cmp::Reverse<(u32, u32)>),
    LargestString((Arc<[u8]>, Arc<[u8]>), (u32, u32)),
}

impl TieKey {
    fn pair(&self) -> (u32, u32) {
        match self {
            Self::FirstSeen(_, pair) | Self::LargestString(_, pair) => *pair,
            Self::SmallestIds(pair) => pair.0,
        }
    }
}

#[derive(Default)]
struct Pair {
    count: u64,
    /// The pieces in which it was seen; in some it may be no more, and one may stand there twice.
    pieces: Vec<u32>,
}

struct Learner {
    tie_rule: TieRule,
    prefix: usize,
    pieces: Vec<Vec<u32>>,
    weights: Vec<u64>,
    /// How many symbols stand before each piece.
    starts: Vec<u32>,
    tokens: Vec<Arc<[u8]>>,
    singles: Vec<u64>,
    /// How many tokens the pieces are.
    total: u64,
    pairs: IntMap<u64, Pair>,
    /// The pairs that each symbol was seen in.
    pairs_of: Vec<Vec<u64>>,
    queue: BinaryHeap<Candidate>,
}

fn key_of((left, right): (u32, u32)) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

fn pair_of(key: u64) -> (u32, u32) {
    ((key >> 32) as u32, key as u32)
}

/// Learns up to `limit` merges from pieces and their counts, given in the order in which they were met.
///
/// Ids: those of the alphabet, then one a merge. Fewer merges come back when no pair is left.
pub fn learn(
    pieces: &[(&[u8], u64)],
    limit: usize,
    alphabet: &impl Alphabet,
    tie_rule: TieRule,
    progress: Progress<'_>,
) -> Result<Learned> {
    let tokens = alphabet.symbols();
    let mut learner = Learner {
        tie_rule,
        prefix: alphabet.prefix().len(),
        pieces: Vec::with_capacity(pieces.len()),
        weights: pieces.iter().map(|&(_, count)| count).collect(),
        starts: Vec::with_capacity(pieces.len()),
        singles: vec![0; tokens.len()],
        total: 0,
        pairs_of: vec![Vec::new(); tokens.len()],
        tokens,
        pairs: IntMap::default(),
        queue: BinaryHeap::new(),
    };
    let (mut start, mut total) = (0usize, 0u64);
    let too_much = || Error::value("the pieces are too many, or counted too often; train on a sample");
    for &(piece, count) in pieces {
        let mut symbols = Vec::new();
        alphabet.push_symbols(piece, &mut symbols);
        learner.starts.push(u32::try_from(start).map_err(|_| too_much())?);
        start += symbols.len();
        let more = count.checked_mul(symbols.len() as u64);
        total = more.and_then(|more| total.checked_add(more)).ok_or_else(too_much)?;
        learner.pieces.push(symbols);
    }
    let mut seen = Vec::new();
    for piece in 0..learner.pieces.len() {
        learner.add(piece, &mut seen);
        seen.clear();
    }
    let all: Vec<u64> = learner.pairs.keys().copied().collect();
    all.into_iter().for_each(|key| learner.enqueue(key));
    let bytes = pieces.iter().map(|&(piece, count)| count.saturating_mul(piece.len() as u64));
    learner.run(limit, bytes.fold(0, u64::saturating_add), progress)
}

impl Learner {
    fn run(mut self, limit: usize, bytes: u64, progress: Progress<'_>) -> Result<Learned> {
        let mut learned = Learned { bytes, tokens: vec![self.total], ..Learned::default() };
        let mut visited = 0;
        while learned.merges.len() < limit {
            let Some((pair, count)) = self.best() else { break };
            visited += 64 + self.merge(pair);
            learned.merges.push(pair);
            learned.counts.push(count);
            learned.tokens.push(self.total);
            if visited >= PROGRESS_EVERY {
                visited = 0;
                progress(learned.merges.len(), &|| Learned::default())?;
            }
        }
        progress(learned.merges.len(), &|| Learned::default())?;
        Ok(learned)
    }

    /// Takes the winner out of the queue. One whose counts have changed was queued anew when they did; one whose place in
    /// the text has, is now.
    fn best(&mut self) -> Option<((u32, u32), u64)> {
        while let Some(candidate) = self.queue.pop() {
            let pair = candidate.key.pair();
            let Some(current) = self.candidate(pair) else { continue };
            if current == candidate {
                return Some((pair, candidate.count));
            }
            let counts = |of: &Candidate| (of.count, of.left, of.right);
            if counts(&current) == counts(&candidate) {
                self.queue.push(current);
            }
        }
        None
    }

    fn candidate(&self, pair: (u32, u32)) -> Option<Candidate> {
        let entry = self.pairs.get(&key_of(pair)).filter(|entry| entry.count > 0)?;
        let token = |id: u32| Arc::clone(&self.tokens[id as usize]);
        let key = match self.tie_rule {
            TieRule::SmallestIds => TieKey::SmallestIds(std::cmp::Reverse(pair)),
            TieRule::LargestString => TieKey::LargestString((token(pair.0), token(pair.1)), pair),
            TieRule::FirstSeen => {
                let place = |&piece: &u32| {
                    let symbols = &self.pieces[piece as usize];
                    let at = symbols.windows(2).position(|two| (two[0], two[1]) == pair)?;
                    Some(self.starts[piece as usize] + at as u32)
                };
                TieKey::FirstSeen(std::cmp::Reverse(entry.pieces.iter().filter_map(place).min()?), pair)
            }
        };
        let single = |id: u32| self.singles[id as usize];
        Some(Candidate { count: entry.count, left: single(pair.0), right: single(pair.1), key })
    }

    fn enqueue(&mut self, key: u64) {
        if let Some(candidate) = self.candidate(pair_of(key)) {
            self.queue.push(candidate);
        }
    }

    /// Counts what stands in a piece, and notes which pairs these are.
    fn add(&mut self, piece: usize, seen: &mut Vec<u64>) {
        let weight = self.weights[piece];
        for &symbol in &self.pieces[piece] {
            self.singles[symbol as usize] += weight;
            self.total += weight;
        }
        for two in self.pieces[piece].windows(2) {
            let key = key_of((two[0], two[1]));
            let entry = self.pairs.entry(key).or_insert_with(|| {
                self.pairs_of[two[0] as usize].push(key);
                if two[0] != two[1] {
                    self.pairs_of[two[1] as usize].push(key);
                }
                Pair::default()
            });
            entry.count += weight;
            if entry.pieces.last() != Some(&(piece as u32)) {
                entry.pieces.push(piece as u32);
            }
            seen.push(key);
        }
    }

    /// Takes off the counts of what stands in a piece.
    fn take_off(&mut self, piece: usize, seen: &mut Vec<u64>) {
        let weight = self.weights[piece];
        for &symbol in &self.pieces[piece] {
            self.singles[symbol as usize] -= weight;
            self.total -= weight;
        }
        for two in self.pieces[piece].windows(2) {
            let key = key_of((two[0], two[1]));
            if let Some(entry) = self.pairs.get_mut(&key) {
                entry.count -= weight;
            }
            seen.push(key);
        }
    }

    /// Makes one token of `pair` wherever it stands, from left to right. Returns how many symbols it looked at.
    fn merge(&mut self, pair: (u32, u32)) -> usize {
        let new = self.tokens.len() as u32;
        let (left, right) = (&*self.tokens[pair.0 as usize], &self.tokens[pair.1 as usize][self.prefix..]);
        let made = [left, right].concat().into();
        self.tokens.push(made);
        self.singles.push(0);
        self.pairs_of.push(Vec::new());
        let mut pieces = std::mem::take(&mut self.pairs.entry(key_of(pair)).or_default().pieces);
        pieces.sort_unstable();
        pieces.dedup();
        let (mut seen, mut visited) = (Vec::new(), 0);
        for piece in pieces {
            let symbols = &self.pieces[piece as usize];
            visited += symbols.len();
            if !symbols.windows(2).any(|two| (two[0], two[1]) == pair) {
                continue;
            }
            self.take_off(piece as usize, &mut seen);
            let symbols = &mut self.pieces[piece as usize];
            let (mut from, mut to) = (0, 0);
            while from < symbols.len() {
                let is_pair = symbols[from] == pair.0 && symbols.get(from + 1) == Some(&pair.1);
                symbols[to] = if is_pair { new } else { symbols[from] };
                from += if is_pair { 2 } else { 1 };
                to += 1;
            }
            symbols.truncate(to);
            self.add(piece as usize, &mut seen);
        }
        for symbol in [pair.0, pair.1] {
            let Self { pairs_of, pairs, .. } = self;
            pairs_of[symbol as usize].retain(|key| pairs.get(key).is_some_and(|pair| pair.count > 0));
            seen.extend_from_slice(&self.pairs_of[symbol as usize]);
        }
        seen.sort_unstable();
        seen.dedup();
        visited += seen.len();
        for key in seen {
            match self.pairs.get(&key) {
                Some(entry) if entry.count > 0 => self.enqueue(key),
                _ => drop(self.pairs.remove(&key)),
            }
        }
        visited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_exact() {
        let most = u64::MAX;
        assert_eq!(product(3, 5, 7), (0, 105));
        assert_eq!(product(most, most, 1), (u128::from(most) - 1, 1));
        assert!(product(most, most, most) > product(most, most - 1, most));
        assert_eq!(product(1 << 40, 1 << 40, 1 << 40), (1 << 56, 0));
    }
}
