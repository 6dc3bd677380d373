//! A compiled tokenizer: the stages, the model, the extra tokens, the template. Immutable, and safe to share.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::bpe::merge::Queue;
use crate::bpe::seams::{ALPHABETS, LEAD};
use crate::cache::{Cache, Count, Encoder, Output};
use crate::decode::{Decoder, Decoding};
use crate::error::{Error, Result};
use crate::extra::{Extra, Policy};
use crate::hash::IntMap;
use crate::model::Model;
use crate::pipeline::{Pipeline, StageRow, Stop, Unit, BATCH};
use crate::random::Dropout;
use crate::scored::{Room, Scored};
use crate::sentencepiece::cuts::Cuts;
use crate::split::neighbours::Neighbours;
use crate::unicode::{char_len, class_before};
use crate::units::{Units, Walk, LEVELS};
use crate::vocab::{show, Token};

/// Bytes of caches that are kept between calls at most.
const KEPT: usize = 1 << 29;

pub struct Engine {
    pub pipeline: Pipeline,
    pub(crate) model: Arc<Model>,
    /// Ids are the entries' indices.
    plain_ids: bool,
    pub(crate) decoder: Decoder,
    template: (Vec<u32>, Vec<u32>),
    n_vocab: usize,
    /// What threads have learned about pieces; each takes one for the time of a call.
    caches: Mutex<Vec<Cache>>,
    /// The same of words as they stand in the text.
    word_caches: Mutex<Vec<Cache>>,
    /// Where a text can be cut before SentencePiece's normalizer has seen it, and the same of what is between cuts.
    cuts: Option<Cuts>,
    unit_caches: [Mutex<Vec<Cache>>; LEVELS],
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
        model: Arc<Model>,
        extras: Vec<Extra>,
        template: (Vec<u32>, Vec<u32>),
        decoding: Decoding,
    ) -> Result<Self> {
        let vocab = model.vocab();
        let mut extra_of_id = IntMap::default();
        for (index, extra) in extras.iter().enumerate() {
            if let Some(entry) = vocab.token_of_id(extra.id).filter(|&t| vocab.piece(t) != extra.content) {
                return Err(Error::format(format!(
                    "the id {} is given to the extra token {} and to the entry {}",
                    extra.id,
                    show(&extra.content),
                    show(vocab.piece(entry))
                )));
            }
            if extra_of_id.insert(u64::from(extra.id), index).is_some() {
                return Err(Error::format(format!("the id {} is given to two extra tokens", extra.id)));
            }
        }
        let largest = (0..vocab.len() as Token).next_back().map(|token| vocab.id(token));
        let n_vocab = extras.iter().map(|extra| extra.id).chain(largest).max().map_or(0, |id| id as usize + 1);
        let mut pipeline = Pipeline::new(stages, extras)?;
        if let Model::LongestMatch(longest) = &*model {
            pipeline.cut_between(Neighbours::new(&longest.vocab));
        }
        let cuts = match (pipeline.normalizer(), &*model) {
            (Some(normalizer), Model::Scored(scored)) if scored.has_units() => Cuts::new(normalizer, scored),
            _ => None,
        };
        let engine = Self {
            cuts,
            unit_caches: Default::default(),
            plain_ids: (0..vocab.len() as Token).all(|token| vocab.id(token) == token),
            pipeline,
            decoder: Decoder::new(extra_of_id, decoding, model.end_of_word()),
            model,
            template,
            n_vocab,
            caches: Mutex::default(),
            word_caches: Mutex::default(),
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
        let mut rows = self.pipeline.plan();
        if self.pipeline.has_words_alone() {
            let why =
                "no stage looks across white space or punctuation; not where tokens are taken from normalized text";
            rows.push(("word met before".into(), "looked up as it stands in the text".into(), why.into()));
        }
        if self.cuts.is_some() {
            let why = "neither rules nor entries reach from one into the next";
            rows.push(("unit met before".into(), "looked up as it stands in the text".into(), why.into()));
        }
        rows.extend(self.model.plan());
        rows
    }

    /// The ids that the last merge of each entry joins, in the order of the vocabulary; None where there is none.
    pub fn last_merges(&self) -> Vec<Option<(u32, u32)>> {
        let ids = |(left, right)| (self.model.vocab().id(left), self.model.vocab().id(right));
        self.model.last_merges().into_iter().map(|pair| pair.map(ids)).collect()
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
        self.model.check(text)?;
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
        self.encode_part(text, policy, false, stop, out)?;
        if add_special_tokens {
            out.extend_from_slice(&self.template.1);
        }
        Ok(())
    }

    /// Appends the ids of a part of a text; `continues` says that it does not start it.
    pub fn encode_part(
        &self,
        text: &[u8],
        policy: &Policy,
        continues: bool,
        stop: Stop<'_>,
        out: &mut impl Output,
    ) -> Result<()> {
        if self.pipeline.takes_words_alone(policy) {
            return self.encode_words(text, policy, stop, out);
        }
        if let Some(units) = self.units(policy) {
            return self.encode_units(units, text, policy, continues, stop, out);
        }
        let mut cache = self.cache(&self.caches);
        let mut ids = Vec::new();
        self.pipeline.run(text, policy, continues, stop, |unit| {
            match unit {
                Unit::Pieces { segment, bounds } if self.parted().is_some() => {
                    let Some(scored) = self.parted() else { return Ok(()) };
                    for &(start, end) in bounds {
                        ids.clear();
                        let (piece, mut at) = (&segment.bytes[start..end], 0);
                        while at < piece.len() {
                            let mut parts = [(0, 0); BATCH];
                            let mut len = 0;
                            while len < BATCH && at < piece.len() {
                                let next = scored.part_end(piece, at);
                                parts[len] = (at, next);
                                (at, len) = (next, len + 1);
                            }
                            cache.encode(piece, &parts[..len], &mut ids, self);
                        }
                        scored.settle(piece, &mut ids);
                        out.add(|out| out.extend_from_slice(&ids));
                    }
                }
                Unit::Pieces { segment, bounds } => {
                    let mut encode = |bounds: &[(usize, usize)]| cache.encode(&segment.bytes, bounds, out, self);
                    let seams = if has_wide(&segment.bytes, bounds) { self.model.seams() } else { None };
                    match seams {
                        Some(seams) => seams.parts(&segment.bytes, bounds, encode),
                        None => encode(bounds),
                    }
                }
                Unit::Extra { index, .. } => out.add(|out| out.push(self.pipeline.extras.tokens[index].id)),
            }
            Ok(())
        })?;
        self.keep(&self.caches, cache);
        Ok(())
    }

    /// The same where what a word becomes does not depend on what is beside it: words are known as they stand in the text.
    fn encode_words(&self, text: &[u8], policy: &Policy, stop: Stop<'_>, out: &mut impl Output) -> Result<()> {
        let (mut cache, encoder) = (self.cache(&self.word_caches), Words { engine: self });
        self.pipeline.run_words(text, policy, stop, |unit| {
            match unit {
                Unit::Pieces { segment, bounds } => cache.encode(&segment.bytes, bounds, out, &encoder),
                Unit::Extra { index, .. } => out.add(|out| out.push(self.pipeline.extras.tokens[index].id)),
            }
            Ok(())
        })?;
        self.keep(&self.word_caches, cache);
        Ok(())
    }

    /// How a text is encoded unit by unit, if it can be.
    fn units(&self, policy: &Policy) -> Option<Units<'_>> {
        let (cuts, normalizer) = (self.cuts.as_ref()?, self.pipeline.normalizer()?);
        match &*self.model {
            Model::Scored(model) if !policy.takes_normalized() => Some(Units { normalizer, cuts, model }),
            _ => None,
        }
    }

    fn encode_units(
        &self,
        units: Units<'_>,
        text: &[u8],
        policy: &Policy,
        continues: bool,
        stop: Stop<'_>,
        out: &mut impl Output,
    ) -> Result<()> {
        let mut walk = Walk::new(units, |level| self.cache(&self.unit_caches[level]));
        self.pipeline.run_raw(text, policy, stop, |unit| {
            match unit {
                Unit::Pieces { segment, bounds } => {
                    for &(start, end) in bounds {
                        let begins = self.pipeline.begins(segment, continues);
                        walk.encode(&segment.bytes[start..end], begins, stop, out)?;
                    }
                }
                Unit::Extra { index, .. } => out.add(|out| out.push(self.pipeline.extras.tokens[index].id)),
            }
            Ok(())
        })?;
        for (cache, caches) in walk.caches.into_iter().zip(&self.unit_caches) {
            if let Some(cache) = cache {
                self.keep(caches, cache);
            }
        }
        Ok(())
    }

    /// Whether the counts of what is on both sides of `at`, a place inside the text where a character starts, add up.
    pub fn is_cut(&self, text: &[u8], at: usize, policy: &Policy) -> bool {
        let is_between_units = |units: Units<'_>| {
            let is_free = !policy.takes_any() || (!self.pipeline.extras.swallow && !policy.covers(text, at, false));
            is_free && !units.model.is_summed() && units.cuts.is_cut(text, at, units.model)
        };
        self.pipeline.is_cut(text, at, policy) || self.units(policy).is_some_and(is_between_units)
    }

    /// A model whose pieces are encoded part by part.
    fn parted(&self) -> Option<&Scored> {
        match &*self.model {
            Model::Scored(scored) if scored.has_parts() => Some(scored),
            _ => None,
        }
    }

    fn to_ids(&self, tokens: &mut [Token]) {
        if !self.plain_ids {
            tokens.iter_mut().for_each(|token| *token = self.model.vocab().id(*token));
        }
    }

    /// A cache that no other thread uses.
    fn cache(&self, caches: &Mutex<Vec<Cache>>) -> Cache {
        free_caches(caches).and_then(|mut caches| caches.pop()).unwrap_or_default()
    }

    fn keep(&self, caches: &Mutex<Vec<Cache>>, cache: Cache) {
        if let Some(mut caches) = free_caches(caches) {
            if caches.iter().map(Cache::size).sum::<usize>() + cache.size() <= KEPT {
                caches.push(cache);
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
        let (mut tokens, mut ends) = (Vec::new(), Vec::new());
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
                Unit::Pieces { segment, bounds } => {
                    for &(start, end) in bounds {
                        tokens.clear();
                        ends.clear();
                        self.model.encode_with_ends(&segment.bytes[start..end], &mut tokens, &mut ends);
                        let mut from = start;
                        for (&token, &end) in tokens.iter().zip(&ends) {
                            spans.ids.push(self.model.vocab().id(token));
                            spans.bytes.push(segment.span(from, start + end));
                            from = start + end;
                        }
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

    /// The ids of a text, `n` times, each time with other merges passed over, by random numbers from `seed`. Numbers are
    /// taken in the order of the text; draws come one after the other.
    pub fn encode_with_dropout(
        &self,
        text: &[u8],
        policy: &Policy,
        (probability, seed): (f64, u64),
        n: usize,
        stop: Stop<'_>,
    ) -> Result<Vec<Vec<u32>>> {
        self.check_text(text, policy)?;
        let (mut draws, mut tokens) = (Vec::new(), Vec::new());
        let (mut dropout, mut queue) = (Dropout::new(probability, seed), Queue::default());
        for _ in 0..n {
            let mut ids = Vec::new();
            self.pipeline.run(text, policy, false, stop, |unit| {
                match unit {
                    Unit::Extra { index, .. } => ids.push(self.pipeline.extras.tokens[index].id),
                    Unit::Pieces { segment, bounds } => {
                        for &(start, end) in bounds {
                            tokens.clear();
                            let piece = &segment.bytes[start..end];
                            match probability == 0.0 {
                                true => self.model.encode(piece, &mut tokens),
                                false => {
                                    self.model.encode_with_dropout(piece, &mut dropout, &mut queue, &mut tokens)?
                                }
                            }
                            ids.extend(tokens.iter().map(|&token| self.model.vocab().id(token)));
                        }
                    }
                }
                Ok(())
            })?;
            draws.push(ids);
        }
        Ok(draws)
    }

    pub fn count(&self, text: &[u8], policy: &Policy, add_special_tokens: bool, stop: Stop<'_>) -> Result<usize> {
        self.check_text(text, policy)?;
        let template = if add_special_tokens { self.template_len() } else { 0 };
        Ok(template + self.count_part(text, policy, false, stop)?)
    }

    /// The token count of a part of a text; `continues` says that it does not start it.
    pub fn count_part(&self, text: &[u8], policy: &Policy, continues: bool, stop: Stop<'_>) -> Result<usize> {
        let mut out = Count::default();
        self.encode_part(text, policy, continues, stop, &mut out)?;
        Ok(out.count)
    }

    pub(crate) fn template(&self) -> &(Vec<u32>, Vec<u32>) {
        &self.template
    }

    pub fn template_len(&self) -> usize {
        self.template.0.len() + self.template.1.len()
    }

    pub fn shared_model(&self) -> Arc<Model> {
        self.model.clone()
    }

    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Byte spans of the pieces and of the extra tokens between them.
    pub fn split(&self, text: &[u8], policy: &Policy, stop: Stop<'_>) -> Result<Vec<(usize, usize)>> {
        self.check_text(text, policy)?;
        let mut spans = Vec::new();
        self.pipeline.run(text, policy, false, stop, |unit| {
            match unit {
                Unit::Extra { span, .. } => spans.push(span),
                Unit::Pieces { segment, bounds } => {
                    spans.extend(bounds.iter().map(|&(start, end)| segment.span(start, end)));
                }
            }
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
}

impl Encoder for Engine {
    fn prepare(&self, piece: &[u8]) {
        self.model.prepare(piece);
    }

    fn has_parts(&self, piece: &[u8]) -> bool {
        piece.iter().any(|&byte| byte >= ALPHABETS) && self.model.seams().is_some()
    }

    fn parts(&self, piece: &[u8], mut visit: impl FnMut(&[(usize, usize)])) {
        match self.model.seams() {
            Some(seams) => seams.fine_parts(piece, visit),
            None => visit(&[(0, piece.len())]),
        }
    }

    fn encode(&self, piece: &[u8], out: &mut Vec<u32>) {
        if let Some(scored) = self.parted() {
            return scored.encode_part(piece, scored.bound(), &mut Room::default(), out);
        }
        let from = out.len();
        self.model.encode(piece, out);
        self.to_ids(&mut out[from..]);
    }

    fn encode_all(&self, pieces: &[&[u8]], out: &mut Vec<u32>, places: &mut [(usize, usize)]) {
        if let Some(scored) = self.parted() {
            let mut room = Room::default();
            for (piece, place) in pieces.iter().zip(places) {
                let from = out.len();
                scored.encode_part(piece, scored.bound(), &mut room, out);
                *place = (from, out.len());
            }
            return;
        }
        let from = out.len();
        self.model.encode_all(pieces, out, places);
        self.to_ids(&mut out[from..]);
    }
}

/// Another thread has them for some nanoseconds at most: so it is asked again a few times, as to go without costs
/// what was learned. After a fork the lock may be held by a thread that is no more.
fn free_caches(caches: &Mutex<Vec<Cache>>) -> Option<MutexGuard<'_, Vec<Cache>>> {
    let free = || caches.try_lock().ok();
    free().or_else(|| {
        (0..1000).find_map(|_| {
            std::hint::spin_loop();
            free()
        })
    })
}

/// Encodes words as they stand in the text.
struct Words<'e> {
    engine: &'e Engine,
}

impl Encoder for Words<'_> {
    fn prepare(&self, _: &[u8]) {}

    fn encode(&self, word: &[u8], out: &mut Vec<u32>) {
        let (from, engine) = (out.len(), self.engine);
        engine.pipeline.rewrite_word(word, |piece| engine.model.encode(piece, out));
        engine.to_ids(&mut out[from..]);
    }

    fn encode_all(&self, words: &[&[u8]], out: &mut Vec<u32>, places: &mut [(usize, usize)]) {
        for (word, place) in words.iter().zip(places) {
            let from = out.len();
            self.encode(word, out);
            *place = (from, out.len());
        }
    }
}

/// Whether there are characters in some pieces between which seams are looked for.
fn has_wide(bytes: &[u8], bounds: &[(usize, usize)]) -> bool {
    let (Some(first), Some(last)) = (bounds.first(), bounds.last()) else { return false };
    bytes[first.0..last.1].iter().fold(false, |has, &byte| has | (byte >= LEAD))
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
