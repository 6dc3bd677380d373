//! BERT's way of splitting: at white space, which is dropped, and around each punctuation mark.

use crate::error::{Error, Result};
use crate::unicode::{char_at, class, class_before, old_class, ILL_FORMED, OLD_PUNCTUATION, OLD_VERSION, SPACE};

/// The stage `SplitPunctuation`.
pub struct Punctuation;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Letter,
    Space,
    Mark,
}

impl Punctuation {
    pub fn new(version: &str) -> Result<Self> {
        if version != OLD_VERSION {
            return Err(Error::value(format!(
                "no table of punctuation marks of Unicode {version:?}; there is one of {OLD_VERSION}"
            )));
        }
        Ok(Self)
    }

    /// The kind of the character at `at`, and its length in bytes.
    #[inline]
    fn kind(text: &[u8], at: usize) -> (Kind, usize) {
        let byte = text[at];
        if byte < 0x80 {
            return (ASCII[byte as usize], 1);
        }
        match char_at(text, at) {
            (ILL_FORMED, len) => (Kind::Letter, len),
            (c, len) if class(c) & SPACE != 0 => (Kind::Space, len),
            (c, len) if old_class(c) & OLD_PUNCTUATION != 0 => (Kind::Mark, len),
            (_, len) => (Kind::Letter, len),
        }
    }

    /// Gives `visit` the start and the end of each piece of `text`.
    pub fn each(&self, text: &[u8], mut visit: impl FnMut(usize, usize)) {
        let visited = self.split(text, |start, end| {
            visit(start, end);
            Ok(())
        });
        debug_assert!(visited.is_ok());
    }

    /// The same for what may fail.
    #[inline]
    pub fn split(&self, text: &[u8], mut visit: impl FnMut(usize, usize) -> Result<()>) -> Result<()> {
        let (mut start, mut at) = (0, 0);
        while at < text.len() {
            let (kind, len) = Self::kind(text, at);
            if kind != Kind::Letter {
                if start < at {
                    visit(start, at)?;
                }
                start = at + len;
                if kind == Kind::Mark {
                    visit(at, start)?;
                }
            }
            at += len;
        }
        if start < at {
            visit(start, at)?;
        }
        Ok(())
    }

    /// Whether there is a boundary at `at`, between two characters; it depends on these alone.
    pub fn cuts(&self, text: &[u8], at: usize) -> bool {
        let before = class_before(text, at).1;
        Self::kind(text, before).0 != Kind::Letter || Self::kind(text, at).0 != Kind::Letter
    }
}

const ASCII: [Kind; 128] = {
    let mut kinds = [Kind::Letter; 128];
    let mut byte = 0;
    while byte < 128 {
        if (byte as u8).is_ascii_punctuation() {
            kinds[byte] = Kind::Mark;
        } else if matches!(byte, 9..=13 | 32) {
            kinds[byte] = Kind::Space;
        }
        byte += 1;
    }
    kinds
};
