"""Stages in random order: the core gives the ids, the spans and the text that the plain-Python engine gives.

Run long by hand: `python tests/test_stage_spans.py FIRST LAST` tries the specs of these seeds.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from format_specs import bpe

from subword import ExtraToken, Spec, SubwordError, Tokenizer, charsmap
from subword.spec import BPE, DecodeSteps, Vocab
from subword.stages import (
    ByteAlphabet,
    CleanText,
    Digits,
    Lowercase,
    MatchTokens,
    Metaspace,
    Nmt,
    Normalize,
    PadChinese,
    Precompiled,
    PrefixSpace,
    Replace,
    ReplaceRegex,
    Split,
    SplitAt,
    SplitLength,
    SplitPunctuation,
    SplitRegex,
    SplitScripts,
    Strip,
    StripAccents,
    StripMarks,
)

LETTERS = [
    *"abcdeABC de\n\t.,!?'#0123_-|",
    *"éÉßİıΣςσ中文日ひカーДя한글é́ﬁ①½²٣🤗👩\u200d💻\u0301\u00a0\u3000\ufeff\ufffd\x00\x07\u2028▁Ġ<>",
]
EXPRESSIONS = [r"\s+", r" {2,}", "[aeiou]", r"\p{L}+", r"\d", r"[^\s]+|\s", r"\p{N}{1,3}", "a(?=b)", ".", "x*"]
RULES = charsmap.build({"ﬁ": "fi", "①": "1", "A": "a", "\u3000": " ", "½": "1/2", "de": "", "e\u0301": "é"})
MERGES = [(b"a", b"b"), (b"d", b"e"), (b" ", b"a"), (b"\xc3", b"\xa9"), (b"\xe4\xb8", b"\xad"), (b"\xe4", b"\xb8")]
MERGES = [MERGES[at] for at in (0, 1, 2, 3, 5, 4)]
EXTRA = (
    ExtraToken(400, "<s>"),
    ExtraToken(401, "ab", "added", single_word=True),
    ExtraToken(402, "文", "added", lstrip=True, rstrip=True),
    ExtraToken(403, "ABC", "added", normalized=True),
)
REWRITING = (Normalize, Lowercase, CleanText, PadChinese, StripAccents, Precompiled, StripMarks, Replace, ReplaceRegex)
REWRITING = (*REWRITING, Nmt, ByteAlphabet, Strip, Metaspace, PrefixSpace)  # type: ignore[assignment]
DROPPING = (CleanText, StripAccents, Precompiled, StripMarks, Replace, ReplaceRegex, Nmt, Strip, Metaspace)
DROPPING = (*DROPPING, SplitPunctuation, SplitAt, SplitScripts)  # type: ignore[assignment]
BEHAVIORS: list[Any] = ["removed", "isolated", "merged-with-previous", "merged-with-next", "contiguous"]


def stage(rng: random.Random) -> Any:
    choice, flip = rng.choice, lambda: rng.random() < 0.5
    forms: list[Any] = ["NFC", "NFD", "NFKC", "NFKD"]
    groupings: list[Any] = ["one", "three-left", "three-right"]
    places: list[Any] = ["missing", "first", "always", "never"]
    kinds: list[Any] = ["white-space", "numbers", "punctuation"]
    makers: list[Callable[[], Any]] = [
        lambda: Normalize(choice(forms)), lambda: Lowercase(flip()), CleanText, PadChinese, StripAccents, PrefixSpace,
        lambda: Precompiled(RULES), StripMarks, Nmt, ByteAlphabet, lambda: Strip(flip(), flip()),
        lambda: Replace(choice([" ", "a", "é", "ab"]), choice(["", "x", "▁", "yz"]), flip()),
        lambda: ReplaceRegex(choice(EXPRESSIONS), choice(["", "x", "▁", "yz"])),
        lambda: Metaspace(choice("▁_"), choice(places), flip(), flip()),
        lambda: Digits(choice(groupings)), lambda: Split(choice(["gpt2", "cl100k", "o200k"])),
        lambda: SplitRegex(choice(EXPRESSIONS), "oniguruma"), SplitPunctuation, SplitScripts,
        lambda: SplitAt("string", choice([" ", "a", "ab", "é"]), choice(BEHAVIORS), flip()),
        lambda: SplitAt("regex", choice(EXPRESSIONS), choice(BEHAVIORS), flip()),
        lambda: SplitAt(choice(kinds), "", choice(BEHAVIORS), flip()),
        lambda: SplitLength(rng.randint(1, 4)),
    ]  # fmt: skip
    return choice(makers)()


def is_form(stage: Any) -> bool:
    return isinstance(stage, Normalize)


def steps(rng: random.Random) -> DecodeSteps:
    rows: list[tuple[str, ...]] = [
        ("replace", "a", "z"), ("replace", "▁", " "), ("replace-regex", r"\s+", " "), ("byte-fallback",), ("fuse",),
        ("strip", " ", "1", "0"), ("byte-level",), ("word-piece", "##", "true"), ("metaspace", "▁", "true"),
        ("ctc", "a", "b", "true"), ("end-of-word", "d"), ("spaces",),
    ]  # fmt: skip
    return DecodeSteps((("spell-bytes",), *rng.choices(rows, k=rng.randint(1, 3))))


def spec_of(rng: random.Random) -> Spec:
    made = [stage(rng) for _ in range(rng.randint(1, 4))]
    # One form: what one takes apart and the next composes again has its own spans in the reference, not in the core.
    made = [each for at, each in enumerate(made) if not is_form(each) or not any(map(is_form, made[:at]))]
    if rng.random() < 0.5:
        made.insert(rng.randint(0, len(made)), MatchTokens(normalized=True))
    if rng.random() < 0.7:
        made.insert(0, MatchTokens())
    plain: Any = bpe(MERGES)
    characters = BPE(
        Vocab.of(
            (entry.encode(), at) for at, entry in enumerate(["?", "a", "b", "ab", *sorted({*LETTERS[:-20]} - {*"?ab"})])
        ),
        np.array([[1, 2]], dtype=np.uint32),
        unit="character",
        unk=0,
        fuse_unk=rng.random() < 0.5,
    )
    model = rng.choice([plain, plain, characters])
    decode = {"decode": steps(rng)} if rng.random() < 0.7 else {}
    return Spec(tuple(made), model, EXTRA, **decode)


def check(seed: int) -> str:
    """Compares one spec on some texts; says how it went."""
    rng = random.Random(seed)
    try:
        spec = spec_of(rng)
        core, slow = Tokenizer(spec), Tokenizer(spec, engine="reference")
    except SubwordError:
        return "refused"
    kept = not any(isinstance(stage, DROPPING) for stage in spec.stages) and spec.model.unit == "byte"
    for _ in range(8):
        text = "".join(rng.choices([*LETTERS, "<s>", "ab", "文", "ABC"], k=rng.randint(0, 14)))
        if any(is_form(stage) and stage.form == "NFKC" for stage in spec.stages):
            # The core takes every mark with the character before it, the reference only one that they compose with.
            text = text.replace("\u0301", "")
        data: Any = text.encode() + b"\xff\xe4\xb8a" if rng.random() < 0.2 else text
        policy: Any = {"allowed_special": "all", "disallowed_special": ()}
        try:
            theirs = slow.tokenize(data, **policy)
        except SubwordError as error:
            with pytest.raises(type(error)):
                core.tokenize(data, **policy)
            continue
        ours = core.tokenize(data, **policy)
        told = (seed, data, spec.stages)
        ids = ours.ids.tolist()
        assert ids == theirs.ids.tolist(), told
        assert ours.byte_spans.tolist() == theirs.byte_spans.tolist(), told
        assert ours.char_spans.tolist() == theirs.char_spans.tolist(), told
        size, covered, last = len(data if isinstance(data, bytes) else data.encode()), 0, 0
        for start, end in ours.byte_spans.tolist():
            assert last <= start <= end <= size, told
            assert start <= covered or not kept, told
            last, covered = start, max(covered, end)
        assert covered == size or not kept, told
        assert core.decode(ids) == slow.decode(ids), told
        assert core.decode_bytes(ids) == slow.decode_bytes(ids), told
    return "kept" if kept else "dropped"


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_core_and_reference(first: int) -> None:
    found = [check(seed) for seed in range(first, first + 50)]
    assert min(found.count("kept"), found.count("dropped")) >= 3
    assert found.count("refused") < 10


if __name__ == "__main__":
    for number in range(int(sys.argv[1]), int(sys.argv[2])):
        check(number)
