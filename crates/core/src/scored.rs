//! Models whose entries have scores, as SentencePiece and HF tokenizers have them: a unigram language model, merges by
//! score, or words or characters that are looked up; and what becomes of characters that are no entry: one unknown token
//! for a run of them, or their bytes.

use crate::error::{Error, Result};
use crate::random::Dropout;
use crate::sentencepiece::bpe::ScoreBpe;
use crate::sentencepiece::lookup::{Lookup, Unit};
use crate::sentencepiece::neighbours::Neighbours;
use crate::unigram::{Kind, Precision, Two, Unigram, UNKNOWN};
use crate::vocab::{Token, Vocab};

#[allow(clippy::large_enum_variant)] // there is one a tokenizer
pub enum Algorithm {
    Unigram(Unigram),
    Merges(ScoreBpe),
    Lookup(Lookup),
}

pub struct Scored {
    pub algorithm: Algorithm,
    unk: Token,
    /// Whether the unknown token can be spelled by text, as HF tokenizers has it.
    spells_unk: bool,
    /// The entries `<0x00>` … `<0xFF>`, where unknown characters become bytes.
    bytes: Option<Box<[Token; 256]>>,
    /// What an id adds to the sum of a text, of a unigram model whose sums rise slowly and whose ids have no large holes.
    score_of_id: Vec<f32>,
}

/// Room that parts share, one after the other.
#[derive(Default)]
pub struct Room {
    pub found: Vec<(Token, usize)>,
    ways: Vec<Two>,
}

/// Stands for a part that cannot be taken from a cache, which keeps ids of 29 bits. Larger than any id of a model with parts.
pub const UNSURE: u32 = (1 << 29) - 1;

/// The byte that an entry such as `<0x0A>` stands for.
pub fn byte_of(entry: &[u8]) -> Option<u8> {
    match entry {
        [b'<', b'0', b'x', high, low, b'>'] => {
            let digit = |byte: &u8| match byte {
                b'0'..=b'9' => Some(byte - b'0'),
                b'A'..=b'F' => Some(byte - b'A' + 10),
                _ => None,
            };
            Some(digit(high)? << 4 | digit(low)?)
        }
        _ => None,
    }
}

impl Scored {
    /// `scores` and `kinds` are those of the entries, in the order of the vocabulary; `unk` is an id, `merges` are pairs of
    /// ids.
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        algorithm: &str,
        vocab: Vocab,
        scores: &[f64],
        kinds: &[Kind],
        precision: Precision,
        unk: u32,
        merges: &[(u32, u32)],
        known: Option<&[Token]>,
    ) -> Result<Self> {
        if scores.len() != vocab.len() || kinds.len() != vocab.len() {
            let (scores, kinds, entries) = (scores.len(), kinds.len(), vocab.len());
            return Err(Error::format(format!("there are {scores} scores and {kinds} kinds for {entries} entries")));
        }
        let Some(unk) = vocab.token_of_id(unk) else {
            return Err(Error::format(format!("`unk`: no entry has the id {unk}")));
        };
        let mut bytes = Box::new([UNKNOWN; 256]);
        for token in (0..vocab.len() as Token).filter(|&token| kinds[token as usize] == Kind::Byte) {
            match byte_of(vocab.piece(token)) {
                Some(byte) => bytes[usize::from(byte)] = token,
                None => {
                    let entry = crate::vocab::show(vocab.piece(token));
                    return Err(Error::format(format!("{entry} is said to be a byte, but is none of <0x00> … <0xFF>")));
                }
            }
        }
        let lacking = bytes.iter().filter(|&&token| token == UNKNOWN).count();
        if lacking % 256 != 0 {
            return Err(Error::format(format!("{lacking} of the entries <0x00> … <0xFF> are missing")));
        }
        let mut made = Self {
            unk,
            spells_unk: precision == Precision::Float64,
            score_of_id: Vec::new(),
            bytes: (lacking == 0).then_some(bytes),
            algorithm: match algorithm {
                "unigram" => Algorithm::Unigram(Unigram::new(vocab, scores, kinds, precision)?),
                "merges" => Algorithm::Merges(ScoreBpe::new(vocab, scores, kinds, merges, known)?),
                "words" => Algorithm::Lookup(Lookup::new(vocab, kinds, Unit::Words)?),
                "characters" => Algorithm::Lookup(Lookup::new(vocab, kinds, Unit::Characters)?),
                _ => return Err(Error::format(format!("unknown algorithm {algorithm:?}"))),
            },
        };
        if let Algorithm::Unigram(model) = &made.algorithm {
            let most =
                (0..model.vocab.len() as Token).next_back().map_or(0, |token| model.vocab.id(token) as usize + 1);
            if most <= 2 * model.vocab.len() + 1024 && model.rises_slowly() {
                let mut scores = vec![0.0; most];
                for token in 0..model.vocab.len() as Token {
                    scores[model.vocab.id(token) as usize] = model.score(token) as f32;
                }
                scores[model.vocab.id(unk) as usize] = model.score(UNKNOWN) as f32;
                // An unknown character counts once, with its first byte.
                for (byte, &token) in made.bytes.iter().flat_map(|bytes| bytes.iter().enumerate()) {
                    let is_first = byte & 0xC0 != 0x80;
                    scores[model.vocab.id(token) as usize] = if is_first { model.score(UNKNOWN) as f32 } else { 0.0 };
                }
                made.score_of_id = scores;
            }
        }
        Ok(made)
    }

    /// What need not be found out again when the same model is made; `new` takes it as `known`.
    pub fn made(&self) -> Option<Vec<Token>> {
        match &self.algorithm {
            Algorithm::Merges(model) => model.made(),
            Algorithm::Unigram(_) | Algorithm::Lookup(_) => None,
        }
    }

    /// Whether `part_end` and `encode_part` can be used.
    pub fn has_parts(&self) -> bool {
        match &self.algorithm {
            Algorithm::Unigram(model) => !self.score_of_id.is_empty() && model.only_falls(),
            Algorithm::Merges(_) => self.bytes.is_some(),
            Algorithm::Lookup(_) => false,
        }
    }

    /// Whether texts can be encoded unit by unit.
    pub fn has_units(&self) -> bool {
        match &self.algorithm {
            Algorithm::Unigram(model) => !self.score_of_id.is_empty() && model.precision() == Precision::Float32,
            Algorithm::Merges(_) => true,
            Algorithm::Lookup(_) => false,
        }
    }

    /// Whether units are the same wherever they stand; else they may depend on the sum before them.
    pub fn is_summed(&self) -> bool {
        matches!(self.algorithm, Algorithm::Unigram(_))
    }

    /// How far a unit, normalized, may at most fall below what stands in front of it, at any place.
    pub fn deepest(&self, unit: &[u8]) -> f64 {
        match &self.algorithm {
            Algorithm::Unigram(model) => unit.len() as f64 * model.unk_score(),
            Algorithm::Merges(_) | Algorithm::Lookup(_) => 0.0,
        }
    }

    /// What each id adds to the sum of a text, if there is one.
    pub fn scores(&self) -> Option<&[f32]> {
        self.is_summed().then_some(&self.score_of_id)
    }

    /// Characters, by their bytes as a number, that some entry may have side by side. None where any may be.
    #[inline]
    pub fn neighbours(&self) -> Option<&Neighbours> {
        match &self.algorithm {
            Algorithm::Unigram(model) => Some(&model.neighbours),
            Algorithm::Merges(model) => Some(&model.neighbours),
            Algorithm::Lookup(_) => None,
        }
    }

    /// The id that stands for a run of unknown characters, if they have no bytes.
    pub fn run_of_unknown(&self) -> Option<u32> {
        self.bytes.is_none().then(|| self.vocab().id(self.unk))
    }

    /// Finds the tokens of a unit that stands behind a sum; what the sum is then.
    pub fn find_from(&self, unit: &[u8], sum: f32, found: &mut Vec<(Token, usize)>) -> f32 {
        match &self.algorithm {
            Algorithm::Unigram(model) => model.encode_from(unit, sum, found),
            Algorithm::Merges(model) => {
                model.encode(unit, found);
                sum
            }
            Algorithm::Lookup(_) => sum,
        }
    }

    /// Where the part of a piece ends that starts at a place.
    pub fn part_end(&self, piece: &[u8], start: usize) -> usize {
        match &self.algorithm {
            Algorithm::Unigram(model) => model.part_end(piece, start),
            Algorithm::Merges(model) => model.part_end(piece, start),
            Algorithm::Lookup(_) => piece.len(),
        }
    }

    /// Up to which sums the parts of a piece are looked up.
    pub fn bound(&self) -> f64 {
        match &self.algorithm {
            Algorithm::Unigram(model) => model.bound(),
            Algorithm::Merges(_) | Algorithm::Lookup(_) => 0.0,
        }
    }

    /// Appends the ids of a part: a token for each unknown character, or UNSURE if it depends on what is around, as far as
    /// sums are at most `bound`.
    pub fn encode_part(&self, part: &[u8], bound: f64, room: &mut Room, out: &mut Vec<u32>) {
        let Room { found, ways } = room;
        found.clear();
        let is_sure = match &self.algorithm {
            // The unknown token may be spelled in the text: then it is like unknown characters, and joins those beside it.
            Algorithm::Unigram(model) => {
                let is_sure = model.encode_part(part, bound, ways, found);
                is_sure && !(self.bytes.is_some() && found.iter().any(|&(token, _)| token == self.unk))
            }
            Algorithm::Merges(model) => {
                model.encode(part, found);
                true
            }
            Algorithm::Lookup(_) => false,
        };
        let mut start = 0;
        for &(token, end) in &*found {
            match &self.bytes {
                _ if !is_sure => {}
                _ if token != UNKNOWN => out.push(self.vocab().id(token)),
                Some(bytes) => {
                    out.extend(part[start..end].iter().map(|&byte| self.vocab().id(bytes[usize::from(byte)])))
                }
                None => out.push(self.vocab().id(self.unk)),
            }
            start = end;
        }
        if !is_sure {
            out.push(UNSURE);
        }
    }

    /// Makes the ids of all parts of a piece those of the piece.
    pub fn settle(&self, piece: &[u8], ids: &mut Vec<u32>) {
        let Algorithm::Unigram(model) = &self.algorithm else { return };
        let mut sum = 0.0;
        let is_sure = ids.iter().all(|&id| {
            sum += f64::from(self.score_of_id.get(id as usize).copied().unwrap_or_default());
            id != UNSURE
        });
        if !is_sure || sum.abs() >= model.bound() {
            ids.clear();
            self.encode(piece, |token, _| ids.push(self.vocab().id(token)));
        } else if self.bytes.is_none() {
            let unk = self.vocab().id(self.unk);
            ids.dedup_by(|a, b| *a == unk && *b == unk);
        }
    }

    pub fn vocab(&self) -> &Vocab {
        match &self.algorithm {
            Algorithm::Unigram(model) => &model.vocab,
            Algorithm::Merges(model) => &model.vocab,
            Algorithm::Lookup(model) => &model.vocab,
        }
    }

    pub fn unk(&self) -> Token {
        self.unk
    }

    /// Whether a token stands for one byte.
    pub fn byte(&self, token: Token) -> Option<u8> {
        let is_one = self.bytes.as_ref().is_some_and(|bytes| bytes.contains(&token));
        if is_one {
            byte_of(self.vocab().piece(token))
        } else {
            None
        }
    }

    /// Refuses text that is too long.
    pub fn check(&self, text: &[u8]) -> Result<()> {
        if text.len() >= 1 << 30 {
            return Err(Error::value(format!("a text of {} bytes is too long for this model: cut it", text.len())));
        }
        Ok(())
    }

    /// Tells `emit` the tokens of a piece, each with the byte at which it ends.
    pub fn encode(&self, piece: &[u8], mut emit: impl FnMut(Token, usize)) {
        let mut found = Vec::with_capacity(piece.len() / 2 + 1);
        match &self.algorithm {
            Algorithm::Unigram(model) => model.encode(piece, &mut found),
            Algorithm::Merges(model) => model.encode(piece, &mut found),
            Algorithm::Lookup(model) => model.encode(piece, &mut found),
        }
        self.resolve(piece, &found, &mut emit);
    }

    /// The same with some merges passed over.
    pub fn encode_with_dropout(
        &self,
        piece: &[u8],
        dropout: &mut Dropout,
        mut emit: impl FnMut(Token, usize),
    ) -> Result<()> {
        let Algorithm::Merges(model) = &self.algorithm else {
            return Err(Error::value("a unigram model merges nothing that dropout could pass over: give alpha"));
        };
        let mut found = Vec::with_capacity(piece.len() / 2 + 1);
        model.encode_with_dropout(piece, dropout, &mut found);
        self.resolve(piece, &found, &mut emit);
        Ok(())
    }

    /// The same of a segmentation in which characters may be unknown.
    pub fn resolve(&self, piece: &[u8], found: &[(Token, usize)], emit: &mut impl FnMut(Token, usize)) {
        let mut start = 0;
        let mut unknown: Option<(usize, usize)> = None;
        let flush = |unknown: &mut Option<(usize, usize)>, emit: &mut dyn FnMut(Token, usize)| {
            let Some((from, to)) = unknown.take() else { return };
            match &self.bytes {
                Some(bytes) if !self.spells_unk || &piece[from..to] != self.vocab().piece(self.unk) => {
                    (from..to).for_each(|at| emit(bytes[usize::from(piece[at])], at + 1));
                }
                _ => emit(self.unk, to),
            }
        };
        for &(token, end) in found {
            if token == UNKNOWN || token == self.unk {
                unknown = Some((unknown.map_or(start, |(from, _)| from), end));
            } else {
                flush(&mut unknown, emit);
                emit(token, end);
            }
            start = end;
        }
        flush(&mut unknown, emit);
    }

    /// The same of one token: an entry, a character that is unknown, or the bytes of one.
    pub fn resolve_one(
        &self,
        piece: &[u8],
        (start, end): (usize, usize),
        token: Token,
        emit: &mut impl FnMut(Token, usize),
    ) {
        match &self.bytes {
            _ if token != UNKNOWN => emit(token, end),
            Some(bytes) => (start..end).for_each(|at| emit(bytes[usize::from(piece[at])], at + 1)),
            None => emit(self.unk, end),
        }
    }

    /// The unigram model, for what only that can tell.
    pub fn unigram(&self) -> Result<&Unigram> {
        match &self.algorithm {
            Algorithm::Unigram(model) => Ok(model),
            Algorithm::Merges(_) | Algorithm::Lookup(_) => {
                Err(Error::value("only a unigram model gives probabilities to segmentations"))
            }
        }
    }

    /// Rows of what `plan()` shows: step, how, why.
    pub fn plan(&self) -> Vec<(String, String, String)> {
        let row = |step: &str, how: &str, why: &str| (step.to_owned(), how.to_owned(), why.to_owned());
        let (how, why) = match &self.algorithm {
            Algorithm::Unigram(model) => ("the best segmentation, in one pass (Viterbi)", model.precision_name()),
            Algorithm::Merges(_) => (
                "merged by score, cut first where no entry has the two characters",
                "nothing merges across such a place",
            ),
            Algorithm::Lookup(model) => model.plan(),
        };
        let unknown = match self.bytes {
            Some(_) => row("unknown characters", "become their bytes", "the model has an entry for each byte"),
            None => row("unknown characters", "one token for a run of them", "the model has no entries for bytes"),
        };
        vec![row("piece", how, why), unknown]
    }
}
