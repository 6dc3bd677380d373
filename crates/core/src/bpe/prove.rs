//! The proof at load: does every entry encode to itself, and does it rank after its parts?
//!
//! Where it does, any two tokens of an encoding that some rule would have joined must have been joined by the last
//! merge of the entry they spell, so one rule an entry is enough, and tiktoken's ranks and a merge list mean the same
//! whenever their rules are the same. Checked against the plain loop in the tests, on vocabularies that pass and on
//! ones that do not. The one pass over long pieces needs the order as well: it takes the rank of an entry for the
//! time at which it is made.

use super::rules::Rules;
use super::{merge, Proof, SHORT};
use crate::vocab::{Token, Vocab};

pub fn prove(vocab: &Vocab, byte_tokens: &[Token; 256], rules: &Rules) -> Proof {
    let len = vocab.len();
    let (mut parts, mut ranks) = (vec![(0, 0); len], vec![0; len]);
    let (mut failed, mut count) = (None, 0);
    let mut out = Vec::new();
    for token in 0..len as Token {
        let piece = vocab.piece(token);
        if piece.len() == 1 {
            continue;
        }
        out.clear();
        let mut last = None;
        match piece.len() {
            ..=SHORT => merge::short(piece, byte_tokens, rules, &mut out, |merge| last = Some(merge)),
            _ => merge::long(piece, byte_tokens, rules, &mut out, |merge| last = Some(merge)),
        }
        match (&out[..], last) {
            ([only], Some((left, right, rule))) if *only == token => {
                parts[token as usize] = (left, right);
                ranks[token as usize] = rule.rank + 1;
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
        let (left, right) = parts[token];
        ranks[token] > 0 && ranks[token] <= ranks[left as usize].max(ranks[right as usize])
    };
    let out_of_order = (0..len).find(early).map(|token| token as Token);
    Proof::Proved { parts, ranks, out_of_order }
}
