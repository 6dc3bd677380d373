//! Long pieces in windows, where every entry encodes to itself and ranks after its parts.
//!
//! An encoding is *valid* when encoding its bytes gives it back; every stretch of a valid encoding is valid, and two
//! neighbours decide alone whether they may stand side by side (`Bpe::compatible`). So a piece need not be merged as a
//! whole. What its first bytes encode to is taken but for the last few tokens, which the bytes behind might have
//! changed; the next window starts there; and if its first token is compatible with the last one that was taken, all
//! of it together is valid, so it is the encoding. If not, what the window before gave is taken back, and it is done
//! again twice as wide, as are all after it: so this can happen only a few times in a piece.
//!
//! After H. van Antwerpen and A. Neubeck, "So many tokens, so little time" (GitHub, 2024), who show what is valid.

use super::merge::Queue;
use super::rules::Rule;
use super::{Bpe, Made};
use crate::vocab::{Token, Vocab};

/// The least width of a window in bytes. A wider one has less that is done twice, and slower merges.
const WIDTH: usize = 512;
/// So many bytes at its end are left to the next one. Real vocabularies need about ten.
const OPEN: usize = 32;

/// A window of which tokens were taken: where it starts, how wide it was, and where its tokens start.
#[derive(Clone, Copy)]
struct Window {
    start: usize,
    width: usize,
    tokens: usize,
}

/// Appends the tokens of a piece.
pub fn encode(bpe: &Bpe, entries: &[Made], piece: &[u8], out: &mut Vec<Token>) {
    encode_with(bpe, entries, piece, out, WIDTH, OPEN);
}

fn encode_with(bpe: &Bpe, entries: &[Made], piece: &[u8], out: &mut Vec<Token>, mut width: usize, open: usize) {
    let first = out.len();
    let (mut queue, mut tokens) = (Queue::default(), Vec::new());
    let mut taken: Vec<Window> = Vec::new();
    let mut pos = 0;
    while pos < piece.len() {
        let end = piece.len().min(pos + width);
        let bytes = &piece[pos..end];
        let window = Window { start: pos, width, tokens: out.len() };
        match taken.last() {
            // The same bytes have the same tokens, and the same of them are taken.
            Some(before)
                if (before.width, end < piece.len()) == (width, true) && piece[before.start..].starts_with(bytes) =>
            {
                out.extend_from_within(before.tokens..);
                pos += pos - before.start;
            }
            _ => {
                match bpe.pairs(entries, bytes.len()) {
                    Some(pairs) => pairs.join(bpe, bytes, &mut tokens),
                    None => {
                        tokens.clear();
                        tokens.extend(bpe.start(bytes));
                    }
                }
                queue.start(&tokens, &bpe.rules);
                queue.merge(&bpe.rules, |_| {});
                out.extend(queue.tokens());
                pos = end;
                while end < piece.len() && pos + open > end && pos > window.start {
                    pos -= out.pop().map_or(0, |token| entries[token as usize].len as usize);
                }
            }
        }
        let fits =
            |&at: &usize| at == first || out.get(at).is_none_or(|&next| bpe.compatible(entries, out[at - 1], next));
        if pos > window.start && fits(&window.tokens) {
            taken.push(window);
            continue;
        }
        // Nothing was taken, as a token does not end in time, or it must be taken back.
        let again = if pos > window.start { taken.pop().unwrap_or(window) } else { window };
        out.truncate(again.tokens);
        pos = again.start;
        width *= 2;
    }
}

/// What is known of two bytes side by side.
#[derive(Clone, Copy)]
struct Pair {
    /// What joins them.
    rule: Rule,
    /// The least rank of a rule that joins the second byte alone with an entry that ends with the first.
    on_left: u32,
    /// The least rank of a rule that joins the first byte alone with an entry that starts with the second.
    on_right: u32,
}

/// All pairs of bytes. A byte stays alone until a rule joins it with what then ends before it or starts behind it. So
/// where the rule of two bytes comes before all such rules, for the first byte with what may end before it and for the
/// second with what may start behind it, it joins these two. In many texts that is a third of all merges.
pub struct Pairs(Vec<Pair>);

const NO_PAIR: Pair = Pair { rule: Rule::NONE, on_left: Rule::NONE.rank, on_right: Rule::NONE.rank };

impl Pairs {
    pub fn new(vocab: &Vocab, entries: &[Made]) -> Self {
        let mut pairs = vec![NO_PAIR; 1 << 16];
        let is_byte = |token: Token| entries[token as usize].len == 1;
        for (made, token) in entries.iter().zip(0..).filter(|(made, _)| made.rank > 0) {
            let &[first, second, ..] = vocab.piece(token) else { continue };
            let &[.., before, last] = vocab.piece(token) else { continue };
            if is_byte(made.left) {
                let pair = &mut pairs[index(first, second)];
                pair.on_right = pair.on_right.min(made.rank);
                if is_byte(made.right) {
                    pair.rule = Rule { rank: made.rank, token };
                }
            }
            if is_byte(made.right) {
                let pair = &mut pairs[index(before, last)];
                pair.on_left = pair.on_left.min(made.rank);
            }
        }
        Self(pairs)
    }

    /// What bytes start as, with those joined that surely are.
    fn join(&self, bpe: &Bpe, bytes: &[u8], out: &mut Vec<Token>) {
        let pair = |at: usize| bytes.get(at..at + 2).map_or(NO_PAIR, |two| self.0[index(two[0], two[1])]);
        out.clear();
        out.resize(bytes.len() + 1, 0);
        let (mut before, mut here, mut len, mut joined) = (NO_PAIR, pair(0), 0, false);
        for (at, &byte) in bytes.iter().enumerate() {
            let after = pair(at + 1);
            let rank = here.rule.rank;
            let joins = (rank < before.on_left) & (rank <= after.on_right) & (rank < Rule::NONE.rank);
            // The second of two that were joined goes behind the last token, where it is written over or cut off.
            out[len] = if joins { here.rule.token } else { bpe.byte_tokens[byte as usize] };
            len += usize::from(!joined);
            joined = joins;
            (before, here) = (here, after);
        }
        out.truncate(len);
    }
}

fn index(first: u8, second: u8) -> usize {
    usize::from(first) << 8 | usize::from(second)
}
