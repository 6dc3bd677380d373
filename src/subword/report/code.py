"""What code costs, as a part of a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..audits.code import DEPTHS, Code
from .parts import Block, Cell, Chart, Facts, Finding, Part, Table, joined

DEEP = 2
"""A line at the greatest depth that costs more tokens than this for its indentation is a finding."""


def code_part(result: Code) -> Part:
    return Part("Code", tuple(_code(result)))


def _code(result: Code) -> Iterator[Block]:
    best, worst = result.formats[0], result.formats[-1]
    yield Facts((
        ("runs of spaces", _runs(result.space_runs, "space")),
        ("runs of tabs", _runs(result.tab_runs, "tab")),
        ("newlines with white space", f"{result.newline_runs:,} entries"),
        ("filling in the middle", "  ".join(result.fim) or "no tokens for it that are known"),
        ("common and new lines", f"{result.boilerplate:.2f} and {result.novel:.2f} bytes a token"),
        ("the same data", f"{best.format} {best.tokens:,} tokens, {worst.format} {worst.tokens:,}"),
    ))  # fmt: skip
    yield from _findings(result)
    yield _depths(result)
    yield Table(
        "Tokens that a line takes more for its indentation, by depth.",
        ("indented by", *map(str, range(1, DEPTHS + 1))),
        tuple((row.style, *row.tokens) for row in result.indentation),
    )
    yield Table(
        "The same names, written in several ways.", ("convention", "cut", "tokens a name"),
        tuple((row.example, joined(row.pieces), round(row.tokens, 2)) for row in result.conventions), brief=5,
    )  # fmt: skip
    yield Table(
        "One program in ten languages. Comments, indentation: the share of tokens that they take.",
        ("language", "tokens", "bytes", "tokens/line", "% comments", "% indentation"),
        tuple(
            (row.language, row.tokens, row.bytes, round(row.tokens_per_line, 2), round(100 * row.comments, 1),
             round(100 * row.indentation, 1))
            for row in sorted(result.programs, key=lambda row: row.tokens)
        ),
        brief=10,
    )  # fmt: skip
    yield Table(
        "The same data in several formats.", ("format", "tokens", "bytes", "bytes/token", f"times {best.format}"),
        tuple(
            (row.format, row.tokens, row.bytes, round(row.bytes / row.tokens, 2), round(row.tokens / best.tokens, 2))
            for row in result.formats
        ),
        brief=5,
    )  # fmt: skip
    own = result.files[0]
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (row.tokenizer, row.tokens, row.bytes, round(row.bytes_per_token, 3), round(row.tokens / own.tokens, 3))
        for row in result.files
    )
    yield Table(
        f"Tokenizers on {result.source}.", ("tokenizer", "tokens", "bytes", "bytes/token", "times the first"), rows
    )


def _runs(lengths: Sequence[int], what: str) -> str:
    """
    >>> _runs((1, 2, 3, 4, 8), "space"), _runs((1,), "tab")
    ('5 entries, of up to 8 spaces', 'single ones only')
    """
    if not lengths:
        return "none"
    return "single ones only" if lengths[-1] == 1 else f"{len(lengths):,} entries, of up to {lengths[-1]} {what}s"


def _findings(result: Code) -> Iterator[Finding]:
    dear = [row for row in result.indentation if row.tokens[-1] > DEEP]
    if dear:
        worst = max(dear, key=lambda row: row.tokens[-1])
        share = max(result.programs, key=lambda row: row.indentation)
        yield Finding(
            f"Indentation costs by its depth: {worst.tokens[-1]} tokens before a line, {DEPTHS} levels deep.",
            "A token or more for each level is paid for on every line, and says nothing that one token could not.",
            f"{worst.style} a level: {', '.join(map(str, worst.tokens[:4]))} … tokens; in the {share.language} program "
            f"{100 * share.indentation:.0f} % of all tokens are indentation",
            "For code, take a tokenizer with entries for runs of white space: a split pattern that keeps them "
            "together, such as cl100k, and code in the training text. Until then, indent with tabs.",
        )


def _depths(result: Code) -> Chart:
    points = [
        {"depth": depth, "tokens": tokens, "style": row.style}
        for row in result.indentation
        for depth, tokens in enumerate(row.tokens, 1)
    ]

    def make(alt: Any) -> Any:
        x = alt.X("depth:O", title="levels", axis=alt.Axis(labelAngle=0))
        y = alt.Y("tokens:Q", title="tokens for indentation", axis=alt.Axis(tickCount=5, tickMinStep=1))
        legend = alt.Legend(title=None, labelColor="currentColor", labelFontSize=14, orient="top")
        colours = alt.Scale(domain=[row.style for row in result.indentation], range=["#3f83c9", "#d08a1d", "#4fa36b"])
        marks = alt.Chart(alt.Data(values=points)).mark_line(strokeWidth=2, point=True)
        return marks.encode(x=x, y=y, color=alt.Color("style:N", scale=colours, legend=legend))

    told = "; ".join(f"{row.style}: {row.tokens[-1]} at {DEPTHS} levels" for row in result.indentation)
    return Chart(
        make, "Tokens for indentation by depth", told, f"What a line pays for its indentation. {told}.", height=220
    )
