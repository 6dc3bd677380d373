//! What all starts, or all ends, of a piece encode to, where every entry encodes to itself and ranks after its parts.
//!
//! What may stand side by side in an encoding, two neighbours decide alone (`windows`). So each suffix of a text has
//! exactly one first token: the one that either is the whole suffix or is compatible with the first token of what it
//! leaves. `Counts` goes from the end to the start; the same from start to end gives the last token of each prefix.

use super::trie::{Direction, Trie};
use super::{Bpe, Proof};
use crate::vocab::{Token, Vocab};

/// The entries, spelled forwards or backwards.
pub struct Entries<'a> {
    vocab: &'a Vocab,
    trie: &'a Trie,
}

impl<'a> Entries<'a> {
    pub fn new(vocab: &'a Vocab, trie: &'a Trie) -> Self {
        Self { vocab, trie }
    }

    /// The length of the longest entry at the start (backward: the end) of `bytes`, which must not be empty.
    pub fn longest_len(&self, bytes: &[u8]) -> usize {
        let mut longest = 1;
        let found = |len, _| longest = len;
        match self.trie.direction() {
            Direction::Forward => self.trie.walk(self.vocab, bytes.iter().copied(), found),
            Direction::Backward => self.trie.walk(self.vocab, bytes.iter().rev().copied(), found),
        }
        longest
    }
}

/// Token counts of a piece that grows and shrinks at one end: at its start (forward) or at its end (backward).
pub struct Counts<'a> {
    bpe: &'a Bpe,
    trie: &'a Trie,
    /// The bytes in the order in which they were added.
    bytes: Vec<u8>,
    /// For each length the token at the growing end, and the number of tokens.
    last: Vec<(Token, u32)>,
    candidates: Vec<(usize, Token)>,
}

impl<'a> Counts<'a> {
    pub fn new(bpe: &'a Bpe, trie: &'a Trie) -> Self {
        Self { bpe, trie, bytes: Vec::new(), last: Vec::new(), candidates: Vec::new() }
    }

    /// How many bytes there are.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    pub fn push(&mut self, byte: u8) {
        let Proof::Proved { entries, .. } = &self.bpe.proof else { return };
        self.bytes.push(byte);
        let len = self.bytes.len();
        self.candidates.clear();
        let (bytes, candidates) = (self.bytes.iter().rev().copied(), &mut self.candidates);
        self.trie.walk(&self.bpe.vocab, bytes, |size, entry| candidates.push((size, entry)));
        // Exactly one candidate fits; the longest is the likeliest.
        let fits = |&&(size, token): &&(usize, Token)| {
            size == len || {
                let beside = self.last[len - size - 1].0;
                match self.trie.direction() {
                    Direction::Forward => self.bpe.compatible(entries, token, beside),
                    Direction::Backward => self.bpe.compatible(entries, beside, token),
                }
            }
        };
        let byte_alone = (1, self.bpe.byte_tokens[byte as usize]);
        let (size, token) = self.candidates.iter().rev().find(fits).copied().unwrap_or(byte_alone);
        self.last.push((token, 1 + self.count(len - size)));
    }

    /// Takes off what was added after the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
        self.last.truncate(len);
    }

    /// The token at the growing end, and the number of tokens, for each of the last `n` lengths.
    pub fn last(&self, n: usize) -> Option<&[(Token, u32)]> {
        self.last.get(self.last.len().checked_sub(n)?..)
    }

    /// The token count when there were `len` bytes.
    pub fn count(&self, len: usize) -> u32 {
        len.checked_sub(1).map_or(0, |at| self.last[at].1)
    }
}
