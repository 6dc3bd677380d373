"""Texts, from files.

A `.jsonl` or `.ndjson` file holds one JSON object a line, each with a text in one of its fields; a `.csv`, `.tsv`,
`.parquet`, `.arrow` or `.feather` file has a text in a column of each row; any other file is one text. All but the last
three may be compressed (`.gz`, `.zst`, `.bz2`, `.xz`). Texts are bytes: what is in a file is passed on as it is, a byte
order mark and (unless `errors` says otherwise) ill-formed UTF-8 included.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import FormatError
from .cutting import BLOCK, cut, may_span_a_cut
from .files import COLUMNAR, DECOMPRESSORS, STDIN, OnBytes, Span, name_of, read_blocks
from .tables import SEPARATORS, read_columnar, read_csv
from .utf8 import handled, is_well_formed, place_after

JSON_LINES = (".jsonl", ".ndjson")


@dataclass(frozen=True, slots=True)
class Document:
    """One text: where it comes from, and its parts, to be read once and before the next document is asked for."""

    path: Path
    line: int | None
    """The line of a JSON Lines or CSV file, or the row of another table, from 1; None for a file that is one text."""
    parts: Iterator[bytes]


def read_texts(
    files: Iterable[Path],
    field: str = "text",
    on_bytes: OnBytes | None = None,
    *,
    uncuttable: Sequence[str] = (),
    whole: bool = False,
    stdin: str = "text",
    errors: str = "keep",
    block: int = BLOCK,
) -> Iterator[bytes]:
    """The texts in `files`, long ones in parts that have the same pieces as the whole: see `cutting.py`.

    Args:
        files: as `find_files` gives them.
        field: the field of a JSON Lines object, or the column of a table, that holds the text.
        on_bytes: called with the number of bytes that were read, as they lie on disk.
        uncuttable: strings (special tokens) that must not be cut in two; if one has a newline, no text is cut.
        whole: cut no text. Needed for the pattern `none`, and for stages that see where a text begins.
        stdin: what standard input is, `"text"`, `"jsonl"`, `"csv"` or `"tsv"`.
        errors: what becomes of bytes that are not UTF-8: see `utf8.py`.
        block: about how many bytes a part has.
    """
    for document in read_documents(
        files, field, on_bytes, uncuttable=uncuttable, whole=whole, stdin=stdin, errors=errors, block=block
    ):
        yield from document.parts


def read_documents(
    files: Iterable[Path | Span],
    field: str = "text",
    on_bytes: OnBytes | None = None,
    *,
    uncuttable: Sequence[str] = (),
    whole: bool = False,
    stdin: str = "text",
    errors: str = "keep",
    block: int = BLOCK,
    most: int | None = None,
) -> Iterator[Document]:
    """As `read_texts`, but a document at a time, each with its place and its parts. (In a part of a file, places count
    from where it starts.) `most`: bytes beyond which a part is an error; rows are not looked at."""
    whole = whole or may_span_a_cut(uncuttable)
    for file in files:
        span = file if isinstance(file, Span) else Span(file)
        path = span.path
        rows = _rows(span, field, on_bytes, stdin, errors)
        if rows is None:
            yield Document(path, None, cut(_blocks(span, on_bytes, errors), block, whole, most, name_of(path)))
        else:
            for line, text in rows:
                yield Document(path, line, iter((text,)))


def kind_of(path: Path) -> str:
    """The ending of a file's name that says what its content is, once it is decompressed."""
    return (path.with_suffix("") if path.suffix.lower() in DECOMPRESSORS else path).suffix.lower()


def _blocks(span: Span, on_bytes: OnBytes | None, errors: str) -> Iterator[bytes]:
    place = (1, 0)
    if errors == "strict" and span.start:  # an error says the place in the file
        for block in read_blocks(Span(span.path, 0, span.start)):
            place = place_after(block, len(block), *place)
    return handled(read_blocks(span, on_bytes), name_of(span.path), errors, place)


def _rows(
    span: Span, field: str, on_bytes: OnBytes | None, stdin: str, errors: str
) -> Iterator[tuple[int, bytes]] | None:
    """The texts of a file of many, with their lines; None for a file that is one text."""
    path = span.path
    if path != STDIN and path.suffix.lower() in COLUMNAR:
        return read_columnar(span, field, on_bytes, errors)
    kind = f".{stdin}" if path == STDIN else kind_of(path)
    if kind in JSON_LINES:
        return _read_json_lines(span, _blocks(span, on_bytes, errors), field)
    if kind in SEPARATORS:
        return read_csv(path, _lines(_blocks(span, on_bytes, errors)), field, SEPARATORS[kind])
    return None


def _read_json_lines(span: Span, blocks: Iterable[bytes], field: str) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(_lines(blocks), 1):
        if number == 1 and span.start == 0:
            line = line.removeprefix(b"\xef\xbb\xbf")  # a byte order mark is not JSON, and not in the text
        if line.strip():
            try:
                yield number, _text_of(line, field)
            except _LineError as error:
                before = sum(block.count(b"\n") for block in read_blocks(Span(span.path, 0, span.start)))
                raise FormatError(f"{name_of(span.path)}, line {before + number}: {error}") from error


def _lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    tail: list[bytes] = []
    for block in blocks:
        first, *rest = block.split(b"\n")
        tail.append(first)
        for line in rest:
            yield b"".join(tail)
            tail = [line]
    yield b"".join(tail)


class _LineError(Exception):
    """A line without a text; the message says why."""


def _text_of(line: bytes, field: str) -> bytes:
    try:
        row: Any = json.loads(line.decode("utf-8", "surrogateescape"))
    except json.JSONDecodeError as error:
        raise _LineError(f"not JSON: {error.msg} at column {error.colno}") from error
    except (RecursionError, ValueError) as error:
        raise _LineError(f"JSON that cannot be read: {error}") from error
    if not isinstance(row, dict):
        raise _LineError(f"a JSON {_json_name(row)}, not an object with a field {field!r}")
    if field not in row:
        raise _LineError(f"no field {field!r}; {_known_fields(row)}")
    text = row[field]
    if not isinstance(text, str):
        raise _LineError(f"the field {field!r} is a JSON {_json_name(text)}, not a string")
    try:
        return text.encode()
    except UnicodeEncodeError:
        if is_well_formed(line):  # a surrogate alone, which JSON can spell and UTF-8 cannot: U+FFFD, as everywhere
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()
        return _NO_BYTE.sub("\ufffd", text).encode("utf-8", "surrogateescape")


_NO_BYTE = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Surrogates that do not stand for an ill-formed byte."""


def _known_fields(row: dict[str, Any]) -> str:
    if not row:
        return "the object is empty"
    names = [repr(name) for name in row]
    return "the fields are: " + ", ".join(names[:20]) + (" …" if len(names) > 20 else "")


def _json_name(value: Any) -> str:
    names = {type(None): "null", bool: "boolean", int: "number", float: "number", str: "string", list: "array"}
    return names.get(type(value), "object")
