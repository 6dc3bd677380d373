"""sentencepiece's processor, normalizer and trainer, on subword.

    import subword.compat.sentencepiece as spm

    sp = spm.SentencePieceProcessor(model_file="t5.model")
    sp.encode("hello world", out_type=str)

Names, arguments, results and the classes of errors are those of sentencepiece 0.2.3. What only older versions have is
there, too: `immutable_proto` and the methods that end in `AsImmutableProto` and `AsSerializedProto`,
`SampleEncodeAndScore`, `CalculateEntropy`, `SetEncodeExtraOptions`, `SetDecodeExtraOptions`, `SetVocabulary`,
`ResetVocabulary`, `LoadVocabulary` and `OverrideNormalizerSpec`. What differs, and why:

* `"proto"` gives messages of this package (`sentencepiece_pb2`), which need no protobuf: the same fields, and
  `SerializeToString()` gives the same bytes. They cannot be changed.
* Where seeds are set, the same samples are drawn again, but not those that sentencepiece draws. In BPE-dropout, merges
  are passed over at each step anew.
* Segmentations of equal score may stand in another order in `NBestEncode`.
* Training is the same for any number of threads. `train_sentencepiece` says what its models have in common with
  sentencepiece's; a Unigram is as large, and not the same.
* A lone surrogate is U+FFFD; in sentencepiece it is an error. In text that is not UTF-8, each ill-formed byte counts as
  a character where places are in characters.
* Errors say more, and all are a `SubwordError`, too. A processor without a model refuses calls that need one, where
  sentencepiece gives 0 or an empty string.
* `ParallelEncode` gives what `Encode` gives, whatever `chunk_len` is. Nothing is logged, so `SetMinLogLevel` and
  `logstream` have no meaning; `SetNBestTimeout` and `SetDataDir` have none either.
* Not there: `ConvertToFlatbuffer`, the module `sentencepiece_model_pb2`, the options `seed_sentencepieces_file` and
  `auto_character_coverage` of training, models without an unknown piece, and pieces of a model of merges that are not
  used (which `SetVocabulary` would make).
"""

from __future__ import annotations

from typing import Any

from . import sentencepiece_pb2
from .errors import RefusedError
from .model import randomness
from .normalizer import SentencePieceNormalizer
from .processor import SentencePieceProcessor, ThreadPool
from .trainer import SentencePieceTrainer

__all__ = [
    "ConvertToFlatbuffer",
    "SentencePieceNormalizer",
    "SentencePieceProcessor",
    "SentencePieceTrainer",
    "SetDataDir",
    "SetMinLogLevel",
    "SetNBestTimeout",
    "SetRandomGeneratorSeed",
    "ThreadPool",
    "convert_to_flatbuffer",
    "sentencepiece_pb2",
    "set_data_dir",
    "set_min_log_level",
    "set_nbest_timeout",
    "set_random_generator_seed",
]

__version__ = "0.2.3"
"""The version of sentencepiece whose names these are."""


def SetRandomGeneratorSeed(seed: int) -> None:
    """Draw the same samples from here on, each time that this is called with the same seed."""
    randomness.seed(int(seed))


def SetMinLogLevel(v: int) -> None:
    """Taken, and without meaning: nothing is logged here."""


def SetNBestTimeout(timeout: int) -> None:
    """Taken, and without meaning: the best segmentations are found in a time that does not explode."""


def SetDataDir(data_dir: str) -> None:
    """Taken, and without meaning: no file is needed here."""


def ConvertToFlatbuffer(*args: Any, **kwargs: Any) -> Any:
    """Not there: nothing here reads such files. `subword.formats.save` writes others.

    Raises:
        RuntimeError: always.
    """
    raise RefusedError("FlatBuffers models (.spm.fb) are not written here; subword.formats.save writes other formats")


set_random_generator_seed = SetRandomGeneratorSeed
set_min_log_level = SetMinLogLevel
set_nbest_timeout = SetNBestTimeout
set_data_dir = SetDataDir
convert_to_flatbuffer = ConvertToFlatbuffer
