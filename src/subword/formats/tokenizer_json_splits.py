"""Pre-tokenizers in tokenizer.json and the stages that they are: a row each, both ways."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

from .._core import regex_covers, same_in_both_syntaxes
from ..errors import SubwordValueError
from ..patterns import DIGITS, Pattern, digits_and_rest, get_pattern, pattern_of
from ..spec import (
    ByteAlphabet,
    Digits,
    Metaspace,
    PrefixSpace,
    Replace,
    Split,
    SplitAt,
    SplitLength,
    SplitPunctuation,
    SplitRegex,
    SplitScripts,
    Stage,
)
from .json_node import Node, shown, steps_of, unsupported
from .tokenizer_json_normalizers import SPLIT_UNICODE, read_pattern

DIGITS_UNICODE = "17.0"
"""Of `Digits`, which asks the Rust library."""
PUNCTUATION_UNICODE = SplitPunctuation().unicode

BEFORE_MARKS = "▁[^▁]*|[^▁]+"
"""Cuts in front of each `▁`, as Metaspace does."""

WORDS = r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d]+|[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d\s]+"
"""What Whitespace leaves: runs of word characters, and of what is neither that nor white space."""

WHOLE = Split("none", SPLIT_UNICODE)

_WORDS = SplitAt("regex", WORDS, "removed", True, SPLIT_UNICODE)
_SPACES = (get_pattern("whitespace-split").steps[0], True)
_ALONE = Split("gpt2", SPLIT_UNICODE)

_Step: TypeAlias = "tuple[str, bool] | Stage"
"""The expression of a Split, and whether what it does not match is dropped; or a stage."""

_BEHAVIORS = {
    "Removed": "removed",
    "Isolated": "isolated",
    "MergedWithPrevious": "merged-with-previous",
    "MergedWithNext": "merged-with-next",
    "Contiguous": "contiguous",
}


def read_pre_tokenizers(node: Node, normalizers: Sequence[Stage]) -> tuple[Stage, ...]:
    """The stages: rows of `patterns.py` where Splits spell such, the longest first."""
    read: list[_Step] = []
    for step in steps_of(node, "pretokenizers"):
        row = _READ.get(step["type"].value)
        if row is None:
            raise unsupported(step, f"the pre-tokenizers are {', '.join(_READ)} and a Sequence of these")
        read += row(step)
    if normalizers and isinstance(normalizers[-1], Replace) and normalizers[-1].old == " ":
        # There is no space left to split at.
        read = [step for step in read if not (_is_at_spaces(step) and " " not in normalizers[-1].new)]
    return _with_words(_stages(read))


def _is_at_spaces(step: _Step) -> bool:
    return isinstance(step, SplitAt) and (step.kind, step.pattern, step.invert) == ("string", " ", False)


def _stages(read: list[_Step]) -> list[Stage]:
    stages: list[Stage] = []
    at = 0
    while at < len(read):
        end, row = next(
            ((end, row) for end in range(len(read), at, -1) if (row := _row_of(*read[at:end]))), (at + 1, None)
        )
        step = read[at]
        if row is not None:
            stages.append(Split(row.name, SPLIT_UNICODE))
        elif not isinstance(step, tuple):
            stages.append(step)
        elif step[1]:
            stages.append(SplitAt("regex", step[0], "removed", True, SPLIT_UNICODE))
        elif step[0] in _GROUPINGS:
            stages.append(Digits(cast("Any", _GROUPINGS[step[0]]), SPLIT_UNICODE))
        else:
            stages.append(SplitRegex(step[0], "oniguruma", _needs_backtracking(step[0]), SPLIT_UNICODE))
        at = end
    return stages


def _needs_backtracking(regex: str) -> bool:
    try:
        regex_covers(regex, "oniguruma", allow_backtracking=False)
    except SubwordValueError:
        return True
    return False


def _with_words(stages: list[Stage]) -> tuple[Stage, ...]:
    """Words of which each gets a mark in front are one stage, and then cut."""
    words = [Split("whitespace-split", SPLIT_UNICODE), Metaspace(), SplitRegex(BEFORE_MARKS, "oniguruma")]
    return (Metaspace(words=True), *stages[2:]) if stages[:3] == words else tuple(stages)


_GROUPINGS = {groups: grouping for grouping, groups in DIGITS.items()}


def _row_of(*steps: _Step) -> Pattern | None:
    """The row that Splits spell; none for one that a stage `Digits` and another row spell, which are taken then.

    `{1,3}+` repeats in Oniguruma, so that what tiktoken publishes may be no row here.
    """
    texts = [step for step in steps if isinstance(step, tuple)]
    splits = [step for step in texts if not re.search(r"[0-9]\}\+", step[0])]
    row = pattern_of(*(regex for regex, _ in splits)) if splits and len(splits) == len(steps) else None
    if row is None or digits_and_rest(row) is not None or any(drops != row.drops for _, drops in splits):
        return None
    return row


# ------------------------ one by one ------------------------


def _read_byte_level(step: Node) -> list[_Step]:
    prefix, regex = step.get("add_prefix_space", True).flag(), step.get("use_regex", True).flag()
    return [*([PrefixSpace()] if prefix else []), *([_ALONE] if regex else []), ByteAlphabet()]


def _read_digits(step: Node) -> list[_Step]:
    if step.get("individual_digits", False).flag():
        return [Digits("one", DIGITS_UNICODE)]
    return [SplitAt("numbers", "", "contiguous", False, DIGITS_UNICODE)]


def _read_split(step: Node) -> list[_Step]:
    kind, text = read_pattern(step["pattern"])
    behavior, invert = step["behavior"].one_of(_BEHAVIORS), step.get("invert", False).flag()
    if kind == "regex" and behavior == "isolated":
        return [(text, False)]
    if kind == "regex" and behavior == "removed" and invert:
        drops = _row_of((text, True)) is not None or not _covers(text)
        return [(text, drops)]
    return [SplitAt(cast("Any", kind), text, cast("Any", behavior), invert, SPLIT_UNICODE)]


def _covers(regex: str) -> bool:
    """Whether matches leave nothing out, so that nothing is there to be removed."""
    return regex in _GROUPINGS or regex_covers(regex, "oniguruma", allow_backtracking=True)


def _read_delimiter(step: Node) -> list[_Step]:
    if len(step["delimiter"].text()) != 1:
        raise step["delimiter"].expected("one character")
    return [SplitAt("string", step["delimiter"].text(), "removed", False, SPLIT_UNICODE)]


def read_metaspace(step: Node) -> tuple[str, str, bool]:
    """The character, when it is put in front of a text, and whether texts are cut before it."""
    if len(step["replacement"].text()) != 1:
        raise step["replacement"].expected("one character")
    scheme = step.get("prepend_scheme", "always")
    if step.get("add_prefix_space").value is False:
        scheme = step.get("prepend_scheme", "never")
        if scheme.value != "never":
            raise scheme.error("`add_prefix_space` is false, so it should be never")
    split = step.get("split")
    return step["replacement"].text(), scheme.one_of(_SCHEMES), split.value is None or split.flag()


_SCHEMES = {"always": "missing", "first": "first", "never": "never"}


def _read_metaspace(step: Node) -> list[_Step]:
    mark, prepend, split = read_metaspace(step)
    cut: Stage = SplitAt("string", mark, "merged-with-next", False, SPLIT_UNICODE)
    if mark == "▁":
        cut = SplitRegex(BEFORE_MARKS, "oniguruma")
    return [Metaspace(mark, cast("Any", prepend)), *([cut] if split else [])]


def _read_punctuation(step: Node) -> list[_Step]:
    behavior = step.get("behavior", "Isolated").one_of(_BEHAVIORS)
    return [SplitAt("punctuation", "", cast("Any", behavior), False, PUNCTUATION_UNICODE)]


def _read_length(step: Node) -> list[_Step]:
    return [SplitLength(step.get("length", 5).number(1, 2**31 - 1))]


_READ: dict[Any, Callable[[Node], list[_Step]]] = {
    "ByteLevel": _read_byte_level,
    "BertPreTokenizer": lambda _: [SplitPunctuation()],
    "CharDelimiterSplit": _read_delimiter,
    "Digits": _read_digits,
    "FixedLength": _read_length,
    "Metaspace": _read_metaspace,
    "Punctuation": _read_punctuation,
    "Split": _read_split,
    "UnicodeScripts": lambda _: [SplitScripts()],
    "Whitespace": lambda _: [_WORDS],
    "WhitespaceSplit": lambda _: [_SPACES],
}

# ======================== writing ========================


def write_pre_tokenizers(stages: Sequence[Stage]) -> dict[str, Any] | None:
    """Raises SubwordValueError with what of a stage cannot be held."""
    rest, steps = [stage for stage in stages if stage != WHOLE], list[dict[str, Any]]()
    while rest:
        taken, written = _byte_level(rest) or _metaspace(rest) or (1, _written(rest[0]))
        del rest[:taken]
        steps += written
    if len(steps) > 1:
        return {"type": "Sequence", "pretokenizers": steps}
    return steps[0] if steps else None


def _byte_level(stages: Sequence[Stage]) -> tuple[int, list[dict[str, Any]]] | None:
    """How many of the stages a ByteLevel is, and that, if the first are one."""
    at = 0
    prefix = stages[0] == PrefixSpace()
    at += prefix
    regex = stages[at : at + 1] == [Split("gpt2", SPLIT_UNICODE)]
    at += regex
    if stages[at : at + 1] != [ByteAlphabet()]:
        return None
    return at + 1, [{"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": regex}]


def _metaspace(stages: Sequence[Stage]) -> tuple[int, list[dict[str, Any]]] | None:
    stage = stages[0]
    if not isinstance(stage, Metaspace):
        return None
    schemes = {prepend: scheme for scheme, prepend in _SCHEMES.items()}
    if stage.prepend not in schemes or not stage.spaces or len(stage.replacement) != 1:
        raise SubwordValueError(f"the stage {stage!r}")
    cuts = [SplitAt("string", stage.replacement, "merged-with-next", False, SPLIT_UNICODE)]
    marks = [SplitRegex(BEFORE_MARKS, "oniguruma")] if stage.replacement == "▁" else []
    split = list(stages[1:2]) in (cuts, marks or cuts)
    step = {
        "type": "Metaspace",
        "replacement": stage.replacement,
        "prepend_scheme": schemes[stage.prepend],
        "split": split,
    }
    if stage.words and (not split or stage.prepend != "missing"):
        raise SubwordValueError(f"the stage {stage!r} without a cut behind it")
    return 1 + split, [*([{"type": "WhitespaceSplit"}] if stage.words else []), step]


def _written(stage: Stage) -> list[dict[str, Any]]:
    unicode = getattr(stage, "unicode", None)
    match stage:
        case SplitPunctuation():
            return [{"type": "BertPreTokenizer"}]
        case Digits(grouping="one") if unicode == DIGITS_UNICODE:
            return [{"type": "Digits", "individual_digits": True}]
        case SplitAt(kind="numbers", behavior="contiguous", invert=False) if unicode == DIGITS_UNICODE:
            return [{"type": "Digits", "individual_digits": False}]
        case SplitAt(kind="punctuation", invert=False) if unicode == PUNCTUATION_UNICODE:
            return [{"type": "Punctuation", "behavior": _shown(stage.behavior)}]
        case SplitScripts():
            return [{"type": "UnicodeScripts"}]
        case SplitLength():
            return [{"type": "FixedLength", "length": stage.length}]
        case Digits() | Split() | SplitRegex() | SplitAt() if unicode != SPLIT_UNICODE:
            raise SubwordValueError(f"Unicode {unicode} in {stage!r}: tokenizers has {SPLIT_UNICODE} there")
        case SplitAt() if stage == _WORDS:
            return [{"type": "Whitespace"}]
        case SplitAt(kind="string" | "regex"):
            pattern = {stage.kind.capitalize(): stage.pattern}
            behavior = {"behavior": _shown(stage.behavior), "invert": stage.invert}
            return [{"type": "Split", "pattern": pattern, **behavior}]
        case SplitAt(kind="white-space", behavior="removed", invert=False):
            return [{"type": "WhitespaceSplit"}]
        case Split(pattern="whitespace-split"):
            return [{"type": "WhitespaceSplit"}]
        case Digits() | Split() | SplitRegex():
            drops = isinstance(stage, Split) and get_pattern(stage.pattern).drops
            fixed = {"behavior": "Removed" if drops else "Isolated", "invert": drops}
            return [{"type": "Split", "pattern": {"Regex": regex}, **fixed} for regex in _regexes(stage)]
    raise SubwordValueError(f"the stage {shown(stage)} there")


def _shown(behavior: str) -> str:
    return next(name for name, own in _BEHAVIORS.items() if own == behavior)


def _regexes(stage: Digits | Split | SplitRegex) -> Sequence[str]:
    """The expressions of a stage, as tokenizers reads them."""
    if isinstance(stage, Digits):
        return [DIGITS[stage.grouping]]
    if isinstance(stage, Split):
        return get_pattern(stage.pattern).steps
    if stage.syntax != "oniguruma" and not same_in_both_syntaxes(stage.regex):
        raise SubwordValueError(f"the split pattern {stage.regex!r}, which says something else in Oniguruma's syntax")
    return [stage.regex]
