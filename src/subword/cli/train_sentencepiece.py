"""What `subword train` does for the kinds of model that SentencePiece has, under its names of options."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from .. import counting, counts
from ..arguments import byte_count
from ..corpus import find_files, size_on_disk
from ..report.progress import How, Report
from ..report.terminal import visible
from ..tokenizer import Tokenizer
from ..training_sentencepiece import train_sentencepiece
from . import common

MODEL_TYPES = {
    "unigram": "unigram",
    "sentencepiece-bpe": "bpe",
    "sentencepiece-word": "word",
    "sentencepiece-char": "char",
}
"""The names of the command line, and SentencePiece's."""

HELD_BY = (".model", ".subword")
"""The formats that hold sums in 32 bits."""

TAKEN = (
    *(
        "out",
        "files",
        "vocab_size",
        "algorithm",
        "special",
        "bos",
        "eos",
        "pad",
        "set_",
        "threads",
        "counted",
        "memory",
    ),
    *("field", "errors", "stdin_format", "force", "progress", "json"),
)
"""The options of `subword train` that go with these."""

_OWN = ("texts", "files", "counts", "vocab_size", "model_type", "field", "errors", "memory", "threads", "progress")
OPTIONS = {
    name: str(own.annotation)
    for name, own in inspect.signature(train_sentencepiece).parameters.items()
    if name not in _OWN
}
"""What `--set` can say, with types as they stand in the source."""


def options_of(items: Iterable[str]) -> dict[str, Any]:
    """What `--set` says, a list as texts between commas.

    >>> options_of(["character_coverage=0.99", "split_digits=true", "control_symbols=<a>,<b>"])
    {'character_coverage': 0.99, 'split_digits': True, 'control_symbols': ['<a>', '<b>']}
    """
    options: dict[str, Any] = {}
    for item in items:
        name, equals, value = item.partition("=")
        name = name.strip().removeprefix("--")
        if not equals or name not in OPTIONS:
            raise common.UsageError(f"--set {item!r}: write NAME=VALUE; the names are {', '.join(OPTIONS)}")
        kind = OPTIONS[name].split(" ")[0]
        try:
            options[name] = _value(kind, value)
        except ValueError:
            wanted = {"bool": "true or false", "int": "a whole number", "float": "a number"}[kind]
            raise common.UsageError(f"--set {item!r}: {name} is {wanted}") from None
    return options


_FLAGS = {"true": True, "1": True, "false": False, "0": False}


def _value(kind: str, text: str) -> Any:
    if kind == "bool":
        if text.lower() not in _FLAGS:
            raise ValueError(text)
        return _FLAGS[text.lower()]
    if kind in ("int", "float"):
        return int(text) if kind == "int" else float(text)
    return [part for part in text.split(",") if part] if kind.startswith("Iterable") else text


def train(
    algorithm: str,
    files: Iterable[str],
    counted: list[Path] | None,
    vocab_size: int | None,
    special: list[str] | None,
    roles: dict[str, str | None],
    items: list[str] | None,
    memory: str | None,
    threads: int | None,
    field: str,
    errors: Literal["keep", "strict", "replace"],
    stdin_format: str,
    progress: How,
) -> Tokenizer:
    """Special tokens are control symbols; one that fills up batches gets the id 3, where `--set` says no other."""
    options: dict[str, Any] = {f"{role}_piece": token for role, token in roles.items() if token is not None}
    if "pad_piece" in options:
        options["pad_id"] = 3
    given = options_of(items or ())
    if special:
        given["control_symbols"] = [*special, *given.get("control_symbols", ())]
    whole = counts.Splitting("none")
    limit = None if memory is None else byte_count("--memory", memory)
    found = find_files(files) if not counted else []
    size = size_on_disk(found) if found else None
    with common.progress(how=progress) as report, common.ticking("count", size, report) as tick:
        learning: Report | None = report and (
            lambda stage, done, total: None if stage == "count" else report(stage, done, total)
        )
        texts = chain.from_iterable(counting.texts_in(found, whole, field, limit, tick, stdin_format, errors))
        source: dict[str, Any] = {"counts": counted} if counted else {"texts": texts}
        return train_sentencepiece(
            **source,
            vocab_size=vocab_size,
            model_type=MODEL_TYPES[algorithm],  # type: ignore[arg-type]
            memory=limit,
            threads=threads,
            progress=learning,
            **{**options, **given},
        )


def first_entries(tok: Tokenizer, most: int) -> list[str]:
    """The first that were learned."""
    model = tok.spec.model
    kinds: list[int] = model.kinds.tolist()  # type: ignore[union-attr]
    learned = (id for id, kind in zip(model.vocab.ids.tolist(), kinds, strict=True) if kind == 0)
    return [visible(tok.token_bytes(id)) for id, _ in zip(learned, range(most), strict=False)]


def check(algorithm: str, out: Path, told: Iterable[str]) -> None:
    """Refuse what does not go together, before the work begins. `told`: the options that were given, by their names."""
    ours = algorithm in MODEL_TYPES
    if not ours:
        if "set_" in told:
            raise common.UsageError(f"--set is for {', '.join(MODEL_TYPES)}; --algorithm {algorithm} has other options")
        if out.name.lower().endswith(".model"):
            raise common.UsageError(
                f"--out {out}: .model is SentencePiece's format, for {', '.join(MODEL_TYPES)}; choose another name, "
                f"such as {out.with_suffix('.json').name}"
            )
        return
    needless = sorted(f"--{name.replace('_', '-')}" for name in told if name not in TAKEN)
    if needless:
        raise common.UsageError(
            f"--algorithm {algorithm} does not take {', '.join(needless)}; its own options are said with --set, by "
            f"their names: {', '.join(OPTIONS)}"
        )
    if not out.name.lower().endswith(HELD_BY):
        raise common.UsageError(
            f"--out {out}: what {algorithm} gives is held by {' and '.join(HELD_BY)}; subword convert makes other "
            "files of it, where they can hold it"
        )
