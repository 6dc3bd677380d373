"""How much text a token holds, how evenly the vocabulary is used, and which words it cuts up at the greatest cost.

A word is what stands between white space, without the marks at its ends; so in languages without spaces between words,
figures that speak of words mean nothing.
"""

from __future__ import annotations

import itertools
import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import SubwordValueError
from ..tokenizer import Text, Tokenizer

Data: TypeAlias = bytes

ALPHA = 2.5
"""The order at which Rényi efficiency went best with the quality of translations (V. Zouhar et al. 2023, "Tokenization
and the Noiseless Channel")."""

BATCH = 16 << 20
PERCENTILES = (10, 50, 90)
SAMPLE = 60
"""So many tokens are the sample of a text."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How a figure is spread over the tokens of a text."""

    mean: float
    deviation: float
    p10: float
    p50: float
    p90: float


@dataclass(frozen=True, slots=True)
class Split:
    """A word that is cut up."""

    word: str
    count: int
    pieces: tuple[bytes, ...]
    extra: int
    """The tokens that one token for the word would have saved."""


@dataclass(frozen=True, slots=True)
class Efficiency:
    """What a text comes to in tokens."""

    source: str
    tokens: int
    bytes: int
    characters: int
    words: int
    bytes_per_token: Spread
    characters_per_token: Spread
    """A character that several tokens share counts for the first."""
    words_per_token: float
    fertility: float
    """Tokens of the whole text (marks and white space too) for each of its words."""
    distinct_words: int
    one_token_words: float
    """The share of words that are one token, with a space before or without: of all words of the text."""
    one_token_distinct: float
    """The same of its distinct words."""
    entropy: float
    """Shannon's, of the tokens of the text: bits a token."""
    alpha: float
    renyi_efficiency: float
    """Rényi's entropy of order `alpha` over the greatest that a vocabulary of this size could have."""
    renyi_efficiency_used: float
    """The same over the greatest of the entries that the text uses, as some tools have it."""
    vocabulary: int
    used: int
    """How many of its entries the text uses."""
    lengths: tuple[int, ...]
    """How many of the text's tokens have 0 bytes, 1 byte, 2 bytes and so on."""
    wasteful: tuple[Split, ...]
    """The words whose cutting costs the most tokens, the costliest first."""
    sample: tuple[Data, ...]
    """The first tokens of the text."""


def renyi_entropy(counts: Iterable[int], alpha: float = ALPHA) -> float:
    """Rényi's entropy of the shares that `counts` have, in bits; of order 1, which is the limit, Shannon's.

    >>> renyi_entropy([1, 1, 1, 1], 2.5), renyi_entropy([1, 1, 1, 1], 1)
    (2.0, 2.0)
    """
    if not alpha > 0:
        raise SubwordValueError(f"alpha must be greater than 0, not {alpha!r}")
    each = np.array([count for count in counts if count], dtype=np.float64)
    if not len(each):
        raise SubwordValueError("there are no tokens to take an entropy of")
    shares = each / each.sum()
    if alpha == 1:
        return float(-(shares * np.log2(shares)).sum()) + 0.0
    if math.isinf(alpha):
        return float(-np.log2(shares.max())) + 0.0
    return float(np.log2((shares**alpha).sum()) / (1 - alpha)) + 0.0


def renyi_efficiency(counts: Iterable[int], alpha: float = ALPHA, vocabulary: int | None = None) -> float:
    """Rényi's entropy over the greatest of so many entries: those of the vocabulary, or (None) those counted."""
    each = [count for count in counts if count]
    size = len(each) if vocabulary is None else vocabulary
    return renyi_entropy(each, alpha) / math.log2(size) if size > 1 else 1.0


def efficiency(
    tok: Tokenizer, texts: Iterable[Text], *, source: str = "text", alpha: float = ALPHA, wasteful: int = 30
) -> Efficiency:
    """Measure a tokenizer on texts. What looks like a special token is text.

    Args:
        texts: long ones in parts, as `corpus.read_texts` gives them, so that words are not cut.
        source: what to call them.
        alpha: the order of Rényi's entropy.
        wasteful: how many of the costliest words to give.
    """
    if isinstance(texts, (str, bytes, bytearray, memoryview)):
        raise SubwordValueError("texts must be a list of texts, not one text: put it into a list")
    counts = np.zeros(tok.n_vocab, dtype=np.int64)
    words: Counter[str] = Counter()
    sample: list[int] = []
    size = characters = 0
    for batch in _batches(texts):
        ids = tok.encode_batch_to_numpy(batch, allowed_special=set(), disallowed_special=()).ids
        counts += np.bincount(ids, minlength=len(counts))
        sample = sample or ids[:SAMPLE].tolist()
        for part in batch:
            size += len(part)
            text = part.decode("utf-8", "replace")
            characters += len(text)
            words.update(text.split())
    tokens = int(counts.sum())
    if not tokens:
        raise SubwordValueError(f"{source}: there is no text to measure")
    words = _without_marks(words)
    running = sum(words.values())
    used = np.flatnonzero(counts)
    held = [tok.token_bytes(id) for id in used.tolist()]
    lengths = np.array([len(data) for data in held])
    starts = np.array([sum(byte & 0xC0 != 0x80 for byte in data) for data in held])
    splits, one, one_distinct = _words(tok, words, wasteful)
    return Efficiency(
        source=source,
        tokens=tokens,
        bytes=size,
        characters=characters,
        words=running,
        bytes_per_token=_spread(lengths, counts[used], size / tokens),
        characters_per_token=_spread(starts, counts[used], characters / tokens),
        words_per_token=running / tokens,
        fertility=tokens / running if running else 0.0,
        distinct_words=len(words),
        one_token_words=one,
        one_token_distinct=one_distinct,
        entropy=renyi_entropy(counts[used].tolist(), 1),
        alpha=alpha,
        renyi_efficiency=renyi_efficiency(counts[used].tolist(), alpha, len(tok.vocab)),
        renyi_efficiency_used=renyi_efficiency(counts[used].tolist(), alpha),
        vocabulary=len(tok.vocab),
        used=len(used),
        lengths=tuple(np.bincount(lengths, weights=counts[used]).astype(np.int64).tolist()),
        wasteful=splits,
        sample=tuple(map(tok.token_bytes, sample)),
    )


def _batches(texts: Iterable[Text]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    held = 0
    for text in texts:
        batch.append(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text))
        held += len(batch[-1])
        if held >= BATCH:
            yield batch
            batch, held = [], 0
    yield batch


def _spread(values: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], mean: float) -> Spread:
    """Of values that are there so many times. `mean` is that of the text, which stages may have rewritten."""
    order = np.argsort(values, kind="stable")
    total = int(counts.sum())
    reached = np.cumsum(counts[order])
    low, middle, high = (float(values[order[np.searchsorted(reached, total * share / 100)]]) for share in PERCENTILES)
    own = float((values * counts).sum()) / total
    deviation = math.sqrt(float(((values - own) ** 2 * counts).sum()) / total)
    return Spread(mean, deviation, low, middle, high)


def _without_marks(found: Counter[str]) -> Counter[str]:
    """The words, without what is neither letter, mark that belongs to one, nor digit, at their ends."""
    words: Counter[str] = Counter()
    for word, count in found.items():
        start, end = 0, len(word)
        while start < end and unicodedata.category(word[start])[0] not in "LMN":
            start += 1
        while end > start and unicodedata.category(word[end - 1])[0] not in "LMN":
            end -= 1
        if start < end:
            words[word[start:end]] += count
    return words


def _words(tok: Tokenizer, words: Counter[str], most: int) -> tuple[tuple[Split, ...], float, float]:
    """The costliest words; the share of words that are one token; the same of the distinct ones."""
    if not words:
        return (), 0.0, 0.0
    listed = list(words)
    often = np.array([words[word] for word in listed])
    both = tok.count_batch(
        itertools.chain(listed, (" " + word for word in listed)), allowed_special=set(), disallowed_special=()
    )
    least = np.array(both).reshape(2, -1).min(axis=0)
    one = least == 1
    lost = (least - 1) * often
    worst = np.lexsort((np.arange(len(lost)), -lost))[:most].tolist()
    splits = []
    for at in worst:
        if lost[at] > 0:
            spaced = both[len(listed) + at] <= both[at]
            ids = tok.encode_ordinary(" " * spaced + listed[at])
            pieces = tuple(map(tok.token_bytes, ids))
            splits.append(Split(listed[at], int(often[at]), pieces, int(lost[at])))
    return tuple(splits), float(often[one].sum() / often.sum()), float(one.mean())
