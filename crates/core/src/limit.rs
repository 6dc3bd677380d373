//! Token limits: the longest part of a text that fits, exactly, and cutting a text into parts that fit.
//!
//! More text can take fewer tokens, so a limit cannot be found by bisection. But counts add up across *cuts*
//! (`Pipeline::is_cut`): the count of a text is the sum over the stretches between cuts. So whole stretches are taken
//! as long as they fit, and only in the first that does not is every place tried, the farthest first.

use std::cell::RefCell;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::extra::Policy;
use crate::pipeline::Stop;
use crate::split::Pattern;
use crate::unicode::{char_count, char_len, class_at, class_before, LETTER, MARK, NUMBER, SPACE};

/// Pieces up to this length are encoded anew for each place that is tried in them.
const SHORT: usize = 256;
/// Cuts are looked for at least this far apart; a stretch that does not fit is taken apart at all its cuts.
const STRIDE: usize = 4096;

/// Where there is no cut for so long, it is asked how far a limit can reach at most.
const FAR: usize = 4 * STRIDE;

/// What to keep of a text that is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Cut off at the right: keep the start.
    Right,
    /// Cut off at the left: keep the end.
    Left,
}

struct Limit<'a> {
    engine: &'a Engine,
    policy: &'a Policy,
    stop: Stop<'a>,
    text: &'a [u8],
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
        let limit = Limit { engine: self, policy, stop, text };
        Ok(match side {
            Side::Right => (0, limit.prefix(room)?.0),
            Side::Left => (limit.suffix(room)?, text.len()),
        })
    }

    /// Byte spans and token counts of parts that take at most `max_tokens` tokens each and cover the text. Each is
    /// the longest that fits; it starts where the one before it ends, or before that by the longest stretch that
    /// takes at most `overlap` tokens.
    pub fn chunk(
        &self,
        text: &[u8],
        max_tokens: usize,
        overlap: usize,
        policy: &Policy,
        add_special_tokens: bool,
        stop: Stop<'_>,
    ) -> Result<Vec<(usize, usize, usize)>> {
        self.check_text(text, policy)?;
        if overlap >= max_tokens {
            return Err(Error::value(format!("overlap={overlap} must be smaller than max_tokens={max_tokens}")));
        }
        let room = self.room(max_tokens, add_special_tokens)?;
        let template = max_tokens - room;
        let limit_of = |text| Limit { engine: self, policy, stop, text };
        let mut chunks: Vec<(usize, usize, usize)> = Vec::new();
        let (mut start, mut done) = (0, 0);
        while done < text.len() {
            let (len, mut count) = limit_of(&text[start..]).prefix(room)?;
            let mut end = start + len;
            if end <= done && start < done {
                start = done; // the overlap leaves no room for anything new
                continue;
            }
            if end == start {
                let len = char_len(text, start);
                count = self.count_part(&text[start..start + len], policy, false, stop)?;
                end = start + len;
            }
            if count > room {
                return Err(Error::value(format!(
                    "max_tokens={max_tokens} is too small: character {} alone takes {} tokens",
                    char_count(&text[..start]),
                    count + template
                )));
            }
            chunks.push((start, end, count + template));
            done = end;
            let back = if overlap > 0 { limit_of(&text[start..end]).suffix(overlap)? } else { end - start };
            start = if back > 0 { start + back } else { end };
        }
        Ok(chunks)
    }

    fn room(&self, n: usize, add_special_tokens: bool) -> Result<usize> {
        let template = if add_special_tokens { self.template_len() } else { 0 };
        n.checked_sub(template).ok_or_else(|| {
            Error::value(format!("a limit of {n} is too small: the special tokens around the text are {template}"))
        })
    }
}

impl<'a> Limit<'a> {
    /// Without the text that `room` more tokens from `start` cannot reach: a prefix counts the same whatever follows.
    fn within_reach(&self, start: usize, room: usize) -> Option<Self> {
        self.engine.pipeline.only_pattern().filter(|_| self.engine.pipeline.has_cuts())?;
        let rest = &self.text[start..];
        let mut reach = self.engine.bpe().reach(rest, room).checked_add(8).filter(|&reach| reach < rest.len())?;
        // An extra token can reach farther than entries do.
        let look = rest.len().min(reach + self.policy.max_len());
        if !self.policy.find(&self.engine.pipeline.extras, &rest[..look], false).is_empty() {
            return None;
        }
        while !is_start(rest, reach) {
            reach -= 1;
        }
        Some(Limit { text: &self.text[..start + reach], ..*self })
    }

    fn count(&self, from: usize, to: usize, continues: bool) -> Result<usize> {
        self.engine.count_part(&self.text[from..to], self.policy, continues, self.stop)
    }

    fn is_cut(&self, at: usize) -> bool {
        self.engine.pipeline.has_cuts() && self.engine.pipeline.is_cut(self.text, at, self.policy)
    }

    /// The first cut at or after `at`, or the end of the text; or a place beyond `far`, if it is none of these.
    fn cut_after(&self, mut at: usize, far: usize) -> usize {
        while at < self.text.len() && at <= far && !(is_start(self.text, at) && self.is_cut(at)) {
            at += 1;
        }
        at.min(self.text.len())
    }

    /// The last cut at or before `at`, or the start of the text.
    fn cut_before(&self, mut at: usize) -> usize {
        while at > 0 && !(is_start(self.text, at) && self.is_cut(at)) {
            at -= 1;
        }
        at
    }

    // ======================== keeping the start ========================

    /// The end of the longest prefix of at most `room` tokens, and its count.
    fn prefix(&self, room: usize) -> Result<(usize, usize)> {
        let (mut start, mut taken) = (0, 0);
        for stride in [STRIDE, 1] {
            while start < self.text.len() {
                let end = self.cut_after(start + stride, start + FAR);
                if end > start + FAR {
                    // No cut for long: look no farther than the limit can reach.
                    if let Some(near) = self.within_reach(start, room - taken) {
                        return near.prefix(room);
                    }
                }
                let end = self.cut_after(end.min(self.text.len()), usize::MAX);
                let count = self.count(start, end, start > 0)?;
                if taken + count > room {
                    break;
                }
                (start, taken) = (end, taken + count);
            }
        }
        if start == self.text.len() {
            return Ok((start, taken));
        }
        // The stretch up to the next cut does not fit, and with it nothing that goes beyond.
        let stretch = Stretch::new(self, start, self.cut_after(start + 1, usize::MAX));
        let counts = PrefixCounts::new(&stretch)?;
        let mut at = counts.bound(room - taken);
        while at > start {
            if (self.stop)() {
                return Err(Error::interrupted());
            }
            let count = counts.upto(at)?;
            if taken + count <= room {
                return Ok((at, taken + count));
            }
            at = class_before(self.text, at).1.max(start);
        }
        Ok((start, taken))
    }

    // ======================== keeping the end ========================

    /// The start of the longest suffix of at most `room` tokens.
    fn suffix(&self, room: usize) -> Result<usize> {
        let (mut end, mut taken) = (self.text.len(), 0);
        for stride in [STRIDE, 1] {
            while end > 0 {
                let start = self.cut_before(end.saturating_sub(stride));
                let count = self.count(start, end, start > 0)?;
                if taken + count > room {
                    break;
                }
                (end, taken) = (start, taken + count);
            }
        }
        // Nothing that starts before the cut in front of `end` fits. What starts after it is tried in its order;
        // where stretches that continue a text count otherwise than ones that start it, that can go beyond `end`.
        let mut from = self.cut_before(end.saturating_sub(1));
        let mut at = if end == 0 { 0 } else { from + char_len(self.text, from) };
        while at < self.text.len() {
            if at >= end {
                (from, end) = (end, self.cut_after(end + 1, usize::MAX));
                taken = self.count(end, self.text.len(), true)?;
            }
            let stretch = Stretch::new(self, from, end);
            let known = stretch.suffix_counts()?;
            while at < end {
                if (self.stop)() {
                    return Err(Error::interrupted());
                }
                let count = match &known {
                    Some(counts) => counts[at - from] as usize,
                    None => self.count(at, end, false)?,
                };
                if taken + count <= room {
                    return Ok(at);
                }
                at += char_len(self.text, at);
            }
        }
        Ok(self.text.len())
    }
}

/// Whether a character starts at `at`: no continuation byte, or a stray one.
fn is_start(text: &[u8], at: usize) -> bool {
    let belongs = |back| text[at - back] & 0xc0 == 0xc0 && char_len(text, at - back) > back;
    text[at] & 0xc0 != 0x80 || !(1..=3.min(at)).any(belongs)
}

// ======================== inside a stretch without a cut ========================

/// A stretch of text without a cut and, where they are plain stretches of it, its pieces.
struct Stretch<'a> {
    limit: &'a Limit<'a>,
    start: usize,
    end: usize,
    pieces: Option<(&'a Pattern, Vec<(usize, usize)>)>,
}

impl<'a> Stretch<'a> {
    fn new(limit: &'a Limit<'a>, start: usize, end: usize) -> Self {
        let pipeline = &limit.engine.pipeline;
        let has_extras = || !limit.policy.find(&pipeline.extras, &limit.text[start..end], false).is_empty();
        let pieces = pipeline.only_pattern().filter(|_| pipeline.has_cuts() && !has_extras()).map(|pattern| {
            let (mut pieces, mut at) = (Vec::new(), start);
            while at < end {
                let from = at;
                at = pattern.end(&limit.text[..end], from);
                pieces.push((from, at));
            }
            (pattern, pieces)
        });
        Self { limit, start, end, pieces }
    }

    /// Token counts of `text[p..end]` at `p - start`, where there are pieces. What the text gives from any place on is
    /// the piece that starts there and what the text gives from that piece's end on.
    fn suffix_counts(&self) -> Result<Option<Vec<u32>>> {
        let Some((pattern, pieces)) = &self.pieces else { return Ok(None) };
        let text = &self.limit.text[..self.end];
        let mut counts = vec![0; self.end - self.start + 1];
        let mut tokens = Vec::new();
        for &(from, to) in pieces.iter().rev() {
            let long = match to - from > SHORT && keeps_its_end(pattern, &text[from..to]) {
                true => self.limit.engine.bpe().suffix_counts(&text[from..to]),
                false => None,
            };
            for at in (from..to).rev().filter(|&at| is_start(text, at)) {
                if (self.limit.stop)() {
                    return Err(Error::interrupted());
                }
                counts[at - self.start] = match &long {
                    Some(long) if at > from + EDGE && at + EDGE < to => long[at - from] + counts[to - self.start],
                    _ => {
                        let end = pattern.end(text, at);
                        tokens.clear();
                        self.limit.engine.bpe().encode(&text[at..end], &mut tokens);
                        tokens.len() as u32 + counts[end - self.start]
                    }
                };
            }
        }
        Ok(Some(counts))
    }
}

/// Whether what is left of a long piece without its start is one piece too: so for a run of one kind of character. A
/// mixed one may end elsewhere, as symbols with newlines behind them do.
fn keeps_its_end(pattern: &Pattern, piece: &[u8]) -> bool {
    const KINDS: u8 = LETTER | NUMBER | SPACE | MARK;
    let mut at = char_len(piece, 0);
    let mut seen = None;
    while at < piece.len() && pattern.splits() {
        let (class, len) = class_at(piece, at);
        if class & MARK != 0 || *seen.get_or_insert(class & KINDS) != class & KINDS {
            return false;
        }
        at += len;
    }
    true
}

/// Token counts of `text[start..p]` for the places p of a stretch.
struct PrefixCounts<'a> {
    stretch: &'a Stretch<'a>,
    /// For each piece the tokens before it.
    before: Vec<usize>,
    long: Vec<LongPiece>,
    /// Counts of the prefixes of what a shortened long piece leaves, for the place asked for last.
    rest: RefCell<Option<(usize, Vec<u32>)>>,
}

struct LongPiece {
    start: usize,
    end: usize,
    /// Tokens of the stretch before it.
    before: usize,
    /// Token counts of its prefixes.
    counts: Vec<u32>,
    /// Where the first piece of each of its prefixes ends, if not where the prefix does.
    ends: Option<Vec<usize>>,
}

/// So near to the ends of a long piece the pattern itself is asked what a shortened one gives.
const EDGE: usize = 16;
/// Cutting the text off in one piece changes at most the two before it (white space that joins again).
const AFFECTED: usize = 3;

impl<'a> PrefixCounts<'a> {
    fn new(stretch: &'a Stretch<'a>) -> Result<Self> {
        let (mut before, mut long, mut tokens) = (Vec::new(), Vec::new(), Vec::new());
        let mut total = 0;
        if let Some((pattern, pieces)) = &stretch.pieces {
            let (text, bpe) = (stretch.limit.text, stretch.limit.engine.bpe());
            for &(start, end) in pieces {
                before.push(total);
                if end - start > SHORT {
                    if let Some(counts) = bpe.prefix_counts(&text[start..end]) {
                        let ends = pattern.prefix_ends(text, start, end);
                        long.push(LongPiece { start, end, before: total, counts, ends });
                    }
                }
                tokens.clear();
                bpe.encode(&text[start..end], &mut tokens);
                total += tokens.len();
            }
        }
        Ok(Self { stretch, before, long, rest: RefCell::new(None) })
    }

    /// A place beyond which nothing fits into `room`, or at which it starts to be tried.
    fn bound(&self, room: usize) -> usize {
        let end = class_before(self.stretch.limit.text, self.stretch.end).1;
        let Some((_, pieces)) = &self.stretch.pieces else { return end };
        let fitting = self.before.partition_point(|&before| before <= room);
        pieces.get(fitting + AFFECTED).map_or(end, |&(from, _)| from.min(end))
    }

    fn upto(&self, at: usize) -> Result<usize> {
        let Stretch { limit, start, pieces, .. } = self.stretch;
        let Some((_, pieces)) = pieces else { return limit.count(*start, at, *start > 0) };
        if let Some(long) = self.long.iter().find(|long| at > long.start + EDGE && at + EDGE < long.end) {
            return Ok(self.in_long_piece(long, at));
        }
        let restart = pieces.partition_point(|&(_, to)| to < at).saturating_sub(AFFECTED);
        Ok(self.before[restart] + limit.count(pieces[restart].0, at, restart > 0 || *start > 0)?)
    }

    fn in_long_piece(&self, long: &LongPiece, at: usize) -> usize {
        let first = long.ends.as_ref().map_or(at, |ends| ends[at - long.start]);
        let head = long.before + long.counts[first - long.start] as usize;
        if first == at {
            return head;
        }
        // What the shortened piece leaves is one piece more; its prefixes are counted once for each `first`.
        let mut rest = self.rest.borrow_mut();
        if !matches!(&*rest, Some((from, counts)) if *from == first && at - first < counts.len()) {
            let limit = self.stretch.limit;
            let counts = limit.engine.bpe().prefix_counts(&limit.text[first..at]).unwrap_or_default();
            *rest = Some((first, counts));
        }
        head + rest.as_ref().map_or(0, |(_, counts)| counts[at - first] as usize)
    }
}
