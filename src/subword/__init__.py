"""subword: train, run, check and explain subword tokenizers."""

from ._core import __version__
from .counting import count_pieces
from .counts import CountTable
from .encoding import Encoding, Ragged
from .errors import (
    FormatError,
    InternalError,
    SpecialTokenError,
    SubwordError,
    SubwordOSError,
    SubwordValueError,
    SubwordWarning,
    UnknownTokenError,
)
from .remap import Remap
from .spec import (
    BPE,
    Decode,
    DecodeSentencePiece,
    Digits,
    ExtraToken,
    Lowercase,
    MatchTokens,
    Normalize,
    PrefixSpace,
    ScoreBPE,
    SentencePiece,
    Spec,
    Split,
    SplitRegex,
    Template,
    Unigram,
    Vocab,
)
from .tokenizer import Changed, Chunk, StreamDecoder, Tokenizer, load
from .training import PRESETS, train
from .training_unigram import train_unigram

__all__ = [
    "BPE",
    "PRESETS",
    "Changed",
    "Chunk",
    "CountTable",
    "Decode",
    "DecodeSentencePiece",
    "Digits",
    "Encoding",
    "ExtraToken",
    "FormatError",
    "InternalError",
    "Lowercase",
    "MatchTokens",
    "Normalize",
    "PrefixSpace",
    "Ragged",
    "Remap",
    "ScoreBPE",
    "SentencePiece",
    "Spec",
    "SpecialTokenError",
    "Split",
    "SplitRegex",
    "StreamDecoder",
    "SubwordError",
    "SubwordOSError",
    "SubwordValueError",
    "SubwordWarning",
    "Template",
    "Tokenizer",
    "Unigram",
    "UnknownTokenError",
    "Vocab",
    "__version__",
    "count_pieces",
    "load",
    "train",
    "train_unigram",
]
