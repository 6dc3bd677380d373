//! The proof at load: does every entry encode to itself, and does it rank after its parts?
//!
//! Where it does, any two tokens of an encoding that some rule would have joined must have been joined by the last
//! merge of the entry they spell, so one rule an entry is enough, and tiktoken's ranks and a merge list mean the same
//! whenever their rules are the same. Checked against the plain loop in the tests, on vocabularies that pass and on
//! ones that do not. The one pass over long pieces needs the order as well: it takes the rank of an entry for the
//! time at which it is made.

use std::collections::HashSet;

use super::affixes;
use super::rules::{merges, second_time, Rule, Rules};
use super::{merge, Made, Priority, Proof, MEDIUM};
use crate::error::{Error, Result};
use crate::parallel::both;
use crate::vocab::{Token, Vocab};

/// How each entry is made, with one rule an entry, where each encodes to itself and ranks after its parts: what `prove`
/// would find, several times as fast. None where it is otherwise; then `prove` says what is wrong.
///
/// By induction over the ranks, the lowest first. Let what is made so far be proved. Of the next entry's bytes the rules
/// so far make one encoding; a rule that joins two entries made before makes the new one exactly if these two are that
/// encoding, which they are if they may stand side by side. If they may not, or if the entry is made already, the rule
/// can never fire: what stands on the bytes of its pair has, by its turn, become what these bytes alone encode to.
pub fn in_order(vocab: &Vocab, priority: &Priority) -> Result<Option<Proven>> {
    let is_byte = |token| vocab.piece_len(token) == 1;
    let mut proof = Proving {
        entries: (0..vocab.len() as Token).map(|token| Made { len: vocab.piece_len(token) as u32, ..Made::default() }).collect(),
        rules: Rules::with_room(vocab.len()),
        left: (0..vocab.len() as Token).filter(|&token| !is_byte(token)).count(),
    };
    match priority {
        Priority::Rank => {
            let (prefixes, suffixes) = both(|| affixes::prefixes(vocab), || affixes::suffixes(vocab));
            let len: Vec<u32> = proof.entries.iter().map(|made| made.len).collect();
            let chain = |of: &[Token], token: Token| of[token as usize];
            let (mut ends, mut cuts) = (Vec::new(), Vec::new());
            for token in (0..vocab.len() as Token).filter(|&token| len[token as usize] > 1) {
                ends.clear();
                let mut end = chain(&suffixes, token);
                while end != affixes::NONE {
                    ends.push((len[end as usize], end));
                    end = chain(&suffixes, end);
                }
                cuts.clear();
                let mut start = chain(&prefixes, token);
                // The longest start goes with the shortest end.
                while start != affixes::NONE {
                    let rest = len[token as usize] - len[start as usize];
                    while ends.last().is_some_and(|&(len, _)| len < rest) {
                        ends.pop();
                    }
                    let is_before = |part: Token| part < token || len[part as usize] == 1;
                    if let Some(&(_, end)) = ends.last().filter(|&&(len, end)| len == rest && is_before(end)) {
                        if is_before(start) {
                            cuts.push((u64::from(start) + u64::from(end), start, end));
                        }
                    }
                    start = chain(&prefixes, start);
                }
                // Commonest parts first: in nine entries of ten it is these.
                if cuts.len() > 1 {
                    cuts.sort_unstable();
                }
                if !cuts.iter().any(|&(_, start, end)| proof.makes(start, end, Rule { rank: token, token })) {
                    return Ok(None);
                }
            }
        }
        Priority::Merges(pairs) => {
            let mut idle = HashSet::new();
            let mut in_order = true;
            for merge in merges(vocab, pairs) {
                let (left, right, rule) = merge?;
                if proof.rules.get(left, right).is_some() || idle.contains(&(left, right)) {
                    return Err(second_time(vocab, left, right, rule.rank));
                }
                in_order &= proof.is_made(left) && proof.is_made(right);
                if !in_order || proof.is_made(rule.token) || !proof.makes(left, right, rule) {
                    idle.insert((left, right));
                }
            }
            if !in_order {
                return Ok(None);
            }
        }
    }
    Ok((proof.left == 0).then_some(Proven { entries: proof.entries, rules: proof.rules }))
}

/// How each entry is made, with one rule an entry.
pub struct Proven {
    pub entries: Vec<Made>,
    pub rules: Rules,
}

impl Proven {
    /// From what `Bpe::made` gave for the entries with these offsets. It may come from a file, so no row may lead out of
    /// the vocabulary or in a circle.
    pub fn again(offsets: &[u64], made: &[[u32; 3]]) -> Result<Self> {
        let len_of = |at: usize| offsets.get(at + 1)?.checked_sub(*offsets.get(at)?);
        let of_row = |(at, &[left, right, rank]): (usize, &[u32; 3])| {
            let len = u32::try_from(len_of(at)?).ok()?;
            let is_before = |part: u32| made.get(part as usize).is_some_and(|part| part[2] < rank);
            let is_sound = match rank {
                0 => len == 1,
                _ => {
                    let parts = len_of(left as usize)?.checked_add(len_of(right as usize)?);
                    is_before(left) && is_before(right) && parts == Some(len.into())
                }
            };
            is_sound.then_some(Made { left, right, rank, len })
        };
        let entries: Option<Vec<Made>> = made.iter().enumerate().map(of_row).collect();
        match entries.filter(|entries| entries.len() + 1 == offsets.len()) {
            Some(entries) => Ok(Self { rules: Rules::from_entries(&entries), entries }),
            None => Err(Error::format("how the entries are made does not fit the vocabulary")),
        }
    }
}

struct Proving {
    entries: Vec<Made>,
    rules: Rules,
    /// How many entries are not made yet.
    left: usize,
}

impl Proving {
    fn is_made(&self, token: Token) -> bool {
        let made = &self.entries[token as usize];
        made.rank > 0 || made.len == 1
    }

    /// Makes an entry by a rule, if the rules so far leave the pair that it joins.
    fn makes(&mut self, left: Token, right: Token, rule: Rule) -> bool {
        let makes = compatible(&self.rules, &self.entries, left, right);
        if makes {
            let made = &mut self.entries[rule.token as usize];
            *made = Made { left, right, rank: rule.rank + 1, len: made.len };
            self.rules.add(left, right, Rule { rank: made.rank, token: rule.token });
            self.left -= 1;
        }
        makes
    }
}

/// Whether the tokens `a` and `b` stay as they are when their bytes are encoded side by side: undo the merges of
/// both at the border, latest first, and see whether the merge across the border would have come before.
#[inline]
pub fn compatible(rules: &Rules, entries: &[Made], mut a: Token, mut b: Token) -> bool {
    let mut limit = u32::MAX;
    loop {
        if rules.get(a, b).is_some_and(|rule| rule.rank < limit) {
            return false;
        }
        let (made_a, made_b) = (entries[a as usize], entries[b as usize]);
        if made_a.rank > made_b.rank {
            limit = made_a.rank;
            a = made_a.right;
        } else if made_b.rank == 0 {
            return true; // two bytes
        } else {
            limit = made_b.rank + 1; // of two equal merges the left one comes first
            b = made_b.left;
        }
    }
}

/// Whether there is an entry of a length: only where entries of both lengths exist is a cut looked up, since in one
/// entry of a megabyte all take minutes.
pub fn lengths(vocab: &Vocab) -> Vec<bool> {
    let lengths = || (0..vocab.len() as Token).map(|token| vocab.piece_len(token));
    let mut exists = vec![false; lengths().max().unwrap_or(0) + 1];
    lengths().for_each(|length| exists[length] = true);
    exists
}

/// The proof, and the rules that are needed.
pub fn prove(vocab: &Vocab, byte_tokens: &[Token; 256], rules: Rules) -> (Proof, Rules) {
    let len = vocab.len();
    let mut entries = vec![Made::default(); len];
    let (mut failed, mut count) = (None, 0);
    let mut out = Vec::new();
    for token in 0..len as Token {
        let bytes = vocab.piece(token).iter().map(|&byte| byte_tokens[byte as usize]);
        match last_merge(vocab, bytes, &rules, token, &mut out) {
            Some(made) => entries[token as usize] = made,
            None => {
                failed = failed.or(Some(token));
                count += 1;
            }
        }
    }
    if let Some(example) = failed {
        return (Proof::Refuted { example, count }, rules);
    }
    let early = |&token: &usize| {
        let Made { left, right, rank, .. } = entries[token];
        rank > 0 && rank <= entries[left as usize].rank.max(entries[right as usize].rank)
    };
    let out_of_order = (0..len).find(early).map(|token| token as Token);
    let needed = Rules::from_entries(&entries);
    (Proof::Proved { entries, out_of_order }, needed)
}

/// How an entry is made of what its piece starts as; None if it does not encode to itself.
pub fn last_merge(
    vocab: &Vocab,
    first: impl ExactSizeIterator<Item = Token>,
    rules: &Rules,
    token: Token,
    out: &mut Vec<Token>,
) -> Option<Made> {
    let len = vocab.piece_len(token) as u32;
    if first.len() == 1 {
        return Some(Made { len, ..Made::default() });
    }
    out.clear();
    let mut last = None;
    match first.len() {
        ..=MEDIUM => merge::short(first, rules, out, |merge| last = Some(merge)),
        _ => merge::long(first, rules, out, |merge| last = Some(merge)),
    }
    match (&out[..], last) {
        ([only], Some((left, right, rule))) if *only == token => Some(Made { left, right, rank: rule.rank + 1, len }),
        _ => None,
    }
}
