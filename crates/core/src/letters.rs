//! What characters become, each by itself, through all stages that rewrite: worked out once and kept.
//!
//! Stages that look at a character alone make of a text what they make of its characters, one after the other. So does a
//! normalization that takes characters apart, where none starts with a mark that could move in front of another one.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::OnceLock;

/// Of each character of the first plane the bytes that it becomes, and above them one more than how many those are; 0
/// where that has not been worked out.
#[derive(Default)]
pub struct Letters(OnceLock<Box<[AtomicU32]>>);

const LEN_AT: u32 = 24;

/// A character that changes with what is beside it, or becomes something that does not fit.
const OTHER: u32 = 5 << LEN_AT;

/// Words of more bytes are not tried.
const LONGEST: usize = 128;

impl Letters {
    /// A number for what a character becomes: `None` if it cannot be told of the character alone.
    fn known(bytes: Option<&[u8]>) -> u32 {
        match bytes {
            Some(&[]) => 1 << LEN_AT,
            Some(&[a]) => 2 << LEN_AT | u32::from(a),
            Some(&[a, b]) => 3 << LEN_AT | u32::from_le_bytes([a, b, 0, 0]),
            Some(&[a, b, c]) => 4 << LEN_AT | u32::from_le_bytes([a, b, c, 0]),
            _ => OTHER,
        }
    }

    /// Gives `take` what a word becomes. False where that is not known: it has ill-formed bytes, or a character of which
    /// `work_out` does not tell what it becomes by itself.
    pub fn apply(&self, word: &[u8], work_out: impl Fn(char) -> Option<Vec<u8>>, take: impl FnOnce(&[u8])) -> bool {
        let all = self.0.get_or_init(|| (0..1 << 16).map(|_| AtomicU32::new(0)).collect());
        if word.len() > LONGEST {
            return false;
        }
        let (mut out, mut len) = ([0; LONGEST + 4], 0);
        let mut at = 0;
        while at < word.len() {
            let Some((c, more)) = crate::unicode::decode(&word[at..]) else { return false };
            let Some(known) = all.get(c as usize) else { return false };
            let mut found = known.load(Relaxed);
            if found == 0 {
                found = Self::known(char::from_u32(c).and_then(&work_out).as_deref());
                known.store(found, Relaxed);
            }
            if found == OTHER || len >= LONGEST {
                return false;
            }
            out[len..len + 4].copy_from_slice(&found.to_le_bytes());
            len += (found >> LEN_AT) as usize - 1;
            at += more;
        }
        take(&out[..len]);
        true
    }
}
