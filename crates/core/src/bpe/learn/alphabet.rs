//! What pieces are made of before the first merge: bytes, or characters.

use std::collections::BTreeMap;
use std::sync::Arc;

/// What pieces are made of before the first merge.
pub trait Alphabet {
    /// The spelling of each symbol; its place is its id.
    fn symbols(&self) -> Vec<Arc<[u8]>>;

    /// Appends the symbols of a piece, at most one a byte; none for a piece to be left out.
    fn push_symbols(&self, piece: &[u8], out: &mut Vec<u32>);

    /// Whether it is that of all bytes, whatever the pieces are.
    fn is_bytes(&self) -> bool {
        false
    }
}

/// The bytes: `byte_ids[b]` for the byte `b`.
impl Alphabet for [u32; 256] {
    fn symbols(&self) -> Vec<Arc<[u8]>> {
        let mut symbols: Vec<Arc<[u8]>> = vec![Arc::from([]); 256];
        for byte in 0..=255u8 {
            symbols[self[byte as usize] as usize] = Arc::from([byte]);
        }
        symbols
    }

    fn push_symbols(&self, piece: &[u8], out: &mut Vec<u32>) {
        out.extend(piece.iter().map(|&byte| self[byte as usize]));
    }

    fn is_bytes(&self) -> bool {
        true
    }
}

/// The characters of some pieces, by code point; the last of a piece with the end-of-word marker behind it. Pieces that
/// are not well-formed are left out.
pub struct Characters {
    ids: BTreeMap<Vec<u8>, u32>,
    end_of_word: Vec<u8>,
}

impl Characters {
    pub fn new<'p>(pieces: impl Iterator<Item = &'p [u8]>, end_of_word: Vec<u8>) -> Self {
        let mut ids = BTreeMap::new();
        for piece in pieces {
            spell(piece, &end_of_word, |symbol| {
                if !ids.contains_key(symbol) {
                    ids.insert(symbol.to_vec(), 0);
                }
            });
        }
        ids.values_mut().zip(0..).for_each(|(id, number)| *id = number);
        Self { ids, end_of_word }
    }
}

impl Alphabet for Characters {
    fn symbols(&self) -> Vec<Arc<[u8]>> {
        self.ids.keys().map(|symbol| Arc::from(&**symbol)).collect()
    }

    fn push_symbols(&self, piece: &[u8], out: &mut Vec<u32>) {
        spell(piece, &self.end_of_word, |symbol| out.extend(self.ids.get(symbol)));
    }
}

/// Tells `take` the spelling of each symbol of a piece.
fn spell(piece: &[u8], end_of_word: &[u8], mut take: impl FnMut(&[u8])) {
    let Ok(text) = std::str::from_utf8(piece) else { return };
    for (at, c) in text.char_indices() {
        match &piece[at..] {
            last if last.len() == c.len_utf8() => take(&[last, end_of_word].concat()),
            rest => take(&rest[..c.len_utf8()]),
        }
    }
}
