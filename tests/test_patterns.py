"""Each row of `patterns.py` in the core against its regular expression, run by three other engines.

These are Python's `re` with the core's tables, the `regex` module and HF tokenizers. `regex` may know a newer Unicode,
so it is asked only about characters of which it thinks as the core does.
"""

from __future__ import annotations

import random
import sys
import unicodedata
from collections.abc import Callable, Iterable

import pytest
import regex
import tokenizers
from texts import BYTES, TEXTS, every_category

import subword
from subword import BPE, MatchTokens, Spec, Split, SplitRegex, Tokenizer, Vocab, _core, patterns
from subword.patterns import PATTERNS
from subword.spec import Stage

ROWS = [name for name in PATTERNS if name != "none"]

# One or two of every kind of character that a pattern tells apart, and what contractions are made of.
KINDS = list("aZ1'sStTlLrReEvVmMdD !/.\n\r\t") + list(
    "ſǅʰ中é\u0301\u00a0\u2028\u3000٣½😀\u200d\x00\x1c\x85K々ぁー\u3040^€+()«»-_\u2029\u0903\u20ddⅧ\ue000"
)

CLASSES = ("L", "N", "White_Space", "M", "Lu", "Lt", "Ll", "Lm", "Lo", "P", "S", "Han")


def bytes_only(*stages: Stage) -> Tokenizer:
    """A tokenizer that only splits: its vocabulary is the bytes."""
    vocab = Vocab.of((bytes([byte]), byte) for byte in range(256))
    return Tokenizer(Spec((MatchTokens(), *stages), BPE(vocab)))


def pieces(tok: Tokenizer, text: str) -> list[str]:
    data = text.encode("utf-8", "surrogateescape")
    spans = tok._engine.split(data, tok._engine.ordinary_policy)
    return [data[start:end].decode("utf-8", "surrogateescape") for start, end in spans]


Splitter = Callable[[str], list[str]]


def by_hf(*expressions: str, drops: bool = False) -> Splitter:
    way = ("removed", True) if drops else ("isolated", False)
    splits = [tokenizers.pre_tokenizers.Split(tokenizers.Regex(text), *way) for text in expressions]
    sequence = tokenizers.pre_tokenizers.Sequence(splits)
    return lambda text: [piece for piece, _ in sequence.pre_tokenize_str(text)]


def by_regex(*expressions: str, drops: bool = False) -> Splitter:
    """The matches and what lies between them, by the `regex` module, which writes `\\z` as `\\Z`."""
    compiled = [regex.compile(text.replace(r"\z", r"\Z"), regex.V1 if "&&" in text else 0) for text in expressions]

    def cut(expression: regex.Pattern[str], text: str) -> Iterable[str]:
        start = 0
        while start < len(text):
            match = expression.match(text, start)
            found = bool(match) and match.end() > start
            if found:
                end = match.end()
            else:
                match = expression.search(text, start + 1)
                end = match.start() if match else len(text)
            if found or not drops:
                yield text[start:end]
            start = end

    def split(text: str) -> list[str]:
        parts = [text]
        for expression in compiled:
            parts = [piece for part in parts for piece in cut(expression, part)]
        return parts

    return split


def published(name: str) -> tuple[str, ...]:
    row = PATTERNS[name]
    return (row.regex,) if isinstance(row.regex, str) else row.regex


@pytest.fixture(scope="module", params=ROWS)
def row(request: pytest.FixtureRequest) -> tuple[str, Tokenizer]:
    return request.param, bytes_only(Split(request.param))


def edges() -> list[str]:
    """Both ends of every range of every class, and the characters outside beside them: where a table can be wrong."""
    ranges = [edge for name in CLASSES for edge in _core.unicode_ranges(name, patterns.UNICODE)]
    points = {point + step for edge in ranges for point in edge for step in (-1, 0, 1)}
    return [chr(point) for point in sorted(points) if 0 <= point <= sys.maxunicode and not 0xD800 <= point < 0xE000]


def known_to_regex(chars: list[str]) -> set[str]:
    """The characters whose classes are the same for the `regex` module."""
    known = set(chars)
    for name in CLASSES:
        ours = patterns.character_class(name)
        theirs = regex.compile(rf"\p{{{name}}}")
        known -= {char for char in chars if bool(ours.match(char)) != bool(theirs.match(char))}
    return known


CONTEXTS = ["a{0}b", "A{0}{0}B c1{0}2 {0}", " {0}x{0}\n{0} ", "'{0} s'{0}.{0}/{0}\r\n", "中{0}!{0}ぁ{0}中"]


def test_every_kind_of_character_in_context(row: tuple[str, Tokenizer]) -> None:
    name, tok = row
    drops = PATTERNS[name].drops
    hf, other = by_hf(*PATTERNS[name].steps, drops=drops), by_regex(*published(name), drops=drops)
    chars = [*edges(), *(char for text in every_category().values() for char in text)]
    known = known_to_regex(chars)
    assert len(chars) > 3_000
    assert len(known) > 0.9 * len(set(chars))
    assert {unicodedata.category(char) for char in known} == every_category().keys()
    for context in CONTEXTS:
        for first in range(0, len(chars), 500):
            block = chars[first : first + 500]
            for expected, asked in ((hf, block), (other, [char for char in block if char in known])):
                text = "\t".join(context.format(char) for char in asked)
                if pieces(tok, text) != expected(text):
                    bad = [c for c in asked if pieces(tok, context.format(c)) != expected(context.format(c))]
                    raise AssertionError((context, bad[:5], expected))


def test_random_mixtures_of_kinds(row: tuple[str, Tokenizer]) -> None:
    name, tok = row
    # Besides the row itself: what is published, compiled in its syntax; and each expression by the automaton, even
    # where the core has a scanner for it.
    compiled = bytes_only(*(SplitRegex(text) for text in published(name)))
    plain = bytes_only(*(SplitRegex(text, "oniguruma") for text in PATTERNS[name].steps))
    drops = PATTERNS[name].drops
    hf, other, other_plain = (
        by_hf(*PATTERNS[name].steps, drops=drops),
        by_regex(*published(name), drops=drops),
        by_regex(*PATTERNS[name].steps, drops=drops),
    )
    assert known_to_regex(KINDS) == set(KINDS)
    assert {unicodedata.category(char) for char in KINDS} == every_category().keys()
    rng = random.Random(1)
    for _ in range(2_000):
        text = "".join(rng.choices(rng.sample(KINDS, rng.randint(2, 9)), k=rng.randint(1, 24)))
        found = pieces(tok, text)
        assert found == hf(text), text
        assert found == other(text) == other_plain(text), text
        for own in (compiled, plain):  # an expression of one's own drops nothing
            kept = [piece for piece in pieces(own, text) if not drops or regex.match(published(name)[0], piece)]
            assert found == kept, text
        assert found == patterns.split(name, text), text


def test_hard_texts_and_ill_formed_bytes(row: tuple[str, Tokenizer]) -> None:
    name, tok = row
    for text in [
        *TEXTS.values(),
        *every_category().values(),
        *(data.decode("utf-8", "surrogateescape") for data in BYTES.values()),
    ]:
        assert pieces(tok, text) == patterns.split(name, text), text


def test_long_runs_are_one_pass(row: tuple[str, Tokenizer]) -> None:
    name, tok = row
    for run in ("a", " ", "A", "A中", "\n", " \n", "1", ".", "\u0301", "'s", "!\n", "\t", "aA"):
        text = run * (4_000 // len(run))
        assert pieces(tok, text) == patterns.split(name, text), run


def test_rows_with_the_same_expressions_are_one_pattern() -> None:
    texts = list(TEXTS.values())
    assert subword.train(texts, vocab_size=300, pattern="llama4") == subword.train(texts, vocab_size=300)
    assert PATTERNS["p50k"].steps == PATTERNS["gpt2"].steps


def test_whitespace_split_is_that_of_hf_and_whitespace_has_the_white_space_too() -> None:
    hf = tokenizers.pre_tokenizers.WhitespaceSplit()
    tok, dropping = bytes_only(Split("whitespace")), bytes_only(Split("whitespace-split"))
    for text in [*TEXTS.values(), *every_category().values()]:
        expected = [piece for piece, _ in hf.pre_tokenize_str(text)]
        assert [piece for piece in pieces(tok, text) if not piece.isspace()] == expected == pieces(dropping, text)


def test_clip_is_its_expression_with_the_flag_for_either_case() -> None:
    tok = bytes_only(Split("clip"))
    expected = regex.compile(PATTERNS["clip-cased"].steps[0], regex.IGNORECASE)
    chars = [*edges(), *(char for text in every_category().values() for char in text)]
    for char in sorted(known_to_regex(chars)):
        for context in ("a{0}B", "'{0} '{0}E '{0}{0}", "<|{0}TARTOFTEXT|><|{0}tartoftext|>", " {0}{0} 1{0}2 !{0}."):
            text = context.format(char)
            assert pieces(tok, text) == expected.findall(text), text


def test_class_ranges_are_those_of_the_named_version() -> None:
    assert sum(last - first + 1 for first, last in _core.unicode_ranges("L", "16.0")) == 141_028
    with pytest.raises(ValueError, match="no class tables for Unicode"):
        _core.unicode_ranges("L", "99")
    with pytest.raises(ValueError, match="unknown character class"):
        _core.unicode_ranges("Klingon", "16.0")


def test_unknown_pattern_lists_those_there_are() -> None:
    with pytest.raises(ValueError, match="gpt2, p50k, cl100k, o200k"):
        patterns.get_pattern("gpt5")
    assert patterns.pattern_of(PATTERNS["cl100k"].plain) is PATTERNS["cl100k"]
    assert patterns.pattern_of(*PATTERNS["deepseek-v3"].steps) is PATTERNS["deepseek-v3"]
    assert patterns.pattern_of(r"\w+") is None
