"""Learning that was stopped, or killed, goes on to the result of one run, and leaves nothing."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import subword
from subword import FormatError, SubwordOSError, SubwordValueError, SubwordWarning, checkpoint

SRC = str(Path(__file__).parent.parent / "src")
WAYS: list[dict[str, Any]] = [
    {},
    {"tie_rule": "first-seen"},
    {"tie_rule": "largest-string", "byte_order": "gpt2"},
    {"min_count": 3},
    {"unit": "character", "pattern": "spaces", "end_of_word": "</w>", "tie_rule": "first-seen"},
    {"keep_whole_characters": True, "initial": ["abc", "éé"], "max_token_bytes": 9},
    {"unit": "character", "limit_alphabet": 7, "initial": ["ab"], "max_token_bytes": 24},
]


class StopError(Exception):
    pass


def text(seed: int, count: int) -> str:
    rng = random.Random(seed)
    words = ["".join(rng.choices("abcdefgéжあ🙂", k=rng.randint(1, 16))) for _ in range(count)]
    return " ".join(words[int(len(words) * rng.random() ** 2)] for _ in range(count * 4))


def stop_after(merges: int) -> Any:
    def progress(stage: str, done: int, total: int | None) -> None:
        if stage == "learn" and done >= merges:
            raise StopError

    return progress


def stop(path: Path, texts: list[str], after: int = 1, **how: Any) -> None:
    """A training that is stopped, once or again, and leaves its checkpoint."""
    with pytest.raises(StopError):
        subword.train(texts, checkpoint=path, progress=stop_after(after), **how)


@pytest.mark.filterwarnings("ignore:the text has no pairs left")
@pytest.mark.parametrize("how", WAYS, ids=str)
def test_the_result_is_that_of_one_run(how: dict[str, Any], tmp_path: Path) -> None:
    texts, path = [text(1, 4000)], tmp_path / "learned"
    whole = subword.train(texts, vocab_size=1200, **how)
    stop(path, texts, vocab_size=1200, **how)
    asked = json.loads(path.read_bytes().split(b"\n")[1])["asked"]
    table = subword.count_pieces(texts, pattern=how.get("pattern", "o200k"))
    pieces, *_ = table.pieces(None, how.get("min_count", 1), in_order=how.get("tie_rule") == "first-seen")
    merges, counts, certain = checkpoint.Checkpoint(str(path), asked).start(pieces)
    path.unlink()
    assert len(merges) == len(whole.spec.model.merges)
    for done in (8, 20, 500, len(merges)):  # behind the merges of initial tokens, which are made at once
        for given in ({"texts": texts, "threads": 1}, {"counts": table}):
            learned = checkpoint.Checkpoint(str(path), asked)
            assert learned.start(pieces) is None
            learned.keep(merges[:done], counts[:done], min(certain, done))
            if "min_count" in how and certain >= done:
                assert not path.exists()  # while its proof goes on, there is nothing to go on from
            else:
                assert path.exists()
            again = subword.train(vocab_size=1200, checkpoint=path, **how, **given)
            assert again == whole and again.training == whole.training and again.spec.notes == whole.spec.notes
            assert os.listdir(tmp_path) == []


def test_it_is_written_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    sizes: list[int] = []

    def progress(stage: str, done: int, total: int | None) -> None:
        sizes.extend(path.stat().st_size for path in tmp_path.iterdir())

    subword.train([text(2, 60_000)], vocab_size=1500, checkpoint=tmp_path / "learned", progress=progress)
    assert len(sizes) > 1 and sizes == sorted(set(sizes))
    assert os.listdir(tmp_path) == []


def test_one_of_another_call_or_text_is_refused(tmp_path: Path) -> None:
    texts, path = [text(1, 3000)], tmp_path / "learned"
    stop(path, texts, vocab_size=800)
    before = path.read_bytes()
    for other, why in (
        ({"vocab_size": 801}, "vocab_size=800, not 801"),
        ({"tie_rule": "first-seen"}, "tie_rule='smallest-ids', not 'first-seen'"),
        ({"pattern": "gpt2"}, "pattern='o200k', not 'gpt2'"),
        ({"special_tokens": ["<a>"]}, "special_tokens=.*, not .*<a>"),
        ({"min_count": 2}, "min_count=1, not 2"),
        ({"unit": "character"}, "unit='byte', not 'character'"),
        ({"texts": [*texts, "a"]}, "other text"),
    ):
        with pytest.raises(SubwordValueError, match=why):
            subword.train(**({"texts": texts, "vocab_size": 800, "checkpoint": path} | other))  # type: ignore[arg-type]
    assert path.read_bytes() == before
    assert subword.train(texts, vocab_size=800, checkpoint=path) == subword.train(texts, vocab_size=800)


def test_a_damaged_one_is_refused(tmp_path: Path) -> None:
    texts, path = [text(1, 1000)], tmp_path / "learned"
    stop(path, texts, vocab_size=500)
    whole = path.read_bytes()
    rng = random.Random(4)
    for _ in range(60):
        damaged = bytearray(whole)
        damaged[rng.randrange(len(damaged))] ^= rng.randint(1, 255)
        for data in (bytes(damaged), whole[: rng.randrange(len(whole))], whole + b"x"):
            path.write_bytes(data)
            with pytest.raises(FormatError, match=r"no checkpoint|damaged"):
                subword.train(texts, vocab_size=500, checkpoint=path)
    with pytest.raises(SubwordOSError, match="cannot read the checkpoint"):
        subword.train(texts, vocab_size=500, checkpoint=tmp_path)


def test_one_that_cannot_be_written_does_not_end_the_learning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    with pytest.warns(SubwordWarning, match="learning goes on without it"):
        tok = subword.train([text(1, 1000)], vocab_size=500, checkpoint=tmp_path / "none" / "learned")
    assert tok == subword.train([text(1, 1000)], vocab_size=500)


# ======================== real processes ========================


def start(folder: Path, *args: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "subword", "train", "text.txt", "-o", "tok.subword", *args]
    environment = os.environ | {"PYTHONPATH": SRC}
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    while not path.exists() and process.poll() is None:
        time.sleep(0.01)


def finish(folder: Path, *args: str) -> bytes:
    _, errors = (process := start(folder, *args)).communicate(timeout=300)
    assert process.returncode == 0, errors
    return (folder / "tok.subword").read_bytes()


ARGS = ("-v", "20k", "--checkpoint", "learned", "--pattern", "gpt2", "--force")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("work")
    (folder / "text.txt").write_text(text(5, 100_000))
    return folder


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_killed_at_any_moment(work: Path) -> None:
    started = time.perf_counter()
    expected = finish(work, *ARGS)
    seconds = time.perf_counter() - started
    rng = random.Random(9)
    killed = 0
    for _ in range(6):
        (work / "tok.subword").unlink(missing_ok=True)
        for _ in range(rng.randint(1, 3)):
            process = start(work, *ARGS)
            time.sleep(rng.uniform(0.1, 1) * seconds)
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=60)
            killed += process.returncode == -signal.SIGKILL
        assert finish(work, *ARGS) == expected
        assert sorted(os.listdir(work)) == ["text.txt", "tok.subword"]
    assert killed


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_killed_while_a_file_is_written(work: Path) -> None:
    """What is half written, of the checkpoint or the tokenizer, is taken over and gone in the end."""
    from test_counts import leave_unfinished

    expected = finish(work, *ARGS)
    leave_unfinished(work / "learned")
    leave_unfinished(work / "tok.subword")
    assert finish(work, *ARGS) == expected
    assert sorted(os.listdir(work)) == ["text.txt", "tok.subword"]


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_ctrl_c_says_how_to_go_on(work: Path) -> None:
    expected = finish(work, *ARGS)
    code = (  # a process that was started in the background ignores Ctrl-C
        "import os, signal, subword, subword.training as t, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from subword.cli import main\n"
        "train = t.train\n"
        "def tell(stage, done, total):\n"
        "    stage == 'learn' and done >= 500 and os.kill(os.getpid(), signal.SIGINT)\n"
        "t.train = lambda *a, **how: train(*a, **how | {'progress': tell})\n"
        "sys.exit(main(['train', 'text.txt', '-o', 'tok.subword', *sys.argv[1:]]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *ARGS],
        cwd=work,
        env=os.environ | {"PYTHONPATH": SRC},
        capture_output=True,
        timeout=300,
    )
    assert done.returncode == 130, done.stderr
    assert done.stderr.startswith(b"interrupted: ") and b"go on" in done.stderr.replace(b"goes", b"go")
    assert b"learned has " in done.stderr and (work / "learned").exists()
    assert finish(work, *ARGS) == expected
    assert not (work / "learned").exists()
