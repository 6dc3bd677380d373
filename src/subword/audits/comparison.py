"""Tokenizers side by side on the same texts, and with them what merges nothing: words, characters, bytes, patches."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ..arguments import choice, integer, list_of, string
from ..engine import text_bytes
from ..errors import SubwordValueError, SubwordWarning
from ..tokenizer import Text, Tokenizer
from ..training import train
from ..training_baselines import BASELINES
from . import patches

WIDTH = 768
"""Numbers an entry in the table of embeddings, where nothing else is said: GPT-2's, the smallest."""

BATCH = 16 << 20


@dataclass(frozen=True, slots=True)
class Row:
    """What the texts come to with one tokenizer."""

    name: str
    model: str
    """`BPE`, `WordPiece` …, or `byte patches`."""
    vocabulary: int
    """Entries, special tokens included."""
    tokens: int
    unknown: int
    """Tokens that stand for what has no entry: what they were cannot be told from them."""
    bytes_per_token: float
    attention: int
    """The sum of T² over the texts, T being the tokens of each: what attention looks at, in each layer and head."""
    table: int
    """Numbers in the table of embeddings: a row for each id up to the largest, `width` numbers a row."""


def compare(
    tokenizers: Mapping[str, Tokenizer],
    texts: Iterable[Text],
    *,
    baselines: Iterable[str] = (),
    vocab_size: int | None = None,
    patch_bytes: float | None = None,
    rule: patches.Rule = "global",
    order: int = patches.ORDER,
    width: int = WIDTH,
    threads: int | None = None,
) -> list[Row]:
    """Encode the texts with each tokenizer and count. What looks like a special token is plain text.

    Args:
        tokenizers: by the names that they go by.
        texts: each is a sequence of its own: attention looks at the tokens of one text. All are held in memory.
        baselines: of `training_baselines.BASELINES` (`"word"`, `"rules"`, `"character"`, `"byte"`). They are trained on
            these very texts, so they look better than they would on others.
        vocab_size: how many entries baselines have at most; if it is not given, as many as there are (with no unknown).
        patch_bytes: if given, a row for patches of bytes of about this average length, cut by entropy. The model of
            bytes that says where has learned from these very texts; it is not in `table`, which holds the 256 bytes.
        rule: where patches start: `"global"` or `"monotonic"`, see `patches.starts`.
        order: how many bytes of context that model has.
        width: how many numbers an entry has in a table of embeddings.
        threads: how many threads encode; all cores by default.

    Returns:
        A row for each tokenizer, then the baselines, then the patches.

    Raises:
        SubwordValueError: nothing to compare, or no text.
    """
    if not isinstance(tokenizers, Mapping) or not all(isinstance(tok, Tokenizer) for tok in tokenizers.values()):
        raise SubwordValueError("tokenizers must be a dict of names and tokenizers, as in {'gpt2': tok}")
    wanted = dict.fromkeys(list_of("baselines", baselines))
    for name in wanted:
        choice("baseline", name, tuple(BASELINES))
        if name in tokenizers:
            raise SubwordValueError(
                f"a tokenizer and a baseline are both called {name!r}: call the tokenizer otherwise"
            )
    choice("rule", rule, patches.RULES)
    width = integer("width", width, 1)
    data = [text_bytes(text) for text in list_of("texts", texts)]
    size = sum(map(len, data))
    if not size:
        raise SubwordValueError("there is nothing to compare on: the texts are empty")
    if not tokenizers and not wanted and patch_bytes is None:
        raise SubwordValueError("there is nothing to compare: give tokenizers, baselines or patch_bytes")

    def row(name: str, model: str, vocabulary: int, lengths: list[int], unknown: int, ids: int) -> Row:
        tokens = sum(lengths)
        attention = sum(length * length for length in lengths)
        ratio = round(size / tokens, 3) if tokens else 0.0
        return Row(name, model, vocabulary, tokens, unknown, ratio, attention, ids * width)

    rows = []
    for name, tok in (*tokenizers.items(), *((name, _trained(name, data, vocab_size, threads)) for name in wanted)):
        lengths, unknown = _counted(tok, data, threads)
        model = type(tok.spec.model).__name__
        rows.append(row(string("a name", name), model, len(tok.vocab), lengths, unknown, tok.n_vocab))
    if patch_bytes is not None:
        rows.append(row("patches", "byte patches", 256, _patches(data, patch_bytes, rule, order), 0, 256))
    return rows


def _trained(name: str, data: list[bytes], vocab_size: int | None, threads: int | None) -> Tokenizer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SubwordWarning)  # that there is less than the most to take
        size = None if name == "byte" else vocab_size
        return train(data, algorithm=name, vocab_size=size, threads=threads)  # type: ignore[arg-type]


def _counted(tok: Tokenizer, data: list[bytes], threads: int | None) -> tuple[list[int], int]:
    """The tokens of each text, and how many of all stand for what is unknown."""
    lengths: list[int] = []
    unknown = 0
    unk = tok.spec.model.unk
    for batch in _batches(data):
        if unk is None:
            lengths += tok.count_batch(batch, disallowed_special=(), threads=threads)
            continue
        found = tok.encode_batch_to_numpy(batch, disallowed_special=(), threads=threads)
        lengths += np.diff(found.offsets.astype(np.int64)).tolist()
        unknown += int(np.count_nonzero(found.ids == unk))
    return lengths, unknown


def _batches(data: list[bytes]) -> Iterator[list[bytes]]:
    """Texts, some megabytes together."""
    batch: list[bytes] = []
    held = 0
    for text in data:
        batch.append(text)
        held += len(text)
        if held >= BATCH:
            yield batch
            batch, held = [], 0
    yield batch


def _patches(data: list[bytes], patch_bytes: float, rule: patches.Rule, order: int) -> list[int]:
    """The patches of each text, with one threshold for all."""
    model = patches.ByteModel.of(data, order)
    values = [model.entropies(text) for text in data]
    threshold = patches.threshold_for(values, patch_bytes, rule)
    return [len(patches.starts(entropies, threshold, rule)) for entropies in values]
