"""`subword decode`: ids to text."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
import typer

from ..corpus import find_files, name_of
from ..corpus.files import read_blocks
from ..errors import FormatError, SubwordValueError
from ..spec import MAX_ID
from ..tokenizer import load
from . import common

_ID_CHARS = frozenset("0123456789,[] \t\n")


def decode(
    tokenizer: common.TokenizerArg,
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="IDS|FILES", help="Ids, or files with ids; - for standard input."),
    ] = None,
    skip_special_tokens: Annotated[
        bool, typer.Option("--skip-special-tokens", help="Leave special tokens out of the text.")
    ] = False,
    pattern: common.PatternOpt = None,
    regex: common.RegexOpt = None,
    special: common.SpecialOpt = None,
    json: common.JsonOpt = False,
) -> None:
    """Turn ids into text.

    Ids are given as arguments, in files, or on standard input, with spaces, commas or newlines between them, or as a
    JSON list; .npy and .bin files are those that `encode --out` writes. An argument of digits only is an id; write
    ./123 for a file of that name. What is written are exactly the bytes that the ids stand for, which need not be
    whole characters; only on a terminal a newline is added. --json prints {"tokens", "text", "utf8"}, with U+FFFD for
    what is not UTF-8.

    \b
    Examples:
      subword decode tokenizer.json 9906 1917
      subword decode tokenizer.json "[9906, 1917]"
      subword decode tokenizer.json ids.npy > book.txt
      subword encode tokenizer.json < book.txt | subword decode tokenizer.json | cmp - book.txt
    """
    if not ids:
        if sys.stdin is None or sys.stdin.isatty():
            raise common.UsageError("no ids: give ids or files, or pipe ids in (- reads what you type)")
        ids = ["-"]
    tok = load(tokenizer, **common.left_out(pattern, regex, special))
    parts = [ids_of(arg) for arg in _arguments(ids)]
    numbers = np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint32)
    data = tok.decode_bytes(numbers, skip_special_tokens)
    if json:
        text = data.decode("utf-8", "replace")
        common.print_json({"tokens": len(numbers), "text": text, "utf8": text.encode() == data})
        return
    with common.binary_stdout() as out:
        out.write(data)
        if out.isatty() and not data.endswith(b"\n"):
            out.write(b"\n")


def _arguments(args: list[str]) -> list[str | Path]:
    """Arguments that are ids, as text, and files."""
    out: list[str | Path] = []
    for arg in args:
        out += [arg] if arg.strip() and _ID_CHARS.issuperset(arg) else find_files([arg])
    return out


def ids_of(arg: str | Path) -> npt.NDArray[np.uint32]:
    """The ids that an argument spells, or that are in a file."""
    if isinstance(arg, str):
        return parse_ids(arg, "the arguments")
    if arg.suffix == ".npy":
        return _load_npy(arg)
    data = b"".join(read_blocks(arg))
    if arg.suffix == ".bin":
        if len(data) % 4:
            raise FormatError(f"{arg}: {len(data)} bytes are not a whole number of four-byte ids")
        return np.frombuffer(data, dtype="<u4").astype(np.uint32)
    try:
        return parse_ids(data.decode("utf-8"), name_of(arg))
    except UnicodeDecodeError as error:
        raise FormatError(f"{name_of(arg)}: not ids but bytes that are no text") from error


def _load_npy(path: Path) -> npt.NDArray[np.uint32]:
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise FormatError(f"{path}: not a .npy file that can be read: {common.one_line(error)}") from error
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "iu":
        raise FormatError(f"{path}: not an array of integers")
    if array.size and (array.min() < 0 or array.max() > MAX_ID):
        raise FormatError(f"{path}: ids from {array.min()} to {array.max()}; ids lie in 0 … {MAX_ID}")
    return array.astype(np.uint32).ravel()


def parse_ids(text: str, where: str = "the text") -> npt.NDArray[np.uint32]:
    """Ids with white space, commas or the brackets of a JSON list between them.

    >>> parse_ids("[1, 2]\\n3 4").tolist()
    [1, 2, 3, 4]
    """
    words = text.replace("[", " ").replace("]", " ").replace(",", " ").split()
    for number, word in enumerate(words, 1):
        if not (word.isascii() and word.isdigit() and len(word) <= 10 and int(word) <= MAX_ID):
            shown = word if len(word) <= 40 else word[:40] + "…"
            raise SubwordValueError(f"{where}: number {number} is {shown!r}, not an id in 0 … {MAX_ID}")
    return np.array(words, dtype=np.uint32)
