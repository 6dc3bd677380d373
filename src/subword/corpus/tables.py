"""Texts in the rows of tables: a column of a CSV, Parquet or Arrow file."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..errors import FormatError, SubwordOSError, SubwordValueError
from .files import OnBytes, Span, name_of
from .utf8 import handled_text

SEPARATORS = {".csv": ",", ".tsv": "\t"}
"""What stands between the fields of a row, by the names of files."""

Row = tuple[int, bytes]
"""The number of a row, or of the line on which it ends, and its text."""


def read_csv(path: Path, lines: Iterable[bytes], field: str, separator: str) -> Iterator[Row]:
    """The texts in a column of a file whose first row has the names of the columns. Fields may be of any length.

    Raises:
        FormatError: there is no such column, or a row that is not well-formed.
    """
    csv.field_size_limit(max(csv.field_size_limit(), min(sys.maxsize, 2**31 - 1)))
    decoded = (line.decode("utf-8", "surrogateescape") + "\n" for line in lines)
    rows = csv.reader(decoded, delimiter=separator, strict=True)
    at = None
    try:
        for row in rows:
            if at is None and row:
                names = [name.removeprefix("\ufeff") for name in row]
                if field not in names:
                    raise FormatError(f"{name_of(path)}: no column {field!r}; {_names(names)}")
                at = names.index(field)
            elif at is not None and row:
                if len(row) != len(names):
                    problem = f"{len(row)} fields, where the first row has {len(names)}"
                    raise FormatError(f"{name_of(path)}, line {rows.line_num}: {problem}")
                yield rows.line_num, row[at].encode("utf-8", "surrogateescape")
    except csv.Error as error:
        raise FormatError(f"{name_of(path)}, line {rows.line_num}: not well-formed: {error}") from error


def read_columnar(span: Span, field: str, on_bytes: OnBytes | None = None, errors: str = "keep") -> Iterator[Row]:
    """The texts in a column of a Parquet or Arrow file, a few rows at a time.

    Raises:
        SubwordOSError: the file cannot be read.
        FormatError: it is damaged, or has no such column of strings or bytes.
        SubwordValueError: `pyarrow` is not installed.
    """
    path = span.path
    pa = pyarrow_or_error(f"{path}: to read this file")
    number, told, end = 0, 0, 0
    try:
        size = path.stat().st_size
        with pa.memory_map(str(path)) as file:
            if path.suffix.lower() == ".parquet":
                names, batches, groups, number = _parquet(file, field, span)
            else:
                names, batches, groups = _arrow(pa, file)
            told = size * span.start // groups if groups else 0
            end = size if span.stop is None else size * span.stop // groups
            if field not in names:
                raise FormatError(f"{path}: no column {field!r}; {_names(names)}")
            for group, batch in batches:
                column = batch.column(field)
                if pa.types.is_dictionary(column.type):
                    column = column.dictionary_decode()
                kind = column.type
                if not any(is_kind(kind) for is_kind in _kinds(pa)):
                    raise FormatError(f"{path}: the column {field!r} is {kind}, not string or binary")
                for text in column.cast(pa.large_binary()):
                    number += 1
                    if not text.is_valid:
                        raise FormatError(f"{path}, row {number}: the column {field!r} has no value")
                    yield number, handled_text(text.as_py(), f"{path}, row {number}", errors)
                if on_bytes is not None:
                    on_bytes(size * group // groups - told)
                    told = size * group // groups
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, SubwordOSError):
            raise
        if isinstance(error, OSError) and error.errno is not None:
            raise SubwordOSError(error.errno, error.strerror or str(error), str(path)) from error
        raise FormatError(f"{path}: damaged {path.suffix} file: {' '.join(str(error).split())}") from error
    if on_bytes is not None:
        on_bytes(end - told)


def _parquet(file: Any, field: str, span: Span) -> tuple[list[str], Iterator[tuple[int, Any]], int, int]:
    """The names of the columns, the batches with the number of row groups that have begun, how many groups there are,
    and how many rows stand before the span."""
    import pyarrow.parquet as pq

    source = pq.ParquetFile(file, page_checksum_verification=True)
    groups = source.num_row_groups

    def batches() -> Iterator[tuple[int, Any]]:
        for group in range(groups)[span.start : span.stop]:
            for batch in source.iter_batches(1024, row_groups=[group], columns=[field]):
                yield group, batch

    before = sum(source.metadata.row_group(group).num_rows for group in range(span.start))
    return source.schema_arrow.names, batches(), groups, before


def _arrow(pa: Any, file: Any) -> tuple[list[str], Iterator[tuple[int, Any]], int]:
    """The same of an Arrow file, or of an Arrow stream, which does not know how long it is."""
    import pyarrow.ipc as ipc

    try:
        source = ipc.open_file(file)
    except pa.ArrowInvalid:
        file.seek(0)
        stream = ipc.open_stream(file)
        return stream.schema.names, ((0, batch) for batch in stream), 1
    groups = source.num_record_batches
    return source.schema.names, ((group, source.get_batch(group)) for group in range(groups)), groups


def _kinds(pa: Any) -> tuple[Any, ...]:
    types = pa.types
    return (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary, types.is_string_view)


def _names(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:20])) + (" …" if len(names) > 20 else "")
    return f"the columns are: {shown}" if names else "it has no columns"


def pyarrow_or_error(doing: str) -> Any:
    """The module, or the error that says how to get it."""
    try:
        import pyarrow
    except ImportError:
        raise SubwordValueError(f'{doing} takes pyarrow: pip install "subword[parquet]"') from None
    return pyarrow
