"""Reading files whole and writing them atomically, with errors that are ours and the built-in ones at once."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Mapping

from ..errors import FormatError, SubwordOSError

MAX_FILE_BYTES = 2**30
"""Larger files are refused before they are read. The largest tokenizer files known have some 35 MB."""


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
    return _CLASSES.get(type(error), SubwordOSError)(error.errno, f"{doing}: {error.strerror}", path)


def read_file(path: str, what: str = "a tokenizer") -> bytes:
    """The content of a file; `what` it should hold, errors name.

    Raises:
        SubwordOSError: it cannot be read.
        FormatError: it has more than `MAX_FILE_BYTES`.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise os_error(error, f"cannot read {what}", path) from error
    if len(data) > MAX_FILE_BYTES:
        raise FormatError(f"{path}: more than {MAX_FILE_BYTES:,} bytes; this cannot be {what}")
    return data


def write_file(path: str, data: bytes, what: str = "a tokenizer") -> None:
    """Write a file so that, whatever happens, the old content or the new stands there, whole.

    The new content goes into a file beside it that then takes its place. An existing file keeps its permissions and
    must be writable; a link is followed; a new file gets the permissions that the process gives new files.

    Raises:
        SubwordOSError: it cannot be written. Nothing was changed then.
    """
    target = os.path.realpath(path)
    try:
        _replace(target, data, _mode_of(target))
    except OSError as error:
        raise os_error(error, f"cannot write {what}", path) from error


def write_files(folder: str, files: Mapping[str, bytes]) -> None:
    """Write files into a folder, which is made if it is not there, each as `write_file` does.

    That each can be written is looked at first. Then they take their places one after another: a process that is ended
    between two of them leaves the first new and the second old.

    Raises:
        SubwordOSError: one cannot be written.
    """
    try:
        os.makedirs(folder, exist_ok=True)
        for name in files:
            _mode_of(os.path.realpath(os.path.join(folder, name)))
    except OSError as error:
        raise os_error(error, "cannot write a tokenizer", folder) from error
    for name, data in files.items():
        write_file(os.path.join(folder, name), data)


def _mode_of(target: str) -> int | None:
    """The permissions of the file to be replaced, or None if there is none."""
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


def _replace(target: str, data: bytes, mode: int | None) -> None:
    folder = os.path.dirname(target)
    temporary = os.path.join(folder, f".subword-{os.urandom(8).hex()}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        if mode is not None:
            os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def _sync_folder(folder: str) -> None:
    """Have the new name on disk too, where the system can do that; the file itself is written whatever this does."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
