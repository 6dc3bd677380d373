//! The deterministic automaton: one table look-up a character.
//!
//! A state is an ordered list of states of the nondeterministic one, so that it knows which way of matching is
//! preferred: leftmost-first, as in a backtracking engine. Whether a match ends at a place may depend on the character
//! that follows, so it is noted on the step over that character: this is how a look ahead costs nothing.

use std::collections::HashMap;

use super::classes::{has, Classes};
use super::nfa::{Nfa, State, StateId};
use crate::hash::IntMap;

/// Larger tables are refused,
const MAX_STEPS: usize = 1 << 18;
/// and those that take more to make: so many states of the nondeterministic automaton are visited.
const MAX_VISITS: usize = 1 << 24;

/// A row of steps a state, in one table: for each class, and for the end of the text, `next row << 1 | ends here`.
/// Row 0 is that of the state from which nothing matches.
pub struct Dfa {
    classes: Classes,
    width: usize,
    steps: Vec<u32>,
    start: u32,
}

impl Dfa {
    /// None if the table would be too large.
    pub fn new(nfa: &Nfa, classes: Classes) -> Option<Self> {
        let width = classes.len() + 1;
        let mut builder = Builder { nfa, seen: vec![0; nfa.states.len()], round: 0, visits: 0 };
        let mut ids: HashMap<Vec<StateId>, u32> = HashMap::from([(Vec::new(), 0)]);
        let start = builder.expanded([nfa.start]);
        ids.insert(start.clone(), 1);
        let (mut lists, mut steps) = (vec![Vec::new(), start], vec![0; width]);
        while steps.len() < lists.len() * width {
            let list = lists[steps.len() / width].clone();
            for class in 0..width {
                let (next, ends) = builder.step(&list, class);
                let row = *ids.entry(next).or_insert_with_key(|next| {
                    lists.push(next.clone());
                    (lists.len() - 1) as u32
                });
                steps.push(row << 1 | u32::from(ends));
            }
            if lists.len() * width > MAX_STEPS || builder.visits > MAX_VISITS {
                return None;
            }
        }
        let mut dfa = Self { classes, width, steps, start: 1 };
        dfa.trim();
        for step in &mut dfa.steps {
            *step = ((*step >> 1) * width as u32) << 1 | (*step & 1);
        }
        dfa.start *= width as u32;
        Some(dfa)
    }

    /// Makes every step into a state from which nothing matches one into row 0.
    fn trim(&mut self) {
        let width = self.width;
        let rows = self.steps.len() / width;
        let mut before: Vec<Vec<u32>> = vec![Vec::new(); rows];
        let mut useful = vec![false; rows];
        let mut todo = Vec::new();
        for (row, steps) in self.steps.chunks(width).enumerate() {
            steps.iter().for_each(|step| before[(step >> 1) as usize].push(row as u32));
            if steps.iter().any(|step| step & 1 == 1) {
                useful[row] = true;
                todo.push(row);
            }
        }
        while let Some(row) = todo.pop() {
            for &from in &before[row] {
                if !std::mem::replace(&mut useful[from as usize], true) {
                    todo.push(from as usize);
                }
            }
        }
        for step in self.steps.iter_mut().filter(|step| !useful[(**step >> 1) as usize]) {
            *step &= 1;
        }
    }

    /// The end of the match that starts at `start`, if there is one.
    #[inline]
    pub fn end(&self, text: &[u8], start: usize, memory: &mut Memory) -> Option<usize> {
        let (mut pos, mut row, mut found) = (start, self.start, None);
        memory.trail.clear();
        loop {
            let stop = text.len().min((pos / MARK + 1) * MARK);
            while pos < stop {
                let (class, len) = self.classes.at(text, pos);
                #[cfg(test)]
                STEPS.with(|steps| steps.set(steps.get() + 1));
                let step = self.steps[row as usize + class as usize];
                if step & 1 == 1 {
                    found = Some(pos);
                }
                row = step >> 1;
                if row == 0 {
                    break;
                }
                pos += len;
            }
            if row == 0 {
                break;
            }
            if pos >= text.len() {
                if self.steps[row as usize + self.width - 1] & 1 == 1 {
                    found = Some(pos);
                }
                break;
            }
            if pos - found.unwrap_or(start) > MARK {
                if memory.is_failure(row, pos) {
                    break;
                }
                memory.trail.push((row, pos));
            }
        }
        if !memory.trail.is_empty() {
            memory.keep_failures(start, found);
        }
        found
    }

    /// For each place p of `text[start..end]` the end of the match of `text[start..p]` that starts at `start`, as
    /// `start` where there is none; at the end of the text or in front of it makes no difference to this.
    pub fn prefix_ends(&self, text: &[u8], start: usize, end: usize) -> Vec<usize> {
        let mut ends = vec![start; end - start + 1];
        let (mut pos, mut row, mut found) = (start, self.start, start);
        loop {
            let ends_here = self.steps[row as usize + self.width - 1] & 1 == 1;
            ends[pos - start] = if ends_here { pos } else { found };
            if pos >= end {
                return ends;
            }
            let (class, len) = self.classes.at(text, pos);
            let step = self.steps[row as usize + class as usize];
            if step & 1 == 1 {
                found = pos;
            }
            row = step >> 1;
            pos += len;
        }
    }

    // ======================== what holds for every text ========================

    fn rows(&self) -> impl Iterator<Item = &[u32]> {
        self.steps.chunks(self.width).skip(1)
    }

    fn row(&self, step: u32) -> &[u32] {
        let row = (step >> 1) as usize;
        &self.steps[row..row + self.width]
    }

    /// For each class whether every character of it matches alone, whatever follows.
    fn match_alone(&self) -> Vec<bool> {
        let start = self.row(self.start << 1);
        start[..self.width - 1].iter().map(|&step| self.row(step).iter().all(|after| after & 1 == 1)).collect()
    }

    /// Whether matches leave nothing out of any text.
    pub fn covers(&self) -> bool {
        self.match_alone().into_iter().all(|alone| alone)
    }

    /// What is known of pairs of neighbours, for `Pattern::cut` and `Pattern::ignores`.
    pub fn facts(&self) -> Facts {
        let classes = self.width - 1;
        let alone = self.match_alone();
        let mut cuts = vec![true; classes * classes];
        let mut ignored = vec![true; classes];
        for row in self.rows() {
            for (before, &step) in row[..classes].iter().enumerate().filter(|(_, step)| **step >> 1 != 0) {
                ignored[before] = false;
                // Behind a character `before`: no match may go on over `after`, and whether it ends here must not
                // depend on there being an `after`.
                let after = self.row(step);
                for (class, &over) in after[..classes].iter().enumerate() {
                    let apart = over >> 1 == 0 && over & 1 == after[classes] & 1;
                    cuts[before * classes + class] &= apart;
                }
            }
        }
        // What no match covers must not reach over the place either.
        for before in 0..classes {
            for after in 0..classes {
                cuts[before * classes + after] &= alone[before] || alone[after];
            }
        }
        Facts { classes, cuts, ignored }
    }

    pub fn classes(&self) -> &Classes {
        &self.classes
    }
}

/// What holds for every text.
pub struct Facts {
    classes: usize,
    cuts: Vec<bool>,
    ignored: Vec<bool>,
}

impl Facts {
    /// Whether there is a boundary between two characters of these classes, and neither side's pieces depend on the
    /// other side.
    pub fn cut(&self, before: u8, after: u8) -> bool {
        self.cuts[before as usize * self.classes + after as usize]
    }

    /// Whether no match holds a character of this class.
    pub fn ignored(&self, class: u8) -> bool {
        self.ignored[class as usize]
    }
}

#[cfg(test)]
thread_local! {
    pub static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Every so many bytes it is looked up, and noted, whether a scan that is far beyond its last match is hopeless.
const MARK: usize = 64;

/// Up to so many notes are kept even if they lie behind.
const MANY: usize = 1 << 12;

/// What scans of one text have found out: from which states, at which places, no match ends any more.
///
/// A scan may run far ahead and find nothing (`\s*\n` on spaces); if each of the next ones did too, the time would
/// grow with the square. So no scan passes where another one failed (Reps 1998, ""Maximal munch" tokenization in
/// linear time"). Only places near multiples of `MARK` are noted, and only by scans that overshoot by more than that.
#[derive(Default)]
pub struct Memory {
    failures: IntMap<u64, ()>,
    /// Above so many, those that lie behind are dropped.
    many: usize,
    trail: Vec<(u32, usize)>,
}

impl Memory {
    /// Texts are shorter than 2^40 bytes (`MAX_TEXT`), rows numbers below 2^18.
    fn key(row: u32, pos: usize) -> u64 {
        u64::from(row) << 40 | pos as u64
    }

    #[cold]
    fn is_failure(&self, row: u32, pos: usize) -> bool {
        self.failures.contains_key(&Self::key(row, pos))
    }

    /// Notes where the scan from `start` went after the match it found.
    #[cold]
    fn keep_failures(&mut self, start: usize, found: Option<usize>) {
        if self.failures.len() > self.many.max(MANY) {
            self.failures.retain(|key, ()| key & ((1 << 40) - 1) > start as u64);
            self.many = 2 * self.failures.len();
        }
        let hopeless = self.trail.iter().filter(|(_, pos)| found.is_none_or(|found| *pos > found));
        self.failures.extend(hopeless.map(|&(row, pos)| (Self::key(row, pos), ())));
    }
}

struct Builder<'a> {
    nfa: &'a Nfa,
    /// The round in which a state was last met.
    seen: Vec<u32>,
    round: u32,
    visits: usize,
}

impl Builder<'_> {
    /// Where one gets from `states` without reading or looking, in order of preference; nothing behind a match.
    fn expanded(&mut self, states: impl IntoIterator<Item = StateId>) -> Vec<StateId> {
        self.round += 1;
        let mut list = Vec::new();
        for state in states {
            let mut todo = vec![state];
            while let Some(id) = todo.pop() {
                self.visits += 1;
                if std::mem::replace(&mut self.seen[id as usize], self.round) == self.round {
                    continue;
                }
                match &self.nfa.states[id as usize] {
                    State::Split(branches) => todo.extend(branches.iter().rev()),
                    State::Match => {
                        list.push(id);
                        return list;
                    }
                    _ => list.push(id),
                }
            }
        }
        list
    }

    /// The list after a character of a class (or at the end of the text), and whether a match ends in front of it.
    fn step(&mut self, list: &[StateId], class: usize) -> (Vec<StateId>, bool) {
        self.round += 1;
        let (mut after, mut ends) = (Vec::new(), false);
        let mut todo: Vec<StateId> = list.iter().rev().copied().collect();
        while let Some(id) = todo.pop() {
            self.visits += 1;
            if std::mem::replace(&mut self.seen[id as usize], self.round) == self.round {
                continue;
            }
            match &self.nfa.states[id as usize] {
                State::Split(branches) => todo.extend(branches.iter().rev()),
                State::Next { classes, next } if has(classes, class) => todo.push(*next),
                State::Char { classes, next } if has(classes, class) => after.push(*next),
                State::Match => {
                    ends = true;
                    break;
                }
                _ => {}
            }
        }
        (self.expanded(after), ends)
    }
}
