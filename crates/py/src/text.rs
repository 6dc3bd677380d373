//! Arguments: texts and ids as Python has them, as bytes and numbers.

use std::borrow::Cow;

use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyInt, PyList, PyString, PyTuple};

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
        let py = object.py();
        let view = py.import("builtins")?.getattr("memoryview")?.call1((object,));
        match view.and_then(|view| view.call_method0("tobytes")) {
            Ok(bytes) => Ok(Self { content: Content::Bytes(bytes.cast_into::<PyBytes>()?), pairs: Vec::new() }),
            Err(_) => {
                let kind = object.get_type().name()?;
                Err(raise("SubwordValueError", format!("a text must be str or bytes, not {kind}")))
            }
        }
    }
}

impl Text<'_> {
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

/// Several texts.
pub struct Texts<'py>(Vec<Text<'py>>);

impl<'py> FromPyObject<'_, 'py> for Texts<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>() {
            let kind = object.get_type().name()?;
            let message = format!("texts must be a list of texts, not one {kind}: put it into a list");
            return Err(raise("SubwordValueError", message));
        }
        let items = object.try_iter().map_err(|_| {
            raise("SubwordValueError", "texts must be a list (or another iterable) of str or bytes".into())
        })?;
        items.map(|item| item?.extract()).collect::<PyResult<_>>().map(Self)
    }
}

impl Texts<'_> {
    pub fn bytes(&self) -> Vec<&[u8]> {
        self.0.iter().map(Text::bytes).collect()
    }
}

/// An id, at a position of a list or alone.
pub fn id_of(object: &Bound<'_, PyAny>, position: Option<usize>) -> PyResult<u32> {
    let place = || position.map_or(String::new(), |position| format!("position {position} of the ids: "));
    let number = match object.cast::<PyBool>() {
        Ok(_) => None,
        Err(_) => object.call_method0("__index__").ok(),
    };
    let Some(number) = number.filter(|number| number.is_instance_of::<PyInt>()) else {
        let shown = object.repr().map_or_else(|_| "?".into(), |repr| repr.to_string());
        let kind = object.get_type().name()?;
        return Err(raise(
            "SubwordValueError",
            format!("{}a token id must be an integer, not {shown} ({kind})", place()),
        ));
    };
    number
        .extract::<u32>()
        .map_err(|_| raise("UnknownTokenError", format!("{}the vocabulary has no id {number}", place())))
}

/// Ids from a list, a tuple, an array, or anything that iterates over integers.
pub fn ids_of(object: &Bound<'_, PyAny>) -> PyResult<Vec<u32>> {
    if let Ok(array) = object.cast::<PyArray1<u32>>() {
        return Ok(array.to_vec()?);
    }
    if let Ok(list) = object.cast::<PyList>() {
        return list.iter().enumerate().map(|(position, id)| fast_id(&id, position)).collect();
    }
    if let Ok(tuple) = object.cast::<PyTuple>() {
        return tuple.iter().enumerate().map(|(position, id)| fast_id(&id, position)).collect();
    }
    let items = object.try_iter().map_err(|_| {
        let kind = object.get_type().name().map_or(Cow::Borrowed("?"), |kind| Cow::Owned(kind.to_string()));
        raise("SubwordValueError", format!("token ids must be a list or an array of integers, not {kind}"))
    })?;
    items.enumerate().map(|(position, id)| fast_id(&id?, position)).collect()
}

fn fast_id(object: &Bound<'_, PyAny>, position: usize) -> PyResult<u32> {
    match object.extract::<u32>() {
        Ok(id) if !object.is_instance_of::<PyBool>() => Ok(id),
        _ => id_of(object, Some(position)),
    }
}
