//! The stages before the model: text in, pieces and extra tokens out, each with the bytes of the original it covers.

mod cuts;
mod segment;

use std::sync::OnceLock;

use crate::chars::CharRule;
use crate::error::{Error, Result};
use crate::extra::{Extra, Extras, Policy};
use crate::letters::Letters;
use crate::lowercase::Lowercase;
use crate::normalize::Form;
use crate::sentencepiece::hf::{Alike, Rule};
use crate::sentencepiece::normalize::Normalizer;
use crate::split::cutter::{split_length, Cutter, Scripts};
use crate::split::digits::Digits;
use crate::split::ends::{self, Visit};
use crate::split::neighbours::Neighbours;
use crate::split::punctuation::Punctuation;
use crate::split::{Pattern, Scanner};
use crate::unicode::{check_version, class, old_class, OLD_PUNCTUATION, SPACE};
use crate::words::Separators;

pub use cuts::Normalized;
pub use segment::Segment;

/// A stage as `stages.py` describes it: its name and its settings.
pub type StageRow = Vec<String>;

pub struct Pipeline {
    stages: Vec<Stage>,
    splits: Vec<Splitter>,
    /// The splits, if all are scanners.
    scanners: Option<Vec<&'static Scanner>>,
    forms: Vec<Form>,
    /// Characters are changed one by one, as `Lowercase` does, which also looks at what is beside some.
    maps: bool,
    /// One of them looks at what is beside a character.
    looks_around: bool,
    /// Some are dropped, or get others beside them.
    drops_chars: bool,
    /// Nothing but the matching of tokens looks across white space or punctuation, or a Chinese character if those are set
    /// apart: so what stands between gives the same tokens wherever it stands.
    words_alone: Option<Alone>,
    /// Tokens are matched, then text rewritten, then normalized tokens matched, then a space put in front.
    is_orderly: bool,
    /// Nothing but tokens changes or cuts a text before it is split.
    only_matches: bool,
    /// What HF tokenizers' stages do, if SentencePiece's normalizer does it, too.
    alike: Option<Box<Alike>>,
    pub extras: Extras,
}

struct Alone {
    chinese: bool,
    /// Where words end beyond ASCII, once it was asked for.
    separators: OnceLock<Separators>,
    /// What the characters of words become.
    letters: Letters,
}

/// A stage that cuts text into pieces. Each cuts the pieces of the one before it.
enum Splitter {
    Digits(Digits),
    Punctuation(Punctuation),
    Pattern(Pattern),
    Neighbours(Neighbours),
    At(Cutter),
    Scripts(Scripts),
    /// Pieces of so many characters.
    Length(usize),
}

impl Splitter {
    /// A stage as `stages.py` describes it, if it is one of these.
    fn new(row: &[&str]) -> Result<Option<Self>> {
        Ok(Some(match *row {
            ["SplitPunctuation", version] => Self::Punctuation(Punctuation::new(version)?),
            ["Split", name, version] => {
                check_version(version)?;
                Self::Pattern(Pattern::scanner(name)?)
            }
            ["SplitRegex", regex, syntax, allow_backtracking, version, drops] => {
                check_version(version)?;
                Self::Pattern(Pattern::regex(regex, syntax, allow_backtracking == "true", drops == "true")?)
            }
            ["SplitAt", kind, pattern, behavior, invert, version] => {
                Self::At(Cutter::new(kind, pattern, behavior, invert == "true", version)?)
            }
            ["SplitScripts", version] => Self::Scripts(Scripts::new(version)?),
            ["SplitLength", length] => match length.parse() {
                Ok(length) if length > 0 => Self::Length(length),
                _ => return Err(Error::format(format!("a SplitLength stage of {length} characters"))),
            },
            ["Digits", grouping, version] => Self::Digits(Digits::new(grouping, version)?),
            _ => return Ok(None),
        }))
    }

    fn split(&self, text: &[u8], mut visit: impl FnMut(usize, usize) -> Result<()>) -> Result<()> {
        match self {
            Self::Digits(digits) => digits.split(text, visit),
            Self::Punctuation(punctuation) => punctuation.split(text, visit),
            Self::Pattern(pattern) => pattern.split(text, &mut visit),
            Self::Neighbours(neighbours) => neighbours.split(text, visit),
            Self::At(cutter) => cutter.split(text, visit),
            Self::Scripts(scripts) => scripts.split(text, visit),
            Self::Length(length) => split_length(*length, text, &mut visit),
        }
    }

    fn plan(&self) -> (String, String, String) {
        let row = |step: &str, how: String, why: &str| (step.to_owned(), how, why.to_owned());
        match self {
            Self::Digits(digits) => {
                let (how, why) = digits.plan();
                row("digits", how, why)
            }
            Self::Punctuation(_) => {
                row("split", "white space dropped, each punctuation mark alone".into(), "character by character")
            }
            Self::Pattern(pattern) => {
                let (how, why) = pattern.plan();
                row("split", how, &why)
            }
            Self::Neighbours(_) => row("split", "between bytes".into(), "that no entry has side by side"),
            Self::At(cutter) => {
                let (how, why) = cutter.plan();
                row("split", how, &why)
            }
            Self::Scripts(_) => row("split", "by scripts".into(), "character by character"),
            Self::Length(length) => row("split", format!("{length} characters each"), "character by character"),
        }
    }
}

enum Stage {
    /// A split that stands before a stage of another kind.
    Cut(Splitter),
    Match {
        normalized: bool,
    },
    Rewrite(Rewrite),
    PrefixSpace,
    /// SentencePiece's: it looks at the whole text, so nothing is known of parts of it.
    SentencePiece(Box<Normalizer>),
    /// Likewise.
    Hf(Rule),
}

/// A stage that changes characters.
#[derive(Clone, Copy)]
pub enum Rewrite {
    Normalize(Form),
    Lowercase(Lowercase),
    Chars(CharRule),
}

impl Rewrite {
    pub fn apply(&self, text: &str) -> String {
        match self {
            Self::Normalize(form) => form.apply(text),
            Self::Lowercase(lowercase) => lowercase.apply(text),
            Self::Chars(rule) => rule.apply(text),
        }
    }

    fn apply_segment<'t>(&self, segment: Segment<'t>) -> Segment<'t> {
        match self {
            Self::Normalize(form) => form.apply_segment(segment),
            Self::Lowercase(lowercase) => lowercase.apply_segment(segment),
            Self::Chars(rule) => rule.apply_segment(segment),
        }
    }
}

/// What the stages yield, in the order of the text.
pub enum Unit<'a, 't> {
    /// Some pieces of a segment, by where they start and end in its bytes.
    Pieces {
        segment: &'a Segment<'t>,
        bounds: &'a [(usize, usize)],
    },
    Extra {
        index: usize,
        span: (usize, usize),
    },
}

enum Item<'t> {
    Text(Segment<'t>),
    Extra { index: usize, span: (usize, usize) },
}

/// For stages of HF tokenizers between the two matchings of tokens.
fn alike(stages: &[Stage]) -> Option<Box<Alike>> {
    let is_match = |stage: &Stage, of: bool| matches!(stage, Stage::Match { normalized } if *normalized == of);
    let mut rest = stages.iter().skip_while(|stage| is_match(stage, false)).peekable();
    let mut rules = Vec::new();
    while let Some(Stage::Hf(rule)) = rest.next_if(|stage| matches!(stage, Stage::Hf(_))) {
        rules.push(rule);
    }
    if rest.all(|stage| is_match(stage, true)) {
        Alike::new(&rules).map(Box::new)
    } else {
        None
    }
}

/// Asked now and then whether to stop.
pub type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// How many pieces are handed on at once.
pub const BATCH: usize = 64;

/// How many bytes are worked on between two questions.
const STOP_EVERY: usize = 1 << 20;

/// Pieces on their way to be handed on.
struct Batch<F> {
    bounds: [(usize, usize); BATCH + ends::AT_LEAST],
    len: usize,
    visit: F,
}

impl<F: FnMut(&[(usize, usize)]) -> Result<()>> Batch<F> {
    fn new(visit: F) -> Self {
        Self { bounds: [(0, 0); BATCH + ends::AT_LEAST], len: 0, visit }
    }

    fn hand_on(&mut self) -> Result<()> {
        (self.visit)(&self.bounds[..std::mem::take(&mut self.len)])
    }
}

impl<F: FnMut(&[(usize, usize)]) -> Result<()>> Visit for Batch<F> {
    #[inline]
    fn piece(&mut self, start: usize, end: usize) -> Result<()> {
        if self.len == BATCH {
            self.hand_on()?;
        }
        self.bounds[self.len] = (start, end);
        self.len += 1;
        Ok(())
    }

    #[inline]
    fn pieces(&mut self, base: usize, bits: u64, start: usize) -> Result<usize> {
        let count = bits.count_ones() as usize;
        if self.len + count > BATCH {
            self.hand_on()?;
        }
        ends::put(base, bits, start, &mut self.bounds[self.len..]);
        self.len += count;
        Ok(if count == 0 { start } else { base + 63 - bits.leading_zeros() as usize })
    }
}

impl Pipeline {
    pub fn new(rows: &[StageRow], extras: Vec<Extra>) -> Result<Self> {
        let (mut stages, mut splits, mut rewrites) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            let row: Vec<&str> = row.iter().map(String::as_str).collect();
            if let Some(splitter) = Splitter::new(&row)? {
                splits.push(splitter);
                continue;
            }
            stages.extend(splits.drain(..).map(Stage::Cut));
            match row[..] {
                ["MatchTokens", normalized] => stages.push(Stage::Match { normalized: normalized == "true" }),
                ["Normalize", form, version] => {
                    rewrites.push(Rewrite::Normalize(Form::new(form, version)?));
                    stages.extend(rewrites.last().copied().map(Stage::Rewrite));
                }
                ["Lowercase", final_sigma, version] => {
                    rewrites.push(Rewrite::Lowercase(Lowercase::new(final_sigma == "true", version)?));
                    stages.extend(rewrites.last().copied().map(Stage::Rewrite));
                }
                [name @ ("CleanText" | "PadChinese" | "StripAccents"), ref version @ ..] => {
                    rewrites.push(Rewrite::Chars(CharRule::new(name, version.first().copied())?));
                    stages.extend(rewrites.last().copied().map(Stage::Rewrite));
                }
                ["PrefixSpace"] => stages.push(Stage::PrefixSpace),
                ["SentencePiece", rules, prefix, remove, escape, suffix, ref protected @ ..] => {
                    let flags = [prefix, remove, escape, suffix].map(|flag| flag == "true");
                    stages.push(Stage::SentencePiece(Box::new(Normalizer::new(rules, flags, protected)?)));
                }
                _ => match Rule::new(&row)? {
                    Some(rule) => stages.push(Stage::Hf(rule)),
                    None => return Err(Error::format(format!("unknown stage {row:?}"))),
                },
            }
        }
        if splits.is_empty() {
            splits.push(Splitter::Pattern(Pattern::scanner("none")?));
        }
        let order = |stage: &Stage| match stage {
            Stage::Match { normalized: false } => 0,
            Stage::Rewrite(_) => 1,
            Stage::Match { normalized: true } => 2,
            Stage::PrefixSpace => 3,
            Stage::SentencePiece(_) | Stage::Hf(_) | Stage::Cut(_) => 4,
        };
        let matters = |stage: &&Stage| !extras.is_empty() || !matches!(stage, Stage::Match { .. });
        let only_matches = stages.iter().all(|stage| matches!(stage, Stage::Match { .. }));
        let looks_far =
            stages.iter().any(|stage| matches!(stage, Stage::SentencePiece(_) | Stage::Hf(_) | Stage::Cut(_)));
        let is_orderly = !looks_far && stages.iter().filter(matters).map(order).is_sorted();
        let scanner = |splitter: &Splitter| match splitter {
            Splitter::Pattern(pattern) => pattern.as_scanner(),
            _ => None,
        };
        let lowercases = rewrites.iter().any(|rewrite| matches!(rewrite, Rewrite::Lowercase(_)));
        let drops_chars = rewrites.iter().any(|rewrite| matches!(rewrite, Rewrite::Chars(_)));
        let maps = lowercases || drops_chars;
        let looks_around =
            rewrites.iter().any(|rewrite| matches!(rewrite, Rewrite::Lowercase(it) if it.looks_around()));
        let forms = rewrites.iter().filter_map(|rewrite| match rewrite {
            Rewrite::Normalize(form) => Some(*form),
            Rewrite::Lowercase(_) | Rewrite::Chars(_) => None,
        });
        let forms = forms.collect();
        let scanners = if maps { None } else { splits.iter().map(scanner).collect() };
        let is_alone = |rewrite: &Rewrite| match rewrite {
            Rewrite::Normalize(form) => form.decomposes(),
            Rewrite::Lowercase(lowercase) => !lowercase.looks_around(),
            Rewrite::Chars(_) => true,
        };
        let has_space = stages.iter().any(|stage| matches!(stage, Stage::PrefixSpace));
        let is_cut = matches!(splits[..], [Splitter::Punctuation(_)]) && !has_space;
        let chinese = rewrites.iter().any(|rewrite| matches!(rewrite, Rewrite::Chars(CharRule::PadChinese)));
        let words_alone = (is_orderly && is_cut && rewrites.iter().all(is_alone)).then(|| Alone {
            chinese,
            separators: OnceLock::new(),
            letters: Letters::default(),
        });
        let alike = alike(&stages);
        let contents = extras.iter().map(|extra| content_of(extra, &stages)).collect::<Result<_>>()?;
        let extras = Extras::new(extras, contents)?;
        Ok(Self {
            stages,
            splits,
            scanners,
            is_orderly,
            only_matches,
            alike,
            extras,
            forms,
            maps,
            looks_around,
            drops_chars,
            words_alone,
        })
    }

    /// Cuts texts that nothing splits where `neighbours` says, as tokens are the same then.
    pub fn cut_between(&mut self, neighbours: Neighbours) {
        let is_whole = matches!(&self.splits[..], [Splitter::Pattern(pattern)] if !pattern.splits());
        if self.only_matches && is_whole {
            self.splits = vec![Splitter::Neighbours(neighbours)];
            self.scanners = None;
        }
    }

    /// Rows of what `plan()` shows: step, how, why.
    pub fn plan(&self) -> Vec<(String, String, String)> {
        let row = |step: &str, how: String, why: &str| (step.to_owned(), how, why.to_owned());
        let stage = |stage: &Stage| match stage {
            Stage::Cut(splitter) => splitter.plan(),
            Stage::Match { .. } => {
                row("extra tokens", "one automaton".into(), "the leftmost, and of these the longest")
            }
            Stage::Rewrite(Rewrite::Normalize(form)) => {
                row("normalize", form.to_string(), "cluster by cluster; ASCII is left alone")
            }
            Stage::Rewrite(Rewrite::Lowercase(lowercase)) => {
                row("lower case", lowercase.to_string(), "character by character")
            }
            Stage::Rewrite(Rewrite::Chars(rule)) => {
                let (step, how, why) = rule.plan();
                row(step, how, why)
            }
            Stage::PrefixSpace => row("prefix space", "added".into(), "where a text does not start with one"),
            Stage::SentencePiece(_) => {
                row("normalize", "as SentencePiece does".into(), "by the rules in the file, the longest first")
            }
            Stage::Hf(rule) => {
                let (step, how) = rule.plan();
                row(step, how.into(), "as HF tokenizers does")
            }
        };
        self.stages.iter().map(stage).chain(self.splits.iter().map(Splitter::plan)).collect()
    }

    /// Gives `visit` every piece and extra token of `text`. If the text `continues` other text, what is done at the
    /// start of a text is left out.
    pub fn run(
        &self,
        text: &[u8],
        policy: &Policy,
        continues: bool,
        stop: Stop<'_>,
        visit: impl FnMut(Unit<'_, '_>) -> Result<()>,
    ) -> Result<()> {
        if self.only_matches && !policy.takes_any() {
            return self.hand_on([Item::Text(Segment::plain(text, 0))], None, stop, visit);
        }
        self.hand_on(self.items(text, policy, continues)?, None, stop, visit)
    }

    /// Whether `run_words` does where no tokens are taken from normalized text.
    pub fn has_words_alone(&self) -> bool {
        self.words_alone.is_some()
    }

    /// SentencePiece's normalizer, or one that does what other stages do, if that is all that happens to a text but for
    /// the matching of tokens.
    pub fn normalizer(&self) -> Option<&Normalizer> {
        let is_cut = match &self.splits[..] {
            [Splitter::Pattern(pattern)] => pattern.splits() || pattern.drops(),
            _ => true,
        };
        if is_cut {
            return None;
        }
        let mut others = self.stages.iter().filter(|stage| !matches!(stage, Stage::Match { .. }));
        let is_first = |stage: &Stage| matches!(stage, Stage::SentencePiece(_) | Stage::Match { normalized: false });
        let mut after = self.stages.iter().skip_while(|stage| is_first(stage));
        match (others.next(), others.next()) {
            (Some(Stage::SentencePiece(normalizer)), None)
                if after.all(|stage| matches!(stage, Stage::Match { normalized: true })) =>
            {
                Some(normalizer)
            }
            _ => self.alike.as_ref().map(|alike| &alike.normalizer),
        }
    }

    /// Whether that normalizer is to take a segment for the start of a text.
    pub fn begins(&self, segment: &Segment<'_>, continues: bool) -> bool {
        match &self.alike {
            Some(alike) => alike.begins(segment, continues),
            None => segment.span(0, 0).0 > 0 || !continues,
        }
    }

    /// Gives `visit` a text as it stands, as one piece between the extra tokens, which are taken from it as it stands.
    pub fn run_raw(
        &self,
        text: &[u8],
        policy: &Policy,
        stop: Stop<'_>,
        visit: impl FnMut(Unit<'_, '_>) -> Result<()>,
    ) -> Result<()> {
        self.hand_on(self.raw_items(text, policy), None, stop, visit)
    }

    /// A text as it stands, cut at the extra tokens that are taken from it so.
    fn raw_items<'t>(&self, text: &'t [u8], policy: &Policy) -> Vec<Item<'t>> {
        let (segment, mut items) = (Segment::plain(text, 0), Vec::new());
        match self.stages.iter().any(|stage| matches!(stage, Stage::Match { normalized: false })) {
            true => self.cut_extras(segment, policy, false, &mut items),
            false => items.push(Item::Text(segment)),
        }
        items
    }

    /// Whether `run_words` does for this policy.
    pub fn takes_words_alone(&self, policy: &Policy) -> bool {
        self.words_alone.is_some() && !policy.takes_normalized()
    }

    /// Gives `visit` words and punctuation marks as they stand in the text, and the extra tokens between them. What
    /// `rewrite_word` makes of these, one after the other, are the pieces of the text.
    pub fn run_words(
        &self,
        text: &[u8],
        policy: &Policy,
        stop: Stop<'_>,
        visit: impl FnMut(Unit<'_, '_>) -> Result<()>,
    ) -> Result<()> {
        let separators = self.words_alone.as_ref().map(|alone| alone.separators.get_or_init(|| self.separators(alone)));
        self.hand_on(self.raw_items(text, policy), separators, stop, visit)
    }

    /// Gives `visit` the pieces that a word of `run_words` becomes.
    pub fn rewrite_word(&self, word: &[u8], mut visit: impl FnMut(&[u8])) {
        let one_piece = |piece: &[u8]| {
            if !piece.is_empty() {
                visit(piece);
            }
        };
        if self.words_alone.as_ref().is_some_and(|alone| alone.letters.apply(word, |c| self.letter(c), one_piece)) {
            return;
        }
        let bytes = self.rewritten(word, true);
        if let [Splitter::Punctuation(punctuation)] = &self.splits[..] {
            punctuation.each(&bytes, |start, end| visit(&bytes[start..end]));
        }
    }

    /// What a character becomes wherever it stands, if that is known.
    fn rewritten_alone(&self, c: char) -> Option<Vec<u8>> {
        let mut room = [0; 4];
        let mut segment = Segment::plain(c.encode_utf8(&mut room).as_bytes(), 0);
        for stage in &self.stages {
            match stage {
                Stage::Rewrite(Rewrite::Normalize(form)) if !form.starts_with_cluster(&segment.bytes) => return None,
                Stage::Rewrite(rewrite) => segment = rewrite.apply_segment(segment),
                _ => {}
            }
        }
        Some(segment.bytes.into_owned())
    }

    /// How many pieces there are of a letter, what a character becomes, and another letter; and whether the letters are
    /// pieces by themselves.
    fn pieces_between(&self, bytes: &[u8]) -> (usize, bool) {
        let (text, mut pieces) = ([b"a", bytes, b"a"].concat(), Vec::new());
        if let [Splitter::Punctuation(punctuation)] = &self.splits[..] {
            punctuation.each(&text, |start, end| pieces.push((start, end)));
        }
        let are_apart = pieces.first() == Some(&(0, 1)) && pieces.last() == Some(&(text.len() - 1, text.len()));
        (pieces.len(), are_apart)
    }

    /// What a character becomes, if that is known and is not cut from what stands beside it.
    fn letter(&self, c: char) -> Option<Vec<u8>> {
        self.rewritten_alone(c).filter(|bytes| self.pieces_between(bytes).0 == 1)
    }

    fn separators(&self, alone: &Alone) -> Separators {
        let mut made = Separators { chinese: alone.chinese, ..Separators::default() };
        for c in ('\u{80}'..='\u{ffff}').filter(|&c| {
            let c = u32::from(c);
            class(c) & SPACE != 0 || old_class(c) & OLD_PUNCTUATION != 0
        }) {
            match self.rewritten_alone(c).map(|bytes| self.pieces_between(&bytes)) {
                Some((2, true)) => made.spaces.add(c.into()),
                Some((_, true)) => made.alone.add(c.into()),
                _ => {}
            }
        }
        made
    }

    /// Gives `visit` the pieces of items, or their words as they stand there, and the extra tokens.
    fn hand_on<'t>(
        &self,
        items: impl IntoIterator<Item = Item<'t>>,
        separators: Option<&Separators>,
        stop: Stop<'_>,
        mut visit: impl FnMut(Unit<'_, '_>) -> Result<()>,
    ) -> Result<()> {
        let mut worked = 0;
        let each = |item: Item<'_>| {
            let segment = match item {
                Item::Extra { index, span } => return visit(Unit::Extra { index, span }),
                Item::Text(segment) => segment,
            };
            let mut done = 0;
            let mut batch = Batch::new(|bounds: &[(usize, usize)]| {
                let end = bounds.last().map_or(done, |&(_, end)| end);
                worked += end - done;
                done = end;
                if worked >= STOP_EVERY {
                    worked = 0;
                    if stop() {
                        return Err(Error::interrupted());
                    }
                }
                visit(Unit::Pieces { segment: &segment, bounds })
            });
            match separators {
                Some(separators) => separators.words(&segment.bytes, |start, end| batch.piece(start, end))?,
                None => self.split(&segment, &mut batch)?,
            }
            batch.hand_on()?;
            worked += segment.bytes.len() - done;
            Ok(())
        };
        items.into_iter().try_for_each(each)
    }

    fn items<'t>(&self, text: &'t [u8], policy: &Policy, continues: bool) -> Result<Vec<Item<'t>>> {
        let mut items = vec![Item::Text(Segment::plain(text, 0))];
        for stage in &self.stages {
            match stage {
                Stage::Match { normalized } => {
                    let mut out = Vec::with_capacity(items.len());
                    for item in items {
                        match item {
                            Item::Text(segment) => self.cut_extras(segment, policy, *normalized, &mut out),
                            extra => out.push(extra),
                        }
                    }
                    items = out;
                }
                Stage::Cut(splitter) => items = cut_texts(items, splitter)?,
                Stage::Rewrite(rewrite) => items = map_texts(items, |segment| rewrite.apply_segment(segment)),
                Stage::SentencePiece(normalizer) => {
                    items = map_texts(items, |segment| {
                        let begins = segment.span(0, 0).0 > 0 || !continues;
                        normalizer.apply_segment(segment, begins)
                    });
                }
                Stage::Hf(rule) => {
                    for item in &mut items {
                        if let Item::Text(segment) = item {
                            *segment = rule.apply_segment(std::mem::take(segment), continues)?;
                        }
                    }
                    items.retain(|item| !matches!(item, Item::Text(segment) if segment.bytes.is_empty()));
                }
                Stage::PrefixSpace => {
                    items = map_texts(items, |segment| match segment.span(0, 0).0 {
                        0 if continues => segment,
                        _ => segment.with_prefix_space(),
                    });
                }
            }
        }
        Ok(items)
    }

    fn cut_extras<'t>(&self, segment: Segment<'t>, policy: &Policy, normalized: bool, out: &mut Vec<Item<'t>>) {
        let found = policy.find(&self.extras, &segment.bytes, normalized);
        if found.is_empty() {
            out.push(Item::Text(segment));
            return;
        }
        let mut from = 0;
        for hit in found {
            if hit.start > from {
                out.push(Item::Text(segment.slice(from, hit.start)));
            }
            out.push(Item::Extra { index: hit.token, span: segment.span(hit.start, hit.end) });
            from = hit.end;
        }
        if from < segment.bytes.len() {
            out.push(Item::Text(segment.slice(from, segment.bytes.len())));
        }
    }

    #[inline]
    fn split(&self, segment: &Segment<'_>, visit: &mut impl Visit) -> Result<()> {
        if let [Splitter::Pattern(pattern)] = &self.splits[..] {
            return pattern.split(&segment.bytes, visit);
        }
        let mut each = |start, end| visit.piece(start, end);
        match &self.splits[..] {
            [Splitter::Punctuation(punctuation)] => punctuation.split(&segment.bytes, each),
            [Splitter::Neighbours(neighbours)] => neighbours.split(&segment.bytes, each),
            _ => split_again(&self.splits, &segment.bytes, 0, &mut each),
        }
    }
}

/// What a token is matched as: what the stages before the matching make of it, if it is taken from normalized text.
fn content_of(extra: &Extra, stages: &[Stage]) -> Result<Vec<u8>> {
    let Ok(text) = std::str::from_utf8(&extra.content) else { return Ok(extra.content.clone()) };
    let mut text = text.to_owned();
    let end = stages.iter().position(|stage| matches!(stage, Stage::Match { normalized: true })).unwrap_or(0);
    for stage in stages[..end].iter().filter(|_| extra.normalized) {
        text = match stage {
            Stage::Rewrite(rewrite) => rewrite.apply(&text),
            Stage::Hf(rule) if !text.is_empty() => rule.apply(&text)?,
            _ => text,
        };
    }
    Ok(text.into_bytes())
}

/// Splits by the first splitter, and each piece again with the others.
fn split_again(
    splitters: &[Splitter],
    bytes: &[u8],
    base: usize,
    visit: &mut dyn FnMut(usize, usize) -> Result<()>,
) -> Result<()> {
    let Some((splitter, rest)) = splitters.split_first() else { return visit(base, base + bytes.len()) };
    splitter.split(bytes, |from, to| split_again(rest, &bytes[from..to], base + from, visit))
}

fn cut_texts<'t>(items: Vec<Item<'t>>, splitter: &Splitter) -> Result<Vec<Item<'t>>> {
    let mut out = Vec::with_capacity(items.len());
    for item in items {
        match item {
            Item::Text(segment) => splitter.split(&segment.bytes, |from, to| {
                out.push(Item::Text(segment.slice(from, to)));
                Ok(())
            })?,
            extra => out.push(extra),
        }
    }
    Ok(out)
}

fn map_texts<'t>(items: Vec<Item<'t>>, change: impl Fn(Segment<'t>) -> Segment<'t>) -> Vec<Item<'t>> {
    items
        .into_iter()
        .map(|item| match item {
            Item::Text(segment) => Item::Text(change(segment)),
            extra => extra,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stages(rows: &[&[&str]]) -> Pipeline {
        let rows: Vec<StageRow> = rows.iter().map(|row| row.iter().map(|&field| field.to_owned()).collect()).collect();
        Pipeline::new(&rows, Vec::new()).expect("sound stages")
    }

    /// Each character of the first plane between letters, behind a mark, and before marks that combine, and texts of such
    /// characters: words one after the other become the pieces that the whole text becomes.
    #[test]
    fn words_become_what_the_text_becomes() {
        let (clean, pad, split): (&[&str], &[&str], &[&str]) =
            (&["CleanText", "8.0"], &["PadChinese"], &["SplitPunctuation", "8.0"]);
        let lowercase: &[&str] = &["Lowercase", "false", "17.0"];
        let strip: &[&str] = &["StripAccents", "8.0"];
        let decomposed = |form: &'static str| -> [&str; 3] { ["Normalize", form, crate::normalize::VERSION] };
        let pipelines = [
            stages(&[clean, pad, &decomposed("NFD"), strip, lowercase, split]),
            stages(&[clean, pad, split]),
            stages(&[&decomposed("NFKD"), lowercase, split]),
        ];
        let mut state = 1u64;
        let mut random = |below: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u32 % below
        };
        let marks = ['\u{301}', '\u{3099}', '\u{323}', '、', ' ', '漢'];
        let mut texts: Vec<String> =
            ('\0'..='\u{ffff}').map(|c| format!("a{c}b、{c}\u{301}{c}\u{3099}\u{323}漢{c}")).collect();
        for _ in 0..20_000 {
            let base = random(0xff00);
            let letter = |random: &mut dyn FnMut(u32) -> u32| match random(4) {
                0 => marks[random(6) as usize],
                _ => char::from_u32(base + random(0x100)).unwrap_or('Å'),
            };
            texts.push((0..random(30)).map(|_| letter(&mut random)).collect());
        }
        for pipeline in &pipelines {
            let policy = pipeline.extras.policy(|_| false, Vec::new()).expect("a policy");
            assert!(pipeline.takes_words_alone(&policy));
            for text in &texts {
                let (mut found, mut right) = (Vec::new(), Vec::new());
                let words = pipeline.run_words(text.as_bytes(), &policy, &|| false, |unit| {
                    if let Unit::Pieces { segment, bounds } = unit {
                        for &(start, end) in bounds {
                            pipeline.rewrite_word(&segment.bytes[start..end], |piece| found.push(piece.to_vec()));
                        }
                    }
                    Ok(())
                });
                let whole = pipeline.run(text.as_bytes(), &policy, false, &|| false, |unit| {
                    if let Unit::Pieces { segment, bounds } = unit {
                        right.extend(bounds.iter().map(|&(start, end)| segment.bytes[start..end].to_vec()));
                    }
                    Ok(())
                });
                assert!(words.is_ok() && whole.is_ok());
                assert_eq!(found, right, "{text:?}");
            }
        }
    }
}
