"""Each scanner of the core against its regular expression, run by Python's `re` with the core's tables."""

from __future__ import annotations

import random
import sys

import pytest
import regex
from texts import BYTES, TEXTS, every_category

from subword import BPE, MatchTokens, Spec, Split, Tokenizer, Vocab, _core, patterns
from subword.patterns import PATTERNS

SCANNED = [name for name in PATTERNS if name != "none"]

# One or two of every kind of character that a pattern tells apart, and what contractions are made of.
KINDS = list("aZ1'sStTlLrReEvVmMdD !/.\n\r\t") + list("ſǅʰ中é\u0301\u00a0\u2028\u3000٣½😀\u200d\x00\x1c\x85K")


def bytes_only(pattern: str) -> Tokenizer:
    """A tokenizer that only splits: its vocabulary is the bytes."""
    vocab = Vocab.of((bytes([byte]), byte) for byte in range(256))
    return Tokenizer(Spec((MatchTokens(), Split(pattern)), BPE(vocab)))


def pieces(tok: Tokenizer, text: str) -> list[str]:
    data = text.encode("utf-8", "surrogateescape")
    spans = tok._engine.split(data, tok._engine.ordinary_policy)
    return [data[start:end].decode("utf-8", "surrogateescape") for start, end in spans]


@pytest.fixture(scope="module", params=SCANNED)
def scanner(request: pytest.FixtureRequest) -> tuple[str, Tokenizer]:
    return request.param, bytes_only(request.param)


def edges() -> list[str]:
    """Both ends of every range of every class, and the characters outside beside them: where a table can be wrong."""
    classes = ("L", "N", "White_Space", "M", "Lu", "Lt", "Ll", "Lm", "Lo")
    ranges = [edge for name in classes for edge in _core.unicode_ranges(name, patterns.UNICODE)]
    points = {point + step for edge in ranges for point in edge for step in (-1, 0, 1)}
    return [chr(point) for point in sorted(points) if 0 <= point <= sys.maxunicode and not 0xD800 <= point < 0xE000]


@pytest.mark.parametrize("context", ["a{0}b", "A{0}{0}B c1{0}2 {0}", " {0}x{0}\n{0} ", "'{0} s'{0}.{0}/{0}\r\n"])
def test_every_kind_of_character_in_context(scanner: tuple[str, Tokenizer], context: str) -> None:
    name, tok = scanner
    chars = edges()
    for first in range(0, len(chars), 500):
        block = chars[first : first + 500]
        text = "\t".join(context.format(char) for char in block)
        if pieces(tok, text) != patterns.split(name, text):
            bad = [c for c in block if pieces(tok, context.format(c)) != patterns.split(name, context.format(c))]
            raise AssertionError((context, bad[:5]))


def test_random_mixtures_of_kinds(scanner: tuple[str, Tokenizer]) -> None:
    name, tok = scanner
    rng = random.Random(1)
    for _ in range(5_000):
        text = "".join(rng.choices(rng.sample(KINDS, rng.randint(2, 9)), k=rng.randint(1, 24)))
        assert pieces(tok, text) == patterns.split(name, text), text


def test_hard_texts_and_ill_formed_bytes(scanner: tuple[str, Tokenizer]) -> None:
    name, tok = scanner
    for text in [
        *TEXTS.values(),
        *every_category().values(),
        *(data.decode("utf-8", "surrogateescape") for data in BYTES.values()),
    ]:
        assert pieces(tok, text) == [piece for piece in patterns.split(name, text) if piece], text


def test_published_and_plain_expressions_agree() -> None:
    """`regex` runs both forms of each row; its newer Unicode tables are kept out by taking only old characters."""
    rng = random.Random(2)
    for name in SCANNED:
        row = PATTERNS[name]
        published, plain = regex.compile(row.regex), regex.compile(row.plain.replace(r"\z", r"\Z"))
        for _ in range(1_000):
            text = "".join(rng.choices(KINDS, k=rng.randint(1, 16)))
            assert published.findall(text) == plain.findall(text), (name, text)


def test_long_runs_are_one_pass(scanner: tuple[str, Tokenizer]) -> None:
    name, tok = scanner
    for run in ("a", " ", "A", "A中", "\n", " \n", "1", ".", "\u0301", "'s", "!\n", "\t", "aA"):
        text = run * (4_000 // len(run))
        assert pieces(tok, text) == patterns.split(name, text), run


def test_class_ranges_are_those_of_the_named_version() -> None:
    assert sum(last - first + 1 for first, last in _core.unicode_ranges("L", "16.0")) == 141_028
    with pytest.raises(ValueError, match="no class tables for Unicode"):
        _core.unicode_ranges("L", "99")
    with pytest.raises(ValueError, match="unknown character class"):
        _core.unicode_ranges("Klingon", "16.0")


def test_unknown_pattern_lists_those_there_are() -> None:
    with pytest.raises(ValueError, match="gpt2, cl100k, o200k"):
        patterns.get_pattern("gpt5")
    assert patterns.pattern_of(PATTERNS["cl100k"].plain) is PATTERNS["cl100k"]
    assert patterns.pattern_of(r"\w+") is None
