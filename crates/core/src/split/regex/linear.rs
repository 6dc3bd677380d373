//! Which expressions can run in linear time: a tree without what needs backtracking, or the part that does.
//!
//! What is left in the tree is the regular subset and `Next`, a look at one character. Possessive and atomic parts
//! become plain ones where that is proved to change nothing: giving back is of no use if what follows always matches,
//! or can never start with a character that was given back.

use super::parse::{Greed, Node};
use super::set::Set;

/// What stands in the way, and where.
#[derive(Debug, PartialEq)]
pub struct Obstacle {
    pub at: usize,
    pub what: &'static str,
}

/// Engines differ in which rounds they count.
pub const REPEATED_NOTHING: &str = "a repeat of what can match nothing";

pub fn linear(node: &Node) -> Result<Node, Obstacle> {
    lower(node, &Rest { starts: Set::all(), always: true }, None)
}

/// What is known of all that comes after a part of the expression.
#[derive(Clone)]
struct Rest {
    /// Holds every character that may come next where it matches.
    starts: Set,
    /// It matches whatever comes next.
    always: bool,
}

/// `before`: the characters that the part before may end with; None where that may have matched nothing.
fn lower(node: &Node, rest: &Rest, before: Option<&Set>) -> Result<Node, Obstacle> {
    let obstacle = |at: usize, what| Err(Obstacle { at, what });
    match node {
        Node::Empty | Node::Set(_) | Node::Next { .. } => Ok(node.clone()),
        Node::Cat(nodes) => {
            let mut rests = vec![rest.clone()];
            for node in nodes.iter().skip(1).rev() {
                let rest = ahead(node, &rests[rests.len() - 1]);
                rests.push(rest);
            }
            let mut before = before.cloned();
            let mut lowered = Vec::with_capacity(nodes.len());
            for (node, rest) in nodes.iter().zip(rests.iter().rev()) {
                lowered.push(lower(node, rest, before.as_ref())?);
                before = last(node, before);
            }
            Ok(Node::cat(lowered))
        }
        Node::Alt(nodes) => {
            Ok(Node::alt(nodes.iter().map(|node| lower(node, rest, before)).collect::<Result<_, _>>()?))
        }
        Node::Repeat { node, min, max, greed, at } => {
            let again = if *max == Some(1) { rest.clone() } else { repeated(node, *min, rest) };
            let before = match (before.cloned(), last(node, before.cloned())) {
                (before, _) if *max == Some(1) => before,
                (Some(first), Some(later)) => Some(first.union(&later)),
                _ => None,
            };
            let body = lower(node, &again, before.as_ref())?;
            if *max != Some(1) && is_nullable(&body) {
                return obstacle(*at, REPEATED_NOTHING);
            }
            let greed = match greed {
                Greed::Possessive if gives_back(&body, rest) => {
                    return obstacle(*at, "a possessive repeat that may change what follows");
                }
                Greed::Lazy => Greed::Lazy,
                _ => Greed::Greedy,
            };
            Ok(Node::Repeat { node: Box::new(body), min: *min, max: *max, greed, at: *at })
        }
        Node::Atomic { node, at } => {
            let body = lower(node, &Rest { starts: Set::all(), always: true }, before)?;
            let redundant = match &body {
                Node::Set(_) => true,
                Node::Repeat { node, greed: Greed::Greedy, .. } => !gives_back(node, rest),
                _ => rest.always,
            };
            if redundant {
                Ok(body)
            } else {
                obstacle(*at, "an atomic group that may change what follows")
            }
        }
        Node::Look { node, behind: false, negated, at } => match one_character(node) {
            Some((set, end)) if *negated => Ok(Node::Next { set: set.negated(), end: !end }),
            Some((set, end)) => Ok(Node::Next { set, end }),
            None => obstacle(*at, "a look ahead at more than one character"),
        },
        Node::Look { at, .. } => obstacle(*at, "a look behind"),
        Node::Start { at, .. } => obstacle(*at, "a look at what stands before"),
        Node::WordBoundary { word, negated, at } => {
            let behind_word = match before {
                Some(set) if set.is_subset(word) => true,
                Some(set) if set.is_disjoint(word) => false,
                _ => return obstacle(*at, "a word boundary behind what may or may not be a word character"),
            };
            let wants_word = behind_word == *negated;
            Ok(Node::Next { set: if wants_word { word.clone() } else { word.negated() }, end: !wants_word })
        }
    }
}

/// Whether a possessive repeat of `body` may differ from a greedy one.
fn gives_back(body: &Node, rest: &Rest) -> bool {
    match body {
        _ if rest.always => false,
        Node::Set(set) => !set.is_disjoint(&rest.starts),
        _ => true,
    }
}

/// What is known of `node` and what comes after it.
fn ahead(node: &Node, rest: &Rest) -> Rest {
    match node {
        Node::Empty => rest.clone(),
        Node::Set(set) => Rest { starts: set.clone(), always: false },
        Node::Next { set, .. } => Rest { starts: set.intersection(&rest.starts), always: false },
        Node::Cat(nodes) => nodes.iter().rev().fold(rest.clone(), |rest, node| ahead(node, &rest)),
        Node::Alt(nodes) => nodes.iter().map(|node| ahead(node, rest)).fold(
            Rest { starts: Set::default(), always: false },
            |all, one| Rest { starts: all.starts.union(&one.starts), always: all.always || one.always },
        ),
        Node::Repeat { node, min: 0, .. } => Rest { always: rest.always, ..repeated(node, 0, rest) },
        // That there may be more rounds adds nothing: a round that matches nothing leaves what the first may start with.
        Node::Repeat { node, min, .. } => ahead(node, &Rest { always: rest.always && *min == 1, ..rest.clone() }),
        Node::Atomic { node, .. } => ahead(node, rest),
        Node::Look { .. } | Node::Start { .. } | Node::WordBoundary { .. } => Rest { always: false, ..rest.clone() },
    }
}

/// What is known of what comes after one round of a repeat of `node`: another, or the rest.
fn repeated(node: &Node, min: u32, rest: &Rest) -> Rest {
    let first = ahead(node, &Rest { always: false, ..rest.clone() });
    Rest { starts: first.starts.union(&rest.starts), always: rest.always && min <= 1 }
}

/// The characters that `node` may end with, given those before it; None where both may match nothing.
fn last(node: &Node, before: Option<Set>) -> Option<Set> {
    match node {
        Node::Set(set) => Some(set.clone()),
        Node::Cat(nodes) => nodes.iter().fold(before, |before, node| last(node, before)),
        Node::Alt(nodes) => nodes
            .iter()
            .map(|node| last(node, before.clone()))
            .reduce(|all, one| Some(all?.union(&one?)))
            .unwrap_or_default(),
        Node::Repeat { node, min, .. } => {
            let once = last(node, before.clone())?;
            if *min > 0 {
                Some(once)
            } else {
                Some(before?.union(&once))
            }
        }
        Node::Atomic { node, .. } => last(node, before),
        _ => before,
    }
}

pub fn is_nullable(node: &Node) -> bool {
    match node {
        Node::Set(_) => false,
        Node::Cat(nodes) => nodes.iter().all(is_nullable),
        Node::Alt(nodes) => nodes.iter().any(is_nullable),
        Node::Repeat { node, min, max, .. } => *min == 0 || *max == Some(0) || is_nullable(node),
        Node::Atomic { node, .. } => is_nullable(node),
        _ => true,
    }
}

/// The set and the flag of a `Next` that looks ahead at `node`.
fn one_character(node: &Node) -> Option<(Set, bool)> {
    match node {
        Node::Set(set) => Some((set.clone(), false)),
        Node::Next { set, end } => Some((set.clone(), *end)),
        Node::Empty => Some((Set::all(), true)),
        Node::Alt(nodes) => nodes
            .iter()
            .map(one_character)
            .reduce(|all, one| all.zip(one).map(|(all, one)| (all.0.union(&one.0), all.1 || one.1)))
            .flatten(),
        Node::Repeat { min: 0, .. } => Some((Set::all(), true)),
        Node::Repeat { node, min: 1, .. } | Node::Atomic { node, .. } => one_character(node),
        Node::Look { node, behind: false, negated, .. } => {
            let (set, end) = one_character(node)?;
            Some(if *negated { (set.negated(), !end) } else { (set, end) })
        }
        _ => None,
    }
}
