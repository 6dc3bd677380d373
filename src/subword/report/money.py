"""What texts cost, as a part of a report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._core import __version__
from ..audits.money import ROLES, Budget, Mixture
from . import charts, page
from .parts import Block, Cell, Chart, Facts, Finding, Note, Part, Table, sections

HEAVY = 0.5
"""What stands in every conversation before the user says a word may take less than this share of the window."""


def budget_part(result: Budget, tokenizer: str) -> Part:
    return Part("Money and context", tuple(_budget(result, tokenizer)))


def _budget(result: Budget, tokenizer: str) -> Iterator[Block]:
    facts = [
        ("tokens", f"{result.tokens:,}, counted with {tokenizer}"),
        ("window", f"{result.window:,} tokens, {_percent(result.share)} taken"),
    ]
    if result.reply:
        facts.append(("kept for the reply", f"{result.reply:,}"))
    facts.append(("left", f"{result.left:,}" if result.left >= 0 else f"none: {-result.left:,} too many"))
    yield Facts(tuple(facts))
    yield from _findings(result)
    if result.items:
        yield _roles(result)
    totals = tuple(
        (row.role, ROLES[row.role], row.items, row.tokens, round(100 * row.share, 2)) for row in result.roles
    )
    yield Table("By role.", ("role", "what it is", "texts", "tokens", "% of window"), totals, brief=len(totals))
    if result.costs:
        rows: tuple[tuple[Cell, ...], ...] = tuple(
            (
                cost.model,
                _money(cost.input),
                _money(cost.output),
                None if result.reply and cost.output is None else _money(cost.input + (cost.output or 0.0)),
            )
            for cost in result.costs
        )
        yield Table(
            "What one request costs, at the prices of your table.", ("model", "input", "reply", "together"), rows,
            brief=len(rows),
        )  # fmt: skip
    ordered = sorted(result.items, key=lambda item: -item.tokens)
    yield Table(
        "The texts, the largest first.",
        ("text", "role", "tokens", "bytes", "% of window"),
        tuple((item.name, item.role, item.tokens, item.bytes, round(100 * item.share, 2)) for item in ordered),
    )
    yield Note(
        "A provider adds some tokens around each message (subword count --provider shows how many), and a model whose "
        "tokenizer is not public may count otherwise."
    )


def _roles(result: Budget) -> Chart:
    free = max(result.window - result.tokens - result.reply, 0)
    bars = [(row.role, row.tokens) for row in result.roles]
    bars += [(name, tokens) for name, tokens in (("reply", result.reply), ("free", free)) if tokens]
    points = [{"what": name, "tokens": tokens} for name, tokens in bars]

    def make(alt: Any) -> Any:
        x = alt.X("tokens:Q", title="tokens", axis=alt.Axis(format="~s", tickCount=6))
        y = alt.Y("what:N", sort=[name for name, _ in bars], title=None, axis=alt.Axis(minExtent=96))
        base = alt.Chart(alt.Data(values=points)).mark_bar(color=charts.COLOUR).encode(x=x, y=y)
        rule = alt.Chart(alt.Data(values=[{"x": result.window}])).mark_rule(color="currentColor", strokeDash=[4, 4])
        return base + rule.encode(x="x:Q")

    largest = max(result.roles, key=lambda row: row.tokens)
    told = f"{largest.role} takes the most: {largest.tokens:,} tokens, {_percent(largest.share)} of the window."
    return Chart(make, "Tokens by role", told, f"{told} The dashed line is the window.", max(28 * len(bars), 60))


def budget_page(part: Part) -> str:
    """The report as one HTML file."""
    lead = "What texts cost: tokens, share of a context window, and money."
    return page.page("Budget", lead, *sections([part]), foot=f"subword {__version__}")


def _findings(result: Budget) -> Iterator[Finding]:
    largest = max(result.items, key=lambda item: item.tokens, default=None)
    if result.left < 0 and largest is not None:
        yield Finding(
            f"The texts do not fit: {-result.left:,} tokens too many.",
            "A provider refuses such a request, or a tool drops what comes first, which mostly are the instructions.",
            f"{largest.name} has {largest.tokens:,} tokens, {_percent(largest.share)} of the window",
            "Leave files out, cut them (Tokenizer.truncate, Tokenizer.chunk), or take a model with a larger window.",
        )
    standing = [item for item in result.items if item.role in ("system", "instructions", "tools")]
    tokens = sum(item.tokens for item in standing)
    if tokens >= HEAVY * result.window:
        worst = max(standing, key=lambda item: item.tokens)
        yield Finding(
            f"{_percent(tokens / result.window)} of the window is gone before anything is said.",
            "System prompt, instruction files and tool schemas are paid for again with every request, and leave that "
            "much less for the work.",
            f"{worst.name} ({worst.role}): {worst.tokens:,} tokens",
            "Shorten the largest; load what is rarely needed only when it is; give fewer tools at a time.",
        )


def mixture_part(result: Mixture) -> Part:
    return Part("A mixture of languages", tuple(_mixture(result)))


def _mixture(result: Mixture) -> Iterator[Block]:
    facts = [("average", f"{result.average:.3f} tokens for what takes one in the language of reference")]
    if result.better is not None and result.saving is not None:
        facts.append(("with the other tokenizer", f"{result.better:.3f}"))
        facts.append(("saving", f"{_percent(result.saving)} of the tokens, and of what they cost"))
    yield Facts(tuple(facts))
    there = result.better is not None
    headings = ("language", "% of the content", "ratio", "adds", *(("other", "adds") if there else ()))
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            part.language,
            round(100 * part.share, 2),
            round(part.ratio, 4),
            round(part.share * part.ratio, 4),
            *((round(part.better, 4), round(part.share * part.better, 4)) if part.better is not None else ()),
        )
        for part in result.parts
    )
    yield Table(
        "Ratio: tokens for what takes one in the language of reference; what a language adds to the average is its "
        "share times that.",
        headings, rows, brief=len(rows),
    )  # fmt: skip


def _money(value: float | None) -> str | None:
    """A request may cost little: in a millionth of the currency."""
    return None if value is None else f"{value:,.6f}"


def _percent(share: float) -> str:
    """
    >>> _percent(0.2663), _percent(0.0004)
    ('26.6 %', '0.04 %')
    """
    return f"{100 * share:.{1 if abs(share) >= 0.01 else 2}f} %"
