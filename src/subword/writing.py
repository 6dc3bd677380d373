"""Files that take the place of others when they are whole: whoever reads one finds the old content or the new.

What is unfinished stands beside its target, under a name that follows from the target's, and locked. A process that is
killed leaves it there, without the lock: whoever writes the same target next takes it over.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from .errors import SubwordOSError, SubwordValueError

try:
    import fcntl
except ImportError:  # not on this system: then two processes that write one file at once are not told
    fcntl = None  # type: ignore[assignment]


class MissingFileError(SubwordOSError, FileNotFoundError):
    """No file or folder stands at a path."""


class ForbiddenFileError(SubwordOSError, PermissionError):
    """The file system does not permit what was asked."""


class FolderError(SubwordOSError, IsADirectoryError):
    """A folder stands where a file was expected."""


_CLASSES: dict[type[OSError], type[SubwordOSError]] = {
    FileNotFoundError: MissingFileError,
    PermissionError: ForbiddenFileError,
    IsADirectoryError: FolderError,
}


def os_error(error: OSError, doing: str, path: str) -> SubwordOSError:
    """`error` as one of ours, of the same built-in kind, with what was being done in front."""
    return _CLASSES.get(type(error), SubwordOSError)(error.errno, f"{doing}: {error.strerror or error}", path)


@contextmanager
def replacing(path: str, what: str, wait: bool = False) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` when it is complete; if anything goes wrong, `path` is as it was.

    An existing file keeps its permissions and must be writable; a link is followed; a new file gets the permissions
    that the process gives new files. `what` is what errors call it.

    Args:
        wait: where another process is writing the same file now, wait until it has; for what takes a moment.

    Raises:
        SubwordOSError: it cannot be written.
        SubwordValueError: another process is writing it now.
    """
    target = os.path.realpath(path)
    temporary = _unfinished(target)
    try:
        mode = mode_of(target)
        with _own(temporary, path, wait) as file:
            try:
                yield file
                file.flush()
                os.fsync(file.fileno())
                if fcntl is None:  # where open files cannot be moved
                    file.close()
                if mode is not None:
                    os.chmod(temporary, mode)
                os.replace(temporary, target)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
                raise
    except OSError as error:
        if isinstance(error, SubwordOSError):
            raise
        raise os_error(error, f"cannot write {what}", path) from error
    _sync_folder(os.path.dirname(target))


def remove(path: str, what: str) -> None:
    """Remove a file, if it is there, and what a process left of it that was killed while it wrote.

    Raises:
        SubwordOSError: it cannot be removed.
    """
    target = os.path.realpath(path)
    temporary = _unfinished(target)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(target)
        if os.path.exists(temporary):
            with _own(temporary, path, wait=True):
                os.unlink(temporary)
    except OSError as error:
        raise os_error(error, f"cannot remove {what}", path) from error


def _unfinished(target: str) -> str:
    """What a file is called until it is whole."""
    folder, name = os.path.split(target)
    return os.path.join(folder, f".subword-{hashlib.sha256(os.fsencode(name)).hexdigest()[:16]}.tmp")


def mode_of(target: str) -> int | None:
    """The permissions of the file to be replaced, or None if there is none.

    Raises:
        OSError: what stands there cannot be replaced.
    """
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "this is a folder; name a file in it", target)
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "this is not a regular file", target)
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "the file is read-only", target)
    return stat.S_IMODE(mode)


@contextmanager
def _own(temporary: str, path: str, wait: bool) -> Iterator[BinaryIO]:
    """The file `temporary`, empty and locked: new, or left by a process that was killed."""
    # Its name can be foreseen, so what stands there must be no link to a file of the user's.
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    while True:
        with open(os.open(temporary, flags, 0o666), "ab") as file:
            if fcntl is not None:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
                except BlockingIOError:
                    raise SubwordValueError(f"{path}: another process is writing this file; wait for it") from None
                except OSError:  # a file system without locks
                    pass
            is_there = False  # unless whoever had the lock has moved the file to its place: then again, with a new one
            with contextlib.suppress(FileNotFoundError):
                is_there = os.path.samestat(os.stat(temporary), os.fstat(file.fileno()))
            if is_there:
                file.truncate(0)
                yield file
                return


def _sync_folder(folder: str) -> None:
    """Have the new name on disk too, where the system can do that; the file itself is written whatever this does."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
