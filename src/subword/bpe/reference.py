"""Byte-pair encoding in plain Python: what the fast core computes, one step a line.

BPE starts from single symbols and joins, again and again, the two neighbours that stand side by side most often.
Training writes down which pairs it joined, in order; encoding joins the same pairs, in the same order, in any text.

    >>> merges = train([b"aaabdaaabac"], 3, tie_rule="first-seen")
    >>> merges
    {(97, 97): 256, (256, 97): 257, (257, 98): 258}
    >>> encode(b"aaabdaaabac", merges)
    [258, 100, 258, 97, 99]
    >>> decode([258, 100], make_vocab(merges))
    b'aaabd'

Text is cut into pieces first, and no merge crosses from one piece into the next. Symbols are bytes, as above, or
whatever else an alphabet lists. Here they are characters, and `·` marks the end of each word:

    >>> pieces = ["low·", "lower·", "lowest·"]
    >>> letters = alphabet_of(pieces)
    >>> merges = train(pieces, 3, alphabet=letters, tie_rule="first-seen")
    >>> vocab = make_vocab(merges, letters)
    >>> [vocab[id] for id in encode(map(letters.index, "slower·"), merges)]
    ['s', 'lowe', 'r', '·']

Nothing here is fast, and nothing should be made so: the core is tested against it. It needs only the standard
library and can be pasted into a notebook.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

Pair = tuple[int, int]

BYTES = bytes(range(256))  # the alphabet of bytes: each byte is its own id


def get_stats(ids: Iterable[int], counts: dict[Pair, int] | None = None, times: int = 1) -> dict[Pair, int]:
    """Count how often each two symbols are neighbours, in the order in which they are met; add to `counts` if given.

    Neighbours that overlap all count: "aaa" has two pairs (a, a). `times` is how often `ids` occurs in the text.

    Example:
        >>> get_stats([7, 7, 7, 5])
        {(7, 7): 2, (7, 5): 1}
    """
    counts = {} if counts is None else counts
    for pair in pairwise(ids):
        counts[pair] = counts.get(pair, 0) + times
    return counts


def merge(ids: Iterable[int], pair: Pair, idx: int) -> list[int]:
    """Replace each `pair` by the new symbol `idx`, from the left; of overlapping pairs the left one is replaced.

    Example:
        >>> merge([7, 7, 7, 5, 7, 7], (7, 7), 8)
        [8, 7, 5, 8]
    """
    merged: list[int] = []
    for id in ids:
        if merged and (merged[-1], id) == pair:
            merged[-1] = idx  # the pair is complete: the new symbol takes its place
        else:
            merged.append(id)
    return merged


# Which of the pairs that share the highest count is merged. `ties` has them in the order in which the text, as merged
# so far, shows them; `vocab` says what their ids spell.
TIE_RULES: dict[str, Callable[[list[Pair], list[Any]], Pair]] = {
    "first-seen": lambda ties, vocab: ties[0],  # textbooks, minbpe
    "smallest-ids": lambda ties, vocab: min(ties),  # HF tokenizers, rustbpe
    "largest-string": lambda ties, vocab: max(ties, key=lambda pair: (vocab[pair[0]], vocab[pair[1]])),  # subword-nmt
}


def train(
    pieces: Iterable[Sequence[Any]] | dict[Any, int],
    n_merges: int,
    *,
    alphabet: Sequence[Any] = BYTES,
    tie_rule: str = "smallest-ids",
    allowed: Callable[[Any], bool] = lambda token: True,
    given: Iterable[Pair] = (),
    late: Mapping[int, Pair] | None = None,
    start: Mapping[Pair, int] | None = None,
) -> dict[Pair, int]:
    """Learn up to `n_merges` merges, fewer where no neighbours are left: (left id, right id) -> new id, in order.

    `pieces` lists the pieces of the text, or maps each to its count, in the order in which they are met. Symbol `k`
    of `alphabet` has the id `k`; the first merge has the id after the last symbol, and so on. The order of the
    alphabet matters to "smallest-ids", the order of the pieces only to "first-seen". `start` are merges to begin with,
    as this returns them: they are made first, and they count.

    A pair is passed over unless `allowed` of what it spells. The merges in `given` come first, and count. Symbols in
    `late` (id -> pair) are no tokens at first: the first merge that needs one has its pair in front, with its id; a
    merge for which there is no room with all that it needs is passed over.

    Example:
        >>> train([b"hug", b"pug", b"hugs"], 2)
        {(117, 103): 256, (104, 256): 257}
        >>> train({b"hug": 1, b"pug": 1, b"hugs": 1}, 2) == train([b"hug", b"pug", b"hugs"], 2)
        True
        >>> train([b"hug", b"pug", b"hugs"], 3, start={(117, 103): 256, (104, 256): 257})
        {(117, 103): 256, (104, 256): 257, (112, 256): 258}
        >>> train([b"hug", b"pug", b"hugs"], 2, allowed=lambda token: len(token) <= 2)
        {(117, 103): 256}
        >>> train([b"hug", b"pug", b"hugs"], 2, given=train([b"hu"], 1))
        {(104, 117): 256, (256, 103): 257}
    """
    if isinstance(pieces, (str, bytes)):
        raise TypeError("pieces must be a list, [text], or a dict: a text alone would be taken for a list of symbols")
    choose = TIE_RULES[tie_rule]
    id_of = {symbol: id for id, symbol in enumerate(alphabet)}
    counted = pieces.items() if isinstance(pieces, dict) else ((piece, 1) for piece in pieces)
    merges = dict(start or {})
    joined = {pair: id for pair, id in merges.items() if id >= len(alphabet)}
    split = [(encode((id_of[symbol] for symbol in piece), joined), count) for piece, count in counted]
    vocab = make_vocab(joined, alphabet)  # id -> what it spells
    unmade = {id: pair for id, pair in (late or {}).items() if pair not in merges}

    def needed(pair: Pair) -> list[int]:
        return [*needed(unmade[pair[0]]), pair[0]] if pair[0] in unmade else []

    def join(pair: Pair) -> None:
        for id in needed(pair):
            merges[unmade.pop(id)] = id
        # the pair becomes the next id, everywhere
        merges[pair] = idx = len(vocab)
        vocab.append(vocab[pair[0]] + vocab[pair[1]])
        split[:] = [(merge(ids, pair, idx), count) for ids, count in split]

    for pair in given if not merges else ():
        join(pair)
    while len(merges) < n_merges:
        # count all neighbours anew, in the order in which the text shows them now
        stats: dict[Pair, int] = {}
        for ids, count in split:
            get_stats(ids, stats, count)
        room = n_merges - len(merges)
        for pair in list(stats):
            if not allowed(vocab[pair[0]] + vocab[pair[1]]) or len(needed(pair)) >= room:
                del stats[pair]
        if not stats:
            break  # nothing is left to join
        # the highest count wins; the tie rule decides between equals
        highest = max(stats.values())
        join(choose([pair for pair, count in stats.items() if count == highest], vocab))
    return merges


def is_text(token: bytes) -> bool:
    """Whether bytes are whole characters.

    Example:
        >>> is_text("né".encode()), is_text("né".encode()[:-1])
        (True, False)
    """
    try:
        token.decode()
    except UnicodeDecodeError:
        return False
    return True


def train_whole_characters(
    pieces: Mapping[bytes, int],
    n_merges: int,
    *,
    tie_rule: str = "smallest-ids",
    allowed: Callable[[Any], bool] = lambda token: True,
    initial: Iterable[bytes] = (),
) -> dict[Pair, int]:
    """Learn over bytes tokens that are whole characters, and the beginnings that these are made of.

    A character of three or four bytes starts as its beginning (all but the last byte) and its last byte. Its beginning
    takes an id, or two, when the character does; to "smallest-ids" beginnings stand behind the bytes, in their order.

    Example:
        >>> merges = train_whole_characters({"你你 你好".encode(): 1}, 3)
        >>> [token.decode(errors="replace") for token in make_vocab(merges)[256:]]
        ['�', '你', ' 你']
    """
    initial = list(initial)
    characters = {c.encode() for piece in [*pieces, *initial] for c in piece.decode(errors="ignore")}
    cuts = {c[:length] for c in characters for length in range(2, len(c))}
    id_of = {beginning: id for id, beginning in enumerate(sorted(cuts), 256)}

    def symbols(piece: bytes) -> tuple[int, ...]:
        text = piece.decode(errors="surrogateescape")  # an ill-formed byte is one surrogate
        parts = (c.encode(errors="surrogateescape") for c in text)
        return tuple(id for c in parts for id in ([id_of[c[:-1]], c[-1]] if c[:-1] in id_of else c))

    late = {id: (id_of.get(token[:-1], token[0]), token[-1]) for token, id in id_of.items()}
    alphabet = [*BYTES, *id_of]
    names = dict(enumerate(alphabet))

    def learn(pieces: dict[Any, int], n_merges: int, given: Iterable[Pair]) -> dict[Pair, int]:
        spelled = {tuple(names[id] for id in symbols(piece)): count for piece, count in pieces.items()}
        rule = lambda token: is_text(token) and allowed(token)  # noqa: E731
        return train(spelled, n_merges, alphabet=alphabet, tie_rule=tie_rule, allowed=rule, given=given, late=late)

    made = learn(dict.fromkeys(initial, 1), sum(map(len, initial)), ())
    merges = learn(dict(pieces), n_merges, [pair for pair, id in made.items() if id >= len(alphabet)])
    entries = {**dict(enumerate(range(256))), **{id: entry for entry, id in enumerate(merges.values(), 256)}}
    return {(entries[left], entries[right]): entries[id] for (left, right), id in merges.items()}


def random_units(seed: int) -> Iterator[float]:
    """Random numbers from 0 up to, but not, 1, the same everywhere: 53 bits each of SplitMix64 (Steele et al. 2014).

    Example:
        >>> [round(unit, 6) for unit, _ in zip(random_units(1), range(3))]
        [0.566562, 0.745782, 0.971003]
    """
    while True:
        seed = (seed + 0x9E3779B97F4A7C15) % 2**64
        bits = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        bits = (bits ^ bits >> 27) * 0x94D049BB133111EB % 2**64
        yield ((bits ^ bits >> 31) >> 11) / 2**53


def none() -> bool:
    """No merge is passed over."""
    return False


def dropout(probability: float, random: Iterator[float]) -> Callable[[], bool]:
    """Each merge is passed over with this probability whenever it could be made: Provilkov et al. 2020, algorithm 1."""
    return lambda: next(random) < probability


def encode(
    ids: Iterable[int],
    merges: Mapping[Pair, int],
    ranks: Mapping[Pair, int] | None = None,
    is_passed: Callable[[], bool] = none,
) -> list[int]:
    """Merge neighbours until none can be: always the pair learned earliest, and of equals the leftmost.

    `ids` are the ids of the single symbols of one piece; bytes are their own. A pair learned earlier has a lower new
    id. Where a vocabulary is numbered otherwise, `ranks` tells how early: pair -> rank, the lowest first.

    With `dropout` for `is_passed`, each step asks it of the merges that are possible, in their order, and makes the
    first that is not passed over. Where all are, that is the end.

    Example:
        >>> encode(b"hugs", {(117, 103): 256, (104, 256): 257})
        [257, 115]
        >>> encode(b"abc", {(97, 98): 256, (98, 99): 257}, ranks={(97, 98): 1, (98, 99): 0})
        [97, 257]
        >>> encode(b"hugs", {(117, 103): 256, (104, 256): 257}, is_passed=dropout(1, random_units(0)))
        [104, 117, 103, 115]
    """
    ids = list(ids)
    ranks = merges if ranks is None else ranks
    while True:
        known = [(ranks[pair], i) for i, pair in enumerate(pairwise(ids)) if pair in merges]
        # the lowest rank, then the leftmost place
        chosen = next((i for _, i in sorted(known) if not is_passed()), None)
        if chosen is None:
            return ids
        ids[chosen : chosen + 2] = [merges[ids[chosen], ids[chosen + 1]]]


def encode_by_rank(piece: bytes, ranks: Mapping[bytes, int], is_passed: Callable[[], bool] = none) -> list[int]:
    """Encode without a list of merges: any two neighbours that together spell an entry may merge, the lowest id first.

    This is tiktoken's rule. It gives what `encode` gives when the ids stand in the order of learning and each entry,
    encoded, is itself. `ranks` maps every entry to its id, single bytes included.

    Example:
        >>> encode_by_rank(b"hugs", {b"h": 0, b"u": 1, b"g": 2, b"s": 3, b"ug": 4, b"hug": 5})
        [5, 3]
    """
    parts = [piece[i : i + 1] for i in range(len(piece))]
    while True:
        known = [(ranks[left + right], i) for i, (left, right) in enumerate(pairwise(parts)) if left + right in ranks]
        chosen = next((i for _, i in sorted(known) if not is_passed()), None)
        if chosen is None:
            return [ranks[part] for part in parts]
        parts[chosen : chosen + 2] = [parts[chosen] + parts[chosen + 1]]


def decode(ids: Iterable[int], vocab: Sequence[bytes] | Mapping[int, bytes]) -> bytes:
    """Put together what the ids spell.

    The bytes need not be UTF-8: a token can hold a part of a character. `decode(...).decode(errors="replace")` is text.

    Example:
        >>> decode([257, 115], {257: b"hug", 115: b"s"})
        b'hugs'
    """
    return b"".join(vocab[id] for id in ids)


def make_vocab(merges: Mapping[Pair, int], alphabet: Sequence[Any] = BYTES) -> list[Any]:
    """What each id spells: first the symbols of the alphabet, then what each merge joins.

    Example:
        >>> make_vocab({(0, 1): 3, (3, 2): 4}, "hug")
        ['h', 'u', 'g', 'hu', 'hug']
    """
    vocab = [bytes([symbol]) if isinstance(symbol, int) else symbol for symbol in alphabet]
    for left, right in merges:
        vocab.append(vocab[left] + vocab[right])
    return vocab


def alphabet_of(pieces: Iterable[Sequence[Any]]) -> list[Any]:
    """Every symbol that occurs in the pieces, sorted: characters by code point.

    Example:
        >>> alphabet_of(["hug·", "pug·"])
        ['g', 'h', 'p', 'u', '·']
    """
    return sorted({symbol for piece in pieces for symbol in piece})
