//! Split patterns of any kind: a regular expression compiled into an automaton that passes over a text in linear time.
//!
//! ```text
//! text -parse-> tree -linear-> tree without what needs backtracking -nfa-> ordered branches -dfa-> one table
//! ```
//!
//! What cannot go this way is refused, with the place in the expression, unless backtracking is allowed.

mod backtrack;
mod classes;
mod dfa;
mod linear;
mod nfa;
mod parse;
mod set;

use std::fmt;

use crate::error::{Error, Result};
use crate::unicode::{char_len, class_before};
use backtrack::{budget, Backtracker};
use classes::Classes;
pub use dfa::Memory;
use dfa::{Dfa, Facts};
use linear::{linear, Obstacle};
use nfa::Nfa;
pub use parse::Syntax;
use parse::{parse, shown, Node};

pub struct Regex {
    text: String,
    engine: Engine,
}

enum Engine {
    Linear { dfa: Dfa, facts: Facts },
    Backtracking { program: Backtracker, why: String },
}

/// The automaton of a tree, or what stands in the way of one.
fn automaton(node: &Node) -> std::result::Result<Dfa, Obstacle> {
    let too_large = || Obstacle { at: 0, what: "an expression whose automaton becomes too large" };
    let node = linear(node)?;
    let classes = Classes::new(&[&node]).ok_or(Obstacle { at: 0, what: "telling more than 255 classes apart" })?;
    let nfa = Nfa::new(&node, &classes).ok_or_else(too_large)?;
    Dfa::new(&nfa, classes).ok_or_else(too_large)
}

impl Regex {
    pub fn new(text: &str, syntax: Syntax, allow_backtracking: bool) -> Result<Self> {
        let node = parse(text, syntax)?;
        let refused = |obstacle: Obstacle, advice: &str| {
            let Obstacle { at, what } = obstacle;
            Error::value(format!("the split pattern {:?}: at character {at}, {what}{advice}", shown(text)))
        };
        let engine = match automaton(&node) {
            Ok(dfa) => Engine::Linear { facts: dfa.facts(), dfa },
            Err(obstacle) if allow_backtracking => {
                let why = format!("at character {}, {}", obstacle.at, obstacle.what);
                let classes = Classes::new(&[&node]).ok_or(obstacle);
                let program = classes.and_then(|classes| Backtracker::new(&node, classes));
                let program = program.map_err(|obstacle| refused(obstacle, " is not supported"))?;
                Engine::Backtracking { program, why }
            }
            Err(obstacle) => {
                return Err(refused(
                    obstacle,
                    " has no linear way; write it otherwise, or set allow_backtracking=True: it then runs under a \
                     budget of steps",
                ));
            }
        };
        Ok(Self { text: text.to_owned(), engine })
    }

    /// Whether two expressions, each in its syntax, say the same part by part. May say no where they mean the same.
    pub fn same(a: (&str, Syntax), b: (&str, Syntax)) -> Result<bool> {
        Ok(parse(a.0, a.1)? == parse(b.0, b.1)?)
    }

    /// Whether matches leave nothing out of any text. May say no where they do not.
    pub fn covers(&self) -> bool {
        matches!(&self.engine, Engine::Linear { dfa, .. } if dfa.covers())
    }

    /// How it runs, and why.
    pub fn plan(&self) -> (String, String) {
        let text = shown(&self.text);
        match &self.engine {
            Engine::Linear { .. } => (format!("automaton for {text}"), "one step a character, no way back".into()),
            Engine::Backtracking { why, .. } => (
                format!("backtracking for {text}"),
                format!("{why} needs it; at most {} steps and {} a byte", budget(0), budget(1) - budget(0)),
            ),
        }
    }

    /// The end of the match that starts at `pos`, if there is one.
    #[inline]
    pub fn match_end(&self, text: &[u8], pos: usize, state: &mut ScanState) -> Option<usize> {
        match &self.engine {
            Engine::Linear { dfa, .. } => dfa.end(text, pos, &mut state.memory),
            Engine::Backtracking { program, .. } => {
                let steps = state.steps.get_or_insert_with(|| budget(text.len()));
                match program.end(text, pos, steps) {
                    Ok(end) => end,
                    Err(_) => {
                        state.exhausted_at.get_or_insert(pos);
                        Some(text.len()) // the scan is of no use any more
                    }
                }
            }
        }
    }

    /// The end of the piece that starts at `pos`: of a match, or of what no match covers up to the next one. A match
    /// of nothing is a boundary.
    #[inline]
    pub fn end(&self, text: &[u8], pos: usize, state: &mut ScanState) -> usize {
        match self.match_end(text, pos, state) {
            Some(end) if end > pos => end,
            _ => self.gap_end(text, pos, state),
        }
    }

    /// The first match of something that starts at `pos` or after it.
    pub fn next_match(&self, text: &[u8], mut pos: usize, state: &mut ScanState) -> Option<(usize, usize)> {
        while pos < text.len() {
            match self.match_end(text, pos, state) {
                Some(end) if end > pos => return Some((pos, end)),
                _ => pos += char_len(text, pos),
            }
        }
        None
    }

    fn gap_end(&self, text: &[u8], mut pos: usize, state: &mut ScanState) -> usize {
        loop {
            pos += char_len(text, pos);
            if pos >= text.len() || self.match_end(text, pos, state).is_some() {
                return pos.min(text.len());
            }
        }
    }

    /// See `Pattern::cut`.
    pub fn cut(&self, text: &[u8], at: usize) -> bool {
        match &self.engine {
            Engine::Linear { dfa, facts } => {
                let classes = dfa.classes();
                facts.cut(classes.at(text, class_before(text, at).1).0, classes.at(text, at).0)
            }
            Engine::Backtracking { .. } => false,
        }
    }

    /// See `Pattern::ignores`.
    pub fn ignores(&self, text: &[u8], at: usize) -> bool {
        match &self.engine {
            Engine::Linear { dfa, facts } => facts.ignored(dfa.classes().at(text, class_before(text, at).1).0),
            Engine::Backtracking { .. } => false,
        }
    }
}

impl fmt::Debug for Regex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Regex({:?})", self.text)
    }
}

/// What a scan of one text remembers from piece to piece.
#[derive(Default)]
pub struct ScanState {
    memory: Memory,
    steps: Option<usize>,
    exhausted_at: Option<usize>,
}

impl ScanState {
    pub fn check(&self) -> Result<()> {
        let Some(at) = self.exhausted_at else { return Ok(()) };
        Err(Error::value(format!(
            "the split pattern backtracks too much: its budget of steps was used up in the piece at byte {at} of a \
             stretch of text; use a pattern that runs in linear time"
        )))
    }
}

#[cfg(test)]
mod tests;
