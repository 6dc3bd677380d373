//! What only models with scores have: segmentations with probabilities, SentencePiece's normalizer, and learning.

use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::counting::{calling, Told};
use crate::errors::{interruptible, Checked};
use subword_core as core;
use subword_core::engine::Engine;
use subword_core::extra::Policy;
use subword_core::pipeline::{Stop, Unit};
use subword_core::random::Random;
use subword_core::scored::Scored;
use subword_core::sentencepiece::learn;
use subword_core::sentencepiece::normalize::{Normalized, Normalizer};
use subword_core::unigram::lattice::{Lattice, Path};
use subword_core::unigram::train::{covering, train, Options};
use subword_core::unigram::{characters, Kind, Precision, Rules, UNKNOWN};

pub fn kinds(kinds: &[u8]) -> Vec<Kind> {
    let kind = |kind: &u8| match kind {
        0 => Kind::Normal,
        1 => Kind::UserDefined,
        2 => Kind::Unused,
        3 => Kind::Byte,
        _ => Kind::Unknown,
    };
    kinds.iter().map(kind).collect()
}

pub fn precision(name: &str) -> PyResult<Precision> {
    match name {
        "float32" => Ok(Precision::Float32),
        "float64" => Ok(Precision::Float64),
        _ => Err(core::Error::format(format!("unknown precision {name:?}"))).checked(),
    }
}

type Tokens = Vec<(u32, usize)>;

fn tokens(model: &Scored, piece: &[u8], path: &Path) -> Tokens {
    let mut out = Tokens::new();
    model.resolve(piece, path, &mut |token, end| out.push((model.vocab().id(token), end)));
    out
}

/// All segmentations of one piece, with their probabilities. A segmentation is a list of ids, each with the byte at which
/// it ends.
#[pyclass(frozen, module = "subword._core")]
pub struct Segmentations {
    model: Arc<core::model::Model>,
    piece: Vec<u8>,
    lattice: Lattice,
}

impl Segmentations {
    pub fn new(model: Arc<core::model::Model>, piece: &[u8]) -> core::Result<Self> {
        let lattice = Lattice::new(scored(&model)?.unigram()?, piece)?;
        Ok(Self { lattice, piece: piece.to_vec(), model })
    }

    fn of(&self, path: &Path) -> PyResult<Tokens> {
        scored(&self.model).map(|scored| tokens(scored, &self.piece, path)).checked()
    }
}

/// A part of a text: an extra token, or a piece.
pub enum Part {
    Extra(u32),
    Piece(Segmentations),
}

pub fn parts(engine: &Engine, text: &[u8], policy: &Policy, stop: Stop<'_>) -> core::Result<Vec<Part>> {
    engine.check_text(text, policy)?;
    let (mut parts, model) = (Vec::new(), engine.shared_model());
    engine.pipeline.run(text, policy, false, stop, |unit| {
        match unit {
            Unit::Extra { index, .. } => parts.push(Part::Extra(engine.pipeline.extras.tokens[index].id)),
            Unit::Pieces { segment, bounds } => {
                for &(start, end) in bounds {
                    parts.push(Part::Piece(Segmentations::new(model.clone(), &segment.bytes[start..end])?));
                }
            }
        }
        Ok(())
    })?;
    Ok(parts)
}

/// Every token that may stand somewhere in a text: its id, the bytes that it covers, and how probable it is there.
pub fn marginals(
    engine: &Engine,
    text: &[u8],
    policy: &Policy,
    alpha: f64,
    stop: Stop<'_>,
) -> core::Result<Vec<(u32, (usize, usize), f64)>> {
    engine.check_text(text, policy)?;
    let mut rows = Vec::new();
    let model = engine.shared_model();
    let model = scored(&model)?;
    engine.pipeline.run(text, policy, false, stop, |unit| {
        match unit {
            Unit::Extra { index, span } => rows.push((engine.pipeline.extras.tokens[index].id, span, 1.0)),
            Unit::Pieces { segment, bounds } => {
                for &(from, to) in bounds {
                    let piece = &segment.bytes[from..to];
                    let lattice = Lattice::new(model.unigram()?, piece)?;
                    for ((start, end, token), share) in lattice.spans().zip(lattice.marginals(alpha).0) {
                        let mut at = start;
                        model.resolve_one(piece, (start, end), token, &mut |token, end| {
                            rows.push((model.vocab().id(token), segment.span(from + at, from + end), share));
                            at = end;
                        });
                    }
                }
            }
        }
        Ok(())
    })?;
    rows.sort_by_key(|&(id, span, _)| (span, id));
    Ok(rows)
}

/// Random numbers from 0 up to, but not, 1.
#[pyfunction]
pub fn random_units(seed: u64, n: usize) -> Vec<f64> {
    let mut random = Random::new(seed);
    (0..n).map(|_| random.unit()).collect()
}

fn scored(model: &core::model::Model) -> core::Result<&Scored> {
    match model {
        core::model::Model::Scored(scored) => Ok(scored),
        _ => Err(core::Error::value("only a unigram model gives probabilities to segmentations")),
    }
}

#[pymethods]
impl Segmentations {
    /// The best ones with their scores.
    fn nbest(&self, py: Python<'_>, n: usize) -> PyResult<Vec<(Tokens, f64)>> {
        let found = interruptible(py, |_| self.lattice.nbest(n))?;
        found.iter().map(|(path, score)| Ok((self.of(path)?, *score))).collect()
    }

    /// Drawn independently, with the logarithms of their probabilities.
    fn sample(&self, py: Python<'_>, n: usize, alpha: f64, seed: u64) -> PyResult<Vec<(Tokens, f64)>> {
        let found: Vec<(Path, f64)> = interruptible(py, |_| {
            let (sums, mut random) = (self.lattice.forward(alpha), Random::new(seed));
            let total = sums[self.lattice.len()];
            let mut draw = || self.lattice.sample(alpha, &sums, &mut random);
            Ok((0..n).map(|_| draw()).map(|(path, score)| (path, alpha * score - total)).collect())
        })?;
        found.iter().map(|(path, log)| Ok((self.of(path)?, *log))).collect()
    }

    /// Different ones, with the logarithms of their probabilities and the perturbed ones.
    fn sample_without_replacement(
        &self,
        py: Python<'_>,
        n: usize,
        alpha: f64,
        seed: u64,
    ) -> PyResult<Vec<(Tokens, f64, f64)>> {
        let draw = |_: Stop<'_>| self.lattice.sample_without_replacement(n, alpha, &mut Random::new(seed));
        let found = interruptible(py, draw)?;
        found.iter().map(|(path, log, noisy)| Ok((self.of(path)?, *log, *noisy))).collect()
    }

    fn entropy(&self, alpha: f64) -> f64 {
        self.lattice.entropy(alpha)
    }

    /// The logarithm of the sum of all probabilities, each to the `alpha`.
    fn log_likelihood(&self, alpha: f64) -> f64 {
        self.lattice.forward(alpha)[self.lattice.len()]
    }

    /// Start, end, id and probability of all that may stand somewhere.
    fn marginals(&self, alpha: f64) -> PyResult<Vec<(usize, usize, u32, f64)>> {
        let scored = scored(&self.model).checked()?;
        let id = |token| scored.vocab().id(if token == UNKNOWN { scored.unk() } else { token });
        let (shares, _) = self.lattice.marginals(alpha);
        Ok(self
            .lattice
            .spans()
            .zip(shares)
            .map(|((start, end, token), share)| (start, end, id(token), share))
            .collect())
    }
}

/// SentencePiece's normalizer, ready to be applied.
#[pyclass(frozen, module = "subword._core")]
pub struct SentencePieceNormalizer(Normalizer);

#[pymethods]
impl SentencePieceNormalizer {
    #[new]
    fn new(rules: &str, flags: [bool; 4], protected: Vec<String>) -> PyResult<Self> {
        let protected: Vec<&str> = protected.iter().map(String::as_str).collect();
        Normalizer::new(rules, flags, &protected).map(Self).checked()
    }

    /// The text, and the byte of the original where what each of its bytes comes from starts.
    fn apply<'py>(&self, py: Python<'py>, text: &[u8]) -> (Bound<'py, PyBytes>, Bound<'py, PyArray1<u64>>) {
        let out = py.detach(|| {
            let mut out = Normalized::default();
            self.0.apply(text, &mut out);
            out
        });
        let starts: Vec<u64> = out.starts.iter().map(|&start| start as u64).collect();
        (PyBytes::new(py, &out.bytes), starts.into_pyarray(py))
    }
}

/// What a Precompiled or StripMarks stage makes of a text: from where to where, and what becomes of it.
#[pyfunction]
pub fn stage_parts<'py>(
    py: Python<'py>,
    text: &[u8],
    row: Vec<String>,
) -> PyResult<Vec<(usize, usize, Bound<'py, PyBytes>)>> {
    let row: Vec<&str> = row.iter().map(String::as_str).collect();
    let parts = core::sentencepiece::hf::parts(&row, text).checked()?;
    Ok(parts.into_iter().map(|(start, end, new)| (start, end, PyBytes::new(py, &new))).collect())
}

/// Which strings may be entries, by SentencePiece's names: the longest in characters, and its flags.
type RuleRow = (usize, bool, bool, bool, bool, bool, bool);

fn rules_of(row: RuleRow) -> Rules {
    Rules {
        max_sentencepiece_length: row.0,
        split_by_unicode_script: row.1,
        split_by_number: row.2,
        split_by_whitespace: row.3,
        split_digits: row.4,
        treat_whitespace_as_suffix: row.5,
        allow_whitespace_only_pieces: row.6,
    }
}

/// Words that lie side by side, with their counts.
fn words<'w>(
    data: &'w [u8],
    offsets: &'w [i64],
    counts: &'w [i64],
) -> core::Result<impl Iterator<Item = (&'w [u8], u64)> + Clone + Send> {
    if offsets.len() != counts.len() + 1
        || offsets.first() != Some(&0)
        || offsets.last() != Some(&(data.len() as i64))
        || offsets.windows(2).any(|pair| pair[0] > pair[1])
        || counts.iter().any(|&count| count < 0)
    {
        return Err(core::Error::value("the offsets of the words do not fit them, or a count is negative"));
    }
    let word = |(pair, &count): (&'w [i64], &i64)| (&data[pair[0] as usize..pair[1] as usize], count as u64);
    Ok(offsets.windows(2).zip(counts).map(word))
}

/// What is merged, in order, and how often each pair was counted then; the characters, the most frequent first; how
/// many tokens the text is before the first merge and after each; how many characters have no entry.
type Merged<'py> = (Vec<Bound<'py, PyBytes>>, Vec<u64>, Vec<char>, Vec<u64>, usize);

/// Learns the merges of SentencePiece's BPE from words with counts.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn learn_sentencepiece_bpe<'py>(
    py: Python<'py>,
    data: &[u8],
    offsets: PyReadonlyArray1<'py, i64>,
    counts: PyReadonlyArray1<'py, i64>,
    scripts: Vec<String>,
    vocab_size: usize,
    character_coverage: f64,
    required_chars: &str,
    rules: RuleRow,
    progress: &Bound<'py, PyAny>,
) -> PyResult<Merged<'py>> {
    let (offsets, counts) = (offsets.as_slice()?, counts.as_slice()?);
    let words = words(data, offsets, counts).checked()?;
    let required_chars = required_chars.chars().collect();
    let options = learn::Options { vocab_size, character_coverage, required_chars, rules: rules_of(rules) };
    let told = Told::new(progress, None);
    let learned = calling(py, |call, stop| {
        let mut tell = |done: usize, so_far: &dyn Fn() -> _| told.tell(done, so_far, call, stop);
        learn::learn(words, &scripts, &options, &mut tell)
    })?;
    let merged = learned.merged.iter().map(|piece| PyBytes::new(py, piece)).collect();
    Ok((merged, learned.counts, learned.characters, learned.tokens, learned.left_out))
}

/// The characters of words with counts that a vocabulary must have, the most frequent first, and how many it leaves out.
#[pyfunction]
pub fn covering_characters<'py>(
    data: &[u8],
    offsets: PyReadonlyArray1<'py, i64>,
    counts: PyReadonlyArray1<'py, i64>,
    character_coverage: f64,
    required_chars: &str,
) -> PyResult<(Vec<(char, u64)>, usize)> {
    let found = characters(words(data, offsets.as_slice()?, counts.as_slice()?).checked()?);
    let asked: Vec<char> = required_chars.chars().collect();
    let covering = covering(&found, usize::MAX, character_coverage, &asked).checked()?;
    let left_out = found.len() - covering.iter().filter(|row| row.1 > 0).count();
    Ok((covering, left_out))
}

/// The table of a `precompiled_charsmap` for sorted keys and their values.
#[pyfunction]
pub fn charsmap_table<'py>(py: Python<'py>, keys: Vec<(Vec<u8>, u32)>) -> PyResult<Bound<'py, PyBytes>> {
    let keys: Vec<(&[u8], u32)> = keys.iter().map(|(key, value)| (&**key, *value)).collect();
    let units = core::sentencepiece::double_array::units(&keys).checked()?;
    let bytes: Vec<u8> = units.into_iter().flat_map(u32::to_le_bytes).collect();
    Ok(PyBytes::new(py, &bytes))
}

/// The logarithm of each share of the whole, the same on every machine.
#[pyfunction]
pub fn log_shares(counts: Vec<u64>) -> Vec<f64> {
    core::unigram::train::log_shares(&counts)
}

/// Learns the entries of a unigram model from words with counts: entries, their scores, the best first; then how many
/// entries there were after each round and the mean log likelihood of a word; then how many characters have no entry.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn learn_unigram<'py>(
    py: Python<'py>,
    data: &[u8],
    offsets: PyReadonlyArray1<'py, i64>,
    counts: PyReadonlyArray1<'py, i64>,
    scripts: Vec<String>,
    vocab_size: usize,
    character_coverage: f64,
    required_chars: &str,
    seed_sentencepiece_size: usize,
    shrinking_factor: f64,
    num_sub_iterations: usize,
    rules: RuleRow,
    threads: usize,
) -> PyResult<(Vec<(Bound<'py, PyBytes>, f64)>, Vec<(usize, f64)>, usize)> {
    let (offsets, counts) = (offsets.as_slice()?, counts.as_slice()?);
    let words = words(data, offsets, counts).checked()?;
    let options = Options {
        vocab_size,
        character_coverage,
        required_chars: required_chars.chars().collect(),
        seed_sentencepiece_size,
        shrinking_factor,
        num_sub_iterations,
        rules: rules_of(rules),
    };
    let learned = interruptible(py, |stop| train(words, &scripts, &options, threads, stop))?;
    let pieces = learned.pieces.iter().map(|(piece, score)| (PyBytes::new(py, piece), *score)).collect();
    Ok((pieces, learned.rounds, learned.left_out))
}
