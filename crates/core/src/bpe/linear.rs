//! One pass over a piece of any length, where every entry encodes to itself and ranks after its parts.
//!
//! An encoding is *valid* when encoding its bytes gives it back; every stretch of a valid encoding is valid, and two
//! neighbours decide alone whether they may stand side by side (`Bpe::compatible`). So each suffix of a text has
//! exactly one first token: the token that either is the whole suffix or is compatible with the first token of what
//! it leaves. Going from the end to the start, that is one step a byte. The same from start to end gives the last
//! token of each prefix.
//!
//! After H. van Antwerpen and A. Neubeck, "So many tokens, so little time" (GitHub, 2024), with the direction turned
//! so that a plain trie finds the candidates and the tokens come out in order.

use super::{Bpe, Proof};
use crate::hash::IntMap;
use crate::vocab::{Token, Vocab};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// First tokens of suffixes, from the end of the piece.
    Forward,
    /// Last tokens of prefixes, from its start.
    Backward,
}

/// All entries in a trie, spelled forwards or backwards.
pub struct Linear {
    direction: Direction,
    /// The children of the root, and of the others by (node, byte).
    root: [u32; 256],
    edges: IntMap<u64, u32>,
    /// The entry that ends at a node, or NONE.
    entries: Vec<Token>,
}

const NONE: u32 = u32::MAX;

fn edge(node: u32, byte: u8) -> u64 {
    (u64::from(node) << 8) | u64::from(byte)
}

impl Linear {
    pub fn new(vocab: &Vocab, direction: Direction) -> Self {
        let mut trie = Self { direction, root: [NONE; 256], edges: IntMap::default(), entries: Vec::new() };
        for token in 0..vocab.len() as Token {
            let mut node = None;
            let piece = vocab.piece(token);
            for i in 0..piece.len() {
                let byte = if direction == Direction::Forward { piece[i] } else { piece[piece.len() - 1 - i] };
                let fresh = trie.entries.len() as u32;
                let child = match node {
                    None => {
                        let child = &mut trie.root[byte as usize];
                        if *child == NONE {
                            *child = fresh;
                        }
                        *child
                    }
                    Some(node) => *trie.edges.entry(edge(node, byte)).or_insert(fresh),
                };
                if child == fresh {
                    trie.entries.push(NONE);
                }
                node = Some(child);
            }
            if let Some(node) = node {
                trie.entries[node as usize] = token;
            }
        }
        trie
    }

    /// For each place `pos` in the piece the token that starts there in the encoding of `piece[pos..]` (forward), or
    /// the one that ends at `pos + 1` in the encoding of `piece[..=pos]` (backward).
    fn tokens(&self, bpe: &Bpe, piece: &[u8]) -> Vec<Token> {
        let Proof::Proved { parts, ranks, .. } = &bpe.proof else { return Vec::new() };
        let len = piece.len();
        let mut tokens: Vec<Token> = vec![NONE; len];
        let mut candidates: Vec<(usize, Token)> = Vec::new();
        for step in 0..len {
            let pos = if self.direction == Direction::Forward { len - 1 - step } else { step };
            candidates.clear();
            let mut node = self.root[piece[pos] as usize];
            for size in 1..=step + 1 {
                if node == NONE {
                    break;
                }
                if self.entries[node as usize] != NONE {
                    candidates.push((size, self.entries[node as usize]));
                }
                if size == step + 1 {
                    break;
                }
                let byte = if self.direction == Direction::Forward { piece[pos + size] } else { piece[pos - size] };
                node = self.edges.get(&edge(node, byte)).copied().unwrap_or(NONE);
            }
            // Exactly one candidate fits; the longest is the likeliest.
            let fitting = candidates.iter().rev().find(|&&(size, token)| {
                size == step + 1
                    || match self.direction {
                        Direction::Forward => bpe.compatible(parts, ranks, token, tokens[pos + size]),
                        Direction::Backward => bpe.compatible(parts, ranks, tokens[pos - size], token),
                    }
            });
            tokens[pos] = fitting.map_or(bpe.byte_tokens[piece[pos] as usize], |&(_, token)| token);
        }
        tokens
    }

    /// Appends the tokens of a piece. For the forward direction.
    pub fn encode(&self, bpe: &Bpe, piece: &[u8], out: &mut Vec<Token>) {
        let tokens = self.tokens(bpe, piece);
        let mut pos = 0;
        while pos < piece.len() {
            out.push(tokens[pos]);
            pos += bpe.vocab.piece_len(tokens[pos]);
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
