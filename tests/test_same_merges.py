"""Merges equal to those of other trainers, and to a plain count of pairs, in several scripts and up to 32,000."""

from __future__ import annotations

import contextlib
import heapq
import io
import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import pairwise

import pytest
from test_peers import hf_trained, merges_of
from texts import STDLIB

import subword
from subword import patterns
from subword.bpe import reference

LETTERS = {
    "latin": "etaoinshrdlucmfwypvbgkjqxzéüß",
    "cyrillic": "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэф",
    "arabic": "اليموتنربعدهسفقكحجشطصخضذثزغظ",
    "devanagari": "कतनरमपसलदवयजबहग\u093e\u093f\u0940\u0947\u094d\u094b",
    "han": "".join(map(chr, range(0x4E00, 0x4E00 + 900))),
    "hangul": "".join(map(chr, range(0xAC00, 0xAC00 + 4000, 9))),
    "thai": "".join(map(chr, [*range(0xE01, 0xE2F), 0xE32, 0xE40, 0xE48, 0xE49])),
}


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Code, and words of each script: few common ones and many rare ones, so that there are ties at all counts."""
    rng = random.Random(32_000)
    found = [path.read_text("utf-8", "replace") for path in STDLIB[:6]]
    for letters in LETTERS.values():
        weights = [1 / (1 + at) for at in range(len(letters))]
        words = ["".join(rng.choices(letters, weights, k=1 + int(rng.expovariate(0.3)))) for _ in range(8_000)]
        common = [1 / (3 + at) for at in range(len(words))]
        found += [" ".join(rng.choices(words, common, k=200)) + "\n" for _ in range(80)]
    return found


SIZES = [512, 8_000, pytest.param(32_000, marks=pytest.mark.slow)]


def counted_merges(pieces: Iterable[bytes], n: int) -> list[tuple[bytes, bytes]]:
    """Merges under `first-seen`: the pairs of every piece that changes are counted again."""
    counts = Counter(pieces)
    words = [[bytes([byte]) for byte in piece] for piece in counts]
    times = list(counts.values())
    count: Counter[tuple[bytes, bytes]] = Counter()
    where: defaultdict[tuple[bytes, bytes], set[int]] = defaultdict(set)
    for at, word in enumerate(words):
        for pair in pairwise(word):
            count[pair] += times[at]
            where[pair].add(at)

    def worth(pair: tuple[bytes, bytes]) -> tuple[int, int, int]:
        first, offset = min(where[pair]), 0
        for other in pairwise(words[first]):
            if other == pair:
                break
            offset += len(other[0])
        return -count[pair], first, offset

    heap = [(worth(pair), pair) for pair in count]
    heapq.heapify(heap)
    merges: list[tuple[bytes, bytes]] = []
    while heap and len(merges) < n:
        known, pair = heapq.heappop(heap)
        if not where[pair]:
            continue
        if (now := worth(pair)) != known:
            heapq.heappush(heap, (now, pair))
            continue
        merges.append(pair)
        made = set()
        for at in list(where[pair]):
            old, new, place = words[at], list[bytes](), 0
            for other in pairwise(old):
                count[other] -= times[at]
                where[other].discard(at)
            while place < len(old):
                width = 2 if (*old[place : place + 2],) == pair else 1
                new.append(b"".join(old[place : place + width]))
                place += width
            words[at] = new
            for other in pairwise(new):
                count[other] += times[at]
                where[other].add(at)
                if b"".join(pair) in other:  # what others are worth only falls, and is seen when they come up
                    made.add(other)
        for other in made:
            heapq.heappush(heap, (worth(other), other))
    return merges


def test_the_count_here_is_that_of_the_reference() -> None:
    rng = random.Random(5)
    for _ in range(300):
        pieces = ["".join(rng.choices("abc", k=rng.randint(1, 12))).encode() for _ in range(rng.randint(1, 8))]
        merges = reference.train(pieces, 30, tie_rule="first-seen")
        vocab = reference.make_vocab(merges)
        assert counted_merges(pieces, 30) == [(vocab[left], vocab[right]) for left, right in merges]


@pytest.mark.parametrize("size", SIZES)
def test_first_seen_is_a_plain_count(texts: list[str], size: int) -> None:
    ours = subword.train(texts, vocab_size=size, pattern="gpt2", tie_rule="first-seen")
    pieces = (piece.encode() for text in texts for piece in patterns.split("gpt2", text))
    assert len(ours.vocab) == size and merges_of(ours) == counted_merges(pieces, size - 256)


@pytest.mark.parametrize("size", SIZES)
def test_smallest_ids_is_what_hf_learns(texts: list[str], size: int) -> None:
    ours = subword.train(texts, vocab_size=size, pattern="gpt2", byte_order="gpt2")
    assert len(ours.vocab) == size
    assert merges_of(ours) == hf_trained(pytest.importorskip("tokenizers"), texts, size, "gpt2")


@pytest.mark.parametrize("size", SIZES)
def test_smallest_ids_is_what_rustbpe_learns(texts: list[str], size: int) -> None:
    theirs = pytest.importorskip("rustbpe").Tokenizer()
    plain = patterns.PATTERNS["gpt2"].plain.replace(r"\z", "$")
    theirs.train_from_iterator(iter(texts), size, pattern=plain)
    ours = subword.train(texts, vocab_size=size, pattern="gpt2")
    assert dict(ours.spec.model.vocab.items()) == {bytes(piece): id for piece, id in theirs.get_mergeable_ranks()}


@pytest.mark.parametrize("size", SIZES)
def test_smallest_ids_is_what_gigatoken_learns(texts: list[str], size: int) -> None:
    gigatoken = pytest.importorskip("gigatoken")
    separator = b"\x00\x00"
    _, theirs = gigatoken.train_bpe(separator.join(text.encode() for text in texts), size, [], separator=separator)
    ours = subword.train(texts, vocab_size=size, pattern="gpt2", byte_order="gpt2")
    assert merges_of(ours) == [(bytes(left), bytes(right)) for left, right in theirs]


@pytest.mark.parametrize("merges", [256, 7_744, pytest.param(31_744, marks=pytest.mark.slow)])
def test_largest_string_is_what_subword_nmt_learns(texts: list[str], merges: int) -> None:
    learn_bpe = pytest.importorskip("subword_nmt.learn_bpe")
    counts = Counter(word for text in texts for word in text.split())
    codes = io.StringIO()
    with contextlib.redirect_stderr(io.StringIO()):
        learn_bpe.learn_bpe([f"{word} {times}" for word, times in counts.items()], codes, merges, is_dict=True)
    theirs = [tuple(line.split(" ")) for line in codes.getvalue().splitlines()[1:]]
    words = [(*word[:-1], f"{word[-1]}</w>") for word in counts]
    ours = subword.train(
        [" ".join([word] * times) for word, times in counts.items()],
        vocab_size=1 + len(reference.alphabet_of(words)) + len(theirs),
        pattern="spaces",
        unit="character",
        end_of_word="</w>",
        tie_rule="largest-string",
    )
    assert len(theirs) > merges * 0.8  # it ends where all pairs are counted once
    assert [(left.decode(), right.decode()) for left, right in merges_of(ours)] == theirs
