//! SentencePiece's models that merge nothing: each word of a text, or each character, is looked up.

use super::neighbours::characters;
use super::normalize::SPACE;
use crate::error::Result;
use crate::unigram::trie::{Trie, NONE};
use crate::unigram::Kind;
use crate::vocab::{Token, Vocab};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// From one `▁` to the next.
    Words,
    Characters,
}

pub struct Lookup {
    pub vocab: Vocab,
    unit: Unit,
    unk: Option<Token>,
    /// The user-defined entries, which are taken before characters.
    frozen: Option<Trie>,
}

impl Lookup {
    pub fn new(vocab: Vocab, kinds: &[Kind], unit: Unit) -> Result<Self> {
        let of_kind = |kind: Kind| (0..vocab.len() as Token).filter(move |&token| kinds[token as usize] == kind);
        let mut keys: Vec<(&[u8], Token)> =
            of_kind(Kind::UserDefined).map(|token| (vocab.piece(token), token)).collect();
        keys.sort_unstable();
        let is_needed = unit == Unit::Characters && !keys.is_empty();
        let frozen = if is_needed { Some(Trie::new(&keys)?) } else { None };
        Ok(Self { unk: of_kind(Kind::Unknown).next(), frozen, unit, vocab })
    }

    /// Appends the tokens of a text, each with the byte at which it ends; `NONE` for what is no entry.
    pub fn encode(&self, text: &[u8], out: &mut Vec<(Token, usize)>) {
        let mut start = 0;
        while start < text.len() {
            let end = self.unit_end(text, start);
            let found = self.vocab.find(&text[start..end]).filter(|&token| Some(token) != self.unk);
            out.push((found.unwrap_or(NONE), end));
            start = end;
        }
    }

    fn unit_end(&self, text: &[u8], start: usize) -> usize {
        let rest = &text[start..];
        match self.unit {
            Unit::Words => {
                let next = rest.windows(SPACE.len()).skip(1).position(|window| window == SPACE);
                next.map_or(text.len(), |at| start + at + 1)
            }
            Unit::Characters => {
                let mut len = characters(rest).next().map_or(1, <[u8]>::len);
                if let Some(frozen) = &self.frozen {
                    frozen.prefixes(rest, |longest, _| len = longest);
                }
                start + len
            }
        }
    }

    pub fn plan(&self) -> (&'static str, &'static str) {
        match self.unit {
            Unit::Words => ("each word is looked up", "the model has entries for whole words"),
            Unit::Characters => ("each character is looked up", "the model merges nothing"),
        }
    }
}
