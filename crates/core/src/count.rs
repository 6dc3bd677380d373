//! Counting pieces: how often each distinct piece occurs, and how many pieces were met before its first.

use crate::error::{Error, Result};
use crate::extra::{Extra, Policy};
use crate::hash::{hash, mix, IndexTable};
use crate::parallel::{in_parallel, share_out};
use crate::pipeline::{Pipeline, StageRow, Stop, Unit, BATCH};
use crate::runs::{Row, Writer};
use crate::unicode::is_start;

/// Counts the pieces of texts. Each thread has a table of its own; sorted, they are the runs that `runs.rs` adds up. The
/// sum is the same for any number of threads, and however often the tables were drained.
pub struct PieceCounter {
    pipeline: Pipeline,
    cut_at_extras: Policy,
    tables: Vec<Table>,
    /// Bytes that the tables may take together.
    limit: Option<usize>,
    pub texts: u64,
    pub text_bytes: u64,
    pub pieces: u64,
}

/// Pieces of up to so many bytes stand in their slot.
const SHORT: usize = 15;

/// A short piece, its length in the last byte of the key. Two to a cache line.
#[derive(Clone, Copy, Default)]
#[repr(C, align(32))]
struct Slot {
    key: u128,
    count: u64,
    first: u64,
}

/// A longer piece.
#[derive(Clone, Copy)]
struct Long {
    start: usize,
    len: usize,
    count: u64,
    first: u64,
}

struct Table {
    /// Open addressing; a key of 0 is a free slot.
    slots: Vec<Slot>,
    short: usize,
    index: IndexTable,
    data: Vec<u8>,
    long: Vec<Long>,
    limit: Option<usize>,
    /// Pieces that this table met. `first` is in these numbers, and `jobs` says what they are among all pieces.
    met: u64,
    jobs: Vec<Stretch>,
}

/// A job that a table worked on: its number, and the numbers of its first piece in this table and among all pieces.
#[derive(Clone, Copy)]
struct Stretch {
    job: usize,
    own: u64,
    first: u64,
}

/// How many slots a table starts with, at least.
const FIRST_SLOTS: usize = 1 << 12;

/// Slots that hold so many short pieces without long searches.
fn slots_for(pieces: usize) -> usize {
    pieces.saturating_mul(10) / 7 + 1
}

/// A short piece as one number. Reads 16 bytes where the text has them.
#[inline]
fn key(text: &[u8], start: usize, end: usize) -> u128 {
    let len = end - start;
    let bytes = match text.get(start..).and_then(|rest| rest.first_chunk::<16>()) {
        Some(bytes) => u128::from_le_bytes(*bytes) & ((1 << (8 * len)) - 1),
        None => {
            let mut bytes = [0; 16];
            bytes[..len].copy_from_slice(&text[start..end]);
            u128::from_le_bytes(bytes)
        }
    };
    bytes | (len as u128) << 120
}

#[inline]
fn place_of(key: u128, slots: usize) -> usize {
    let hash = mix(key as u64, (key >> 64) as u64);
    ((u128::from(hash) * slots as u128) >> 64) as usize
}

impl Table {
    /// A table of at most `limit` bytes. Growing takes the old slots and twice as many new ones, so the largest size is
    /// two thirds of the limit, and the first is chosen so that doubling leads there.
    fn new(limit: Option<usize>) -> Self {
        let mut slots = FIRST_SLOTS;
        if let Some(limit) = limit {
            slots = (limit / 3 * 2 / size_of::<Slot>()).max(FIRST_SLOTS);
            while slots >= 2 * FIRST_SLOTS {
                slots /= 2;
            }
        }
        Self {
            slots: vec![Slot::default(); slots],
            short: 0,
            index: IndexTable::default(),
            data: Vec::new(),
            long: Vec::new(),
            limit,
            met: 0,
            jobs: Vec::new(),
        }
    }

    /// Counts pieces of `text`, at most `BATCH`.
    #[inline]
    fn add(&mut self, text: &[u8], bounds: &[(usize, usize)]) -> Result<()> {
        if slots_for(self.short + BATCH) > self.slots.len() {
            self.grow();
        }
        // The slots of all are read before any is looked at: the reads do not wait for each other.
        let (mut keys, mut places, mut found) = ([0; BATCH], [0; BATCH], [0; BATCH]);
        for (i, &(start, end)) in bounds.iter().enumerate() {
            if end - start <= SHORT {
                keys[i] = key(text, start, end);
                places[i] = place_of(keys[i], self.slots.len());
                found[i] = self.slots[places[i]].key;
            }
        }
        for (i, &(start, end)) in bounds.iter().enumerate() {
            if keys[i] == 0 {
                self.add_long(&text[start..end], self.met + i as u64)?;
            } else if found[i] == keys[i] {
                self.slots[places[i]].count += 1;
            } else {
                self.add_short(keys[i], places[i], self.met + i as u64);
            }
        }
        self.met += bounds.len() as u64;
        Ok(())
    }

    fn add_short(&mut self, key: u128, mut place: usize, first: u64) {
        loop {
            let slot = &mut self.slots[place];
            if slot.key == key {
                slot.count += 1;
                return;
            }
            if slot.key == 0 {
                *slot = Slot { key, count: 1, first };
                self.short += 1;
                return;
            }
            place = if place + 1 == self.slots.len() { 0 } else { place + 1 };
        }
    }

    fn add_long(&mut self, piece: &[u8], first: u64) -> Result<()> {
        if piece.is_empty() {
            return Ok(());
        }
        let Self { index, data, long, .. } = self;
        let hash_code = hash(piece);
        let bytes = |row: Long| &data[row.start..row.start + row.len];
        if let Some(at) = index.find(hash_code, |at| bytes(long[at as usize]) == piece) {
            long[at as usize].count += 1;
            return Ok(());
        }
        let at = u32::try_from(long.len()).ok().filter(|&at| at < u32::MAX - 1).ok_or_else(|| {
            Error::value("more than 2^32 distinct pieces at once: give memory=, so that they go to disk in between")
        })?;
        long.push(Long { start: data.len(), len: piece.len(), count: 1, first });
        data.extend_from_slice(piece);
        index.insert(hash_code, at, |at| {
            let row = long[at as usize];
            hash(&data[row.start..row.start + row.len])
        });
        Ok(())
    }

    /// Slots come in the order of their hashes, so both tables are walked from front to back.
    fn grow(&mut self) {
        let slots = vec![Slot::default(); self.slots.len() * 2];
        let old = std::mem::replace(&mut self.slots, slots);
        for slot in old.into_iter().filter(|slot| slot.key != 0) {
            let mut place = place_of(slot.key, self.slots.len());
            while self.slots[place].key != 0 {
                place = if place + 1 == self.slots.len() { 0 } else { place + 1 };
            }
            self.slots[place] = slot;
        }
    }

    /// Whether the pieces of `bytes` more of text might not fit: there is a short piece in every fourth byte at most, as
    /// there are few of three bytes or fewer; a long one takes up to five times its bytes.
    fn is_full_for(&self, bytes: usize) -> bool {
        let Some(limit) = self.limit else { return false };
        let fits = |slots: usize| slots_for(self.short + bytes / 4 + BATCH) <= slots;
        let grows = 3 * size_of_val(&*self.slots) <= limit;
        let long = self.data.len() + self.long.len() * (size_of::<Long>() + 32);
        !(fits(self.slots.len()) || grows && fits(2 * self.slots.len())) || long + 5 * bytes > limit / 3
    }

    fn is_empty(&self) -> bool {
        self.short == 0 && self.long.is_empty()
    }

    fn long_piece(&self, row: &Long) -> &[u8] {
        &self.data[row.start..row.start + row.len]
    }

    /// Brings the pieces into the order of their bytes. The table cannot be searched from then on.
    fn sort(&mut self) {
        self.slots.retain(|slot| slot.key != 0);
        // With the first byte highest and the length lowest, numbers have the order of the pieces.
        self.slots.sort_unstable_by_key(|slot| slot.key.swap_bytes());
        let mut long = std::mem::take(&mut self.long);
        long.sort_unstable_by(|a, b| self.long_piece(a).cmp(self.long_piece(b)));
        self.long = long;
    }

    /// Writes the sorted pieces as a run.
    fn write(&self, write: &mut dyn FnMut(Vec<u8>) -> Result<()>) -> Result<()> {
        let mut out = Writer::default();
        let number = |own: u64| {
            let job = self.jobs[self.jobs.partition_point(|job| job.own <= own) - 1];
            job.first + (own - job.own)
        };
        let mut long = self.long.iter().peekable();
        for slot in &self.slots {
            let bytes = slot.key.to_le_bytes();
            let piece = &bytes[..bytes[SHORT] as usize];
            while let Some(row) = long.next_if(|row| self.long_piece(row) < piece) {
                out.add(Row { piece: self.long_piece(row), source: 0, count: row.count, first: number(row.first) });
                out.hand_on(write)?;
            }
            out.add(Row { piece, source: 0, count: slot.count, first: number(slot.first) });
            out.hand_on(write)?;
        }
        for row in long {
            out.add(Row { piece: self.long_piece(row), source: 0, count: row.count, first: number(row.first) });
            out.hand_on(write)?;
        }
        out.finish(write)
    }
}

impl PieceCounter {
    /// `limit`: how many bytes the tables of all threads may take. To keep to it, drain the counter when it `is_full`.
    pub fn new(rows: &[StageRow], extras: Vec<Extra>, limit: Option<usize>) -> Result<Self> {
        let pipeline = Pipeline::new(rows, extras)?;
        let cut_at_extras = pipeline.extras.policy(|_| true, Vec::new())?;
        Ok(Self { pipeline, cut_at_extras, tables: Vec::new(), limit, texts: 0, text_bytes: 0, pieces: 0 })
    }

    pub fn feed(&mut self, texts: &[&[u8]], threads: usize, stop: Stop<'_>) -> Result<()> {
        let sizes: Vec<usize> = texts.iter().map(|text| text.len()).collect();
        let jobs = share_out(&sizes, threads, |text, at| self.cut_from(texts[text], at));
        let limit = self.limit.map(|limit| limit / threads.max(1));
        let threads = threads.clamp(1, jobs.len().max(1));
        while self.tables.len() < threads {
            self.tables.push(Table::new(limit));
        }
        let (pipeline, policy) = (&self.pipeline, &self.cut_at_extras);
        let known: Vec<usize> = self.tables.iter().map(|table| table.jobs.len()).collect();
        let tables = self.tables.iter_mut().take(threads).collect();
        let count = |table: &mut &mut Table, job: usize, (): &mut (), stop: Stop<'_>| {
            table.jobs.push(Stretch { job, own: table.met, first: 0 });
            for (text, range) in jobs[job].parts(|text| sizes[text]) {
                if stop() {
                    return Err(Error::interrupted());
                }
                let continues = range.start > 0;
                pipeline.run(&texts[text][range], policy, continues, stop, |unit| match unit {
                    Unit::Extra { .. } => Ok(()),
                    Unit::Pieces { segment, bounds } => table.add(&segment.bytes, bounds),
                })?;
            }
            Ok(())
        };
        in_parallel(jobs.len(), tables, stop, count, |()| ())?;
        // Now that all is counted it is known how many pieces stand before each job.
        let mut lengths = vec![0; jobs.len()];
        for (table, &known) in self.tables.iter().zip(&known) {
            let ends = table.jobs[known..].iter().skip(1).map(|next| next.own).chain([table.met]);
            for (stretch, end) in table.jobs[known..].iter().zip(ends) {
                lengths[stretch.job] = end - stretch.own;
            }
        }
        let mut firsts = Vec::with_capacity(jobs.len());
        for length in lengths {
            firsts.push(self.pieces);
            self.pieces += length;
        }
        for (table, &known) in self.tables.iter_mut().zip(&known) {
            table.jobs[known..].iter_mut().for_each(|stretch| stretch.first = firsts[stretch.job]);
        }
        self.texts += texts.len() as u64;
        self.text_bytes += sizes.iter().map(|&size| size as u64).sum::<u64>();
        Ok(())
    }

    /// A place inside a text, at `at` or a little behind, where it can be cut without changing a piece.
    fn cut_from(&self, text: &[u8], at: usize) -> Option<usize> {
        const FAR: usize = 1024;
        let places = at.max(1)..text.len().min(at.saturating_add(FAR));
        places.into_iter().find(|&at| is_start(text, at) && self.pipeline.is_cut(text, at, &self.cut_at_extras))
    }

    /// Whether to drain the counter before so many bytes of text are fed to it.
    pub fn is_full_for(&self, bytes: usize) -> bool {
        self.tables.iter().any(|table| table.is_full_for(bytes))
    }

    /// Empties the tables. Gives `write` the number of a run and one block of it after another; there is a run for every
    /// table that holds something.
    pub fn drain(&mut self, write: &mut dyn FnMut(usize, Vec<u8>) -> Result<()>) -> Result<()> {
        self.tables.retain(|table| !table.is_empty());
        std::thread::scope(|scope| {
            for table in self.tables.iter_mut().skip(1) {
                scope.spawn(|| table.sort());
            }
        });
        for (number, table) in self.tables.iter_mut().enumerate() {
            if number == 0 {
                table.sort();
            }
            table.write(&mut |block| write(number, block))?;
            *table = Table::new(table.limit);
        }
        Ok(())
    }
}
