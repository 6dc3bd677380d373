"""subword: train, run, check and explain subword tokenizers."""

from ._core import __version__
from .counting import count_pieces
from .counts import CountTable
from .encoding import Chat, Encoding, Padded, Ragged
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
    Digits,
    ExtraToken,
    Lowercase,
    MatchTokens,
    Normalize,
    PrefixSpace,
    Spec,
    Split,
    SplitRegex,
    Template,
    Vocab,
)
from .tokenizer import Changed, Chunk, StreamDecoder, Tokenizer, load
from .training import PRESETS, train

__all__ = [
    "BPE",
    "PRESETS",
    "Changed",
    "Chat",
    "Chunk",
    "CountTable",
    "Decode",
    "Digits",
    "Encoding",
    "ExtraToken",
    "FormatError",
    "InternalError",
    "Lowercase",
    "MatchTokens",
    "Normalize",
    "Padded",
    "PrefixSpace",
    "Ragged",
    "Remap",
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
    "UnknownTokenError",
    "Vocab",
    "__version__",
    "count_pieces",
    "load",
    "train",
]
