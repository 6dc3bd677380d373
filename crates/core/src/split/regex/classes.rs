//! Characters that an expression does not tell apart are one class. Classes are small numbers, looked up in tables.

use std::collections::HashMap;

use super::parse::Node;
use super::set::Set;
use crate::unicode::{char_at, ILL_FORMED};

/// A class of characters, counted from 0; `Classes::len()` stands for the end of the text.
pub type Class = u8;

/// One bit a class, and one for the end of the text.
pub type ClassBits = [u64; 4];

/// More classes than fit are refused.
pub const MAX_CLASSES: usize = 255;

pub struct Classes {
    len: usize,
    ascii: [Class; 128],
    /// `pages[stage1[cp >> 8]][cp & 0xff]`
    stage1: Vec<u16>,
    pages: Vec<[Class; 256]>,
    ill_formed: Class,
    /// A character of each.
    samples: Vec<u32>,
}

impl Classes {
    /// The classes of an expression; None if there are too many.
    pub fn new(nodes: &[&Node]) -> Option<Self> {
        let mut sets = Vec::new();
        nodes.iter().for_each(|node| collect(node, &mut sets));
        let mut distinct: Vec<&Set> = Vec::new();
        for set in sets {
            if !distinct.contains(&set) {
                distinct.push(set);
            }
        }
        let mut starts = vec![0, ILL_FORMED];
        for (first, last) in distinct.iter().flat_map(|set| set.ranges()) {
            starts.extend([*first, *last + 1]);
        }
        starts.sort_unstable();
        starts.dedup();
        starts.retain(|&start| start <= ILL_FORMED);
        let mut samples = Vec::new();
        let mut known: HashMap<Vec<bool>, Class> = HashMap::new();
        let mut class_of = Vec::with_capacity(starts.len());
        for &start in &starts {
            let membership: Vec<bool> = distinct.iter().map(|set| set.contains(start)).collect();
            let next = known.len();
            let class = *known.entry(membership).or_insert_with(|| {
                samples.push(start);
                next as Class
            });
            if next == MAX_CLASSES {
                return None;
            }
            class_of.push(class);
        }
        let mut classes = Self {
            len: known.len(),
            ascii: [0; 128],
            stage1: Vec::with_capacity(0x1100),
            pages: Vec::new(),
            ill_formed: *class_of.last()?,
            samples,
        };
        classes.fill(&starts, &class_of);
        Some(classes)
    }

    /// Fills the tables from the code points at which the class changes.
    fn fill(&mut self, starts: &[u32], class_of: &[Class]) {
        let mut known: HashMap<[Class; 256], u16> = HashMap::new();
        let mut at = 0;
        for number in 0..0x1100u32 {
            let mut page = [0; 256];
            for (offset, class) in page.iter_mut().enumerate() {
                while starts.get(at + 1).is_some_and(|&next| next <= (number << 8) + offset as u32) {
                    at += 1;
                }
                *class = class_of[at];
            }
            if number == 0 {
                self.ascii.copy_from_slice(&page[..128]);
            }
            self.stage1.push(*known.entry(page).or_insert_with(|| {
                self.pages.push(page);
                (self.pages.len() - 1) as u16
            }));
        }
    }

    /// How many there are; also the number that stands for the end of the text.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The class of the character at `pos`, which must be inside the text, and its length.
    #[inline]
    pub fn at(&self, text: &[u8], pos: usize) -> (Class, usize) {
        let byte = text[pos];
        if byte < 0x80 {
            return (self.ascii[byte as usize], 1);
        }
        let (point, len) = char_at(text, pos);
        if point == ILL_FORMED {
            return (self.ill_formed, len);
        }
        (self.pages[self.stage1[(point >> 8) as usize] as usize][(point & 0xff) as usize], len)
    }

    /// The classes that make up a set; with `end`, the end of the text too.
    pub fn bits(&self, set: &Set, end: bool) -> ClassBits {
        let mut bits = [0; 4];
        for (class, &sample) in self.samples.iter().enumerate() {
            if set.contains(sample) {
                bits[class / 64] |= 1 << (class % 64);
            }
        }
        if end {
            bits[self.len / 64] |= 1 << (self.len % 64);
        }
        bits
    }
}

#[inline]
pub fn has(bits: &ClassBits, class: usize) -> bool {
    bits[class / 64] >> (class % 64) & 1 == 1
}

fn collect<'n>(node: &'n Node, sets: &mut Vec<&'n Set>) {
    match node {
        Node::Set(set) | Node::Next { set, .. } | Node::WordBoundary { word: set, .. } => sets.push(set),
        Node::Cat(nodes) | Node::Alt(nodes) => nodes.iter().for_each(|node| collect(node, sets)),
        Node::Repeat { node, .. } | Node::Atomic { node, .. } | Node::Look { node, .. } => collect(node, sets),
        Node::Empty | Node::Start { .. } => {}
    }
}
