"""How large a vocabulary should be: what more entries cost a model, and what they save on a text.

A model has a table of embeddings, a row of `width` numbers for each entry; and, where the two are not tied, an output
layer of the same size. More entries make texts shorter, which attention and every layer feel; but each is met less
often in training. C. Tao et al. 2024, "Scaling Laws with Vocabulary", say which size suits a model of so many
parameters.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..arguments import integer, list_of
from ..engine import text_bytes
from ..errors import SubwordValueError, SubwordWarning
from ..patterns import PATTERNS
from ..spec import Split
from ..tokenizer import Text, Tokenizer
from ..training import train

SIZES = (1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000)

FEW = 100
"""An entry that a text has fewer times than this is counted as rare: too few for a model to learn it well from."""


@dataclass(frozen=True, slots=True)
class Weight:
    """What a vocabulary of a size costs a model."""

    vocabulary: int
    width: int
    table: int
    """Numbers in the table of embeddings: entries × width."""
    tables: int
    """Those of the output layer too, which are as many; the same as `table` where they are tied."""
    bytes: int
    """What the tables take in memory."""
    output_flops: int
    """Floating-point operations of the output layer for each token of a text, forwards: 2 × entries × width."""
    share: float | None
    """Of the model's parameters; None where these are not known."""


@dataclass(frozen=True, slots=True)
class Size:
    """A vocabulary of a size on a text."""

    name: str
    trained: bool
    """Whether it was trained on the text; else it is that of the tokenizer."""
    weight: Weight
    tokens: int
    bytes_per_token: float
    attention: float
    """What attention to the text costs, which goes by the square of its tokens; that of the shortest row is 1."""
    window_words: int
    """Words of such text that a context window holds: white space ends a word."""
    output_flops: int
    """Of the output layer, for the whole text: more entries, but fewer tokens."""
    occurrences: float
    """How often an entry is met in the text, on average."""
    median: float
    """The same for the entry in the middle."""
    rare: float
    """The share of entries that are met fewer than `FEW` times."""


@dataclass(frozen=True, slots=True)
class Optimum:
    """What the published scaling law holds best, by each of its three fits."""

    parameters: int
    """Those of the model without its tables."""
    width: int
    """The width that the law reckons with for such a model."""
    by_flops: int
    """Fit 1: from runs of equal cost."""
    by_derivative: int
    """Fit 2: from where more entries stop to pay."""
    by_loss: int
    """Fit 3: the minimum of the fitted loss."""


@dataclass(frozen=True, slots=True)
class VocabularySize:
    """A vocabulary's weight in a model, the curve over sizes, and the law's advice."""

    window: int
    parameters: int | None
    weight: Weight
    """Of the tokenizer itself."""
    source: str
    text_bytes: int
    sizes: tuple[Size, ...]
    """The tokenizer and vocabularies trained on the text, by size; empty where there is no text."""
    optimum: Optimum | None


def weight(
    vocabulary: int, width: int, *, tied: bool = False, bytes_per_number: int = 2, parameters: int | None = None
) -> Weight:
    """What so many entries cost a model.

    >>> found = weight(128_256, 4096, parameters=8_000_000_000)
    >>> found.table, found.tables, round(found.share, 2)
    (525336576, 1050673152, 0.13)

    Args:
        width: numbers in a row of the tables (the model's hidden size).
        tied: whether one table serves for input and output.
        bytes_per_number: 2 for bfloat16.
        parameters: of the whole model.
    """
    vocabulary, width = integer("vocabulary", vocabulary, 1), integer("width", width, 1)
    table = vocabulary * width
    tables = table if tied else 2 * table
    share = None if parameters is None else tables / integer("parameters", parameters, 1)
    return Weight(vocabulary, width, table, tables, tables * bytes_per_number, 2 * table, share)


def attention_ratio(tokens: int, fewer: int) -> float:
    """How many times as much attention to so many tokens costs as to fewer.

    >>> attention_ratio(2500, 500)
    25.0
    """
    return math.pow(integer("tokens", tokens, 1) / integer("fewer", fewer, 1), 2)


# ======================== the law ========================

_WIDTHS = (
    (50e6, 512), (200e6, 768), (500e6, 1024), (1e9, 1536), (2e9, 2048), (5e9, 3200), (10e9, 4096), (20e9, 5120),
    (50e9, 6048), (100e9, 8192), (200e9, 12288), (500e9, 16384), (1e12, 20480), (math.inf, 24576),
)  # fmt: skip
"""Up to so many parameters without tables, a model has this width: the steps of the paper."""


def optimum(parameters: int) -> Optimum:
    """The vocabulary that the scaling law of Tao et al. holds best for a model trained with as much as pays for it.

    >>> found = optimum(7_000_000_000)
    >>> found.by_flops, found.by_derivative, found.by_loss
    (62274, 67451, 59548)

    Args:
        parameters: of the model without its tables of embeddings.
    """
    parameters = integer("parameters", parameters, 1_000_000)
    width = next(width for most, width in _WIDTHS if parameters <= most)
    flops = (parameters / math.exp(-2.48465)) ** 2
    return Optimum(
        parameters=parameters,
        width=width,
        by_flops=round(math.exp(-1.58903) * math.pow(flops, 0.41636) / width),
        by_derivative=round(3_145_728 * math.pow(parameters / 33e6, 0.83540) / width),
        by_loss=_least_loss(parameters / 1e6, width / 1e3, flops / 1e15),
    )


def _least_loss(parameters: float, width: float, flops: float) -> int:
    """The entries with the least loss: in millions of parameters, thousands of numbers a row, 10^15 operations."""

    def slope(thousands: float) -> float:
        """That of the loss, but for a factor greater than 0. Fewer tokens of training, D, are what entries cost."""
        tables = thousands * width
        tokens = flops / (6 * (parameters + tables))
        gain = 0.670737 * 0.195842 / math.pow(tables, 1.670737)
        return 0.446606 * 2.124112 / math.pow(tokens, 0.446606) / (parameters + tables) - gain

    low, high = 1e-3, 1e6
    while high / low > 1 + 1e-9:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return round(1000 * low)


# ======================== the curve ========================


def vocabulary_size(
    tok: Tokenizer,
    texts: Iterable[Text] = (),
    *,
    name: str = "tokenizer",
    source: str = "text",
    sizes: Sequence[int] = SIZES,
    width: int = 4096,
    tied: bool = False,
    parameters: int | None = None,
    window: int = 128_000,
    threads: int | None = None,
) -> VocabularySize:
    """What the vocabulary of a tokenizer costs a model, and, on texts, what other sizes would cost and save.

    The texts are learned from once, up to the largest size, and each size is a cut of that: a byte-level BPE with the
    tokenizer's own split pattern, if it has just one, else with `o200k`'s. They are counted on the text that they
    learned from, so they look better than they would on other text; the tokenizer has mostly seen other text.

    Args:
        texts: all are held in memory.
        name, source: what to call the tokenizer and the texts.
        sizes: vocabularies to train. Those for which the text has too few pairs are left out.
        width: numbers in a row of the model's tables.
        tied: whether one table serves for input and output.
        parameters: of the whole model, its tables with the tokenizer's vocabulary included.
        window: tokens that a context window holds.
    """
    window = integer("window", window, 1)
    data = [text_bytes(text) for text in list_of("texts", texts)]
    own = weight(len(tok.vocab), width, tied=tied, parameters=parameters)
    without = None if parameters is None else parameters - own.tables
    if without is not None and without < 1_000_000:
        raise SubwordValueError(
            f"a model of {parameters:,} parameters has no room for {own.tables:,} of tables beside a million others: "
            "say how wide it is (width=, --width), and whether its tables are tied"
        )
    rows: list[Size] = []
    if any(data):
        made = [(name, False, tok)]
        made += [("trained", True, each) for each in _trained(tok, data, sizes, threads)]
        for label, trained, each in made:
            tables = weight(len(each.vocab), width, tied=tied)
            if without is not None:
                tables = weight(len(each.vocab), width, tied=tied, parameters=without + tables.tables)
            rows.append(_size(label, trained, each, data, tables, window, threads))
        least = min(row.tokens for row in rows)
        rows = [replace(row, attention=attention_ratio(row.tokens, least)) for row in rows]
    return VocabularySize(
        window=window,
        parameters=parameters,
        weight=own,
        source=source,
        text_bytes=sum(map(len, data)),
        sizes=tuple(sorted(rows, key=lambda row: row.weight.vocabulary)),
        optimum=None if without is None else optimum(without),
    )


def _trained(tok: Tokenizer, data: list[bytes], sizes: Sequence[int], threads: int | None) -> list[Tokenizer]:
    """The tokenizers of each size, cut from the largest."""
    wanted = sorted({integer("size", size, 256) for size in list_of("sizes", sizes)})
    if not wanted:
        return []
    splits = [stage for stage in tok.spec.stages if isinstance(stage, Split)]
    named = splits[0].pattern if len(splits) == 1 else "none"
    pattern = named if named in PATTERNS and named != "none" else "o200k"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SubwordWarning)  # that there are fewer pairs than that: it is seen below
        whole = train(data, vocab_size=wanted[-1], pattern=pattern, threads=threads)
    return [whole.cut(size) for size in wanted if size < len(whole.vocab)] + [whole]


def _size(
    name: str, trained: bool, tok: Tokenizer, data: list[bytes], tables: Weight, window: int, threads: int | None
) -> Size:
    ids = tok.encode_batch_to_numpy(data, allowed_special=set(), disallowed_special=(), threads=threads).ids
    counts = np.bincount(ids, minlength=tok.n_vocab)[sorted(tok.vocab.values())]
    words = sum(len(text.split()) for text in data)
    return Size(
        name=name,
        trained=trained,
        weight=tables,
        tokens=len(ids),
        bytes_per_token=sum(map(len, data)) / len(ids),
        attention=1.0,
        window_words=int(window * words / len(ids)),
        output_flops=tables.output_flops * len(ids),
        occurrences=len(ids) / len(tok.vocab),
        median=float(np.median(counts)),
        rare=float((counts < FEW).mean()),
    )
