"""The reference of the unigram language model against all segmentations written out, and against figures by hand."""

from __future__ import annotations

import doctest
import math
import random
from collections import Counter

import pytest

from subword.unigram import reference
from subword.unigram.reference import (
    alternative,
    digamma,
    e_step,
    entropy,
    finalize,
    m_step,
    make_seed,
    marginals,
    nbest,
    paths,
    prune,
    sample,
    train,
    viterbi,
)

WORDS = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}


def some(seed: int) -> tuple[dict[str, float], str]:
    """A random vocabulary over few letters, and a text of them and of one letter more."""
    generator = random.Random(seed)
    letters = "abc"[: generator.randint(1, 3)]
    pieces = {"".join(generator.choices(letters, k=generator.randint(1, 4))) for _ in range(generator.randint(1, 12))}
    scores = {piece: -generator.choice([1.0, 2.0, 2.5, generator.random() * 9]) for piece in sorted(pieces)}
    return scores, "".join(generator.choices(letters + "x", k=generator.randint(1, 8)))


def test_examples_in_the_docstrings() -> None:
    assert doctest.testmod(reference).failed == 0


@pytest.mark.parametrize("seed", range(200))
def test_against_all_segmentations(seed: int) -> None:
    scores, text = some(seed)
    every = sorted(paths(text, scores), key=lambda row: -row[1])
    pieces, score = viterbi(text, scores)
    assert (pieces, pytest.approx(score)) in [(row[0], row[1]) for row in every]
    assert score == pytest.approx(every[0][1])

    found = nbest(text, scores, 5)
    assert [row[1] for row in found] == pytest.approx([row[1] for row in every[:5]])
    assert len({tuple(row[0]) for row in found}) == len(found) == min(5, len(every))

    for alpha in (0.0, 0.5, 1.0, 3.0):
        weights = [math.exp(alpha * row[1]) for row in every]
        total = sum(weights)
        assert entropy(text, scores, alpha) == pytest.approx(
            -sum(weight / total * math.log(weight / total) for weight in weights), abs=1e-9
        )
        shares: Counter[tuple[int, int]] = Counter()
        for (row, _), weight in zip(every, weights, strict=True):
            at = 0
            for piece in row:
                shares[at, at + len(piece)] += weight / total
                at += len(piece)
        found_shares, log_total = marginals(text, scores, alpha)
        assert found_shares == pytest.approx(shares)
        assert log_total == pytest.approx(math.log(total))


def test_samples_are_distributed_as_said() -> None:
    scores = {"h": -4.0, "u": -4.0, "g": -4.0, "hu": -3.0, "ug": -2.5, "hug": -6.0}
    generator = random.Random(7)
    for alpha in (0.0, 0.3, 1.0):
        drawn = Counter(tuple(sample("hughug", scores, alpha, generator)) for _ in range(4000))
        every = {tuple(row): math.exp(alpha * score) for row, score in paths("hughug", scores)}
        total = sum(every.values())
        # chi-squared with 15 degrees of freedom is below 44 in all but one of 10,000 trials
        expected = {row: 4000 * weight / total for row, weight in every.items()}
        assert len(every) == 16
        assert sum((drawn[row] - value) ** 2 / value for row, value in expected.items()) < 44


def test_of_equals_the_longer_last_entry_wins() -> None:
    scores = {"a": -1.0, "aa": -2.0, "aaa": -3.0}
    assert viterbi("aaaa", scores)[0] == ["a", "aaa"]


def test_digamma() -> None:
    """ψ(1) = -γ, ψ(x + 1) = ψ(x) + 1/x, ψ(1/2) = -γ - 2 log 2."""
    assert digamma(1.0) == pytest.approx(-0.5772156649015329, abs=1e-9)
    assert digamma(0.5) == pytest.approx(-0.5772156649015329 - 2 * math.log(2), abs=1e-9)
    for x in (0.5, 1.5, 6.9, 7.0, 100.25):
        assert digamma(x + 1) == pytest.approx(digamma(x) + 1 / x, abs=1e-9)


def test_seeds_by_hand() -> None:
    """ "ug" stands 20 times, covers 40 characters, and is followed by "s" and by ends; "hu" is always "hug"."""
    seed = make_seed(WORDS)
    covered = {"ug": 20 * 2, "un": 16 * 2, "hug": 15 * 3, "pu": 17 * 2, "b": 4, "u": 36}
    total = sum(math.exp(score) for score in seed.values())
    assert total == pytest.approx(1)
    for piece, coverage in covered.items():
        assert seed[piece] - seed["b"] == pytest.approx(math.log(coverage / 4))
    assert "hu" not in seed
    assert "bu" not in seed
    assert set(make_seed(WORDS, seed_size=2)) == set("bughnps") | {"hug", "ug"}
    assert "hug" not in make_seed(WORDS, max_length=2)


def test_likelihood_rises() -> None:
    """Each round of expectation maximization (with the logarithm for the digamma) makes the words more probable."""
    scores = make_seed(WORDS)
    before = -math.inf
    for _ in range(8):
        expected, likelihood = e_step(WORDS, scores)
        assert likelihood >= before
        before = likelihood
        assert sum(len(piece) * count for piece, count in expected.items()) == pytest.approx(
            sum(len(word) * count for word, count in WORDS.items())
        )
        total = sum(expected.values())
        scores = {piece: math.log(count / total) for piece, count in expected.items() if count > 1e-12}


def test_steps_by_hand() -> None:
    assert m_step({"a": 0.4, "b": 3.0, "c": 1.0}) == pytest.approx(
        {"b": digamma(3.0) - digamma(4.0), "c": digamma(1.0) - digamma(4.0)}
    )
    scores = {"a": -1.0, "b": -2.0, "ab": -2.5, "ba": -4.0}
    assert alternative("ab", scores) == (["a", "b"], -3.0)
    assert alternative("a", scores) is None
    # "ba" is better segmented as "b" "a"; "ab" is met twice, and would be two tokens each time
    assert set(prune({"ab": 2, "ba": 1}, scores, 2, 0.5)) == {"a", "b"}
    assert set(prune({"ab": 2, "ba": 1}, scores, 3, 0.5)) == {"a", "b", "ab"}
    assert finalize({"ab": -1.0, "a": -2.0, "bb": -3.0}, "cab", 4) == {"ab": -1.0, "a": -2.0, "b": -2.9999, "c": -3.0}


def test_training_keeps_every_character() -> None:
    for size in (7, 8, 9, 12, 30):
        vocabulary = train(WORDS, size)
        assert set("bughnps") <= set(vocabulary)
        assert len(vocabulary) <= size
        assert list(vocabulary.values()) == sorted(vocabulary.values(), reverse=True)
