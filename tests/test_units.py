"""SentencePiece's models, unit by unit: ids equal those of `sentencepiece` where a text is long, where units begin and
end in odd ways, and where nothing parts them."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from test_sentencepiece import MODELS, PROSE, trained

from subword import ExtraToken, Spec, Tokenizer
from subword.formats import sentencepiece
from subword.stages import MatchTokens, Metaspace, Replace

spm = pytest.importorskip("sentencepiece")

ODD = (
    *" \n\t\u3000\u00a0\u2581\u0301\u0308\u3099\u200b\ufeff\x00½À①ﬁ한aA,.1'\"",
    *("  ", "\r\n", "\u2581\u2581", "e\u0301", "か\u3099", "が", "ﾊﾞ", "\u1112\u1161\u11ab", "😀", "世界", "。", "``"),
    *("<s>", "</s>", "<unk>", "<0x41>", "the ", " the", "ing", "\u0e33", "\u00ad", "\u2028"),
)

LOADED: dict[str, tuple[Tokenizer, Any]] = {}


@pytest.fixture(params=MODELS)
def pair(request: pytest.FixtureRequest) -> tuple[Tokenizer, Any]:
    name = request.param
    if name not in LOADED:
        model = trained(**MODELS[name])
        tok = Tokenizer(sentencepiece.read(model, name))
        LOADED[name] = tok, spm.SentencePieceProcessor(model_proto=model)
    return LOADED[name]


def ids(tok: Tokenizer, text: str, threads: int = 1) -> list[int]:
    found: list[int] = tok.encode_batch([text], threads=threads, disallowed_special=())[0]
    return found


def test_units_that_begin_and_end_in_odd_ways(pair: tuple[Tokenizer, Any]) -> None:
    tok, other = pair
    draw = random.Random(1)
    pieces = [other.id_to_piece(id) for id in range(other.get_piece_size())]
    for _ in range(400):
        parts = draw.choices(ODD, k=draw.randint(1, 30)) + draw.choices(pieces, k=draw.choice((0, 0, 20)))
        draw.shuffle(parts)
        text = "".join(parts)
        assert ids(tok, text) == other.encode(text), text


def test_long_lines(pair: tuple[Tokenizer, Any]) -> None:
    """So long that sums are taken anew again and again."""
    tok, other = pair
    draw = random.Random(2)
    text = " ".join("".join(draw.sample(PROSE, len(PROSE))) for _ in range(6))
    assert ids(tok, text) == other.encode(text)


def test_a_cut_text_is_shared_out_to_threads_and_limits(pair: tuple[Tokenizer, Any]) -> None:
    tok, _ = pair
    draw = random.Random(3)
    text = "".join(draw.sample(PROSE, len(PROSE))) * 3
    assert ids(tok, text, threads=3) == ids(tok, text)
    for _ in range(30):
        text = "".join(draw.choices([*ODD, "word ", " two", "three, "], k=12))
        limit = draw.randint(1, 12)
        kept = tok.truncate(text, limit, disallowed_special=())
        fitting = [end for end in range(len(text) + 1) if len(ids(tok, text[:end])) <= limit]
        assert kept == text[: max(fitting)], (text, limit)


REPLACE = Replace(" ", "\u2581", False)
ALIKE = [
    (REPLACE,),
    *((Metaspace("\u2581", place, False, True),) for place in ("missing", "first", "always", "never")),
    *((Metaspace("\u2581", place, False, False), REPLACE) for place in ("missing", "first", "always", "never")),
]


@pytest.mark.parametrize("stages", ALIKE)
@pytest.mark.parametrize("name", ["merges, bytes", "merges, user-defined"])
def test_stages_of_tokenizers_that_do_the_same(name: str, stages: tuple[Any, ...]) -> None:
    """With spans, these stages make a text anew; without, units are looked up as they stand there."""
    model = sentencepiece.read(trained(**MODELS[name]), name).model
    extra = (ExtraToken(5000, "<s>"), ExtraToken(5001, "llo", "added"), ExtraToken(5002, "\u2581x", normalized=True))
    tok = Tokenizer(Spec((MatchTokens(False), *stages, MatchTokens(True)), model, extra))
    assert any(step == "unit met before" for step, _, _ in tok.plan())
    draw = random.Random(4)
    for _ in range(300):
        text = "".join(draw.choices((*ODD, "\ud800", "\udcff", "llo", " x", *PROSE[:5]), k=draw.randint(0, 12)))
        for allowed in ("all", ("<s>", "llo"), ()):
            found = tok.encode(text, allowed_special=allowed, disallowed_special=())
            assert found == tok.tokenize(text, allowed_special=allowed, disallowed_special=()).ids.tolist(), text
    text = " ".join(draw.choices(PROSE, k=300))
    assert ids(tok, text, threads=3) == tok.tokenize(text, disallowed_special=()).ids.tolist()


def tiny(pieces: dict[str, float], kind: int, **settings: Any) -> tuple[Tokenizer, Any]:
    """A model without normalization, of these pieces and `<unk>`; merges by score if `kind` is 2."""
    from sentencepiece import sentencepiece_model_pb2

    model = sentencepiece_model_pb2.ModelProto()
    for piece, score, type in (("<unk>", 0.0, 2), *((piece, score, 1) for piece, score in pieces.items())):
        row = model.pieces.add()
        row.piece, row.score, row.type = piece, score, type
    if settings.get("byte_fallback"):
        for byte in range(256):
            row = model.pieces.add()
            row.piece, row.score, row.type = f"<0x{byte:02X}>", 0.0, 6
    model.trainer_spec.model_type = kind
    model.trainer_spec.byte_fallback = settings.get("byte_fallback", False)
    model.normalizer_spec.add_dummy_prefix = False
    model.normalizer_spec.remove_extra_whitespaces = False
    data = model.SerializeToString()
    return Tokenizer(sentencepiece.read(data, "tiny")), spm.SentencePieceProcessor(model_proto=data)


@pytest.mark.parametrize("margin", [2**-6, 2**-8, 2**-10, 2**-12, 2**-16])
def test_where_a_word_stands_decides_by_rounding(margin: float) -> None:
    """The same word has other tokens behind much text than behind little: word by word would be wrong."""
    tok, other = tiny({"a": -1.0, "b": -1.0, "ab": -2.0 - margin, "\u2581": -0.75, "c": -1.25}, 1)
    text = "ab cab abc " * 12_000
    found = ids(tok, text)
    assert found == other.encode(text)
    words = [tuple(word) for is_space, word in itertools.groupby(found, lambda id: id == 4) if not is_space]
    assert margin >= 2**-6 or len({word for word in words if 5 not in word}) > 1


def test_entries_of_users_own_raise_sums() -> None:
    options = {"user_defined_symbols": ["ab", "the", "。", "<sep>"], "vocab_size": 600}
    model = trained(**options)
    tok, other = Tokenizer(sentencepiece.read(model, "own")), spm.SentencePieceProcessor(model_proto=model)
    draw = random.Random(4)
    for length in (3, 300, 60_000):
        text = "".join(draw.choices(["ab", "the", "。", "<sep>", "x", " ", "cat", "ing ", "世"], k=length))
        assert ids(tok, text) == other.encode(text)


def test_merges_take_linear_time_without_spaces() -> None:
    """10 MB of one run each: with the square of it, this would not end."""
    tok, other = tiny({"a": -3.0, "b": -4.0, "ab": -1.0, "aba": -2.0, "日": -5.0, "本": -6.0}, 2, byte_fallback=True)
    draw = random.Random(5)
    for letters in ("a", "ab", "日本語"):
        text = "".join(draw.choices(letters, k=1_000_000 // len(letters[0].encode()))) * 10
        found = tok.encode_to_numpy(text)
        start = text[:20_000]
        assert tok.decode(found) == text
        assert ids(tok, start) == other.encode(start)
        assert found[:10_000].tolist() == other.encode(start)[:10_000]


def test_what_is_known_of_units_is_in_the_plan() -> None:
    tok, _ = tiny({"a": -1.0, "\u2581a": -1.0}, 1)
    assert "unit met before" in [row[0] for row in tok.plan()]
