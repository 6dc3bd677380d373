"""`chunk` against brute force: a shortest path over all places, the text between any two counted for itself."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from test_engine import merging
from test_limits import random_case

import subword
from subword import Split, Tokenizer, _core
from subword.engine import ENDS, char_starts
from subword.errors import SubwordValueError


def places_of(tok: Tokenizer, data: bytes, size: int, ends: str) -> list[int]:
    """Where chunks may end: units of the kind, and of the next finer in those that do not fit."""
    starts, found = char_starts(data), dict(_core.text_ends(data))

    def cut(start: int, stop: int, kind: int) -> list[int]:
        units = [at for at in starts if start < at < stop and (kind == 0 or ENDS.index(found.get(at, ENDS[0])) >= kind)]
        places = []
        for left, right in pairwise([start, *units, stop]):
            fits = kind == 0 or tok.count(data[left:right]) <= size
            places += [right] if fits else cut(left, right, kind - 1)
        return places

    return cut(0, len(data), ENDS.index(ends)) if data else []


def check_chunks(tok: Tokenizer, data: bytes, size: int, overlap: int, ends: str) -> None:
    places = places_of(tok, data, size, ends)
    starts = char_starts(data)
    try:
        chunks = tok.chunk(data, size, overlap, ends)
    except SubwordValueError as error:
        stuck = int(str(error).split("character ")[1].split()[0])
        assert tok.count(data[starts[stuck] : starts[stuck + 1]]) > size
        chunks = None
    fits = {start: [end for end in places if end > start and tok.count(data[start:end]) <= size] for start in starts}
    if not overlap:
        reached, layers, number = {0}, {0}, 0
        while layers and len(data) not in reached:
            layers = {end for start in layers for end in fits[start]} - reached
            reached |= layers
            number += 1
        if chunks is None:
            assert len(data) not in reached and starts[stuck] == max(reached)
            return
        assert len(chunks) == number, (tok.spec, data, size, ends)
    if chunks is None:
        return
    done = start = 0
    for chunk in chunks:
        if overlap:
            best = max(fits[start], default=start)
            if best <= done:  # the overlap leaves no room for anything new
                start = done
                best = max(fits[start])
            assert (chunk.start, chunk.end) == (start, best), (tok.spec, data, size, overlap)
        assert chunk.start <= done < chunk.end and chunk.end in places and (overlap or chunk.start == done)
        assert chunk.tokens == tok.count(chunk.text) <= size
        done = chunk.end
        back = min(at for at in starts if start <= at <= done and tok.count(data[at:done]) <= overlap)
        start = back if start < back and overlap else done  # without an overlap, nothing that is dropped is repeated
    assert done == len(data)


@pytest.mark.parametrize("seed", range(8))
def test_chunks_of_random_pipelines(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(60):
        tok, data = random_case(rng, runs=False)
        size = rng.randint(1, 12)
        check_chunks(tok, data, size, rng.choice((0, 0, rng.randint(0, size - 1))), rng.choice(ENDS))


def test_chunks_in_long_runs_of_random_pipelines() -> None:
    rng = random.Random(0)
    for _ in range(4):
        tok, data = random_case(rng, runs=True)
        check_chunks(tok, data, rng.randint(3, 12), 0, rng.choice(ENDS))


# ======================== more than the longest that fits ========================


def test_a_shorter_chunk_can_save_one() -> None:
    tok = merging([(b"c", b"d"), (b"cd", b"c")], (Split("none"),))
    assert tok.truncate("cdcdc", 1) == "cdc" and tok.count("dc") == 2
    assert [chunk.text for chunk in tok.chunk("cdcdc", 1)] == ["cd", "cdc"]


@pytest.fixture(scope="module")
def learned() -> Tokenizer:
    """Of words glued together, so that tokens cross them."""
    rng = random.Random(1)
    words = ["the", "other", "there", "hereby", "by", "yes", "中文", "文字", "字中", "aaaa", "Aa"]
    return subword.train(["".join(rng.choices(words, k=2000)) for _ in range(5)], vocab_size=600, pattern="none")


@pytest.mark.parametrize("pattern", ["none", "gpt2", "o200k"])
@pytest.mark.parametrize(
    "parts",
    [["the", "other", "re", "he", "by", "y"], ["中", "文", "字", "中文"], ["a"], ["a", "A", "中", "the"]],
    ids=str,
)
def test_one_long_piece(learned: Tokenizer, parts: list[str], pattern: str) -> None:
    """Longer than what is tried place by place."""
    rng = random.Random(2)
    text = "".join(rng.choices(parts, k=1000))[:550]
    tok = Tokenizer(learned.spec.replace(stages=(Split(pattern),)))
    check_chunks(tok, text.encode(), rng.randint(2, 9), 0, rng.choice(ENDS))


def test_long_runs_within_the_cap(learned: Tokenizer) -> None:
    for text in (" " * 200_000, "a" * 200_000, "中文" * 50_000, "1" * 20_000, "!?" * 50_000):
        chunks = learned.chunk(text, 300)
        assert "".join(chunk.text for chunk in chunks) == text
        assert all(chunk.tokens == learned.count(chunk.text) <= 300 for chunk in chunks)


# ======================== where chunks end ========================


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("One. Two!  Three? four", "One.S Two!S  Three?S four"),
        ("one two\tthree", "oneW twoW\tthree"),
        ("a\nb\n\nc", "a\nSb\n\nPc"),
        ("a\r\nb\r\n\r\nc", "a\r\nSb\r\n\r\nPc"),
        ("a \n \n  b", "a \n \nP  b"),
        ("if x:\n    y", "ifW x:\nS    y"),
        ("他走了。她来了。", "他走了。S她来了。"),
        ("e.g. this is 3.5 m", "e.g.W thisW isW 3.5W m"),
        ("a\u2029b\u2028c\x85d", "a\u2029Pb\u2028Sc\x85Sd"),
        ("  a  ", "  aW  "),
        ("\n\na", "\n\nPa"),
        ("a\n", "a\n"),
        ("", ""),
        ("   ", "   "),
    ],
)
def test_ends(text: str, marked: str) -> None:
    """W, S and P: a word, a sentence, a paragraph ends."""
    out, data, at = "", text.encode(), 0
    for end, kind in _core.text_ends(text):
        out += data[at:end].decode() + kind[0].upper()
        at = end
    assert out + data[at:].decode() == marked


def test_ends_in_ill_formed_bytes() -> None:
    assert _core.text_ends(b"\xffOne. Two\xe4\n\nx") == [(5, "sentence"), (12, "paragraph")]


def test_units_that_do_not_fit_are_cut_where_finer_ones_end() -> None:
    tok = merging([], (Split("gpt2"),))  # a token a byte
    text = "First one. Second one.\n\nShort.\n\nAverylongwordhere is it."

    def cut(size: int, ends: str) -> list[str]:
        return [chunk.text for chunk in tok.chunk(text, size, ends=ends)]

    assert cut(12, "character") == ["First one. S", "econd one.\n\n", "Short.\n\nAver", "ylongwordher", "e is it."]
    # The sentence " Second one.\n\n" and the word "Averylongwordhere" do not fit.
    by_sentences = ["First one.", " Second", " one.\n\n", "Short.\n\nAver", "ylongwordher", "e is it."]
    assert cut(12, "sentence") == cut(12, "paragraph") == by_sentences
    assert cut(24, "sentence") == ["First one. Second one.\n\n", "Short.\n\n", "Averylongwordhere is it."]
    assert cut(33, "paragraph") == ["First one. Second one.\n\nShort.\n\n", "Averylongwordhere is it."]


def test_what_chunk_refuses() -> None:
    tok = merging([], (Split("gpt2"),))
    with pytest.raises(SubwordValueError, match="unknown ends 'line'; choose one of 'character', 'word', 'sentence'"):
        tok.chunk("a", 3, ends="line")
    with pytest.raises(SubwordValueError, match="max_tokens=3 is too small: character 2 alone takes 4 tokens"):
        tok.chunk("ab😀c", 3)
    assert tok.chunk("", 3) == []
