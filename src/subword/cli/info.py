"""`subword info`: what a tokenizer is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..patterns import PATTERNS
from ..report.terminal import visible
from ..spec import Spec, Split, SplitRegex
from ..tokenizer import Tokenizer, load
from . import common

LONGEST = 12
MOST = 20


def info(tokenizer: common.TokenizerArg, json: common.JsonOpt = False) -> None:
    """Describe a tokenizer.

    Its model and vocabulary, special tokens, stages from text to ids, and how it is run here and why. --json has the
    same and more.

    \b
    Examples:
      subword info tokenizer.json
      subword info tokenizer.json --json | jq .special_tokens
    """
    card = describe(load(tokenizer))
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
        "merges": len(spec.model.merges),
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
        ("model", model["type"] + f", by {model['priority']}" + (", ignore_merges" if model["ignore_merges"] else "")),
        ("vocabulary", f"{card['vocab']:,} entries, {card['merges']:,} merges, n_vocab {card['n_vocab']:,}"),
        ("special tokens", _listed(card["special_tokens"].items())),
        ("other tokens", _listed(_other_tokens(card))),
        ("roles", "  ".join(f"{role} {id}" for role, id in card["roles"].items())),
        ("stages", "\n".join(_stage(row) for row in card["stages"])),
        ("pattern", "\n".join(regex for regexes in card["pattern"].values() for regex in regexes)),
        ("template", "  ".join(map(str, card["template"]["single"]))),
        ("longest", "\n".join(f"{row['id']} {row['shown']}" for row in card["longest"])),
        ("plan", "\n".join(f"{row['step']}: {row['how']} ({row['why']})" for row in card["plan"])),
        ("training", "\n".join(f"{name} {value}" for name, value in (training or {}).items())),
        ("fingerprint", card["fingerprint"]),
    ]  # fmt: skip
    common.print_card([(name, value) for name, value in rows if value])


def _listed(tokens: Iterable[tuple[str, int]]) -> str:
    lines = [f"{id} {visible(name.encode('utf-8', 'surrogatepass'))}" for name, id in tokens]
    return "\n".join(lines[:MOST]) + (f"\n… and {len(lines) - MOST:,} more (--json has all)" if lines[MOST:] else "")


def _stage(row: dict[str, Any]) -> str:
    return str(row["stage"]) + "".join(f" {name}={value}" for name, value in row.items() if name != "stage")


def _other_tokens(card: dict[str, Any]) -> list[tuple[str, int]]:
    return [(row["content"], row["id"]) for row in card["extra_tokens"] if row["kind"] != "special"]
