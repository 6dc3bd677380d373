//! `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+$|\s*[\r\n]|\s+(?!\S)|\s`

use super::{contraction, is_letter, is_number, others, run, up_to_three_numbers, white};
use crate::unicode::class_at;

pub fn end(text: &[u8], pos: usize) -> usize {
    if let Some(end) = contraction(text, pos) {
        return end;
    }
    let (class, len) = class_at(text, pos);
    if is_letter(class) {
        return run(text, pos + len, is_letter);
    }
    if is_number(class) {
        return up_to_three_numbers(text, pos);
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
    let white = white(text, pos);
    match white.newline {
        Some(end) if white.end < text.len() => end,
        _ => white.leave_one(text, pos),
    }
}
