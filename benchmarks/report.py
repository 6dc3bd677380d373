"""A results file as Markdown: the whole report, and the few rows that stand in README.md."""

from __future__ import annotations

from typing import Any

BEGIN, END = "<!-- benchmarks: begin -->", "<!-- benchmarks: end -->"

Case = dict[str, Any]

CAUTION = (
    "Speeds of a machine drift from hour to hour: **only the ratios within a row count**. A ratio is how many times as "
    "fast subword is as the library at the head of the column, measured in the same run; under 1, subword is slower."
)


def markdown(results: dict[str, Any]) -> str:
    """The whole report."""
    cases: list[Case] = results["cases"]
    parts = [
        f"# Benchmarks of {results['date']}",
        facts(results),
        CAUTION,
        "How it is measured: [README.md](README.md). A dash: the library does not do this. "
        "*Cold* is the first pass in a fresh process, *warm* the best of up to three more over the same text.",
    ]
    for ranks in dict.fromkeys(case["ranks"] for case in cases if "ranks" in case):
        here = [case for case in cases if case.get("ranks") == ranks]
        groups = (
            ("Real text", "encode", speed),
            ("Unbroken runs, one thread", "hostile", speed),
            ("One call a line", "call", per_call),
        )
        for heading, kind, measure in groups:
            rows = [case for case in here if case["kind"] == kind]
            if rows:
                parts += [f"## {heading}: {ranks}", encode_table(rows, measure)]
        parts += [f"## Load time and peak memory: {ranks}", memory_table(here)]
    if trained := [case for case in cases if case["kind"] == "train"]:
        parts += ["## Training", train_table(trained), likeness(trained)]
    return "\n\n".join(part for part in parts if part) + "\n"


def summary(results: dict[str, Any]) -> str:
    """The rows for README.md."""
    peers = peers_of(results["cases"])
    rows = [["", "subword", *(f"× {name}" for name in peers)]]
    for case in results["cases"]:
        if case["kind"] == "train":
            rows.append([f"training to {case['vocab_size']:,}, `{case['pattern']}` split", *seconds(case, peers)])
        if case.get("ranks") != "o200k":
            continue
        what = f"{case['text']}, {plural(case['threads'], 'thread')}"
        if case["kind"] == "encode" and case["text"] in ("English", "Python", "translations"):
            rows += [[f"{what}, {pass_}", *compared(case, peers, pass_, speed)] for pass_ in ("cold", "warm")]
        elif case["kind"] == "hostile":
            rows.append(
                [f"unbroken run: {case['text'].removeprefix('unbroken ')}, cold", *compared(case, peers, "cold", speed)]
            )
        elif case["kind"] == "call":
            rows.append(["one call on a short line, warm", *compared(case, peers, "warm", per_call)])
    return "\n\n".join((facts(results), CAUTION, table(rows)))


def between_markers(text: str, content: str) -> str:
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{content}\n{END}{after}"


# ---- parts ----


def facts(results: dict[str, Any]) -> str:
    machine, versions = results["machine"], results["versions"]
    cores = plural(machine["cores"], "core")
    peers = ", ".join(f"{name} {version}" for name, version in versions.items() if name not in ("python", "subword"))
    return (
        f"{results['date']}: subword {versions['subword']} on {machine['processor']}, {cores}, "
        f"{machine['memory_gb']} GB, {machine['system']}, Python {versions['python']}; {peers}. "
        f"Medians over {plural(results['rounds'], 'run')}."
    )


def encode_table(cases: list[Case], measure: Any) -> str:
    peers = peers_of(cases)
    head = ["text", "size"]
    for pass_ in ("cold", "warm"):
        head += [f"{pass_}: subword", *(f"× {name}" for name in peers)]
    rows = [head]
    for case in cases:
        name = case["text"] if case["threads"] == 1 else f"{case['text']}, {case['threads']} threads"
        row = [name, megabytes(case)]
        for pass_ in ("cold", "warm"):
            row += compared(case, peers, pass_, measure)
        rows.append(row)
    return table(rows)


def memory_table(cases: list[Case]) -> str:
    cases = [case for case in cases if case["text"] in ("English", "Python", "short lines")]
    names = ["subword", *peers_of(cases)]
    rows = [["text", *(f"{name}: load, s" for name in names), *(f"{name}: peak, MB" for name in names)]]
    for case in cases:
        libraries = [case["libraries"].get(name, {}) for name in names]
        threads = "" if case["threads"] == 1 else f", {case['threads']} threads"
        rows.append(
            [
                case["text"] + threads,
                *(f"{row['load']:.2f}" if "load" in row else "–" for row in libraries),
                *(f"{row['peak_mb']:.0f}" if "peak_mb" in row else "–" for row in libraries),
            ]
        )
    return "The peak is that of the whole process, Python and the text included.\n\n" + table(rows)


def train_table(cases: list[Case]) -> str:
    peers = peers_of(cases)
    rows = [["split", "size", "subword", *(f"× {name}" for name in peers), "peak, MB: subword", *peers]]
    for case in cases:
        libraries = [case["libraries"].get(name, {}) for name in ("subword", *peers)]
        memory = [f"{row['peak_mb']:.0f}" if "peak_mb" in row else "–" for row in libraries]
        rows.append(
            [f"`{case['pattern']}`, to {case['vocab_size']:,}", megabytes(case), *seconds(case, peers), *memory]
        )
    return table(rows)


def likeness(cases: list[Case]) -> str:
    """What the trainers have learned, beside ours."""
    lines = ["What they learn, beside ours (`smallest-ids`, in the byte order that is more alike):", ""]
    for case in cases:
        for name, row in case["libraries"].items():
            if name == "subword" or "same_from_start" not in row:
                continue
            count, start, any_order = row["learned"], row["same_from_start"], row["same_in_any_order"]
            same = f"all {count:,} tokens are the same, in the same order"
            if start < count:
                same = f"the first {start:,} of {count:,} tokens are the same, {any_order:,} in any order"
            lines.append(f'* `{case["pattern"]}`, {name}, `byte_order="{row["byte_order"]}"`: {same}.')
    return "\n".join(lines)


def compared(case: Case, peers: list[str], pass_: str, measure: Any) -> list[str]:
    """Ours with its unit, then the ratio to each peer."""
    ours = case["libraries"].get("subword", {})
    cells = [measure(case, ours[pass_]) if pass_ in ours else ours.get("fails", "–")]
    for name in peers:
        theirs = case["libraries"].get(name, {})
        cells.append(ratio(theirs[pass_], ours[pass_]) if pass_ in ours and pass_ in theirs else reason(theirs))
    return cells


def seconds(case: Case, peers: list[str]) -> list[str]:
    ours = case["libraries"].get("subword", {})
    cells = [f"{ours['seconds']:.1f} s" if "seconds" in ours else ours.get("fails", "–")]
    for name in peers:
        theirs = case["libraries"].get(name, {})
        known = "seconds" in ours and "seconds" in theirs
        cells.append(ratio(theirs["seconds"], ours["seconds"]) if known else reason(theirs))
    return cells


def speed(case: Case, taken: float) -> str:
    return f"{case['bytes'] / taken / 1e6:.1f} MB/s"


def per_call(case: Case, taken: float) -> str:
    return f"{taken / case['documents'] * 1e6:.2f} µs"


def ratio(theirs: float, ours: float) -> str:
    times = theirs / ours
    decimals = 0 if times >= 20 else 1 if times >= 2 else 2 if times >= 0.1 else 3
    return f"{times:.{decimals}f}"


def reason(row: dict[str, Any]) -> str:
    return str(row.get("fails", "–"))


def megabytes(case: Case) -> str:
    return f"{case['bytes'] / 1e6:.1f} MB"


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def peers_of(cases: list[Case]) -> list[str]:
    return [name for name in dict.fromkeys(name for case in cases for name in case["libraries"]) if name != "subword"]


def table(rows: list[list[str]]) -> str:
    head, *body = rows
    align = ["---", *("---:" for _ in head[1:])]
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, align, *body))
