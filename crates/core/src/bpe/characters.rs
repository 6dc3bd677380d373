//! Byte-pair encoding over characters with all that HF tokenizers' model of that name can be set to: prefixes of
//! what continues a word, unknown characters that are dropped, fused, or become their bytes.
//!
//! A piece starts as its characters; the rest is the merge loop of [`super`], on tokens that know how much of the text they
//! stand for, as what is unknown does not say that.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::rules::Rule;
use crate::error::{Error, Result};
use crate::hash::IntMap;
use crate::unicode::char_len;
use crate::vocab::{show, Token, Vocab};

/// How a spec describes it.
pub struct CharacterRow {
    /// In front of the entries of all characters but the first of a piece.
    pub prefix: Vec<u8>,
    /// Behind the entry of the last.
    pub suffix: Vec<u8>,
    /// The id that stands for a character without an entry; None: such characters are dropped.
    pub unk: Option<u32>,
    /// Unknown characters side by side are one token.
    pub fuse_unk: bool,
    /// A character without an entry becomes `<0x00>` … of its bytes, if all of these are entries.
    pub byte_fallback: bool,
    pub ignore_merges: bool,
}

pub struct CharacterBpe {
    pub vocab: Vocab,
    row: CharacterRow,
    unk: Option<Token>,
    bytes: Vec<Option<Token>>,
    /// By the pair, `left << 32 | right`.
    rules: IntMap<u64, Rule>,
}

/// A token, and how many bytes of the text it stands for.
type Part = (Token, usize);

impl CharacterBpe {
    /// `merges` are pairs of ids, the earliest first; of one that stands there twice, the last counts.
    pub fn new(vocab: Vocab, merges: &[(u32, u32)], row: CharacterRow) -> Result<Self> {
        let token =
            |id: u32| vocab.token_of_id(id).ok_or_else(|| Error::format(format!("the vocabulary has no id {id}")));
        let unk = row.unk.map(token).transpose()?;
        let mut rules = IntMap::default();
        for (&(left, right), rank) in merges.iter().zip(0..) {
            let (left, right) = (token(left)?, token(right)?);
            let behind = vocab.piece(right).get(row.prefix.len()..);
            let joined = behind.map(|behind| [vocab.piece(left), behind].concat());
            let Some(token) = joined.as_ref().and_then(|joined| vocab.find(joined)) else {
                let shown = show(joined.as_deref().unwrap_or(vocab.piece(right)));
                return Err(Error::format(format!("merge {rank} makes {shown}, which is no entry of the vocabulary")));
            };
            rules.insert(key(left, right), Rule { rank, token });
        }
        let bytes = (0..=255).map(|byte: u8| vocab.find(format!("<{byte:#04X}>").as_bytes())).collect();
        Ok(Self { unk, bytes, rules, vocab, row })
    }

    /// What the first rule that makes each entry joins.
    pub fn last_merges(&self) -> Vec<Option<(Token, Token)>> {
        let mut first: Vec<Option<(u32, Token, Token)>> = vec![None; self.vocab.len()];
        for (&pair, rule) in &self.rules {
            let made = &mut first[rule.token as usize];
            if made.is_none_or(|(rank, ..)| rule.rank < rank) {
                *made = Some((rule.rank, (pair >> 32) as Token, pair as Token));
            }
        }
        first.into_iter().map(|made| made.map(|(_, left, right)| (left, right))).collect()
    }

    /// Gives `emit` the tokens of a piece, and where each ends.
    pub fn encode(&self, piece: &[u8], mut emit: impl FnMut(Token, usize)) {
        if piece.is_empty() {
            return;
        }
        if let Some(token) = self.vocab.find(piece).filter(|_| self.row.ignore_merges) {
            return emit(token, piece.len());
        }
        let mut end = 0;
        for (token, len) in self.merged(self.first(piece)) {
            end += len;
            emit(token, end.min(piece.len()));
        }
    }

    /// What a piece starts as.
    fn first(&self, piece: &[u8]) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::with_capacity(piece.len());
        // Unknown characters that are not handed on yet: they wait for one that is known, and bytes pass them.
        let mut unknown: Option<Part> = None;
        let (mut at, mut spelled, mut dropped) = (0, Vec::new(), 0);
        while at < piece.len() {
            let len = char_len(piece, at);
            spelled.clear();
            spelled.extend_from_slice(if at > 0 { &self.row.prefix } else { &[] });
            spelled.extend_from_slice(&piece[at..at + len]);
            spelled.extend_from_slice(if at + len == piece.len() { &self.row.suffix } else { &[] });
            at += len;
            if let Some(token) = self.vocab.find(&spelled) {
                parts.extend(unknown.take());
                parts.push((token, len + dropped));
                dropped = 0;
                continue;
            }
            if self.row.byte_fallback {
                let tokens = spelled.iter().map(|&byte| self.bytes[usize::from(byte)]).collect::<Option<Vec<_>>>();
                if let Some(tokens) = tokens {
                    let last = tokens.len() - 1;
                    let own =
                        |number| if number == last { len.saturating_sub(last) } else { usize::from(number < len) };
                    parts.extend(tokens.into_iter().enumerate().map(|(number, token)| (token, own(number))));
                    continue;
                }
            }
            match (self.unk, &mut unknown) {
                (None, _) => dropped += len,
                (Some(_), Some(fused)) if self.row.fuse_unk => fused.1 += len,
                (Some(unk), waiting) => parts.extend(waiting.replace((unk, len))),
            }
        }
        parts.extend(unknown);
        if let Some(last) = parts.last_mut() {
            last.1 += dropped;
        }
        parts
    }

    /// The pair with the lowest rank, the leftmost of equals, is merged, again and again. Tokens stand in a list of which
    /// each knows its neighbours; a pair that waits in the heap and is gone meanwhile is passed over.
    fn merged(&self, mut parts: Vec<Part>) -> Vec<Part> {
        const GONE: Token = Token::MAX;
        let len = parts.len();
        let (mut before, mut after): (Vec<usize>, Vec<usize>) =
            ((0..len).map(|at| at.wrapping_sub(1)).collect(), (1..=len).collect());
        let rule = |left: Token, right: Token| self.rules.get(&key(left, right)).copied();
        let mut heap: BinaryHeap<Reverse<(u32, usize, Token, Token)>> = (1..len)
            .filter_map(|at| {
                let (left, right) = (parts[at - 1].0, parts[at].0);
                rule(left, right).map(|rule| Reverse((rule.rank, at - 1, left, right)))
            })
            .collect();
        while let Some(Reverse((_, at, left, right))) = heap.pop() {
            let next = after[at];
            if next >= len || (parts[at].0, parts[next].0) != (left, right) {
                continue;
            }
            let Some(Rule { token, .. }) = rule(left, right) else { continue };
            parts[at] = (token, parts[at].1 + parts[next].1);
            parts[next].0 = GONE;
            after[at] = after[next];
            if let Some(back) = before.get_mut(after[at]) {
                *back = at;
            }
            let beside = [(before[at] < len).then(|| before[at]), Some(at)];
            for left_at in beside.into_iter().flatten().filter(|&left_at| after[left_at] < len) {
                let (left, right) = (parts[left_at].0, parts[after[left_at]].0);
                heap.extend(rule(left, right).map(|rule| Reverse((rule.rank, left_at, left, right))));
            }
        }
        parts.retain(|part| part.0 != GONE);
        parts
    }

    /// The marker behind the last character of a piece; empty where there is none.
    pub fn end_of_word(&self) -> &[u8] {
        &self.row.suffix
    }

    /// Whether a piece may have no tokens.
    pub fn drops(&self) -> bool {
        self.unk.is_none()
    }

    /// Rows of what `plan()` shows: step, how, why.
    pub fn plan(&self) -> Vec<(String, String, String)> {
        let row = |step: &str, how: &str, why: &str| (step.to_owned(), how.to_owned(), why.to_owned());
        let unknown = match (self.row.byte_fallback, self.unk) {
            (true, _) => "its bytes, if all are entries",
            (false, None) => "dropped",
            (false, Some(_)) if self.row.fuse_unk => "one token for a run of them",
            (false, Some(_)) => "one token each",
        };
        vec![
            row("piece", "starts as its characters, merged pair by pair from a queue", "the general way"),
            row("unknown character", unknown, "the model says so"),
        ]
    }
}

fn key(left: Token, right: Token) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}
