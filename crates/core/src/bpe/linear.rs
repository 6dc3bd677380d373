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

use super::{Bpe, Proof};
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
    /// Edges in open addressing: node and byte in the high half, the child in the low half.
    edges: Vec<u64>,
    /// The entry that ends at a node, or NONE. Node 0 is the root.
    entries: Vec<Token>,
    /// For each entry the longest entry that it starts with (ends with, backwards), or NONE.
    shorter: Vec<Token>,
}

const NONE: u32 = u32::MAX;
/// So many nodes leave room for a byte beside a node in half a word.
const MAX_NODES: usize = 1 << 24;

impl Linear {
    /// Whether a vocabulary is small enough for a trie of this kind.
    pub fn has_room(vocab: &Vocab) -> bool {
        (0..vocab.len() as Token).map(|token| vocab.piece_len(token)).sum::<usize>() < MAX_NODES
    }

    pub fn new(vocab: &Vocab, direction: Direction) -> Self {
        let mut trie =
            Self { direction, edges: vec![0; 1 << 10], entries: vec![NONE], shorter: vec![NONE; vocab.len()] };
        let mut order: Vec<Token> = (0..vocab.len() as Token).collect();
        order.sort_unstable_by_key(|&token| vocab.piece_len(token));
        for token in order {
            let (piece, mut node) = (vocab.piece(token), 0);
            for i in 0..piece.len() {
                let byte = if direction == Direction::Forward { piece[i] } else { piece[piece.len() - 1 - i] };
                node = match trie.child(node, byte) {
                    0 => trie.add_child(node, byte),
                    child => child,
                };
                if trie.entries[node as usize] != NONE {
                    trie.shorter[token as usize] = trie.entries[node as usize];
                }
            }
            trie.entries[node as usize] = token;
        }
        trie
    }

    /// The child of a node by a byte, or 0.
    #[inline]
    fn child(&self, node: u32, byte: u8) -> u32 {
        let key = (node << 8) | u32::from(byte);
        let mask = self.edges.len() - 1;
        let mut at = slot(key) & mask;
        loop {
            let edge = self.edges[at];
            if edge == 0 || (edge >> 32) as u32 == key {
                return edge as u32;
            }
            at = (at + 1) & mask;
        }
    }

    fn add_child(&mut self, node: u32, byte: u8) -> u32 {
        let child = self.entries.len() as u32;
        self.entries.push(NONE);
        if self.entries.len() * 2 > self.edges.len() {
            let old = std::mem::take(&mut self.edges);
            self.edges = vec![0; old.len() * 2];
            old.into_iter().filter(|&edge| edge != 0).for_each(|edge| self.place(edge));
        }
        self.place((u64::from((node << 8) | u32::from(byte)) << 32) | u64::from(child));
        child
    }

    fn place(&mut self, edge: u64) {
        let mask = self.edges.len() - 1;
        let mut at = slot((edge >> 32) as u32) & mask;
        while self.edges[at] != 0 {
            at = (at + 1) & mask;
        }
        self.edges[at] = edge;
    }

    /// The longest entry at the start of `bytes`, which must not be empty.
    #[inline]
    pub fn longest(&self, bpe: &Bpe, bytes: &[u8]) -> Token {
        let (mut node, mut longest) = (0, bpe.byte_tokens[bytes[0] as usize]);
        for &byte in bytes {
            node = self.child(node, byte);
            if node == 0 {
                break;
            }
            let entry = self.entries[node as usize];
            if entry != NONE {
                longest = entry;
            }
        }
        longest
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
            let mut node = 0;
            for size in 1..=step + 1 {
                let byte = match self.direction {
                    Direction::Forward => piece[pos + size - 1],
                    Direction::Backward => piece[pos + 1 - size],
                };
                node = self.child(node, byte);
                if node == 0 {
                    break;
                }
                if self.entries[node as usize] != NONE {
                    candidates.push((size, self.entries[node as usize]));
                }
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
        let Proof::Proved { parts, ranks, .. } = &bpe.proof else { return };
        if piece.is_empty() {
            return;
        }
        let first = out.len();
        let mut dead = vec![0u64; piece.len() / 64 + 1];
        let (mut pos, mut token) = (0, self.longest(bpe, piece));
        while pos < piece.len() {
            let end = pos + bpe.vocab.piece_len(token);
            let before = if out.len() > first { out.last() } else { None };
            let is_dead = dead[end / 64] & (1 << (end % 64)) != 0;
            if !is_dead && before.is_none_or(|&before| bpe.compatible(parts, ranks, before, token)) {
                out.push(token);
                pos = end;
                if pos < piece.len() {
                    token = self.longest(bpe, &piece[pos..]);
                }
                continue;
            }
            // A shorter entry, or, where there is none, a shorter one for the token before.
            while self.shorter[token as usize] == NONE {
                dead[pos / 64] |= 1 << (pos % 64);
                let Some(last) = (out.len() > first).then(|| out.pop()).flatten() else { return };
                pos -= bpe.vocab.piece_len(last);
                token = last;
            }
            token = self.shorter[token as usize];
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

#[inline]
fn slot(key: u32) -> usize {
    let mixed = u64::from(key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as usize
}
