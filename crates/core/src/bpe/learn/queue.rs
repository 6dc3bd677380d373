//! Which pair is next: the one counted most often, and of equals the one that the tie rule prefers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::pairs::Pair;

/// A pair as a tie rule sees it: of pairs that are counted equally often the greatest wins.
pub trait Tie: Ord {
    /// Whether `place` matters.
    const ASKS_FOR_PLACE: bool = false;

    /// `place`: the first of the pair in the text as merged so far. `spelling`: that of a token.
    fn new(pair: Pair, place: u32, spelling: impl Fn(u32) -> Arc<[u8]>) -> Self;

    fn pair(&self) -> Pair;
}

/// The smallest ids.
pub type SmallestIds = Reverse<Pair>;

impl Tie for SmallestIds {
    fn new(pair: Pair, _: u32, _: impl Fn(u32) -> Arc<[u8]>) -> Self {
        Reverse(pair)
    }

    fn pair(&self) -> Pair {
        self.0
    }
}

/// The first place.
pub type FirstSeen = (Reverse<u32>, Pair);

impl Tie for FirstSeen {
    const ASKS_FOR_PLACE: bool = true;

    fn new(pair: Pair, place: u32, _: impl Fn(u32) -> Arc<[u8]>) -> Self {
        (Reverse(place), pair)
    }

    fn pair(&self) -> Pair {
        self.1
    }
}

/// The largest spellings.
pub type LargestString = ((Arc<[u8]>, Arc<[u8]>), Pair);

impl Tie for LargestString {
    fn new(pair: Pair, _: u32, spelling: impl Fn(u32) -> Arc<[u8]>) -> Self {
        ((spelling(pair.0), spelling(pair.1)), pair)
    }

    fn pair(&self) -> Pair {
        self.1
    }
}

/// A pair waiting in a queue with what it was worth when it was put there.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub struct Candidate<T> {
    pub count: u64,
    pub tie: T,
}

/// The candidates that are counted `least` times or more. Most pairs are seen a few times and never come up.
pub struct Queue<T> {
    heap: BinaryHeap<Candidate<T>>,
    least: u64,
}

impl<T: Tie> Queue<T> {
    pub fn new(least: u64) -> Self {
        Self { heap: BinaryHeap::new(), least }
    }

    #[inline]
    pub fn takes(&self, count: u64) -> bool {
        count >= self.least
    }

    pub fn push(&mut self, candidate: Candidate<T>) {
        self.heap.push(candidate);
    }

    pub fn pop(&mut self) -> Option<Candidate<T>> {
        self.heap.pop()
    }

    /// Has the queue take pairs that are counted half as often. Gives which counts it takes from now on and did not
    /// before; none if it takes all.
    pub fn lower(&mut self) -> Option<std::ops::Range<u64>> {
        let before = self.least;
        self.least = before / 2;
        (before > 1).then_some(self.least..before)
    }
}
