//! Long pieces in windows, where every entry encodes to itself and ranks after its parts.
//!
//! An encoding is *valid* when encoding its bytes gives it back; every stretch of a valid encoding is valid, and two
//! neighbours decide alone whether they may stand side by side (`Bpe::compatible`). So a piece need not be merged as a
//! whole. What its first bytes encode to is taken but for the last few tokens, which the bytes behind might have
//! changed; the next window starts there; and if its first token is compatible with the last one that was taken, all
//! of it together is valid, so it is the encoding. If not, the bytes behind had more of a say, and the window before is
//! done again, twice as wide.

use super::merge::Queue;
use super::rules::Rule;
use super::{Bpe, Proof};
use crate::vocab::Token;

/// The width of a window in bytes. A larger one has a lower part that is done twice, and slower merges.
const WINDOW: usize = 512;
/// The bytes at its end whose tokens are not taken.
const OPEN: usize = 32;

/// What is known of two bytes side by side.
#[derive(Clone, Copy)]
struct Pair {
    /// What joins them.
    rule: Rule,
    /// The least rank of a rule that joins the second byte alone with an entry that ends with the first.
    left: u32,
    /// The least rank of a rule that joins the first byte alone with an entry that starts with the second.
    right: u32,
}

/// All pairs of bytes. Half of all look-ups in long pieces are of such, and a large part of all merges is seen here to
/// come before whatever could come in between: until then, the two bytes can only be joined with what is beside them.
pub struct Windows {
    pairs: Vec<Pair>,
}

/// A window of which tokens were taken: where it starts, how wide it is, and where its tokens start.
#[derive(Clone, Copy)]
struct Window {
    start: usize,
    width: usize,
    tokens: usize,
}

impl Windows {
    pub fn new(bpe: &Bpe, entries: &[super::Made]) -> Self {
        let mut pairs = vec![Pair { rule: Rule::NONE, left: u32::MAX, right: u32::MAX }; 1 << 16];
        let is_byte = |token: Token| entries[token as usize].len == 1;
        for (made, token) in entries.iter().zip(0..).filter(|(made, _)| made.rank > 0) {
            let piece = bpe.vocab.piece(token);
            if is_byte(made.left) {
                let pair = &mut pairs[index(piece[0], piece[1])];
                pair.right = pair.right.min(made.rank);
            }
            if is_byte(made.right) {
                let pair = &mut pairs[index(piece[piece.len() - 2], piece[piece.len() - 1])];
                pair.left = pair.left.min(made.rank);
            }
            if made.len == 2 {
                pairs[index(piece[0], piece[1])].rule = Rule { rank: made.rank, token };
            }
        }
        Self { pairs }
    }

    /// The bytes as tokens, with those joined that surely are, as `first`.
    fn join(&self, bpe: &Bpe, bytes: &[u8], first: &mut Vec<Token>) {
        const END: Pair = Pair { rule: Rule::NONE, left: u32::MAX, right: u32::MAX };
        first.clear();
        first.resize(bytes.len() + 1, 0);
        let pair = |at: usize| bytes.get(at..at + 2).map_or(END, |two| self.pairs[index(two[0], two[1])]);
        let (mut before, mut here, mut len, mut joined) = (END, pair(0), 0, false);
        for (at, &byte) in bytes.iter().enumerate() {
            let next = pair(at + 1);
            let rank = here.rule.rank;
            let joins = (rank < before.left) & (rank <= next.right) & (rank < Rule::NONE.rank);
            // Of two that are joined the second stands behind the last token: it is written over, or cut off.
            first[len] = if joins { here.rule.token } else { bpe.byte_tokens[byte as usize] };
            len += usize::from(!joined);
            joined = joins;
            (before, here) = (here, next);
        }
        first.truncate(len);
    }

    /// Appends the tokens of a piece.
    pub fn encode(&self, bpe: &Bpe, piece: &[u8], out: &mut Vec<Token>) {
        let Proof::Proved { entries, .. } = &bpe.proof else { return };
        let first = out.len();
        let (mut queue, mut tokens) = (Queue::default(), Vec::new());
        let mut width = WINDOW;
        let mut done: Vec<Window> = Vec::new();
        let mut pos = 0;
        while pos < piece.len() {
            let bytes = &piece[pos..piece.len().min(pos + width)];
            let window = Window { start: pos, width, tokens: out.len() };
            let last = (out.len() > first).then(|| out[out.len() - 1]);
            let end = pos + bytes.len();
            // The same bytes as in the window before have the same tokens.
            if let Some(&before) = done.last().filter(|before| before.width == width && bytes.len() == width && piece[before.start..].starts_with(bytes)) {
                out.extend_from_within(before.tokens..);
                pos += pos - before.start;
            } else {
                self.join(bpe, bytes, &mut tokens);
                queue.start(&tokens, &bpe.rules);
                queue.merge(&bpe.rules, |_| {});
                out.extend(queue.tokens());
                pos = end;
                while end < piece.len() && pos + OPEN > end && pos > window.start {
                    pos -= out.pop().map_or(0, |token| entries[token as usize].len as usize);
                }
            }
            let fits = last.is_none_or(|last| out.get(window.tokens).is_some_and(|&next| bpe.compatible(entries, last, next)));
            if pos == window.start {
                width *= 2;
            } else if fits {
                done.push(window);
            } else {
                out.truncate(window.tokens);
                pos = window.start;
                width *= 2;
                if let Some(before) = done.pop() {
                    out.truncate(before.tokens);
                    pos = before.start;
                }
            }
        }
    }
}

fn index(first: u8, second: u8) -> usize {
    usize::from(first) << 8 | usize::from(second)
}
