//! Counting pieces: how often each distinct piece occurs, and how many pieces were met before its first.

use crate::error::{Error, Result};
use crate::extra::{Extra, Policy};
use crate::hash::{hash, key_of, mix, IndexTable};
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
    limit_of_each: Option<usize>,
    pub texts: u64,
    pub text_bytes: u64,
    pub pieces: u64,
}

/// A piece of less than N times 16 bytes, its length in the last byte of the key.
#[derive(Clone, Copy)]
struct Slot<const N: usize> {
    key: [u128; N],
    count: u64,
    first: u64,
}

/// Pieces that stand in their slots: open addressing, in the order of hashes. A key of 0 is a free slot.
struct Slots<const N: usize> {
    slots: Vec<Slot<N>>,
    len: usize,
    limit: Option<usize>,
}

/// Pieces of any length.
#[derive(Default)]
struct Longer {
    index: IndexTable,
    data: Vec<u8>,
    rows: Vec<Long>,
}

#[derive(Clone, Copy)]
struct Long {
    start: usize,
    len: usize,
    count: u64,
    first: u64,
}

struct Table {
    short: Slots<1>,
    middle: Slots<2>,
    long: Longer,
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

/// Slots that hold so many pieces without long searches.
fn slots_for(pieces: usize) -> usize {
    pieces.saturating_mul(10) / 7 + 1
}

impl<const N: usize> Slots<N> {
    /// The longest piece.
    const MOST: usize = 16 * N - 1;

    /// Slots of at most `limit` bytes. Growing takes the old ones and twice as many new ones, so the largest size is two
    /// thirds of the limit, and the first is chosen so that doubling leads there.
    fn new(limit: Option<usize>) -> Self {
        let mut slots = FIRST_SLOTS;
        if let Some(limit) = limit {
            slots = (limit / 3 * 2 / size_of::<Slot<N>>()).max(FIRST_SLOTS);
            while slots >= 2 * FIRST_SLOTS {
                slots /= 2;
            }
        }
        Self { slots: vec![Slot { key: [0; N], count: 0, first: 0 }; slots], len: 0, limit }
    }

    #[inline]
    fn place_of(&self, key: [u128; N]) -> usize {
        let hash = key.into_iter().fold(0, |hash, part| mix(hash ^ part as u64, (part >> 64) as u64));
        ((u128::from(hash) * self.slots.len() as u128) >> 64) as usize
    }

    fn reserve(&mut self, more: usize) {
        if slots_for(self.len + more) > self.slots.len() {
            self.grow();
        }
    }

    /// Both the old and the new slots are walked from front to back.
    fn grow(&mut self) {
        let slots = vec![Slot { key: [0; N], count: 0, first: 0 }; self.slots.len() * 2];
        let old = std::mem::replace(&mut self.slots, slots);
        for slot in old.into_iter().filter(|slot| slot.key != [0; N]) {
            let mut place = self.place_of(slot.key);
            while self.slots[place].key != [0; N] {
                place = self.after(place);
            }
            self.slots[place] = slot;
        }
    }

    #[inline]
    fn after(&self, place: usize) -> usize {
        if place + 1 == self.slots.len() {
            0
        } else {
            place + 1
        }
    }

    /// Counts a piece that is not in the slot where it should be.
    fn add(&mut self, key: [u128; N], mut place: usize, first: u64) {
        loop {
            let slot = &mut self.slots[place];
            if slot.key == key {
                slot.count += 1;
                return;
            }
            if slot.key == [0; N] {
                *slot = Slot { key, count: 1, first };
                self.len += 1;
                return;
            }
            place = self.after(place);
        }
    }

    fn has_room_for(&self, more: usize) -> bool {
        let Some(limit) = self.limit else { return true };
        let mut slots = self.slots.len();
        while 3 * slots * size_of::<Slot<N>>() <= limit {
            slots *= 2;
        }
        slots_for(self.len + more) <= slots
    }

    /// Brings the pieces into the order of their bytes; they cannot be found from then on. With the first byte highest
    /// and the length lowest, numbers have that order.
    fn sort(&mut self) {
        self.slots.retain(|slot| slot.key != [0; N]);
        self.slots.sort_unstable_by_key(|slot| slot.key.map(u128::swap_bytes));
    }

    fn write(&self, out: &mut dyn FnMut(&[u8], u64, u64) -> Result<()>) -> Result<()> {
        for slot in &self.slots {
            let mut bytes = [0; 32];
            for (to, part) in bytes.chunks_exact_mut(16).zip(slot.key) {
                to.copy_from_slice(&part.to_le_bytes());
            }
            out(&bytes[..bytes[Self::MOST] as usize], slot.count, slot.first)?;
        }
        Ok(())
    }
}

impl Longer {
    fn piece(data: &[u8], row: Long) -> &[u8] {
        &data[row.start..row.start + row.len]
    }

    fn add(&mut self, piece: &[u8], first: u64) -> Result<()> {
        if piece.is_empty() {
            return Ok(());
        }
        let Self { index, data, rows } = self;
        let hash_code = hash(piece);
        if let Some(at) = index.find(hash_code, |at| Self::piece(data, rows[at as usize]) == piece) {
            rows[at as usize].count += 1;
            return Ok(());
        }
        let at = u32::try_from(rows.len()).ok().filter(|&at| at < u32::MAX - 1).ok_or_else(|| {
            Error::value("more than 2^32 distinct pieces at once: give memory=, so that they go to disk in between")
        })?;
        rows.push(Long { start: data.len(), len: piece.len(), count: 1, first });
        data.extend_from_slice(piece);
        index.insert(hash_code, at, |at| hash(Self::piece(data, rows[at as usize])));
        Ok(())
    }

    fn size(&self) -> usize {
        self.data.len() + self.rows.len() * (size_of::<Long>() + 32)
    }

    fn sort(&mut self) {
        let Self { data, rows, .. } = self;
        rows.sort_unstable_by(|&a, &b| Self::piece(data, a).cmp(Self::piece(data, b)));
    }

    fn write(&self, out: &mut dyn FnMut(&[u8], u64, u64) -> Result<()>) -> Result<()> {
        self.rows.iter().try_for_each(|&row| out(Self::piece(&self.data, row), row.count, row.first))
    }
}

impl Table {
    /// A table of at most `limit` bytes.
    fn new(limit: Option<usize>) -> Self {
        let share = |part| limit.map(|limit| limit / part);
        let (short, middle, long) = (Slots::new(share(2)), Slots::new(share(4)), Longer::default());
        Self { short, middle, long, limit: share(4), met: 0, jobs: Vec::new() }
    }

    /// Counts pieces of `text`, at most `BATCH`.
    #[inline]
    fn add(&mut self, text: &[u8], bounds: &[(usize, usize)]) -> Result<()> {
        self.short.reserve(BATCH);
        // The slots of all are read before any is looked at: the reads do not wait for each other.
        let (mut keys, mut places, mut found, mut rest) = ([0; BATCH], [0; BATCH], [0; BATCH], 0u64);
        for (i, &(start, end)) in bounds.iter().enumerate() {
            if end - start <= Slots::<1>::MOST {
                keys[i] = key_of(text, start, end);
                places[i] = self.short.place_of([keys[i]]);
                found[i] = self.short.slots[places[i]].key[0];
            } else {
                rest |= 1 << i;
            }
        }
        for i in 0..bounds.len() {
            if keys[i] == 0 {
                continue;
            }
            if found[i] == keys[i] {
                self.short.slots[places[i]].count += 1;
            } else {
                self.short.add([keys[i]], places[i], self.met + i as u64);
            }
        }
        if rest != 0 {
            self.add_longer(text, bounds, rest)?;
        }
        self.met += bounds.len() as u64;
        Ok(())
    }

    /// Counts those of the pieces that `which` has a bit for, all of 16 bytes or more.
    #[inline(never)]
    fn add_longer(&mut self, text: &[u8], bounds: &[(usize, usize)], mut which: u64) -> Result<()> {
        self.middle.reserve(BATCH);
        let (mut looked_up, mut len) = ([(0, [0; 2], 0, [0; 2]); BATCH], 0);
        while which != 0 {
            let i = which.trailing_zeros() as usize;
            which &= which - 1;
            let (start, end) = bounds[i];
            let first = self.met + i as u64;
            match text[start..].first_chunk::<16>() {
                Some(head) if end - start <= Slots::<2>::MOST => {
                    // The length of the whole piece instead of that of its end.
                    let key = [u128::from_le_bytes(*head), key_of(text, start + 16, end) + (16 << 120)];
                    let place = self.middle.place_of(key);
                    looked_up[len] = (first, key, place, self.middle.slots[place].key);
                    len += 1;
                }
                _ => self.long.add(&text[start..end], first)?,
            }
        }
        for &(first, key, place, found) in &looked_up[..len] {
            if found == key {
                self.middle.slots[place].count += 1;
            } else {
                self.middle.add(key, place, first);
            }
        }
        Ok(())
    }

    /// Whether the pieces of `bytes` more of text might not fit: of short ones there is one in every fourth byte at most,
    /// as there are few of three bytes or fewer; a long one takes up to five times its bytes.
    fn is_full_for(&self, bytes: usize) -> bool {
        !self.short.has_room_for(bytes / 4 + BATCH)
            || !self.middle.has_room_for(bytes / 16 + BATCH)
            || self.limit.is_some_and(|limit| self.long.size() + 5 * bytes > limit)
    }

    fn is_empty(&self) -> bool {
        self.short.len == 0 && self.middle.len == 0 && self.long.rows.is_empty()
    }

    fn sort(&mut self) {
        self.short.sort();
        self.middle.sort();
        self.long.sort();
    }

    /// Writes the sorted pieces, those of each length as a run.
    fn write(&self, write: &mut dyn FnMut(usize, Vec<u8>) -> Result<()>) -> Result<()> {
        for run in 0..3 {
            let mut out = Writer::default();
            let mut add = |piece: &[u8], count, own| {
                let job = self.jobs[self.jobs.partition_point(|job| job.own <= own) - 1];
                out.add(Row { piece, source: 0, count, first: job.first + (own - job.own) });
                out.hand_on(&mut |block| write(run, block))
            };
            match run {
                0 => self.short.write(&mut add)?,
                1 => self.middle.write(&mut add)?,
                _ => self.long.write(&mut add)?,
            }
            out.finish(&mut |block| write(run, block))?;
        }
        Ok(())
    }
}

impl PieceCounter {
    /// `limit`: how many bytes the tables of all threads may take. To keep to it, drain the counter when it `is_full`.
    pub fn new(rows: &[StageRow], extras: Vec<Extra>, limit: Option<usize>) -> Result<Self> {
        let pipeline = Pipeline::new(rows, extras)?;
        let cut_at_extras = pipeline.extras.policy(|_| true, Vec::new())?;
        Ok(Self {
            pipeline,
            cut_at_extras,
            tables: Vec::new(),
            limit,
            limit_of_each: None,
            texts: 0,
            text_bytes: 0,
            pieces: 0,
        })
    }

    pub fn feed(&mut self, texts: &[&[u8]], threads: usize, stop: Stop<'_>) -> Result<()> {
        let sizes: Vec<usize> = texts.iter().map(|text| text.len()).collect();
        let jobs = share_out(&sizes, threads, |text, at| self.cut_from(texts[text], at));
        self.limit_of_each = self.limit.map(|limit| limit / threads.max(1));
        let threads = threads.clamp(1, jobs.len().max(1));
        while self.tables.len() < threads {
            self.tables.push(Table::new(self.limit_of_each));
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

    /// Empties the tables. Gives `write` the number of a run and one block of it after another.
    pub fn drain(&mut self, write: &mut dyn FnMut(usize, Vec<u8>) -> Result<()>) -> Result<()> {
        self.tables.retain(|table| !table.is_empty());
        let limit = self.limit_of_each;
        std::thread::scope(|scope| {
            for table in self.tables.iter_mut().skip(1) {
                scope.spawn(|| table.sort());
            }
        });
        for (number, table) in self.tables.iter_mut().enumerate() {
            if number == 0 {
                table.sort();
            }
            table.write(&mut |run, block| write(3 * number + run, block))?;
            *table = Table::new(limit);
        }
        Ok(())
    }
}
