"""Failures that users of other libraries reported, each as a test with the right value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from format_specs import bpe, changed, spec_of, write_json

import subword
from subword import BPE, ExtraToken, Normalize, Spec, Split, Tokenizer, Vocab, _core, formats
from subword.errors import FormatError, SubwordValueError

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
    hf = pytest.importorskip("tokenizers")
    for name in FORMATS:
        loaded = subword.load(tok.save(tmp_path / name))
        assert loaded == tok and loaded.encode(text, allowed_special="all") == ids
    assert hf.Tokenizer.from_file(str(tmp_path / "x.json")).encode(text).ids == ids


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


# ======================== long text, by every way in ========================


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
