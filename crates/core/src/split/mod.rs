//! Split patterns: where does the piece that starts here end? One scanner a file, each equal to its regular
//! expression (`patterns.py`), written as a forward scan without backtracking: linear in the text, whatever it is.
//!
//! A scanner sees the text from a piece's start to the text's end and nothing before: regular expressions without
//! look-behind have no memory. To add one: a file here, a row in `PATTERNS`.

mod cl100k;
mod clip;
mod gpt2;
mod o200k;
mod spaces;

use crate::error::{Error, Result};
use crate::unicode::{class_at, class_before, LETTER, MARK, NUMBER, SPACE};

/// A split pattern.
pub struct Pattern {
    pub name: &'static str,
    /// Whether it cuts at all.
    pub splits: bool,
    /// The end of the piece that starts at `pos < text.len()`; always beyond `pos`.
    pub end: fn(text: &[u8], pos: usize) -> usize,
    /// Whether there is a boundary at `at` (neither the start nor the end) in any text with these two characters
    /// beside it, wherever it starts and ends. May say no where there always is one.
    pub cut: fn(text: &[u8], at: usize) -> bool,
    /// For a piece `text[start..end]`: the end of the first piece of each `text[start..p]`, p from start to end.
    /// None where it is p itself (but for the first and last few p, which are left to `end`).
    pub prefix_ends: Option<PrefixEnds>,
    /// Whether what starts at `pos`, as far as `end`, is dropped instead of being a piece. None: nothing is.
    pub is_dropped: Option<fn(text: &[u8], pos: usize) -> bool>,
}

impl Pattern {
    /// Gives `visit` the start and end of each piece of `text`.
    #[inline]
    pub fn split(&self, text: &[u8], mut visit: impl FnMut(usize, usize) -> Result<()>) -> Result<()> {
        let mut pos = 0;
        while pos < text.len() {
            let end = (self.end)(text, pos);
            match self.is_dropped {
                Some(is_dropped) if is_dropped(text, pos) => {}
                _ => visit(pos, end)?,
            }
            pos = end;
        }
        Ok(())
    }
}

type PrefixEnds = fn(text: &[u8], start: usize, end: usize) -> Vec<usize>;

const PATTERNS: &[Pattern] = &[
    Pattern { name: "gpt2", end: gpt2::end, ..PLAIN },
    Pattern { name: "cl100k", end: cl100k::end, ..PLAIN },
    Pattern { name: "o200k", end: o200k::end, prefix_ends: Some(o200k::prefix_ends), ..PLAIN },
    Pattern { name: "clip", end: clip::end_any_case, ..DROPPING },
    Pattern { name: "clip-cased", end: clip::end, ..DROPPING },
    Pattern { name: "white-space", end: spaces::white_space_end, ..DROPPING },
    Pattern { name: "spaces", end: spaces::end, cut: spaces::cut, is_dropped: Some(spaces::is_dropped), ..DROPPING },
    Pattern { name: "none", splits: false, cut: |_, _| false, ..PLAIN },
];

const PLAIN: Pattern = Pattern {
    name: "",
    splits: true,
    end: |text, _| text.len(),
    cut: at_word_end,
    prefix_ends: None,
    is_dropped: None,
};

/// Drops white space, and has none in its pieces.
const DROPPING: Pattern = Pattern { cut: beside_space, is_dropped: Some(is_space), ..PLAIN };

/// The pattern called `name`.
pub fn pattern(name: &str) -> Result<&'static Pattern> {
    match PATTERNS.iter().find(|pattern| pattern.name == name) {
        Some(pattern) => Ok(pattern),
        None => Err(Error::value(format!("unknown split pattern {name:?}"))),
    }
}

/// No pattern here has a piece in which a number is followed by anything else, a letter by anything but a letter, a
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

/// Whether white space starts or ends here.
fn beside_space(text: &[u8], at: usize) -> bool {
    is_space(text, at) != (class_before(text, at).0 & SPACE != 0)
}

fn is_space(text: &[u8], pos: usize) -> bool {
    class_at(text, pos).0 & SPACE != 0
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

/// The end of at most three numbers from `pos`, where there is at least one.
#[inline]
fn up_to_three_numbers(text: &[u8], mut pos: usize) -> usize {
    for _ in 0..3 {
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

/// The end of `'s|'t|'re|'ve|'m|'ll|'d` at `pos`, if it matches.
#[inline]
fn lower_contraction(text: &[u8], pos: usize) -> Option<usize> {
    if text[pos] != b'\'' {
        return None;
    }
    match (text.get(pos + 1), text.get(pos + 2)) {
        (Some(b's' | b't' | b'm' | b'd'), _) => Some(pos + 2),
        (Some(b'l'), Some(b'l')) | (Some(b'r' | b'v'), Some(b'e')) => Some(pos + 3),
        _ => None,
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
