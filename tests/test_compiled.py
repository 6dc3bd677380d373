"""What is kept of a loaded file: that it means the same, that damage is noticed, and that it is never a hindrance."""

from __future__ import annotations

import itertools
import json
import os
import random
import stat
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from texts import TEXTS
from vocabularies import byte_vocab, rank_spec

import subword
from subword import FormatError, SplitRegex, SubwordWarning, Tokenizer, _core, formats
from subword.formats import compiled, known
from subword.spec import BPE, Decode, ExtraToken, MatchTokens, ScoreBPE, Spec, Split, Vocab

WORDS = (b"th", b"the", b" t", b" the", b"he", b"\xe4\xb8", b"\xe4\xb8\xad", b" a", b"aa", b"aaaa")
RANKS = {bytes([byte]): byte for byte in range(256)} | {word: id for id, word in enumerate(WORDS, 256)}
SAID: dict[str, Any] = {"pattern": "cl100k", "special_tokens": {"<|x|>": 300}}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where files are kept; and even the smallest vocabulary is."""
    monkeypatch.setenv(compiled.SWITCH, "on")
    monkeypatch.setattr(compiled, "MIN_ENTRIES", 0)
    monkeypatch.setattr(known, "cache_folder", lambda: str(tmp_path / "caches" / "subword"))
    return tmp_path / "caches" / "subword" / "compiled"


def merges_model(**how: Any) -> BPE:
    merges = [(116, 104), (256, 101), (32, 256)]
    vocab = byte_vocab((b"th", 256), (b"the", 257), (b" th", 258), *how.pop("more", ()))
    return BPE(vocab, np.array(merges, dtype=np.uint32), **how)


def character_spec() -> Spec:
    letters = [bytes([byte]) for byte in b"?abcdefghijklmnopqrstuvwxyz"]
    entries = [*letters, *(letter + b"</w>" for letter in letters), b"th", b"the</w>"]
    ids = {piece: id for id, piece in enumerate(entries)}
    merges = [(ids[b"t"], ids[b"h"]), (ids[b"th"], ids[b"e</w>"])]
    model = BPE(Vocab.of(ids.items()), np.array(merges, np.uint32), unit="character", end_of_word="</w>", unk=0)
    return Spec((Split("whitespace-split"),), model, decode=Decode(trim=True))


# Each is a way in which a model is run, or a kind of file.
SPECS: dict[str, tuple[str, Callable[[], Spec]]] = {
    "ranks": ("x.tiktoken", lambda: rank_spec(RANKS, "cl100k", {"<|x|>": 300})),
    "native": (
        "x.subword",
        lambda: Spec((Split("gpt2"),), merges_model(), roles={"eos": 1}, notes={"a": [1, {"b": None}]}),
    ),
    "tokenizer.json": (
        "x.json",
        lambda: Spec(
            (MatchTokens(), MatchTokens(normalized=True), SplitRegex(r"\w+|\W+", "oniguruma")),
            merges_model(),
            (ExtraToken(259, "<s>"), ExtraToken(260, "<y>", "added", normalized=True)),
        ),
    ),
    "unproved": ("x.subword", lambda: Spec((Split("gpt2"),), merges_model(more=((b"xyz", 259),), ignore_merges=True))),
    "characters": ("x.subword", character_spec),
    "holes": ("x.subword", lambda: rank_spec({p: 7 * id for p, id in RANKS.items()}, "o200k")),
}


def saved(name: str, folder: Path) -> tuple[Path, dict[str, Any]]:
    file, make = SPECS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Tokenizer(make()).save(folder / file)
    return path, SAID if file.endswith(".tiktoken") else {}


def alike(one: Tokenizer, other: Tokenizer) -> bool:
    assert one == other
    assert one.plan() == other.plan()
    assert one.spec.roles == other.spec.roles
    assert one.spec.notes == other.spec.notes
    assert one.last_merges().tolist() == other.last_merges().tolist()
    texts = [*TEXTS.values(), "the thesis aaaaaaa <s> <|x|> 中中" * 30]
    return all(one.encode_ordinary(text) == other.encode_ordinary(text) for text in texts)


@pytest.mark.parametrize("name", SPECS)
def test_what_is_kept_means_the_same(name: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, said = saved(name, tmp_path)
    monkeypatch.setenv(compiled.SWITCH, "off")
    plain = subword.load(path, **said)
    assert not folder.exists()
    monkeypatch.setenv(compiled.SWITCH, "on")
    first = subword.load(path, **said)
    (kept,) = folder.iterdir()
    before = kept.stat()
    row = formats.recognise(path)[1]
    monkeypatch.setattr(formats, "FORMATS", [_unreadable(row)])
    again = subword.load(path, **said)
    assert kept.stat() == before
    assert alike(plain, first)
    assert alike(plain, again)


def _unreadable(row: formats.Format) -> formats.Format:
    """A format that recognises its files and cannot read them: what is loaded was kept."""

    def read(_: Any) -> Spec:
        raise AssertionError("it was read")

    return formats.Format(**{name: getattr(row, name) for name in row.__dataclass_fields__} | {"read": read})


def test_both_files_of_a_vocabulary_count(folder: Path, tmp_path: Path) -> None:
    with pytest.warns(SubwordWarning, match="holds neither"):
        Tokenizer(Spec((Split("gpt2"),), merges_model())).save(tmp_path / "both", format="vocab+merges")
    said = {"pattern": "gpt2", "special_tokens": {}}
    three = subword.load(tmp_path / "both", **said)
    assert subword.load(tmp_path / "both" / "merges.txt", **said) == three
    assert len([*folder.iterdir()]) == 1
    merges = tmp_path / "both" / "merges.txt"
    merges.write_bytes(b"".join(merges.read_bytes().splitlines(True)[:-1]))
    two = subword.load(tmp_path / "both", **said)
    assert len(two.spec.model.merges) == 2
    assert len([*folder.iterdir()]) == 2


def test_what_is_said_counts(folder: Path, tmp_path: Path) -> None:
    path, _ = saved("ranks", tmp_path)
    ways: list[dict[str, Any]] = [
        {"pattern": "gpt2", "special_tokens": {}},
        {"pattern": "cl100k", "special_tokens": {}},
        {"pattern": "cl100k", "special_tokens": {"<|x|>": 300}},
        {"pattern": "cl100k", "special_tokens": {"<|x|>": 301}},
        {"pattern": SplitRegex(r"\s+|\S+"), "special_tokens": {}},
        {"pattern": SplitRegex(r"\s+|\S+", "oniguruma"), "special_tokens": {}},
    ]
    first = [subword.load(path, **way).fingerprint for way in ways]
    assert len(set(first)) == len(ways) == len([*folder.iterdir()])
    assert [subword.load(path, **way).fingerprint for way in ways] == first


@pytest.mark.parametrize(
    "wrong",
    [
        {"special_tokens": {1: 300}},
        {"special_tokens": {"<|x|>": True}},
        {"special_tokens": 5},
        {"pattern": 7},
        {"pattern": "gpt5"},
    ],
)
def test_what_cannot_be_said_is_refused_all_the_same(wrong: dict[str, Any], folder: Path, tmp_path: Path) -> None:
    path, said = saved("ranks", tmp_path)
    subword.load(path, **said)
    subword.load(path, pattern="cl100k", special_tokens={"1": 300})
    with pytest.raises(subword.SubwordError):
        subword.load(path, **said | wrong)
    assert len([*folder.iterdir()]) == 2


def test_a_file_that_is_refused_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    path, said = saved("ranks", tmp_path)
    path.write_bytes(path.read_bytes()[:-1] + b"x\n")
    with pytest.raises(FormatError):
        subword.load(path, **said)
    assert not folder.exists()


def test_warnings_are_given_again(tmp_path: Path) -> None:
    path, said = saved("ranks", tmp_path)
    path.write_bytes(path.read_bytes() + b"= 299\n")
    for name in ("one.tiktoken", "two.tiktoken"):
        path = path.rename(tmp_path / name)
        with pytest.warns(SubwordWarning, match=f"{name}: the token with the id 299 is empty") as caught:
            subword.load(path, **said)
        assert caught[0].filename == __file__


def test_known_names_need_no_file(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, said = saved("ranks", tmp_path)
    file = known.File("x/toy.tiktoken", formats.Input(path.read_bytes(), "x").sha256)
    monkeypatch.setitem(known.KNOWN, "toy", known.Known("toy", (file,), said["pattern"], said["special_tokens"]))
    monkeypatch.setattr(known, "fetch", lambda row: {"toy.tiktoken": path.read_bytes()})
    plain = subword.load("toy")
    monkeypatch.delattr(known, "fetch")
    assert alike(subword.load("toy"), plain)
    assert alike(Tokenizer(formats.load_known("toy")), plain)
    assert len([*folder.iterdir()]) == 1


# ======================== damage ========================


def damages(data: bytes) -> dict[str, bytes]:
    dice = random.Random(4)
    found = {f"cut off at {part}/20": data[: len(data) * part // 20] for part in range(20)}
    for at in [*range(200), *(dice.randrange(len(data)) for _ in range(300)), len(data) - 1]:
        wrong = bytearray(data)
        wrong[at] ^= 1 << dice.randrange(8)
        found[f"a bit at byte {at}"] = bytes(wrong)
    found["a byte more"] = data + b"\0"
    found["another file"] = b"something else\n" * 100
    found["zeros"] = bytes(len(data))
    return found


@pytest.mark.parametrize("name", ["ranks", "characters"])
def test_damage_is_noticed(name: str, folder: Path, tmp_path: Path) -> None:
    path, said = saved(name, tmp_path)
    plain = subword.load(path, **said)
    (kept,) = folder.iterdir()
    data = kept.read_bytes()
    version = range(len(compiled.MAGIC), len(compiled.MAGIC_LINE))
    for what, wrong in damages(data).items():
        kept.write_bytes(wrong)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            again = subword.load(path, **said)
        assert again == plain, what
        assert again.plan() == plain.plan(), what
        assert kept.read_bytes() == data, what
        texts = [str(each.message) for each in caught]
        if what not in [f"a bit at byte {at}" for at in version]:  # which is as if another version had written it
            assert len(texts) == 1, what
            assert "is read anew, because what was kept of it cannot be used: it is damaged (" in texts[0]
            assert str(kept) in texts[0]
            assert caught[0].filename == __file__


def test_what_another_version_wrote_is_written_anew(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, said = saved("ranks", tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(compiled, "MAGIC_LINE", compiled.MAGIC + b"1 0.0.99\n")
        plain = subword.load(path, **said)
        (kept,) = folder.iterdir()
        assert kept.read_bytes().startswith(b"subword compiled 1 0.0.99\n")
    assert alike(subword.load(path, **said), plain)
    assert kept.read_bytes().startswith(f"subword compiled {compiled.LAYOUT} {subword.__version__}\n".encode())


def forged(data: bytes, change: Callable[[dict[str, Any], dict[str, bytes]], None]) -> bytes:
    """The file with another content, and the checksums for it."""
    at = len(compiled.MAGIC_LINE) + compiled._NUMBERS.size
    length = compiled._NUMBERS.unpack(data[at - compiled._NUMBERS.size : at])[1]
    header, at = json.loads(data[at : at + length]), at + length
    sections = {}
    for name, _, length in header["sections"]:
        sections[name] = data[at : at + length]
        at += length
    change(header, sections)
    header["sections"] = [[name, compiled._checksum(part), len(part)] for name, part in sections.items()]
    line = json.dumps(header).encode()
    return b"".join(
        [compiled.MAGIC_LINE, compiled._NUMBERS.pack(compiled._checksum(line), len(line)), line, *sections.values()]
    )


def _set(name: str, row: int, column: int, value: int) -> Callable[[dict[str, Any], dict[str, bytes]], None]:
    def change(_: dict[str, Any], sections: dict[str, bytes]) -> None:
        numbers = np.frombuffer(sections[name], dtype="<u8" if name == "offsets" else "<u4").copy()
        numbers.reshape(-1, 3 if name == "made" else 1)[row, column] = value
        sections[name] = numbers.tobytes()

    return change


def _shorten(name: str) -> Callable[[dict[str, Any], dict[str, bytes]], None]:
    return lambda _, sections: sections.update({name: sections[name][:-4]})


FORGERIES: dict[str, Callable[[dict[str, Any], dict[str, bytes]], Any]] = {
    "a part beyond the end": _set("made", 257, 0, 10**6),
    "a part of another length": _set("made", 257, 0, 100),
    "an entry made of itself": _set("made", 257, 0, 257),
    "no byte made of nothing": _set("made", 257, 2, 0),
    "ranks in a circle": _set("made", 256, 2, 10**6),
    "a byte that is made": _set("made", 5, 2, 9),
    "offsets that fall": _set("offsets", 3, 0, 10**6),
    "ids that fall": _set("ids", 3, 0, 0),
    "rows missing": _shorten("made"),
    "ids missing": _shorten("ids"),
    "offsets missing": lambda _, sections: sections.update(offsets=sections["offsets"][:-8]),
    "no pieces": lambda _, sections: sections.pop("pieces"),
    "no stages": lambda header, _: header["outline"].pop("stages"),
    "a stage of no kind": lambda header, _: header["outline"]["stages"].append({"stage": "Nothing"}),
    "a header of another kind": lambda header, _: header.update(outline=[], roles=7),
    "a nested header": lambda header, _: header.update(roles={"eos": [[[]]]}),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_a_file_with_the_right_checksums_leads_nowhere(what: str, folder: Path, tmp_path: Path) -> None:
    path, said = saved("ranks", tmp_path)
    plain = subword.load(path, **said)
    (kept,) = folder.iterdir()
    data = kept.read_bytes()
    assert forged(data, lambda header, sections: None) == data
    kept.write_bytes(forged(data, FORGERIES[what]))
    with pytest.warns(SubwordWarning, match="it is damaged"):
        assert alike(subword.load(path, **said), plain)
    assert kept.read_bytes() == data


def test_the_proof_of_another_vocabulary_is_refused() -> None:
    model, other = rank_spec(RANKS, "gpt2").model, merges_model()
    with pytest.raises(FormatError, match="does not fit the vocabulary"):
        model.compiled(other.compiled().made())
    columns = np.zeros(len(model.vocab) * 2, dtype=np.uint32)
    with pytest.raises(FormatError, match="does not fit the vocabulary"):
        model.compiled(columns)


def test_what_merges_make_is_known_or_refused() -> None:
    pieces = ["<unk>", "a", "b", "ab", "ba", "aba", "bab"]
    vocab = Vocab.of((piece.encode(), id) for id, piece in enumerate(pieces))
    pairs = np.array([(1, 2), (2, 1), (3, 1), (2, 3)], dtype=np.uint32)

    def model() -> ScoreBPE:
        return ScoreBPE(vocab, np.zeros(len(vocab)), 0, np.array([4] + [0] * 6, np.uint8), "float64", pairs)

    found = model().compiled().made()
    assert found is not None
    assert found.tolist() == [3, 4, 5, 6]
    plain, known = model(), model()
    known.compiled(found)
    texts = ["".join(letters) for letters in itertools.product("abc", repeat=6)]
    rows = [subword.Tokenizer(Spec((), each)).encode_batch(texts) for each in (plain, known)]
    assert rows[0] == rows[1]
    for wrong in ([3, 4, 5], [3, 4, 5, 6, 6], [3, 4, 5, 7], []):
        with pytest.raises(FormatError, match="does not fit the vocabulary"):
            model().compiled(np.array(wrong, dtype=np.uint32))


def test_a_checksum_tells_all_small_changes() -> None:
    data = np.arange(100, dtype=np.uint8)
    sums = {_core.checksum(data), _core.checksum(data[:-1]), _core.checksum(np.append(data, np.uint8(0)))}
    for at in range(100):
        for bit in range(8):
            other = data.copy()
            other[at] ^= 1 << bit
            sums.add(_core.checksum(other))
    assert len(sums) == 803


# ======================== the folder ========================


def test_the_switch(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, said = saved("ranks", tmp_path)
    plain = subword.load(path, **said)
    (kept,) = folder.iterdir()
    kept.write_bytes(b"damaged")
    for off in ("off", "0", "OFF", "no", "false"):
        monkeypatch.setenv(compiled.SWITCH, off)
        assert subword.load(path, **said) == plain
    assert kept.read_bytes() == b"damaged"
    monkeypatch.delenv(compiled.SWITCH)
    with pytest.warns(SubwordWarning):
        subword.load(path, **said)


def test_small_vocabularies_are_not_kept(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setenv(compiled.SWITCH, "on")
    monkeypatch.setattr(known, "cache_folder", lambda: str(folder.parent))
    path, said = saved("ranks", tmp_path)
    subword.load(path, **said)
    assert not folder.exists()


@pytest.mark.skipif(os.name != "posix", reason="permissions as POSIX has them")
def test_it_is_private(folder: Path, tmp_path: Path) -> None:
    path, said = saved("ranks", tmp_path)
    folder.mkdir(parents=True)
    umask = os.umask(0)
    try:
        folder.chmod(0o777)
        subword.load(path, **said)
    finally:
        os.umask(umask)
    (kept,) = folder.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


@pytest.mark.skipif(os.name != "posix", reason="permissions as POSIX has them")
def test_what_is_not_ours_is_not_used(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, said = saved("ranks", tmp_path)
    plain = subword.load(path, **said)
    (kept,) = folder.iterdir()
    kept.chmod(0o622)
    with pytest.warns(SubwordWarning, match="others may write it"):
        assert subword.load(path, **said) == plain
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: kept.stat().st_uid + 1)
        with pytest.warns(SubwordWarning, match="it is another user's"):
            assert subword.load(path, **said) == plain


@pytest.mark.parametrize("place", ["caches", "caches/subword", "caches/subword/compiled"])
def test_where_nothing_can_be_kept_loading_works(place: str, tmp_path: Path) -> None:
    """A file stands where a folder should be: not even root can write there."""
    path, said = saved("ranks", tmp_path)
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / place).write_bytes(b"in the way")
    assert subword.load(path, **said) == subword.load(path, **said)
    assert (tmp_path / place).read_bytes() == b"in the way"


def test_a_full_disk_is_no_hindrance(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, said = saved("ranks", tmp_path)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    plain = subword.load(path, **said)
    assert [*folder.iterdir()] == []
    monkeypatch.undo()
    assert subword.load(path, **said) == plain


def test_the_oldest_are_forgotten(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "MOST_FILES", 3)
    path, _ = saved("ranks", tmp_path)
    folder.mkdir(parents=True)
    for name, age in (("old.tmp", 7200), ("new.tmp", 60)):
        (folder / name).write_bytes(b"")
        os.utime(folder / name, (folder.stat().st_mtime - age,) * 2)
    for id in range(300, 306):
        subword.load(path, pattern="gpt2", special_tokens={"<|x|>": id})
        for kept in folder.iterdir():  # so that each is older than the next, on any clock
            if kept.name != "new.tmp":
                os.utime(kept, (kept.stat().st_mtime - 1,) * 2)
    assert len([*folder.iterdir()]) == 4
    assert [each.name for each in folder.iterdir() if each.suffix] == ["new.tmp"]


def test_two_processes_at_once(folder: Path, tmp_path: Path) -> None:
    """Each writes, damages and reads the same file over and over; none ever sees half of one."""
    path, said = saved("ranks", tmp_path)
    plain = subword.load(path, **said)
    (kept,) = folder.iterdir()
    code = f"""
        import os, sys, subword
        from subword.formats import compiled, known
        compiled.MIN_ENTRIES = 0
        known.cache_folder = lambda: {str(folder.parent)!r}
        for turn in range(150):
            if turn % 3 == 0 and os.path.exists({str(kept)!r}):
                try:
                    os.unlink({str(kept)!r})
                except OSError:
                    pass
            tok = subword.load({str(path)!r}, **{said!r})
            assert tok.fingerprint == {plain.fingerprint!r}
    """
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(code)]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for process in running:
        _, errors = process.communicate(timeout=300)
        assert (process.returncode, errors) == (0, "")
    assert [each.name for each in folder.iterdir()] == [kept.name]
    assert alike(subword.load(path, **said), plain)
