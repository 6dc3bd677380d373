"""A results file as Markdown: the whole report, the few rows that stand in README.md, and a line for each case."""

from __future__ import annotations

from typing import Any, NamedTuple

from cases import BARS, Bar
from texts import KINDS

BEGIN, END = "<!-- benchmarks: begin -->", "<!-- benchmarks: end -->"

Case = dict[str, Any]
Results = dict[str, Any]

CAUTION = (
    "Speeds of a machine drift from hour to hour: **only the ratios within a row count**. A ratio is how many times as "
    "fast subword is as the library at the head of the column, measured in the same run; under 1, subword is slower."
)


IN_A_WORD = ("panics", "other ids")  # failures that say all in a cell; others are explained below the table


class Table(NamedTuple):
    """The cases of a group, by one measure."""

    group: str  # how the names of its cases begin
    measure: str
    heading: str


TABLES = [
    Table("cold/1MB/", "loaded", "1 MB, once, loading counted"),
    Table("cold/1MB/", "cold", "1 MB, once, loading not counted"),
    Table("cold/20MB/", "cold", "20 MB, once, loading not counted"),
    Table("cold/20MB/", "loaded", "20 MB, once, loading counted"),
    Table("cold/200MB/", "cold", "200 MB, once, loading not counted"),
    Table("cold/200MB/", "loaded", "200 MB, once, loading counted"),
    Table("warm/", "warm", "20 MB, again and again"),
    Table("own/", "cold", "Texts of your own, once, loading not counted"),
    Table("own/", "warm", "Texts of your own, again and again"),
    Table("hostile/", "cold", "1 MB without a break, once"),
    Table("hostile/", "warm", "1 MB without a break, again and again"),
    Table("call/", "cold", "One call a short line, each line once"),
    Table("call/", "warm", "One call a short line, again and again"),
    Table("lists/", "cold", "Python lists: once"),
    Table("lists/", "warm", "Python lists: again and again"),
    Table("counts/", "cold", "Counts only: once"),
    Table("counts/", "warm", "Counts only: again and again"),
    Table("2-threads/", "cold", "Two threads: once"),
    Table("2-threads/", "warm", "Two threads: again and again"),
    Table("files/", "cold", "Files in, ids out, two threads: once"),
    Table("files/", "warm", "Files in, ids out, two threads: again and again"),
    Table("decode/", "cold", "Decoding: once"),
    Table("decode/", "warm", "Decoding: again and again"),
    Table("vocabulary/", "cold", "Other vocabularies, 20 MB, once"),
    Table("vocabulary/", "warm", "Other vocabularies, 20 MB, again and again"),
    Table("family/", "cold", "Other families, 10 MB, once"),
    Table("family/", "warm", "Other families, 10 MB, again and again"),
    Table("load", "load", "Loading a vocabulary"),
    Table("train/", "cold", "Training"),
    Table("count/", "cold", "Counting pieces, one thread"),
    Table("large/", "cold", "Large files, two threads"),
    Table("large/", "peak_mb", "Large files: the most memory that was held"),
]

SUMMARY = [
    ("cold/1MB/english", "loaded", "English, 1 MB, once, with loading"),
    *((f"cold/20MB/{kind}", "cold", f"{kind.capitalize()}, 20 MB, once") for kind in KINDS),
    ("cold/200MB/mixed", "cold", "200 MB, once"),
    *((f"warm/{kind}", "warm", f"{kind.capitalize()}, 20 MB, again") for kind in ("english", "code", "chinese")),
    *(
        (f"hostile/{name}", "cold", f"1 MB unbroken: {name}")
        for name in ("letter", "spaces", "random", "chinese", "marks")
    ),
    ("call/encode_ordinary", "warm", "One call, short line, `encode_ordinary`"),
    ("call/encode", "warm", "One call, short line, `encode`"),
    ("lists/english", "warm", "English, to Python lists"),
    ("counts/english", "warm", "English, count only"),
    ("2-threads/english", "cold", "English, two threads, once"),
    ("files/english", "cold", "English, files in, ids out, two threads"),
    ("decode/batch", "warm", "English, decoding"),
    ("load/o200k", "load", "Loading o200k"),
    ("train/cl100k", "cold", "Training to 32,000, `cl100k` split"),
    ("train/gpt2", "cold", "Training to 32,000, `gpt2` split"),
]


def markdown(results: Results) -> str:
    """The whole report."""
    parts = [
        f"# Benchmarks of {results['date']}",
        facts(results),
        CAUTION,
        "How it is measured: [README.md](README.md). A dash: the library does not do this; why not stands below the "
        "table, where that needs saying. The vocabulary is o200k where a name says no other. Why a bar is missed, and "
        "what was tried: [TRIED.md](TRIED.md).",
        *absent(results["cases"]),
        "## What is to be reached",
        bars_table(results["cases"]),
    ]
    parts += [section(results["cases"], table) for table in TABLES]
    parts += [memory_table(results["cases"]), likeness(results["cases"]), texts_table(results["cases"])]
    return "\n\n".join(part for part in parts if part) + "\n"


def summary(results: Results) -> str:
    """What stands in README.md."""
    cases = {case["name"]: case for case in results["cases"]}
    rows = [(cases[name], measure, label) for name, measure, label in SUMMARY if name in cases]
    peers = peers_of([case for case, _, _ in rows], [measure for _, measure, _ in rows])
    peers = [name for name in peers if is_other(name)]
    table = [["o200k", "subword", *(f"× {peer}" for peer in peers)]]
    table += [[label, *compared(case, peers, measure)] for case, measure, label in rows]
    chart = "![How many times as fast as each other library](benchmarks/chart.svg)"
    return "\n\n".join((facts(results), CAUTION, chart, aligned(table)))


def line(case: Case) -> str:
    """What a case gave, for who waits at the terminal."""
    if "left_out" in case:
        return f"left out: {case['left_out']}"
    parts = []
    measures = [table.measure for table in TABLES if case["name"].startswith(table.group)] or ["slope", "cold"]
    peers = [name for name, row in case["libraries"].items() if name != "subword" and "cannot" not in row]
    for measure in measures:
        ours, *theirs = compared(case, peers, measure)
        if measure == "slope":  # no ratio: zero is best
            theirs = [f"{case['libraries'][name].get('slope', 0):.2f}" for name in peers]
        ratios = "".join(f"  × {name} {cell}" for name, cell in zip(peers, theirs, strict=True))
        parts.append(f"\n    {measure}: {ours}{ratios}")
    return "".join(parts)


def between_markers(text: str, content: str) -> str:
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{content}\n{END}{after}"


# ======================== bars ========================


def bars_table(cases: list[Case]) -> str:
    """Each bar with what was measured: a row a case."""
    rows = [["what", "case", "measured", "bar", "aim", "reached"]]
    for bar in BARS:
        for case in cases:
            if bar.matches(case["name"]):
                rows.append([bar.what, f"`{case['name']}`", *judged(bar, case)])
    if len(rows) == 1:
        return "None of the cases measured has a bar."
    note = (
        "Ratios are the other's time over ours, each a median of the run. The other is the fastest that takes part in "
        "the case, where the bar names none."
    )
    return aligned(rows, numbers=()) + "\n\n" + note


def judged(bar: Bar, case: Case) -> list[str]:
    """What was measured, the bar, the aim, and how far it was reached."""
    ours = case["libraries"].get("subword", {}).get(bar.measure)
    goals = [goal(case, bar.measure, bar.bar, bar.most), goal(case, bar.measure, bar.aim, bar.aim_most)]
    if ours is None:
        return ["–", *goals, "not measured"]
    per = amount(case, bar.measure)
    other, seconds = opponent(bar, case)
    times = seconds / ours if seconds is not None else None
    if bar.against and times is None:
        return [figure(case, bar.measure, ours), *goals, "nothing to compare with"]
    measured = f"{rounded(times)} × {other}" if times is not None else figure(case, bar.measure, ours)
    if times is not None and (bar.most or bar.aim_most):
        measured += f", {figure(case, bar.measure, ours)}"

    def reached(ratio: float | None, most: float | None) -> bool:
        return (ratio is None or (times is not None and times >= ratio)) and (most is None or ours / per <= most)

    has_aim = bar.aim is not None or bar.aim_most is not None
    if not reached(bar.bar, bar.most):
        verdict = "**missed**"
    elif has_aim and reached(bar.aim, bar.aim_most):
        verdict = "aim"
    else:
        verdict = "bar"
    return [measured, *goals, verdict]


def opponent(bar: Bar, case: Case) -> tuple[str, float | None]:
    """Who ours is compared with, and what that took."""
    rows = {name: row for name, row in case["libraries"].items() if bar.measure in row}
    if bar.against in ("best", "original"):
        rows = {name: row for name, row in rows.items() if is_other(name)}
        if bar.against == "original":
            rows = {name: row for name, row in rows.items() if row["reads_original"]}
    else:
        rows = {name: row for name, row in rows.items() if name == bar.against}
    if not rows:
        return bar.against, None
    best = min(rows, key=lambda name: rows[name][bar.measure])
    return best, rows[best][bar.measure]


def goal(case: Case, measure: str, ratio: float | None, most: float | None) -> str:
    if most is not None:
        shown = figure(case, measure, most * amount(case, measure))
        return ("≥ " if shown.endswith("MB/s") else "≤ ") + shown
    return f"{ratio:g}" if ratio is not None else "–"


# ======================== tables ========================


def section(cases: list[Case], table: Table) -> str:
    """A group by one measure, with why some have no figure."""
    cases = [case for case in cases if case["name"].startswith(table.group)]
    left_out = [f"* {case['name']} is left out: {case['left_out']}." for case in cases if "left_out" in case]
    cases = [case for case in cases if table.measure in case["libraries"].get("subword", {}) or case["libraries"]]
    if not cases and not left_out:
        return ""
    peers = peers_of(cases, [table.measure] * len(cases))
    rows = [["case", "subword", *(f"× {peer}" for peer in peers)]]
    rows += [[case["name"], *compared(case, peers, table.measure)] for case in cases]
    parts = [f"## {table.heading}", aligned(rows)]
    if table.measure == "load":
        parts.append(import_times(cases))
    reasons: dict[str, list[str]] = {}
    for case in cases:
        for name, row in case["libraries"].items():
            if (why := row.get("cannot") or row.get("fails")) and name in peers:
                reasons.setdefault(f"{name}: {why}", []).append(case["name"].removeprefix(table.group))
    notes = [f"* {why}" + (f" ({', '.join(of)})." if len(of) < len(cases) else ".") for why, of in reasons.items()]
    if notes or left_out:
        parts.append("\n".join(notes + left_out))
    return "\n\n".join(parts)


def absent(cases: list[Case]) -> list[str]:
    """The libraries that take part in no case, and why."""
    names = [name for name in names_of(cases) if all("cannot" in row for row in rows_of(cases, name))]
    return [f"In no table: {name}, which {rows_of(cases, name)[0]['cannot']}." for name in names]


def rows_of(cases: list[Case], name: str) -> list[dict[str, Any]]:
    return [case["libraries"][name] for case in cases if name in case["libraries"]]


def import_times(cases: list[Case]) -> str:
    times: dict[str, float] = {}
    for case in cases:
        for name, row in case["libraries"].items():
            if "import" in row:
                times[name] = min(row["import"], times.get(name, row["import"]))
    listed = ", ".join(f"{name} {seconds * 1e3:.0f} ms" for name, seconds in times.items() if seconds >= 1e-3)
    return (
        f"Importing is not counted as loading: {listed}. But bpe-openai reads its vocabularies while it is imported. "
        "It and quicktok carry them in a form of their own, and read no published file."
    )


def memory_table(cases: list[Case]) -> str:
    """Peaks, and how memory grows over words that never repeat."""
    parts = []
    for case in cases:
        if case["task"] != "memory" or not case["libraries"]:
            continue
        rows = [["library", "MB/s", "peak, MB", "bytes a word, second half", "MB after each tenth, from the second on"]]
        for name, row in case["libraries"].items():
            if "slope" in row:
                resident = " ".join(f"{mb:.0f}" for mb in row["runs"][0]["resident_mb"])
                speed = f"{case['bytes'] / row['cold'] / 1e6:.1f}"
                rows.append([name, speed, f"{row['peak_mb']:.0f}", f"{row['slope']:.2f}", resident])
            elif "fails" in row:
                rows.append([name, row["fails"], "–", "–", "–"])
        note = "The text, 40 MB, and Python are in all these figures. The first tenth, encoded again at the end, has "
        note += "the same ids."
        parts.append("## Memory, over five million words that never repeat\n\n" + aligned(rows) + "\n\n" + note)
    peaks = [case for case in cases if case["name"].startswith("cold/20") and case["libraries"]]
    names = [name for name in names_of(peaks) if any("peak_mb" in case["libraries"].get(name, {}) for case in peaks)]
    if peaks:
        rows = [["case", *names]]
        for case in peaks:
            row = [case["libraries"].get(name, {}) for name in names]
            rows.append([case["name"], *(f"{of['peak_mb']:.0f}" if "peak_mb" in of else "–" for of in row)])
        note = "Of the whole process, Python, the text and what comes out included."
        parts.append("## Peak memory, MB\n\n" + aligned(rows) + "\n\n" + note)
    return "\n\n".join(parts)


def likeness(cases: list[Case]) -> str:
    """What the trainers have learned, beside ours."""
    lines = []
    for case in cases:
        for name, row in case["libraries"].items():
            if name == "subword" or "same_from_start" not in row:
                continue
            count, start, any_order = row["learned"], row["same_from_start"], row["same_in_any_order"]
            same = f"all {count:,} tokens are the same, in the same order"
            if start < count:
                same = f"the first {start:,} of {count:,} tokens are the same, {any_order:,} in any order"
            is_bytes = case["vocabulary"] not in ("unigram", "wordpiece")
            order = f', `byte_order="{row["byte_order"]}"`' if is_bytes else ""
            lines.append(f"* {case['name']}, {name}{order}: {same}.")
    head = "What they learn, beside ours (`smallest-ids`, in the byte order that is more alike):\n\n"
    return head + "\n".join(lines) if lines else ""


def texts_table(cases: list[Case]) -> str:
    rows = [["text", "MB", "documents", "of these found or made as they are, MB", "from"]]
    seen = set()
    for case in cases:
        key = case["text"], round(case["bytes"] / 1e6)
        if key not in seen:
            seen.add(key)
            megabytes, found = f"{case['bytes'] / 1e6:.1f}", f"{case['found'] / 1e6:.1f}"
            rows.append([case["text"], megabytes, f"{case['documents']:,}", found, case["source"]])
    return "## The texts\n\nWhat was not found is recombined from what was.\n\n" + aligned(rows)


# ======================== parts ========================


def facts(results: Results) -> str:
    machine, versions = results["machine"], results["versions"]
    peers = ", ".join(f"{name} {version}" for name, version in versions.items() if name not in ("python", "subword"))
    ours = [case["libraries"].get("subword", {}) for case in results["cases"] if not case["name"].startswith("large/")]
    counts = {len(row["runs"]) for row in ours if row.get("runs")} or {results["rounds"]}
    rounds = f"Medians over {' to '.join(map(str, sorted({min(counts), max(counts)})))} round{'s' * (max(counts) > 1)}."
    if results["partial"]:
        rounds += " **A part of the cases only, for a first look.**"
    return (
        f"{results['date']}: subword {versions['subword']} on {machine['processor']}, {machine['cores']} cores, "
        f"{machine['memory_gb']} GB, {machine['system']}, Python {versions['python']}; {peers}. {rounds}"
    )


def compared(case: Case, peers: list[str], measure: str) -> list[str]:
    """Ours with its unit, then the ratio to each peer, or in a word why there is none."""
    ours = case["libraries"].get("subword", {})
    cells = [figure(case, measure, ours[measure]) if measure in ours else ours.get("fails", "–")]
    for name in peers:
        theirs = case["libraries"].get(name, {})
        if ours.get(measure) and measure in theirs:
            cells.append(rounded(theirs[measure] / ours[measure]))
        else:
            cells.append(
                theirs.get("fails", "–") if theirs.get("fails") in IN_A_WORD else "fails" if "fails" in theirs else "–"
            )
    return cells


def figure(case: Case, measure: str, value: float) -> str:
    """One of our own figures, in the unit of its case."""
    if measure == "slope":
        return f"{value:.2f} bytes a word"
    if measure == "peak_mb":
        return f"{value:,.0f} MB"
    if measure == "load":
        return f"{value * 1e3:.3g} ms"
    if case["task"] == "train":
        return f"{value:.1f} s"
    if amount(case, measure) > 1 and case["task"] != "count":
        return f"{value / amount(case, measure) * 1e6:.2f} µs"
    return f"{case['bytes'] / value / 1e6:.1f} MB/s"


def amount(case: Case, measure: str) -> float:
    """How many calls a figure is for, where calls are measured; how many MB, where pieces are counted."""
    if case["task"] == "count" and measure == "cold":
        return float(case["bytes"]) / 1e6
    return (
        int(case["documents"]) if case["call"] in ("encode", "encode_ordinary", "decode") and measure != "load" else 1
    )


def rounded(times: float) -> str:
    decimals = 0 if times >= 20 else 1 if times >= 2 else 2 if times >= 0.1 else 3
    return f"{times:.{decimals}f}"


def is_other(name: str) -> bool:
    """Whether it is another library, and not one in another way, as `subword, 1 thread` is."""
    return name != "subword" and "," not in name


def names_of(cases: list[Case]) -> list[str]:
    return list(dict.fromkeys(name for case in cases for name in case["libraries"]))


def peers_of(cases: list[Case], measures: list[str]) -> list[str]:
    """The libraries that have a figure, or a failure, in one of the cases."""
    having = {
        name
        for case, measure in zip(cases, measures, strict=True)
        for name, row in case["libraries"].items()
        if measure in row or "fails" in row
    }
    return [name for name in names_of(cases) if name != "subword" and name in having]


def aligned(rows: list[list[str]], numbers: tuple[int, ...] | None = None) -> str:
    head, *body = rows
    align = ["---" if i == 0 or numbers == () else "---:" for i in range(len(head))]
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, align, *body))
