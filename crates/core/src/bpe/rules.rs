//! The rules of a BPE: which pairs of tokens merge, into what, and how early.

use crate::error::{Error, Result};
use crate::hash::IntMap;
use crate::vocab::{show, Token, Vocab};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// The lower, the earlier.
    pub rank: u32,
    pub token: Token,
}

/// Rules by their pair, in open addressing: one multiplication and, nearly always, one cache line a look-up.
pub struct Rules {
    slots: Vec<(u64, Rule)>,
    shift: u32,
}

const EMPTY: u64 = u64::MAX; // no pair: tokens are below 2^30

#[inline]
fn key(left: Token, right: Token) -> u64 {
    (u64::from(left) << 32) | u64::from(right)
}

impl Rules {
    fn new(rules: impl ExactSizeIterator<Item = ((Token, Token), Rule)>) -> Self {
        let bits = (rules.len() * 2).next_power_of_two().max(16).trailing_zeros();
        let mut slots = vec![(EMPTY, Rule { rank: 0, token: 0 }); 1 << bits];
        let shift = 64 - bits;
        for ((left, right), rule) in rules {
            let mut at = start(key(left, right), shift);
            while slots[at].0 != EMPTY {
                at = (at + 1) & (slots.len() - 1);
            }
            slots[at] = (key(left, right), rule);
        }
        Self { slots, shift }
    }

    #[inline]
    pub fn get(&self, left: Token, right: Token) -> Option<Rule> {
        let key = key(left, right);
        let mut at = start(key, self.shift);
        loop {
            let (found, rule) = self.slots[at];
            if found == key {
                return Some(rule);
            }
            if found == EMPTY {
                return None;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// A merge list: pairs of ids, the earliest first; each makes the entry that spells both.
    pub fn from_merges(vocab: &Vocab, pairs: &[(u32, u32)]) -> Result<Self> {
        let mut rules: IntMap<u64, ((Token, Token), Rule)> = IntMap::default();
        rules.reserve(pairs.len());
        let mut joined = Vec::new();
        for (rank, &(left, right)) in pairs.iter().enumerate() {
            let token = |id| {
                vocab.token_of_id(id).ok_or_else(|| {
                    Error::format(format!("merge {rank} ({left}, {right}): the vocabulary has no id {id}"))
                })
            };
            let (left, right) = (token(left)?, token(right)?);
            joined.clear();
            joined.extend_from_slice(vocab.piece(left));
            joined.extend_from_slice(vocab.piece(right));
            let Some(token) = vocab.find(&joined) else {
                return Err(Error::format(format!(
                    "merge {rank} makes {}, which is no entry of the vocabulary",
                    show(&joined)
                )));
            };
            let rule = Rule { rank: rank as u32, token };
            if rules.insert(key(left, right), ((left, right), rule)).is_some() {
                return Err(Error::format(format!(
                    "merge {rank} joins {} and {} a second time",
                    show(vocab.piece(left)),
                    show(vocab.piece(right))
                )));
            }
        }
        Ok(Self::new(rules.into_values()))
    }

    /// tiktoken's rule: any two neighbours that together spell an entry may merge, the lowest id first.
    pub fn from_ranks(vocab: &Vocab) -> Self {
        let mut rules = Vec::with_capacity(vocab.len() * 2);
        // Only where entries of both lengths exist is a cut looked up: in one entry of a megabyte, all take minutes.
        let lengths = || (0..vocab.len() as Token).map(|token| vocab.piece_len(token));
        let mut exists = vec![false; lengths().max().unwrap_or(0) + 1];
        lengths().for_each(|length| exists[length] = true);
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

    /// One rule a token: the last merge of each, where every entry encodes to itself.
    pub fn from_parts(parts: &[(Token, Token)], ranks: &[u32]) -> Self {
        let rules: Vec<_> = (0..parts.len())
            .filter(|&token| ranks[token] > 0)
            .map(|token| (parts[token], Rule { rank: ranks[token], token: token as Token }))
            .collect();
        Self::new(rules.into_iter())
    }
}

#[inline]
fn start(key: u64, shift: u32) -> usize {
    let mixed = (key ^ (key >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93) >> shift) as usize
}
