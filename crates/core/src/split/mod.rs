//! Split patterns: where does the piece that starts here end? The common ones have a scanner, one a file, each equal
//! to its regular expression (`patterns.py`), written as a forward scan without backtracking: linear in the text,
//! whatever it is. Every other regular expression is compiled (`regex`), and is linear too.
//!
//! A piece depends on the text from its start to the text's end and on nothing before: regular expressions without
//! look-behind have no memory. To add a scanner: a file here, a row in `SCANNERS`.

mod bounds;
mod cl100k;
pub mod cutter;
pub mod digits;
pub mod ends;
mod gpt2;
mod lanes;
pub mod masks;
pub mod neighbours;
mod o200k;
pub mod punctuation;
pub mod regex;
#[cfg(target_arch = "x86_64")]
mod rows;

use std::cell::Cell;

use crate::error::{Error, Result};
use crate::unicode::{class_at, class_before, CASELESS, LETTER, MARK, NUMBER, SPACE, UPPER};

use bounds::{Bounds, Cl100k, Gpt2, O200k, Rules};
use ends::Visit;
use masks::Masks;
use regex::{Regex, ScanState, Syntax};

/// A split pattern: a row of `SCANNERS`, or a compiled regular expression.
#[derive(Debug)]
pub struct Pattern(Kind);

#[derive(Debug)]
enum Kind {
    Scanner(&'static Scanner),
    /// With `drops`, what no match covers is no piece, but left out.
    Regex {
        regex: Box<Regex>,
        drops: bool,
    },
}

/// A hand-written scanner, of which more is known than of any expression: `CHANGED`, `UNSETTLED`, `ends_as_the_next`.
#[derive(Debug)]
pub struct Scanner {
    name: &'static str,
    /// Whether it cuts at all.
    splits: bool,
    /// The end of the piece that starts at `pos < text.len()`; always beyond `pos`.
    pub end: fn(text: &[u8], pos: usize) -> usize,
    /// The same in a window on the text.
    by_masks: Option<ByMasks>,
    cut: fn(text: &[u8], at: usize) -> bool,
    /// For a piece `text[start..end]`: the end of the first piece of each `text[start..p]`, p from start to end.
    /// None where it is p itself (but for the first and last few p, which are left to `end`).
    pub prefix_ends: Option<PrefixEnds>,
}

/// Which function gives the end of the piece that starts at `pos`, where the masks are those of the start of `text`, or
/// any number beyond `masks.known` where they do not tell. By name, so that the loop around it is compiled for each.
#[derive(Debug, Clone, Copy)]
enum ByMasks {
    Gpt2,
    Cl100k,
    Llama3,
    Qwen2,
    O200k,
}

type PrefixEnds = fn(text: &[u8], start: usize, end: usize) -> Vec<usize>;

const SCANNERS: &[Scanner] = &[
    Scanner { name: "gpt2", by_masks: Some(ByMasks::Gpt2), ..scanner(gpt2::end) },
    Scanner { name: "cl100k", by_masks: Some(ByMasks::Cl100k), ..scanner(cl100k::end::<3, true>) },
    Scanner { name: "llama3", by_masks: Some(ByMasks::Llama3), ..scanner(cl100k::end::<3, false>) },
    Scanner { name: "qwen2", by_masks: Some(ByMasks::Qwen2), ..scanner(cl100k::end::<1, false>) },
    Scanner {
        name: "o200k",
        by_masks: Some(ByMasks::O200k),
        prefix_ends: Some(o200k::prefix_ends),
        ..scanner(o200k::end)
    },
    Scanner { name: "none", splits: false, cut: |_, _| false, ..scanner(|text, _| text.len()) },
];

const fn scanner(end: fn(&[u8], usize) -> usize) -> Scanner {
    Scanner { name: "", splits: true, end, by_masks: None, cut: at_word_end, prefix_ends: None }
}

impl Pattern {
    /// The scanner called `name`.
    pub fn scanner(name: &str) -> Result<Self> {
        match SCANNERS.iter().find(|scanner| scanner.name == name) {
            Some(scanner) => Ok(Self(Kind::Scanner(scanner))),
            None => Err(Error::value(format!("there is no scanner for the split pattern {name:?}"))),
        }
    }

    pub fn regex(text: &str, syntax: &str, allow_backtracking: bool, drops: bool) -> Result<Self> {
        let regex = Box::new(Regex::new(text, Syntax::new(syntax)?, allow_backtracking)?);
        Ok(Self(Kind::Regex { regex, drops }))
    }

    /// How it runs, and why that is right.
    pub fn plan(&self) -> (String, String) {
        match &self.0 {
            Kind::Scanner(scanner) => {
                (format!("scanner {}", scanner.name), "a forward scan that equals the regular expression".to_owned())
            }
            Kind::Regex { regex, drops: false } => regex.plan(),
            Kind::Regex { regex, drops: true } => {
                let (how, why) = regex.plan();
                (how, why + "; what it does not match is dropped")
            }
        }
    }

    pub fn as_scanner(&self) -> Option<&'static Scanner> {
        match self.0 {
            Kind::Scanner(scanner) => Some(scanner),
            Kind::Regex { .. } => None,
        }
    }

    /// Whether what it does not match is dropped.
    pub fn drops(&self) -> bool {
        matches!(self.0, Kind::Regex { drops: true, .. })
    }

    /// Whether it cuts at all.
    pub fn splits(&self) -> bool {
        !matches!(self.0, Kind::Scanner(Scanner { splits: false, .. }))
    }

    /// Gives `visit` the start and the end of each piece of `text`.
    #[inline]
    pub fn split(&self, text: &[u8], visit: &mut impl Visit) -> Result<()> {
        if let Kind::Scanner(Scanner { by_masks: Some(by_masks), end, .. }) = &self.0 {
            return match by_masks {
                ByMasks::Gpt2 => in_windows::<Gpt2>(text, gpt2::end_by_masks, *end, visit),
                ByMasks::Cl100k => in_windows::<Cl100k<3>>(text, cl100k::end_by_masks::<3, true>, *end, visit),
                ByMasks::Llama3 => in_windows::<Cl100k<3>>(text, cl100k::end_by_masks::<3, false>, *end, visit),
                ByMasks::Qwen2 => in_windows::<Cl100k<1>>(text, cl100k::end_by_masks::<1, false>, *end, visit),
                ByMasks::O200k => in_windows::<O200k>(text, o200k::end_by_masks, *end, visit),
            };
        }
        let (mut scan, mut pos) = (self.scan(text), 0);
        while pos < text.len() {
            let end = match &self.0 {
                Kind::Regex { regex, drops: true } => match regex.next_match(text, pos, &mut scan.state) {
                    Some((start, end)) => {
                        visit.piece(start, end)?;
                        end
                    }
                    None => break,
                },
                _ => {
                    let end = scan.end(pos);
                    visit.piece(pos, end)?;
                    end
                }
            };
            pos = end;
        }
        scan.check()
    }

    /// A scan of one text.
    pub fn scan<'a>(&'a self, text: &'a [u8]) -> Scan<'a> {
        Scan { pattern: self, text, state: ScanState::default() }
    }

    /// Whether there is a boundary at `at` (neither the start nor the end) in any text with these two characters
    /// beside it, wherever it starts and ends. May say no where there always is one.
    pub fn cut(&self, text: &[u8], at: usize) -> bool {
        match &self.0 {
            Kind::Scanner(scanner) => (scanner.cut)(text, at),
            Kind::Regex { regex, .. } => regex.cut(text, at),
        }
    }

    /// Whether a text that ends at `at` and one that starts there have the boundaries that they have together, but
    /// for one at `at`, because the character in front is in no match. May say no where they have.
    pub fn ignores(&self, text: &[u8], at: usize) -> bool {
        matches!(&self.0, Kind::Regex { regex, .. } if regex.ignores(text, at))
    }
}

/// Gives `work` masks and boundaries that the thread keeps: a short text takes less time than making them.
#[inline]
fn with_window<R>(work: impl FnOnce(&mut Masks, &mut Bounds) -> R) -> R {
    thread_local!(static KEPT: Cell<Option<Box<(Masks, Bounds)>>> = const { Cell::new(None) });
    let mut window = KEPT.take().unwrap_or_else(|| Box::new((Masks::new(), Bounds::new())));
    let result = work(&mut window.0, &mut window.1);
    KEPT.set(Some(window));
    result
}

/// Cuts a text a window at a time. A piece that may go on behind the window starts the next; one that is longer than a
/// window is left to `end`.
#[inline]
fn in_windows<R: Rules>(
    text: &[u8],
    end_by_masks: impl Fn(&Masks, &[u8], usize) -> usize,
    end: fn(&[u8], usize) -> usize,
    visit: &mut impl Visit,
) -> Result<()> {
    with_window(|masks, bounds| {
        let mut start = 0;
        while start < text.len() {
            let rest = &text[start..];
            masks.fill(rest);
            bounds::find::<R>(masks, rest.len(), bounds);
            let known = masks.known.min(rest.len());
            let (mut pos, mut word) = (0, 0);
            let mut starts = bounds.starts[0] & !1;
            let mut odd = masks::next(&bounds.odd, 0);
            while pos < known {
                // No piece that ends up to there holds an odd byte.
                let sure = odd.min(known);
                while (word + 1) * 64 <= sure {
                    pos = visit.pieces(start + word * 64, starts, start + pos)? - start;
                    word += 1;
                    starts = bounds.starts[word];
                }
                let ends = starts & u64::MAX >> (63 - sure % 64);
                pos = visit.pieces(start + word * 64, ends, start + pos)? - start;
                if odd >= known && known < rest.len() {
                    break;
                }
                // An odd piece, or the last one of the text.
                let end = end_by_masks(masks, rest, pos);
                if end > known {
                    break;
                }
                visit.piece(start + pos, start + end)?;
                pos = end;
                word = pos / 64;
                starts = bounds.starts[word] & (u64::MAX - 1) << (pos % 64);
                if odd < pos {
                    odd = masks::next(&bounds.odd, pos);
                }
            }
            start += pos;
            if pos == 0 {
                let end = end(text, start);
                visit.piece(start, end)?;
                start = end;
            }
        }
        Ok(())
    })
}

/// One text, cut piece by piece.
pub struct Scan<'a> {
    pattern: &'a Pattern,
    text: &'a [u8],
    state: ScanState,
}

impl Scan<'_> {
    /// The end of the piece that starts at `pos`, which must be inside the text; always beyond `pos`.
    #[inline]
    pub fn end(&mut self, pos: usize) -> usize {
        match &self.pattern.0 {
            Kind::Scanner(scanner) => (scanner.end)(self.text, pos),
            Kind::Regex { regex, .. } => regex.end(self.text, pos, &mut self.state),
        }
    }

    /// Fails if the ends given are worth nothing, because the steps of a pattern that backtracks were used up.
    pub fn check(&self) -> Result<()> {
        self.state.check()
    }
}

/// Cutting a text off inside a piece changes that piece and at most so many before it: white space that joins again.
pub const CHANGED: usize = 3;
/// What follows a text changes at most so many of its last pieces.
pub const UNSETTLED: usize = 6;

/// Whether, by every scanner, the piece from `at` ends where the one from the next character does, at `end`. May
/// say no where it does. `caseless`: the run of upper-case and caseless letters after the character holds a caseless one;
/// `newline`: the run of white space after it holds a newline.
pub fn ends_as_the_next(text: &[u8], at: usize, end: usize, caseless: bool, newline: bool) -> bool {
    const FAR: usize = 24; // beyond three numbers, a contraction, one character and a run of letters or marks
    if end < at + FAR {
        return false;
    }
    let (first, len) = class_at(text, at);
    let (second, second_len) = class_at(text, at + len);
    let (third, _) = class_at(text, at + len + second_len);
    if first & second & third & SPACE != 0 {
        return !matches!(text[at], b'\r' | b'\n') || newline;
    }
    if first & (UPPER | CASELESS) != 0 && second & (UPPER | CASELESS) != 0 {
        return first & UPPER != 0 || caseless;
    }
    first == second && second == third
}

/// No scanner has a piece in which a number is followed by anything else, a letter by anything but a letter, a
/// mark or an apostrophe, or anything visible by white space other than a newline.
fn at_word_end(text: &[u8], at: usize) -> bool {
    let (before, _) = class_before(text, at);
    let (after, _) = class_at(text, at);
    if is_number(before) {
        !is_number(after)
    } else if is_letter(before) {
        after & (LETTER | MARK) == 0 && text[at] != b'\''
    } else {
        before & SPACE == 0 && after & SPACE != 0 && !matches!(text[at], b'\r' | b'\n')
    }
}

/// The end of the run from `pos` of characters whose class flags satisfy `is`.
#[inline]
fn run(text: &[u8], mut pos: usize, is: impl Fn(u8) -> bool) -> usize {
    while pos < text.len() {
        let (class, len) = class_at(text, pos);
        if !is(class) {
            break;
        }
        pos += len;
    }
    pos
}

#[inline]
fn is_letter(class: u8) -> bool {
    class & LETTER != 0
}

#[inline]
fn is_number(class: u8) -> bool {
    class & NUMBER != 0
}

/// `[^\s\p{L}\p{N}]`
#[inline]
fn is_other(class: u8) -> bool {
    class & (LETTER | NUMBER | SPACE) == 0
}

/// The end of at most so many numbers from `pos`, where there is at least one.
#[inline]
fn up_to_numbers(most: usize, text: &[u8], mut pos: usize) -> usize {
    for _ in 0..most {
        if pos == text.len() {
            break;
        }
        let (class, len) = class_at(text, pos);
        if !is_number(class) {
            break;
        }
        pos += len;
    }
    pos
}

/// ` ?[^\s\p{L}\p{N}]+` from `pos`, if it matches there.
#[inline]
fn others(text: &[u8], pos: usize) -> Option<usize> {
    let start = if text[pos] == b' ' { pos + 1 } else { pos };
    let end = run(text, start, is_other);
    (end > start).then_some(end)
}

/// The white space from `pos`: its end, where its last character starts, and the end of its last `\r` or `\n`.
struct White {
    end: usize,
    last: usize,
    newline: Option<usize>,
}

fn white(text: &[u8], pos: usize) -> White {
    let mut found = White { end: pos, last: pos, newline: None };
    while found.end < text.len() {
        let (class, len) = class_at(text, found.end);
        if class & SPACE == 0 {
            break;
        }
        found.last = found.end;
        found.end += len;
        if matches!(text[found.last], b'\r' | b'\n') {
            found.newline = Some(found.end);
        }
    }
    found
}

/// The same by masks, if they tell where it ends.
#[inline]
fn white_by_masks(masks: &Masks, text: &[u8], pos: usize) -> Option<White> {
    let end = masks::run(&masks.space, pos);
    if end >= masks.known {
        return None;
    }
    let last = if text[end - 1] < 0x80 { end - 1 } else { class_before(text, end).1 };
    Some(White { end, last, newline: masks::last(pos, end, |word| masks.newline[word]) })
}

impl White {
    /// `\s+(?!\S)|\s+`: all of it at the end of the text; else all but the last character, which the next piece may
    /// take; else the one character there is.
    fn leave_one(&self, text: &[u8], pos: usize) -> usize {
        if self.end == text.len() || self.last == pos {
            self.end
        } else {
            self.last
        }
    }
}

/// The end of `'(?i:s|t|re|ve|m|ll|d)` at `pos`, if it matches. U+017F, the long s, is an `s` without its case.
#[inline]
fn contraction(text: &[u8], pos: usize) -> Option<usize> {
    if text.get(pos) != Some(&b'\'') {
        return None;
    }
    let at = |i: usize| text.get(pos + i).map(u8::to_ascii_lowercase);
    match (at(1)?, at(2)) {
        (b's' | b't' | b'm' | b'd', _) => Some(pos + 2),
        (b'l', Some(b'l')) | (b'r' | b'v', Some(b'e')) => Some(pos + 3),
        (0xc5, _) if text[pos + 1..].starts_with("ſ".as_bytes()) => Some(pos + 3),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unicode::char_len;

    fn boundaries(scanner: &Scanner, text: &[u8]) -> Vec<usize> {
        let mut ends = vec![0];
        while ends[ends.len() - 1] < text.len() {
            ends.push((scanner.end)(text, ends[ends.len() - 1]));
        }
        ends
    }

    /// Texts longer than a window, with runs that are, too.
    #[test]
    fn masks_give_the_same_pieces() {
        let parts = [
            "a", "B", "中", "\u{301}", "\u{1c5}", " ", "\n", "\r\n", "\t", "1", "!", "/", "'", "'s", "'LL", "  ", "AB",
            "é", "\u{3000}", "½", "３", "12", "😀", "word ", " Word", "\u{2028}", "ʰ",
        ];
        let mut state = 7u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        for round in 0..600 {
            let kinds: Vec<&str> = (0..1 + random(7)).map(|_| parts[random(parts.len())]).collect();
            let longest = [3, 40, 3 * masks::WINDOW][round % 3];
            let mut text = Vec::new();
            while text.len() < masks::WINDOW * (1 + round % 3) {
                text.extend_from_slice(kinds[random(kinds.len())].repeat(1 + random(3) * random(longest)).as_bytes());
                if random(20) == 0 {
                    text.push([0xff, 0x80, 0xe4, 0xf0][random(4)]);
                }
            }
            let from = random(70);
            for cut in [0, 1, 2, 3, 60, 64, 4000].map(|less| text.len().saturating_sub(less).max(from)) {
                let text = &text[from..cut];
                for scanner in SCANNERS.iter().filter(|scanner| scanner.by_masks.is_some()) {
                    let mut ends = vec![0];
                    let pattern = Pattern(Kind::Scanner(scanner));
                    let mut visit = |start, end| {
                        assert_eq!(ends.last(), Some(&start));
                        ends.push(end);
                        Ok(())
                    };
                    pattern.split(text, &mut visit).expect("nothing fails");
                    let at = ends.iter().zip(boundaries(scanner, text)).position(|(ours, right)| *ours != right);
                    let near = at.map(|at| {
                        (
                            ends[at - 1],
                            ends[at],
                            String::from_utf8_lossy(
                                &text[ends[at - 1].saturating_sub(8)..]
                                    [..40.min(text.len() - ends[at - 1].saturating_sub(8))],
                            ),
                        )
                    });
                    assert_eq!(near, None, "{} wrong end of a piece", scanner.name);
                    assert_eq!(ends.last(), Some(&text.len()));
                }
            }
        }
    }

    /// Random texts of runs, each cut off everywhere: what `CHANGED`, `UNSETTLED` and `ends_as_the_next` promise.
    #[test]
    fn pieces_do_not_change_far_from_a_cut() {
        let parts = [
            "a", "B", "中", "\u{301}", "\u{1c5}", " ", "\n", "\r\n", "\t", "1", "!", "/", "'", "'s", "'ll", "  ", "AB",
        ];
        let mut state = 1u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        for _ in 0..1000 {
            let kinds: Vec<&str> = (0..1 + random(4)).map(|_| parts[random(parts.len())]).collect();
            let text: String =
                (0..random(30)).map(|_| kinds[random(kinds.len())].repeat(1 + random(2) * random(20))).collect();
            let text = text.as_bytes();
            for scanner in SCANNERS {
                let whole = boundaries(scanner, text);
                for cut in (0..text.len()).filter(|&at| crate::unicode::is_start(text, at)) {
                    let part = boundaries(scanner, &text[..cut]);
                    let inside = whole.partition_point(|&at| at < cut).saturating_sub(1); // the piece that is cut
                    let kept = (inside + 1).saturating_sub(CHANGED);
                    assert_eq!(whole[..kept], part[..kept.min(part.len())], "{} {text:?} {cut}", scanner.name);
                    let settled = part.len().saturating_sub(UNSETTLED);
                    assert_eq!(part[..settled], whole[..settled], "{} {text:?} {cut}", scanner.name);
                }
                let (mut caseless, mut newline, mut next) = (false, false, text.len());
                while next > 0 {
                    let (class, at) = class_before(text, next);
                    if next < text.len() {
                        let end = (scanner.end)(text, next);
                        if ends_as_the_next(text, at, end, caseless, newline) {
                            assert_eq!((scanner.end)(text, at), end, "{} {text:?} {at}", scanner.name);
                        }
                    }
                    caseless = class & CASELESS != 0 || (class & UPPER != 0 && caseless);
                    newline = matches!(text[at], b'\r' | b'\n') || (class & SPACE != 0 && newline);
                    assert_eq!(at + char_len(text, at), next);
                    next = at;
                }
            }
        }
    }
}
