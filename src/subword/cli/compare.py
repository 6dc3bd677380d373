"""`subword compare`: tokenizers side by side on the same text."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from .. import formats
from ..audits import comparison, patches, side_by_side
from ..errors import SubwordError, SubwordValueError
from ..formats import LeftOutError
from ..report.audits import plain
from ..report.parts import Part
from ..report.side_by_side import compare_page, rows_part, side_by_side_part
from ..tokenizer import Tokenizer, load
from ..training_baselines import BASELINES
from ..writing import replacing
from . import common
from .audit_common import HtmlOpt, check_html


def compare(
    tokenizers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TOKENIZER]... [TEXT]...", help="Tokenizer files or known names, then texts.", show_default=False
        ),
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Option("--file", "-f", metavar="FILE", help="Files, folders, globs, -; may be repeated."),
    ] = None,
    text: common.TextOpt = None,
    baseline: Annotated[
        list[str] | None,
        typer.Option(
            "--baseline",
            metavar="NAME",
            parser=common.one_of(*BASELINES, "all"),
            show_default=False,
            help=f"Trained on this very text: {', '.join(BASELINES)}, or all; may be repeated.",
        ),
    ] = None,
    vocab_size: Annotated[
        int | None,
        typer.Option(
            "--vocab-size",
            "-v",
            metavar="SIZE",
            parser=common.parse_size,
            show_default=False,
            help="The most entries of baselines; all there are if not given.",
        ),
    ] = None,
    patch_bytes: Annotated[
        float | None,
        typer.Option("--patches", metavar="BYTES", min=1.0, help="Byte patches by entropy, so long on average."),
    ] = None,
    rule: Annotated[
        Literal["global", "monotonic"],
        typer.Option(
            "--patch-rule",
            metavar="global|monotonic",
            parser=common.one_of(*patches.RULES),
            help="A patch starts where entropy is high, or where it rises.",
        ),
    ] = "global",
    width: Annotated[
        int, typer.Option("--width", metavar="N", min=1, help="Numbers a row of the table of embeddings.")
    ] = comparison.WIDTH,
    audits: Annotated[
        bool, typer.Option("--audits", help="Instead, the numbers of every audit, and where cuts first differ.")
    ] = False,
    html: HtmlOpt = None,
    force: common.ForceOpt = False,
    threads: common.ThreadsOpt = None,
    field: common.FieldOpt = "text",
    stdin_format: common.StdinOpt = "text",
    json: common.JsonOpt = False,
) -> None:
    """Compare tokenizers on a text: vocabulary, tokens, unknown ones, what attention and the table of embeddings cost.

    attention is the sum of T² over the texts, T being the tokens of each; table is ids times --width. What looks like a
    special token is plain text. On a terminal a table; through a pipe the same with tabs, a heading first. --json
    prints {"rows": [...]}. An argument that is a file, but no tokenizer, is a text, as if with --file.

    \b
    Examples:
      subword compare gpt2 o200k_base --file book.txt
      subword compare gpt2 cl100k_base o200k_base book.txt src/ --audits --html compare.html
      subword compare tokenizer.json --baseline all --patches 4.5 --file book.txt
      subword compare a.json b.json --file corpus/*.jsonl.zst --field content --json
      git diff | subword compare cl100k_base --baseline byte
    """
    names = list(dict.fromkeys(tokenizers or ()))
    given = [name for name in names[1:] if _is_text(name)]
    names = [name for name in names if name not in given]
    files = [*(files or ()), *given] or None
    wanted = list(BASELINES) if "all" in (baseline or ()) else baseline or []
    if not names and not wanted and patch_bytes is None:
        raise common.UsageError("nothing to compare: give tokenizers, --baseline or --patches")
    if html is not None:
        check_html(html, force)
    if audits:
        if wanted or patch_bytes is not None:
            raise common.UsageError("--audits compares tokenizers: leave out --baseline and --patches")
        read = text is not None or files
        chosen = common.Input(files, text, field, stdin_format).documents(whole=True) if read else ()
        found = side_by_side(
            {name: _loaded(name) for name in names},
            [b"".join(document.parts) for document in chosen],
            width=width,
        )
        _write(html, names, side_by_side_part(found))
        common.print_json(plain(found)) if json else common.print_parts([side_by_side_part(found)])
        return
    source = common.Input(files, text, field, stdin_format)
    loaded = {name: _loaded(name) for name in names}
    texts = [b"".join(document.parts) for document in source.documents(whole=True)]
    rows = comparison.compare(
        loaded,
        texts,
        baselines=wanted,
        vocab_size=vocab_size,
        patch_bytes=patch_bytes,
        rule=rule,
        width=width,
        threads=threads,
    )
    _write(html, [row.name for row in rows], rows_part(rows))
    _render([asdict(row) for row in rows], json)


def _write(html: Path | None, names: Sequence[str], part: Part) -> None:
    if html is not None:
        with replacing(str(html), "a report") as file:
            file.write(compare_page(names, part).encode())


def _is_text(name: str) -> bool:
    """Whether an argument is a file or a folder in which no tokenizer can be recognised."""
    if not os.path.exists(name):
        return False
    try:
        formats.recognise(name)
    except SubwordError:
        return True
    return False


def _loaded(name: str) -> Tokenizer:
    try:
        return load(name)
    except LeftOutError as error:
        raise SubwordValueError(
            f"{error.problem}; make a whole file of it first, with subword convert, which takes --pattern and --special"
        ) from error


def _render(rows: list[dict[str, Any]], json: bool) -> None:
    if json:
        common.print_json({"rows": rows})
        return
    headings = [field.name for field in fields(comparison.Row)]
    if not sys.stdout.isatty():
        common.print_tsv(*headings)
        for row in rows:
            common.print_tsv(*row.values())
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        table.add_column(heading.replace("_", " "), justify="left" if heading in ("name", "model") else "right")
    for row in rows:
        table.add_row(*(Text(cell if isinstance(cell, str) else f"{cell:,}") for cell in row.values()))
    common.console().print(table)
