//! WordPiece: a piece is cut into the longest entry that it starts with, then the longest that the rest starts with among
//! the entries that continue a word (which are spelled with a prefix, `##`), and so on. A piece that cannot be cut so to
//! its end, or that has too many characters, is the unknown token as a whole.
//!
//! Done by this definition, each cut may look at the whole rest and give most of it back. Here it is done in one pass
//! (X. Song et al. 2021, "Fast WordPiece Tokenization"): the entries stand in tries, and what a walk has read when it
//! cannot go on is known beforehand, so the tokens that it is cut into, and where the walk goes on, are noted at each node.

mod automaton;
pub mod learn;
pub mod words;

pub(crate) use automaton::Automaton;

use crate::error::{Error, Result};
use crate::unicode::char_count;
use crate::vocab::{show, Token, Vocab};

pub struct WordPiece {
    pub vocab: Vocab,
    prefix: Vec<u8>,
    unk: Token,
    /// Pieces of more characters are unknown.
    max_chars: usize,
    automaton: Automaton,
}

impl WordPiece {
    /// `prefix` is that of entries that continue a word, `unk` the id of the entry for what is unknown.
    pub fn new(vocab: Vocab, prefix: Vec<u8>, unk: u32, max_chars: usize) -> Result<Self> {
        let unk = vocab.token_of_id(unk).ok_or_else(|| Error::format(format!("`unk`: no entry has the id {unk}")))?;
        let automaton = Automaton::new(&vocab, &prefix, max_chars)?;
        Ok(Self { vocab, prefix, unk, max_chars, automaton })
    }

    /// Appends the tokens of a piece.
    pub fn encode(&self, piece: &[u8], out: &mut Vec<Token>) {
        if piece.is_empty() {
            return;
        }
        let from = out.len();
        let is_too_long = piece.len() > self.max_chars && char_count(piece) > self.max_chars;
        if is_too_long || !self.automaton.run(piece, out) {
            out.truncate(from);
            out.push(self.unk);
        }
    }

    /// The bytes of text that `token` covers at `at` in a piece, where it is not the last.
    pub fn covers(&self, token: Token, at: usize) -> usize {
        self.vocab.piece_len(token) - if at > 0 { self.prefix.len() } else { 0 }
    }

    /// Rows of what `plan()` shows: step, how, why.
    pub fn plan(&self) -> Vec<(String, String, String)> {
        let row = |step: &str, how: &str, why: String| (step.to_owned(), how.to_owned(), why);
        let nodes = self.automaton.len();
        vec![
            row(
                "piece",
                "the longest entry again and again, in one pass over its bytes",
                format!("{nodes} nodes of tries hold what each walk that ends there is cut into"),
            ),
            row(
                "piece that cannot be cut so",
                &format!("{} as a whole", show(self.vocab.piece(self.unk))),
                format!("the model says so; of one with more than {} characters, too", self.max_chars),
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;

    fn wordpiece(entries: &[String], max_chars: usize) -> WordPiece {
        let (mut data, mut offsets) = (Vec::new(), vec![0]);
        for entry in entries {
            data.extend_from_slice(entry.as_bytes());
            offsets.push(data.len() as u64);
        }
        let vocab = Vocab::new(data, &offsets, (0..entries.len() as u32).collect()).expect("a sound vocabulary");
        WordPiece::new(vocab, b"##".to_vec(), 0, max_chars).expect("a sound model")
    }

    /// The definition, word for word.
    fn greedy(model: &WordPiece, piece: &[u8]) -> Vec<Token> {
        let (mut tokens, mut at) = (Vec::new(), 0);
        if char_count(piece) > model.max_chars {
            return vec![model.unk];
        }
        while at < piece.len() {
            let spelled = |end: usize| [if at > 0 { &*model.prefix } else { &[] }, &piece[at..end]].concat();
            let found = (at + 1..=piece.len()).rev().find_map(|end| Some((end, model.vocab.find(&spelled(end))?)));
            let Some((end, token)) = found else { return vec![model.unk] };
            tokens.push(token);
            at = end;
        }
        tokens
    }

    #[test]
    fn one_pass_gives_what_the_definition_gives() {
        let mut state = 3u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        for round in 0..300 {
            let letters = ["a", "b", "é", "#", "中"];
            let kinds = 2 + random(letters.len() - 1);
            let mut word =
                |longest: usize| -> String { (0..1 + random(longest)).map(|_| letters[random(kinds)]).collect() };
            let mut entries = vec!["[UNK]".to_owned()];
            for at in 0..5 + 20 * (round % 3) {
                let entry = if at % 2 == 0 { word(6) } else { "##".to_owned() + &word(6) };
                if !entries.contains(&entry) {
                    entries.push(entry);
                }
            }
            let model = wordpiece(&entries, 12);
            let general = Model::WordPiece(wordpiece(&entries, 12));
            for _ in 0..200 {
                let mut piece = word(14).into_bytes();
                if piece.len() % 7 == 0 {
                    piece.pop();
                }
                let (mut tokens, mut ends) = (Vec::new(), Vec::new());
                general.encode_with_ends(&piece, &mut tokens, &mut ends);
                assert_eq!(tokens, greedy(&model, &piece), "{entries:?} {piece:?}");
                let mut at = 0;
                for (&token, &end) in tokens.iter().zip(&ends) {
                    let spelled = [if at > 0 { b"##" } else { &b""[..] }, &piece[at..end]].concat();
                    assert!(token == model.unk || model.vocab.piece(token) == spelled);
                    at = end;
                }
                assert_eq!((at, ends.len()), (piece.len(), tokens.len()));
            }
        }
    }
}
