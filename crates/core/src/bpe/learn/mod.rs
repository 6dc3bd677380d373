//! Learning merges: again and again the pair of neighbours that is counted most often becomes one token.
//!
//! All distinct pieces lie in one array of symbols, side by side ([`text`]), and every pair knows the places where it was
//! seen ([`pairs`]). A merge visits only the places of its pair and adjusts the counts of the pairs on either side
//! ([`merger`]), so the whole run costs about as much as there are occurrences, however long the pieces are. Counts are
//! exact, in 64 bits.
//!
//! Ties are broken by a named rule (`bpe/reference.py` has them in a line each). Nothing depends on hashing,
//! on threads, or, unless the rule itself speaks of it, on the order of the pieces.

mod learner;
mod merged;
mod merger;
mod pairs;
mod queue;
mod rivals;
mod text;

use super::alphabet::Alphabet;
use crate::error::{Error, Result};
use crate::lost::Lost;

use learner::Learner;
use merged::Merged;
use queue::{FirstSeen, LargestString, Shortest, SmallestIds, Tie};

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

/// What is asked of the merges, but for their number.
#[derive(Debug, Clone, Copy)]
pub struct Options<'o> {
    pub tie_rule: TieRule,
    /// How many bytes a token may have, the end-of-word marker aside.
    pub most_bytes: usize,
    /// Pieces that become one token each, by merges that are learned from them alone, before all others.
    pub initial: &'o [Vec<u8>],
}

/// The merges found, in their order, and how often each pair was counted when it was merged.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Learned {
    pub merges: Vec<(u32, u32)>,
    pub counts: Vec<u64>,
    /// How many of them are proved to be what all pieces give, where pieces were left out.
    pub certain: usize,
    /// How many bytes the pieces that were learned from have, each piece as often as it was counted.
    pub bytes: u64,
    /// How many tokens these pieces are before the first merge, and after each.
    pub tokens: Vec<u64>,
}

/// Told now and then how many merges there are, and how to get them; says whether to go on.
pub type Progress<'a> = &'a mut dyn FnMut(usize, &dyn Fn() -> Learned) -> Result<()>;

/// Learns merges from pieces and their counts, given in the order in which they were met, until there are `limit`.
///
/// Ids: those of the alphabet, then one a merge. Fewer merges come back when no pair is left. `start` is what the same
/// pieces gave before: learning goes on behind it, to what one run to `limit` gives. Only what `start` says is certain
/// then: whether more would be depends on what was met on the way.
pub fn learn(
    pieces: Vec<(&[u8], u64)>,
    limit: usize,
    alphabet: &impl Alphabet,
    options: &Options<'_>,
    lost: Option<&Lost>,
    start: &Learned,
    progress: Progress<'_>,
) -> Result<Learned> {
    match options.tie_rule {
        TieRule::FirstSeen => learn_by::<FirstSeen>(pieces, limit, alphabet, options, lost, start, progress),
        TieRule::SmallestIds => learn_by::<SmallestIds>(pieces, limit, alphabet, options, lost, start, progress),
        TieRule::LargestString => learn_by::<LargestString>(pieces, limit, alphabet, options, lost, start, progress),
    }
}

/// The same with SentencePiece's tie rule: of pairs that are counted equally often, the one of fewer characters goes first,
/// then the one that spells what is smaller.
pub fn learn_as_sentencepiece(
    pieces: Vec<(&[u8], u64)>,
    limit: usize,
    alphabet: &impl Alphabet,
    progress: Progress<'_>,
) -> Result<Learned> {
    let options = Options { tie_rule: TieRule::LargestString, most_bytes: usize::MAX, initial: &[] };
    learn_by::<Shortest>(pieces, limit, alphabet, &options, None, &Learned::default(), progress)
}

fn learn_by<T: Tie>(
    pieces: Vec<(&[u8], u64)>,
    limit: usize,
    alphabet: &impl Alphabet,
    options: &Options<'_>,
    lost: Option<&Lost>,
    start: &Learned,
    progress: Progress<'_>,
) -> Result<Learned> {
    if !start.merges.is_empty() {
        let (merged, made) = Merged::new(alphabet, start)?;
        let mut learner = Learner::<T>::new(pieces, &merged, options)?;
        learner.go_on_behind(made, start.certain, alphabet.symbols().len());
        learner.run(limit, None, progress)?;
        return Ok(learner.learned());
    }
    let once = options.initial.iter().map(|piece| (&**piece, 1)).collect();
    let mut initial = Learner::<T>::new(once, alphabet, options)?;
    initial.run(usize::MAX, None, &mut |_, _| Ok(()))?;
    let mut learner = Learner::<T>::new(pieces, alphabet, options)?;
    for pair in initial.pairs_joined() {
        learner.join(pair);
    }
    learner.run(limit, lost, progress)?;
    Ok(learner.learned())
}

/// How many bytes learning so many merges takes at most, about, from so many distinct pieces, which have so many bytes
/// together.
///
/// A piece: its place, its length, its count, and both while it is put into order. A byte: the byte, its symbol, its
/// place in the list of its pair, and its share of the pairs that come of it, the table of which takes most while it
/// grows. A merge: its spelling, its count, how many tokens there are then. The shares are measured: real text takes 70 to
/// 85 % of this, random words up to all of it; where bytes, or 20,000 characters, are all equally likely, it is up to a
/// third more.
pub fn memory(pieces: u64, bytes: u64, merges: u64) -> u64 {
    let parts = [(pieces, 40), (bytes, 20), (merges.min(bytes), 128), (16, 1 << 20)];
    parts.iter().fold(0, |sum, &(number, size)| number.saturating_mul(size).saturating_add(sum))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// What counting all anew before every merge gives, with the smallest ids first.
    fn recounted(pieces: &[(&[u8], u64)], limit: usize) -> Vec<(u32, u32)> {
        let mut split: Vec<(Vec<u32>, u64)> =
            pieces.iter().map(|(piece, count)| (piece.iter().map(|&byte| byte.into()).collect(), *count)).collect();
        let mut merges = Vec::new();
        while merges.len() < limit {
            let mut counts = BTreeMap::new();
            for (ids, count) in &split {
                ids.windows(2).for_each(|pair| *counts.entry((pair[0], pair[1])).or_insert(0) += count);
            }
            let Some((&pair, _)) = counts.iter().rev().max_by_key(|(_, &count)| count) else { break };
            let new = 256 + merges.len() as u32;
            for (ids, _) in &mut split {
                let mut at = 0;
                while at + 1 < ids.len() {
                    if (ids[at], ids[at + 1]) == pair {
                        ids.splice(at..at + 2, [new]);
                    }
                    at += 1;
                }
            }
            merges.push(pair);
        }
        merges
    }

    #[test]
    fn learning_is_a_recount() -> Result<()> {
        let mut state = 1u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let byte_ids: [u32; 256] = std::array::from_fn(|byte| byte as u32);
        for _ in 0..100 {
            let letters = 1 + random(5);
            let texts: Vec<Vec<u8>> =
                (0..60).map(|_| (0..1 + random(12)).map(|_| b'a' + random(letters) as u8).collect()).collect();
            let pieces: Vec<(&[u8], u64)> = texts.iter().map(|text| (&**text, 1 + random(4))).collect();
            let options = Options { tie_rule: TieRule::SmallestIds, most_bytes: usize::MAX, initial: &[] };
            let learned =
                learn(pieces.clone(), 80, &byte_ids, &options, None, &Learned::default(), &mut |_, _| Ok(()))?;
            assert_eq!(learned.merges, recounted(&pieces, 80));
        }
        Ok(())
    }
}
