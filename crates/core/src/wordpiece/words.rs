//! What pieces are made of before the first merge of a WordPiece is learned.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::bpe::alphabet::Alphabet;

/// Characters, by their spelling: all but the first of a piece with the prefix in front. Pieces that are not well-formed
/// are left out.
pub struct Words {
    ids: BTreeMap<Vec<u8>, u32>,
    prefix: Vec<u8>,
}

impl Words {
    pub fn new<'p>(pieces: impl Iterator<Item = &'p [u8]>, prefix: Vec<u8>) -> Self {
        let mut ids = BTreeMap::new();
        for piece in pieces {
            spell(piece, &prefix, |symbol| {
                if !ids.contains_key(symbol) {
                    ids.insert(symbol.to_vec(), 0);
                }
            });
        }
        ids.values_mut().zip(0..).for_each(|(id, number)| *id = number);
        Self { ids, prefix }
    }
}

impl Alphabet for Words {
    fn symbols(&self) -> Vec<Arc<[u8]>> {
        self.ids.keys().map(|symbol| Arc::from(&**symbol)).collect()
    }

    fn push_symbols(&self, piece: &[u8], out: &mut Vec<u32>) {
        spell(piece, &self.prefix, |symbol| out.extend(self.ids.get(symbol)));
    }

    fn prefix(&self) -> &[u8] {
        &self.prefix
    }
}

/// Tells `take` the spelling of each symbol of a piece.
fn spell(piece: &[u8], prefix: &[u8], mut take: impl FnMut(&[u8])) {
    let Ok(text) = std::str::from_utf8(piece) else { return };
    for (at, c) in text.char_indices() {
        let character = &piece[at..at + c.len_utf8()];
        match at {
            0 => take(character),
            _ => take(&[prefix, character].concat()),
        }
    }
}
