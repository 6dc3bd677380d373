"""The two views of a tokenizer, and looking through a vocabulary."""

from __future__ import annotations

import doctest
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from format_specs import bpe, models, spec_of
from hypothesis import given, settings
from hypothesis import strategies as st
from texts import TEXTS

import subword
from subword import BPE, ExtraToken, Spec, Tokenizer, _core, scripts
from subword.bpe import reference
from subword.errors import UnknownTokenError
from subword.explain import Part, Vocabulary, expand, flat, made_of, merges
from subword.explain.vocabulary import KINDS, ORDERS
from subword.patterns import UNICODE
from subword.report.terminal import bracketed

TEXT = "".join(TEXTS.values())


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    trained = subword.train(list(TEXTS.values()) * 2, vocab_size=900, special_tokens=["<|end|>"])
    return trained.with_tokens(added=["the cat"])


def by_rank(model: BPE) -> BPE:
    """The same entries, merged in the order of their ids."""
    return BPE(model.vocab, priority="rank")


def leaves(part: Part) -> Iterator[Part]:
    todo = [part]
    while todo:
        here = todo.pop()
        if here.parts is None:
            yield here
        else:
            todo += reversed(here.parts)


# ======================== views ========================


@settings(deadline=None)
@given(models(), st.booleans())
def test_last_merges_are_those_of_the_merge_loop(model: BPE, rank: bool) -> None:
    model = by_rank(model) if rank else model
    marker = model.end_of_word.encode()
    spec = spec_of(model=model, decode=subword.Decode(model.end_of_word))  # decodes to what it is spelled as
    core, slow = Tokenizer(spec), Tokenizer(spec, engine="reference")
    pairs = core.last_merges()
    assert np.array_equal(pairs, slow.last_merges())
    assert pairs.shape == (len(model.vocab), 2)
    data, alone = flat(core), Tokenizer(spec.replace(stages=(subword.Split("none"),)))
    for (piece, id), (left, right) in zip(model.vocab.items(), pairs.tolist(), strict=True):
        stem = piece.removesuffix(marker)
        if left >= 0:
            assert data[left] + data[right] == piece
        elif len(stem) > 1 and not model.ignore_merges:
            assert alone.encode(stem) != [id]


@given(models(), st.booleans(), st.text("ab \né", max_size=12))
def test_pairs_are_enough_to_encode_and_bytes_to_decode(model: BPE, rank: bool, text: str) -> None:
    model = BPE(model.vocab, model.merges, "rank" if rank else "merges")
    tok = Tokenizer(spec_of(model=model, stages=(subword.Split("none"),)))
    id_of = {piece: id for id, piece in flat(tok).items()}
    rows = merges(tok)
    assert [row.rank for row in rows] == sorted(row.rank for row in rows)
    ids = tok.encode(text)
    if all(row.left is not None for row in rows):  # an entry that its ranks do not make may be made of other neighbours
        pairs = {(id_of[row.left], id_of[row.right]): row for row in rows if row.left and row.right}
        made = {pair: row.id for pair, row in pairs.items()}
        ranks = {pair: row.rank for pair, row in pairs.items()}
        assert reference.encode([id_of[bytes([byte])] for byte in text.encode()], made, ranks) == ids
    assert reference.decode(ids, flat(tok)) == text.encode()


def test_a_merge_list_and_its_ranks_give_the_same_pairs(tok: Tokenizer) -> None:
    ranked = Tokenizer(tok.spec.replace(model=by_rank(tok.spec.model)))
    assert [row[1:] for row in merges(tok)] == [row[1:] for row in merges(ranked)]
    assert [row.rank for row in merges(ranked)] == [row.id for row in merges(ranked)]
    assert made_of(tok) == made_of(ranked)
    assert merges(tok)[0].made == merges(tok)[0].left + merges(tok)[0].right  # type: ignore[operator]


def test_expand_goes_down_to_bytes(tok: Tokenizer) -> None:
    rules = {(row.left, row.right): row.id for row in merges(tok)}
    for id, data in flat(tok).items():
        part = expand(tok, id) if id % 50 == 0 or id > 890 else Vocabulary(tok).expand(id) if id % 7 == 0 else None
        if part is None:
            continue
        todo = [part]
        while todo:
            here = todo.pop()
            assert here.data == tok.token_bytes(here.id)
            if here.parts is not None:
                assert rules[here.parts[0].data, here.parts[1].data] == here.id
                todo += here.parts
        assert b"".join(leaf.data for leaf in leaves(part)) == data
        if id not in {token.id for token in tok.spec.extra}:
            assert all(len(leaf.data) == 1 for leaf in leaves(part))
    with pytest.raises(UnknownTokenError, match="12345"):
        expand(tok, 12345)


def test_expand_of_a_token_that_is_deeper_than_python_can_call() -> None:
    chain = [(b"x" + b"a" * n, b"a") for n in range(1100)]
    tok = Tokenizer(spec_of(model=bpe(chain)))
    part = expand(tok, tok.token_id(b"x" + b"a" * 1100))
    assert len(list(leaves(part))) == 1101
    assert bracketed(part).startswith("⟦⟦⟦")
    assert bracketed(part).endswith("a⟧ a⟧ a")


def test_brackets() -> None:
    tok = Tokenizer(spec_of(model=bpe()))
    shown = {token: bracketed(expand(tok, tok.token_id(token))) for token in (b" the", b"th", b"t", b" ", b"\xe4")}
    assert shown == {b" the": "␣ ⟦⟦t h⟧ e⟧", b"th": "t h", b"t": "t", b" ": "␣", b"\xe4": "⟨e4⟩"}


# "abc" is an entry that merges never give: "bc" goes first
UNREACHABLE = [(b"b", b"c"), (b"a", b"b"), (b"ab", b"c")]


@pytest.mark.parametrize("priority", ["merges", "rank"])
def test_an_entry_that_its_bytes_do_not_encode_to(priority: str) -> None:
    model = bpe(UNREACHABLE if priority == "merges" else [(b"b", b"c"), (b"a", b"b"), (b"abcd", b"e")], priority)
    tok = Tokenizer(spec_of(model=model))
    token = b"abc" if priority == "merges" else b"abcde"
    id = tok.token_id(token)
    assert tok.encode(token) != [id]
    assert id not in made_of(tok)
    assert expand(tok, id) == Part(id, token, None)
    assert Vocabulary(tok).entry(id)[1:3] == ("unreachable", None)
    if priority == "merges":
        assert merges(tok)[2][1:4] == (b"ab", b"c", b"abc")  # the row stands in the list all the same
    else:
        assert merges(tok)[-1] == (id, None, None, token, id)


# ======================== scripts ========================


def test_scripts_cover_all_letters_once() -> None:
    def codes(name: str) -> list[int]:
        return [code for first, last in _core.unicode_ranges(name, UNICODE) for code in range(first, last + 1)]

    known = [code for name in scripts.SCRIPTS for code in codes(name)]
    assert len(known) == len(set(known))
    common = {*codes("Common"), *codes("Inherited")}
    assert {*codes("L"), *codes("M"), *codes("N")} <= {*known} | common
    assert not common & {*known}


@pytest.mark.parametrize(("text", "script"), [
    ("", "none"), (" 12!", "none"), ("é", "Latin"), ("e\u0301", "Latin"), ("день1", "Cyrillic"), ("ｶﾞ", "Katakana"),
    ("語ー", "Han"), ("です語", "mixed"), ("aя", "mixed"), ("\udce4\udcb8", "none"), ("٣", "Arabic"),
    ("ि", "Devanagari"), ("µm", "Latin"), ("µ", "none"), ("\U00105555", "none"),
])  # fmt: skip
def test_script_of(text: str, script: str) -> None:
    assert scripts.script_of(text) == script


def test_examples_in_docstrings() -> None:
    assert doctest.testmod(scripts) == (0, 1)


# ======================== looking through ========================


def test_entries(tok: Tokenizer) -> None:
    vocabulary = Vocabulary(tok)
    entries = [vocabulary.entry(id) for id in vocabulary.select()]
    assert [entry.id for entry in entries] == sorted(tok.vocab.values())
    for entry in entries:
        assert entry.data == tok.token_bytes(entry.id)
        assert entry.piece == tok.token_piece(entry.id)
        assert entry.chars == len(entry.data.decode("utf-8", "surrogateescape"))
        assert (entry.rank is None) == (entry.made_of is None) == (entry.kind != "merge")
    counts = {kind: len(vocabulary.select(kind=kind)) for kind in KINDS}
    assert counts == {
        "byte": 256, "merge": len(tok.spec.model.merges), "special": 1, "added": 1,
        "unreachable": 0, "unmatchable": 0, "character": 0, "unknown": 0, "entry": 0,
    }  # fmt: skip
    ranks = {tuple(pair): rank for rank, pair in enumerate(tok.spec.model.merges.tolist())}
    assert all(entry.rank == ranks[entry.made_of] for entry in entries if entry.made_of)


def is_utf8(data: bytes) -> bool:
    return data.decode("utf-8", "replace").encode() == data


SELECTIONS: dict[str, tuple[dict[str, Any], Callable[[int, bytes, str], bool]]] = {
    "all": ({}, lambda id, data, text: True),
    "bytes": ({"wanted": lambda data: b"\xe4" in data}, lambda id, data, text: b"\xe4" in data),
    "ids": ({"ids": [range(300, 310), range(7, 8)]}, lambda id, data, text: 300 <= id < 310 or id == 7),
    "pattern": ({"pattern": re.compile("^ [a-f]")}, lambda id, data, text: text[:1] == " " and "a" <= text[1:2] <= "f"),
    "ill-formed": ({"pattern": re.compile("[\udc80-\udcff]")}, lambda id, data, text: not is_utf8(data)),
    "script": ({"script": "Cyrillic"}, lambda id, data, text: scripts.script_of(text) == "Cyrillic"),
    "several": (
        {"wanted": lambda data: len(data) > 3, "script": "Latin", "ids": [range(400, 800)]},
        lambda id, data, text: len(data) > 3 and scripts.script_of(text) == "Latin" and 400 <= id < 800,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SELECTIONS)
def test_select(name: str, tok: Tokenizer) -> None:
    asked, test = SELECTIONS[name]
    found = Vocabulary(tok).select(**asked)
    expected = [id for id, data in flat(tok).items() if test(id, data, data.decode("utf-8", "surrogateescape"))]
    assert found == expected
    assert found


def test_sort(tok: Tokenizer) -> None:
    vocabulary = Vocabulary(tok)
    ids = list(flat(tok))
    for order in ORDERS:
        up, down = vocabulary.sort(ids, order), vocabulary.sort(ids, order, reverse=True)
        assert sorted(up) == sorted(down) == ids
    assert vocabulary.sort(ids, "text") == sorted(ids, key=lambda id: (tok.token_bytes(id), id))
    assert vocabulary.sort(ids, "bytes", True) == sorted(ids, key=lambda id: (-len(tok.token_bytes(id)), id))
    lengths = [vocabulary.entry(id).chars for id in vocabulary.sort(ids, "length")]
    assert lengths == sorted(lengths)
    ranks = [vocabulary.entry(id).rank for id in vocabulary.sort(ids, "rank")]
    assert ranks == [None] * 258 + list(range(len(tok.spec.model.merges)))


def test_a_token_that_is_an_entry_too() -> None:
    """HF's files may list an added token that merges make as well."""
    model = bpe()
    the = dict(model.vocab.items())[b"the"]
    spec: Spec = spec_of(ExtraToken(the, "the", "added"), model=model)
    vocabulary = Vocabulary(Tokenizer(spec))
    assert vocabulary.entry(the).kind == "added"
    assert vocabulary.select(kind="unreachable") == []
    assert len(vocabulary.data) == len(model.vocab)
