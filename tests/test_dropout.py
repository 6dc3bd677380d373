"""Dropout of merges, and of entries of a WordPiece: the core draws what the reference draws, and draws come as often as
they should.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pytest
from test_characters import MODELS, random_model
from test_engine import ALL_BYTES, both, random_bpe
from texts import glued

import subword
from subword import BPE, ExtraToken, MatchTokens, Spec, Split, Tokenizer, Vocab, _core
from subword.bpe import reference
from subword.errors import SubwordValueError
from subword.spec import BYTE, NORMAL, UNKNOWN, USER_DEFINED, DecodeWordPiece, ScoreBPE, Unigram, WordLevel, WordPiece
from subword.wordpiece import reference as wordpiece

PIECE = (Split("none"),)


# ======================== the core draws what the reference draws ========================


def compare(spec: Spec, text: str, seed: int, **options: Any) -> None:
    core, slow = both(spec)
    for dropout in (0.1, 0.5, 0.9, 1.0):
        drawn = core.sample(text, dropout=dropout, seed=seed, n=4, **options)
        assert drawn == slow.sample(text, dropout=dropout, seed=seed, n=4, **options), (text, dropout)
        assert drawn[:2] == core.sample(text, dropout=dropout, seed=seed, n=2, **options)
    assert core.sample(text, dropout=0, seed=seed, n=2) == [core.encode_ordinary(text)] * 2


def test_random_numbers_are_the_same() -> None:
    for seed in (0, 1, 2**63 - 1, 2**64 - 1):
        units = reference.random_units(seed)
        assert _core.random_units(seed, 100) == [next(units) for _ in range(100)]


@pytest.mark.parametrize("priority", ["merges", "rank"])
def test_random_bpe(priority: str) -> None:
    """Also merges that never come up otherwise: several for an entry, and such as make what nothing spells."""
    rng = random.Random(priority)
    for seed in range(150):
        model = random_bpe(rng, priority, ignore_merges=seed % 2 == 0)
        text = "".join(rng.choices("abcd", k=rng.randint(1, 60)))
        compare(Spec((Split(rng.choice(["none", "gpt2"])),), model), text, seed)


@pytest.mark.parametrize(("unit", "marker"), MODELS)
def test_random_characters(unit: str, marker: str) -> None:
    rng = random.Random(f"{unit} {marker}")
    for seed in range(25):
        model = random_model(rng, unit, marker)
        text = "".join(rng.choices("abé中Σ< x", k=rng.randint(1, 30)))
        spec = Spec((Split("whitespace-split"),), model)
        if not model.is_general:
            compare(spec, text, seed)
            continue
        for engine in ("core", "reference"):
            with pytest.raises(SubwordValueError, match="has no dropout"):
                Tokenizer(spec, engine=engine).sample("ab", dropout=0.5)  # type: ignore[arg-type]


def some_scored(rng: random.Random) -> ScoreBPE:
    """Entries over few letters, with ties, user-defined ones, bytes or none, and by scores or by a list of merges."""
    letters = "aé日b"[: rng.randint(2, 4)]
    words = {"".join(rng.choices(letters, k=rng.randint(1, 4))) for _ in range(rng.randint(2, 16))}
    rows = [("<unk>", UNKNOWN)]
    if rng.random() < 0.5:
        rows += [(f"<0x{byte:02X}>", BYTE) for byte in range(256)]
    rows += [(word, USER_DEFINED if rng.random() < 0.15 else NORMAL) for word in sorted(words)]
    scores = [-float(rng.randint(0, 5)) for _ in rows]
    vocab = Vocab.of([(piece.encode(), id) for id, (piece, _) in enumerate(rows)])
    merges: list[tuple[int, int]] = []
    if rng.random() < 0.3:
        ids = {piece: id for id, (piece, kind) in enumerate(rows) if kind == NORMAL}
        merges = [(ids[a], ids[b]) for a in ids for b in ids if a + b in ids]
        rng.shuffle(merges)
    kinds = np.array([kind for _, kind in rows], dtype=np.uint8)
    return ScoreBPE(vocab, np.array(scores), 0, kinds, merges=np.array(merges, dtype=np.uint32).reshape(-1, 2))


def test_random_merges_by_score() -> None:
    rng = random.Random(8)
    user_defined = 0
    for seed in range(200):
        model = some_scored(rng)
        text = "".join(rng.choices("aé日bx", k=rng.randint(1, 50)))
        spec = Spec(PIECE, model)
        compare(spec, text, seed)
        core = Tokenizer(spec)
        for piece in model.pieces_of(USER_DEFINED):
            user_defined += 1
            found = {core.token_id(piece)}
            assert found & set(core.sample(piece, dropout=1.0, seed=seed)[0]) == found
    assert user_defined > 50


def some_wordpiece(rng: random.Random) -> Spec:
    letters = ["a", "b", "é", "中"][: rng.randint(2, 4)]
    words = {"".join(rng.choices(letters, k=rng.randint(1, 4))) for _ in range(rng.randint(3, 14))}
    entries = ["[UNK]", *sorted({word if rng.random() < 0.5 else "##" + word for word in words} | set(letters[:1]))]
    entries += [f"##{letter}" for letter in letters if f"##{letter}" not in entries and rng.random() < 0.8]
    vocab = Vocab.of([(entry.encode(), id) for id, entry in enumerate(entries)])
    return Spec(
        (Split("whitespace-split"),), WordPiece(vocab, 0, max_input_chars_per_word=12), decode=DecodeWordPiece()
    )


def test_random_word_pieces() -> None:
    rng = random.Random(5)
    for seed in range(80):
        text = "".join(rng.choices("aabé中 ", k=rng.randint(1, 40)))
        compare(some_wordpiece(rng), text, seed)


def test_long_pieces_and_real_vocabularies() -> None:
    rng = random.Random(2)
    tok = subword.train(
        [text * 3 for text in ("the cat sat on the mat, that is that ", "日本語の文です。")], vocab_size=280
    )
    tokens = list(tok.spec.model.vocab.pieces)
    for seed in range(5):
        compare(tok.spec, glued(tokens, 60, rng), seed)
    text = "that" * 50_000
    drawn = tok.sample(text, dropout=0.99, seed=1)[0]
    assert tok.decode(drawn) == text
    assert len(tok.encode(text)) < len(drawn) < len(text)


# ======================== how probable each draw is ========================


def ends_of(
    split: tuple[Any, ...], candidates: Callable[[tuple[Any, ...]], list[tuple[int, Any]]], dropout: Fraction
) -> dict[tuple[Any, ...], Fraction]:
    """The probability of each end that merging can come to: of the candidates in their order, the first that is not
    passed over is made. A candidate is the place of a pair, and what it becomes.
    """
    found: dict[tuple[Any, ...], Fraction] = defaultdict(Fraction)
    passed = Fraction(1)
    for place, made in candidates(split):
        after = ends_of((*split[:place], made, *split[place + 2 :]), candidates, dropout)
        for end, share in after.items():
            found[end] += passed * (1 - dropout) * share
        passed *= dropout
    found[split] += passed
    return found


def check_shares(drawn: list[list[int]], shares: dict[tuple[int, ...], Fraction]) -> None:
    """By chi-squared: with k degrees of freedom, one in 10,000 trials is above k + 3.8 sqrt(2k) + 10."""
    assert sum(shares.values()) == 1
    counts = Counter(map(tuple, drawn))
    assert set(counts) <= {end for end, share in shares.items() if share}
    often = {end: float(share) * len(drawn) for end, share in shares.items() if share * len(drawn) >= 5}
    rest = len(drawn) - sum(often.values())
    chi = sum((counts[end] - expected) ** 2 / expected for end, expected in often.items())
    if rest >= 1:
        chi += (len(drawn) - sum(counts[end] for end in often) - rest) ** 2 / rest
    free = len(often)
    assert free > 2
    assert chi < free + 3.8 * math.sqrt(2 * free) + 10


MERGES = [(b"u", b"g"), (b"h", b"ug"), (b"g", b"s"), (b"hug", b"s"), (b"h", b"u"), (b"hu", b"g")]


def hugs(priority: str) -> BPE:
    pieces = [*ALL_BYTES, *dict.fromkeys(left + right for left, right in MERGES)]
    ids = {piece: id for id, piece in enumerate(pieces)}
    merges = np.array([(ids[left], ids[right]) for left, right in MERGES], dtype=np.uint32)
    return BPE(Vocab.of(ids.items()), merges if priority == "merges" else merges[:0], priority)  # type: ignore[arg-type]


@pytest.mark.parametrize("dropout", [0.1, 0.5, 0.85])
@pytest.mark.parametrize("priority", ["merges", "rank"])
def test_merges_are_passed_over_as_often_as_said(priority: str, dropout: float) -> None:
    model = hugs(priority)
    ids = dict(model.vocab.items())
    order = {pair: rank for rank, pair in enumerate(MERGES)}

    def candidates(split: tuple[bytes, ...]) -> list[tuple[int, bytes]]:
        known = []
        for place, (left, right) in enumerate(pairwise(split)):
            if (left, right) in order if priority == "merges" else left + right in ids:
                known.append((order[left, right] if priority == "merges" else ids[left + right], place))
        return [(place, split[place] + split[place + 1]) for _, place in sorted(known)]

    ends = ends_of(tuple(bytes([byte]) for byte in b"hugshug"), candidates, Fraction(dropout))
    shares = {tuple(ids[part] for part in end): share for end, share in ends.items()}
    check_shares(Tokenizer(Spec(PIECE, model)).sample("hugshug", dropout=dropout, seed=11, n=20_000), shares)


def test_merges_by_score_are_passed_over_as_often_as_said() -> None:
    """With an entry that is taken whole, always, and one character that is unknown."""
    scores = {"<unk>": 0.0, "a": -5.0, "b": -6.0, "ab": -1.0, "ba": -2.0, "aba": -3.0, "X": 0.0}
    kinds = np.array([UNKNOWN, *[NORMAL] * 5, USER_DEFINED], dtype=np.uint8)
    vocab = Vocab.of([(piece.encode(), id) for id, piece in enumerate(scores)])
    tok = Tokenizer(Spec(PIECE, ScoreBPE(vocab, np.array(list(scores.values())), 0, kinds)))

    dropout = Fraction(0.4)

    def ends_once(split: tuple[str, ...], passed: frozenset[int]) -> dict[tuple[str, ...], Fraction]:
        """`passed` has the places in the text between two that were passed over and have not changed."""
        places = list(accumulate(map(len, split)))
        pairs = [(left + right, at) for at, (left, right) in enumerate(pairwise(split)) if places[at] not in passed]
        known = [(-scores[made], at) for made, at in pairs if made in scores and "X" not in made]
        if not known:
            return {split: Fraction(1)}
        _, at = min(known)
        whole = split[at] + split[at + 1]
        beside = {places[at] - len(split[at]), places[at + 1]}
        found: dict[tuple[str, ...], Fraction] = defaultdict(Fraction)
        for end, share in ends_once(split, passed | {places[at]}).items():
            found[end] += dropout * share
        for end, share in ends_once((*split[:at], whole, *split[at + 2 :]), passed - beside).items():
            found[end] += (1 - dropout) * share
        return found

    ends = ends_once(tuple("abaXab?ba"), frozenset())
    shares = {
        tuple(list(scores).index(part) if part != "?" else 0 for part in end): share for end, share in ends.items()
    }
    check_shares(tok.sample("abaXab?ba", dropout=0.4, seed=3, n=20_000), shares)


def test_entries_of_a_wordpiece_are_passed_over_as_often_as_said() -> None:
    entries = ["[UNK]", "a", "ab", "abc", "##b", "##bc", "##c", "##cb", "##cbb", "abcb"]
    vocab = Vocab.of([(entry.encode(), id) for id, entry in enumerate(entries)])
    tok = Tokenizer(Spec((Split("whitespace-split"),), WordPiece(vocab, 0), decode=DecodeWordPiece()))
    dropout = Fraction(0.3)

    def shares_of(word: str, start: int = 0) -> dict[tuple[int, ...], Fraction]:
        found: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
        passed = Fraction(1)
        for end in range(len(word), start, -1):
            entry = ("##" if start else "") + word[start:end]
            if entry in entries:
                taken = passed * (1 - dropout if end > start + 1 else 1)
                after = shares_of(word, end) if end < len(word) else {(): Fraction(1)}
                for rest, share in after.items():
                    found[(entries.index(entry), *rest)] += taken * share
                passed -= taken
        return found

    check_shares(tok.sample("abcbbc", dropout=0.3, seed=9, n=20_000), shares_of("abcbbc"))
    # Where a character has no entry of its own, it can be lost with the longer one.
    lacking = Vocab.of([(entry, id) for id, entry in enumerate([b"[UNK]", b"a", b"##bc", b"##c"])])
    drawn = Tokenizer(Spec((Split("none"),), WordPiece(lacking, 0))).sample("abc", dropout=0.25, seed=1, n=4000)
    counts = Counter(map(tuple, drawn))
    assert set(counts) == {(0,), (1, 2)}
    assert abs(counts[0,] - 1000) < 5 * math.sqrt(1000)


# ======================== what is never broken, and what is refused ========================


def test_the_ends() -> None:
    """Nothing passed over is encoding; everything passed over leaves bytes, or characters."""
    tok = subword.train(["a tale of two tales, 日本"] * 9, vocab_size=264)
    assert tok.sample("a tale 日", dropout=1, seed=1) == [list("a tale 日".encode())]
    assert tok.sample("a tale 日", dropout=0.0) == [tok.encode("a tale 日")]
    assert tok.sample("", dropout=0.5, seed=1, n=3) == [[], [], []]
    assert tok.sample(b"a tale \xff", dropout=1, seed=1) == [list(b"a tale \xff")]
    words = subword.train(["a tale of two tales"] * 9, vocab_size=20, algorithm="wordpiece", special_tokens=["[UNK]"])
    assert [words.token_piece(id) for id in words.sample("tales", dropout=1.0)[0]] == ["t", "##a", "##l", "##e", "##s"]
    assert wordpiece.encode("ab", ["a", "ab", "##b"], is_passed=lambda start, end: end > start + 1) == ["a", "##b"]


def test_draws_are_new_without_a_seed_and_the_same_with_one() -> None:
    tok = subword.train(["a tale of two tales"] * 9, vocab_size=264)
    text = "a tale of two tales " * 20
    assert tok.sample(text, dropout=0.5) != tok.sample(text, dropout=0.5)
    assert tok.sample(text, dropout=0.5, seed=5) == tok.sample(text, dropout=0.5, seed=5)
    assert tok.sample(text, dropout=0.5, seed=5) != tok.sample(text, dropout=0.5, seed=6)


def test_extra_tokens_are_never_broken() -> None:
    base = subword.train(["a tale <of> two [tales]"] * 9, vocab_size=264).spec
    extra = (ExtraToken(900, "<of>"), ExtraToken(901, "[tales]", "added"))
    tok = Tokenizer(base.replace(extra=extra, stages=(MatchTokens(), *base.stages)))
    for seed in range(20):
        text = "a <of><of> [tales]"
        plain = tok.sample(text, dropout=0.7, seed=seed)[0]
        assert plain.count(901) == 1
        assert 900 not in plain
        taken = tok.sample(text, dropout=0.7, seed=seed, allowed_special="all")[0]
        assert (taken.count(900), taken.count(901)) == (2, 1)
        assert tok.decode(taken) == tok.decode(plain) == text
    compare(tok.spec, "a <of> [tales] tales", 1, allowed_special={"<of>"})


def test_what_has_nothing_to_pass_over_is_refused() -> None:
    bpe = subword.train(["aaa"], vocab_size=257)
    vocab = Vocab.of([(b"<unk>", 0), (b"a", 1)])
    unigram = Tokenizer(Spec(PIECE, Unigram(vocab, np.array([-1.0, -2.0]), 0)))
    for tok in (unigram, Tokenizer(Spec(PIECE, WordLevel(vocab, 0)))):
        with pytest.raises(SubwordValueError, match="has nothing that dropout could pass over"):
            tok.sample("a", dropout=0.1, seed=1)
    with pytest.raises(SubwordValueError, match="dropout"):
        bpe.sample("a", seed=1)
    for dropout in (-0.1, 1.1, math.nan, "0.1", True):
        with pytest.raises(SubwordValueError, match="dropout must be"):
            bpe.sample("a", dropout=dropout, seed=1)  # type: ignore[call-overload]
    for options in ({"alpha": 0.5}, {"nbest": 2}, {"distinct": True}):
        with pytest.raises(SubwordValueError, match="dropout goes with"):
            bpe.sample("a", dropout=0.1, **options)  # type: ignore[call-overload]
    with pytest.raises(SubwordValueError, match="allowed_special goes with dropout"):
        unigram.sample("a", allowed_special="all")  # type: ignore[call-overload]
    with pytest.raises(SubwordValueError, match="seed must be"):
        bpe.sample("a", dropout=0.1, seed=-1)
