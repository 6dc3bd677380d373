//! The entries that training starts from: strings that occur at least twice, found by sorting all suffixes.

use std::ops::Range;

use super::char_len;
use super::runs::{Classes, Runs};
use crate::error::Result;
use crate::parallel::in_parallel;
use crate::pipeline::Stop;

/// A string: where it stands in the text of the runs, and how many bytes it has; how often it occurs times its length
/// in characters.
#[derive(Debug, Clone, Copy)]
pub struct Seed {
    pub at: u32,
    pub len: u32,
    pub coverage: u64,
}

/// A suffix of a run: its next bytes as a number, where it starts, and the run.
#[derive(Clone, Copy)]
struct Suffix {
    key: u64,
    at: u32,
    run: u32,
}

/// Suffixes are sorted in so many parts.
const PARTS: usize = 64;

/// The strings of two characters and more that may be entries, occur at least twice and are not always followed by the
/// same character (the ends of runs being different ones): the inner nodes of the suffix tree. Of more than `most` those
/// with the largest coverage, of equals the ones that come first in the order of the bytes. In that order.
pub fn seeds(
    runs: &Runs,
    classes: &Classes,
    longest: usize,
    most: usize,
    threads: usize,
    stop: Stop<'_>,
) -> Result<Vec<Seed>> {
    let text = &runs.text;
    // Suffixes by their first two bytes; a run of one byte has none that counts.
    let mut starts = vec![0usize; (1 << 16) + 1];
    let pair =
        |at: usize, end: usize| usize::from(text[at]) << 8 | usize::from(if at + 1 < end { text[at + 1] } else { 0 });
    let each = |visit: &mut dyn FnMut(usize, usize, u32)| {
        for run in 0..runs.len() {
            let (start, end) = (runs.offsets[run] as usize, runs.offsets[run + 1] as usize);
            (start..end).filter(|&at| text[at] & 0xC0 != 0x80).for_each(|at| visit(at, end, run as u32));
        }
    };
    each(&mut |at, end, _| starts[pair(at, end) + 1] += 1);
    (1..starts.len()).for_each(|i| starts[i] += starts[i - 1]);
    let total = starts[1 << 16];
    let mut suffixes = vec![(0u32, 0u32); total];
    let mut next = starts.clone();
    each(&mut |at, end, run| {
        let place = &mut next[pair(at, end)];
        suffixes[*place] = (at as u32, run);
        *place += 1;
    });
    drop(next);
    let mut parts: Vec<Range<usize>> = Vec::new();
    for bucket in 0..1 << 16 {
        let (start, end) = (starts[bucket], starts[bucket + 1]);
        match parts.last_mut() {
            Some(part) if part.len() + (end - start) <= total / PARTS => part.end = end,
            _ if start < end => parts.push(start..end),
            _ => {}
        }
    }
    let mut found: Vec<Seed> = Vec::new();
    let work = |sorter: &mut Sorter, part: usize, out: &mut Vec<Seed>, stop: Stop<'_>| {
        sorter.sort(runs, &suffixes[parts[part].clone()], 4 * (longest + 1));
        if stop() {
            return Err(crate::error::Error::interrupted());
        }
        sorter.nodes(runs, classes, longest, out);
        Ok(())
    };
    let workers = (0..threads.max(1)).map(|_| Sorter::default()).collect();
    in_parallel(parts.len(), workers, stop, work, |out| found.append(out))?;
    if found.len() > most {
        let mut by_coverage: Vec<u64> = found.iter().map(|seed| seed.coverage).collect();
        let (_, &mut least, _) = by_coverage.select_nth_unstable_by(most, |a, b| b.cmp(a));
        let mut equals = most - found.iter().filter(|seed| seed.coverage > least).count();
        found.retain(|seed| {
            let is_equal = seed.coverage == least && equals > 0;
            equals -= usize::from(is_equal);
            seed.coverage > least || is_equal
        });
    }
    Ok(found)
}

#[derive(Default)]
struct Sorter {
    suffixes: Vec<Suffix>,
    /// Nodes that are open: their length in characters, and the suffix at which each starts.
    open: Vec<(usize, usize)>,
    /// Suffix at which a node starts, its length in characters, its coverage.
    nodes: Vec<(u32, u32, u64)>,
    sums: Vec<u64>,
}

/// Eight bytes of a run at `at` as a number, zeros behind its end.
#[inline]
fn key(text: &[u8], at: usize, end: usize) -> u64 {
    let bytes = &text[at.min(end)..end];
    match bytes.first_chunk::<8>() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => bytes.iter().enumerate().fold(0, |key, (i, &byte)| key | u64::from(byte) << (56 - 8 * i)),
    }
}

impl Sorter {
    /// Sorts suffixes by their first bytes, `most` or a little more; equal ones by where they stand.
    fn sort(&mut self, runs: &Runs, suffixes: &[(u32, u32)], most: usize) {
        self.suffixes.clear();
        self.suffixes.extend(suffixes.iter().map(|&(at, run)| Suffix { key: 0, at, run }));
        let mut open = vec![(0..self.suffixes.len(), 0)];
        while let Some((range, depth)) = open.pop() {
            let part = &mut self.suffixes[range.clone()];
            for suffix in &mut *part {
                suffix.key =
                    key(&runs.text, suffix.at as usize + depth, runs.offsets[suffix.run as usize + 1] as usize);
            }
            part.sort_unstable_by_key(|suffix| (suffix.key, suffix.at));
            if depth > most {
                continue;
            }
            let mut start = 0;
            for at in 1..=part.len() {
                if at == part.len() || part[at].key != part[start].key {
                    // A zero as the last byte: they have ended, all with the same bytes.
                    if at - start > 1 && part[start].key & 0xFF != 0 {
                        open.push((range.start + start..range.start + at, depth + 8));
                    }
                    start = at;
                }
            }
        }
    }

    /// Appends the nodes of the sorted suffixes in the order of their strings.
    fn nodes(&mut self, runs: &Runs, classes: &Classes, longest: usize, out: &mut Vec<Seed>) {
        let Self { suffixes, open, nodes, sums } = self;
        let of = |suffix: &Suffix| &runs.text[suffix.at as usize..runs.offsets[suffix.run as usize + 1] as usize];
        sums.clear();
        sums.push(0);
        let mut sum = 0;
        sums.extend(suffixes.iter().map(|suffix| {
            sum += runs.counts[suffix.run as usize];
            sum
        }));
        nodes.clear();
        open.clear();
        let mut close = |open: &mut Vec<(usize, usize)>, end: usize| {
            if let Some((length, start)) = open.pop().filter(|&(length, _)| (2..=longest).contains(&length)) {
                nodes.push((start as u32, length as u32, (sums[end] - sums[start]) * length as u64));
            }
        };
        for (at, suffix) in suffixes.iter().enumerate() {
            // How many characters it shares with the one before it, and how many it has, if not too many.
            let shared = if at > 0 { shared_characters(of(&suffixes[at - 1]), of(suffix), longest + 1) } else { 0 };
            let mut start = at.saturating_sub(1);
            while let Some(&(_, first)) = open.last().filter(|open| open.0 > shared) {
                close(open, at);
                start = first;
            }
            if open.last().is_none_or(|open| open.0 < shared) {
                open.push((shared, start));
            }
            // What ends here twice and more is a node, too.
            let length = shared_characters(of(suffix), of(suffix), longest + 1);
            if runs.counts[suffix.run as usize] > 1 && length > shared {
                open.push((length, at));
            }
        }
        while !open.is_empty() {
            close(open, suffixes.len());
        }
        nodes.sort_unstable();
        for &(start, length, coverage) in &*nodes {
            let suffix = &suffixes[start as usize];
            let text = of(suffix);
            let len = (0..length).fold(0, |at, _| at + char_len(text, at));
            let is_valid = std::str::from_utf8(&text[..len]).is_ok_and(|text| classes.is_valid(text));
            if coverage >= 2 * u64::from(length) && is_valid {
                out.push(Seed { at: suffix.at, len: len as u32, coverage });
            }
        }
    }
}

/// How many characters two texts share at their starts, up to `most`.
fn shared_characters(left: &[u8], right: &[u8], most: usize) -> usize {
    let (mut count, mut at) = (0, 0);
    let len = left.len().min(right.len());
    while at < len && left[at] == right[at] {
        at += 1;
        // A character is shared when its last byte is.
        if left.get(at).is_none_or(|byte| byte & 0xC0 != 0x80) {
            count += 1;
            if count == most {
                break;
            }
        }
    }
    count
}
