//! SentencePiece's normalization rules as its files have them (`precompiled_charsmap`): a double array (Darts) that says
//! which strings are replaced, and the texts that replace them, each ended by a zero byte.

use super::normalize::base64;
use crate::error::{Error, Result};
use crate::unicode::char_len;

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Charsmap {
    units: Vec<u32>,
    replacements: Vec<u8>,
}

/// What a byte that is in no well-formed character becomes.
const REPLACEMENT: &str = "\u{FFFD}";

/// The characters of rules.
#[derive(Debug, Default)]
pub struct Characters {
    /// Those that are replaced by themselves, and whether by a space.
    pub alone: Vec<(char, bool)>,
    /// The first of rules of several.
    pub first: Vec<char>,
    /// All others of these.
    pub later: Vec<char>,
}

/// The bytes that follow a node, by its base.
struct Children {
    starts: Vec<u32>,
    bytes: Vec<u8>,
}

impl Children {
    fn new(units: &[u32]) -> Self {
        let child =
            |(at, &unit): (u32, &u32)| (label(unit) < 256).then(|| ((at ^ label(unit)) as usize, label(unit) as u8));
        let mut starts = vec![0; units.len().next_multiple_of(256) + 1];
        (0..).zip(units).filter_map(child).for_each(|(base, _)| starts[base + 1] += 1);
        (1..starts.len()).for_each(|base| starts[base] += starts[base - 1]);
        let (mut next, mut bytes) = (starts.clone(), vec![0; units.len()]);
        for (base, byte) in (0..).zip(units).filter_map(child) {
            bytes[next[base] as usize] = byte;
            next[base] += 1;
        }
        Self { starts, bytes }
    }

    fn of(&self, base: usize) -> &[u8] {
        match self.starts.get(base..base.saturating_add(2)) {
            Some(&[from, to]) => &self.bytes[from as usize..to as usize],
            _ => &[],
        }
    }
}

fn label(unit: u32) -> u32 {
    unit & (1 << 31 | 0xFF)
}

fn offset(unit: u32) -> usize {
    ((unit >> 10) << ((unit & (1 << 9)) >> 6)) as usize
}

impl Charsmap {
    /// The content of the field. None for an empty one: no rules.
    pub fn new(data: &[u8]) -> Result<Option<Self>> {
        if data.is_empty() {
            return Ok(None);
        }
        let broken =
            |why: &str| Error::format(format!("the normalization rules (precompiled_charsmap) are damaged: {why}"));
        let Some((size, rest)) = data.split_first_chunk::<4>() else {
            return Err(broken("they have fewer than four bytes"));
        };
        let size = u32::from_le_bytes(*size) as usize;
        if size >= rest.len() || size == 0 || !size.is_multiple_of(4) {
            return Err(broken(&format!("a table of {size} bytes in {} bytes", data.len())));
        }
        let (table, replacements) = rest.split_at(size);
        if replacements.last() != Some(&0) {
            return Err(broken("the last text has no end"));
        }
        let units = table.as_chunks::<4>().0.iter().map(|unit| u32::from_le_bytes(*unit)).collect();
        Ok(Some(Self { units, replacements: replacements.to_vec() }))
    }

    /// The content of the field in base64.
    pub fn from_base64(text: &str) -> Result<Option<Self>> {
        Self::new(&base64(text).ok_or_else(|| Error::format("the normalization rules are not in base64"))?)
    }

    /// A text with what rules replace replaced, and all else as it is.
    pub fn apply(&self, text: &[u8]) -> Vec<u8> {
        let (mut out, mut at) = (Vec::with_capacity(text.len()), 0);
        while at < text.len() {
            let (len, replacement) = self.longest(&text[at..]).unwrap_or((1, &text[at..=at]));
            out.extend_from_slice(replacement);
            at += len.max(1);
        }
        out
    }

    /// The longest rule that `text` starts with: how many bytes it replaces, and by what.
    pub fn longest(&self, text: &[u8]) -> Option<(usize, &[u8])> {
        let mut found = None;
        self.prefixes(text, |len, value| found = Some((len, value)));
        found.map(|(len, value)| (len, self.replacement(value)))
    }

    /// Which characters rules are about; None if some rule is no well-formed text.
    pub fn characters(&self) -> Option<Characters> {
        let mut found = Characters::default();
        let Some(&root) = self.units.first() else { return Some(found) };
        let children = Children::new(&self.units);
        // Rules that end alike share nodes: each is gone through once.
        let mut is_seen = vec![false; self.units.len().next_multiple_of(256)];
        let mut behind = Vec::new();
        self.each_character(&children, offset(root), |c, at| {
            let base = at ^ offset(self.units[at]);
            if let Some(replacement) = self.replacement_at(at) {
                found.alone.push((c, replacement == b" "));
            }
            if !children.of(base).is_empty() {
                found.first.push(c);
                behind.push(base);
            }
        })?;
        while let Some(base) = behind.pop() {
            if !std::mem::replace(is_seen.get_mut(base)?, true) {
                self.each_character(&children, base, |c, at| {
                    found.later.push(c);
                    behind.push(at ^ offset(self.units[at]));
                })?;
            }
        }
        Some(found)
    }

    /// Gives `visit` the characters that come next in rules, and the unit of each.
    fn each_character(&self, children: &Children, base: usize, mut visit: impl FnMut(char, usize)) -> Option<()> {
        let mut open = vec![([0u8; 4], 0, base)];
        while let Some((mut bytes, len, base)) = open.pop() {
            for &byte in children.of(base) {
                let at = base ^ usize::from(byte);
                bytes[len] = byte;
                let is_whole = std::str::from_utf8(&bytes[..=len]).ok().and_then(|text| text.chars().next());
                if let Some(replacement) = self.replacement_at(at) {
                    // The text ends a byte 0, so that no rule may go on behind one.
                    std::str::from_utf8(replacement).ok().filter(|_| is_whole.is_some() && byte > 0)?;
                }
                match is_whole {
                    Some(c) => visit(c, at),
                    None if len < 3 => open.push((bytes, len + 1, at ^ offset(self.units[at]))),
                    None => return None,
                }
            }
        }
        Some(())
    }

    /// What a rule that ends at a unit gives, if one does.
    fn replacement_at(&self, at: usize) -> Option<&[u8]> {
        let unit = self.units[at];
        let value = self.units.get(at ^ offset(unit)).filter(|_| unit >> 8 & 1 == 1)?;
        Some(self.replacement((value & !(1 << 31)) as usize))
    }

    /// Whether some rule of three bytes and more may start with `byte` and another of ASCII.
    pub fn goes_on(&self, byte: u8) -> bool {
        let step = |at: usize, byte: u8| {
            let at = at ^ usize::from(byte);
            let &unit = self.units.get(at)?;
            (label(unit) == u32::from(byte)).then_some(at ^ offset(unit))
        };
        let Some(first) = self.units.first().and_then(|&root| step(offset(root), byte)) else { return false };
        (0..128).any(|next| step(first, next).is_some())
    }

    /// The shortest rule that `text` starts with.
    fn shortest(&self, text: &[u8]) -> Option<&[u8]> {
        let mut found = None;
        self.prefixes(text, |_, value| {
            found.get_or_insert(value);
        });
        found.map(|value| self.replacement(value))
    }

    /// The text that stands at `value`; nothing if that is out of bounds, which sound files do not have.
    fn replacement(&self, value: usize) -> &[u8] {
        let text = self.replacements.get(value..).unwrap_or_default();
        &text[..text.iter().position(|&byte| byte == 0).unwrap_or(text.len())]
    }

    fn prefixes(&self, text: &[u8], mut visit: impl FnMut(usize, usize)) {
        let Some(&root) = self.units.first() else { return };
        let mut at = offset(root);
        for (i, &byte) in text.iter().enumerate() {
            at ^= usize::from(byte);
            let Some(&unit) = self.units.get(at) else { return };
            if label(unit) != u32::from(byte) {
                return;
            }
            at ^= offset(unit);
            if unit >> 8 & 1 == 1 {
                let Some(&value) = self.units.get(at) else { return };
                visit(i + 1, (value & !(1 << 31)) as usize);
            }
        }
    }

    /// What the start of `text`, which is not empty, becomes as SentencePiece has it, and how many bytes that replaces.
    pub fn first<'a>(rules: Option<&'a Self>, text: &'a [u8]) -> (usize, &'a [u8]) {
        if let Some(found) = rules.and_then(|rules| rules.longest(text)) {
            return found;
        }
        let len = char_len(text, 0);
        match std::str::from_utf8(&text[..len]) {
            Ok(_) => (len, &text[..len]),
            Err(_) => (1, REPLACEMENT.as_bytes()),
        }
    }

    /// What one grapheme becomes as HF tokenizers has it: one of less than six bytes as a whole, by the *shortest* rule
    /// that it starts with; if there is none, each character by the shortest rule that this starts with.
    pub fn hf_grapheme(&self, grapheme: &str, mut out: impl FnMut(&str, &[u8])) {
        if grapheme.len() < 6 {
            if let Some(replacement) = self.shortest(grapheme.as_bytes()) {
                return out(grapheme, replacement);
            }
        }
        let mut rest = grapheme;
        while let Some(character) = rest.chars().next() {
            let (part, after) = rest.split_at(character.len_utf8());
            rest = after;
            out(part, self.shortest(part.as_bytes()).unwrap_or(part.as_bytes()));
        }
    }
}
