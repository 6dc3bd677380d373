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
    CleanText,
    Decode,
    DecodeWordPiece,
    Digits,
    ExtraToken,
    Lowercase,
    MatchTokens,
    Normalize,
    PadChinese,
    PrefixSpace,
    Spec,
    Split,
    SplitPunctuation,
    SplitRegex,
    StripAccents,
    Template,
    Vocab,
    WordPiece,
)
from .tokenizer import Changed, Chunk, StreamDecoder, Tokenizer, load
from .training import PRESETS, train

__all__ = [
    "BPE",
    "PRESETS",
    "Changed",
    "Chunk",
    "CleanText",
    "CountTable",
    "Decode",
    "DecodeWordPiece",
    "Digits",
    "Encoding",
    "ExtraToken",
    "FormatError",
    "InternalError",
    "Lowercase",
    "MatchTokens",
    "Normalize",
    "PadChinese",
    "PrefixSpace",
    "Ragged",
    "Remap",
    "Spec",
    "SpecialTokenError",
    "Split",
    "SplitPunctuation",
    "SplitRegex",
    "StreamDecoder",
    "StripAccents",
    "SubwordError",
    "SubwordOSError",
    "SubwordValueError",
    "SubwordWarning",
    "Template",
    "Tokenizer",
    "UnknownTokenError",
    "Vocab",
    "WordPiece",
    "__version__",
    "count_pieces",
    "load",
    "train",
]
