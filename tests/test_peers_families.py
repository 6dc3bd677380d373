"""WordPiece, Unigram and SentencePiece against `sentencepiece` and `tokenizers`, with models that these train here: the
same ids, spans and texts, on prose in 52 languages, on every kind of character, and on entries glued together.
"""

from __future__ import annotations

import functools
import io
import random
import unicodedata
from collections.abc import Iterator
from typing import Any

import pytest
from texts import every_category, glued

from subword import Tokenizer, formats
from subword.audits import builtin_passage
from subword.formats import sentencepiece_model
from subword.scripts import script_of
from subword.spec import BYTE

spm = pytest.importorskip("sentencepiece")
hf = pytest.importorskip("tokenizers")

PASSAGES = {row.language: row.text for row in builtin_passage().texts}


def test_the_passages_are_in_many_scripts() -> None:
    assert len({script_of(char) for text in PASSAGES.values() for char in text if char.isalpha()}) >= 20


@functools.cache
def random_unicode() -> list[str]:
    """Characters of every category, a few of each together, and of all planes."""
    rng = random.Random(8)
    texts = list[str]()
    for chars in every_category().values():
        texts += [chars, "".join(f"a{char} {char}{char}1" for char in chars)]
    for _ in range(60):
        texts.append("".join(chr(rng.choice([*range(1, 0xD800), *range(0xE000, 0x11000)])) for _ in range(30)))
        texts.append("".join(chr(rng.randrange(0x10000, 0x110000)) for _ in range(20)))
        texts.append("".join(rng.choices("ab lower 12\t\n\u3000é\u0301\u200dﬁ", k=rng.randint(1, 60))))
    return texts


def texts_for(pieces: list[str]) -> Iterator[str]:
    rng = random.Random(9)
    yield from PASSAGES.values()
    yield from (unicodedata.normalize("NFD", text) for text in PASSAGES.values())
    yield from random_unicode()
    for _ in range(150):
        yield glued(pieces, rng.randint(1, 30), rng).replace("▁", rng.choice("▁ "))
    yield from ("a" * 700, "日本" * 300, "ab" * 400, " " * 50, "")


# ======================== sentencepiece ========================

SENTENCEPIECE: dict[str, dict[str, Any]] = {
    "unigram": {},
    "unigram, bytes": {"byte_fallback": True},
    "unigram, as it is": {"normalization_rule_name": "identity", "remove_extra_whitespaces": False},
    "unigram, NFKC and small letters": {"normalization_rule_name": "nmt_nfkc_cf"},
    "unigram, spaces behind": {"treat_whitespace_as_suffix": True},
    "unigram, user-defined": {"user_defined_symbols": ["<sep>", "los", "▁de", "на", "日"], "control_symbols": ["<c>"]},
    "merges": {"model_type": "bpe"},
    "merges, bytes": {"model_type": "bpe", "byte_fallback": True, "split_digits": True},
    "merges, NFKC": {"model_type": "bpe", "normalization_rule_name": "nfkc"},
    "merges, spaces behind": {"model_type": "bpe", "treat_whitespace_as_suffix": True},
    "merges, user-defined": {"model_type": "bpe", "user_defined_symbols": ["<sep>", "los", "на", "日", "日本"]},
}


def train_sentencepiece(**options: Any) -> bytes:
    out = io.BytesIO()
    lines = [line for text in PASSAGES.values() for line in text.splitlines()]
    settings = {"vocab_size": 3000, "character_coverage": 0.995, "minloglevel": 2, "num_threads": 1, **options}
    spm.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=out, **settings)
    return out.getvalue()


@pytest.mark.parametrize("name", SENTENCEPIECE)
def test_sentencepiece(name: str) -> None:
    data = train_sentencepiece(**SENTENCEPIECE[name])
    theirs = spm.SentencePieceProcessor(model_proto=data)
    ours = Tokenizer(formats.read(data))
    pieces = [theirs.id_to_piece(id) for id in range(theirs.get_piece_size()) if not theirs.is_control(id)]
    has_bytes = BYTE in ours.spec.model.kinds
    for text in texts_for(pieces):
        found = theirs.encode(text, return_type="proto").pieces
        ids = [piece.id for piece in found]
        assert ours.encode_ordinary(text) == ids, ascii(text[:80])
        assert ours.decode(ids) == theirs.decode(ids), ascii(text[:80])
        if not has_bytes:  # bytes have spans of their own here; there the last has all of the character
            _, spans, _ = ours._engine.encode_with_spans(text, ours._ordinary_policy, False)
            assert spans.tolist() == [[piece.begin, piece.end] for piece in found], ascii(text[:80])


# ======================== tokenizers ========================


def charsmap() -> bytes:
    rules: bytes = sentencepiece_model.read(train_sentencepiece()).normalizer_spec.precompiled_charsmap
    return rules


def wordpiece(lowercase: bool) -> Any:
    tok = hf.Tokenizer(hf.models.WordPiece(unk_token="[UNK]"))
    tok.normalizer = hf.normalizers.BertNormalizer(lowercase=lowercase)
    tok.pre_tokenizer = hf.pre_tokenizers.BertPreTokenizer()
    tok.decoder = hf.decoders.WordPiece()
    return tok, hf.trainers.WordPieceTrainer


def unigram(whole: bool) -> Any:
    tok = hf.Tokenizer(hf.models.Unigram())
    if whole:
        tok.pre_tokenizer = hf.pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    else:
        steps = [hf.normalizers.Precompiled(charsmap()), hf.normalizers.Replace(hf.Regex(" {2,}"), " ")]
        tok.normalizer = hf.normalizers.Sequence(steps)
        tok.pre_tokenizer = hf.pre_tokenizers.Metaspace()
    tok.decoder = hf.decoders.Metaspace(prepend_scheme="first" if whole else "always")
    return tok, hf.trainers.UnigramTrainer


def merges(of_bytes: bool) -> Any:
    tok = hf.Tokenizer(hf.models.BPE() if of_bytes else hf.models.BPE(unk_token="[UNK]", end_of_word_suffix="</w>"))
    tok.pre_tokenizer = (
        hf.pre_tokenizers.ByteLevel(add_prefix_space=False) if of_bytes else (hf.pre_tokenizers.WhitespaceSplit())
    )
    tok.decoder = hf.decoders.ByteLevel() if of_bytes else hf.decoders.BPEDecoder()
    return tok, hf.trainers.BpeTrainer


TOKENIZERS = {
    "wordpiece, cased": lambda: wordpiece(False),
    "wordpiece, uncased": lambda: wordpiece(True),
    "unigram, by words": lambda: unigram(False),
    "unigram, whole text": lambda: unigram(True),
    "merges of bytes": lambda: merges(True),
    "merges of characters": lambda: merges(False),
}


def train_hf(name: str) -> Any:
    tok, trainer = TOKENIZERS[name]()
    settings: dict[str, Any] = {"vocab_size": 3000, "special_tokens": ["[UNK]", "[CLS]"], "show_progress": False}
    if name.startswith("unigram"):
        settings["unk_token"] = "[UNK]"
    if name == "merges of characters":
        settings["end_of_word_suffix"] = "</w>"
    if name == "merges of bytes":
        settings["initial_alphabet"] = hf.pre_tokenizers.ByteLevel.alphabet()
    tok.train_from_iterator(PASSAGES.values(), trainer(**settings))
    return hf.Tokenizer.from_str(tok.to_str())  # its reader rounds scores: this one is what a file means


@pytest.mark.parametrize("name", TOKENIZERS)
def test_tokenizers(name: str) -> None:
    theirs = train_hf(name)
    ours = Tokenizer(formats.read(theirs.to_str().encode()))
    pieces = [piece.decode("utf-8", "replace").removeprefix("##") for piece in ours.spec.model.vocab.pieces]
    compared = 0
    for text in texts_for(pieces):
        found = theirs.encode(text, add_special_tokens=False)
        encoding = ours.tokenize(text, allowed_special="all")
        assert encoding.ids.tolist() == found.ids, ascii(text[:80])
        assert ours.decode(found.ids) == theirs.decode(found.ids, skip_special_tokens=False), ascii(text[:80])
        assert len(encoding.char_spans) == len(found.offsets)
        if name == "unigram, by words" and theirs.normalizer.normalize_str(text) != text:
            continue  # what a mark is composed into covers it here, there only the letter, and the like
        # The space that a text starts with in the model stands for nothing here, there for the first character.
        spans = [(start, max(end, start + 1)) for start, end in encoding.char_spans.tolist()]
        assert spans == found.offsets, ascii(text[:80])
        compared += 1
    assert compared > 150


def test_long_lines_are_not_their_words() -> None:
    """Sums in 32 bits of a whole line are rounded otherwise than those of its words: near ties change places."""
    data = train_sentencepiece(normalization_rule_name="identity")
    theirs, ours = spm.SentencePieceProcessor(model_proto=data), Tokenizer(formats.read(data))
    words = [word for text in PASSAGES.values() for word in text.split()]
    rng = random.Random(1)
    differ = 0
    for _ in range(12):
        line = " ".join(rng.choices(words, k=3000))
        ids = ours.encode_ordinary(line)
        assert ids == theirs.encode(line)
        differ += ids != [id for word in line.split() for id in ours.encode_ordinary(word)]
    assert differ > 0
