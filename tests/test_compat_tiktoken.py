"""`subword.compat.tiktoken` against tiktoken itself: the same results, and errors of the same classes."""

from __future__ import annotations

import copy
import pickle
import random
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import texts
from hypothesis import given, settings
from hypothesis import strategies as st
from vocabularies import ranks_from_bpe_openai

import subword
import subword.compat.tiktoken as ours
from subword.errors import SubwordValueError
from subword.formats import known
from subword.patterns import PATTERNS

SPECIAL = {"<|endoftext|>": 300, "<|end|>": 302, "<|": 305}


def toy_ranks() -> dict[bytes, int]:
    """Bytes, and tokens of some words, of spaces and of halves of characters."""
    pieces = "th,the, the,he,an,and, and, a,in,ing,  ,   ,\n\n, \n,hel,lo,hello,'s,日,本".encode().split(b",")
    pieces += [b"\xe6\x97", b"\xa5\xe6", b" \xe6", b"\xc3\xa9", b"12", b"aa", b"aaa"]
    return {piece: rank for rank, piece in enumerate([bytes([byte]) for byte in range(256)] + sorted(pieces, key=len))}


def pair_of(pattern: str = "cl100k", **more: Any) -> tuple[Any, ours.Encoding]:
    """The same encoding there and here."""
    theirs = pytest.importorskip("tiktoken")
    arguments = {
        "pat_str": PATTERNS[pattern].regex,
        "mergeable_ranks": toy_ranks(),
        "special_tokens": {token: id for token, id in SPECIAL.items() if token != "<|"},
    } | more
    return theirs.Encoding("toy", **arguments), ours.Encoding("toy", **arguments)


@pytest.fixture(scope="module", params=["toy gpt2", "toy cl100k", "toy o200k", "cl100k", "o200k"])
def pair(request: pytest.FixtureRequest) -> tuple[Any, ours.Encoding]:
    if request.param.startswith("toy "):
        return pair_of(request.param[4:])
    ranks = ranks_from_bpe_openai(request.param)
    special = {"<|endoftext|>": len(ranks) + 1, "<|end|>": len(ranks) + 5}
    return pair_of(request.param, mergeable_ranks=ranks, special_tokens=special)


def drawn(seed: int, times: int, parts: int = 12) -> list[str]:
    rng = random.Random(seed)
    some = [
        "the",
        " ",
        "  ",
        "\n",
        "and",
        "é",
        "日",
        "本",
        "12",
        "'s",
        "a",
        "<|end|>",
        "<|endoftext|>",
        "<|",
        "👍",
        "!",
    ]
    return ["".join(rng.choices(some, k=rng.randrange(parts))) for _ in range(times)]


TEXTS = [text for text in texts.TEXTS.values() if len(text) < 20_000] + drawn(1, 60)


def test_encoding(pair: tuple[Any, ours.Encoding]) -> None:
    theirs, mine = pair
    for text in TEXTS:
        assert mine.encode_ordinary(text) == theirs.encode_ordinary(text)
        for policy in (
            {"disallowed_special": ()},
            {"allowed_special": "all"},
            {"allowed_special": {"<|end|>"}, "disallowed_special": ()},
            {"allowed_special": {"<|end|>", "no such token"}, "disallowed_special": {"\0never"}},
        ):
            ids = theirs.encode(text, **policy)
            assert mine.encode(text, **policy) == ids
            assert mine.encode_to_numpy(text, **policy).tolist() == ids
    for policy in ({"allowed_special": "all"}, {"disallowed_special": (), "num_threads": 2}):
        assert mine.encode_batch(TEXTS, **policy) == theirs.encode_batch(TEXTS, **policy)
    assert mine.encode_ordinary_batch(TEXTS) == theirs.encode_ordinary_batch(TEXTS)
    assert mine.encode_to_numpy("the").dtype == np.uint32


def test_decoding(pair: tuple[Any, ours.Encoding]) -> None:
    theirs, mine = pair
    rng = random.Random(2)
    known_ids = [*theirs._mergeable_ranks.values(), *theirs._special_tokens.values()]
    batch = [rng.choices(known_ids, k=rng.randrange(12)) for _ in range(200)]
    for ids in batch:
        assert mine.decode_bytes(ids) == theirs.decode_bytes(ids)
        assert mine.decode_tokens_bytes(ids) == theirs.decode_tokens_bytes(ids)
        for errors in ("replace", "ignore", "backslashreplace"):
            assert mine.decode(ids, errors) == theirs.decode(ids, errors)
    assert mine.decode_batch(batch, errors="ignore") == theirs.decode_batch(batch, errors="ignore")
    assert mine.decode_bytes_batch(batch, num_threads=2) == theirs.decode_bytes_batch(batch)
    for text in TEXTS:
        ids = theirs.encode(text, allowed_special="all")
        assert mine.decode_with_offsets(ids) == theirs.decode_with_offsets(ids)


def test_what_it_is(pair: tuple[Any, ours.Encoding]) -> None:
    theirs, mine = pair
    for name in ("name", "n_vocab", "max_token_value", "eot_token", "special_tokens_set", "_special_tokens"):
        assert getattr(mine, name) == getattr(theirs, name)
    assert mine.token_byte_values() == theirs.token_byte_values()
    assert repr(mine) == repr(theirs)
    for id in (0, 299, theirs.eot_token):
        assert mine.is_special_token(id) is theirs.is_special_token(id)
    for token in ("the", b"the", "<|end|>", b"<|end|>", b"\xe6", "a"):
        assert mine.encode_single_token(token) == theirs.encode_single_token(token)
    for id in [0, 255, *theirs._special_tokens.values()]:
        assert mine.decode_single_token_bytes(id) == theirs.decode_single_token_bytes(id)


def test_unstable_tokens(pair: tuple[Any, ours.Encoding]) -> None:
    theirs, mine = pair
    some = ["", " ", "hel", "hello the", "the\n\n", "the  ", "  !", " \n ", "日", "it's", "12 ", "a<|end|>", "<|end|> "]
    for text in some + drawn(3, 15, parts=6):
        stable, completions = theirs.encode_with_unstable(text, allowed_special="all")
        got_stable, got = mine.encode_with_unstable(text, allowed_special="all")
        assert got_stable == stable
        assert got == sorted(map(list, completions))
        data = text.encode()
        assert data.startswith(mine.decode_bytes(stable))
        assert all(mine.decode_bytes(stable + ids).startswith(data) for ids in got)


@given(st.text(st.sampled_from("the \n1'日é!"), max_size=9))
@settings(max_examples=150, deadline=None)
def test_unstable_tokens_of_any_text(text: str) -> None:
    theirs, mine = TOY
    stable, completions = theirs.encode_with_unstable(text)
    assert mine.encode_with_unstable(text) == (stable, sorted(map(list, completions)))


@given(st.binary(max_size=12) | st.lists(st.sampled_from([b"the", b" ", b"\n", b"\xe6", b"\x97\xa5"])).map(b"".join))
@settings(max_examples=300, deadline=None)
def test_bytes_that_are_no_text(data: bytes) -> None:
    theirs, mine = TOY
    assert mine._encode_bytes(data) == theirs._encode_bytes(data)
    assert mine.decode_bytes(mine._encode_bytes(data)) == data
    assert mine._encode_single_piece(data) == (theirs._encode_single_piece(data) if data else [])


TOY: tuple[Any, ours.Encoding] = pair_of()


def test_surrogates() -> None:
    theirs, mine = TOY
    for text in ("\ud83d\udc4d", "\ud83d", "a\udc4d\ud83d b", "\ud800<|end|>"):
        assert mine.encode(text, allowed_special="all") == theirs.encode(text, allowed_special="all")
        assert mine.encode_ordinary(text) == theirs.encode_ordinary(text)
        assert mine.encode_batch([text], allowed_special="all") == theirs.encode_batch([text], allowed_special="all")
        assert mine.encode_to_numpy(text, disallowed_special=()).tolist() == mine.encode_ordinary(text)


ERRORS: dict[str, tuple[Callable[[Any], Any], type[Exception]]] = {
    "special": (lambda enc: enc.encode("a<|end|>"), ValueError),
    "one special": (lambda enc: enc.encode("a<|end|>", disallowed_special={"<|end|>"}), ValueError),
    "other text": (lambda enc: enc.encode("the the", disallowed_special={"e t"}), ValueError),
    "allowed and not": (
        lambda enc: enc.encode("<|end|>", allowed_special="all", disallowed_special={"<|end|>"}),
        ValueError,
    ),
    "empty": (lambda enc: enc.encode("a", disallowed_special={""}), ValueError),
    "numpy": (lambda enc: enc.encode_to_numpy("a<|end|>"), ValueError),
    "batch": (lambda enc: enc.encode_batch(["a", "<|end|>"]), ValueError),
    "unstable": (lambda enc: enc.encode_with_unstable("<|end|>"), ValueError),
    "bytes": (lambda enc: enc.encode(b"a"), TypeError),
    "bytes, ordinary": (lambda enc: enc.encode_ordinary(b"a"), TypeError),
    "none": (lambda enc: enc.encode_ordinary(None), TypeError),
    "no threads": (lambda enc: enc.encode_batch(["a"], num_threads=0), ValueError),
    "no token": (lambda enc: enc.encode_single_token("zzz"), KeyError),
    "a surrogate as a token": (lambda enc: enc.encode_single_token("\ud800"), UnicodeEncodeError),
    "a hole": (lambda enc: enc.decode([0, 301]), KeyError),
    "too large": (lambda enc: enc.decode_bytes([306]), KeyError),
    "too large alone": (lambda enc: enc.decode_single_token_bytes(306), KeyError),
    "too large in a batch": (lambda enc: enc.decode_batch([[0], [306]]), KeyError),
    "too large with offsets": (lambda enc: enc.decode_with_offsets([306]), KeyError),
    "half a character": (lambda enc: enc.decode([0xE6], errors="strict"), UnicodeDecodeError),
    "half a character with offsets": (lambda enc: enc.decode_with_offsets([0xE6]), UnicodeDecodeError),
    "no way to treat errors": (lambda enc: enc.decode([0xE6], errors="no such"), LookupError),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case: str) -> None:
    call, kind = ERRORS[case]
    for encoding in TOY:
        with pytest.raises(kind):
            call(encoding)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"pat_str": "[a-z]+"}, r"'\[a-z\]\+' leaves out some text"),
        ({"pat_str": r"(?<=a)b|[\s\S]"}, "no linear way"),
        ({"special_tokens": {"<|x|>": 97}}, r"Encoding 'toy': the special token '<\|x\|>' cannot have the id 97"),
        ({"special_tokens": {"": 300}}, "is not a string that text can spell"),
        ({"mergeable_ranks": {b"a": 0}}, r"Encoding 'toy': no token for the bytes b'\\x00"),
        ({"mergeable_ranks": {}}, "no token for the bytes"),
        ({"mergeable_ranks": toy_ranks() | {b"new": 0}}, "the id 0 is given to two entries"),
        ({"explicit_n_vocab": 5}, "explicit_n_vocab=5, but there are 285 tokens with ids up to 302"),
    ],
)
def test_encodings_that_could_not_work(more: dict[str, Any], message: str) -> None:
    special = {"<|endoftext|>": 300, "<|end|>": 302}
    arguments = {"pat_str": PATTERNS["cl100k"].regex, "mergeable_ranks": toy_ranks(), "special_tokens": special}
    with pytest.raises(ValueError, match=message):
        ours.Encoding("toy", **(arguments | more))


@pytest.mark.parametrize("pat_str", [r"\p{L}{1,2}|\p{N}+|[^\p{L}\p{N}]", r" ?[a-z]++|\s+(?!\S)|(?s:.)"])
def test_patterns_of_ones_own(pat_str: str) -> None:
    theirs, mine = pair_of(pat_str=pat_str)
    for text in TEXTS:
        assert mine.encode_ordinary(text) == theirs.encode_ordinary(text)


def test_explicit_n_vocab() -> None:
    ranks = toy_ranks()
    _, mine = pair_of(special_tokens={"<|x|>": len(ranks)}, explicit_n_vocab=len(ranks) + 1)
    assert mine.n_vocab == len(ranks) + 1


def test_of_special_tokens_that_start_alike_the_longest_is_taken() -> None:
    enc = ours.Encoding("x", pat_str="gpt2", mergeable_ranks=toy_ranks(), special_tokens=SPECIAL)
    assert enc.encode("<|end|><|", allowed_special="all") == [302, 305]


def test_an_id_with_two_names() -> None:
    """As 200018 of o200k_harmony."""
    special = {"<|one|>": 300, "<|two|>": 300, "<|three|>": 301}
    theirs, mine = pair_of(special_tokens=special)
    text = "the<|one|> <|two|><|three|>"
    ids = [mine.encode_single_token("the"), 300, 32, 300, 301]
    for enc in (theirs, mine):
        assert enc.encode(text, allowed_special="all") == ids
        assert enc.encode_to_numpy(text, allowed_special="all").tolist() == ids
        assert enc.encode_batch([text], allowed_special="all") == [ids]
        assert enc.encode("<|two|>", allowed_special={"<|two|>"}) == [300]
        assert enc.encode_single_token("<|two|>") == enc.encode_single_token("<|one|>") == 300
        assert enc.special_tokens_set == set(special)
        assert enc.n_vocab == 302
        with pytest.raises(ValueError, match="two"):
            enc.encode("<|two|>", allowed_special={"<|one|>"})
        with pytest.raises(KeyError):
            enc.decode_bytes([302])
        assert enc.encode_ordinary("<|two|>") == enc.encode("<|two|>", disallowed_special=())
    assert mine.decode([300, 301]) == "<|one|><|three|>"
    assert mine.encode_with_unstable(text, allowed_special="all") == (ids, [])


def test_an_empty_token_as_whisper_has_it() -> None:
    ranks = toy_ranks() | {b"": 299}
    theirs, mine = pair_of(mergeable_ranks=ranks)
    for enc in (theirs, mine):
        assert enc.decode_bytes([0, 299, 302]) == b"\0<|end|>"
        assert enc.decode_single_token_bytes(299) == b""
        assert enc.encode("the<|end|>", allowed_special="all")[-1] == 302
    assert mine.token_byte_values() == theirs.token_byte_values()


def test_pickling_and_copying() -> None:
    for enc in (TOY[1], pair_of(special_tokens={"<|one|>": 300, "<|two|>": 300})[1]):
        for again in (pickle.loads(pickle.dumps(enc)), copy.deepcopy(enc)):
            assert again is not enc
            assert again.name == enc.name
            assert again._special_tokens == enc._special_tokens
            assert again.encode_ordinary("the é") == enc.encode_ordinary("the é")


# ======================== by name ========================


def test_get_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    ranks_from_bpe_openai("o200k")  # skips where there are no files
    monkeypatch.setenv(known.MIRROR, "http://127.0.0.1:1")
    enc = ours.get_encoding("o200k_harmony")
    assert ours.get_encoding("o200k_harmony") is enc
    assert pickle.loads(pickle.dumps(enc)) is enc
    assert enc.n_vocab == 201088
    assert enc.encode("<|start|><|reserved_200018|><|endofprompt|>", allowed_special="all") == [200006, 200018, 200018]
    assert enc.decode([200018]) == "<|endofprompt|>"
    assert len(enc.special_tokens_set) == 1091
    assert ours.encoding_for_model("gpt-oss-120b") is enc
    assert ours.get_encoding("o200k_base")._pat_str == PATTERNS["o200k"].regex


@pytest.mark.parametrize("name", ["gpt5", "", None, 5, ["gpt2"]])
def test_no_such_encoding(name: Any) -> None:
    with pytest.raises(SubwordValueError, match=r"known are gpt2, r50k_base, .*o200k_harmony"):
        ours.get_encoding(name)


def test_a_file_is_not_taken_for_an_encoding(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`load` prefers a file of that name; tiktoken's names mean OpenAI's encodings."""
    ranks_from_bpe_openai("cl100k")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ours, "_encodings", {})
    subword.train(["ab"], vocab_size=257).save("cl100k_base", format="native")
    assert ours.get_encoding("cl100k_base").n_vocab == 100277
    assert subword.load("cl100k_base").n_vocab == 257


def test_models_are_those_of_tiktoken() -> None:
    model = pytest.importorskip("tiktoken.model")
    registry = pytest.importorskip("tiktoken.registry")
    assert ours.list_encoding_names() == registry.list_encoding_names()
    names = [*model.MODEL_TO_ENCODING, *ours.MODEL_TO_ENCODING]
    for prefix in (*model.MODEL_PREFIX_TO_ENCODING, *ours.MODEL_PREFIX_TO_ENCODING):
        names += [prefix, f"{prefix}x", f"{prefix}4o-2024"]
    for name in names:
        assert ours.encoding_name_for_model(name) == model.encoding_name_for_model(name), name
    for name in ("gpt-6", "", "claude", "GPT-4"):
        for module in (ours, model):
            with pytest.raises(KeyError):
                module.encoding_name_for_model(name)


def test_tiktoken_is_not_imported() -> None:
    code = (
        "import sys, subword.compat.tiktoken; print(*(name for name in ('tiktoken', 'pooch') if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
