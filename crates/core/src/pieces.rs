//! Distinct pieces with their counts: what merges are learned from.

use crate::bpe::alphabet::{Alphabet, Characters, WholeCharacters};
use crate::bpe::learn::{learn, Learned, Options, Progress, TieRule};
use crate::error::{Error, Result};
use crate::hash::{checksum, mix};
use crate::lost::Lost;
use crate::wordpiece::words::Words;

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

    /// A number that tells all that learning looks at from that of other pieces. Against accidents, not against attacks.
    pub fn fingerprint(&self) -> u64 {
        let ends = self.ends.iter().map(|&end| end as u64);
        let lost = self.lost.iter().flat_map(|lost| [lost.pieces, lost.count]);
        let numbers = ends.chain(self.counts.iter().copied()).chain(self.firsts.iter().copied()).chain(lost);
        numbers.fold(checksum(&self.data), mix)
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> + Clone {
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

    /// The characters of the pieces, as an alphabet to learn with; see `Characters::new`.
    pub fn characters(&self, end_of_word: &str, most: Option<usize>, initial: &[Vec<u8>]) -> Characters {
        Characters::new(self.iter().zip(self.counts.iter().copied()), end_of_word.into(), most, initial)
    }

    /// The bytes, as an alphabet to learn whole characters with.
    pub fn whole_characters(&self, byte_ids: [u32; 256], initial: &[Vec<u8>]) -> WholeCharacters {
        WholeCharacters::new(byte_ids, self.iter().chain(initial.iter().map(|piece| &**piece)))
    }

    /// The characters of the pieces, as an alphabet to learn a WordPiece with.
    pub fn words(&self, prefix: &str) -> Words {
        Words::new(self.iter(), prefix.into())
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

    /// What was left out is looked at only where its pieces start as the same symbols whatever the pieces here are.
    pub fn learn_bpe(
        &self,
        limit: usize,
        alphabet: &impl Alphabet,
        options: &Options<'_>,
        start: &Learned,
        progress: Progress<'_>,
    ) -> Result<Learned> {
        let lost = self.lost.as_ref().filter(|_| alphabet.is_bytes());
        learn(self.items(), limit, alphabet, options, lost, start, progress)
    }
}
