"""What a GGUF file says before the data of its tensors: keys with values of types, as llama.cpp writes them.

    file  = "GGUF" version:u32 tensors:u64 count:u64 pair* …         version 2 or 3; of 3, also with the large end first
    pair  = key:string type:u32 value
    string = length:u64 bytes
    array  = type:u32 length:u64 value*                              as the value of a pair of the type ARRAY

and of its tensors where each is:

    tensor = name:string count:u32 size:u64* type:u32 offset:u64     behind the pairs; sizes from the innermost

The package gguf reads this too, and the tests compare with it; but it makes an object of every token (some seconds, and
hundreds of megabytes), and believes every number it meets. Here no number is believed before the bytes for it are seen.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from ..errors import FormatError
from .json_node import shown

MAGIC = b"GGUF"
VERSIONS = (2, 3)

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)

_NUMBERS = {U8: "u1", I8: "i1", U16: "u2", I16: "i2", U32: "u4", I32: "i4", F32: "f4", U64: "u8", I64: "i8", F64: "f8"}
_NAMES = ("u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "string", "array", "u64", "i64", "f64")

MOST_PAIRS = 2**16
"""More keys than this no model has."""


class Value(NamedTuple):
    """A value and its type; of an array, the type of its items. Numbers of an array are one NumPy array."""

    type: int
    value: Any
    is_array: bool = False


class TensorInfo(NamedTuple):
    """Where a tensor is in a file."""

    name: str
    shape: tuple[int, ...]
    """As NumPy has it, the innermost last."""
    type: int
    """The number that ggml has for it."""
    start: int
    """In bytes from the start of the file."""


MOST_TENSORS = 2**20
MOST_SIZES = 8
"""ggml has up to four."""


def looks_like(data: bytes) -> bool:
    return data[:4] == MAGIC


def read(data: bytes, source: str) -> dict[str, Value]:
    """The keys of a file with their values.

    Raises:
        FormatError: the file is damaged, or of another version; the message names the key and the byte.
    """
    return _Reader(data, source).pairs()


def read_tensors(data: bytes, source: str) -> tuple[list[TensorInfo], str]:
    """The tensors of a file, and how its numbers are: `<`, or `>` where the large end is first.

    Raises:
        FormatError: as `read` does.
    """
    reader = _Reader(data, source)
    return reader.tensors(), reader.end


class _Reader:
    def __init__(self, data: bytes, source: str) -> None:
        self.data, self.source, self.at, self.key = data, source, 4, ""
        self.end, self.count = "<", 0

    def error(self, problem: str) -> NoReturn:
        where = f"{self.key}: " if self.key else ""
        raise FormatError(f"{self.source}: {where}at byte {self.at:,}: {problem}")

    def take(self, size: int, what: str) -> int:
        """Where the next `size` bytes are, if they are there."""
        left = len(self.data) - self.at
        if size > left:
            self.error(f"{what} should have {size:,} bytes, but {left:,} are left; is the file complete?")
        self.at += size
        return self.at - size

    def number(self, type: int, what: str) -> Any:
        size = int(_NUMBERS[type][1])
        return np.frombuffer(self.data, self.end + _NUMBERS[type], 1, self.take(size, what))[0].item()

    def pairs(self) -> dict[str, Value]:
        if self.data[:4] != MAGIC:
            self.error(f"the file should start with {MAGIC!r}, found {shown(self.data[:4])}")
        version = self.number(U32, "the version")
        if version not in VERSIONS and version & 0xFFFF == 0:
            self.end, version = ">", int.from_bytes(self.data[4:8], "big")
        if version not in VERSIONS:
            self.error(f"version {version} of GGUF; 2 and 3 are read. Convert the model again with a newer llama.cpp")
        self.count = self.number(U64, "the number of tensors")
        count = self.number(U64, "the number of keys")
        if count > MOST_PAIRS:
            self.error(f"{count:,} keys; no model has more than {MOST_PAIRS:,}")
        pairs: dict[str, Value] = {}
        for _ in range(count):
            key = self.text(f"the key behind {self.key!r}" if self.key else "the first key")
            self.key = key
            if key in pairs:
                self.error("the key stands there twice")
            pairs[key] = self.value()
        return pairs

    def tensors(self) -> list[TensorInfo]:
        alignment = self.pairs().get("general.alignment", Value(U32, 32)).value
        self.key = ""
        if not isinstance(alignment, int) or not 0 < alignment <= 2**16:
            self.error(f"general.alignment is {alignment!r}, not a number of bytes")
        if self.count > MOST_TENSORS:
            self.error(f"{self.count:,} tensors; no model has more than {MOST_TENSORS:,}")
        found = []
        for _ in range(self.count):
            name = self.text("the name of a tensor")
            self.key = name
            count = self.number(U32, "the number of sizes")
            if count > MOST_SIZES:
                self.error(f"a tensor of {count:,} sizes; ggml has up to four")
            sizes = [self.number(U64, "a size") for _ in range(count)]
            type, offset = self.number(U32, "the type of the tensor"), self.number(U64, "where its data is")
            found.append(TensorInfo(name, tuple(reversed(sizes)), type, offset))
        start = -(-self.at // alignment) * alignment
        return [each._replace(start=start + each.start) for each in found]

    def text(self, what: str) -> str:
        length = self.number(U64, f"the length of {what}")
        at = self.take(length, what)
        try:
            return self.data[at : at + length].decode()
        except UnicodeDecodeError as error:
            self.error(f"{what} is not UTF-8 at its byte {error.start}")

    def value(self) -> Value:
        type = self.number(U32, "the type of the value")
        if type != ARRAY:
            return Value(type, self.single(type))
        type, length = self.number(U32, "the type of the items"), self.number(U64, "the number of items")
        if type == ARRAY:
            self.error("an array of arrays, which no tokenizer has")
        if type == STRING:
            return Value(type, self.strings(length), True)
        self.single_size(type)
        dtype = np.dtype(self.end + _NUMBERS.get(type, "u1"))
        at = self.take(length * dtype.itemsize, f"{length:,} items")
        return Value(type, np.frombuffer(self.data, dtype, length, at), True)

    def single_size(self, type: int) -> None:
        if type not in _NUMBERS and type != BOOL:
            self.error(f"the type {type} is unknown")

    def single(self, type: int) -> Any:
        if type == STRING:
            return self.text("the value")
        self.single_size(type)
        return bool(self.number(U8, "the value")) if type == BOOL else self.number(type, "the value")

    def strings(self, count: int) -> list[bytes]:
        """Each as its bytes: tokens are cut at any byte in some files."""
        if count > (len(self.data) - self.at) // 8:
            self.error(f"{count:,} strings, but {len(self.data) - self.at:,} bytes are left; is the file complete?")
        unpack, data, at, end = struct.Struct(self.end + "Q").unpack_from, self.data, self.at, len(self.data)
        found: list[bytes] = []
        for _ in range(count):
            if at + 8 > end:
                break
            (length,) = unpack(data, at)
            at += 8 + length
            if at > end:
                break
            found.append(data[at - length : at])
        if len(found) < count:
            self.error(f"item {len(found):,} of {count:,} is cut off; is the file complete?")
        self.at = at
        return found


# ======================== one value at a time ========================


class Values:
    """The keys of a file, each checked when it is asked for; errors name it."""

    def __init__(self, values: Mapping[str, Value], source: str) -> None:
        self.values, self.source = values, source

    def error(self, key: str, problem: str) -> FormatError:
        return FormatError(f"{self.source}: {key}: {problem}")

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def _get(self, key: str, is_array: bool, types: tuple[int, ...], what: str) -> Any:
        if key not in self.values:
            raise FormatError(f"{self.source}: the key {key!r} is missing")
        found = self.values[key]
        if found.is_array != is_array or found.type not in types:
            name = _NAMES[found.type] + " array" * found.is_array
            raise self.error(key, f"expected {what}, found {name}")
        return found.value

    def text(self, key: str, default: str | None = None) -> str:
        if default is not None and key not in self.values:
            return default
        value: str = self._get(key, False, (STRING,), "a string")
        return value

    def flag(self, key: str, default: bool) -> bool:
        return self._get(key, False, (BOOL,), "true or false") if key in self.values else default

    def number(self, key: str, most: int) -> int | None:
        if key not in self.values:
            return None
        value: int = self._get(key, False, (U8, I8, U16, I16, U32, I32, U64, I64), "a whole number")
        if not 0 <= value <= most:
            raise self.error(key, f"expected a number from 0 to {most}, found {value}")
        return value

    def strings(self, key: str) -> list[bytes]:
        value: list[bytes] = self._get(key, True, (STRING,), "an array of strings")
        return value

    def numbers(self, key: str, types: tuple[int, ...], count: int | None = None) -> npt.NDArray[Any]:
        value: npt.NDArray[Any] = self._get(
            key, True, types, "an array of " + " or ".join(_NAMES[type] for type in types)
        )
        if count is not None and len(value) != count:
            raise self.error(key, f"{len(value):,} items for {count:,} tokens")
        return value


# ======================== writing ========================


def write(values: Mapping[str, Value]) -> bytes:
    """A file without tensors."""
    parts = [MAGIC, struct.pack("<IQQ", 3, 0, len(values))]
    for key, value in values.items():
        parts.append(_string(key.encode()))
        if value.is_array:
            parts.append(struct.pack("<IIQ", ARRAY, value.type, len(value.value)))
            parts += _items(value)
        else:
            parts.append(struct.pack("<I", value.type))
            parts.append(_single(value))
    return b"".join(parts)


def _string(data: bytes) -> bytes:
    return struct.pack("<Q", len(data)) + data


def _items(value: Value) -> Iterator[bytes]:
    if value.type == STRING:
        return map(_string, value.value)
    return iter([np.asarray(value.value, dtype="<" + _NUMBERS.get(value.type, "u1")).tobytes()])


def _single(value: Value) -> bytes:
    if value.type == STRING:
        return _string(value.value.encode())
    return np.asarray(value.value, dtype="<" + _NUMBERS.get(value.type, "u1")).tobytes()
