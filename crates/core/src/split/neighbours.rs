//! Cuts between two bytes that no entry of a vocabulary has side by side: no token lies across.
//!
//! Where the tokens of a text follow from its entries alone (`LongestMatch`), they are those of the parts, so that long
//! texts can be worked on in parts though nothing splits them. In ordinary text there is such a place every few bytes.

use crate::error::Result;
use crate::unicode::is_start;
use crate::vocab::{Token, Vocab};

pub struct Neighbours {
    /// A bit for each two bytes.
    inside: Box<[u64; 1024]>,
}

impl Neighbours {
    pub fn new(vocab: &Vocab) -> Self {
        let mut inside = Box::new([0; 1024]);
        for token in 0..vocab.len() as Token {
            for pair in vocab.piece(token).windows(2) {
                let bit = usize::from(pair[0]) << 8 | usize::from(pair[1]);
                inside[bit >> 6] |= 1 << (bit & 63);
            }
        }
        Self { inside }
    }

    /// Whether there is a cut at `at`, between two characters; it depends on the bytes beside it alone.
    #[inline]
    pub fn cuts(&self, text: &[u8], at: usize) -> bool {
        let bit = usize::from(text[at - 1]) << 8 | usize::from(text[at]);
        self.inside[bit >> 6] >> (bit & 63) & 1 == 0 && is_start(text, at)
    }

    /// Gives `visit` the start and the end of each part of `text`.
    pub fn split(&self, text: &[u8], mut visit: impl FnMut(usize, usize) -> Result<()>) -> Result<()> {
        let mut start = 0;
        for at in 1..text.len() {
            if self.cuts(text, at) {
                visit(start, at)?;
                start = at;
            }
        }
        match start < text.len() {
            true => visit(start, text.len()),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_end_where_no_entry_lies_across() {
        let vocab = Vocab::new(b"abbc\xc3\xa9".to_vec(), &[0, 2, 4, 6], vec![0, 1, 2]).expect("a sound vocabulary");
        let neighbours = Neighbours::new(&vocab);
        let mut parts = Vec::new();
        let text = "abcaéééa".as_bytes();
        let visited = neighbours.split(text, |start, end| {
            parts.push(&text[start..end]);
            Ok(())
        });
        assert!(visited.is_ok());
        assert_eq!(parts, ["abc", "a", "é", "é", "é", "a"].map(str::as_bytes));
        assert!(neighbours.split(b"", |_, _| unreachable!()).is_ok());
    }
}
