//! SentencePiece's byte-pair encoding: a text starts as its characters, and of all neighbours that together spell an
//! entry those with the highest score merge, the leftmost of equals.
//!
//! A text is cut first, where no merge can reach across: between two characters that no entry has side by side.

use std::cell::Cell;

use super::neighbours::{characters, code, Neighbours};
use crate::bpe::merge::{short, Queue};
use crate::bpe::rules::{Rule, Rules};
use crate::bpe::SHORT;
use crate::error::{Error, Result};
use crate::hash::IntMap;
use crate::parallel::both;
use crate::random::Dropout;
use crate::unigram::trie::{Trie, NONE};
use crate::unigram::{char_len, Kind};
use crate::vocab::{show, Token, Vocab};

/// What a text of more bytes took is given back.
const MOST_KEPT: usize = 1 << 16;

/// A character that no entry has.
pub const UNKNOWN: Token = NONE;

pub struct ScoreBpe {
    pub vocab: Vocab,
    /// By symbols: tokens, and behind them the characters that are in entries but are none.
    rules: Rules,
    is_listed: bool,
    symbols: Symbols,
    /// The user-defined entries, which are taken first and never merge.
    frozen: Option<Trie>,
    /// Pairs of characters that some entry has side by side.
    pub neighbours: Neighbours,
}

impl ScoreBpe {
    /// `scores` and `kinds` are those of the entries, in the order of the vocabulary. With `pairs` of ids, only these
    /// merge, the first of them first; `known` is what `made` gave for the same model.
    pub fn new(
        vocab: Vocab,
        scores: &[f64],
        kinds: &[Kind],
        pairs: &[(u32, u32)],
        known: Option<&[Token]>,
    ) -> Result<Self> {
        let tokens = || 0..vocab.len() as Token;
        if scores.len() != vocab.len() || kinds.len() != vocab.len() {
            return Err(Error::format("there must be a score and a kind for each entry"));
        }
        let is_refused = |token: Token| kinds[token as usize] == Kind::Unused && vocab.piece(token) != b"\0";
        if let Some(token) = tokens().find(|&token| pairs.is_empty() && is_refused(token)) {
            let entry = show(vocab.piece(token));
            return Err(Error::format(format!(
                "{entry} is an unused piece; a model of merges with such pieces is not supported"
            )));
        }
        if let Some(token) = tokens().find(|&token| scores[token as usize].is_nan()) {
            return Err(Error::format(format!("the score of {} is not a number", show(vocab.piece(token)))));
        }
        let mut ordered: Vec<f64> = scores.to_vec();
        ordered.sort_unstable_by(|a, b| b.total_cmp(a));
        ordered.dedup();
        let rank = |token: Token| ordered.partition_point(|&score| score > scores[token as usize]) as u32;
        // What text can spell.
        let is_matched = |token: Token| matches!(kinds.get(token as usize), Some(Kind::Normal | Kind::UserDefined));
        let find = |piece: &[u8]| vocab.find(piece).filter(|&token| is_matched(token));
        // Characters are symbols, whether they are entries or not.
        let spell = || {
            let (mut symbols, mut neighbours) = (Symbols::default(), Neighbours::with_room(vocab.len()));
            let mut next = vocab.len() as Token;
            for token in tokens().filter(|&token| is_matched(token)) {
                let mut before = None;
                for character in characters(vocab.piece(token)) {
                    let code = code(character);
                    if symbols.get(code) == UNKNOWN {
                        let symbol = find(character).unwrap_or(next);
                        next += Token::from(symbol == next);
                        symbols.set(code, symbol);
                    }
                    if let Some(before) = before {
                        neighbours.add(before, code);
                    }
                    before = Some(code);
                }
            }
            (symbols, neighbours)
        };
        let list = || match pairs {
            [] => Ok(None),
            pairs => Rules::from_pairs(&vocab, pairs, known).map(Some),
        };
        let ((symbols, neighbours), listed) = both(spell, list);
        let symbol = |piece: &[u8]| match char_len(piece, 0) == piece.len() {
            true => Some(symbols.get(code(piece))).filter(|&symbol| symbol != UNKNOWN),
            false => find(piece),
        };
        let is_user_defined = |token: Token| kinds.get(token as usize) == Some(&Kind::UserDefined);
        let by_scores = || {
            let mut rules = Vec::new();
            for token in tokens().filter(|&token| is_matched(token)) {
                let piece = vocab.piece(token);
                let mut cut = 0;
                for character in characters(piece) {
                    cut += character.len();
                    if cut == piece.len() {
                        break;
                    }
                    let (left, right) = piece.split_at(cut);
                    if let (Some(left), Some(right)) = (symbol(left), symbol(right)) {
                        if ![left, right].into_iter().any(is_user_defined) {
                            rules.push((left, right, Rule { rank: rank(token), token }));
                        }
                    }
                }
            }
            Rules::from_merges(&rules)
        };
        let mut frozen: Vec<(&[u8], Token)> =
            tokens().filter(|&token| is_user_defined(token)).map(|token| (vocab.piece(token), token)).collect();
        frozen.sort_unstable();
        Ok(Self {
            is_listed: !pairs.is_empty(),
            rules: listed?.unwrap_or_else(by_scores),
            symbols,
            frozen: if frozen.is_empty() { None } else { Some(Trie::new(&frozen)?) },
            neighbours,
            vocab,
        })
    }

    /// What need not be found out again: what each merge of the list makes, if there is a list.
    pub fn made(&self) -> Option<Vec<Token>> {
        self.is_listed.then(|| self.rules.made())
    }

    /// Appends the tokens of `text`, each with the byte at which it ends. UNKNOWN stands for one character that is no
    /// entry.
    pub fn encode(&self, text: &[u8], out: &mut Vec<(Token, usize)>) {
        thread_local!(static KEPT: Cell<Option<Box<Scratch>>> = const { Cell::new(None) });
        let mut kept = KEPT.take().unwrap_or_default();
        let scratch = &mut *kept;
        let mut start = 0;
        while start < text.len() {
            let end = match self.frozen_at(text, start) {
                Some((end, token)) => {
                    out.push((token, end));
                    end
                }
                None => {
                    let end = self.next_cut(text, start);
                    self.encode_part(&text[start..end], start, scratch, out);
                    end
                }
            };
            start = end;
        }
        KEPT.set(Some(kept).filter(|_| text.len() <= MOST_KEPT));
    }

    /// Where the part that starts at a place ends, which is encoded by itself.
    pub fn part_end(&self, text: &[u8], start: usize) -> usize {
        match self.frozen_at(text, start) {
            Some((end, _)) => end,
            None => self.next_cut(text, start),
        }
    }

    /// The longest user-defined entry that starts at a place: where it ends, and its token.
    fn frozen_at(&self, text: &[u8], at: usize) -> Option<(usize, Token)> {
        let mut found = None;
        self.frozen.as_ref()?.prefixes(&text[at..], |len, token| found = Some((at + len, token)));
        found
    }

    /// The first place behind `start`, where no user-defined entry is, that no merge reaches across.
    pub fn next_cut(&self, text: &[u8], start: usize) -> usize {
        let mut at = start + char_len(text, start);
        let mut before = code(&text[start..at]);
        while at < text.len() && self.frozen_at(text, at).is_none() {
            let end = at + char_len(text, at);
            let next = code(&text[at..end]);
            if !self.neighbours.may_have(before, next) {
                break;
            }
            (before, at) = (next, end);
        }
        at
    }

    /// Appends the tokens of a part without user-defined entries, which stands at `start`.
    fn encode_part(&self, text: &[u8], start: usize, scratch: &mut Scratch, out: &mut Vec<(Token, usize)>) {
        let Scratch { symbols, tokens, queue } = scratch;
        symbols.clear();
        symbols.extend(characters(text).map(|character| self.symbol(character)));
        tokens.clear();
        if symbols.len() <= SHORT {
            short(symbols.iter().copied(), &self.rules, tokens, |_| {});
        } else {
            queue.start(symbols, &self.rules);
            queue.merge(&self.rules, |_| {});
            tokens.extend(queue.tokens());
        }
        let mut at = 0;
        for &mut token in tokens {
            let (token, end) = self.entry(token, text, at);
            out.push((token, start + end));
            at = end;
        }
    }

    #[inline]
    fn symbol(&self, character: &[u8]) -> Token {
        self.symbols.get(code(character))
    }

    /// What a symbol is that stands at a place of a text, and where it ends.
    fn entry(&self, symbol: Token, text: &[u8], at: usize) -> (Token, usize) {
        match (symbol as usize) < self.vocab.len() {
            true => (symbol, at + self.vocab.piece_len(symbol)),
            false => (UNKNOWN, at + char_len(text, at)),
        }
    }

    /// The same with some merges passed over, each once, as in SentencePiece: those of the whole text in their order, which
    /// is the order in which random numbers are taken. User-defined entries stay whole.
    pub fn encode_with_dropout(&self, text: &[u8], dropout: &mut Dropout, out: &mut Vec<(Token, usize)>) {
        let (mut symbols, mut frozen, mut at) = (Vec::with_capacity(text.len()), Vec::new(), 0);
        while at < text.len() {
            // Nothing merges with what is unknown.
            let (symbol, end) = match self.frozen_at(text, at) {
                Some((end, token)) => {
                    frozen.push((at, (token, end)));
                    (UNKNOWN, end)
                }
                None => {
                    let end = at + char_len(text, at);
                    (self.symbol(&text[at..end]), end)
                }
            };
            symbols.push(symbol);
            at = end;
        }
        let mut queue = Queue::default();
        queue.start(&symbols, &self.rules);
        queue.merge_some(&self.rules, dropout, false);
        let (mut frozen, mut at) = (frozen.into_iter().peekable(), 0);
        for symbol in queue.tokens() {
            let found = match frozen.next_if(|&(start, _)| start == at) {
                Some((_, found)) => found,
                None => self.entry(symbol, text, at),
            };
            out.push(found);
            at = found.1;
        }
    }
}

/// What characters are, by their bytes as a number; `UNKNOWN` where no entry has them.
struct Symbols {
    /// Those up to U+FFFF, in the order of Unicode.
    near: Vec<Token>,
    /// The others, and what is no character.
    far: IntMap<u64, Token>,
}

impl Default for Symbols {
    fn default() -> Self {
        Self { near: vec![UNKNOWN; 1 << 16], far: IntMap::default() }
    }
}

impl Symbols {
    #[inline]
    fn get(&self, code: u32) -> Token {
        match Self::near(code) {
            Some(at) => self.near[at],
            None => self.far.get(&code.into()).copied().unwrap_or(UNKNOWN),
        }
    }

    fn set(&mut self, code: u32, symbol: Token) {
        match Self::near(code) {
            Some(at) => self.near[at] = symbol,
            None => _ = self.far.insert(code.into(), symbol),
        }
    }

    /// The place in `near` of a well-formed character.
    #[inline]
    fn near(code: u32) -> Option<usize> {
        let [_, first, second, third] = code.to_be_bytes().map(usize::from);
        let (at, least) = match code {
            0..=0x7f => return Some(third),
            _ if code & 0xffff_e0c0 == 0xc080 => ((second & 0x1f) << 6 | third & 0x3f, 0x80),
            _ if code & 0xfff0_c0c0 == 0xe0_8080 => ((first & 0xf) << 12 | (second & 0x3f) << 6 | third & 0x3f, 0x800),
            _ => return None,
        };
        (at >= least).then_some(at)
    }
}

/// Room that texts share, one after the other.
#[derive(Default)]
struct Scratch {
    symbols: Vec<Token>,
    tokens: Vec<Token>,
    queue: Queue,
}
