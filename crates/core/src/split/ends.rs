//! Where pieces end, out of the set bits of a word: eight at a time where there is AVX-512.

use crate::error::Result;

/// What is done with the pieces of a text.
pub trait Visit {
    fn piece(&mut self, start: usize, end: usize) -> Result<()>;

    /// The same for the piece that starts at `start` and those behind it, which end where `bits` are set, counted from
    /// `base`. The end of the last one.
    #[inline]
    fn pieces(&mut self, base: usize, mut bits: u64, mut start: usize) -> Result<usize> {
        while bits != 0 {
            let end = base + bits.trailing_zeros() as usize;
            self.piece(start, end)?;
            start = end;
            bits &= bits - 1;
        }
        Ok(start)
    }
}

impl<F: FnMut(usize, usize) -> Result<()>> Visit for F {
    #[inline]
    fn piece(&mut self, start: usize, end: usize) -> Result<()> {
        self(start, end)
    }
}

/// `put` writes so many pieces at least, whatever they are.
pub const AT_LEAST: usize = 16;

/// Puts the pieces of `Visit::pieces` at the start of `out`, which must have room for them and for `AT_LEAST`.
#[inline]
pub fn put(base: usize, bits: u64, start: usize, out: &mut [(usize, usize)]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512vbmi2") && is_x86_feature_detected!("avx512bw") {
        // SAFETY: the machine has AVX-512.
        return unsafe { put_by_avx512(base, bits, start, out) };
    }
    put_one_by_one(base, bits, start, out);
}

fn put_one_by_one(base: usize, mut bits: u64, mut start: usize, out: &mut [(usize, usize)]) {
    for place in &mut out[..bits.count_ones() as usize] {
        let end = base + bits.trailing_zeros() as usize;
        *place = (start, end);
        start = end;
        bits &= bits - 1;
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
fn put_by_avx512(base: usize, bits: u64, start: usize, out: &mut [(usize, usize)]) {
    use std::mem::offset_of;

    use std::arch::x86_64::{
        __m128i, __m512i, _mm512_add_epi64, _mm512_alignr_epi64, _mm512_cvtepu8_epi64, _mm512_loadu_si512,
        _mm512_maskz_compress_epi8, _mm512_permutex2var_epi64, _mm512_set1_epi64, _mm512_setr_epi64,
        _mm512_storeu_si512, _mm_loadl_epi64,
    };
    // A pair is two words, the start first.
    const {
        assert!(offset_of!((usize, usize), 0) == 0 && offset_of!((usize, usize), 1) == 8 && size_of::<usize>() == 8);
    }
    const PLACES: [u8; 64] = {
        let (mut places, mut i) = ([0; 64], 0);
        while i < 64 {
            places[i] = i as u8;
            i += 1;
        }
        places
    };
    let groups = (bits.count_ones() as usize).div_ceil(8).max(AT_LEAST / 8);
    let out = &mut out[..groups * 8];
    let mut places = [0u8; 64];
    // SAFETY: 64 bytes are read and written that are there.
    unsafe {
        let all = _mm512_loadu_si512(PLACES.as_ptr().cast::<__m512i>());
        _mm512_storeu_si512(places.as_mut_ptr().cast::<__m512i>(), _mm512_maskz_compress_epi8(bits, all));
    }
    let (first, second) = (_mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15));
    let base = _mm512_set1_epi64(base as i64);
    let mut before = _mm512_set1_epi64(start as i64);
    for (places, out) in places.chunks_exact(8).zip(out.chunks_exact_mut(8)) {
        // SAFETY: there are eight bytes in a chunk of places, and eight pairs of 64-bit words in one of pieces.
        unsafe {
            let eight = _mm_loadl_epi64(places.as_ptr().cast::<__m128i>());
            let ends = _mm512_add_epi64(_mm512_cvtepu8_epi64(eight), base);
            let starts = _mm512_alignr_epi64::<7>(ends, before);
            let out = out.as_mut_ptr().cast::<__m512i>();
            _mm512_storeu_si512(out, _mm512_permutex2var_epi64(starts, first, ends));
            _mm512_storeu_si512(out.add(1), _mm512_permutex2var_epi64(starts, second, ends));
            before = ends;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ways_to_find_the_ends_agree() {
        let mut state = 1u64;
        for round in 0..2000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let bits = match round % 4 {
                0 => state,
                1 => state & state >> 7,
                2 => state | state >> 9,
                _ => [0, u64::MAX, 1, 1 << 63][round / 4 % 4],
            };
            let (base, start) = (round * 64, round * 64 - (round % 3).min(round * 64));
            let (mut visited, mut written) = (Vec::new(), [(1, 1); 64 + AT_LEAST]);
            let mut visit = |start, end| {
                visited.push((start, end));
                Ok(())
            };
            let last = visit.pieces(base, bits, start).unwrap_or_default();
            assert_eq!(last, visited.last().map_or(start, |piece| piece.1));
            put(base, bits, start, &mut written);
            assert_eq!(written[..visited.len()], visited[..]);
            put_one_by_one(base, bits, start, &mut written);
            assert_eq!(written[..visited.len()], visited[..]);
        }
    }
}
