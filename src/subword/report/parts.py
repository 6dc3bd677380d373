"""A report as a list of parts, each of a few kinds of block, and what they look like in a terminal and on a page.

What makes a report says what there is to say once; the two renderings are here. JSON is made of the data itself.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from rich import box
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from . import charts, page
from .terminal import COLOURS, RULE, visible

SHORT = 10
"""A column of a terminal's table whose cells have at most so many characters is not folded."""

Cell: TypeAlias = "str | int | float | None"


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence or two."""

    words: str


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and what they name."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under headings; in a terminal only the first and the last `brief` rows, where that is asked for."""

    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    brief: int = 8


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing, for the page alone: what it shows stands in a table or in facts, too."""

    make: Callable[[Any], Any]
    title: str
    description: str
    caption: str
    height: int = 280


@dataclass(frozen=True, slots=True)
class Pieces:
    """Tokens side by side, coloured in turn."""

    caption: str
    pieces: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found, why it matters, an example, and what to do."""

    what: str
    why: str
    example: str
    advice: str


Block: TypeAlias = "Note | Facts | Table | Chart | Pieces | Finding"


@dataclass(frozen=True, slots=True)
class Part:
    """What one audit found."""

    title: str
    blocks: tuple[Block, ...]


def joined(pieces: Iterable[bytes]) -> str:
    """Tokens in a cell of a table.

    >>> joined([b" V", b"av", b"or"])
    '␣V│av│or'
    """
    return RULE.join(map(visible, pieces))


# ======================== terminal ========================


def renderables(parts: Iterable[Part], brief: bool) -> Iterator[RenderableType]:
    """The parts for a terminal. `brief`: long tables without their middle."""
    for part in parts:
        yield Text(f"\n{part.title}", "bold")
        for block in part.blocks:
            yield from _renderable(block, brief)


def _renderable(block: Block, brief: bool) -> Iterator[RenderableType]:
    if isinstance(block, Note):
        yield Text(block.words, "dim")
    elif isinstance(block, Facts):
        card = RichTable.grid(padding=(0, 2))
        card.add_column(style="bold")
        card.add_column(overflow="fold")
        for name, value in block.rows:
            card.add_row(name, Text(value))
        yield card
    elif isinstance(block, Table):
        yield Text(f"\n{block.caption}", "dim")
        yield _table(block, brief)
    elif isinstance(block, Pieces):
        text = Text()
        for number, piece in enumerate(block.pieces):
            text.append(visible(piece), f"black on {COLOURS[number % len(COLOURS)]}")
        yield Text(f"\n{block.caption}", "dim")
        yield text
    elif isinstance(block, Finding):
        yield Text(f"! {block.what}", "bold yellow")
        yield Padding(
            Text("\n".join((block.why, f"Example: {block.example}", f"What to do: {block.advice}"))), (0, 0, 0, 2)
        )


def _table(block: Table, brief: bool) -> RichTable:
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    right, rows = page.numeric(block.headings, block.rows), page.shown(block.rows)
    for at, (heading, to_the_right) in enumerate(zip(block.headings, right, strict=True)):
        short = max((len(row[at]) for row in rows), default=0) <= SHORT
        table.add_column(heading, justify="right" if to_the_right else "left", overflow="fold", no_wrap=short)
    hidden = len(rows) - 2 * block.brief
    for at, row in enumerate(rows):
        if brief and hidden > 1 and block.brief <= at < block.brief + hidden:
            if at == block.brief:
                table.add_row(Text(f"… {hidden:,} more"), *[""] * (len(row) - 1))
            continue
        table.add_row(*map(Text, row))
    return table


def lines(parts: Iterable[Part]) -> Iterator[tuple[object, ...]]:
    """The parts for a pipe, as cells to be set apart by tabs; a part starts with a line of its own, `# title`."""
    for part in parts:
        yield (f"# {part.title}",)
        for block in part.blocks:
            if isinstance(block, Note):
                yield ("note", block.words)
            elif isinstance(block, Facts):
                yield from block.rows
            elif isinstance(block, Table):
                yield block.headings
                yield from (tuple("" if cell is None else cell for cell in row) for row in block.rows)
            elif isinstance(block, Pieces):
                yield (block.caption, joined(block.pieces))
            elif isinstance(block, Finding):
                yield ("finding", block.what, block.why, block.example, block.advice)


# ======================== page ========================


def sections(parts: Iterable[Part]) -> Iterator[str]:
    """The parts for `page.page`."""
    for part in parts:
        yield page.section(part.title, *map(_html, part.blocks))


def _html(block: Block) -> str:
    if isinstance(block, Note):
        return page.paragraph(block.words)
    if isinstance(block, Facts):
        return page.facts(block.rows)
    if isinstance(block, Table):
        return page.table(block.caption, block.headings, block.rows)
    if isinstance(block, Pieces):
        return _coloured(block.caption, block.pieces)
    if isinstance(block, Finding):
        told = (("", block.why), ("Example: ", block.example), ("What to do: ", block.advice))
        body = "".join(f"<p>{page.text(head + words)}</p>" for head, words in told)
        return f'<aside class="finding"><p><strong>{page.text(block.what)}</strong></p>{body}</aside>'
    drawing = charts.draw(block.make, block.title, block.description, block.height)
    return page.paragraph(charts.MISSING) if drawing is None else page.figure(drawing, block.caption)


def _coloured(caption: str, pieces: Sequence[bytes]) -> str:
    spans = (
        f'<code style="background:{COLOURS[number % len(COLOURS)]};color:#111">{html.escape(visible(piece))}</code>'
        for number, piece in enumerate(pieces)
    )
    return f'<figure><figcaption>{page.text(caption)}</figcaption><p class="coloured">{"".join(spans)}</p></figure>'
