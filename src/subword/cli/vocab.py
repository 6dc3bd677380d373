"""`subword vocab`: look through a vocabulary."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, Literal, TypeAlias

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from ..explain.vocabulary import KINDS, ORDERS, Entry, Vocabulary
from ..report.terminal import bracketed, visible
from ..scripts import MIXED, NONE, SCRIPTS
from ..tokenizer import load
from . import common

Kind: TypeAlias = Literal["byte", "merge", "unreachable", "special", "added", "unmatchable"]
Order: TypeAlias = Literal["id", "bytes", "length", "rank", "script", "text"]

SHORT = 100
"""So many rows are shown on a terminal if nothing is said."""

HEADINGS = ("id", "kind", "rank", "bytes", "chars", "script", "piece", "token", "made of")


def vocab(
    tokenizer: common.TokenizerArg,
    contains: Annotated[
        str | None, typer.Option("--contains", metavar="TEXT", help="Tokens with this text in them.")
    ] = None,
    starts: Annotated[
        str | None, typer.Option("--starts", metavar="TEXT", help="Tokens that start with this text.")
    ] = None,
    bytes: Annotated[
        str | None, typer.Option("--bytes", metavar="HEX", help='Tokens with these bytes in them, as in "e2 80".')
    ] = None,
    match: Annotated[
        str | None, typer.Option("--match", metavar="REGEX", help="Tokens in whose text Python's `re` finds this.")
    ] = None,
    ids: Annotated[
        str | None, typer.Option("--ids", metavar="IDS", help="These ids: 256, 256:512 (without 512), 5,9,300:")
    ] = None,
    script: Annotated[
        str | None,
        typer.Option("--script", metavar="NAME", help="Tokens of a script: Han, Latin, …, or mixed, or none."),
    ] = None,
    kind: Annotated[
        Kind | None,
        typer.Option(
            "--kind", metavar="KIND", parser=common.one_of(*KINDS), help=f"Tokens of a kind: {', '.join(KINDS)}."
        ),
    ] = None,
    sort: Annotated[
        Order,
        typer.Option("--sort", metavar="ORDER", parser=common.one_of(*ORDERS), help=f"By what: {', '.join(ORDERS)}."),
    ] = "id",
    reverse: Annotated[bool, typer.Option("--reverse", help="The other way round.")] = False,
    limit: Annotated[
        int | None,
        typer.Option("--limit", metavar="N", min=1, help=f"So many rows.  [default: {SHORT} on a terminal, else all]"),
    ] = None,
    count: Annotated[bool, typer.Option("--count", help="Only say how many there are.")] = False,
    expand: Annotated[bool, typer.Option("--expand", help="How they are made, down to single bytes.")] = False,
    pattern: common.PatternOpt = None,
    regex: common.RegexOpt = None,
    special: common.SpecialOpt = None,
    json: common.JsonOpt = False,
) -> None:
    """Look through a vocabulary.

    A token a row, those that pass all that is asked: its id; its kind; the rank of its last merge; its length in bytes
    and in characters; the script of its characters that have one (`mixed` for several, `none` where none has); the
    piece as files of the vocabulary spell it; its text, with ␣ for a space, → for a tab, ↵ for a newline and ⟨e4⟩ for a
    byte that is part of a character; and the two tokens that its last merge joins, or with --expand all of them, as in
    ⟦t h⟧ e. An `unreachable` token is one that the merges do not make of its bytes.

    Through a pipe: tabs between the columns, a heading first, and the bytes in hexadecimal. --json prints a line of
    JSON for each. --match sees a byte that is no whole character as U+DC80 to U+DCFF (Python's "surrogateescape").
    --sort length goes by characters; text, by code points.

    \b
    Examples:
      subword vocab tokenizer.json --contains token
      subword vocab tokenizer.json --script Han --sort length --reverse --limit 20
      subword vocab tokenizer.json --ids 256:276 --expand
      subword vocab tokenizer.json --match "^ ?[0-9]+$" --count
      subword vocab tokenizer.json --bytes "e2 80" --json | jq .bytes
    """
    wanted = _wanted(contains, starts, bytes)
    ranges = None if ids is None else parse_ranges(ids)
    found_by = None if match is None else _compiled(match)
    script = None if script is None else _script(script)
    vocabulary = Vocabulary(load(tokenizer, **common.left_out(pattern, regex, special)))
    found = vocabulary.select(wanted, ids=ranges, pattern=found_by, script=script, kind=kind)
    if count:
        common.print_json({"count": len(found)}) if json else print(len(found))
        return
    ordered = vocabulary.sort(found, sort, reverse)
    shown = ordered[: SHORT if limit is None and sys.stdout.isatty() and not json else limit]
    _render(vocabulary, shown, expand, json)
    more = len(ordered) - len(shown)
    if more and limit is None:
        print(f"{more:,} more tokens not shown (--limit)", file=sys.stderr)


# ======================== what is asked ========================


def _wanted(contains: str | None, starts: str | None, hexadecimal: str | None) -> Callable[[bytes], bool] | None:
    parts = [] if contains is None else [_data(contains)]
    if hexadecimal is not None:
        try:
            parts.append(bytes.fromhex(re.sub(r"0x|\\x|,", " ", hexadecimal)))
        except ValueError:
            raise common.UsageError(f'--bytes {hexadecimal!r}: not bytes in hexadecimal; write "e2 80"') from None
    start = b"" if starts is None else _data(starts)
    if not parts and not start:
        return None
    return lambda data: data.startswith(start) and all(part in data for part in parts)


def _data(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def parse_ranges(text: str) -> list[range]:
    """Ids and ranges of ids, with commas between them; a range has its first id and not its last, as in Python.

    >>> parse_ranges("7, 256:512, 1000:")
    [range(7, 8), range(256, 512), range(1000, 2147483648)]
    """
    ranges = []
    for part in text.split(","):
        found = re.fullmatch(r"([0-9]{0,10})(:?)([0-9]{0,10})", part.strip(), re.ASCII)
        if not found or not (found[1] or found[2]):
            raise common.UsageError(
                f"--ids: {part.strip()!r} is not an id or a range of ids; write 256, 256:512 or 5,9"
            )
        first = int(found[1] or 0)
        last = first + 1 if not found[2] else int(found[3]) if found[3] else 2**31
        ranges.append(range(first, last))
    return ranges


def _compiled(regex: str) -> re.Pattern[str]:
    try:
        return re.compile(regex)
    except (re.error, RecursionError, OverflowError) as error:
        raise common.UsageError(f"--match {regex!r}: {error}") from None


def _script(name: str) -> str:
    """A script by its name, in any case and with spaces for `_`."""
    loose = {known.lower(): known for known in (*SCRIPTS, MIXED, NONE)}
    try:
        return loose[name.strip().lower().replace(" ", "_")]
    except KeyError:
        known = ", ".join(other for key, other in loose.items() if key[:2] == name.strip().lower()[:2])
        hint = f"did you mean {known}?" if known else "write Latin, Han, Cyrillic, …, mixed or none"
        raise common.UsageError(f"--script {name!r}: Unicode has no such script; {hint}") from None


# ======================== what is shown ========================


def _render(vocabulary: Vocabulary, ids: list[int], expand: bool, json: bool) -> None:
    if json:
        for id in ids:
            common.print_json(_plain(vocabulary, id, expand))
        return
    rows = _rows(vocabulary, ids, expand)
    if not sys.stdout.isatty():
        common.print_tsv(*HEADINGS, "hex")
        for row, entry in rows:
            common.print_tsv(*row, entry.data.hex())
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))  # narrow: there are nine columns
    for heading in HEADINGS:
        number = heading in ("id", "rank", "bytes", "chars")
        short = number or heading == "kind"
        table.add_column(heading, justify="right" if number else "left", no_wrap=short, overflow="fold")
    for row, _ in rows:
        table.add_row(*map(Text, row))
    common.console().print(table)


def _rows(vocabulary: Vocabulary, ids: Iterable[int], expand: bool) -> Iterator[tuple[tuple[str, ...], Entry]]:
    """The cells of each token, as text of one line without tabs."""
    shown = functools.cache(lambda id: visible(vocabulary.data[id]))
    for id in ids:
        entry = vocabulary.entry(id)
        if entry.made_of is None:
            made_of = ""
        elif expand:
            made_of = bracketed(vocabulary.expand(id))
        else:
            left, right = entry.made_of
            made_of = f"{shown(left)} + {shown(right)}"
        piece = entry.piece if entry.piece.isprintable() else visible(entry.piece.encode())
        rank = "" if entry.rank is None else str(entry.rank)
        cells = (str(id), entry.kind, rank, str(len(entry.data)), str(entry.chars), entry.script, piece)
        yield (*cells, shown(id), made_of), entry


def _plain(vocabulary: Vocabulary, id: int, expand: bool) -> dict[str, Any]:
    entry = vocabulary.entry(id)
    text = entry.data.decode("utf-8", "replace")
    return {
        "id": id,
        "kind": entry.kind,
        "rank": entry.rank,
        "n_bytes": len(entry.data),
        "n_chars": entry.chars,
        "script": entry.script,
        "piece": entry.piece,
        "bytes": entry.data.hex(),
        "text": text if text.encode() == entry.data else None,
        "made_of": entry.made_of,
        **({"expanded": bracketed(vocabulary.expand(id))} if expand else {}),
    }
