"""Counted pieces: what is counted, that tables add up, what their files hold, and learning from them."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from texts import BYTES, TEXTS

import subword
from subword import (
    CountTable,
    FormatError,
    SubwordError,
    SubwordValueError,
    SubwordWarning,
    _core,
    counts_file,
    patterns,
)
from subword.bpe import reference
from subword.counts import Splitting

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

SRC = str(Path(__file__).parent.parent / "src")


def random_words(seed: int, size: int, letters: str = "abcdefghij") -> list[str]:
    """Texts of about `size` bytes in all whose words hardly ever repeat; some are longer than a slot holds."""
    rng = random.Random(seed)
    texts = []
    while size > 0:
        words = ["".join(rng.choices(letters, k=rng.choice((3, 7, 9, 9, 12, 20)))) for _ in range(500)]
        texts.append(" ".join(words))
        size -= len(texts[-1])
    return texts


def rows_of(table: CountTable, path: Path) -> list[tuple[Any, ...]]:
    """(piece, source, count, first) of each row of the file that a table gives."""
    table.save(path)
    columns = pq.read_table(path).to_pydict()
    return list(zip(*(columns[name] for name in ("piece", "source", "count", "first")), strict=True))


def bytes_of(table: CountTable, path: Path) -> bytes:
    table.save(path)
    return path.read_bytes()


# ======================== counting ========================


@pytest.mark.parametrize("pattern", ["gpt2", "cl100k", "o200k", "spaces", "none"])
def test_a_table_is_a_count_of_the_reference_splitter(pattern: str, tmp_path: Path) -> None:
    texts = [*TEXTS.values()] * 2
    pieces = [piece.encode() for text in texts for piece in patterns.split(pattern, text) if piece]
    table = subword.count_pieces(texts, pattern=pattern)
    assert dict(table) == Counter(pieces)
    assert [piece for piece, _ in table] == sorted(set(pieces))
    assert (len(table), table.distinct, table.total) == (len(set(pieces)), len(set(pieces)), len(pieces))
    assert table.text_bytes == sum(len(text.encode()) for text in texts)
    for piece, source, count, first in rows_of(table, tmp_path / "t.parquet"):
        assert (source, count, first) == ("", pieces.count(piece), pieces.index(piece))


def test_threads_and_memory_and_chunking_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[Any] = [*TEXTS.values(), *BYTES.values(), *random_words(1, 300_000)]
    for options in ({}, {"special_tokens": ["ab", "the"]}, {"normalization": "NFKC"}, {"pattern": "none"}):
        expected = bytes_of(subword.count_pieces(texts, threads=1, **options), tmp_path / "t.parquet")
        for threads, feed in ((2, 16 << 20), (3, 5_000), (1, 100), (7, 100_000)):
            monkeypatch.setattr("subword.counting.FEED_BYTES", feed)
            table = subword.count_pieces(iter(texts), threads=threads, **options)  # type: ignore[arg-type]
            assert bytes_of(table, tmp_path / "t.parquet") == expected, (options, threads, feed)


def test_a_long_text_is_shared_out_to_threads(tmp_path: Path) -> None:
    text = "\n".join([*TEXTS.values()] * 8)
    options: list[dict[str, Any]] = [
        {}, {"special_tokens": ["\n\n", "he"]}, {"digits": "three-right"}, {"normalization": "NFC"},
        {"pattern": "gpt2"},
    ]  # fmt: skip
    for option in options:
        expected = bytes_of(subword.count_pieces([text], threads=1, **option), tmp_path / "t.parquet")
        for threads in (2, 3, 5):
            assert bytes_of(subword.count_pieces([text], threads=threads, **option), tmp_path / "t.parquet") == expected


def test_a_tiny_budget_gives_the_same_table(tmp_path: Path) -> None:
    texts = random_words(2, 4_000_000)
    expected = bytes_of(subword.count_pieces(texts), tmp_path / "t.parquet")
    for threads in (1, 2):
        table = subword.count_pieces(texts, memory="1MB", temp=tmp_path, threads=threads)
        blocks = table.runs[0].read.blocks
        assert len(table.runs) > 10 and blocks.on_disk > 1_000_000
        assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]  # what is on disk has no name
        assert bytes_of(table, tmp_path / "t.parquet") == expected


def test_a_long_text_keeps_to_the_budget(tmp_path: Path) -> None:
    text = " ".join(random_words(2, 2_000_000)).replace("a", "é\n").replace("bc", "\ud83d\ude00")
    expected = bytes_of(subword.count_pieces([text]), tmp_path / "t.parquet")
    for one in (text, text.encode("utf-16-le", "surrogatepass").decode("utf-16-le").encode()):
        table = subword.count_pieces([one], memory="1MB")
        assert len(table.runs) > 10
        assert bytes_of(table, tmp_path / "t.parquet") == expected


@pytest.mark.parametrize("options", [
    {"special_tokens": ["\nab"]}, {"pattern": "none"}, {"normalization": "NFC"}, {"pattern": subword.SplitRegex("a|.")},
])  # fmt: skip
def test_a_text_that_must_not_be_cut_and_has_no_room_is_an_error(options: dict[str, Any], tmp_path: Path) -> None:
    text = "\n".join(random_words(2, 2_000_000)).encode()
    (tmp_path / "t.txt").write_bytes(text)
    said = r"more than 125,000 bytes in which no place is known where a text may be cut"
    with pytest.raises(SubwordValueError, match=f"^text 1: {said}"):
        subword.count_pieces([b"short", text], memory="1MB", **options)
    with pytest.raises(SubwordValueError, match=rf"t\.txt: {said}"):
        subword.count_pieces(files=[tmp_path / "t.txt"], memory="1MB", **options)
    table = subword.count_pieces([text], memory="20MB", **options)
    assert bytes_of(table, tmp_path / "t.parquet") == bytes_of(
        subword.count_pieces([text], **options), tmp_path / "u.parquet"
    )


def test_a_text_without_line_breaks_that_has_no_room_is_an_error(tmp_path: Path) -> None:
    text = " ".join(random_words(2, 2_000_000)).encode()
    (tmp_path / "t.txt").write_bytes(text)
    (tmp_path / "t.csv").write_bytes(b"text\n" + text)
    for how in ({"texts": [text]}, {"files": [tmp_path / "t.txt"]}, {"files": [tmp_path / "t.csv"]}):
        with pytest.raises(SubwordValueError, match="too much for this memory="):
            subword.count_pieces(**how, memory="1MB")  # type: ignore[arg-type]
    with pytest.raises(SubwordValueError, match="too much for this memory="):
        subword.train(files=[tmp_path / "t.txt"], memory="1MB", vocab_size=300)


def test_a_file_is_counted_as_its_text(tmp_path: Path) -> None:
    text = "\n".join(TEXTS.values())
    (tmp_path / "text.txt").write_bytes(text.encode())
    from_file = subword.count_pieces(files=[tmp_path / "text.txt"])
    assert from_file.sources == subword.count_pieces([text]).sources
    assert bytes_of(from_file, tmp_path / "a.parquet") == bytes_of(subword.count_pieces([text]), tmp_path / "b.parquet")
    assert list(from_file.sources) == [""]


def test_the_hash_is_that_of_the_texts(tmp_path: Path) -> None:
    import hashlib

    def hash_of(*texts: bytes) -> str:
        return f"{sum(int(hashlib.sha256(text).hexdigest(), 16) for text in texts) % 2**256:064x}"

    texts = [b"one ", b"two", b" three", "\ufffd".encode(), b""]
    for items in (["one ", b"two", bytearray(b" three"), "\ud800", ""], [memoryview(text) for text in texts[::-1]]):
        (part,) = subword.count_pieces(items, source="s").sources["s"]
        assert (part.bytes, part.sha256) == (len(b"".join(texts)), hash_of(*texts))
    (tmp_path / "t.txt").write_bytes(b"line\n" * 400_000)
    (part,) = subword.count_pieces(files=[tmp_path / "t.txt"], memory="2MB").sources[""]
    assert part.sha256 == hashlib.sha256(b"line\n" * 400_000).hexdigest() == hash_of(b"line\n" * 400_000)
    for bad in ([5], [None], ["a", object()]):
        with pytest.raises(SubwordValueError, match="must be str or bytes"):
            subword.count_pieces(bad)  # type: ignore[arg-type]


def test_rows_of_a_data_set_are_texts_in_a_field() -> None:
    rows = [{"id": 1, "body": "the cat"}, {"id": 2, "body": b"the mat"}]
    assert dict(subword.count_pieces(rows, field="body")) == dict(subword.count_pieces(["the cat", "the mat"]))
    assert subword.train(rows, field="body", vocab_size=260) == subword.train(["the cat", "the mat"], vocab_size=260)
    with pytest.raises(SubwordValueError, match="text 1: a row without the field 'text'; it has 'id'"):
        subword.count_pieces([{"text": "a"}, {"id": 1}])


@pytest.mark.parametrize("bad", ["lots", "1KB", 0, -5, 1.5, "", "5 XB", True])
def test_memory_that_is_none(bad: Any) -> None:
    with pytest.raises(SubwordValueError, match="memory must be"):
        subword.count_pieces(["a"], memory=bad)


def test_a_temporary_folder_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(subword.SubwordOSError, match="temporary folder"):
        subword.count_pieces(random_words(3, 3_000_000), memory="1MB", temp=tmp_path / "absent")


# ======================== adding ========================


def test_tables_of_parts_add_up_to_the_table_of_the_whole(tmp_path: Path) -> None:
    rng = random.Random(7)
    texts = list(TEXTS.values()) * 3
    whole = rows_of(subword.count_pieces(texts), tmp_path / "t.parquet")
    for _ in range(10):
        ends = sorted(rng.choices(range(len(texts)), k=3))
        parts = [texts[a:b] for a, b in zip([0, *ends], [*ends, len(texts)], strict=True)]
        tables = [subword.count_pieces(part) for part in parts]
        if rng.random() < 0.5:
            for number, table in enumerate(tables):
                table.save(tmp_path / f"{number}.parquet")
            tables = [CountTable.load(tmp_path / f"{number}.parquet") for number in range(len(tables))]
        with_twice = SubwordWarning if len({str(part) for part in parts}) < len(parts) else None
        if with_twice:
            continue
        table = tables[0] + tables[1] + tables[2] + tables[3]
        assert rows_of(table, tmp_path / "t.parquet") == whole


def test_sources_are_counted_apart(tmp_path: Path) -> None:
    one, two = subword.count_pieces(["b a"], source="y"), subword.count_pieces(["a a c"], source="x")
    table = one + two
    assert dict(table) == {b"b": 1, b" a": 2, b"a": 1, b" c": 1}
    assert rows_of(table, tmp_path / "t.parquet") == [
        (b" a", "x", 1, 3), (b" a", "y", 1, 1), (b" c", "x", 1, 4), (b"a", "x", 1, 2), (b"b", "y", 1, 0),
    ]  # fmt: skip
    assert list(table.sources) == ["x", "y"] and len(table) == 4 and "'x', 'y'" in repr(table)
    loaded = CountTable.load(tmp_path / "t.parquet")
    assert loaded.sources == table.sources and dict(loaded) == dict(table)
    more = loaded + subword.count_pieces([" a b"], source="y")
    assert rows_of(more, tmp_path / "u.parquet")[1:3] == [(b" a", "y", 2, 1), (b" b", "y", 1, 6)]


def test_the_same_text_twice_is_told() -> None:
    table = subword.count_pieces(["a b"])
    with pytest.warns(SubwordWarning, match="it counts twice"):
        assert dict(table + table) == {b"a": 2, b" b": 2}


@pytest.mark.parametrize(("options", "said"), [
    ({"pattern": "gpt2"}, "pattern 'o200k' and 'gpt2'"),
    ({"pattern": subword.SplitRegex("a|b|.")}, "pattern 'o200k' and SplitRegex"),
    ({"digits": "one"}, "digits 'pattern' and 'one'"),
    ({"normalization": "NFC"}, "normalization None and 'NFC'"),
    ({"special_tokens": ["<s>"]}, r"special_tokens \[\] and \['<s>'\]"),
])  # fmt: skip
def test_tables_of_different_stages_do_not_add_up(options: dict[str, Any], said: str) -> None:
    with pytest.raises(SubwordValueError, match=f"different stages do not add up: {said}"):
        subword.count_pieces(["a"]) + subword.count_pieces(["a"], **options)
    with pytest.raises(SubwordValueError, match=f"other stages than this call says: {said}"):
        subword.train(counts=subword.count_pieces(["a b"]), vocab_size=300, **options)


def test_names_of_one_way_of_splitting_are_one() -> None:
    plain, spelled = Splitting("qwen2"), Splitting("qwen2", special_tokens=("b", "a"))
    assert plain.fingerprint != spelled.fingerprint == Splitting("qwen2", special_tokens=("a", "b")).fingerprint
    assert len({Splitting(name).fingerprint for name in patterns.PATTERNS}) == len(
        {Splitting(name).stages for name in patterns.PATTERNS}
    )


def test_counts_beyond_64_bits_are_an_error(tmp_path: Path) -> None:
    table = made(tmp_path, [(b"ab", 2**62), (b"c", 5)])
    with pytest.raises(SubwordValueError, match='"ab" is counted more than'):
        dict(table + table + table)
    with pytest.raises(SubwordValueError, match='"ab" is counted more than'):
        subword.train(counts=table, weights={"": 2}, vocab_size=300)
    assert dict(made(tmp_path, [(b"ab", 2**63 - 1)])) == {b"ab": 2**63 - 1}


def test_three_billion_outweigh_ten(tmp_path: Path) -> None:
    tok = subword.train(counts=made(tmp_path, [(b"ab", 10), (b"cd", 3_000_000_000)]), vocab_size=258)
    assert [tok.token_bytes(256), tok.token_bytes(257)] == [b"cd", b"ab"]


# ======================== files that others make ========================


def made(
    folder: Path, rows: list[tuple[bytes, int]], metadata: dict[str, str] | None = None, **columns: Any
) -> CountTable:
    """The table of a file as another program would write it."""
    metadata = subword.count_pieces([]).metadata if metadata is None else metadata
    arrays: dict[str, Any] = {
        "piece": pa.array([piece for piece, _ in rows], pa.binary()),
        "count": pa.array([count for _, count in rows], pa.int64()),
        **columns,
    }
    table = pa.table({name: array for name, array in arrays.items() if array is not None})
    pq.write_table(table.replace_schema_metadata(metadata), folder / "made.parquet")
    return CountTable.load(folder / "made.parquet")


def pieces_of(sources: dict[str, list[str]], pattern: str) -> dict[str, list[Any]]:
    """Each piece of the texts of some sources, with its place among all of them, in columns."""
    texts = [(source, text) for source, its in sources.items() for text in its]
    found = [(piece.encode(), source) for source, text in texts for piece in patterns.split(pattern, text) if piece]
    return {
        "position": list(range(len(found))),
        "piece": [piece for piece, _ in found],
        "source": [source for _, source in found],
    }


def halves() -> dict[str, list[str]]:
    texts = list(TEXTS.values())
    return {"two": texts[::2], "one": texts[1::2]}


def same_in_all_ways(theirs: CountTable, ours: CountTable, folder: Path) -> None:
    """Two tables have the same rows, and train the same."""
    assert rows_of(theirs, folder / "theirs.parquet") == rows_of(ours, folder / "ours.parquet")
    assert {name: parts[0].pieces for name, parts in theirs.sources.items()} == {
        name: parts[0].pieces for name, parts in ours.sources.items()
    }
    weights = dict(zip(ours.sources, ("3/10", 2), strict=False))
    for tie_rule in reference.TIE_RULES:
        options: dict[str, Any] = {"vocab_size": 400, "tie_rule": tie_rule, "weights": weights}
        assert subword.train(counts=theirs, **options) == subword.train(counts=ours, **options)


@pytest.mark.parametrize("with_sources", [False, True])
def test_duckdb_makes_a_table(with_sources: bool, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    sources = halves() if with_sources else {"": list(TEXTS.values())}
    columns = pieces_of(sources, "gpt2")
    tables = [subword.count_pieces(texts, pattern="gpt2", source=name) for name, texts in sources.items()]
    ours = sum(tables[1:], tables[0])
    database = duckdb.connect()
    database.register("pieces", pa.table(columns | {"piece": pa.array(columns["piece"], pa.binary())}))
    ((key, value),) = ours.metadata.items()
    quoted = value.replace("'", "''")
    by = "piece, source" if with_sources else "piece"
    database.execute(f"""
        COPY (SELECT {by}, count(*) AS count, min(position) AS first FROM pieces GROUP BY {by})
        TO '{tmp_path}/duck.parquet' (FORMAT parquet, KV_METADATA {{'{key}': '{quoted}'}})
    """)
    same_in_all_ways(CountTable.load(tmp_path / "duck.parquet"), ours, tmp_path)
    # And it reads ours.
    found = database.execute(f"SELECT sum(count), count(*), max(first) FROM '{tmp_path}/ours.parquet'").fetchone()
    rows = rows_of(ours, tmp_path / "b.parquet")
    assert found == (len(columns["piece"]), len(rows), max(row[3] for row in rows))


def test_duckdb_adds_tables_up(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    tables = [subword.count_pieces(texts, source="web") for texts in halves().values()]
    for number, table in enumerate(tables):
        table.save(tmp_path / f"{number}.parquet")
    duckdb.connect().execute(f"""
        COPY (
            SELECT piece, sum(count)::BIGINT AS count, min(first) AS first, source FROM (
                SELECT * FROM '{tmp_path}/0.parquet'
                UNION ALL SELECT piece, count, first + {tables[0].total}, source FROM '{tmp_path}/1.parquet'
            ) GROUP BY piece, source ORDER BY count DESC
        ) TO '{tmp_path}/both.parquet' (FORMAT parquet)
    """)
    theirs, ours = CountTable.load(tmp_path / "both.parquet", pattern="o200k"), tables[0] + tables[1]
    assert rows_of(theirs, tmp_path / "a.parquet") == rows_of(ours, tmp_path / "b.parquet")


@pytest.mark.parametrize("with_sources", [False, True])
def test_polars_makes_a_table(with_sources: bool, tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    sources = halves() if with_sources else {"": list(TEXTS.values())}
    columns = pieces_of(sources, "o200k")
    tables = [subword.count_pieces(texts, source=name) for name, texts in sources.items()]
    by = "piece, source" if with_sources else "piece"
    done = polars.SQLContext(pieces=polars.DataFrame(columns)).execute(
        f"SELECT {by}, COUNT(*) AS count, MIN(position) AS first FROM pieces GROUP BY {by}", eager=True
    )
    done.write_parquet(tmp_path / "polars.parquet")
    with pytest.raises(FormatError, match="does not say how its text became pieces; tell"):
        CountTable.load(tmp_path / "polars.parquet")
    theirs = CountTable.load(tmp_path / "polars.parquet", pattern="o200k")
    same_in_all_ways(theirs, sum(tables[1:], tables[0]), tmp_path)
    assert polars.read_parquet(tmp_path / "ours.parquet").sum()["count"].item() == len(columns["piece"])


def test_rows_in_any_order_and_more_than_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts_file._AnyFile, "BATCH", 7)
    rng = random.Random(4)
    for _ in range(20):
        rows = [(bytes(rng.choices(b"ab\x00\xff", k=rng.randint(1, 9))), rng.randint(1, 9)) for _ in range(40)]
        expected: Counter[bytes] = Counter()
        for piece, count in rows:
            expected[piece] += count
        table = made(tmp_path, rows)
        assert list(table) == sorted(expected.items()) and table.total == expected.total()


def test_without_first_there_is_no_order(tmp_path: Path) -> None:
    table = made(tmp_path, [(b"ab", 2)])
    with pytest.raises(
        SubwordValueError, match="takes the order from the column `first`, which the counts do not have"
    ):
        subword.train(counts=table, vocab_size=257, tie_rule="first-seen")
    assert not (table + subword.count_pieces(["a"])).has_first
    table.save(tmp_path / "t.parquet")
    assert "first" not in pq.read_schema(tmp_path / "t.parquet").names


I64 = pa.int64()


@pytest.mark.parametrize(("columns", "said"), [
    ({"count": pa.array([2.0])}, "column 'count' is double; it must be int64"),
    ({"count": pa.array([None], I64)}, "column 'count' has rows without a value"),
    ({"count": pa.array([0], I64)}, '"ab" is counted 0 times'),
    ({"count": pa.array([-3], I64)}, '"ab" is counted -3 times'),
    ({"count": pa.array([2**64 - 1], pa.uint64())}, "does not fit into int64"),
    ({"count": None}, "no column 'count'; the columns are piece"),
    ({"piece": pa.array([5])}, "column 'piece' is int64; it must be binary"),
    ({"piece": pa.array([b""])}, "a row without a piece"),
    ({"piece": pa.array([None], pa.binary())}, "column 'piece' has rows without a value"),
    ({"first": pa.array(["x"])}, "column 'first' is string; it must be int64"),
    ({"first": pa.array([-1], I64)}, '`first` of the piece "ab" is below 0'),
    ({"source": pa.array([1])}, "column 'source' is int64; it must be string"),
])  # fmt: skip
def test_columns_that_are_no_counts(columns: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=said) as raised:
        made(tmp_path, [(b"ab", 2)], **columns)
    assert "made.parquet: " in str(raised.value)


def test_metadata_that_says_something_else(tmp_path: Path) -> None:
    ((key, value),) = subword.count_pieces([]).metadata.items()
    good = json.loads(value)
    cases: list[tuple[str, str]] = [
        ("{", "is damaged"),
        ("[]", "is damaged"),
        (json.dumps(good | {"version": 2}), "a table of version 2; .* reads version 1: upgrade"),
        (json.dumps(good | {"pattern": "gpt2"}), "stages that this version of subword does not have"),
        (json.dumps(good | {"pattern": "nonesuch"}), "nonesuch"),
        (json.dumps(good | {"pattern": {"regex": "(", "x": 1}}), "made.parquet: "),
        (json.dumps(good | {"fingerprint": "0"}), "the fingerprint is not that of the stages"),
        (json.dumps(good | {"sorted": True, "sources": {"": [{"pieces": -1}]}}), "sources in its metadata are"),
        (json.dumps(good | {"sorted": True, "sources": {"\ud800": []}}), "the sources in its metadata are damaged"),
        (json.dumps(good | {"sorted": True}), "the sources in its metadata are damaged"),
        (json.dumps(good | {"sorted": True, "sources": {"": [{"pieces": "x"}]}}), "sources in its metadata are"),
    ]  # fmt: skip
    for text, said in cases:
        with pytest.raises(FormatError, match=said):
            made(tmp_path, [(b"ab", 2)], {key: text})
    made(tmp_path, [(b"ab", 2)])
    with pytest.raises(FormatError, match="counted with other stages than load is told: pattern 'o200k' and 'gpt2'"):
        CountTable.load(tmp_path / "made.parquet", pattern="gpt2")


def test_a_file_that_says_it_is_sorted_and_is_not(tmp_path: Path) -> None:
    ((key, value),) = subword.count_pieces([]).metadata.items()
    header = json.loads(value) | {"sorted": True, "sources": {"": [{"pieces": 2}]}}
    table = made(tmp_path, [(b"b", 1), (b"a", 1)], {key: json.dumps(header)})
    with pytest.raises(FormatError, match=r'made\.parquet: the piece "a" stands behind "b", though'):
        list(table)
    rows = [(b"%06d" % number, 1) for number in range(20_000)]
    rows[8191:8193] = reversed(rows[8191:8193])  # on the two sides of a block
    with pytest.raises(FormatError, match="stands behind"):
        list(made(tmp_path, rows, {key: json.dumps(header)}))
    with pytest.raises(FormatError, match="a source that the metadata does not list"):
        list(made(tmp_path, [(b"a", 1)], {key: json.dumps(header)}, source=pa.array(["elsewhere"])))


def test_a_damaged_file_is_an_error_or_what_it_was(tmp_path: Path) -> None:
    table = subword.count_pieces(list(TEXTS.values()))
    whole = bytes_of(table, tmp_path / "t.parquet")
    expected = dict(table)
    rng = random.Random(3)
    errors = []
    for round in range(150):
        data = bytearray(whole)
        if round % 2:
            data = data[: rng.randrange(len(data))]
        else:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        (tmp_path / "t.parquet").write_bytes(data)
        try:
            found = dict(CountTable.load(tmp_path / "t.parquet"))
        except SubwordError as error:
            errors.append(str(error))
        else:
            assert found == expected
    assert len(errors) > 100 and all("t.parquet: " in error for error in errors)
    (tmp_path / "x.parquet").write_text("piece,count\n")
    with pytest.raises(FormatError, match="not a Parquet file"):
        CountTable.load(tmp_path / "x.parquet")
    with pytest.raises(subword.SubwordOSError):
        CountTable.load(tmp_path / "absent.parquet")


def test_without_pyarrow_the_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = None; import subword; t = subword.count_pieces(['a b'])\n"
        "try: t.save('x.parquet')\nexcept ValueError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": SRC}
    )
    assert done.stdout == 'to write a table of counts takes pyarrow: pip install "subword[parquet]"\n', done.stderr


def test_saving_over_itself_and_into_nowhere(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    subword.count_pieces(["a b"]).save(path)
    os.chmod(path, 0o640)
    table = CountTable.load(path)
    (table + subword.count_pieces(["c"])).save(path)
    assert dict(CountTable.load(path)) == {b"a": 1, b" b": 1, b"c": 1}
    assert path.stat().st_mode & 0o777 == 0o640 and [file.name for file in tmp_path.iterdir()] == ["t.parquet"]
    with pytest.raises(subword.SubwordOSError, match="cannot write counts"):
        table.save(tmp_path / "absent" / "t.parquet")
    with pytest.raises(subword.SubwordOSError, match="this is a folder"):
        table.save(tmp_path)


# ======================== learning ========================


@pytest.mark.parametrize("tie_rule", list(reference.TIE_RULES))
def test_training_on_counts_is_training_on_texts(tie_rule: str, tmp_path: Path) -> None:
    texts = list(TEXTS.values())
    options: dict[str, Any] = {"vocab_size": 500, "tie_rule": tie_rule}
    how: dict[str, Any] = {"pattern": "gpt2", "special_tokens": ["<s>", "<e>"], "normalization": "NFC"}
    subword.train(texts, **options, **how).save(tmp_path / "one.subword")
    subword.count_pieces(texts[:40], **how).save(tmp_path / "a.parquet")
    rest = subword.count_pieces(texts[40:], **how, memory="1MB")
    subword.train(counts=[tmp_path / "a.parquet", rest], **options).save(tmp_path / "two.subword")
    assert (tmp_path / "two.subword").read_bytes() == (tmp_path / "one.subword").read_bytes()
    tok = subword.train(counts=subword.count_pieces(texts, **how), bos_token="<s>", **options, **how)
    assert tok.special_tokens == {"<s>": 498, "<e>": 499} and tok.bos_id == 498


def test_characters_from_counts() -> None:
    options: dict[str, Any] = {
        "vocab_size": 300,
        "unit": "character",
        "end_of_word": "</w>",
        "tie_rule": "largest-string",
    }
    texts = ["low lower newest widest " * 3, "slow är 中文"]
    with pytest.warns(SubwordWarning):
        expected = subword.train(texts, pattern="spaces", **options)
    with pytest.warns(SubwordWarning):
        assert subword.train(counts=subword.count_pieces(texts, pattern="spaces"), **options) == expected


def test_the_order_of_shards_matters_only_to_first_seen() -> None:
    a, b = subword.count_pieces(["ab cd"] * 3), subword.count_pieces(["cd ab xy"] * 3)
    for tie_rule in reference.TIE_RULES:
        one = subword.train(counts=[a, b], vocab_size=258, tie_rule=tie_rule)  # type: ignore[arg-type]
        two = subword.train(counts=[b, a], vocab_size=258, tie_rule=tie_rule)  # type: ignore[arg-type]
        assert (one == two) == (tie_rule != "first-seen")


def test_weights_are_exact() -> None:
    texts = list(TEXTS.values())
    code, web = texts[::2], texts[1::2]
    table = subword.count_pieces(code, source="code") + subword.count_pieces(web, source="web")
    for weights, expected in (
        ({"code": 3}, code * 3 + web),
        ({"code": "3/2"}, code * 3 + web * 2),
        ({"code": Fraction(1, 3), "web": Fraction(1, 2)}, code * 2 + web * 3),
        ({"code": 0}, web),
    ):
        tok = subword.train(counts=table, weights=weights, vocab_size=370)
        assert tok == subword.train(expected, vocab_size=370), weights
    assert tok.training is not None and tok.training["weights"] == {"code": "0"}


@pytest.mark.parametrize(("weights", "said"), [
    ({"nowhere": 1}, "no source 'nowhere'; the sources are 'code'"),
    ({"code": 0.3}, "must be a whole number or a fraction such as"),
    ({"code": -1}, "must be a whole number"),
    ({"code": "1/0"}, "must be a whole number"),
    ({"code": "much"}, "must be a whole number"),
    ({"code": 0}, "no piece is left"),
    ({"code": Fraction(1, 2**70)}, "too large a common denominator"),
    (["code"], "weights must be a dict"),
])  # fmt: skip
def test_weights_that_are_none(weights: Any, said: str) -> None:
    table = subword.count_pieces(["a b"], source="code")
    with pytest.raises(SubwordValueError, match=said):
        subword.train(counts=table, weights=weights, vocab_size=300)


def test_what_counts_cannot_be() -> None:
    table = subword.count_pieces(["a b"])
    cases: list[tuple[dict[str, Any], str]] = [
        ({"counts": table, "texts": ["a"]}, "one of the three"),
        ({"counts": []}, "counts is empty"),
        ({"counts": 5}, "counts must be a list"),
        ({"counts": [5]}, "a path must be str"),
        ({"counts": subword.count_pieces([])}, "nothing to train on: no text was given"),
        ({"counts": subword.count_pieces(["<s>"], special_tokens=["<s>"])}, "nothing outside special tokens"),
        ({"counts": table, "min_count": 0}, "min_count must be an integer of at least 1"),
        ({"counts": table, "min_count": 2}, "no piece is left with min_count=2"),
        ({"counts": table, "bos_token": "<s>"}, "special_tokens"),
    ]
    for options, said in cases:
        with pytest.raises(SubwordValueError, match=said):
            subword.train(**options, vocab_size=300)


@pytest.mark.parametrize("tie_rule", list(reference.TIE_RULES))
def test_merges_that_are_certain_are_those_of_all_pieces(tie_rule: str) -> None:
    rng = random.Random(tie_rule)
    some = 0
    for _ in range(400):
        letters = "abcdef"[: rng.randint(2, 6)]
        pieces: Counter[bytes] = Counter()
        for _ in range(rng.randint(2, 25)):
            pieces["".join(rng.choices(letters, k=rng.randint(1, 9))).encode()] += rng.choice((1, 1, 2, 3, 30, 300))
        texts = list(pieces.elements())
        rng.shuffle(texts)
        least = rng.choice((2, 3, 4, 10, 40))
        table = subword.count_pieces(texts, pattern="none")
        if not any(count >= least for _, count in table):
            continue
        all_of_them, _, _ = table.pieces(in_order=True)
        kept, _, pruned = table.pieces(min_count=least, in_order=True)
        expected, *_ = all_of_them.learn_bpe(30, bytes(range(256)), tie_rule, None)
        merges, _, certain, _ = kept.learn_bpe(30, bytes(range(256)), tie_rule, None)
        assert merges[:certain].tolist() == expected[:certain].tolist()
        assert pruned.count == sum(count for _, count in table if count < least)
        some += 0 < certain < len(merges)
    assert some > 20


def test_pruning_is_reported() -> None:
    texts = ["the cat the dog the bird "] * 500 + random_words(5, 2_000, "qxz")
    tok = subword.train(texts, vocab_size=262, min_count=3)
    assert tok.training is not None
    pruned = tok.training["pruned"]
    assert pruned["min_count"] == 3 and pruned["pieces"] >= pruned["distinct_pieces"] > 100
    assert 0 < pruned["certain_merges"] <= tok.training["merges"]
    full = subword.train(texts, vocab_size=262)
    certain = pruned["certain_merges"]
    assert tok.spec.model.merges[:certain].tolist() == full.spec.model.merges[:certain].tolist()
    again = subword.train(["the cat"] * 5, vocab_size=258, min_count=5)  # nothing is left out
    assert again.training is not None and again.training["pruned"]["certain_merges"] == 2


def test_learning_says_what_memory_it_needs(tmp_path: Path) -> None:
    table = subword.count_pieces([*["over and over again "] * 100, *random_words(6, 8_000_000)])
    assert table.memory_to_learn(300) > 30_000_000 and table.memory_to_learn(100_000) > table.memory_to_learn(300)
    with pytest.raises(
        SubwordValueError, match=r"takes up to [0-9]+ MB, more than memory=30 MB. With min_count="
    ) as raised:
        subword.train(counts=table, vocab_size=300, memory="30MB")
    least = int(str(raised.value).partition("min_count=")[2].split()[0])
    assert table.memory_to_learn(300, min_count=least) <= 30_000_000 < table.memory_to_learn(300, min_count=least - 1)
    tok = subword.train(counts=table, vocab_size=300, memory="30MB", min_count=least)
    assert tok.training is not None and tok.training["pruned"]["distinct_pieces"] > 0
    with pytest.raises(SubwordValueError, match="leaving out rare pieces does not help"):
        subword.train(counts=table, vocab_size=300, memory="10MB")


# ======================== killed ========================


def run(*args: str, folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "subword", *args]
    environment = os.environ | {"PYTHONPATH": SRC}
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def leave_unfinished(target: Path) -> None:
    """What a process leaves that is killed while it writes `target`."""
    code = (
        "import os, signal, sys\nfrom subword.writing import replacing\nwith replacing(sys.argv[1], 'it') as file:\n"
        "    file.write(b'half'); file.flush(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code, str(target)], env=os.environ | {"PYTHONPATH": SRC}, timeout=60)
    assert list(target.parent.glob(".subword-*"))


@pytest.mark.slow
def test_killed_at_any_moment(tmp_path: Path) -> None:
    work, temp = tmp_path / "work", tmp_path / "temp"
    work.mkdir()
    temp.mkdir()
    (work / "text.txt").write_text("\n".join(random_words(8, 12_000_000)))
    args = ("count-pieces", "text.txt", "-o", "out.parquet", "--memory", "1MB", "--temp", str(temp), "--force")
    started = time.perf_counter()
    _, errors = (process := run(*args, folder=work)).communicate(timeout=300)
    assert process.returncode == 0, errors
    seconds = time.perf_counter() - started
    expected = (work / "out.parquet").read_bytes()
    (work / "out.parquet").unlink()
    rng = random.Random(9)
    killed = 0
    for _ in range(8):
        process = run(*args, folder=work)
        time.sleep(rng.uniform(0.3, 1) * seconds)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        killed += process.returncode == -signal.SIGKILL
        assert list(temp.iterdir()) == []
        left = {path.name for path in work.iterdir()} - {"text.txt", "out.parquet"}
        assert len(left) <= 1 and all(name.startswith(".subword-") for name in left)
        assert not (work / "out.parquet").exists() or (work / "out.parquet").read_bytes() == expected
    assert killed
    leave_unfinished(work / "out.parquet")
    _, errors = (process := run(*args, folder=work)).communicate(timeout=300)
    assert process.returncode == 0, errors
    assert (work / "out.parquet").read_bytes() == expected
    assert {path.name for path in work.iterdir()} == {"text.txt", "out.parquet"}


# ======================== the parts that files never show ========================


def merged(*runs: list[tuple[bytes, int]]) -> Iterator[tuple[bytes, int]]:
    import numpy as np

    def block(rows: list[tuple[bytes, int]]) -> bytes:
        offsets = np.cumsum([0, *(len(piece) for piece, _ in rows)])
        zeros = np.zeros(len(rows), np.int64)
        data = b"".join(piece for piece, _ in rows)
        return _core.run_block(data, offsets, np.array([count for _, count in rows]), zeros, zeros.astype(np.uint32))

    readers = [(iter([block(rows[at : at + 3]) for at in range(0, len(rows), 3)]), 0, [0]) for rows in runs]
    data, offsets, found, _, _ = _core.PieceMerge(readers).rows(1_000_000)
    bounds = offsets.tolist()
    return zip((data[a:b] for a, b in pairwise(bounds)), found.tolist(), strict=True)


def test_runs_are_merged_in_order() -> None:
    rng = random.Random(11)
    for _ in range(300):
        runs = [
            sorted(
                (bytes(rng.choices(b"\x00a\xff", k=rng.randint(1, 12))), rng.randint(1, 5))
                for _ in range(rng.randint(0, 30))
            )
            for _ in range(rng.randint(0, 6))
        ]
        expected: Counter[bytes] = Counter()
        for piece, count in (row for run in runs for row in run):
            expected[piece] += count
        assert list(merged(*runs)) == sorted(expected.items())


def test_a_block_that_is_damaged_is_an_error() -> None:
    rng = random.Random(12)
    table = subword.count_pieces(["hello world, hello there"])
    (block,) = table.runs[0].read()
    for _ in range(500):
        data = bytearray(block[: rng.randrange(len(block) + 1)])
        if data:
            data[rng.randrange(len(data))] = rng.randrange(256)
        with suppress(FormatError, SubwordValueError):
            _core.PieceMerge([(iter([bytes(data)]), 0, [0])]).rows(100)


# ======================== the command line ========================


def command(*args: str, folder: Path) -> tuple[int, str, str]:
    process = run(*args, folder=folder)
    out, errors = process.communicate(timeout=300)
    return process.returncode, out.decode(), errors.decode()


def test_counting_and_training_from_the_command_line(tmp_path: Path) -> None:
    texts = [text for text in TEXTS.values() if text]
    for name, part in (("code", texts[::2]), ("web", texts[1::2])):
        lines = (json.dumps({"text": text}) + "\n" for text in part)
        (tmp_path / f"{name}.jsonl").write_text("".join(lines), "utf-8")
        args = ["count-pieces", f"{name}.jsonl", "-o", f"{name}.parquet", "--source", name, "--pattern", "gpt2"]
        code, out, errors = command(*args, "--special", "<s>", "--memory", "10MB", "--json", folder=tmp_path)
        summary = json.loads(out)
        assert (
            (code, errors) == (0, "") and summary["source"] == name and summary["bytes"] == len("".join(part).encode())
        )
        assert summary["distinct_pieces"] == len(CountTable.load(tmp_path / f"{name}.parquet"))
    both = ["--counts", "code.parquet", "--counts", "web.parquet"]
    code, out, _ = command("train", *both, "-v", "380", "-o", "t.json", "--weight", "code=3/1", folder=tmp_path)
    assert code == 0 and "380 entries" in out
    expected = subword.train([*texts[::2] * 3, *texts[1::2]], vocab_size=380, pattern="gpt2", special_tokens=["<s>"])
    assert subword.load(tmp_path / "t.json").fingerprint == expected.fingerprint
    code, out, _ = command("train", *both, "-v", "300", "-o", "u.json", "--min-count", "2", folder=tmp_path)
    assert code == 0 and "rarer ones left out" in out and "merges certain" in out


@pytest.mark.parametrize(("args", "said"), [
    (["train", "-v", "300", "-o", "t.json"], "no text: give files, or --counts"),
    (["train", "x.txt", "--counts", "c.parquet", "-v", "300", "-o", "t.json"], "give files or --counts, not both"),
    (["train", "--counts", "c.parquet", "--processes", "2", "-v", "300", "-o", "t.json"], "has been counted"),
    (["train", "x.txt", "--weight", "a=1", "-v", "300", "-o", "t.json"], "--weight goes with --counts"),
    (["train", "--counts", "c.parquet", "--weight", "a", "-v", "300", "-o", "t.json"], "write SOURCE=WEIGHT"),
    (["train", "--counts", "c.parquet", "--pattern", "gpt2", "-v", "300", "-o", "t.json"], "'o200k' and 'gpt2'"),
    (["train", "--counts", "c.parquet", "--regex", "a|.", "-v", "300", "-o", "t.json"], "'o200k' and SplitRegex"),
    (["train", "--counts", "x.txt", "-v", "300", "-o", "t.json"], "x.txt: damaged, or not a Parquet file"),
    (["count-pieces", "x.txt", "-o", "c.txt"], "a table of counts is a .parquet file"),
    (["count-pieces", "x.txt", "-o", "c.parquet"], "c.parquet exists; --force replaces it"),
    (["count-pieces", "x.txt", "-o", "d.parquet", "--memory", "lots"], "--memory must be a number of bytes"),
])  # fmt: skip
def test_command_lines_that_cannot_be_used(args: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("the text")
    subword.count_pieces(["the text"]).save(tmp_path / "c.parquet")
    code, out, errors = command(*args, folder=tmp_path)
    assert code in (1, 2) and out == "" and said in errors and len(errors.splitlines()) == 1
