"""Words, rules, characters and bytes: what subword tokenizers are measured against."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
import tokenizers
from texts import BYTES, TEXTS

import subword
from subword import BPE, DecodeWordPiece, Spec, Split, SubwordValueError, SubwordWarning, Tokenizer, Vocab, WordLevel
from subword.patterns import split, split_by
from subword.training_baselines import BASELINES, RULES

TEXT = "the cat sat on the mat, the cat is walking\ngetUserName snake_case naïve 中文 <unk> 😀\n"


def pieces_of(text: str) -> list[str]:
    return list(split_by(RULES.regex, RULES.syntax, text))


@pytest.mark.parametrize("algorithm", BASELINES)
def test_core_and_reference_agree(algorithm: str) -> None:
    tok = subword.train([TEXT], algorithm=algorithm, special_tokens=["<s>"], bos_token="<s>")
    plain = Tokenizer(tok.spec, engine="reference")
    for text in [*TEXTS.values(), *BYTES.values(), TEXT, b"\xff cat \xe4\xb8"]:
        ids = tok.encode_ordinary(text)
        assert ids == plain.encode_ordinary(text)
        ours, theirs = (t.tokenize(text, disallowed_special=()) for t in (tok, plain))
        assert ours.byte_spans.tolist() == theirs.byte_spans.tolist()
    assert tok.decode(tok.encode(TEXT)) == TEXT
    assert tok.encode("", add_special_tokens=True) == [tok.special_tokens["<s>"]] == [len(tok.vocab) - 1]
    assert pickle.loads(pickle.dumps(tok)).fingerprint == tok.fingerprint


@pytest.mark.parametrize("algorithm", BASELINES)
def test_saved_and_loaded_it_is_the_same(algorithm: str, tmp_path: Path) -> None:
    tok = subword.train([TEXT], algorithm=algorithm)
    tok.save(tmp_path / "tok.subword")
    assert subword.load(tmp_path / "tok.subword") == tok


def test_words_are_the_most_frequent_and_of_equals_the_smaller() -> None:
    rng = random.Random(5)
    words = ["".join(rng.choices("ab", k=rng.randint(1, 3))) for _ in range(300)]
    text = " ".join(words)
    counts = Counter(split("o200k", text))
    ranked = sorted(counts, key=lambda word: (-counts[word], word.encode()))
    tok = subword.train([text], algorithm="word", vocab_size=8)
    assert [tok.token_bytes(id).decode() for id in range(8)] == ["<unk>", *ranked[:7]]
    known = {word: id for id, word in enumerate(ranked[:7], 1)}
    assert tok.encode(text) == [known.get(word, 0) for word in split("o200k", text)]
    assert tok.training is not None
    assert tok.training["unknown"] == tok.encode(text).count(0) == sum(counts.values()) - tok.training["known"]
    assert subword.train(text.splitlines()[::-1], algorithm="word", vocab_size=8, threads=1) == tok
    assert tok.unk_id == 0


def test_a_word_is_no_part_of_a_word_and_none_is_spelled_as_the_unknown() -> None:
    tok = subword.train(["ab ##c <unk> ab"], algorithm="word", pattern="spaces")
    assert tok.encode("ab a abc ##c ab##c <unk>") == [1, 0, 0, 2, 0, 0]
    assert tok.decode([1, 2, 0]) == "ab ##c <unk>"
    spec = Spec((Split("spaces"),), WordLevel(Vocab.of([(b"?", 3), (b"x", 7)]), 3), decode=DecodeWordPiece("", False))
    assert Tokenizer(spec).encode("x y x") == [7, 3, 7]


def test_words_that_are_no_text_are_unknown() -> None:
    tok = subword.train([b"ab \xff\xfe ab"], algorithm="word", pattern="spaces")
    assert tok.encode(b"\xff\xfe ab") == [0, 1]


def test_characters_are_a_bpe_without_merges() -> None:
    tok = subword.train([TEXT], algorithm="character")
    assert isinstance(tok.spec.model, BPE)
    assert [tok.token_bytes(id).decode() for id in range(1, tok.n_vocab)] == sorted(set(TEXT))
    assert tok == subword.train([TEXT], unit="character", vocab_size=len(set(TEXT)) + 1)
    few = subword.train([TEXT], algorithm="character", vocab_size=6)
    counts = Counter(TEXT)
    kept = sorted(counts, key=lambda char: (-counts[char], char))[:5]
    assert [few.token_bytes(id).decode() for id in range(1, 6)] == sorted(kept)
    assert [id == 0 for id in few.encode(TEXT)] == [char not in kept for char in TEXT]


def test_bytes_need_no_text() -> None:
    tok = subword.train(algorithm="byte")
    assert tok.encode("hé") == [104, 195, 169]
    unread = (pytest.fail("the texts were read") for _ in range(1))
    assert subword.train(unread, algorithm="byte", vocab_size=256) == tok
    assert subword.train(algorithm="byte", byte_order="gpt2").encode("!") == [0]
    with pytest.raises(SubwordValueError, match="256 bytes and 1 special tokens are 257 entries"):
        subword.train(algorithm="byte", vocab_size=256, eos_token="</s>")


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("HTTPServer", ["HTTP", "Serv", "er"]),
        ("getUserName", ["get", "User", "Name"]),
        (" snake_case__x", [" snake", "_", "case", "__", "x"]),
        ("organizing the organizations", ["organ", "izing", " the", " organiz", "ations"]),
        ("sing red her", ["sing", " red", " her"]),
        ("happily!  x1\n", ["happi", "ly", "!", " ", " x", "1", "\n"]),
        ("iPhone AI A", ["i", "Phone", " AI", " A"]),
        ("naïveness 中文", ["naïve", "ness", " 中文"]),
    ],
)
def test_rules(text: str, pieces: list[str]) -> None:
    assert pieces_of(text) == pieces
    tok = subword.train([text], algorithm="rules")
    assert [data.decode() for data in tok.tokenize(text).token_bytes] == pieces


def test_rules_run_within_their_budget() -> None:
    tok = subword.train([TEXT], algorithm="rules")
    for text in ("a" * 100_000, "Ab" * 50_000, "ment" * 25_000, "é" * 50_000, "_" * 100_000, "aB" * 50_000):
        assert tok.count(text) >= 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"algorithm": "words"}, "algorithm"),
        ({"algorithm": "word", "vocab_size": 1}, "vocab_size=1 is below the minimum of 2"),
        ({"algorithm": "word", "vocab_size": 0}, "vocab_size=0 is below the minimum of 2"),
        ({"algorithm": "character", "min_count": 10_000}, "nothing is counted as often"),
        ({"algorithm": "word", "special_tokens": ["<unk>"]}, "'<unk>' is a token of such a vocabulary anyway"),
        ({"algorithm": "word", "unit": "character"}, "nothing is merged with algorithm='word': leave out unit"),
        ({"algorithm": "word", "weights": {"a": 1}}, "leave out weights"),
        ({"algorithm": "rules", "pattern": "gpt2"}, "cuts text by its own rules"),
        ({"algorithm": "bpe"}, "vocab_size"),
    ],
)
def test_bad_arguments(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(SubwordValueError, match=message):
        subword.train([TEXT], **arguments)  # type: ignore[arg-type]


def test_more_entries_than_the_text_has_is_a_warning() -> None:
    with pytest.warns(SubwordWarning, match="4 entries, not the 100"):
        tok = subword.train(["aa b c"], algorithm="word", vocab_size=100)
    assert tok.n_vocab == 4


def test_counts_are_trained_from_as_texts_are() -> None:
    table = subword.count_pieces([TEXT])
    assert subword.train(counts=table, algorithm="word") == subword.train([TEXT], algorithm="word")
    with pytest.raises(SubwordValueError, match="other stages"):
        subword.train(counts=table, algorithm="rules")


# ======================== tokenizer.json of HF tokenizers ========================


def same_as_hf(tok: Tokenizer, theirs: tokenizers.Tokenizer, texts: Iterable[str]) -> None:
    for text in texts:
        encoding = theirs.encode(text, add_special_tokens=False)
        assert tok.encode(text, allowed_special="all") == encoding.ids, text
        assert tok.decode(encoding.ids) == theirs.decode(encoding.ids, skip_special_tokens=False)


@pytest.mark.parametrize(
    ("split", "special"), [("BertPreTokenizer", ["[UNK]", "[PAD]"]), ("WhitespaceSplit", ["[UNK]"])]
)
def test_a_word_level_of_hf_gives_its_ids(split: str, special: list[str], tmp_path: Path) -> None:
    theirs = tokenizers.Tokenizer(tokenizers.models.WordLevel(unk_token="[UNK]"))
    theirs.pre_tokenizer = getattr(tokenizers.pre_tokenizers, split)()
    theirs.normalizer = tokenizers.normalizers.Lowercase()
    trainer = tokenizers.trainers.WordLevelTrainer(vocab_size=20, special_tokens=special)
    theirs.train_from_iterator([TEXT, TEXT.upper(), "a b ##c [pad]"], trainer)
    theirs.save(str(tmp_path / "tokenizer.json"))
    tok = subword.load(tmp_path / "tokenizer.json")
    assert isinstance(tok.spec.model, WordLevel) and tok.unk_id == 0
    same_as_hf(tok, theirs, [*TEXTS.values(), TEXT, "THE Cat [PAD] [UNK] unknown", "cat##c ##c"])
    again = tmp_path / "again.json"
    tok.save(again)
    assert subword.load(again) == tok


@pytest.mark.parametrize("pattern", ["o200k", "whitespace", "spaces", "bert-cased"])
def test_hf_reads_what_is_trained_here(pattern: str, tmp_path: Path) -> None:
    tok = subword.train([TEXT], algorithm="word", pattern=pattern, vocab_size=12, special_tokens=["<s>"])
    path = tmp_path / "tokenizer.json"
    tok.save(path)
    assert subword.load(path) == tok
    same_as_hf(tok, tokenizers.Tokenizer.from_file(str(path)), [*TEXTS.values(), TEXT, "the cat <s> zzz"])
