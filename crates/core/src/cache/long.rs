//! Long pieces: a slot says where the bytes of one and its ids are.

use crate::memory::{prefetch, Table};

/// Slots at the start and at most.
pub const FIRST_LONG: usize = 1 << 9;
pub const MOST_LONG: usize = 1 << 20;
/// Bytes of pieces and their ids at most.
pub const ARENA: usize = 1 << 26;

/// A long piece: its hash, and where its bytes and behind them its ids are.
#[derive(Clone, Copy, Default)]
pub struct LongSlot {
    hash: u64,
    pub at: u32,
    len: u16,
    ids: u16,
}

/// A place for four long pieces, the one added last first. One cache line.
#[derive(Clone, Copy, Default)]
#[repr(C, align(64))]
pub struct LongBucket([LongSlot; 4]);

pub struct Long {
    pub slots: Table<LongBucket>,
    added: usize,
    /// Their bytes and their ids.
    pub arena: Vec<u8>,
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
    pub fn prefetch(&self, hash: u64) {
        prefetch(&self.slots, self.at(hash));
    }

    #[inline]
    pub fn slot(&self, hash: u64) -> Option<&LongSlot> {
        self.slots[self.at(hash)].0.iter().find(|slot| slot.hash == hash)
    }

    /// The ids of a piece, if they are known.
    #[inline]
    pub fn find(&self, piece: &[u8], hash: u64) -> Option<impl ExactSizeIterator<Item = u32> + '_> {
        let slot = self.slot(hash).filter(|slot| slot.len as usize == piece.len())?;
        let known = &self.arena[slot.at as usize..];
        let (bytes, ids) = known[..piece.len() + 4 * slot.ids as usize].split_at(piece.len());
        let ids = ids.chunks_exact(4).map(|id| u32::from_le_bytes([id[0], id[1], id[2], id[3]]));
        (bytes == piece).then_some(ids)
    }

    pub fn add(&mut self, hash: u64, piece: &[u8], ids: &[u32]) {
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
