//! Bytes encoded by longest matches, where every entry encodes to itself and ranks after its parts.
//!
//! The encoding is the only row of entries that spells the bytes and in which any two neighbours may stand side by side
//! (see [`windows`](super::windows)). In most places the next of them is the longest entry that matches there; where it
//! may not stand behind the one before, a shorter one does; and where none does, the one before was wrong and is taken
//! back. What leads up to a place is the same row however it was come to, so a place that was a dead end once always
//! is, and each is tried once.
//!
//! After H. van Antwerpen and A. Neubeck, "So many tokens, so little time" (GitHub, 2024): their backtracking encoder.

use super::trie::Trie;
use super::{Bpe, Made};
use crate::vocab::Token;

/// Room to work in.
#[derive(Default)]
pub struct Matching {
    /// A bit for each place from which the bytes cannot be completed.
    dead: Vec<u64>,
    /// Entries that match at a place, the shortest first, with their lengths.
    found: Vec<(usize, Token)>,
}

impl Matching {
    /// Appends the tokens of some bytes. Every byte must have an entry.
    pub fn encode(&mut self, bpe: &Bpe, entries: &[Made], trie: &Trie, bytes: &[u8], out: &mut Vec<Token>) {
        let Self { dead, found } = self;
        dead.clear();
        dead.resize(bytes.len() / 64 + 1, 0);
        let first = out.len();
        let (mut pos, mut below) = (0, usize::MAX);
        while pos < bytes.len() {
            found.clear();
            trie.walk(&bpe.vocab, bytes[pos..].iter().copied(), |len, token| found.push((len, token)));
            let before = out[first..].last().copied();
            let fits = |&(len, token): &(usize, Token)| {
                let end = pos + len;
                len < below
                    && dead[end / 64] >> (end % 64) & 1 == 0
                    && before.is_none_or(|before| bpe.compatible(entries, before, token))
            };
            if let Some(&(len, token)) = found.iter().rev().find(|found| fits(found)) {
                out.push(token);
                pos += len;
                below = usize::MAX;
            } else {
                dead[pos / 64] |= 1 << (pos % 64);
                // The first byte alone can always be completed, so there is one before.
                let Some(before) = before else { return };
                out.pop();
                below = entries[before as usize].len as usize;
                pos -= below;
            }
        }
    }
}
