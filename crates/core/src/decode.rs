//! Decoding: from ids to the bytes that they stand for.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::extra::{Extra, Kind};
use crate::hash::IntMap;
use crate::parallel::{in_parallel, share_out};
use crate::pipeline::Stop;
use crate::vocab::Token;

pub struct Decoder {
    extra_of_id: IntMap<u64, usize>,
    ends: Option<WordEnds>,
    rows: OnceLock<Vec<Row>>,
    /// The ids that were decoded without rows.
    decoded: AtomicUsize,
}

/// What the end-of-word marker behind an entry decodes to.
pub struct WordEnds {
    pub marker: Vec<u8>,
    pub shown: Vec<u8>,
    /// It decodes to nothing behind the last id.
    pub trim: bool,
}

/// What an id decodes to, and in the last byte its length; or `ASK`, for what is longer, for extra tokens, and for ids
/// that are none. So nearly every id takes one look into memory, and one copy of a fixed size.
type Row = [u8; 16];

const ASK: u8 = u8::MAX;

impl Decoder {
    pub fn new(extra_of_id: IntMap<u64, usize>, ends: Option<WordEnds>) -> Self {
        Self { extra_of_id, ends, rows: OnceLock::new(), decoded: AtomicUsize::new(0) }
    }
}

impl Engine {
    /// The bytes that an id decodes to.
    pub fn token_bytes(&self, id: u32) -> Result<Vec<u8>> {
        let (stem, shown) = self.decoded(id)?;
        Ok([stem, shown].concat())
    }

    pub fn token_id(&self, token: &[u8]) -> Option<u32> {
        let extra = self.pipeline.extras.spelled(token);
        extra.map(|extra| extra.id).or_else(|| self.bpe.vocab.find(token).map(|token| self.bpe.vocab.id(token)))
    }

    /// The bytes of an entry or of an extra token, and what the end-of-word marker behind it decodes to.
    fn decoded(&self, id: u32) -> Result<(&[u8], &[u8])> {
        if let Some(token) = self.bpe.vocab.token_of_id(id) {
            return Ok(self.decoded_entry(token));
        }
        match self.extra(id) {
            Some(extra) => Ok((&extra.content, &[])),
            None => Err(Error::unknown(format!("the vocabulary has no id {id}{}", self.id_hint(id)))),
        }
    }

    fn decoded_entry(&self, token: Token) -> (&[u8], &[u8]) {
        let piece = self.bpe.vocab.piece(token);
        let end = self.decoder.ends.as_ref().and_then(|ends| Some((piece.strip_suffix(&*ends.marker)?, &*ends.shown)));
        end.unwrap_or((piece, &[]))
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
        const ROW: usize = size_of::<Row>();
        let rows = self.rows(ids.len());
        let (mut out, mut len) = (vec![0; ids.len() * 5 + 2 * ROW], 0);
        for (position, &id) in ids.iter().enumerate() {
            if out.len() < len + ROW {
                out.resize(2 * out.len(), 0);
            }
            let row = rows.get(id as usize).unwrap_or(&[ASK; ROW]);
            if row[ROW - 1] != ASK {
                // What stands behind the bytes of this id is overwritten by the next ones.
                out[len..len + ROW].copy_from_slice(row);
                len += usize::from(row[ROW - 1]);
                continue;
            }
            if skip_special_tokens && self.is_skipped(id) {
                continue;
            }
            let (stem, shown) = self
                .decoded(id)
                .map_err(|error| Error::unknown(format!("position {position} of the ids: {}", error.message)))?;
            out.truncate(len);
            out.extend_from_slice(stem);
            out.extend_from_slice(shown);
            len = out.len();
            out.resize(out.capacity().max(len + ROW), 0);
        }
        out.truncate(len - self.trimmed(ids, skip_special_tokens));
        Ok(out)
    }

    /// How many bytes the end-of-word marker of the last id that counts decodes to, where they are to be left out.
    fn trimmed(&self, ids: &[u32], skip_special_tokens: bool) -> usize {
        if !self.decoder.ends.as_ref().is_some_and(|ends| ends.trim) {
            return 0;
        }
        let last = ids.iter().rev().find(|&&id| !(skip_special_tokens && self.is_skipped(id)));
        last.and_then(|&id| self.decoded(id).ok()).map_or(0, |(_, shown)| shown.len())
    }

    /// What short entries decode to, by id, once so many ids are decoded that it pays to lay them out.
    fn rows(&self, more: usize) -> &[Row] {
        if let Some(rows) = self.decoder.rows.get() {
            return rows;
        }
        let vocab = &self.bpe.vocab;
        // Threads may overwrite each other's sum: then it is a little later.
        let decoded = self.decoder.decoded.load(Ordering::Relaxed).saturating_add(more);
        self.decoder.decoded.store(decoded, Ordering::Relaxed);
        if decoded < vocab.len() / 4 {
            return &[];
        }
        let len = self.n_vocab().min(2 * vocab.len() + 1024); // ids can have holes without measure
        let mut rows = vec![[ASK; size_of::<Row>()]; len];
        for token in 0..vocab.len() as Token {
            let (stem, shown) = self.decoded_entry(token);
            let len = stem.len() + shown.len();
            if let Some(row) = rows.get_mut(vocab.id(token) as usize).filter(|row| len < row.len()) {
                row[..stem.len()].copy_from_slice(stem);
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
