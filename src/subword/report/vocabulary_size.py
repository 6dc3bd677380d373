"""What a vocabulary's size costs and saves, as a part of a report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..audits.vocabulary_size import FEW, VocabularySize
from . import charts
from .parts import Block, Cell, Chart, Facts, Finding, Note, Part, Table

HALF = 0.5
"""Tables that take this share of a model's parameters are a finding."""
FAR = 4.0
"""A vocabulary so many times as large as the law's optimum, or as small, is a finding."""
UNITS = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def sizes_part(result: VocabularySize) -> Part:
    return Part("Size of the vocabulary", tuple(_sizes(result)))


def _sizes(result: VocabularySize) -> Iterator[Block]:
    own = result.weight
    tied = own.tables == own.table
    facts = [
        ("entries", f"{own.vocabulary:,}"),
        ("table of embeddings", f"{own.vocabulary:,} × {own.width:,} = {short(own.table)} numbers"),
        ("all tables", f"{short(own.tables)} numbers, {short(own.bytes)}B" + (" (tied: one table)" if tied else "")),
        ("output layer", f"{short(own.output_flops)} operations a token"),
    ]
    if own.share is not None and result.parameters is not None:
        facts.append(("share of the model", f"{100 * own.share:.1f} % of {short(result.parameters)} parameters"))
    if result.optimum is not None:
        fits = sorted((result.optimum.by_flops, result.optimum.by_derivative, result.optimum.by_loss))
        advice = f"{fits[0]:,} to {fits[-1]:,} entries, by three fits (C. Tao et al. 2024)"
        facts.append(("the scaling law's optimum", f"{advice}; {short(result.optimum.parameters)} beside the tables"))
    yield Facts(tuple(facts))
    yield from _findings(result)
    if not result.sizes:
        yield Note("With a text, vocabularies of other sizes are trained on it and set beside this one.")
        return
    yield _curve(result)
    saved: tuple[tuple[Cell, ...], ...] = tuple(
        (
            row.name,
            row.weight.vocabulary,
            row.tokens,
            round(row.bytes_per_token, 3),
            round(row.attention, 2),
            row.window_words,
        )
        for row in result.sizes
    )
    yield Table(
        f"What sizes save on {result.source} ({result.text_bytes:,} bytes). Attention: its cost, by the square of the "
        f"tokens; 1 is the least. Window: words that {result.window:,} tokens hold.",
        ("vocabulary", "entries", "tokens", "bytes/token", "attention", "window"), saved, brief=len(saved),
    )  # fmt: skip
    spent: tuple[tuple[Cell, ...], ...] = tuple(
        (
            f"{row.weight.vocabulary:,}",
            short(row.weight.tables),
            None if row.weight.share is None else round(100 * row.weight.share, 1),
            short(row.output_flops),
            round(row.occurrences, 1),
            round(row.median, 1),
            round(100 * row.rare, 1),
        )
        for row in result.sizes
    )
    yield Table(
        "What they cost. Output: operations of the output layer for the whole text. Met: how often an entry stands in "
        f"the text, on average and in the middle. Rare: entries met fewer than {FEW} times.",
        ("entries", "tables", "% of model", "output", "met", "median", "% rare"), spent, brief=len(spent),
    )  # fmt: skip
    yield Note(
        "Rows called “trained” are counted on the text that they learned from: other text takes more tokens. All are "
        "cuts of one training."
    )


def _findings(result: VocabularySize) -> Iterator[Finding]:
    own = result.weight
    if own.share is not None and own.share >= HALF:
        yield Finding(
            f"The tables of {own.vocabulary:,} entries are {100 * own.share:.0f} % of the model.",
            "Parameters in tables hold one row for each entry; they do not think. A small model pays for them with "
            "layers.",
            f"{own.vocabulary:,} × {own.width:,} × {own.tables // own.table} = {short(own.tables)} of "
            f"{short(result.parameters or 0)}",
            "Take fewer entries (Tokenizer.cut, subword prune), tie the tables, or a larger model.",
        )
    if result.optimum is not None:
        fits = sorted((result.optimum.by_flops, result.optimum.by_derivative, result.optimum.by_loss))
        large, small = own.vocabulary / fits[-1], fits[0] / own.vocabulary
        if max(large, small) >= FAR:
            word = "larger" if large > small else "smaller"
            yield Finding(
                f"The vocabulary is {max(large, small):.1f} times {word} than the scaling law holds best.",
                "Too many entries take parameters from the layers, and most are met too rarely to be learned; too few "
                "make texts long, which every layer pays for.",
                f"{own.vocabulary:,} entries; the law says {fits[0]:,} to {fits[-1]:,}",
                "Look at the curve on your own text; the law was fitted on English text and on models of up to 3 G "
                "parameters.",
            )


def _curve(result: VocabularySize) -> Chart:
    def dots(trained: bool) -> list[dict[str, float]]:
        rows = [row for row in result.sizes if row.trained == trained]
        return [{"x": row.weight.vocabulary, "y": row.bytes_per_token} for row in rows]

    def make(alt: Any) -> Any:
        decades = [digit * 10**power for power in range(2, 7) for digit in (1, 2, 5)]
        axis = alt.Axis(format="~s", values=decades, labelOverlap=True)
        x = alt.X("x:Q", title="entries", scale=alt.Scale(type="log", nice=False, padding=12), axis=axis)
        y = alt.Y("y:Q", title="bytes per token", scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=6))
        dot = alt.OverlayMarkDef(color=charts.COLOUR, size=40)
        line = alt.Chart(alt.Data(values=dots(True))).mark_line(color=charts.COLOUR, point=dot)
        own = alt.Chart(alt.Data(values=dots(False))).mark_point(
            color="#d08a1d", size=110, strokeWidth=3, shape="diamond"
        )
        return line.encode(x=x, y=y) + own.encode(x=x, y=y)

    best = max(result.sizes, key=lambda row: row.bytes_per_token)
    told = f"{best.name}: {best.bytes_per_token:.2f} bytes a token with {best.weight.vocabulary:,} entries."
    caption = "The line: trained on this text, each size a cut of one training. The diamond: the tokenizer itself."
    return Chart(make, "Bytes per token by vocabulary size", told, caption)


def short(number: float) -> str:
    """A large number in three digits.

    >>> short(131_072_000), short(8_192_000_000), short(999), short(1_050_673_152)
    ('131 M', '8.19 G', '999', '1.05 G')
    """
    for size, unit in UNITS:
        if number >= size:
            value = number / size
            return f"{value:.{0 if value >= 99.95 else 1 if value >= 9.995 else 2}f} {unit}"
    return f"{number:g}"
