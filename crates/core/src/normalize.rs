//! Unicode normalization with an alignment to the bytes it came from.
//!
//! The tables are those of `unicode-normalization-alignments`, which HF tokenizers uses: older than the class tables.

use std::sync::atomic::{AtomicU64, Ordering};

use unicode_normalization_alignments::char::{canonical_combining_class, decompose_canonical, decompose_compatible};
use unicode_normalization_alignments::{is_nfc_quick, IsNormalized, UnicodeNormalization};

use crate::error::{Error, Result};
use crate::pipeline::Segment;
use crate::unicode::{char_len, class_before};

/// The Unicode version of the normalization tables.
pub const VERSION: &str = "9.0";

/// The Unicode version of the tables that rules for SentencePiece are made from.
pub const RULES_VERSION: &str = "17.0";

/// A text in a form, by the tables of either version.
pub fn normalized(text: &str, form: &str, version: &str) -> Result<String> {
    use unicode_normalization::UnicodeNormalization as Modern;

    if version != RULES_VERSION {
        return Form::new(form, version).map(|form| form.apply(text));
    }
    let characters = text.chars();
    Ok(match Form::new(form, VERSION)? {
        Form::Nfc => Modern::nfc(characters).collect(),
        Form::Nfd => Modern::nfd(characters).collect(),
        Form::Nfkc => Modern::nfkc(characters).collect(),
        Form::Nfkd => Modern::nfkd(characters).collect(),
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Nfc,
    Nfd,
    Nfkc,
    Nfkd,
}

impl std::fmt::Display for Form {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of Unicode {VERSION}", self.name())
    }
}

impl Form {
    pub fn new(name: &str, version: &str) -> Result<Self> {
        if version != VERSION {
            return Err(Error::value(format!(
                "no normalization tables for Unicode {version:?}; there are tables for {VERSION}"
            )));
        }
        [Self::Nfc, Self::Nfd, Self::Nfkc, Self::Nfkd].into_iter().find(|form| form.name() == name).ok_or_else(|| {
            Error::value(format!("unknown normalization form {name:?}; there are NFC, NFD, NFKC and NFKD"))
        })
    }

    /// Whether it takes characters apart, so that what follows one does not change how it starts.
    pub fn decomposes(self) -> bool {
        matches!(self, Self::Nfd | Self::Nfkd)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Nfc => "NFC",
            Self::Nfd => "NFD",
            Self::Nfkc => "NFKC",
            Self::Nfkd => "NFKD",
        }
    }

    /// `text` in this form.
    pub fn apply(self, text: &str) -> String {
        let characters = text.chars();
        match self {
            Self::Nfc => characters.nfc().map(|(c, _)| c).collect(),
            Self::Nfd => characters.nfd().map(|(c, _)| c).collect(),
            Self::Nfkc => characters.nfkc().map(|(c, _)| c).collect(),
            Self::Nfkd => characters.nfkd().map(|(c, _)| c).collect(),
        }
    }

    /// Whether normalization never looks across the place before `c`: what `c` decomposes to starts with a character
    /// that neither moves (combining class 0) nor composes with one before it.
    fn starts_cluster(self, c: char) -> bool {
        let mut first = None;
        let keep_first = |d| {
            first.get_or_insert(d);
        };
        match self {
            Self::Nfc | Self::Nfd => decompose_canonical(c, keep_first),
            Self::Nfkc | Self::Nfkd => decompose_compatible(c, keep_first),
        }
        let first = first.unwrap_or(c);
        canonical_combining_class(first) == 0 && is_nfc_quick(std::iter::once(first)) == IsNormalized::Yes
    }

    /// How many of the first bytes stay as they are whatever follows: all, or those of characters that stay by
    /// themselves, but for the last, which may be part of a cluster that changes.
    fn kept(self, text: &[u8]) -> usize {
        const AT_ONCE: usize = 32;
        let (mut at, mut last) = (0, 0);
        while let Some(rest) = text.get(at..) {
            // What follows the first byte of a character is all that is looked at: an ill-formed one of such bytes stays
            // as it is, too, whatever row it is taken for.
            let (number, end, size) = match *rest {
                [] => break,
                [byte, ..] if byte.is_ascii() => {
                    let is_ascii = |bytes: &[u8; AT_ONCE]| bytes.is_ascii();
                    let step = if rest.first_chunk().is_some_and(is_ascii) { AT_ONCE } else { 1 };
                    (last, at) = (at + step - 1, at + step);
                    continue;
                }
                [a @ 0xc2..0xe0, z, ..] if follows(z) => (usize::from(a & 31), z, 2),
                [a @ 0xe0..0xf0, b, z, ..] if follows(b) && follows(z) => (bits(a & 15) << 6 | bits(b), z, 3),
                [a @ 0xf0..0xf5, b, c, z, ..] if follows(b) && follows(c) && follows(z) => {
                    (bits(a & 7) << 12 | bits(b) << 6 | bits(c), z, 4)
                }
                _ => return last,
            };
            if !KEPT[self as usize].has(number, end, self) {
                return last;
            }
            (last, at) = (at, at + size);
        }
        at
    }

    /// Normalizes a segment. Ill-formed bytes stay as they are and separate what stands around them.
    ///
    /// The text is taken cluster by cluster (stretches that normalization treats independently). A cluster that does
    /// not change keeps its characters' own spans. Of one that does, composition gives every character the span of the
    /// whole cluster; decomposition knows what came of which character (see `sources`).
    pub fn apply_segment<'t>(self, segment: Segment<'t>) -> Segment<'t> {
        if self.kept(&segment.bytes) == segment.bytes.len() {
            return segment;
        }
        let mut out = Vec::with_capacity(segment.bytes.len());
        let mut spans = Vec::with_capacity(segment.bytes.len());
        self.each_stretch(&segment.bytes, |start, cluster, normalized| {
            out.extend_from_slice(normalized);
            if normalized == cluster {
                spans.extend((start..start + cluster.len()).map(|i| segment.span(i, i + 1)));
            } else if let Some(sources) = self.sources(cluster) {
                let mut at = 0;
                for (len, (from, to)) in sources {
                    at += len;
                    match normalized.get(at - len..at) == cluster.get(from..to) {
                        true => spans.extend((start + from..start + to).map(|i| segment.span(i, i + 1))),
                        false => spans.extend(std::iter::repeat_n(segment.span(start + from, start + to), len)),
                    }
                }
            } else {
                let span = segment.span(start, start + cluster.len());
                spans.extend(std::iter::repeat_n(span, normalized.len()));
            }
        });
        if out == *segment.bytes {
            return segment;
        }
        Segment::mapped(out, spans)
    }

    /// For each character that a cluster is taken apart into, its length and where in the cluster its source stands. Marks
    /// that change their order take the places in order, so that spans never go back, as in HF tokenizers.
    fn sources(self, cluster: &[u8]) -> Option<Vec<(usize, (usize, usize))>> {
        let text = std::str::from_utf8(cluster).ok()?;
        let parts: Vec<(char, isize)> = match self {
            Self::Nfd => text.nfd().collect(),
            Self::Nfkd => text.nfkd().collect(),
            Self::Nfc | Self::Nfkc => return None,
        };
        let mut ends = text.char_indices().map(|(at, c)| (at, at + c.len_utf8()));
        let mut source = None;
        let place = |(part, more): (char, isize)| {
            if source.is_none() || more == 0 {
                source = ends.next().or(source);
            }
            Some((part.len_utf8(), source?))
        };
        parts.into_iter().map(place).collect()
    }

    /// Gives `visit` each cluster: where it starts, its bytes, and what they become. Ill-formed bytes are one each.
    pub fn each_cluster(self, bytes: &[u8], mut visit: impl FnMut(usize, &[u8], &[u8])) {
        self.each_stretch(bytes, |start, stretch, normalized| {
            if stretch != normalized {
                return visit(start, stretch, normalized);
            }
            let mut at = 0;
            while at < stretch.len() {
                let end = at + std::str::from_utf8(&stretch[at..]).map_or(1, |rest| self.cluster_end(rest));
                visit(start + at, &stretch[at..end], &stretch[at..end]);
                at = end;
            }
        });
    }

    /// The same, with clusters that do not change put together.
    fn each_stretch(self, bytes: &[u8], mut visit: impl FnMut(usize, &[u8], &[u8])) {
        let mut pos = 0;
        for chunk in bytes.utf8_chunks() {
            let mut rest = chunk.valid();
            while !rest.is_empty() {
                let kept = self.kept(rest.as_bytes());
                let (stretch, after) = rest.split_at(if kept > 0 { kept } else { self.cluster_end(rest) });
                rest = after;
                match kept {
                    0 => visit(pos, stretch.as_bytes(), self.apply(stretch).as_bytes()),
                    _ => visit(pos, stretch.as_bytes(), stretch.as_bytes()),
                }
                pos += stretch.len();
            }
            for &byte in chunk.invalid() {
                visit(pos, &[byte], &[byte]);
                pos += 1;
            }
        }
    }

    /// `bytes` in this form.
    pub fn apply_bytes(self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        self.each_stretch(bytes, |_, _, normalized| out.extend_from_slice(normalized));
        out
    }

    /// Whether `bytes` are in this form.
    pub fn leaves(self, bytes: &[u8]) -> bool {
        self.kept(bytes) == bytes.len() || self.apply_bytes(bytes) == bytes
    }

    /// Whether normalization never looks across `at`.
    pub fn is_boundary(self, text: &[u8], at: usize) -> bool {
        at == 0 || at == text.len() || {
            let len = char_len(text, at);
            std::str::from_utf8(&text[at..at + len])
                .map_or(true, |c| c.chars().next().is_none_or(|c| self.starts_cluster(c)))
        }
    }

    /// Whether normalization never looks from a text at what stands in front of it.
    pub fn starts_with_cluster(self, text: &[u8]) -> bool {
        crate::unicode::decode(text).and_then(|(c, _)| char::from_u32(c)).is_none_or(|c| self.starts_cluster(c))
    }

    /// Whether `at` lies between two clusters and `holds` is true of the normalized text around it, whatever these two
    /// are cut down to.
    pub fn holds_between(self, text: &[u8], at: usize, holds: impl Fn(&[u8], usize) -> bool) -> bool {
        const LONGEST: usize = 8; // characters: longer clusters are rare
        if !self.is_boundary(text, at) {
            return false;
        }
        let (mut lefts, mut from) = (Vec::new(), at);
        while lefts.is_empty() || !self.is_boundary(text, from) {
            from = class_before(text, from).1;
            lefts.push(self.apply_bytes(&text[from..at]));
            if lefts.len() > LONGEST {
                return false;
            }
        }
        let (mut rights, mut to) = (Vec::new(), at);
        while rights.is_empty() || !self.is_boundary(text, to) {
            to += char_len(text, to);
            rights.push(self.apply_bytes(&text[at..to]));
            if rights.len() > LONGEST {
                return false;
            }
        }
        lefts.iter().all(|left| rights.iter().all(|right| holds(&[&left[..], right].concat(), left.len())))
    }

    fn cluster_end(self, text: &str) -> usize {
        text.char_indices().skip(1).find(|&(_, c)| self.starts_cluster(c)).map_or(text.len(), |(at, _)| at)
    }
}

/// The characters that start a cluster and are left as they are: where two of them stand side by side, the first is a
/// cluster that does not change. By rows of 64 code points; a row is found out when a text first has one of it.
struct Kept {
    rows: [AtomicU64; ROWS],
    known: [AtomicU64; ROWS / 64],
}

const ROWS: usize = 0x11_0000 / 64;

static KEPT: [Kept; 4] =
    [const { Kept { rows: [const { AtomicU64::new(0) }; ROWS], known: [const { AtomicU64::new(0) }; ROWS / 64] } }; 4];

impl Kept {
    /// Whether the character of a row whose last byte is `end` is one of them.
    #[inline]
    fn has(&self, number: usize, end: u8, form: Form) -> bool {
        let is_set = || self.rows.get(number).is_some_and(|row| row.load(Ordering::Relaxed) >> (end & 63) & 1 == 1);
        is_set() || {
            self.find_out(number, form);
            is_set()
        }
    }

    #[cold]
    fn find_out(&self, number: usize, form: Form) {
        let Some(known) = self.known.get(number / 64) else { return };
        if known.load(Ordering::Acquire) >> (number % 64) & 1 == 1 {
            return;
        }
        let is_kept = |c: char| form.starts_cluster(c) && form.apply(c.encode_utf8(&mut [0; 4])).chars().eq([c]);
        let bit = |at: u32| u64::from(char::from_u32(number as u32 * 64 + at).is_some_and(is_kept)) << at;
        self.rows[number].store((0..64).map(bit).sum(), Ordering::Relaxed);
        known.fetch_or(1 << (number % 64), Ordering::Release);
    }
}

/// Whether a byte is one behind the first of a character, and the bits of the code point that it has.
fn follows(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

fn bits(byte: u8) -> usize {
    usize::from(byte & 63)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every pair and triple of characters that normalization moves, joins or takes apart, and plain ones.
    #[test]
    fn clusters_normalize_as_the_whole_does() {
        let hard: Vec<char> = "aeA\u{301}\u{323}\u{30a}é\u{1100}\u{1161}\u{11a8}가각ﬁ①\u{9be}\u{9c7}\u{344}\u{2126}\u{fb2c}カ\u{3099}\u{ff76}\u{ff9e} 中😀"
            .chars()
            .collect();
        for form in [Form::Nfc, Form::Nfd, Form::Nfkc, Form::Nfkd] {
            for &a in &hard {
                for &b in &hard {
                    for &c in &hard {
                        let text = String::from_iter([a, b, c, a]);
                        let segment = form.apply_segment(Segment::plain(text.as_bytes(), 0));
                        assert_eq!(&*segment.bytes, form.apply(&text).as_bytes(), "{form:?} {text:?}");
                    }
                }
            }
        }
    }

    /// The clusters of random bytes, most of them characters of a few rows, are those found one character at a time.
    #[test]
    fn stretches_that_are_kept_change_no_cluster() {
        let mut state = 1u64;
        let mut random = |below: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u32 % below
        };
        let rows = [0x40, 0xc0, 0x300, 0x340, 0x640, 0x900, 0x1100, 0x1e80, 0x3040, 0xac00, 0xf900, 0x1_d140, 0x2_f800];
        for round in 0..20_000 {
            let mut text = Vec::new();
            for _ in 0..random(60) {
                let row = rows[random(rows.len() as u32) as usize];
                match random(if round % 3 == 0 { 20 } else { 12 }) {
                    0..=5 => text.push(b' ' + random(90) as u8),
                    12..=13 => text.push(random(256) as u8),
                    14 => text.extend_from_slice(&[b'a'; 40]),
                    _ => {
                        let c = char::from_u32(row + random(64)).unwrap_or('é');
                        text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                    }
                }
            }
            for form in [Form::Nfc, Form::Nfd, Form::Nfkc, Form::Nfkd] {
                let (mut right, mut at) = (Vec::new(), 0);
                for chunk in text.utf8_chunks() {
                    let mut rest = chunk.valid();
                    while !rest.is_empty() {
                        let (cluster, after) = rest.split_at(form.cluster_end(rest));
                        right.push((at, form.apply(cluster).into_bytes()));
                        (at, rest) = (at + cluster.len(), after);
                    }
                    right.extend(chunk.invalid().iter().enumerate().map(|(i, &byte)| (at + i, vec![byte])));
                    at += chunk.invalid().len();
                }
                let mut clusters = Vec::new();
                form.each_cluster(&text, |start, _, normalized| clusters.push((start, normalized.to_vec())));
                assert_eq!(clusters, right, "{form:?} {text:x?}");
                let whole: Vec<u8> = right.into_iter().flat_map(|(_, normalized)| normalized).collect();
                assert_eq!(form.apply_bytes(&text), whole, "{form:?} {text:x?}");
                assert_eq!(form.leaves(&text), whole == text, "{form:?} {text:x?}");
                assert_eq!(&*form.apply_segment(Segment::plain(&text, 0)).bytes, whole, "{form:?} {text:x?}");
            }
        }
    }

    #[test]
    fn every_character_alone() {
        for c in (0..0x11_0000).filter_map(char::from_u32) {
            let text = c.to_string();
            for form in [Form::Nfc, Form::Nfd, Form::Nfkc, Form::Nfkd] {
                assert_eq!(form.apply_bytes(text.as_bytes()), form.apply(&text).into_bytes(), "{form:?} {text:?}");
            }
        }
    }
}
