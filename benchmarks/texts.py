"""The texts that the benchmarks run on: found on the machine or made from a fixed seed, so that nothing is downloaded.

`corpora` and `hostile` give lists of documents by the name of the case.
"""

from __future__ import annotations

import ast
import gettext
import random
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path

MB = 1_000_000
STDLIB = Path(sysconfig.get_paths()["stdlib"])
LOCALES = (Path(sysconfig.get_paths()["data"], "share", "locale"), Path("/usr/share/locale"))


def corpora(limit: int, data: Path | None = None) -> dict[str, list[str]]:
    """Real text, up to `limit` bytes a case."""
    found = {"English": docstrings(), "Python": python_source(), "translations": translations()}
    if data:
        found |= {path.stem: text_file(path) for path in sorted(data.glob("*.txt"))}
    cases = {name: take(documents, limit) for name, documents in found.items()}
    return {name: documents for name, documents in cases.items() if size(documents) > 200_000}


def short_lines(count: int) -> list[str]:
    """Different lines of English, each about as long as a chat message or a search."""
    lines = dict.fromkeys(line.strip() for text in docstrings() for line in text.splitlines())
    return [line for line in lines if 40 <= len(line) <= 80][:count]


def hostile(length: int) -> dict[str, list[str]]:
    """One text a case, about `length` bytes long, that a split pattern cuts nowhere or nearly so."""
    draw = random.Random(20260101)
    frequent = [chr(0x4E00 + draw.randrange(20_000)) for _ in range(3_000)]
    weights = [1 / rank for rank in range(1, len(frequent) + 1)]
    return {
        "one letter": ["a" * length],
        "spaces": [" " * length],
        "random letters": ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=length))],
        "digits": ["".join(draw.choices("0123456789", k=length))],
        "unbroken Chinese": ["".join(draw.choices(frequent, weights, k=length // 3))],
    }


def python_source() -> Iterator[str]:
    """The source files of the standard library, in an order that mixes its packages."""
    paths = sorted(path for path in STDLIB.rglob("*.py") if "site-packages" not in path.parts)
    random.Random(0).shuffle(paths)
    for path in paths:
        try:
            yield path.read_text("utf-8")
        except UnicodeDecodeError:
            continue


def docstrings() -> Iterator[str]:
    """English prose: for each module of the standard library, all its docstrings."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for source in python_source():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, documented)]
        except (SyntaxError, ValueError, RecursionError):
            continue
        if text := "\n\n".join(filter(None, map(ast.get_docstring, nodes))):
            yield text


def translations() -> Iterator[str]:
    """Programs' messages in many languages, where the machine has any: one document a catalogue."""
    paths = sorted(path for folder in LOCALES for path in folder.glob("*/LC_MESSAGES/*.mo"))
    random.Random(0).shuffle(paths)
    for path in paths:
        try:
            with path.open("rb") as file:
                messages = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
        except (OSError, ValueError, LookupError):
            continue
        yield "\n".join(message for message in messages.values() if isinstance(message, str))


def text_file(path: Path, about: int = 10_000) -> Iterator[str]:
    """A file, cut at line ends into documents of about so many characters."""
    lines: list[str] = []
    held = 0
    for line in path.read_text("utf-8").splitlines(keepends=True):
        lines.append(line)
        held += len(line)
        if held >= about:
            yield "".join(lines)
            lines, held = [], 0
    if lines:
        yield "".join(lines)


def take(documents: Iterator[str], limit: int) -> list[str]:
    """The documents that fit into `limit` bytes together, the first ones first."""
    taken: list[str] = []
    left = limit
    for document in documents:
        if len(document.encode()) <= left:
            taken.append(document)
            left -= len(document.encode())
        if left < limit // 1000:
            break
    return taken


def size(documents: list[str]) -> int:
    """Bytes of UTF-8."""
    return sum(len(document.encode()) for document in documents)
