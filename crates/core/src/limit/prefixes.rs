//! The token count of every prefix of a stretch, from one pass over it.

use std::borrow::Cow;

use super::{count_pieces, start_before, Limit, EDGE, SHORT, STOP_EVERY};
use crate::bpe::{Counts, Direction};
use crate::error::Result;
use crate::pipeline::Normalized;
use crate::split::{Scanner, CHANGED};
use crate::unicode::{char_len, class_at};

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
