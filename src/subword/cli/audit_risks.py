"""More parts of `subword audit`: broken and risky tokens, and security."""

from __future__ import annotations

import json as json_
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ..audits import Security, Tokens, Untrained, model_at, verify
from ..audits import security as measure_security
from ..audits import tokens as measure_tokens
from ..audits import untrained as measure_untrained
from ..embeddings import read_table
from ..errors import SubwordOSError, SubwordValueError
from ..report.audits import plain
from ..report.security import security_part
from ..report.tokens import tokens_part
from . import common
from .audit_common import Asked, TextsArg, command, texts_of
from .audit_parts import audit

__all__ = ["audit"]

ASKED = 100
"""A model is asked about so many suspects: each takes three prompts."""


@command()
def tokens(
    asked: Asked,
    texts: TextsArg = None,
    tokenizer_text: Annotated[
        list[str] | None,
        typer.Option(
            "--tokenizer-text",
            metavar="FILE",
            help="What the tokenizer was trained on; may be repeated.",
            show_default=False,
        ),
    ] = None,
    model_text: Annotated[
        list[str] | None,
        typer.Option(
            "--model-text", metavar="FILE", help="What the model was trained on; may be repeated.", show_default=False
        ),
    ] = None,
    embeddings: Annotated[
        Path | None,
        typer.Option("--embeddings", metavar="FILE", help="The model's table: .npy, .safetensors or .gguf."),
    ] = None,
    tensor: Annotated[
        str | None, typer.Option("--tensor", metavar="NAME", help="Which tensor of that file is the table.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="MODEL",
            help="Ask it to repeat what looks under-trained: a .gguf file, which the package xllamacpp runs, or the "
            "address of a server of llama.cpp.",
        ),
    ] = None,
    field: common.FieldOpt = "text",
) -> None:
    """Broken and risky tokens: those that no text gives and the stage that blocks them, parts of characters, entries
    that a text does not use, and, by the model's embeddings, those that it has hardly seen.

    Of a .gguf --model, the embeddings are read, too. It is asked about the likeliest 100.

    \b
    Examples:
      subword audit tokens tokenizer.json
      subword audit tokens tokenizer.json corpus/ --embeddings model.safetensors
      subword audit tokens tokenizer.json --embeddings model.safetensors --model http://localhost:8080
      subword audit tokens model.gguf --model model.gguf
      subword audit tokens tokenizer.json --tokenizer-text a.txt --model-text b.txt --fail-if "unreachable > 0"
    """  # fmt: skip
    if bool(tokenizer_text) != bool(model_text):
        raise common.UsageError("--tokenizer-text and --model-text belong together: give both or neither")
    if model is not None and embeddings is None:
        if not model.lower().endswith(".gguf"):
            raise common.UsageError("--model asks about what looks under-trained: give --embeddings, too")
        embeddings = Path(model)
    tok = asked.start({"": Tokens} if embeddings is None else {"": Tokens, "untrained": Untrained})
    found = measure_tokens(
        tok,
        texts_of(tok, texts, field),
        tokenizer_text=texts_of(tok, tokenizer_text, field),
        model_text=texts_of(tok, model_text, field),
    )
    table = None if embeddings is None else measure_untrained(tok, read_table(embeddings, tok.n_vocab, tensor))
    if table is not None and table.suspects and model is not None:
        with model_at(model, tok) as next_token:
            tried = verify(tok, table.suspects[:ASKED], next_token)
        table = replace(table, suspects=(*tried, *table.suspects[ASKED:]))
    data: dict[str, Any] = plain(found) | ({} if table is None else {"untrained": plain(table)})
    asked.show(tok, data, [tokens_part(found, table)])


@command()
def security(
    asked: Asked,
    texts: TextsArg = None,
    ids: Annotated[
        Path | None,
        typer.Option("--ids", metavar="FILE", help="Lists of ids to look at: a line each, numbers or a JSON array."),
    ] = None,
    field: common.FieldOpt = "text",
) -> None:
    """What an attacker could use: special tokens in texts that are not trusted, split expressions that take exponential
    time elsewhere, ids that are not what their text encodes to, and signs of tampering.

    \b
    Examples:
      subword audit security tokenizer.json uploads/
      subword audit security tokenizer.json --ids requests.txt --json
    """
    tok = asked.start(Security)
    found = measure_security(tok, texts_of(tok, texts, field), [] if ids is None else _id_lists(ids))
    asked.show(tok, found, [security_part(found)])


def _id_lists(path: Path) -> list[list[int]]:
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError as error:
        raise SubwordOSError(error.errno, error.strerror, str(path)) from error
    rows = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json_.loads(line) if line.lstrip().startswith("[") else [int(each) for each in line.split()]
        except ValueError:
            row = None
        if not isinstance(row, list) or not all(isinstance(id, int) and not isinstance(id, bool) for id in row):
            raise SubwordValueError(f"{path}, line {number}: not ids; write numbers with spaces between, or [1, 2, 3]")
        rows.append(row)
    return rows
