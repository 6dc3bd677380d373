"""Measure subword against other libraries.

    python benchmarks/run.py                        everything; writes results/DATE.json and what is made from it
    python benchmarks/run.py --quick                some cases, some libraries, one round; only prints
    python benchmarks/run.py --only 'cold/20MB/*'   only these cases; only prints
    python benchmarks/run.py --libraries subword,gigatoken
    python benchmarks/run.py --into FILE            adds to a results file the cases that it lacks
    python benchmarks/run.py --render FILE          writes the report of a results file again

A library takes part in a case only when its ids are those that the others agree on, which is checked in a run before
anything is timed. Every measurement is a process of its own; libraries alternate, and what is reported is the median.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import chart
import report
import texts
import vocabularies
from cases import BESIDE, CASES, Case, own
from libraries import COUNTERS, ENCODERS, LIBRARIES, PACKAGES, TRAINERS

HERE = Path(__file__).parent
TIMEOUT = 900.0  # seconds for one worker
LARGE_TIMEOUT = 3600.0  # the same, where files are large
SLOW = 8.0  # a library that takes so many times as long as the fastest is measured in one round only
MEASURES = ("import", "load", "cold", "loaded", "warm", "slope", "peak_mb")
QUICK_LIBRARIES = ["subword", "gigatoken", "quicktok", "splintr", "tiktoken"]

Job = dict[str, Any]
Result = dict[str, Any]


def main() -> int:
    options = parse_options()
    if options.render:
        write_report(json.loads(options.render.read_text("utf-8")))
        return 0
    bench = Bench(options.libraries, options.rounds, options.data)
    cases = [case for case in CASES + own(options.own) if wanted(case, options)]
    rows = {row["name"]: row for row in json.loads(options.into.read_text("utf-8"))["cases"]} if options.into else {}
    if rows and not options.only:
        cases = [case for case in cases if case.name not in rows]
    if not cases and not rows:
        print(f"no case is called {options.only}; there are:", *(case.name for case in CASES), sep="\n  ")
        return 2
    results: dict[str, Any] = {
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "rounds": options.rounds,
        "partial": partial(options),
        "machine": machine(),
        "versions": versions(),
        "cases": in_order(rows),
    }
    wrong = []
    for number, case in enumerate(cases, 1):
        print(f"[{number}/{len(cases)}] {case.name}", end="  ", file=sys.stderr, flush=True)
        rows[case.name] = row = bench.run(case)
        results["cases"] = in_order(rows)
        print(report.line(row), file=sys.stderr, flush=True)
        wrong += [row] if "fails" in row["libraries"].get("subword", {}) else []
        if options.write:  # so that a run that is broken off leaves what it has
            save(results)
    if options.write:
        write_report(results)
    else:
        print(report.markdown(results))
    for row in wrong:
        print(f"WRONG: {row['name']}: subword {row['libraries']['subword']['fails']}", file=sys.stderr)
    return 1 if wrong else 0


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure subword against other libraries.")
    parser.add_argument("--quick", action="store_true", help="some cases, one round; writes no report")
    parser.add_argument("--only", default="", metavar="NAMES", help="only cases so called: 'cold/20MB/*,call/*'")
    parser.add_argument("--libraries", metavar="NAMES", help=f"which take part, of {','.join(LIBRARIES)}")
    parser.add_argument("--rounds", type=int, help="processes per library and case (3; 1 with --quick)")
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of real text for the cases, by kind")
    parser.add_argument("--own", default=[], nargs="+", metavar="FILE", help="text files to measure on besides")
    parser.add_argument("--write", action="store_true", help="write the report, though not everything was measured")
    parser.add_argument("--into", type=Path, metavar="FILE", help="add to these results what they lack, or --only")
    parser.add_argument("--render", type=Path, metavar="FILE", help="write the report of a results file again")
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 3)
    names = options.libraries.split(",") if options.libraries else QUICK_LIBRARIES if options.quick else [*LIBRARIES]
    if unknown := set(names) - set(LIBRARIES):
        parser.error(f"no library is called {', '.join(sorted(unknown))}; there are {', '.join(LIBRARIES)}")
    options.libraries = names
    options.own = [str(Path(path).resolve()) for path in options.own]
    options.data = texts.data_folder(options.data)
    options.write = options.write or bool(options.into) or not partial(options)
    return options


def partial(options: argparse.Namespace) -> bool:
    only = options.only and not options.into
    return bool(options.quick or only or set(options.libraries) != set(LIBRARIES))


def in_order(rows: dict[str, Result]) -> list[Result]:
    """Rows as the cases are listed, files of the user's own last."""
    return [rows[name] for name in dict.fromkeys([*(case.name for case in CASES), *rows]) if name in rows]


def wanted(case: Case, options: argparse.Namespace) -> bool:
    if case.threads > cores_available():
        return False
    if options.only:
        return any(fnmatchcase(case.name, f"{pattern}*") for pattern in options.only.split(","))
    return case.quick or not options.quick or case.name.startswith("own/")


# ======================== measuring ========================


class Bench:
    """Runs cases. It remembers what each library gave for a text, so that cases on the same text share the check."""

    def __init__(self, libraries: list[str], rounds: int, data: Path | None) -> None:
        self.libraries = libraries
        self.rounds = rounds
        self.data = data
        self.checked: dict[tuple[Any, ...], dict[str, Result]] = {}

    def run(self, case: Case) -> Result:
        """The case with its results: for each library its measures, or why it has none."""
        vocabulary = vocabularies.prepare(case.vocabulary, self.data)
        large = case.task == "large"
        text = (texts.prepare_files if large else texts.prepare)(case.text, case.megabytes, self.data)
        result: Result = {
            **{field: getattr(case, field) for field in ("name", "text", "vocabulary", "task", "call", "threads")},
            **{field: getattr(text, field) for field in ("bytes", "documents", "found", "source")},
            "libraries": {},
        }
        if case.text.startswith(os.sep):  # a file of the user's: its path is nobody else's business
            result["text"] = Path(case.text).name
        if isinstance(vocabulary, str):
            return result | {"left_out": vocabulary}
        job = self.job(case, vocabulary, text)
        key = (case.vocabulary, case.text, case.megabytes, case.task, case.call)
        if key not in self.checked:
            who = {"train": TRAINERS, "count": COUNTERS, "large": COUNTERS}.get(case.task, ENCODERS)
            names = [name for name in self.libraries if name in who]
            self.checked[key] = {name: {} if large else work(job | {"library": name, "passes": 0}) for name in names}
        rehearsed = self.checked[key]
        authority = {"ranks": "tiktoken", "json": "tokenizers", "model": "sentencepiece"}[vocabulary["original"]]
        outcome, agreed = agree(rehearsed, case.task, authority)
        jobs = {name: job | {"library": name} for name in outcome}
        if (beside := case.beside) and beside.split(",")[0] in outcome:
            outcome[beside] = dict(outcome[beside.split(",")[0]])
            jobs[beside] = jobs[beside.split(",")[0]] | BESIDE[beside]
        result["libraries"] = outcome

        seconds = {name: time_of(rehearsed[name]) for name, row in outcome.items() if not row and name in rehearsed}
        slow = {name for name in seconds if seconds[name] > SLOW * min(seconds.values()) and name != "subword"}
        taking_part = [name for name, row in outcome.items() if not row]
        runs: dict[str, list[Result]] = {name: [] for name in taking_part}
        for number in range(1 if large else self.rounds):
            for name in taking_part if number % 2 == 0 else reversed(taking_part):
                if outcome[name] or (number and name in slow):
                    continue
                run = work(jobs[name])
                if "fails" in run:
                    outcome[name] |= {"fails": run["fails"]}
                elif (
                    case.task not in ("train", "large")
                    and run["digest"] != agreed
                    and not (name == case.beside and "task" in BESIDE[name])
                ):
                    outcome[name] |= {"fails": "other ids from one run to the next"}
                else:
                    runs[name].append(completed(run))
        if case.task == "train":
            self.compare_trained(outcome, runs, job)
        for name, row in outcome.items():
            if not row.get("fails") and runs.get(name):
                fields = [field for field in MEASURES if field in runs[name][0]]
                row |= {field: statistics.median(run[field] for run in runs[name]) for field in fields}
                row["reads_original"] = LIBRARIES[name.split(",")[0]].reads_original
                row["runs"] = [{k: v for k, v in run.items() if k != "digest"} for run in runs[name]]
        return result

    def job(self, case: Case, vocabulary: dict[str, Any], text: texts.Prepared) -> Job:
        job: Job = {
            **{field: getattr(case, field) for field in ("task", "call", "threads", "passes", "keeps_cache", "memory")},
            "vocabulary": vocabulary,
            "text": text.path,
        }
        if case.task == "files":
            job["files"] = texts.as_files(text)
        if case.task in ("count", "large"):
            job |= {"pattern": vocabulary["pattern"], "vocab_size": vocabularies.TRAINED_SIZE}
        if case.task == "train":
            fields = {field: vocabulary[field] for field in ("family", "pattern", "regex", "plain")}
            job |= fields | {"threads": cores_available(), "vocab_size": vocabularies.TRAINED_SIZE}
        return job

    def compare_trained(self, outcome: dict[str, Result], runs: dict[str, list[Result]], job: Job) -> None:
        """How many tokens, from the first on, each trainer learned like ours, and how many in any order.

        What `smallest-ids` does with ties depends on the ids of the bytes, so ours is compared in both byte orders.
        """
        learned = {name: [run.pop("tokens") for run in done] for name, done in runs.items()}
        if not learned.get("subword"):
            return
        ours = {"value": learned["subword"][0]}
        if job["family"] == "bpe":
            ours["gpt2"] = work(job | {"library": "subword", "byte_order": "gpt2"}).get("tokens", [])
        for name, row in outcome.items():
            if not learned.get(name):
                continue
            theirs = learned[name][0]
            alike = {order: same_from_start(tokens, theirs) for order, tokens in ours.items()}
            order = max(alike, key=lambda order: alike[order])
            row |= {"learned": len(theirs), "byte_order": order, "same_from_start": alike[order]}
            row["same_in_any_order"] = len({*ours[order]} & {*theirs})
            if any(tokens != theirs for tokens in learned[name]):
                row["fails"] = "another result in each run"


def agree(rehearsed: dict[str, Result], task: str, authority: str) -> tuple[dict[str, Result], str]:
    """For each library an empty row, or one that says why it does not take part; and the digest that is right.

    The `authority` is right where it takes part; elsewhere the digest that most have; of two, not ours.
    """
    digests = {name: run["digest"] for name, run in rehearsed.items() if "digest" in run}
    counted = Counter(digest for name, digest in digests.items() if name != "subword") + Counter(digests.values())
    agreed = digests.get(authority) or (counted.most_common(1)[0][0] if counted else "")
    outcome: dict[str, Result] = {}
    for name, run in rehearsed.items():
        outcome[name] = {field: run[field] for field in ("cannot", "fails") if field in run}
        if task != "train" and name in digests and digests[name] != agreed:
            outcome[name] = {"fails": "other ids"}
    return outcome, agreed


def completed(run: Result) -> Result:
    """A run with the measures that follow from others."""
    if "load" in run and "cold" in run:
        run["loaded"] = run["load"] + run["cold"]
    return run


def time_of(run: Result) -> float:
    return float(run.get("cold", 0.0) + run.get("load", 0.0))


def same_from_start(left: list[str], right: list[str]) -> int:
    same = [a == b for a, b in zip(left, right, strict=False)]
    return same.index(False) if False in same else len(same)


def work(job: Job) -> Result:
    """One worker. What goes wrong in it is `fails`, in a few words.

    Caches that libraries keep on disk are in a folder that is new for each worker, but where a case keeps them: then it
    is filled by one before.
    """
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        if job["keeps_cache"]:
            run_worker(job, folder)
        return run_worker(job, folder)


def run_worker(job: Job, cache: str) -> Result:
    environment = os.environ | {
        "PYTHONHASHSEED": "0",
        "TOKENIZERS_PARALLELISM": "true" if job["threads"] > 1 else "false",
        "RAYON_NUM_THREADS": str(job["threads"]),
        "TIKTOKEN_CACHE_DIR": "",
        "XDG_CACHE_HOME": cache,
        # Installing a package compiles its modules; those of a source tree are compiled here, before anything is timed.
        "PYTHONPYCACHEPREFIX": str(texts.WORK / "bytecode"),
        "PYTHONDONTWRITEBYTECODE": "",
    }
    command = [sys.executable, str(HERE / "worker.py"), json.dumps(job)]
    timeout = LARGE_TIMEOUT if job["task"] == "large" else TIMEOUT
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment, check=False)
    except subprocess.TimeoutExpired:
        return {"fails": f"takes over {timeout:.0f} s"}
    if done.returncode:
        return {"fails": reason(done.stderr, done.returncode)}
    result: Result = json.loads(done.stdout.splitlines()[-1])
    return result


def reason(stderr: str, code: int) -> str:
    """Why a worker ended, from what it said last: a panic, or an exception with the start of its message."""
    if "panicked at" in stderr or "PanicException" in stderr:
        return "panics"
    if code < 0:
        return f"is ended by signal {-code}"
    said = stderr.strip().splitlines() or ["says nothing"]
    return said[-1].replace("|", "/").split(". ")[0][:100]


# ======================== facts ========================


def cores_available() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def machine() -> dict[str, Any]:
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": model,
        "cores": cores_available(),
        "memory_gb": round(memory / 2**30),
        "system": f"{platform.system()} {platform.machine()}",
    }


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in ("numpy", *LIBRARIES):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(PACKAGES.get(name, name))
    return found


def save(results: dict[str, Any]) -> Path:
    path = HERE / "results" / f"{results['date']}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return path


def write_report(results: dict[str, Any]) -> None:
    path = save(results)
    (HERE / "REPORT.md").write_text(report.markdown(results), "utf-8")
    (HERE / "chart.svg").write_text(chart.draw(results), "utf-8")
    readme = HERE.parent / "README.md"
    readme.write_text(report.between_markers(readme.read_text("utf-8"), report.summary(results)), "utf-8")
    print(f"{path.relative_to(HERE.parent)}, REPORT.md, chart.svg and the table in README.md are written")


if __name__ == "__main__":
    sys.exit(main())
