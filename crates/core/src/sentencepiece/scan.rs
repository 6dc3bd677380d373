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
        let end = text.len().min(base + 64);
        // A character of the block before may wait for its neighbour.
        let is_pending = !self.left.is_ascii() && self.at < end;
        if wide == 0 && !is_pending {
            return cut;
        }
        if self.at < base {
            let is_inside = base > self.start;
            self.left = if is_inside { cuts.ascii_character(text[base - 1], base) } else { Character::default() };
            self.at = base;
        }
        // SAFETY: `is_here` was asked.
        if let Some(found) = unsafe { self.wide_block(text, base, cuts, model) } {
            return cut | found;
        }
        // Runs beyond ASCII, each with the character behind it.
        let after = |at: usize| u64::MAX.checked_shl(at.saturating_sub(base) as u32).unwrap_or(0);
        if is_pending {
            cut |= self.run(text, (base, end), cuts, model);
        }
        let mut wide = wide & after(self.at);
        while wide != 0 {
            let first = base + wide.trailing_zeros() as usize;
            if first > self.at {
                (self.left, self.at) = (cuts.ascii_character(text[first - 1], first), first);
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
            for (byte, left) in left.iter_mut().enumerate() {
                made.front[byte] |= ((all >> byte & 1) as u8) << group;
                if behind >> byte & 1 == 1 {
                    made.behind[byte] |= 1 << group;
                    *left &= !all;
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
        __m512i, __mmask16, _mm512_add_epi32, _mm512_and_si512, _mm512_cmpeq_epi8_mask, _mm512_cmpge_epu32_mask,
        _mm512_cmplt_epi8_mask, _mm512_cmplt_epu8_mask, _mm512_cvtepu8_epi32, _mm512_loadu_si512,
        _mm512_mask_i32gather_epi32, _mm512_mask_mov_epi32, _mm512_mask_test_epi32_mask, _mm512_maskz_compress_epi8,
        _mm512_maskz_loadu_epi8, _mm512_movepi8_mask, _mm512_mullo_epi32, _mm512_or_si512, _mm512_permutex2var_epi8,
        _mm512_set1_epi32, _mm512_set1_epi8, _mm512_setzero_si512, _mm512_slli_epi32, _mm512_sllv_epi32,
        _mm512_srl_epi32, _mm512_srli_epi32, _mm512_storeu_si512, _mm512_sub_epi8, _mm512_test_epi32_mask,
        _mm512_test_epi8_mask, _mm512_xor_si512, _mm_cvtsi32_si128, _mm_loadu_si128, _pdep_u64,
    };

    use super::{Character, Cuts, Groups, Scan, Scored, BEGINS, FOLLOWS};
    use crate::sentencepiece::cuts::{BLANK, PLAIN};
    use crate::sentencepiece::neighbours::{code, Neighbours, FACTORS};
    use crate::sentencepiece::normalize::SPACE;

    pub fn is_here() -> bool {
        is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vbmi")
            && is_x86_feature_detected!("avx512vbmi2")
            && is_x86_feature_detected!("bmi2")
    }

    pub struct Block {
        /// Cuts between ASCII characters.
        pub cut: u64,
        /// Of these, where what follows has to be looked at.
        pub unsure: u64,
        /// Bytes beyond ASCII.
        pub wide: u64,
    }

    /// Up to 64 bytes from a place on, zeros behind the end of the text, and which of them are inside.
    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    fn load(text: &[u8], from: usize) -> (__m512i, u64) {
        let rest = text.get(from..).unwrap_or_default();
        let inside = if rest.len() < 64 { (1 << rest.len()) - 1 } else { u64::MAX };
        // SAFETY: only bytes of the text are read.
        (unsafe { _mm512_maskz_loadu_epi8(inside, rest.as_ptr().cast()) }, inside)
    }

    /// The block that starts at `base`.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    pub fn block(text: &[u8], base: usize, groups: &Groups) -> Block {
        let table = |of: &[u8; 128]| {
            let at = of.as_ptr().cast::<__m512i>();
            // SAFETY: two times 64 bytes.
            unsafe { (_mm512_loadu_si512(at), _mm512_loadu_si512(at.add(1))) }
        };
        let look_up = |bytes: __m512i, (low, high): (__m512i, __m512i)| _mm512_permutex2var_epi8(low, bytes, high);
        let (bytes, inside) = load(text, base);
        // At the start of a text there is nothing in front, nor a cut.
        let inner = if base == 0 { inside & !1 } else { inside };
        let in_front = text[base..].as_ptr().wrapping_sub(1).cast();
        // SAFETY: only bytes of the text are read.
        let before = unsafe { _mm512_maskz_loadu_epi8(inner, in_front) };
        let (wide, wide_before) = (_mm512_movepi8_mask(bytes), _mm512_movepi8_mask(before));
        let has_cut = |before: __m512i| {
            let front = look_up(before, table(&groups.front));
            _mm512_test_epi8_mask(front, look_up(bytes, table(&groups.behind)))
        };
        let cut = has_cut(before) & inner & !wide & !wide_before;
        let flags = look_up(bytes, table(&groups.flags));
        let begins = _mm512_test_epi8_mask(flags, _mm512_set1_epi8(BEGINS as i8));
        let follows = wide | _mm512_test_epi8_mask(flags, _mm512_set1_epi8(FOLLOWS as i8)) & inside;
        // What follows the last one is always looked at.
        Block { cut, unsure: cut & begins & (follows >> 1 | 1 << 63), wide }
    }

    /// The characters of a block, with the one in front and the one behind: their bytes as numbers, and their classes.
    struct Characters {
        codes: [u32; 80 + 2],
        classes: [u32; 80 + 2],
    }

    /// Which of 16 pairs of characters some entry may have side by side, of those that `of` asks for.
    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    fn may_have(neighbours: &Neighbours, of: __mmask16, left: __m512i, right: __m512i) -> __mmask16 {
        let times = |a: __m512i, i: usize| _mm512_mullo_epi32(a, _mm512_set1_epi32(FACTORS[i] as i32));
        let both = _mm512_add_epi32(times(left, 0), times(right, 1));
        let mixed = times(_mm512_xor_si512(both, _mm512_srli_epi32::<16>(both)), 2);
        let at = _mm512_srl_epi32(mixed, _mm_cvtsi32_si128(neighbours.shift as i32));
        // SAFETY: a place is inside the bits, 32 of which are in one number.
        let words = unsafe {
            let bits = neighbours.bits.as_ptr().cast();
            _mm512_mask_i32gather_epi32::<4>(_mm512_setzero_si512(), of, _mm512_srli_epi32::<5>(at), bits)
        };
        let bit = _mm512_sllv_epi32(_mm512_set1_epi32(1), _mm512_and_si512(at, _mm512_set1_epi32(31)));
        _mm512_mask_test_epi32_mask(of, words, bit)
    }

    impl Scan {
        /// The cuts of a block beside characters beyond ASCII. None, and nothing done, where there are bytes that are not
        /// well-formed, or characters of four.
        #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,bmi2")]
        pub(super) fn wide_block(&mut self, text: &[u8], base: usize, cuts: &Cuts, model: &Scored) -> Option<u64> {
            let neighbours = model.neighbours()?;
            let ((first, inside), (second, _), (third, _)) =
                (load(text, base), load(text, base + 1), load(text, base + 2));
            let within = |bytes: __m512i, first: u8, last: u8| {
                let moved = _mm512_sub_epi8(bytes, _mm512_set1_epi8(first as i8));
                _mm512_cmplt_epu8_mask(moved, _mm512_set1_epi8((last - first + 1) as i8))
            };
            let is_behind = |bytes: __m512i| _mm512_cmplt_epi8_mask(bytes, _mm512_set1_epi8(-64));
            let of = |byte: u8| _mm512_cmpeq_epi8_mask(first, _mm512_set1_epi8(byte as i8));
            let (ascii, behind) = (!_mm512_movepi8_mask(first) & inside, is_behind(first));
            let (two, three) = (within(first, 0xC2, 0xDF), within(first, 0xE0, 0xEF));
            let before = (1u64 << (self.at - base)) - 1;
            let starts = ascii | two | three;
            let missing = (two | three) & !is_behind(second) | three & !is_behind(third);
            // Too long for what they are, or surrogates.
            let second_low = within(second, 0x80, 0x9F);
            let odd = of(0xE0) & second_low | of(0xED) & !second_low;
            let is_sound = behind == ((two | three) << 1 | three << 2 | before) & inside && starts | behind == inside;
            if !is_sound || missing | odd != 0 {
                return None;
            }
            let count = starts.count_ones() as usize;
            if count == 0 {
                return Some(0);
            }
            let bytes = [first, second, third].map(|bytes| {
                let mut room = [0u8; 64];
                // SAFETY: 64 bytes are written.
                unsafe {
                    _mm512_storeu_si512(room.as_mut_ptr().cast(), _mm512_maskz_compress_epi8(starts, bytes));
                }
                room
            });
            let mut all = Characters { codes: [0; 82], classes: [0; 82] };
            (all.codes[0], all.classes[0]) = (self.left.code, self.left.class.into());
            for from in (0..count).step_by(16) {
                let [a, b, c] = [0, 1, 2].map(|i: usize| {
                    let sixteen = &bytes[i][from..from + 16];
                    // SAFETY: 16 bytes are read.
                    _mm512_cvtepu8_epi32(unsafe { _mm_loadu_si128(sixteen.as_ptr().cast()) })
                });
                let low = |bytes: __m512i, bits: i32| _mm512_and_si512(bytes, _mm512_set1_epi32(bits));
                let is_wide = _mm512_cmpge_epu32_mask(a, _mm512_set1_epi32(0xC0));
                let is_three = _mm512_cmpge_epu32_mask(a, _mm512_set1_epi32(0xE0));
                let two = _mm512_or_si512(_mm512_slli_epi32::<8>(a), b);
                let three = _mm512_or_si512(_mm512_slli_epi32::<8>(two), c);
                let codes = _mm512_mask_mov_epi32(_mm512_mask_mov_epi32(a, is_wide, two), is_three, three);
                let two = _mm512_or_si512(_mm512_slli_epi32::<6>(low(a, 0x1F)), low(b, 0x3F));
                let three = _mm512_or_si512(_mm512_slli_epi32::<6>(low(two, 0x3FF)), low(c, 0x3F));
                let points = _mm512_mask_mov_epi32(_mm512_mask_mov_epi32(a, is_wide, two), is_three, three);
                let some = mask_of(count - from);
                // SAFETY: the table has four bytes more than there are points; two times 16 numbers are written.
                unsafe {
                    let classes = cuts.classes.as_ptr().cast();
                    let classes = _mm512_mask_i32gather_epi32::<1>(_mm512_setzero_si512(), some, points, classes);
                    _mm512_storeu_si512(all.codes[1 + from..17 + from].as_mut_ptr().cast(), codes);
                    _mm512_storeu_si512(all.classes[1 + from..17 + from].as_mut_ptr().cast(), low(classes, 0xFF));
                }
            }
            let last = base + 63 - starts.leading_zeros() as usize;
            self.at = last + 1 + usize::from(text[last] >= 0xC0) + usize::from(text[last] >= 0xE0);
            self.left = Character { class: all.classes[count] as u8, code: all.codes[count], end: self.at };
            let next = if self.at < text.len() { cuts.character(text, self.at).class } else { 0 };
            all.classes[count + 1] = next.into();
            let mut found = 0;
            for from in (0..count).step_by(16) {
                // SAFETY: five times 16 numbers are read.
                let [left, right, left_class, class, next] = unsafe {
                    [
                        &all.codes[from..from + 16],
                        &all.codes[from + 1..from + 17],
                        &all.classes[from..from + 16],
                        &all.classes[from + 1..from + 17],
                        &all.classes[from + 2..from + 18],
                    ]
                    .map(|of| _mm512_loadu_si512(of.as_ptr().cast()))
                };
                let has = |class: __m512i, bits: u8| _mm512_test_epi32_mask(class, _mm512_set1_epi32(bits.into()));
                let is_wide = _mm512_cmpge_epu32_mask(_mm512_or_si512(left, right), _mm512_set1_epi32(0x80));
                let may_cut =
                    has(left_class, PLAIN) & has(class, PLAIN | BLANK) & !(has(class, BEGINS) & has(next, FOLLOWS));
                let may_cut = may_cut & is_wide & mask_of(count - from);
                let after =
                    _mm512_mask_mov_epi32(right, has(class, BLANK), _mm512_set1_epi32(const { code(SPACE) } as i32));
                let mut cut = may_cut & !may_have(neighbours, may_cut, left, after);
                if let Some(joined) = &cuts.joined {
                    cut &= !may_have(joined, cut, left, right);
                }
                found |= u64::from(cut) << from;
            }
            Some(_pdep_u64(found, starts))
        }
    }

    /// The first so many of 16.
    fn mask_of(count: usize) -> __mmask16 {
        if count < 16 {
            (1 << count) - 1
        } else {
            u16::MAX
        }
    }
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests {
    use super::*;
    use crate::sentencepiece::normalize::Normalizer;
    use crate::unigram::{Kind, Precision};
    use crate::vocab::Vocab;

    /// Models of random entries, with symbols of users' own or without, and texts of one to four bytes a character and of
    /// bytes that are none.
    #[test]
    fn blocks_have_the_cuts_that_one_after_the_other_has() {
        if !avx512::is_here() {
            return;
        }
        let mut state = 1u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        let letters = [" ", "\u{2581}", "a", "b", "é", "か", "キ", "漢", "字", "。", "\u{3000}", ".", "\n", "😀", "n"];
        for round in 0..300 {
            let mut entries = vec!["<unk>".to_owned()];
            for _ in 0..random(80) {
                let entry: String = (0..1 + random(4)).map(|_| letters[1 + random(letters.len() - 1)]).collect();
                if !entries.contains(&entry) {
                    entries.push(entry);
                }
            }
            let (mut data, mut offsets) = (Vec::new(), vec![0]);
            for entry in &entries {
                data.extend_from_slice(entry.as_bytes());
                offsets.push(data.len() as u64);
            }
            let vocab = Vocab::new(data, &offsets, (0..entries.len() as u32).collect()).expect("a sound vocabulary");
            let mut kinds = vec![Kind::Normal; entries.len()];
            kinds[0] = Kind::Unknown;
            let scores = vec![-1.0; entries.len()];
            let algorithm = ["unigram", "merges"][round % 2];
            let model = Scored::new(algorithm, vocab, &scores, &kinds, Precision::Float32, 0, &[], None)
                .expect("a sound model");
            let own: &[&str] = if round % 3 == 0 { &["ab", "か。"] } else { &[] };
            let normalizer = Normalizer::new("", [true, true, true, false], own).expect("a sound normalizer");
            let cuts = Cuts::new(&normalizer, &model).expect("what is known is enough");
            for _ in 0..40 {
                let (mut text, kinds) = (Vec::new(), 1 + random(letters.len()));
                for _ in 0..random(200) {
                    text.extend_from_slice(letters[random(kinds)].as_bytes());
                    match random(40) {
                        0 if round % 4 == 0 => text.push(random(256) as u8),
                        1 if round % 4 == 0 => drop(text.pop()),
                        _ => {}
                    }
                }
                let start = (0..text.len().min(4)).find(|&at| text[at] & 0xC0 != 0x80).unwrap_or(0);
                let all = |by_blocks: bool| {
                    let (mut scan, mut bounds, mut found) =
                        (Scan::new(start), [(0, 0); BATCH + AT_LEAST], Vec::<(usize, usize)>::new());
                    loop {
                        let len = match by_blocks {
                            true => scan.units_by_blocks(&text, &cuts, &model, &mut bounds),
                            false => scan.units_one_by_one(&text, &cuts, &model, &mut bounds),
                        };
                        found.extend(&bounds[..len]);
                        if found.last().is_none_or(|&(_, end)| end == text.len()) {
                            return found;
                        }
                    }
                };
                assert_eq!(all(true), all(false), "{:?}", String::from_utf8_lossy(&text));
            }
        }
    }

    /// The groups give no cut that there may not be, and all of them where there are few kinds.
    #[test]
    fn groups_give_cuts_that_there_may_be() {
        let mut front = [0; 128];
        for behind in [b' ', b'.', b'A'] {
            front[usize::from(behind)] = of_ascii(b'a', b'z') | 1 << b'.';
        }
        front[usize::from(b'b')] = 1 << b'.';
        let groups = Groups::new(&front, [0; 128]);
        for (left, right) in (0..128u8).flat_map(|left| (0..128u8).map(move |right| (left, right))) {
            assert_eq!(groups.cut(left, right), front[usize::from(right)] >> left & 1 == 1, "{left} {right}");
        }
    }
}
