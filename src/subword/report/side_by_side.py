"""Tokenizers side by side, as parts of a report."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import astuple, fields

from .._core import __version__
from ..audits.comparison import Row
from ..audits.side_by_side import SideBySide
from . import page
from .parts import Block, Note, Part, Pieces, Table, sections


def _short(names: Sequence[str]) -> dict[str, str]:
    """Paths by the names of their files, where these tell them apart.

    >>> _short(["a/one.json", "b/two.json"]), _short(["a/t.json", "b/t.json"])
    ({'a/one.json': 'one.json', 'b/two.json': 'two.json'}, {'a/t.json': 'a/t.json', 'b/t.json': 'b/t.json'})
    """
    last = [os.path.basename(name.rstrip("/")) or name for name in names]
    return dict(zip(names, last if len(set(last)) == len(last) else names, strict=True))


def rows_part(rows: Sequence[Row]) -> Part:
    """What tokenizers make of a text, a row each."""
    headings = tuple(field.name.replace("_", " ") for field in fields(Row))
    names = _short([row.name for row in rows])
    cells = tuple((names[row.name], *astuple(row)[1:]) for row in rows)
    return Part("On the text", (Table("All on the same text.", headings, cells, brief=len(rows)),))


def compare_page(names: Sequence[str], part: Part) -> str:
    """The comparison as one HTML file."""
    lead = f"{len(names)} tokenizers side by side: {', '.join(names)}." if names else ""
    return page.page("Comparison of tokenizers", lead, *sections([part]), foot=f"subword {__version__}")


def side_by_side_part(result: SideBySide) -> Part:
    rows = tuple(
        (row.name, *(round(value, 4) if isinstance(value, float) else value for value in row.values))
        for row in result.figures
    )
    names = _short(result.names)
    headings = ("", *(names[name] for name in result.names))
    blocks: list[Block] = [Table("The numbers of every audit.", headings, rows, brief=len(rows))]
    for row in result.partings:
        one, other = names[row.one], names[row.other]
        where = f"text {row.text}, byte {row.byte:,}"
        blocks.append(Pieces(f"{one} and {other} first differ in {where}. {one}:", row.tokens))
        blocks.append(Pieces(f"{other}:", row.other_tokens))
    if len(result.names) > 1 and not result.partings:
        blocks.append(Note("All cut the texts alike."))
    return Part("Side by side", tuple(blocks))
