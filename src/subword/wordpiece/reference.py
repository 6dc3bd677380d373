"""WordPiece in plain Python: what the fast core computes, one step a line.

A word starts as its characters; all but the first are spelled with `##` in front, so that entries say whether they
start a word or continue it. Training joins, again and again, the two neighbours that stand side by side most often *for
what each of them is counted*: count(ab) / (count(a) * count(b)). Encoding does not look at that order again; it takes
the longest entry, and then the longest for what is left.

    >>> words = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}
    >>> merges = train(words, 3)
    >>> list(merges.values())
    ['##gs', 'hu', 'hug']
    >>> vocab = make_vocab(words, merges)
    >>> encode("hugs", vocab), encode("bugs", vocab), encode("mug", vocab)
    (['hug', '##s'], ['b', '##u', '##gs'], ['[UNK]'])

Nothing here is fast, and nothing should be made so: the core is tested against it. It needs only the standard
library and can be pasted into a notebook.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

Pair = tuple[str, str]

PREFIX = "##"
UNK = "[UNK]"


def symbols_of(word: str, prefix: str = PREFIX) -> list[str]:
    """What a word starts as.

    Example:
        >>> symbols_of("hug")
        ['h', '##u', '##g']
    """
    return [prefix + char if at else char for at, char in enumerate(word)]


def joined(pair: Pair, prefix: str = PREFIX) -> str:
    """How the symbol is spelled that two make: the prefix of the second is in the middle of a word then.

    Example:
        >>> joined(("##u", "##g"))
        '##ug'
    """
    return pair[0] + pair[1].removeprefix(prefix)


def get_stats(split: Iterable[tuple[Sequence[str], int]]) -> tuple[dict[Pair, int], dict[str, int]]:
    """How often each two symbols are neighbours, and how often each symbol stands at all, by the counts of the words.

    Example:
        >>> get_stats([(["h", "##u"], 2), (["h"], 1)])
        ({('h', '##u'): 2}, {'h': 3, '##u': 2})
    """
    pairs: dict[Pair, int] = {}
    singles: dict[str, int] = {}
    for symbols, count in split:
        for symbol in symbols:
            singles[symbol] = singles.get(symbol, 0) + count
        for pair in pairwise(symbols):
            pairs[pair] = pairs.get(pair, 0) + count
    return pairs, singles


# How much a pair is worth. Both are exact: the first a ratio of whole numbers.
CRITERIA: dict[str, Callable[[Pair, dict[Pair, int], dict[str, int]], Fraction]] = {
    "likelihood": lambda pair, pairs, singles: Fraction(pairs[pair], singles[pair[0]] * singles[pair[1]]),
    "frequency": lambda pair, pairs, singles: Fraction(pairs[pair]),
}

# Which of the pairs that are worth the same is merged; `ids` numbers the symbols: the alphabet by its spelling, then
# one for each merge.
TIE_RULES: dict[str, Callable[[list[Pair], dict[str, int]], Pair]] = {
    "first-seen": lambda ties, ids: ties[0],
    "smallest-ids": lambda ties, ids: min(ties, key=lambda pair: (ids[pair[0]], ids[pair[1]])),
    "largest-string": lambda ties, ids: max(ties),
}


def train(
    words: Mapping[str, int],
    n_merges: int,
    *,
    criterion: str = "likelihood",
    tie_rule: str = "smallest-ids",
    prefix: str = PREFIX,
) -> dict[Pair, str]:
    """Learn up to `n_merges` merges, fewer where no neighbours are left: (left, right) -> what they make, in order.

    `words` maps each word to its count, in the order in which they are met.

    Example:
        >>> train({"aab": 3, "ab": 1}, 1, criterion="frequency")
        {('##a', '##b'): '##ab'}
    """
    choose = TIE_RULES[tie_rule]
    split = [(symbols_of(word, prefix), count) for word, count in words.items()]
    ids = {symbol: id for id, symbol in enumerate(sorted({symbol for symbols, _ in split for symbol in symbols}))}
    merges: dict[Pair, str] = {}
    while len(merges) < n_merges:
        pairs, singles = get_stats(split)
        if not pairs:
            break
        worth = {pair: CRITERIA[criterion](pair, pairs, singles) for pair in pairs}
        highest = max(worth.values())
        pair = choose([pair for pair in pairs if worth[pair] == highest], ids)
        merges[pair] = joined(pair, prefix)
        ids.setdefault(merges[pair], len(ids))
        split = [(merge(symbols, pair, merges[pair]), count) for symbols, count in split]
    return merges


def merge(symbols: Iterable[str], pair: Pair, made: str) -> list[str]:
    """Replace each `pair`, from the left."""
    merged: list[str] = []
    for symbol in symbols:
        if merged and (merged[-1], symbol) == pair:
            merged[-1] = made
        else:
            merged.append(symbol)
    return merged


def make_vocab(
    words: Iterable[str], merges: Mapping[Pair, str], prefix: str = PREFIX, unk: str = UNK
) -> dict[str, int]:
    """The entries by their ids: the unknown token, the alphabet by its spelling, and what the merges made."""
    alphabet = sorted({symbol for word in words for symbol in symbols_of(word, prefix)})
    return {symbol: id for id, symbol in enumerate(dict.fromkeys([unk, *alphabet, *merges.values()]))}


def encode(
    word: Any,
    vocab: Collection[Any],
    unk: Any = UNK,
    prefix: Any = PREFIX,
    max_chars: int = 100,
    is_passed: Callable[[int, int], bool] = lambda start, end: False,
) -> list[Any]:
    """The longest entry that the word starts with, then the longest for what is left, `##` in front.

    An entry for `word[start:end]` for which `is_passed(start, end)` is as if it were not there. If that is so by
    chance, each time anew, and never for a single character, it is MaxMatch-Dropout (Hiraoka 2022).

    Example:
        >>> encode("unaffable", ["[UNK]", "un", "##aff", "##able", "##a"])
        ['un', '##aff', '##able']
        >>> encode("unaffably", ["[UNK]", "un", "##aff", "##able", "##a"])
        ['[UNK]']
    """
    tokens: list[Any] = []
    start = 0
    if len(word) > max_chars:
        return [unk]
    while start < len(word):
        # try the whole rest first, then ever shorter parts of it
        for end in range(len(word), start, -1):
            entry = word[start:end] if start == 0 else prefix + word[start:end]
            if entry in vocab and not is_passed(start, end):
                break
        else:
            return [unk]  # one place without an entry, and the whole word is unknown
        tokens.append(entry)
        start = end
    return tokens
