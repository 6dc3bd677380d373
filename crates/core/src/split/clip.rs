//! `<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+`; white space is dropped.

use super::{contraction, is_letter, is_number, is_other, lower_contraction, run};
use crate::unicode::{class_at, SPACE};

pub fn end(text: &[u8], pos: usize) -> usize {
    let special = SPECIALS.iter().find(|special| text[pos..].starts_with(special.as_bytes()));
    piece_end(text, pos, special.map(|special| pos + special.len()), lower_contraction)
}

/// Without regard to case, as CLIP has it. U+017F, the long s, is an `s` then.
pub fn end_any_case(text: &[u8], pos: usize) -> usize {
    let matches = |special: &&str| {
        text.get(pos..pos + special.len()).is_some_and(|found| found.eq_ignore_ascii_case(special.as_bytes()))
    };
    let special = SPECIALS.iter().chain(&["<|ſtartoftext|>"]).find(|special| matches(special));
    piece_end(text, pos, special.map(|special| pos + special.len()), contraction)
}

const SPECIALS: [&str; 2] = ["<|startoftext|>", "<|endoftext|>"];

fn piece_end(
    text: &[u8],
    pos: usize,
    special: Option<usize>,
    contraction: impl Fn(&[u8], usize) -> Option<usize>,
) -> usize {
    if let Some(end) = special.or_else(|| contraction(text, pos)) {
        return end;
    }
    let (class, len) = class_at(text, pos);
    if class & SPACE != 0 {
        run(text, pos + len, |class| class & SPACE != 0)
    } else if is_letter(class) {
        run(text, pos + len, is_letter)
    } else if is_number(class) {
        pos + len
    } else {
        run(text, pos + len, is_other)
    }
}
