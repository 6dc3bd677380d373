//! Places inside a piece that no entry lies across, whatever stands around them: no merge crosses such a *seam*, so both
//! sides can be encoded by themselves.
//!
//! Between letters of an alphabet there are next to none, as nearly every two letters are an entry. But of the many pairs
//! that thousands of characters can make, entries hold few: at most places in Chinese or Japanese there is a seam, and what
//! is between two is short, and common enough to be known. So seams are looked for between characters of three bytes,
//! and the only question is whether an entry holds these two one after the other, or ends inside of one.

use crate::pipeline::BATCH;
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

    /// Gives `visit` the pieces in parts, from seam to seam, some at once.
    #[inline]
    pub fn parts(&self, bytes: &[u8], pieces: &[(usize, usize)], mut visit: impl FnMut(&[(usize, usize)])) {
        let (mut parts, mut len) = ([(0, 0); BATCH], 0);
        for &(start, end) in pieces {
            let (mut from, mut at) = (start, start);
            loop {
                if len == BATCH {
                    visit(&parts);
                    len = 0;
                }
                if at + 6 > end {
                    break;
                }
                match self.is_seam(bytes, at) {
                    None => at += 1,
                    Some(is_seam) => {
                        // Whether there is one is as good as random, so nothing branches on it.
                        at += 3;
                        parts[len] = (from, at);
                        len += usize::from(is_seam);
                        from = if is_seam { at } else { from };
                    }
                }
            }
            parts[len] = (from, end);
            len += 1;
        }
        visit(&parts[..len]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpe::units::UnitRow;
    use crate::bpe::{Bpe, Priority};

    /// Entries of whole characters, of parts of them, and of both, few enough characters that every pair is met.
    #[test]
    fn the_parts_of_a_piece_have_the_tokens_of_the_whole() {
        let mut state = 1u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        let chars = ["中", "文", "字", "の", "グ", "글", "a", "é", "😀"];
        let (mut cut, mut kept) = (0, 0);
        for round in 0..300 {
            let mut entries: Vec<Vec<u8>> = (0..=255u8).map(|byte| vec![byte]).collect();
            let mut merges = Vec::new();
            for _ in 0..random(60) {
                // What stands side by side in text, so that entries grow over the ends of characters.
                let text: Vec<u8> = (0..4).flat_map(|_| chars[random(chars.len())].bytes()).collect();
                let at = random(text.len());
                let fits = |entry: &&(u32, &Vec<u8>), at: usize| text[at..].starts_with(entry.1);
                let numbered: Vec<(u32, &Vec<u8>)> = (0..).zip(&entries).collect();
                let Some((left, first)) = numbered.iter().rfind(|entry| fits(entry, at)) else { continue };
                let after = at + first.len();
                let found = numbered.iter().rfind(|entry| after < text.len() && fits(entry, after));
                let Some((right, second)) = found else { continue };
                let joined = [&first[..], second].concat();
                if !entries.contains(&joined) {
                    merges.push((*left, *right));
                    entries.push(joined);
                }
            }
            let ends = entries.iter().scan(0, |end, entry| {
                *end += entry.len() as u64;
                Some(*end)
            });
            let offsets: Vec<u64> = std::iter::once(0).chain(ends).collect();
            let vocab = Vocab::new(entries.concat(), &offsets, (0..entries.len() as u32).collect()).unwrap();
            let units = UnitRow { by_characters: false, end_of_word: Vec::new(), unk: None };
            let bpe = Bpe::new(vocab, Priority::Merges(merges), false, units, None).unwrap();
            let seams = bpe.seams().unwrap();
            for _ in 0..30 {
                let mut text: Vec<u8> = (0..random(120)).flat_map(|_| chars[random(chars.len())].bytes()).collect();
                if random(3) == 0 && !text.is_empty() {
                    let at = random(text.len());
                    text[at] = [0x80, 0xe4, 0xf0, 0xff][random(4)];
                }
                let (mut whole, mut parts, mut last) = (Vec::new(), Vec::new(), 0);
                let middle = random(text.len() + 1);
                let pieces = [(0, middle), (middle, text.len())];
                pieces.iter().for_each(|&(start, end)| bpe.encode(&text[start..end], &mut whole));
                seams.parts(&text, &pieces, |some| {
                    for &(start, end) in some {
                        assert_eq!(start, last);
                        last = end;
                        bpe.encode(&text[start..end], &mut parts);
                        cut += usize::from(start > 0 && start != middle);
                    }
                });
                kept += text.len() / 3;
                assert_eq!((parts, last), (whole, text.len()), "round {round} {:?}", String::from_utf8_lossy(&text));
            }
        }
        assert!(cut > kept / 10 && cut < kept * 9 / 10, "{cut} of {kept}");
    }
}
