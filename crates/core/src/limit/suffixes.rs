//! The token count of every suffix of a stretch, from one pass over it, from its end.

use super::{count_pieces, is_blank, start_before, Limit, EDGE, SHORT, STOP_EVERY};
use crate::bpe::{Counts, Direction};
use crate::error::Result;
use crate::pipeline::Normalized;
use crate::split::{ends_as_the_next, Scanner, UNSETTLED};
use crate::unicode::{class_at, class_before, CASELESS, SPACE, UPPER};

/// Token counts of the suffixes of a stretch.
pub struct Suffixes<'a> {
    limit: &'a Limit<'a>,
    scanners: &'a [&'static Scanner],
    text: &'a [u8],
    normalized: &'a Normalized<'a>,
    rests: Rests<'a>,
    /// Counts of a long piece to which something is added in front, and its end.
    long: Option<(usize, Counts<'a>)>,
}

impl<'a> Suffixes<'a> {
    pub fn new(
        limit: &'a Limit<'a>,
        scanners: &'a [&'static Scanner],
        text: &'a [u8],
        normalized: &'a Normalized<'a>,
    ) -> Self {
        let rests = Rests::new(limit, scanners, &normalized.bytes);
        Self { limit, scanners, text, normalized, rests, long: None }
    }

    /// The count of the text without its first `at` bytes. What it is asked for must become larger.
    pub fn from(&mut self, at: usize) -> Result<usize> {
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
