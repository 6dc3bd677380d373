"""What code costs: indentation, names, what is always the same and what is new, comments, and how data is written.

All of it is measured on texts that come with the package, so that two tokenizers can be compared; and on files of the
user's own, beside another tokenizer, if there are any.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..arguments import list_of
from ..engine import text_bytes
from ..errors import SubwordValueError
from ..special import find_fim
from ..tokenizer import Text, Tokenizer
from .vocabulary import spelled

PROGRAMS = Path(__file__).with_name("programs.txt")

DEPTHS = 8

STYLES = {"2 spaces": "  ", "4 spaces": "    ", "tab": "\t"}
"""Ways to indent by a level."""

NAMES = (
    ("user", "name"), ("file", "path"), ("max", "retry", "count"), ("get", "response", "body"), ("is", "valid"),
    ("parse", "http", "header"), ("average", "wait", "time"), ("image", "width"), ("total", "order", "price"),
    ("send", "email", "message"), ("last", "modified", "date"), ("error", "handler"), ("create", "table", "row"),
    ("load", "config", "from", "disk"), ("thread", "pool", "size"), ("find", "nearest", "neighbor"),
)  # fmt: skip
"""Names of things in programs, by their words."""

CONVENTIONS = ("snake_case", "camelCase", "PascalCase", "SCREAMING_SNAKE_CASE", "kebab-case")

BOILERPLATE = (
    "#include <stdio.h>\n", "public static void main(String[] args) {\n", 'if __name__ == "__main__":\n',
    "import numpy as np\n", "using namespace std;\n", "<!DOCTYPE html>\n", "const express = require('express');\n",
    "def __init__(self):\n", "SELECT * FROM users WHERE id = 1;\n", "for (int i = 0; i < n; i++) {\n",
)  # fmt: skip
"""Lines that stand in countless files."""

NOVEL = (
    "#include <quorum_ledger.h>\n", "protected final Tariff reprice(Voucher[] lapsed) {\n",
    'if self.gauge == "__brim__":\n', "import wharfkit as wk\n", "using namespace heliograph;\n",
    "<!ENTITY moraine>\n", "const isthmus = require('gablewright');\n", "def rebalance_silo(self, ewe):\n",
    "SELECT skein FROM looms WHERE warp = 7;\n", "for (short k = 9; k > dregs; k--) {\n",
)  # fmt: skip
"""Lines of the same kinds that, with these names, stand in hardly any."""

RECORDS: tuple[dict[str, Any], ...] = (
    {"id": 1, "name": "Garden chair", "price": 49.9, "stock": 12, "outdoor": True, "material": "teak"},
    {"id": 2, "name": "Reading lamp", "price": 24.5, "stock": 40, "outdoor": False, "material": "steel"},
    {"id": 3, "name": "Picnic table", "price": 189.0, "stock": 3, "outdoor": True, "material": "pine"},
    {"id": 4, "name": "Book shelf", "price": 75.25, "stock": 9, "outdoor": False, "material": "oak"},
    {"id": 5, "name": "Rain barrel", "price": 62.0, "stock": 17, "outdoor": True, "material": "plastic"},
    {"id": 6, "name": "Wall clock", "price": 18.75, "stock": 58, "outdoor": False, "material": "glass"},
)
"""Data to be written in several ways."""


@dataclass(frozen=True, slots=True)
class Indentation:
    """What a level of indentation costs, by depth."""

    style: str
    tokens: tuple[int, ...]
    """Tokens that a line takes more than without indentation, at depth 1, 2, … `DEPTHS`."""


@dataclass(frozen=True, slots=True)
class Convention:
    """The same names, written in one way."""

    name: str
    example: str
    pieces: tuple[bytes, ...]
    tokens: float
    """Of a name, on average."""


@dataclass(frozen=True, slots=True)
class Program:
    """The program in one language."""

    language: str
    tokens: int
    bytes: int
    lines: int
    tokens_per_line: float
    comments: float
    """The share of tokens that its comments take."""
    indentation: float
    """The share of tokens that the white space before its lines takes."""


@dataclass(frozen=True, slots=True)
class Written:
    """The same data in one format."""

    format: str
    tokens: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Files:
    """Files with one tokenizer."""

    tokenizer: str
    tokens: int
    bytes: int
    bytes_per_token: float


@dataclass(frozen=True, slots=True)
class Code:
    """What code costs with a tokenizer."""

    indentation: tuple[Indentation, ...]
    space_runs: tuple[int, ...]
    """The lengths of the entries that are nothing but spaces."""
    tab_runs: tuple[int, ...]
    """The same of tabs."""
    newline_runs: int
    """How many entries are newlines and white space, and nothing else."""
    conventions: tuple[Convention, ...]
    boilerplate: float
    """Bytes a token of lines that stand in countless files."""
    novel: float
    """The same of such lines with names that are new."""
    programs: tuple[Program, ...]
    formats: tuple[Written, ...]
    """From the fewest tokens to the most."""
    fim: tuple[str, ...]
    """The tokens for filling in the middle; empty where there are none that are known."""
    files: tuple[Files, ...]
    """The given files, or else the programs: with the tokenizer and with each of the others."""
    source: str


def code(
    tok: Tokenizer,
    texts: Iterable[Text] = (),
    *,
    name: str = "tokenizer",
    source: str = "text",
    others: Mapping[str, Tokenizer] | None = None,
) -> Code:
    """Measure what code costs. What looks like a special token is text.

    Args:
        texts: files to compare on; the programs that come with the package if there are none.
        name, source: what to call the tokenizer and the texts.
        others: tokenizers to compare with, such as one that was trained on code.
    """
    programs = read_programs()
    given = [text_bytes(text) for text in list_of("texts", texts)]
    compared = given or [text.encode() for _, _, text in programs]
    if not any(compared):
        raise SubwordValueError(f"{source}: there is no text to measure")
    runs = _runs(tok)
    return Code(
        indentation=tuple(_indentation(tok, style, unit) for style, unit in STYLES.items()),
        space_runs=runs[0],
        tab_runs=runs[1],
        newline_runs=runs[2],
        conventions=tuple(_convention(tok, name) for name in CONVENTIONS),
        boilerplate=_bytes_per_token(tok, BOILERPLATE),
        novel=_bytes_per_token(tok, NOVEL),
        programs=tuple(_program(tok, *program) for program in programs),
        formats=_formats(tok),
        fim=_fim(tok),
        files=tuple(_files(label, each, compared) for label, each in {name: tok, **(others or {})}.items()),
        source=source if given else "one program in ten languages",
    )


def read_programs() -> list[tuple[str, str, str]]:
    """The program that comes with the package: in each language its name, the mark of a comment, and the text."""
    blocks = re.split(r"^\[(\S+)\] (\S+)\n", PROGRAMS.read_text("utf-8"), flags=re.MULTILINE)[1:]
    return [
        (language, mark, text.strip("\n") + "\n")
        for language, mark, text in zip(blocks[::3], blocks[1::3], blocks[2::3], strict=True)
    ]


def _count(tok: Tokenizer, text: str) -> int:
    return tok.count(text, allowed_special=set(), disallowed_special=())


def _bytes_per_token(tok: Tokenizer, lines: Sequence[str]) -> float:
    return sum(len(line.encode()) for line in lines) / sum(_count(tok, line) for line in lines)


def _indentation(tok: Tokenizer, style: str, unit: str) -> Indentation:
    """Of a line in the middle of others, as the newline before it may be of one token with the indentation."""
    plain = _count(tok, "begin:\nreturn value\n")
    costs = [_count(tok, f"begin:\n{unit * depth}return value\n") - plain for depth in range(1, DEPTHS + 1)]
    return Indentation(style, tuple(costs))


def _runs(tok: Tokenizer) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    spaces, tabs, newlines = [], [], 0
    for _, piece in spelled(tok):
        if piece and not piece.strip(b" \t\r\n"):
            if not piece.strip(b" "):
                spaces.append(len(piece))
            elif not piece.strip(b"\t"):
                tabs.append(len(piece))
            elif b"\n" in piece:
                newlines += 1
    return tuple(sorted(spaces)), tuple(sorted(tabs)), newlines


def spelt(words: Sequence[str], convention: str) -> str:
    """A name by its words, in a naming convention.

    >>> [spelt(("max", "size"), name) for name in CONVENTIONS]
    ['max_size', 'maxSize', 'MaxSize', 'MAX_SIZE', 'max-size']
    """
    if convention == "camelCase":
        return words[0] + "".join(word.capitalize() for word in words[1:])
    if convention == "PascalCase":
        return "".join(word.capitalize() for word in words)
    if convention == "SCREAMING_SNAKE_CASE":
        return "_".join(words).upper()
    return ("-" if convention == "kebab-case" else "_").join(words)


def _convention(tok: Tokenizer, name: str) -> Convention:
    """Names stand behind a space, as they mostly do."""
    tokens = [_count(tok, " " + spelt(words, name)) for words in NAMES]
    example = spelt(NAMES[2], name)
    pieces = tuple(map(tok.token_bytes, tok.encode_ordinary(" " + example)))
    return Convention(name, example, pieces, sum(tokens) / len(tokens))


def _program(tok: Tokenizer, language: str, mark: str, text: str) -> Program:
    tokens = _count(tok, text)
    without = re.sub(rf"^[ \t]*{re.escape(mark)} .*\n", "", text, flags=re.MULTILINE)
    flat = re.sub(r"^[ \t]+", "", text, flags=re.MULTILINE)
    lines = text.count("\n")
    return Program(
        language=language,
        tokens=tokens,
        bytes=len(text.encode()),
        lines=lines,
        tokens_per_line=tokens / lines,
        comments=1 - _count(tok, without) / tokens,
        indentation=1 - _count(tok, flat) / tokens,
    )


def _formats(tok: Tokenizer) -> tuple[Written, ...]:
    found = [Written(name, _count(tok, text), len(text.encode())) for name, text in written().items()]
    return tuple(sorted(found, key=lambda row: row.tokens))


def written() -> dict[str, str]:
    """`RECORDS` in several formats."""
    rows = list(RECORDS)
    names = list(rows[0])
    table = [names, *([_scalar(row[name]) for name in names] for row in rows)]
    yaml = "".join(
        f"{'- ' if at == 0 else '  '}{name}: {_scalar(row[name])}\n" for row in rows for at, name in enumerate(names)
    )
    body = "".join(
        "  <item>\n" + "".join(f"    <{name}>{_scalar(row[name])}</{name}>\n" for name in names) + "  </item>\n"
        for row in rows
    )
    return {
        "JSON": json.dumps(rows, indent=2) + "\n",
        "minified JSON": json.dumps(rows, separators=(",", ":")),
        "YAML": yaml,
        "XML": f'<?xml version="1.0" encoding="UTF-8"?>\n<items>\n{body}</items>\n',
        "CSV": "".join(",".join(cells) + "\n" for cells in table),
    }


def _scalar(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _fim(tok: Tokenizer) -> tuple[str, ...]:
    try:
        return tuple(find_fim({token.content: token.id for token in tok.spec.extra}))
    except SubwordValueError:
        return ()


def _files(name: str, tok: Tokenizer, data: list[bytes]) -> Files:
    tokens = sum(tok.count_batch(data, allowed_special=set(), disallowed_special=()))
    size = sum(map(len, data))
    return Files(name, tokens, size, size / tokens)
