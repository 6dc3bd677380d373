"""The same content in many languages: read from a folder, or the passage that comes with the package.

Three layouts are recognised:

* FLORES-200: folders `dev` and `devtest` (or one of them) with a file a language, `hin_Deva.dev`, aligned by line. As
  in A. Petrov et al. 2023, "Language Model Tokenizers Introduce Unfairness Between Languages", the lines of all files
  of a language are one text, with a space between two; the empty line after a file's last newline is one of them.
* Tatoeba, as its test sets are handed out: two files a pair of languages, `tatoeba.fra-eng.fra` and
  `tatoeba.fra-eng.eng`, aligned by line. Each language has English sentences of its own to be compared with.
* UDHR, and whatever else has a file a language: `hin.txt`, or `udhr_hin.txt` with the head that the project "UDHR in
  Unicode" gives its files, which is left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..arguments import path_of
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
    """`"built-in"`, `"flores"`, `"tatoeba"` or `"udhr"`."""
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
    if any((root / split).is_dir() for split in ("dev", "devtest")):
        return _flores(root, reference)
    if pairs := [found for name in names if (found := _PAIR.fullmatch(name))]:
        return _tatoeba(root, pairs, reference)
    if texts := {name: root / name for name in names if name.endswith(".txt") and not name.startswith(".")}:
        return _udhr(root, texts, reference)
    raise SubwordValueError(
        f"{root}: no parallel texts. Known are dev/CODE.dev and devtest/CODE.devtest (FLORES), NAME.fra-eng.fra with "
        "NAME.fra-eng.eng (Tatoeba), and a file a language, CODE.txt (UDHR)"
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
