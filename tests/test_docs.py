"""The documents say what is so: their Python runs, their commands exist, their links lead somewhere."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = [path for folder in (ROOT, ROOT / "docs", ROOT / "benchmarks") for path in sorted(folder.glob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(path: Path, language: str) -> list[str]:
    return [code for name, code in FENCE.findall(path.read_text("utf-8")) if name == language]


WITH_PYTHON = [path for path in DOCUMENTS if blocks(path, "python")]


@pytest.mark.parametrize("path", WITH_PYTHON, ids=name_of)
def test_python_runs(path: Path, tmp_path: Path) -> None:
    """All blocks of a document, one after another, in a process and a folder of their own."""
    code = "\n".join(blocks(path, "python"))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-"], input=code, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_cli_page_is_what_the_commands_say() -> None:
    spec = importlib.util.spec_from_file_location("generate_cli", ROOT / "docs" / "generate_cli.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    # spaces and line breaks may differ between versions of the library that prints the help
    assert module.PAGE.read_text("utf-8").split() == module.page().split(), "run python docs/generate_cli.py"


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_commands_exist(path: Path) -> None:
    """Every `subword COMMAND --option` in a shell block names a command and options that are there."""
    page = (ROOT / "docs" / "cli.md").read_text("utf-8")
    known = dict(re.findall(r"^## subword ([\w-]+)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    for code in blocks(path, "sh"):
        for line in code.splitlines():
            for command, rest in re.findall(r"^subword ([\w-]+)([^|#]*)", line):
                assert command in known, f"{name_of(path)}: {line}"
                for option in re.findall(r"(?<=\s)(--?[a-z][a-z-]*)", rest):
                    assert option in known[command], f"{name_of(path)}: {line}: {option}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_links_lead_somewhere(path: Path) -> None:
    prose = FENCE.sub("", path.read_text("utf-8"))
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose):
        if "://" not in target:
            assert (path.parent / target).exists(), f"{name_of(path)}: {target}"


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for path in DOCUMENTS:
        for target in re.findall(r"`make ([a-z-]+)", path.read_text("utf-8")):
            assert target in targets, f"{name_of(path)}: make {target}"


def test_benchmark_report_is_that_of_the_newest_results() -> None:
    """REPORT.md, the chart and the table in README.md are what is made of the newest results file."""
    results = sorted((ROOT / "benchmarks" / "results").glob("*.json"))
    if not results:
        pytest.skip("no benchmark results yet")
    code = """
import json, pathlib, sys
import chart, report
results = json.loads(pathlib.Path(sys.argv[1]).read_text("utf-8"))
print(json.dumps([report.summary(results), report.markdown(results), chart.draw(results)]))
"""
    command = [sys.executable, "-c", code, str(results[-1])]
    done = subprocess.run(command, cwd=ROOT / "benchmarks", capture_output=True, text=True, check=True)
    table, page, drawing = json.loads(done.stdout)
    assert table in (ROOT / "README.md").read_text("utf-8"), "run python benchmarks/run.py --render"
    assert page == (ROOT / "benchmarks" / "REPORT.md").read_text("utf-8")
    assert drawing == (ROOT / "benchmarks" / "chart.svg").read_text("utf-8")
