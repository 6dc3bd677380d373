"""The command line: `subword COMMAND …`. One file a command; each parses, calls the package, and renders.

To add a command: one file here and one row in `COMMANDS`, or in `GROUPS` if it has commands of its own. What goes wrong
is raised, and told in one place: `main`.

Exit codes: 0 done; 1 a tokenizer, a file or a text cannot be used; 2 the command line cannot be used; 130 Ctrl-C;
141 whoever read the output stopped reading (what a shell reports of other programs too). Of `VERDICTS`, 0 is yes, 1 is
no, and 2 is every failure, as `diff` has it.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from .._core import __version__
from ..errors import SpecialTokenError, SubwordError
from ..formats import LeftOutError
from .audit_risks import audit
from .budget import budget
from .common import UsageError, one_line
from .compare import compare
from .convert import convert
from .count import count
from .count_pieces import count_pieces
from .decode import decode
from .diff import diff
from .doctor import doctor
from .encode import encode
from .extend import extend
from .info import info
from .prune import prune
from .remap_embeddings import remap_embeddings
from .show import show
from .train import train
from .vocab import vocab

COMMANDS = {
    command.__name__.replace("_", "-"): command
    for command in (
        train,
        extend,
        count_pieces,
        encode,
        decode,
        count,
        budget,
        compare,
        diff,
        doctor,
        show,
        info,
        vocab,
        convert,
        prune,
        remap_embeddings,
    )
}

GROUPS = {"audit": audit}
"""Commands that have commands of their own."""

VERDICTS = ("diff", "doctor")
"""Commands whose exit code is an answer."""

OK, FAILURE, USAGE, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 130, 141

ClickError: Any = typer.BadParameter.__mro__[2]
"""ClickException: of the click that is installed, or of the one that newer versions of typer bring along."""

SPECIAL_ADVICE = (
    "  --ordinary            to take it as plain text",
    "  --allow-special NAME  to take it as the special token",
)

LEFT_OUT_ADVICE = (
    "  --pattern NAME        or --regex REGEX, to say how it splits text",
    "  --special TOKEN=ID    to say which special tokens it has; may be repeated; `none` for none",
)

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in COMMANDS.values():
    app.command()(command)
for name, group in GROUPS.items():
    app.add_typer(group, name=name)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"subword {__version__}")
        raise typer.Exit


@app.callback()
def overview(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Train, run and explain subword tokenizers.

    \b
    A first round:
      subword train corpus/ --vocab-size 32k --out tokenizer.json
      subword info tokenizer.json
      subword show tokenizer.json "How is this cut?"
      subword count tokenizer.json book.txt
      subword encode tokenizer.json book.txt > ids.txt
      subword decode tokenizer.json ids.txt
      subword audit tokenizer.json book.txt

    FILES are text files, or .jsonl, .csv and .tsv (a text a line, in a field), any of them as .gz, .zst, .bz2 or .xz;
    .parquet and .arrow; folders, globs; or - for standard input. `subword COMMAND --help` has the options and examples
    of a command.
    """


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code. With SUBWORD_DEBUG=1, errors show where they come from."""
    args = list(sys.argv[1:] if argv is None else argv)
    alone = not args or (len(args) == 1 and args[0] in GROUPS)
    _survive_any_encoding()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: print(f"warning: {one_line(message)}", file=sys.stderr)
            code = _run([*args, "--help"] if alone else [*args])  # a copy: parsing empties the list
            sys.stdout.flush()  # here, where a reader that has gone can still be dealt with
            return USAGE if alone else code
    except KeyboardInterrupt as stopped:
        print("interrupted" + (f": {one_line(stopped)}" if str(stopped) else ""), file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        if isinstance(error, BrokenPipeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at the very end
            return BROKEN_PIPE
        if os.environ.get("SUBWORD_DEBUG", "0") not in ("", "0"):
            raise
        code, message, advice = _explain(error)
        if args[0] in VERDICTS:
            code = USAGE
        print("\n".join((f"error: {message}", *advice)), file=sys.stderr)
        return code


def _run(args: list[str]) -> int:
    command = typer.main.get_command(app)
    try:
        with command.make_context("subword", args) as context:
            command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except typer.Abort:
        raise KeyboardInterrupt from None
    return OK


def _explain(error: Exception) -> tuple[int, str, list[str]]:
    """The exit code for an error, what it says, and what to do about it."""
    if isinstance(error, UsageError):
        return USAGE, str(error), []
    if isinstance(error, ClickError):
        context = getattr(error, "ctx", None)
        help_line = [f"See `{context.command_path} --help`."] if context else []
        return USAGE, one_line(error.format_message()), help_line
    if isinstance(error, SpecialTokenError):
        return FAILURE, one_line(error), list(SPECIAL_ADVICE)
    if isinstance(error, LeftOutError):
        return FAILURE, one_line(error.problem), list(LEFT_OUT_ADVICE)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return FAILURE, where + one_line(error.strerror or error), []
    if isinstance(error, SubwordError):
        return FAILURE, one_line(error), []
    if isinstance(error, MemoryError):
        return FAILURE, "not enough memory", []
    advice = "This is a defect of subword. SUBWORD_DEBUG=1 shows where it is; please report it."
    return FAILURE, f"{type(error).__name__}: {one_line(error)}", [advice]


def _survive_any_encoding() -> None:
    """A character that the terminal's encoding lacks becomes an escape, not an error in the middle of the output."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
