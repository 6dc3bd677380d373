"""`subword show`: how a text is cut."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from ..corpus import find_files
from ..report import terminal
from ..tokenizer import load
from . import common

SHORT = 40
"""Up to so many tokens, a table follows unless `--no-table` forbids it."""


def show(
    tokenizer: common.TokenizerArg,
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="The text; - or nothing for standard input.")
    ] = None,
    file: Annotated[str | None, typer.Option("--file", "-f", metavar="FILE", help="A file, instead of TEXT.")] = None,
    table: Annotated[
        bool | None,
        typer.Option("--table/--no-table", help=f"A table of the tokens below.  [default: up to {SHORT} tokens]"),
    ] = None,
    max_tokens: Annotated[
        int, typer.Option("--max-tokens", metavar="N", min=1, help="Show no more than the first N tokens.")
    ] = 500,
    allow_special: common.AllowOpt = None,
    ordinary: common.OrdinaryOpt = False,
    add_special_tokens: common.BothEndsOpt = False,
    pattern: common.PatternOpt = None,
    regex: common.RegexOpt = None,
    special: common.SpecialOpt = None,
    json: common.JsonOpt = False,
) -> None:
    """Show how a text is cut into tokens.

    On a terminal: the text, token by token on alternating colours (set apart by │ where there are none), with ␣ for a
    space, → for a tab, ↵ for a newline and ⟨e4⟩ for a byte that is part of a character; then a table with ids, bytes
    and spans. Through a pipe: the table with tabs, a token a line, a heading first. --json prints {"count", "tokens":
    [{"id", "piece", "bytes", "byte_span", "char_span"}]} with bytes in hexadecimal.

    \b
    Examples:
      subword show tokenizer.json "How is this cut?"
      subword show tokenizer.json --file main.py --max-tokens 2000 --no-table
      subword show tokenizer.json "naïve 你好" --table
      subword show tokenizer.json "a long text" | cut -f1,2
    """
    if text is not None and file is not None:
        raise common.UsageError("give TEXT or --file, not both")
    files = [str(path) for path in find_files([file])] if file is not None else None
    source = common.Input(["-"], None) if text == "-" else common.Input(files, text)
    tok = load(tokenizer, **common.left_out(pattern, regex, special))
    how = common.policy(tok, allow_special, ordinary)
    for document in source.documents(whole=True):
        whole = b"".join(document.parts)
        with common.naming_special(tok, [(document, whole)], how):
            encoding = tok.tokenize(whole, add_special_tokens=add_special_tokens, **how)
        _render(encoding, table, max_tokens, json)


def _render(encoding: Any, table: bool | None, max_tokens: int, json: bool) -> None:
    if json:
        common.print_json(_plain(encoding, max_tokens))
    elif not sys.stdout.isatty():
        common.print_tsv(*terminal.HEADINGS)
        for row in terminal.rows(encoding, max_tokens):
            common.print_tsv(row.id, row.shown, row.piece, row.bytes, row.byte_span, row.char_span)
    else:
        console = common.console()
        console.print(terminal.coloured_tokens(encoding, max_tokens, rule=console.no_color), soft_wrap=True)
        if table or (table is None and len(encoding.ids) <= SHORT):
            console.print(terminal.token_table(encoding, max_tokens))
    more = terminal.left_out(encoding, max_tokens)
    if more and not json:
        print(f"{more:,} more tokens not shown (--max-tokens)", file=sys.stderr)


def _plain(encoding: Any, max_tokens: int) -> dict[str, Any]:
    return {
        "tokens": [
            {"id": id, "piece": piece, "bytes": data.hex(), "byte_span": byte_span, "char_span": char_span}
            for id, piece, data, byte_span, char_span in zip(
                encoding.ids[:max_tokens].tolist(),
                encoding.pieces,
                encoding.token_bytes,
                encoding.byte_spans.tolist(),
                encoding.char_spans.tolist(),
                strict=False,
            )
        ],
        "count": len(encoding.ids),
    }
