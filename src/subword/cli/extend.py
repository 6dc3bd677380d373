"""`subword extend`: further merges for a tokenizer that is there."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from ..corpus import find_files, read_texts, size_on_disk
from ..report.terminal import visible
from ..tokenizer import load
from . import common
from .train import ErrorsOpt, MemoryOpt, MinCountOpt, TieRuleOpt, WeightOpt, check_inputs, learning, weights_of


def extend(
    tokenizer: common.TokenizerArg,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", show_default=False, help="Where the new tokenizer goes.")
    ],
    add: Annotated[
        int,
        typer.Option(
            "--add",
            metavar="N",
            parser=common.parse_size,
            show_default=False,
            help="How many entries to add: 5000, 5_000 or 5k.",
        ),
    ],
    files: common.FilesArg = None,
    counted: Annotated[
        list[Path] | None,
        typer.Option(
            "--counts",
            metavar="TABLE",
            show_default=False,
            help="What count-pieces wrote with the stages of this tokenizer, instead of files; may be repeated.",
        ),
    ] = None,
    remap: Annotated[
        Path | None,
        typer.Option(
            "--remap",
            metavar="FILE",
            show_default=False,
            help="Write what becomes of the ids, and how rows of embeddings start, for remap-embeddings.",
        ),
    ] = None,
    tie_rule: TieRuleOpt = "smallest-ids",
    weight: WeightOpt = None,
    min_count: MinCountOpt = 1,
    memory: MemoryOpt = None,
    threads: common.ThreadsOpt = None,
    field: common.FieldOpt = "text",
    errors: ErrorsOpt = "keep",
    stdin_format: common.StdinOpt = "text",
    pattern: common.PatternOpt = None,
    regex: common.RegexOpt = None,
    special: common.SpecialOpt = None,
    force: common.ForceOpt = False,
    progress: common.ProgressOpt = "auto",
    json: common.JsonOpt = False,
) -> None:
    """Learn more entries for a tokenizer. Every old id and merge stays.

    The text is cut as the tokenizer cuts it, and starts as the tokens that it takes now. New ids follow the largest one
    that there is.

    \b
    Examples:
      subword extend gpt2 medical/ --add 5k -o gpt2-medical.subword --remap remap.json
      subword extend tokenizer.json --counts code.parquet --add 2000 -o larger.json
    """
    check_inputs(files, counted, weight)
    common.check_tokenizer_out(out, force)
    if remap is not None:
        common.check_out(remap, force)
        if remap.resolve() == out.resolve():
            raise common.UsageError("--out and --remap name the same file")
    started = time.perf_counter()
    tok = load(tokenizer, **common.left_out(pattern, regex, special))
    how: dict[str, Any] = {
        "add": add,
        "tie_rule": tie_rule,
        "weights": weights_of(weight) or None,
        "min_count": min_count,
        "memory": memory,
        "threads": threads,
    }
    if counted:
        with common.progress(how=progress) as report:
            changed = tok.extend(counts=counted, progress=learning(report), **how)
    else:
        found = find_files(files or ())
        tokens = tuple(token.content for token in tok.spec.extra if token.kind != "unmatchable")
        with common.progress(how=progress) as report, common.ticking("count", size_on_disk(found), report) as tick:
            whole = common.must_stay_whole(tok)
            texts = read_texts(found, field, tick, uncuttable=tokens, whole=whole, stdin=stdin_format, errors=errors)
            changed = tok.extend(texts, progress=learning(report), **how)
    changed.tokenizer.save(out)
    if remap is not None:
        changed.remap.save(remap)
    learned = changed.tokenizer.training or {}
    ids = range(tok.n_vocab, tok.n_vocab + min(learned["merges"], 24))
    first = [visible(changed.tokenizer.token_bytes(id)) for id in ids]
    summary: dict[str, Any] = {
        "out": str(out),
        "remap": None if remap is None else str(remap),
        **learned,
        "seconds": round(time.perf_counter() - started, 3),
        "first_entries": first,
        "fingerprint": changed.tokenizer.fingerprint,
    }
    common.print_json(summary) if json else _render(summary)


def _render(summary: dict[str, Any]) -> None:
    common.print_card(
        (
            ("vocabulary", f"{summary['vocab_size']:,} entries, {summary['merges']:,} of them new"),
            ("text", f"{summary['pieces']:,} pieces, {summary['distinct_pieces']:,} distinct"),
            ("time", f"{summary['seconds']:,.1f} s"),
            ("first new", "  ".join(summary["first_entries"])),
            ("written to", "  ".join(filter(None, (summary["out"], summary["remap"])))),
        )
    )
