"""Tokenizer files: bytes to `Spec` and back. One file a format; the grammar of each stands at the top of its file.

`load` recognises a format by what the file holds, never by its name; `save` takes it from the name or is told.

To add a format: one file with `looks_like`, `read` and `write`, and one row in `FORMATS`.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import TypeAlias

from ..arguments import path_of
from ..errors import SubwordValueError
from ..spec import Spec
from . import known, minbpe, native, tiktoken, tokenizer_json, vocab_merges
from .bare import Input
from .files import MissingFileError, os_error, read_file, write_file, write_files

AnyPath: TypeAlias = "str | bytes | os.PathLike[str] | os.PathLike[bytes]"

HEAD_BYTES = 4096
"""So much of a file is enough for `looks_like`."""


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of tokenizer file.

    Attributes:
        suffixes: of file names by which `save` takes this format.
        names: what such files are called in a folder, as patterns.
        sign: what `looks_like` looks for, in words.
        looks_like: whether the bytes of a file, or the first `HEAD_BYTES` of them, are of this kind, sound or damaged.
        read: the spec that a file means.
        write: the file that holds a spec; a format of several files gives their names with their bytes.
        whole: it says all of a tokenizer. Others leave out the split pattern and the special tokens, and `load` takes
            these as arguments; in a folder, a whole one goes first.
    """

    name: str
    suffixes: tuple[str, ...]
    names: tuple[str, ...]
    sign: str
    looks_like: Callable[[bytes], bool]
    read: Callable[[Input], Spec]
    write: Callable[[Spec], bytes] | Callable[[Spec], dict[str, bytes]]
    whole: bool = True


def _whole(read: Callable[[bytes, str], Spec]) -> Callable[[Input], Spec]:
    """`read` for files that leave nothing to say."""

    def read_input(file: Input) -> Spec:
        for name in ("pattern", "special_tokens"):
            if getattr(file, name) is not None:
                problem = f"this file says its split pattern and its special tokens itself; leave {name}= out"
                raise SubwordValueError(f"{file.name}: {problem}")
        return read(file.data, file.name)

    return read_input


FORMATS: tuple[Format, ...] = (
    Format(
        name="native",
        suffixes=(".subword",),
        names=("*.subword",),
        sign="a first line 'subword tokenizer 1'",
        looks_like=native.looks_like,
        read=_whole(native.read),
        write=native.write,
    ),
    Format(
        name="minbpe",
        suffixes=(),
        names=("*.model",),
        sign="a first line 'minbpe v1'",
        looks_like=minbpe.looks_like,
        read=_whole(minbpe.read),
        write=minbpe.write,
    ),
    Format(
        name="vocab+merges",
        suffixes=(),
        names=tuple(f"*{vocab}" for vocab, _ in vocab_merges.NAMES),
        sign="a JSON object of tokens and numbers, or a first line '#version: …'",
        looks_like=vocab_merges.looks_like,
        read=vocab_merges.read,
        write=vocab_merges.write,
        whole=False,
    ),
    Format(
        name="tokenizer.json",
        suffixes=(".json",),
        names=("tokenizer.json",),
        sign="any other JSON object",
        looks_like=tokenizer_json.looks_like,
        read=_whole(tokenizer_json.read),
        write=tokenizer_json.write,
    ),
    Format(
        name="tiktoken",
        suffixes=(".tiktoken",),
        names=("*.tiktoken", "*.model"),
        sign="a first line of base64, a space and a number",
        looks_like=tiktoken.looks_like,
        read=tiktoken.read,
        write=tiktoken.write,
        whole=False,
    ),
)


def load(path: AnyPath, pattern: str | None = None, special_tokens: Mapping[str, int] | None = None) -> Spec:
    """Read a tokenizer file, the one in a folder, or a vocabulary that is known by name (`known.py`).

    The content decides what format it is. A file or folder of that name goes before a known vocabulary.

    Args:
        pattern: the split pattern, for a file that does not say it.
        special_tokens: the special tokens with their ids, likewise.

    Raises:
        SubwordOSError: the file cannot be read; it is a FileNotFoundError where nothing stands at `path`.
        FormatError: it is of no known format, damaged, or asks for something not supported.
        SubwordValueError: an argument cannot be used, or a folder holds more than one tokenizer.
    """
    name = path_of(path)
    if name in known.KNOWN and not os.path.lexists(name):
        if pattern is not None or special_tokens is not None:
            raise SubwordValueError(f"{name} has its own split pattern and special tokens; leave the arguments out")
        return load_known(name)
    if os.path.isdir(name):
        name = _file_in(name)
    try:
        data = read_file(name)
    except MissingFileError as error:
        if os.path.basename(name) != name or "." in name:
            raise
        problem = f"{error.strerror}, and no vocabulary is known by this name; known are {', '.join(known.KNOWN)}"
        raise MissingFileError(error.errno, problem, name) from None
    return _read(Input(data, name, name, pattern, special_tokens))


def read(data: bytes, source: str = "<bytes>") -> Spec:
    """The spec in the bytes of a tokenizer file; errors call it `source`.

    Raises:
        FormatError: as for `load`.
    """
    return _read(Input(data, source))


def _read(file: Input) -> Spec:
    row = _recognise(file.data)
    if row is not None:
        return row.read(file)
    if not file.data:
        raise file.error("the file is empty")
    looked_for = "; ".join(f"{row.sign} ({row.name})" for row in FORMATS)
    start = bytes(file.data[:24])
    raise file.error(f"no tokenizer format that subword reads. It starts with {start!r}; looked for {looked_for}")


def _recognise(data: bytes) -> Format | None:
    return next((row for row in FORMATS if row.looks_like(data)), None)


def load_known(name: str) -> Spec:
    """A vocabulary that is known by name.

    Raises:
        SubwordValueError: there is none of this name; the message lists those there are.
        SubwordOSError: it is not on this machine and cannot be downloaded.
    """
    row = known.KNOWN.get(name) if isinstance(name, str) else None
    if row is None:
        raise SubwordValueError(f"no vocabulary is known by the name {name!r}; known are {', '.join(known.KNOWN)}")
    files = known.fetch(row)
    first, data = next(iter(files.items()))
    return _read(Input(data, first, None, row.pattern, row.special_tokens, files))


def save(spec: Spec, path: AnyPath, format: str | None = None) -> Path:
    """Write a tokenizer file, atomically: whatever happens, the old file or the new one stands there, whole.

    Args:
        spec: The tokenizer.
        path: Where to write. Its suffix says in which format: `.subword` (subword's own, holds everything), `.json`
            (tokenizer.json of HF tokenizers) or `.tiktoken`.
        format: The name of a format (`native`, `tokenizer.json`, `tiktoken`, `vocab+merges`, `minbpe`), for a name
            that does not say. With `vocab+merges`, `path` is a folder, which is made if it is not there.

    Returns:
        Where the file is.

    Raises:
        SubwordValueError: there is no such format, or it cannot hold something of `spec`; the message names it.
        SubwordOSError: the file cannot be written.
    """
    name = path_of(path)
    row = _format_of(name, format)
    written = row.write(spec)
    if isinstance(written, bytes):
        write_file(name, written)
    else:
        write_files(name, written)
    return Path(name)


def _format_of(name: str, format: str | None) -> Format:
    for row in FORMATS:
        if row.name == format if format is not None else name.lower().endswith(row.suffixes):
            return row
    if format is None:
        endings = ", ".join(f"{' or '.join(row.suffixes)} ({row.name})" for row in FORMATS if row.suffixes)
        names = ", ".join(row.name for row in FORMATS)
        raise SubwordValueError(f"{name}: the name says no format; end it in {endings}, or pass format= ({names})")
    names = ", ".join(repr(row.name) for row in FORMATS)
    raise SubwordValueError(f"unknown format {format!r}; the formats are {names}")


def _file_in(folder: str) -> str:
    """The one tokenizer file in a folder: a whole one, else one that leaves something out."""
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise os_error(error, "cannot read a tokenizer", folder) from error
    patterns = list(dict.fromkeys(pattern for row in FORMATS for pattern in row.names))
    called_so = [name for name in names if any(fnmatch(name, pattern) for pattern in patterns)]
    rows = {name: _recognise(_head(os.path.join(folder, name))) for name in called_so}
    for found in (
        [name for name, row in rows.items() if row is not None and row.whole],
        [name for name, row in rows.items() if row is not None and not row.whole],
        called_so,  # of no known format: reading it says what was looked for
    ):
        if len(found) > 1:
            raise SubwordValueError(f"{folder}: more than one tokenizer is here, name one of {', '.join(found)}")
        if found:
            return os.path.join(folder, found[0])
    message = f"this folder holds no tokenizer (looked for {', '.join(patterns)})"
    raise MissingFileError(errno.ENOENT, message, folder)


def _head(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(HEAD_BYTES)
    except OSError as error:
        raise os_error(error, "cannot read a tokenizer", path) from error
