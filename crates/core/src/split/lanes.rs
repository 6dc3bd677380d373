//! The words of a map that are worked on at once: one, or eight where there is AVX-512.

use std::ops::{BitAnd, BitOr, Not};

use super::masks::Map;

pub trait Lanes: Copy + BitAnd<Output = Self> + BitOr<Output = Self> + Not<Output = Self> {
    /// How many words.
    const COUNT: usize;

    /// Those of a map from `word` on.
    fn of(map: &Map, word: usize) -> Self;

    /// Puts them there.
    fn put(self, map: &mut Map, word: usize);

    /// Words of a map moved so that each bit is that of the byte before, or `BY` bytes before.
    fn before<const BY: u32>(map: &Map, word: usize) -> Self;

    /// The same for a byte behind.
    fn after<const BY: u32>(map: &Map, word: usize) -> Self;

    /// As `before`, by one byte, for bits that are in no map: `carry` is the last of those before them, and becomes theirs.
    fn carried(self, carry: &mut u64) -> Self;

    /// The runs of these bits from these places on, or from the start if `carry` is 1: they go on from the words before.
    fn runs(self, starts: Self, carry: u64) -> Self;

    /// These starts of runs and every third place behind them that is in `fourth`: no run goes on for three places before
    /// a place that is not. `carry` is the three last of the words before, and becomes those of these.
    fn every_third(self, fourth: Self, carry: &mut u64) -> Self;
}

impl Lanes for u64 {
    const COUNT: usize = 1;

    #[inline(always)]
    fn of(map: &Map, word: usize) -> Self {
        map[word]
    }

    #[inline(always)]
    fn put(self, map: &mut Map, word: usize) {
        map[word] = self;
    }

    #[inline(always)]
    fn before<const BY: u32>(map: &Map, word: usize) -> Self {
        let previous = if word == 0 { 0 } else { map[word - 1] };
        map[word] << BY | previous >> (64 - BY)
    }

    #[inline(always)]
    fn after<const BY: u32>(map: &Map, word: usize) -> Self {
        map[word] >> BY | map[word + 1] << (64 - BY)
    }

    #[inline(always)]
    fn carried(self, carry: &mut u64) -> Self {
        let previous = std::mem::replace(carry, self >> 63);
        self << 1 | previous
    }

    #[inline(always)]
    fn runs(self, starts: Self, carry: u64) -> Self {
        let starts = (starts | carry) & self;
        self & !self.wrapping_add(starts) | starts
    }

    #[inline(always)]
    fn every_third(self, fourth: Self, carry: &mut u64) -> Self {
        let (mut all, mut next) = (self, (self << 3 | *carry) & fourth);
        while next != 0 {
            all |= next;
            next = next << 3 & fourth;
        }
        *carry = all >> 61;
        all
    }
}

#[cfg(target_arch = "x86_64")]
pub use avx512::Eight;

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::{
        __m512i, _mm512_alignr_epi64, _mm512_and_si512, _mm512_loadu_si512, _mm512_or_si512, _mm512_set1_epi64,
        _mm512_slli_epi64, _mm512_srli_epi64, _mm512_storeu_si512, _mm512_test_epi64_mask, _mm512_xor_si512,
    };
    use std::mem::transmute;

    use super::{BitAnd, BitOr, Lanes, Map, Not};
    use crate::split::masks::WORDS;

    const COUNT: usize = 8;
    const _: () = assert!(WORDS.is_multiple_of(COUNT));

    /// There is none where there is no AVX-512, which is why all of this is safe.
    #[derive(Clone, Copy)]
    pub struct Eight(__m512i);

    /// As `unsafe` as the instructions in it, of which there are those that `Eight` promises.
    macro_rules! on_this_machine {
        ($work:expr) => {
            // SAFETY: only code that runs where there is AVX-512 has anything to do with `Eight`, see `bounds::find`.
            unsafe { $work }
        };
    }

    impl Eight {
        #[inline(always)]
        fn words(self) -> [u64; COUNT] {
            // SAFETY: both are 64 bytes that may hold anything.
            unsafe { transmute(self.0) }
        }

        #[inline(always)]
        fn from_words(words: [u64; COUNT]) -> Self {
            // SAFETY: as above.
            Self(unsafe { transmute::<[u64; COUNT], __m512i>(words) })
        }

        /// All words moved by one place, behind the last of those before.
        #[inline(always)]
        fn behind(self, before: Self) -> Self {
            Self(on_this_machine!(_mm512_alignr_epi64::<7>(self.0, before.0)))
        }

        #[inline(always)]
        fn all(bits: u64) -> Self {
            Self(on_this_machine!(_mm512_set1_epi64(bits as i64)))
        }

        #[inline(always)]
        fn up<const BY: u32>(self) -> Self {
            Self(on_this_machine!(_mm512_slli_epi64::<BY>(self.0)))
        }

        #[inline(always)]
        fn down(self, by: u32) -> Self {
            Self(on_this_machine!(match by {
                1 => _mm512_srli_epi64::<1>(self.0),
                2 => _mm512_srli_epi64::<2>(self.0),
                61 => _mm512_srli_epi64::<61>(self.0),
                62 => _mm512_srli_epi64::<62>(self.0),
                _ => _mm512_srli_epi64::<63>(self.0),
            }))
        }
    }

    impl BitAnd for Eight {
        type Output = Self;

        #[inline(always)]
        fn bitand(self, other: Self) -> Self {
            Self(on_this_machine!(_mm512_and_si512(self.0, other.0)))
        }
    }

    impl BitOr for Eight {
        type Output = Self;

        #[inline(always)]
        fn bitor(self, other: Self) -> Self {
            Self(on_this_machine!(_mm512_or_si512(self.0, other.0)))
        }
    }

    impl Not for Eight {
        type Output = Self;

        #[inline(always)]
        fn not(self) -> Self {
            Self(on_this_machine!(_mm512_xor_si512(self.0, Self::all(u64::MAX).0)))
        }
    }

    impl Lanes for Eight {
        const COUNT: usize = COUNT;

        #[inline(always)]
        fn of(map: &Map, word: usize) -> Self {
            let words: &[u64; COUNT] = map[word..].first_chunk().unwrap_or(&[0; COUNT]);
            Self(on_this_machine!(_mm512_loadu_si512(words.as_ptr().cast::<__m512i>())))
        }

        #[inline(always)]
        fn put(self, map: &mut Map, word: usize) {
            if let Some(words) = map[word..].first_chunk_mut::<COUNT>() {
                on_this_machine!(_mm512_storeu_si512(words.as_mut_ptr().cast::<__m512i>(), self.0));
            }
        }

        #[inline(always)]
        fn before<const BY: u32>(map: &Map, word: usize) -> Self {
            let here = Self::of(map, word);
            let previous = if word == 0 { here.behind(Self::all(0)) } else { Self::of(map, word - 1) };
            here.up::<BY>() | previous.down(64 - BY)
        }

        #[inline(always)]
        fn after<const BY: u32>(map: &Map, word: usize) -> Self {
            let next = Self::of(map, word + 1);
            let next = if BY == 1 { next.up::<63>() } else { next.up::<62>() };
            Self::of(map, word).down(BY) | next
        }

        #[inline(always)]
        fn carried(self, carry: &mut u64) -> Self {
            let last = self.down(63);
            let previous = last.behind(Self::all(std::mem::replace(carry, last.words()[COUNT - 1])));
            self.up::<1>() | previous
        }

        #[inline(always)]
        fn runs(self, starts: Self, mut carry: u64) -> Self {
            if carry == 0 && on_this_machine!(_mm512_test_epi64_mask(self.0, starts.0)) == 0 {
                return Self::all(0);
            }
            let (mut found, starts) = (self.words(), starts.words());
            for (bits, starts) in found.iter_mut().zip(starts) {
                *bits = bits.runs(starts, carry);
                carry = *bits >> 63;
            }
            Self::from_words(found)
        }

        #[inline(always)]
        fn every_third(self, fourth: Self, carry: &mut u64) -> Self {
            if on_this_machine!(_mm512_test_epi64_mask(fourth.0, fourth.0)) == 0 {
                *carry = self.words()[COUNT - 1] >> 61;
                return self;
            }
            let (mut all, fourth) = (self.words(), fourth.words());
            for (starts, fourth) in all.iter_mut().zip(fourth) {
                *starts = starts.every_third(fourth, carry);
            }
            Self::from_words(all)
        }
    }
}
