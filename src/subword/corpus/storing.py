"""What counting keeps on disk: blocks in a file without a name, and folders through which processes hand on what they
counted.

A process that is killed leaves nothing of the first. Of the second it can leave all: a folder is locked as long as its
process lives, and whoever makes one next in the same place removes those without.
"""

from __future__ import annotations

import errno
import os
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

from ..errors import SubwordOSError

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

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


FOLDER = ".subword-shards-"
"""How the names of temporary folders begin."""


@contextmanager
def shared_folder(parent: str | None) -> Iterator[str]:
    """A temporary folder in `parent`, or in the system's, after those are removed whose processes are gone.

    Raises:
        SubwordOSError: it cannot be made.
    """
    import shutil
    import tempfile

    parent = parent or tempfile.gettempdir()
    try:
        _remove_folders_of_the_dead(parent)
        while True:
            folder = tempfile.mkdtemp(prefix=FOLDER, dir=parent)
            lock = _lock(folder)
            if lock is not None:
                break
    except OSError as error:
        problem = f"cannot keep counts in this temporary folder: {error.strerror}"
        raise SubwordOSError(error.errno, problem, parent) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _remove_folders_of_the_dead(parent: str) -> None:
    import shutil

    for entry in os.scandir(parent) if fcntl is not None else ():
        if not entry.name.startswith(FOLDER) or entry.is_symlink():
            continue
        with suppress(OSError):  # someone else's, or just removed
            if entry.stat().st_uid == os.getuid() and (lock := _lock(entry.path, wait=False)) is not None:
                shutil.rmtree(entry.path, ignore_errors=True)
                os.close(lock)


def _lock(folder: str, wait: bool = True) -> int | None:
    """The open folder, locked until it is closed or the process ends; None if it is gone, or has no lock."""
    try:
        file = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:  # taken for one that is left over, before it had its lock
        return None
    try:
        if fcntl is None:
            return file
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        if os.path.samestat(os.stat(folder), os.fstat(file)):
            return file
    except FileNotFoundError:  # the same, a moment later
        pass
    except OSError:
        if wait:  # a file system without locks: there nothing is ever removed
            return file
    os.close(file)
    return None
