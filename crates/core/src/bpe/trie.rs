//! All entries of a vocabulary as a double-array trie: one step, from a node by a byte to a child, reads one word.
//!
//! A node is the place of its word. The word holds the byte that leads to the node and its base: the child by the byte
//! `b` can only be at `base ^ b`, and is there if the word there is taken and says `b`. No two nodes share a base, so
//! the byte is enough to tell a node's own child from another's. Nodes without children have the base 0, where nothing
//! is.
//!
//! After J. Aoe, "An efficient digital search algorithm by using a double-array structure" (1989).

use crate::vocab::{Token, Vocab};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Entries are spelled from their first byte on.
    Forward,
    /// From their last byte back.
    Backward,
}

pub struct Trie {
    /// `base << 9 | TAKEN | byte`, or 0 where no node is.
    words: Vec<u32>,
    /// The entry that ends at a node, or NONE.
    entries: Vec<Token>,
    /// For each entry the longest other entry that it starts with (ends with, backwards), or NONE.
    shorter: Vec<Token>,
}

pub const NONE: Token = Token::MAX;

const TAKEN: u32 = 1 << 8;
/// Where the children of the root are, whose own word is nowhere; before it nothing is.
const ROOT: u32 = 256;
/// A base has 23 bits; so many bytes of entries cannot need more, with holes and all.
const MAX_BYTES: usize = 1 << 22;

/// A place in the trie, by the base of its node.
#[derive(Debug, Clone, Copy)]
pub struct Node(u32);

impl Trie {
    /// Whether a vocabulary is small enough for a trie of this kind.
    pub fn has_room(vocab: &Vocab) -> bool {
        (0..vocab.len() as Token).map(|token| vocab.piece_len(token)).sum::<usize>() <= MAX_BYTES
    }

    pub fn new(vocab: &Vocab, direction: Direction) -> Self {
        Builder::new(vocab, direction).build()
    }

    pub fn root(&self) -> Node {
        Node(ROOT)
    }

    /// The child of `node` by `byte` and the entry that ends there, or NONE.
    #[inline]
    pub fn step(&self, node: Node, byte: u8) -> Option<(Node, Token)> {
        let at = (node.0 ^ u32::from(byte)) as usize;
        let word = *self.words.get(at)?;
        if word & 0x1ff != TAKEN | u32::from(byte) {
            return None;
        }
        Some((Node(word >> 9), self.entries[at]))
    }

    /// The next shorter entry that an entry starts with (ends with, backwards), or NONE.
    #[inline]
    pub fn shorter(&self, token: Token) -> Token {
        self.shorter[token as usize]
    }
}

struct Builder<'v> {
    vocab: &'v Vocab,
    direction: Direction,
    trie: Trie,
    /// A bit for each place that is taken, and for each base that is in use.
    taken: Bits,
    bases: Bits,
    /// For nodes with 1, 2 … children: before this place there is hardly a base for such a node.
    from: [usize; 256],
}

/// A node whose children are still to be made: where its word is, the entries below it, what they have in common.
struct Job {
    at: Option<usize>,
    tokens: std::ops::Range<usize>,
    depth: usize,
    shorter: Token,
}

impl<'v> Builder<'v> {
    fn new(vocab: &'v Vocab, direction: Direction) -> Self {
        let trie = Trie { words: Vec::new(), entries: Vec::new(), shorter: vec![NONE; vocab.len()] };
        Self { vocab, direction, trie, taken: Bits::default(), bases: Bits::default(), from: [2 * ROOT as usize; 256] }
    }

    /// A node and then all below it, the last child first, so that what lies below a node lies close together.
    fn build(mut self) -> Trie {
        let mut order: Vec<Token> = (0..self.vocab.len() as Token).collect();
        let mut jobs = Vec::from([Job { at: None, tokens: 0..order.len(), depth: 0, shorter: NONE }]);
        let (mut nexts, mut bytes) = (Vec::new(), Vec::new());
        while let Some(Job { at, tokens, depth, mut shorter }) = jobs.pop() {
            // The entry that ends here comes first, then those that go on, by their next byte.
            nexts.clear();
            nexts.extend(order[tokens.clone()].iter().map(|&token| (self.byte(token, depth), token)));
            if nexts.len() > 1 {
                nexts.sort_unstable();
            }
            for (slot, &(_, token)) in order[tokens.clone()].iter_mut().zip(&nexts) {
                *slot = token;
            }
            let mut start = tokens.start;
            if let (Some(at), Some(&(None, token))) = (at, nexts.first()) {
                self.trie.shorter[token as usize] = shorter;
                self.trie.entries[at] = token;
                shorter = token;
                start += 1;
            }
            let more = &nexts[start - tokens.start..];
            bytes.clear();
            bytes.extend(more.chunk_by(|a, b| a.0 == b.0).filter_map(|group| Some((group[0].0?, group.len()))));
            if bytes.is_empty() {
                continue;
            }
            let base = if at.is_none() { ROOT as usize } else { self.find_base(&bytes) };
            self.bases.set(base);
            if let Some(at) = at {
                self.trie.words[at] |= (base as u32) << 9;
            }
            for &(byte, count) in &bytes {
                let child = base ^ byte as usize;
                self.taken.set(child);
                if child >= self.trie.words.len() {
                    self.trie.words.resize(child + 1, 0);
                    self.trie.entries.resize(child + 1, NONE);
                }
                self.trie.words[child] = TAKEN | u32::from(byte);
                jobs.push(Job { at: Some(child), tokens: start..start + count, depth: depth + 1, shorter });
                start += count;
            }
        }
        self.trie
    }

    fn byte(&self, token: Token, depth: usize) -> Option<u8> {
        let piece = self.vocab.piece(token);
        match self.direction {
            Direction::Forward => piece.get(depth).copied(),
            Direction::Backward => piece.len().checked_sub(depth + 1).map(|at| piece[at]),
        }
    }

    /// A base not in use from which all of these bytes lead to free places.
    fn find_base(&mut self, bytes: &[(u8, usize)]) -> usize {
        let (first, rest) = (bytes[0].0 as usize, &bytes[1..]);
        let from = &mut self.from[rest.len()];
        *from = self.taken.next_clear(*from);
        let (mut at, mut tried) = (*from, 0);
        loop {
            let base = at ^ first;
            if !self.bases.get(base) && rest.iter().all(|&(byte, _)| !self.taken.get(base ^ byte as usize)) {
                break;
            }
            tried += 1;
            at = self.taken.next_clear(at + 1);
        }
        if tried > 16 {
            *from = at;
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
            let mut sorted: Vec<&Vec<u8>> = spelled.keys().collect();
            sorted.sort_unstable();
            for (piece, &token) in &spelled {
                let (mut node, mut shorter) = (trie.root(), NONE);
                for end in 1..=piece.len() {
                    let (child, entry) = trie.step(node, piece[end - 1]).expect("a node");
                    assert_eq!(entry, *spelled.get(&piece[..end]).unwrap_or(&NONE));
                    if end < piece.len() && entry != NONE {
                        shorter = entry;
                    }
                    node = child;
                }
                assert_eq!(trie.shorter(token), shorter);
                for byte in (0..=255).step_by(17) {
                    let longer = [&piece[..], &[byte]].concat();
                    let after = sorted.partition_point(|other| **other < longer);
                    let is_there = sorted.get(after).is_some_and(|other| other.starts_with(&longer));
                    assert_eq!(trie.step(node, byte).is_some(), is_there);
                }
            }
        }
    }
}
