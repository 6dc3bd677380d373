//! `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

use super::{is_letter, is_number, is_other, run, white};
use crate::unicode::{class_at, SPACE};

pub fn end(text: &[u8], pos: usize) -> usize {
    if text[pos] == b'\'' {
        match (text.get(pos + 1), text.get(pos + 2)) {
            (Some(b's' | b't' | b'm' | b'd'), _) => return pos + 2,
            (Some(b'l'), Some(b'l')) | (Some(b'r' | b'v'), Some(b'e')) => return pos + 3,
            _ => {}
        }
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
