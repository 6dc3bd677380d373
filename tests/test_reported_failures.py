"""Failures that users of other libraries reported, each as a test with the right value."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from format_specs import bpe, changed, spec_of, write_json

import subword
from subword import BPE, ExtraToken, Normalize, Spec, Split, SplitRegex, Tokenizer, Vocab, _core, formats
from subword.errors import FormatError, SubwordValueError, SubwordWarning, UnknownTokenError
from subword.formats import native
from subword.patterns import PATTERNS

ENGINES: Any = ("core", "reference")
FORMATS = ("x.subword", "x.json")

# ======================== special tokens that swallow white space ========================

SWALLOWING = spec_of(
    ExtraToken(260, "<s>", lstrip=True, rstrip=True),
    ExtraToken(261, "<e>", lstrip=True, rstrip=True),
    ExtraToken(262, "<l>", lstrip=True),
    ExtraToken(263, "<r>", "added", rstrip=True),
)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("text", "spans", "decoded"),
    [
        ("   <s> <e>   ", [(0, 7), (7, 13)], "<s><e>"),
        ("a  <s>  t", [(0, 1), (1, 8), (8, 9)], "a<s>t"),
        ("the <l> the", [(0, 3), (3, 7), (7, 11)], "the<l> the"),
        ("the <r> the", [(0, 3), (3, 4), (4, 8), (8, 11)], "the <r>the"),
        (" \u3000<s>\n\té", [(0, 7), (7, 8), (7, 8)], "<s>é"),
        ("<r>  <l>", [(0, 5), (5, 8)], "<r><l>"),
        ("<s><s>", [(0, 3), (3, 6)], "<s><s>"),
        ("é <s> é", [(0, 1), (0, 1), (1, 6), (6, 7), (6, 7)], "é<s>é"),
    ],
)
def test_swallowed_white_space_belongs_to_the_token(text: str, spans: Any, decoded: str, engine: Any) -> None:
    """In its span; decoding gives the token alone. Ids and spans are those of tokenizers."""
    tok = Tokenizer(SWALLOWING, engine=engine)
    encoding = tok.tokenize(text, allowed_special="all")
    assert list(map(tuple, encoding.char_spans.tolist())) == spans
    assert tok.decode(encoding.ids) == decoded
    hf = pytest.importorskip("tokenizers")
    theirs = hf.Tokenizer.from_str(write_json(SWALLOWING).decode()).encode(text)
    assert (encoding.ids.tolist(), spans) == (theirs.ids, theirs.offsets)


# ======================== whole pieces that ignore the merges ========================


@pytest.mark.parametrize("engine", ENGINES)
def test_pieces_taken_whole_have_their_spans(engine: Any) -> None:
    """Of entries that no merge makes."""
    words = [b"are", b" you", b" ok"]
    entries = [*((bytes([byte]), byte) for byte in range(256)), *((word, 256 + at) for at, word in enumerate(words))]
    spec = Spec((Split("gpt2"),), BPE(Vocab.of(entries), ignore_merges=True))
    encoding = Tokenizer(spec, engine=engine).tokenize("are you ok?")
    assert encoding.ids.tolist() == [256, 257, 258, 63]
    assert encoding.char_spans.tolist() == encoding.byte_spans.tolist() == [[0, 3], [3, 7], [7, 10], [10, 11]]
    hf = pytest.importorskip("tokenizers")
    theirs = hf.Tokenizer.from_str(write_json(spec).decode()).encode("are you ok?")
    assert (theirs.ids, theirs.offsets) == ([256, 257, 258, 63], [(0, 3), (3, 7), (7, 10), (10, 11)])


# ======================== files ========================


def test_merges_across_spaces_are_saved_as_pairs(tmp_path: Path) -> None:
    """Learned without a split pattern. A bad one is named by its place in the file."""
    text = "to be or not to be\nto be or not to be\n"
    tok = subword.train([text] * 3, vocab_size=268, pattern="none")
    assert any(b" " in piece[1:-1] for piece in tok.vocab)
    for name in FORMATS:
        loaded = subword.load(tok.save(tmp_path / name))
        assert loaded == tok and loaded.encode(text) == tok.encode(text)
    root = json.loads((tmp_path / "x.json").read_text("utf-8"))
    assert all(len(pair) == 2 for pair in root["model"]["merges"])
    hf = pytest.importorskip("tokenizers")
    assert hf.Tokenizer.from_file(str(tmp_path / "x.json")).encode(text).ids == tok.encode(text)
    with pytest.raises(FormatError, match=r"^x.json: model.merges\[4\]: 'Ġnone' is not a token of model.vocab"):
        formats.read(json.dumps(changed(root, ("model.merges.4", ["Ġnone", "t"]))).encode(), "x.json")


@pytest.mark.parametrize(
    "separator", ["\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
)
def test_line_separators_in_tokens_survive_every_format(separator: str, tmp_path: Path) -> None:
    data = separator.encode()
    model = bpe([*((data[:size], data[size : size + 1]) for size in range(1, len(data))), (b"a", data)])
    spec = spec_of(
        ExtraToken(300, f"<x{separator}>"), ExtraToken(301, separator * 2), model=model, stages=(Split("none"),)
    )
    tok = Tokenizer(spec)
    text = f"a{separator}b<x{separator}>{separator * 2}"
    ids = tok.encode(text, allowed_special="all")
    assert tok.decode(ids) == text and 301 in ids and 300 in ids
    assert tok.token_id(b"a" + data) in ids
    for name in FORMATS:
        loaded = subword.load(tok.save(tmp_path / name))
        assert loaded == tok and loaded.encode(text, allowed_special="all") == ids
    for format in ("tiktoken", "vocab+merges"):
        with pytest.warns(SubwordWarning, match="load it with pattern='none'"):
            saved = tok.save(tmp_path / format, format)
        loaded = subword.load(saved, pattern="none", special_tokens=tok.special_tokens)
        assert loaded.encode(text, allowed_special="all") == ids
    with pytest.raises(SubwordValueError, match="a minbpe file cannot hold the special token"):
        tok.save(tmp_path / "minbpe", "minbpe")
    hf = pytest.importorskip("tokenizers")
    assert hf.Tokenizer.from_file(str(tmp_path / "x.json")).encode(text).ids == ids


LEFT_OUT: Any = {"pattern": "none", "special_tokens": {}}
"""Arguments of `load` for a file that says neither."""


@pytest.mark.filterwarnings("ignore:.*load it with pattern=:subword.SubwordWarning")
def test_accented_words_keep_their_ids_in_every_format(tmp_path: Path) -> None:
    """Those of the Latin-1 supplement, in the converted file, by the libraries that read it."""
    words = [f"{chr(point)}af{chr(point).lower()} {chr(point)}{chr(point)}s" for point in range(0xA0, 0x100)]
    tok = subword.train(words * 2, vocab_size=420, pattern="cl100k")
    tok.save(tmp_path / "a.subword")
    texts = [*words, *(f" {word}" for word in words), *(f"x {word}é" for word in words), " Café"]
    for format in ("native", "tokenizer.json", "tiktoken", "vocab+merges", "minbpe"):
        formats.convert(tmp_path / "a.subword", tmp_path / format, format)
        given: Any = LEFT_OUT | {"pattern": "cl100k"} if format in ("tiktoken", "vocab+merges") else {}
        loaded = subword.load(tmp_path / format, **given)
        assert [loaded.encode(text) for text in texts] == [tok.encode(text) for text in texts], format
    hf, tiktoken = pytest.importorskip("tokenizers"), pytest.importorskip("tiktoken")
    theirs = hf.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    ranks = dict(tok.vocab)
    other = tiktoken.Encoding("x", pat_str=PATTERNS["cl100k"].regex, mergeable_ranks=ranks, special_tokens={})
    for text in texts:
        assert theirs.encode(text).ids == other.encode(text) == tok.encode(text), text


@pytest.mark.filterwarnings("ignore:.*load it with pattern=:subword.SubwordWarning")
def test_a_nul_is_a_byte_like_others(tmp_path: Path) -> None:
    """Learned from, in tokens, in special tokens, and in every file."""
    tok = subword.train(["a\x00b\x00\x00"] * 9, vocab_size=261, pattern="none", special_tokens=["<\x00>"])
    assert b"\x00\x00" in tok.vocab and b"a\x00b" in tok.vocab
    text = "a\x00b\x00\x00\x00<\x00>\x00"
    ids = tok.encode(text, allowed_special="all")
    assert tok.decode(ids) == text and tok.special_tokens["<\x00>"] in ids
    for format in ("native", "tokenizer.json", "tiktoken", "vocab+merges", "minbpe"):
        given: Any = LEFT_OUT | {"special_tokens": tok.special_tokens} if format in ("tiktoken", "vocab+merges") else {}
        loaded = subword.load(tok.save(tmp_path / format, format), **given)
        assert loaded.encode(text, allowed_special="all") == ids


def test_what_cannot_be_saved_cannot_be_put_in() -> None:
    """A function of one's own: refused when it is given, with what there is instead."""
    for changes in ({"stages": (str.split,)}, {"extra": (str.split,)}, {"model": str.split}, {"decode": str.split}):
        with pytest.raises(SubwordValueError, match=r"must (hold|be)"):
            BACK.spec.replace(**changes)
    with pytest.raises(SubwordValueError, match=r"SplitPunctuation.*, not <method 'split'"):
        BACK.spec.replace(stages=(str.split,))
    with pytest.raises(SubwordValueError, match="JSON"):
        native.write(BACK.spec.replace(notes={"by": str.split}))


def three_of_each_kind() -> list[ExtraToken]:
    """With flags that differ, and with contents that files are known to lose."""
    contents = [
        ("special", "<|a|>"),
        ("special", "a b"),
        ("special", "é\n"),
        ("added", "rw"),
        ("added", "x y"),
        ("added", "中"),
    ]
    contents += [("unmatchable", "<0 x>"), ("unmatchable", "▁ "), ("unmatchable", "\u2028")]
    return [
        ExtraToken(260 + at, content, kind, at % 2 == 0, at % 3 == 0, at % 4 == 0, at % 5 == 0)  # type: ignore[arg-type]
        if kind != "unmatchable"
        else ExtraToken(260 + at, content, "unmatchable")
        for at, (kind, content) in enumerate(contents)
    ]


@pytest.mark.parametrize("name", FORMATS)
def test_extra_tokens_of_every_kind_survive(name: str, tmp_path: Path) -> None:
    spec = spec_of(*three_of_each_kind())
    tok = Tokenizer(spec)
    loaded = subword.load(tok.save(tmp_path / name))
    assert loaded == tok and loaded.spec.extra == spec.extra
    for text in ["overwrite rw x y", "<|a|>a bé\n中 中", " the  a b\n x ▁ "]:
        assert loaded.encode(text, allowed_special="all") == tok.encode(text, allowed_special="all")


def test_what_would_be_lost_is_refused(tmp_path: Path) -> None:
    """Nothing in tokenizer.json keeps a token that spells bytes from being taken from text."""
    tok = Tokenizer(spec_of(ExtraToken(260, "<x>", "unmatchable")))
    with pytest.raises(SubwordValueError, match=r"cannot hold the unmatchable token '<x>'.*save as .subword instead"):
        tok.save(tmp_path / "x.json")
    assert not (tmp_path / "x.json").exists()


@pytest.mark.parametrize("lost", ["special", "added"])
def test_a_saved_tokenizer_splits_text_as_before(lost: Any, tmp_path: Path) -> None:
    spec = spec_of(ExtraToken(260, "<sep>", lost), model=bpe([]), stages=(Split("cl100k"),))
    tok = Tokenizer(spec)
    text = "123456<sep>HOW'S  that\n"
    for name in FORMATS:
        loaded = subword.load(tok.save(tmp_path / name))
        pieces = [each._engine.split(text, each._how("all", (), False)[0]) for each in (tok, loaded)]
        assert pieces[0] == pieces[1] == [(0, 3), (3, 6), (6, 11), (11, 14), (14, 16), (16, 17), (17, 22), (22, 23)]


# ======================== tokens inside words ========================


@pytest.mark.parametrize("engine", ENGINES)
def test_an_added_token_cuts_words_unless_it_is_a_single_word(engine: Any) -> None:
    base = subword.train(["overwrite the tokenizer tok_1x " * 9], vocab_size=270)
    for content, text in (("rw", "overwrite"), ("tok_1", "tok_1x"), ("tok_1", "atok_1")):
        id = base.n_vocab
        anywhere = Tokenizer(base.with_tokens(added=[content]).spec, engine=engine)
        alone = Tokenizer(
            base.with_tokens(added=[ExtraToken(0, content, "added", single_word=True)]).spec, engine=engine
        )
        assert id in anywhere.encode(text)
        assert alone.encode(text) == base.encode(text)
        assert id in alone.encode(f"a {content}.")


def test_two_switches_for_special_tokens() -> None:
    """Those around a text are one thing, those spelled in it another."""
    base = subword.train(["a <image> here"] * 3, vocab_size=262, special_tokens=["<image>"], bos_token="<s>")
    text = "a <image> here"
    bos, image = base.special_tokens["<s>"], base.special_tokens["<image>"]
    ordinary = base.encode_ordinary(text)
    assert image not in ordinary and bos not in ordinary and base.decode(ordinary) == text
    assert base.encode(text, disallowed_special=()) == ordinary
    assert base.encode(text, disallowed_special=(), add_special_tokens=True) == [bos, *ordinary]
    taken = base.encode(text, allowed_special="all")
    assert image in taken and base.encode(text, allowed_special="all", add_special_tokens=True) == [bos, *taken]


@pytest.mark.parametrize("id", [-1, 999, 2**31, 2**32, 2**63, 2**70, np.int64(-5), np.uint64(2**63)])
def test_an_id_that_is_none_is_the_same_error_in_every_decoder(id: Any) -> None:
    calls: list[Any] = [
        lambda: BACK.decode([97, id]),
        lambda: BACK.decode_bytes([97, id]),
        lambda: BACK.decode([97, id], errors="ignore", skip_special_tokens=True),
        lambda: BACK.decode_batch([[97], [97, id]]),
        lambda: BACK.stream_decoder().feed([97, id]),
        lambda: BACK.stream_decoder().feed(id),
        lambda: BACK.token_bytes(id),
        lambda: BACK.token_piece(id),
    ]
    for call in calls:
        with pytest.raises(UnknownTokenError, match=f"no id {id}\\b"):
            call()


# ======================== text that comes back ========================

BACK = subword.train(["x != y , he does n't .  Ünï\x00cödé\t\n" * 5], vocab_size=280, special_tokens=["<\x00>"])


@pytest.mark.parametrize("pattern", ["gpt2", "cl100k", "o200k", "llama3", "qwen2", "deepseek-v3", "none"])
def test_nothing_is_tidied_up(pattern: str) -> None:
    """Neither spaces before punctuation, nor any white space, nor a NUL."""
    tok = Tokenizer(BACK.spec.replace(stages=(*BACK.spec.stages[:-1], Split(pattern))))
    spaces = [
        chr(point) for first, last in _core.unicode_ranges("White_Space", "16.0") for point in range(first, last + 1)
    ]
    for text in ["x != y", "is n't , so .", "\x00", "a\x00b", "\x00 \x00", *spaces]:
        for around in (text, f"a{text}", f"{text}a", f"a{text}{text}b", f"{text}{text}"):
            assert tok.decode(tok.encode(around)) == around
    assert tok.encode("a<\x00>", allowed_special="all")[-1] == tok.special_tokens["<\x00>"]


@pytest.mark.parametrize("engine", ENGINES)
def test_spans_cover_the_text_where_normalization_changes_it(engine: Any) -> None:
    tok = Tokenizer(Spec((Normalize("NFKC"), Split("gpt2")), BACK.spec.model), engine=engine)
    for text in ("a\x10…\u202fb\t", "\x10\x10", "…", "\u202f…\x10ﬁ①x\t\t", "ｶﾞ e\u0301…"):
        spans = [tuple(span) for span in tok.tokenize(text).char_spans.tolist()]
        assert spans == sorted(spans)
        assert {at for start, end in spans for at in range(start, end)} == set(range(len(text)))


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_spans_of_voiced_kana_are_those_of_the_text_as_given(form: Any) -> None:
    """Also where their marks are taken apart from them, or put together."""
    tok = Tokenizer(Spec((Normalize(form), Split("none")), BACK.spec.model))
    for text, whole in (("が", [(0, 1)]), ("か\u3099", [(0, 2)]), ("ｶﾞ", [(0, 2)]), ("ギ", [(0, 1)]), ("a", [(0, 1)])):
        changes = unicodedata.normalize(form, text) != text
        is_apart = form == "NFKD" and len(text) == 2  # each of the two has a decomposition of its own
        expected = whole if changes and not is_apart else [(at, at + 1) for at in range(len(text))]
        for before in ("", "x", "ガ"):
            spans = {tuple(span) for span in tok.tokenize(f"{before}{text}x").char_spans.tolist()}
            behind = len(before + text)
            ours = {(start + len(before), end + len(before)) for start, end in expected}
            assert spans == {*ours, (behind, behind + 1), *([(0, 1)] if before else [])}


NEW_IN = {
    "13": ("\u08be", "\U00011950", "\u1abf", "\U0001fad6"),
    "14": ("\U0001df00", "\U00016ac0", "\u0898", "\U0001fae0"),
    "15": ("\U0001e4d0", "\U0001e4f0", "\U0001e4ec", "\U0001fae8"),
    "16": ("\U00010d50", "\U00010d40", "\U00010d69", "\U0001fae9"),
    "17": ("\ua7ce", "\U00011de0", "\u1acf", "\U0001facd"),
}
"""A letter, a number, a mark and a symbol that a version of Unicode brought."""


@pytest.mark.parametrize("version", NEW_IN)
def test_characters_are_what_the_named_version_of_unicode_says(version: str) -> None:
    """What is newer than the version that the spec names is of no class."""
    own = SplitRegex(r"\p{L}+|\p{N}+|\p{M}+|\p{S}+|[^\p{L}\p{N}\p{M}\p{S}]+")
    tok = Tokenizer(Spec((own,), BACK.spec.model))
    assert own.unicode == Split("gpt2").unicode == tok.spec.outline()["stages"][0]["unicode"] == "16.0"
    for char, like in zip(NEW_IN[version], ("a", "1", "\u0301", "+"), strict=True):
        like = " " if version == "17" else like
        text = "".join(f"{other}{char}{other}" for other in ("a", "1", "\u0301", "+", " "))
        data = text.encode()
        pieces = [data[start:end].decode() for start, end in tok._engine.split(data, tok._engine.ordinary_policy)]
        whole = [piece for piece in pieces if char in piece and piece != char]
        assert whole == [f"{like}{char}{like}"], (char, pieces)


# ======================== long text, by every way in ========================


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_million_characters_without_a_break(pattern: str) -> None:
    """The engine of no pattern runs out of stack, of steps or of time."""
    tok = Tokenizer(Spec((Split(pattern),), BACK.spec.model))
    for unit in ("A", "a", "^", "0", " ", "中"):
        text = unit * 1_300_000
        kept = "" if unit == " " and PATTERNS[pattern].drops else text
        ids = tok.encode_to_numpy(text)
        assert tok.decode(ids) == kept
        assert tok.count(text) == len(ids)


def test_memory_of_words_that_never_come_again_is_bounded() -> None:
    """What is remembered of pieces takes some 90 MB a thread at most, and ids are the same after it was forgotten."""
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("only Linux says how much memory a process has held")
    code = """
        import random, re, subword

        def held():
            return int(re.search(r"VmHWM:\\s+([0-9]+) kB", open("/proc/self/status").read())[1]) * 1024

        def text():  # pieces of more and of less than 16 bytes
            starts = ("", "xxxxxx" * 16)
            return " ".join(rng.choice(starts) + str(rng.randrange(10**9, 10**10)) for _ in range(12_000))

        rng = random.Random(1)
        tok = subword.train(["the cat sat on the mat 12 34 56 78 90"], vocab_size=262, pattern="whitespace")
        first = text()
        expected = tok.encode(first)
        calls = (tok.encode, tok.encode_to_numpy, tok.count, lambda t: tok.encode_batch_to_numpy([t], threads=1))
        start = held()
        for _ in range(40):
            for call in calls:
                call(text())
        full = held()
        for _ in range(15):
            for call in calls:
                call(text())
        alone = held()
        for _ in range(30):
            tok.encode_batch_to_numpy([text(), text()], threads=2)
        assert tok.encode(first) == expected
        print(full - start, alone - full, held() - alone)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    filled, more, by_another_thread = map(int, done.stdout.split())
    assert filled < 150_000_000 and more < 4_000_000 and by_another_thread < 150_000_000


def test_what_is_remembered_of_policies_is_bounded() -> None:
    tok = Tokenizer(BACK.spec)
    text = "a<\x00>b"
    expected = tok.encode(text, allowed_special="all")
    for number in range(1_000):
        assert tok.encode(text, allowed_special={"<\x00>", str(number)}, disallowed_special=()) == expected
        assert len(tok._policies) <= 64


def test_a_budget_that_is_used_up_is_the_same_error_by_every_method() -> None:
    own = SplitRegex(r"(?:a|aa)+(?<=b)|[ac]", allow_backtracking=True)
    tok = Tokenizer(Spec((own,), BACK.spec.model))
    text = "c" + "a" * 100
    calls: list[Any] = [tok.encode, tok.encode_ordinary, tok.encode_to_numpy, tok.tokenize, tok.count, tok.chunk]
    calls += [lambda t: tok.encode(t.encode()), lambda t: tok.fits(t, 500), lambda t: tok.truncate(t, 500)]
    for batch in (tok.encode_batch, tok.encode_batch_to_numpy, tok.count_batch):
        calls += [lambda t, batch=batch: batch([t, t])]
    for call in calls:
        with pytest.raises(SubwordValueError, match="budget of steps"):
            call(text)


@pytest.mark.parametrize("unit", ["^", "a", "A", "0", "-", " ", "\n", "'s", "\u4e2d"])
def test_a_long_run_by_every_method(unit: str) -> None:
    text = unit * 50_000
    ids = BACK.encode(text)
    assert BACK.decode(ids) == text
    assert BACK.encode_ordinary(text) == BACK.encode_batch([text])[0] == BACK.encode_to_numpy(text).tolist() == ids
    assert BACK.encode(text.encode()) == BACK.tokenize(text).ids.tolist() == ids
    assert BACK.encode_batch_to_numpy([text])[0].tolist() == ids
    assert BACK.count(text) == BACK.count_batch([text])[0] == len(ids)
    assert BACK.truncate(text, len(ids)) == text and BACK.find_special(text) == []
    assert "".join(chunk.text for chunk in BACK.chunk(text, 4096)) == text
