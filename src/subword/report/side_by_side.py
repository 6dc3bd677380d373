"""Tokenizers side by side, as a part of a report."""

from __future__ import annotations

from ..audits.side_by_side import SideBySide
from .parts import Block, Note, Part, Pieces, Table


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
