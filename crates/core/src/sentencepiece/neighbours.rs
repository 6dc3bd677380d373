//! Where a text can be cut: between two characters that no entry has side by side.

use super::normalize::SPACE;
use crate::unigram::char_len;

/// A set of pairs of characters: a bit for each value of a hash. What it does not have is not in any entry.
pub struct Neighbours {
    pub bits: Vec<u32>,
    pub shift: u32,
    /// For each ASCII character in front, those of ASCII behind it in some entry; then those in front of `SPACE`. To take
    /// one of these for a pair that it is not would join many words of a text.
    ascii: Box<[u128; 129]>,
}

const SPACE_CODE: u32 = code(SPACE);

/// Of the hash: 32 bits, so that vector instructions make many at once.
pub const FACTORS: [u32; 3] = [0x9E37_79B1, 0x85EB_CA77, 0xC2B2_AE3D];

impl Neighbours {
    pub fn new(pairs: &[(u32, u32)]) -> Self {
        // One of 64 pairs or fewer is taken for another, so that a unit is longer than it could be.
        let size = (pairs.len() * 64).next_power_of_two().clamp(64, 1 << 31);
        let mut set = Self { bits: vec![0; size / 32], shift: 32 - size.trailing_zeros(), ascii: Box::new([0; 129]) };
        for &(left, right) in pairs {
            match right {
                _ if left >= 0x80 => {}
                0..0x80 => set.ascii[left as usize] |= 1 << right,
                SPACE_CODE => set.ascii[128] |= 1 << left,
                _ => {}
            }
            let at = set.place(left, right);
            set.bits[at / 32] |= 1 << (at % 32);
        }
        set
    }

    #[inline]
    fn place(&self, left: u32, right: u32) -> usize {
        let both = left.wrapping_mul(FACTORS[0]).wrapping_add(right.wrapping_mul(FACTORS[1]));
        ((both ^ both >> 16).wrapping_mul(FACTORS[2]) >> self.shift) as usize
    }

    /// Whether some entry has an ASCII character in front of another, or of `SPACE`, whose bytes are a number.
    pub fn has(&self, left: u8, right: u32) -> bool {
        match right {
            SPACE_CODE => self.ascii[128] >> left & 1 == 1,
            _ => self.ascii[usize::from(left)] >> right & 1 == 1,
        }
    }

    /// Of the characters of some entries.
    pub fn of<'e>(entries: impl Iterator<Item = &'e [u8]>) -> Self {
        let mut pairs = Vec::new();
        for entry in entries {
            let codes: Vec<u32> = characters(entry).map(code).collect();
            pairs.extend(codes.windows(2).map(|pair| (pair[0], pair[1])));
        }
        pairs.sort_unstable();
        pairs.dedup();
        Self::new(&pairs)
    }

    /// The first place behind `start` that no entry reaches across.
    pub fn next_cut(&self, text: &[u8], start: usize) -> usize {
        let mut at = start + char_len(text, start);
        let mut before = code(&text[start..at]);
        while at < text.len() {
            let end = at + char_len(text, at);
            let next = code(&text[at..end]);
            if !self.may_have(before, next) {
                break;
            }
            (before, at) = (next, end);
        }
        at
    }

    #[inline]
    pub fn may_have(&self, left: u32, right: u32) -> bool {
        let at = self.place(left, right);
        self.bits[at / 32] >> (at % 32) & 1 == 1
    }
}

/// The bytes of a character as a number.
#[inline]
pub const fn code(bytes: &[u8]) -> u32 {
    match *bytes {
        [a] => a as u32,
        [a, b] => (a as u32) << 8 | b as u32,
        [a, b, c] => (a as u32) << 16 | (b as u32) << 8 | c as u32,
        [a, b, c, d, ..] => u32::from_be_bytes([a, b, c, d]),
        [] => 0,
    }
}

pub fn characters(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut at = 0;
    std::iter::from_fn(move || {
        (at < text.len()).then(|| {
            let start = at;
            at += char_len(text, at);
            &text[start..at]
        })
    })
}
