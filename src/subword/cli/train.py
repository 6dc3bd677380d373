"""`subword train`: learn a tokenizer from files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

import subword

from ..corpus import find_files
from ..patterns import PATTERNS, get_pattern
from ..report.terminal import visible
from . import common


def train(
    files: Annotated[list[str], typer.Argument(metavar="FILES...", help="Files, folders, globs, -.")],
    vocab_size: Annotated[
        int,
        typer.Option(
            "--vocab-size",
            "-v",
            metavar="SIZE",
            parser=common.parse_size,
            show_default=False,
            help="Entries in all: bytes, merges and special tokens. 32000, 32_000 or 32k (k is 1,000).",
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", show_default=False, help="Where the tokenizer goes.")
    ],
    pattern: Annotated[
        str, typer.Option("--pattern", metavar="NAME", help=f"How text is cut into pieces: {', '.join(PATTERNS)}.")
    ] = "o200k",
    special: Annotated[
        list[str] | None,
        typer.Option("--special", metavar="TOKEN", show_default=False, help="A special token; may be repeated."),
    ] = None,
    tie_rule: Annotated[
        str, typer.Option("--tie-rule", metavar="NAME", help="Which of equally frequent pairs is merged first.")
    ] = "smallest-ids",
    byte_order: Annotated[
        str, typer.Option("--byte-order", metavar="value|gpt2", help="Which byte gets which of the ids 0 to 255.")
    ] = "value",
    threads: common.ThreadsOpt = None,
    field: common.FieldOpt = "text",
    force: common.ForceOpt = False,
    json: common.JsonOpt = False,
) -> None:
    """Train a tokenizer on text.

    The same text gives the same tokenizer, for any number of threads.

    \b
    Examples:
      subword train corpus/ --vocab-size 32k --out tokenizer.json
      subword train "data/*.jsonl.zst" --field content -v 50_000 -o tok.json
      subword train book.txt -v 1000 -o tok.json --special "<|endoftext|>"
      zcat dump.gz | subword train - -v 8k -o tok.json --pattern cl100k
    """
    get_pattern(pattern)
    common.check_out(out, force)
    found = find_files(files)
    started = time.perf_counter()
    with common.progress() as report:
        tok = subword.train(
            files=found,
            vocab_size=vocab_size,
            pattern=pattern,
            special_tokens=special or (),
            tie_rule=tie_rule,
            byte_order=byte_order,
            threads=threads,
            field=field,
            progress=report,
        )
    tok.save(out)
    summary: dict[str, Any] = {
        "out": str(out),
        **(tok.training or {}),
        "seconds": round(time.perf_counter() - started, 3),
        "first_merges": [visible(tok.token_bytes(id)) for id in _merged_ids(tok)[:24]],
        "fingerprint": tok.fingerprint,
    }
    common.print_json(summary) if json else _render(summary)


def _merged_ids(tok: subword.Tokenizer) -> list[int]:
    """The ids of the entries that merges made, in the order in which they were learned."""
    extra = {token.id for token in tok.spec.extra}
    return [id for id in tok.spec.model.vocab.ids.tolist() if id >= 256 and id not in extra]


def _render(summary: dict[str, Any]) -> None:
    megabytes = summary["bytes"] / 1e6
    speed = megabytes / max(summary["seconds"], 0.001)
    common.print_card(
        (
            ("vocabulary", f"{summary['vocab_size']:,} entries, {summary['merges']:,} of them merges"),
            ("text", f"{megabytes:,.2f} MB in {summary['pieces']:,} pieces, {summary['distinct_pieces']:,} distinct"),
            ("time", f"{summary['seconds']:,.1f} s ({speed:,.1f} MB/s)"),
            ("first merges", "  ".join(summary["first_merges"])),
            ("written to", summary["out"]),
        )
    )
    if summary["vocab_size"] < summary["asked"]:
        common.console().print(
            f"Note: {summary['asked']:,} entries were asked for, but training stopped early: {summary['stopped']}. "
            "More text gives more.",
            style="yellow",
            soft_wrap=True,
        )
