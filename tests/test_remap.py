"""Remaps: ids, tables in memory, and tables in files, compared with plain loops and with what other programs write."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import subword
from subword import FormatError, Ragged, Remap, SubwordError, SubwordOSError, SubwordValueError
from subword import remap as remap_module

KEPT = Remap.of(6, [[0], [2], [3], [5]])
MIXED = Remap.of(6, [[0], [4, 1], [], [5], [2, 2, 3]])


def table(rows: int, dtype: Any = np.float32, width: int = 3) -> npt.NDArray[Any]:
    numbers = np.random.default_rng(1).normal(size=(rows, width))
    return bfloat16(numbers) if dtype == "bfloat16" else numbers.astype(dtype)


def bfloat16(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """As NumPy has it without a package for it: two bytes of no type."""
    return (np.asarray(numbers, dtype=np.float32).view(np.uint32) >> 16).astype(np.uint16).view("V2")


def as_numbers(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if array.dtype.kind == "V":
        array = (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float64)


# ======================== as a value ========================


@st.composite
def remaps(draw: st.DrawFn) -> Remap:
    old = draw(st.integers(0, 12))
    parts = st.lists(st.integers(0, old - 1), max_size=4) if old else st.just([])
    return Remap.of(old, draw(st.lists(parts, max_size=12)))


@given(remaps())
def test_ids_and_json(remap: Remap) -> None:
    parts = remap.parts.tolist()
    assert remap.ids.tolist() == [
        next((new for new, row in enumerate(parts) if row == [id]), -1) for id in range(remap.old)
    ]
    assert remap.ids.dtype == np.int64 and not remap.ids.flags.writeable
    assert remap.new == len(parts)
    again = Remap.from_json(remap.to_json())
    assert again == remap and hash(again) == hash(remap) and again.parts.tolist() == parts
    assert json.loads(remap.to_json())["rows"] == [row[0] if len(row) == 1 else row for row in parts]
    assert remap != Remap.of(remap.old + 1, parts) and remap != Remap.of(remap.old, [*parts, []])


def test_of_a_pruned_tokenizer(tmp_path: Path) -> None:
    tok = subword.train(["low lower lowest"], vocab_size=262, special_tokens=["<s>"])
    remap = tok.prune([259]).remap
    remap.save(tmp_path / "remap.json")
    assert Remap.load(tmp_path / "remap.json") == remap
    vectors = table(tok.n_vocab)
    changed = remap.apply(vectors)
    assert np.array_equal(changed[remap.ids[remap.ids >= 0]], vectors[remap.ids >= 0])


BAD_JSON = {
    "nothing": ("", "not JSON"),
    "a list": ("[]", "this is no remap"),
    "a tokenizer": ('{"version": "1.0"}', "this is no remap"),
    "newer": ('{"format": "subword remap", "version": 2}', "version 2; this subword reads version 1"),
    "cut off": (MIXED.to_json()[:-3], "not JSON"),
    "no rows": ('{"format": "subword remap", "version": 1, "old": 3, "new": 0}', "the field 'rows' is missing"),
    "few rows": (
        '{"format": "subword remap", "version": 1, "old": 3, "new": 2, "rows": [0]}',
        "1 rows, but `new` is 2",
    ),
    "an id too large": (
        '{"format": "subword remap", "version": 1, "old": 3, "new": 2, "rows": [0, [1, 3]]}',
        r"rows\[1\]\[1\]: expected a whole number from 0 to 2, found 3",
    ),
    "no ids": (
        '{"format": "subword remap", "version": 1, "old": 0, "new": 1, "rows": [0]}',
        r"rows\[0\]: expected a whole number from 0 to -1, found 0",
    ),
    "a float": ('{"format": "subword remap", "version": 1, "old": 3.0, "new": 0, "rows": []}', "old: expected a whole"),
    "true": ('{"format": "subword remap", "version": 1, "old": 3, "new": 1, "rows": [true]}', "found True"),
}


@pytest.mark.parametrize("case", BAD_JSON)
def test_damaged_json(case: str, tmp_path: Path) -> None:
    text, message = BAD_JSON[case]
    with pytest.raises(FormatError, match=message):
        Remap.from_json(text)
    path = tmp_path / "remap.json"
    path.write_text(text)
    with pytest.raises(FormatError, match=message) as error:
        Remap.load(path)
    assert str(path) in str(error.value)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(SubwordOSError, match="cannot read a remap"):
        Remap.load(tmp_path / "remap.json")
    with pytest.raises(SubwordOSError, match="cannot write a remap"):
        MIXED.save(tmp_path / "folder" / "remap.json")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Remap.of(2, [[2]]), "there is no old id 2; there were 2"),
        (lambda: Remap.of(2, [[-1]]), "the parts must be from 0"),
        (lambda: Remap.of(2, [["a"]]), "the parts must be an array"),
        (lambda: Remap.of(2, [0]), "the parts of an id must be a list"),
        (lambda: Remap.of(-2, []), "Remap.old must be"),
        (lambda: Remap.of(2**31 + 1, []), "more than the 2147483648 ids"),
        (lambda: Remap(2, [[0]]), "must be a Ragged"),
    ],
)
def test_bad_remaps(make: Callable[[], object], message: str) -> None:
    with pytest.raises(SubwordValueError, match=message):
        make()


# ======================== tables in memory ========================


def by_hand(remap: Remap, array: npt.NDArray[Any], fill: str) -> npt.NDArray[Any]:
    """The new rows as numbers, one at a time."""
    numbers = as_numbers(array)[: remap.old]
    empty = numbers.mean(axis=0) if fill == "mean" and remap.old else np.zeros(array.shape[1:])
    rows = [numbers[row].mean(axis=0) if row else empty for row in remap.parts.tolist()]
    return np.array(rows).reshape(-1, *array.shape[1:])


@settings(deadline=None)
@given(
    remaps(),
    st.sampled_from([np.float16, np.float32, np.float64, ">f4", "bfloat16"]),
    st.sampled_from(["mean", "zeros"]),
    st.integers(0, 2),
    st.sampled_from([1, 50, 10**6]),
)
def test_tables(remap: Remap, dtype: Any, fill: Any, padding: int, block: int) -> None:
    array = table(remap.old + padding, dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remap_module, "_BLOCK", block)
        check_table(remap, array, dtype, fill)


def check_table(remap: Remap, array: npt.NDArray[Any], dtype: Any, fill: Any) -> None:
    out = remap.apply(array, fill=fill)
    assert out.dtype == array.dtype and out.shape == (remap.new, 3)
    least = {"bfloat16": 2**-8, np.float16: 2**-11}.get(dtype, 1e-6)
    assert np.allclose(as_numbers(out), by_hand(remap, array, fill), rtol=least, atol=1e-6)
    for new, row in enumerate(remap.parts.tolist()):
        if len(row) == 1:
            assert out[new].tobytes() == array[row[0]].tobytes()
    if dtype != "bfloat16":
        for axis in (1, -1):
            assert np.array_equal(remap.apply(array.T, axis, fill), out.T)
    alone = as_numbers(remap.apply(np.ascontiguousarray(array[:, 0]), fill=fill))
    assert np.allclose(alone, as_numbers(np.ascontiguousarray(out[:, 0])), rtol=least)
    deep = remap.apply(np.stack([array, array], axis=1), fill=fill)
    assert np.allclose(as_numbers(deep), as_numbers(np.stack([out, out], axis=1)), rtol=least)


def test_bfloat16_is_rounded_as_ml_dtypes_rounds() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    bits = np.random.default_rng(2).integers(0, 2**16, size=(4000, 2)).astype(np.uint16)
    array = bits.view(ml_dtypes.bfloat16)
    array = array[np.isfinite(array.astype(np.float32)).all(axis=1)]
    remap = Remap.of(len(array), [[id, id + 1] for id in range(len(array) - 1)])
    numbers = array.astype(np.float64)
    means = ((numbers[:-1] + numbers[1:]) / 2).astype(np.float32)
    out = remap.apply(array)
    assert out.dtype == ml_dtypes.bfloat16
    assert out.tobytes() == means.astype(ml_dtypes.bfloat16).tobytes()
    assert remap.apply(array.view("V2")).tobytes() == out.tobytes()
    odd = np.array([[np.nan], [np.inf], [-np.inf], [1]], dtype=ml_dtypes.bfloat16)
    means = Remap.of(4, [[0, 3], [1, 3], [2, 3], [1, 2]]).apply(odd).astype(np.float32).ravel()
    assert np.array_equal(means, [np.nan, np.inf, -np.inf, np.nan], equal_nan=True)


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.bool_, np.complex64, "V1", "S3"])
def test_rows_are_copied_whatever_their_type(dtype: Any) -> None:
    array = np.frombuffer(np.random.default_rng(3).bytes(6 * 2 * np.dtype(dtype).itemsize), dtype).reshape(6, 2)
    assert KEPT.apply(array).tobytes() == array[[0, 2, 3, 5]].tobytes()
    with pytest.raises(SubwordValueError, match="means, which are not computed in"):
        MIXED.apply(array)
    holes = Remap.of(6, [[1], []])
    with pytest.raises(SubwordValueError, match="means, which are not computed in"):
        holes.apply(array)
    assert holes.apply(array, fill="zeros")[1].tobytes() == bytes(2 * array.itemsize)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros((5, 2)),), r"shape \(5, 2\) has no row for each of the 6 old ids"),
        ((np.zeros((6, 2)), 1), r"shape \(2, 6\) has no row"),
        ((np.zeros((6, 2)), 2), "axis=2: the array has 2 dimensions"),
        ((np.float32(1),), "axis=0: the array has 0 dimensions"),
        ((np.zeros((6, 2)), 0, "median"), "unknown fill 'median'"),
        ((np.zeros((6, 2)), "rows"), "axis must be"),
    ],
)
def test_bad_tables(arguments: Any, message: str) -> None:
    with pytest.raises(SubwordValueError, match=message):
        MIXED.apply(*arguments)


# ======================== .npy files ========================


@pytest.mark.parametrize("dtype", [np.float16, np.float32, ">f8", "bfloat16"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy(tmp_path: Path, dtype: Any, order: Any) -> None:
    array = np.array(table(8, dtype), order=order)
    np.save(tmp_path / "in.npy", array)
    assert MIXED.apply_to_file(tmp_path / "in.npy", tmp_path / "out.npy") == []
    out = np.load(tmp_path / "out.npy")
    assert out.dtype == array.dtype and out.tobytes() == MIXED.apply(array).tobytes()
    assert os.listdir(tmp_path) == ["in.npy", "out.npy"] or sorted(os.listdir(tmp_path)) == ["in.npy", "out.npy"]
    MIXED.apply_to_file(str(tmp_path / "in.npy"), tmp_path / "in.npy", fill="zeros")
    assert np.load(tmp_path / "in.npy").tobytes() == MIXED.apply(array, fill="zeros").tobytes()


def test_damaged_npy(tmp_path: Path) -> None:
    path, out = tmp_path / "in.npy", tmp_path / "out.npy"
    np.save(path, table(6))
    whole = path.read_bytes()
    rng = random.Random(1)
    cases = [b"", b"no array", whole[:40], whole[:-1], *(whole[: rng.randrange(len(whole))] for _ in range(20))]
    for data in cases:
        path.write_bytes(data)
        with pytest.raises(FormatError, match=r"not a \.npy file"):
            MIXED.apply_to_file(path, out)
    np.save(path, np.array([{}, 1]), allow_pickle=True)
    with pytest.raises(FormatError, match=r"not a \.npy file"):
        MIXED.apply_to_file(path, out)
    np.save(path, table(5))
    with pytest.raises(SubwordValueError, match=r"in.npy: an array of shape \(5, 3\) has no row"):
        MIXED.apply_to_file(path, out)
    with pytest.raises(SubwordOSError, match="cannot read a table"):
        MIXED.apply_to_file(tmp_path / "other.npy", out)
    assert not out.exists()


# ======================== .safetensors files ========================


def safetensors(
    tensors: dict[str, tuple[str, npt.NDArray[Any]]], metadata: dict[str, str] | None = None, **changes: Any
) -> bytes:
    """A file, put together from what is published about the format; `changes` are made to the header."""
    header: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    data = b""
    for name, (dtype, array) in tensors.items():
        offsets = [len(data), len(data) + array.nbytes]
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": offsets}
        data += array.tobytes()
    for name, change in changes.items():
        header[name] = header.get(name, {}) | change if isinstance(change, dict) else change
    line = json.dumps(header).encode()
    return len(line).to_bytes(8, "little") + line + data


def tensors_in(data: bytes) -> tuple[dict[str, tuple[str, list[int], bytes]], dict[str, str]]:
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    assert length % 8 == 0
    metadata = header.pop("__metadata__", {})
    body, at = data[8 + length :], 0
    found = {}
    for name, row in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        first, last = row["data_offsets"]
        assert first == at
        at = last
        found[name] = (row["dtype"], row["shape"], body[first:last])
    assert at == len(body)
    return found, metadata


TENSORS = {
    "embed.weight": ("BF16", table(6, "bfloat16", 4)),
    "norm": ("F32", np.arange(5, dtype=np.float32)),
    "odd": ("F4", np.arange(6, dtype=np.uint8)),
    "head.weight": ("F16", table(6, np.float16, 4)),
    "scalar": ("I64", np.array(7)),
    "none": ("F32", np.zeros((0, 6), np.float32)),
    "head.bias": ("F32", table(6, np.float32, 1)[:, 0]),
}


@pytest.mark.parametrize("fill", ["mean", "zeros"])
def test_safetensors(tmp_path: Path, fill: Any) -> None:
    path, out = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    path.write_bytes(safetensors(TENSORS, {"format": "pt", "é": "中"}, odd={"shape": [12]}))
    changed = MIXED.apply_to_file(path, out, fill=fill)
    assert changed == ["embed.weight", "head.weight", "head.bias"]
    found, metadata = tensors_in(out.read_bytes())
    assert metadata == {"format": "pt", "é": "中"} and list(found) == list(TENSORS)
    for name, (dtype, array) in TENSORS.items():
        expected = MIXED.apply(array, fill=fill) if name in changed else array
        shape = [12] if name == "odd" else list(expected.shape)
        assert found[name] == (dtype, shape, expected.tobytes())
    only = tmp_path / "only.safetensors"
    assert MIXED.apply_to_file(path, only, tensors=["head.weight"], fill=fill) == ["head.weight"]
    few, _ = tensors_in(only.read_bytes())
    assert [name for name in TENSORS if few[name] != found[name]] == ["embed.weight", "head.bias"]
    MIXED.apply_to_file(path, path, fill=fill)
    assert path.read_bytes() == out.read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["in.safetensors", "only.safetensors", "out.safetensors"]


def test_a_padded_table_must_be_named(tmp_path: Path) -> None:
    path, out = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    array = table(8)
    path.write_bytes(safetensors({"embed": ("F32", array), "norm": ("F32", np.ones(3, np.float32))}))
    with pytest.raises(SubwordValueError, match=r"no tensor has 6 rows; .*--tensor.* the longest are embed \(8 × 3\)"):
        MIXED.apply_to_file(path, out)
    assert MIXED.apply_to_file(path, out, ["embed"]) == ["embed"]
    assert tensors_in(out.read_bytes())[0]["embed"] == ("F32", [5, 3], MIXED.apply(array).tobytes())


def test_many_tensors_of_so_many_rows_must_be_named(tmp_path: Path) -> None:
    path, out = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    path.write_bytes(safetensors({f"layer.{n}": ("F32", table(6)) for n in range(4)}))
    with pytest.raises(SubwordValueError, match=r"4 tensors have 6 rows; name those .*layer.0 \(6 × 3\)"):
        MIXED.apply_to_file(path, out)
    assert not out.exists()
    assert MIXED.apply_to_file(path, out, ["layer.2"]) == ["layer.2"]


def test_eight_bits(tmp_path: Path) -> None:
    path, out = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    array = np.random.default_rng(4).integers(0, 256, (6, 2)).astype(np.uint8)
    path.write_bytes(safetensors({"embed": ("F8_E4M3", array)}))
    with pytest.raises(SubwordValueError, match=r"the tensor 'embed' \(F8_E4M3\): new ids start from means"):
        MIXED.apply_to_file(path, out)
    assert KEPT.apply_to_file(path, out) == ["embed"]
    assert tensors_in(out.read_bytes())[0]["embed"] == ("F8_E4M3", [4, 2], array[[0, 2, 3, 5]].tobytes())


def test_what_the_package_safetensors_writes_and_reads(tmp_path: Path) -> None:
    numpy = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
    path, out = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    dtypes = (np.float16, np.float32, np.float64)
    tensors = {f"{np.dtype(dtype)}": table(6, dtype) for dtype in dtypes}
    others = {"ids": np.arange(10), "flags": np.array([True, False]), "scalar": np.array(1.5), "no": np.zeros((0, 2))}
    numpy.save_file(tensors | others, path, metadata={"format": "np"})
    assert sorted(MIXED.apply_to_file(path, out)) == sorted(tensors)
    found = numpy.load_file(out)
    assert found.keys() == (tensors | others).keys()
    for name, array in found.items():
        expected = MIXED.apply(tensors[name]) if name in tensors else others[name]
        assert array.dtype == expected.dtype and np.array_equal(array, expected)
    with __import__("safetensors").safe_open(out, "numpy") as file:
        assert file.metadata() == {"format": "np"}


ONE = {"embed": ("F32", table(6)), "norm": ("F32", np.ones(3, np.float32))}
BAD_FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "no safetensors file"),
    "short": (b"\x10\0\0", "no safetensors file"),
    "text": (b"this is a text of some length", "no safetensors file"),
    "a huge header": ((2**63).to_bytes(8, "little") + b"{}", "no safetensors file"),
    "header cut off": (safetensors(ONE)[:40], "cut off in its header, 40 of"),
    "header no JSON": ((4).to_bytes(8, "little") + b"{'a'", "not JSON"),
    "header no UTF-8": ((4).to_bytes(8, "little") + b'{"\xff"', "not UTF-8"),
    "a name twice": ((17).to_bytes(8, "little") + b'{"a": 1, "a": 2 }', "gives the key 'a' twice"),
    "data cut off": (safetensors(ONE)[:-1], "cut off in its data"),
    "data too long": (safetensors(ONE) + b"x", "more than its tensors take"),
    "no object": (safetensors(ONE, embed=5), "embed: expected an object"),
    "no dtype": (safetensors(ONE, embed={"dtype": 5}), "embed.dtype: expected a string"),
    "a negative shape": (safetensors(ONE, embed={"shape": [-6, 3]}), r"embed.shape\[0\]: expected a whole number"),
    "another shape": (safetensors(ONE, embed={"shape": [6, 4]}), r"embed: 72 bytes .* F32 of shape \[6, 4\]"),
    "another type": (safetensors(ONE, embed={"dtype": "F64"}), "embed: 72 bytes of data are not what F64"),
    "three offsets": (safetensors(ONE, embed={"data_offsets": [0, 72, 3]}), "embed.data_offsets: expected where"),
    "backward": (safetensors(ONE, embed={"data_offsets": [72, 0]}), "embed.data_offsets: expected where"),
    "a hole": (safetensors(ONE, norm={"data_offsets": [76, 88]}), "norm.data_offsets: the data should start at 72"),
    "an overlap": (safetensors(ONE, norm={"data_offsets": [60, 72]}), "norm.data_offsets: the data should start at 72"),
    "metadata": (safetensors(ONE, __metadata__=[1]), "__metadata__: expected an object"),
    "metadata of numbers": (safetensors(ONE, __metadata__={"a": 1}), "__metadata__.a: expected a string"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_damaged_safetensors(case: str, tmp_path: Path) -> None:
    path, out = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    data, message = BAD_FILES[case]
    path.write_bytes(data)
    with pytest.raises(FormatError, match=message) as error:
        MIXED.apply_to_file(path, out)
    assert str(path) in str(error.value)
    assert os.listdir(tmp_path) == ["in.safetensors"]


def test_bytes_changed_at_random(tmp_path: Path) -> None:
    """Whatever a header says, there is an error of ours or a file."""
    path, out = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    whole = safetensors(ONE, {"a": "b"})
    rng = random.Random(5)
    refused = 0
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(whole) - 84)] = rng.choice(b'"{}[]:,0189aFx\xff\0 ')
        path.write_bytes(data)
        try:
            MIXED.apply_to_file(path, out)
        except SubwordError:
            refused += 1
    assert 100 < refused < 300


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("in.safetensors", "out.npy"), "from a .safetensors file a .safetensors file is made"),
        (("in.bin", "out.bin"), "are read from .npy and .safetensors"),
        (("in.safetensors", "out.safetensors", ["other"]), r"no tensor 'other'; there are embed \(6 × 3\), norm"),
        (
            ("in.safetensors", "out.safetensors", ["norm"]),
            r"the tensor 'norm' \(F32\): an array of shape \(3,\) has no",
        ),
        (("in.safetensors", "out.safetensors", "embed"), "tensors must be a list"),
        (("in.safetensors", "out.safetensors", []), "no tensor is named"),
        (("in.safetensors", "out.safetensors", None, "median"), "unknown fill"),
        (("in.npy", "out.npy", ["embed"]), "has no name; leave out tensors"),
        ((5, "out.npy"), "a path must be"),
    ],
)
def test_bad_calls(arguments: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.safetensors").write_bytes(safetensors(ONE))
    with pytest.raises(SubwordValueError, match=message):
        MIXED.apply_to_file(*arguments)
    assert os.listdir() == ["in.safetensors"]


def test_files_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    path = tmp_path / "in.safetensors"
    with pytest.raises(SubwordOSError, match="cannot read a table"):
        MIXED.apply_to_file(path, tmp_path / "out.safetensors")
    path.write_bytes(safetensors(ONE))
    with pytest.raises(SubwordOSError, match="cannot write a file of tensors"):
        MIXED.apply_to_file(path, tmp_path / "folder" / "out.safetensors")


def test_a_ragged_of_parts() -> None:
    parts = Ragged(np.array([0, 1, 1], dtype=np.uint32), np.array([0, 1, 3], dtype=np.uint64))
    assert Remap(2, parts) == Remap.of(2, [[0], [1, 1]])
