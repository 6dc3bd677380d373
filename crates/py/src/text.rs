//! Arguments: texts and ids as Python has them, as bytes and numbers.

use std::borrow::Cow;

use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
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
    if let Ok(array) = object.cast::<PyArray1<u32>>() {
        if let Ok(array) = array.try_readonly() {
            return Ok(array.as_array().to_vec());
        }
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
