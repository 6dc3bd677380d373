"""What a training found, as a page and in a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .._core import __version__
from ..spec import BPE
from ..tokenizer import Tokenizer
from . import charts, page
from .terminal import visible

SHOWN = 40
"""So many merges, or entries, stand in a list."""

TOLD = {"vocab_size", "merges", "asked", "stopped", "bytes", "pieces", "distinct_pieces", "curve", "learned_from",
        "sources", "weights", "pruned", "least_count"}  # fmt: skip
"""What of `Tokenizer.training` has a place of its own; the rest are the options."""


def curve_line(training: Mapping[str, Any]) -> str:
    """What the curve comes to, in a line; nothing where there is none.

    >>> rows = [{"merges": 0, "vocab_size": 256, "tokens": 900, "bytes_per_token": 1.0},
    ...         {"merges": 1000, "vocab_size": 1256, "tokens": 400, "bytes_per_token": 2.25},
    ...         {"merges": 1500, "vocab_size": 1756, "tokens": 300, "bytes_per_token": 3.0}]
    >>> curve_line({"curve": rows})
    '3.00 bytes a token (2.25 at 1,256 entries); the last 500 merges saved 25 % of the tokens'
    """
    curve = training.get("curve") or ()
    rows = [row for row in curve if row.get("bytes_per_token")]
    if not rows:
        return ""
    last = rows[-1]
    line = f"{last['bytes_per_token']:.2f} bytes a token"
    if len(rows) == 1:
        return line
    half = min(rows[:-1], key=lambda row: abs(2 * row["vocab_size"] - last["vocab_size"]))
    before = rows[-2]
    saved = 100 * (1 - last["tokens"] / before["tokens"])
    return (
        f"{line} ({half['bytes_per_token']:.2f} at {half['vocab_size']:,} entries); the last "
        f"{last['merges'] - before['merges']:,} merges saved {saved:.2g} % of the tokens"
    )


def training_page(tok: Tokenizer, name: str, run: Mapping[str, str]) -> str:
    """The report on a training: one HTML file.

    Args:
        tok: the tokenizer, as `train` gave it.
        name: what the page calls it.
        run: what `tok.training` does not know of the run, such as its files and the time that it took, to be shown.
    """
    training = tok.training or {}
    return page.page(
        f"Training of {name}",
        f"{training['vocab_size']:,} entries, {training['merges']:,} of them merges: {curve_line(training)}.",
        page.section("Text and result", page.facts(_facts(tok, training, run))),
        *_sources(training),
        page.section("Bytes per token", *_curve(training)),
        page.section("Options", page.facts(_options(tok, training))),
        *_entries(tok),
        foot=f"subword {__version__} · fingerprint {tok.fingerprint}",
    )


def _facts(tok: Tokenizer, training: Mapping[str, Any], run: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    amount = f"{training['pieces']:,} pieces"
    if training["bytes"] is not None:
        amount = f"{training['bytes']:,} bytes in {amount}"
    yield "text", amount
    learned = training["learned_from"]
    yield (
        "learned from",
        (
            f"{training['distinct_pieces']:,} distinct pieces: {page.number(learned['pieces'])} by weight, "
            f"of {page.number(learned['bytes'])} bytes"
        ),
    )
    pruned = training.get("pruned")
    if pruned:
        yield (
            "left out",
            (
                f"{pruned['distinct_pieces']:,} distinct pieces counted fewer than {pruned['min_count']:,} times, "
                f"{page.number(pruned['pieces'])} in all"
            ),
        )
        yield (
            "certain",
            (
                f"the first {pruned['certain_merges']:,} of {training['merges']:,} merges are proved to be those that "
                "all pieces give"
            ),
        )
    yield "ended", f"{training['stopped']} ({training['asked']:,} entries were asked for)"
    if training["least_count"] is not None:
        yield "last merge", f"its pair was counted {page.number(training['least_count'])} times"
    yield from run.items()


def _sources(training: Mapping[str, Any]) -> Iterator[str]:
    sources = training.get("sources")
    if sources:
        weights = training.get("weights", {})
        rows = [
            (name or "(no name)", row["bytes"], row["pieces"], weights.get(name, "1")) for name, row in sources.items()
        ]
        yield page.section(
            "Sources", page.table("What was counted, and its weight.", ("source", "bytes", "pieces", "weight"), rows)
        )


def _curve(training: Mapping[str, Any]) -> Iterator[str]:
    curve = training["curve"]
    points = [
        {"x": row["vocab_size"], "y": row["bytes_per_token"]} for row in curve if row["bytes_per_token"] is not None
    ]

    def make(alt: Any) -> Any:
        x = alt.X("x:Q", title="vocabulary size", axis=alt.Axis(format="~s", tickCount=8))
        y = alt.Y("y:Q", title="bytes per token", axis=alt.Axis(tickCount=6))
        dots = alt.OverlayMarkDef(color=charts.COLOUR, size=22)
        line = alt.Chart(alt.Data(values=points)).mark_line(color=charts.COLOUR, strokeWidth=2, point=dots)
        return line.encode(x=x, y=y)

    yield page.paragraph(
        "How many bytes of the training text a token stands for, on average, as the vocabulary grows. The counts are "
        "exact; other text may take more tokens."
    )
    chart = charts.draw(make, "Bytes per token by vocabulary size", f"A rising curve: {curve_line(training)}.")
    yield (
        page.paragraph(charts.MISSING)
        if chart is None
        else page.figure(chart, "Where the curve gets flat, more entries save little.")
    )
    headings = ("merges", "vocabulary", "tokens", "bytes per token", "last pair counted")
    columns = ("merges", "vocab_size", "tokens", "bytes_per_token", "count")
    caption = "The training text after each thousand merges, and at the end."
    yield page.table(caption, headings, ([row[name] for name in columns] for row in curve))


def _options(tok: Tokenizer, training: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in training.items():
        if name not in TOLD:
            yield name.replace("_", " "), str(value)
    stages = tok.spec.outline()["stages"]
    yield "stages", " → ".join(str(row["stage"]) for row in stages)
    named = [visible(token.encode("utf-8", "surrogatepass")) for token in tok.special_tokens]
    more = f" … and {len(named) - SHOWN:,} more" if len(named) > SHOWN else ""
    yield "special tokens", "  ".join(named[:SHOWN]) + more


def _entries(tok: Tokenizer) -> Iterator[str]:
    model = tok.spec.model
    ids = model.vocab.ids.tolist()
    learned = len(model.merges) if isinstance(model, BPE) else int((tok.training or {}).get("merges", 0))
    merged = [tok.token_bytes(id) for id in ids[len(ids) - learned :]]
    if merged:
        longest = sorted(merged, key=len, reverse=True)[:SHOWN]
        yield page.section("First merges", page.tokens(map(visible, merged[:SHOWN])))
        yield page.section("Last merges", page.tokens(map(visible, merged[-SHOWN:])))
        yield page.section("Longest entries", page.tokens(map(_short, longest)))


def _short(data: bytes) -> str:
    shown = visible(data)
    return shown if len(shown) <= 64 else f"{shown[:60]}… ({len(data):,} bytes)"
