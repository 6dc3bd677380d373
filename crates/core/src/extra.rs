//! Extra tokens: the special and added tokens beside a model's entries, and what a call does with those in its text.

use std::ops::Range;
use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, Input, Match, MatchKind};

use crate::error::{Error, Kind as ErrorKind, Result};
use crate::unicode::{char_count, class_at, class_before, SPACE, WORD};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Special,
    Added,
    Unmatchable,
}

#[derive(Debug, Clone)]
pub struct Extra {
    pub id: u32,
    pub content: Vec<u8>,
    pub kind: Kind,
    pub single_word: bool,
    pub lstrip: bool,
    pub rstrip: bool,
    pub normalized: bool,
}

/// The extra tokens of a tokenizer.
pub struct Extras {
    pub tokens: Vec<Extra>,
    /// The indices of the tokens in the order of their contents.
    by_content: Vec<usize>,
    specials: OnceLock<Matcher>,
    /// Whether there are tokens that swallow the white space beside them.
    pub swallow: bool,
    /// What each is matched as: its content, or for one taken from normalized text, what the stages make of that.
    pub contents: Vec<Vec<u8>>,
}

/// What a call takes from text and what it refuses.
pub struct Policy {
    raw: Option<Matcher>,
    normalized: Option<Matcher>,
    forbidden: Option<Forbidden>,
}

/// Strings that a text must not hold.
struct Forbidden {
    automaton: AhoCorasick,
    contents: Vec<Vec<u8>>,
    /// The byte that all of them start with, if it is one.
    first: Option<u8>,
}

impl Forbidden {
    fn new(contents: Vec<Vec<u8>>) -> Result<Self> {
        let first = contents[0][0];
        let first = contents.iter().all(|content| content[0] == first).then_some(first);
        Ok(Self { automaton: build(contents.iter())?, contents, first })
    }

    /// The leftmost in a part of a text, and of these the longest.
    fn find(&self, text: &[u8], part: Range<usize>) -> Option<Match> {
        // A short text without that byte is not worth the start of the automaton.
        if part.len() < 256 && self.first.is_some_and(|first| !text[part.clone()].contains(&first)) {
            return None;
        }
        self.automaton.find(Input::new(text).span(part))
    }
}

/// Finds some of the extra tokens: the leftmost first, and of these the longest.
struct Matcher {
    automaton: AhoCorasick,
    tokens: Vec<usize>,
    /// Whether some of them are taken only as words of their own.
    single_words: bool,
}

impl Matcher {
    /// The longest token at each place `from..=last` where one starts.
    fn starts<'a>(&'a self, text: &'a [u8], mut from: usize, last: usize) -> impl Iterator<Item = Match> + 'a {
        let to = text.len().min(last + self.automaton.max_pattern_len());
        std::iter::from_fn(move || {
            let hit = self.automaton.find(Input::new(text).span(from.min(to)..to)).filter(|hit| hit.start() <= last)?;
            from = hit.start() + 1;
            Some(hit)
        })
    }
}

/// An extra token found in text: its index in `Extras`, and the bytes it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    pub token: usize,
    pub start: usize,
    pub end: usize,
}

impl Extras {
    /// `contents` are what the tokens are matched as.
    pub fn new(tokens: Vec<Extra>, contents: Vec<Vec<u8>>) -> Result<Self> {
        let mut by_content: Vec<usize> = (0..tokens.len()).collect();
        by_content.sort_unstable_by_key(|&i| &tokens[i].content);
        if let Some(twice) = by_content.windows(2).find(|w| tokens[w[0]].content == tokens[w[1]].content) {
            let content = &tokens[twice[0]].content;
            return Err(Error::format(format!("{} is an extra token twice", crate::vocab::show(content))));
        }
        if let Some(empty) = tokens.iter().find(|token| token.content.is_empty()) {
            return Err(Error::format(format!("the extra token with id {} is empty", empty.id)));
        }
        let swallow = tokens.iter().any(|token| token.lstrip || token.rstrip);
        Ok(Self { tokens, by_content, specials: OnceLock::new(), swallow, contents })
    }

    /// The token with this content.
    pub fn spelled(&self, content: &[u8]) -> Option<&Extra> {
        let at = self.by_content.binary_search_by(|&i| (*self.tokens[i].content).cmp(content)).ok()?;
        Some(&self.tokens[self.by_content[at]])
    }

    /// Takes the special tokens that `allowed` says, and all added tokens; refuses text that holds one of `forbidden`.
    pub fn policy(&self, allowed: impl Fn(&Extra) -> bool, forbidden: Vec<Vec<u8>>) -> Result<Policy> {
        let taken = |normalized: bool| -> Result<Option<Matcher>> {
            let tokens: Vec<usize> = (0..self.tokens.len())
                .filter(|&i| {
                    let token = &self.tokens[i];
                    let is_taken = token.kind == Kind::Added || (token.kind == Kind::Special && allowed(token));
                    is_taken && token.normalized == normalized && !self.contents[i].is_empty()
                })
                .collect();
            if tokens.is_empty() {
                return Ok(None);
            }
            let contents = tokens.iter().map(|&i| &self.contents[i]);
            let single_words = tokens.iter().any(|&i| self.tokens[i].single_word);
            Ok(Some(Matcher { automaton: build(contents)?, tokens, single_words }))
        };
        let forbidden: Vec<Vec<u8>> = forbidden.into_iter().filter(|content| !content.is_empty()).collect();
        let forbidden = match forbidden.is_empty() {
            true => None,
            false => Some(Forbidden::new(forbidden)?),
        };
        Ok(Policy { raw: taken(false)?, normalized: taken(true)?, forbidden })
    }

    /// Where `text` spells special tokens, whatever their flags: the leftmost first, and of these the longest.
    pub fn find_specials(&self, text: &[u8]) -> Result<Vec<Found>> {
        let Matcher { automaton, tokens, .. } = self.all_specials()?;
        let hits = automaton.find_iter(text);
        Ok(hits
            .map(|hit| Found { token: tokens[hit.pattern().as_usize()], start: hit.start(), end: hit.end() })
            .collect())
    }

    /// Built when first needed, outside the lock: a process forked meanwhile must not wait for a thread it lacks.
    fn all_specials(&self) -> Result<&Matcher> {
        if let Some(built) = self.specials.get() {
            return Ok(built);
        }
        let tokens: Vec<usize> = (0..self.tokens.len()).filter(|&i| self.tokens[i].kind == Kind::Special).collect();
        let automaton = build(tokens.iter().map(|&i| &self.tokens[i].content))?;
        Ok(self.specials.get_or_init(|| Matcher { automaton, tokens, single_words: false }))
    }

    /// Contents of all special tokens.
    pub fn specials(&self) -> Vec<Vec<u8>> {
        let specials = self.tokens.iter().filter(|token| token.kind == Kind::Special);
        specials.map(|token| token.content.clone()).collect()
    }
}

fn build<'c>(contents: impl Iterator<Item = &'c Vec<u8>>) -> Result<AhoCorasick> {
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .build(contents)
        .map_err(|error| Error::value(format!("too many or too long extra tokens: {error}")))
}

impl Policy {
    /// Refuses text that holds a forbidden string.
    pub fn check(&self, text: &[u8]) -> Result<()> {
        let Some(forbidden) = &self.forbidden else { return Ok(()) };
        let Some(found) = forbidden.find(text, 0..text.len()) else { return Ok(()) };
        let token = String::from_utf8_lossy(&forbidden.contents[found.pattern().as_usize()]).into_owned();
        Err(Error {
            kind: ErrorKind::SpecialToken,
            message: format!(
                "the text spells the special token {token:?} at character {}. To take it as that token, pass \
                 allowed_special={{{token:?}}}; to read it as ordinary text, pass disallowed_special=() or call \
                 encode_ordinary",
                char_count(&text[..found.start()])
            ),
        })
    }

    /// Whether no forbidden string starts in this part of a text.
    pub fn allows(&self, text: &[u8], part: &Range<usize>) -> bool {
        let Some(forbidden) = &self.forbidden else { return true };
        let to = text.len().min(part.end + forbidden.automaton.max_pattern_len());
        forbidden.find(text, part.start..to).is_none_or(|found| found.start() >= part.end)
    }

    /// The most bytes that a token taken from text has.
    pub fn max_len(&self) -> usize {
        self.matchers().map(|matcher| matcher.automaton.max_pattern_len()).max().unwrap_or(0)
    }

    fn matchers(&self) -> impl Iterator<Item = &Matcher> {
        self.raw.iter().chain(&self.normalized)
    }

    fn matcher(&self, normalized: bool) -> Option<&Matcher> {
        if normalized { &self.normalized } else { &self.raw }.as_ref()
    }

    pub fn takes_any(&self) -> bool {
        self.raw.is_some() || self.normalized.is_some()
    }

    pub fn takes_normalized(&self) -> bool {
        self.normalized.is_some()
    }

    /// Whether `text` holds a token, wherever it would be taken.
    pub fn occurs(&self, text: &[u8]) -> bool {
        self.matchers().any(|matcher| matcher.automaton.is_match(text))
    }

    /// Whether `text` holds near `at` a token that is taken before normalization.
    pub fn occurs_near(&self, text: &[u8], at: usize) -> bool {
        let (from, to) = (at.saturating_sub(self.max_len()), text.len().min(at + 2 * self.max_len()));
        self.raw.as_ref().is_some_and(|matcher| matcher.automaton.is_match(&text[from..to]))
    }

    /// Whether a token of one stage could take bytes on both sides of `at`, or ask there what stands on the other side.
    pub fn spans(&self, extras: &Extras, text: &[u8], at: usize, normalized: bool) -> bool {
        let Some(matcher) = self.matcher(normalized) else { return false };
        self.starts_near(text, at, normalized).any(|hit| {
            let looks = extras.tokens[matcher.tokens[hit.pattern().as_usize()]].single_word;
            (hit.start() < at && hit.end() > at) || (looks && (hit.start() == at || hit.end() == at))
        })
    }

    /// Whether one could also end at `at` (what follows it starts a stretch), or ask at `at` what stands before it.
    /// White space that a token swallows ends at the visible character on one side of a cut, so those flags do not
    /// matter.
    pub fn covers(&self, text: &[u8], at: usize, normalized: bool) -> bool {
        let single_words = self.matcher(normalized).is_some_and(|matcher| matcher.single_words);
        let mut hits = self.starts_near(text, at, normalized);
        hits.any(|hit| if hit.start() < at { hit.end() >= at } else { single_words })
    }

    fn starts_near<'a>(&'a self, text: &'a [u8], at: usize, normalized: bool) -> impl Iterator<Item = Match> + use<'a> {
        let near = move |matcher: &'a Matcher| {
            matcher.starts(text, at.saturating_sub(matcher.automaton.max_pattern_len()), at)
        };
        self.matcher(normalized).into_iter().flat_map(near)
    }

    /// Whether after a token with its swallowed white space `from..at` the text goes on as one that starts there: no
    /// token starts in that white space, and none at `at` asks what stands before it.
    pub fn starts_anew(&self, text: &[u8], from: usize, at: usize) -> bool {
        let looks_back =
            |matcher: &Matcher| matcher.starts(text, from, at).any(|hit| hit.start() < at || matcher.single_words);
        !self.matchers().any(looks_back)
    }

    /// The extra tokens in `text` that the stage for raw or for normalized text takes, in order and apart.
    pub fn find(&self, extras: &Extras, text: &[u8], normalized: bool) -> Vec<Found> {
        let Some(matcher) = self.matcher(normalized) else { return Vec::new() };
        let mut found: Vec<Found> = Vec::new();
        let mut free_from = 0;
        for hit in matcher.automaton.find_iter(Input::new(text)) {
            let index = matcher.tokens[hit.pattern().as_usize()];
            let token = &extras.tokens[index];
            let (mut start, mut end) = (hit.start(), hit.end());
            if token.single_word && !stands_alone(text, start, end) {
                continue;
            }
            // White space that the token before swallowed may start this one: HF takes both, and so do we.
            (start, end) = (start.max(free_from), end.max(free_from));
            while token.lstrip && start > free_from {
                let (class, at) = class_before(text, start);
                if class & SPACE == 0 {
                    break;
                }
                start = at.max(free_from);
            }
            while token.rstrip && end < text.len() {
                let (class, len) = class_at(text, end);
                if class & SPACE == 0 {
                    break;
                }
                end += len;
            }
            found.push(Found { token: index, start, end });
            free_from = end;
        }
        found
    }
}

/// Neither the character before `start` nor the one at `end` is a word character.
fn stands_alone(text: &[u8], start: usize, end: usize) -> bool {
    let before = start > 0 && class_before(text, start).0 & WORD != 0;
    let after = end < text.len() && class_at(text, end).0 & WORD != 0;
    !before && !after
}
