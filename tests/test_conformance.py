"""Real vocabularies give the ids that the libraries they come from give.

The files and the expected ids are third-party data and not part of this repository: the tests look for the folder that
SUBWORD_SHARED names, or for `shared` beside the repository, and are skipped where there is none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from texts import hurting_for
from vocabularies import ranks_of, shared_folder

import subword
from subword import formats
from subword.errors import SubwordWarning
from subword.formats import clip, native, tokenizer_json
from subword.patterns import PATTERNS, pattern_of

SHARED = shared_folder()
KIT = SHARED / "conformance" if SHARED is not None else Path("no-conformance-kit")

pytestmark = pytest.mark.skipif(
    SHARED is None, reason="no conformance kit: set SUBWORD_SHARED to the folder that has it"
)

# The pattern that tiktoken has for each vocabulary; a file of ranks does not say.
RANK_PATTERNS = {"r50k_base": "gpt2", "p50k_base": "gpt2", "cl100k_base": "cl100k", "o200k_base": "o200k"}


def expected() -> dict[str, Any]:
    """What the reference libraries gave, by name; without the rows, which are long."""
    files = sorted((KIT / "expected").glob("*.json"))
    return {path.stem: json.loads(path.read_text("utf-8")) for path in files}


EXPECTED = expected()
TEXTS: list[str] = json.loads((KIT / "texts.json").read_text("utf-8")) if SHARED is not None else []
TOKENIZER_JSON = [
    name for name, row in EXPECTED.items() if str(row["file"]).endswith(".json") and "/" not in row["file"]
]
RANKS = [
    name for name, row in EXPECTED.items() if name in RANK_PATTERNS or pattern_of(row.get("pattern", "")) is not None
]


def rows_of(name: str) -> Iterator[list[Any]]:
    """`[text, ids, …]`, the text as such."""
    for text, *rest in EXPECTED[name]["rows"]:
        yield [TEXTS[text] if isinstance(text, int) else text, *rest]


@pytest.mark.filterwarnings("ignore:.*the file says .* as in tokenizers:subword.SubwordWarning")
@pytest.mark.parametrize("name", TOKENIZER_JSON)
def test_tokenizer_json(name: str) -> None:
    """Its ids and texts are those of tokenizers; so are those of the same tokenizer saved and loaded again."""
    tokenizer = subword.load(KIT / "files" / EXPECTED[name]["file"])
    for text, ids, _, decoded in rows_of(name):
        assert tokenizer.encode(text, allowed_special="all") == ids, text
        assert tokenizer.decode(ids) == decoded
    for text, ids in zip(TEXTS, EXPECTED[name]["with_special"], strict=False):
        assert tokenizer.encode(text, allowed_special="all", add_special_tokens=True) == ids
    for write in (native.write, tokenizer_json.write):
        assert formats.read(write(tokenizer.spec)) == tokenizer.spec
    hf = pytest.importorskip("tokenizers")
    theirs = hf.Tokenizer.from_str(tokenizer_json.write(tokenizer.spec).decode())
    theirs.no_padding()
    theirs.no_truncation()
    for text, ids, *_ in rows_of(name):
        assert theirs.encode(text, add_special_tokens=False).ids == ids, text
    for text, ids in zip(TEXTS, EXPECTED[name]["with_special"], strict=False):
        assert theirs.encode(text).ids == ids, text


@pytest.mark.parametrize("name", RANKS)
def test_ranks(name: str) -> None:
    """tiktoken's files of ranks; and the same with merges instead, read from the tokenizer.json that it becomes."""
    row = EXPECTED[name]
    by_regex = pattern_of(row.get("pattern", ""))
    pattern = by_regex.name if by_regex is not None else RANK_PATTERNS[name]
    path = KIT / "files" / row["file"]
    with pytest.warns(SubwordWarning, match="is empty") if "whisper" in name else nullcontext():
        spec = formats.load(path, pattern, {})
    for tokenizer in map(subword.Tokenizer, (spec, formats.read(tokenizer_json.write(spec)))):
        for text, ids in rows_of(name):
            assert tokenizer.encode_ordinary(text) == ids, text
            assert tokenizer.decode(ids) == text


@pytest.mark.parametrize("name", RANK_PATTERNS)
def test_tiktoken_itself(name: str) -> None:
    """Not only on the texts of the kit."""
    tiktoken = pytest.importorskip("tiktoken")
    ranks = ranks_of((KIT / "files" / EXPECTED[name]["file"]).read_bytes())
    regex = PATTERNS[RANK_PATTERNS[name]].regex
    theirs = tiktoken.Encoding(name, pat_str=regex, mergeable_ranks=ranks, special_tokens={})
    ours = subword.load(KIT / "files" / EXPECTED[name]["file"])  # told by its content
    for text in hurting_for(ours.spec.model.vocab.pieces):
        assert ours.encode_ordinary(text) == theirs.encode_ordinary(text), text[:80]


@pytest.mark.parametrize("name", ["claude2", "deepseek_v3", "gpt2", "gpt_neox", "llama3", "qwen3"])
def test_tokenizers_itself(name: str) -> None:
    """Not only on the texts of the kit, and from the file as it was published."""
    hf = pytest.importorskip("tokenizers")
    path = KIT / "files" / EXPECTED[name]["file"]
    ours, theirs = subword.load(path), hf.Tokenizer.from_file(str(path))
    for text in hurting_for(ours.spec.model.vocab.pieces):
        assert ours.encode(text, allowed_special="all") == theirs.encode(text, add_special_tokens=False).ids, text[:80]


def test_roberta() -> None:
    """From vocab.json and merges.txt. The template, the mask and the space in front are not in these files."""
    special = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 50264}
    for name in EXPECTED["roberta"]["file"]:  # either of the two names both
        tokenizer = subword.load(KIT / "files" / name, pattern="gpt2", special_tokens=special)
        check_roberta(tokenizer)


def check_roberta(tokenizer: subword.Tokenizer) -> None:
    for text, ids, _, decoded in rows_of("roberta"):
        assert tokenizer.encode_ordinary(text) == ids, text
        assert tokenizer.decode(ids) == decoded


def test_clip() -> None:
    """CLIP's own file has the ids of its tokenizer.json, in which some letters and contractions differ a little."""
    own = subword.load(KIT / "files" / "more" / "bpe_simple_vocab_16e6.txt.gz")
    other = subword.load(KIT / "files" / "clip.json")
    assert dict(own.vocab) == dict(other.vocab)
    assert own.spec.model.merges.tolist() == other.spec.model.merges.tolist()
    for text, ids, *_ in rows_of("clip"):
        if not {"Σ", "ſ"} & set(text) and "|" not in text:
            assert own.encode(text, allowed_special="all") == ids, text
    assert own.decode(own.encode("A photo of a Cat!")) == "a photo of a cat ! "
    assert own.tokenize("a photo").pieces == ["a</w>", "photo</w>"]
    assert formats.read(clip.write(own.spec)) == own.spec


def test_gpt1() -> None:
    """From vocab.json and merges.txt: characters, a marker and an unknown token, as tokenizers has them."""
    hf = pytest.importorskip("tokenizers")
    vocab, merges = (KIT / "files" / "more" / f"gpt1.{name}" for name in ("vocab.json", "merges.txt"))
    ids = json.loads(vocab.read_text("utf-8"))
    pairs = [line.split(" ") for line in merges.read_text("utf-8").split("\n")[1:] if line]
    document = {
        "added_tokens": [],
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "decoder": {"type": "BPEDecoder", "suffix": "</w>"},
        "model": {
            "type": "BPE",
            "unk_token": "<unk>",
            "end_of_word_suffix": "</w>",
            "vocab": ids,
            "merges": pairs,
        },
    }
    theirs = hf.Tokenizer.from_str(json.dumps({"version": "1.0", **document}))
    ours = subword.Tokenizer(tokenizer_json.read(json.dumps(document).encode(), "gpt1"))
    assert tokenizer_json.read(tokenizer_json.write(ours.spec), "again") == ours.spec
    unknown = 0
    for text in TEXTS:
        expected_ids = theirs.encode(text).ids
        assert ours.encode(text) == expected_ids, text
        assert ours.decode(expected_ids) == theirs.decode(expected_ids)
        unknown += ours.unk_id in expected_ids
    assert 0 < unknown < len(TEXTS)


@pytest.mark.parametrize(
    "name", ["bert_base_cased", "bert_base_uncased", "bert_base_chinese", "bert_multilingual_cased"]
)
def test_vocab_txt(name: str) -> None:
    """BERT's own files of entries, with what these models do to text."""
    cleaning = "bert-cased" if name.endswith("_cased") else "bert-uncased"
    tokenizer = subword.load(KIT / "files" / "more" / f"{name}.vocab.txt", pattern=cleaning)
    specials = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}
    for text, ids, _, decoded in rows_of(name):
        assert tokenizer.encode(text, allowed_special=specials) == ids, text
        if "json" in str(EXPECTED[name]["file"]):
            assert tokenizer.decode(ids) == decoded
    if name == "bert_base_uncased":
        assert tokenizer.tokenize("unbreakable").pieces == ["un", "##break", "##able"]
