//! All entries of a vocabulary in double-array tries: one step, from a node by a byte to a child, reads one word.
//!
//! There is a part for each two bytes that entries start with (end with, backwards), built when a walk first comes
//! there: all of o200k takes 60 ms, and most texts need little of it.
//!
//! A node is the place of its word. The word holds the byte that leads to the node and its base: the child by the byte
//! `b` can only be at `base ^ b`, and is there if the word there is taken and says `b`. No two nodes share a base, so
//! the byte is enough to tell a node's own child from another's. The base of nodes without children leads to nowhere.
//!
//! After J. Aoe, "An efficient digital search algorithm by using a double-array structure" (1989).

use std::ops::Range;
use std::sync::OnceLock;

use super::built;
use crate::vocab::{Token, Vocab};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Entries are spelled from their first byte on.
    Forward,
    /// From their last byte back.
    Backward,
}

pub struct Trie {
    direction: Direction,
    /// The entries of one byte, or NONE.
    bytes: [Token; 256],
    /// All others by their first two bytes, and where those of each two bytes end.
    order: Vec<Token>,
    ends: Vec<u32>,
    parts: Vec<OnceLock<Box<Part>>>,
}

/// The entries that share two bytes.
#[derive(Default)]
struct Part {
    /// `base << 9 | TAKEN | byte`, or 0 where no node is.
    words: Vec<u32>,
    /// The entry that ends at a node, or NONE.
    entries: Vec<Token>,
    /// The entry of just these bytes, or NONE, and where the children of their node are.
    whole: Token,
    root: u32,
}

pub const NONE: Token = Token::MAX;

const TAKEN: u32 = 1 << 8;
/// A base has 23 bits; so many bytes of entries cannot need more, with holes and all.
const MAX_BYTES: usize = 1 << 22;
const NO_CHILDREN: u32 = (1 << 23) - 1;

impl Trie {
    /// Whether a vocabulary is small enough for a trie of this kind.
    pub fn has_room(vocab: &Vocab) -> bool {
        (0..vocab.len() as Token).map(|token| vocab.piece_len(token)).sum::<usize>() <= MAX_BYTES
    }

    pub fn new(vocab: &Vocab, direction: Direction) -> Self {
        let mut bytes = [NONE; 256];
        let mut ends = vec![0u32; 1 << 16];
        let part_of = |token: Token| {
            let at = |depth| byte(vocab, direction, token, depth).map(usize::from);
            Some(at(0)? << 8 | at(1)?)
        };
        for token in 0..vocab.len() as Token {
            match part_of(token) {
                Some(part) => ends[part] += 1,
                None => bytes[vocab.piece(token)[0] as usize] = token,
            }
        }
        let mut total = 0;
        for end in &mut ends {
            total += std::mem::replace(end, total);
        }
        // Now they are where each part starts; as entries are put in, they move to its end.
        let mut order = vec![0; total as usize];
        for token in 0..vocab.len() as Token {
            if let Some(part) = part_of(token) {
                order[ends[part] as usize] = token;
                ends[part] += 1;
            }
        }
        Self { direction, bytes, order, ends, parts: (0..1 << 16).map(|_| OnceLock::new()).collect() }
    }

    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Tells `found` all entries that `bytes` start with, the shortest first, with their lengths. Backwards the bytes
    /// come last to first.
    #[inline]
    pub fn walk(&self, vocab: &Vocab, mut bytes: impl Iterator<Item = u8>, mut found: impl FnMut(usize, Token)) {
        let Some(first) = bytes.next() else { return };
        if self.bytes[first as usize] != NONE {
            found(1, self.bytes[first as usize]);
        }
        let Some(second) = bytes.next() else { return };
        let Some(part) = self.part(vocab, usize::from(first) << 8 | usize::from(second)) else { return };
        if part.whole != NONE {
            found(2, part.whole);
        }
        let mut base = part.root;
        for (byte, len) in bytes.zip(3..) {
            let at = (base ^ u32::from(byte)) as usize;
            let Some(&word) = part.words.get(at).filter(|&&word| word & 0x1ff == TAKEN | u32::from(byte)) else {
                return;
            };
            if part.entries[at] != NONE {
                found(len, part.entries[at]);
            }
            base = word >> 9;
        }
    }

    #[inline]
    fn part(&self, vocab: &Vocab, part: usize) -> Option<&Part> {
        let range = part.checked_sub(1).map_or(0, |before| self.ends[before] as usize)..self.ends[part] as usize;
        if range.is_empty() {
            return None;
        }
        let build = || Box::new(Builder::new(vocab, self.direction).build(self.order[range].to_vec()));
        Some(&**built(&self.parts[part], build))
    }
}

/// The byte of an entry at a depth, if it is so long.
fn byte(vocab: &Vocab, direction: Direction, token: Token, depth: usize) -> Option<u8> {
    let piece = vocab.piece(token);
    match direction {
        Direction::Forward => piece.get(depth).copied(),
        Direction::Backward => piece.len().checked_sub(depth + 1).map(|at| piece[at]),
    }
}

struct Builder<'v> {
    vocab: &'v Vocab,
    direction: Direction,
    part: Part,
    /// A bit for each place that is taken, and for each base that is in use.
    taken: Bits,
    bases: Bits,
    /// For nodes with 1, 2 … children: before this place there is hardly a base for such a node.
    from: [usize; 256],
}

/// A node whose children are still to be made: where its word is, the entries below it, what they have in common.
struct Job {
    at: Option<usize>,
    tokens: Range<usize>,
    depth: usize,
}

impl<'v> Builder<'v> {
    fn new(vocab: &'v Vocab, direction: Direction) -> Self {
        let part = Part { whole: NONE, ..Part::default() };
        Self { vocab, direction, part, taken: Bits::default(), bases: Bits::default(), from: [0; 256] }
    }

    /// A node and then all below it, the last child first, so that what lies below a node lies close together.
    fn build(mut self, mut order: Vec<Token>) -> Part {
        let mut jobs = Vec::from([Job { at: None, tokens: 0..order.len(), depth: 2 }]);
        let (mut nexts, mut bytes) = (Vec::new(), Vec::new());
        while let Some(Job { at, tokens, depth }) = jobs.pop() {
            // The entry that ends here comes first, then those that go on, by their next byte.
            nexts.clear();
            let next = |&token: &Token| (byte(self.vocab, self.direction, token, depth), token);
            nexts.extend(order[tokens.clone()].iter().map(next));
            if nexts.len() > 1 {
                nexts.sort_unstable();
            }
            for (slot, &(_, token)) in order[tokens.clone()].iter_mut().zip(&nexts) {
                *slot = token;
            }
            let mut start = tokens.start;
            if let Some(&(None, token)) = nexts.first() {
                match at {
                    Some(at) => self.part.entries[at] = token,
                    None => self.part.whole = token,
                }
                start += 1;
            }
            let more = &nexts[start - tokens.start..];
            bytes.clear();
            bytes.extend(more.chunk_by(|a, b| a.0 == b.0).filter_map(|group| Some((group[0].0?, group.len()))));
            if bytes.is_empty() {
                continue;
            }
            // The bytes that go on a character are then the first 64 places.
            let base = if at.is_none() { usize::from(bytes[0].0 & 0xc0) } else { self.find_base(&bytes) };
            self.bases.set(base);
            if let Some(at) = at {
                self.part.words[at] = self.part.words[at] & 0x1ff | (base as u32) << 9;
            } else {
                self.part.root = base as u32;
            }
            for &(byte, count) in &bytes {
                let child = base ^ byte as usize;
                self.taken.set(child);
                if child >= self.part.words.len() {
                    self.part.words.resize(child + 1, 0);
                    self.part.entries.resize(child + 1, NONE);
                }
                self.part.words[child] = NO_CHILDREN << 9 | TAKEN | u32::from(byte);
                jobs.push(Job { at: Some(child), tokens: start..start + count, depth: depth + 1 });
                start += count;
            }
        }
        self.part.words.shrink_to_fit();
        self.part.entries.shrink_to_fit();
        self.part
    }

    /// A base not in use from which all of these bytes lead to free places.
    fn find_base(&mut self, bytes: &[(u8, usize)]) -> usize {
        let (first, rest) = (bytes[0].0 as usize, &bytes[1..]);
        // Where fewer children hardly find room, more do not either.
        let from = self.from[..=rest.len()].iter().copied().max().unwrap_or(0);
        let (mut at, mut tried) = (self.taken.next_clear(from), 0);
        self.from[rest.len()] = at;
        loop {
            let base = at ^ first;
            if !self.bases.get(base) && rest.iter().all(|&(byte, _)| !self.taken.get(base ^ byte as usize)) {
                break;
            }
            tried += 1;
            at = self.taken.next_clear(at + 1);
        }
        if tried > 16 {
            self.from[rest.len()] = at;
        }
        at ^ first
    }
}

/// A set of numbers.
#[derive(Default)]
struct Bits(Vec<u64>);

impl Bits {
    fn get(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 != 0)
    }

    fn set(&mut self, at: usize) {
        if at / 64 >= self.0.len() {
            self.0.resize(at / 64 + 1, 0);
        }
        self.0[at / 64] |= 1 << (at % 64);
    }

    /// The first number from `at` on that is not in the set.
    fn next_clear(&self, at: usize) -> usize {
        let Some(&word) = self.0.get(at / 64) else { return at };
        let ones = (word >> (at % 64)).trailing_ones() as usize;
        if ones < 64 - at % 64 {
            return at + ones;
        }
        let later = (at / 64 + 1..self.0.len()).find(|&i| self.0[i] != u64::MAX).unwrap_or(self.0.len());
        later * 64 + self.0.get(later).map_or(0, |word| word.trailing_ones() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries that share starts and ends, of all bytes, some inside others.
    #[test]
    fn every_entry_is_found_and_nothing_else() {
        let mut pieces: Vec<Vec<u8>> = (0..=255u8).map(|byte| vec![byte]).collect();
        let mut random = 1u64;
        for _ in 0..3000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let source = &pieces[(random >> 33) as usize % pieces.len()];
            let piece = [&source[..], &[(random >> 60) as u8 * 17]].concat();
            if !pieces.contains(&piece) {
                pieces.push(piece);
            }
        }
        let mut offsets = vec![0u64];
        offsets.extend(pieces.iter().scan(0, |end, piece| {
            *end += piece.len() as u64;
            Some(*end)
        }));
        let vocab = Vocab::new(pieces.concat(), &offsets, (0..pieces.len() as u32).collect()).expect("a vocabulary");
        for direction in [Direction::Forward, Direction::Backward] {
            let trie = Trie::new(&vocab, direction);
            let spell = |piece: &[u8]| -> Vec<u8> {
                match direction {
                    Direction::Forward => piece.to_vec(),
                    Direction::Backward => piece.iter().rev().copied().collect(),
                }
            };
            let spelled: std::collections::HashMap<Vec<u8>, Token> =
                pieces.iter().enumerate().map(|(token, piece)| (spell(piece), token as Token)).collect();
            let check = || {
                for piece in spelled.keys() {
                    for byte in (0..=255).step_by(17) {
                        let longer = [&piece[..], &[byte]].concat();
                        let expected: Vec<(usize, Token)> =
                            (1..=longer.len()).filter_map(|len| Some((len, *spelled.get(&longer[..len])?))).collect();
                        let mut found = Vec::new();
                        trie.walk(&vocab, longer.into_iter(), |len, token| found.push((len, token)));
                        assert_eq!(found, expected);
                    }
                }
            };
            // Several threads come to parts that are not there yet.
            std::thread::scope(|scope| {
                (0..4).for_each(|_| drop(scope.spawn(check)));
            });
        }
    }
}
