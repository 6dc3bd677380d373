"""`truncate` against brute force: every prefix and every suffix counted for itself. And texts cut up for threads."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from test_engine import ALL_BYTES, merging, truncates_exactly

from subword import (
    BPE,
    Digits,
    ExtraToken,
    Lowercase,
    MatchTokens,
    Normalize,
    PrefixSpace,
    Spec,
    Split,
    SplitRegex,
    Template,
    Tokenizer,
    Vocab,
)
from subword.engine import char_starts
from subword.errors import SpecialTokenError
from subword.spec import Stage

# What patterns, normalization and extra tokens treat in a way of its own.
PARTS = [
    *"a b A B 中 文 1 23 ' 's 'll ! !! / . é e\u0301 e\u0323\u0301 \u0301 \u0323".split(" "),
    *"\u1112\u1161\u11ab \u11a8 각 ﬁ ½ \u00a8 \uff58 \u3000 ǅ ʰ = =\u0338 😀 カ\u3099 <s> <s ab aab A中".split(" "),
    *("Σ", "AΣ", "İ", " ", "  ", "\n", "\r\n", "\t"),
]
RUNS = (
    "aA",
    "A中",
    " \n",
    " ",
    "1",
    "a",
    "!\n",
    "\u0301!",
    "AB中CD",
    "\u1112\u1161\u11ab",
    "e\u0301",
    "é中",
    "ab",
    "ʰA中a",
)

SCANNED: list[Stage] = [Split(name) for name in ("gpt2", "cl100k", "o200k", "none")]
# Also expressions that leave something out, cut between two blanks, look ahead, match nothing, or backtrack.
COMPILED: list[Stage] = [
    *(Split(name) for name in ("llama3", "qwen2", "deepseek-v3", "kimi", "starcoder", "tekken", "whitespace")),
    *(Digits(grouping) for grouping in ("one", "three-left", "three-right")),
    *map(SplitRegex, (r"\s", r"[a-z]+", r"\p{N}{1,3}(?!\p{N})|\n", r" ?\p{L}+|\s+(?!\S)", r"!*", r"[^\r\n]+\n*")),
    SplitRegex(r"(?=\p{N}\p{N}!)|A(?=中+)", allow_backtracking=True),
]


# Patterns that drop white space.
DROPPING = [Split(name) for name in ("clip", "spaces", "whitespace-split")]


def random_model(rng: random.Random, text: bytes) -> BPE:
    """Pairs met in the text, in any order: ties everywhere, often entries that do not encode to themselves."""
    entries: dict[bytes, None] = dict.fromkeys(ALL_BYTES)
    pairs: dict[tuple[bytes, bytes], None] = {}
    for _ in range(rng.randint(1, 25) if text else 0):
        at = rng.randrange(len(text))
        left = rng.choice([piece for piece in entries if text.startswith(piece, at)])
        right = [piece for piece in entries if text.startswith(piece, at + len(left))]
        if right and len(left) < 9:
            second = rng.choice(right)
            pairs[left, second] = entries[left + second] = None
    ids = {piece: id for id, piece in enumerate(entries)}
    merges = [(ids[left], ids[right]) for left, right in pairs]
    if rng.random() < 0.5:
        rng.shuffle(merges)
    return BPE(Vocab.of(ids.items()), np.array(merges, dtype=np.uint32).reshape(-1, 2))


def random_stages(rng: random.Random) -> tuple[Stage, ...]:
    stages: list[Stage] = [MatchTokens()]
    stages += [Normalize(form) for form in rng.choice([(), (), ("NFC",), ("NFKC",), ("NFD",), ("NFC", "NFKD")])]
    if rng.random() < 0.2:
        stages.insert(rng.randint(1, len(stages)), Lowercase(final_sigma=rng.random() < 0.7))
    stages += [MatchTokens(normalized=True)] * rng.randint(0, 1) + [PrefixSpace()] * (rng.random() < 0.3)
    if rng.random() < 0.05:
        rng.shuffle(stages)
    kinds = [SCANNED, SCANNED, SCANNED + COMPILED, SCANNED + DROPPING]
    splits = rng.choice(kinds)
    return (*stages, *rng.choices(splits, k=rng.choice((0, 1, 1, 1, 2, 2, 3))))


def random_extras(rng: random.Random, parts: list[str]) -> tuple[ExtraToken, ...]:
    """With flags of all kinds, white space inside, one the start, the end or the double of another."""
    tokens: dict[str, ExtraToken] = {}
    for id in range(1000, 1000 + rng.choice((0, 0, 1, 2, 4))):
        content = "".join(rng.choices(parts, k=rng.randint(1, 3)))
        if tokens and rng.random() < 0.4:
            other = rng.choice(list(tokens))
            content = rng.choice((other + content, content + other, other[:-1] or content, other + other))
        flags = {name: rng.random() < 0.25 for name in ("single_word", "lstrip", "rstrip", "normalized")}
        tokens.setdefault(content, ExtraToken(id, content, "added", **flags))
    return tuple(tokens.values())


def random_case(rng: random.Random, runs: bool) -> tuple[Tokenizer, bytes]:
    parts = rng.sample(PARTS, rng.choice((2, 3, 5, 9)))
    text = "".join(rng.choices(parts, k=rng.randint(0, 25)))
    extras = random_extras(rng, parts)
    for token in extras:
        at = rng.randint(0, len(text))
        text = text[:at] + token.content + text[at:]
    if runs:
        at, run = rng.randint(0, len(text)), rng.choice(RUNS)
        text = text[:at] + "".join(rng.choices(rng.choice((run, [run])), k=400))[: rng.randint(150, 400)] + text[at:]
    data = text.encode()
    if rng.random() < 0.2:
        at = rng.randint(0, len(data))
        data = (
            data[:at] + rng.choice((b"\x80", b"\xe4", b"\xcc", b"\xf0\x9f", b"\xff")) + data[at + rng.randint(0, 1) :]
        )
    return Tokenizer(Spec(random_stages(rng), random_model(rng, data), extras)), data


def check_truncate(tok: Tokenizer, data: bytes, limits: list[int]) -> None:
    starts = char_starts(data)
    before, after = [tok.count(data[:at]) for at in starts], [tok.count(data[at:]) for at in starts]
    for n in limits:
        longest = max(at for at, count in zip(starts, before, strict=True) if count <= n)
        assert tok.truncate(data, n) == data[:longest], (tok.spec, data, n)
        first = min(at for at, count in zip(starts, after, strict=True) if count <= n)
        assert tok.truncate(data, n, "left") == data[first:], (tok.spec, data, n)


@pytest.mark.parametrize("seed", range(8))
def test_limits_of_random_pipelines(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(40):
        tok, data = random_case(rng, runs=False)
        check_truncate(tok, data, list(range(tok.count(data) + 2)))


@pytest.mark.parametrize("seed", range(8))
def test_limits_in_long_runs_of_random_pipelines(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(5):
        tok, data = random_case(rng, runs=True)
        check_truncate(tok, data, [0, 1, *rng.choices(range(tok.count(data) + 1), k=12)])


def test_one_token_longer_than_the_first_window() -> None:
    pairs = [(b"ab" * 2**n, b"ab" * 2**n) for n in range(6)]
    tok = merging([(b"a", b"b"), *pairs], (Split("none"),))
    for text in ("ab" * 64 + "a", "a" + "ab" * 64, "ab" * 40):
        truncates_exactly(tok, text, (0, 1, 2, 3))


def test_white_space_that_a_token_far_away_swallows() -> None:
    for side in ({"lstrip": True}, {"rstrip": True}):
        tok = merging([], (MatchTokens(), Split("gpt2")), ExtraToken(5000, "<s>", "added", **side))  # type: ignore[arg-type]
        truncates_exactly(tok, "a" + " " * 300 + "<s>" + " " * 300 + "b", (0, 1, 2, 3, 4, 5))


def test_white_space_that_is_cut_apart_and_swallowed() -> None:
    for side in ({"lstrip": True}, {"rstrip": True}):
        stages = (MatchTokens(), SplitRegex(r"\s"))
        tok = merging([], stages, ExtraToken(5000, "<s>", "added", **side))  # type: ignore[arg-type]
        truncates_exactly(tok, "a" + " " * 20 + "<s>" + " " * 20 + "b", tuple(range(25)))


def test_tokens_that_look_at_a_place_where_another_starts_or_ends() -> None:
    stages = (MatchTokens(), MatchTokens(normalized=True), Split("cl100k"))
    alone = {"kind": "added", "single_word": True}
    tokens = [ExtraToken(5000, "==", **alone), ExtraToken(5001, "===", "added", normalized=True)]  # type: ignore[arg-type]
    truncates_exactly(merging([], stages, *tokens), "!a===bab====ab" * 8, (0, 1, 5, 20, 36))
    tokens = [
        ExtraToken(5000, "B", "added", rstrip=True, normalized=True),
        ExtraToken(5001, "BB", "added", lstrip=True),
    ]
    truncates_exactly(merging([], stages, *tokens), "B\n\nB!BBBBB\nBBBB\n\nB\nBBBBB" * 4, (0, 1, 5, 11, 20))


def test_a_token_that_swallows_the_start_of_the_next_where_normalization_makes_them() -> None:
    stages = (Normalize("NFKD"), MatchTokens(normalized=True))
    tok = merging([], stages, ExtraToken(5000, "\r\n\u3000", "added", rstrip=True, normalized=True))
    truncates_exactly(tok, "\r\n\u3000\r\n\u3000\u3000\r\r\n\u3000\n\r\n" * 4, (0, 1, 2, 3, 10))


def test_a_cluster_that_is_cut_off_becomes_part_of_a_longer_token() -> None:
    mark = [(b"\xcc", b"\x81"), (b"\xf0\x9f", b"\x98\x80"), (b"\xcc\x81", b"\xf0\x9f\x98\x80")]
    pairs = [(b"\xf0", b"\x9f"), (b"\x98", b"\x80"), *mark]
    truncates_exactly(merging(pairs, (Normalize("NFC"),)), "e\u0301😀" * 30, (1, 2, 3, 10, 50))


def test_white_space_after_newlines_joins_them_where_the_text_is_cut() -> None:
    truncates_exactly(
        merging([(b" ", b" "), (b"\n", b" ")], (Split("cl100k"),)), "\n" + " " * 300 + "x", (0, 1, 100, 150)
    )


# ======================== cut up for several threads ========================


@pytest.mark.parametrize("seed", range(8))
def test_any_number_of_threads_gives_what_one_gives(seed: int) -> None:
    """Long texts are cut up for it, wherever their stages, patterns and extra tokens leave them alone."""
    rng = random.Random(seed)
    for _ in range(6):
        tok, data = random_case(rng, runs=rng.random() < 0.3)
        words = [
            data,
            *(data[at : at + rng.randint(1, 30)] for at in rng.choices(range(len(data) + 1), k=20)),
            b" a b\n",
        ]
        long = b"".join(rng.choices(words, k=150_000 // (len(data) // 20 + 10)))
        texts = [data, long, b"", long[: len(long) // 3], b" "]
        special = {"add_special_tokens": rng.random() < 0.5}
        expected = [tok.encode(text, **special) for text in texts]
        for threads in (1, 2, 3, 4):
            assert tok.encode_batch(texts, threads=threads, **special) == expected, tok.spec
            assert tok.encode_batch_to_numpy(texts, threads=threads, **special).tolist() == expected
            assert tok.count_batch(texts, threads=threads, **special) == list(map(len, expected))


def test_a_text_that_is_cut_up_is_checked_as_a_whole() -> None:
    """What is refused lies across a cut, or far behind one; the message is that for the whole text."""
    stages = (MatchTokens(), Split("gpt2"))
    extra = (ExtraToken(300, "b c"), ExtraToken(301, "b c b c d"), ExtraToken(302, "b b", "added"))
    tok = Tokenizer(
        Spec(stages, BPE(Vocab.of((bytes([byte]), byte) for byte in range(256))), extra, Template((7, "A", 8)))
    )
    plain = "b b a é " * 20_000
    for text in (plain, plain + "b c", plain + "b c b c d", "b c" + plain, plain[:70_001] + "b c b c d" + plain):
        for policy in ({}, {"allowed_special": {"b c"}}, {"disallowed_special": {"a é b"}}, {"disallowed_special": ()}):
            alone = outcome_of(partial(tok.encode, text, add_special_tokens=True, **policy))  # type: ignore[arg-type]
            for threads in (2, 4):
                many = partial(tok.encode_batch, ["x", text], add_special_tokens=True, threads=threads, **policy)  # type: ignore[arg-type]
                batch = outcome_of(many)
                expected = (
                    f"text 1 of the batch: {alone}"
                    if isinstance(alone, str)
                    else [tok.encode("x", add_special_tokens=True), alone]
                )
                assert batch == expected


def outcome_of(call: Callable[[], object]) -> object:
    try:
        return call()
    except SpecialTokenError as error:
        return str(error)
