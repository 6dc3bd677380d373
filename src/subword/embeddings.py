"""Embedding tables in files, carried over to a changed vocabulary: `.npy`, and the tensors of `.safetensors`.

A safetensors file is the length of its header (eight bytes, little-endian), the header (a JSON object that says of each
tensor its type, its shape, and where its data starts and ends), and the data. It is read and written here, not by the
package of that name, because that writes only what it has in memory as a whole, and has no bfloat16 for NumPy. Here the
input is looked at through a map of the file, and the output written a few MB at a time.
"""

from __future__ import annotations

import json
import math
import mmap
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from .arguments import list_of, path_of, string
from .corpus.storing import replacing
from .errors import FormatError, SubwordValueError
from .formats.files import os_error
from .formats.json_node import Node, parse
from .remap import Fill, Remap

SUFFIXES = (".npy", ".safetensors")

DTYPES = {
    "BOOL": "?", "U8": "u1", "I8": "i1", "F8_E4M3": "V1", "F8_E5M2": "V1", "F8_E8M0": "V1", "U16": "<u2", "I16": "<i2",
    "F16": "<f2", "BF16": "V2", "U32": "<u4", "I32": "<i4", "F32": "<f4", "U64": "<u8", "I64": "<i8", "F64": "<f8",
    "C64": "<c8",
}  # fmt: skip
"""The types of tensors whose rows can be told apart, as NumPy has them. Tensors of others are only copied."""

MAX_HEADER = 100_000_000
"""Longer headers are refused, as the package safetensors does."""

MOST = 3
"""So many tensors with a row for each id can be meant unasked: a table, the weights of the output, their bias."""

_BLOCK = 8 << 20


@dataclass(frozen=True)
class Tensor:
    """A tensor of a file: `data` is a view of its bytes there."""

    name: str
    type: str
    shape: tuple[int, ...]
    data: memoryview

    def array(self) -> npt.NDArray[Any]:
        return np.frombuffer(self.data, dtype=DTYPES[self.type]).reshape(self.shape)


def apply_to_file(remap: Remap, source: Any, out: Any, tensors: Iterable[str] | None, fill: Fill) -> list[str]:
    """What `Remap.apply_to_file` says."""
    path, target = path_of(source), path_of(out)
    kind = _kind(path)
    if _kind(target) != kind:
        raise SubwordValueError(f"{target}: from a {kind} file a {kind} file is made; name it so")
    if tensors is not None and kind == ".npy":
        raise SubwordValueError(f"{path}: a .npy file holds one array, which has no name; leave out tensors")
    names = None if tensors is None else [string("a name in tensors", name) for name in list_of("tensors", tensors)]
    if kind == ".npy":
        array, pages = _load_npy(path)
        _check(remap, path, array, fill)
        with replacing(target, "a table") as file:
            shape = (remap.new, *array.shape[1:])
            head = {"descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, head)
            _write_rows(file, remap, array, fill, pages)
        return []
    with _mapped(path) as data:
        found, metadata = _read_safetensors(path, data)
        chosen = _chosen(path, found, remap, names)
        for tensor in found:
            if tensor.name in chosen:
                _check(remap, f"{path}: the tensor {tensor.name!r} ({tensor.type})", tensor.array(), fill)
        with replacing(target, "a file of tensors") as file:
            file.write(_header(found, chosen, remap.new, metadata))
            for tensor in found:
                if tensor.name in chosen:
                    _write_rows(file, remap, tensor.array(), fill, data)
                else:
                    _copy(file, tensor.data, data)
        return [tensor.name for tensor in found if tensor.name in chosen]


def _kind(path: str) -> str:
    kind = os.path.splitext(path)[1].lower()
    if kind not in SUFFIXES:
        raise SubwordValueError(f"{path}: embedding tables are read from .npy and .safetensors files; convert it first")
    return kind


def _check(remap: Remap, where: str, array: npt.NDArray[Any], fill: Fill) -> None:
    try:
        remap.check_table(array.shape, array.dtype, fill)
    except SubwordValueError as error:
        raise SubwordValueError(f"{where}: {error}") from None


# ======================== reading ========================


def _load_npy(path: str) -> tuple[npt.NDArray[Any], mmap.mmap]:
    """The array of a file, and the map that it is seen through."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise os_error(error, "cannot read a table", path) from error
    except (ValueError, EOFError, SyntaxError) as error:
        raise FormatError(f"{path}: not a .npy file that can be read: {' '.join(str(error).split())}") from error
    if not isinstance(array, np.memmap) or not isinstance(array.base, mmap.mmap):
        raise FormatError(f"{path}: not a .npy file with one array")
    return array, array.base


@contextmanager
def _mapped(path: str) -> Iterator[mmap.mmap]:
    """A file as a map, which is read from disk where it is looked at."""
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                raise FormatError(f"{path}: the file is empty")
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise os_error(error, "cannot read tensors", path) from error
    try:
        yield data
    finally:
        with suppress(BufferError):  # what an error holds of it goes with the error
            data.close()


def _forget(pages: mmap.mmap) -> None:
    """Let the parts of a map that were looked at go from memory; they are read again where they are needed."""
    if hasattr(mmap, "MADV_DONTNEED"):
        pages.madvise(mmap.MADV_DONTNEED)


def _read_safetensors(path: str, data: mmap.mmap) -> tuple[list[Tensor], dict[str, str]]:
    """The tensors of a file in the order of their data, and its metadata."""
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > MAX_HEADER or data[8:9] != b"{":
        raise FormatError(f"{path}: this is no safetensors file, or its start is damaged")
    start = 8 + length
    if start > len(data):
        raise FormatError(f"{path}: cut off in its header, {len(data):,} of {start:,} bytes; get the file again")
    header = parse(data[8:start], path)
    metadata = header.get("__metadata__", {})
    texts = {name: metadata.child(name, value).text() for name, value in metadata.fields().items()}
    rows: list[tuple[int, int, str, tuple[int, ...], Node]] = []
    for name in header.fields():
        if name != "__metadata__":
            row = header[name]
            shape = tuple(item.number(0, 2**62) for item in row["shape"].items())
            offsets = [item.number(0, 2**62) for item in row["data_offsets"].items()]
            if len(offsets) != 2 or offsets[0] > offsets[1]:
                raise row["data_offsets"].expected("where the data starts and ends")
            rows.append((offsets[0], offsets[1], name, shape, row))
    rows.sort(key=lambda row: row[:2])
    tensors, at, view = [], 0, memoryview(data)
    for first, last, name, shape, row in rows:
        if first != at:
            raise row["data_offsets"].error(f"the data should start at {at}, where that of the tensor before it ends")
        at = last
        type = row["dtype"].text()
        if type in DTYPES and last - first != math.prod(shape) * np.dtype(DTYPES[type]).itemsize:
            raise row.error(f"{last - first:,} bytes of data are not what {type} of shape {list(shape)} takes")
        tensors.append(Tensor(name, type, shape, view[start + first : start + last]))
    if len(data) != start + at:
        problem = "cut off in its data" if len(data) < start + at else "more than its tensors take"
        raise FormatError(f"{path}: {problem}, {len(data):,} bytes of {start + at:,}; get the file again")
    return tensors, texts


def _chosen(path: str, found: list[Tensor], remap: Remap, names: list[str] | None) -> set[str]:
    """The names of the tensors that are to be changed."""
    if names is not None:
        known = {tensor.name: tensor for tensor in found}
        for name in names:
            if name not in known:
                raise SubwordValueError(f"{path}: there is no tensor {name!r}; there are {_listed(found)}")
            if known[name].type not in DTYPES:
                raise SubwordValueError(f"{path}: the tensor {name!r} is of the type {known[name].type}, not supported")
        if not names:
            raise SubwordValueError(f"{path}: no tensor is named")
        return set(names)
    fitting = [tensor for tensor in found if tensor.shape[:1] == (remap.old,) and tensor.type in DTYPES]
    if not fitting:
        raise SubwordValueError(
            f"{path}: no tensor has {remap.old} rows; name the one that is meant (tensors=, --tensor), which may be "
            f"padded to more; the longest are {_listed(sorted(found, key=_rows, reverse=True))}"
        )
    if len(fitting) > MOST:
        raise SubwordValueError(
            f"{path}: {len(fitting)} tensors have {remap.old} rows; name those that are meant (tensors=, --tensor): "
            f"{_listed(fitting)}"
        )
    return {tensor.name for tensor in fitting}


def _rows(tensor: Tensor) -> int:
    return tensor.shape[0] if tensor.shape else 0


def _listed(tensors: list[Tensor]) -> str:
    names = [f"{tensor.name} ({' × '.join(map(str, tensor.shape))})" for tensor in tensors[:10]]
    return ", ".join(names) + (" …" if len(tensors) > 10 else "") if names else "none"


# ======================== writing ========================


def _header(tensors: list[Tensor], chosen: set[str], rows: int, metadata: dict[str, str]) -> bytes:
    """The start of a file, up to its data. Spaces behind the header have the data start at a multiple of 8."""
    header: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    at = 0
    for tensor in tensors:
        shape, size = tensor.shape, len(tensor.data)
        if tensor.name in chosen:
            shape = (rows, *shape[1:])
            size = math.prod(shape) * np.dtype(DTYPES[tensor.type]).itemsize
        header[tensor.name] = {"dtype": tensor.type, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    line = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    line += b" " * (-len(line) % 8)
    return len(line).to_bytes(8, "little") + line


def _write_rows(file: BinaryIO, remap: Remap, array: npt.NDArray[Any], fill: Fill, pages: mmap.mmap) -> None:
    for rows in remap.blocks(array, fill):
        file.write(rows.tobytes())
        _forget(pages)


def _copy(file: BinaryIO, data: memoryview, pages: mmap.mmap) -> None:
    for start in range(0, len(data), _BLOCK):
        file.write(data[start : start + _BLOCK])
        _forget(pages)
