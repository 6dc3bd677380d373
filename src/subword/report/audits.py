"""What audits found, as parts of a report: one function an audit."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from .._core import __version__
from ..audits import Efficiency, Fairness, Language, Letters, Numbers
from ..tokenizer import Tokenizer
from . import charts, page
from .parts import Block, Cell, Chart, Facts, Finding, Note, Part, Pieces, Table, joined, sections

DEAR = 4.0
"""A premium that is a finding: the language has a quarter of the window."""
COSTLY = 0.01
"""A word whose splits cost a hundredth of all tokens is a finding,"""
MANY = 10_000
"""if there are so many: in a short text any word is frequent."""
LONGEST = 32
"""So many characters of a word stand in a table."""
DECOMPOSED = 0.9
"""Composing a text saves at least a tenth of its tokens: a finding about the text."""


def plain(value: Any) -> Any:
    """What an audit found, as what JSON can hold. Tokens are text; a byte that is no text is written `\\xe4`."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value


def audit_page(tok: Tokenizer, name: str, parts: Sequence[Part]) -> str:
    """The report as one HTML file."""
    special = len(tok.special_tokens)
    size = f"{len(tok.vocab):,} entries, {special:,} special token{'' if special == 1 else 's'}"
    lead = f"What it costs, whom, and how it cuts text: {size}."
    foot = f"subword {__version__} · fingerprint {tok.fingerprint}"
    return page.page(f"Audit of {name}", lead, *sections(parts), foot=foot)


# ======================== efficiency ========================


def efficiency_part(results: Sequence[Efficiency]) -> Part:
    """One text, or several beside each other."""
    rows: list[tuple[str, list[float | int]]] = [
        ("bytes", [each.bytes for each in results]),
        ("characters", [each.characters for each in results]),
        ("words", [each.words for each in results]),
        ("tokens", [each.tokens for each in results]),
        ("bytes per token", [each.bytes_per_token.mean for each in results]),
        ("deviation of bytes", [each.bytes_per_token.deviation for each in results]),
        ("characters per token", [each.characters_per_token.mean for each in results]),
        ("deviation of characters", [each.characters_per_token.deviation for each in results]),
        ("words per token", [each.words_per_token for each in results]),
        ("fertility (tokens per word)", [each.fertility for each in results]),
        ("words that are one token, %", [100 * each.one_token_words for each in results]),
        ("distinct words that are, %", [100 * each.one_token_distinct for each in results]),
        ("entropy, bits per token", [each.entropy for each in results]),
        (f"Rényi efficiency, α = {results[0].alpha:g}", [each.renyi_efficiency for each in results]),
        ("Rényi, of the entries used", [each.renyi_efficiency_used for each in results]),
        ("entries used", [each.used for each in results]),
        ("entries used, %", [100 * each.used / each.vocabulary for each in results]),
    ]
    headings = ("", *(each.source for each in results))
    return Part("Efficiency", (
        Table("What a token holds.", headings, tuple((name, *cells) for name, cells in rows), brief=len(rows)),
        Note(
            "A word stands between white space, without the marks at its ends: where a language puts no spaces, "
            "figures of words mean nothing. It counts as one token if it is, with a space before it or without."
        ),
        *(_lengths(each) for each in results),
        *(Pieces(f"How {each.source} starts, token by token.", each.sample) for each in results),
        *(finding for each in results for finding in _costly(each)),
        *(_wasteful(each) for each in results if each.wasteful),
    ))  # fmt: skip


def _costly(result: Efficiency) -> Iterator[Finding]:
    costly = [split for split in result.wasteful if split.extra >= COSTLY * result.tokens]
    if costly and result.tokens >= MANY:
        first, lost = costly[0], sum(split.extra for split in costly)
        words = f"{len(costly)} words are cut so often that this takes" if len(costly) > 1 else "One word's cuts take"
        yield Finding(
            f"{words} {100 * lost / result.tokens:.1f} % of the tokens of {result.source}.",
            "A word as frequent as this is one token in a vocabulary learned from such text: here its entry is "
            "missing or cannot be reached, or the vocabulary was learned from other text.",
            f"{_short(first.word)}, {first.count:,} times {_short(joined(first.pieces))}",
            "Look for the entry (subword audit tokens); or train on text like this, or extend the vocabulary.",
        )


def _wasteful(result: Efficiency) -> Table:
    rows = tuple(
        (_short(split.word), split.count, _short(joined(split.pieces)), split.extra) for split in result.wasteful
    )
    caption = f"The words of {result.source} whose splits cost the most."
    return Table(caption, ("word", "times", "cut", "tokens lost"), rows, brief=5)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _lengths(result: Efficiency) -> Chart:
    most = 16
    shares = [100 * count / result.tokens for count in result.lengths]
    bars = [*shares[: most + 1], *[0.0] * (most + 1 - len(shares))]
    points = [{"x": str(at), "y": share, "at": at} for at, share in enumerate(bars)]
    points.append({"x": f">{most}", "y": sum(shares[most + 1 :]), "at": most + 1})

    def make(alt: Any) -> Any:
        x = alt.X("x:N", sort=alt.EncodingSortField("at"), title="bytes in a token", axis=alt.Axis(labelAngle=0))
        y = alt.Y("y:Q", title="% of the tokens", axis=alt.Axis(tickCount=5))
        return alt.Chart(alt.Data(values=points[1:])).mark_bar(color=charts.COLOUR).encode(x=x, y=y)

    told = f"The mean is {result.bytes_per_token.mean:.2f} bytes, the median {result.bytes_per_token.p50:g}."
    return Chart(make, f"Length of the tokens of {result.source}", told, f"{result.source}: {told}", height=200)


# ======================== fairness ========================


def fairness_part(result: Fairness) -> Part:
    return Part("Fairness across languages", tuple(_fairness(result)))


def _fairness(result: Fairness) -> Iterator[Block]:
    measured = [row for row in result.languages if row.premium is not None]
    best = [row for row in measured if row.language != result.reference]
    if result.note:
        yield Note(result.note)
    facts = [
        ("texts", f"{len(result.languages):,} languages from {result.source} ({result.layout})"),
        ("compared with", result.reference),
        ("median premium", f"{result.median_premium:.2f}"),
        ("Gini", f"{result.gini:.3f} (0: all languages pay alike)"),
    ]
    if best:
        facts.insert(2, ("premiums", f"{_told(best[0])} to {_told(best[-1])}"))
    yield Facts(tuple(facts))
    yield from _findings(result, measured)
    yield _by_script(measured)
    money = () if result.price is None else ("cost",)
    headings = ("language", "code", "tokens", "premium", "of bytes", "per char.", "window", *money)
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            row.name or "", row.language, row.tokens, _rounded(row.premium), _rounded(row.byte_premium),
            _rounded(row.tokens_per_character), row.window_words, *([_rounded(row.cost)] if money else []),
        )
        for row in result.languages
    )  # fmt: skip
    told = (
        f"The same content in each language. Premium: tokens, and bytes, relative to {result.reference}. Per char.: "
        f"tokens a character. Window: how much content {result.window:,} tokens hold, in words of {result.reference}."
    )
    if money:
        told += f" Cost: of what takes a million of those words, at {result.price:g} a million tokens."
    if not any(row.name for row in result.languages):
        headings, rows = headings[1:], tuple(row[1:] for row in rows)
    yield Table(told, headings, rows)


def _findings(result: Fairness, measured: Sequence[Language]) -> Iterator[Finding]:
    dear = [row for row in measured if row.premium is not None and row.premium >= DEAR]
    if dear:
        worst = dear[-1]
        yield Finding(
            f"{len(dear)} of {len(measured)} languages take at least {DEAR:g} times the tokens of {result.reference}.",
            "Whoever writes in them pays as many times as much for the same content, waits longer, and has as much "
            "less of the context window.",
            f"{_told(worst)}: {worst.bytes_per_token:.2f} bytes a token; a window of {result.window:,} tokens holds "
            f"{worst.window_words:,} words of content.",
            "Train with more text in these languages, or weigh it higher; extend the vocabulary; or choose another "
            "tokenizer for them.",
        )
    for row in result.languages:
        if row.tokens_nfc < DECOMPOSED * row.tokens:
            yield Finding(
                f"The text in {_label(row)} is decomposed: {row.tokens:,} tokens, composed {row.tokens_nfc:,}.",
                "Letters and their marks are separate characters in it, which text of this language mostly is not: "
                "the premium says more of this file than of the language.",
                f"the premium would be {row.tokens_nfc / row.tokens * (row.premium or 0):.2f} instead of "
                f"{row.premium or 0:.2f}",
                "Put the file into NFC and measure again; put what users write into NFC before it is encoded.",
            )
    unknown = [row for row in result.languages if row.premium is None]
    if unknown:
        yield Finding(
            f"{len(unknown)} languages have no premium: more than a tenth of their characters is unknown.",
            "What is unknown is lost; few tokens for it would look like a low cost.",
            f"{_label(unknown[0])}: {100 * unknown[0].unknown:.0f} % unknown",
            "Use a tokenizer over bytes, or with byte fallback.",
        )


def _by_script(rows: Sequence[Language]) -> Chart:
    scripts: dict[str, list[float]] = {}
    for row in rows:
        scripts.setdefault(row.script, []).append(row.premium or 0.0)
    order = sorted(scripts, key=lambda script: statistics.median(scripts[script]))
    points = [{"script": row.script, "premium": row.premium} for row in rows]

    def make(alt: Any) -> Any:
        x = alt.X("premium:Q", title="premium", scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=8))
        y = alt.Y("script:N", sort=order, title=None, axis=alt.Axis(minExtent=96))
        base = alt.Chart(alt.Data(values=points))
        rule = alt.Chart(alt.Data(values=[{"x": 1}])).mark_rule(color="currentColor", opacity=0.5, strokeDash=[4, 4])
        return rule.encode(x="x:Q") + base.mark_circle(color=charts.COLOUR, size=70, opacity=0.75).encode(x=x, y=y)

    top = order[-1]
    low, high = statistics.median(scripts[order[0]]), statistics.median(scripts[top])
    told = f"{len(order)} scripts; the median premium is {low:.2f} in {order[0]} and {high:.2f} in {top}."
    caption = "Each dot is a language; the dashed line is parity, as many tokens as the language compared with."
    return Chart(make, "Premium by script", told, caption, height=max(24 * len(order), 80))


def _label(row: Language) -> str:
    return f"{row.name} ({row.language})" if row.name else row.language


def _told(row: Language) -> str:
    return f"{row.premium or 0:.2f} {_label(row)}"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


# ======================== numbers ========================


def numbers_part(result: Numbers) -> Part:
    return Part("Numbers", tuple(_numbers(result)))


def _numbers(result: Numbers) -> Iterator[Block]:
    short = (f"{count:,} of {10**digits:,}" for digits, count in enumerate(result.digit_pieces[:4], 1) if count)
    longer = sum(result.digit_pieces[4:])
    pieces = ", ".join(short) + (f" and {longer:,} of more than 4 digits" if longer else "")
    yield Facts((
        ("scheme", f"{result.scheme}: {result.meaning}"),
        ("n and n + 1 cut alike", f"{100 * result.consistency:.1f} % of 0 to 9999"),
        ("one token", f"{result.one_token:,} of 0 to 9999"),
        ("cuts between thousands", f"{100 * result.alignment:.0f} % (a third would be chance)"),
        ("entries of digits", pieces or "none"),
    ))  # fmt: skip
    if result.broken:
        yield Finding(
            f"Numbers next to each other are cut differently: {100 * (1 - result.consistency):.1f} % of 0 to 9999.",
            "The same digit is now a token, now a part of one, so that what a model learns of one number does not "
            "carry over to the next.",
            f"{result.broken[0]} and {result.broken[0] + 1}",
            "Cut numbers by themselves when training: single digits, or groups of three from the right.",
        )
    rows = tuple(
        (kind.name, joined(kind.pieces), round(kind.tokens, 2), kind.shapes, round(100 * kind.alike, 1))
        for kind in result.kinds
    )
    caption = "Ways to write numbers: the tokens they take, and into how many shapes those of one length are cut."
    yield Table(caption, ("written", "cut", "tokens", "shapes", "% in the commonest"), rows, brief=len(rows))
    sums = tuple((joined(left), joined(right), joined(total)) for left, right, total in result.sums)
    yield Table("Sums: do the pieces of both numbers and of the sum stand over each other?", ("", "+", "="), sums)


# ======================== letters ========================


def _letters_lost(result: Letters) -> Iterator[Finding]:
    lost = [word for word in result.words if sum(word.held) != word.word.lower().count(word.letter.lower())]
    if lost:
        first = lost[0]
        there = first.word.lower().count(first.letter.lower())
        yield Finding(
            f"The tokens of {len(lost)} of {len(result.words)} words do not hold the letters that the words do.",
            "A stage rewrites the word, or a part of it has no token: the model cannot know how it is spelled.",
            f"{first.word} has {first.letter} {there} times, {joined(first.pieces)} {sum(first.held)} times",
            "Look at the stages (subword info), and at what is unknown (subword audit efficiency).",
        )


def letters_part(result: Letters) -> Part:
    words = tuple(
        (word.word, joined(word.pieces), f"{word.letter}: {' + '.join(map(str, word.held))} = {sum(word.held)}",
         joined(word.reversed))
        for word in result.words
    )  # fmt: skip
    rhymes = tuple(
        ("  ".join(map(joined, rhyme.pieces)), f"{rhyme.alike} of {len(rhyme.words)}") for rhyme in result.rhymes
    )
    return Part("Letters", (
        *_letters_lost(result),
        Facts((
            ("pieces that survive reversal", f"{100 * result.reversible:.0f} %"),
            ("rhymes with the same last piece", f"{100 * result.rhyming:.0f} %"),
        )),
        Table(
            "A model sees the ids of these pieces, not their letters; backwards, a word is made of quite other ones.",
            ("word", "pieces", "letters", "backwards"), words, brief=len(words),
        ),
        Table("Words that rhyme, and how many of them end in the same piece.", ("rhyme", "alike"), rhymes),
    ))  # fmt: skip
