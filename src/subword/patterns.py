"""Split patterns: the regular expressions that cut text into pieces before the model sees it.

One row a pattern. The core has a scanner of the same name for each (`crates/core/src/split/`), proved equal to the
regular expression in the tests; the pure-Python engine runs `plain` itself, with the core's Unicode tables.

To add a pattern: one row here, one scanner file there.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from . import _core
from .errors import SubwordValueError

UNICODE = "16.0"
"""The Unicode version of `\\p{L}`, `\\p{N}`, `\\s` … in tiktoken 0.14 and HF tokenizers 0.23."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A named way of cutting text into pieces.

    `regex` is the expression as its origin publishes it. `plain` gives the same pieces without possessive
    quantifiers and with `\\z` for the end of the text, which is what HF's regex engine and Python's `re` need:
    in HF's syntax `$` also matches before a newline, and `{1,3}+` repeats instead of being possessive.

    With `drops`, text that the expression does not match is dropped; otherwise there is none.
    """

    name: str
    regex: str
    plain: str
    origin: str
    users: str
    aliases: tuple[str, ...] = ()
    drops: bool = False


_O200K = "|".join(
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)

_CLIP = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"

PATTERNS: dict[str, Pattern] = {
    row.name: row
    for row in (
        Pattern(
            name="gpt2",
            regex=r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
            plain=r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
            origin="OpenAI, GPT-2 (2019)",
            users="gpt2, r50k_base, p50k_base, p50k_edit, RoBERTa, GPT-Neo",
        ),
        Pattern(
            name="cl100k",
            regex=r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$"
            r"|\s*[\r\n]|\s+(?!\S)|\s",
            plain=r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+\z"
            r"|\s*[\r\n]|\s+(?!\S)|\s",
            origin="OpenAI, tiktoken (2022)",
            users="cl100k_base (GPT-3.5, GPT-4)",
        ),
        Pattern(
            name="o200k",
            regex=_O200K,
            plain=_O200K,
            origin="OpenAI, tiktoken (2024)",
            users="o200k_base, o200k_harmony (GPT-4o and later)",
        ),
        Pattern(
            name="clip",
            regex=f"(?i:{_CLIP})",
            plain=f"(?i:{_CLIP})",
            origin="OpenAI, CLIP (2021); letters of either case, white space dropped",
            users="CLIP",
            drops=True,
        ),
        Pattern(
            name="clip-cased",
            regex=_CLIP,
            plain=_CLIP,
            origin="the same for small letters only, as CLIP's tokenizer.json has it",
            users="CLIP in transformers",
            drops=True,
        ),
        Pattern(
            name="spaces",
            regex=r"[^ \r\n]+",
            plain=r"[^ \r\n]+",
            origin="what stands between spaces and line ends, which are dropped",
            users="subword-nmt",
            drops=True,
        ),
        Pattern(
            name="white-space",
            regex=r"\S+",
            plain=r"\S+",
            origin="what stands between white space, which is dropped",
            users="WhitespaceSplit of HF tokenizers",
            drops=True,
        ),
        Pattern(
            name="none",
            regex=r"(?s:.+)",
            plain=r"(?s:.+)",
            origin="no splitting: the whole text is one piece",
            users="textbook BPE",
        ),
    )
}


def get_pattern(name: str) -> Pattern:
    """The row called `name`.

    Raises:
        SubwordValueError: there is no such pattern; the message lists those there are.
    """
    row = PATTERNS.get(name) if isinstance(name, str) else None
    if row is None:
        known = ", ".join(PATTERNS)
        raise SubwordValueError(f"unknown split pattern {name!r}; the patterns are: {known}")
    return row


def pattern_of(regex: str) -> Pattern | None:
    """The row that a regular expression found in a file spells, or None."""
    for row in PATTERNS.values():
        if regex in (row.regex, row.plain, *row.aliases):
            return row
    return None


def split(name: str, text: str) -> list[str]:
    """Cut `text` with the regular expression itself, in plain Python: the oracle of the core's scanner.

    >>> split("cl100k", "HOW'S 1234567")
    ['HOW', "'S", ' ', '123', '456', '7']
    """
    return _compiled(get_pattern(name).plain).findall(text)


@functools.cache
def _compiled(plain: str) -> re.Pattern[str]:
    """`plain` in the syntax of `re`: Unicode classes spelled out from the core's tables."""
    inside = False
    out: list[str] = []
    for token in re.findall(r"\\p\{\w+\}|\\.|.", plain, re.DOTALL):
        inside = (inside or token == "[") and token != "]"
        if token == r"\z":
            out.append(r"\Z")
        elif token.startswith(r"\p") or token in (r"\s", r"\S"):
            ranges = _class_ranges({r"\s": "White_Space", r"\S": "White_Space"}.get(token, token[3:-1]))
            if inside and token == r"\S":
                raise SubwordValueError(r"\S inside brackets is not supported")
            out.append(ranges if inside else f"[{'^' if token == chr(92) + 'S' else ''}{ranges}]")
        else:
            out.append(token)
    return re.compile("".join(out))


@functools.cache
def character_class(name: str) -> re.Pattern[str]:
    """Matches one character of a class of the core's tables, such as "White_Space"."""
    return re.compile(f"[{_class_ranges(name)}]")


def _class_ranges(name: str) -> str:
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in _core.unicode_ranges(name, UNICODE))
