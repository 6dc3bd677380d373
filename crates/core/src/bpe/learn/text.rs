//! The distinct pieces as they are merged: one array of symbols, and how often each place was counted.

use crate::error::{Error, Result};
use crate::memory::ask_for_huge_pages;

use super::Alphabet;
use crate::bpe::alphabet::HOLE;

/// Stands between pieces.
pub const BORDER: u32 = HOLE;
/// Stands where a token of several symbols was swallowed.
const GONE: u32 = u32::MAX - 1;

/// All pieces side by side. A token keeps the places of the symbols it was made of: at the first and at the last of them
/// stands its id; others mean nothing.
pub struct Text {
    symbols: Vec<u32>,
    /// Pieces behind each other that were counted equally often are a stretch: where it ends, and that count.
    ends: Vec<u32>,
    weights: Vec<u64>,
    /// How many pieces there are, and how many bytes they have, each as often as it was counted. Pieces without symbols
    /// have no bytes.
    pieces: u64,
    pub bytes: u64,
}

impl Text {
    /// `pieces` in the order in which they are to stand. Little memory goes into counts where equal ones stand together.
    pub fn new(pieces: &[(&[u8], u64)], alphabet: &impl Alphabet) -> Result<Self> {
        let places: usize = pieces.iter().map(|(piece, _)| piece.len() + 1).sum::<usize>() + 1;
        if places >= GONE as usize {
            return Err(Error::value(format!(
                "the distinct pieces hold {places} bytes; the trainer takes up to {GONE}. Train on a sample, or split \
                 the text with a pattern that gives shorter pieces"
            )));
        }
        pieces
            .iter()
            .try_fold(0u64, |sum, &(piece, count)| sum.checked_add(count.checked_mul(piece.len() as u64)?))
            .ok_or_else(|| Error::value("the counts of the pieces add up to more than 2^64 bytes"))?;
        let mut symbols = Vec::with_capacity(places);
        ask_for_huge_pages(symbols.spare_capacity_mut());
        let (mut ends, mut weights) = (Vec::new(), Vec::new());
        let (mut total, mut bytes) = (0, 0);
        symbols.push(BORDER);
        for &(piece, count) in pieces {
            if weights.last() != Some(&count) {
                ends.push(0);
                weights.push(count);
            }
            let start = symbols.len();
            alphabet.push_symbols(piece, &mut symbols);
            total += count;
            bytes += if symbols.len() > start { piece.len() as u64 * count } else { 0 };
            symbols.push(BORDER);
            if let Some(end) = ends.last_mut() {
                *end = symbols.len() as u32;
            }
        }
        Ok(Self { symbols, ends, weights, pieces: total, bytes })
    }

    /// Tells `each` the pairs of neighbours, with their place and how often it was counted.
    pub fn pairs(&self, mut each: impl FnMut((u32, u32), u32, u64)) {
        let mut start = 0;
        for (&end, &weight) in self.ends.iter().zip(&self.weights) {
            let places = start..end;
            for (pair, place) in self.symbols[start as usize..end as usize].windows(2).zip(places) {
                if pair[0] != BORDER && pair[1] != BORDER {
                    each((pair[0], pair[1]), place, weight);
                }
            }
            start = end;
        }
    }

    /// How often each token is there, and how many tokens there are, what the alphabet lacks among them.
    pub fn tokens(&self, lengths: &[u32]) -> (Vec<u64>, u64) {
        let mut used = vec![0; lengths.len()];
        let (mut place, mut stretch, mut tokens) = (1, 0, 0);
        while place < self.symbols.len() {
            let (id, weight) = (self.symbols[place], self.weight(place as u32, &mut stretch));
            tokens += weight;
            if id == BORDER {
                place += 1;
            } else {
                used[id as usize] += weight;
                place += lengths[id as usize] as usize;
            }
        }
        (used, tokens - self.pieces) // every piece has a border behind it
    }

    /// Has the memory around a place read ahead.
    #[inline]
    pub fn prefetch(&self, place: u32) {
        crate::memory::prefetch(&self.symbols, place as usize);
    }

    /// Whether the tokens `pair`, of which the left has `left_len` symbols, start at `place`. A place where a pair was once
    /// seen starts a token as long as it holds that token's id: tokens grow to the right of where they start, and what is
    /// swallowed is overwritten.
    #[inline]
    pub fn is_at(&self, (left, right): (u32, u32), left_len: u32, place: u32) -> bool {
        let place = place as usize;
        self.symbols[place] == left && self.symbols[place + left_len as usize] == right
    }

    /// Makes one token of two, the left `left_len` and both `len` symbols long, at `place`. Gives its neighbours.
    #[inline]
    pub fn join(&mut self, place: u32, left_len: u32, len: u32, new: u32) -> (u32, u32) {
        let (start, middle, end) = (place as usize, (place + left_len) as usize, (place + len) as usize);
        self.symbols[middle] = GONE;
        self.symbols[start] = new;
        self.symbols[end - 1] = new;
        (self.symbols[start - 1], self.symbols[end])
    }

    /// How often a place was counted. `stretch` is where to look first: 0, or what a call for an earlier place left.
    #[inline]
    pub fn weight(&self, place: u32, stretch: &mut usize) -> u64 {
        if self.ends[*stretch] <= place {
            self.go_on_to(place, stretch);
        }
        self.weights[*stretch]
    }

    fn go_on_to(&self, place: u32, stretch: &mut usize) {
        let mut step = 1;
        while self.ends.get(*stretch + step).is_some_and(|&end| end <= place) {
            *stretch += step;
            step *= 2;
        }
        let near = &self.ends[*stretch..self.ends.len().min(*stretch + step)];
        *stretch += near.partition_point(|&end| end <= place);
    }
}
