"""`subword count-pieces`: count the pieces of files, for `subword train --counts`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import counting, counts, counts_file
from ..arguments import byte_count, thread_count
from ..cluster import on_ray
from ..cluster import processes as several
from ..cluster.shards import Told
from ..corpus import find_files, size_on_disk
from . import common
from .train import (
    DigitsOpt,
    ErrorsOpt,
    MemoryOpt,
    NormalizationOpt,
    PatternOpt,
    ProcessesOpt,
    RegexOpt,
    SpecialOpt,
    pattern_of,
)


def count_pieces(
    files: Annotated[list[str], typer.Argument(metavar="FILES", help="Files, folders, globs, -.")],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="TABLE", show_default=False, help="Where the counts go: a .parquet file."),
    ],
    name: Annotated[
        str,
        typer.Option("--source", metavar="NAME", show_default=False, help="A name for this text, for train --weight."),
    ] = "",
    pattern: PatternOpt = "o200k",
    digits: DigitsOpt = "pattern",
    regex: RegexOpt = None,
    special: SpecialOpt = None,
    normalization: NormalizationOpt = None,
    memory: MemoryOpt = None,
    temp: Annotated[
        Path | None,
        typer.Option(
            "--temp", metavar="FOLDER", help="Where counts go that memory has no room for; the folder of --out."
        ),
    ] = None,
    threads: common.ThreadsOpt = None,
    processes: ProcessesOpt = 1,
    ray: Annotated[bool, typer.Option("--ray", help="Count on a cluster of Ray's, or as one on this machine.")] = False,
    address: Annotated[
        str | None,
        typer.Option("--ray-address", metavar="ADDRESS", show_default=False, help="Which cluster, as for ray.init."),
    ] = None,
    field: common.FieldOpt = "text",
    errors: ErrorsOpt = "keep",
    stdin_format: common.StdinOpt = "text",
    force: common.ForceOpt = False,
    progress: common.ProgressOpt = "auto",
    json: common.JsonOpt = False,
) -> None:
    """Count the pieces of text, to train on the counts.

    Counted once, a corpus trains tokenizers of any size without being read again, and counts of several add up. Special
    tokens are named here, as they cut the text. The table is the same for any number of threads, processes and
    machines, and any --memory.

    \b
    Examples:
      subword count-pieces corpus/ -o counts.parquet --special "<|endoftext|>"
      subword train --counts counts.parquet --vocab-size 32k -o tokenizer.json
      subword count-pieces "code/*.jsonl.zst" --source code --memory 2GB -o code.parquet
      subword count-pieces /shared/web --ray --ray-address ray://head:10001 -o web.parquet
    """
    if not out.name.lower().endswith(".parquet"):
        raise common.UsageError(f"--out {out}: a table of counts is a .parquet file; the name must say so")
    if processes > 1 and (ray or address is not None):
        raise common.UsageError("give --processes or --ray, not both")
    common.check_out(out, force)
    counts_file.pyarrow("write")
    splitting = counts.Splitting(pattern_of(pattern, regex), digits, normalization, tuple(special or ()))
    limit = None if memory is None else byte_count("--memory", memory)
    found = find_files(files)
    started = time.perf_counter()
    with common.progress(how=progress) as report, common.ticking("count", size_on_disk(found), report) as tick:
        folder = str(temp or out.resolve().parent)
        source = counts.source_name(name)
        told = _telling(report, size_on_disk(found))
        number = thread_count(threads)
        if ray or address is not None:
            job = counting.Job(splitting, field, limit, 1 if threads is None else number, errors=errors)
            table = on_ray.count_files(found, job, source, address, folder, told)
        elif processes > 1:
            job = counting.Job(splitting, field, limit, number, errors=errors)
            table = several.count_files(found, job, source, processes, folder, told)
        else:
            texts = counting.texts_in(found, splitting, field, limit, tick, stdin_format, errors)
            table = counting.count_texts(texts, splitting, source, limit, folder, number)
        rows = table.save(out)
    part = table.sources[name][0]
    summary: dict[str, Any] = {
        "out": str(out),
        "source": name,
        "bytes": part.bytes,
        "pieces": part.pieces,
        "distinct_pieces": rows,
        "sha256": part.sha256,
        "seconds": round(time.perf_counter() - started, 3),
        "fingerprint": table.fingerprint,
    }
    common.print_json(summary) if json else _render(summary)


def _telling(report: common.Report | None, total: int | None) -> Told | None:
    return None if report is None else lambda counted, read: report("count", read, total)


def _render(summary: dict[str, Any]) -> None:
    megabytes = summary["bytes"] / 1e6
    speed = megabytes / max(summary["seconds"], 0.001)
    common.print_card(
        (
            ("text", f"{megabytes:,.2f} MB in {summary['pieces']:,} pieces, {summary['distinct_pieces']:,} distinct"),
            ("time", f"{summary['seconds']:,.1f} s ({speed:,.1f} MB/s)"),
            ("stages", summary["fingerprint"]),
            ("written to", summary["out"]),
        )
    )
