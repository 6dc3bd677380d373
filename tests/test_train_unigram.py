"""Training a unigram model from texts, and drawing segmentations by it."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from texts import STDLIB, TEXTS

import subword
from subword import Tokenizer, formats
from subword.errors import SubwordValueError, SubwordWarning
from subword.formats import sentencepiece
from subword.spec import ExtraToken, MatchTokens, Unigram

PROSE = [text for text in TEXTS.values() if len(text) < 4000 and "▁" not in text]
CODE = [path.read_text("utf-8") for path in STDLIB[:12]]


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return subword.train_sentencepiece([*CODE, *PROSE], vocab_size=3000)


def test_nothing_is_lost(tok: Tokenizer) -> None:
    for text in [*PROSE, *CODE[:2], "\U0001f9d9‍♂️ unseen ꙮ", "\0\x01\t\r\n", " a  b ", ""]:
        assert tok.decode(tok.encode_ordinary(text)) == text
    assert tok.n_vocab == 3000
    assert tok.spec.roles == {"unk": 0, "bos": 1, "eos": 2}


def test_threads_change_nothing(tok: Tokenizer) -> None:
    for threads in (1, 3):
        assert subword.train_sentencepiece([*CODE, *PROSE], vocab_size=3000, threads=threads).spec == tok.spec


def test_files_and_texts_are_the_same(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(CODE[0].encode())
    from_file = subword.train_sentencepiece(files=[tmp_path / "a.txt"], vocab_size=350, byte_fallback=False)
    assert from_file.spec == subword.train_sentencepiece([CODE[0]], vocab_size=350, byte_fallback=False).spec


def test_sentencepiece_reads_what_was_trained(tok: Tokenizer) -> None:
    spm = pytest.importorskip("sentencepiece")
    theirs = spm.SentencePieceProcessor(model_proto=sentencepiece.write(tok.spec))
    for text in [*PROSE, *CODE[:1]]:
        if "\0" not in text:
            assert theirs.encode(text) == tok.encode_ordinary(text), text


def test_words_are_at_least_as_probable_as_by_sentencepiece() -> None:
    """The mean log likelihood of words, learned from and not, at equal size and with the same settings."""
    spm = pytest.importorskip("sentencepiece")
    import io

    lines = [line for text in CODE for line in text.splitlines() if line.strip() and "▁" not in line]
    learned, held = lines[: len(lines) * 9 // 10], lines[len(lines) * 9 // 10 :]
    out = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(learned),
        model_writer=out,
        vocab_size=1200,
        normalization_rule_name="identity",
        minloglevel=2,
        num_threads=1,
    )
    theirs = Tokenizer(formats.read(out.getvalue()))
    ours = subword.train_sentencepiece(learned, vocab_size=1200, byte_fallback=False, remove_extra_whitespaces=True)
    for some in (learned, held):
        words = Counter(f"▁{word}" for line in some for word in line.split())
        mine, other = (
            sum(
                count * tok.spec.model.compiled().segmentations(word.encode()).log_likelihood(1.0)
                for word, count in words.items()
            )
            for tok in (ours, theirs)
        )
        assert mine >= other


@pytest.mark.filterwarnings("ignore::subword.errors.SubwordWarning")
def test_options() -> None:
    tok = subword.train_sentencepiece(
        PROSE,
        vocab_size=1500,
        control_symbols=["<cls>"],
        user_defined_symbols=["<sep>", "low"],
        pad_id=3,
        character_coverage=0.9,
        treat_whitespace_as_suffix=True,
        hard_vocab_limit=False,
    )
    assert tok.spec.roles == {"unk": 0, "bos": 1, "eos": 2, "pad": 3}
    pieces = [piece.decode() for piece in tok.spec.model.vocab.pieces]
    assert not any("low" in piece and piece != "low" for piece in pieces)
    assert tok.token_id("low") in tok.encode_ordinary("slower")
    assert not any(piece.startswith("▁") and len(piece) > 1 for piece in pieces)
    assert tok.training is not None
    assert tok.training["algorithm"] == "unigram"
    long = subword.train_sentencepiece(PROSE, vocab_size=1300, max_sentencepiece_length=3, hard_vocab_limit=False)
    normal = [
        piece.decode()
        for piece, kind in zip(long.spec.model.vocab.pieces, long.spec.model.kinds.tolist(), strict=True)
        if kind == 0
    ]
    assert max(map(len, normal)) <= 3
    across = subword.train_sentencepiece(["the cat the cat sat"] * 9, vocab_size=267, split_by_whitespace=False)
    assert any(b" " in piece or "▁".encode() in piece[3:] for piece in across.spec.model.vocab.pieces)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"vocab_size": 100}, "no room beside 259 symbols"),
        ({"vocab_size": 260}, "no room for the"),
        ({"vocab_size": 10**6}, "no more than"),
        ({"vocab_size": 3000, "character_coverage": 1.5}, "character_coverage"),
        ({"vocab_size": 3000, "shrinking_factor": 1.0}, "shrinking_factor"),
        ({"vocab_size": 3000, "max_sentencepiece_length": 300}, "255"),
        ({"vocab_size": 3000, "user_defined_symbols": ["<unk>"]}, "twice"),
        ({"vocab_size": 3000, "precompiled_charsmap": "AAAA"}, "damaged"),
    ],
)
def test_what_cannot_be_is_said(options: dict[str, Any], problem: str) -> None:
    with pytest.raises((SubwordValueError, subword.FormatError), match=problem):
        subword.train_sentencepiece(PROSE, **options)


def test_a_text_that_gives_less_than_asked() -> None:
    with pytest.warns(SubwordWarning, match="no more than"):
        tok = subword.train_sentencepiece(["abc abd"], vocab_size=400, hard_vocab_limit=False)
    assert tok.n_vocab < 400
    with pytest.raises(SubwordValueError, match="nothing to train on"):
        subword.train_sentencepiece([], vocab_size=400)


# ======================== segmentations ========================


def test_nbest_starts_with_what_encoding_gives(tok: Tokenizer) -> None:
    for text in ("hello world", "import os", "日本", "x = [1, 2]", ""):
        found = tok.nbest(text, 5)
        assert found[0][0] == tok.encode_ordinary(text)
        scores = [score for _, score in found]
        assert scores == sorted(scores, reverse=True)
        assert all(tok.decode(ids) == text for ids, _ in found)
        assert len({tuple(ids) for ids, _ in found}) == len(found)


def test_samples(tok: Tokenizer) -> None:
    """Each decodes to the text; how often each is drawn is as its probability says; a seed says all."""
    text = "unimportant"
    drawn = tok.sample(text, 0.2, seed=3, n=4000)
    counts = Counter(tuple(ids) for ids, _ in drawn)
    logs = {tuple(ids): log for ids, log in drawn}
    assert all(tok.decode(ids) == text for ids in counts)
    for ids, count in counts.most_common(4):
        share = math.exp(logs[ids])
        assert abs(count - 4000 * share) < 5 * math.sqrt(4000 * share)
    assert tok.sample(text, 0.2, seed=3, n=50) == drawn[:50]
    assert tok.sample(text, 0.2, seed=4, n=50) != drawn[:50]
    assert tok.sample(text, 60.0, seed=1, n=5) == [(tok.encode_ordinary(text), pytest.approx(0, abs=1e-6))] * 5
    assert {tuple(ids) for ids, _ in tok.sample(text, 0.0, seed=1, n=300, nbest=3)} == {
        tuple(ids) for ids, _ in tok.nbest(text, 3)
    }
    distinct = tok.sample(text, 0.5, seed=1, n=10, distinct=True)
    assert len({tuple(ids) for ids, _ in distinct}) == 10
    mean = -sum(log for _, log in drawn) / len(drawn)
    assert tok.entropy(text, 0.2) == pytest.approx(mean, rel=0.1)


def test_samples_of_the_best_are_as_often_as_their_weights_say(tok: Tokenizer) -> None:
    """By chi-squared: with 7 degrees of freedom, one in 10,000 trials is above 30."""
    text, alpha = "unimportant words", 0.3
    best = tok.nbest(text, 8)
    weights = [math.exp(alpha * score) for _, score in best]
    drawn = tok.sample(text, alpha, seed=2, n=20_000, nbest=8)
    counts = Counter(tuple(ids) for ids, _ in drawn)
    shares = {tuple(ids): weight / sum(weights) for (ids, _), weight in zip(best, weights, strict=True)}
    assert sum((counts[ids] - 20_000 * share) ** 2 / (20_000 * share) for ids, share in shares.items()) < 30
    assert all(log == pytest.approx(math.log(shares[tuple(ids)])) for ids, log in drawn[:50])


def test_marginals_are_how_often_samples_have_each_token(tok: Tokenizer) -> None:
    """In characters of the original text, extra tokens and unknown characters with it."""
    spec = tok.spec.replace(extra=(*tok.spec.extra, ExtraToken(9999, "<+>", "added")))
    more = Tokenizer(spec.replace(stages=(MatchTokens(), *spec.stages)))
    text, alpha, n = "wörds<+>an\u4e0dd", 0.4, 4000
    rows = more.marginals(text, alpha)
    assert [row for row in rows if row[0] == 9999] == [(9999, 5, 8, 1.0)]
    # Each byte of the text is covered by one token, whichever.
    in_bytes = more.marginals(text.encode(), alpha)
    assert in_bytes == sorted(in_bytes, key=lambda row: (row[1], row[2], row[0]))
    assert [(row[0], row[3]) for row in in_bytes] == [(row[0], row[3]) for row in rows]
    for at in range(len(text.encode())):
        assert sum(share for _, start, end, share in in_bytes if start <= at < end) == pytest.approx(1)
    ids: dict[int, float] = defaultdict(float)
    for id, _, _, share in rows:
        ids[id] += share
    drawn = Counter(id for row, _ in more.sample(text, alpha, seed=5, n=n) for id in row)
    assert set(drawn) <= set(ids)
    for id, expected in ids.items():
        assert abs(drawn[id] - n * expected) < 5 * math.sqrt(n * expected) + 5


def test_only_a_unigram_has_probabilities(tok: Tokenizer) -> None:
    assert isinstance(tok.spec.model, Unigram)
    bpe = subword.train(["aaa"], vocab_size=257)
    for call in (
        lambda: bpe.sample("a", seed=1),
        lambda: bpe.nbest("a", 2),
        lambda: bpe.entropy("a"),
        lambda: bpe.marginals("a"),
    ):
        with pytest.raises(SubwordValueError, match="only a Unigram"):
            call()
    with pytest.raises(SubwordValueError, match="nbest or distinct"):
        tok.sample("a", seed=1, nbest=2, distinct=True)
