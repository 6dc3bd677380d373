"""Batches: texts of all kinds together, made bytes a few at a time, on any number of threads."""

from __future__ import annotations

import gc
import random
import sys
from collections.abc import Callable
from typing import Any

import pytest
from texts import BYTES, SURROGATES, TEXTS, every_category

import subword
from subword import SpecialTokenError, SubwordValueError, Tokenizer

WIDE = "“naïve” 中文 text — "
THREADS = (1, 2, 3, 4)
CALLS: dict[str, Callable[..., Any]] = {
    "encode_batch": Tokenizer.encode_batch,
    "encode_batch_to_numpy": Tokenizer.encode_batch_to_numpy,
    "count_batch": Tokenizer.count_batch,
}


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return subword.train([*TEXTS.values(), WIDE], vocab_size=700, special_tokens=["<|end|>"])


def spelled(text: Any) -> bytes:
    """What a text means, the way Python finds it: surrogate pairs joined, one alone replaced."""
    if not isinstance(text, str):
        return bytes(text)
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def mixture(seed: int) -> list[Any]:
    """Texts of all kinds, in any order; a few are longer than what is made bytes at once."""
    rng = random.Random(seed)
    texts: list[Any] = [*TEXTS.values(), *every_category().values(), *BYTES.values(), *SURROGATES.values()]
    texts += ["", b"", bytearray(b"a b"), memoryview("é".encode() * 30), "x " * 5000, ("x " * 5000).encode()]
    texts += [
        "".join(rng.choice([WIDE, "plain ", *SURROGATES.values()]) for _ in range(rng.randint(1, 300))) for _ in "123"
    ]
    rng.shuffle(texts)
    texts.insert(rng.randrange(len(texts)), WIDE * 70_000)
    texts.insert(rng.randrange(len(texts)), "in ASCII, " * 70_000)
    return texts


@pytest.mark.parametrize("seed", range(2))
def test_a_mixture_gives_what_each_text_gives(tok: Tokenizer, seed: int) -> None:
    texts = mixture(seed)
    expected = [tok.encode_ordinary(spelled(text)) for text in texts]
    assert expected == [tok.encode_ordinary(text) for text in texts]
    for threads in THREADS:
        options: dict[str, Any] = {"threads": threads, "disallowed_special": ()}
        assert tok.encode_batch(texts, **options) == expected
        assert tok.encode_batch(iter(texts), **options) == expected
        assert tok.encode_batch_to_numpy(texts, **options).tolist() == expected
        assert tok.count_batch(texts, **options) == [len(ids) for ids in expected]


def test_pairs_of_surrogates_at_every_place_of_a_long_text(tok: Tokenizer) -> None:
    """A long text is looked at some characters at a time; none may come between the halves of a pair."""
    for size in (1023, 1024, 1025, 16383, 16384, 16385, 40_000):
        for before in (size % 2, size % 2 + 1, 16):
            text = "é" * before + "\ud83d\ude00" * ((size - before) // 2) + "\ud83d"
            ids = tok.encode_ordinary(spelled(text))
            assert tok.encode_ordinary(text) == ids
            assert tok.encode_batch([text, text], threads=1) == [ids, ids]
        chars = tok.tokenize(text).char_spans
        assert chars[-1].tolist() == [len(text) - 1, len(text)]
        assert {end - start for start, end in chars[-40:-4].tolist()} == {2}


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="asks CPython what a str takes")
@pytest.mark.parametrize("threads", [1, 2])
def test_texts_take_no_more_memory_than_before(tok: Tokenizer, threads: int) -> None:
    texts = ["short é", WIDE * 10, WIDE * 500, "ab" * 5000, *("é " * 3000 + str(i) for i in range(200)), WIDE * 50_000]
    texts = [text + "." for text in texts]  # new ones, that nobody has looked at
    before = [sys.getsizeof(text) for text in texts]
    for call in CALLS.values():
        call(tok, texts, threads=threads)
    assert [sys.getsizeof(text) for text in texts] == before
    subword.train(texts[2:], vocab_size=300, threads=threads)
    for long in texts[2:]:
        tok.encode(long)
        tok.encode_to_numpy(long)
        tok.count(long)
    assert [sys.getsizeof(text) for text in texts] == before


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("call", CALLS)
def test_of_several_bad_texts_the_first_is_told(tok: Tokenizer, call: str, threads: int) -> None:
    texts = [WIDE * 300] * 2000
    for number in (1999, 1500, 1111, 3):
        texts[number] = WIDE * 100 + "<|end|>"
        with pytest.raises(SpecialTokenError, match=f"text {number} of the batch: .*at character {len(WIDE) * 100}"):
            CALLS[call](tok, texts, threads=threads)
    with pytest.raises(SubwordValueError, match="text 2000 of the batch: a text must be str or bytes, not int"):
        CALLS[call](tok, [*texts, 5], threads=threads)


@pytest.mark.parametrize("threads", [1, 2])
def test_what_was_made_is_given_back(tok: Tokenizer, threads: int) -> None:
    """A text is held only while the call lasts."""

    class Text(str):
        """A `str` that can be watched."""

    freed = []
    text = Text(WIDE * 2000)
    text.watch = type("Watch", (), {"__del__": lambda _: freed.append(1)})()  # type: ignore[attr-defined]
    tok.encode_batch([text] * 40, threads=threads)
    del text
    gc.collect()
    assert freed == [1]


def test_a_str_of_another_kind_is_taken_as_the_str_that_it_is(tok: Tokenizer) -> None:
    class Odd(str):
        def isascii(self) -> bool:
            return True

        def __len__(self) -> int:
            return 1

        def encode(self, *_: Any) -> bytes:
            return b"odd"

    for text in (WIDE, WIDE * 1000, "a" * 3000):
        assert tok.encode(Odd(text)) == tok.encode(text)
        assert tok.encode_batch([Odd(text)] * 3, threads=2) == [tok.encode(text)] * 3
