"""Training: text in, tokenizer out. Count the pieces, then learn merges from the counts."""

from __future__ import annotations

import operator
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np

from . import _core, corpus, patterns
from .arguments import choice, integer, list_of, string, thread_count, token_content
from .byte_alphabet import GPT2_BYTE_ORDER
from .engine import extra_rows, stage_rows
from .errors import SubwordValueError, warn
from .spec import (
    BPE,
    MAX_ID,
    Decode,
    Digits,
    ExtraToken,
    MatchTokens,
    Normalize,
    Packed,
    Spec,
    Split,
    SplitRegex,
    Stage,
    Template,
    Vocab,
)
from .special import LLAMA3_TOKENS
from .tokenizer import Text, Tokenizer

Progress: TypeAlias = "Callable[[str, int, int | None], object]"

BYTE_ORDERS = {"value": bytes(range(256)), "gpt2": GPT2_BYTE_ORDER}
"""The bytes in the order of their ids: by value, or as GPT-2 and HF have them (printable ones first)."""

PRESETS: dict[str, dict[str, Any]] = {
    "gpt2": {
        "vocab_size": 50_257,
        "pattern": "gpt2",
        "special_tokens": ("<|endoftext|>",),
        "byte_order": "gpt2",
    },
    "llama3": {
        "vocab_size": 128_256,
        "pattern": "llama3",
        "special_tokens": LLAMA3_TOKENS,
        "bos_token": "<|begin_of_text|>",
    },
}
"""Arguments of `train` for a tokenizer in the style of a known one: `train(texts, **PRESETS["llama3"])`.

`llama3`: 128,000 entries and 256 special tokens, most of them reserved; up to three digits together.
"""

NORMALIZATIONS = ("NFC", "NFD", "NFKC", "NFKD")

DIGITS = ("pattern", *patterns.DIGITS)

TIE_RULES = ("smallest-ids", "first-seen", "largest-string")

ALL_BYTES = [bytes([byte]) for byte in range(256)]

UNK = "<unk>"
"""What stands for unknown characters."""

FEED_BYTES = 16 << 20
"""About how much text the counter gets at once."""


def train(
    texts: Iterable[Text] | None = None,
    *,
    files: Iterable[str | os.PathLike[str]] | None = None,
    vocab_size: int,
    algorithm: Literal["bpe"] = "bpe",
    pattern: str | SplitRegex = "o200k",
    digits: Literal["pattern", "one", "three-left", "three-right"] = "pattern",
    special_tokens: Iterable[str] = (),
    bos_token: str | None = None,
    eos_token: str | None = None,
    pad_token: str | None = None,
    normalization: Literal["NFC", "NFD", "NFKC", "NFKD"] | None = None,
    unit: Literal["byte", "character"] = "byte",
    end_of_word: str = "",
    tie_rule: Literal["smallest-ids", "first-seen", "largest-string"] = "smallest-ids",
    byte_order: Literal["value", "gpt2"] = "value",
    field: str = "text",
    threads: int | None = None,
    progress: Progress | None = None,
) -> Tokenizer:
    """Train a tokenizer on texts or on files. The result is the same for any number of threads.

    The text is cut into pieces by `pattern`; then, again and again, the two neighbouring tokens that are counted most
    often become one, until there are `vocab_size` entries (Sennrich, Haddow and Birch 2016, "Neural Machine Translation
    of Rare Words with Subword Units", over bytes). Counts are exact, in 64 bits. Special tokens cut the text and are
    never counted.

    Args:
        texts: the texts, each `str` or bytes. One text alone is an error, not a corpus of its characters.
        files: paths, folders and globs instead of texts; `.jsonl` files give the texts in their `field`.
        vocab_size: how many entries the tokenizer has in the end, the 256 bytes (or the characters) and the special
            tokens included.
        pattern: the name of a row of `subword.patterns.PATTERNS`, or `subword.SplitRegex(r"…")`.
        digits: how numbers are cut before the pattern sees the rest: `"pattern"` leaves them to the pattern; `"one"`
            makes each a piece; `"three-left"` groups up to three from the left; `"three-right"` groups three from the
            right, so that place values line up (`1|234|567`).
        special_tokens: these get the last ids, in their order.
        bos_token, eos_token: special tokens that `add_special_tokens=True` puts before and after a text.
        pad_token: the special token that fills up batches.
        normalization: a Unicode normalization form to bring the text into first.
        unit: what pieces start as. With `"character"` the alphabet is the characters of the texts, and `<unk>`, with
            the id 0, stands for all others; pieces that are not well-formed UTF-8 are not learned from.
        end_of_word: a marker behind the last character of each piece, such as `</w>`, for `unit="character"`. With
            the pattern `"spaces"` and the tie rule `"largest-string"`, that is what subword-nmt learns.
        tie_rule: which of the pairs that are counted equally often is merged. `"smallest-ids"` (HF tokenizers,
            rustbpe) and `"largest-string"` (subword-nmt) do not depend on the order of the texts; `"first-seen"`
            (minbpe, the textbooks) takes the pair that comes first in the text as merged so far.
        byte_order: the ids of the bytes: `"value"`, or `"gpt2"` (which `"smallest-ids"` looks at, too).
        threads: how many threads count; all cores by default.
        progress: called as `progress(stage, done, total)` with the stage `"count"` (bytes; total unknown) or
            `"learn"` (merges).

    Returns:
        The tokenizer. `tok.training` says what was asked for and what was found: when the text has no pairs left
        before the size is reached, `stopped` is `"no pairs left"`, and a `SubwordWarning` says so too.

    Raises:
        SubwordValueError: there is nothing to train on, the size is below the minimum (the message names it), or
            another argument cannot be used.
        SubwordOSError: a file cannot be read.
    """
    specials = _special_tokens(special_tokens, bos_token, eos_token, pad_token)
    choice("algorithm", algorithm, ("bpe",))
    choice("digits", digits, DIGITS)
    choice("unit", unit, ("byte", "character"))
    choice("tie_rule", tie_rule, TIE_RULES)
    choice("byte_order", byte_order, tuple(BYTE_ORDERS))
    if normalization is not None:
        choice("normalization", normalization, NORMALIZATIONS)
    splitting = _splitting(pattern, digits)
    _check_marker(end_of_word, unit)
    if unit == "character" and UNK in specials:
        raise SubwordValueError(f"{UNK!r} is a token of a character vocabulary anyway; leave it out of special_tokens")
    string("field", field)
    vocab_size = integer("vocab_size", vocab_size)
    _check_size(vocab_size, [UNK.encode()] if unit == "character" else ALL_BYTES, specials)
    threads = thread_count(threads)
    if progress is not None and not callable(progress):
        raise SubwordValueError(f"progress must be a function of (stage, done, total), not {progress!r}")

    stages: list[Stage] = [MatchTokens()] if specials else []
    if normalization is not None:
        stages.append(Normalize(normalization))
    stages += splitting
    counter = _core.PieceCounter(stage_rows(stages), extra_rows(ExtraToken(0, token) for token in specials))
    # Where a long text may be cut is known of the rows of `PATTERNS` alone.
    whole = isinstance(pattern, SplitRegex) or pattern == "none" or normalization is not None
    for batch in _batches(_texts(texts, files, field, specials, whole)):
        counter.feed(batch, threads)
        if progress:
            progress("count", counter.text_bytes, None)
    if counter.total == 0:
        raise SubwordValueError(
            "there is nothing to train on: "
            + (f"the {counter.texts} texts hold no text" if counter.texts else "no text was given")
            + (" outside special tokens" if counter.text_bytes else "")
        )

    if unit == "byte":
        alphabet = [bytes([byte]) for byte in BYTE_ORDERS[byte_order]]
    else:
        alphabet = [UNK.encode(), *counter.characters(end_of_word)]
        _check_size(vocab_size, alphabet, specials)
    wanted = vocab_size - len(alphabet) - len(specials)
    tell = (lambda done: progress("learn", done, wanted)) if progress else None
    if unit == "byte":
        merges, counts = counter.learn_bpe(wanted, BYTE_ORDERS[byte_order], tie_rule, tell)
    else:
        merges, counts = counter.learn_bpe_of_characters(wanted, end_of_word, tie_rule, tell)
        merges = merges + np.uint32(1)  # behind <unk>
    report = {
        "algorithm": algorithm,
        "asked": vocab_size,
        "vocab_size": len(alphabet) + len(merges) + len(specials),
        "merges": len(merges),
        "stopped": "vocab size reached" if len(merges) == wanted else "no pairs left",
        "least_count": int(counts[-1]) if len(counts) else None,
        "bytes": counter.text_bytes,
        "pieces": counter.total,
        "distinct_pieces": counter.distinct,
        "pattern": pattern.regex if isinstance(pattern, SplitRegex) else pattern,
        "digits": digits,
        "tie_rule": tie_rule,
        "byte_order": byte_order,
    }
    if unit == "character":
        report |= {"unit": unit, "end_of_word": end_of_word, "alphabet": len(alphabet) - 1}
    spec = _bpe_spec(stages, alphabet, merges, specials, (bos_token, eos_token, pad_token), report)
    if unit == "character":
        _check_spelling(spec.model, end_of_word.encode())
        model = replace(spec.model, unit=unit, end_of_word=end_of_word, unk=0)
        # Where pieces keep the white space around them, the marker stands for none.
        drops = not isinstance(pattern, SplitRegex) and patterns.get_pattern(pattern).drops
        spec = spec.replace(model=model, decode=Decode(trim=True) if drops else Decode(""))
    if report["stopped"] == "no pairs left":
        warn(
            f"the text has no pairs left after {len(merges)} merges: the vocabulary has {report['vocab_size']} "
            f"entries, not the {vocab_size} asked for; train on more text, or ask for fewer"
        )
    return Tokenizer(spec)


def _splitting(pattern: str | SplitRegex, digits: str) -> list[Stage]:
    """The stages that cut text into pieces. One way of splitting is always the same stages: it has one fingerprint."""
    stages: list[Stage] = [Digits(digits)] if digits != "pattern" else []  # type: ignore[arg-type]
    if isinstance(pattern, SplitRegex):
        return [*stages, pattern]
    row = patterns.get_pattern(pattern)
    both = patterns.digits_and_rest(row)
    if both is not None:
        stages.append(Digits(both[0]))  # type: ignore[arg-type]
        row = both[1]
    return [*stages, Split((patterns.pattern_of(*row.steps) or row).name)]


def _bpe_spec(
    stages: Sequence[Stage],
    alphabet: Sequence[bytes],
    merges: np.ndarray[Any, np.dtype[np.uint32]],
    specials: Sequence[str],
    roles: tuple[str | None, str | None, str | None],
    report: dict[str, Any],
) -> Spec:
    """Ids: the alphabet in its order, the merges, the special tokens."""
    pieces = list(alphabet)
    for left, right in merges.tolist():
        pieces.append(pieces[left] + pieces[right])
    ids = {token: len(pieces) + at for at, token in enumerate(specials)}
    bos, eos, pad = roles
    named = {"bos": bos, "eos": eos, "pad": pad}
    before, after = ([ids[token]] if token is not None else [] for token in (bos, eos))
    return Spec(
        stages=tuple(stages),
        model=BPE(Vocab(Packed.of(pieces), np.arange(len(pieces), dtype=np.uint32)), merges),
        extra=tuple(ExtraToken(id, token) for token, id in ids.items()),
        template=Template((*before, "A", *after), (*before, "A", *after, "B", *after)),
        roles={role: ids[token] for role, token in named.items() if token is not None},
        notes={"training": report},
    )


def _check_spelling(model: BPE, marker: bytes) -> None:
    """Tokens must be told apart by what they spell, and those that end a piece must be those that end in the marker."""
    pieces = list(model.vocab.pieces)
    ends = [bool(marker) and piece.endswith(marker) and piece != marker for piece in pieces]
    for (_, right), id in zip(model.merges.tolist(), range(len(pieces) - len(model.merges), len(pieces)), strict=True):
        ends[id] = ends[right]
    alike = bool(marker) and [piece.endswith(marker) for piece in pieces] != ends
    if alike or len(set(pieces)) < len(pieces):
        raise SubwordValueError(
            f"the texts hold {UNK!r} or the end-of-word marker, so that two tokens would be spelled alike; take it out "
            "of the texts, or choose another end_of_word"
        )


# ======================== arguments ========================


def _special_tokens(tokens: Iterable[str], *named: str | None) -> list[str]:
    specials = [token_content(token) for token in list_of("special_tokens", tokens)]
    roles = (token_content(token) for token in named if token is not None)
    specials += [token for token in dict.fromkeys(roles) if token not in specials]
    counts = Counter(specials)
    if len(counts) < len(specials):
        raise SubwordValueError(f"the special token {counts.most_common(1)[0][0]!r} is given twice")
    return specials


def _check_marker(end_of_word: str, unit: str) -> None:
    if string("end_of_word", end_of_word):
        token_content(end_of_word)
        if unit != "character":
            raise SubwordValueError('end_of_word goes with unit="character"')


def _check_size(vocab_size: int, alphabet: Sequence[bytes], specials: Sequence[str]) -> None:
    minimum = len(alphabet) + len(specials)
    if vocab_size < minimum:
        units = "256 bytes" if alphabet == ALL_BYTES else f"{UNK} and {len(alphabet) - 1} characters"
        raise SubwordValueError(
            f"vocab_size={vocab_size} is below the minimum of {minimum}: {units}"
            + (f" and {len(specials)} special tokens" if specials else "")
        )
    if vocab_size > MAX_ID:
        raise SubwordValueError(f"vocab_size={vocab_size} is beyond the largest id, {MAX_ID}")


def _texts(
    texts: Iterable[Text] | None,
    files: Iterable[str | os.PathLike[str]] | None,
    field: str,
    specials: Sequence[str],
    whole: bool,
) -> Iterator[Text]:
    if (texts is None) == (files is None):
        raise SubwordValueError("give either texts or files=, one of the two")
    if isinstance(texts, (str, bytes, bytearray, memoryview)):
        kind = type(texts).__name__
        raise SubwordValueError(f"texts must be a list of texts, not one {kind}: write [text], or files=[path]")
    if isinstance(files, (str, os.PathLike)):
        raise SubwordValueError(f"files must be a list of paths, not one path: write [{str(files)!r}]")
    if files is not None:
        found = corpus.find_files(list_of("files", files))
        return corpus.read_texts(found, field, uncuttable=specials, whole=whole)
    assert texts is not None
    try:
        return iter(texts)
    except TypeError:
        raise SubwordValueError(f"texts must be a list of texts, not {type(texts).__name__}") from None


def _batches(texts: Iterator[Text]) -> Iterator[list[Text]]:
    """Texts in lists of about FEED_BYTES."""
    batch: list[Text] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += 64 + operator.length_hint(text)  # an empty text takes room, too
        if size >= FEED_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
