//! SentencePiece's normalizer: rules, white space, and the space in front, with an alignment to the original.

use super::charsmap::Charsmap;
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
}

/// A normalized text, and for each of its bytes the byte of the original where what it comes from starts; at the end
/// one more, where all of it ends.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Normalized {
    pub bytes: Vec<u8>,
    pub starts: Vec<usize>,
}

impl Normalizer {
    /// What the start of `text` becomes, and how many bytes that replaces.
    fn first<'a>(&'a self, text: &'a [u8]) -> (usize, &'a [u8]) {
        if let Some(protected) = &self.protected {
            let mut longest = 0;
            protected.prefixes(text, |len, _| longest = len);
            if longest > 0 {
                return (longest, &text[..longest]);
            }
        }
        Charsmap::first(self.charsmap.as_ref(), text)
    }

    pub fn apply(&self, text: &[u8], out: &mut Normalized) {
        let Normalized { bytes, starts } = out;
        bytes.clear();
        starts.clear();
        let mut at = 0;
        while self.remove_extra_whitespaces && at < text.len() {
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
        let mut add = |what: &[u8], at: usize| {
            bytes.extend_from_slice(what);
            starts.resize(bytes.len(), at);
        };
        if self.add_dummy_prefix && !self.treat_whitespace_as_suffix {
            add(space, at);
        }
        let mut is_after_space = self.remove_extra_whitespaces;
        while at < text.len() {
            let (len, mut replacement) = self.first(&text[at..]);
            while let Some(rest) = replacement.strip_prefix(b" ").filter(|_| is_after_space) {
                replacement = rest;
            }
            for part in replacement.split_inclusive(|&byte| byte == b' ') {
                let (text, spaces) = part.strip_suffix(b" ").map_or((part, &b""[..]), |text| (text, space));
                add(text, at);
                add(spaces, at);
            }
            if let Some(&last) = replacement.last() {
                is_after_space = self.remove_extra_whitespaces && last == b' ';
            }
            at += len;
        }
        if self.remove_extra_whitespaces {
            while let Some(rest) = bytes.strip_suffix(space) {
                let len = rest.len();
                at = starts[len];
                bytes.truncate(len);
                starts.truncate(len);
            }
        }
        if self.add_dummy_prefix && self.treat_whitespace_as_suffix {
            bytes.extend_from_slice(space);
            starts.resize(bytes.len(), at);
        }
        starts.push(at);
    }
}
