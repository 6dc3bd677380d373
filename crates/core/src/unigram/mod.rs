//! The unigram language model: the segmentation of a text whose entries' scores have the largest sum.
//!
//! `unigram/reference.py` says what each step means; here are the same steps over a [`trie`], [`lattice`] for all that
//! looks at more than the best segmentation, and [`train`], which learns the entries.

pub mod lattice;
pub(crate) mod runs;
mod seed;
pub mod train;
pub mod trie;

pub use runs::{characters, Rules};

use crate::error::{Error, Result};
use crate::sentencepiece::neighbours::Neighbours;
use crate::vocab::{show, Token, Vocab};
use trie::{Trie, NONE, ROOT};

/// What the score of a beginning of a text is kept in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// SentencePiece's: 32 bits.
    Float32,
    /// HF tokenizers': 64 bits.
    Float64,
}

/// What an entry is, as SentencePiece has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Normal,
    /// Has about the best score, so that it is nearly always taken.
    UserDefined,
    /// Is never taken.
    Unused,
    /// `<0x0A>`: what unknown characters become, byte by byte. Text cannot spell it (but for HF tokenizers, where it can).
    Byte,
    /// Stands for what is unknown. Text cannot spell it, but for HF tokenizers.
    Unknown,
}

/// What an unknown character scores below the worst entry.
const UNK_PENALTY: f64 = 10.0;

/// A token that is no entry: a character without one.
pub const UNKNOWN: Token = NONE;

/// Parts are put together only where the sum of all scores is no larger.
pub const MOST_SUM: f64 = 16384.0;

pub struct Unigram {
    pub vocab: Vocab,
    trie: Trie,
    /// Of each entry, as Viterbi adds it up.
    scores: Vec<f64>,
    /// Of each entry, as the lattice has it: SentencePiece counts a user-defined entry's length in characters there.
    lattice_scores: Vec<f64>,
    unk_score: f64,
    precision: Precision,
    /// Where a text falls into parts that are segmented by themselves, but for rounding.
    neighbours: Neighbours,
}

/// The best way to a place in the text.
#[derive(Clone, Copy)]
struct Best<S> {
    score: S,
    /// Where its last token starts; MAX if there is no way yet.
    start: u32,
    token: Token,
}

/// How a precision adds.
trait Sum: Copy + Default + PartialOrd {
    fn plus(self, score: f64) -> Self;
}

impl Sum for f32 {
    #[inline]
    fn plus(self, score: f64) -> Self {
        self + score as Self
    }
}

impl Sum for f64 {
    #[inline]
    fn plus(self, score: f64) -> Self {
        self + score
    }
}

impl Unigram {
    /// `scores` and `kinds` are those of the entries, in the order of the vocabulary.
    pub fn new(vocab: Vocab, scores: &[f64], kinds: &[Kind], precision: Precision) -> Result<Self> {
        if scores.len() != vocab.len() || kinds.len() != vocab.len() {
            return Err(Error::format(format!(
                "there are {} scores and {} kinds for {} entries",
                scores.len(),
                kinds.len(),
                vocab.len()
            )));
        }
        let tokens = || 0..vocab.len() as Token;
        if let Some(token) = tokens().find(|&token| !scores[token as usize].is_finite()) {
            let (entry, score) = (show(vocab.piece(token)), scores[token as usize]);
            return Err(Error::format(format!("the score of {entry} is {score}; a score must be a finite number")));
        }
        let is_scored = |token: &Token| precision == Precision::Float64 || kinds[*token as usize] == Kind::Normal;
        let scored = || tokens().filter(is_scored).map(|token| scores[token as usize]);
        let worst = match precision {
            Precision::Float32 => scored().fold(f64::from(f32::MAX), f64::min),
            Precision::Float64 => scored().fold(f64::INFINITY, f64::min),
        };
        // Above the scores of all others, which are logarithms, and more for one long entry than for two short ones.
        let score = |token: Token, length: usize| match kinds[token as usize] {
            Kind::UserDefined if precision == Precision::Float32 => f64::from((0.1 * (length as f64 - 1.0)) as f32),
            _ => scores[token as usize],
        };
        let chars = |token| vocab.piece(token).iter().filter(|&&byte| byte & 0xC0 != 0x80).count();
        let lattice_score = |token| match precision {
            Precision::Float32 => f64::from(score(token, chars(token)) as f32),
            Precision::Float64 => score(token, chars(token)),
        };
        let mut keys: Vec<(&[u8], Token)> = tokens()
            .filter(|&token| match kinds[token as usize] {
                Kind::Normal | Kind::UserDefined => true,
                Kind::Unused => false,
                Kind::Byte | Kind::Unknown => precision == Precision::Float64,
            })
            .map(|token| (vocab.piece(token), token))
            .collect();
        keys.sort_unstable();
        Ok(Self {
            neighbours: Neighbours::of(keys.iter().map(|key| key.0)),
            trie: Trie::new(&keys)?,
            scores: tokens().map(|token| score(token, vocab.piece_len(token))).collect(),
            lattice_scores: tokens().map(lattice_score).collect(),
            unk_score: match precision {
                Precision::Float32 => f64::from(worst as f32 - UNK_PENALTY as f32),
                Precision::Float64 => worst - UNK_PENALTY,
            },
            precision,
            vocab,
        })
    }

    pub fn precision_name(&self) -> &'static str {
        match self.precision {
            Precision::Float32 => "scores are added up in 32 bits over the whole piece, as SentencePiece does",
            Precision::Float64 => "scores are added up in 64 bits, as HF tokenizers does",
        }
    }

    /// Appends the tokens of the best segmentation of `text`, each with the byte at which it ends. UNKNOWN stands for
    /// one character that is no entry. The text has less than 4 GB.
    pub fn encode(&self, text: &[u8], out: &mut Vec<(Token, usize)>) {
        match self.precision {
            Precision::Float32 => self.viterbi::<f32>(text, out),
            Precision::Float64 => self.viterbi::<f64>(text, out),
        }
    }

    /// Where the part that starts at a place ends: no entry reaches across.
    pub fn part_end(&self, text: &[u8], start: usize) -> usize {
        self.neighbours.next_cut(text, start)
    }

    pub fn score(&self, token: Token) -> f64 {
        if token == UNKNOWN {
            self.unk_score
        } else {
            self.scores[token as usize]
        }
    }

    /// Appends the tokens of the best segmentation of a part, and tells whether it stays the best however sums of at most
    /// `MOST_SUM` are rounded: whether it leads every other by more than the rounding of both can come to.
    pub fn encode_part(&self, part: &[u8], out: &mut Vec<(Token, usize)>) -> bool {
        // The two best ways to each place: their sums, and the start and token of the best.
        let mut best = vec![(f64::NEG_INFINITY, f64::NEG_INFINITY, 0u32, UNKNOWN); part.len() + 1];
        best[0].0 = 0.0;
        let (mut start, mut chars) = (0, 0.0);
        while start < part.len() {
            let (first, second, ..) = best[start];
            let char_end = start + char_len(part, start);
            let mut is_known = false;
            let mut add = |end: usize, token: Token, score: f64| {
                let to = &mut best[end];
                if first + score > to.0 {
                    *to = (first + score, to.0.max(second + score), start as u32, token);
                } else {
                    to.1 = to.1.max(first + score);
                }
            };
            self.trie.prefixes(&part[start..], |len, token| {
                is_known |= start + len == char_end;
                add(start + len, token, self.scores[token as usize]);
            });
            if !is_known {
                add(char_end, UNKNOWN, self.unk_score);
            }
            chars += 1.0;
            start = char_end;
        }
        let from = out.len();
        let mut end = part.len();
        while end > 0 {
            out.push((best[end].3, end));
            end = best[end].2 as usize;
        }
        out[from..].reverse();
        let (first, second, ..) = best[part.len()];
        // Each of at most `chars` additions is off by at most half a unit in the last place.
        let rounding = match self.precision {
            Precision::Float32 => MOST_SUM * f64::from(f32::EPSILON),
            Precision::Float64 => MOST_SUM * f64::EPSILON,
        };
        first - second > chars * rounding && first > -MOST_SUM
    }

    fn viterbi<S: Sum>(&self, text: &[u8], out: &mut Vec<(Token, usize)>) {
        let mut best = vec![Best { score: S::default(), start: u32::MAX, token: UNKNOWN }; text.len() + 1];
        let mut start = 0;
        while start < text.len() {
            let score = best[start].score;
            let char_end = start + char_len(text, start);
            let mut is_known = false;
            let mut node = ROOT;
            for end in start + 1..=text.len() {
                let Some(next) = self.trie.step(node, text[end - 1]) else { break };
                node = next;
                let token = self.trie.token(node);
                if token != NONE {
                    better(&mut best[end], score.plus(self.scores[token as usize]), start, token);
                    is_known |= end == char_end;
                }
            }
            if !is_known {
                better(&mut best[char_end], score.plus(self.unk_score), start, UNKNOWN);
            }
            start = char_end;
        }
        let from = out.len();
        let mut end = text.len();
        while end > 0 {
            out.push((best[end].token, end));
            end = best[end].start as usize;
        }
        out[from..].reverse();
    }
}

/// Of equals, what starts first stays.
#[inline]
fn better<S: Sum>(best: &mut Best<S>, score: S, start: usize, token: Token) {
    if best.start == u32::MAX || score > best.score {
        *best = Best { score, start: start as u32, token };
    }
}

/// How many bytes the character at `at` has, by its first byte alone, as SentencePiece reads it.
#[inline]
pub fn char_len(text: &[u8], at: usize) -> usize {
    let len = match text[at] {
        0xF0.. => 4,
        0xE0.. => 3,
        0xC0.. => 2,
        _ => 1,
    };
    len.min(text.len() - at)
}
