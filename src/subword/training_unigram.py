"""Training a unigram language model as SentencePiece does, under its names, without loss unless that is asked for."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from dataclasses import field as own_field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from . import _core
from .arguments import flag, integer, list_of, string, thread_count, token_content
from .counting import Progress, count_texts, source_of
from .counts import Splitting
from .errors import SubwordValueError, warn
from .scripts import SCRIPTS
from .spec import (
    BYTE,
    NORMAL,
    UNKNOWN,
    USER_DEFINED,
    DecodeSentencePiece,
    ExtraToken,
    MatchTokens,
    SentencePiece,
    Spec,
    SplitRegex,
    Stage,
    Unigram,
    Vocab,
)
from .tokenizer import Text, Tokenizer

ROWS = 1 << 16
"""So many counted words are taken at once."""


@dataclass(frozen=True)
class _Words(Splitting):
    """How text becomes words: as SentencePiece rewrites it, cut where its trainer cuts."""

    normalizer: SentencePiece = own_field(default_factory=SentencePiece)
    words: str = ""

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        return (self.normalizer, SplitRegex(self.words, "oniguruma"))

    @property
    def keeps_texts_whole(self) -> bool:
        return True


def train_unigram(
    texts: Iterable[Text | Mapping[str, Any]] | None = None,
    *,
    files: Iterable[str | os.PathLike[str]] | None = None,
    vocab_size: int,
    character_coverage: float = 0.9995,
    byte_fallback: bool = True,
    seed_sentencepiece_size: int = 1_000_000,
    shrinking_factor: float = 0.75,
    num_sub_iterations: int = 2,
    max_sentencepiece_length: int = 16,
    split_by_unicode_script: bool = True,
    split_by_number: bool = True,
    split_by_whitespace: bool = True,
    split_digits: bool = False,
    treat_whitespace_as_suffix: bool = False,
    allow_whitespace_only_pieces: bool = False,
    add_dummy_prefix: bool = True,
    remove_extra_whitespaces: bool = False,
    precompiled_charsmap: str = "",
    control_symbols: Iterable[str] = (),
    user_defined_symbols: Iterable[str] = (),
    required_chars: str = "",
    unk_piece: str = "<unk>",
    bos_piece: str | None = "<s>",
    eos_piece: str | None = "</s>",
    pad_piece: str | None = None,
    unk_surface: str = " \u2047 ",
    hard_vocab_limit: bool = True,
    field: str = "text",
    errors: Literal["keep", "strict", "replace"] = "keep",
    threads: int | None = None,
    progress: Progress | None = None,
) -> Tokenizer:
    """Train a unigram language model (Kudo 2018, "Subword Regularization") on texts or files.

    Options have SentencePiece's names and meanings; where a default is another, text is not lost: a character without
    an entry becomes its bytes, spaces are kept, and nothing is folded. The result is the same for any number of
    threads. Words are counted first, so memory grows with the different words, about 30 bytes for each of their
    characters; without `split_by_whitespace` each text is one word.

    Args:
        texts, files, field, errors, threads, progress: as for `train`.
        vocab_size: how many entries there are in the end, with symbols, bytes and the unknown piece.
        character_coverage: the most frequent characters get entries until they make up this share of the text.
        byte_fallback: 256 entries for bytes, which characters become that have no entry.
        seed_sentencepiece_size, shrinking_factor, num_sub_iterations: with how many entries learning starts; what share
            is kept when those are thrown away without which the text would lose least; how many rounds of expectation
            maximization come before each time.
        max_sentencepiece_length: the longest entry in characters, at most 255.
        split_by_unicode_script, split_by_number, split_by_whitespace, split_digits, allow_whitespace_only_pieces: which
            strings cannot be entries.
        add_dummy_prefix, remove_extra_whitespaces, treat_whitespace_as_suffix, precompiled_charsmap: see the stage
            `SentencePiece`; the last is `rules` there, the first three its fields.
        control_symbols, user_defined_symbols: tokens that no text spells, and such as are always taken from it.
        hard_vocab_limit: whether it is an error if the text has too few entries to give; otherwise there are fewer.

    Raises:
        SubwordValueError: there is nothing to train on, `vocab_size` is too small or too large, or another argument
            cannot be used.
        SubwordOSError: a file cannot be read.
    """
    controls = [token_content(symbol) for symbol in list_of("control_symbols", control_symbols)]
    defined = [token_content(symbol) for symbol in list_of("user_defined_symbols", user_defined_symbols)]
    meta = [token_content(unk_piece), *(token_content(p) for p in (bos_piece, eos_piece, pad_piece) if p is not None)]
    byte_pieces = [f"<0x{byte:02X}>" for byte in range(256)] if flag("byte_fallback", byte_fallback) else []
    names = [*meta, *controls, *defined, *byte_pieces]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise SubwordValueError(f"the symbol {twice!r} is given twice")
    longest = integer("max_sentencepiece_length", max_sentencepiece_length, 1)
    if longest > 255:
        raise SubwordValueError(f"max_sentencepiece_length={longest} is beyond 255")
    coverage, factor = _share("character_coverage", character_coverage), _share("shrinking_factor", shrinking_factor)
    if factor == 1:
        raise SubwordValueError("shrinking_factor must be less than 1: nothing would be thrown away")
    normalizer = SentencePiece(
        string("precompiled_charsmap", precompiled_charsmap),
        flag("add_dummy_prefix", add_dummy_prefix),
        flag("remove_extra_whitespaces", remove_extra_whitespaces),
        True,
        flag("treat_whitespace_as_suffix", treat_whitespace_as_suffix),
    )
    rules = (
        longest,
        flag("split_by_unicode_script", split_by_unicode_script),
        flag("split_by_number", split_by_number),
        flag("split_by_whitespace", split_by_whitespace),
        flag("split_digits", split_digits),
        treat_whitespace_as_suffix,
        flag("allow_whitespace_only_pieces", allow_whitespace_only_pieces),
    )
    size = integer("vocab_size", vocab_size) - len(names)
    if size < 1:
        raise SubwordValueError(f"vocab_size={vocab_size} has no room beside {len(names)} symbols")
    data, offsets, counts = _words(
        _Words(normalizer=normalizer, words=_pattern(rules)),
        texts,
        files,
        string("field", field),
        errors,
        defined,
        thread_count(threads),
        progress,
    )
    if not len(counts):
        raise SubwordValueError("there is nothing to train on: the texts hold no words")
    pieces, rounds, left_out = _core.learn_unigram(
        data,
        offsets,
        counts,
        list(SCRIPTS),
        size,
        coverage,
        string("required_chars", required_chars),
        integer("seed_sentencepiece_size", seed_sentencepiece_size, 1),
        factor,
        integer("num_sub_iterations", num_sub_iterations, 1),
        rules,
        thread_count(threads),
    )
    known = {name.encode() for name in names}
    pieces = [(piece, float(np.float32(score))) for piece, score in pieces if piece not in known]
    total = len(names) + len(pieces)
    if total < vocab_size:
        problem = f"the text gives no more than {total} entries, not the {vocab_size} asked for"
        if flag("hard_vocab_limit", hard_vocab_limit):
            raise SubwordValueError(f"{problem}: ask for fewer, give more text, or set hard_vocab_limit=False")
        warn(problem)
    ids = {name: id for id, name in enumerate(names)}
    special = [*meta[1:], *controls]
    entries = [(name.encode(), 0.0, _kind(name, unk_piece, set(defined))) for name in names if name not in special]
    rows = [(piece, score, ids[piece.decode()], kind) for piece, score, kind in entries]
    rows += [(piece, score, id, NORMAL) for id, (piece, score) in enumerate(pieces, len(names))]
    rows.sort(key=lambda row: row[2])
    roles = {"unk": unk_piece, "bos": bos_piece, "eos": eos_piece, "pad": pad_piece}
    report = {
        "algorithm": "unigram",
        "asked": vocab_size,
        "vocab_size": total,
        "words": int(counts.sum()),
        "distinct_words": len(counts),
        "characters_left_out": left_out,
        "log_likelihood": rounds[-1][1],
        "rounds": [list(row) for row in rounds],
    }
    trainer = {
        "character_coverage": coverage,
        "control_symbols": controls,
        "user_defined_symbols": defined,
        "max_sentencepiece_length": longest,
        "split_by_unicode_script": split_by_unicode_script,
        "split_by_number": split_by_number,
        "split_by_whitespace": split_by_whitespace,
        "split_digits": split_digits,
        "allow_whitespace_only_pieces": allow_whitespace_only_pieces,
    }
    strip = "all" if remove_extra_whitespaces else "one" if add_dummy_prefix else "none"
    return Tokenizer(
        Spec(
            stages=(*([MatchTokens()] if special else []), normalizer),
            model=Unigram(
                vocab=Vocab.of((piece, id) for piece, _, id, _ in rows),
                scores=np.array([score for _, score, _, _ in rows]),
                unk=ids[unk_piece],
                kinds=np.array([kind for _, _, _, kind in rows], dtype=np.uint8),
                precision="float32",
            ),
            extra=tuple(ExtraToken(ids[name], name) for name in special),
            decode=DecodeSentencePiece(strip, unk_surface),  # type: ignore[arg-type]
            roles={role: ids[name] for role, name in roles.items() if name is not None},
            notes={"training": report, "sentencepiece": trainer},
        )
    )


def _kind(name: str, unk: str, defined: set[str]) -> int:
    return UNKNOWN if name == unk else USER_DEFINED if name in defined else BYTE


def _share(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1:
        raise SubwordValueError(f"{name} must be above 0 and at most 1, not {value!r}")
    return float(value)


def _pattern(rules: tuple[int, bool, bool, bool, bool, bool, bool]) -> str:
    """A regular expression for words: what the trainer's rules cannot reach across is in different ones."""
    _, _, _, by_whitespace, _, suffix, whitespace_only = rules
    if not by_whitespace:
        return r"[\s\S]+"
    marks = "▁+" if whitespace_only else "▁"
    return f"[^▁]*{marks}|[^▁]+" if suffix else f"{marks}[^▁]*|[^▁]+"


def _words(
    splitting: _Words,
    texts: Any,
    files: Any,
    field: str,
    errors: str,
    defined: list[str],
    threads: int,
    progress: Progress | None,
) -> tuple[bytes, np.ndarray[Any, np.dtype[np.int64]], np.ndarray[Any, np.dtype[np.int64]]]:
    """The different words without user-defined symbols: their bytes, where each starts, and how often it occurs."""
    items = source_of(texts, files, field, errors, splitting, None)
    table = count_texts(items, splitting, "", None, None, threads, progress, hashed=False)
    parts: list[bytes] = []
    lengths: list[Any] = [np.zeros(1, dtype=np.int64)]
    counts: list[Any] = []
    longest_first = "|".join(re.escape(symbol) for symbol in sorted(defined, key=len, reverse=True))
    cuts = re.compile(longest_first.replace("\\ ", "▁").encode()) if defined else None
    for data, offsets, number, *_ in table.rows(ROWS):
        if cuts is None:
            parts.append(data)
            lengths.append(np.diff(offsets))
            counts.append(number)
            continue
        for start, end, count in zip(offsets, offsets[1:], number, strict=False):
            kept = [part for part in cuts.split(data[start:end]) if part]
            parts += kept
            lengths.append(np.array([len(part) for part in kept], dtype=np.int64))
            counts.append(np.full(len(kept), count))
    sizes = np.concatenate(lengths)
    return b"".join(parts), np.cumsum(sizes), np.concatenate([np.zeros(0, dtype=np.int64), *counts])
