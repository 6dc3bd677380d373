"""Broken and risky tokens: entries that no text gives, with the stage that blocks them; parts of characters; entries
that a text never uses; pairs that no text has side by side.

An entry is *unreachable* if its own text does not encode to it, neither alone nor beside other text. Which stage is to
blame is tried, not guessed: it is the model if that, given the entry's bytes without any stage before it, makes
something else of them; else the stage without which the tokenizer gives the entry.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..arguments import integer, list_of
from ..engine import text_bytes
from ..errors import SubwordError, SubwordValueError
from ..spec import BPE, USER_DEFINED, MatchTokens, ScoreBPE, Unigram, WordPiece
from ..tokenizer import Text, Tokenizer
from .vocabulary import spelled

AROUND = (("", ""), ("«", ""), ("\n", ""), ("a", ""), (" ", ""), ("1", ""), (".", ""), ("", "a"), ("", " a"),
          ("a", "a"), ("", "\n"))  # fmt: skip
"""What stands before and behind an entry that is not made alone."""

STARTS = 64
"""So many entries are tried as the start of a word, before an entry that goes on with one."""

NEVER = frozenset({0xC0, 0xC1, *range(0xF5, 0x100)})
"""Bytes that no UTF-8 has."""

MODEL, ADDED, TOGETHER = "model", "an added token", "several stages together"

LOOKS_SPECIAL = re.compile(r"(?=.*[^\W\d_])(?:<.+>|\[.+\])", re.DOTALL)
"""What people write for tokens that are no text: `<|end|>`, `[unused7]`, `<s>`."""

INNER = 0.1
"""An entry that stands for itself in at most this share of its occurrences lives inside longer ones."""
ENOUGH = 10
"""So many occurrences say something."""
PAIRS = 400
"""So many pairs are tried."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """An entry that no text gives."""

    id: int
    token: bytes
    stage: str
    """`model`, the name of a stage, `an added token`, or `several stages together`."""
    instead: tuple[bytes, ...]
    """What its text encodes to."""
    reserved: bool
    """It looks like a token that is no text on purpose, such as `[unused7]`."""


@dataclass(frozen=True, slots=True)
class Counted:
    """An entry, and how often it is there."""

    id: int
    token: bytes
    count: int
    """How often it is a token."""
    inside: int
    """How often it is a part of a longer token, on the way to that."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of tokens that are parts of characters: the first ends inside a character that the second completes.

    Each is legal and encodes to itself, but text in which it stands hardly exists: models have not seen it
    (Jang et al. 2024, "improbable bigrams").
    """

    pairs: int
    """All whose bytes are well-formed together."""
    tried: int
    kept: int
    """Of those tried, how many encode to themselves; the others can stand side by side in no text."""
    examples: tuple[tuple[bytes, bytes], ...]
    """Of those that do, up to ten."""


@dataclass(frozen=True, slots=True)
class Use:
    """How a text uses the entries."""

    tokens: int
    unused: int
    """Entries that are no token of the text."""
    unused_share: float
    unused_examples: tuple[bytes, ...]
    """The longest."""
    inner: tuple[Counted, ...]
    """Those that live inside longer ones, the commonest there first. Only where merges say how entries are made."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Entries that are frequent in one text and absent from the other."""

    least: int
    entries: int
    share: float
    """Of the tokens of the first text."""
    examples: tuple[Counted, ...]
    """The most frequent first."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """What is broken in a vocabulary, and what is risky."""

    entries: int
    holes: int
    """Ids below the largest that have no token."""
    unreachable: int
    """Without those that are reserved."""
    reserved: int
    """Unreachable, and looking so on purpose."""
    blocked: tuple[Blocked, ...]
    """All that are unreachable, by their ids."""
    stages: dict[str, int]
    """How many each stage blocks, reserved ones left out."""
    partial: int
    """Entries of several bytes that are no well-formed UTF-8."""
    partial_examples: tuple[bytes, ...]
    never_valid: int
    """Entries with bytes that no UTF-8 has: C0, C1, F5 to FF."""
    spelled: tuple[str, ...]
    """Special tokens that a text spells, where a call allows them."""
    taken: tuple[str, ...]
    """Added tokens that look like special ones: every text that spells them gives them, whatever a call allows."""
    twice: tuple[str, ...]
    """Special and added tokens that are entries of the model under another id."""
    pairs: Pairs
    use: Use | None
    lost: Lost | None


def tokens(
    tok: Tokenizer,
    texts: Iterable[Text] = (),
    *,
    tokenizer_text: Iterable[Text] = (),
    model_text: Iterable[Text] = (),
    least: int = 10,
    shown: int = 30,
    threads: int | None = None,
) -> Tokens:
    """Look for broken and risky tokens.

    Args:
        texts: on which to count the use of entries.
        tokenizer_text: what the tokenizer was trained on, or a sample of it.
        model_text: what the model was trained on. Both or neither: entries that are tokens of the one at least `least`
            times and never of the other are those that a model does not know.
        shown: how many examples to give.
    """
    least = integer("least", least, 1)
    held = [text_bytes(text) for text in list_of("texts", texts)]
    learned, trained = list_of("tokenizer_text", tokenizer_text), list_of("model_text", model_text)
    if bool(learned) != bool(trained):
        raise SubwordValueError("tokenizer_text and model_text belong together: give both or neither")
    entries = spelled(tok)
    blocked = unreachable(tok, threads)
    mine = [row for row in blocked if not row.reserved]
    partial = [data for _, data in entries if len(data) > 1 and not _is_text(data)]
    special = [token for token in tok.spec.extra if token.kind != "unmatchable"]
    matches = any(isinstance(stage, MatchTokens) for stage in tok.spec.stages)
    own = dict(tok.spec.model.vocab.items())
    counts = _counts(tok, held, threads) if held else None
    return Tokens(
        entries=len(tok.vocab),
        holes=tok.n_vocab - len({*own.values(), *(token.id for token in tok.spec.extra)}),
        unreachable=len(mine),
        reserved=len(blocked) - len(mine),
        blocked=tuple(blocked),
        stages={stage: sum(row.stage == stage for row in mine) for stage in sorted({row.stage for row in mine})},
        partial=len(partial),
        partial_examples=tuple(sorted(partial, key=lambda data: (-len(data), data))[:shown]),
        never_valid=sum(not NEVER.isdisjoint(data) for _, data in entries),
        spelled=tuple(token.content for token in special if token.kind == "special" and matches),
        taken=tuple(t.content for t in special if t.kind == "added" and LOOKS_SPECIAL.fullmatch(t.content) and matches),
        twice=tuple(t.content for t in special if own.get(t.content.encode(), t.id) != t.id),
        pairs=improbable_pairs(tok, entries),
        use=None if counts is None else _use(tok, entries, counts, shown),
        lost=_lost(tok, entries, learned, trained, least, shown, threads) if learned else None,
    )


# ======================== unreachable ========================


def unreachable(tok: Tokenizer, threads: int | None = None) -> list[Blocked]:
    """The entries that no text gives, by their ids. Extra tokens, bytes and parts of characters that merges make, and
    what stands for the unknown are none."""
    missing = _missing(tok, _candidates(tok), threads)
    starts = _starts(tok) if missing else []
    missing = [row for row in missing if not _in_context(tok, row, starts)]
    if not missing:
        return []
    blame: dict[int, str] = {}
    bare = _without(tok, None)
    if bare is not None:
        blame |= {row[0]: MODEL for row in missing if row[0] not in _ids(bare, [row[2]])}
    for at, stage in enumerate(tok.spec.stages):
        left = [row for row in missing if row[0] not in blame]
        other = _without(tok, at) if left else None
        if other is None:
            continue
        name = ADDED if isinstance(stage, MatchTokens) else type(stage).__name__
        for row in left:
            if row[0] in _ids(other, [*_around(row[1]), row[2]]):
                blame[row[0]] = name
    return [
        Blocked(
            id,
            piece if isinstance(tok.spec.model, WordPiece) else data,
            blame.get(id, TOGETHER),
            tuple(tok.token_bytes(each) for each in _encoded(tok, data)),
            bool(LOOKS_SPECIAL.fullmatch(data.decode("utf-8", "replace").strip())),
        )
        for id, data, piece in missing
    ]


_Row = tuple[int, bytes, bytes]
"""An id, its text, and how the model spells it."""


def _candidates(tok: Tokenizer) -> list[_Row]:
    """What text should be able to give."""
    model = tok.spec.model
    skipped = {model.unk} if model.unk is not None else set()
    if isinstance(model, (Unigram, ScoreBPE)) and len(model.kinds):
        skipped |= set(model.vocab.ids[model.kinds > USER_DEFINED].tolist())
    pieces = {id: piece for piece, id in model.vocab.items()}
    return [(id, data, pieces[id]) for id, data in spelled(tok) if id not in skipped and data]


def _missing(tok: Tokenizer, rows: Sequence[_Row], threads: int | None) -> list[_Row]:
    """Those whose own text does not encode to them. Of parts of characters, those that merges do not make: what stands
    beside them in a text cannot be known."""
    model = tok.spec.model
    made: set[int] = set()
    if isinstance(model, BPE) and model.unit == "byte":
        made = set(model.vocab.ids[tok.last_merges()[:, 0] >= 0].tolist())
    rows = [row for row in rows if _is_text(row[1]) or (len(row[1]) > 1 and row[0] not in made)]
    found = tok.encode_batch_to_numpy(
        [row[1] for row in rows], allowed_special=(), disallowed_special=(), threads=threads
    )
    lengths = np.diff(found.offsets.astype(np.int64))
    firsts = found.ids[np.minimum(found.offsets[:-1].astype(np.int64), max(len(found.ids) - 1, 0))]
    wanted = np.array([row[0] for row in rows], dtype=np.int64)
    return [rows[at] for at in np.flatnonzero((lengths != 1) | (firsts != wanted)).tolist()]


def _in_context(tok: Tokenizer, row: _Row, starts: Sequence[bytes]) -> bool:
    id, data, piece = row
    if id in _ids(tok, _around(data)):
        return True
    model = tok.spec.model
    goes_on = isinstance(model, WordPiece) and piece.startswith(model.continuing_subword_prefix.encode())
    return goes_on and any(id in _encoded(tok, start + data) for start in starts)


def _around(data: bytes) -> list[bytes]:
    return [before.encode() + data + behind.encode() for before, behind in AROUND]


def _starts(tok: Tokenizer) -> list[bytes]:
    """Entries that start words, the longest first: behind these, nothing longer takes what follows."""
    words = {word.strip() for _, word in spelled(tok) if word.startswith(b" ")}
    return sorted(words, key=lambda word: (-len(word), word))[:STARTS]


def _without(tok: Tokenizer, at: int | None) -> Tokenizer | None:
    """The tokenizer without one of its stages, or without all; None if there is no such one."""
    stages = () if at is None else tuple(stage for place, stage in enumerate(tok.spec.stages) if place != at)
    try:
        return Tokenizer(tok.spec.replace(stages=stages))
    except SubwordError:
        return None


def _encoded(tok: Tokenizer, data: bytes) -> list[int]:
    return tok.encode(data, allowed_special=(), disallowed_special=())


def _ids(tok: Tokenizer, texts: Iterable[bytes]) -> set[int]:
    return {id for text in texts for id in _encoded(tok, text)}


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


# ======================== pairs ========================


def improbable_pairs(tok: Tokenizer, entries: Sequence[tuple[int, bytes]] | None = None) -> Pairs:
    """Count the pairs of parts of characters that are text together, and try some: the same ones each time."""
    starts: dict[bytes, list[tuple[int, bytes]]] = {}
    ends: dict[bytes, list[tuple[int, bytes]]] = {}
    for id, data in spelled(tok) if entries is None else entries:
        if len(data) < 2 or _is_text(data):
            continue
        head, tail = _stray(data)
        if tail and not head:
            starts.setdefault(tail, []).append((id, data))
        elif head and not tail:
            ends.setdefault(head, []).append((id, data))
    fitting = [(a, b) for a in starts for b in ends if _is_text(a + b)]
    sizes = [len(starts[a]) * len(ends[b]) for a, b in fitting]
    total = sum(sizes)
    rng = random.Random(0)
    drawn = [
        (rng.choice(starts[a]), rng.choice(ends[b])) for a, b in rng.choices(fitting, sizes, k=PAIRS if total else 0)
    ] if total > PAIRS else [(one, two) for a, b in fitting for one in starts[a] for two in ends[b]]  # fmt: skip
    tried = sorted(set(drawn))
    kept = [(one[1], two[1]) for one, two in tried if _encoded(tok, one[1] + two[1]) == [one[0], two[0]]]
    return Pairs(total, len(tried), len(kept), tuple(kept[:10]))


def _stray(data: bytes) -> tuple[bytes, bytes]:
    """The bytes at the start that go on with a character, and those at the end that begin one, if the rest is text.

    >>> _stray(b"\\x96 a\\xe4\\xb8")
    (b'\\x96', b'\\xe4\\xb8')
    """
    first = next((at for at, byte in enumerate(data) if not 0x80 <= byte < 0xC0), len(data))
    head, rest = data[:first], data[first:]
    for length in range(min(4, len(rest) + 1)):
        if _is_text(rest[: len(rest) - length]):
            return head, rest[len(rest) - length :]
    return data, data


# ======================== use ========================


def _counts(tok: Tokenizer, texts: Sequence[Text], threads: int | None) -> npt.NDArray[np.int64]:
    """How often each id is a token of the texts."""
    ids = tok.encode_batch_to_numpy(texts, allowed_special=(), disallowed_special=(), threads=threads).ids
    return np.bincount(ids, minlength=tok.n_vocab).astype(np.int64)


def _use(tok: Tokenizer, entries: list[tuple[int, bytes]], counts: npt.NDArray[np.int64], shown: int) -> Use:
    unused = [data for id, data in entries if not counts[id]]
    return Use(
        tokens=int(counts.sum()),
        unused=len(unused),
        unused_share=len(unused) / max(len(entries), 1),
        unused_examples=tuple(sorted(unused, key=lambda data: (-len(data), data))[:shown]),
        inner=tuple(_inner(tok, counts, shown)),
    )


def _inner(tok: Tokenizer, counts: npt.NDArray[np.int64], shown: int) -> list[Counted]:
    model = tok.spec.model
    if not isinstance(model, BPE):
        return []
    made = counts.copy()
    rows = zip(model.vocab.items(), tok.last_merges().tolist(), strict=True)
    for (_, id), pair in sorted(rows, key=lambda row: -len(row[0][0])):  # a part is shorter than the whole
        if pair[0] >= 0:
            made[pair] += made[id] if pair[0] != pair[1] else 2 * made[id]
    found = [
        Counted(id, piece, int(counts[id]), int(made[id] - counts[id]))
        for piece, id in model.vocab.items()
        if len(piece) > 1 and made[id] >= ENOUGH and counts[id] <= INNER * made[id]
    ]
    return sorted(found, key=lambda row: (-row.inside, row.id))[:shown]


def _lost(
    tok: Tokenizer, entries: list[tuple[int, bytes]], learned: Sequence[Text], trained: Sequence[Text], least: int,
    shown: int, threads: int | None,
) -> Lost:  # fmt: skip
    here, there = _counts(tok, learned, threads), _counts(tok, trained, threads)
    found = [Counted(id, data, int(here[id]), 0) for id, data in entries if here[id] >= least and not there[id]]
    found.sort(key=lambda row: (-row.count, row.id))
    total = max(int(here.sum()), 1)
    return Lost(least, len(found), sum(row.count for row in found) / total, tuple(found[:shown]))
