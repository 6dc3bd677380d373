"""Whether tokens end where morphemes do: the smallest parts of a word that mean something, as in `un|break|able`.

*Precision* is the share of the cuts within words that fall between morphemes, *recall* the share of the places between
morphemes at which there is a cut. A tokenizer that cuts everywhere has a recall of 1, so beside precision stands what
as many cuts at random places would have. The *MorphScore* (C. Arnett, B. Bergen 2025, "Why do language models perform
worse for morphologically complex languages?") is recall by word, of words that are cut at all.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..arguments import path_of
from ..errors import SubwordOSError, SubwordValueError
from ..tokenizer import Tokenizer

MORPHEMES = Path(__file__).with_name("morphemes.tsv")

MARK = "|"

NOTE = "The built-in list: fifteen words a language, written by a machine and not reviewed by linguists."


@dataclass(frozen=True, slots=True)
class Segmented:
    """A word by its morphemes."""

    language: str
    morphemes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """A word as it should be cut, and as it is."""

    word: str
    morphemes: tuple[str, ...]
    pieces: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Boundaries:
    """How cuts and morphemes meet in the words of a language, or of all."""

    language: str
    words: int
    gold: int
    """Places between morphemes."""
    cuts: int
    """Places within words at which the tokenizer cuts."""
    hits: int
    """Those that are both."""
    precision: float | None
    """None where nothing is cut."""
    recall: float
    f1: float
    chance: float | None
    """The precision that as many cuts at random places between characters would have on average."""
    morph_score: float | None
    """The mean share of a word's places between morphemes that are cut; of words that are more than one token."""
    whole: int
    """Words that are one token."""


@dataclass(frozen=True, slots=True)
class Morphology:
    """Cuts and morphemes."""

    source: str
    note: str
    total: Boundaries
    languages: tuple[Boundaries, ...]
    """From the greatest F1 to the smallest; empty where the list names no language."""
    worst: tuple[Example, ...]
    """Words that are cut, but nowhere between morphemes."""


def builtin_morphemes() -> list[Segmented]:
    """The list that comes with the package; see `NOTE`."""
    return read_morphemes(MORPHEMES)


def read_morphemes(path: str | os.PathLike[str]) -> list[Segmented]:
    """The words in a file: a line each, `un|break|able`, or the language before it and a tab: `eng<TAB>un|break|able`.

    Empty lines and lines that start with `#` are passed over. A word of one morpheme has no `|`.

    Raises:
        SubwordOSError: the file cannot be read.
        SubwordValueError: a line is no word by its morphemes; the message says which.
    """
    name = path_of(path)
    try:
        text = Path(name).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SubwordValueError(f"{name}: not UTF-8 (byte {error.start})") from error
    except OSError as error:
        raise SubwordOSError(error.errno, error.strerror, name) from error
    words = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        language, tab, word = line.rpartition("\t")
        morphemes = tuple(word.strip().split(MARK))
        if not all(morphemes) or "\t" in language or any(" " in part for part in morphemes):
            example = "eng<TAB>un|break|able"
            raise SubwordValueError(f"{name}, line {number}: {line!r} is not a word by its morphemes, as {example}")
        words.append(Segmented(language.strip() if tab else "", morphemes))
    if not any(len(word.morphemes) > 1 for word in words):
        raise SubwordValueError(f"{name}: no word of several morphemes, with {MARK} between them")
    return words


def morphology(
    tok: Tokenizer, words: Iterable[Segmented] | None = None, *, source: str = "built-in list", worst: int = 12
) -> Morphology:
    """Compare where a tokenizer cuts words with where their morphemes meet. Words stand behind a space, as in a text.

    Args:
        words: as `read_morphemes` gives them; the list that comes with the package if not given.
        source: what to call them.
        worst: how many words to give that are cut in wrong places only.
    """
    listed = builtin_morphemes() if words is None else list(words)
    if not any(len(word.morphemes) > 1 for word in listed):
        raise SubwordValueError(f"{source}: there is no word of several morphemes")
    found: dict[str, list[_Word]] = {}
    for word in listed:
        found.setdefault(word.language, []).append(_word(tok, word))
    every = [word for group in found.values() for word in group]
    languages = [_boundaries(language, group) for language, group in found.items() if language]
    wrong = [word.example for word in every if word.cuts and word.gold and not word.cuts & word.gold]
    return Morphology(
        source=source,
        note=NOTE if words is None else "",
        total=_boundaries("all", every),
        languages=tuple(sorted(languages, key=lambda row: (-row.f1, row.language))),
        worst=tuple(wrong[:worst]),
    )


@dataclass(frozen=True, slots=True)
class _Word:
    example: Example
    places: int
    """Between characters."""
    gold: frozenset[int]
    """Bytes of the word before each place between morphemes."""
    cuts: frozenset[int]


def _word(tok: Tokenizer, segmented: Segmented) -> _Word:
    word = "".join(segmented.morphemes)
    encoding = tok.tokenize(" " + word, allowed_special=set(), disallowed_special=())
    starts = {int(start) - 1 for start, end in encoding.byte_spans.tolist() if end > start}
    size = len(word.encode())
    gold, at = set(), 0
    for morpheme in segmented.morphemes[:-1]:
        at += len(morpheme.encode())
        gold.add(at)
    pieces = tuple(data for data in encoding.token_bytes if data)
    return _Word(
        Example(word, segmented.morphemes, pieces),
        places=len(word) - 1,
        gold=frozenset(gold),
        cuts=frozenset(start for start in starts if 0 < start < size),
    )


def _boundaries(language: str, words: list[_Word]) -> Boundaries:
    gold = sum(len(word.gold) for word in words)
    cuts = sum(len(word.cuts) for word in words)
    hits = sum(len(word.cuts & word.gold) for word in words)
    expected = sum(
        min(len(word.cuts) * len(word.gold) / word.places, len(word.gold)) for word in words if word.places > 0
    )
    scores = [len(word.cuts & word.gold) / len(word.gold) for word in words if word.cuts and word.gold]
    return Boundaries(
        language=language,
        words=len(words),
        gold=gold,
        cuts=cuts,
        hits=hits,
        precision=hits / cuts if cuts else None,
        recall=hits / gold if gold else 0.0,
        f1=2 * hits / (cuts + gold) if cuts + gold else 0.0,
        chance=expected / cuts if cuts else None,
        morph_score=sum(scores) / len(scores) if scores else None,
        whole=sum(not word.cuts for word in words),
    )
