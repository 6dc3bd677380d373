//! Characters of text that may be ill-formed, and their classes by a named Unicode version.
//!
//! A byte that is not part of a well-formed character counts as a character of one byte and of no class.

mod tables {
    include!(concat!(env!("OUT_DIR"), "/unicode_16.rs"));
}

use crate::error::{Error, Result};

/// The Unicode version of the class tables.
pub const VERSION: &str = "16.0";

/// The version of the classes that HF tokenizers' stages for BERT look at.
pub const OLD_VERSION: &str = "8.0";

/// The version of the scripts that HF tokenizers' UnicodeScripts looks at.
pub const OLD_SCRIPTS: &str = "9.0";

/// The script of a code point by that version, as a number; 0 for what has none or is not assigned. A space has none, and
/// Hiragana, Katakana and the long vowel mark count as Han.
pub fn script(cp: u32) -> u8 {
    match tables::SCRIPT_STAGE1.get((cp >> 8) as usize) {
        Some(&block) => tables::SCRIPT_STAGE2[block as usize][(cp & 0xff) as usize],
        None => 0,
    }
}

/// Flag bits of a character's class by the tables of that version: `\p{C}` without what is unassigned, `\p{Mn}`, `\p{P}`.
pub const OLD_OTHER: u8 = 1;
pub const OLD_MARK: u8 = 2;
pub const OLD_PUNCTUATION: u8 = 4;

/// Flag bits of a character's class. `CASELESS` is `\p{Lm}` and `\p{Lo}`; `UPPER` is `\p{Lu}` and `\p{Lt}`.
pub const LETTER: u8 = 1;
pub const NUMBER: u8 = 2;
pub const SPACE: u8 = 4;
pub const MARK: u8 = 8;
pub const UPPER: u8 = 16;
pub const LOWER: u8 = 32;
pub const CASELESS: u8 = 64;
pub const WORD: u8 = 128;

/// First and last code point of each range of the class `name`.
pub fn ranges(name: &str, version: &str) -> Result<&'static [(u32, u32)]> {
    let classes = match version {
        OLD_VERSION => tables::OLD_CLASSES,
        OLD_SCRIPTS => tables::SCRIPT_CLASSES,
        _ => tables::CLASSES,
    };
    if ![OLD_VERSION, OLD_SCRIPTS].contains(&version) {
        check_version(version)?;
    }
    match classes.iter().find(|(known, _)| *known == name) {
        Some((_, ranges)) => Ok(ranges),
        None => Err(Error::value(format!("unknown character class {name:?}"))),
    }
}

/// Whether `c` is in the class `name`, one of those that have no flag.
pub fn is_in(name: &str, c: char) -> bool {
    let c = u32::from(c);
    ranges(name, VERSION).is_ok_and(|ranges| {
        let at = ranges.partition_point(|&(_, last)| last < c);
        ranges.get(at).is_some_and(|&(first, _)| first <= c)
    })
}

/// The numbers, in a Unicode version that may be newer than that of the class tables.
pub fn numbers(version: &str) -> Result<Vec<(u32, u32)>> {
    Ok([ranges("N", VERSION)?, newer_numbers(version)?].concat())
}

/// The numbers that a Unicode version has beyond the class tables. HF's `Digits` asks the Rust library what a number
/// is (`char::is_numeric`), and that knows Unicode 17.
pub fn newer_numbers(version: &str) -> Result<&'static [(u32, u32)]> {
    match version {
        VERSION => Ok(&[]),
        "17.0" => Ok(&[(0x11de0, 0x11de9), (0x16ff4, 0x16ff6)]),
        _ => Err(Error::value(format!(
            "no class tables for Unicode {version:?}; there are tables for {VERSION} and, of numbers, for 17.0"
        ))),
    }
}

/// The ranges of a class by any spelling of its name: case, spaces, `_` and `-` do not count, and a category may have
/// its long name.
pub fn ranges_by_any_name(name: &str) -> Option<&'static [(u32, u32)]> {
    let loose = |name: &str| name.replace([' ', '_', '-'], "").to_ascii_lowercase();
    let wanted = loose(name);
    let long = LONG_NAMES.iter().find(|(long, _)| *long == wanted).map(|&(_, short)| short);
    let found = tables::CLASSES.iter().find(|(known, _)| long.map_or(loose(known) == wanted, |short| short == *known));
    found.filter(|(name, _)| *name != "Word").map(|(_, ranges)| *ranges)
}

const LONG_NAMES: &[(&str, &str)] = &[
    ("letter", "L"),
    ("casedletter", "LC"),
    ("uppercaseletter", "Lu"),
    ("lowercaseletter", "Ll"),
    ("titlecaseletter", "Lt"),
    ("modifierletter", "Lm"),
    ("otherletter", "Lo"),
    ("mark", "M"),
    ("nonspacingmark", "Mn"),
    ("spacingmark", "Mc"),
    ("enclosingmark", "Me"),
    ("number", "N"),
    ("decimalnumber", "Nd"),
    ("letternumber", "Nl"),
    ("othernumber", "No"),
    ("punctuation", "P"),
    ("connectorpunctuation", "Pc"),
    ("dashpunctuation", "Pd"),
    ("openpunctuation", "Ps"),
    ("closepunctuation", "Pe"),
    ("initialpunctuation", "Pi"),
    ("finalpunctuation", "Pf"),
    ("otherpunctuation", "Po"),
    ("symbol", "S"),
    ("mathsymbol", "Sm"),
    ("currencysymbol", "Sc"),
    ("modifiersymbol", "Sk"),
    ("othersymbol", "So"),
    ("separator", "Z"),
    ("spaceseparator", "Zs"),
    ("lineseparator", "Zl"),
    ("paragraphseparator", "Zp"),
    ("other", "C"),
    ("control", "Cc"),
    ("format", "Cf"),
    ("privateuse", "Co"),
    ("unassigned", "Cn"),
];

/// The characters that are the same as those of a range of code points, but for their case (simple folding).
pub fn other_cases(first: u32, last: u32) -> impl Iterator<Item = u32> {
    let from = tables::CASES.partition_point(|pair| pair.0 < first);
    tables::CASES[from..].iter().take_while(move |pair| pair.0 <= last).map(|pair| pair.1)
}

pub fn check_version(version: &str) -> Result<()> {
    if version == VERSION {
        return Ok(());
    }
    Err(Error::value(format!("no class tables for Unicode {version:?}; there are tables for {VERSION}")))
}

/// The class flags of a code point.
#[inline]
pub fn class(cp: u32) -> u8 {
    match tables::STAGE1.get((cp >> 8) as usize) {
        Some(&block) => tables::STAGE2[block as usize][(cp & 0xff) as usize],
        None => 0,
    }
}

/// The class flags of the 64 code points that differ from this one in the last byte of UTF-8 alone; none beyond the last.
#[inline]
pub fn classes_beside(cp: u32) -> &'static [u8; 64] {
    let block = tables::STAGE1.get((cp >> 8) as usize).map(|&block| &tables::STAGE2[block as usize]);
    block.and_then(|block| block[(cp & 0xc0) as usize..].first_chunk()).unwrap_or(&[0; 64])
}

/// The class flags of a code point by the tables of `OLD_VERSION`.
#[inline]
pub fn old_class(cp: u32) -> u8 {
    match tables::OLD_STAGE1.get((cp >> 8) as usize) {
        Some(&block) => tables::OLD_STAGE2[block as usize][(cp & 0xff) as usize],
        None => 0,
    }
}

/// Class flags and length in bytes of the character at `pos`, which must be inside `text`.
#[inline]
pub fn class_at(text: &[u8], pos: usize) -> (u8, usize) {
    let first = text[pos];
    if first < 0x80 {
        return (tables::STAGE2[0][first as usize], 1);
    }
    match decode(&text[pos..]) {
        Some((cp, len)) => (class(cp), len),
        None => (0, 1),
    }
}

/// The same for a character beyond ASCII, by one look-up for those of two or three bytes.
#[inline]
pub fn wide_class_at(text: &[u8], pos: usize) -> (u8, usize) {
    if let Some(&[first, second, third]) = text.get(pos..).and_then(|rest| rest.first_chunk::<3>()) {
        let point = usize::from(first & 0x0f) << 12 | usize::from(second & 0x3f) << 6 | usize::from(third & 0x3f);
        let are_behind = second & 0xc0 == 0x80 && third & 0xc0 == 0x80;
        if first & 0xf0 == 0xe0 && are_behind && point >= 0x800 && point & 0xf800 != 0xd800 {
            return (tables::LOW[point], 3);
        }
        if (0xc2..0xe0).contains(&first) && second & 0xc0 == 0x80 {
            return (tables::LOW[usize::from(first & 0x1f) << 6 | usize::from(second & 0x3f)], 2);
        }
    }
    class_at(text, pos)
}

/// The code point at `pos`, which must be inside `text`, and its length in bytes; `ILL_FORMED` for an ill-formed byte.
#[inline]
pub fn char_at(text: &[u8], pos: usize) -> (u32, usize) {
    decode(&text[pos..]).unwrap_or((ILL_FORMED, 1))
}

/// Stands for an ill-formed byte: one more than the last code point.
pub const ILL_FORMED: u32 = 0x11_0000;

/// Length in bytes of the character at `pos`: 1 for an ill-formed byte.
#[inline]
pub fn char_len(text: &[u8], pos: usize) -> usize {
    if text[pos] < 0x80 {
        return 1;
    }
    decode(&text[pos..]).map_or(1, |(_, len)| len)
}

/// Class flags of the character that ends at `end`, and where it starts. `end` must not be 0.
pub fn class_before(text: &[u8], end: usize) -> (u8, usize) {
    for len in 1..=4.min(end) {
        let start = end - len;
        if text[start] & 0xc0 != 0x80 {
            if char_len(text, start) == len {
                return (class_at(text, start).0, start);
            }
            break;
        }
    }
    (0, end - 1)
}

/// Whether a character starts at `at`, or the text ends there: no continuation byte, or a stray one.
pub fn is_start(text: &[u8], at: usize) -> bool {
    let belongs = |back| text[at - back] & 0xc0 == 0xc0 && char_len(text, at - back) > back;
    at == text.len() || text[at] & 0xc0 != 0x80 || !(1..=3.min(at)).any(belongs)
}

/// The number of characters in `text`.
pub fn char_count(text: &[u8]) -> usize {
    if std::str::from_utf8(text).is_ok() {
        return text.iter().filter(|&&b| b & 0xc0 != 0x80).count();
    }
    let (mut pos, mut count) = (0, 0);
    while pos < text.len() {
        pos += char_len(text, pos);
        count += 1;
    }
    count
}

/// The first code point of `bytes` and its length, or None where UTF-8 is ill-formed (Unicode 16, table 3-7).
#[inline]
pub(crate) fn decode(bytes: &[u8]) -> Option<(u32, usize)> {
    let cont = |i: usize, low: u8, high: u8| bytes.get(i).copied().filter(|b| (low..=high).contains(b)).map(u32::from);
    let first = *bytes.first()?;
    let lead = u32::from(first);
    match first {
        0x00..=0x7f => Some((lead, 1)),
        0xc2..=0xdf => Some((((lead & 0x1f) << 6) | (cont(1, 0x80, 0xbf)? & 0x3f), 2)),
        0xe0..=0xef => {
            let (low, high) = match first {
                0xe0 => (0xa0, 0xbf),
                0xed => (0x80, 0x9f), // no surrogates
                _ => (0x80, 0xbf),
            };
            let second = cont(1, low, high)? & 0x3f;
            Some((((lead & 0x0f) << 12) | (second << 6) | (cont(2, 0x80, 0xbf)? & 0x3f), 3))
        }
        0xf0..=0xf4 => {
            let (low, high) = match first {
                0xf0 => (0x90, 0xbf),
                0xf4 => (0x80, 0x8f),
                _ => (0x80, 0xbf),
            };
            let second = cont(1, low, high)? & 0x3f;
            let third = cont(2, 0x80, 0xbf)? & 0x3f;
            Some((((lead & 0x07) << 18) | (second << 12) | (third << 6) | (cont(3, 0x80, 0xbf)? & 0x3f), 4))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decode_agrees_with_the_standard_library_on_every_character_and_every_cut() {
        for c in '\0'..=char::MAX {
            let mut buffer = [0; 4];
            let bytes = c.encode_utf8(&mut buffer).as_bytes();
            assert_eq!(decode(bytes), Some((u32::from(c), bytes.len())));
            assert_eq!(class_before(bytes, bytes.len()), (class(u32::from(c)), 0));
            assert_eq!(wide_class_at(bytes, 0), (class(u32::from(c)), bytes.len()));
            assert_eq!(wide_class_at(&[bytes, b"xyz"].concat(), 0), (class(u32::from(c)), bytes.len()));
            for cut in 1..bytes.len() {
                assert_eq!(decode(&bytes[..cut]), None);
            }
        }
    }

    #[test]
    fn decode_refuses_what_the_standard_library_refuses() {
        for a in 0..=255u8 {
            for b in 0..=255u8 {
                for tail in [&[][..], &[0x80], &[0xbf, 0x80], &[0x41]] {
                    let bytes = [&[a, b], tail].concat();
                    let ours = decode(&bytes).map(|(_, len)| len);
                    let std = (1..=4.min(bytes.len())).find(|&n| std::str::from_utf8(&bytes[..n]).is_ok());
                    assert_eq!(ours, std, "{bytes:x?}");
                    assert_eq!(wide_class_at(&bytes, 0).1, std.unwrap_or(1), "{bytes:x?}");
                }
            }
        }
    }

    #[test]
    fn the_table_has_what_the_ranges_say() {
        for (name, bit) in [("L", LETTER), ("N", NUMBER), ("White_Space", SPACE), ("M", MARK), ("Ll", LOWER)] {
            let mut flagged = vec![false; 0x11_0000];
            for &(first, last) in ranges(name, VERSION).expect("a known class") {
                flagged[first as usize..=last as usize].fill(true);
            }
            for (cp, &is) in flagged.iter().enumerate() {
                assert_eq!(class(cp as u32) & bit != 0, is, "{name} {cp:x}");
            }
        }
        assert_eq!(ranges("L", VERSION).map(|r| r.iter().map(|(a, b)| b - a + 1).sum::<u32>()).ok(), Some(141_028));
    }
}
