"""Is a vocabulary a published one, but for a few entries? `published.tsv` has of each a hash for every thousand ids.

Whoever exchanges two entries of a file makes another file, so its SHA-256 says no more than that it is unknown. The
hashes of its parts say which parts are as published.

To add a vocabulary: the line that `line` gives, made from a file that is checked by its SHA-256.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_name("published.tsv")
BLOCK = 1000
ALIKE = 0.8
"""Of a vocabulary that is a changed copy, at least so many parts are as published; else it is another one."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A published vocabulary, and the parts of another one that are not as in it."""

    name: str
    blocks: tuple[int, ...]
    """Each of `BLOCK` ids, from 0."""


def line(name: str, entries: Iterable[tuple[bytes, int]]) -> str:
    """A line of the table: name, ids (the last may have holes), and of each part its entries and its hash."""
    found = sorted((id, piece) for piece, id in entries)
    ids = found[-1][0] + 1
    return "\t".join((name, str(ids), *(f"{held}:{hash}" for hash, held in _hashes(found, ids))))


def changed(entries: Iterable[tuple[bytes, int]]) -> Changed | None:
    """The published vocabulary that this one is a changed copy of; None if there is none, or if nothing is changed.
    What has fewer entries, or more behind the published ones, is no changed copy."""
    found = sorted((id, piece) for piece, id in entries)
    best: tuple[tuple[float, int], Changed] | None = None
    for name, ids, parts in _table():
        mine = _hashes(found, ids)
        last = max((at for at, (_, held) in enumerate(mine) if held), default=-1)
        compared = [at for at, (_, held) in enumerate(mine) if held and (at < last or held >= parts[at][1])]
        differ = tuple(at for at in compared if mine[at] != parts[at])
        if 2 * len(compared) < len(parts):
            continue
        likeness = 1 - len(differ) / len(compared), -abs(ids - found[-1][0] - 1)
        if likeness[0] >= ALIKE and (best is None or likeness > best[0]):
            best = likeness, Changed(name, differ)
    return best[1] if best is not None and best[1].blocks else None


_Part = tuple[str, int]
"""Of a part: 16 hexadecimal digits of a hash of its ids and pieces, and how many there are."""


def _hashes(entries: list[tuple[int, bytes]], ids: int) -> list[_Part]:
    """Of each part of the first ids."""
    parts: list[list[bytes]] = [[] for _ in range(-(-ids // BLOCK))]
    for id, piece in entries:
        if id < ids:
            parts[id // BLOCK].append(struct.pack("<II", id, len(piece)) + piece)
    return [(hashlib.sha256(b"".join(part)).hexdigest()[:16], len(part)) for part in parts]


@cache
def _table() -> tuple[tuple[str, int, tuple[_Part, ...]], ...]:
    rows = (row.split("\t") for row in TABLE.read_text("ascii").splitlines() if not row.startswith("#"))
    return tuple((name, int(ids), tuple((part[-16:], int(part[:-17])) for part in parts)) for name, ids, *parts in rows)
