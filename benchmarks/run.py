"""Measure subword against other libraries: speed and memory, encoding and training.

    python benchmarks/run.py                 everything; writes results/DATE.json, REPORT.md and the table in README.md
    python benchmarks/run.py --quick         small texts, one round; only prints
    python benchmarks/run.py --data DIR      also every *.txt in DIR
    python benchmarks/run.py --render FILE   writes REPORT.md and the table again from a results file

A library takes part in a case only when its ids are equal to the others', which is checked before anything is timed.
Every measurement is a process of its own; libraries alternate, and what is reported is the median over the rounds.
"""

from __future__ import annotations

import argparse
import datetime
import gzip
import importlib.metadata
import importlib.resources
import json
import os
import platform
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import report
import texts
from libraries import write_tokenizer_json

from subword.patterns import PATTERNS

HERE = Path(__file__).parent
WORK = HERE.parent / "build" / "benchmarks"
RANKS = {"cl100k": "cl100k_base", "o200k": "o200k_base"}
ENCODERS = ("subword", "tiktoken", "tokenizers", "gigatoken")
TRAINERS = {"cl100k": ("subword", "tokenizers", "rustbpe"), "gpt2": ("subword", "tokenizers", "rustbpe", "gigatoken")}
PACKAGES = ("numpy", "tiktoken", "tokenizers", "gigatoken", "rustbpe")
TIMEOUT = 900.0  # seconds for one worker

Job = dict[str, Any]
Case = dict[str, Any]


def main() -> int:
    options = parse_options()
    if options.render:
        write_report(json.loads(options.render.read_text("utf-8")))
        return 0
    WORK.mkdir(parents=True, exist_ok=True)
    cases = [case for case in prepare(options) if options.only.lower() in title(case).lower()]
    wrong = []
    for case in cases:
        print(f"{title(case)} ...", file=sys.stderr, flush=True)
        run_case(case, options.rounds, options.libraries)
        if case["libraries"].get("subword", {}).get("fails"):
            wrong.append(f"{title(case)}: {case['libraries']['subword']['fails']}")
    results = {
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "rounds": options.rounds,
        "machine": machine(),
        "versions": versions(),
        "cases": cases,
    }
    if options.quick or options.only or set(options.libraries) != {*ENCODERS, "rustbpe"}:
        print(report.markdown(results))
    else:
        path = HERE / "results" / f"{results['date']}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", "utf-8")
        write_report(results)
        print(path.relative_to(HERE.parent), "REPORT.md and README.md are written", sep=", ")
    for line in wrong:
        print(f"WRONG: {line}", file=sys.stderr)
    return 1 if wrong else 0


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure subword against other libraries.")
    parser.add_argument("--quick", action="store_true", help="small texts and one round; writes no report")
    parser.add_argument("--data", type=Path, metavar="DIR", help="also measure on every *.txt of a folder")
    parser.add_argument("--rounds", type=int, help="processes per library and case (3; 1 with --quick)")
    parser.add_argument(
        "--only", default="", metavar="WORDS", help="only cases with this in their title; writes no report"
    )
    parser.add_argument("--libraries", default="subword,tiktoken,tokenizers,gigatoken,rustbpe", help="which take part")
    parser.add_argument("--render", type=Path, metavar="FILE", help="write the report of a results file again")
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 3)
    options.libraries = options.libraries.split(",")
    return options


# ---- cases ----


def prepare(options: argparse.Namespace) -> list[Case]:
    """Write the texts, rank files and HF tokenizers to the work folder; return the cases, without results."""
    limit = texts.MB if options.quick else 8 * texts.MB
    cores = cores_available()
    corpora = texts.corpora(limit, options.data)
    lines = texts.short_lines(2_000 if options.quick else 20_000)
    hostile = texts.hostile(texts.MB // 10 if options.quick else texts.MB)
    cases: list[Case] = []

    for name in RANKS:
        base = encode_job(name)
        for text, documents in corpora.items():
            job = base | store(text, documents) | {"task": "many", "threads": 1}
            cases.append({"kind": "encode", "ranks": name, "text": text, "threads": 1, "job": job})
            if text in ("English", "Python") and cores > 1:
                job = job | {"threads": cores}
                cases.append({"kind": "encode", "ranks": name, "text": text, "threads": cores, "job": job})
        job = base | store("short lines", lines) | {"task": "one", "threads": 1}
        cases.append({"kind": "call", "ranks": name, "text": "short lines", "threads": 1, "job": job})
        for text, documents in hostile.items():
            job = base | store(text, documents) | {"task": "many", "threads": 1}
            cases.append({"kind": "hostile", "ranks": name, "text": text, "threads": 1, "job": job})

    everything = store("all texts", [document for documents in corpora.values() for document in documents])
    vocab_size = 4_000 if options.quick else 32_000
    for name in TRAINERS:
        job = split_job(name) | everything | {"task": "train", "vocab_size": vocab_size, "threads": cores}
        cases.append({"kind": "train", "pattern": name, "text": "all texts", "vocab_size": vocab_size, "job": job})
    for case in cases:
        case |= {"bytes": case["job"].pop("bytes"), "documents": case["job"].pop("documents")}
    return cases


def title(case: Case) -> str:
    if case["kind"] == "train":
        return f"train {case['vocab_size']} {case['pattern']}"
    return f"{case['kind']} {case['ranks']} {case['text']}, threads {case['threads']}"


def store(name: str, documents: list[str]) -> Job:
    path = WORK / f"{name.replace(' ', '_')}.json"
    path.write_text(json.dumps(documents), "utf-8")
    return {"texts": str(path), "bytes": texts.size(documents), "documents": len(documents)}


def split_job(pattern: str) -> Job:
    row = PATTERNS[pattern]
    return {"pattern": pattern, "regex": row.regex, "plain": row.plain}


def encode_job(name: str) -> Job:
    """Where the ranks are, in the two forms that libraries read. They come with the package bpe-openai."""
    ranks = WORK / f"{RANKS[name]}.tiktoken"
    if not ranks.exists():
        packed = importlib.resources.files("bpe_openai").joinpath("data", f"{RANKS[name]}.tiktoken.gz").read_bytes()
        ranks.write_bytes(gzip.decompress(packed))
    merges = WORK / f"{RANKS[name]}.json"
    if not merges.exists():
        print(f"making a tokenizer.json of {RANKS[name]} ...", file=sys.stderr, flush=True)
        write_tokenizer_json(str(ranks), PATTERNS[name].steps[0], merges)
    return split_job(name) | {"ranks": str(ranks), "tokenizer_json": str(merges)}


# ---- measuring ----


def run_case(case: Case, rounds: int, wanted: list[str]) -> None:
    """Fill `case["libraries"]`; the job goes, since it holds paths."""
    job = case.pop("job")
    names = TRAINERS[case["pattern"]] if case["kind"] == "train" else ENCODERS
    outcome: dict[str, Any] = {name: {} for name in names if name in wanted}
    if case["kind"] != "train":
        check(outcome, job)
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in outcome}
    for _ in range(rounds):
        for name, row in outcome.items():
            if "fails" in row:
                continue
            run = work(job | {"library": name})
            if "fails" in run:
                row["fails"] = run["fails"]
            else:
                runs[name].append(run)
    if case["kind"] == "train" and runs.get("subword"):
        compare_tokens(outcome, runs, work(job | {"library": "subword", "byte_order": "gpt2"}).get("tokens", []))
    for name, row in outcome.items():
        if "fails" not in row:
            row |= {field: statistics.median(run[field] for run in runs[name]) for field in runs[name][0]}
            row["runs"] = runs[name]
    case["libraries"] = outcome


def check(outcome: dict[str, Any], job: Job) -> None:
    """Set aside the libraries whose ids are not those that the others agree on (tiktoken's, where it has any)."""
    found = {name: work(job | {"library": name, "task": "check"}) for name in outcome}
    agreed = Counter(json.dumps(run) for run in found.values() if "fails" not in run).most_common(1)
    expected = agreed[0][0] if agreed else ""
    if "tiktoken" in found and "fails" not in found["tiktoken"]:
        expected = json.dumps(found["tiktoken"])
    for name, run in found.items():
        if "fails" in run:
            outcome[name]["fails"] = run["fails"]
        elif json.dumps(run) != expected:
            outcome[name]["fails"] = "other ids"


def compare_tokens(outcome: dict[str, Any], runs: dict[str, list[dict[str, Any]]], gpt2_order: list[str]) -> None:
    """How many tokens, from the first on, each trainer learned like ours, and how many in any order.

    What `smallest-ids` does with ties depends on the ids of the bytes, so ours is compared in both byte orders.
    """
    learned = {name: [run.pop("tokens") for run in done] for name, done in runs.items()}
    ours = {"value": learned["subword"][0], "gpt2": gpt2_order}
    for name, row in outcome.items():
        if not learned[name]:
            continue
        theirs = learned[name][0]
        alike = {order: same_from_start(tokens, theirs) for order, tokens in ours.items()}
        order = max(alike, key=lambda order: alike[order])
        row["learned"] = len(theirs)
        row["byte_order"] = order
        row["same_from_start"] = alike[order]
        row["same_in_any_order"] = len({*ours[order]} & {*theirs})
        if any(tokens != theirs for tokens in learned[name]):
            row["fails"] = "another result in each run"


def same_from_start(left: list[str], right: list[str]) -> int:
    same = [a == b for a, b in zip(left, right, strict=False)]
    return same.index(False) if False in same else len(same)


def work(job: Job) -> dict[str, Any]:
    """One worker. What goes wrong in it is `fails`, in a few words."""
    environment = os.environ | {
        "PYTHONHASHSEED": "0",
        "TOKENIZERS_PARALLELISM": "true" if job["threads"] > 1 else "false",
        "RAYON_NUM_THREADS": str(job["threads"]),
    }
    try:
        done = subprocess.run(
            [sys.executable, str(HERE / "worker.py"), json.dumps(job)],
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"fails": "too slow"}
    if done.returncode:
        last = (done.stderr.strip() or "no message").splitlines()[-1]
        return {"fails": "panics" if "PanicException" in last else last.split(":")[0][:60]}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


# ---- facts ----


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
    return {
        "python": platform.python_version(),
        "subword": importlib.metadata.version("subword"),
        **{name: importlib.metadata.version(name) for name in PACKAGES},
    }


def write_report(results: dict[str, Any]) -> None:
    (HERE / "REPORT.md").write_text(report.markdown(results), "utf-8")
    readme = HERE.parent / "README.md"
    readme.write_text(report.between_markers(readme.read_text("utf-8"), report.summary(results)), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
