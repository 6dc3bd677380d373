//! The merge loop, which is what BPE means: the pair with the lowest rank merges, the leftmost of equals, until no
//! pair has a rule. Twice: by scanning, for short pieces; from a queue, for long ones.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::rules::{Rule, Rules};
use crate::vocab::Token;

const NONE: Rule = Rule { rank: u32::MAX, token: 0 };

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
    let rule_of = |left: Token, right: Token| rules.get(left, right).unwrap_or(NONE);
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

/// The same for a piece of any length, in O(n log n): candidates wait in a queue, and one whose tokens have merged
/// otherwise meanwhile is passed over.
pub fn long(
    first: impl Iterator<Item = Token>,
    rules: &Rules,
    out: &mut Vec<Token>,
    mut merged: impl FnMut((Token, Token, Rule)),
) {
    const GONE: Token = Token::MAX;
    let mut tokens: Vec<Token> = first.collect();
    let len = tokens.len();
    // Neighbours of the tokens, by the position at which they start; `len` stands for "no more".
    let mut next: Vec<usize> = (1..=len).collect();
    let mut previous: Vec<usize> = (0..len).map(|at| at.wrapping_sub(1)).collect();
    let mut queue: BinaryHeap<Reverse<(u32, usize)>> = BinaryHeap::new();
    let push = |queue: &mut BinaryHeap<_>, tokens: &[Token], at: usize, right: usize| {
        if let Some(rule) = rules.get(tokens[at], tokens[right]) {
            queue.push(Reverse((rule.rank, at)));
        }
    };
    for at in 1..len {
        push(&mut queue, &tokens, at - 1, at);
    }
    while let Some(Reverse((rank, at))) = queue.pop() {
        let right = next[at];
        if tokens[at] == GONE || right == len {
            continue;
        }
        let Some(rule) = rules.get(tokens[at], tokens[right]).filter(|rule| rule.rank == rank) else { continue };
        merged((tokens[at], tokens[right], rule));
        tokens[at] = rule.token;
        tokens[right] = GONE;
        let after = next[right];
        next[at] = after;
        if after < len {
            previous[after] = at;
            push(&mut queue, &tokens, at, after);
        }
        if at > 0 {
            push(&mut queue, &tokens, previous[at], at);
        }
    }
    out.extend(tokens.into_iter().filter(|&token| token != GONE));
}
