"""Texts -> arrays of one shape, as models take them: template, pairs, truncation into windows, padding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from .arguments import choice, flag, integer, list_of
from .encoding import Padded
from .errors import SubwordValueError
from .tokenizer import Names, Text, Tokenizer

TRUNCATION = ("longest", "first", "second")
SIDES = ("right", "left")


class Shape(NamedTuple):
    """How texts get their length; the arguments of `Tokenizer.encode_padded`, checked."""

    max_length: int | None
    stride: int | None
    truncate: str
    truncation_side: str
    length: int | None
    multiple_of: int
    padding_side: str


_PLAIN: dict[str, Any] = {
    "max_length": None,
    "truncate": "longest",
    "truncation_side": "right",
    "length": None,
    "pad_to_multiple_of": 1,
    "padding_side": "right",
}


def shape_of(padded: Mapping[str, Any], **arguments: Any) -> Shape:
    """The arguments, with what a tokenizer's file says, or what is usual, where they are `"default"`."""
    usual = {**_PLAIN, **padded, "multiple_of": padded.get("pad_to_multiple_of", 1)}
    return Shape(**{name: usual[name] if value == "default" else value for name, value in arguments.items()})


class _Row(NamedTuple):
    """One row before padding: ids, the type of each, and which text it is of."""

    ids: list[int]
    types: list[int]
    text: int


def encode_padded(
    tokenizer: Tokenizer,
    texts: Iterable[Text],
    pairs: Iterable[Text] | None,
    shape: Shape,
    pad_id: int | None,
    policy: tuple[Names, Names],
    add_special_tokens: bool,
    threads: int | None,
) -> Padded:
    """What `Tokenizer.encode_padded` returns; see there."""
    first = list_of("texts", texts)
    second = None if pairs is None else list_of("pairs", pairs)
    if second is not None and len(second) != len(first):
        raise SubwordValueError(f"{len(second)} pairs for {len(first)} texts; there must be one for each")
    shape = _checked(shape, with_pairs=second is not None)
    add = flag("add_special_tokens", add_special_tokens)
    a_ids = tokenizer.encode_batch(first, *policy, threads=threads)
    b_ids = None if second is None else tokenizer.encode_batch(second, *policy, threads=threads)
    name: Literal["single", "pair"] = "single" if b_ids is None else "pair"
    template: Sequence[int | str] = getattr(tokenizer.spec.template, name)
    types: Sequence[int] = tokenizer.spec.template.types_of(name)
    if not add:
        texts_only = [(item, type_) for item, type_ in zip(template, types, strict=True) if isinstance(item, str)]
        template, types = zip(*texts_only, strict=True)
    room = None if shape.max_length is None else shape.max_length - sum(not isinstance(item, str) for item in template)
    if room is not None and room < 0:
        raise SubwordValueError(
            f"max_length={shape.max_length} has no room for the {-room} more tokens of the template"
        )
    rows: list[_Row] = []
    for index, ids in enumerate(a_ids):
        for part_a, part_b in _windows(ids, None if b_ids is None else b_ids[index], room, shape):
            rows.append(_filled(template, types, part_a, part_b, index))
    pad_type = integer("pad_type_id", tokenizer.spec.padded.get("pad_type_id", 0))
    return _padded(rows, shape, _pad_id(tokenizer, pad_id), pad_type)


def _checked(shape: Shape, with_pairs: bool) -> Shape:
    choice("truncate", shape.truncate, TRUNCATION)
    choice("truncation_side", shape.truncation_side, SIDES)
    choice("padding_side", shape.padding_side, SIDES)
    if shape.truncate == "second" and not with_pairs:
        raise SubwordValueError('truncate="second" needs pairs')
    max_length = None if shape.max_length is None else integer("max_length", shape.max_length, 1)
    stride = None if shape.stride is None else integer("stride", shape.stride)
    if stride is not None and max_length is None:
        raise SubwordValueError("a stride needs max_length, the length of the windows")
    if stride is not None and with_pairs and shape.truncate == "longest":
        raise SubwordValueError('with pairs, a stride needs truncate="first" or "second": which of the two has windows')
    return shape._replace(
        max_length=max_length,
        stride=stride,
        length=None if shape.length is None else integer("length", shape.length, 1),
        multiple_of=integer("pad_to_multiple_of", shape.multiple_of, 1),
    )


# ======================== truncation ========================


def _windows(
    a: list[int], b: list[int] | None, room: int | None, shape: Shape
) -> Iterable[tuple[list[int], list[int] | None]]:
    """The parts of a text, or of a pair, that fit into `room`; without a stride, one."""
    if room is None or len(a) + len(b or ()) <= room:
        return [(a, b)]
    if b is None:
        return [(part, None) for part in _cut(a, room, shape)]
    if shape.truncate == "first":
        return [(part, b) for part in _cut(a, room - len(b), shape, other=len(b))]
    if shape.truncate == "second":
        return [(a, part) for part in _cut(b, room - len(a), shape, other=len(a))]
    size_a, size_b = _both_shorter(len(a), len(b), room)
    return [(_cut(a, size_a, shape)[0], _cut(b, size_b, shape)[0])]


def _both_shorter(a: int, b: int, room: int) -> tuple[int, int]:
    """The longer of two is cut until it is as long as the other, then both; as HF tokenizers does it."""
    short, long = min(a, b), max(a, b)
    long = short if short > room else max(short, room - short)
    if short + long > room:
        short, long = room // 2, room // 2 + room % 2
    return (short, long) if a <= b else (long, short)


def _cut(ids: list[int], size: int, shape: Shape, other: int = 0) -> list[list[int]]:
    """Windows of `size` ids, each but the first starting with the last `stride` of the one before."""
    if size < 0 or (size == 0 and other):
        raise SubwordValueError(
            f"max_length={shape.max_length} leaves nothing of the text to be cut, the {shape.truncate}: the other "
            f"has {other} tokens"
        )
    left = shape.truncation_side == "left"
    if shape.stride is None or len(ids) <= size:
        return [ids[max(len(ids) - size, 0) :] if left else ids[:size]]
    if shape.stride >= size:
        raise SubwordValueError(
            f"stride={shape.stride} must be smaller than the {size} tokens of text that fit into one"
        )
    step = size - shape.stride
    if left:
        stops = range(len(ids), shape.stride, -step)
        return [ids[max(stop - size, 0) : stop] for stop in stops]
    return [ids[start : start + size] for start in range(0, len(ids) - shape.stride, step)]


# ======================== template and padding ========================


def _filled(
    template: Sequence[int | str], item_types: Sequence[int], a: list[int], b: list[int] | None, text: int
) -> _Row:
    ids: list[int] = []
    types: list[int] = []
    for item, type_ in zip(template, item_types, strict=True):
        part = a if item == "A" else (b or []) if item == "B" else [int(item)]
        ids += part
        types += [type_] * len(part)
    return _Row(ids, types, text)


def _pad_id(tokenizer: Tokenizer, pad_id: int | None) -> int | None:
    if pad_id is None:
        told = tokenizer.spec.padded.get("pad_id")
        return tokenizer.pad_id if told is None else integer("pad_id", told)
    tokenizer.token_bytes(pad_id)  # refuses what is no id
    return integer("pad_id", pad_id)


def _padded(rows: list[_Row], shape: Shape, pad_id: int | None, pad_type: int) -> Padded:
    longest = max((len(row.ids) for row in rows), default=0)
    if shape.length is not None and longest > shape.length:
        raise SubwordValueError(f"a text has {longest} tokens, more than length={shape.length}; pass max_length, too")
    width = longest if shape.length is None else shape.length
    width = -(-width // shape.multiple_of) * shape.multiple_of
    if pad_id is None:
        if any(len(row.ids) < width for row in rows):
            raise SubwordValueError(
                "the texts are of different lengths, and the tokenizer names no pad token: pass pad_id"
            )
        pad_id = 0
    arrays: dict[str, npt.NDArray[np.int64]] = {
        "ids": np.full((len(rows), width), pad_id, dtype=np.int64),
        "attention_mask": np.zeros((len(rows), width), dtype=np.int64),
        "type_ids": np.full((len(rows), width), pad_type, dtype=np.int64),
    }
    for at, row in enumerate(rows):
        start = width - len(row.ids) if shape.padding_side == "left" else 0
        place: Any = (at, slice(start, start + len(row.ids)))
        arrays["ids"][place] = row.ids
        arrays["attention_mask"][place] = 1
        arrays["type_ids"][place] = row.types
    return Padded(**arrays, texts=np.array([row.text for row in rows], dtype=np.int64))
