"""Stages and ways to decode that HF tokenizers has in general, in plain Python: what the core is tested against."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import groupby

from . import _core, patterns
from .byte_alphabet import spelled_bytes, to_alphabet
from .scripts import SCRIPTS
from .stages import ByteAlphabet, Nmt, Replace, ReplaceRegex, SplitAt, SplitLength, SplitScripts

Span = tuple[int, int]

# ======================== matches ========================


def events(kind: str, pattern: str, unicode: str, text: str) -> Iterator[tuple[int, int, bool]]:
    """The matches in a text and what is between them, in order. A match of nothing counts, but for one right behind
    another match. In a text of nothing there are none."""
    expression = _expression(kind, pattern, unicode)
    kept, start, last = 0, 0, -1
    while text and start <= len(text):
        match = expression.search(text, start)
        if match is None:
            break
        left, right = match.span()
        start = right if right > left else right + 1
        if left == right == last:
            continue
        if kept < left:
            yield kept, left, False
        yield left, right, True
        kept = last = right
    if kept < len(text):
        yield kept, len(text), False


@cache
def _expression(kind: str, pattern: str, unicode: str) -> re.Pattern[str]:
    if kind == "string":
        return re.compile(re.escape(pattern))
    if kind == "regex":
        return patterns.compiled(pattern, "oniguruma")
    if kind == "white-space":
        return patterns.character_class("White_Space", unicode)
    if kind == "numbers":
        return patterns.character_class("N", unicode)
    marks = patterns.character_class("P", unicode).pattern
    return re.compile(f"[{re.escape(string.punctuation)}]|{marks}")


# ======================== cutting ========================


def cut_at(stage: SplitAt, text: str) -> Iterator[Span]:
    """The pieces of a `SplitAt`."""
    found = [(a, b, hit != stage.invert) for a, b, hit in events(stage.kind, stage.pattern, stage.unicode, text)]
    pieces: list[Span] = []
    before = False
    for start, end, hit in found:
        joins = {
            "merged-with-previous": hit and not before,
            "merged-with-next": before and not hit,
            "contiguous": hit == before,
        }.get(stage.behavior, False)
        if joins and pieces:
            pieces[-1] = (pieces[-1][0], end)
        elif not (hit and stage.behavior == "removed"):
            pieces.append((start, end))
        before = hit
    return ((start, end) for start, end in pieces if start < end)


def cut_by_script(stage: SplitScripts, text: str) -> Iterator[Span]:
    """The runs of one script."""
    starts, last = list[int](), ""
    for at, char in enumerate(text):
        script = _script(char, stage.unicode)
        if script and script != last:
            starts.append(at)
            last = script
    return zip(starts, [*starts[1:], len(text)], strict=True)


@cache
def _script(char: str, unicode: str) -> str:
    for name in (*SCRIPTS, "Common", "Inherited"):
        if any(first <= ord(char) <= last for first, last in _core.unicode_ranges(name, unicode)):
            return name
    return ""


def cut_by_length(stage: SplitLength, text: str) -> Iterator[Span]:
    return ((start, min(start + stage.length, len(text))) for start in range(0, len(text), stage.length))


CUTS: dict[type, Callable[..., Iterator[Span]]] = {
    SplitAt: cut_at,
    SplitScripts: cut_by_script,
    SplitLength: cut_by_length,
}

# ======================== rewriting ========================

Part = tuple[int, int, str]
"""From where to where in a text, and what becomes of it."""


def replaced(stage: Replace | ReplaceRegex, text: str) -> Iterator[Part]:
    if isinstance(stage, ReplaceRegex):
        found = events("regex", stage.regex, stage.unicode, text)
    else:
        runs = f"(?:{re.escape(stage.old)}){{2,}}" if stage.runs else re.escape(stage.old)
        found = events("regex", runs, "16.0", text) if stage.runs else events("string", stage.old, "16.0", text)
    for start, end, hit in found:
        yield from [(start, end, stage.new)] if hit else ((at, at + 1, text[at]) for at in range(start, end))


DROPPED = re.compile("[\x01-\x08\x0b\x0e-\x1f\x7f\x8f\x9f]")
SPACED = re.compile("[\t\n\f\r\u1680\u200b-\u200f\u2028\u2029\u2581\ufeff\ufffd]")


def nmt(stage: Nmt, text: str) -> Iterator[Part]:
    for at, char in enumerate(text):
        yield at, at + 1, SPACED.sub(" ", DROPPED.sub("", char))


def alphabet(stage: ByteAlphabet, text: str) -> Iterator[Part]:
    for at, char in enumerate(text):
        yield at, at + 1, to_alphabet(char.encode("utf-8", "surrogateescape"))


REWRITES: dict[type, Callable[..., Iterator[Part]]] = {
    Replace: replaced,
    ReplaceRegex: replaced,
    Nmt: nmt,
    ByteAlphabet: alphabet,
}

# ======================== decoding ========================

CLEANED = {
    " .": ".", " ?": "?", " !": "!", " ,": ",", " ' ": "'", " n't": "n't", " 'm": "'m", " do not": " don't",
    " 's": "'s", " 've": "'ve", " 're": "'re",
}  # fmt: skip


def cleaned(text: str, cleanup: bool = True) -> str:
    for old, new in CLEANED.items() if cleanup else ():
        text = text.replace(old, new)
    return text


def decode_steps(steps: Sequence[tuple[str, ...]], tokens: list[str]) -> bytes:
    """What tokens decode to by the steps of a `DecodeSteps`."""
    for number, (name, *settings) in enumerate(steps):
        if name == "byte-level":
            spelled = [(token, spelled_bytes(token)) for token in tokens]
            data = b"".join(token.encode() if own is None else own for token, own in spelled)
            if number == len(steps) - 1:
                return data
            tokens = [data.decode(errors="replace")]
        elif name != "spell-bytes":
            tokens = list(_STEPS[name](tokens, *settings))
    return "".join(tokens).encode()


def _replace(tokens: list[str], old: str, new: str, kind: str = "string") -> Iterator[str]:
    for token in tokens:
        yield "".join(new if hit else token[a:b] for a, b, hit in events(kind, old, "16.0", token))


def _byte_fallback(tokens: list[str]) -> Iterator[str]:
    for is_bytes, run in groupby(
        tokens, key=lambda token: bool(re.fullmatch("<0x(?:[0-9a-fA-F]|[+])[0-9a-fA-F]>", token))
    ):
        if not is_bytes:
            yield from run
            continue
        data = bytes(int(token[3:5], 16) for token in run)
        try:
            yield data.decode()
        except UnicodeDecodeError:
            yield from "\ufffd" * len(data)


def _strip(tokens: list[str], content: str, start: str, stop: str) -> Iterator[str]:
    for token in tokens:
        left = re.match(f"{re.escape(content)}{{0,{start}}}", token)
        rest = token[left.end() if left else 0 :]
        reversed_rest = rest[::-1]
        right = re.match(f"{re.escape(content)}{{0,{stop}}}", reversed_rest)
        yield reversed_rest[right.end() if right else 0 :][::-1]


def _word_piece(tokens: list[str], prefix: str, cleanup: str) -> Iterator[str]:
    for number, token in enumerate(tokens):
        inner = token.removeprefix(prefix) if token.startswith(prefix) else " " + token
        yield cleaned(inner if number else token, cleanup == "true")


def _metaspace(tokens: list[str], replacement: str, strips: str) -> Iterator[str]:
    for number, token in enumerate(tokens):
        yield token.replace(replacement, "" if number == 0 and strips == "true" else " ")


def _ctc(tokens: list[str], pad: str, delimiter: str, cleanup: str) -> Iterator[str]:
    for token, _ in groupby(tokens):
        shown = token.replace(pad, "") if pad else token
        shown = cleaned(shown).replace(delimiter, " ") if cleanup == "true" else shown
        if shown:
            yield shown


def _end_of_word(tokens: list[str], suffix: str) -> Iterator[str]:
    for number, token in enumerate(tokens, 1):
        yield token.replace(suffix, "" if number == len(tokens) else " ")


_STEPS: dict[str, Callable[..., Iterable[str]]] = {
    "replace": _replace,
    "replace-regex": lambda tokens, regex, new: _replace(tokens, regex, new, "regex"),
    "byte-fallback": _byte_fallback,
    "fuse": lambda tokens: ["".join(tokens)],
    "spaces": lambda tokens: [" ".join(tokens)],
    "strip": _strip,
    "word-piece": _word_piece,
    "metaspace": _metaspace,
    "ctc": _ctc,
    "end-of-word": _end_of_word,
}
