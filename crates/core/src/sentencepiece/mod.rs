//! What SentencePiece does with a text before its models see it ([`normalize`], with the rules of a [`charsmap`]), and
//! its kind of byte-pair encoding ([`bpe`]).

pub mod bpe;
pub mod charsmap;
pub mod hf;
pub mod neighbours;
pub mod normalize;
