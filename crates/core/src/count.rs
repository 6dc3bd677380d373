//! Counting pieces: how often each distinct piece occurs, and where it was met first.

use crate::bpe::learn::{learn, Alphabet, Characters, Learned, Progress, TieRule};
use crate::error::{Error, Result};
use crate::extra::{Extra, Policy};
use crate::hash::{hash, IndexTable};
use crate::parallel::{in_parallel, share_out};
use crate::pipeline::{Pipeline, StageRow, Stop, Unit};

/// Counts the pieces of texts. Each thread has a table of its own; they are added up at the end, and the result is
/// the same for any number of threads.
pub struct PieceCounter {
    pipeline: Pipeline,
    cut_at_extras: Policy,
    tables: Vec<Table>,
    pub texts: u64,
    pub text_bytes: u64,
}

#[derive(Default)]
struct Table {
    index: IndexTable,
    data: Vec<u8>,
    rows: Vec<Row>,
}

#[derive(Clone, Copy)]
struct Row {
    start: usize,
    len: usize,
    count: u64,
    first: Place,
}

/// Where a piece stands: the bytes of all texts before its own, and the pieces before it there. (Not the byte where it
/// starts: normalization makes several pieces of one character.)
type Place = (u64, u64);

impl Table {
    fn piece(&self, row: Row) -> &[u8] {
        &self.data[row.start..row.start + row.len]
    }

    fn add(&mut self, piece: &[u8], count: u64, first: Place) -> Result<()> {
        let Self { index, data, rows } = self;
        let hash_code = hash(piece);
        let is = |at: u32| {
            let row = rows[at as usize];
            &data[row.start..row.start + row.len] == piece
        };
        if let Some(at) = index.find(hash_code, is) {
            let row = &mut rows[at as usize];
            row.count = row.count.checked_add(count).ok_or_else(|| Error::value("a count went beyond 2^64"))?;
            row.first = row.first.min(first);
            return Ok(());
        }
        let at = u32::try_from(rows.len()).ok().filter(|&at| at < u32::MAX - 1).ok_or_else(|| {
            Error::value("more than 2^32 distinct pieces: train on a sample, or with another pattern")
        })?;
        rows.push(Row { start: data.len(), len: piece.len(), count, first });
        data.extend_from_slice(piece);
        index.insert(hash_code, at, |at| {
            let row = rows[at as usize];
            hash(&data[row.start..row.start + row.len])
        });
        Ok(())
    }
}

impl PieceCounter {
    pub fn new(rows: &[StageRow], extras: Vec<Extra>) -> Result<Self> {
        let pipeline = Pipeline::new(rows, extras)?;
        let cut_at_extras = pipeline.extras.policy(|_| true, Vec::new())?;
        Ok(Self { pipeline, cut_at_extras, tables: vec![Table::default()], texts: 0, text_bytes: 0 })
    }

    pub fn feed(&mut self, texts: &[&[u8]], threads: usize, stop: Stop<'_>) -> Result<()> {
        let mut firsts = Vec::with_capacity(texts.len());
        let mut total = self.text_bytes;
        for text in texts {
            firsts.push(total);
            total += text.len() as u64;
        }
        let sizes: Vec<usize> = texts.iter().map(|text| text.len()).collect();
        let jobs = share_out(&sizes, threads);
        let threads = threads.clamp(1, jobs.len().max(1));
        self.tables.resize_with(self.tables.len().max(threads), Table::default);
        let (pipeline, policy) = (&self.pipeline, &self.cut_at_extras);
        let tables = self.tables.iter_mut().take(threads).collect();
        let count = |table: &mut &mut Table, job: usize, (): &mut (), stop: Stop<'_>| {
            for (text, _) in jobs[job].parts(|text| sizes[text]) {
                if stop() {
                    return Err(Error::interrupted());
                }
                let (base, mut number) = (firsts[text], 0);
                pipeline.run(texts[text], policy, false, stop, |unit| match unit {
                    Unit::Extra { .. } => Ok(()),
                    Unit::Pieces { segment, bounds } => bounds.iter().try_for_each(|&(start, end)| {
                        number += 1;
                        table.add(&segment.bytes[start..end], 1, (base, number))
                    }),
                })?;
            }
            Ok(())
        };
        in_parallel(jobs.len(), tables, stop, count, |()| ())?;
        self.texts += texts.len() as u64;
        self.text_bytes = total;
        Ok(())
    }

    /// Counts `piece` `count` times more, as if it came after everything fed so far.
    pub fn add(&mut self, piece: &[u8], count: u64) -> Result<()> {
        if piece.is_empty() || count == 0 {
            return Err(Error::value("a counted piece needs at least one byte and a count of at least 1"));
        }
        let first = self.text_bytes;
        self.text_bytes += piece.len() as u64;
        self.tables[0].add(piece, count, (first, 0))
    }

    /// Adds the tables of all threads into one. Pieces come in the order in which they were met first.
    fn gather(&mut self) -> Result<()> {
        let mut tables = std::mem::take(&mut self.tables).into_iter();
        let mut whole = tables.next().unwrap_or_default();
        for table in tables {
            for &row in &table.rows {
                whole.add(table.piece(row), row.count, row.first)?;
            }
        }
        self.tables = vec![whole];
        Ok(())
    }

    /// Pieces and counts, in the order in which the pieces were met first.
    pub fn items(&mut self) -> Result<Vec<(&[u8], u64)>> {
        self.gather()?;
        let table = &self.tables[0];
        let mut rows = table.rows.clone();
        rows.sort_unstable_by_key(|row| row.first);
        Ok(rows.into_iter().map(|row| (table.piece(row), row.count)).collect())
    }

    /// The number of distinct pieces.
    pub fn distinct(&mut self) -> Result<usize> {
        self.gather()?;
        Ok(self.tables[0].rows.len())
    }

    /// The number of pieces.
    pub fn total(&self) -> u64 {
        self.tables.iter().flat_map(|table| &table.rows).fold(0, |sum, row| sum.saturating_add(row.count))
    }

    /// The characters of the pieces, as an alphabet to learn with.
    pub fn characters(&mut self, end_of_word: &[u8]) -> Result<Characters> {
        self.gather()?;
        let table = &self.tables[0];
        Ok(Characters::new(table.rows.iter().map(|&row| table.piece(row)), end_of_word.to_vec()))
    }

    pub fn learn_bpe(
        &mut self,
        limit: usize,
        alphabet: &impl Alphabet,
        tie_rule: TieRule,
        progress: Progress<'_>,
    ) -> Result<Learned> {
        learn(&self.items()?, limit, alphabet, tie_rule, progress)
    }
}
