"""Counted pieces as a value that can be saved, added up and learned from: `CountTable`.

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
their fingerprint. `save` adds the sources, with their sizes and the SHA-256 of their text, and `"sorted": true` for
rows in the order of (`piece`, `source`). A file without the key is read when `CountTable.load` is told the same.

So any engine that can group and sum can make such a table; rows of one piece and source are added up when it is read.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from . import _core, patterns
from .arguments import choice, integer, list_of, path_of, string, token_content
from .bert import CLEANINGS, SPLIT
from .corpus.storing import Blocks, replacing
from .corpus.tables import pyarrow_or_error
from .errors import FormatError, SubwordOSError, SubwordValueError, warn
from .spec import Digits, MatchTokens, Normalize, Split, SplitRegex, Stage

KEY = b"subword.counts"
VERSION = 1

NORMALIZATIONS = ("NFC", "NFD", "NFKC", "NFKD")

DIGITS = ("pattern", *patterns.DIGITS)

GROUP = 1 << 18
"""Rows in a row group of a file."""

LOAD_MEMORY = 256 << 20
"""What a table that must be sorted first may take of memory, before it goes to disk."""

Weight: TypeAlias = "int | str | Fraction"


# ======================== how text became pieces ========================


@dataclass(frozen=True)
class Splitting:
    """How text becomes pieces: the arguments of `train` that say so."""

    pattern: str | SplitRegex = "o200k"
    digits: str = "pattern"
    normalization: str | None = None
    special_tokens: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        choice("digits", self.digits, DIGITS)
        if self.normalization is not None:
            choice("normalization", self.normalization, NORMALIZATIONS)
        if not isinstance(self.pattern, SplitRegex) and self.pattern not in CLEANINGS:
            patterns.get_pattern(self.pattern)
        tokens = [token_content(token) for token in list_of("special_tokens", self.special_tokens)]
        twice = next((token for token in tokens if tokens.count(token) > 1), None)
        if twice is not None:
            raise SubwordValueError(f"the special token {twice!r} is given twice")
        object.__setattr__(self, "special_tokens", tuple(tokens))

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The stages before the model. One way of splitting is always the same stages: it has one fingerprint."""
        stages: list[Stage] = [MatchTokens()] if self.special_tokens else []
        if self.normalization is not None:
            stages.append(Normalize(self.normalization))  # type: ignore[arg-type]
        if isinstance(self.pattern, str) and self.pattern in CLEANINGS:
            stages += CLEANINGS[self.pattern].stages
        if self.digits != "pattern":
            stages.append(Digits(self.digits))  # type: ignore[arg-type]
        if isinstance(self.pattern, SplitRegex):
            return (*stages, self.pattern)
        if self.pattern in CLEANINGS:
            return (*stages, SPLIT)
        row = patterns.get_pattern(self.pattern)
        both = patterns.digits_and_rest(row)
        if both is not None:
            stages.append(Digits(both[0]))  # type: ignore[arg-type]
            row = both[1]
        return (*stages, Split((patterns.pattern_of(*row.steps) or row).name))

    @property
    def keeps_texts_whole(self) -> bool:
        """Whether a long text must not be cut: where it may be is known of the rows of `PATTERNS` alone."""
        is_row = isinstance(self.pattern, str) and self.pattern not in CLEANINGS and self.pattern != "none"
        return not is_row or self.normalization is not None

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The stages as plain data, with the expressions behind the names of patterns."""
        rows = [{"stage": type(stage).__name__, **asdict(stage)} for stage in self.stages]
        for row in rows:
            if row["stage"] == "Split":
                row["steps"] = list(patterns.get_pattern(row["pattern"]).steps)
        return rows

    @cached_property
    def fingerprint(self) -> str:
        """The same for two ways of splitting exactly if they have the same stages and the same special tokens."""
        content = {"stages": self.rows, "special_tokens": sorted(self.special_tokens)}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        regex = asdict(self.pattern) if isinstance(self.pattern, SplitRegex) else None
        return {
            "pattern": self.pattern if regex is None else regex,
            "digits": self.digits,
            "normalization": self.normalization,
            "special_tokens": list(self.special_tokens),
            "stages": self.rows,
            "fingerprint": self.fingerprint,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Splitting:
        """The inverse of `to_json`. Raises KeyError, TypeError or ValueError on other values."""
        pattern = value["pattern"]
        splitting = cls(
            SplitRegex(**pattern) if isinstance(pattern, dict) else pattern,
            value["digits"],
            value["normalization"],
            tuple(value["special_tokens"]),
        )
        if splitting.fingerprint != value["fingerprint"]:
            there = json.dumps(value.get("stages"), sort_keys=True)
            here = json.dumps(splitting.rows, sort_keys=True)
            raise SubwordValueError(
                f"counted with stages that this version of subword does not have under these names: {there}, not {here}"
                if there != here
                else "the fingerprint is not that of the stages"
            )
        return splitting

    def difference(self, other: Splitting) -> str | None:
        """What keeps the counts of two tables from being added up, or None."""
        if self.fingerprint == other.fingerprint:
            return None
        named = [(name, getattr(self, name), getattr(other, name)) for name in self.__dataclass_fields__]
        named = [(name, mine, its) for name, mine, its in named if mine != its]
        if self.stages == other.stages:  # they differ in name alone
            named = [row for row in named if row[0] == "special_tokens"]
        return "; ".join(f"{name} {_shown(mine)} and {_shown(its)}" for name, mine, its in named)


def _shown(value: Any) -> str:
    return repr(list(value)) if isinstance(value, tuple) else repr(value)


# ======================== the table ========================


@dataclass(frozen=True)
class Part:
    """A stretch of a source that was counted at once."""

    pieces: int
    bytes: int | None = None
    """Bytes of text; None if whoever made the table did not say."""
    sha256: str | None = None
    """Of all the text, one document behind the other."""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Part:
        """The inverse of `asdict`. Raises KeyError, TypeError or ValueError on other values."""
        size, digest = value.get("bytes"), value.get("sha256")
        return cls(
            integer("pieces", value["pieces"]),
            None if size is None else integer("bytes", size),
            None if digest is None else string("sha256", digest),
        )


class Run(NamedTuple):
    """Sorted rows. Where each piece was first met counts from `shift`; source numbers are places in `sources`."""

    read: Any
    """Makes an iterator over the blocks (of `_core`)."""
    shift: int
    sources: tuple[str, ...]


@dataclass(frozen=True)
class Pruned:
    """What `min_count` left out: distinct pieces, and how often they were counted (by weight, if there are weights)."""

    pieces: int
    count: Fraction


@dataclass(frozen=True, eq=False, repr=False)
class CountTable:
    """How often each distinct piece of a corpus was counted. `count_pieces` makes one, `load` reads one.

    Tables add up: `a + b` is what counting the text of `a` and then that of `b` gives. `for piece, count in table`
    goes through the pieces in the order of their bytes, with the counts of all sources together. A table may be larger
    than memory: what it holds stays where it is, in memory or on disk, until it is asked for.
    """

    splitting: Splitting
    sources: Mapping[str, tuple[Part, ...]]
    """The parts of each source, by its name."""
    has_first: bool
    length: int
    """Above every number in the column `first`."""
    runs: Sequence[Run] = field(default_factory=list)

    # ------------------------ looking ------------------------

    @property
    def fingerprint(self) -> str:
        """Tables add up exactly if theirs are the same: a SHA-256 of the stages before the model and special tokens."""
        return self.splitting.fingerprint

    @property
    def total(self) -> int:
        """The number of pieces."""
        return sum(part.pieces for parts in self.sources.values() for part in parts)

    @property
    def text_bytes(self) -> int | None:
        """Bytes of the text that was counted, or None if that is not known."""
        sizes = [part.bytes for parts in self.sources.values() for part in parts]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    @cached_property
    def distinct(self) -> int:
        """The number of distinct pieces. The first time it is asked for, it takes a walk through the table."""
        return sum(pieces for _, pieces, _, _ in self._merge().survey([], 1))

    def __len__(self) -> int:
        return self.distinct

    def __iter__(self) -> Iterator[tuple[bytes, int]]:
        """Pieces in the order of their bytes, each with its count."""
        last, sum = b"", 0
        for data, offsets, counts, _, _ in self._rows(1 << 12):
            for start, end, count in zip(offsets.tolist(), offsets[1:].tolist(), counts.tolist(), strict=False):
                piece = data[start:end]
                if piece == last:
                    sum += count
                    continue
                if last:
                    yield last, sum
                last, sum = piece, count
        if last:
            yield last, sum

    def __repr__(self) -> str:
        names = ", ".join(repr(name) for name in self.sources if name)
        return f"<CountTable: {self.total:,} pieces" + (f" of {names}>" if names else ">")

    # ------------------------ adding ------------------------

    def __add__(self, other: CountTable) -> CountTable:
        if not isinstance(other, CountTable):
            return NotImplemented
        difference = self.splitting.difference(other.splitting)
        if difference is not None:
            raise SubwordValueError(f"counts of different stages do not add up: {difference}; count one of them again")
        sources = dict(self.sources)
        for name, parts in other.sources.items():
            again = [part.sha256 for part in parts if part.sha256 and part in sources.get(name, ())]
            if again:
                warn(
                    f"both tables hold the text with the SHA-256 {again[0][:16]}… of the source {name!r}: "
                    "it counts twice"
                )
            sources[name] = (*sources.get(name, ()), *parts)
        has_first = self.has_first and other.has_first
        shifted = [run._replace(shift=run.shift + self.length if has_first else 0) for run in other.runs]
        return replace(
            self,
            sources={name: sources[name] for name in sorted(sources)},
            has_first=has_first,
            length=self.length + other.length,
            runs=[*(self.runs if has_first else (run._replace(shift=0) for run in self.runs)), *shifted],
        )

    # ------------------------ files ------------------------

    @property
    def metadata(self) -> dict[str, str]:
        """What the metadata of a Parquet file must say for its counts to be added to these: a key and its value."""
        return {KEY.decode(): json.dumps({"version": VERSION, **self.splitting.to_json()})}

    def save(self, path: str | os.PathLike[str]) -> int:
        """Write the table into a Parquet file. The same counts give the same bytes, with one version of `pyarrow`.

        Returns:
            The number of rows: distinct pieces, each source's counted apart.

        Raises:
            SubwordOSError: the file cannot be written. What stood there before is still there.
            SubwordValueError: `pyarrow` is not installed (`pip install "subword[parquet]"`).
        """
        path = path_of(path)
        pa, pq = pyarrow("write")
        columns = [("piece", pa.binary()), ("count", pa.int64()), ("first", pa.int64()), ("source", pa.string())]
        names = list(self.sources)
        sources = {name: [asdict(part) for part in parts] for name, parts in self.sources.items()}
        header = {"version": VERSION, **self.splitting.to_json(), "sources": sources, "sorted": True}
        schema = pa.schema(
            [pa.field(name, kind, False) for name, kind in columns if name != "first" or self.has_first],
            {KEY: json.dumps(header).encode()},
        )
        encodings = {"piece": "DELTA_BYTE_ARRAY", "count": "DELTA_BINARY_PACKED", "first": "DELTA_BINARY_PACKED"}
        settings = {name: encoding for name, encoding in encodings.items() if name in schema.names}
        rows = 0
        with (
            replacing(path) as file,
            pq.ParquetWriter(
                file,
                schema,
                compression="zstd",
                use_dictionary=["source"],
                column_encoding=settings,
                write_page_checksum=True,
            ) as writer,
        ):
            for data, offsets, counts, firsts, numbers in self._rows(GROUP):
                if offsets[-1] >= 2**31:
                    raise SubwordValueError("a piece of 2 GB or more does not fit into a table of counts")
                pieces = pa.Array.from_buffers(
                    pa.binary(), len(counts), [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
                )
                source = pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), pa.array(names, pa.string()))
                arrays = [
                    pieces,
                    pa.array(counts),
                    *([pa.array(firsts)] if self.has_first else []),
                    source.cast(pa.string()),
                ]
                writer.write_batch(pa.record_batch(arrays, schema=schema), row_group_size=GROUP)
                rows += len(counts)
        return rows

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        pattern: str | SplitRegex | None = None,
        digits: str = "pattern",
        normalization: str | None = None,
        special_tokens: Iterable[str] = (),
    ) -> CountTable:
        """Open a table that `save`, or any other engine, has written. `help(subword.counts)` has the layout.

        Args:
            path: a Parquet file.
            pattern, digits, normalization, special_tokens: how text became pieces, as for `count_pieces`; for a file
                that does not say so itself.

        Raises:
            FormatError: it is no such file, or is damaged. Some damage shows only when the counts are read.
            SubwordOSError: it cannot be read.
            SubwordValueError: `pyarrow` is not installed (`pip install "subword[parquet]"`).
        """
        told = None
        if pattern is not None:
            told = Splitting(pattern, digits, normalization, tuple(list_of("special_tokens", special_tokens)))
        return _load(path_of(path), told)

    # ------------------------ for the trainer ------------------------

    def memory_to_learn(self, weights: Mapping[str, Weight] | None = None, min_count: int = 1) -> int:
        """About how many bytes of memory `train` takes at most for this table: known after a walk through it."""
        kept = [row for row in self._survey(weights) if row[0] >= min_count]
        return _core.memory_to_learn(sum(row[1] for row in kept), sum(row[2] for row in kept))

    def check_memory(self, memory: int, weights: Mapping[str, Weight] | None, min_count: int) -> None:
        """Raise SubwordValueError, saying what would help, if learning takes more than `memory` bytes."""
        rows = self._survey(weights)

        def need(least: int) -> int:
            kept = [row for row in rows if row[0] >= least]
            return _core.memory_to_learn(sum(row[1] for row in kept), sum(row[2] for row in kept))

        if need(min_count) <= memory:
            return
        message = (
            f"learning from {sum(row[1] for row in rows if row[0] >= min_count):,} distinct pieces takes up to "
            f"{_megabytes(need(min_count))}, more than memory={_megabytes(memory)}"
        )
        least = next((row[0] + 1 for row in rows if row[0] >= min_count and need(row[0] + 1) <= memory), None)
        if least is None or least > rows[-1][0]:
            raise SubwordValueError(f"{message}, and leaving out rare pieces does not help: give it more")
        dropped = sum(row[3] for row in rows if row[0] < least) / max(sum(row[3] for row in rows), 1)
        raise SubwordValueError(
            f"{message}. With min_count={least} it takes up to {_megabytes(need(least))}: pieces counted less often, "
            f"{100 * dropped:.2g} % of all, are left out, and `training` says how many merges that cannot have changed"
        )

    def pieces(
        self, weights: Mapping[str, Weight] | None = None, min_count: int = 1, in_order: bool = False
    ) -> tuple[_core.Pieces, int, Pruned]:
        """What the core learns from; what its counts are multiplied by to be whole numbers; and what was left out.

        Raises:
            SubwordValueError: a weight of a source that is not there, or one that is no rational number.
        """
        factors, scale = self._factors(weights)
        pieces = self._merge().pieces(factors, min_count * scale if min_count > 1 else 1, in_order)
        lost, count = pieces.lost
        return pieces, scale, Pruned(lost, Fraction(count, scale))

    def _survey(self, weights: Mapping[str, Weight] | None) -> list[tuple[int, int, int, int]]:
        """For each count (1,024 stands for more): distinct pieces, their bytes, and how often they were counted."""
        factors, scale = self._factors(weights)
        return self._merge().survey(factors, scale)

    def _factors(self, weights: Mapping[str, Weight] | None) -> tuple[list[int], int]:
        """The weight of each source as a whole number, and what weights are multiplied by for that."""
        if weights is not None and not isinstance(weights, Mapping):
            raise SubwordValueError(f'weights must be a dict such as {{"code": "3/10"}}, not {weights!r}')
        rational = {name: _rational(name, weight) for name, weight in (weights or {}).items()}
        for name in rational:
            if name not in self.sources:
                known = ", ".join(map(repr, self.sources))
                raise SubwordValueError(f"weights: there is no source {name!r}; the sources are {known}")
        scale = math.lcm(*(weight.denominator for weight in rational.values()))
        factors = [int(rational.get(name, Fraction(1)) * scale) for name in self.sources]
        if max([scale, *factors]) >= 2**63:
            raise SubwordValueError("the weights have too large a common denominator: use simpler fractions")
        return factors, scale

    def _merge(self) -> _core.PieceMerge:
        numbers = {name: number for number, name in enumerate(self.sources)}
        return _core.PieceMerge([(run.read(), run.shift, [numbers[name] for name in run.sources]) for run in self.runs])

    def _rows(self, most: int) -> Iterator[tuple[bytes, Any, Any, Any, Any]]:
        """The rows in columns, up to `most` at once."""
        merge = self._merge()
        while len((columns := merge.rows(most))[2]):
            yield columns


def source_name(name: Any) -> str:
    """What a source can be called."""
    if string("source", name):
        token_content(name)
    return str(name)


def _rational(name: str, weight: Any) -> Fraction:
    try:
        number = None if isinstance(weight, (bool, float)) else Fraction(weight)
    except (TypeError, ValueError, ZeroDivisionError):
        number = None
    if number is None or number < 0:
        raise SubwordValueError(
            f'the weight of {name!r} must be a whole number or a fraction such as Fraction(3, 10) or "3/10", '
            f"not {weight!r}"
        )
    return number


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB" if size >= 1e6 else f"{size:,} bytes"


# ======================== reading ========================


def pyarrow(what: str) -> tuple[Any, Any]:
    """The modules that read and write tables, or the error that says how to get them."""
    pa = pyarrow_or_error(f"to {what} a table of counts")
    import pyarrow.parquet as pq

    return pa, pq


def _load(path: str, told: Splitting | None) -> CountTable:
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
    header = _header(path, (file.metadata.metadata or {}).get(KEY), told)
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
        raise FormatError(f"{path}: the metadata {KEY.decode()!r} is damaged: {error}") from error
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
            self.runs.append(Run(_Reader(blocks, handles), 0, tuple(self.sources)))


def _sum(counts: Any) -> int:
    """The exact sum: NumPy's own wraps around."""
    return (int((counts >> 32).sum()) << 32) + int((counts & 0xFFFFFFFF).sum())


@dataclass(frozen=True)
class _Reader:
    blocks: Blocks
    handles: Sequence[Any]

    def __call__(self) -> Iterator[bytes]:
        return self.blocks.read(self.handles)


def run_of(blocks: Blocks, handles: Sequence[Any], source: str) -> Run:
    """A run of one source whose blocks are kept in `blocks`."""
    return Run(_Reader(blocks, handles), 0, (source,))
