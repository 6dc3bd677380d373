//! Pieces that were met before, with their ids: in ordinary text all but a few of a hundred.
//!
//! What is found here is what encoding gave, compared byte for byte, so forgetting a piece costs time and nothing else.
//! Each piece has a few places where it can be, and a new one pushes out the oldest: no input makes a search long.
//! A cache starts small, so that a short job does not pay for it, and grows with what is added, up to `MOST`.

mod at_once;
mod long;
mod slots;

use crate::hash::{self, key_of};
use crate::memory::prefetch;
use crate::pipeline::BATCH;

use long::Long;
use slots::{middle_key, Key, Slots};

/// Pieces of up to so many bytes are kept in one slot, which has room for so many ids;
const SHORT: usize = 15;
const FEW: usize = 4;
/// and those of up to so many bytes in a slot twice as large, with room for so many.
const MIDDLE: usize = 31;
const SOME: usize = 8;
/// Longer pieces up to this length are kept as well.
const LONG: usize = 1024;

/// Room for the ids of a batch that are in slots: no piece there has more than `MIDDLE`.
const ROOM: usize = BATCH * (MIDDLE + 1);

/// In one place, as it is taken and given back with every call.
#[derive(Default)]
pub struct Cache(Box<Inner>);

#[derive(Default)]
struct Inner {
    pieces: Pieces,
    batch: Batch,
    /// For the parts of pieces that are missing.
    part_batch: Batch,
}

/// Room to work in.
struct Batch {
    keys: [u128; BATCH],
    hashes: [u64; BATCH],
    /// Ids on their way out: whole slots are written, of which the next one overwrites what is too many.
    ids: [u32; ROOM],
    /// Which pieces are not known, and how many ids those before each have.
    missing: [(u32, u32); BATCH],
    /// Ids of these, and where those of each are.
    new: Vec<u32>,
    places: [(usize, usize); BATCH],
}

#[derive(Default)]
struct Pieces {
    short: Slots<u128, FEW>,
    middle: Slots<[u128; 2], SOME>,
    long: Long,
}

/// So many pieces at once are encoded.
const AT_ONCE: usize = 16;

impl Default for Batch {
    fn default() -> Self {
        Self {
            keys: [0; BATCH],
            hashes: [0; BATCH],
            ids: [0; ROOM],
            missing: [(0, 0); BATCH],
            new: Vec::new(),
            places: [(0, 0); BATCH],
        }
    }
}

impl Cache {
    /// Gives the ids of pieces to `out`.
    pub fn encode(&mut self, text: &[u8], bounds: &[(usize, usize)], out: &mut impl Output, encoder: &impl Encoder) {
        let Inner { pieces, batch, part_batch } = &mut *self.0;
        pieces.encode(text, bounds, (batch, Some(part_batch)), out, encoder);
    }

    /// Bytes that it takes.
    pub fn size(&self) -> usize {
        let Pieces { short, middle, long } = &self.0.pieces;
        short.size() + middle.size() + size_of_val(&*long.slots) + long.arena.capacity()
    }
}

impl Pieces {
    /// Gives the ids of pieces to `out`, or of parts of pieces, if there is no further room to work in.
    fn encode<O: Output>(
        &mut self,
        text: &[u8],
        bounds: &[(usize, usize)],
        (batch, part_batch): (&mut Batch, Option<&mut Batch>),
        out: &mut O,
        encoder: &impl Encoder,
    ) {
        debug_assert!(bounds.len() <= BATCH);
        // While one is looked at, what is known of the next ones is on its way from memory.
        let Batch { keys, hashes, ids, missing, .. } = batch;
        let mut others = self.short.look_ahead(text, bounds, keys, hashes);
        if others != 0 {
            self.prefetch_others(text, bounds, others, hashes);
        }
        let (mut so_far, mut at) = ((0, 0), 0);
        while others != 0 {
            let i = others.trailing_zeros() as usize;
            others &= others - 1;
            so_far = self.short.find::<O>(at..i, keys, hashes, (ids, missing), so_far);
            let (len, missed) = &mut so_far;
            if !self.find_other(text, bounds[i], hashes[i], out, ids, (len, *missed)) {
                missing[*missed] = (i as u32, *len as u32);
                *missed += 1;
            }
            at = i + 1;
        }
        let (len, missed) = self.short.find::<O>(at..bounds.len(), keys, hashes, (ids, missing), so_far);
        if missed > 0 {
            return self.encode_missing(text, bounds, (missed, len), (batch, part_batch), out, encoder);
        }
        out.take(&ids[..len]);
    }

    /// The rest of `encode`: so many pieces are missing, and so many ids are known of the others.
    #[inline(never)]
    fn encode_missing(
        &mut self,
        text: &[u8],
        bounds: &[(usize, usize)],
        (missed, len): (usize, usize),
        (batch, mut part_batch): (&mut Batch, Option<&mut Batch>),
        out: &mut impl Output,
        encoder: &impl Encoder,
    ) {
        let Batch { hashes, ids, missing, new, places, .. } = batch;
        let missing = &missing[..missed];
        let piece = |i: u32| &text[bounds[i as usize].0..bounds[i as usize].1];
        // Again what is looked at is on its way before.
        for &(i, _) in missing.iter().filter(|&&(i, _)| piece(i).len() <= LONG) {
            self.prefetch_aside(piece(i).len(), hashes[i as usize]);
        }
        new.clear();
        let (mut unknown, mut count) = ([0u8; BATCH], 0);
        for (number, &(i, _)) in missing.iter().enumerate() {
            let (piece, hash, from) = (piece(i), hashes[i as usize], new.len());
            if piece.len() > LONG || !self.find_elsewhere(piece, hash, new) {
                if let Some(batch) =
                    part_batch.as_deref_mut().filter(|_| piece.len() > MIDDLE && encoder.has_parts(piece))
                {
                    encoder.parts(piece, |parts| self.encode(piece, parts, (batch, None), new, encoder));
                } else if piece.len() > LONG {
                    encoder.encode(piece, new);
                } else {
                    unknown[count] = number as u8;
                    count += 1;
                    continue;
                }
                if piece.len() <= LONG {
                    self.learn(piece, hash, &new[from..]);
                }
            }
            places[number] = (from, new.len());
        }
        for some in unknown[..count].chunks(AT_ONCE) {
            let mut pieces = [&[][..]; AT_ONCE];
            some.iter().zip(&mut pieces).for_each(|(&number, of)| *of = piece(missing[usize::from(number)].0));
            pieces[..some.len()].iter().for_each(|piece| encoder.prepare(piece));
            let mut found = [(0, 0); AT_ONCE];
            encoder.encode_all(&pieces[..some.len()], new, &mut found[..some.len()]);
            for ((&number, &(from, to)), piece) in some.iter().zip(&found).zip(pieces) {
                self.learn(piece, hashes[missing[usize::from(number)].0 as usize], &new[from..to]);
                places[usize::from(number)] = (from, to);
            }
        }
        let mut done = 0;
        for (&(_, before), &(from, to)) in missing.iter().zip(&*places) {
            out.take(&ids[done..before as usize]);
            done = before as usize;
            out.take(&new[from..to]);
        }
        out.take(&ids[done..len]);
    }

    /// Hashes the pieces that are not short, and has what is known of them read ahead.
    #[inline(never)]
    fn prefetch_others(&self, text: &[u8], bounds: &[(usize, usize)], mut others: u64, hashes: &mut [u64; BATCH]) {
        let mut long = 0u64;
        while others != 0 {
            let i = others.trailing_zeros() as usize;
            others &= others - 1;
            let (start, end) = bounds[i];
            if end - start <= MIDDLE {
                hashes[i] = middle_key(text, (start, end)).hash();
                self.middle.prefetch(hashes[i]);
            } else if end - start <= LONG {
                hashes[i] = hash::hash(&text[start..end]);
                self.long.prefetch(hashes[i]);
                long |= 1 << i;
            }
        }
        while long != 0 {
            if let Some(slot) = self.long.slot(hashes[long.trailing_zeros() as usize]) {
                prefetch(&self.long.arena, slot.at as usize);
            }
            long &= long - 1;
        }
    }

    /// Gives the ids of a piece that is not short to `ids`, or to `out` where no piece was missing before.
    #[inline(never)]
    fn find_other<O: Output>(
        &self,
        text: &[u8],
        (start, end): (usize, usize),
        hash: u64,
        out: &mut O,
        ids: &mut [u32; ROOM],
        (len, missed): (&mut usize, usize),
    ) -> bool {
        if end - start <= MIDDLE {
            let found = self.middle.first(middle_key(text, (start, end)), hash);
            *len += found.map_or(0, |known| self.middle.give::<O>(known, &mut ids[*len..]));
            return found.is_some();
        }
        if missed > 0 || end - start > LONG {
            return false;
        }
        let Some(found) = self.long.find(&text[start..end], hash) else { return false };
        out.take(&ids[..*len]);
        out.add(|out| out.extend(found));
        *len = 0;
        true
    }

    fn prefetch_aside(&self, len: usize, hash: u64) {
        if len <= SHORT {
            prefetch(&self.short.buckets, self.short.aside(hash));
        } else if len <= MIDDLE {
            prefetch(&self.middle.buckets, self.middle.aside(hash));
        }
    }

    /// Appends the ids of a piece that is not where `encode` looks first, if they are known.
    fn find_elsewhere(&mut self, piece: &[u8], hash: u64, out: &mut Vec<u32>) -> bool {
        let found = match piece.len() {
            len @ ..=SHORT => self.short.take_aside(key_of(piece, 0, len), hash, out),
            len @ ..=MIDDLE => self.middle.take_aside(middle_key(piece, (0, len)), hash, out),
            _ => false,
        };
        found || self.long.find(piece, hash).map(|ids| out.extend(ids)).is_some()
    }

    /// Adds a piece, if it has not been added since it was looked for.
    fn learn(&mut self, piece: &[u8], hash: u64, ids: &[u32]) {
        let is_added = match piece.len() {
            len @ ..=SHORT => self.short.add(key_of(piece, 0, len), hash, ids),
            len @ ..=MIDDLE => self.middle.add(middle_key(piece, (0, len)), hash, ids),
            _ => false,
        };
        if !is_added && self.long.slot(hash).is_none() {
            self.long.add(hash, piece, ids);
        }
    }
}

/// How pieces that are not known are encoded.
pub trait Encoder {
    /// A hint that a piece will be encoded soon.
    fn prepare(&self, piece: &[u8]);
    /// Appends the ids of a piece.
    fn encode(&self, piece: &[u8], out: &mut Vec<u32>);
    /// Whether a piece can be encoded in parts.
    fn has_parts(&self, _piece: &[u8]) -> bool {
        false
    }
    /// Gives `visit` the parts of a piece, at most `BATCH` at once.
    fn parts(&self, piece: &[u8], mut visit: impl FnMut(&[(usize, usize)])) {
        visit(&[(0, piece.len())]);
    }
    /// Appends the ids of some pieces, in any order, and says where those of each are.
    fn encode_all(&self, pieces: &[&[u8]], out: &mut Vec<u32>, places: &mut [(usize, usize)]);
}

/// What becomes of the ids.
pub trait Output {
    /// Whether they matter, and not only how many they are.
    const KEEPS: bool;
    /// Takes over ids of slots; if they do not matter, as many as there would be.
    fn take(&mut self, ids: &[u32]);
    /// `add` appends ids to those there are.
    fn add(&mut self, add: impl FnOnce(&mut Vec<u32>));
}

impl Output for Vec<u32> {
    const KEEPS: bool = true;

    #[inline]
    fn take(&mut self, ids: &[u32]) {
        self.extend_from_slice(ids);
    }

    fn add(&mut self, add: impl FnOnce(&mut Vec<u32>)) {
        add(self);
    }
}

/// Only counts them.
#[derive(Default)]
pub struct Count {
    pub count: usize,
    ids: Vec<u32>,
}

impl Output for Count {
    const KEEPS: bool = false;

    #[inline]
    fn take(&mut self, ids: &[u32]) {
        self.count += ids.len();
    }

    fn add(&mut self, add: impl FnOnce(&mut Vec<u32>)) {
        self.ids.clear();
        add(&mut self.ids);
        self.count += self.ids.len();
    }
}

#[cfg(test)]
mod tests {
    use super::long::{ARENA, FIRST_LONG, MOST_LONG};
    use super::slots::MOST;
    use super::*;

    /// Gives ids that tell the piece, one for each three bytes.
    struct Spelled;

    impl Encoder for Spelled {
        fn prepare(&self, _: &[u8]) {}

        fn has_parts(&self, piece: &[u8]) -> bool {
            piece[0].is_multiple_of(2)
        }

        fn parts(&self, piece: &[u8], mut visit: impl FnMut(&[(usize, usize)])) {
            let parts: Vec<_> = (0..piece.len()).step_by(21).map(|at| (at, piece.len().min(at + 21))).collect();
            parts.chunks(BATCH).for_each(&mut visit);
        }

        fn encode_all(&self, pieces: &[&[u8]], out: &mut Vec<u32>, places: &mut [(usize, usize)]) {
            for (piece, place) in pieces.iter().zip(places).rev() {
                let from = out.len();
                self.encode(piece, out);
                *place = (from, out.len());
            }
        }

        fn encode(&self, piece: &[u8], out: &mut Vec<u32>) {
            let id = |chunk: &[u8]| chunk.iter().fold(chunk.len() as u32, |id, &byte| id << 8 | u32::from(byte));
            out.extend(piece.chunks(3).map(id));
        }
    }

    /// Pieces of all lengths, more than it can hold, some again and again: what comes out is never another's, and what it
    /// takes is bounded.
    #[test]
    fn ids_are_those_of_the_piece_whatever_was_forgotten() {
        let mut cache = Cache::default();
        let mut state = 1u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        let longest = [3, 8, 15, 16, 17, 31, 32, 40, 128, 2 * LONG];
        for round in 0..20_000 {
            let (mut text, mut bounds) = (Vec::new(), Vec::new());
            for _ in 0..random(BATCH + 1) {
                let most = longest[random(longest.len())];
                let (start, len) = (text.len(), 1 + random(most));
                let letters = [2, 3, 26, 256][random(4)];
                let zeros = random(10) == 0;
                text.extend((0..len).map(|_| if zeros { 0 } else { random(letters) as u8 }));
                bounds.push((start, text.len()));
            }
            text.extend((0..random(20)).map(|_| b'x'));
            let (mut ids, mut count, mut right) = (vec![7], Count::default(), vec![7]);
            cache.encode(&text, &bounds, &mut ids, &Spelled);
            cache.encode(&text, &bounds, &mut count, &Spelled);
            bounds.iter().for_each(|&(start, end)| Spelled.encode(&text[start..end], &mut right));
            assert_eq!(ids, right, "round {round}");
            assert_eq!(count.count, right.len() - 1);
        }
        let Pieces { short, middle, long } = &cache.0.pieces;
        assert!(size_of_val(&*short.buckets) <= MOST && short.buckets.len() > <u128 as Key>::FIRST);
        assert!(size_of_val(&*middle.buckets) <= MOST && middle.buckets.len() > <[u128; 2] as Key>::FIRST);
        assert!((FIRST_LONG / 2..=MOST_LONG / 4).contains(&long.slots.len()) && long.arena.len() < 2 * ARENA);
        assert!(cache.size() < 200 << 20);
    }

    /// Hundreds of pieces with one place for all, short and long ones, again and again: they push each other out, nothing
    /// grows without end, and ids stay right.
    #[test]
    fn pieces_that_share_a_place_are_not_taken_for_each_other() {
        const SAME: u64 = (1 << 12) - 1;
        let short = (0u64..).map(|n| format!("{n:x}")).filter(|piece| {
            let key = key_of(piece.as_bytes(), 0, piece.len());
            key.hash() & SAME == 0
        });
        let middle = (0u64..).map(|n| format!("{n:020x}")).filter(|piece| {
            let key = middle_key(piece.as_bytes(), (0, piece.len()));
            key.hash() & SAME == 0
        });
        let long = (0u64..).map(|n| format!("{n:040x}")).filter(|piece| hash::hash(piece.as_bytes()) & SAME == 0);
        let pieces: Vec<String> = short.take(300).chain(middle.take(300)).chain(long.take(300)).collect();
        let mut cache = Cache::default();
        for _ in 0..5 {
            for some in pieces.chunks(BATCH / 2) {
                let (mut text, mut bounds, mut right) = (Vec::new(), Vec::new(), Vec::new());
                for piece in some.iter().chain(some) {
                    bounds.push((text.len(), text.len() + piece.len()));
                    text.extend(piece.bytes());
                    Spelled.encode(piece.as_bytes(), &mut right);
                }
                let mut ids = Vec::new();
                cache.encode(&text, &bounds, &mut ids, &Spelled);
                assert_eq!(ids, right);
            }
        }
        assert!(cache.size() < 1 << 20, "{}", cache.size());
    }
}
