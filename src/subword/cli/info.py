"""`subword info`: what a tokenizer is."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Any

import numpy as np
import typer
from rich import box
from rich.table import Table
from rich.text import Text

from .. import formats
from ..patterns import PATTERNS
from ..report.terminal import visible
from ..report.training import curve_line
from ..spec import BPE, Digits, Lowercase, Model, Normalize, PrefixSpace, Spec, Split, SplitRegex
from ..tokenizer import Tokenizer, load
from . import common

LONGEST = 12
MOST = 20


def info(
    tokenizer: common.TokenizerArg,
    files: Annotated[
        bool, typer.Option("--files", help="Instead, which part of the file holds what, and what it cannot hold.")
    ] = False,
    pattern: common.PatternOpt = None,
    regex: common.RegexOpt = None,
    special: common.SpecialOpt = None,
    json: common.JsonOpt = False,
) -> None:
    """Describe a tokenizer.

    Its model and vocabulary, special tokens, stages from text to ids, and how it is run here and why; or, with --files,
    where in its file each of these stands. --json has the same and more.

    \b
    Examples:
      subword info tokenizer.json
      subword info tokenizer.json --files
      subword info tokenizer.json --json | jq .special_tokens
    """
    tok = load(tokenizer, **common.left_out(pattern, regex, special))
    if files:
        layout = describe_files(tokenizer, tok)
        common.print_json(layout) if json else _render_files(layout)
        return
    card = describe(tok)
    common.print_json(card) if json else _render(card)


def describe(tok: Tokenizer) -> dict[str, Any]:
    """The card of a tokenizer, as plain data."""
    spec = tok.spec
    lengths = np.diff(spec.model.vocab.pieces.offsets.astype(np.int64))
    longest = spec.model.vocab.ids[np.argsort(-lengths, kind="stable")[:LONGEST]].tolist()
    outline = spec.outline()
    return {
        "model": outline["model"],
        "vocab": len(tok.vocab),
        "n_vocab": tok.n_vocab,
        "merges": len(spec.model.merges) if isinstance(spec.model, BPE) else 0,
        "special_tokens": dict(tok.special_tokens),
        "extra_tokens": outline["extra"],
        "stages": outline["stages"],
        "template": outline["template"],
        "roles": dict(spec.roles),
        "pattern": _patterns(spec),
        "fingerprint": tok.fingerprint,
        "plan": [{"step": step, "how": how, "why": why} for step, how, why in tok.plan()],
        "training": tok.training,
        "longest": [
            {"id": id, "bytes": tok.token_bytes(id).hex(), "shown": visible(tok.token_bytes(id))} for id in longest
        ],
    }


def _patterns(spec: Spec) -> dict[str, list[str]]:
    """The expressions that cut text, by the name of their pattern; one of the user's own has none."""
    found = {}
    for stage in spec.stages:
        if isinstance(stage, Split):
            regex = PATTERNS[stage.pattern].regex
            found[stage.pattern] = [regex] if isinstance(regex, str) else list(regex)
        elif isinstance(stage, SplitRegex):
            found[""] = [*found.get("", []), stage.regex]
    return found


def _render(card: dict[str, Any]) -> None:
    model, training = card["model"], card["training"]
    rows = [
        ("model", _model(model)),
        ("vocabulary", f"{card['vocab']:,} entries, {card['merges']:,} merges, n_vocab {card['n_vocab']:,}"),
        ("special tokens", _listed(card["special_tokens"].items())),
        ("other tokens", _listed(_other_tokens(card))),
        ("roles", "  ".join(f"{role} {id}" for role, id in card["roles"].items())),
        ("stages", "\n".join(_stage(row) for row in card["stages"])),
        ("pattern", "\n".join(regex for regexes in card["pattern"].values() for regex in regexes)),
        ("template", "  ".join(map(str, card["template"]["single"]))),
        ("longest", "\n".join(f"{row['id']} {row['shown']}" for row in card["longest"])),
        ("plan", "\n".join(f"{row['step']}: {row['how']} ({row['why']})" for row in card["plan"])),
        ("training", _training(training or {})),
        ("fingerprint", card["fingerprint"]),
    ]  # fmt: skip
    common.print_card([(name, value) for name, value in rows if value])


def _training(training: dict[str, Any]) -> str:
    rows = {name: value for name, value in training.items() if name != "curve"}
    return "\n".join([*(f"{name} {value}" for name, value in rows.items()), curve_line(training)]).strip()


def _model(model: dict[str, Any]) -> str:
    if model["type"] != "BPE":
        return str(model["type"]) + "".join(f", {name} {value}" for name, value in model.items() if name != "type")
    over = f" over {model['unit']}s" if "unit" in model else ""
    marker = f", end of word {model['end_of_word']}" if "end_of_word" in model else ""
    return f"{model['type']}{over}, by {model['priority']}{marker}" + (
        ", ignore_merges" if model["ignore_merges"] else ""
    )


def describe_files(path: str, tok: Tokenizer) -> dict[str, Any]:
    """Where the file of a tokenizer holds what, as plain data."""
    file, row, size = formats.recognise(path)
    held = _held(tok)
    return {
        "file": file,
        "format": row.name,
        "bytes": size,
        "parts": [{"part": part, "where": row.parts[part], "here": held[part]} for part in formats.PARTS],
        "cannot_hold": [part for part in formats.PARTS if row.parts[part] is None],
        "limits": row.limits,
    }


def _held(tok: Tokenizer) -> dict[str, str]:
    """What a tokenizer has of each part, in a few words."""
    spec, model = tok.spec, tok.spec.model
    kinds = Counter(token.kind for token in spec.extra)
    splits = [
        stage.pattern if isinstance(stage, Split) else type(stage).__name__
        for stage in spec.stages
        if isinstance(stage, (Digits, Split, SplitRegex))
    ]
    others = [type(stage).__name__ for stage in spec.stages if isinstance(stage, (Normalize, Lowercase, PrefixSpace))]
    return {
        "pieces": f"{len(model.vocab):,}",
        "ids": f"up to {tok.n_vocab - 1:,}",
        "merges": _merges(model),
        "pattern": ", ".join(splits),
        "normalization": ", ".join(others),
        "extra tokens": ", ".join(f"{count:,} {kind}" for kind, count in kinds.items()),
        "template": " ".join(map(str, spec.template.single)),
        "roles": ", ".join(spec.roles),
        "notes": ", ".join(spec.notes),
    }


def _merges(model: Model) -> str:
    if not isinstance(model, BPE):
        return ""
    return "by rank" if model.priority == "rank" else f"{len(model.merges):,}"


def _render_files(layout: dict[str, Any]) -> None:
    headings = ("part", "here", "where in the file")
    rows = [(row["part"], row["here"] or "none", row["where"] or "no place for it") for row in layout["parts"]]
    if not sys.stdout.isatty():
        common.print_tsv(*headings)
        for row in rows:
            common.print_tsv(*row)
        common.print_tsv("cannot hold", "", _cannot_hold(layout))
        return
    title = f"{layout['file']}: {layout['format']}, {layout['bytes']:,} bytes"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold", style="bold" if heading == "part" else "")
    for row in rows:
        table.add_row(*map(Text, row))
    console = common.console()
    console.print(Text(title), table, Text(f"It cannot hold: {_cannot_hold(layout)}"))


def _cannot_hold(layout: dict[str, Any]) -> str:
    return "; ".join([*layout["cannot_hold"], layout["limits"]])


def _listed(tokens: Iterable[tuple[str, int]]) -> str:
    lines = [f"{id} {visible(name.encode('utf-8', 'surrogatepass'))}" for name, id in tokens]
    return "\n".join(lines[:MOST]) + (f"\n… and {len(lines) - MOST:,} more (--json has all)" if lines[MOST:] else "")


def _stage(row: dict[str, Any]) -> str:
    return str(row["stage"]) + "".join(f" {name}={value}" for name, value in row.items() if name != "stage")


def _other_tokens(card: dict[str, Any]) -> list[tuple[str, int]]:
    return [(row["content"], row["id"]) for row in card["extra_tokens"] if row["kind"] != "special"]
