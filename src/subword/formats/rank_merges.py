"""The merge list of a model that merges by rank, for formats that hold only merge lists.

A rank model joins any two neighbours that spell an entry, the entry of the lowest id first. Let every entry, encoded
with the entries of lower ids alone, come down to exactly two parts. Then whenever two neighbours in a text spell an
entry, they are these two parts (what happened inside their bytes is what happens to the entry alone), so the list of
these pairs, in the order of the ids, gives the same ids on every text.
"""

from __future__ import annotations

from ..errors import SubwordValueError
from ..spec import Spec


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
