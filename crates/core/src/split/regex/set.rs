//! Sets of characters, as ranges of code points. An ill-formed byte is a character too, with the number `ILL_FORMED`:
//! it belongs to no class, and so to every negated one.

use crate::unicode::{other_cases, ILL_FORMED};

/// Ranges (first, last), rising and neither overlapping nor adjacent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Set(Vec<(u32, u32)>);

impl Set {
    pub fn of(ranges: &[(u32, u32)]) -> Self {
        let mut sorted = ranges.to_vec();
        sorted.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(sorted.len());
        for (first, last) in sorted {
            match merged.last_mut() {
                Some(before) if first <= before.1 + 1 => before.1 = before.1.max(last),
                _ => merged.push((first, last)),
            }
        }
        Self(merged)
    }

    pub fn char(c: char) -> Self {
        Self(vec![(u32::from(c), u32::from(c))])
    }

    /// Every character, ill-formed bytes included.
    pub fn all() -> Self {
        Self(vec![(0, ILL_FORMED)])
    }

    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn contains(&self, point: u32) -> bool {
        let at = self.0.partition_point(|range| range.1 < point);
        self.0.get(at).is_some_and(|range| range.0 <= point)
    }

    pub fn union(&self, other: &Self) -> Self {
        Self::of(&[&self.0[..], &other.0[..]].concat())
    }

    pub fn negated(&self) -> Self {
        let mut gaps = Vec::with_capacity(self.0.len() + 1);
        let mut from = 0;
        for &(first, last) in &self.0 {
            if first > from {
                gaps.push((from, first - 1));
            }
            from = last + 1;
        }
        if from <= ILL_FORMED {
            gaps.push((from, ILL_FORMED));
        }
        Self(gaps)
    }

    pub fn intersection(&self, other: &Self) -> Self {
        self.negated().union(&other.negated()).negated()
    }

    pub fn is_disjoint(&self, other: &Self) -> bool {
        self.intersection(other).is_empty()
    }

    pub fn is_subset(&self, other: &Self) -> bool {
        self.is_disjoint(&other.negated())
    }

    /// With the characters that differ from its own by case alone.
    pub fn folded(&self) -> Self {
        let mut ranges = self.0.clone();
        for &(first, last) in &self.0 {
            ranges.extend(other_cases(first, last).map(|other| (other, other)));
        }
        Self::of(&ranges)
    }

    pub fn is_ascii(&self) -> bool {
        self.0.last().is_none_or(|range| range.1 < 0x80)
    }
}
