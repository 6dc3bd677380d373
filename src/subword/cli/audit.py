"""`subword audit`: what a tokenizer costs, whom, and how it cuts text. Each part of the report is a command, too."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core
from rich.text import Text

from ..audits import Collection, builtin_passage, read_parallel
from ..audits import code as measure_code
from ..audits import efficiency as measure_efficiency
from ..audits import fairness as measure_fairness
from ..audits import letters as measure_letters
from ..audits import morphology as measure_morphology
from ..audits import numbers as measure_numbers
from ..audits import security as measure_security
from ..audits import tokens as measure_tokens
from ..audits import vocabulary as measure_vocabulary
from ..audits import vocabulary_size as measure_size
from ..audits.efficiency import ALPHA, Efficiency
from ..audits.fairness import Fairness
from ..corpus import find_files, read_texts
from ..report import audits as report
from ..report.code import code_part
from ..report.morphology import morphology_part
from ..report.parts import Part
from ..report.security import security_part
from ..report.tokens import tokens_part
from ..report.vocabulary import vocabulary_part
from ..report.vocabulary_size import sizes_part
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
AlphaOpt = Annotated[float, typer.Option("--alpha", metavar="X", min=0, help="The order of Rényi efficiency.")]
BesideOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--beside", metavar="FILE", help="Text of another domain, to stand beside; may be repeated.", show_default=False
    ),
]
HtmlOpt = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write the report as one HTML file.")]


@audit.command(WHOLE)
def report_(
    tokenizer: common.TokenizerArg,
    texts: TextsArg = None,
    parallel: ParallelOpt = None,
    reference: ReferenceOpt = "eng",
    window: WindowOpt = 128_000,
    price: PriceOpt = None,
    width: WidthOpt = 4096,
    parameters: ParametersOpt = None,
    beside: BesideOpt = None,
    alpha: AlphaOpt = ALPHA,
    html: HtmlOpt = None,
    force: common.ForceOpt = False,
    field: common.FieldOpt = "text",
    pattern: common.PatternOpt = None,
    regex: common.RegexOpt = None,
    special: common.SpecialOpt = None,
    fails: fail_if.FailIfOpt = None,
    json: common.JsonOpt = False,
) -> None:
    """The whole report: efficiency on the texts, if there are any, fairness across languages, numbers, letters, code,
    morphology, the vocabulary, broken and risky tokens, security, and what the vocabulary costs a model.

    \b
    Examples:
      subword audit o200k_base
      subword audit tokenizer.json book.txt --beside src/ --html audit.html
    """
    fail_if.check_syntax(fails)
    tok, name = start(tokenizer, pattern, regex, special, html, force)
    data: dict[str, Any] = {"tokenizer": name, "fingerprint": tok.fingerprint, "vocabulary": len(tok.vocab)}
    parts: list[Part] = []
    held = texts_of(tok, texts, field)
    if texts or beside:
        found = efficiency_of(tok, held, texts, beside, field, alpha)
        data["efficiency"] = found
        parts.append(report.efficiency_part(found))
    fair = fairness_of(tok, parallel, reference, window, price)
    cut, spelt = measure_numbers(tok), measure_letters(tok)
    programs, words = measure_code(tok, name=name), measure_morphology(tok)
    entries = measure_vocabulary(tok)
    size = measure_size(
        tok, held, name=name, source=source_of(texts or []), width=width, parameters=parameters, window=window
    )
    data |= {"fairness": fair, "numbers": cut, "letters": spelt, "code": programs, "morphology": words}
    data |= {"entries": entries, "size": size}
    broken, risks = measure_tokens(tok, held), measure_security(tok, held)
    data |= {"tokens": broken, "security": risks}
    parts += [report.fairness_part(fair), report.numbers_part(cut), report.letters_part(spelt), code_part(programs)]
    parts += [morphology_part(words), vocabulary_part(entries), tokens_part(broken), security_part(risks)]
    parts += [sizes_part(size)]
    show(tok, name, data, parts, json, html, brief=True, fails=fails)


@audit.command()
def efficiency(
    tokenizer: common.TokenizerArg,
    texts: TextsArg = None,
    beside: BesideOpt = None,
    alpha: AlphaOpt = ALPHA,
    html: HtmlOpt = None,
    force: common.ForceOpt = False,
    field: common.FieldOpt = "text",
    pattern: common.PatternOpt = None,
    regex: common.RegexOpt = None,
    special: common.SpecialOpt = None,
    fails: fail_if.FailIfOpt = None,
    json: common.JsonOpt = False,
) -> None:
    """How much text a token holds, how evenly the vocabulary is used, which words are cut up at the greatest cost.

    --json prints a list: an object for the texts, and one for each --beside.

    \b
    Examples:
      subword audit efficiency tokenizer.json book.txt
      subword audit efficiency tokenizer.json prose/ --beside src/ --beside german.txt
    """
    if not texts and not beside:
        raise common.UsageError("no text: give files, folders, or - for standard input")
    fail_if.check_syntax(fails)
    tok, name = start(tokenizer, pattern, regex, special, html, force)
    found = efficiency_of(tok, texts_of(tok, texts, field), texts, beside, field, alpha)
    show(tok, name, found, [report.efficiency_part(found)], json, html, fails=fails)


@audit.command()
def fairness(
    tokenizer: common.TokenizerArg,
    parallel: ParallelOpt = None,
    reference: ReferenceOpt = "eng",
    window: WindowOpt = 128_000,
    price: PriceOpt = None,
    html: HtmlOpt = None,
    force: common.ForceOpt = False,
    pattern: common.PatternOpt = None,
    regex: common.RegexOpt = None,
    special: common.SpecialOpt = None,
    fails: fail_if.FailIfOpt = None,
    json: common.JsonOpt = False,
) -> None:
    """What the same content costs in different languages: tokens, premium, context, price.

    A premium is how many times as many tokens a language takes as English (or as --reference). --json prints a list
    with an object a language, from the smallest premium to the greatest.

    \b
    Examples:
      subword audit fairness tokenizer.json
      subword audit fairness cl100k_base --parallel flores200_dataset/ --json
      subword audit fairness tokenizer.json --parallel udhr/ --window 200k --price 2.50
    """
    fail_if.check_syntax(fails)
    tok, name = start(tokenizer, pattern, regex, special, html, force)
    found = fairness_of(tok, parallel, reference, window, price)
    show(tok, name, found.languages, [report.fairness_part(found)], json, html, fails=fails)


@audit.command()
def numbers(
    tokenizer: common.TokenizerArg,
    html: HtmlOpt = None,
    force: common.ForceOpt = False,
    pattern: common.PatternOpt = None,
    regex: common.RegexOpt = None,
    special: common.SpecialOpt = None,
    fails: fail_if.FailIfOpt = None,
    json: common.JsonOpt = False,
) -> None:
    """How numbers are cut: is each cut as the next one is, and do the pieces keep to place value?

    \b
    Examples:
      subword audit numbers gpt2
      subword audit numbers tokenizer.json --json
    """
    fail_if.check_syntax(fails)
    tok, name = start(tokenizer, pattern, regex, special, html, force)
    found = measure_numbers(tok)
    show(tok, name, found, [report.numbers_part(found)], json, html, fails=fails)


@audit.command()
def letters(
    tokenizer: common.TokenizerArg,
    html: HtmlOpt = None,
    force: common.ForceOpt = False,
    pattern: common.PatternOpt = None,
    regex: common.RegexOpt = None,
    special: common.SpecialOpt = None,
    fails: fail_if.FailIfOpt = None,
    json: common.JsonOpt = False,
) -> None:
    """Which tokens hold which letters, what reversal does to them, whether rhymes show.

    \b
    Examples:
      subword audit letters o200k_base
      subword audit letters tokenizer.json --json
    """
    fail_if.check_syntax(fails)
    tok, name = start(tokenizer, pattern, regex, special, html, force)
    found = measure_letters(tok)
    show(tok, name, found, [report.letters_part(found)], json, html, fails=fails)


def start(
    tokenizer: str,
    pattern: str | None,
    regex: str | None,
    special: Sequence[str] | None,
    html: Path | None,
    force: bool,
) -> tuple[Tokenizer, str]:
    """The tokenizer and what to call it; an output that could not be written is refused before the work."""
    if html is not None:
        check_html(html, force)
    return load(tokenizer, **common.left_out(pattern, regex, special)), Path(tokenizer).name


def check_html(html: Path, force: bool) -> None:
    """Refuse a report that could not be written at the end of the work, before it begins."""
    if html.suffix.lower() not in (".html", ".htm"):
        raise common.UsageError(f"--html {html}: a report is an .html file; the name must say so")
    common.check_out(html, force)


def texts_of(tok: Tokenizer, texts: Sequence[str] | None, field: str) -> list[bytes]:
    """The texts in files. All are held, since several parts look at them, and standard input is read only once."""
    return list(read_texts(find_files(texts), field, whole=common.must_stay_whole(tok))) if texts else []


def efficiency_of(
    tok: Tokenizer,
    held: list[bytes],
    texts: Sequence[str] | None,
    beside: Sequence[str] | None,
    field: str,
    alpha: float,
) -> list[Efficiency]:
    groups = [(source_of(texts), held)] if texts else []
    groups += [(source_of([each]), texts_of(tok, [each], field)) for each in beside or ()]
    return [measure_efficiency(tok, parts, source=source, alpha=alpha) for source, parts in groups]


def source_of(texts: Sequence[str]) -> str:
    """What to call texts, by the names of their files."""
    name = (Path(texts[0]).name or texts[0]) if texts else "text"
    return name if len(texts) < 2 else f"{name} and {len(texts) - 1} more"


def fairness_of(tok: Tokenizer, parallel: str | None, reference: str, window: int, price: float | None) -> Fairness:
    texts: Collection = builtin_passage() if parallel is None else read_parallel(parallel, reference)
    return measure_fairness(tok, texts, window=window, price=price)


def show(
    tok: Tokenizer,
    name: str,
    data: Any,
    parts: Sequence[Part],
    json: bool,
    html: Path | None,
    brief: bool = False,
    fails: Sequence[str] | None = None,
) -> None:
    """Write and print the report; then exit with 1 if a condition of `fails` holds."""
    if html is not None:
        with replacing(str(html), "a report") as file:
            file.write(report.audit_page(tok, name, parts).encode())
    if json:
        common.print_json(report.plain(data))
    else:
        common.print_parts(parts, f"Audit of {name}", brief)
    if not json and brief and sys.stdout.isatty():
        common.console().print(Text("\nA part by itself, whole: subword audit PART. To look at: --html FILE.", "dim"))
    fail_if.check(fails, report.plain(data))
