//! What stands between spaces and line ends (`[^ \r\n]+`), or between any white space (`\S+`), which is dropped.

use super::run;
use crate::unicode::{class_at, SPACE};

fn is_space_or_line_end(byte: u8) -> bool {
    matches!(byte, b' ' | b'\r' | b'\n')
}

pub fn end(text: &[u8], pos: usize) -> usize {
    let dropped = is_space_or_line_end(text[pos]);
    text[pos..].iter().position(|&byte| is_space_or_line_end(byte) != dropped).map_or(text.len(), |len| pos + len)
}

pub fn is_dropped(text: &[u8], pos: usize) -> bool {
    is_space_or_line_end(text[pos])
}

pub fn cut(text: &[u8], at: usize) -> bool {
    is_space_or_line_end(text[at - 1]) != is_space_or_line_end(text[at])
}

/// The same for all white space.
pub fn white_space_end(text: &[u8], pos: usize) -> usize {
    let dropped = class_at(text, pos).0 & SPACE;
    run(text, pos, |class| class & SPACE == dropped)
}
