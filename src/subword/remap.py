"""What becomes of the rows of an embedding table when the vocabulary of its tokenizer changes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from .arguments import choice, integer, list_of, path_of
from .encoding import Ragged
from .errors import FormatError, SubwordValueError
from .spec import MAX_ID, whole_numbers

Fill: TypeAlias = Literal["mean", "zeros"]
FILLS = ("mean", "zeros")

FORMAT = "subword remap"
VERSION = 1

_BLOCK = 8 << 20
"""About how many bytes of a table are worked on at a time."""


@dataclass(frozen=True, eq=False)
class Remap:
    """How the ids of a changed tokenizer follow from those before, and what its embedding rows start from.

    The row of the new id `i` starts as the mean of the old rows `parts[i]`: a token that stayed has its own old id
    alone, a new one the tokens that its text took before, and an id without a token (a hole) none.

    Attributes:
        old: `n_vocab` before, so that old ids are below it.
        parts: the old ids that each new id starts from; `new` items.
    """

    old: int
    parts: Ragged

    def __post_init__(self) -> None:
        object.__setattr__(self, "old", integer("Remap.old", self.old))
        if self.old > MAX_ID + 1:
            raise SubwordValueError(f"Remap.old: {self.old} is more than the {MAX_ID + 1} ids that there are")
        if not isinstance(self.parts, Ragged):
            raise SubwordValueError(f"Remap.parts must be a Ragged, not {type(self.parts).__name__}: see Remap.of")
        if len(self.parts) > MAX_ID + 1:
            raise SubwordValueError(f"Remap.parts: {len(self.parts)} is more than the {MAX_ID + 1} ids that there are")
        if len(self.parts.ids):
            ids = whole_numbers("the ids in Remap.parts", self.parts.ids, np.uint32, MAX_ID, (None,))
            if int(ids.max()) >= self.old:
                raise SubwordValueError(f"Remap.parts: there is no old id {ids.max()}; there were {self.old}")
            object.__setattr__(self, "parts", Ragged(ids, self.parts.offsets))

    @classmethod
    def of(cls, old: int, rows: Iterable[Iterable[int]]) -> Remap:
        """Pack the old ids that each new id starts from, given as lists.

        >>> Remap.of(3, [[0], [2], [0, 2]]).ids.tolist()
        [0, -1, 1]
        """
        listed = [list_of("the parts of an id", row) for row in list_of("the rows of a Remap", rows)]
        ids = whole_numbers("the parts", [id for row in listed for id in row], np.uint32, MAX_ID, (None,))
        return cls(old, Ragged(ids, np.cumsum([0, *map(len, listed)], dtype=np.uint64)))

    @property
    def new(self) -> int:
        """`n_vocab` afterwards."""
        return len(self.parts)

    @cached_property
    def ids(self) -> npt.NDArray[np.int64]:
        """The new id of each old one, -1 where it was removed: shape (old,), read-only.

        Where several new ids start from one old id alone, it is the first of them.
        """
        alone = np.flatnonzero(self._lengths == 1)
        ids = np.full(self.old, -1, dtype=np.int64)
        ids[self.parts.ids[self.parts.offsets[alone].astype(np.int64)][::-1]] = alone[
            ::-1
        ]  # of several, the last to be written stays
        ids.setflags(write=False)
        return ids

    @property
    def _lengths(self) -> npt.NDArray[np.int64]:
        ends = self.parts.offsets.astype(np.int64)
        return ends[1:] - ends[:-1]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Remap):
            return NotImplemented
        same = np.array_equal(self.parts.offsets, other.parts.offsets) and np.array_equal(
            self.parts.ids, other.parts.ids
        )
        return self.old == other.old and same

    def __hash__(self) -> int:
        return hash((self.old, self.parts.ids.tobytes(), self.parts.offsets.tobytes()))

    def __reduce__(self) -> Any:
        return Remap, (self.old, self.parts)

    def __repr__(self) -> str:
        made = int(np.count_nonzero(self._lengths != 1))
        return f"Remap({self.old:,} -> {self.new:,} ids, {made:,} of them new)"

    # ======================== tables ========================

    def apply(self, array: Any, axis: int = 0, fill: Fill = "mean") -> npt.NDArray[Any]:
        """An embedding table (or the weights or the bias of an output layer) for the new ids.

        Rows of tokens that stayed are copied bit by bit, whatever their type. Means are computed in float64 and rounded
        to the type of the table: float16, float32, float64, or bfloat16 (as of `ml_dtypes`; or `V2`, what NumPy makes
        of it in a `.npy` file).

        Args:
            array: the table, with a row for each old id along `axis`. Rows beyond `old`, which tables are padded with,
                belong to no token and are dropped.
            fill: what ids without a token get: `"mean"`, the mean of the rows of all old ids, which leaves the
                probabilities of the others nearly as they are (Hewitt 2021, "Initializing New Word Embeddings for
                Pretrained Language Models"); or `"zeros"`.

        Raises:
            SubwordValueError: the array has fewer rows, or a mean is needed of numbers of another type.
        """
        array = np.asarray(array)
        if not -array.ndim <= integer("axis", axis, -array.ndim) < array.ndim:
            raise SubwordValueError(f"axis={axis}: the array has {array.ndim} dimensions")
        table = np.moveaxis(array, axis, 0)
        self.check_table(table.shape, table.dtype, fill)
        shape = list(array.shape)
        shape[axis] = self.new
        out: npt.NDArray[Any] = np.empty(shape, dtype=array.dtype)
        into, at = np.moveaxis(out, axis, 0), 0
        for rows in self.blocks(table, fill):
            into[at : at + len(rows)] = rows
            at += len(rows)
        return out

    def check_table(self, shape: tuple[int, ...], dtype: np.dtype[Any], fill: Fill = "mean") -> None:
        """Refuse a table that `blocks` cannot work on, by its shape and type alone.

        Raises:
            SubwordValueError: as for `apply`.
        """
        choice("fill", fill, FILLS)
        if not shape or shape[0] < self.old:
            raise SubwordValueError(
                f"an array of shape {tuple(shape)} has no row for each of the {self.old} old ids; is it the table of "
                "another model, or of another axis?"
            )
        lengths = self._lengths
        needed = bool(np.any(lengths > 1)) or (fill == "mean" and bool(np.any(lengths == 0)))
        if needed and not (_is_bfloat16(dtype) or (dtype.kind == "f" and dtype.itemsize in (2, 4, 8))):
            raise SubwordValueError(
                f"new ids start from means, which are not computed in {dtype}; there are float16, bfloat16, float32 "
                "and float64: convert the table first"
            )

    def blocks(self, table: Any, fill: Fill = "mean") -> Iterator[npt.NDArray[Any]]:
        """The rows of the new table in order, some MB at a time.

        `table` was checked with `check_table`. It is an array, or something that has only `shape` and `dtype` and reads
        rows when it is asked for them, by a slice or by an array of ids (`embeddings.Rows`).
        """
        width = table.dtype.itemsize * int(np.prod(table.shape[1:], dtype=np.int64))
        step = max(1, _BLOCK // max(width, 1))
        ends, lengths = self.parts.offsets.astype(np.int64), self._lengths
        hole: npt.NDArray[Any] = np.zeros(table.shape[1:], dtype=table.dtype)
        if fill == "mean" and self.old and np.any(lengths == 0):
            total = np.zeros(table.shape[1:], dtype=np.float64)
            for start in range(0, self.old, step):
                total += _numbers(table[start : min(start + step, self.old)]).sum(axis=0)
            hole = _as_type(total / self.old, table.dtype)
        start = 0
        while start < self.new:
            # A row of many parts takes as much as many rows.
            stop = min(start + step, max(start + 1, int(ends.searchsorted(ends[start] + step, "right")) - 1))
            rows: npt.NDArray[Any] = np.empty((stop - start, *table.shape[1:]), dtype=table.dtype)
            own = lengths[start:stop]
            rows[own == 1] = table[self.parts.ids[ends[start:stop][own == 1]]]
            rows[own == 0] = hole
            if np.any(own > 1):
                rows[own > 1] = self._means(table, start, stop)
            yield rows
            start = stop

    def _means(self, table: Any, start: int, stop: int) -> npt.NDArray[Any]:
        """The rows of those of some new ids that start from several old ones."""
        lengths = self._lengths[start:stop]
        ids = self.parts.ids[int(self.parts.offsets[start]) : int(self.parts.offsets[stop])]
        parts = _numbers(table[ids[np.repeat(lengths > 1, lengths)]])
        counts = lengths[lengths > 1]
        with np.errstate(invalid="ignore"):  # a NaN, or infinities, in the table
            sums = np.add.reduceat(parts, np.cumsum([0, *counts[:-1]]), axis=0)
            return _as_type(sums / counts.reshape(-1, *[1] * (len(table.shape) - 1)), table.dtype)

    def apply_to_file(
        self,
        source: str | os.PathLike[str],
        out: str | os.PathLike[str],
        tensors: Iterable[str] | None = None,
        fill: Fill = "mean",
    ) -> list[str]:
        """`apply` for a file: the table in a `.npy` file, or the tensors in a `.safetensors` file.

        The files may be larger than memory. Of a `.safetensors` file the tensors with a row for each old id are
        changed, and everything else is copied, the metadata included.

        Args:
            out: the file to write, of the same kind. It takes its place when it is complete, or not at all, and may be
                `source` itself.
            tensors: the tensors to change. They must be named where a table is padded to more rows than there were ids,
                and where more than three tensors have so many rows (as small models may have).

        Returns:
            The names of the tensors that were changed; none for a `.npy` file.

        Raises:
            FormatError: the file is damaged.
            SubwordValueError: it has no table for the old ids, or one that `apply` refuses.
            SubwordOSError: a file cannot be read or written.
        """
        from . import embeddings  # a door to a room above: tests/test_layout.py lists them

        return embeddings.apply_to_file(self, source, out, tensors, fill)

    # ======================== as a file ========================

    def to_json(self) -> str:
        """The remap as JSON. `rows` has an item for each new id: an old id, or the list of those it starts from."""
        rows = [row[0] if len(row) == 1 else row for row in self.parts.tolist()]
        head = {"format": FORMAT, "version": VERSION, "old": self.old, "new": self.new}
        return json.dumps({**head, "rows": rows}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes, source: str = "the remap") -> Remap:
        """What `to_json` wrote; `source` is what errors call it.

        Raises:
            FormatError: it is damaged, or something else.
        """
        from .formats.json_node import Node, parse, shown

        def parts_of(row: Node) -> list[int]:
            ids = row.items() if isinstance(row.value, list) else [row]
            return [id.number(0, old - 1) for id in ids]

        node = parse(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text, source)
        if not isinstance(node.value, dict) or node.value.get("format") != FORMAT:
            raise FormatError(f"{source}: this is no remap, as `subword prune --remap` and Remap.save write them")
        if node["version"].value != VERSION:
            found = shown(node["version"].value)
            raise FormatError(f"{source}: a remap of version {found}; this subword reads version {VERSION}")
        old = node["old"].number(0, MAX_ID + 1)
        rows = [parts_of(row) for row in node["rows"].items()]
        if node["new"].value != len(rows):
            raise node["rows"].error(f"{len(rows)} rows, but `new` is {shown(node['new'].value)}")
        return cls.of(old, rows)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a JSON file: all of it, or nothing.

        Raises:
            SubwordOSError: it cannot be written.
        """
        from .formats.files import write_file

        write_file(path_of(path), self.to_json().encode() + b"\n", "a remap")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Remap:
        """Read what `save` wrote.

        Raises:
            SubwordOSError: the file cannot be read.
            FormatError: it is damaged, or something else.
        """
        from .formats.files import read_file

        name = path_of(path)
        return cls.from_json(read_file(name, "a remap"), name)


# ======================== numbers ========================


def _is_bfloat16(dtype: np.dtype[Any]) -> bool:
    return dtype.itemsize == 2 and (dtype.name == "bfloat16" or (dtype.kind == "V" and dtype.type is np.void))


def _numbers(rows: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Rows as float64, which holds each exactly; in C order, so that sums do not depend on that of the table."""
    if _is_bfloat16(rows.dtype):  # the upper half of a float32
        bits = np.ascontiguousarray(rows).view(np.uint16).astype(np.uint32) << np.uint32(16)
        rows = bits.view(np.float32)
    with np.errstate(invalid="ignore"):  # a NaN in the table
        return rows.astype(np.float64, order="C")


def _as_type(numbers: npt.NDArray[np.float64], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Numbers rounded to a type, to the nearest, and to the even one of two that are as near."""
    if not _is_bfloat16(dtype):
        return numbers.astype(dtype)
    bits = np.ascontiguousarray(numbers, dtype=np.float32).view(np.uint32)
    upper = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    upper = np.where(np.isnan(numbers), np.uint32(0x7FC0), upper)  # rounding up could make a NaN something else
    return upper.astype(np.uint16).view(dtype)
