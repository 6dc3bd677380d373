//! A compiled tokenizer: the stages, the model, the extra tokens, the template. Immutable, and safe to share.

use std::collections::HashSet;
use std::sync::Arc;

use crate::bpe::Bpe;
use crate::error::{Error, Result};
use crate::extra::{Extra, Kind, Policy};
use crate::hash::IntMap;
use crate::parallel::in_parallel;
use crate::pipeline::{Pipeline, StageRow, Stop, Unit};
use crate::unicode::{char_len, class_before};
use crate::vocab::{show, Token};

pub struct Engine {
    pub pipeline: Pipeline,
    bpe: Arc<Bpe>,
    /// Ids are the entries' indices.
    plain_ids: bool,
    extra_of_id: IntMap<u64, usize>,
    template: (Vec<u32>, Vec<u32>),
    ends: Option<WordEnds>,
    n_vocab: usize,
}

/// What the end-of-word marker behind an entry decodes to.
pub struct WordEnds {
    pub marker: Vec<u8>,
    pub shown: Vec<u8>,
    /// It decodes to nothing behind the last id.
    pub trim: bool,
}

/// Ids of a text, with the span of each in bytes and in characters of the original.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Spans {
    pub ids: Vec<u32>,
    pub bytes: Vec<(usize, usize)>,
    pub chars: Vec<(usize, usize)>,
}

/// The longest text in bytes: offsets into it and ids counted in it stay far from every limit.
pub const MAX_TEXT: usize = 1 << 40;

impl Engine {
    pub fn new(
        stages: &[StageRow],
        bpe: Arc<Bpe>,
        extras: Vec<Extra>,
        template: (Vec<u32>, Vec<u32>),
        (shown, trim): (Vec<u8>, bool),
    ) -> Result<Self> {
        let marker = bpe.end_of_word().to_vec();
        let mut extra_of_id = IntMap::default();
        for (index, extra) in extras.iter().enumerate() {
            if let Some(entry) = bpe.vocab.token_of_id(extra.id).filter(|&t| bpe.vocab.piece(t) != extra.content) {
                return Err(Error::format(format!(
                    "the id {} is given to the extra token {} and to the entry {}",
                    extra.id,
                    show(&extra.content),
                    show(bpe.vocab.piece(entry))
                )));
            }
            if extra_of_id.insert(u64::from(extra.id), index).is_some() {
                return Err(Error::format(format!("the id {} is given to two extra tokens", extra.id)));
            }
        }
        let largest = (0..bpe.vocab.len() as Token).next_back().map(|token| bpe.vocab.id(token));
        let n_vocab = extras.iter().map(|extra| extra.id).chain(largest).max().map_or(0, |id| id as usize + 1);
        let pipeline = Pipeline::new(stages, extras)?;
        let engine = Self {
            plain_ids: (0..bpe.vocab.len() as Token).all(|token| bpe.vocab.id(token) == token),
            pipeline,
            bpe,
            extra_of_id,
            template,
            ends: (!marker.is_empty()).then_some(WordEnds { marker, shown, trim }),
            n_vocab,
        };
        for &id in engine.template.0.iter().chain(&engine.template.1) {
            engine.token_bytes(id).map_err(|error| Error::format(format!("the template: {error}")))?;
        }
        Ok(engine)
    }

    /// The largest id plus one.
    pub fn n_vocab(&self) -> usize {
        self.n_vocab
    }

    pub fn plan(&self) -> Vec<(String, String, String)> {
        [self.pipeline.plan(), self.bpe.plan()].concat()
    }

    /// The ids that the last merge of each entry joins, in the order of the vocabulary; None where there is none.
    pub fn last_merges(&self) -> Vec<Option<(u32, u32)>> {
        let ids = |(left, right)| (self.bpe.vocab.id(left), self.bpe.vocab.id(right));
        self.bpe.last_merges().into_iter().map(|pair| pair.map(ids)).collect()
    }

    /// No special token is taken from text; text that spells one is refused.
    pub fn default_policy(&self) -> Result<Policy> {
        self.pipeline.extras.policy(|_| false, self.pipeline.extras.specials())
    }

    /// No special token is taken from text; text that spells one is just text.
    pub fn ordinary_policy(&self) -> Result<Policy> {
        self.pipeline.extras.policy(|_| false, Vec::new())
    }

    /// A policy that takes the special tokens `allowed` from text and refuses the strings `disallowed`.
    pub fn policy(&self, allowed: &[String], disallowed: Vec<String>) -> Result<Policy> {
        let allowed: HashSet<&[u8]> = allowed.iter().map(String::as_bytes).collect();
        let is_allowed = |extra: &Extra| allowed.contains(&*extra.content);
        self.pipeline.extras.policy(is_allowed, disallowed.into_iter().map(String::into_bytes).collect())
    }

    /// Refuses text that is too long, that holds a forbidden string, or that has bytes without an entry.
    pub fn check_text(&self, text: &[u8], policy: &Policy) -> Result<()> {
        check_len(text)?;
        self.bpe.check(text)?;
        policy.check(text)
    }

    // ======================== encoding ========================

    /// Appends the ids of `text`.
    pub fn encode(
        &self,
        text: &[u8],
        policy: &Policy,
        add_special_tokens: bool,
        stop: Stop<'_>,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        self.check_text(text, policy)?;
        if add_special_tokens {
            out.extend_from_slice(&self.template.0);
        }
        self.pipeline.run(text, policy, false, stop, |unit| {
            self.encode_unit(&unit, out);
            Ok(())
        })?;
        if add_special_tokens {
            out.extend_from_slice(&self.template.1);
        }
        Ok(())
    }

    #[inline]
    fn encode_unit(&self, unit: &Unit<'_, '_>, out: &mut Vec<u32>) {
        match *unit {
            Unit::Extra { index, .. } => out.push(self.pipeline.extras.tokens[index].id),
            Unit::Piece { segment, start, end } => {
                let from = out.len();
                self.bpe.encode(&segment.bytes[start..end], out);
                if !self.plain_ids {
                    out[from..].iter_mut().for_each(|token| *token = self.bpe.vocab.id(*token));
                }
            }
        }
    }

    /// Ids with spans. The tokens of the template stand at the ends with empty spans.
    pub fn encode_with_spans(
        &self,
        text: &[u8],
        policy: &Policy,
        add_special_tokens: bool,
        stop: Stop<'_>,
    ) -> Result<Spans> {
        self.check_text(text, policy)?;
        let mut spans = Spans::default();
        let mut tokens = Vec::new();
        if add_special_tokens {
            spans.ids.extend(&self.template.0);
            spans.bytes.resize(spans.ids.len(), (0, 0));
        }
        self.pipeline.run(text, policy, false, stop, |unit| {
            match unit {
                Unit::Extra { index, span } => {
                    spans.ids.push(self.pipeline.extras.tokens[index].id);
                    spans.bytes.push(span);
                }
                Unit::Piece { segment, mut start, end } => {
                    tokens.clear();
                    self.bpe.encode(&segment.bytes[start..end], &mut tokens);
                    for (i, &token) in tokens.iter().enumerate() {
                        let is_last = i + 1 == tokens.len();
                        let after =
                            if is_last { end } else { start + self.bpe.covers(token, &segment.bytes[..end], start) };
                        spans.ids.push(self.bpe.vocab.id(token));
                        spans.bytes.push(segment.span(start, after));
                        start = after;
                    }
                }
            }
            Ok(())
        })?;
        if add_special_tokens {
            spans.ids.extend(&self.template.1);
            spans.bytes.resize(spans.ids.len(), (text.len(), text.len()));
        }
        spans.chars = char_spans(text, &spans.bytes);
        Ok(spans)
    }

    pub fn count(&self, text: &[u8], policy: &Policy, add_special_tokens: bool, stop: Stop<'_>) -> Result<usize> {
        self.check_text(text, policy)?;
        let template = if add_special_tokens { self.template_len() } else { 0 };
        Ok(template + self.count_part(text, policy, false, stop)?)
    }

    /// The token count of a part of a text; `continues` says that it does not start it.
    pub fn count_part(&self, text: &[u8], policy: &Policy, continues: bool, stop: Stop<'_>) -> Result<usize> {
        let (mut count, mut tokens) = (0, Vec::new());
        self.pipeline.run(text, policy, continues, stop, |unit| {
            tokens.clear();
            self.encode_unit(&unit, &mut tokens);
            count += tokens.len();
            Ok(())
        })?;
        Ok(count)
    }

    pub fn template_len(&self) -> usize {
        self.template.0.len() + self.template.1.len()
    }

    pub fn bpe(&self) -> &Bpe {
        &self.bpe
    }

    /// Ids of all texts in one buffer, and the length of each.
    pub fn encode_batch(
        &self,
        texts: &[&[u8]],
        policy: &Policy,
        add_special_tokens: bool,
        threads: usize,
        stop: Stop<'_>,
    ) -> Result<(Vec<u32>, Vec<usize>)> {
        let parts = self.over_texts(texts, threads, stop, |text, out: &mut (Vec<u32>, Vec<usize>), stop| {
            let from = out.0.len();
            self.encode(text, policy, add_special_tokens, stop, &mut out.0)?;
            out.1.push(out.0.len() - from);
            Ok(())
        })?;
        let mut parts = parts.into_iter();
        let (mut ids, mut lengths) = parts.next().unwrap_or_default();
        for (more_ids, more_lengths) in parts {
            ids.extend_from_slice(&more_ids);
            lengths.extend_from_slice(&more_lengths);
        }
        Ok((ids, lengths))
    }

    pub fn count_batch(
        &self,
        texts: &[&[u8]],
        policy: &Policy,
        add_special_tokens: bool,
        threads: usize,
        stop: Stop<'_>,
    ) -> Result<Vec<usize>> {
        let parts = self.over_texts(texts, threads, stop, |text, out: &mut Vec<usize>, stop| {
            out.push(self.count(text, policy, add_special_tokens, stop)?);
            Ok(())
        })?;
        Ok(parts.concat())
    }

    /// Runs `work` on every text, in the order of the texts within each result; an error names its text.
    fn over_texts<R: Default + Send>(
        &self,
        texts: &[&[u8]],
        threads: usize,
        stop: Stop<'_>,
        work: impl Fn(&[u8], &mut R, Stop<'_>) -> Result<()> + Sync,
    ) -> Result<Vec<R>> {
        let threads = threads.clamp(1, texts.len().max(1));
        let sizes: Vec<usize> = texts.iter().map(|text| text.len()).collect();
        in_parallel(&sizes, vec![(); threads], stop, |(), range, stop| {
            let mut out = R::default();
            for index in range {
                if stop() {
                    return Err(Error::interrupted());
                }
                work(texts[index], &mut out, stop).map_err(|error| Error {
                    message: format!("text {index} of the batch: {}", error.message),
                    ..error
                })?;
            }
            Ok(out)
        })
    }

    /// Byte spans of the pieces and of the extra tokens between them.
    pub fn split(&self, text: &[u8], policy: &Policy, stop: Stop<'_>) -> Result<Vec<(usize, usize)>> {
        self.check_text(text, policy)?;
        let mut spans = Vec::new();
        self.pipeline.run(text, policy, false, stop, |unit| {
            spans.push(match unit {
                Unit::Extra { span, .. } => span,
                Unit::Piece { segment, start, end } => segment.span(start, end),
            });
            Ok(())
        })?;
        Ok(spans)
    }

    /// Where `text` spells special tokens: start and end in characters, and the id.
    pub fn find_special(&self, text: &[u8]) -> Result<Vec<(usize, usize, u32)>> {
        check_len(text)?;
        let found = self.pipeline.extras.find_specials(text)?;
        let spans: Vec<_> = found.iter().map(|found| (found.start, found.end)).collect();
        let ids = found.iter().map(|found| self.pipeline.extras.tokens[found.token].id);
        Ok(char_spans(text, &spans).into_iter().zip(ids).map(|((start, end), id)| (start, end, id)).collect())
    }

    // ======================== decoding ========================

    /// The bytes that an id decodes to.
    pub fn token_bytes(&self, id: u32) -> Result<Vec<u8>> {
        let stored = self.stored(id)?;
        Ok(match self.word_end(id, stored) {
            Some((stem, shown)) => [stem, shown].concat(),
            None => stored.to_vec(),
        })
    }

    /// An entry as the vocabulary has it, or the content of an extra token.
    fn stored(&self, id: u32) -> Result<&[u8]> {
        if let Some(token) = self.bpe.vocab.token_of_id(id) {
            return Ok(self.bpe.vocab.piece(token));
        }
        match self.extra(id) {
            Some(extra) => Ok(&extra.content),
            None => Err(Error::unknown(format!("the vocabulary has no id {id}{}", self.id_hint(id)))),
        }
    }

    /// For an entry that ends in the end-of-word marker, what stands before it and what it decodes to.
    fn word_end<'e>(&'e self, id: u32, stored: &'e [u8]) -> Option<(&'e [u8], &'e [u8])> {
        let ends = self.ends.as_ref()?;
        let stem = stored.strip_suffix(&*ends.marker)?;
        self.bpe.vocab.token_of_id(id).map(|_| (stem, &*ends.shown))
    }

    fn id_hint(&self, id: u32) -> String {
        match self.n_vocab {
            0 => String::new(),
            n if (id as usize) < n => format!(": it is a hole among the ids 0 … {}", n - 1),
            n => format!(": the largest is {}", n - 1),
        }
    }

    fn extra(&self, id: u32) -> Option<&Extra> {
        self.extra_of_id.get(&u64::from(id)).map(|&index| &self.pipeline.extras.tokens[index])
    }

    pub fn token_id(&self, token: &[u8]) -> Option<u32> {
        let extra = self.pipeline.extras.spelled(token);
        extra.map(|extra| extra.id).or_else(|| self.bpe.vocab.find(token).map(|token| self.bpe.vocab.id(token)))
    }

    /// The bytes of all ids, one after the other. Special and unmatchable tokens can be left out.
    pub fn decode(&self, ids: &[u32], skip_special_tokens: bool) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(ids.len() * 5);
        let mut word_end = 0;
        for (position, &id) in ids.iter().enumerate() {
            if skip_special_tokens && self.extra(id).is_some_and(|extra| extra.kind != Kind::Added) {
                continue;
            }
            let stored = self
                .stored(id)
                .map_err(|error| Error::unknown(format!("position {position} of the ids: {}", error.message)))?;
            if self.ends.is_none() {
                out.extend_from_slice(stored);
                continue;
            }
            let (stem, shown) = self.word_end(id, stored).unwrap_or((stored, &[]));
            out.extend_from_slice(stem);
            out.extend_from_slice(shown);
            word_end = shown.len();
        }
        if self.ends.as_ref().is_some_and(|ends| ends.trim) {
            out.truncate(out.len() - word_end);
        }
        Ok(out)
    }

    pub fn decode_batch(
        &self,
        batch: &[Vec<u32>],
        skip_special_tokens: bool,
        threads: usize,
        stop: Stop<'_>,
    ) -> Result<Vec<Vec<u8>>> {
        // Shared out by the size of the ids, as texts are by their bytes.
        let sizes: Vec<usize> = batch.iter().map(|ids| ids.len() * 4).collect();
        let threads = threads.clamp(1, batch.len().max(1));
        let parts = in_parallel(&sizes, vec![(); threads], stop, |(), range, stop| {
            let mut out = Vec::with_capacity(range.len());
            for index in range {
                if stop() {
                    return Err(Error::interrupted());
                }
                out.push(self.decode(&batch[index], skip_special_tokens).map_err(|error| Error {
                    message: format!("item {index} of the batch, {}", error.message),
                    ..error
                })?);
            }
            Ok(out)
        })?;
        Ok(parts.into_iter().flatten().collect())
    }
}

fn check_len(text: &[u8]) -> Result<()> {
    if text.len() > MAX_TEXT {
        return Err(Error::value(format!("the text has {} bytes; the limit is {MAX_TEXT}: cut it", text.len())));
    }
    Ok(())
}

/// Character spans of byte spans in about their order: a span takes in every character it has a byte of.
pub fn char_spans(text: &[u8], spans: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let mut walk = CharWalk { text, at: 0, index: 0 };
    spans
        .iter()
        .map(|&(start, end)| {
            let first = walk.index_of(start);
            let last = if end > start { walk.index_of(end - 1) + 1 } else { first };
            (first, last)
        })
        .collect()
}

/// Finds the index of the character that holds a byte, walking on from the one found last.
struct CharWalk<'t> {
    text: &'t [u8],
    at: usize,
    index: usize,
}

impl CharWalk<'_> {
    fn index_of(&mut self, byte: usize) -> usize {
        while byte < self.at {
            self.at = class_before(self.text, self.at).1;
            self.index -= 1;
        }
        while self.at < self.text.len() {
            let len = char_len(self.text, self.at);
            if byte < self.at + len {
                break;
            }
            self.at += len;
            self.index += 1;
        }
        self.index
    }
}
