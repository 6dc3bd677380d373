"""Tokenizers side by side: the numbers against sums done here, and the command."""

from __future__ import annotations

import json
import random
import string
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from test_cli import run

import subword
from subword import SubwordValueError
from subword.audits import Row, compare
from subword.training_baselines import BASELINES

ALPHABET = string.ascii_letters + "\n !$&',-.3:;?"


def sixty_five() -> str:
    """A text of words, in 65 different characters."""
    rng = random.Random(65)
    words = ["".join(rng.choices(ALPHABET, k=rng.randint(2, 8))) for _ in range(200)]
    text = "".join(rng.choices(words, k=4000)) + ALPHABET
    assert len(set(text)) == len(ALPHABET) == 65
    return text


def test_bpe_for_65_characters_makes_sequences_shorter_and_the_table_larger() -> None:
    text = sixty_five()
    characters = subword.train([text], algorithm="character")
    merged = subword.train([text], unit="character", vocab_size=500)
    before, after = compare({"characters": characters, "bpe": merged}, [text], width=384)
    assert (before.vocabulary, before.tokens, before.attention) == (66, len(text), len(text) ** 2)
    assert before.table == 66 * 384 and after.table == 500 * 384
    assert after.tokens == merged.count(text) < before.tokens / 1.5
    assert after.attention == after.tokens**2 < before.attention / 2
    assert after.bytes_per_token == round(len(text) / after.tokens, 3)


def test_each_row_is_what_the_tokenizer_says() -> None:
    texts = ["the cat sat", "on the mat", "", "naïve 中文 the end"]
    known = {
        "word": subword.train(texts[:2], algorithm="word", special_tokens=["<s>"]),
        "bytes": subword.train(algorithm="byte"),
        "wordpiece": subword.train(texts, algorithm="wordpiece", vocab_size=28),
    }
    loaded = {"loaded " + name: tok for name, tok in known.items()}
    rows = compare(loaded, texts, baselines=BASELINES, patch_bytes=3, threads=2)
    assert [row.name for row in rows] == [*loaded, *BASELINES, "patches"]
    assert [row.model for row in rows] == [
        "WordLevel", "BPE", "WordPiece", "WordLevel", "WordLevel", "BPE", "BPE", "byte patches",
    ]  # fmt: skip
    size = sum(len(text.encode()) for text in texts)
    for row, (name, tok) in zip(rows, known.items(), strict=False):
        encoded = tok.encode_batch(texts)
        lengths = list(map(len, encoded))
        unknown = sum(ids.count(0) for ids in encoded) if name != "bytes" else 0
        assert row == Row(
            "loaded " + name,
            row.model,
            len(tok.vocab),
            sum(lengths),
            unknown,
            round(size / sum(lengths), 3),
            sum(length**2 for length in lengths),
            768 * tok.n_vocab,
        )
    assert rows[0].unknown > 0
    assert all(row.unknown == 0 for row in rows[3:])  # trained on the text itself
    assert 4 <= rows[-1].tokens <= size / 3


def test_special_looking_text_is_text() -> None:
    tok = subword.train(["abc"], vocab_size=257, special_tokens=["<s>"])
    (row,) = compare({"a": tok}, ["<s>"])
    assert row.tokens == 3


def test_batches_do_not_change_the_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"text {number} of many" for number in range(50)]
    tok = subword.train(texts, algorithm="word", vocab_size=6)
    whole = compare({"a": tok}, texts, baselines=["character"], vocab_size=5)
    monkeypatch.setattr("subword.audits.comparison.BATCH", 64)
    assert compare({"a": tok}, texts, baselines=["character"], vocab_size=5) == whole
    assert whole[0].unknown and whole[1].unknown


@pytest.mark.parametrize(
    ("tokenizers", "texts", "more", "message"),
    [
        ({}, ["a"], {}, "nothing to compare: give"),
        ({}, ["", ""], {"baselines": ["byte"]}, "texts are empty"),
        ({}, "one text", {"baselines": ["byte"]}, "texts must be a list"),
        ({}, ["a"], {"baselines": ["bpe"]}, "unknown baseline"),
        ({"a": 1}, ["a"], {}, "tokenizers must be a dict"),
        ({"byte": subword.train(algorithm="byte")}, ["a"], {"baselines": ["byte"]}, "both called 'byte'"),
        ({}, ["a"], {"patch_bytes": 0}, "patch_bytes must be a number"),
        ({}, ["a"], {"patch_bytes": 2, "rule": "local"}, "unknown rule"),
        ({}, ["a"], {"baselines": ["byte"], "width": 0}, "width must be"),
    ],
)
def test_bad_calls(tokenizers: Any, texts: Any, more: dict[str, Any], message: str) -> None:
    with pytest.raises(SubwordValueError, match=message):
        compare(tokenizers, texts, **more)


# ======================== the command ========================


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("compare")
    (path / "text.txt").write_text(sixty_five(), "utf-8", newline="")
    return path


def test_command_trains_baselines_and_compares(folder: Path) -> None:
    run("train", "text.txt", "-v", "300", "-o", "bpe.json", cwd=folder)
    for name in BASELINES:
        files = [] if name == "byte" else ["text.txt"]
        run("train", *files, "-o", f"{name}.subword", "--algorithm", name, cwd=folder)
    names = ["bpe.json", *(f"{name}.subword" for name in BASELINES)]
    done = run("compare", *names, "--baseline", "all", "--patches", "4", "-f", "text.txt", "--json", cwd=folder)
    rows = json.loads(done.stdout)["rows"]
    toks = {name: subword.load(folder / name) for name in names}
    expected = compare(toks, [sixty_five()], baselines=BASELINES, patch_bytes=4)
    assert rows == [asdict(row) for row in expected]
    by_name = {row.name: asdict(row) | {"name": ""} for row in expected}
    assert all(by_name[name] == by_name[f"{name}.subword"] for name in BASELINES)
    tabs = run("compare", *names, "--file", "text.txt", cwd=folder).stdout.decode().splitlines()
    assert tabs[0].split("\t") == list(rows[0])
    assert [line.split("\t") for line in tabs[1:]] == [list(map(str, row.values())) for row in rows[: len(names)]]


def test_command_says_what_was_trained(folder: Path) -> None:
    out = run("train", "text.txt", "-v", "20", "-o", "few.subword", "--algorithm", "word", cwd=folder).stdout.decode()
    assert "20 entries" in out and "unknown" in out and "first merges" not in out
    assert "256 entries" in run("train", "-o", "b.subword", "--algorithm", "byte", cwd=folder).stdout.decode()
    wrong = run("train", "text.txt", "-o", "x.subword", "--algorithm", "rules", "--pattern", "gpt2", code=1, cwd=folder)
    assert b"cuts text by its own rules" in wrong.stderr


def test_command_line_errors(folder: Path) -> None:
    assert b"nothing to compare" in run("compare", "--text", "x", code=2).stderr
    assert b"'bpe' is not one of word, rules" in run("compare", "--baseline", "bpe", "--text", "x", code=2).stderr
    (folder / "bare.tiktoken").write_bytes(b"YQ== 0\n")
    assert b"subword convert" in run("compare", "bare.tiktoken", "--text", "x", code=1, cwd=folder).stderr
