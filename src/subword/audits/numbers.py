"""How numbers are cut: whether one number is cut as the next is, and whether pieces keep to place value.

A *shape* is the lengths of the pieces: `12345` cut `123|45` has the shape (3, 2). Where neighbours differ in shape, a
model has to learn sums anew for each; where groups are counted from the left, the same digit stands in another place of
its group as soon as a number has a digit more (A. K. Singh, D. J. Strouse 2024, "Tokenization counts").
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..tokenizer import Tokenizer

SMALL = 10_000
LONG = range(5, 21)
"""Digits of long integers."""
EACH = 50
"""Numbers of each length, or of each scheme, that are tried."""

SCHEMES: dict[str, str] = {
    "single digits": "every digit is a token: all numbers alike; long ones take many tokens",
    "groups of three from the right": "groups are thousands: digits of the same value meet in sums",
    "groups of three from the left": "groups shift with the length: in 999 + 1 no group has its partner",
    "by frequency": "a number is cut as the training text had it: neighbours are cut differently",
}
"""What each scheme means for a model."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Numbers written in one way."""

    name: str
    example: str
    pieces: tuple[bytes, ...]
    """Of the example."""
    tried: int
    tokens: float
    """On average."""
    shapes: int
    """In how many ways numbers of the same length were cut, where that was the most."""
    alike: float
    """The share that was cut in the commonest way for its length."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """How a tokenizer cuts numbers."""

    scheme: str
    """One of `SCHEMES`: what long integers show."""
    meaning: str
    consistency: float
    """The share of n from 0 to 9998 for which n and n + 1, if they are of the same length, are cut alike."""
    broken: tuple[int, ...]
    """The first few n for which they are not."""
    one_token: int
    """How many of 0 to 9999 are one token."""
    alignment: float
    """The share of cuts in long integers that fall between thousands: three, six, nine digits from the right."""
    digit_pieces: tuple[int, ...]
    """How many entries are nothing but digits 0 to 9, by their length: of one digit, of two, and so on."""
    kinds: tuple[Kind, ...]
    sums: tuple[tuple[tuple[bytes, ...], ...], ...]
    """A few sums: for each the pieces of both numbers and of their sum."""


def numbers(tok: Tokenizer) -> Numbers:
    """How a tokenizer cuts integers, decimals, dates and grouped numbers. The numbers tried are always the same."""
    cuts = _Cuts(tok)
    shapes = cuts.shapes([str(number) for number in range(SMALL)])
    pairs = [number for number in range(SMALL - 1) if len(str(number)) == len(str(number + 1))]
    broken = [number for number in pairs if shapes[number] != shapes[number + 1]]
    draw = random.Random(1)
    long = [str(draw.randrange(10 ** (digits - 1), 10**digits)) for digits in LONG for _ in range(EACH)]
    cut = cuts.shapes(long)
    ends = [sum(shape[at:]) for shape in cut for at in range(1, len(shape))]
    scheme = _scheme(cut)
    return Numbers(
        scheme=scheme,
        meaning=SCHEMES[scheme],
        consistency=1 - len(broken) / len(pairs),
        broken=tuple(broken[:10]),
        one_token=sum(len(shape) == 1 for shape in shapes),
        alignment=sum(end % 3 == 0 for end in ends) / len(ends) if ends else 1.0,
        digit_pieces=_digit_pieces(tok),
        kinds=tuple(_kind(cuts, name, make, draw) for name, make in KINDS.items()),
        sums=tuple(
            tuple(cuts.pieces(str(number)) for number in (left, right, left + right))
            for left, right in ((999, 1), (1234, 98766), (87654321, 1234567))
        ),
    )


class _Cuts:
    """The pieces of numbers. A space that a stage puts before a text is none of them."""

    def __init__(self, tok: Tokenizer) -> None:
        self.tok = tok

    def pieces(self, text: str) -> tuple[bytes, ...]:
        return self._trim([self.tok.token_bytes(id) for id in self.tok.encode_ordinary(text)])

    def shapes(self, texts: list[str]) -> list[tuple[int, ...]]:
        encoded = self.tok.encode_batch(texts, allowed_special=set(), disallowed_special=())
        known = {id: self.tok.token_bytes(id) for id in {id for ids in encoded for id in ids}}
        return [tuple(map(len, self._trim([known[id] for id in ids]))) for ids in encoded]

    @staticmethod
    def _trim(pieces: list[bytes]) -> tuple[bytes, ...]:
        first = [pieces[0].lstrip(b" ")] if pieces else []
        return tuple(piece for piece in (*first, *pieces[1:]) if piece)


def _scheme(cut: Iterable[tuple[int, ...]]) -> str:
    """What the shapes of long integers have in common.

    >>> _scheme([(1, 1, 1, 1)]), _scheme([(3, 1), (3, 2)]), _scheme([(1, 3), (2, 3, 3)]), _scheme([(2, 2)])
    ('single digits', 'groups of three from the left', 'groups of three from the right', 'by frequency')
    """
    shapes = list(cut)
    if all(set(shape) == {1} for shape in shapes):
        return "single digits"
    for name, whole, rest in (("left", slice(0, -1), -1), ("right", slice(1, None), 0)):
        if all(set(shape[whole]) <= {3} and 1 <= shape[rest] <= 3 for shape in shapes):
            return f"groups of three from the {name}"
    return "by frequency"


def _digit_pieces(tok: Tokenizer) -> tuple[int, ...]:
    lengths = Counter(len(piece) for piece in tok.vocab if piece.isdigit())
    return tuple(lengths[length] for length in range(1, max(lengths, default=0) + 1))


KINDS: dict[str, Callable[[random.Random], str]] = {
    "integers, 4 digits": lambda draw: str(draw.randrange(1000, 10_000)),
    "integers, 6 digits": lambda draw: str(draw.randrange(100_000, 1_000_000)),
    "integers, 12 digits": lambda draw: str(draw.randrange(10**11, 10**12)),
    "decimals": lambda draw: f"{draw.randrange(1, 100)}.{draw.randrange(10_000):04}",
    "thousands, commas": lambda draw: f"{draw.randrange(1_000_000, 10**9):,}",
    "thousands, points": lambda draw: f"{draw.randrange(1_000_000, 10**9):,}".replace(",", "."),
    "dates, 2024-02-29": lambda draw: (
        f"{draw.randrange(1900, 2100)}-{draw.randrange(1, 13):02}-{draw.randrange(1, 29):02}"
    ),
    "dates, 29/02/2024": lambda draw: (
        f"{draw.randrange(1, 29):02}/{draw.randrange(1, 13):02}/{draw.randrange(1900, 2100)}"
    ),
    "times, 23:59:59": lambda draw: f"{draw.randrange(24):02}:{draw.randrange(60):02}:{draw.randrange(60):02}",
}


def _kind(cuts: _Cuts, name: str, make: Callable[[random.Random], str], draw: random.Random) -> Kind:
    texts = [make(draw) for _ in range(4 * EACH)]
    shapes = cuts.shapes(texts)
    lengths: dict[int, Counter[tuple[int, ...]]] = {}
    for text, shape in zip(texts, shapes, strict=True):
        lengths.setdefault(len(text), Counter())[shape] += 1
    return Kind(
        name=name,
        example=texts[0],
        pieces=cuts.pieces(texts[0]),
        tried=len(texts),
        tokens=sum(map(len, shapes)) / len(shapes),
        shapes=max(map(len, lengths.values())),
        alike=sum(max(found.values()) for found in lengths.values()) / len(texts),
    )
