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
/// gives the first eight bytes, those that come first on top: as much of it as leaves room for the token settles nearly
/// everything, and numbers are sorted fast.
fn longest(
    vocab: &Vocab,
    word: impl Fn(&[u8]) -> u64,
    order: impl Fn(&[u8], &[u8]) -> Ordering,
    starts: impl Fn(&[u8], &[u8]) -> bool,
) -> Vec<Token> {
    let low = (1u64 << (Token::BITS - (vocab.len() as Token).leading_zeros())) - 1;
    let key = |token| (word(vocab.piece(token)) & !low) | u64::from(token);
    let piece = |key: u64| vocab.piece((key & low) as Token);
    let mut sorted: Vec<u64> = (0..vocab.len() as Token).map(key).collect();
    sorted.sort_unstable();
    for same in sorted.chunk_by_mut(|a, b| a & !low == b & !low).filter(|same| same.len() > 1) {
        same.sort_unstable_by(|&a, &b| order(piece(a), piece(b)));
    }
    let mut found = vec![NONE; sorted.len()];
    let mut open: Vec<(Token, &[u8])> = Vec::new();
    for key in sorted {
        let (token, piece) = ((key & low) as Token, piece(key));
        while let Some(&(other, start)) = open.last() {
            if starts(piece, start) {
                found[token as usize] = other;
                break;
            }
            open.pop();
        }
        open.push((token, piece));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_starts_and_ends_are_found() {
        let pieces: Vec<&[u8]> = vec![
            b"a",
            b"\0",
            b"a\0",
            b"\0a",
            b"ab",
            b"abcdefgh",
            b"abcdefghi",
            b"bcdefghi",
            b"abcdefghij",
            b"hij",
            b"j",
            b"abcdefghia",
            b"\0\0\0\0\0\0\0\0\0a",
            b"\xff\xffa",
            b"\xff",
            b"aaaaaaaaaaaaa",
            b"aaaaaaaaa",
            b"aaaaaaaaaa",
        ];
        let mut offsets = vec![0];
        offsets.extend(pieces.iter().scan(0, |end, piece| {
            *end += piece.len() as u64;
            Some(*end)
        }));
        let vocab = Vocab::new(pieces.concat(), &offsets, (0..pieces.len() as u32).collect()).expect("a vocabulary");
        let longest = |piece: &&[u8], is: fn(&[u8], &[u8]) -> bool| {
            let parts = pieces.iter().enumerate().filter(|(_, part)| *part != piece && is(piece, part));
            parts.max_by_key(|(_, part)| part.len()).map_or(NONE, |(token, _)| token as Token)
        };
        let starts: Vec<_> = pieces.iter().map(|piece| longest(piece, |a, b| a.starts_with(b))).collect();
        let ends: Vec<_> = pieces.iter().map(|piece| longest(piece, |a, b| a.ends_with(b))).collect();
        assert_eq!((prefixes(&vocab), suffixes(&vocab)), (starts, ends));
    }
}
