"""Embedding tables in files, carried over to a changed vocabulary: `.npy`, and the tensors of `.safetensors`.

A safetensors file is the length of its header (eight bytes, little-endian), the header (a JSON object that says of each
tensor its type, its shape, and where its data starts and ends), and the data. It is read and written here, not by the
package of that name, because that writes only what it has in memory as a whole, and has no bfloat16 for NumPy. Here
only a few MB of a file are in memory at a time.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from mmap import ACCESS_READ, mmap
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt

from .arguments import list_of, path_of, string
from .errors import FormatError, SubwordValueError
from .formats.gguf_values import TensorInfo, read_tensors
from .formats.json_node import Node, parse
from .remap import Fill, Remap
from .writing import os_error, replacing

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
    """A tensor of a file: its data is from byte `start` to byte `stop`."""

    name: str
    type: str
    shape: tuple[int, ...]
    start: int
    stop: int


class Rows:
    """An array in a file, C order, whose rows are read when they are asked for: by a slice, or by an array of ids."""

    def __init__(self, path: str, file: BinaryIO, start: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        self.shape, self.dtype = shape, dtype
        self._path, self._file, self._start = path, file, start

    def __getitem__(self, at: slice | npt.NDArray[Any]) -> npt.NDArray[Any]:
        rows = np.arange(*at.indices(self.shape[0])) if isinstance(at, slice) else np.asarray(at, dtype=np.int64)
        width = math.prod(self.shape[1:]) * self.dtype.itemsize
        out = bytearray(len(rows) * width)
        ends = [*(np.flatnonzero(np.diff(rows) != 1) + 1).tolist(), len(rows)] if len(rows) else []
        for first, end in pairwise([0, *ends]):  # rows that stand side by side in the file
            self._file.seek(self._start + int(rows[first]) * width)
            read_into(self._path, self._file, memoryview(out)[first * width : end * width])
        return np.frombuffer(out, dtype=self.dtype).reshape(len(rows), *self.shape[1:])


def apply_to_file(remap: Remap, source: Any, out: Any, tensors: Iterable[str] | None, fill: Fill) -> list[str]:
    """What `Remap.apply_to_file` says."""
    path, target = path_of(source), path_of(out)
    kind = _kind(path)
    if _kind(target) != kind:
        raise SubwordValueError(f"{target}: from a {kind} file a {kind} file is made; name it so")
    if tensors is not None and kind == ".npy":
        raise SubwordValueError(f"{path}: a .npy file holds one array, which has no name; leave out tensors")
    names = None if tensors is None else [string("a name in tensors", name) for name in list_of("tensors", tensors)]
    with _opened(path) as file:
        if kind == ".npy":
            table = _read_npy(path, file)
            _check(remap, path, table, fill)
            shape = (remap.new, *table.shape[1:])
            head = {"descr": np.lib.format.dtype_to_descr(table.dtype), "fortran_order": False, "shape": shape}
            with replacing(target, "a table") as made:
                np.lib.format.write_array_header_1_0(made, head)
                _write_rows(made, remap, table, fill)
            return []
        found, metadata = _read_header(path, file)
        chosen = _chosen(path, found, remap, names)
        tables = {
            t.name: Rows(path, file, t.start, np.dtype(DTYPES[t.type]), t.shape) for t in found if t.name in chosen
        }
        for tensor in found:
            if tensor.name in chosen:
                _check(remap, f"{path}: the tensor {tensor.name!r} ({tensor.type})", tables[tensor.name], fill)
        with replacing(target, "a file of tensors") as made:
            made.write(_header(found, chosen, remap.new, metadata))
            for tensor in found:
                if tensor.name in chosen:
                    _write_rows(made, remap, tables[tensor.name], fill)
                else:
                    _copy(path, file, tensor, made)
        return [tensor.name for tensor in found if tensor.name in chosen]


def _kind(path: str, suffixes: tuple[str, ...] = SUFFIXES) -> str:
    kind = os.path.splitext(path)[1].lower()
    if kind not in suffixes:
        known = f"{', '.join(suffixes[:-1])} and {suffixes[-1]}"
        raise SubwordValueError(f"{path}: embedding tables are read from {known} files; convert it first")
    return kind


def _check(remap: Remap, where: str, table: Any, fill: Fill) -> None:
    try:
        remap.check_table(table.shape, table.dtype, fill)
    except SubwordValueError as error:
        raise SubwordValueError(f"{where}: {error}") from None


# ======================== reading ========================


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    try:
        file = open(path, "rb", buffering=0)  # noqa: SIM115
    except OSError as error:
        raise os_error(error, "cannot read a table", path) from error
    with file:
        yield cast("BinaryIO", file)


def read_into(path: str, file: BinaryIO, buffer: memoryview) -> None:
    """Fill a buffer from where a file stands."""
    while len(buffer):
        try:
            count: int = file.readinto(buffer)  # type: ignore[attr-defined]
        except OSError as error:
            raise os_error(error, "cannot read a table", path) from error
        if not count:
            raise FormatError(f"{path}: the file ends too early; was it changed meanwhile?")
        buffer = buffer[count:]


def _read_npy(path: str, file: BinaryIO) -> Any:
    """The table of a file."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # NumPy reads the head with Python's own parser, which has errors of many kinds
        raise FormatError(f"{path}: not a .npy file that can be read: {' '.join(str(error).split())}") from error
    if not isinstance(array, np.memmap):
        raise FormatError(f"{path}: not a .npy file with one array")
    return Rows(path, file, array.offset, array.dtype, array.shape) if array.flags.c_contiguous else array


def _read_header(path: str, file: BinaryIO) -> tuple[list[Tensor], dict[str, str]]:
    """The tensors of a safetensors file in the order of their data, and its metadata."""
    size = os.fstat(file.fileno()).st_size
    head = file.read(9)
    length = int.from_bytes(head[:8], "little")
    if len(head) < 9 or length > MAX_HEADER or head[8:] != b"{":
        raise FormatError(f"{path}: this is no safetensors file, or its start is damaged")
    start = 8 + length
    if start > size:
        raise FormatError(f"{path}: cut off in its header, {size:,} of {start:,} bytes; get the file again")
    data = bytearray(length)
    file.seek(8)
    read_into(path, file, memoryview(data))
    header = parse(bytes(data), path)
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
    tensors, at = [], 0
    for first, last, name, shape, row in rows:
        if first != at:
            raise row["data_offsets"].error(f"the data should start at {at}, where that of the tensor before it ends")
        at = last
        type = row["dtype"].text()
        if type in DTYPES and last - first != math.prod(shape) * np.dtype(DTYPES[type]).itemsize:
            raise row.error(f"{last - first:,} bytes of data are not what {type} of shape {list(shape)} takes")
        tensors.append(Tensor(name, type, shape, start + first, start + last))
    if size != start + at:
        problem = "cut off in its data" if size < start + at else "more than its tensors take"
        raise FormatError(f"{path}: {problem}, {size:,} bytes of {start + at:,}; get the file again")
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
        shape, size = tensor.shape, tensor.stop - tensor.start
        if tensor.name in chosen:
            shape = (rows, *shape[1:])
            size = math.prod(shape) * np.dtype(DTYPES[tensor.type]).itemsize
        header[tensor.name] = {"dtype": tensor.type, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    line = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    line += b" " * (-len(line) % 8)
    return len(line).to_bytes(8, "little") + line


def _write_rows(file: BinaryIO, remap: Remap, table: Any, fill: Fill) -> None:
    for rows in remap.blocks(table, fill):
        file.write(rows.tobytes())


def _copy(path: str, source: BinaryIO, tensor: Tensor, file: BinaryIO) -> None:
    buffer = bytearray(min(_BLOCK, tensor.stop - tensor.start))
    source.seek(tensor.start)
    for at in range(tensor.start, tensor.stop, _BLOCK):
        view = memoryview(buffer)[: tensor.stop - at]
        read_into(path, source, view)
        file.write(view)


# ======================== a table in memory ========================

GGUF_TENSORS = ("output.weight", "token_embd.weight")


def read_table(source: Any, rows: int, tensor: str | None = None) -> npt.NDArray[np.float32]:
    """A table of embeddings with at least so many rows: from a `.npy`, `.safetensors` or `.gguf` file.

    Without the name of a tensor, the one with the fewest rows that are enough, and of several the last by name. Of a
    GGUF file, that of the output layer, or the only one there is; where it is quantized, the package gguf reads it.

    Raises:
        FormatError: the file is damaged.
        SubwordOSError: it cannot be read.
        SubwordValueError: it has no such table, or one that holds no floats.
    """
    path = path_of(source)
    if os.path.splitext(path)[1].lower() == ".gguf":
        return _read_gguf(path, tensor)
    kind = _kind(path, (*SUFFIXES, ".gguf"))
    with _opened(path) as file:
        if kind == ".npy":
            return _floats(path, _read_npy(path, file)[:])
        found, _ = _read_header(path, file)
        fitting = [t for t in found if len(t.shape) == 2 and t.shape[0] >= rows and t.type in DTYPES]
        if tensor is None and fitting:
            least = min(t.shape[0] for t in fitting)
            tensor = max(t.name for t in fitting if t.shape[0] == least)
        chosen = next((t for t in found if t.name == tensor), None)
        if chosen is None:
            raise SubwordValueError(f"{path}: there is no such table; there are {_listed(found)}")
        if chosen.type not in (*_FLOATS, "BF16"):
            raise SubwordValueError(f"{path}: the tensor {chosen.name!r} is of the type {chosen.type}, not of floats")
        data = Rows(path, file, chosen.start, np.dtype(DTYPES[chosen.type]), chosen.shape)[:]
        if chosen.type == "BF16":
            return _from_floats(data.view("<u2"), True)
        return _floats(path, data)


_FLOATS = ("F16", "F32", "F64")


def _floats(path: str, data: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    if data.dtype.kind != "f":
        raise SubwordValueError(f"{path}: a table of embeddings holds floats, not {data.dtype}; save it as float32")
    return data.astype(np.float32)


def _read_gguf(path: str, tensor: str | None) -> npt.NDArray[np.float32]:
    with _opened(path) as file:
        try:
            data = mmap(file.fileno(), 0, access=ACCESS_READ)
        except ValueError as error:
            raise FormatError(f"{path}: this is no GGUF file: it is empty") from error
    with data:
        found, end = read_tensors(cast("bytes", data), path)
        names = [each.name for each in found]
        name = tensor or next((name for name in GGUF_TENSORS if name in names), None)
        if name is None or name not in names:
            raise SubwordValueError(f"{path}: there is no such table; there are {', '.join(names[:10]) or 'none'}")
        chosen = found[names.index(name)]
        if len(chosen.shape) != 2 or 0 in chosen.shape:
            raise SubwordValueError(f"{path}: the tensor {name!r} is no table; its shape is {list(chosen.shape)}")
        dtype, count = _GGUF_FLOATS.get(chosen.type, "u1"), math.prod(chosen.shape)
        block, size = (1, int(dtype[1])) if chosen.type in _GGUF_FLOATS else _block(path, chosen)
        if chosen.shape[1] % block:
            raise FormatError(
                f"{path}: the tensor {name!r} has rows of {chosen.shape[1]:,}, not whole blocks of {block}"
            )
        length = count // block * size
        if chosen.start + length > len(data):
            raise FormatError(
                f"{path}: cut off in the tensor {name!r}, {len(data):,} of {chosen.start + length:,} bytes; "
                "get the file again"
            )
        raw = np.frombuffer(data[chosen.start : chosen.start + length], "u1")
    if chosen.type in _GGUF_FLOATS:
        return _from_floats(raw.view(end + dtype), chosen.type == _BF16).reshape(chosen.shape)
    if end == ">":
        raise SubwordValueError(f"{path}: the tensor {name!r} is quantized with the large end first, not supported")
    return _dequantized(path, chosen, raw)


_BF16 = 30
_GGUF_FLOATS = {0: "f4", 1: "f2", 28: "f8", _BF16: "u2"}
"""The types of ggml that are floats, as NumPy has them; of bfloat16, its bits."""


def _from_floats(data: npt.NDArray[Any], is_bfloat: bool) -> npt.NDArray[np.float32]:
    return (data.astype(np.uint32) << 16).view(np.float32) if is_bfloat else data.astype(np.float32)


def _quants(path: str) -> Any:
    try:
        import gguf
    except ImportError:
        raise SubwordValueError(
            f"{path}: quantized tensors of GGUF files are read by the package gguf: pip install gguf"
        ) from None
    return gguf


def _block(path: str, tensor: TensorInfo) -> tuple[int, int]:
    """How many numbers a block of a quantized tensor holds, and its bytes."""
    gguf = _quants(path)
    try:
        block, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType(tensor.type)]
    except (ValueError, KeyError):
        raise SubwordValueError(f"{path}: the tensor {tensor.name!r} is of the type {tensor.type}, unknown") from None
    return int(block), int(size)


def _dequantized(path: str, tensor: TensorInfo, raw: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    gguf = _quants(path)
    type = gguf.GGMLQuantizationType(tensor.type)
    try:
        with np.errstate(all="ignore"):
            rows = gguf.dequantize(raw.reshape(tensor.shape[0], -1), type)
    except NotImplementedError:
        raise SubwordValueError(
            f"{path}: the tensor {tensor.name!r} is of the type {type.name}, not supported"
        ) from None
    return np.asarray(rows, dtype=np.float32).reshape(tensor.shape)
