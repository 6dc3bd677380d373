"""Tokenizer files: bytes to `Spec` and back. One file a format; the grammar of each stands at the top of its file.

`load` recognises a format by what the file holds, never by its name; `save` takes it from the name or is told.

To add a format: one file with `looks_like`, `read` and `write`, and one row in `FORMATS`.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeAlias

from ..errors import FormatError, SubwordValueError
from ..spec import Spec
from ..tokenizer import Text, Tokenizer
from . import native, tokenizer_json
from .comparing import NOT_COMPARED, Comparison, Difference, DifferenceError, compare
from .files import MissingFileError, os_error, path_of, read_file, write_file

__all__ = [
    "FORMATS",
    "NOT_COMPARED",
    "PARTS",
    "Comparison",
    "Conversion",
    "Difference",
    "DifferenceError",
    "Format",
    "compare",
    "convert",
    "load",
    "read",
    "recognise",
    "save",
]

AnyPath: TypeAlias = "str | bytes | os.PathLike[str] | os.PathLike[bytes]"


PARTS = ("pieces", "ids", "merges", "pattern", "normalization", "extra tokens", "template", "roles", "notes")
"""What a tokenizer consists of, as far as files tell it apart."""


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of tokenizer file.

    `looks_like` says whether bytes are of this kind, sound or damaged; `sign` is what it looks for, in words.
    `read` takes the bytes and the name that errors call the file by. `parts` says where in the file each of `PARTS`
    is, or None where the format has no place for it; `limits`, what else it cannot hold.
    """

    name: str
    suffixes: tuple[str, ...]
    sign: str
    looks_like: Callable[[bytes], bool]
    read: Callable[[bytes, str], Spec]
    write: Callable[[Spec], bytes]
    parts: Mapping[str, str | None] = field(default_factory=dict)
    limits: str = ""


FORMATS: tuple[Format, ...] = (
    Format(
        name="native",
        suffixes=(".subword",),
        sign="a first line 'subword tokenizer 1'",
        looks_like=native.looks_like,
        read=native.read,
        write=native.write,
        parts=native.PARTS,
        limits=native.LIMITS,
    ),
    Format(
        name="tokenizer.json",
        suffixes=(".json",),
        sign="a JSON object",
        looks_like=tokenizer_json.looks_like,
        read=tokenizer_json.read,
        write=tokenizer_json.write,
        parts=tokenizer_json.PARTS,
        limits=tokenizer_json.LIMITS,
    ),
)


def load(path: AnyPath) -> Spec:
    """Read a tokenizer file, or the one in a folder. The content decides what format it is.

    Raises:
        SubwordOSError: the file cannot be read; it is a FileNotFoundError where nothing stands at `path`.
        FormatError: it is of no known format, damaged, or asks for something not supported.
    """
    name, data = _content_of(path)
    return read(data, name)


def read(data: bytes, source: str = "<bytes>") -> Spec:
    """The spec in the bytes of a tokenizer file; errors call it `source`.

    Raises:
        FormatError: as for `load`.
    """
    return _recognise(data, source).read(data, source)


def recognise(path: AnyPath) -> tuple[Path, Format]:
    """The file that `load` would read, and its format.

    Raises:
        SubwordOSError, FormatError: as for `load`; damage to the file is not looked for.
    """
    name, data = _content_of(path)
    return Path(name), _recognise(data, name)


def _content_of(path: AnyPath) -> tuple[str, bytes]:
    name = path_of(path)
    if os.path.isdir(name):
        name = _file_in(name)
    return name, read_file(name)


def _recognise(data: bytes, source: str) -> Format:
    for row in FORMATS:
        if row.looks_like(data):
            return row
    if not data:
        raise FormatError(f"{source}: the file is empty")
    looked_for = "; ".join(f"{row.sign} ({row.name})" for row in FORMATS)
    raise FormatError(
        f"{source}: no tokenizer format that subword reads. It starts with {data[:24]!r}; looked for {looked_for}"
    )


def save(spec: Spec, path: AnyPath, format: str | None = None) -> Path:
    """Write a tokenizer file, atomically: whatever happens, the old file or the new one stands there, whole.

    Args:
        spec: The tokenizer.
        path: Where to write. Its suffix says in which format: `.subword` (subword's own, holds everything) or
            `.json` (tokenizer.json of HF tokenizers).
        format: The name of a format (`native`, `tokenizer.json`), for a file whose suffix does not say.

    Returns:
        Where the file is.

    Raises:
        SubwordValueError: there is no such format, or it cannot hold something of `spec`; the message names it.
        SubwordOSError: the file cannot be written.
    """
    name = path_of(path)
    row = _format_of(name, format)
    write_file(name, row.write(spec))
    return Path(name)


class Conversion(NamedTuple):
    """What `convert` did: where the file is, in which format, on how many texts it was compared, and what changed."""

    path: Path
    format: str
    texts: int
    changed: tuple[str, ...]


def convert(source: AnyPath | Spec, path: AnyPath, format: str | None = None, texts: Iterable[Text] = ()) -> Conversion:
    """Write a tokenizer in another format, after making sure that the new file means the same.

    What would be written is read back and compared (`comparing.compare`), before anything is written.

    Args:
        source: a file, as for `load`, or a tokenizer that was loaded already.
        path, format: as for `save`.
        texts: on which to compare the two, beside those that the package has.

    Raises:
        DifferenceError: the two would differ; the message says on what. Nothing was written.
        SubwordValueError, SubwordOSError, FormatError: as for `load` and `save`.
    """
    spec = source if isinstance(source, Spec) else load(source)
    name = path_of(path)
    row = _format_of(name, format)
    data = row.write(spec)
    try:
        again = Tokenizer(read(data, name))
    except FormatError as error:
        problem = "nothing was written, because it could not be read again. This is a defect of subword"
        raise FormatError(f"{name}: {problem}; please report it. {error}") from error
    difference, count, changed = compare(Tokenizer(spec), again, texts)
    if difference is not None:
        problem = (
            "in this format it would not be the same tokenizer, so nothing was written. This is a defect of subword"
        )
        raise DifferenceError(f"{name}: {problem}; please report it. {difference}", difference)
    write_file(name, data)
    return Conversion(Path(name), row.name, count, changed)


def _format_of(name: str, format: str | None) -> Format:
    for row in FORMATS:
        if row.name == format if format is not None else name.lower().endswith(row.suffixes):
            return row
    if format is None:
        known = ", ".join(f"{' or '.join(row.suffixes)} ({row.name})" for row in FORMATS)
        raise SubwordValueError(f"{name}: the name says no format; end it in {known}, or pass format=")
    known = ", ".join(repr(row.name) for row in FORMATS)
    raise SubwordValueError(f"unknown format {format!r}; the formats are {known}")


def _file_in(folder: str) -> str:
    """The one tokenizer file in a folder."""
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise os_error(error, "cannot read a tokenizer", folder) from error
    found = [name for name in names if name == "tokenizer.json" or name.endswith(".subword")]
    if not found:
        message = "this folder holds no tokenizer (looked for tokenizer.json and *.subword)"
        raise MissingFileError(errno.ENOENT, message, folder)
    if len(found) > 1:
        raise SubwordValueError(f"{folder}: more than one tokenizer is here, name one of {', '.join(found)}")
    return os.path.join(folder, found[0])
