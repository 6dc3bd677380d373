//! Letters split by case, a contraction kept with its word:
//!
//! ```text
//! [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//! |[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//! |\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
//! ```

use super::masks::{self, Masks};
use super::{contraction, is_letter, is_number, others, run, up_to_numbers, white, white_by_masks};
use crate::unicode::{char_len, class_at, CASELESS, LOWER, MARK, SPACE, UPPER};

/// See `super::ByMasks`.
#[inline(always)]
pub fn end_by_masks(masks: &Masks, text: &[u8], pos: usize) -> usize {
    let first = text[pos];
    let is_in_word = |at| masks::has(&masks.upper, at) || masks::has(&masks.lower, at);
    if first == b' ' && is_in_word(pos + 1) {
        return word_by_masks(masks, text, pos + 1);
    }
    if masks::has(&masks.letter, pos) {
        return word_by_masks(masks, text, pos);
    }
    if masks::has(&masks.number, pos) {
        return up_to_numbers(3, text, pos);
    }
    if masks::has(&masks.lower, pos) {
        return end(text, pos); // a mark, which may stand before a word or be the first of it
    }
    if !matches!(first, b'\r' | b'\n') {
        let after = pos + char_len(text, pos);
        if is_in_word(after) {
            return word_by_masks(masks, text, after);
        }
    }
    let start = pos + usize::from(first == b' ');
    if masks::has(&masks.other, start) {
        let mut end = masks::run(&masks.other, start);
        while matches!(text.get(end), Some(b'\r' | b'\n' | b'/')) {
            end += 1;
        }
        return end;
    }
    let white = white_by_masks(masks, text, pos);
    white.map_or(usize::MAX, |white| white.newline.unwrap_or_else(|| white.leave_one(text, pos)))
}

/// The end of the word that starts with a letter or a mark.
#[inline]
fn word_by_masks(masks: &Masks, text: &[u8], start: usize) -> usize {
    let uppers = masks::run(&masks.upper, start);
    if uppers >= masks.known {
        return usize::MAX;
    }
    let lowers = masks::run(&masks.lower, uppers);
    let end = match lowers > uppers {
        true => lowers,
        // It gives back to the last that is in both sets.
        false => masks::last(start, uppers, |word| masks.upper[word] & masks.lower[word]).unwrap_or(uppers),
    };
    contraction(text, end).unwrap_or(end)
}

pub fn end(text: &[u8], pos: usize) -> usize {
    let (class, len) = class_at(text, pos);
    if is_number(class) {
        return up_to_numbers(3, text, pos);
    }
    // The optional first character is tried first, in each of the two alternatives.
    let after = (!is_letter(class) && !matches!(text[pos], b'\r' | b'\n')).then_some(pos + len);
    let here = (is_letter(class) || class & MARK != 0).then_some(pos);
    for alternative in [upper_then_lowers, uppers_then_lower] {
        for start in [after, here].into_iter().flatten() {
            if let Some(end) = alternative(text, start) {
                return contraction(text, end).unwrap_or(end);
            }
        }
    }
    if let Some(mut end) = others(text, pos) {
        while matches!(text.get(end), Some(b'\r' | b'\n' | b'/')) {
            end += 1;
        }
        return end;
    }
    let white = white(text, pos);
    white.newline.unwrap_or_else(|| white.leave_one(text, pos))
}

const IN_UPPER: u8 = UPPER | CASELESS | MARK;
const IN_LOWER: u8 = LOWER | CASELESS | MARK;

/// `[upper]*[lower]+`, where both sets hold the caseless letters and the marks. The first run is greedy; where no
/// lower-case letter follows it, it gives back to the last of its characters that the second set holds too.
fn upper_then_lowers(text: &[u8], start: usize) -> Option<usize> {
    let (mut pos, mut shared_end) = (start, None);
    while pos < text.len() {
        let (class, len) = class_at(text, pos);
        if class & IN_UPPER == 0 {
            break;
        }
        pos += len;
        if class & IN_LOWER != 0 {
            shared_end = Some(pos);
        }
    }
    let end = run(text, pos, |class| class & IN_LOWER != 0);
    if end > pos {
        Some(end)
    } else {
        shared_end
    }
}

/// `[upper]+[lower]*`
fn uppers_then_lower(text: &[u8], start: usize) -> Option<usize> {
    let end = run(text, start, |class| class & IN_UPPER != 0);
    (end > start).then(|| run(text, end, |class| class & IN_LOWER != 0))
}

/// See `Scanner::prefix_ends`. A cut through a run of upper-case letters leaves a piece that ends at the last of them
/// that could also be lower-case; a cut through white space leaves one that ends at the last newline.
pub fn prefix_ends(text: &[u8], start: usize, end: usize) -> Vec<usize> {
    let mut ends = vec![start; end - start + 1];
    let (mut pos, mut in_lower) = (start, false);
    let mut last = None; // where the piece ends if it cannot end here
    while pos < end {
        let (class, len) = class_at(text, pos);
        in_lower |= class & LOWER != 0;
        let upper_run = !in_lower && class & UPPER != 0;
        let blank = class & SPACE != 0 && !matches!(text[pos], b'\r' | b'\n');
        let is_shared = class & (CASELESS | MARK) != 0 || matches!(text[pos], b'\r' | b'\n');
        pos += len;
        if is_shared {
            last = Some(pos);
        }
        ends[pos - start] = if upper_run || blank { last.unwrap_or(pos) } else { pos };
    }
    ends
}
