use super::dfa::STEPS;
use super::*;
use crate::split::Pattern;

fn tiktoken(text: &str) -> Pattern {
    Pattern::regex(text, "tiktoken", false, false).unwrap()
}

fn pieces(pattern: &Pattern, text: &[u8]) -> Vec<usize> {
    let (mut scan, mut ends) = (pattern.scan(text), Vec::new());
    while ends.last().copied().unwrap_or(0) < text.len() {
        ends.push(scan.end(ends.last().copied().unwrap_or(0)));
    }
    scan.check().unwrap();
    ends
}

/// The same numbers every time.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    fn text(&mut self, parts: &[&str], most: usize) -> Vec<u8> {
        (0..self.below(most + 1)).flat_map(|_| parts[self.below(parts.len())].bytes()).collect()
    }
}

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const GPT2_POSSESSIVE: &str = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s";
const CL100K: &str = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s";
const O200K: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);

/// Expressions of every kind that runs in linear time; some cover every text, some do not.
const LINEAR: &[&str] = &[
    GPT2,
    CL100K,
    O200K,
    r"\p{N}{1,3}",
    r"[a-c]+|1",
    r"a*b|a",
    r"(?:ab)*c|a|b",
    r"\s*[\r\n]|\s",
    r"a+?(?=b)|.b?",
    r"[a-z]{2,4}?|\S",
    r"(?=A)|b",
    r"\w+\b|[^\w\s]+",
    r"a??b|\z|(?!a)\S",
    r"a$|ab|(?m:b$)",
    r"(?s:.{3})",
];

const PARTS: &[&str] =
    &["a", "b", "c", "A", "1", "2", " ", " ", "\n", "\r", "'", "'s", ".", "é", "中", "\u{301}", "\u{a0}"];

#[test]
fn the_automaton_equals_the_scanners() {
    let mut random = Random(1);
    for (name, texts) in [("gpt2", &[GPT2, GPT2_POSSESSIVE][..]), ("cl100k", &[CL100K]), ("o200k", &[O200K])] {
        let scanner = Pattern::scanner(name).unwrap();
        for text in texts {
            let compiled = tiktoken(text);
            for _ in 0..5_000 {
                let mut text = random.text(PARTS, 20);
                if random.below(3) == 0 && !text.is_empty() {
                    let at = random.below(text.len());
                    text[at] = random.below(256) as u8;
                }
                assert_eq!(pieces(&compiled, &text), pieces(&scanner, &text), "{name} {text:x?}");
            }
        }
    }
}

#[test]
fn what_is_known_of_every_text_is_true() {
    let mut random = Random(2);
    let mut cuts = 0;
    for regex in LINEAR {
        let pattern = tiktoken(regex);
        for _ in 0..2_000 {
            let text = random.text(PARTS, 14);
            let whole = pieces(&pattern, &text);
            let starts = (1..text.len()).filter(|&at| text[at] & 0xc0 != 0x80);
            for at in starts {
                let right = pieces(&pattern, &text[at..]).into_iter().map(|end| end + at);
                let parts: Vec<usize> = pieces(&pattern, &text[..at]).into_iter().chain(right).collect();
                if pattern.cut(&text, at) {
                    assert_eq!(parts, whole, "{regex}: cut at {at} of {:?}", String::from_utf8_lossy(&text));
                    cuts += 1;
                }
                if pattern.ignores(&text, at) {
                    let mut whole = whole.clone();
                    whole.push(at);
                    whole.sort_unstable();
                    whole.dedup();
                    assert_eq!(parts, whole, "{regex}: ignores at {at} of {:?}", String::from_utf8_lossy(&text));
                }
            }
        }
    }
    assert!(cuts > 10_000, "{cuts}");
}

#[test]
fn there_are_cuts_at_the_ends_of_words() {
    for text in [GPT2, CL100K, O200K] {
        let pattern = tiktoken(text);
        for around in ["a ", "1 ", "a.", "1a", ". ", "é\u{a0}", "中\t"] {
            let at = around.char_indices().nth(1).unwrap().0;
            assert!(pattern.cut(around.as_bytes(), at), "{text}: {around:?}");
        }
        for around in [" a", "aa", "\n\n", " \n", "  ", "'s", "11"] {
            assert!(!pattern.cut(around.as_bytes(), 1), "{text}: {around:?}");
        }
    }
}

#[test]
fn which_patterns_cover_every_text() {
    let covers = |text| Regex::new(text, Syntax::Tiktoken, false).unwrap().covers();
    for text in [GPT2, CL100K, O200K, r"\s+|\S+", r"(?s:.)", r"a*b|a|[^a]"] {
        assert!(covers(text), "{text}");
    }
    for text in [r"\p{N}{1,3}", r"a*b|[^a]", r".", r"\s*", r"(?s:.(?=a))", r"\w+|[^\w\s]+"] {
        assert!(!covers(text), "{text}");
    }
}

#[test]
fn scans_are_linear_whatever_the_text() {
    let runs = [" ", "\n", "a", "A", "A中", "'", "1", ".", " \n", "ab", "\u{301}", "'s", "a ", "\t"];
    for regex in LINEAR.iter().filter(|regex| !regex.contains("{3}")) {
        let pattern = tiktoken(regex);
        for run in runs {
            let steps = |len: usize| {
                let text = run.repeat(len / run.len());
                STEPS.with(|steps| steps.set(0));
                pieces(&pattern, text.as_bytes());
                STEPS.with(std::cell::Cell::get)
            };
            let (half, whole) = (steps(50_000), steps(100_000));
            assert!(whole < 140 * 100_000, "{regex} on {run:?}: {whole} steps");
            assert!(whole < 3 * half, "{regex} on {run:?}: {half} steps, then {whole}");
        }
    }
    // The patterns in use look at a character a few times at most.
    for regex in [GPT2, CL100K, O200K] {
        let pattern = tiktoken(regex);
        for run in runs {
            STEPS.with(|steps| steps.set(0));
            pieces(&pattern, run.repeat(100_000 / run.len()).as_bytes());
            let steps = STEPS.with(std::cell::Cell::get);
            assert!(steps <= 4 * 100_000, "{regex} on {run:?}: {steps} steps");
        }
    }
}

#[test]
fn what_a_scan_remembers_changes_nothing() {
    let mut random = Random(3);
    for regex in [r"\s*\n|\s", r"a*b|a", r"(?:ab)*c|a|b", r"(?:a|bb)*c|[ab]", r"[ab]*a[ab]{3}c|[ab]{1,2}"] {
        let pattern = tiktoken(regex);
        for _ in 0..40 {
            let text: Vec<u8> = (0..6)
                .flat_map(|_| {
                    let run = [" ", "a", "ab", "b", "\n", "c", "bb"][random.below(7)];
                    run.repeat(1 + random.below(300) * random.below(2)).into_bytes()
                })
                .collect();
            let mut start = 0;
            for end in pieces(&pattern, &text) {
                assert_eq!(pattern.scan(&text).end(start), end, "{regex} {}", String::from_utf8_lossy(&text));
                start = end;
            }
        }
    }
}

#[test]
fn backtracking_gives_up_with_an_error() {
    let pattern = Pattern::regex(r"(?:a|aa)+(?<=b)|a", "tiktoken", true, false).unwrap();
    let text = "a".repeat(60);
    let mut scan = pattern.scan(text.as_bytes());
    scan.end(0);
    let message = scan.check().unwrap_err().message;
    assert!(message.contains("its budget of steps was used up in the piece at byte 0"), "{message}");
    let (how, why) = pattern.plan();
    assert!(how.starts_with("backtracking") && why.contains("at character 9, a look behind"), "{how}; {why}");
}

#[test]
fn refusals_name_the_place_and_the_part() {
    use Syntax::{Oniguruma, Tiktoken};
    let rows = [
        (r"a(b", Tiktoken, "at character 1, a ( without its )"),
        (r"ab)", Tiktoken, "at character 2, a ) without its ("),
        (r"a|[b", Tiktoken, "at character 2, a [ without its ]"),
        (r"[]a]", Tiktoken, "an empty class"),
        (r"[z-a]", Tiktoken, "a range that does not rise"),
        (r"[\w-z]", Tiktoken, "a range from a class"),
        (r"[a~~b]", Tiktoken, "~~ in a class"),
        (r"[a--b]", Tiktoken, "a range that does not rise"),
        (r"*a", Tiktoken, "at character 0, * with nothing to repeat"),
        (r"a**", Tiktoken, "a repeat of a repeat"),
        (r"a{2,1}", Tiktoken, "a { that is no count"),
        (r"a{1001}", Tiktoken, "a count above 1000"),
        (r"(?:a?)*", Tiktoken, "a repeat of what can match nothing"),
        (r"\1", Tiktoken, "the back-reference \\1"),
        (r"\q", Tiktoken, "at character 0, \\q"),
        (r"\p{Klingon}", Tiktoken, "the class \\p{Klingon}"),
        (r"(?x) a", Tiktoken, "(?x"),
        (r"(?s:.)", Oniguruma, "(?s"),
        (r"a(?i)b", Oniguruma, "setting flags inside"),
        (r"(?i:ss)", Oniguruma, "matches a ligature too"),
        (r"(?i:ß)", Oniguruma, "(?i) of letters outside ASCII"),
        (r"a{2}?", Oniguruma, "{n}?, which in Oniguruma"),
        (r"\xe9", Oniguruma, "\\x of a byte outside ASCII"),
        (r"a++ab", Tiktoken, "at character 0, a possessive repeat that may change what follows"),
        (r"\s++$", Oniguruma, "a possessive repeat that may change what follows"),
        (r"(?>a|ab)c", Tiktoken, "an atomic group that may change what follows"),
        (r"a(?=bc)", Tiktoken, "at character 1, a look ahead at more than one character"),
        (r"(?<!a)b", Tiktoken, "at character 0, a look behind"),
        (r"^a", Tiktoken, "a look at what stands before"),
        (r"a\Z", Tiktoken, "a look ahead at more than one character"),
        (r"\ba", Tiktoken, "a word boundary behind what may or may not be a word character"),
        (r"[ab]*a[ab]{18}", Tiktoken, "an expression whose automaton becomes too large"),
    ];
    for (text, syntax, expected) in rows {
        let message = Regex::new(text, syntax, false).map(|_| ()).unwrap_err().message;
        assert!(message.contains(expected), "{text}: {message}");
    }
    let deep = format!("{}a{}", "(".repeat(2_000), ")".repeat(2_000));
    assert!(Regex::new(&deep, Tiktoken, true).is_err());
    assert!(Regex::new(&"(?:a{100}){100}".repeat(9), Tiktoken, true).is_err());
}

#[test]
fn the_syntaxes_differ_where_they_do() {
    let split = |regex, syntax: &str, text: &str| {
        let ends = pieces(&Pattern::regex(regex, syntax, true, false).unwrap(), text.as_bytes());
        ends.iter().scan(0, |start, &end| Some(text[std::mem::replace(start, end)..end].to_owned())).collect::<Vec<_>>()
    };
    assert_eq!(split(r"1{1,3}+", "tiktoken", "11111"), ["111", "11"]);
    assert_eq!(split(r"1{1,3}+", "oniguruma", "11111"), ["11111"]);
    assert_eq!(split(r"a$|b", "tiktoken", "ca\nba"), ["ca\n", "b", "a"]);
    assert_eq!(split(r"a$|b", "oniguruma", "ca\nba"), ["c", "a", "\n", "b", "a"]);
    assert_eq!(split(r"(?m:a.)", "tiktoken", "a\na"), ["a\na"]);
    assert_eq!(split(r"(?m:a.)", "oniguruma", "ca\na"), ["c", "a\n", "a"]);
    assert_eq!(split(r"\w+", "tiktoken", "a²"), ["a", "²"]);
    assert_eq!(split(r"\w+", "oniguruma", "a²"), ["a²"]);
    assert_eq!(split(r"(?i:k|s)+", "tiktoken", "xK\u{212a}ſsx"), ["x", "K\u{212a}ſs", "x"]);
    assert_eq!(split(r"(?<=a)b|(?>a+)", "tiktoken", "aabbb"), ["aa", "b", "bb"]);
    assert!(Regex::same((r"a+|\s+(?!\S)", Syntax::Tiktoken), (r"a+|\s+(?!\S)", Syntax::Oniguruma)).unwrap());
    assert!(!Regex::same((r"a$", Syntax::Tiktoken), (r"a$", Syntax::Oniguruma)).unwrap());
}
