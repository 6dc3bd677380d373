//! All boundaries in a window at once, from its masks, by operations on 64 bytes at a time.
//!
//! Where a piece starts depends nearly always on a byte and one or two before it: a letter behind a letter starts none, a
//! letter behind a space starts none either, since the space does. What is not that simple (contractions, white space with
//! newlines in it, more than three digits, words in several scripts) is marked as *odd*: a piece that holds an odd byte, by
//! the boundaries found here, is left to the scanner, which looks at one piece at a time.
//!
//! The idea of finding boundaries by shifts of class bitmaps is that of simdjson (Langdale and Lemire, 2019).

use super::lanes::Lanes;
use super::masks::{Map, Masks, WORDS};

/// The boundaries and the odd bytes of a window.
pub struct Bounds {
    pub starts: Map,
    pub odd: Map,
}

impl Bounds {
    pub(super) const fn new() -> Self {
        Self { starts: [0; WORDS + 2], odd: [0; WORDS + 2] }
    }

    /// Fills in the boundaries of the window on `len` bytes of text. All of it must be inlined, so that it is compiled for
    /// the machine that `find` has found: there is no closure in it that the compiler might not like to.
    #[inline(always)]
    fn fill<R: Rules, L: Lanes>(&mut self, masks: &Masks, len: usize) {
        let words = len.div_ceil(64).min(WORDS);
        let mut rules = R::default();
        for word in (0..words).step_by(L::COUNT) {
            let (starts, odd): (L, L) = rules.apply(masks, word);
            starts.put(&mut self.starts, word);
            odd.put(&mut self.odd, word);
        }
        self.starts[words..].fill(0);
        self.odd[words..].fill(0);
        if masks.known == usize::MAX {
            // White space at the end of the text is one piece, which no rule for what stands before others says.
            let mut at = len;
            while at > 0 && masks.space[(at - 1) / 64] >> ((at - 1) % 64) & 1 != 0 {
                at -= 1;
                self.odd[at / 64] |= 1 << (at % 64);
            }
        }
    }
}

/// The rules of one pattern, and what they know of the words before.
pub trait Rules: Default {
    /// Boundaries and odd bytes in the words from `word` on.
    fn apply<L: Lanes>(&mut self, masks: &Masks, word: usize) -> (L, L);
}

/// Finds the boundaries of a window by the rules of a pattern, as many words at once as the machine can.
#[inline]
pub fn find<R: Rules>(masks: &Masks, len: usize, bounds: &mut Bounds) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        #[target_feature(enable = "avx512f")]
        fn find<R: Rules>(masks: &Masks, len: usize, bounds: &mut Bounds) {
            bounds.fill::<R, super::lanes::Eight>(masks, len);
        }
        // SAFETY: the machine has AVX-512.
        return unsafe { find::<R>(masks, len, bounds) };
    }
    bounds.fill::<R, u64>(masks, len);
}

/// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
#[derive(Default)]
pub struct Gpt2;

impl Rules for Gpt2 {
    #[inline(always)]
    fn apply<L: Lanes>(&mut self, masks: &Masks, word: usize) -> (L, L) {
        let of = |map: &Map| L::of(map, word);
        let (letter, number, space, other) = (of(&masks.letter), of(&masks.number), of(&masks.space), of(&masks.other));
        let goes_on = (letter & L::before::<1>(&masks.letter, word))
            | (number & L::before::<1>(&masks.number, word))
            | (other & L::before::<1>(&masks.other, word));
        let starts = (letter | number | other) & !goes_on & !L::before::<1>(&masks.blank, word);
        // Of white space the first and, before something visible, the last.
        let blanks = space & (!L::before::<1>(&masks.space, word) | !L::after::<1>(&masks.space, word));
        let odd = (of(&masks.quote) & L::after::<1>(&masks.letter, word)) | (space & of(&masks.wide));
        (starts | blanks, odd)
    }
}

/// What cl100k and its relatives do with white space, given the newlines that belong to the piece before them: newlines and
/// what is before them are one piece, of the rest the last character is by itself. Boundaries, and what is odd.
#[inline(always)]
fn white<L: Lanes>(masks: &Masks, word: usize, newlines: L, behind_newlines: L) -> (L, L) {
    let (space, newline) = (L::of(&masks.space, word), L::of(&masks.newline, word));
    let rest = space & !newlines;
    let behind = L::before::<1>(&masks.space, word) & !behind_newlines;
    let last = rest & !newline & !L::after::<1>(&masks.space, word);
    let starts = rest & !behind | last;
    // A newline beside other white space.
    let other_before = behind & !L::before::<1>(&masks.newline, word);
    let other_after = L::after::<1>(&masks.space, word) & !L::after::<1>(&masks.newline, word);
    let odd = rest & newline & (other_before | other_after) | space & L::of(&masks.wide, word);
    (starts, odd)
}

/// The patterns of `cl100k.rs`; at most so many `NUMBERS` are together, three or one.
#[derive(Default)]
pub struct Cl100k<const NUMBERS: u32> {
    newlines: u64,
    leads: u64,
    numbers: [u64; 2],
}

impl<const NUMBERS: u32> Rules for Cl100k<NUMBERS> {
    #[inline(always)]
    fn apply<L: Lanes>(&mut self, masks: &Masks, word: usize) -> (L, L) {
        let of = |map: &Map| L::of(map, word);
        let (letter, other, newline) = (of(&masks.letter), of(&masks.other), of(&masks.newline));
        let behind_other = L::before::<1>(&masks.other, word);
        let others = other & !behind_other & !L::before::<1>(&masks.blank, word);
        let words = letter & !L::before::<1>(&masks.letter, word);
        // One character joins the letters behind it: white space, or what would start a run of others.
        let leads = others | of(&masks.space) & !newline;
        let letters = words & !leads.carried(&mut self.leads);
        let (numbers, odd_numbers) = numbers(masks, word, NUMBERS, &mut self.numbers);
        let newlines = newline.runs(behind_other, self.newlines);
        let behind_newlines = newlines.carried(&mut self.newlines);
        let (blanks, odd_blanks) = white(masks, word, newlines, behind_newlines);
        let odd = odd_blanks
            | of(&masks.quote) & L::after::<1>(&masks.letter, word)
            | odd_numbers
            | other & of(&masks.wide) & L::after::<1>(&masks.letter, word);
        (letters | numbers | others | blanks, odd)
    }
}

/// Where numbers start, of at most so many characters, three or one; and which are odd: from the first one beyond ASCII in
/// a row on. `last` is what the words before say.
#[inline(always)]
fn numbers<L: Lanes>(masks: &Masks, word: usize, most: u32, last: &mut [u64; 2]) -> (L, L) {
    let Masks { number, wide, .. } = masks;
    let here = L::of(number, word);
    let before = L::before::<1>(number, word);
    let odd = here.runs(here & L::of(wide, word), last[0]);
    odd.carried(&mut last[0]);
    if most == 1 {
        return (here, odd);
    }
    let fourth = here & before & L::before::<2>(number, word) & L::before::<3>(number, word);
    ((here & !before).every_third(fourth, &mut last[1]), odd)
}

/// The pattern of `o200k.rs`.
#[derive(Default)]
pub struct O200k {
    newlines: u64,
    leads: u64,
    lower: u64,
    upper: u64,
    marks: u64,
    slashes: u64,
    numbers: [u64; 2],
}

impl Rules for O200k {
    #[inline(always)]
    fn apply<L: Lanes>(&mut self, masks: &Masks, word: usize) -> (L, L) {
        let of = |map: &Map| L::of(map, word);
        let (letter, other, newline) = (of(&masks.letter), of(&masks.other), of(&masks.newline));
        let (upper, lower) = (of(&masks.upper), of(&masks.lower));
        let behind_other = L::before::<1>(&masks.other, word);
        let others = other & !behind_other & !L::before::<1>(&masks.blank, word);
        let words = letter & !L::before::<1>(&masks.letter, word);
        let leads = others | of(&masks.space) & !newline;
        let letters = words & !leads.carried(&mut self.leads);
        // A capital behind a small letter.
        let (only_upper, only_lower) = (upper & !lower, lower & !upper);
        let humps = only_upper & only_lower.carried(&mut self.lower);
        let (numbers, odd_numbers) = numbers(masks, word, 3, &mut self.numbers);
        let newlines = newline.runs(behind_other, self.newlines);
        let behind_newlines = newlines.carried(&mut self.newlines);
        let (blanks, odd_blanks) = white(masks, word, newlines, behind_newlines);
        // Letters without case beside capitals: where the word ends depends on what comes later.
        let both = upper & lower;
        let upper_after = L::after::<1>(&masks.upper, word) & !L::after::<1>(&masks.lower, word);
        let odd_case = both & (only_upper.carried(&mut self.upper) | upper_after);
        // A mark is a letter here and an "other" there. What is before it may join it, and what is behind it not.
        let marks = both & !letter;
        let behind_marks = (other | newline) & marks.carried(&mut self.marks);
        let letter_after = L::after::<1>(&masks.letter, word);
        let marks_after = L::after::<1>(&masks.upper, word) & L::after::<1>(&masks.lower, word) & !letter_after;
        // A slash behind a newline may belong to the piece before it, with what ends somewhere in the run.
        let slash = of(&masks.slash) & L::before::<1>(&masks.newline, word);
        let slashes = other.runs(slash, self.slashes);
        slashes.carried(&mut self.slashes);
        // A contraction goes on the word before it, so what counts is that word's last byte.
        let quotes_after = L::after::<1>(&masks.quote, word) & L::after::<2>(&masks.letter, word);
        let odd = odd_blanks
            | odd_case
            | marks
            | marks_after
            | behind_marks
            | letter & quotes_after
            | newline & L::after::<1>(&masks.slash, word)
            | slashes
            | odd_numbers
            | other & of(&masks.wide) & letter_after;
        (letters | humps | numbers | others | blanks, odd)
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::super::masks::WINDOW;
    use super::*;

    #[test]
    fn eight_words_at_once_give_what_each_gives() {
        let mut state = 1u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        let parts = [
            "a", "B", "Ab", " ", "\n", "\r", "/", "'s", "1", "1234", "３", "é", "中", "\u{301}", "²", "\u{3000}", "—",
            "?!",
        ];
        let (mut masks, mut found, mut right) = (Masks::new(), Bounds::new(), Bounds::new());
        for round in 0..300 {
            let (len, few) = (1 + random(WINDOW + 100), 1 + random(parts.len()));
            let from = random(parts.len());
            let mut text = String::new();
            while text.len() < len {
                text +=
                    &parts[(from + random(few)) % parts.len()].repeat(1 + if round % 7 == 0 { random(200) } else { 0 });
            }
            masks.fill(text.as_bytes());
            macro_rules! check {
                ($rules:ty) => {
                    find::<$rules>(&masks, text.len(), &mut found);
                    right.fill::<$rules, u64>(&masks, text.len());
                    assert!(found.starts == right.starts && found.odd == right.odd, "{text:?}");
                };
            }
            check!(Gpt2);
            check!(Cl100k<3>);
            check!(Cl100k<1>);
            check!(O200k);
        }
    }
}
