"""What is shown of long work: progress on a terminal and for programs, and the page about a training."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from texts import TEXTS

import subword
from subword.cli import main
from subword.report import charts, page
from subword.report import progress as progress_report
from subword.report.training import curve_line, training_page

# ======================== progress ========================


class Clock:
    """A time that goes on when it is told to."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def lines_of(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_json_says_the_rate_of_late_and_the_time_left(clock: Clock) -> None:
    stream = io.StringIO()
    with progress_report.progress("json", stream, clock) as report:
        assert report is not None
        for second in range(21):  # 1 MB/s, and after ten seconds 4 MB/s
            clock.now = 100.0 + second
            report("count", (second + 3 * max(second - 10, 0)) * 1_000_000, 100_000_000)
    lines = lines_of(stream)
    assert list(lines[0]) == ["stage", "unit", "done", "total", "rate", "left", "seconds"]
    assert lines[0] == {
        "stage": "count", "unit": "bytes", "done": 0, "total": 100_000_000, "rate": None, "left": None, "seconds": 0.0,
    }  # fmt: skip
    assert lines[10]["rate"] == 1_000_000 and lines[10]["left"] == 90
    assert lines[20]["rate"] == 4_000_000 and lines[20]["left"] == 50 / 4
    assert lines[20]["seconds"] == 20


def test_json_is_a_few_lines_a_second_and_the_last_of_each_stage(clock: Clock) -> None:
    stream = io.StringIO()
    with progress_report.progress("json", stream, clock) as report:
        assert report is not None
        for at in range(1001):
            clock.now += 0.001
            report("count", at, None)
        for at in range(501):
            clock.now += 0.001
            report("learn", at, 500)
    lines = lines_of(stream)
    assert [(line["stage"], line["done"]) for line in lines if line["done"] in (0, 500, 1000)] == [
        ("count", 0), ("count", 500), ("count", 1000), ("learn", 0), ("learn", 500),
    ]  # fmt: skip
    assert len(lines) <= 7
    assert lines[-1]["left"] == 0 and lines[-1]["rate"] == 1000
    assert all(line["left"] is None and line["total"] is None for line in lines if line["stage"] == "count")


def test_the_time_left_of_learning_allows_for_merges_getting_faster() -> None:
    """If the merge number k takes 1/k seconds, as with Zipf's law, the estimate is right at every place."""
    total, seconds, pace = 20_000, 0.0, progress_report.Pace("learn", 0.0)
    whole = sum(1 / merge for merge in range(1, total + 1))
    for merge in range(1, total + 1):
        seconds += 1 / merge
        state = pace.state(seconds, merge, total)
        if merge in (1_000, 5_000, 10_000, 15_000):
            # The rate is that of some seconds, in which merges were slower, so the estimate errs on the safe side.
            assert state.left is not None and whole - seconds <= state.left


def test_nothing_is_shown_in_a_pipe_or_when_it_is_not_wanted() -> None:
    stream = io.StringIO()
    for how in ("auto", "none"):
        with progress_report.progress(how, stream) as report, progress_report.ticking("count", 9, report) as tick:  # type: ignore[arg-type]
            assert report is None and tick is None
    assert stream.getvalue() == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_bars_fit_a_terminal_of_eighty_columns(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"TERM": "xterm", "COLUMNS": "80", "LINES": "24"}.items():
        monkeypatch.setenv(name, value)
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    stream = Terminal()
    with progress_report.progress("auto", stream, clock) as report:
        assert report is not None
        for stage, total in (("count", 123_456_700_000), ("learn", 128_000)):
            report(stage, 0, total)
            clock.now += 2
            report(stage, total // 4, total)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())
    assert "30,864 of 123,457 MB  25 %  15,432 MB/s  0:00:06 left" in shown
    assert "32,000 of 128,000  25 %  16,000/s  0:00:03 left" in shown
    assert all(len(line) <= 80 for line in re.split(r"[\r\n]+", shown))


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[str, str]]:
    """Runs a command in a folder of its own; gives what it prints, and what it prints to standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*args: str, code: int = 0) -> tuple[str, str]:
        assert main(args) == code
        out, error = capsys.readouterr()
        return out, error

    return run


def test_every_long_command_tells_programs_how_far_it_is(run: Callable[..., tuple[str, str]], tmp_path: Path) -> None:
    text = "\n".join(TEXTS.values()) * 20
    (tmp_path / "t.txt").write_bytes(text.encode("utf-8", "replace"))
    size = (tmp_path / "t.txt").stat().st_size
    out, error = run("train", "t.txt", "-v", "400", "-o", "tok.json", "--progress", "json", "--json")
    assert json.loads(out)["merges"] == 144  # the summary, alone
    lines = [json.loads(line) for line in error.splitlines()]
    last = {line["stage"]: line for line in lines}
    assert list(last) == ["count", "learn"]
    assert (last["count"]["done"], last["count"]["total"], last["count"]["left"]) == (size, size, 0)
    assert (last["learn"]["done"], last["learn"]["total"], last["learn"]["left"]) == (144, 144, 0)
    for command, stage in {
        "encode tok.json t.txt --ordinary -o ids.npy": "encode",
        "count tok.json t.txt --ordinary": "count",
        "count-pieces t.txt -o t.parquet": "count",
        "convert tok.json t.subword --probe t.txt": "compare",
    }.items():
        if "parquet" in command:
            pytest.importorskip("pyarrow")
        assert "{" not in run(*command.split())[1]
        again = [] if command.startswith("count ") else ["--force"]
        _, error = run(*command.split(), *again, "--progress", "json")
        lines = [json.loads(line) for line in error.splitlines() if line.startswith("{")]
        assert (lines[-1]["stage"], lines[-1]["done"], lines[-1]["total"]) == (stage, size, size)


# ======================== the page ========================


class Outline(HTMLParser):
    """What a page is made of; refuses what does not fit together, and whatever would come from outside."""

    VOID = ("meta", "br", "link", "img")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "link", "img", "iframe", "object", "base")
        assert not any(name in ("href", "src", "srcset") or name.startswith("on") for name, _ in attrs)
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture(scope="module")
def tok() -> subword.Tokenizer:
    a = subword.count_pieces([text for name, text in TEXTS.items()], source="<b>&one", special_tokens=["<|end|>"])
    b = subword.count_pieces(["<script>alert(1)</script> \x00\x1b" * 30], source="two", special_tokens=["<|end|>"])
    return subword.train(counts=[a, b], vocab_size=600, weights={"two": "7/2"}, min_count=2)


@pytest.fixture(params=[True, False], ids=["with altair", "without"])
def drawn(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if request.param:
        pytest.importorskip("altair")
        pytest.importorskip("vl_convert")
    else:
        monkeypatch.setitem(sys.modules, "altair", None)
    return bool(request.param)


def test_the_page_about_a_training(drawn: bool, tok: subword.Tokenizer) -> None:
    assert tok.training is not None
    text = training_page(tok, "<i>mine</i>.json", {"time": "3 s & more"})
    outline = Outline(text)
    words = " ".join(outline.words)
    for wanted in ("Training of <i>mine</i>.json", "3 s & more", "<b>&one", "7/2", "smallest-ids", "<|end|>",
                   "MatchTokens → Split", "are proved to be those", tok.fingerprint):  # fmt: skip
        assert wanted in words, wanted
    for row in tok.training["curve"]:
        assert page.number(row["tokens"]) in words and page.number(row["bytes_per_token"]) in words
    assert "http" not in re.sub(r'xmlns(:xlink)?="[^"]*"', "", text).replace("https://", "http")
    tags = [tag for tag, _ in outline.tags]
    assert all(tags.count(tag) == 1 for tag in ("html", "h1", "main", "footer"))
    assert all(attributes.get("scope") == "col" for tag, attributes in outline.tags if tag == "th")
    assert tags.count("caption") == tags.count("table") == 2
    assert (tags.count("svg") == 1) == drawn
    assert (charts.MISSING in words) == (not drawn)
    if drawn:
        svg = next(attributes for tag, attributes in outline.tags if tag == "svg")
        named = {
            attributes["id"] for tag, attributes in outline.tags if tag in ("title", "desc") and "id" in attributes
        }
        assert svg["role"] == "img" and set((svg["aria-labelledby"] or "").split()) == named
        assert "currentColor" in text and len(text) < 60_000


def test_a_training_of_nothing_has_a_page_too(drawn: bool) -> None:
    tok = subword.train(["abc"], vocab_size=256)
    assert tok.training is not None and curve_line(tok.training) == "1.00 bytes a token"
    assert "1.00 bytes a token" in training_page(tok, "x", {})
    assert curve_line({}) == ""


def test_the_command_writes_a_report(run: Callable[..., tuple[str, str]], tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_bytes("\n".join(TEXTS.values()).encode("utf-8", "replace"))
    args = ("train", "t.txt", "-v", "400", "-o", "tok.subword", "--report", "r.html", "--special", "<s>")
    out, _ = run(*args)
    assert "tok.subword and r.html" in out and "bytes a token" in out
    words = " ".join(Outline((tmp_path / "r.html").read_text("utf-8")).words)
    assert "Training of tok.subword" in words and "t.txt" in words and " s (" in words
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.html", "t.txt", "tok.subword"]
    assert json.loads(run(*args, "--force", "--json")[0])["report"] == "r.html"
    info, _ = run("info", "tok.subword")
    assert "bytes a token" in info and "'merges': 0" not in info
    (tmp_path / "tok.subword").unlink()
    assert "r.html exists; --force" in run(*args, code=1)[1]
    _, error = run("train", "t.txt", "-v", "400", "-o", "new.json", "--report", "r.pdf", code=2)
    assert "--report r.pdf: a report is an .html file" in error and not (tmp_path / "new.json").exists()


def test_numbers_of_a_column_have_as_many_decimals_as_one_needs() -> None:
    rows = [("a", 98.8, 2.0, "8.19 M", "12:30", None), ("b", 100.0, 3.0, "0.000060", "7", None)]
    assert page.shown(rows) == [
        ["a", "98.8", "2", "8.19 M", "12:30", "–"], ["b", "100.0", "3", "0.000060", "7", "–"],
    ]  # fmt: skip
    assert page.numeric(("", "", "", "", "", ""), rows) == [False, True, True, True, False, False]


def test_what_a_page_shows_cannot_break_it() -> None:
    hostile = "</style></td><script>&\"'\x00\x1b\ud800\u2028"
    text = page.page(
        hostile,
        hostile,
        page.section(hostile, page.paragraph(hostile), page.facts([(hostile, hostile), ("left out", "")])),
        page.table(hostile, (hostile, "n"), [(hostile, 1), (None, 2.5)]),
        page.figure("<svg></svg>", hostile),
        page.tokens([hostile]),
        foot=hostile,
    )
    assert "left out" not in text
    assert not any(char < " " and char != "\n" for char in text)
    words = Outline(text.encode().decode()).words
    assert sum("</style></td><script>&\"'" in part for part in words) == 13
