//! Classes of all characters in a window of text, as bitmaps: a bit for each byte, and all bytes of a character have the
//! bits of its classes. Where a run of characters ends is then a count of bits, however long it is.
//!
//! ASCII and the commonest letters without case are classified 64 bytes at a time where there is AVX-512, 16 where there is
//! SSE2, which every x86-64 machine has, and byte by byte elsewhere; all other characters by rows of the class table
//! (`rows.rs`), or one by one.

#[cfg(target_arch = "x86_64")]
use super::rows;
use crate::unicode::{wide_class_at, CASELESS, LETTER, LOWER, MARK, NUMBER, SPACE, UPPER};

/// Bytes in a window.
pub const WINDOW: usize = 64 * WORDS;
pub const WORDS: usize = 64;
/// A scanner looks at no more bytes behind a place that it comes to.
const LOOK: usize = 8;

pub const IN_UPPER: u8 = UPPER | CASELESS | MARK;
pub const IN_LOWER: u8 = LOWER | CASELESS | MARK;

/// A bit for each byte of the window. Of two words more the first is always 0, so that runs end.
pub type Map = [u64; WORDS + 2];

pub struct Masks {
    pub letter: Map,
    pub number: Map,
    pub space: Map,
    /// `[^\s\p{L}\p{N}]`
    pub other: Map,
    /// `\r` and `\n`
    pub newline: Map,
    /// `\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}`, what may come before lower-case letters in a word.
    pub upper: Map,
    /// `\p{Ll}\p{Lm}\p{Lo}\p{M}`
    pub lower: Map,
    /// `' '`, `'\''` and `'/'`
    pub blank: Map,
    pub quote: Map,
    pub slash: Map,
    /// What is no ASCII.
    pub wide: Map,
    /// Runs that reach this far may go on in the text behind the window.
    pub known: usize,
}

/// A macro, because the two functions it is in are compiled for different machines.
macro_rules! classify {
    ($masks:expr, $text:expr, $ascii:path) => {
        for (word, block) in $text.chunks(64).enumerate() {
            let found = match block.first_chunk::<64>() {
                Some(block) => $ascii(block),
                None => {
                    let mut padded = [0; 64];
                    padded[..block.len()].copy_from_slice(block);
                    $ascii(&padded)
                }
            };
            $masks.letter[word] = found.upper | found.lower;
            $masks.number[word] = found.number;
            $masks.space[word] = found.space;
            $masks.newline[word] = found.newline;
            $masks.upper[word] = found.upper;
            $masks.lower[word] = found.lower;
            $masks.blank[word] = found.blank;
            $masks.quote[word] = found.quote;
            $masks.slash[word] = found.slash;
            $masks.wide[word] = found.wide;
        }
    };
}

impl Masks {
    pub(super) const fn new() -> Self {
        const NONE: Map = [0; WORDS + 2];
        let [letter, number, space, other, newline, upper, lower, blank, quote, slash, wide] = [NONE; 11];
        Self { letter, number, space, other, newline, upper, lower, blank, quote, slash, wide, known: 0 }
    }

    /// Fills the maps for the first `WINDOW` bytes of `text`; a few bytes beyond its end no bit is set.
    pub fn fill(&mut self, text: &[u8]) {
        let len = text.len().min(WINDOW);
        let words = len.div_ceil(64);
        // No run goes on there, and a character that starts in the window may end there.
        for map in self.maps() {
            map[words..words + 2].fill(0);
        }
        self.classify(&text[..len]);
        self.known = if text.len() > WINDOW { WINDOW - LOOK } else { usize::MAX };
        let mut done = 0;
        for word in 0..words {
            let wide = self.wide[word];
            if wide != 0 {
                let letters = text[word * 64..].first_chunk().map_or(0, caseless_letters);
                self.letter[word] |= letters;
                self.upper[word] |= letters;
                self.lower[word] |= letters;
                done = self.fill_wide(text, word, wide & !letters, done);
            }
        }
        for word in 0..words {
            let inside = u64::MAX >> (64 - (len - word * 64).min(64));
            self.other[word] = inside & !(self.letter[word] | self.number[word] | self.space[word]);
        }
    }

    /// Fills in what the class table is not needed for.
    fn classify(&mut self, text: &[u8]) {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx512bw") {
            // SAFETY: the machine has AVX-512.
            return unsafe { self.classify_by_avx512(text) };
        }
        classify!(self, text, ascii);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn classify_by_avx512(&mut self, text: &[u8]) {
        classify!(self, text, ascii_by_avx512);
    }

    fn maps(&mut self) -> [&mut Map; 11] {
        let Self { letter, number, space, other, newline, upper, lower, blank, quote, slash, wide, known: _ } = self;
        [letter, number, space, other, newline, upper, lower, blank, quote, slash, wide]
    }

    /// The same for the characters beyond ASCII that start in a word, but for what is `done`.
    fn fill_wide(&mut self, text: &[u8], word: usize, mut bits: u64, mut done: usize) -> usize {
        let start = word * 64;
        if done > start {
            bits &= u64::MAX << (done - start);
        }
        #[cfg(target_arch = "x86_64")]
        if rows::are_here() {
            // SAFETY: the machine has AVX-512.
            let found = unsafe { rows::look_up(&text[start..], bits) };
            self.letter[word] |= found.letter;
            self.number[word] |= found.number;
            self.space[word] |= found.space;
            self.upper[word] |= found.upper;
            self.lower[word] |= found.lower;
            bits = found.rest;
        }
        // Letters and marks take turns in many scripts: so nothing branches on which it is.
        let (mut letter, mut upper, mut lower) = (0, 0, 0);
        while bits != 0 {
            let bit = bits.trailing_zeros() as usize;
            let (class, size) = wide_class_at(text, start + bit);
            done = start + bit + size;
            if bit + size > 64 || class & (NUMBER | SPACE) != 0 {
                self.put(word, class, ((1 << size) - 1) << bit);
            } else {
                let these = ((1u64 << size) - 1) << bit;
                let of = |flags: u8| these & u64::from(class & flags != 0).wrapping_neg();
                letter |= of(LETTER);
                upper |= of(IN_UPPER);
                lower |= of(IN_LOWER);
            }
            if bit + size >= 64 {
                break;
            }
            bits &= u64::MAX << (bit + size);
        }
        self.letter[word] |= letter;
        self.upper[word] |= upper;
        self.lower[word] |= lower;
        done
    }

    fn put(&mut self, word: usize, class: u8, bits: u128) {
        let (here, next) = (bits as u64, (bits >> 64) as u64);
        let set = |map: &mut Map, flags: u8| {
            let is = u64::from(class & flags != 0).wrapping_neg();
            map[word] |= here & is;
            map[word + 1] |= next & is;
        };
        set(&mut self.letter, LETTER);
        set(&mut self.number, NUMBER);
        set(&mut self.space, SPACE);
        set(&mut self.upper, IN_UPPER);
        set(&mut self.lower, IN_LOWER);
    }
}

/// Whether the bit of a byte is set.
#[inline]
pub fn has(map: &Map, at: usize) -> bool {
    map[at / 64] >> (at % 64) & 1 != 0
}

/// The end of the run of set bits from `at`.
#[inline]
pub fn run(map: &Map, at: usize) -> usize {
    let mut word = at / 64;
    // 64 bits from there on, of two words: nearly always enough, and without a question which word the end is in.
    let rest = !(((u128::from(map[word + 1]) << 64 | u128::from(map[word])) >> (at % 64)) as u64);
    if rest != 0 {
        return at + rest.trailing_zeros() as usize;
    }
    loop {
        word += 1;
        let rest = !map[word];
        if rest != 0 {
            return word * 64 + rest.trailing_zeros() as usize;
        }
    }
}

/// The first set bit from `at` on.
#[inline]
pub fn next(map: &Map, at: usize) -> usize {
    let mut word = at / 64;
    let mut bits = map.get(word).map_or(0, |bits| bits & u64::MAX << (at % 64));
    while bits == 0 {
        word += 1;
        match map.get(word) {
            Some(next) => bits = *next,
            None => return usize::MAX,
        }
    }
    word * 64 + bits.trailing_zeros() as usize
}

/// Behind the last set bit in `from..to`, if there is one.
#[inline]
pub fn last(from: usize, to: usize, word_of: impl Fn(usize) -> u64) -> Option<usize> {
    let mut word = to / 64;
    let mut bits = word_of(word) & ((1u64 << (to % 64)) - 1);
    loop {
        if bits != 0 {
            let end = word * 64 + 64 - bits.leading_zeros() as usize;
            return (end > from).then_some(end);
        }
        if word * 64 <= from {
            return None;
        }
        word -= 1;
        bits = word_of(word);
    }
}

/// A bit for each of 64 bytes; `wide` for those that are no ASCII, which have none of the others.
#[derive(Debug, Default, PartialEq, Eq)]
struct Ascii {
    upper: u64,
    lower: u64,
    number: u64,
    space: u64,
    newline: u64,
    blank: u64,
    quote: u64,
    slash: u64,
    wide: u64,
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn ascii_by_avx512(block: &[u8; 64]) -> Ascii {
    use std::arch::x86_64::{
        __m512i, _mm512_cmpeq_epi8_mask, _mm512_cmplt_epu8_mask, _mm512_loadu_si512, _mm512_movepi8_mask,
        _mm512_set1_epi8, _mm512_sub_epi8,
    };
    // SAFETY: the block has the 64 bytes that are read.
    let bytes = unsafe { _mm512_loadu_si512(block.as_ptr().cast::<__m512i>()) };
    let set = |byte: u8| _mm512_set1_epi8(byte as i8);
    let range = |first: u8, count: u8| _mm512_cmplt_epu8_mask(_mm512_sub_epi8(bytes, set(first)), set(count));
    let is = |byte: u8| _mm512_cmpeq_epi8_mask(bytes, set(byte));
    let blank = is(b' ');
    Ascii {
        upper: range(b'A', 26),
        lower: range(b'a', 26),
        number: range(b'0', 10),
        space: range(b'\t', 5) | blank,
        newline: is(b'\n') | is(b'\r'),
        blank,
        quote: is(b'\''),
        slash: is(b'/'),
        wide: _mm512_movepi8_mask(bytes),
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn ascii(block: &[u8; 64]) -> Ascii {
    use std::arch::x86_64::{
        __m128i, _mm_add_epi8, _mm_and_si128, _mm_cmpeq_epi8, _mm_cmplt_epi8, _mm_loadu_si128, _mm_movemask_epi8,
        _mm_or_si128, _mm_set1_epi8,
    };
    let mut found = Ascii::default();
    for (i, chunk) in block.chunks_exact(16).enumerate() {
        // SAFETY: every x86-64 machine has SSE2, and the chunk has the 16 bytes that are read.
        unsafe {
            let bytes = _mm_loadu_si128(chunk.as_ptr().cast::<__m128i>());
            let set = |byte: u8| _mm_set1_epi8(byte as i8);
            let bits = |mask| (_mm_movemask_epi8(mask) as u32 as u64) << (i * 16);
            // The bytes from `first` on, so many: moved to the lowest signed numbers, where one comparison finds them.
            let range = |first: u8, count: u8| {
                let moved = _mm_add_epi8(bytes, set(0x80u8.wrapping_sub(first)));
                _mm_cmplt_epi8(moved, set(0x80u8.wrapping_add(count)))
            };
            let is = |byte: u8| _mm_cmpeq_epi8(bytes, set(byte));
            found.upper |= bits(range(b'A', 26));
            found.lower |= bits(range(b'a', 26));
            found.number |= bits(range(b'0', 10));
            let blank = is(b' ');
            found.space |= bits(_mm_or_si128(range(b'\t', 5), blank));
            found.blank |= bits(blank);
            found.quote |= bits(is(b'\''));
            found.slash |= bits(is(b'/'));
            found.newline |= bits(_mm_or_si128(is(b'\n'), is(b'\r')));
            found.wide |= bits(_mm_and_si128(bytes, set(0x80)));
        }
    }
    found
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn ascii(block: &[u8; 64]) -> Ascii {
    ascii_one_by_one(block)
}

/// The same without vector instructions.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn ascii_one_by_one(block: &[u8; 64]) -> Ascii {
    let mut found = Ascii::default();
    for (i, byte) in block.iter().enumerate() {
        let bit = |is: bool| u64::from(is) << i;
        found.upper |= bit(byte.is_ascii_uppercase());
        found.lower |= bit(byte.is_ascii_lowercase());
        found.number |= bit(byte.is_ascii_digit());
        found.space |= bit(matches!(byte, b'\t'..=b'\r' | b' '));
        found.newline |= bit(matches!(byte, b'\r' | b'\n'));
        found.blank |= bit(*byte == b' ');
        found.quote |= bit(*byte == b'\'');
        found.slash |= bit(*byte == b'/');
        found.wide |= bit(!byte.is_ascii());
    }
    found
}

/// The bytes of the commonest letters without case: Chinese (U+4E00 to U+9FFF), kana, and most of Hangul; of those that
/// end in the block. `range` gives a bit for each byte from the first to the last. What is no such letter is left to the
/// class table, and so is everything where there is no SSE2.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn caseless_letters_of(range: impl Fn(u8, u8) -> u64) -> u64 {
    let behind = range(0x80, 0xbf);
    let mut starts = range(0xe5, 0xe9) | range(0xeb, 0xec) | range(0xe4, 0xe4) & range(0xb8, 0xbf) >> 1;
    let kana = range(0xe3, 0xe3);
    if kana != 0 {
        // All of U+3041 to U+30FF but a few marks and signs.
        let (second, third) = (range(0x81, 0x81) >> 1, !range(0x80, 0x80) >> 2);
        starts |= kana & second & third;
        let (second, third) = (range(0x82, 0x82) >> 1, !(range(0x97, 0x9c) | range(0xa0, 0xa0)) >> 2);
        starts |= kana & second & third;
        let (second, third) = (range(0x83, 0x83) >> 1, !range(0xbb, 0xbb) >> 2);
        starts |= kana & second & third;
    }
    let letters = starts & behind >> 1 & behind >> 2;
    letters | letters << 1 | letters << 2
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn caseless_letters(block: &[u8; 64]) -> u64 {
    if is_x86_feature_detected!("avx512bw") {
        // SAFETY: the machine has AVX-512.
        return unsafe { caseless_letters_by_avx512(block) };
    }
    caseless_letters_by_sse2(block)
}

#[cfg(target_arch = "x86_64")]
fn caseless_letters_by_sse2(block: &[u8; 64]) -> u64 {
    use std::arch::x86_64::{__m128i, _mm_add_epi8, _mm_cmplt_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_set1_epi8};
    caseless_letters_of(|first, last| {
        block.chunks_exact(16).enumerate().fold(0, |found, (i, chunk)| {
            // SAFETY: every x86-64 machine has SSE2, and the chunk has the 16 bytes that are read.
            let bits = unsafe {
                let bytes = _mm_loadu_si128(chunk.as_ptr().cast::<__m128i>());
                let moved = _mm_add_epi8(bytes, _mm_set1_epi8(0x80u8.wrapping_sub(first) as i8));
                let end = _mm_set1_epi8((last - first).wrapping_sub(0x7f) as i8);
                _mm_movemask_epi8(_mm_cmplt_epi8(moved, end))
            };
            found | (bits as u32 as u64) << (i * 16)
        })
    })
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
fn caseless_letters_by_avx512(block: &[u8; 64]) -> u64 {
    use std::arch::x86_64::{__m512i, _mm512_cmple_epu8_mask, _mm512_loadu_si512, _mm512_set1_epi8, _mm512_sub_epi8};
    // SAFETY: the block has the 64 bytes that are read.
    let bytes = unsafe { _mm512_loadu_si512(block.as_ptr().cast::<__m512i>()) };
    caseless_letters_of(|first, last| {
        let moved = _mm512_sub_epi8(bytes, _mm512_set1_epi8(first as i8));
        _mm512_cmple_epu8_mask(moved, _mm512_set1_epi8((last - first) as i8))
    })
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn caseless_letters(_: &[u8; 64]) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unicode::class_at;

    /// Every character, and every two bytes, at the end of a block and at other places.
    #[test]
    fn common_letters_are_what_the_class_table_says() {
        let check = |bytes: &[u8], must: bool| {
            for at in [0, 5, 60, 61, 62] {
                let mut block = [b'x'; 64];
                let fits = bytes.len().min(64 - at);
                block[at..at + fits].copy_from_slice(&bytes[..fits]);
                let found = caseless_letters(&block);
                #[cfg(target_arch = "x86_64")]
                assert_eq!(found, caseless_letters_by_sse2(&block));
                let is_letter = found >> at & 1 != 0;
                let expected = if is_letter { ((1u64 << fits) - 1) << at } else { 0 };
                assert_eq!(found, expected, "{bytes:x?} at {at}");
                if is_letter {
                    let ((class, len), all) =
                        (class_at(&block, at), LETTER | NUMBER | SPACE | UPPER | LOWER | MARK | CASELESS);
                    assert_eq!((class & all, len, bytes.len()), (LETTER | CASELESS, 3, 3), "{bytes:x?}");
                }
                assert!(is_letter || !must || fits < bytes.len());
            }
        };
        for c in (0..=0x10_ffff).filter_map(char::from_u32) {
            let common = cfg!(target_arch = "x86_64") && ('\u{4e00}'..='\u{9fff}').contains(&c);
            check(c.encode_utf8(&mut [0; 4]).as_bytes(), common);
        }
        for pair in 0..=u16::MAX {
            let [first, second] = pair.to_be_bytes();
            assert_eq!(caseless_letters(&[[first, second]; 32].concat().try_into().unwrap()), 0);
        }
    }

    #[test]
    fn all_ways_to_classify_ascii_agree() {
        for shift in 0..=255u8 {
            let block: [u8; 64] = std::array::from_fn(|i| (i as u8).wrapping_mul(5).wrapping_add(shift));
            let right = ascii_one_by_one(&block);
            assert_eq!(ascii(&block), right);
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx512bw") {
                assert_eq!(unsafe { ascii_by_avx512(&block) }, right);
            }
        }
    }

    #[test]
    fn runs_and_last_bits() {
        let mut map: Map = [0; WORDS + 2];
        map[0] = u64::MAX << 60;
        map[1] = u64::MAX;
        map[2] = 0b1011;
        assert_eq!((run(&map, 60), run(&map, 100), run(&map, 130), run(&map, 131)), (130, 130, 130, 132));
        let word = |word: usize| map[word];
        assert_eq!((last(0, 200, word), last(0, 131, word), last(0, 60, word)), (Some(132), Some(130), None));
        assert_eq!((last(100, 128, word), last(132, 200, word)), (Some(128), None));
    }
}
