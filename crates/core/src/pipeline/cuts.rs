//! Places where token counts add up: what stands in front gives the same tokens whatever stands behind, and the other
//! way round.

use std::borrow::Cow;

use super::{Pipeline, Rewrite, Segment, Splitter, Stage};
use crate::extra::Policy;
use crate::lowercase::Lowercase;
use crate::normalize::Form;
use crate::split::digits::Place;
use crate::split::Scanner;
use crate::unicode::{char_len, class_at, class_before, is_start, SPACE};

impl Pipeline {
    /// Whether `at` is a boundary between pieces whatever stands in front of it and whatever comes after, so that the
    /// text can be worked on from there as if it continued (and up to there as if it ended). Not every such place is
    /// known; in ordinary text there is one every word or so.
    pub fn is_cut(&self, text: &[u8], at: usize, policy: &Policy) -> bool {
        // A token that swallows white space must not do so across the place.
        let splits = |text: &[u8], at: usize| {
            self.splits_at(text, at) && !(self.extras.swallow && class_before(text, at).0 & SPACE != 0)
        };
        let is_boundary = match self.forms[..] {
            _ if self.drops_chars => self.holds_when_changed(text, at, splits),
            [] => self.holds_when_mapped(text, at, splits),
            _ if is_ascii_around(text, at) => self.holds_when_mapped(text, at, splits),
            [form] if !self.maps => form.holds_between(text, at, splits),
            _ => false,
        };
        let covers_normalized = || {
            let reach = policy.max_len();
            policy.covers(text, at, true) || !self.leaves_unchanged(text, at.saturating_sub(reach), at + reach)
        };
        self.is_orderly
            && is_boundary
            && !policy.covers(text, at, false)
            && !(policy.takes_normalized() && (self.maps || covers_normalized()))
    }

    /// Whether what depends on the two characters beside `at` holds of what the stages make of them, and whether that is
    /// the same whatever stands farther off.
    fn holds_when_mapped(&self, text: &[u8], at: usize, holds: impl Fn(&[u8], usize) -> bool) -> bool {
        if !self.maps {
            return holds(text, at);
        }
        let (before, after) = (&text[class_before(text, at).1..at], &text[at..at + char_len(text, at)]);
        // A sigma becomes one of two letters, which a pattern may tell apart.
        if !Lowercase::is_cut(text, at) || [before, after].contains(&"Σ".as_bytes()) {
            return false;
        }
        let before = self.rewritten(before, false);
        holds(&[&*before, &*self.rewritten(after, false)].concat(), before.len())
    }

    /// The same where characters are dropped: both must stay, as one that does not leaves its place to another, and both
    /// must be taken apart for themselves.
    fn holds_when_changed(&self, text: &[u8], at: usize, holds: impl Fn(&[u8], usize) -> bool) -> bool {
        let (start, end) = (class_before(text, at).1, at + char_len(text, at));
        let is_apart = |form: &Form| form.is_boundary(text, start) && form.is_boundary(text, at);
        let is_known = |form: &Form| is_ascii_around(text, at) || (form.decomposes() && is_apart(form));
        let is_sigma = || [&text[start..at], &text[at..end]].contains(&"Σ".as_bytes());
        if (self.looks_around && (!Lowercase::is_cut(text, at) || is_sigma())) || !self.forms.iter().all(is_known) {
            return false;
        }
        let (before, after) = (self.rewritten(&text[start..at], true), self.rewritten(&text[at..end], true));
        !before.is_empty() && !after.is_empty() && holds(&[&*before, &*after].concat(), before.len())
    }

    /// What the stages make of a few characters: all that rewrite, or those that do it character by character.
    pub(super) fn rewritten<'t>(&self, text: &'t [u8], normalizes: bool) -> Cow<'t, [u8]> {
        let rewrites = self.stages.iter().filter_map(|stage| match stage {
            Stage::Rewrite(Rewrite::Normalize(_)) if !normalizes => None,
            Stage::Rewrite(rewrite) => Some(rewrite),
            _ => None,
        });
        rewrites.fold(Segment::plain(text, 0), |segment, rewrite| rewrite.apply_segment(segment)).bytes
    }

    /// Whether the splitters have a boundary at `at`. What one says counts only where all before it would cut the two
    /// sides as they cut the whole.
    fn splits_at(&self, text: &[u8], at: usize) -> bool {
        for splitter in &self.splits {
            match splitter {
                Splitter::Digits(digits) => match digits.place(text, at) {
                    Place::Boundary => return true,
                    Place::InRun => return false,
                    Place::Outside => {}
                },
                Splitter::Punctuation(punctuation) if punctuation.cuts(text, at) => return true,
                // Within a word nothing is cut, on one side or on both.
                Splitter::Punctuation(_) => {}
                Splitter::Pattern(pattern) if pattern.cut(text, at) => return true,
                Splitter::Pattern(pattern) if pattern.splits() && !pattern.ignores(text, at) => return false,
                Splitter::Pattern(_) => {}
                Splitter::Neighbours(neighbours) if neighbours.cuts(text, at) => return true,
                Splitter::Neighbours(_) => return false,
                Splitter::At(cutter) if cutter.cuts(text, at) => return true,
                Splitter::At(cutter) if cutter.ignores(text, at) => {}
                Splitter::At(_) | Splitter::Scripts(_) | Splitter::Length(_) => return false,
            }
        }
        false
    }

    /// Whether what follows the extra token that ends at `at` counts as a text of its own.
    pub fn starts_anew_after(&self, text: &[u8], at: usize, index: usize, policy: &Policy) -> bool {
        let mut from = at;
        while self.extras.swallow && from > 0 {
            let (class, before) = class_before(text, from);
            if class & SPACE == 0 {
                break;
            }
            from = before;
        }
        // A token taken from normalized text must not owe its end to one taken before.
        let is_apart = || {
            let near = &text[from.saturating_sub(1)..text.len().min(at + 2 * policy.max_len())];
            (self.forms.is_empty() || near.is_ascii())
                && !self.maps
                && !policy.occurs_near(text, at)
                && !(self.extras.swallow && at < text.len() && class_at(text, at).0 & SPACE != 0)
        };
        self.is_orderly && (!self.extras.tokens[index].normalized || is_apart()) && policy.starts_anew(text, from, at)
    }

    /// Whether the extra token at `at` is taken wherever in front of it the text starts.
    pub fn is_always_taken(&self, text: &[u8], at: usize, index: usize, policy: &Policy) -> bool {
        let token = &self.extras.tokens[index];
        let is_plain =
            !token.lstrip && !token.single_word && (!token.normalized || (self.forms.is_empty() && !self.maps));
        self.is_orderly
            && is_plain
            && text[at..].starts_with(&token.content)
            && class_at(text, at).0 & SPACE == 0
            && !policy.spans(&self.extras, text, at, false)
            && !policy.spans(&self.extras, text, at, true)
    }

    /// Whether normalization changes nothing between `from` and `to`, nor a little around.
    fn leaves_unchanged(&self, text: &[u8], from: usize, to: usize) -> bool {
        const AROUND: usize = 32;
        let is_boundary = |at: usize| self.forms.iter().all(|form| form.is_boundary(text, at));
        let (Some(from), Some(to)) = (
            (from.saturating_sub(AROUND)..=from).rev().find(|&at| is_start(text, at) && is_boundary(at)),
            (to.min(text.len())..=text.len().min(to + AROUND)).find(|&at| is_start(text, at) && is_boundary(at)),
        ) else {
            return false;
        };
        self.forms.iter().all(|form| form.leaves(&text[from..to]))
    }

    /// A stretch of text without extra tokens as the patterns see it, but for a space in front.
    pub fn normalize<'t>(&self, text: &'t [u8], policy: &Policy) -> Option<Normalized<'t>> {
        let is_changed = !self.forms.iter().all(|form| form.leaves(text));
        match self.forms[..] {
            _ if !self.is_orderly || self.maps || policy.occurs(text) => None,
            _ if !is_changed => Some(Normalized { bytes: Cow::Borrowed(text), clusters: None }),
            [form] if !policy.takes_normalized() => {
                let (mut bytes, mut starts) = (Vec::new(), Vec::new());
                form.each_cluster(text, |start, _, normalized| {
                    starts.push((start, bytes.len()));
                    bytes.extend_from_slice(normalized);
                });
                starts.push((text.len(), bytes.len()));
                Some(Normalized { bytes: Cow::Owned(bytes), clusters: Some((form, starts)) })
            }
            _ => None,
        }
    }

    /// Whether an extra token in `text` may swallow white space.
    pub fn swallows(&self, text: &[u8], policy: &Policy) -> bool {
        let is_sure = !policy.takes_normalized() || (self.forms.is_empty() && !self.maps);
        self.extras.swallow && (!is_sure || policy.occurs(text))
    }

    /// Whether text may take no tokens at all, because a pattern drops it.
    pub fn drops(&self) -> bool {
        let drops = |splitter: &Splitter| match splitter {
            Splitter::Digits(_) | Splitter::Neighbours(_) | Splitter::Length(_) => false,
            Splitter::Punctuation(_) | Splitter::Scripts(_) => true,
            Splitter::Pattern(pattern) => pattern.drops(),
            Splitter::At(cutter) => cutter.drops(),
        };
        let stage_drops = |stage: &Stage| match stage {
            Stage::Cut(splitter) => drops(splitter),
            Stage::Hf(rule) => rule.drops(),
            _ => false,
        };
        self.splits.iter().any(drops) || self.stages.iter().any(stage_drops)
    }

    pub fn adds_space(&self) -> bool {
        self.stages.iter().any(|stage| matches!(stage, Stage::PrefixSpace))
    }

    /// The splits, if all are scanners.
    pub fn scanners(&self) -> Option<&[&'static Scanner]> {
        self.scanners.as_deref()
    }
}

/// A stretch of text after normalization.
pub struct Normalized<'t> {
    pub bytes: Cow<'t, [u8]>,
    /// The form and, for each cluster, where it starts in the text and in `bytes`, with the ends of both; None where
    /// normalization changes nothing. Then it changes no part of it either.
    clusters: Option<(Form, Vec<(usize, usize)>)>,
}

impl Normalized<'_> {
    pub fn is_changed(&self) -> bool {
        self.clusters.is_some()
    }

    /// The normalized form of `text[..at]`: so many of `bytes`, and these in addition.
    pub fn upto(&self, text: &[u8], at: usize) -> (usize, Vec<u8>) {
        let Some((form, starts)) = &self.clusters else { return (at, Vec::new()) };
        let (from, len) = starts[starts.partition_point(|&(start, _)| start <= at) - 1];
        (len, form.apply_bytes(&text[from..at]))
    }

    /// The normalized form of `text[at..]`: these bytes, and those of `bytes` from there on.
    pub fn from(&self, text: &[u8], at: usize) -> (Vec<u8>, usize) {
        let Some((form, starts)) = &self.clusters else { return (Vec::new(), at) };
        let (to, rest) = starts[starts.partition_point(|&(start, _)| start < at)];
        (form.apply_bytes(&text[at..to]), rest)
    }

    /// The part of the text without which not all of the first `len` bytes would be there.
    pub fn source_end(&self, len: usize) -> usize {
        let Some((_, starts)) = &self.clusters else { return len };
        starts[starts.partition_point(|&(_, start)| start < len)].0
    }

    /// The place in the text at or before which the bytes from `at` on start.
    pub fn source_start(&self, at: usize) -> usize {
        let Some((_, starts)) = &self.clusters else { return at };
        starts[starts.partition_point(|&(_, start)| start <= at) - 1].0
    }
}

fn is_ascii_around(text: &[u8], at: usize) -> bool {
    text[at - 1..text.len().min(at + 2)].is_ascii()
}
