"""Counting on a cluster of Ray's: one of two processes on this machine, of which one is killed at work."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

import subword
from subword import SubwordValueError

SRC = str(Path(__file__).parent.parent / "src")

CODE = '''
import json, os, signal, subprocess, sys, threading, time
import ray
import subword
from subword.cluster import shards

shards.SHARD_BYTES = 1 << 20
folder = sys.argv[1]
files = [f"{folder}/a.txt", f"{folder}/b.jsonl"]
killed = []


def tasks():
    """The processes that work on a task of this cluster: Ray calls them so while they do."""
    parents = {}
    for line in subprocess.check_output(["ps", "-eo", "pid,ppid,args"], text=True).splitlines()[1:]:
        pid, parent, name = line.split(None, 2)
        parents[int(pid)] = int(parent), name
    found = []
    for pid, (parent, name) in parents.items():
        while parent in parents and parent != os.getpid():
            parent = parents[parent][0]
        if parent == os.getpid() and name.startswith("ray::_table_of"):
            found.append(pid)
    return found


def kill_one():
    while not killed:
        for pid in tasks()[:1]:
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)


ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
threading.Thread(target=kill_one, daemon=True).start()
told = []
table = subword.count_pieces(files=files, ray=True, memory="30MB", progress=lambda *args: told.append(args[1]))
rows = table.save(f"{folder}/ray.parquet")
errors = []
for path in ("c.jsonl", "absent.txt"):
    try:
        subword.count_pieces(files=[f"{folder}/{path}"], ray=True)
    except subword.SubwordError as error:
        errors.append([type(error).__name__, str(error)])
for options in ({"ray": "ray://elsewhere:1"}, {"ray": True, "threads": 3}):
    try:
        subword.count_pieces(files=files, **options)
    except subword.SubwordError as error:
        errors.append([type(error).__name__, str(error)])
ray.shutdown()
print(json.dumps({"killed": len(killed), "told": told, "runs": len(table.runs), "errors": errors}))
'''


@pytest.mark.slow
def test_a_worker_that_is_killed_changes_nothing(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install ray")
    pytest.importorskip("pyarrow")
    rng = random.Random(1)
    letters = bytes(32 if byte < 28 else 97 + byte % 26 for byte in range(256))
    words = rng.randbytes(6_000_000).translate(letters).decode().split(" ")
    (tmp_path / "a.txt").write_text("\n".join(words))
    rows = [{"text": " ".join(words[at : at + 9])} for at in range(0, 200_000, 9)]
    (tmp_path / "b.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "c.jsonl").write_text('{"text": "a"}\n[]\n')
    expected = subword.count_pieces(files=[tmp_path / "a.txt", tmp_path / "b.jsonl"])
    expected.save(tmp_path / "one.parquet")
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": SRC, "RAY_DEDUP_LOGS": "0"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["killed"] == 1 and found["runs"] > 10
    assert found["told"] == sorted(found["told"]) and found["told"][-1] == expected.text_bytes
    assert (tmp_path / "ray.parquet").read_bytes() == (tmp_path / "one.parquet").read_bytes()
    line, absent, elsewhere, threads = found["errors"]
    assert line[0] == "FormatError" and "c.jsonl, line 2: a JSON array" in line[1]
    assert absent[0] == "SubwordOSError" and "absent.txt" in absent[1]
    assert elsewhere[0] == "SubwordValueError" and "connected to a cluster of Ray's already" in elsewhere[1]
    assert threads == ["SubwordValueError", "no machine of the cluster has 3 processors: the most is 2"]


def test_without_ray_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    (tmp_path / "t.txt").write_text("text")
    with pytest.raises(SubwordValueError, match=r'takes Ray: pip install "subword\[ray\]"'):
        subword.count_pieces(files=[tmp_path / "t.txt"], ray=True)
