"""One tokenizer, seen in two ways: as pairs with ranks, which is what encoding needs, and as flat bytes, for decoding.

A merge list says the pairs and leaves out the bytes; tiktoken's ranks say the bytes and leave out the pairs. Each can
be had from the other: the pair of an entry is what the merge loop joins last when it runs on the entry's own bytes.
`expand` does that again for both parts, and theirs, down to single bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import NamedTuple

from ..errors import SubwordValueError
from ..spec import BPE
from ..tokenizer import Tokenizer


class Merge(NamedTuple):
    """A rule for encoding: `left` and `right`, side by side, become `made`, whose id is `id`; the lowest rank first.

    Where entries have ranks, not merges, an entry that its own bytes do not encode to has no `left` and `right`.
    """

    rank: int
    left: bytes | None
    right: bytes | None
    made: bytes
    id: int


class Part(NamedTuple):
    """A token, and the two parts that its last merge joins.

    There are none for what pieces start as (a byte or a character), for a token that is no entry of the model, and for
    an entry that its own bytes do not encode to.
    """

    id: int
    data: bytes
    parts: tuple[Part, Part] | None


def flat(tok: Tokenizer) -> dict[int, bytes]:
    """The bytes of each id, in the order of the ids: all that decoding needs.

    >>> flat(tok)[302]                                                      # doctest: +SKIP
    b'the'
    """
    model = tok.spec.model
    is_plain = isinstance(model, BPE) and not model.end_of_word
    spelled = {id: piece if is_plain else tok.token_bytes(id) for piece, id in model.vocab.items()}
    spelled.update((token.id, token.content.encode()) for token in tok.spec.extra)
    return dict(sorted(spelled.items()))


def merges(tok: Tokenizer) -> list[Merge]:
    """The pairs with their ranks, in the order of the ranks: all that encoding needs, beside the bytes.

    A merge list gives its rows as they stand; the rank is the number of the row. Where the model merges by rank, there
    is a row for each entry of more than one byte, with the pair that its last merge joins; the rank is the id.

    >>> merges(tok)[0]                                                      # doctest: +SKIP
    Merge(rank=0, left=b't', right=b'h', made=b'th', id=256)

    Raises:
        SubwordValueError: the model has no merges.
    """
    model = tok.spec.model
    if not isinstance(model, BPE):
        raise SubwordValueError(f"a {type(model).__name__} has no merges; only a BPE has")
    piece_of = {id: piece for piece, id in model.vocab.items()}
    if model.priority == "merges":
        id_of = {piece: id for id, piece in piece_of.items()}
        pairs = ((piece_of[left], piece_of[right]) for left, right in model.merges.tolist())
        return [Merge(rank, left, right, left + right, id_of[left + right]) for rank, (left, right) in enumerate(pairs)]
    pair_of = made_of(tok)
    rows = []
    for id, piece in piece_of.items():
        if len(piece) > 1:
            pair = pair_of.get(id)
            left, right = (None, None) if pair is None else (piece_of[pair[0]], piece_of[pair[1]])
            rows.append(Merge(id, left, right, piece, id))
    return rows


def made_of(tok: Tokenizer) -> dict[int, tuple[int, int]]:
    """The ids of the two parts that the last merge of an entry joins, by the id of the entry, where there are any."""
    if not isinstance(tok.spec.model, BPE):
        return {}
    pairs = tok.last_merges()
    made = pairs[:, 0] >= 0
    lefts, rights = pairs[made].T.tolist()
    return dict(zip(tok.spec.model.vocab.ids[made].tolist(), zip(lefts, rights, strict=True), strict=True))


def expand(tok: Tokenizer, id: int) -> Part:
    """How a token is put together: the parts that its last merge joins, and theirs, down to single bytes or characters.

    Raises:
        UnknownTokenError: the vocabulary has no such id.
    """
    tok.token_bytes(id)
    return expanded(id, flat(tok), made_of(tok), {})


def expanded(
    id: int, data: Mapping[int, bytes], pairs: Mapping[int, tuple[int, int]], done: MutableMapping[int, Part]
) -> Part:
    """As `expand`, for those who ask often: `data` is `flat(tok)`, `pairs` is `made_of(tok)`, `done` a memory."""
    # Not recursive: a run of thousands of equal bytes can be as deep as it is long.
    todo = [id]
    while todo:
        here = todo[-1]
        pair = pairs.get(here)
        missing = [part for part in pair or () if part not in done]
        if missing:
            todo += missing
            continue
        todo.pop()
        done[here] = Part(here, data[here], None if pair is None else (done[pair[0]], done[pair[1]]))
    return done[id]
