//! Learning the entries of a unigram language model: seeds, expectation maximization, pruning by loss.
//!
//! The steps are those of `unigram/reference.py`, over runs ([`super::runs`]). Which seeds stand at which place of a run
//! is found out once; from then on entries only fall away. Runs are worked on in a fixed number of chunks whose sums are
//! added up in their order, so the result does not depend on the number of threads.

use libm::{exp, log, log1p}; // the same on every machine, which the standard library's are not

use super::runs::{characters, runs, Classes, Rules, Runs};
use super::seed::{seeds, Seed};
use super::trie::{Trie, NONE};
use super::UNK_PENALTY;
use crate::error::{Error, Result};
use crate::parallel::in_parallel;
use crate::pipeline::Stop;
use crate::vocab::Token;

/// Settings by SentencePiece's names.
#[derive(Debug, Clone)]
pub struct Options {
    /// How many entries are wanted, characters among them.
    pub vocab_size: usize,
    pub character_coverage: f64,
    pub required_chars: Vec<char>,
    pub seed_sentencepiece_size: usize,
    pub shrinking_factor: f64,
    pub num_sub_iterations: usize,
    pub rules: Rules,
}

/// What was learned: entries with their scores, the best first; and, after each round of expectation maximization, how
/// many entries there were and the mean log likelihood of a word.
#[derive(Debug, Default, PartialEq)]
pub struct Learned {
    pub pieces: Vec<(Vec<u8>, f64)>,
    pub rounds: Vec<(usize, f64)>,
    /// Characters without an entry, for their rareness.
    pub left_out: usize,
}

const CHUNKS: usize = 16;

/// The longest entry in characters.
pub const LONGEST: usize = 255;

/// What is expected less often goes.
const LEAST_EXPECTED: f64 = 0.5;

/// Required characters without a score are this much apart.
const PENALTY_STEP: f64 = 0.0001;

/// An entry and its length in characters, packed: what may start at a place.
#[derive(Clone, Copy)]
struct Edge(u32);

impl Edge {
    fn new(piece: u32, length: usize) -> Self {
        Self(piece << 8 | length as u32)
    }

    #[inline]
    fn piece(self) -> usize {
        (self.0 >> 8) as usize
    }

    #[inline]
    fn length(self) -> usize {
        (self.0 & 0xFF) as usize
    }
}

/// So many seeds an edge can tell apart.
const MOST_PIECES: usize = 1 << 24;

/// Some runs. A place is a character of one of them, or its end.
#[derive(Default)]
struct Chunk {
    /// Characters of each run, and how often it occurs.
    runs: Vec<(u32, f64)>,
    /// Where the edges of each place start; the end of a run has none.
    firsts: Vec<u32>,
    /// The first of each place is its character.
    edges: Vec<Edge>,
    /// The byte of all runs at which the chunk starts, and for each of its places the byte from there on.
    start: usize,
    bytes: Vec<u32>,
}

impl Chunk {
    #[inline]
    fn at(&self, place: usize) -> &[Edge] {
        &self.edges[self.firsts[place] as usize..self.firsts[place + 1] as usize]
    }

    fn places(&self) -> usize {
        self.firsts.len() - 1
    }

    /// Edges of entries that are gone are taken out, but for characters.
    fn drop_dead(&mut self, is_alive: &[bool]) {
        let mut kept = 0;
        let mut from = 0;
        for place in 0..self.places() {
            let to = self.firsts[place + 1] as usize;
            for at in from..to {
                let edge = self.edges[at];
                if at == from || is_alive[edge.piece()] {
                    self.edges[kept] = edge;
                    kept += 1;
                }
            }
            from = to;
            self.firsts[place + 1] = kept as u32;
        }
        self.edges.truncate(kept);
        self.edges.shrink_to_fit();
    }
}

/// Learns from words with counts.
pub fn train<'w>(
    words: impl Iterator<Item = (&'w [u8], u64)> + Clone,
    scripts: &[String],
    options: &Options,
    threads: usize,
    stop: Stop<'_>,
) -> Result<Learned> {
    let classes = Classes::new(options.rules.clone(), scripts)?;
    let found = characters(words.clone());
    let required = covering(&found, options.vocab_size, options.character_coverage, &options.required_chars)?;
    let chars: Vec<char> = required.iter().map(|row| row.0).collect();
    let runs = runs(words.clone(), &classes, &chars)?;
    let total_words = words.map(|word| word.1).sum::<u64>() as f64;
    let mut trainer = Trainer::new(runs, &classes, &required, options, total_words, threads, stop)?;
    let wanted = (options.vocab_size as f64 * 1.1) as usize;
    let mut rounds = Vec::new();
    loop {
        for _ in 0..options.num_sub_iterations {
            let (expected, likelihood) = trainer.e_step()?;
            trainer.m_step(&expected);
            rounds.push((trainer.size(), likelihood));
        }
        let size = trainer.size();
        if size <= wanted {
            break;
        }
        trainer.prune(wanted)?;
        if trainer.size() == size {
            break; // nothing is left that has parts
        }
    }
    let pieces = trainer.finalize(&chars, options.vocab_size);
    Ok(Learned { pieces, rounds, left_out: found.len() - required.len() })
}

/// The characters that a vocabulary must have: those that are asked for, and the most frequent ones until they cover the
/// text.
pub fn covering(
    found: &[(char, u64)],
    vocab_size: usize,
    character_coverage: f64,
    required_chars: &[char],
) -> Result<Vec<(char, u64)>> {
    let total: u64 = found.iter().map(|row| row.1).sum();
    let mut covered = 0;
    let count_of = |c: char| found.iter().find(|row| row.0 == c).map_or(0, |row| row.1);
    let mut required: Vec<(char, u64)> = Vec::new();
    let asked = required_chars.iter().map(|&c| (c, count_of(c)));
    let mut asked: Vec<(char, u64)> = asked.filter(|&(c, _)| c != '\0').collect();
    asked.sort_unstable_by_key(|&(c, count)| (std::cmp::Reverse(count), c));
    asked.dedup();
    for &(c, count) in asked.iter().chain(found.iter().filter(|row| row.0 != '\0')) {
        let is_asked = required_chars.contains(&c);
        if !is_asked && covered as f64 / total as f64 >= character_coverage {
            break;
        }
        if is_asked && required.iter().any(|row| row.0 == c) {
            continue;
        }
        covered += count;
        required.push((c, count));
    }
    required.sort_unstable_by_key(|&(c, count)| (std::cmp::Reverse(count), c));
    if required.is_empty() {
        return Err(Error::value("there is nothing to learn from: the texts have no characters"));
    }
    if required.len() > vocab_size {
        return Err(Error::value(format!(
            "a vocabulary of {vocab_size} entries has no room for the {} characters that it must have: ask for more \
             entries, or lower character_coverage, {character_coverage}",
            required.len(),
        )));
    }
    Ok(required)
}

struct Trainer<'t> {
    /// The strings of the entries, in the order of their bytes.
    text: Vec<u8>,
    offsets: Vec<u32>,
    scores: Vec<f64>,
    is_alive: Vec<bool>,
    /// Where each stands: the chunk, the place in it, and its characters.
    occurs: Vec<(u32, u32, u32)>,
    chunks: Vec<Chunk>,
    total_words: f64,
    /// The mean log likelihood of a character: what entries are multiplied by so that sums stay near 1.
    per_character: f64,
    total_characters: f64,
    shrinking_factor: f64,
    threads: usize,
    stop: Stop<'t>,
}

impl<'t> Trainer<'t> {
    fn new(
        runs: Runs,
        classes: &Classes,
        required: &[(char, u64)],
        options: &Options,
        total_words: f64,
        threads: usize,
        stop: Stop<'t>,
    ) -> Result<Self> {
        let longest = options.rules.max_sentencepiece_length;
        let most = options.seed_sentencepiece_size.min(MOST_PIECES - required.len() - 1);
        let seeds = seeds(&runs, classes, longest, most, threads, stop)?;
        let mut pieces: Vec<(Vec<u8>, u64, Option<Seed>)> = required
            .iter()
            .map(|&(c, count)| (c.to_string().into_bytes(), count, None))
            .chain(seeds.into_iter().map(|seed| {
                let at = seed.at as usize;
                (runs.text[at..at + seed.len as usize].to_vec(), seed.coverage, Some(seed))
            }))
            .collect();
        pieces.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let keys: Vec<(&[u8], Token)> = pieces.iter().map(|row| &*row.0).zip(0..).collect();
        let trie = Trie::new(&keys)?;
        drop(keys);
        let chunks = chunks(&runs, &trie, threads, stop)?;
        drop(trie);
        let total = log(pieces.iter().map(|row| row.1).sum::<u64>() as f64);
        let (mut text, mut offsets) = (Vec::new(), vec![0]);
        let (mut scores, mut occurs) = (Vec::new(), Vec::new());
        for (piece, coverage, seed) in pieces {
            occurs.push(seed.map_or((0, 0, 1), |seed| {
                let chunk = chunks.partition_point(|chunk| chunk.start <= seed.at as usize) - 1;
                // Where a run starts another ends: of the places with this byte, the last.
                let Chunk { start, bytes, .. } = &chunks[chunk];
                let place = bytes.partition_point(|&byte| start + byte as usize <= seed.at as usize) - 1;
                let length = piece.iter().filter(|&&byte| byte & 0xC0 != 0x80).count();
                (chunk as u32, place as u32, length as u32)
            }));
            text.extend_from_slice(&piece);
            offsets.push(text.len() as u32);
            scores.push(log(coverage.max(1) as f64) - total);
        }
        let mut chunks = chunks;
        chunks.iter_mut().for_each(|chunk| chunk.bytes = Vec::new());
        let places = |chunk: &Chunk| chunk.runs.iter().map(|&(length, count)| f64::from(length) * count).sum::<f64>();
        Ok(Self {
            is_alive: vec![true; scores.len()],
            text,
            offsets,
            scores,
            occurs,
            total_characters: chunks.iter().map(places).sum(),
            chunks,
            total_words,
            per_character: -2.0,
            shrinking_factor: options.shrinking_factor,
            threads,
            stop,
        })
    }

    fn size(&self) -> usize {
        self.is_alive.iter().filter(|&&is_alive| is_alive).count()
    }

    /// The score of the rarest entry. Where no character of the texts may be in one, none is left: that of all there is.
    fn worst(&self) -> f64 {
        self.alive().map(|piece| self.scores[piece]).reduce(f64::min).unwrap_or(0.0)
    }

    fn alive(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.is_alive.len()).filter(|&piece| self.is_alive[piece])
    }

    fn piece(&self, piece: usize) -> &[u8] {
        &self.text[self.offsets[piece] as usize..self.offsets[piece + 1] as usize]
    }

    /// Scores by which edges are followed: a character that is no entry any more is unknown.
    fn edge_scores(&self) -> Vec<f64> {
        let unknown = self.worst() - UNK_PENALTY;
        self.scores
            .iter()
            .zip(&self.is_alive)
            .map(|(&score, &is_alive)| if is_alive { score } else { unknown })
            .collect()
    }

    /// How often each entry is expected to occur, and the mean log likelihood of a word.
    fn e_step(&mut self) -> Result<(Vec<f64>, f64)> {
        let scores = self.edge_scores();
        // In the text, the likelihood falls by about the same with each character; so this keeps sums near 1.
        let factor = exp(-self.per_character);
        let mut powers = vec![1.0; LONGEST + 1];
        (1..powers.len()).for_each(|i| powers[i] = (powers[i - 1] * factor).min(f64::MAX));
        let weights: Vec<f64> =
            scores.iter().zip(&self.occurs).map(|(score, occurs)| exp(*score) * powers[occurs.2 as usize]).collect();
        let (chunks, per_character) = (&self.chunks, self.per_character);
        let model = Weighted { scores: &scores, weights: &weights, per_character };
        let mut expected = vec![0.0; scores.len()];
        let mut likelihood = 0.0;
        let work = |scratch: &mut Sums, chunk: usize, out: &mut (Vec<f64>, f64), _: Stop<'_>| {
            out.0.resize(scores.len(), 0.0);
            model.expect(&chunks[chunk], scratch, out);
            Ok(())
        };
        let workers = (0..self.threads.max(1)).map(|_| Sums::default()).collect();
        in_parallel(chunks.len(), workers, self.stop, work, |out| {
            expected.iter_mut().zip(&out.0).for_each(|(sum, more)| *sum += more);
            likelihood += out.1;
            out.0.clear();
            out.1 = 0.0;
        })?;
        self.per_character = likelihood / self.total_characters;
        Ok((expected, likelihood / self.total_words))
    }

    fn m_step(&mut self, expected: &[f64]) {
        for (is_alive, &count) in self.is_alive.iter_mut().zip(expected) {
            *is_alive &= count >= LEAST_EXPECTED;
        }
        let total = digamma(self.alive().map(|piece| expected[piece]).sum());
        let alive: Vec<usize> = self.alive().collect();
        alive.into_iter().for_each(|piece| self.scores[piece] = digamma(expected[piece]) - total);
        self.drop_dead();
    }

    fn drop_dead(&mut self) {
        let is_alive = &self.is_alive;
        std::thread::scope(|scope| {
            let half = self.chunks.len() / 2;
            let (left, right) = self.chunks.split_at_mut(half);
            let one = |chunks: &mut [Chunk]| chunks.iter_mut().for_each(|chunk| chunk.drop_dead(is_alive));
            if self.threads > 1 {
                scope.spawn(move || one(left));
            } else {
                one(left);
            }
            one(right);
        });
    }

    /// Keeps the entries without which the text would lose most.
    fn prune(&mut self, wanted: usize) -> Result<()> {
        let scores = self.edge_scores();
        let chunks = &self.chunks;
        let mut counts = vec![0.0; scores.len()];
        let work = |best: &mut Vec<(f64, Edge)>, chunk: usize, out: &mut Vec<f64>, _: Stop<'_>| {
            out.resize(scores.len(), 0.0);
            count_best(&chunks[chunk], &scores, best, out);
            Ok(())
        };
        let workers = (0..self.threads.max(1)).map(|_| Vec::new()).collect();
        in_parallel(chunks.len(), workers, self.stop, work, |out| {
            counts.iter_mut().zip(&*out).for_each(|(sum, more)| *sum += more);
            out.clear();
        })?;
        let total: f64 = self.alive().map(|piece| counts[piece]).sum();
        let log_total = log(total);
        let alive: Vec<usize> = self.alive().collect();
        let losses_of = |best: &mut Vec<(f64, Edge)>, part: usize, out: &mut Vec<(usize, f64)>, _: Stop<'_>| {
            let size = alive.len().div_ceil(CHUNKS);
            for &piece in alive.iter().skip(part * size).take(size) {
                let count = counts[piece];
                let (chunk, place, length) = self.occurs[piece];
                if count == 0.0 {
                    continue;
                }
                if length == 1 {
                    out.push((piece, f64::INFINITY));
                    continue;
                }
                let score = alternative(&chunks[chunk as usize], place as usize, length as usize, piece, &scores, best);
                if score > scores[piece] {
                    continue;
                }
                let (mut parts, mut logs, mut end) = (0.0, 0.0, length as usize);
                while end > 0 {
                    let edge = best[end].1;
                    let before = if self.is_alive[edge.piece()] { counts[edge.piece()] } else { 0.0 };
                    logs += log(before + count);
                    parts += 1.0;
                    end -= edge.length();
                }
                let without = logs - parts * log(total + count * (parts - 1.0));
                out.push((piece, count / self.total_words * (log(count) - log_total - without)));
            }
            Ok(())
        };
        let mut losses: Vec<(usize, f64)> = Vec::new();
        let workers = (0..self.threads.max(1)).map(|_| Vec::new()).collect();
        in_parallel(CHUNKS, workers, self.stop, losses_of, |out| losses.append(out))?;
        let size = wanted.max((self.shrinking_factor * alive.len() as f64) as usize);
        // Entries are in the order of their bytes, which is that of equals.
        losses.sort_by(|a, b| b.1.total_cmp(&a.1));
        let characters = losses.partition_point(|row| row.1 == f64::INFINITY);
        losses.truncate(size.max(characters));
        self.is_alive.fill(false);
        losses.into_iter().for_each(|(piece, _)| self.is_alive[piece] = true);
        self.drop_dead();
        Ok(())
    }

    /// The best entries, the required characters among them, the best first.
    fn finalize(&self, required: &[char], size: usize) -> Vec<(Vec<u8>, f64)> {
        let worst = self.worst();
        let is_character = |piece: usize| self.occurs[piece].2 == 1;
        let mut scored: std::collections::HashMap<&[u8], f64> = std::collections::HashMap::new();
        let mut rest: Vec<(usize, f64)> = Vec::new();
        for piece in self.alive() {
            match is_character(piece) {
                true => drop(scored.insert(self.piece(piece), self.scores[piece])),
                false => rest.push((piece, self.scores[piece])),
            }
        }
        let mut missing = 0.0;
        let mut pieces: Vec<(Vec<u8>, f64)> = Vec::new();
        for c in required {
            let character = c.to_string().into_bytes();
            let score = scored.get(&*character).copied().unwrap_or_else(|| {
                missing += 1.0;
                worst + (missing - 1.0) * PENALTY_STEP
            });
            pieces.push((character, score));
        }
        rest.sort_by(|a, b| b.1.total_cmp(&a.1));
        rest.truncate(size.saturating_sub(pieces.len()));
        pieces.extend(rest.into_iter().map(|(piece, score)| (self.piece(piece).to_vec(), score)));
        pieces.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        pieces
    }
}

/// Runs in chunks of about the same length, with the entries that may start at each place.
fn chunks(runs: &Runs, trie: &Trie, threads: usize, stop: Stop<'_>) -> Result<Vec<Chunk>> {
    let size = runs.text.len().div_ceil(CHUNKS).max(1);
    let mut ranges: Vec<std::ops::Range<usize>> = Vec::new();
    for run in 0..runs.len() {
        match ranges.last_mut() {
            Some(range) if (runs.offsets[run] - runs.offsets[range.start]) < size as u32 => range.end = run + 1,
            _ => ranges.push(run..run + 1),
        }
    }
    let work = |(): &mut (), at: usize, out: &mut Chunk, _: Stop<'_>| {
        out.start = runs.offsets[ranges[at].start] as usize;
        out.firsts.push(0);
        for run in ranges[at].clone() {
            let text = runs.get(run);
            let from = out.places();
            for at in (0..text.len()).filter(|&at| text[at] & 0xC0 != 0x80) {
                // Every character of a run is an entry, so its edge comes first.
                let (mut length, mut counted) = (0, at);
                trie.prefixes(&text[at..], |len, piece| {
                    debug_assert_ne!(piece, NONE);
                    length += text[counted..at + len].iter().filter(|&&byte| byte & 0xC0 != 0x80).count();
                    counted = at + len;
                    out.edges.push(Edge::new(piece, length));
                });
                out.firsts.push(out.edges.len() as u32);
                out.bytes.push(runs.offsets[run] + at as u32 - out.start as u32);
            }
            let length = out.places() - from;
            // The end of the run is a place, too.
            out.firsts.push(out.edges.len() as u32);
            out.bytes.push(runs.offsets[run + 1] - out.start as u32);
            out.runs.push((length as u32, runs.counts[run] as f64));
        }
        out.edges.shrink_to_fit();
        Ok(())
    };
    let mut chunks = Vec::new();
    in_parallel(ranges.len(), vec![(); threads.max(1)], stop, work, |chunk| chunks.push(std::mem::take(chunk)))?;
    Ok(chunks)
}

/// Sums over the ways to each place of a run, and from it.
#[derive(Default)]
struct Sums {
    before: Vec<f64>,
    after: Vec<f64>,
}

struct Weighted<'m> {
    scores: &'m [f64],
    /// exp(score - length · per_character).
    weights: &'m [f64],
    per_character: f64,
}

impl Weighted<'_> {
    /// Adds what is expected of the entries in a chunk, and the log likelihood of its runs.
    fn expect(&self, chunk: &Chunk, sums: &mut Sums, (expected, likelihood): &mut (Vec<f64>, f64)) {
        let mut place = 0;
        for &(length, count) in &chunk.runs {
            let length = length as usize;
            let likely = match self.sums(chunk, place, length, sums) {
                Some(total) => {
                    let share = count / total;
                    for at in 0..length {
                        let before = sums.before[at] * share;
                        for edge in chunk.at(place + at) {
                            let weight = self.weights[edge.piece()];
                            expected[edge.piece()] += before * weight * sums.after[at + edge.length()];
                        }
                    }
                    log(total) + length as f64 * self.per_character
                }
                None => {
                    // Too long, or too unlike the rest: the same with logarithms.
                    let total = self.log_sums(chunk, place, length, sums);
                    for at in 0..length {
                        for edge in chunk.at(place + at) {
                            let way = sums.before[at] + self.scores[edge.piece()] + sums.after[at + edge.length()];
                            expected[edge.piece()] += count * exp(way - total);
                        }
                    }
                    total
                }
            };
            *likelihood += count * likely;
            place += length + 1;
        }
    }

    /// The weight of all ways through a run, and of those to and from each place. None if numbers do not hold it.
    fn sums(&self, chunk: &Chunk, place: usize, length: usize, sums: &mut Sums) -> Option<f64> {
        const SOUND: std::ops::Range<f64> = 1e-140..1e140;
        let Sums { before, after } = sums;
        before.clear();
        before.resize(length + 1, 0.0);
        before[0] = 1.0;
        for at in 0..length {
            let sum = before[at];
            if !SOUND.contains(&sum) {
                return None;
            }
            for edge in chunk.at(place + at) {
                before[at + edge.length()] += sum * self.weights[edge.piece()];
            }
        }
        after.clear();
        after.resize(length + 1, 1.0);
        for at in (0..length).rev() {
            let weighted = |edge: &Edge| self.weights[edge.piece()] * after[at + edge.length()];
            after[at] = chunk.at(place + at).iter().map(weighted).sum();
            if !SOUND.contains(&after[at]) {
                return None;
            }
        }
        SOUND.contains(&before[length]).then_some(before[length])
    }

    fn log_sums(&self, chunk: &Chunk, place: usize, length: usize, sums: &mut Sums) -> f64 {
        let Sums { before, after } = sums;
        before.clear();
        before.resize(length + 1, f64::NEG_INFINITY);
        before[0] = 0.0;
        after.clear();
        after.resize(length + 1, f64::NEG_INFINITY);
        after[length] = 0.0;
        for at in 0..length {
            for edge in chunk.at(place + at) {
                let end = at + edge.length();
                before[end] = log_add(before[end], before[at] + self.scores[edge.piece()]);
            }
        }
        for at in (0..length).rev() {
            for edge in chunk.at(place + at) {
                after[at] = log_add(after[at], after[at + edge.length()] + self.scores[edge.piece()]);
            }
        }
        before[length]
    }
}

/// log(exp(a) + exp(b)).
fn log_add(a: f64, b: f64) -> f64 {
    let (small, large) = if a < b { (a, b) } else { (b, a) };
    if small == f64::NEG_INFINITY {
        return large;
    }
    large + log1p(exp(small - large))
}

/// Adds how often each entry is in the best segmentations of a chunk's runs.
fn count_best(chunk: &Chunk, scores: &[f64], best: &mut Vec<(f64, Edge)>, counts: &mut [f64]) {
    let mut place = 0;
    for &(length, count) in &chunk.runs {
        let length = length as usize;
        best.clear();
        best.resize(length + 1, (f64::NEG_INFINITY, Edge(0)));
        best[0].0 = 0.0;
        for at in 0..length {
            let score = best[at].0;
            for &edge in chunk.at(place + at) {
                let end = &mut best[at + edge.length()];
                let candidate = score + scores[edge.piece()];
                if candidate > end.0 {
                    *end = (candidate, edge);
                }
            }
        }
        let mut end = length;
        while end > 0 {
            let edge = best[end].1;
            counts[edge.piece()] += count;
            end -= edge.length();
        }
        place += length + 1;
    }
}

/// The score of what an entry falls into if it were gone; `best` says what.
fn alternative(
    chunk: &Chunk,
    place: usize,
    length: usize,
    piece: usize,
    scores: &[f64],
    best: &mut Vec<(f64, Edge)>,
) -> f64 {
    best.clear();
    best.resize(length + 1, (f64::NEG_INFINITY, Edge(0)));
    best[0].0 = 0.0;
    for at in 0..length {
        let score = best[at].0;
        for &edge in chunk.at(place + at).iter().take_while(|edge| at + edge.length() <= length) {
            let end = &mut best[at + edge.length()];
            let candidate = score + scores[edge.piece()];
            if candidate > end.0 && edge.piece() != piece {
                *end = (candidate, edge);
            }
        }
    }
    best[length].0
}

/// The logarithm of each share of the whole. Nothing has the share of one.
pub fn log_shares(counts: &[u64]) -> Vec<f64> {
    let total = log(counts.iter().sum::<u64>().max(1) as f64);
    counts.iter().map(|&count| log(count.max(1) as f64) - total).collect()
}

/// The derivative of log Γ(x).
pub fn digamma(mut x: f64) -> f64 {
    let mut result = 0.0;
    while x < 7.0 {
        result -= 1.0 / x;
        x += 1.0;
    }
    x -= 0.5;
    let xx = 1.0 / (x * x);
    let xx2 = xx * xx;
    result + log(x) + xx / 24.0 - 7.0 * xx2 / 960.0 + 31.0 * xx2 * xx / 8064.0 - 127.0 * xx2 * xx2 / 30720.0
}
