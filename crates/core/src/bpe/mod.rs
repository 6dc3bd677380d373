//! Byte-pair encoding of one piece.
//!
//! The meaning is the merge loop ([`merge`]): among all neighbouring pairs that a rule joins, take the one with the
//! lowest rank, the leftmost of equals, and repeat. Every flavour of BPE is a set of rules `(left, right) -> (rank,
//! token)`: a merge list gives a rule for each line; tiktoken's ranks give one for each way in which two entries
//! spell a third. A piece starts as its bytes, or as what [`units`] makes of it.
//!
//! [`prove`] runs the loop on every entry when a vocabulary is compiled. If each entry encodes to itself, then (a) a
//! piece that is an entry needs no merging, and (b) the last merge of each entry is the only rule that can ever make
//! it. If, too, each entry ranks after its parts, then (c) long pieces can be encoded in one pass, linear in their
//! length ([`linear`]).

pub mod learn;
mod linear;
mod merge;
mod prove;
mod rules;
mod trie;
pub mod units;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

use crate::error::{Error, Result};
use crate::vocab::{show, Token, Vocab};
use linear::{Direction, Linear};
use rules::Rules;
use units::{UnitRow, Units};

/// Pieces up to this length are merged pair by pair even where the one pass is proved; longer ones are not …
const SHORT: usize = 24;
/// … but for those up to this length the trie, which takes tens of milliseconds to build, is not built …
const MEDIUM: usize = 96;
/// … before so many bytes of them were merged.
const WORTH_A_TRIE: usize = 1 << 18;

pub struct Bpe {
    pub vocab: Vocab,
    byte_tokens: [Token; 256],
    /// Where pieces do not just start as their bytes.
    units: Option<Units>,
    rules: Rules,
    ignore_merges: bool,
    proof: Proof,
    has_one_pass: bool,
    forward: OnceLock<Linear>,
    backward: OnceLock<Linear>,
    /// Bytes of medium pieces that were merged for want of the trie.
    merged: AtomicUsize,
}

/// What `prove` found out about a vocabulary.
enum Proof {
    /// Every entry encodes to itself, and is made as it says here. An entry that does not rank after its parts, if
    /// there is one.
    Proved { entries: Vec<Made>, out_of_order: Option<Token> },
    /// An entry that does not, and how many there are.
    Refuted { example: Token, count: usize },
    /// Nothing is proved of vocabularies of other units than bytes.
    Untried,
}

/// How an entry is made: all that one pass asks about it, side by side.
#[derive(Debug, Clone, Copy, Default)]
struct Made {
    /// What its last merge joins.
    left: Token,
    right: Token,
    /// The rank of that merge plus one; 0 for a byte, which no merge makes.
    rank: u32,
    len: u32,
}

/// How the priority of a merge is given.
pub enum Priority {
    /// Pairs of ids, the first to be merged first.
    Merges(Vec<(u32, u32)>),
    /// Any two entries that spell an entry, the lowest id first.
    Rank,
}

impl Bpe {
    pub fn new(vocab: Vocab, priority: Priority, ignore_merges: bool, units: UnitRow) -> Result<Self> {
        let byte_tokens = if units.by_characters { [0; 256] } else { byte_tokens(&vocab)? };
        let merges: &[(u32, u32)] = if let Priority::Merges(pairs) = &priority { pairs } else { &[] };
        let units = Units::new(units, &vocab, merges)?;
        if units.is_some() && matches!(priority, Priority::Rank) {
            return Err(Error::format("only merges go with characters or an end-of-word marker, not ranks"));
        }
        let rules = match priority {
            Priority::Merges(pairs) => Rules::from_merges(&vocab, &pairs)?,
            Priority::Rank => Rules::from_ranks(&vocab),
        };
        let proof = match units {
            Some(_) => Proof::Untried,
            None => prove::prove(&vocab, &byte_tokens, &rules),
        };
        let (proof, rules) = match proof {
            Proof::Proved { entries, out_of_order } => {
                let needed = Rules::from_entries(&entries);
                (Proof::Proved { entries, out_of_order }, needed)
            }
            other => (other, rules),
        };
        Ok(Self {
            has_one_pass: matches!(proof, Proof::Proved { out_of_order: None, .. }) && trie::Trie::has_room(&vocab),
            vocab,
            byte_tokens,
            units,
            rules,
            ignore_merges,
            proof,
            forward: OnceLock::new(),
            backward: OnceLock::new(),
            merged: AtomicUsize::new(0),
        })
    }

    /// Appends the tokens of a piece.
    #[inline]
    pub fn encode(&self, piece: &[u8], out: &mut Vec<Token>) {
        if self.takes_whole() {
            if let Some(token) = self.vocab.find(piece) {
                out.push(token);
                return;
            }
        }
        self.encode_parts(piece, out);
    }

    fn encode_parts(&self, piece: &[u8], out: &mut Vec<Token>) {
        if self.units.is_some() {
            return self.encode_units(piece, out);
        }
        let bytes = piece.iter().map(|&byte| self.byte_tokens[byte as usize]);
        if piece.len() <= SHORT || (piece.len() <= MEDIUM && !self.is_worth_a_trie(piece.len())) {
            merge::short(bytes, &self.rules, out, |_| {});
        } else if self.has_one_pass() {
            self.linear(Direction::Forward).encode(self, piece, out);
        } else {
            merge::long(bytes, &self.rules, out);
        }
    }

    #[inline(never)]
    fn encode_units(&self, piece: &[u8], out: &mut Vec<Token>) {
        let Some(units) = &self.units else { return };
        let mut first = Vec::with_capacity(piece.len());
        units.push_first(&self.vocab, &self.byte_tokens, piece, &mut first);
        match first.len() <= MEDIUM {
            true => merge::short(first.into_iter(), &self.rules, out, |_| {}),
            false => merge::long(first.into_iter(), &self.rules, out),
        }
    }

    /// The bytes that `token` covers at `pos` in a piece; the last token covers what is left.
    #[inline]
    pub fn covers(&self, token: Token, piece: &[u8], pos: usize) -> usize {
        match &self.units {
            None => self.vocab.piece_len(token),
            Some(units) => units.covers(&self.vocab, token, piece, pos),
        }
    }

    fn is_worth_a_trie(&self, more: usize) -> bool {
        self.has_one_pass
            && (self.forward.get().is_some() || self.merged.fetch_add(more, Ordering::Relaxed) > WORTH_A_TRIE)
    }

    /// How far into `text` that many tokens can reach at most, wherever it is cut into pieces.
    pub fn reach(&self, text: &[u8], tokens: usize) -> usize {
        if self.units.is_some() {
            return text.len();
        }
        let trie = self.linear(Direction::Forward);
        let (mut pos, mut end) = (0, 0);
        for _ in 0..tokens {
            let mut farthest = end;
            while pos <= end && pos < text.len() {
                farthest = farthest.max(pos + self.vocab.piece_len(trie.longest(self, &text[pos..])));
                pos += 1;
            }
            end = farthest;
            if end >= text.len() {
                break;
            }
        }
        end.min(text.len())
    }

    /// Whether a piece that is an entry is that entry.
    fn takes_whole(&self) -> bool {
        self.ignore_merges || matches!(self.proof, Proof::Proved { .. })
    }

    /// Whether one pass over a piece is proved to give its tokens.
    fn has_one_pass(&self) -> bool {
        self.has_one_pass
    }

    /// The token count of every prefix of `piece` (`result[n]` for its first `n` bytes), where that is proved to be
    /// what one pass gives.
    pub fn prefix_counts(&self, piece: &[u8]) -> Option<Vec<u32>> {
        self.has_one_pass().then(|| self.linear(Direction::Backward).counts(self, piece))
    }

    /// The token count of every suffix of `piece` (`result[n]` for what is left without its first `n` bytes).
    pub fn suffix_counts(&self, piece: &[u8]) -> Option<Vec<u32>> {
        self.has_one_pass().then(|| self.linear(Direction::Forward).counts(self, piece))
    }

    /// Built when first needed, outside the lock: a process forked meanwhile must not wait for a thread it lacks.
    fn linear(&self, direction: Direction) -> &Linear {
        let cell = match direction {
            Direction::Forward => &self.forward,
            Direction::Backward => &self.backward,
        };
        if let Some(built) = cell.get() {
            return built;
        }
        let built = Linear::new(&self.vocab, direction);
        cell.get_or_init(|| built)
    }

    /// Whether the tokens `a` and `b` stay as they are when their bytes are encoded side by side: undo the merges of
    /// both at the border, latest first, and see whether the merge across the border would have come before.
    fn compatible(&self, entries: &[Made], mut a: Token, mut b: Token) -> bool {
        let mut limit = u32::MAX;
        loop {
            if self.rules.get(a, b).is_some_and(|rule| rule.rank < limit) {
                return false;
            }
            let (made_a, made_b) = (entries[a as usize], entries[b as usize]);
            if made_a.rank > made_b.rank {
                limit = made_a.rank;
                a = made_a.right;
            } else if made_b.rank == 0 {
                return true; // two bytes
            } else {
                limit = made_b.rank + 1; // of two equal merges the left one comes first
                b = made_b.left;
            }
        }
    }

    /// Rows of what `plan()` shows: step, how, why.
    pub fn plan(&self) -> Vec<(String, String, String)> {
        let row = |step: &str, how: &str, why: String| (step.to_owned(), how.to_owned(), why);
        let entry = |token: Token| format!("{} (id {})", show(self.vocab.piece(token)), self.vocab.id(token));
        let from_a_queue = "merged pair by pair from a queue";
        let (whole, why_whole, long, why_long) = match &self.proof {
            Proof::Proved { out_of_order, .. } => {
                let why = format!("each of the {} entries encodes to itself", self.vocab.len());
                match out_of_order {
                    None if !self.has_one_pass => {
                        ("looked up", why, from_a_queue, "the vocabulary is too large".into())
                    }
                    None => ("looked up", why.clone(), "one pass over its bytes", why + " and ranks after its parts"),
                    Some(token) => ("looked up", why, from_a_queue, entry(*token) + " ranks before one of its parts"),
                }
            }
            Proof::Refuted { example, count } => {
                let total = self.vocab.len();
                let why =
                    format!("{count} of {total} entries do not encode to themselves, such as {}", entry(*example));
                match self.ignore_merges {
                    true => ("looked up", "the model ignores merges there".into(), from_a_queue, why),
                    false => ("merged like any other", why.clone(), from_a_queue, why),
                }
            }
            Proof::Untried => {
                let why = "proved ways are for pieces that start as bytes".to_owned();
                match self.ignore_merges {
                    true => ("looked up", "the model ignores merges there".into(), from_a_queue, why),
                    false => ("merged like any other", why.clone(), from_a_queue, why),
                }
            }
        };
        let short = if self.has_one_pass { SHORT } else { MEDIUM };
        let mut rows = vec![
            row("piece that is an entry", whole, why_whole),
            row("short piece", "merged pair by pair", format!("at most {short} bytes: a scan is fastest")),
            row("long piece", long, why_long),
        ];
        if let Some(units) = &self.units {
            rows.insert(0, row("piece", &format!("starts as {}", units.describe()), "the model says so".into()));
        }
        rows
    }
}

/// The entries of the 256 bytes, all of which must be there: otherwise some text could not be encoded.
fn byte_tokens(vocab: &Vocab) -> Result<[Token; 256]> {
    let mut tokens = [0; 256];
    let mut missing = Vec::new();
    for byte in 0..=255u8 {
        match vocab.find(&[byte]) {
            Some(token) => tokens[byte as usize] = token,
            None => missing.push(format!("0x{byte:02x}")),
        }
    }
    if missing.is_empty() {
        return Ok(tokens);
    }
    let listed = missing.iter().take(8).cloned().collect::<Vec<_>>().join(", ");
    let more = if missing.len() > 8 { ", …" } else { "" };
    Err(Error::format(format!(
        "a byte-level vocabulary needs an entry for each of the 256 bytes; {} are missing: {listed}{more}",
        missing.len()
    )))
}
