//! What turns a piece into tokens: one kind of model or another. The rest of the core knows only this.
//!
//! Every kind says what a piece is encoded to, and where in the piece each token ends. A kind that knows more of itself
//! (where pieces can be cut, what a piece that grows takes) says that, too; where nothing is known, every piece is taken
//! as a whole and every place is tried.
//!
//! To add a kind: a variant here, a row for it in each `match`, a constructor of `Model` in the binding, and a class in
//! `models.py`.

use crate::bpe::characters::CharacterBpe;
use crate::bpe::merge::Queue;
use crate::bpe::seams::Seams;
use crate::bpe::{Bpe, Counts, Direction, Entries};
use crate::error::{Error, Result};
use crate::longest::LongestMatch;
use crate::random::Dropout;
use crate::scored::Scored;
use crate::vocab::{Token, Vocab};
use crate::wordlevel::WordLevel;
use crate::wordpiece::WordPiece;

#[allow(clippy::large_enum_variant)] // there is one a tokenizer, and it stands behind an Arc
pub enum Model {
    Bpe(Bpe),
    Characters(CharacterBpe),
    WordPiece(WordPiece),
    Scored(Scored),
    WordLevel(WordLevel),
    LongestMatch(LongestMatch),
}

impl Model {
    pub fn vocab(&self) -> &Vocab {
        match self {
            Self::Bpe(bpe) => &bpe.vocab,
            Self::Characters(bpe) => &bpe.vocab,
            Self::WordPiece(wordpiece) => &wordpiece.vocab,
            Self::Scored(scored) => scored.vocab(),
            Self::WordLevel(words) => &words.vocab,
            Self::LongestMatch(longest) => &longest.vocab,
        }
    }

    fn bpe(&self) -> Option<&Bpe> {
        match self {
            Self::Bpe(bpe) => Some(bpe),
            Self::Characters(_) | Self::WordPiece(_) | Self::Scored(_) | Self::WordLevel(_) | Self::LongestMatch(_) => {
                None
            }
        }
    }

    /// Refuses text that cannot be encoded. All other functions rely on there being none.
    pub fn check(&self, text: &[u8]) -> Result<()> {
        match self {
            Self::Bpe(bpe) => bpe.check(text),
            Self::Characters(_) | Self::WordPiece(_) | Self::WordLevel(_) | Self::LongestMatch(_) => Ok(()),
            Self::Scored(scored) => scored.check(text),
        }
    }

    /// A hint that a piece will be encoded soon.
    #[inline]
    pub fn prepare(&self, piece: &[u8]) {
        if let Self::Bpe(bpe) = self {
            bpe.prepare(piece);
        }
    }

    /// Appends the tokens of a piece.
    #[inline]
    pub fn encode(&self, piece: &[u8], out: &mut Vec<Token>) {
        match self {
            Self::Bpe(bpe) => bpe.encode(piece, out),
            Self::Characters(bpe) => bpe.encode(piece, |token, _| out.push(token)),
            Self::WordPiece(wordpiece) => wordpiece.encode(piece, out),
            Self::Scored(scored) => scored.encode(piece, |token, _| out.push(token)),
            Self::WordLevel(words) => words.encode(piece, out),
            Self::LongestMatch(longest) => longest.encode(piece, out),
        }
    }

    /// Appends the tokens of a piece of which merges, or entries, are passed over at random.
    pub fn encode_with_dropout(
        &self,
        piece: &[u8],
        dropout: &mut Dropout,
        queue: &mut Queue,
        out: &mut Vec<Token>,
    ) -> Result<()> {
        match self {
            Self::Bpe(bpe) => bpe.encode_with_dropout(piece, dropout, queue, out),
            Self::WordPiece(wordpiece) => wordpiece.encode_with_dropout(piece, dropout, out),
            Self::Scored(scored) => return scored.encode_with_dropout(piece, dropout, |token, _| out.push(token)),
            Self::WordLevel(_) => return Err(Error::value("words are looked up: there is nothing to pass over")),
            Self::LongestMatch(_) => return Err(Error::value("nothing is merged: there is nothing to pass over")),
            Self::Characters(_) => {
                return Err(Error::value(
                    "a BPE with prefixes, byte fallback or fused unknown characters has no dropout",
                ))
            }
        }
        Ok(())
    }

    /// Appends the tokens of some pieces, in any order, and says where those of each are.
    pub fn encode_all(&self, pieces: &[&[u8]], out: &mut Vec<Token>, places: &mut [(usize, usize)]) {
        if let Self::Bpe(bpe) = self {
            return bpe.encode_all(pieces, out, places);
        }
        for (piece, place) in pieces.iter().zip(places) {
            let from = out.len();
            self.encode(piece, out);
            *place = (from, out.len());
        }
    }

    /// Appends the tokens of a piece and, for each, the place in the piece where it ends.
    pub fn encode_with_ends(&self, piece: &[u8], out: &mut Vec<Token>, ends: &mut Vec<usize>) {
        let mut both = |token, end| {
            out.push(token);
            ends.push(end);
        };
        match self {
            Self::Scored(scored) => return scored.encode(piece, both),
            Self::Characters(bpe) => return bpe.encode(piece, &mut both),
            _ => {}
        }
        let from = out.len();
        self.encode(piece, out);
        let mut end = 0;
        ends.extend(out[from..].iter().map(|&token| {
            end += match self {
                Self::Bpe(bpe) => bpe.covers(token, piece, end),
                Self::WordPiece(wordpiece) => wordpiece.covers(token, end),
                Self::Scored(_) | Self::Characters(_) => 0,
                Self::WordLevel(_) => piece.len(),
                Self::LongestMatch(longest) => longest.vocab.piece_len(token),
            };
            end
        }));
        // A marker behind the last, or what is unknown, has another length than what it stands for.
        if out.len() > from {
            ends.pop();
            ends.push(piece.len());
        }
    }

    /// Whether a piece may have no tokens.
    pub fn drops(&self) -> bool {
        matches!(self, Self::Characters(bpe) if bpe.drops())
    }

    /// The marker behind the entries that end a piece; empty where there is none.
    pub fn end_of_word(&self) -> &[u8] {
        match self {
            Self::Characters(bpe) => bpe.end_of_word(),
            _ => self.bpe().map_or(&[], Bpe::end_of_word),
        }
    }

    /// Where pieces can be cut in parts that are encoded by themselves, if that is known.
    pub fn seams(&self) -> Option<&Seams> {
        self.bpe().and_then(Bpe::seams)
    }

    /// Token counts of a piece that grows at one end, if they are known without encoding it anew.
    pub fn counts(&self, direction: Direction) -> Option<Counts<'_>> {
        self.bpe().and_then(|bpe| bpe.counts(direction))
    }

    /// All entries in a trie, if no token covers more of a text than the longest that starts there.
    pub fn trie(&self, direction: Direction) -> Option<Entries<'_>> {
        self.bpe().and_then(|bpe| bpe.trie(direction))
    }

    /// The most bytes of text that a token covers.
    pub fn longest(&self) -> usize {
        self.bpe().map_or(usize::MAX, Bpe::longest)
    }

    /// What need not be found out again when the same model is made: see `Bpe::made` and `ScoreBpe::made`.
    pub fn made(&self) -> Option<Vec<u32>> {
        match self {
            Self::Bpe(bpe) => bpe.made(),
            Self::Scored(scored) => scored.made(),
            _ => None,
        }
    }

    /// What the last merge of each entry joins; None where none does, or where the model has no merges.
    pub fn last_merges(&self) -> Vec<Option<(Token, Token)>> {
        match self {
            Self::Bpe(bpe) => bpe.last_merges(),
            Self::Characters(bpe) => bpe.last_merges(),
            _ => vec![None; self.vocab().len()],
        }
    }

    /// Rows of what `plan()` shows: step, how, why.
    pub fn plan(&self) -> Vec<(String, String, String)> {
        match self {
            Self::Bpe(bpe) => bpe.plan(),
            Self::Characters(bpe) => bpe.plan(),
            Self::WordPiece(wordpiece) => wordpiece.plan(),
            Self::Scored(scored) => scored.plan(),
            Self::WordLevel(words) => words.plan(),
            Self::LongestMatch(longest) => longest.plan(),
        }
    }
}
