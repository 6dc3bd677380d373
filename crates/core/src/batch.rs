//! Batches: many texts, and long ones, on several threads.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::extra::Policy;
use crate::memory::ask_for_huge_pages;
use crate::parallel::{as_they_come, job_size, jobs_of, work_on, Job};
use crate::pipeline::Stop;
use crate::unicode::is_start;

/// The texts of a batch, as whoever calls has them. Those that are not bytes are made bytes a few at a time, while other
/// threads work on those before them.
pub trait Texts: Sync {
    fn len(&self) -> usize;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of a text, if they are there.
    fn bytes(&self, text: usize) -> Option<&[u8]>;

    /// How many bytes a text has, or about how many, if they are not there.
    fn size(&self, text: usize) -> usize;

    /// Appends the bytes of these texts, which are not there, to `made`, and to `ends` where those of each end. Called
    /// on the thread that began the batch only.
    fn make(&self, texts: &[usize], made: &mut Vec<u8>, ends: &mut Vec<usize>) -> Result<()>;
}

impl Texts for &[&[u8]] {
    fn len(&self) -> usize {
        <[_]>::len(self)
    }

    fn bytes(&self, text: usize) -> Option<&[u8]> {
        Some(self[text])
    }

    fn size(&self, text: usize) -> usize {
        self[text].len()
    }

    fn make(&self, _: &[usize], _: &mut Vec<u8>, _: &mut Vec<usize>) -> Result<()> {
        Ok(())
    }
}

/// Some texts that stand one after the other in a batch, as bytes.
struct Wave<'t> {
    /// The number of the first.
    first: usize,
    texts: Vec<Content<'t>>,
    made: Vec<u8>,
}

enum Content<'t> {
    There(&'t [u8]),
    Made(Range<usize>),
}

impl Wave<'_> {
    fn text(&self, index: usize) -> &[u8] {
        match &self.texts[index] {
            Content::There(text) => text,
            Content::Made(range) => &self.made[range.clone()],
        }
    }
}

/// About so many bytes are a wave: more than it costs to make one, and few enough that it stays in the cache.
const WAVE: usize = 1 << 20;

/// How a batch is shared out: the size of its waves, that of the jobs of a wave, and who does them.
#[derive(Debug, Clone, Copy)]
struct Shares {
    wave: usize,
    job: usize,
    workers: usize,
}

/// Gives the waves of a batch, one after the other.
struct Waves<'t> {
    texts: &'t dyn Texts,
    next: usize,
    size: usize,
    /// Room for the next one.
    made: Vec<u8>,
    /// What all texts are by their sizes, what those before `next` are, and what these have turned out to be.
    all: usize,
    sizes: usize,
    bytes: usize,
    /// About how many bytes the whole batch has.
    total: &'t AtomicUsize,
}

impl<'t> Waves<'t> {
    fn next(&mut self) -> Result<Option<Wave<'t>>> {
        let mut wave = Wave { first: self.next, texts: Vec::new(), made: std::mem::take(&mut self.made) };
        wave.made.clear();
        let (mut absent, mut to_make, mut room) = (Vec::new(), 0, self.size);
        while self.next < self.texts.len() && room > 0 {
            let size = self.texts.size(self.next);
            room = room.saturating_sub(work_on(size));
            self.sizes += work_on(size);
            wave.texts.push(match self.texts.bytes(self.next) {
                Some(text) => Content::There(text),
                None => {
                    absent.push(self.next);
                    to_make += size;
                    Content::Made(0..0)
                }
            });
            self.next += 1;
        }
        if !absent.is_empty() {
            let (mut ends, mut start) = (Vec::with_capacity(absent.len()), 0);
            wave.made.reserve(to_make + to_make / 16);
            self.texts.make(&absent, &mut wave.made, &mut ends)?;
            for (text, end) in absent.into_iter().zip(ends) {
                wave.texts[text - wave.first] = Content::Made(start..end);
                start = end;
            }
        }
        self.bytes += (0..wave.texts.len()).map(|index| work_on(wave.text(index).len())).sum::<usize>();
        let share = self.bytes as f64 / self.sizes.max(1) as f64;
        self.total.store((self.all as f64 * share) as usize, Ordering::Relaxed);
        Ok((!wave.texts.is_empty()).then_some(wave))
    }
}

/// A text, or a part of one from one cut to another.
struct Part<'t> {
    text: &'t [u8],
    range: Range<usize>,
}

impl Part<'_> {
    fn starts(&self) -> bool {
        self.range.start == 0
    }

    fn ends(&self) -> bool {
        self.range.end == self.text.len()
    }

    fn is_whole(&self) -> bool {
        self.starts() && self.ends()
    }
}

/// How many bytes of texts, an empty one counting as some, are worked on between two questions whether to stop.
const STOP_EVERY: usize = 1 << 16;

/// What texts, or parts of them, that stand one after the other give, joined in order.
#[derive(Default)]
struct Joined {
    ids: Vec<u32>,
    /// How many ids each text has.
    lengths: Vec<usize>,
    /// The first of these is the rest of a text.
    continues: bool,
    /// How many bytes of text this is of.
    bytes: usize,
}

impl Joined {
    fn add(&mut self, part: &Part<'_>, ids: usize) {
        self.bytes += work_on(part.range.len());
        match self.lengths.last_mut() {
            Some(last) if !part.starts() => *last += ids,
            last => {
                self.continues |= last.is_none() && !part.starts();
                self.lengths.push(ids);
            }
        }
    }

    /// Takes over what comes next, of a batch of about `total` bytes.
    fn append(&mut self, next: &mut Self, total: usize) {
        self.bytes += std::mem::take(&mut next.bytes);
        let mut lengths = next.lengths.drain(..);
        if std::mem::take(&mut next.continues) {
            if let (Some(last), Some(rest)) = (self.lengths.last_mut(), lengths.next()) {
                *last += rest;
            }
        }
        self.lengths.extend(lengths);
        if self.ids.len() + next.ids.len() > self.ids.capacity() {
            self.make_room(self.ids.len() + next.ids.len(), total);
        }
        self.ids.append(&mut next.ids);
    }

    /// Where what is done gives so many `ids`: room for as many for what is left, and for some more.
    fn make_room(&mut self, ids: usize, total: usize) {
        let share = ids as f64 / self.bytes.max(1) as f64;
        let left = (total.saturating_sub(self.bytes) as f64 * share) as usize;
        if self.ids.capacity() < ids + left {
            // Room that is not used is no memory.
            let mut larger = Vec::with_capacity(ids + left + left / 4);
            ask_for_huge_pages(larger.spare_capacity_mut());
            larger.append(&mut self.ids);
            self.ids = larger;
        }
    }
}

impl Engine {
    /// Ids of all texts in one buffer, and the length of each.
    pub fn encode_batch(
        &self,
        texts: &dyn Texts,
        policy: &Policy,
        add_special_tokens: bool,
        threads: usize,
        stop: Stop<'_>,
    ) -> Result<(Vec<u32>, Vec<usize>)> {
        self.encode_shares(texts, policy, add_special_tokens, shares(texts, threads), stop)
    }

    fn encode_shares(
        &self,
        texts: &dyn Texts,
        policy: &Policy,
        add_special_tokens: bool,
        shares: Shares,
        stop: Stop<'_>,
    ) -> Result<(Vec<u32>, Vec<usize>)> {
        let encode = |part: &Part<'_>, ids: &mut Vec<u32>, stop: Stop<'_>| {
            let from = ids.len();
            self.encode_part_of(part, policy, add_special_tokens, stop, ids)?;
            Ok(ids.len() - from)
        };
        let joined = self.over_parts(texts, policy, shares, stop, encode)?;
        Ok((joined.ids, joined.lengths))
    }

    pub fn count_batch(
        &self,
        texts: &dyn Texts,
        policy: &Policy,
        add_special_tokens: bool,
        threads: usize,
        stop: Stop<'_>,
    ) -> Result<Vec<usize>> {
        self.count_shares(texts, policy, add_special_tokens, shares(texts, threads), stop)
    }

    fn count_shares(
        &self,
        texts: &dyn Texts,
        policy: &Policy,
        add_special_tokens: bool,
        shares: Shares,
        stop: Stop<'_>,
    ) -> Result<Vec<usize>> {
        let count = |part: &Part<'_>, _: &mut Vec<u32>, stop: Stop<'_>| {
            self.count_part_of(part, policy, add_special_tokens, stop)
        };
        Ok(self.over_parts(texts, policy, shares, stop, count)?.lengths)
    }

    /// A place inside a text, at `at` or a little behind, where it can be cut: the ids of both sides are those of the
    /// whole.
    fn cut_from(&self, text: &[u8], at: usize, policy: &Policy) -> Option<usize> {
        const FAR: usize = 1024;
        let places = at.max(1)..text.len().min(at.saturating_add(FAR));
        places.into_iter().find(|&at| is_start(text, at) && self.is_cut(text, at, policy))
    }

    /// Runs `work`, which appends ids and says how many they are, on every text or on its parts; an error names the text.
    fn over_parts(
        &self,
        texts: &dyn Texts,
        policy: &Policy,
        shares: Shares,
        stop: Stop<'_>,
        work: impl Fn(&Part<'_>, &mut Vec<u32>, Stop<'_>) -> Result<usize> + Sync,
    ) -> Result<Joined> {
        let total = &AtomicUsize::new(0);
        let (all, made) = (work_in(texts), Vec::new());
        let mut waves = Waves { texts, next: 0, size: shares.wave, made, all, sizes: 0, bytes: 0, total };
        let do_job = |wave: &Wave<'_>, job: Job, out: &mut Joined, stop: Stop<'_>| {
            let mut worked = 0;
            for (index, range) in job.parts(|index| wave.text(index).len()) {
                worked += work_on(range.len());
                if worked >= STOP_EVERY {
                    worked = 0;
                    if stop() {
                        return Err(Error::interrupted());
                    }
                }
                let part = Part { text: wave.text(index), range };
                let ids = work(&part, &mut out.ids, stop).map_err(|error| Error {
                    message: format!("text {} of the batch: {}", wave.first + index, error.message),
                    ..error
                })?;
                out.add(&part, ids);
            }
            Ok(())
        };
        let mut joined = Joined::default();
        if shares.workers < 2 {
            while let Some(wave) = waves.next()? {
                do_job(&wave, Job { start: (0, 0), end: (wave.texts.len(), 0) }, &mut joined, stop)?;
                if waves.next < texts.len() {
                    joined.make_room(joined.ids.len(), total.load(Ordering::Relaxed));
                }
                waves.made = wave.made;
            }
            return Ok(joined);
        }
        let more = || {
            let Some(wave) = waves.next()?.map(Arc::new) else { return Ok(Vec::new()) };
            let sizes: Vec<usize> = (0..wave.texts.len()).map(|index| wave.text(index).len()).collect();
            let jobs = jobs_of(&sizes, shares.job, |index, at| self.cut_from(wave.text(index), at, policy));
            Ok(jobs.into_iter().map(|job| (wave.clone(), job)).collect())
        };
        let work = |(): &mut (), (wave, job): (Arc<Wave<'_>>, Job), out: &mut Joined, stop: Stop<'_>| {
            do_job(&wave, job, out, stop)
        };
        as_they_come(more, vec![(); shares.workers], stop, work, |out| {
            joined.append(out, total.load(Ordering::Relaxed))
        })?;
        Ok(joined)
    }

    fn encode_part_of(
        &self,
        part: &Part<'_>,
        policy: &Policy,
        add_special_tokens: bool,
        stop: Stop<'_>,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        if part.is_whole() {
            return self.encode(part.text, policy, add_special_tokens, stop, out);
        }
        self.check_part(part, policy)?;
        if add_special_tokens && part.starts() {
            out.extend_from_slice(&self.template().0);
        }
        self.encode_part(&part.text[part.range.clone()], policy, !part.starts(), stop, out)?;
        if add_special_tokens && part.ends() {
            out.extend_from_slice(&self.template().1);
        }
        Ok(())
    }

    fn count_part_of(
        &self,
        part: &Part<'_>,
        policy: &Policy,
        add_special_tokens: bool,
        stop: Stop<'_>,
    ) -> Result<usize> {
        if part.is_whole() {
            return self.count(part.text, policy, add_special_tokens, stop);
        }
        self.check_part(part, policy)?;
        let before = if add_special_tokens && part.starts() { self.template().0.len() } else { 0 };
        let after = if add_special_tokens && part.ends() { self.template().1.len() } else { 0 };
        let count = self.count_part(&part.text[part.range.clone()], policy, !part.starts(), stop)?;
        Ok(before + count + after)
    }

    /// The check of a text, shared out to its parts: what one of them finds, the whole text tells as it always does.
    fn check_part(&self, part: &Part<'_>, policy: &Policy) -> Result<()> {
        let is_good =
            self.model().check(&part.text[part.range.clone()]).is_ok() && policy.allows(part.text, &part.range);
        if is_good {
            Ok(())
        } else {
            self.check_text(part.text, policy)
        }
    }
}

/// How many bytes are to be worked on, an empty text counting as some.
pub fn work_in(texts: &dyn Texts) -> usize {
    (0..texts.len()).fold(0, |sum: usize, text| sum.saturating_add(work_on(texts.size(text))))
}

/// One thread takes a wave as one job.
fn shares(texts: &dyn Texts, threads: usize) -> Shares {
    let total = work_in(texts);
    let job = job_size(total, threads);
    Shares { wave: WAVE, job, workers: threads.min(total.div_ceil(job)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use crate::bpe::units::UnitRow;
    use crate::bpe::Bpe;
    use crate::bpe::Priority;
    use crate::decode::Decoding;
    use crate::extra::{Extra, Kind};
    use crate::model::Model;
    use crate::vocab::Vocab;

    const PARTS: [&str; 34] = [
        " ",
        " ",
        "  ",
        "\n",
        "\t",
        "a",
        "b",
        "ab",
        "B",
        "'s",
        "1",
        "234",
        "!",
        "é",
        "e\u{301}",
        "\u{301}",
        "ﬁ",
        "가",
        "\u{1100}\u{1161}",
        "Σ",
        "中",
        "😀",
        "\u{3000}",
        "<s>",
        "<s",
        "s>",
        "<s>x",
        "AB",
        "ABA",
        "BA",
        "rw",
        "rwx",
        "<n>",
        "<never>",
    ];
    const STAGES: [&[&[&str]]; 16] = [
        &[&["Split", "gpt2", "16.0"]],
        &[&["Split", "none", "16.0"]],
        &[&["MatchTokens", "false"], &["Split", "cl100k", "16.0"]],
        &[&["MatchTokens", "false"], &["Split", "o200k", "16.0"]],
        &[&["MatchTokens", "false"], &["PrefixSpace"], &["Split", "gpt2", "16.0"]],
        &[&["MatchTokens", "false"], &["PrefixSpace"], &["Split", "none", "16.0"]],
        &[&["MatchTokens", "false"], &["Normalize", "NFC", "9.0"], &["Split", "cl100k", "16.0"]],
        &[
            &["MatchTokens", "false"],
            &["Normalize", "NFKD", "9.0"],
            &["MatchTokens", "true"],
            &["Split", "gpt2", "16.0"],
        ],
        &[&["MatchTokens", "false"], &["Normalize", "NFC", "9.0"], &["Normalize", "NFKD", "9.0"], &["PrefixSpace"]],
        &[&["MatchTokens", "false"], &["Lowercase", "true", "16.0"], &["Split", "o200k", "16.0"]],
        &[
            &["MatchTokens", "false"],
            &["Lowercase", "false", "16.0"],
            &["MatchTokens", "true"],
            &["Split", "gpt2", "16.0"],
        ],
        &[&["MatchTokens", "false"], &["Digits", "three-right", "16.0"], &["Split", "o200k", "16.0"]],
        &[&["MatchTokens", "false"], &["Digits", "one", "16.0"]],
        &[&["MatchTokens", "false"], &["SplitRegex", r"[a-z]+|\d", "oniguruma", "false", "16.0", "true"]],
        &[&["MatchTokens", "false"], &["SplitRegex", r"\s+(?!\S)|\S+", "tiktoken", "false", "16.0", "false"]],
        &[
            &["MatchTokens", "false"],
            &["Split", "o200k", "16.0"],
            &["SplitRegex", r"\s", "oniguruma", "false", "16.0", "true"],
        ],
    ];

    fn engine(stages: &[&[&str]]) -> Engine {
        let entries: Vec<Vec<u8>> =
            (0..=255u8).map(|byte| vec![byte]).chain([b"ab".to_vec(), b" a".to_vec()]).collect();
        let ends = entries.iter().scan(0, |end, entry| {
            *end += entry.len() as u64;
            Some(*end)
        });
        let offsets: Vec<u64> = std::iter::once(0).chain(ends).collect();
        let vocab = Vocab::new(entries.concat(), &offsets, (0..258).collect()).unwrap();
        let merges = Priority::Merges(vec![(97, 98), (32, 97)]);
        let extra = |(id, content, kind): (u32, &str, Kind)| Extra {
            id,
            content: content.into(),
            kind,
            single_word: content == "rw",
            lstrip: content == "AB",
            rstrip: content == "AB" || content == "<n>",
            normalized: content == "é" || content == "<n>",
        };
        let mut extras: Vec<Extra> = [
            (500, "<s>", Kind::Special),
            (501, "<s>x", Kind::Special),
            (502, "<never>", Kind::Unmatchable),
            (503, "AB", Kind::Added),
            (504, "ABA", Kind::Added),
            (505, "rw", Kind::Added),
            (506, "é", Kind::Added),
            (507, "<n>", Kind::Added),
        ]
        .map(extra)
        .into();
        extras.retain(|extra| !extra.normalized || stages.contains(&&["MatchTokens", "true"][..]));
        let rows: Vec<Vec<String>> =
            stages.iter().map(|row| row.iter().map(|&setting| setting.to_owned()).collect()).collect();
        let units = UnitRow { by_characters: false, end_of_word: Vec::new(), unk: None };
        let model = Arc::new(Model::Bpe(Bpe::new(vocab, merges, false, units, None).unwrap()));
        let decoding = Decoding::Plain { shown: Vec::new(), trim: false };
        Engine::new(&rows, model, extras, (vec![1, 2], vec![3]), decoding).unwrap()
    }

    /// Texts of which some are made bytes later: those whose bit is set in `later`.
    struct Later<'t> {
        texts: &'t [&'t [u8]],
        later: usize,
    }

    impl Texts for Later<'_> {
        fn len(&self) -> usize {
            self.texts.len()
        }

        fn bytes(&self, text: usize) -> Option<&[u8]> {
            (self.later >> text & 1 == 0).then_some(self.texts[text])
        }

        fn size(&self, text: usize) -> usize {
            self.bytes(text).map_or(self.texts[text].len() / 2, <[u8]>::len)
        }

        fn make(&self, texts: &[usize], made: &mut Vec<u8>, ends: &mut Vec<usize>) -> Result<()> {
            for &text in texts {
                assert!(self.bytes(text).is_none());
                made.extend_from_slice(self.texts[text]);
                ends.push(made.len());
            }
            Ok(())
        }
    }

    fn shown<T>(result: Result<T>) -> std::result::Result<T, String> {
        result.map_err(|error| error.message)
    }

    #[test]
    fn parts_give_what_the_whole_gives() {
        let mut seed = 1u64;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % below
        };
        for stages in STAGES {
            let engine = engine(stages);
            let mut cut = 0;
            let policies = [
                engine.default_policy().unwrap(),
                engine.ordinary_policy().unwrap(),
                engine.policy(&["<s>".into(), "<s>x".into()], Vec::new()).unwrap(),
                engine.policy(&["<s>x".into()], vec!["ab".into(), "b <".into(), "é\u{301}".into()]).unwrap(),
            ];
            for round in 0..20 {
                let few: Vec<&str> = (0..1 + random(8)).map(|_| PARTS[random(PARTS.len())]).collect();
                let mut text = |len| (0..len).flat_map(|_| few[random(few.len())].bytes()).collect::<Vec<u8>>();
                let mut texts = [text(30), text(0), text(60), text(3)];
                if round % 5 == 1 {
                    texts[2] = text(200); // a job can hold the rest of a text and others behind it
                }
                if round % 5 == 0 {
                    texts[2].insert(7.min(texts[2].len()), [0x80, 0xe4, 0xf0, 0xff][round / 5 % 4]);
                }
                let texts = texts.each_ref().map(|text| &text[..]);
                let sizes = texts.map(<[u8]>::len);
                for (number, policy) in policies.iter().enumerate() {
                    let template = random(2) == 0;
                    let whole = shown(engine.encode_batch(&&texts[..], policy, template, 1, &|| false));
                    for (job, wave) in [(1, 50), (9, 1), (70, 200), (300, 2000)] {
                        let jobs = jobs_of(&sizes, job, |text, at| engine.cut_from(texts[text], at, policy));
                        cut += jobs.iter().filter(|job| job.end.1 > 0).count();
                        let given = Later { texts: &texts, later: random(16) };
                        let shares = Shares { wave, job, workers: 1 + random(3) };
                        let parts = shown(engine.encode_shares(&given, policy, template, shares, &|| false));
                        let shows = || texts.map(String::from_utf8_lossy);
                        assert_eq!(parts, whole, "{stages:?} {number} {:?} {shares:?}", shows());
                        let counts = shown(engine.count_shares(&given, policy, template, shares, &|| false));
                        assert_eq!(counts, whole.clone().map(|(_, lengths)| lengths));
                    }
                }
            }
            // Without a pattern a text is one piece; and no cut is sure where tokens are taken from lower case.
            let splits = |row: &&[&str]| row[0] != "Split" || row[1] != "none";
            let splits = stages.iter().filter(|row| row[0].contains("Split") || row[0] == "Digits").any(splits);
            let lowercases = stages.iter().any(|row| row[0] == "Lowercase");
            let splits = splits && !(lowercases && stages.contains(&&["MatchTokens", "true"][..]));
            assert!(if splits { cut > 100 } else { cut == 0 }, "{stages:?}: {cut} cuts");
        }
    }
}
