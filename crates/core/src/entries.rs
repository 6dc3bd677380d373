//! The vocabulary and the merges of a file that spells them as text, packed: the large members of a `tokenizer.json`,
//! or a `vocab.json` with its `merges.txt`.
//!
//! Only files in which nothing is unusual are read here. For others there is None, and whoever asked reads them in a way
//! that says what is wrong.

use std::collections::HashSet;
use std::ops::Range;

use crate::json::Reader;
use crate::vocab::{Token, Vocab};

/// How tokens are spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// As bytes in GPT-2's alphabet of visible characters.
    Alphabet,
    /// As they are.
    Plain,
}

pub struct Entries {
    /// The tokens that spell something, by id.
    pub vocab: Vocab,
    /// Where each starts and the last ends.
    pub offsets: Vec<u64>,
    /// The others, and their ids.
    pub others: Vec<(String, u32)>,
    /// Pairs of ids, the first to be merged first.
    pub merges: Vec<[u32; 2]>,
    /// What each of them makes.
    pub made: Vec<Token>,
    /// Whether merges join or make an entry, for each.
    pub merged: Vec<bool>,
}

/// The members `vocab` and `merges` of a `model`: where they are, and what they hold.
pub struct Members {
    pub vocab: Range<usize>,
    pub merges: Range<usize>,
    pub entries: Entries,
}

impl Members {
    /// From a whole `tokenizer.json`; of the rest nothing is looked at. Ids go up to `most`.
    pub fn read(data: &[u8], most: u32, spelling: Spelling) -> Option<Self> {
        let (mut models, mut vocab, mut merges) = (0, None, None);
        let mut root = Reader::new(data)?;
        root.object(|reader, key| {
            if key != b"model" {
                return reader.skip().map(drop);
            }
            models += 1;
            reader.object(|reader, key| {
                reader.peek()?;
                let start = reader.at();
                match (key, &vocab) {
                    (b"vocab", None) => {
                        let read = Entries::read_vocab(reader, most, spelling)?;
                        vocab = Some((start..reader.at(), read));
                        Some(())
                    }
                    (b"merges", _) if merges.is_none() => {
                        let read = match &vocab {
                            Some((_, entries)) => Some(Merges::read(reader, entries, spelling)?),
                            None => reader.skip().map(|_| None)?,
                        };
                        merges = Some((start..reader.at(), read));
                        Some(())
                    }
                    (b"vocab" | b"merges", _) => None, // for a second time
                    _ => reader.skip().map(drop),
                }
            })
        })?;
        let ((vocab, mut entries), (merges, read)) = (vocab?, merges?);
        let read = match read {
            Some(read) => read,
            None => Merges::read(&mut root.at_place(merges.start), &entries, spelling)?,
        };
        entries.take(read);
        (models == 1).then_some(Self { vocab, merges, entries })
    }
}

impl Entries {
    /// From a `vocab.json` and the lines of its `merges.txt`.
    pub fn read(vocab: &[u8], lines: &[u8], most: u32) -> Option<Self> {
        let mut reader = Reader::new(vocab)?;
        let mut entries = Self::read_vocab(&mut reader, most, Spelling::Alphabet)?;
        if reader.peek().is_some() {
            return None;
        }
        let lines = std::str::from_utf8(lines).ok()?;
        let lines = lines.strip_prefix('\u{feff}').unwrap_or(lines);
        let version =
            lines.split_inclusive('\n').next().filter(|line| line.starts_with("#version:")).unwrap_or_default();
        let mut merges = Merges::new(&entries);
        for line in lines[version.len()..].split_inclusive('\n') {
            let line = line.strip_suffix('\n').unwrap_or(line);
            merges.add_line(&entries, line.strip_suffix('\r').unwrap_or(line).as_bytes(), Spelling::Alphabet)?;
        }
        merges.look_up(&entries)?;
        entries.take(merges);
        Some(entries)
    }

    /// An object of tokens and their ids.
    fn read_vocab(reader: &mut Reader<'_>, most: u32, spelling: Spelling) -> Option<Self> {
        let (mut pieces, mut offsets, mut ids) = (Vec::new(), vec![0], Vec::new());
        let (mut others, mut other_ids) = (Vec::new(), Vec::new());
        let (mut last, mut in_order) = (None, true);
        reader.object(|reader, token| {
            let spelled = spell(token, spelling, &mut pieces);
            let other = if spelled { None } else { Some(std::str::from_utf8(token).ok()?.to_owned()) };
            let id = reader.number(most)?;
            in_order = in_order && last < Some(id);
            last = Some(id);
            match other {
                Some(other) => {
                    others.push((other, id));
                    other_ids.push(id);
                }
                None if pieces.len() as u64 == *offsets.last()? => return None, // an empty token
                None => {
                    offsets.push(pieces.len() as u64);
                    ids.push(id);
                }
            }
            Some(())
        })?;
        if !in_order {
            let mut order: Vec<usize> = (0..ids.len()).collect();
            order.sort_unstable_by_key(|&at| ids[at]);
            let piece = |&at: &usize| &pieces[offsets[at] as usize..offsets[at + 1] as usize];
            let sorted: Vec<u8> = order.iter().flat_map(piece).copied().collect();
            let mut ends = vec![0];
            ends.extend(order.iter().scan(0, |end, at| {
                *end += piece(at).len() as u64;
                Some(*end)
            }));
            ids = order.iter().map(|&at| ids[at]).collect();
            (pieces, offsets) = (sorted, ends);
        }
        // What stands twice is refused: an entry or an id by `Vocab`, and the same of the others here.
        let names: HashSet<&str> = others.iter().map(|(other, _)| &**other).collect();
        let is_taken = |id: &u32| ids.binary_search(id).is_ok();
        other_ids.sort_unstable();
        if names.len() < others.len() || other_ids.iter().any(is_taken) || other_ids.windows(2).any(|w| w[0] == w[1]) {
            return None;
        }
        let vocab = Vocab::new(pieces, &offsets, ids).ok()?;
        Some(Self { vocab, offsets, others, merges: Vec::new(), made: Vec::new(), merged: Vec::new() })
    }

    fn take(&mut self, Merges { pairs, made, merged, .. }: Merges) {
        (self.merges, self.made, self.merged) = (pairs, made, merged);
    }
}

/// Merges on their way into `Entries`.
struct Merges {
    pairs: Vec<[u32; 2]>,
    made: Vec<Token>,
    merged: Vec<bool>,
    /// For each entry the last merge that makes it, and for each merge the one before that makes the same.
    makes: Vec<u32>,
    before: Vec<u32>,
    /// What the last merge makes.
    whole: Token,
    /// The bytes of merges that are still to be looked up, and where each is cut and ends.
    joined: Vec<u8>,
    cuts: Vec<(usize, usize)>,
    parts: Vec<Option<Token>>,
}

/// So many merges are looked up together.
const BATCH: usize = 64;

const NONE: u32 = u32::MAX;

impl Merges {
    fn new(entries: &Entries) -> Self {
        let len = entries.vocab.len();
        let (pairs, made, before) = (Vec::with_capacity(len), Vec::with_capacity(len), Vec::with_capacity(len));
        let (merged, makes) = (vec![false; len], vec![NONE; len]);
        let (joined, cuts, parts) = (Vec::new(), Vec::new(), Vec::new());
        Self { pairs, made, merged, makes, before, whole: 0, joined, cuts, parts }
    }

    /// A list of pairs, all as `["a", "b"]` or all as `"a b"`.
    fn read(reader: &mut Reader<'_>, entries: &Entries, spelling: Spelling) -> Option<Self> {
        let (mut merges, mut buffer) = (Self::new(entries), String::new());
        let mut first = None;
        reader.list(|reader| {
            let kind = reader.peek()?;
            if *first.get_or_insert(kind) != kind {
                return None;
            }
            if kind == b'"' {
                return merges.add_line(entries, reader.string(&mut buffer)?, spelling);
            }
            reader.pass(b'[')?;
            spell(reader.string(&mut buffer)?, spelling, &mut merges.joined).then_some(())?;
            reader.pass(b',')?;
            let cut = merges.joined.len();
            spell(reader.string(&mut buffer)?, spelling, &mut merges.joined).then_some(())?;
            reader.pass(b']')?;
            merges.add(entries, cut)
        })?;
        merges.look_up(entries)?;
        Some(merges)
    }

    /// Two tokens with a space between.
    fn add_line(&mut self, entries: &Entries, line: &[u8], spelling: Spelling) -> Option<()> {
        let space = line.iter().position(|&byte| byte == b' ')?;
        let (left, right) = (&line[..space], &line[space + 1..]);
        spell(left, spelling, &mut self.joined).then_some(())?;
        let cut = self.joined.len();
        (!right.contains(&b' ') && spell(right, spelling, &mut self.joined)).then_some(())?;
        self.add(entries, cut)
    }

    /// A merge of what `joined` holds last, cut there.
    fn add(&mut self, entries: &Entries, cut: usize) -> Option<()> {
        self.cuts.push((cut, self.joined.len()));
        if self.cuts.len() < BATCH {
            return Some(());
        }
        self.look_up(entries)
    }

    fn look_up(&mut self, Entries { vocab, .. }: &Entries) -> Option<()> {
        let starts = std::iter::once(0).chain(self.cuts.iter().map(|&(_, end)| end));
        let cuts = || self.cuts.iter().zip(starts.clone());
        let parts = cuts().flat_map(|(&(cut, end), start)| [&self.joined[start..cut], &self.joined[cut..end]]);
        self.parts.clear();
        vocab.find_all(parts, &mut self.parts);
        for ((&(_, end), start), parts) in cuts().zip(self.parts.chunks_exact(2)) {
            let &[Some(left), Some(right)] = parts else { return None };
            self.whole = vocab.find_near(&self.joined[start..end], self.whole)?;
            let pair = [vocab.id(left), vocab.id(right)];
            let mut same = self.makes[self.whole as usize];
            self.before.push(same);
            while same != NONE {
                if self.pairs[same as usize] == pair {
                    return None; // for a second time
                }
                same = self.before[same as usize];
            }
            self.makes[self.whole as usize] = u32::try_from(self.pairs.len()).ok()?;
            self.pairs.push(pair);
            self.made.push(self.whole);
            [left, right, self.whole].iter().for_each(|&token| self.merged[token as usize] = true);
        }
        self.joined.clear();
        self.cuts.clear();
        Some(())
    }
}

/// Appends the bytes that a token spells; false, and nothing, if it spells none.
#[inline]
fn spell(token: &[u8], spelling: Spelling, out: &mut Vec<u8>) -> bool {
    if spelling == Spelling::Plain {
        out.extend_from_slice(token);
        return true;
    }
    let start = out.len();
    let mut rest = token;
    loop {
        let (char, after) = match *rest {
            [] => return true,
            [byte @ ..0x80, ref after @ ..] => (usize::from(byte), after),
            [lead @ ..0xc6, trail, ref after @ ..] => {
                (usize::from(lead & 0x1f) << 6 | usize::from(trail & 0x3f), after)
            }
            _ => (CHARS, rest),
        };
        match BYTES.get(char) {
            Some(&byte) if byte != NO_BYTE => out.push(byte as u8),
            _ => {
                out.truncate(start);
                return false;
            }
        }
        rest = after;
    }
}

/// The alphabet goes up to U+0143.
const CHARS: usize = 0x144;
const NO_BYTE: u16 = u16::MAX;

/// The byte that each character of GPT-2's alphabet stands for: what Latin-1 prints for itself, and the others in order
/// from U+0100 on.
const BYTES: [u16; CHARS] = {
    let (mut bytes, mut byte, mut next) = ([NO_BYTE; CHARS], 0, 0x100);
    while byte < 0x100 {
        if matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff) {
            bytes[byte] = byte as u16;
        } else {
            bytes[next] = byte as u16;
            next += 1;
        }
        byte += 1;
    }
    bytes
};

#[cfg(test)]
mod tests {
    use super::*;

    fn read(data: &str) -> Option<Members> {
        Members::read(data.as_bytes(), 99, Spelling::Alphabet)
    }

    #[test]
    fn members_are_found_and_read_wherever_they_stand() {
        let vocab = r#"{"a": 0, "\u0062": 2, "Ġb": 3, "c": 1, "Ġ" : 7, "bc": 9, "日\n": 8}"#;
        for (merges, order) in [
            (r#"["Ġ b", "b c"]"#, [0, 1]),
            (r#"[ ["Ġ", "b"], ["\u0062" ,"c"] ]"#, [0, 1]),
            (r#"["Ġ b","b c"]"#, [1, 0]),
        ] {
            let members = [format!("\"vocab\": {vocab}"), format!("\"merges\" : {merges}\n")];
            let [first, second] = order.map(|at| &members[at]);
            for bom in ["", "\u{feff}"] {
                let data = format!(
                    "{bom}{{\"x\": [{{\"vocab\": \"}}]\\\"\"}}, 1e5], \"model\":\n{{\"y\": -0.5, {first}, {second}}}, \"z\": null}}"
                );
                let Members { vocab: at, merges: merges_at, entries } = read(&data).expect(&data);
                assert_eq!((&data[at], &data[merges_at]), (vocab, merges));
                assert_eq!(entries.vocab.packed(), (&b"acb b bc"[..], &[0, 1, 2, 3, 7, 9][..]));
                assert_eq!(entries.offsets, [0, 1, 2, 3, 5, 6, 8]);
                assert_eq!(entries.others, [("日\n".to_owned(), 8)]);
                assert_eq!(entries.merges, [[7, 2], [2, 1]]);
                assert_eq!(entries.merged, [false, true, true, true, true, true]);
            }
        }
    }

    #[test]
    fn what_is_unusual_is_left_to_others() {
        let file = |vocab: &str, merges: &str| format!(r#"{{"model": {{"vocab": {vocab}, "merges": {merges}}}}}"#);
        assert!(read(&file("{}", "[]")).is_some());
        let vocab = r#"{"a": 0, "b": 1, "ab": 2}"#;
        assert!(read(&file(vocab, r#"["a b"]"#)).is_some());
        for merges in [
            "null",
            "{}",
            r#"["a b""#,
            r#"["a b",]"#,
            r#"["ab"]"#,
            r#"["a b "]"#,
            r#"["a b", "a b"]"#,
            r#"["b a"]"#,
            r#"["a c"]"#,
            r#"[" b"]"#,
            r#"["a b", ["a", "b"]]"#,
            r#"[["a", "b", "ab"]]"#,
            r#"[["a", 1]]"#,
            "[1]",
        ] {
            assert!(read(&file(vocab, merges)).is_none(), "{merges}");
        }
        for vocab in [
            "[]",
            r#"{"a": 0"#,
            r#"{"a": 0,}"#,
            r#"{"a" 0}"#,
            r#"{"a": -1}"#,
            r#"{"a": 1.0}"#,
            r#"{"a": 1e0}"#,
            r#"{"a": 01}"#,
            r#"{"a": 100}"#,
            r#"{"a": 99999999999}"#,
            r#"{"a": "0"}"#,
            r#"{"": 0}"#,
            r#"{"a": 0, "a": 1}"#,
            r#"{"a": 0, "b": 0}"#,
            r#"{"a": 0, "日": 0}"#,
            r#"{"日": 0, "日": 1}"#,
            r#"{"日": 0, "月": 0}"#,
            r#"{"\ud800": 0}"#,
            r#"{"\ud800\u0061": 0}"#,
            r#"{"\x": 0}"#,
            r#"{"\u00g0": 0}"#,
            "{\"\n\": 0}",
            r#"{a: 0}"#,
        ] {
            assert!(read(&file(vocab, "[]")).is_none(), "{vocab}");
        }
        for data in [
            "",
            "[]",
            "{}",
            r#"{"model": null}"#,
            r#"{"model": {}}"#,
            r#"{"model": {"vocab": {}}}"#,
            r#"{"model": {"merges": []}}"#,
            r#"{"model": {"vocab": {}, "vocab": {}, "merges": []}}"#,
            r#"{"model": {"vocab": {}, "merges": [], "merges": []}}"#,
            r#"{"model": {"vocab": {}, "merges": []}, "model": {}}"#,
            r#"{"model": {"vocab": {}, "merges": []}"#,
        ] {
            assert!(read(data).is_none(), "{data}");
        }
        assert!(Members::read(b"{\"model\": {\"vocab\": {\"\xff\": 0}, \"merges\": []}}", 9, Spelling::Plain).is_none());
    }

    #[test]
    fn plain_tokens_are_what_they_say() {
        let data = r#"{"model": {"vocab": {"é": 0, "\ud83d\ude00": 1, "é😀": 2}, "merges": ["é \ud83d\uDE00"]}}"#;
        let entries = Members::read(data.as_bytes(), 9, Spelling::Plain).expect("a file").entries;
        assert_eq!(entries.vocab.packed().0, "é😀é😀".as_bytes());
        assert_eq!(entries.merges, [[0, 1]]);
    }

    #[test]
    fn lines_are_merges() {
        let vocab = br#"{"a": 0, "b": 1, "ab": 2, "aab": 5} "#;
        let read = |lines: &str| Entries::read(vocab, lines.as_bytes(), 9).map(|entries| entries.merges);
        for lines in ["a b\na ab\n", "#version: 0.2\na b\r\na ab", "\u{feff}#version: 1\na b\na ab\n"] {
            assert_eq!(read(lines), Some(vec![[0, 1], [0, 2]]), "{lines:?}");
        }
        assert_eq!(read(""), Some(vec![]));
        for lines in ["\n", "a b\n\na ab\n", "a b\n#version: 1\n", "a b a\n", "a b\na b\n", "a c\n", "ab\n"] {
            assert_eq!(read(lines), None, "{lines:?}");
        }
        assert!(Entries::read(b"{} x", b"", 9).is_none());
    }

    #[test]
    fn the_alphabet_spells_every_byte_once() {
        let mut spelled = Vec::new();
        let chars =
            ('\0'..='\u{fff}').filter(|char| spell(char.to_string().as_bytes(), Spelling::Alphabet, &mut spelled));
        let chars: String = chars.collect();
        assert!(chars.starts_with("!\"#") && chars.ends_with("łŃ") && !chars.contains('\u{ad}'));
        let mut bytes = spelled.clone();
        bytes.sort_unstable();
        assert_eq!(bytes, (0..=255).collect::<Vec<u8>>());
        assert_eq!(&spelled[188..], &[(0..=32).collect::<Vec<u8>>(), (127..=160).collect(), vec![173]].concat());
    }
}
