"""What counting keeps on disk: blocks in a file without a name, of which a process that is killed leaves nothing."""

from __future__ import annotations

import errno
import os
import weakref
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from ..errors import SubwordOSError

Handle: TypeAlias = "bytes | tuple[int, int]"
"""A block: itself, or where it starts in the file and how long it is."""


class Blocks:
    """Blocks of bytes, in memory up to a limit; beyond it those that come next go into a file in `folder`.

    The file has no name (or loses it at once), so it goes when the process does, however that ends.
    """

    def __init__(self, limit: int | None = None, folder: str | os.PathLike[str] | None = None) -> None:
        self._room = limit
        self._folder = folder
        self._file: Any = None
        self._end = 0

    def add(self, block: bytes) -> Handle:
        if self._room is None:
            return block
        if self._file is None and self._room >= len(block):
            self._room -= len(block)
            return block
        import tempfile  # which brings in much, and is seldom needed

        folder = self._folder or tempfile.gettempdir()
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=folder, prefix=".subword-", buffering=0)  # noqa: SIM115
                weakref.finalize(self, self._file.close)
            at, rest = self._end, memoryview(block)
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            problem = f"cannot keep counts in this temporary folder: {error.strerror}"
            raise SubwordOSError(error.errno, problem, os.fspath(folder)) from error
        self._end += len(block)
        return at, len(block)

    def read(self, handles: Iterable[Handle]) -> Iterator[bytes]:
        for handle in handles:
            if isinstance(handle, bytes):
                yield handle
            else:
                start, length = handle
                block = os.pread(self._file.fileno(), length, start)
                if len(block) < length:
                    raise SubwordOSError(errno.EIO, "the temporary file of counts was cut off")
                yield block

    @property
    def on_disk(self) -> int:
        """How many bytes are in the file."""
        return self._end
