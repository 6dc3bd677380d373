"""`subword convert`: a tokenizer in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .. import formats
from ..corpus import find_files, read_texts, size_on_disk
from . import common


def convert(
    source: Annotated[str, typer.Argument(metavar="IN", help="A tokenizer file, or a folder.", show_default=False)],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write.", show_default=False)],
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="FORMAT",
            parser=common.one_of(*(row.name for row in formats.FORMATS)),
            help=f"{', '.join(row.name for row in formats.FORMATS)}.  [default: what the name of OUT says]",
        ),
    ] = None,
    allow_lossy: Annotated[
        bool,
        typer.Option("--allow-lossy", help="Leave out what the format cannot hold; it is named.", show_default=False),
    ] = False,
    probe: Annotated[
        list[str] | None,
        typer.Option(
            "--probe",
            metavar="FILE",
            show_default=False,
            help="Compare on this file, too; folder, glob; may be repeated.",
        ),
    ] = None,
    field: common.FieldOpt = "text",
    pattern: common.PatternOpt = None,
    regex: common.RegexOpt = None,
    special: common.SpecialOpt = None,
    force: common.ForceOpt = False,
    progress: common.ProgressOpt = "auto",
    json: common.JsonOpt = False,
) -> None:
    """Write a tokenizer in another format, if it stays the same.

    What OUT would hold is read back first and compared with IN: the bytes of all ids; special and other extra tokens;
    the template; and ids and decoded bytes on every entry of the vocabulary, on some two thousand texts that tokenizers
    are known to differ on, and on the files of --probe, with and without special tokens. The first difference is an
    error that shows the text and the ids, and OUT is not written. What a format cannot hold is an error that names it
    and says what would be lost; with --allow-lossy that is left out, and the rest compared. What changes without
    changing an id is told. Roles (bos, eos, …) and notes are not compared, but told if lost.

    An OUT that is a folder, or --to model-folder, gets what transformers loads: tokenizer.json, tokenizer_config.json,
    special_tokens_map.json and the chat templates.

    \b
    Examples:
      subword convert tokenizer.json tokenizer.subword
      subword convert tokenizer.subword tokenizer.json --force
      subword convert tok.subword out --to tokenizer.json --probe corpus/*.txt
      subword convert model.gguf out --to model-folder --allow-lossy
    """
    if to is None and not out.is_dir() and not out.name.lower().endswith(common.SUFFIXES):
        raise common.UsageError(
            f"{out}: the name says no format; end it in {' or '.join(common.SUFFIXES)}, or give --to"
        )
    is_folder = any(row.folder for row in formats.FORMATS if row.name == to) or (to is None and out.is_dir())
    common.check_out(out, force, folder=is_folder)
    files = find_files(probe or ())
    spec = formats.load(source, **common.left_out(pattern, regex, special))
    with (
        common.progress(bool(files), progress) as report,
        common.ticking("compare", size_on_disk(files), report) as tick,
    ):
        done = formats.convert(spec, out, to, read_texts(files, field, tick, whole=True), allow_lossy)
    summary: dict[str, Any] = {
        "in": source,
        "out": str(done.path),
        "format": done.format,
        "texts": done.texts,
        "same": True,
        "lost": list(done.lost),
        "changed": list(done.changed),
        "not_compared": list(formats.NOT_COMPARED),
        "fingerprint": spec.fingerprint,
    }
    common.print_json(summary) if json else _render(summary)


def _render(summary: dict[str, Any]) -> None:
    rows = [
        ("written to", f"{summary['out']} ({summary['format']})"),
        ("compared", f"the same on {summary['texts']:,} texts"),
        ("lost", "\n".join(summary["lost"]) or "nothing"),
        ("changed", "\n".join(summary["changed"]) or "nothing"),
        ("not compared", ", ".join(summary["not_compared"])),
    ]
    common.print_card(rows)
