//! Looking up the short pieces of a batch: one after the other, or eight at once where there is AVX-512.
//!
//! Both do the same in two rounds. The first hashes all pieces and has the memory read ahead where they may be; the second
//! looks there.

use std::ops::Range;

use super::slots::{count, Key, Slots, ELSEWHERE, ID};
use super::{Output, FEW, ROOM, SHORT};
use crate::hash::key_of;
use crate::pipeline::BATCH;

/// Which pieces are not known, and how many ids those before each have.
type Missing = [(u32, u32); BATCH];

impl Slots<u128, FEW> {
    /// The first round: keys and hashes of the pieces, and a bit for each that is not short, which has neither.
    #[inline]
    pub fn look_ahead(
        &self,
        text: &[u8],
        bounds: &[(usize, usize)],
        keys: &mut [u128; BATCH],
        hashes: &mut [u64; BATCH],
    ) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if bounds.last().is_some_and(|&(start, _)| start + 16 <= text.len()) && avx512::is_here() {
            // SAFETY: the machine has AVX-512, and behind the start of the last piece are 16 bytes.
            return unsafe { avx512::look_ahead(self, text, bounds, keys, hashes) };
        }
        self.look_ahead_one_by_one(text, bounds, keys, hashes)
    }

    fn look_ahead_one_by_one(
        &self,
        text: &[u8],
        bounds: &[(usize, usize)],
        keys: &mut [u128; BATCH],
        hashes: &mut [u64; BATCH],
    ) -> u64 {
        let mut others = 0;
        for (i, ((&(start, end), key), hash)) in bounds.iter().zip(keys).zip(hashes).enumerate() {
            if end - start <= SHORT {
                *key = key_of(text, start, end);
                *hash = key.hash();
                self.prefetch(*hash);
            } else {
                others |= 1 << i;
            }
        }
        others
    }

    /// The second round for some of the short pieces: ids of what is known, and what is missing, behind those so far; how
    /// many they are then.
    #[inline]
    pub fn find<O: Output>(
        &self,
        range: Range<usize>,
        keys: &[u128; BATCH],
        hashes: &[u64; BATCH],
        room: (&mut [u32; ROOM], &mut Missing),
        so_far: (usize, usize),
    ) -> (usize, usize) {
        #[cfg(target_arch = "x86_64")]
        if avx512::is_here() {
            // SAFETY: the machine has AVX-512.
            return unsafe { avx512::find::<O>(self, range, keys, hashes, room, so_far) };
        }
        self.find_one_by_one::<O>(range, keys, hashes, room, so_far)
    }

    fn find_one_by_one<O: Output>(
        &self,
        range: Range<usize>,
        keys: &[u128; BATCH],
        hashes: &[u64; BATCH],
        (ids, missing): (&mut [u32; ROOM], &mut Missing),
        (mut len, mut missed): (usize, usize),
    ) -> (usize, usize) {
        for i in range {
            match self.first(keys[i], hashes[i]) {
                Some(known) => len += self.give::<O>(known, &mut ids[len..]),
                None => {
                    missing[missed] = (i as u32, len as u32);
                    missed += 1;
                }
            }
        }
        (len, missed)
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;
    use std::mem::offset_of;

    use super::*;
    use crate::cache::slots::{Bucket, FACTORS};

    pub fn is_here() -> bool {
        is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512dq")
    }

    /// Behind the start of every piece must be 16 bytes.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq")]
    pub unsafe fn look_ahead(
        slots: &Slots<u128, FEW>,
        text: &[u8],
        bounds: &[(usize, usize)],
        keys: &mut [u128; BATCH],
        hashes: &mut [u64; BATCH],
    ) -> u64 {
        // A pair is two words, the start first.
        const {
            assert!(
                offset_of!((usize, usize), 0) == 0 && offset_of!((usize, usize), 1) == 8 && size_of::<usize>() == 8
            );
        }
        let even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
        let odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
        let numbers = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
        let factors = FACTORS.map(|factor| _mm512_set1_epi64(factor as i64));
        let mask = _mm512_set1_epi64(slots.buckets.len() as i64 - 1);
        let mut others = 0;
        let groups = bounds.chunks(8).zip(keys.chunks_exact_mut(8)).zip(hashes.chunks_exact_mut(8));
        for (group, ((bounds, keys), hashes)) in groups.enumerate() {
            let mut padded = [(0, 0); 8];
            let bounds: &[_; 8] = bounds.first_chunk().unwrap_or_else(|| {
                padded[..bounds.len()].copy_from_slice(bounds);
                &padded
            });
            // SAFETY: eight pairs are read, that are there.
            let (first, second) = unsafe {
                let pairs = bounds.as_ptr().cast::<__m512i>();
                (_mm512_loadu_si512(pairs), _mm512_loadu_si512(pairs.add(1)))
            };
            let (starts, ends) =
                (_mm512_permutex2var_epi64(first, even, second), _mm512_permutex2var_epi64(first, odd, second));
            let lens = _mm512_sub_epi64(ends, starts);
            let is_other = _mm512_cmpgt_epu64_mask(lens, _mm512_set1_epi64(SHORT as i64));
            others |= u64::from(is_other) << (8 * group);
            // The keys of four pieces, the length of each of which is in all bytes of its quarter.
            let four = |i: usize, lens: __m512i| {
                // SAFETY: the caller promises that the text has the 16 bytes that are read.
                let at = |i: usize| unsafe { _mm_loadu_si128(text.as_ptr().add(bounds[i].0).cast()) };
                let bytes = _mm512_castsi128_si512(at(i));
                let bytes = _mm512_inserti32x4::<1>(bytes, at(i + 1));
                let bytes = _mm512_inserti32x4::<2>(bytes, at(i + 2));
                let bytes = _mm512_inserti32x4::<3>(bytes, at(i + 3));
                let kept = _mm512_maskz_mov_epi8(_mm512_cmplt_epu8_mask(numbers, lens), bytes);
                _mm512_mask_mov_epi8(kept, 1 << 15 | 1 << 31 | 1 << 47 | 1 << 63, lens)
            };
            let everywhere =
                |places: __m512i| _mm512_shuffle_epi8(_mm512_permutexvar_epi64(places, lens), _mm512_setzero_si512());
            let low = four(0, everywhere(_mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3)));
            let high = four(4, everywhere(_mm512_setr_epi64(4, 4, 5, 5, 6, 6, 7, 7)));
            let (heads, tails) =
                (_mm512_permutex2var_epi64(low, even, high), _mm512_permutex2var_epi64(low, odd, high));
            // As `Key::hash` does.
            let both = _mm512_xor_si512(_mm512_mullo_epi64(heads, factors[0]), _mm512_mullo_epi64(tails, factors[1]));
            let mixed = _mm512_mullo_epi64(_mm512_xor_si512(both, _mm512_srli_epi64::<32>(both)), factors[2]);
            let hash = _mm512_xor_si512(mixed, _mm512_srli_epi64::<32>(mixed));
            let mut places = [0u64; 8];
            // SAFETY: there is room for what is written: eight keys, eight hashes, eight places.
            unsafe {
                let keys = keys.as_mut_ptr().cast::<__m512i>();
                _mm512_storeu_si512(keys, low);
                _mm512_storeu_si512(keys.add(1), high);
                _mm512_storeu_si512(hashes.as_mut_ptr().cast(), hash);
                _mm512_storeu_si512(places.as_mut_ptr().cast(), _mm512_and_si512(hash, mask));
            }
            for place in places {
                _mm_prefetch::<_MM_HINT_T0>(slots.buckets.as_ptr().wrapping_add(place as usize).cast());
            }
        }
        others
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq")]
    pub fn find<O: Output>(
        slots: &Slots<u128, FEW>,
        range: Range<usize>,
        keys: &[u128; BATCH],
        hashes: &[u64; BATCH],
        (ids, missing): (&mut [u32; ROOM], &mut Missing),
        (mut len, mut missed): (usize, usize),
    ) -> (usize, usize) {
        const {
            assert!(offset_of!(Bucket<u128, FEW>, keys) == 0 && FEW == 4);
        }
        let kept = _mm_setr_epi32(ID as i32, -1, -1, -1);
        let first = range.start;
        let keys = keys[range.clone()].iter();
        for (i, (key, &hash)) in keys.zip(&hashes[range]).enumerate() {
            let bucket = &slots.buckets[slots.at(hash)];
            // SAFETY: one key is read, and the two of the bucket.
            let same = unsafe {
                let key = _mm256_broadcastsi128_si256(_mm_loadu_si128(std::ptr::from_ref(key).cast()));
                _mm256_cmpeq_epi64(_mm256_loadu_si256(bucket.keys.as_ptr().cast()), key)
            };
            // Two bits for each of them.
            let same = _mm256_movemask_pd(_mm256_castsi256_pd(same)) as usize;
            let same = same & same >> 1 & 0b101;
            if same == 0 {
                missing[missed] = ((first + i) as u32, len as u32);
                missed += 1;
                continue;
            }
            let known = &bucket.ids.as_flattened()[same & 4..][..4];
            if known[0] >= ELSEWHERE {
                len += slots.give_from_elsewhere::<O>(known, &mut ids[len..]);
                continue;
            }
            if O::KEEPS {
                if let Some(place) = ids.get_mut(len..len + 4) {
                    // SAFETY: four ids are read and written.
                    unsafe {
                        let known = _mm_and_si128(_mm_loadu_si128(known.as_ptr().cast()), kept);
                        _mm_storeu_si128(place.as_mut_ptr().cast(), known);
                    }
                }
            }
            len += count(known[0]);
        }
        (len, missed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Count;

    /// A table half of whose pieces are known, in both places of their buckets.
    #[test]
    fn both_ways_find_the_same() {
        let mut slots = Slots::<u128, FEW>::default();
        let mut state = 1u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        for round in 0..3000 {
            let text: Vec<u8> = (0..600).map(|_| [0, b'a', b'b', 255][random(4)]).collect();
            let (mut bounds, mut at) = (Vec::new(), random(40));
            for _ in 0..random(BATCH + 1) {
                let len = 1 + [random(3), random(3), random(SHORT), random(40)][random(4)];
                bounds.push((at, at + len));
                at += len + random(2);
            }
            let text = &text[..(at + if round % 2 == 0 { 16 } else { 0 }).min(600)];
            bounds.retain(|&(_, end)| end <= text.len());
            let (mut keys, mut hashes) = ([0; BATCH], [0; BATCH]);
            let others = slots.look_ahead(text, &bounds, &mut keys, &mut hashes);
            let (mut same_keys, mut same_hashes) = ([0; BATCH], [0; BATCH]);
            assert_eq!(others, slots.look_ahead_one_by_one(text, &bounds, &mut same_keys, &mut same_hashes));
            for i in (0..bounds.len()).filter(|i| others >> i & 1 == 0) {
                assert_eq!((keys[i], hashes[i]), (same_keys[i], same_hashes[i]));
            }
            let runs = (0..bounds.len()).filter(|i| others >> i & 1 != 0).chain([bounds.len()]);
            let ((mut ids, mut missing), (mut same_ids, mut same_missing)) =
                (([7; ROOM], [(0, 0); BATCH]), ([8; ROOM], [(0, 0); BATCH]));
            let ((mut so_far, mut same_so_far), mut counted, mut at) = (((0, 0), (0, 0)), (0, 0), 0);
            for end in runs {
                so_far = slots.find::<Vec<u32>>(at..end, &keys, &hashes, (&mut ids, &mut missing), so_far);
                let room = (&mut same_ids, &mut same_missing);
                same_so_far = slots.find_one_by_one::<Vec<u32>>(at..end, &keys, &hashes, room, same_so_far);
                let room = (&mut [0; ROOM], &mut [(0, 0); BATCH]);
                counted = slots.find::<Count>(at..end, &keys, &hashes, room, counted);
                at = end + 1;
            }
            assert!(so_far == same_so_far && so_far == counted, "{so_far:?}");
            assert_eq!((&ids[..so_far.0], &missing[..so_far.1]), (&same_ids[..so_far.0], &same_missing[..so_far.1]));
            for &(i, _) in &missing[..so_far.1] {
                let (key, hash) = (keys[i as usize], hashes[i as usize]);
                if others >> i & 1 == 0 && random(2) == 0 {
                    slots.add(key, hash, &vec![hash as u32 & ID; 1 + key as usize % 7]);
                }
            }
        }
    }
}
