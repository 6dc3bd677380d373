"""What the same content costs in different languages.

Figures are relative to one language, English if nothing is said. The *premium* of a language is how many times as many
tokens it takes; a premium of 1 is *parity* (A. Petrov et al. 2023). The *byte premium* is the same for bytes of UTF-8
(C. Arnett et al. 2024), which says how much of a premium is the encoding's doing and not the vocabulary's.
"""

from __future__ import annotations

import statistics
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import SubwordValueError
from ..scripts import NONE, script_of
from ..tokenizer import Tokenizer
from .parallel import Collection

UNKNOWN = 0.1
"""A language of whose characters more than this share is unknown to the tokenizer has no premium."""

SAMPLE = 2000
"""So many characters say what script a text is in."""


@dataclass(frozen=True, slots=True)
class Language:
    """What the content costs in one language."""

    language: str
    """The code that the file has."""
    name: str | None
    script: str
    """The script of most of its characters, by the name of the Unicode standard."""
    tokens: int
    premium: float | None
    """Tokens, relative to the language of reference; None where too much of the text is unknown to the tokenizer."""
    bytes: int
    byte_premium: float
    characters: int
    tokens_per_character: float
    bytes_per_token: float
    window_characters: int
    """How many characters of this language a context window holds."""
    window_words: int
    """How much content the window holds, told as words of the language of reference: white space ends a word."""
    cost: float | None
    """What the content of a million words of the language of reference costs; None where no price is given."""
    tokens_nfc: int
    """Tokens of the same text with its characters composed (NFC): where it is far below `tokens`, the text is
    decomposed, and the premium says as much of the file as of the tokenizer."""
    unknown: float
    """The share of characters that the tokenizer does not know."""


@dataclass(frozen=True, slots=True)
class Fairness:
    """The languages, from the smallest premium to the greatest, and what they come to."""

    source: str
    layout: str
    note: str
    reference: str
    window: int
    price: float | None
    """For a million tokens."""
    gini: float
    """Of the tokens for the same content: 0 where all languages take as many."""
    median_premium: float
    languages: tuple[Language, ...]


def gini(values: Sequence[float]) -> float:
    """Gini's coefficient: the mean difference of two of the values, as a share of twice their mean.

    >>> gini([2, 2, 2]), gini([0, 1])
    (0.0, 0.5)
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    count = len(ordered)
    ranks = np.arange(1, count + 1)
    return float(((2 * ranks - count - 1) * ordered).sum() / (count * ordered.sum()))


def fairness(tok: Tokenizer, texts: Collection, *, window: int = 128_000, price: float | None = None) -> Fairness:
    """Tokens, premiums and what follows from them, for each language.

    What looks like a special token is text. Texts of FLORES are encoded with the tokens that the tokenizer puts around
    a text, as they were for the published figures; those of other collections without.

    Args:
        texts: as `read_parallel` or `builtin_passage` gives them.
        window: the tokens that a context window holds.
        price: of a million tokens, in any currency.
    """
    if not texts.texts:
        raise SubwordValueError("there is no text to compare")
    wanted = list(dict.fromkeys(each for row in texts.texts for each in (row.text, row.reference, _nfc(row.text))))
    around = texts.layout in ("flores", "flores+")
    counts = tok.count_batch(wanted, allowed_special=set(), disallowed_special=(), add_special_tokens=around)
    tokens = dict(zip(wanted, counts, strict=True))
    rows = []
    for row in texts.texts:
        count, base, words = tokens[row.text], tokens[row.reference], len(row.reference.split())
        size, characters = len(row.text.encode()), len(row.text)
        unknown = _unknown(tok, row.text)
        rows.append(
            Language(
                language=row.language,
                name=row.name,
                script=_script(row.text),
                tokens=count,
                premium=None if unknown > UNKNOWN else count / base,
                bytes=size,
                byte_premium=size / len(row.reference.encode()),
                characters=characters,
                tokens_per_character=count / characters,
                bytes_per_token=size / count,
                window_characters=int(window * characters / count),
                window_words=int(window * words / count),
                cost=None if price is None else price * count / words,
                tokens_nfc=tokens[_nfc(row.text)],
                unknown=unknown,
            )
        )
    premiums = [row.premium for row in rows if row.premium is not None]
    if not premiums:
        raise SubwordValueError(f"{texts.source}: the tokenizer knows too few characters of every one of the languages")
    return Fairness(
        source=texts.source,
        layout=texts.layout,
        note=texts.note,
        reference=texts.reference,
        window=window,
        price=price,
        gini=gini(premiums),
        median_premium=statistics.median(premiums),
        languages=tuple(sorted(rows, key=lambda row: (row.premium is None, row.premium, row.language))),
    )


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _script(text: str) -> str:
    found = Counter(script_of(char) for char in text[:SAMPLE])
    del found[NONE]
    return found.most_common(1)[0][0] if found else NONE


def _unknown(tok: Tokenizer, text: str) -> float:
    """The share of characters that became the token for what is unknown."""
    if tok.unk_id is None:
        return 0.0
    encoding = tok.tokenize(text, set(), ())
    spans = encoding.char_spans[encoding.ids == tok.unk_id]
    return float((spans[:, 1] - spans[:, 0]).sum()) / len(text)
