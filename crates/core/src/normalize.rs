//! Unicode normalization with an alignment to the bytes it came from.
//!
//! The tables are those of `unicode-normalization-alignments`, which HF tokenizers uses: older than the class tables.

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

    /// Normalizes a segment. Ill-formed bytes stay as they are and separate what stands around them.
    ///
    /// The text is taken cluster by cluster (stretches that normalization treats independently). A cluster that does
    /// not change keeps its characters' own spans. Of one that does, composition gives every character the span of the
    /// whole cluster; decomposition knows what came of which character (see `sources`).
    pub fn apply_segment<'t>(self, segment: Segment<'t>) -> Segment<'t> {
        if segment.bytes.is_ascii() {
            return segment; // the same in every form
        }
        let mut out = Vec::with_capacity(segment.bytes.len());
        let mut spans = Vec::with_capacity(segment.bytes.len());
        self.each_cluster(&segment.bytes, |start, cluster, normalized| {
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
        let mut pos = 0;
        for chunk in bytes.utf8_chunks() {
            let mut rest = chunk.valid();
            while !rest.is_empty() {
                let (cluster, after) = rest.split_at(self.cluster_end(rest));
                rest = after;
                visit(pos, cluster.as_bytes(), self.apply(cluster).as_bytes());
                pos += cluster.len();
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
        self.each_cluster(bytes, |_, _, normalized| out.extend_from_slice(normalized));
        out
    }

    /// Whether normalization never looks across `at`.
    pub fn is_boundary(self, text: &[u8], at: usize) -> bool {
        at == 0 || at == text.len() || {
            let len = char_len(text, at);
            std::str::from_utf8(&text[at..at + len])
                .map_or(true, |c| c.chars().next().is_none_or(|c| self.starts_cluster(c)))
        }
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
}
