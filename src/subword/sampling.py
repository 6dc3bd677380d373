"""Segmentations by their probability: the best ones, random ones, and how many there are, so to speak.

A text is several parts: extra tokens, and pieces that a model segments by themselves. A segmentation of the text is one
of each, and as probable as these together.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import TypeAlias

from . import _core
from .errors import SubwordValueError

Part: TypeAlias = "int | _core.Segmentations"
"""The id of an extra token, or all segmentations of a piece."""

Found: TypeAlias = "list[tuple[list[int], float]]"
"""Ids with a score or with the logarithm of a probability."""


def ids_of(tokens: Sequence[tuple[int, int]]) -> list[int]:
    return [id for id, _ in tokens]


def nbest(parts: Sequence[Part], n: int) -> Found:
    """The `n` best segmentations with their scores, the best first."""
    best: Found = [([], 0.0)]
    for part in parts:
        if isinstance(part, int):
            best = [([*ids, part], score) for ids, score in best]
            continue
        more = part.nbest(n)
        pairs = ((score + other, ids, tokens) for ids, score in best for tokens, other in more)
        best = [
            ([*ids, *ids_of(tokens)], score) for score, ids, tokens in heapq.nlargest(n, pairs, key=lambda row: row[0])
        ]
    return best


def sample(parts: Sequence[Part], n: int, alpha: float, seed: int) -> Found:
    """Segmentations drawn independently, each with a probability proportional to exp(alpha x score), with its log."""
    drawn: list[tuple[list[int], float]] = [([], 0.0) for _ in range(n)]
    for number, part in enumerate(parts):
        if isinstance(part, int):
            drawn = [([*ids, part], log) for ids, log in drawn]
            continue
        # A seed of its own for each part: the numbers of one must not tell those of the next.
        more = part.sample(n, alpha, (seed + number * 0x9E3779B97F4A7C15) % 2**64)
        drawn = [
            ([*ids, *ids_of(tokens)], log + other) for (ids, log), (tokens, other) in zip(drawn, more, strict=True)
        ]
    return drawn


def sample_of_nbest(parts: Sequence[Part], n: int, alpha: float, size: int, seed: int) -> Found:
    """The same from the `size` best alone, as SentencePiece's `nbest_size` has it."""
    best = nbest(parts, size)
    highest = alpha * best[0][1]
    weights = [math.exp(alpha * score - highest) for _, score in best]
    total = sum(weights)
    drawn: Found = []
    sums = list(accumulate(weights))
    for unit in _core.random_units(seed % 2**64, n):
        at = min(bisect_right(sums, unit * total), len(best) - 1)
        drawn.append((best[at][0], math.log(weights[at] / total)))
    return drawn


def sample_different(parts: Sequence[Part], n: int, alpha: float, seed: int) -> Found:
    """Different segmentations, drawn one after the other without putting any back, with their log probabilities."""
    pieces = [part for part in parts if not isinstance(part, int)]
    if len(pieces) > 1:
        raise SubwordValueError(
            f"the text is {len(pieces)} pieces, and only of one can different segmentations be drawn: give one word"
        )
    if not pieces:
        return [([part for part in parts if isinstance(part, int)], 0.0)]
    at = parts.index(pieces[0])
    before, after = ([part for part in some if isinstance(part, int)] for some in (parts[:at], parts[at + 1 :]))
    found = pieces[0].sample_without_replacement(n, alpha, seed % 2**64)
    return [([*before, *ids_of(tokens), *after], log) for tokens, log, _ in found]


def entropy(parts: Sequence[Part], alpha: float) -> float:
    """The entropy of what `sample` draws, in nats: parts are drawn independently."""
    return sum(part.entropy(alpha) for part in parts if not isinstance(part, int))
