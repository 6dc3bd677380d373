//! Byte-pair encoding of one piece.
//!
//! The meaning is the merge loop ([`merge`]): among all neighbouring pairs that a rule joins, take the one with the
//! lowest rank, the leftmost of equals, and repeat. Every flavour of BPE is a set of rules `(left, right) -> (rank,
//! token)`: a merge list gives a rule for each line; tiktoken's ranks give one for each way in which two entries
//! spell a third. A piece starts as its bytes, or as what [`units`] makes of it.
//!
//! [`prove`] runs the loop on every entry when a vocabulary is compiled. If each entry encodes to itself, then (a) a
//! piece that is an entry needs no merging, and (b) the last merge of each entry is the only rule that can ever make
//! it. If, too, each entry ranks after its parts, then (c) long pieces can be encoded
//! window by window ([`windows`]).

mod affixes;
pub mod alphabet;
pub mod characters;
mod counts;
pub mod extend;
mod lanes;
pub mod learn;
mod matching;
pub(crate) mod merge;
mod prove;
pub(crate) mod rules;
pub mod seams;
mod trie;
pub mod units;
mod windows;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

use crate::error::{Error, Result};
use crate::memory::Table;
use crate::pipeline::BATCH;
use crate::random::Dropout;
use crate::vocab::{show, Token, Vocab};
pub use counts::{Counts, Entries};
use merge::Queue;
pub use prove::{Known, Proven};
use rules::Rules;
use seams::Seams;
pub use trie::Direction;
use trie::Trie;
use units::{UnitRow, Units};
use windows::Pairs;

/// Pieces of up to so many tokens are merged by scanning; in longer ones merges wait in a queue.
pub(crate) const SHORT: usize = lanes::SHORT;
/// So many bytes are merged before what is known of all pairs of bytes is put together, which takes a
/// millisecond or two.
const WORTH_PAIRS: usize = 1 << 16;
/// The same for the trie, of which the parts that are needed then take some milliseconds, too.
const WORTH_TRIE: usize = 1 << 16;

pub struct Bpe {
    pub vocab: Vocab,
    byte_tokens: [Token; 256],
    /// Bytes without an entry, none of which well-formed text has.
    missing: Vec<u8>,
    /// Where pieces do not just start as their bytes.
    units: Option<Units>,
    rules: Rules,
    every_rule: EveryRule,
    ignore_merges: bool,
    proof: Proof,
    longest: usize,
    /// Whether the tries can hold the entries.
    has_room: bool,
    pairs: OnceLock<Pairs>,
    forward: OnceLock<Trie>,
    backward: OnceLock<Trie>,
    /// Bytes that were merged without the pairs.
    merged: AtomicUsize,
    /// Bytes of long pieces that were merged without a trie.
    queued: AtomicUsize,
    seams: OnceLock<Seams>,
}

/// The rules of a model, those too that are never used, as others always come before: where merges are passed over, they
/// are.
enum EveryRule {
    /// `Bpe::rules` are all.
    Kept,
    /// All of a merge list, when they are first needed,
    Listed(Vec<(u32, u32)>, OnceLock<Rules>),
    /// or by ranks.
    Ranks(OnceLock<Rules>),
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

/// How an entry is made: all that `compatible` asks about it, side by side.
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
        let is_refuted = matches!(known, Some(Known::Refuted));
        let proven = match known {
            Some(Known::Proven(proven)) if units.is_none() && proven.entries.len() == vocab.len() => Some(proven),
            _ => None,
        };
        let merges = match &priority {
            _ if proven.is_some() => None, // they were looked at before
            Priority::Merges(pairs) => Some(rules::merges(&vocab, pairs)?),
            Priority::Rank if units.is_none() => None,
            Priority::Rank => {
                return Err(Error::format("only merges go with characters or an end-of-word marker, not ranks"))
            }
        };
        let in_order = match proven {
            Some(proven) => Ok(proven),
            None if units.is_some() || is_refuted => Err(Vec::new()),
            None => prove::in_order(&vocab, merges.as_deref()),
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
        let every_rule = match priority {
            Priority::Merges(pairs) if pairs.len() == rules.len() => EveryRule::Kept,
            Priority::Merges(pairs) => EveryRule::Listed(pairs, OnceLock::new()),
            Priority::Rank => EveryRule::Ranks(OnceLock::new()),
        };
        Ok(Self {
            longest: (0..vocab.len() as Token).map(|token| vocab.piece_len(token)).max().unwrap_or(0),
            has_room: Trie::has_room(&vocab),
            vocab,
            byte_tokens,
            missing,
            units,
            rules,
            every_rule,
            ignore_merges,
            proof,
            pairs: OnceLock::new(),
            forward: OnceLock::new(),
            backward: OnceLock::new(),
            merged: AtomicUsize::new(0),
            queued: AtomicUsize::new(0),
            seams: OnceLock::new(),
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

    /// The token of characters without an entry, if there is one.
    pub fn unk(&self) -> Option<Token> {
        self.units.as_ref().and_then(Units::unk)
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

    /// A hint that a piece will be encoded soon.
    #[inline]
    pub fn prepare(&self, piece: &[u8]) {
        if self.takes_whole() && piece.len() <= self.longest {
            self.vocab.prepare(piece);
        }
    }

    /// Appends the tokens of a piece.
    #[inline]
    pub fn encode(&self, piece: &[u8], out: &mut Vec<Token>) {
        match self.whole(piece) {
            Some(token) => out.push(token),
            None => self.encode_parts(piece, out),
        }
    }

    /// Appends the tokens of some pieces, in any order, and says where those of each are.
    pub fn encode_all(&self, pieces: &[&[u8]], out: &mut Vec<Token>, places: &mut [(usize, usize)]) {
        let mut short = [0; BATCH];
        let (mut len, mut bytes) = (0, 0);
        for (i, (piece, place)) in pieces.iter().zip(&mut *places).enumerate() {
            let from = out.len();
            match self.whole(piece) {
                Some(token) => out.push(token),
                None if self.units.is_none() && piece.len() <= SHORT && len < BATCH => {
                    short[len] = i;
                    len += 1;
                    bytes += piece.len();
                }
                None => self.encode_parts(piece, out),
            }
            *place = (from, out.len());
        }
        let pairs = match &self.proof {
            Proof::Proved { entries, .. } => self.pairs(entries, bytes),
            _ => None,
        };
        let rule_of = |first: u8, second: u8| match pairs {
            Some(pairs) => pairs.rule(first, second),
            None => self.rules.find(self.byte_tokens[first as usize], self.byte_tokens[second as usize]),
        };
        let short = short[..len].iter().map(|&i| (i, pieces[i]));
        lanes::merge(short, &self.byte_tokens, rule_of, &self.rules, |i, tokens| {
            let from = out.len();
            out.extend(tokens);
            places[i] = (from, out.len());
        });
    }

    fn encode_parts(&self, piece: &[u8], out: &mut Vec<Token>) {
        if self.units.is_some() {
            return self.encode_units(piece, out);
        }
        if piece.len() <= SHORT {
            return merge::short(self.start(piece), &self.rules, out, |_| {});
        }
        match &self.proof {
            Proof::Proved { entries, out_of_order: None } => windows::encode(self, entries, piece, out),
            _ => merge::long(self.start(piece), &self.rules, out, |_| {}),
        }
    }

    /// What a piece starts as where it starts as its bytes.
    fn start<'a>(&'a self, piece: &'a [u8]) -> impl ExactSizeIterator<Item = Token> + 'a {
        piece.iter().map(|&byte| self.byte_tokens[byte as usize])
    }

    #[inline(never)]
    fn encode_units(&self, piece: &[u8], out: &mut Vec<Token>) {
        let Some(units) = &self.units else { return };
        let mut first = Vec::with_capacity(piece.len());
        units.push_first(&self.vocab, &self.byte_tokens, piece, &mut first);
        match first.len() <= SHORT {
            true => merge::short(first.into_iter(), &self.rules, out, |_| {}),
            false => merge::long(first.into_iter(), &self.rules, out, |_| {}),
        }
    }

    /// Appends the tokens of a piece of which some merges are passed over. None is looked up as a whole.
    pub fn encode_with_dropout(&self, piece: &[u8], dropout: &mut Dropout, queue: &mut Queue, out: &mut Vec<Token>) {
        let mut first = Vec::with_capacity(piece.len());
        match &self.units {
            Some(units) => units.push_first(&self.vocab, &self.byte_tokens, piece, &mut first),
            None => first.extend(self.start(piece)),
        }
        let rules = match &self.every_rule {
            EveryRule::Kept => &self.rules,
            EveryRule::Listed(pairs, made) => built(made, || {
                let merges = rules::merges(&self.vocab, pairs).unwrap_or_default(); // without an error, as before
                Rules::from_merges(&merges)
            }),
            EveryRule::Ranks(made) => built(made, || Rules::from_ranks(&self.vocab)),
        };
        queue.start(&first, rules);
        queue.merge_some(rules, dropout, true);
        out.extend(queue.tokens());
    }

    /// The bytes of text that `token` covers at `pos` in a piece, where it is not the last.
    #[inline]
    pub fn covers(&self, token: Token, piece: &[u8], pos: usize) -> usize {
        match &self.units {
            None => self.vocab.piece_len(token),
            Some(units) => units.covers(&self.vocab, token, piece, pos),
        }
    }

    /// What is known of all pairs of bytes, once so many were merged that it is worth it.
    fn pairs(&self, entries: &[Made], more: usize) -> Option<&Pairs> {
        if self.pairs.get().is_none() && self.merged.fetch_add(more, Ordering::Relaxed) < WORTH_PAIRS {
            return None;
        }
        Some(built(&self.pairs, || Pairs::new(&self.vocab, entries)))
    }

    /// The trie for longest matches, where these are quicker than merging, and once so much was merged that building it
    /// is worth it. A letter of several bytes takes several merges and one step; while long pieces of ASCII are mostly no
    /// language, but hashes and the like, in which the longest match is often wrong.
    fn matches(&self, bytes: &[u8]) -> Option<&Trie> {
        if !self.has_room || bytes.get(bytes.len() / 2).is_none_or(u8::is_ascii) {
            return None;
        }
        let has_trie = self.forward.get().is_some();
        let is_worth = has_trie || self.queued.fetch_add(bytes.len(), Ordering::Relaxed) >= WORTH_TRIE;
        is_worth.then(|| self.trie_of(Direction::Forward))
    }

    /// The entry that a piece is, where that is what it encodes to.
    #[inline]
    fn whole(&self, piece: &[u8]) -> Option<Token> {
        if !self.takes_whole() || piece.len() > self.longest {
            return None;
        }
        self.vocab.find(piece)
    }

    /// Whether a piece that is an entry is that entry.
    fn takes_whole(&self) -> bool {
        self.ignore_merges || matches!(self.proof, Proof::Proved { .. })
    }

    /// Where pieces can be cut in parts: not where one that is an entry is that entry, whatever its merges say.
    pub fn seams(&self) -> Option<&Seams> {
        let is_by_merges = !self.ignore_merges || matches!(self.proof, Proof::Proved { .. });
        (self.units.is_none() && is_by_merges).then(|| built(&self.seams, || Seams::new(&self.vocab)))
    }

    /// Token counts of a piece that grows at one end, where that is proved to be what encoding gives.
    pub fn counts(&self, direction: Direction) -> Option<Counts<'_>> {
        let is_proved = matches!(self.proof, Proof::Proved { out_of_order: None, .. });
        (is_proved && self.has_room).then(|| Counts::new(self, self.trie_of(direction)))
    }

    /// The length of the longest entry.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// All entries in a trie, if they are not too many, and if nothing but entries of known bytes can be given.
    pub fn trie(&self, direction: Direction) -> Option<Entries<'_>> {
        (self.has_room && self.units.is_none()).then(|| Entries::new(&self.vocab, self.trie_of(direction)))
    }

    fn trie_of(&self, direction: Direction) -> &Trie {
        let cell = match direction {
            Direction::Forward => &self.forward,
            Direction::Backward => &self.backward,
        };
        built(cell, || Trie::new(&self.vocab, direction))
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
        let mut rows = vec![
            row("piece that is an entry", whole, why_whole),
            row("short piece", "merged pair by pair", format!("at most {SHORT} bytes: a scan is fastest")),
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

/// Built when first needed, outside the lock: a process forked meanwhile must not wait for a thread it lacks.
fn built<T>(cell: &OnceLock<T>, build: impl FnOnce() -> T) -> &T {
    if let Some(built) = cell.get() {
        return built;
    }
    let built = build();
    cell.get_or_init(|| built)
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
