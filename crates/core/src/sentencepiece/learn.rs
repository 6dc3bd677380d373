//! Learning the merges of SentencePiece's BPE: over characters, and only what its rules allow as an entry.

use std::collections::HashMap;
use std::sync::Arc;

use crate::bpe::alphabet::{Alphabet, HOLE};
use crate::bpe::learn::{learn_as_sentencepiece, Progress};
use crate::error::Result;
use crate::unigram::runs::{characters, runs, Classes, Rules};
use crate::unigram::train::covering;

/// Settings by SentencePiece's names.
pub struct Options {
    /// How many entries are wanted, characters among them.
    pub vocab_size: usize,
    pub character_coverage: f64,
    pub required_chars: Vec<char>,
    pub rules: Rules,
}

/// What was learned.
#[derive(Debug, Default, PartialEq)]
pub struct Learned {
    /// What was merged, in the order of learning.
    pub merged: Vec<Vec<u8>>,
    /// The characters, the most frequent first.
    pub characters: Vec<char>,
    /// How often each pair was counted when it was merged, and how many tokens the text was before and after each.
    pub counts: Vec<u64>,
    pub tokens: Vec<u64>,
    /// Characters without an entry, for their rareness.
    pub left_out: usize,
}

/// The characters that get entries, and what may be made of them.
struct Required {
    symbols: Vec<char>,
    ids: HashMap<char, u32>,
    classes: Classes,
}

impl Alphabet for Required {
    fn symbols(&self) -> Vec<Arc<[u8]>> {
        self.symbols.iter().map(|c| Arc::from(c.encode_utf8(&mut [0; 4]).as_bytes())).collect()
    }

    fn push_symbols(&self, piece: &[u8], out: &mut Vec<u32>) {
        let text = std::str::from_utf8(piece).unwrap_or_default();
        out.extend(text.chars().map(|c| self.ids.get(&c).copied().unwrap_or(HOLE)));
    }

    fn allows(&self, left: &[u8], right: &[u8]) -> bool {
        std::str::from_utf8(&[left, right].concat()).is_ok_and(|piece| self.classes.is_valid(piece))
    }
}

/// Learns from words with counts.
pub fn learn<'w>(
    words: impl Iterator<Item = (&'w [u8], u64)> + Clone,
    scripts: &[String],
    options: &Options,
    progress: Progress<'_>,
) -> Result<Learned> {
    let found = characters(words.clone());
    let required = covering(&found, options.vocab_size, options.character_coverage, &options.required_chars)?;
    let symbols: Vec<char> = required.iter().map(|row| row.0).collect();
    let classes = Classes::new(options.rules.clone(), scripts)?;
    // Nothing merges from one run into the next, so they can be counted apart.
    let runs = runs(words, &classes, &symbols)?;
    let alphabet = Required { ids: symbols.iter().copied().zip(0..).collect(), symbols, classes };
    let pieces = (0..runs.len()).map(|run| (runs.get(run), runs.counts[run])).collect();
    let learned = learn_as_sentencepiece(pieces, options.vocab_size - required.len(), &alphabet, progress)?;
    let mut spelled: Vec<Vec<u8>> = alphabet.symbols().iter().map(|symbol| symbol.to_vec()).collect();
    for (left, right) in learned.merges {
        spelled.push([&*spelled[left as usize], &*spelled[right as usize]].concat());
    }
    Ok(Learned {
        merged: spelled.split_off(required.len()),
        counts: learned.counts,
        tokens: learned.tokens,
        left_out: found.len() - required.len(),
        characters: alphabet.symbols,
    })
}
