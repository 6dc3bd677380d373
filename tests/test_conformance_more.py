"""Files of other kinds, and vectors that other programs made: llama.cpp's for GGUF, kitoken's for many tokenizers.

The files are third-party data and not part of this repository, see `test_conformance.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from vocabularies import shared_folder

import subword
from subword import formats
from subword.formats import gguf, rwkv, tekken
from subword.special import whisper_tokens

SHARED = shared_folder()
KIT = SHARED / "conformance" if SHARED is not None else Path("no-conformance-kit")
MORE, VECTORS = KIT / "files" / "more", KIT / "vectors"

pytestmark = [
    pytest.mark.skipif(SHARED is None, reason="no conformance kit: set SUBWORD_SHARED to the folder that has it"),
    pytest.mark.filterwarnings("ignore::subword.SubwordWarning"),
]

TEXTS: list[str] = json.loads((KIT / "texts.json").read_text("utf-8")) if SHARED is not None else []

# What files leave out.
SAID: dict[str, dict[str, Any]] = {
    "gpt1.vocab.json": {"pattern": "whitespace-split", "special_tokens": {}},
    "gpt1.merges.txt": {"pattern": "whitespace-split", "special_tokens": {}},
    "roberta.vocab.json": {"pattern": "gpt2", "special_tokens": {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}},
    "roberta.merges.txt": {"pattern": "gpt2", "special_tokens": {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}},
    "whisper_multilingual.tiktoken": {"special_tokens": whisper_tokens(99)},
}

KITOKEN = {
    "tokenizers/clip_base": "clip.json",
    "tokenizers/r1": "deepseek_v3.json",
    "tokenizers/xlnet_base_cased": "xlnet.json",
    "sentencepiece/llama2": "llama2_spm.model",
    "sentencepiece/mistral01": "mistral_v1.model",
    "sentencepiece/mistral03": "mistral_v3.model",
    "sentencepiece/nai-t5": "nai_t5.model",
    "sentencepiece/xlnet_base_cased": "xlnet_spm.model",
}
"""The vocabularies that are called otherwise there."""

SUFFIXES = {"tiktoken": ".tiktoken", "tokenizers": ".json", "sentencepiece": ".model"}

VECTORS_OF: dict[str, list[str]] = {}
"""Which of kitoken's vectors belong to a file: folder/name, by the file's name."""
for each in sorted(VECTORS.glob("kitoken/*/small_tokens_*")):
    library, vocabulary = each.parent.name, each.stem.removeprefix("small_tokens_")
    name = f"{library}/{vocabulary}"
    VECTORS_OF.setdefault(KITOKEN.get(name, vocabulary + SUFFIXES[library]), []).append(name)


@pytest.mark.parametrize("path", sorted(KIT.glob("files/**/*.*")), ids=lambda path: path.name)
def test_every_file_loads(path: Path) -> None:
    """And gives the ids that others have for it; each is read once for all that is asked of it."""
    if path.name in ("gpt1.vocab.json", "gpt1.merges.txt"):
        pytest.skip("GPT-1's two files have rules of their own, see test_gpt1")
    tok = subword.Tokenizer(formats.load(path, **SAID.get(path.name, {})))
    for name in VECTORS_OF.get(path.name, ()):
        check_kitoken(tok, *name.split("/"))
    if path.suffix == ".gguf":
        check_gguf(tok, path)


def rows_of(name: str) -> Iterator[tuple[str, list[int]]]:
    for text, ids, *_ in json.loads((KIT / "expected" / f"{name}.json").read_text("utf-8"))["rows"]:
        yield (TEXTS[text] if isinstance(text, int) else text), ids


def test_tekken() -> None:
    """As mistral-common has it; the file that is written from it means the same."""
    tok = subword.load(MORE / "tekken_240718.json")
    for text, ids in rows_of("tekken_240718"):
        assert tok.encode_ordinary(text) == ids, text
        assert tok.decode(ids) == text
    assert (tok.bos_id, tok.eos_id, tok.unk_id, tok.pad_id, tok.n_vocab) == (1, 2, 0, 11, 131_072)
    assert tekken.read(tekken.write(tok.spec), "again") == tok.spec


def test_rwkv() -> None:
    """The definition, on the texts of the kit; the file comes back byte for byte."""
    data = (MORE / "rwkv_vocab_v20230424.txt").read_bytes()
    tok = subword.Tokenizer(formats.read(data))
    slow = subword.Tokenizer(tok.spec, engine="reference")
    for text in TEXTS:
        ids = tok.encode(text)
        assert ids == slow.encode(text), text
        assert tok.decode(ids) == text
    assert rwkv.write(tok.spec) == data
    assert tok.encode("Hello world, 你好") == [33155, 40213, 45, 33, 10464, 11685]


@pytest.mark.parametrize(
    ("file", "named", "count"),
    [
        ("llama3.tiktoken.model", {"<|begin_of_text|>": 128000, "<|eot_id|>": 128009}, 256),
        ("qwen.tiktoken", {"<|endoftext|>": 151643, "<|im_end|>": 151645, "<|extra_204|>": 151850}, 208),
        ("kimi_k2.tiktoken", {"[BOS]": 163584, "<|im_end|>": 163586, "[PAD]": 163839}, 256),
    ],
)
def test_published_ranks(file: str, named: dict[str, int], count: int) -> None:
    """What the files leave out is known by their content."""
    tok = subword.load(MORE / file)
    assert len(tok.special_tokens) == count and tok.n_vocab == max(tok.special_tokens.values()) + 1
    assert {token: tok.special_tokens[token] for token in named} == named


def test_llama3_ranks_give_the_ids_of_its_json() -> None:
    tok = subword.load(MORE / "llama3.tiktoken.model")
    other = subword.load(KIT / "files" / "llama3.json")
    for text in TEXTS:
        assert tok.encode_ordinary(text) == other.encode_ordinary(text), text
    assert (tok.bos_id, tok.eos_id) == (other.token_id("<|begin_of_text|>"), other.token_id("<|end_of_text|>"))


def test_whisper_depends_on_the_model() -> None:
    with pytest.raises(formats.LeftOutError, match=r"Whisper's vocabulary.*whisper_tokens\(99\)"):
        subword.load(MORE / "whisper_multilingual.tiktoken")
    tok = subword.load(MORE / "whisper_multilingual.tiktoken", special_tokens=whisper_tokens(99))
    assert (tok.n_vocab, tok.eos_id, tok.bos_id) == (51_865, 50_257, 50_258)
    for text, ids in rows_of("whisper_multilingual"):
        assert tok.encode_ordinary(text) == ids, text


# ======================== llama.cpp ========================

SEPARATOR = "\n__ggml_vocab_test__\n"


def check_gguf(tok: subword.Tokenizer, path: Path) -> None:
    """llama.cpp's ids; and the file that is written means the same."""
    again = gguf.read(gguf.write(tok.spec), "again")
    assert again == tok.spec
    assert (again.roles, again.notes, again.chat) == (tok.spec.roles, tok.spec.notes, tok.spec.chat)
    vectors = VECTORS / f"{path.name}.inp"
    if not vectors.exists():
        check_xlm_r(tok)
        return
    texts = vectors.read_bytes().decode().split(SEPARATOR)
    rows = [list(map(int, row.split())) for row in vectors.with_suffix(".out").read_text().splitlines()]
    assert len(rows) == len(texts) - 1
    for text, ids in zip(texts, rows, strict=False):
        assert tok.encode_ordinary(text) == ids, text
    assert tok.encode_batch(texts[:-1], disallowed_special=()) == rows


def check_xlm_r(tok: subword.Tokenizer) -> None:
    """XLM-R's vocabulary, for which there are no vectors: text comes back."""
    assert tok.tokenize("Hello world, 你好").pieces == ["▁Hello", "▁world", ",", "▁", "你好"]
    ids = tok.encode("Hello  world", add_special_tokens=True)
    assert tok.decode(ids, skip_special_tokens=True) == "Hello world" and (ids[0], ids[-1]) == (0, 2)


def test_gguf_against_the_package() -> None:
    """Keys and values are those that the package gguf reads."""
    package = pytest.importorskip("gguf", reason="the package gguf is not installed")
    path = MORE / "ggml-vocab-bert-bge.gguf"
    theirs = {
        name: field.contents()
        for name, field in package.GGUFReader(path).fields.items()
        if not name.startswith("GGUF.")
    }
    ours = gguf.read_values(path.read_bytes(), path.name)
    assert list(ours) == list(theirs)
    for name, value in ours.items():
        mine = (
            [item.decode() if isinstance(item, bytes) else item for item in value.value] if value.is_array else value[1]
        )
        assert mine == theirs[name], name


# ======================== kitoken ========================


def lines_of(path: Path, is_whole: bool) -> list[str]:
    """The texts in a file: one, or one a line with escapes."""
    text = path.read_bytes().decode()
    return [text] if is_whole else [line.replace(r"\n", "\n").replace(r"\s", " ") for line in text.split("\n")]


def check_kitoken(tok: subword.Tokenizer, library: str, vocabulary: str) -> None:
    # SentencePiece takes no control token from text, and Kimi's are not in its ranks.
    parsed = library != "sentencepiece" and vocabulary != "kimi_k2"
    how: dict[str, Any] = {"allowed_special": "all"} if parsed else {"disallowed_special": ()}
    for kind in ("small", "mixed", "utf8"):
        whole = kind == "utf8"
        folder = VECTORS / "kitoken" / library
        texts = lines_of(VECTORS / "kitoken" / f"{kind}_input.txt", whole)
        given = (folder / f"{kind}_tokens_{vocabulary}.txt").read_text()
        lines = [given.replace("\n", "")] if whole else given.split("\n")
        rows = [[int(id) for id in line.split(",") if id.strip()] for line in lines]
        decoded = folder / f"{kind}_output_{vocabulary}.txt"
        wanted = lines_of(decoded, whole) if decoded.exists() else texts
        assert tok.encode_batch(texts, **how) == rows
        for text, ids, back in zip(texts, rows, wanted, strict=True):
            assert tok.encode(text, **how) == ids, text
            assert tok.decode(ids) == back, text
