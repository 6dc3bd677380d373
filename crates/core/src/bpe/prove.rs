//! The proof at load: does every entry encode to itself, and does it rank after its parts?
//!
//! Where it does, any two tokens of an encoding that some rule would have joined must have been joined by the last
//! merge of the entry they spell, so one rule an entry is enough, and tiktoken's ranks and a merge list mean the same
//! whenever their rules are the same. Checked against the plain loop in the tests, on vocabularies that pass and on
//! ones that do not. The windows of long pieces need the order as well: they take the rank of an entry for the
//! time at which it is made.

use std::sync::OnceLock;

use super::affixes;
use super::rules::{Merge, Rule, Rules};
use super::{merge, Made, Proof, SHORT};
use crate::error::{Error, Result};
use crate::memory::{prefetch, Table};
use crate::parallel::both;
use crate::vocab::{Token, Vocab};

/// How each entry is made that encodes to itself, where each of these ranks after its parts: what `prove` would find,
/// several times as fast. Where it is otherwise, or where only `prove` can tell, some entries that may not.
///
/// By induction over the ranks, the lowest first. Let what is made so far be proved. Of the next entry's bytes the rules
/// so far make one encoding; a rule that joins two entries made before makes the new one exactly if these two are that
/// encoding, which they are if they may stand side by side. If they may not, or if the entry is made already, the rule
/// can never fire: what stands on the bytes of its pair has, by its turn, become what these bytes alone encode to. The
/// same is true of a rule that joins what is made later, if the entry is made before that. What no rule has made when all
/// had their turns no text can give, and a rule that joins it never fires.
///
/// `merges` is None where entries are joined by their ranks.
pub fn in_order(vocab: &Vocab, merges: Option<&[Merge]>) -> std::result::Result<Proven, Vec<Token>> {
    let mut proving =
        Proving { entries: Table::filled(Made::default(), vocab.len()), rules: Rules::with_room(vocab.len()) };
    (0..).zip(proving.entries.iter_mut()).for_each(|(token, made)| made.len = vocab.piece_len(token) as u32);
    let is_in_order = match merges {
        None => proving.by_ranks(vocab),
        Some(merges) => proving.by_merges(merges),
    };
    let not_made = || (0..vocab.len() as Token).filter(|&token| !proving.is_made(token));
    if !is_in_order {
        return Err(not_made().take(SUSPECTS).collect());
    }
    let failed = not_made().next().map(|example| (example, not_made().count()));
    Ok(Proven { failed, entries: proving.entries, rules: proving.rules })
}

/// How each entry is made, and the rules that do it, one an entry.
pub struct Proven {
    pub entries: Table<Made>,
    pub rules: Rules,
    /// An entry that does not encode to itself, and how many there are.
    pub failed: Option<(Token, usize)>,
}

/// What is known of a model from before.
pub enum Known {
    Proven(Proven),
    /// That it cannot be proved.
    Refuted,
}

impl Proven {
    /// From what `Bpe::made` gave for the entries with these offsets. It may come from a file, so no row may lead out of
    /// the vocabulary or in a circle.
    pub fn again(offsets: &[u64], made: &[u32]) -> Result<Self> {
        let len_of = |at: usize| offsets.get(at + 1)?.checked_sub(*offsets.get(at)?);
        let of_row = |(at, row): (usize, &[u32])| {
            let (left, right, rank) = (row[0], row[1], row[2]);
            let len = u32::try_from(len_of(at)?).ok()?;
            let is_before = |part: u32| made.get(part as usize * 3 + 2).is_some_and(|&part| part < rank);
            let is_sound = match rank {
                0 => len == 1,
                _ => {
                    let parts = len_of(left as usize)?.checked_add(len_of(right as usize)?);
                    is_before(left) && is_before(right) && parts == Some(len.into())
                }
            };
            is_sound.then_some(Made { left, right, rank, len })
        };
        let mut entries = Table::filled(Made::default(), made.len() / 3);
        let rows = made.chunks_exact(3).enumerate().map_while(of_row);
        let sound = entries.iter_mut().zip(rows).map(|(entry, row)| *entry = row).count();
        if sound != entries.len() || made.len() != sound * 3 || sound + 1 != offsets.len() {
            return Err(Error::format("how the entries are made does not fit the vocabulary"));
        }
        Ok(Self { rules: Rules::from_entries(&entries), entries, failed: None })
    }
}

/// So many cuts before they are looked at, what is known of their parts is read ahead.
const AHEAD: usize = 16;

/// A proof on its way: entries that are not made yet have neither a rank nor the length of a byte.
struct Proving {
    entries: Table<Made>,
    rules: Rules,
}

impl Proving {
    fn is_made(&self, token: Token) -> bool {
        let made = &self.entries[token as usize];
        made.rank > 0 || made.len == 1
    }

    /// Makes an entry by a rule, if the rules so far, none of which is for the pair that it joins, leave this pair.
    fn makes(&mut self, left: Token, right: Token, rule: Rule) -> bool {
        let makes = parts_are_compatible(&self.rules, &self.entries, left, right);
        if makes {
            let made = &mut self.entries[rule.token as usize];
            *made = Made { left, right, rank: rule.rank + 1, len: made.len };
            self.rules.add(left, right, Rule { rank: made.rank, token: rule.token });
        }
        makes
    }

    /// Whether each entry is made of two that rank before it.
    fn by_ranks(&mut self, vocab: &Vocab) -> bool {
        const STEP: Token = 1 << 14;
        let (prefixes, suffixes) = both(|| affixes::prefixes(vocab), || affixes::suffixes(vocab));
        let len = vocab.len() as Token;
        let step = |from: Token| from..(from + STEP).min(len);
        let cuts = |from| cuts(vocab, &prefixes, &suffixes, step(from));
        let mut ready = cuts(0);
        // While a step is proved, the next is prepared.
        (0..len).step_by(STEP as usize).all(|from| {
            let next = || if from + STEP < len { cuts(from + STEP) } else { Vec::new() };
            let (next, is_proved) = both(next, || self.by_cuts(step(from), &ready));
            ready = next;
            is_proved
        })
    }

    /// The same of some entries, with all their cuts.
    fn by_cuts(&mut self, mut tokens: std::ops::Range<Token>, cuts: &[(Token, Token, Token)]) -> bool {
        let mut cuts = cuts.iter();
        let mut next = cuts.next();
        tokens.all(|token| {
            let mut made = self.is_made(token);
            if let Some(&(_, start, end)) = cuts.as_slice().get(AHEAD) {
                prefetch(&self.entries, start as usize);
                prefetch(&self.entries, end as usize);
                self.rules.prepare(start, end);
            }
            while let Some(&(_, start, end)) = next.filter(|&&(whole, ..)| whole == token) {
                made = made || self.makes(start, end, Rule { rank: token, token });
                next = cuts.next();
            }
            made
        })
    }

    /// Whether each entry that is made at all is made of two that were made before it.
    fn by_merges(&mut self, merges: &[Merge]) -> bool {
        let mut early = Vec::new();
        for &(left, right, rule) in merges {
            if self.is_made(rule.token) {
                continue;
            }
            if !self.is_made(left) || !self.is_made(right) {
                early.push((left, right, rule.token));
            } else {
                self.makes(left, right, rule);
            }
        }
        let when = |token: Token| self.is_made(token).then(|| self.entries[token as usize].rank);
        early.iter().all(|&(left, right, token)| match (when(left), when(right)) {
            (Some(left), Some(right)) => when(token).is_some_and(|rank| rank < left.max(right)),
            _ => true,
        })
    }
}

/// All ways to cut entries into two entries that rank before them, as (entry, left, right): entry by entry, and of each
/// the parts that rank lowest first, for in nine entries of ten it is these.
fn cuts(
    vocab: &Vocab,
    prefixes: &[Token],
    suffixes: &[Token],
    tokens: std::ops::Range<Token>,
) -> Vec<(Token, Token, Token)> {
    let mut cuts = Vec::with_capacity(tokens.len() * 3);
    let mut ends = Vec::new();
    for token in tokens {
        let is_before = |part: Token| part < token || vocab.piece_len(part) == 1;
        ends.clear();
        let mut end = suffixes[token as usize];
        while end != affixes::NONE {
            ends.push((vocab.piece_len(end), end));
            end = suffixes[end as usize];
        }
        // The longest start goes with the shortest end.
        let (first, len) = (cuts.len(), vocab.piece_len(token));
        let mut start = prefixes[token as usize];
        while start != affixes::NONE {
            let rest = len - vocab.piece_len(start);
            while ends.last().is_some_and(|&(len, _)| len < rest) {
                ends.pop();
            }
            if let Some(&(_, end)) = ends.last().filter(|&&(len, end)| len == rest && is_before(end)) {
                if is_before(start) {
                    cuts.push((token, start, end));
                }
            }
            start = prefixes[start as usize];
        }
        if cuts.len() > first + 1 {
            cuts[first..].sort_unstable_by_key(|&(_, start, end)| (u64::from(start) + u64::from(end), start));
        }
    }
    cuts
}

/// Whether the tokens `a` and `b` stay as they are when their bytes are encoded side by side.
#[inline]
pub fn compatible(rules: &Rules, entries: &[Made], a: Token, b: Token) -> bool {
    rules.get(a, b).is_none() && parts_are_compatible(rules, entries, a, b)
}

/// The same for two that no rule joins: undo the merges of both at the border, latest first, and see whether the merge
/// across the border would have come before.
#[inline]
fn parts_are_compatible(rules: &Rules, entries: &[Made], mut a: Token, mut b: Token) -> bool {
    loop {
        let (made_a, made_b) = (entries[a as usize], entries[b as usize]);
        let limit;
        if made_a.rank > made_b.rank {
            limit = made_a.rank;
            a = made_a.right;
        } else if made_b.rank == 0 {
            return true; // two bytes
        } else {
            limit = made_b.rank + 1; // of two equal merges the left one comes first
            b = made_b.left;
        }
        if rules.get(a, b).is_some_and(|rule| rule.rank < limit) {
            return false;
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

/// So many entries are tried before all are.
const SUSPECTS: usize = 64;

/// The proof, and the rules that are needed. If one of the `suspects` fails, the others need not be tried.
pub fn prove(vocab: &Vocab, byte_tokens: &[Token; 256], rules: Rules, suspects: &[Token]) -> (Proof, Rules) {
    if try_all(vocab, byte_tokens, &rules, suspects.iter().copied()).contains(&None) {
        return (Proof::Refuted(OnceLock::new()), rules);
    }
    let len = vocab.len();
    let half = len as Token / 2;
    let tried = |tokens| try_all(vocab, byte_tokens, &rules, tokens);
    let (low, high) = both(|| tried(0..half), || tried(half..len as Token));
    if low.contains(&None) || high.contains(&None) {
        return (Proof::Refuted(OnceLock::new()), rules);
    }
    let mut entries = Table::filled(Made::default(), len);
    entries.iter_mut().zip(low.iter().chain(&high).flatten()).for_each(|(entry, &made)| *entry = made);
    let early = |&token: &usize| {
        let Made { left, right, rank, .. } = entries[token];
        rank > 0 && rank <= entries[left as usize].rank.max(entries[right as usize].rank)
    };
    let out_of_order = (0..len).find(early).map(|token| token as Token);
    let needed = Rules::from_entries(&entries);
    (Proof::Proved { entries, out_of_order }, needed)
}

/// The first entry that does not encode to itself, and how many there are.
pub fn failed(vocab: &Vocab, byte_tokens: &[Token; 256], rules: &Rules) -> Option<(Token, usize)> {
    let tried = try_all(vocab, byte_tokens, rules, 0..vocab.len() as Token);
    let example = tried.iter().position(Option::is_none)?;
    Some((example as Token, tried.iter().filter(|made| made.is_none()).count()))
}

/// How entries are made, by the loop.
fn try_all(
    vocab: &Vocab,
    byte_tokens: &[Token; 256],
    rules: &Rules,
    tokens: impl Iterator<Item = Token>,
) -> Vec<Option<Made>> {
    let mut out = Vec::new();
    let made = tokens.map(|token| {
        let bytes = vocab.piece(token).iter().map(|&byte| byte_tokens[byte as usize]);
        last_merge(vocab, bytes, rules, token, &mut out)
    });
    made.collect()
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
        ..=SHORT => merge::short(first, rules, out, |merge| last = Some(merge)),
        _ => merge::long(first, rules, out, |merge| last = Some(merge)),
    }
    match (&out[..], last) {
        ([only], Some((left, right, rule))) if *only == token => Some(Made { left, right, rank: rule.rank + 1, len }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules::merges;
    use super::*;

    /// A fixed sequence that looks random.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, n: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((self.0 >> 33) % n as u64) as usize
        }
    }

    /// The bytes a, b, c and strings made of earlier entries, mostly in that order.
    fn vocabulary(dice: &mut Dice) -> Vocab {
        let mut pieces: Vec<Vec<u8>> = b"abc".iter().map(|&byte| vec![byte]).collect();
        for _ in 0..dice.below(14) {
            let parts = [dice.below(pieces.len()), dice.below(pieces.len())];
            let piece = parts.map(|part| &pieces[part][..]).concat();
            if !pieces.contains(&piece) {
                pieces.push(piece);
            }
        }
        if dice.below(3) == 0 {
            let (a, b) = (dice.below(pieces.len()), dice.below(pieces.len()));
            pieces.swap(a, b);
        }
        if pieces.len() > 4 && dice.below(4) == 0 {
            let gone = 3 + dice.below(pieces.len() - 3);
            if pieces[gone].len() > 1 {
                pieces.remove(gone);
            }
        }
        let mut offsets = vec![0];
        offsets.extend(pieces.iter().scan(0, |end, piece| {
            *end += piece.len() as u64;
            Some(*end)
        }));
        Vocab::new(pieces.concat(), &offsets, (0..pieces.len() as u32).collect()).unwrap()
    }

    fn merge_list(vocab: &Vocab, dice: &mut Dice) -> Vec<(u32, u32)> {
        let tokens = 0..vocab.len() as Token;
        let makes = |&(left, right): &(Token, Token)| vocab.find(&[vocab.piece(left), vocab.piece(right)].concat());
        let pairs = tokens.clone().flat_map(|left| tokens.clone().map(move |right| (left, right)));
        let mut pairs: Vec<_> = pairs.filter(|pair| makes(pair).is_some()).collect();
        pairs.sort_by_key(makes);
        for _ in 0..dice.below(4) {
            let (a, b) = (dice.below(pairs.len().max(1)), dice.below(pairs.len().max(1)));
            match dice.below(3) {
                _ if pairs.is_empty() => {}
                0 => pairs.swap(a, b),
                _ => drop(pairs.remove(a)),
            }
        }
        pairs
    }

    fn byte_tokens(vocab: &Vocab) -> [Token; 256] {
        std::array::from_fn(|byte| vocab.find(&[byte as u8]).unwrap_or(super::super::NO_TOKEN))
    }

    #[test]
    fn the_fast_proof_finds_what_the_loop_finds() {
        let mut dice = Dice(1);
        let (mut found, mut missed) = ([0; 5], 0);
        for _ in 0..10_000 {
            let vocab = vocabulary(&mut dice);
            let by_rank = dice.below(2) == 0;
            let pairs = merge_list(&vocab, &mut dice);
            let merges = (!by_rank).then(|| merges(&vocab, &pairs).unwrap());
            let rules = merges.as_deref().map_or_else(|| Rules::from_ranks(&vocab), Rules::from_merges);
            let fast = in_order(&vocab, merges.as_deref());
            let bytes = byte_tokens(&vocab);
            let suspects = fast.as_ref().err().cloned().unwrap_or_default();
            let (proof, rules) = prove(&vocab, &bytes, rules, &suspects);
            match proof {
                Proof::Proved { entries, out_of_order: None } => {
                    let Ok(proven) = fast else {
                        missed += 1;
                        continue;
                    };
                    assert_eq!((&proven.entries[..], proven.failed), (&entries[..], None));
                    let offsets: Vec<u64> = (0..=vocab.len())
                        .map(|at| (0..at as Token).map(|token| vocab.piece_len(token) as u64).sum())
                        .collect();
                    let made: Vec<_> = entries.iter().flat_map(|made| [made.left, made.right, made.rank]).collect();
                    assert_eq!(Proven::again(&offsets, &made).unwrap().entries[..], entries[..]);
                    found[usize::from(by_rank)] += 1;
                }
                Proof::Refuted(_) if fast.is_ok() => {
                    let proven = fast.ok().unwrap();
                    assert_eq!(proven.failed, failed(&vocab, &bytes, &rules));
                    assert_eq!(proven.failed, failed(&vocab, &bytes, &proven.rules));
                    for _ in 0..4 {
                        let text: Vec<Token> = (0..dice.below(12) + 1).map(|_| dice.below(3) as Token).collect();
                        let (mut all, mut few) = (Vec::new(), Vec::new());
                        merge::short(
                            text.iter().map(|&at| bytes[b"abc"[at as usize] as usize]),
                            &rules,
                            &mut all,
                            |_| {},
                        );
                        merge::short(
                            text.iter().map(|&at| bytes[b"abc"[at as usize] as usize]),
                            &proven.rules,
                            &mut few,
                            |_| {},
                        );
                        assert_eq!(all, few);
                    }
                    found[4] += 1;
                }
                _ => {
                    assert!(fast.is_err());
                    found[2 + usize::from(by_rank)] += 1;
                }
            }
        }
        assert!(found.iter().all(|&times| times > 500) && missed < 50, "{found:?} {missed}");
    }

    #[test]
    fn a_proof_that_leads_astray_is_refused() {
        // a, b, ab, abb
        let offsets = [0, 1, 2, 4, 7];
        let made = [[0, 0, 0], [0, 0, 0], [0, 1, 1], [2, 1, 2]];
        let again = |offsets: &[u64], made: &[[u32; 3]]| Proven::again(offsets, made.as_flattened());
        assert!(again(&offsets, &made).is_ok());
        assert!(again(&offsets, &made[..3]).is_err());
        assert!(again(&offsets[..4], &made).is_err());
        for (token, row) in [
            (3, [2, 4, 2]),
            (3, [2, u32::MAX, 2]),
            (3, [2, 0, 1]),
            (3, [3, 1, 2]),
            (3, [0, 1, 2]),
            (3, [0, 0, 0]),
            (2, [3, 1, 1]),
            (0, [0, 0, 1]),
        ] {
            let mut wrong = made;
            wrong[token] = row;
            assert!(again(&offsets, &wrong).is_err(), "{row:?}");
        }
    }
}
