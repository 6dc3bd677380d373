"""`subword count`: how many tokens."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from rich import box
from rich.table import Table
from rich.text import Text

from ..corpus import name_of
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
    tokenizer: common.TokenizerArg,
    files: common.FilesArg = None,
    text: common.TextOpt = None,
    allow_special: common.AllowOpt = None,
    ordinary: common.OrdinaryOpt = False,
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

    \b
    Examples:
      subword count tokenizer.json book.txt notes/
      subword count tokenizer.json --text "How long is this?"
      subword count tokenizer.json corpus/*.jsonl.zst --field content --json
      git diff | subword count tokenizer.json
    """
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


def _render(totals: list[Total], json: bool) -> None:
    everything = Total("total")
    for total in totals:
        everything.add(total)
    if json:
        common.print_json({"files": [total.row() for total in totals], "total": everything.row()})
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
