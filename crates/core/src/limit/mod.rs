//! Token limits: the longest part of a text that fits, exactly.
//!
//! More text can take fewer tokens, so a limit cannot be found by bisection. But counts add up across *cuts*
//! (`Engine::is_cut`): the count of a text is the sum over the stretches between cuts. So the stages run over a
//! window of the text, which grows with the room that is left; whole stretches are taken as long as they fit, and
//! only in the first that does not is every place tried, the farthest first. Where there is no cut for long, it is
//! asked how far the limit can reach at most.
//!
//! Inside a stretch [`Prefixes`] and [`Suffixes`] know the count at every place from one pass over it. Where they do
//! not apply (compiled split patterns, extra tokens in the stretch, stages in an unusual order), each place is counted for
//! itself.

mod prefixes;
mod suffixes;

use crate::bpe::Direction;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::extra::Policy;
use crate::pipeline::{Normalized, Stop, Unit};
use crate::split::Scanner;
use crate::unicode::{char_len, class_at, class_before, is_start, SPACE};
use crate::vocab::Token;
pub(crate) use prefixes::Prefixes;
use suffixes::Suffixes;

/// Pieces up to this length are encoded anew for each place that is tried in them.
const SHORT: usize = 128;
/// So near to the ends of a long piece the scanner itself is asked what a shortened one gives.
const EDGE: usize = 16;
/// The first window on a text, at most.
const WINDOW: usize = 1 << 20;
/// How many bytes are worked on between two questions whether to stop.
pub(crate) const STOP_EVERY: usize = 1 << 16;

/// What to keep of a text that is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Cut off at the right: keep the start.
    Right,
    /// Cut off at the left: keep the end.
    Left,
}

#[derive(Clone, Copy)]
pub(crate) struct Limit<'a> {
    pub engine: &'a Engine,
    pub policy: &'a Policy,
    pub stop: Stop<'a>,
    pub text: &'a [u8],
    /// An extra token may swallow white space, of which there can be any amount.
    swallows: bool,
}

impl Engine {
    /// The byte span of the longest prefix (suffix) of whole characters that takes at most `n` tokens.
    pub fn truncate(
        &self,
        text: &[u8],
        n: usize,
        side: Side,
        policy: &Policy,
        add_special_tokens: bool,
        stop: Stop<'_>,
    ) -> Result<(usize, usize)> {
        self.check_text(text, policy)?;
        let room = self.room(n, add_special_tokens)?;
        let limit = Limit::new(self, policy, stop, text);
        Ok(match side {
            Side::Right => (0, limit.prefix(room)?.0),
            Side::Left => (limit.suffix(room)?, text.len()),
        })
    }

    pub(crate) fn room(&self, n: usize, add_special_tokens: bool) -> Result<usize> {
        let template = if add_special_tokens { self.template_len() } else { 0 };
        n.checked_sub(template).ok_or_else(|| {
            Error::value(format!("a limit of {n} is too small: the special tokens around the text are {template}"))
        })
    }
}

/// What a run of the stages found where: a piece or an extra token of the text.
pub(crate) struct Found {
    pub start: usize,
    end: usize,
    /// Tokens of the run before it.
    before: usize,
    extra: Option<usize>,
}

/// A place where counts add up; `before` are the tokens of the run up to there.
pub(crate) struct Cut {
    pub at: usize,
    pub before: usize,
    /// The text goes on there as one that has begun.
    continues: bool,
}

impl<'a> Limit<'a> {
    pub fn new(engine: &'a Engine, policy: &'a Policy, stop: Stop<'a>, text: &'a [u8]) -> Self {
        Self { engine, policy, stop, text, swallows: engine.pipeline.swallows(text, policy) }
    }

    pub fn count(&self, from: usize, to: usize, continues: bool) -> Result<usize> {
        self.engine.count_part(&self.text[from..to], self.policy, continues, self.stop)
    }

    pub fn ask(&self) -> Result<()> {
        if (self.stop)() {
            return Err(Error::interrupted());
        }
        Ok(())
    }

    /// What the stages give for `text[from..to]`, and the number of tokens.
    pub fn run(&self, from: usize, to: usize, continues: bool) -> Result<(Vec<Found>, usize)> {
        let (mut found, mut total, mut tokens) = (Vec::new(), 0, Vec::new());
        self.engine.pipeline.run(&self.text[from..to], self.policy, continues, self.stop, |unit| {
            let mut push = |(start, end), extra, count| {
                found.push(Found { start: from + start, end: from + end, before: total, extra });
                total += count;
            };
            match unit {
                Unit::Extra { index, span } => push(span, Some(index), 1),
                Unit::Pieces { segment, bounds } => {
                    for &(start, end) in bounds {
                        tokens.clear();
                        self.engine.model().encode(&segment.bytes[start..end], &mut tokens);
                        push(segment.span(start, end), None, tokens.len());
                    }
                }
            }
            Ok(())
        })?;
        Ok((found, total))
    }

    /// Whether counts add up at the start of `found[i]`.
    pub fn pattern_cut(&self, found: &[Found], i: usize) -> Option<Cut> {
        let &Found { start: at, before, extra, .. } = &found[i];
        let is_first = i == 0 || found[i - 1].end <= at;
        let is_cut = is_first && extra.is_none() && at > 0 && self.engine.is_cut(self.text, at, self.policy);
        is_cut.then_some(Cut { at, before, continues: true })
    }

    /// The same for what comes after it: also where an extra token ends. `end` is that of the run.
    fn cut_for_prefix(&self, found: &[Found], i: usize, end: usize) -> Option<Cut> {
        let last = &found[i.checked_sub(1)?];
        let anew = last.extra.is_some_and(|index| {
            let sees_all = end == self.text.len() || last.end + self.policy.max_len() < end;
            sees_all && self.engine.pipeline.starts_anew_after(self.text, last.end, index, self.policy)
        });
        let after_extra = Cut { at: last.end, before: found[i].before, continues: false };
        anew.then_some(after_extra).or_else(|| self.pattern_cut(found, i))
    }

    /// The same for what comes before it: also where an extra token starts.
    fn cut_for_suffix(&self, found: &[Found], i: usize) -> Option<Cut> {
        let &Found { start: at, before, extra, .. } = &found[i];
        let is_taken = |index| at > 0 && self.engine.pipeline.is_always_taken(self.text, at, index, self.policy);
        let before_extra = Cut { at, before, continues: true };
        extra.is_some_and(is_taken).then_some(before_extra).or_else(|| self.pattern_cut(found, i))
    }

    /// A place in `text[from..to]` that `room` tokens from the start (the end) surely do not reach beyond, in the half
    /// that they start in.
    pub fn reach(&self, from: usize, to: usize, room: usize, side: Side) -> Result<Option<usize>> {
        let text = &self.text[from..to];
        let far =
            text.len() > 4 * self.policy.max_len() + 64 && !self.engine.pipeline.drops() && !self.engine.model.drops();
        let normalized = self.engine.pipeline.normalize(text, self.policy).filter(|_| far);
        let direction = if side == Side::Right { Direction::Forward } else { Direction::Backward };
        let (Some(normalized), Some(trie)) = (normalized, self.engine.model().trie(direction)) else { return Ok(None) };
        // White space at the far end is what an extra token beyond it may swallow.
        let bytes = match side {
            _ if !self.swallows => &normalized.bytes,
            Side::Right => trim_end(&normalized.bytes),
            Side::Left => trim_start(&normalized.bytes),
        };
        let len = bytes.len();
        let (mut at, mut end) = (0, 0);
        for _ in 0..room {
            let mut farthest = end;
            while at <= end && at < len {
                let rest = if side == Side::Right { &bytes[at..] } else { &bytes[..len - at] };
                farthest = farthest.max(at + trie.longest_len(rest));
                at += 1;
                if at % STOP_EVERY == 0 {
                    self.ask()?;
                }
            }
            end = farthest;
            if end + self.engine.model().longest() >= len {
                return Ok(None); // an entry could go beyond the window
            }
        }
        // What is put in front, or what a cluster that is cut off becomes, can make one token longer.
        if self.engine.pipeline.adds_space() || normalized.is_changed() {
            end += self.engine.model().longest() + 1;
        }
        let half = text.len() / 2;
        Ok(match side {
            _ if end >= len => None,
            Side::Right => Some(normalized.source_end(end)).filter(|&at| at <= half),
            Side::Left => Some(normalized.source_start(normalized.bytes.len() - end)).filter(|&at| at >= half),
        }
        .map(|at| start_before(self.text, from + at)))
    }

    /// The scanners and what they see of a stretch, if only scanners cut it.
    pub fn scanned<'t>(&self, text: &'t [u8]) -> Option<(&'a [&'static Scanner], Normalized<'t>)> {
        let scanners = self.engine.pipeline.scanners()?;
        Some((scanners, self.engine.pipeline.normalize(text, self.policy)?))
    }

    /// The width of a window in which `room` tokens find place in ordinary text, or of the one that has to be taken.
    fn width(&self, room: usize, wider: usize) -> usize {
        (room.min(WINDOW) * 4 + 64).min(WINDOW).max(wider)
    }

    // ======================== keeping the start ========================

    /// The end of the longest prefix of at most `room` tokens, and its count.
    fn prefix(&self, room: usize) -> Result<(usize, usize)> {
        let len = self.text.len();
        let (mut start, mut taken, mut continues, mut wider) = (0, 0, false, 0);
        while start < len {
            self.ask()?;
            let left = room - taken;
            let width = self.width(left, wider).min(len - start);
            let end = start_before(self.text, start + width);
            let (found, total) = self.run(start, end, continues)?;
            if end == len && total <= left {
                return Ok((len, taken + total));
            }
            let over = found.partition_point(|unit| unit.before <= left);
            let next = (over..found.len()).find_map(|i| self.cut_for_prefix(&found, i, end));
            let last = (1..over).rev().find_map(|i| self.cut_for_prefix(&found, i, end).filter(|cut| cut.at > start));
            let mut advanced = 0;
            if let Some(cut) = last {
                advanced = cut.at - start;
                (start, taken, continues) = (cut.at, taken + cut.before, cut.continues);
            }
            let left = room - taken;
            let stop = match next {
                Some(cut) => Some(cut.at),
                None if end == len => Some(end),
                None if total <= left => None,
                // The first place that is out of reach.
                None => self.reach(start, end, left, Side::Right)?.map(|at| at + char_len(self.text, at)),
            };
            if let Some(stop) = stop {
                // The stretch up to there does not fit, and with it nothing that goes beyond.
                let (at, count) = self.prefix_of_stretch(start, stop, continues, left)?;
                return Ok((at, taken + count));
            }
            wider = if advanced > width / 2 { 0 } else { 2 * width };
        }
        Ok((start, taken))
    }

    /// The same for the stretch `text[start..end]`, which itself does not fit.
    fn prefix_of_stretch(&self, start: usize, end: usize, continues: bool, room: usize) -> Result<(usize, usize)> {
        let mut at = class_before(self.text, end).1;
        let text = &self.text[start..at.max(start)];
        let scanned = self.scanned(text).filter(|_| !text.is_empty());
        let mut known = match &scanned {
            Some((scanners, normalized)) => Some(Prefixes::new(self, scanners, text, normalized, continues, room)?),
            None => None,
        };
        if let Some(known) = &known {
            at = at.min(start + known.bound());
        }
        while at > start {
            self.ask()?;
            let count = match &mut known {
                Some(known) => known.upto(at - start)?,
                None => None,
            };
            let count = match count {
                Some(count) => count,
                None => self.count(start, at, continues)?,
            };
            if count <= room {
                return Ok((at, count));
            }
            at = class_before(self.text, at).1.max(start);
        }
        Ok((start, 0))
    }

    // ======================== keeping the end ========================

    /// The start of the longest suffix of at most `room` tokens.
    pub fn suffix(&self, room: usize) -> Result<usize> {
        let (mut end, mut taken, mut wider) = (self.text.len(), 0, 0);
        while end > 0 {
            self.ask()?;
            let left = room - taken;
            let width = self.width(left, wider).min(end);
            let start = start_before(self.text, end - width);
            let (found, total) = self.run(start, end, start > 0)?;
            if start == 0 && total <= left {
                return Ok(0);
            }
            let fits = found.partition_point(|unit| total - unit.before > left);
            let last = (0..fits).rev().find_map(|i| self.cut_for_suffix(&found, i));
            let next = (fits..found.len()).find_map(|i| self.cut_for_suffix(&found, i).filter(|cut| cut.at < end));
            let (mut advanced, mut rest) = (0, total);
            if let Some(cut) = next {
                advanced = end - cut.at;
                rest = cut.before;
                (end, taken) = (cut.at, taken + total - cut.before);
            }
            let left = room - taken;
            let from = match last {
                Some(cut) => Some(cut.at),
                None if start == 0 => Some(start),
                None if rest <= left => None,
                None => self.reach(start, end, left, Side::Left)?,
            };
            if let Some(from) = from {
                // Nothing that starts in front of it fits.
                return self.suffix_from(from, end, taken, room);
            }
            wider = if advanced > width / 2 { 0 } else { 2 * width };
        }
        Ok(0)
    }

    /// The same, if it starts at or after `from`; the text from the cut `end` on takes `taken` tokens.
    fn suffix_from(&self, mut from: usize, mut end: usize, mut taken: usize, room: usize) -> Result<usize> {
        let len = self.text.len();
        loop {
            if let Some(at) = self.suffix_of_stretch(from, end, taken, room)? {
                return Ok(at);
            }
            // As the start of a text, the rest can take more than as its end: a space is put in front.
            if end == len || !self.engine.pipeline.adds_space() {
                return Ok(end);
            }
            from = end;
            end += char_len(self.text, end);
            while end < len && !(is_start(self.text, end) && self.engine.is_cut(self.text, end, self.policy)) {
                end += 1;
            }
            taken = self.count(end, len, true)?;
        }
    }

    /// The first place in the stretch `text[start..end]` from which on at most `room` tokens are left with the
    /// `taken` after it.
    fn suffix_of_stretch(&self, start: usize, end: usize, taken: usize, room: usize) -> Result<Option<usize>> {
        if taken > room || start == end {
            return Ok(None);
        }
        // An extra token may start at the very start.
        let inside = start + char_len(self.text, start);
        let text = &self.text[inside..end];
        let scanned = self.scanned(text);
        let mut known = scanned.as_ref().map(|(scanners, normalized)| Suffixes::new(self, scanners, text, normalized));
        let mut at = start;
        while at < end {
            self.ask()?;
            let count = match &mut known {
                Some(known) if at >= inside => known.from(at - inside)?,
                _ => self.count(at, end, false)?,
            };
            if taken + count <= room {
                return Ok(Some(at));
            }
            at += char_len(self.text, at);
        }
        Ok(None)
    }
}

/// The last place up to `at` where a character starts.
pub(crate) fn start_before(text: &[u8], mut at: usize) -> usize {
    while !is_start(text, at) {
        at -= 1;
    }
    at
}

/// Whether there is only white space, and no newline first.
fn is_blank(text: &[u8]) -> bool {
    trim_start(text).is_empty() && !matches!(text.first(), Some(b'\r' | b'\n'))
}

fn trim_end(mut text: &[u8]) -> &[u8] {
    while let Some((class, start)) = (!text.is_empty()).then(|| class_before(text, text.len())) {
        if class & SPACE == 0 {
            break;
        }
        text = &text[..start];
    }
    text
}

fn trim_start(mut text: &[u8]) -> &[u8] {
    while let Some((class, len)) = (!text.is_empty()).then(|| class_at(text, 0)) {
        if class & SPACE == 0 {
            break;
        }
        text = &text[len..];
    }
    text
}

fn count_pieces(engine: &Engine, scanners: &[&Scanner], bytes: &[u8]) -> usize {
    let mut tokens = Vec::new();
    add_pieces(engine, scanners, bytes, &mut tokens);
    tokens.len()
}

fn add_pieces(engine: &Engine, scanners: &[&Scanner], bytes: &[u8], tokens: &mut Vec<Token>) {
    let Some((scanner, rest)) = scanners.split_first() else { return engine.model().encode(bytes, tokens) };
    let mut at = 0;
    while at < bytes.len() {
        let end = (scanner.end)(bytes, at);
        add_pieces(engine, rest, &bytes[at..end], tokens);
        at = end;
    }
}
