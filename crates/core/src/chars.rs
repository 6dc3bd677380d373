//! What BERT's basic tokenization does to characters, each by itself: cleaning, space around Chinese, marks taken off.
//!
//! As HF tokenizers does it (`BertNormalizer`), with the Unicode tables that it has for this, which are old.

use crate::error::{Error, Result};
use crate::pipeline::Segment;
use crate::unicode::{char_at, class, old_class, ILL_FORMED, OLD_MARK, OLD_OTHER, OLD_VERSION, SPACE};

/// A stage that drops or changes characters, whatever stands beside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CharRule {
    /// Drops controls, formats, private use and U+FFFD; white space becomes a space.
    CleanText,
    /// Puts a space on each side of a Chinese character.
    PadChinese,
    /// Drops nonspacing marks.
    StripAccents,
}

enum Change {
    Keep,
    Drop,
    Space,
    Pad,
}

/// HF's list of blocks of Chinese characters; it leaves out U+2B820 to U+2B91F, which BERT's own has.
const CHINESE: [(u32, u32); 7] = [
    (0x3400, 0x4dbf),
    (0x4e00, 0x9fff),
    (0xf900, 0xfaff),
    (0x20000, 0x2a6df),
    (0x2a700, 0x2b81f),
    (0x2b920, 0x2ceaf),
    (0x2f800, 0x2fa1f),
];

impl CharRule {
    /// `version` is that of the tables; None for the rule that needs none.
    pub fn new(name: &str, version: Option<&str>) -> Result<Self> {
        if version.is_some_and(|version| version != OLD_VERSION) {
            return Err(Error::value(format!(
                "no tables for the stage {name} of Unicode {version:?}; there are tables of {OLD_VERSION}"
            )));
        }
        match (name, version) {
            ("CleanText", Some(_)) => Ok(Self::CleanText),
            ("PadChinese", None) => Ok(Self::PadChinese),
            ("StripAccents", Some(_)) => Ok(Self::StripAccents),
            _ => Err(Error::format(format!("unknown stage {name}"))),
        }
    }

    pub fn plan(self) -> (&'static str, String, &'static str) {
        let alone = "character by character";
        match self {
            Self::CleanText => {
                ("clean text", format!("controls dropped, white space to spaces; Unicode {OLD_VERSION}"), alone)
            }
            Self::PadChinese => ("pad Chinese", "a space on each side".into(), alone),
            Self::StripAccents => ("strip accents", format!("nonspacing marks dropped; Unicode {OLD_VERSION}"), alone),
        }
    }

    #[inline]
    fn change(self, c: u32) -> Change {
        match self {
            Self::CleanText => match c {
                0x20..=0x7e => Change::Keep,
                0x09 | 0x0a | 0x0d => Change::Space,
                0 | 0xfffd => Change::Drop,
                _ if old_class(c) & OLD_OTHER != 0 => Change::Drop,
                _ if class(c) & SPACE != 0 => Change::Space,
                _ => Change::Keep,
            },
            Self::PadChinese
                if c >= CHINESE[0].0 && CHINESE.iter().any(|&(first, last)| (first..=last).contains(&c)) =>
            {
                Change::Pad
            }
            Self::StripAccents if c >= 0x300 && old_class(c) & OLD_MARK != 0 => Change::Drop,
            _ => Change::Keep,
        }
    }

    /// Whether this ASCII character stays, as itself or as a space.
    fn keeps_ascii(byte: u8) -> bool {
        matches!(byte, 0x20..=0x7e | b'\t' | b'\n' | b'\r')
    }

    /// Changes a segment. Ill-formed bytes stay as they are.
    pub fn apply_segment<'t>(self, segment: Segment<'t>) -> Segment<'t> {
        let bytes = &*segment.bytes;
        let is_same = match self {
            Self::CleanText => bytes.iter().all(|byte| (0x20..=0x7e).contains(byte)),
            _ => bytes.is_ascii(),
        };
        if is_same {
            return segment;
        }
        if self == Self::CleanText && bytes.iter().all(|&byte| Self::keeps_ascii(byte)) {
            let spaced = bytes.iter().map(|&byte| byte.max(b' ')).collect();
            return segment.with_bytes(spaced);
        }
        let (mut out, mut spans) = (Vec::with_capacity(bytes.len()), Vec::with_capacity(bytes.len()));
        let (mut at, mut kept) = (0, 0);
        let mut keep = |from: usize, to: usize, put: &[u8], len: usize, out: &mut Vec<u8>| {
            out.extend_from_slice(&bytes[from..to]);
            spans.extend((from..to).map(|i| segment.span(i, i + 1)));
            out.extend_from_slice(put);
            spans.extend(put.iter().map(|_| segment.span(to, to + len)));
        };
        while at < bytes.len() {
            let (c, len) = char_at(bytes, at);
            let change = if c == ILL_FORMED { Change::Keep } else { self.change(c) };
            match change {
                Change::Keep => {}
                Change::Drop => keep(kept, at, &[], len, &mut out),
                Change::Space => keep(kept, at, b" ", len, &mut out),
                Change::Pad => {
                    keep(kept, at, b" ", 0, &mut out);
                    keep(at, at + len, b" ", 0, &mut out);
                }
            }
            at += len;
            if !matches!(change, Change::Keep) {
                kept = at;
            }
        }
        if kept == 0 {
            return segment;
        }
        keep(kept, at, &[], 0, &mut out);
        Segment::mapped(out, spans)
    }

    /// `text` after this stage.
    pub fn apply(self, text: &str) -> String {
        String::from_utf8_lossy(&self.apply_segment(Segment::plain(text.as_bytes(), 0)).bytes).into_owned()
    }
}
