//! Encoding with SentencePiece's normalizer and models, a unit of the text at a time ([`Cuts`]): units that were met before
//! are looked up as they stand in the text.
//!
//! Of merges, units are encoded by themselves. A unigram model of SentencePiece's adds scores up in 32 bits over the whole
//! text, so that what is best in a unit may depend on what is in front of it, by rounding. But all segmentations have a
//! boundary at each cut, and there the sum of the best way to it is one number, `sum`. Say that no way rises within a unit
//! by more than some small number (entries of users' own score a tenth a byte), and that the best one ends above `-bound`
//! by more than that, `bound` a power of two. Then
//!
//! * a way that goes below `-bound` stays lower than where the best one ends, and loses;
//! * each sum of another way is off by half a unit in the last place at most, which is `bound / 2^25`: its *error*;
//! * so a way of `n` tokens whose scores have the sum `x` ends between `sum + x - n * error` and `sum + x + n * error`.
//!
//! If the least that a way can come to is more than the most that any other can, it is the best whatever `sum` is, and
//! is kept. Else the unit is unsure, and is done with the sum that stands in front of it. That sum is known, being that of
//! the scores of all tokens so far, one after the other in 32 bits. The larger it is, the coarser is the rounding: so
//! there is a cache for each of two bounds.
//!
//! Where a sum falls below [`LOWEST`], SentencePiece takes it off all sums. So from where one may do so, units are done
//! with the sum before them, until it is small again.

use std::cell::RefCell;

use crate::cache::{Cache, Encoder, Output};
use crate::error::{Error, Result};
use crate::pipeline::{Stop, BATCH};
use crate::scored::{Room, Scored, UNSURE};
use crate::sentencepiece::cuts::Cuts;
use crate::sentencepiece::normalize::{Normalized, Normalizer};
use crate::sentencepiece::scan::Scan;
use crate::split::ends::AT_LEAST;
use crate::unigram::LOWEST;

/// The bounds of sums: powers of two.
const BOUNDS: [f32; LEVELS] = [32_768.0, 131_072.0];

/// How many caches there are.
pub const LEVELS: usize = 2;

/// Within a unit that is kept, no sum falls so far below the one in front of it.
const DEEPEST: f32 = -8_192.0;

/// A unit that is kept has no more bytes once it is normalized.
const LONGEST: usize = 160;

/// How far sums can rise within a batch at most.
const RISE: f32 = (BATCH * LONGEST) as f32 * 0.1;

/// Between which sums, and the same above 0, a cache is used.
const LIMITS: [f32; LEVELS] = [-BOUNDS[0] + RISE, LOWEST - DEEPEST + RISE];

/// How many batches are encoded between two questions whether to stop.
const STOP_EVERY: usize = 1 << 12;

#[derive(Clone, Copy)]
pub struct Units<'e> {
    pub normalizer: &'e Normalizer,
    pub cuts: &'e Cuts,
    pub model: &'e Scored,
}

/// Room to work in.
#[derive(Default)]
struct Scratch {
    normalized: Normalized,
    room: Room,
}

/// Encodes units for a cache.
struct Within<'e> {
    units: Units<'e>,
    bound: f32,
    scratch: RefCell<Scratch>,
}

impl Encoder for Within<'_> {
    fn prepare(&self, _: &[u8]) {}

    fn encode(&self, unit: &[u8], out: &mut Vec<u32>) {
        let Scratch { normalized, room } = &mut *self.scratch.borrow_mut();
        let Units { normalizer, cuts, .. } = self.units;
        if !cuts.normalize(unit, normalizer.remove_extra_whitespaces, &mut normalized.bytes) {
            normalizer.apply_part(unit, false, false, normalized);
        }
        let (model, bytes) = (self.units.model, &normalized.bytes);
        if model.is_summed() && (bytes.len() > LONGEST || model.deepest(bytes) < DEEPEST.into()) {
            return out.push(UNSURE);
        }
        model.encode_part(bytes, self.bound.into(), room, out);
    }

    fn encode_all(&self, units: &[&[u8]], out: &mut Vec<u32>, places: &mut [(usize, usize)]) {
        for (unit, place) in units.iter().zip(places) {
            let from = out.len();
            self.encode(unit, out);
            *place = (from, out.len());
        }
    }
}

/// Encodes texts, one after the other. `take` gives a cache for one of the bounds.
pub struct Walk<'e, T: FnMut(usize) -> Cache> {
    units: Units<'e>,
    within: [Within<'e>; LEVELS],
    pub caches: [Option<Cache>; LEVELS],
    take: T,
    /// Of the text so far.
    sum: f32,
    ends_unknown: bool,
    /// Of a batch.
    ids: Vec<u32>,
}

impl<'e, T: FnMut(usize) -> Cache> Walk<'e, T> {
    pub fn new(units: Units<'e>, take: T) -> Self {
        Self {
            units,
            within: BOUNDS.map(|bound| Within { units, bound, scratch: RefCell::default() }),
            caches: Default::default(),
            take,
            sum: 0.0,
            ends_unknown: false,
            ids: Vec::new(),
        }
    }

    /// Gives `out` the ids of a text, or of what follows a cut in one.
    pub fn encode(&mut self, text: &[u8], begins: bool, stop: Stop<'_>, out: &mut impl Output) -> Result<()> {
        (self.sum, self.ends_unknown) = (0.0, false);
        let Units { normalizer, cuts, model } = self.units;
        let ends_well = !normalizer.remove_extra_whitespaces || cuts.ends_plainly(text);
        let mut at = 0;
        if begins && !text.is_empty() {
            let end = cuts.next(text, 0, model);
            if !cuts.starts_plainly(text) || (end == text.len() && !ends_well) {
                self.encode_alone(&text[..end], true, end == text.len());
                self.hand_out(out);
                at = end;
            } else if normalizer.add_dummy_prefix {
                let first = [b" ", &text[..end]].concat();
                self.encode_batch(&first, &[(0, first.len())]);
                self.hand_out(out);
                at = end;
            }
        }
        let (mut batches, mut scan, mut bounds) = (0, Scan::new(at), [(0, 0); BATCH + AT_LEAST]);
        while at < text.len() {
            let mut len = scan.units(text, cuts, model, &mut bounds);
            let has_tail = bounds[len - 1].1 == text.len() && !ends_well;
            len -= usize::from(has_tail);
            at = bounds[..len].last().map_or(at, |&(_, end)| end);
            self.encode_batch(text, &bounds[..len]);
            self.hand_out(out);
            if has_tail {
                self.encode_alone(&text[at..], false, true);
                self.hand_out(out);
                at = text.len();
            }
            batches += 1;
            if batches % STOP_EVERY == 0 && stop() {
                return Err(Error::interrupted());
            }
        }
        Ok(())
    }

    /// Of unknown characters in a row, only the first has an id, if they have no bytes.
    fn hand_out(&mut self, out: &mut impl Output) {
        if let Some(unknown) = self.units.model.run_of_unknown() {
            if self.ends_unknown || self.ids.contains(&unknown) {
                let mut before = self.ends_unknown;
                self.ids.retain(|&id| {
                    let again = before && id == unknown;
                    before = id == unknown;
                    !again
                });
                self.ends_unknown = before;
            }
        }
        out.take(&self.ids);
        self.ids.clear();
    }

    fn encode_batch(&mut self, text: &[u8], bounds: &[(usize, usize)]) {
        let Some(scores) = self.units.model.scores() else {
            return self.look_up(text, bounds, 0);
        };
        if self.take_over(text, bounds, scores) {
            return;
        }
        for &(start, end) in bounds {
            if !self.take_over(text, &[(start, end)], scores) {
                self.encode_alone(&text[start..end], false, false);
            }
        }
    }

    /// Appends the ids of some units, if they are sure.
    fn take_over(&mut self, text: &[u8], bounds: &[(usize, usize)], scores: &[f32]) -> bool {
        let (from, before) = (self.ids.len(), self.sum);
        for level in (0..LEVELS).filter(|&level| before.abs() <= -LIMITS[level]) {
            self.look_up(text, bounds, level);
            // The sum as Viterbi adds up; UNSURE has no score.
            let new = self.ids[from..].iter();
            let sum = new.copied().try_fold(before, |sum, id| Some(sum + scores.get(id as usize)?));
            if let Some(sum) = sum.filter(|&sum| sum.abs() <= -LIMITS[level]) {
                self.sum = sum;
                return true;
            }
            self.ids.truncate(from);
            if sum.is_none() {
                break;
            }
        }
        false
    }

    fn look_up(&mut self, text: &[u8], bounds: &[(usize, usize)], level: usize) {
        let cache = self.caches[level].get_or_insert_with(|| (self.take)(level));
        cache.encode(text, bounds, &mut self.ids, &self.within[level]);
    }

    /// Appends the ids of a unit with the sum that stands in front of it.
    fn encode_alone(&mut self, unit: &[u8], begins: bool, ends: bool) {
        let Units { normalizer, model, .. } = self.units;
        let Scratch { normalized, room: Room { found, .. } } = &mut *self.within[0].scratch.borrow_mut();
        normalizer.apply_part(unit, begins, ends, normalized);
        found.clear();
        self.sum = model.find_from(&normalized.bytes, self.sum, found);
        model.resolve(&normalized.bytes, &*found, &mut |token, _| self.ids.push(model.vocab().id(token)));
    }
}
