"""What calls return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .arguments import text_checked, utf8
from .model import Normalized
from .sentencepiece_pb2 import NBestSentencePieceText, SentencePieceText, characters_before, in_characters, nbest_of


def normalized(normalize: Callable[[bytes], Normalized], text: Any, with_offsets: bool) -> Any:
    """A normalized text as `Normalize` returns it."""
    found = normalize(utf8(text_checked(text)))
    is_bytes = isinstance(text, bytes)
    result: Any = found.text if is_bytes else found.text.decode()
    if not with_offsets:
        return result
    starts: list[int] = found.starts.tolist()
    if not result:
        return result, [] if is_bytes else [0]  # as sentencepiece has it of white space that is left out as a whole
    for at, byte in enumerate(found.text):  # all bytes of a character come from where the first does
        if byte & 0xC0 == 0x80 and at:
            starts[at] = starts[at - 1]
    if is_bytes:
        return result, starts
    count = characters_before(found.original)
    leads = [at for at, byte in enumerate(found.text) if byte & 0xC0 != 0x80]
    return result, [count[starts[at]] for at in [*leads, len(found.text)]]


def offset_mapping(message: SentencePieceText, return_bytes: bool | None) -> dict[str, Any]:
    """A message as a dict of lists."""
    shown = message if return_bytes else in_characters(message)
    pieces, rows = shown.pieces, [piece._message.values for piece in shown.pieces]
    return {
        "text": message.text_as_bytes if return_bytes else message.text,
        "ids": [row["id"] for row in rows],
        "pieces": [row["piece"] for row in rows] if return_bytes else [piece.piece for piece in pieces],
        "offsets": [(row["begin"], row["end"]) for row in rows],
    }


def message_as(kind: Any, found: SentencePieceText | list[SentencePieceText]) -> Any:
    """One message, or one of several texts, as the call wants it."""
    if kind == "immutable_proto":
        found = [in_characters(text) for text in found] if isinstance(found, list) else in_characters(found)
    message: SentencePieceText | NBestSentencePieceText = nbest_of(found) if isinstance(found, list) else found
    return message.SerializeToString() if kind == "serialized_proto" else message


def decoded_as(kind: Any, message: SentencePieceText, return_bytes: bool) -> Any:
    if kind in (str, bytes):
        return message.text if kind is str else message.text_as_bytes
    return offset_mapping(message, return_bytes) if kind == "offset_mapping" else message_as(kind, message)


def array_of(ids: list[int]) -> Any:
    array = np.array(ids, dtype=np.int32)
    array.setflags(write=False)
    return array[:]
