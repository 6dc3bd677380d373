//! Where paragraphs, sentences and words of a text end.
//!
//! An end is behind newlines and before other white space, as tokens have it: a space belongs to the word behind it.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;

use crate::error::{Error, Result};
use crate::unicode::{class_at, class_before, SPACE};

/// Kinds of places in a text, the finest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ends {
    Character,
    /// At white space.
    Word,
    /// By Unicode's rules (UAX #29), which hold a newline for an end.
    Sentence,
    /// At a blank line, or U+2029.
    Paragraph,
}

impl Ends {
    pub const ALL: [(&'static str, Self); 4] = [
        ("character", Self::Character),
        ("word", Self::Word),
        ("sentence", Self::Sentence),
        ("paragraph", Self::Paragraph),
    ];

    pub fn new(name: &str) -> Result<Self> {
        let found = Self::ALL.iter().find(|kind| kind.0 == name).map(|kind| kind.1);
        found.ok_or_else(|| {
            Error::value(format!("ends must be one of {:?}, not {name:?}", Self::ALL.map(|kind| kind.0)))
        })
    }

    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].0
    }

    pub fn lower(self) -> Option<Self> {
        match self {
            Self::Paragraph => Some(Self::Sentence),
            Self::Sentence => Some(Self::Word),
            Self::Word => Some(Self::Character),
            Self::Character => None,
        }
    }
}

/// The ends inside a text, each as the highest kind that it is.
pub fn ends(text: &[u8]) -> Vec<(usize, Ends)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let (class, len) = class_at(text, at);
        if class & SPACE == 0 {
            at += len;
            continue;
        }
        let (end, kind, after) = blank(text, at);
        if end > 0 && end < text.len() {
            found.push((end, kind));
        }
        at = after;
    }
    let words = found.len();
    for (at, _) in readable(text).split_sentence_bound_indices() {
        // Behind the white space, if there is any; its end has been found.
        let has_space = at == 0 || class_before(text, at).0 & SPACE != 0 || class_at(text, at).0 & SPACE != 0;
        let place = match has_space {
            false => at,
            true => blank(text, blank_start(text, at)).0,
        };
        match found[..words].binary_search_by_key(&place, |end| end.0) {
            Ok(index) => found[index].1 = found[index].1.max(Ends::Sentence),
            Err(_) if !has_space => found.push((place, Ends::Sentence)),
            Err(_) => {}
        }
    }
    found.sort_unstable();
    found
}

fn blank_start(text: &[u8], mut at: usize) -> usize {
    while at > 0 {
        let (class, start) = class_before(text, at);
        if class & SPACE == 0 {
            break;
        }
        at = start;
    }
    at
}

/// Of the white space that starts at a place: where the end is in it, which, and what comes after.
fn blank(text: &[u8], start: usize) -> (usize, Ends, usize) {
    let (mut at, mut end, mut newlines) = (start, start, 0);
    while at < text.len() {
        let (class, len) = class_at(text, at);
        if class & SPACE == 0 {
            break;
        }
        let space = &text[at..at + len];
        at += len;
        newlines += match space {
            b"\r" if text.get(at) == Some(&b'\n') => continue,
            b"\r" | b"\n" | b"\x0B" | b"\x0C" | b"\xC2\x85" | b"\xE2\x80\xA8" => 1,
            b"\xE2\x80\xA9" => 2,
            _ => continue,
        };
        end = at;
    }
    let kind = [Ends::Word, Ends::Sentence, Ends::Paragraph][newlines.min(2)];
    (end, kind, at)
}

/// The text with ill-formed bytes, which are of no kind, as a control character each.
fn readable(text: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(text) {
        return Cow::Borrowed(text);
    }
    let mut readable = String::with_capacity(text.len());
    for chunk in text.utf8_chunks() {
        readable.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|_| readable.push('\x1A'));
    }
    Cow::Owned(readable)
}
