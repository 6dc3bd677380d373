//! What a trainer looks at: words cut into runs, where no entry can reach across, each different run once.
//!
//! SentencePiece forbids entries that hold characters of two scripts, white space inside, and the like, but learns from
//! whole words. As no entry stands across a place where its two characters may not be in one, a word is as probable as
//! its runs together, so learning from runs comes to the same; and there are far fewer different ones.

use std::collections::HashMap;

use crate::error::{Error, Result};
use crate::unicode::ranges;

/// Which strings may be entries, by SentencePiece's names.
#[derive(Debug, Clone)]
pub struct Rules {
    /// In characters.
    pub max_sentencepiece_length: usize,
    pub split_by_unicode_script: bool,
    pub split_by_number: bool,
    pub split_by_whitespace: bool,
    pub split_digits: bool,
    pub treat_whitespace_as_suffix: bool,
    pub allow_whitespace_only_pieces: bool,
}

/// U+2581, which stands for a space.
const SPACE: char = '\u{2581}';

/// Scripts as numbers. Characters of any script are COMMON; marks take the script before them.
const COMMON: u8 = 0;
const INHERITED: u8 = 254;
const ANY: u8 = 255;

pub struct Classes {
    rules: Rules,
    /// By code point.
    scripts: Vec<u8>,
}

impl Classes {
    /// `scripts`: the names of those that Unicode has.
    pub fn new(rules: Rules, scripts: &[String]) -> Result<Self> {
        let mut table = vec![COMMON; 0x110000];
        let mut fill = |name: &str, script: u8| {
            for &(first, last) in ranges(name, "16.0")? {
                table[first as usize..=last as usize].fill(script);
            }
            Ok(())
        };
        for (name, number) in scripts.iter().zip(1..) {
            fill(name, number)?;
        }
        fill("Inherited", INHERITED)?;
        // Japanese words mix them.
        let han = scripts.iter().position(|name| name == "Han").map_or(COMMON, |at| at as u8 + 1);
        for name in ["Hiragana", "Katakana"] {
            fill(name, han)?;
        }
        table[0x30FC] = han;
        Ok(Self { rules, scripts: table })
    }

    fn script(&self, c: char) -> u8 {
        if !self.rules.split_by_number && is_digit(c) {
            return ANY;
        }
        self.scripts[c as usize]
    }

    /// Whether some entry may have the one character behind the other.
    fn may_meet(&self, left: char, right: char) -> bool {
        let rules = &self.rules;
        if left == SPACE || right == SPACE {
            if rules.allow_whitespace_only_pieces && left == right {
                return true;
            }
            return !rules.split_by_whitespace
                || (if rules.treat_whitespace_as_suffix { right } else { left }) == SPACE;
        }
        if rules.split_digits && (is_digit(left) || is_digit(right)) {
            return false;
        }
        let (left, right) = (self.script(left), self.script(right));
        let is_free = |script| script == ANY || script == INHERITED;
        !rules.split_by_unicode_script || is_free(left) || is_free(right) || left == right
    }

    /// Whether a string may be an entry.
    pub fn is_valid(&self, piece: &str) -> bool {
        let rules = &self.rules;
        let count = piece.chars().count();
        if count == 0 || count > rules.max_sentencepiece_length {
            return false;
        }
        let is_space_only = piece.chars().all(|c| c == SPACE);
        let mut before = ANY;
        for (at, c) in piece.chars().enumerate() {
            if c == SPACE {
                let (first, last) = (at == 0, at + 1 == count);
                let is_bad = match (rules.treat_whitespace_as_suffix, rules.split_by_whitespace) {
                    (true, true) => !last,
                    (true, false) => !last && first,
                    (false, true) => !first,
                    (false, false) => !first && last,
                };
                if is_bad && !(rules.allow_whitespace_only_pieces && is_space_only) {
                    return false;
                }
                continue;
            }
            if rules.split_digits && is_digit(c) && count > 1 {
                return false;
            }
            let mut script = self.script(c);
            if script == INHERITED {
                script = before;
            }
            if rules.split_by_unicode_script && script != ANY && before != ANY && script != before {
                return false;
            }
            before = script;
        }
        true
    }
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit() || ('０'..='９').contains(&c)
}

/// Different runs in the order of their bytes, one behind the other, with how often each occurs.
#[derive(Default)]
pub struct Runs {
    pub text: Vec<u8>,
    /// Where each starts; at the end, where the last ends.
    pub offsets: Vec<u32>,
    pub counts: Vec<u64>,
}

impl Runs {
    pub fn get(&self, at: usize) -> &[u8] {
        &self.text[self.offsets[at] as usize..self.offsets[at + 1] as usize]
    }

    pub fn len(&self) -> usize {
        self.counts.len()
    }
}

/// How often each character occurs, the most frequent first, of equals the smaller.
pub fn characters<'w>(words: impl Iterator<Item = (&'w [u8], u64)>) -> Vec<(char, u64)> {
    let mut ascii = [0u64; 128];
    let mut others: HashMap<char, u64> = HashMap::new();
    for (word, count) in words {
        for chunk in word.utf8_chunks() {
            for c in chunk.valid().chars() {
                match c.is_ascii() {
                    true => ascii[c as usize] += count,
                    false => *others.entry(c).or_default() += count,
                }
            }
        }
    }
    let mut all: Vec<(char, u64)> =
        (0..128u8).map(char::from).zip(ascii).filter(|row| row.1 > 0).chain(others).collect();
    all.sort_unstable_by_key(|&(c, count)| (std::cmp::Reverse(count), c));
    all
}

/// The runs of words with counts. Characters that are not `required` are in none.
pub fn runs<'w>(words: impl Iterator<Item = (&'w [u8], u64)>, classes: &Classes, required: &[char]) -> Result<Runs> {
    let mut is_required = vec![false; 0x110000];
    required.iter().for_each(|&c| is_required[c as usize] = true);
    let mut found: HashMap<Box<[u8]>, u64> = HashMap::new();
    let mut add = |run: &[u8], count: u64| {
        if run.is_empty() {
            return;
        }
        match found.get_mut(run) {
            Some(sum) => *sum += count,
            None => {
                found.insert(run.into(), count);
            }
        }
    };
    for (word, count) in words {
        for chunk in word.utf8_chunks() {
            let text = chunk.valid();
            let (mut start, mut before) = (0, None);
            for (at, c) in text.char_indices() {
                let is_known = is_required[c as usize];
                if !is_known || before.is_some_and(|before| !classes.may_meet(before, c)) {
                    add(&text.as_bytes()[start..at], count);
                    start = at;
                }
                before = Some(c);
                if !is_known {
                    start = at + c.len_utf8();
                    before = None;
                }
            }
            add(&text.as_bytes()[start..], count);
        }
    }
    let mut rows: Vec<(Box<[u8]>, u64)> = found.into_iter().collect();
    rows.sort_unstable();
    let mut runs = Runs { offsets: vec![0], ..Runs::default() };
    for (run, count) in rows {
        if runs.text.len() + run.len() >= u32::MAX as usize {
            return Err(Error::value("the different words have 4 GB and more: learn from less text"));
        }
        runs.text.extend_from_slice(&run);
        runs.offsets.push(runs.text.len() as u32);
        runs.counts.push(count);
    }
    Ok(runs)
}
