"""Files that appear when they are whole: what becomes of half-written ones, and of two writers at once."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from test_counts import leave_unfinished

import subword
from subword import SubwordOSError, SubwordValueError
from subword.writing import replacing


def test_two_that_write_one_file(tmp_path: Path) -> None:
    path = str(tmp_path / "t.parquet")
    with replacing(path, "counts") as file:
        file.write(b"first")
        with pytest.raises(SubwordValueError, match="another process is writing this file"), replacing(path, "counts"):
            pass
    assert Path(path).read_bytes() == b"first"
    for error in (RuntimeError, FileNotFoundError):
        with suppress(RuntimeError, SubwordOSError), replacing(path, "counts") as file:
            file.write(b"half")
            raise error
        assert Path(path).read_bytes() == b"first" and len(list(tmp_path.iterdir())) == 1


def test_one_that_waits_for_another(tmp_path: Path) -> None:
    path = str(tmp_path / "tok.subword")
    started, done = threading.Event(), []

    def second() -> None:
        started.set()
        with replacing(path, "it", wait=True) as file:
            done.append(Path(path).read_bytes())
            file.write(b"second")

    with replacing(path, "it") as file:
        thread = threading.Thread(target=second)
        thread.start()
        started.wait()
        file.write(b"first")
        assert not done
    thread.join(60)
    assert done == [b"first"] and Path(path).read_bytes() == b"second" and os.listdir(tmp_path) == ["tok.subword"]


def test_what_a_killed_process_left_is_taken_over(tmp_path: Path) -> None:
    target = tmp_path / ("t" * 240 + ".subword")  # the unfinished file has no longer a name
    leave_unfinished(target)
    assert not target.exists()
    tok = subword.train(["ab ab"], vocab_size=257)
    tok.save(target)
    assert os.listdir(tmp_path) == [target.name] and subword.load(target) == tok


def test_a_link_in_the_place_of_an_unfinished_file_is_not_written_through(tmp_path: Path) -> None:
    target = tmp_path / "t.subword"
    leave_unfinished(target)
    (left,) = tmp_path.iterdir()
    left.unlink()
    other = tmp_path / "other"
    other.write_text("precious")
    left.symlink_to(other)
    with pytest.raises(SubwordOSError), replacing(str(target), "it") as file:
        file.write(b"data")
    assert other.read_text() == "precious"
