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
    /// Has so good a score that it is nearly always taken.
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

/// What a user-defined entry scores for each of its bytes but the first.
const RISE: f64 = 0.1;

/// A token that is no entry: a character without one.
pub const UNKNOWN: Token = NONE;

pub struct Unigram {
    pub vocab: Vocab,
    trie: Trie,
    /// The node behind each character of three bytes, by its code point; MAX where no entry starts with it.
    behind: Box<[u32]>,
    /// Of each entry, as Viterbi adds it up.
    scores: Vec<f64>,
    /// Of each entry, as the lattice has it: SentencePiece counts a user-defined entry's length in characters there.
    lattice_scores: Vec<f64>,
    unk_score: f64,
    precision: Precision,
    /// Where a text falls into parts that are segmented by themselves, but for rounding.
    pub neighbours: Neighbours,
}

/// The best way to a place in the text.
#[derive(Clone, Copy)]
struct Best<S> {
    score: S,
    /// Where its last token starts; MAX if there is no way yet.
    start: u32,
    token: Token,
}

/// The two best ways to a place, each token counted with the error: their sums, and the start and token of the best.
#[derive(Clone, Copy)]
pub struct Two {
    first: f64,
    second: f64,
    start: u32,
    token: Token,
}

impl Default for Two {
    fn default() -> Self {
        Self { first: f64::NEG_INFINITY, second: f64::NEG_INFINITY, start: 0, token: UNKNOWN }
    }
}

/// How a precision adds.
trait Sum: Copy + Default + PartialOrd {
    /// From where on a sum is as low as that all are taken anew from it.
    const LOWEST: Self;

    fn plus(self, score: f64) -> Self;
    fn minus(self, other: Self) -> Self;
}

/// Below this, SentencePiece (0.2.3) takes what it has off all sums: so rounding never gets coarser than it is here.
pub const LOWEST: f32 = -100_000.0;

impl Sum for f32 {
    const LOWEST: Self = LOWEST;

    #[inline]
    fn plus(self, score: f64) -> Self {
        self + score as Self
    }

    fn minus(self, other: Self) -> Self {
        self - other
    }
}

impl Sum for f64 {
    const LOWEST: Self = Self::NEG_INFINITY;

    #[inline]
    fn plus(self, score: f64) -> Self {
        self + score
    }

    fn minus(self, other: Self) -> Self {
        self - other
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
        // As SentencePiece 0.2.3 has them: the length is of bytes in Viterbi, and of characters in the lattice.
        let score = |token: Token, length: usize| match kinds[token as usize] {
            Kind::UserDefined if precision == Precision::Float32 => RISE * (length as f64 - 1.0),
            _ => scores[token as usize],
        };
        let chars = |token| vocab.piece(token).iter().filter(|&&byte| byte & 0xC0 != 0x80).count();
        let lattice_score = |token| match precision {
            Precision::Float32 => f64::from(score(token, chars(token)) as f32),
            Precision::Float64 => scores[token as usize],
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
        let trie = Trie::new(&keys)?;
        // Not where some entry ends inside such a character.
        let is_part = |key: &[u8]| key.len() < 3 && key.first() >= Some(&0xE0);
        let mut behind = vec![u32::MAX; if keys.iter().any(|(key, _)| is_part(key)) { 0 } else { 1 << 16 }];
        for first in keys.iter().filter_map(|(key, _)| key.first_chunk::<3>()) {
            let node = first.iter().try_fold(ROOT, |node, &byte| trie.step(node, byte));
            if let (Some(place), Some(node)) = (three_bytes(first).and_then(|c| behind.get_mut(c)), node) {
                *place = node as u32;
            }
        }
        Ok(Self {
            neighbours: Neighbours::of(keys.iter().map(|key| key.0)),
            trie,
            behind: behind.into(),
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
            Precision::Float32 => {
                self.viterbi::<f32>(text, 0.0, out);
            }
            Precision::Float64 => {
                self.viterbi::<f64>(text, 0.0, out);
            }
        }
    }

    /// Where the part that starts at a place ends: no entry reaches across.
    pub fn part_end(&self, text: &[u8], start: usize) -> usize {
        self.neighbours.next_cut(text, start)
    }

    /// The lowest that a character can add to a sum.
    pub fn unk_score(&self) -> f64 {
        self.unk_score
    }

    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Whether no score is positive, so that sums only fall.
    pub fn only_falls(&self) -> bool {
        self.unk_score <= 0.0 && self.scores.iter().all(|&score| score <= 0.0)
    }

    /// Whether sums rise by no more than a tenth a byte.
    pub fn rises_slowly(&self) -> bool {
        let is_low = |token: Token| self.scores[token as usize] <= RISE * self.vocab.piece_len(token) as f64;
        self.unk_score <= 0.0 && (0..self.vocab.len() as Token).all(is_low)
    }

    /// Parts are put together only where the sum of all scores is no larger: a power of two.
    pub fn bound(&self) -> f64 {
        match self.precision {
            Precision::Float32 => 16384.0,
            Precision::Float64 => 1_073_741_824.0,
        }
    }

    pub fn score(&self, token: Token) -> f64 {
        if token == UNKNOWN {
            self.unk_score
        } else {
            self.scores[token as usize]
        }
    }

    /// Appends the tokens of the best segmentation of a part, and tells whether it is the best behind every sum, as long as
    /// the sum is at most `bound` at its end: why that can be told, see `units`.
    pub fn encode_part(&self, part: &[u8], bound: f64, room: &mut Vec<Two>, out: &mut Vec<(Token, usize)>) -> bool {
        // A hundredth more than it is, for the rounding of the sums here.
        let bits = match self.precision {
            Precision::Float32 => f64::from(f32::EPSILON),
            Precision::Float64 => f64::EPSILON,
        };
        let error = 1.01 * bound * 0.25 * bits;
        room.clear();
        room.resize(part.len() + 1, Two::default());
        let best = &mut room[..=part.len()];
        best[0].first = 0.0;
        let mut start = 0;
        while start < part.len() {
            let Two { first, second, .. } = best[start];
            let char_end = start + char_len(part, start);
            let mut is_known = false;
            let mut add = |end: usize, token: Token, score: f64| {
                let to = &mut best[end];
                let (ours, next) = (first + (score + error), second + (score + error));
                // Without a branch on what cannot be foretold.
                let is_better = ours > to.first;
                let (high, low) = if is_better { (to.first, next) } else { (ours, to.second) };
                to.second = high.max(low);
                to.first = if is_better { ours } else { to.first };
                to.start = if is_better { start as u32 } else { to.start };
                to.token = if is_better { token } else { to.token };
            };
            let behind = part[start..].first_chunk().and_then(three_bytes).and_then(|c| self.behind.get(c));
            let (mut node, mut end) = match behind {
                Some(&node) => (node as usize, start + 3),
                None => (ROOT, start),
            };
            if node != u32::MAX as usize {
                loop {
                    let token = self.trie.token(node);
                    if token != NONE {
                        is_known |= end == char_end;
                        add(end, token, self.scores[token as usize]);
                    }
                    let Some(next) = part.get(end).and_then(|&byte| self.trie.step(node, byte)) else { break };
                    (node, end) = (next, end + 1);
                }
            }
            if !is_known {
                add(char_end, UNKNOWN, self.unk_score);
            }
            start = char_end;
        }
        let from = out.len();
        let mut end = part.len();
        while end > 0 {
            out.push((best[end].token, end));
            end = best[end].start as usize;
        }
        out[from..].reverse();
        let Two { first, second, .. } = best[part.len()];
        let tokens = (out.len() - from) as f64;
        first - second > 2.0 * tokens * error && first > -bound
    }

    /// Appends the tokens of the best segmentation of what stands behind a sum; what the sum is then.
    pub fn encode_from(&self, text: &[u8], sum: f32, out: &mut Vec<(Token, usize)>) -> f32 {
        self.viterbi::<f32>(text, sum, out)
    }

    fn viterbi<S: Sum>(&self, text: &[u8], sum: S, out: &mut Vec<(Token, usize)>) -> S {
        let mut best = vec![Best { score: sum, start: u32::MAX, token: UNKNOWN }; text.len() + 1];
        let (mut start, mut reached) = (0, 0);
        while start < text.len() {
            let score = best[start].score;
            if score < S::LOWEST {
                best[start..=reached].iter_mut().for_each(|best| best.score = best.score.minus(score));
            }
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
                    reached = reached.max(end);
                }
            }
            if !is_known {
                better(&mut best[char_end], score.plus(self.unk_score), start, UNKNOWN);
                reached = reached.max(char_end);
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
        best[text.len()].score
    }
}

/// Of equals, what starts first stays.
#[inline]
fn better<S: Sum>(best: &mut Best<S>, score: S, start: usize, token: Token) {
    if best.start == u32::MAX || score > best.score {
        *best = Best { score, start: start as u32, token };
    }
}

/// The code point of a character of three bytes, or what would be one but is too long for it.
#[inline]
fn three_bytes(&[first, second, third]: &[u8; 3]) -> Option<usize> {
    let is_one = first & 0xF0 == 0xE0 && second & 0xC0 == 0x80 && third & 0xC0 == 0x80;
    let c = usize::from(first & 0x0F) << 12 | usize::from(second & 0x3F) << 6 | usize::from(third & 0x3F);
    is_one.then_some(c)
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
