"""`subword budget`: what files cost, in tokens, context and money."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from ..audits import money
from ..corpus import STDIN, find_files, name_of
from ..corpus.files import COLUMNAR, Span, read_blocks
from ..errors import warn
from ..report.audits import plain
from ..report.money import budget_page, budget_part
from ..tokenizer import load
from ..writing import replacing
from . import common
from .audit_common import HtmlOpt, WindowOpt, check_html


def _tokens(value: str | int) -> int:
    """A number as people write it; the one that is taken if nothing is said is there already."""
    return value if isinstance(value, int) else common.parse_size(value)


def budget(
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="[PATH]...", help="Files, folders, globs, -.", show_default=False)
    ] = None,
    tokenizer: Annotated[
        str, typer.Option("--tokenizer", "-t", metavar="TOKENIZER", help="A tokenizer file or known name.")
    ] = "o200k_base",
    window: WindowOpt = 128_000,
    reply: Annotated[
        int,
        typer.Option("--reply", metavar="N", parser=_tokens, help="Tokens to keep free for the reply."),
    ] = 0,
    prices: Annotated[
        Path | None, typer.Option("--prices", metavar="FILE", help="Your table of prices, as --price-template has it.")
    ] = None,
    role: Annotated[
        list[str] | None,
        typer.Option(
            "--role",
            metavar="ROLE=PATH",
            show_default=False,
            help=f"This path as: {', '.join(money.ROLES)}; may be repeated. Else the name says it.",
        ),
    ] = None,
    price_template: Annotated[bool, typer.Option("--price-template", help="Print a table to fill in.")] = False,
    html: HtmlOpt = None,
    force: common.ForceOpt = False,
    pattern: common.PatternOpt = None,
    regex: common.RegexOpt = None,
    special: common.SpecialOpt = None,
    json: common.JsonOpt = False,
) -> None:
    """What files cost: tokens, share of a context window and, with your table of prices, money; by file and by role.

    Files are counted as they are. CLAUDE.md, AGENTS.md and the like are instructions, system.md is a system prompt,
    tools.json are tool schemas, history.jsonl is history, all else is prompt; --role says otherwise. Counts are those
    of the tokenizer: a model whose own is not public may count otherwise (subword count --provider).

    \b
    Examples:
      subword budget CLAUDE.md src/ --window 200k
      subword budget --price-template > prices.csv
      subword budget CLAUDE.md --role system=prompt.txt --role tools=schemas/ --prices prices.csv --reply 8k
    """
    if price_template:
        print(money.PRICE_TEMPLATE, end="")
        return
    if not paths and not role:
        raise common.UsageError("nothing to count: give files or folders, as in subword budget CLAUDE.md src/")
    if html is not None:
        check_html(html, force)
    files = _roles(paths or (), role or ())
    table = () if prices is None else money.read_prices(prices)
    tok = load(tokenizer, **common.left_out(pattern, regex, special))
    name = Path(tokenizer).name
    found = money.budget(tok, _texts(files), window=window, reply=reply, prices=table)
    part = budget_part(found, name)
    if html is not None:
        with replacing(str(html), "a report") as file:
            file.write(budget_page(part).encode())
    if json:
        common.print_json({"tokenizer": name, **plain(found)})
    else:
        common.print_parts([part], brief=True)


def _roles(paths: Sequence[str], given: Sequence[str]) -> dict[Path, str]:
    """The files, each with its role; what --role says of one goes before its name."""
    said: dict[Path, str] = {}
    for each in given:
        role, equals, path = each.partition("=")
        if role not in money.ROLES or not path:
            problem = f"unknown role {role!r}" if equals and path else "write ROLE=PATH"
            raise common.UsageError(f"--role {each!r}: {problem}; roles are {', '.join(money.ROLES)}")
        said |= dict.fromkeys(find_files([path]), role)
    files = {path: said.get(path) or money.role_of(str(path)) for path in find_files(paths)} | said
    tables = [path for path in files if path.suffix.lower() in COLUMNAR]
    if tables:
        warn(f"{len(tables)} files that are tables, not text, are left out: {', '.join(map(str, tables[:3]))}")
    return {path: role for path, role in files.items() if path not in tables}


def _texts(files: dict[Path, str]) -> Iterator[tuple[str, str, bytes]]:
    for path, role in files.items():
        yield "standard input" if path == STDIN else name_of(path), role, b"".join(read_blocks(Span(path)))
