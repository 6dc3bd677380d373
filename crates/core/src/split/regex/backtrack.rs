//! The fallback for what has no linear way: a backtracking matcher that counts its steps and gives up.

use super::classes::{has, ClassBits, Classes};
use super::linear::{is_nullable, Obstacle, REPEATED_NOTHING};
use super::parse::{Greed, Node};
use crate::unicode::class_before;

enum Op {
    Char(ClassBits),
    Next(ClassBits),
    /// On at the first; if that fails, at the second.
    Split(usize, usize),
    Jump(usize),
    Start {
        line: bool,
    },
    WordBoundary {
        word: ClassBits,
        negated: bool,
    },
    /// What stands between this and `end` is matched for itself; then on at `end`.
    Look {
        negated: bool,
        end: usize,
    },
    /// The same, ending here and starting so many characters back.
    LookBehind {
        widths: (u32, u32),
        negated: bool,
        end: usize,
    },
    Atomic {
        end: usize,
    },
    Match,
}

/// Larger programs are refused.
const MAX_OPS: usize = 20_000;
/// So many ways are kept open at most, so that memory has a limit too.
const MAX_WAYS: usize = 1 << 22;
/// Longer look-behinds are refused.
const MAX_BEHIND: u32 = 255;

pub struct Backtracker {
    classes: Classes,
    ops: Vec<Op>,
}

/// How many steps a text may take: a fixed number, and some for each byte.
pub fn budget(len: usize) -> usize {
    10_000 + 100 * len
}

/// The steps, or the ways that can be kept open, were not enough.
pub struct Exhausted;

impl Backtracker {
    pub fn new(node: &Node, classes: Classes) -> Result<Self, Obstacle> {
        let mut program = Self { classes, ops: Vec::new() };
        program.add(node)?;
        program.ops.push(Op::Match);
        Ok(program)
    }

    fn push(&mut self, op: Op) -> Result<usize, Obstacle> {
        self.ops.push(op);
        match self.ops.len() {
            len if len <= MAX_OPS => Ok(len - 1),
            _ => Err(Obstacle { at: 0, what: "an expression that becomes too large" }),
        }
    }

    fn add(&mut self, node: &Node) -> Result<(), Obstacle> {
        match node {
            Node::Empty => {}
            Node::Set(set) => {
                let bits = self.classes.bits(set, false);
                self.push(Op::Char(bits))?;
            }
            Node::Next { set, end } => {
                let bits = self.classes.bits(set, *end);
                self.push(Op::Next(bits))?;
            }
            Node::Cat(nodes) => nodes.iter().try_for_each(|node| self.add(node))?,
            Node::Alt(nodes) => {
                let mut jumps = Vec::new();
                for (index, node) in nodes.iter().enumerate() {
                    if index + 1 == nodes.len() {
                        self.add(node)?;
                        break;
                    }
                    let split = self.push(Op::Split(0, 0))?;
                    self.add(node)?;
                    jumps.push(self.push(Op::Jump(0))?);
                    self.ops[split] = Op::Split(split + 1, self.ops.len());
                }
                let end = self.ops.len();
                jumps.into_iter().for_each(|jump| self.ops[jump] = Op::Jump(end));
            }
            Node::Repeat { node, min, max, greed: Greed::Possessive, at } => {
                let greed = Greed::Greedy;
                let node = Box::new(Node::Repeat { node: node.clone(), min: *min, max: *max, greed, at: *at });
                self.add(&Node::Atomic { node, at: *at })?;
            }
            Node::Repeat { node, min, max, greed, at } => {
                self.add_repeat(node, *min, *max, *greed == Greed::Lazy, *at)?
            }
            Node::Atomic { node, .. } => self.add_apart(node, |end| Op::Atomic { end })?,
            Node::Look { node, behind: false, negated, .. } => {
                self.add_apart(node, |end| Op::Look { negated: *negated, end })?;
            }
            Node::Look { node, negated, at, .. } => match widths(node) {
                Some(widths) => self.add_apart(node, |end| Op::LookBehind { widths, negated: *negated, end })?,
                None => return Err(Obstacle { at: *at, what: "a look behind at more than 255 characters" }),
            },
            Node::Start { line, .. } => {
                self.push(Op::Start { line: *line })?;
            }
            Node::WordBoundary { word, negated, .. } => {
                let word = self.classes.bits(word, false);
                self.push(Op::WordBoundary { word, negated: *negated })?;
            }
        }
        Ok(())
    }

    fn add_repeat(&mut self, node: &Node, min: u32, max: Option<u32>, lazy: bool, at: usize) -> Result<(), Obstacle> {
        let ordered = |on, out| if lazy { Op::Split(out, on) } else { Op::Split(on, out) };
        if max != Some(1) && is_nullable(node) {
            return Err(Obstacle { at, what: REPEATED_NOTHING });
        }
        (0..min).try_for_each(|_| self.add(node))?;
        let Some(max) = max else {
            let split = self.push(Op::Split(0, 0))?;
            self.add(node)?;
            let end = self.push(Op::Jump(split))? + 1;
            self.ops[split] = ordered(split + 1, end);
            return Ok(());
        };
        let mut splits = Vec::new();
        for _ in min..max {
            splits.push(self.push(Op::Split(0, 0))?);
            self.add(node)?;
        }
        let end = self.ops.len();
        splits.into_iter().for_each(|split| self.ops[split] = ordered(split + 1, end));
        Ok(())
    }

    /// `op`, and behind it what it matches for itself.
    fn add_apart(&mut self, node: &Node, op: impl Fn(usize) -> Op) -> Result<(), Obstacle> {
        let at = self.push(op(0))?;
        self.add(node)?;
        let end = self.push(Op::Match)? + 1;
        self.ops[at] = op(end);
        Ok(())
    }

    /// The end of the match that starts at `start`, if there is one.
    pub fn end(&self, text: &[u8], start: usize, steps: &mut usize) -> Result<Option<usize>, Exhausted> {
        let mut run = Run { program: self, text, steps, stack: Vec::new() };
        run.from(0, start, None)
    }
}

struct Run<'a> {
    program: &'a Backtracker,
    text: &'a [u8],
    steps: &'a mut usize,
    /// Where to go on if this fails.
    stack: Vec<(usize, usize)>,
}

impl Run<'_> {
    /// The end of the first match of the program from `pc` on; if `goal` is given, of the first that ends there.
    fn from(&mut self, mut pc: usize, mut pos: usize, goal: Option<usize>) -> Result<Option<usize>, Exhausted> {
        let base = self.stack.len();
        loop {
            *self.steps = self.steps.checked_sub(1).ok_or(Exhausted)?;
            let next = match self.program.ops[pc] {
                Op::Char(ref bits) => match self.class(pos) {
                    Some((class, len)) if has(bits, class) => Some((pc + 1, pos + len)),
                    _ => None,
                },
                Op::Next(ref bits) => {
                    let class = self.class(pos).map_or(self.program.classes.len(), |(class, _)| class);
                    has(bits, class).then_some((pc + 1, pos))
                }
                Op::Split(first, second) => {
                    if self.stack.len() == MAX_WAYS {
                        return Err(Exhausted);
                    }
                    self.stack.push((second, pos));
                    Some((first, pos))
                }
                Op::Jump(to) => Some((to, pos)),
                Op::Start { line } => {
                    let is_start = pos == 0 || line && self.text[pos - 1] == b'\n';
                    is_start.then_some((pc + 1, pos))
                }
                Op::WordBoundary { ref word, negated } => {
                    let after = self.class(pos).is_some_and(|(class, _)| has(word, class));
                    let before = self.back(pos, 1).and_then(|at| self.class(at));
                    let before = before.is_some_and(|(class, _)| has(word, class));
                    ((before != after) != negated).then_some((pc + 1, pos))
                }
                Op::Look { negated, end } => {
                    let found = self.from(pc + 1, pos, None)?.is_some();
                    (found != negated).then_some((end, pos))
                }
                Op::LookBehind { widths: (least, most), negated, end } => {
                    let mut found = false;
                    for width in least..=most {
                        let Some(start) = self.back(pos, width) else { break };
                        if self.from(pc + 1, start, Some(pos))?.is_some() {
                            found = true;
                            break;
                        }
                    }
                    (found != negated).then_some((end, pos))
                }
                Op::Atomic { end } => self.from(pc + 1, pos, None)?.map(|pos| (end, pos)),
                Op::Match if goal.is_none_or(|goal| goal == pos) => {
                    self.stack.truncate(base);
                    return Ok(Some(pos));
                }
                Op::Match => None,
            };
            let next = if next.is_none() && self.stack.len() > base { self.stack.pop() } else { next };
            match next {
                Some(next) => (pc, pos) = next,
                None => return Ok(None),
            }
        }
    }

    fn class(&self, pos: usize) -> Option<(usize, usize)> {
        (pos < self.text.len()).then(|| self.program.classes.at(self.text, pos)).map(|(class, len)| (class.into(), len))
    }

    /// `width` characters in front of `pos`.
    fn back(&self, pos: usize, width: u32) -> Option<usize> {
        (0..width).try_fold(pos, |pos, _| (pos > 0).then(|| class_before(self.text, pos).1))
    }
}

/// The smallest and the largest number of characters that `node` matches.
fn widths(node: &Node) -> Option<(u32, u32)> {
    let both = match node {
        Node::Set(_) => (1, 1),
        Node::Cat(nodes) => nodes.iter().map(widths).try_fold((0u32, 0u32), |sum, width| {
            let (least, most) = width?;
            Some((sum.0 + least, sum.1 + most))
        })?,
        Node::Alt(nodes) => nodes.iter().map(widths).try_fold((u32::MAX, 0), |all: (u32, u32), width| {
            let (least, most) = width?;
            Some((all.0.min(least), all.1.max(most)))
        })?,
        Node::Repeat { node, min, max, .. } => {
            let (least, most) = widths(node)?;
            (least * min, most.checked_mul((*max)?)?)
        }
        Node::Atomic { node, .. } => widths(node)?,
        _ => (0, 0),
    };
    (both.1 <= MAX_BEHIND).then_some(both)
}
