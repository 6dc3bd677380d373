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

use super::matching::Matching;
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
    let (mut queue, mut tokens, mut matching) = (Queue::default(), Vec::new(), Matching::default());
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
                if let Some(trie) = bpe.matches(bytes) {
                    matching.encode(bpe, entries, trie, bytes, out);
                } else {
                    tokens.clear();
                    match bpe.pairs(entries, bytes.len()) {
                        Some(pairs) => pairs.join(bpe, bytes, &mut tokens),
                        None => tokens.extend(bpe.start(bytes)),
                    }
                    queue.start(&tokens, &bpe.rules);
                    queue.merge(&bpe.rules, |_| {});
                    out.extend(queue.tokens());
                }
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

    /// The rule that joins two bytes.
    #[inline]
    pub fn rule(&self, first: u8, second: u8) -> Rule {
        self.0[index(first, second)].rule
    }

    /// What bytes start as, with those joined that surely are.
    fn join(&self, bpe: &Bpe, bytes: &[u8], out: &mut Vec<Token>) {
        let pair = |at: usize| bytes.get(at..at + 2).map_or(NO_PAIR, |two| self.0[index(two[0], two[1])]);
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

#[cfg(test)]
mod tests {
    use super::super::units::UnitRow;
    use super::super::{merge, Direction, Priority, Proof, WORTH_PAIRS};
    use super::*;

    /// A fixed sequence that looks random.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, n: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((self.0 >> 33) % n as u64) as usize
        }
    }

    /// All bytes and strings of few letters that are made of earlier entries, by ranks.
    fn vocabulary(dice: &mut Dice) -> (Bpe, Vec<Vec<u8>>) {
        let mut pieces: Vec<Vec<u8>> = (0..=255u8).map(|byte| vec![byte]).collect();
        let letters = 1 + dice.below(4);
        // Bytes of ASCII are merged, others matched.
        let first = [b'a', 0xe0][dice.below(2)];
        let mut made: Vec<Vec<u8>> = (0..letters).map(|letter| vec![first + letter as u8]).collect();
        for _ in 0..dice.below(30) {
            let piece = [0; 2].map(|_| made[dice.below(made.len())].clone()).concat();
            if piece.len() < 40 && !made.contains(&piece) {
                made.push(piece.clone());
                pieces.push(piece);
            }
        }
        (by_ranks(&pieces), made)
    }

    fn by_ranks(pieces: &[Vec<u8>]) -> Bpe {
        let mut offsets = vec![0];
        offsets.extend(pieces.iter().scan(0, |end, piece| {
            *end += piece.len() as u64;
            Some(*end)
        }));
        let vocab = Vocab::new(pieces.concat(), &offsets, (0..pieces.len() as u32).collect()).unwrap();
        let bytes = UnitRow { by_characters: false, end_of_word: Vec::new(), unk: None };
        Bpe::new(vocab, Priority::Rank, false, bytes, None).unwrap()
    }

    /// Letters, entries glued together, runs, and what repeats.
    fn text(dice: &mut Dice, made: &[Vec<u8>]) -> Vec<u8> {
        let mut text = Vec::new();
        let len = 1 + dice.below(200);
        let letters = made.iter().filter(|piece| piece.len() == 1).count();
        let kind = dice.below(4);
        let unit = [0; 3].map(|_| &made[dice.below(made.len())][..]).concat();
        while text.len() < len {
            match kind {
                0 => text.extend(&made[dice.below(letters)]),
                1 => text.extend(&made[dice.below(made.len())]),
                2 => text.extend(made[dice.below(letters)].repeat(1 + dice.below(60))),
                _ => text.extend(&unit),
            }
        }
        text
    }

    #[test]
    fn windows_of_any_width_give_what_the_loop_gives() {
        let mut dice = Dice(1);
        let mut proved = 0;
        for round in 0..3000 {
            let (bpe, made) = vocabulary(&mut dice);
            let Proof::Proved { entries, out_of_order: None } = &bpe.proof else { continue };
            proved += 1;
            if round % 2 == 0 {
                bpe.pairs(entries, WORTH_PAIRS);
                assert!(bpe.pairs(entries, 0).is_some());
            }
            let mut matching = Matching::default();
            for _ in 0..5 {
                let text = text(&mut dice, &made);
                let (mut expected, mut found) = (vec![7], vec![7]);
                merge::short(bpe.start(&text), &bpe.rules, &mut expected, |_| {});
                encode_with(&bpe, entries, &text, &mut found, 1 + dice.below(60), dice.below(20));
                assert_eq!(found, expected, "{:?} with {made:?}, round {round}", text.escape_ascii().to_string());
                found.truncate(1);
                matching.encode(&bpe, entries, bpe.trie_of(Direction::Forward), &text, &mut found);
                assert_eq!(found, expected, "{:?} with {made:?}, round {round}", text.escape_ascii().to_string());
            }
        }
        assert!(proved > 1000, "{proved}");
    }

    #[test]
    fn what_bytes_start_as_is_what_comes_first_anyway() {
        let mut dice = Dice(2);
        let (mut joined, mut of) = (0, 0);
        for _ in 0..2000 {
            let (bpe, made) = vocabulary(&mut dice);
            let Proof::Proved { entries, out_of_order: None } = &bpe.proof else { continue };
            let pairs = Pairs::new(&bpe.vocab, entries);
            let text = text(&mut dice, &made);
            let mut start = Vec::new();
            pairs.join(&bpe, &text, &mut start);
            let spelled: Vec<u8> = start.iter().flat_map(|&token| bpe.vocab.piece(token)).copied().collect();
            assert_eq!(spelled, text);
            joined += text.len() - start.len();
            of += text.len();
            let (mut expected, mut found) = (Vec::new(), Vec::new());
            merge::short(bpe.start(&text), &bpe.rules, &mut expected, |_| {});
            merge::short(start.into_iter(), &bpe.rules, &mut found, |_| {});
            assert_eq!(found, expected, "{:?} with {made:?}", text.escape_ascii().to_string());
        }
        assert!(joined > of / 20, "{joined} of {of}");
    }

    /// A chain of pairs each of which ranks before the one on its left: the last letters decide how the first merge.
    #[test]
    fn bytes_far_behind_can_decide() {
        let letters: Vec<u8> = (b'A'..=b'z').collect();
        let mut pieces: Vec<Vec<u8>> = (0..=255u8).map(|byte| vec![byte]).collect();
        pieces.extend(letters.windows(2).rev().map(<[u8]>::to_vec));
        let bpe = by_ranks(&pieces);
        let Proof::Proved { entries, out_of_order: None } = &bpe.proof else { panic!("not proved") };
        for end in [letters.len() - 1, letters.len()] {
            let text = letters[..end].repeat(9);
            let (mut expected, mut found) = (Vec::new(), Vec::new());
            merge::short(bpe.start(&text), &bpe.rules, &mut expected, |_| {});
            encode_with(&bpe, entries, &text, &mut found, 16, 4);
            assert_eq!(found, expected);
        }
    }
}
