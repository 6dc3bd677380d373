//! Counting and learning: pieces and their counts, merging them from disk, merges from them.

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{interruptible, Checked};
use crate::text::Texts;
use crate::{extras, ExtraRow, Model};
use subword_core as core;
use subword_core::bpe::alphabet::Alphabet;
use subword_core::bpe::learn::{Options, TieRule};
use subword_core::pipeline::Stop;

#[pyclass(module = "subword._core")]
pub struct PieceCounter(core::count::PieceCounter);

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
pub fn calling<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(Call<'_>, Stop<'_>) -> core::Result<T> + Send,
) -> PyResult<T> {
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
pub fn run_block<'py>(
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
pub struct PieceMerge {
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
pub struct Pieces(core::pieces::Pieces);

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

    #[pyo3(signature = (
        merges, byte_order, tie_rule, progress, max_token_bytes=None, whole_characters=false, initial=vec![], start=None,
        keep=None
    ))]
    #[allow(clippy::too_many_arguments)] // they are those of `train`
    fn learn_bpe<'py>(
        &self,
        py: Python<'py>,
        merges: usize,
        byte_order: &[u8],
        tie_rule: &str,
        progress: &Bound<'py, PyAny>,
        max_token_bytes: Option<usize>,
        whole_characters: bool,
        initial: Vec<Vec<u8>>,
        start: Option<Start<'py>>,
        keep: Option<Py<PyAny>>,
    ) -> PyResult<Learned<'py>> {
        let told = Told::new(progress, keep);
        let (byte_ids, options) = (byte_ids(byte_order).checked()?, options(tie_rule, max_token_bytes, &initial)?);
        if whole_characters {
            let alphabet = self.0.whole_characters(byte_ids, &initial);
            return learn(py, &self.0, merges, &alphabet, &options, start, told);
        }
        learn(py, &self.0, merges, &byte_ids, &options, start, told)
    }

    #[getter]
    fn fingerprint(&self, py: Python<'_>) -> PyResult<u64> {
        interruptible(py, |_| Ok(self.0.fingerprint()))
    }

    /// Merges of the tokens of a model and of what these make, which spell neither an entry nor what is `taken`.
    fn extend_bpe<'py>(
        &self,
        py: Python<'py>,
        merges: usize,
        model: &Model,
        taken: Vec<Vec<u8>>,
        tie_rule: &str,
        progress: &Bound<'py, PyAny>,
    ) -> PyResult<Learned<'py>> {
        let core::model::Model::Bpe(model) = &*model.0 else {
            return Err(core::Error::value("only a BPE can be extended")).checked();
        };
        let alphabet = core::bpe::extend::Entries::new(model, taken);
        let options = options(tie_rule, None, &[])?;
        learn(py, &self.0, merges, &alphabet, &options, None, Told::new(progress, None))
    }

    /// The alphabet, sorted.
    #[pyo3(signature = (end_of_word, limit=None, initial=vec![]))]
    fn characters<'py>(
        &self,
        py: Python<'py>,
        end_of_word: &str,
        limit: Option<usize>,
        initial: Vec<Vec<u8>>,
    ) -> Vec<Bound<'py, PyBytes>> {
        let alphabet = self.0.characters(end_of_word, limit, &initial);
        alphabet.symbols().iter().map(|symbol| PyBytes::new(py, symbol)).collect()
    }

    #[pyo3(signature = (
        merges, end_of_word, tie_rule, progress, max_token_bytes=None, limit=None, initial=vec![], start=None, keep=None
    ))]
    #[allow(clippy::too_many_arguments)]
    fn learn_bpe_of_characters<'py>(
        &self,
        py: Python<'py>,
        merges: usize,
        end_of_word: &str,
        tie_rule: &str,
        progress: &Bound<'py, PyAny>,
        max_token_bytes: Option<usize>,
        limit: Option<usize>,
        initial: Vec<Vec<u8>>,
        start: Option<Start<'py>>,
        keep: Option<Py<PyAny>>,
    ) -> PyResult<Learned<'py>> {
        let options = options(tie_rule, max_token_bytes, &initial)?;
        let alphabet = self.0.characters(end_of_word, limit, &initial);
        learn(py, &self.0, merges, &alphabet, &options, start, Told::new(progress, keep))
    }

    /// The alphabet of a WordPiece, sorted.
    fn characters_of_words<'py>(&self, py: Python<'py>, prefix: &str) -> Vec<Bound<'py, PyBytes>> {
        let alphabet = self.0.words(prefix);
        alphabet.symbols().iter().map(|symbol| PyBytes::new(py, symbol)).collect()
    }

    fn learn_word_piece<'py>(
        &self,
        py: Python<'py>,
        merges: usize,
        prefix: &str,
        by_likelihood: bool,
        tie_rule: &str,
        progress: &Bound<'py, PyAny>,
    ) -> PyResult<Learned<'py>> {
        let (alphabet, options, told) =
            (self.0.words(prefix), options(tie_rule, None, &[])?, Told::new(progress, None));
        if !by_likelihood {
            return learn(py, &self.0, merges, &alphabet, &options, None, told);
        }
        let learned = calling(py, |call, stop| {
            let mut tell = |done: usize, so_far: &dyn Fn() -> _| told.tell(done, so_far, call, stop);
            self.0.learn_by_likelihood(merges, &alphabet, options.tie_rule, &mut tell)
        })?;
        to_arrays(py, &learned)
    }
}

fn options<'o>(tie_rule: &str, max_token_bytes: Option<usize>, initial: &'o [Vec<u8>]) -> PyResult<Options<'o>> {
    let most_bytes = max_token_bytes.unwrap_or(usize::MAX);
    Ok(Options { tie_rule: TieRule::new(tie_rule).checked()?, most_bytes, initial })
}

#[pyfunction]
pub fn memory_to_learn(pieces: u64, bytes: u64, merges: u64) -> u64 {
    core::bpe::learn::memory(pieces, bytes, merges)
}

/// Merges, their counts, how many of them are certain, and the bytes and (before the first and after each) the tokens.
type Learned<'py> = (Bound<'py, PyArray2<u32>>, Bound<'py, PyArray1<u64>>, usize, (u64, Bound<'py, PyArray1<u64>>));

/// What learning goes on from: merges, their counts, and how many of them are certain.
type Start<'py> = (Bound<'py, PyArray2<u32>>, Bound<'py, PyArray1<u64>>, usize);

/// Who is told how learning goes.
pub struct Told {
    /// Called with the number of merges; whether it returns something true, `keep` is called with them.
    progress: Option<Py<PyAny>>,
    /// Called with what was learned so far, also where learning is stopped.
    keep: Option<Py<PyAny>>,
}

impl Told {
    pub fn new(progress: &Bound<'_, PyAny>, keep: Option<Py<PyAny>>) -> Self {
        Self { progress: (!progress.is_none()).then(|| progress.clone().unbind()), keep }
    }

    pub fn tell(
        &self,
        done: usize,
        so_far: &dyn Fn() -> core::bpe::learn::Learned,
        call: Call<'_>,
        stop: Stop<'_>,
    ) -> core::Result<()> {
        let (mut is_due, mut told) = (false, Ok(()));
        if let Some(progress) = &self.progress {
            told = call(&mut |py| {
                is_due = progress.call1(py, (done,))?.is_truthy(py)?;
                Ok(())
            });
        }
        if told.is_ok() && stop() {
            told = Err(core::Error::interrupted());
        }
        match &self.keep {
            Some(keep) if is_due || told.is_err() => {
                let learned = so_far();
                told.and(call(&mut |py| {
                    let (merges, counts, certain, _) = to_arrays(py, &learned)?;
                    keep.call1(py, (merges, counts, certain)).map(drop)
                }))
            }
            _ => told,
        }
    }
}

fn learn<'py>(
    py: Python<'py>,
    pieces: &core::pieces::Pieces,
    merges: usize,
    alphabet: &(impl Alphabet + Sync),
    options: &Options<'_>,
    start: Option<Start<'py>>,
    told: Told,
) -> PyResult<Learned<'py>> {
    let start = start.map_or_else(|| Ok(core::bpe::learn::Learned::default()), from_arrays)?;
    let learned = calling(py, |call, stop| {
        let mut tell = |done: usize, so_far: &dyn Fn() -> _| told.tell(done, so_far, call, stop);
        pieces.learn_bpe(merges, alphabet, options, &start, &mut tell)
    })?;
    to_arrays(py, &learned)
}

fn to_arrays<'py>(py: Python<'py>, learned: &core::bpe::learn::Learned) -> PyResult<Learned<'py>> {
    let flat: Vec<u32> = learned.merges.iter().flat_map(|&(left, right)| [left, right]).collect();
    let merges = flat.into_pyarray(py).reshape([learned.merges.len(), 2])?;
    let size = (learned.bytes, learned.tokens.clone().into_pyarray(py));
    Ok((merges, learned.counts.clone().into_pyarray(py), learned.certain, size))
}

fn from_arrays((merges, counts, certain): Start<'_>) -> PyResult<core::bpe::learn::Learned> {
    let merges = merges.readonly().as_array().rows().into_iter().map(|row| (row[0], row[1])).collect();
    let counts = counts.readonly().as_array().to_vec();
    Ok(core::bpe::learn::Learned { merges, counts, certain, ..Default::default() })
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
