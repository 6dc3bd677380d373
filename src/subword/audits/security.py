"""What an attacker could use: special tokens in text that is not trusted, expressions that take exponential time in
other engines, ids that no text gives, and signs that somebody has changed a tokenizer by hand.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..arguments import list_of
from ..byte_alphabet import GPT2_BYTE_ORDER
from ..patterns import PATTERNS
from ..spec import BPE, Replace, Split, SplitRegex
from ..tokenizer import Text, Tokenizer
from .published import BLOCK, changed

MOST_MOVED = 0.01
"""A few merges out of order are a sign; many are how the file was made."""

MOST_RANKS = 0.002
"""The same of ranks: Llama 3's file has 0.5 %, as its last entries were learned elsewhere."""

MOST_BYTES = 8
"""The same of the 256 bytes."""

FAMILIAR = re.compile(r"[\s▁_`'\"´’“”\u00a0.,;:!?~-]*")
"""What normalizers replace in healthy tokenizers: spaces and marks."""


@dataclass(frozen=True, slots=True)
class Spelled:
    """A special token in a text."""

    text: int
    """Which text, from 0."""
    start: int
    """In characters (in bytes for bytes)."""
    end: int
    id: int
    token: str


@dataclass(frozen=True, slots=True)
class Unsafe:
    """An expression that a backtracking engine can take exponential time for."""

    regex: str
    at: int
    """Where the part is that repeats what repeats."""
    part: str
    here: str
    """What it does in subword."""


@dataclass(frozen=True, slots=True)
class NonCanonical:
    """Ids that are not what their text encodes to."""

    row: int
    """Which list of ids, from 0."""
    at: int
    """The first id that differs."""
    byte: int
    """Where its token starts, in the bytes of the text."""
    given: tuple[int, ...]
    """Up to five ids from there on."""
    canonical: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Sign:
    """A sign of tampering."""

    what: str
    example: str


@dataclass(frozen=True, slots=True)
class Security:
    """What could be used against a model."""

    texts: int
    spelled: tuple[Spelled, ...]
    unsafe: tuple[Unsafe, ...]
    rows: int
    """Lists of ids that were looked at."""
    non_canonical: tuple[NonCanonical, ...]
    signs: tuple[Sign, ...]


def security(tok: Tokenizer, texts: Iterable[Text] = (), ids: Iterable[Sequence[int]] = ()) -> Security:
    """Look for what an attacker could use.

    Args:
        texts: that are not trusted.
        ids: lists of ids from elsewhere, such as a client's; each must be what its text encodes to.
    """
    held, rows = list_of("texts", texts), list_of("ids", ids)
    names = {id: content for content, id in tok.special_tokens.items()}
    spelled = tuple(
        Spelled(at, start, end, id, names.get(id, ""))
        for at, text in enumerate(held)
        for start, end, id in tok.find_special(text)
    )
    found = (non_canonical(tok, row, at) for at, row in enumerate(rows))
    return Security(
        len(held), spelled, tuple(_unsafe(tok)), len(rows), tuple(each for each in found if each), tuple(_signs(tok))
    )


def non_canonical(tok: Tokenizer, ids: Sequence[int], row: int = 0) -> NonCanonical | None:
    """Where ids first differ from what their text encodes to, or None. Special tokens in them are taken as such."""
    given = list(ids)
    canonical = tok.encode(tok.decode_bytes(given), allowed_special="all")
    at = next((at for at, (a, b) in enumerate(zip(given, canonical, strict=False)) if a != b), None)
    if at is None:
        if len(given) == len(canonical):
            return None
        at = min(len(given), len(canonical))
    start = len(tok.decode_bytes(given[:at]))
    return NonCanonical(row, at, start, tuple(given[at : at + 5]), tuple(canonical[at : at + 5]))


# ======================== expressions ========================


def _unsafe(tok: Tokenizer) -> Iterator[Unsafe]:
    for stage in tok.spec.stages:
        if isinstance(stage, SplitRegex):
            regexes: tuple[str, ...] = (stage.regex,)
            here = "a budget of steps stops it with an error" if stage.allow_backtracking else "takes linear time"
        elif isinstance(stage, Split):
            regex, here = PATTERNS[stage.pattern].regex, "takes linear time"
            regexes = (regex,) if isinstance(regex, str) else tuple(regex)
        else:
            continue
        for each in regexes:
            for at, part in nested_quantifiers(each):
                yield Unsafe(each, at, part, here)


_ATOM = re.compile(
    r"\\[pP]\{[^}]*\}|\\x\{[^}]*\}|\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\.|\[\^?\]?(?:\\.|\[:[^\]]*:\]|[^\\\]])*\]|.",
    re.DOTALL,
)
_QUANTIFIER = re.compile(r"(?:[*+?]|\{(\d*)(,?)(\d*)\})([?+]?)")
_OPEN = re.compile(r"\((?:\?(?:[:=!>|]|<[=!]|<\w+>|P<\w+>|[a-zA-Z-]*:|[a-zA-Z-]+(?=\))))?")


def nested_quantifiers(regex: str) -> list[tuple[int, str]]:
    """Groups that repeat without a limit what is, or can be, nothing but a repetition without one: `(a+)+`, `(a*b?)*`.
    A text that fails to match behind them can be cut in exponentially many ways. Possessive and atomic ones cannot.

    >>> nested_quantifiers(r"x(?:a+)+y"), nested_quantifiers(r"(?:a+b)+|(?>a+)+|(?:a|b)*")
    ([(1, '(?:a+)+')], [])
    """
    found: list[tuple[int, str]] = []
    # A group that is open: where, whether atomic, and of the alternative so far, whether it has a repetition, whether
    # all else is optional; and whether an alternative before it was nothing but a repetition.
    stack: list[list[object]] = [[0, False, False, True, False]]
    at = 0
    while at < len(regex):
        if opened := _OPEN.match(regex, at) if regex[at] == "(" else None:
            stack.append([at, opened.group().endswith("?>"), False, True, False])
            at = opened.end()
            continue
        start, closed = at, None
        if regex[at] == "|":
            top = stack[-1]
            stack[-1] = [top[0], top[1], False, True, bool(top[4] or (top[2] and top[3]))]
            at += 1
            continue
        if regex[at] == ")" and len(stack) > 1:
            closed = stack.pop()
            start, at = int(str(closed[0])), at + 1
        elif atom := _ATOM.match(regex, at):
            at = atom.end()
        quantifier = _QUANTIFIER.match(regex, at)
        endless, optional, possessive = False, False, False
        if quantifier:
            sign, least, comma, most, after = quantifier.group()[0], *quantifier.groups()
            endless = sign in "*+" or (bool(comma) and not most)
            optional = sign in "*?" or (sign == "{" and least in ("", "0"))
            possessive = after == "+"
            at = quantifier.end()
        repeats = bool(closed and not closed[1] and (closed[4] or (closed[2] and closed[3])))
        if endless and not possessive and repeats:
            found.append((start, regex[start:at]))
        top = stack[-1]
        if (endless and not possessive) or repeats:
            top[2] = True
        elif not optional and not (closed and regex[start : start + 3] in ("(?=", "(?!", "(?<")):
            top[3] = False
    return found


# ======================== signs ========================


def _signs(tok: Tokenizer) -> Iterator[Sign]:
    yield from _moved(tok)
    pieces = dict(tok.spec.model.vocab.items())
    copy = changed(pieces.items())
    if copy is not None:
        ids = ", ".join(f"{at * BLOCK:,}–{(at + 1) * BLOCK - 1:,}" for at in copy.blocks[:8])
        yield Sign(
            f"The vocabulary is that of {copy.name}, but for entries in {len(copy.blocks):,} stretches of ids.",
            f"ids {ids}{' …' if len(copy.blocks) > 8 else ''}",
        )
    for stage in tok.spec.stages:
        if isinstance(stage, Replace) and not (FAMILIAR.fullmatch(stage.old) and FAMILIAR.fullmatch(stage.new)):
            yield Sign(
                f"Every {stage.old!r} in a text becomes {stage.new!r} before the model sees it.",
                f"{stage.old!r} encodes as {stage.new!r} would",
            )
    for token in tok.spec.extra:
        at = pieces.get(token.content.encode())
        if len(token.content) == 1 and not token.content.isascii():
            continue  # DeepSeek has letters such as ü as added tokens
        if token.kind == "added" and at is not None and at != token.id and not token.content.isspace():
            yield Sign(
                f"The added token {token.content!r} takes the place of the entry of the model that spells the same.",
                f"{token.content!r} is {token.id}, not {at}",
            )
        elif token.kind == "added" and token.content.isalpha() and len(token.content) < 3:
            yield Sign(
                f"The added token {token.content!r} cuts every word that holds it.", f"{token.content!r} is {token.id}"
            )


def _moved(tok: Tokenizer) -> Iterator[Sign]:
    """Entries whose ids are out of the order in which they were learned, where nearly all are in it."""
    model = tok.spec.model
    if isinstance(model, BPE) and model.unit == "byte":
        yield from _bytes_moved(model)
    if isinstance(model, BPE) and model.priority == "rank":
        yield from _ranks_moved(tok, model)
    elif isinstance(model, BPE) and len(model.merges) > 2:
        yield from _merges_moved(model)


def _bytes_moved(model: BPE) -> Iterator[Sign]:
    """Bytes come by their values, or as GPT-2 has them; a few that do not were exchanged."""
    ids = {piece[0]: id for piece, id in model.vocab.items() if len(piece) == 1}
    held = sorted(ids, key=lambda byte: ids[byte])
    orders = [[byte for byte in order if byte in ids] for order in (range(256), GPT2_BYTE_ORDER)]
    moved = min(([one for one, other in zip(held, order, strict=True) if one != other] for order in orders), key=len)
    if 0 < len(moved) <= MOST_BYTES:
        names = ", ".join(f"{byte:#04x} ({ids[byte]})" for byte in moved)
        yield Sign(f"{len(moved)} bytes are out of order: with exchanged ids the model sees one as the other.", names)


def _ranks_moved(tok: Tokenizer, model: BPE) -> Iterator[Sign]:
    """An entry is learned after the two that it is made of. Where one of these has been given a higher rank, it is
    not; so an exchange shows if the words are parts of others, as common ones are, or have later parts."""
    ids = np.asarray(model.vocab.ids, dtype=np.int64)
    rules = tok.last_merges()
    longer = np.array([len(piece) > 1 for piece, _ in model.vocab.items()])
    wrong = longer & ((rules[:, 0] < 0) | (rules.max(axis=1) >= ids))
    if not 0 < wrong.sum() <= max(MOST_RANKS * len(ids), 2):
        return
    data = {id: piece for piece, id in model.vocab.items()}
    parts = [part for pair, id in zip(rules[wrong].tolist(), ids[wrong].tolist(), strict=True) for part in pair
             if part >= id]  # fmt: skip
    blamed = list(dict.fromkeys(sorted(parts, key=lambda part: (-parts.count(part), part)))) or ids[wrong].tolist()
    yield Sign(
        f"{int(wrong.sum()):,} of {len(ids):,} entries rank before a part of theirs, or nothing makes them: "
        "exchanged ids turn one word into another for the model.",
        ", ".join(f"{data[id].decode('utf-8', 'backslashreplace')!r} ({id})" for id in blamed[:5]),
    )


def _merges_moved(model: BPE) -> Iterator[Sign]:
    data = {id: piece for piece, id in model.vocab.items()}
    ids = {piece: id for id, piece in data.items()}
    made = np.array([ids[data[left] + data[right]] for left, right in model.merges.tolist()], dtype=np.int64)
    _, firsts = np.unique(made, return_index=True)
    made = made[np.sort(firsts)]  # an entry that several merges make counts once, where the first does
    kept = _longest_rising(made.tolist())
    moved = [id for id in made.tolist() if id not in kept]
    if moved and len(moved) <= max(MOST_MOVED * len(made), 2):
        names = ", ".join(repr(data[id].decode("utf-8", "backslashreplace")) for id in moved[:5])
        yield Sign(
            f"{len(moved):,} of {len(made):,} entries have ids out of the order of the merges that make them: "
            "exchanged ids turn one word into another for the model.",
            f"{names} ({', '.join(map(str, moved[:5]))})",
        )


def _longest_rising(values: list[int]) -> set[int]:
    """The longest run of values that rise, with gaps.

    >>> sorted(_longest_rising([1, 9, 3, 4, 5]))
    [1, 3, 4, 5]
    """
    tails: list[int] = []
    before: dict[int, int | None] = {}
    for value in values:
        at = bisect_left(tails, value)
        before[value] = tails[at - 1] if at else None
        tails[at : at + 1] = [value]
    kept: set[int] = set()
    last = tails[-1] if tails else None
    while last is not None:
        kept.add(last)
        last = before[last]
    return kept
