"""Byte patches by entropy, as the Byte Latent Transformer cuts text, with counts of bytes instead of a neural model.

`patches_reference` says what is computed; here it is done with arrays. The distribution after a context differs from
that after a byte less of it only in the bytes that were seen there, up to a factor; so does the entropy, and no
distribution is ever spelled out.

>>> model = ByteModel.of([text])                                            # doctest: +SKIP
>>> values = model.entropies(text)                                          # doctest: +SKIP
>>> starts(values, threshold_for([values], 4.5))                            # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ..arguments import choice, integer, list_of
from ..engine import text_bytes
from ..errors import SubwordValueError
from ..tokenizer import Text, Tokenizer

Rule = Literal["global", "monotonic"]
RULES = ("global", "monotonic")

ORDER = 4
"""So many bytes of context, where nothing else is said."""

MOST = 7
"""The longest context: with the byte behind it, it is one number of 64 bits."""

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.uint64]


class _Level(NamedTuple):
    """The contexts of one length, as numbers, sorted; and the entropy of what follows each, in bits."""

    contexts: Numbers
    entropies: Floats


@dataclass(frozen=True, eq=False)
class ByteModel:
    """What follows each context of up to `order` bytes, by its entropy. Witten-Bell smoothing."""

    order: int
    levels: tuple[_Level, ...]

    @classmethod
    def of(cls, texts: Iterable[Text], order: int = ORDER) -> ByteModel:
        """Learn from texts. 10 MB take some three seconds, and some 600 MB of memory meanwhile.

        Raises:
            SubwordValueError: an order beyond 7, or no byte to learn from.
        """
        order = integer("order", order)
        if order > MOST:
            raise SubwordValueError(f"order={order}: a context has at most {MOST} bytes")
        tables = _tables([text_bytes(text) for text in list_of("texts", texts)], order)
        if not len(tables[0][0]):
            raise SubwordValueError("there is nothing to learn from: the texts have no bytes")
        levels: list[_Level] = []
        keys_before, probability_before = np.arange(256, dtype=np.uint64), np.full(256, 1 / 256)
        before = _Level(np.zeros(1, dtype=np.uint64), np.full(1, 8.0))
        for size, (keys, counts) in enumerate(tables):
            contexts, start = np.unique(keys >> np.uint64(8), return_index=True)
            n, t = np.add.reduceat(counts, start), np.diff(start, append=len(keys))
            group = np.repeat(np.arange(len(contexts)), t)
            new = t / (n + t)  # the share of what a byte less of context says
            shorter = probability_before[np.searchsorted(keys_before, _end(keys, max(size, 1)))]
            probability = counts / (n + t)[group] + new[group] * shorter
            # Bytes that were not seen have the probability new * shorter; those that were are put right one by one.
            scaled = new[group] * shorter
            changes = np.add.reduceat(_information(probability) - _information(scaled), start)
            rest = before.entropies[np.searchsorted(before.contexts, _end(contexts, size - 1))]
            before = _Level(contexts, new * (rest - np.log2(new)) + changes)
            levels.append(before)
            keys_before, probability_before = keys, probability
        return cls(order, tuple(levels))

    def entropies(self, text: Text) -> Floats:
        """For each byte of a text, the entropy of its prediction from those before it, in bits; shape (bytes,)."""
        data = np.frombuffer(text_bytes(text), dtype=np.uint8)
        contexts = np.zeros(len(data), dtype=np.uint64)
        for back in range(1, min(self.order, len(data)) + 1):
            contexts[back:] |= data[:-back].astype(np.uint64) << np.uint64(8 * (back - 1))
        values = np.empty(len(data))
        todo = np.arange(len(data))
        for size in range(self.order, -1, -1):  # the longest context that was seen
            level, wanted = self.levels[size], _end(contexts[todo], size)
            at = np.minimum(np.searchsorted(level.contexts, wanted), max(len(level.contexts) - 1, 0))
            found = (
                (todo >= size) & (level.contexts[at] == wanted) if len(level.contexts) else np.zeros(len(todo), bool)
            )
            values[todo[found]] = level.entropies[at[found]]
            todo = todo[~found]
        return values


def starts(entropies: Floats, threshold: float, rule: Rule = "global") -> npt.NDArray[np.int64]:
    """Where patches start: at 0, and where the entropy is above the threshold (`"global"`), or rises by more than that
    from the byte before (`"monotonic"`)."""
    values = _values(entropies, rule)
    return np.concatenate([np.zeros(min(len(entropies), 1), dtype=np.int64), np.flatnonzero(values > threshold) + 1])


def threshold_for(entropies: Iterable[Floats], patch_bytes: float, rule: Rule = "global") -> float:
    """The lowest threshold with which the patches of some texts have at least `patch_bytes` bytes on average.

    Bytes behind the same context have the same entropy, so patches may get longer than was asked for. (And shorter, if
    the texts themselves are.)
    """
    if isinstance(patch_bytes, bool) or not isinstance(patch_bytes, (int, float)) or not 1 <= patch_bytes < np.inf:
        raise SubwordValueError(f"patch_bytes must be a number from 1 on, not {patch_bytes!r}")
    texts = [values for values in list_of("entropies", entropies) if len(values)]
    values = np.concatenate([np.zeros(0), *(_values(text, rule) for text in texts)])
    inside = max(int(sum(map(len, texts)) / patch_bytes) - len(texts), 0)  # patches that do not start a text
    if inside >= len(values):
        return -np.inf
    return float(np.partition(values, len(values) - 1 - inside)[len(values) - 1 - inside])


def agreement(tok: Tokenizer, text: Text, patch_starts: npt.NDArray[np.int64]) -> dict[str, float | None]:
    """How far patches start where tokens do, within a text: `precision` is the share of the starts of patches at which
    a token starts, `recall` that of the starts of tokens at which a patch does, `f1` their harmonic mean."""
    tokens = np.unique(tok.tokenize(text, disallowed_special=()).byte_spans[:, 0].astype(np.int64))
    tokens, inner = tokens[tokens > 0], patch_starts[patch_starts > 0]
    both = len(np.intersect1d(tokens, inner))
    return {
        "precision": both / len(inner) if len(inner) else None,
        "recall": both / len(tokens) if len(tokens) else None,
        "f1": 2 * both / (len(inner) + len(tokens)) if len(inner) + len(tokens) else None,
    }


def _values(entropies: Floats, rule: str) -> Floats:
    choice("rule", rule, RULES)
    return np.diff(entropies) if rule == "monotonic" else entropies[1:]


def _end(numbers: Numbers, size: int) -> Numbers:
    """The last `size` bytes of bytes as numbers."""
    return numbers & np.uint64((1 << 8 * max(size, 0)) - 1)


def _information(probability: Floats) -> Floats:
    return -probability * np.log2(probability)


def _tables(texts: list[bytes], order: int) -> list[tuple[Numbers, npt.NDArray[np.int64]]]:
    """For contexts of 0 … `order` bytes: each with the byte behind it as a number, sorted, and how often it stands
    there. Only the longest are counted in the text; others are ends of longer ones, but for those that start a text."""
    data = np.frombuffer(b"".join(texts), dtype=np.uint8)
    sizes = np.array([len(text) for text in texts], dtype=np.int64)
    place = np.arange(len(data)) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # in its text
    keys = data.astype(np.uint64)
    for back in range(1, min(order, max(len(data) - 1, 0)) + 1):
        keys[back:] |= data[:-back].astype(np.uint64) << np.uint64(8 * back)
    tables: list[tuple[Numbers, Any]] = []
    longer, counts = np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)
    for size in range(order, -1, -1):
        fresh = _end(keys[place >= size if size == order else place == size], size + 1)
        ends = np.concatenate([_end(longer, size + 1), fresh])
        longer, counts = _added_up(ends, np.concatenate([counts, np.ones(len(fresh), dtype=np.int64)]))
        tables.append((longer, counts))
    return tables[::-1]


def _added_up(keys: Numbers, counts: npt.NDArray[np.int64]) -> tuple[Numbers, npt.NDArray[np.int64]]:
    """Each key once, sorted, with the sum of its counts."""
    if len(keys) == 0:
        return keys, counts
    order = np.argsort(keys, kind="stable")
    keys, counts = keys[order], counts[order]
    start = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    return keys[start], np.add.reduceat(counts, start)
