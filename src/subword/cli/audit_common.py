"""What every command of `subword audit` has: its arguments, and how a report is begun and shown."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core
from rich.text import Text

from ..corpus import find_files, read_texts
from ..report import audits as report
from ..report.parts import Part
from ..tokenizer import Tokenizer, load
from ..writing import replacing
from . import common, fail_if

WHOLE = "report"
"""The command that stands for `subword audit` with no name of a part."""


class _Group(typer.core.TyperGroup):
    """`subword audit TOKENIZER` is `subword audit report TOKENIZER`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = [WHOLE, *args]
        return super().parse_args(ctx, args)


audit = typer.Typer(
    cls=_Group,
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="""What a tokenizer costs, whom, and how it cuts text.

    \b
    `subword audit TOKENIZER [TEXT...]` is the whole report, short for `subword audit report`; each of its parts
    is a command as well.

    \b
    Examples:
      subword audit cl100k_base
      subword audit tokenizer.json book.txt --html audit.html
      subword audit fairness tokenizer.json --parallel flores200_dataset/ --json
    """,
)


def _size(value: str | int) -> int:
    """A number as people write it; the one that is taken if nothing is said is there already."""
    size = value if isinstance(value, int) else common.parse_size(value)
    if size < 1:
        raise typer.BadParameter(f"{value!r}: a window holds at least 1 token")
    return size


def parse_parameters(value: str | int) -> int:
    """A number of parameters, as people write it.

    >>> parse_parameters("8b"), parse_parameters("1.5B"), parse_parameters("135M")
    (8000000000, 1500000000, 135000000)
    """
    if isinstance(value, int):
        return value
    text = value.strip().lower()
    return 1000 * common.parse_size(text[:-1] + "m") if text.endswith("b") else common.parse_size(text)


TextsArg = Annotated[
    list[str] | None, typer.Argument(metavar="[TEXT]...", help="Files, folders, globs, -.", show_default=False)
]
ParallelOpt = Annotated[
    str | None,
    typer.Option(
        "--parallel",
        metavar="DIR",
        help="A folder of parallel texts, laid out as FLORES, UDHR or Tatoeba; the built-in passage if not given.",
    ),
]
ReferenceOpt = Annotated[
    str, typer.Option("--reference", metavar="CODE", help="The language that all others are compared with.")
]
WindowOpt = Annotated[
    int, typer.Option("--window", metavar="N", parser=_size, help="The tokens that a context window holds, as in 200k.")
]
PriceOpt = Annotated[
    float | None, typer.Option("--price", metavar="X", min=0, help="The price of a million tokens, for costs.")
]
WidthOpt = Annotated[
    int, typer.Option("--width", metavar="N", min=1, help="Numbers in a row of the model's tables (its hidden size).")
]
ParametersOpt = Annotated[
    int | None,
    typer.Option(
        "--parameters", metavar="N", parser=parse_parameters, help="Of the whole model, as in 8b.", show_default=False
    ),
]
HtmlOpt = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write the report as one HTML file.")]


@dataclass(frozen=True)
class Asked:
    """What every command of `subword audit` is told."""

    tokenizer: str
    html: Path | None
    force: bool
    pattern: str | None
    regex: str | None
    special: list[str] | None
    fails: list[str] | None
    json: bool

    @property
    def name(self) -> str:
        """What to call the tokenizer."""
        return Path(self.tokenizer).name

    def start(self, type: Any, rows: Mapping[str, Collection[str]] | None = None) -> Tokenizer:
        """The tokenizer. What could only fail at the end of the work is refused: an output that cannot be written,
        a condition on what the report will not have; `type` and `rows` are those of `fail_if.check_names`."""
        fail_if.check_names(self.fails, type, rows or {})
        if self.html is not None:
            check_html(self.html, self.force)
        return load(self.tokenizer, **common.left_out(self.pattern, self.regex, self.special))

    def show(self, tok: Tokenizer, data: Any, parts: Sequence[Part], brief: bool = False) -> None:
        """Write and print the report; then exit with 1 if a condition holds."""
        if self.html is not None:
            with replacing(str(self.html), "a report") as file:
                file.write(report.audit_page(tok, self.name, parts).encode())
        if self.json:
            common.print_json(report.plain(data))
        else:
            common.print_parts(parts, f"Audit of {self.name}", brief)
        if not self.json and brief and sys.stdout.isatty():
            common.console().print(
                Text("\nA part by itself, whole: subword audit PART. To look at: --html FILE.", "dim")
            )
        fail_if.check(self.fails, report.plain(data))


def _arguments(
    tokenizer: common.TokenizerArg,
    html: HtmlOpt = None,
    force: common.ForceOpt = False,
    pattern: common.PatternOpt = None,
    regex: common.RegexOpt = None,
    special: common.SpecialOpt = None,
    fails: fail_if.FailIfOpt = None,
    json: common.JsonOpt = False,
) -> Asked:
    return Asked(tokenizer, html, force, pattern, regex, special, fails, json)


def command(name: str | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a function a command of `subword audit`: its first argument is what all are told, and its others stand
    behind TOKENIZER, before the options that all have."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        shared = inspect.signature(_arguments, eval_str=True).parameters
        own = inspect.signature(function, eval_str=True).parameters
        _, *others = own.values()
        first, *last = shared.values()

        def run(**given: Any) -> None:
            function(_arguments(**{name: given.pop(name) for name in shared}), **given)

        run.__name__, run.__doc__ = function.__name__, function.__doc__
        run.__signature__ = inspect.Signature([first, *others, *last])  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in (first, *others, *last)}
        audit.command(name)(run)
        return function

    return decorate


def check_html(html: Path, force: bool) -> None:
    """Refuse a report that could not be written at the end of the work, before it begins."""
    if html.suffix.lower() not in (".html", ".htm"):
        raise common.UsageError(f"--html {html}: a report is an .html file; the name must say so")
    common.check_out(html, force)


def texts_of(tok: Tokenizer, texts: Sequence[str] | None, field: str) -> list[bytes]:
    """The texts in files. All are held, since several parts look at them, and standard input is read only once."""
    return list(read_texts(find_files(texts), field, whole=common.must_stay_whole(tok))) if texts else []


def source_of(texts: Sequence[str]) -> str:
    """What to call texts, by the names of their files."""
    name = (Path(texts[0]).name or texts[0]) if texts else "text"
    return name if len(texts) < 2 else f"{name} and {len(texts) - 1} more"
