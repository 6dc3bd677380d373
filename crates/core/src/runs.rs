//! Runs: counted pieces in the order of their bytes, a block of some kilobytes at a time, and adding runs up.
//!
//! A run may be far larger than memory; whoever keeps the blocks hands them in as they are needed. A row is five numbers
//! of varying length and some bytes: how many bytes of the piece before it are its first ones, how many more it has,
//! these, its source, its count, and how many pieces were met before it. A block starts with a whole piece.

use std::cmp::Ordering;

use crate::error::{Error, Result};
use crate::pipeline::Stop;

/// A counted piece. Pieces of several sources are counted apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row<'a> {
    pub piece: &'a [u8],
    pub source: u32,
    pub count: u64,
    pub first: u64,
}

/// Counts and numbers of pieces stay below, so that every file format and query engine can hold them.
pub const MOST: u64 = i64::MAX as u64;

/// About how many bytes a block has. A merge holds one of every run.
const BLOCK: usize = 1 << 15;

/// Makes blocks of rows, which must come in order.
#[derive(Default)]
pub struct Writer {
    block: Vec<u8>,
    last: Vec<u8>,
}

impl Writer {
    pub fn add(&mut self, row: Row<'_>) {
        let shared =
            if self.block.is_empty() { 0 } else { self.last.iter().zip(row.piece).take_while(|(a, b)| a == b).count() };
        push(&mut self.block, shared as u64);
        push(&mut self.block, (row.piece.len() - shared) as u64);
        self.block.extend_from_slice(&row.piece[shared..]);
        push(&mut self.block, row.source.into());
        push(&mut self.block, row.count);
        push(&mut self.block, row.first);
        self.last.truncate(shared);
        self.last.extend_from_slice(&row.piece[shared..]);
    }

    /// Hands on a block that is long enough.
    #[inline]
    pub fn hand_on(&mut self, write: &mut dyn FnMut(Vec<u8>) -> Result<()>) -> Result<()> {
        if self.block.len() >= BLOCK {
            write(std::mem::take(&mut self.block))?;
        }
        Ok(())
    }

    pub fn finish(self, write: &mut dyn FnMut(Vec<u8>) -> Result<()>) -> Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        write(self.block)
    }
}

/// Rows as columns: the pieces behind each other in `data`, from one offset to the next.
pub struct Columns<'a> {
    pub data: &'a [u8],
    pub offsets: &'a [i64],
    pub counts: &'a [i64],
    pub firsts: &'a [i64],
    pub sources: &'a [u32],
}

impl Columns<'_> {
    /// The rows as one block. They come from outside, so everything is checked.
    pub fn to_block(&self) -> Result<Vec<u8>> {
        let rows = self.counts.len();
        if self.offsets.len() != rows + 1 || self.firsts.len() != rows || self.sources.len() != rows {
            return Err(Error::format("the columns of a table of counts differ in length"));
        }
        let mut out = Writer::default();
        let mut last: (&[u8], u32) = (&[], 0);
        for (at, (&count, &source)) in self.counts.iter().zip(self.sources).enumerate() {
            let range = usize::try_from(self.offsets[at]).ok().zip(usize::try_from(self.offsets[at + 1]).ok());
            let piece = range.and_then(|(start, end)| self.data.get(start..end)).unwrap_or_default();
            if piece.is_empty() {
                return Err(Error::format("a table of counts has a row without a piece"));
            }
            let shown = String::from_utf8_lossy(piece);
            if count < 1 {
                return Err(Error::format(format!("the piece {shown:?} is counted {count} times")));
            }
            let first = u64::try_from(self.firsts[at])
                .map_err(|_| Error::format(format!("the column `first` of the piece {shown:?} is below 0")))?;
            if (piece, source) < last {
                return Err(out_of_order(piece, last.0));
            }
            last = (piece, source);
            out.add(Row { piece, source, count: count as u64, first });
        }
        Ok(out.block)
    }
}

fn out_of_order(piece: &[u8], before: &[u8]) -> Error {
    Error::format(format!(
        "the piece {:?} stands behind {:?}, though the table says that it is sorted by the bytes of the pieces",
        String::from_utf8_lossy(piece),
        String::from_utf8_lossy(before)
    ))
}

fn push(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads a run.
struct Run {
    block: Vec<u8>,
    at: usize,
    piece: Vec<u8>,
    /// The first eight bytes of the piece, for quick comparisons.
    head: u64,
    source: u32,
    count: u64,
    first: u64,
    shift: u64,
    sources: Vec<u32>,
}

/// Puts the next block of the run with this number in the place of the last; false at its end.
pub type Fetch<'a> = &'a mut dyn FnMut(usize, &mut Vec<u8>) -> Result<bool>;

impl Run {
    fn number(&mut self) -> Result<u64> {
        let (mut number, mut shift) = (0u64, 0);
        loop {
            let &byte = self.block.get(self.at).filter(|_| shift < 64).ok_or_else(damaged)?;
            self.at += 1;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
            shift += 7;
        }
    }

    /// Goes on to the next row; false at the end.
    fn advance(&mut self, own: usize, fetch: Fetch<'_>) -> Result<bool> {
        let before = if self.at == self.block.len() {
            if !fetch(own, &mut self.block)? {
                return Ok(false);
            }
            self.at = 0;
            Some((std::mem::take(&mut self.piece), self.source))
        } else {
            None
        };
        let (shared, more) = (self.number()? as usize, self.number()? as usize);
        let bytes = self.at.checked_add(more).and_then(|end| self.block.get(self.at..end)).ok_or_else(damaged)?;
        if shared > self.piece.len() {
            return Err(damaged());
        }
        self.piece.truncate(shared);
        self.piece.extend_from_slice(bytes);
        self.at += more;
        let (source, count, first) = (self.number()? as usize, self.number()?, self.number()?);
        self.source = *self.sources.get(source).ok_or_else(damaged)?;
        self.count = count;
        self.first = first
            .checked_add(self.shift)
            .filter(|&first| first <= MOST)
            .ok_or_else(|| Error::value("a piece is first met behind 2^63 - 1 others: leave out the column `first`"))?;
        let mut head = [0; 8];
        let len = self.piece.len().min(8);
        head[..len].copy_from_slice(&self.piece[..len]);
        self.head = u64::from_be_bytes(head);
        match before {
            Some(before) if (&before.0, before.1) > (&self.piece, self.source) => {
                Err(out_of_order(&self.piece, &before.0))
            }
            _ => Ok(true),
        }
    }

    fn key(&self) -> (&[u8], u32) {
        (&self.piece, self.source)
    }
}

fn damaged() -> Error {
    Error::format("a block of counted pieces is damaged")
}

/// Adds runs up: their rows in order, those of one piece and source as one.
pub struct Merge {
    runs: Vec<Run>,
    /// The runs that have rows, the one with the first row at the top.
    heap: Vec<usize>,
    begun: bool,
    piece: Vec<u8>,
}

impl Merge {
    /// A run for each of `runs`: how many pieces were met before its first, and what its sources are called here.
    pub fn new(runs: Vec<(u64, Vec<u32>)>) -> Self {
        let run = |(shift, sources)| Run {
            block: Vec::new(),
            at: 0,
            piece: Vec::new(),
            head: 0,
            source: 0,
            count: 0,
            first: 0,
            shift,
            sources,
        };
        Self { runs: runs.into_iter().map(run).collect(), heap: Vec::new(), begun: false, piece: Vec::new() }
    }

    fn is_before(&self, a: usize, b: usize) -> bool {
        let (a, b) = (&self.runs[a], &self.runs[b]);
        a.head.cmp(&b.head).then_with(|| a.key().cmp(&b.key())) == Ordering::Less
    }

    /// Brings the run at `at` to where it belongs, below.
    fn sink(&mut self, mut at: usize) {
        loop {
            let mut least = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heap.len() && self.is_before(self.heap[child], self.heap[least]) {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            self.heap.swap(at, least);
            at = least;
        }
    }

    pub fn next(&mut self, fetch: Fetch<'_>) -> Result<Option<Row<'_>>> {
        if !self.begun {
            self.begun = true;
            for number in 0..self.runs.len() {
                if self.runs[number].advance(number, fetch)? {
                    self.heap.push(number);
                }
            }
            for at in (0..self.heap.len() / 2).rev() {
                self.sink(at);
            }
        }
        let Some(&top) = self.heap.first() else { return Ok(None) };
        let Run { source, mut count, mut first, .. } = self.runs[top];
        self.piece.clone_from(&self.runs[top].piece);
        loop {
            let top = self.heap[0];
            if !self.runs[top].advance(top, fetch)? {
                self.heap.swap_remove(0);
            }
            self.sink(0);
            match self.heap.first().map(|&top| &self.runs[top]) {
                Some(run) if run.key() == (&self.piece[..], source) => {
                    first = first.min(run.first);
                    count =
                        count.checked_add(run.count).filter(|&sum| sum <= MOST).ok_or_else(|| too_many(&self.piece))?;
                }
                _ => return Ok(Some(Row { piece: &self.piece, source, count, first })),
            }
        }
    }

    /// Tells `each` every piece once, with the sum over all sources of its count times `weights[source]`, and where it
    /// was first met. Pieces whose sum is 0 are left out.
    pub fn weighed(
        &mut self,
        weights: &[u64],
        fetch: Fetch<'_>,
        stop: Stop<'_>,
        mut each: impl FnMut(&[u8], u64, u64) -> Result<()>,
    ) -> Result<()> {
        let (mut piece, mut count, mut first, mut rows) = (Vec::new(), 0u64, u64::MAX, 0u64);
        loop {
            rows += 1;
            if rows % (1 << 12) == 0 && stop() {
                return Err(Error::interrupted());
            }
            let row = self.next(fetch)?;
            if let Some(row) = row.filter(|row| row.piece == piece) {
                count = sum(count, row, weights)?;
                first = first.min(row.first);
                continue;
            }
            if count > 0 {
                each(&piece, count, first)?;
            }
            let Some(row) = row else { return Ok(()) };
            piece.clear();
            piece.extend_from_slice(row.piece);
            (count, first) = (sum(0, row, weights)?, row.first);
        }
    }
}

/// `count` and the weighed count of a row.
fn sum(count: u64, row: Row<'_>, weights: &[u64]) -> Result<u64> {
    let weight = weights.get(row.source as usize).copied().unwrap_or(1);
    let more = row.count.checked_mul(weight).and_then(|more| count.checked_add(more));
    more.filter(|&sum| sum <= MOST).ok_or_else(|| too_many(row.piece))
}

fn too_many(piece: &[u8]) -> Error {
    Error::value(format!("the piece {:?} is counted more than 2^63 - 1 times", String::from_utf8_lossy(piece)))
}
