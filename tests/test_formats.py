"""Tokenizer files: what is saved comes back, other libraries agree on it, and a bad file is an error that says why."""

from __future__ import annotations

import doctest
import errno
import json
import os
import pickle
import random
import stat
from pathlib import Path
from typing import Any

import pytest
import texts
from format_specs import WITH_END, result_or_error, spec_of, specs, write_json
from hypothesis import given, settings
from hypothesis import strategies as st

import subword
from subword import byte_alphabet, formats
from subword.byte_alphabet import BYTE_TO_CHAR, GPT2_BYTE_ORDER, from_alphabet, to_alphabet
from subword.errors import FormatError, SubwordOSError, SubwordValueError, SubwordWarning
from subword.formats import files, native, tokenizer_json
from subword.spec import Spec, Split

# ======================== the byte alphabet ========================


def test_byte_alphabet() -> None:
    assert to_alphabet(b"\x00 !~\x7f\xa0\xa1\xac\xad\xae\xff") == "ĀĠ!~ġł¡¬Ń®ÿ"
    assert GPT2_BYTE_ORDER[:3] == b'!"#'
    assert GPT2_BYTE_ORDER[188:191] == b"\x00\x01\x02"
    assert sorted(GPT2_BYTE_ORDER) == list(range(256)) == list(from_alphabet("".join(BYTE_TO_CHAR)))


def test_byte_alphabet_is_that_of_tokenizers() -> None:
    hf = pytest.importorskip("tokenizers")
    assert set(BYTE_TO_CHAR) == set(hf.pre_tokenizers.ByteLevel.alphabet())


@given(st.binary(max_size=30))
def test_byte_alphabet_round_trip(data: bytes) -> None:
    assert from_alphabet(to_alphabet(data)) == data


@pytest.mark.parametrize("text", [" ", "a\n", "\xa0", "\xad", "ń", "漢", "\ud800"])
def test_byte_alphabet_refuses_other_characters(text: str) -> None:
    with pytest.raises(SubwordValueError, match=r"U\+[0-9A-F]{4}.*does not stand for a byte"):
        from_alphabet(text)


def test_examples_in_docstrings() -> None:
    assert doctest.testmod(byte_alphabet) == (0, 2)


# ======================== round trips ========================


@given(specs())
@settings(deadline=None)
def test_native_round_trip(spec: Spec) -> None:
    data = native.write(spec)
    back = formats.read(data)
    assert back == spec
    assert (back.roles, back.notes) == (spec.roles, spec.notes)
    assert native.write(back) == data


@given(specs())
@settings(max_examples=300, deadline=None)
def test_tokenizer_json_round_trip(spec: Spec) -> None:
    """What it holds comes back, through HF tokenizers too, which finds the same ids; the rest is refused by name."""
    hf = pytest.importorskip("tokenizers")
    data = result_or_error(write_json, spec)
    if isinstance(data, SubwordValueError):
        assert "tokenizer.json cannot hold" in str(data)
        assert "save as .subword" in str(data)
        return
    assert formats.read(data) == spec
    assert write_json(formats.read(data)) == data
    theirs = hf.Tokenizer.from_str(data.decode())
    ours = {to_alphabet(piece): id for piece, id in spec.model.vocab.items()} | {t.content: t.id for t in spec.extra}
    assert theirs.get_vocab(with_added_tokens=True) == ours
    added = {token.id: token for token in spec.extra if token.kind != "unmatchable"}
    assert {id: token.content for id, token in theirs.get_added_tokens_decoder().items()} == {
        id: token.content for id, token in added.items()
    }
    for id, token in theirs.get_added_tokens_decoder().items():
        flags = (token.single_word, token.lstrip, token.rstrip, token.normalized, token.special)
        mine = added[id]
        assert flags == (mine.single_word, mine.lstrip, mine.rstrip, mine.normalized, mine.kind == "special")
    names = {id: name for name, id in ours.items()}
    assert json.loads(theirs.to_str())["model"]["merges"] == [
        [names[left], names[right]] for left, right in spec.model.merges.tolist()
    ]
    assert formats.read(theirs.to_str().encode()) == spec


def test_most_specs_can_be_held_by_tokenizer_json() -> None:
    """The test above would say nothing if nearly all were refused."""
    held = []

    @given(specs())
    @settings(max_examples=100)
    def count(spec: Spec) -> None:
        held.append(isinstance(result_or_error(write_json, spec), bytes))

    count()
    assert sum(held) > len(held) / 10


def takes_white_space_twice(spec: Spec) -> bool:
    """Where one token's `rstrip` swallows what another starts with, tokenizers gives both; here spans never overlap."""
    return any(token.rstrip for token in spec.extra) and any(token.content[0].isspace() for token in spec.extra)


@given(specs(), st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_ids_equal_those_of_tokenizers(spec: Spec, seed: int) -> None:
    hf = pytest.importorskip("tokenizers")
    data = result_or_error(write_json, spec)
    if isinstance(data, SubwordValueError) or takes_white_space_twice(spec):
        return
    theirs = hf.Tokenizer.from_str(data.decode())
    ours = subword.Tokenizer(spec)
    rng = random.Random(seed)
    pieces = [token.content for token in spec.extra] + [
        "a",
        "b",
        "ab",
        " ",
        "\n",
        "é",
        "x",
        "1",
        "1234",
        "'s",
        "ａ",
        "ﬁ",
        "AΣ",
        "İ",
        "</w>",
    ]
    for _ in range(5):
        text = "".join(rng.choices(pieces, k=rng.randrange(12)))
        assert ours.encode(text, allowed_special="all") == theirs.encode(text, add_special_tokens=False).ids
        with_template = ours.encode(text, allowed_special="all", add_special_tokens=True)
        assert with_template == theirs.encode(text).ids


@pytest.mark.parametrize("name", ["tok.subword", "tok.json", "TOK.JSON", "tokenizer.json"])
def test_save_and_load(name: str, tmp_path: Path) -> None:
    tokenizer = subword.Tokenizer(WITH_END)
    tokenizer.save(tmp_path / name)
    again = subword.load(tmp_path / name)
    assert again.spec == WITH_END
    assert again.spec.roles == WITH_END.roles
    for text in texts.TEXTS.values():
        assert again.encode_ordinary(text) == tokenizer.encode_ordinary(text)
        assert again.decode(again.encode_ordinary(text)) == text
    assert again.encode("the<|end|>", allowed_special="all") == [257, 260]


@pytest.mark.parametrize("write", [native.write, tokenizer_json.write])
def test_the_same_spec_gives_the_same_bytes(write: Any) -> None:
    assert write(WITH_END) == write(pickle.loads(pickle.dumps(WITH_END)))


def test_content_decides_the_format_and_not_the_name(tmp_path: Path) -> None:
    assert formats.save(WITH_END, tmp_path / "a.json", format="native") == tmp_path / "a.json"
    formats.save(WITH_END, tmp_path / "b", format="tokenizer.json")
    assert (tmp_path / "a.json").read_bytes().startswith(b"subword tokenizer 1\n{")
    assert formats.load(tmp_path / "a.json") == formats.load(tmp_path / "b") == WITH_END
    assert formats.load(os.fsencode(tmp_path / "b")) == WITH_END


def test_tokenizer_json_can_be_read_by_people() -> None:
    lines = write_json(WITH_END).decode().splitlines()
    assert '      "Ġthe": 258,' in lines
    assert '      ["Ġ", "the"],' in lines
    assert lines[-1] == "}"


def test_tokenizer_json_warns_of_roles_it_has_no_place_for() -> None:
    with pytest.warns(SubwordWarning, match="no place for the roles pad"):
        data = tokenizer_json.write(WITH_END.replace(roles={"eos": 260, "pad": 260, "unk": 260}))
    assert formats.read(data).roles == {"eos": 260, "unk": 260}


# ======================== any format: bad files ========================

JSON = write_json(WITH_END)

BAD_BYTES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "the file is empty"),
    "text": (
        b"version: 0.2\na b\n",
        "no tokenizer format .* b'version: 0.2.na b.n'; looked for a first line 'subword",
    ),
    "almost tiktoken": (b"IQ= 0\n", "no tokenizer format .*; a first line of base64, a space and a number"),
    "zeros": (bytes(1000), "no tokenizer format that subword reads"),
    "UTF-16": ("{}".encode("utf-16"), "no tokenizer format that subword reads"),
    "other object": (b"{}", "the field 'model' is missing"),
    "no object": (b'{"the": "0", "model": 5}', "model: expected an object, found 5"),
    "cut off": (JSON[:5000], "not JSON at line [0-9]+, column [0-9]+: .*complete"),
    "something behind the end": (JSON + b"}", "not JSON at line [0-9]+, column 1: Extra data"),
    "two byte-order marks": (b"\xef\xbb\xbf" * 2 + JSON, "no tokenizer format|not JSON"),
    "not UTF-8": (JSON.replace(b"gpt", b"\xff").replace(b"1.0", b"\xff"), "not UTF-8 at byte [0-9]+"),
    "NaN": (JSON.replace(b'"dropout": null', b'"dropout": NaN'), "NaN is not JSON"),
    "Infinity": (JSON.replace(b'"dropout": null', b'"dropout": -Infinity'), "-Infinity is not JSON"),
    "a key twice": (
        JSON.replace(b'"padding": null', b'"padding": null, "padding": null'),
        "gives the key 'padding' twice",
    ),
    "a token twice": (JSON.replace(b'"th": 256', b'"th": 256, "th": 256'), "gives the key 'th' twice"),
    "an endless number": (b'{"model": 1' + b"0" * 10_000 + b"}", "x: "),
    "deep lists": (b'{"model": ' + b"[" * 500_000, "nested too deeply"),
    "deep objects": (b'{"model":' * 500_000, "nested too deeply"),
    "closed deep lists": (b'{"model": ' + b"[" * 500_000 + b"]" * 500_000 + b"}", "nested too deeply"),
}


@pytest.mark.parametrize("name", BAD_BYTES)
def test_bad_bytes(name: str) -> None:
    data, message = BAD_BYTES[name]
    with pytest.raises(FormatError, match=message) as caught:
        formats.read(data, "x")
    assert str(caught.value).startswith("x: ")


# ======================== files ========================


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    formats.save(WITH_END, tmp_path / "old.subword")
    return tmp_path / "old.subword"


def test_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "none.json"
    with pytest.raises(FileNotFoundError) as caught:
        formats.load(path)
    error = caught.value
    assert isinstance(error, SubwordOSError)
    assert (error.errno, error.filename) == (errno.ENOENT, str(path))
    assert "cannot read a tokenizer" in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.errno, again.filename) == (type(error), error.errno, error.filename)


@pytest.mark.parametrize(
    ("path", "error", "message"),
    [
        (5, SubwordValueError, "a path must be str or os.PathLike, not int"),
        (None, SubwordValueError, "a path must be str or os.PathLike, not NoneType"),
        ("", SubwordValueError, "'' is not a path"),
        ("a\0b", SubwordValueError, "is not a path"),
        ("x" * 5000, SubwordOSError, "cannot read a tokenizer"),
    ],
)
def test_paths_that_are_none(path: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        formats.load(path)


def test_folders(tmp_path: Path, saved: Path) -> None:
    assert formats.load(tmp_path) == WITH_END
    formats.save(WITH_END, tmp_path / "tokenizer.json")
    with pytest.raises(
        SubwordValueError, match=r"more than one tokenizer is here, name one of old.subword, tokenizer.json"
    ):
        formats.load(tmp_path)
    saved.unlink()
    (tmp_path / "config.json").write_text("{}")
    assert formats.load(tmp_path) == WITH_END
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"holds no tokenizer \(looked for \*.subword, .*, tokenizer.json"):
        formats.load(tmp_path / "empty")


def test_errors_name_the_file(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_bytes(b"{}")
    with pytest.raises(FormatError, match=r"bad\.json: the field 'model' is missing"):
        formats.load(tmp_path / "bad.json")


def test_files_too_large_are_not_read(monkeypatch: pytest.MonkeyPatch, saved: Path) -> None:
    monkeypatch.setattr(files, "MAX_FILE_BYTES", 100)
    with pytest.raises(FormatError, match="more than 100 bytes"):
        formats.load(saved)


@pytest.mark.parametrize(
    ("name", "format", "message"),
    [
        (
            "tok",
            None,
            r"end it in .subword \(native\), .gguf \(gguf\), .model \(sentencepiece\), .codes",
        ),
        ("tok.txt", None, "the name says no format"),
        ("tok.json", "yaml", "unknown format 'yaml'; the formats are 'native', .*'tokenizer.json'"),
        ("tok.json", 5, "unknown format 5"),
    ],
)
def test_unknown_formats(name: str, format: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(SubwordValueError, match=message):
        formats.save(WITH_END, tmp_path / name, format)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("failing", ["replace", "fsync", "chmod"])
@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt(), RuntimeError()]
)
def test_a_failed_save_leaves_the_old_file(
    failing: str, error: BaseException, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise error

    before = saved.read_bytes()
    monkeypatch.setattr(os, failing, fail)
    expected = SubwordOSError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected) as caught:
        formats.save(spec_of(), saved)
    monkeypatch.undo()
    if isinstance(error, OSError):
        assert "cannot write a tokenizer: No space left on device" in str(caught.value)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_a_spec_that_cannot_be_written_leaves_the_old_file(saved: Path) -> None:
    before = saved.read_bytes()
    with pytest.raises(SubwordValueError):
        formats.save(spec_of(stages=(Split("gpt2", "15.0"),)), saved, format="tokenizer.json")
    assert saved.read_bytes() == before


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="cannot write a tokenizer") as caught:
        formats.save(WITH_END, tmp_path / "none" / "tok.json")
    assert isinstance(caught.value, SubwordOSError)
    (tmp_path / "dir.json").mkdir()
    with pytest.raises(IsADirectoryError, match="this is a folder; name a file in it"):
        formats.save(WITH_END, tmp_path / "dir.json")


@pytest.mark.skipif(os.name != "posix", reason="permissions and links as POSIX has them")
def test_permissions_and_links(tmp_path: Path, saved: Path) -> None:
    umask = os.umask(0o027)
    try:
        formats.save(WITH_END, tmp_path / "new.json")
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "new.json").stat().st_mode) == 0o640
    saved.chmod(0o604)
    (tmp_path / "link.subword").symlink_to(saved)
    formats.save(spec_of(), tmp_path / "link.subword")
    assert (tmp_path / "link.subword").is_symlink()
    assert stat.S_IMODE(saved.stat().st_mode) == 0o604
    assert formats.load(saved) == spec_of()
    with pytest.raises(SubwordOSError, match="not a regular file"):
        formats.save(WITH_END, os.devnull, format="native")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anything")
def test_files_that_may_not_be_written_or_read(saved: Path) -> None:
    saved.chmod(0o400)
    with pytest.raises(PermissionError, match="the file is read-only"):
        formats.save(spec_of(), saved)
    saved.chmod(0o000)
    with pytest.raises(PermissionError, match="cannot read a tokenizer"):
        formats.load(saved)
