"""What loading a file came to, kept for the next time in a folder of the user's own: `compiled` in the cache.

    file    = magic numbers header section*
    magic   = "subword compiled " layout " " version "\n"    of this file's layout, of the package
    numbers = checksum and length of the header              64 bits each, little-endian
    header  = JSON                                           {"outline", "roles", "notes", "chat", "warnings",
                                                              "sections"}
    section = bytes                                          what `Spec.buffers()` gives, and `made`, the core's proof;
                                                             header.sections has their names, lengths and checksums

A file is called by the SHA-256 of what it was made from and of what `load` was told. It spares reading and proving, and
nothing else: what cannot be used is built again and takes its place, and where nothing can be kept, nothing is. It is
trusted as the package itself is, for only the user can write it; the checksum is against accidents.

`SUBWORD_COMPILED=off` in the environment switches it off.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
import time
from collections.abc import Sequence
from dataclasses import asdict
from io import BufferedReader
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import SubwordError, warn
from ..spec import Spec, SplitRegex
from . import known
from .bare import Input

SWITCH = "SUBWORD_COMPILED"
LAYOUT = 3
MAGIC = b"subword compiled "
MAGIC_LINE = MAGIC + f"{LAYOUT} {_core.__version__}\n".encode()

MIN_ENTRIES = 2**14
"""Smaller vocabularies are read about as fast."""

MOST_FILES = 32
"""So many are kept, the newest."""

_NUMBERS = struct.Struct("<QQ")


def is_on() -> bool:
    return os.environ.get(SWITCH, "").lower() not in ("0", "off", "no", "false")


def _key(file: Input, digests: Sequence[str]) -> str | None:
    """A name for what a file comes to: by the SHA-256 of all that is read, and what `load` was told.

    None for arguments that cannot be right; reading says what is wrong with them.
    """
    pattern = asdict(file.pattern) if isinstance(file.pattern, SplitRegex) else file.pattern
    try:
        special = None if file.special_tokens is None else list(file.special_tokens.items())
        said = json.dumps([list(digests), pattern, special])
    except (TypeError, ValueError, AttributeError, RecursionError):
        return None
    return hashlib.sha256(said.encode()).hexdigest()


def _path(key: str) -> str:
    return os.path.join(known.cache_folder(), "compiled", key)


# ======================== reading ========================


def find_path(file: Input) -> Spec | None:
    """What was kept of the file at a path, if it is all that was read: it is hashed a part at a time, and not kept."""
    # A pipe is not opened: what comes out of it comes once.
    if file.path is None or not os.path.isfile(file.path) or not os.path.isdir(os.path.dirname(_path(""))):
        return None
    digest, part = hashlib.sha256(), memoryview(bytearray(2**18))
    try:
        with open(file.path, "rb", buffering=0) as source:
            while count := source.readinto(part):
                digest.update(part[:count])
    except OSError:
        return None  # reading says what it is
    return find(file, [digest.hexdigest()])


def find(file: Input, digests: Sequence[str]) -> Spec | None:
    """What was kept of a file, given by the SHA-256 of all that is read of it, and of what was said of it."""
    key = _key(file, digests)
    if key is None:
        return None
    path = _path(key)
    try:
        with open(path, "rb") as kept:
            problem = _foreign(os.fstat(kept.fileno()))
            if problem is None:
                line = kept.read(len(MAGIC_LINE))
                if line.startswith(MAGIC) and line != MAGIC_LINE:
                    return None  # of another version
                if line != MAGIC_LINE:
                    raise ValueError("something else")
                spec, warnings = _unpacked(kept)
                for text in warnings:
                    file.warn(text)
                return spec
    except OSError:
        return None
    except (SubwordError, LookupError, TypeError, ValueError, AttributeError, struct.error, RecursionError):
        problem = "it is damaged"
    with contextlib.suppress(OSError):
        os.unlink(path)
    warn(f"{file.name} is read anew, because what was kept of it cannot be used: {problem} ({path})")
    return None


def _foreign(found: os.stat_result) -> str | None:
    """Why a file is not ours, if it is not."""
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        return "it is another user's"
    if os.name == "posix" and found.st_mode & 0o022:
        return "others may write it"
    return None


def _unpacked(kept: BufferedReader) -> tuple[Spec, list[str]]:
    """What `_packed` packed, behind the first line. Raises all kinds of errors on other bytes."""
    checksum, length = _NUMBERS.unpack(kept.read(_NUMBERS.size))
    left = os.fstat(kept.fileno()).st_size - kept.tell()
    if length > left:
        raise ValueError("cut off")
    line = _checked(np.frombuffer(kept.read(length), dtype=np.uint8), checksum)
    header = json.loads(line.tobytes())
    # All of them at once, into memory that NumPy has in huge pages where it can: a fault in every 4 KiB takes longer
    # than reading.
    memory = np.empty(left - length, dtype=np.uint8)
    if kept.readinto(memory.data) != len(memory):
        raise ValueError("cut off")
    memory.setflags(write=False)
    buffers, at = {}, 0
    for name, checksum, length in header["sections"]:
        buffers[name] = _checked(memory[at : at + length], checksum)
        at += length
    if at != len(memory):
        raise ValueError("something stands behind the end")
    made = buffers.pop("made", None)
    plain = buffers | {"pieces": buffers["pieces"].tobytes()}
    roles, notes, chat, padded = (header.get(name) for name in ("roles", "notes", "chat", "padded"))
    spec = Spec.from_outline(header["outline"], plain, roles, notes, chat, padded)
    spec.model.compiled(None if made is None else np.frombuffer(made, "<u4"))
    return spec, header["warnings"]


def _checked(section: npt.NDArray[np.uint8], checksum: int) -> npt.NDArray[np.uint8]:
    if _core.checksum(section) != checksum:
        raise ValueError("the checksum does not match")
    return section


def _checksum(section: bytes) -> int:
    return _core.checksum(_bytes_of(section))


# ======================== writing ========================


def keep(file: Input, digests: Sequence[str], spec: Spec) -> None:
    """Keep what a file came to, if that can be done."""
    key = _key(file, digests)
    if key is None or len(spec.model.vocab) < MIN_ENTRIES:
        return
    try:
        parts = _packed(spec, file.warnings)
    except (SubwordError, TypeError, ValueError, RecursionError):
        return  # it cannot be compiled, or its notes are none that JSON can hold
    path = _path(key)
    temporary = f"{path}.{os.urandom(8).hex()}.tmp"
    try:
        _make_folder(os.path.dirname(path))
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        with open(descriptor, "wb") as kept:
            kept.writelines(parts)
        os.replace(temporary, path)
        _forget_old(os.path.dirname(path))
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def _packed(spec: Spec, warnings: Sequence[str]) -> list[bytes | memoryview]:
    made, vocab = spec.model.compiled().made(), spec.model.vocab
    numbers = {name: buffer for name, buffer in spec.model.buffers().items() if not isinstance(buffer, bytes)}
    if made is not None:
        numbers["made"] = made
    # The pieces behind the numbers, which then all lie as the core wants them. None of it is copied.
    sections = {
        name: _bytes_of(section.astype(section.dtype.newbyteorder("<"), copy=False))
        for name, section in numbers.items()
    }
    sections["pieces"] = _bytes_of(vocab.pieces.data)
    header = {
        "outline": spec.outline(),
        "roles": dict(spec.roles),
        "notes": dict(spec.notes),
        "chat": dict(spec.chat),
        "padded": dict(spec.padded),
        "warnings": warnings,
        "sections": [[name, _core.checksum(section), len(section)] for name, section in sections.items()],
    }
    line = json.dumps(header, allow_nan=False).encode()
    return [
        MAGIC_LINE,
        _NUMBERS.pack(_checksum(line), len(line)),
        line,
        *(section.data for section in sections.values()),
    ]


def _bytes_of(values: Any) -> npt.NDArray[np.uint8]:
    return np.frombuffer(np.ascontiguousarray(values) if isinstance(values, np.ndarray) else values, dtype=np.uint8)


def _make_folder(folder: str) -> None:
    for each in (os.path.dirname(folder), folder):
        os.makedirs(each, mode=0o700, exist_ok=True)
    if os.name == "posix" and os.stat(folder).st_mode & 0o077:
        os.chmod(folder, 0o700)


def _forget_old(folder: str) -> None:
    """Remove all but the newest, and what a process left behind that was ended while it wrote."""
    with os.scandir(folder) as found:
        files = sorted(((file.stat().st_mtime, file.path) for file in found), reverse=True)
    whole = [path for _, path in files if not path.endswith(".tmp")]
    left = [path for at, path in files if path.endswith(".tmp") and at < time.time() - 3600]
    for path in whole[MOST_FILES:] + left:
        os.unlink(path)
