//! One pass over a piece of any length, where every entry encodes to itself and ranks after its parts.
//!
//! An encoding is *valid* when encoding its bytes gives it back; every stretch of a valid encoding is valid, and two
//! neighbours decide alone whether they may stand side by side (`Bpe::compatible`). So an encoding can be found
//! without merging:
//!
//! * `encode` takes the longest entry that is compatible with the token before it and, where none is, goes back. A
//!   place from which there is no way on is never tried again, so it is linear.
//! * `Counts` goes from the end to the start: each suffix of a text has exactly one first token, the one that either
//!   is the whole suffix or is compatible with the first token of what it leaves. The same from start to end gives
//!   the last token of each prefix.
//!
//! After H. van Antwerpen and A. Neubeck, "So many tokens, so little time" (GitHub, 2024).

use super::trie::{Trie, NONE};
use super::{Bpe, Proof};
use crate::vocab::{Token, Vocab};

pub use super::trie::Direction;

/// The entries in a trie, spelled forwards or backwards.
pub struct Linear {
    direction: Direction,
    trie: Trie,
}

impl Linear {
    pub fn new(vocab: &Vocab, direction: Direction) -> Self {
        Self { direction, trie: Trie::new(vocab, direction) }
    }

    /// The length of the longest entry at the start (backward: the end) of `bytes`, which must not be empty.
    pub fn longest_len(&self, bytes: &[u8]) -> usize {
        let (mut node, mut longest) = (self.trie.root(), 1);
        for size in 1..=bytes.len() {
            let byte = if self.direction == Direction::Forward { bytes[size - 1] } else { bytes[bytes.len() - size] };
            let Some((child, entry)) = self.trie.step(node, byte) else { break };
            if entry != NONE {
                longest = size;
            }
            node = child;
        }
        longest
    }
}

/// Token counts of a piece that grows and shrinks at one end: at its start (forward) or at its end (backward).
pub struct Counts<'a> {
    bpe: &'a Bpe,
    linear: &'a Linear,
    /// The bytes in the order in which they were added.
    bytes: Vec<u8>,
    /// For each length the token at the growing end, and the number of tokens.
    last: Vec<(Token, u32)>,
    candidates: Vec<(usize, Token)>,
}

impl<'a> Counts<'a> {
    pub fn new(bpe: &'a Bpe, linear: &'a Linear) -> Self {
        Self { bpe, linear, bytes: Vec::new(), last: Vec::new(), candidates: Vec::new() }
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
        let mut node = self.linear.trie.root();
        for size in 1..=len {
            let Some((child, entry)) = self.linear.trie.step(node, self.bytes[len - size]) else { break };
            if entry != NONE {
                self.candidates.push((size, entry));
            }
            node = child;
        }
        // Exactly one candidate fits; the longest is the likeliest.
        let fits = |&&(size, token): &&(usize, Token)| {
            size == len || {
                let beside = self.last[len - size - 1].0;
                match self.linear.direction {
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
