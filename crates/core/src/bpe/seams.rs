//! Places inside a piece that no entry lies across, whatever stands around them: no merge crosses such a *seam*, so both
//! sides can be encoded by themselves.
//!
//! Between letters of an alphabet there are next to none, as nearly every two letters are an entry. But of the many pairs
//! that thousands of characters can make, entries hold few: at most places in Chinese or Japanese there is a seam, and what
//! is between two is short, and common enough to be known. So seams are looked for between characters of three bytes,
//! and the only question is whether an entry holds these two one after the other, or ends inside of one.

use crate::vocab::{Token, Vocab};

pub struct Seams {
    /// A bit for each pair of characters that stand side by side in an entry, by a hash: of other pairs some share one.
    pairs: Vec<u64>,
    /// For the last six bits of a character, and the last four of the first byte of the one behind it: whether an entry
    /// holds both bytes, but not both characters.
    parts: [u16; 64],
}

/// The bits of `pairs`, as a power of two: 64 KiB, some 5 % taken by a vocabulary of 200,000 entries.
const BITS: u32 = 19;

/// Where two characters of three bytes have fixed bits, and these bits, the first byte in the lowest.
const FIXED: u64 = 0xc0c0_f0c0_c0f0;
const THREE: u64 = 0x8080_e080_80e0;
/// The first byte of Chinese, Japanese and Korean characters (and of some more) is no lower; those below are alphabets.
pub const LEAD: u8 = 0xe3;

/// Six bytes as a number.
#[inline]
fn six(bytes: &[u8], at: usize) -> Option<u64> {
    if let Some(eight) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        return Some(u64::from_le_bytes(*eight) & 0xffff_ffff_ffff);
    }
    let mut eight = [0; 8];
    eight[..6].copy_from_slice(bytes.get(at..at + 6)?);
    Some(u64::from_le_bytes(eight))
}

#[inline]
fn place(pair: u64) -> (usize, u64) {
    let bit = pair.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BITS);
    ((bit / 64) as usize, 1 << (bit % 64))
}

impl Seams {
    pub fn new(vocab: &Vocab) -> Self {
        let mut seams = Self { pairs: vec![0; 1 << (BITS - 6)], parts: [0; 64] };
        for entry in (0..vocab.len() as Token).map(|token| vocab.piece(token)) {
            for at in (1..entry.len()).filter(|&at| entry[at] & 0xf0 == 0xe0 && entry[at - 1] & 0xc0 == 0x80) {
                if at >= 3 && at + 3 <= entry.len() {
                    if let Some(pair) = six(entry, at - 3) {
                        let (word, bit) = place(pair);
                        seams.pairs[word] |= bit;
                    }
                } else {
                    seams.parts[entry[at - 1] as usize & 63] |= 1 << (entry[at] & 15);
                }
            }
        }
        seams
    }

    /// Whether there is a seam between the three bytes from `at` on and the three behind them; None where these are not
    /// two characters.
    #[inline]
    fn is_seam(&self, bytes: &[u8], at: usize) -> Option<bool> {
        let pair = six(bytes, at).filter(|pair| pair & FIXED == THREE)?;
        let (word, bit) = place(pair);
        let part = self.parts[(pair >> 16) as usize & 63] >> (pair >> 24 & 15) & 1;
        Some(self.pairs[word] & bit == 0 && part == 0)
    }

    /// Gives `visit` the parts of a piece from seam to seam.
    #[inline]
    pub fn parts(&self, bytes: &[u8], start: usize, end: usize, mut visit: impl FnMut(usize, usize)) {
        let (mut from, mut at) = (start, start);
        while at + 6 <= end {
            match self.is_seam(bytes, at) {
                None => at += 1,
                Some(is_seam) => {
                    at += 3;
                    if is_seam {
                        visit(from, at);
                        from = at;
                    }
                }
            }
        }
        visit(from, end);
    }
}
