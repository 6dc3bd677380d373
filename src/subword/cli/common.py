"""What commands share: arguments, inputs, the special-token policy, output, progress."""

from __future__ import annotations

import errno
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, TypeAlias

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..corpus import Document, find_files, name_of, read_documents, size_on_disk
from ..errors import SpecialTokenError, SubwordOSError, SubwordValueError
from ..formats import FORMATS
from ..report import progress as progress_report
from ..report.parts import Part, lines, renderables
from ..report.progress import HOWS, How
from ..report.progress import Report as Report
from ..report.progress import ticking as ticking
from ..report.terminal import visible
from ..spec import MatchTokens, Normalize, Split, SplitRegex
from ..tokenizer import Tokenizer

SUFFIXES = tuple(suffix for row in FORMATS for suffix in row.suffixes)
"""How the names of tokenizer files end."""


class UsageError(Exception):
    """A command line that cannot be used; the message says why."""


# ======================== arguments ========================


def one_of(*names: str) -> Callable[[str], Any]:
    """A parser for options that take one of a few names. (typer knows `Literal` itself only in newer versions.)"""

    def parse(name: str) -> str:
        if name not in names:
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(names)}")
        return name

    return parse


StdinFormat: TypeAlias = Literal["text", "jsonl", "csv", "tsv"]

TokenizerArg = Annotated[
    str, typer.Argument(metavar="TOKENIZER", help="A tokenizer file or known name.", show_default=False)
]
PatternOpt = Annotated[
    str | None,
    typer.Option(
        "--pattern",
        metavar="NAME",
        help="The split pattern, for a file that leaves it out (.tiktoken, vocab.json): gpt2, cl100k, o200k, …",
    ),
]
RegexOpt = Annotated[
    str | None,
    typer.Option("--regex", metavar="REGEX", help="An expression in tiktoken's syntax, instead of --pattern."),
]
SpecialOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--special",
        metavar="TOKEN=ID",
        help="A special token, for a file that leaves them out; may be repeated; `none` for none.",
        show_default=False,
    ),
]
FilesArg = Annotated[
    list[str] | None, typer.Argument(metavar="FILES", help="Files, folders, globs, -.", show_default=False)
]
TextOpt = Annotated[str | None, typer.Option("--text", metavar="TEXT", help="This text, instead of files.")]
FieldOpt = Annotated[str, typer.Option("--field", metavar="NAME", help="The field, or column, with the text.")]
StdinOpt = Annotated[
    StdinFormat,
    typer.Option(
        "--stdin-format",
        metavar="text|jsonl|csv|tsv",
        parser=one_of("text", "jsonl", "csv", "tsv"),
        help="What standard input is.",
    ),
]
ProgressOpt = Annotated[
    How,
    typer.Option(
        "--progress",
        metavar="auto|json|none",
        parser=one_of(*HOWS),
        help="On standard error: bars on a terminal; with json an object a line, in a pipe, too.",
    ),
]
JsonOpt = Annotated[bool, typer.Option("--json", help="Print JSON.")]
AllowOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-special",
        metavar="NAME",
        help="Take this special token from text; may be repeated; `all` for all. Others are refused.",
        show_default=False,
    ),
]
OrdinaryOpt = Annotated[bool, typer.Option("--ordinary", help="Take what looks like a special token as plain text.")]
BothEndsOpt = Annotated[
    bool, typer.Option("--add-special-tokens", help="Add the tokens that the tokenizer puts around a text.")
]
ThreadsOpt = Annotated[
    int | None,
    typer.Option("--threads", metavar="N", min=1, max=1024, help="How many threads; all processors if not given."),
]
ForceOpt = Annotated[bool, typer.Option("--force", help="Replace the output file if it exists.")]


def parse_size(text: str) -> int:
    """A number as people write it: `32000`, `32_000`, `32,000`, `32k` (k is 1,000; m is 1,000,000).

    >>> parse_size("32k"), parse_size("1.5K"), parse_size("100_000")
    (32000, 1500, 100000)
    """
    match = re.fullmatch(r"([0-9][0-9_,]*)(?:\.([0-9]+))?([km]?)", text.strip().lower())
    if match:
        digits, decimals, unit = match.groups(default="")
        zeros = {"": 0, "k": 3, "m": 6}[unit] - len(decimals)
        if zeros >= 0:
            return int(re.sub("[_,]", "", digits) + decimals + "0" * zeros)
    raise typer.BadParameter(f"{text!r} is not a size; write 32000, 32_000 or 32k")


# ======================== inputs ========================


def left_out(pattern: str | None, regex: str | None, special: Sequence[str] | None) -> dict[str, Any]:
    """The arguments for `load` that `--pattern`, `--regex` and `--special` mean: what the file itself leaves out."""
    if pattern is not None and regex is not None:
        raise UsageError("give --pattern or --regex, not both")
    return {
        "pattern": pattern if regex is None else SplitRegex(regex),
        "special_tokens": None if special is None else _special_tokens(special),
    }


def _special_tokens(items: Sequence[str]) -> dict[str, int]:
    """
    >>> _special_tokens(["<s>=0", "a=b=1"]), _special_tokens(["none"])
    ({'<s>': 0, 'a=b': 1}, {})
    """
    tokens: dict[str, int] = {}
    for item in [] if list(items) == ["none"] else items:
        token, _, id = item.rpartition("=")
        if not token or not re.fullmatch("[0-9]{1,10}", id):
            raise UsageError(f'--special {item!r}: write TOKEN=ID, as in "<|endoftext|>=100257", or none alone')
        if token in tokens:
            raise UsageError(f"--special {item!r}: {token!r} is given twice")
        tokens[token] = int(id)
    return tokens


class Input:
    """The texts that a command works on: `--text`, files, or standard input."""

    def __init__(
        self, files: Sequence[str] | None, text: str | None, field: str = "text", stdin: StdinFormat = "text"
    ) -> None:
        if text is not None and files:
            raise UsageError("give --text or files, not both")
        if text is None and not files:
            if sys.stdin is None or sys.stdin.isatty():
                raise UsageError("no text: give files, --text, or pipe a text in (- reads what you type)")
            files = ["-"]
        self.text = text
        try:
            self.files = find_files(files or ())
        except SubwordOSError as error:
            if error.errno != errno.ENOENT:
                raise
            advice = 'for text on the command line there is --text "…"'
            raise SubwordValueError(f"{error.filename or repr('')}: no such file; {advice}") from error
        self.field = field
        self.stdin = stdin

    @property
    def size(self) -> int | None:
        """How many bytes reading will consume, if that is known."""
        return size_on_disk(self.files)

    def documents(self, whole: bool, on_bytes: Callable[[int], None] | None = None) -> Iterator[Document]:
        if self.text is not None:
            yield Document(Path("text"), None, iter((self.text.encode("utf-8", "surrogateescape"),)))
        yield from read_documents(self.files, self.field, on_bytes, whole=whole, stdin=self.stdin)


Batch: TypeAlias = list[tuple[Document, "bytes | None"]]


def batches(documents: Iterator[Document], size: int = 16 << 20) -> Iterator[Batch]:
    """Parts of texts, a few MB together: `(document, part)`, and `(document, None)` where a document ends."""
    batch: Batch = []
    held = 0
    for document in documents:
        for part in document.parts:
            batch.append((document, part))
            held += len(part) + 100
            if held >= size:
                yield batch
                batch, held = [], 0
        batch.append((document, None))
    yield batch


def must_stay_whole(tok: Tokenizer) -> bool:
    """Whether cutting a text at newlines, as `corpus` does with long ones, could change its ids."""
    return not (
        all(
            isinstance(stage, MatchTokens)
            or (isinstance(stage, Split) and stage.pattern != "none")
            # The other forms turn some characters into ones with a space or a slash.
            or (isinstance(stage, Normalize) and stage.form in ("NFC", "NFD"))
            for stage in tok.spec.stages
        )
        and any(isinstance(stage, Split) for stage in tok.spec.stages)
        and not any(
            token.lstrip or token.rstrip or "\n" in token.content or "\r" in token.content for token in tok.spec.extra
        )
    )


def policy(tok: Tokenizer, allow: Sequence[str] | None, ordinary: bool) -> dict[str, Any]:
    """The arguments for `encode` and its kin that `--allow-special` and `--ordinary` mean."""
    if ordinary and allow:
        raise UsageError("give --ordinary or --allow-special, not both")
    if ordinary:
        return {"allowed_special": set(), "disallowed_special": ()}
    names = set(allow or ())
    if "all" in names:
        return {"allowed_special": "all"}
    for name in sorted(names - tok.special_tokens.keys()):
        known = ", ".join(tok.special_tokens) or "none"
        raise UsageError(f"the tokenizer has no special token {name!r}; it has: {known}")
    return {"allowed_special": names}


@contextmanager
def naming_special(tok: Tokenizer, batch: Batch, how: dict[str, Any]) -> Iterator[None]:
    """Let a refused special token be told with the file that it is in, and what stands around it."""
    try:
        yield
    except SpecialTokenError as error:
        names = {id: name for name, id in tok.special_tokens.items() if name not in how["allowed_special"]}
        for document, part in batch:
            for start, end, id in tok.find_special(part or b""):
                if id in names:
                    chars = (part or b"").decode("utf-8", "surrogateescape")[max(start - 20, 0) : end + 20]
                    around = visible(chars.encode("utf-8", "surrogateescape"))
                    where = name_of(document.path) + (f", line {document.line}" if document.line else "")
                    raise SpecialTokenError(f"{where}: spells the special token {names[id]!r}: …{around}…") from error
        raise


# ======================== output ========================


def one_line(message: object) -> str:
    """A message without the line breaks and blank lines that layout put into it."""
    return " ".join(str(message).split())


def console() -> Console:
    """Standard output through rich, without guessing what to colour."""
    return _Console(highlight=False, markup=False, emoji=False)


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # rich would exit with 1; `main` deals with it


def print_card(rows: Sequence[tuple[str, str]]) -> None:
    """Names and what they name, in two columns; folded to the width of a terminal, never through a pipe."""
    if sys.stdout.isatty():
        card = Table.grid(padding=(0, 2))
        card.add_column(style="bold")
        card.add_column(overflow="fold")
        for name, value in rows:
            card.add_row(name, Text(value))
        console().print(card)
        return
    width = max(len(name) for name, _ in rows) + 2
    for name, value in rows:
        print(name.ljust(width) + value.replace("\n", "\n" + " " * width))


def print_parts(parts: Sequence[Part], title: str = "", brief: bool = False) -> None:
    """A report: on a terminal as one looks at it, through a pipe as lines with tabs between the cells.

    `brief`: long tables without their middle, on a terminal.
    """
    if not sys.stdout.isatty():
        for cells in lines(parts):
            print_tsv(*cells)
        return
    out = console()
    if title:
        out.print(Text(title, "bold"))
    for each in renderables(parts, brief):
        out.print(each)


def binary_stdout() -> BinaryIO:
    """Standard output for bytes. `sys.stdout.buffer` may write only a part of them, where Python runs unbuffered."""
    sys.stdout.flush()
    return open(sys.stdout.fileno(), "wb", closefd=False)


def print_json(value: Any) -> None:
    """One line of JSON on standard output."""
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    print(json.dumps(value, ensure_ascii=not utf8))


def print_tsv(*cells: object) -> None:
    line = "\t".join(map(str, cells))
    if line.count("\t") >= len(cells) or "\n" in line:
        line = "\t".join(str(cell).replace("\t", " ").replace("\n", " ") for cell in cells)
    print(line)


def check_tokenizer_out(out: Path, force: bool) -> None:
    """As `check_out`, for a tokenizer, whose format the name says."""
    if not out.name.lower().endswith(SUFFIXES):
        raise UsageError(f"--out {out}: the name says the format and must end in {' or '.join(SUFFIXES)}")
    check_out(out, force)


def check_out(path: Path, force: bool, folder: bool = False) -> None:
    """Refuse an output file that could not be written at the end of the work, before it begins."""
    if not path.parent.is_dir():
        raise SubwordValueError(f"{path}: there is no folder {path.parent}; make it first")
    if path.exists() and not (path.is_dir() if folder else path.is_file()):
        raise SubwordValueError(f"{path}: not a file that can be replaced")
    if path.exists() and not force:
        raise SubwordValueError(f"{path} exists; --force replaces it")
    if not os.access(path.parent, os.W_OK):
        raise SubwordValueError(f"{path.parent}: no permission to write into this folder")


# ======================== progress ========================


def progress(show: bool = True, how: How = "auto") -> AbstractContextManager[Report | None]:
    """Progress on standard error: a function to report `(stage, done, total)` to, or None where nothing is shown.

    `show`: whether bars may be drawn; lines of JSON are written anyway.
    """
    return progress_report.progress("none" if how == "auto" and not show else how)
