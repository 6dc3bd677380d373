"""`subword count`: how many tokens."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from ..corpus import name_of
from ..errors import SubwordValueError
from ..provider import PROVIDERS, Provider
from ..tokenizer import load
from . import common


@dataclass(slots=True)
class Total:
    """What was counted in one file, or in all of them."""

    name: str
    texts: int = 0
    tokens: int = 0
    bytes: int = 0
    characters: int = 0

    @property
    def bytes_per_token(self) -> float | None:
        return round(self.bytes / self.tokens, 3) if self.tokens else None

    def add(self, other: Total) -> None:
        self.texts += other.texts
        self.tokens += other.tokens
        self.bytes += other.bytes
        self.characters += other.characters

    def row(self) -> dict[str, object]:
        return {
            "file": self.name,
            "texts": self.texts,
            "tokens": self.tokens,
            "bytes": self.bytes,
            "characters": self.characters,
            "bytes_per_token": self.bytes_per_token,
        }


def count(
    tokenizer: Annotated[
        str | None,
        typer.Argument(
            metavar="TOKENIZER", help="A tokenizer file or known name; none with --provider.", show_default=False
        ),
    ] = None,
    files: common.FilesArg = None,
    text: common.TextOpt = None,
    allow_special: common.AllowOpt = None,
    ordinary: common.OrdinaryOpt = False,
    provider: Annotated[
        str | None,
        typer.Option(
            "--provider",
            metavar="NAME",
            parser=common.one_of(*PROVIDERS),
            show_default=False,
            help=f"Ask a provider's counting endpoint instead of a tokenizer: {', '.join(PROVIDERS)}.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="NAME", help="The provider's model.", show_default=False),
    ] = None,
    add_special_tokens: common.BothEndsOpt = False,
    threads: common.ThreadsOpt = None,
    field: common.FieldOpt = "text",
    stdin_format: common.StdinOpt = "text",
    pattern: common.PatternOpt = None,
    regex: common.RegexOpt = None,
    special: common.SpecialOpt = None,
    progress: common.ProgressOpt = "auto",
    json: common.JsonOpt = False,
) -> None:
    """Count tokens, bytes and characters, by file and in all.

    On a terminal a table; through a pipe the same with tabs, a heading first and the total last. --json prints
    {"files": [...], "total": {...}}.

    With --provider anthropic there is no TOKENIZER: each file is sent to Anthropic's counting endpoint, as one message,
    through the provider's own package (pip install "subword[anthropic]") and with your key (ANTHROPIC_API_KEY). Tokens
    are those of the text; what marks a message is told beside them.

    \b
    Examples:
      subword count tokenizer.json book.txt notes/
      subword count tokenizer.json --text "How long is this?"
      subword count tokenizer.json corpus/*.jsonl.zst --field content --json
      git diff | subword count tokenizer.json
      subword count --provider anthropic --model MODEL CLAUDE.md
    """
    if provider is not None:
        if allow_special or ordinary or add_special_tokens or pattern or regex or special:
            raise common.UsageError("--provider counts as the provider does: options of tokenizers say nothing to it")
        if model is None:
            raise common.UsageError("--provider needs --model NAME: each model counts in its own way")
        _by_provider(
            Provider(provider, model),
            common.Input([*filter(None, [tokenizer]), *(files or ())] or None, text, field, stdin_format),
            json,
        )
        return
    if tokenizer is None or model is not None:
        raise common.UsageError("name a TOKENIZER" if tokenizer is None else "--model is for --provider")
    source = common.Input(files, text, field, stdin_format)
    tok = load(tokenizer, **common.left_out(pattern, regex, special))
    how = common.policy(tok, allow_special, ordinary)
    how["add_special_tokens"] = add_special_tokens
    totals: dict[str, Total] = {}
    with common.progress(how=progress) as report, common.ticking("count", source.size, report) as tick:
        documents = source.documents(add_special_tokens or common.must_stay_whole(tok), tick)
        for batch in common.batches(documents):
            with common.naming_special(tok, batch, how):
                counts = iter(tok.count_batch([part for _, part in batch if part is not None], threads=threads, **how))
            for document, part in batch:
                name = name_of(document.path)
                total = totals.setdefault(name, Total(name))
                if part is None:
                    total.texts += 1
                else:
                    total.add(Total(name, 0, next(counts), len(part), len(part.decode("utf-8", "replace"))))
    _render(list(totals.values()), json)


def _by_provider(provider: Provider, source: common.Input, json: bool) -> None:
    """Each document is one message; what a message takes beside its text is told apart."""
    totals: dict[str, Total] = {}
    for document in source.documents(whole=True):
        name = name_of(document.path)
        data = b"".join(document.parts)
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise SubwordValueError(f"{name}: not UTF-8 (byte {error.start}): a provider takes text only") from error
        totals.setdefault(name, Total(name)).add(Total(name, 1, provider.count(text), len(data), len(text)))
    first, more = provider.overhead
    overhead = {"message": first, "further_message": more}
    _render(list(totals.values()), json, {"provider": "anthropic", "model": provider.model, "overhead": overhead})
    if not json:
        told = (
            f"{provider.model} adds {first:,} tokens to a request with one message, and {more:,} with each further one"
        )
        print(told, file=sys.stderr)


def _render(totals: list[Total], json: bool, about: dict[str, Any] | None = None) -> None:
    everything = Total("total")
    for total in totals:
        everything.add(total)
    if json:
        common.print_json({"files": [total.row() for total in totals], "total": everything.row(), **(about or {})})
        return
    lines = totals + ([everything] if len(totals) != 1 else [])
    headings = list(everything.row())
    if not sys.stdout.isatty():
        common.print_tsv(*headings)
        for total in lines:
            common.print_tsv(*("" if cell is None else cell for cell in total.row().values()))
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        table.add_column(heading.replace("_", " "), justify="left" if heading == "file" else "right")
    for total in lines:
        name, *numbers, ratio = total.row().values()
        cells = [f"{number:,}" for number in numbers] + ["" if ratio is None else f"{ratio:.2f}"]
        table.add_row(Text(str(name)), *cells, style="bold" if total is everything else "")
    common.console().print(table)
