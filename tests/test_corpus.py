"""Reading text: which files, what is in them, and that cutting a long text never changes its pieces."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import os
import random
import sys
import tarfile
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard
from texts import BYTES, NOT_SPACES, SPACES, TEXTS

import subword
from subword import FormatError, SubwordOSError, SubwordValueError, SubwordWarning, _core, patterns
from subword.corpus import STDIN, cutting, find_files, read_documents, read_texts, size_on_disk, utf8
from subword.spec import Normalize

CUT_PATTERNS = [name for name in patterns.PATTERNS if name != "none"]

# What decides about pieces around a cut: newlines, white space, slashes, letters, digits, marks, apostrophes.
ATOMS = [
    *"aZé中가я1٣½.'/(—́😀<|",
    *("\n", "\n", "\n", "\r\n", "\r\n", "\r", "\n\n", " \n", "\n ", "/\n", "\n/", "\t"),
    *(" ", "  ", "\x85", "\xa0", "\u2028", "\u3000", "\x1c", "\ufeff"),
    *("'s", "'LL", "12", "1234", "//", "ab", "Ab", "AB"),
]


def feeding(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


def hard_text(seed: int, length: int = 150) -> str:
    rng = random.Random(seed)
    return "".join(rng.choice(ATOMS) for _ in range(length))


# ======================== cutting ========================


@pytest.mark.parametrize("pattern", CUT_PATTERNS)
def test_a_cut_never_changes_the_pieces(pattern: str) -> None:
    cuts = 0
    for seed in range(150):
        text = hard_text(seed)
        data = text.encode()
        for size in (1, 7, 64):
            parts = list(cutting.cut(feeding(data, size), size))
            assert b"".join(parts) == data
            pieces = [piece for part in parts for piece in patterns.split(pattern, part.decode())]
            assert pieces == patterns.split(pattern, text)
            cuts += len(parts) - 1
    assert cuts > 1000


@pytest.mark.parametrize("pattern", CUT_PATTERNS)
def test_the_core_counts_the_same_pieces_for_any_block_size(pattern: str) -> None:
    def counts(parts: list[bytes]) -> dict[bytes, int]:
        return dict(subword.count_pieces(parts, pattern=pattern, threads=2))

    ill_formed = b"\n".join(data for name, data in BYTES.items())
    whole = b"\n".join(text.encode() for text in TEXTS.values()) + ill_formed
    expected = counts([whole])
    for size in (10, 333, 5000):
        assert counts(list(cutting.cut(feeding(whole, size), size))) == expected


@pytest.mark.parametrize(("text", "place"), [
    ("one\ntwo", 4), ("one\ntwo\nthree", 8), (".\n.", 2), ("é\né", 3), ("a\n\ufeffb", 2), ("1\n2", 2),
    ("a\r\nb", 1), ("a\r\n\r\n b", 1), ("中\r\n", 3), ("x\n'", 2),
    ("", 0), ("a", 0), ("a\n", 0), ("\na", 0), ("a\n\nb", 0), ("a \nb", 0), ("a\n b", 0), ("a\n/b", 0), (".\r\nb", 0),
    ("a\rb", 0), ("é\r\n", 0), ("a b", 0),
])  # fmt: skip
def test_where_a_cut_is_safe(text: str, place: int) -> None:
    assert cutting.last_safe_cut(text.encode()) == place


def test_white_space_of_every_kind_forbids_a_cut() -> None:
    for space in SPACES:
        assert cutting.last_safe_cut(f".{space}\nb".encode()) == 0, hex(ord(space))
        assert cutting.last_safe_cut(f".\n{space}b".encode()) == 0, hex(ord(space))
    ranges = _core.unicode_ranges("White_Space", patterns.UNICODE)
    assert {chr(code) for first, last in ranges for code in range(first, last + 1)} == set(SPACES)
    assert all(space in NOT_SPACES for space in map(chr, range(0x110000)) if space.isspace() and space not in SPACES)


def test_ill_formed_bytes_forbid_a_cut() -> None:
    for bad in (b"\xff", b"\xe4\xb8", b"\x80", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80"):
        assert cutting.last_safe_cut(bad + b"\nb") == 0
        assert cutting.last_safe_cut(b"a\n" + bad) == 0
        assert cutting.last_safe_cut(b"a\n" + bad + b"b") == 0


def test_plain_letters_are_letters_or_digits() -> None:
    known = {
        code
        for name in ("L", "N")
        for first, last in _core.unicode_ranges(name, patterns.UNICODE)
        for code in range(first, last + 1)
    }
    plain = {code for code in range(0x110000) if cutting._PLAIN_LETTER.fullmatch(chr(code))}
    assert plain
    assert plain <= known


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_normalizing_makes_no_space_or_slash_at_an_end(form: str) -> None:
    """Why texts that are normalized so may be cut before (and others not)."""
    edges = {*SPACES, "/"}
    for char in map(chr, range(0x110000)):
        if char not in edges and not "\ud800" <= char <= "\udfff" and unicodedata.normalize(form, char) != char:
            normal = _core.normalize(char, form, Normalize("NFC").unicode)
            assert not edges & {normal[0], normal[-1]}, hex(ord(char))


def test_a_text_without_a_safe_place_stays_whole() -> None:
    data = b"no newline here " * 1000
    assert list(cutting.cut(feeding(data, 100), 100)) == [data]


def test_parts_are_about_as_long_as_asked() -> None:
    data = b"a line\n" * 10_000
    parts = list(cutting.cut(feeding(data, 1000), 5000))
    assert b"".join(parts) == data
    assert all(4000 < len(part) < 7000 for part in parts[:-1])


def test_a_token_with_a_newline_or_the_wish_for_a_whole_forbids_cuts(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"a line\n" * 300_000)
    assert len(list(read_texts([path], block=1000))) > 1
    assert len(list(read_texts([path], block=1000, uncuttable=["<|end|>"]))) > 1
    for arguments in ({"uncuttable": ["x", "a\nb"]}, {"uncuttable": ["a\r"]}, {"whole": True}):
        assert list(read_texts([path], block=1000, **arguments)) == [path.read_bytes()]  # type: ignore[arg-type]


# ======================== what is in files ========================

TEXT = "one\ntwo\n\nthree é 你好\n".encode() * 50


def zst(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


ENDINGS = {bytes: "", gzip.compress: ".gz", zst: ".zst", bz2.compress: ".bz2", lzma.compress: ".xz"}

SKIPPABLE_FRAME = b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc"

FILES: dict[str, Callable[[], bytes]] = {
    "a.txt": lambda: TEXT,
    "a": lambda: TEXT,
    "a.md": lambda: TEXT,
    "a.txt.gz": lambda: gzip.compress(TEXT),
    "A.TXT.GZ": lambda: gzip.compress(TEXT),
    "members.gz": lambda: gzip.compress(TEXT[:100]) + gzip.compress(TEXT[100:]),
    "a.zst": lambda: zst(TEXT),
    "frames.zst": lambda: zst(TEXT[:100]) + zst(b"") + zst(TEXT[100:]),
    "skippable.zst": lambda: SKIPPABLE_FRAME + zst(TEXT) + SKIPPABLE_FRAME,
    "a.bz2": lambda: bz2.compress(TEXT),
    "streams.bz2": lambda: bz2.compress(TEXT[:100]) + bz2.compress(b"") + bz2.compress(TEXT[100:]),
    "a.txt.xz": lambda: lzma.compress(TEXT),
    "padded.xz": lambda: lzma.compress(TEXT[:100]) + bytes(8) + lzma.compress(TEXT[100:]) + bytes(4),
}


@pytest.mark.parametrize("name", FILES)
def test_text_files(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(FILES[name]())
    read: list[int] = []
    assert b"".join(read_texts([path], on_bytes=read.append)) == TEXT
    assert sum(read) == path.stat().st_size == size_on_disk([path])


@pytest.mark.parametrize("data", [*BYTES.values(), b"\xef\xbb\xbfa mark", b"\r\n\x00\r"], ids=repr)
def test_bytes_pass_through(data: bytes, tmp_path: Path) -> None:
    data = b"." + data  # so that none begins as UTF-16 does
    path = tmp_path / "a.txt"
    path.write_bytes(data)
    assert b"".join(read_texts([path])) == data


@pytest.mark.parametrize("compress", ENDINGS, ids=lambda compress: ENDINGS[compress])
@pytest.mark.parametrize("suffix", [".jsonl", ".ndjson", ".JSONL"])
def test_json_lines(compress: Callable[[bytes], bytes], suffix: str, tmp_path: Path) -> None:
    lines = (
        b'\xef\xbb\xbf{"text": "a\\nb", "id": 1}\n\n  \r\n{"text": ""}\r\n'
        b'{"id": 2, "text": "\xc3\xa9\\u00e9\\ud83d\\ude00\\ud800"}'
    )
    path = tmp_path / f"a{suffix}{ENDINGS[compress]}"
    path.write_bytes(compress(lines))
    assert list(read_texts([path])) == [b"a\nb", b"", "éé😀\ufffd".encode()]
    assert [document.line for document in read_documents([path])] == [1, 4, 5]


def test_json_lines_field(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"content": "x", "text": 1}\n')
    assert list(read_texts([path], "content")) == [b"x"]


def test_empty_files(tmp_path: Path) -> None:
    files = {f"a{ending}": compress(b"") for compress, ending in ENDINGS.items()}
    for name, data in (files | {"a.txt": b"", "a.jsonl": b"", "a.csv": b"", "a.tsv": b""}).items():
        (tmp_path / name).write_bytes(data)
        assert list(read_texts([tmp_path / name])) == []


@pytest.mark.parametrize(("line", "message"), [
    ('{"a": 1, "b": 2}', "no field 'text'; the fields are: 'a', 'b'"),
    ("{}", "no field 'text'; the object is empty"),
    ('{"text": 1}', "the field 'text' is a JSON number, not a string"),
    ('{"text": null}', "the field 'text' is a JSON null, not a string"),
    ("[1]", "a JSON array, not an object"),
    ('"x"', "a JSON string, not an object"),
    ('{"text": "a"', "not JSON"),
    ('{"text": "a"} x', "not JSON: Extra data at column 15"),
    ("plain text", "not JSON"),
    ("[" * 100_000, "not JSON|JSON that cannot be read"),
    ('{"text": ' + "1" * 5000 + "}", "JSON that cannot be read|a JSON number"),
])  # fmt: skip
def test_bad_json_lines_are_told_with_their_place(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(b'{"text": "good"}\n' + line.encode("utf-8", "surrogateescape"))
    with pytest.raises(FormatError, match=rf"bad\.jsonl, line 2: (?:{message})"):
        list(read_texts([path]))


@pytest.mark.parametrize(("name", "data"), [
    ("cut.gz", gzip.compress(TEXT)[:-3]), ("cut.zst", zst(TEXT)[:-3]), ("half.zst", zst(os.urandom(9000))[:5000]),
    ("frame.zst", zst(TEXT) + zst(TEXT)[:9]), ("nothing.gz", b""), ("nothing.zst", b""), ("plain.gz", b"plain text"),
    ("plain.zst", b"plain text"), ("tail.gz", gzip.compress(TEXT) + b"tail"), ("tail.zst", zst(TEXT) + b"tail"),
    ("sum.gz", gzip.compress(TEXT)[:-8] + bytes(8)), ("cut.bz2", bz2.compress(TEXT)[:-3]), ("plain.bz2", b"plain text"),
    ("tail.bz2", bz2.compress(TEXT) + b"tail"), ("nothing.bz2", b""), ("cut.xz", lzma.compress(TEXT)[:-3]),
    ("plain.xz", b"plain text"), ("tail.xz", lzma.compress(TEXT) + b"tail"), ("nothing.xz", b""),
], ids=lambda value: value if isinstance(value, str) else "")  # fmt: skip
def test_damaged_files(name: str, data: bytes, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(FormatError, match=f"{name}: damaged"):
        list(read_texts([path]))


@pytest.mark.parametrize(("data", "message"), [
    ("hällo".encode("utf-16"), "UTF-16"), (gzip.compress(TEXT), "gz"), (zst(TEXT), "zst"), (b"PAR1....", "Parquet"),
    (b"PK\x03\x04....", "zip"), (bz2.compress(TEXT), "bz2"), (lzma.compress(TEXT), "xz"),
], ids=lambda value: value if isinstance(value, str) else "")  # fmt: skip
def test_files_that_are_not_text(data: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(data)
    with pytest.raises(FormatError, match=rf"a\.txt: not text but .*{message}"):
        list(read_texts([path]))


@pytest.mark.parametrize("ending", ["", ".gz", ".bz2", ".xz", ".zst"])
def test_an_archive_is_no_text(ending: str, tmp_path: Path) -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a.txt"), io.BytesIO())
    path = tmp_path / f"a.tar{ending}"
    path.write_bytes({name: compress for compress, name in ENDINGS.items()}[ending](file.getvalue()))
    with pytest.raises(FormatError, match=r"a\.tar.*: not text but a tar archive: extract its files"):
        list(read_texts([path]))


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SubwordOSError) as caught:
        list(read_texts([tmp_path / "gone.txt"]))
    assert caught.value.errno
    assert caught.value.filename == str(tmp_path / "gone.txt")


@pytest.mark.parametrize(("ending", "size", "most"), [
    (".zst", 100_000_000, 64 << 20), (".gz", 4_000_000, 1 << 20), (".bz2", 4_000_000, 1 << 20),
    (".xz", 4_000_000, 1 << 20),
])  # fmt: skip
def test_little_is_held_of_what_a_small_file_swells_to(ending: str, size: int, most: int, tmp_path: Path) -> None:
    path = tmp_path / f"bomb{ending}"
    compress = {name: compress for compress, name in ENDINGS.items()}[ending]
    path.write_bytes(compress(bytes(size)))
    from subword.corpus.files import read_blocks

    sizes = Counter[int]()
    for block in read_blocks(path):
        sizes[len(block)] += 1
    assert sum(length * count for length, count in sizes.items()) == size
    assert max(sizes) < most


# ======================== which files ========================


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("b.txt", "a/z.txt", "a/b/y.jsonl", "a.txt", ".hidden", ".git/x.txt", "a/.x", "[1].txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    (tmp_path / "empty").mkdir()
    return tmp_path


@pytest.mark.parametrize(("paths", "found"), [
    (["."], ["[1].txt", "a/b/y.jsonl", "a/z.txt", "a.txt", "b.txt"]),
    (["b.txt", "a"], ["b.txt", "a/b/y.jsonl", "a/z.txt"]),
    (["*.txt"], ["[1].txt", "a.txt", "b.txt"]),
    (["**/*.txt"], ["[1].txt", "a/z.txt", "a.txt", "b.txt"]),
    (["a*"], ["a/b/y.jsonl", "a/z.txt", "a.txt"]),
    (["a/**"], ["a/b/y.jsonl", "a/z.txt"]),
    (["[1].txt"], ["[1].txt"]),
    (["[ab].txt"], ["a.txt", "b.txt"]),
    ([".hidden"], [".hidden"]),
    (["a.txt", "a.txt"], ["a.txt", "a.txt"]),
])  # fmt: skip
def test_find_files(paths: list[str], found: list[str], tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)
    assert [path.as_posix() for path in find_files(paths)] == found


def test_find_files_takes_one_path_and_path_objects(tree: Path) -> None:
    assert find_files(tree / "a.txt") == [tree / "a.txt"]  # type: ignore[arg-type]
    assert find_files([str(tree / "a.txt"), tree / "b.txt"]) == [tree / "a.txt", tree / "b.txt"]


def test_standard_input_and_a_file_of_its_name(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)
    assert find_files(["-"]) == [STDIN]
    assert size_on_disk([STDIN]) is None
    (tree / "-").write_text("a file")
    assert find_files(["-"]) == [STDIN]
    assert list(read_texts(find_files(["./-"]))) == [b"a file"]


def test_links_are_followed_but_not_in_circles(tree: Path) -> None:
    try:
        (tree / "a" / "up").symlink_to(tree, target_is_directory=True)
        (tree / "empty" / "link").symlink_to(tree / "a" / "b", target_is_directory=True)
    except OSError:
        pytest.skip("links cannot be made here")
    assert len(find_files([tree / "a"])) < 10
    assert find_files([tree / "empty"]) == [tree / "empty" / "link" / "y.jsonl"]


@pytest.mark.parametrize("path", ["nothing*.txt", "empty"])
def test_globs_and_folders_that_give_nothing(path: str, tree: Path) -> None:
    with pytest.raises(SubwordValueError, match=r"no file"):
        find_files([str(tree / path)])


def test_a_missing_file(tree: Path) -> None:
    with pytest.raises(SubwordOSError) as caught:
        find_files([tree / "gone.txt"])
    assert caught.value.errno
    assert caught.value.filename == str(tree / "gone.txt")


def test_a_folder_is_read_without_what_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    (tmp_path / "b.so").write_bytes(b"\x7fELF\0\xff\0")
    with pytest.warns(SubwordWarning, match=r"1 files that are not text are left out .*b\.so"):
        assert find_files([tmp_path]) == [tmp_path / "a.txt"]
    assert find_files([tmp_path / "b.so"]) == [tmp_path / "b.so"]


# ======================== rows of tables ========================

ROWS = ["plain", "", 'with "quotes", and commas', "two\nlines\r\nor three", "tab\there", "x" * 300_000, "中文 é"]


def texts_of(*files: Path, field: str = "text") -> list[bytes]:
    return list(read_texts(list(files), field))


@pytest.mark.parametrize(
    ("name", "separator"), [("t.csv", ","), ("t.tsv", "\t"), ("t.csv.gz", ","), ("T.CSV", ","), ("t.tsv.xz", "\t")]
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_csv(name: str, separator: str, newline: str, tmp_path: Path) -> None:
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=separator, lineterminator=newline)
    writer.writerows([("id", "text"), *enumerate(ROWS)])
    data = b"\xef\xbb\xbf" + file.getvalue().encode() + b'9\xff%b"\xff\xe4"\n\n' % separator.encode()
    compress = {ending: compress for compress, ending in ENDINGS.items() if ending}.get(Path(name).suffix, bytes)
    (tmp_path / name).write_bytes(compress(data))
    assert texts_of(tmp_path / name) == [*(text.encode() for text in ROWS), b"\xff\xe4"]
    assert texts_of(tmp_path / name, field="id")[:2] == [b"0", b"1"]
    lines = [document.line for document in read_documents([tmp_path / name])]
    assert lines[:3] == [2, 3, 4] and lines[4] == 8


@pytest.mark.parametrize(("data", "said"), [
    (b"id,body\n1,a\n", "t.csv: no column 'text'; the columns are: 'id', 'body'"),
    (b"id,text\n1,a\n2\n", "t.csv, line 3: 1 fields, where the first row has 2"),
    (b'text\n"a\n', "t.csv, line 3: not well-formed: unexpected end of data"),
    (b'text\n"a"b\n', "t.csv, line 2: not well-formed"),
    (b"PAR1.............", r"t.csv: not text but Parquet: its name must end in .parquet"),
])  # fmt: skip
def test_csv_that_is_none(data: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(data)
    with pytest.raises(FormatError, match=said):
        texts_of(tmp_path / "t.csv")


def test_parquet_and_arrow(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    expected = [text.encode() for text in ROWS]
    for kind in (
        pa.string(),
        pa.large_string(),
        pa.binary(),
        pa.large_binary(),
        pa.dictionary(pa.int32(), pa.string()),
    ):
        column = pa.array(expected, pa.binary()).cast(pa.string())
        column = column.dictionary_encode() if pa.types.is_dictionary(kind) else column.cast(kind)
        table = pa.table({"id": list(range(len(ROWS))), "text": column})
        pq.write_table(table, tmp_path / "t.parquet", row_group_size=3)
        with pa.ipc.new_file(str(tmp_path / "t.arrow"), table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
        with pa.ipc.new_stream(str(tmp_path / "s.arrow"), table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
        for name in ("t.parquet", "t.arrow", "s.arrow"):
            read: list[int] = []
            assert list(read_texts([tmp_path / name], "text", read.append)) == expected
            assert sum(read) == (tmp_path / name).stat().st_size
        assert [document.line for document in read_documents([tmp_path / "t.parquet"])] == [1, 2, 3, 4, 5, 6, 7]
    assert [path.name for path in find_files([tmp_path])] == ["s.arrow", "t.arrow", "t.parquet"]
    assert dict(subword.count_pieces(files=[tmp_path])) == dict(subword.count_pieces(ROWS * 3))


def test_parquet_and_arrow_that_are_none(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    table = pa.table({"id": [1, 2], "text": ["a", None]})
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(FormatError, match=r"t\.parquet, row 2: the column 'text' has no value"):
        texts_of(tmp_path / "t.parquet")
    with pytest.raises(FormatError, match="no column 'body'; the columns are: 'id', 'text'"):
        texts_of(tmp_path / "t.parquet", field="body")
    with pytest.raises(FormatError, match="the column 'id' is int64, not string or binary"):
        texts_of(tmp_path / "t.parquet", field="id")
    with pytest.raises(SubwordOSError):
        texts_of(tmp_path / "absent.parquet")
    whole = (tmp_path / "t.parquet").read_bytes()
    for name in ("x.parquet", "x.arrow"):
        for data in (b"", b"PAR1", whole[:-9], b"ARROW1\0\0", b"some text"):
            (tmp_path / name).write_bytes(data)
            with pytest.raises(FormatError, match=f"{name}: damaged"):
                texts_of(tmp_path / name)


def test_without_pyarrow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        SubwordValueError, match=r't\.parquet: to read this file takes pyarrow: pip install "subword\[par'
    ):
        texts_of(tmp_path / "t.parquet")


# ======================== bytes that are not UTF-8 ========================

BAD = b"fine\n\xc3\xa9 \xe4\xb8 \xff.\nlast \xe4"
REPLACED = "fine\né \ufffd \ufffd.\nlast \ufffd".encode()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_ill_formed_bytes_are_kept_replaced_or_told(size: int) -> None:
    def handled(data: bytes, errors: str) -> bytes:
        return b"".join(utf8.handled(feeding(data, size), "a.txt", errors))

    assert handled(BAD, "keep") == BAD
    assert handled(BAD, "replace") == REPLACED == BAD.decode("utf-8", "replace").encode()
    with pytest.raises(
        FormatError, match=r'a\.txt, line 2: not UTF-8 at byte 4 of the line: 0xe4; errors="keep" takes'
    ):
        handled(BAD, "strict")
    with pytest.raises(FormatError, match=r"a\.txt, line 3: not UTF-8 at byte 6 of the line: 0xe4"):
        handled(REPLACED[:-3] + b"\xe4", "strict")
    for text in (*(text.encode() for text in TEXTS.values()), *BYTES.values()):
        assert handled(text, "replace") == text.decode("utf-8", "replace").encode()
        assert handled(text, "keep") == text
        if utf8.is_well_formed(text):
            assert handled(text, "strict") == text
        else:
            with pytest.raises(FormatError):
                handled(text, "strict")


def test_the_policy_holds_for_every_kind_of_file(tmp_path: Path) -> None:
    bad, replaced = b"a \xff\xe4 b", "a \ufffd\ufffd b".encode()
    (tmp_path / "a.txt").write_bytes(bad)
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(bad))
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "' + bad + b'"}\n')
    (tmp_path / "a.csv").write_bytes(b'text\n"' + bad + b'"\n')
    expected = {
        "a.txt": r"a\.txt, line 1: not UTF-8 at byte 3 of the line: 0xff",
        "a.txt.gz": r"a\.txt\.gz, line 1: not UTF-8 at byte 3 of the line",
        "a.jsonl": r"a\.jsonl, line 1: not UTF-8 at byte 13 of the line",
        "a.csv": r"a\.csv, line 2: not UTF-8 at byte 4 of the line",
    }
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        pass
    else:
        pq.write_table(pa.table({"text": pa.array([b"fine", bad], pa.binary())}), tmp_path / "a.parquet")
        expected["a.parquet"] = r"a\.parquet, row 2: not UTF-8 at byte 3: 0xff"
    for name, said in expected.items():
        path = tmp_path / name
        assert list(read_texts([path]))[-1] == bad, name
        assert list(read_texts([path], errors="replace"))[-1] == replaced, name
        with pytest.raises(FormatError, match=said):
            list(read_texts([path], errors="strict"))
        assert dict(subword.count_pieces(files=[path], errors="replace"))[b" b"] == 1
        with pytest.raises(FormatError, match=said):
            subword.train(files=[path], vocab_size=256, errors="strict")


def test_the_policy_holds_for_texts_in_memory() -> None:
    texts = [b"fine", "é", b"a \xff b"]
    kept, replaced = (dict(subword.count_pieces(texts, errors=errors)) for errors in ("keep", "replace"))  # type: ignore[arg-type]
    assert b" \xff" in kept and " \ufffd".encode() in replaced and len(kept) == len(replaced)
    ways: list[Iterable[Any]] = [texts, [{"text": text} for text in texts], map(bytearray, [b"", b"", b"a \xff"])]
    for way in ways:
        with pytest.raises(FormatError, match="text 2: not UTF-8 at byte 3: 0xff"):
            subword.count_pieces(way, errors="strict")
    with pytest.raises(SubwordValueError, match="text 1: a surrogate, which UTF-8 does not have, at character 2"):
        subword.count_pieces(["a", "bc\ud800"], errors="strict")
    assert dict(subword.count_pieces(["é😀"], errors="strict")) == dict(subword.count_pieces(["é😀"]))
    with pytest.raises(SubwordValueError, match="unknown errors 'ignore'; choose one of 'keep', 'strict', 'replace'"):
        subword.count_pieces(["a"], errors="ignore")  # type: ignore[arg-type]


def test_json_lines_keep_bytes_and_tell_them_from_surrogates(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "\xe4 \\ud800 \\ud83d\\ude00"}\n{"text": "\\udc80"}')
    assert list(read_texts([path])) == ["\udce4 \ufffd 😀".encode("utf-8", "surrogateescape"), "\ufffd".encode()]


# ======================== the same from everywhere ========================


def test_files_rows_and_iterators_of_one_corpus_count_the_same(tmp_path: Path) -> None:
    """Long lines, quotes, newlines of every kind: nothing is dropped or changed on any way in."""
    texts = [*ROWS, "long " * 200_000, "y" * 1_500_000, "\r\n crlf\r\n\r\n", "'", '"', "a\x00b"]
    expected = dict(subword.count_pieces(texts))
    lines = "".join(json.dumps({"n": 1, "text": text}) + "\r\n" for text in texts).encode()
    table = io.StringIO(newline="")
    csv.writer(table).writerows([("text", "n"), *((text, 1) for text in texts[:-1])])
    files = {"t.jsonl": lines, "t.ndjson.bz2": bz2.compress(lines), "t.jsonl.zst": zst(b"\xef\xbb\xbf" + lines)}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        assert dict(subword.count_pieces(files=[tmp_path / name])) == expected, name
        assert dict(subword.count_pieces(files=[tmp_path / name], memory="50MB")) == expected, name
    (tmp_path / "t.csv").write_bytes(table.getvalue().encode())
    assert dict(subword.count_pieces(files=[tmp_path / "t.csv"])) == dict(subword.count_pieces(texts[:-1]))
    ways: list[Iterable[Any]] = [
        iter(texts), (text.encode() for text in texts), ({"id": 3, "text": text} for text in texts),
        [bytearray(text.encode()) for text in texts], [memoryview(text.encode()) for text in texts],
        ({"text": text.encode()} for text in texts),
    ]  # fmt: skip
    for way in ways:
        assert dict(subword.count_pieces(way)) == expected


def test_data_sets_of_hugging_face(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_dict({"text": ["one two", "two three"], "n": [1, 2]})
    expected = dict(subword.count_pieces(["one two", "two three"]))
    for way in (rows, rows["text"], rows.to_iterable_dataset(), rows.to_iterable_dataset().shuffle(seed=1)):
        assert dict(subword.count_pieces(way)) == expected
    with pytest.raises(SubwordValueError, match=r"not a DatasetDict; did you mean one of 'train', 'test'\?"):
        subword.count_pieces(datasets.DatasetDict(train=rows, test=rows))
    with pytest.raises(SubwordValueError, match="text 0: a row without the field 'body'; it has 'text', 'n'"):
        subword.count_pieces(rows, field="body")


@pytest.mark.parametrize(("stdin", "data"), [
    ("text", b"one two"), ("jsonl", b'{"text": "one two"}'), ("csv", b'n,text\n1,"one two"\n'),
    ("tsv", b"text\none two"),
])  # fmt: skip
def test_what_standard_input_is(stdin: str, data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert list(read_texts([STDIN], stdin=stdin)) == [b"one two"]


def test_compressed_standard_input_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(TEXT))))
    with pytest.raises(FormatError, match="standard input: not text but gzip: pipe its text in, as zcat"):
        list(read_texts([STDIN]))
