"""`subword prune`: a tokenizer without the entries that are not needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ..corpus import find_files, read_texts, size_on_disk
from ..errors import SubwordValueError
from ..tokenizer import load
from . import common
from .decode import ids_of


def prune(
    tokenizer: common.TokenizerArg,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", show_default=False, help="Where the new tokenizer goes.")
    ],
    keep: Annotated[
        str | None,
        typer.Option("--keep", metavar="FILE", help="Keep these ids: as text, .npy or .bin, as encode writes them."),
    ] = None,
    unused_on: Annotated[
        list[str] | None,
        typer.Option(
            "--unused-on",
            metavar="FILE",
            show_default=False,
            help="Keep what encoding this text gives; folder, glob, -; may be repeated.",
        ),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(
            "--drop", metavar="TOKEN", show_default=False, help="Remove this special token, too; may be repeated."
        ),
    ] = None,
    remap: Annotated[
        Path | None,
        typer.Option("--remap", metavar="FILE", help="Where the new id of each old one goes: a .json file."),
    ] = None,
    threads: common.ThreadsOpt = None,
    field: common.FieldOpt = "text",
    pattern: common.PatternOpt = None,
    regex: common.RegexOpt = None,
    special: common.SpecialOpt = None,
    force: common.ForceOpt = False,
    progress: common.ProgressOpt = "auto",
    json: common.JsonOpt = False,
) -> None:
    """Remove the entries of a vocabulary that are not needed.

    What stays is what --keep and --unused-on say; what these tokens are merged from; the bytes (or characters) that
    everything starts as; and the special and added tokens, but those that --drop names. Text whose tokens all stay has
    the same tokens as before, and ids move together in their order. Special tokens are taken from the text of
    --unused-on. The file of --remap is for `subword remap-embeddings`.

    \b
    Examples:
      subword prune o200k_base --unused-on corpus/ -o small.subword --remap remap.json
      subword vocab tok.json --script Latin --json | jq .id | subword prune tok.json --keep - -o latin.json
      subword prune tok.json --drop "<|fim_prefix|>" --drop "<|fim_suffix|>" -o plain.json
    """
    if keep is None and not unused_on and not drop:
        raise common.UsageError("nothing says what to remove: give --unused-on, --keep or --drop")
    common.check_tokenizer_out(out, force)
    if remap is not None:
        common.check_out(remap, force)
        if remap.resolve() == out.resolve():
            raise common.UsageError("--out and --remap name the same file")
    files = find_files(unused_on or ())
    ids = None if keep is None else np.concatenate([ids_of(path) for path in find_files([keep])]).tolist()
    tok = load(tokenizer, **common.left_out(pattern, regex, special))
    with (
        common.progress(bool(files), how=progress) as report,
        common.ticking("encode", size_on_disk(files), report) as tick,
    ):
        whole = common.must_stay_whole(tok)
        texts = _not_empty(read_texts(files, field, tick, whole=whole)) if unused_on else None
        new, changes = tok.prune(ids, texts, drop_tokens=drop or (), threads=threads)
    new.save(out)
    if remap is not None:
        changes.save(remap)
    summary: dict[str, Any] = {
        "in": tokenizer,
        "out": str(out),
        "remap": None if remap is None else str(remap),
        "entries_before": len(tok.vocab),
        "entries": len(new.vocab),
        "n_vocab_before": tok.n_vocab,
        "n_vocab": new.n_vocab,
        "fingerprint": new.fingerprint,
    }
    common.print_json(summary) if json else _render(summary)


def _not_empty(texts: Iterator[bytes]) -> Iterator[bytes]:
    """The same texts, unless they hold nothing: then every entry would go, which is hardly what was meant."""
    has_text = False
    for text in texts:
        has_text |= bool(text)
        yield text
    if not has_text:
        raise SubwordValueError("--unused-on: there is no text in these files, so that nothing would be used")


def _render(summary: dict[str, Any]) -> None:
    before, left = summary["entries_before"], summary["entries"]
    rows = [
        ("entries", f"{left:,} of {before:,}; {before - left:,} removed"),
        ("written to", summary["out"]),
    ]
    if summary["remap"] is not None:
        rows.append(("remap", summary["remap"]))
    common.print_card(rows)
