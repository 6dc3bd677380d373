//! Lower-casing with an alignment to the bytes it came from.
//!
//! The full mappings of Unicode, which may make several characters of one (`İ`). They come from the standard library,
//! which may be newer than the class tables: only characters that these know are changed.

use crate::error::{Error, Result};
use crate::pipeline::Segment;
use crate::unicode::{check_version, class, is_in, NUMBER, UPPER, VERSION};

const _: () = assert!(char::UNICODE_VERSION.0 >= 16, "the standard library must have the mappings of Unicode 16");

#[derive(Debug, Clone, Copy)]
pub struct Lowercase {
    /// Also the capitals that Unicode 17 has and the class tables do not know.
    newer: bool,
    /// A sigma at the end of a word becomes `ς` (Unicode 16, table 3-17, Final_Sigma), as Python's `str.lower` has it.
    final_sigma: bool,
}

impl std::fmt::Display for Lowercase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sigma = if self.final_sigma { "with" } else { "without" };
        let version = if self.newer { NEWER } else { VERSION };
        write!(f, "lower case of Unicode {version}, {sigma} final sigma")
    }
}

impl Lowercase {
    pub fn new(final_sigma: bool, version: &str) -> Result<Self> {
        let newer = version == NEWER;
        if newer && final_sigma {
            return Err(Error::value(format!("final sigmas need the classes of Unicode {VERSION}, not of {NEWER}")));
        }
        if !newer {
            check_version(version)?;
        }
        Ok(Self { newer, final_sigma })
    }

    /// Whether what a character becomes depends on others.
    pub fn looks_around(self) -> bool {
        self.final_sigma
    }

    /// Whether what stands on one side of `at` surely becomes the same without the other side: a sigma looks far, but
    /// never across white space.
    pub fn is_cut(text: &[u8], at: usize) -> bool {
        text[at - 1].is_ascii_whitespace() || text[at].is_ascii_whitespace()
    }

    /// Lower-cases a segment. Ill-formed bytes stay as they are, and end a word.
    pub fn apply_segment<'t>(self, segment: Segment<'t>) -> Segment<'t> {
        if !segment.bytes.iter().any(|byte| byte.is_ascii_uppercase() || !byte.is_ascii()) {
            return segment;
        }
        if segment.bytes.is_ascii() {
            let lower = segment.bytes.to_ascii_lowercase();
            return segment.with_bytes(lower);
        }
        let mut out = Vec::with_capacity(segment.bytes.len());
        let mut spans = Vec::with_capacity(segment.bytes.len());
        let mut pos = 0;
        for chunk in segment.bytes.utf8_chunks() {
            let text = chunk.valid();
            for (at, c) in text.char_indices() {
                let (start, len) = (out.len(), c.len_utf8());
                self.push(text, at, c, &mut out);
                if out[start..] == text.as_bytes()[at..at + len] {
                    spans.extend((0..len).map(|i| segment.span(pos + i, pos + i + 1)));
                } else {
                    spans.extend(std::iter::repeat_n(segment.span(pos, pos + len), out.len() - start));
                }
                pos += len;
            }
            for &byte in chunk.invalid() {
                out.push(byte);
                spans.push(segment.span(pos, pos + 1));
                pos += 1;
            }
        }
        Segment::mapped(out, spans)
    }

    /// `text` in lower case.
    pub fn apply(self, text: &str) -> String {
        let mut out = Vec::with_capacity(text.len());
        text.char_indices().for_each(|(at, c)| self.push(text, at, c, &mut out));
        String::from_utf8_lossy(&out).into_owned()
    }

    /// Appends the lower case of the character `c` at `at`.
    fn push(self, text: &str, at: usize, c: char, out: &mut Vec<u8>) {
        let mut buffer = [0; 4];
        if self.final_sigma && c == 'Σ' && is_final(&text[..at], &text[at + c.len_utf8()..]) {
            out.extend_from_slice("ς".as_bytes());
        } else if is_cased_by_our_tables(c) {
            c.to_lowercase().for_each(|lower| out.extend_from_slice(lower.encode_utf8(&mut buffer).as_bytes()));
        } else {
            let lower = newer_lower(c).filter(|_| self.newer).unwrap_or(c);
            out.extend_from_slice(lower.encode_utf8(&mut buffer).as_bytes());
        }
    }
}

/// The version that HF tokenizers has: it asks the Rust library.
const NEWER: &str = "17.0";

/// The lower case of the 28 capitals that are new in Unicode 17.
fn newer_lower(c: char) -> Option<char> {
    match c {
        '\u{a7ce}' | '\u{a7d2}' | '\u{a7d4}' => char::from_u32(u32::from(c) + 1),
        '\u{16ea0}'..='\u{16eb8}' => char::from_u32(u32::from(c) + 0x1b),
        _ => None,
    }
}

/// Whether `c` may have a lower case that the class tables know of: capitals, Roman numerals, letters in circles.
fn is_cased_by_our_tables(c: char) -> bool {
    c.is_ascii() || class(u32::from(c)) & (UPPER | NUMBER) != 0 || ('\u{24b6}'..='\u{24cf}').contains(&c)
}

/// Whether a sigma between these two ends a word: a cased character stands in front of it and none behind it, not
/// counting what has no case of its own, such as marks and apostrophes.
fn is_final(before: &str, after: &str) -> bool {
    let is_cased = |c: &char| is_in("Cased", *c);
    let counts = |c: &char| !is_in("Case_Ignorable", *c);
    let is_beside = |found: Option<char>| found.as_ref().is_some_and(is_cased);
    is_beside(before.chars().rev().find(counts)) && !is_beside(after.chars().find(counts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lower_case_is_that_of_the_standard_library() {
        let with_context = Lowercase { newer: false, final_sigma: true };
        for c in '\0'..=char::MAX {
            let text = String::from(c);
            if char::UNICODE_VERSION.0 == 16 || class(u32::from(c)) != 0 {
                assert_eq!(with_context.apply(&text), text.to_lowercase(), "{c:?}");
            }
        }
        let newer = Lowercase { newer: true, final_sigma: false };
        let is_changed = |c: &char| newer.apply(&String::from(*c)) != with_context.apply(&String::from(*c));
        let changed: Vec<char> = ('\0'..=char::MAX).filter(is_changed).filter(|&c| c != 'Σ').collect();
        assert_eq!(changed.len(), 28);
        if char::UNICODE_VERSION.0 >= 17 {
            changed.iter().for_each(|c| assert!(newer_lower(*c).into_iter().eq(c.to_lowercase())));
        }
        let parts = ["Σ", "Α", "'", ".", "\u{301}", "\u{ad}", " ", "1", "中", "ʰ", "Ⅷ", "ς"];
        for a in parts {
            for b in parts {
                for c in parts {
                    for d in parts {
                        let text = [a, b, c, d, "Σ", b, a].concat();
                        assert_eq!(with_context.apply(&text), text.to_lowercase(), "{text:?}");
                    }
                }
            }
        }
    }
}
