//! Distinct pieces with their counts: what merges are learned from.

use crate::bpe::learn::{learn, Alphabet, Characters, Learned, Marks, Progress, TieRule};
use crate::error::{Error, Result};
use crate::lost::Lost;

#[derive(Default)]
pub struct Pieces {
    data: Vec<u8>,
    ends: Vec<usize>,
    counts: Vec<u64>,
    /// Where each was first met; none where nothing asks for that.
    firsts: Vec<u64>,
    total: u64,
    pub lost: Option<Lost>,
}

impl Pieces {
    /// Adds a piece that is not there yet.
    pub fn add(&mut self, piece: &[u8], count: u64, first: Option<u64>) -> Result<()> {
        let total = self.total.checked_add(count);
        self.total = total.ok_or_else(|| Error::value("there are more than 2^64 pieces: lower the weights"))?;
        self.data.extend_from_slice(piece);
        self.ends.push(self.data.len());
        self.counts.push(count);
        self.firsts.extend(first);
        Ok(())
    }

    /// Leaves a piece out, and keeps what could be wrong for that.
    pub fn leave_out(&mut self, piece: &[u8], count: u64) {
        self.lost.get_or_insert_default().add(piece, count);
    }

    pub fn distinct(&self) -> usize {
        self.ends.len()
    }

    /// The number of pieces, each as often as it was counted.
    pub fn total(&self) -> u64 {
        self.total
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.data[start..end])
    }

    /// Pieces and counts: in the order in which the pieces were first met, where that is known.
    pub fn items(&self) -> Vec<(&[u8], u64)> {
        let mut items: Vec<(&[u8], u64)> = self.iter().zip(self.counts.iter().copied()).collect();
        if self.firsts.len() == items.len() {
            let mut order: Vec<u32> = (0..items.len() as u32).collect();
            order.sort_by_key(|&at| self.firsts[at as usize]);
            items = order.into_iter().map(|at| items[at as usize]).collect();
        }
        items
    }

    /// The characters of the pieces, as an alphabet to learn with.
    pub fn characters(&self, end_of_word: &[u8]) -> Characters {
        Characters::new(self.iter(), Marks { end_of_word: end_of_word.to_vec(), ..Marks::default() })
    }

    /// The same with `prefix` in front of all characters but the first of a piece.
    pub fn characters_of_words(&self, prefix: &[u8]) -> Characters {
        Characters::new(self.iter(), Marks { prefix: prefix.to_vec(), ..Marks::default() })
    }

    /// Merges by likelihood, see `wordpiece::learn`.
    pub fn learn_by_likelihood(
        &self,
        limit: usize,
        alphabet: &impl Alphabet,
        tie_rule: TieRule,
        progress: Progress<'_>,
    ) -> Result<Learned> {
        crate::wordpiece::learn::learn(&self.items(), limit, alphabet, tie_rule, progress)
    }

    /// What was left out is looked at only where tokens are spelled as they stand in pieces: without end-of-word markers.
    pub fn learn_bpe(
        &self,
        limit: usize,
        alphabet: &impl Alphabet,
        tie_rule: TieRule,
        progress: Progress<'_>,
    ) -> Result<Learned> {
        let lost = self.lost.as_ref().filter(|_| alphabet.is_bytes());
        learn(&self.items(), limit, alphabet, tie_rule, lost, progress)
    }
}
