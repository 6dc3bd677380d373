"""Damaged and hostile files of the newer formats: an error that names the place, in little time and memory.

Those of the older formats stand in their own tests.
"""

from __future__ import annotations

import contextlib
import json
import random
import resource
import struct
from collections.abc import Callable
from typing import Any

import pytest
from format_specs import END, spec_of
from test_convert_matrix import SPECS

from subword import formats
from subword.errors import FormatError, SubwordError
from subword.formats import gguf, gguf_values, rwkv, tekken
from subword.formats.gguf_values import ARRAY, F32, I32, STRING, U8, U32, U64, Value

pytestmark = pytest.mark.filterwarnings("ignore::subword.SubwordWarning")

MORE_MEMORY = 200 << 20
"""No file of some kilobytes may take so much."""


def problem_of(data: bytes) -> str:
    """The error that reading gives, which must be one of ours and no large allocation."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(FormatError) as caught:
        formats.read(data, "file")
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < MORE_MEMORY
    assert str(caught.value).startswith("file: ")
    return str(caught.value)


FILES: dict[str, Callable[[], bytes]] = {
    "gguf gpt2": lambda: gguf.write(spec_of(END, roles={"eos": 260})),
    "gguf llama": lambda: gguf.write(SPECS["SentencePiece's BPE"]()),
    "gguf t5": lambda: gguf.write(SPECS["SentencePiece's Unigram"]()),
    "gguf bert": lambda: gguf.write(SPECS["WordPiece"]()),
    "gguf rwkv": lambda: gguf.write(SPECS["longest match"]()),
    "tekken": lambda: tekken.write(SPECS["Mistral's BPE"]()),
    "rwkv": lambda: rwkv.write(SPECS["longest match"]()),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_cut_off(name: str) -> None:
    data = FILES[name]()
    assert formats.read(data) is not None
    for at in sorted({*range(1, 40), *range(40, len(data) - 1, max(1, len(data) // 60))}):
        if name == "rwkv" and data[at - 1 : at + 1].count(b"\n"):
            continue  # whole lines: what is left out shows where a byte is
        problem_of(data[:at])


@pytest.mark.parametrize("name", FILES)
def test_a_file_with_other_bytes(name: str) -> None:
    """An error of ours, or a tokenizer: nothing else."""
    data, rng = FILES[name](), random.Random(name)
    for _ in range(150):
        damaged = bytearray(data)
        for _ in range(rng.choice((1, 1, 2, 8))):
            damaged[rng.randrange(len(data))] = rng.choice((0, 1, 32, 34, 127, 128, 255, rng.randrange(256)))
        with contextlib.suppress(SubwordError):
            formats.read(bytes(damaged), "file")


# ======================== GGUF ========================


def head(count: int = 1, version: int = 3, tensors: int = 0) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, count)


def key(name: str, type: int) -> bytes:
    return struct.pack("<Q", len(name)) + name.encode() + struct.pack("<I", type)


WRONG_BYTES = {
    "version 1": (head(version=1), "version 1 of GGUF; 2 and 3 are read"),
    "version 9": (head(version=9), "version 9 of GGUF"),
    "nothing": (b"GGUF", "at byte 4: the version should have 4 bytes, but 0 are left"),
    "too many keys": (head(2**63), "9,223,372,036,854,775,808 keys; no model has more than 65,536"),
    "a key of 2^62 bytes": (head() + struct.pack("<Q", 2**62), "the first key should have 4,611,686,018,427,387,904"),
    "an unknown type": (head() + key("a", 77), "a: at byte 37: the type 77 is unknown"),
    "an array of 2^60 numbers": (
        head() + key("a", ARRAY) + struct.pack("<IQ", U64, 2**60), "a: at byte 49: .* items should have",
    ),
    "an array of 2^60 strings": (
        head() + key("a", ARRAY) + struct.pack("<IQ", STRING, 2**60), "strings, but 0 bytes are left",
    ),
    "an array of arrays": (head() + key("a", ARRAY) + struct.pack("<IQ", ARRAY, 3), "an array of arrays"),
    "a string that is cut off": (
        head() + key("a", ARRAY) + struct.pack("<IQQ", STRING, 1, 99) + b"x" * 16, "item 0 of 1 is cut off",
    ),
    "a key twice": (head(2) + (key("a", U8) + b"\0") * 2, "a: .* stands there twice"),
    "no text": (head() + key("a", STRING) + struct.pack("<Q", 1) + b"\xff", "the value is not UTF-8"),
    "no tokenizer": (head(0), "the key 'tokenizer.ggml.model' is missing"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG_BYTES)
def test_a_damaged_gguf_names_the_byte(case: str) -> None:
    data, wanted = WRONG_BYTES[case]
    with pytest.raises(FormatError, match=wanted):
        raise FormatError(problem_of(data))


def values(**changes: Any) -> bytes:
    """The file of a small BPE with other values; None takes one away."""
    read = dict(gguf_values.read(gguf.write(spec_of(END, roles={"eos": 260})), "x"))
    for name, value in changes.items():
        full = f"tokenizer.ggml.{name}"
        if value is None:
            del read[full]
        else:
            read[full] = value
    return gguf_values.write(read)


def strings(*items: str) -> Value:
    return Value(STRING, [item.encode() for item in items], True)


TOKENS = [token.decode() for token in gguf_values.read(gguf.write(spec_of(END)), "x")["tokenizer.ggml.tokens"].value]

WRONG_VALUES = {
    "another kind": ({"model": Value(STRING, "plamo2")}, "model: the kind 'plamo2' of tokenizer is not supported"),
    "a kind that is no string": ({"model": Value(U32, 1)}, "model: expected a string, found u32"),
    "an unknown split": ({"pre": Value(STRING, "mine")}, "pre: the split pattern 'mine': it is unknown"),
    "a split that cannot be run": ({"pre": Value(STRING, "superbpe")}, "pre: .*llama.cpp knows it"),
    "no tokens": ({"tokens": None}, "the key 'tokenizer.ggml.tokens' is missing"),
    "tokens that are numbers": (
        {"tokens": Value(U32, [1, 2], True)},
        "tokens: expected an array of strings, found u32",
    ),
    "types of fewer": ({"token_type": Value(I32, [1], True)}, "token_type: 1 items for 261 tokens"),
    "types that are no whole numbers": (
        {"token_type": Value(F32, [1.0], True)},
        "token_type: expected an array of i32",
    ),
    "no merges": ({"merges": None}, "the key 'tokenizer.ggml.merges' is missing"),
    "a merge without a space": ({"merges": strings("th")}, r"merges\[0\]: 'th' does not join two entries"),
    "a merge to nothing": ({"merges": strings("t h", "h t")}, r"merges\[1\]: 'h t' does not join"),
    "a merge twice": ({"merges": strings("t h", "t h")}, r"merges\[1\]: .*'t h'.* stands there twice"),
    "a token twice": (
        {"tokens": strings(*TOKENS[:-2], TOKENS[0], TOKENS[-1])},
        r"tokens\[259\]: b'!' is the entry 0, too",
    ),
    "bos without an id": (
        {"add_bos_token": Value(gguf_values.BOOL, True)},
        "add_bos_token: it is true, but there is no",
    ),
    "a flag that is a number": ({"add_eos_token": Value(U32, 1)}, "add_eos_token: expected true or false, found u32"),
}


@pytest.mark.parametrize("case", WRONG_VALUES)
def test_a_wrong_value_names_its_key(case: str) -> None:
    changes, wanted = WRONG_VALUES[case]
    with pytest.raises(FormatError, match=wanted):
        raise FormatError(problem_of(values(**changes)))


def test_what_gguf_may_look_like() -> None:
    """The other end first, version 2, ids that are no tokens, tensors behind."""
    spec = spec_of(END, roles={"eos": 260})
    data = gguf.write(spec)
    assert formats.read(data.replace(b"GGUF\3", b"GGUF\2", 1)) == spec
    assert formats.read(data + b"\0" * 5000) == spec
    far = formats.read(values(bos_token_id=Value(U32, 4_000_000_000)))
    assert far == spec and "bos" not in far.roles
    large = b"GGUF" + struct.pack(">IQQ", 3, 0, 2)
    for name in ("a", "b"):
        large += struct.pack(">Q", 1) + name.encode() + struct.pack(">IIQ2I", ARRAY, U32, 2, 1, 258)
    assert [value.value.tolist() for value in gguf_values.read(large, "x").values()] == [[1, 258]] * 2


def test_only_the_head_of_a_model_is_read(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a model with tensors, so many bytes; also of one that is larger than any tokenizer may be."""
    spec = spec_of(END)
    data = gguf.write(spec)
    monkeypatch.setattr(formats, "GGUF_HEAD_BYTES", len(data))
    monkeypatch.setattr(formats.files, "MAX_FILE_BYTES", len(data) + 10)
    path = tmp_path / "model.gguf"
    with path.open("wb") as file:
        file.write(data)
        file.truncate(1 << 33)  # a hole
    assert formats.load(path) == spec
    assert formats.recognise(path)[1].name == "gguf"


# ======================== tekken.json and RWKV ========================


def tekken_with(change: Callable[[Any], object]) -> bytes:
    document = json.loads(tekken.write(SPECS["Mistral's BPE"]()))
    change(document)
    return json.dumps(document).encode()


WRONG_TEKKEN: dict[str, tuple[Callable[[Any], object], str]] = {
    "fewer entries than it says": (lambda d: d["config"].update(default_vocab_size=999), "260 entries, where 995"),
    "no room for bytes": (lambda d: d["config"].update(default_vocab_size=9), "leave no room for the 256 bytes"),
    "a size of 2^40": (lambda d: d["config"].update(default_vocab_size=2**40), "config.default_vocab_size: expected"),
    "special tokens of 2^30": (lambda d: d["config"].update(default_num_special_tokens=2**30), "config.default_num"),
    "a size that is text": (lambda d: d["config"].update(default_vocab_size="1"), "default_vocab_size: expected"),
    "no pattern": (lambda d: d["config"].pop("pattern"), "config: the field 'pattern' is missing"),
    "a wrong pattern": (lambda d: d["config"].update(pattern="("), "config.pattern: "),
    "ranks out of order": (lambda d: d["vocab"][3].update(rank=9), r"vocab\[3\].rank: expected 3, found 9"),
    "no base64": (lambda d: d["vocab"][257].update(token_bytes="=!"), r"vocab\[257\].token_bytes: expected bytes"),
    "bytes in another order": (lambda d: d["vocab"][5].update(token_bytes="AA=="), r"vocab\[5\].*: the first"),
    "an entry twice": (lambda d: d["vocab"][257].update(token_bytes=d["vocab"][256]["token_bytes"]), "vocab: .*twice"),
    "an entry that is a list": (lambda d: d["vocab"].__setitem__(7, []), r"vocab\[7\]: expected an object"),
    "special tokens twice": (lambda d: d["special_tokens"][0].update(token_str="</s>"), "special_tokens: .* twice"),
    "too many special tokens": (
        lambda d: d["config"].update(default_num_special_tokens=2, default_vocab_size=262), "there are 3 special",
    ),
    "a newer file that lists none": (
        lambda d: (d.pop("special_tokens"), d["config"].update(version="v11")), "version: .*must list its special",
    ),
    "an empty special token": (lambda d: d["special_tokens"][1].update(token_str=""), r"special_tokens\[1\].token_str"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG_TEKKEN)
def test_a_wrong_tekken_names_the_field(case: str) -> None:
    change, wanted = WRONG_TEKKEN[case]
    with pytest.raises(FormatError, match=wanted):
        raise FormatError(problem_of(tekken_with(change)))


def test_tekken_of_old_versions_lists_no_special_tokens() -> None:
    """They have the first names that Mistral gave, and numbers behind; notes and plain tokens come back."""
    spec = formats.read(
        tekken_with(
            lambda d: (
                d.pop("special_tokens"),
                d["config"].update(version="v3", default_num_special_tokens=30, default_vocab_size=290),
                d.update(image={"image_patch_size": 16}),
            )
        )
    )
    names = [token.content for token in spec.extra]
    assert names[:4] == ["<unk>", "<s>", "</s>", "[INST]"] and names[20:] == [f"<SPECIAL_{id}>" for id in range(20, 30)]
    assert spec.notes["tekken"] == {"version": "v3", "image": {"image_patch_size": 16}}
    again = formats.read(tekken.write(spec))
    assert again == spec and again.notes == spec.notes
    plain = formats.read(tekken_with(lambda d: d["special_tokens"][2].update(is_control=False)))
    assert plain.notes["tekken"]["not_control"] == ["</s>"]
    assert formats.read(tekken.write(plain)).notes == plain.notes


WRONG_RWKV = {
    "another length": (b"1 'ab' 3\n", "line 1: b'ab' has 2 bytes, not 3"),
    "an expression": (b"1 'a' 1\n2 __import__('os') 1\n", "line 2: expected an id, a Python literal"),
    "a name": (b"1 'a' 1\n2 '\\N{DIGIT ONE}' 1\n", "line 2: .* is no literal"),
    "an id twice": (b"1 'a' 1\n1 'b' 1\n", "line 2: the id 1 stands already"),
    "an entry twice": (b"1 'a' 1\n2 b'a' 1\n", "line 2: the entry b'a' stands already in line 1"),
    "a large id": (b"1 'a' 1\n4294967296 'b' 1\n", "line 2: the id 4294967296 is beyond the largest"),
    "nothing": (b"1 'a' 1\n2 '' 0\n", "line 2: the entry is empty"),
    "half a character": (b"1 'a' 1\n2 '\\ud800' 3\n", "line 2: .* is no literal"),
    "no bytes": (b"1 'a' 1\n", "no entry for the byte 0x00"),
}


@pytest.mark.parametrize("case", WRONG_RWKV)
def test_a_wrong_rwkv_vocabulary_names_the_line(case: str) -> None:
    data, wanted = WRONG_RWKV[case]
    with pytest.raises(FormatError, match=wanted):
        raise FormatError(problem_of(data))


def test_rwkv_with_a_name_for_its_end() -> None:
    data = rwkv.write(SPECS["longest match"]())
    file = formats.bare.Input(data, "x", special_tokens={"<|endoftext|>": 0})
    spec = rwkv.read(file)
    assert spec.extra[0].id == 0 and rwkv.write(spec) == data
    with pytest.raises(FormatError, match=r"cannot have the id 5, which is that of b'\\x04'"):
        rwkv.read(formats.bare.Input(data, "x", special_tokens={"<|endoftext|>": 5}))
