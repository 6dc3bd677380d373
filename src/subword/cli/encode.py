"""`subword encode`: text to ids."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt
import typer

from ..corpus import Document, name_of
from ..tokenizer import Tokenizer, load
from ..writing import replacing
from . import common

Ids: TypeAlias = "npt.NDArray[np.uint32]"
Event: TypeAlias = "tuple[Document, Ids | None]"


def encode(
    tokenizer: common.TokenizerArg,
    files: common.FilesArg = None,
    text: common.TextOpt = None,
    allow_special: common.AllowOpt = None,
    ordinary: common.OrdinaryOpt = False,
    add_special_tokens: common.BothEndsOpt = False,
    end_with: Annotated[
        str | None, typer.Option("--end-with", metavar="NAME", help="Put this special token behind each text.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write the ids to a file: .npy, .bin or .txt."),
    ] = None,
    force: common.ForceOpt = False,
    threads: common.ThreadsOpt = None,
    field: common.FieldOpt = "text",
    stdin_format: common.StdinOpt = "text",
    pattern: common.PatternOpt = None,
    regex: common.RegexOpt = None,
    special: common.SpecialOpt = None,
    progress: common.ProgressOpt = "auto",
    json: common.JsonOpt = False,
) -> None:
    """Turn text into ids.

    Prints the ids of a text on a line, with spaces between them: a line a file, and for .jsonl a line a record. With
    --json, a line is {"source", "line", "ids"}. With --out, all ids go into one file: .npy is a uint32 array for
    numpy.load, .bin the same without a header (little-endian), .txt what would be printed. --end-with keeps texts
    apart in an array.

    \b
    Examples:
      subword encode tokenizer.json --text "Hello there"
      subword encode tokenizer.json book.txt > ids.txt
      subword encode tokenizer.json corpus/ --out ids.npy --end-with "<|endoftext|>"
      head -1 book.txt | subword encode tokenizer.json
      subword encode tokenizer.json chat.txt --allow-special "<|endoftext|>"
    """
    source = common.Input(files, text, field, stdin_format)
    if out is not None:
        if out.suffix not in WRITERS:
            raise common.UsageError(f"--out {out}: the name must end in {', '.join(WRITERS)}")
        if json:
            raise common.UsageError("give --out or --json, not both")
        common.check_out(out, force)
    tok = load(tokenizer, **common.left_out(pattern, regex, special))
    how = common.policy(tok, allow_special, ordinary)
    how["add_special_tokens"] = add_special_tokens
    ending = () if end_with is None else (_special_id(tok, end_with),)
    whole = add_special_tokens or common.must_stay_whole(tok)
    show = out is not None or not sys.stdout.isatty()
    with common.progress(show, progress) as report, common.ticking("encode", source.size, report) as tick:
        events = _encoded(tok, source.documents(whole, tick), how, ending, threads)
        if out is not None:
            with replacing(str(out), "ids") as file:
                tokens = WRITERS[out.suffix](file, events)
        elif json:
            _print_json(events)
        else:
            _write_lines(common.binary_stdout(), events)
    if out is not None:
        print(f"{tokens:,} ids in {out}", file=sys.stderr)


def _special_id(tok: Tokenizer, name: str) -> int:
    if name not in tok.special_tokens:
        known = ", ".join(tok.special_tokens) or "none"
        raise common.UsageError(f"the tokenizer has no special token {name!r}; it has: {known}")
    return int(tok.special_tokens[name])


def _encoded(
    tok: Tokenizer,
    documents: Iterator[Document],
    how: dict[str, Any],
    ending: tuple[int, ...],
    threads: int | None,
) -> Iterator[Event]:
    """Ids, part by part, in the order of the texts: `(document, ids)`, and `(document, None)` where it ends."""
    last = np.array(ending, dtype=np.uint32)
    for batch in common.batches(documents):
        parts = [part for _, part in batch if part is not None]
        with common.naming_special(tok, batch, how):
            encoded = iter(tok.encode_batch_to_numpy(parts, threads=threads, **how))
        for document, part in batch:
            if part is not None:
                yield document, next(encoded)
            else:
                if ending:
                    yield document, last
                yield document, None


# ======================== writing ========================


def _write_lines(file: BinaryIO, events: Iterator[Event]) -> int:
    """Ids with spaces between them, a line a text."""
    tokens = 0
    started = False  # whether the line has ids already
    for _, ids in events:
        if ids is None:
            file.write(b"\n")
            started = False
        elif len(ids):
            file.write((" " if started else "").encode() + " ".join(map(str, ids.tolist())).encode())
            started = True
            tokens += len(ids)
    file.flush()
    return tokens


def _print_json(events: Iterator[Event]) -> None:
    parts: list[int] = []
    for document, ids in events:
        if ids is not None:
            parts += ids.tolist()
        else:
            common.print_json({"source": name_of(document.path), "line": document.line, "ids": parts})
            parts = []


def _write_bin(file: BinaryIO, events: Iterator[Event]) -> int:
    """The ids as they lie in memory, four bytes each, the lowest first."""
    tokens = 0
    for _, ids in events:
        if ids is not None:
            file.write(ids.astype("<u4").tobytes())
            tokens += len(ids)
    return tokens


def _write_npy(file: BinaryIO, events: Iterator[Event]) -> int:
    """As `.bin`, behind numpy's header, which is written last, when the length is known."""
    file.write(_npy_header(0))
    tokens = _write_bin(file, events)
    file.seek(0)
    file.write(_npy_header(tokens))
    return tokens


def _npy_header(length: int) -> bytes:
    """128 bytes: magic, version 1.0, the length of the rest, and a dict that ends in spaces and a newline."""
    header = f"{{'descr': '<u4', 'fortran_order': False, 'shape': ({length},), }}"
    return b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + header.ljust(117).encode() + b"\n"


WRITERS: dict[str, Callable[[BinaryIO, Iterator[Event]], int]] = {
    ".npy": _write_npy,
    ".bin": _write_bin,
    ".txt": _write_lines,
}
