"""WordPiece: the core against the reference and against HF tokenizers, with BERT's basic tokenization around it."""

from __future__ import annotations

import json
import pickle
import random
import unicodedata
import warnings
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from texts import BYTES, SURROGATES, TEXTS, every_category, glued, hurting_for

import subword
from subword import Spec, Split, Tokenizer, Vocab, _core, formats
from subword.engine import CHARACTERS
from subword.errors import FormatError, SubwordValueError, SubwordWarning
from subword.formats import native, tokenizer_json, vocab_txt
from subword.formats.bare import LeftOutError
from subword.spec import (
    CleanText,
    DecodeWordPiece,
    ExtraToken,
    Lowercase,
    MatchTokens,
    Normalize,
    PadChinese,
    SplitPunctuation,
    Stage,
    StripAccents,
    Template,
    WordPiece,
)
from subword.wordpiece import reference

CASED: tuple[Stage, ...] = (CleanText(), PadChinese())
UNCASED: tuple[Stage, ...] = (*CASED, Normalize("NFD"), StripAccents(), Lowercase(final_sigma=False, unicode="17.0"))
SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

# ======================== the reference ========================

WORDS = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}


def test_the_textbook_example() -> None:
    pairs, singles = reference.get_stats((reference.symbols_of(word), count) for word, count in WORDS.items())
    assert (singles["##u"], singles["##g"], singles["##s"]) == (36, 20, 5)
    worth = {pair: reference.CRITERIA["likelihood"](pair, pairs, singles) for pair in pairs}
    assert worth["##u", "##g"] == Fraction(20, 36 * 20)
    assert worth["##g", "##s"] == Fraction(5, 20 * 5) == max(worth.values())
    assert list(reference.train(WORDS, 1)) == [("##g", "##s")]
    # Now six pairs are worth 1/36, and the rule for ties decides.
    split = [(reference.symbols_of(word), count) for word, count in WORDS.items()]
    split = [(reference.merge(symbols, ("##g", "##s"), "##gs"), count) for symbols, count in split]
    pairs, singles = reference.get_stats(split)
    worth = {pair: reference.CRITERIA["likelihood"](pair, pairs, singles) for pair in pairs}
    ties = [pair for pair, value in worth.items() if value == max(worth.values())]
    assert max(worth.values()) == Fraction(1, 36)
    assert sorted(ties) == [
        ("##u", "##g"), ("##u", "##gs"), ("##u", "##n"), ("b", "##u"), ("h", "##u"), ("p", "##u")
    ]  # fmt: skip
    second = {rule: list(reference.train(WORDS, 2, tie_rule=rule))[1] for rule in reference.TIE_RULES}
    assert second == {
        "first-seen": ("h", "##u"),
        "smallest-ids": ("##u", "##g"),
        "largest-string": ("p", "##u"),
    }
    assert list(reference.train(WORDS, 1, criterion="frequency")) == [("##u", "##g")]


# ======================== training ========================


def learned(words: dict[str, int], size: int, **options: Any) -> tuple[list[str], Tokenizer]:
    texts = [" ".join([word] * count) for word, count in words.items()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SubwordWarning)  # of texts without pairs left
        tok = subword.train(texts, vocab_size=size, algorithm="wordpiece", **options)
    return [tok.token_piece(id) for id in tok.spec.model.vocab.ids.tolist()], tok


def random_words(rng: random.Random, letters: str) -> dict[str, int]:
    words = ("".join(rng.choices(letters, k=rng.randint(1, 9))) for _ in range(rng.randint(1, 25)))
    return {word: rng.choice((1, 1, 2, 3, 10)) for word in words}


@pytest.mark.parametrize("criterion", ["likelihood", "frequency"])
@pytest.mark.parametrize("tie_rule", ["smallest-ids", "first-seen", "largest-string"])
def test_training_is_the_reference(criterion: str, tie_rule: str) -> None:
    """With ties nearly everywhere."""
    rng = random.Random(criterion + tie_rule)
    for _ in range(60):
        words = random_words(rng, "abcé中"[: rng.randint(1, 5)])
        pattern = rng.choice(("whitespace-split", "bert-cased"))
        if pattern == "bert-cased":
            words = {word: count for word, count in words.items() if "中" not in word} or {"a": 1}
        size = rng.choice((20, 40, 100))
        options = {"criterion": criterion, "tie_rule": tie_rule, "pattern": pattern}
        entries, tok = learned(words, size, **options)
        assert tok.training is not None
        merges = reference.train(words, tok.training["merges"], criterion=criterion, tie_rule=tie_rule)
        alphabet = tok.training["alphabet"]
        starting = entries[alphabet + 1 - len(set("".join(words)) - {word[0] for word in words}) : alphabet + 1]
        if criterion == "frequency":  # each character can start a word
            assert {entry.removeprefix("##") for entry in entries[1 : alphabet + 1]} <= set(entries)
            entries = [entry for entry in entries if entry not in starting]
        assert entries == list(reference.make_vocab(words, merges))
        assert tok.training["criterion"] == criterion


def test_frequency_is_what_hf_does() -> None:
    """Its own order of the alphabet is that of a hash, so ties are its own each time: here there are none."""
    models = pytest.importorskip("tokenizers.models")
    tokenizers = pytest.importorskip("tokenizers")
    rng = random.Random(5)
    compared = 0
    while compared < 5:
        words = {word: rng.randint(1, 3000) for word in random_words(rng, "abcdefgh")}
        size = 60
        entries, _ = learned(words, size, criterion="frequency")
        if entries != learned(words, size, criterion="frequency", tie_rule="largest-string")[0]:
            continue
        theirs = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
        theirs.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
        trainer = tokenizers.trainers.WordPieceTrainer(vocab_size=size, special_tokens=["[UNK]"], show_progress=False)
        theirs.train_from_iterator([" ".join([word] * count) for word, count in words.items()], trainer)
        assert set(entries) == set(theirs.get_vocab())
        compared += 1


def test_training_with_special_tokens() -> None:
    entries, tok = learned(WORDS, 60, special_tokens=SPECIALS, bos_token="[CLS]", eos_token="[SEP]", pad_token="[PAD]")
    assert entries[0] == "[UNK]" and tok.unk_id == 0
    last = [len(entries) + at for at in range(4)]
    assert tok.special_tokens == {"[UNK]": 0, "[PAD]": last[0], "[CLS]": last[1], "[SEP]": last[2], "[MASK]": last[3]}
    assert tok.encode("hug é", add_special_tokens=True) == [last[1], tok.token_id("hug"), 0, last[2]]
    again = formats.read(tokenizer_json.write(tok.spec.replace(roles={})))
    assert again.model.vocab.ids.tolist() == tok.spec.model.vocab.ids.tolist()
    assert Tokenizer(again).encode("hugs pun", add_special_tokens=True) == tok.encode(
        "hugs pun", add_special_tokens=True
    )


def test_training_is_the_same_however_it_is_fed() -> None:
    texts = list(TEXTS.values())
    options: dict[str, Any] = {"vocab_size": 1500, "algorithm": "wordpiece", "pattern": "bert-uncased"}
    for criterion in ("likelihood", "frequency"):
        tok = subword.train(texts, criterion=criterion, **options)
        assert tok == subword.train(texts[::-1], criterion=criterion, threads=2, **options)
        table = subword.count_pieces(texts, pattern="bert-uncased")
        assert tok == subword.train(
            counts=table, criterion=criterion, **{name: value for name, value in options.items() if name != "pattern"}
        )
        assert tok.decode(tok.encode("The quick brown fox.")) == "the quick brown fox."


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unit": "character"}, "a WordPiece is made of characters"),
        ({"criterion": "loss"}, "unknown criterion 'loss'"),
        ({"vocab_size": 4}, "vocab_size=4 is below the minimum"),
        ({"pattern": "whitespace-split", "texts": ["###a #a b##a"], "vocab_size": 60}, "spelled alike"),
    ],
)
def test_bad_training(options: dict[str, Any], message: str) -> None:
    options = {"texts": ["hug pug"], "vocab_size": 30, "algorithm": "wordpiece", **options}
    with pytest.raises(SubwordValueError, match=message):
        subword.train(options.pop("texts"), **options)


# ======================== the model ========================


def spec_of(entries: list[str], *stages: Stage, extra: tuple[ExtraToken, ...] = (), **settings: Any) -> Spec:
    vocab = Vocab.of((entry.encode(), id) for id, entry in enumerate(entries))
    model = WordPiece(vocab, entries.index("[UNK]"), **settings)
    match = (MatchTokens(),) if extra else ()
    return Spec((*match, *stages), model, extra, decode=DecodeWordPiece())


def random_entries(rng: random.Random, letters: str, prefix: str = "##") -> list[str]:
    words = ("".join(rng.choices(letters, k=rng.randint(1, 5))) for _ in range(rng.randint(1, 40)))
    return ["[UNK]", *dict.fromkeys(rng.choice(("", prefix)) + word for word in words)]


@pytest.mark.parametrize("prefix", ["##", "", "#", "aa"])
def test_random_vocabularies(prefix: str) -> None:
    rng = random.Random(prefix)
    for _ in range(150):
        letters = "abé中#"[: rng.randint(2, 5)]
        entries = random_entries(rng, letters, prefix)
        spec = spec_of(
            entries, Split("none"), continuing_subword_prefix=prefix, max_input_chars_per_word=rng.choice((6, 30, 100))
        )
        core, slow = Tokenizer(spec), Tokenizer(spec, engine="reference")
        for length in (0, 1, 3, 6, 7, 12, 30, 31, 60):
            text = "".join(rng.choices(letters, k=length))
            data = text.encode()[:-1] if rng.random() < 0.2 else text.encode()
            assert core.encode(data) == slow.encode(data), (entries, data)
            mine, theirs = core.tokenize(data), slow.tokenize(data)
            assert mine.byte_spans.tolist() == theirs.byte_spans.tolist(), (entries, data)
            assert core.decode_bytes(mine.ids) == slow.decode_bytes(mine.ids)
            assert core.truncate(text, 3) == slow.truncate(text, 3)
            assert core.truncate(text, 2, side="left") == slow.truncate(text, 2, side="left")


def test_words_of_too_many_characters_are_unknown() -> None:
    entries = ["[UNK]", "é", "##é"]
    for most in (1, 5, 100):
        tok = Tokenizer(spec_of(entries, SplitPunctuation(), max_input_chars_per_word=most))
        assert tok.encode("é" * most + " " + "é" * (most + 1)) == [1, *[2] * (most - 1), 0]
    assert Tokenizer(spec_of(entries, SplitPunctuation(), max_input_chars_per_word=0)).encode("é") == [0]


def test_a_long_word_takes_time_by_its_length_and_no_more() -> None:
    """Entries that nearly match at each place: what a walk has read is not read again."""
    entries = ["[UNK]", "a", "##a", "##" + "a" * 500 + "b"]
    tok = Tokenizer(spec_of(entries, SplitPunctuation(), max_input_chars_per_word=10**9))
    assert tok.encode("a" * 300_000) == [1, *[2] * 299_999]
    assert tok.encode("a" * 300_000 + "c") == [0]


def test_decoding() -> None:
    entries = ["[UNK]", "un", "##aff", "##able", ",", ".", "n't", "##", "##'s", "do not"]
    tok = Tokenizer(spec_of(entries, SplitPunctuation(), extra=(ExtraToken(10, "[SEP]"),)))
    ids = [1, 2, 3, 4, 1, 6, 5, 10, 2, 9, 7, 8]
    assert tok.decode(ids) == "unaffable, unn't. [SEP]aff don't's"
    assert tok.decode(ids[1:3]) == "##affable"
    assert tok.decode(ids, skip_special_tokens=True) == "unaffable, unn't.aff don't's"
    assert Tokenizer(tok.spec, engine="reference").decode(ids) == tok.decode(ids)
    plain = Tokenizer(tok.spec.replace(decode=DecodeWordPiece(cleanup=False)))
    assert plain.decode(ids) == "unaffable , un n't . [SEP]aff do not's"
    apart = Tokenizer(tok.spec.replace(decode=DecodeWordPiece("", cleanup=False)))
    assert apart.decode(ids[:3]) == "un ##aff ##able"
    assert (tok.token_bytes(2), tok.token_piece(2), tok.token_id("##aff")) == (b"aff", "##aff", 2)
    rng = random.Random(3)
    for _ in range(200):
        ids = rng.choices(range(11), k=rng.randint(0, 8))
        for each in (tok, plain, apart):
            for skip in (False, True):
                stream = each.stream_decoder(skip_special_tokens=skip)
                assert "".join(stream.feed(id) for id in ids) + stream.finish() == each.decode(ids, "replace", skip)
            assert Tokenizer(each.spec, engine="reference").decode(ids) == each.decode(ids)
        assert tok.decode_batch([ids] * 3) == [tok.decode(ids)] * 3


def test_as_a_value() -> None:
    spec = spec_of(["[UNK]", "a", "##b"], *UNCASED, SplitPunctuation(), extra=(ExtraToken(3, "<s>"),))
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert formats.read(native.write(spec)) == spec
    others = [
        spec.replace(decode=DecodeWordPiece(cleanup=False)),
        spec.replace(stages=spec.stages[1:]),
        spec_of(["[UNK]", "a", "##b"], *UNCASED, SplitPunctuation(), extra=spec.extra, max_input_chars_per_word=99),
        spec_of(["[UNK]", "a", "##b"], *UNCASED, SplitPunctuation(), extra=spec.extra, continuing_subword_prefix="#"),
    ]
    assert len({spec.fingerprint, *(other.fingerprint for other in others)}) == 5
    tok = Tokenizer(spec)
    with pytest.raises(SubwordValueError, match="a WordPiece has no merges"):
        tok.last_merges()
    with pytest.raises(FormatError, match="no entry has the id 7"):
        Tokenizer(spec.replace(model=WordPiece(spec.model.vocab, 7)))
    for name in ("tiktoken", "minbpe", "subword-nmt", "clip", "vocab+merges"):
        with pytest.raises(SubwordValueError, match="cannot hold"):
            formats.save(spec, "x", name)


# ======================== with BERT's basic tokenization ========================


@pytest.fixture(scope="module", params=["cased", "uncased", "words alone"])
def bert(request: pytest.FixtureRequest) -> Tokenizer:
    """A vocabulary of its own: letters of every script, and some longer entries."""
    rng = random.Random(request.param)
    letters = sorted({char for text in TEXTS.values() for char in text if char.isalnum()})
    text = " ".join(TEXTS.values())
    cuts = [(at, at + rng.randint(2, 6)) for at in rng.sample(range(len(text) - 6), 3000)]
    words = dict.fromkeys(text[a:b] for a, b in cuts if text[a:b].isalnum())
    kept = [*letters, *words, *"!,.'-"]
    if request.param != "cased":
        kept = [unicodedata.normalize("NFD", word.lower()) for word in kept]
    entries = dict.fromkeys([*SPECIALS, *kept, *("##" + word for word in kept if rng.random() < 0.9)])
    ids = {entry: id for id, entry in enumerate(entries)}
    stages = CASED if request.param == "cased" else UNCASED
    extra = tuple(ExtraToken(ids[token], token) for token in SPECIALS)
    extra += (ExtraToken(len(ids) + 1, "@b"),)
    if request.param != "words alone":  # a token that is taken from normalized text looks across words
        extra += (ExtraToken(len(ids), "<New Tok>", "added", normalized=True, lstrip=True),)
    vocab = Vocab.of((entry.encode(), id) for entry, id in ids.items() if entry == "[UNK]" or entry not in SPECIALS)
    cls, sep = ids["[CLS]"], ids["[SEP]"]
    return Tokenizer(
        Spec(
            (MatchTokens(), *stages, MatchTokens(normalized=True), SplitPunctuation()),
            WordPiece(vocab, ids["[UNK]"]),
            extra,
            Template((cls, "A", sep), (cls, "A", sep, "B", sep)),
            DecodeWordPiece(),
        )
    )


def texts_for(tok: Tokenizer) -> list[Any]:
    rng = random.Random(1)
    pieces = [tok.token_piece(id).removeprefix("##") for id in tok.spec.model.vocab.ids.tolist()]
    glue = ["".join(rng.choices([*pieces, " ", "\u0301", "\0", "[SEP]", "<new tok>"], k=12)) for _ in range(60)]
    return [*TEXTS.values(), *SURROGATES.values(), *BYTES.values(), *every_category().values(), *glue]


def changes_in_clusters(text: Any) -> bool:
    """Whether a character that is taken apart has more marks behind it, or marks change places: then the core has the
    span of the whole cluster where the reference may have that of a part.
    """
    text = text.decode(errors="replace") if isinstance(text, bytes) else text
    apart = [unicodedata.normalize("NFD", char) for char in text]
    followed = any(len(a) > 1 and unicodedata.combining(b[0]) for a, b in pairwise(apart))
    return followed or "".join(apart) != unicodedata.normalize("NFD", text)


def test_core_equals_reference(bert: Tokenizer) -> None:
    slow = Tokenizer(bert.spec, engine="reference")
    for text in (text[:250] for text in texts_for(bert)):  # the reference takes time by the square of the length
        for how in ({"disallowed_special": ()}, {"allowed_special": "all", "add_special_tokens": True}):
            mine, theirs = bert.tokenize(text, **how), slow.tokenize(text, **how)
            assert mine.ids.tolist() == theirs.ids.tolist() == bert.encode(text, **how), ascii(text)
            assert bert.count(text, **how) == len(mine.ids)
            if changes_in_clusters(text):
                continue
            assert mine.byte_spans.tolist() == theirs.byte_spans.tolist(), ascii(text)
            if isinstance(text, bytes) or text not in SURROGATES.values():  # of these, the two count otherwise
                assert mine.char_spans.tolist() == theirs.char_spans.tolist(), ascii(text)


def test_limits(bert: Tokenizer) -> None:
    slow = Tokenizer(bert.spec, engine="reference")
    rng = random.Random(2)
    for text in rng.sample(texts_for(bert), 10):
        text = text[:14]
        for n in (1, 4):
            for side in ("left", "right"):
                how: dict[str, Any] = {"side": side, "allowed_special": "all"}
                assert bert.truncate(text, n, **how) == slow.truncate(text, n, **how), (text, n, side)
    for text in (" ".join(TEXTS.values())[:1500], "a" * 400, "a " * 400, "中文" * 100, "x\0" * 100):
        for ends in ("character", "word"):
            chunks = bert.chunk(text, 16, ends=ends, disallowed_special=())
            assert "".join(chunk.text for chunk in chunks) == text
            assert all(chunk.tokens == bert.count(chunk.text, disallowed_special=()) <= 16 for chunk in chunks)


def test_batches_are_cut_where_nothing_changes(bert: Tokenizer) -> None:
    text = "\n".join(TEXTS.values()) * 20
    many = [text, text[:1000], "", "x" * 3000]
    for how in ({"disallowed_special": ()}, {"allowed_special": "all"}):
        one_by_one = [bert.encode(text, **how) for text in many]
        for threads in (1, 2, 3):
            assert bert.encode_batch(many, threads=threads, **how) == one_by_one
            assert bert.count_batch(many, threads=threads, **how) == list(map(len, one_by_one))


# ======================== HF tokenizers ========================


# All that Unicode has given out, and some of the private planes; in small blocks: HF's offsets take time by the square.
CODES = [*range(0xD800), *range(0xE000, 0x32000), *range(0xE0000, 0xE0200), *range(0xF0000, 0x110000, 0x101)]
BLOCKS = [[chr(code) for code in CODES[at : at + 64]] for at in range(0, len(CODES), 64)]


@pytest.mark.parametrize("stage", [CleanText(), PadChinese(), StripAccents(), None])
def test_every_character_is_cut_as_in_hf(stage: Stage | None) -> None:
    """Alone and between letters: what is dropped, what becomes or gets spaces, what is punctuation."""
    normalizers = pytest.importorskip("tokenizers.normalizers")
    cut = pytest.importorskip("tokenizers.pre_tokenizers").BertPreTokenizer()
    flags = {"clean_text": stage == CleanText(), "handle_chinese_chars": stage == PadChinese()}
    flags |= {"strip_accents": stage == StripAccents(), "lowercase": False}
    normalizer = normalizers.BertNormalizer(**flags)
    change = CHARACTERS[type(stage)] if stage is not None else str
    engine = Tokenizer(spec_of(["[UNK]"], *([stage] if stage is not None else []), SplitPunctuation()))._engine
    for block in BLOCKS:
        kept = [char for char in block if unicodedata.normalize("NFD", char) == char or stage != StripAccents()]
        text = "".join(f" {char} a{char}b" for char in kept)
        data = text.encode()
        mine = [data[a:b].decode() for a, b in engine.split(text, engine.ordinary_policy)]
        theirs = [piece for piece, _ in cut.pre_tokenize_str(normalizer.normalize_str(text))]
        assert ["".join(map(change, piece)).strip(" ") for piece in mine] == theirs, ascii(text)


def test_every_character_is_normalized_as_in_hf() -> None:
    theirs = pytest.importorskip("tokenizers.normalizers").BertNormalizer(lowercase=True)
    for block in BLOCKS:
        text = "a".join(block)
        for name in (CleanText, PadChinese):
            text = "".join(map(CHARACTERS[name], text))
        text = "".join(map(CHARACTERS[StripAccents], _core.normalize(text, "NFD", "9.0")))
        assert _core.lowercase(text, False, "17.0") == theirs.normalize_str("a".join(block))


def train_hf(lowercase: bool, texts: list[str], size: int = 2000) -> Any:
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.BertWordPieceTokenizer(lowercase=lowercase)
    made.train_from_iterator(texts, vocab_size=size, min_frequency=1, show_progress=False)
    cls, sep = made.token_to_id("[CLS]"), made.token_to_id("[SEP]")
    made.post_processor = tokenizers.processors.BertProcessing(("[SEP]", sep), ("[CLS]", cls))
    return made


@pytest.fixture(scope="module", params=[False, True], ids=["cased", "uncased"])
def pair(request: pytest.FixtureRequest) -> tuple[Tokenizer, Any]:
    """One trained by HF, as its tokenizer.json says it, and as HF runs it."""
    theirs = train_hf(request.param, list(TEXTS.values()))
    return Tokenizer(formats.read(theirs.to_str().encode())), theirs


def test_ids_and_texts_are_those_of_hf(pair: tuple[Tokenizer, Any]) -> None:
    ours, theirs = pair
    pieces = [piece.removeprefix(b"##") for piece in ours.spec.model.vocab.pieces]
    rng = random.Random(7)
    characters = ["".join(chr(rng.randrange(1, 0xD800)) for _ in range(40)) for _ in range(300)]
    high = ["".join(chr(rng.randrange(0xE000, 0x110000)) for _ in range(40)) for _ in range(100)]
    for text in (*hurting_for(pieces), *characters, *high):
        ids = theirs.encode(text, add_special_tokens=False).ids
        assert ours.encode(text, allowed_special="all") == ids, ascii(text[:80])
        assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=False), ascii(text[:80])
        assert ours.decode(ids, skip_special_tokens=True) == theirs.decode(ids), ascii(text[:80])
        both = ours.encode(text, allowed_special="all", add_special_tokens=True)
        assert both == theirs.encode(text).ids


def test_written_files_are_read_by_hf(pair: tuple[Tokenizer, Any]) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    ours, theirs = pair
    data = tokenizer_json.write(ours.spec)
    assert formats.read(data) == ours.spec
    again = tokenizers.Tokenizer.from_str(data.decode())
    for text in TEXTS.values():
        mine, old = again.encode(text, text[:20]), theirs.encode(text, text[:20])
        assert (mine.ids, mine.type_ids) == (old.ids, old.type_ids)
        assert again.decode(mine.ids) == theirs.decode(mine.ids)


def test_old_files_do_not_say_that_it_is_a_word_piece(pair: tuple[Tokenizer, Any]) -> None:
    ours, theirs = pair
    root = json.loads(theirs.to_str())
    del root["model"]["type"]
    assert formats.read(json.dumps(root).encode()) == ours.spec


def document(**changes: Any) -> dict[str, Any]:
    spec = spec_of(["[UNK]", "[PAD]", "a", "##a"], *CASED, SplitPunctuation(), extra=(ExtraToken(0, "[UNK]"),))
    root: dict[str, Any] = json.loads(tokenizer_json.write(spec))
    for path, value in changes.items():
        *above, last = path.split("__")
        here = root
        for name in above:
            here = here[name]
        here[last] = value
    return root


BAD_DOCUMENTS: dict[str, tuple[dict[str, Any], str]] = {
    "no unknown token": ({"model__unk_token": None}, "model.unk_token: without one"),
    "absent unknown token": ({"model__unk_token": "<unk>"}, "model.unk_token: '<unk>' is not a token"),
    "prefix": ({"model__continuing_subword_prefix": 1}, "model.continuing_subword_prefix: expected a string"),
    "length": ({"model__max_input_chars_per_word": -1}, "max_input_chars_per_word: expected a whole number"),
    "vocab": ({"model__vocab": {"[UNK]": 0, "a": 0}}, "model.vocab.a: the id 0 also belongs to"),
    "empty entry": ({"model__vocab": {"[UNK]": 0, "": 1}}, "a token cannot be empty"),
    "pre-tokenizer": ({"pre_tokenizer": {"type": "Words"}}, "'Words' is not supported; the pre-tokenizers are"),
    "decoder": ({"decoder": {"type": "Words"}}, "decoder.type: 'Words' is not supported"),
    "normalizer": ({"normalizer__lowercase": "yes"}, "normalizer.lowercase: expected true or false"),
}


@pytest.mark.parametrize("name", BAD_DOCUMENTS)
def test_bad_documents(name: str) -> None:
    changes, message = BAD_DOCUMENTS[name]
    formats.read(json.dumps(document()).encode())
    with pytest.raises(FormatError, match=message):
        formats.read(json.dumps(document(**changes)).encode())


def test_other_documents() -> None:
    alone = formats.read(json.dumps(document(decoder=None, pre_tokenizer=None, normalizer=None)).encode())
    assert alone.decode == DecodeWordPiece("", cleanup=False)
    assert alone.stages == (MatchTokens(), Split("none"))
    assert formats.read(tokenizer_json.write(alone)) == alone
    several = [{"type": "NFC"}, {"type": "BertNormalizer", "strip_accents": True, "lowercase": False}]
    spec = formats.read(json.dumps(document(normalizer={"type": "Sequence", "normalizers": several})).encode())
    assert spec.stages[1:-1] == (Normalize("NFC"), CleanText(), PadChinese(), Normalize("NFD"), StripAccents())
    assert formats.read(tokenizer_json.write(spec)) == spec


# ======================== vocab.txt ========================

LINES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "##b", "b", "\u2028")


def test_vocab_txt(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_bytes("".join(f"{line}\n" for line in LINES).encode())
    with pytest.raises(LeftOutError, match=r"does not say whether text is put into lower case.*pattern='bert-uncased'"):
        subword.load(path)
    tok = subword.load(path, pattern="bert-uncased")
    assert tok.encode("Áb [CLS] B", allowed_special="all", add_special_tokens=True) == [2, 4, 5, 2, 6, 3]
    assert subword.load(path, pattern="bert-cased").encode("Ab ab") == [1, 4, 5]
    assert (tok.bos_id, tok.eos_id, tok.pad_id, tok.unk_id) == (2, 3, 0, 1)
    assert list(tok.special_tokens) == list(LINES[:4])
    assert subword.load(path, pattern="bert-cased", special_tokens={}).special_tokens == {}
    with pytest.warns(SubwordWarning, match="load it with pattern='bert-uncased'"):
        tok.save(tmp_path / "x.vocab.txt")
    assert (tmp_path / "x.vocab.txt").read_bytes() == path.read_bytes()
    (tmp_path / "x.vocab.txt").unlink()
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false, "tokenize_chinese_chars": false}')
    assert subword.load(tmp_path).spec.stages == (MatchTokens(), CleanText(), SplitPunctuation())
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true, "strip_accents": false}')
    assert subword.load(path).spec.stages[1:] == (
        *CASED,
        Lowercase(final_sigma=False, unicode="17.0"),
        SplitPunctuation(),
    )
    assert subword.load(path, pattern="bert-uncased") == tok


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"[UNK]\na\n\nb\n", "line 3: an entry cannot be empty"),
        (b"[UNK]\na\nb\na\n", "line 4: 'a' stands already in line 2"),
        (b"[UNK]\n\xff\n", "not UTF-8 at byte 6"),
    ],
)
def test_bad_vocab_txt(data: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        vocab_txt.read(formats.Input(data, "x", pattern="bert-cased"))


def test_what_vocab_txt_cannot_hold(bert: Tokenizer) -> None:
    with pytest.raises(SubwordValueError, match="cannot hold"):
        vocab_txt.write(bert.spec)
    plain = spec_of(["[UNK]", "a"], *CASED, SplitPunctuation())
    for spec, message in (
        (plain.replace(decode=DecodeWordPiece(cleanup=False)), "its decode is not BERT's"),
        (plain.replace(stages=(SplitPunctuation(),)), "the stages"),
        (plain.replace(model=WordPiece(Vocab.of([(b"[UNK]", 0), (b"a", 2)]), 0)), "ids with holes: there is no 1"),
        (plain.replace(model=WordPiece(Vocab.of([(b"[UNK]", 0), (b"a\n", 1)]), 0)), "which is no line"),
        (plain.replace(model=WordPiece(plain.model.vocab, 0, max_input_chars_per_word=7)), "its model is not BERT's"),
        (plain.replace(model=WordPiece(Vocab.of([(b"[unk]", 0)]), 0)), r"a vocabulary without \[UNK\]"),
    ):
        with pytest.raises(SubwordValueError, match=message):
            vocab_txt.write(spec)


def test_glued_entries(pair: tuple[Tokenizer, Any]) -> None:
    ours, theirs = pair
    rng = random.Random(11)
    pieces = [piece.removeprefix(b"##").decode() for piece in ours.spec.model.vocab.pieces]
    for _ in range(300):
        word = glued(pieces, rng.randint(1, 12), rng)
        assert ours.encode(word, allowed_special="all") == theirs.encode(word, add_special_tokens=False).ids
