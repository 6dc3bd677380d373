//! What looks at more than the best segmentation: all that are possible, with their probabilities.

use libm::{exp, log1p}; // the same on every machine, which the standard library's are not

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::{char_len, Unigram, UNKNOWN};
use crate::error::{Error, Result};
use crate::random::Random;
use crate::vocab::Token;

/// Tokens, each with the byte at which it ends.
pub type Path = Vec<(Token, usize)>;

/// One entry at one place of the text, or an unknown character.
#[derive(Debug, Clone, Copy)]
pub struct Node {
    pub start: u32,
    pub token: Token,
    pub score: f64,
}

/// The nodes of a text by the place at which they end, those that start first being first. Places are characters.
pub struct Lattice {
    nodes: Vec<Node>,
    /// Those that end at place `i` are `nodes[offsets[i]..offsets[i + 1]]`.
    offsets: Vec<usize>,
    /// The byte at which each place is.
    bytes: Vec<usize>,
}

/// So many nodes, at most, are kept for one text: 16 bytes each.
const MOST_NODES: usize = 1 << 28;

impl Lattice {
    pub fn new(model: &Unigram, text: &[u8]) -> Result<Self> {
        let mut bytes = vec![0];
        while let Some(&at) = bytes.last().filter(|&&at| at < text.len()) {
            bytes.push(at + char_len(text, at));
        }
        let mut place_of = vec![u32::MAX; text.len() + 1];
        bytes.iter().enumerate().for_each(|(place, &byte)| place_of[byte] = place as u32);
        let mut found: Vec<(u32, Node)> = Vec::new();
        for (start, &byte) in bytes[..bytes.len() - 1].iter().enumerate() {
            let mut is_known = false;
            model.trie.prefixes(&text[byte..], |len, token| {
                let end = place_of[byte + len];
                if end != u32::MAX {
                    is_known |= end as usize == start + 1;
                    found.push((end, Node { start: start as u32, token, score: model.lattice_scores[token as usize] }));
                }
            });
            if !is_known {
                found.push((start as u32 + 1, Node { start: start as u32, token: UNKNOWN, score: model.unk_score }));
            }
            if found.len() > MOST_NODES {
                return Err(Error::value("the text has too many segmentations to look at: cut it"));
            }
        }
        // By where they end; the order of the starts stays.
        let mut offsets = vec![0; bytes.len() + 1];
        found.iter().for_each(|&(end, _)| offsets[end as usize + 1] += 1);
        (1..offsets.len()).for_each(|i| offsets[i] += offsets[i - 1]);
        let mut nodes = vec![Node { start: 0, token: UNKNOWN, score: 0.0 }; found.len()];
        let mut next = offsets.clone();
        for (end, node) in found {
            nodes[next[end as usize]] = node;
            next[end as usize] += 1;
        }
        Ok(Self { nodes, offsets, bytes })
    }

    /// How many characters the text has.
    pub fn len(&self) -> usize {
        self.bytes.len() - 1
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn ending(&self, place: usize) -> &[Node] {
        &self.nodes[self.offsets[place]..self.offsets[place + 1]]
    }

    /// For each place, the logarithm of the sum over all ways from the start of exp(alpha · score).
    pub fn forward(&self, alpha: f64) -> Vec<f64> {
        let mut sums = vec![0.0; self.bytes.len()];
        for place in 1..sums.len() {
            sums[place] = log_sum(self.ending(place).iter().map(|node| sums[node.start as usize] + alpha * node.score));
        }
        sums
    }

    /// The same of all ways to the end.
    pub fn backward(&self, alpha: f64) -> Vec<f64> {
        let mut sums = vec![f64::NEG_INFINITY; self.bytes.len()];
        sums[self.len()] = 0.0;
        for place in (1..sums.len()).rev() {
            for node in self.ending(place) {
                let way = sums[place] + alpha * node.score;
                let sum = &mut sums[node.start as usize];
                *sum = log_sum([*sum, way]);
            }
        }
        sums
    }

    /// How probable each node is, in their order, and the logarithm of the sum of all segmentations' probabilities.
    pub fn marginals(&self, alpha: f64) -> (Vec<f64>, f64) {
        let (before, after) = (self.forward(alpha), self.backward(alpha));
        let total = before[self.len()];
        let mut shares = Vec::with_capacity(self.nodes.len());
        for (place, &after) in after.iter().enumerate().skip(1) {
            let share = |node: &Node| exp(before[node.start as usize] + alpha * node.score + after - total);
            shares.extend(self.ending(place).iter().map(share));
        }
        (shares, total)
    }

    /// The nodes with the bytes at which each starts and ends.
    pub fn spans(&self) -> impl Iterator<Item = (usize, usize, Token)> + '_ {
        (1..self.bytes.len()).flat_map(move |place| {
            let span = move |node: &Node| (self.bytes[node.start as usize], self.bytes[place], node.token);
            self.ending(place).iter().map(span)
        })
    }

    /// The entropy of what `sample` draws, in nats.
    pub fn entropy(&self, alpha: f64) -> f64 {
        let sums = self.forward(alpha);
        let mut entropies = vec![0.0; sums.len()];
        for place in 1..sums.len() {
            let part = |node: &Node| {
                let log = sums[node.start as usize] + alpha * node.score - sums[place];
                exp(log) * (entropies[node.start as usize] - log)
            };
            entropies[place] = self.ending(place).iter().map(part).sum();
        }
        entropies[self.len()]
    }

    /// A segmentation drawn with a probability proportional to exp(alpha · score), and that score.
    pub fn sample(&self, alpha: f64, sums: &[f64], random: &mut Random) -> (Path, f64) {
        let (mut path, mut score, mut place) = (Path::new(), 0.0, self.len());
        while place > 0 {
            let nodes = self.ending(place);
            let log = |node: &Node| sums[node.start as usize] + alpha * node.score - sums[place];
            let mut left = random.unit();
            let drawn = nodes.iter().find(|node| {
                left -= exp(log(node));
                left < 0.0
            });
            // Rounding may leave a little: the most probable then.
            let node = drawn.or_else(|| nodes.iter().max_by(|a, b| log(a).total_cmp(&log(b))));
            let Some(node) = node else { break };
            path.push((node.token, self.bytes[place]));
            score += node.score;
            place = node.start as usize;
        }
        path.reverse();
        (path, score)
    }

    /// The `n` best segmentations with their scores, the best first; fewer if there are fewer.
    ///
    /// A search from the end that knows the best way to each place (A*).
    pub fn nbest(&self, n: usize) -> Result<Vec<(Path, f64)>> {
        let mut best = vec![0.0; self.bytes.len()];
        for place in 1..best.len() {
            let ways = self.ending(place).iter().map(|node| best[node.start as usize] + node.score);
            best[place] = ways.fold(f64::NEG_INFINITY, f64::max);
        }
        let found = self.search(n, best[self.len()], |nodes, parent, children| {
            children.extend(nodes.iter().map(|node| {
                let score = parent.score + node.score;
                (best[node.start as usize] + score, score)
            }));
        })?;
        Ok(found.into_iter().map(|(path, score, _)| (path, score)).collect())
    }

    /// `n` different segmentations (fewer if there are fewer), drawn one after the other without putting any back, each
    /// with a probability proportional to exp(alpha · score); with the logarithm of that probability, and the perturbed
    /// one in whose order they are (Kool, van Hoof and Welling 2019: Gumbel noise, shared out from the end of the text).
    pub fn sample_without_replacement(
        &self,
        n: usize,
        alpha: f64,
        random: &mut Random,
    ) -> Result<Vec<(Path, f64, f64)>> {
        let sums = self.forward(alpha);
        let total = sums[self.len()];
        let first = random.gumbel();
        let mut noisy: Vec<f64> = Vec::new();
        let found = self.search(n, first, |nodes, parent, children| {
            // The noise of the children, moved so that the largest is that of the parent.
            let logs = nodes.iter().map(|node| parent.score + alpha * node.score + sums[node.start as usize] - total);
            noisy.clear();
            noisy.extend(logs.map(|log| log + random.gumbel()));
            let largest = noisy.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            children.extend(nodes.iter().zip(&noisy).map(|(node, &noisy)| {
                let v = parent.priority - noisy + log1p(-exp(noisy - largest));
                (parent.priority - v.max(0.0) - log1p(exp(-v.abs())), parent.score + alpha * node.score)
            }));
        })?;
        Ok(found.into_iter().map(|(path, score, noisy)| (path, score - total, noisy)).collect())
    }

    /// The `n` segmentations with the highest priority, with their scores. `expand` gives the priority and the score of
    /// what each of some nodes in front of a hypothesis makes of it. One of them has the same priority, and none a higher
    /// one; so of the hypotheses that wait only the `n` best can count.
    fn search(
        &self,
        n: usize,
        first: f64,
        mut expand: impl FnMut(&[Node], &Hypothesis, &mut Vec<(f64, f64)>),
    ) -> Result<Vec<(Path, f64, f64)>> {
        let mut all =
            vec![Hypothesis { priority: first, score: 0.0, place: self.len() as u32, token: UNKNOWN, next: u32::MAX }];
        let mut agenda = BinaryHeap::from([Waiting { priority: first, number: 0 }]);
        let (mut found, mut children) = (Vec::new(), Vec::new());
        while found.len() < n {
            let Some(Waiting { number, .. }) = agenda.pop() else { break };
            let parent = all[number as usize];
            if parent.place == 0 {
                found.push((self.path(&all, number), parent.score, parent.priority));
                continue;
            }
            let nodes = self.ending(parent.place as usize);
            if all.len() + nodes.len() > MOST_NODES {
                return Err(Error::value("the text is too long for so many segmentations: cut it, or ask for fewer"));
            }
            children.clear();
            expand(nodes, &parent, &mut children);
            for (node, &(priority, score)) in nodes.iter().zip(&children) {
                agenda.push(Waiting { priority, number: all.len() as u32 });
                all.push(Hypothesis { priority, score, place: node.start, token: node.token, next: number });
            }
            let wanted = n - found.len();
            if agenda.len() > 2 * wanted + 64 {
                let mut waiting = std::mem::take(&mut agenda).into_vec();
                waiting.select_nth_unstable_by(wanted, |a, b| b.cmp(a));
                waiting.truncate(wanted);
                agenda = waiting.into();
            }
        }
        Ok(found)
    }

    /// The tokens of a hypothesis that has reached the start.
    fn path(&self, all: &[Hypothesis], mut number: u32) -> Path {
        let mut path = Path::new();
        while all[number as usize].next != u32::MAX {
            let Hypothesis { token, next, .. } = all[number as usize];
            path.push((token, self.bytes[all[next as usize].place as usize]));
            number = next;
        }
        path
    }
}

/// The end of a segmentation: from `place` on.
#[derive(Clone, Copy)]
struct Hypothesis {
    priority: f64,
    score: f64,
    place: u32,
    token: Token,
    /// What stands behind its first token.
    next: u32,
}

/// Of equals the one that was made last is first: it is nearer to the start of the text.
struct Waiting {
    priority: f64,
    number: u32,
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        self.priority.total_cmp(&other.priority).then(self.number.cmp(&other.number))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Waiting {}

/// log Σ exp(value), without overflow.
fn log_sum(values: impl IntoIterator<Item = f64> + Clone) -> f64 {
    let largest = values.clone().into_iter().fold(f64::NEG_INFINITY, f64::max);
    if largest.is_infinite() {
        return largest;
    }
    largest + libm::log(values.into_iter().map(|value| exp(value - largest)).sum::<f64>())
}
