//! SentencePiece's normalizer: rules, white space, and the space in front, with an alignment to the original.

use super::charsmap::Charsmap;
use crate::error::Result;
use crate::pipeline::Segment;
use crate::unigram::char_len;
use crate::unigram::trie::Trie;

/// U+2581, which stands for a space.
pub const SPACE: &[u8] = "\u{2581}".as_bytes();

/// The fields of a `NormalizerSpec`, by its names.
#[derive(Default)]
pub struct Normalizer {
    pub charsmap: Option<Charsmap>,
    pub add_dummy_prefix: bool,
    pub remove_extra_whitespaces: bool,
    pub escape_whitespaces: bool,
    pub treat_whitespace_as_suffix: bool,
    /// What no rule changes: the user-defined symbols of the model.
    pub protected: Option<Trie>,
    pub protected_keys: Vec<Vec<u8>>,
    /// Ill-formed bytes stay as they are, too.
    pub keeps_bytes: bool,
    /// ASCII characters but the space that stay as they are when another one of ASCII stands behind.
    pub stays: Vec<bool>,
}

/// A normalized text, and for each of its bytes the byte of the original where what it comes from starts; at the end
/// one more, where all of it ends.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Normalized {
    pub bytes: Vec<u8>,
    pub starts: Vec<usize>,
}

impl Normalizer {
    /// `rules` are in base64; `flags` are add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces and
    /// treat_whitespace_as_suffix.
    pub fn new(rules: &str, flags: [bool; 4], protected: &[&str]) -> Result<Self> {
        let mut keys: Vec<(&[u8], u32)> = protected.iter().map(|key| (key.as_bytes(), 0)).collect();
        keys.sort_unstable();
        keys.dedup();
        let [add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces, treat_whitespace_as_suffix] = flags;
        let charsmap = Charsmap::from_base64(rules)?;
        let starts_rule = |byte: u8| {
            let has = |text: &[u8]| charsmap.as_ref().is_some_and(|rules| rules.longest(text).is_some());
            let is_protected = keys.iter().any(|(key, _)| key.first() == Some(&byte));
            is_protected
                || (0..128).any(|next| has(&[byte, next]))
                || charsmap.as_ref().is_some_and(|r| r.goes_on(byte))
        };
        let stays = (0..128u8).map(|byte| byte != b' ' && !starts_rule(byte)).collect();
        Ok(Self {
            keeps_bytes: false,
            stays,
            charsmap,
            add_dummy_prefix,
            remove_extra_whitespaces,
            escape_whitespaces,
            treat_whitespace_as_suffix,
            protected_keys: keys.iter().map(|(key, _)| key.to_vec()).collect(),
            protected: if keys.is_empty() { None } else { Some(Trie::new(&keys)?) },
        })
    }

    /// The one that changes nothing but spaces.
    pub fn escaping(add_dummy_prefix: bool) -> Self {
        let stays = (0..128).map(|byte| byte != b' ').collect();
        Self { add_dummy_prefix, escape_whitespaces: true, keeps_bytes: true, stays, ..Self::default() }
    }

    /// `begins`: the segment is the start of a text.
    pub fn apply_segment<'t>(&self, segment: Segment<'t>, begins: bool) -> Segment<'t> {
        let mut out = Normalized::default();
        self.apply_part(&segment.bytes, begins, true, &mut out);
        out.starts.iter_mut().for_each(|start| *start = segment.span(*start, *start).0);
        Segment::with_starts(out.bytes, out.starts)
    }

    /// What the start of `text` becomes, and how many bytes that replaces.
    fn first<'a>(&'a self, text: &'a [u8]) -> (usize, &'a [u8]) {
        if let Some(protected) = &self.protected {
            let mut longest = 0;
            protected.prefixes(text, |len, _| longest = len);
            if longest > 0 {
                return (longest, &text[..longest]);
            }
        }
        if self.keeps_bytes {
            let len = char_len(text, 0);
            return (len, &text[..len]);
        }
        Charsmap::first(self.charsmap.as_ref(), text)
    }

    pub fn apply(&self, text: &[u8], out: &mut Normalized) {
        self.apply_part(text, true, true, out);
    }

    /// The same of a part of a text, which may begin and end it; no space stands in front of one that does not begin it.
    pub fn apply_part(&self, text: &[u8], begins: bool, ends: bool, out: &mut Normalized) {
        let Normalized { bytes, starts } = out;
        bytes.clear();
        starts.clear();
        let mut at = 0;
        while begins && self.remove_extra_whitespaces && at < text.len() {
            let (len, replacement) = self.first(&text[at..]);
            if replacement != b" " {
                break;
            }
            at += len;
        }
        if at == text.len() {
            starts.push(at);
            return;
        }
        let space = if self.escape_whitespaces { SPACE } else { b" " };
        let add = |bytes: &mut Vec<u8>, starts: &mut Vec<usize>, what: &[u8], at: usize| {
            bytes.extend_from_slice(what);
            starts.resize(bytes.len(), at);
        };
        if begins && self.add_dummy_prefix && !self.treat_whitespace_as_suffix {
            add(bytes, starts, space, at);
        }
        let mut is_after_space = begins && self.remove_extra_whitespaces;
        while at < text.len() {
            let byte = text[at];
            if byte.is_ascii() && self.stays[usize::from(byte)] && text.get(at + 1).is_none_or(u8::is_ascii) {
                bytes.push(byte);
                starts.push(at);
                is_after_space = false;
                at += 1;
                continue;
            }
            let (len, mut replacement) = self.first(&text[at..]);
            while let Some(rest) = replacement.strip_prefix(b" ").filter(|_| is_after_space) {
                replacement = rest;
            }
            if len == char_len(text, at) && replacement == &text[at..at + len] && replacement != b" " {
                add(bytes, starts, replacement, at);
                let first = starts.len() - len;
                starts[first..].iter_mut().zip(at..).for_each(|(start, at)| *start = at);
            } else {
                for part in replacement.split_inclusive(|&byte| byte == b' ') {
                    let (text, spaces) = part.strip_suffix(b" ").map_or((part, &b""[..]), |text| (text, space));
                    add(bytes, starts, text, at);
                    add(bytes, starts, spaces, at);
                }
            }
            if let Some(&last) = replacement.last() {
                is_after_space = self.remove_extra_whitespaces && last == b' ';
            }
            at += len;
        }
        if ends && self.remove_extra_whitespaces {
            while let Some(rest) = bytes.strip_suffix(space) {
                let len = rest.len();
                at = starts[len];
                bytes.truncate(len);
                starts.truncate(len);
            }
        }
        if ends && self.add_dummy_prefix && self.treat_whitespace_as_suffix {
            bytes.extend_from_slice(space);
            starts.resize(bytes.len(), at);
        }
        starts.push(at);
    }
}

/// What a text in base64 stands for.
pub fn base64(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0u32, 0);
    for byte in text.trim_end_matches('=').bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    Some(out)
}
