//! Where a text matches something, and what is between: what HF tokenizers' `Split`, `Replace` and others ask.

use crate::error::{Error, Result};
use crate::split::regex::{Regex, ScanState, Syntax};
use crate::unicode::{char_at, char_len, check_version, class, newer_numbers, old_class};
use crate::unicode::{ILL_FORMED, NUMBER, OLD_PUNCTUATION, OLD_VERSION, SPACE};

pub enum Finder {
    Literal(Vec<u8>),
    Regex(Box<Regex>),
    /// One character each.
    WhiteSpace,
    /// Of ASCII all that is visible and neither letter nor number; else `\p{P}` of an old version.
    Punctuation,
    /// With what the Unicode version has beyond the class tables.
    Numbers(&'static [(u32, u32)]),
}

/// A stretch of a text, and whether it is a match.
pub type Event = (usize, usize, bool);

impl Finder {
    /// `kind` and `pattern` are those of a `SplitAt` in `stages.py`.
    pub fn new(kind: &str, pattern: &str, version: &str) -> Result<Self> {
        match kind {
            "string" => Ok(Self::Literal(pattern.into())),
            "regex" => {
                check_version(version)?;
                Ok(Self::Regex(Box::new(Regex::new(pattern, Syntax::new("oniguruma")?, true)?)))
            }
            "white-space" => check_version(version).map(|()| Self::WhiteSpace),
            "punctuation" if version == OLD_VERSION => Ok(Self::Punctuation),
            "punctuation" => Err(Error::value(format!("there is no table of punctuation of Unicode {version:?}"))),
            "numbers" => Ok(Self::Numbers(newer_numbers(version)?)),
            _ => Err(Error::format(format!("unknown kind of pattern {kind:?}"))),
        }
    }

    /// Whether a place between two characters that do not match is always one where the text can be cut in two: matches
    /// are single characters.
    pub fn is_by_character(&self) -> bool {
        !matches!(self, Self::Literal(_) | Self::Regex(_))
    }

    /// Whether the character at `at` matches, and its length.
    #[inline]
    pub fn takes(&self, text: &[u8], at: usize) -> (bool, usize) {
        let (c, len) = char_at(text, at);
        let is_taken = match self {
            _ if c == ILL_FORMED => false,
            Self::WhiteSpace => class(c) & SPACE != 0,
            Self::Punctuation if c < 0x80 => (c as u8).is_ascii_punctuation(),
            Self::Punctuation => old_class(c) & OLD_PUNCTUATION != 0,
            Self::Numbers(newer) => {
                class(c) & NUMBER != 0 || newer.iter().any(|&(first, last)| (first..=last).contains(&c))
            }
            Self::Literal(_) | Self::Regex(_) => false,
        };
        (is_taken, len)
    }

    /// Gives `visit` the matches and what is between them, in order. A match of nothing counts, but for one right behind
    /// another match; so does what is between, if it is something. In a text of nothing there are none.
    pub fn events(&self, text: &[u8], mut visit: impl FnMut(Event) -> Result<()>) -> Result<()> {
        let mut scan = ScanState::default();
        let (mut pos, mut kept, mut last) = (0, 0, None);
        while !text.is_empty() && pos <= text.len() {
            let end = match self {
                Self::Literal(wanted) => text[pos..].starts_with(wanted).then(|| pos + wanted.len()),
                Self::Regex(regex) => regex.match_end(text, pos, &mut scan),
                _ if pos == text.len() => None,
                _ => match self.takes(text, pos) {
                    (true, len) => Some(pos + len),
                    (false, _) => None,
                },
            };
            let next = pos + if pos < text.len() { char_len(text, pos) } else { 1 };
            let Some(end) = end.filter(|&end| end > pos || last != Some(end)) else {
                pos = next;
                continue;
            };
            if kept < pos {
                visit((kept, pos, false))?;
            }
            visit((pos, end, true))?;
            (kept, last) = (end, Some(end));
            pos = if end > pos { end } else { next };
        }
        if kept < text.len() {
            visit((kept, text.len(), false))?;
        }
        scan.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(kind: &str, pattern: &str, version: &str, text: &str) -> Vec<Event> {
        let mut found = Vec::new();
        let finder = Finder::new(kind, pattern, version).expect("sound");
        let visited = finder.events(text.as_bytes(), |event| {
            found.push(event);
            Ok(())
        });
        assert!(visited.is_ok());
        found
    }

    #[test]
    fn matches_of_nothing_count_but_behind_another() {
        assert_eq!(
            events("string", "", "16.0", "aé"),
            [(0, 0, true), (0, 1, false), (1, 1, true), (1, 3, false), (3, 3, true)]
        );
        assert_eq!(events("regex", "b*", "16.0", "abb"), [(0, 0, true), (0, 1, false), (1, 3, true)]);
        assert_eq!(events("string", "aa", "16.0", "aaaba"), [(0, 2, true), (2, 5, false)]);
        assert_eq!(events("white-space", "", "16.0", " a\u{3000}"), [(0, 1, true), (1, 2, false), (2, 5, true)]);
        assert_eq!(events("numbers", "", "17.0", ""), []);
    }
}
