"""Normalizers in tokenizer.json and the stages that they are: a row each, both ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .. import _core
from ..errors import SubwordValueError
from ..patterns import UNICODE
from ..spec import (
    ByteAlphabet,
    CleanText,
    Lowercase,
    Metaspace,
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
from .json_node import Node, shown, steps_of, unsupported

NORMALIZER_UNICODE = Normalize("NFC").unicode
SPLIT_UNICODE = UNICODE
"""The Unicode versions of tokenizers 0.23: of its normalization forms, and of the classes in its expressions."""

_NFD, _LOWER = Normalize("NFD", NORMALIZER_UNICODE), Lowercase(final_sigma=False)


def read_normalizers(node: Node) -> tuple[Stage, ...]:
    stages: list[Stage] = []
    for step in steps_of(node, "normalizers"):
        read = _READ.get(step["type"].value)
        if read is None:
            raise unsupported(step, f"the normalizers are {', '.join(_READ)} and a Sequence of these")
        stages += read(step)
    return tuple(stages)


def read_pattern(node: Node) -> tuple[str, str]:
    """What a `{"String": …}` or `{"Regex": …}` is, and what it says; an expression is tried."""
    fields = node.fields()
    kind = next((kind for kind in ("String", "Regex") if kind in fields), None)
    if kind is None or len(fields) != 1:
        raise node.expected('{"String": …} or {"Regex": …}')
    text = node[kind].text()
    if kind == "Regex":
        try:
            _core.regex_covers(text, "oniguruma", allow_backtracking=True)
        except SubwordValueError as error:
            raise node[kind].error(str(error)) from None
    return kind.lower(), text


def _read_bert(step: Node) -> Iterator[Stage]:
    """Its stages, in its order. `strip_accents` says what `lowercase` does unless it says something itself."""
    lowercase = step.get("lowercase", True).flag()
    strip_accents = step.get("strip_accents")
    if step.get("clean_text", True).flag():
        yield CleanText()
    if step.get("handle_chinese_chars", True).flag():
        yield PadChinese()
    if lowercase if strip_accents.value is None else strip_accents.flag():
        yield from (_NFD, StripAccents())
    if lowercase:
        yield _LOWER


def _read_replace(step: Node) -> Iterator[Stage]:
    (kind, old), new = read_pattern(step["pattern"]), step["content"].text()
    if (kind, old) == ("regex", " {2,}"):
        yield Replace(" ", new, runs=True)
    elif kind == "string" and old:
        yield Replace(old, new)
    else:
        yield ReplaceRegex(old, new, SPLIT_UNICODE)


def _read_precompiled(step: Node) -> Iterator[Stage]:
    rules = step.get("precompiled_charsmap")
    if rules.value:
        stage = Precompiled(rules.text())
        try:
            _core.stage_parts(b"", ("Precompiled", stage.rules))
        except SubwordValueError as error:
            raise rules.error(str(error)) from None
        yield stage


def _read_prepend(step: Node) -> Iterator[Stage]:
    if step["prepend"].text():
        yield Metaspace(step["prepend"].text(), "always", spaces=False)


_READ: dict[Any, Callable[[Node], Iterator[Stage] | list[Stage]]] = {
    "NFC": lambda _: [Normalize("NFC", NORMALIZER_UNICODE)],
    "NFD": lambda _: [_NFD],
    "NFKC": lambda _: [Normalize("NFKC", NORMALIZER_UNICODE)],
    "NFKD": lambda _: [Normalize("NFKD", NORMALIZER_UNICODE)],
    "Lowercase": lambda _: [_LOWER],
    "BertNormalizer": _read_bert,
    "StripAccents": lambda _: [StripMarks()],
    "Strip": lambda step: [Strip(step["strip_left"].flag(), step["strip_right"].flag())],
    "Replace": _read_replace,
    "Prepend": _read_prepend,
    "Precompiled": _read_precompiled,
    "Nmt": lambda _: [Nmt()],
    "ByteLevel": lambda _: [ByteAlphabet()],
}

# ======================== writing ========================


def count_normalizers(stages: Sequence[Stage]) -> int:
    """How many of the stages, from the first, can be normalizers."""
    return next((at for at, stage in enumerate(stages) if not isinstance(stage, _NORMALIZERS)), len(stages))


def is_prepend(stage: Stage) -> bool:
    return isinstance(stage, Metaspace) and not stage.spaces


_BERT = (CleanText, PadChinese, StripAccents)
_NORMALIZERS = (
    *_BERT,
    Normalize,
    Lowercase,
    StripMarks,
    Precompiled,
    Replace,
    ReplaceRegex,
    Strip,
    Nmt,
    ByteAlphabet,
)


def write_normalizers(stages: Sequence[Stage]) -> dict[str, Any] | None:
    """Raises SubwordValueError with what of a stage cannot be held."""
    rest, steps = list(stages), list[dict[str, Any]]()
    while rest:
        taken, step = _written_bert(rest) or (1, _written(rest[0]))
        del rest[:taken]
        steps.append(step)
    if len(steps) > 1:
        return {"type": "Sequence", "normalizers": steps}
    return steps[0] if steps else None


def _written(stage: Stage) -> dict[str, Any]:
    match stage:
        case Normalize() | Lowercase() if stage.unicode not in (NORMALIZER_UNICODE, SPLIT_UNICODE):
            pass
        case Normalize(unicode="9.0"):
            return {"type": stage.form}
        case Lowercase(final_sigma=False):
            return {"type": "Lowercase"}
        case Lowercase():
            raise SubwordValueError("lower case with final sigmas")
        case StripMarks():
            return {"type": "StripAccents"}
        case Precompiled():
            return {"type": "Precompiled", "precompiled_charsmap": stage.rules}
        case Replace(old=" ", runs=True):
            return {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": stage.new}
        case Replace(runs=False):
            return {"type": "Replace", "pattern": {"String": stage.old}, "content": stage.new}
        case ReplaceRegex():
            return {"type": "Replace", "pattern": {"Regex": stage.regex}, "content": stage.new}
        case Metaspace(prepend="always", spaces=False, words=False):
            return {"type": "Prepend", "prepend": stage.replacement}
        case Strip():
            return {"type": "Strip", "strip_left": stage.left, "strip_right": stage.right}
        case Nmt():
            return {"type": "Nmt"}
        case ByteAlphabet():
            return {"type": "ByteLevel"}
        case StripAccents():
            raise SubwordValueError("StripAccents without Normalize('NFD') before it")
    raise SubwordValueError(f"the stage {shown(stage)}")


def _written_bert(stages: Sequence[Stage]) -> tuple[int, dict[str, Any]] | None:
    """How many of the stages a BertNormalizer is, and that, if the first are one."""
    wanted: dict[str, list[Stage]] = {
        "clean_text": [CleanText()],
        "handle_chinese_chars": [PadChinese()],
        "strip_accents": [_NFD, StripAccents()],
        "lowercase": [_LOWER],
    }
    at, step = 0, {"type": "BertNormalizer"} | dict.fromkeys(wanted, False)
    for name, part in wanted.items():
        if list(stages[at : at + len(part)]) == part:
            step[name] = True
            at += len(part)
    return (at, step) if any(isinstance(stage, _BERT) for stage in stages[:at]) else None
