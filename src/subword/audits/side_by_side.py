"""The numbers of every audit for several tokenizers side by side, and where their tokens first differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from ..arguments import list_of
from ..engine import text_bytes
from ..errors import SubwordValueError
from ..tokenizer import Text, Tokenizer
from .code import code
from .comparison import WIDTH
from .efficiency import efficiency
from .fairness import fairness
from .letters import letters
from .morphology import morphology
from .numbers import numbers
from .parallel import builtin_passage
from .security import security
from .tokens import tokens
from .vocabulary import vocabulary
from .vocabulary_size import weight

AROUND = 40
"""Bytes that are shown from where tokens begin to differ."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number of an audit."""

    name: str
    """Its path, as `fairness.gini`; of a language, `fairness.premium(hin_Deva)`."""
    values: tuple[float | None, ...]
    """In the order of the tokenizers; None where one has no such number."""


@dataclass(frozen=True, slots=True)
class Parting:
    """The first place where two tokenizers cut a text otherwise."""

    one: str
    other: str
    text: int
    """Which text, from 0."""
    byte: int
    tokens: tuple[bytes, ...]
    """Of the first, from there on."""
    other_tokens: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Tokenizers side by side."""

    names: tuple[str, ...]
    figures: tuple[Figure, ...]
    partings: tuple[Parting, ...]
    """Of the first tokenizer and each other one that cuts any text otherwise."""


def side_by_side(tokenizers: Mapping[str, Tokenizer], texts: Iterable[Text] = (), *, width: int = WIDTH) -> SideBySide:
    """Run every audit on each tokenizer.

    Args:
        tokenizers: by the names that they go by.
        texts: to measure efficiency on, and to compare cuts on; the built-in parallel passage serves for the latter
            if there are none.
        width: numbers in a row of a model's tables.
    """
    if not isinstance(tokenizers, Mapping) or not all(isinstance(tok, Tokenizer) for tok in tokenizers.values()):
        raise SubwordValueError("tokenizers must be a dict of names and tokenizers, as in {'gpt2': tok}")
    if not tokenizers:
        raise SubwordValueError("there is nothing to compare: give tokenizers")
    held = [text_bytes(text) for text in list_of("texts", texts)]
    rows = [dict(_figures(tok, held, width)) for tok in tokenizers.values()]
    names = dict.fromkeys(name for row in rows for name in row)
    figures = tuple(Figure(name, tuple(row.get(name) for row in rows)) for name in names)
    read = held or [row.text.encode() for row in builtin_passage().texts]
    first, *others = tokenizers.items()
    partings = (_parting(first, other, read) for other in others)
    return SideBySide(tuple(tokenizers), figures, tuple(each for each in partings if each is not None))


def _figures(tok: Tokenizer, texts: list[bytes], width: int) -> Iterator[tuple[str, float | None]]:
    if any(texts):
        yield from _scalars("efficiency", efficiency(tok, texts))
    fair = fairness(tok, builtin_passage())
    yield "fairness.gini", fair.gini
    for row in sorted(fair.languages, key=lambda row: row.language):
        yield f"fairness.premium({row.language})", row.premium
    yield from _scalars("numbers", numbers(tok))
    yield from _scalars("letters", letters(tok))
    yield from _scalars("code", code(tok))
    yield from _scalars("morphology", morphology(tok))
    yield from _scalars("vocabulary", vocabulary(tok))
    yield from _scalars("tokens", tokens(tok, texts))
    yield from _scalars("size", weight(len(tok.vocab), width))
    found = security(tok, texts)
    yield "security.spelled", len(found.spelled)
    yield "security.unsafe", len(found.unsafe)
    yield "security.signs", len(found.signs)


def _scalars(path: str, value: Any) -> Iterator[tuple[str, float | None]]:
    """The numbers in dataclasses that hold each other; what is in tuples is left out."""
    if is_dataclass(value):
        for field in fields(value):
            yield from _scalars(f"{path}.{field.name}", getattr(value, field.name))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path, value


def _parting(first: tuple[str, Tokenizer], second: tuple[str, Tokenizer], texts: list[bytes]) -> Parting | None:
    (one, tok), (other, another) = first, second
    for number, text in enumerate(texts):
        mine, theirs = _ends(tok, text), _ends(another, text)
        at = next((at for at, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b), None)
        if at is None and len(mine) == len(theirs):
            continue
        at = min(len(mine), len(theirs)) if at is None else at
        start = mine[at - 1] if at else 0
        return Parting(one, other, number, start, _pieces(text, mine, start), _pieces(text, theirs, start))
    return None


def _ends(tok: Tokenizer, text: bytes) -> list[int]:
    """Where in the text tokens end, one after the other."""
    spans = tok.tokenize(text, allowed_special=(), disallowed_special=()).byte_spans
    return sorted({int(end) for _, end in spans.tolist()} - {0})


def _pieces(text: bytes, ends: list[int], start: int) -> tuple[bytes, ...]:
    here = [end for end in ends if start < end <= start + AROUND][:8]
    return tuple(text[a:b] for a, b in zip([start, *here], here, strict=False))
