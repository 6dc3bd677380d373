"""Where in the original text the characters of a normalized text stand, by the rules of HF tokenizers.

subword gives all that a changed cluster becomes the span of the whole cluster; HF tokenizers moves spans along
character by character, each by how many characters came or went at it. This is that, for the stages that its
normalizers are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from .. import _core
from ..engine import CHARACTERS, Segment, stage_rows, text_parts
from ..reference_stages import REWRITES
from ..stages import (
    CleanText,
    Lowercase,
    Nmt,
    Normalize,
    PadChinese,
    Precompiled,
    Replace,
    ReplaceRegex,
    Stage,
    Strip,
    StripAccents,
    StripMarks,
)

Span: TypeAlias = "tuple[int, int]"
Change: TypeAlias = "tuple[str, int]"
"""A character of the new text: with 1, it is inserted; with 0, it replaces one; with -n, it replaces n + 1."""


def moved(stages: Iterable[Stage], text: str, spans: Sequence[Span]) -> tuple[str, list[Span]]:
    """What some normalizers make of a text, and the spans of its characters, from those of the text's own."""
    made = list(spans)
    for stage in stages:
        text, made = _RULES[type(stage)](stage, text, made)
    return text, made


def is_known(stage: Stage) -> bool:
    """Whether a stage is a normalizer with rules here."""
    return type(stage) in _RULES


def _changed(text: str, spans: Sequence[Span], changes: Iterable[Change]) -> tuple[str, list[Span]]:
    out: list[str] = []
    out_spans: list[Span] = []
    at = 0
    for char, change in changes:
        out.append(char)
        if change > 0:
            start = spans[0][0] if spans else 0
            out_spans.append(spans[min(at, len(spans)) - 1] if at else (start, start))
        else:
            out_spans.append(spans[min(at, len(spans) - 1)])
            at += 1 - change
    return "".join(out), out_spans


# ======================== normalization forms ========================


def _normalize(stage: Normalize, text: str, spans: Sequence[Span]) -> tuple[str, list[Span]]:
    whole = _core.normalize(text, stage.form, stage.unicode)
    if whole == text:
        return text, list(spans)
    is_composed, full = stage.form in ("NFC", "NFKC"), "NFKD" if "K" in stage.form else "NFD"
    # Decomposing sorts marks but never swaps two that are alike: so each character finds its own in a queue.
    queues: dict[str, deque[int]] = {}
    for char in text:
        for number, part in enumerate(_parts(char, full, stage.unicode)):
            queues.setdefault(part, deque()).append(int(number > 0))
    changes: list[Change] = []
    for char in whole:
        parts = _parts(char, full, stage.unicode) if is_composed else char
        changes.append((char, sum(queues[part].popleft() for part in parts) + 1 - len(parts)))
    return _changed(text, spans, changes)


@lru_cache(maxsize=1 << 16)
def _parts(char: str, form: str, unicode: str) -> str:
    return _core.normalize(char, form, unicode)


# ======================== the others ========================


def _characters(change: Callable[[Any, str], str]) -> Callable[[Any, str, Sequence[Span]], tuple[str, list[Span]]]:
    """A stage that looks at one character at a time: what it becomes has its span."""

    def rule(stage: Any, text: str, spans: Sequence[Span]) -> tuple[str, list[Span]]:
        made = [change(stage, char) for char in text]
        return "".join(made), [span for new, span in zip(made, spans, strict=True) for _ in new]

    return rule


def _by_parts(
    parts_of: Callable[[Any, str], Iterable[tuple[int, int, str]]],
) -> Callable[[Any, str, Sequence[Span]], tuple[str, list[Span]]]:
    """A stage that says what becomes of the parts of a text: that has the span of a part's last character."""

    def rule(stage: Any, text: str, spans: Sequence[Span]) -> tuple[str, list[Span]]:
        out, out_spans = "", list[Span]()
        for start, end, new in parts_of(stage, text):
            before = spans[0][0] if spans else 0
            span = spans[end - 1] if start < end or start else (before, before)
            out += new
            out_spans += [span] * len(new)
        return out, out_spans

    return rule


def _rewritten(stage: Any, text: str) -> Iterable[tuple[int, int, str]]:
    return REWRITES[type(stage)](stage, text)


def _whole(stage: Any, text: str) -> Iterable[tuple[int, int, str]]:
    return text_parts(Segment(text, [(at, at + 1) for at in range(len(text))]), stage)


def _precompiled(stage: Precompiled, text: str, spans: Sequence[Span]) -> tuple[str, list[Span]]:
    """Of a part that gets longer, the last characters are inserted; if it gets shorter, the last replaces more."""
    data = text.encode()
    changes: list[Change] = []
    for start, end, new in _core.stage_parts(data, stage_rows([stage])[0]):
        chars = new.decode()
        more = len(chars) - len(data[start:end].decode())
        changes += [(char, int(at >= len(chars) - more)) for at, char in enumerate(chars)]
        if more < 0 and changes:  # which may be one of the part before
            changes[-1] = (changes[-1][0], changes[-1][1] + more)
    return _changed(text, spans, changes)


_RULES: dict[type, Callable[[Any, str, Sequence[Span]], tuple[str, list[Span]]]] = {
    Normalize: _normalize,
    Lowercase: _characters(lambda stage, char: _core.lowercase(char, stage.final_sigma, stage.unicode)),
    CleanText: _characters(lambda stage, char: CHARACTERS[CleanText](char)),
    PadChinese: _characters(lambda stage, char: CHARACTERS[PadChinese](char)),
    StripAccents: _characters(lambda stage, char: CHARACTERS[StripAccents](char)),
    StripMarks: _by_parts(_whole),
    Strip: _by_parts(_whole),
    Replace: _by_parts(_rewritten),
    ReplaceRegex: _by_parts(_rewritten),
    Nmt: _by_parts(_rewritten),
    Precompiled: _precompiled,
}
