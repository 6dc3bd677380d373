"""The core's unigram model against the reference, on tiny random vocabularies: encoding, sampling, training."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Container, Iterable, Mapping

import numpy as np
import pytest

from subword import _core
from subword.errors import FormatError, SubwordValueError
from subword.scripts import SCRIPTS
from subword.spec import BYTE, NORMAL, UNKNOWN, Packed, Unigram, Vocab
from subword.unigram import reference

LETTERS = "aé日\U0001f600"


UNK = 0


def model_of(scores: Mapping[str, float], precision: str = "float64") -> _core.Model:
    """The core's model of pieces: the first has the id 1, and 0 is unknown."""
    vocab = Vocab.of([(b"<unk>", UNK), *((piece.encode(), id) for id, piece in enumerate(scores, 1))])
    kinds = np.array([UNKNOWN, *[NORMAL] * len(scores)], dtype=np.uint8)
    # An unknown piece counts as an entry in 64 bits, so its score must not be the worst.
    all_scores = np.array([max(scores.values()), *scores.values()], dtype=np.float64)
    return Unigram(vocab, all_scores, UNK, kinds, precision).compiled()  # type: ignore[arg-type]


def pieces_of(text: str, tokens: Iterable[tuple[int, int]]) -> list[str]:
    data, start, pieces = text.encode(), 0, []
    for _, end in tokens:
        pieces.append(data[start:end].decode())
        start = end
    return pieces


def fused(pieces: Iterable[str], known: Container[str]) -> list[str]:
    """Unknown characters side by side are one token."""
    out: list[str] = []
    last_unknown = False
    for piece in pieces:
        unknown = piece not in known
        if unknown and last_unknown:
            out[-1] += piece
        else:
            out.append(piece)
        last_unknown = unknown
    return out


def encode(scores: Mapping[str, float], precision: str, text: str) -> list[tuple[int, int]]:
    model = model_of(scores, precision)
    engine = _core.Engine([], model, [], ([], []), ("Decode", "", "false"))
    ids, spans, _ = engine.encode_with_spans(text, engine.default_policy, False)
    return list(zip(ids.tolist(), (int(end) for _, end in spans), strict=True))


def some(seed: int, ties: bool = False) -> tuple[dict[str, float], str]:
    """A random vocabulary over few letters, and a text of them and of one letter more."""
    generator = random.Random(seed)
    letters = LETTERS[: generator.randint(1, 4)]
    count = generator.randint(1, 14)
    pieces = {"".join(generator.choices(letters, k=generator.randint(1, 4))) for _ in range(count)}
    score = (lambda: -generator.choice([1.0, 2.0, 3.0])) if ties else (lambda: -9 * generator.random() - 0.01)
    return {piece: score() for piece in sorted(pieces)}, "".join(
        generator.choices(letters + "x", k=generator.randint(1, 9))
    )


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_encoding_is_that_of_the_reference(precision: str) -> None:
    for seed in range(600):
        scores, text = some(seed, ties=seed % 2 == 0)
        if precision == "float32":
            scores = {piece: reference.float32(score) for piece, score in scores.items()}
        text *= random.Random(seed).choice([1, 1, 5, 40])
        tokens = encode(scores, precision, text)
        wanted = fused(reference.viterbi(text, scores, precision)[0], scores)
        assert pieces_of(text, tokens) == wanted, (scores, text)
        ids = dict(zip(scores, range(1, 100), strict=False))
        assert [id for id, _ in tokens] == [ids.get(piece, UNK) for piece in wanted]


def test_float32_and_float64_differ_where_sums_are_large() -> None:
    """Otherwise the two modes would not be worth having."""
    scores = {"a": -1.1, "aa": -2.2001, "b": -3.3}
    scores = {piece: reference.float32(score) for piece, score in scores.items()}
    text = "b" * 1500 + "aaaaaaaa"
    single, double = (pieces_of(text, encode(scores, name, text)) for name in ("float32", "float64"))
    assert single != double
    assert single == reference.viterbi(text, scores, "float32")[0]
    assert double == reference.viterbi(text, scores, "float64")[0]


def test_all_segmentations_are_those_of_the_reference() -> None:
    for seed in range(200):
        scores, text = some(seed)
        model = model_of(scores).segmentations(text.encode())
        found = model.nbest(6)
        wanted = reference.nbest(text, scores, 6)
        assert [score for _, score in found] == pytest.approx([score for _, score in wanted])
        for alpha in (0.0, 0.4, 1.0, 2.0):
            assert model.entropy(alpha) == pytest.approx(reference.entropy(text, scores, alpha), abs=1e-9)
            rows = model.marginals(alpha)
            shares, wanted_total = reference.marginals(text, scores, alpha)
            at = {len(text[:i].encode()): i for i in range(len(text) + 1)}
            assert {(at[start], at[end]): share for start, end, _, share in rows} == pytest.approx(shares)
            assert model.log_likelihood(alpha) == pytest.approx(wanted_total)


def test_many_segmentations_of_a_long_text_of_equals() -> None:
    """Each of a million characters doubles how many there are; all that count are found, each once, in order."""
    scores = {"a": -1.0, "aa": -2.0, "aaa": -3.0}
    found = model_of(scores).segmentations(b"a" * 3000).nbest(40)
    assert len({tuple(tokens) for tokens, _ in found}) == 40
    assert {score for _, score in found} == {-3000.0}


SIX = {"h": -4.0, "u": -4.0, "g": -4.0, "hu": -3.0, "ug": -2.5, "hug": -6.0}


def test_samples_are_distributed_as_said() -> None:
    model = model_of(SIX).segmentations(b"hughug")
    for alpha in (0.0, 0.3, 1.0):
        drawn = model.sample(20000, alpha, 7)
        counts = Counter(tuple(pieces_of("hughug", tokens)) for tokens, _ in drawn)
        every = {tuple(row): math.exp(alpha * score) for row, score in reference.paths("hughug", SIX)}
        total = sum(every.values())
        for tokens, log in drawn[:50]:
            assert log == pytest.approx(math.log(every[tuple(pieces_of("hughug", tokens))] / total))
        expected = {row: 20000 * weight / total for row, weight in every.items()}
        # chi-squared with 15 degrees of freedom is below 44 in all but one of 10,000 trials
        assert sum((counts[row] - value) ** 2 / value for row, value in expected.items()) < 44
    assert model.sample(20, 1.0, 3) == model.sample(20, 1.0, 3)
    assert model.sample(20, 1.0, 3) != model.sample(20, 1.0, 4)


def test_samples_without_replacement_are_distributed_as_said() -> None:
    """The first is a sample; the second is one of the others, by their probabilities."""
    model = model_of(SIX).segmentations(b"hug")
    every = {tuple(row): math.exp(score) for row, score in reference.paths("hug", SIX)}
    total = sum(every.values())
    counts: Counter[tuple[tuple[str, ...], ...]] = Counter()
    trials = 20000
    for seed in range(trials):
        drawn = model.sample_without_replacement(2, 1.0, seed)
        assert drawn[0][2] >= drawn[1][2]
        counts[tuple(tuple(pieces_of("hug", tokens)) for tokens, _, _ in drawn)] += 1
    chi = 0.0
    for first, weight in every.items():
        for second, other in every.items():
            if first != second:
                expected = trials * weight / total * other / (total - weight)
                chi += (counts[first, second] - expected) ** 2 / expected
    assert len(every) == 4
    assert sum(counts.values()) == trials
    assert chi < 38  # with 11 degrees of freedom, one in 10,000 trials is above
    everything = model_of(SIX).segmentations(b"hughug").sample_without_replacement(50, 0.5, 1)
    assert len({tuple(tokens) for tokens, _, _ in everything}) == len(everything) == 16
    assert sum(math.exp(log) for _, log, _ in everything) == pytest.approx(1)


def test_what_contradicts_itself_is_refused() -> None:
    for scores in ({"a": math.nan}, {"a": math.inf}, {"a": -math.inf}):
        with pytest.raises(FormatError, match="finite"):
            model_of(scores)
    vocab = Vocab.of([(b"a", 0), (b"<0x41>", 1)])
    with pytest.raises(SubwordValueError, match=r"\(3,\) scores for 2 entries"):
        Unigram(vocab, np.zeros(3), 0)
    with pytest.raises(FormatError, match="no entry has the id 7"):
        Unigram(vocab, np.zeros(2), 7).compiled()
    with pytest.raises(FormatError, match="255 of the entries"):
        Unigram(vocab, np.zeros(2), 0, np.array([0, BYTE], dtype=np.uint8)).compiled()
    with pytest.raises(FormatError, match="none of <0x00>"):
        Unigram(vocab, np.zeros(2), 0, np.array([BYTE, 0], dtype=np.uint8)).compiled()


def test_bytes_that_are_no_text() -> None:
    model = model_of({"a": -1.0, "é": -2.0}, "float32")
    engine = _core.Engine([], model, [], ([], []), ("Decode", "", "false"))
    for data in (b"\xff", b"a\xc3", b"\xa9a", b"\xf0\x9f", "é".encode() + b"\xe3\x81", b"\0a\0"):
        _, spans, _ = engine.encode_with_spans(data, engine.default_policy, False)
        ends = [int(end) for _, end in spans]
        assert ends[-1] == len(data)
        assert ends == sorted(set(ends))


# ======================== training ========================


def learn(
    words: Mapping[str, int],
    vocab_size: int,
    seed_size: int = 1_000_000,
    max_length: int = 16,
    shrinking_factor: float = 0.75,
    coverage: float = 1.0,
    required: str = "",
    threads: int = 1,
    rules: tuple[bool, bool, bool, bool, bool, bool] = (False, True, False, False, False, False),
) -> tuple[dict[str, float], list[tuple[int, float]], int]:
    packed = Packed.of(word.encode() for word in words)
    pieces, rounds, left_out = _core.learn_unigram(
        packed.data,
        packed.offsets.astype(np.int64),
        np.array(list(words.values()), dtype=np.int64),
        list(SCRIPTS),
        vocab_size,
        coverage,
        required,
        seed_size,
        shrinking_factor,
        2,
        (max_length, *rules),
        threads,
    )
    return {piece.decode(): score for piece, score in pieces}, rounds, left_out


def some_words(seed: int) -> dict[str, int]:
    generator = random.Random(seed)
    letters = LETTERS[: generator.randint(1, 4)] + "bc"
    count = generator.randint(1, 40)
    words = {"".join(generator.choices(letters, k=generator.randint(1, 12))) for _ in range(count)}
    return {word: generator.randint(1, 9) for word in sorted(words)}


def test_training_is_that_of_the_reference() -> None:
    """But for entries whose loss or score is the same up to rounding, which may change places: in a few cases."""
    ties = 0
    for seed in range(150):
        words = some_words(seed)
        generator = random.Random(seed)
        chars = len({char for word in words for char in word})
        size, longest = generator.randint(chars, chars + 30), generator.randint(2, 8)
        seed_size = generator.choice([5, 40, 1_000_000])
        wanted = reference.train(words, size, seed_size, longest)
        got, _, left_out = learn(words, size, seed_size, longest)
        assert left_out == 0
        assert len(got) == len(wanted)
        ties += got != pytest.approx(wanted)
    assert ties < 5


def test_words_are_cut_where_no_entry_can_stand() -> None:
    """Learning from the runs of words is learning from the words, with fewer valid seeds."""
    words = {"▁abc日本語": 5, "▁abc1": 7, "1日本": 3, "▁ab▁": 2, "日本語かな": 4}
    got, _, _ = learn(words, 30, rules=(True, True, True, False, False, False))
    for piece in got:
        assert not {"c日", "1日", "c1", "b▁"} & {piece[i : i + 2] for i in range(len(piece))}
    assert "▁abc" in got
    assert "日本語" in got
    assert "c1" in "".join(learn({"abc1": 50, "bc1": 9}, 12, rules=(True, False, True, False, False, False))[0])
    digits, _, _ = learn({"a12": 50, "112": 20}, 12, rules=(False, True, True, True, False, False))
    assert not any(len(piece) > 1 and set(piece) & set("12") for piece in digits)


def test_threads_change_nothing() -> None:
    generator = random.Random(3)
    syllables = ["ka", "lo", "mi", "ten", "ra", "su", "日", "本"]
    words = {
        "".join(generator.choices(syllables, k=generator.randint(1, 6))): generator.randint(1, 50) for _ in range(3000)
    }
    one = learn(words, 200, threads=1)
    assert one == learn(words, 200, threads=3)
    assert one == learn(dict(sorted(words.items(), reverse=True)), 200, threads=2)
    assert len(one[0]) == 200


def test_rare_characters_are_left_out() -> None:
    words = {"ab": 1000, "abx": 1, "y": 1}
    got, _, left_out = learn(words, 10, coverage=0.999)
    assert left_out == 2
    assert set("".join(got)) == set("ab")
    assert set("".join(learn(words, 10, coverage=0.999, required="xz")[0])) == set("abxz")


def test_long_runs_do_not_overflow() -> None:
    words = {"ab" * 6000 + "c": 3, "a" * 5000: 2, "b": 10**12}
    got, rounds, _ = learn(words, 12)
    assert all(math.isfinite(score) for score in got.values())
    assert all(math.isfinite(likelihood) for _, likelihood in rounds)


def test_a_vocabulary_smaller_than_its_characters_is_refused() -> None:
    with pytest.raises(SubwordValueError, match="no room for the 3 characters"):
        learn({"abc": 2}, 2)
    with pytest.raises(SubwordValueError, match="nothing to learn"):
        learn({}, 2)
