"""Vocabularies without the bytes that UTF-8 never has: any `str` is encoded; bytes that hold one are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from format_specs import bpe, write_json
from texts import BYTES, TEXTS, every_category

import subword
from subword import BPE, ExtraToken, MatchTokens, Spec, Split, Tokenizer, Vocab, formats
from subword.byte_alphabet import NEVER_IN_UTF8
from subword.errors import FormatError, SubwordValueError, SubwordWarning
from subword.formats import gguf, native

END = ExtraToken(300, "<|end|>")


def without(missing: bytes, ignore_merges: bool = False) -> Spec:
    whole = bpe(ignore_merges=ignore_merges)
    entries = [(piece, id) for piece, id in whole.vocab.items() if piece not in [bytes([byte]) for byte in missing]]
    return Spec((MatchTokens(), Split("gpt2")), BPE(Vocab.of(entries), whole.merges, "merges", ignore_merges), (END,))


def both(spec: Spec) -> list[Tokenizer]:
    return [Tokenizer(spec), Tokenizer(spec, engine="reference")]


def test_they_are_the_bytes_that_no_character_has() -> None:
    used = {byte for point in range(0x11_0000) if not 0xD800 <= point < 0xE000 for byte in chr(point).encode()}
    assert set(range(256)) - used == set(NEVER_IN_UTF8)


@pytest.mark.parametrize("missing", [NEVER_IN_UTF8, b"\xc0", b"\xff\xf5"])
def test_every_str_has_the_ids_it_had(missing: bytes) -> None:
    whole = Tokenizer(without(b""))
    for tok in both(without(missing)):
        for text in [*TEXTS.values(), *every_category().values(), "the\ud800 \udfff"]:
            assert tok.encode_ordinary(text) == whole.encode_ordinary(text)
            assert tok.decode(tok.encode_ordinary(text)) == whole.decode(whole.encode_ordinary(text))


def test_bytes_without_a_missing_one_are_encoded_ill_formed_or_not() -> None:
    whole = Tokenizer(without(b""))
    for tok in both(without(NEVER_IN_UTF8)):
        for data in BYTES.values():
            if not set(data) & set(NEVER_IN_UTF8):
                assert tok.encode(data) == whole.encode(data)
                assert tok.decode_bytes(tok.encode(data)) == data


CALLS: dict[str, Callable[[Tokenizer, Any], Any]] = {
    "encode": lambda tok, text: tok.encode(text),
    "encode with a template": lambda tok, text: tok.encode(text, add_special_tokens=True),
    "encode_ordinary": lambda tok, text: tok.encode_ordinary(text),
    "encode_to_numpy": lambda tok, text: tok.encode_to_numpy(text),
    "count": lambda tok, text: tok.count(text),
    "fits": lambda tok, text: tok.fits(text, 3),
    "tokenize": lambda tok, text: tok.tokenize(text),
    "truncate": lambda tok, text: tok.truncate(text, 2),
    "truncate, left": lambda tok, text: tok.truncate(text, 2, side="left"),
    "chunk": lambda tok, text: tok.chunk(text, 4),
    "chunk with an overlap": lambda tok, text: tok.chunk(text, 4, 2),
}
BATCHES: dict[str, Callable[[Tokenizer, Any], Any]] = {
    "encode_batch": lambda tok, texts: tok.encode_batch(texts, threads=2),
    "encode_batch_to_numpy": lambda tok, texts: tok.encode_batch_to_numpy(texts),
    "count_batch": lambda tok, texts: tok.count_batch(texts),
}


@pytest.mark.parametrize("engine", ["core", "reference"])
@pytest.mark.parametrize("name", CALLS)
def test_every_call_names_the_byte_and_its_place(name: str, engine: Any) -> None:
    tok = Tokenizer(without(NEVER_IN_UTF8), engine=engine)
    for byte in NEVER_IN_UTF8:
        data = b"the \x80 the the the " + bytes([byte]) + b" the \xff"
        for text in (data, bytearray(data), memoryview(data)):
            with pytest.raises(SubwordValueError, match=rf"^byte 18 of the text is 0x{byte:02X}.* no entry"):
                CALLS[name](tok, text)


@pytest.mark.parametrize("engine", ["core", "reference"])
@pytest.mark.parametrize("name", BATCHES)
def test_batches_name_the_text(name: str, engine: Any) -> None:
    tok = Tokenizer(without(NEVER_IN_UTF8), engine=engine)
    with pytest.raises(SubwordValueError, match=r"^text 2 of the batch: byte 1 of the text is 0xC0"):
        BATCHES[name](tok, ["a", b"\x80", b"a\xc0", b"\xff"])


def test_the_error_says_what_to_do() -> None:
    tok = Tokenizer(without(NEVER_IN_UTF8))
    with pytest.raises(SubwordValueError, match=r'decode the text .* or with errors="replace", and pass the str'):
        tok.encode(b"\xff")
    assert tok.encode(b"\xff".decode(errors="replace"))


@pytest.mark.parametrize("engine", ["core", "reference"])
def test_finding_specials_and_decoding_are_not_concerned(engine: Any) -> None:
    tok = Tokenizer(without(NEVER_IN_UTF8), engine=engine)
    assert tok.find_special(b"\xff<|end|>") == [(1, 8, 300)]
    assert tok.decode_bytes([300]) == b"<|end|>"


@pytest.mark.parametrize("missing", [b"\x00", b"A", b"\xbf", b"\xc2", b"\xf4", NEVER_IN_UTF8 + b"\x80"])
def test_other_bytes_must_be_there(missing: bytes) -> None:
    for engine in ("core", "reference"):
        with pytest.raises(FormatError, match="needs an entry for each byte that UTF-8 has"):
            Tokenizer(without(missing), engine=engine)  # type: ignore[arg-type]


@pytest.mark.parametrize("priority", ["merges", "rank"])
@pytest.mark.parametrize("ignore_merges", [False, True])
def test_entries_that_hold_a_missing_byte_harm_nothing(priority: Any, ignore_merges: bool) -> None:
    """No text can give them, and the proof at load does not trip over them."""
    entries = [(bytes([byte]), byte) for byte in range(256) if byte not in NEVER_IN_UTF8]
    entries += [(b"ab", 256), (b"\xff\xff", 257), (b"a\xc0", 258), (b"\xff\xff\xff", 259), (b"abc", 260)]
    ids = dict(entries)
    pairs = [(97, 98), (256, 99)] if priority == "merges" else []
    merges = np.array(pairs, dtype=np.uint32).reshape(-1, 2)
    spec = Spec((Split("none"),), BPE(Vocab.of(entries), merges, priority, ignore_merges))
    for tok in both(spec):
        for text in ("abc", "ab" * 60 + "c", "abcab" * 100):
            assert tok.decode(tok.encode(text)) == text
        assert tok.encode("xabc") == [ids[b"x"], 260]
        assert tok.decode_bytes([259]) == b"\xff\xff\xff"
        with pytest.raises(SubwordValueError, match="byte 0 of the text is 0xFF"):
            tok.encode(b"\xff\xff")


def test_plan_names_the_bytes() -> None:
    rows = {step: why for step, _, why in Tokenizer(without(b"\xc0\xff")).plan()}
    assert rows["bytes that are not UTF-8"] == "the vocabulary has no entry for 0xC0, 0xFF, which UTF-8 never has"
    assert "bytes that are not UTF-8" not in {step for step, _, _ in Tokenizer(without(b"")).plan()}


def test_files_keep_them_missing() -> None:
    hf = pytest.importorskip("tokenizers")
    spec = without(NEVER_IN_UTF8)
    data = write_json(spec)
    assert formats.read(data) == formats.read(native.write(spec)) == spec
    theirs, ours = hf.Tokenizer.from_str(data.decode()), subword.Tokenizer(spec)
    for text in TEXTS.values():
        assert ours.encode(text, allowed_special="all") == theirs.encode(text).ids


def test_gguf_files_without_other_bytes_drop_these_from_text() -> None:
    """As tokenizers does with the same vocabulary."""
    hf = pytest.importorskip("tokenizers")
    with pytest.warns(SubwordWarning, match="no entry for the bytes 0x04, 0xF1: they are dropped from text"):
        spec = gguf.read(gguf.write(without(b"\x04\xf1")), "a.gguf")
    ours = Tokenizer(spec)
    theirs = hf.Tokenizer.from_str(write_json(spec).decode())
    for text in [*TEXTS.values(), "t\x04he", "\x04", "\U00050000the"]:
        assert ours.encode(text, allowed_special="all") == theirs.encode(text).ids
        assert Tokenizer(spec, engine="reference").encode(text, allowed_special="all") == theirs.encode(text).ids
    assert ours.decode(ours.encode("t\x04he end")) == "the end"
