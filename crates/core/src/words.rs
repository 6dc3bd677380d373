//! Words where each can be encoded by itself, as BERT's can: what stands between white space and punctuation marks, and
//! each such mark, and each Chinese character if they are set apart.
//!
//! Beyond ASCII it is a set of separators that says which characters are such, a bit for each of the first plane. With
//! AVX-512 a block of 64 bytes is looked at at once; characters that differ in the last byte alone have their bits side by
//! side, in one word of the set.

use crate::error::Result;
use crate::unicode::decode;

/// Characters of the first plane, by their code points.
pub struct Set(Box<[u64; 1024]>);

impl Default for Set {
    fn default() -> Self {
        Self(Box::new([0; 1024]))
    }
}

impl Set {
    pub fn add(&mut self, c: u32) {
        if let Some(row) = self.0.get_mut(c as usize / 64) {
            *row |= 1 << (c % 64);
        }
    }

    /// The 64 characters that differ from this one in the last byte alone.
    #[inline]
    fn row(&self, c: u32) -> u64 {
        self.0.get(c as usize / 64).copied().unwrap_or(0)
    }

    fn has(&self, c: u32) -> bool {
        self.row(c) >> (c % 64) & 1 == 1
    }
}

/// Characters beyond ASCII at both ends of which words end, whatever stands beside them.
#[derive(Default)]
pub struct Separators {
    /// Become white space, which is in no word.
    pub spaces: Set,
    /// Become a word, or some.
    pub alone: Set,
    /// Chinese characters become words, too.
    pub chinese: bool,
}

/// Those of which nothing has to be looked up, and which no stage for BERT changes but for the space around them.
const CHINESE: std::ops::RangeInclusive<u32> = 0x4e00..=0x9fff;

impl Separators {
    fn is_alone(&self, c: u32) -> bool {
        (self.chinese && CHINESE.contains(&c)) || self.alone.has(c)
    }

    /// Gives `visit` the words of a text.
    #[inline]
    pub fn words(&self, text: &[u8], mut visit: impl FnMut(usize, usize) -> Result<()>) -> Result<()> {
        #[cfg(target_arch = "x86_64")]
        if avx512::is_here() {
            let mut blocks = avx512::Blocks::default();
            let mut start = None;
            for base in (0..text.len()).step_by(64) {
                // SAFETY: the machine has AVX-512.
                let (mut starts, mut ends) = unsafe { blocks.next(self, text, base) };
                while ends != 0 {
                    let from = start.take().unwrap_or_else(|| {
                        let from = base + starts.trailing_zeros() as usize;
                        starts &= starts.wrapping_sub(1);
                        from
                    });
                    visit(from, base + ends.trailing_zeros() as usize)?;
                    ends &= ends - 1;
                }
                if starts != 0 {
                    start = Some(base + starts.trailing_zeros() as usize);
                }
            }
            return start.map_or(Ok(()), |start| visit(start, text.len()));
        }
        self.one_by_one(text, visit)
    }

    fn one_by_one(&self, text: &[u8], mut visit: impl FnMut(usize, usize) -> Result<()>) -> Result<()> {
        let (mut start, mut at) = (0, 0);
        while at < text.len() {
            let (c, len) = decode(&text[at..]).unwrap_or((0, 1));
            let is_space = matches!(c, 0x20 | 0x09 | 0x0a | 0x0d) || self.spaces.has(c);
            let is_mark = u8::try_from(c).is_ok_and(|byte| byte.is_ascii_punctuation());
            if is_space || is_mark || self.is_alone(c) {
                if start < at {
                    visit(start, at)?;
                }
                if !is_space {
                    visit(at, at + len)?;
                }
                start = at + len;
            }
            at += len;
        }
        if start < at {
            visit(start, at)?;
        }
        Ok(())
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::{
        __m512i, _mm512_cmpeq_epi8_mask, _mm512_cmplt_epi8_mask, _mm512_cmplt_epu8_mask, _mm512_maskz_loadu_epi8,
        _mm512_movepi8_mask, _mm512_movm_epi8, _mm512_permutexvar_epi8, _mm512_set1_epi8, _mm512_sub_epi8,
    };

    use super::{decode, Separators};

    pub fn is_here() -> bool {
        is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vbmi")
    }

    /// What the block in front reaches into the next one with.
    #[derive(Default)]
    pub struct Blocks {
        /// Bytes of white space, and last bytes of words that are one character.
        space: u64,
        last: u64,
        /// Whether the byte in front is in a word, and the last of one.
        in_word: u64,
        at_last: u64,
    }

    /// Bits moved up, and those that go beyond.
    fn up(bits: u64, by: usize) -> (u64, u64) {
        (bits << by, if by == 0 { 0 } else { bits >> (64 - by) })
    }

    impl Blocks {
        /// Where words start in the block at `base`, and where they end: places behind their last bytes.
        #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
        pub fn next(&mut self, separators: &Separators, text: &[u8], base: usize) -> (u64, u64) {
            let load = |from: usize| {
                let rest = text.get(from..).unwrap_or_default();
                let inside = if rest.len() < 64 { (1 << rest.len()) - 1 } else { u64::MAX };
                // SAFETY: only bytes of the text are read.
                (unsafe { _mm512_maskz_loadu_epi8(inside, rest.as_ptr().cast()) }, inside)
            };
            let (bytes, inside) = load(base);
            let of = |bytes: __m512i, byte: u8| _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(byte as i8));
            let within = |bytes: __m512i, first: u8, last: u8| {
                let moved = _mm512_sub_epi8(bytes, _mm512_set1_epi8(first as i8));
                _mm512_cmplt_epu8_mask(moved, _mm512_set1_epi8((last - first + 1) as i8))
            };
            let mut space = std::mem::take(&mut self.space);
            let mut last = std::mem::take(&mut self.last);
            space |= of(bytes, b' ') | of(bytes, b'\t') | of(bytes, b'\n') | of(bytes, b'\r');
            let marks = within(bytes, b'!', b'/')
                | within(bytes, b':', b'@')
                | within(bytes, b'[', b'`')
                | within(bytes, b'{', b'~');
            let (mut first, wide) = (marks, _mm512_movepi8_mask(bytes));
            last |= marks;
            if wide != 0 {
                let ((second, _), (third, _)) = (load(base + 1), load(base + 2));
                let is_behind = |bytes: __m512i| _mm512_cmplt_epi8_mask(bytes, _mm512_set1_epi8(-64));
                let mut rest = within(bytes, 0xC2, 0xEF);
                let mut add_alone = |starts: u64, len: usize| {
                    let (here, beyond) = up(starts, len - 1);
                    first |= starts;
                    last |= here;
                    self.last |= beyond;
                };
                if separators.chinese {
                    let starts = within(bytes, 0xE5, 0xE9) | of(bytes, 0xE4) & within(second, 0xB8, 0xBF);
                    let starts = starts & is_behind(second) & is_behind(third);
                    add_alone(starts, 3);
                    rest &= !starts;
                }
                while rest != 0 {
                    let at = base + rest.trailing_zeros() as usize;
                    let Some((c, len)) = decode(&text[at..]) else {
                        rest &= rest - 1;
                        continue;
                    };
                    // All that differ from it in the last byte alone.
                    let same = rest & of(bytes, text[at]);
                    let (same, last) = match len {
                        2 => (same, second),
                        _ => (same & of(second, text[at + 1]), third),
                    };
                    rest &= !same;
                    let (alone, spaces) = (separators.alone.row(c), separators.spaces.row(c));
                    if alone | spaces == 0 {
                        continue;
                    }
                    let starts = same & is_behind(last);
                    let in_set =
                        |row: u64| _mm512_movepi8_mask(_mm512_permutexvar_epi8(last, _mm512_movm_epi8(row))) & starts;
                    add_alone(in_set(alone), len);
                    let spaces = in_set(spaces);
                    for i in 0..len {
                        let (here, beyond) = up(spaces, i);
                        space |= here;
                        self.space |= beyond;
                    }
                }
            }
            let word = inside & !space;
            let before = word << 1 | self.in_word;
            let after_last = last << 1 | self.at_last;
            self.in_word = word >> 63;
            self.at_last = last >> 63;
            let ends = before & (!word | first | after_last);
            let starts = word & (!before | first | after_last);
            // What the end of the text ends is told there.
            (starts, ends & inside)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts of separators and letters of one to four bytes, of ASCII, and of bytes that are no characters.
    #[test]
    fn all_ways_find_the_same_words() {
        let mut state = 1u64;
        let mut random = |below: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u32 % below
        };
        for round in 0..20_000 {
            let mut separators = Separators { chinese: round % 2 == 0, ..Separators::default() };
            let bases: Vec<u32> = (0..3).map(|_| 0x80 + random(0xff00)).collect();
            for _ in 0..100 {
                separators.alone.add(bases[random(3) as usize] + random(70));
                separators.spaces.add(bases[random(3) as usize] + random(200));
            }
            // Nothing is both.
            separators.spaces.0.iter_mut().zip(separators.alone.0.iter()).for_each(|(spaces, alone)| *spaces &= !alone);
            (separators.alone.0[0], separators.alone.0[1], separators.spaces.0[0], separators.spaces.0[1]) =
                (0, 0, 0, 0);
            (CHINESE.start() / 64..=CHINESE.end() / 64).for_each(|row| separators.spaces.0[row as usize] = 0);
            let (mut text, kinds) = (Vec::new(), 1 + random(7));
            for _ in 0..random(120) {
                let c = match random(kinds) {
                    0 => b'a'.into(),
                    1 => bases[random(3) as usize] + random(70),
                    2 => random(0x80),
                    3 => 0x4d00 + random(0x5400),
                    4 => 0x1_f600,
                    5 => b' '.into(),
                    _ => random(0x11_0000),
                };
                let c = char::from_u32(c).unwrap_or('\u{fffd}');
                text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                match random(30) {
                    0 if round % 3 == 0 => text.push(random(256) as u8),
                    1 if round % 3 == 0 => drop(text.pop()),
                    _ => {}
                }
            }
            let (mut found, mut right) = (Vec::new(), Vec::new());
            let put = |to: &mut Vec<(usize, usize)>, word| {
                to.push(word);
                Ok(())
            };
            let done = separators.words(&text, |start, end| put(&mut found, (start, end)));
            let same = separators.one_by_one(&text, |start, end| put(&mut right, (start, end)));
            assert!(done.is_ok() && same.is_ok());
            assert_eq!(found, right, "{text:x?}");
        }
    }
}
