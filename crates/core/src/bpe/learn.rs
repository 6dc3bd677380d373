//! Learning merges: again and again the pair of neighbours that is counted most often becomes one token.
//!
//! All distinct pieces lie in one array of symbols, side by side, and every pair knows the places where it was seen.
//! A merge visits only the places of its pair and adjusts the counts of the pairs on either side, so the whole run
//! costs about as much as there are occurrences, however long the pieces are. Counts are exact, in 64 bits.
//!
//! Ties are broken by a named rule (`bpe/reference.py` has them in a line each). Nothing depends on hashing,
//! on threads, or, unless the rule itself speaks of it, on the order of the pieces.

use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::hash::IntMap;
use crate::lost::Lost;

/// What to do when several pairs are counted equally often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TieRule {
    /// The pair that comes first in the text as merged so far.
    FirstSeen,
    /// The pair with the smallest (left id, right id).
    SmallestIds,
    /// The pair with the largest (left bytes, right bytes).
    LargestString,
}

impl TieRule {
    pub fn new(name: &str) -> Result<Self> {
        match name {
            "first-seen" => Ok(Self::FirstSeen),
            "smallest-ids" => Ok(Self::SmallestIds),
            "largest-string" => Ok(Self::LargestString),
            _ => Err(Error::value(format!(
                "unknown tie rule {name:?}; the rules are first-seen, smallest-ids and largest-string"
            ))),
        }
    }
}

/// The merges found, in their order, and how often each pair was counted when it was merged.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Learned {
    pub merges: Vec<(u32, u32)>,
    pub counts: Vec<u64>,
    /// How many of them are proved to be what all pieces give, where pieces were left out.
    pub certain: usize,
}

/// Told now and then how many merges there are; says whether to go on.
pub type Progress<'a> = &'a mut dyn FnMut(usize) -> Result<()>;

/// What pieces are made of before the first merge.
pub trait Alphabet {
    /// The spelling of each symbol; its place is its id.
    fn symbols(&self) -> Vec<Arc<[u8]>>;

    /// Appends the symbols of a piece, at most one a byte; none for a piece to be left out.
    fn push_symbols(&self, piece: &[u8], out: &mut Vec<u32>);

    /// What stands in front of all symbols but the first of a piece, and not twice in what they make.
    fn prefix(&self) -> &[u8] {
        &[]
    }

    /// Whether it is that of all bytes, whatever the pieces are.
    fn is_bytes(&self) -> bool {
        false
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

/// The characters of some pieces, by their spelling; the last of a piece with the end-of-word marker behind it, all but
/// the first with the prefix in front. Pieces that are not well-formed are left out.
pub struct Characters {
    ids: BTreeMap<Vec<u8>, u32>,
    marks: Marks,
}

#[derive(Default)]
pub struct Marks {
    pub prefix: Vec<u8>,
    pub end_of_word: Vec<u8>,
}

impl Characters {
    pub fn new<'p>(pieces: impl Iterator<Item = &'p [u8]>, marks: Marks) -> Self {
        let mut ids = BTreeMap::new();
        for piece in pieces {
            spell(piece, &marks, |symbol| {
                if !ids.contains_key(symbol) {
                    ids.insert(symbol.to_vec(), 0);
                }
            });
        }
        ids.values_mut().zip(0..).for_each(|(id, number)| *id = number);
        Self { ids, marks }
    }
}

impl Alphabet for Characters {
    fn symbols(&self) -> Vec<Arc<[u8]>> {
        self.ids.keys().map(|symbol| Arc::from(&**symbol)).collect()
    }

    fn push_symbols(&self, piece: &[u8], out: &mut Vec<u32>) {
        spell(piece, &self.marks, |symbol| out.extend(self.ids.get(symbol)));
    }

    fn prefix(&self) -> &[u8] {
        &self.marks.prefix
    }
}

/// Tells `take` the spelling of each symbol of a piece.
fn spell(piece: &[u8], marks: &Marks, mut take: impl FnMut(&[u8])) {
    let Ok(text) = std::str::from_utf8(piece) else { return };
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        let prefix = if at > 0 { &*marks.prefix } else { &[] };
        let marker = if end == piece.len() { &*marks.end_of_word } else { &[] };
        match prefix.is_empty() && marker.is_empty() {
            true => take(&piece[at..end]),
            false => take(&[prefix, &piece[at..end], marker].concat()),
        }
    }
}

/// Learns up to `limit` merges from pieces and their counts, given in the order in which they were met.
///
/// Ids: those of the alphabet, then one a merge. Fewer merges come back when no pair is left.
pub fn learn(
    pieces: &[(&[u8], u64)],
    limit: usize,
    alphabet: &impl Alphabet,
    tie_rule: TieRule,
    lost: Option<&Lost>,
    progress: Progress<'_>,
) -> Result<Learned> {
    Learner::new(pieces, alphabet, tie_rule, lost.map(Rivals::new))?.run(limit, progress)
}

/// How many bytes learning takes at most, about, from so many distinct pieces, which have so many bytes together.
///
/// A piece: its place, its length, its count, the number of its first, and its weight. A byte: the byte, its symbol, the
/// piece it belongs to, its place in the list of its pair, and its share of the pairs and candidates that come of it. That
/// share is measured: the most that was seen, with 128,000 merges learned from random words.
pub fn memory(pieces: u64, bytes: u64) -> u64 {
    pieces.saturating_mul(64).saturating_add(bytes.saturating_mul(64)).saturating_add(16 << 20)
}

/// How often the other pairs may be counted at most, if the pieces that were left out are counted as well.
///
/// The argument: as long as both ways have made the same merges, a pair stands in all pieces as often as in those that
/// are here, and at most `lost.most(pair)` times more. So if the pair that wins here is counted more often than any other
/// here and in what was lost, it wins with all pieces, too; and the next merge starts from the same tokens again. One
/// that may be counted as often loses if the tie rule prefers the winner, unless that rule asks for the order of the text.
struct Rivals<'l> {
    lost: &'l Lost,
    /// Pairs that were seen here, with a bound that only ever gets lower.
    seen: BinaryHeap<Candidate>,
    /// The bound of all pairs that were never seen here.
    unseen: u64,
}

impl<'l> Rivals<'l> {
    fn new(lost: &'l Lost) -> Self {
        Self { lost, seen: BinaryHeap::new(), unseen: 0 }
    }
}

/// Stands between pieces.
const BORDER: u32 = u32::MAX;
/// Stands where a token of several symbols was swallowed.
const GONE: u32 = u32::MAX - 1;

/// How many places are visited, at least, between two calls of `progress`.
const PROGRESS_EVERY: usize = 1 << 18;

struct Learner<'l> {
    tie_rule: TieRule,
    /// Bytes in front of all symbols but the first of a piece.
    prefix: usize,
    /// At the first and at the last place of each token its id; other places of a token mean nothing.
    symbols: Vec<u32>,
    /// Which piece a place belongs to, and how often that piece was counted.
    piece_of: Vec<u32>,
    weights: Vec<u64>,
    /// What each token spells, and of how many symbols of the alphabet it is made.
    tokens: Vec<Arc<[u8]>>,
    lengths: Vec<u32>,
    pairs: IntMap<u64, Pair>,
    queue: BinaryHeap<Candidate>,
    rivals: Option<Rivals<'l>>,
}

#[derive(Default)]
struct Pair {
    count: u64,
    /// Where it was seen, in rising order; places where it is no more are passed over.
    places: Vec<u32>,
    /// The places before this one are known to be stale.
    first: usize,
}

/// A pair waiting in the queue with the count and the tie key it had when it was put there.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    count: u64,
    key: TieKey,
}

/// Orders equal counts: the greatest wins.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TieKey {
    FirstSeen(std::cmp::Reverse<u32>, (u32, u32)),
    SmallestIds(std::cmp::Reverse<(u32, u32)>),
    LargestString((Arc<[u8]>, Arc<[u8]>), (u32, u32)),
}

impl TieKey {
    pub(crate) fn pair(&self) -> (u32, u32) {
        match self {
            Self::FirstSeen(_, pair) | Self::LargestString(_, pair) => *pair,
            Self::SmallestIds(pair) => pair.0,
        }
    }
}

fn pair_key((left, right): (u32, u32)) -> u64 {
    (u64::from(left) << 32) | u64::from(right)
}

impl<'l> Learner<'l> {
    fn new(
        pieces: &[(&[u8], u64)],
        alphabet: &impl Alphabet,
        tie_rule: TieRule,
        rivals: Option<Rivals<'l>>,
    ) -> Result<Self> {
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
        let mut piece_of = Vec::with_capacity(places);
        symbols.push(BORDER);
        piece_of.push(0);
        for (index, (piece, _)) in pieces.iter().enumerate() {
            alphabet.push_symbols(piece, &mut symbols);
            symbols.push(BORDER);
            piece_of.resize(symbols.len(), index as u32);
        }
        let tokens = alphabet.symbols();
        let mut learner = Self {
            tie_rule,
            prefix: alphabet.prefix().len(),
            symbols,
            piece_of,
            weights: pieces.iter().map(|&(_, count)| count).collect(),
            lengths: vec![1; tokens.len()],
            tokens,
            pairs: IntMap::default(),
            queue: BinaryHeap::new(),
            rivals,
        };
        for place in 1..learner.symbols.len() - 1 {
            let pair = (learner.symbols[place], learner.symbols[place + 1]);
            if pair.0 != BORDER && pair.1 != BORDER {
                learner.saw(pair, place);
            }
        }
        let found: Vec<u64> = learner.pairs.keys().copied().collect();
        for key in found {
            learner.enqueue(((key >> 32) as u32, key as u32));
        }
        for id in 0..learner.tokens.len() as u32 {
            learner.expect(id);
        }
        Ok(learner)
    }

    fn run(mut self, limit: usize, progress: Progress<'_>) -> Result<Learned> {
        let mut learned = Learned::default();
        let mut visited = 0;
        while learned.merges.len() < limit {
            let Some((pair, count)) = self.most_frequent() else { break };
            if self.is_certain(pair, count) {
                learned.certain += 1;
            } else {
                self.rivals = None;
            }
            visited += 64 + self.merge(pair)?;
            learned.merges.push(pair);
            learned.counts.push(count);
            if visited >= PROGRESS_EVERY {
                visited = 0;
                progress(learned.merges.len())?;
            }
        }
        progress(learned.merges.len())?;
        Ok(learned)
    }

    /// Takes the winner out of the queue. A candidate whose count or tie key has changed goes back with the new one:
    /// both only ever get worse, so whatever comes out unchanged is the best there is.
    fn most_frequent(&mut self) -> Option<((u32, u32), u64)> {
        while let Some(candidate) = self.queue.pop() {
            let pair = candidate.key.pair();
            let Some(current) = self.candidate(pair) else { continue };
            if current == candidate {
                return Some((pair, candidate.count));
            }
            self.queue.push(current);
        }
        None
    }

    /// Whether `pair`, counted `count` times, would win if nothing had been lost.
    fn is_certain(&mut self, pair: (u32, u32), count: u64) -> bool {
        let Some(rivals) = &mut self.rivals else { return false };
        if rivals.unseen >= count {
            return false;
        }
        let lost = rivals.lost;
        while let Some(rival) = self.rivals.as_mut().and_then(|rivals| rivals.seen.pop()) {
            if rival.key.pair() == pair {
                continue;
            }
            let (left, right) = rival.key.pair();
            let here = self.pairs.get(&pair_key((left, right))).map_or(0, |entry| entry.count);
            let bound = here + lost.most(&self.tokens[left as usize], &self.tokens[right as usize]);
            let is_less = match self.tie_rule {
                TieRule::FirstSeen => bound < count,
                _ => rival < Candidate { count, key: self.fixed_key(pair) },
            };
            let is_current = bound == rival.count;
            if let Some(rivals) = &mut self.rivals {
                rivals.seen.push(Candidate { count: bound, key: rival.key });
            }
            if is_current {
                return is_less;
            }
        }
        true
    }

    /// The tie key of a pair, under rules that do not ask for the order of the text.
    fn fixed_key(&self, pair: (u32, u32)) -> TieKey {
        if self.tie_rule != TieRule::LargestString {
            return TieKey::SmallestIds(std::cmp::Reverse(pair));
        }
        let bytes = |id: u32| Arc::clone(&self.tokens[id as usize]);
        TieKey::LargestString((bytes(pair.0), bytes(pair.1)), pair)
    }

    /// Takes up the pairs of a new token with all others as rivals.
    fn expect(&mut self, new: u32) {
        let Some(rivals) = &mut self.rivals else { return };
        let bytes = |id: u32| &*self.tokens[id as usize];
        for pair in (0..=new).flat_map(|other| [(other, new), (new, other)]) {
            let lost = rivals.lost.most(bytes(pair.0), bytes(pair.1));
            if lost > rivals.unseen && !self.pairs.contains_key(&pair_key(pair)) {
                rivals.unseen = lost;
            }
        }
    }

    fn candidate(&mut self, pair: (u32, u32)) -> Option<Candidate> {
        let entry = self.pairs.get(&pair_key(pair)).filter(|entry| entry.count > 0)?;
        let count = entry.count;
        let key = match self.tie_rule {
            TieRule::FirstSeen => TieKey::FirstSeen(std::cmp::Reverse(self.first_place(pair)?), pair),
            _ => self.fixed_key(pair),
        };
        Some(Candidate { count, key })
    }

    fn first_place(&mut self, pair: (u32, u32)) -> Option<u32> {
        let entry = self.pairs.get(&pair_key(pair))?;
        let ahead = entry.places[entry.first..].iter().position(|&place| self.is_at(pair, place as usize))?;
        let entry = self.pairs.get_mut(&pair_key(pair))?;
        entry.first += ahead;
        Some(entry.places[entry.first])
    }

    fn enqueue(&mut self, pair: (u32, u32)) {
        if let Some(candidate) = self.candidate(pair) {
            let key = self.fixed_key(pair);
            if let Some(rivals) = &mut self.rivals {
                let lost = rivals.lost.most(&self.tokens[pair.0 as usize], &self.tokens[pair.1 as usize]);
                rivals.seen.push(Candidate { count: candidate.count + lost, key });
            }
            self.queue.push(candidate);
        }
    }

    fn saw(&mut self, pair: (u32, u32), place: usize) {
        let weight = self.weights[self.piece_of[place] as usize];
        let entry = self.pairs.entry(pair_key(pair)).or_default();
        entry.count += weight;
        entry.places.push(place as u32);
    }

    fn lost(&mut self, pair: (u32, u32), weight: u64) {
        if let Some(entry) = self.pairs.get_mut(&pair_key(pair)) {
            entry.count -= weight.min(entry.count);
        }
    }

    fn len(&self, id: u32) -> usize {
        self.lengths[id as usize] as usize
    }

    /// Whether the tokens `pair` start at `place`. A place where a pair was once seen starts a token as long as it
    /// holds that token's id: tokens grow to the right of where they start, and what is swallowed is overwritten.
    fn is_at(&self, (left, right): (u32, u32), place: usize) -> bool {
        self.symbols[place] == left && self.symbols[place + self.len(left)] == right
    }

    /// Makes one token of `pair` wherever it stands, from left to right. Returns how many places it looked at.
    fn merge(&mut self, pair: (u32, u32)) -> Result<usize> {
        let Some(entry) = self.pairs.remove(&pair_key(pair)) else { return Ok(0) };
        let (left, right) = pair;
        let new = self.tokens.len() as u32;
        let rest = &self.tokens[right as usize][self.prefix..];
        self.tokens.push([&*self.tokens[left as usize], rest].concat().into());
        self.lengths.push(self.lengths[left as usize] + self.lengths[right as usize]);
        let (left_len, new_len) = (self.len(left), self.len(new));
        let mut neighbours: Vec<(u32, u32)> = Vec::new();
        for &place in &entry.places[entry.first..] {
            let place = place as usize;
            if !self.is_at(pair, place) {
                continue;
            }
            let weight = self.weights[self.piece_of[place] as usize];
            let (before, after) = (self.symbols[place - 1], self.symbols[place + new_len]);
            self.symbols[place + left_len] = GONE;
            self.symbols[place] = new;
            self.symbols[place + new_len - 1] = new;
            if before != BORDER {
                self.lost((before, left), weight);
                self.saw((before, new), place - self.len(before));
                neighbours.push((before, new));
            }
            if after != BORDER {
                self.lost((right, after), weight);
                self.saw((new, after), place);
                neighbours.push((new, after));
            }
        }
        neighbours.sort_unstable();
        neighbours.dedup();
        for pair in neighbours {
            self.enqueue(pair);
        }
        self.expect(new);
        Ok(entry.places.len())
    }
}
