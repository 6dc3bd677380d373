//! Places inside a piece that no entry lies across, whatever stands around them: no merge crosses such a *seam*, so both
//! sides can be encoded by themselves.
//!
//! Of the many pairs that thousands of characters can make, entries hold few: at most places in Chinese or Japanese there
//! is a seam, and what is between two is short, and common enough to be known. Letters of an alphabet nearly all stand side
//! by side in some entry; but often that is a longer one, of which the letters before and behind are not here. So seams
//! are looked for between characters of three bytes, and the questions are whether an entry holds these two and nothing
//! more, these two and the one before, these two and the one behind, or ends inside of one.

use crate::pipeline::BATCH;
use crate::vocab::{Token, Vocab};

/// Bits at places that a hash gives: some are set for two reasons, and hide a seam.
pub struct Seams {
    /// A bit for each pair of characters that stand side by side in an entry;
    pairs: Vec<u64>,
    /// for those of which some entry has no such character before or behind them;
    alone: Vec<u64>,
    /// and for three.
    triples: Vec<u64>,
    /// A bit for the last byte of a character and the first two of the one behind it: whether an entry has these side by
    /// side, as far as it reaches, and not both characters.
    parts: Vec<u64>,
    /// The same for the last byte and the first one alone, for the last six bits and the last four of these.
    leads: [u16; 64],
}

/// The bits of `pairs` and of `triples`, as powers of two: some 5 % taken by a vocabulary of 200,000 entries.
const PAIRS: u32 = 19;
const TRIPLES: u32 = 20;

/// Where two characters of three bytes have fixed bits, and these bits, the first byte in the lowest.
const FIXED: u64 = 0xc0c0_f0c0_c0f0;
const THREE: u64 = 0x8080_e080_80e0;
/// The first byte of Chinese, Japanese and Korean characters (and of some more) is no lower. Their pieces are cut at once,
/// and are rarely met twice. Those below are alphabets, of which pieces are cut when they are not known.
pub const LEAD: u8 = 0xe3;
pub const ALPHABETS: u8 = 0xe0;

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

const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline]
fn place(pair: u64) -> (usize, u64) {
    let bit = pair.wrapping_mul(SPREAD) >> (64 - PAIRS);
    ((bit / 64) as usize, 1 << (bit % 64))
}

/// The place of a pair and the character behind it.
#[inline]
fn triple_place(pair: u64, third: &[u8; 3]) -> (usize, u64) {
    let third = u64::from(u32::from_le_bytes([third[0], third[1], third[2], 0]));
    let bit =
        (pair ^ third << 41).wrapping_mul(SPREAD).wrapping_add(third.wrapping_mul(SPREAD << 32)) >> (64 - TRIPLES);
    ((bit / 64) as usize, 1 << (bit % 64))
}

/// The same in `parts`, which needs no hash: six bits of three bytes, but four of the one that is the first of three.
#[inline]
fn part_place(pair: u64) -> (usize, u64) {
    let bit = pair >> 16 & 0x3f | pair >> 18 & 0x3c0 | pair >> 22 & 0xfc00;
    ((bit / 64) as usize, 1 << (bit % 64))
}

#[inline]
fn has(map: &[u64], (word, bit): (usize, u64)) -> bool {
    map[word] & bit != 0
}

fn set(map: &mut [u64], (word, bit): (usize, u64)) {
    map[word] |= bit;
}

impl Seams {
    pub fn new(vocab: &Vocab) -> Self {
        let bits = |bits: u32| vec![0; 1 << (bits - 6)];
        let mut seams =
            Self { pairs: bits(PAIRS), alone: bits(PAIRS), triples: bits(TRIPLES), parts: bits(16), leads: [0; 64] };
        let Self { pairs, alone, triples, parts, leads } = &mut seams;
        for entry in (0..vocab.len() as Token).map(|token| vocab.piece(token)) {
            let starts = |at: usize| entry.get(at).is_some_and(|byte| byte & 0xf0 == 0xe0);
            for at in (1..entry.len()).filter(|&at| starts(at) && entry[at - 1] & 0xc0 == 0x80) {
                let (before, behind) = (&entry[at.saturating_sub(3)..at], &entry[at..entry.len().min(at + 3)]);
                let mut six = [0x80; 8];
                six[3 - before.len()..3].copy_from_slice(before);
                six[3..3 + behind.len()].copy_from_slice(behind);
                let pair = u64::from_le_bytes(six) & 0xffff_ffff_ffff;
                if before.len() < 3 || behind.len() < 3 {
                    leads[six[2] as usize & 63] |= 1 << (six[3] & 15);
                }
                // A byte that the entry does not have may be any.
                match (before.len(), behind.len()) {
                    (3, 3) => {
                        set(pairs, place(pair));
                        let third = entry[at + 3..].first_chunk().filter(|_| starts(at + 3));
                        match third {
                            Some(third) => set(triples, triple_place(pair, third)),
                            None if at >= 6 && starts(at - 6) => {}
                            None => set(alone, place(pair)),
                        }
                    }
                    (3, 2) => (0..64).map(|third| place(pair | third << 40)).for_each(|place| {
                        set(pairs, place);
                        set(alone, place);
                    }),
                    (_, 1) => (0..64).for_each(|second| set(parts, part_place(pair | second << 32))),
                    _ => set(parts, part_place(pair)),
                }
            }
        }
        seams
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
                let Some(pair) = six(bytes, at).filter(|pair| pair & FIXED == THREE) else {
                    at += 1;
                    continue;
                };
                // Whether there is one is as good as random, so nothing branches on it.
                let is_seam = !has(&self.pairs, place(pair))
                    & (self.leads[(pair >> 16) as usize & 63] >> (pair >> 24 & 15) & 1 == 0);
                at += 3;
                parts[len] = (from, at);
                len += usize::from(is_seam);
                from = if is_seam { at } else { from };
            }
            parts[len] = (from, end);
            len += 1;
        }
        visit(&parts[..len]);
    }

    /// The same of one piece, in smaller parts: the characters around a pair are looked at as well.
    pub fn fine_parts(&self, piece: &[u8], mut visit: impl FnMut(&[(usize, usize)])) {
        let (mut parts, mut len) = ([(0, 0); BATCH], 0);
        let (mut from, mut at) = (0, 0);
        // Whether an entry has the pair and the character before it.
        let mut before = false;
        while at + 6 <= piece.len() {
            let Some(pair) = six(piece, at).filter(|pair| pair & FIXED == THREE) else {
                (at, before) = (at + 1, false);
                continue;
            };
            at += 3;
            let third = piece[at + 3..].first_chunk();
            let behind = third.is_some_and(|third| has(&self.triples, triple_place(pair, third)));
            let is_held = before | behind | has(&self.alone, place(pair));
            before = behind;
            if !(has(&self.pairs, place(pair)) & is_held) & !has(&self.parts, part_place(pair)) {
                parts[len] = (from, at);
                (from, len) = (at, len + 1);
                if len == BATCH {
                    visit(&parts);
                    len = 0;
                }
            }
        }
        parts[len] = (from, piece.len());
        visit(&parts[..=len]);
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
        let chars = ["中", "文", "字", "の", "グ", "글", "a", "é", "😀", "ก", "า", "เ", "ร", "क", "ा"];
        let (mut cut, mut kept, mut finely) = (0, 0, 0);
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
                let shown = String::from_utf8_lossy(&text);
                assert_eq!((parts, last), (whole, text.len()), "round {round} {shown:?}");
                let (mut whole, mut parts, mut last) = (Vec::new(), Vec::new(), 0);
                bpe.encode(&text, &mut whole);
                seams.fine_parts(&text, |some| {
                    for &(start, end) in some {
                        assert_eq!(start, last);
                        last = end;
                        bpe.encode(&text[start..end], &mut parts);
                        finely += usize::from(start > 0);
                    }
                });
                assert_eq!((parts, last), (whole, text.len()), "round {round} {shown:?}");
            }
        }
        assert!(cut > kept / 10 && cut < kept * 9 / 10, "{cut} of {kept}");
        assert!(
            finely > cut + cut / 50 && finely < kept * 9 / 10,
            "{finely} of {kept}, where {cut} are found by pairs"
        );
    }
}
