//! `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+$|\s*[\r\n]|\s+(?!\S)|\s`

use super::masks::{self, Masks};
use super::{contraction, is_letter, is_number, others, run, up_to_three_numbers, white, white_by_masks, White};
use crate::unicode::{char_len, class_at};

/// See `super::ByMasks`.
#[inline(always)]
pub fn end_by_masks(masks: &Masks, text: &[u8], pos: usize) -> usize {
    let first = text[pos];
    // A word, with the one character in front of it or without.
    let start = pos + usize::from(may_lead(first));
    if masks::has(&masks.letter, start) {
        return masks::run(&masks.letter, start);
    }
    if masks::has(&masks.number, pos) {
        return up_to_three_numbers(text, pos);
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
        Some(white) => end_of_white(&white, text, pos),
        None => usize::MAX,
    }
}

/// Whether an ASCII character surely joins the letters behind it: not the apostrophe, which may start a contraction.
#[inline]
fn may_lead(byte: u8) -> bool {
    const LEADS: [bool; 256] = {
        let mut leads = [false; 256];
        let mut byte = 0;
        while byte < 0x80u8 {
            leads[byte as usize] = !byte.is_ascii_alphanumeric() && !matches!(byte, b'\r' | b'\n' | b'\'');
            byte += 1;
        }
        leads
    };
    LEADS[byte as usize]
}

fn end_of_white(white: &White, text: &[u8], pos: usize) -> usize {
    match white.newline {
        Some(end) if white.end < text.len() => end,
        _ => white.leave_one(text, pos),
    }
}

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
    end_of_white(&white(text, pos), text, pos)
}
