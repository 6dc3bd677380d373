//! Stages with which HF tokenizers does what SentencePiece does: they look at the whole text.

use unicode_normalization_alignments::char::is_combining_mark;
use unicode_segmentation::UnicodeSegmentation;

use super::charsmap::Charsmap;
use super::normalize::{Normalizer, SPACE};
use crate::error::{Error, Result};
use crate::finder::Finder;
use crate::normalize::VERSION;
use crate::pipeline::Segment;
use crate::unicode::char_at;

pub enum Rule {
    Precompiled(Charsmap),
    /// Drops all marks, by the tables of the normalization forms.
    StripMarks,
    Replace {
        old: Vec<u8>,
        new: Vec<u8>,
        runs: bool,
    },
    /// The same of what an expression matches, nothing included.
    ReplaceRegex {
        finder: Finder,
        new: Vec<u8>,
    },
    /// Drops controls and makes some other characters spaces, by a list that SentencePiece's `nmt_nfkc` has.
    Nmt,
    /// Writes each byte as the character that GPT-2's alphabet has for it.
    ByteAlphabet,
    Strip {
        left: bool,
        right: bool,
    },
    Metaspace {
        replacement: Vec<u8>,
        prepend: Prepend,
        words: bool,
        spaces: bool,
    },
}

/// Where a replacement is put in front of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Prepend {
    /// Where it does not start with one.
    Missing,
    /// The same, but only at the start of the whole text.
    First,
    Always,
    Never,
}

impl Prepend {
    /// Whether a segment gets one, which is a part of a text that may not be its start (`continues`). `spaces`: a space is
    /// one, too.
    pub fn adds(self, segment: &Segment<'_>, replacement: &[u8], spaces: bool, continues: bool) -> bool {
        let at = segment.span(0, 0).0;
        let missing = || !(segment.bytes.starts_with(replacement) || (spaces && segment.bytes.starts_with(b" ")));
        let adds = match self {
            Self::Missing => (at > 0 || !continues) && missing(),
            Self::First => at == 0 && !continues && missing(),
            Self::Always => at > 0 || !continues,
            Self::Never => false,
        };
        adds && !segment.bytes.is_empty()
    }
}

/// SentencePiece's normalizer, in the place of rules that make the same of a text.
pub struct Alike {
    pub normalizer: Normalizer,
    prepend: Prepend,
    spaces: bool,
}

impl Alike {
    /// None where rules do something else.
    pub fn new(rules: &[&Rule]) -> Option<Self> {
        let is_replace =
            |rule: &Rule| matches!(rule, Rule::Replace { old, new, runs: false } if old == b" " && new == SPACE);
        let (prepend, spaces) = match *rules {
            [replace] if is_replace(replace) => (Prepend::Never, false),
            [Rule::Metaspace { replacement, prepend, words: false, spaces }, ref rest @ ..] if replacement == SPACE => {
                match *rest {
                    [] if *spaces => (*prepend, true),
                    [replace] if !spaces && is_replace(replace) => (*prepend, false),
                    _ => return None,
                }
            }
            _ => return None,
        };
        let normalizer = Normalizer::escaping(prepend != Prepend::Never);
        Some(Self { normalizer, prepend, spaces })
    }

    /// Whether a segment gets a space in front.
    pub fn begins(&self, segment: &Segment<'_>, continues: bool) -> bool {
        self.prepend.adds(segment, SPACE, self.spaces, continues)
    }
}

/// A text that is being made, with the span of the original for each of its bytes.
struct Made<'a, 't> {
    segment: &'a Segment<'t>,
    bytes: Vec<u8>,
    spans: Vec<(usize, usize)>,
}

impl Made<'_, '_> {
    /// Keeps some bytes.
    fn keep(&mut self, from: usize, to: usize) {
        self.bytes.extend_from_slice(&self.segment.bytes[from..to]);
        self.spans.extend((from..to).map(|at| self.segment.span(at, at + 1)));
    }

    /// Puts other bytes in the place of some.
    fn replace(&mut self, from: usize, to: usize, new: &[u8]) {
        if from < to && &self.segment.bytes[from..to] == new {
            return self.keep(from, to);
        }
        self.bytes.extend_from_slice(new);
        let span = self.segment.span(from, to);
        self.spans.resize(self.bytes.len(), span);
    }
}

impl Rule {
    /// A stage as `stages.py` describes it, if it is one of these.
    pub fn new(row: &[&str]) -> Result<Option<Self>> {
        Ok(Some(match *row {
            ["Precompiled", rules] => Self::Precompiled(charsmap_of(rules)?),
            ["StripMarks", VERSION] => Self::StripMarks,
            ["Replace", old, new, runs] => {
                if old.is_empty() {
                    return Err(Error::format("a Replace stage replaces nothing"));
                }
                Self::Replace { old: old.into(), new: new.into(), runs: runs == "true" }
            }
            ["ReplaceRegex", regex, new, version] => {
                Self::ReplaceRegex { finder: Finder::new("regex", regex, version)?, new: new.into() }
            }
            ["Nmt"] => Self::Nmt,
            ["ByteAlphabet"] => Self::ByteAlphabet,
            ["Strip", left, right] => Self::Strip { left: left == "true", right: right == "true" },
            ["Metaspace", replacement, prepend, words, spaces] => {
                let prepend = match prepend {
                    "missing" => Prepend::Missing,
                    "first" => Prepend::First,
                    "always" => Prepend::Always,
                    "never" => Prepend::Never,
                    _ => return Err(Error::format(format!("unknown way to prepend: {prepend:?}"))),
                };
                let (words, spaces) = (words == "true", spaces == "true");
                Self::Metaspace { replacement: replacement.into(), prepend, words, spaces }
            }
            _ => return Ok(None),
        }))
    }

    pub fn plan(&self) -> (&'static str, &'static str) {
        match self {
            Self::Precompiled(_) => ("normalize", "by SentencePiece's rules, as HF tokenizers reads them"),
            Self::StripMarks => ("strip marks", "of Unicode 9.0"),
            Self::Replace { .. } => ("replace", "one string by another"),
            Self::ReplaceRegex { .. } => ("replace", "what an expression matches"),
            Self::Nmt => ("clean text", "controls dropped, other white space to spaces"),
            Self::ByteAlphabet => ("bytes", "written in GPT-2's alphabet"),
            Self::Strip { .. } => ("strip", "white space at the ends"),
            Self::Metaspace { .. } => ("spaces", "made visible"),
        }
    }

    fn each_part(&self, text: &[u8], mut visit: impl FnMut(usize, usize, &[u8])) {
        let mut at = 0;
        for chunk in text.utf8_chunks() {
            for grapheme in chunk.valid().graphemes(true) {
                let mut part = |part: &str, new: &[u8]| {
                    visit(at, at + part.len(), new);
                    at += part.len();
                };
                match self {
                    Self::Precompiled(charsmap) => charsmap.hf_grapheme(grapheme, part),
                    _ => grapheme.chars().for_each(|c| {
                        let mut bytes = [0; 4];
                        let c_text = &*c.encode_utf8(&mut bytes);
                        part(c_text, if is_combining_mark(c) { b"" } else { c_text.as_bytes() });
                    }),
                }
            }
            for byte in chunk.invalid() {
                visit(at, at + 1, &[*byte]);
                at += 1;
            }
        }
    }

    /// `continues`: the text is a part that is not the start of the whole.
    pub fn apply_segment<'t>(&self, segment: Segment<'t>, continues: bool) -> Result<Segment<'t>> {
        let mut made =
            Made { segment: &segment, bytes: Vec::with_capacity(segment.bytes.len() + 8), spans: Vec::new() };
        match self {
            Self::Precompiled(_) | Self::StripMarks => {
                self.each_part(&segment.bytes, |from, to, new| match &segment.bytes[from..to] == new {
                    true => made.keep(from, to),
                    false => made.replace(from, to, new),
                });
            }
            Self::Replace { old, new, runs } => replace(old, new, *runs, &mut made),
            Self::ReplaceRegex { finder, new } => finder.events(&segment.bytes, |(from, to, is_match)| {
                match is_match {
                    true => made.replace(from, to, new),
                    false => made.keep(from, to),
                }
                Ok(())
            })?,
            Self::Nmt => nmt(&mut made),
            Self::ByteAlphabet => {
                for (at, &byte) in segment.bytes.iter().enumerate() {
                    made.replace(at, at + 1, byte_char(byte).encode_utf8(&mut [0; 2]).as_bytes());
                }
            }
            Self::Strip { left, right } => strip(*left, *right, &mut made),
            Self::Metaspace { words: true, replacement, .. } => words(replacement, &mut made),
            Self::Metaspace { replacement, prepend, spaces, .. } => {
                if prepend.adds(&segment, replacement, *spaces, continues) {
                    made.replace(0, 0, replacement);
                }
                match spaces {
                    true => replace(b" ", replacement, false, &mut made),
                    false => made.keep(0, segment.bytes.len()),
                }
            }
        }
        let Made { bytes, spans, .. } = made;
        Ok(Segment::mapped(bytes, spans))
    }

    /// The same of a string that stands nowhere.
    pub fn apply(&self, text: &str) -> Result<String> {
        let made = self.apply_segment(Segment::plain(text.as_bytes(), 0), false)?;
        Ok(String::from_utf8_lossy(&made.bytes).into_owned())
    }

    /// Whether a text may become nothing.
    pub fn drops(&self) -> bool {
        match self {
            Self::Precompiled(_) | Self::StripMarks | Self::Nmt | Self::Strip { .. } => true,
            Self::Replace { new, .. } | Self::ReplaceRegex { new, .. } => new.is_empty(),
            Self::Metaspace { words, .. } => *words,
            Self::ByteAlphabet => false,
        }
    }
}

/// The character that GPT-2's alphabet has for a byte: itself where it can be seen, else one from U+0100 on.
pub fn byte_char(byte: u8) -> char {
    let is_seen = |byte: u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    match is_seen(byte) {
        true => char::from(byte),
        false => (0..byte)
            .filter(|&before| !is_seen(before))
            .fold('\u{100}', |c, _| char::from_u32(c as u32 + 1).unwrap_or(c)),
    }
}

fn nmt(made: &mut Made<'_, '_>) {
    let bytes = &made.segment.bytes;
    let mut at = 0;
    while at < bytes.len() {
        let (c, len) = char_at(bytes, at);
        match c {
            0x01..=0x08 | 0x0b | 0x0e..=0x1f | 0x7f | 0x8f | 0x9f => {}
            0x09 | 0x0a | 0x0c | 0x0d | 0x1680 | 0x200b..=0x200f | 0x2028 | 0x2029 | 0x2581 | 0xfeff | 0xfffd => {
                made.replace(at, at + len, b" ")
            }
            _ => made.keep(at, at + len),
        }
        at += len;
    }
}

fn charsmap_of(rules: &str) -> Result<Charsmap> {
    Charsmap::from_base64(rules)?.ok_or_else(|| Error::format("a Precompiled stage without rules"))
}

/// What a stage that looks at graphemes makes of a text: from where to where, and what becomes of it.
pub fn parts(row: &[&str], text: &[u8]) -> Result<Vec<(usize, usize, Vec<u8>)>> {
    let Some(rule) = Rule::new(row)? else { return Err(Error::format(format!("unknown stage {row:?}"))) };
    let mut parts = Vec::new();
    rule.each_part(text, |from, to, new| parts.push((from, to, new.to_vec())));
    Ok(parts)
}

fn replace(old: &[u8], new: &[u8], runs: bool, made: &mut Made<'_, '_>) {
    let bytes = &made.segment.bytes;
    let (mut at, mut kept) = (0, 0);
    while at < bytes.len() {
        let mut end = at;
        while bytes[end..].starts_with(old) {
            end += old.len();
            if !runs {
                break;
            }
        }
        if end - at >= old.len() * if runs { 2 } else { 1 } {
            made.keep(kept, at);
            made.replace(at, end, new);
            kept = end;
        }
        at = end.max(at + 1);
    }
    made.keep(kept, bytes.len());
}

/// Characters with their places; an ill-formed byte is one that is not white space.
fn is_space_at(bytes: &[u8], at: usize) -> Option<usize> {
    let len = crate::unicode::char_len(bytes, at);
    let c = std::str::from_utf8(&bytes[at..at + len]).ok()?.chars().next()?;
    c.is_whitespace().then_some(len)
}

fn strip(left: bool, right: bool, made: &mut Made<'_, '_>) {
    let bytes = &made.segment.bytes;
    let (mut from, mut to, mut at) = (None, 0, 0);
    while at < bytes.len() {
        match is_space_at(bytes, at) {
            Some(len) => at += len,
            None => {
                from.get_or_insert(at);
                at += crate::unicode::char_len(bytes, at);
                to = at;
            }
        }
    }
    // White space alone is at both ends.
    let from = if left { from.unwrap_or(bytes.len()) } else { 0 };
    let to = if right { to } else { bytes.len() };
    if from < to {
        made.keep(from, to);
    }
}

fn words(replacement: &[u8], made: &mut Made<'_, '_>) {
    let bytes = &made.segment.bytes;
    let mut at = 0;
    while at < bytes.len() {
        if let Some(len) = is_space_at(bytes, at) {
            at += len;
            continue;
        }
        let start = at;
        while at < bytes.len() && is_space_at(bytes, at).is_none() {
            at += crate::unicode::char_len(bytes, at);
        }
        if !bytes[start..at].starts_with(replacement) {
            made.replace(start, start, replacement);
        }
        made.keep(start, at);
    }
}
