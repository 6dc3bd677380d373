//! `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

use super::masks::{self, Masks};
use super::{is_letter, is_number, is_other, run, white, white_by_masks};
use crate::unicode::{class_at, SPACE};

/// See `super::ByMasks`.
#[inline(always)]
pub fn end_by_masks(masks: &Masks, text: &[u8], pos: usize) -> usize {
    let start = pos + usize::from(text[pos] == b' ');
    if masks::has(&masks.letter, start) {
        return masks::run(&masks.letter, start);
    }
    if let Some(end) = contraction(text, pos) {
        return end;
    }
    for map in [&masks.other, &masks.number] {
        if masks::has(map, start) {
            return masks::run(map, start);
        }
    }
    white_by_masks(masks, text, pos).map_or(usize::MAX, |white| white.leave_one(text, pos))
}

#[inline]
fn contraction(text: &[u8], pos: usize) -> Option<usize> {
    if text[pos] != b'\'' {
        return None;
    }
    match (text.get(pos + 1), text.get(pos + 2)) {
        (Some(b's' | b't' | b'm' | b'd'), _) => Some(pos + 2),
        (Some(b'l'), Some(b'l')) | (Some(b'r' | b'v'), Some(b'e')) => Some(pos + 3),
        _ => None,
    }
}

pub fn end(text: &[u8], pos: usize) -> usize {
    if let Some(end) = contraction(text, pos) {
        return end;
    }
    // A space joins the run of letters, of numbers or of neither that follows it.
    let start = if text[pos] == b' ' && pos + 1 < text.len() { pos + 1 } else { pos };
    let (class, len) = class_at(text, start);
    if class & SPACE != 0 {
        return white(text, pos).leave_one(text, pos);
    }
    let is = if is_letter(class) {
        is_letter
    } else if is_number(class) {
        is_number
    } else {
        is_other
    };
    run(text, start + len, is)
}
