//! Token limits: the longest part of a text that fits, exactly.
//!
//! More text can take fewer tokens, so a limit cannot be found by bisection. But counts add up across *cuts*
//! (`Pipeline::is_cut`): the count of a text is the sum over the stretches between cuts. So the stages run over a
//! window of the text, which grows with the room that is left; whole stretches are taken as long as they fit, and
//! only in the first that does not is every place tried, the farthest first. Where there is no cut for long, it is
//! asked how far the limit can reach at most.
//!
//! Inside a stretch [`Prefixes`] and [`Suffixes`] know the count at every place from one pass over it. Where they do
//! not apply (compiled split patterns, extra tokens in the stretch, stages in an unusual order), each place is counted for
//! itself.

use std::borrow::Cow;

use crate::bpe::{Counts, Direction};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::extra::Policy;
use crate::pipeline::{Normalized, Stop, Unit};
use crate::split::{ends_as_the_next, Scanner, CHANGED, UNSETTLED};
use crate::unicode::{char_len, class_at, class_before, is_start, CASELESS, SPACE, UPPER};
use crate::vocab::Token;

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
        let is_cut = is_first && extra.is_none() && at > 0 && self.engine.pipeline.is_cut(self.text, at, self.policy);
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
            while end < len && !(is_start(self.text, end) && self.engine.pipeline.is_cut(self.text, end, self.policy)) {
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

// ======================== every prefix of a stretch ========================

/// Token counts of the prefixes of a stretch.
pub(crate) struct Prefixes<'a> {
    limit: &'a Limit<'a>,
    scanners: &'a [&'static Scanner],
    text: &'a [u8],
    normalized: &'a Normalized<'a>,
    /// What the scanners see.
    bytes: Cow<'a, [u8]>,
    /// 1 if a space is put in front.
    lead: usize,
    room: usize,
    /// For each piece of the first scanner its start and the tokens before it; and the end.
    pieces: Vec<(usize, usize)>,
    /// The long piece asked for last.
    long: Option<LongPiece<'a>>,
}

struct LongPiece<'a> {
    index: usize,
    /// Where it starts if the text is cut off in it, and the tokens before that.
    start: usize,
    before: usize,
    /// The counts of its prefixes, up to a length beyond which all are above the room.
    counts: Counts<'a>,
    /// Where the first piece of each of its prefixes ends, if not where the prefix does.
    ends: Option<Vec<usize>>,
    /// The counts of what that leaves, and where it starts.
    rest: Option<(usize, Counts<'a>)>,
}

impl<'a> Prefixes<'a> {
    pub fn new(
        limit: &'a Limit<'a>,
        scanners: &'a [&'static Scanner],
        text: &'a [u8],
        normalized: &'a Normalized<'a>,
        continues: bool,
        room: usize,
    ) -> Result<Self> {
        let lead = limit.engine.pipeline.adds_space() && !continues && normalized.bytes[0] != b' ';
        let bytes = match lead {
            true => Cow::Owned([b" ", &*normalized.bytes].concat()),
            false => Cow::Borrowed(&*normalized.bytes),
        };
        let (mut pieces, mut at, mut before, mut asked) = (Vec::new(), 0, 0, 0);
        while at < bytes.len() {
            pieces.push((at, before));
            let end = (scanners[0].end)(&bytes, at);
            before += count_pieces(limit.engine, &scanners[1..], &bytes[at..end]);
            at = end;
            if at - asked > STOP_EVERY {
                asked = at;
                limit.ask()?;
            }
        }
        pieces.push((at, before));
        Ok(Self { limit, scanners, text, normalized, bytes, lead: usize::from(lead), room, pieces, long: None })
    }

    /// A place beyond which nothing fits.
    pub fn bound(&self) -> usize {
        let over = self.pieces.partition_point(|&(_, before)| before <= self.room);
        match self.pieces.get(over + CHANGED) {
            Some(&(start, _)) => self.normalized.source_end(start - self.lead),
            None => self.text.len(),
        }
    }

    /// The count of the first `at` bytes, or any above the room where it is above. What it is asked for must become smaller from time to time.
    pub fn upto(&mut self, at: usize) -> Result<Option<usize>> {
        let (len, tail) = self.normalized.upto(self.text, at);
        if len == 0 {
            return Ok(None);
        }
        let len = self.lead + len;
        let i = self.pieces.partition_point(|&(start, _)| start < len) - 1;
        if let Some(count) = self.in_long_piece(i, len, &tail)? {
            return Ok(Some(count));
        }
        let (start, before) = self.pieces[i.saturating_sub(CHANGED)];
        let scanners = self.scanners;
        let cut_off = [&self.bytes[start..len], &tail].concat();
        Ok(Some(before + count_pieces(self.limit.engine, scanners, &cut_off)))
    }

    /// The count of the first `len` bytes with `tail` behind them, if these end well inside a long piece.
    fn in_long_piece(&mut self, i: usize, len: usize, tail: &[u8]) -> Result<Option<usize>> {
        let (start, end) = (self.pieces[i].0, self.pieces[i + 1].0);
        if end - start <= SHORT || len <= start + EDGE || len + EDGE >= end {
            return Ok(None);
        }
        if self.long.as_ref().is_none_or(|long| long.index != i) {
            self.long = self.long_piece(i)?;
        }
        let Some(long) = &mut self.long else { return Ok(None) };
        let Some(like) = like(tail, &self.bytes[len..end - EDGE]) else { return Ok(None) };
        let first = long.ends.as_ref().map_or(len + like, |ends| ends[len + like - long.start]);
        if long.counts.size() < len - long.start {
            return Ok(Some(usize::MAX));
        }
        if first == len + like {
            long.counts.truncate(len - long.start);
            tail.iter().for_each(|&byte| long.counts.push(byte));
            let count = long.before + long.counts.count(long.counts.size()) as usize;
            long.counts.truncate(len - long.start);
            return Ok(Some(count));
        }
        if !tail.is_empty() {
            return Ok(None);
        }
        // What the shortened piece leaves is one piece more.
        let head = long.before + long.counts.count(first - long.start) as usize;
        if long.rest.as_ref().is_none_or(|(from, counts)| *from != first || counts.size() < len - first) {
            let Some(mut counts) = self.limit.engine.model().counts(Direction::Backward) else { return Ok(None) };
            self.bytes[first..len].iter().for_each(|&byte| counts.push(byte));
            long.rest = Some((first, counts));
        }
        Ok(long.rest.as_ref().map(|(_, counts)| head + counts.count(len - first) as usize))
    }

    fn long_piece(&self, index: usize) -> Result<Option<LongPiece<'a>>> {
        let (engine, scanners) = (self.limit.engine, self.scanners);
        let Some(mut counts) = engine.model().counts(Direction::Backward) else { return Ok(None) };
        // Cut off in this piece, those before it may join it.
        let cut_off = &self.bytes[..start_before(&self.bytes, self.pieces[index].0 + EDGE)];
        let (mut start, mut before) = self.pieces[index.saturating_sub(CHANGED)];
        loop {
            let end = (scanners[0].end)(cut_off, start);
            if end > self.pieces[index].0 {
                break;
            }
            before += count_pieces(engine, &scanners[1..], &cut_off[start..end]);
            start = end;
        }
        let end = self.pieces[index + 1].0;
        let piece = &self.bytes[start..end];
        if scanners.len() > 1 && !stays_whole(&scanners[1..], piece) {
            return Ok(None);
        }
        let ends = scanners[0].prefix_ends.map(|ends| ends(&self.bytes, start, end));
        let ends = ends.filter(|ends| ends.iter().enumerate().any(|(i, &first)| i > 0 && first != start + i));
        // A longer prefix has tokens up to one of these places, all above the room.
        let enough = if ends.is_none() { engine.model().longest() } else { usize::MAX };
        let mut above = 0;
        for (i, &byte) in piece.iter().enumerate() {
            if i % STOP_EVERY == 0 {
                self.limit.ask()?;
            }
            counts.push(byte);
            above = if before + counts.count(i + 1) as usize > self.room { above + 1 } else { 0 };
            if above > enough {
                break;
            }
        }
        Ok(Some(LongPiece { index, start, before, counts, ends, rest: None }))
    }
}

/// Whether a long piece of an outer scanner, and what is left of it when it is cut off, is one of the inner ones too: a
/// run of one kind of character, but for the first.
fn stays_whole(scanners: &[&Scanner], piece: &[u8]) -> bool {
    let mut at = char_len(piece, 0);
    let kind = class_at(piece, at).0;
    while at < piece.len() {
        let (class, len) = class_at(piece, at);
        if class != kind {
            return false;
        }
        at += len;
    }
    scanners.iter().all(|scanner| (scanner.end)(piece, 0) == piece.len())
}

/// The length of the start of `bytes` that has the same kinds of characters as `tail`, if it has.
fn like(tail: &[u8], bytes: &[u8]) -> Option<usize> {
    let (mut at, mut len) = (0, 0);
    while at < tail.len() {
        let (class, size) = class_at(tail, at);
        let (other, other_size) = bytes.get(len).map(|_| class_at(bytes, len))?;
        let is_special = |byte| matches!(byte, b'\r' | b'\n' | b'\'' | b'/' | b' ');
        if class != other || (is_special(tail[at]) || is_special(bytes[len])) && tail[at] != bytes[len] {
            return None;
        }
        (at, len) = (at + size, len + other_size);
    }
    Some(len)
}

// ======================== every suffix of a stretch ========================

/// Token counts of the suffixes of a stretch.
struct Suffixes<'a> {
    limit: &'a Limit<'a>,
    scanners: &'a [&'static Scanner],
    text: &'a [u8],
    normalized: &'a Normalized<'a>,
    rests: Rests<'a>,
    /// Counts of a long piece to which something is added in front, and its end.
    long: Option<(usize, Counts<'a>)>,
}

impl<'a> Suffixes<'a> {
    fn new(
        limit: &'a Limit<'a>,
        scanners: &'a [&'static Scanner],
        text: &'a [u8],
        normalized: &'a Normalized<'a>,
    ) -> Self {
        let rests = Rests::new(limit, scanners, &normalized.bytes);
        Self { limit, scanners, text, normalized, rests, long: None }
    }

    /// The count of the text without its first `at` bytes. What it is asked for must become larger.
    fn from(&mut self, at: usize) -> Result<usize> {
        let (mut head, rest) = self.normalized.from(self.text, at);
        let bytes = &*self.normalized.bytes;
        if self.limit.engine.pipeline.adds_space() && head.first().or(bytes.get(rest)) != Some(&b' ') {
            head.insert(0, b' ');
        }
        if head.is_empty() {
            return self.rests.count(rest);
        }
        let (engine, scanners) = (self.limit.engine, self.scanners);
        // The pieces up to one that ends at or after the head; then it is the text itself that goes on.
        let mut look = 4 * EDGE;
        loop {
            let to = start_before(bytes, bytes.len().min(rest + look));
            let sample = [&head, &bytes[rest..to]].concat();
            let (mut start, mut end, mut count) = (0, 0, 0);
            while end < head.len() {
                start = end;
                end = (scanners[0].end)(&sample, start);
                if end < head.len() {
                    count += count_pieces(engine, &scanners[1..], &sample[start..end]);
                }
            }
            let run = (to > rest && is_uniform(&bytes[rest..to])).then(|| class_at(bytes, rest).0);
            let before_run = end + EDGE <= sample.len() && run.is_some_and(|class| class & (SPACE | UPPER) == 0);
            if to == bytes.len() || before_run || is_settled(scanners[0], &sample, end) {
                count += count_pieces(engine, &scanners[1..], &sample[start..end]);
                return Ok(count + self.rests.count(rest + end - head.len())?);
            }
            let is_run = run.is_some() || is_blank(&sample[start..]);
            if end == sample.len() && scanners.len() == 1 && is_run {
                if let Some(long) = self.in_long_piece(&head[start..], rest)? {
                    return Ok(count + long);
                }
            }
            look *= 2;
        }
    }

    /// The count from `rest` on with `head` in front of it, if it is one piece with the long piece there.
    fn in_long_piece(&mut self, head: &[u8], rest: usize) -> Result<Option<usize>> {
        let after = self.rests.count(rest)?;
        let end = self.rests.end(rest);
        if end < rest + 4 * EDGE {
            return Ok(None);
        }
        if self.long.as_ref().is_none_or(|(known, counts)| *known != end || counts.size() < end - rest) {
            let Some(mut counts) = self.limit.engine.model().counts(Direction::Forward) else { return Ok(None) };
            for part in self.normalized.bytes[rest..end].rchunks(STOP_EVERY) {
                self.limit.ask()?;
                part.iter().rev().for_each(|&byte| counts.push(byte));
            }
            self.long = Some((end, counts));
        }
        let Some((_, counts)) = &mut self.long else { return Ok(None) };
        counts.truncate(end - rest);
        let alone = counts.count(end - rest) as usize;
        head.iter().rev().for_each(|&byte| counts.push(byte));
        let joined = counts.count(counts.size()) as usize;
        counts.truncate(end - rest);
        Ok(Some(after - alone + joined))
    }
}

/// Whether what follows `text` cannot change the pieces up to `end`.
fn is_settled(scanner: &Scanner, text: &[u8], mut end: usize) -> bool {
    for _ in 0..UNSETTLED {
        if end == text.len() {
            return false;
        }
        end = (scanner.end)(text, end);
    }
    true
}

/// Whether all characters are of one class.
fn is_uniform(text: &[u8]) -> bool {
    let mut at = 0;
    while at < text.len() {
        let (class, len) = class_at(text, at);
        if class != class_at(text, 0).0 || matches!(text[at], b'\r' | b'\n' | b'\'') {
            return false;
        }
        at += len;
    }
    true
}

/// Token counts of all that is left of a text from some place on, found from its end as far as asked for. From any
/// place on there is the piece that starts there, and what is left from that piece's end on.
struct Rests<'a> {
    limit: &'a Limit<'a>,
    scanners: &'a [&'static Scanner],
    text: &'a [u8],
    /// For each place, by its distance from the end: the count, and the end of the piece that starts there.
    known: Vec<(u32, usize)>,
    /// Whether in the run of upper-case and caseless letters there is a caseless one.
    caseless: bool,
    /// Whether in the run of white space there is a newline.
    newline: bool,
    /// The long piece met last, by the other scanners, or by its bytes and with its end.
    inner: Option<Box<Rests<'a>>>,
    long: Option<(usize, Counts<'a>)>,
}

impl<'a> Rests<'a> {
    fn new(limit: &'a Limit<'a>, scanners: &'a [&'static Scanner], text: &'a [u8]) -> Self {
        let known = vec![(0, text.len())];
        Self { limit, scanners, text, known, caseless: false, newline: false, inner: None, long: None }
    }

    fn count(&mut self, at: usize) -> Result<usize> {
        let len = self.text.len();
        loop {
            let next = len + 1 - self.known.len();
            if next <= at {
                return Ok(self.known[len - at].0 as usize);
            }
            let (class, from) = class_before(self.text, next);
            let end_from_next = self.known[len - next].1;
            let end = match next < len && ends_as_the_next(self.text, from, end_from_next, self.caseless, self.newline)
            {
                true => end_from_next,
                false => (self.scanners[0].end)(self.text, from),
            };
            self.caseless = class & CASELESS != 0 || (class & UPPER != 0 && self.caseless);
            self.newline = matches!(self.text[from], b'\r' | b'\n') || (class & SPACE != 0 && self.newline);
            let count = self.known[len - end].0 + self.count_piece(from, end)? as u32;
            self.known.resize(len - from + 1, (count, end));
            if self.known.len() % STOP_EVERY < next - from {
                self.limit.ask()?;
            }
        }
    }

    /// The end of the piece at a place for which the count is known.
    fn end(&self, at: usize) -> usize {
        self.known[self.text.len() - at].1
    }

    fn count_piece(&mut self, start: usize, end: usize) -> Result<usize> {
        let (limit, scanners) = (self.limit, &self.scanners[1..]);
        if scanners.is_empty() {
            if self.long.as_ref().is_none_or(|&(known, _)| known != end) {
                let is_long = end - start > SHORT;
                let counts = is_long.then(|| limit.engine.model().counts(Direction::Forward)).flatten();
                let Some(counts) = counts else { return Ok(count_pieces(limit.engine, &[], &self.text[start..end])) };
                self.long = Some((end, counts));
            }
            let Some((_, counts)) = &mut self.long else { return Ok(0) };
            for at in (start..end - counts.size()).rev() {
                counts.push(self.text[at]);
            }
            return Ok(counts.count(end - start) as usize);
        }
        if self.inner.as_ref().is_none_or(|inner| inner.text.len() != end) {
            if end - start <= SHORT {
                return Ok(count_pieces(limit.engine, scanners, &self.text[start..end]));
            }
            self.inner = Some(Box::new(Rests::new(limit, scanners, &self.text[..end])));
        }
        self.inner.as_mut().map_or(Ok(0), |inner| inner.count(start))
    }
}
