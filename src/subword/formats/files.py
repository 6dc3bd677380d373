"""Reading files whole and writing them atomically, with errors that are ours and the built-in ones at once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType

from ..errors import FormatError
from ..writing import mode_of, os_error, replacing

MAX_FILE_BYTES = 2**30
"""Larger files are refused before they are read. The largest tokenizer files known have some 35 MB."""


def read_file(path: str, what: str = "a tokenizer", most: Mapping[bytes, int] = MappingProxyType({})) -> bytes:
    """The content of a file; `what` it should hold, errors name.

    Of files that start as the keys of `most` say, so many bytes are enough: what follows are a model's tensors.

    Raises:
        SubwordOSError: it cannot be read.
        FormatError: it has more than `MAX_FILE_BYTES`.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(4)
            enough = most.get(data)
            if enough is None and file.seekable():
                file.seek(0)
                data = b""  # with nothing in front, what follows is not copied
            data += file.read(MAX_FILE_BYTES + 1 if enough is None else enough - len(data))
    except OSError as error:
        raise os_error(error, f"cannot read {what}", path) from error
    if len(data) > MAX_FILE_BYTES:
        raise FormatError(f"{path}: more than {MAX_FILE_BYTES:,} bytes; this cannot be {what}")
    return data


def write_file(path: str, data: bytes, what: str = "a tokenizer") -> None:
    """Write a file so that, whatever happens, the old content or the new stands there, whole.

    As `replacing` has it; where another process is writing the same file, after it.

    Raises:
        SubwordOSError: it cannot be written. Nothing was changed then.
    """
    with replacing(path, what, wait=True) as file:
        file.write(data)


def write_files(folder: str, files: Mapping[str, bytes]) -> None:
    """Write files into a folder, which is made if it is not there, each as `write_file` does.

    That each can be written is looked at first. Then they take their places one after another: a process that is ended
    between two of them leaves the first new and the second old.

    Raises:
        SubwordOSError: one cannot be written.
    """
    try:
        for name in files:
            os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
            mode_of(os.path.realpath(os.path.join(folder, name)))
    except OSError as error:
        raise os_error(error, "cannot write a tokenizer", folder) from error
    for name, data in files.items():
        write_file(os.path.join(folder, name), data)
