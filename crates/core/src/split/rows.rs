//! Characters beyond ASCII by rows of 64 code points: those that differ in the last byte alone have their classes side by
//! side in the table, so that one instruction looks up all of them that stand in a block. Most alphabets are in two or
//! three rows.

use std::arch::x86_64::{
    __m512i, _mm512_cmpeq_epi8_mask, _mm512_cmplt_epi8_mask, _mm512_loadu_si512, _mm512_mask_test_epi8_mask,
    _mm512_permutexvar_epi8, _mm512_set1_epi8,
};

use super::masks::{IN_LOWER, IN_UPPER};
use crate::unicode::{classes_beside, decode, LETTER, NUMBER, SPACE};

/// The bits of the characters that were looked up, and what they are.
#[derive(Default)]
pub struct Found {
    pub letter: u64,
    pub number: u64,
    pub space: u64,
    pub upper: u64,
    pub lower: u64,
    /// What is left: characters that end behind the block.
    pub rest: u64,
}

pub fn are_here() -> bool {
    is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vbmi")
}

/// Looks up the characters of the block at the start of `text` whose bytes are `bits`.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub fn look_up(text: &[u8], mut bits: u64) -> Found {
    let mut found = Found::default();
    let Some(block) = text.first_chunk::<64>() else { return Found { rest: bits, ..found } };
    // SAFETY: the block has the 64 bytes that are read.
    let bytes = unsafe { _mm512_loadu_si512(block.as_ptr().cast::<__m512i>()) };
    let is = |byte: u8| _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(byte as i8));
    let behind = _mm512_cmplt_epi8_mask(bytes, _mm512_set1_epi8(-64));
    while bits != 0 {
        let at = bits.trailing_zeros() as usize;
        let Some((cp, size)) = decode(&text[at..]) else {
            bits &= bits - 1; // no character, and of no class
            continue;
        };
        if at + size > 64 {
            found.rest = bits;
            break;
        }
        // All that start with the same bytes, but for the last.
        let starts = (1..size).fold(bits, |starts, i| starts & is(block[at + i - 1]) >> (i - 1));
        let ends = starts << (size - 1) & behind;
        let all_bytes = |ends: u64| (1..size).fold(ends, |bytes, i| bytes | ends >> i);
        // SAFETY: a row has the 64 bytes that are read.
        let row = unsafe { _mm512_loadu_si512(classes_beside(cp).as_ptr().cast::<__m512i>()) };
        let classes = _mm512_permutexvar_epi8(bytes, row);
        let of = |flags: u8| all_bytes(_mm512_mask_test_epi8_mask(ends, classes, _mm512_set1_epi8(flags as i8)));
        found.letter |= of(LETTER);
        found.number |= of(NUMBER);
        found.space |= of(SPACE);
        found.upper |= of(IN_UPPER);
        found.lower |= of(IN_LOWER);
        bits &= !all_bytes(ends);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unicode::class_at;

    /// Blocks of characters of a few rows, of any, and of bytes that are none.
    #[test]
    fn rows_are_what_the_class_table_says() {
        if !are_here() {
            return;
        }
        let mut state = 1u64;
        let mut random = |below: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u32 % below
        };
        for round in 0..40_000 {
            let (mut text, base) = (Vec::new(), random(0x11_0000));
            while text.len() < 64 {
                let cp = match random(8) {
                    0 => random(0x11_0000),
                    1 => random(0x80),
                    _ => base / 64 * 64 + random(100),
                };
                let c = char::from_u32(cp).unwrap_or('\u{fffd}');
                text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                if round % 5 == 0 && random(6) == 0 {
                    text.push(random(256) as u8);
                }
                if round % 7 == 0 && random(6) == 0 {
                    text.pop();
                }
            }
            text.truncate(64 + random(3) as usize);
            let wide = text[..64].iter().enumerate().fold(0, |bits, (i, byte)| bits | u64::from(!byte.is_ascii()) << i);
            // SAFETY: `are_here` says that the machine has what it takes.
            let found = unsafe { look_up(&text, wide) };
            let (mut right, mut at) = (Found::default(), 0);
            while at < 64 {
                let (class, size) = class_at(&text, at);
                if at + size > 64 {
                    right.rest = u64::MAX << at;
                    break;
                }
                let of = |flags: u8| if class & flags != 0 { ((1u64 << size) - 1) << at } else { 0 } & wide;
                right.letter |= of(LETTER);
                right.number |= of(NUMBER);
                right.space |= of(SPACE);
                right.upper |= of(IN_UPPER);
                right.lower |= of(IN_LOWER);
                at += size;
            }
            let all =
                |found: &Found| [found.letter, found.number, found.space, found.upper, found.lower, found.rest & wide];
            assert_eq!(all(&found), all(&right), "{text:x?}");
        }
    }
}
