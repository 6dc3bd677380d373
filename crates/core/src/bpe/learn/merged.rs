//! Learning that goes on behind merges that were learned before.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::learner::Made;
use super::{Alphabet, Learned};
use crate::bpe::rules::{Rule, Rules};
use crate::bpe::{merge, SHORT};
use crate::error::{Error, Result};

/// An alphabet and merges of it: each piece starts as what these make of it, and each merge is a symbol, too.
///
/// That is where learning stands when it has made these merges: pieces as merged by them all, in the order of the text.
/// (Symbols are then fewer and stand closer, but in the same order, which is all that a tie rule asks for.)
pub struct Merged<'a, A> {
    alphabet: &'a A,
    symbols: Vec<Arc<[u8]>>,
    rules: Rules,
}

impl<'a, A: Alphabet> Merged<'a, A> {
    /// With merges as `Learned` has them, and what they are by the ids of symbols.
    pub fn new(alphabet: &'a A, learned: &Learned) -> Result<(Self, Vec<Made>)> {
        let mut symbols = alphabet.symbols();
        let late: BTreeMap<(u32, u32), u32> = alphabet.late().into_iter().map(|(id, pair)| (pair, id)).collect();
        let mut ids: Vec<u32> = (0..(symbols.len() - late.len()) as u32).collect();
        let mut rules = Rules::with_room(learned.merges.len());
        let mut made = Vec::with_capacity(learned.merges.len());
        for (rank, (&(left, right), &count)) in learned.merges.iter().zip(&learned.counts).enumerate() {
            let (Some(&first), Some(&second)) = (ids.get(left as usize), ids.get(right as usize)) else {
                return Err(Error::value(format!("merge {rank} ({left}, {right}): there is no such entry before it")));
            };
            let pair = (first, second);
            let id = match late.get(&pair) {
                Some(&id) => id,
                None => {
                    let id = symbols.len() as u32;
                    if rules.get(first, second).is_some() {
                        return Err(Error::value(format!("merge {rank} ({left}, {right}) is there a second time")));
                    }
                    rules.add(first, second, Rule { rank: rank as u32, token: id });
                    symbols.push([&*symbols[first as usize], &*symbols[second as usize]].concat().into());
                    id
                }
            };
            ids.push(id);
            made.push(Made { pair, id, count });
        }
        Ok((Self { alphabet, symbols, rules }, made))
    }
}

impl<A: Alphabet> Alphabet for Merged<'_, A> {
    fn symbols(&self) -> Vec<Arc<[u8]>> {
        self.symbols.clone()
    }

    fn push_symbols(&self, piece: &[u8], out: &mut Vec<u32>) {
        let mut first = Vec::with_capacity(piece.len());
        self.alphabet.push_symbols(piece, &mut first);
        match first.len() <= SHORT {
            true => merge::short(first.into_iter(), &self.rules, out, |_| {}),
            false => merge::long(first.into_iter(), &self.rules, out, |_| {}),
        }
    }

    fn late(&self) -> BTreeMap<u32, (u32, u32)> {
        self.alphabet.late()
    }

    fn allows(&self, left: &[u8], right: &[u8]) -> bool {
        self.alphabet.allows(left, right)
    }

    fn marker_len(&self, token: &[u8]) -> usize {
        self.alphabet.marker_len(token)
    }
}
