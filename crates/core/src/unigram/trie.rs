//! A double array over bytes: which entries start at a place of a text, one memory access a byte.
//!
//! The children of a node stand at `base ^ byte`. No two nodes have the same base, so that the byte, which each unit
//! has as its label, tells whether it is a child of the node that looks for it.

use crate::error::{Error, Result};

/// No entry ends at a node.
pub const NONE: u32 = u32::MAX;

pub const ROOT: usize = 0;

#[derive(Debug, Clone, Copy)]
struct Unit {
    /// The base in the upper 24 bits, the label in the lower 8.
    link: u32,
    token: u32,
}

pub struct Trie {
    units: Vec<Unit>,
}

/// Units come in blocks; a base and its children stand in the same one.
const BLOCK: usize = 256;

/// Free units are looked for in so many blocks, the last ones.
const OPEN: usize = 16;

impl Trie {
    /// A trie of `keys`, sorted and all different, none empty; each with the token that it stands for.
    pub fn new(keys: &[(&[u8], u32)]) -> Result<Self> {
        let mut builder = Builder::default();
        builder.grow(); // of the root alone: nodes without children have its block as their base
        builder.take(ROOT, 1); // not 0: it is no child of those nodes
        builder.is_base[0] = true;
        builder.close(0);
        let mut open = vec![(ROOT, 0..keys.len(), 0)];
        let mut children: Vec<(u8, std::ops::Range<usize>)> = Vec::new();
        while let Some((node, mut range, depth)) = open.pop() {
            if range.start < range.end && keys[range.start].0.len() == depth {
                builder.units[node].token = keys[range.start].1;
                range.start += 1;
            }
            children.clear();
            for at in range {
                let byte = keys[at].0[depth];
                match children.last_mut() {
                    Some((last, range)) if *last == byte => range.end = at + 1,
                    _ => children.push((byte, at..at + 1)),
                }
            }
            if children.is_empty() {
                continue;
            }
            let base = builder.find_base(&children);
            if base >= 1 << 24 {
                return Err(Error::format("the entries are too many for the table that finds them"));
            }
            builder.is_base[base] = true;
            builder.units[node].link |= (base as u32) << 8;
            for (byte, range) in children.drain(..) {
                let child = base ^ usize::from(byte);
                builder.take(child, byte);
                open.push((child, range, depth + 1));
            }
        }
        Ok(Self { units: builder.finish() })
    }

    /// The node behind `byte`.
    #[inline]
    pub fn step(&self, node: usize, byte: u8) -> Option<usize> {
        let at = (self.units[node].link >> 8) as usize ^ usize::from(byte);
        (self.units[at].link as u8 == byte).then_some(at)
    }

    /// The entry that ends at a node, or NONE.
    #[inline]
    pub fn token(&self, node: usize) -> u32 {
        self.units[node].token
    }

    /// Gives `visit` each entry that `text` starts with, the shortest first: how long it is, and its token.
    #[inline]
    pub fn prefixes(&self, text: &[u8], mut visit: impl FnMut(usize, u32)) {
        let mut node = ROOT;
        for (i, &byte) in text.iter().enumerate() {
            let Some(next) = self.step(node, byte) else { return };
            node = next;
            let token = self.token(node);
            if token != NONE {
                visit(i + 1, token);
            }
        }
    }

    pub fn len(&self) -> usize {
        self.units.len()
    }

    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }
}

/// The free units of the open blocks are a ring.
#[derive(Default)]
struct Builder {
    units: Vec<Unit>,
    is_used: Vec<bool>,
    is_base: Vec<bool>,
    next: Vec<u32>,
    previous: Vec<u32>,
    /// A free unit of an open block, if there is one.
    free: Option<usize>,
}

impl Builder {
    /// Adds a block.
    fn grow(&mut self) {
        let start = self.units.len();
        let end = start + BLOCK;
        self.units.resize(end, Unit { link: 0, token: NONE });
        self.is_used.resize(end, false);
        self.is_base.resize(end, false);
        self.next.extend((start..end).map(|at| (at + 1) as u32));
        self.previous.extend((start..end).map(|at| at.wrapping_sub(1) as u32));
        let first = self.free.unwrap_or(start);
        let last = if self.free.is_some() { self.previous[first] as usize } else { end - 1 };
        self.join(last, start);
        self.join(end - 1, first);
        self.free = Some(first);
        if start > OPEN * BLOCK {
            self.close(start / BLOCK - OPEN);
        }
    }

    fn join(&mut self, left: usize, right: usize) {
        self.next[left] = right as u32;
        self.previous[right] = left as u32;
    }

    /// Takes a unit out of the ring.
    fn remove(&mut self, at: usize) {
        let (previous, next) = (self.previous[at] as usize, self.next[at] as usize);
        self.join(previous, next);
        if self.free == Some(at) {
            self.free = (next != at).then_some(next);
        }
    }

    fn take(&mut self, at: usize, label: u8) {
        self.remove(at);
        self.is_used[at] = true;
        self.units[at].link = u32::from(label);
    }

    /// Takes what is free of a block out of the ring, and labels it as children of a base that no node has.
    fn close(&mut self, block: usize) {
        let block = block * BLOCK..(block + 1) * BLOCK;
        let unused = block.clone().find(|&at| !self.is_base[at]).unwrap_or(block.start);
        for at in block {
            if !self.is_used[at] {
                self.remove(at);
                self.units[at].link = (at ^ unused) as u32 & 0xFF;
            }
        }
    }

    fn find_base<T>(&mut self, children: &[(u8, T)]) -> usize {
        let first = usize::from(children[0].0);
        if let Some(start) = self.free {
            let mut at = start;
            loop {
                let base = at ^ first;
                if !self.is_base[base] && children[1..].iter().all(|child| !self.is_used[base ^ usize::from(child.0)]) {
                    return base;
                }
                at = self.next[at] as usize;
                if at == start {
                    break;
                }
            }
        }
        self.grow();
        self.units.len() - BLOCK
    }

    fn finish(mut self) -> Vec<Unit> {
        let blocks = self.units.len() / BLOCK;
        for block in blocks.saturating_sub(OPEN).max(1)..blocks {
            self.close(block);
        }
        self.units
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(trie: &Trie, text: &[u8]) -> Vec<(usize, u32)> {
        let mut found = Vec::new();
        trie.prefixes(text, |len, token| found.push((len, token)));
        found
    }

    #[test]
    fn it_finds_all_prefixes_that_are_keys_and_no_others() {
        let mut state = 1u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        for round in 0..60 {
            let (count, letters, longest) = (1 + random(1 << (round % 12)), 1 + random(256), 1 + random(8));
            let mut keys: Vec<Vec<u8>> =
                (0..count).map(|_| (0..1 + random(longest)).map(|_| random(letters) as u8).collect()).collect();
            keys.sort();
            keys.dedup();
            let rows: Vec<(&[u8], u32)> = keys.iter().enumerate().map(|(i, key)| (&**key, i as u32)).collect();
            let trie = Trie::new(&rows).unwrap();
            for _ in 0..500 {
                let text: Vec<u8> = if random(2) == 0 {
                    (0..random(12)).map(|_| random(letters) as u8).collect()
                } else {
                    [&*keys[random(keys.len() as u64) as usize], &[random(256) as u8]].concat()
                };
                let slow: Vec<_> = (1..=text.len())
                    .filter_map(|len| {
                        keys.binary_search_by(|key| (**key).cmp(&text[..len])).ok().map(|i| (len, i as u32))
                    })
                    .collect();
                assert_eq!(find(&trie, &text), slow);
            }
        }
        assert!(find(&Trie::new(&[]).unwrap(), b"a\0b").is_empty());
    }
}
