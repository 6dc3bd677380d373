"""minbpe's `.model` files, version 1.

    file    = "minbpe v1\\n" pattern "\\n" count "\\n" special* merge*
    special = token " " id "\\n"            `count` of them; no white space inside a token
    merge   = left " " right "\\n"          two ids; the merge in line n makes the id 256 + n

The ids 0 … 255 are the bytes. An empty pattern means no splitting. White space around the pattern is dropped when
minbpe reads it. (minbpe keeps using the pattern it was made with, whatever the file says: there, make
`RegexTokenizer(pattern)` before loading.)
"""

from __future__ import annotations

import re

import numpy as np

from ..errors import SubwordValueError
from ..patterns import get_pattern
from ..spec import BPE, MAX_ID, Ids, Spec, Split, SplitRegex, Vocab
from .bare import Input, Splitting, bpe_spec, refuse, special_tokens_of, split_pattern, splitting_by, warn_of_roles
from .json_node import shown
from .rank_merges import merge_list

KIND = "a minbpe file"
MAGIC = "minbpe v1"

PARTS = {
    "pieces": "in the lines of merges: each pair of ids makes the next piece; the 256 bytes are not written",
    "ids": "by the number of the line: a byte has its value, a merge the next id; special tokens say theirs",
    "merges": "the last lines, pairs of ids, the first merges first",
    "pattern": "the second line, a regular expression",
    "normalization": None,
    "extra tokens": "after the third line, a special token and its id a line",
    "template": None,
    "roles": None,
    "notes": None,
}
LIMITS = "ids in another order; ranks that no merge list can stand for; special tokens with white space; added tokens"


def looks_like(data: bytes) -> bool:
    return re.match(rb"(?:\xef\xbb\xbf)?minbpe v[0-9]", data) is not None


def read(data: bytes, source: str) -> Spec:
    """The spec that a file holds.

    Raises:
        FormatError: the file is damaged, or its split pattern is not supported.
    """
    file = Input(data, source)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise file.error(f"not UTF-8 at byte {error.start}") from None
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    if not lines[-1] and len(lines) > 1:
        lines.pop()
    if lines[0].strip() != MAGIC:
        raise file.error(f"only '{MAGIC}' can be read, found {shown(lines[0])}", 1)
    if len(lines) < 3:
        raise file.error("cut off before the special tokens; is the file complete?")
    splitting = _splitting(file, lines[1].strip())
    count = _number(file, lines[2].strip(), 3)
    if 3 + count > len(lines):
        raise file.error(f"{count} special tokens should follow, but the file ends after {len(lines)} lines", 3)
    special = _special_tokens(file, lines[3 : 3 + count])
    pieces, merges = _merges(file, lines[3 + count :], first_line=4 + count)
    model = BPE(Vocab.of((piece, id) for id, piece in enumerate(pieces)), merges)
    return bpe_spec(model, splitting, special, source=source)


def _splitting(file: Input, regex: str) -> Splitting:
    if not regex:
        return Split("none")
    try:
        return splitting_by(regex)
    except SubwordValueError as error:
        raise file.error(str(error), 2) from None


def _number(file: Input, text: str, line: int) -> int:
    if not re.fullmatch(r"[0-9]{1,10}", text, re.ASCII) or int(text) > MAX_ID:
        raise file.error(f"expected a number from 0 to {MAX_ID}, found {shown(text)}", line)
    return int(text)


def _special_tokens(file: Input, lines: list[str]) -> dict[str, int]:
    special: dict[str, int] = {}
    for number, line in enumerate(lines, 4):
        fields = line.split()
        if len(fields) != 2:
            raise file.error(f"expected a special token, a space and its id, found {shown(line)}", number)
        token, id = fields[0], _number(file, fields[1], number)
        if token in special or id in special.values():
            raise file.error(f"the special token {shown(token)} or its id {id} stands in another line, too", number)
        special[token] = id
    return special


def _merges(file: Input, lines: list[str], first_line: int) -> tuple[list[bytes], Ids]:
    """What each id spells, and the pairs that make those from 256 on."""
    pieces = [bytes([byte]) for byte in range(256)]
    made: dict[bytes, int] = {}
    merges = np.zeros((len(lines), 2), dtype=np.uint32)
    total = 0
    for number, line in enumerate(lines, first_line):
        fields = line.split()
        if len(fields) != 2:
            raise file.error(f"expected two ids with a space between, found {shown(line)}", number)
        left, right = (_number(file, field, number) for field in fields)
        if max(left, right) >= len(pieces):
            raise file.error(f"the id {max(left, right)} is not made yet: up to here there are {len(pieces)}", number)
        total += len(pieces[left]) + len(pieces[right])
        if total > MAX_SPELLED:
            raise file.error(f"the tokens up to here spell more than {MAX_SPELLED:,} bytes: no real vocabulary", number)
        piece = pieces[left] + pieces[right]
        if made.setdefault(piece, number) != number:
            raise file.error(f"it makes {shown(piece)}, as line {made[piece]} does; subword holds a token once", number)
        merges[number - first_line] = left, right
        pieces.append(piece)
    return pieces, merges


MAX_SPELLED = 2**28
"""A merge can double a token: thirty lines could ask for more memory than there is."""


def write(spec: Spec) -> bytes:
    """The file that holds `spec`. Warns of roles, which it has no place for.

    Raises:
        SubwordValueError: the format cannot hold something of `spec`; the message names it.
    """
    splitting = split_pattern(spec, KIND)
    special = special_tokens_of(spec)
    for token, id in special.items():
        if any(char.isspace() for char in token):
            refuse(KIND, f"the special token {token!r} (id {id}): it is split at white space when read")
    try:
        merges = merge_list(spec)
    except SubwordValueError as error:
        refuse(KIND, f"this model: {error}")
    _check_ids(spec, merges)
    regex = _regex(splitting)
    if regex != regex.strip() or len(regex.splitlines()) > 1:
        refuse(KIND, f"a split pattern with white space at its ends or a line break inside: {regex!r}")
    head = [MAGIC, regex, str(len(special)), *(f"{token} {id}" for token, id in special.items())]
    warn_of_roles(spec, KIND)
    return "".join(f"{line}\n" for line in [*head, *(f"{left} {right}" for left, right in merges)]).encode()


def _regex(splitting: Splitting) -> str:
    if isinstance(splitting, SplitRegex):
        if splitting_by(splitting.regex) != splitting:
            refuse(KIND, f"the split pattern {splitting!r}")
        return splitting.regex
    regex = get_pattern(splitting.pattern).regex
    if not isinstance(regex, str):
        refuse(KIND, f"the pattern {splitting.pattern!r}, which is several expressions in a row")
    return "" if splitting.pattern == "none" else regex


def _check_ids(spec: Spec, merges: list[tuple[int, int]]) -> None:
    """The ids must be the bytes, and then what the merges make in their order."""
    pieces = [bytes([byte]) for byte in range(256)]
    found = dict(zip(spec.model.vocab.ids.tolist(), spec.model.vocab.pieces, strict=True))
    for left, right in merges:
        if left < len(pieces) and right < len(pieces):
            pieces.append(pieces[left] + pieces[right])
        if found.get(len(pieces) - 1) != pieces[-1] or max(left, right) >= len(pieces) - 1:
            refuse(KIND, f"the merge of {found[left]!r} and {found[right]!r} there: its token must have the next id")
    for id, piece in found.items():
        if id >= len(pieces) or pieces[id] != piece:
            what = "the bytes have their values as ids" if id < 256 or len(piece) == 1 else "each token has a merge"
            refuse(KIND, f"the id {id} for {piece!r}: {what} there")
