//! The stages before the model: text in, pieces and extra tokens out, each with the bytes of the original it covers.

use std::borrow::Cow;

use crate::error::{Error, Result};
use crate::extra::{Extra, Extras, Policy};
use crate::lowercase::Lowercase;
use crate::normalize::Form;
use crate::split::digits::{Digits, Place};
use crate::split::Pattern;
use crate::unicode::check_version;

/// A stage as `spec.py` describes it: its name and its settings.
pub type StageRow = Vec<String>;

pub struct Pipeline {
    stages: Vec<Stage>,
    splits: Vec<Splitter>,
    pub extras: Extras,
}

/// A stage that cuts text into pieces. Each cuts the pieces of the one before it.
enum Splitter {
    Digits(Digits),
    Pattern(Pattern),
}

enum Stage {
    Match { normalized: bool },
    Rewrite(Rewrite),
    PrefixSpace,
}

/// A stage that changes characters.
#[derive(Clone, Copy)]
pub enum Rewrite {
    Normalize(Form),
    Lowercase(Lowercase),
}

impl Rewrite {
    pub fn apply(&self, text: &str) -> String {
        match self {
            Self::Normalize(form) => form.apply(text),
            Self::Lowercase(lowercase) => lowercase.apply(text),
        }
    }

    fn apply_segment<'t>(&self, segment: Segment<'t>) -> Segment<'t> {
        match self {
            Self::Normalize(form) => form.apply_segment(segment),
            Self::Lowercase(lowercase) => lowercase.apply_segment(segment),
        }
    }

    /// Whether what stands on one side of `at` is surely rewritten alike without the other side.
    fn is_cut(&self, text: &[u8], at: usize) -> bool {
        let (before, after) = (text[at - 1], text[at]);
        match self {
            Self::Normalize(_) => before.is_ascii() && after.is_ascii(),
            // A sigma looks far, but never across white space.
            Self::Lowercase(_) => before.is_ascii_whitespace() || after.is_ascii_whitespace(),
        }
    }
}

/// A stretch of text on its way through the stages, with an alignment to the original.
#[derive(Clone)]
pub struct Segment<'t> {
    pub bytes: Cow<'t, [u8]>,
    source: Source,
}

#[derive(Clone)]
enum Source {
    /// The bytes of the original from here on.
    Plain(usize),
    /// For each byte the span of the original that it stands for.
    Mapped(Vec<(usize, usize)>),
}

impl<'t> Segment<'t> {
    pub fn plain(bytes: &'t [u8], start: usize) -> Self {
        Self { bytes: Cow::Borrowed(bytes), source: Source::Plain(start) }
    }

    pub fn mapped(bytes: Vec<u8>, spans: Vec<(usize, usize)>) -> Self {
        Self { bytes: Cow::Owned(bytes), source: Source::Mapped(spans) }
    }

    /// The span of the original that the bytes `from..to` stand for.
    #[inline]
    pub fn span(&self, from: usize, to: usize) -> (usize, usize) {
        match &self.source {
            Source::Plain(start) => (start + from, start + to),
            Source::Mapped(spans) if from < to => (spans[from].0, spans[to - 1].1),
            Source::Mapped(spans) => {
                let at = spans.get(from).map_or_else(|| spans.last().map_or(0, |span| span.1), |span| span.0);
                (at, at)
            }
        }
    }

    /// The same with other bytes, as many, each for the one it replaces.
    pub fn with_bytes(self, bytes: Vec<u8>) -> Self {
        Self { bytes: Cow::Owned(bytes), ..self }
    }

    fn slice(&self, from: usize, to: usize) -> Self {
        let source = match &self.source {
            Source::Plain(start) => Source::Plain(start + from),
            Source::Mapped(spans) => Source::Mapped(spans[from..to].to_vec()),
        };
        let bytes = match &self.bytes {
            Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[from..to]),
            Cow::Owned(bytes) => Cow::Owned(bytes[from..to].to_vec()),
        };
        Self { bytes, source }
    }

    fn with_prefix_space(self) -> Self {
        if self.bytes.is_empty() || self.bytes[0] == b' ' {
            return self;
        }
        let len = self.bytes.len();
        let at = self.span(0, 0);
        let spans = std::iter::once(at).chain((0..len).map(|i| self.span(i, i + 1))).collect();
        Self::mapped([b" ", &*self.bytes].concat(), spans)
    }
}

/// What the stages yield, in the order of the text.
pub enum Unit<'a, 't> {
    Piece { segment: &'a Segment<'t>, start: usize, end: usize },
    Extra { index: usize, span: (usize, usize) },
}

enum Item<'t> {
    Text(Segment<'t>),
    Extra { index: usize, span: (usize, usize) },
}

/// Asked now and then whether to stop.
pub type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// How many bytes are worked on between two questions.
const STOP_EVERY: usize = 1 << 20;

impl Pipeline {
    pub fn new(rows: &[StageRow], extras: Vec<Extra>) -> Result<Self> {
        let (mut stages, mut splits, mut rewrites) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            let row: Vec<&str> = row.iter().map(String::as_str).collect();
            if !splits.is_empty() && !matches!(row.first(), Some(&("Digits" | "Split" | "SplitRegex"))) {
                return Err(Error::format(format!("the stage {} stands after a Split stage", row.join(" "))));
            }
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
                ["PrefixSpace"] => stages.push(Stage::PrefixSpace),
                ["Split", name, version] => {
                    check_version(version)?;
                    splits.push(Splitter::Pattern(Pattern::scanner(name)?));
                }
                ["SplitRegex", regex, syntax, allow_backtracking, version, drops] => {
                    check_version(version)?;
                    let pattern = Pattern::regex(regex, syntax, allow_backtracking == "true", drops == "true")?;
                    splits.push(Splitter::Pattern(pattern));
                }
                ["Digits", grouping, version] => splits.push(Splitter::Digits(Digits::new(grouping, version)?)),
                _ => return Err(Error::format(format!("unknown stage {row:?}"))),
            }
        }
        if splits.is_empty() {
            splits.push(Splitter::Pattern(Pattern::scanner("none")?));
        }
        Ok(Self { stages, splits, extras: Extras::new(extras, rewrites)? })
    }

    /// Rows of what `plan()` shows: step, how, why.
    pub fn plan(&self) -> Vec<(String, String, String)> {
        let row = |step: &str, how: String, why: &str| (step.to_owned(), how, why.to_owned());
        let stage = |stage: &Stage| match stage {
            Stage::Match { .. } => {
                row("extra tokens", "one automaton".into(), "the leftmost, and of these the longest")
            }
            Stage::Rewrite(Rewrite::Normalize(form)) => {
                row("normalize", form.to_string(), "cluster by cluster; ASCII is left alone")
            }
            Stage::Rewrite(Rewrite::Lowercase(lowercase)) => {
                row("lower case", lowercase.to_string(), "character by character")
            }
            Stage::PrefixSpace => row("prefix space", "added".into(), "where a text does not start with one"),
        };
        let split = |splitter: &Splitter| match splitter {
            Splitter::Digits(digits) => {
                let (how, why) = digits.plan();
                row("digits", how, why)
            }
            Splitter::Pattern(pattern) => {
                let (how, why) = pattern.plan();
                row("split", how, &why)
            }
        };
        self.stages.iter().map(stage).chain(self.splits.iter().map(split)).collect()
    }

    /// Gives `visit` every piece and extra token of `text`. If the text `continues` other text, what is done at the
    /// start of a text is left out.
    pub fn run(
        &self,
        text: &[u8],
        policy: &Policy,
        continues: bool,
        stop: Stop<'_>,
        mut visit: impl FnMut(Unit<'_, '_>) -> Result<()>,
    ) -> Result<()> {
        let mut worked = 0;
        for item in self.items(text, policy, continues) {
            match item {
                Item::Extra { index, span } => visit(Unit::Extra { index, span })?,
                Item::Text(segment) => self.split(&segment, &mut |start, end| {
                    worked += end - start;
                    if worked >= STOP_EVERY {
                        worked = 0;
                        if stop() {
                            return Err(Error::interrupted());
                        }
                    }
                    visit(Unit::Piece { segment: &segment, start, end })
                })?,
            }
        }
        Ok(())
    }

    fn items<'t>(&self, text: &'t [u8], policy: &Policy, continues: bool) -> Vec<Item<'t>> {
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
                Stage::Rewrite(rewrite) => items = map_texts(items, |segment| rewrite.apply_segment(segment)),
                Stage::PrefixSpace => {
                    items = map_texts(items, |segment| match segment.span(0, 0).0 {
                        0 if continues => segment,
                        _ => segment.with_prefix_space(),
                    });
                }
            }
        }
        items
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

    fn split(&self, segment: &Segment<'_>, visit: &mut dyn FnMut(usize, usize) -> Result<()>) -> Result<()> {
        if let [Splitter::Pattern(pattern)] = &self.splits[..] {
            return pattern.split(&segment.bytes, visit);
        }
        split_again(&self.splits, &segment.bytes, 0, visit)
    }

    /// Whether `at` is a boundary between pieces whatever stands in front of it and whatever comes after, so that the
    /// text can be worked on from there as if it started (and up to there as if it ended). Not every such place is
    /// known; in ordinary text there is one every word or so.
    pub fn is_cut(&self, text: &[u8], at: usize, policy: &Policy) -> bool {
        let unchanged = |stage: &Stage| !matches!(stage, Stage::Rewrite(rewrite) if !rewrite.is_cut(text, at));
        self.stages.iter().all(unchanged) && self.splits_at(text, at) && !policy.covers(text, at)
    }

    /// Whether the splitters have a boundary at `at`. What one says counts only where all before it would cut the two
    /// sides as they cut the whole.
    fn splits_at(&self, text: &[u8], at: usize) -> bool {
        for splitter in &self.splits {
            match splitter {
                Splitter::Digits(digits) => match digits.place(text, at) {
                    Place::Boundary => return true,
                    Place::InRun => return false,
                    Place::Outside => {}
                },
                Splitter::Pattern(pattern) if pattern.cut(text, at) => return true,
                Splitter::Pattern(pattern) if pattern.splits() && !pattern.ignores(text, at) => return false,
                Splitter::Pattern(_) => {}
            }
        }
        false
    }

    /// Whether `is_cut` may be relied on: extra tokens that look at what stands beside them, or that are taken from
    /// text that was rewritten, rule it out.
    pub fn has_cuts(&self) -> bool {
        let mut rewritten = self.stages.iter().skip_while(|stage| !matches!(stage, Stage::Rewrite(_)));
        self.extras.are_plain() && !rewritten.any(|stage| matches!(stage, Stage::Match { .. }))
    }

    /// The scanner, where pieces are stretches of the original text cut by just that.
    pub fn only_pattern(&self) -> Option<&Pattern> {
        match (&self.stages[..], &self.splits[..]) {
            ([] | [Stage::Match { normalized: false }], [Splitter::Pattern(pattern)]) if pattern.is_scanner() => {
                Some(pattern)
            }
            _ => None,
        }
    }
}

/// Splits by the first splitter, and each piece again with the others.
fn split_again(
    splitters: &[Splitter],
    bytes: &[u8],
    base: usize,
    visit: &mut dyn FnMut(usize, usize) -> Result<()>,
) -> Result<()> {
    let Some((splitter, rest)) = splitters.split_first() else { return visit(base, base + bytes.len()) };
    let again = |from: usize, to: usize| split_again(rest, &bytes[from..to], base + from, visit);
    match splitter {
        Splitter::Digits(digits) => digits.split(bytes, again),
        Splitter::Pattern(pattern) => pattern.split(bytes, again),
    }
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
