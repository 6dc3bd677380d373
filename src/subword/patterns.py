"""Split patterns: the regular expressions that cut text into pieces before the model sees it.

One row a pattern. The core compiles each expression into an automaton (`crates/core/src/split/regex/`); a few have a
hand-written scanner there besides, which is faster. The tests run both against the expression itself. The pure-Python
engine runs it with `re` and the core's Unicode tables.

To add a pattern: one row here.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from . import _core
from .errors import SubwordValueError

UNICODE = "16.0"
"""The Unicode version of `\\p{L}`, `\\p{N}`, `\\s` … in tiktoken 0.14 and HF tokenizers 0.23."""

SYNTAXES = ("tiktoken", "oniguruma")
"""How an expression is written: for tiktoken (fancy-regex), or for HF tokenizers (Oniguruma, in Ruby's syntax)."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A named way of cutting text into pieces.

    `regex` is the expression as its origin publishes it. `plain` gives the same pieces without possessive
    quantifiers and with `\\z` for the end of the text, which is what HF's regex engine and Python's `re` need:
    in HF's syntax `$` also matches before a newline, and `{1,3}+` repeats instead of being possessive.

    Where there are several expressions, each cuts the pieces that the one before it yields. What no match covers is a
    piece too; with `drops`, it is left out.
    """

    name: str
    regex: str | tuple[str, ...]
    origin: str
    users: str
    plain: str | tuple[str, ...] = ""
    aliases: tuple[str, ...] = ()
    drops: bool = False

    def __post_init__(self) -> None:
        if not self.plain:
            object.__setattr__(self, "plain", self.regex)

    @property
    def steps(self) -> tuple[str, ...]:
        """The plain expressions, one after the other."""
        return (self.plain,) if isinstance(self.plain, str) else self.plain


def _joined(*alternatives: str) -> str:
    return "|".join(alternatives)


_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_GPT2_POSSESSIVE = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_O200K = _joined(
    rf"[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}]*[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}]+{_CONTRACTION}?",
    rf"[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}]+[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}]*{_CONTRACTION}?",
    r"\p{N}{1,3}",
    r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
    r"\s*[\r\n]+",
    r"\s+(?!\S)",
    r"\s+",
)

_CLIP = r"[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"

PATTERNS: dict[str, Pattern] = {
    row.name: row
    for row in (
        Pattern(
            name="gpt2",
            regex=_GPT2_POSSESSIVE,
            plain=_GPT2,
            origin="OpenAI, GPT-2 (2019); with possessive quantifiers in tiktoken (r50k_pat_str)",
            users="gpt2, r50k_base, RoBERTa, GPT-Neo, GPT-NeoX",
            aliases=(r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",),  # minbpe
        ),
        Pattern(
            name="p50k",
            regex=_GPT2_POSSESSIVE,
            plain=_GPT2,
            origin="OpenAI, tiktoken (r50k_pat_str): the expression of gpt2",
            users="p50k_base, p50k_edit (Codex)",
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
            origin="OpenAI, tiktoken (2024)",
            users="o200k_base, o200k_harmony (GPT-4o and later)",
        ),
        Pattern(
            name="llama3",
            regex=_joined(
                _CONTRACTION,
                r"[^\r\n\p{L}\p{N}]?\p{L}+",
                r"\p{N}{1,3}",
                r" ?[^\s\p{L}\p{N}]+[\r\n]*",
                r"\s*[\r\n]+",
                r"\s+(?!\S)",
                r"\s+",
            ),
            origin="Meta, tokenizer.json and tokenizer.py of Llama 3 (2024)",
            users="Llama 3, 3.1, 3.2 and 3.3",
        ),
        Pattern(
            name="llama4",
            regex=_O200K,
            origin="Meta, llama-models, llama4/tokenizer.py (2025): the expression of o200k",
            users="Llama 4",
        ),
        Pattern(
            name="qwen2",
            regex=_joined(
                _CONTRACTION,
                r"[^\r\n\p{L}\p{N}]?\p{L}+",
                r"\p{N}",
                r" ?[^\s\p{L}\p{N}]+[\r\n]*",
                r"\s*[\r\n]+",
                r"\s+(?!\S)",
                r"\s+",
            ),
            origin="Alibaba, tokenizer.json of Qwen2 (2024); llama3 with single digits",
            users="Qwen 1.5, Qwen 2, Qwen 2.5, Qwen 3",
        ),
        Pattern(
            name="qwen3.5",
            regex=_joined(
                _CONTRACTION,
                r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+",
                r"\p{N}",
                r" ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*",
                r"\s*[\r\n]+",
                r"\s+(?!\S)",
                r"\s+",
            ),
            origin="Alibaba, tokenizer.json of Qwen3.5 (2026); qwen2 with marks as letters",
            users="Qwen 3.5, Qwen 3.6",
        ),
        Pattern(
            name="deepseek-v3",
            regex=(
                r"\p{N}{1,3}",
                "[一-龥\u3040-ゟ゠-ヿ]+",  # these characters and, below, \r and \n stand for themselves there
                r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^"""
                "\r\n"
                r"\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+["
                "\r\n"
                r"]*|\s*["
                "\r\n"
                r"]+|\s+(?!\S)|\s+",
            ),
            origin="DeepSeek, tokenizer.json of DeepSeek-V3 (2024): three splits, one after the other",
            users="DeepSeek-V3, DeepSeek-R1",
        ),
        Pattern(
            name="kimi",
            regex=_joined(
                r"[\p{Han}]+",
                r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*"
                rf"[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}&&[^\p{{Han}}]]+{_CONTRACTION}?",
                r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
                rf"[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}&&[^\p{{Han}}]]*{_CONTRACTION}?",
                r"\p{N}{1,3}",
                r" ?[^\s\p{L}\p{N}]+[\r\n]*",
                r"\s*[\r\n]+",
                r"\s+(?!\S)",
                r"\s+",
            ),
            origin="Moonshot AI, tokenization_kimi.py of Kimi K2 (2025); o200k with Chinese characters apart",
            users="Moonlight, Kimi K2 and later",
        ),
        Pattern(
            name="starcoder",
            regex=(r"\p{N}", _GPT2),
            origin="BigCode, tokenizer.json of StarCoder (2023): Digits, one by one, and then ByteLevel. "
            "(Digits of tokenizers 0.23 knows 13 more, of Unicode 17: U+11DE0…11DE9 and U+16FF4…16FF6)",
            users="StarCoder, StarCoder 2, SmolLM",
        ),
        Pattern(
            name="tekken",
            regex=_joined(
                r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
                r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
                r"\p{N}",
                r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
                r"\s*[\r\n]+",
                r"\s+(?!\S)",
                r"\s+",
            ),
            origin="Mistral AI, tekken.json of Mistral Nemo (2024); o200k without contractions, with single digits",
            users="Mistral Nemo and later",
        ),
        Pattern(
            name="whitespace",
            regex=r"\S+|\s+",
            origin="the textbooks: runs of white space and runs of everything else",
            users="textbook BPE",
        ),
        Pattern(
            name="whitespace-split",
            regex=r"\S+",
            origin="WhitespaceSplit of HF tokenizers: whitespace, with the white space dropped",
            users="character-level BPE of HF tokenizers",
            drops=True,
        ),
        Pattern(
            name="spaces",
            regex=r"[^ \r\n]+",
            origin="subword-nmt (2016): what stands between spaces and line ends, which are dropped",
            users="subword-nmt",
            drops=True,
        ),
        Pattern(
            name="clip",
            # Of either case, but for `st`, which in HF's syntax would match a ligature too.
            regex=rf"<\|[sSſ](?i:tartoftext\|>)|(?i:<\|endoftext\|>)|{_CONTRACTION}|{_CLIP}",
            origin="OpenAI, CLIP (2021), where the flag for letters of either case is set; white space is dropped",
            users="CLIP",
            drops=True,
        ),
        Pattern(
            name="clip-cased",
            regex=rf"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|{_CLIP}",
            origin="OpenAI, tokenizer.json of CLIP: without that flag, which makes no difference in lower case",
            users="CLIP in transformers",
            drops=True,
        ),
        Pattern(
            name="none",
            regex=r"(?s:.+)",
            plain=r"[\s\S]+",
            origin="no splitting: the whole text is one piece",
            users="textbook BPE",
        ),
    )
}

DIGITS: dict[str, str] = {
    "one": r"\p{N}",
    "three-left": r"\p{N}{1,3}",
    "three-right": r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))",
}
"""The groupings of the stage `Digits`, each with the expression that finds its groups."""

_SCANNERS = {PATTERNS[name].steps[0]: name for name in ("gpt2", "cl100k", "llama3", "qwen2", "o200k", "none")}
"""The expressions for which the core has a hand-written scanner, with its name."""


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


def scanner_of(plain: str) -> str | None:
    """The name of the core's scanner that equals a plain expression, or None."""
    return _SCANNERS.get(plain)


def pattern_of(*regexes: str) -> Pattern | None:
    """The first row that an expression found in a file spells, or that several in a row do; None if there is none."""
    spelled = regexes[0] if len(regexes) == 1 else regexes
    return next((row for row in PATTERNS.values() if spelled in (row.regex, row.plain, *row.aliases)), None)


def find_pattern(pattern: str) -> Pattern:
    """The row that is called so, or whose regular expression this is.

    Raises:
        SubwordValueError: neither.
    """
    row = pattern_of(pattern) if isinstance(pattern, str) and pattern not in PATTERNS else None
    return row or get_pattern(pattern)


def digits_and_rest(row: Pattern) -> tuple[str, Pattern] | None:
    """A row that is a grouping of `DIGITS` and then another row, as these two; None for any other."""
    groupings = [grouping for grouping, groups in DIGITS.items() if row.steps[0] == groups]
    rest = pattern_of(*row.steps[1:]) if len(row.steps) > 1 else None
    return (groupings[0], rest) if groupings and rest else None


# ======================== the expressions themselves, in plain Python ========================


def split(name: str, text: str) -> list[str]:
    """Cut `text` with the expressions of a row, in plain Python: the oracle of the core.

    >>> split("cl100k", "HOW'S 1234567")
    ['HOW', "'S", ' ', '123', '456', '7']
    """
    pieces = [text]
    row = get_pattern(name)
    for plain in row.steps:
        pieces = [part for piece in pieces for part in split_by(plain, "oniguruma", piece, row.drops)]
    return pieces


def split_by(regex: str, syntax: str, text: str, drops: bool = False) -> Iterator[str]:
    """Cut `text` at the ends of matches: what no match covers is a piece too, and a match of nothing is a boundary.

    With `drops`, what no match covers is left out.

    Raises:
        SubwordValueError: Python's `re` has no way to run the expression.
    """
    expression = compiled(regex, syntax)
    start = 0
    while start < len(text):
        match = expression.match(text, start)
        if match and match.end() > start:
            end = match.end()
        else:
            later = expression.search(text, start + 1)
            end = later.start() if later else len(text)
            if drops:
                start = end
                continue
        yield text[start:end]
        start = end


def split_digits(grouping: str, text: str, unicode: str = UNICODE) -> list[str]:
    """The groups of numbers in `text` and what is between them, in plain Python.

    >>> split_digits("three-right", "in 1234567")
    ['in ', '1', '234', '567']
    """
    return _digits(grouping, unicode).findall(text)


@functools.cache
def _digits(grouping: str, unicode: str) -> re.Pattern[str]:
    number = _spelled(_core.unicode_ranges("N", unicode))
    return re.compile(f"{DIGITS[grouping].replace(chr(92) + 'p{N}', number)}|[^{number[1:]}+")


_TOKEN = re.compile(
    r"""(?P<group>\(\?[a-zA-Z-]+[:)]) | (?P<number>\{\d*,?\d*\}\+) | (?P<open>\[\^?) | (?P<escape>\\[pP]\{[^}]*\}
    | \\x\{[^}]*\} | \\x[0-9a-fA-F]{2} | \\u[0-9a-fA-F]{4} | \\.) | (?P<char>.)""",
    re.DOTALL | re.VERBOSE,
)

_Ranges = list[tuple[int, int]]


@functools.cache
def compiled(regex: str, syntax: str) -> re.Pattern[str]:
    """An expression in the syntax of `re`: classes spelled out from the core's tables."""

    def refuse(what: str) -> SubwordValueError:
        return SubwordValueError(f"the reference engine cannot run the split pattern {regex!r}: {what}")

    ruby = syntax == "oniguruma"
    out, at = list[str](), 0
    while at < len(regex):
        token = _TOKEN.match(regex, at)
        assert token is not None
        at, text = token.end(), token[0]
        if token["open"]:
            ranges, at = _class(regex, token.start(), ruby, refuse)
            out.append(_spelled(ranges))
        elif token["group"]:
            flags = text[2:-1]
            known = {"i", "m"} if ruby else {"i", "s", "m"}
            if text.endswith(")") or not set(flags) <= known:
                raise refuse(f"{text} is not supported there")
            out.append(f"(?{flags.replace('m', 's') if ruby else flags}:")
        elif token["number"] and ruby:
            raise refuse(f"{text} is not supported there")
        elif text in (r"\z", "$"):
            out.append(r"\Z" if text == r"\z" or not ruby else r"(?=\n|\Z)")
        elif text == r"\Z":
            out.append(r"(?=\n?\Z)" if ruby else r"(?=\n*\Z)")
        elif text == "^":
            out.append("(?m:^)" if ruby else r"\A")
        elif text in (r"\b", r"\B"):
            word = _spelled(_escape(r"\w", ruby, refuse))
            ways = ("(?<={0})(?!{0})", "(?<!{0})(?={0})") if text == r"\b" else ("(?<={0})(?={0})", "(?<!{0})(?!{0})")
            out.append(f"(?:{'|'.join(ways).format(word)})")
        elif token["escape"] and text != r"\A":
            out.append(_spelled(_escape(text, ruby, refuse)))
        else:
            out.append(text)
    try:
        return re.compile("".join(out))
    except (re.error, OverflowError, RecursionError) as error:
        raise refuse(f"re says {error}") from None


def _class(regex: str, start: int, ruby: bool, refuse: Callable[[str], SubwordValueError]) -> tuple[_Ranges, int]:
    """The ranges of the class whose `[` stands at `start`, and where it ends."""
    negated = regex.startswith("[^", start)
    at = start + 1 + negated
    operands: list[_Ranges] = [[]]
    while not regex.startswith("]", at):
        token = _TOKEN.match(regex, at)
        if token is None or regex.startswith("[:", at):
            raise refuse(f"the class at character {start}")
        if token["open"]:
            ranges, at = _class(regex, at, ruby, refuse)
            operands[-1] += ranges
        elif regex.startswith("&&", at):
            operands.append([])
            at += 2
        else:
            single = token["escape"] or regex[at]
            ranges = _escape(single, ruby, refuse, in_class=True) if token["escape"] else [(ord(single),) * 2]
            at += len(single)
            if regex.startswith("-", at) and not regex.startswith("-]", at):
                token = _TOKEN.match(regex, at + 1)
                last = token and (token["escape"] or regex[at + 1])
                assert last
                ends = _escape(last, ruby, refuse) if last.startswith("\\") else [(ord(last),) * 2]
                ranges = [(ranges[0][0], ends[0][0])]
                at += 1 + len(last)
            operands[-1] += ranges
    outside = [range for operand in operands for range in _negated(operand)]
    return (_negated(_negated(outside)) if negated else _negated(outside)), at + 1


_CLASSES = {"s": "White_Space", "d": "Nd", "w": "Word", "h": "ASCII_Hex_Digit"}
_CHARS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "a": "\a", "e": "\x1b"}


def _escape(text: str, ruby: bool, refuse: Callable[[str], SubwordValueError], in_class: bool = False) -> _Ranges:
    """The ranges that a backslash and what follows it stand for."""
    kind = text[1]
    if kind in "pP" and len(text) > 2:
        name = text[3:-1]
        negated = (kind == "P") != name.startswith("^")
        ranges = _core.unicode_ranges(name.lstrip("^"), UNICODE)
    elif kind.lower() in _CLASSES:
        negated = kind.isupper()
        ranges = _core.unicode_ranges(_CLASSES[kind.lower()], UNICODE)
        if ruby and kind in "wW":  # what Oniguruma takes for a word character, as HF has it
            fractions = [] if in_class else [(0xB2, 0xB3), (0xB9, 0xB9), (0xBC, 0xBE)]
            ranges = _negated([*_negated([*ranges, *fractions]), (0x200C, 0x200D)])
    elif kind in "xu" and len(text) > 2:
        point = int(text[2:].strip("{}"), 16)
        return [(point, point)]
    elif kind in _CHARS or not kind.isalnum():
        char = _CHARS.get(kind, kind)
        return [(ord(char), ord(char))]
    else:
        raise refuse(f"{text} is not supported there")
    return _negated(ranges) if negated else ranges


def _negated(ranges: _Ranges) -> _Ranges:
    """All code points outside; surrogates, which stand for ill-formed bytes, too."""
    gaps, start = [], 0
    for first, last in sorted(ranges):
        if first > start:
            gaps.append((start, first - 1))
        start = max(start, last + 1)
    return [*gaps, (start, sys.maxunicode)] if start <= sys.maxunicode else gaps


def _spelled(ranges: _Ranges) -> str:
    return "[" + "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges) + "]" if ranges else "(?!)"


@functools.cache
def character_class(name: str, unicode: str = UNICODE) -> re.Pattern[str]:
    """Matches one character of a class of the core's tables, such as "White_Space"."""
    return re.compile(_spelled(_core.unicode_ranges(name, unicode)))
