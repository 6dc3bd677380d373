"""tokenizer.json with models of SentencePiece's kind: ids and texts equal those of tokenizers."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from texts import TEXTS
from vocabularies import shared_folder

import subword
from subword import Tokenizer, formats
from subword.errors import FormatError, SubwordValueError
from subword.formats import native, sentencepiece, tokenizer_json
from subword.spec import ScoreBPE, Unigram

hf = pytest.importorskip("tokenizers")

SHARED = shared_folder()
PROSE = [text for text in TEXTS.values() if len(text) < 4000]
FEW = [text for text in PROSE if all(ord(char) < 0x500 or 0x3000 < ord(char) < 0x3100 for char in text)]
"""Texts of few characters: the trainers need an entry for each."""


def trained(normalizer: Any, pre_tokenizer: Any, decoder: Any, size: int = 900) -> Any:
    """HF's tokenizer, trained on the texts that hurt."""
    tok = hf.Tokenizer(hf.models.Unigram())
    if normalizer is not None:
        tok.normalizer = normalizer
    tok.pre_tokenizer = pre_tokenizer
    tok.decoder = decoder
    trainer = hf.trainers.UnigramTrainer(
        vocab_size=size, unk_token="<unk>", special_tokens=["<s>", "</s>", "<unk>", "<mask>"], show_progress=False
    )
    tok.train_from_iterator(FEW * 2, trainer)
    return hf.Tokenizer.from_str(tok.to_str())  # its reader rounds scores: this one is what a file means


def charsmap() -> bytes:
    """The rules of SentencePiece's default normalization, from a model that is trained here."""
    spm = pytest.importorskip("sentencepiece")
    import io

    out = io.BytesIO()
    lines = ["a b c d e f g h"] * 20
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=out, vocab_size=12, hard_vocab_limit=False, minloglevel=2
    )
    from subword.formats import sentencepiece_model

    rules: bytes = sentencepiece_model.read(out.getvalue()).normalizer_spec.precompiled_charsmap
    return rules


def t5_like() -> Any:
    meta = hf.pre_tokenizers.Metaspace(prepend_scheme="always", split=True)
    steps = [
        hf.normalizers.Precompiled(charsmap()),
        hf.normalizers.Strip(left=False, right=True),
        hf.normalizers.Replace(hf.Regex(" {2,}"), "▁"),
    ]
    return trained(hf.normalizers.Sequence(steps), meta, hf.decoders.Metaspace())


def albert_like() -> Any:
    steps = [
        hf.normalizers.Replace("``", '"'),
        hf.normalizers.Replace("''", '"'),
        hf.normalizers.NFKD(),
        hf.normalizers.StripAccents(),
        hf.normalizers.Lowercase(),
        hf.normalizers.Precompiled(charsmap()),
        hf.normalizers.Replace(hf.Regex(" {2,}"), " "),
    ]
    pre = hf.pre_tokenizers.Sequence(
        [hf.pre_tokenizers.WhitespaceSplit(), hf.pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    return trained(hf.normalizers.Sequence(steps), pre, hf.decoders.Metaspace())


def whole_text() -> Any:
    pre = hf.pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    return trained(None, pre, hf.decoders.Metaspace())


def plain() -> Any:
    pre = hf.pre_tokenizers.Metaspace(prepend_scheme="never", split=True)
    return trained(None, pre, hf.decoders.Metaspace(prepend_scheme="never"))


@pytest.fixture(scope="module", params=[t5_like, albert_like, whole_text, plain])
def pair(request: pytest.FixtureRequest) -> tuple[Tokenizer, Any]:
    theirs = request.param()
    return Tokenizer(tokenizer_json.read(theirs.to_str().encode(), "x")), theirs


def random_texts(theirs: Any) -> list[str]:
    generator = random.Random(4)
    vocab = [token for token in theirs.get_vocab() if not token.startswith("<")]
    texts = []
    for _ in range(120):
        texts.append("".join(generator.choices(vocab, k=generator.randint(1, 20))).replace("▁", generator.choice("▁ ")))
        texts.append("".join(chr(generator.choice([*range(1, 0xD800), *range(0xE000, 0x10000)])) for _ in range(12)))
        texts.append("".join(generator.choices("ab lower 12\t\n\u3000é\u0301", k=generator.randint(1, 60))))
    return texts


def test_ids_and_texts_are_those_of_tokenizers(pair: tuple[Tokenizer, Any]) -> None:
    ours, theirs = pair
    for text in [*PROSE, *random_texts(theirs), "a" * 500, "<mask> low <s>x</s>", "<mask>"]:
        ids = theirs.encode(text, add_special_tokens=False).ids
        assert ours.encode(text, allowed_special="all") == ids, text
        assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=False), text


def test_files_are_written_and_read(pair: tuple[Tokenizer, Any]) -> None:
    ours, theirs = pair
    assert native.read(native.write(ours.spec), "x") == ours.spec
    written = tokenizer_json.write(ours.spec)
    assert formats.read(written) == ours.spec
    again = hf.Tokenizer.from_str(written.decode())
    for text in PROSE:
        assert again.encode(text).ids == theirs.encode(text).ids


def test_the_plain_python_engine_gives_the_same(pair: tuple[Tokenizer, Any]) -> None:
    ours, _ = pair
    slow = Tokenizer(ours.spec, engine="reference")
    for text in [*[text for text in PROSE if len(text) < 100][:60], "<mask>  low <s>x"]:
        assert slow.encode(text, allowed_special="all") == ours.encode(text, allowed_special="all"), text
        ids = ours.encode(text, allowed_special="all")
        assert slow.decode(ids) == ours.decode(ids)


def test_bytes_to_fall_back_to() -> None:
    """A unigram with bytes, and a BPE such as Llama 2's."""
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    pieces = ["<unk>", *bytes_, "▁", "a", "b", "ab", "▁a", "▁ab", "é"]
    scores = [(piece, 0.0 if number == 0 else -1.0 - number / 50) for number, piece in enumerate(pieces)]
    unigram = hf.Tokenizer(hf.models.Unigram(scores, 0, True))
    unigram.pre_tokenizer = hf.pre_tokenizers.Metaspace()
    unigram.decoder = hf.decoders.Metaspace()
    merges = [("a", "b"), ("▁", "ab"), ("▁", "a")]
    vocab = {piece: id for id, piece in enumerate(pieces)}
    bpe = hf.Tokenizer(hf.models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    bpe.normalizer = hf.normalizers.Sequence([hf.normalizers.Prepend("▁"), hf.normalizers.Replace(" ", "▁")])
    replace, fuse = hf.decoders.Replace("▁", " "), hf.decoders.Fuse()
    bpe.decoder = hf.decoders.Sequence([replace, hf.decoders.ByteFallback(), fuse, hf.decoders.Strip(" ", 1, 0)])
    for theirs, kind in ((unigram, Unigram), (bpe, ScoreBPE)):
        ours = Tokenizer(tokenizer_json.read(theirs.to_str().encode(), "x"))
        assert isinstance(ours.spec.model, kind)
        for text in [*PROSE, "abé ab日\U0001f600 ab", "", " ", "  a"]:
            ids = theirs.encode(text).ids
            assert ours.encode(text) == ids, text
            assert ours.decode(ids) == theirs.decode(ids), text
        assert formats.read(tokenizer_json.write(ours.spec)) == ours.spec


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda d: d["model"].update(unk_id=None), "unk_id"),
        (lambda d: d["model"].update(unk_id=10**6), "no token has the id"),
        (lambda d: d["model"]["vocab"].append(d["model"]["vocab"][0]), "twice"),
        (lambda d: d["model"]["vocab"].append(["new", "x"]), "finite number"),
        (lambda d: d["model"]["vocab"].append(["new"]), r"\[token, score\]"),
        (lambda d: d["model"].update(byte_fallback=True), "is no entry"),
        (lambda d: d.update(normalizer={"type": "Stem"}), "not supported"),
        (lambda d: d.update(normalizer={"type": "Replace", "pattern": {"Regex": "a("}, "content": ""}), "Regex"),
        (lambda d: d.update(normalizer={"type": "Precompiled", "precompiled_charsmap": "AAA"}), "damaged"),
    ],
)
def test_what_is_not_supported_is_said(change: Any, problem: str) -> None:
    document = json.loads(plain().to_str())
    change(document)
    with pytest.raises(FormatError, match=problem):
        Tokenizer(tokenizer_json.read(json.dumps(document).encode(), "x"))


def test_sums_in_32_bits_cannot_be_written() -> None:
    tok = subword.train_sentencepiece(FEW, vocab_size=900, hard_vocab_limit=False)
    with pytest.raises(SubwordValueError, match="32 bits"):
        tokenizer_json.write(tok.spec)
    assert formats.read(sentencepiece.write(tok.spec)) == tok.spec


@pytest.mark.skipif(SHARED is None, reason="no conformance kit: set SUBWORD_SHARED to the folder that has it")
@pytest.mark.parametrize("name", ["xlnet", "llama2", "mistral01", "gemma3"])
def test_real_files(name: str) -> None:
    kit = (SHARED or Path()) / "conformance"
    expected = json.loads((kit / "expected" / f"{name}.json").read_text("utf-8"))
    texts = json.loads((kit / "texts.json").read_text("utf-8"))
    tok = subword.load(kit / "files" / expected["file"])
    for text, ids, _, decoded in expected["rows"]:
        text = texts[text] if isinstance(text, int) else text
        assert tok.encode(text, allowed_special="all") == ids, text
        if "\ufffd" not in decoded:
            assert tok.decode(ids) == decoded, text
    for text, ids in zip(texts, expected["with_special"], strict=False):
        assert tok.encode(text, allowed_special="all", add_special_tokens=True) == ids
