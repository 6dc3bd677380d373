"""`subword.compat.tokenizers` gives what HF tokenizers gives, offsets included."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from vocabularies import shared_folder

from subword import SubwordError
from subword.compat import tokenizers as ours

hf = pytest.importorskip("tokenizers")

FIELDS = (
    "ids", "tokens", "offsets", "word_ids", "type_ids", "special_tokens_mask", "attention_mask", "sequence_ids",
    "n_sequences",
)  # fmt: skip

TEXTS = [
    "", " ", "hello", " hello  world", "Hello, World!  It's 12345 o'clock.", "the cat\n\n sat\ton the  mat ",
    "naïve café", "e\u0301 é a\u0301\u0323b A\u030a\u212b", "ﬁne ① ½ ｶﾞ ﷺ", "İstanbul ΑΣ", "😀 👩\u200d👧 日本語 한국어",
    "[MASK] a[MASK]b <s>  <s>x  ",
    "x\u0000y\u200bz\ufffd", "the <s> cat <new> café  <n> ", "a\u00a0b\u3000c", "\u0301x",
    "각 \u1100\u1161\u11a8",
]  # fmt: skip

CORPUS = ["hello world the cat sat on the mat", "It's 12345 o'clock, café naïve", "日本語 the the hello 😀"] * 3


def byte_level(prefix: bool, trim: bool, normalizer: Any = None) -> Any:
    tok = hf.Tokenizer(hf.models.BPE())
    tok.normalizer = normalizer
    tok.pre_tokenizer = hf.pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    tok.post_processor = hf.processors.ByteLevel(trim_offsets=trim, add_prefix_space=prefix)
    tok.decoder = hf.decoders.ByteLevel()
    alphabet = hf.pre_tokenizers.ByteLevel.alphabet()
    trainer = hf.trainers.BpeTrainer(vocab_size=320, initial_alphabet=alphabet, special_tokens=["<s>", "[MASK]"])
    tok.train_from_iterator(CORPUS, trainer)
    return tok


def roberta() -> Any:
    tok = byte_level(True, True)
    tok.post_processor = hf.processors.RobertaProcessing(("<s>", 0), ("[MASK]", 1), trim_offsets=True)
    return tok


def bert(lowercase: bool) -> Any:
    tok = hf.Tokenizer(hf.models.WordPiece(unk_token="[UNK]"))
    tok.normalizer = hf.normalizers.BertNormalizer(lowercase=lowercase)
    tok.pre_tokenizer = hf.pre_tokenizers.BertPreTokenizer()
    special = ["[UNK]", "[CLS]", "[SEP]", "[MASK]", "<s>"]
    tok.train_from_iterator(CORPUS, hf.trainers.WordPieceTrainer(vocab_size=120, special_tokens=special))
    tok.post_processor = hf.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    tok.decoder = hf.decoders.WordPiece()
    return tok


def old_bert() -> Any:
    tok = bert(lowercase=True)
    tok.post_processor = hf.processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    return tok


MADE: dict[str, Callable[[], Any]] = {
    "bytes": lambda: byte_level(False, False),
    "bytes, trimmed": lambda: byte_level(False, True),
    "bytes behind a space": lambda: byte_level(True, True),
    "bytes behind a space, not trimmed": lambda: byte_level(True, False),
    "NFC": lambda: byte_level(False, True, hf.normalizers.NFC()),
    "NFD": lambda: byte_level(False, False, hf.normalizers.NFD()),
    "NFKC and lower case": lambda: byte_level(
        False, True, hf.normalizers.Sequence([hf.normalizers.NFKC(), hf.normalizers.Lowercase()])
    ),
    "RoBERTa": roberta,
    "BERT": lambda: bert(lowercase=True),
    "BERT, cased": lambda: bert(lowercase=False),
    "BERT, an old template": old_bert,
}


@pytest.fixture(scope="module", params=MADE)
def both(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    theirs = MADE[request.param]()
    return ours.Tokenizer.from_str(theirs.to_str()), theirs


def check(mine: Any, other: Any, of: object) -> None:
    """The same in every field, and in what is overflowing."""
    for field in FIELDS:
        assert getattr(mine, field) == getattr(other, field), (of, field, other.tokens)
    assert len(mine.overflowing) == len(other.overflowing), of
    for one, two in zip(mine.overflowing, other.overflowing, strict=True):
        check(one, two, of)


def pairs() -> Iterator[tuple[str, str]]:
    return zip(TEXTS, TEXTS[5:] + TEXTS[:5], strict=True)


def test_encode(both: tuple[Any, Any]) -> None:
    mine, theirs = both
    for text, second in pairs():
        for arguments in ((text,), (text, second)):
            for add in (True, False):
                made, wanted = (tok.encode(*arguments, add_special_tokens=add) for tok in both)
                check(made, wanted, arguments)
                assert len(made) == len(wanted)
        words = [each.split(" ") for each in (text, second)]
        check(*(tok.encode(*words, is_pretokenized=True) for tok in both), words)
    texts = [*TEXTS, *pairs()]
    for one, two in zip(mine.encode_batch(texts), theirs.encode_batch(texts), strict=True):
        check(one, two, "batch")


def test_positions(both: tuple[Any, Any]) -> None:
    for text, second in pairs():
        one, two = (tok.encode(text, second) for tok in both)
        for at in range(len(two) + 2):
            for name in ("token_to_sequence", "token_to_chars", "token_to_word"):
                assert getattr(one, name)(at) == getattr(two, name)(at), (text, name, at)
            for sequence in (0, 1):
                for name in ("char_to_token", "char_to_word", "word_to_tokens", "word_to_chars"):
                    assert getattr(one, name)(at, sequence) == getattr(two, name)(at, sequence), (text, name, at)


@pytest.mark.parametrize("direction", ["left", "right"])
def test_truncation_and_padding(both: tuple[Any, Any], direction: str) -> None:
    compared = 0
    for strategy in ours.STRATEGIES:
        for max_length, stride in ((8, 0), (9, 2), (6, 1)):
            for tok in both:
                tok.enable_truncation(max_length, stride=stride, strategy=strategy, direction=direction)
                tok.enable_padding(direction=direction, pad_id=3, pad_type_id=2, pad_token="<p>", pad_to_multiple_of=4)
            assert both[0].truncation == both[1].truncation
            assert both[0].padding == both[1].padding
            for arguments in [*((text,) for text in TEXTS[:8]), *list(pairs())[:8]]:
                # tokenizers panics where a stride does not fit, which prints more than it says
                try:
                    made = both[0].encode(*arguments)
                except SubwordError:
                    continue
                check(made, both[1].encode(*arguments), (strategy, max_length, arguments))
                compared += 1
    for tok in both:
        tok.no_truncation()
        tok.enable_padding(direction=direction, length=12)
    for one, two in zip(*(tok.encode_batch(TEXTS[:6]) for tok in both), strict=True):
        check(one, two, "length")
    again = ours.Tokenizer.from_str(both[0].to_str())
    assert again.padding == both[1].padding
    for tok in both:
        tok.no_padding()
        assert tok.padding is tok.truncation is None
    assert compared > 40


def test_changing_an_encoding(both: tuple[Any, Any]) -> None:
    for direction in ("left", "right"):
        one, two = (tok.encode("the cat sat on the mat", "hello") for tok in both)
        for each in (one, two):
            each.truncate(5, stride=2, direction=direction)
            each.pad(8, direction=direction, pad_id=9, pad_type_id=1, pad_token="x")
        check(one, two, direction)
    parts = [[tok.encode(text, add_special_tokens=False) for text in ("hello", "the cat")] for tok in both]
    for growing in (True, False):
        made = ours.Encoding.merge(parts[0], growing), hf.Encoding.merge(parts[1], growing)
        check(*made, growing)
    done = [tok.post_process(*own) for tok, own in zip(both, parts, strict=True)]
    check(*done, "post_process")


def test_vocabulary_and_decoding(both: tuple[Any, Any]) -> None:
    mine, theirs = both
    for with_added in (True, False):
        assert mine.get_vocab(with_added) == theirs.get_vocab(with_added)
        assert mine.get_vocab_size(with_added) == theirs.get_vocab_size(with_added)
    assert str(mine.get_added_tokens_decoder()) == str(theirs.get_added_tokens_decoder())
    for id in (0, 1, 5, 100, 10**6):
        assert mine.id_to_token(id) == theirs.id_to_token(id)
    for token in ("the", "<s>", "Ġthe", "##e", "nothing"):
        assert mine.token_to_id(token) == theirs.token_to_id(token)
    lists = [theirs.encode(text).ids for text in TEXTS] + [[0, 10**6, 5]]
    for skip in (True, False):
        assert mine.decode_batch(lists, skip) == theirs.decode_batch(lists, skip)
    assert [mine.num_special_tokens_to_add(pair) for pair in (True, False)] == [
        theirs.num_special_tokens_to_add(pair) for pair in (True, False)
    ]


def test_added_tokens(both: tuple[Any, Any], tmp_path: Path) -> None:
    mine, theirs = ours.Tokenizer.from_str(both[1].to_str()), hf.Tokenizer.from_str(both[1].to_str())
    flags: dict[str, Any] = {"lstrip": True, "rstrip": True}
    for tok, module in ((mine, ours), (theirs, hf)):
        counts = [
            tok.add_tokens(["<new>", "", "<new>", module.AddedToken("<n>", **flags)]),
            tok.add_special_tokens(["<s>", "[NEW]", module.AddedToken("<one>", single_word=True)]),
            tok.add_tokens(["<new>"]),
        ]
        assert counts == [2, 2, 0]
    assert mine.get_vocab() == theirs.get_vocab()
    assert str(mine.get_added_tokens_decoder()) == str(theirs.get_added_tokens_decoder())
    for text in [*TEXTS, "a<new>b [NEW] x<one>y <one> z  <n>  "]:
        check(mine.encode(text), theirs.encode(text), text)
        for tok in (mine, theirs):
            tok.encode_special_tokens = True
        check(mine.encode(text), theirs.encode(text), text)
        for tok in (mine, theirs):
            tok.encode_special_tokens = False
    mine.save(tmp_path / "tokenizer.json")
    for again in (hf.Tokenizer.from_file(str(tmp_path / "tokenizer.json")), pickle.loads(pickle.dumps(mine))):
        check(mine.encode("a<new>b [NEW]"), again.encode("a<new>b [NEW]"), "again")


def test_parts_are_views() -> None:
    tok = ours.Tokenizer.from_str(MADE["BERT"]().to_str())
    assert tok.normalizer["type"] == "BertNormalizer"
    assert tok.model["continuing_subword_prefix"] == "##"
    tok.post_processor["single"].clear()
    assert tok.encode("the").tokens == ["[CLS]", "the", "[SEP]"]
    with pytest.raises(AttributeError):
        tok.normalizer = None  # type: ignore[misc]
    with pytest.raises(AttributeError, match=r"subword\.train"):
        _ = ours.models


def trained(model: Any, normalizer: Any, pre_tokenizer: Any) -> Any:
    """A small tokenizer of any kind."""
    special = ["<unk>", "<s>", "[MASK]"]
    trainers = {
        "Unigram": lambda: hf.trainers.UnigramTrainer(
            vocab_size=60, special_tokens=special, unk_token="<unk>", show_progress=False
        ),
        "BPE": lambda: hf.trainers.BpeTrainer(vocab_size=90, special_tokens=special, show_progress=False),
        "WordLevel": lambda: hf.trainers.WordLevelTrainer(special_tokens=special, show_progress=False),
    }
    tok = hf.Tokenizer(model)
    tok.normalizer, tok.pre_tokenizer = normalizer, pre_tokenizer
    tok.train_from_iterator(CORPUS, trainers[type(model).__name__]())
    return tok


def other_stages() -> dict[str, Callable[[], Any]]:
    n, p = hf.normalizers, hf.pre_tokenizers

    def unigram(normalizer: Any, pre_tokenizer: Any) -> Any:
        return lambda: trained(hf.models.Unigram(), normalizer, pre_tokenizer)

    def bpe(normalizer: Any, pre_tokenizer: Any) -> Any:
        return lambda: trained(hf.models.BPE(unk_token="<unk>"), normalizer, pre_tokenizer)

    def words(normalizer: Any, pre_tokenizer: Any) -> Any:
        return lambda: trained(hf.models.WordLevel(unk_token="<unk>"), normalizer, pre_tokenizer)

    several = n.Sequence([n.Nmt(), n.NFKC(), n.Replace(hf.Regex(" {2,}"), " ")])
    stripped = n.Sequence([n.NFD(), n.StripAccents(), n.Lowercase(), n.Strip()])
    digits = p.Sequence([p.Whitespace(), p.Punctuation(), p.Digits(individual_digits=True)])
    return {
        "Metaspace": unigram(None, p.Metaspace()),
        "Metaspace, first": unigram(None, p.Metaspace(prepend_scheme="first")),
        "Metaspace, never, whole": unigram(None, p.Metaspace(prepend_scheme="never", split=False)),
        "Nmt, NFKC, Replace": unigram(several, p.Metaspace()),
        "StripAccents, Strip": unigram(stripped, p.Sequence([p.WhitespaceSplit(), p.Metaspace()])),
        "Prepend, Replace": bpe(n.Sequence([n.Prepend("▁"), n.Replace(" ", "▁")]), None),
        "Whitespace": bpe(n.NFC(), p.Whitespace()),
        "Digits": bpe(None, digits),
        "Split, removed": words(n.Lowercase(), p.Split(hf.Regex(r"\s+"), "removed")),
        "UnicodeScripts": words(None, p.UnicodeScripts()),
        "FixedLength": words(None, p.FixedLength(3)),
        "ByteLevel as a normalizer": bpe(
            n.Sequence([n.NFC(), n.ByteLevel()]), p.Split(hf.Regex("Ġ"), "merged_with_next")
        ),
    }


@pytest.mark.filterwarnings("ignore:.*may become it in tokenizers:subword.SubwordWarning")
@pytest.mark.parametrize("name", other_stages())
def test_other_stages(name: str) -> None:
    theirs = other_stages()[name]()
    mine = ours.Tokenizer.from_str(theirs.to_str())
    for text, second in pairs():
        check(mine.encode(text), theirs.encode(text), text)
        check(mine.encode(text, second), theirs.encode(text, second), (text, second))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda tok: tok.encode(3), "must be a str, not int"),
        (lambda tok: tok.encode(["a", "b"]), "is_pretokenized=True"),
        (lambda tok: tok.encode("ab", is_pretokenized=True), "a list of words"),
        (lambda tok: tok.encode_batch("ab"), "input must be a list"),
        (lambda tok: tok.decode(["a"]), "an id must be an integer"),
        (lambda tok: tok.id_to_token(-1), "an id must be an integer"),
        (lambda tok: tok.enable_truncation(10, strategy="most"), "unknown strategy"),
        (lambda tok: tok.enable_truncation(10, direction="up"), "direction must be"),
        (lambda tok: tok.enable_truncation(10, stride=9), "must be less than the 8 tokens"),
        (lambda tok: tok.enable_padding("up"), "direction must be"),
        (lambda tok: tok.add_tokens([3]), "a str or an AddedToken"),
        (lambda tok: tok.train([]), r"subword\.train"),
        (lambda tok: ours.Tokenizer(None), r"Tokenizer\.from_file"),
        (lambda tok: ours.Tokenizer.from_str("{}"), "there is no model"),
        (lambda tok: ours.Tokenizer.from_str("{"), "not JSON"),
        (lambda tok: ours.Tokenizer.from_file("nowhere/tokenizer.json"), "cannot read"),
        (lambda tok: ours.Tokenizer.from_pretrained("a/b", token="x"), "HF_TOKEN"),
    ],
)
def test_bad_calls(call: Callable[[Any], Any], message: str) -> None:
    tok = ours.Tokenizer.from_str(MADE["BERT"]().to_str())
    with pytest.raises(SubwordError, match=message):
        call(tok)


SHARED = shared_folder()
FILES = sorted((SHARED / "conformance" / "files").glob("*.json")) if SHARED is not None else []


@pytest.mark.filterwarnings("ignore::subword.SubwordWarning")
@pytest.mark.skipif(SHARED is None, reason="no conformance kit: set SUBWORD_SHARED to the folder that has it")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_published_files(path: Path) -> None:
    try:
        mine = ours.Tokenizer.from_file(path)
    except SubwordError as error:
        pytest.skip(f"not supported yet: {str(error)[:160]}")
    assert SHARED is not None
    theirs = hf.Tokenizer.from_file(str(path))
    texts = json.loads((SHARED / "conformance" / "texts.json").read_text("utf-8"))
    rows = json.loads((SHARED / "conformance" / "expected" / f"{path.stem}.json").read_text("utf-8"))["rows"]
    glued = [row[0] for row in rows if isinstance(row[0], str)]
    short = [text for text in texts if len(text) < 200]
    for text in [*TEXTS, *short[::5], *glued[::40]]:
        check(mine.encode(text), theirs.encode(text), text)
    for text, second in zip(short[::19], short[7::19], strict=False):
        check(mine.encode(text, second), theirs.encode(text, second), (text, second))
    assert mine.get_vocab_size() == theirs.get_vocab_size()
    assert str(mine.get_added_tokens_decoder()) == str(theirs.get_added_tokens_decoder())
