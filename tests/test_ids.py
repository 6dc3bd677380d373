"""Ids as Python has them, in and out: lists, tuples and arrays of every kind, few and many."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from texts import TEXTS

import subword
from subword import BPE, ExtraToken, MatchTokens, Spec, Split, SubwordError, Tokenizer, Vocab
from subword.spec import Decode

BYTES = [bytes([byte]) for byte in range(256)]
EXTRA = (
    ExtraToken(5000, "<s>"),
    ExtraToken(5001, "added", "added"),
    ExtraToken(5002, "an added token of more than a few bytes", "added"),
    ExtraToken(5003, "<never>", "unmatchable"),
)


def spec_of(entries: list[tuple[bytes, int]], decode: Decode | None = None, **model: Any) -> Spec:
    stages = (MatchTokens(), Split("gpt2"))
    return Spec(stages, BPE(Vocab.of(entries), **model), EXTRA, **({"decode": decode} if decode else {}))


LENGTHS = [b"ab" * 7, b"ab" * 7 + b"c", b"ab" * 8, b"ab" * 8 + b"c", b"x" * 5000]  # about what a row holds
PLAIN = [(piece, id) for id, piece in enumerate(BYTES + LENGTHS)]
MARKED = [*BYTES, *(byte + b"</w>" for byte in BYTES), *LENGTHS, b"</w>", b"ab" * 7 + b"</w>", b"ab" * 8 + b"</w>"]
SPECS = {
    "plain": spec_of(PLAIN),
    "holes": spec_of([(piece, 3 + 7 * id) for piece, id in PLAIN]),
    "far apart": spec_of([*PLAIN, (b"two", 2**21), (b"three", 2**31 - 1)]),
    "marked": spec_of([(piece, id) for id, piece in enumerate(MARKED)], end_of_word="</w>"),
    "trimmed": spec_of([(p, id) for id, p in enumerate(MARKED)], Decode("__", trim=True), end_of_word="</w>"),
    "long ends": spec_of([(p, id) for id, p in enumerate(MARKED)], Decode("_" * 14, trim=True), end_of_word="</w>"),
}


@pytest.fixture(params=SPECS)
def spec(request: pytest.FixtureRequest) -> Spec:
    return SPECS[request.param]


def outcome(call: Callable[[], object]) -> object:
    try:
        return call()
    except SubwordError as error:
        return type(error)


# ======================== decoding ========================


def test_ids_decode_as_the_reference_decodes_them(spec: Spec) -> None:
    """Few ids at first, then more than it takes to lay out what each decodes to."""
    rng = random.Random(1)
    slow, known = Tokenizer(spec, engine="reference"), [*spec.model.vocab.ids.tolist(), *(t.id for t in EXTRA)]
    small = [id for id in known if len(slow.token_bytes(id)) < 1000]
    core = Tokenizer(spec)
    for size in (0, 1, 5, *range(40), 3000, *range(40), 30_000):
        ids = rng.choices(small, k=size) + rng.choices(known, k=size // 1000)
        if rng.random() < 0.2:
            ids.insert(rng.randint(0, size), rng.choice((1, 2, 260, 5004, max(known) + 1, 2**20 + 1)))
        for skip in (False, True):
            expected = outcome(lambda: slow.decode_bytes(ids, skip))  # noqa: B023
            for form in (ids, tuple(ids), np.array(ids, dtype=np.int64)):
                assert outcome(lambda: core.decode_bytes(form, skip)) == expected  # noqa: B023
            if isinstance(expected, bytes):
                for errors in ("replace", "ignore", "backslashreplace", "surrogateescape"):
                    text = expected.decode("utf-8", errors)
                    assert core.decode(ids, errors, skip) == text
                    assert core.decode_batch([ids, [], ids[:9]], errors, skip, threads=3)[0] == text
    for id in known:
        assert core.decode_bytes([id]) == slow.decode_bytes([id])


KINDS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, ">u4", ">i8", object]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_arrays_of_every_kind_of_whole_numbers(kind: Any) -> None:
    tok = Tokenizer(SPECS["plain"])
    text = "".join(chr(rng) for rng in range(32, 127)) * 4
    ids = np.array(tok.encode(text), dtype=kind)
    everywhere = np.zeros((len(ids), 3), dtype=kind)
    everywhere[:, 1] = ids
    frozen = ids.copy()
    frozen.setflags(write=False)
    for form in (ids, everywhere[:, 1], ids[::-1][::-1], frozen, ids.view(), ids.tolist(), tuple(ids), list(ids)):
        assert tok.decode(form) == text
        assert tok.decode_batch([form, form[:1]]) == [text, " "]
    assert tok.decode(ids[::2]) == text[::2] and tok.decode(ids[:0]) == ""


@pytest.mark.parametrize("array", [[0.5], [True], [[1, 2]], ["1"], [1 + 0j]])
def test_other_arrays_are_refused(array: list[Any]) -> None:
    tok = Tokenizer(SPECS["plain"])
    with pytest.raises(subword.SubwordValueError, match="a token id must be an integer"):
        tok.decode(np.array(array))


WRONG = [-1, 2**31, 2**32 + 97, 2**63 - 1, -(2**63), 300, 262]


@pytest.mark.parametrize("id", WRONG)
def test_a_wrong_id_is_named_with_its_place(id: int) -> None:
    tok = Tokenizer(SPECS["plain"])
    for few in (3, 5000):
        ids = [97] * few + [id] + [98] * 3
        forms = [ids, tuple(ids), iter(ids), np.array(ids, dtype=np.int64), [*map(np.int64, ids)]]
        for form in forms:
            with pytest.raises(subword.UnknownTokenError, match=f"^position {few} of the ids: .*no id {id}\\b"):
                tok.decode(form)
        with pytest.raises(
            subword.UnknownTokenError, match=f"^item 1 of the batch, position {few} of the ids|^item 1 of"
        ):
            tok.decode_batch([[1], ids])


@pytest.mark.parametrize("wrong", [True, np.True_, 1.0, "1", None, b"a", [1]])
def test_what_is_no_id_is_named_with_its_place(wrong: Any) -> None:
    tok = Tokenizer(SPECS["plain"])
    for form in ([97, wrong, 98], (97, wrong, 98)):
        with pytest.raises(subword.SubwordValueError, match=r"^position 1 of the ids: a token id must be an integer"):
            tok.decode(form)
        with pytest.raises(subword.SubwordValueError, match=r"^item 2 of the batch, position 1 of the ids: a token id"):
            tok.decode_batch([[], [97], form])


def test_numbers_that_are_not_quite_int() -> None:
    class Number(int):
        pass

    class Index:
        def __index__(self) -> int:
            return 99

    class Ids(list[int]):
        def __iter__(self) -> Any:
            raise RuntimeError

    tok = Tokenizer(SPECS["plain"])
    mixed: list[Any] = [97, Number(98), Index(), np.uint8(100)]
    assert tok.decode(mixed) == tok.decode(tuple(mixed)) == tok.decode(iter(mixed)) == "abcd"
    assert tok.decode(Ids([97, 98])) == "ab"


def test_a_list_that_changes_while_it_is_read() -> None:
    class Shrinking:
        def __index__(self) -> int:
            ids.clear()
            return 98

    tok = Tokenizer(SPECS["plain"])
    ids: list[Any] = [97, Shrinking(), 99, 100]
    assert tok.decode(ids) == "ab"


def test_strict_names_the_byte() -> None:
    tok = Tokenizer(SPECS["plain"])
    for call in (tok.decode, lambda ids, errors: tok.decode_batch([[97], ids], errors)):
        with pytest.raises(
            subword.SubwordValueError, match=r"not well-formed UTF-8 at byte 2 of the text \(invalid start"
        ):
            call([97, 98, 0xFF], "strict")  # type: ignore[operator]
        for errors in ("nonsense", "\ud800", "a\0", None, 5):
            with pytest.raises(subword.SubwordValueError, match="unknown way to treat errors"):
                call([97], errors)  # type: ignore[operator]


# ======================== lists of ids ========================


def test_lists_are_the_same_before_and_after_their_numbers_are_kept(spec: Spec) -> None:
    tok = Tokenizer(spec)
    texts = list(TEXTS.values()) + [piece.decode("latin-1") for piece in LENGTHS] + ["hello " * 50_000]
    arrays = [tok.encode_to_numpy(text, disallowed_special=()).tolist() for text in texts]
    for _ in range(3):
        assert [tok.encode_ordinary(text) for text in texts] == arrays
        assert tok.encode_batch(texts, disallowed_special=()) == arrays
        assert all(type(id) is int for id in tok.encode_ordinary(texts[5]))


def test_a_list_is_its_callers_own() -> None:
    tok = Tokenizer(SPECS["plain"])
    for _ in range(3):
        ids = tok.encode("hello" * 200)
        assert len(ids) == 1000 and tok.encode("hello" * 200) is not ids
        ids.clear()


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="counts references")
def test_numbers_are_shared_and_given_back() -> None:
    tok = Tokenizer(SPECS["holes"])
    tok.encode("hello" * 2000)  # more ids than the vocabulary has
    (number,) = tok.encode("h")
    before = sys.getrefcount(number)
    lists = [tok.encode("hh") for _ in range(100)]
    during = sys.getrefcount(number)
    assert lists == [[731, 731]] * 100
    del lists
    after = sys.getrefcount(number)
    assert (during, after) == (before + 200, before)


def test_threads_that_need_the_numbers_at_once() -> None:
    for _ in range(20):
        tok, results = Tokenizer(SPECS["holes"]), list[list[int]]()
        start = threading.Barrier(4)

        def work(tok: Tokenizer = tok, start: threading.Barrier = start, results: list[list[int]] = results) -> None:
            start.wait()
            results.extend(tok.encode("hello" * 500) for _ in range(3))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(results) == 12 and all(ids == tok.encode("hello" * 500) for ids in results)
