//! The proof at load: does every entry encode to itself, and does it rank after its parts?
//!
//! Where it does, any two tokens of an encoding that some rule would have joined must have been joined by the last
//! merge of the entry they spell, so one rule an entry is enough, and tiktoken's ranks and a merge list mean the same
//! whenever their rules are the same. Checked against the plain loop in the tests, on vocabularies that pass and on
//! ones that do not. The one pass over long pieces needs the order as well: it takes the rank of an entry for the
//! time at which it is made.

use super::rules::Rules;
use super::{merge, Made, Proof, MEDIUM};
use crate::vocab::{Token, Vocab};

pub fn prove(vocab: &Vocab, byte_tokens: &[Token; 256], rules: &Rules) -> Proof {
    let len = vocab.len();
    let mut entries = vec![Made::default(); len];
    let (mut failed, mut count) = (None, 0);
    let mut out = Vec::new();
    for token in 0..len as Token {
        let bytes = vocab.piece(token).iter().map(|&byte| byte_tokens[byte as usize]);
        match last_merge(vocab, bytes, rules, token, &mut out) {
            Some(made) => entries[token as usize] = made,
            None => {
                failed = failed.or(Some(token));
                count += 1;
            }
        }
    }
    if let Some(example) = failed {
        return Proof::Refuted { example, count };
    }
    let early = |&token: &usize| {
        let Made { left, right, rank, .. } = entries[token];
        rank > 0 && rank <= entries[left as usize].rank.max(entries[right as usize].rank)
    };
    let out_of_order = (0..len).find(early).map(|token| token as Token);
    Proof::Proved { entries, out_of_order }
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
