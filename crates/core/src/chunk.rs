//! Cutting a text into the fewest parts that take at most so many tokens each.
//!
//! A shortest path: from the start of the text, which places can one chunk end at, which can two, and so on, until the
//! end of the text is one of them. What keeps these layers small is that counts add up across cuts (`Engine::is_cut`).
//! If `total` is the running count at cuts, and a chunk from `p` takes `total(e) - base` tokens up to a later cut `e`,
//! then it takes `total(q) - base` up to any place `q` beyond, whatever `p` is. So of all places of a layer the one with
//! the largest base reaches the farthest; and no base is larger than the total there, which a cut itself has. So the
//! places before the last cut that a layer reaches can be forgotten: there are only those in the stretch where it ends.

use std::collections::{HashSet, VecDeque};

use crate::bpe::{Counts, Direction};
use crate::ends::{ends, Ends};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::extra::Policy;
use crate::limit::{start_before, Limit, Prefixes, Side, STOP_EVERY};
use crate::pipeline::Stop;
use crate::split::Scanner;
use crate::unicode::{char_count, char_len, class_at, is_start, LETTER, UPPER};

/// In longer stretches not every place is tried by encoding what is before it.
const LONG: usize = 512;
/// The least width of a window on the text in which cuts are looked for.
const WINDOW: usize = 1 << 14;
/// So many places a layer are kept in a long stretch of which little is known.
const KEPT: usize = 16;

#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub max_tokens: usize,
    /// A chunk starts before the end of the one before it, by the longest stretch of at most so many tokens.
    pub overlap: usize,
    /// Where chunks end.
    pub ends: Ends,
}

/// A part of a text, and how many tokens it takes.
pub type Chunk = (usize, usize, usize);

impl Engine {
    /// Byte spans and token counts of parts that cover the text and keep to the limits: the fewest, or with an overlap
    /// each the longest that fits.
    pub fn chunk(
        &self,
        text: &[u8],
        limits: Limits,
        policy: &Policy,
        add_special_tokens: bool,
        stop: Stop<'_>,
    ) -> Result<Vec<Chunk>> {
        let Limits { max_tokens, overlap, ends } = limits;
        self.check_text(text, policy)?;
        if overlap >= max_tokens {
            return Err(Error::value(format!("overlap={overlap} must be smaller than max_tokens={max_tokens}")));
        }
        let room = self.room(max_tokens, add_special_tokens)?;
        let mut chunks = Chunks::new(Limit::new(self, policy, stop, text), room, ends)?;
        let mut found = if overlap > 0 { chunks.overlapping(overlap) } else { chunks.fewest() }?;
        if found.last().map_or(0, |chunk| chunk.1) < text.len() {
            let end = chunks.farthest;
            let count = self.count_part(&text[end..end + char_len(text, end)], policy, false, stop)?;
            return Err(Error::value(format!(
                "max_tokens={max_tokens} is too small: character {} alone takes {} tokens",
                char_count(&text[..end]),
                count + max_tokens - room
            )));
        }
        found.iter_mut().for_each(|chunk| chunk.2 += max_tokens - room);
        Ok(found)
    }
}

/// A place where a chunk may end and the next one start.
#[derive(Clone, Copy)]
struct Place {
    at: usize,
    /// Where the chunk that ends here starts, as an index into the layer before, and its tokens.
    from: usize,
    tokens: usize,
    /// For a cut: what the running count was there. Otherwise not known before the end of the stretch.
    base: Option<isize>,
}

/// Where a chunk starts, or where a stretch does that it has reached, after so many tokens.
struct Source {
    at: usize,
    /// Where it starts, as an index into the layer.
    from: usize,
    taken: usize,
    is_cut: bool,
}

/// What holds of a long stretch.
#[derive(Clone, Copy)]
struct Long {
    start: usize,
    /// It is one piece that is encoded in one pass, and so is every part of it.
    one_piece: bool,
    /// A chunk may end behind every character.
    anywhere: bool,
    /// It is one character again and again.
    repeats: bool,
}

/// Between two cuts: where they are, and the running count there.
#[derive(Clone, Copy)]
struct Stretch {
    start: usize,
    before: usize,
    end: usize,
    after: usize,
}

/// Places with the tokens of a chunk that ends there, and what a chunk takes to the end of the stretch.
type Reached = (Vec<(usize, usize)>, Option<usize>);

struct Chunks<'a> {
    limit: Limit<'a>,
    room: usize,
    /// Where chunks may end, if not behind every character.
    places: Option<Vec<usize>>,
    /// Cuts, and the tokens up to there; those that are no longer needed are taken off in front.
    cuts: VecDeque<(usize, usize)>,
    /// The least width of the next window.
    wider: usize,
    long: Option<Long>,
    /// The counts of a repeated character, by the number of bytes, as far as they can be within the room.
    repeated: Vec<usize>,
    /// The farthest place that any layer has.
    farthest: usize,
    /// In a long stretch: all places up to this one have been reached.
    all_to: usize,
}

impl<'a> Chunks<'a> {
    fn new(limit: Limit<'a>, room: usize, kind: Ends) -> Result<Self> {
        let cuts = VecDeque::from([(0, 0)]);
        let mut chunks = Self {
            limit,
            room,
            places: None,
            cuts,
            wider: 0,
            long: None,
            repeated: Vec::new(),
            farthest: 0,
            all_to: 0,
        };
        if kind > Ends::Character {
            let mut places = Vec::new();
            let all = ends(limit.text);
            chunks.add_places(&all, 0, limit.text.len(), kind, &mut places)?;
            chunks.places = Some(places);
        }
        Ok(chunks)
    }

    /// The ends of this kind in a part of the text, and of the next lower kind in each unit that does not fit.
    fn add_places(
        &self,
        all: &[(usize, Ends)],
        mut start: usize,
        to: usize,
        kind: Ends,
        places: &mut Vec<usize>,
    ) -> Result<()> {
        let Some(lower) = kind.lower() else {
            while start < to {
                start += char_len(self.limit.text, start);
                places.push(start);
            }
            return Ok(());
        };
        let inside = &all[all.partition_point(|end| end.0 <= start)..all.partition_point(|end| end.0 < to)];
        let ends = inside.iter().filter(|end| end.1 >= kind).map(|end| end.0);
        for end in ends.chain([to]) {
            self.limit.ask()?;
            if self.limit.count(start, end, false)? <= self.room {
                places.push(end);
            } else {
                self.add_places(inside, start, end, lower, places)?;
            }
            start = end;
        }
        Ok(())
    }

    /// The fewest. What cannot be cut is left out at the end.
    fn fewest(&mut self) -> Result<Vec<Chunk>> {
        let mut layers = vec![vec![Place { at: 0, from: 0, tokens: 0, base: Some(0) }]];
        let mut seen = HashSet::new();
        let len = self.limit.text.len();
        while let Some(last) = layers.last().filter(|last| last.last().is_some_and(|place| place.at < len)) {
            self.limit.ask()?;
            let layer = self.layer(last, &mut seen)?;
            self.farthest = layer.last().map_or(0, |place| place.at).max(self.farthest);
            layers.push(layer);
        }
        if layers.last().is_some_and(Vec::is_empty) {
            layers.pop();
        }
        let mut chunks = Vec::new();
        let mut index = layers.last().map_or(0, |layer| layer.len() - 1);
        while let Some(layer) = layers.pop().filter(|_| !layers.is_empty()) {
            let Place { at, from, tokens, .. } = layer[index];
            index = from;
            let start = layers.last().map_or(0, |layer| layer[from].at);
            chunks.push((start, at, tokens));
        }
        chunks.reverse();
        Ok(chunks)
    }

    fn overlapping(&mut self, overlap: usize) -> Result<Vec<Chunk>> {
        let text = self.limit.text;
        let mut chunks: Vec<Chunk> = Vec::new();
        let (mut start, mut done) = (0, 0);
        while done < text.len() {
            self.limit.ask()?;
            let base = self.cuts.iter().find(|cut| cut.0 == start && self.is_like_a_start(start)).map(|cut| cut.1);
            let place = Place { at: start, from: 0, tokens: 0, base: base.map(|base| base as isize) };
            match self.layer(&[place], &mut HashSet::new())?.last() {
                Some(&Place { at, tokens, .. }) if at > done => {
                    chunks.push((start, at, tokens));
                    done = at;
                    self.farthest = at;
                    let back = Limit::new(self.limit.engine, self.limit.policy, self.limit.stop, &text[start..at])
                        .suffix(overlap)?;
                    start = if back > 0 { start + back } else { at };
                }
                _ if start < done => start = done, // the overlap leaves no room for anything new
                _ => break,
            }
        }
        Ok(chunks)
    }

    // ======================== layers ========================

    /// Where one chunk can end that starts at one of these places; not those that are surely of no use.
    fn layer(&mut self, last: &[Place], seen: &mut HashSet<usize>) -> Result<Vec<Place>> {
        let mut next: Vec<Place> = Vec::new();
        let mut best: Option<(isize, usize)> = None;
        while self.cuts.get(1).is_some_and(|&(at, _)| at <= last[0].at) {
            self.cuts.pop_front();
        }
        let (mut number, mut i) = (0, 0);
        while let Some(stretch) = self.stretch(number)? {
            number += 1;
            if last.get(i).is_some_and(|place| place.at == stretch.start) {
                if let Some(base) = last[i].base {
                    best = better(best, base, i);
                    i += 1;
                }
            }
            let inside = i;
            while last.get(i).is_some_and(|place| place.at < stretch.end) {
                i += 1;
            }
            let mut sources: Vec<Source> = Vec::new();
            if let Some((base, from)) = best {
                let taken = (stretch.before as isize - base) as usize;
                let source = Source { at: stretch.start, from, taken, is_cut: true };
                sources.extend((taken <= self.room).then_some(source));
            }
            let places = last[..i].iter().enumerate().skip(inside);
            sources.extend(places.map(|(from, place)| Source { at: place.at, from, taken: 0, is_cut: false }));
            if sources.is_empty() && i == last.len() {
                break;
            }
            let (mut found, ways) = self.ways(&stretch, &sources)?;
            for (tokens, from) in ways {
                best = better(best, stretch.after as isize - tokens as isize, from);
            }
            found.sort_by_key(|place| (place.at, place.from));
            found.reverse();
            found.dedup_by_key(|place| place.at);
            found.reverse();
            if found.last().is_some_and(|place| place.at == stretch.end) {
                let mut place = found[found.len() - 1];
                found.pop();
                if self.is_like_a_start(place.at) {
                    place.base = Some(stretch.after as isize);
                    found.clear();
                    next.clear();
                    seen.clear();
                }
                found.push(place);
            }
            found.retain(|place| seen.insert(place.at));
            self.prune(&stretch, seen, &mut found)?;
            next.append(&mut found);
        }
        Ok(next)
    }

    /// Where chunks from these sources can end in a stretch, and those that can go on beyond it: the tokens up to its
    /// end, and where they started.
    fn ways(&mut self, stretch: &Stretch, sources: &[Source]) -> Result<(Vec<Place>, Vec<(usize, usize)>)> {
        let (mut found, mut ways) = (Vec::new(), Vec::new());
        let whole = stretch.after - stretch.before;
        if let Some(&Source { from, taken, is_cut, .. }) = sources.first() {
            // The end of the stretch is then better than any place in it.
            let is_useful = self.is_allowed(stretch.end) && self.is_like_a_start(stretch.end);
            if is_cut && taken + whole <= self.room && is_useful {
                found.push(Place { at: stretch.end, from, tokens: taken + whole, base: None });
                for source in &sources[1..] {
                    let rest = self.rest(source.at, stretch)?;
                    ways.extend(rest.map(|rest| (rest, source.from)));
                }
                return Ok((found, ways));
            }
        }
        if stretch.end - stretch.start > LONG && self.kind(stretch)?.one_piece {
            return self.ways_in_piece(stretch, sources);
        }
        for &Source { at, from, taken, is_cut } in sources {
            let continues = is_cut && at > 0;
            let (reached, rest) = self.reached(at, stretch, continues, self.room - taken)?;
            ways.extend(rest.map(|rest| (taken + rest, from)));
            found.extend(reached.iter().map(|&(at, count)| Place { at, from, tokens: taken + count, base: None }));
        }
        Ok((found, ways))
    }

    /// A stretch by its number, if the text has so many.
    fn stretch(&mut self, number: usize) -> Result<Option<Stretch>> {
        let len = self.limit.text.len();
        while self.cuts.len() < number + 2 {
            let Some(&(start, before)) = self.cuts.back().filter(|cut| cut.0 < len) else { return Ok(None) };
            self.limit.ask()?;
            let width = self.wider.max(WINDOW).min(len - start);
            let end = start_before(self.limit.text, start + width);
            let (found, total) = self.limit.run(start, end, start > 0)?;
            for i in 0..found.len() {
                if let Some(cut) = self.limit.pattern_cut(&found, i).filter(|cut| cut.at > start) {
                    self.cuts.push_back((cut.at, before + cut.before));
                }
            }
            if end == len {
                self.cuts.push_back((len, before + total));
            }
            let advanced = self.cuts.back().map_or(0, |cut| cut.0 - start);
            self.wider = if advanced > width / 2 { 0 } else { 2 * width };
        }
        let ((start, before), (end, after)) = (self.cuts[number], self.cuts[number + 1]);
        Ok(Some(Stretch { start, before, end, after }))
    }

    fn is_allowed(&self, at: usize) -> bool {
        self.places.as_ref().is_none_or(|places| places.binary_search(&at).is_ok())
    }

    /// Whether the text from a cut on is as a text of its own what it is as a part.
    fn is_like_a_start(&self, at: usize) -> bool {
        !self.limit.engine.pipeline.adds_space() || self.limit.text.get(at).is_none_or(|&byte| byte == b' ')
    }

    /// The places in `text[from..to]` where a chunk may end, but for `from` itself.
    fn allowed(&self, from: usize, to: usize) -> Vec<usize> {
        match &self.places {
            Some(places) => {
                let range = places.partition_point(|&at| at <= from)..places.partition_point(|&at| at <= to);
                places[range].to_vec()
            }
            None => (from + 1..=to).filter(|&at| is_start(self.limit.text, at)).collect(),
        }
    }

    /// The count from a place to the end of its stretch, if it is not above the room.
    fn rest(&mut self, at: usize, stretch: &Stretch) -> Result<Option<usize>> {
        if stretch.end - at > LONG {
            return Ok(self.reached(at, stretch, false, self.room)?.1);
        }
        Ok(Some(self.limit.count(at, stretch.end, false)?).filter(|&count| count <= self.room))
    }

    /// The places that a chunk from `from` on can end at, with its tokens, of the stretch in which it starts or of one
    /// up to which it leaves so much room; and what it takes to the end of the stretch, if that is not above the room.
    fn reached(&self, from: usize, stretch: &Stretch, continues: bool, room: usize) -> Result<Reached> {
        let end = stretch.end;
        // Not beyond what the longest entries can reach.
        let (mut to, mut width) = (end, LONG / 4);
        while from + width < end {
            let window = start_before(self.limit.text, from + width);
            if let Some(at) = self.limit.reach(from, window, room, Side::Right)? {
                to = at;
                break;
            }
            width *= 2;
        }
        let mut rest = None;
        if to == end {
            rest = Some(self.limit.count(from, end, continues)?).filter(|&count| count <= room);
        }
        let (places, mut found) = (self.allowed(from, to), Vec::new());
        if end - stretch.start > LONG && !places.is_empty() {
            found = self.last_reached(from, &places, continues, room)?;
        } else {
            for at in places {
                let count = self.limit.count(from, at, continues)?;
                found.extend((count <= room).then_some((at, count)));
            }
        }
        Ok((found, rest))
    }

    /// Of these places the last few that a chunk from `from` on can end at, with its tokens.
    fn last_reached(&self, from: usize, places: &[usize], continues: bool, room: usize) -> Result<Vec<(usize, usize)>> {
        let to = places[places.len() - 1];
        let text = &self.limit.text[from..to];
        let scanned = self.limit.scanned(text).filter(|_| text.len() > LONG);
        let mut prefixes = match &scanned {
            Some((scanners, normalized)) => {
                Some(Prefixes::new(&self.limit, scanners, text, normalized, continues, room)?)
            }
            None => None,
        };
        let bound = prefixes.as_ref().map_or(to, |prefixes| from + prefixes.bound());
        let mut found = Vec::new();
        for &at in places.iter().rev().filter(|&&at| at <= bound) {
            self.limit.ask()?;
            let known = match &mut prefixes {
                Some(prefixes) if at < to => prefixes.upto(at - from)?,
                _ => None,
            };
            let count = match known {
                Some(count) => count,
                None => self.limit.count(from, at, continues)?,
            };
            found.extend((count <= room).then_some((at, count)));
            if found.len() == KEPT {
                break;
            }
        }
        found.reverse();
        Ok(found)
    }

    // ======================== long stretches ========================

    fn kind(&mut self, stretch: &Stretch) -> Result<Long> {
        if let Some(known) = self.long.filter(|known| known.start == stretch.start) {
            return Ok(known);
        }
        self.limit.ask()?;
        let Stretch { start, end, .. } = *stretch;
        let text = &self.limit.text[start..end];
        let pipeline = &self.limit.engine.pipeline;
        let one_piece = self.limit.engine.model().counts(Direction::Backward).is_some()
            && !pipeline.adds_space()
            && self
                .limit
                .scanned(text)
                .is_some_and(|(scanners, normalized)| !normalized.is_changed() && is_of_one_kind(scanners, text));
        let anywhere = self.places.is_none() || self.allowed(start, end).len() == char_count(text);
        let repeats = one_piece && text[char_len(text, 0)..] == text[..text.len() - char_len(text, 0)];
        self.all_to = start;
        self.repeated.clear();
        if let (true, Some(mut counts)) = (repeats, self.limit.engine.model().counts(Direction::Backward)) {
            let mut above = 0;
            for (size, &byte) in text.iter().enumerate() {
                if size % STOP_EVERY == 0 {
                    self.limit.ask()?;
                }
                counts.push(byte);
                self.repeated.push(counts.count(size + 1) as usize);
                above = if self.repeated[size] > self.room { above + 1 } else { 0 };
                if above > self.limit.engine.model().longest() {
                    break;
                }
            }
        }
        Ok(*self.long.insert(Long { start, one_piece, anywhere, repeats }))
    }

    /// The same in one long piece, where the tokens at each place depend on a few before it. Of two chunks that have
    /// the same tokens for as long as an entry can be, the one with more of them is no longer looked at.
    fn ways_in_piece(&self, stretch: &Stretch, sources: &[Source]) -> Result<(Vec<Place>, Vec<(usize, usize)>)> {
        let (model, text, first) =
            (self.limit.engine.model(), self.limit.text, sources.first().map_or(0, |first| first.at));
        let (mut reached, mut ways) = (Vec::new(), Vec::new());
        let mut reach = |source: &Source, at: usize, tokens: usize| {
            if tokens <= self.room && is_start(text, at) {
                reached.resize(reached.len().max(at - first + 1), None);
                if self.is_allowed(at) {
                    reached[at - first] = Some(Place { at, from: source.from, tokens, base: None });
                }
                if at == stretch.end {
                    ways.push((tokens, source.from));
                }
            }
        };
        if self.long.is_some_and(|long| long.repeats) {
            for source in sources {
                for (tokens, at) in self.repeated.iter().zip(source.at + 1..=stretch.end) {
                    reach(source, at, source.taken + tokens);
                }
            }
            return Ok((reached.into_iter().flatten().collect(), ways));
        }
        let mut active: Vec<(&Source, Counts<'_>, usize)> = Vec::new();
        let (mut waiting, mut at) = (sources.iter().peekable(), first);
        while at < stretch.end && (!active.is_empty() || waiting.peek().is_some()) {
            self.limit.ask()?;
            let to = stretch.end.min(at + model.longest());
            while let Some(source) = waiting.next_if(|source| source.at < to) {
                active.extend(model.counts(Direction::Backward).map(|counts| (source, counts, 0)));
            }
            for (source, counts, above) in &mut active {
                for at in source.at + counts.size() + 1..=to {
                    counts.push(text[at - 1]);
                    let tokens = source.taken + counts.count(counts.size()) as usize;
                    // A longer part has tokens up to one of the places before it that are as near as an entry is long.
                    *above = if tokens > self.room { *above + 1 } else { 0 };
                    reach(source, at, tokens);
                }
            }
            active.retain(|(.., above)| *above <= model.longest());
            let mut i = 0;
            while i < active.len() {
                let is_worse = |other: &(&Source, Counts<'_>, usize)| is_worse(&active[i], other, model.longest());
                match active.iter().enumerate().any(|(j, other)| i != j && is_worse(other)) {
                    true => drop(active.remove(i)),
                    false => i += 1,
                }
            }
            at = to;
        }
        Ok((reached.into_iter().flatten().collect(), ways))
    }

    /// Takes off places inside a long stretch that are not needed.
    ///
    /// In one piece: a chunk that starts before all of a few places and ends behind them has tokens up to one of these.
    /// If that one has been reached, a chunk from there on is the rest of the same tokens, so that is no worse.
    fn prune(&mut self, stretch: &Stretch, seen: &HashSet<usize>, found: &mut Vec<Place>) -> Result<()> {
        if stretch.end - stretch.start <= LONG || found.is_empty() {
            return Ok(());
        }
        let text = self.limit.text;
        let Long { one_piece, anywhere, .. } = self.kind(stretch)?;
        if !one_piece || !anywhere {
            found.drain(..found.len().saturating_sub(KEPT));
            return Ok(());
        }
        while self.all_to < stretch.end {
            let at = self.all_to + char_len(text, self.all_to);
            if !seen.contains(&at) {
                break;
            }
            self.all_to = at;
        }
        let first = self.first_needed(stretch.start, self.all_to);
        found.retain(|place| place.at >= first);
        Ok(())
    }

    /// Tokens that lead from before this place to behind `to` have a boundary at a character from it to `to`.
    fn first_needed(&self, start: usize, to: usize) -> usize {
        let model = self.limit.engine.model();
        let Some(trie) = model.trie(Direction::Forward) else { return start };
        let text = &self.limit.text[..self.limit.text.len().min(to + model.longest())];
        // Places inside characters from which tokens can lead beyond `to`, past the boundaries of all characters.
        let mut within = vec![to + 1];
        let mut first = to;
        for at in (start..to).rev() {
            if first.min(within[within.len() - 1]) > at + model.longest() {
                break;
            }
            let end = at + trie.longest_len(&text[at..]).max(1);
            if within.iter().any(|&place| place > at && place <= end) {
                if is_start(text, at) {
                    first = at;
                } else {
                    within.push(at);
                }
            }
        }
        first
    }
}

/// The place that reaches farther; of equals the first, which is a cut if any is.
fn better(best: Option<(isize, usize)>, base: isize, index: usize) -> Option<(isize, usize)> {
    best.filter(|best| best.0 >= base).or(Some((base, index)))
}

/// Whether these scanners take a text, and every part of it, as one piece: a run of one kind of character, but for the
/// first. Letters are of one kind, but that scanners that tell cases apart may cut before and behind capitals.
fn is_of_one_kind(scanners: &[&Scanner], text: &[u8]) -> bool {
    let with_case = scanners.iter().any(|scanner| scanner.prefix_ends.is_some());
    let kind = |at| match class_at(text, at) {
        (class, len) if class & LETTER == 0 => (class, len),
        (class, len) if with_case && class & UPPER != 0 => (LETTER | UPPER, len),
        (_, len) => (LETTER, len),
    };
    let mut at = char_len(text, 0);
    let (first, _) = kind(at);
    while at < text.len() {
        let (class, len) = kind(at);
        if class != first || matches!(text[at], b'\r' | b'\n' | b'\'') {
            return false;
        }
        at += len;
    }
    scanners.iter().all(|scanner| (scanner.end)(text, 0) == text.len())
}

/// Whether one chunk has the same tokens as another at the last `len` places, and nowhere fewer up to there.
fn is_worse(one: &(&Source, Counts<'_>, usize), other: &(&Source, Counts<'_>, usize), len: usize) -> bool {
    let (Some(ours), Some(theirs)) = (one.1.last(len), other.1.last(len)) else { return false };
    ours.iter()
        .zip(theirs)
        .all(|(ours, theirs)| ours.0 == theirs.0 && one.0.taken + ours.1 as usize >= other.0.taken + theirs.1 as usize)
}
