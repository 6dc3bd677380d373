//! A text on its way through the stages, and what of the original it stands for.

use std::borrow::Cow;

/// A stretch of text on its way through the stages, with an alignment to the original.
#[derive(Clone)]
pub struct Segment<'t> {
    pub bytes: Cow<'t, [u8]>,
    source: Source,
}

#[derive(Clone)]
enum Source {
    /// The bytes of the original from here on.
    Plain(usize),
    /// For each byte the span of the original that it stands for.
    Mapped(Vec<(usize, usize)>),
    /// For each byte, and for the end, where in the original what it stands for starts.
    Starts(Vec<usize>),
}

impl Default for Segment<'_> {
    fn default() -> Self {
        Self::plain(&[], 0)
    }
}

impl<'t> Segment<'t> {
    pub fn plain(bytes: &'t [u8], start: usize) -> Self {
        Self { bytes: Cow::Borrowed(bytes), source: Source::Plain(start) }
    }

    pub fn mapped(bytes: Vec<u8>, spans: Vec<(usize, usize)>) -> Self {
        Self { bytes: Cow::Owned(bytes), source: Source::Mapped(spans) }
    }

    /// `starts` has one number more than there are bytes.
    pub fn with_starts(bytes: Vec<u8>, starts: Vec<usize>) -> Self {
        Self { bytes: Cow::Owned(bytes), source: Source::Starts(starts) }
    }

    /// The span of the original that the bytes `from..to` stand for.
    #[inline]
    pub fn span(&self, from: usize, to: usize) -> (usize, usize) {
        match &self.source {
            Source::Plain(start) => (start + from, start + to),
            Source::Mapped(spans) if from < to => (spans[from].0, spans[to - 1].1),
            Source::Starts(starts) => (starts[from], starts[to]),
            Source::Mapped(spans) => {
                let at = spans.get(from).map_or_else(|| spans.last().map_or(0, |span| span.1), |span| span.0);
                (at, at)
            }
        }
    }

    /// The same with other bytes, as many, each for the one it replaces.
    pub fn with_bytes(self, bytes: Vec<u8>) -> Self {
        Self { bytes: Cow::Owned(bytes), ..self }
    }

    pub(super) fn slice(&self, from: usize, to: usize) -> Self {
        let source = match &self.source {
            Source::Plain(start) => Source::Plain(start + from),
            Source::Mapped(spans) => Source::Mapped(spans[from..to].to_vec()),
            Source::Starts(starts) => Source::Starts(starts[from..=to].to_vec()),
        };
        let bytes = match &self.bytes {
            Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[from..to]),
            Cow::Owned(bytes) => Cow::Owned(bytes[from..to].to_vec()),
        };
        Self { bytes, source }
    }

    pub(super) fn with_prefix_space(self) -> Self {
        if self.bytes.is_empty() || self.bytes[0] == b' ' {
            return self;
        }
        let len = self.bytes.len();
        let at = self.span(0, 0);
        let spans = std::iter::once(at).chain((0..len).map(|i| self.span(i, i + 1))).collect();
        Self::mapped([b" ", &*self.bytes].concat(), spans)
    }
}
