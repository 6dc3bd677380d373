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
    /// Edges in open addressing.
    edges: Vec<Edge>,
    /// How many nodes there are; node 0 is the root.
    nodes: u32,
    /// For each entry the longest entry that it starts with (ends with, backwards), or NONE.
    shorter: Vec<Token>,
}

/// From a node, by a byte, to a child. All that one step needs lies side by side: long tries do not fit into caches.
#[derive(Clone, Copy)]
struct Edge {
    /// The node and the byte.
    key: u32,
    /// 0 in a free slot.
    child: u32,
    /// The entry that ends at the child, or NONE.
    entry: Token,
}

const FREE: Edge = Edge { key: 0, child: 0, entry: NONE };

const NONE: u32 = u32::MAX;
/// So many nodes leave room for a byte beside a node in half a word.
const MAX_NODES: usize = 1 << 24;

impl Linear {
    /// Whether a vocabulary is small enough for a trie of this kind.
    pub fn has_room(vocab: &Vocab) -> bool {
        (0..vocab.len() as Token).map(|token| vocab.piece_len(token)).sum::<usize>() < MAX_NODES
    }

    pub fn new(vocab: &Vocab, direction: Direction) -> Self {
        let mut trie = Self { direction, edges: vec![FREE; 1 << 10], nodes: 1, shorter: vec![NONE; vocab.len()] };
        let mut order: Vec<Token> = (0..vocab.len() as Token).collect();
        order.sort_unstable_by_key(|&token| vocab.piece_len(token));
        for token in order {
            let piece = vocab.piece(token);
            let (mut node, mut slot) = (0, 0);
            for i in 0..piece.len() {
                let byte = if direction == Direction::Forward { piece[i] } else { piece[piece.len() - 1 - i] };
                slot = trie.slot_of(node, byte);
                if trie.edges[slot].child == 0 {
                    slot = trie.add_child(node, byte);
                }
                if trie.edges[slot].entry != NONE {
                    trie.shorter[token as usize] = trie.edges[slot].entry;
                }
                node = trie.edges[slot].child;
            }
            trie.edges[slot].entry = token;
        }
        trie
    }

    /// The edge from a node by a byte; its child is 0 if there is none.
    #[inline]
    fn edge(&self, node: u32, byte: u8) -> Edge {
        self.edges[self.slot_of(node, byte)]
    }

    /// The slot of an edge, or the free one where it would go.
    #[inline]
    fn slot_of(&self, node: u32, byte: u8) -> usize {
        let key = key(node, byte);
        let mask = self.edges.len() - 1;
        let mut at = hash(key) & mask;
        while self.edges[at].child != 0 && self.edges[at].key != key {
            at = (at + 1) & mask;
        }
        at
    }

    /// Adds an edge that is not there, and returns its slot.
    fn add_child(&mut self, node: u32, byte: u8) -> usize {
        if (self.nodes as usize + 1) * 2 > self.edges.len() {
            let old = std::mem::take(&mut self.edges);
            self.edges = vec![FREE; old.len() * 2];
            for edge in old.into_iter().filter(|edge| edge.child != 0) {
                let at = self.slot_of(edge.key >> 8, edge.key as u8);
                self.edges[at] = edge;
            }
        }
        let at = self.slot_of(node, byte);
        self.edges[at] = Edge { key: key(node, byte), child: self.nodes, entry: NONE };
        self.nodes += 1;
        at
    }

    /// The length of the longest entry at the start (backward: the end) of `bytes`, which must not be empty.
    pub fn longest_len(&self, bytes: &[u8]) -> usize {
        let (mut node, mut longest) = (0, 1);
        for size in 1..=bytes.len() {
            let byte = if self.direction == Direction::Forward { bytes[size - 1] } else { bytes[bytes.len() - size] };
            let edge = self.edge(node, byte);
            if edge.child == 0 {
                break;
            }
            if edge.entry != NONE {
                longest = size;
            }
            node = edge.child;
        }
        longest
    }

    /// The longest entry at the start of `bytes`, which must not be empty.
    #[inline]
    fn longest(&self, bpe: &Bpe, bytes: &[u8]) -> Token {
        let (mut node, mut longest) = (0, bpe.byte_tokens[bytes[0] as usize]);
        for &byte in bytes {
            let edge = self.edge(node, byte);
            if edge.child == 0 {
                break;
            }
            if edge.entry != NONE {
                longest = edge.entry;
            }
            node = edge.child;
        }
        longest
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
}

/// Token counts of a piece that grows and shrinks at one end: at its start (forward) or at its end (backward).
pub struct Counts<'a> {
    bpe: &'a Bpe,
    trie: &'a Linear,
    /// The bytes in the order in which they were added.
    bytes: Vec<u8>,
    /// For each length the token at the growing end, and the number of tokens.
    last: Vec<(Token, u32)>,
    candidates: Vec<(usize, Token)>,
}

impl<'a> Counts<'a> {
    pub fn new(bpe: &'a Bpe, trie: &'a Linear) -> Self {
        Self { bpe, trie, bytes: Vec::new(), last: Vec::new(), candidates: Vec::new() }
    }

    /// How many bytes there are.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    pub fn push(&mut self, byte: u8) {
        let Proof::Proved { parts, ranks, .. } = &self.bpe.proof else { return };
        self.bytes.push(byte);
        let len = self.bytes.len();
        self.candidates.clear();
        let mut node = 0;
        for size in 1..=len {
            let edge = self.trie.edge(node, self.bytes[len - size]);
            if edge.child == 0 {
                break;
            }
            if edge.entry != NONE {
                self.candidates.push((size, edge.entry));
            }
            node = edge.child;
        }
        // Exactly one candidate fits; the longest is the likeliest.
        let fits = |&&(size, token): &&(usize, Token)| {
            size == len || {
                let beside = self.last[len - size - 1].0;
                match self.trie.direction {
                    Direction::Forward => self.bpe.compatible(parts, ranks, token, beside),
                    Direction::Backward => self.bpe.compatible(parts, ranks, beside, token),
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

    /// The token count when there were `len` bytes.
    pub fn count(&self, len: usize) -> u32 {
        len.checked_sub(1).map_or(0, |at| self.last[at].1)
    }
}

#[inline]
fn key(node: u32, byte: u8) -> u32 {
    (node << 8) | u32::from(byte)
}

#[inline]
fn hash(key: u32) -> usize {
    (u64::from(key).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
}
