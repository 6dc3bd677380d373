"""Entries that a model has hardly seen, by its table of embeddings: Land and Bartolo 2024's indicators.

A row of the table that no gradient has reached stays where it was initialised, or is pulled to zero: such rows look
like each other. So rows are measured by how far they are from those that are *known* to be unused, by their cosine,
and by their norm. Known are bytes that UTF-8 never has, entries that no text gives, rows beyond the vocabulary, and
special tokens whose rows nothing tells apart: reserved ones, that training has never met. An indicator is believed only
where the known rows stand apart by it: where they look like any other row, it says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..arguments import integer, list_of
from ..errors import SubwordValueError
from ..tokenizer import Tokenizer
from .tokens import NEVER, unreachable
from .vocabulary import spelled

LOWEST = 0.02
"""Of the entries, as many are candidates at most."""
APART = 0.5
"""The known rows stand apart if their median is less than this share of the median of all."""
FEW = 3
"""Fewer known rows than this say nothing."""
ALIKE = 0.99
"""Rows of special tokens with at least this cosine to two others were never trained: what a token means moves its
row."""
WITHIN = 0.9
"""A candidate is as close as this share of the known rows are."""

Verdict = Literal["verified", "weakly verified", "weakly rejected", "rejected"]


@dataclass(frozen=True, slots=True)
class Suspect:
    """An entry, and why a model seems not to know it."""

    id: int
    token: bytes
    norm: float
    distance: float | None
    """1 - cosine, to the mean of the known rows."""
    verdict: Verdict | None = None
    """What the model itself did when asked to repeat it, if it was asked."""
    probability: float | None = None
    """The highest that it gave to the token then."""


@dataclass(frozen=True, slots=True)
class Untrained:
    """What a table of embeddings says about the entries."""

    rows: int
    width: int
    known: int
    """Rows that are known to be unused."""
    by: str
    """`distance`, `norm`, or `nothing`: the indicator by which known rows stand apart."""
    median_norm: float
    known_norm: float | None
    """The median of the known rows."""
    median_distance: float | None
    known_distance: float | None
    limit: float | None
    """What counts as close."""
    suspects: tuple[Suspect, ...]
    """The closest first."""


def untrained(tok: Tokenizer, table: npt.ArrayLike, *, known: Iterable[int] = (), shown: int = 1000) -> Untrained:
    """Find the entries whose rows look like those that are known to be unused.

    Args:
        table: shape (rows, width), a row an id; of the output layer where that has its own, else of the input. There
            may be more rows than ids.
        known: more ids that the model has never seen.
        shown: how many suspects to give at most.

    Raises:
        SubwordValueError: the table has fewer rows than there are ids, or numbers that are none.
    """
    rows: npt.NDArray[np.float32] = np.asarray(table, dtype=np.float32)
    if rows.ndim != 2 or len(rows) < tok.n_vocab or not rows.size:
        raise SubwordValueError(
            f"a table of embeddings has a row for each of {tok.n_vocab:,} ids; this is {rows.shape}"
        )
    if not np.isfinite(rows).all():
        raise SubwordValueError("the table of embeddings holds numbers that are infinite or none (NaN)")
    entries = dict(spelled(tok))
    extra = {token.id for token in tok.spec.extra}
    given = {integer("an id in known", id) for id in list_of("known", known)}
    if given and max(given) >= len(rows):
        raise SubwordValueError(f"known: the table has no row {max(given)}")
    dead = {id for id, data in entries.items() if not NEVER.isdisjoint(data)} | {row.id for row in unreachable(tok)}
    beyond = set(range(len(rows))) - entries.keys() - extra
    norms = np.linalg.norm(rows, axis=1)
    reference = np.array(sorted(dead | beyond | given | _alike(rows, norms, sorted(extra))), dtype=np.int64)
    distances = _distances(rows, norms, reference) if len(reference) >= FEW else None
    ids = np.array(sorted(entries.keys() - set(reference.tolist())), dtype=np.int64)
    by, values, limit = "nothing", None, None
    for name, each in (("distance", distances), ("norm", norms if len(reference) >= FEW else None)):
        if each is not None and np.median(each[reference]) < APART * np.median(each[ids]):
            by, values, limit = name, each, float(np.quantile(each[reference], WITHIN))
            break
    found: list[int] = []
    if values is not None and limit is not None:
        close = ids[np.argsort(values[ids], kind="stable")][: max(int(LOWEST * len(ids)), 1)]
        found = [int(id) for id in close if values[id] <= limit]
    return Untrained(
        rows=len(rows),
        width=rows.shape[1],
        known=len(reference),
        by=by,
        median_norm=float(np.median(norms[ids])),
        known_norm=float(np.median(norms[reference])) if len(reference) else None,
        median_distance=None if distances is None else float(np.median(distances[ids])),
        known_distance=None if distances is None else float(np.median(distances[reference])),
        limit=limit,
        suspects=tuple(
            Suspect(id, entries[id], float(norms[id]), None if distances is None else float(distances[id]))
            for id in found[:shown]
        ),
    )


def _alike(rows: npt.NDArray[np.float32], norms: npt.NDArray[Any], ids: Sequence[int]) -> set[int]:
    """Those whose rows are nearly those of at least two others."""
    units = rows[ids] / np.maximum(norms[ids], 1e-12)[:, None]
    near = (units @ units.T >= ALIKE).sum(axis=1) >= FEW
    return {id for id, each in zip(ids, near.tolist(), strict=True) if each}


def _distances(
    rows: npt.NDArray[np.float32], norms: npt.NDArray[Any], reference: npt.NDArray[np.int64]
) -> npt.NDArray[Any]:
    """Of each row to the mean of the known ones; of a known one to that of the others, which it is no part of."""
    total = rows[reference].sum(axis=0, dtype=np.float64)
    safe = np.maximum(norms, 1e-12)
    distances = 1 - (rows @ (total / max(float(np.linalg.norm(total)), 1e-12))) / safe
    for at in reference.tolist():
        others = total - rows[at]
        distances[at] = 1 - float(rows[at] @ others) / max(float(np.linalg.norm(others)), 1e-12) / float(safe[at])
    return np.asarray(distances)
