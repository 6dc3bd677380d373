//! All boundaries in a window at once, from its masks, by operations on 64 bytes at a time.
//!
//! Where a piece starts depends nearly always on a byte and one or two before it: a letter behind a letter starts none, a
//! letter behind a space starts none either, since the space does. What is not that simple (contractions, white space with
//! newlines in it, more than three digits, words in several scripts) is marked as *odd*: a piece that holds an odd byte, by
//! the boundaries found here, is left to the scanner, which looks at one piece at a time.
//!
//! The idea of finding boundaries by shifts of class bitmaps is that of simdjson (Langdale and Lemire, 2019).

use super::masks::{after, before, Map, Masks, WORDS};

/// The boundaries and the odd bytes of a window.
pub struct Bounds {
    pub starts: Map,
    pub odd: Map,
}

impl Bounds {
    pub(super) const fn new() -> Self {
        Self { starts: [0; WORDS + 2], odd: [0; WORDS + 2] }
    }

    /// Fills in the words that `of` gives for the window on `len` bytes of text.
    #[inline]
    pub fn fill(&mut self, masks: &Masks, len: usize, mut of: impl FnMut(usize) -> (u64, u64)) {
        let words = len.div_ceil(64).min(WORDS);
        for word in 0..words {
            (self.starts[word], self.odd[word]) = of(word);
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

/// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
#[inline(always)]
pub fn gpt2(masks: &Masks, len: usize, bounds: &mut Bounds) {
    bounds.fill(masks, len, |word| {
        let Masks { letter, number, space, other, blank, quote, wide, .. } = masks;
        let goes_on = (letter[word] & before(letter, word, 1))
            | (number[word] & before(number, word, 1))
            | (other[word] & before(other, word, 1));
        let visible = letter[word] | number[word] | other[word];
        let starts = visible & !goes_on & !before(blank, word, 1);
        // Of white space the first and, before something visible, the last.
        let blanks = space[word] & (!before(space, word, 1) | !after(space, word));
        let odd = (quote[word] & after(letter, word)) | (space[word] & wide[word]);
        (starts | blanks, odd)
    });
}

/// What cl100k and its relatives do with white space, given the newlines that belong to the piece before them: newlines and
/// what is before them are one piece, of the rest the last character is by itself. Boundaries, and what is odd.
#[inline(always)]
fn white(masks: &Masks, word: usize, newlines: u64, newlines_before: u64) -> (u64, u64) {
    let Masks { space, newline, wide, .. } = masks;
    let rest = space[word] & !newlines;
    let behind = before(space, word, 1) & !(newlines << 1 | newlines_before);
    let last = rest & !newline[word] & !after(space, word);
    let starts = rest & !behind | last;
    // A newline beside other white space.
    let other_before = behind & !before(newline, word, 1);
    let other_after = after(space, word) & !after(newline, word);
    let odd = rest & newline[word] & (other_before | other_after) | space[word] & wide[word];
    (starts, odd)
}

/// The runs of set bits that start at these places.
#[inline(always)]
fn runs(bits: u64, starts: u64) -> u64 {
    bits & !bits.wrapping_add(starts & bits)
}

/// The patterns of `cl100k.rs`; at most so many `NUMBERS` are together, three or one.
#[inline(always)]
pub fn cl100k<const NUMBERS: u32>(masks: &Masks, len: usize, bounds: &mut Bounds) {
    let (mut newlines_before, mut leads_before) = (0, 0);
    bounds.fill(masks, len, |word| {
        let Masks { letter, number, space, other, newline, blank, quote, wide, .. } = masks;
        let others = other[word] & !before(other, word, 1) & !before(blank, word, 1);
        let words = letter[word] & !before(letter, word, 1);
        // One character joins the letters behind it: white space, or what would start a run of others.
        let leads = others | space[word] & !newline[word];
        let letters = words & !(leads << 1 | leads_before);
        leads_before = leads >> 63;
        let numbers = number[word] & !(before(number, word, 1) & if NUMBERS == 1 { 0 } else { u64::MAX });
        let newlines = runs(newline[word], before(other, word, 1) | newlines_before);
        let (blanks, odd_blanks) = white(masks, word, newlines, newlines_before);
        newlines_before = newlines >> 63;
        let odd = odd_blanks
            | quote[word] & after(letter, word)
            | odd_numbers(number, wide, word, NUMBERS)
            | other[word] & wide[word] & after(letter, word);
        (letters | numbers | others | blanks, odd)
    });
}

/// Numbers beyond ASCII and, of three at most, the fourth digit in a row and those behind it.
#[inline(always)]
fn odd_numbers(number: &Map, wide: &Map, word: usize, most: u32) -> u64 {
    let fourth = before(number, word, 1) & before(number, word, 2) & before(number, word, 3);
    number[word] & (if most == 3 { fourth } else { 0 } | wide[word])
}

/// The pattern of `o200k.rs`.
#[inline(always)]
pub fn o200k(masks: &Masks, len: usize, bounds: &mut Bounds) {
    let (mut newlines_before, mut leads_before, mut lower_before, mut upper_before, mut marks_before) = (0, 0, 0, 0, 0);
    let mut slashes_before = 0;
    bounds.fill(masks, len, |word| {
        let Masks { letter, number, space, other, newline, upper, lower, blank, quote, slash, wide, .. } = masks;
        let others = other[word] & !before(other, word, 1) & !before(blank, word, 1);
        let words = letter[word] & !before(letter, word, 1);
        let leads = others | space[word] & !newline[word];
        let letters = words & !(leads << 1 | leads_before);
        leads_before = leads >> 63;
        // A capital behind a small letter.
        let (only_upper, only_lower) = (upper[word] & !lower[word], lower[word] & !upper[word]);
        let humps = only_upper & (only_lower << 1 | lower_before);
        let numbers = number[word] & !before(number, word, 1);
        let newlines = runs(newline[word], before(other, word, 1) | newlines_before);
        let (blanks, odd_blanks) = white(masks, word, newlines, newlines_before);
        newlines_before = newlines >> 63;
        // Letters without case beside capitals: where the word ends depends on what comes later.
        let both = upper[word] & lower[word];
        let upper_after = after(upper, word) & !after(lower, word);
        let odd_case = both & (only_upper << 1 | upper_before | upper_after);
        (lower_before, upper_before) = (only_lower >> 63, only_upper >> 63);
        // A mark is a letter here and an "other" there. What is before it may join it, and what is behind it not.
        let marks = both & !letter[word];
        let behind_marks = (other[word] | newline[word]) & (marks << 1 | marks_before);
        marks_before = marks >> 63;
        let marks_after = after(upper, word) & after(lower, word) & !after(letter, word);
        // A slash behind a newline may belong to the piece before it, with what ends somewhere in the run.
        let slashes = runs(other[word], slash[word] & before(newline, word, 1) | slashes_before);
        slashes_before = slashes >> 63;
        // A contraction goes on the word before it, so what counts is that word's last byte.
        let quotes_after = after(quote, word) & (letter[word + 1] << 62 | letter[word] >> 2);
        let odd = odd_blanks
            | odd_case
            | marks
            | marks_after
            | behind_marks
            | letter[word] & quotes_after
            | newline[word] & after(slash, word)
            | slashes
            | odd_numbers(number, wide, word, 3)
            | other[word] & wide[word] & after(letter, word);
        (letters | humps | numbers | others | blanks, odd)
    });
}
