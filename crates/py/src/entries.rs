//! Vocabularies and merges that the core reads from text, as Python takes them.

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::interruptible;
use subword_core::entries::{self, Members, Spelling};
use subword_core::vocab::Vocab;

#[pyclass(frozen, module = "subword._core")]
pub struct Entries {
    #[pyo3(get)]
    pieces: Py<PyBytes>,
    #[pyo3(get)]
    offsets: Py<PyArray1<u64>>,
    #[pyo3(get)]
    ids: Py<PyArray1<u32>>,
    #[pyo3(get)]
    merges: Py<PyArray2<u32>>,
    #[pyo3(get)]
    made: Py<PyArray1<u32>>,
    #[pyo3(get)]
    merged: Py<PyArray1<bool>>,
    #[pyo3(get)]
    others: Vec<(String, u32)>,
    vocab: Vocab,
}

#[pymethods]
impl Entries {
    /// The index of an entry.
    fn find(&self, piece: &[u8]) -> Option<u32> {
        self.vocab.find(piece)
    }
}

impl Entries {
    fn new(py: Python<'_>, entries: entries::Entries) -> PyResult<Self> {
        let entries::Entries { vocab, offsets, others, merges, made, merged } = entries;
        let (pieces, ids) = vocab.packed();
        let (pieces, ids, len) = (PyBytes::new(py, pieces).unbind(), ids.to_vec(), merges.len());
        Ok(Self {
            pieces,
            offsets: offsets.into_pyarray(py).unbind(),
            ids: ids.into_pyarray(py).unbind(),
            merges: merges.into_flattened().into_pyarray(py).reshape([len, 2])?.unbind(),
            made: made.into_pyarray(py).unbind(),
            merged: merged.into_pyarray(py).unbind(),
            others,
            vocab,
        })
    }
}

/// Where the members `vocab` and `merges` of a `tokenizer.json` stand in it, and what they hold; None where anything in
/// them is unusual.
#[pyfunction]
pub fn read_members(
    py: Python<'_>,
    data: &[u8],
    most: u32,
    by_characters: bool,
) -> PyResult<Option<((usize, usize), (usize, usize), Entries)>> {
    let spelling = if by_characters { Spelling::Plain } else { Spelling::Alphabet };
    let Some(members) = interruptible(py, |_| Ok(Members::read(data, most, spelling)))? else { return Ok(None) };
    let (vocab, merges) = (members.vocab, members.merges);
    Ok(Some(((vocab.start, vocab.end), (merges.start, merges.end), Entries::new(py, members.entries)?)))
}

/// The entries of a `vocab.json` with the lines of its `merges.txt`; None where anything in them is unusual.
#[pyfunction]
pub fn read_entries(py: Python<'_>, vocab: &[u8], merges: &[u8], most: u32) -> PyResult<Option<Entries>> {
    let read = interruptible(py, |_| Ok(entries::Entries::read(vocab, merges, most)))?;
    read.map(|entries| Entries::new(py, entries)).transpose()
}
