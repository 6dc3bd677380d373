//! The engine room of `subword`: loops over text. It knows nothing of Python, opens no file and prints nothing.
//!
//! Text is bytes. [`unicode`] reads characters from it, [`split`] cuts it into pieces, [`pipeline`] runs the stages
//! before a model (extra tokens, normalization, splitting) with an alignment to the original bytes, a [`model`] ([`bpe`],
//! [`wordpiece`]) turns pieces into ids, [`count`] counts pieces, which merges are learned from, [`engine`] puts it
//! together, [`batch`] does it for many texts, and [`decode`] goes back.

pub mod batch;
pub mod bpe;
pub mod cache;
pub mod chars;
pub mod chunk;
pub mod count;
pub mod decode;
mod decode_steps;
pub mod ends;
pub mod engine;
pub mod entries;
pub mod error;
pub mod extra;
pub mod finder;
pub mod hash;
pub mod json;
mod letters;
pub mod limit;
pub mod longest;
pub mod lost;
pub mod lowercase;
pub mod memory;
pub mod model;
pub mod normalize;
pub mod parallel;
pub mod pieces;
pub mod pipeline;
pub mod random;
pub mod ranks;
pub mod runs;
pub mod scored;
pub mod sentencepiece;
pub mod split;
pub mod unicode;
pub mod unigram;
pub mod units;
pub mod vocab;
pub mod wordlevel;
pub mod wordpiece;
mod words;

pub use error::{Error, Kind, Result};
