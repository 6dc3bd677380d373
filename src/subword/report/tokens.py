"""Broken and risky tokens, as a part of a report."""

from __future__ import annotations

from collections.abc import Iterator

from ..audits.tokens import Tokens
from ..audits.untrained import Untrained
from .parts import Block, Facts, Finding, Note, Part, Table, joined
from .terminal import visible

UNUSED = 0.5
"""A share of entries that a text of `LARGE` tokens does not use, and that is a finding."""
LARGE = 10_000_000
ROWS = 200

ADVICE = {
    "model": "Look at the merges (or scores): others take its parts first. Remove it (subword prune), or repair them.",
    "an added token": "Remove one of the two: the added token, or the entry that it hides.",
}
CHANGE = "Change that stage, or train with it in place; or remove the entry (subword prune)."


def tokens_part(result: Tokens, table: Untrained | None = None) -> Part:
    return Part("Broken and risky tokens", (*_tokens(result), *([] if table is None else _untrained(table))))


def _tokens(result: Tokens) -> Iterator[Block]:
    yield Facts((
        ("entries", f"{result.entries:,}" + (f"; {result.holes:,} ids without a token" if result.holes else "")),
        ("unreachable", f"{result.unreachable:,}" + f", {result.reserved:,} look reserved" * bool(result.reserved)),
        ("parts of characters", f"{result.partial:,} entries of several bytes"),
        ("bytes no text has", f"{result.never_valid:,} entries"),
        ("special tokens", f"{len(result.spelled):,} that a text spells, where a call allows them"),
        ("improbable pairs", _pairs(result)),
    ))  # fmt: skip
    for stage, count in result.stages.items():
        row = next(row for row in result.blocked if row.stage == stage and not row.reserved)
        what = "entry" if count == 1 else "entries"
        yield Finding(
            f"{count:,} {what} no text gives, because of: {stage}.",
            "A model never sees such a token in training, so its embedding is noise; the row is paid for all the same, "
            "and whoever puts the id into a prompt gets a model that behaves at random.",
            f"{visible(row.token)} ({row.id}) is encoded as {joined(row.instead)}",
            ADVICE.get(stage, CHANGE),
        )
    if result.taken:
        yield Finding(
            f"{len(result.taken):,} added tokens look like control tokens, and any text that spells them gives them.",
            "Text of a user can then end a turn, or begin one of the system.",
            ", ".join(result.taken[:5]),
            "Declare them special, so that a call must allow them.",
        )
    if result.twice:
        yield Finding(
            f"{len(result.twice):,} special or added tokens are entries of the model, too, under other ids.",
            "The same text has two ids; which one comes depends on what a call allows.",
            ", ".join(map(repr, result.twice[:5])),
            "Remove the entries from the model.",
        )
    if result.use is not None:
        use = result.use
        yield Facts((("unused on the text", f"{use.unused:,} entries, {use.unused_share:.1%}"),))
        if use.unused_share > UNUSED and use.tokens >= LARGE:
            yield Finding(
                f"{use.unused_share:.0%} of the entries are no token of {use.tokens:,}.",
                "Rows of the model's tables that your text does not use are paid for and not trained on it.",
                joined(use.unused_examples[:5]),
                "Cut the vocabulary to what is used (subword prune), or train one on your text.",
            )
        if use.inner:
            yield Table(
                "Entries that live inside longer ones: hardly ever a token, often a step on the way to one.",
                ("id", "token", "as a token", "inside others"),
                tuple((row.id, visible(row.token), row.count, row.inside) for row in use.inner[:ROWS]), brief=6,
            )  # fmt: skip
    if result.lost is not None and result.lost.entries:
        lost = result.lost
        yield Finding(
            f"{lost.entries:,} entries are in the tokenizer's text {lost.least:,} times or more, never in the model's.",
            f"They are {lost.share:.2%} of its tokens, and the model has no idea what they mean.",
            joined(row.token for row in lost.examples[:8]),
            "Train both on the same text, or remove these entries (subword prune).",
        )
    if result.blocked:
        yield Table(
            "Entries that no text gives.", ("id", "token", "blocked by", "encoded as"),
            tuple((row.id, visible(row.token), row.stage, joined(row.instead[:8])) for row in result.blocked[:ROWS]),
            brief=6,
        )  # fmt: skip


def _pairs(result: Tokens) -> str:
    pairs = result.pairs
    if not pairs.pairs:
        return "none"
    example = f", such as {joined(pairs.examples[0])}" if pairs.examples else ""
    return (
        f"{pairs.pairs:,} pairs of parts of characters are text together; {pairs.kept:,} of {pairs.tried:,} encode "
        f"to themselves{example}"
    )


def _untrained(table: Untrained) -> Iterator[Block]:
    shown = [("embeddings", f"{table.rows:,} × {table.width:,}; {table.known:,} rows known to be unused")]
    if table.known_norm is not None:
        shown.append(("norms", f"median {table.median_norm:.3g}, of the known rows {table.known_norm:.3g}"))
    if table.known_distance is not None:
        words = (
            f"median {table.median_distance:.3g} from the known rows, of these themselves {table.known_distance:.3g}"
        )
        shown.append(("cosine distance", words))
    yield Facts(tuple(shown))
    if table.by == "nothing":
        yield Note("The known rows look like all others, or are too few: the table does not say what is under-trained.")
    if table.suspects:
        first = table.suspects[0]
        verified = [row for row in table.suspects if row.verdict in ("verified", "weakly verified")]
        tried = sum(row.verdict is not None for row in table.suspects)
        which = "of them" if tried == len(table.suspects) else f"of the likeliest {tried:,}"
        asked = f" The model could not repeat {len(verified):,} {which}." if tried else ""
        yield Finding(
            f"{len(table.suspects):,} entries look under-trained by {table.by}.{asked}",
            "Their rows are where those of tokens are that the model has never seen: on these it behaves oddly.",
            f"{visible(first.token)} ({first.id})",
            "Keep them out of prompts, train on text that has them, or remove them (subword prune).",
        )
        yield Table(
            f"Suspects, the likeliest first. Limit: {table.by} ≤ {table.limit:.3g}.",
            ("id", "token", "norm", "distance", "repeated"),
            tuple((row.id, visible(row.token), round(row.norm, 3),
                   None if row.distance is None else round(row.distance, 4), row.verdict)
                  for row in table.suspects[:ROWS]), brief=8,
        )  # fmt: skip
