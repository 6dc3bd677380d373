"""What counting keeps on disk: blocks in a file without a name, and files that appear under theirs when they are whole.

A process that is killed leaves nothing of the first. Of the second it can leave the unfinished file, which has a name
that follows from that of the target: whoever writes the same target next takes it over.
"""

from __future__ import annotations

import errno
import os
import stat
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, TypeAlias

from ..errors import SubwordOSError, SubwordValueError

try:
    import fcntl
except ImportError:  # not on this system: then two processes that write one file at once are not told
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


@contextmanager
def replacing(path: str, what: str = "counts") -> Iterator[BinaryIO]:
    """A file that takes the place of `path` when it is complete; if anything goes wrong, `path` is as it was.

    `what` it holds, errors name.

    Raises:
        SubwordOSError: it cannot be written.
        SubwordValueError: another process is writing it now.
    """
    target = os.path.realpath(path)
    temporary = os.path.join(os.path.dirname(target), f".{os.path.basename(target)}.subword-tmp")
    try:
        mode = _mode_of(target)
        with _own(temporary, path) as file:
            try:
                yield file
                file.flush()
                os.fsync(file.fileno())
                if mode is not None:
                    os.chmod(temporary, mode)
                os.replace(temporary, target)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary)
                raise
    except OSError as error:
        if isinstance(error, SubwordOSError):
            raise
        raise SubwordOSError(error.errno, f"cannot write {what}: {error.strerror or error}", path) from error


def _mode_of(target: str) -> int | None:
    """The permissions of the file to be replaced, or None if there is none."""
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "this is not a regular file", target)
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "the file is read-only", target)
    return stat.S_IMODE(mode)


@contextmanager
def _own(temporary: str, path: str) -> Iterator[BinaryIO]:
    """The file `temporary`, empty and locked: new, or left by a process that was killed."""
    while True:
        with open(temporary, "ab") as file:
            if fcntl is not None:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise SubwordValueError(f"{path}: another process is writing this file; wait for it") from None
                except OSError:  # a file system without locks
                    pass
            with suppress(FileNotFoundError):
                if os.path.samestat(os.stat(temporary), os.fstat(file.fileno())):
                    file.truncate(0)
                    yield file
                    return
        # Whoever had the lock has moved the file to its place: once more, with a new one.
