//! The rules of a BPE: which pairs of tokens merge, into what, and how early.

use super::prove::lengths;
use super::Made;
use crate::cache::prefetch;
use crate::error::{Error, Result};
use crate::hash::IntMap;
use crate::vocab::{show, Token, Vocab};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// The lower, the earlier.
    pub rank: u32,
    pub token: Token,
}

impl Rule {
    /// Stands for no rule: none is later.
    pub const NONE: Self = Self { rank: u32::MAX, token: 0 };
}

/// Rules by their pair, in open addressing. Most pairs have no rule, and that is nearly always seen in the tags alone,
/// which fit into a near cache where the slots do not.
pub struct Rules {
    /// A byte of each slot's hash, or 0 where it is free; then the first ones again, so that eight can be read anywhere.
    tags: Vec<u8>,
    /// One more than there is room for, which is no rule.
    slots: Vec<(u64, Rule)>,
    shift: u32,
}

/// So many tags are looked at together.
const TAGS: usize = 8;
/// No pair has this key.
const NO_KEY: u64 = u64::MAX;

#[inline]
fn key(left: Token, right: Token) -> u64 {
    (u64::from(left) << 32) | u64::from(right)
}

impl Rules {
    /// Without rules yet, and with room for so many.
    pub fn with_room(rules: usize) -> Self {
        let bits = (rules * 2).next_power_of_two().max(16).trailing_zeros();
        let slots = vec![(NO_KEY, Rule::NONE); (1 << bits) + 1];
        Self { tags: vec![0; (1 << bits) + TAGS], slots, shift: 64 - bits }
    }

    /// Adds the rule of a pair that has none. There must be room for it.
    pub fn add(&mut self, left: Token, right: Token, rule: Rule) {
        let (mut at, tag) = start(left, right, self.shift);
        let room = self.slots.len() - 1;
        while self.tags[at] != 0 {
            at = (at + 1) & (room - 1);
        }
        self.tags[at] = tag;
        if at < TAGS {
            self.tags[room + at] = tag;
        }
        self.slots[at] = (key(left, right), rule);
    }

    fn new(rules: impl ExactSizeIterator<Item = ((Token, Token), Rule)>) -> Self {
        let mut table = Self::with_room(rules.len());
        rules.for_each(|((left, right), rule)| table.add(left, right, rule));
        table
    }

    #[inline]
    pub fn get(&self, left: Token, right: Token) -> Option<Rule> {
        let key = key(left, right);
        let (mut at, tag) = start(left, right, self.shift);
        loop {
            let found = self.tags[at];
            if found == 0 {
                return None;
            }
            if found == tag {
                let (found, rule) = self.slots[at];
                if found == key {
                    return Some(rule);
                }
            }
            at = (at + 1) & (self.slots.len() - 2);
        }
    }

    /// A hint that the rule of a pair will be looked for soon.
    #[inline]
    pub fn prepare(&self, left: Token, right: Token) {
        let (at, _) = start(left, right, self.shift);
        prefetch(&self.tags[at]);
        prefetch(&self.slots[at]);
    }

    /// The same with `Rule::NONE` for no rule, and without a branch on whether there is one: where that is as good as
    /// random, a wrong guess of the processor costs more than all the rest.
    #[inline]
    pub fn find(&self, left: Token, right: Token) -> Rule {
        const ONES: u64 = 0x0101_0101_0101_0101;
        let first_zero = |word: u64| word.wrapping_sub(ONES) & !word & (ONES << 7); // right in its lowest bit
        let (at, tag) = start(left, right, self.shift);
        let tags =
            self.tags.get(at..).and_then(|tags| tags.first_chunk::<TAGS>()).map_or(0, |tags| u64::from_le_bytes(*tags));
        let free = first_zero(tags);
        let found = first_zero(tags ^ (u64::from(tag) * ONES)) & free.wrapping_sub(1) & !free;
        // All ones where a free slot comes before any with this tag; that leads to the last slot, which has no key.
        let none = u64::from((found == 0) & (free != 0)).wrapping_neg();
        let last = self.slots.len() - 1;
        let slot = (((at + found.trailing_zeros() as usize / 8) & (last - 1)) | none as usize).min(last);
        let (other, rule) = self.slots[slot];
        if other == key(left, right) | none {
            rule
        } else {
            self.get(left, right).unwrap_or(Rule::NONE)
        }
    }

    /// A merge list: pairs of ids, the earliest first; each makes the entry that spells both.
    pub fn from_merges(vocab: &Vocab, pairs: &[(u32, u32)]) -> Result<Self> {
        let mut rules: IntMap<u64, ((Token, Token), Rule)> = IntMap::default();
        rules.reserve(pairs.len());
        for merge in merges(vocab, pairs) {
            let (left, right, rule) = merge?;
            if rules.insert(key(left, right), ((left, right), rule)).is_some() {
                return Err(second_time(vocab, left, right, rule.rank));
            }
        }
        Ok(Self::new(rules.into_values()))
    }

    /// tiktoken's rule: any two neighbours that together spell an entry may merge, the lowest id first.
    pub fn from_ranks(vocab: &Vocab) -> Self {
        let mut rules = Vec::with_capacity(vocab.len() * 2);
        let exists = lengths(vocab);
        for token in 0..vocab.len() as Token {
            let piece = vocab.piece(token);
            for cut in (1..piece.len()).filter(|&cut| exists[cut] && exists[piece.len() - cut]) {
                let (left, right) = piece.split_at(cut);
                if let (Some(left), Some(right)) = (vocab.find(left), vocab.find(right)) {
                    rules.push(((left, right), Rule { rank: token, token }));
                }
            }
        }
        Self::new(rules.into_iter())
    }

    /// One rule an entry: its last merge, where every entry encodes to itself.
    pub fn from_entries(entries: &[Made]) -> Self {
        let mut rules = Self::with_room(entries.len());
        for (made, token) in entries.iter().zip(0..).filter(|(made, _)| made.rank > 0) {
            rules.add(made.left, made.right, Rule { rank: made.rank, token });
        }
        rules
    }
}

/// The rules of a merge list, in its order, each with the pair that it joins.
pub fn merges<'m>(
    vocab: &'m Vocab,
    pairs: &'m [(u32, u32)],
) -> impl Iterator<Item = Result<(Token, Token, Rule)>> + 'm {
    let mut joined = Vec::new();
    pairs.iter().enumerate().map(move |(rank, &(left, right))| {
        let token = |id| {
            vocab
                .token_of_id(id)
                .ok_or_else(|| Error::format(format!("merge {rank} ({left}, {right}): the vocabulary has no id {id}")))
        };
        let (left, right) = (token(left)?, token(right)?);
        joined.clear();
        joined.extend_from_slice(vocab.piece(left));
        joined.extend_from_slice(vocab.piece(right));
        match vocab.find(&joined) {
            Some(token) => Ok((left, right, Rule { rank: rank as u32, token })),
            None => {
                Err(Error::format(format!("merge {rank} makes {}, which is no entry of the vocabulary", show(&joined))))
            }
        }
    })
}

pub fn second_time(vocab: &Vocab, left: Token, right: Token, rank: u32) -> Error {
    let (left, right) = (show(vocab.piece(left)), show(vocab.piece(right)));
    Error::format(format!("merge {rank} joins {left} and {right} a second time"))
}

/// The slot at which a search starts, and the tag.
#[inline]
fn start(left: Token, right: Token, shift: u32) -> (usize, u8) {
    let key = key(left, right);
    let mixed = (key ^ (key >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    ((mixed >> shift) as usize, (mixed >> (shift - 8)) as u8 | 1)
}
