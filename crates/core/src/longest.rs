//! Longest match: from the start of a piece, the longest entry that stands there, and again behind it. Every byte is an
//! entry, so there always is one. RWKV's tokenizers are such.
//!
//! It is WordPiece with entries that start a word and continue it alike, so one pass of its automaton does it.

use crate::error::{Error, Result};
use crate::vocab::{Token, Vocab};
use crate::wordpiece::Automaton;

pub struct LongestMatch {
    pub vocab: Vocab,
    automaton: Automaton,
}

impl LongestMatch {
    /// Every byte must be an entry.
    pub fn new(vocab: Vocab) -> Result<Self> {
        if let Some(byte) = (0..=255).find(|&byte: &u8| vocab.find(&[byte]).is_none()) {
            return Err(Error::format(format!("no entry for the byte {byte:#04x}, so it could not be encoded")));
        }
        let automaton = Automaton::new(&vocab, b"", usize::MAX)?;
        Ok(Self { vocab, automaton })
    }

    /// Appends the tokens of a piece.
    pub fn encode(&self, piece: &[u8], out: &mut Vec<Token>) {
        if !piece.is_empty() {
            self.automaton.run(piece, out);
        }
    }

    /// Rows of what `plan()` shows: step, how, why.
    pub fn plan(&self) -> Vec<(String, String, String)> {
        let how = "the longest entry again and again, in one pass over its bytes";
        let why = format!("{} nodes of tries hold what each walk that ends there is cut into", self.automaton.len());
        vec![("piece".to_owned(), how.to_owned(), why)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;

    #[test]
    fn it_gives_what_the_definition_gives() {
        let entries = ["ab", "abc", "abcabd", "bd", "aaa", "ca", "caaaab", "é"];
        let (mut data, mut offsets): (Vec<u8>, Vec<u64>) = ((0..=255).collect(), (0..=256).collect());
        for entry in entries {
            data.extend_from_slice(entry.as_bytes());
            offsets.push(data.len() as u64);
        }
        let ids = (1..offsets.len() as u32).collect();
        let vocab = Vocab::new(data, &offsets, ids).expect("a sound vocabulary");
        let model = Model::LongestMatch(LongestMatch::new(vocab).expect("a sound model"));
        let mut state = 7u64;
        for _ in 0..2000 {
            let mut piece = Vec::new();
            for _ in 0..state % 23 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                piece.push(b"aaabbbcd\xc3\xa9"[(state >> 33) as usize % 10]);
            }
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (mut wanted, mut at) = (Vec::new(), 0);
            while at < piece.len() {
                let longest = (at + 1..=piece.len()).rev().find_map(|end| model.vocab().find(&piece[at..end]));
                wanted.push(longest.expect("each byte is an entry"));
                at += model.vocab().piece_len(*wanted.last().expect("one"));
            }
            let (mut tokens, mut ends) = (Vec::new(), Vec::new());
            model.encode_with_ends(&piece, &mut tokens, &mut ends);
            assert_eq!(tokens, wanted, "{}", piece.escape_ascii());
            assert_eq!(ends.last().copied().unwrap_or(0), piece.len());
        }
    }

    #[test]
    fn a_vocabulary_without_a_byte_is_refused() {
        let vocab = Vocab::new(b"ab".to_vec(), &[0, 1, 2], vec![0, 1]).expect("a sound vocabulary");
        assert!(LongestMatch::new(vocab).is_err());
    }
}
