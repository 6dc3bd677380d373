//! What a piece starts as where that is not just its bytes: characters, or units of which the last is marked.
//!
//! The entry of a piece's last unit is spelled with the end-of-word marker behind it (`t</w>`), so an entry says whether
//! it ends a piece. The entries of a piece spell the piece and the marker, but for unknown characters.

use crate::error::{Error, Result};
use crate::unicode::char_len;
use crate::vocab::{show, Token, Vocab};

/// How a spec describes it.
pub struct UnitRow {
    pub by_characters: bool,
    pub end_of_word: Vec<u8>,
    /// The id that stands for characters without an entry.
    pub unk: Option<u32>,
}

pub struct Units {
    by_characters: bool,
    end_of_word: Vec<u8>,
    unk: Token,
}

impl Units {
    /// None for plain bytes.
    pub fn new(row: UnitRow, vocab: &Vocab, merges: &[(u32, u32)]) -> Result<Option<Self>> {
        let UnitRow { by_characters, end_of_word, unk } = row;
        let Some(id) = unk else {
            return match by_characters {
                true => Err(Error::format("a vocabulary of characters needs a token for those it lacks: give `unk`")),
                false if end_of_word.is_empty() => Ok(None),
                false => Ok(Some(Self { by_characters, end_of_word, unk: 0 })),
            };
        };
        if !by_characters {
            return Err(Error::format("a vocabulary of bytes has no unknown characters: leave `unk` out"));
        }
        let unk = vocab.token_of_id(id).ok_or_else(|| Error::format(format!("`unk`: no entry has the id {id}")))?;
        if merges.iter().any(|&(left, right)| left == id || right == id) {
            return Err(Error::format(format!("merges join the unknown token, {}", show(vocab.piece(unk)))));
        }
        Ok(Some(Self { by_characters, end_of_word, unk }))
    }

    /// Appends the tokens that a piece starts as.
    pub fn push_first(&self, vocab: &Vocab, byte_tokens: &[Token; 256], piece: &[u8], out: &mut Vec<Token>) {
        self.push(vocab, byte_tokens, piece, &self.end_of_word, out);
    }

    /// What a piece of which `token` would be all, or the start, starts as.
    pub fn of_entry(&self, vocab: &Vocab, byte_tokens: &[Token; 256], token: Token) -> Vec<Token> {
        let (mut out, entry) = (Vec::new(), vocab.piece(token));
        match entry.strip_suffix(&*self.end_of_word) {
            Some(piece) if !self.end_of_word.is_empty() => self.push_first(vocab, byte_tokens, piece, &mut out),
            _ => self.push(vocab, byte_tokens, entry, &[], &mut out),
        }
        out
    }

    fn push(&self, vocab: &Vocab, byte_tokens: &[Token; 256], piece: &[u8], marker: &[u8], out: &mut Vec<Token>) {
        let mut pos = 0;
        while pos < piece.len() {
            let end = pos + if self.by_characters { char_len(piece, pos) } else { 1 };
            let token = if end == piece.len() && !marker.is_empty() {
                vocab.find(&[&piece[pos..], marker].concat())
            } else if self.by_characters {
                vocab.find(&piece[pos..end])
            } else {
                Some(byte_tokens[piece[pos] as usize])
            };
            out.push(token.unwrap_or(self.unk));
            pos = end;
        }
    }

    /// The bytes of text that `token` covers at `pos` in a piece, where it is not the last.
    pub fn covers(&self, vocab: &Vocab, token: Token, piece: &[u8], pos: usize) -> usize {
        if self.by_characters && token == self.unk {
            char_len(piece, pos)
        } else {
            vocab.piece_len(token)
        }
    }

    pub fn unk(&self) -> Option<Token> {
        self.by_characters.then_some(self.unk)
    }

    pub fn end_of_word(&self) -> &[u8] {
        &self.end_of_word
    }

    /// In words, for `plan()`.
    pub fn describe(&self) -> String {
        let units = if self.by_characters { "characters" } else { "bytes" };
        match self.end_of_word.is_empty() {
            true => units.to_owned(),
            false => format!("{units}, the last marked {}", show(&self.end_of_word)),
        }
    }
}
