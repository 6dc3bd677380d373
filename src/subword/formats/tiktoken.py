"""Rank files of tiktoken: a vocabulary, and nothing else.

    file = line*
    line = token " " rank "\\n"        token: its bytes in base64; rank: decimal digits, also its id

Blank lines are passed over, and the lines may stand in any order. The lower rank merges first; a piece that is a token
as a whole is that token. Split pattern and special tokens are not in the file (see `bare.py`).

Whisper's files have a line `= 50256`, an empty token, which no text can give: its id is left out, with a warning.
"""

from __future__ import annotations

import hashlib
import re
from binascii import a2b_base64, b2a_base64

from .. import _core
from ..errors import FormatError
from ..spec import BPE, MAX_ID, Packed, Spec, Vocab
from .bare import (
    Input,
    bpe_spec,
    missing_bytes,
    refuse,
    split_pattern,
    warn_of_empty,
    warn_of_roles,
    warn_of_what_is_left_out,
    what_is_left_out,
)
from .json_node import shown
from .rank_merges import check_order

KIND = "a .tiktoken file"

_FIRST_LINE = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2,3}={1,2})?) [0-9]+\s*?(?:\n|\Z)"
)

PARTS = {
    "pieces": "each line, a token in base64",
    "ids": "each line, the number",
    "merges": "the ids: of two neighbours that spell an entry, those that spell the one with the lowest id merge first",
    "pattern": None,
    "normalization": None,
    "extra tokens": None,
    "template": None,
    "roles": None,
    "notes": None,
}
LIMITS = "merges in another order than that of the ids they make; entries that do not merge from their parts"


def looks_like(data: bytes) -> bool:
    match = _FIRST_LINE.match(data[:4096])
    return match is not None and len(match[1]) > 0 and len(match[1]) % 4 == 0


def read(file: Input) -> Spec:
    """The spec that a file and what is said of it mean.

    Raises:
        FormatError: the file is damaged, or what it leaves out is neither given nor known.
    """
    pieces, offsets, ids, empty, bad = _core.read_ranks(file.data, MAX_ID, False)
    if bad is not None:
        raise _line_error(file, *bad)
    for numbers in (offsets, ids):
        numbers.setflags(write=False)  # so that nothing copies them
    model = BPE(Vocab(Packed(pieces, offsets), ids), priority="rank", ignore_merges=True)
    try:
        model.compiled()  # which looks for entries that stand there twice, and is needed anyway
    except FormatError:
        *_, bad = _core.read_ranks(file.data, MAX_ID, True)
        if bad is not None:
            raise _line_error(file, *bad) from None
    said = what_is_left_out(file, KIND, file.sha256)
    if empty is not None:
        warn_of_empty(empty, file)
    return bpe_spec(model, said.splitting, said.special_tokens, source=file.name, roles=said.roles)


def _line_error(file: Input, number: int, problem: str, earlier: int | None) -> FormatError:
    """What is wrong with a line: the core finds it, and here it is put in words."""
    line = file.data.removeprefix(b"\xef\xbb\xbf").splitlines()[number - 1]
    token, rank, *_ = [*line.split(), b"", b""]
    if problem == "base64":
        text = f"{shown(token)} is not base64; is the file complete?"
    elif problem == "rank":
        text = f"the rank must be a number from 0 to {MAX_ID}, found {shown(rank)}"
    elif problem == "rank again":
        text = f"the rank {int(rank)} stands already in line {earlier}"
    elif problem == "entry again":
        text = f"the token {shown(a2b_base64(token))} stands already in line {earlier}"
    else:
        text = f"expected a token in base64, a space and its rank, found {shown(line)}"
    return file.error(text, number)


def write(spec: Spec) -> bytes:
    """The file with the vocabulary of `spec`. Warns of what must be said again when it is loaded.

    Raises:
        SubwordValueError: neither the file nor the arguments of `load` can hold something of `spec`.
    """
    split_pattern(spec, KIND)
    missing = missing_bytes(spec.model.vocab.pieces)
    if missing:
        refuse(KIND, f"a model without tokens for the bytes {missing!r}")
    check_order(spec, KIND)
    data = b"".join(b"%b %d\n" % (b2a_base64(piece, newline=False), id) for piece, id in spec.model.vocab.items())
    digest = hashlib.sha256(data).hexdigest()
    warn_of_what_is_left_out(spec, KIND, digest)
    warn_of_roles(spec, KIND, digest)
    return data
