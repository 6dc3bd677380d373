//! The rules of a BPE: which pairs of tokens merge, into what, and how early.

use super::prove::lengths;
use super::Made;
use crate::error::{Error, Result};
use crate::memory::{prefetch, Table};
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
    slots: Table<(u64, Rule)>,
    shift: u32,
    len: usize,
}

/// So many rules are added together, after the memory for all was read ahead.
const BATCH: usize = 64;
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
        let slots = Table::filled((NO_KEY, Rule::NONE), 1 << bits);
        Self { tags: vec![0; slots.len() + TAGS], slots, shift: 64 - bits, len: 0 }
    }

    /// Adds the rule of a pair that has none. There must be room for it.
    pub fn add(&mut self, left: Token, right: Token, rule: Rule) {
        let (mut at, tag) = start(left, right, self.shift);
        let room = self.slots.len();
        while self.tags[at] != 0 {
            at = (at + 1) & (room - 1);
        }
        self.tags[at] = tag;
        if at < TAGS {
            self.tags[room + at] = tag;
        }
        self.slots[at] = (key(left, right), rule);
        self.len += 1;
    }

    /// How many rules there are.
    pub fn len(&self) -> usize {
        self.len
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
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// A hint that the rule of a pair will be looked for soon.
    #[inline]
    pub fn prepare(&self, left: Token, right: Token) {
        let (at, _) = start(left, right, self.shift);
        prefetch(&self.tags, at);
        prefetch(&self.slots, at);
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
        // All ones where a free slot comes before any with this tag. Then the first of all slots is as good as any other,
        // for it does not have the pair either.
        let none = u64::from((found == 0) & (free != 0)).wrapping_neg();
        let slot = (at + found.trailing_zeros() as usize / 8) & (self.slots.len() - 1) & !none as usize;
        let (other, rule) = self.slots[slot];
        let is_there = other == key(left, right);
        if is_there | (none != 0) {
            if is_there {
                rule
            } else {
                Rule::NONE
            }
        } else {
            self.get(left, right).unwrap_or(Rule::NONE)
        }
    }

    /// A merge list.
    pub fn from_merges(merges: &[Merge]) -> Self {
        let mut rules = Self::with_room(merges.len());
        for some in merges.chunks(BATCH) {
            some.iter().for_each(|&(left, right, _)| rules.prepare(left, right));
            some.iter().for_each(|&(left, right, rule)| rules.add(left, right, rule));
        }
        rules
    }

    /// The same of pairs of ids, of which nothing else is kept. `known` is what `made` gave for the same rules.
    pub fn from_pairs(vocab: &Vocab, pairs: &[(u32, u32)], known: Option<&[Token]>) -> Result<Self> {
        // It may come from a file, so nothing may lead out of the vocabulary.
        let fits = |known: &[Token]| known.len() == pairs.len() && known.iter().all(|&at| (at as usize) < vocab.len());
        if !known.is_none_or(fits) {
            return Err(Error::format("what the merges make does not fit the vocabulary"));
        }
        let (mut rules, mut joining) = (Self::with_room(pairs.len()), Joining { known, ..Joining::new(vocab, pairs) });
        let mut tokens = Vec::with_capacity(BATCH);
        for start in (0..pairs.len()).step_by(BATCH) {
            let some = start..pairs.len().min(start + BATCH);
            tokens.clear();
            for rank in some.clone() {
                let (left, right) = joining.tokens(rank)?;
                rules.prepare(left, right);
                tokens.push((left, right));
            }
            for (rank, &(left, right)) in some.zip(&tokens) {
                let rule = joining.rule(rank, left, right)?;
                if rules.get(left, right).is_some() {
                    return Err(twice(vocab, rank, left, right));
                }
                rules.add(left, right, rule);
            }
        }
        Ok(rules)
    }

    /// What each merge of a list makes, the first of them first.
    pub fn made(&self) -> Vec<Token> {
        let mut made = vec![0; self.len];
        for (_, rule) in self.slots.iter().filter(|&&(key, _)| key != NO_KEY) {
            if let Some(token) = made.get_mut(rule.rank as usize) {
                *token = rule.token;
            }
        }
        made
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
                    rules.push((left, right, Rule { rank: token, token }));
                }
            }
        }
        Self::from_merges(&rules)
    }

    /// One rule an entry: its last merge, where every entry encodes to itself.
    pub fn from_entries(entries: &[Made]) -> Self {
        let mut rules = Self::with_room(entries.len());
        for (some, first) in entries.chunks(BATCH).zip((0..).step_by(BATCH)) {
            some.iter().for_each(|made| rules.prepare(made.left, made.right));
            for (made, token) in some.iter().zip(first..).filter(|(made, _)| made.rank > 0) {
                rules.add(made.left, made.right, Rule { rank: made.rank, token });
            }
        }
        rules
    }
}

/// What a merge joins, and its rule.
pub type Merge = (Token, Token, Rule);

/// The rules of a merge list: pairs of ids, the earliest first; each makes the entry that spells both.
pub fn merges(vocab: &Vocab, pairs: &[(u32, u32)]) -> Result<Vec<Merge>> {
    const NONE: u32 = u32::MAX;
    // For each entry the last merge that makes it, and for each merge the one before that makes the same.
    let (mut makes, mut before) = (vec![NONE; vocab.len()], Vec::with_capacity(pairs.len()));
    let mut merges: Vec<Merge> = Vec::with_capacity(pairs.len());
    let mut joining = Joining::new(vocab, pairs);
    for rank in 0..pairs.len() {
        let (left, right, rule) = joining.merge(rank)?;
        let mut same = makes[rule.token as usize];
        before.push(same);
        while let Some(&(other, beside, _)) = merges.get(same as usize) {
            if (other, beside) == (left, right) {
                return Err(twice(vocab, rank, left, right));
            }
            same = before[same as usize];
        }
        makes[rule.token as usize] = rank as u32;
        merges.push((left, right, rule));
    }
    Ok(merges)
}

fn twice(vocab: &Vocab, rank: usize, left: Token, right: Token) -> Error {
    let (left, right) = (show(vocab.piece(left)), show(vocab.piece(right)));
    Error::format(format!("merge {rank} joins {left} and {right} a second time"))
}

/// Finds what the pairs of a merge list make.
struct Joining<'a> {
    vocab: &'a Vocab,
    pairs: &'a [(u32, u32)],
    /// What they make, where it is known.
    known: Option<&'a [Token]>,
    joined: Vec<u8>,
    /// What the last one makes.
    whole: Token,
}

impl<'a> Joining<'a> {
    fn new(vocab: &'a Vocab, pairs: &'a [(u32, u32)]) -> Self {
        Self { vocab, pairs, known: None, joined: Vec::new(), whole: 0 }
    }

    fn tokens(&self, rank: usize) -> Result<(Token, Token)> {
        let (left, right) = self.pairs[rank];
        let token = |id| {
            let none = || Error::format(format!("merge {rank} ({left}, {right}): the vocabulary has no id {id}"));
            self.vocab.token_of_id(id).ok_or_else(none)
        };
        Ok((token(left)?, token(right)?))
    }

    fn merge(&mut self, rank: usize) -> Result<Merge> {
        let (left, right) = self.tokens(rank)?;
        Ok((left, right, self.rule(rank, left, right)?))
    }

    fn rule(&mut self, rank: usize, left: Token, right: Token) -> Result<Rule> {
        if let Some(known) = self.known {
            return Ok(Rule { rank: rank as u32, token: known[rank] });
        }
        self.joined.clear();
        self.joined.extend_from_slice(self.vocab.piece(left));
        self.joined.extend_from_slice(self.vocab.piece(right));
        self.whole = self.vocab.find_near(&self.joined, self.whole).ok_or_else(|| {
            let made = show(&self.joined);
            Error::format(format!("merge {rank} makes {made}, which is no entry of the vocabulary"))
        })?;
        Ok(Rule { rank: rank as u32, token: self.whole })
    }
}

/// The slot at which a search starts, and the tag.
#[inline]
fn start(left: Token, right: Token, shift: u32) -> (usize, u8) {
    let key = key(left, right);
    let mixed = (key ^ (key >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    ((mixed >> shift) as usize, (mixed >> (shift - 8)) as u8 | 1)
}
