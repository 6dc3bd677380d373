"""subword: train, run, check and explain subword tokenizers."""

from ._core import __version__
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
from .spec import Spec
from .tokenizer import Chunk, StreamDecoder, Tokenizer, load
from .training import train

__all__ = [
    "Chunk",
    "Encoding",
    "FormatError",
    "InternalError",
    "Ragged",
    "Spec",
    "SpecialTokenError",
    "StreamDecoder",
    "SubwordError",
    "SubwordOSError",
    "SubwordValueError",
    "SubwordWarning",
    "Tokenizer",
    "UnknownTokenError",
    "__version__",
    "load",
    "train",
]
