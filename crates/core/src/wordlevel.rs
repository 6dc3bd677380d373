//! Word level: a piece is an entry as a whole, or unknown as a whole.

use crate::error::{Error, Result};
use crate::vocab::{show, Token, Vocab};

pub struct WordLevel {
    pub vocab: Vocab,
    unk: Token,
}

impl WordLevel {
    /// `unk` is the id of the entry for what is unknown.
    pub fn new(vocab: Vocab, unk: u32) -> Result<Self> {
        let unk = vocab.token_of_id(unk).ok_or_else(|| Error::format(format!("`unk`: no entry has the id {unk}")))?;
        Ok(Self { vocab, unk })
    }

    /// Appends the token of a piece.
    #[inline]
    pub fn encode(&self, piece: &[u8], out: &mut Vec<Token>) {
        if !piece.is_empty() {
            out.push(self.vocab.find(piece).unwrap_or(self.unk));
        }
    }

    /// Rows of what `plan()` shows: step, how, why.
    pub fn plan(&self) -> Vec<(String, String, String)> {
        let unk = show(self.vocab.piece(self.unk));
        vec![("piece".to_owned(), "looked up as a whole".to_owned(), format!("what is no entry is {unk}"))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;

    #[test]
    fn a_piece_is_one_token_that_covers_it() {
        let vocab = || Vocab::new(b"<unk>ab##c".to_vec(), &[0, 5, 6, 7, 10], vec![0, 1, 2, 5]).expect("sound");
        let model = Model::WordLevel(WordLevel::new(vocab(), 0).expect("sound"));
        for (piece, token) in [(&b"a"[..], 1), (b"b", 2), (b"##c", 3), (b"ab", 0), (b"a##c", 0), (b"\xff", 0)] {
            let (mut tokens, mut ends) = (Vec::new(), Vec::new());
            model.encode_with_ends(piece, &mut tokens, &mut ends);
            assert_eq!((tokens, ends), (vec![token], vec![piece.len()]));
        }
        let mut tokens = Vec::new();
        model.encode(b"", &mut tokens);
        assert!(tokens.is_empty());
        assert!(WordLevel::new(vocab(), 3).is_err());
    }
}
