//! Decoding as HF tokenizers does it in general: the tokens are strings, and steps change the list of them, one after
//! the other.

use crate::error::{Error, Result};
use crate::finder::Finder;
use crate::sentencepiece::hf::byte_char;

/// What is done to all tokens of a text.
pub enum Step {
    /// Entries are bytes: written in GPT-2's alphabet, as their files spell them. Only in front.
    SpellBytes,
    /// What is found is replaced in each token.
    Replace { finder: Finder, new: String },
    /// `<0x0A>` are bytes; a run of them is text if it is well-formed, else each is U+FFFD.
    ByteFallback,
    /// One token of all.
    Fuse,
    /// So many of a character are taken off the start and the end of each token.
    Strip { content: char, start: usize, stop: usize },
    /// What is written in GPT-2's alphabet is bytes; all of them are one token.
    ByteLevel,
    /// See `Decoding::WordPiece`.
    WordPiece { prefix: String, cleanup: bool },
    /// A character is a space; in the first token, with `strips`, it is left out.
    Metaspace { replacement: char, strips: bool },
    /// Of several equal tokens side by side one stays; padding is taken out, and what delimits words is a space.
    Ctc { pad: String, delimiter: String, cleanup: bool },
    /// What ends a word is a space; in the last token, nothing.
    EndOfWord { suffix: String },
    /// A space between tokens.
    Spaces,
}

/// The tokens on their way. Bytes that may be no text stand only behind the last step.
struct Tokens {
    texts: Vec<String>,
    bytes: Option<Vec<u8>>,
}

impl Step {
    /// Steps as `spec.py` describes them, one after the other: the name of each, then its settings.
    pub fn read(mut row: &[&str]) -> Result<Vec<Self>> {
        let mut steps = Vec::new();
        while !row.is_empty() {
            let (step, len) = Self::first(row)?;
            steps.push(step);
            row = &row[len..];
        }
        Ok(steps)
    }

    fn first(row: &[&str]) -> Result<(Self, usize)> {
        let wrong = || Error::format(format!("unknown step of decoding {:?}", row[0]));
        let character = |text: &str| {
            let mut chars = text.chars();
            chars
                .next()
                .filter(|_| chars.next().is_none())
                .ok_or_else(|| Error::format(format!("{text:?} is not one character")))
        };
        let number = |text: &str| text.parse().map_err(|_| Error::format(format!("{text:?} is not a number")));
        Ok(match *row {
            ["spell-bytes", ..] => (Self::SpellBytes, 1),
            ["replace", old, new, ..] => {
                (Self::Replace { finder: Finder::new("string", old, crate::unicode::VERSION)?, new: new.into() }, 3)
            }
            ["replace-regex", regex, new, ..] => {
                (Self::Replace { finder: Finder::new("regex", regex, crate::unicode::VERSION)?, new: new.into() }, 3)
            }
            ["byte-fallback", ..] => (Self::ByteFallback, 1),
            ["fuse", ..] => (Self::Fuse, 1),
            ["strip", content, start, stop, ..] => {
                (Self::Strip { content: character(content)?, start: number(start)?, stop: number(stop)? }, 4)
            }
            ["byte-level", ..] => (Self::ByteLevel, 1),
            ["word-piece", prefix, cleanup, ..] => {
                (Self::WordPiece { prefix: prefix.into(), cleanup: cleanup == "true" }, 3)
            }
            ["metaspace", replacement, strips, ..] => {
                (Self::Metaspace { replacement: character(replacement)?, strips: strips == "true" }, 3)
            }
            ["ctc", pad, delimiter, cleanup, ..] => {
                (Self::Ctc { pad: pad.into(), delimiter: delimiter.into(), cleanup: cleanup == "true" }, 4)
            }
            ["end-of-word", suffix, ..] => (Self::EndOfWord { suffix: suffix.into() }, 2),
            ["spaces", ..] => (Self::Spaces, 1),
            _ => return Err(wrong()),
        })
    }

    fn apply(&self, texts: Vec<String>, is_last: bool) -> Result<Tokens> {
        let (last, mut bytes) = (texts.len().saturating_sub(1), None);
        let each = |change: &dyn Fn(usize, String) -> String| {
            texts.iter().cloned().enumerate().map(|(number, text)| change(number, text)).collect()
        };
        let texts = match self {
            Self::SpellBytes => texts,
            Self::Replace { finder, new } => {
                texts.iter().map(|text| replaced(finder, new, text)).collect::<Result<_>>()?
            }
            Self::ByteFallback => fallen_back(texts),
            Self::Fuse => vec![texts.concat()],
            Self::Strip { content, start, stop } => each(&|_, text| stripped(&text, *content, *start, *stop)),
            Self::ByteLevel => {
                let data: Vec<u8> = texts.iter().flat_map(|text| bytes_of(text)).collect();
                let text = String::from_utf8_lossy(&data).into_owned();
                bytes = is_last.then_some(data);
                vec![text]
            }
            Self::WordPiece { prefix, cleanup } => each(&|number, text| {
                let joined = match (number, text.strip_prefix(&**prefix)) {
                    (0, _) => text,
                    (_, Some(rest)) => rest.to_owned(),
                    (_, None) => format!(" {text}"),
                };
                cleaned(joined, *cleanup)
            }),
            Self::Metaspace { replacement, strips } => each(&|number, text| {
                let shown = if *strips && number == 0 { "" } else { " " };
                text.replace(*replacement, shown)
            }),
            Self::Ctc { pad, delimiter, cleanup } => {
                let mut kept = texts;
                kept.dedup();
                let shown = |text: String| {
                    let text = text.replace(&**pad, "");
                    if *cleanup {
                        cleaned(text, true).replace(&**delimiter, " ")
                    } else {
                        text
                    }
                };
                kept.into_iter().map(shown).filter(|text| !text.is_empty()).collect()
            }
            Self::EndOfWord { suffix } => {
                each(&|number, text| text.replace(&**suffix, if number == last { "" } else { " " }))
            }
            Self::Spaces => vec![texts.join(" ")],
        };
        Ok(Tokens { texts, bytes })
    }
}

/// The bytes that the tokens of a text decode to.
pub fn decode(steps: &[Step], texts: Vec<String>) -> Result<Vec<u8>> {
    let mut tokens = Tokens { texts, bytes: None };
    for (number, step) in steps.iter().enumerate() {
        tokens = step.apply(tokens.texts, number + 1 == steps.len())?;
    }
    Ok(tokens.bytes.unwrap_or_else(|| tokens.texts.concat().into_bytes()))
}

/// A token as its file spells it, for `SpellBytes`.
pub fn spelled(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| byte_char(byte)).collect()
}

fn cleaned(text: String, cleanup: bool) -> String {
    if !cleanup {
        return text;
    }
    crate::decode::CLEANED.iter().fold(text, |text, (from, to)| text.replace(from, to))
}

fn replaced(finder: &Finder, new: &str, text: &str) -> Result<String> {
    let mut out = Vec::new();
    finder.events(text.as_bytes(), |(start, end, is_match)| {
        out.extend_from_slice(if is_match { new.as_bytes() } else { &text.as_bytes()[start..end] });
        Ok(())
    })?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

fn fallen_back(texts: Vec<String>) -> Vec<String> {
    let (mut out, mut bytes) = (Vec::new(), Vec::new());
    let flush = |bytes: &mut Vec<u8>, out: &mut Vec<String>| {
        let len = bytes.len();
        match String::from_utf8(std::mem::take(bytes)) {
            Ok(text) if len > 0 => out.push(text),
            Ok(_) => {}
            Err(_) => out.extend(vec!["\u{fffd}".to_owned(); len]),
        }
    };
    for text in texts {
        let digits = text.strip_prefix("<0x").and_then(|rest| rest.strip_suffix('>')).filter(|_| text.len() == 6);
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => bytes.push(byte),
            None => {
                flush(&mut bytes, &mut out);
                out.push(text);
            }
        }
    }
    flush(&mut bytes, &mut out);
    out
}

fn stripped(text: &str, content: char, start: usize, stop: usize) -> String {
    let chars: Vec<char> = text.chars().collect();
    let from = chars.iter().take(start).take_while(|c| **c == content).count();
    let behind = chars[from..].iter().rev().take(stop).take_while(|c| **c == content).count();
    chars[from..chars.len() - behind].iter().collect()
}

fn bytes_of(text: &str) -> Vec<u8> {
    let byte = |c: char| match u32::from(c) {
        code @ (0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff) => u8::try_from(code).ok(),
        0x100..=0x143 => (0..=255).find(|&byte| byte_char(byte) == c),
        _ => None,
    };
    text.chars().map(byte).collect::<Option<Vec<u8>>>().unwrap_or_else(|| text.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(row: &[&str], texts: &[&str]) -> String {
        let steps = Step::read(row).expect("sound");
        let texts = texts.iter().map(|&text| text.to_owned()).collect();
        String::from_utf8_lossy(&decode(&steps, texts).expect("sound")).into_owned()
    }

    #[test]
    fn each_step_does_what_it_says() {
        assert_eq!(
            decoded(&["byte-fallback"], &["<0xC3>", "<0xA9>", "a", "<0xC3>", "<0x0a>"]),
            "é".to_owned() + "a\u{fffd}\u{fffd}"
        );
        assert_eq!(decoded(&["byte-fallback"], &["<0x+1>"]), "\u{1}");
        assert_eq!(decoded(&["fuse", "strip", " ", "1", "2"], &["  a", " ", " "]), " a");
        assert_eq!(decoded(&["strip", "a", "2", "9"], &["aaa", "a"]), "");
        assert_eq!(decoded(&["byte-level"], &["Ġa", "é", "中"]), " a\u{fffd}中");
        assert_eq!(decoded(&["byte-level", "replace", "\u{fffd}", "?"], &["é"]), "?");
        assert_eq!(decoded(&["word-piece", "##", "true"], &["a", "##b", "."]), "ab.");
        assert_eq!(decoded(&["metaspace", "_", "true"], &["_a_", "_b"]), "a b");
        assert_eq!(decoded(&["ctc", "P", "|", "true"], &["a", "a", "P", "a", "|", "b"]), "aa b");
        assert_eq!(decoded(&["end-of-word", "</w>"], &["a</w>", "b</w>"]), "a b");
        assert_eq!(decoded(&["replace-regex", "x*", "-"], &["axb"]), "-a-b-");
        assert_eq!(decoded(&["spaces"], &["a", "b"]), "a b");
        assert!(Step::read(&["strip", "ab", "1", "1"]).is_err() && Step::read(&["word-piece"]).is_err());
    }
}
