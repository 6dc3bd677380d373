"""What differs between two tokenizers is found, named, and shown on a text that cannot be shorter."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from format_specs import bpe, spec_of

import subword
from subword import ExtraToken, Spec, Template, Tokenizer, differences
from subword.cli import main
from subword.formats import native, tiktoken
from subword.formats.bare import Input
from subword.spec import BPE, Lowercase, Normalize, PrefixSpace, Split, SplitRegex, Vocab, WordPiece

MERGES = [(b"t", b"h"), (b"th", b"e"), (b" ", b"the"), (b"e", b"r"), (b"o", b"f"), (b" ", b"of"), (b"1", b"2")]
END, CALL = ExtraToken(300, "<|end|>"), ExtraToken(301, "<|call|>", "added")
REGEX = r"\p{N}{1,3}|[^\s\p{N}]+|\s+"
SPEC = spec_of(
    END,
    CALL,
    model=bpe(MERGES),
    stages=(Normalize("NFC"), SplitRegex(REGEX, "oniguruma")),
    template=Template((300, "A"), (300, "A", 300, "B")),
    roles={"bos": 300},
    chat={"default": "a\nb\nc"},
)


def swapped(spec: Spec) -> Spec:
    """Two ids, also in the merges, so that text is cut as before."""
    ids = dict(spec.model.vocab.items())
    a, b = ids[b"the"], ids[b"of"]
    other = {a: b, b: a}
    rows = [(piece, other.get(id, id)) for piece, id in spec.model.vocab.items()]
    merges = np.vectorize(lambda id: other.get(id, id))(spec.model.merges)
    return spec.replace(model=BPE(Vocab.of(rows), merges))


def with_merges(*order: int) -> Callable[[Spec], Spec]:
    """The merges in another order, with the entries and ids as they were."""
    return lambda spec: spec.replace(model=replace(spec.model, merges=spec.model.merges[list(order)]))


def with_stages(*stages: Any) -> Callable[[Spec], Spec]:
    return lambda spec: spec.replace(stages=(spec.stages[0], *stages))


def with_extra(*extra: ExtraToken) -> Callable[[Spec], Spec]:
    return lambda spec: spec.replace(extra=extra)


TAMPERED: dict[str, tuple[Callable[[Spec], Spec], dict[str, int], list[bytes]]] = {
    # what is changed; in which parts how much is found; texts, one of which shows it
    "two ids swapped": (swapped, {"ids": 2}, [b"the", b"of"]),
    "a merge moved to the front": (with_merges(3, 0, 1, 2, 4, 5, 6), {"merges": 1}, [b"ther", b"her"]),
    "a merge moved to the end": (with_merges(1, 2, 3, 4, 5, 6, 0), {"merges": 1}, []),
    "a merge left out": (with_merges(0, 1, 2, 3, 4, 5), {"merges": 1}, [b"12"]),
    "a flag": (with_extra(replace(END, lstrip=True), CALL), {"extra tokens": 1}, [b" <|end|>"]),
    "an added token that is special": (
        with_extra(END, replace(CALL, kind="special")),
        {"extra tokens": 1},
        [b"<|call|>"],
    ),
    "a hidden token": (
        with_extra(END, CALL, ExtraToken(302, "cat")),
        {"model": 1, "ids": 1, "extra tokens": 1},
        [b"cat"],
    ),
    "a regex by one character": (
        with_stages(Normalize("NFC"), SplitRegex(REGEX.replace("3", "1"), "oniguruma")),
        {"split rules": 1},
        [b"12"],
    ),
    "a regex by a letter": (
        with_stages(Normalize("NFC"), SplitRegex(REGEX.replace(r"[^\s\p{N}]+", r"[^\s\p{N}e]+|e"), "oniguruma")),
        {"split rules": 1},
        [b"er", b"the"],
    ),
    "no normalizer": (with_stages(SPEC.stages[-1]), {"normalization": 1}, []),
    "another normalizer": (with_stages(Normalize("NFKC"), SPEC.stages[-1]), {"normalization": 1}, []),
    "one more normalizer": (with_stages(Normalize("NFC"), Lowercase(), SPEC.stages[-1]), {"normalization": 1}, [b"A"]),
    "a prefix": (
        with_stages(Normalize("NFC"), PrefixSpace(), SPEC.stages[-1]),
        {"normalization": 1},
        [bytes([byte]) for byte in range(33, 127)],
    ),
    "a template": (
        lambda spec: spec.replace(template=Template(("A",), (300, "A", 300, "B"))),
        {"template": 1},
        [b""],
    ),
    "types of a template": (
        lambda spec: spec.replace(template=replace(spec.template, pair_types=(0, 0, 0, 0))),
        {"template": 1},
        [b"a"],
    ),
    "a template for two texts": (
        lambda spec: spec.replace(template=replace(spec.template, pair=("A", 300, "B"), pair_types=())),
        {"template": 1},
        [b""],
    ),
    "a role": (lambda spec: spec.replace(roles={"bos": 300, "eos": 300}), {"roles": 1}, []),
    "a chat template": (lambda spec: spec.replace(chat={"default": "a\nB\nc"}), {"chat templates": 1}, []),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_tampering_is_found(name: str) -> None:
    """Alone, in its part, and on a text that really gives what is said, and of which no character can be left out."""
    change, found, texts = TAMPERED[name]
    one, other = Tokenizer(SPEC), Tokenizer(change(SPEC))
    for a, b in ((one, other), (other, one)):
        parts = differences.find(a, b)
        assert {part.name: part.count for part in parts} == found
        shown = [item.shown for part in parts for item in part.items if item.shown is not None]
        if texts:
            assert {each.text for each in shown} & set(texts)
        for each in shown:
            assert [differences.given(tok, each.text, each.way) for tok in (a, b)] == [each.one, each.other]
            assert each.one != each.other
    assert differences.find(one, Tokenizer(native.read(native.write(SPEC), "made here"))) == []


CHARACTERS = BPE(
    Vocab.of((piece.encode(), id) for id, piece in enumerate(["?", "a", "b", "ab", "##b", "a##b", "cab"])),
    np.array([[1, 2]], dtype=np.uint32),
    unit="character",
    unk=0,
)
WORDS = WordPiece(Vocab.of((piece.encode(), id) for id, piece in enumerate(["[UNK]", "a", "b", "##a", "##b"])), 0)
BYTES = [(f"<0x{byte:02X}>".encode(), 10 + byte) for byte in range(256)]

SETTINGS: dict[str, tuple[Any, dict[str, Any], set[str]]] = {
    # a model, what is changed, and the texts of which one is to show it
    "ignore_merges": (CHARACTERS, {"ignore_merges": True}, {"##b"}),
    "unk": (CHARACTERS, {"unk": 1}, set()),
    "no unk": (CHARACTERS, {"unk": None}, set()),
    "fuse_unk": (CHARACTERS, {"fuse_unk": True}, set()),
    "byte_fallback": (
        replace(CHARACTERS, vocab=Vocab.of([*CHARACTERS.vocab.items(), *BYTES])),
        {"byte_fallback": True},
        set(),
    ),
    "continuing_subword_prefix": (
        replace(CHARACTERS, merges=np.zeros((0, 2), np.uint32)),
        {"continuing_subword_prefix": "##"},
        {"ab"},
    ),
    "max_input_chars_per_word": (WORDS, {"max_input_chars_per_word": 7}, {"a" * 8}),
    "the prefix of a WordPiece": (WORDS, {"continuing_subword_prefix": "#"}, {"aa", "ab"}),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_of_the_model_shows(name: str) -> None:
    model, change, texts = SETTINGS[name]
    models = (model, replace(model, **change))
    one, other = (Tokenizer(spec_of(model=each, stages=(Split("whitespace-split"),))) for each in models)
    for a, b in ((one, other), (other, one)):
        (part,) = differences.find(a, b)
        (item,) = part.items
        assert (part.name, item.what) == ("model", *change)
        assert item.shown is not None
        assert item.shown.text.decode() in texts or not texts
        assert len(item.shown.text.decode()) <= 8
        assert [a.encode(item.shown.text), b.encode(item.shown.text)] == [item.shown.one, item.shown.other]
        assert item.shown.one != item.shown.other


def test_tampering_with_a_rank_file_is_found() -> None:
    with pytest.warns(subword.SubwordWarning):
        lines = tiktoken.write(spec_of(model=bpe(MERGES, "rank"), stages=(Split("gpt2"),))).splitlines()

    def read(lines: list[bytes]) -> Tokenizer:
        return Tokenizer(tiktoken.read(Input(b"\n".join(lines), "ranks", pattern="gpt2", special_tokens={})))

    one = read(lines)
    the, of = one.token_id(b"the"), one.token_id(b"of")
    tokens = [line.split() for line in lines]
    tokens[the][0], tokens[of][0] = tokens[of][0], tokens[the][0]
    for changed, what in (
        ([b" ".join(row) for row in tokens], f"id {the}, swapped with {of}"),
        (lines[:-1], f"id {len(lines) - 1}"),
        ([*lines[:-1], lines[0].split()[0][:2] + b"Fh " + lines[-1].split()[1]], f"id {len(lines) - 1}"),
    ):
        for a, b in ((one, read(changed)), (read(changed), one)):
            items = [item for part in differences.find(a, b) if part.name == "ids" for item in part.items]
            assert what in [item.what for item in items]
            assert any(item.shown is not None and a.encode(item.shown.text) == item.shown.one for item in items)


def test_a_normalizer_that_is_gone_shows() -> None:
    for name in ("no normalizer", "another normalizer"):
        (part,) = differences.find(Tokenizer(SPEC), Tokenizer(TAMPERED[name][0](SPEC)))
        assert part.items[0].shown is not None
        assert len(part.items[0].shown.text.decode()) <= 2


def test_swapped_ids_are_called_so() -> None:
    (part,) = differences.find(Tokenizer(SPEC), Tokenizer(swapped(SPEC)))
    assert [item.what for item in part.items] == ["id 257, swapped with 260", "id 260, swapped with 257"]


def test_each_difference_is_shown_by_itself() -> None:
    """Several at once: the text for each is not one on which another shows."""
    changed = with_stages(Lowercase(), SplitRegex(REGEX.replace("3", "1"), "oniguruma"))(swapped(SPEC))
    parts = {part.name: part for part in differences.find(Tokenizer(SPEC), Tokenizer(changed))}
    assert set(parts) == {"ids", "normalization", "split rules"}
    (split,) = parts["split rules"].items
    assert split.shown is not None
    assert split.shown.text == b"12"


def test_ranks_and_merges_that_come_to_the_same() -> None:
    by_merges, by_rank = (Tokenizer(spec_of(model=bpe(MERGES, priority))) for priority in ("merges", "rank"))
    assert differences.find(by_merges, by_rank) == []
    moved = Tokenizer(with_merges(3, 0, 1, 2, 4, 5, 6)(by_merges.spec))
    assert {part.name for part in differences.find(moved, by_rank)} == {"model", "merges"}


def test_between_families() -> None:
    text = ["the cat sat on the mat, of the cat", "of cats and mats"]
    bpe_tok = subword.train(text, vocab_size=270, pattern="gpt2")
    unigram = subword.train_sentencepiece(text, vocab_size=278)
    for one, other in ((bpe_tok, unigram), (unigram, bpe_tok)):
        parts = {part.name: part for part in differences.find(one, other, most=3)}
        assert {"model", "ids"} <= set(parts)
        assert parts["ids"].count >= 200
        assert len(parts["ids"].items) == 3
    everything = differences.find(bpe_tok, unigram, most=None)
    assert all(len(part.items) == part.count for part in everything)


def test_shortest() -> None:
    assert differences.shortest("naïve café".encode(), lambda text: "é".encode() in text) == "é".encode()
    assert differences.shortest(b"\xff\xfea", lambda text: b"\xfe" in text) == b"\xfe"
    assert differences.shortest(b"aaaa", lambda text: True) == b""


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, spec in (("a", SPEC), ("b", swapped(SPEC)), ("same", SPEC)):
        (tmp_path / f"{name}.subword").write_bytes(native.write(spec))
    a, b, same = (str(tmp_path / f"{name}.subword") for name in ("a", "b", "same"))
    assert main(["diff", a, same]) == 0
    assert "They are the same." in capsys.readouterr().out
    assert main(["diff", a, b]) == 1
    out = capsys.readouterr().out
    assert "They differ: ids (2)" in out
    assert "id 257, swapped with 260" in out
    assert "text of gives [260] and [257]" in out
    assert "\x1b" not in out
    assert main(["diff", a, b, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["same"] is False
    assert [(part["part"], part["count"]) for part in found["parts"]] == [("ids", 2)]
    assert found["parts"][0]["items"][0]["shown"]["text"] == "of"
    for arguments in ([a, str(tmp_path / "none.json")], [a], [a, b, "--pattern", "x", "--regex", "y"]):
        assert main(["diff", *arguments]) == 2
        assert capsys.readouterr().err.startswith("error: ")


def test_the_command_is_brief(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, size in (("a", 0), ("b", 40)):
        extra = [ExtraToken(400 + number, f"<{number}>\x1b[31m") for number in range(size)]
        (tmp_path / name).write_bytes(native.write(spec_of(*extra, stages=(Split("gpt2"),))))
    assert main(["diff", str(tmp_path / "a"), str(tmp_path / "b")]) == 1
    out = capsys.readouterr().out
    assert out.count("… 30 more; --all has them") == 2
    assert "\x1b" not in out
    assert main(["diff", str(tmp_path / "a"), str(tmp_path / "b"), "--all"]) == 1
    assert "more; --all" not in capsys.readouterr().out
