"""How far long work has come: bars on a terminal, or lines of JSON for a program that watches.

Work reports `(stage, done, total)`, as often as it likes; what is shown is shown a few times a second. The rate is that
of the last seconds, and so is what the time left is taken from; where a stage is done, it is that of the whole stage.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, TextIO, TypeAlias

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

Report: TypeAlias = Callable[[str, int, "int | None"], None]
How: TypeAlias = Literal["auto", "json", "none"]

HOWS = ("auto", "json", "none")

STAGES = {
    "count": ("counting", "bytes"),
    "learn": ("learning merges", "merges"),
    "encode": ("encoding", "bytes"),
    "compare": ("comparing", "bytes"),
}
"""What the stages of long work are called, and what they count. Bytes are those on disk, compressed or not."""


def _named(stage: str) -> tuple[str, str]:
    return STAGES.get(stage, (stage, "steps"))


EVERY = {"auto": 0.1, "json": 0.5}
"""Seconds between two reports that are shown."""

WINDOW = 5.0
"""The rate is that of so many seconds."""

LEAST = 0.1
"""In so few seconds there is no rate yet."""


class State(NamedTuple):
    """How far a stage has come, after so many seconds."""

    stage: str
    done: int
    total: int | None
    rate: float | None
    """A second; None while there is nothing to say."""
    left: float | None
    """Seconds; None where the total or the rate is not known."""
    seconds: float


class Pace:
    """The rate of a stage, from what it reported and when."""

    def __init__(self, stage: str, now: float) -> None:
        self.stage = stage
        self.start = now
        self.seen = deque([(now, 0)])

    def state(self, now: float, done: int, total: int | None) -> State:
        """What there is to say at the time `now`; to be asked in the order of time.

        >>> pace = Pace("count", 0.0)
        >>> pace.state(2.0, 100, 400)
        State(stage='count', done=100, total=400, rate=50.0, left=6.0, seconds=2.0)
        """
        seen = self.seen
        seen.append((now, done))
        while len(seen) > 2 and seen[1][0] <= now - WINDOW:
            seen.popleft()
        then, before = (self.start, 0) if total is not None and done >= total else seen[0]
        rate = (done - before) / (now - then) if now - then >= LEAST else None
        return State(self.stage, done, total, rate, time_left(self.stage, done, total, rate), now - self.start)


def time_left(stage: str, done: int, total: int | None, rate: float | None) -> float | None:
    """Seconds, from the rate of late; None where that cannot be said.

    A merge takes as long as its pair has places, and the merge number k has about 1/k of those of the first (Zipf's
    law): so while merges are learned the rate will rise, and what is left takes `k / rate * ln(total / k)`.

    >>> time_left("count", 25, 100, 5.0), time_left("count", 25, None, 5.0)
    (15.0, None)
    >>> round(time_left("learn", 1_000, 32_000, 100.0))
    35
    """
    if total is None or (not rate and done < total):
        return None
    if done >= total or not rate:
        return 0.0
    return done / rate * math.log(total / done) if stage == "learn" else (total - done) / rate


class _Shown:
    """Shows what is reported, now and then; of each stage the first and the last report always."""

    def __init__(self, every: float, show: Callable[[State], None], clock: Callable[[], float]) -> None:
        self.every = every
        self.show = show
        self.clock = clock
        self.pace: Pace | None = None
        self.waiting: tuple[int, int | None] | None = None  # reported, not shown
        self.next = 0.0

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        now = self.clock()
        if self.pace is None or self.pace.stage != stage:
            self.flush()
            self.pace = Pace(stage, now)
            self.next = now
        self.waiting = (done, total)
        if now >= self.next:
            self.flush()
            self.next = now + self.every

    def flush(self) -> None:
        if self.pace is not None and self.waiting is not None:
            self.show(self.pace.state(self.clock(), *self.waiting))
            self.waiting = None


@contextmanager
def progress(
    how: How = "auto", stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[Report | None]:
    """A function to report to, or None where nothing is to be shown.

    Args:
        how: `"auto"`: bars if `stream` is a terminal; `"json"`: an object a line, whatever it is; `"none"`.
        stream: standard error if not given.
    """
    stream = sys.stderr if stream is None else stream
    if how == "json":
        shown = _Shown(EVERY[how], lambda state: print(json_line(state), file=stream, flush=True), clock)
        try:
            yield shown
        finally:
            shown.flush()
    elif how == "auto" and stream is not None and stream.isatty():
        bars = _Bars(Console(file=stream))
        with bars.progress:
            yield _Shown(EVERY[how], bars.show, clock)
    else:
        yield None


@contextmanager
def ticking(stage: str, total: int | None, report: Report | None) -> Iterator[Callable[[int], None] | None]:
    """A function that adds to what is done of a stage, for reporting it; None where nothing is reported."""
    done = 0

    def tick(count: int) -> None:
        nonlocal done
        done += count
        if report is not None:
            report(stage, done, total)

    yield None if report is None else tick


# ======================== JSON ========================


def json_line(state: State) -> str:
    """
    >>> json_line(State("count", 5, 20, 2.5, 6.0, 2.0))
    '{"stage": "count", "unit": "bytes", "done": 5, "total": 20, "rate": 2.5, "left": 6.0, "seconds": 2.0}'
    """
    return json.dumps(
        {
            "stage": state.stage,
            "unit": _named(state.stage)[1],
            "done": state.done,
            "total": state.total,
            "rate": None if state.rate is None else round(state.rate, 1),
            "left": None if state.left is None else round(state.left, 1),
            "seconds": round(state.seconds, 3),
        }
    )


# ======================== bars ========================


class _Bars:
    """A bar a stage, which go when the work is done."""

    def __init__(self, console: Console) -> None:
        bar = BarColumn(min(max(console.width - 72, 4), 40))  # gives way to the words where there is little room
        self.progress = Progress(TextColumn("{task.description}"), bar, _Words(), console=console, transient=True)
        self.tasks: dict[str, Any] = {}

    def show(self, state: State) -> None:
        if state.stage not in self.tasks:
            for task in self.tasks.values():
                self.progress.stop_task(task)
            self.tasks[state.stage] = self.progress.add_task(_named(state.stage)[0], total=state.total)
        self.progress.update(self.tasks[state.stage], completed=state.done, total=state.total, state=state)


class _Words(ProgressColumn):
    def render(self, task: Task) -> Text:
        state = task.fields.get("state")
        return Text("" if state is None else words(state))


def words(state: State) -> str:
    """How far a stage has come, in words.

    >>> words(State("count", 250_000_000, 1_000_000_000, 125e6, 6.0, 2.0))
    '250 of 1,000 MB  25 %  125 MB/s  0:00:06 left'
    >>> words(State("learn", 900, None, 1234.5, None, 61.0))
    '900  1,234/s  0:01:01'
    """
    parts = [amount(state.stage, state.done, state.total)]
    if state.total:
        parts.append(f"{min(100 * state.done // state.total, 100)} %")
    if state.rate is not None:
        parts.append(_rate(state.stage, state.rate))
    parts.append(f"{_clock(state.left)} left" if state.left else _clock(state.seconds))
    return "  ".join(parts)


def amount(stage: str, done: int, total: int | None) -> str:
    if _named(stage)[1] != "bytes":
        return f"{done:,}" + (f" of {total:,}" if total is not None else "")
    decimals = 0 if (total or done) >= 1e9 else 1
    return f"{done / 1e6:,.{decimals}f}" + (f" of {total / 1e6:,.{decimals}f} MB" if total is not None else " MB")


def _rate(stage: str, rate: float) -> str:
    if _named(stage)[1] == "bytes":
        return f"{rate / 1e6:,.{0 if rate >= 1e8 else 1}f} MB/s"
    return f"{rate:,.{0 if rate >= 10 else 1}f}/s"


def _clock(seconds: float) -> str:
    """
    >>> _clock(59.6), _clock(100_000)
    ('0:01:00', '27:46:40')
    """
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
