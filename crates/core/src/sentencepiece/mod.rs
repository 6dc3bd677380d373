//! What SentencePiece does with a text before its models see it ([`normalize`], with the rules of a [`charsmap`]), and
//! its kind of byte-pair encoding ([`bpe`]) with its trainer ([`learn`]); and where texts can be cut before either has
//! seen them ([`cuts`]).

pub mod bpe;
pub mod charsmap;
pub mod cuts;
pub mod double_array;
pub mod hf;
pub mod learn;
pub mod lookup;
pub mod neighbours;
pub mod normalize;
pub mod scan;
