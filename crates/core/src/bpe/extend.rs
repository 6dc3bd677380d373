//! Learning on from a model: its entries are the symbols, and a piece starts as what the model makes of it.

use std::collections::HashSet;
use std::sync::Arc;

use super::alphabet::Alphabet;
use super::Bpe;
use crate::vocab::Token;

/// The entries of a model, by their tokens.
///
/// If every new rule comes after all of the model's own, encoding with old and new gives what learning saw. Where two
/// tokens stand side by side, what they spell, alone, encodes to just these two. So a merge that is learned makes bytes
/// that were no token before, and no other merge ever makes them; nor can what it makes be a part of an old rule, as
/// long as what it makes is no entry: that is what `allows` sees to.
pub struct Entries<'a> {
    model: &'a Bpe,
    /// What no new token may spell, besides the entries.
    taken: HashSet<Vec<u8>>,
}

impl<'a> Entries<'a> {
    pub fn new(model: &'a Bpe, taken: Vec<Vec<u8>>) -> Self {
        Self { model, taken: taken.into_iter().collect() }
    }
}

impl Alphabet for Entries<'_> {
    fn symbols(&self) -> Vec<Arc<[u8]>> {
        let vocab = &self.model.vocab;
        (0..vocab.len() as Token).map(|token| Arc::from(vocab.piece(token))).collect()
    }

    /// Pieces with a byte or a character that has no entry are left out.
    fn push_symbols(&self, piece: &[u8], out: &mut Vec<u32>) {
        let start = out.len();
        if self.model.check(piece).is_ok() {
            self.model.encode(piece, out);
        }
        if self.model.unk().is_some_and(|unk| out[start..].contains(&unk)) {
            out.truncate(start);
        }
    }

    fn allows(&self, left: &[u8], right: &[u8]) -> bool {
        let joined = [left, right].concat();
        self.model.vocab.find(&joined).is_none() && !self.taken.contains(&joined)
    }
}
