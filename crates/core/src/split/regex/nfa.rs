//! A tree -> a nondeterministic automaton whose branches have an order: of two ways to match, the first is preferred.

use super::classes::{ClassBits, Classes};
use super::parse::{Greed, Node};

pub type StateId = u32;

pub enum State {
    /// A character of these classes, then on.
    Char {
        classes: ClassBits,
        next: StateId,
    },
    /// On, if the next character is of these classes.
    Next {
        classes: ClassBits,
        next: StateId,
    },
    /// On to each, the first preferred.
    Split(Vec<StateId>),
    Match,
}

/// Larger automata are refused.
const MAX_STATES: usize = 20_000;

pub struct Nfa {
    pub states: Vec<State>,
    pub start: StateId,
}

impl Nfa {
    /// The automaton of a tree that `linear` made; None if it is too large.
    pub fn new(node: &Node, classes: &Classes) -> Option<Self> {
        let mut nfa = Self { states: vec![State::Match], start: 0 };
        nfa.start = nfa.add(node, 0, classes)?;
        Some(nfa)
    }

    fn push(&mut self, state: State) -> Option<StateId> {
        self.states.push(state);
        (self.states.len() <= MAX_STATES).then_some(self.states.len() as StateId - 1)
    }

    /// Adds `node`, after which it goes on to `next`. Returns where it starts.
    fn add(&mut self, node: &Node, next: StateId, classes: &Classes) -> Option<StateId> {
        match node {
            Node::Set(set) => self.push(State::Char { classes: classes.bits(set, false), next }),
            Node::Next { set, end } => self.push(State::Next { classes: classes.bits(set, *end), next }),
            Node::Cat(nodes) => nodes.iter().rev().try_fold(next, |next, node| self.add(node, next, classes)),
            Node::Alt(nodes) => {
                let starts = nodes.iter().map(|node| self.add(node, next, classes)).collect::<Option<_>>()?;
                self.push(State::Split(starts))
            }
            Node::Repeat { node, min, max, greed, .. } => {
                let ordered = |again, on| if *greed == Greed::Lazy { vec![on, again] } else { vec![again, on] };
                let mut start = next;
                match max {
                    Some(max) => {
                        for _ in *min..*max {
                            let again = self.add(node, start, classes)?;
                            start = self.push(State::Split(ordered(again, next)))?;
                        }
                    }
                    None => {
                        start = self.push(State::Split(Vec::new()))?;
                        let again = self.add(node, start, classes)?;
                        self.states[start as usize] = State::Split(ordered(again, next));
                    }
                }
                (0..*min).try_fold(start, |next, _| self.add(node, next, classes))
            }
            _ => Some(next), // Empty; `linear` leaves nothing else
        }
    }
}
