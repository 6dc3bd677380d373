//! What SentencePiece does with a text before its models see it ([`normalize`], with the rules of a [`charsmap`]), and
//! its kind of byte-pair encoding ([`bpe`]); and where texts can be cut before either has seen them ([`cuts`]).

pub mod bpe;
pub mod charsmap;
pub mod cuts;
pub mod hf;
pub mod neighbours;
pub mod normalize;
