"""Tokenizers compared and converted: a difference is found and told, and keeps a file from being written."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from format_specs import MERGES, WITH_END, bpe, spec_of, specs
from hypothesis import given, settings
from texts import SPACES

from subword import formats
from subword.errors import FormatError, SubwordValueError, SubwordWarning
from subword.formats import comparing, native
from subword.formats.probes import GLUED_ENTRIES, probe_texts
from subword.spec import BPE, ExtraToken, MatchTokens, Normalize, PrefixSpace, Spec, Split, Template
from subword.tokenizer import Tokenizer

SPEC = spec_of(
    ExtraToken(260, "<|end|>"), ExtraToken(261, "<|pad|>"), ExtraToken(262, "the cat", "added"),
    template=Template(("A", 260), ("A", 260, "B", 260)), roles={"eos": 260, "pad": 261}, notes={"from": "é\n"},
)  # fmt: skip


def compare(one: Spec, other: Spec, *texts: str | bytes) -> comparing.Comparison:
    return formats.compare(Tokenizer(one), Tokenizer(other), texts)


def with_extra(index: int, **changes: object) -> Spec:
    extra = list(SPEC.extra)
    extra[index] = dataclasses.replace(extra[index], **changes)  # type: ignore[arg-type]
    return SPEC.replace(extra=tuple(extra))


# ======================== probe texts ========================


def test_probe_texts_are_fixed_and_hold_what_they_should() -> None:
    texts = list(probe_texts(SPEC))
    assert texts == list(probe_texts(SPEC))
    for char in SPACES:
        assert sum(char.encode() in text for text in texts) > 1
    for token in SPEC.extra:
        content = token.content.encode()
        assert content in texts
        assert any(b"a" + content + b"b" in text and content + content in text for text in texts)
    for byte in range(256):
        assert any(bytes([byte]) in text for text in texts)
    pieces = set(SPEC.model.vocab.pieces)
    assert b"" in texts
    assert len(texts[-1]) >= GLUED_ENTRIES
    assert all(any(piece in text for text in texts) for piece in pieces)


# ======================== differences ========================

SWAPPED = [MERGES[0], MERGES[2], MERGES[1], MERGES[3]]
OTHERS: dict[str, tuple[Spec, str]] = {
    "one merge less": (SPEC.replace(model=BPE(SPEC.model.vocab, SPEC.model.merges[:-1])), "ordinary text"),
    "no merges but whole entries": (
        SPEC.replace(model=BPE(SPEC.model.vocab, SPEC.model.merges[:0], ignore_merges=True)), "ordinary text",
    ),
    "another id": (SPEC.replace(model=bpe(SWAPPED)), "the bytes of the id"),
    "another pattern": (SPEC.replace(stages=(MatchTokens(), Split("o200k"))), "ordinary text"),
    "no pattern": (SPEC.replace(stages=(MatchTokens(), Split("none"))), "ordinary text"),
    "normalization": (SPEC.replace(stages=(MatchTokens(), Normalize("NFC"), Split("gpt2"))), "ordinary text"),
    "prefix space": (SPEC.replace(stages=(MatchTokens(), PrefixSpace(), Split("gpt2"))), "ordinary text"),
    "no tokens from text": (
        SPEC.replace(stages=(Split("gpt2"),), extra=SPEC.extra[:2]).replace(extra=SPEC.extra), "ordinary text",
    ),
    "not special": (with_extra(1, kind="added"), "the extra token '<|pad|>'"),
    "another flag": (with_extra(0, lstrip=True), "the extra token '<|end|>'"),
    "another content": (with_extra(0, content="<|END|>"), "the bytes of the id 260"),
    "a token less": (SPEC.replace(extra=SPEC.extra[:2]), "the bytes of the id 262"),
    "no template": (SPEC.replace(template=Template()), "the template"),
    "another pair": (SPEC.replace(template=Template(("A", 260), ("A", "B", 260))), "the template"),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_a_difference_is_found(name: str) -> None:
    other, what = OTHERS[name]
    for one, two in ((SPEC, other), (other, SPEC)):
        difference = compare(one, two).difference
        assert difference is not None
        if one is SPEC:
            assert difference.what.startswith(what), difference
        if difference.text is not None:
            assert difference.one != difference.other
            assert f"[{difference.one[0]}" in str(difference) or "[…" in str(difference)


def test_texts_of_ones_own_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "probe_texts", lambda spec: iter(()))
    other = SPEC.replace(stages=(MatchTokens(), Split("none")))
    assert compare(SPEC, other, "a b", b"c").difference is None  # the entries alone do not show it
    difference = compare(SPEC, other, "a b", "a\n\nb", "\n\n a").difference
    assert difference is not None
    assert difference.text == b"a\n\nb"


def test_the_text_and_both_ids_are_told() -> None:
    other = Tokenizer(SPEC.replace(model=BPE(SPEC.model.vocab, SPEC.model.merges[:3])))
    long = b"x" * 500 + b"\n\n"
    difference = comparing._on_texts(Tokenizer(SPEC), other, [b"a b", long, b"\n\n"])
    assert difference is not None
    assert difference.text == long
    assert difference.near == b"xxx\n\n"
    x, newline, both = (other.token_id(token) for token in ("x", "\n", "\n\n"))
    assert str(difference) == (
        f"ordinary text: the text b'xxx\\n\\n' (in one of 502 bytes, from token 500 on) gives "
        f"[… {x}, {x}, {x}, {both}] and [… {x}, {x}, {x}, {newline}, {newline}]"
    )


def test_what_changes_no_id_is_told() -> None:
    other = SPEC.replace(roles={"eos": 260}, notes={}, stages=(MatchTokens(), Split("gpt2"), Split("gpt2")))
    found = compare(SPEC, other)
    assert found.difference is None
    assert found.texts > GLUED_ENTRIES // 8
    told = "\n".join(found.changed)
    assert "roles are not kept: pad" in told
    assert "notes are not kept: from" in told
    assert "Split" in told
    assert compare(SPEC, SPEC).changed == ()


def test_texts_are_several() -> None:
    tok = Tokenizer(SPEC)
    for text in ("abc", b"abc"):
        with pytest.raises(SubwordValueError, match="list"):
            formats.compare(tok, tok, text)  # type: ignore[arg-type]
    with pytest.raises(SubwordValueError, match="str or bytes"):
        formats.compare(tok, tok, [1])  # type: ignore[list-item]


# ======================== converting ========================


@settings(max_examples=25, deadline=None)
@given(specs())
def test_a_conversion_is_the_same_tokenizer(tmp_path_factory: pytest.TempPathFactory, spec: Spec) -> None:
    path = tmp_path_factory.mktemp("convert") / "x.subword"
    done = formats.convert(spec, path)
    assert done[:2] == (path, "native")
    assert done.changed == ()
    assert formats.load(path) == spec


def test_convert_between_files(tmp_path: Path) -> None:
    formats.save(SPEC, tmp_path / "a.subword")
    with pytest.warns(SubwordWarning, match="roles pad"):
        done = formats.convert(tmp_path / "a.subword", tmp_path / "b", "tokenizer.json", ["the cat sat"])
    assert done.format == "tokenizer.json"
    assert done.changed == ("roles are not kept: pad", "notes are not kept: from")
    assert formats.recognise(tmp_path / "b")[1].name == "tokenizer.json"
    ranked = SPEC.replace(model=bpe(priority="rank"), roles={}, notes={})
    assert "a merge list instead of by the ranks" in formats.convert(ranked, tmp_path / "c.json").changed[0]


def test_what_a_format_cannot_hold_is_refused_and_nothing_written(tmp_path: Path) -> None:
    spec = SPEC.replace(stages=(MatchTokens(), Normalize("NFC", "15.0"), Split("gpt2")))
    with pytest.raises(SubwordValueError, match=r"15\.0"):
        formats.convert(spec, tmp_path / "x.json")
    with pytest.raises(SubwordValueError, match="unknown format"):
        formats.convert(SPEC, tmp_path / "x.json", "ggml")
    assert list(tmp_path.iterdir()) == []


def lossy(spec: Spec) -> bytes:
    """A writer with a defect: it forgets the last merge."""
    return native.write(spec.replace(model=BPE(spec.model.vocab, spec.model.merges[:-1])))


@pytest.fixture
def defect(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = tuple(dataclasses.replace(row, write=lossy) if row.name == "native" else row for row in formats.FORMATS)
    monkeypatch.setattr(formats, "FORMATS", rows)


@pytest.mark.usefixtures("defect")
def test_a_file_that_would_differ_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "x.subword"
    path.write_bytes(b"old")
    with pytest.raises(formats.DifferenceError, match=r"\[259\] and \[198, 198\]") as caught:
        formats.convert(SPEC, path)
    assert caught.value.difference.text == b"\n\n"
    assert isinstance(caught.value, SubwordValueError)
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["x.subword"]


def test_a_file_that_cannot_be_read_again_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = tuple(dataclasses.replace(row, write=lambda spec: native.write(spec)[:-1]) for row in formats.FORMATS)
    monkeypatch.setattr(formats, "FORMATS", rows)
    with pytest.raises(FormatError, match="could not be read again"):
        formats.convert(SPEC, tmp_path / "x.subword")
    assert list(tmp_path.iterdir()) == []


# ======================== what stands where ========================


@pytest.mark.parametrize("row", formats.FORMATS, ids=lambda row: row.name)
def test_every_format_says_where_each_part_stands(row: formats.Format) -> None:
    assert tuple(row.parts) == formats.PARTS
    assert all(where is None or where for where in row.parts.values())
    assert row.limits


def test_recognise(tmp_path: Path) -> None:
    formats.save(WITH_END, tmp_path / "tokenizer.json")
    path, row, size = formats.recognise(tmp_path)
    file = tmp_path / "tokenizer.json"
    assert (path, row.name, size) == (str(file), "tokenizer.json", file.stat().st_size)
    (tmp_path / "x").write_bytes(b"what is this")
    with pytest.raises(FormatError, match="no tokenizer format"):
        formats.recognise(tmp_path / "x")
    assert np.array_equal(formats.load(tmp_path).model.merges, WITH_END.model.merges)
