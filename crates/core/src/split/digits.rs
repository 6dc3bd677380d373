//! Numbers cut apart from what stands around them, and into groups.
//!
//! This is no `Pattern`: how a run is grouped from the right depends on where it ends, so a scanner that is asked for
//! one group at a time would read the rest of the run for each. Here a run is read once and handed out whole.

use super::is_number;
use crate::error::{Error, Result};
use crate::unicode::{char_at, char_len, class_at, class_before, newer_numbers};

/// How a run of numbers is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Grouping {
    /// Each alone.
    One,
    /// Up to three, from the left: `123|456|7`.
    ThreeLeft,
    /// Three from the right, so that place values line up: `1|234|567`.
    ThreeRight,
}

/// The stage `Digits`.
pub struct Digits {
    grouping: Grouping,
    /// What the Unicode version has beyond the class tables.
    newer: &'static [(u32, u32)],
}

/// What `Digits` says of a place between two characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// There is a boundary, whatever stands farther off.
    Boundary,
    /// In a run whose groups depend on where it starts or ends.
    InRun,
    /// Between characters that are no numbers: cut in two there, a stretch is what it was.
    Outside,
}

impl Digits {
    pub fn new(grouping: &str, version: &str) -> Result<Self> {
        let grouping = match grouping {
            "one" => Grouping::One,
            "three-left" => Grouping::ThreeLeft,
            "three-right" => Grouping::ThreeRight,
            _ => {
                return Err(Error::value(format!(
                    "unknown grouping of digits {grouping:?}; there are one, three-left and three-right"
                )))
            }
        };
        Ok(Self { grouping, newer: newer_numbers(version)? })
    }

    /// Gives `visit` the start and the end of each piece: the groups of a run, and what is between runs.
    pub fn split(&self, text: &[u8], mut visit: impl FnMut(usize, usize) -> Result<()>) -> Result<()> {
        let mut pos = 0;
        while pos < text.len() {
            let (end, mut left) = self.run(text, pos);
            while left > 0 {
                let group = match self.grouping {
                    Grouping::One => 1,
                    Grouping::ThreeLeft => left.min(3),
                    Grouping::ThreeRight => (left - 1) % 3 + 1,
                };
                let group_end = (0..group).fold(pos, |at, _| at + char_len(text, at));
                visit(pos, group_end)?;
                (pos, left) = (group_end, left - group);
            }
            if pos < end {
                visit(pos, end)?; // no numbers
                pos = end;
            }
        }
        Ok(())
    }

    /// The end of the run of numbers from `pos`, and how many; or of what comes before the next number, and 0.
    fn run(&self, text: &[u8], pos: usize) -> (usize, usize) {
        let (numbers, mut at, mut count) = (self.number_at(text, pos).0, pos, 0);
        while at < text.len() {
            let (number, len) = self.number_at(text, at);
            if number != numbers {
                break;
            }
            at += len;
            count += usize::from(number);
        }
        (at, count)
    }

    pub fn place(&self, text: &[u8], at: usize) -> Place {
        let before = self.number_at(text, class_before(text, at).1).0;
        match (before, self.number_at(text, at).0) {
            (false, false) => Place::Outside,
            (true, true) if self.grouping != Grouping::One => Place::InRun,
            _ => Place::Boundary,
        }
    }

    /// Whether the character at `at` is a number, and its length in bytes.
    #[inline]
    fn number_at(&self, text: &[u8], at: usize) -> (bool, usize) {
        let (class, len) = class_at(text, at);
        // Numbers newer than the tables have four bytes.
        let is_newer = || len == 4 && self.is_newer(char_at(text, at).0);
        (is_number(class) || is_newer(), len)
    }

    fn is_newer(&self, point: u32) -> bool {
        self.newer.iter().any(|&(first, last)| (first..=last).contains(&point))
    }

    /// The grouping and why it is exact, as `plan()` shows them.
    pub fn plan(&self) -> (String, &'static str) {
        match self.grouping {
            Grouping::One => ("each alone".into(), "whether a character is a number depends on it alone"),
            Grouping::ThreeLeft => {
                ("up to three, from the left".into(), "a run is read once, and counted from its start")
            }
            Grouping::ThreeRight => ("three, from the right".into(), "a run is read once, and counted from its end"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(grouping: &str, text: &str) -> Vec<String> {
        let (digits, mut out) = (Digits::new(grouping, "16.0").expect("a known grouping"), Vec::new());
        let visited = digits.split(text.as_bytes(), |from, to| {
            out.push(text[from..to].to_owned());
            Ok(())
        });
        assert!(visited.is_ok());
        out
    }

    #[test]
    fn groups_of_three_line_up_from_either_side() {
        assert_eq!(pieces("one", "a12b"), ["a", "1", "2", "b"]);
        assert_eq!(pieces("three-left", "1234567 89"), ["123", "456", "7", " ", "89"]);
        assert_eq!(pieces("three-right", "1234567 89"), ["1", "234", "567", " ", "89"]);
        assert_eq!(pieces("three-right", "٣½Ⅷ𝟎x"), ["٣", "½Ⅷ𝟎", "x"]);
    }

    #[test]
    fn a_place_that_is_a_boundary_is_one_wherever_the_text_starts_and_ends() {
        let text = "ab 12 3456 7 é٣½ x1234567";
        for (grouping, version) in [("one", "16.0"), ("three-left", "16.0"), ("three-right", "17.0")] {
            let digits = Digits::new(grouping, version).expect("a known grouping");
            let ends = |from: usize, to: usize| {
                let mut ends = Vec::new();
                let visited = digits.split(&text.as_bytes()[from..to], |_, end| {
                    ends.push(from + end);
                    Ok(())
                });
                assert!(visited.is_ok());
                ends
            };
            let places: Vec<usize> = (0..=text.len()).filter(|&at| text.is_char_boundary(at)).collect();
            for &at in &places[1..places.len() - 1] {
                for &from in places.iter().filter(|&&from| from < at) {
                    for &to in places.iter().filter(|&&to| to > at) {
                        let whole = ends(from, to);
                        let parts = [ends(from, at), ends(at, to)].concat();
                        match digits.place(text.as_bytes(), at) {
                            Place::Boundary => assert_eq!(whole, parts),
                            Place::Outside => {
                                assert!(!whole.contains(&at));
                                assert_eq!(whole, parts.into_iter().filter(|&end| end != at).collect::<Vec<_>>());
                            }
                            Place::InRun => {}
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn unknown_settings_are_refused() {
        assert!(Digits::new("two", "16.0").is_err());
        assert!(Digits::new("one", "15.0").is_err());
    }
}
