//! What pieces that were left out could have added to the count of a pair.

use crate::hash::mix;

/// So many bytes on each side of a boundary are looked at.
const NEAR: usize = 3;

const CELLS: usize = 1 << 20;

/// For every boundary inside a lost piece, how often what stands around it was lost: the one to three bytes before it
/// with the one to three behind it, each in a cell. Other surroundings may share the cell, which makes a bound higher
/// and never too low.
pub struct Lost {
    pub pieces: u64,
    pub count: u64,
    cells: Vec<u64>,
}

impl Default for Lost {
    fn default() -> Self {
        Self { pieces: 0, count: 0, cells: vec![0; CELLS] }
    }
}

/// Up to three bytes and their number.
fn few(bytes: &[u8]) -> u64 {
    bytes.iter().fold(bytes.len() as u64, |few, &byte| few << 8 | u64::from(byte))
}

fn cell(before: u64, after: u64) -> usize {
    mix(before, after) as usize % CELLS
}

impl Lost {
    pub fn add(&mut self, piece: &[u8], count: u64) {
        self.pieces += 1;
        self.count = self.count.saturating_add(count);
        for at in 1..piece.len() {
            let after = |len: usize| (len <= piece.len() - at).then(|| few(&piece[at..at + len]));
            let afters = [after(1), after(2), after(3)];
            for len in 1..=NEAR.min(at) {
                let before = few(&piece[at - len..at]);
                for after in afters.into_iter().flatten() {
                    let cell = &mut self.cells[cell(before, after)];
                    *cell = cell.saturating_add(count);
                }
            }
        }
    }

    /// How often a pair of tokens that spell `left` and `right` stands in the lost pieces, at most.
    pub fn most(&self, left: &[u8], right: &[u8]) -> u64 {
        self.cells[cell(few(&left[left.len().saturating_sub(NEAR)..]), few(&right[..right.len().min(NEAR)]))]
    }
}
