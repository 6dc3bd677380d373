"""Bad calls and bad specs: whatever is passed, one of our own errors says what is wrong; nothing ends in a panic."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from texts import BYTES, TEXTS
from vocabularies import byte_vocab

import subword
from subword import (
    BPE,
    ExtraToken,
    FormatError,
    Spec,
    SpecialTokenError,
    Split,
    SubwordError,
    SubwordValueError,
    Template,
    Tokenizer,
    UnknownTokenError,
    Vocab,
)


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return subword.train(
        list(TEXTS.values()), vocab_size=700, special_tokens=["<|endoftext|>", "<|end|>"], bos_token="<s>"
    )


BAD_CALLS: dict[str, tuple[Callable[[Tokenizer], object], type[SubwordError], str]] = {
    "text None": (lambda t: t.encode(None), SubwordValueError, "a text must be str or bytes, not NoneType"),  # type: ignore[arg-type]
    "text list": (lambda t: t.count(["a"]), SubwordValueError, "not list"),  # type: ignore[arg-type]
    "batch is a str": (lambda t: t.encode_batch("abc"), SubwordValueError, "put it into a list"),
    "batch is a number": (lambda t: t.encode_batch(7), SubwordValueError, "must be a list"),  # type: ignore[arg-type]
    "batch holds None": (lambda t: t.encode_batch(["a", None]), SubwordValueError, "not NoneType"),  # type: ignore[list-item]
    "batch with a special": (lambda t: t.encode_batch(["a", "<|end|>"]), SpecialTokenError, "text 1 of the batch"),
    "threads 0": (lambda t: t.encode_batch(["a"], threads=0), SubwordValueError, "threads must be"),
    "threads 1.5": (lambda t: t.count_batch(["a"], threads=1.5), SubwordValueError, "threads must be"),  # type: ignore[arg-type]
    "special": (lambda t: t.encode("a<|end|>"), SpecialTokenError, "at character 1.*disallowed_special"),
    "allowed a str": (lambda t: t.encode("a", allowed_special="<|end|>"), SubwordValueError, 'must be "all" or a set'),
    "id -1": (lambda t: t.decode([-1]), UnknownTokenError, "no id -1"),
    "id 2^31": (lambda t: t.decode([2**31]), UnknownTokenError, "no id 2147483648"),
    "id 2^32": (lambda t: t.decode([0, 2**32]), UnknownTokenError, "position 1.*no id 4294967296"),
    "id 2^63": (lambda t: t.decode([2**63]), UnknownTokenError, "no id 9223372036854775808"),
    "id numpy": (lambda t: t.decode(np.array([-5])), UnknownTokenError, "no id -5"),
    "text numbers": (lambda t: t.encode(np.array([1, 2, 3])), SubwordValueError, "ndarray holds items.*tobytes"),  # type: ignore[arg-type]
    "text uint16": (lambda t: t.count(np.array([1], np.uint16)), SubwordValueError, "format 'H', not bytes"),  # type: ignore[arg-type]
    "text bools": (lambda t: t.chunk(np.array([True])), SubwordValueError, "not bytes"),
    "text one number": (lambda t: t.truncate(np.uint8(65), 1), SubwordValueError, "not uint8"),
    "batch text 1": (lambda t: t.encode_batch(["a", 5]), SubwordValueError, "^text 1 of the batch: a text must be"),  # type: ignore[list-item]
    "ids str": (lambda t: t.decode("abc"), SubwordValueError, "not str: encode"),  # type: ignore[arg-type]
    "ids bytes": (lambda t: t.decode(b"abc"), SubwordValueError, "not bytes: read stored ids"),
    "ids empty bytes": (lambda t: t.decode_bytes(b""), SubwordValueError, "not bytes"),
    "ids bytearray": (lambda t: t.decode_bytes(bytearray(b"a")), SubwordValueError, "not bytearray"),
    "ids memoryview": (lambda t: t.decode(memoryview(b"a")), SubwordValueError, "not memoryview"),
    "ids batch bytes": (lambda t: t.decode_batch([[1], b"a"]), SubwordValueError, "^item 1 of the batch: .*not bytes"),
    "ids batch int": (lambda t: t.decode_batch([[1], 5]), SubwordValueError, "^item 1 of the batch: token ids must"),  # type: ignore[list-item]
    "ids stream": (lambda t: t.stream_decoder().feed(b"a"), SubwordValueError, "not bytes"),
    "add a str": (lambda t: t.encode("a", add_special_tokens="x"), SubwordValueError, "must be True or False, not 'x'"),  # type: ignore[arg-type]
    "skip a number": (lambda t: t.decode([1], skip_special_tokens=1), SubwordValueError, "must be True or False"),  # type: ignore[arg-type]
    "side None": (lambda t: t.truncate("a", 1, side=None), SubwordValueError, "unknown side None"),  # type: ignore[arg-type]
    "chunk surrogates": (lambda t: t.chunk("é🧿", 2), SubwordValueError, "character 1 alone takes 3"),
    "progress": (lambda t: subword.train(["a"], vocab_size=257, progress=5), SubwordValueError, "must be a function"),  # type: ignore[arg-type]
    "file a number": (lambda t: subword.train(files=[5], vocab_size=257), SubwordValueError, "path must be str"),  # type: ignore[list-item]
    "path surrogate": (lambda t: subword.load("\ud800"), SubwordValueError, "no file name does"),
    "spec of odd things": (lambda t: Spec((5,), t.spec.model), SubwordValueError, "Spec.stages must hold"),  # type: ignore[arg-type]
    "replace nothing": (lambda t: t.spec.replace(nope=5), SubwordValueError, "cannot be changed so"),
    "id bool": (lambda t: t.decode([True]), SubwordValueError, "must be an integer, not True"),
    "id float": (lambda t: t.decode([1, 1.5]), SubwordValueError, "position 1.*not 1.5"),  # type: ignore[list-item]
    "id str": (lambda t: t.decode(["a"]), SubwordValueError, "not 'a'"),  # type: ignore[list-item]
    "ids one number": (lambda t: t.decode(5), SubwordValueError, "must be a list or an array"),  # type: ignore[arg-type]
    "batch ids": (lambda t: t.decode_batch([[1], [9999]]), UnknownTokenError, "item 1 of the batch, position 0"),
    "errors": (lambda t: t.decode([1], errors="nope"), SubwordValueError, "unknown way to treat errors"),
    "strict": (lambda t: t.decode([0xFF], errors="strict"), SubwordValueError, "not well-formed UTF-8 at byte 0"),
    "token_bytes": (lambda t: t.token_bytes(700), UnknownTokenError, "no id 700: the largest is 699"),
    "token_piece": (lambda t: t.token_piece(-1), UnknownTokenError, "no id -1"),
    "token_id": (lambda t: t.token_id("no such"), UnknownTokenError, "'no such' is no entry"),
    "token_id number": (lambda t: t.token_id(1), SubwordValueError, "must be str or bytes, not int"),  # type: ignore[arg-type]
    "reserved huge": (lambda t: t.with_tokens(reserved=2**31), SubwordValueError, "beyond the largest id"),
    "allowed None": (lambda t: t.encode("a", allowed_special=None), SubwordValueError, "must be a list, not None"),  # type: ignore[arg-type]
    "disallowed None": (lambda t: t.encode("a", disallowed_special=None), SubwordValueError, "must be a list"),  # type: ignore[arg-type]
    "disallowed number": (lambda t: t.encode("a", disallowed_special={1}), SubwordValueError, "must be a string"),  # type: ignore[arg-type]
    "disallowed surrogate": (lambda t: t.encode("a", disallowed_special={"\ud800"}), SubwordValueError, "surrogate"),
    "decode_batch number": (lambda t: t.decode_batch(5), SubwordValueError, "batch must be a list"),  # type: ignore[arg-type]
    "encode errors": (lambda t: t.decode([255], errors="xmlcharrefreplace"), SubwordValueError, "unknown way"),
    "not a spec": (lambda t: Tokenizer(5), SubwordValueError, "made of a Spec"),  # type: ignore[arg-type]
    "with_tokens None": (lambda t: t.with_tokens(added=None), SubwordValueError, "must be a list"),  # type: ignore[arg-type]
    "train specials None": (
        lambda t: subword.train(["ab"], vocab_size=300, special_tokens=None),  # type: ignore[arg-type]
        SubwordValueError,
        "must be a list",
    ),
    "vocab str": (lambda t: t.vocab["a"], UnknownTokenError, "keys of the vocabulary are bytes"),  # type: ignore[index]
    "truncate -1": (lambda t: t.truncate("a", -1), SubwordValueError, "n must be an integer of at least 0"),
    "truncate side": (lambda t: t.truncate("a", 1, side="up"), SubwordValueError, "unknown side 'up'"),  # type: ignore[arg-type]
    "truncate template": (
        lambda t: t.truncate("a", 0, add_special_tokens=True),
        SubwordValueError,
        "limit of 0 is too small",
    ),
    "truncate special": (lambda t: t.truncate("a<|end|>", 1), SpecialTokenError, "at character 1"),
    "fits float": (lambda t: t.fits("a", 1.5), SubwordValueError, "n must be"),  # type: ignore[arg-type]
    "chunk 0": (lambda t: t.chunk("a", 0), SubwordValueError, "max_tokens must be an integer of at least 1, not 0"),
    "chunk overlap": (lambda t: t.chunk("a", 5, 5), SubwordValueError, "overlap=5 must be smaller"),
    "chunk small": (lambda t: t.chunk("a\U0001f9ff", 1), SubwordValueError, "character 1 alone takes"),
    "with_tokens str": (lambda t: t.with_tokens(special="<x>"), SubwordValueError, "put it into a list"),
    "fim without tokens": (lambda t: t.fim("a", "b"), SubwordValueError, "add some: tok"),
    "fim order": (lambda t: t.fim("a", "b", order="mps"), SubwordValueError, "choose one of 'psm', 'spm'"),  # type: ignore[arg-type]
    "with_tokens twice": (lambda t: t.with_tokens(special=["<|end|>"]), SubwordValueError, "is there already"),
    "with_tokens empty": (lambda t: t.with_tokens(added=[""]), SubwordValueError, "at least one character"),
    "with_tokens surrogate": (lambda t: t.with_tokens(added=["\ud800"]), SubwordValueError, "lone surrogate"),
    "with_tokens reserved": (lambda t: t.with_tokens(reserved=-1), SubwordValueError, "reserved must be"),
    "train a str": (lambda t: subword.train("abc", vocab_size=300), SubwordValueError, "write \\[text\\]"),
    "train both": (lambda t: subword.train(["a"], files=["b"], vocab_size=300), SubwordValueError, "one of the two"),
    "train neither": (lambda t: subword.train(vocab_size=300), SubwordValueError, "one of the two"),
    "train size": (lambda t: subword.train(["ab"], vocab_size=10), SubwordValueError, "minimum of 256"),
    "train size str": (lambda t: subword.train(["ab"], vocab_size="9"), SubwordValueError, "must be an integer"),  # type: ignore[arg-type]
    "train size huge": (lambda t: subword.train(["ab"], vocab_size=2**40), SubwordValueError, "largest id"),
    "train pattern": (
        lambda t: subword.train(["ab"], vocab_size=300, pattern="gpt9"),
        SubwordValueError,
        "the patterns are",
    ),
    "train tie rule": (
        lambda t: subword.train(["ab"], vocab_size=300, tie_rule="x"),
        SubwordValueError,
        "smallest-ids",
    ),  # type: ignore[arg-type]
    "train algorithm": (lambda t: subword.train(["ab"], vocab_size=300, algorithm="x"), SubwordValueError, "'bpe'"),  # type: ignore[arg-type]
    "train specials": (
        lambda t: subword.train(["ab"], vocab_size=300, special_tokens="<s>"),
        SubwordValueError,
        "put it into a list",
    ),
    "train special twice": (
        lambda t: subword.train(["ab"], vocab_size=300, special_tokens=["x", "x"]),
        SubwordValueError,
        "twice",
    ),
    "train file": (
        lambda t: subword.train(files=["/no/such/file"], vocab_size=300),
        subword.SubwordOSError,
        "/no/such/file",
    ),
    "train holds None": (lambda t: subword.train(["a", None], vocab_size=300), SubwordValueError, "not NoneType"),  # type: ignore[list-item]
    "load missing": (lambda t: subword.load("/no/such/file"), subword.SubwordOSError, "/no/such/file"),
    "load engine": (lambda t: Tokenizer(t.spec, engine="fast"), SubwordValueError, "unknown engine"),  # type: ignore[arg-type]
    "save format": (lambda t: t.save("x.abc"), SubwordValueError, "x.abc"),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_calls(tok: Tokenizer, name: str) -> None:
    call, kind, words = BAD_CALLS[name]
    with pytest.raises(kind, match=words) as caught:
        call(tok)
    assert isinstance(caught.value, (ValueError, KeyError, OSError))
    assert not str(caught.value).startswith(("'", '"')) or "is no entry" in words


class Odd:
    """Has an iterator and an index that do not work."""

    def __iter__(self) -> Any:
        raise TypeError("no iterator")

    def __index__(self) -> Any:
        return "no index"


def odd_values() -> list[Any]:
    values: list[Any] = [
        None,
        True,
        -1,
        2**31,
        2**63,
        2**70,
        1.5,
        "",
        "x",
        "\ud800",
        "a\0b",
        b"",
        b"x",
        bytearray(b"a"),
    ]
    values += [[], [1], ["a"], [None], [[1]], {}, {1}, Odd(), slice(1), ..., range(3), memoryview(b"a")]
    values += [np.array(3), np.array([1.5]), np.array(["a"]), np.array([[1, 2], [3, 4]]), np.array([object()])]
    values += [np.int64(3), np.uint8(3), np.float64(2), np.bool_(True), np.str_("x")]
    return values + [[value] for value in values]


POLICY: dict[str, object] = {"allowed_special": (), "disallowed_special": (), "add_special_tokens": False}
EVERY_CALL: dict[str, tuple[Callable[..., object], dict[str, object]]] = {
    **{
        name: (lambda t, name=name, **options: getattr(t, name)(**options), {**first, **POLICY, **last})
        for name, first, last in [
            ("encode", {"text": "a"}, {}),
            ("encode_to_numpy", {"text": "a"}, {}),
            ("tokenize", {"text": "a"}, {}),
            ("count", {"text": "a"}, {}),
            ("fits", {"text": "a", "n": 1}, {}),
            ("truncate", {"text": "a", "n": 1, "side": "left"}, {}),
            ("chunk", {"text": "a", "max_tokens": 3, "overlap": 1}, {}),
            ("encode_batch", {"texts": ["a"]}, {"threads": 1}),
            ("encode_batch_to_numpy", {"texts": ["a"]}, {"threads": 1}),
            ("count_batch", {"texts": ["a"]}, {"threads": 1}),
        ]
    },
    **{
        name: (lambda t, name=name, **options: getattr(t, name)(**options), options)
        for name, options in [
            ("encode_ordinary", {"text": "a"}),
            ("find_special", {"text": "a"}),
            ("decode", {"ids": [1], "errors": "replace", "skip_special_tokens": False}),
            ("decode_bytes", {"ids": [1], "skip_special_tokens": False}),
            ("decode_batch", {"batch": [[1]], "errors": "replace", "skip_special_tokens": False, "threads": 1}),
            ("stream_decoder", {"errors": "replace", "skip_special_tokens": False}),
            ("with_tokens", {"special": ["u"], "added": ["v"], "reserved": 1}),
            ("token_bytes", {"id": 1}),
            ("token_piece", {"id": 1}),
            ("token_id", {"token": "a"}),
            ("save", {"path": "/no/such/folder/x.subword", "format": "native"}),
        ]
    },
    "feed": (lambda t, **options: t.stream_decoder().feed(**options), {"ids": [1]}),
    "StreamDecoder": (lambda t, **options: subword.StreamDecoder(**{"tokenizer": t, **options}), {"tokenizer": None}),
    "Tokenizer": (lambda t, **options: Tokenizer(**{"spec": t.spec, **options}), {"spec": None, "engine": "core"}),
    "load": (lambda t, **options: subword.load(**options), {"path": "/no/such/file", "engine": "core"}),
    "train": (
        lambda t, **options: subword.train(**options),
        {
            "texts": ["ab"],
            "vocab_size": 257,
            "algorithm": "bpe",
            "pattern": "gpt2",
            "special_tokens": [],
            "bos_token": None,
            "eos_token": None,
            "pad_token": None,
            "normalization": None,
            "tie_rule": "first-seen",
            "byte_order": "value",
            "field": "text",
            "threads": 1,
            "progress": None,
        },
    ),
    "train files": (lambda t, **options: subword.train(**options, vocab_size=257), {"files": [__file__], "field": "x"}),
    "Spec": (
        lambda t, **options: Tokenizer(t.spec.replace(**options)).fingerprint,
        {"stages": (), "model": None, "extra": (), "template": Template(), "roles": {}, "notes": {}},
    ),
    "ExtraToken": (
        lambda t, **options: Tokenizer(t.spec.replace(extra=[*t.spec.extra, ExtraToken(**options)])).fingerprint,
        {"id": 800, "content": "u", "kind": "added", **dict.fromkeys(("single_word", "lstrip", "rstrip"), False)},
    ),
    "stages": (
        lambda t, form, pattern, unicode: (
            Tokenizer(t.spec.replace(stages=(subword.Normalize(form, unicode), Split(pattern)))).fingerprint
        ),
        {"form": "NFC", "unicode": "9.0", "pattern": "gpt2"},
    ),
    "Template": (
        lambda t, **options: Tokenizer(t.spec.replace(template=Template(**options))).fingerprint,
        {"single": ("A",), "pair": ("A", "B")},
    ),
    "BPE": (
        lambda t, **options: (
            Tokenizer(t.spec.replace(model=BPE(**{"vocab": t.spec.model.vocab, **options}))).fingerprint
        ),
        {"vocab": None, "merges": np.zeros((0, 2)), "priority": "merges", "ignore_merges": False},
    ),
    "Vocab": (lambda t, **options: Vocab(**{"pieces": t.spec.model.vocab.pieces, **options}), {"pieces": 0, "ids": 0}),
    "Vocab.of": (lambda t, **options: Vocab.of(**options), {"entries": [(b"a", 1)]}),
    "Ragged": (
        lambda t, **options: list(subword.Ragged(**options)),
        {"ids": np.zeros(3, np.uint32), "offsets": np.array([0, 3], np.uint64)},
    ),
}


@pytest.mark.parametrize("name", EVERY_CALL)
def test_whatever_is_passed_only_our_own_errors_come_back(
    tok: Tokenizer, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # "x" is a path, too
    call, good = EVERY_CALL[name]
    refused = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", subword.SubwordWarning)
        for argument in good:
            for value in odd_values():
                try:
                    call(tok, **{**good, argument: value})
                except SubwordError:
                    refused += 1
    assert refused > 10


def test_numpy_numbers_are_numbers(tok: Tokenizer) -> None:
    for kind in (np.int8, np.uint64, np.array):
        number = kind(3)
        assert tok.truncate("a b c d e f", number) == tok.truncate("a b c d e f", 3) and tok.fits("a", number)
        assert tok.chunk("a b c d e f", number, kind(1)) == tok.chunk("a b c d e f", 3, 1)
        assert tok.encode_batch(["a"], threads=number) == [tok.encode("a")]
        assert tok.with_tokens(reserved=number) == tok.with_tokens(reserved=3)
        assert tok.token_piece(number) == tok.token_piece(3)
    assert subword.train(["ab"], vocab_size=np.int64(257), threads=np.int32(1)).n_vocab == 257  # type: ignore[arg-type]
    assert tok.encode("a", add_special_tokens=np.bool_(True)) == tok.encode("a", add_special_tokens=True)  # type: ignore[arg-type]
    spec = tok.spec.replace(template=Template((np.int64(699), "A")), roles={"bos": np.int64(699)})  # type: ignore[arg-type]
    assert Tokenizer(spec.replace(extra=[ExtraToken(np.int64(t.id), t.content) for t in spec.extra])).bos_id == 699  # type: ignore[arg-type]
    assert spec == tok.spec.replace(template=Template((699, "A"))) and tok.truncate("a b", 2**70) == "a b"


BAD_SPECS: dict[str, tuple[Callable[[], Spec], str]] = {
    "byte missing": (
        lambda: Spec((), BPE(Vocab.of((bytes([b]), b) for b in range(256) if b != 0x41))),
        "1 are missing: 0x41",
    ),
    "entry twice": (lambda: Spec((), BPE(byte_vocab((b"ab", 256), (b"ab", 257)))), "is an entry twice"),
    "id twice": (lambda: Spec((), BPE(byte_vocab((b"ab", 5)))), "the id 5 is given to two entries"),
    "empty entry": (lambda: Spec((), BPE(byte_vocab((b"", 256)))), "entry with id 256 is empty"),
    "merge of nothing": (
        lambda: Spec((), BPE(byte_vocab(), np.array([[97, 98]], np.uint32))),
        'makes "ab", which is no entry',
    ),
    "merge of no id": (lambda: Spec((), BPE(byte_vocab(), np.array([[97, 999]], np.uint32))), "no id 999"),
    "merge twice": (
        lambda: Spec((), BPE(byte_vocab((b"ab", 256)), np.array([[97, 98], [97, 98]], np.uint32))),
        "a second time",
    ),
    "extra id taken": (
        lambda: Spec((), BPE(byte_vocab()), (ExtraToken(5, "<s>"),)),
        "the id 5 is given to the extra token",
    ),
    "extra id twice": (
        lambda: Spec((), BPE(byte_vocab()), (ExtraToken(300, "a1"), ExtraToken(300, "a2"))),
        "two extra",
    ),
    "extra twice": (
        lambda: Spec((), BPE(byte_vocab()), (ExtraToken(300, "a1"), ExtraToken(301, "a1"))),
        "extra token twice",
    ),
    "extra empty": (lambda: Spec((), BPE(byte_vocab()), (ExtraToken(300, ""),)), "at least one character"),
    "extra kind": (
        lambda: Spec((), BPE(byte_vocab()), (ExtraToken(300, "x", "odd"),)),
        "must be one of special, added, unmatchable, not 'odd'",
    ),  # type: ignore[arg-type]
    "extra id large": (lambda: Spec((), BPE(byte_vocab()), (ExtraToken(2**40, "x"),)), "beyond the largest"),
    "pattern": (lambda: Spec((Split("nope"),), BPE(byte_vocab())), "unknown split pattern"),
    "unicode": (lambda: Spec((Split("gpt2", "3.0"),), BPE(byte_vocab())), "no class tables"),
    "surrogate": (lambda: Spec((Split("gpt2", "\ud800"),), BPE(byte_vocab())), "does not belong"),
    "form": (lambda: Spec((subword.Normalize("NFX"),), BPE(byte_vocab())), "unknown normalization form"),  # type: ignore[arg-type]
    "template": (lambda: Spec((), BPE(byte_vocab()), template=Template((999, "A"))), "template.*no id 999"),
    "template twice": (
        lambda: Spec((), BPE(byte_vocab()), template=Template(("A", "A"))),
        r"Template.single must hold \"A\" once and no \"B\", not \['A', 'A'\]",
    ),
    "template with B": (lambda: Spec((), BPE(byte_vocab()), template=Template(("A", "B"))), 'no "B"'),
    "pair without B": (
        lambda: Spec((), BPE(byte_vocab()), template=Template(pair=("A", 5))),
        'Template.pair must hold "A" and "B" once each',
    ),
    "pair with A twice": (lambda: Spec((), BPE(byte_vocab()), template=Template(pair=("A", "A", "B"))), "once each"),
    "pair of no id": (
        lambda: Spec((), BPE(byte_vocab()), template=Template(pair=("A", 999, "B"))),
        "the template for two texts: .*no id 999",
    ),
    "priority": (lambda: Spec((), BPE(byte_vocab(), priority="odd")), "unknown priority"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", BAD_SPECS)
def test_bad_specs(name: str) -> None:
    make, words = BAD_SPECS[name]
    with pytest.raises((FormatError, SubwordValueError), match=words):
        Tokenizer(make())


def test_no_input_ends_in_a_panic(tok: Tokenizer) -> None:
    """Every text method on every odd input and long run: results, or a SubwordError."""
    runs = [unit * (60_000 // len(unit)) for unit in ("a", "^", "0", " ", "'s", "\n", "é", "\u0301", "A中", "<|end|>")]
    texts = [*TEXTS.values(), *BYTES.values(), *runs, b"\xff" * 60_000, b"\xf0\x9f" * 30_000]
    for text in texts:
        for call in (
            tok.encode,
            tok.encode_ordinary,
            tok.encode_to_numpy,
            tok.tokenize,
            tok.count,
            tok.find_special,
            lambda t: tok.truncate(t, 50),
            lambda t: tok.truncate(t, 50, "left"),
            lambda t: tok.encode_batch([t, t], threads=2),
        ):
            with contextlib.suppress(SpecialTokenError):
                call(text)
