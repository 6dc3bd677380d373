"""WordPiece from counted pieces: the part of training that differs from that of BPE."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from . import _core, bert
from .errors import SubwordValueError
from .spec import DecodeWordPiece, ExtraToken, Packed, Spec, Stage, Template, Vocab, WordPiece

PREFIX = "##"

CRITERIA = ("likelihood", "frequency")


class Learned(NamedTuple):
    """What was learned: the entries by their ids, the merges that led to them, and the count of each pair."""

    entries: list[bytes]
    alphabet: int
    merges: npt.NDArray[np.uint32]
    counts: npt.NDArray[np.uint64]
    size: tuple[int, npt.NDArray[np.uint64]]


def alphabet_of(pieces: _core.Pieces, criterion: str) -> list[bytes]:
    """What the vocabulary starts with: the unknown token, and the characters of the pieces as they stand in them.

    By frequency, as in HF tokenizers, each character can start a word, too, even if none did.
    """
    characters = pieces.characters_of_words(PREFIX)
    plain = sorted({character.removeprefix(PREFIX.encode()) for character in characters} - set(characters))
    return [bert.UNK.encode(), *characters, *(plain if criterion == "frequency" else [])]


def learn(
    pieces: _core.Pieces,
    alphabet: Sequence[bytes],
    wanted: int,
    criterion: str,
    tie_rule: str,
    tell: Callable[[int], object] | None,
) -> Learned:
    """Merge up to `wanted` times.

    Raises:
        SubwordValueError: two tokens would be spelled alike.
    """
    merges, counts, _, size = pieces.learn_word_piece(wanted, PREFIX, criterion == "likelihood", tie_rule, tell)
    learned_from = len(pieces.characters_of_words(PREFIX))
    # The learner knows neither the unknown token nor characters that stand nowhere.
    merges = merges + np.where(merges < learned_from, 1, len(alphabet) - learned_from).astype(np.uint32)
    entries = list(alphabet)
    for left, right in merges.tolist():
        entries.append(entries[left] + entries[right].removeprefix(PREFIX.encode()))
    if len(set(entries)) < len(entries):
        raise SubwordValueError(
            f"the texts hold {bert.UNK!r} or {PREFIX!r} in words, so that two tokens would be spelled alike; cut them "
            "apart with the pattern 'bert-cased' or 'bert-uncased', or take them out of the texts"
        )
    return Learned(entries, len(alphabet), merges, counts, size)


def spec_of(
    stages: Sequence[Stage],
    learned: Learned,
    specials: Sequence[str],
    roles: tuple[str | None, str | None, str | None],
    report: Mapping[str, object],
) -> Spec:
    """Ids: the unknown token, the alphabet, what the merges make, the special tokens (the unknown one may be one)."""
    others = [token for token in specials if token != bert.UNK]
    ids = {token: len(learned.entries) + at for at, token in enumerate(others)}
    if bert.UNK in specials:
        ids = {bert.UNK: 0, **ids}
    before, after, pad = ([ids[token]] if token is not None else [] for token in roles)
    named = {"bos": before, "eos": after, "pad": pad, "unk": [0]}
    return Spec(
        stages=tuple(stages),
        model=WordPiece(Vocab(Packed.of(learned.entries), np.arange(len(learned.entries), dtype=np.uint32)), 0),
        extra=tuple(ExtraToken(id, token) for token, id in ids.items()),
        template=Template((*before, "A", *after), (*before, "A", *after, "B", *after)),
        decode=DecodeWordPiece(),
        roles={role: id[0] for role, id in named.items() if id},
        notes={"training": report},
    )
