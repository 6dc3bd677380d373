"""What one process counts at once: shards of files, and the tables they become."""

from __future__ import annotations

import errno
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from ..corpus import STDIN, Span, name_of
from ..corpus.cutting import last_safe_cut, may_span_a_cut
from ..corpus.files import COLUMNAR, DECOMPRESSORS
from ..corpus.reading import JSON_LINES, kind_of
from ..corpus.storing import Blocks
from ..corpus.tables import SEPARATORS, pyarrow_or_error
from ..counting import Job, TextHash, count_into, texts_in
from ..counts import CountTable, Part, Run, Splitting, run_of
from ..errors import SubwordError, SubwordOSError, SubwordValueError

SHARD_BYTES = 16 << 20
"""How small a shard may be: starting on one, and merging its table, takes about as long as counting a megabyte."""

SHARDS_EACH = 4
"""How many shards there are for each process: the more, the less the last ones wait, and the more tables to merge."""

_WINDOW = 1 << 16

Told = Callable[[int, int], object]
"""Called with the bytes of text that were counted so far, and those on disk that were read for it."""


# ======================== dividing files ========================


@dataclass(frozen=True)
class Shard:
    """Some files, or a part of one. A text that is counted in parts is hashed by a shard of its own."""

    spans: tuple[Span, ...]
    counted: bool = True
    hashed: bool = True

    def __str__(self) -> str:
        more = len(self.spans) - 1
        return str(self.spans[0]) + (f" and {more} more {'file' if more == 1 else 'files'}" if more else "")


def shards_of(files: Iterable[Path], splitting: Splitting, hashed: bool, processes: int) -> list[Shard]:
    """The files as shards, in order, for so many processes.

    Raises:
        SubwordValueError: one of them can be read but once, as standard input.
        SubwordOSError: a file cannot be read.
    """
    files = list(files)
    try:
        for file in files:
            if file == STDIN or (file.exists() and not file.is_file()):
                problem = "not a file that several processes can read; count it in one, or write it into a file first"
                raise SubwordValueError(f"{name_of(file)}: {problem}")
        sizes = [file.stat().st_size for file in files]
        size = max(sum(sizes) // (SHARDS_EACH * processes), SHARD_BYTES)
        return list(_shards(list(zip(files, sizes, strict=True)), size, splitting, hashed))
    except OSError as error:
        if isinstance(error, SubwordError):
            raise
        raise SubwordOSError(error.errno, error.strerror or str(error), error.filename) from error


def _shards(files: list[tuple[Path, int]], size: int, splitting: Splitting, hashed: bool) -> Iterator[Shard]:
    whole = splitting.keeps_texts_whole or may_span_a_cut(splitting.special_tokens)
    group: list[Span] = []
    held = 0
    for path, length in files:
        parts, one_text = _parts(path, length, size, whole)
        if one_text and hashed:
            yield Shard((Span(path),), counted=False)  # it has no pieces, so its place among the others is none
        for part in parts:
            if group and (held >= size or len(parts) > 1):
                yield Shard(tuple(group), hashed=hashed)
                group, held = [], 0
            if one_text:
                yield Shard((part,), hashed=False)
            else:
                group.append(part)
                held += length // len(parts)
    if group:
        yield Shard(tuple(group), hashed=hashed)


def _parts(path: Path, length: int, size: int, whole: bool) -> tuple[list[Span], bool]:
    """A file in parts of about `size` bytes, if it is so large and can be cut; and whether these are of one text."""
    suffix = path.suffix.lower()
    one_text = False
    places: list[int] = []
    if length >= 2 * size:
        kind = kind_of(path)
        one_text = kind not in (*JSON_LINES, *SEPARATORS, *COLUMNAR)
        if suffix == ".parquet":
            places = _row_groups(path, length // size)
        elif suffix not in DECOMPRESSORS and (kind in JSON_LINES or (one_text and not whole)):
            find = last_safe_cut if one_text else _last_line
            with open(path, "rb") as file:
                for end in range(size, length - size // 2, size):
                    place = _place_before(file, end, places[-1] if places else 0, find)
                    places += [place] if place else []
    stops = [*places, None]
    return [Span(path, start, stop) for start, stop in zip([0, *places], stops, strict=True)], one_text and bool(places)


def _place_before(file: BinaryIO, end: int, least: int, find: Callable[[bytes, int], int]) -> int:
    """The last place before `end` and behind `least` at which the file may be cut, or 0: then the part gets longer."""
    while end > least:
        start = max(end - _WINDOW, least)
        file.seek(start)
        # What stands beside a place must be seen, so windows overlap.
        place = find(file.read(end - start + 8), 8)
        if place:
            return start + place
        end = start + 8 if start > least else least
    return 0


def _last_line(data: bytes, start: int) -> int:
    """Where the last line starts."""
    return data.rfind(b"\n", start) + 1


def _row_groups(path: Path, parts: int) -> list[int]:
    """At which row groups a Parquet file is cut. One that is damaged is not: whoever reads it says so."""
    pa = pyarrow_or_error(f"{path}: to read this file")
    import pyarrow.parquet as pq

    try:
        groups = pq.ParquetFile(path).num_row_groups
    except (pa.ArrowException, OSError):
        return []
    parts = min(parts, groups)
    return [groups * part // parts for part in range(1, parts)]


# ======================== counting a shard ========================


def count_shard(shard: Shard, job: Job, file: BinaryIO, told: Told) -> None:
    """Count a shard and write its table into `file`: blocks, what they are, and where that starts."""
    digest = TextHash() if shard.hashed and job.hashed else None
    read = 0

    def on_bytes(count: int) -> None:
        nonlocal read
        read += count

    texts = texts_in(
        shard.spans, job.splitting, job.field, job.memory, on_bytes if shard.counted else None, errors=job.errors
    )
    at = 0

    def add(block: bytes) -> tuple[int, int]:
        nonlocal at
        file.write(block)
        at += len(block)
        return at - len(block), len(block)

    if shard.counted:
        counted = count_into(add, texts, job.splitting, job.memory, job.threads, digest, lambda done: told(done, read))
        told(counted.bytes, read)
        summary = [*counted]
    else:
        for parts in texts:
            for _ in digest.read(parts) if digest else ():
                pass
        summary = [[], 0, 0]
    file.write(pickle.dumps((*summary, digest.sum if digest else 0)))
    file.write(at.to_bytes(8, "little"))


@dataclass
class Tables:
    """The tables of shards, as they come in, in any order; their blocks are kept in `blocks`."""

    blocks: Blocks
    shards: Sequence[Shard]
    _found: dict[int, tuple[list[list[Any]], int, int, int]] = field(default_factory=dict)

    def add(self, number: int, file: BinaryIO) -> None:
        """Take over the table of a shard."""
        file.seek(-8, os.SEEK_END)
        end = file.tell()
        start = int.from_bytes(file.read(8), "little")
        file.seek(start)
        runs, pieces, size, digest = pickle.loads(file.read(end - start))
        kept: list[list[Any]] = []
        for run in runs:
            kept.append([])
            for at, length in run:
                file.seek(at)
                kept[-1].append(self.blocks.add(file.read(length)))
        self._found[number] = (kept, pieces, size, digest)

    def table(self, job: Job, source: str) -> CountTable:
        """That of all shards, as one process would have made it."""
        runs: list[Run] = []
        pieces = size = 0
        digest = TextHash()
        for number in range(len(self.shards)):
            found, its_pieces, its_size, its_digest = self._found[number]
            runs += [run_of(self.blocks, run, (source,), shift=pieces) for run in found]
            pieces, size, digest.sum = pieces + its_pieces, size + its_size, digest.sum + its_digest
        part = Part(pieces, size, digest.hexdigest() if job.hashed else None)
        return CountTable(job.splitting, {source: (part,)}, True, pieces, runs)


def died(shard: Shard, times: int, how: str) -> SubwordOSError:
    """The error for a shard that no process gets through."""
    problem = f"a process that counted this died, {times} times in a row ({how})"
    return SubwordOSError(errno.ECHILD, problem, str(shard))
