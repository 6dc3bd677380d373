"""Byte patches in plain Python: what `patches` computes with arrays, one step a line.

A patch is a stretch of bytes; a new one starts where the next byte is hard to tell from those before it (Pagnoni et al.
2024, "Byte Latent Transformer"). What is hard to tell is said by a small model of bytes: after each context of up to
`order` bytes, the counts of what followed, smoothed as Witten and Bell (1991) have it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import log2

Counts = dict[bytes, Counter[int]]


def count(texts: Iterable[bytes], order: int) -> Counts:
    """How often each byte followed each context of 0 … `order` bytes."""
    counts: Counts = {}
    for text in texts:
        for at, byte in enumerate(text):
            for size in range(min(at, order) + 1):
                counts.setdefault(text[at - size : at], Counter())[byte] += 1
    return counts


def distribution(counts: Counts, context: bytes) -> list[float]:
    """The probability of each byte after a context: what was counted there, and what a byte less of context says.

    With n bytes counted, t of them different, what is new has the share t / (n + t). A context that was never seen
    is cut down to the longest end of it that was; before the empty one, all bytes are alike.
    """
    shorter = distribution(counts, context[1:]) if context else [1 / 256] * 256
    seen = counts.get(context)
    if seen is None:
        return shorter
    n, t = seen.total(), len(seen)
    return [(seen[byte] + t * shorter[byte]) / (n + t) for byte in range(256)]


def entropy(probabilities: Iterable[float]) -> float:
    """In bits."""
    return -sum(p * log2(p) for p in probabilities)


def entropies(counts: Counts, text: bytes, order: int) -> list[float]:
    """For each byte, how hard it is to tell from the `order` bytes before it, in bits."""
    return [entropy(distribution(counts, text[max(at - order, 0) : at])) for at in range(len(text))]


def starts(entropies: Sequence[float], threshold: float, rule: str) -> list[int]:
    """Where patches start: where the entropy is above the threshold (`"global"`) or rises by more (`"monotonic"`)."""
    found = [0] if entropies else []
    for at in range(1, len(entropies)):
        value = entropies[at] - (entropies[at - 1] if rule == "monotonic" else 0)
        if value > threshold:
            found.append(at)
    return found
