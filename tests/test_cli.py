"""The command line, run as people run it: `python -m subword …` in a process of its own."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import json
import os
import random
import re
import select
import signal
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from texts import BYTES, TEXTS
from vocabularies import ranks_from_bpe_openai

import subword
from subword import formats
from subword.cli import COMMANDS, main
from subword.cli.common import must_stay_whole, parse_size
from subword.formats import native
from subword.report import terminal as terminal_report
from subword.spec import ExtraToken, Normalize, PrefixSpace, Split

CLEAN = {
    name: value
    for name, value in os.environ.items()
    if name not in ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "SUBWORD_DEBUG", "TTY_COMPATIBLE", "TERM")
}
ENV = CLEAN | {"PYTHONUTF8": "1", "TERM": "xterm-256color"}
END = "<|cli-end|>"

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals and terminals")


def command(*args: object) -> list[str]:
    return [sys.executable, "-m", "subword", *map(str, args)]


def run(
    *args: object, stdin: bytes = b"", code: int = 0, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a command; it must end with `code`, and never with a traceback."""
    done = subprocess.run(command(*args), input=stdin, capture_output=True, cwd=cwd, env=ENV | (env or {}), timeout=120)
    assert done.returncode == code, done.stderr.decode()
    if not env:
        assert b"Traceback" not in done.stderr
    if code:
        assert done.stdout == b""
        assert done.stderr.startswith(b"error: ")
    return done


def words(seed: int, count: int) -> str:
    """Words that nobody knows, most of them different."""
    rng = random.Random(seed)
    return "\n".join("".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 12))) for _ in range(count))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a text and a tokenizer that was trained on it from the command line."""
    folder = tmp_path_factory.mktemp("cli")
    text = "\n".join(TEXTS.values()) + "the cat sat on the mat. " * 100
    (folder / "text.txt").write_bytes(text.encode())
    run("train", "text.txt", "-v", "600", "-o", "tok.json", "--special", END, "--special", "<|cli-pad|>", cwd=folder)
    return folder


@pytest.fixture(scope="module")
def tok(home: Path) -> subword.Tokenizer:
    return subword.load(home / "tok.json")


# ======================== help and wrong command lines ========================


def test_help_is_an_overview_on_one_screen() -> None:
    out = run("--help").stdout.decode()
    assert all(name in out for name in COMMANDS)
    assert len(out.splitlines()) <= 40
    assert run("-h").stdout.decode() == out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name: str) -> None:
    out = run(name, "--help").stdout.decode()
    examples = out.split("Examples:\n")[1].split("\n\n")[0].splitlines()
    assert any(f"subword {name} " in line for line in examples)
    assert all(option in out for line in examples for option in line.split() if option.startswith("--"))


def test_version() -> None:
    assert run("--version").stdout.decode().strip() == f"subword {subword.__version__}"


def test_nothing_at_all_gives_the_overview() -> None:
    done = subprocess.run(command(), capture_output=True, env=ENV)
    assert done.returncode == 2
    assert b"train" in done.stdout


WRONG: dict[str, tuple[int, str, str]] = {
    "no such command": (2, "frobnicate", "frobnicate"),
    "no such option": (2, "info tok.json --frobnicate", "--frobnicate"),
    "no tokenizer": (2, "encode", "TOKENIZER"),
    "no size": (2, "train text.txt -o new.json", "--vocab-size"),
    "no out": (2, "train text.txt -v 300", "--out"),
    "no number": (2, "train text.txt -v many -o new.json", "'many' is not a size"),
    "too small": (1, "train text.txt -v 100 -o new.json", "256"),
    "no such preset": (2, "train text.txt -o new.json --preset gpt9", "llama3"),
    "two patterns": (2, "train text.txt -v 300 -o new.json --pattern gpt2 --regex a", "not both"),
    "bad regex": (1, "train text.txt -v 300 -o new.json --regex a(b", "a ( without its )"),
    "no such pattern": (2, "train text.txt -v 300 -o new.json --pattern gpt9", "o200k"),
    "no such digits": (2, "train text.txt -v 300 -o new.json --digits two", "three-right"),
    "no such tie rule": (2, "train text.txt -v 300 -o new.json --tie-rule coin", "smallest-ids"),
    "no such format": (2, "train text.txt -v 300 -o new.xyz", ".json"),
    "no format": (2, "train text.txt -v 300 -o new", ".json"),
    "no such folder": (1, "train text.txt -v 300 -o new/new.json", "no folder"),
    "folder as out": (1, "train text.txt -v 300 -o folder.json", "folder.json"),
    "out exists": (1, "train text.txt -v 300 -o tok.json", "--force"),
    "no such file": (1, "train gone.txt -v 300 -o new.json", "gone.txt: No such file"),
    "nothing matches": (1, "train gone*.txt -v 300 -o new.json", "gone*.txt"),
    "empty file": (1, "train empty.txt -v 300 -o new.json", "nothing to train on"),
    "no threads": (2, "encode tok.json --text a --threads 0", "--threads"),
    "no such tokenizer": (1, "encode gone.json --text a", "gone.json"),
    "not a tokenizer": (1, "encode text.txt --text a", "text.txt"),
    "text as file": (1, "encode tok.json hello", "--text"),
    "text and file": (2, "encode tok.json text.txt --text a", "not both"),
    "two policies": (2, "encode tok.json --text a --ordinary --allow-special all", "not both"),
    "no such special": (2, "encode tok.json --text a --allow-special <s>", END),
    "no such ending": (2, "encode tok.json --text a --end-with <s>", END),
    "no such array": (2, "encode tok.json --text a --out ids.xyz", ".npy"),
    "json array": (2, "encode tok.json --text a --out ids.npy --json", "not both"),
    "array exists": (1, "encode tok.json --text a --out there.npy", "--force"),
    "special text": (1, f"encode tok.json --text a{END}", "--ordinary"),
    "special text counted": (1, f"count tok.json --text a{END}", "--allow-special"),
    "special text shown": (1, f"show tok.json a{END}", "--allow-special"),
    "no id": (1, "decode tok.json 1 two", "two"),
    "not ids": (1, "decode tok.json text.txt", "text.txt"),
    "id too large": (1, "decode tok.json 123456", "123456"),
    "id far too large": (1, "decode tok.json 99999999999999999999", "99999999999999999999"),
    "array that is none": (1, "decode tok.json there.npy", "there.npy"),
    "half ids": (1, "decode tok.json half.bin", "half.bin"),
    "bad lines": (1, "encode tok.json bad.jsonl", "bad.jsonl, line 2"),
    "no such script": (2, "vocab tok.json --script Lat", "Latin"),
    "no such kind": (2, "vocab tok.json --kind odd", "unreachable"),
    "no such order": (2, "vocab tok.json --sort colour", "length"),
    "no range": (2, "vocab tok.json --ids 5-9", "256:512"),
    "empty range": (2, "vocab tok.json --ids :,", "256:512"),
    "no bytes": (2, "vocab tok.json --bytes xyz", "e2 80"),
    "no regex": (2, "vocab tok.json --match (", "--match"),
    "no such vocabulary": (1, "vocab gone.json", "gone.json"),
    "empty vocabulary file": (1, "vocab empty.txt", "empty.txt: the file is empty"),
    "nothing to convert": (2, "convert tok.json", "OUT"),
    "empty file converted": (1, "convert empty.txt new.json", "empty.txt: the file is empty"),
    "no tokenizer converted": (1, "convert text.txt new.json", "text.txt"),
    "converted to nothing": (2, "convert tok.json new.xyz", "--to"),
    "converted to the unknown": (2, "convert tok.json new.xyz --to ggml", "tokenizer.json"),
    "converted onto another": (1, "convert tok.json tok.json", "--force"),
    "converted into no folder": (1, "convert tok.json new/tok.json", "no folder"),
    "no such probe": (1, "convert tok.json new.json --probe gone.txt", "gone.txt"),
    "files of nothing": (1, "info --files empty.txt", "empty.txt"),
    "damaged": (1, "count tok.json bad.gz", "bad.gz"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_command_lines(name: str, home: Path) -> None:
    code, line, message = WRONG[name]
    (home / "folder.json").mkdir(exist_ok=True)
    for file, data in {
        "empty.txt": b"", "there.npy": b"not an array", "half.bin": b"12345", "bad.gz": b"not gzip",
        "bad.jsonl": b'{"text": "a"}\n{"txt": "b"}\n',
    }.items():  # fmt: skip
        (home / file).write_bytes(data)
    before = sorted(home.iterdir())
    # "bad lines" prints the ids of the good line first
    done = subprocess.run(command(*line.split()), capture_output=True, cwd=home, env=ENV, stdin=subprocess.DEVNULL)
    assert done.returncode == code, done.stderr.decode()
    error = done.stderr.decode()
    assert error.startswith("error: ")
    assert message in error
    assert "Traceback" not in error
    assert len(error.splitlines()) <= 3
    assert sorted(home.iterdir()) == before


def test_debugging_shows_where_an_error_comes_from(home: Path) -> None:
    done = run("info", "gone.json", code=1, cwd=home)
    assert len(done.stderr.splitlines()) == 1
    done = subprocess.run(command("info", "gone.json"), capture_output=True, cwd=home, env=ENV | {"SUBWORD_DEBUG": "1"})
    assert b"Traceback" in done.stderr


@pytest.mark.parametrize(("text", "size"), [
    ("32000", 32000), ("32_000", 32000), ("32,000", 32000), ("32k", 32000), ("32K", 32000), ("1.5k", 1500),
    ("1m", 10**6), (" 300 ", 300), ("0.5M", 500_000),
])  # fmt: skip
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "k", "-5", "1.5", "1.2345k", "1e3", "3 2", "32kb", "_1", "٣"])
def test_no_sizes(text: str, home: Path) -> None:
    import typer

    with pytest.raises(typer.BadParameter):
        parse_size(text)


# ======================== train ========================


def test_train_reports(home: Path) -> None:
    done = run("train", "text.txt", "-v", "1k", "-o", "a.json", "--force", cwd=home)
    assert b"first merges" in done.stdout
    assert b"a.json" in done.stdout
    done = run("train", "text.txt", "-v", "1_000", "-o", "b.json", "--json", "--force", "--threads", "1", cwd=home)
    report = json.loads(done.stdout)
    assert report["merges"] == report["vocab_size"] - 256
    assert report["bytes"] == (home / "text.txt").stat().st_size
    assert (home / "a.json").read_bytes() == (home / "b.json").read_bytes()


def test_info_files_of_a_known_name(home: Path) -> None:
    ranks_from_bpe_openai("cl100k")  # skips without it
    card = json.loads(run("info", "cl100k_base", "--files", "--json", cwd=home).stdout)
    assert (card["file"], card["format"], card["bytes"]) == ("cl100k_base.tiktoken", "tiktoken", 1681126)
    assert "pattern" in card["cannot_hold"]


def test_train_takes_a_preset_and_what_is_given_beside_it(home: Path) -> None:
    options = ("--preset", "llama3", "-v", "600", "--bos", "<|end_of_text|>", "--force", "--json")
    run("train", "text.txt", "-o", "preset.subword", *options, cwd=home)
    arguments = subword.PRESETS["llama3"] | {"vocab_size": 600, "bos_token": "<|end_of_text|>"}
    trained = subword.load(home / "preset.subword")
    assert trained == subword.train(files=[home / "text.txt"], **arguments)
    assert len(trained.special_tokens) == 256
    assert trained.spec.stages[-1] == subword.Split("llama3")


def test_train_takes_the_grouping_of_digits(home: Path) -> None:
    options = ("--pattern", "cl100k", "--digits", "three-right", "--force", "--json")
    report = json.loads(run("train", "text.txt", "-v", "300", "-o", "digits.subword", *options, cwd=home).stdout)
    assert report["digits"] == "three-right"
    trained = subword.load(home / "digits.subword")
    assert trained.spec.stages == (subword.Digits("three-right"), subword.Split("cl100k"))
    assert trained == subword.train(files=[home / "text.txt"], vocab_size=300, pattern="cl100k", digits="three-right")


def test_train_with_an_expression_of_ones_own(home: Path, tmp_path: Path) -> None:
    regex = r"\p{L}+|[^\p{L}]"
    done = run("train", "text.txt", "-v", "300", "-o", tmp_path / "own.json", "--regex", regex, "--json", cwd=home)
    assert json.loads(done.stdout)["pattern"] == regex
    card = json.loads(run("info", tmp_path / "own.json", "--json").stdout)
    assert card["pattern"] == {"": [regex]}
    assert card["stages"][-1]["syntax"] == "oniguruma"


def test_train_reads_everything_alike(home: Path, tmp_path: Path) -> None:
    text = (home / "text.txt").read_bytes().replace(b"\r", b"")
    (tmp_path / "t.txt").write_bytes(text)
    (tmp_path / "t.jsonl.gz").write_bytes(gzip.compress(json.dumps({"body": text.decode()}).encode()))
    (tmp_path / "t.txt.zst").write_bytes(zstandard.ZstdCompressor().compress(text))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "t").write_bytes(text)
    line = json.dumps({"body": text.decode()}).encode()
    ways: dict[str, tuple[list[str], bytes]] = {
        "file": (["t.txt"], b""),
        "jsonl": (["t.jsonl.gz", "--field", "body"], b""),
        "zst": (["*.zst"], b""),
        "folder": (["folder"], b""),
        "stdin": (["-"], text),
        "stdin lines": (["-", "--stdin-format", "jsonl", "--field", "body"], line),
    }
    prints = set()
    for args, stdin in ways.values():
        done = run("train", *args, "-v", "500", "-o", "x.json", "--force", "--json", stdin=stdin, cwd=tmp_path)
        prints.add(json.loads(done.stdout)["fingerprint"])
    assert len(prints) == 1


def test_training_that_stops_early_says_so(home: Path, tmp_path: Path) -> None:
    done = run("train", "-", "-v", "400", "-o", tmp_path / "x.subword", stdin=b"a few words")
    assert done.stderr.startswith(b"warning: ")
    assert len(done.stderr.splitlines()) == 1
    assert (tmp_path / "x.subword").exists()


# ======================== encode and decode ========================


def test_encode_prints_a_line_a_file(home: Path, tok: subword.Tokenizer, tmp_path: Path) -> None:
    datas = [text.encode() for text in TEXTS.values()] + [b"." + data for data in BYTES.values()]
    files = []
    for number, data in enumerate(datas):
        files.append(tmp_path / f"{number:04}.txt")
        files[-1].write_bytes(data)
    lines = run("encode", home / "tok.json", tmp_path / "*.txt", "--ordinary").stdout.decode().split("\n")
    assert lines.pop() == ""
    assert [list(map(int, line.split())) for line in lines] == [tok.encode_ordinary(data) for data in datas]
    for data in (b"", *random.Random(0).sample(datas, 5)):
        ids = run("encode", home / "tok.json", "--ordinary", stdin=data).stdout
        assert run("decode", home / "tok.json", stdin=ids).stdout == data


def test_encode_a_text_longer_than_a_part(home: Path, tok: subword.Tokenizer) -> None:
    text = "\n".join(TEXTS.values()) + "\n"
    text *= 17_000_000 // len(text.encode()) + 1
    (home / "long.txt").write_bytes(text.encode())
    expected = tok.encode_to_numpy(text)
    for options in ([], ["--add-special-tokens"], ["--threads", "1"]):
        run("encode", "tok.json", "long.txt", "--out", "long.npy", "--force", *options, cwd=home)
        assert np.array_equal(np.load(home / "long.npy"), expected)
    total = json.loads(run("count", "tok.json", "long.txt", "--json", cwd=home).stdout)["total"]
    assert total == {
        "file": "total", "texts": 1, "tokens": len(expected), "bytes": len(text.encode()), "characters": len(text),
        "bytes_per_token": total["bytes_per_token"],
    }  # fmt: skip


def test_encode_json_lines_a_line_a_record(home: Path, tok: subword.Tokenizer) -> None:
    (home / "r.jsonl").write_text('{"text": "the cat"}\n\n{"text": ""}\n{"text": "mat\\n"}\n')
    lines = run("encode", "tok.json", "r.jsonl", cwd=home).stdout.decode().splitlines()
    assert [list(map(int, line.split())) for line in lines] == [tok.encode(t) for t in ("the cat", "", "mat\n")]
    rows = [json.loads(line) for line in run("encode", "tok.json", "r.jsonl", "--json", cwd=home).stdout.splitlines()]
    assert rows[2] == {"source": "r.jsonl", "line": 4, "ids": tok.encode("mat\n")}


@pytest.mark.parametrize("name", ["ids.npy", "ids.bin", "ids.txt"])
def test_encode_to_a_file_and_back(name: str, home: Path, tok: subword.Tokenizer, tmp_path: Path) -> None:
    run("encode", "tok.json", "text.txt", "--text", "x", "--out", tmp_path / name, code=2, cwd=home)
    done = run("encode", "tok.json", "text.txt", "text.txt", "--end-with", END, "--out", tmp_path / name, cwd=home)
    assert done.stdout == b""
    ids = [*tok.encode((home / "text.txt").read_bytes()), tok.special_tokens[END]] * 2
    if name == "ids.npy":
        assert np.load(tmp_path / name).tolist() == ids
        assert np.load(tmp_path / name).dtype == np.uint32
    elif name == "ids.bin":
        assert np.fromfile(tmp_path / name, dtype="<u4").tolist() == ids
    text = run("decode", "tok.json", tmp_path / name, "--skip-special-tokens", cwd=home).stdout
    assert text == (home / "text.txt").read_bytes() * 2
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_an_array_is_written_whole_or_not_at_all(home: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"text": "' + "fine " * 2_000_000 + '"}\nbad\n')
    run("encode", home / "tok.json", "bad.jsonl", "--out", "ids.npy", code=1, cwd=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["bad.jsonl"]
    (tmp_path / "ids.npy").write_bytes(b"old")
    run("encode", home / "tok.json", "bad.jsonl", "--out", "ids.npy", "--force", code=1, cwd=tmp_path)
    assert (tmp_path / "ids.npy").read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 2


def test_special_tokens(home: Path, tok: subword.Tokenizer) -> None:
    text = f"a {END}"
    special = tok.special_tokens[END]
    ids = {
        options: list(map(int, run("encode", "tok.json", "--text", text, *options, cwd=home).stdout.split()))
        for options in ((), ("--ordinary",), ("--allow-special", END), ("--allow-special", "all"))
        if options
    }
    assert ids["--ordinary",] == tok.encode_ordinary(text)
    assert ids["--allow-special", END] == ids["--allow-special", "all"] == tok.encode(text, allowed_special="all")
    assert ids["--allow-special", END][-1] == special
    error = run(
        "encode", "tok.json", "--text", text, "--allow-special", "<|cli-pad|>", code=1, cwd=home
    ).stderr.decode()
    assert END in error
    (home / "special.txt").write_text(text)
    assert "special.txt" in run("count", "tok.json", "text.txt", "special.txt", code=1, cwd=home).stderr.decode()


@pytest.mark.parametrize("args", [["104", "105"], ["104,105"], ["[104, 105]"], ["104", "ids.txt"]])
def test_decode_arguments(args: list[str], home: Path) -> None:
    (home / "ids.txt").write_text("[105]\n")
    assert run("decode", "tok.json", *args, cwd=home).stdout == b"hi"
    assert json.loads(run("decode", "tok.json", *args, "--json", cwd=home).stdout) == {
        "tokens": 2, "text": "hi", "utf8": True,
    }  # fmt: skip


def test_decode_writes_bytes_that_are_no_text(home: Path) -> None:
    assert run("decode", "tok.json", "228 184", cwd=home).stdout == b"\xe4\xb8"
    assert json.loads(run("decode", "tok.json", "228", "--json", cwd=home).stdout)["utf8"] is False


@pytest.mark.parametrize(("change", "whole"), [
    ({}, False), ({"stages": (Split("none"),)}, True), ({"stages": ()}, True),
    ({"stages": (Normalize("NFC"), Split("gpt2"))}, False), ({"stages": (Normalize("NFKC"), Split("gpt2"))}, True),
    ({"stages": (PrefixSpace(), Split("gpt2"))}, True), ({"extra": (ExtraToken(600, "\n\n"),)}, True),
    ({"extra": (ExtraToken(600, "<x>"),)}, False), ({"extra": (ExtraToken(600, "<x>", "added", lstrip=True),)}, True),
])  # fmt: skip
def test_texts_that_must_stay_whole(change: dict[str, Any], whole: bool, tok: subword.Tokenizer) -> None:
    class Stub:
        spec = tok.spec.replace(**change)

    assert must_stay_whole(Stub()) is whole  # type: ignore[arg-type]


# ======================== count, show, info ========================


def test_count(home: Path, tok: subword.Tokenizer) -> None:
    (home / "empty.txt").write_bytes(b"")
    (home / "small.txt").write_text("naïve cat", encoding="utf-8")
    tokens = tok.count("naïve cat")
    out = run("count", "tok.json", "empty.txt", "small.txt", cwd=home).stdout.decode()
    assert [line.split("\t") for line in out.splitlines()] == [
        ["file", "texts", "tokens", "bytes", "characters", "bytes_per_token"],
        ["empty.txt", "1", "0", "0", "0", ""],
        ["small.txt", "1", str(tokens), "10", "9", str(round(10 / tokens, 3))],
        ["total", "2", str(tokens), "10", "9", str(round(10 / tokens, 3))],
    ]
    card = json.loads(run("count", "tok.json", "--text", "naïve cat", "--json", cwd=home).stdout)
    assert card["total"]["tokens"] == tokens


def test_show_through_a_pipe(home: Path, tok: subword.Tokenizer) -> None:
    text = "the naïve\tcat\n\x1b[31m"
    out = run("show", "tok.json", text, cwd=home).stdout.decode()
    heading, *rows = [line.split("\t") for line in out.splitlines()]
    assert heading[0] == "id"
    assert [int(row[0]) for row in rows] == tok.encode(text)
    assert "".join(row[3] for row in rows).replace(" ", "") == text.encode().hex()
    assert "\x1b" not in out
    card = json.loads(run("show", "tok.json", "--json", "--file", "text.txt", "--max-tokens", "7", cwd=home).stdout)
    assert len(card["tokens"]) == 7
    assert card["count"] == tok.count((home / "text.txt").read_bytes())
    assert b"more tokens" in run("show", "tok.json", "--max-tokens", "2", cwd=home, stdin=text.encode()).stderr


def test_info(home: Path, tok: subword.Tokenizer) -> None:
    out = run("info", "tok.json", cwd=home).stdout.decode()
    assert tok.fingerprint in out
    assert END in out
    card = json.loads(run("info", "tok.json", "--json", cwd=home).stdout)
    assert card["n_vocab"] == tok.n_vocab
    assert card["special_tokens"] == tok.special_tokens
    assert [tuple(row.values()) for row in card["plan"]] == tok.plan()
    assert card["file"]["sha256"] == hashlib.sha256((home / "tok.json").read_bytes()).hexdigest()
    assert card["file"]["sha256"] in out
    assert sum(card["entries"].values()) == len(tok.spec.model.vocab)
    assert card["coverage"]["bytes"] == 256
    assert "256 of 256 bytes" in out


@pytest.mark.filterwarnings("ignore:.*the text has no:subword.SubwordWarning")
@pytest.mark.parametrize("algorithm", ["wordpiece", "word", "character"])
def test_info_of_other_models(algorithm: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tok = subword.train(["the cat sat on the mat 12 !"] * 3, vocab_size=40, algorithm=algorithm)  # type: ignore[arg-type]
    chat = {"default": "{% if message.role == 'user' %}a{% elif message['role'] == \"tool\" %}b{% endif %}"}
    subword.Tokenizer(tok.spec.replace(chat=chat)).save(tmp_path / "a.subword")
    assert main(["info", str(tmp_path / "a.subword")]) == 0
    out = capsys.readouterr().out
    assert f"default: {len(chat['default'])} characters, asks about the roles user, tool" in out
    assert main(["info", str(tmp_path / "a.subword"), "--json"]) == 0
    assert sum(json.loads(capsys.readouterr().out)["entries"].values()) == len(tok.spec.model.vocab)


def test_info_says_what_stands_where(home: Path) -> None:
    lines = run("info", "tok.json", "--files", cwd=home).stdout.decode().splitlines()
    heading, *rows = [line.split("\t") for line in lines]
    assert heading == ["part", "here", "where in the file"]
    assert ["merges", "342"] in [row[:2] for row in rows]
    assert ["notes", "none", "no place for it"] in rows
    card = json.loads(run("info", "tok.json", "--files", "--json", cwd=home).stdout)
    assert card["format"] == "tokenizer.json"
    assert card["bytes"] == (home / "tok.json").stat().st_size
    assert {row["part"]: row["where"] for row in card["parts"]}["template"] == "post_processor"
    assert card["cannot_hold"] == ["notes"]


# ======================== files that leave something out ========================


@pytest.fixture(scope="module")
def bare(home: Path, tok: subword.Tokenizer) -> Path:
    """A folder with vocabularies of which subword does not know the split pattern and the special tokens."""
    ranked = home / "bare"
    ranked.mkdir()
    spec = subword.train(files=[home / "text.txt"], vocab_size=400, pattern="cl100k", special_tokens=[END]).spec
    for name, format in (("x.tiktoken", "tiktoken"), ("two", "vocab+merges")):
        with pytest.warns(subword.SubwordWarning, match="load it with pattern="):
            formats.save(spec, ranked / name, format)
    return ranked


TAKES_A_TOKENIZER = {
    "encode": "encode {} --text {}",
    "decode": "decode {} 300 301 399",
    "count": "count {} --text {}",
    "budget": "budget ../text.txt --tokenizer {}",
    "show": "show {} {}",
    "info": "info {}",
    "vocab": "vocab {}",
    "convert": "convert {} out.subword --force",
    "prune": f"prune {{}} --drop {END} --out out.subword --force",
    "extend": "extend {} ../text.txt --add 9 --out out.subword --force",
}


def test_every_command_with_a_tokenizer_takes_what_its_file_leaves_out() -> None:
    takes = {name for name, function in COMMANDS.items() if {"tokenizer", "source"} & {*signature(function).parameters}}
    others = {"train", "count-pieces", "remap-embeddings", "compare", "diff", "doctor"}
    assert takes - {"doctor"} == TAKES_A_TOKENIZER.keys() == COMMANDS.keys() - others


@pytest.mark.parametrize("file", ["x.tiktoken", "two"])
@pytest.mark.parametrize("name", TAKES_A_TOKENIZER)
def test_what_a_file_leaves_out_is_given(name: str, file: str, bare: Path) -> None:
    """Each command does with it what it does with a file that holds all."""
    text = "it's12345"
    options = ["--pattern", "cl100k", "--special", f"{END}=399"]
    whole = subword.Tokenizer(formats.load(bare / file, "cl100k", {END: 399}))
    whole.save(bare / f"{file}.subword")
    args, expected = (TAKES_A_TOKENIZER[name].format(path, text).split() for path in (file, f"{file}.subword"))
    given = run(*args, *options, "--json", cwd=bare)
    wanted = run(*expected, "--json", cwd=bare)
    mine, other = (
        re.sub('"seconds": [0-9.]+|"file": {[^}]*}', "", done.stdout.decode().replace(name, ""))
        for done, name in ((given, file), (wanted, f"{file}.subword"))
    )
    assert mine == other
    refused = run(*args, code=1, cwd=bare).stderr.decode()
    assert f"{file.replace('two', 'vocab.json')}: " in refused and "none that subword knows" in refused
    assert "load()" not in refused
    assert [line.split()[0] for line in refused.splitlines()[1:]] == ["--pattern", "--special"]


def test_the_split_pattern_that_is_given_decides(bare: Path) -> None:
    def pieces(*options: str) -> list[str]:
        done = run("show", "x.tiktoken", "12345", "--json", *options, cwd=bare)
        return [token["piece"] for token in json.loads(done.stdout)["tokens"]]

    whole = formats.load(bare / "x.tiktoken", subword.SplitRegex("1|[2-5]+"), {})
    expected = subword.Tokenizer(whole).tokenize("12345").pieces
    assert pieces("--regex", "1|[2-5]+", "--special", "none") == expected
    assert expected[0] == "1"
    special = json.loads(
        run(
            "info",
            "x.tiktoken",
            "--pattern",
            "none",
            "--special",
            "a=b=500",
            "--special",
            f"{END}=399",
            "--json",
            cwd=bare,
        ).stdout
    )["special_tokens"]
    assert special == {END: 399, "a=b": 500}


@pytest.mark.parametrize(
    ("code", "line", "message"),
    [
        (2, "info x.tiktoken --pattern gpt2 --regex a --special none", "not both"),
        (1, "info x.tiktoken --pattern gpt9 --special none", "o200k"),
        (1, "info x.tiktoken --regex a(b --special none", "a ( without its )"),
        (1, "info x.tiktoken --pattern gpt2", "--special TOKEN=ID"),
        (1, "info x.tiktoken --special none", "--pattern NAME"),
        (2, "info x.tiktoken --pattern gpt2 --special <s>", "write TOKEN=ID"),
        (2, "info x.tiktoken --pattern gpt2 --special =7", "write TOKEN=ID"),
        (2, "info x.tiktoken --pattern gpt2 --special <s>=-1", "write TOKEN=ID"),
        (2, "info x.tiktoken --pattern gpt2 --special none --special <s>=9", "none alone"),
        (2, "info x.tiktoken --pattern gpt2 --special <s>=500 --special <s>=501", "twice"),
        (1, "info x.tiktoken --pattern gpt2 --special <s>=500 --special <e>=500", "the same id 500"),
        (1, "info x.tiktoken --pattern gpt2 --special <s>=9999999999", "2147483647"),
        (1, "info x.tiktoken --pattern gpt2 --special <s>=300", "cannot have the id 300"),
        (1, "info ../tok.json --pattern gpt2", "says its split pattern and its special tokens itself"),
        (1, "info cl100k_base --special none", "has its own split pattern and special tokens"),
    ],
)
def test_what_a_file_leaves_out_is_given_wrongly(code: int, line: str, message: str, bare: Path) -> None:
    assert message in run(*line.split(), code=code, cwd=bare).stderr.decode()


# ======================== vocab ========================


def vocab_rows(home: Path, *args: object) -> list[dict[str, str]]:
    heading, *rows = [
        line.split("\t") for line in run("vocab", "tok.json", *args, cwd=home).stdout.decode().split("\n")
    ]
    assert rows.pop() == [""]
    assert all(len(row) == len(heading) for row in rows)
    return [dict(zip(heading, row, strict=True)) for row in rows]


def test_vocab_prints_a_row_a_token(home: Path, tok: subword.Tokenizer) -> None:
    rows = vocab_rows(home)
    assert [int(row["id"]) for row in rows] == sorted(tok.vocab.values())
    assert [bytes.fromhex(row["hex"]) for row in rows] == [tok.token_bytes(int(row["id"])) for row in rows]
    assert [int(row["bytes"]) for row in rows] == [len(bytes.fromhex(row["hex"])) for row in rows]
    assert rows[10] == {
        "id": "10", "kind": "byte", "rank": "", "bytes": "1", "chars": "1", "script": "none", "piece": "Ċ",
        "token": "↵", "made of": "", "hex": "0a",
    }  # fmt: skip
    first = rows[256]
    left, right = tok.spec.model.merges[0].tolist()
    assert (first["kind"], first["rank"]) == ("merge", "0")
    assert first["made of"] == " + ".join(terminal_report.visible(tok.token_bytes(id)) for id in (left, right))
    assert [row["kind"] for row in rows[-2:]] == ["special"] * 2


def test_vocab_as_json(home: Path, tok: subword.Tokenizer) -> None:
    out = run("vocab", "tok.json", "--json", "--expand", cwd=home).stdout.decode()
    rows = [json.loads(line) for line in out.removesuffix("\n").split("\n")]
    assert len(rows) == len(tok.vocab)
    for row in rows:
        data = tok.token_bytes(row["id"])
        assert bytes.fromhex(row["bytes"]) == data
        assert row["text"] == (data.decode() if row["text"] is not None else None)
        if row["made_of"]:
            assert b"".join(map(tok.token_bytes, row["made_of"])) == data
            plain = row["expanded"].replace("⟦", "").replace("⟧", "").replace(" ", "")
            assert plain == "".join(terminal_report.visible(bytes([byte])) for byte in data)
    assert json.loads(run("vocab", "tok.json", "--count", "--json", cwd=home).stdout) == {"count": len(tok.vocab)}


def test_vocab_finds(home: Path, tok: subword.Tokenizer) -> None:
    entries = {id: data for data, id in tok.vocab.items()}

    def ids(*args: str) -> list[int]:
        found = [int(row["id"]) for row in vocab_rows(home, *args)]
        assert int(run("vocab", "tok.json", *args, "--count", cwd=home).stdout) == len(found)
        return found

    def where(test: Any) -> list[int]:
        return [id for id in sorted(entries) if test(entries[id])]

    assert ids("--contains", "at") == where(lambda data: b"at" in data) != []
    assert ids("--starts", " ") == where(lambda data: data.startswith(b" ")) != []
    assert ids("--bytes", "0xe2 80") == ids("--bytes", "e280") == where(lambda data: b"\xe2\x80" in data)
    assert ids("--match", r"^[0-9]+$") == where(lambda data: data.isdigit()) != []
    assert ids("--match", "[\\udc80-\\udcff]")[:128] == list(range(128, 256))
    assert ids("--ids", "3,256:258,599:") == [3, 256, 257, 599]
    assert ids("--ids", ":2") == [0, 1]
    assert ids("--script", "latin", "--kind", "byte") == where(lambda data: len(data) == 1 and data.isalpha())
    assert ids("--kind", "special") == sorted(tok.special_tokens.values())
    assert ids("--contains", "at", "--starts", " ") == where(lambda data: b"at" in data and data.startswith(b" "))
    assert ids("--contains", "no such text") == []
    longest = [row["chars"] for row in vocab_rows(home, "--sort", "length", "--reverse", "--limit", "4")]
    assert len(longest) == 4
    assert int(longest[0]) == max(len(data.decode("utf-8", "surrogateescape")) for data in entries.values())


# ======================== convert ========================


def test_convert(home: Path, tok: subword.Tokenizer, tmp_path: Path) -> None:
    tok.save(tmp_path / "a.json")
    shown = run("convert", "a.json", "b.subword", cwd=tmp_path).stdout.decode()
    assert "b.subword (native)" in shown
    assert "nothing" in shown
    assert subword.load(tmp_path / "b.subword") == tok
    (tmp_path / "b.subword").write_bytes(b"old")
    run("convert", "a.json", "b.subword", code=1, cwd=tmp_path)
    assert (tmp_path / "b.subword").read_bytes() == b"old"
    args = ["a.json", "b.subword", "--force", "--to", "tokenizer.json", "--probe", home / "text.txt"]
    more = json.loads(run("convert", *args, "--json", cwd=tmp_path).stdout)
    assert (more["format"], more["same"], more["changed"]) == ("tokenizer.json", True, [])
    assert more["texts"] > len(tok.vocab)
    assert (tmp_path / "b.subword").read_bytes() == (tmp_path / "a.json").read_bytes()


def test_convert_tells_what_is_lost(home: Path, tok: subword.Tokenizer, tmp_path: Path) -> None:
    padded = tok.spec.replace(roles={"pad": tok.special_tokens["<|cli-pad|>"]}, notes={"by": "me"})
    subword.Tokenizer(padded).save(tmp_path / "a.subword")
    done = run("convert", "a.subword", "b.json", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["changed"] == ["roles are not kept: pad", "notes are not kept: by"]
    assert done.stderr.startswith(b"warning: tokenizer.json has no place for the roles pad")


def test_convert_shows_a_difference(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def forgetful(spec: subword.Spec) -> bytes:
        model = subword.BPE(spec.model.vocab, spec.model.merges[:-1])
        return native.write(spec.replace(model=model))

    rows = tuple(dataclasses.replace(row, write=forgetful) for row in formats.FORMATS)
    monkeypatch.setattr(formats, "FORMATS", rows)
    (tmp_path / "x.subword").write_bytes(b"old")
    assert main(["convert", str(home / "tok.json"), str(tmp_path / "x.subword"), "--force"]) == 1
    out, error = capsys.readouterr()
    assert out == ""
    assert error.startswith("error: ")
    assert len(error.splitlines()) == 1
    assert "gives [597] and [" in error
    assert (tmp_path / "x.subword").read_bytes() == b"old"


@posix
def test_ctrl_c_while_comparing(terminal: tuple[int, int], home: Path, tmp_path: Path) -> None:
    ours, theirs = terminal
    args = command("convert", home / "tok.json", "x.subword", "--probe", home / "text.txt", "--probe", "-")
    with subprocess.Popen(
        args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=theirs, cwd=tmp_path, env=ENV,
        preexec_fn=default_interrupt,
    ) as process:  # fmt: skip
        read_until(ours, b"comparing")  # and now it waits for standard input
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert b"Traceback" not in read_until(ours, b"interrupted")
    assert list(tmp_path.iterdir()) == []


def test_output_survives_a_narrow_encoding(home: Path) -> None:
    narrow = {"PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    for args in (
        ["info", "tok.json"],
        ["vocab", "tok.json"],
        ["show", "tok.json", "naïve"],
        ["show", "tok.json", "naive", "--json"],
    ):
        run(*args, cwd=home, env=narrow)


# ======================== pipes, signals, terminals ========================


@posix
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("args", ["encode tok.json long.txt", "show tok.json --file long.txt --max-tokens 99999",
                                  "encode tok.json long.txt --json", "decode tok.json long.npy",
                                  "vocab tok.json --json --expand"])  # fmt: skip
def test_a_reader_that_stops_reading(args: str, unbuffered: str, home: Path, tok: subword.Tokenizer) -> None:
    (home / "long.txt").write_text("the cat sat on the mat\n" * 100_000)
    np.save(home / "long.npy", tok.encode_to_numpy((home / "long.txt").read_bytes()))
    with subprocess.Popen(
        command(*args.split()),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=home,
        env=ENV | {"PYTHONUNBUFFERED": unbuffered},
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert len(process.stdout.read(10)) == 10
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 141


def default_interrupt() -> None:
    """A process that was started in the background ignores Ctrl-C, and so would ours."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    import pty

    ours, theirs = pty.openpty()
    yield ours, theirs
    for descriptor in (ours, theirs):
        os.close(descriptor)


def read_until(descriptor: int, wanted: bytes) -> bytes:
    seen = b""
    while wanted not in seen:
        assert select.select([descriptor], [], [], 60)[0], seen
        seen += os.read(descriptor, 65536)
    return seen


@posix
@pytest.mark.parametrize("stage", ["counting", "learning merges"])
def test_ctrl_c_while_training(stage: str, terminal: tuple[int, int], tmp_path: Path) -> None:
    """The bars on the terminal say when to press it."""
    ours, theirs = terminal
    text = words(0, 400_000 if stage == "learning merges" else 40_000).encode()
    (tmp_path / "words.txt").write_bytes(text)
    args = command("train", "words.txt" if stage == "learning merges" else "-", "-v", "300k", "-o", "tok.json")
    with subprocess.Popen(
        args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=theirs, cwd=tmp_path, env=ENV,
        preexec_fn=default_interrupt,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        if stage == "counting":  # our end stays open: it waits for more
            process.stdin.write(text)
            process.stdin.flush()
        read_until(ours, stage.encode())
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        seen = read_until(ours, b"interrupted")
        assert b"Traceback" not in seen
    assert [path.name for path in tmp_path.iterdir()] == ["words.txt"]


@posix
def test_on_a_terminal(terminal: tuple[int, int], home: Path) -> None:
    ours, theirs = terminal

    def on_terminal(*args: str, **environment: str) -> str:
        done = subprocess.run(
            command(*args), stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, cwd=home, env=ENV | environment
        )
        assert done.stderr == b""
        os.write(theirs, b"END")
        return read_until(ours, b"END").decode()

    shown = on_terminal("show", "tok.json", "the naïve\tcat\x1b")
    assert "\x1b[" in shown
    assert "⟨1b⟩" in shown
    assert "byte span" in shown
    assert "│" in on_terminal("show", "tok.json", "the cat", "--no-table", NO_COLOR="1")
    assert "\x1b[4" not in on_terminal("show", "tok.json", "the cat", "--no-table", NO_COLOR="1")
    assert "bytes per token" in on_terminal("count", "tok.json", "text.txt")
    assert "first merges" in on_terminal("train", "text.txt", "-v", "300", "-o", "t.json", "--force")
    assert on_terminal("decode", "tok.json", "104", "105") == "hi\r\nEND"
    assert "fingerprint" in on_terminal("info", "tok.json")
    assert "It cannot hold: notes" in on_terminal("info", "tok.json", "--files")
    assert "not compared" in on_terminal("convert", "tok.json", "t.json", "--force", "--probe", "text.txt")
    listed = on_terminal("vocab", "tok.json", "--contains", " the", "--limit", "3", COLUMNS="120")
    assert "made of" in listed
    assert "␣ + the" in listed or "␣t + he" in listed
    assert "\x1b[" not in on_terminal("vocab", "tok.json", "--ids", "27", NO_COLOR="1").replace("\x1b[1m", "").replace(
        "\x1b[0m", ""
    )


@posix
def test_without_text_on_a_terminal_there_is_a_hint(terminal: tuple[int, int], home: Path) -> None:
    for args in (["encode", "tok.json"], ["count", "tok.json"], ["decode", "tok.json"], ["show", "tok.json"]):
        done = subprocess.run(command(*args), stdin=terminal[1], capture_output=True, cwd=home, env=ENV, timeout=60)
        assert done.returncode == 2
        assert done.stderr.startswith(b"error: no ")


# ======================== how tokens look ========================


@pytest.mark.parametrize(("data", "shown"), [
    (b"cat", "cat"), (b" caf\xc3\xa9\n", "␣café↵"), (b"\t\r", "→␍"), (b"\xe4\xb8", "⟨e4⟩⟨b8⟩"),
    (b"\x1b[31m", "⟨1b⟩[31m"),
    ("\u200b\u202e\x9b\xa0".encode(), "⟨U+200B⟩⟨U+202E⟩⟨U+009B⟩⟨U+00A0⟩"), ("\u0301a".encode(), "◌\u0301a"), (b"", ""),
])  # fmt: skip
def test_everything_is_visible(data: bytes, shown: str) -> None:
    assert terminal_report.visible(data) == shown


def test_no_text_reaches_a_terminal_as_a_control_sequence() -> None:
    for data in [*(text.encode() for text in TEXTS.values()), *BYTES.values()]:
        shown = terminal_report.visible(data)
        assert not any(unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") for char in shown)


def test_a_notebook_gets_html_that_text_cannot_break(tok: subword.Tokenizer) -> None:
    text = "<script>&\"'\n 你"
    html = terminal_report.tokens_html(tok.tokenize(text))
    assert "<script" not in html
    assert html.count("<span") == html.count("</span>") == tok.count(text)
    assert "<br>" in html
    assert f"{tok.count(text)} tokens" in html
    short = terminal_report.tokens_html(tok.tokenize("the cat sat"), max_tokens=1)
    assert short.count("<span") == 1
    assert "not shown" in short
    assert "0 tokens" in terminal_report.tokens_html(tok.tokenize(""))


# ======================== sizes and extensions ========================


def test_several_sizes_from_one_training(tmp_path: Path, home: Path) -> None:
    text = str(home / "text.txt")
    done = run("train", text, "--sizes", "300,0.5k, 400", "-o", "t.json", "--special", END, "--json", cwd=tmp_path)
    rows = json.loads(done.stdout)["sizes"]
    assert [(row["out"], row["vocab_size"]) for row in rows] == [
        ("t-300.json", 300),
        ("t-0.5k.json", 500),
        ("t-400.json", 400),
    ]
    for row in rows:
        one = f"one-{row['vocab_size']}.json"
        run("train", text, "-v", row["vocab_size"], "-o", one, "--special", END, cwd=tmp_path)
        assert (tmp_path / row["out"]).read_bytes() == (tmp_path / one).read_bytes()
    run("train", text, "--sizes", "300,310", "-o", "{size}-t.subword", cwd=tmp_path)
    assert (tmp_path / "310-t.subword").exists()
    for options, why in (
        (("--sizes", "300,300"), "twice"),
        (("--sizes", "300,x"), "not a size"),
        (("--sizes", "300", "-v", "300"), "not both"),
    ):
        assert why in run("train", text, *options, "-o", "t.json", code=2, cwd=tmp_path).stderr.decode()
    below = run("train", text, "--sizes", "10,300", "-o", "u.json", code=1, cwd=tmp_path)
    assert "vocab_size=10 is below the minimum" in below.stderr.decode()
    characters = ("--unit", "character", "-o", "c.subword")
    (tmp_path / "few.txt").write_text("the cat sat on the mat, the cats sat on the mats")
    below = run("train", "few.txt", "--sizes", "2,14,20", *characters, code=1, cwd=tmp_path)
    assert "n=2 is below" in below.stderr.decode()  # known only when the text was read; the others are written
    assert {path.name for path in tmp_path.glob("c-*")} == {"c-14.subword", "c-20.subword"}
    bad = run("train", text, "--sizes", "300,x", "-o", "t.json", code=2, cwd=tmp_path).stderr.decode()
    assert "--sizes 300,x: 'x' is not a size" in bad
    nowhere = ("--checkpoint", "nowhere/t.checkpoint")
    assert (
        "no folder nowhere"
        in run("train", text, "-v", "300", "-o", "v.json", *nowhere, code=1, cwd=tmp_path).stderr.decode()
    )
    exists = run("train", text, "--sizes", "300,600", "-o", "t.json", code=1, cwd=tmp_path)
    assert "t-300.json exists" in exists.stderr.decode()


def test_extend_does_not_write_the_remap_over_the_tokenizer(tmp_path: Path, home: Path) -> None:
    run("train", str(home / "text.txt"), "-v", "300", "-o", "t.json", cwd=tmp_path)
    same = ("extend", "t.json", str(home / "text.txt"), "--add", "2", "-o", "e.json", "--remap", "./e.json")
    assert "name the same file" in run(*same, code=2, cwd=tmp_path).stderr.decode()
    assert not (tmp_path / "e.json").exists()


def test_extend_writes_the_tokenizer_and_the_remap(tmp_path: Path, home: Path, tok: subword.Tokenizer) -> None:
    (tmp_path / "new.txt").write_text("zyzzyva zyzzyvas " * 50)
    args = ("extend", home / "tok.json", "new.txt", "--add", "7", "-o", "more.json", "--remap", "remap.json")
    done = json.loads(run(*args, "--json", cwd=tmp_path).stdout)
    expected = tok.extend([(tmp_path / "new.txt").read_bytes()], add=7)
    more = subword.load(tmp_path / "more.json")
    assert more.fingerprint == expected.tokenizer.fingerprint == done["fingerprint"]
    assert done["merges"] == 7 and len(done["first_entries"]) == 7
    assert subword.Remap.load(tmp_path / "remap.json") == expected.remap
    assert "7 of them new" in run(*args, "--force", cwd=tmp_path).stdout.decode()
    assert "no text" in run("extend", home / "tok.json", "--add", "7", "-o", "x.json", code=2).stderr.decode()
