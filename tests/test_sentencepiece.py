"""SentencePiece's files and what they mean: ids equal those of `sentencepiece`, on models that are trained here."""

from __future__ import annotations

import io
import json
import random
import struct
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from texts import SURROGATES, TEXTS
from vocabularies import shared_folder

import subword
from subword import Tokenizer, formats
from subword.errors import FormatError, SubwordError, SubwordValueError
from subword.formats import native, sentencepiece, wire
from subword.formats import sentencepiece_model as proto
from subword.formats.sentencepiece import looks_like
from subword.spec import BYTE, ScoreBPE, Unigram

spm = pytest.importorskip("sentencepiece")

SHARED = shared_folder()
PROSE = [text for text in TEXTS.values() if 0 < len(text) < 4000 and "\0" not in text]


def trained(**options: Any) -> bytes:
    """A model file, trained on the texts that hurt."""
    out = io.BytesIO()
    lines = [line for text in PROSE for line in text.splitlines() if line.strip()] * 3
    settings = {
        "vocab_size": 700,
        "hard_vocab_limit": False,
        "character_coverage": 0.98,
        "minloglevel": 2,
        "num_threads": 1,
        **options,
    }
    spm.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=out, **settings)
    return out.getvalue()


MODELS: dict[str, dict[str, Any]] = {
    "unigram": {},
    "unigram, bytes": {"byte_fallback": True, "vocab_size": 1000},
    "unigram, identity": {"normalization_rule_name": "identity"},
    "unigram, lossless": {
        "normalization_rule_name": "identity",
        "add_dummy_prefix": False,
        "remove_extra_whitespaces": False,
        "byte_fallback": True,
        "vocab_size": 1000,
        "allow_whitespace_only_pieces": True,
    },
    "unigram, case folded": {"normalization_rule_name": "nmt_nfkc_cf", "split_digits": True},
    "unigram, user-defined": {
        "user_defined_symbols": ["<sep>", "low", "lower", "é", "▁new", "ﬁ", "a b"],
        "control_symbols": ["<cls>"],
    },
    "unigram, spaces behind": {"treat_whitespace_as_suffix": True},
    "unigram, across spaces": {"split_by_whitespace": False, "split_by_unicode_script": False},
    "merges": {"model_type": "bpe"},
    "merges, bytes": {"model_type": "bpe", "byte_fallback": True, "vocab_size": 1000},
    "merges, lossless": {
        "model_type": "bpe",
        "normalization_rule_name": "identity",
        "add_dummy_prefix": False,
        "remove_extra_whitespaces": False,
        "byte_fallback": True,
        "vocab_size": 1000,
        "allow_whitespace_only_pieces": True,
    },
    "merges, user-defined": {
        "model_type": "bpe",
        "user_defined_symbols": ["<sep>", "low", "lower", "é", "▁new", "ﬁ"],
        "control_symbols": ["<cls>"],
    },
    "merges, spaces behind": {"model_type": "bpe", "treat_whitespace_as_suffix": True},
}


@pytest.fixture(scope="module", params=list(MODELS))
def pair(request: pytest.FixtureRequest) -> tuple[Tokenizer, Any, bytes]:
    """Our tokenizer and theirs, from one file."""
    data = trained(**MODELS[request.param])
    return Tokenizer(formats.read(data)), spm.SentencePieceProcessor(model_proto=data), data


def random_texts(theirs: Any, count: int) -> list[str]:
    """Random Unicode, and random pieces glued together."""
    generator = random.Random(5)
    pieces = [theirs.id_to_piece(id) for id in range(theirs.get_piece_size()) if not theirs.is_control(id)]
    texts = []
    for _ in range(count):
        texts.append(
            "".join(generator.choices(pieces, k=generator.randint(1, 30))).replace("▁", generator.choice("▁ "))
        )
        texts.append("".join(chr(generator.choice([*range(1, 0xD800), *range(0xE000, 0x10000)])) for _ in range(12)))
        texts.append("".join(generator.choices("ab lower 12\t\n\u3000é", k=generator.randint(1, 60))))
    return texts


def test_ids_are_those_of_sentencepiece(pair: tuple[Tokenizer, Any, bytes]) -> None:
    ours, theirs, _ = pair
    for text in [*PROSE, *random_texts(theirs, 150), "a" * 700, "!" * 900, "ab" * 400, " " * 50, ""]:
        assert ours.encode_ordinary(text) == theirs.encode(text), text


def test_spans_are_those_of_sentencepiece(pair: tuple[Tokenizer, Any, bytes]) -> None:
    ours, theirs, _ = pair
    if BYTE in ours.spec.model.kinds:
        pytest.skip("bytes have spans of their own here; there the last has all of the character")
    for text in [*PROSE[:80], *random_texts(theirs, 20)]:
        pieces = theirs.encode(text, return_type="proto").pieces
        _, spans, _ = ours._engine.encode_with_spans(text, ours._ordinary_policy, False)
        assert spans.tolist() == [[piece.begin, piece.end] for piece in pieces], text


def test_texts_decode_as_in_sentencepiece(pair: tuple[Tokenizer, Any, bytes]) -> None:
    ours, theirs, _ = pair
    for text in [*PROSE, *random_texts(theirs, 40)]:
        ids = theirs.encode(text)
        assert ours.decode(ids) == theirs.decode(ids), text
    generator = random.Random(2)
    byte_free = [id for id in range(theirs.get_piece_size()) if not theirs.is_byte(id) and not theirs.is_control(id)]
    for _ in range(200):
        ids = generator.choices(byte_free, k=generator.randint(1, 8))
        assert ours.decode(ids) == theirs.decode(ids), ids


def test_the_plain_python_engine_gives_the_same(pair: tuple[Tokenizer, Any, bytes]) -> None:
    ours, _, _ = pair
    plain = Tokenizer(ours.spec, engine="reference")
    for text in [text for text in PROSE if len(text) < 120][:60]:
        assert plain.encode_ordinary(text) == ours.encode_ordinary(text), text
        ids = ours.encode_ordinary(text)
        assert plain.decode(ids) == ours.decode(ids)


def test_files_are_written_and_read(pair: tuple[Tokenizer, Any, bytes], tmp_path: Path) -> None:
    """What is written means the same to sentencepiece; read again, it is the same tokenizer."""
    ours, theirs, _ = pair
    assert native.read(native.write(ours.spec), "x") == ours.spec
    written = sentencepiece.write(ours.spec)
    assert formats.read(written) == ours.spec
    again = spm.SentencePieceProcessor(model_proto=written)
    assert again.get_piece_size() == theirs.get_piece_size()
    for text in PROSE:
        assert again.encode(text) == theirs.encode(text)
    path = tmp_path / "x.model"
    ours.save(path)
    assert subword.load(path).spec == ours.spec


def test_control_symbols_are_special_tokens() -> None:
    data = trained(control_symbols=["<cls>"])
    tok = Tokenizer(formats.read(data))
    theirs = spm.SentencePieceProcessor(model_proto=data)
    id = theirs.piece_to_id("<cls>")
    assert tok.token_id("<cls>") == id
    assert tok.encode_ordinary("a <cls> b") == theirs.encode("a <cls> b")
    assert id not in tok.encode_ordinary("a <cls> b")
    assert id in tok.encode("a <cls> b", allowed_special="all")
    with pytest.raises(SubwordError, match="<cls>"):
        tok.encode("a <cls> b")
    assert tok.spec.roles == {"unk": 0, "bos": 1, "eos": 2}


# ======================== damaged files ========================


def test_damaged_files_are_errors_and_never_more() -> None:
    """Bytes flipped, cut out and put in: a FormatError, or a tokenizer that encodes whatever it is given."""
    generator = random.Random(1)
    for kind in ({}, {"model_type": "bpe", "byte_fallback": True, "vocab_size": 1000}):
        data = trained(**kind)
        refused = 0
        for _ in range(150):
            changed = bytearray(data)
            for _ in range(generator.randint(1, 4)):
                at = generator.randrange(len(changed))
                match generator.randrange(3):
                    case 0:
                        changed[at] ^= 1 << generator.randrange(8)
                    case 1:
                        del changed[at : at + generator.randint(1, 50)]
                    case _:
                        changed[at:at] = generator.randbytes(generator.randint(1, 5))
            try:
                tok = Tokenizer(sentencepiece.read(bytes(changed), "x"))
            except FormatError:
                refused += 1
                continue
            ids = tok.encode_ordinary("low lower ﬁ ½ \u3000 \U0001f600 é日本")
            tok.decode_bytes(ids)
        assert refused > 30


def _model(**changes: Any) -> wire.Message:
    pieces = [("<unk>", 0.0, proto.UNKNOWN), ("a", -1.0, proto.NORMAL), ("▁", -2.0, proto.NORMAL)]
    pieces += changes.pop("more", [])
    rows = [wire.Message(proto.PIECE, {"piece": p, "score": s, "type": t}) for p, s, t in pieces]
    trainer = wire.Message(proto.TRAINER, changes.pop("trainer", {}))
    normalizer = wire.Message(proto.NORMALIZER, changes.pop("normalizer", {}))
    return wire.Message(
        proto.MODEL, {"pieces": rows, "trainer_spec": trainer, "normalizer_spec": normalizer, **changes}
    )


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"more": [("a", -1.0, proto.NORMAL)]}, "twice"),
        ({"more": [("", -1.0, proto.NORMAL)]}, "empty"),
        ({"more": [("b", -1.0, 9)]}, "type 9"),
        ({"more": [("b", float("nan"), proto.NORMAL)]}, "nan"),
        ({"more": [("b", float("inf"), proto.NORMAL)]}, "inf"),
        ({"more": [("<u>", 0.0, proto.UNKNOWN)]}, "one unknown piece"),
        ({"more": [("<0x41>", 0.0, proto.BYTE)]}, "no byte fallback"),
        ({"more": [("<0x41>", 0.0, proto.BYTE)], "trainer": {"byte_fallback": True}}, "byte fallback needs"),
        ({"trainer": {"model_type": 7}}, "model type 7"),
        ({"normalizer": {"precompiled_charsmap": b"\1\2"}}, "damaged"),
        ({"normalizer": {"precompiled_charsmap": struct.pack("<I", 2**31) + bytes(40)}}, "damaged"),
        ({"pieces": []}, "no pieces"),
    ],
)
def test_models_that_contradict_themselves(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(FormatError, match=problem):
        Tokenizer(sentencepiece.read(proto.write(_model(**changes)), "x.model"))


def test_rules_that_lead_out_of_their_table() -> None:
    """An altered trie gives other texts, and never reads what is not there."""
    generator = random.Random(3)
    for _ in range(200):
        units = [generator.getrandbits(32) for _ in range(generator.choice([1, 256, 300]))]
        rules = struct.pack(f"<I{len(units)}I", 4 * len(units), *units) + generator.randbytes(9) + b"\0"
        tok = Tokenizer(sentencepiece.spec_of(_model(normalizer={"precompiled_charsmap": rules})))
        for text in ("abc", "\u3000é日本", "a" * 100):
            tok.encode_ordinary(text)


def test_bytes_and_lone_surrogates(pair: tuple[Tokenizer, Any, bytes]) -> None:
    ours, theirs, _ = pair
    for data in (b"\xff", b"a\xc3", b"\xa9a", b"ab\xf0\x9f", b"\xe3\x81 x"):
        assert ours.encode_ordinary(data) == theirs.encode(data)
    for text in SURROGATES.values() if isinstance(SURROGATES, dict) else SURROGATES:
        ours.encode_ordinary(text)


def test_what_the_format_cannot_hold() -> None:
    tok = Tokenizer(formats.read(trained()))
    model = tok.spec.model
    assert isinstance(model, Unigram)
    double = Unigram(model.vocab, model.scores, model.unk, model.kinds, "float64")
    with pytest.raises(SubwordValueError, match="64 bits"):
        sentencepiece.write(tok.spec.replace(model=double))
    with pytest.raises(SubwordValueError, match="BPE"):
        sentencepiece.write(subword.train(["aaa"], vocab_size=257).spec)
    assert isinstance(formats.read(trained(model_type="bpe")).model, ScoreBPE)


# ======================== real files ========================

REAL = [
    "albert_retrained",
    "laser50k",
    "llama2_spm",
    "mistral_v1",
    "mistral_v3",
    "nai_t5",
    "nerdstash",
    "t5",
    "xlnet_spm",
]


@pytest.mark.skipif(SHARED is None, reason="no conformance kit: set SUBWORD_SHARED to the folder that has it")
@pytest.mark.parametrize("name", REAL)
def test_real_files(name: str) -> None:
    assert SHARED is not None
    kit = SHARED / "conformance"
    expected = json.loads((kit / "expected" / f"{name}.json").read_text("utf-8"))
    texts = json.loads((kit / "texts.json").read_text("utf-8"))
    tok = subword.load(kit / "files" / expected["file"])
    for text, ids, *rest in expected["rows"]:
        text = texts[text] if isinstance(text, int) else text
        assert tok.encode_ordinary(text) == ids, text
        decoded = rest[-1] if rest else None
        if isinstance(decoded, str) and "\ufffd" not in decoded:
            assert tok.decode(ids) == decoded, text
    assert formats.read(sentencepiece.write(tok.spec)) == tok.spec


def test_every_script_round_trips_without_loss() -> None:
    tok = Tokenizer(formats.read(trained(**MODELS["unigram, lossless"])))
    text = "".join(chr(c) for c in range(1, 0x3000) if unicodedata.category(chr(c)) not in ("Cs", "Cn"))
    assert tok.decode(tok.encode_ordinary(text)) == text.replace("▁", " ")
    assert np.array(tok.encode_ordinary(text)).max() < tok.n_vocab


@pytest.mark.parametrize("text", [b"\n\n\n\n", b"\n-\n-\n", b"\na\nZ\n7\n!\n hello" + b"x" * 200, b"\n", b""])
def test_a_text_that_starts_with_short_lines_is_no_model(text: bytes) -> None:
    """An empty line is the byte that a model starts with, and that its first piece starts with."""
    assert not looks_like(text)
    assert looks_like(b"\n\x0e\n\x05<unk>\x15\x00\x00\x00\x00\x18\x02")
    assert looks_like(b"\n\x07\n\x05<unk>\n\x03\n\x01a")
