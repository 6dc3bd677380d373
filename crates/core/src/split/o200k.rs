//! Letters split by case, a contraction kept with its word:
//!
//! ```text
//! [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//! |[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//! |\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
//! ```

use super::{contraction, is_letter, is_number, others, run, up_to_three_numbers, white};
use crate::unicode::{class_at, CASELESS, LOWER, MARK, SPACE, UPPER};

pub fn end(text: &[u8], pos: usize) -> usize {
    let (class, len) = class_at(text, pos);
    if is_number(class) {
        return up_to_three_numbers(text, pos);
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
