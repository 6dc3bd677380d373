"""The same content in many languages: read from a folder, or the passage that comes with the package.

These layouts are recognised:

* FLORES-200: folders `dev` and `devtest` (or one of them) with a file a language, `hin_Deva.dev`, aligned by line. As
  in A. Petrov et al. 2023, "Language Model Tokenizers Introduce Unfairness Between Languages", the lines of all files
  of a language are one text, with a space between two; the empty line after a file's last newline is one of them.
* FLORES+: files `.parquet` or `.jsonl`, in the folder or in `dev` and `devtest`, with the fields `id`, `iso_639_3`,
  `iso_15924` and `text`; `split`, where there is one. Sentences are aligned by split and id. Where a language has
  several varieties in one script, the field `glottocode` tells them apart.
* Tatoeba, as its test sets are handed out: two files a pair of languages, `tatoeba.fra-eng.fra` and
  `tatoeba.fra-eng.eng`, aligned by line. Each language has English sentences of its own to be compared with.
* Tatoeba, as it exports all it has: `sentences.csv` (a number, a language and a sentence, with tabs between) and
  `links.csv` (the numbers of two sentences that say the same). Each sentence of a language is taken once, with the
  first that it is linked with; a language with fewer than 100 such sentences is left out.
* UDHR, and whatever else has a file a language: `hin.txt`, or `udhr_hin.txt` with the head that the project "UDHR in
  Unicode" gives its files, which is left out.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..arguments import path_of
from ..corpus.tables import pyarrow_or_error
from ..errors import SubwordOSError, SubwordValueError

REFERENCE = "eng"

PASSAGE = Path(__file__).with_name("passage.txt")

NOTE = (
    "The built-in passage: twelve plain sentences, written by a machine and not reviewed by speakers. It ranks "
    "languages much as FLORES and UDHR do; for figures to quote, give a folder of parallel texts."
)


@dataclass(frozen=True, slots=True)
class Parallel:
    """A text, and what says the same in the language of reference."""

    language: str
    """Its code, as the file has it."""
    text: str
    reference: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Collection:
    """Parallel texts, where they are from, and what is to be known of them."""

    source: str
    layout: str
    """`"built-in"`, `"flores"`, `"flores+"`, `"tatoeba"` or `"udhr"`."""
    reference: str
    """The code of the language that all others are compared with."""
    texts: tuple[Parallel, ...]
    note: str = ""


def builtin_passage() -> Collection:
    """The passage of twelve sentences in many languages, written for this project; see `NOTE`."""
    blocks = re.split(r"^\[(\w+)\] (.+)\n", PASSAGE.read_text("utf-8"), flags=re.MULTILINE)[1:]
    texts = {code: (name, " ".join(lines.split("\n")).strip()) for code, name, lines in _threes(blocks)}
    reference = "eng_Latn"
    english = texts[reference][1]
    rows = tuple(Parallel(code, text, english, name) for code, (name, text) in texts.items())
    return Collection("built-in passage", "built-in", reference, rows, NOTE)


def _threes(items: list[str]) -> Iterable[tuple[str, str, str]]:
    return zip(items[::3], items[1::3], items[2::3], strict=True)


def read_parallel(folder: str | os.PathLike[str], reference: str = REFERENCE) -> Collection:
    """The parallel texts in a folder, in one of the layouts that the module names.

    Args:
        reference: the language that all others are compared with: a code (`eng_Latn`), or its first part.

    Raises:
        SubwordOSError: there is no such folder, or a file in it cannot be read.
        SubwordValueError: the folder has no layout that is known, lacks the language of reference, or its files are not
            parallel; the message says which.
    """
    root = Path(path_of(folder))
    if not root.is_dir():
        raise SubwordOSError(2, "no such folder", str(root))
    names = sorted(path.name for path in root.iterdir() if path.is_file())
    if tables := _tables(root):
        return _flores_plus(root, tables, reference)
    if {"sentences.csv", "links.csv"} <= set(names):
        return _tatoeba_export(root, reference)
    if any((root / split).is_dir() for split in ("dev", "devtest")):
        return _flores(root, reference)
    if pairs := [found for name in names if (found := _PAIR.fullmatch(name))]:
        return _tatoeba(root, pairs, reference)
    if texts := {name: root / name for name in names if name.endswith(".txt") and not name.startswith(".")}:
        return _udhr(root, texts, reference)
    raise SubwordValueError(
        f"{root}: no parallel texts. Known are dev/CODE.dev and devtest/CODE.devtest (FLORES), .parquet and .jsonl "
        "files (FLORES+), NAME.fra-eng.fra with NAME.fra-eng.eng, or sentences.csv with links.csv (Tatoeba), and a "
        "file a language, CODE.txt (UDHR)"
    )


def _flores(root: Path, reference: str) -> Collection:
    found: dict[str, dict[str, list[str]]] = {}
    for split in ("dev", "devtest"):
        for path in sorted((root / split).glob(f"*.{split}")):
            found.setdefault(path.name[: -len(split) - 1], {})[split] = _read(path).split("\n")
    first = _find(root, found, reference)
    shape = {split: len(lines) for split, lines in found[first].items()}
    texts = {}
    for code, splits in found.items():
        if (here := {split: len(lines) for split, lines in splits.items()}) != shape:
            told = [", ".join(f"{count} lines in {split}" for split, count in row.items()) for row in (here, shape)]
            raise SubwordValueError(f"{root}: {code} has {told[0]}, {first} has {told[1]}: they are not parallel")
        texts[code] = " ".join(line for lines in splits.values() for line in lines)
    return _of(root, "flores", first, texts)


def _tables(root: Path) -> list[Path]:
    folders = [folder for folder in (root, root / "dev", root / "devtest") if folder.is_dir()]
    return [
        path
        for folder in folders
        for path in sorted(folder.iterdir())
        if path.is_file() and path.suffix.lower() in (".parquet", ".jsonl") and not path.name.startswith(".")
    ]


_NEEDED = ("id", "iso_639_3", "iso_15924", "text")
_OPTIONAL = ("glottocode", "split")


def _flores_plus(root: Path, tables: list[Path], reference: str) -> Collection:
    """A language has the sentences that it has; it is compared with the same ones in the language of reference."""
    found: dict[tuple[str, str], dict[tuple[str, int], str]] = {}
    for path in tables:
        folder = path.parent.name if path.parent != root else path.stem if path.stem in ("dev", "devtest") else ""
        for row in _rows(path):
            place = (str(row.get("split") or folder), int(row["id"]))
            variety = (f"{row['iso_639_3']}_{row['iso_15924']}", str(row.get("glottocode") or ""))
            sentences = found.setdefault(variety, {})
            if place in sentences:
                raise SubwordValueError(
                    f"{path}: {variety[0]} has sentence {place[1]} of {place[0] or 'its text'} twice"
                )
            sentences[place] = str(row["text"])
    several = [code for code, _ in found]
    named = {
        code if several.count(code) == 1 or not variety else f"{code}_{variety}": sentences
        for (code, variety), sentences in found.items()
    }
    first = _find(root, named, reference)
    rows = []
    for code, sentences in named.items():
        both = sorted(sentences.keys() & named[first].keys())
        if not both:
            raise SubwordValueError(f"{root}: {code} and {first} have no sentence in common: they are not parallel")
        rows.append(Parallel(code, " ".join(sentences[at] for at in both), " ".join(named[first][at] for at in both)))
    return Collection(str(root), "flores+", first, tuple(rows))


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a table of FLORES+, with a number for an id and a text that is one."""
    for number, row in _parquet_rows(path) if path.suffix.lower() == ".parquet" else _json_rows(path):
        missing = [name for name in _NEEDED if not isinstance(row, dict) or row.get(name) is None]
        if missing or not isinstance(row["text"], str) or not re.fullmatch(r"[0-9]{1,15}", str(row["id"])):
            problem = f"no {', '.join(missing)}" if missing else "an id that is no number, or a text that is none"
            raise SubwordValueError(f"{path}, row {number}: {problem}; FLORES+ has {', '.join(_NEEDED)}")
        yield row


def _json_rows(path: Path) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(_read(path).split("\n"), 1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError) as error:
                raise SubwordValueError(f"{path}, row {number}: not JSON: {error}") from error


def _parquet_rows(path: Path) -> Iterator[tuple[int, Any]]:
    pa = pyarrow_or_error(f"{path}: to read this file")
    import pyarrow.parquet as pq

    try:
        names = pq.read_schema(path).names
        table = pq.read_table(path, columns=[name for name in (*_NEEDED, *_OPTIONAL) if name in names])
    except pa.ArrowException as error:
        raise SubwordValueError(f"{path}: damaged .parquet file: {' '.join(str(error).split())}") from error
    except OSError as error:
        raise SubwordOSError(error.errno, error.strerror or str(error), str(path)) from error
    yield from enumerate(table.to_pylist(), 1)


MOST_SENTENCES, LEAST_SENTENCES = 1000, 100
"""Of Tatoeba's export, so many sentences of a language are taken; a language with fewer than the least is left out."""


def _tatoeba_export(root: Path, reference: str) -> Collection:
    """The files have some hundred megabytes: they are read line by line, the sentences three times."""
    sentences, links = root / "sentences.csv", root / "links.csv"
    ours = {number for number, code, _ in _cells(sentences, 3) if _is(code, reference)}
    if not ours:
        raise SubwordValueError(
            f"{root}: no sentence in {reference!r}; reference= (--reference) names another language"
        )
    linked: dict[str, str] = {}
    for one, two in _cells(links, 2):
        if two in ours and one not in ours:
            linked.setdefault(one, two)
    taken: dict[str, list[tuple[str, str]]] = {}
    first = reference
    for number, code, text in _cells(sentences, 3):
        if number in ours:
            first = code
        elif number in linked and len(rows := taken.setdefault(code, [])) < MOST_SENTENCES and code.isalpha():
            rows.append((text, linked[number]))
    taken = {code: rows for code, rows in taken.items() if len(rows) >= LEAST_SENTENCES}
    wanted = {number for rows in taken.values() for _, number in rows}
    english = {number: text for number, _, text in _cells(sentences, 3) if number in wanted}
    if not taken:
        raise SubwordValueError(
            f"{root}: no language has {LEAST_SENTENCES} sentences that links.csv links with {reference!r}"
        )
    found = [
        Parallel(code, " ".join(text for text, _ in rows), " ".join(english[number] for _, number in rows))
        for code, rows in sorted(taken.items())
    ]
    return Collection(str(root), "tatoeba", first, tuple(found))


def _cells(path: Path, least: int) -> Iterator[list[str]]:
    """The lines of one of Tatoeba's files, which have tabs between cells and no quotes."""
    try:
        with path.open(encoding="utf-8", newline="\n") as file:
            for number, line in enumerate(file, 1):
                cells = line.rstrip("\r\n").split("\t")
                if len(cells) < least:
                    raise SubwordValueError(f"{path}, line {number}: {len(cells)} cells with tabs between, not {least}")
                yield cells[:least]
    except UnicodeDecodeError as error:
        raise SubwordValueError(f"{path}: not UTF-8 ({error.reason}); convert it first") from error
    except OSError as error:
        raise SubwordOSError(error.errno, error.strerror, str(path)) from error


_PAIR = re.compile(r"(?P<head>.*)\.(?P<one>[A-Za-z_]+)-(?P<two>[A-Za-z_]+)\.(?:(?P=one)|(?P=two))")


def _tatoeba(root: Path, pairs: Iterable[re.Match[str]], reference: str) -> Collection:
    rows = {}
    first = ""
    for head, one, two in sorted({pair.group("head", "one", "two") for pair in pairs}):
        ours = [code for code in (one, two) if _is(code, reference)]
        if len(ours) != 1:
            continue
        first = ours[0]
        code = two if first == one else one
        text, english = (_read(root / f"{head}.{one}-{two}.{which}").split("\n") for which in (code, first))
        if len(text) != len(english):
            told = f"{len(text)} lines of {code}, {len(english)} of {first}"
            raise SubwordValueError(f"{root}/{head}.{one}-{two}: {told}: they are not parallel")
        rows[code] = Parallel(code, " ".join(text), " ".join(english))
    if not rows:
        raise SubwordValueError(f"{root}: no pair of files has {reference!r}; reference= (--reference) names another")
    return Collection(str(root), "tatoeba", first, tuple(rows.values()))


def _udhr(root: Path, files: dict[str, Path], reference: str) -> Collection:
    texts = {}
    for name, path in files.items():
        text = _read(path)
        if name.startswith("udhr_"):
            text = re.sub(r"\A(?:.*\n){1,8}?---+\n+", "", text)
        texts[name.removeprefix("udhr_").removesuffix(".txt")] = text.strip()
    return _of(root, "udhr", _find(root, texts, reference), texts)


def _of(root: Path, layout: str, first: str, texts: dict[str, str]) -> Collection:
    for code, text in texts.items():
        if not text.strip():
            raise SubwordValueError(f"{root}: the text in {code} is empty")
    rows = tuple(Parallel(code, text, texts[first]) for code, text in texts.items())
    return Collection(str(root), layout, first, rows)


def _find(root: Path, codes: Iterable[str], reference: str) -> str:
    """The code of the language of reference."""
    codes = list(codes)
    found = [code for code in codes if code == reference] or [code for code in codes if _is(code, reference)]
    if len(found) != 1:
        problem = "no text" if not found else f"{len(found)} texts ({', '.join(found)})"
        there = ", ".join(codes[:12]) + (" …" if codes[12:] else "")
        raise SubwordValueError(
            f"{root}: {problem} in {reference!r}, which the others are to be compared with; reference= (--reference) "
            f"names another of {there or 'none'}"
        )
    return found[0]


def _is(code: str, reference: str) -> bool:
    """
    >>> _is("eng_Latn", "eng"), _is("en", "eng"), _is("enm", "eng"), _is("por_PT", "por_PT")
    (True, True, False, True)
    """
    return code == reference or re.split("[_-]", code)[0] in {reference, {"eng": "en"}.get(reference, reference)}


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise SubwordValueError(f"{path}: not UTF-8 (byte {error.start}); convert it first") from error
    except OSError as error:
        raise SubwordOSError(error.errno, error.strerror, str(path)) from error
