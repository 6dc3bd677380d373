//! The entries in two tries, one for what starts a word and one for what continues it, and at each node what to do when
//! the walk cannot go on: the tokens that what was read is cut into from the left, and the node where the rest stands.
//!
//! Nodes are numbered by their depth, so that the children of one stand side by side, and what a node fails to, which is
//! always less deep, is known before it is asked for.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::unicode::char_count;
use crate::vocab::{Token, Vocab};

pub struct Automaton {
    nodes: Vec<Node>,
    /// The byte that leads to each node.
    bytes: Vec<u8>,
    /// The tokens that nodes are cut into.
    cuts: Vec<Token>,
}

struct Node {
    /// Its children, from the first to one before the last.
    children: (u32, u32),
    /// What it is cut into: a stretch of `cuts`.
    cut: (u32, u32),
    /// Where the walk goes on behind that; `NONE` where there is no cut, so that the word is unknown.
    rest: u32,
}

const START: u32 = 0;
/// What is read is cut up to here: the root of the entries that continue a word.
const CONTINUED: u32 = 1;
const NONE: u32 = u32::MAX;

/// So many tokens are noted at most. Vocabularies of words stay far below.
const MOST_CUTS: usize = 1 << 28;

impl Automaton {
    /// Entries of more than `max_chars` characters are left out, as are pieces that could hold them.
    pub fn new(vocab: &Vocab, prefix: &[u8], max_chars: usize) -> Result<Self> {
        let is_short = |piece: &[u8]| piece.len() <= max_chars || char_count(piece) <= max_chars;
        let tokens = || 0..vocab.len() as Token;
        let starting = tokens().map(|token| (vocab.piece(token), token));
        let mut starting: Vec<(&[u8], Token)> = starting.filter(|(piece, _)| is_short(piece)).collect();
        let continuing = |token| Some((vocab.piece(token).strip_prefix(prefix)?, token));
        let is_continuing = |(rest, _): &(&[u8], Token)| !rest.is_empty() && is_short(rest);
        let mut continuing: Vec<_> = tokens().filter_map(continuing).filter(is_continuing).collect();
        starting.sort_unstable();
        continuing.sort_unstable();
        let starts = starting.len();
        let entries = [starting, continuing].concat();

        let mut automaton = Self { nodes: Vec::new(), bytes: vec![0; 2], cuts: Vec::new() };
        // Of each node that waits for its number's turn: its entries, its depth, and its parent.
        let mut waiting: Vec<(Range<usize>, usize, u32)> = vec![(0..starts, 0, NONE), (starts..entries.len(), 0, NONE)];
        let mut at = 0;
        while at < waiting.len() {
            let (range, depth, parent) = waiting[at].clone();
            let first = waiting.len();
            if first + 256 >= NONE as usize {
                return Err(Error::format("the entries of the vocabulary are too many, or too long, for WordPiece"));
            }
            let ends = entries[range.clone()].first().filter(|(spelled, _)| spelled.len() == depth && depth > 0);
            let mut from = range.start + usize::from(ends.is_some());
            while from < range.end {
                let byte = entries[from].0[depth];
                let len = entries[from..range.end].partition_point(|(spelled, _)| spelled[depth] == byte);
                waiting.push((from..from + len, depth + 1, at as u32));
                automaton.bytes.push(byte);
                from += len;
            }
            let node = automaton.node(ends.map(|&(_, token)| token), parent, at as u32)?;
            automaton.nodes.push(Node { children: (first as u32, waiting.len() as u32), ..node });
            at += 1;
        }
        Ok(automaton)
    }

    /// What to do when the walk cannot go on from a node: it is an entry, or its parent is cut and so is what that leaves,
    /// until its last byte leads on from there.
    fn node(&mut self, entry: Option<Token>, parent: u32, node: u32) -> Result<Node> {
        let mut found = Node { children: (0, 0), cut: (0, 0), rest: NONE };
        if let Some(token) = entry {
            found.cut = (self.cuts.len() as u32, self.cuts.len() as u32 + 1);
            found.rest = CONTINUED;
            self.cuts.push(token);
            return Ok(found);
        }
        if parent == NONE {
            return Ok(found);
        }
        let (from, byte) = (self.cuts.len(), self.bytes[node as usize]);
        let Node { mut cut, mut rest, .. } = self.nodes[parent as usize];
        let is_parents = cut;
        while rest != NONE {
            if let Some(next) = self.child(rest, byte) {
                found.rest = next;
                break;
            }
            // What was noted so far, and what the rest is cut into, side by side.
            if cut == is_parents {
                self.cuts.extend_from_within(cut.0 as usize..cut.1 as usize);
            }
            let more = &self.nodes[rest as usize];
            self.cuts.extend_from_within(more.cut.0 as usize..more.cut.1 as usize);
            rest = more.rest;
            if self.cuts.len() > MOST_CUTS {
                return Err(Error::format("the entries of the vocabulary are too many, or too long, for WordPiece"));
            }
            cut = (from as u32, self.cuts.len() as u32);
        }
        match found.rest {
            NONE => self.cuts.truncate(from),
            _ => found.cut = cut,
        }
        Ok(found)
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    #[inline]
    fn child(&self, node: u32, byte: u8) -> Option<u32> {
        let (from, to) = self.nodes[node as usize].children;
        let bytes = &self.bytes[from as usize..to as usize];
        let at = match bytes.len() {
            0..=8 => bytes.iter().position(|&other| other == byte)?,
            256 => usize::from(byte),
            _ => bytes.binary_search(&byte).ok()?,
        };
        Some(from + at as u32)
    }

    /// Appends the tokens of a piece; false if it cannot be cut into entries.
    pub fn run(&self, piece: &[u8], out: &mut Vec<Token>) -> bool {
        let mut node = START;
        for &byte in piece {
            node = loop {
                if let Some(next) = self.child(node, byte) {
                    break next;
                }
                let Some(rest) = self.cut(node, out) else { return false };
                node = rest;
            };
        }
        while node != CONTINUED {
            let Some(rest) = self.cut(node, out) else { return false };
            node = rest;
        }
        true
    }

    /// Appends what a node is cut into; the node where what is left stands.
    #[inline]
    fn cut(&self, node: u32, out: &mut Vec<Token>) -> Option<u32> {
        let Node { cut: (from, to), rest, .. } = self.nodes[node as usize];
        out.extend_from_slice(&self.cuts[from as usize..to as usize]);
        (rest != NONE).then_some(rest)
    }
}
