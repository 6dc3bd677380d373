//! Batches: many texts, and long ones, on several threads.

use std::ops::Range;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::extra::Policy;
use crate::parallel::{in_parallel, share_out, Job};
use crate::pipeline::Stop;
use crate::unicode::is_start;

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

/// What a batch of texts gives, joined in order.
#[derive(Default)]
struct Joined {
    ids: Vec<u32>,
    /// How many ids each text has, or each part of a job.
    lengths: Vec<usize>,
}

impl Engine {
    /// Ids of all texts in one buffer, and the length of each.
    pub fn encode_batch(
        &self,
        texts: &[&[u8]],
        policy: &Policy,
        add_special_tokens: bool,
        threads: usize,
        stop: Stop<'_>,
    ) -> Result<(Vec<u32>, Vec<usize>)> {
        let jobs = self.jobs(texts, policy, threads);
        self.encode_jobs(texts, &jobs, policy, add_special_tokens, threads, stop)
    }

    fn encode_jobs(
        &self,
        texts: &[&[u8]],
        jobs: &[Job],
        policy: &Policy,
        add_special_tokens: bool,
        threads: usize,
        stop: Stop<'_>,
    ) -> Result<(Vec<u32>, Vec<usize>)> {
        let total: usize = texts.iter().map(|text| text.len()).sum();
        let (mut ids, mut lengths) = (Vec::new(), vec![0; texts.len()]);
        let (mut job, mut bytes) = (jobs.iter(), 0);
        let encode = |part: &Part<'_>, out: &mut Joined, stop: Stop<'_>| {
            let from = out.ids.len();
            self.encode_part_of(part, policy, add_special_tokens, stop, &mut out.ids)?;
            out.lengths.push(out.ids.len() - from);
            Ok(())
        };
        self.over_jobs(texts, jobs, threads, stop, encode, |out: &mut Joined| {
            let Some(job) = job.next() else { return };
            for ((text, range), length) in job.parts(|text| texts[text].len()).zip(out.lengths.drain(..)) {
                lengths[text] += length;
                bytes += range.len();
            }
            if ids.is_empty() {
                std::mem::swap(&mut ids, &mut out.ids);
            }
            if ids.len() + out.ids.len() > ids.capacity() {
                // As many for what is left as for what is done, and a few more.
                let share = (ids.len() + out.ids.len()) as f64 / bytes.max(1) as f64;
                ids.reserve(out.ids.len() + ((total - bytes) as f64 * share * 1.05) as usize);
            }
            ids.append(&mut out.ids);
        })?;
        Ok((ids, lengths))
    }

    pub fn count_batch(
        &self,
        texts: &[&[u8]],
        policy: &Policy,
        add_special_tokens: bool,
        threads: usize,
        stop: Stop<'_>,
    ) -> Result<Vec<usize>> {
        let jobs = self.jobs(texts, policy, threads);
        self.count_jobs(texts, &jobs, policy, add_special_tokens, threads, stop)
    }

    fn count_jobs(
        &self,
        texts: &[&[u8]],
        jobs: &[Job],
        policy: &Policy,
        add_special_tokens: bool,
        threads: usize,
        stop: Stop<'_>,
    ) -> Result<Vec<usize>> {
        let mut counts = vec![0; texts.len()];
        let mut job = jobs.iter();
        let count = |part: &Part<'_>, out: &mut Vec<usize>, stop: Stop<'_>| {
            out.push(self.count_part_of(part, policy, add_special_tokens, stop)?);
            Ok(())
        };
        self.over_jobs(texts, jobs, threads, stop, count, |out: &mut Vec<usize>| {
            let parts = job.next().into_iter().flat_map(|job| job.parts(|text| texts[text].len()));
            parts.zip(out.drain(..)).for_each(|((text, _), count)| counts[text] += count);
        })?;
        Ok(counts)
    }

    fn jobs(&self, texts: &[&[u8]], policy: &Policy, threads: usize) -> Vec<Job> {
        let sizes: Vec<usize> = texts.iter().map(|text| text.len()).collect();
        share_out(&sizes, threads, |text, at| self.cut_from(texts[text], at, policy))
    }

    /// A place inside a text, at `at` or a little behind, where it can be cut: the ids of both sides are those of the
    /// whole.
    fn cut_from(&self, text: &[u8], at: usize, policy: &Policy) -> Option<usize> {
        const FAR: usize = 1024;
        let places = at.max(1)..text.len().min(at.saturating_add(FAR));
        places.into_iter().find(|&at| is_start(text, at) && self.pipeline.is_cut(text, at, policy))
    }

    /// Runs `work` on every text, or on its parts; an error names the text.
    fn over_jobs<R: Default + Send>(
        &self,
        texts: &[&[u8]],
        jobs: &[Job],
        threads: usize,
        stop: Stop<'_>,
        work: impl Fn(&Part<'_>, &mut R, Stop<'_>) -> Result<()> + Sync,
        take: impl FnMut(&mut R) + Send,
    ) -> Result<()> {
        let do_job = |(): &mut (), job: usize, out: &mut R, stop: Stop<'_>| {
            let mut worked = 0;
            for (index, range) in jobs[job].parts(|text| texts[text].len()) {
                worked += range.len() + 64;
                if worked >= STOP_EVERY {
                    worked = 0;
                    if stop() {
                        return Err(Error::interrupted());
                    }
                }
                work(&Part { text: texts[index], range }, out, stop).map_err(|error| Error {
                    message: format!("text {index} of the batch: {}", error.message),
                    ..error
                })?;
            }
            Ok(())
        };
        in_parallel(jobs.len(), vec![(); threads.max(1)], stop, do_job, take)
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
        let is_good = self.bpe().check(&part.text[part.range.clone()]).is_ok() && policy.allows(part.text, &part.range);
        if is_good {
            Ok(())
        } else {
            self.check_text(part.text, policy)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use crate::bpe::units::UnitRow;
    use crate::bpe::Bpe;
    use crate::bpe::Priority;
    use crate::extra::{Extra, Kind};
    use crate::parallel::jobs_of;
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
        let bpe = Arc::new(Bpe::new(vocab, merges, false, units, None).unwrap());
        Engine::new(&rows, bpe, extras, (vec![1, 2], vec![3]), (Vec::new(), false)).unwrap()
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
                let mut texts = [text(30), text(0), text(3), text(60)];
                if round % 5 == 0 {
                    texts[3].insert(7.min(texts[2].len()), [0x80, 0xe4, 0xf0, 0xff][round / 5 % 4]);
                }
                let texts = texts.each_ref().map(|text| &text[..]);
                let sizes = texts.map(<[u8]>::len);
                for (number, policy) in policies.iter().enumerate() {
                    let template = random(2) == 0;
                    let whole = shown(engine.encode_batch(&texts, policy, template, 1, &|| false));
                    for target in [1, 9, 70] {
                        let jobs = jobs_of(&sizes, target, |text, at| engine.cut_from(texts[text], at, policy));
                        cut += jobs.iter().filter(|job| job.end.1 > 0).count();
                        let parts =
                            shown(engine.encode_jobs(&texts, &jobs, policy, template, 1 + target % 3, &|| false));
                        assert_eq!(
                            parts,
                            whole,
                            "{stages:?} {number} {:?} {jobs:?}",
                            texts.map(String::from_utf8_lossy)
                        );
                        let counts = shown(engine.count_jobs(&texts, &jobs, policy, template, 1, &|| false));
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
