//! Decoding: from ids to the bytes that they stand for.

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

use crate::decode_steps::{self, Step};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::extra::{Extra, Kind};
use crate::hash::IntMap;
use crate::model::Model;
use crate::parallel::{in_parallel, share_out};
use crate::pipeline::Stop;
use crate::sentencepiece::normalize::SPACE;
use crate::vocab::Token;

pub struct Decoder {
    extra_of_id: IntMap<u64, usize>,
    decoding: Decoding,
    end_of_word: Vec<u8>,
    rows: OnceLock<Vec<Row>>,
    /// The ids that were decoded without rows.
    decoded: AtomicUsize,
}

/// How tokens stand in decoded text.
pub enum Decoding {
    /// As their bytes, one after the other; an end-of-word marker as `shown`, and with `trim` as nothing behind the last.
    Plain { shown: Vec<u8>, trim: bool },
    /// With a space in front of each but the first and those that continue a word, which lose the prefix that says so.
    WordPiece { prefix: Vec<u8>, cleanup: bool },
    /// As SentencePiece does: `▁` as a space, but at the start, where `strip` says which are left out; an unknown token as
    /// `unk`.
    SentencePiece { strip: Strip, unk: Vec<u8> },
    /// By steps that look at all tokens of a text.
    Steps(Vec<Step>),
}

/// Which `▁` at the start of a text are left out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Strip {
    None,
    One,
    /// One of each token before there is text.
    All,
    /// All of the first token.
    Token,
}

impl Decoding {
    /// As `spec.py` describes it: a name and its settings.
    pub fn new(row: &[String]) -> Result<Self> {
        let row: Vec<&str> = row.iter().map(String::as_str).collect();
        match row[..] {
            ["Decode", shown, trim] => Ok(Self::Plain { shown: shown.into(), trim: trim == "true" }),
            ["DecodeWordPiece", prefix, cleanup] => {
                Ok(Self::WordPiece { prefix: prefix.into(), cleanup: cleanup == "true" })
            }
            ["DecodeSentencePiece", strip, unk] => {
                let strip = match strip {
                    "none" => Strip::None,
                    "one" => Strip::One,
                    "all" => Strip::All,
                    "token" => Strip::Token,
                    _ => return Err(Error::format(format!("unknown way to strip a space: {strip:?}"))),
                };
                Ok(Self::SentencePiece { strip, unk: unk.into() })
            }
            ["DecodeSteps", ref steps @ ..] => Ok(Self::Steps(Step::read(steps)?)),
            _ => Err(Error::format(format!("unknown way to decode {row:?}"))),
        }
    }
}

/// What HF tokenizers replaces in each token, in this order, to undo what splitting has done to punctuation.
pub(crate) const CLEANED: [(&str, &str); 11] = [
    (" .", "."),
    (" ?", "?"),
    (" !", "!"),
    (" ,", ","),
    (" ' ", "'"),
    (" n't", "n't"),
    (" 'm", "'m"),
    (" do not", " don't"),
    (" 's", "'s"),
    (" 've", "'ve"),
    (" 're", "'re"),
];

fn cleaned(mut token: Vec<u8>) -> Vec<u8> {
    for (from, to) in CLEANED.map(|(from, to)| (from.as_bytes(), to.as_bytes())) {
        let (mut out, mut rest) = (Vec::new(), &*token);
        while let Some(at) = rest.windows(from.len()).position(|window| window == from) {
            out.extend_from_slice(&rest[..at]);
            out.extend_from_slice(to);
            rest = &rest[at + from.len()..];
        }
        if rest.len() < token.len() {
            out.extend_from_slice(rest);
            token = out;
        }
    }
    token
}

/// What an id decodes to, and in the last byte its length; or `ASK`, for what is longer, for extra tokens, and for ids
/// that are none. So nearly every id takes one look into memory, and one copy of a fixed size.
type Row = [u8; 16];

const ASK: u8 = u8::MAX;

/// Where a token stands among those that are decoded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    First,
    Inside,
    /// It is looked at by itself.
    Alone,
}

/// A piece with `space` in place of each `▁`.
fn spaced(mut piece: &[u8], space: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(piece.len());
    while let Some((&byte, rest)) = piece.split_first() {
        match piece.strip_prefix(SPACE) {
            Some(rest) => {
                out.extend_from_slice(space);
                piece = rest;
            }
            None => {
                out.push(byte);
                piece = rest;
            }
        }
    }
    out
}

impl Decoder {
    pub fn new(extra_of_id: IntMap<u64, usize>, decoding: Decoding, end_of_word: &[u8]) -> Self {
        let end_of_word = end_of_word.to_vec();
        Self { extra_of_id, decoding, end_of_word, rows: OnceLock::new(), decoded: AtomicUsize::new(0) }
    }

    /// What a token decodes to, in two parts: of a marker behind it the second. `is_entry`: it is one of the model's.
    fn decoded<'a>(&'a self, token: &'a [u8], is_entry: bool, place: Place) -> (Cow<'a, [u8]>, &'a [u8]) {
        match &self.decoding {
            Decoding::Steps(_) => (token.into(), &[]),
            Decoding::Plain { shown, .. } => match token.strip_suffix(&*self.end_of_word) {
                Some(stem) if is_entry && !self.end_of_word.is_empty() => (stem.into(), shown),
                _ => (token.into(), &[]),
            },
            Decoding::SentencePiece { strip, .. } => {
                if !is_entry {
                    return (token.into(), &[]);
                }
                let rest = match (place, *strip) {
                    (Place::First, Strip::One | Strip::All) => token.strip_prefix(SPACE).unwrap_or(token),
                    (Place::First, Strip::Token) => return (spaced(token, b"").into(), &[]),
                    _ => token,
                };
                (spaced(rest, b" ").into(), &[])
            }
            Decoding::WordPiece { prefix, cleanup } => {
                let rest = token.strip_prefix(&**prefix).filter(|_| !prefix.is_empty());
                let alone = match (place, rest) {
                    (Place::First, _) => token.to_vec(),
                    (_, Some(rest)) => rest.to_vec(),
                    (Place::Alone, None) => return (token.into(), &[]),
                    (Place::Inside, None) => [b" ", token].concat(),
                };
                (if *cleanup && place != Place::Alone { cleaned(alone) } else { alone }.into(), &[])
            }
        }
    }
}

impl Engine {
    /// The bytes that an id decodes to.
    pub fn token_bytes(&self, id: u32) -> Result<Vec<u8>> {
        if let Decoding::Steps(_) = &self.decoder.decoding {
            return self.decode(&[id], false);
        }
        let (stem, shown) = self.decoded(id, Place::Alone)?;
        Ok([&*stem, shown].concat())
    }

    pub fn token_id(&self, token: &[u8]) -> Option<u32> {
        let extra = self.pipeline.extras.spelled(token);
        extra.map(|extra| extra.id).or_else(|| self.model.vocab().find(token).map(|token| self.model.vocab().id(token)))
    }

    /// What an entry or an extra token decodes to, and what the end-of-word marker behind it does.
    fn decoded(&self, id: u32, place: Place) -> Result<(Cow<'_, [u8]>, &[u8])> {
        // An extra token that is taken from normalized text decodes to what it is taken as, as in HF tokenizers.
        let extra = self.decoder.extra_of_id.get(&u64::from(id)).copied();
        let extras = &self.pipeline.extras;
        let is_own = extra.is_none_or(|index| extras.contents[index] == extras.tokens[index].content);
        if let Some(token) = self.model.vocab().token_of_id(id).filter(|_| is_own) {
            if let (Model::Scored(scored), Decoding::SentencePiece { unk, .. }) = (&*self.model, &self.decoder.decoding)
            {
                match scored.byte(token) {
                    Some(byte) => return Ok((vec![byte].into(), &[])),
                    None if token == scored.unk() => return Ok((unk.into(), &[])),
                    None => {}
                }
            }
            return Ok(self.decoder.decoded(self.model.vocab().piece(token), true, place));
        }
        match extra {
            Some(index) => Ok(self.decoder.decoded(&extras.contents[index], false, place)),
            None => Err(Error::unknown(format!("the vocabulary has no id {id}{}", self.id_hint(id)))),
        }
    }

    fn id_hint(&self, id: u32) -> String {
        match self.n_vocab() {
            0 => String::new(),
            n if (id as usize) < n => format!(": it is a hole among the ids 0 … {}", n - 1),
            n => format!(": the largest is {}", n - 1),
        }
    }

    fn extra(&self, id: u32) -> Option<&Extra> {
        self.decoder.extra_of_id.get(&u64::from(id)).map(|&index| &self.pipeline.extras.tokens[index])
    }

    fn is_skipped(&self, id: u32) -> bool {
        self.extra(id).is_some_and(|extra| extra.kind != Kind::Added)
    }

    /// The bytes of all ids, one after the other. Special and unmatchable tokens can be left out.
    pub fn decode(&self, ids: &[u32], skip_special_tokens: bool) -> Result<Vec<u8>> {
        if let Decoding::Steps(steps) = &self.decoder.decoding {
            return self.decode_by_steps(steps, ids, skip_special_tokens);
        }
        const ROW: usize = size_of::<Row>();
        let rows = self.rows(ids.len());
        let mut place = match self.decoder.decoding {
            Decoding::Plain { .. } | Decoding::Steps(_) => Place::Inside,
            Decoding::WordPiece { .. } | Decoding::SentencePiece { .. } => Place::First,
        };
        let (mut out, mut len) = (vec![0; ids.len() * 5 + 2 * ROW], 0);
        for (position, &id) in ids.iter().enumerate() {
            if out.len() < len + ROW {
                out.resize(2 * out.len(), 0);
            }
            let row = rows.get(id as usize).unwrap_or(&[ASK; ROW]);
            if row[ROW - 1] != ASK && place == Place::Inside {
                // What stands behind the bytes of this id is overwritten by the next ones.
                out[len..len + ROW].copy_from_slice(row);
                len += usize::from(row[ROW - 1]);
                continue;
            }
            if skip_special_tokens && self.is_skipped(id) {
                continue;
            }
            let (stem, shown) = self
                .decoded(id, place)
                .map_err(|error| Error::unknown(format!("position {position} of the ids: {}", error.message)))?;
            let stays_first = match self.decoder.decoding {
                Decoding::SentencePiece { strip, .. } => strip == Strip::All && stem.is_empty(),
                _ => false,
            };
            if !stays_first {
                place = Place::Inside;
            }
            out.truncate(len);
            out.extend_from_slice(&stem);
            out.extend_from_slice(shown);
            len = out.len();
            out.resize(out.capacity().max(len + ROW), 0);
        }
        out.truncate(len - self.trimmed(ids, skip_special_tokens));
        Ok(out)
    }

    fn decode_by_steps(&self, steps: &[Step], ids: &[u32], skip_special_tokens: bool) -> Result<Vec<u8>> {
        let mut texts = Vec::with_capacity(ids.len());
        for (position, &id) in ids.iter().enumerate() {
            if skip_special_tokens && self.is_skipped(id) {
                continue;
            }
            let at = |error: Error| Error::unknown(format!("position {position} of the ids: {}", error.message));
            texts.push(self.text_of(steps, id).map_err(at)?);
        }
        decode_steps::decode(steps, texts)
    }

    /// A token as the steps of decoding take it.
    fn text_of(&self, steps: &[Step], id: u32) -> Result<String> {
        let entry = self.model.vocab().token_of_id(id).filter(|_| self.extra(id).is_none());
        if let (Some(Step::SpellBytes), Some(token)) = (steps.first(), entry) {
            return Ok(decode_steps::spelled(self.model.vocab().piece(token)));
        }
        let (stem, _) = self.decoded(id, Place::Alone)?;
        Ok(String::from_utf8_lossy(&stem).into_owned())
    }

    /// How many bytes the end-of-word marker of the last id that counts decodes to, where they are to be left out.
    fn trimmed(&self, ids: &[u32], skip_special_tokens: bool) -> usize {
        if !matches!(self.decoder.decoding, Decoding::Plain { trim: true, .. }) {
            return 0;
        }
        let last = ids.iter().rev().find(|&&id| !(skip_special_tokens && self.is_skipped(id)));
        last.and_then(|&id| self.decoded(id, Place::Inside).ok()).map_or(0, |(_, shown)| shown.len())
    }

    /// What short entries decode to, by id, once so many ids are decoded that it pays to lay them out.
    fn rows(&self, more: usize) -> &[Row] {
        if let Some(rows) = self.decoder.rows.get() {
            return rows;
        }
        let vocab = self.model.vocab();
        // Threads may overwrite each other's sum: then it is a little later.
        let decoded = self.decoder.decoded.load(Ordering::Relaxed).saturating_add(more);
        self.decoder.decoded.store(decoded, Ordering::Relaxed);
        if decoded < vocab.len() / 4 {
            return &[];
        }
        let len = self.n_vocab().min(2 * vocab.len() + 1024); // ids can have holes without measure
        let mut rows = vec![[ASK; size_of::<Row>()]; len];
        for token in 0..vocab.len() as Token {
            let Ok((stem, shown)) = self.decoded(vocab.id(token), Place::Inside) else { continue };
            let len = stem.len() + shown.len();
            if let Some(row) = rows.get_mut(vocab.id(token) as usize).filter(|row| len < row.len()) {
                row[..stem.len()].copy_from_slice(&stem);
                row[stem.len()..len].copy_from_slice(shown);
                row[size_of::<Row>() - 1] = len as u8;
            }
        }
        for extra in &self.pipeline.extras.tokens {
            if let Some(row) = rows.get_mut(extra.id as usize) {
                *row = [ASK; size_of::<Row>()];
            }
        }
        self.decoder.rows.get_or_init(|| rows) // made outside the lock: a process may be forked meanwhile
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
        let jobs = share_out(&sizes, threads, |_, _| None);
        let mut all = Vec::with_capacity(batch.len());
        let decode = |(): &mut (), job: usize, out: &mut Vec<Vec<u8>>, stop: Stop<'_>| {
            for (index, _) in jobs[job].parts(|item| sizes[item]) {
                if stop() {
                    return Err(Error::interrupted());
                }
                out.push(self.decode(&batch[index], skip_special_tokens).map_err(|error| Error {
                    message: format!("item {index} of the batch, {}", error.message),
                    ..error
                })?);
            }
            Ok(())
        };
        in_parallel(jobs.len(), vec![(); threads.max(1)], stop, decode, |out| all.append(out))?;
        Ok(all)
    }
}
