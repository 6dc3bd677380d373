"""`subword prune` and `subword remap-embeddings`, as people run them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_cli import run
from test_remap import safetensors, table, tensors_in

import subword
from subword import Remap

TEXT = "the cat sat on the mat, the cats sat on the mats. " * 20


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prune")
    tok = subword.train([TEXT + "prune"], vocab_size=272, special_tokens=["<s>", "<pad>"], bos_token="<s>")
    tok.save(folder / "tok.subword")
    (folder / "text.txt").write_text("the cat<s>")
    (folder / "more.jsonl").write_text('{"text": "the"}\n{"text": "mats"}\n')
    (folder / "ids.txt").write_text("260 261\n[262, 5]")
    return folder


def summary(*args: Any, cwd: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(*args, "--json", cwd=cwd).stdout)
    return found


def test_prune_on_files(home: Path, tmp_path: Path) -> None:
    tok = subword.load(home / "tok.subword")
    out, remap = tmp_path / "small.subword", tmp_path / "remap.json"
    args = ("--unused-on", "text.txt", "--unused-on", "more.jsonl", "--out", out, "--remap", remap)
    found = summary("prune", "tok.subword", *args, cwd=home)
    changed = tok.prune(unused_on=["the cat<s>", "the", "mats"])
    assert subword.load(out) == changed.tokenizer and Remap.load(remap) == changed.remap
    assert found["entries_before"] == found["n_vocab_before"] == tok.n_vocab
    assert found["entries"] == found["n_vocab"] == changed.remap.new < tok.n_vocab
    assert found["fingerprint"] == changed.tokenizer.fingerprint
    assert run("prune", "tok.subword", *args, cwd=home, code=1).stderr.endswith(b"--force replaces it\n")
    shown = run("prune", "tok.subword", *args, "--force", cwd=home).stdout.decode()
    assert f"{found['entries']} of {tok.n_vocab}; {tok.n_vocab - found['entries']} removed" in shown


def test_prune_tells_how_far_it_is(home: Path, tmp_path: Path) -> None:
    args = ("--unused-on", "text.txt", "-o", tmp_path / "p.subword", "--progress", "json")
    lines = run("prune", "tok.subword", *args, cwd=home).stderr.splitlines()
    last = json.loads(lines[-1])
    assert (last["stage"], last["done"], last["total"]) == ("encode", 10, 10)


def test_prune_by_ids_and_names(home: Path, tmp_path: Path) -> None:
    tok = subword.load(home / "tok.subword")
    summary("prune", "tok.subword", "--keep", "ids.txt", "-o", tmp_path / "a.subword", "--drop", "<pad>", cwd=home)
    assert subword.load(tmp_path / "a.subword") == tok.prune([260, 261, 262], drop_tokens=["<pad>"]).tokenizer
    run("prune", "tok.subword", "--keep", "-", "-o", tmp_path / "b.subword", stdin=b"260", cwd=home)
    assert subword.load(tmp_path / "b.subword") == tok.prune([260]).tokenizer
    run("prune", "tok.subword", "--drop", "<s>", "--drop", "<pad>", "-o", tmp_path / "c.subword", cwd=home)
    assert subword.load(tmp_path / "c.subword") == tok.prune(drop_tokens=["<s>", "<pad>"]).tokenizer
    assert run("decode", tmp_path / "b.subword", "256").stdout == tok.token_bytes(tok.prune([260]).remap.parts[256][0])


def test_remap_embeddings(home: Path, tmp_path: Path) -> None:
    tok = subword.load(home / "tok.subword")
    remap = tok.prune(["the"]).remap
    remap.save(tmp_path / "remap.json")
    vectors = table(tok.n_vocab + 6, np.float16)
    np.save(tmp_path / "in.npy", vectors)
    found = summary("remap-embeddings", "remap.json", "in.npy", "out.npy", cwd=tmp_path)
    assert found == {"in": "in.npy", "out": "out.npy", "tensors": [], "rows_before": tok.n_vocab, "rows": remap.new}
    assert np.array_equal(np.load(tmp_path / "out.npy"), remap.apply(vectors))
    tensors = {"embed": ("F16", vectors), "head": ("F32", table(tok.n_vocab))}
    (tmp_path / "in.safetensors").write_bytes(safetensors(tensors))
    shown = run("remap-embeddings", "remap.json", "in.safetensors", "out.safetensors", cwd=tmp_path).stdout.decode()
    assert "head" in shown and f"{remap.new} for {tok.n_vocab} old ids" in shown
    args = ("--tensor", "embed", "--tensor", "head", "--fill", "zeros", "--force")
    run("remap-embeddings", "remap.json", "in.safetensors", "out.safetensors", *args, cwd=tmp_path)
    written, _ = tensors_in((tmp_path / "out.safetensors").read_bytes())
    assert {name: row[2] for name, row in written.items()} == {
        name: remap.apply(array).tobytes() for name, (_, array) in tensors.items()
    }
    run("remap-embeddings", "remap.json", "in.npy", "in.npy", "--force", cwd=tmp_path)
    assert (tmp_path / "in.npy").read_bytes() == (tmp_path / "out.npy").read_bytes()


WRONG: dict[str, tuple[int, str, str]] = {
    "nothing to remove": (2, "prune tok.subword -o new.subword", "nothing says what to remove"),
    "no format": (2, "prune tok.subword --keep ids.txt -o new", "must end in"),
    "no such token": (1, "prune tok.subword --drop <x> -o new.subword", "'<x>' is no special or added token"),
    "no such id": (1, "prune tok.subword --keep - -o new.subword", "no id 5000"),
    "no ids": (1, "prune tok.subword --keep text.txt -o new.subword", "not an id"),
    "no such text": (1, "prune tok.subword --unused-on gone.txt -o new.subword", "gone.txt: No such file"),
    "no text": (1, "prune tok.subword --unused-on empty.txt -o new.subword", "there is no text in these files"),
    "one file twice": (2, "prune tok.subword --keep ids.txt -o new.json --remap new.json", "name the same file"),
    "no such remap": (1, "remap-embeddings gone.json in.npy new.npy", "gone.json: cannot read a remap"),
    "not a remap": (1, "remap-embeddings text.txt in.npy new.npy", "text.txt: not JSON"),
    "a tokenizer": (1, "remap-embeddings more.jsonl in.npy new.npy", "more.jsonl: not JSON"),
    "no such table": (1, "remap-embeddings remap.json gone.npy new.npy", "gone.npy: cannot read a table"),
    "other table": (1, "remap-embeddings remap.json text.txt new.npy", "text.txt: embedding tables are read from"),
    "other kind": (1, "remap-embeddings remap.json in.npy new.safetensors", "from a .npy file a .npy file is made"),
    "no such fill": (2, "remap-embeddings remap.json in.npy new.npy --fill ones", "not one of mean, zeros"),
    "too few rows": (1, "remap-embeddings remap.json in.npy new.npy", "has no row for each of the 9 old ids"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_command_lines(name: str, home: Path) -> None:
    code, line, message = WRONG[name]
    Remap.of(9, [[0]]).save(home / "remap.json")
    np.save(home / "in.npy", table(8))
    (home / "empty.txt").write_bytes(b"")
    done = run(*line.split(), code=code, cwd=home, stdin=b"5000")
    assert message in done.stderr.decode()
    assert not list(home.glob("new*"))
