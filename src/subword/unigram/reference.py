"""The unigram language model in plain Python: what the fast core computes, one step a line.

Every entry of the vocabulary has a score, the logarithm of its probability. A segmentation is as probable as the
product of its entries says, so its score is their sum. Encoding takes the best segmentation:

    >>> scores = {"h": -4.0, "u": -4.0, "g": -4.0, "hu": -3.0, "ug": -2.5, "hug": -6.0}
    >>> viterbi("hug", scores)
    (['hug'], -6.0)
    >>> [(pieces, score) for pieces, score in nbest("hug", scores, 3)]
    [(['hug'], -6.0), (['h', 'ug'], -6.5), (['hu', 'g'], -7.0)]

Training starts from more entries than wanted (`make_seed`), estimates their probabilities by expectation maximization
(`e_step`, `m_step`), throws away those that are missed least (`prune`), again and again, and at last cuts to size
(`finalize`):

    >>> words = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}
    >>> list(make_seed(words))
    ['b', 'bun', 'g', 'gs', 'h', 'hug', 'hugs', 'n', 'p', 'pu', 'pug', 'pun', 's', 'u', 'ug', 'ugs', 'un']
    >>> list(train(words, vocab_size=10))
    ['pun', 'hug', 'hugs', 'b', 's', 'h', 'n', 'p', 'g', 'u']

Nothing here is fast, and nothing should be made so: the core is tested against it. It needs only the standard
library and can be pasted into a notebook.
"""

from __future__ import annotations

import heapq
import math
import random
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

UNK_PENALTY = 10.0  # what an unknown character scores below the worst entry


class Node(NamedTuple):
    """One entry at one place of a text: what `text[start:end]` may be; `piece` is None for an unknown character."""

    start: int
    end: int
    score: float
    piece: str | None


def lattice(text: str, scores: Mapping[str, float], unk_score: float | None = None) -> list[list[Node]]:
    """For each place in the text, the nodes that end there, the longest first.

    A character that is no entry is an unknown node. Its score is that of the worst entry minus 10, unless given.
    """
    unknown = min(scores.values()) - UNK_PENALTY if unk_score is None else unk_score
    ends: list[list[Node]] = [[] for _ in range(len(text) + 1)]
    for start in range(len(text)):
        for end in range(start + 1, len(text) + 1):
            piece = text[start:end]
            if piece in scores:
                ends[end].append(Node(start, end, scores[piece], piece))
            elif end == start + 1:
                ends[end].append(Node(start, end, unknown, None))
    return ends


# ======================== the best segmentations ========================


LOWEST = -100_000.0


def float32(value: float) -> float:
    """The nearest number that 32 bits can hold."""
    rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    return rounded


def viterbi(
    text: str, scores: Mapping[str, float], precision: str = "float64", unk_score: float | None = None
) -> tuple[list[str], float]:
    """The best segmentation and its score. Of equals, the one whose last entry is longest, then the one before it …

    `precision` is what scores are added up in, over the whole text: "float64", as HF tokenizers has it, or "float32",
    as SentencePiece 0.2.3 has it, which takes a sum off all sums once it is below `LOWEST`.

    Unknown characters stand in the segmentation as they are, each by itself.
    """
    starting: list[list[Node]] = [[] for _ in range(len(text) + 1)]
    for nodes in lattice(text, scores, unk_score):
        for node in nodes:
            starting[node.start].append(node)
    best: list[float | None] = [0.0, *(None for _ in text)]
    from_node: list[Node | None] = [None for _ in best]
    taken_off = 0.0
    for start in range(len(text)):
        sum_here = best[start] or 0.0
        if precision == "float32" and sum_here < LOWEST:
            best[start:] = [None if sum_ is None else float32(sum_ - sum_here) for sum_ in best[start:]]
            taken_off, sum_here = taken_off + sum_here, 0.0
        for node in starting[start]:
            candidate = sum_here + node.score
            if precision == "float32":
                candidate = float32(candidate)
            known = best[node.end]
            if known is None or candidate > known:
                best[node.end], from_node[node.end] = candidate, node
    pieces = []
    last = from_node[-1]
    while last is not None:
        pieces.append(text[last.start : last.end])
        last = from_node[last.start]
    return pieces[::-1], taken_off + (best[-1] or 0.0)


def paths(text: str, scores: Mapping[str, float]) -> Iterable[tuple[list[str], float]]:
    """Every segmentation with its score, in no order."""
    nodes = lattice(text, scores)

    def before(end: int) -> Iterable[tuple[list[str], float]]:
        if end == 0:
            yield [], 0.0
        for node in nodes[end]:
            for pieces, score in before(node.start):
                yield [*pieces, text[node.start : end]], score + node.score

    return before(len(text))


def nbest(text: str, scores: Mapping[str, float], n: int) -> list[tuple[list[str], float]]:
    """The `n` best segmentations, the best first: a search from the end of the text that knows, by Viterbi, the best
    that can come of each beginning (A*)."""
    nodes = lattice(text, scores)
    best = [0.0]
    for end in range(1, len(text) + 1):
        best.append(max(best[node.start] + node.score for node in nodes[end]))
    # (the best score to hope for, negated; the number of the hypothesis; where it starts; its score; its pieces)
    agenda: list[tuple[float, int, int, float, list[str]]] = [(-best[-1], 0, len(text), 0.0, [])]
    found: list[tuple[list[str], float]] = []
    made = 0
    while agenda and len(found) < n:
        _, _, at, score, pieces = heapq.heappop(agenda)
        if at == 0:
            found.append((pieces, score))
            continue
        for node in nodes[at]:
            made += 1
            total = score + node.score
            rest = [text[node.start : node.end], *pieces]
            heapq.heappush(agenda, (-(best[node.start] + total), made, node.start, total, rest))
    return found


# ======================== all segmentations at once ========================


def log_sum(values: Iterable[float]) -> float:
    """log Σ exp(value), without overflow."""
    values = list(values)
    largest = max(values, default=-math.inf)
    if math.isinf(largest):
        return largest
    return largest + math.log(sum(math.exp(value - largest) for value in values))


def forward(nodes: list[list[Node]], alpha: float = 1.0) -> list[float]:
    """For each place, the logarithm of the summed probabilities of all ways from the start, each to the `alpha`."""
    sums = [0.0]
    for ending in nodes[1:]:
        sums.append(log_sum(sums[node.start] + alpha * node.score for node in ending))
    return sums


def backward(nodes: list[list[Node]], alpha: float = 1.0) -> list[float]:
    """For each place, the same of all ways to the end."""
    starts: list[list[Node]] = [[] for _ in nodes]
    for node in (node for ending in nodes for node in ending):
        starts[node.start].append(node)
    sums = [0.0] * len(nodes)
    for at in range(len(nodes) - 2, -1, -1):
        sums[at] = log_sum(sums[node.end] + alpha * node.score for node in starts[at])
    return sums


def marginals(text: str, scores: Mapping[str, float], alpha: float = 1.0) -> tuple[dict[tuple[int, int], float], float]:
    """How probable it is that a segmentation has an entry at (start, end); and the log of all probabilities' sum."""
    nodes = lattice(text, scores)
    before, after = forward(nodes, alpha), backward(nodes, alpha)
    total = before[-1]
    return {
        (node.start, node.end): math.exp(before[node.start] + alpha * node.score + after[node.end] - total)
        for ending in nodes
        for node in ending
    }, total


def sample(text: str, scores: Mapping[str, float], alpha: float, generator: random.Random) -> list[str]:
    """A segmentation, drawn with a probability proportional to its own to the power `alpha`.

    0 draws all alike, 1 by the model, and a large number nearly always the best: forward filtering, backward sampling.
    """
    nodes = lattice(text, scores)
    sums = forward(nodes, alpha)
    pieces: list[str] = []
    at = len(text)
    while at > 0:
        weights = [math.exp(sums[node.start] + alpha * node.score - sums[at]) for node in nodes[at]]
        node = generator.choices(nodes[at], weights)[0]
        pieces.append(text[node.start : node.end])
        at = node.start
    return pieces[::-1]


def entropy(text: str, scores: Mapping[str, float], alpha: float = 1.0) -> float:
    """The entropy of what `sample` draws, in nats."""
    nodes = lattice(text, scores)
    sums = forward(nodes, alpha)
    entropies = [0.0]
    for at in range(1, len(nodes)):
        logs = [(node, sums[node.start] + alpha * node.score - sums[at]) for node in nodes[at]]
        entropies.append(sum(math.exp(log) * (entropies[node.start] - log) for node, log in logs))
    return entropies[-1]


# ======================== training ========================


def make_seed(
    words: Mapping[str, int],
    seed_size: int = 1_000_000,
    max_length: int = 16,
    is_valid: Callable[[str], bool] = lambda piece: True,
) -> dict[str, float]:
    """All characters, and of the longer strings the `seed_size` that cover most: (how often it occurs) x (its length).

    Only strings count that occur at least twice and are not always followed by the same character (what ends a word
    is never the same): those are the inner nodes of a suffix tree, of which there are fewer than characters in the
    text. Of strings that cover as much, the one that is first in the order of code points is taken.
    """
    counts: dict[str, int] = {}
    followers: dict[str, set[tuple[str, int]]] = {}
    chars: dict[str, int] = {}
    for word, count in words.items():
        for start, char in enumerate(word):
            chars[char] = chars.get(char, 0) + count
            for end in range(start + 2, min(start + max_length, len(word)) + 1):
                piece = word[start:end]
                counts[piece] = counts.get(piece, 0) + count
                follower = [(word[end], 0)] if end < len(word) else [(word, i) for i in range(min(count, 2))]
                followers.setdefault(piece, set()).update(follower)
    nodes = {piece: counts[piece] * len(piece) for piece in counts if len(followers[piece]) > 1 and is_valid(piece)}
    largest = sorted(nodes, key=lambda piece: (-nodes[piece], piece))[:seed_size]
    coverage = chars | {piece: nodes[piece] for piece in largest}
    total = math.log(sum(coverage.values()))
    return {piece: math.log(coverage[piece]) - total for piece in sorted(coverage)}


def e_step(words: Mapping[str, int], scores: Mapping[str, float]) -> tuple[dict[str, float], float]:
    """How often each entry is expected to occur, over all segmentations; and the mean log likelihood of a word."""
    expected = dict.fromkeys(scores, 0.0)
    likelihood = 0.0
    for word, count in words.items():
        shares, total = marginals(word, scores)
        likelihood += count * total
        for (start, end), share in shares.items():
            if word[start:end] in expected:
                expected[word[start:end]] += count * share
    return expected, likelihood / sum(words.values())


def digamma(x: float) -> float:
    """The derivative of log Γ(x), about log(x - 1/2): it takes more from what is small."""
    result = 0.0
    while x < 7:
        result -= 1 / x
        x += 1
    x -= 1 / 2
    xx = 1 / (x * x)
    return result + math.log(x) + xx / 24 - 7 * xx**2 / 960 + 31 * xx**3 / 8064 - 127 * xx**4 / 30720


def m_step(expected: Mapping[str, float]) -> dict[str, float]:
    """New scores. An entry that is expected less than half a time goes; digamma in place of the logarithm is what a
    sparse (Dirichlet process) prior comes to."""
    kept = {piece: count for piece, count in expected.items() if count >= 0.5}
    total = digamma(sum(kept.values()))
    return {piece: digamma(count) - total for piece, count in kept.items()}


def alternative(piece: str, scores: Mapping[str, float]) -> tuple[list[str], float] | None:
    """What an entry would fall into if it were gone; None for a character."""
    if len(piece) < 2:
        return None
    return viterbi(piece, {other: score for other, score in scores.items() if other != piece}, unk_score=_worst(scores))


def _worst(scores: Mapping[str, float]) -> float:
    return min(scores.values()) - UNK_PENALTY


def prune(
    words: Mapping[str, int], scores: Mapping[str, float], wanted: int, shrinking_factor: float = 0.75
) -> dict[str, float]:
    """Throw away the entries without which the text would lose least: keep `shrinking_factor` of all, or `wanted`.

    An entry in no word's best segmentation goes, and so does one that is itself better segmented. What goes counts for
    what it falls into: its loss is by how much the mean log likelihood of a word sinks. An entry that falls into
    nothing else, a character, stays.
    """
    counts = dict.fromkeys(scores, 0)  # in the best segmentations
    for word, count in words.items():
        pieces, _ = viterbi(word, scores)
        for piece in pieces:
            if piece in counts:
                counts[piece] += count
    total = sum(counts.values())
    kept: dict[str, float] = {}
    losses: list[tuple[float, str]] = []
    for piece, score in scores.items():
        parts = alternative(piece, scores)
        if counts[piece] == 0 or (parts is not None and parts[1] > score):
            continue
        if parts is None:
            kept[piece] = score
            continue
        count = counts[piece]
        with_it = math.log(count) - math.log(total)
        all_after = math.log(total + count * (len(parts[0]) - 1))
        without_it = sum(math.log(counts.get(part, 0) + count) - all_after for part in parts[0])
        losses.append((count / sum(words.values()) * (with_it - without_it), piece))
    size = max(wanted, int(shrinking_factor * len(scores)))
    losses.sort(key=lambda row: (-row[0], row[1]))
    kept.update((piece, scores[piece]) for _, piece in losses[: max(size - len(kept), 0)])
    return {piece: kept[piece] for piece in sorted(kept)}


def finalize(scores: Mapping[str, float], required: Iterable[str], size: int) -> dict[str, float]:
    """The `size` best entries, the required characters among them in any case: those that have no score (any more) are
    a little better than the worst entry, each a bit more than the one before."""
    worst = min(scores.values())
    final: dict[str, float] = {}
    missing = 0
    for char in required:
        if char in scores:
            final[char] = scores[char]
        else:
            final[char] = worst + missing * 0.0001
            missing += 1
    for piece in sorted(scores, key=lambda piece: (-scores[piece], piece)):
        if len(final) >= size:
            break
        final.setdefault(piece, scores[piece])
    return dict(sorted(final.items(), key=lambda row: (-row[1], row[0])))


def train(
    words: Mapping[str, int],
    vocab_size: int,
    seed_size: int = 1_000_000,
    max_length: int = 16,
    shrinking_factor: float = 0.75,
    num_sub_iterations: int = 2,
    is_valid: Callable[[str], bool] = lambda piece: True,
) -> dict[str, float]:
    """A vocabulary of `vocab_size` entries for words with their counts, the best first."""
    chars: dict[str, int] = {}
    for word, count in words.items():
        for char in word:
            chars[char] = chars.get(char, 0) + count
    required = sorted(chars, key=lambda char: (-chars[char], char))
    scores = make_seed(words, seed_size, max_length, is_valid)
    wanted = int(vocab_size * 1.1)
    while True:
        for _ in range(num_sub_iterations):
            expected, _ = e_step(words, scores)
            scores = m_step(expected)
        if len(scores) <= wanted:
            break
        pruned = prune(words, scores, wanted, shrinking_factor)
        if len(pruned) == len(scores):
            break  # all that is left are characters
        scores = pruned
    return finalize(scores, required, vocab_size)
