"""Which files are meant, and the bytes in them.

`find_files` turns what people write (files, folders, globs, `-`) into a list of paths in a fixed order; `read_blocks`
yields what such a file holds, decompressed on the way, without ever holding much of it.

To read another kind of compression, add a row to `DECOMPRESSORS`.
"""

from __future__ import annotations

import codecs
import errno
import glob
import gzip
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeAlias

from ..arguments import path_of
from ..errors import FormatError, SubwordOSError, SubwordValueError, warn

STDIN = Path("-")
"""What stands for standard input in a list of files."""

READ_SIZE = 1 << 18

COLUMNAR = (".parquet", ".arrow", ".feather")
"""How files are called whose texts stand in a column; `tables.py` reads them."""

PathLike: TypeAlias = "str | os.PathLike[str]"
OnBytes: TypeAlias = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Span:
    """A file, or a part of one: bytes of one that is not compressed, row groups of a Parquet file."""

    path: Path
    start: int = 0
    stop: int | None = None
    """Where it ends; None for the end of the file."""

    def __str__(self) -> str:
        if self.start == 0 and self.stop is None:
            return name_of(self.path)
        what = "row groups" if self.path.suffix.lower() in COLUMNAR else "bytes"
        return f"{name_of(self.path)} ({what} {self.start:,} to {'the end' if self.stop is None else f'{self.stop:,}'})"


class Source(Protocol):
    """A file as the decompressors need it."""

    def read(self, size: int = -1, /) -> bytes | None: ...


# ======================== which files ========================


def find_files(paths: Iterable[PathLike]) -> list[Path]:
    """The files that `paths` mean, in the order given: files, folders, globs and `-` for standard input.

    Folders are walked in the order of names, links followed; names that start with a dot are skipped, in folders and
    by globs. A path that exists is taken as it is, even if it looks like a glob.

    Raises:
        SubwordOSError: there is no such file.
        SubwordValueError: a folder or a glob that gives no file.
    """
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    return [file for path in paths for file in _expand(path_of(path))]


def size_on_disk(files: Iterable[Path]) -> int | None:
    """How many bytes reading `files` will consume, or None where that cannot be known (standard input, a pipe)."""
    total = 0
    for file in files:
        if file == STDIN or not file.is_file():
            return None
        total += file.stat().st_size
    return total


def name_of(path: Path) -> str:
    """How messages and tables call a file."""
    return "standard input" if path == STDIN else str(path)


def _expand(path: str) -> list[Path]:
    if path == "-":
        return [STDIN]
    if os.path.isdir(path):
        return _text_files(path) or _nothing(f"{path}: no file with text in this folder")
    if os.path.lexists(path):
        # A file in this folder that is called "-" must not turn into standard input.
        return [Path.cwd() / "-" if Path(path) == STDIN else Path(path)]
    if glob.has_magic(path):
        found: dict[Path, None] = {}
        for match in sorted(glob.glob(path, recursive=True), key=lambda match: Path(match).parts):
            found.update(dict.fromkeys(_text_files(match) if os.path.isdir(match) else [Path(match)]))
        return list(found) or _nothing(f"{path}: no file matches")
    raise SubwordOSError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def _text_files(folder: str) -> list[Path]:
    """The files in a folder but for those that start like a program or a picture; a warning says which these are."""
    files = _files_in(folder)
    known = (*DECOMPRESSORS, *COLUMNAR)
    binary = [path for path in files if path.suffix.lower() not in known and _looks_binary(path)]
    if binary:
        shown = ", ".join(map(str, binary[:3])) + (" …" if len(binary) > 3 else "")
        warn(f"{folder}: {len(binary)} files that are not text are left out (name a file itself to read it): {shown}")
    return [path for path in files if path not in set(binary)]


def _looks_binary(path: Path) -> bool:
    """Whether there is a NUL near the start, and bytes that are not UTF-8. What cannot be read is left for later."""
    try:
        with path.open("rb") as file:
            head = file.read(8192)
        codecs.getincrementaldecoder("utf-8")().decode(head)  # the last character may be cut
    except OSError:
        return False
    except UnicodeDecodeError:
        return b"\0" in head
    return False


def _files_in(folder: str, above: tuple[str, ...] = ()) -> list[Path]:
    here = os.path.realpath(folder)
    if here in above:  # a link to a folder that we are in
        return []
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise _os_error(error, folder) from error
    files: list[Path] = []
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            files += _files_in(entry.path, (*above, here))
        else:
            files.append(Path(entry.path))
    return files


def _nothing(message: str) -> list[Path]:
    raise SubwordValueError(message)


# ======================== what is in them ========================


def read_blocks(span: Path | Span, on_bytes: OnBytes | None = None) -> Iterator[bytes]:
    """The content of a file, decompressed, in blocks of any size. `on_bytes(n)`: `n` more bytes of the file were read.

    Raises:
        SubwordOSError: the file cannot be read.
        FormatError: it is not what its name says, is cut off or damaged, or is a known kind of file that is not text.
    """
    span = span if isinstance(span, Span) else Span(span)
    path = span.path
    decompress = DECOMPRESSORS.get(path.suffix.lower(), _as_it_is)
    try:
        with _open(path) as file:
            source: Source = file if span == Span(path) else _Part(path, file, span)
            blocks = decompress(_Counted(source, on_bytes))
            yield from blocks if span.start else _refuse_foreign(path, blocks)
    except (_DamagedError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FormatError(f"{name_of(path)}: damaged {path.suffix} file: {error}") from error
    except OSError as error:
        raise _os_error(error, path) from error


class _DamagedError(Exception):
    """A compressed file that cannot be decompressed; the message says why."""


class _Counted:
    """A file that tells how much was read from it."""

    def __init__(self, file: Source, on_bytes: OnBytes | None) -> None:
        self._read = getattr(file, "read1", file.read)  # of a pipe, what is there, without waiting for more
        self._on_bytes = on_bytes

    def read(self, size: int = -1, /) -> bytes:
        block = self._read(size) or b""
        if self._on_bytes is not None and block:
            self._on_bytes(len(block))
        return block


class _Part:
    """The bytes of a span."""

    def __init__(self, path: Path, file: BinaryIO, span: Span) -> None:
        self._path = path
        self._file = file
        self._left = None if span.stop is None else span.stop - span.start
        file.seek(span.start)

    def read(self, size: int = -1, /) -> bytes:
        if self._left is None:
            return self._file.read(size)
        if self._left == 0:
            return b""
        block = self._file.read(min(size, self._left))
        if not block:
            raise FormatError(f"{name_of(self._path)}: it has become shorter while it was read")
        self._left -= len(block)
        return block


@contextmanager
def _open(path: Path) -> Iterator[BinaryIO]:
    if path != STDIN:
        with open(path, "rb", buffering=0) as file:
            yield file
    elif sys.stdin is None:
        raise OSError(errno.EBADF, "standard input is closed")
    else:
        yield sys.stdin.buffer


def _as_it_is(source: Source) -> Iterator[bytes]:
    while block := source.read(READ_SIZE):
        yield block


def _gunzip(source: Source) -> Iterator[bytes]:
    """Gzip, of one member or several."""
    with gzip.GzipFile(fileobj=source, mode="rb") as file:  # type: ignore[call-overload]
        empty = True
        while block := file.read(READ_SIZE):
            empty = False
            yield block
        if empty and file.mtime is None:  # not even a header: GzipFile takes it for an empty text
            raise _DamagedError("it has no content, not even a header")


def _unzstd(source: Source) -> Iterator[bytes]:
    """Zstandard, of one frame or several.

    The bytes go in by small portions: one can come out sixty thousand times larger. (`stream_reader` would bound
    that itself, but does not tell a file that was cut off from one that is complete.)
    """
    import zstandard

    decompressor = zstandard.ZstdDecompressor(max_window_size=1 << 31)  # what `zstd --long=31` writes
    frame = None
    empty = True
    try:
        while block := source.read(2048):
            empty = False
            while block:
                frame = frame or decompressor.decompressobj()
                yield frame.decompress(block)
                block = frame.unused_data if frame.eof else b""
                frame = None if frame.eof else frame
    except zstandard.ZstdError as error:
        raise _DamagedError(str(error)) from error
    if frame is not None or empty:
        raise _DamagedError("it ends too early")


def _bunzip(source: Source) -> Iterator[bytes]:
    import bz2

    return _streams(source, bz2.BZ2Decompressor, (OSError,))


def _unxz(source: Source) -> Iterator[bytes]:
    import lzma

    return _streams(source, lzma.LZMADecompressor, (lzma.LZMAError,))


def _streams(source: Source, decompressor: Callable[[], Any], damaged: tuple[type[Exception], ...]) -> Iterator[bytes]:
    """Bzip2 or xz, of one stream or several. Each call gives a bounded part of what a small file may swell to."""
    stream = None
    empty = True
    while block := source.read(READ_SIZE):
        while block:
            if stream is None:
                block = block.lstrip(b"\0") if not empty else block  # xz may be padded with zeros between streams
                if not block:
                    break
                stream = decompressor()
            empty = False
            try:
                data = stream.decompress(block, READ_SIZE)
                yield data
                while not stream.eof and not stream.needs_input:
                    yield stream.decompress(b"", READ_SIZE)
            except damaged as error:
                raise _DamagedError(str(error)) from error
            block = stream.unused_data if stream.eof else b""
            stream = None if stream.eof else stream
    if stream is not None or empty:
        raise _DamagedError("it ends too early")


DECOMPRESSORS: dict[str, Callable[[Source], Iterator[bytes]]] = {
    ".gz": _gunzip,
    ".zst": _unzstd,
    ".bz2": _bunzip,
    ".xz": _unxz,
}

FOREIGN: tuple[tuple[tuple[bytes, ...], str, str], ...] = (
    ((b"\xff\xfe", b"\xfe\xff"), "UTF-16 or UTF-32", "convert it to UTF-8 first"),
    ((b"\x1f\x8b\x08",), "gzip", "its name must end in .gz"),
    ((b"\x28\xb5\x2f\xfd",), "Zstandard", "its name must end in .zst"),
    ((b"BZh",), "bzip2", "its name must end in .bz2"),
    ((b"\xfd7zXZ\0",), "xz", "its name must end in .xz"),
    ((b"PAR1",), "Parquet", "its name must end in .parquet"),
    ((b"ARROW1",), "Arrow", "its name must end in .arrow or .feather"),
    ((b"PK\x03\x04", b"%PDF-", b"\x89PNG", b"SQLite format 3\0"), "a zip, PDF, PNG or SQLite file", "extract its text"),
)
"""How files begin that are surely no UTF-8 text, what they are, and what to do about it."""


def _refuse_foreign(path: Path, blocks: Iterator[bytes]) -> Iterator[bytes]:
    """`blocks`, unless they begin as no text does: learned or encoded as text, such a file gives silent nonsense."""
    head = b""
    for block in blocks:
        head += block
        if len(head) >= 16:
            break
    for starts, kind, advice in FOREIGN:
        if head.startswith(starts):
            if path == STDIN and "its name" in advice:
                advice = "pipe its text in, as zcat, zstdcat, bzcat and xzcat do, or name the file"
            raise FormatError(f"{name_of(path)}: not text but {kind}: {advice}")
    if head[257:262] == b"ustar":
        raise FormatError(f"{name_of(path)}: not text but a tar archive: extract its files")
    if head:
        yield head
    yield from blocks


def _os_error(error: OSError, path: PathLike) -> SubwordOSError:
    return SubwordOSError(error.errno, error.strerror or str(error), os.fspath(path))
