//! Where a text can be cut: between two characters that no entry has side by side.

use crate::unigram::char_len;

/// A set of pairs of characters: a bit for each value of a hash. What it does not have is not in any entry.
pub struct Neighbours {
    bits: Vec<u64>,
    shift: u32,
}

impl Neighbours {
    pub fn new(pairs: &[(u32, u32)]) -> Self {
        let mut set = Self::with_room(pairs.len());
        pairs.iter().for_each(|&(left, right)| set.add(left, right));
        set
    }

    /// Without pairs yet, and with room for so many, of which some may be the same.
    pub fn with_room(pairs: usize) -> Self {
        let size = (pairs * 16).next_power_of_two().max(64);
        Self { bits: vec![0; size / 64], shift: 64 - size.trailing_zeros() }
    }

    #[inline]
    pub fn add(&mut self, left: u32, right: u32) {
        let at = self.place(left, right);
        self.bits[at / 64] |= 1 << (at % 64);
    }

    #[inline]
    fn place(&self, left: u32, right: u32) -> usize {
        let key = u64::from(left) << 32 | u64::from(right);
        ((key ^ key >> 29).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
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
        self.bits[at / 64] >> (at % 64) & 1 == 1
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
