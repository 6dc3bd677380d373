//! One pass over a piece of any length, where every entry encodes to itself and ranks after its parts.
//!
//! An encoding is *valid* when encoding its bytes gives it back; every stretch of a valid encoding is valid, and two
//! neighbours decide alone whether they may stand side by side (`Bpe::compatible`). So an encoding can be found
//! without merging:
//!
//! * `encode` takes the longest entry that is compatible with the token before it and, where none is, goes back. A
//!   place from which there is no way on is never tried again, so it is linear.
//! * `counts` goes from the end to the start: each suffix of a text has exactly one first token, the one that either
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

    /// The longest entry at the start of `bytes`, which must not be empty.
    #[inline]
    pub fn longest(&self, bpe: &Bpe, bytes: &[u8]) -> Token {
        let (mut node, mut longest) = (self.trie.root(), bpe.byte_tokens[bytes[0] as usize]);
        for &byte in bytes {
            let Some((child, entry)) = self.trie.step(node, byte) else { break };
            if entry != NONE {
                longest = entry;
            }
            node = child;
        }
        longest
    }

    /// For each place `pos` in the piece the token that starts there in the encoding of `piece[pos..]` (forward), or
    /// the one that ends at `pos + 1` in the encoding of `piece[..=pos]` (backward).
    fn tokens(&self, bpe: &Bpe, piece: &[u8]) -> Vec<Token> {
        let Proof::Proved { entries, .. } = &bpe.proof else { return Vec::new() };
        let len = piece.len();
        let mut tokens: Vec<Token> = vec![NONE; len];
        let mut candidates: Vec<(usize, Token)> = Vec::new();
        for step in 0..len {
            let pos = if self.direction == Direction::Forward { len - 1 - step } else { step };
            candidates.clear();
            let mut node = self.trie.root();
            for size in 1..=step + 1 {
                let byte = match self.direction {
                    Direction::Forward => piece[pos + size - 1],
                    Direction::Backward => piece[pos + 1 - size],
                };
                let Some((child, entry)) = self.trie.step(node, byte) else { break };
                if entry != NONE {
                    candidates.push((size, entry));
                }
                node = child;
            }
            // Exactly one candidate fits; the longest is the likeliest.
            let fitting = candidates.iter().rev().find(|&&(size, token)| {
                size == step + 1
                    || match self.direction {
                        Direction::Forward => bpe.compatible(entries, token, tokens[pos + size]),
                        Direction::Backward => bpe.compatible(entries, tokens[pos - size], token),
                    }
            });
            tokens[pos] = fitting.map_or(bpe.byte_tokens[piece[pos] as usize], |&(_, token)| token);
        }
        tokens
    }

    /// Appends the tokens of a piece. For the forward direction.
    pub fn encode(&self, bpe: &Bpe, piece: &[u8], out: &mut Vec<Token>) {
        let Proof::Proved { entries, .. } = &bpe.proof else { return };
        if piece.is_empty() {
            return;
        }
        let first = out.len();
        // Places from which there is no way on, a bit each; most pieces need no memory of their own for them.
        let (mut few, mut many) = ([0u64; 8], Vec::new());
        let dead = if piece.len() < 64 * few.len() {
            &mut few[..]
        } else {
            many.resize(piece.len() / 64 + 1, 0);
            &mut many[..]
        };
        let (mut pos, mut token) = (0, self.longest(bpe, piece));
        while pos < piece.len() {
            let end = pos + entries[token as usize].len as usize;
            let before = if out.len() > first { out.last() } else { None };
            let is_dead = dead[end / 64] & (1 << (end % 64)) != 0;
            if !is_dead && before.is_none_or(|&before| bpe.compatible(entries, before, token)) {
                out.push(token);
                pos = end;
                if pos < piece.len() {
                    token = self.longest(bpe, &piece[pos..]);
                }
                continue;
            }
            // A shorter entry, or, where there is none, a shorter one for the token before.
            while self.trie.shorter(token) == NONE {
                dead[pos / 64] |= 1 << (pos % 64);
                let Some(last) = (out.len() > first).then(|| out.pop()).flatten() else { return };
                pos -= entries[last as usize].len as usize;
                token = last;
            }
            token = self.trie.shorter(token);
        }
    }

    /// Token counts: of the suffix from each place (forward), or of the prefix up to it (backward).
    pub fn counts(&self, bpe: &Bpe, piece: &[u8]) -> Vec<u32> {
        let tokens = self.tokens(bpe, piece);
        let len = piece.len();
        let mut counts = vec![0; len + 1];
        match self.direction {
            Direction::Forward => {
                for pos in (0..len).rev() {
                    counts[pos] = 1 + counts[pos + bpe.vocab.piece_len(tokens[pos])];
                }
            }
            Direction::Backward => {
                for end in 1..=len {
                    counts[end] = 1 + counts[end - bpe.vocab.piece_len(tokens[end - 1])];
                }
            }
        }
        counts
    }
}
