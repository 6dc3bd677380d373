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
                false => {
                    check_last_bytes(vocab, &end_of_word)?;
                    Ok(Some(Self { by_characters, end_of_word, unk: 0 }))
                }
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
        let mut pos = 0;
        while pos < piece.len() {
            let end = pos + if self.by_characters { char_len(piece, pos) } else { 1 };
            let token = if end == piece.len() && !self.end_of_word.is_empty() {
                vocab.find(&[&piece[pos..], &self.end_of_word].concat())
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

    /// In words, for `plan()`.
    pub fn describe(&self) -> String {
        let units = if self.by_characters { "characters" } else { "bytes" };
        match self.end_of_word.is_empty() {
            true => units.to_owned(),
            false => format!("{units}, the last marked {}", show(&self.end_of_word)),
        }
    }
}

fn check_last_bytes(vocab: &Vocab, end_of_word: &[u8]) -> Result<()> {
    let missing = (0..=255u8).find(|&byte| vocab.find(&[&[byte], end_of_word].concat()).is_none());
    match missing {
        Some(byte) => Err(Error::format(format!(
            "each byte needs an entry with the end-of-word marker {} behind it; 0x{byte:02x} has none",
            show(end_of_word)
        ))),
        None => Ok(()),
    }
}
