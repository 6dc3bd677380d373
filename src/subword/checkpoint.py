"""A learn stage that was stopped goes on: the merges so far, in a file.

    file     = "subword checkpoint 1\\n" header section* checksum
    header   = one line of JSON "\\n"                    {"asked", "pieces", "certain", "sections"}
    section  = bytes                                    in the order and with the lengths of header.sections
    checksum = "sha256 " 64 hexadecimal digits "\\n"     of everything before it

`asked` is what the merges depend on besides the text: the arguments of the call. `pieces` is a number that tells the
counts from others. The sections are arrays of what the core had learned, little-endian.
"""

from __future__ import annotations

import hashlib
import json
import time
from typing import Any

import numpy as np

from . import _core
from .errors import FormatError, SubwordOSError, SubwordValueError, warn
from .writing import os_error, remove, replacing

MAGIC = b"subword checkpoint 1\n"
CHECKSUM = len("sha256 ") + 64 + len("\n")
SECTIONS: dict[str, np.dtype[Any]] = {"merges": np.dtype("<u4"), "counts": np.dtype("<u8")}

SECONDS = 30.0
"""How long learning goes on, at least, between two times that it is written."""


class Checkpoint:
    """The file at `path`, for a call that asks for `asked` (which JSON can hold). It need not be there yet.

    Raises:
        SubwordValueError: the file belongs to a call with other arguments.
        FormatError: the file is damaged, or no checkpoint.
        SubwordOSError: the file cannot be read.
    """

    def __init__(self, path: str, asked: dict[str, Any]) -> None:
        self.path = path
        self._asked: dict[str, Any] = json.loads(json.dumps(asked))
        self._written = time.monotonic()
        self._pieces: int | None = None
        self._proof_is_open = False
        self.merges: int | None = None
        """How many merges are in the file, if it is there."""
        try:
            with open(path, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            self._found = None
            return
        except OSError as error:
            raise os_error(error, "cannot read the checkpoint", path) from error
        self._found = header, _ = self._parse(data)
        differences = [
            f"{name}={header['asked'].get(name)!r}, not {self._asked.get(name)!r}"
            for name in sorted(header["asked"].keys() | self._asked.keys())
            if header["asked"].get(name) != self._asked.get(name)
        ]
        if differences:
            raise SubwordValueError(
                f"{path}: this checkpoint belongs to a training with other arguments ({'; '.join(differences)}): give "
                "the same ones to go on, or another checkpoint, or delete the file to start anew"
            )

    def start(self, pieces: _core.Pieces) -> Any:
        """What was learned from these pieces before, as the core takes it, or None.

        Raises:
            SubwordValueError: it was learned from others.
        """
        self._pieces = pieces.fingerprint
        # As long as every merge is certain, whether the next one is depends on more than the merges: see `learn.rs`.
        # That ends early, if it ends; and until then there is nothing to go on from.
        self._proof_is_open = pieces.lost[0] > 0
        if self._found is None:
            return None
        header, arrays = self._found
        if header["pieces"] != self._pieces:
            raise SubwordValueError(
                f"{self.path}: this checkpoint was made with other text, or other counts: give the same to go on, or "
                "another checkpoint, or delete the file to start anew"
            )
        self.merges = len(arrays["counts"])
        return arrays["merges"].reshape(-1, 2), arrays["counts"], header["certain"]

    def is_due(self) -> bool:
        return time.monotonic() - self._written >= SECONDS

    def keep(self, merges: Any, counts: Any, certain: int) -> None:
        """Write what was learned so far. Where that cannot be done a warning says so: learning itself goes on."""
        self._written = time.monotonic()
        if len(merges) == 0 or (self._proof_is_open and certain == len(merges)):
            return
        arrays = {"merges": merges, "counts": counts}
        sections = {name: arrays[name].astype(kind).tobytes() for name, kind in SECTIONS.items()}
        header = {
            "asked": self._asked,
            "pieces": self._pieces,
            "certain": certain,
            "sections": [[name, len(section)] for name, section in sections.items()],
        }
        data = b"".join([MAGIC, json.dumps(header).encode(), b"\n", *sections.values()])
        try:
            with replacing(self.path, "the checkpoint", wait=True) as file:
                file.write(data + b"sha256 " + hashlib.sha256(data).hexdigest().encode() + b"\n")
        except SubwordOSError as error:
            warn(f"{error}; learning goes on without it")
        else:
            self.merges = len(merges)

    def remove(self) -> None:
        """There is nothing to go on from any more."""
        remove(self.path, "the checkpoint")

    def _parse(self, data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
        if not data.startswith(MAGIC):
            raise FormatError(f"{self.path}: this is no checkpoint (of this version); give another path, or delete it")
        body, checksum = data[:-CHECKSUM], data[-CHECKSUM:]
        if checksum != b"sha256 " + hashlib.sha256(body).hexdigest().encode() + b"\n":
            raise FormatError(f"{self.path}: the checkpoint is damaged: delete it to start anew")
        try:
            line, _, rest = body[len(MAGIC) :].partition(b"\n")
            header = json.loads(line)
            arrays, at = {}, 0
            for name, length in header["sections"]:
                arrays[name] = np.frombuffer(rest[at : at + length], SECTIONS[name])
                at += length
            if (
                at != len(rest)
                or arrays.keys() != SECTIONS.keys()
                or len(arrays["merges"]) != 2 * len(arrays["counts"])
            ):
                raise ValueError("the sections do not fit")
            if not isinstance(header["asked"], dict) or not isinstance(header["certain"], int):
                raise TypeError("the header does not fit")
            header["pieces"]
        except (ValueError, KeyError, TypeError) as error:
            raise FormatError(f"{self.path}: the checkpoint is damaged ({error}): delete it to start anew") from error
        return header, arrays
