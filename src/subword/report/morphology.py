"""Whether tokens end where morphemes do, as a part of a report."""

from __future__ import annotations

from collections.abc import Iterator

from ..audits.morphology import MARK, Boundaries, Morphology
from .parts import Block, Cell, Facts, Finding, Note, Part, Table, joined

ENOUGH = 20
"""So many cuts say something."""
BELOW = 0.9
"""Precision is below chance if it is less than this share of it."""


def morphology_part(result: Morphology) -> Part:
    return Part("Morphology", tuple(_morphology(result)))


def _morphology(result: Morphology) -> Iterator[Block]:
    total = result.total
    if result.note:
        yield Note(result.note)
    yield Facts((
        ("words", f"{total.words:,}, {total.whole:,} of them one token; {total.gold:,} places between morphemes"),
        ("precision", f"{_figure(total.precision)} (cuts at random places: {_figure(total.chance)})"),
        ("recall", _figure(total.recall)),
        ("F1", _figure(total.f1)),
        ("MorphScore", f"{_figure(total.morph_score)} (of words that are cut)"),
    ))  # fmt: skip
    if (
        total.precision is not None and total.chance is not None and total.cuts >= ENOUGH
        and total.precision < BELOW * total.chance
    ):  # fmt: skip
        example = result.worst[0] if result.worst else None
        yield Finding(
            f"Words are cut between morphemes less often than by chance: {total.precision:.2f} of the cuts, random "
            f"ones {total.chance:.2f}.",
            "A stem that is cut otherwise in each of its forms is learned anew in each.",
            f"{MARK.join(example.morphemes)} is cut {joined(example.pieces)}" if example else "",
            "Train on more text in these languages; start from their morphemes (train(initial=…)); or try a unigram "
            "model, which chooses pieces by how probable they are.",
        )
    rows = tuple(map(_row, result.languages))
    if rows:
        yield Table(
            "By language, the best F1 first. Chance: the precision of as many cuts at random places. Whole: words that "
            "are one token.",
            ("language", "words", "precision", "chance", "recall", "F1", "MorphScore", "whole"), rows,
        )  # fmt: skip
    if result.worst:
        yield Table(
            "Words that are cut, but nowhere between morphemes.", ("morphemes", "cut"),
            tuple((MARK.join(word.morphemes), joined(word.pieces)) for word in result.worst), brief=5,
        )  # fmt: skip


def _row(row: Boundaries) -> tuple[Cell, ...]:
    figures = (row.precision, row.chance, row.recall, row.f1, row.morph_score)
    return row.language, row.words, *(None if figure is None else round(figure, 3) for figure in figures), row.whole


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
