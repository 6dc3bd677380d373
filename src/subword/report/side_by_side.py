"""Tokenizers side by side, as parts of a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, fields

from .._core import __version__
from ..audits.comparison import Row
from ..audits.side_by_side import SideBySide
from . import page
from .parts import Block, Note, Part, Pieces, Table, sections


def rows_part(rows: Sequence[Row]) -> Part:
    """What tokenizers make of a text, a row each."""
    headings = tuple(field.name.replace("_", " ") for field in fields(Row))
    return Part("On the text", (Table("All on the same text.", headings, tuple(map(astuple, rows)), brief=len(rows)),))


def compare_page(names: Sequence[str], part: Part) -> str:
    """The comparison as one HTML file."""
    lead = f"{len(names)} tokenizers side by side: {', '.join(names)}." if names else ""
    return page.page("Comparison of tokenizers", lead, *sections([part]), foot=f"subword {__version__}")


def side_by_side_part(result: SideBySide) -> Part:
    rows = tuple(
        (row.name, *(round(value, 4) if isinstance(value, float) else value for value in row.values))
        for row in result.figures
    )
    blocks: list[Block] = [Table("The numbers of every audit.", ("", *result.names), rows, brief=len(rows))]
    for row in result.partings:
        where = f"text {row.text}, byte {row.byte:,}"
        blocks.append(Pieces(f"{row.one} and {row.other} first differ in {where}. {row.one}:", row.tokens))
        blocks.append(Pieces(f"{row.other}:", row.other_tokens))
    if len(result.names) > 1 and not result.partings:
        blocks.append(Note("All cut the texts alike."))
    return Part("Side by side", tuple(blocks))
