"""The core against the plain-Python engine: the same ids, spans, counts and cuts, on inputs meant to hurt."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from texts import BYTES, SURROGATES, TEXTS, every_category, glued

import subword
from subword import (
    BPE,
    Digits,
    ExtraToken,
    MatchTokens,
    Normalize,
    PrefixSpace,
    Spec,
    Split,
    Template,
    Tokenizer,
    Vocab,
)

ALL_BYTES = [bytes([byte]) for byte in range(256)]


def both(spec: Spec) -> tuple[Tokenizer, Tokenizer]:
    return Tokenizer(spec), Tokenizer(spec, engine="reference")


def way(tok: Tokenizer, step: str) -> str:
    return next(how for name, how, _ in tok.plan() if name == step)


def trained(pattern: str = "o200k", size: int = 600, **options: object) -> Tokenizer:
    return subword.train(list(TEXTS.values()) * 2, vocab_size=size, pattern=pattern, **options)  # type: ignore[arg-type]


def random_bpe(rng: random.Random, priority: str, ignore_merges: bool = False) -> BPE:
    """A vocabulary over two to four letters: ranks in any order, or merges in any order with several rules a token."""
    letters = b"abcd"[: rng.randint(2, 4)]
    entries = dict.fromkeys(ALL_BYTES)
    pairs: dict[tuple[bytes, bytes], None] = {}
    for _ in range(rng.randint(1, 14)):
        parts = [piece for piece in entries if set(piece) <= set(letters) and len(piece) < 6]
        left, right = rng.choice(parts), rng.choice(parts)
        pairs[left, right] = None
        entries[left + right] = None
    pieces = list(entries)
    if rng.random() < 0.5:
        pieces = rng.sample(pieces, len(pieces))
    ids = {piece: id for id, piece in enumerate(pieces)}
    merges = [(ids[left], ids[right]) for left, right in pairs]
    rng.shuffle(merges)
    return BPE(
        Vocab.of(ids.items()),
        np.array(merges if priority == "merges" else np.zeros((0, 2)), dtype=np.uint32).reshape(-1, 2),
        priority,  # type: ignore[arg-type]
        ignore_merges,
    )


# ======================== the model ========================


@pytest.mark.parametrize("ignore_merges", [False, True])
@pytest.mark.parametrize("priority", ["merges", "rank"])
def test_random_vocabularies(priority: str, ignore_merges: bool) -> None:
    """Proved and unproved, short and long pieces, ties everywhere."""
    rng = random.Random(f"{priority} {ignore_merges}")
    ways = set()
    for _ in range(400):
        spec = Spec((Split("none"),), random_bpe(rng, priority, ignore_merges))
        core, slow = both(spec)
        ways.add(way(core, "long piece"))
        tokens = [piece for piece in spec.model.vocab.pieces if len(piece) > 1]
        for length in (1, 3, 8, 20, 40, 100, 40, 97, 150):  # 100 brings the trie, which then serves the second 40
            text = "".join(rng.choices("abcd", k=length)) if rng.random() < 0.5 else glued(tokens, length, rng)[:300]
            assert core.encode(text) == slow.encode(text), (text, spec.model.merges.tolist())
    assert len(ways) == 2, "both the proved and the unproved way must have been tried"


def test_long_pieces_whatever_they_repeat() -> None:
    rng = random.Random(3)
    for _ in range(40):
        core, slow = both(Spec((Split("none"),), random_bpe(rng, "merges")))
        for unit in ("a", "ab", "aab", "abc", "abca"):
            text = unit * (400 // len(unit)) + "b"
            assert core.encode(text) == slow.encode(text)


def test_medium_pieces_encode_alike_before_and_after_there_is_a_trie() -> None:
    rng = random.Random(5)
    core = trained("gpt2")
    words = [" " + "".join(rng.choices("etaoinshrdlu", k=rng.randint(30, 90))) for _ in range(200)]
    once = [id for word in words for id in core.encode(word)]
    assert once == [id for word in words for id in Tokenizer(core.spec, engine="reference").encode(word)]
    assert core.encode("".join(words) * 40) == once * 40  # some 480 KB, in the middle of which the trie is built


def test_trained_vocabulary_on_glued_tokens() -> None:
    rng = random.Random(4)
    for pattern in ("gpt2", "cl100k", "o200k", "none"):
        core = trained(pattern)
        slow = Tokenizer(core.spec, engine="reference")
        tokens = list(core.spec.model.vocab.pieces)
        for _ in range(60):
            data = glued(tokens, rng.randint(1, 12), rng)
            assert core.encode(data) == slow.encode(data), data
            assert core.decode_bytes(core.encode(data)) == data


# ======================== all stages ========================

EXTRA = (
    ExtraToken(5000, "<|end|>"),
    ExtraToken(5001, "<|end|>x"),
    ExtraToken(5002, "<|en"),
    ExtraToken(5003, "AB", "added"),
    ExtraToken(5004, "ABA", "added"),
    ExtraToken(5005, "rw", "added", single_word=True),
    ExtraToken(5006, "<s>", "special", lstrip=True, rstrip=True),
    ExtraToken(5007, "é", "added", normalized=True),
    ExtraToken(5008, "<|never|>", "unmatchable"),
)
STAGES: dict[str, tuple[object, ...]] = {
    "plain": (Split("o200k"),),
    "extra": (MatchTokens(), Split("cl100k")),
    "nfc": (MatchTokens(), Normalize("NFC"), MatchTokens(normalized=True), Split("cl100k")),
    "nfkd": (MatchTokens(), Normalize("NFKD"), MatchTokens(normalized=True), Split("gpt2")),
    "prefix": (MatchTokens(), PrefixSpace(), Split("gpt2")),
    "digits": (MatchTokens(), Digits("three-right"), Split("o200k")),
    "nfkc, prefix, two splits": (MatchTokens(), Normalize("NFKC"), PrefixSpace(), Split("o200k"), Split("gpt2")),
}
POLICIES = [
    {},
    {"disallowed_special": ()},
    {"allowed_special": "all"},
    {"allowed_special": {"<|end|>", "<s>"}, "disallowed_special": ()},
]


@pytest.fixture(scope="module", params=STAGES)
def engines(request: pytest.FixtureRequest) -> tuple[Tokenizer, Tokenizer]:
    stages = STAGES[request.param]
    model = trained("cl100k").spec.model
    extra = tuple(t for t in EXTRA if not t.normalized or MatchTokens(normalized=True) in stages)
    if MatchTokens() not in stages:
        extra = ()
    return both(Spec(stages, model, extra, Template((3, "A", 4))))  # type: ignore[arg-type]


def hurting_texts() -> Iterator[str | bytes]:
    yield from TEXTS.values()
    yield from BYTES.values()
    yield from SURROGATES.values()
    yield from every_category().values()
    rng = random.Random(5)
    parts = [
        "<|end|>",
        "<|end|>x",
        "<|en",
        "AB",
        "ABA",
        "BA",
        "rw",
        "overwrite",
        " rw ",
        "<s>",
        " ",
        "  ",
        "\n",
        "é",
        "e\u0301",
        "\u0301",
        "ﬁ",
        "가",
        "\u1100\u1161",
        "Å",
        "<|never|>",
        "中文",
        "😀",
        "x",
        "12345",
        "'s",
        "\u3000",
    ]
    for _ in range(300):
        yield "".join(rng.choices(parts, k=rng.randint(1, 9)))


def outcome(call: Callable[..., object], *args: object, **options: object) -> object:
    try:
        return call(*args, **options)
    except subword.SubwordError as error:
        return type(error)


def test_stages_policies_and_templates(engines: tuple[Tokenizer, Tokenizer]) -> None:
    core, slow = engines
    for text in hurting_texts():
        for policy in POLICIES:
            for template in (False, True):
                ours, theirs = (outcome(tok.encode, text, add_special_tokens=template, **policy) for tok in engines)
                assert ours == theirs, (text, policy)
        assert core.encode_ordinary(text) == slow.encode_ordinary(text), text
        assert core.find_special(text) == slow.find_special(text), text


def test_spans(engines: tuple[Tokenizer, Tokenizer]) -> None:
    """Spans are those of the reference where no character was rewritten, and always in order and without a gap."""
    core, slow = engines
    rewrites = any(isinstance(stage, Normalize) for stage in core.spec.stages)
    for text in hurting_texts():
        if text in SURROGATES.values():
            continue
        policy: dict[str, object] = {"allowed_special": "all", "disallowed_special": ()}
        ours = core.tokenize(text, **policy)  # type: ignore[arg-type]
        size = len(text.encode()) if isinstance(text, str) else len(text)
        if not rewrites:
            theirs = slow.tokenize(text, **policy)  # type: ignore[arg-type]
            assert ours.byte_spans.tolist() == theirs.byte_spans.tolist(), text
            assert ours.char_spans.tolist() == theirs.char_spans.tolist(), text
        covered = 0
        for start, end in ours.byte_spans.tolist():
            assert start <= covered and start <= end, text
            covered = max(covered, end)
        assert covered == size, text
        if isinstance(text, str) and len(ours):
            covered = 0
            for start, end in ours.char_spans.tolist():
                assert start <= covered, text
                covered = max(covered, end)
            assert covered == len(text), text


def test_byte_tokens_of_one_character_share_its_character_span() -> None:
    tok = subword.train(["a b"], vocab_size=257, pattern="gpt2")
    encoding = tok.tokenize("x😀é")
    assert encoding.char_spans.tolist() == [[0, 1], *[[1, 2]] * 4, [2, 3], [2, 3]]
    assert encoding.byte_spans.tolist() == [[i, i + 1] for i in range(7)]


def test_surrogate_pairs_count_as_python_counts_them() -> None:
    tok = subword.train(["a b"], vocab_size=257, pattern="gpt2")
    assert tok.encode("\ud83d\ude00") == tok.encode("😀") == list("😀".encode())
    assert tok.encode("\ud83d") == tok.encode("\ufffd")
    assert tok.tokenize("a\ud83d\ude00b").char_spans.tolist() == [[0, 1], *[[1, 3]] * 4, [3, 4]]
    assert tok.truncate("a\ud83d\ude00b", 5) == "a\ud83d\ude00"
    assert tok.with_tokens(["<s>"]).find_special("\ud83d\ude00<s>") == [(2, 5, 257)]


def test_count_batch_and_numpy_are_encode(engines: tuple[Tokenizer, Tokenizer]) -> None:
    core, _ = engines
    texts = list(hurting_texts())
    for policy in POLICIES[1:]:
        lists = [core.encode(text, **policy) for text in texts]  # type: ignore[arg-type]
        assert core.encode_batch(texts, **policy) == lists  # type: ignore[arg-type]
        assert core.count_batch(texts, **policy) == [len(ids) for ids in lists]  # type: ignore[arg-type]
        assert [core.count(text, **policy) for text in texts] == [len(ids) for ids in lists]  # type: ignore[arg-type]
        for threads in (1, 2, 5):
            ragged = core.encode_batch_to_numpy(texts, threads=threads, **policy)  # type: ignore[arg-type]
            assert ragged.tolist() == lists
            assert ragged.ids.dtype == np.uint32 and ragged[-1].tolist() == lists[-1]
        arrays = [core.encode_to_numpy(text, **policy).tolist() for text in texts]  # type: ignore[arg-type]
        assert arrays == lists


# ======================== round trips ========================


def test_every_byte_string_comes_back() -> None:
    rng = random.Random(6)
    for pattern in ("gpt2", "cl100k", "o200k", "none"):
        tok = trained(pattern)
        for _ in range(300):
            data = rng.randbytes(rng.randint(0, 60))
            assert tok.decode_bytes(tok.encode(data)) == data
            assert tok.encode(bytearray(data)) == tok.encode(memoryview(data)) == tok.encode(data)
        for text in [*TEXTS.values(), *every_category().values()]:
            assert tok.decode(tok.encode_ordinary(text)) == text
            assert tok.encode_ordinary(text) == tok.encode_ordinary(text.encode())


def test_ordinary_text_never_gives_a_special_id() -> None:
    tok = trained().with_tokens(special=["<|im_start|>", "<", "e", "\n", "<|im_start|>user"])
    specials = set(tok.special_tokens.values())
    for text in [*TEXTS.values(), "<|im_start|>user\nhe<<"]:
        assert not specials & set(tok.encode_ordinary(text))
        assert tok.decode(tok.encode_ordinary(text)) == text


# ======================== cutting ========================

CUT = [
    "hello world foo",
    "a  b\n\n  c",
    "12345678901",
    "don't we'll",
    "A中B中Cd E",
    "\n \n  \n x",
    " \r\n\t x/\n/",
    "aaaa bbbb",
    "ABCdefGHI",
    "e\u0301e\u0301 é",
    "中文。中文",
    "😀😀 a",
    "<|end|>x<|en",
    "'s's 's",
    "!!!\n/a",
    "ǅaǅ",
    "\u3000a\u3000\u3000b",
]


def test_truncate_is_the_largest_part_that_fits(engines: tuple[Tokenizer, Tokenizer]) -> None:
    core, slow = engines
    rng = random.Random(7)
    for text in [
        *CUT,
        *("".join(rng.choices("aA中 1\n'!sd\u0301", k=rng.randint(2, 14))) for _ in range(150)),
        *list(BYTES.values())[:12],
    ]:
        policy = POLICIES[rng.randrange(1, 4)]
        whole = core.count(text, **policy)  # type: ignore[arg-type]
        for n in {0, 1, 2, 3, whole - 1, whole}:
            if n < 0:
                continue
            for side in ("right", "left"):
                ours, theirs = (tok.truncate(text, n, side, **policy) for tok in (core, slow))  # type: ignore[arg-type]
                assert ours == theirs, (text, n, side, policy)


def test_truncate_long_pieces_against_brute_force() -> None:
    """Pieces long enough for the one-pass counts, in every kind that a pattern shortens otherwise than expected."""
    rng = random.Random(8)
    kinds = ["aA", "中B", "A中", " \n", "\n", " ", "1", "a", "!", "中", "A", "!\n", "\u0301A", "aaab", "\t \r\n"]
    for pattern in ("gpt2", "cl100k", "o200k", "none"):
        texts = ["".join(rng.choices(kind, k=320)) + tail for kind in kinds for tail in ("", " x", "'s", "c")]
        tok = subword.train([*texts, *TEXTS.values()], vocab_size=420, pattern=pattern)
        for text in texts:
            counts = [tok.count(text[:end]) for end in range(len(text) + 1)]
            back = [tok.count(text[start:]) for start in range(len(text) + 1)]
            for n in rng.sample(range(counts[-1] + 1), 4):
                assert tok.truncate(text, n) == text[: max(i for i, c in enumerate(counts) if c <= n)], (
                    pattern,
                    text,
                    n,
                )
                assert tok.truncate(text, n, "left") == text[min(i for i, c in enumerate(back) if c <= n) :], (
                    pattern,
                    text,
                    n,
                )


def test_chunks(engines: tuple[Tokenizer, Tokenizer]) -> None:
    core, slow = engines
    for text in [*CUT, " ".join(CUT)]:
        for size, overlap, ends in ((8, 0, "character"), (9, 3, "word"), (12, 11, "character"), (10, 0, "sentence")):
            policy = {"allowed_special": "all", "disallowed_special": ()}
            ours = core.chunk(text, size, overlap, ends, **policy)  # type: ignore[arg-type]
            theirs = slow.chunk(text, size, overlap, ends, **policy)  # type: ignore[arg-type]
            # There can be several ways to cut a text into the fewest.
            assert ours == theirs if overlap else len(ours) == len(theirs), (text, size, overlap, ends)
            done = 0
            for chunk in ours:
                assert chunk.text == text[chunk.start : chunk.end] and chunk.start <= done < chunk.end
                assert chunk.tokens == core.count(chunk.text, **policy) <= size  # type: ignore[arg-type]
                done = chunk.end
            assert done == len(text)


def test_cutting_bytes_gives_bytes() -> None:
    tok = trained()
    data = "naïve 中文 text".encode() + b"\xff\xfe tail"
    assert tok.truncate(data, 4) == data[: len(tok.truncate(data, 4))]
    assert b"".join(chunk.text for chunk in tok.chunk(data, 4)) == data


def test_a_long_special_token_after_a_long_run_is_within_reach() -> None:
    special = "<|" + "x" * 300 + "|>"
    tok = subword.train(["ab"], vocab_size=257).with_tokens([special])
    text = "a" * 20_000 + special + "a" * 50
    for n in (19_999, 20_000, 20_001, 20_007):
        kept = tok.truncate(text, n, allowed_special="all")
        assert len(kept) == n + (len(special) - 1 if n > 20_000 else 0)


def merging(pairs: list[tuple[bytes, bytes]], stages: tuple[object, ...], *extra: ExtraToken) -> Tokenizer:
    """A vocabulary of the bytes and these merges."""
    ids = {piece: id for id, piece in enumerate(ALL_BYTES)}
    merges = []
    for left, right in pairs:
        merges.append((ids[left], ids[right]))
        ids[left + right] = len(ids)
    model = BPE(Vocab.of(ids.items()), np.array(merges, dtype=np.uint32).reshape(-1, 2))
    return Tokenizer(Spec(stages, model, extra))  # type: ignore[arg-type]


def truncates_exactly(tok: Tokenizer, text: str, limits: tuple[int, ...]) -> None:
    counts = [tok.count(text[:end], allowed_special="all") for end in range(len(text) + 1)]
    back = [tok.count(text[start:], allowed_special="all") for start in range(len(text) + 1)]
    for n in limits:
        kept = tok.truncate(text, n, allowed_special="all")
        assert kept == text[: max(i for i, count in enumerate(counts) if count <= n)], n
        kept = tok.truncate(text, n, "left", allowed_special="all")
        assert kept == text[min(i for i, count in enumerate(back) if count <= n) :], n


def test_limits_where_a_space_is_added_after_an_extra_token() -> None:
    stages = (MatchTokens(), PrefixSpace(), Split("gpt2"))
    tok = merging([], stages, ExtraToken(5000, "<|1", "added"))
    truncates_exactly(tok, "<|1a<|1a", (0, 1, 2, 3, 4, 5, 6))
    assert all(tok.count(chunk.text) == chunk.tokens <= 3 for chunk in tok.chunk("<|1a<|1a", 3))


def test_limits_in_long_pieces_that_do_not_keep_their_end() -> None:
    newlines = [(b"\n" * n, b"\n" * n) for n in (1, 2, 4)] + [(b"\n", b" "), (b"\n ", b"\n")]
    truncates_exactly(merging(newlines, (Split("cl100k"),)), "!" * 300 + "\n" * 41 + " \nx", (4, 5, 6, 7, 20))
    marks = [
        (b"!", b"!"),
        (b"!!", b"!!"),
        (b"!!!!", b"!!!!"),
        (b"\xcc", b"\x81"),
        (b"\xcc\x81", b"!!!!"),
        (b"!!", b"!"),
    ]
    truncates_exactly(merging(marks, (Split("o200k"),)), "!" * 270 + "\u0301" + "!" * 20, (1, 2, 3, 4, 5, 30))


def test_limits_reach_over_what_a_token_swallows() -> None:
    strip = merging([], (MatchTokens(), Split("o200k")), ExtraToken(5000, "<s>", lstrip=True, rstrip=True))
    assert len(strip.truncate("a" + " " * 20_000 + "<s>", 2, allowed_special="all")) == 20_004
    word = "xyzzy" * 200
    normalized = merging([], (MatchTokens(normalized=True),), ExtraToken(5000, word, "added", normalized=True))
    assert len(normalized.truncate(word * 3, 3)) == 3_000
    late = merging([], (Normalize("NFKC"), MatchTokens(), Split("gpt2")), ExtraToken(5000, "1 xy", "added"))
    truncates_exactly(late, "1 \uff58y" * 3, (1, 2, 3))
