"""What a vocabulary is made of, as a part of a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..audits.vocabulary import KINDS, MANY, Overlap, Share, Trace, Vocabulary
from . import charts
from .parts import Block, Cell, Chart, Facts, Finding, Note, Part, Pieces, Table, joined
from .terminal import visible

ALIKE = 2 / 3
"""So large a share of entries that differ from another one in little is a finding."""
LONGEST = 24
TOLD = 0.3
"""A language of whose own words this share has entries was there when the vocabulary was learned."""


def vocabulary_part(result: Vocabulary) -> Part:
    return Part("Vocabulary", tuple(_vocabulary(result)))


def _vocabulary(result: Vocabulary) -> Iterator[Block]:
    there = [row.name.split(" (")[0] for row in result.languages if row.share >= TOLD]
    texts = [row.name for row in result.texts if row.share > 0.5]
    twins = (
        f"{result.twins:,} ({100 * result.twins / max(result.entries, 1):.0f} %); by spaces alone "
        f"{result.twins_by_space:,}, by capitals alone {result.twins_by_case:,}"
    )
    yield Facts((
        ("entries", f"{result.entries:,}, {result.mean_bytes:.2f} bytes on average"),
        ("that differ in little", twins),
        ("learned from, by its words", ", ".join(there) or "none of the languages tried"),
        ("kinds of text", ", ".join(texts) or "none of those tried"),
    ))  # fmt: skip
    yield from _findings(result)
    yield _scripts(result)
    headings = ("entries", "% of all", "the longest")
    yield Table(
        "By script. “none”: entries without letters; “mixed”: with letters of several scripts.",
        ("script", *headings), _shares(result.scripts, result.entries), brief=6,
    )  # fmt: skip
    rows = _shares(result.kinds, result.entries)
    yield Table(
        "By kind.",
        ("kind", *headings, "what it is"),
        tuple((*row, KINDS[str(row[0])]) for row in rows),
        brief=len(rows),
    )
    yield _lengths(result)
    if result.longest_words:
        yield Pieces("The longest words.", result.longest_words)
    if result.largest_twins:
        yield Table(
            "Entries that differ only in capitals and spaces, the largest groups.", ("entries", "alike"),
            tuple((joined(group.entries), len(group.entries)) for group in result.largest_twins), brief=4,
        )  # fmt: skip
    yield Note(
        "A vocabulary shows what it was learned from: common words of that text have entries of their own. Tried are "
        "words of the built-in passage that only one of its languages has, and typical words of other kinds of text."
    )
    yield Table("Languages by their words.", ("language", "words tried", "entries", "%", "examples"),
                _traces(result.languages), brief=8)  # fmt: skip
    yield Table("Other kinds of text.", ("kind", "words tried", "entries", "%", "examples"),
                _traces(result.texts), brief=len(result.texts))  # fmt: skip
    if result.overlap is not None:
        yield from _overlap(result.overlap)


def _findings(result: Vocabulary) -> Iterator[Finding]:
    if result.by_heart:
        many = len(result.by_heart)
        yield Finding(
            f"{many} {'entry is a stretch' if many == 1 else 'entries are stretches'} of more than {MANY} characters.",
            "Such a stretch stood in the training text again and again, word for word: boilerplate or copies, which "
            "took entries from words; and a model that was trained on other text never learned what they mean.",
            _clipped(result.by_heart[0], 3 * LONGEST),
            "Remove copies from the training text; bound entries when training (train(max_token_bytes=…)); take them "
            "out of a vocabulary that is there with subword prune.",
        )
    if result.entries and result.twins / result.entries >= ALIKE:
        yield Finding(
            f"{100 * result.twins / result.entries:.0f} % of the entries have a twin: the same word but for capitals "
            "or a space.",
            "Each of them is a row of its own that the model has to learn by itself, and room that no other word has.",
            joined(result.largest_twins[0].entries[:8]) if result.largest_twins else "",
            "Train on more varied text, so that more words come in; a tokenizer that marks spaces and capitals by "
            "themselves has no twins.",
        )


def _clipped(piece: bytes, most: int = LONGEST) -> str:
    shown = visible(piece)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def _shares(shares: Sequence[Share], entries: int) -> tuple[tuple[Cell, ...], ...]:
    return tuple(
        (row.name, row.entries, round(100 * row.entries / entries, 2), _clipped(row.example)) for row in shares
    )


def _traces(traces: Sequence[Trace]) -> tuple[tuple[Cell, ...], ...]:
    return tuple(
        (row.name, row.tried, row.entries, round(100 * row.share, 1), "  ".join(map(visible, row.examples[:3])))
        for row in traces
    )


def _scripts(result: Vocabulary) -> Chart:
    rows = [row for row in result.scripts if row.share >= 0.002][:14]
    points = [{"script": row.name, "share": 100 * row.share} for row in rows]

    def make(alt: Any) -> Any:
        x = alt.X("share:Q", title="% of the entries", axis=alt.Axis(tickCount=6))
        y = alt.Y("script:N", sort=[row.name for row in rows], title=None, axis=alt.Axis(minExtent=140))
        return alt.Chart(alt.Data(values=points)).mark_bar(color=charts.COLOUR).encode(x=x, y=y)

    told = f"{rows[0].name} has {100 * rows[0].share:.0f} %" if rows else "no entries"
    return Chart(
        make, "Entries by script", told, "Scripts with at least 0.2 % of the entries.", max(24 * len(rows), 60)
    )


def _lengths(result: Vocabulary) -> Chart:
    most = 20
    counts = [*result.byte_lengths[: most + 1], *[0] * (most + 1 - len(result.byte_lengths))]
    points = [{"x": str(at), "y": count, "at": at} for at, count in enumerate(counts)][1:]
    points.append({"x": f">{most}", "y": sum(result.byte_lengths[most + 1 :]), "at": most + 1})

    def make(alt: Any) -> Any:
        x = alt.X("x:N", sort=alt.EncodingSortField("at"), title="bytes in an entry", axis=alt.Axis(labelAngle=0))
        y = alt.Y("y:Q", title="entries", axis=alt.Axis(format="~s", tickCount=5))
        return alt.Chart(alt.Data(values=points)).mark_bar(color=charts.COLOUR).encode(x=x, y=y)

    told = f"The mean is {result.mean_bytes:.2f} bytes."
    return Chart(make, "Lengths of the entries", told, f"How many entries have so many bytes. {told}", height=200)


def _overlap(found: Overlap) -> Iterator[Block]:
    yield Facts((
        (f"shared with {found.other}", f"{found.shared:,} of its {found.entries:,} entries"),
        ("of this one's entries", f"{100 * found.of_this:.1f} %"),
        ("of the other's", f"{100 * found.of_other:.1f} %"),
        ("Jaccard", f"{found.jaccard:.3f} (shared, of all that either has)"),
    ))  # fmt: skip
    if found.only_this:
        yield Pieces(f"Entries that {found.other} lacks, the first by their ids.", found.only_this)
    if found.only_other:
        yield Pieces(f"Entries that only {found.other} has.", found.only_other)
