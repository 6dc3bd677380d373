"""The doctor says that a tokenizer is what its library says it is, and where it is not, on the shortest text."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from format_specs import bpe, spec_of

import subword
from subword import ExtraToken, SubwordValueError, Template, doctor
from subword.cli import main
from subword.formats import native, tokenizer_json
from subword.spec import Normalize, Split

END = ExtraToken(300, "<|end|>")
SPEC = spec_of(END, template=Template((300, "A"), (300, "A", "B")))


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(tokenizer_json.write(SPEC.replace(template=Template())))
    return str(path)


@pytest.mark.parametrize("against", ["tokenizers", "tiktoken", "transformers"])
def test_the_same(file: str, against: str) -> None:
    pytest.importorskip(against)
    found = doctor.check(file, against=against)
    assert found.difference is None
    assert found.texts > 1000
    assert found.failures == (0, "")
    assert found.peer.version == metadata.version(against)
    assert found.speed is not None
    assert min(found.speed[-4:]) > 0
    assert doctor.check(file, ["the cat", "<|end|>"], against, speed=False).speed is None


def test_by_kind_of_file(file: str, tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    assert doctor.check(file, ["a"], speed=False).peer.name == "tokenizers"
    pytest.importorskip("tiktoken")
    ranks = tmp_path / "x.tiktoken"
    with pytest.warns(subword.SubwordWarning):
        subword.Tokenizer(spec_of(model=bpe(priority="rank"), stages=(Split("cl100k"),))).save(ranks)
    said: dict[str, Any] = {"pattern": "cl100k", "special_tokens": {}}
    found = doctor.check(str(ranks), said=said, speed=False)
    assert (found.peer.name, found.peer.reads, found.difference) == ("tiktoken", "x.tiktoken", None)


def test_sentencepiece(tmp_path: Path) -> None:
    pytest.importorskip("sentencepiece")
    text = ["the cat sat on the mat, of the cat", "of cats and mats"]
    subword.train_sentencepiece(text, vocab_size=278).save(tmp_path / "a.model")
    found = doctor.check(str(tmp_path / "a.model"), speed=False)
    assert (found.peer.name, found.difference) == ("sentencepiece", None)


@pytest.mark.parametrize("against", ["tokenizers", "tiktoken", "transformers"])
def test_added_tokens(tmp_path: Path, against: str) -> None:
    """tiktoken knows no added tokens, so there they are special ones; the others read what is written of the file."""
    pytest.importorskip(against)
    spec = spec_of(END, ExtraToken(301, "[PAD301]", "added"))
    (tmp_path / "a.subword").write_bytes(native.write(spec))
    found = doctor.check(str(tmp_path / "a.subword"), ["the[PAD301]cat<|end|>", "[PAD301]"], against, speed=False)
    assert found.difference is None


def test_a_difference_is_shortest(tmp_path: Path) -> None:
    """tiktoken normalizes nothing: against it, what does cannot be the same."""
    pytest.importorskip("tiktoken")
    spec = spec_of(stages=(Normalize("NFC"), Split("gpt2")), model=bpe())
    (tmp_path / "a.subword").write_bytes(native.write(spec))
    long = "the cat sat on the mat\n" * 2000 + "cafe\u0301" + " and so on" * 500
    found = doctor.check(str(tmp_path / "a.subword"), ["the", long], "tiktoken", speed=False)
    assert found.texts == 2
    difference = found.difference
    assert difference is not None
    assert (difference.what, difference.text) == ("ids", "e\u0301")
    assert difference.ours == subword.Tokenizer(spec).encode("e\u0301")
    assert len(difference.theirs) == len(difference.their_pieces) == 3


def test_the_library_may_fail(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A panic of its, which is no Exception, is told and is no difference."""
    pytest.importorskip("tokenizers")

    class Panic(BaseException):
        pass

    real = doctor.connect

    def connect(*args: Any) -> doctor.Peer:
        peer = real(*args)

        def encode(text: str) -> list[int]:
            if "x" in text:
                raise Panic("stack")
            return peer.encode(text)

        return doctor.replace(peer, encode=encode)

    monkeypatch.setattr(doctor, "connect", connect)
    found = doctor.check(file, ["a", "axb", "x"], speed=False)
    assert found.difference is None
    assert found.failures == (2, "Panic: stack (on 'axb')")


def test_what_cannot_be_checked(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SubwordValueError, match="none of the libraries"):
        doctor.check(file, ["a"], "nltk")
    pytest.importorskip("sentencepiece")
    with pytest.raises(SubwordValueError, match=r"its own \.model files only"):
        doctor.check(file, ["a"], "sentencepiece")
    word = subword.train(["the cat"] * 3, vocab_size=10, algorithm="wordpiece")
    word.save(tmp_path / "w.subword")
    pytest.importorskip("tiktoken")
    with pytest.raises(SubwordValueError, match="tiktoken has no such tokenizers"):
        doctor.check(str(tmp_path / "w.subword"), ["a"], "tiktoken")

    def missing(library: str) -> str:
        raise metadata.PackageNotFoundError(library)

    monkeypatch.setattr(doctor.metadata, "version", missing)
    with pytest.raises(SubwordValueError, match="tokenizers is not installed: pip install tokenizers"):
        doctor.check(file, ["a"])


def test_the_command(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tokenizers")
    pytest.importorskip("tiktoken")
    (tmp_path / "text.txt").write_text("the cat\n" * 50, "utf-8")
    assert main(["doctor", file, str(tmp_path / "text.txt")]) == 0
    out = capsys.readouterr().out
    assert "The same on 1 text, 400 bytes." in out
    assert "best of 5 rounds in turns" in out
    (tmp_path / "nfc.json").write_bytes(tokenizer_json.write(spec_of(stages=(Normalize("NFC"), Split("gpt2")))))
    arguments = [str(tmp_path / "nfc.json"), "--against", "tiktoken", "--text", "cafe\u0301"]
    assert main(["doctor", *arguments, "--no-speed"]) == 1
    assert "Different, in ids, on text 1." in capsys.readouterr().out
    assert main(["doctor", *arguments, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["same"], found["against"], found["difference"]["text"]) == (False, "tiktoken", "e\u0301")
    assert found["speed"]["bytes"] == 6
    for wrong in ([], [file, "--against", "nltk"], [file, "none.txt"], ["none.json"], [file, "a", "--text", "b"]):
        assert main(["doctor", *wrong]) == 2
        assert capsys.readouterr().err.startswith("error: ")
