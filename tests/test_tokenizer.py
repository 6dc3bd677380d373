"""The public face: its methods as described, threads and processes, pickling, streams, interruption."""

from __future__ import annotations

import concurrent.futures
import copy
import mmap
import multiprocessing
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from texts import BYTES, TEXTS, every_category, glued
from vocabularies import byte_vocab

import subword
from subword import (
    BPE,
    ExtraToken,
    Spec,
    SpecialTokenError,
    Split,
    SubwordValueError,
    Template,
    Tokenizer,
    UnknownTokenError,
    Vocab,
)
from subword.special import FIM_TOKENS, Fim


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return subword.train(
        list(TEXTS.values()), vocab_size=700, special_tokens=["<|endoftext|>", "<|end|>"], bos_token="<s>"
    )


# ======================== what it is ========================


def test_vocabulary(tok: Tokenizer) -> None:
    assert tok.n_vocab == len(tok.vocab) == 700
    assert tok.special_tokens == {"<|endoftext|>": 697, "<|end|>": 698, "<s>": 699}
    assert all(
        tok.vocab[token] == tok.token_id(token) and tok.token_bytes(tok.vocab[token]) == token for token in tok.vocab
    )
    assert b"<|end|>" in tok.vocab and b"no such token" not in tok.vocab and len(list(tok.vocab)) == 700
    assert tok.token_piece(tok.token_id(b" ")) == "Ġ" and tok.token_piece(698) == "<|end|>"
    assert (tok.bos_id, tok.eos_id, tok.pad_id, tok.unk_id) == (699, None, None, None)
    assert repr(tok).startswith("<Tokenizer: BPE, 700 entries, 3 special, ")


def test_ids_may_have_holes() -> None:
    entries = [(bytes([byte]), byte * 3) for byte in range(256)] + [(b"ab", 2000)]
    tok = Tokenizer(Spec((Split("none"),), BPE(Vocab.of(entries), priority="rank"), (ExtraToken(1500, "<x>"),)))
    assert tok.n_vocab == 2001 and len(tok.vocab) == 258
    assert tok.encode("abc") == [2000, 99 * 3]
    with pytest.raises(UnknownTokenError, match="position 1 of the ids: the vocabulary has no id 1: it is a hole"):
        tok.decode([0, 1])


def test_equal_by_content(tok: Tokenizer) -> None:
    same = subword.train(
        list(TEXTS.values()), vocab_size=700, special_tokens=["<|endoftext|>", "<|end|>"], bos_token="<s>"
    )
    assert (
        same == tok and hash(same) == hash(tok) and same.fingerprint == tok.fingerprint and len(tok.fingerprint) == 64
    )
    spec = tok.spec
    for other in (
        spec.replace(stages=spec.stages[1:]),
        spec.replace(stages=(Split("gpt2"),)),
        spec.replace(extra=spec.extra[1:], template=Template()),
        spec.replace(template=Template()),
        spec.replace(model=BPE(spec.model.vocab, spec.model.merges[:-1])),
        spec.replace(model=BPE(spec.model.vocab, spec.model.merges, ignore_merges=True)),
    ):
        assert Tokenizer(other) != tok
    assert Tokenizer(spec.replace(roles={}, notes={})) == tok
    assert tok != "tok"


@pytest.mark.parametrize("names", FIM_TOKENS, ids=lambda names: names.prefix)
def test_fim_puts_the_tokens_of_the_family_around_the_texts(tok: Tokenizer, names: Fim) -> None:
    more = tok.with_tokens(special=[names.middle, names.prefix, names.suffix])
    prefix, suffix, middle = (more.token_id(token) for token in names)
    before, after = more.encode("def f(a, b):\n    "), more.encode("\n")
    assert more.fim("def f(a, b):\n    ", "\n") == [prefix, *before, suffix, *after, middle]
    assert more.fim("def f(a, b):\n    ", "\n", order="spm") == [prefix, suffix, *after, middle, *before]
    with pytest.raises(SpecialTokenError):
        more.fim(f"x = '{names.suffix}'", "")
    assert suffix not in more.fim(f"x = '{names.suffix}'", "", disallowed_special=())[1:-2]


def test_with_tokens_keeps_every_id(tok: Tokenizer) -> None:
    more = tok.with_tokens(
        special=["<|x|>"], added=["foo", ExtraToken(0, "bar", "added", single_word=True)], reserved=2
    )
    assert more.special_tokens == {**tok.special_tokens, "<|x|>": 700, "<|reserved_0|>": 703, "<|reserved_1|>": 704}
    assert more.encode("foo bar bars") == [701, 32, 702, *tok.encode(" bars")]
    for text in TEXTS.values():
        if "foo" not in text and "bar" not in text:
            assert more.encode_ordinary(text) == tok.encode_ordinary(text)
    assert more.with_tokens(reserved=1).special_tokens["<|reserved_2|>"] == 705
    assert more.spec.extra[: len(tok.spec.extra)] == tok.spec.extra and tok.n_vocab == 700
    plain = subword.train(["ab"], vocab_size=257).with_tokens(special=["<s>"])
    assert plain.encode("a<s>", allowed_special="all") == [97, 257]


# ======================== special tokens ========================


def test_special_tokens_by_policy(tok: Tokenizer) -> None:
    text = "a<|end|>b<|endoftext|>"
    end, endoftext = 698, 697
    ordinary = tok.encode_ordinary(text)
    assert end not in ordinary and tok.decode(ordinary) == text
    assert tok.encode(text, disallowed_special=()) == ordinary
    assert tok.encode(text, allowed_special="all") == [97, end, 98, endoftext]
    with pytest.raises(SpecialTokenError, match=r"'?\"?<\|endoftext\|>\"?'? at character 9"):
        tok.encode(text, allowed_special={"<|end|>"})
    taken = tok.encode(text, allowed_special={"<|end|>"}, disallowed_special=())
    assert taken[:3] == [97, end, 98] and endoftext not in taken
    with pytest.raises(SpecialTokenError, match="encode_ordinary"):
        tok.encode("b", disallowed_special={"b"})
    assert tok.find_special("é" + text) == [(2, 9, end), (10, 23, endoftext)]


@pytest.mark.parametrize("method", ["encode", "encode_to_numpy", "tokenize", "count"])
def test_the_policy_is_the_same_everywhere(tok: Tokenizer, method: str) -> None:
    call = getattr(tok, method)
    with pytest.raises(SpecialTokenError):
        call("a<|end|>")
    assert count_of(call("a<|end|>", allowed_special="all")) == 2
    assert count_of(call("a<|end|>", disallowed_special=())) == len(tok.encode_ordinary("a<|end|>"))
    assert count_of(call("a<|end|>", allowed_special="all", add_special_tokens=True)) == 3


def count_of(result: Any) -> int:
    return result if isinstance(result, int) else len(result)


def test_longest_special_token_whatever_the_order() -> None:
    base = subword.train(["ab"], vocab_size=257)
    for order in (["<a", "<a>", "<a>b"], ["<a>b", "<a>", "<a"]):
        tok = base.with_tokens(special=order)
        assert [tok.token_bytes(id) for id in tok.encode("<a>b<a><a", allowed_special="all")] == [
            b"<a>b",
            b"<a>",
            b"<a",
        ]


# ======================== decoding ========================


def test_decode(tok: Tokenizer) -> None:
    ids = tok.encode("héllo<|end|>", allowed_special="all", add_special_tokens=True)
    assert tok.decode(ids) == "<s>héllo<|end|>" and tok.decode(ids, skip_special_tokens=True) == "héllo"
    for form in (
        tuple(ids),
        np.array(ids),
        np.array(ids, dtype=np.uint32),
        iter(ids),
        np.array(ids, dtype=np.uint32)[::-1][::-1],
    ):
        assert tok.decode(form) == "<s>héllo<|end|>"
    assert tok.decode([]) == "" and tok.decode_batch([[], ids, ids], threads=2)[1:] == ["<s>héllo<|end|>"] * 2
    for text in ("x != y", "a .", "do n't , no", " lead", "\ttab\r\n"):
        assert tok.decode(tok.encode(text)) == text
    part = tok.encode("é")[:1] if len(tok.encode("é")) > 1 else [tok.token_id(b"\xc3")]
    assert tok.decode(part) == "\ufffd" and tok.decode(part, errors="ignore") == ""


def test_every_id_decodes_or_is_named(tok: Tokenizer) -> None:
    for id in range(tok.n_vocab):
        assert tok.decode_bytes([id]) == tok.token_bytes(id)
    for id in range(tok.n_vocab, tok.n_vocab + 5):
        with pytest.raises(KeyError, match=f"position 2 of the ids: the vocabulary has no id {id}: the largest is 699"):
            tok.decode([0, 1, id])


def test_streams_concatenate_to_the_whole(tok: Tokenizer) -> None:
    rng = random.Random(1)
    tokens = list(tok.spec.model.vocab.pieces)
    texts: list[bytes] = [
        *(t.encode() for t in TEXTS.values()),
        *BYTES.values(),
        *(t.encode() for t in every_category().values()),
    ]
    texts += [glued(tokens, 12, rng) for _ in range(200)]
    for errors in ("replace", "ignore", "backslashreplace"):
        for data in texts:
            ids = tok.encode_ordinary(data)
            rng.shuffle(ids) if rng.random() < 0.3 else None
            stream = tok.stream_decoder(errors)
            parts, at = [], 0
            while at < len(ids):
                step = rng.randint(1, 3)
                parts.append(stream.feed(ids[at] if step == 1 else ids[at : at + step]))
                at += step
            assert "".join(parts) + stream.finish() == tok.decode(ids, errors=errors)


def test_a_stream_gives_text_as_soon_as_it_is_certain() -> None:
    tok = subword.train(["ab"], vocab_size=257)
    stream = tok.stream_decoder()
    assert [stream.feed(byte) for byte in "é😀x".encode()] == ["", "é", "", "", "", "😀", "x"]
    assert [stream.feed(byte) for byte in (0xF0, 0x9F, 0x41)] == ["", "", "\ufffdA"]
    assert stream.feed([0xE4]) == "" and stream.finish() == "\ufffd" and stream.feed([97]) == "a"
    with pytest.raises(UnknownTokenError):
        stream.feed([5000])
    with pytest.raises(SubwordValueError, match="well-formed"):
        tok.stream_decoder("strict").feed([0xFF])


def test_streams_of_any_ids_in_any_portions(tok: Tokenizer) -> None:
    """Random ids, mostly of parts of characters, special ones among them; a pickled stream goes on where it was."""
    rng = random.Random(3)
    parts = [tok.token_id(bytes([byte])) for byte in (*range(0x80, 0x100), 0x41)]
    for round in range(1_500):
        errors = ("strict", "replace", "ignore", "backslashreplace", "surrogateescape")[round % 5]
        skip = rng.random() < 0.5
        pool = [rng.randrange(tok.n_vocab), rng.randrange(697, 700), *rng.choices(parts, k=6), *tok.encode("é😀中")]
        ids = rng.choices(pool, k=rng.randint(0, 12))
        stream, text, at = tok.stream_decoder(errors, skip), "", 0
        try:
            while at < len(ids):
                step = rng.randint(0, 4)
                text += stream.feed(np.array(ids[at : at + step], dtype=np.uint32))
                at += step
                stream = pickle.loads(pickle.dumps(stream)) if rng.random() < 0.2 else stream
            text += stream.finish()
        except SubwordValueError:
            with pytest.raises(SubwordValueError):
                tok.decode(ids, errors, skip)
            assert errors == "strict" and stream.feed(tok.encode("é")) + stream.finish() == "é"  # a fresh start
            continue
        assert text == tok.decode(ids, errors, skip), (ids, errors, skip)
        assert stream.finish() == ""


# ======================== buffers ========================


def test_any_buffer_of_bytes_is_a_text(tok: Tokenizer, tmp_path: Path) -> None:
    data = "héllo wörld, 中文 ".encode() * 50
    file = tmp_path / "text"
    file.write_bytes(data)
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        buffers: list[Any] = [bytearray(data), memoryview(data), np.frombuffer(data, np.uint8), mapped]
        buffers += [memoryview(data)[::1], np.frombuffer(data, np.int8)]
        for buffer in buffers:
            same = bytes(buffer)
            assert tok.encode(buffer) == tok.encode(same) and tok.count_batch([buffer]) == [tok.count(same)]
            assert tok.tokenize(buffer).text == same and tok.truncate(buffer, 7) == tok.truncate(same, 7)
            assert tok.chunk(buffer, 9) == tok.chunk(same, 9) and tok.find_special(buffer) == []
    with pytest.raises(SubwordValueError, match="mmap cannot be read as a text: mmap closed"):
        tok.encode(mapped)  # type: ignore[arg-type]


def test_buffers_with_gaps_are_read_item_by_item(tok: Tokenizer) -> None:
    data = bytes(range(32, 127)) * 20
    for step in (2, 3, -1, -2):
        apart = memoryview(data)[::step]
        assert tok.encode(apart) == tok.encode(data[::step]) and tok.tokenize(apart).text == data[::step]
        assert tok.truncate(apart, 5, "left") == tok.truncate(data[::step], 5, "left")
        assert tok.encode(np.frombuffer(data, np.uint8)[::step]) == tok.encode(data[::step])  # type: ignore[arg-type]
    ids = np.arange(690, dtype=np.uint32)
    for step in (2, -1):
        assert tok.decode_bytes(ids[::step]) == tok.decode_bytes(ids[::step].tolist())


def test_a_bytearray_may_grow_and_shrink_meanwhile(tok: Tokenizer) -> None:
    """It is copied before the GIL is released, so no call holds it, and each sees it as it was at one moment."""
    text = bytearray(b"the quick brown fox " * 1_000)
    states = {20 * 1_000: tok.encode(bytes(text)), 0: []}
    done = threading.Event()

    def resize() -> None:
        while not done.is_set():
            text.clear()
            time.sleep(0)
            text.extend(b"the quick brown fox " * 1_000)  # raises a BufferError while anyone holds it

    thread = threading.Thread(target=resize)
    thread.start()
    try:
        for _ in range(200):
            assert tok.encode(text) in states.values()
            encoding = tok.tokenize(text)
            assert encoding.ids.tolist() == states[len(encoding.text)]
            assert len(tok.truncate(text, 50)) in (0, len(tok.truncate(b"the quick brown fox " * 50, 50)))
    finally:
        done.set()
        thread.join()


# ======================== threads and processes ========================


def work(tok: Tokenizer, seed: int) -> list[list[int]]:
    rng = random.Random(seed)
    texts = rng.sample(list(TEXTS.values()), 40)
    return tok.encode_batch(texts, disallowed_special=(), threads=2) + [tok.encode_ordinary(text) for text in texts]


def test_sixteen_threads_share_one(tok: Tokenizer) -> None:
    expected = [work(tok, seed) for seed in range(16)]
    fresh = pickle.loads(pickle.dumps(tok))
    for _ in range(3):
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            assert list(pool.map(lambda seed: work(fresh, seed), range(16))) == expected


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_processes(tok: Tokenizer, method: str) -> None:
    expected = [work(tok, seed) for seed in range(4)]
    context = multiprocessing.get_context(method)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        assert list(pool.map(work, [tok] * 4, range(4), timeout=60)) == expected


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork_after_use(tok: Tokenizer) -> None:
    """Encode in the parent, fork, encode in the child: bug class of thread pools that do not survive a fork."""
    expected = work(tok, 1)
    context = multiprocessing.get_context("fork")
    child = context.Process(target=lambda: sys.exit(0 if work(tok, 1) == expected else 3))
    child.start()
    child.join(30)
    assert child.exitcode == 0


def test_pickle_and_copy(tok: Tokenizer) -> None:
    for other in (pickle.loads(pickle.dumps(tok)), copy.copy(tok), copy.deepcopy(tok)):
        assert other == tok and other.encode("héllo wörld") == tok.encode("héllo wörld")
        assert other.training == tok.training
    slow = Tokenizer(tok.spec, engine="reference")
    assert pickle.loads(pickle.dumps(slow)).plan() == slow.plan() != tok.plan()
    assert slow == tok


def test_nothing_of_a_tokenizer_can_be_changed(tok: Tokenizer) -> None:
    before = tok.fingerprint
    tok.special_tokens.clear()
    assert tok.training is not None
    tok.training.clear()
    assert len(tok.special_tokens) == 3 and tok.training
    merges = np.array([[97, 98]])
    model = BPE(byte_vocab((b"ab", 256)), merges)
    merges[0, 0] = 5
    assert model.merges.tolist() == [[97, 98]] and merges.flags.writeable
    copies = [copy.deepcopy(tok.spec), pickle.loads(pickle.dumps(tok.spec)), tok.spec.replace(), tok.spec]
    for spec in (*copies, Spec((), model), Spec.from_outline(tok.spec.outline(), tok.spec.buffers())):
        for array in (spec.model.vocab.ids, spec.model.merges, spec.model.vocab.pieces.offsets):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1
    assert all(spec == tok.spec and spec.fingerprint == before for spec in copies)
    given: dict[str, Any] = {"by": "me"}
    noted = tok.spec.replace(notes=given, roles={"eos": 698})
    given["by"] = "you"
    for spec in (noted, copy.copy(noted), copy.deepcopy(noted), pickle.loads(pickle.dumps(noted)), noted.replace()):
        assert (spec.roles, spec.notes) == ({"eos": 698}, {"by": "me"})
        for mapping in (spec.roles, spec.notes):
            with pytest.raises(TypeError, match="does not support item assignment"):
                mapping["eos"] = 1  # type: ignore[index]


@pytest.mark.parametrize("content", ["<|a|>", "<|ä|>"])
def test_an_extra_token_of_no_kind_is_refused(content: str) -> None:
    with pytest.raises(SubwordValueError, match=r"ExtraToken\.kind"):
        ExtraToken(300, content, "bogus")  # type: ignore[arg-type]


def test_tens_of_thousands_of_extra_tokens(tmp_path: Path) -> None:
    """Some of these steps grew with the square of their number."""
    names = [f"<|{number}|>" for number in range(50_000)]
    tok = subword.train(["hello world"], vocab_size=20_260, special_tokens=names[:20_000]).with_tokens(names[20_000:])
    tok.save(tmp_path / "x.subword")
    tok = subword.load(tmp_path / "x.subword")
    text = "hello<|7|><|49999|>"
    with pytest.raises(SpecialTokenError):
        tok.encode(text)
    for allowed in ("all", names, frozenset(names), set(names)):
        assert tok.decode(tok.encode(text, allowed_special=allowed)[-2:]) == "<|7|><|49999|>"
    assert len(tok.vocab) == tok.n_vocab and [tok.token_id(name) for name in names] == list(tok.special_tokens.values())
    for _ in range(300):  # each from the same automaton
        assert tok.find_special(text) == [(5, 10, tok.token_id("<|7|>")), (10, 19, tok.token_id("<|49999|>"))]


def test_very_long_entries(tmp_path: Path) -> None:
    rng = random.Random(1)
    odd = rng.randbytes(1 << 20)
    spec = Spec((), BPE(byte_vocab((odd, 256)), priority="rank"))
    tok = Tokenizer(spec)
    assert len(tok.encode(odd)) == len(odd)  # nothing leads there
    assert "1 of 257 entries do not encode to themselves" in str(tok.plan()) and len(str(tok.plan())) < 2_000
    pieces, merges = [b"ab"], [(97, 98)]
    while len(pieces[-1]) < 1 << 19:
        merges.append((255 + len(pieces), 255 + len(pieces)))
        pieces.append(pieces[-1] * 2)
    vocab = byte_vocab(*((piece, 256 + at) for at, piece in enumerate(pieces)))
    for model in (BPE(vocab, np.array(merges)), BPE(vocab, priority="rank")):
        Tokenizer(Spec((), model)).save(tmp_path / "x.subword")
        tok = subword.load(tmp_path / "x.subword")
        assert {row[0]: row[1] for row in tok.plan()}["long piece"] == "one pass over its bytes"
        for at, piece in enumerate(pieces):
            assert tok.encode(piece) == [256 + at]
        assert tok.encode(b"b" + pieces[-1] + pieces[3] + b"a") == [98, 255 + len(pieces), 259, 97]
        assert tok.encode(pieces[-2] + pieces[-3] + b"ab")[-3:] == [254 + len(pieces), 253 + len(pieces), 256]


def test_limits_with_a_vocabulary_too_large_for_one_pass() -> None:
    huge = random.Random(2).randbytes(1 << 24)
    tok = Tokenizer(Spec((Split("gpt2"),), BPE(byte_vocab((huge, 256)), priority="rank")))
    text = "hello world " * 1_000
    assert tok.truncate(text, 5_000) == text[:5_000] and tok.truncate(text, 5_000, "left") == text[-5_000:]


def test_the_gil_is_released(tok: Tokenizer) -> None:
    """While one thread encodes a long text, another must get to run Python."""
    text = "The quick brown fox. " * 400_000
    ticks = []
    thread = threading.Thread(target=tok.encode_to_numpy, args=(text,))
    thread.start()
    while thread.is_alive():
        ticks.append(None)
        time.sleep(0.001)
    assert len(ticks) > 5


CTRL_C = """
import os, signal, sys, threading, time, subword
signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background starts with SIGINT ignored
tok = subword.train(["the quick brown fox " * 100], vocab_size=270)
letters = {ord(digit): chr(ord("g") + int(digit)) for digit in "0123456789"}
words = " ".join(f"{n**7 % (2**64 - 59):x}" for n in range(200_000)).translate(letters)
calls = {
    "encode": lambda: tok.encode_to_numpy(b"the quick brown fox " * 30_000_000),
    "batch": lambda: tok.count_batch([b"the quick brown fox " * 3_000_000] * 200, threads=2),
    "small texts": lambda: tok.count_batch([b"the quick brown fox " * 10] * 6_000_000, threads=1),
    "waves": lambda: tok.count_batch(["the “quick” brown fox " * 3_000] * 20_000, threads=1),
    "waves for two": lambda: tok.count_batch(["the “quick” brown fox " * 3_000] * 20_000, threads=2),
    "train": lambda: subword.train([words], vocab_size=3_000_000),
}
threading.Timer(0.7, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
began = time.monotonic()
try:
    calls[sys.argv[1]]()
except KeyboardInterrupt:
    print("stopped")
"""


@pytest.mark.parametrize("call", ["encode", "batch", "small texts", "waves", "waves for two", "train"])
def test_ctrl_c_is_answered(call: str) -> None:
    done = subprocess.run([sys.executable, "-c", CTRL_C, call], capture_output=True, text=True, timeout=120)
    assert done.stdout == "stopped\n", done.stderr


def test_an_encoding_can_be_looked_at(tok: Tokenizer) -> None:
    encoding = tok.tokenize("a <b>\n")
    assert str(encoding).replace("│", "") == "a␣<b>↵\n"
    assert (
        repr(encoding).startswith("Encoding(")
        and "title=" in encoding._repr_html_()
        and "&lt;" in encoding._repr_html_()
    )
    assert list(encoding) == tok.encode("a <b>\n") and encoding == tok.tokenize("a <b>\n") != tok.tokenize("a")
