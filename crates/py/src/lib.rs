//! `subword._core`: signatures, GIL release, one error mapping. What things mean stands in `crates/core`; what they
//! are for, in the Python package.

mod entries;
mod errors;
mod numbers;
mod text;

use std::ffi::CString;
use std::sync::Arc;

use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use errors::{interruptible, run, Checked};
use numbers::Numbers;
use subword_core as core;
use subword_core::bpe::learn::{Alphabet, TieRule};
use subword_core::bpe::units::UnitRow;
use subword_core::bpe::{Bpe, Known, Priority, Proven};
use subword_core::chunk::Limits;
use subword_core::ends::Ends;
use subword_core::extra::{Extra, Kind};
use subword_core::limit::Side;
use subword_core::parallel::both;
use subword_core::pipeline::Stop;
use subword_core::split::regex::{Regex, Syntax};
use subword_core::vocab::Vocab;
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
    core::normalize::Form::new(form, unicode).map(|form| form.apply(text)).checked()
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
struct Model(Arc<Bpe>);

#[pymethods]
impl Model {
    #[new]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        pieces: &[u8],
        offsets: PyReadonlyArray1<'_, u64>,
        ids: PyReadonlyArray1<'_, u32>,
        merges: PyReadonlyArray2<'_, u32>,
        priority: &str,
        ignore_merges: bool,
        units: (String, String, Option<u32>),
        made: Option<PyReadonlyArray2<'_, u32>>,
    ) -> PyResult<Self> {
        let priority = match priority {
            "merges" => {
                let merges = merges.as_array();
                Priority::Merges(merges.rows().into_iter().map(|row| (row[0], row[1])).collect())
            }
            "rank" => Priority::Rank,
            _ => return Err(core::Error::format(format!("unknown priority {priority:?}"))).checked(),
        };
        let by_characters = match units.0.as_str() {
            "byte" => false,
            "character" => true,
            unit => return Err(core::Error::format(format!("unknown unit {unit:?}"))).checked(),
        };
        let units = UnitRow { by_characters, end_of_word: units.1.into_bytes(), unk: units.2 };
        let (Ok(offsets), Ok(ids)) = (offsets.as_slice(), ids.as_slice()) else {
            return Err(core::Error::format("the offsets and the ids must stand side by side")).checked();
        };
        let made = match made.as_ref().map(|made| (made.shape()[1], made.as_slice())) {
            None => None,
            Some((3, Ok(made))) => Some(made),
            Some(_) => return Err(core::Error::format("how entries are made is told in three columns")).checked(),
        };
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
        .map(|bpe| Self(Arc::new(bpe)))
    }

    fn made<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray2<u32>>>> {
        let rows = interruptible(py, |_| Ok(self.0.made()))?;
        rows.map(|rows| {
            let len = rows.len() / 3;
            rows.into_pyarray(py).reshape([len, 3])
        })
        .transpose()
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
        decode: (String, bool),
    ) -> PyResult<Self> {
        let (bpe, extras) = (model.0.clone(), extras(extra)?);
        let decode = (decode.0.into_bytes(), decode.1);
        let (engine, default, ordinary) = interruptible(py, |_| {
            let engine = core::engine::Engine::new(&stages, bpe, extras, template, decode)?;
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

#[pyclass(module = "subword._core")]
struct PieceCounter(core::count::PieceCounter);

#[pymethods]
impl PieceCounter {
    #[new]
    fn new(stages: Vec<Vec<String>>, extra: Vec<ExtraRow>, limit: Option<usize>) -> PyResult<Self> {
        core::count::PieceCounter::new(&stages, extras(extra)?, limit).checked().map(Self)
    }

    fn feed(&mut self, py: Python<'_>, texts: &Bound<'_, PyAny>, threads: usize) -> PyResult<()> {
        let fed = self.0.texts;
        let texts = Texts::read(texts, |number| format!("text {}: ", fed + number))?.made(py)?;
        let bytes = texts.bytes();
        let counter = &mut self.0;
        interruptible(py, |stop| counter.feed(&bytes, threads, stop))
    }

    fn is_full_for(&self, bytes: usize) -> bool {
        self.0.is_full_for(bytes)
    }

    fn drain(&mut self, py: Python<'_>, write: Py<PyAny>) -> PyResult<()> {
        let counter = &mut self.0;
        calling(py, |call, stop| {
            counter.drain(&mut |run, block| {
                call(&mut |py| write.call1(py, (run, PyBytes::new(py, &block))).map(drop))?;
                if stop() {
                    return Err(core::Error::interrupted());
                }
                Ok(())
            })
        })
    }

    #[getter]
    fn texts(&self) -> u64 {
        self.0.texts
    }

    #[getter]
    fn text_bytes(&self) -> u64 {
        self.0.text_bytes
    }

    #[getter]
    fn pieces(&self) -> u64 {
        self.0.pieces
    }
}

/// Makes a call to Python from inside `interruptible`.
type Call<'a> = &'a mut dyn FnMut(&mut dyn FnMut(Python<'_>) -> PyResult<()>) -> core::Result<()>;

/// Runs `work` without the GIL, except where it calls back. What Python raises there ends it, and is raised.
fn calling<T: Send>(py: Python<'_>, work: impl FnOnce(Call<'_>, Stop<'_>) -> core::Result<T> + Send) -> PyResult<T> {
    let mut raised = None;
    let done = interruptible(py, |stop| {
        let mut call = |call: &mut dyn FnMut(Python<'_>) -> PyResult<()>| {
            Python::attach(&mut *call).map_err(|error| {
                raised = Some(error);
                core::Error::interrupted()
            })
        };
        work(&mut call, stop)
    });
    raised.map_or(done, Err)
}

/// A block of a run, of rows that stand in columns.
#[pyfunction]
fn run_block<'py>(
    py: Python<'py>,
    data: &[u8],
    offsets: PyReadonlyArray1<'py, i64>,
    counts: PyReadonlyArray1<'py, i64>,
    firsts: PyReadonlyArray1<'py, i64>,
    sources: PyReadonlyArray1<'py, u32>,
) -> PyResult<Bound<'py, PyBytes>> {
    let columns = core::runs::Columns {
        data,
        offsets: offsets.as_slice()?,
        counts: counts.as_slice()?,
        firsts: firsts.as_slice()?,
        sources: sources.as_slice()?,
    };
    Ok(PyBytes::new(py, &columns.to_block().checked()?))
}

/// How many bytes of pieces are handed out at once, or a little more.
const MOST_BYTES: usize = 1 << 26;

#[pyclass(module = "subword._core")]
struct PieceMerge {
    merge: core::runs::Merge,
    readers: Vec<Py<PyAny>>,
}

#[pymethods]
impl PieceMerge {
    #[new]
    fn new(runs: Vec<(Py<PyAny>, u64, Vec<u32>)>) -> Self {
        let (mut readers, mut settings) = (Vec::new(), Vec::new());
        for (reader, shift, sources) in runs {
            readers.push(reader);
            settings.push((shift, sources));
        }
        Self { merge: core::runs::Merge::new(settings), readers }
    }

    fn rows<'py>(
        &mut self,
        py: Python<'py>,
        most: usize,
    ) -> PyResult<(
        Bound<'py, PyBytes>,
        Bound<'py, PyArray1<i64>>,
        Bound<'py, PyArray1<i64>>,
        Bound<'py, PyArray1<i64>>,
        Bound<'py, PyArray1<u32>>,
    )> {
        let (data, offsets, counts, firsts, sources) = self.fetching(py, |merge, fetch, stop| {
            let (mut data, mut offsets, mut counts, mut firsts, mut sources) =
                (vec![], vec![0], vec![], vec![], vec![]);
            while counts.len() < most && data.len() < MOST_BYTES {
                let Some(row) = merge.next(fetch)? else { break };
                data.extend_from_slice(row.piece);
                offsets.push(data.len() as i64);
                counts.push(row.count as i64);
                firsts.push(row.first as i64);
                sources.push(row.source);
                if counts.len() % (1 << 12) == 0 && stop() {
                    return Err(core::Error::interrupted());
                }
            }
            Ok((data, offsets, counts, firsts, sources))
        })?;
        Ok((
            PyBytes::new(py, &data),
            offsets.into_pyarray(py),
            counts.into_pyarray(py),
            firsts.into_pyarray(py),
            sources.into_pyarray(py),
        ))
    }

    fn survey(&mut self, py: Python<'_>, weights: Vec<u64>, scale: u64) -> PyResult<Vec<(u64, u64, u64, u64)>> {
        self.fetching(py, |merge, fetch, stop| {
            let mut classes = std::collections::BTreeMap::<u64, (u64, u64, u64)>::new();
            merge.weighed(&weights, fetch, stop, |piece, count, _| {
                let sum = classes.entry((count / scale).clamp(1, 1 << 10)).or_default();
                *sum = (sum.0 + 1, sum.1 + piece.len() as u64, sum.2.saturating_add(count));
                Ok(())
            })?;
            Ok(classes.into_iter().map(|(count, (pieces, bytes, total))| (count, pieces, bytes, total)).collect())
        })
    }

    fn pieces(&mut self, py: Python<'_>, weights: Vec<u64>, least: u64, in_order: bool) -> PyResult<Pieces> {
        let mut pieces = core::pieces::Pieces::default();
        self.fetching(py, |merge, fetch, stop| {
            merge.weighed(&weights, fetch, stop, |piece, count, first| {
                if count < least {
                    pieces.leave_out(piece, count);
                    return Ok(());
                }
                pieces.add(piece, count, in_order.then_some(first))
            })?;
            Ok(Pieces(pieces))
        })
    }
}

impl PieceMerge {
    /// Runs `work` with the merge and with what gets the next block of a run from its reader.
    fn fetching<T: Send>(
        &mut self,
        py: Python<'_>,
        work: impl FnOnce(&mut core::runs::Merge, core::runs::Fetch<'_>, Stop<'_>) -> core::Result<T> + Send,
    ) -> PyResult<T> {
        let Self { merge, readers } = self;
        calling(py, |call, stop| {
            let mut fetch = |run: usize, block: &mut Vec<u8>| {
                let mut is_there = false;
                call(&mut |py| {
                    if let Some(next) = readers[run].bind(py).try_iter()?.next() {
                        let next = next?;
                        let bytes = next.cast::<PyBytes>()?.as_bytes();
                        block.clear();
                        block.reserve_exact(bytes.len());
                        block.extend_from_slice(bytes);
                        is_there = true;
                    }
                    Ok(())
                })?;
                Ok(is_there)
            };
            work(merge, &mut fetch, stop)
        })
    }
}

#[pyclass(module = "subword._core")]
struct Pieces(core::pieces::Pieces);

#[pymethods]
impl Pieces {
    #[new]
    fn new(items: Vec<(Vec<u8>, u64)>) -> PyResult<Self> {
        let mut pieces = core::pieces::Pieces::default();
        for (first, (piece, count)) in items.into_iter().enumerate() {
            pieces.add(&piece, count, Some(first as u64)).checked()?;
        }
        Ok(Self(pieces))
    }

    #[getter]
    fn distinct(&self) -> usize {
        self.0.distinct()
    }

    #[getter]
    fn total(&self) -> u64 {
        self.0.total()
    }

    /// How many pieces were left out, and how often they were counted.
    #[getter]
    fn lost(&self) -> (u64, u64) {
        self.0.lost.as_ref().map_or((0, 0), |lost| (lost.pieces, lost.count))
    }

    fn learn_bpe<'py>(
        &self,
        py: Python<'py>,
        merges: usize,
        byte_order: &[u8],
        tie_rule: &str,
        progress: &Bound<'py, PyAny>,
    ) -> PyResult<Learned<'py>> {
        learn(py, &self.0, merges, &byte_ids(byte_order).checked()?, tie_rule, progress)
    }

    /// The alphabet, sorted.
    fn characters<'py>(&self, py: Python<'py>, end_of_word: &str) -> Vec<Bound<'py, PyBytes>> {
        let alphabet = self.0.characters(end_of_word.as_bytes());
        alphabet.symbols().iter().map(|symbol| PyBytes::new(py, symbol)).collect()
    }

    fn learn_bpe_of_characters<'py>(
        &self,
        py: Python<'py>,
        merges: usize,
        end_of_word: &str,
        tie_rule: &str,
        progress: &Bound<'py, PyAny>,
    ) -> PyResult<Learned<'py>> {
        let alphabet = self.0.characters(end_of_word.as_bytes());
        learn(py, &self.0, merges, &alphabet, tie_rule, progress)
    }
}

#[pyfunction]
fn memory_to_learn(pieces: u64, bytes: u64) -> u64 {
    core::bpe::learn::memory(pieces, bytes)
}

/// Merges, their counts, and how many of them are certain.
type Learned<'py> = (Bound<'py, PyArray2<u32>>, Bound<'py, PyArray1<u64>>, usize);

fn learn<'py>(
    py: Python<'py>,
    pieces: &core::pieces::Pieces,
    merges: usize,
    alphabet: &(impl Alphabet + Sync),
    tie_rule: &str,
    progress: &Bound<'py, PyAny>,
) -> PyResult<Learned<'py>> {
    let tie_rule = TieRule::new(tie_rule).checked()?;
    let progress = (!progress.is_none()).then(|| progress.clone().unbind());
    let learned = calling(py, |call, stop| {
        pieces.learn_bpe(merges, alphabet, tie_rule, &mut |done| {
            if let Some(progress) = &progress {
                call(&mut |py| progress.call1(py, (done,)).map(drop))?;
            }
            if stop() {
                return Err(core::Error::interrupted());
            }
            Ok(())
        })
    })?;
    let flat: Vec<u32> = learned.merges.iter().flat_map(|&(left, right)| [left, right]).collect();
    let merges = flat.into_pyarray(py).reshape([learned.merges.len(), 2])?;
    Ok((merges, learned.counts.into_pyarray(py), learned.certain))
}

/// The id of each byte, from all bytes in the order of their ids.
fn byte_ids(byte_order: &[u8]) -> core::Result<[u32; 256]> {
    let mut ids = [u32::MAX; 256];
    for (id, &byte) in byte_order.iter().enumerate() {
        ids[byte as usize] = id as u32;
    }
    if byte_order.len() != 256 || ids.contains(&u32::MAX) {
        return Err(core::Error::value("the byte order must hold each of the 256 bytes once"));
    }
    Ok(ids)
}

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::entries::{read_entries, read_members, Entries};
    #[pymodule_export]
    use super::{
        checksum, lowercase, memory_to_learn, normalize, read_ranks, regex_covers, run_block, same_in_both_syntaxes,
        text::frozen_text, text_ends, unicode_ranges, Engine, Model, PieceCounter, PieceMerge, Pieces, Policy,
    };

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
