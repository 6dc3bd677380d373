"""Protocol Buffers as bytes: a table of fields says what a message holds; reading and writing follow it.

Only what the files of other tokenizers need. Fields that a table does not have are kept as they are.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from ..errors import FormatError

Kind: TypeAlias = Literal["int", "bool", "float", "string", "bytes", "message"]


class Field(NamedTuple):
    """A field of a message: its name and kind, and what it is where a message does not say (None: not there)."""

    name: str
    kind: Kind
    default: Any = None
    repeated: bool = False
    table: Mapping[int, Field] = {}


Table: TypeAlias = Mapping[int, Field]

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_WIRE: dict[Kind, int] = {
    "int": VARINT,
    "bool": VARINT,
    "float": FIXED32,
    "string": LENGTH,
    "bytes": LENGTH,
    "message": LENGTH,
}


@dataclass
class Message:
    """The fields that a message has, by name, and those that the table does not know, as they stand."""

    table: Table
    values: dict[str, Any] = field(default_factory=dict)
    unknown: bytes = b""

    def __getattr__(self, name: str) -> Any:
        """The value of a field, or its default."""
        if name in self.values:
            return self.values[name]
        for own in self.table.values():
            if own.name == name:
                if own.repeated:
                    return []
                return Message(own.table) if own.kind == "message" else own.default
        raise AttributeError(name)


def read(data: bytes, table: Table, where: str) -> Message:
    """A message. `where` is what it is called in errors.

    Raises:
        FormatError: the bytes are no such message.
    """
    message = Message(table)
    for number, wire, value, raw in _fields(memoryview(data), where):
        own = table.get(number)
        if own is None:
            message.unknown += raw
            continue
        what = f"{where}.{own.name}"
        for one in _values(own, wire, value, what):
            if own.repeated:
                message.values.setdefault(own.name, []).append(one)
            else:
                message.values[own.name] = one
    return message


def _fields(data: memoryview, where: str) -> Iterator[tuple[int, int, Any, bytes]]:
    """Number, wire type and value of each field, and all its bytes."""
    at = 0
    while at < len(data):
        start = at
        tag, at = _varint(data, at, where)
        number, wire = tag >> 3, tag & 7
        value: Any
        if wire == VARINT:
            value, at = _varint(data, at, where)
        elif wire in (FIXED64, FIXED32, LENGTH):
            size = 8 if wire == FIXED64 else 4
            if wire == LENGTH:
                size, at = _varint(data, at, where)
            value = data[at : at + size]
            if len(value) < size:
                raise FormatError(f"{where}: field {number} at byte {start} has {size} bytes, beyond the end")
            at += size
        else:
            raise FormatError(f"{where}: byte {start} starts no field that there can be; the file is damaged")
        if number == 0:
            raise FormatError(f"{where}: byte {start} starts a field with the number 0; the file is damaged")
        yield number, wire, value, bytes(data[start:at])


def _varint(data: memoryview, at: int, where: str) -> tuple[int, int]:
    value = shift = 0
    for byte in data[at : at + 10]:
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & (2**64 - 1), at
        shift += 7
    raise FormatError(f"{where}: the number that starts at byte {at} does not end; the file is damaged")


def _values(own: Field, wire: int, value: Any, what: str) -> Iterator[Any]:
    if own.repeated and wire == LENGTH and _WIRE[own.kind] == VARINT:  # packed
        at = 0
        while at < len(value):
            number, at = _varint(value, at, what)
            yield _number(own, number)
        return
    if wire != _WIRE[own.kind]:
        raise FormatError(f"{what}: a value of wire type {wire} where {_WIRE[own.kind]} belongs; the file is damaged")
    if own.kind in ("int", "bool"):
        yield _number(own, value)
    elif own.kind == "float":
        yield struct.unpack("<f", value)[0]
    elif own.kind == "bytes":
        yield bytes(value)
    elif own.kind == "string":
        try:
            yield str(value, "utf-8")
        except UnicodeDecodeError as error:
            raise FormatError(f"{what}: not UTF-8: {error.reason} at byte {error.start}") from None
    else:
        yield read(bytes(value), own.table, what)


def _number(own: Field, value: int) -> int | bool:
    if own.kind == "bool":
        return value != 0
    return value - 2**64 if value >= 2**63 else value


def write(message: Message) -> bytes:
    """The bytes of a message: its fields in the order of their numbers, then those that the table does not know."""
    parts: list[bytes] = []
    for number, own in sorted(message.table.items()):
        if own.name not in message.values:
            continue
        value = message.values[own.name]
        for one in value if own.repeated else [value]:
            parts += [varint_bytes(number << 3 | _WIRE[own.kind]), _value_bytes(own, one)]
    return b"".join([*parts, message.unknown])


def _value_bytes(own: Field, value: Any) -> bytes:
    if own.kind in ("int", "bool"):
        return varint_bytes(int(value) & (2**64 - 1))
    if own.kind == "float":
        return struct.pack("<f", value)
    data: bytes = write(value) if own.kind == "message" else value.encode() if own.kind == "string" else value
    return varint_bytes(len(data)) + data


def varint_bytes(value: int) -> bytes:
    """A number as a varint."""
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
