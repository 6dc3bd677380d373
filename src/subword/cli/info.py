"""`subword info`: what a tokenizer is."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich import box
from rich.table import Table
from rich.text import Text

from .. import formats
from ..formats import known
from ..patterns import PATTERNS
from ..report.terminal import visible
from ..report.training import curve_line
from ..spec import (
    BPE,
    BYTE,
    Digits,
    LongestMatch,
    Lowercase,
    Model,
    Normalize,
    PrefixSpace,
    ScoreBPE,
    Spec,
    Split,
    SplitRegex,
    Unigram,
    WordLevel,
    WordPiece,
)
from ..tokenizer import Tokenizer, load
from . import common

LONGEST, LONGEST_SHOWN = 12, 6
MOST = 20
SHORTENED = 44
SEPARATOR = " · "


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

    Its file, model and vocabulary by kind of entry, special tokens and roles, stages from text to ids with the split
    rule, template, decoder, chat templates, longest entries, and how it is run here and why; or, with --files, where
    in its file each of these stands. --json has the same and more.

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
    card = {**describe(tok), "file": describe_file(tokenizer)}
    common.print_json(card) if json else _render(card, tok)


def describe(tok: Tokenizer) -> dict[str, Any]:
    """The card of a tokenizer, as plain data."""
    spec = tok.spec
    lengths = np.diff(spec.model.vocab.pieces.offsets.astype(np.int64))
    longest = spec.model.vocab.ids[np.argsort(-lengths, kind="stable")[:LONGEST]].tolist()
    outline = spec.outline()
    return {
        "model": outline["model"],
        "family": _family(spec.model),
        "vocab": len(tok.vocab),
        "n_vocab": tok.n_vocab,
        "merges": len(spec.model.merges) if isinstance(spec.model, (BPE, ScoreBPE)) else 0,
        "entries": _kinds(tok),
        "mean_bytes": round(float(lengths.mean()), 2) if len(lengths) else 0.0,
        "coverage": _coverage(spec.model),
        "special_tokens": dict(tok.special_tokens),
        "extra_tokens": outline["extra"],
        "stages": outline["stages"],
        "template": outline["template"],
        "decode": {"type": type(spec.decode).__name__, **asdict(spec.decode)},
        "roles": dict(spec.roles),
        "chat": {name: {"characters": len(text), "roles": _roles_in(text)} for name, text in spec.chat.items()},
        "pattern": _patterns(spec),
        "fingerprint": tok.fingerprint,
        "plan": [{"step": step, "how": how, "why": why} for step, how, why in tok.plan()],
        "training": tok.training,
        "longest": [
            {"id": id, "bytes": tok.token_bytes(id).hex(), "shown": visible(tok.token_bytes(id))} for id in longest
        ],
        "buffers": sum(map(len, spec.buffers().values())),
    }


def describe_file(path: str) -> dict[str, Any]:
    """Which file was read, of what kind, and its SHA-256."""
    file, row, size = formats.recognise(path)
    if os.path.isfile(file):
        digest = hashlib.sha256(Path(file).read_bytes()).hexdigest()
    else:
        digest = next((own.sha256 for own in known.KNOWN[path].files if own.name == file), "")
    return {"path": file, "format": row.name, "bytes": size, "sha256": digest}


def _family(model: Model) -> str:
    if isinstance(model, BPE) and model.unit == "byte":
        return "byte-level BPE, by " + ("the ranks of its entries" if model.priority == "rank" else "a list of merges")
    if isinstance(model, BPE):
        return "BPE over characters" + (f", words ending in {model.end_of_word}" if model.end_of_word else "")
    if isinstance(model, WordPiece):
        return f"WordPiece, longest entry first, {model.continuing_subword_prefix} inside words"
    if isinstance(model, WordLevel):
        return "whole words"
    if isinstance(model, LongestMatch):
        return "longest entry first"
    fallback = ", unknown characters as bytes" if np.any(model.kinds == BYTE) else ""
    if isinstance(model, Unigram):
        return f"Unigram language model{fallback}"
    return "BPE over characters, by " + ("a list of merges" if len(model.merges) else "scores") + fallback


KINDS = (
    "starts of words", "insides of words", "numbers", "punctuation and signs", "white space", "mixed",
    "parts of characters",
)  # fmt: skip


def _kinds(tok: Tokenizer) -> dict[str, int]:
    """How many entries of the model are what, by what they decode to."""
    model = tok.spec.model
    prefix = model.continuing_subword_prefix if isinstance(model, WordPiece) else None
    counts = dict.fromkeys(KINDS, 0)
    for piece, id in model.vocab.items():
        try:
            text = tok.token_bytes(id).decode()
        except UnicodeDecodeError:
            counts["parts of characters"] += 1
            continue
        body = text.strip()
        starts = text[:1] == " " if prefix is None else not piece.startswith(prefix.encode())
        if not body:
            kind = "white space"
        elif body.isalpha():
            kind = "starts of words" if starts else "insides of words"
        elif body.isnumeric():
            kind = "numbers"
        else:
            kind = "mixed" if any(char.isalnum() for char in body) else "punctuation and signs"
        counts[kind] += 1
    return {kind: count for kind, count in counts.items() if count}


def _coverage(model: Model) -> dict[str, int]:
    """How many bytes, and how many characters of more than one byte, are entries by themselves."""
    pieces = model.vocab.pieces
    short = [piece for piece in pieces if len(piece) <= 4]
    if isinstance(model, (Unigram, ScoreBPE)):
        in_bytes = int(np.sum(model.kinds == BYTE))
    elif isinstance(model, BPE) and model.unit == "byte":
        in_bytes = sum(len(piece) == 1 for piece in short)
    else:
        in_bytes = 0
    characters = sum(len(piece.decode("utf-8", "ignore")) == 1 and len(piece) > 1 for piece in short)
    return {"bytes": in_bytes, "characters": characters}


def _roles_in(template: str) -> list[str]:
    """The roles that a chat template asks messages about."""
    found = re.findall(r"""role['"]?\s*\]?\s*(?:==|!=)\s*['"](\w+)['"]""", template)
    return list(dict.fromkeys(found))


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


def _render(card: dict[str, Any], tok: Tokenizer) -> None:
    file, training, coverage = card["file"], card["training"], card["coverage"]
    rows = [
        ("file", f"{file['path']}\n{file['format']}, {file['bytes']:,} bytes"),
        ("SHA-256", file["sha256"]),
        ("model", card["family"]),
        ("vocabulary", _vocabulary(card)),
        ("entries", _aligned(card["entries"])),
        ("covers", f"{coverage['bytes']} of 256 bytes" * bool(coverage["bytes"])),
        ("characters", f"{coverage['characters']:,} of more than a byte are entries by themselves"),
        ("special tokens", _listed(card["special_tokens"].items())),
        ("other tokens", _listed(_other_tokens(card))),
        ("roles", SEPARATOR.join(f"{role} {_named(tok, id)}" for role, id in card["roles"].items())),
        ("stages", "\n".join(_stage(row) for row in card["stages"])),
        ("split rule", "\n".join(_pattern(name, regexes) for name, regexes in card["pattern"].items())),
        ("template", _template(card, tok)),
        ("decoder", _settings(card["decode"], "type")),
        ("chat", "\n".join(_chat(name, row) for name, row in card["chat"].items())),
        ("longest", "\n".join(_long(tok, row["id"]) for row in card["longest"][:LONGEST_SHOWN])),
        ("plan", "\n".join(f"{row['step']}: {row['how']} ({row['why']})" for row in card["plan"])),
        ("training", _training(training or {})),
        ("in memory", f"{card['buffers'] / 1e6:,.1f} MB of entries and merges, before what is built for speed"),
        ("fingerprint", card["fingerprint"]),
    ]  # fmt: skip
    common.print_card([(name, value) for name, value in rows if value])


def _vocabulary(card: dict[str, Any]) -> str:
    """How many entries there are of each kind."""
    extra = Counter(row["kind"] for row in card["extra_tokens"])
    parts = [f"{card['vocab']:,} entries", *(f"{count:,} {kind}" for kind, count in extra.items())]
    merges = f", {card['merges']:,} merges" if card["merges"] else ""
    return f"{', of them '.join((parts[0], ', '.join(parts[1:]))) if extra else parts[0]}{merges}\n" + (
        f"n_vocab {card['n_vocab']:,}, {card['mean_bytes']} bytes an entry on average"
    )


def _aligned(counts: dict[str, int]) -> str:
    total = max(sum(counts.values()), 1)
    width = max((len(f"{count:,}") for count in counts.values()), default=0)
    return "\n".join(f"{count:>{width},} {kind} ({count / total:.1%})" for kind, count in counts.items())


def _named(tok: Tokenizer, id: int) -> str:
    return f"{visible(tok.token_piece(id).encode('utf-8', 'surrogatepass'))} ({id})"


def _template(card: dict[str, Any], tok: Tokenizer) -> str:
    rows = (card["template"]["single"], card["template"]["pair"])
    return "\n".join("  ".join(item if isinstance(item, str) else _named(tok, item) for item in row) for row in rows)


def _pattern(name: str, regexes: list[str]) -> str:
    return "\n".join([name or "an expression of its own:", *regexes])


def _chat(name: str, row: dict[str, Any]) -> str:
    roles = f", asks about the roles {', '.join(row['roles'])}" if row["roles"] else ""
    return f"{name}: {row['characters']:,} characters{roles}"


def _long(tok: Tokenizer, id: int) -> str:
    """An entry, a run of one character by how often it is there."""
    data = tok.token_bytes(id)
    text = data.decode("utf-8", "surrogateescape")
    if len(set(text)) == 1:
        return f"{id} {visible(text[:1].encode('utf-8', 'surrogateescape'))} × {len(text)}"
    shown = visible(data)
    more = f"… ({len(data)} bytes)" if len(shown) > SHORTENED else ""
    return f"{id} {shown[:SHORTENED]}{more}"


def _training(training: dict[str, Any]) -> str:
    rows = {name: value for name, value in training.items() if name != "curve"}
    return "\n".join([*(f"{name} {value}" for name, value in rows.items()), curve_line(training)]).strip()


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
    items = [f"{id} {visible(name.encode('utf-8', 'surrogatepass'))}" for name, id in tokens]
    more = [f"… {len(items) - MOST:,} more (--json has all)"] if items[MOST:] else []
    return SEPARATOR.join(items[:MOST] + more)


def _stage(row: dict[str, Any]) -> str:
    return _settings(row, "stage")


def _settings(row: dict[str, Any], name: str) -> str:
    def shown(value: Any) -> str:
        words = visible(value.encode("utf-8", "surrogatepass")) if isinstance(value, str) else str(value)
        return words if len(words) <= SHORTENED else f"{words[:SHORTENED]}…"

    return " ".join([str(row[name]), *(f"{key}={shown(value)}" for key, value in row.items() if key != name)])


def _other_tokens(card: dict[str, Any]) -> list[tuple[str, int]]:
    return [(row["content"], row["id"]) for row in card["extra_tokens"] if row["kind"] != "special"]
