"""Every kind of tokenizer into every format: the same tokenizer comes back, or the format says what it cannot hold.

What comes back is compared by `convert` itself; where another library reads the format, its ids count besides.
"""

from __future__ import annotations

import base64
import functools
import io
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from format_specs import bpe, spec_of

import subword
from subword import Tokenizer, formats
from subword.bert import CLEANINGS, SPLIT
from subword.errors import SubwordValueError, SubwordWarning
from subword.formats.gguf_pre import BY_NAME
from subword.spec import (
    BPE,
    Decode,
    DecodeWordPiece,
    ExtraToken,
    LongestMatch,
    MatchTokens,
    Normalize,
    Spec,
    Split,
    Template,
    Vocab,
    WordLevel,
    WordPiece,
)

pytestmark = pytest.mark.filterwarnings("ignore::subword.SubwordWarning")

LINES = ["the cat sat on the mat, and the dog saw 12 cats", "Ein Hund, zwei Hunde: drei!", "it's that the rat ate"] * 20
TEXTS = [
    "",
    " ",
    "the cat sat",
    "  the  CAT's 123456 mat…\n\n\tend ",
    "Äpfel é e\u0301 中文 🦙 \u00a0\u2028x",
    "a<s>b</s> [CLS] [MASK] <|end|>",
    "\r\n x\0y ﬁ ½",
    "unaffable " * 20,
]

# ======================== a tokenizer of each kind ========================


def byte_bpe() -> Spec:
    """Merges over bytes, as of GPT-2."""
    extra = (ExtraToken(260, "<|end|>"), ExtraToken(261, "<|pad|>"))
    return spec_of(*extra, roles={"eos": 260, "pad": 261}, notes={"from": "here"})


def rank_bpe() -> Spec:
    """Ranks, as of tiktoken and of Llama 3: with a template and chat."""
    extra = (ExtraToken(260, "<|begin|>"), ExtraToken(261, "<|end|>"))
    template = Template((260, "A"), (260, "A", 260, "B"))
    model = bpe(priority="rank", ignore_merges=True)
    stages = (Split("llama3"),)
    return spec_of(*extra, model=model, stages=stages, template=template, roles={"bos": 260, "eos": 261}).replace(
        chat={"default": "{{ messages }}"}
    )


def flagged_bpe() -> Spec:
    """Normalization, added tokens with flags, a hole among the ids, and a token that no text gives."""
    extra = (
        ExtraToken(262, "<|end|>"),
        ExtraToken(263, "the cat", "added", lstrip=True),
        ExtraToken(264, "<|never|>", "unmatchable"),
    )
    return spec_of(*extra, stages=(Normalize("NFC"), Split("qwen2")), roles={"eos": 262})


def mistral_bpe() -> Spec:
    """Special tokens first, then the bytes in their order, then what they merge to."""
    special = ["<unk>", "<s>", "</s>", "<SPECIAL_3>"]
    pieces = [*(bytes([byte]) for byte in range(256)), b"th", b"the", b" the", b"\n\n"]
    model = BPE(
        Vocab.of((piece, id) for id, piece in enumerate(pieces, len(special))), priority="rank", ignore_merges=True
    )
    extra = tuple(ExtraToken(id, token) for id, token in enumerate(special))
    return Spec((MatchTokens(), Split("tekken")), model, extra, roles={"unk": 0, "bos": 1, "eos": 2})


def minbpe_bpe() -> Spec:
    """The bytes by their values and a token a merge, in their order."""
    merges = [(116, 104), (256, 101), (32, 257)]
    pieces = [*(bytes([byte]) for byte in range(256)), b"th", b"the", b" the"]
    model = BPE(Vocab.of((piece, id) for id, piece in enumerate(pieces)), np.array(merges, dtype=np.uint32))
    return Spec((MatchTokens(), Split("gpt2")), model, (ExtraToken(259, "<|end|>"),))


def character_bpe() -> Spec:
    """Characters, an end of a word and an unknown token, as of GPT-1."""
    pieces = ["<unk>", *"abdehstuwz", *(f"{char}</w>" for char in "abdehstuwz"), "th", "the</w>"]
    ids = {piece: id for id, piece in enumerate(pieces)}
    merges = [(ids["t"], ids["h"]), (ids["th"], ids["e</w>"])]
    vocab = Vocab.of((piece.encode(), id) for piece, id in ids.items())
    model = BPE(vocab, np.array(merges, dtype=np.uint32), unit="character", end_of_word="</w>", unk=0)
    return Spec((Split("whitespace-split"),), model, roles={"unk": 0}, decode=Decode(" ", trim=True))


def codes() -> Spec:
    """subword-nmt's merges, which say no ids."""
    return formats.read(b"#version: 0.2\nt h\nth e</w>\nc a\nca t</w>\n")


def word_piece(kind: str = "bert-uncased") -> Spec:
    """BERT."""
    entries = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdehnost.,!", *(f"##{char}" for char in "abcdehnost")]
    entries += ["the", "cat", "##at", "un"]
    ids = {token: id for id, token in enumerate(entries)}
    special = entries[:5]
    model = WordPiece(Vocab.of((t.encode(), id) for t, id in ids.items() if t not in special or t == "[UNK]"), 1)
    return Spec(
        (MatchTokens(), *CLEANINGS[kind].stages, SPLIT),
        model,
        tuple(ExtraToken(ids[token], token) for token in special),
        Template((2, "A", 3), (2, "A", 3, "B", 3)),
        DecodeWordPiece(),
        {"unk": 1, "bos": 2, "eos": 3, "pad": 0},
    )


def word_level() -> Spec:
    vocab = Vocab.of((word.encode(), id) for id, word in enumerate(["[UNK]", "the", "cat", "sat", "on"]))
    stages = (Split("whitespace-split"),)
    return Spec(stages, WordLevel(vocab, 0), decode=DecodeWordPiece("", cleanup=False), roles={"unk": 0})


def longest_match() -> Spec:
    """RWKV."""
    more = [b"the", b" the", b"\n\n", "é".encode(), b"\xe4\xb8", b"'\"", b"\\x"]
    pieces = [*(bytes([byte]) for byte in range(256)), *more]
    return Spec((), LongestMatch(Vocab.of((piece, id) for id, piece in enumerate(pieces, 1))))


@functools.cache
def sentencepiece(kind: str) -> Spec:
    """Made by SentencePiece itself."""
    spm = pytest.importorskip("sentencepiece", reason="the package sentencepiece is not installed")
    out = io.BytesIO()
    options = {"unigram": {}, "bpe": {"normalization_rule_name": "identity", "remove_extra_whitespaces": False}}[kind]
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES),
        model_writer=out,
        model_type=kind,
        vocab_size=330 if kind == "bpe" else 60,
        byte_fallback=kind == "bpe",
        user_defined_symbols=["▁▁"] if kind == "bpe" else [],
        hard_vocab_limit=False,
        minloglevel=2,
        num_threads=1,
        **options,
    )
    return formats.read(out.getvalue())


def json_unigram() -> Spec:
    """Scores that are added up in 64 bits, as HF tokenizers does."""
    vocab = [["<unk>", 0.0], ["▁the", -1.0], ["▁", -2.0], *([char, -3.0 - at / 8] for at, char in enumerate("abcehst"))]
    document = {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
        "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
        "model": {"type": "Unigram", "unk_id": 0, "vocab": vocab},
    }
    return formats.read(json.dumps(document).encode())


SPECS: dict[str, Callable[[], Spec]] = {
    "byte BPE": byte_bpe,
    "rank BPE": rank_bpe,
    "flagged BPE": flagged_bpe,
    "Mistral's BPE": mistral_bpe,
    "minbpe's BPE": minbpe_bpe,
    "character BPE": character_bpe,
    "subword-nmt's BPE": codes,
    "WordPiece": word_piece,
    "cased WordPiece": lambda: word_piece("bert-cased"),
    "WordLevel": word_level,
    "longest match": longest_match,
    "SentencePiece's Unigram": lambda: sentencepiece("unigram"),
    "SentencePiece's BPE": lambda: sentencepiece("bpe"),
    "HF's Unigram": json_unigram,
}

# A file of CLIP's holds no other tokenizer than those of its 48,894 merges; see test_character_formats.
BYTES = ("byte BPE", "rank BPE", "Mistral's BPE", "minbpe's BPE")

JSON = {*BYTES, "character BPE", "subword-nmt's BPE", "WordPiece", "cased WordPiece", "WordLevel", "HF's Unigram"}

# Into which formats each goes whole; all go into `native`.
HELD: dict[str, set[str]] = {
    "tokenizer.json": JSON - {"rank BPE"},  # which has a chat template
    "model-folder": JSON,
    "tiktoken": {*BYTES} - {"rank BPE"},
    "tekken": {"Mistral's BPE"},
    "gguf": {*BYTES, "WordPiece", "cased WordPiece", "longest match", "SentencePiece's Unigram", "SentencePiece's BPE"},
    "sentencepiece": {"SentencePiece's Unigram", "SentencePiece's BPE"},
    "vocab.txt": {"WordPiece", "cased WordPiece"},
    "rwkv": {"longest match"},
    "minbpe": {"minbpe's BPE"},
    "vocab+merges": {*BYTES} - {"rank BPE"},
    "subword-nmt": {"subword-nmt's BPE"},
    "clip": set(),
}

# What is lost of those that go into a format in part, and named.
IN_PART: dict[tuple[str, str], list[str]] = {
    ("rank BPE", "tokenizer.json"): ["chat template default"],
    ("rank BPE", "tiktoken"): ["chat template default", "template"],
    ("rank BPE", "vocab+merges"): ["chat template default", "template"],
    ("flagged BPE", "tiktoken"): [
        "flags of tokens",
        "normalizer NFC",
        "special token policy",
        "tokens that no text gives",
    ],
    ("flagged BPE", "gguf"): ["flags of tokens", "normalizer NFC"],
}


def convert(name: str, row: formats.Format, tmp_path: Path, **how: Any) -> formats.Conversion:
    return formats.convert(SPECS[name](), tmp_path / "out", row.name, TEXTS, **how)


@pytest.mark.parametrize("row", formats.FORMATS, ids=lambda row: row.name)
@pytest.mark.parametrize("name", SPECS)
def test_each_pair_is_the_same_or_refused_by_name(name: str, row: formats.Format, tmp_path: Path) -> None:
    if row.name == "native" or name in HELD[row.name]:
        done = convert(name, row, tmp_path)
        assert done.texts > 1000 and done.lost == ()
        assert (tmp_path / "out").exists()
        return
    with pytest.raises(SubwordValueError) as caught:
        convert(name, row, tmp_path)
    assert not isinstance(caught.value, formats.DifferenceError) or row.parts["ids"] is None, caught.value
    assert "defect" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    if (name, row.name) in IN_PART:
        wanted = IN_PART[name, row.name]
        assert isinstance(caught.value, formats.LossError)
        lost = sorted(caught.value.lost)
        assert [each[: len(start)] for each, start in zip(lost, sorted(wanted), strict=True)] == sorted(wanted)
        assert "--allow-lossy" in str(caught.value)
        done = convert(name, row, tmp_path, allow_lossy=True)
        assert done.lost == caught.value.lost and done.texts > 1000
        assert (tmp_path / "out").exists()


def test_every_format_has_something_to_hold() -> None:
    assert {row.name for row in formats.FORMATS} == {"native", *HELD}


# ======================== other libraries ========================


def ids_of(spec: Spec, text: str) -> list[int]:
    return Tokenizer(spec).encode_ordinary(text)


def written(name: str, format: str, tmp_path: Path, spec: Spec | None = None) -> tuple[Spec, Path]:
    spec = SPECS[name]() if spec is None else spec
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SubwordWarning)
        return spec, formats.convert(spec, tmp_path / "out", format, allow_lossy=True).path


@pytest.mark.parametrize("name", sorted(HELD["model-folder"]))
def test_tokenizers_reads_them(name: str, tmp_path: Path) -> None:
    hf = pytest.importorskip("tokenizers", reason="the package tokenizers is not installed")
    spec, folder = written(name, "model-folder", tmp_path)
    theirs = hf.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tok = Tokenizer(spec)
    for text in TEXTS:
        assert theirs.encode(text, add_special_tokens=False).ids == tok.encode(text, allowed_special="all"), text
        with_special = tok.encode(text, allowed_special="all", add_special_tokens=True)
        assert theirs.encode(text).ids == with_special, text


@pytest.mark.parametrize("name", BYTES)
def test_tiktoken_reads_them(name: str, tmp_path: Path) -> None:
    tiktoken = pytest.importorskip("tiktoken", reason="the package tiktoken is not installed")
    spec, path = written(name, "tiktoken", tmp_path)
    rows = (line.split() for line in path.read_bytes().splitlines())
    ranks = {base64.b64decode(token): int(rank) for token, rank in rows}
    split = next(stage.pattern for stage in spec.stages if isinstance(stage, Split))
    special = Tokenizer(spec).special_tokens
    regex = subword.patterns.PATTERNS[split].regex
    theirs = tiktoken.Encoding("x", pat_str=regex, mergeable_ranks=ranks, special_tokens=special)
    for text in TEXTS:
        assert theirs.encode_ordinary(text) == ids_of(spec, text), text
        assert theirs.encode(text, allowed_special="all") == Tokenizer(spec).encode(text, allowed_special="all"), text


def test_tekken_as_mistral_reads_it(tmp_path: Path) -> None:
    """Its settings and ranks, put together as mistral-common does."""
    tiktoken = pytest.importorskip("tiktoken", reason="the package tiktoken is not installed")
    spec, path = written("Mistral's BPE", "tekken", tmp_path)
    document = json.loads(path.read_bytes())
    config = document["config"]
    count = config["default_num_special_tokens"]
    rows = document["vocab"][: config["default_vocab_size"] - count]
    assert [row["rank"] for row in rows] == list(range(len(rows)))
    assert all(row.keys() == {"rank", "token_bytes", "token_str"} for row in rows)
    ranks = {base64.b64decode(row["token_bytes"]): row["rank"] for row in rows}
    theirs = tiktoken.Encoding("x", pat_str=config["pattern"], mergeable_ranks=ranks, special_tokens={})
    for text in TEXTS:
        assert [id + count for id in theirs.encode_ordinary(text)] == ids_of(spec, text), text
    listed = [token["token_str"] for token in document["special_tokens"]]
    assert listed == ["<unk>", "<s>", "</s>"] and count == 4  # the fourth has the name that such tokens have


@pytest.mark.parametrize("name", sorted(HELD["sentencepiece"]))
def test_sentencepiece_reads_them(name: str, tmp_path: Path) -> None:
    """Also what went through GGUF on the way."""
    spm = pytest.importorskip("sentencepiece", reason="the package sentencepiece is not installed")
    (tmp_path / "a").mkdir()
    _, path = written(name, "gguf", tmp_path / "a")
    spec, model = written(name, "sentencepiece", tmp_path, formats.load(path).replace(template=Template()))
    theirs = spm.SentencePieceProcessor(model_file=str(model))
    for text in TEXTS:
        if "\0" not in text:
            assert theirs.encode(text) == ids_of(spec, text), text


GGUF_KINDS = {"WordPiece": "bert", "cased WordPiece": "bert", "longest match": "rwkv", "SentencePiece's Unigram": "t5"}


@pytest.mark.parametrize("name", sorted(HELD["gguf"]))
def test_the_package_gguf_reads_them(name: str, tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf", reason="the package gguf is not installed")
    spec, path = written(name, "gguf", tmp_path)
    fields = gguf.GGUFReader(path).fields
    said = {key: field.contents() for key, field in fields.items()}
    kind = GGUF_KINDS.get(name, "llama" if "SentencePiece" in name else "gpt2")
    assert said["tokenizer.ggml.model"] == kind
    tokens, types = said["tokenizer.ggml.tokens"], said["tokenizer.ggml.token_type"]
    assert len(tokens) == len(types) == Tokenizer(spec).n_vocab
    for token in spec.extra:
        assert tokens[token.id] == token.content and types[token.id] == gguf.TokenType.CONTROL
    if kind == "gpt2":
        assert BY_NAME[said["tokenizer.ggml.pre"]].stages == spec.stages[-1:]
        assert len(said["tokenizer.ggml.merges"]) == 4 if name != "minbpe's BPE" else 3
    for role in ("bos", "eos"):
        if role in spec.roles:
            assert said[f"tokenizer.ggml.{role}_token_id"] == spec.roles[role]
    if spec.chat:
        assert said["tokenizer.chat_template"] == spec.chat["default"]
