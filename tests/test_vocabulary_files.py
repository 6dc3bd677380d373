"""Files that hold little more than a vocabulary: .tiktoken, vocab.json with merges.txt, minbpe's .model."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import texts
from format_specs import WITH_END, bpe, result_or_error, spec_of
from hypothesis import given, settings
from hypothesis import strategies as st
from texts import TEXTS

import subword
from subword import Tokenizer, _core, formats
from subword.bpe import reference
from subword.byte_alphabet import GPT2_BYTE_ORDER, to_alphabet
from subword.errors import FormatError, SubwordOSError, SubwordValueError, SubwordWarning
from subword.formats import known, minbpe, rank_merges, tiktoken, vocab_merges
from subword.formats.bare import Input
from subword.patterns import character_class
from subword.spec import BPE, MAX_ID, ExtraToken, MatchTokens, Normalize, Spec, Split, SplitRegex, Template, Vocab

# ======================== specs, and how they come back ========================

SPECIAL = ["<|end|>", "<|a b|>", "\n", "é", "Ġthe", "the", " ", "{}"]


@st.composite
def ordered_specs(draw: st.DrawFn) -> Spec:
    """What training gives: bytes, then what each merge makes, in order; by merges or by rank; special tokens."""
    order = draw(st.sampled_from([bytes(range(256)), GPT2_BYTE_ORDER]))
    pieces = [bytes([byte]) for byte in order]
    parts = [order.index(byte) for byte in b"ab \n\r\t\0\xc3\xa9"]
    merges: list[tuple[int, int]] = []
    for left, right in draw(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=12)):
        pair = (parts[left % len(parts)], parts[right % len(parts)])
        if (joined := pieces[pair[0]] + pieces[pair[1]]) not in pieces:
            parts.append(len(pieces))
            pieces.append(joined)
            merges.append(pair)
    if draw(st.integers(0, 4)) == 0:
        draw(st.randoms()).shuffle(merges)
    by_rank = draw(st.booleans())
    rows = np.array([] if by_rank else merges, dtype=np.uint32).reshape(-1, 2)
    gap = draw(st.sampled_from([0, 0, 0, 3]))  # a hole in the ids, behind the bytes
    ids = [id if id < 256 else id + gap for id in range(len(pieces))]
    rows = rows + gap * (rows >= 256).astype(np.uint32)
    priority: Any = "rank" if by_rank else "merges"
    model = BPE(Vocab.of(zip(pieces, ids, strict=True)), rows, priority, draw(st.booleans()))
    special = draw(st.lists(st.sampled_from(SPECIAL), max_size=3, unique=True))
    extra = [ExtraToken(id, token) for id, token in enumerate(special, len(pieces) + gap + draw(st.integers(0, 1)))]
    return spec_of(*extra, model=model, stages=(Split(draw(st.sampled_from(["gpt2", "cl100k", "o200k", "none"]))),))


def said_again(spec: Spec) -> tuple[str, dict[str, int]]:
    """What files leave out, as arguments of `load`."""
    pattern = next(stage.pattern for stage in spec.stages if isinstance(stage, Split))
    return pattern, {token.content: token.id for token in spec.extra if token.kind == "special"}


def quietly(function: Callable[..., Any], *arguments: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SubwordWarning)
        return function(*arguments)


def back_from_tiktoken(spec: Spec, data: bytes) -> Spec:
    return tiktoken.read(Input(data, "x", None, *said_again(spec)))


def back_from_vocab_merges(spec: Spec, files: dict[str, bytes]) -> Spec:
    return vocab_merges.read(Input(files["merges.txt"], "merges.txt", None, *said_again(spec), files))


def back_from_minbpe(_: Spec, data: bytes) -> Spec:
    return minbpe.read(data, "x")


BACK: dict[str, tuple[Callable[[Spec], Any], Callable[[Spec, Any], Spec], str]] = {
    "tiktoken": (tiktoken.write, back_from_tiktoken, tiktoken.KIND),
    "vocab+merges": (vocab_merges.write, back_from_vocab_merges, vocab_merges.KIND),
    "minbpe": (minbpe.write, back_from_minbpe, minbpe.KIND),
}


def check_same_ids(one: Spec, other: Spec, seed: int) -> None:
    assert [(t.content, t.id) for t in one.extra] == [(t.content, t.id) for t in other.extra]
    assert dict(one.model.vocab.items()) == dict(other.model.vocab.items())
    ours, theirs = subword.Tokenizer(one), subword.Tokenizer(other)
    rng = random.Random(seed)
    parts = [
        *one.model.vocab.pieces[250:],
        *(token.content.encode() for token in one.extra),
        b"a",
        b" ",
        b"\n",
        b"\xff",
    ]
    for _ in range(8):
        text = b"".join(rng.choices(parts, k=rng.randrange(12)))
        for allowed in ("all", set[str]()):
            ids = ours.encode(text, allowed_special=allowed, disallowed_special=())
            assert theirs.encode(text, allowed_special=allowed, disallowed_special=()) == ids, text
        assert theirs.decode_bytes(ids) == text


@pytest.mark.parametrize("name", BACK)
@given(spec=ordered_specs(), seed=st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_round_trip(name: str, spec: Spec, seed: int) -> None:
    """What is saved comes back with the same ids for all bytes; what cannot is refused by name."""
    write, back, kind = BACK[name]
    data = quietly(result_or_error, write, spec)
    if isinstance(data, SubwordValueError):
        assert f"{kind} cannot hold" in str(data)
        assert "save as .subword" in str(data)
        return
    again = back(spec, data)
    check_same_ids(spec, again, seed)
    assert quietly(write, again) == data


@pytest.mark.parametrize("name", BACK)
def test_most_specs_can_be_held(name: str) -> None:
    """The test above would say nothing if nearly all were refused."""
    held = []

    @given(ordered_specs())
    @settings(max_examples=100)
    def count(spec: Spec) -> None:
        held.append(not isinstance(quietly(result_or_error, BACK[name][0], spec), SubwordValueError))

    count()
    assert sum(held) > len(held) / 10


@given(spec=ordered_specs(), seed=st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_tiktoken_reads_ours(spec: Spec, seed: int) -> None:
    peer = pytest.importorskip("tiktoken")
    data = quietly(result_or_error, tiktoken.write, spec)
    if isinstance(data, SubwordValueError):
        return
    rows = [line.split() for line in data.splitlines()]
    ranks = {base64.b64decode(token): int(rank) for token, rank in rows}
    theirs = peer.Encoding("x", pat_str=r"(?s:.+)", mergeable_ranks=ranks, special_tokens={})
    ours = subword.Tokenizer(spec.replace(stages=(Split("none"),), extra=()))
    rng = random.Random(seed)
    for _ in range(10):
        text = "".join(rng.choices(["a", "b", " ", "\n", "\r", "\t", "\0", "é", "aa", "ab"], k=rng.randrange(12)))
        assert theirs.encode_ordinary(text) == ours.encode_ordinary(text), text


@given(spec=ordered_specs(), seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_tokenizers_reads_ours(spec: Spec, seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    hf = pytest.importorskip("tokenizers")
    files = quietly(result_or_error, vocab_merges.write, spec)
    if isinstance(files, SubwordValueError):
        return
    folder = tmp_path_factory.mktemp("hf")
    for name, data in files.items():
        (folder / name).write_bytes(data)
    theirs = hf.Tokenizer(hf.models.BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt")))
    theirs.pre_tokenizer = hf.pre_tokenizers.ByteLevel(add_prefix_space=False)
    ours = subword.Tokenizer(spec.replace(stages=(Split("gpt2"),), extra=()))
    rng = random.Random(seed)
    for _ in range(10):
        text = "".join(rng.choices(["a", "b", " ", "\n", "\r", "\t", "é", "aa", "ab"], k=rng.randrange(12)))
        assert theirs.encode(text).ids == ours.encode_ordinary(text), text


def test_the_pattern_that_minbpe_has_for_gpt4() -> None:
    regex = (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
    )
    data = f"minbpe v1\n{regex}\n0\n97 97\n256 97\n".encode()
    spec = minbpe.read(data, "x")
    assert spec.stages == (SplitRegex(regex),)
    assert minbpe.write(spec) == data
    tok = Tokenizer(spec)
    regex_module = pytest.importorskip("regex")
    newer = character_class("Cn")  # the regex module may have a later Unicode
    for text in [*(text for text in TEXTS.values() if not newer.search(text)), "aaa's  aa\n  aa'S 1234\n  "]:
        data = text.encode("utf-8", "replace")
        spans = tok._engine.split(data, tok._engine.default_policy)
        assert [data[start:end].decode() for start, end in spans] == regex_module.findall(regex, data.decode())


@given(spec=ordered_specs(), seed=st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_minbpe_reads_ours(spec: Spec, seed: int) -> None:
    """As minbpe's `load` reads: lines split at white space, merges numbered from 256 on."""
    data = quietly(result_or_error, minbpe.write, spec)
    if isinstance(data, SubwordValueError):
        return
    lines = data.decode().splitlines()
    count = int(lines[2])
    assert lines[0] == "minbpe v1"
    rows = (line.split() for line in lines[3 : 3 + count])
    assert {token: int(id) for token, id in rows} == said_again(spec)[1]
    pairs = [tuple(map(int, line.split())) for line in lines[3 + count :]]
    merges = {(left, right): id for id, (left, right) in enumerate(pairs, 256)}
    ours = subword.Tokenizer(spec.replace(stages=(Split("none"),), extra=()))
    rng = random.Random(seed)
    for _ in range(10):
        text = bytes(rng.choices(b"ab \n\r\t\0\xc3\xa9", k=rng.randrange(20)))
        assert reference.encode(text, merges) == ours.encode_ordinary(text), text


def test_trained_tokenizers_go_into_each_format(tmp_path: Path) -> None:
    tok = subword.train(
        ["the cat sat on the mat\n\n\tthe  end"] * 20, vocab_size=270, pattern="gpt2", special_tokens=["<|end|>"]
    )
    again = said_again(tok.spec)
    where = [("x.tiktoken", None), ("both", "vocab+merges"), ("x.model", "minbpe")]
    for name, format in where:
        with pytest.warns(SubwordWarning, match="pattern='gpt2'") if format != "minbpe" else nullcontext():
            assert tok.save(tmp_path / name, format=format) == tmp_path / name
        pattern, special = again if format != "minbpe" else (None, None)
        back = subword.load(tmp_path / name, pattern=pattern, special_tokens=special)
        assert back.special_tokens == {"<|end|>": 269}
        for text in texts.TEXTS.values():
            assert back.encode_ordinary(text) == tok.encode_ordinary(text)
    assert sorted(path.name for path in (tmp_path / "both").iterdir()) == ["merges.txt", "vocab.json"]


# ======================== what is left out ========================


def ranks(*more: tuple[bytes, int]) -> bytes:
    rows = [(bytes([byte]), byte) for byte in range(256)] + list(more)
    return b"".join(b"%b %d\n" % (base64.b64encode(token), rank) for token, rank in rows)


MISSING = [
    ({}, r"pass pattern= and special_tokens= to load\(\).*special_tokens=\{\} says that there are none"),
    ({"pattern": "gpt2"}, r"pass special_tokens= to load\(\)"),
    ({"special_tokens": {}}, r"pass pattern= to load\(\)"),
]


@pytest.mark.parametrize(("given", "message"), MISSING)
def test_nothing_is_guessed(given: dict[str, Any], message: str, tmp_path: Path) -> None:
    (tmp_path / "x.tiktoken").write_bytes(ranks())
    quietly(formats.save, spec_of(), tmp_path / "both", "vocab+merges")
    for path in (tmp_path / "x.tiktoken", tmp_path / "both" / "vocab.json", tmp_path / "both" / "merges.txt"):
        with pytest.raises(FormatError, match=message) as caught:
            subword.load(path, **given)
        assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pattern": "gpt5", "special_tokens": {}}, "unknown split pattern 'gpt5'; the patterns are: gpt2"),
        ({"pattern": 5, "special_tokens": {}}, "unknown split pattern 5"),
        (
            {"pattern": "gpt2", "special_tokens": ["<|x|>"]},
            "special_tokens must map tokens to their ids, not be a list",
        ),
        ({"pattern": "gpt2", "special_tokens": {"": 300}}, "'' is not a string that text can spell"),
        ({"pattern": "gpt2", "special_tokens": {"\ud800": 300}}, "is not a string that text can spell"),
        ({"pattern": "gpt2", "special_tokens": {b"x": 300}}, "b'x' is not a string that text can spell"),
        ({"pattern": "gpt2", "special_tokens": {"x": -1}}, "'x' needs an id from 0 to 2147483647, not -1"),
        ({"pattern": "gpt2", "special_tokens": {"x": 2**31}}, "'x' needs an id"),
        ({"pattern": "gpt2", "special_tokens": {"x": True}}, "'x' needs an id"),
        ({"pattern": "gpt2", "special_tokens": {"x": "300"}}, "'x' needs an id"),
        ({"pattern": "gpt2", "special_tokens": {"x": 300, "y": 300}}, "'x' and 'y' have the same id 300"),
        ({"pattern": "gpt2", "special_tokens": {"x": 97}}, "'x' cannot have the id 97, which is that of b'a'"),
    ],
)
def test_arguments_that_cannot_be_used(arguments: dict[str, Any], message: str, tmp_path: Path) -> None:
    (tmp_path / "x.tiktoken").write_bytes(ranks())
    with pytest.raises(SubwordValueError, match=message):
        subword.load(tmp_path / "x.tiktoken", **arguments)


def test_a_pattern_may_be_given_as_its_expression(tmp_path: Path) -> None:
    (tmp_path / "x.tiktoken").write_bytes(ranks())
    pattern = subword.patterns.PATTERNS["cl100k"].regex
    tok = subword.load(tmp_path / "x.tiktoken", pattern=pattern, special_tokens={})
    assert tok.spec.stages == (Split("cl100k"),)


def test_whole_files_take_no_arguments(tmp_path: Path) -> None:
    for name, format in (("a.subword", None), ("a.json", None), ("a.model", "minbpe")):
        spec = WITH_END if format is None else spec_of(model=by_value())
        formats.save(spec, tmp_path / name, format)
        for arguments in ({"pattern": "gpt2"}, {"special_tokens": {}}):
            with pytest.raises(SubwordValueError, match=f"{name}: this file says .*; give neither of them"):
                subword.load(tmp_path / name, **arguments)  # type: ignore[arg-type]


def test_a_known_file_is_told_by_its_content(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    data = ranks((b"th", 256))
    file = known.File("x/toy.tiktoken", hashlib.sha256(data).hexdigest())
    monkeypatch.setitem(known.KNOWN, "toy", known.Known("toy", (file,), "cl100k", {"<|x|>": 300}))
    (tmp_path / "any name").write_bytes(data)
    tok = subword.load(tmp_path / "any name")
    assert (tok.special_tokens, tok.spec.stages) == ({"<|x|>": 300}, (MatchTokens(), Split("cl100k")))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tok.save(tmp_path / "again.tiktoken")  # `load` will know it: nothing to warn of
    assert (tmp_path / "again.tiktoken").read_bytes() == data
    other = subword.load(tmp_path / "any name", special_tokens={})
    assert (other.special_tokens, other.spec.stages) == ({}, (Split("cl100k"),))
    with pytest.warns(SubwordWarning, match=r"load it with pattern='cl100k', special_tokens=\{\}"):
        other.save(tmp_path / "again.tiktoken")


def test_the_warning_when_saving_names_what_to_pass(tmp_path: Path) -> None:
    special = {f"<|{number}|>": 256 + number for number in range(10)}
    spec = tiktoken.read(Input(ranks(), "x", None, "gpt2", special)).replace(roles={"eos": 256})
    with pytest.warns(SubwordWarning) as caught:
        subword.Tokenizer(spec).save(tmp_path / "x.tiktoken")
    told, roles = (str(warning.message) for warning in caught)
    assert "pattern='gpt2', special_tokens={'<|0|>': 256, " in told
    assert told.endswith("and 2 more")
    assert "no place for the roles eos" in roles
    assert {warning.filename for warning in caught} == {__file__}


# ======================== what is refused when saving ========================


def by_value(merges: tuple[tuple[int, int], ...] = ((116, 104), (256, 101)), **settings: Any) -> BPE:
    """Bytes by their values, then `th`, `the`."""
    pieces = [bytes([byte]) for byte in range(256)]
    for left, right in merges:
        pieces.append(pieces[left] + pieces[right])
    vocab = Vocab.of(zip(pieces, range(len(pieces)), strict=True))
    return BPE(vocab, np.array(merges, dtype=np.uint32).reshape(-1, 2), **settings)


def reordered() -> BPE:
    """`the` as the entry of a merge that stands before the one that makes its part."""
    model = by_value(((116, 104), (104, 101)))
    return BPE(model.vocab, model.merges[::-1].copy())


def without_byte() -> BPE:
    model = by_value()
    return BPE(Vocab.of((piece, id) for piece, id in model.vocab.items() if piece != b"\xff"), model.merges)


def with_broken_entry(ignore_merges: bool, priority: Any = "merges") -> BPE:
    """`xyz`, which no merge makes."""
    model = by_value(())
    return BPE(Vocab.of([*model.vocab.items(), (b"xyz", 256)]), model.merges, priority, ignore_merges)


X = ExtraToken(300, "<|x|>")
ALL = ("tiktoken", "vocab+merges", "minbpe")
REFUSED: dict[str, tuple[tuple[str, ...], Spec, str]] = {
    "normalization": (ALL, spec_of(model=by_value(), stages=(Normalize("NFC"), Split("gpt2"))), "the stages Normalize"),
    "no split": (ALL, Spec((), by_value()), "only one split"),
    "two splits": (ALL, spec_of(model=by_value(), stages=(Split("gpt2"), Split("cl100k"))), "only one split"),
    "Unicode": (ALL, spec_of(model=by_value(), stages=(Split("gpt2", "15.0"),)), "the stages Split"),
    "template": (ALL, spec_of(X, model=by_value(), template=Template((300, "A"))), "the template"),
    "added": (ALL, spec_of(ExtraToken(300, "x", "added"), model=by_value()), "'x' .* not special but added"),
    "flags": (ALL, spec_of(ExtraToken(300, "x", lstrip=True), model=by_value()), "the flags of the token 'x'"),
    "not taken": (ALL, Spec((Split("gpt2"),), by_value(), (X,)), "that no stage takes from text"),
    "a byte": (("tiktoken", "vocab+merges"), spec_of(model=without_byte()), r"without tokens for the bytes b'\\xff'"),
    "order": (("tiktoken", "minbpe"), spec_of(model=reordered()), "merge"),
    "missing merge": (("tiktoken", "minbpe"), spec_of(model=with_broken_entry(False)), "xyz"),
    "ignore_merges": (("vocab+merges", "minbpe"), spec_of(model=with_broken_entry(True)), "ignore_merges"),
    "ranks": (("vocab+merges", "minbpe"), spec_of(model=with_broken_entry(True, "rank")), "is not what its own bytes"),
    "ranks that come out in parts": (
        ("tiktoken",),
        spec_of(model=with_broken_entry(False, "rank")),
        "is not what its own bytes",
    ),
    "a name twice": (("vocab+merges",), spec_of(ExtraToken(300, "the"), model=by_value()), "spells its token 257"),
    "a spelling": (("vocab+merges",), spec_of(ExtraToken(300, "Ġ"), model=by_value()), "spells its token 32 the same"),
    "unmatchable": (("vocab+merges",), spec_of(ExtraToken(300, "xy", "unmatchable"), model=by_value()), "spell bytes"),
    "space": (("minbpe",), spec_of(ExtraToken(300, "a b"), model=by_value()), "'a b' .* split at white space"),
    "newline": (("minbpe",), spec_of(ExtraToken(300, "a\n"), model=by_value()), "split at white space"),
    "line separator": (("minbpe",), spec_of(ExtraToken(300, "a\u2028"), model=by_value()), "split at white space"),
    "ids of bytes": (("minbpe",), spec_of(model=bpe([])), "the id 0 for b'!': the bytes have their values as ids"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_format_cannot_hold_is_refused_by_name(case: str, tmp_path: Path) -> None:
    names, spec, message = REFUSED[case]
    for name in names:
        with pytest.raises(SubwordValueError, match=f"{BACK[name][2]} cannot hold .*{message}.*; save as .subword"):
            formats.save(spec, tmp_path / "x", name)
    assert list(tmp_path.iterdir()) == []


def test_an_unmatchable_token_stays_in_vocab_json() -> None:
    spec = spec_of(ExtraToken(300, "unused 漢", "unmatchable"), model=by_value())
    files = quietly(vocab_merges.write, spec)
    assert back_from_vocab_merges(spec, files) == spec


def test_the_other_half_is_not_replaced_when_saving_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "both"
    folder.mkdir()
    (folder / "merges.txt").mkdir()
    with pytest.raises(IsADirectoryError, match="this is a folder"):
        quietly(formats.save, spec_of(), folder, "vocab+merges")
    assert [path.name for path in folder.iterdir()] == ["merges.txt"]
    (tmp_path / "file").write_text("x")
    with pytest.raises(SubwordOSError, match="cannot write a tokenizer"):
        quietly(formats.save, spec_of(), tmp_path / "file", "vocab+merges")


# ======================== damaged files ========================

RANKS = ranks((b"th", 256), (b"the", 257))
FILES = quietly(vocab_merges.write, spec_of())
MINBPE = minbpe.write(spec_of(X, model=by_value()))


def lines_of(data: bytes, *changes: tuple[int, bytes]) -> bytes:
    """A file with some lines replaced; they are counted from 1."""
    lines = data.splitlines(keepends=True)
    for number, line in changes:
        lines[number - 1] = line
    return b"".join(lines)


BAD_RANKS: dict[str, tuple[bytes, str]] = {
    "one field": (lines_of(RANKS, (3, b"IQ==\n")), "x: line 3: expected a token in base64, a space and its rank"),
    "three fields": (lines_of(RANKS, (3, b"IQ== 2 2\n")), "x: line 3: expected"),
    "not base64": (lines_of(RANKS, (3, b"I*== 2\n")), "x: line 3: .* is not base64"),
    "bad padding": (lines_of(RANKS, (3, b"IQ= 2\n")), "x: line 3: .* is not base64"),
    "cut in a token": (RANKS[:-6], "x: line 258: expected"),
    "cut in a rank": (RANKS[:-3], "x: line 258: the rank 2 stands already in line 3"),
    "a negative rank": (
        lines_of(RANKS, (3, b"Ag== -1\n")),
        "x: line 3: the rank must be a number from 0 to 2147483647",
    ),
    "a large rank": (lines_of(RANKS, (3, b"Ag== 2147483648\n")), "x: line 3: the rank must be a number"),
    "an endless rank": (lines_of(RANKS, (3, b"Ag== " + b"9" * 10_000 + b"\n")), "x: line 3: the rank must be"),
    "other digits": (lines_of(RANKS, (3, "Ag== ２\n".encode())), "x: line 3: the rank must be"),
    "a rank twice": (lines_of(RANKS, (3, b"Ag== 1\n")), "x: line 3: the rank 1 stands already in line 2"),
    "a token twice": (lines_of(RANKS, (3, b"AQ== 2\n")), r"x: line 3: the token b'\\x01' stands already in line 2"),
    "a byte is missing": (lines_of(RANKS, (3, b"")), r"x: no token for the byte b'\\x02'"),
    "few lines": (b"IQ== 0\n", r"x: no token for the bytes b'\\x00"),
}


@pytest.mark.parametrize("case", BAD_RANKS)
def test_damaged_ranks(case: str) -> None:
    data, message = BAD_RANKS[case]
    with pytest.raises(FormatError, match=f"^{message}"):
        tiktoken.read(Input(data, "x", None, "gpt2", {}))


def test_what_ranks_may_look_like() -> None:
    plain = tiktoken.read(Input(RANKS, "x", None, "gpt2", {}))
    shuffled = b"".join(random.Random(1).sample(RANKS.splitlines(keepends=True), 258))
    for data in (b"\xef\xbb\xbf" + RANKS, RANKS.replace(b"\n", b"\r\n"), b"\n" + RANKS + b"\n\n", RANKS[:-1], shuffled):
        assert tiktoken.looks_like(data)
        assert tiktoken.read(Input(data, "x", None, "gpt2", {})) == plain
    for data in (b"", b"= 0\n", b"the 15\n", b"IQ== x\n", b"IQ==0\n", b"minbpe v1\n", b"{}", b"\0" * 99):
        assert not tiktoken.looks_like(data)


def test_the_empty_token_of_whisper_is_left_out_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "x.tiktoken").write_bytes(RANKS + b"= 258\n")
    with pytest.warns(SubwordWarning, match="the token with the id 258 is empty") as caught:
        tok = subword.load(tmp_path / "x.tiktoken", pattern="gpt2", special_tokens={"<|x|>": 259})
    assert caught[0].filename == __file__
    assert tok.n_vocab == 260
    assert tok.encode("the<|x|>", allowed_special="all") == [257, 259]
    with pytest.raises(KeyError, match="no id 258"):
        tok.decode([258])


def test_a_token_of_megabytes_does_not_take_hours() -> None:
    long = b"th" * 2**20
    spec = tiktoken.read(Input(ranks((b"th", 256), (long, 257)), "x", None, "none", {}))
    assert subword.Tokenizer(spec).encode(long) == [257]


def both(vocab: Any = None, merges: bytes | None = None) -> dict[str, bytes]:
    """The two files, one of them changed; `vocab` may be a function on the parsed file."""
    data = FILES["vocab.json"]
    if callable(vocab):
        ids = json.loads(data)
        vocab(ids)
        data = json.dumps(ids).encode()
    elif vocab is not None:
        data = vocab
    return {"vocab.json": data, "merges.txt": FILES["merges.txt"] if merges is None else merges}


WITH_X = spec_of(ExtraToken(300, "<|x|>"))


@pytest.mark.parametrize(
    "files",
    [
        both(),
        both(merges=FILES["merges.txt"].replace(b"\n", b"\r\n")),
        both(lambda ids: ids.update({"漢": 998, "<|x|>": 300, "<y>": 997})),
    ],
)
def test_the_core_reads_what_is_read_without_it(files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    spec = back_from_vocab_merges(WITH_X, files)
    assert _core.read_entries(files["vocab.json"], files["merges.txt"], MAX_ID) is not None
    monkeypatch.setattr(_core, "read_entries", lambda *_: None)
    again = back_from_vocab_merges(WITH_X, files)
    assert (again, again.extra, dict(again.roles)) == (spec, spec.extra, dict(spec.roles))


MERGES = FILES["merges.txt"]
BAD_PAIRS: dict[str, tuple[dict[str, bytes], str]] = {
    "cut off": (both(FILES["vocab.json"][:-30]), "vocab.json: not JSON at line [0-9]+"),
    "a list": (both(b'{"a": [1]}'), "vocab.json: a: expected an id from 0 to 2147483647"),
    "a fraction": (both(lambda ids: ids.update(t=1.5)), "vocab.json: t: expected an id"),
    "a truth": (both(lambda ids: ids.update(t=True)), "vocab.json: t: expected an id"),
    "a negative id": (both(lambda ids: ids.update(t=-1)), "vocab.json: t: expected an id"),
    "an id twice": (both(lambda ids: ids.update(t=0)), "vocab.json: t: '!' has the id 0, too"),
    "half a pair": (both(lambda ids: ids.update({"\ud800": 999})), "vocab.json: .*half a surrogate pair"),
    "no bytes": (both(lambda ids: ids.pop("!")), "vocab.json: no token for the bytes b'!' .*no byte-level vocabulary"),
    "another id": (
        both(lambda ids: ids.update({"<|x|>": 999})),
        r"vocab.json: the special token '<\|x\|>' has the id 999",
    ),
    "a taken id": (both(lambda ids: ids.update({"y": 300})), r"vocab.json: the id 300, given to .*, is that of 'y'"),
    "not UTF-8": (both(merges=MERGES + b"\xff \xff\n"), "merges.txt: not UTF-8 at byte [0-9]+"),
    "one token": (
        both(merges=MERGES + b"t\n"),
        "merges.txt: line 6: expected two tokens with a space between, found 't'",
    ),
    "three tokens": (both(merges=MERGES + b"t h e\n"), "merges.txt: line 6: expected two tokens"),
    "a blank line": (both(merges=MERGES + b"\nt h\n"), "merges.txt: line 6: expected two tokens"),
    "two spaces": (both(merges=MERGES + b"t  h\n"), "merges.txt: line 6: expected two tokens"),
    "no token": (both(merges=MERGES + b"t qq\n"), "merges.txt: line 6: 'qq' is not in the vocabulary"),
    "makes none": (both(merges=MERGES + b"q q\n"), "merges.txt: line 6: 'qq' is not in the vocabulary"),
    "no bytes in it": (
        both(lambda ids: ids.update({"漢": 998, "漢t": 997}), MERGES + "漢 t\n".encode()),
        "spells no bytes",
    ),
    "a special token": (
        both(lambda ids: ids.update({"<|x|>": 300}), MERGES + b"<|x|> t\n"),
        "line 6: .*is a special token",
    ),
    "a merge twice": (both(merges=MERGES + b"t h\n"), "merges.txt: line 6: the merge stands already in line 2"),
    "cut in a line": (both(merges=MERGES[:-3]), "merges.txt: line 5: expected two tokens|line 5: .*not in the vocab"),
}


@pytest.mark.parametrize("case", BAD_PAIRS)
def test_damaged_pairs(case: str) -> None:
    files, message = BAD_PAIRS[case]
    for name in files:
        with pytest.raises(FormatError, match=message):
            vocab_merges.read(Input(files[name], name, None, "gpt2", {"<|x|>": 300}, files))


def test_what_pairs_may_look_like() -> None:
    plain = back_from_vocab_merges(spec_of(), both())
    assert plain == spec_of()
    bom = b"\xef\xbb\xbf"
    variants = [
        both(merges=MERGES.replace(b"\n", b"\r\n")),
        both(merges=MERGES[:-1]),
        both(bom + FILES["vocab.json"], bom + MERGES),
        both(merges=MERGES.split(b"\n", 1)[1]),  # without the first line
        both(lambda ids: None),
    ]
    for files in variants:
        assert vocab_merges.read(Input(files["vocab.json"], "vocab.json", None, "gpt2", {}, files)) == plain


@pytest.mark.parametrize(
    ("vocab", "merges"),
    [("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe"), ("gpt2-vocab.json", "gpt2-merges.txt")],
)
def test_the_two_files_find_each_other(vocab: str, merges: str, tmp_path: Path) -> None:
    (tmp_path / vocab).write_bytes(FILES["vocab.json"])
    for path in (tmp_path / vocab, tmp_path):
        with pytest.raises(FormatError, match=f"{vocab}: the other half is missing: {merges} should stand beside it"):
            formats.load(path, "gpt2", {})
    (tmp_path / merges).write_bytes(MERGES)
    for path in (tmp_path / vocab, tmp_path / merges, tmp_path):
        assert formats.load(path, "gpt2", {}) == spec_of()
    (tmp_path / vocab).unlink()
    with pytest.raises(
        FormatError, match=f"{merges}: the other half is missing: {vocab} .*subword-nmt, which need none"
    ):
        formats.load(tmp_path / merges, "gpt2", {})


def test_files_with_other_names_say_what_to_call_them(tmp_path: Path) -> None:
    for name, what in (
        ("vocab.json", "this is a vocabulary, and its merges"),
        ("merges.txt", "this is merges, and its"),
    ):
        (tmp_path / "x").write_bytes(FILES[name])
        with pytest.raises(FormatError, match=rf"{what} .* call the two \*vocab.json and \*merges.txt or"):
            formats.load(tmp_path / "x", "gpt2", {})


def test_bytes_in_the_alphabet_and_special_tokens_as_they_are() -> None:
    ids = json.loads(both(lambda ids: ids.update({"<|x|>": 300, "unused 漢": 301}))["vocab.json"])
    assert ids[to_alphabet(b" the")] == 258
    files = both(json.dumps(ids).encode())
    spec = vocab_merges.read(Input(files["vocab.json"], "vocab.json", None, "gpt2", {"<|x|>": 300}, files))
    assert [(t.id, t.content, t.kind) for t in spec.extra] == [
        (300, "<|x|>", "special"),
        (301, "unused 漢", "unmatchable"),
    ]
    assert subword.Tokenizer(spec).encode(" the<|x|>unused 漢", allowed_special="all")[:2] == [258, 300]


BAD_MINBPE: dict[str, tuple[bytes, str]] = {
    "version": (lines_of(MINBPE, (1, b"minbpe v2\n")), "x: line 1: only 'minbpe v1' can be read, found 'minbpe v2'"),
    "cut off": (b"minbpe v1\n\n", "x: cut off before the special tokens"),
    "pattern": (lines_of(MINBPE, (2, b"[a-z]+\n")), r"x: line 2: the split pattern '\[a-z\]\+' leaves out"),
    "count": (lines_of(MINBPE, (3, b"one\n")), "x: line 3: expected a number from 0 to 2147483647, found 'one'"),
    "negative count": (lines_of(MINBPE, (3, b"-1\n")), "x: line 3: expected a number"),
    "large count": (
        lines_of(MINBPE, (3, b"9\n")),
        "x: line 3: 9 special tokens should follow, but the file ends after 6",
    ),
    "huge count": (lines_of(MINBPE, (3, b"2000000000\n")), "x: line 3: 2000000000 special tokens should follow"),
    "small count": (lines_of(MINBPE, (3, b"0\n")), "x: line 4: expected a number"),
    "a space in a special token": (lines_of(MINBPE, (4, b"a b 300\n")), "x: line 4: expected a special token, a space"),
    "no id": (lines_of(MINBPE, (4, b"<|x|>\n")), "x: line 4: expected a special token, a space"),
    "a special token twice": (
        lines_of(MINBPE, (3, b"2\n"), (4, b"<|x|> 300\n<|x|> 301\n")),
        r"x: line 5: the special token '<\|x\|>' or its id 301 stands in another line",
    ),
    "the id of a merge": (lines_of(MINBPE, (4, b"<|x|> 256\n")), r"x: .*'<\|x\|>' cannot have the id 256, .* of b'th'"),
    "one id": (lines_of(MINBPE, (5, b"116\n")), "x: line 5: expected two ids with a space between"),
    "not made yet": (lines_of(MINBPE, (5, b"116 256\n")), "x: line 5: the id 256 is not made yet"),
    "made twice": (MINBPE + b"116 104\n", "x: line 7: it makes b'th', as line 5 does"),
    "not UTF-8": (MINBPE + b"\xff\n", "x: not UTF-8 at byte"),
    "blank line": (MINBPE + b"\n116 101\n", "x: line 7: expected two ids"),
}


@pytest.mark.parametrize("case", BAD_MINBPE)
def test_damaged_minbpe(case: str) -> None:
    data, message = BAD_MINBPE[case]
    with pytest.raises(FormatError, match=f"^{message}"):
        formats.read(data, "x")


def test_a_merge_list_that_asks_for_more_memory_than_there_is() -> None:
    merges = [(97, 97), *((id, id) for id in range(256, 400))]
    data = b"minbpe v1\n\n0\n" + b"".join(b"%d %d\n" % pair for pair in merges)
    with pytest.raises(FormatError, match=r"line [0-9]+: the tokens up to here spell more than 268,435,456 bytes"):
        formats.read(data, "x")


def test_minbpe_as_minbpe_writes_it() -> None:
    """Its own GPT-2 pattern, and none."""
    pattern = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    for line, name in ((pattern, "gpt2"), ("", "none")):
        spec = formats.read(f"minbpe v1\n{line}\n1\n<|x|> 300\n116 104\n256 101\n".encode(), "x")
        assert spec == spec_of(X, model=by_value(), stages=(Split(name),))
    assert formats.read(MINBPE.replace(b"\n", b"\r\n"), "x") == formats.read(MINBPE, "x")


SOUND: dict[str, Callable[[bytes], Spec]] = {
    "ranks": lambda data: tiktoken.read(Input(data, "x", None, "gpt2", {})),
    "vocab.json": lambda data: vocab_merges.read(Input(data, "vocab.json", None, "gpt2", {}, both(data))),
    "merges.txt": lambda data: vocab_merges.read(Input(data, "merges.txt", None, "gpt2", {}, both(merges=data))),
    "minbpe": lambda data: minbpe.read(data, "x"),
}


@pytest.mark.parametrize(("name", "data"), [("ranks", RANKS), *FILES.items(), ("minbpe", MINBPE)])
@given(st.data())
@settings(max_examples=200, deadline=None)
def test_any_damage_is_an_error_or_a_tokenizer(name: str, data: bytes, draw: st.DataObject) -> None:
    """Never another exception, and never a spec that the engine cannot hold."""
    at = draw.draw(st.integers(0, len(data)))
    behind = at + draw.draw(st.sampled_from([0, 1, 1, 2, 5, 2**20]))
    new = draw.draw(st.binary(max_size=4) | st.sampled_from([b"\n", b" ", b"0", b"-", b"256", b'"', b"\xff", b"Q== 7"]))
    damaged = data[:at] + new + data[behind:]
    try:
        spec = quietly(SOUND[name], damaged)
    except FormatError:
        return
    assert subword.Tokenizer(spec).decode_bytes(subword.Tokenizer(spec).encode_ordinary(b"the\xff")) == b"the\xff"


@pytest.mark.parametrize("name", SOUND)
@pytest.mark.parametrize("data", [b"", b"\n", b"\xef\xbb\xbf", b"\r\n\r\n"])
def test_nothing_is_no_tokenizer(name: str, data: bytes) -> None:
    with pytest.raises(FormatError):
        SOUND[name](data)


# ======================== folders ========================


def test_in_a_folder_a_whole_file_goes_first(tmp_path: Path) -> None:
    quietly(formats.save, spec_of(), tmp_path, "vocab+merges")
    assert formats.load(tmp_path, "gpt2", {}) == spec_of()
    (tmp_path / "x.tiktoken").write_bytes(RANKS)
    with pytest.raises(SubwordValueError, match=r"more than one tokenizer is here, name one of vocab.json, x.tiktoken"):
        formats.load(tmp_path, "gpt2", {})
    formats.save(WITH_END, tmp_path / "tokenizer.json")
    assert formats.load(tmp_path) == WITH_END
    for model in (b"\n\x0e\n\x05<unk>\x15", MINBPE):  # SentencePiece's and minbpe's
        (tmp_path / "tokenizer.model").write_bytes(model)
        with pytest.raises(SubwordValueError, match=r"name one of tokenizer.json, tokenizer.model"):
            formats.load(tmp_path)


def test_content_and_not_the_name_counts_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_bytes(RANKS)
    assert formats.load(tmp_path, "gpt2", {}).model.priority == "rank"


def test_a_damaged_file_in_a_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(b"")
    with pytest.raises(FormatError, match=r"tokenizer\.json: the file is empty"):
        formats.load(tmp_path)


def test_merge_lists_are_only_given_where_they_are_proved() -> None:
    assert rank_merges.merge_list(spec_of(model=by_value())) == [(116, 104), (256, 101)]
    assert rank_merges.merge_list(spec_of(model=by_value(ignore_merges=True))) == [(116, 104), (256, 101)]
    ranked = by_value(priority="rank")
    assert rank_merges.merge_list(spec_of(model=BPE(ranked.vocab, priority="rank"))) == [(116, 104), (256, 101)]
    with pytest.raises(SubwordValueError, match="only `ignore_merges` gives the token b'xyz' whole"):
        rank_merges.merge_list(spec_of(model=with_broken_entry(True)))
    with pytest.raises(SubwordValueError, match=r"b'xyz' \(id 256\) is not what its own bytes encode to"):
        rank_merges.merge_list(spec_of(model=with_broken_entry(False, "rank")))
    pieces = [*ranked.vocab.pieces[:256], b"the", b"th"]  # the whole ranks before its part
    turned = BPE(Vocab.of(zip(pieces, range(258), strict=True)), priority="rank")
    assert subword.Tokenizer(spec_of(model=turned)).encode("the") == [256]
    with pytest.raises(SubwordValueError, match=r"b'the' \(id 256\) is made of a token with a higher id, 257"):
        rank_merges.merge_list(spec_of(model=turned))
