"""The rules by which the benchmarks decide: whose ids are right, and which bars are reached. Nothing is timed here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks"


def ask(code: str, *arguments: Any) -> Any:
    """What a line of Python gives in the folder of the benchmarks, whose modules are called like some of the tests'."""
    given = [json.dumps(argument) for argument in arguments]
    program = f"import json, sys\n{code}\nprint(json.dumps(answer(*map(json.loads, sys.argv[1:]))))"
    done = subprocess.run([sys.executable, "-c", program, *given], cwd=FOLDER, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("digests", "left_out"),
    [
        ({"subword": "a", "tiktoken": "a", "tokie": "b"}, ["tokie"]),
        ({"subword": "b", "tiktoken": "a", "tokie": "b"}, ["subword", "tokie"]),  # the authority, not the majority
        ({"subword": "b", "splintr": "a", "tokie": "a"}, ["subword"]),  # without one, the majority
        ({"subword": "a", "splintr": "b"}, ["subword"]),  # of two, not ours
        ({"subword": "a", "tiktoken": None, "tokie": "a", "splintr": "b"}, ["splintr", "tiktoken"]),
        ({"subword": "a"}, []),
    ],
)
def test_ids_that_are_right(digests: dict[str, str | None], left_out: list[str]) -> None:
    runs = {name: {"digest": of} if of else {"fails": "panics"} for name, of in digests.items()}
    outcome, _ = ask("from run import agree as answer", runs, "arrays", "tiktoken")
    assert sorted(name for name, row in outcome.items() if row) == left_out
    assert all(
        row == {"fails": "panics" if digests[name] is None else "other ids"} for name, row in outcome.items() if row
    )


@pytest.mark.parametrize(
    ("libraries", "verdict"),
    [
        ({"subword": 1.0, "tiktoken": 7.0}, "aim"),
        ({"subword": 1.0, "tiktoken": 7.0, "gigatoken": 3.0}, "bar"),
        ({"subword": 1.0, "tiktoken": 7.0, "gigatoken": 2.9}, "**missed**"),
        ({"subword": 1.0, "tiktoken": 7.0, "gigatoken, imported": 0.1}, "aim"),  # no library of its own
        ({"subword": 1.0}, "nothing to compare with"),
        ({"tiktoken": 1.0}, "not measured"),
    ],
)
def test_bars(libraries: dict[str, float], verdict: str) -> None:
    """The bar of `cold/20MB/*`: three times the best, better six times."""
    rows = {name: {"cold": seconds, "reads_original": True} for name, seconds in libraries.items()}
    case = {"name": "cold/20MB/x", "libraries": rows, "bytes": 1, "documents": 1, "task": "arrays", "call": ""}
    code = """
from cases import BARS
from report import judged
def answer(case):
    [bar] = [bar for bar in BARS if bar.matches(case["name"])]
    return judged(bar, case)[-1]
"""
    assert ask(code, case) == verdict


def test_every_bar_and_every_row_of_the_summary_names_a_case() -> None:
    code = """
from cases import BARS, BESIDE, CASES
from libraries import LIBRARIES
from report import SUMMARY
def answer():
    names = [case.name for case in CASES]
    lost = [bar.what for bar in BARS if not any(map(bar.matches, names))]
    against = {"best", "original", "", *LIBRARIES, *BESIDE}
    lost += [bar.against for bar in BARS if bar.against not in against]
    lost += [name for name, _, _ in SUMMARY if name not in names]
    return lost + [n for n in names if names.count(n) > 1]
"""
    assert ask(code) == []
