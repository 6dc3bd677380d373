//! Which pair is next: the one counted most often, and of equals the one that the tie rule prefers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::Arc;

use super::pairs::Pair;

/// A pair as a tie rule sees it: of pairs that are counted equally often the greatest wins.
pub trait Tie: Ord {
    /// Whether `place` matters.
    const ASKS_FOR_PLACE: bool = false;

    /// `place`: the first of the pair in the text as merged so far. `spellings`: those of all tokens.
    fn new(pair: Pair, place: u32, spellings: &[Arc<[u8]>]) -> Self;

    fn pair(&self) -> Pair;
}

/// The smallest ids.
pub type SmallestIds = Reverse<Pair>;

impl Tie for SmallestIds {
    fn new(pair: Pair, _: u32, _: &[Arc<[u8]>]) -> Self {
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

    fn new(pair: Pair, place: u32, _: &[Arc<[u8]>]) -> Self {
        (Reverse(place), pair)
    }

    fn pair(&self) -> Pair {
        self.1
    }
}

/// The largest spellings.
pub type LargestString = ((Arc<[u8]>, Arc<[u8]>), Pair);

impl Tie for LargestString {
    fn new(pair: Pair, _: u32, spellings: &[Arc<[u8]>]) -> Self {
        ((Arc::clone(&spellings[pair.0 as usize]), Arc::clone(&spellings[pair.1 as usize])), pair)
    }

    fn pair(&self) -> Pair {
        self.1
    }
}

/// As SentencePiece has it: the fewest characters, then the smallest spelling.
pub type Shortest = (Reverse<(usize, Box<[u8]>)>, Pair);

impl Tie for Shortest {
    fn new(pair: Pair, _: u32, spellings: &[Arc<[u8]>]) -> Self {
        let spelling = [&*spellings[pair.0 as usize], &*spellings[pair.1 as usize]].concat();
        let characters = spelling.iter().filter(|&&byte| byte & 0xC0 != 0x80).count();
        (Reverse((characters, spelling.into())), pair)
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

/// The candidates that are counted `least` times or more. Most pairs are rare, and never come up.
pub struct Queue<T> {
    heap: BinaryHeap<Candidate<T>>,
    least: u64,
}

impl<T: Tie> Queue<T> {
    /// One that takes pairs with higher counts than this one.
    pub fn above(count: u64) -> Self {
        Self { heap: BinaryHeap::new(), least: count.saturating_add(1) }
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

    /// Halves `least`. Gives which counts it takes from now on and did not before, which is for the caller to make up for;
    /// none if it took all.
    pub fn lower(&mut self) -> Option<Range<u64>> {
        let before = self.least;
        self.least = (before / 2).max(1);
        (self.least < before).then_some(self.least..before)
    }
}
