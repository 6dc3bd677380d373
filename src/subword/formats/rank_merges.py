"""From one way of saying what merges first to another, for formats that can hold only one: only where it is proved.

A rank model joins any two neighbours that spell an entry, the entry of the lowest id first. Let every entry be what its
own bytes encode to, and have a higher id than the two parts that its last merge joins. Then whenever two neighbours in
a text spell an entry, they are these two parts (what happened inside their bytes is what happens to the entry alone).
So the list of these pairs, in the order of the ids, gives the same ids on every text.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..engine import compile_spec
from ..errors import SubwordValueError
from ..spec import BPE, Spec
from .bare import refuse


def merges_of_rank_model(spec: Spec) -> list[tuple[int, int]]:
    """The merges, as pairs of ids, that give the same ids as the ranks of `spec`.

    Raises:
        SubwordValueError: there are none; the message names an entry that stands against it.
    """
    merges = []
    for piece, id, left, right in _made(spec):
        if left < 0:
            problem = "is not what its own bytes encode to"
        elif max(left, right) > id:
            problem = f"is made of a token with a higher id, {max(left, right)}"
        else:
            merges.append((left, right))
            continue
        raise SubwordValueError(f"the token {piece!r} (id {id}) {problem}, so no merge list gives the ids of the ranks")
    return merges


def merge_list(spec: Spec) -> list[tuple[int, int]]:
    """The merges, as pairs of ids, that give the same ids as the model of `spec`, with no other rule beside them.

    Raises:
        SubwordValueError: there are none; the message names a token that stands against it.
    """
    if not isinstance(spec.model, BPE):
        raise SubwordValueError(f"a {type(spec.model).__name__} has no merges")
    if spec.model.priority == "rank":
        return merges_of_rank_model(spec)
    if spec.model.ignore_merges:
        for piece, _, left, _ in _made(spec):
            if left < 0:
                raise SubwordValueError(f"only `ignore_merges` gives the token {piece!r} whole; no merges make it")
    return [(left, right) for left, right in spec.model.merges.tolist()]


def check_order(spec: Spec, kind: str) -> None:
    """The ids, taken as ranks, must mean what the model means.

    Raises:
        SubwordValueError: they do not; `kind` is what the format is called.
    """
    model = spec.model
    if not isinstance(model, BPE):
        refuse(kind, f"a {type(model).__name__}")
    if model.priority == "rank" and model.ignore_merges:
        return
    try:
        merges = merges_of_rank_model(spec)
    except SubwordValueError as error:
        refuse(kind, f"this model: {error}")
    if model.priority == "merges" and merges != [(left, right) for left, right in model.merges.tolist()]:
        pieces = dict(zip(model.vocab.ids.tolist(), model.vocab.pieces, strict=True))
        mine = [(int(left), int(right)) for left, right in model.merges]
        at = next(at for at, pair in enumerate([*mine, None]) if at >= len(merges) or merges[at] != pair)
        found = " + ".join(repr(pieces[id]) for id in mine[at]) if at < len(mine) else "the end of the list"
        refuse(kind, f"merges in another order than that of the ids they make: {found} stands at place {at}")


def _made(spec: Spec) -> Iterator[tuple[bytes, int, int, int]]:
    """Each entry of more than one byte, with its id and the ids of the two parts that its last merge joins, or -1."""
    for (piece, id), (left, right) in zip(
        spec.model.vocab.items(), compile_spec(spec).last_merges().tolist(), strict=True
    ):
        if len(piece) > 1:
            yield piece, id, left, right
