//! What HF tokenizers' pre-tokenizers do with matches, and two ways of cutting that have no matches: by scripts, and
//! into pieces of one length.

use crate::error::{Error, Result};
use crate::finder::Finder;
use crate::unicode::{char_at, char_len, class_before, script, ILL_FORMED, OLD_SCRIPTS};

/// The stage `SplitAt`.
pub struct Cutter {
    finder: Finder,
    behavior: Behavior,
    invert: bool,
}

/// What becomes of a match.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Behavior {
    Removed,
    Isolated,
    MergedWithPrevious,
    MergedWithNext,
    Contiguous,
}

impl Cutter {
    pub fn new(kind: &str, pattern: &str, behavior: &str, invert: bool, version: &str) -> Result<Self> {
        let behavior = match behavior {
            "removed" => Behavior::Removed,
            "isolated" => Behavior::Isolated,
            "merged-with-previous" => Behavior::MergedWithPrevious,
            "merged-with-next" => Behavior::MergedWithNext,
            "contiguous" => Behavior::Contiguous,
            _ => return Err(Error::format(format!("unknown behavior {behavior:?} of a SplitAt"))),
        };
        Ok(Self { finder: Finder::new(kind, pattern, version)?, behavior, invert })
    }

    pub fn plan(&self) -> (String, String) {
        let matches = match &self.finder {
            Finder::Literal(text) => format!("at {}", crate::vocab::show(text)),
            Finder::Regex(regex) => return regex.plan(),
            Finder::WhiteSpace => "at white space".into(),
            Finder::Punctuation => "at punctuation marks".into(),
            Finder::Numbers(_) => "at numbers".into(),
        };
        (matches, "one pass over the characters".into())
    }

    pub fn drops(&self) -> bool {
        self.behavior == Behavior::Removed
    }

    /// Gives `visit` the start and the end of each piece.
    pub fn split(&self, text: &[u8], mut visit: impl FnMut(usize, usize) -> Result<()>) -> Result<()> {
        let mut piece = |start, end| if start < end { visit(start, end) } else { Ok(()) };
        // What is not handed on yet, and what the last event was.
        let (mut open, mut before): (Option<(usize, usize)>, _) = (None, false);
        self.finder.events(text, |(start, end, is_match)| {
            let is_match = is_match != self.invert;
            let joins = match self.behavior {
                Behavior::Removed if is_match => {
                    before = true;
                    return Ok(());
                }
                Behavior::Removed | Behavior::Isolated => false,
                Behavior::MergedWithPrevious => is_match && !before,
                // Seen from the end, a match joins what comes after it, if that is no match.
                Behavior::MergedWithNext => before && !is_match,
                Behavior::Contiguous => is_match == before,
            };
            before = is_match;
            open = match open {
                Some((from, _)) if joins => Some((from, end)),
                Some((from, to)) => {
                    piece(from, to)?;
                    Some((start, end))
                }
                None => Some((start, end)),
            };
            Ok(())
        })?;
        open.map_or(Ok(()), |(from, to)| piece(from, to))
    }

    /// Whether there is a boundary at `at`, between two characters, whatever else the text holds.
    pub fn cuts(&self, text: &[u8], at: usize) -> bool {
        if !self.finder.is_by_character() {
            return false;
        }
        let is_match = |at| self.finder.takes(text, at).0 != self.invert;
        match (self.behavior, is_match(class_before(text, at).1), is_match(at)) {
            (Behavior::Removed | Behavior::Isolated, before, after) => before || after,
            (Behavior::Contiguous, before, after) => before != after,
            // A match is apart from another; what it joins on one side depends on no more than what is there.
            (Behavior::MergedWithPrevious, before, after) => before && !after,
            (Behavior::MergedWithNext, before, after) => !before && after,
        }
    }

    /// Whether a text cut in two at `at`, where it has no boundary, is cut in both parts as in the whole.
    pub fn ignores(&self, text: &[u8], at: usize) -> bool {
        self.finder.is_by_character()
            && self.finder.takes(text, class_before(text, at).1).0 == self.invert
            && self.finder.takes(text, at).0 == self.invert
    }
}

/// The stage `SplitScripts`.
pub struct Scripts;

impl Scripts {
    pub fn new(version: &str) -> Result<Self> {
        if version != OLD_SCRIPTS {
            return Err(Error::value(format!(
                "there are no scripts of Unicode {version:?}; there are of {OLD_SCRIPTS}"
            )));
        }
        Ok(Self)
    }

    /// Gives `visit` each run of characters of one script. What has none goes with what is before it; at the start of a
    /// text it is left out.
    pub fn split(&self, text: &[u8], mut visit: impl FnMut(usize, usize) -> Result<()>) -> Result<()> {
        let (mut open, mut last, mut at) = (None, 0, 0);
        while at < text.len() {
            let (c, len) = char_at(text, at);
            let own = if c == ILL_FORMED { 0 } else { script(c) };
            if own != 0 && own != last {
                if let Some(start) = open.replace(at) {
                    visit(start, at)?;
                }
                last = own;
            }
            at += len;
        }
        open.map_or(Ok(()), |start| visit(start, text.len()))
    }
}

/// Gives `visit` pieces of so many characters.
pub fn split_length(length: usize, text: &[u8], mut visit: impl FnMut(usize, usize) -> Result<()>) -> Result<()> {
    let mut start = 0;
    while start < text.len() {
        let (mut end, mut left) = (start, length);
        while left > 0 && end < text.len() {
            end += char_len(text, end);
            left -= 1;
        }
        visit(start, end)?;
        start = end;
    }
    Ok(())
}
