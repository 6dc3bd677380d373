//! The proof at load: does every entry encode to itself, and does it rank after its parts?
//!
//! Where it does, any two tokens of an encoding that some rule would have joined must have been joined by the last
//! merge of the entry they spell, so one rule an entry is enough, and tiktoken's ranks and a merge list mean the same
//! whenever their rules are the same. Checked against the plain loop in the tests, on vocabularies that pass and on
//! ones that do not. The one pass over long pieces needs the order as well: it takes the rank of an entry for the
//! time at which it is made.

use super::rules::Rules;
use super::{merge, Made, Proof};
use crate::vocab::{Token, Vocab};

pub fn prove(vocab: &Vocab, byte_tokens: &[Token; 256], rules: &Rules) -> Proof {
    let len = vocab.len();
    let mut entries = vec![Made::default(); len];
    let (mut failed, mut count) = (None, 0);
    let mut out = Vec::new();
    for token in 0..len as Token {
        let piece = vocab.piece(token);
        entries[token as usize].len = piece.len() as u32;
        if piece.len() == 1 {
            continue;
        }
        out.clear();
        let mut last = None;
        if piece.len() <= 4096 {
            let bytes = piece.iter().map(|&byte| byte_tokens[byte as usize]);
            merge::short(bytes, rules, &mut out, |merge| last = Some(merge));
        }
        match (&out[..], last) {
            ([only], Some((left, right, rule))) if *only == token => {
                entries[token as usize] = Made { left, right, rank: rule.rank + 1, len: piece.len() as u32 };
            }
            _ => {
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
