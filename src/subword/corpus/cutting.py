"""Cutting a long text where a cut cannot change its pieces.

A file may be larger than memory, so it is read in blocks; but a piece must never be cut in two, and no split pattern
may see an end of text where there is none. These places are safe for every pattern of `patterns.py` except `none`:

1. after a `\\n` that stands between two characters neither of which is white space, the second not being `/`;
2. before a `\\r\\n` that follows an ASCII letter or digit, or a common letter of a few other scripts.

Why: in 1 the `\\n` always ends a piece (alone, or behind the punctuation that it follows), because what comes next is
neither white space, which patterns take together with it, nor the `/` that `o200k` lets follow a newline; and what
comes next starts a piece. In 2 a run of letters or digits ends, which no pattern continues with a `\\r`. (After a
`\\r\\n`, and in front of it elsewhere, the patterns disagree.) No pattern looks further back than its piece begins, or
further ahead than one character. `tests/test_corpus.py` holds this against the patterns themselves.

A text without such a place is kept whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..errors import SubwordValueError

BLOCK = 1 << 19
"""About how long a part of a text gets, in bytes: short enough that some megabytes keep many threads busy."""

_CANDIDATE = re.compile(rb"(?<=\S)\n(?=[^\s/])|(?<=\S)(?=\r\n)")
_PLAIN_LETTER = re.compile(r"[0-9A-Za-zА-яぁ-ゔァ-ヺ一-龥가-힣]")
"""Letters and digits in every version of Unicode since 2.0."""

_WINDOW = 1 << 12


def cut(
    blocks: Iterable[bytes], block: int = BLOCK, whole: bool = False, most: int | None = None, name: str = "a text"
) -> Iterator[bytes]:
    """Join `blocks`, and cut them anew where it is safe, into parts of about `block` bytes. `whole`: do not cut.

    Raises:
        SubwordValueError: a part would have more than `most` bytes. The message begins with `name`.
    """
    buffer = bytearray()
    searched = 0
    for part in blocks:
        buffer += part
        if not whole and len(buffer) - searched >= block:
            end = last_safe_cut(buffer, searched)
            if end:
                yield bytes(buffer[:end])
                del buffer[:end]
            searched = 0 if end else max(len(buffer) - 8, 0)  # the last few bytes may become a place with what follows
        if most is not None and len(buffer) > most + block:
            raise too_long(name, most)
    if buffer:
        yield bytes(buffer)


def too_long(name: str, most: int) -> SubwordValueError:
    """The error for what must be counted in one go, and is too long for the memory that there is."""
    return SubwordValueError(
        f"{name}: more than {most:,} bytes in which no place is known where a text may be cut (a line break is one, "
        'unless the pattern is "none" or your own, or there is normalization, or a special token with a line break): '
        "too much for this memory=; for each process give eight times as much as the longest text, or no memory="
    )


def last_safe_cut(data: bytes | bytearray, start: int = 0) -> int:
    """The last place after `start` at which `data` may be cut, or 0.

    >>> last_safe_cut(b"one\\ntwo\\nthree")
    8
    >>> last_safe_cut(b"one\\n\\n two \\n/")
    0
    """
    for end in range(len(data), start, -_WINDOW):
        candidates = [match.span() for match in _CANDIDATE.finditer(data, max(start, end - _WINDOW), end + 2)]
        for at, after in reversed(candidates):
            if _safe(data, at, after):
                return after
    return 0


def may_span_a_cut(strings: Iterable[str]) -> bool:
    """Whether one of `strings`, which must not be cut in two, could lie across a safe place."""
    return any("\n" in string or "\r" in string for string in strings)


def _safe(data: bytes | bytearray, at: int, after: int) -> bool:
    """Whether a candidate from `at` to `after` is safe, seeing the whole characters on its sides."""
    before = _char_before(data, at)
    if at == after:
        return _PLAIN_LETTER.fullmatch(before) is not None
    follows = _char_at(data, after)
    return bool(before and follows) and not before.isspace() and not follows.isspace()


def _char_before(data: bytes | bytearray, end: int) -> str:
    """The character that ends at `end`; empty if ill-formed."""
    start = end - 1
    while start > max(end - 4, 0) and data[start] & 0xC0 == 0x80:
        start -= 1
    return _one_char(data[start:end])


def _char_at(data: bytes | bytearray, start: int) -> str:
    """The character that starts at `start`; empty if ill-formed or not complete."""
    lead = data[start]
    return _one_char(data[start : start + (1 if lead < 0x80 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4)])


def _one_char(data: bytes | bytearray) -> str:
    try:
        char = data.decode("utf-8")
    except UnicodeDecodeError:
        return ""
    return char if len(char) == 1 else ""
