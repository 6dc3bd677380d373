//! The entries of a model, packed: bytes of an entry by its index, index by bytes, id by index.
//!
//! Inside the core an entry is named by its index in order of ids (a `Token`); ids appear only at the edges.

use crate::error::{Error, Result};
use crate::hash::{hash, IndexTable};
use crate::memory::prefetch;

/// The index of an entry.
pub type Token = u32;

pub struct Vocab {
    data: Vec<u8>,
    offsets: Vec<u32>,
    ids: Vec<u32>,
    table: IndexTable,
}

/// So many entries are put into the table together, after the memory for all was read ahead.
const BATCH: usize = 64;

/// Shows bytes to a user: as text where they are text, with escapes elsewhere; of very many only the start.
pub fn show(bytes: &[u8]) -> String {
    const MOST: usize = 64;
    if bytes.len() > MOST {
        return format!("{}… ({} bytes)", show(&bytes[..MOST / 2]), bytes.len());
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => format!("{text:?}"),
        Err(_) => format!("b\"{}\"", bytes.escape_ascii()),
    }
}

impl Vocab {
    /// Packed entries as `Spec` has them: entry `i` is `data[offsets[i]..offsets[i + 1]]`, ids rise.
    pub fn new(data: Vec<u8>, offsets: &[u64], ids: Vec<u32>) -> Result<Self> {
        let ends_at_data = offsets.first() == Some(&0) && offsets.last() == Some(&(data.len() as u64));
        if offsets.len() != ids.len() + 1 || !ends_at_data || offsets.windows(2).any(|w| w[0] > w[1]) {
            return Err(Error::format("the vocabulary's offsets do not fit its data"));
        }
        if ids.len() >= u32::MAX as usize / 4 || data.len() > u32::MAX as usize {
            return Err(Error::format(format!(
                "a vocabulary of {} entries and {} bytes is too large",
                ids.len(),
                data.len()
            )));
        }
        if let Some(pair) = ids.windows(2).find(|w| w[0] >= w[1]) {
            return Err(Error::format(format!("the id {} is given to two entries or out of order", pair[1])));
        }
        let offsets = offsets.iter().map(|&offset| offset as u32).collect();
        let mut table = IndexTable::with_capacity(ids.len());
        let vocab = Self { table: IndexTable::default(), data, offsets, ids };
        let mut hashes = Vec::with_capacity(BATCH);
        for start in (0..vocab.len() as Token).step_by(BATCH) {
            let tokens = start..(start + BATCH as Token).min(vocab.len() as Token);
            hashes.clear();
            hashes.extend(tokens.clone().map(|token| hash(vocab.piece(token))));
            hashes.iter().for_each(|&hash| table.prefetch(hash));
            for (token, &hash) in tokens.zip(&hashes) {
                let piece = vocab.piece(token);
                if piece.is_empty() {
                    return Err(Error::format(format!("the entry with id {} is empty", vocab.id(token))));
                }
                if let Some(first) = table.find_or_add(hash, token, |other| vocab.piece(other) == piece) {
                    return Err(Error::format(format!(
                        "{} is an entry twice, with the ids {} and {}",
                        show(piece),
                        vocab.id(first),
                        vocab.id(token)
                    )));
                }
            }
        }
        Ok(Self { table, ..vocab })
    }

    /// The bytes of all entries, one after the other, and their ids.
    pub fn packed(&self) -> (&[u8], &[u32]) {
        (&self.data, &self.ids)
    }

    pub fn len(&self) -> usize {
        self.ids.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    #[inline]
    pub fn piece(&self, token: Token) -> &[u8] {
        &self.data[self.offsets[token as usize] as usize..self.offsets[token as usize + 1] as usize]
    }

    #[inline]
    pub fn piece_len(&self, token: Token) -> usize {
        (self.offsets[token as usize + 1] - self.offsets[token as usize]) as usize
    }

    #[inline]
    pub fn id(&self, token: Token) -> u32 {
        self.ids[token as usize]
    }

    #[inline]
    pub fn find(&self, piece: &[u8]) -> Option<Token> {
        self.table.find(hash(piece), |token| self.piece(token) == piece)
    }

    /// A hint that a piece will be looked for soon: what may be the same is on its way from memory.
    #[inline]
    pub fn prepare(&self, piece: &[u8]) {
        if let Some(token) = self.table.first(hash(piece)) {
            prefetch(&self.data, self.offsets[token as usize] as usize);
        }
    }

    /// What `find` gives, a little faster where it is `last` or the entry after that, as it mostly is for what the merges
    /// of a list make.
    #[inline]
    pub fn find_near(&self, piece: &[u8], last: Token) -> Option<Token> {
        let is = |&token: &Token| (token as usize) < self.len() && self.piece(token) == piece;
        [last + 1, last].into_iter().find(is).or_else(|| self.find(piece))
    }

    /// Appends what `find` gives for each of several pieces, few enough that what is read ahead for all stays at hand.
    pub fn find_all<'p>(&self, pieces: impl Iterator<Item = &'p [u8]>, found: &mut Vec<Option<Token>>) {
        let mut hashed: Vec<(&[u8], u64)> = Vec::with_capacity(pieces.size_hint().0);
        hashed.extend(pieces.map(|piece| (piece, hash(piece))).inspect(|&(_, hash)| self.table.prefetch(hash)));
        let firsts = || hashed.iter().filter_map(|&(_, hash)| self.table.first(hash)).map(|token| token as usize);
        firsts().for_each(|token| prefetch(&self.offsets, token));
        firsts().for_each(|token| prefetch(&self.data, self.offsets[token] as usize));
        found.extend(hashed.iter().map(|&(piece, hash)| self.table.find(hash, |token| self.piece(token) == piece)));
    }

    pub fn token_of_id(&self, id: u32) -> Option<Token> {
        // Ids without holes, which most vocabularies have, are their own index.
        if self.ids.get(id as usize) == Some(&id) {
            return Some(id);
        }
        self.ids.binary_search(&id).ok().map(|at| at as Token)
    }
}
