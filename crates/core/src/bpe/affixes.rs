//! Which entries an entry starts and ends with: for each the longest, which has its own, and so all of them.

use std::cmp::Ordering;

use crate::vocab::{Token, Vocab};

pub const NONE: Token = Token::MAX;

/// The longest other entry at the start of each entry, or NONE.
pub fn prefixes(vocab: &Vocab) -> Vec<Token> {
    let head = |piece: &[u8]| {
        let mut word = [0; 8];
        let len = piece.len().min(8);
        word[..len].copy_from_slice(&piece[..len]);
        u64::from_be_bytes(word)
    };
    longest(vocab, head, <[u8]>::cmp, |piece, start| piece.starts_with(start))
}

/// The longest other entry at the end of each entry, or NONE.
pub fn suffixes(vocab: &Vocab) -> Vec<Token> {
    let tail = |piece: &[u8]| {
        let mut word = [0; 8];
        let len = piece.len().min(8);
        word[8 - len..].copy_from_slice(&piece[piece.len() - len..]);
        u64::from_le_bytes(word)
    };
    let from_the_end = |a: &[u8], b: &[u8]| a.iter().rev().cmp(b.iter().rev());
    longest(vocab, tail, from_the_end, |piece, end| piece.ends_with(end))
}

/// In order, an entry comes behind those that it starts with, and nothing that starts otherwise stands between. `word`
/// gives the first eight bytes, those that come first on top: nearly always they settle it.
fn longest(
    vocab: &Vocab,
    word: impl Fn(&[u8]) -> u64,
    order: impl Fn(&[u8], &[u8]) -> Ordering,
    starts: impl Fn(&[u8], &[u8]) -> bool,
) -> Vec<Token> {
    let mut sorted: Vec<(u64, Token, u32)> = (0..vocab.len() as Token)
        .map(|token| (word(vocab.piece(token)), token, vocab.piece_len(token).min(9) as u32))
        .collect();
    sorted.sort_unstable_by(|a, b| match a.0.cmp(&b.0) {
        Ordering::Equal => order(vocab.piece(a.1), vocab.piece(b.1)),
        other => other,
    });
    let mut found = vec![NONE; sorted.len()];
    let mut open: Vec<(u64, Token, u32)> = Vec::new();
    for &(word, token, len) in &sorted {
        while let Some(&(other_word, other, other_len)) = open.last() {
            let is_short = other_len <= 8;
            let same = (word ^ other_word).leading_zeros() >= 8 * other_len.min(8);
            if same && (if is_short { len >= other_len } else { starts(vocab.piece(token), vocab.piece(other)) }) {
                found[token as usize] = other;
                break;
            }
            open.pop();
        }
        open.push((word, token, len));
    }
    found
}
