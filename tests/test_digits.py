"""The stage `Digits`: the core against the expressions and against HF tokenizers, limits, training, files."""

from __future__ import annotations

import json
import random
import sys
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from format_specs import bpe, spec_of, write_json
from texts import BYTES, TEXTS, every_category

import subword
from subword import (
    BPE,
    Digits,
    MatchTokens,
    Normalize,
    PrefixSpace,
    Spec,
    Split,
    Tokenizer,
    Vocab,
    _core,
    formats,
    patterns,
)
from subword.errors import SubwordValueError
from subword.formats import native, tokenizer_json
from subword.patterns import DIGITS
from subword.spec import Stage

GROUPINGS = list(DIGITS)

# Numbers of every category and length in UTF-8, one that only Unicode 17 knows, and what may stand beside them.
KINDS = list("0157aZ .,-\n'\x00中") + list("٣९½²Ⅷ㊿〇๑𝟎𐄇\U00011de5\U00016ff4\u0301\x85\x1c")


def splitter(*stages: Stage) -> Tokenizer:
    """A tokenizer that only splits: its vocabulary is the bytes."""
    return Tokenizer(Spec(stages, BPE(Vocab.of((bytes([byte]), byte) for byte in range(256)))))


def pieces(tok: Tokenizer, text: str) -> list[str]:
    data = text.encode("utf-8", "surrogateescape")
    spans = tok._engine.split(data, tok._engine.ordinary_policy)
    return [data[start:end].decode("utf-8", "surrogateescape") for start, end in spans]


def mixtures(seed: int, n: int) -> list[str]:
    rng = random.Random(seed)
    return ["".join(rng.choices(rng.sample(KINDS, rng.randint(1, 9)), k=rng.randint(1, 30))) for _ in range(n)]


def every_number() -> list[str]:
    """Every number of Unicode 17, a few in a row, and the characters beside each range."""
    ranges = _core.unicode_ranges("N", "17.0")
    inside = [chr(point) for first, last in ranges for point in range(first, last + 1)]
    beside = [chr(point) for first, last in ranges for point in (first - 1, last + 1) if point >= 0]
    runs = ["".join(inside[at : at + 7]) for at in range(0, len(inside), 7)]
    return ["x".join(inside), *runs, "1".join(beside), "".join(beside)]


# ======================== the groups ========================


@pytest.mark.parametrize(
    ("grouping", "text", "groups"),
    [
        ("one", "in 2024.", ["in ", "2", "0", "2", "4", "."]),
        ("three-left", "1234567 12 1", ["123", "456", "7", " ", "12", " ", "1"]),
        ("three-right", "1234567 12 1", ["1", "234", "567", " ", "12", " ", "1"]),
        ("three-right", "a1b22c333d4444", ["a", "1", "b", "22", "c", "333", "d", "4", "444"]),
        ("three-right", "٣½Ⅷ𝟎", ["٣", "½Ⅷ𝟎"]),
        ("three-left", "", []),
    ],
)
def test_groups(grouping: Any, text: str, groups: list[str]) -> None:
    for stages in [(Digits(grouping),), (Digits(grouping), Split("none"))]:
        assert pieces(splitter(*stages), text) == groups
    assert patterns.split_digits(grouping, text) == groups


@pytest.mark.parametrize("unicode", ["16.0", "17.0"])
@pytest.mark.parametrize("grouping", GROUPINGS)
def test_scanner_equals_the_expression(grouping: Any, unicode: str) -> None:
    tok = splitter(Digits(grouping, unicode))
    ill_formed = [data.decode("utf-8", "surrogateescape") for data in BYTES.values()]
    for text in [*mixtures(1, 3000), *every_number(), *TEXTS.values(), *every_category().values(), *ill_formed]:
        assert pieces(tok, text) == patterns.split_digits(grouping, text, unicode), text


def test_only_unicode_17_has_its_numbers() -> None:
    assert pieces(splitter(Digits("one", "16.0")), "a\U00011de0") == ["a\U00011de0"]
    assert pieces(splitter(Digits("one", "17.0")), "a\U00011de0") == ["a", "\U00011de0"]


@pytest.mark.parametrize("pattern", ["gpt2", "cl100k", "o200k", "none"])
@pytest.mark.parametrize("grouping", GROUPINGS)
def test_what_is_between_runs_goes_on_to_the_pattern_as_texts_of_their_own(grouping: Any, pattern: str) -> None:
    tok = splitter(Digits(grouping), Split(pattern))
    for text in [*mixtures(2, 500), *TEXTS.values()]:
        parts = patterns.split_digits(grouping, text)
        assert pieces(tok, text) == [piece for part in parts for piece in patterns.split(pattern, part) if piece]


@pytest.mark.parametrize("char", ["7", "٣", "𝟎"])
@pytest.mark.parametrize("grouping", GROUPINGS)
def test_a_run_of_a_megabyte(grouping: Any, char: str) -> None:
    """Read once: a scan of the rest of the run for every group would take hours."""
    n = 1_000_000 // len(char.encode())
    spans = pieces(splitter(Digits(grouping), Split("gpt2")), char * n)
    assert "".join(spans) == char * n
    sizes = [len(span) for span in spans]
    rest = [n % 3] if n % 3 else []
    by_grouping = {"one": [1] * n, "three-left": [3] * (n // 3) + rest, "three-right": rest + [3] * (n // 3)}
    assert sizes == by_grouping[grouping]


@pytest.mark.parametrize(
    "stages",
    [
        *[(Digits(grouping), Split("o200k")) for grouping in GROUPINGS],  # type: ignore[arg-type]
        *[(Split("gpt2"), Digits(grouping)) for grouping in GROUPINGS],  # type: ignore[arg-type]
        (Normalize("NFKC"), Digits("three-right"), Split("gpt2")),
        (PrefixSpace(), Digits("three-right"), Split("gpt2")),
        (Digits("three-right"), Digits("one"), Split("gpt2")),
    ],
)
def test_ids_and_limits_equal_those_of_the_reference(stages: tuple[Stage, ...]) -> None:
    """A text cut off in a run has other groups, so its counts do not add up there."""
    merges = [(b"1", b"2"), (b"12", b"3"), (b"2", b"3"), (b" ", b"a"), (b"3", b"1"), (b"1", b"1"), (b"11", b"1")]
    spec = Spec(stages, bpe(merges))
    core, slow = Tokenizer(spec), Tokenizer(spec, engine="reference")
    rng = random.Random(3)
    for _ in range(60):
        text = "".join(rng.choices(["1", "2", "3", "12", "111", " a", "  ", "½", "x", "\n"], k=rng.randint(1, 18)))
        assert core.encode(text) == slow.encode(text)
        assert core.tokenize(text).byte_spans.tolist() == slow.tokenize(text).byte_spans.tolist()
        total = core.count(text)
        for n in range(total + 1):
            for side in ("right", "left"):
                assert core.truncate(text, n, side) == slow.truncate(text, n, side), (text, n, side)  # type: ignore[arg-type]
        assert core.chunk(text, 6, 1) == slow.chunk(text, 6, 1), text


def test_unknown_settings() -> None:
    for stage in (Digits("two"), Digits("one", "15.0"), Digits("three-left", "")):  # type: ignore[arg-type]
        with pytest.raises(
            SubwordValueError, match=r"grouping of digits 'two'|grouping of digits \"two\"|no class tables"
        ):
            splitter(stage)


def test_plan_says_how_numbers_are_cut() -> None:
    assert ("digits", "three, from the right") in [row[:2] for row in splitter(Digits("three-right")).plan()]


# ======================== training ========================


@pytest.mark.filterwarnings("ignore::subword.SubwordWarning")
@pytest.mark.parametrize("grouping", GROUPINGS)
def test_training_keeps_to_the_groups(grouping: Any, tmp_path: Path) -> None:
    text = "2024 1234567 20241234567 7654321 in 1234567\n" * 50
    tok = subword.train([text], vocab_size=300, pattern="gpt2", digits=grouping)
    assert tok.spec.stages == (Digits(grouping), Split("gpt2"))
    assert tok.training is not None and tok.training["digits"] == grouping
    longest = max(len(piece) for piece in tok.spec.model.vocab.pieces if piece.isdigit())
    assert longest == (1 if grouping == "one" else 3)
    assert all(piece.isdigit() or not any(char in b"0123456789" for char in piece) for piece in tok.vocab)
    for name in ("x.subword", "x.json"):
        assert subword.load(tok.save(tmp_path / name)) == tok


def test_digits_are_the_patterns_own_where_nothing_is_said() -> None:
    tok = subword.train(["1234567"] * 9, vocab_size=262, pattern="gpt2")
    assert tok.spec.stages == (Split("gpt2"),)
    assert tok.token_bytes(tok.n_vocab - 1) == b"1234567"


def test_training_refuses_other_groupings() -> None:
    with pytest.raises(SubwordValueError, match="unknown digits 'two'; choose one of 'pattern', 'one', 'three-left'"):
        subword.train(["1"], vocab_size=257, digits="two")  # type: ignore[arg-type]


# ======================== tokenizer.json ========================

HELD: list[tuple[tuple[Stage, ...], str]] = [
    ((Digits("one"), Split("gpt2")), r"\p{N}"),
    ((Digits("one", "17.0"), Split("gpt2")), "Digits"),
    ((Digits("three-left"), Split("cl100k")), r"\p{N}{1,3}"),
    ((Digits("three-right"), Split("gpt2")), r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))"),
    ((Split("cl100k"), Digits("one", "17.0")), patterns.PATTERNS["cl100k"].plain),
    ((MatchTokens(), Normalize("NFC"), Digits("three-left"), Split("none")), r"\p{N}{1,3}"),
]


@pytest.mark.parametrize(("stages", "first"), HELD)
def test_hf_gives_the_same_pieces(stages: tuple[Stage, ...], first: str) -> None:
    """On every number there is, and on mixtures; and the stages come back from the file."""
    hf = pytest.importorskip("tokenizers")
    spec = Spec(stages, bpe([(b"1", b"2"), (b"3", b"4"), (b" ", b"1")]))
    data = write_json(spec)
    if MatchTokens() not in stages:
        assert formats.read(data) == formats.read(native.write(spec)) == spec
    theirs, ours = hf.Tokenizer.from_str(data.decode()), Tokenizer(spec)
    step = json.loads(data)["pre_tokenizer"]["pretokenizers"][0]
    assert step.get("pattern", {}).get("Regex", step["type"]) == first
    for text in [*mixtures(4, 1500), *every_number(), *TEXTS.values(), *every_category().values(), "1234567890" * 300]:
        assert ours.encode(text) == theirs.encode(text).ids, text
        if Normalize("NFC") not in stages:
            cut = [offset for _, offset in theirs.pre_tokenizer.pre_tokenize_str(text)]
            assert list(pairwise(accumulate(map(len, pieces(ours, text)), initial=0))) == cut, text


def test_hf_digits_are_those_of_unicode_17() -> None:
    """Every code point: should a later tokenizers know other numbers, this says so."""
    tokenizers = pytest.importorskip("tokenizers")
    digits = tokenizers.pre_tokenizers.Digits(individual_digits=True)
    known = {point for first, last in _core.unicode_ranges("N", "17.0") for point in range(first, last + 1)}
    found = set()
    for start in range(0, sys.maxunicode + 1, 1 << 12):
        points = [point for point in range(start, start + (1 << 12)) if not 0xD800 <= point < 0xE000]
        cut = digits.pre_tokenize_str("".join(f"a{chr(point)}a" for point in points))
        found |= {ord(piece) for piece, _ in cut if len(piece) == 1} - {ord("a")}
    assert found == known


def test_three_from_the_right_is_read_only_as_it_is_written() -> None:
    r"""`\d{1,3}(?=(\d{3})*\b)`, which is often used for it, leaves `1234a` whole and knows fewer numbers."""
    root = write_json(Spec((Digits("three-right"), Split("gpt2")), bpe())).decode()
    usual = root.replace(r"\\p{N}{1,3}(?=(?:\\p{N}{3})*(?!\\p{N}))", r"\\d{1,3}(?=(\\d{3})*\\b)")
    assert usual != root
    spec = formats.read(usual.encode())
    assert not any(isinstance(stage, Digits) for stage in spec.stages)
    theirs = tokenizers.Tokenizer.from_str(usual)
    for text in ("1234a", "1234567", "a1234 b", "12345,678901"):
        assert Tokenizer(spec).encode(text) == theirs.encode(text).ids


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ((Digits("three-left", "17.0"), Split("gpt2")), "Unicode 17.0 in Digits"),
        ((PrefixSpace(), Digits("one"), Split("gpt2")), r"the stage PrefixSpace\(\) there"),
    ],
)
def test_what_tokenizer_json_cannot_hold(stages: tuple[Stage, ...], message: str) -> None:
    spec = spec_of(stages=stages)
    with pytest.raises(SubwordValueError, match=f"^tokenizer.json cannot hold .*{message}"):
        tokenizer_json.write(spec)
    assert formats.read(native.write(spec)) == spec
