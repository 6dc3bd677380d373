"""What an attacker could use, as a part of a report."""

from __future__ import annotations

from collections.abc import Iterator

from ..audits.security import Security
from .parts import Block, Facts, Finding, Part, Table
from .terminal import visible

ROWS = 100


def security_part(result: Security) -> Part:
    return Part("Security", tuple(_security(result)))


def _security(result: Security) -> Iterator[Block]:
    yield Facts((
        ("special tokens in texts", f"{len(result.spelled):,} in {result.texts:,} texts"),
        ("expressions", f"{len(result.unsafe):,} that repeat a repetition"),
        ("ids", f"{len(result.non_canonical):,} of {result.rows:,} lists are not what their text encodes to"),
        ("signs of tampering", f"{len(result.signs):,}"),
    ))  # fmt: skip
    if result.spelled:
        first = result.spelled[0]
        yield Finding(
            f"{len(result.spelled):,} special tokens are spelled in texts.",
            "Where a call allows special tokens, or another library takes them unasked, a text can end its turn and "
            "begin one of the system.",
            f"{first.token} at {first.start:,} of text {first.text}",
            'Encode such text with encode_ordinary, and only your own with allowed_special="all".',
        )
        yield Table(
            "Special tokens in texts.", ("text", "start", "end", "id", "token"),
            tuple((row.text, row.start, row.end, row.id, visible(row.token.encode())) for row in result.spelled[:ROWS]),
            brief=6,
        )  # fmt: skip
    for unsafe in result.unsafe:
        yield Finding(
            f"The split expression repeats a repetition: {unsafe.part}",
            "A backtracking engine can take exponential time on a text of a few dozen characters that does not match. "
            f"Here it {unsafe.here}.",
            f"at {unsafe.at} in {unsafe.regex[:120]}",
            "Write it without the inner or the outer repetition, or make the inner one possessive.",
        )
    if result.non_canonical:
        row = result.non_canonical[0]
        yield Finding(
            f"{len(result.non_canonical):,} lists of ids are not what their text encodes to.",
            "Other cuts of the same text go past filters that know the usual one, and models are less guarded on them.",
            f"list {row.row}, id {row.at} (byte {row.byte}): {list(row.given)} instead of {list(row.canonical)}",
            "Take text from clients, not ids; or decode and encode again.",
        )
    for sign in result.signs:
        yield Finding(
            sign.what,
            "Such a change exchanges what a model reads, with its weights untouched.",
            sign.example,
            "Compare with the publisher's file (subword diff) and its SHA-256 (subword info).",
        )
