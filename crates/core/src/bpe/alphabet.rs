//! What pieces are made of before the first merge is learned.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Stands for what an alphabet lacks. Nothing merges with it.
pub const HOLE: u32 = u32::MAX;

pub trait Alphabet {
    /// The spelling of each symbol; its place is its id.
    fn symbols(&self) -> Vec<Arc<[u8]>>;

    /// Appends the symbols of a piece, at most one a byte; none for a piece to be left out.
    fn push_symbols(&self, piece: &[u8], out: &mut Vec<u32>);

    /// Whether it is that of all bytes, whatever the pieces are.
    fn is_bytes(&self) -> bool {
        false
    }

    /// The last symbols, if they have no entry before a merge needs them, and the pairs they are made of then.
    fn late(&self) -> BTreeMap<u32, (u32, u32)> {
        BTreeMap::new()
    }

    /// Whether a token may be made of what these two spell.
    fn allows(&self, _left: &[u8], _right: &[u8]) -> bool {
        true
    }

    /// What stands in front of all symbols but the first of a piece, and not twice in what they make.
    fn prefix(&self) -> &[u8] {
        &[]
    }

    /// How many bytes of a token are no text.
    fn marker_len(&self, _token: &[u8]) -> usize {
        0
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

/// The bytes, where tokens of several hold whole characters. So a character of three or four bytes starts as two
/// symbols, its beginning and its last byte, which become one token or stay apart. What it takes to make a beginning of
/// bytes is learned with the first character that needs it, and so no beginning is an entry without such a character.
pub struct WholeCharacters {
    byte_ids: [u32; 256],
    beginnings: BTreeMap<Vec<u8>, u32>,
}

impl WholeCharacters {
    pub fn new<'p>(byte_ids: [u32; 256], pieces: impl Iterator<Item = &'p [u8]>) -> Self {
        let mut found = BTreeSet::new();
        for chunk in pieces.flat_map(<[u8]>::utf8_chunks) {
            for c in chunk.valid().chars().filter(|c| c.len_utf8() > 2) {
                let bytes = c.encode_utf8(&mut [0; 4]).as_bytes().to_vec();
                if !found.contains(&bytes[..bytes.len() - 1]) {
                    found.extend((2..bytes.len()).map(|len| bytes[..len].to_vec()));
                }
            }
        }
        Self { byte_ids, beginnings: found.into_iter().zip(256..).collect() }
    }
}

impl Alphabet for WholeCharacters {
    fn symbols(&self) -> Vec<Arc<[u8]>> {
        let beginnings = self.beginnings.keys().map(|bytes| Arc::from(&**bytes));
        self.byte_ids.symbols().into_iter().chain(beginnings).collect()
    }

    fn push_symbols(&self, piece: &[u8], out: &mut Vec<u32>) {
        for chunk in piece.utf8_chunks() {
            let text = chunk.valid();
            for (at, c) in text.char_indices() {
                let character = &text.as_bytes()[at..at + c.len_utf8()];
                match self.beginnings.get(&character[..character.len() - 1]) {
                    Some(&beginning) => out.extend([beginning, self.byte_ids[character[character.len() - 1] as usize]]),
                    None => self.byte_ids.push_symbols(character, out),
                }
            }
            self.byte_ids.push_symbols(chunk.invalid(), out);
        }
    }

    fn late(&self) -> BTreeMap<u32, (u32, u32)> {
        let byte = |byte: u8| self.byte_ids[byte as usize];
        let pair = |bytes: &[u8]| match bytes {
            [first, last] => (byte(*first), byte(*last)),
            [shorter @ .., last] => (self.beginnings[shorter], byte(*last)),
            [] => (HOLE, HOLE),
        };
        self.beginnings.iter().map(|(bytes, &id)| (id, pair(bytes))).collect()
    }

    fn allows(&self, left: &[u8], right: &[u8]) -> bool {
        let is_text = |bytes: &[u8]| std::str::from_utf8(bytes).is_ok();
        match (is_text(left), is_text(right)) {
            (true, true) => true,
            (false, false) => is_text(&[left, right].concat()),
            _ => false,
        }
    }
}

/// Characters, by code point; the last of a piece with the end-of-word marker behind it. Pieces that are not well-formed
/// are left out.
pub struct Characters {
    ids: BTreeMap<Vec<u8>, u32>,
    end_of_word: Vec<u8>,
}

impl Characters {
    /// The characters of the pieces and of those in `initial`. Beyond `most`, the rarer ones are left out, and of equals
    /// those with the larger code points; never one of `initial`.
    pub fn new<'p>(
        pieces: impl Iterator<Item = (&'p [u8], u64)> + Clone,
        end_of_word: Vec<u8>,
        most: Option<usize>,
        initial: &'p [Vec<u8>],
    ) -> Self {
        let pieces = pieces.map(|(piece, count)| (piece, u128::from(count)));
        let pieces = pieces.chain(initial.iter().map(|piece| (&**piece, 1 << 100)));
        let kept = most.map(|most| {
            let mut counts = BTreeMap::<char, u128>::new();
            for (piece, count) in pieces.clone() {
                for c in std::str::from_utf8(piece).unwrap_or_default().chars() {
                    *counts.entry(c).or_default() += count;
                }
            }
            let mut counted: Vec<(char, u128)> = counts.into_iter().collect();
            counted.sort_unstable_by_key(|&(c, count)| (Reverse(count), c));
            counted.into_iter().take(most).map(|(c, _)| c).collect::<BTreeSet<char>>()
        });
        let mut ids = BTreeMap::new();
        for (piece, _) in pieces {
            spell(piece, &end_of_word, |c, symbol| {
                if kept.as_ref().is_none_or(|kept| kept.contains(&c)) && !ids.contains_key(symbol) {
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
        spell(piece, &self.end_of_word, |_, symbol| out.push(self.ids.get(symbol).copied().unwrap_or(HOLE)));
    }

    fn marker_len(&self, token: &[u8]) -> usize {
        if token.ends_with(&self.end_of_word) {
            self.end_of_word.len()
        } else {
            0
        }
    }
}

/// Tells `take` each character of a piece, and the spelling of its symbol.
fn spell(piece: &[u8], end_of_word: &[u8], mut take: impl FnMut(char, &[u8])) {
    let Ok(text) = std::str::from_utf8(piece) else { return };
    for (at, c) in text.char_indices() {
        match &piece[at..] {
            last if last.len() == c.len_utf8() => take(c, &[last, end_of_word].concat()),
            rest => take(c, &rest[..c.len_utf8()]),
        }
    }
}
