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

mod affixes;
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
use crate::memory::Table;
use crate::vocab::{show, Token, Vocab};
use linear::Linear;
pub use linear::{Counts, Direction};
pub use prove::{Known, Proven};
use rules::Rules;
use trie::Trie;
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
    /// Bytes without an entry, none of which well-formed text has.
    missing: Vec<u8>,
    /// Where pieces do not just start as their bytes.
    units: Option<Units>,
    rules: Rules,
    ignore_merges: bool,
    proof: Proof,
    longest: usize,
    /// Whether the tries of `linear` can hold the entries.
    has_room: bool,
    forward: OnceLock<Linear>,
    backward: OnceLock<Linear>,
    /// Bytes of medium pieces that were merged for want of the trie.
    merged: AtomicUsize,
}

/// What `prove` found out about a vocabulary.
enum Proof {
    /// Every entry encodes to itself, and is made as it says here. An entry that does not rank after its parts, if
    /// there is one.
    Proved { entries: Table<Made>, out_of_order: Option<Token> },
    /// Some do not: the first of them, and how many there are, found when `plan` first tells it.
    Refuted(OnceLock<(Token, usize)>),
    /// Nothing is proved of vocabularies of other units than bytes.
    Untried,
}

/// How an entry is made: all that one pass asks about it, side by side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Made {
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
    /// With `known`, from what `made` gave for the same model, nothing is proved again.
    pub fn new(
        vocab: Vocab,
        priority: Priority,
        ignore_merges: bool,
        units: UnitRow,
        known: Option<Known>,
    ) -> Result<Self> {
        let (byte_tokens, missing) = match units.by_characters {
            true => ([NO_TOKEN; 256], Vec::new()),
            false => byte_tokens(&vocab, &units.end_of_word)?,
        };
        let pairs: &[(u32, u32)] = if let Priority::Merges(pairs) = &priority { pairs } else { &[] };
        let units = Units::new(units, &vocab, pairs)?;
        let merges = match &priority {
            Priority::Merges(pairs) => Some(rules::merges(&vocab, pairs)?),
            Priority::Rank if units.is_none() => None,
            Priority::Rank => {
                return Err(Error::format("only merges go with characters or an end-of-word marker, not ranks"))
            }
        };
        let is_refuted = matches!(known, Some(Known::Refuted));
        let in_order = match known {
            _ if units.is_some() || is_refuted => Err(Vec::new()),
            Some(Known::Proven(proven)) if proven.entries.len() == vocab.len() => Ok(proven),
            _ => prove::in_order(&vocab, merges.as_deref()),
        };
        let (proof, rules) = match in_order {
            Ok(Proven { entries, rules, failed: None }) => (Proof::Proved { entries, out_of_order: None }, rules),
            Ok(Proven { rules, failed: Some(failed), .. }) => (Proof::Refuted(OnceLock::from(failed)), rules),
            Err(suspects) => {
                let rules = merges.as_deref().map_or_else(|| Rules::from_ranks(&vocab), Rules::from_merges);
                match units {
                    Some(_) => (Proof::Untried, rules),
                    None if is_refuted => (Proof::Refuted(OnceLock::new()), rules),
                    None => prove::prove(&vocab, &byte_tokens, rules, &suspects),
                }
            }
        };
        Ok(Self {
            longest: (0..vocab.len() as Token).map(|token| vocab.piece_len(token)).max().unwrap_or(0),
            has_room: Trie::has_room(&vocab),
            vocab,
            byte_tokens,
            missing,
            units,
            rules,
            ignore_merges,
            proof,
            forward: OnceLock::new(),
            backward: OnceLock::new(),
            merged: AtomicUsize::new(0),
        })
    }

    /// What need not be found out again: how each entry is made (left, right, rank plus one; 0 for a byte), one after the
    /// other, where each is proved to be made so, in the order of the ranks; nothing of any where some are not.
    pub fn made(&self) -> Option<Vec<u32>> {
        match &self.proof {
            Proof::Proved { entries, out_of_order: None } => {
                Some(entries.iter().flat_map(|made| [made.left, made.right, made.rank]).collect())
            }
            Proof::Refuted(_) => Some(Vec::new()),
            _ => None,
        }
    }

    /// The marker behind the last unit of a piece; empty where there is none.
    pub fn end_of_word(&self) -> &[u8] {
        self.units.as_ref().map_or(&[], Units::end_of_word)
    }

    /// Refuses text with a byte that has no entry. All other functions rely on there being none.
    pub fn check(&self, text: &[u8]) -> Result<()> {
        if self.missing.is_empty() || std::str::from_utf8(text).is_ok() {
            return Ok(());
        }
        let Some(at) = text.iter().position(|byte| self.missing.contains(byte)) else { return Ok(()) };
        Err(Error::value(format!(
            "byte {at} of the text is 0x{:02X}, which UTF-8 never has and for which this vocabulary has no entry: \
             decode the text with the encoding that it is in, or with errors=\"replace\", and pass the str",
            text[at]
        )))
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
            merge::long(bytes, &self.rules, out, |_| {});
        }
    }

    #[inline(never)]
    fn encode_units(&self, piece: &[u8], out: &mut Vec<Token>) {
        let Some(units) = &self.units else { return };
        let mut first = Vec::with_capacity(piece.len());
        units.push_first(&self.vocab, &self.byte_tokens, piece, &mut first);
        match first.len() <= MEDIUM {
            true => merge::short(first.into_iter(), &self.rules, out, |_| {}),
            false => merge::long(first.into_iter(), &self.rules, out, |_| {}),
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
        self.has_one_pass()
            && (self.forward.get().is_some() || self.merged.fetch_add(more, Ordering::Relaxed) > WORTH_A_TRIE)
    }

    /// Whether a piece that is an entry is that entry.
    fn takes_whole(&self) -> bool {
        self.ignore_merges || matches!(self.proof, Proof::Proved { .. })
    }

    /// Whether one pass over a piece is proved to give its tokens.
    fn has_one_pass(&self) -> bool {
        self.has_room && matches!(self.proof, Proof::Proved { out_of_order: None, .. })
    }

    /// Token counts of a piece that grows at one end, where that is proved to be what encoding gives.
    pub fn counts(&self, direction: Direction) -> Option<Counts<'_>> {
        self.has_one_pass().then(|| Counts::new(self, self.linear(direction)))
    }

    /// The length of the longest entry.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// All entries in a trie, if they are not too many, and if nothing but entries of known bytes can be given.
    pub fn trie(&self, direction: Direction) -> Option<&Linear> {
        (self.has_room && self.units.is_none()).then(|| self.linear(direction))
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

    #[inline]
    fn compatible(&self, entries: &[Made], a: Token, b: Token) -> bool {
        prove::compatible(&self.rules, entries, a, b)
    }

    /// What the last merge of each entry joins; None for what pieces start as, for an entry that does not encode to
    /// itself, and for one that is too long to be tried.
    pub fn last_merges(&self) -> Vec<Option<(Token, Token)>> {
        let pair = |made: Made| (made.rank > 0).then_some((made.left, made.right));
        if let Proof::Proved { entries, .. } = &self.proof {
            return entries.iter().map(|&made| pair(made)).collect();
        }
        let mut out = Vec::new();
        let mut last = |token| match &self.units {
            None => {
                let bytes = self.vocab.piece(token).iter().map(|&byte| self.byte_tokens[byte as usize]);
                prove::last_merge(&self.vocab, bytes, &self.rules, token, &mut out)
            }
            Some(units) => {
                let first = units.of_entry(&self.vocab, &self.byte_tokens, token).into_iter();
                prove::last_merge(&self.vocab, first, &self.rules, token, &mut out)
            }
        };
        (0..self.vocab.len() as Token).map(|token| last(token).and_then(pair)).collect()
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
                    None if !self.has_room => ("looked up", why, from_a_queue, "the vocabulary is too large".into()),
                    None => ("looked up", why.clone(), "one pass over its bytes", why + " and ranks after its parts"),
                    Some(token) => ("looked up", why, from_a_queue, entry(*token) + " ranks before one of its parts"),
                }
            }
            Proof::Refuted(found) => {
                let find = || prove::failed(&self.vocab, &self.byte_tokens, &self.rules).unwrap_or_default();
                // Found outside the lock, as `linear` builds its trie.
                let failed = found.get().copied().unwrap_or_else(find);
                let (example, count) = found.get_or_init(|| failed);
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
        let short = if self.has_one_pass() { SHORT } else { MEDIUM };
        let mut rows = vec![
            row("piece that is an entry", whole, why_whole),
            row("short piece", "merged pair by pair", format!("at most {short} bytes: a scan is fastest")),
            row("long piece", long, why_long),
        ];
        if let Some(units) = &self.units {
            rows.insert(0, row("piece", &format!("starts as {}", units.describe()), "the model says so".into()));
        }
        if !self.missing.is_empty() {
            let why = format!("the vocabulary has no entry for {}, which UTF-8 never has", hex(&self.missing));
            rows.push(row("bytes that are not UTF-8", "checked first", why));
        }
        rows
    }
}

/// Stands for a byte that has no entry, where entries are proved. No rule has it: tokens are below 2^30.
const NO_TOKEN: Token = 1 << 30;

/// Whether no well-formed UTF-8 has this byte (Unicode 16, table 3-7).
fn is_never_in_utf8(byte: u8) -> bool {
    matches!(byte, 0xc0 | 0xc1 | 0xf5..=0xff)
}

/// The entries of the bytes, and the bytes that have none, or none with the end-of-word marker behind it: only such as
/// well-formed text never has, otherwise some text could not be encoded.
fn byte_tokens(vocab: &Vocab, end_of_word: &[u8]) -> Result<([Token; 256], Vec<u8>)> {
    let mut tokens = [NO_TOKEN; 256];
    let (mut missing, mut needed) = (Vec::new(), Vec::new());
    for byte in 0..=255u8 {
        let marked = end_of_word.is_empty() || vocab.find(&[&[byte], end_of_word].concat()).is_some();
        match vocab.find(&[byte]) {
            Some(token) if marked => tokens[byte as usize] = token,
            _ if is_never_in_utf8(byte) => missing.push(byte),
            _ => needed.push(byte),
        }
    }
    if needed.is_empty() {
        return Ok((tokens, missing));
    }
    let more = if needed.len() > 8 { ", …" } else { "" };
    let twice = match end_of_word.is_empty() {
        true => String::new(),
        false => format!(", and one with the end-of-word marker {} behind it", show(end_of_word)),
    };
    Err(Error::format(format!(
        "a byte-level vocabulary needs an entry for each byte that UTF-8 has{twice}; {} are missing: {}{more}",
        needed.len(),
        hex(&needed[..needed.len().min(8)])
    )))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("0x{byte:02X}")).collect::<Vec<_>>().join(", ")
}
