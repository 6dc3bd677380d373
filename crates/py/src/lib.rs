//! `subword._core`: signatures, GIL release, one error mapping. What things mean stands in `crates/core`; what they
//! are for, in the Python package.

mod counting;
mod entries;
mod errors;
mod numbers;
mod pieces;
mod text;

use std::ffi::CString;
use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use errors::{interruptible, run, Checked};
use numbers::Numbers;
use subword_core as core;
use subword_core::bpe::characters::{CharacterBpe, CharacterRow};
use subword_core::bpe::units::UnitRow;
use subword_core::bpe::{Bpe, Known, Priority, Proven};
use subword_core::chunk::Limits;
use subword_core::decode::Decoding;
use subword_core::ends::Ends;
use subword_core::extra::{Extra, Kind};
use subword_core::limit::Side;
use subword_core::longest::LongestMatch;
use subword_core::parallel::both;
use subword_core::pipeline::Stop;
use subword_core::scored::Scored;
use subword_core::split::regex::{Regex, Syntax};
use subword_core::vocab::Vocab;
use subword_core::wordlevel::WordLevel;
use subword_core::wordpiece::WordPiece;
use text::{ids_of, str_of, Rows, Text, Texts};

/// A row of `extra`: id, content, kind, single_word, lstrip, rstrip, normalized.
type ExtraRow = (u32, String, String, bool, bool, bool, bool);

fn extras(rows: Vec<ExtraRow>) -> PyResult<Vec<Extra>> {
    let extra = |(id, content, kind, single_word, lstrip, rstrip, normalized): ExtraRow| {
        let kind = match kind.as_str() {
            "special" => Kind::Special,
            "added" => Kind::Added,
            "unmatchable" => Kind::Unmatchable,
            _ => return Err(core::Error::format(format!("unknown kind of extra token: {kind:?}"))),
        };
        Ok(Extra { id, content: content.into_bytes(), kind, single_word, lstrip, rstrip, normalized })
    };
    rows.into_iter().map(extra).collect::<core::Result<_>>().checked()
}

#[pyfunction]
fn unicode_ranges(name: &str, unicode: &str) -> PyResult<Vec<(u32, u32)>> {
    match name {
        "N" => core::unicode::numbers(unicode),
        _ => core::unicode::ranges(name, unicode).map(<[_]>::to_vec),
    }
    .checked()
}

#[pyfunction]
fn normalize(text: &str, form: &str, unicode: &str) -> PyResult<String> {
    core::normalize::normalized(text, form, unicode).checked()
}

#[pyfunction]
fn lowercase(text: &str, final_sigma: bool, unicode: &str) -> PyResult<String> {
    core::lowercase::Lowercase::new(final_sigma, unicode).map(|lowercase| lowercase.apply(text)).checked()
}

#[pyfunction]
fn text_ends(py: Python<'_>, text: Text<'_>) -> PyResult<Vec<(usize, &'static str)>> {
    let bytes = text.bytes();
    let found = interruptible(py, |_| Ok(core::ends::ends(bytes)))?;
    Ok(found.into_iter().map(|(at, kind)| (at, kind.name())).collect())
}

#[pyfunction]
fn regex_covers(regex: &str, syntax: &str, allow_backtracking: bool) -> PyResult<bool> {
    let regex = Syntax::new(syntax).and_then(|syntax| Regex::new(regex, syntax, allow_backtracking)).checked()?;
    Ok(regex.covers())
}

#[pyfunction]
fn same_in_both_syntaxes(regex: &str) -> PyResult<bool> {
    Ok(Regex::same((regex, Syntax::Tiktoken), (regex, Syntax::Oniguruma)).unwrap_or(false))
}

#[pyclass(frozen, module = "subword._core")]
struct Policy(core::extra::Policy);

#[pyclass(frozen, module = "subword._core")]
struct Model(Arc<core::model::Model>);

/// The rows of an array of two columns, side by side in memory.
fn pairs_of(rows: &PyReadonlyArray2<'_, u32>) -> PyResult<Vec<(u32, u32)>> {
    Ok(rows.as_slice()?.chunks_exact(2).map(|row| (row[0], row[1])).collect())
}

#[pymethods]
impl Model {
    #[staticmethod]
    #[allow(clippy::too_many_arguments)]
    fn bpe(
        py: Python<'_>,
        pieces: &[u8],
        offsets: PyReadonlyArray1<'_, u64>,
        ids: PyReadonlyArray1<'_, u32>,
        merges: PyReadonlyArray2<'_, u32>,
        priority: &str,
        ignore_merges: bool,
        units: (String, String, Option<u32>),
        made: Option<PyReadonlyArray1<'_, u32>>,
    ) -> PyResult<Self> {
        let priority = match priority {
            "merges" => Priority::Merges(pairs_of(&merges)?),
            "rank" => Priority::Rank,
            _ => return Err(core::Error::format(format!("unknown priority {priority:?}"))).checked(),
        };
        let by_characters = match units.0.as_str() {
            "byte" => false,
            "character" => true,
            unit => return Err(core::Error::format(format!("unknown unit {unit:?}"))).checked(),
        };
        let units = UnitRow { by_characters, end_of_word: units.1.into_bytes(), unk: units.2 };
        let (offsets, ids) = side_by_side(&offsets, &ids)?;
        let made = made.as_ref().map(|made| made.as_slice()).transpose()?;
        interruptible(py, |_| {
            let vocab = || Vocab::new(pieces.to_vec(), offsets, ids.to_vec());
            let (known, vocab) = match made {
                None => (None, vocab()),
                Some([]) => (Some(Known::Refuted), vocab()),
                Some(made) => {
                    let (proven, vocab) = both(|| Proven::again(offsets, made), vocab);
                    (Some(Known::Proven(proven?)), vocab)
                }
            };
            Bpe::new(vocab?, priority, ignore_merges, units, known)
        })
        .map(|bpe| Self(Arc::new(core::model::Model::Bpe(bpe))))
    }

    /// `affixes` are what stands in front of the entries of all characters but the first, and behind that of the last;
    /// `flags` are `fuse_unk`, `byte_fallback` and `ignore_merges`.
    #[staticmethod]
    #[allow(clippy::too_many_arguments)]
    fn characters(
        py: Python<'_>,
        pieces: &[u8],
        offsets: PyReadonlyArray1<'_, u64>,
        ids: PyReadonlyArray1<'_, u32>,
        merges: PyReadonlyArray2<'_, u32>,
        affixes: (String, String),
        unk: Option<u32>,
        flags: (bool, bool, bool),
    ) -> PyResult<Self> {
        let merges = pairs_of(&merges)?;
        let (offsets, ids) = side_by_side(&offsets, &ids)?;
        let (fuse_unk, byte_fallback, ignore_merges) = flags;
        let (prefix, suffix) = (affixes.0.into_bytes(), affixes.1.into_bytes());
        let row = CharacterRow { prefix, suffix, unk, fuse_unk, byte_fallback, ignore_merges };
        interruptible(py, |_| CharacterBpe::new(Vocab::new(pieces.to_vec(), offsets, ids.to_vec())?, &merges, row))
            .map(|bpe| Self(Arc::new(core::model::Model::Characters(bpe))))
    }

    #[staticmethod]
    fn word_piece(
        py: Python<'_>,
        pieces: &[u8],
        offsets: PyReadonlyArray1<'_, u64>,
        ids: PyReadonlyArray1<'_, u32>,
        prefix: String,
        unk: u32,
        max_chars: usize,
    ) -> PyResult<Self> {
        let (offsets, ids) = side_by_side(&offsets, &ids)?;
        interruptible(py, |_| {
            let vocab = Vocab::new(pieces.to_vec(), offsets, ids.to_vec())?;
            WordPiece::new(vocab, prefix.into_bytes(), unk, max_chars)
        })
        .map(|wordpiece| Self(Arc::new(core::model::Model::WordPiece(wordpiece))))
    }

    /// `algorithm` is "unigram" or "merges"; a kind is a byte for each entry.
    #[staticmethod]
    #[allow(clippy::too_many_arguments)]
    fn scored(
        py: Python<'_>,
        pieces: &[u8],
        offsets: PyReadonlyArray1<'_, u64>,
        ids: PyReadonlyArray1<'_, u32>,
        algorithm: &str,
        scores: PyReadonlyArray1<'_, f64>,
        kinds: PyReadonlyArray1<'_, u8>,
        precision: &str,
        unk: u32,
        merges: PyReadonlyArray2<'_, u32>,
        made: Option<PyReadonlyArray1<'_, u32>>,
    ) -> PyResult<Self> {
        let merges = pairs_of(&merges)?;
        let made = made.as_ref().map(|made| made.as_slice()).transpose()?;
        let (offsets, ids) = side_by_side(&offsets, &ids)?;
        let (scores, kinds, precision) =
            (scores.as_slice()?, pieces::kinds(kinds.as_slice()?), pieces::precision(precision)?);
        interruptible(py, |_| {
            let vocab = Vocab::new(pieces.to_vec(), offsets, ids.to_vec())?;
            Scored::new(algorithm, vocab, scores, &kinds, precision, unk, &merges, made)
        })
        .map(|scored| Self(Arc::new(core::model::Model::Scored(scored))))
    }

    /// All segmentations of a piece by a unigram model.
    fn segmentations(&self, py: Python<'_>, piece: &[u8]) -> PyResult<pieces::Segmentations> {
        interruptible(py, |_| pieces::Segmentations::new(self.0.clone(), piece))
    }

    #[staticmethod]
    fn word_level(
        py: Python<'_>,
        pieces: &[u8],
        offsets: PyReadonlyArray1<'_, u64>,
        ids: PyReadonlyArray1<'_, u32>,
        unk: u32,
    ) -> PyResult<Self> {
        let (offsets, ids) = side_by_side(&offsets, &ids)?;
        interruptible(py, |_| WordLevel::new(Vocab::new(pieces.to_vec(), offsets, ids.to_vec())?, unk))
            .map(|words| Self(Arc::new(core::model::Model::WordLevel(words))))
    }

    #[staticmethod]
    fn longest_match(
        py: Python<'_>,
        pieces: &[u8],
        offsets: PyReadonlyArray1<'_, u64>,
        ids: PyReadonlyArray1<'_, u32>,
    ) -> PyResult<Self> {
        let (offsets, ids) = side_by_side(&offsets, &ids)?;
        interruptible(py, |_| LongestMatch::new(Vocab::new(pieces.to_vec(), offsets, ids.to_vec())?))
            .map(|longest| Self(Arc::new(core::model::Model::LongestMatch(longest))))
    }

    fn made<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray1<u32>>>> {
        let rows = interruptible(py, |_| Ok(self.0.made()))?;
        Ok(rows.map(|rows| rows.into_pyarray(py)))
    }
}

/// The numbers of a vocabulary, as the core takes them.
fn side_by_side<'a>(
    offsets: &'a PyReadonlyArray1<'_, u64>,
    ids: &'a PyReadonlyArray1<'_, u32>,
) -> PyResult<(&'a [u64], &'a [u32])> {
    match (offsets.as_slice(), ids.as_slice()) {
        (Ok(offsets), Ok(ids)) => Ok((offsets, ids)),
        _ => Err(core::Error::format("the offsets and the ids must stand side by side")).checked(),
    }
}

#[pyfunction]
fn checksum(py: Python<'_>, data: PyReadonlyArray1<'_, u8>) -> PyResult<u64> {
    let data = data.as_slice()?;
    interruptible(py, |_| Ok(core::hash::checksum(data)))
}

#[pyfunction]
fn read_ranks<'py>(
    py: Python<'py>,
    data: &[u8],
    most: u32,
    check: bool,
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u32>>, Option<u32>, BadLine)> {
    let (ranks, bad) = interruptible(py, |_| {
        Ok(match core::ranks::read(data, most, check) {
            Ok(ranks) => (ranks, None),
            Err((line, problem)) => {
                let (problem, earlier) = problem.name();
                (core::ranks::Ranks::default(), Some((line, problem, earlier)))
            }
        })
    })?;
    let pieces = PyBytes::new(py, &ranks.pieces);
    Ok((pieces, ranks.offsets.into_pyarray(py), ranks.ids.into_pyarray(py), ranks.empty, bad))
}

/// A line, what is wrong with it, and the earlier line that it repeats.
type BadLine = Option<(usize, &'static str, Option<usize>)>;

#[pyclass(frozen, module = "subword._core")]
struct Engine {
    engine: core::engine::Engine,
    numbers: Numbers,
    #[pyo3(get)]
    default_policy: Py<Policy>,
    #[pyo3(get)]
    ordinary_policy: Py<Policy>,
}

#[pymethods]
impl Engine {
    #[new]
    fn new(
        py: Python<'_>,
        stages: Vec<Vec<String>>,
        model: &Model,
        extra: Vec<ExtraRow>,
        template: (Vec<u32>, Vec<u32>),
        decode: Vec<String>,
    ) -> PyResult<Self> {
        let (model, extras) = (model.0.clone(), extras(extra)?);
        let decoding = Decoding::new(&decode).checked()?;
        let (engine, default, ordinary) = interruptible(py, |_| {
            let engine = core::engine::Engine::new(&stages, model, extras, template, decoding)?;
            let default = engine.default_policy()?;
            let ordinary = engine.ordinary_policy()?;
            Ok((engine, default, ordinary))
        })?;
        let (default_policy, ordinary_policy) = (Py::new(py, Policy(default))?, Py::new(py, Policy(ordinary))?);
        Ok(Self { numbers: Numbers::new(engine.n_vocab()), engine, default_policy, ordinary_policy })
    }

    #[getter]
    fn n_vocab(&self) -> usize {
        self.engine.n_vocab()
    }

    fn plan(&self) -> Vec<(String, String, String)> {
        self.engine.plan()
    }

    fn last_merges<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<i64>>> {
        let pairs = interruptible(py, |_| Ok(self.engine.last_merges()))?;
        let len = pairs.len();
        let ids = |pair: Option<(u32, u32)>| pair.map_or([-1, -1], |(left, right)| [left.into(), right.into()]);
        pairs.into_iter().flat_map(ids).collect::<Vec<i64>>().into_pyarray(py).reshape([len, 2])
    }

    fn policy(&self, allowed: Vec<String>, disallowed: Vec<String>) -> PyResult<Policy> {
        self.engine.policy(&allowed, disallowed).checked().map(Policy)
    }

    fn encode<'py>(
        &self,
        py: Python<'py>,
        text: Text<'py>,
        policy: &Policy,
        add_special_tokens: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        self.numbers.list(py, &self.encode_ids(py, &text, policy, add_special_tokens)?)
    }

    fn encode_to_numpy<'py>(
        &self,
        py: Python<'py>,
        text: Text<'py>,
        policy: &Policy,
        add_special_tokens: bool,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        Ok(array(py, self.encode_ids(py, &text, policy, add_special_tokens)?))
    }

    fn encode_batch<'py>(
        &self,
        py: Python<'py>,
        texts: Texts<'py>,
        policy: &Policy,
        add_special_tokens: bool,
        threads: usize,
    ) -> PyResult<Vec<Bound<'py, PyList>>> {
        let (ids, lengths) = self.batch_ids(py, &texts, policy, add_special_tokens, threads)?;
        let mut rest = &ids[..];
        let take = |length| {
            let (head, tail) = rest.split_at(length);
            rest = tail;
            self.numbers.list(py, head)
        };
        lengths.into_iter().map(take).collect()
    }

    fn encode_batch_to_numpy<'py>(
        &self,
        py: Python<'py>,
        texts: Texts<'py>,
        policy: &Policy,
        add_special_tokens: bool,
        threads: usize,
    ) -> PyResult<(Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u64>>)> {
        let (ids, lengths) = self.batch_ids(py, &texts, policy, add_special_tokens, threads)?;
        let mut offsets = Vec::with_capacity(lengths.len() + 1);
        offsets.push(0);
        offsets.extend(lengths.iter().scan(0u64, |end, &length| {
            *end += length as u64;
            Some(*end)
        }));
        Ok((ids.into_pyarray(py), offsets.into_pyarray(py)))
    }

    fn count(&self, py: Python<'_>, text: Text<'_>, policy: &Policy, add_special_tokens: bool) -> PyResult<usize> {
        let bytes = text.bytes();
        run(py, bytes.len(), |stop| self.engine.count(bytes, &policy.0, add_special_tokens, stop))
    }

    fn count_batch(
        &self,
        py: Python<'_>,
        texts: Texts<'_>,
        policy: &Policy,
        add_special_tokens: bool,
        threads: usize,
    ) -> PyResult<Vec<usize>> {
        over(py, &texts, |rows, stop| self.engine.count_batch(rows, &policy.0, add_special_tokens, threads, stop))
    }

    fn encode_with_spans<'py>(
        &self,
        py: Python<'py>,
        text: Text<'py>,
        policy: &Policy,
        add_special_tokens: bool,
    ) -> PyResult<(Bound<'py, PyArray1<u32>>, Bound<'py, PyArray2<u64>>, Bound<'py, PyArray2<u64>>)> {
        let bytes = text.bytes();
        let spans =
            interruptible(py, |stop| self.engine.encode_with_spans(bytes, &policy.0, add_special_tokens, stop))?;
        let chars = spans.chars.iter().map(|&(start, end)| (text.char_index(start), text.char_index(end))).collect();
        Ok((spans.ids.into_pyarray(py), pairs(py, spans.bytes)?, pairs(py, chars)?))
    }

    fn split(&self, py: Python<'_>, text: Text<'_>, policy: &Policy) -> PyResult<Vec<(usize, usize)>> {
        let bytes = text.bytes();
        interruptible(py, |stop| self.engine.split(bytes, &policy.0, stop))
    }

    fn find_special(&self, py: Python<'_>, text: Text<'_>) -> PyResult<Vec<(usize, usize, u32)>> {
        let bytes = text.bytes();
        let found = interruptible(py, |_| self.engine.find_special(bytes))?;
        Ok(found.into_iter().map(|(a, b, id)| (text.char_index(a), text.char_index(b), id)).collect())
    }

    fn truncate(
        &self,
        py: Python<'_>,
        text: Text<'_>,
        n: usize,
        side: &str,
        policy: &Policy,
        add_special_tokens: bool,
    ) -> PyResult<(usize, usize)> {
        let side = match side {
            "right" => Side::Right,
            "left" => Side::Left,
            _ => return Err(core::Error::value(format!("side must be \"right\" or \"left\", not {side:?}"))).checked(),
        };
        let bytes = text.bytes();
        let span = interruptible(py, |stop| self.engine.truncate(bytes, n, side, &policy.0, add_special_tokens, stop))?;
        Ok(text.native_spans(&[span])[0])
    }

    fn chunk(
        &self,
        py: Python<'_>,
        text: Text<'_>,
        limits: (usize, usize, String),
        policy: &Policy,
        add_special_tokens: bool,
    ) -> PyResult<Vec<(usize, usize, usize)>> {
        let bytes = text.bytes();
        let (max_tokens, overlap, ends) = limits;
        let limits = Limits { max_tokens, overlap, ends: Ends::new(&ends).checked()? };
        let chunks = interruptible(py, |stop| self.engine.chunk(bytes, limits, &policy.0, add_special_tokens, stop))?;
        let spans: Vec<_> = chunks.iter().map(|&(start, end, _)| (start, end)).collect();
        let counts = chunks.iter().map(|chunk| chunk.2);
        Ok(text.native_spans(&spans).into_iter().zip(counts).map(|((a, b), count)| (a, b, count)).collect())
    }

    fn decode<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
        errors: &str,
        skip_special_tokens: bool,
    ) -> PyResult<Bound<'py, PyString>> {
        str_of(py, &self.decoded(py, ids, skip_special_tokens)?, &CString::new(errors)?)
    }

    fn decode_bytes<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
        skip_special_tokens: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.decoded(py, ids, skip_special_tokens)?))
    }

    fn decode_batch<'py>(
        &self,
        py: Python<'py>,
        batch: Vec<Bound<'py, PyAny>>,
        errors: &str,
        skip_special_tokens: bool,
        threads: usize,
    ) -> PyResult<Vec<Bound<'py, PyString>>> {
        let errors = CString::new(errors)?;
        let batch = batch.iter().zip(0..).map(|(ids, item)| ids_of(ids, Some(item)));
        let batch = batch.collect::<PyResult<Vec<_>>>()?;
        let decoded = interruptible(py, |stop| self.engine.decode_batch(&batch, skip_special_tokens, threads, stop))?;
        decoded.iter().map(|bytes| str_of(py, bytes, &errors)).collect()
    }

    fn token_bytes<'py>(&self, py: Python<'py>, id: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let id = text::id_of(id)?;
        Ok(PyBytes::new(py, &self.engine.token_bytes(id).checked()?))
    }

    /// The ids of a text, `n` times, with merges passed over.
    fn encode_with_dropout(
        &self,
        py: Python<'_>,
        text: Text<'_>,
        policy: &Policy,
        dropout: f64,
        seed: u64,
        n: usize,
    ) -> PyResult<Vec<Vec<u32>>> {
        let bytes = text.bytes();
        interruptible(py, |stop| self.engine.encode_with_dropout(bytes, &policy.0, (dropout, seed), n, stop))
    }

    /// What may stand in a text: ids, where each starts and ends (characters for `str`), and how probable that is.
    fn marginals(
        &self,
        py: Python<'_>,
        text: Text<'_>,
        policy: &Policy,
        alpha: f64,
    ) -> PyResult<Vec<(u32, usize, usize, f64)>> {
        let bytes = text.bytes();
        let rows = interruptible(py, |stop| pieces::marginals(&self.engine, bytes, &policy.0, alpha, stop))?;
        let spans: Vec<_> = rows.iter().map(|row| row.1).collect();
        let spans = text.native_spans(&spans).into_iter();
        Ok(rows.iter().zip(spans).map(|(&(id, _, share), (start, end))| (id, start, end, share)).collect())
    }

    /// The parts of a text: ids of extra tokens, and all segmentations of what is between them.
    fn segmentations(&self, py: Python<'_>, text: Text<'_>, policy: &Policy) -> PyResult<Vec<Py<PyAny>>> {
        let bytes = text.bytes();
        let parts = interruptible(py, |stop| pieces::parts(&self.engine, bytes, &policy.0, stop))?;
        let object = |part| match part {
            pieces::Part::Extra(id) => id.into_pyobject(py).map(|id| id.into_any().unbind()).map_err(PyErr::from),
            pieces::Part::Piece(piece) => Py::new(py, piece).map(Py::into_any),
        };
        parts.into_iter().map(object).collect()
    }

    fn token_id(&self, token: &[u8]) -> Option<u32> {
        self.engine.token_id(token)
    }
}

impl Engine {
    fn encode_ids(&self, py: Python<'_>, text: &Text<'_>, policy: &Policy, special: bool) -> PyResult<Vec<u32>> {
        let bytes = text.bytes();
        run(py, bytes.len(), |stop| {
            let mut ids = Vec::with_capacity(bytes.len() / 3 + 8);
            self.engine.encode(bytes, &policy.0, special, stop, &mut ids)?;
            Ok(ids)
        })
    }

    fn decoded(&self, py: Python<'_>, ids: &Bound<'_, PyAny>, skip_special_tokens: bool) -> PyResult<Vec<u8>> {
        let ids = ids_of(ids, None)?;
        run(py, ids.len() * 4, |_| self.engine.decode(&ids, skip_special_tokens))
    }

    fn batch_ids(
        &self,
        py: Python<'_>,
        texts: &Texts<'_>,
        policy: &Policy,
        special: bool,
        threads: usize,
    ) -> PyResult<(Vec<u32>, Vec<usize>)> {
        over(py, texts, |rows, stop| self.engine.encode_batch(rows, &policy.0, special, threads, stop))
    }
}

/// Runs `work` on the texts of a batch.
fn over<T: Send>(
    py: Python<'_>,
    texts: &Texts<'_>,
    work: impl FnOnce(&Rows<'_>, Stop<'_>) -> core::Result<T> + Send,
) -> PyResult<T> {
    let rows = texts.rows(py);
    let result = run(py, core::batch::work_in(&rows), |stop| work(&rows, stop));
    rows.failed().map_or(result, Err)
}

/// Ids as an array. A few are copied: that is quicker than to keep what holds them.
fn array(py: Python<'_>, ids: Vec<u32>) -> Bound<'_, PyArray1<u32>> {
    if ids.len() < 1024 {
        PyArray1::from_slice(py, &ids)
    } else {
        ids.into_pyarray(py)
    }
}

/// Pairs as an array of shape (n, 2).
fn pairs(py: Python<'_>, pairs: Vec<(usize, usize)>) -> PyResult<Bound<'_, PyArray2<u64>>> {
    let len = pairs.len();
    let flat: Vec<u64> = pairs.into_iter().flat_map(|(a, b)| [a as u64, b as u64]).collect();
    flat.into_pyarray(py).reshape([len, 2])
}

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::counting::{memory_to_learn, run_block, PieceCounter, PieceMerge, Pieces};
    #[pymodule_export]
    use super::entries::{read_entries, read_members, Entries};
    #[pymodule_export]
    use super::pieces::{
        charsmap_table, covering_characters, learn_sentencepiece_bpe, learn_unigram, log_shares, random_units,
        stage_parts, Segmentations, SentencePieceNormalizer,
    };
    #[pymodule_export]
    use super::{
        checksum, lowercase, normalize, read_ranks, regex_covers, same_in_both_syntaxes, text::frozen_text, text_ends,
        unicode_ranges, Engine, Model, Policy,
    };

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
