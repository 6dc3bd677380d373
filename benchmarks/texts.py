"""The texts that the benchmarks run on: found on the machine or made from a fixed seed, so that nothing is downloaded.

`prepare` writes a text as a list of documents of about 10 KB, cut at line ends, the same list for every library. A
kind of text (a row of `KINDS`) is made of files of the data folder (`--data DIR`, or `shared/data` beside the project)
and then of what any machine has: sources and docstrings of Python, message catalogues of programs. Where there is
neither, it is words made up from the letters of the script.

Where that is less than a case needs, the rest is *recombined*: snippets cut out anywhere and put together anew. No
cache sees a text twice then, and there are new words at every seam; but the other words are those of the text found.
How much was found is in the results.
"""

from __future__ import annotations

import ast
import functools
import gettext
import gzip
import hashlib
import json
import os
import random
import sysconfig
import unicodedata
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MB = 1_000_000
ROOT = Path(__file__).parent.parent
WORK = ROOT / "build" / "benchmarks"
SEED = 20260101
DOCUMENT = 10_000  # about so many bytes

PATHS = sysconfig.get_paths()
STDLIB = Path(PATHS["stdlib"])
PACKAGES = Path(PATHS["purelib"])
LOCALES = (Path(PATHS["data"], "share", "locale"), Path("/usr/share/locale"))
SHELVES = (STDLIB, PACKAGES, *(Path("/usr/share", name) for name in ("doc", "man", "perl", "perl5")))
READABLE = {
    ".py",
    ".pyi",
    ".txt",
    ".md",
    ".rst",
    ".html",
    ".pm",
    ".pod",
    ".js",
    ".css",
    ".h",
    ".c",
    ".cpp",
    ".csv",
    ".gz",
}

Lines = Iterator[str]


@dataclass(frozen=True)
class Kind:
    """A kind of text."""

    files: tuple[str, ...] = ()  # in the data folder
    script: str = ""  # of these, only lines whose letters are mostly of it: how the letters' Unicode names begin
    found: Callable[[], Lines] | None = None  # what any machine has
    letters: str = ""  # to make words of where nothing is found
    change: Callable[[Lines], Lines] | None = None  # what is done to the lines
    snippet: int = 400  # characters of a piece that is recombined: few where words are not set apart, and runs are long


def data_folder(given: Path | None = None) -> Path | None:
    """The folder of real text: the one given, or `data` in the folder that SUBWORD_SHARED names, or in `shared`."""
    folder = given or Path(os.environ.get("SUBWORD_SHARED") or ROOT.parent / "shared") / "data"
    if given and not folder.is_dir():
        raise SystemExit(f"--data {given}: there is no such folder")
    return folder if folder.is_dir() else None


# ======================== what any machine has ========================


def files_under(folder: Path, suffixes: set[str]) -> Iterator[tuple[Path, str]]:
    """Text files and what is in them, in an order that mixes their folders."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix in suffixes)
    random.Random(SEED).shuffle(paths)
    for path in paths:
        if folder == STDLIB and "site-packages" in path.parts:
            continue
        try:
            data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            text = data.decode()
        except (OSError, EOFError, UnicodeDecodeError):
            continue
        if "\0" not in text:
            yield path, text


def python_source() -> Lines:
    """The source files of Python's standard library, then of the packages installed."""
    for folder in (STDLIB, PACKAGES):
        for _, text in files_under(folder, {".py"}):
            yield from text.splitlines(keepends=True)


def docstrings() -> Lines:
    """English prose: all docstrings of the standard library, then of the packages installed."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for folder in (STDLIB, PACKAGES):
        for _, source in files_under(folder, {".py"}):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, documented)]
            except (SyntaxError, ValueError, RecursionError):
                continue
            for docstring in filter(None, map(ast.get_docstring, nodes)):
                yield from (docstring + "\n\n").splitlines(keepends=True)


def messages(language: str) -> Callable[[], Lines]:
    """Programs' messages in a language, where the system has any; many slim systems have none."""

    def found() -> Lines:
        paths = [path for folder in LOCALES for path in folder.glob(f"{language}*/LC_MESSAGES/*.mo")]
        for path in sorted(paths):
            try:
                with path.open("rb") as file:
                    catalogue = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
            except (OSError, ValueError, LookupError):
                continue
            yield from (f"{message}\n" for message in catalogue.values() if isinstance(message, str) and message)

    return found


def everything() -> Lines:
    """All text that there is: a mixture of prose, documentation in many formats, and source code."""
    for folder in SHELVES:
        for _, text in files_under(folder, READABLE):
            yield from text.splitlines(keepends=True)


# ======================== what is made ========================


def made_words(letters: str) -> Lines:
    """Words that do not exist, as frequent as words are (Zipf), for want of real text."""
    draw = random.Random(SEED)
    words = ["".join(draw.choices(letters, k=draw.randint(2, 9))) for _ in range(30_000)]
    weights = [1 / rank for rank in range(1, len(words) + 1)]
    for _ in range(20_000):
        yield " ".join(draw.choices(words, weights, k=draw.randint(5, 20))) + ".\n"


def without_spaces(lines: Lines) -> Lines:
    return ("".join(line.split()) + "\n" for line in lines)


def chat(lines: Lines) -> Lines:
    """Short messages with emoji: alone, in rows, with skin tones, joined into families, flags."""
    draw = random.Random(SEED)
    emoji = [
        chr(c) for c in (*range(0x1F300, 0x1F650), *range(0x1F900, 0x1FA00)) if unicodedata.category(chr(c)) == "So"
    ]
    tones = [chr(c) for c in range(0x1F3FB, 0x1F400)]
    family = ["\U0001f468", "\U0001f469", "\U0001f467", "\U0001f466"]

    def one() -> str:
        kind = draw.random()
        if kind < 0.7:
            return draw.choice(emoji) * draw.choice((1, 1, 1, 2, 3))
        if kind < 0.8:
            return draw.choice("👍👋🙏💪👏✋") + draw.choice(tones)
        if kind < 0.9:
            return "\u200d".join(draw.choices(family, k=draw.randint(2, 4)))
        return "".join(chr(0x1F1E6 + draw.randrange(26)) for _ in range(2)) + "❤️"

    for line in lines:
        words = line.split()
        while words:
            said, words = words[: draw.randint(1, 9)], words[9:]
            yield " ".join(word + one() if draw.random() < 0.15 else word for word in said) + " " + one() + one() + "\n"


def numbers() -> Lines:
    """Tables: comma-separated, tab-separated and drawn with bars; integers, decimals, dates, times, hexadecimals."""
    draw = random.Random(SEED)
    cells: list[Callable[[], str]] = [
        lambda: str(draw.randrange(10 ** draw.randint(1, 9))),
        lambda: f"{draw.gauss(0, 1000):.{draw.randint(1, 6)}f}",
        lambda: f"{draw.random():.3e}",
        lambda: f"{draw.randint(1970, 2030)}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}",
        lambda: f"{draw.randrange(24):02}:{draw.randrange(60):02}:{draw.randrange(60):02}",
        lambda: f"0x{draw.getrandbits(32):08x}",
        lambda: f"${draw.randrange(10**6):,}.{draw.randrange(100):02}",
        lambda: f"{draw.uniform(0, 100):.1f}%",
    ]
    while True:
        columns = draw.choices(cells, k=draw.randint(4, 12))
        separator = draw.choice((",", "\t", " | ", "  "))
        for _ in range(draw.randint(10, 100)):
            yield separator.join(cell() for cell in columns) + "\n"


def minified_json(lines: Lines) -> Lines:
    """Records as programs send them to each other, without a space between."""
    draw = random.Random(SEED)
    for line in lines:
        words = line.split()
        if len(words) < 6:
            continue
        record: dict[str, Any] = {
            "id": draw.getrandbits(53),
            "uuid": f"{draw.getrandbits(128):032x}",
            "created_at": f"20{draw.randint(10, 30)}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}T12:00:00Z",
            "user": {
                "name": words[0],
                "tags": words[1:4],
                "active": draw.random() < 0.5,
                "score": round(draw.random(), 4),
            },
            "text": " ".join(words),
            "parent": None,
        }
        yield json.dumps(record, separators=(",", ":"), ensure_ascii=False) + "\n"


def spread_out(lines: Lines) -> Lines:
    """Code indented three times as deep, with columns, empty lines, tabs and trailing spaces."""
    draw = random.Random(SEED)
    for line in lines:
        code = line.strip()
        depth = 3 * (len(line) - len(line.lstrip()))
        indent = "\t" * (depth // 8) if draw.random() < 0.3 else " " * depth
        name, equals, value = code.partition(" = ")
        yield indent + (name.ljust(32) + equals + value) + " " * draw.choice((0, 0, 0, 2, 17)) + "\n"
        if draw.random() < 0.2:
            yield draw.choice(("\n", "\n\n\n", "    \n", "\r\n", "\t\t\n"))


def one_letter() -> str:
    return "a" * MB


def spaces() -> str:
    return " " * MB


def random_letters() -> str:
    return "".join(random.Random(SEED).choices("abcdefghijklmnopqrstuvwxyz", k=MB))


def random_digits() -> str:
    return "".join(random.Random(SEED).choices("0123456789", k=MB))


def unpunctuated_chinese() -> str:
    """3,000 characters, as frequent as characters are."""
    draw = random.Random(SEED)
    frequent = [chr(0x4E00 + draw.randrange(20_000)) for _ in range(3_000)]
    return "".join(draw.choices(frequent, [1 / rank for rank in range(1, 3_001)], k=MB // 3))


def combining_marks() -> str:
    """Letters that carry up to forty marks each."""
    draw = random.Random(SEED)
    marks = [chr(c) for c in range(0x300, 0x370)]
    return "".join(draw.choice("aeiou") + "".join(draw.choices(marks, k=draw.randint(1, 40))) for _ in range(MB // 42))


def words_that_never_repeat(count: int = 5_000_000) -> Lines:
    """Words of seven letters, each only once."""
    modulus, step = 26**7, 7_368_787 * 331  # step and 26 have no divisor in common, so no number comes twice
    letters = "abcdefghijklmnopqrstuvwxyz"
    pairs = [a + b for a in letters for b in letters]
    row = []
    for i in range(count):
        rest, last = divmod(i * step % modulus, 26)
        rest, third = divmod(rest, 676)
        first, second = divmod(rest, 676)
        row.append(pairs[first] + pairs[second] + pairs[third] + letters[last])
        if len(row) == 12:
            yield " ".join(row) + "\n"
            row = []
    yield " ".join(row) + "\n"


# ======================== the table ========================

LATIN = "abcdefghijklmnopqrstuvwxyz"
CYRILLIC = "абвгдежзийклмнопрстуфхцчшщъыьэюя"
DEVANAGARI = "कखगघचछजझटठडढतथदधनपफबभमयरलवशसहािीुूेैोौं्"
THAI = "กขคงจฉชซญดตถทธนบปผฝพฟภมยรลวศสหอะาิีึืุูเแโไ่้"
KANA = "あいうえおかきくけこさしすせそたちつてとなにぬねのはひふへほまみむめもやゆよらりるれろわをん"
HAN = "".join(chr(0x4E00 + 37 * i) for i in range(540))

ENGLISH = ("english*.txt",)
CODE = ("code_*.txt",)

KINDS: dict[str, Kind] = {
    "english": Kind(ENGLISH, found=docstrings),
    "code": Kind(CODE, found=python_source),
    "german": Kind(("german*.txt",), found=messages("de"), letters=LATIN + "äöüß"),
    "russian": Kind(("russian*.txt",), found=messages("ru"), letters=CYRILLIC),
    "hindi": Kind(("hindi*.txt", "parallel/udhr/hin.txt"), "DEVANAGARI", messages("hi"), DEVANAGARI),
    "thai": Kind(("other_scripts.txt", "thai*.txt", "parallel/udhr/tha.txt"), "THAI", messages("th"), THAI, snippet=20),
    "chinese": Kind(("chinese*.txt", "parallel/udhr/cmn*.txt"), "CJK", messages("zh_CN"), HAN, snippet=20),
    "japanese": Kind(("japanese*.txt",), "", messages("ja"), KANA + HAN, without_spaces, snippet=20),
    "emoji": Kind(ENGLISH, found=docstrings, change=chat),
    "numbers": Kind(found=numbers),
    "json": Kind(ENGLISH, found=docstrings, change=minified_json),
    "whitespace": Kind(CODE, found=python_source, change=spread_out),
}
MIXED = Kind(("*.txt",), found=everything)
WORDS = Kind(found=words_that_never_repeat)

HOSTILE: dict[str, Callable[[], str]] = {
    "letter": one_letter,
    "spaces": spaces,
    "random": random_letters,
    "digits": random_digits,
    "chinese": unpunctuated_chinese,
    "marks": combining_marks,
}


# ======================== preparing ========================


@dataclass(frozen=True)
class Prepared:
    """A text on disk, a JSON list of documents. `found` bytes are as they were found or made, the others recombined."""

    path: str
    bytes: int
    documents: int
    found: int
    source: str


def prepare(name: str, megabytes: float, data: Path | None) -> Prepared:
    """Write a text, unless it is there from before.

    Args:
        name: a row of `KINDS`, `mixed`, `words`, `lines`, `hostile/` with a row of `HOSTILE`, or the path of a file.
        megabytes: how much; the hostile ones and `words` have a size of their own.
        data: the data folder, if there is one.
    """
    made_from = (
        Path(__file__).read_bytes(),
        str(data).encode(),
        PATHS["purelib"].encode(),
        sysconfig.get_python_version().encode(),
    )
    version = hashlib.sha256(b"\0".join(made_from)).hexdigest()[:12]
    folder = WORK / "texts" / version
    path = folder / f"{name.strip('/').replace('/', '-')}-{megabytes:g}MB.json"
    facts = path.with_suffix(".facts")
    if not facts.exists():
        folder.mkdir(parents=True, exist_ok=True)
        documents, found, source = documents_of(name, int(megabytes * MB), data)
        path.write_text(json.dumps(documents, ensure_ascii=False), "utf-8", "surrogatepass")
        facts.write_text(json.dumps([size(documents), len(documents), min(found, size(documents)), source]))
    return Prepared(str(path), *json.loads(facts.read_text()))


def prepare_files(name: str, megabytes: float, data: Path | None) -> Prepared:
    """A text too large to be held: a folder of files of 100 MB, of what `prepare` knows, or of `random` words."""
    base = None if name == "random" else prepare(name, 100, data)
    version = base.path if base else Path(__file__).read_text("utf-8")
    folder = WORK / "texts" / f"{name}-{megabytes:g}MB-{hashlib.sha256(version.encode()).hexdigest()[:12]}"
    if not folder.exists():
        partial = folder.with_suffix(f".{os.getpid()}")
        partial.mkdir(parents=True)
        text = "".join(json.loads(Path(base.path).read_text("utf-8"))) if base else ""
        for number in range(round(megabytes / 100)):
            draw = random.Random(SEED + number)
            file = partial / f"{number:03}.txt"
            if base:
                file.write_text("".join(recombined(text, 100 * MB, 400, draw)), "utf-8")
            else:
                file.write_bytes(random_words(100 * MB, draw))
        partial.rename(folder)
    sizes = [path.stat().st_size for path in folder.iterdir()]
    found, source = (base.found, base.source) if base else (sum(sizes), "made")
    return Prepared(str(folder), sum(sizes), len(sizes), found, source)


def random_words(size: int, draw: random.Random) -> bytes:
    """Words of random letters, about nine bytes with the space, some of them much longer."""
    letters = LATIN.encode()
    table = b"\n" + b" " * 28 + bytes(letters[i % 26] for i in range(227))
    return draw.randbytes(size).translate(table)


def documents_of(name: str, limit: int, data: Path | None) -> tuple[list[str], int, str]:
    """Documents of `limit` bytes together, how many bytes of text were found for it, and where."""
    if name.startswith("hostile/"):
        text = HOSTILE[name.removeprefix("hostile/")]()
        return [text], len(text.encode()), "made"
    if name == "words":
        documents = list(cut(WORDS.found()))  # type: ignore[misc]
        return documents, size(documents), "made"
    if name == "lines":
        return short_lines(data)
    kind = {**KINDS, "mixed": MIXED}.get(name) or Kind((name,))
    pool, source = pool_of(kind, name, max(limit, (100 if kind is MIXED else 10) * MB), data)
    found = size(pool)
    random.Random(SEED).shuffle(pool)
    taken, left = [], limit
    for document in pool:
        if left <= 0:
            break
        taken.append(document)
        left -= len(document.encode())
    taken += recombined("".join(pool), left, kind.snippet)
    random.Random(SEED).shuffle(taken)
    return taken, found, source


def pool_of(kind: Kind, name: str, enough: int, data: Path | None) -> tuple[list[str], str]:
    """All documents of a kind, up to about `enough` bytes, and where they are from."""
    pool: list[str] = []
    sources = []
    wanted = (
        ("data folder" if name in KINDS or kind is MIXED else "the file given", lambda: data_lines(kind, data)),
        ("made" if name == "numbers" else "this machine", kind.found),
        ("made", lambda: made_words(kind.letters) if not pool else iter(())),
    )
    held = 0
    for source, lines in wanted:
        before = held
        for document in cut((kind.change or iter)(lines())) if lines else ():
            if held >= enough:
                break
            pool.append(document)
            held += len(document.encode())
        if held > before:
            sources.append(source)
    return pool, " and ".join(sources)


def data_lines(kind: Kind, data: Path | None) -> Lines:
    folder = data or ROOT
    for pattern in kind.files:
        paths = [Path(pattern)] if Path(pattern).is_absolute() else sorted(folder.glob(pattern)) if data else []
        for path in paths:
            for line in path.read_text("utf-8").splitlines(keepends=True):
                if not kind.script or is_mostly(line, kind.script):
                    yield line


def is_mostly(line: str, script: str) -> bool:
    letters = [char for char in line[:200] if char.isalpha()][:50]
    return 2 * sum(letter_name(char).startswith(script) for char in letters) > len(letters)


@functools.cache
def letter_name(char: str) -> str:
    return unicodedata.name(char, "")


def cut(lines: Lines) -> Iterator[str]:
    """Documents of about `DOCUMENT` bytes. A line that is longer is cut too, where it happens to be.

    Nothing in them is spelled like a special token: libraries do not agree on what becomes of such text.
    """
    held: list[str] = []
    bytes_held = 0
    for line in lines:
        line = line.replace("<|", "<!")
        while len(line) > DOCUMENT:
            yield "".join(held) + line[:DOCUMENT]
            held, bytes_held, line = [], 0, line[DOCUMENT:]
        held.append(line)
        bytes_held += len(line.encode())
        if bytes_held >= DOCUMENT:
            yield "".join(held)
            held, bytes_held = [], 0
    if held:
        yield "".join(held)


def recombined(text: str, limit: int, snippet: int, draw: random.Random | None = None) -> list[str]:
    """Documents of `limit` bytes together, made of snippets of `text`."""
    draw = draw or random.Random(SEED)
    documents = []
    while limit > 0:
        parts = []
        held = 0
        while held < min(DOCUMENT, limit):
            start = int(draw.random() * max(1, len(text) - snippet))
            part = text[start : start + snippet // 2 + int(draw.random() * snippet)]
            parts.append(part)
            held += len(part.encode())
        documents.append("".join(parts))
        limit -= held
    return documents


def short_lines(data: Path | None, count: int = 20_000) -> tuple[list[str], int, str]:
    """Different lines of English, each about as long as a chat message or a search."""
    pool, source = pool_of(KINDS["english"], "english", 10 * MB, data)
    lines = dict.fromkeys(line.strip() for document in pool for line in document.splitlines())
    taken = [line for line in lines if 40 <= len(line) <= 80]
    random.Random(SEED).shuffle(taken)
    return taken[:count], size(taken), source


def as_files(prepared: Prepared, count: int = 40) -> list[str]:
    """A text as so many files."""
    folder = Path(prepared.path).with_suffix(".files")
    if not folder.exists():
        documents = json.loads(Path(prepared.path).read_text("utf-8"))
        partial = folder.with_suffix(f".{os.getpid()}")
        partial.mkdir()
        for i in range(count):
            (partial / f"{i:02}.txt").write_text("".join(documents[i::count]), "utf-8")
        partial.rename(folder)
    return [str(path) for path in sorted(folder.glob("*.txt"))]


def size(documents: list[str]) -> int:
    """Bytes of UTF-8."""
    return sum(len(document.encode()) for document in documents)
