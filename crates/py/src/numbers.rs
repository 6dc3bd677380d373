//! Lists of ids for Python.

use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyInt, PyList};

/// Python's numbers for the ids of a vocabulary, made once they pay: to make a number takes ten times as long as to
/// put one that is there into a list, and the lists share its memory.
pub struct Numbers {
    made: PyOnceLock<Vec<Py<PyInt>>>,
    /// How many are made: those of all ids, or of the first.
    len: usize,
    /// The ids that were put into lists before.
    listed: AtomicUsize,
}

/// So many ids are looked up together.
const ROW: usize = 32;

/// 10 MB of numbers; more are made one by one.
const MOST: usize = 1 << 18;

impl Numbers {
    pub fn new(n_vocab: usize) -> Self {
        Self { made: PyOnceLock::new(), len: n_vocab.min(MOST), listed: AtomicUsize::new(0) }
    }

    pub fn list<'py>(&self, py: Python<'py>, ids: &[u32]) -> PyResult<Bound<'py, PyList>> {
        let Some(made) = self.made(py, ids.len()) else { return PyList::new(py, ids) };
        // SAFETY: the GIL is held; the list is new, as long as `ids`, and nobody else has it. Each of its places is given
        // once a reference that is ours to give.
        unsafe {
            let list = Bound::from_owned_ptr_or_err(py, ffi::PyList_New(ids.len() as isize))?;
            let mut at = 0;
            for row in ids.chunks(ROW) {
                // The numbers lie all over memory: these few at once, or the processor waits for one after the other.
                let mut numbers = [ptr::null_mut(); ROW];
                for (place, &id) in numbers.iter_mut().zip(row) {
                    *place = match made.get(id as usize) {
                        Some(number) => number.clone_ref(py).into_ptr(),
                        None => number(py, id).into_ptr(),
                    };
                }
                for &number in &numbers[..row.len()] {
                    ffi::PyList_SetItem(list.as_ptr(), at, number);
                    at += 1;
                }
            }
            Ok(list.cast_into_unchecked())
        }
    }

    /// The numbers, if there are any after `more` ids are listed.
    fn made(&self, py: Python<'_>, more: usize) -> Option<&[Py<PyInt>]> {
        if let Some(made) = self.made.get(py) {
            return Some(made);
        }
        // Two threads may overwrite each other's sum: then the numbers are made a little later.
        let listed = self.listed.load(Ordering::Relaxed).saturating_add(more);
        self.listed.store(listed, Ordering::Relaxed);
        if listed < self.len {
            return None;
        }
        let make = || (0..self.len as u32).map(|id| number(py, id).unbind()).collect();
        Some(self.made.get_or_init(py, make))
    }
}

fn number(py: Python<'_>, id: u32) -> Bound<'_, PyInt> {
    let Ok(number) = id.into_pyobject(py);
    number
}
