"""Counting in shards: how files are divided, that several processes find what one finds, and what if they die."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from texts import BYTES, TEXTS

import subword
from subword import CountTable, FormatError, SubwordOSError, SubwordValueError
from subword.cluster import processes, shards
from subword.corpus import Span
from subword.corpus.storing import FOLDER, Blocks, shared_folder
from subword.counting import Job
from subword.counts import Splitting

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

SRC = str(Path(__file__).parent.parent / "src")


def bytes_of(table: CountTable, path: Path) -> bytes:
    table.save(path)
    return path.read_bytes()


def a_text(seed: int, size: int) -> bytes:
    """Text in which safe places, and places that only look safe, are frequent."""
    rng = random.Random(seed)
    parts = [*(text.encode() for text in TEXTS.values()), *BYTES.values()]
    glue = [
        b"\n",
        b"\n\n",
        b"\r\n",
        b" \n",
        b"\n/",
        b"a\nb",
        b"\xc2\xa0\n",
        b"\n\xe3\x80\x80x",
        b"1\r\n2",
        b"PAR1",
        b" ",
    ]
    text = b""
    while len(text) < size:
        part = rng.choice(parts)
        at = rng.randrange(len(part) + 1)
        text += part[at : at + rng.randrange(300)] + rng.choice(glue)
    return text


def random_words(seed: int, size: int) -> bytes:
    """Words that hardly ever repeat, a line each."""
    letters = bytes(10 if byte < 28 else 97 + byte % 26 for byte in range(256))
    return random.Random(seed).randbytes(size).translate(letters)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Files of every kind, large ones among them."""
    import zstandard

    folder = tmp_path_factory.mktemp("corpus")
    (folder / "a.txt").write_bytes(a_text(1, 60_000))
    rows = [{"text": text, "id": at} for at, text in enumerate([*TEXTS.values()] * 2)]
    (folder / "b.jsonl").write_bytes(b"\xef\xbb\xbf" + "\n".join(map(json.dumps, rows)).encode() + b"\n\n")
    (folder / "c.txt.gz").write_bytes(gzip.compress(a_text(2, 20_000)))
    (folder / "d.jsonl.zst").write_bytes(zstandard.compress("\n".join(map(json.dumps, rows)).encode()))
    (folder / "e.csv").write_bytes(b"id,text\n" + b'1,"one\nof ""two""\nlines"\n' * 300)
    pq.write_table(pa.table({"text": [row["text"] for row in rows]}), folder / "f.parquet", row_group_size=9)
    for at in range(12):
        (folder / f"g{at:02}.txt").write_bytes(a_text(10 + at, 500 * (at % 3)))
    (folder / "h.txt").write_bytes(a_text(3, 30_000).replace(b"\n", b" ").replace(b"\r", b" "))
    (folder / "i.txt").write_bytes(b"the last one, whose letters go on and on " * 400 + b"\n")
    return sorted(folder.iterdir())


OPTIONS: list[dict[str, Any]] = [
    {}, {"special_tokens": ("he", "<s>")}, {"special_tokens": ("e\n", "<s>")}, {"pattern": "none"},
    {"pattern": "gpt2", "normalization": "NFKC"}, {"pattern": "cl100k", "digits": "three-right"},
]  # fmt: skip

# ======================== dividing ========================


def counted_here(
    files: list[Path], options: dict[str, Any], number: int, hashed: bool = True, errors: str = "keep"
) -> CountTable:
    """The table of files that are counted in shards, last one first, by this process."""
    splitting = Splitting(**options)
    job = Job(splitting, "text", None, 1, hashed, errors)
    found = shards.shards_of(files, splitting, hashed, number)
    tables = shards.Tables(Blocks(), found)
    for at in reversed(range(len(found))):
        file = io.BytesIO()
        shards.count_shard(found[at], job, file, lambda *_: None)
        tables.add(at, file)
    return tables.table(job, "s")


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_shards_of_any_size_are_the_files(
    options: dict[str, Any], corpus: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = bytes_of(subword.count_pieces(files=corpus, source="s", **options), tmp_path / "t.parquet")
    files = corpus
    numbers = set()
    for size, number in ((1 << 30, 1), (400, 1000), (1_500, 3), (5_000, 2), (11_111, 7), (20_000, 1)):
        monkeypatch.setattr(shards, "SHARD_BYTES", size)
        numbers.add(len(shards.shards_of(files, Splitting(**options), True, number)))
        assert bytes_of(counted_here(files, options, number), tmp_path / "t.parquet") == expected, (size, number)
    assert len(numbers) >= 5 and min(numbers) == 1


def test_shards_are_what_they_say(corpus: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "SHARD_BYTES", 5_000)
    files = corpus
    found = shards.shards_of(files, Splitting(), True, 1000)
    spans = [span for shard in found if shard.counted for span in shard.spans]
    for path in files:
        parts = [span for span in spans if span.path == path]
        assert (parts[0].start, parts[-1].stop) == (0, None)
        assert [span.stop for span in parts[:-1]] == [span.start for span in parts[1:]]
        # Each text is hashed once, and a text in parts as a whole.
        hashed = [span for shard in found if shard.hashed for span in shard.spans if span.path == path]
        assert hashed == ([Span(path)] if path.suffix == ".txt" or len(parts) == 1 else parts)
    names = {span.path.name: 0 for span in spans}
    for span in spans:
        names[span.path.name] += 1
    cut = {name for name, number in names.items() if number > 1}
    assert cut == {"a.txt", "b.jsonl", "f.parquet"}  # the others are whole, or have no safe place
    assert str(found[0].spans[0]) and any(str(shard).endswith("more files") for shard in found)
    assert not any(shard.counted is False for shard in shards.shards_of(files, Splitting(), False, 1000))


def test_a_large_text_is_cut_where_the_reader_might(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every size of shard, so that every place where it may be cut is one somewhere."""
    for seed in range(4):
        (tmp_path / "t.txt").write_bytes(a_text(20 + seed, 3_000))
        expected = dict(subword.count_pieces(files=[tmp_path / "t.txt"]))
        for size in range(40, 1500, 13):
            monkeypatch.setattr(shards, "SHARD_BYTES", size)
            table = counted_here([tmp_path / "t.txt"], {}, 1000, hashed=False)
            assert dict(table) == expected, (seed, size)


def test_a_place_is_found_beyond_the_first_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "_WINDOW", 64)
    (tmp_path / "t.txt").write_bytes((b"word " * 100 + b"end\nword") * 5)
    monkeypatch.setattr(shards, "SHARD_BYTES", 600)
    (_, *found) = shards.shards_of([tmp_path / "t.txt"], Splitting(), True, 1000)
    assert [shard.spans[0].start for shard in found] == [0, 504, 1012, 1520]


def test_errors_name_the_place_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "SHARD_BYTES", 2_000)
    lines = [json.dumps({"text": f"text {at}"}) for at in range(1000)]
    lines[777] = '{"text": 5}'
    (tmp_path / "t.jsonl").write_text("\n".join(lines))
    with pytest.raises(FormatError) as told:
        subword.count_pieces(files=[tmp_path / "t.jsonl"])
    with pytest.raises(FormatError) as told_by_shards:
        counted_here([tmp_path / "t.jsonl"], {}, 3)
    assert str(told_by_shards.value) == str(told.value) and "line 778" in str(told.value)
    pq.write_table(pa.table({"text": ["a" * 50] * 300 + [None]}), tmp_path / "t.parquet", row_group_size=50)
    monkeypatch.setattr(shards, "SHARD_BYTES", 200)
    with pytest.raises(FormatError, match="row 301: the column 'text' has no value"):
        counted_here([tmp_path / "t.parquet"], {}, 1000)


def test_what_is_not_utf8_is_told_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "SHARD_BYTES", 500)
    (tmp_path / "t.txt").write_bytes(b"some words\r\nand others\r\n" * 100 + b"a\xffb\n" + b"words\n" * 100)
    (tmp_path / "t.jsonl").write_bytes(b'{"text": "words"}\n' * 100 + b'{"text": "a\xff"}\n' + b'{"text": "b"}\n' * 90)
    for name in ("t.txt", "t.jsonl"):
        with pytest.raises(FormatError) as told:
            subword.count_pieces(files=[tmp_path / name], errors="strict")
        with pytest.raises(FormatError) as told_by_shards:
            counted_here([tmp_path / name], {}, 3, errors="strict")
        assert str(told_by_shards.value) == str(told.value) and "line" in str(told.value)
    expected = bytes_of(subword.count_pieces(files=[tmp_path / "t.txt"], source="s", errors="replace"), tmp_path / "p")
    assert bytes_of(counted_here([tmp_path / "t.txt"], {}, 3, errors="replace"), tmp_path / "p") == expected


def test_a_file_that_becomes_shorter_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "SHARD_BYTES", 500)
    (tmp_path / "t.txt").write_bytes(a_text(5, 3_000))
    _, first, *_ = shards.shards_of([tmp_path / "t.txt"], Splitting(), True, 9)
    (tmp_path / "t.txt").write_bytes(b"short")
    with pytest.raises(FormatError, match="become shorter"):
        shards.count_shard(first, Job(Splitting(), "text", None, 1), io.BytesIO(), lambda *_: None)


# ======================== several processes ========================


def test_any_number_of_processes_finds_the_same(
    corpus: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "SHARD_BYTES", 4_000)
    temp = tmp_path / "temp"
    temp.mkdir()
    expected = bytes_of(subword.count_pieces(files=corpus, special_tokens=["he"]), tmp_path / "t.parquet")
    told: list[int] = []
    for number, threads, memory in ((2, None, None), (3, 7, "2MB"), (5, 1, None)):
        told.clear()
        table = subword.count_pieces(
            files=corpus, special_tokens=["he"], processes=number, threads=threads, memory=memory, temp=temp,
            progress=lambda stage, done, total: told.append(done),
        )  # fmt: skip
        assert bytes_of(table, tmp_path / "t.parquet") == expected
        assert told[-1] == table.text_bytes and told == sorted(told)
        assert list(temp.iterdir()) == []


def test_memory_is_shared_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.txt").write_bytes(random_words(6, 4_000_000))
    monkeypatch.setattr(shards, "SHARD_BYTES", 1_000_000)
    (tmp_path / "temp").mkdir()
    expected = bytes_of(subword.count_pieces(files=[tmp_path / "t.txt"]), tmp_path / "t.parquet")
    table = subword.count_pieces(files=[tmp_path / "t.txt"], processes=2, memory="4MB", temp=tmp_path / "temp")
    assert len(table.runs) > 8 and table.runs[0].read.blocks.on_disk > 1_000_000
    assert list((tmp_path / "temp").iterdir()) == []  # what is on disk has no name
    assert bytes_of(table, tmp_path / "t.parquet") == expected


def test_training_on_files(corpus: list[Path]) -> None:
    options: dict[str, Any] = {"vocab_size": 400, "tie_rule": "first-seen", "special_tokens": ["<s>"]}
    tok = subword.train(files=corpus, processes=2, **options)
    assert (
        tok == subword.train(files=corpus, **options)
        and tok.training == subword.train(files=corpus, **options).training
    )


def test_nothing_to_count(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_bytes(b"")
    table = subword.count_pieces(files=[tmp_path / "t.txt"], processes=3)
    assert table.sources == subword.count_pieces(files=[tmp_path / "t.txt"]).sources and dict(table) == {}
    assert dict(subword.count_pieces(files=[], processes=3)) == {}


@pytest.mark.parametrize(("arguments", "said"), [
    ({"texts": ["a"], "processes": 2}, "processes= goes with files="),
    ({"texts": ["a"], "ray": True}, "ray= goes with files="),
    ({"files": ["-"], "processes": 2}, "standard input: not a file that several processes can read"),
    ({"files": ["pipe"], "processes": 2}, "pipe: not a file that several processes can read"),
    ({"files": ["t.txt"], "processes": 0}, "processes must be an integer of at least 1"),
    ({"files": ["t.txt"], "processes": 1.5}, "processes must be an integer of at least 1"),
    ({"files": "t.txt", "processes": 2}, "files must be a list of paths"),
    ({"files": ["t.txt"], "processes": 2, "ray": True}, "give processes= or ray=, not both"),
])  # fmt: skip
def test_what_processes_cannot_do(
    arguments: dict[str, Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.txt").write_text("text")
    os.mkfifo("pipe")
    with pytest.raises(SubwordValueError, match=said):
        subword.count_pieces(**arguments)


def test_the_first_error_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "SHARD_BYTES", 100)
    for at in range(8):
        (tmp_path / f"{at}.txt").write_text("words and more words\n" * 20)
    (tmp_path / "3.jsonl").write_text("\n" * 400 + "3")
    (tmp_path / "5.gz").write_bytes(b"no gzip")
    with pytest.raises(FormatError, match=r"3\.jsonl, line 401: a JSON number"):
        subword.count_pieces(files=[tmp_path], processes=3)
    with pytest.raises(SubwordOSError, match="temporary folder"):
        subword.count_pieces(files=[tmp_path / "1.txt"], processes=2, temp=tmp_path / "absent")


# ======================== processes that die ========================


class Started:
    """The processes that were started."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.all: list[subprocess.Popen[bytes]] = []
        popen = subprocess.Popen

        def start(*args: Any, **options: Any) -> Any:
            self.all.append(popen(*args, **options))
            return self.all[-1]

        monkeypatch.setattr(processes.subprocess, "Popen", start)


def test_a_process_that_is_killed_is_replaced(
    corpus: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "SHARD_BYTES", 4_000)
    expected = bytes_of(subword.count_pieces(files=corpus), tmp_path / "t.parquet")
    started = Started(monkeypatch)
    rng = random.Random(1)
    killed = 0

    def kill(stage: str, done: int, total: int | None) -> None:
        nonlocal killed
        if killed < 2 and rng.random() < 0.5:
            started.all[-1].kill()
            killed += 1

    table = subword.count_pieces(files=corpus, processes=2, progress=kill)
    assert bytes_of(table, tmp_path / "t.parquet") == expected
    assert killed == 2 and len(started.all) >= 3
    assert all(process.returncode is not None for process in started.all)


def test_a_process_that_dies_when_it_is_done_has_counted_once(
    corpus: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "SHARD_BYTES", 4_000)
    expected = bytes_of(subword.count_pieces(files=corpus), tmp_path / "t.parquet")
    started = Started(monkeypatch)
    message, lost, given = processes._message, [], []

    def losing(connection: Any) -> Any:
        found = message(connection)
        given.append(found)
        if found and found[0] == "done" and len(lost) < 3:
            lost.append(found)
            return None  # as if it had died before it could say so
        return found

    monkeypatch.setattr(processes, "_message", losing)
    monkeypatch.setattr(processes, "PATIENCE", 0)
    table = subword.count_pieces(files=corpus, processes=2)
    assert bytes_of(table, tmp_path / "t.parquet") == expected
    assert len(lost) == 3 and len(started.all) >= 4
    done = [found[1] for found in given if found and found[0] == "done"]
    assert sorted(done) == list(range(len(done)))  # none was counted again


def test_a_shard_that_ends_every_process_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.txt").write_text("text")
    temp = tmp_path / "temp"
    temp.mkdir()
    started = Started(monkeypatch)
    start = processes._Workers._start

    def start_and_kill(self: Any) -> Any:
        connection = start(self)
        started.all[-1].kill()
        return connection

    monkeypatch.setattr(processes._Workers, "_start", start_and_kill)
    with pytest.raises(SubwordOSError, match=r"died, 3 times in a row \(SIGKILL: is there enough memory.*t\.txt'"):
        subword.count_pieces(files=[tmp_path / "t.txt"], processes=2, temp=temp)
    assert len(started.all) == 3 and list(temp.iterdir()) == []


def test_what_a_process_says_at_its_end_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.txt").write_text("text")
    monkeypatch.setattr(processes, "CODE", "raise SystemExit('no room here')")
    with pytest.raises(SubwordOSError, match=r"3 times in a row \(no room here\)"):
        subword.count_pieces(files=[tmp_path / "t.txt"], processes=2)


def test_only_the_folders_of_the_dead_are_removed(tmp_path: Path) -> None:
    with ExitStack() as stack:
        alive = stack.enter_context(shared_folder(str(tmp_path)))
        dead = tmp_path / f"{FOLDER}left"
        dead.mkdir()
        (dead / "7.table").write_bytes(b"counts")
        (tmp_path / f"{FOLDER}link").symlink_to(tmp_path / "elsewhere")
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "other").mkdir()
        with shared_folder(str(tmp_path)) as second:
            there = {path.name for path in tmp_path.iterdir()}
            names = {Path(alive).name, Path(second).name}
            assert there == {*names, f"{FOLDER}link", "elsewhere", "other"}
    assert {path.name for path in tmp_path.iterdir()} == {f"{FOLDER}link", "elsewhere", "other"}


def command(folder: Path, *args: str, size: int) -> subprocess.Popen[bytes]:
    """The command line, with small shards."""
    code = (  # a process that was started in the background ignores Ctrl-C
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        f"import sys; from subword.cluster import shards; shards.SHARD_BYTES = {size}; "
        "from subword.cli import main; sys.exit(main())"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code, *args],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": SRC},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def workers_of(temp: Path) -> list[int]:
    """The processes that count into a folder in `temp`, where the system can say so."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline") if Path("/proc/self/cmdline").exists() else ():
        try:
            if f"{temp}/{FOLDER}".encode() in entry.read_bytes():
                found.append(int(entry.parent.name))
        except OSError:
            continue
    return found


def wait_for(what: Callable[[], Any]) -> Any:
    for _ in range(12_000):
        if found := what():
            return found
        time.sleep(0.005)
    raise AssertionError("it never came")


@pytest.fixture
def text(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """A folder with a text that takes some time, and one for what is temporary."""
    work, temp = tmp_path / "work", tmp_path / "temp"
    work.mkdir()
    temp.mkdir()
    (work / "text.txt").write_bytes(random_words(8, 6_000_000))
    yield work, temp
    assert wait_for(lambda: not workers_of(temp))


@pytest.mark.slow
def test_killed_at_any_moment(text: tuple[Path, Path]) -> None:
    work, temp = text
    subword.count_pieces(files=[work / "text.txt"]).save(work / "one.parquet")
    args = ("count-pieces", "text.txt", "-o", "out.parquet", "--memory", "4MB", "--processes", "2", "--force")
    args = (*args, "--temp", str(temp))
    started = time.perf_counter()
    _, errors = (process := command(work, *args, size=1 << 20)).communicate(timeout=300)
    assert process.returncode == 0, errors
    seconds = time.perf_counter() - started
    expected = (work / "one.parquet").read_bytes()
    assert (work / "out.parquet").read_bytes() == expected and list(temp.iterdir()) == []
    rng = random.Random(9)
    killed = left = 0
    for _ in range(5):
        (work / "out.parquet").unlink(missing_ok=True)
        process = command(work, *args, size=1 << 20)
        wait_for(lambda: process.poll() is not None or [*temp.iterdir()])  # noqa: B023
        time.sleep(rng.choice((0, rng.random())) * seconds)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        killed += process.returncode == -signal.SIGKILL
        wait_for(lambda: not workers_of(temp))  # they end with the process that started them
        folders = list(temp.iterdir())
        left += len(folders)
        assert len(folders) <= 1 and all(folder.name.startswith(FOLDER) for folder in folders)
        assert not (work / "out.parquet").exists() or (work / "out.parquet").read_bytes() == expected
    assert killed and left
    (temp / f"{FOLDER}some").mkdir(exist_ok=True)
    _, errors = (process := command(work, *args, size=1 << 20)).communicate(timeout=300)
    assert process.returncode == 0, errors
    assert (work / "out.parquet").read_bytes() == expected and list(temp.iterdir()) == []
    assert {path.name for path in work.iterdir()} == {"text.txt", "one.parquet", "out.parquet"}


def test_interrupted(text: tuple[Path, Path]) -> None:
    work, temp = text
    args = ("count-pieces", "text.txt", "-o", "out.parquet", "--processes", "2", "--temp", str(temp))
    process = command(work, *args, size=1 << 20)
    wait_for(lambda: [*temp.iterdir()])
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and b"Traceback" not in errors, errors
    assert list(temp.iterdir()) == [] and {path.name for path in work.iterdir()} == {"text.txt"}


def test_the_command_line_says_the_same(corpus: list[Path], tmp_path: Path) -> None:
    for number in ("1", "2"):
        args = ("count-pieces", *map(str, corpus), "-o", f"{number}.parquet", "--source", "web", "--processes", number)
        out, errors = (process := command(tmp_path, *args, "--json", size=4_000)).communicate(timeout=300)
        assert process.returncode == 0, errors
        assert json.loads(out)["source"] == "web"
    assert (tmp_path / "1.parquet").read_bytes() == (tmp_path / "2.parquet").read_bytes()
    args = ("train", *map(str, corpus), "-v", "300", "-o", "t.json", "--processes", "2")
    _, errors = (process := command(tmp_path, *args, size=4_000)).communicate(timeout=300)
    assert process.returncode == 0, errors
    assert subword.load(tmp_path / "t.json") == subword.train(files=corpus, vocab_size=300)
    args = ("count-pieces", *map(str, corpus), "-o", "3.parquet", "--processes", "2", "--ray")
    _, errors = (process := command(tmp_path, *args, size=4_000)).communicate(timeout=300)
    assert process.returncode == 2 and b"--processes or --ray, not both" in errors
