"""SentencePiece's rules of normalization: made, read, by name, from files; for text, and for what is decoded."""

from __future__ import annotations

import base64
import io
import random
from pathlib import Path
from typing import Any

import pytest
from texts import TEXTS

import subword
from subword import FormatError, SubwordValueError, Tokenizer, charsmap, formats
from subword.formats import sentencepiece, sentencepiece_model
from subword.spec import DecodeSentencePiece

PROSE = [text for text in TEXTS.values() if len(text) < 2000 and "▁" not in text]
SPM_VERSION = "0.2.3"


def theirs(lines: list[str], **options: Any) -> bytes:
    spm = pytest.importorskip("sentencepiece")
    out = io.BytesIO()
    given = {"model_type": "char", "vocab_size": 60, "minloglevel": 4, "hard_vocab_limit": False, **options}
    spm.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=out, **given)
    return out.getvalue()


def test_rules_come_back() -> None:
    draw = random.Random(5)
    for letters in ("ab", "aé日😀", "".join(map(chr, range(1, 400)))):
        for size in (1, 3, 40, 700):
            words = ["".join(draw.choices(letters, k=draw.randint(1, 6))) for _ in range(2 * size)]
            rules = dict(zip(words[:size], words[size:], strict=True)) | {words[0]: ""}
            content = charsmap.build(rules)
            assert charsmap.rules_of(content) == rules
            tok = subword.train_sentencepiece(["ab cd"], model_type="char", precompiled_charsmap=content)
            text = "".join(draw.choices([*letters, *words], k=80)) + "\0"
            data, _ = subword._core.SentencePieceNormalizer(content, (False,) * 4, []).apply(text.encode())
            assert data == charsmap.apply(rules, text.encode())
            assert tok.encode_ordinary(text) == Tokenizer(tok.spec, engine="reference").encode_ordinary(text)


def test_no_rules_are_empty() -> None:
    assert charsmap.build({}) == charsmap.named("identity") == ""
    assert charsmap.rules_of("") == {}


@pytest.mark.parametrize("rules", [{"": "a"}, {"a\0": "b"}, {"a": "b\0"}, {"\ud800": "a"}, {"a": 1}])
def test_rules_that_cannot_be(rules: Any) -> None:
    with pytest.raises(SubwordValueError, match="rule"):
        charsmap.build(rules)


def test_damaged_rules_are_errors() -> None:
    good = base64.b64decode(charsmap.build({"ab": "c", "é": "e"}))
    draw = random.Random(1)
    for _ in range(200):
        data = bytearray(good)
        for _ in range(draw.randint(1, 9)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        content = base64.b64encode(data[: draw.choice([len(data), draw.randrange(len(data))])]).decode()
        try:
            charsmap.rules_of(content)
        except FormatError as error:
            assert "normalization rules" in str(error)  # noqa: PT017
    for content in ("?", "AAAA", base64.b64encode(good[:-1]).decode()):
        with pytest.raises(FormatError, match="normalization rules"):
            charsmap.rules_of(content)


@pytest.mark.parametrize("name", ["nmt_nfkc", "nfkc_cf"])
def test_named_rules_are_those_of_sentencepiece(name: str) -> None:
    """Every rule, and so what becomes of every text. (Versions before have the tables of an older Unicode.)"""
    spm = pytest.importorskip("sentencepiece")
    if spm.__version__ != SPM_VERSION:
        pytest.skip(f"sentencepiece {spm.__version__} has the tables of another Unicode than {SPM_VERSION}")
    other = sentencepiece_model.read(theirs(PROSE, normalization_rule_name=name)).normalizer_spec
    content = charsmap.named(name)
    assert charsmap.rules_of(content) == charsmap.rules_of(base64.b64encode(other.precompiled_charsmap).decode())
    tok = subword.train_sentencepiece(PROSE, model_type="char", precompiled_charsmap=content, byte_fallback=False)
    processor = spm.SentencePieceProcessor(model_proto=sentencepiece.write(tok.spec))
    for text in [*PROSE, "ﬁ ①２ é é 한 각 ｶﾞ Å\u200b\u3000x\x85\x9f～"]:
        if "\0" not in text:
            assert processor.encode(text) == tok.encode_ordinary(text)


def test_rules_in_files_are_read_as_sentencepiece_does(tmp_path: Path) -> None:
    spm = pytest.importorskip("sentencepiece")
    text = "61\t62\n62 63\t43 43\n301\t\n64\t20\n"
    (tmp_path / "rules.tsv").write_text(text)
    (tmp_path / "back.tsv").write_text("43\t2B\n43 43\t2D\n3A 29\t263A\n")
    files = {
        "normalization_rule_tsv": str(tmp_path / "rules.tsv"),
        "denormalization_rule_tsv": str(tmp_path / "back.tsv"),
    }
    lines = ["abcd: ) abc:)", "e\u0301 aCbc x CCC :)"]
    data = theirs(lines, **files)
    processor, loaded = spm.SentencePieceProcessor(model_proto=data), Tokenizer(formats.read(data))
    tok = subword.train_sentencepiece(
        lines,
        model_type="char",
        byte_fallback=False,
        remove_extra_whitespaces=True,
        **files,  # type: ignore[arg-type]
    )
    assert list(tok.spec.model.vocab.pieces) == list(loaded.spec.model.vocab.pieces)
    assert charsmap.rules_of(tok.spec.stages[-1].rules) == charsmap.rules_of(loaded.spec.stages[-1].rules)  # type: ignore[union-attr]
    assert charsmap.rules_of(tok.spec.decode.rules) == charsmap.rules_of(loaded.spec.decode.rules)  # type: ignore[union-attr]
    again = spm.SentencePieceProcessor(model_proto=sentencepiece.write(tok.spec))
    slow = Tokenizer(tok.spec, engine="reference")
    assert Tokenizer(formats.read(sentencepiece.write(loaded.spec))).spec == loaded.spec
    for line in [*lines, "aabcbcdd", ":):)C", "xCC CC:", "C", ""]:
        ids = processor.encode(line)
        assert ids == tok.encode_ordinary(line) == loaded.encode_ordinary(line) == again.encode(line)
        text = processor.decode(ids)
        assert text == tok.decode(ids) == again.decode(ids) == slow.decode(ids) == tok.decode_batch([ids])[0]
        stream = tok.stream_decoder()
        assert "".join(map(stream.feed, ids)) + stream.finish() == text
        assert stream.finish() == ""


def test_rules_for_decoded_text_are_part_of_a_tokenizer(tmp_path: Path) -> None:
    plain = subword.train_sentencepiece(["ab"], model_type="char")
    spec = plain.spec.replace(decode=DecodeSentencePiece("one", rules=charsmap.build({"a": "é", "é": "-"})))
    tok = Tokenizer(spec)
    assert tok.spec != plain.spec
    assert "rules" not in plain.spec.outline()["decode"]
    assert tok.decode_bytes([*tok.encode_ordinary("aéb"), int(tok.token_id("<0xFF>") or 0)]) == "é-b".encode() + b"\xff"
    tok.save(tmp_path / "tok.subword")
    assert subword.load(tmp_path / "tok.subword").spec == tok.spec
    with pytest.raises(SubwordValueError):
        tok.save(tmp_path / "tok.json")
    with pytest.raises((FormatError, SubwordValueError), match="normalization rules"):
        Tokenizer(plain.spec.replace(decode=DecodeSentencePiece("one", rules="AAAA")))


@pytest.mark.parametrize("line", ["61 62", "6z\t61", "110000\t61", "d800\t61", "\t61"])
def test_lines_that_are_no_rules(line: str, tmp_path: Path) -> None:
    (tmp_path / "rules.tsv").write_text(f"61\t62\n{line}\n")
    if line == "61 62":  # SentencePiece reads it as a rule that leaves the two out
        assert charsmap.read_tsv(f"{line}\n".encode(), "x") == {"ab": ""}
        return
    with pytest.raises((FormatError, SubwordValueError), match=r"rule"):
        subword.train_sentencepiece(["ab"], model_type="char", normalization_rule_tsv=tmp_path / "rules.tsv")
