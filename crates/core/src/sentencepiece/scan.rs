//! All cuts of a text, one after the other: 64 bytes at once where there is AVX-512.
//!
//! Between ASCII characters a cut is where the groups of the one in front and of the one behind have a bit in common
//! ([`Groups`]), so that two look-ups tell it for a whole block. Beyond ASCII the characters are gone through one by one,
//! without a branch on whether there is a cut, which could not be foretold.

use super::cuts::{Character, Cuts, BEGINS, FOLLOWS};
use crate::pipeline::BATCH;
use crate::scored::Scored;
use crate::split::ends::{self, AT_LEAST};

/// Units on their way: `put` may write more than there are.
pub type Bounds = [(usize, usize); BATCH + AT_LEAST];

/// Where a scan of a text is.
pub struct Scan {
    /// Where the next unit starts.
    start: usize,
    /// The cuts of the block at `base` that were not handed out.
    base: usize,
    bits: u64,
    /// Where the next block starts, and the first character that is not looked at.
    next: usize,
    at: usize,
    left: Character,
}

impl Scan {
    /// From a cut on, or from the start of a text.
    pub fn new(start: usize) -> Self {
        Self { start, base: start, bits: 0, next: start, at: start, left: Character::default() }
    }

    /// Puts the next units into `bounds`, at most `BATCH`; how many.
    pub fn units(&mut self, text: &[u8], cuts: &Cuts, model: &Scored, bounds: &mut Bounds) -> usize {
        #[cfg(target_arch = "x86_64")]
        if avx512::is_here() {
            return self.units_by_blocks(text, cuts, model, bounds);
        }
        self.units_one_by_one(text, cuts, model, bounds)
    }

    fn units_one_by_one(&mut self, text: &[u8], cuts: &Cuts, model: &Scored, bounds: &mut Bounds) -> usize {
        let mut len = 0;
        while len < BATCH && self.start < text.len() {
            let end = cuts.next(text, self.start, model);
            bounds[len] = (self.start, end);
            (self.start, len) = (end, len + 1);
        }
        len
    }

    #[cfg(target_arch = "x86_64")]
    fn units_by_blocks(&mut self, text: &[u8], cuts: &Cuts, model: &Scored, bounds: &mut Bounds) -> usize {
        let mut len = 0;
        loop {
            let count = self.bits.count_ones() as usize;
            if len + count > BATCH {
                return len;
            }
            if count > 0 {
                ends::put(self.base, self.bits, self.start, &mut bounds[len..]);
                self.start = self.base + 63 - self.bits.leading_zeros() as usize;
                (self.bits, len) = (0, len + count);
            }
            if self.next >= text.len() {
                break;
            }
            self.bits = self.block(text, cuts, model);
        }
        if len < BATCH && self.start < text.len() {
            bounds[len] = (self.start, text.len());
            (self.start, len) = (text.len(), len + 1);
        }
        len
    }

    /// The cuts of the next block.
    #[cfg(target_arch = "x86_64")]
    fn block(&mut self, text: &[u8], cuts: &Cuts, model: &Scored) -> u64 {
        let base = self.next;
        // SAFETY: `is_here` was asked.
        let avx512::Block { mut cut, mut unsure, wide } = unsafe { avx512::block(text, base, &cuts.groups) };
        (self.base, self.next) = (base, base + 64);
        if base <= self.start {
            // What is in front does not matter.
            (cut, unsure) = (cut & !1, unsure & !1);
        }
        while unsure != 0 {
            let i = unsure.trailing_zeros();
            unsure &= unsure - 1;
            let right = cuts.character(text, base + i as usize);
            cut &= !(u64::from(!cuts.ends(right, text)) << i);
        }
        // Runs beyond ASCII, each with the character behind it.
        let end = text.len().min(base + 64);
        let after = |at: usize| u64::MAX.checked_shl(at.saturating_sub(base) as u32).unwrap_or(0);
        if !self.left.is_ascii() && self.at < end {
            cut |= self.run(text, (base, end), cuts, model);
        }
        let mut wide = wide & after(self.at);
        while wide != 0 {
            let first = base + wide.trailing_zeros() as usize;
            if first > self.at {
                (self.left, self.at) = (Character::default(), first);
                if first > self.start {
                    self.left = cuts.ascii_character(text[first - 1], first);
                }
            }
            cut |= self.run(text, (base, end), cuts, model);
            wide &= after(self.at);
        }
        cut
    }

    /// The cuts before the characters of a run that start in a block, and before the one of ASCII behind it.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    fn run(&mut self, text: &[u8], (base, end): (usize, usize), cuts: &Cuts, model: &Scored) -> u64 {
        let (mut left, mut at, mut found) = (self.left, self.at, 0);
        let mut right = cuts.character(text, at);
        while at < end {
            let next = if right.end < text.len() { cuts.character(text, right.end) } else { Character::default() };
            let is_cut =
                cuts.may_cut(left, right, model) & !((right.class & BEGINS != 0) & (next.class & FOLLOWS != 0));
            found |= u64::from(is_cut) << (at - base);
            let is_last = right.is_ascii();
            (left, at, right) = (right, right.end, next);
            if is_last {
                break;
            }
        }
        (self.left, self.at) = (left, at);
        found
    }
}

/// So many groups.
const GROUPS: usize = 8;

/// ASCII characters in groups: a bit for each that one belongs to when it is in front, and when it is behind. Between
/// all in front and all behind of a group is a cut. These are not all cuts that there may be, but those that matter.
pub struct Groups {
    pub front: [u8; 128],
    pub behind: [u8; 128],
    /// `BEGINS` and `FOLLOWS`.
    pub flags: [u8; 128],
}

/// Letters, digits, and others: how often they stand somewhere, roughly.
const KINDS: [(u128, u32); 4] = [
    (of_ascii(b'a', b'z'), 8),
    (of_ascii(b'A', b'Z') | of_ascii(b'0', b'9'), 2),
    (of_ascii(b' ', b' ') | of_ascii(b'\n', b'\n'), 32),
    (of_ascii(b'!', b'/') | of_ascii(b':', b'@') | of_ascii(b'[', b'`') | of_ascii(b'{', b'~'), 1),
];

const fn of_ascii(first: u8, last: u8) -> u128 {
    let (mut all, mut at) = (0, first);
    while at <= last {
        all |= 1 << at;
        at += 1;
    }
    all
}

fn weight(of: u128) -> u32 {
    KINDS.iter().map(|&(kind, each)| (of & kind).count_ones() * each).sum()
}

impl Default for Groups {
    fn default() -> Self {
        Self { front: [0; 128], behind: [0; 128], flags: [0; 128] }
    }
}

impl Groups {
    /// `front` has for each character those in front of it between which and it there may be a cut.
    pub fn new(front: &[u128; 128], flags: [u8; 128]) -> Self {
        let mut made = Self { flags, ..Self::default() };
        let mut left = *front;
        // Where words are cut does not matter.
        (b'a'..=b'z').for_each(|byte| left[usize::from(byte)] &= !KINDS[0].0);
        let weights: Vec<u32> = (0..128).map(|byte| weight(1 << byte)).collect();
        let gain = |all: u128, behind: u128, left: &[u128; 128]| -> u32 {
            (0..128).filter(|byte| behind >> byte & 1 == 1).map(|byte| weights[byte] * weight(all & left[byte])).sum()
        };
        for group in 0..GROUPS {
            let Some(first) = (0..128).max_by_key(|&byte| weights[byte] * weight(left[byte])) else { break };
            let (mut all, mut behind) = (front[first], 1u128 << first);
            let mut best = gain(all, behind, &left);
            for byte in (0..128).filter(|&byte| byte != first) {
                let (fewer, more) = (all & front[byte], behind | 1 << byte);
                let found = gain(fewer, more, &left);
                if found >= best {
                    (all, behind, best) = (fewer, more, found);
                }
            }
            if best == 0 {
                break;
            }
            for byte in 0..128 {
                made.front[byte] |= ((all >> byte & 1) as u8) << group;
                if behind >> byte & 1 == 1 {
                    made.behind[byte] |= 1 << group;
                    left[byte] &= !all;
                }
            }
        }
        made
    }

    /// Whether there is a cut between two, if what is behind is not the start of what a rule replaces.
    #[inline]
    pub fn cut(&self, front: u8, behind: u8) -> bool {
        self.front[usize::from(front)] & self.behind[usize::from(behind)] != 0
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::{
        __m512i, _mm512_loadu_si512, _mm512_maskz_loadu_epi8, _mm512_movepi8_mask, _mm512_permutex2var_epi8,
        _mm512_set1_epi8, _mm512_test_epi8_mask,
    };

    use super::{Groups, BEGINS, FOLLOWS};

    pub fn is_here() -> bool {
        is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vbmi")
    }

    pub struct Block {
        /// Cuts between ASCII characters.
        pub cut: u64,
        /// Of these, where what follows has to be looked at.
        pub unsure: u64,
        /// Bytes beyond ASCII.
        pub wide: u64,
    }

    /// The block that starts at `base`, inside the text.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    pub unsafe fn block(text: &[u8], base: usize, groups: &Groups) -> Block {
        let rest = &text[base..];
        let inside = if rest.len() < 64 { (1 << rest.len()) - 1 } else { u64::MAX };
        let table = |of: &[u8; 128]| {
            let at = of.as_ptr().cast::<__m512i>();
            // SAFETY: two times 64 bytes.
            unsafe { (_mm512_loadu_si512(at), _mm512_loadu_si512(at.add(1))) }
        };
        let look_up = |bytes: __m512i, (low, high): (__m512i, __m512i)| _mm512_permutex2var_epi8(low, bytes, high);
        let at = rest.as_ptr().cast::<i8>();
        // SAFETY: only bytes of the text are read: the first one's place is in front of it only where that is left out.
        let (bytes, before) = unsafe {
            let has_before = if base == 0 { !1 } else { u64::MAX };
            (_mm512_maskz_loadu_epi8(inside, at), _mm512_maskz_loadu_epi8(inside & has_before, at.wrapping_sub(1)))
        };
        let (wide, wide_before) = (_mm512_movepi8_mask(bytes), _mm512_movepi8_mask(before));
        let (front, behind) = (look_up(before, table(&groups.front)), look_up(bytes, table(&groups.behind)));
        let first = u64::from(base == 0);
        let cut = _mm512_test_epi8_mask(front, behind) & inside & !wide & !wide_before & !first;
        let flags = look_up(bytes, table(&groups.flags));
        let begins = _mm512_test_epi8_mask(flags, _mm512_set1_epi8(BEGINS as i8));
        let follows = wide | _mm512_test_epi8_mask(flags, _mm512_set1_epi8(FOLLOWS as i8)) & !wide & inside;
        // Of the last one what follows is always looked at.
        Block { cut, unsure: cut & begins & (follows >> 1 | 1 << 63), wide }
    }
}
