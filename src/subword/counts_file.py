"""The file of a `CountTable`: what `save` writes and `load` reads.

# The file

A Parquet file with a row for each piece of each source:

| column   | type   | what it is |
|----------|--------|------------|
| `piece`  | binary | the bytes of the piece |
| `count`  | int64  | how often it was counted, at least once |
| `first`  | int64  | how many pieces stand before its first; may be left out: only `tie_rule="first-seen"` asks |
| `source` | string | which text it comes from, for weights; may be left out: then all is one source without a name |

The key `subword.counts` of its metadata holds a JSON object, `CountTable.metadata`: the version of this layout, how
text became pieces (`pattern`, `digits`, `normalization`, `special_tokens`), and the stages that this means here with
their fingerprint. `save` adds the sources, with their sizes and hashes (the SHA-256 of each text, added up modulo
2^256), and `"sorted": true` for rows in the order of (`piece`, `source`). A file without the key is read when
`CountTable.load` is told the same.

So any engine that can group and sum can make such a table; rows of one piece and source are added up when it is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from . import _core
from .corpus.storing import Blocks
from .corpus.tables import pyarrow_or_error
from .counts import CountTable, Part, Run, Splitting, run_of, source_name
from .errors import FormatError, SubwordOSError, SubwordValueError
from .writing import replacing

KEY = "subword.counts"
VERSION = 1

GROUP = 1 << 18
"""Rows in a row group of a file."""

LOAD_MEMORY = 256 << 20
"""What a table that must be sorted first may take of memory, before it goes to disk."""


def metadata(splitting: Splitting, **more: Any) -> dict[str, str]:
    """The key of the metadata and its value."""
    return {KEY: json.dumps({"version": VERSION, **splitting.to_json(), **more})}


# ======================== writing ========================


def save(table: CountTable, path: str) -> int:
    """See `CountTable.save`."""
    pa, pq = pyarrow("write")
    columns = [("piece", pa.binary()), ("count", pa.int64()), ("first", pa.int64()), ("source", pa.string())]
    names = list(table.sources)
    sources = {name: [asdict(part) for part in parts] for name, parts in table.sources.items()}
    schema = pa.schema(
        [pa.field(name, kind, False) for name, kind in columns if name != "first" or table.has_first],
        metadata(table.splitting, sources=sources, sorted=True),
    )
    encodings = {"piece": "DELTA_BYTE_ARRAY", "count": "DELTA_BINARY_PACKED", "first": "DELTA_BINARY_PACKED"}
    settings = {name: encoding for name, encoding in encodings.items() if name in schema.names}
    rows = 0
    with (
        replacing(path, "counts") as file,
        pq.ParquetWriter(
            file,
            schema,
            compression="zstd",
            use_dictionary=["source"],
            column_encoding=settings,
            write_page_checksum=True,
        ) as writer,
    ):
        for data, offsets, counts, firsts, numbers in table.rows(GROUP):
            if offsets[-1] >= 2**31:
                raise SubwordValueError("a piece of 2 GB or more does not fit into a table of counts")
            pieces = pa.Array.from_buffers(
                pa.binary(), len(counts), [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
            )
            source = pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), pa.array(names, pa.string()))
            arrays = [
                pieces,
                pa.array(counts),
                *([pa.array(firsts)] if table.has_first else []),
                source.cast(pa.string()),
            ]
            writer.write_batch(pa.record_batch(arrays, schema=schema), row_group_size=GROUP)
            rows += len(counts)
    return rows


# ======================== reading ========================


def pyarrow(what: str) -> tuple[Any, Any]:
    """The modules that read and write tables, or the error that says how to get them."""
    pa = pyarrow_or_error(f"to {what} a table of counts")
    import pyarrow.parquet as pq

    return pa, pq


def load(path: str, told: Splitting | None) -> CountTable:
    """See `CountTable.load`; `told`: how text became pieces, if the call says so."""
    pa, pq = pyarrow("read")
    try:
        file = pq.ParquetFile(path, page_checksum_verification=True)
    except OSError as error:
        if error.errno is None:  # how pyarrow tells damage
            raise FormatError(f"{path}: damaged, or not a Parquet file: {_line(error)}") from error
        raise SubwordOSError(error.errno, error.strerror or str(error), path) from error
    except pa.ArrowException as error:
        raise FormatError(f"{path}: damaged, or not a Parquet file: {_line(error)}") from error
    schema = file.schema_arrow
    _check_schema(path, pa, schema)
    header = _header(path, (file.metadata.metadata or {}).get(KEY.encode()), told)
    splitting = told if header is None else _splitting_of(path, header)
    if splitting is None:
        raise FormatError(
            f"{path}: it does not say how its text became pieces; tell CountTable.load: the pattern, and what else "
            "count_pieces would be told"
        )
    if told is not None and (difference := splitting.difference(told)) is not None:
        raise FormatError(f"{path}: it was counted with other stages than load is told: {difference}")
    table = _SortedFile(path, pa, file, header) if header and header.get("sorted") is True else _AnyFile(path, pa, file)
    return CountTable(splitting, table.sources, "first" in schema.names, table.length, table.runs)


def _header(path: str, value: bytes | None, told: Splitting | None) -> dict[str, Any] | None:
    if value is None:
        return None
    try:
        header = json.loads(value)
        version = header["version"]
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"{path}: the metadata {KEY!r} is damaged: {error}") from error
    if version != VERSION:
        raise FormatError(
            f"{path}: a table of version {version!r}; subword {_core.__version__} reads version {VERSION}: "
            "upgrade with `pip install -U subword`"
        )
    return dict(header)


def _splitting_of(path: str, header: dict[str, Any]) -> Splitting:
    try:
        return Splitting.from_json(header)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FormatError(f"{path}: {error}") from error


def _check_schema(path: str, pa: Any, schema: Any) -> None:
    is_bytes = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_string, pa.types.is_large_string)
    wanted = {
        "piece": (lambda kind: any(test(kind) for test in is_bytes), "binary", True),
        "count": (pa.types.is_integer, "int64 (cast it: sums of many engines are wider)", True),
        "first": (pa.types.is_integer, "int64", False),
        "source": (
            lambda kind: any(test(kind) for test in is_bytes[2:]) or pa.types.is_dictionary(kind),
            "string",
            False,
        ),
    }
    for name, (test, kind, needed) in wanted.items():
        if name not in schema.names:
            if needed:
                raise FormatError(f"{path}: no column {name!r}; the columns are {', '.join(schema.names)}")
        elif not test(schema.field(name).type):
            raise FormatError(f"{path}: the column {name!r} is {schema.field(name).type}; it must be {kind}")


def _line(error: object) -> str:
    return " ".join(str(error).split())


class _File:
    """A Parquet file as runs."""

    sources: dict[str, tuple[Part, ...]]
    length: int
    runs: list[Run]

    def __init__(self, path: str, pa: Any, file: Any) -> None:
        self.path = path
        self.pa = pa
        self.file = file

    def batches(self, rows: int, columns: Sequence[str]) -> Iterator[Any]:
        columns = [name for name in columns if name in self.file.schema_arrow.names]
        groups = range(self.file.num_row_groups)
        batches = (batch for group in groups for batch in self.file.iter_batches(rows, [group], columns))
        while True:
            try:
                batch = next(batches, None)
            except (self.pa.ArrowException, OSError) as error:
                raise FormatError(f"{self.path}: damaged: {_line(error)}") from error
            if batch is None:
                return
            for name in columns:
                if batch.column(name).null_count:
                    raise FormatError(f"{self.path}: the column {name!r} has rows without a value")
            yield batch

    def integers(self, batch: Any, name: str) -> Any:
        try:
            return batch.column(name).cast(self.pa.int64()).to_numpy()
        except self.pa.ArrowInvalid as error:
            raise FormatError(f"{self.path}: the column {name!r} does not fit into int64: {_line(error)}") from error

    def names(self, batch: Any) -> Any:
        return batch.column("source").cast(self.pa.string())

    def block(self, batch: Any) -> bytes:
        """Rows, in order, as a block of a run."""
        pa = self.pa
        pieces = batch.column("piece").cast(pa.large_binary())
        offsets = np.frombuffer(pieces.buffers()[1], np.int64)[pieces.offset : pieces.offset + len(pieces) + 1]
        base, end = int(offsets[0]), int(offsets[-1])
        data = pieces.buffers()[2]
        names = batch.schema.names
        if "source" in names:
            known = pa.array(list(self.sources), pa.string())
            numbers = pa.compute.index_in(self.names(batch), known)
            if numbers.null_count:
                raise FormatError(f"{self.path}: a row has a source that the metadata does not list")
            numbers = numbers.to_numpy().astype(np.uint32)
        else:
            numbers = np.zeros(len(pieces), np.uint32)
        try:
            return _core.run_block(
                b"" if data is None else data.slice(base, end - base).to_pybytes(),
                offsets - base,
                np.ascontiguousarray(self.integers(batch, "count")),
                np.ascontiguousarray(self.integers(batch, "first"))
                if "first" in names
                else np.zeros(len(pieces), np.int64),
                numbers,
            )
        except FormatError as error:
            raise FormatError(f"{self.path}: {error}") from None


class _SortedFile(_File):
    """One whose rows are in order: it is one run, read as it is asked for."""

    BATCH = 1 << 13

    def __init__(self, path: str, pa: Any, file: Any, header: dict[str, Any]) -> None:
        super().__init__(path, pa, file)
        try:
            sources = {
                source_name(name): tuple(Part.from_json(part) for part in parts)
                for name, parts in header["sources"].items()
            }
            total = sum(part.pieces for parts in sources.values() for part in parts)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FormatError(f"{path}: the sources in its metadata are damaged: {error}") from error
        self.sources = {name: sources[name] for name in sorted(sources)}
        self.length = total
        self.runs = [Run(self.blocks, 0, tuple(self.sources))]

    def blocks(self) -> Iterator[bytes]:
        total = 0
        for batch in self.batches(self.BATCH, ("piece", "count", "first", "source")):
            if len(batch):
                total += _sum(self.integers(batch, "count"))
                yield self.block(batch)
        if total != self.length:
            raise FormatError(f"{self.path}: it holds {total:,} pieces, and its metadata says {self.length:,}")


class _AnyFile(_File):
    """One that another engine has written, its rows in any order: sorted by parts, each of them a run."""

    BATCH = 1 << 19

    def __init__(self, path: str, pa: Any, file: Any) -> None:
        super().__init__(path, pa, file)
        import pyarrow.compute as pc

        totals: dict[str, int] = {}
        self.length = 0
        for batch in self.batches(self.BATCH, ("count", "first", "source")):
            counts = self.integers(batch, "count")
            if "first" in batch.schema.names and len(batch):
                self.length = max(self.length, int(self.integers(batch, "first").max()) + 1)
            if "source" not in batch.schema.names:
                totals[""] = totals.get("", 0) + _sum(counts)
                continue
            names = self.names(batch).dictionary_encode()
            numbers = names.indices.to_numpy()
            for number, name in enumerate(names.dictionary.to_pylist()):
                totals[name] = totals.get(name, 0) + _sum(counts[numbers == number])
        self.sources = {name: (Part(totals[name]),) for name in sorted(totals)}
        self.length = max(self.length, sum(totals.values()))
        blocks = Blocks(LOAD_MEMORY)
        self.runs = []
        for batch in self.batches(self.BATCH, ("piece", "count", "first", "source")):
            if "source" in batch.schema.names:
                batch = batch.set_column(batch.schema.names.index("source"), "source", self.names(batch))
            batch = batch.set_column(
                batch.schema.names.index("piece"), "piece", batch.column("piece").cast(pa.large_binary())
            )
            keys = [(name, "ascending") for name in ("piece", "source") if name in batch.schema.names]
            batch = batch.take(pc.sort_indices(batch, keys))
            rows = _SortedFile.BATCH
            handles = [blocks.add(self.block(batch.slice(at, rows))) for at in range(0, len(batch), rows)]
            self.runs.append(run_of(blocks, handles, self.sources))


def _sum(counts: Any) -> int:
    """The exact sum: NumPy's own wraps around."""
    return (int((counts >> 32).sum()) << 32) + int((counts & 0xFFFFFFFF).sum())
