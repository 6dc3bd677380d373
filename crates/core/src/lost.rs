//! What pieces that were left out could have added to the count of a pair.

use crate::hash::{hash, mix};

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

fn cell(before: &[u8], after: &[u8]) -> usize {
    mix(hash(before), hash(after)) as usize % CELLS
}

impl Lost {
    pub fn add(&mut self, piece: &[u8], count: u64) {
        self.pieces += 1;
        self.count = self.count.saturating_add(count);
        for at in 1..piece.len() {
            for before in 1..=NEAR.min(at) {
                for after in 1..=NEAR.min(piece.len() - at) {
                    let cell = &mut self.cells[cell(&piece[at - before..at], &piece[at..at + after])];
                    *cell = cell.saturating_add(count);
                }
            }
        }
    }

    /// How often a pair of tokens that spell `left` and `right` stands in the lost pieces, at most.
    pub fn most(&self, left: &[u8], right: &[u8]) -> u64 {
        self.cells[cell(&left[left.len().saturating_sub(NEAR)..], &right[..right.len().min(NEAR)])]
    }
}
