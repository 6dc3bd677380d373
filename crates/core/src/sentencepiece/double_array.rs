//! Writing the table of a [`super::charsmap`]. Nodes with the same rest are one: Unicode's rules are hundreds of thousands,
//! and most share their ends.

use std::collections::HashMap;

use crate::error::{Error, Result};

/// A byte leads to a node, by its number. In front of them 0, with the value, if a key ends here.
type Node = Vec<(u8, u32)>;

const BLOCK: usize = 256;
/// So many units a unit can point across.
const MOST: usize = 1 << 21;

const LEAF: u32 = 1 << 31;
const NONE: u32 = u32::MAX;

/// The units for keys, which are sorted and all different, none of them empty or with a zero byte; each with its value.
pub fn units(keys: &[(&[u8], u32)]) -> Result<Vec<u32>> {
    let is_sound = keys.iter().all(|(key, value)| !key.is_empty() && !key.contains(&0) && *value < LEAF);
    if !is_sound || keys.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
        return Err(Error::value("the keys of a table must be sorted, different, and without zero bytes"));
    }
    let (nodes, root) = nodes(keys);
    let mut room = Room::default();
    room.grow()?;
    room.is_taken[0] = true;
    room.is_base[0] = true; // SentencePiece takes a root without an offset for damage
    let mut bases = vec![NONE; nodes.len()];
    let mut open = vec![root];
    let mut next = 0;
    let mut is_open = vec![false; nodes.len()];
    while let Some(&number) = open.get(next) {
        next += 1;
        let node = &nodes[number as usize];
        bases[number as usize] = room.place(node)? as u32;
        for &(_, child) in node.iter().filter(|child| child.0 != 0) {
            if !std::mem::replace(&mut is_open[child as usize], true) {
                open.push(child);
            }
        }
    }
    let mut units = vec![LEAF; room.is_taken.len()];
    units[0] = bases[root as usize] << 10;
    for number in open {
        let base = bases[number as usize];
        for &(label, child) in &nodes[number as usize] {
            let at = base ^ u32::from(label);
            units[at as usize] = match label {
                0 => LEAF | child,
                _ => {
                    let ends = nodes[child as usize].first().is_some_and(|first| first.0 == 0);
                    (at ^ bases[child as usize]) << 10 | u32::from(ends) << 8 | u32::from(label)
                }
            };
        }
    }
    Ok(units)
}

fn nodes(keys: &[(&[u8], u32)]) -> (Vec<Node>, u32) {
    let mut numbers: HashMap<Node, u32> = HashMap::new();
    let mut nodes: Vec<Node> = Vec::new();
    let mut number_of = |node: Node| {
        *numbers.entry(node).or_insert_with_key(|node| {
            nodes.push(node.clone());
            nodes.len() as u32 - 1
        })
    };
    // The children of each node on the way to the last key.
    let mut path: Vec<Node> = vec![Node::new()];
    let mut last: &[u8] = &[];
    for &(key, value) in keys {
        let shared = last.iter().zip(key).take_while(|(a, b)| a == b).count();
        close(&mut path, last, shared, &mut number_of);
        path.resize(key.len() + 1, Node::new());
        path[key.len()].push((0, value));
        last = key;
    }
    close(&mut path, last, 0, &mut number_of);
    let root = number_of(path.pop().unwrap_or_default());
    (nodes, root)
}

/// Gives a number to each node of a path that lies deeper than `depth`.
fn close(path: &mut Vec<Node>, last: &[u8], depth: usize, number_of: &mut impl FnMut(Node) -> u32) {
    while path.len() > depth + 1 {
        let Some(node) = path.pop() else { return };
        let number = number_of(node);
        let parent = path.len() - 1;
        path[parent].push((last[parent], number));
    }
}

#[derive(Default)]
struct Room {
    is_taken: Vec<bool>,
    is_base: Vec<bool>,
    first_free: usize,
}

impl Room {
    fn grow(&mut self) -> Result<()> {
        let size = self.is_taken.len() + BLOCK;
        if size > MOST {
            return Err(Error::value("the rules are too many for SentencePiece's table"));
        }
        self.is_taken.resize(size, false);
        self.is_base.resize(size, false);
        Ok(())
    }

    /// Takes places for the children of a node: all at one base, which no other node has.
    fn place(&mut self, node: &Node) -> Result<usize> {
        let Some(&(first, _)) = node.first() else { return Ok(0) };
        while self.is_taken.get(self.first_free) == Some(&true) {
            self.first_free += 1;
        }
        for at in self.first_free.. {
            if at >= self.is_taken.len() {
                self.grow()?;
            }
            let base = at ^ usize::from(first);
            let is_free = |&(label, _): &(u8, u32)| !self.is_taken[base ^ usize::from(label)];
            if !self.is_taken[at] && !self.is_base[base] && node.iter().all(is_free) {
                self.is_base[base] = true;
                node.iter().for_each(|&(label, _)| self.is_taken[base ^ usize::from(label)] = true);
                return Ok(base);
            }
        }
        Ok(0)
    }
}
