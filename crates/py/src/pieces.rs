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
use subword_core::unigram::trie::{Trie, NONE};
use subword_core::unigram::{Kind, Precision, Unigram};
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
                Model::Unigram(model) => model.encode(text, &mut Default::default(), &mut out)?,
                Model::Bpe(model) => model.encode(text, &mut Default::default(), &mut out),
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
