"""`subword train` for the kinds of model that SentencePiece has."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from texts import STDLIB

import subword
from subword.cli import main
from subword.spec import Characters, ScoreBPE, Unigram, Words

TEXT = "\n".join(path.read_text("utf-8") for path in STDLIB[:3])


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT, "utf-8")
    return path


def run(*arguments: object) -> tuple[int, str]:
    """In this process, as starting others takes longest here."""
    out, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(errors):
        code = main(["train", *map(str, arguments)])
    return code, out.getvalue() + errors.getvalue()


@pytest.mark.parametrize(
    ("algorithm", "name", "kind"),
    [
        ("unigram", "tok.model", Unigram),
        ("sentencepiece-bpe", "tok.model", ScoreBPE),
        ("sentencepiece-bpe", "tok.subword", ScoreBPE),
        ("sentencepiece-word", "tok.model", Words),
        ("sentencepiece-char", "tok.model", Characters),
    ],
)
def test_each_kind_into_each_format(algorithm: str, name: str, kind: type, corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / name
    size = ["-v", "700"] if kind in (Unigram, ScoreBPE) else []
    code, output = run(
        corpus, "-o", out, "--algorithm", algorithm, *size, "--special", "<cls>", "--pad", "<p>", "--json"
    )
    assert code == 0, output
    report = json.loads(output.splitlines()[-1])
    tok = subword.load(out)
    assert report["vocab_size"] == len(tok.vocab) == (700 if size else len(tok.vocab))
    if name == "tok.model":
        assert isinstance(tok.spec.model, kind)
        assert tok.spec.roles == {"unk": 0, "bos": 1, "eos": 2, "pad": 3}
        assert {token.content for token in tok.spec.extra} == {"<s>", "</s>", "<p>", "<cls>"}


def test_options_by_their_names(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "tok.model"
    sets = [
        "byte_fallback=false",
        "add_dummy_prefix=0",
        "user_defined_symbols=<a>,<b>",
        "character_coverage=0.99",
        "unk_id=2",
    ]
    options = [part for item in [*sets, "bos_id=0", "eos_id=1"] for part in ("--set", item)]
    code, output = run(corpus, "-o", out, "--algorithm", "sentencepiece-bpe", "-v", 300, *options)
    assert code == 0, output
    assert "first entries" in output
    expected = subword.train_sentencepiece(
        files=[corpus],
        vocab_size=300,
        model_type="bpe",
        byte_fallback=False,
        add_dummy_prefix=False,
        user_defined_symbols=["<a>", "<b>"],
        character_coverage=0.99,
        unk_id=2,
        bos_id=0,
        eos_id=1,
    )
    assert subword.load(out).spec == expected.spec


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["-o", "x.model"], ".model is SentencePiece's format"),
        (["-o", "x.json", "--set", "bos_id=1"], "--set is for unigram"),
        (
            ["-o", "x.model", "--algorithm", "unigram", "--pattern", "gpt2", "--unit", "byte"],
            "does not take --pattern, --unit",
        ),
        (["-o", "x.txt", "--algorithm", "unigram"], "must end in"),
        (["-o", "x.json", "--algorithm", "unigram"], "is held by .model and .subword"),
        (["-o", "x.model", "--algorithm", "sentencepiece-bpe", "--set", "nothing=1"], "write NAME=VALUE"),
        (["-o", "x.model", "--algorithm", "sentencepiece-bpe", "--set", "bos_id"], "write NAME=VALUE"),
        (["-o", "x.model", "--algorithm", "sentencepiece-bpe", "--set", "bos_id=one"], "bos_id is a whole number"),
        (
            ["-o", "x.model", "--algorithm", "sentencepiece-bpe", "--set", "split_digits=yes"],
            "split_digits is true or false",
        ),
        (["-o", "x.model", "--algorithm", "unigram", "--set", "character_coverage=9"], "above 0 and at most 1"),
        (["-o", "x.model", "--algorithm", "sentencepiece"], "is not one of"),
        (["-o", "x.model", "--algorithm", "unigram", "--sizes", "300,400"], "does not take --sizes"),
    ],
)
def test_what_does_not_go_together(arguments: list[str], problem: str, corpus: Path, tmp_path: Path) -> None:
    arguments[1] = str(tmp_path / arguments[1])
    code, output = run(corpus, *arguments, *([] if "--sizes" in arguments else ["-v", "300"]))
    assert code != 0
    assert problem in " ".join(output.split()).replace("│ ", "")
    assert not list(tmp_path.glob("x*"))


def test_a_size_must_be_said(corpus: Path, tmp_path: Path) -> None:
    code, output = run(corpus, "-o", tmp_path / "x.model", "--algorithm", "unigram")
    assert code != 0
    assert "give --vocab-size" in output
