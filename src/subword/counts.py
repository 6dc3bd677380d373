"""Counted pieces as a value that can be added up, saved and learned from: `CountTable`.

How its file is laid out, and how it is written and read, stands in `counts_file.py`.
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

from . import _core, patterns
from .arguments import choice, integer, list_of, path_of, string, token_content
from .bert import CLEANINGS, SPLIT
from .corpus.storing import Blocks
from .errors import SubwordValueError, warn
from .spec import Digits, ExtraToken, MatchTokens, Normalize, Split, SplitRegex, Stage

NORMALIZATIONS = ("NFC", "NFD", "NFKC", "NFKD")

DIGITS = ("pattern", *patterns.DIGITS)

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
        if not isinstance(self.pattern, SplitRegex) and not (
            isinstance(self.pattern, str) and self.pattern in CLEANINGS
        ):
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
    def extra(self) -> tuple[ExtraToken, ...]:
        """What text is cut at and is not counted."""
        return tuple(ExtraToken(0, token) for token in self.special_tokens)

    @property
    def keeps_texts_whole(self) -> bool:
        """Whether a long text must not be cut: where it may be is known of the rows of `PATTERNS` alone."""
        is_row = isinstance(self.pattern, str) and self.pattern not in CLEANINGS and self.pattern != "none"
        return not is_row or self.normalization is not None

    @property
    def protected(self) -> tuple[str, ...]:
        """What a SentencePiece stage leaves as it is."""
        return ()

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
    """The SHA-256 of each text, added up modulo 2^256: of one text, its SHA-256."""

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
        for data, offsets, counts, _, _ in self.rows(1 << 12):
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
        from . import counts_file

        return counts_file.metadata(self.splitting)

    def save(self, path: str | os.PathLike[str]) -> int:
        """Write the table into a Parquet file. The same counts give the same bytes, with one version of `pyarrow`.

        Returns:
            The number of rows: distinct pieces, each source's counted apart.

        Raises:
            SubwordOSError: the file cannot be written. What stood there before is still there.
            SubwordValueError: `pyarrow` is not installed (`pip install "subword[parquet]"`).
        """
        from . import counts_file

        return counts_file.save(self, path_of(path))

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
        """Open a table that `save`, or any other engine, has written. `help(subword.counts_file)` has the layout.

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
        from . import counts_file

        return counts_file.load(path_of(path), told)

    # ------------------------ for the trainer ------------------------

    def memory_to_learn(self, vocab_size: int, weights: Mapping[str, Weight] | None = None, min_count: int = 1) -> int:
        """About how many bytes of memory `train` takes at most for this table: known after a walk through it."""
        return _memory_to_learn(self.survey(weights), min_count, vocab_size)

    def check_memory(self, memory: int, entries: int, weights: Mapping[str, Weight] | None, min_count: int) -> None:
        """Raise SubwordValueError, saying what would help, if learning the entries takes more than `memory` bytes."""
        rows = self.survey(weights)

        def need(least: int) -> int:
            return _memory_to_learn(rows, least, entries)

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

    def survey(self, weights: Mapping[str, Weight] | None = None) -> list[tuple[int, int, int, int]]:
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

    def rows(self, most: int) -> Iterator[tuple[bytes, Any, Any, Any, Any]]:
        """The rows, of each source its own, in columns, up to `most` at once: see `_core.PieceMerge.rows`."""
        merge = self._merge()
        while len((columns := merge.rows(most))[2]):
            yield columns


def table_of(counts: Any, texts: object, files: object) -> CountTable:
    """The counts that a call is given instead of texts."""
    if texts is not None or files is not None:
        raise SubwordValueError("give texts, files= or counts=, one of the three")
    items = [counts] if isinstance(counts, (CountTable, str, os.PathLike)) else list_of("counts", counts)
    if not items:
        raise SubwordValueError("counts is empty: give a table, or the path of one")
    first, *others = (item if isinstance(item, CountTable) else CountTable.load(path_of(item)) for item in items)
    return sum(others, first)


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


def _memory_to_learn(rows: Iterable[tuple[int, int, int, int]], min_count: int, entries: int) -> int:
    """`rows`: what `CountTable.survey` gives."""
    kept = [row for row in rows if row[0] >= min_count]
    return _core.memory_to_learn(sum(row[1] for row in kept), sum(row[2] for row in kept), entries)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB" if size >= 1e6 else f"{size:,} bytes"


@dataclass(frozen=True)
class _Reader:
    blocks: Blocks
    handles: Sequence[Any]

    def __call__(self) -> Iterator[bytes]:
        return self.blocks.read(self.handles)


def run_of(blocks: Blocks, handles: Sequence[Any], sources: Iterable[str], shift: int = 0) -> Run:
    """A run whose blocks are kept in `blocks`."""
    return Run(_Reader(blocks, handles), shift, tuple(sources))
