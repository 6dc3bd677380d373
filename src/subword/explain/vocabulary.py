"""A vocabulary to look through: what there is to say about each token, worked out only for those that are asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, NamedTuple

from ..scripts import script_of
from ..spec import BPE
from ..tokenizer import Tokenizer
from .views import Part, expanded, flat, made_of


class Entry(NamedTuple):
    """A token.

    Attributes:
        kind: a row of `KINDS`.
        rank: the rank of its last merge; None for what no merge makes.
        chars: its characters; each byte that is part of none counts as one.
        piece: as the files of the vocabulary spell it.
        made_of: the ids of the two parts that its last merge joins, or None.
    """

    id: int
    kind: str
    rank: int | None
    data: bytes
    chars: int
    script: str
    piece: str
    made_of: tuple[int, int] | None


KINDS = {
    "byte": "an entry of a single byte, marked as the end of a word or not",
    "character": "the same of a single character, where tokens are made of characters",
    "unknown": "what stands for characters without an entry",
    "merge": "an entry that merges make",
    "entry": "an entry of several characters of a model without merges",
    "unreachable": "an entry that its own bytes do not encode to",
    "special": "a special token",
    "added": "an added token",
    "unmatchable": "an extra token that no text can give",
}


class Vocabulary:
    """The tokens of a tokenizer by id.

    >>> vocabulary = Vocabulary(tok)                                        # doctest: +SKIP
    >>> ids = vocabulary.select(lambda data: b"token" in data)              # doctest: +SKIP
    >>> [vocabulary.entry(id).piece for id in vocabulary.sort(ids, "length")]  # doctest: +SKIP
    """

    def __init__(self, tok: Tokenizer) -> None:
        self._tok = tok
        self.data = flat(tok)
        self._extra = {token.id: token for token in tok.spec.extra}

    @cached_property
    def pairs(self) -> dict[int, tuple[int, int]]:
        """See `views.made_of`."""
        return made_of(self._tok)

    @cached_property
    def _ranks(self) -> dict[int, int]:
        """The rank of the last merge of each entry that has one."""
        model = self._tok.spec.model
        if not isinstance(model, BPE):
            return {}
        if model.priority == "rank":
            return {id: id for id in self.pairs}
        rank_of = {(left, right): rank for rank, (left, right) in enumerate(model.merges.tolist())}
        return {id: rank_of[pair] for id, pair in self.pairs.items()}

    @cached_property
    def _parts(self) -> dict[int, Part]:
        return {}

    def expand(self, id: int) -> Part:
        """See `views.expand`."""
        return expanded(id, self.data, self.pairs, self._parts)

    def text(self, id: int) -> str:
        """A token as text. Bytes that are no whole character become lone surrogates, U+DC80 to U+DCFF."""
        return self.data[id].decode("utf-8", "surrogateescape")

    def script(self, id: int) -> str:
        """The script of a token: see `scripts.script_of`."""
        return script_of(self.text(id))

    def kind(self, id: int) -> str:
        """A row of `KINDS`. What is an entry of the model and an extra token too goes by the latter."""
        if id in self._extra:
            return self._extra[id].kind
        model = self._tok.spec.model
        if id in self._units:
            return model.unit if isinstance(model, BPE) else "character"
        if not isinstance(model, BPE):
            return "unknown" if id == model.unk else "entry"
        return "unknown" if id == model.unk else "merge" if id in self.pairs else "unreachable"

    @cached_property
    def _units(self) -> set[int]:
        """The entries that pieces start as; of a model without merges, those of one character."""
        model = self._tok.spec.model
        if not isinstance(model, BPE):
            return {id for id in model.vocab.ids.tolist() if id != model.unk and len(self.text(id)) == 1}
        stems = ((piece.removesuffix(model.end_of_word.encode()) or piece, id) for piece, id in model.vocab.items())
        if model.unit == "byte":
            return {id for stem, id in stems if len(stem) == 1}
        return {id for stem, id in stems if len(stem) <= 4 and len(stem.decode("utf-8", "replace")) == 1}

    def entry(self, id: int) -> Entry:
        data = self.data[id]
        text = data.decode("utf-8", "surrogateescape")
        pair, piece = self.pairs.get(id), self._tok.token_piece(id)
        return Entry(id, self.kind(id), self._ranks.get(id), data, len(text), script_of(text), piece, pair)

    def select(
        self,
        wanted: Callable[[bytes], bool] | None = None,
        *,
        ids: Iterable[range] | None = None,
        pattern: re.Pattern[str] | None = None,
        script: str | None = None,
        kind: str | None = None,
    ) -> list[int]:
        """The ids of the tokens that pass all that is asked, in their order.

        Args:
            wanted: about the bytes of a token.
            ids: ranges of ids, in any order.
            pattern: to be found in the text of a token (`text` says what becomes of bytes that are none).
            script: of `scripts.SCRIPTS`, or `"mixed"` or `"none"`.
            kind: of `KINDS`.
        """
        found: Iterable[int] = self.data
        if ids is not None:
            ranges = list(ids)
            found = [id for id in found if any(id in some for some in ranges)]
        if wanted is not None:
            found = [id for id in found if wanted(self.data[id])]
        if pattern is not None:
            found = [id for id in found if pattern.search(self.text(id))]
        if kind is not None:
            found = [id for id in found if self.kind(id) == kind]
        if script is not None:
            found = [id for id in found if self.script(id) == script]
        return list(found)

    def sort(self, ids: Iterable[int], by: str, reverse: bool = False) -> list[int]:
        """Ids in the order of a row of `ORDERS`; equals in the order of their ids."""
        return sorted(sorted(ids), key=lambda id: ORDERS[by](self, id), reverse=reverse)


ORDERS: dict[str, Callable[[Vocabulary, int], Any]] = {
    "id": lambda vocabulary, id: id,
    "bytes": lambda vocabulary, id: len(vocabulary.data[id]),
    "length": lambda vocabulary, id: len(vocabulary.text(id)),
    "rank": lambda vocabulary, id: vocabulary._ranks.get(id, -1),
    "script": lambda vocabulary, id: vocabulary.script(id),
    "text": lambda vocabulary, id: vocabulary.data[id],
}
"""How tokens can be put in order. Those without a rank come first, as bytes do in most vocabularies; text goes by its
bytes, which is by code points."""
