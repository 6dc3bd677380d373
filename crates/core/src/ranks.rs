//! Lines of a `.tiktoken` file: an entry in base64, white space, and its rank in decimal digits.

use crate::hash::{hash, IndexTable};

/// Entries in order of their ranks, packed as `Vocab` takes them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ranks {
    pub pieces: Vec<u8>,
    pub offsets: Vec<u64>,
    pub ids: Vec<u32>,
    /// The rank of the empty entry, if there is one. It is not among the others.
    pub empty: Option<u32>,
}

/// What is wrong with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// Not two fields.
    Fields,
    Base64,
    Rank,
    /// The rank, or the entry, stands in an earlier line, too.
    RankAgain(usize),
    EntryAgain(usize),
}

impl Problem {
    /// Its name, and the earlier line that is repeated.
    pub fn name(self) -> (&'static str, Option<usize>) {
        match self {
            Self::Fields => ("fields", None),
            Self::Base64 => ("base64", None),
            Self::Rank => ("rank", None),
            Self::RankAgain(line) => ("rank again", Some(line)),
            Self::EntryAgain(line) => ("entry again", Some(line)),
        }
    }
}

/// The first line, counted from 1, with which something is wrong, and what.
pub type BadLine = (usize, Problem);

/// Reads a file, with ranks up to `most`. That no entry stands there twice is looked at only if `check` says so.
///
/// # Errors
///
/// The first line that cannot be read, or repeats something.
pub fn read(data: &[u8], most: u32, check: bool) -> Result<Ranks, BadLine> {
    let data = data.strip_prefix(b"\xef\xbb\xbf").unwrap_or(data);
    let mut ranks = Ranks { offsets: vec![0], ..Ranks::default() };
    ranks.pieces.reserve(data.len() / 2); // some 18 bytes a line, of them 7 of the entry
    ranks.offsets.reserve(data.len() / 16);
    ranks.ids.reserve(data.len() / 16);
    let mut rest = data;
    let plain = std::iter::from_fn(|| ranks.read_plain_line(&mut rest, most)).count();
    let wrong = lines(rest).find_map(|(number, line)| Some((plain + number, ranks.read_line(line, most).err()?)));
    // What is wrong with the lines before it goes first.
    let entry = if check || wrong.is_some() { ranks.entry_again() } else { None };
    let again = match (ranks.rank_again(), entry) {
        (Some(rank), Some(entry)) if entry.0 < rank.0 => Some((entry, Problem::EntryAgain as fn(usize) -> Problem)),
        (Some(rank), _) => Some((rank, Problem::RankAgain as fn(usize) -> Problem)),
        (None, entry) => entry.map(|entry| (entry, Problem::EntryAgain as fn(usize) -> Problem)),
    };
    if let Some(((at, first), problem)) = again {
        let numbers = || lines(data).filter(|(_, line)| !field(line, 0).0.is_empty()).map(|(number, _)| number);
        let number = |at| numbers().nth(at).unwrap_or_default();
        return Err((number(at), problem(number(first))));
    }
    match wrong {
        Some(bad) => Err(bad),
        None => Ok(ranks.sorted()),
    }
}

/// Lines, and their numbers from 1.
fn lines(data: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut rest = data;
    let lines = std::iter::from_fn(move || {
        let len = rest.iter().position(|&byte| byte == b'\n' || byte == b'\r').unwrap_or(rest.len());
        let (line, end) = rest.split_at(len);
        rest = end.strip_prefix(b"\r\n").or_else(|| end.get(1..)).unwrap_or_default();
        (!line.is_empty() || !end.is_empty()).then_some(line)
    });
    (1..).zip(lines)
}

/// The next field of a line, and where it ends.
fn field(line: &[u8], from: usize) -> (&[u8], usize) {
    let is_space = |byte: u8| matches!(byte, b' ' | b'\t' | 0x0b | 0x0c);
    let start = line[from..].iter().position(|&byte| !is_space(byte)).map_or(line.len(), |at| from + at);
    let end = line[start..].iter().position(|&byte| is_space(byte)).map_or(line.len(), |at| start + at);
    (&line[start..end], end)
}

/// The methods are for entries in the order of the file, and name them by their place in it.
impl Ranks {
    fn read_line(&mut self, line: &[u8], most: u32) -> Result<(), Problem> {
        let (entry, end) = field(line, 0);
        if entry.is_empty() {
            return Ok(());
        }
        let (rank, end) = field(line, end);
        if rank.is_empty() || !field(line, end).0.is_empty() {
            return Err(Problem::Fields);
        }
        if entry != b"=" && !decode(entry, &mut self.pieces) {
            return Err(Problem::Base64);
        }
        let digit = |value: u64, &digit: &u8| digit.is_ascii_digit().then(|| value * 10 + u64::from(digit - b'0'));
        let value = if rank.len() <= 10 { rank.iter().try_fold(0, digit) } else { None };
        self.ids.push(value.and_then(|value| u32::try_from(value).ok()).filter(|&id| id <= most).ok_or(Problem::Rank)?);
        self.offsets.push(self.pieces.len() as u64);
        Ok(())
    }

    /// Reads a line of the form that nearly all have: base64, a space, digits and a newline. None, and nothing, if the
    /// next is of another form.
    #[inline]
    fn read_plain_line(&mut self, rest: &mut &[u8], most: u32) -> Option<()> {
        let (data, len) = (*rest, self.pieces.len());
        let mut at = 0;
        loop {
            let four = data.get(at..at + 4)?;
            let digits = [
                DIGITS[four[0] as usize],
                DIGITS[four[1] as usize],
                DIGITS[four[2] as usize],
                DIGITS[four[3] as usize],
            ];
            if digits.contains(&NO_DIGIT) {
                break;
            }
            let bits = digits.iter().fold(0u32, |bits, &digit| bits << 6 | u32::from(digit)).to_be_bytes();
            self.pieces.extend_from_slice(&bits[1..]);
            at += 4;
        }
        if data[at] != b' ' {
            at += 4;
            if data.get(at) != Some(&b' ') || !decode(&data[at - 4..at], &mut self.pieces) {
                self.pieces.truncate(len);
                return None;
            }
        }
        let digits = data[at + 1..].iter().take(11).take_while(|byte| byte.is_ascii_digit()).count();
        let (rank, end) = data[at + 1..].split_at(digits);
        let value = rank.iter().fold(0, |value, &digit| value * 10 + u64::from(digit - b'0'));
        let is_plain = matches!(digits, 1..=10) && end.first() == Some(&b'\n') && value <= most.into();
        if !is_plain || self.pieces.len() == len {
            self.pieces.truncate(len);
            return None;
        }
        self.ids.push(value as u32);
        self.offsets.push(self.pieces.len() as u64);
        *rest = &end[1..];
        Some(())
    }

    fn piece(&self, at: usize) -> &[u8] {
        &self.pieces[self.offsets[at] as usize..self.offsets[at + 1] as usize]
    }

    /// The first entry that an earlier one is equal to, and that.
    fn entry_again(&self) -> Option<(usize, usize)> {
        let mut table = IndexTable::with_capacity(self.ids.len());
        (0..self.ids.len()).find_map(|at| {
            let piece = self.piece(at);
            let first = table.find_or_add(hash(piece), at as u32, |other| self.piece(other as usize) == piece)?;
            Some((at, first as usize))
        })
    }

    /// The first entry with the rank of an earlier one, and that.
    fn rank_again(&self) -> Option<(usize, usize)> {
        let order = self.order()?;
        let same = order.chunk_by(|&a, &b| self.ids[a] == self.ids[b]).filter(|same| same.len() > 1);
        same.map(|same| (same[1], same[0])).min()
    }

    /// Entries by rank, if that is not the order in which they stand.
    fn order(&self) -> Option<Vec<usize>> {
        if self.ids.windows(2).all(|pair| pair[0] < pair[1]) {
            return None;
        }
        let mut order: Vec<usize> = (0..self.ids.len()).collect();
        order.sort_by_key(|&at| self.ids[at]);
        Some(order)
    }

    fn sorted(self) -> Self {
        let order = self.order();
        if order.is_none() && self.offsets.windows(2).all(|pair| pair[0] < pair[1]) {
            return self;
        }
        let mut ranks = Self { offsets: vec![0], ..Self::default() };
        for at in order.unwrap_or_else(|| (0..self.ids.len()).collect()) {
            if self.piece(at).is_empty() {
                ranks.empty = Some(self.ids[at]);
                continue;
            }
            ranks.pieces.extend_from_slice(self.piece(at));
            ranks.offsets.push(ranks.pieces.len() as u64);
            ranks.ids.push(self.ids[at]);
        }
        ranks
    }
}

const NO_DIGIT: u8 = 0xff;

/// The value of each digit of base64 (RFC 4648).
const DIGITS: [u8; 256] = {
    let (mut digits, mut at) = ([NO_DIGIT; 256], 0);
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    while at < alphabet.len() {
        digits[alphabet[at] as usize] = at as u8;
        at += 1;
    }
    digits
};

/// Appends what base64 with its padding stands for; false if it is none.
fn decode(text: &[u8], out: &mut Vec<u8>) -> bool {
    let padding = text.iter().rev().take_while(|&&byte| byte == b'=').count();
    if !text.len().is_multiple_of(4) || padding > 2 {
        return false;
    }
    let mut bad = 0;
    let mut bits = |four: &[u8]| {
        four.iter().fold(0u32, |bits, &digit| {
            let value = DIGITS[digit as usize];
            bad |= value;
            bits << 6 | u32::from(value)
        })
    };
    let (whole, rest) = text.split_at(text.len() - if padding > 0 { 4 } else { 0 });
    for four in whole.chunks_exact(4) {
        let [_, a, b, c] = bits(four).to_be_bytes();
        out.extend_from_slice(&[a, b, c]);
    }
    if padding > 0 {
        let bytes = (bits(&rest[..4 - padding]) << (8 + 6 * padding)).to_be_bytes();
        out.extend_from_slice(&bytes[..3 - padding]);
    }
    bad != NO_DIGIT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_in_any_order_are_entries_by_rank() {
        let ranks = read(b"\xef\xbb\xbfYWI= 7\r\n\r\n \tYQ==\x0c2 \rIGFi 300\n= 5", 300, true).unwrap();
        assert_eq!((&ranks.pieces[..], &ranks.ids[..], ranks.empty), (&b"aab ab"[..], &[2, 7, 300][..], Some(5)));
        assert_eq!(ranks.offsets, [0, 1, 3, 6]);
        assert_eq!(read(b"", 9, true).unwrap(), Ranks { offsets: vec![0], ..Ranks::default() });
    }

    #[test]
    fn the_first_bad_line_is_named() {
        for (data, bad) in [
            ("YQ== 1\nYg==", (2, Problem::Fields)),
            ("YQ== 1 2", (1, Problem::Fields)),
            ("\nYQ= 1", (2, Problem::Base64)),
            ("Y=Q= 1", (1, Problem::Base64)),
            ("A=== 1", (1, Problem::Base64)),
            ("==== 1", (1, Problem::Base64)),
            ("Y\u{e9}Q 1", (1, Problem::Base64)),
            ("YQ== -1", (1, Problem::Rank)),
            ("YQ== 00000000001", (1, Problem::Rank)),
            ("YQ== 10", (1, Problem::Rank)),
            ("YQ== 1\nYg== 1\nYQ== 2\n!", (2, Problem::RankAgain(1))),
            ("YQ== 1\n\nYQ== 2\nYg== 1\n!", (3, Problem::EntryAgain(1))),
            ("YQ== 1\nYQ== 1\n", (2, Problem::RankAgain(1))),
            ("YQ== 3\nYg== 2\nYw== 2\nZA== 3", (3, Problem::RankAgain(2))),
        ] {
            assert_eq!(read(data.as_bytes(), 9, true), Err(bad), "{data:?}");
        }
    }

    #[test]
    fn base64_is_decoded_whatever_its_length() {
        for len in 0..20 {
            let bytes: Vec<u8> = (0..len).map(|at| (at * 37 + 250) as u8).collect();
            let mut text = String::new();
            for three in bytes.chunks(3) {
                let bits =
                    three.iter().fold(0u32, |bits, &byte| bits << 8 | u32::from(byte)) << (8 * (3 - three.len()));
                let digit = |at: usize| {
                    let value = (bits >> (18 - 6 * at) & 63) as u8;
                    DIGITS.iter().position(|&digit| digit == value).unwrap() as u8 as char
                };
                text.extend((0..4).map(|at| if at <= three.len() { digit(at) } else { '=' }));
            }
            let mut out = b"x".to_vec();
            assert!(decode(text.as_bytes(), &mut out), "{text}");
            assert_eq!(&out[1..], bytes);
        }
    }
}
