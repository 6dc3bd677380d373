"""What callers pass, checked and in one form."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from ...arguments import thread_count
from ...errors import SubwordValueError
from ...formats.wire import Message
from .errors import FileError, RefusedError, WrongTypeError

PROTOS = ("proto", "serialized_proto", "immutable_proto")
RETURN_TYPES = (int, str, bytes, "numpy", "offset_mapping", *PROTOS)

MOST = 512
"""So many best segmentations can be asked for at once."""


def return_type_of(return_type: Any, out_type: Any, default: Any) -> Any:
    """What a call is to return.

    Raises:
        SubwordValueError: both are given, or one that there is not.
    """
    if return_type is not None and out_type is not None:
        raise SubwordValueError("out_type and return_type are the same: give one of them")
    kind = default if return_type is None and out_type is None else out_type if return_type is None else return_type
    if not any(kind is known or kind == known for known in RETURN_TYPES):
        names = ", ".join(known.__name__ if isinstance(known, type) else repr(known) for known in RETURN_TYPES)
        raise SubwordValueError(f"unknown return_type {kind!r}; there are {names}")
    return kind


def threads_of(number: Any) -> int:
    """As sentencepiece takes a number of threads: below 0 for all cores, and never none."""
    number = whole("num_threads", number)
    return thread_count(None) if number < 0 else max(1, min(number, 1024))


def whole(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise WrongTypeError(f"{name} must be a whole number, not {value!r}") from None


def sample_size(size: Any) -> int:
    number = whole("nbest_size", size)
    if number > MOST:
        raise RefusedError(f"nbest_size={number} is more than {MOST}; Tokenizer.sample has no such limit")
    return number


def power(alpha: Any) -> float:
    if not isinstance(alpha, (int, float, np.floating)):
        raise WrongTypeError(f"alpha must be a number, not {alpha!r}")
    if not 0 <= alpha < 1e6:
        raise RefusedError(f"alpha must be at least 0, not {alpha!r}")
    return float(alpha)


def each(input: Any, call: Callable[[Any], Any]) -> Any:
    """The result for a text, or the results for those of a list."""
    return [call(text) for text in input] if isinstance(input, list) else call(input)


def own(value: Any, default: Any) -> Any:
    return default if value is None else value


def text_checked(text: Any) -> str | bytes:
    """A text."""
    if not isinstance(text, (str, bytes)):
        raise WrongTypeError(f"a text must be str or bytes, not {type(text).__name__}; several texts go into a list")
    return text


def utf8(text: str | bytes) -> bytes:
    """The bytes of a text. A lone surrogate, which has none, is U+FFFD, and a pair the character that it spells."""
    if isinstance(text, bytes):
        return text
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def is_sequence(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes))


def pieces_checked(pieces: Any) -> list[bytes]:
    """Pieces as bytes."""
    if not is_sequence(pieces):
        raise WrongTypeError(f"pieces must be a list of str or bytes, not {type(pieces).__name__}")
    for piece in pieces:
        if not isinstance(piece, (str, bytes)):
            raise WrongTypeError(f"pieces must be str or bytes, not {type(piece).__name__}")
    return [utf8(piece) for piece in pieces]


def ids_checked(ids: Any) -> list[int]:
    """Ids as a list of Python numbers."""
    if isinstance(ids, np.ndarray) and (ids.ndim != 1 or ids.dtype.kind not in "iu"):
        raise WrongTypeError(f"an array of ids has one dimension and whole numbers, not {ids.ndim} and {ids.dtype}")
    if not is_sequence(ids):
        raise WrongTypeError(f"ids must be whole numbers, or a sequence of them, not {type(ids).__name__}")
    try:
        return [operator.index(id) for id in (ids.tolist() if isinstance(ids, np.ndarray) else ids)]
    except TypeError:
        raise WrongTypeError("ids must be whole numbers") from None


def file_bytes(path: Any) -> bytes:
    """What a file holds."""
    if not isinstance(path, (str, os.PathLike)):
        raise WrongTypeError(f"a path must be str or os.PathLike, not {type(path).__name__}")
    try:
        with open(path, "rb") as file:
            return file.read()
    except (OSError, ValueError) as error:
        raise FileError(f"{os.fspath(path)}: {getattr(error, 'strerror', None) or error}") from error


def proto_bytes(what: str, message: Any) -> bytes:
    """The bytes of a message: as they are, or of protobuf's."""
    data = message.SerializeToString() if hasattr(message, "SerializeToString") else message
    if not isinstance(data, bytes):
        raise WrongTypeError(f"{what} must be bytes or a protobuf message, not {type(data).__name__}")
    return data


def with_flags(spec: Message, flags: dict[str, Any]) -> Message:
    """A normalizer spec with other settings."""
    values = dict(spec.values)
    for name, value in flags.items():
        if name not in ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces"):
            raise RefusedError(
                f"{name} cannot be changed: only add_dummy_prefix, remove_extra_whitespaces and escape_whitespaces can"
            )
        values[name] = bool(value)
    return Message(spec.table, values, spec.unknown)


def only_once(kwargs: dict[str, Any]) -> None:
    if "model_file" in kwargs or "model_proto" in kwargs:
        raise SubwordValueError("the model is given twice: from_file and from_proto take it as their first argument")
