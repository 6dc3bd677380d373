//! The merge loop, which is what BPE means: the pair with the lowest rank merges, the leftmost of equals, until no
//! pair has a rule. Twice: by scanning, for short pieces; from a queue, for long ones.

use super::rules::{Rule, Rules};
use crate::random::Dropout;
use crate::vocab::Token;

/// Appends the tokens of a piece, given what it starts as, and tells `merged` the rules in the order in which they are
/// used. Quadratic.
#[inline]
pub fn short(
    first: impl Iterator<Item = Token>,
    rules: &Rules,
    out: &mut Vec<Token>,
    mut merged: impl FnMut((Token, Token, Rule)),
) {
    let start = out.len();
    out.extend(first);
    let rule_of = |left: Token, right: Token| rules.get(left, right).unwrap_or(Rule::NONE);
    // candidates[i] is the rule for the tokens i and i + 1.
    let mut candidates: Vec<Rule> = out[start..].windows(2).map(|pair| rule_of(pair[0], pair[1])).collect();
    loop {
        let mut best = (u32::MAX, 0);
        for (i, rule) in candidates.iter().enumerate() {
            if rule.rank < best.0 {
                best = (rule.rank, i);
            }
        }
        let (rank, i) = best;
        if rank == u32::MAX {
            return;
        }
        let rule = candidates[i];
        let tokens = start + i;
        merged((out[tokens], out[tokens + 1], rule));
        out[tokens] = rule.token;
        out.remove(tokens + 1);
        candidates.remove(i);
        if i < candidates.len() {
            candidates[i] = rule_of(out[tokens], out[tokens + 1]);
        }
        if i > 0 {
            candidates[i - 1] = rule_of(out[tokens - 1], out[tokens]);
        }
    }
}

/// The same for a piece of any length, in O(n log n).
pub fn long(
    first: impl Iterator<Item = Token>,
    rules: &Rules,
    out: &mut Vec<Token>,
    merged: impl FnMut((Token, Token, Rule)),
) {
    let first: Vec<Token> = first.collect();
    if u32::try_from(first.len()).is_err() {
        return short(first.into_iter(), rules, out, merged); // places have 32 bits
    }
    let mut queue = Queue::default();
    queue.start(&first, rules);
    queue.merge(rules, merged);
    out.extend(queue.tokens());
}

/// A piece that is being merged. Its merges wait in a tree of eight children a node, each as good as the best below it;
/// the best of all stands at the top.
#[derive(Default)]
pub struct Queue {
    places: Vec<Place>,
    /// Rank and place of the merge at each place, or of the best of eight nodes below; nodes of a level side by side.
    nodes: Vec<Node>,
    /// Where each level starts in `nodes`.
    levels: Vec<usize>,
    /// The best of the highest node.
    top: u64,
}

/// What starts at a byte, or at another unit: a token, its neighbours, and what the one on the right would make of it.
#[derive(Clone, Copy)]
struct Place {
    token: Token,
    next: u32,
    previous: u32,
    makes: Token,
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Node([u64; WIDTH]);

const WIDTH: usize = 8;
/// No merge; nor is any key from that of `Rule::NONE` on.
const IDLE: u64 = u64::MAX;
const NO_RULE: u64 = (Rule::NONE.rank as u64) << 32;
/// The place before the first.
const START: u32 = u32::MAX;

impl Node {
    #[inline]
    fn best(self) -> u64 {
        let [a, b, c, d, e, f, g, h] = self.0;
        a.min(b).min(c.min(d)).min(e.min(f).min(g.min(h)))
    }
}

impl Queue {
    /// Starts a piece, which has fewer than 2^32 tokens.
    #[inline]
    pub fn start(&mut self, first: &[Token], rules: &Rules) {
        let Self { places, nodes, levels, top } = self;
        places.clear();
        places.extend(first.iter().zip(0u32..).map(|(&token, at)| Place {
            token,
            next: at + 1,
            previous: at.wrapping_sub(1),
            makes: 0,
        }));
        nodes.clear();
        levels.clear();
        levels.push(0);
        nodes.resize(first.len().div_ceil(WIDTH).max(1), Node([IDLE; WIDTH]));
        for (at, pair) in first.windows(2).enumerate() {
            let rule = rules.find(pair[0], pair[1]);
            places[at].makes = rule.token;
            nodes[at / WIDTH].0[at % WIDTH] = key(rule.rank, at);
        }
        let mut from = 0;
        while nodes.len() - from > 1 {
            let (start, below) = (nodes.len(), nodes.len() - from);
            nodes.resize(start + below.div_ceil(WIDTH), Node([IDLE; WIDTH]));
            for i in 0..below {
                nodes[start + i / WIDTH].0[i % WIDTH] = nodes[from + i].best();
            }
            levels.push(start);
            from = start;
        }
        *top = nodes[from].best();
    }

    /// Merges until no rule is left, and tells `merged` the rules in the order in which they are used.
    #[inline]
    pub fn merge(&mut self, rules: &Rules, mut merged: impl FnMut((Token, Token, Rule))) {
        while self.top < NO_RULE {
            let (rank, at) = ((self.top >> 32) as u32, self.top as u32 as usize);
            let Place { token, next: right, makes, .. } = self.places[at];
            merged((token, self.places[right as usize].token, Rule { rank, token: makes }));
            self.join(at, rules);
        }
    }

    /// The same where merges are passed over at random: each time, all that there are, in their order, until one is not.
    /// It is made. Those that were passed over wait `again` for the next time, or else are not made as long as both their
    /// tokens stay. The end is where all are passed over.
    pub fn merge_some(&mut self, rules: &Rules, dropout: &mut Dropout, again: bool) {
        let mut passed = Vec::new();
        while self.top < NO_RULE {
            let (rank, at) = ((self.top >> 32) as u32, self.top as u32 as usize);
            if dropout.drops() {
                if again {
                    passed.push((rank, at));
                }
                self.take(at);
                continue;
            }
            let Place { next: right, previous, .. } = self.places[at];
            self.join(at, rules);
            for (rank, place) in passed.drain(..) {
                // What stood beside the pair has been looked at anew.
                if place != right as usize && place != previous as usize {
                    self.put(place, Rule { rank, token: self.places[place].makes });
                }
            }
        }
    }

    /// Makes the merge at a place.
    #[inline]
    fn join(&mut self, at: usize, rules: &Rules) {
        let Place { next: right, previous, makes, .. } = self.places[at];
        let after = self.places[right as usize].next;
        self.take(at);
        self.take(right as usize);
        self.places[at].token = makes;
        self.places[at].next = after;
        if previous != START {
            let previous = previous as usize;
            self.take(previous);
            if let Some(rule) = rules.get(self.places[previous].token, makes) {
                self.put(previous, rule);
            }
        }
        if (after as usize) < self.places.len() {
            self.places[after as usize].previous = at as u32;
            if let Some(rule) = rules.get(makes, self.places[after as usize].token) {
                self.put(at, rule);
            }
        }
    }

    /// The tokens that there are now.
    pub fn tokens(&self) -> impl Iterator<Item = Token> + '_ {
        let mut at = 0;
        std::iter::from_fn(move || {
            let place = self.places.get(at)?;
            at = place.next as usize;
            Some(place.token)
        })
    }

    #[inline]
    fn take(&mut self, at: usize) {
        let mut i = at;
        let mut better = IDLE;
        for &level in &self.levels {
            let node = &mut self.nodes[level + i / WIDTH];
            if node.0[i % WIDTH] as u32 as usize != at {
                return;
            }
            node.0[i % WIDTH] = better;
            better = node.best();
            i /= WIDTH;
        }
        self.top = better;
    }

    #[inline]
    fn put(&mut self, at: usize, rule: Rule) {
        self.places[at].makes = rule.token;
        let key = key(rule.rank, at);
        let mut i = at;
        for &level in &self.levels {
            let other = &mut self.nodes[level + i / WIDTH].0[i % WIDTH];
            if *other < key {
                return;
            }
            *other = key;
            i /= WIDTH;
        }
        self.top = self.top.min(key);
    }
}

#[inline]
fn key(rank: u32, at: usize) -> u64 {
    (u64::from(rank) << 32) | at as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rules of all kinds, also such as no vocabulary has, so that many have the same rank.
    #[test]
    fn the_queue_does_what_the_scan_does_in_the_same_order() {
        let mut random = 1u64;
        let mut below = |n: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((random >> 33) % n as u64) as usize
        };
        for _ in 0..3000 {
            let tokens = 1 + below(12);
            let mut rules = Rules::with_room(tokens * tokens);
            for left in 0..tokens as Token {
                for right in 0..tokens as Token {
                    if below(2) == 0 {
                        rules.add(left, right, Rule { rank: below(20) as u32, token: below(tokens) as Token });
                    }
                }
            }
            let first: Vec<Token> = (0..below(600)).map(|_| below(tokens) as Token).collect();
            let (mut expected, mut steps) = (Vec::new(), Vec::new());
            short(first.iter().copied(), &rules, &mut expected, |step| steps.push(step));
            let (mut found, mut taken) = (Vec::new(), Vec::new());
            long(first.into_iter(), &rules, &mut found, |step| taken.push(step));
            assert_eq!(found, expected);
            assert_eq!(taken, steps);
            for left in 0..tokens as Token {
                for right in 0..tokens as Token {
                    assert_eq!(rules.find(left, right), rules.get(left, right).unwrap_or(Rule::NONE));
                }
            }
        }
    }
}
