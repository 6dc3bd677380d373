//! Pieces that were met before, with their ids: in ordinary text all but a few of a hundred.
//!
//! What is found here is what encoding gave, compared byte for byte, so forgetting a piece costs time and nothing else.
//! Each piece has a few places where it can be, and a new one pushes out the oldest: no input makes a search long.
//! A cache starts small, so that a short job does not pay for it, and grows with what is added, up to `MOST`.

use crate::hash::{self, key_of, mix};
use crate::memory::{prefetch, Table};
use crate::pipeline::BATCH;

/// Pieces of up to so many bytes are kept in one slot with their ids, if these are no more than `FEW`;
const SHORT: usize = 15;
const FEW: usize = 4;
/// and those of up to so many bytes in a slot twice as large, with no more than `SOME`.
const MIDDLE: usize = 31;
const SOME: usize = 8;
/// Longer pieces up to this length are kept as well.
const LONG: usize = 1024;

/// Bytes of slots at most, for short pieces and for those of middle length.
const MOST: usize = 1 << 24;
/// Slots of long pieces at the start and at most.
const FIRST_LONG: usize = 1 << 9;
const MOST_LONG: usize = 1 << 20;
/// Bytes of long pieces and their ids at most.
const ARENA: usize = 1 << 26;

/// The bytes of a piece and their number, in the last of its bytes; 0 for no piece.
trait Key: Copy + PartialEq {
    const NONE: Self;
    /// Buckets at the start.
    const FIRST: usize;

    fn hash(self) -> u64;
}

impl Key for u128 {
    const NONE: Self = 0;
    const FIRST: usize = 1 << 8;

    #[inline]
    fn hash(self) -> u64 {
        mix(self as u64, (self >> 64) as u64)
    }
}

impl Key for [u128; 2] {
    const NONE: Self = [0; 2];
    const FIRST: usize = 1 << 6;

    #[inline]
    fn hash(self) -> u64 {
        let [head, tail] = self;
        mix(head.hash() ^ tail as u64, (tail >> 64) as u64)
    }
}

/// The key of a piece that is not short.
#[inline]
fn middle_key(text: &[u8], (start, end): (usize, usize)) -> [u128; 2] {
    let head = text[start..].first_chunk().map_or(0, |head| u128::from_le_bytes(*head));
    [head, key_of(text, start + 16, end) | 16 << 120]
}

/// A piece and its ids, how many they are in the highest bits of the first.
#[derive(Clone, Copy)]
#[repr(C)]
struct Slot<K, const IDS: usize> {
    key: K,
    ids: [u32; IDS],
}

impl<K, const IDS: usize> Slot<K, IDS> {
    #[inline]
    fn push(&self, out: &mut Vec<u32>) {
        let from = out.len();
        out.extend_from_slice(&self.ids[..count(self.ids[0])]);
        out[from] &= ID;
    }
}

/// A place for two pieces, the one added last first. One cache line, or two.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Bucket<S>([S; 2]);

/// Pieces of one kind. Each has a bucket where it belongs, and one where it may stand aside.
struct Slots<K: Key, const IDS: usize> {
    buckets: Table<Bucket<Slot<K, IDS>>>,
    added: usize,
}

/// A long piece: its hash, and where its bytes and behind them its ids are.
#[derive(Clone, Copy, Default)]
struct LongSlot {
    hash: u64,
    at: u32,
    len: u16,
    ids: u16,
}

/// A place for four long pieces, the one added last first. One cache line.
#[derive(Clone, Copy, Default)]
#[repr(C, align(64))]
struct LongBucket([LongSlot; 4]);

/// In one place, as it is taken and given back with every call.
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
    ids: [u32; BATCH * SOME],
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

struct Long {
    slots: Table<LongBucket>,
    added: usize,
    /// Their bytes and their ids.
    arena: Vec<u8>,
}

const COUNT_AT: u32 = 29;
const ID: u32 = (1 << COUNT_AT) - 1;

/// So many pieces at once are encoded.
const AT_ONCE: usize = 16;

impl Default for Cache {
    fn default() -> Self {
        Self(Box::default())
    }
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            keys: [0; BATCH],
            hashes: [0; BATCH],
            ids: [0; BATCH * SOME],
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
        size_of_val(&*short.buckets) + size_of_val(&*middle.buckets) + size_of_val(&*long.slots) + long.arena.capacity()
    }
}

impl Pieces {
    /// Gives the ids of pieces to `out`, or of parts of pieces, if there is no further room to work in.
    fn encode(
        &mut self,
        text: &[u8],
        bounds: &[(usize, usize)],
        (batch, part_batch): (&mut Batch, Option<&mut Batch>),
        out: &mut impl Output,
        encoder: &impl Encoder,
    ) {
        debug_assert!(bounds.len() <= BATCH);
        // While one is looked at, what is known of the next ones is on its way from memory.
        let Batch { keys, hashes, ids, missing, .. } = batch;
        let mut others = 0u64;
        for (i, ((&(start, end), key), hash)) in bounds.iter().zip(&mut *keys).zip(&mut *hashes).enumerate() {
            if end - start <= SHORT {
                *key = key_of(text, start, end);
                *hash = key.hash();
                self.short.prefetch(*hash);
            } else {
                *key = u128::NONE;
                others |= 1 << i;
            }
        }
        if others != 0 {
            self.prefetch_others(text, bounds, others, hashes);
        }
        let (mut len, mut missed) = (0, 0);
        for (i, (&key, &hash)) in keys[..bounds.len()].iter().zip(&*hashes).enumerate() {
            if key != u128::NONE {
                if let Some(slot) = self.short.first(key, hash) {
                    len += out.known(slot.ids, &mut ids[len..]);
                    continue;
                }
            } else if self.find_other(text, bounds[i], hash, out, ids, (&mut len, missed)) {
                continue;
            }
            missing[missed] = (i as u32, len as u32);
            missed += 1;
        }
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
    fn find_other(
        &self,
        text: &[u8],
        (start, end): (usize, usize),
        hash: u64,
        out: &mut impl Output,
        ids: &mut [u32],
        (len, missed): (&mut usize, usize),
    ) -> bool {
        if end - start <= MIDDLE {
            let found = self.middle.first(middle_key(text, (start, end)), hash);
            *len += found.map_or(0, |slot| out.known(slot.ids, &mut ids[*len..]));
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
        match len {
            ..=SHORT => prefetch(&self.short.buckets, self.short.aside(hash)),
            ..=MIDDLE => prefetch(&self.middle.buckets, self.middle.aside(hash)),
            _ => {}
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

impl<K: Key, const IDS: usize> Default for Slots<K, IDS> {
    fn default() -> Self {
        Self { buckets: Table::filled(Bucket([Self::EMPTY; 2]), K::FIRST), added: 0 }
    }
}

impl<K: Key, const IDS: usize> Slots<K, IDS> {
    const EMPTY: Slot<K, IDS> = Slot { key: K::NONE, ids: [0; IDS] };

    #[inline]
    fn at(&self, hash: u64) -> usize {
        hash as usize & (self.buckets.len() - 1)
    }

    /// The other bucket where a piece may be.
    #[inline]
    fn aside(&self, hash: u64) -> usize {
        (hash >> 32) as usize & (self.buckets.len() - 1)
    }

    #[inline]
    fn prefetch(&self, hash: u64) {
        let at = self.at(hash);
        prefetch(&self.buckets, at);
        if size_of::<Bucket<Slot<K, IDS>>>() > 64 {
            if let Some(Bucket([_, second])) = self.buckets.get(at) {
                prefetch(std::slice::from_ref(second), 0);
            }
        }
    }

    /// A piece that stands where it belongs.
    #[inline]
    fn first(&self, key: K, hash: u64) -> Option<&Slot<K, IDS>> {
        let Bucket([first, second]) = &self.buckets[self.at(hash)];
        let slot = if first.key == key { first } else { second };
        (slot.key == key).then_some(slot)
    }

    /// Adds a piece, if it is not there, and if it has few enough ids.
    fn add(&mut self, key: K, hash: u64, ids: &[u32]) -> bool {
        if !(1..=IDS).contains(&ids.len()) || ids.iter().any(|&id| id > ID) {
            return false;
        }
        if self.first(key, hash).is_some() {
            return true;
        }
        let mut slot = Slot { key, ids: [0; IDS] };
        slot.ids[..ids.len()].copy_from_slice(ids);
        slot.ids[0] |= ((ids.len() - 1) as u32) << COUNT_AT;
        self.added += 1;
        if self.added > self.buckets.len() && size_of_val(&*self.buckets) < MOST {
            let larger = Table::filled(Bucket([Self::EMPTY; 2]), self.buckets.len() * 2);
            let old = std::mem::replace(&mut self.buckets, larger);
            let pieces = old.iter().flat_map(|bucket| bucket.0.iter().rev());
            pieces.filter(|slot| slot.key != K::NONE).for_each(|slot| self.place(*slot));
        }
        self.place(slot);
        true
    }

    /// Puts a piece where it belongs. The one that has to leave stands aside, in place of another.
    fn place(&mut self, slot: Slot<K, IDS>) {
        let at = self.at(slot.key.hash());
        let Bucket([first, second]) = self.buckets[at];
        self.buckets[at] = Bucket([slot, first]);
        if second.key != K::NONE {
            let aside = self.aside(second.key.hash());
            let Bucket(slots) = &mut self.buckets[aside];
            slots[usize::from(slots[0].key != K::NONE)] = second;
        }
    }

    /// A piece that stands aside is put where it belongs, and its ids are appended.
    fn take_aside(&mut self, key: K, hash: u64, out: &mut Vec<u32>) -> bool {
        let aside = self.aside(hash);
        let Some(place) = self.buckets[aside].0.iter_mut().find(|slot| slot.key == key) else { return false };
        let slot = std::mem::replace(place, Self::EMPTY);
        self.place(slot);
        slot.push(out);
        true
    }
}

impl Default for Long {
    fn default() -> Self {
        Self { slots: Table::filled(LongBucket::default(), FIRST_LONG / 4), added: 0, arena: Vec::new() }
    }
}

impl Long {
    #[inline]
    fn at(&self, hash: u64) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    #[inline]
    fn prefetch(&self, hash: u64) {
        prefetch(&self.slots, self.at(hash));
    }

    #[inline]
    fn slot(&self, hash: u64) -> Option<&LongSlot> {
        self.slots[self.at(hash)].0.iter().find(|slot| slot.hash == hash)
    }

    /// The ids of a piece, if they are known.
    #[inline]
    fn find(&self, piece: &[u8], hash: u64) -> Option<impl ExactSizeIterator<Item = u32> + '_> {
        let slot = self.slot(hash).filter(|slot| slot.len as usize == piece.len())?;
        let known = &self.arena[slot.at as usize..];
        let (bytes, ids) = known[..piece.len() + 4 * slot.ids as usize].split_at(piece.len());
        let ids = ids.chunks_exact(4).map(|id| u32::from_le_bytes([id[0], id[1], id[2], id[3]]));
        (bytes == piece).then_some(ids)
    }

    fn add(&mut self, hash: u64, piece: &[u8], ids: &[u32]) {
        if self.arena.len() > ARENA {
            self.arena.clear();
            self.slots.fill(LongBucket::default());
            self.added = 0;
        }
        self.added += 1;
        if self.added > self.slots.len() && self.slots.len() * 4 < MOST_LONG {
            let larger = Table::filled(LongBucket::default(), self.slots.len() * 2);
            let old = std::mem::replace(&mut self.slots, larger);
            for slot in old.iter().flat_map(|bucket| bucket.0.iter().rev()).filter(|slot| slot.len > 0) {
                self.place(*slot);
            }
        }
        self.place(LongSlot { hash, at: self.arena.len() as u32, len: piece.len() as u16, ids: ids.len() as u16 });
        self.arena.extend_from_slice(piece);
        self.arena.extend(ids.iter().flat_map(|id| id.to_le_bytes()));
    }

    fn place(&mut self, slot: LongSlot) {
        let at = self.at(slot.hash);
        let LongBucket([first, second, third, _]) = self.slots[at];
        self.slots[at] = LongBucket([slot, first, second, third]);
    }
}

/// How many ids a slot has, of which this is the first.
#[inline]
fn count(first: u32) -> usize {
    (first >> COUNT_AT) as usize + 1
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
    /// Puts the ids of a slot at the start of `place`, as all of its words; how many of them count.
    fn known<const IDS: usize>(&self, ids: [u32; IDS], place: &mut [u32]) -> usize;
    /// Takes over what `known` has put somewhere.
    fn take(&mut self, ids: &[u32]);
    /// `add` appends ids to those there are.
    fn add(&mut self, add: impl FnOnce(&mut Vec<u32>));
}

impl Output for Vec<u32> {
    #[inline]
    fn known<const IDS: usize>(&self, mut ids: [u32; IDS], place: &mut [u32]) -> usize {
        let count = count(ids[0]);
        if let Some(place) = place.first_chunk_mut() {
            ids[0] &= ID;
            *place = ids;
        }
        count
    }

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
    #[inline]
    fn known<const IDS: usize>(&self, ids: [u32; IDS], _: &mut [u32]) -> usize {
        count(ids[0])
    }

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
    use super::*;

    /// Gives ids that tell the piece, one for each three bytes.
    struct Spelled;

    impl Encoder for Spelled {
        fn prepare(&self, _: &[u8]) {}

        fn has_parts(&self, piece: &[u8]) -> bool {
            piece[0] % 2 == 0
        }

        fn parts(&self, piece: &[u8], mut visit: impl FnMut(&[(usize, usize)])) {
            let parts: Vec<_> = (0..piece.len()).step_by(21).map(|at| (at, piece.len().min(at + 21))).collect();
            parts.chunks(BATCH).for_each(|some| visit(some));
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
