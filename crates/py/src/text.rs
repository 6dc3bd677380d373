//! Arguments: texts and ids as Python has them, as bytes and numbers.

use std::borrow::Cow;
use std::ffi::CStr;

use numpy::{Element, PyArray1, PyArrayMethods, PyUntypedArray};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
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

enum Content<'py> {
    Str(Bound<'py, PyString>),
    Bytes(Bound<'py, PyBytes>),
    Repaired(String),
}

impl<'py> FromPyObject<'_, 'py> for Text<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Self::read(&object, &String::new)
    }
}

impl<'py> Text<'py> {
    /// `place` says in errors which of several texts this is.
    fn read(object: &Bound<'py, PyAny>, place: &dyn Fn() -> String) -> PyResult<Self> {
        if let Ok(text) = object.cast::<PyString>() {
            if text.to_str().is_ok() {
                return Ok(Self { content: Content::Str(text.to_owned()), pairs: Vec::new() });
            }
            let encoded = text.call_method1("encode", ("utf-32-le", "surrogatepass"))?;
            return Ok(Self::repaired(encoded.cast::<PyBytes>()?.as_bytes()));
        }
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(Self { content: Content::Bytes(bytes.to_owned()), pairs: Vec::new() });
        }
        Ok(Self { content: Content::Bytes(copy_of(object, place)?), pairs: Vec::new() })
    }

    /// From code points, surrogates among them.
    fn repaired(utf32: &[u8]) -> Self {
        let mut points = utf32.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).peekable();
        let (mut text, mut pairs, mut index) = (String::new(), Vec::new(), 0);
        while let Some(point) = points.next() {
            let low = points.peek().copied().filter(|low| (0xdc00..0xe000).contains(low));
            let paired = low.filter(|_| (0xd800..0xdc00).contains(&point));
            if let Some(low) = paired {
                points.next();
                pairs.push(index);
                text.extend(char::from_u32(0x1_0000 + ((point - 0xd800) << 10) + (low - 0xdc00)));
            } else {
                text.push(char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            index += 1;
        }
        Self { content: Content::Repaired(text), pairs }
    }

    pub fn bytes(&self) -> &[u8] {
        match &self.content {
            Content::Str(text) => text.to_str().map_or(&[], str::as_bytes),
            Content::Bytes(bytes) => bytes.as_bytes(),
            Content::Repaired(text) => text.as_bytes(),
        }
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
pub struct Texts<'py>(Vec<Text<'py>>);

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
        let texts = items.zip(0..).map(|(item, number)| Text::read(&item?, &|| place(number)));
        texts.collect::<PyResult<_>>().map(Self)
    }

    pub fn bytes(&self) -> Vec<&[u8]> {
        self.0.iter().map(Text::bytes).collect()
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
