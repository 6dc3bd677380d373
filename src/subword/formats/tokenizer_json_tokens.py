"""The tokens of a model in tokenizer.json: `vocab` and `merges`, as the core reads them or as it is done here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

import numpy as np
import numpy.typing as npt

from .. import _core
from ..byte_alphabet import spelled_bytes, to_alphabet
from ..spec import MAX_ID, Packed, Vocab
from .json_node import Node, shown


class AnyTokens(Protocol):
    """The tokens of a model, as those ask of them that do not ask which model it is."""

    def __len__(self) -> int: ...

    def id_of(self, token: str) -> int | None: ...

    def token_of(self, id: int) -> str | None: ...


class Tokens:
    """The tokens of a BPE: those that spell something, packed, the others, and the merges as rows of ids.

    `merged` says of each entry whether merges join or make it, and `made` at which place the entry stands that each
    merge makes, if that is known.
    """

    def __init__(
        self,
        vocab: Vocab,
        merges: npt.NDArray[np.uint32],
        merged: npt.NDArray[np.bool_],
        others: dict[str, int],
        by_characters: bool,
        find: Callable[[bytes], int | None],
        made: npt.NDArray[np.uint32] | None = None,
    ) -> None:
        self.made = made
        self.vocab, self.merges, self.merged, self.others = vocab, merges, merged, others
        self.by_characters = by_characters
        self._find = find
        self._others_by_id = {id: token for token, id in others.items()}

    @classmethod
    def of_core(cls, entries: _core.Entries, by_characters: bool) -> Tokens:
        """As the core reads them."""
        for numbers in (entries.offsets, entries.ids, entries.merges):
            numbers.setflags(write=False)  # so that nothing copies them
        vocab = Vocab(Packed(entries.pieces, entries.offsets), entries.ids)
        others = dict(entries.others)
        return cls(vocab, entries.merges, entries.merged, others, by_characters, entries.find, entries.made)

    @classmethod
    def of(cls, ids: dict[str, int], pairs: list[tuple[str, str]], by_characters: bool, prefix: str) -> Tokens:
        """As they were read here."""
        spelled = {token: token.encode() if by_characters else spelled_bytes(token) for token in ids}
        vocab = Vocab.of((piece, ids[token]) for token, piece in spelled.items() if piece is not None)
        places = {piece: at for at, piece in enumerate(vocab.pieces)}
        start = len(prefix.encode())
        merged = np.zeros(len(vocab), dtype=np.bool_)
        for left, right in pairs:
            first, second = spelled[left] or b"", spelled[right] or b""
            merged[[places[piece] for piece in (first, second, first + second[start:])]] = True
        merges = np.array([(ids[left], ids[right]) for left, right in pairs], dtype=np.uint32).reshape(-1, 2)
        others = {token: ids[token] for token, piece in spelled.items() if piece is None}
        return cls(vocab, merges, merged, others, by_characters, places.get)

    def __len__(self) -> int:
        return len(self.vocab) + len(self.others)

    def entry(self, token: str) -> int | None:
        """At which place in `vocab` a token stands, if it does."""
        piece = token.encode() if self.by_characters else spelled_bytes(token)
        return None if piece is None else self._find(piece)

    def id_of(self, token: str) -> int | None:
        at = self.entry(token)
        return self.others.get(token) if at is None else int(self.vocab.ids[at])

    def token_of(self, id: int) -> str | None:
        piece = self.vocab.piece_of(id)
        if piece is None:
            return self._others_by_id.get(id)
        return piece.decode() if self.by_characters else to_alphabet(piece)


class Words:
    """Tokens that are spelled as they are, as they are read here."""

    def __init__(self, ids: dict[str, int]) -> None:
        self.ids = ids
        self.tokens = {id: token for token, id in ids.items()}

    def __len__(self) -> int:
        return len(self.ids)

    def id_of(self, token: str) -> int | None:
        return self.ids.get(token)

    def token_of(self, id: int) -> str | None:
        return self.tokens.get(id)


def read_vocab(node: Node) -> dict[str, int]:
    """An object of tokens and their ids."""
    vocab = node.fields()
    owners: dict[int, str] = {}
    for token, id in vocab.items():
        if type(id) is not int or not 0 <= id <= MAX_ID:
            raise node.child(token, id).expected(f"a whole number from 0 to {MAX_ID}")
        if owners.setdefault(id, token) is not token:
            raise node.child(token, id).error(f"the id {id} also belongs to {shown(owners[id])}")
        if not token:
            raise node.child(token, token).error("a token cannot be empty")
        if not token.isascii():
            node.child(token, token).text()
    return vocab


def read_merges(node: Node, ids: dict[str, int], prefix: str = "") -> Iterator[tuple[str, str]]:
    """The pairs of a merge list, old or new; what they make leaves out the `prefix` of the second."""
    if isinstance(node.value, list) and len({type(row) for row in node.value}) > 1:
        raise node.error("pairs and strings are mixed; write all merges as pairs")
    start = len(prefix.encode())
    for row in node.items():
        pair = row.value.split(" ") if isinstance(row.value, str) else row.value
        if not (isinstance(pair, list) and len(pair) == 2 and type(pair[0]) is type(pair[1]) is str):
            raise row.expected('a pair of tokens, ["a", "b"] or "a b"')
        left, right = pair
        for token in (left, right):
            if token not in ids:
                raise row.error(f"{shown(token)} is not a token of model.vocab")
        joined = left + (right.encode()[start:].decode(errors="replace") if start else right)
        if joined not in ids:
            raise row.error(f"{shown(joined)} is not a token of model.vocab")
        yield left, right


def without(vocab: Vocab, places: Iterable[int]) -> Vocab:
    """The entries but for those at some places."""
    places = sorted(places)
    if not places:
        return vocab
    data, offsets = vocab.pieces.data, vocab.pieces.offsets
    ends, starts = offsets[places].tolist(), offsets[np.array(places) + 1].tolist()
    pieces = b"".join(data[start:end] for start, end in zip([0, *starts], [*ends, len(data)], strict=True))
    lengths = np.delete(np.diff(offsets), places)
    rest = np.concatenate([np.zeros(1, np.uint64), np.cumsum(lengths, dtype=np.uint64)])
    return Vocab(Packed(pieces, rest), np.delete(vocab.ids, places))
