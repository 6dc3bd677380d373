"""Rows of one length: padding, truncation, windows, pairs. What HF tokenizers gives is what we give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from format_specs import spec_of

from subword import ExtraToken, SubwordValueError, Template, Tokenizer, UnknownTokenError, formats
from subword.formats import native, tokenizer_json

CLS, SEP, PAD = 260, 261, 262
SPEC = spec_of(
    *(ExtraToken(id, text) for id, text in ((CLS, "[CLS]"), (SEP, "[SEP]"), (PAD, "[PAD]"))),
    template=Template((CLS, "A", SEP), (CLS, "A", SEP, "B", SEP)),
    roles={"pad": PAD},
)
TOK = Tokenizer(SPEC)
A, B, C = (TOK.encode(letter)[0] for letter in "abc")


def test_padding() -> None:
    made = TOK.encode_padded(["ab", "c", ""])
    assert made.ids.tolist() == [[CLS, A, B, SEP], [CLS, C, SEP, PAD], [CLS, SEP, PAD, PAD]]
    assert made.attention_mask.tolist() == [[1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 0]]
    assert made.texts.tolist() == [0, 1, 2]
    assert {array.dtype for array in (made.ids, made.attention_mask, made.type_ids, made.texts)} == {np.dtype("int64")}
    left = TOK.encode_padded(["ab", "c"], padding_side="left", pad_id=A, pad_to_multiple_of=3, add_special_tokens=False)
    assert left.ids.tolist() == [[A, A, B], [A, A, C]]
    assert left.attention_mask.tolist() == [[0, 1, 1], [0, 0, 1]]
    assert TOK.encode_padded(["a"], length=5).ids.shape == (1, 5)
    assert TOK.encode_padded([]).ids.shape == (0, 0)
    assert "4 tokens, 9 of them no padding" in repr(made)


def test_windows_cover_the_text() -> None:
    text = "abcabcabca"
    made = TOK.encode_padded(["a", text], max_length=6, stride=1)
    assert made.texts.tolist() == [0, 1, 1, 1]
    assert [TOK.decode(row[mask == 1].tolist()) for row, mask in zip(made.ids, made.attention_mask, strict=True)] == [
        "[CLS]a[SEP]",
        "[CLS]abca[SEP]",
        "[CLS]abca[SEP]",
        "[CLS]abca[SEP]",
    ]


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("add", [True, False])
def test_as_hf_tokenizers(side: Any, add: bool) -> None:
    """Over all small sizes: one text and pairs, cut in each way, with and without windows."""
    hf = pytest.importorskip("tokenizers")
    theirs = hf.Tokenizer.from_str(tokenizer_json.write(SPEC.replace(roles={})).decode())
    theirs.post_processor = hf.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", CLS), ("[SEP]", SEP)]
    )
    names = {"longest": "longest_first", "first": "only_first", "second": "only_second"}
    compared = 0
    texts, pairs = ["abcabcab", "ab", "the cat", ""], ["cba", "the cats sat", "b", "bb"]
    for max_length in range(3, 16):
        for stride in (None, 0, 1, 3):
            for truncate, seconds in (("longest", None), ("first", None), *((name, pairs) for name in names)):
                options: Any = {"max_length": max_length, "stride": stride, "truncate": truncate}
                options |= {"truncation_side": side, "add_special_tokens": add, "padding_side": side}
                try:
                    made = TOK.encode_padded(texts, seconds, **options)
                    theirs.enable_truncation(max_length, stride=stride or 0, strategy=names[truncate], direction=side)
                except ValueError:  # ours are, too
                    continue
                theirs.enable_padding(direction=side, pad_id=PAD, pad_token="[PAD]")
                inputs = texts if seconds is None else list(zip(texts, seconds, strict=True))
                rows = theirs.encode_batch(inputs, add_special_tokens=add)
                wanted = [each for row in rows for each in [row, *(row.overflowing if stride is not None else [])]]
                width = max(sum(each.attention_mask) for each in wanted)
                assert made.attention_mask.sum(axis=1).tolist() == [sum(each.attention_mask) for each in wanted]
                for name, own in (("ids", "ids"), ("attention_mask", "attention_mask"), ("type_ids", "type_ids")):
                    for ours, each in zip(getattr(made, own).tolist(), wanted, strict=True):
                        row = getattr(each, name)
                        row = row[len(row) - width :] if side == "left" else row[:width]
                        assert ours == row, (options, name)
                compared += 1
    assert compared > 100


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"texts": "abc"}, "texts must be a list"),
        ({"pairs": ["a"]}, "1 pairs for 2 texts"),
        ({"max_length": 1}, "no room for the 1 more tokens of the template"),
        ({"max_length": 0}, "max_length must be an integer of at least 1"),
        ({"stride": 1}, "a stride needs max_length"),
        ({"stride": 1, "max_length": 3}, "stride=1 must be smaller than the 1 tokens"),
        ({"stride": 1, "max_length": 5, "pairs": ["a", "b"]}, 'needs truncate="first" or "second"'),
        ({"truncate": "second"}, "needs pairs"),
        ({"truncate": "first", "max_length": 4, "pairs": ["abc", "abc"]}, "leaves nothing"),
        ({"truncate": "most"}, "unknown truncate"),
        ({"truncation_side": "up"}, "unknown truncation_side"),
        ({"padding_side": "up"}, "unknown padding_side"),
        ({"length": 2}, "a text has 4 tokens, more than length=2"),
        ({"pad_to_multiple_of": 0}, "pad_to_multiple_of must be an integer of at least 1"),
    ],
)
def test_bad_calls(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(SubwordValueError, match=message):
        TOK.encode_padded(**{"texts": ["ab", "c"], **arguments})


def test_without_a_pad_token() -> None:
    plain = Tokenizer(SPEC.replace(roles={}))
    assert plain.encode_padded(["ab", "bc"]).ids.shape == (2, 4)
    with pytest.raises(SubwordValueError, match="names no pad token: pass pad_id"):
        plain.encode_padded(["ab", "c"])
    with pytest.raises(UnknownTokenError):
        plain.encode_padded(["ab", "c"], pad_id=9999)


@pytest.mark.parametrize("kind", ["roberta", "xlnet"])
def test_type_ids_are_those_of_the_template(kind: str) -> None:
    """RoBERTa has one type for all; XLNet's template stands behind the texts, its last token of a type of its own."""
    hf = pytest.importorskip("tokenizers")
    theirs = hf.Tokenizer.from_str(tokenizer_json.write(SPEC.replace(roles={})).decode())
    if kind == "roberta":
        theirs.post_processor = hf.processors.RobertaProcessing(("[SEP]", SEP), ("[CLS]", CLS))
    else:
        theirs.post_processor = hf.processors.TemplateProcessing(
            single="$A [SEP] [CLS]:2", pair="$A [SEP] $B:1 [SEP]:1 [CLS]:2",
            special_tokens=[("[CLS]", CLS), ("[SEP]", SEP)],
        )  # fmt: skip
    spec = tokenizer_json.read(theirs.to_str().encode(), "made here")
    for written in (tokenizer_json.write(spec.replace(roles={})), native.write(spec)):
        ours = Tokenizer(formats.read(written))
        assert ours.spec.template == spec.template
        for pairs in (None, ["the cat"]):
            made = ours.encode_padded(["ab"], pairs, pad_id=PAD)
            wanted = theirs.encode("ab", None if pairs is None else pairs[0])
            assert (made.ids[0].tolist(), made.type_ids[0].tolist()) == (wanted.ids, wanted.type_ids)
