//! Three patterns that differ in two things, how many numbers may be together and what becomes of white space at the end
//! of a text:
//!
//! ```text
//! cl100k  '(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+$|\s*[\r\n]|\s+(?!\S)|\s
//! llama3  (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
//! qwen2   the same with \p{N} for \p{N}{1,3}
//! ```

use super::masks::{self, Masks};
use super::{contraction, is_letter, is_number, others, run, up_to_numbers, white, white_by_masks, White};
use crate::unicode::{char_len, class_at};

/// See `super::ByMasks`.
#[inline(always)]
pub fn end_by_masks<const NUMBERS: usize, const LAST_WHOLE: bool>(masks: &Masks, text: &[u8], pos: usize) -> usize {
    let first = text[pos];
    if masks::has(&masks.letter, pos) {
        return masks::run(&masks.letter, pos);
    }
    if masks::has(&masks.number, pos) {
        return up_to_numbers(NUMBERS, text, pos);
    }
    if let Some(end) = contraction(text, pos) {
        return end;
    }
    if !matches!(first, b'\r' | b'\n') {
        let after = pos + char_len(text, pos);
        if masks::has(&masks.letter, after) {
            return masks::run(&masks.letter, after);
        }
    }
    let start = pos + usize::from(first == b' ');
    if masks::has(&masks.other, start) {
        let mut end = masks::run(&masks.other, start);
        while matches!(text.get(end), Some(b'\r' | b'\n')) {
            end += 1;
        }
        return end;
    }
    match white_by_masks(masks, text, pos) {
        Some(white) => end_of_white::<LAST_WHOLE>(&white, text, pos),
        None => usize::MAX,
    }
}

fn end_of_white<const LAST_WHOLE: bool>(white: &White, text: &[u8], pos: usize) -> usize {
    match white.newline {
        Some(end) if !LAST_WHOLE || white.end < text.len() => end,
        _ => white.leave_one(text, pos),
    }
}

pub fn end<const NUMBERS: usize, const LAST_WHOLE: bool>(text: &[u8], pos: usize) -> usize {
    if let Some(end) = contraction(text, pos) {
        return end;
    }
    let (class, len) = class_at(text, pos);
    if is_letter(class) {
        return run(text, pos + len, is_letter);
    }
    if is_number(class) {
        return up_to_numbers(NUMBERS, text, pos);
    }
    // One character that is no letter, number or newline joins the letters that follow it.
    if !matches!(text[pos], b'\r' | b'\n') {
        let end = run(text, pos + len, is_letter);
        if end > pos + len {
            return end;
        }
    }
    if let Some(mut end) = others(text, pos) {
        while matches!(text.get(end), Some(b'\r' | b'\n')) {
            end += 1;
        }
        return end;
    }
    end_of_white::<LAST_WHOLE>(&white(text, pos), text, pos)
}
