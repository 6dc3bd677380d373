"""Training: the merges of the reference, the same for every way of giving the text, and what is said when it ends."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import warnings
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from texts import TEXTS

import subword
from subword import SubwordValueError, SubwordWarning, _core, patterns
from subword.bpe import reference
from subword.training import BYTE_ORDERS, TIE_RULES

IDENTITY = bytes(range(256))


def learn(pieces: dict[bytes, int], n: int, tie_rule: str, order: bytes = IDENTITY) -> list[tuple[int, int]]:
    merges, *_ = _core.Pieces(list(pieces.items())).learn_bpe(n, order, tie_rule, None)
    return [tuple(pair) for pair in merges.tolist()]


@pytest.mark.parametrize("tie_rule", list(reference.TIE_RULES))
def test_tiny_corpora_full_of_ties(tie_rule: str) -> None:
    rng = random.Random(tie_rule)
    for round in range(3_000):
        letters = "abcde"[: rng.randint(1, 5)]
        pieces: dict[bytes, int] = {}
        for _ in range(rng.randint(1, 8)):
            piece = "".join(rng.choices(letters, k=rng.randint(1, 14))).encode()
            pieces[piece] = pieces.get(piece, 0) + rng.choice((1, 1, 1, 2, 3))
        order = bytes(rng.sample(range(256), 256)) if round % 2 else IDENTITY
        merges = reference.train(pieces, 30, alphabet=order, tie_rule=tie_rule)
        assert learn(pieces, 30, tie_rule, order) == list(merges), pieces


@pytest.mark.parametrize("tie_rule", list(reference.TIE_RULES))
def test_learning_goes_on_from_merges_already_made(tie_rule: str) -> None:
    rng = random.Random(tie_rule)
    for round in range(500):
        letters = "abcde"[: rng.randint(1, 5)]
        pieces = {"".join(rng.choices(letters, k=rng.randint(1, 60))).encode(): rng.randint(1, 3) for _ in range(8)}
        order = bytes(rng.sample(range(256), 256)) if round % 2 else IDENTITY
        found = _core.Pieces(list(pieces.items()))
        whole = found.learn_bpe(30, order, tie_rule, None)
        expected = reference.train(pieces, 30, alphabet=order, tie_rule=tie_rule)
        for done in {0, 1, rng.randint(0, 30), 30}:
            part = found.learn_bpe(done, order, tie_rule, None)
            merges, counts, certain, _ = found.learn_bpe(30, order, tie_rule, None, start=part[:3])
            assert (merges.tolist(), counts.tolist(), certain) == (whole[0].tolist(), whole[1].tolist(), whole[2])
            start = dict(list(expected.items())[:done])
            assert reference.train(pieces, 30, alphabet=order, tie_rule=tie_rule, start=start) == expected
            letters_only = found.learn_bpe_of_characters(done, "·", tie_rule, None)
            again, counts, *_ = found.learn_bpe_of_characters(30, "·", tie_rule, None, start=letters_only[:3])
            once = found.learn_bpe_of_characters(30, "·", tie_rule, None)
            assert (again.tolist(), counts.tolist()) == (once[0].tolist(), once[1].tolist())


def test_merges_that_no_learning_gives_are_not_gone_on_from() -> None:
    pieces = _core.Pieces([(b"abab", 1)])
    for wrong, why in (([[97, 256]], "no such entry before it"), ([[97, 98], [97, 98]], "a second time")):
        start = np.array(wrong, dtype=np.uint32), np.ones(len(wrong), dtype=np.uint64), 0
        with pytest.raises(SubwordValueError, match=why):
            pieces.learn_bpe(9, IDENTITY, "smallest-ids", None, start=start)


@pytest.mark.parametrize("tie_rule", list(reference.TIE_RULES))
@pytest.mark.parametrize("pattern", ["gpt2", "cl100k", "o200k", "none"])
def test_real_text(pattern: str, tie_rule: str) -> None:
    texts = list(TEXTS.values())[:60]
    ours = subword.train(texts, vocab_size=330, pattern=pattern, tie_rule=tie_rule)  # type: ignore[arg-type]
    pieces = [piece.encode() for text in texts for piece in patterns.split(pattern, text) if piece]
    assert [tuple(pair) for pair in ours.spec.model.merges.tolist()] == list(
        reference.train(pieces, 330 - 256, tie_rule=tie_rule)
    )


def test_a_count_beyond_32_bits_outweighs_a_small_one() -> None:
    assert learn({b"ab": 10, b"cd": 3_000_000_000}, 2, "smallest-ids") == [(99, 100), (97, 98)]
    assert learn({b"ab": 2**61, b"cd": 2**61 + 1}, 1, "smallest-ids") == [(99, 100)]
    with pytest.raises(SubwordValueError, match="2\\^64"):
        learn({b"abcd": 2**63}, 1, "smallest-ids")


def test_counts_of_billions_are_exact() -> None:
    rng = random.Random(5)
    for tie_rule in reference.TIE_RULES:
        for _ in range(100):
            counts = (3_000_000_000, 3_000_000_001, 2**32 - 1, 2**32, 2**40, 1)
            pieces = {"".join(rng.choices("abc", k=rng.randint(1, 8))).encode(): rng.choice(counts) for _ in range(6)}
            assert _core.Pieces(list(pieces.items())).total == sum(pieces.values())
            assert learn(pieces, 20, tie_rule) == list(reference.train(pieces, 20, tie_rule=tie_rule))


@pytest.mark.parametrize("form", ["NFKC", "NFKD"])
def test_first_seen_where_one_character_becomes_several_pieces(form: str) -> None:
    rng = random.Random(form)
    for round in range(60):
        texts = [
            "".join(rng.choices("\ufdfa\ufb01\u2460\u00bd\u01c4 ab1\u3300", k=rng.randint(1, 9))) for _ in range(7)
        ]
        normal = [_core.normalize(text, form, "9.0") for text in texts]
        pieces = [piece.encode() for text in normal for piece in patterns.split("gpt2", text)]
        expected = list(reference.train(pieces, 12, tie_rule="first-seen"))
        table = subword.count_pieces(texts, pattern="gpt2", normalization=form, threads=1 + round % 3)  # type: ignore[arg-type]
        assert dict(table) == Counter(pieces)
        found, _, _ = table.pieces(in_order=True)
        merges, *_ = found.learn_bpe(12, IDENTITY, "first-seen", None)
        assert [tuple(pair) for pair in merges.tolist()] == expected, texts


def test_a_wrong_text_is_named_by_its_place_in_the_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subword.counting.FEED_BYTES", 200)
    with pytest.raises(SubwordValueError, match="text 7: a text must be str or bytes, not int"):
        subword.train(["ab"] * 7 + [5], vocab_size=300)  # type: ignore[list-item]


# ======================== repeatable ========================


def spec_of(**options: object) -> str:
    texts = list(TEXTS.values()) * 6  # more than one thread starts with
    return subword.train(texts, vocab_size=500, **options).fingerprint  # type: ignore[arg-type]


def test_same_result_for_any_number_of_threads_chunking_and_form() -> None:
    texts = list(TEXTS.values()) * 6
    for tie_rule in reference.TIE_RULES:
        expected = spec_of(tie_rule=tie_rule, threads=1)
        for threads in (2, 3, 7):
            assert spec_of(tie_rule=tie_rule, threads=threads) == expected
        as_bytes = subword.train((text.encode() for text in texts), vocab_size=500, tie_rule=tie_rule)  # type: ignore[arg-type]
        assert as_bytes.fingerprint == expected


def test_feeding_in_parts_counts_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    for tie_rule in reference.TIE_RULES:
        expected = spec_of(tie_rule=tie_rule)
        for size in (1, 100, 3_000):
            monkeypatch.setattr("subword.counting.FEED_BYTES", size)
            assert spec_of(tie_rule=tie_rule, threads=2) == expected


@pytest.mark.parametrize("tie_rule", ["smallest-ids", "largest-string"])
def test_order_of_texts_does_not_matter(tie_rule: str) -> None:
    texts = list(TEXTS.values())
    rng = random.Random(1)
    results = set()
    for _ in range(4):
        rng.shuffle(texts)
        results.add(subword.train(texts, vocab_size=700, tie_rule=tie_rule).fingerprint)  # type: ignore[arg-type]
    assert len(results) == 1


def test_hash_seed_does_not_matter() -> None:
    code = "import sys; sys.path.insert(0, sys.argv[1]); import test_training; print(test_training.spec_of())"
    folder = str(Path(__file__).parent)
    results = {
        subprocess.run(
            [sys.executable, "-c", code, folder],
            env={**os.environ, "PYTHONHASHSEED": seed},
            text=True,
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert results == {spec_of() + "\n"}


def test_files_give_what_texts_give(tmp_path: Path) -> None:
    texts = [text for text in TEXTS.values() if text]
    lines = tmp_path / "texts.jsonl"
    lines.write_text("".join(json.dumps({"body": text}) + "\n" for text in texts), "utf-8")
    from_file = subword.train(files=[lines], vocab_size=500, field="body")
    assert from_file.fingerprint == subword.train(texts, vocab_size=500).fingerprint
    one = tmp_path / "one.txt"
    one.write_bytes("".join(texts).encode())
    assert subword.train(files=[one], vocab_size=400) == subword.train(["".join(texts)], vocab_size=400)


# ======================== sizes ========================


def test_the_size_asked_for_is_the_size_got() -> None:
    for specials in ([], ["<a>"], ["<a>", "<b>", "<c>", "<d>", "<e>"]):
        for size in (256 + len(specials), 300, 411):
            tok = subword.train(list(TEXTS.values()), vocab_size=size, special_tokens=specials)
            assert len(tok.vocab) == tok.n_vocab == size
            assert list(tok.special_tokens) == specials
            assert tok.training is not None and tok.training["stopped"] == "vocab size reached"


def test_running_out_of_pairs_is_said() -> None:
    with pytest.warns(
        SubwordWarning, match="no pairs left after 3 merges: the vocabulary has 260 entries, not the 1000"
    ):
        tok = subword.train(["abcd"], vocab_size=1000, special_tokens=["<s>"])
    assert tok.training is not None
    assert (tok.training["asked"], tok.training["vocab_size"], tok.training["stopped"]) == (1000, 260, "no pairs left")
    with pytest.warns(SubwordWarning):
        assert subword.train(["a"], vocab_size=300).n_vocab == 256


@pytest.mark.parametrize("texts", [[], [""], ["", "", b""], iter(())])
def test_nothing_to_train_on(texts: object) -> None:
    with pytest.raises(SubwordValueError, match="nothing to train on"):
        subword.train(texts, vocab_size=300)  # type: ignore[arg-type]


def test_only_special_tokens_is_nothing_to_train_on() -> None:
    with pytest.raises(SubwordValueError, match="outside special tokens"):
        subword.train(["<s><s>"], vocab_size=300, special_tokens=["<s>"])


def test_below_the_minimum_names_it() -> None:
    with pytest.raises(SubwordValueError, match="minimum of 258: 256 bytes and 2 special tokens"):
        subword.train(["abc"], vocab_size=257, special_tokens=["<a>", "<b>"])


def test_special_tokens_cut_the_text() -> None:
    tok = subword.train(["ABCD<sep>EFGH" * 50], vocab_size=264, special_tokens=["<sep>"], pattern="none")
    pieces = list(tok.spec.model.vocab.pieces)[256:]
    assert len(pieces) == 7 and all(piece in b"EFGHABCD" for piece in pieces)
    assert tok.encode("ABCD<sep>", allowed_special="all")[-1] == tok.special_tokens["<sep>"] == tok.n_vocab - 1


def test_roles_and_template() -> None:
    tok = subword.train(
        ["abc abc"],
        vocab_size=262,
        pattern="gpt2",
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        special_tokens=["<pad>"],
    )
    assert (tok.special_tokens["<pad>"], tok.bos_id, tok.eos_id, tok.pad_id) == (259, 260, 261, 259)
    assert tok.encode("abc", add_special_tokens=True) == [260, tok.token_id("abc"), 261]
    assert tok.unk_id is None


def test_byte_order_gives_the_ids_of_the_bytes() -> None:
    tok = subword.train(["abab"], vocab_size=257, byte_order="gpt2")
    assert tok.encode("!") == [0] and tok.token_bytes(0) == b"!"
    assert [tok.token_id(bytes([byte])) for byte in BYTE_ORDERS["gpt2"]] == list(range(256))


def test_progress_is_told_and_can_stop() -> None:
    seen: list[tuple[str, int, int | None]] = []
    subword.train(["hello world " * 50], vocab_size=260, progress=lambda *told: seen.append(told))
    assert ("count", 600, None) in seen and seen[-1] == ("learn", 4, 4)

    def stop(stage: str, done: int, total: int | None) -> None:
        if stage == "learn":
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        subword.train(["hello world " * 50], vocab_size=300, progress=stop)


def test_merge_counts_never_rise() -> None:
    pieces, _, _ = subword.count_pieces(list(TEXTS.values())).pieces()
    _, counts, *_ = pieces.learn_bpe(400, IDENTITY, "smallest-ids", None)
    assert np.all(counts[1:] <= counts[:-1])


def test_llama3_special_tokens_stand_where_llama3_has_them() -> None:
    tok = subword.train(["abc abd bcd"], **subword.PRESETS["llama3"] | {"vocab_size": 515})
    first = tok.n_vocab - 256
    ids = {token: id - first for token, id in tok.special_tokens.items()}
    assert (ids["<|begin_of_text|>"], ids["<|end_of_text|>"], ids["<|eot_id|>"]) == (0, 1, 9)
    assert ids["<|reserved_special_token_250|>"] == 255
    assert tok.encode("a", add_special_tokens=True)[0] == tok.bos_id == first


# ======================== the curve ========================


def tokens_by_reference(text: bytes, tok: subword.Tokenizer, merges: int) -> int:
    """Brute force: how many tokens the text is for a tokenizer that has only so many of the merges."""
    model = tok.spec.model
    few = subword.BPE(subword.Vocab.of([*model.vocab.items()][: 256 + merges]), model.merges[:merges])
    cut = tok.spec.replace(model=few, extra=(), notes={}, roles={})
    return len(subword.Tokenizer(cut, engine="reference").encode(text))


def test_the_curve_is_what_encoding_with_so_many_merges_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subword.sizes.CURVE_STEP", 1)
    rng = random.Random(7)
    corpora = [
        ["aaaaaaaa aaa aaaaa"],  # pairs that overlap are counted more often than they are merged
        ["abababab", "ababa"],
        *([" ".join("".join(rng.choices("ab", k=rng.randint(1, 9))) for _ in range(12))] for _ in range(40)),
        ["the cat sat on the mat, 中文中文中文"],
    ]
    overlaps = 0
    for texts in corpora:
        for tie_rule in TIE_RULES:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SubwordWarning)
                tok = subword.train(texts, vocab_size=256 + 9, tie_rule=tie_rule, pattern="gpt2")
            assert tok.training is not None
            curve = tok.training["curve"]
            assert [row["merges"] for row in curve] == list(range(len(curve)))
            data = "".join(texts).encode()
            if len(texts) == 1:
                assert [row["tokens"] for row in curve] == [
                    tokens_by_reference(data, tok, merges) for merges in range(len(curve))
                ]
            assert tok.training["learned_from"]["bytes"] == len(data) == curve[0]["tokens"]
            assert curve[-1]["tokens"] == sum(map(tok.count, texts))
            assert all(row["bytes_per_token"] == round(len(data) / row["tokens"], 4) for row in curve)
            overlaps += sum(before["tokens"] - row["tokens"] < row["count"] for before, row in pairwise(curve))
    assert overlaps > 20


def test_the_curve_has_a_row_each_thousand_merges_and_one_at_the_end() -> None:
    rng = random.Random(3)
    text = " ".join("".join(rng.choices("abcdefghij", k=7)) for _ in range(3000))
    tok = subword.train([text], vocab_size=2_500, special_tokens=["<s>"])
    assert tok.training is not None
    curve = tok.training["curve"]
    assert [row["merges"] for row in curve] == [0, 1000, 2000, 2243]
    assert [row["vocab_size"] for row in curve] == [257, 1257, 2257, 2500]
    assert curve[-1]["tokens"] == tok.count(text)
    assert tok.training["least_count"] == curve[-1]["count"]


def test_the_curve_is_by_weight_and_of_what_was_learned_from() -> None:
    table = subword.count_pieces(["abab abab xy"], source="a") + subword.count_pieces(["cdcdcd q"], source="b")
    tok = subword.train(counts=table, vocab_size=257, weights={"a": "1/2", "b": 3}, min_count=2)
    assert tok.training is not None
    # Left of "a": "abab" and " abab" count 1/2 each, " xy" too: all below 2. Left of "b": 3 times "cdcdcd" and " q".
    assert tok.training["learned_from"] == {"pieces": 6, "bytes": 3 * 8}
    assert [row["tokens"] for row in tok.training["curve"]] == [24, 15]
    tok = subword.train(counts=table, vocab_size=258, weights={"a": "1/2", "b": 0})
    assert tok.training is not None
    assert tok.training["learned_from"] == {"pieces": 1.5, "bytes": 6}
    assert [row["tokens"] for row in tok.training["curve"]] == [6, 3]


def test_the_curve_of_characters() -> None:
    tok = subword.train(["é éé ab"], vocab_size=7, unit="character", end_of_word="</w>", pattern="spaces")
    assert tok.training is not None
    assert tok.training["learned_from"] == {"pieces": 3, "bytes": 8}
    assert tok.training["curve"][0]["tokens"] == 5
    assert tok.training["curve"][-1]["tokens"] == tok.count("é éé ab")
