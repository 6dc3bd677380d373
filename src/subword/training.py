"""Training: text in, tokenizer out. Count the pieces, then learn merges from the counts."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np

from . import _core, corpus, patterns
from .byte_alphabet import GPT2_BYTE_ORDER
from .engine import extra_rows, stage_rows
from .errors import SubwordValueError, SubwordWarning
from .spec import BPE, MAX_ID, Decode, ExtraToken, MatchTokens, Normalize, Packed, Spec, Split, Stage, Template, Vocab
from .tokenizer import Text, Tokenizer, check_content, list_of, thread_count

Progress: TypeAlias = "Callable[[str, int, int | None], object]"

BYTE_ORDERS = {"value": bytes(range(256)), "gpt2": GPT2_BYTE_ORDER}
"""The bytes in the order of their ids: by value, or as GPT-2 and HF have them (printable ones first)."""

NORMALIZATIONS = ("NFC", "NFD", "NFKC", "NFKD")

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
    pattern: str = "o200k",
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
        pattern: a row of `subword.patterns.PATTERNS`.
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
    _check_choice("algorithm", algorithm, ("bpe",))
    _check_choice("tie_rule", tie_rule, TIE_RULES)
    _check_choice("byte_order", byte_order, tuple(BYTE_ORDERS))
    _check_choice("normalization", normalization, (None, *NORMALIZATIONS))
    _check_choice("unit", unit, ("byte", "character"))
    drops = patterns.get_pattern(pattern).drops
    _check_marker(end_of_word, unit)
    if unit == "character" and UNK in specials:
        raise SubwordValueError(f"{UNK!r} is a token of a character vocabulary anyway; leave it out of special_tokens")
    _check_size(vocab_size, [UNK.encode()] if unit == "character" else ALL_BYTES, specials)
    threads = thread_count(threads)

    stages: list[Stage] = [MatchTokens()] if specials else []
    if normalization is not None:
        stages.append(Normalize(normalization))
    stages.append(Split(pattern))
    counter = _core.PieceCounter(stage_rows(stages), extra_rows(ExtraToken(0, token) for token in specials))
    for batch in _batches(_texts(texts, files, field, specials, whole=pattern == "none" or normalization is not None)):
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
        "pattern": pattern,
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
        spec = spec.replace(model=model, decode=Decode(trim=True) if drops else Decode(""))
    if report["stopped"] == "no pairs left":
        warnings.warn(
            f"the text has no pairs left after {len(merges)} merges: the vocabulary has {report['vocab_size']} "
            f"entries, not the {vocab_size} asked for; train on more text, or ask for fewer",
            SubwordWarning,
            stacklevel=2,
        )
    return Tokenizer(spec)


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
    specials = list_of("special_tokens", tokens)
    specials += [token for token in dict.fromkeys(named) if token is not None and token not in specials]
    for token in specials:
        check_content(token)
    twice = {token for token in specials if specials.count(token) > 1}
    if twice:
        raise SubwordValueError(f"the special token {min(twice)!r} is given twice")
    return specials


def _check_choice(name: str, value: object, known: tuple[object, ...]) -> None:
    if value not in known:
        raise SubwordValueError(f"unknown {name} {value!r}; choose one of {', '.join(map(repr, known))}")


def _check_marker(end_of_word: str, unit: str) -> None:
    if not isinstance(end_of_word, str):
        raise SubwordValueError(f"end_of_word must be a string, not {end_of_word!r}")
    if end_of_word:
        check_content(end_of_word)
        if unit != "character":
            raise SubwordValueError('end_of_word goes with unit="character"')


def _check_size(vocab_size: int, alphabet: Sequence[bytes], specials: Sequence[str]) -> None:
    if isinstance(vocab_size, bool) or not isinstance(vocab_size, int):
        raise SubwordValueError(f"vocab_size must be an integer, not {vocab_size!r}")
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
        return corpus.read_texts(corpus.find_files(files), field, uncuttable=specials, whole=whole)
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
        size += len(text) if hasattr(text, "__len__") else 0
        if size >= FEED_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
