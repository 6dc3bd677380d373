"""Training byte-pair encoding as SentencePiece does, in plain Python: what the fast core computes, one step a line.

A text is one stream in which `▁` stands for a space, and the symbols are its characters. What merges are entries, so a
string that may be no entry (one with `▁` inside, or longer than allowed) is never made.

    >>> train({"▁hug": 10, "▁pug": 5, "▁pun": 12, "▁bun": 4, "▁hugs": 5}, 4)
    ['ug', '▁p', 'un', '▁h']

(`▁h` and `hug` are counted 15 times each: the shorter one goes first.)

Encoding merges the neighbours that together are the entry learned earliest, and of equals the leftmost.

    >>> encode("▁hugs", ["ug", "▁p", "un", "▁h"])
    ['▁h', 'ug', 's']

Nothing here is fast, and nothing should be made so. It needs only the standard library.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise


def is_word(piece: str) -> bool:
    """Whether an entry reaches across no space: `▁` is at most its first character."""
    return "▁" not in piece[1:]


def train(words: Mapping[str, int], n_merges: int, allowed: Callable[[str], bool] = is_word) -> list[str]:
    """Learn up to `n_merges` entries from words with their counts, in order; fewer where no neighbours are left.

    Neighbours that overlap all count: "aaa" has two pairs (a, a).
    """
    split = [(list(word), count) for word, count in words.items()]
    merged: list[str] = []
    while len(merged) < n_merges:
        # count all neighbours anew
        stats: dict[tuple[str, str], int] = {}
        for symbols, count in split:
            for pair in pairwise(symbols):
                if allowed("".join(pair)):
                    stats[pair] = stats.get(pair, 0) + count
        if not stats:
            break  # nothing is left to join
        # the highest count wins; of equals the one of fewer characters, then the smaller
        best = min(stats, key=lambda pair: (-stats[pair], len("".join(pair)), "".join(pair)))
        merged.append("".join(best))
        # the pair becomes one symbol, everywhere, from the left
        for symbols, _ in split:
            place = 0
            while place < len(symbols) - 1:
                if (symbols[place], symbols[place + 1]) == best:
                    symbols[place : place + 2] = ["".join(best)]
                place += 1
    return merged


def encode(text: str, merged: Sequence[str]) -> list[str]:
    """Merge neighbours until none can be: those whose entry was learned earliest, and of equals the leftmost."""
    ranks = {piece: rank for rank, piece in enumerate(merged)}
    symbols = list(text)
    while True:
        pairs = enumerate(pairwise(symbols))
        known = [(ranks[left + right], at) for at, (left, right) in pairs if left + right in ranks]
        if not known:
            return symbols
        _, at = min(known)
        symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]
