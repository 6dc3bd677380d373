//! Arguments: texts and ids as Python has them, as bytes and numbers.

use std::borrow::Cow;
use std::ffi::CStr;
use std::sync::Mutex;

use numpy::{Element, PyArray1, PyArrayMethods, PyUntypedArray};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyInt, PyList, PyMemoryView, PyString, PyTuple};

use crate::errors::raise;
use subword_core::engine::char_spans;

/// A text: a `str` as its UTF-8, or bytes as they are.
///
/// A `str` can hold surrogates, which have no UTF-8: a pair is read as the character that it spells, one alone as
/// U+FFFD. `pairs` keeps where pairs were, so that characters are counted as Python counts them.
pub struct Text<'py> {
    content: Content<'py>,
    pairs: Vec<usize>,
}

/// A `str` of so many characters may take twice the memory. Python keeps the UTF-8 that it makes of one that is not
/// ASCII as long as that lives, which is the quickest way, but nothing to do to many or long ones.
const SHORT: usize = 1024;

enum Content<'py> {
    /// Of which Python has the UTF-8 itself: all ASCII, or short.
    Kept(Bound<'py, PyString>),
    Bytes(Bound<'py, PyBytes>),
    Made(Vec<u8>),
}

impl Content<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Kept(text) => text.to_str().map_or(&[], str::as_bytes),
            Self::Bytes(bytes) => bytes.as_bytes(),
            Self::Made(bytes) => bytes,
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for Text<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.cast::<PyString>() {
            Ok(text) => Self::of_str(&text),
            Err(_) => Ok(Self { content: content_of(&object, &String::new)?, pairs: Vec::new() }),
        }
    }
}

impl<'py> Text<'py> {
    fn of_str(text: &Bound<'py, PyString>) -> PyResult<Self> {
        let is_kept = match chars_of(text) <= SHORT {
            true => text.to_str().is_ok(),
            false => is_ascii(text),
        };
        if is_kept {
            return Ok(Self { content: Content::Kept(text.clone()), pairs: Vec::new() });
        }
        let mut maker = Utf8::default();
        maker.add(text)?;
        Ok(Self { content: Content::Made(maker.bytes), pairs: maker.pairs })
    }

    pub fn bytes(&self) -> &[u8] {
        self.content.bytes()
    }

    /// The index in Python's characters of the character with index `at`.
    pub fn char_index(&self, at: usize) -> usize {
        at + self.pairs.partition_point(|&pair| pair < at)
    }

    /// Byte spans in the units of slices: characters for a `str`, bytes for bytes.
    pub fn native_spans(&self, spans: &[(usize, usize)]) -> Vec<(usize, usize)> {
        if matches!(self.content, Content::Bytes(_)) {
            return spans.to_vec();
        }
        let chars = char_spans(self.bytes(), spans);
        chars.into_iter().map(|(start, end)| (self.char_index(start), self.char_index(end))).collect()
    }
}

/// Makes UTF-8 of what is not ASCII.
#[derive(Default)]
struct Utf8 {
    bytes: Vec<u8>,
    /// Where the last text had surrogate pairs.
    pairs: Vec<usize>,
    points: Vec<u32>,
}

/// So many characters of a text are looked at together.
const PIECE: usize = 1 << 14;

impl Utf8 {
    fn add(&mut self, text: &Bound<'_, PyString>) -> PyResult<()> {
        let len = chars_of(text);
        self.pairs.clear();
        self.bytes.reserve(len);
        let mut at = 0;
        while at < len {
            let end = len.min(at + PIECE);
            let py = text.py();
            if self.points.len() < end - at {
                self.points.resize(end - at, 0);
            }
            let points = &mut self.points[..end - at];
            // SAFETY: the GIL is held, `text` is a `str`, and `at..end` lies in it, so that the part is a new `str` of
            // as many characters as there is room for in `points`; or null with an exception set.
            unsafe {
                let part = match len <= PIECE {
                    true => text.clone().into_any(),
                    false => {
                        let part = ffi::PyUnicode_Substring(text.as_ptr(), at as isize, end as isize);
                        Bound::from_owned_ptr_or_err(py, part)?
                    }
                };
                if ffi::PyUnicode_AsUCS4(part.as_ptr(), points.as_mut_ptr(), points.len() as isize, 0).is_null() {
                    return Err(PyErr::fetch(py));
                }
            }
            // A pair stays together.
            let apart = end < len && points.last().is_some_and(is_high);
            let done = if apart { points.len() - 1 } else { points.len() };
            add_points(&points[..done], at, &mut self.bytes, &mut self.pairs);
            at += done;
        }
        // The characters that pairs spell are counted.
        self.pairs.iter_mut().enumerate().for_each(|(before, pair)| *pair -= before);
        Ok(())
    }
}

fn is_high(point: &u32) -> bool {
    (0xd800..0xdc00).contains(point)
}

/// Appends the UTF-8 of some points of a text, of which the first has the index `first`, and the indices of pairs.
fn add_points(points: &[u32], first: usize, out: &mut Vec<u8>, pairs: &mut Vec<usize>) {
    const ROW: usize = 16;
    let mut at = 0;
    while at < points.len() {
        let is_ascii = |row: &&[u32]| row.iter().fold(0, |all, point| all | point) < 0x80;
        let rows = points[at..].chunks_exact(ROW).take_while(is_ascii).count();
        out.extend(points[at..at + rows * ROW].iter().map(|&point| point as u8));
        at += rows * ROW;
        let (mut bytes, mut len) = ([0; 4 * ROW], 0);
        let end = points.len().min(at + ROW);
        while at < end {
            let point = points[at];
            at += 1;
            if point < 0x80 {
                bytes[len] = point as u8;
                len += 1;
                continue;
            }
            let low = points.get(at).filter(|low| is_high(&point) && (0xdc00..0xe000).contains(*low));
            let char = match low {
                Some(low) => {
                    pairs.push(first + at - 1);
                    at += 1;
                    char::from_u32(0x1_0000 + ((point - 0xd800) << 10) + (low - 0xdc00))
                }
                None => char::from_u32(point),
            };
            len += char.unwrap_or(char::REPLACEMENT_CHARACTER).encode_utf8(&mut bytes[len..]).len();
        }
        out.extend_from_slice(&bytes[..len]);
    }
}

/// How many characters a `str` has.
fn chars_of(text: &Bound<'_, PyString>) -> usize {
    // SAFETY: the GIL is held, and the object is a `str`.
    usize::try_from(unsafe { ffi::PyUnicode_GetLength(text.as_ptr()) }).unwrap_or(0)
}

/// Whether a `str` is all ASCII. Python notes that in each, and tells it by `str.isascii` only; to call that as a method
/// takes as long as to encode a word, so the function behind it is called.
fn is_ascii(text: &Bound<'_, PyString>) -> bool {
    static FUNCTION: PyOnceLock<Option<ffi::PyCFunction>> = PyOnceLock::new();
    let py = text.py();
    let function = FUNCTION.get_or_init(py, || {
        let method = intern!(py, "").getattr("isascii").ok()?;
        // SAFETY: only a built-in function is asked for its flags and for its address, which lasts as long as Python.
        unsafe {
            let is_builtin = ffi::PyCFunction_Check(method.as_ptr()) != 0;
            let takes_none = is_builtin && ffi::PyCFunction_GetFlags(method.as_ptr()) == ffi::METH_NOARGS;
            takes_none.then(|| ffi::PyCFunction_GetFunction(method.as_ptr())).flatten()
        }
    });
    let Some(function) = function else { return false };
    // SAFETY: the GIL is held; a function with METH_NOARGS takes its object, here a `str`, and null, and this one returns
    // a new reference to True or False.
    unsafe {
        let answer = function(text.as_ptr(), std::ptr::null_mut());
        ffi::Py_XDECREF(answer);
        answer == ffi::Py_True()
    }
}

/// What is no `str`, as bytes. `place` says in errors which of several texts this is.
fn content_of<'py>(object: &Bound<'py, PyAny>, place: &dyn Fn() -> String) -> PyResult<Content<'py>> {
    Ok(Content::Bytes(match object.cast::<PyBytes>() {
        Ok(bytes) => bytes.to_owned(),
        Err(_) => copy_of(object, place)?,
    }))
}

/// The bytes of a buffer that is not `bytes`: copied, because its owner may change it meanwhile.
fn copy_of<'py>(object: &Bound<'py, PyAny>, place: &dyn Fn() -> String) -> PyResult<Bound<'py, PyBytes>> {
    let kind = object.get_type().name()?;
    let refuse = |why: String| raise("SubwordValueError", format!("{}{why}", place()));
    let view = match PyMemoryView::from(object) {
        Ok(view) if view.getattr("ndim")?.extract::<usize>()? > 0 => view,
        Err(error) if !error.is_instance_of::<PyTypeError>(object.py()) => {
            return Err(refuse(format!("this {kind} cannot be read as a text: {}", error.value(object.py()))))
        }
        _ => return Err(refuse(format!("a text must be str or bytes, not {kind}"))),
    };
    if !holds_bytes(&view)? {
        let format = view.getattr("format")?;
        let why = format!("a text must be str or bytes; this {kind} holds items of the format {format:?}, not bytes");
        return Err(refuse(why + ": if it is text nevertheless, pass its .tobytes()"));
    }
    Ok(view.call_method0("tobytes")?.cast_into()?)
}

/// Whether the items of a buffer are bytes.
fn holds_bytes(view: &Bound<'_, PyMemoryView>) -> PyResult<bool> {
    let format: String = view.getattr("format")?.extract()?;
    Ok(matches!(format.trim_start_matches(['@', '=', '<', '>', '!']), "B" | "b" | "c"))
}

/// A `str` or bytes as they are, a copy of another buffer: what stays the same while it is looked at twice.
#[pyfunction]
pub fn frozen_text<'py>(text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match text.is_instance_of::<PyString>() || text.is_instance_of::<PyBytes>() {
        true => Ok(text.clone()),
        false => Ok(copy_of(text, &String::new)?.into_any()),
    }
}

/// UTF-8 as a `str`; `errors` says what becomes of what is not well-formed, as in `bytes.decode`.
pub fn str_of<'py>(py: Python<'py>, bytes: &[u8], errors: &CStr) -> PyResult<Bound<'py, PyString>> {
    let len = bytes.len() as ffi::Py_ssize_t; // a slice has at most isize::MAX bytes
                                              // SAFETY: the GIL is held, the pointers are those of a slice and of a C string that outlive the call, which only
                                              // reads them; what it returns is a new reference, or null with an exception set.
    let text = unsafe {
        let text = ffi::PyUnicode_DecodeUTF8(bytes.as_ptr().cast(), len, errors.as_ptr());
        Bound::from_owned_ptr_or_err(py, text)?
    };
    Ok(text.cast_into()?)
}

/// Several texts.
pub struct Texts<'py>(Vec<Item<'py>>);

enum Item<'py> {
    Text(Content<'py>),
    /// Not ASCII: made UTF-8 when its turn comes.
    Str(Py<PyString>),
}

impl Item<'_> {
    fn row(&self, py: Python<'_>) -> Row<'_> {
        match self {
            Self::Text(content) => Row::There(content.bytes()),
            Self::Str(text) => Row::Later(text, chars_of(text.bind(py))),
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for Texts<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Self::read(&object, |number| format!("text {number} of the batch: "))
    }
}

impl<'py> Texts<'py> {
    /// `place` says in errors which text the one with a number is.
    pub fn read(object: &Bound<'py, PyAny>, place: impl Fn(u64) -> String) -> PyResult<Self> {
        if object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>() {
            let kind = object.get_type().name()?;
            let message = format!("texts must be a list of texts, not one {kind}: put it into a list");
            return Err(raise("SubwordValueError", message));
        }
        let items = object.try_iter().map_err(|_| {
            raise("SubwordValueError", "texts must be a list (or another iterable) of str or bytes".into())
        })?;
        let item = |(item, number): (PyResult<Bound<'py, PyAny>>, u64)| {
            let item = item?;
            Ok(match item.cast_into::<PyString>() {
                Ok(text) if is_ascii(&text) => Item::Text(Content::Kept(text)),
                Ok(text) => Item::Str(text.unbind()),
                Err(other) => Item::Text(content_of(&other.into_inner(), &|| place(number))?),
            })
        };
        items.zip(0..).map(item).collect::<PyResult<_>>().map(Self)
    }

    /// All as bytes.
    pub fn made(self, py: Python<'py>) -> PyResult<Made<'py>> {
        let make = |item| match item {
            Item::Text(content) => Ok(content),
            Item::Str(text) => Text::of_str(text.bind(py)).map(|text| text.content),
        };
        self.0.into_iter().map(make).collect::<PyResult<_>>().map(Made)
    }

    /// As the core takes a batch.
    pub fn rows(&self, py: Python<'_>) -> Rows<'_> {
        Rows { rows: self.0.iter().map(|item| item.row(py)).collect(), failed: Mutex::default() }
    }
}

/// Several texts as bytes.
pub struct Made<'py>(Vec<Content<'py>>);

impl Made<'_> {
    pub fn bytes(&self) -> Vec<&[u8]> {
        self.0.iter().map(Content::bytes).collect()
    }
}

/// Several texts for the core.
pub struct Rows<'t> {
    rows: Vec<Row<'t>>,
    failed: Mutex<Option<PyErr>>,
}

enum Row<'t> {
    There(&'t [u8]),
    /// With how many characters.
    Later(&'t Py<PyString>, usize),
}

impl Rows<'_> {
    /// What went wrong when a text was made bytes.
    pub fn failed(self) -> Option<PyErr> {
        self.failed.into_inner().ok().flatten()
    }
}

impl subword_core::batch::Texts for Rows<'_> {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn bytes(&self, text: usize) -> Option<&[u8]> {
        match &self.rows[text] {
            Row::There(bytes) => Some(bytes),
            Row::Later(..) => None,
        }
    }

    fn size(&self, text: usize) -> usize {
        match &self.rows[text] {
            Row::There(bytes) => bytes.len(),
            Row::Later(_, chars) => *chars,
        }
    }

    fn make(&self, texts: &[usize], made: &mut Vec<u8>, ends: &mut Vec<usize>) -> subword_core::Result<()> {
        let mut maker = Utf8 { bytes: std::mem::take(made), ..Utf8::default() };
        let make = |py: Python<'_>| {
            for &text in texts {
                if let Row::Later(text, _) = &self.rows[text] {
                    maker.add(text.bind(py))?;
                }
                ends.push(maker.bytes.len());
            }
            *made = maker.bytes;
            Ok(())
        };
        Python::attach(make).map_err(|error| {
            if let Ok(mut failed) = self.failed.lock() {
                *failed = Some(error);
            }
            subword_core::Error::interrupted()
        })
    }
}

/// An id alone.
pub fn id_of(object: &Bound<'_, PyAny>) -> PyResult<u32> {
    checked_id(object, &String::new)
}

/// `place` says in errors where the id stands.
fn checked_id(object: &Bound<'_, PyAny>, place: &dyn Fn() -> String) -> PyResult<u32> {
    let number = match object.cast::<PyBool>() {
        Ok(_) => None,
        Err(_) => object.call_method0("__index__").ok(),
    };
    let Some(number) = number.filter(|number| number.is_instance_of::<PyInt>()) else {
        let shown = object.repr().map_or_else(|_| "?".into(), |repr| repr.to_string());
        let kind = object.get_type().name()?;
        let message = format!("{}a token id must be an integer, not {shown} ({kind})", place());
        return Err(raise("SubwordValueError", message));
    };
    number
        .extract::<u32>()
        .map_err(|_| raise("UnknownTokenError", format!("{}the vocabulary has no id {number}", place())))
}

/// Ids from a list, a tuple, an array, or anything that iterates over integers; of a batch, those of an `item`.
pub fn ids_of(object: &Bound<'_, PyAny>, item: Option<usize>) -> PyResult<Vec<u32>> {
    let id = |(position, id): (usize, Bound<'_, PyAny>)| match id.extract::<u32>() {
        Ok(number) if !id.is_instance_of::<PyBool>() => Ok(number),
        _ => checked_id(&id, &|| match item {
            Some(item) => format!("item {item} of the batch, position {position} of the ids: "),
            None => format!("position {position} of the ids: "),
        }),
    };
    let refuse = |why: &str| {
        let kind = object.get_type().name().map_or(Cow::Borrowed("?"), |kind| Cow::Owned(kind.to_string()));
        let place = item.map_or(String::new(), |item| format!("item {item} of the batch: "));
        let message = format!("{place}token ids must be a list or an array of integers, not {kind}{why}");
        raise("SubwordValueError", message)
    };
    // Whole lists and arrays at once; what is wrong in one is looked for item by item.
    let at_once = match (object.cast_exact::<PyList>(), object.cast::<PyTuple>()) {
        (Ok(list), _) => ids_of_list(list),
        (_, Ok(tuple)) => tuple.iter_borrowed().map(|id| exact_id(&id)).collect(),
        _ => ids_of_array(object),
    };
    if let Some(ids) = at_once {
        return Ok(ids);
    }
    if let Ok(list) = object.cast::<PyList>() {
        return list.iter().enumerate().map(id).collect();
    }
    if let Ok(tuple) = object.cast::<PyTuple>() {
        return tuple.iter().enumerate().map(id).collect();
    }
    if object.is_instance_of::<PyString>() {
        return Err(refuse(": encode() takes text"));
    }
    let is_bytes = match object.cast::<PyMemoryView>() {
        Ok(view) => holds_bytes(view)?,
        Err(_) => object.is_instance_of::<PyBytes>() || object.is_instance_of::<PyByteArray>(),
    };
    if is_bytes {
        return Err(refuse(
            ": read stored ids with numpy.frombuffer(data, dtype), or write list(data) for one id a byte",
        ));
    }
    let items = object.try_iter().map_err(|_| refuse(""))?;
    items.enumerate().map(|(position, item)| id((position, item?))).collect()
}

/// The ids in a list, if all are exactly `int` and fit.
fn ids_of_list(list: &Bound<'_, PyList>) -> Option<Vec<u32>> {
    with_critical_section(list, || {
        let len = list.len();
        let mut ids = Vec::with_capacity(len);
        for at in 0..len {
            // SAFETY: `at` is an index of a list, so that a borrowed reference is returned. It lives as long as the
            // list keeps it: nobody changes the list meanwhile, as the GIL is held (without a GIL the list is locked),
            // and reading an `int` runs no Python code.
            let id = unsafe { Borrowed::from_ptr_or_err(list.py(), ffi::PyList_GetItem(list.as_ptr(), at as isize)) };
            let Ok(id) = id else { return None };
            ids.push(exact_id(&id)?);
        }
        Some(ids)
    })
}

/// An id that is exactly an `int`, and fits.
#[inline]
fn exact_id(object: &Bound<'_, PyAny>) -> Option<u32> {
    if !object.is_exact_instance_of::<PyInt>() {
        return None;
    }
    let mut overflow = 0;
    // SAFETY: the object is an `int`; the call only reads it, and gives -1 without an exception if it is too large.
    u32::try_from(unsafe { ffi::PyLong_AsLongAndOverflow(object.as_ptr(), &mut overflow) }).ok()
}

/// The ids in an array of one dimension, if it is of whole numbers and all fit. Copied, because others may write to
/// it while the GIL is released.
fn ids_of_array(object: &Bound<'_, PyAny>) -> Option<Vec<u32>> {
    fn ids<T: Element + Copy + TryInto<u32>>(object: &Bound<'_, PyAny>) -> Option<Vec<u32>> {
        let array = object.cast::<PyArray1<T>>().ok()?.try_readonly().ok()?;
        let id = |&id: &T| id.try_into().ok();
        match array.as_slice() {
            Ok(slice) => slice.iter().map(id).collect(),
            Err(_) => array.as_array().iter().map(id).collect(),
        }
    }
    object.cast::<PyUntypedArray>().ok()?;
    ids::<u32>(object)
        .or_else(|| ids::<i64>(object))
        .or_else(|| ids::<i32>(object))
        .or_else(|| ids::<u64>(object))
        .or_else(|| ids::<u16>(object))
}
