"""Tokenizer files: bytes to `Spec` and back. One file a format; the grammar of each stands at the top of its file.

`load` recognises a format by what the file holds, never by its name; `save` takes it from the name or is told.

To add a format: one file with `looks_like`, `read` and `write`, and one row in `FORMATS`.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from ..errors import FormatError, SubwordValueError
from ..spec import Spec
from . import clip, native, subword_nmt, tokenizer_json
from .files import MissingFileError, os_error, path_of, read_file, write_file

AnyPath: TypeAlias = "str | bytes | os.PathLike[str] | os.PathLike[bytes]"


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of tokenizer file.

    `looks_like` says whether bytes are of this kind, sound or damaged; `sign` is what it looks for, in words.
    `read` takes the bytes and the name that errors call the file by.
    """

    name: str
    suffixes: tuple[str, ...]
    sign: str
    looks_like: Callable[[bytes], bool]
    read: Callable[[bytes, str], Spec]
    write: Callable[[Spec], bytes]


FORMATS: tuple[Format, ...] = (
    Format(
        name="native",
        suffixes=(".subword",),
        sign="a first line 'subword tokenizer 1'",
        looks_like=native.looks_like,
        read=native.read,
        write=native.write,
    ),
    Format(
        name="tokenizer.json",
        suffixes=(".json",),
        sign="a JSON object",
        looks_like=tokenizer_json.looks_like,
        read=tokenizer_json.read,
        write=tokenizer_json.write,
    ),
    Format(
        name="subword-nmt",
        suffixes=(".codes",),
        sign="a first line '#version: …' and tokens that end in </w>",
        looks_like=subword_nmt.looks_like,
        read=subword_nmt.read,
        write=subword_nmt.write,
    ),
    Format(
        name="clip",
        suffixes=(".txt.gz",),
        sign="a first line '\"bpe_simple_vocab_16e6.txt#version: …', compressed or not",
        looks_like=clip.looks_like,
        read=clip.read,
        write=clip.write,
    ),
)


def load(path: AnyPath) -> Spec:
    """Read a tokenizer file, or the one in a folder. The content decides what format it is.

    Raises:
        SubwordOSError: the file cannot be read; it is a FileNotFoundError where nothing stands at `path`.
        FormatError: it is of no known format, damaged, or asks for something not supported.
    """
    name = path_of(path)
    if os.path.isdir(name):
        name = _file_in(name)
    return read(read_file(name), name)


def read(data: bytes, source: str = "<bytes>") -> Spec:
    """The spec in the bytes of a tokenizer file; errors call it `source`.

    Raises:
        FormatError: as for `load`.
    """
    for row in FORMATS:
        if row.looks_like(data):
            return row.read(data, source)
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
        path: Where to write. Its suffix says in which format: `.subword` (subword's own, holds everything),
            `.json` (tokenizer.json of HF tokenizers), `.codes` (subword-nmt) or `.txt.gz` (CLIP).
        format: The name of a format of `FORMATS`, for a file whose suffix does not say.

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
