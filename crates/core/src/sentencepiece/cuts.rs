//! Where a text can be cut before SentencePiece's normalizer has seen it: what is between two cuts, a *unit*, becomes the
//! same tokens wherever it stands, so that units are looked up as they stand in the text.
//!
//! There is a cut between two characters where
//!
//! 1. no rule of the normalizer reaches across, so that it has read what is in front when it comes to what is behind;
//! 2. the one in front stays as it is and is no space: it does not matter to the next one that spaces were dropped;
//! 3. no entry has side by side what stands on both sides after normalization, so that no token reaches across;
//! 4. the one behind stays as it is or becomes a space, whatever follows: so that 3 can be told.

use super::neighbours::{characters, code, Neighbours};
use super::normalize::{Normalizer, SPACE};
use super::scan::Groups;
use crate::hash::IntMap;
use crate::scored::Scored;
use crate::unicode::{char_len, decode};

/// Stays as it is, unless a rule of several characters starts with it, and is no space.
pub const PLAIN: u8 = 1;
/// Becomes a space.
pub const BLANK: u8 = 2;
/// Some rule of several characters starts with it.
pub const BEGINS: u8 = 4;
/// Some rule has it behind another one.
pub const FOLLOWS: u8 = 8;

/// Characters of the first plane.
const PLANE: usize = 1 << 16;

pub struct Cuts {
    /// By code point, of the first plane; of the others only those that rules know. A few more bytes stand behind, as vector
    /// instructions read four of them for one.
    pub classes: Box<[u8]>,
    others: IntMap<u64, u8>,
    /// Characters that some protected text has side by side; None where there is none.
    pub joined: Option<Neighbours>,
    /// Where cuts are between ASCII characters.
    pub groups: Box<Groups>,
}

/// A character of a text; by default one between which and others there is no cut.
#[derive(Clone, Copy, Default)]
pub struct Character {
    pub class: u8,
    /// Its bytes as a number.
    pub code: u32,
    pub end: usize,
}

impl Character {
    pub fn is_ascii(self) -> bool {
        self.code < 0x80
    }
}

impl Cuts {
    /// None where nothing is known.
    pub fn new(normalizer: &Normalizer, model: &Scored) -> Option<Self> {
        if !normalizer.escape_whitespaces || normalizer.treat_whitespace_as_suffix {
            return None;
        }
        let mut made = Self {
            classes: vec![PLAIN; PLANE + 4].into(),
            others: IntMap::default(),
            joined: None,
            groups: Box::new(Groups::default()),
        };
        made.classes[0xD800..0xE000].fill(0);
        *made.class_mut(' ') = BLANK;
        if let Some(rules) = &normalizer.charsmap {
            let of = rules.characters()?;
            for (c, is_space) in of.alone {
                *made.class_mut(c) = if is_space { BLANK } else { 0 };
            }
            of.first.into_iter().for_each(|c| *made.class_mut(c) |= BEGINS);
            for c in of.later {
                let class = made.class_mut(c);
                *class = *class & !(PLAIN | BLANK) | FOLLOWS;
            }
        }
        let mut joined = Vec::new();
        for key in &normalizer.protected_keys {
            let key = std::str::from_utf8(key).ok().filter(|key| !key.contains(' '))?;
            *made.class_mut(key.chars().next()?) &= !BLANK;
            let codes: Vec<u32> = characters(key.as_bytes()).map(code).collect();
            joined.extend(codes.windows(2).map(|pair| (pair[0], pair[1])));
        }
        *made.class_mut('\u{2581}') &= !PLAIN;
        if !joined.is_empty() {
            joined.sort_unstable();
            joined.dedup();
            made.joined = Some(Neighbours::new(&joined));
        }
        let ascii = std::array::from_fn::<_, 128, _>(|byte| made.ascii_character(byte as u8, 0));
        let front = ascii.map(|right| {
            (0..128).fold(0, |all, left| all | u128::from(made.may_cut_ascii(ascii[left], right, model)) << left)
        });
        made.groups = Box::new(Groups::new(&front, ascii.map(|of| of.class)));
        Some(made)
    }

    fn class_mut(&mut self, c: char) -> &mut u8 {
        match self.classes[..PLANE].get_mut(c as usize) {
            Some(class) => class,
            None => self.others.entry(u64::from(c)).or_insert(PLAIN),
        }
    }

    #[inline]
    pub fn ascii_character(&self, byte: u8, end: usize) -> Character {
        Character { class: self.classes[usize::from(byte)], code: byte.into(), end }
    }

    #[inline(always)]
    pub fn character(&self, text: &[u8], at: usize) -> Character {
        // Most are of three bytes.
        if let Some(&[first, second, third]) = text.get(at..).and_then(|rest| rest.first_chunk::<3>()) {
            let c = usize::from(first & 0x0F) << 12 | usize::from(second & 0x3F) << 6 | usize::from(third & 0x3F);
            if first & 0xF0 == 0xE0 && second & 0xC0 == 0x80 && third & 0xC0 == 0x80 && c >= 0x800 {
                return Character { class: self.classes[c], code: code(&[first, second, third]), end: at + 3 };
            }
        }
        if text[at] < 0x80 {
            return self.ascii_character(text[at], at + 1);
        }
        self.other_character(text, at)
    }

    fn other_character(&self, text: &[u8], at: usize) -> Character {
        let Some((c, len)) = decode(&text[at..]) else {
            return Character { class: 0, code: text[at].into(), end: at + 1 };
        };
        let class = match self.classes[..PLANE].get(c as usize) {
            Some(&class) => class,
            None => self.others.get(&u64::from(c)).copied().unwrap_or(PLAIN),
        };
        Character { class, code: code(&text[at..at + len]), end: at + len }
    }

    /// Whether there is a cut between two characters, if the right one is not the start of what a rule replaces.
    #[inline(always)]
    pub fn may_cut(&self, left: Character, right: Character, model: &Scored) -> bool {
        let after = if right.class & BLANK != 0 { const { code(SPACE) } } else { right.code };
        // All of it, without a branch: what there is cannot be foretold.
        (left.class & PLAIN != 0)
            & (right.class & (PLAIN | BLANK) != 0)
            & model.neighbours().is_some_and(|neighbours| !neighbours.may_have(left.code, after))
            & !self.is_joined(left, right)
    }

    /// The same of ASCII characters, without mistaking a pair for another.
    fn may_cut_ascii(&self, left: Character, right: Character, model: &Scored) -> bool {
        let after = if right.class & BLANK != 0 { const { code(SPACE) } } else { right.code };
        let has = |neighbours: &Neighbours, right: u32| neighbours.has(left.code as u8, right);
        left.class & PLAIN != 0
            && right.class & (PLAIN | BLANK) != 0
            && model.neighbours().is_some_and(|neighbours| !has(neighbours, after))
            && !self.joined.as_ref().is_some_and(|joined| has(joined, right.code))
    }

    #[inline]
    fn is_joined(&self, left: Character, right: Character) -> bool {
        self.joined.as_ref().is_some_and(|joined| joined.may_have(left.code, right.code))
    }

    /// Whether no rule that replaces reaches from a character into what follows it.
    #[inline(always)]
    pub fn ends(&self, of: Character, text: &[u8]) -> bool {
        of.class & BEGINS == 0 || of.end == text.len() || self.character(text, of.end).class & FOLLOWS == 0
    }

    /// The first cut behind `start`, which is the start of a character, or the end of the text.
    #[inline]
    pub fn next(&self, text: &[u8], start: usize, model: &Scored) -> usize {
        let mut left = self.character(text, start);
        let mut at = left.end;
        while at < text.len() {
            let (before, byte) = (text[at - 1], text[at]);
            if (before | byte) < 0x80 {
                if self.groups.cut(before, byte) && self.ends(self.character(text, at), text) {
                    return at;
                }
                at += 1;
                continue;
            }
            if before < 0x80 {
                left = self.ascii_character(before, at);
            }
            let right = self.character(text, at);
            if self.may_cut(left, right, model) && self.ends(right, text) {
                return at;
            }
            (left, at) = (right, right.end);
        }
        text.len()
    }

    /// Puts into `out` what the normalizer makes of a unit where that can be told of its characters alone; false elsewhere.
    pub fn normalize(&self, unit: &[u8], removes_spaces: bool, out: &mut Vec<u8>) -> bool {
        out.clear();
        let (mut at, mut next) = (0, if unit.is_empty() { Character::default() } else { self.character(unit, 0) });
        let mut is_after_space = false;
        while at < unit.len() {
            let of = next;
            next = if of.end < unit.len() { self.character(unit, of.end) } else { Character::default() };
            if of.class & BEGINS != 0 && next.class & FOLLOWS != 0 {
                return false;
            }
            if of.class & PLAIN != 0 {
                out.extend_from_slice(&unit[at..of.end]);
            } else if of.class & BLANK != 0 && !(is_after_space && removes_spaces) && self.joined.is_none() {
                out.extend_from_slice(SPACE);
            } else {
                return false;
            }
            is_after_space = of.class & PLAIN == 0;
            at = of.end;
        }
        true
    }

    /// Whether there is a cut at `at`, which is a place inside the text where a character starts.
    pub fn is_cut(&self, text: &[u8], at: usize, model: &Scored) -> bool {
        let Some(left) = self.before(text, at) else { return false };
        let right = self.character(text, at);
        self.may_cut(left, right, model) && self.ends(right, text)
    }

    /// The character that ends at `at`, if it is well-formed.
    fn before(&self, text: &[u8], at: usize) -> Option<Character> {
        let start = (at.saturating_sub(4)..at).rev().find(|&start| text[start] & 0xC0 != 0x80)?;
        (start + char_len(text, start) == at).then(|| self.character(text, start))
    }

    /// Whether a text that starts like this becomes what it does behind a space.
    pub fn starts_plainly(&self, text: &[u8]) -> bool {
        let first = self.character(text, 0);
        let is_space = self.classes[usize::from(b' ')] & BLANK != 0;
        is_space && first.class & PLAIN != 0 && self.ends(first, text)
    }

    /// Whether a text ends with a character that stays as it is and is no space.
    pub fn ends_plainly(&self, text: &[u8]) -> bool {
        self.before(text, text.len()).is_some_and(|last| last.class & PLAIN != 0)
    }
}
