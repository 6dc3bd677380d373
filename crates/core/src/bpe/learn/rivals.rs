//! How many of the merges are those of all pieces, where pieces were left out.

use std::collections::BinaryHeap;
use std::sync::Arc;

use crate::lost::Lost;

use super::pairs::{Pair, Pairs};
use super::queue::{Candidate, Tie};

/// How often the other pairs may be counted at most, if the pieces that were left out are counted as well.
///
/// The argument: as long as both ways have made the same merges, a pair stands in all pieces as often as in those that
/// are here, and at most `lost.most(pair)` times more. So if the pair that wins here is counted more often than any other
/// here and in what was lost, it wins with all pieces, too; and the next merge starts from the same tokens again. One
/// that may be counted as often loses if the tie rule prefers the winner, unless that rule asks for the order of the text.
pub struct Rivals<'l, T> {
    lost: &'l Lost,
    /// Pairs that were seen here, with a bound that only ever gets lower.
    seen: BinaryHeap<Candidate<T>>,
    /// The bound of all pairs that were not seen here.
    unseen: u64,
}

impl<'l, T: Tie> Rivals<'l, T> {
    pub fn new(lost: &'l Lost) -> Self {
        Self { lost, seen: BinaryHeap::new(), unseen: 0 }
    }

    fn lost(&self, pair: Pair, spellings: &[Arc<[u8]>]) -> u64 {
        self.lost.most(&spellings[pair.0 as usize], &spellings[pair.1 as usize])
    }

    fn candidate(count: u64, pair: Pair, spellings: &[Arc<[u8]>]) -> Candidate<T> {
        Candidate { count, tie: T::new(pair, 0, spellings) }
    }

    /// Takes up a pair that is counted `count` times.
    pub fn saw(&mut self, pair: Pair, count: u64, spellings: &[Arc<[u8]>]) {
        let bound = count + self.lost(pair, spellings);
        self.seen.push(Self::candidate(bound, pair, spellings));
    }

    /// Takes up those pairs of a new token with all others that are not seen here, and may come.
    pub fn expect(&mut self, new: u32, pairs: &Pairs, spellings: &[Arc<[u8]>], may_come: impl Fn(Pair) -> bool) {
        for pair in (0..=new).flat_map(|other| [(other, new), (new, other)]) {
            let lost = self.lost(pair, spellings);
            if lost > self.unseen && pairs.count(pair) == 0 && may_come(pair) {
                self.unseen = lost;
            }
        }
    }

    /// Whether `pair`, counted `count` times, would win if nothing had been lost.
    pub fn all_lose(&mut self, pair: Pair, count: u64, pairs: &Pairs, spellings: &[Arc<[u8]>]) -> bool {
        if self.unseen >= count {
            return false;
        }
        while let Some(rival) = self.seen.pop() {
            if rival.tie.pair() == pair {
                continue;
            }
            let bound = pairs.count(rival.tie.pair()) + self.lost(rival.tie.pair(), spellings);
            let loses = if T::ASKS_FOR_PLACE { bound < count } else { rival < Self::candidate(count, pair, spellings) };
            let is_current = bound == rival.count;
            self.seen.push(Candidate { count: bound, tie: rival.tie });
            if is_current {
                return loses;
            }
        }
        true
    }
}
