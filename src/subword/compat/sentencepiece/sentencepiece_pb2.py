"""What sentencepiece returns as messages: the same fields and the same bytes, without protobuf, and immutable.

Strings that are not UTF-8 are bytes, as protobuf has them. `SerializeToString()` gives the bytes that protobuf would
write, so whoever needs its own classes can parse them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar, TypeVar

import numpy as np

from ...formats import wire
from ...formats.wire import Field, Message, Table

PIECE: Table = {
    1: Field("piece", "bytes", b""),
    2: Field("id", "int", 0),
    3: Field("surface", "bytes", b""),
    4: Field("begin", "int", 0),
    5: Field("end", "int", 0),
}
TEXT: Table = {
    1: Field("text", "bytes", b""),
    2: Field("pieces", "message", repeated=True, table=PIECE),
    3: Field("score", "float", 0.0),
}
NBEST: Table = {1: Field("nbests", "message", repeated=True, table=TEXT)}

FIELDS = {"piece", "id", "begin", "end"}
"""What each piece has that a call gives."""

Own = TypeVar("Own", bound="_View")


class _View:
    """A message: equal where its bytes are."""

    __slots__ = ("_message",)
    TABLE: ClassVar[Table] = {}

    def __init__(self, message: Message | None = None) -> None:
        self._message = Message(self.TABLE) if message is None else message

    def SerializeToString(self) -> bytes:
        """The message as protobuf writes it."""
        return wire.write(self._message)

    SerializeAsString = SerializeToString

    @classmethod
    def FromString(cls: type[Own], data: bytes) -> Own:
        """The message that some bytes hold.

        Raises:
            FormatError: they are no such message.
        """
        return cls(wire.read(data, cls.TABLE, cls.__name__))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return self.SerializeToString() == other.SerializeToString()

    def __hash__(self) -> int:
        return hash(self.SerializeToString())

    def __reduce__(self) -> Any:
        return type(self).FromString, (self.SerializeToString(),)

    def __repr__(self) -> str:
        return "\n".join(_lines(self._message))

    def _views(self, name: str, kind: type[Own]) -> list[Own]:
        return [kind(part) for part in getattr(self._message, name)]


def _lines(message: Message) -> list[str]:
    """As protobuf prints it."""
    lines = []
    for own in message.table.values():
        value = message.values.get(own.name)
        for one in (value or []) if own.repeated else [] if value is None else [value]:
            if own.kind == "message":
                lines += [f"{own.name} {{", *(f"  {line}" for line in _lines(one)), "}"]
            else:
                lines.append(f'{own.name}: "{_shown(one)}"' if own.kind == "bytes" else f"{own.name}: {one}")
    return lines


def _shown(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace").replace('"', '\\"').replace("\n", "\\n")


def _string(data: bytes) -> Any:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


class SentencePiece(_View):
    """One piece of a text, and where it is in it: `begin` and `end`, in the unit of the call that gave it."""

    __slots__ = ()
    TABLE = PIECE

    @property
    def piece(self) -> str:
        """The piece as the model spells it."""
        return _string(self._message.piece)  # type: ignore[no-any-return]

    @property
    def piece_as_bytes(self) -> bytes:
        """The same as bytes."""
        return bytes(self._message.piece)

    @property
    def surface(self) -> str:
        """What of the text it stands for."""
        return _string(self._message.surface)  # type: ignore[no-any-return]

    @property
    def surface_as_bytes(self) -> bytes:
        """The same as bytes."""
        return bytes(self._message.surface)

    @property
    def id(self) -> int:
        """Its id."""
        return int(self._message.id)

    @property
    def begin(self) -> int:
        """Where it starts."""
        return int(self._message.begin)

    @property
    def end(self) -> int:
        """Where it ends."""
        return int(self._message.end)


class SentencePieceText(_View):
    """A text and its pieces."""

    __slots__ = ()
    TABLE = TEXT

    @property
    def text(self) -> str:
        """The text."""
        return _string(self._message.text)  # type: ignore[no-any-return]

    @property
    def text_as_bytes(self) -> bytes:
        """The same as bytes."""
        return bytes(self._message.text)

    @property
    def pieces(self) -> list[SentencePiece]:
        """Its pieces, in their order."""
        return self._views("pieces", SentencePiece)

    def SerializeToString(self) -> bytes:
        """The message as protobuf writes it: what `wire.write` gives, in less time, as there are many pieces."""
        values = self._message.values
        head = b"\n" + _number(len(values["text"])) + values["text"] if "text" in values else b""
        parts = [head]
        for piece in self._message.pieces:
            data = _piece(piece.values) if not piece.unknown and piece.values.keys() >= FIELDS else wire.write(piece)
            parts += (b"\x12", _number(len(data)), data)
        rest = {name: value for name, value in values.items() if name == "score"}
        return b"".join([*parts, wire.write(Message(TEXT, rest, self._message.unknown))])

    SerializeAsString = SerializeToString

    @property
    def score(self) -> float:
        """The score of this segmentation, where the call gives one."""
        return float(self._message.score)


class NBestSentencePieceText(_View):
    """Several segmentations of a text."""

    __slots__ = ()
    TABLE = NBEST

    @property
    def nbests(self) -> list[SentencePieceText]:
        """The segmentations."""
        return self._views("nbests", SentencePieceText)


def _piece(values: dict[str, Any]) -> bytes:
    """A piece that has all fields, but perhaps no surface."""
    piece, surface = values["piece"], values.get("surface")
    data: bytes = b"\n" + _number(len(piece)) + piece + b"\x10" + _number(values["id"])
    if surface is not None:
        data += b"\x1a" + _number(len(surface)) + surface
    return data + b" " + _number(values["begin"]) + b"(" + _number(values["end"])


@lru_cache(1 << 14)
def _number(value: int) -> bytes:
    return wire.varint_bytes(value)


def text_of(text: bytes, rows: list[dict[str, Any]], score: float | None = None) -> SentencePieceText:
    """A message of the fields of each piece."""
    values: dict[str, Any] = {"text": text, "pieces": [Message(PIECE, row) for row in rows]}
    if score is not None:
        values["score"] = float(np.float32(score))
    return SentencePieceText(Message(TEXT, values))


def nbest_of(texts: list[SentencePieceText]) -> NBestSentencePieceText:
    """A message of several."""
    return NBestSentencePieceText(Message(NBEST, {"nbests": [text._message for text in texts]}))


def in_characters(text: SentencePieceText) -> SentencePieceText:
    """The same with places in characters of the text instead of bytes."""
    if text.text_as_bytes.isascii():
        return text
    count = characters_before(text.text_as_bytes)
    rows = [
        {name: count[value] if name in ("begin", "end") else value for name, value in piece._message.values.items()}
        for piece in text.pieces
    ]
    score = text._message.values.get("score")
    return text_of(text.text_as_bytes, rows, score)


def characters_before(data: bytes) -> list[int]:
    """For each byte, and for the end, how many characters start before it. Each ill-formed byte is one."""
    text = data.decode("utf-8", "surrogateescape")
    counts: list[int] = []
    for number, char in enumerate(text):
        counts += [number] * len(char.encode("utf-8", "surrogateescape"))
    return [*counts, len(text)]
