"""From one way of saying what merges first to another, for formats that can hold only one: only where it is proved.

A rank model joins any two neighbours that spell an entry, the entry of the lowest id first. Let every entry, encoded
with the entries of lower ids alone, come down to exactly two parts. Then whenever two neighbours in a text spell an
entry, they are these two parts (what happened inside their bytes is what happens to the entry alone), so the list of
these pairs, in the order of the ids, gives the same ids on every text.
"""

from __future__ import annotations

from ..bpe import reference
from ..errors import SubwordValueError
from ..spec import BPE, Spec


def merges_of_rank_model(spec: Spec) -> list[tuple[int, int]]:
    """The merges, as pairs of ids, that give the same ids as the ranks of `spec`.

    Raises:
        SubwordValueError: there are none, because some entry is not made of two parts; the message names it.
    """
    ranks = dict(spec.model.vocab.items())
    merges = []
    for piece, id in spec.model.vocab.items():
        if len(piece) < 2:
            continue
        parts = [ranks.get(part) for part in split_below(piece, ranks, id)]
        if len(parts) != 2 or parts[0] is None or parts[1] is None:
            raise SubwordValueError(
                f"the token {piece!r} (id {id}) comes down to {len(parts)} parts with the tokens of lower ids, not to "
                "2 tokens, so no merge list gives the same ids as the ranks"
            )
        merges.append((parts[0], parts[1]))
    return merges


def split_below(piece: bytes, ranks: dict[bytes, int], limit: int) -> list[bytes]:
    """What `piece` comes down to with the entries whose rank is below `limit`, the leftmost of equal ranks first.

    >>> split_below(b"aaab", {b"a": 0, b"b": 1, b"aa": 2, b"aaab": 3}, 3)
    [b'aa', b'a', b'b']
    """
    parts = [piece[at : at + 1] for at in range(len(piece))]
    pairs = [ranks.get(piece[at : at + 2], limit) for at in range(len(piece) - 1)]  # the rank of each two neighbours
    while pairs and (lowest := min(pairs)) < limit:
        at = pairs.index(lowest)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
        del pairs[at]
        if at > 0:
            pairs[at - 1] = ranks.get(parts[at - 1] + parts[at], limit)
        if at < len(pairs):
            pairs[at] = ranks.get(parts[at] + parts[at + 1], limit)
    return parts


def merge_list(spec: Spec) -> list[tuple[int, int]]:
    """The merges, as pairs of ids, that give the same ids as the model of `spec`, with no other rule beside them.

    Raises:
        SubwordValueError: there are none; the message names a token that stands against it.
    """
    if spec.model.priority == "rank":
        return merges_of_rank_model(spec)
    broken = first_broken_entry(spec.model) if spec.model.ignore_merges else None
    if broken is not None:
        raise SubwordValueError(f"only `ignore_merges` gives the token {broken!r} whole; the merges do not make it")
    return [(left, right) for left, right in spec.model.merges.tolist()]


def first_broken_entry(model: BPE) -> bytes | None:
    """The first entry that the merges alone do not make, and that only `ignore_merges` gives whole; None if none is."""
    ids = dict(model.vocab.items())
    pieces = {id: piece for piece, id in ids.items()}
    ranks = {(left, right): rank for rank, (left, right) in enumerate(model.merges.tolist())}
    merges = {pair: ids[pieces[pair[0]] + pieces[pair[1]]] for pair in ranks}
    for piece, id in ids.items():
        if reference.encode([ids[bytes([byte])] for byte in piece], merges, ranks) != [id]:
            return piece
    return None
