"""Byte patches: arrays against the definition, and the definition against sums done by hand."""

from __future__ import annotations

import random

import numpy as np
import pytest
from texts import TEXTS

import subword
from subword import SubwordValueError
from subword.audits import patches, patches_reference
from subword.audits.patches import ByteModel, agreement, starts, threshold_for


def test_witten_bell_by_hand() -> None:
    counts = patches_reference.count([b"abab"], 1)
    assert counts == {b"": {97: 2, 98: 2}, b"a": {98: 2}, b"b": {97: 1}}
    empty = patches_reference.distribution(counts, b"")
    assert empty[97] == empty[98] == (2 + 2 / 256) / 6
    assert empty[0] == (2 / 256) / 6
    after_a = patches_reference.distribution(counts, b"a")
    assert after_a[98] == (2 + empty[98]) / 3
    assert after_a[0] == pytest.approx(empty[0] / 3)
    assert sum(after_a) == pytest.approx(1)
    assert patches_reference.distribution(counts, b"z") == empty
    assert patches_reference.entropy([0.5, 0.25, 0.25]) == 1.5


@pytest.mark.parametrize("order", range(8))
def test_arrays_and_reference_agree(order: int) -> None:
    rng = random.Random(order)
    for round in range(15):
        alphabet = [b"ab", b"ab\x00\xff", bytes(range(256))][round % 3]
        texts = [bytes(rng.choices(alphabet, k=rng.randrange(1, 60))) for _ in range(rng.randrange(1, 4))]
        if round % 4 == 1:
            texts.insert(1, b"")
        counts, model = patches_reference.count(texts, order), ByteModel.of(texts, order)
        for text in [*texts, bytes(rng.choices(b"ab\x00\xffz", k=40)), b""]:
            expected, values = patches_reference.entropies(counts, text, order), model.entropies(text)
            np.testing.assert_allclose(values, expected, atol=1e-9)
            for rule in patches.RULES:
                cut = starts(values, 1.234567, rule)  # type: ignore[arg-type]
                assert cut.tolist() == patches_reference.starts(values.tolist(), 1.234567, rule)


def test_hurtful_texts() -> None:
    texts = list(TEXTS.values())
    model = ByteModel.of(texts, 3)
    for text in texts:
        values = model.entropies(text)
        assert len(values) == len(text.encode()) and np.all((values >= 0) & (values <= 8 + 1e-9))


def test_what_follows_surely_is_no_start() -> None:
    text = "".join(random.Random(3).choices(["lightning ", "thunder ", "rain "], k=2000))
    values = ByteModel.of([text]).entropies(text)
    found = set(starts(values, 1.0).tolist())
    words = {at for at in range(len(text)) if at == 0 or text[at - 1] == " "}
    assert found == words
    tok = subword.train([text], algorithm="word", pattern=subword.SplitRegex(r"[a-z]+ "))
    assert agreement(tok, text, starts(values, 1.0)) == {"precision": 1.0, "recall": 1.0, "f1": 1.0}
    half = agreement(tok, text, np.array(sorted(words))[::2])
    assert half["precision"] == 1.0 and half["recall"] == pytest.approx(0.5, abs=0.001)
    assert agreement(tok, "", np.zeros(0, dtype=np.int64)) == {"precision": None, "recall": None, "f1": None}


@pytest.mark.parametrize("rule", patches.RULES)
@pytest.mark.parametrize("patch_bytes", [1, 2.5, 4.5, 8, 1e9])
def test_threshold_is_the_lowest_for_the_length(rule: patches.Rule, patch_bytes: float) -> None:
    rng = np.random.default_rng(1)
    texts = [rng.random(size) for size in (500, 1, 0, 700)]
    threshold = threshold_for(texts, patch_bytes, rule)
    size = sum(map(len, texts))

    def patches_with(value: float) -> int:
        return sum(len(starts(text, value, rule)) for text in texts)

    most = max(size / patch_bytes, 3)  # each text starts one
    assert patches_with(threshold) <= most
    if np.isfinite(threshold) and patch_bytes < size / 3:
        assert patches_with(np.nextafter(threshold, -np.inf)) > int(most)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ByteModel.of(["a"], 8), "at most 7 bytes"),
        (lambda: ByteModel.of(["a"], -1), "order must be an integer"),
        (lambda: ByteModel.of([""]), "nothing to learn from"),
        (lambda: ByteModel.of("text"), "must be a list"),
        (lambda: threshold_for([np.ones(3)], 0.5), "patch_bytes must be a number from 1 on"),
        (lambda: threshold_for([np.ones(3)], float("nan")), "patch_bytes must be a number from 1 on"),
        (lambda: starts(np.ones(3), 1.0, "local"), "unknown rule"),
    ],
)
def test_bad_calls(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(SubwordValueError, match=message):
        call()
