"""What becomes of bytes that are not UTF-8: they are kept, or replaced by U+FFFD, or they are an error with a place."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator

from ..errors import FormatError

ERRORS = ("keep", "strict", "replace")


def handled(blocks: Iterable[bytes], name: str, errors: str, place: tuple[int, int] = (1, 0)) -> Iterator[bytes]:
    """The blocks of a text, cut anywhere, with what is not UTF-8 handled as `errors` says. `name`: what to call it;
    `place`: the line at its start, and the bytes before it in that line.

    Raises:
        FormatError: there is such a byte, and `errors` is `"strict"`; with the line, and the place in it, from 1.
    """
    if errors == "keep":
        yield from blocks
        return
    line, column = place  # where the next byte stands
    tail = b""  # the beginning of a character
    for block in blocks:
        data = tail + block if tail else block
        try:
            text, used = codecs.utf_8_decode(data, errors, False)
        except UnicodeDecodeError as error:
            raise FormatError(f"{name}, {_place(data, error.start, line, column)}") from None
        yield data[:used] if errors == "strict" else text.encode()
        line, column = place_after(data, used, line, column)
        tail = data[used:]
    if tail and errors == "strict":
        raise FormatError(f"{name}, {_place(tail, 0, line, column)}")
    if tail:
        yield tail.decode("utf-8", errors).encode()


def handled_text(text: bytes, name: str, errors: str) -> bytes:
    """The same of a text in memory."""
    if errors == "keep":
        return text
    try:
        decoded = text.decode("utf-8", errors)
    except UnicodeDecodeError as error:
        found = f"not UTF-8 at byte {error.start + 1}: 0x{text[error.start]:02x}"
        raise FormatError(f"{name}: {found}; {ADVICE}") from None
    return text if errors == "strict" else decoded.encode()


ADVICE = 'errors="keep" takes bytes as they are, errors="replace" puts U+FFFD in their place'


def is_well_formed(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _place(data: bytes, at: int, line: int, column: int) -> str:
    line, column = place_after(data, at, line, column)
    return f"line {line}: not UTF-8 at byte {column + 1} of the line: 0x{data[at]:02x}; {ADVICE}"


def place_after(data: bytes, end: int, line: int, column: int) -> tuple[int, int]:
    last = data.rfind(b"\n", 0, end)
    return line + data.count(b"\n", 0, end), end - last - 1 if last >= 0 else column + end
