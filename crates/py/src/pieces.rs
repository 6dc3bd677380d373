//! Models whose entries have scores: the unigram language model and SentencePiece's byte-pair encoding, by themselves.

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{interruptible, Checked};
use subword_core as core;
use subword_core::sentencepiece::bpe::ScoreBpe;
use subword_core::sentencepiece::charsmap::Charsmap;
use subword_core::sentencepiece::normalize::{Normalized, Normalizer};
use subword_core::unigram::lattice::{Lattice, Path, Random};
use subword_core::unigram::train::{train, Options};
use subword_core::unigram::trie::{Trie, NONE};
use subword_core::unigram::{Kind, Precision, Rules, Unigram};
use subword_core::vocab::Vocab;

enum Model {
    Unigram(Unigram),
    Bpe(ScoreBpe),
}

/// A model of pieces with scores. Tokens are told as indices of entries, unknown characters as -1.
#[pyclass(frozen, module = "subword._core")]
pub struct ScoredModel(Model);

type Tokens = Vec<(i64, usize)>;

fn tokens(path: &[(u32, usize)]) -> Tokens {
    path.iter().map(|&(token, end)| (if token == NONE { -1 } else { token.into() }, end)).collect()
}

#[pymethods]
impl ScoredModel {
    #[new]
    fn new(
        py: Python<'_>,
        algorithm: &str,
        pieces: &[u8],
        offsets: PyReadonlyArray1<'_, u64>,
        ids: PyReadonlyArray1<'_, u32>,
        scores: PyReadonlyArray1<'_, f64>,
        kinds: &[u8],
        precision: &str,
    ) -> PyResult<Self> {
        let precision = match precision {
            "float32" => Precision::Float32,
            "float64" => Precision::Float64,
            _ => return Err(core::Error::format(format!("unknown precision {precision:?}"))).checked(),
        };
        let kinds: Vec<Kind> = kinds
            .iter()
            .map(|kind| match kind {
                0 => Kind::Normal,
                1 => Kind::UserDefined,
                _ => Kind::Unused,
            })
            .collect();
        let (offsets, ids, scores) = (offsets.as_slice()?, ids.as_slice()?, scores.as_slice()?);
        interruptible(py, |_| {
            let vocab = Vocab::new(pieces.to_vec(), offsets, ids.to_vec())?;
            Ok(Self(match algorithm {
                "unigram" => Model::Unigram(Unigram::new(vocab, scores, &kinds, precision)?),
                "bpe" => Model::Bpe(ScoreBpe::new(vocab, scores, &kinds)?),
                _ => return Err(core::Error::format(format!("unknown algorithm {algorithm:?}"))),
            }))
        })
    }

    fn encode(&self, py: Python<'_>, text: &[u8]) -> PyResult<Tokens> {
        interruptible(py, |_| {
            let mut out = Vec::new();
            match &self.0 {
                Model::Unigram(model) => model.encode(text, &mut out),
                Model::Bpe(model) => model.encode(text, &mut out),
            }
            Ok(tokens(&out))
        })
    }

    /// The best segmentations with their scores.
    fn nbest(&self, py: Python<'_>, text: &[u8], n: usize) -> PyResult<Vec<(Tokens, f64)>> {
        let lattice = self.lattice(text)?;
        let found = interruptible(py, |_| lattice.nbest(n))?;
        Ok(found.into_iter().map(|(path, score)| (tokens(&path), score)).collect())
    }

    /// Segmentations drawn independently, with the logarithms of their probabilities.
    fn sample(&self, py: Python<'_>, text: &[u8], n: usize, alpha: f64, seed: u64) -> PyResult<Vec<(Tokens, f64)>> {
        let lattice = self.lattice(text)?;
        let found: Vec<(Path, f64)> = interruptible(py, |_| {
            let (sums, mut random) = (lattice.forward(alpha), Random::new(seed));
            let total = sums[lattice.len()];
            let mut draw = || lattice.sample(alpha, &sums, &mut random);
            Ok((0..n).map(|_| draw()).map(|(path, score)| (path, alpha * score - total)).collect())
        })?;
        Ok(found.into_iter().map(|(path, score)| (tokens(&path), score)).collect())
    }

    /// Different segmentations, with the logarithms of their probabilities and the perturbed ones.
    fn sample_without_replacement(
        &self,
        py: Python<'_>,
        text: &[u8],
        n: usize,
        alpha: f64,
        seed: u64,
    ) -> PyResult<Vec<(Tokens, f64, f64)>> {
        let lattice = self.lattice(text)?;
        let found = interruptible(py, |_| lattice.sample_without_replacement(n, alpha, &mut Random::new(seed)))?;
        Ok(found.into_iter().map(|(path, score, noisy)| (tokens(&path), score, noisy)).collect())
    }

    fn entropy(&self, text: &[u8], alpha: f64) -> PyResult<f64> {
        Ok(self.lattice(text)?.entropy(alpha))
    }

    /// The logarithm of the sum of all segmentations' probabilities, for each of some texts.
    fn log_likelihoods(&self, py: Python<'_>, texts: Vec<Vec<u8>>) -> PyResult<Vec<f64>> {
        let Model::Unigram(model) = &self.0 else { return self.lattice(&[]).map(|_| Vec::new()) };
        interruptible(py, |_| {
            let of = |text: &Vec<u8>| Lattice::new(model, text).map(|lattice| lattice.forward(1.0)[lattice.len()]);
            texts.iter().map(of).collect()
        })
    }

    /// Start, end, token and probability of each node, and the logarithm of the sum of all segmentations' probabilities.
    fn marginals(&self, text: &[u8], alpha: f64) -> PyResult<(Vec<(usize, usize, i64, f64)>, f64)> {
        let lattice = self.lattice(text)?;
        let (shares, total) = lattice.marginals(alpha);
        let token = |token: u32| if token == NONE { -1 } else { token.into() };
        let rows = lattice.spans().zip(shares).map(|((start, end, id), share)| (start, end, token(id), share));
        Ok((rows.collect(), total))
    }
}

impl ScoredModel {
    fn lattice(&self, text: &[u8]) -> PyResult<Lattice> {
        match &self.0 {
            Model::Unigram(model) => Lattice::new(model, text).checked(),
            Model::Bpe(_) => Err(core::Error::value("only a unigram model gives probabilities to segmentations")).checked(),
        }
    }
}

/// SentencePiece's normalizer: the text, and the byte of the original where what each of its bytes comes from starts.
#[pyfunction]
#[allow(clippy::fn_params_excessive_bools)]
pub fn sentencepiece_normalize<'py>(
    py: Python<'py>,
    text: &[u8],
    charsmap: &[u8],
    add_dummy_prefix: bool,
    remove_extra_whitespaces: bool,
    escape_whitespaces: bool,
    treat_whitespace_as_suffix: bool,
    mut protected: Vec<Vec<u8>>,
) -> PyResult<(Bound<'py, PyBytes>, Vec<usize>)> {
    protected.sort();
    protected.dedup();
    let keys: Vec<(&[u8], u32)> = protected.iter().filter(|key| !key.is_empty()).map(|key| (&**key, 0)).collect();
    let normalizer = Normalizer {
        charsmap: Charsmap::new(charsmap).checked()?,
        add_dummy_prefix,
        remove_extra_whitespaces,
        escape_whitespaces,
        treat_whitespace_as_suffix,
        protected: if keys.is_empty() { None } else { Some(Trie::new(&keys).checked()?) },
    };
    let mut out = Normalized::default();
    normalizer.apply(text, &mut out);
    Ok((PyBytes::new(py, &out.bytes), out.starts))
}

/// Which strings may be entries, by SentencePiece's names: the longest in characters, and its flags.
type RuleRow = (usize, bool, bool, bool, bool, bool, bool);

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
    if offsets.len() != counts.len() + 1 || offsets.first() != Some(&0) || offsets.last() != Some(&(data.len() as i64))
        || offsets.windows(2).any(|pair| pair[0] > pair[1]) || counts.iter().any(|&count| count < 0)
    {
        return Err(core::Error::value("the offsets of the words do not fit them, or a count is negative")).checked();
    }
    let options = Options {
        vocab_size,
        character_coverage,
        required_chars: required_chars.chars().collect(),
        seed_sentencepiece_size,
        shrinking_factor,
        num_sub_iterations,
        rules: Rules {
            max_sentencepiece_length: rules.0,
            split_by_unicode_script: rules.1,
            split_by_number: rules.2,
            split_by_whitespace: rules.3,
            split_digits: rules.4,
            treat_whitespace_as_suffix: rules.5,
            allow_whitespace_only_pieces: rules.6,
        },
    };
    let learned = interruptible(py, |stop| {
        let word = |(pair, &count): (&[i64], &i64)| (&data[pair[0] as usize..pair[1] as usize], count as u64);
        let words = offsets.windows(2).zip(counts).map(word);
        train(words, &scripts, &options, threads, stop)
    })?;
    let pieces = learned.pieces.iter().map(|(piece, score)| (PyBytes::new(py, piece), *score)).collect();
    Ok((pieces, learned.rounds, learned.left_out))
}
