//! Short pieces, several side by side.
//!
//! What merging a short piece takes is mostly waiting for memory: which two tokens merge next depends on what was found
//! for those before. So some pieces are worked on in turns: each time a merge is done, and what the next one depends on is
//! on its way from memory while the others have their turn.

use super::rules::{Rule, Rules};
use crate::vocab::Token;

/// The longest piece.
pub const SHORT: usize = 24;
/// How many have their turn.
const LANES: usize = 8;

/// A piece that is being merged.
#[derive(Clone, Copy)]
struct Lane {
    /// The token that starts at each byte, and what joins it with the next one: rank and token.
    tokens: [Token; SHORT],
    rules: [u64; SHORT],
    /// A bit for each byte at which a token starts.
    starts: u32,
    len: usize,
    /// The token made last, whose neighbours are still to be looked at.
    made: Option<usize>,
    /// Which piece it is.
    number: usize,
}

const NO_RULE: u64 = pack(Rule::NONE);

const fn pack(rule: Rule) -> u64 {
    (rule.rank as u64) << 32 | rule.token as u64
}

impl Lane {
    const EMPTY: Self = Self { tokens: [0; SHORT], rules: [NO_RULE; SHORT], starts: 0, len: 0, made: None, number: 0 };

    fn start(&mut self, number: usize, piece: &[u8], byte_tokens: &[Token; 256], rule_of: impl Fn(u8, u8) -> Rule) {
        self.len = piece.len();
        self.starts = ((1u64 << piece.len()) - 1) as u32;
        self.made = None;
        self.number = number;
        for (token, &byte) in self.tokens.iter_mut().zip(piece) {
            *token = byte_tokens[byte as usize];
        }
        for (rule, pair) in self.rules.iter_mut().zip(piece.windows(2)) {
            *rule = pack(rule_of(pair[0], pair[1]));
        }
        self.rules[piece.len() - 1] = NO_RULE;
    }

    /// Where the token before this one starts, and the one behind it.
    fn beside(&self, at: usize) -> (Option<usize>, Option<usize>) {
        let (before, after) = (self.starts & ((1 << at) - 1), self.starts & !((2 << at) - 1));
        let before = (before != 0).then(|| 31 - before.leading_zeros() as usize);
        (before, (after != 0).then(|| after.trailing_zeros() as usize))
    }

    /// Does one merge. False if there is none.
    fn turn(&mut self, rules: &Rules) -> bool {
        if let Some(made) = self.made {
            let (before, after) = self.beside(made);
            if let Some(before) = before {
                self.rules[before] = pack(rules.find(self.tokens[before], self.tokens[made]));
            }
            if let Some(after) = after {
                self.rules[made] = pack(rules.find(self.tokens[made], self.tokens[after]));
            }
        }
        let mut best = (NO_RULE, 0);
        for (at, &rule) in self.rules[..self.len].iter().enumerate() {
            best = if rule < best.0 { (rule, at) } else { best };
        }
        let (rule, at) = best;
        let (before, Some(right)) = self.beside(at) else { return false };
        if rule == NO_RULE {
            return false;
        }
        self.tokens[at] = rule as Token;
        self.rules[at] = NO_RULE;
        self.rules[right] = NO_RULE;
        self.starts &= !(1 << right);
        self.made = Some(at);
        if let Some(before) = before {
            rules.prepare(self.tokens[before], self.tokens[at]);
        }
        if let (_, Some(after)) = self.beside(at) {
            rules.prepare(self.tokens[at], self.tokens[after]);
        }
        true
    }

    fn tokens(&self) -> impl Iterator<Item = Token> + '_ {
        let mut starts = self.starts;
        std::iter::from_fn(move || {
            let at = (starts != 0).then(|| starts.trailing_zeros() as usize)?;
            starts &= starts - 1;
            Some(self.tokens[at])
        })
    }
}

/// Gives `done` the number and the tokens of each piece, as they are ready. Pieces have 1 to `SHORT` bytes; `rule_of`
/// gives the rule of two bytes. Rules of one rank make one token, as those of a vocabulary do.
pub fn merge<'p>(
    pieces: impl IntoIterator<Item = (usize, &'p [u8])>,
    byte_tokens: &[Token; 256],
    rule_of: impl Fn(u8, u8) -> Rule,
    rules: &Rules,
    mut done: impl FnMut(usize, &mut dyn Iterator<Item = Token>),
) {
    let mut pieces = pieces.into_iter();
    let mut lanes = [Lane::EMPTY; LANES];
    // The first ones of these are at work.
    let (mut order, mut busy) = (std::array::from_fn::<usize, LANES, _>(|lane| lane), 0);
    for (number, piece) in pieces.by_ref().take(LANES) {
        lanes[busy].start(number, piece, byte_tokens, &rule_of);
        busy += 1;
    }
    while busy > 0 {
        let mut i = 0;
        while i < busy {
            let lane = &mut lanes[order[i]];
            if lane.turn(rules) {
                i += 1;
                continue;
            }
            done(lane.number, &mut lane.tokens());
            match pieces.next() {
                Some((number, piece)) => lane.start(number, piece, byte_tokens, &rule_of),
                None => {
                    busy -= 1;
                    order.swap(i, busy);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::merge::short;
    use super::*;

    #[test]
    fn each_lane_does_what_the_loop_does() {
        let mut random = 1u64;
        let mut below = |n: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((random >> 33) % n as u64) as usize
        };
        let byte_tokens = std::array::from_fn(|byte| byte as Token);
        for _ in 0..2000 {
            let tokens = 1 + below(12);
            let mut rules = Rules::with_room(tokens * tokens);
            for pair in 0..tokens * tokens {
                if below(2) == 0 {
                    let (left, right, rank) = ((pair / tokens) as Token, (pair % tokens) as Token, below(20) as u32);
                    rules.add(left, right, Rule { rank, token: rank * 7 % tokens as u32 });
                }
            }
            let pieces: Vec<Vec<u8>> =
                (0..below(30)).map(|_| (0..1 + below(SHORT)).map(|_| below(tokens) as u8).collect()).collect();
            let mut found = vec![Vec::new(); pieces.len()];
            let numbered = pieces.iter().enumerate().map(|(number, piece)| (number, &piece[..]));
            let rule_of = |first: u8, second: u8| rules.find(first.into(), second.into());
            merge(numbered, &byte_tokens, rule_of, &rules, |number, tokens| found[number].extend(tokens));
            for (piece, found) in pieces.iter().zip(found) {
                let mut expected = Vec::new();
                short(piece.iter().map(|&byte| byte.into()), &rules, &mut expected, |_| {});
                assert_eq!(found, expected, "{piece:?}");
            }
        }
    }
}
