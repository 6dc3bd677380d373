"""BPE over characters and with an end-of-word marker: the core against the references, decoding, training, limits."""

from __future__ import annotations

import contextlib
import io
import random
import sys
import unicodedata

import numpy as np
import pytest
from texts import BYTES, TEXTS, every_category

import subword
from subword import (
    BPE,
    Decode,
    ExtraToken,
    FormatError,
    Lowercase,
    MatchTokens,
    Normalize,
    Spec,
    Split,
    SplitRegex,
    SubwordValueError,
    Tokenizer,
    Vocab,
    _core,
    patterns,
)
from subword.bpe import reference
from subword.explain import expand
from subword.explain.vocabulary import Vocabulary

LETTERS = ["a", "b", "é", "中", "Σ", "<"]


def random_model(rng: random.Random, unit: str, marker: str, ignore_merges: bool = False) -> BPE:
    """Two to four letters, some of them without an entry where units are characters, and merges in any order."""
    letters = rng.sample(LETTERS, rng.randint(2, 4))
    symbols = [letter.encode() for letter in letters] if unit == "character" else [bytes([b]) for b in range(256)]
    units = [symbol + end for symbol in symbols for end in dict.fromkeys((b"", marker.encode()))]
    if unit == "character":
        units = rng.sample(units, rng.randint(1, len(units)))
    entries = dict.fromkeys([b"<unk>"] if unit == "character" else [])
    entries |= dict.fromkeys(units)
    usable = set("".join(letters).encode())
    pairs: dict[tuple[bytes, bytes], None] = {}
    for _ in range(rng.randint(0, 16)):
        parts = [p for p in entries if set(p.removesuffix(marker.encode())) <= usable and len(p) < 12 and p != b"<unk>"]
        stems = [part for part in parts if not marker or not part.endswith(marker.encode())]
        if stems:
            left, right = rng.choice(stems), rng.choice(parts)
            pairs[left, right] = entries[left + right] = None
    pieces = rng.sample(list(entries), len(entries))
    ids = {piece: id for id, piece in enumerate(pieces)}
    merges = [(ids[left], ids[right]) for left, right in pairs]
    rng.shuffle(merges)
    return BPE(
        Vocab.of(ids.items()),
        np.array(merges, dtype=np.uint32).reshape(-1, 2),
        ignore_merges=ignore_merges,
        unit=unit,  # type: ignore[arg-type]
        end_of_word=marker,
        unk=ids[b"<unk>"] if unit == "character" else None,
    )


MODELS = [
    (unit, marker) for unit in ("byte", "character") for marker in ("", "</w>", "b", "é") if unit + marker != "byte"
]


@pytest.mark.parametrize(("unit", "marker"), MODELS)
def test_random_vocabularies(unit: str, marker: str) -> None:
    """Ids, spans and decoding of the core and of the reference: ties everywhere, short and long, known and not."""
    rng = random.Random(f"{unit} {marker}")
    merged = unknown = 0
    for round in range(150 if unit == "character" else 40):
        model = random_model(rng, unit, marker, ignore_merges=round % 4 == 0)
        decode = Decode(rng.choice([" ", "", "··"]), trim=rng.random() < 0.5)
        spec = Spec((Split(rng.choice(["spaces", "gpt2", "none"])),), model, decode=decode)
        core, slow = Tokenizer(spec), Tokenizer(spec, engine="reference")
        for length in (1, 2, 3, 8, 20, 120, 300):
            text: str | bytes = "".join(rng.choices([*LETTERS, " "], k=length))
            if rng.random() < 0.2:
                text = text.encode()[1:] + b"\xff"
            ours, theirs = core.tokenize(text), slow.tokenize(text)
            assert ours == theirs, (text, spec.outline(), list(model.vocab.items()), model.merges.tolist())
            assert core.encode(text) == ours.ids.tolist()
            ids = ours.ids.tolist()
            assert core.decode_bytes(ids) == slow.decode_bytes(ids)
            stream = core.stream_decoder()
            assert "".join(map(stream.feed, ids)) + stream.finish() == core.decode(ids)
            merged += len(ids) < len(text)
            unknown += model.unk in ids
        assert core.last_merges().tolist() == slow.last_merges().tolist()
    assert merged > 20 and (unknown > 50 or unit == "byte")


def test_a_token_covers_its_characters_and_the_marker_covers_nothing() -> None:
    ids = {token.encode(): id for id, token in enumerate(["<unk>", "l", "o", "w", "w</w>", "ow</w>", "low</w>"])}
    merges = np.array([(2, 4), (1, 5)], dtype=np.uint32)
    model = BPE(Vocab.of(ids.items()), merges, unit="character", end_of_word="</w>", unk=0)
    tok = Tokenizer(Spec((Split("spaces"),), model, decode=Decode(trim=True)))
    encoding = tok.tokenize("low  lxw中 low")
    assert encoding.pieces == ["low</w>", "l", "<unk>", "w", "<unk>", "low</w>"]
    assert encoding.char_spans.tolist() == [[0, 3], [5, 6], [6, 7], [7, 8], [8, 9], [10, 13]]
    assert encoding.byte_spans.tolist() == [[0, 3], [5, 6], [6, 7], [7, 8], [8, 11], [12, 15]]
    assert encoding.token_bytes == [b"low ", b"l", b"<unk>", b"w", b"<unk>", b"low "]
    assert (tok.unk_id, tok.token_id("low</w>"), tok.token_bytes(6), tok.token_piece(6)) == (0, 6, b"low ", "low</w>")
    assert tok.decode([6, 1, 6]) == "low llow" and tok.decode([6, 1]) == "low l" and tok.decode([]) == ""
    assert ("piece", 'starts as characters, the last marked "</w>"') in {row[:2] for row in tok.plan()}


def test_views_of_a_vocabulary_of_characters() -> None:
    ids = {token.encode(): id for id, token in enumerate(["<unk>", "é", "w", "w</w>", "éw</w>", "ww"])}
    merges = np.array([(1, 3)], dtype=np.uint32)
    model = BPE(Vocab.of(ids.items()), merges, unit="character", end_of_word="</w>", unk=0)
    tok = Tokenizer(Spec((Split("spaces"),), model, decode=Decode(trim=True)))
    vocabulary = Vocabulary(tok)
    kinds = ["unknown", "character", "character", "character", "merge", "unreachable"]
    assert [vocabulary.kind(id) for id in range(6)] == kinds
    entry = vocabulary.entry(4)
    assert (entry.data, entry.piece, entry.made_of, entry.rank) == ("éw ".encode(), "éw</w>", (1, 3), 0)
    assert [part.data for part in expand(tok, 4).parts or ()] == ["é".encode(), b"w "]
    assert tok.last_merges().tolist() == [[-1, -1]] * 4 + [[1, 3], [-1, -1]]


def test_streamed_words_are_parted_by_spaces_even_around_skipped_tokens() -> None:
    ids = {token.encode(): id for id, token in enumerate(["<unk>", "a", "a</w>"])}
    model = BPE(Vocab.of(ids.items()), unit="character", end_of_word="</w>", unk=0)
    spec = Spec((MatchTokens(), Split("spaces")), model, (ExtraToken(9, "<s>"),), decode=Decode(trim=True))
    tok = Tokenizer(spec)
    stream = tok.stream_decoder(skip_special_tokens=True)
    assert [stream.feed(id) for id in (2, 9, 9, 1, 2, 9, 2)] == ["a", "", "", " a", "a", "", " a"]
    assert stream.finish() == "" and stream.feed([2]) == "a"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"unk": 77}, "no entry has the id 77"),
        ({"unit": "byte", "unk": None}, "an entry for each byte that UTF-8 has, and one with the end-of-word marker"),
        ({"unit": "word"}, "unknown unit"),
        ({"priority": "rank"}, "only merges go with characters"),
        ({"end_of_word": "\ud800"}, "a value that does not belong there"),
    ],
)
def test_contradictions_are_refused(changes: dict[str, object], message: str) -> None:
    settings = {"unit": "character", "end_of_word": "</w>", "unk": 0} | changes
    model = BPE(Vocab.of([(b"<unk>", 0), (b"a", 1), (b"aa", 2)]), np.array([[1, 1]], np.uint32), **settings)  # type: ignore[arg-type]
    with pytest.raises(FormatError, match=message):
        Tokenizer(Spec((), model))


def test_bytes_need_an_entry_for_each_last_byte() -> None:
    entries = [(bytes([byte]) + end, byte + at) for at, end in ((0, b""), (256, b"</w>")) for byte in range(256)]
    without_dot = [entry for entry in entries if entry[0] != b".</w>"]
    with pytest.raises(FormatError, match='marker "</w>" behind it; 1 are missing: 0x2E'):
        Tokenizer(Spec((), BPE(Vocab.of(without_dot), end_of_word="</w>")))
    for engine in ("core", "reference"):  # which UTF-8 never has
        tok = Tokenizer(Spec((), BPE(Vocab.of(entries[:-1]), end_of_word="</w>")), engine=engine)  # type: ignore[arg-type]
        with pytest.raises(SubwordValueError, match="byte 1 of the text is 0xFF"):
            tok.encode(b"a\xff")
    with pytest.raises(FormatError, match="no unknown characters"):
        Tokenizer(Spec((), BPE(Vocab.of(entries), end_of_word="</w>", unk=0)))
    assert Tokenizer(Spec((), BPE(Vocab.of(entries), end_of_word="</w>"))).encode("ab") == [97, 256 + 98]


# ======================== lower case, and what patterns drop ========================


def known_characters() -> str:
    """What this Python knows: its tables may be older than ours, and its `lower` with them."""
    points = (chr(point) for point in range(sys.maxunicode + 1) if not 0xD800 <= point < 0xE000)
    return "".join(char for char in points if unicodedata.category(char) != "Cn")


def test_lower_case_is_that_of_python() -> None:
    known = known_characters()
    if unicodedata.unidata_version > "16.0.0":
        known = "".join(char for char in known if patterns.character_class("L").fullmatch(char) or char < "\u0300")
    assert _core.lowercase(known, True, "16.0") == known.lower()
    assert [_core.lowercase(char, True, "16.0") for char in known] == [char.lower() for char in known]
    rng = random.Random(1)
    kinds = ["Σ", "Σ", "Α", "a", "'", ".", ":", "\u0301", "\u00ad", "ʰ", " ", "1", "中", "Ⅷ", "ς", "İ", "\u2019", "^"]
    for _ in range(5_000):
        text = "".join(rng.choices(kinds, k=rng.randint(1, 9)))
        assert _core.lowercase(text, True, "16.0") == text.lower(), text
        assert _core.lowercase(text, False, "16.0") == "".join(char.lower() for char in text), text
    with pytest.raises(ValueError, match="no class tables for Unicode"):
        _core.lowercase("A", True, "9.0")


def hurting_texts() -> list[str | bytes]:
    rng = random.Random(2)
    parts = [
        "a",
        "AB",
        "Σ",
        "ΑΣ",
        " ",
        "  ",
        "\n",
        "\t",
        "\u3000",
        "'S",
        "'ſ",
        "İ",
        "é",
        "E\u0301",
        "12",
        "<|x|>",
        "<|X|>",
        "!",
    ]
    made = ["".join(rng.choices(parts, k=rng.randint(1, 9))) for _ in range(100)]
    return [*TEXTS.values(), *BYTES.values(), *every_category().values(), *made]


STAGES: list[tuple[object, ...]] = [
    (MatchTokens(), Lowercase(), Split("clip")),
    (Normalize("NFC"), Lowercase(), MatchTokens(normalized=True), Split("clip")),
    (Lowercase(final_sigma=False, unicode="17.0"), Split("clip-cased"), Split("gpt2")),
    (MatchTokens(), Lowercase(), Split("gpt2")),
    (MatchTokens(), Split("spaces")),
    (MatchTokens(), Split("whitespace-split")),
]


@pytest.mark.parametrize("stages", STAGES, ids=str)
def test_stages(stages: tuple[object, ...]) -> None:
    rng = random.Random(6)
    model = random_model(rng, "byte", "</w>")
    normalized = MatchTokens(normalized=True) in stages
    extra = (ExtraToken(5000, "<|x|>", normalized=normalized),) if len(stages) > 2 or MatchTokens() in stages else ()
    spec = Spec(stages, model, extra)  # type: ignore[arg-type]
    core, slow = Tokenizer(spec), Tokenizer(spec, engine="reference")
    for text in hurting_texts():
        for allowed in ((), "all"):
            options: dict[str, object] = {"allowed_special": allowed, "disallowed_special": ()}
            ours, theirs = (tok.tokenize(text, **options) for tok in (core, slow))  # type: ignore[arg-type]
            assert ours.ids.tolist() == theirs.ids.tolist(), text
            if not any(isinstance(stage, (Lowercase, Normalize)) for stage in stages):
                assert ours == theirs, text
            spans = ours.byte_spans.tolist()
            assert all(start < end for start, end in spans) and spans == sorted(spans), text


@pytest.mark.parametrize("stages", STAGES, ids=str)
def test_limits(stages: tuple[object, ...]) -> None:
    rng = random.Random(7)
    spec = Spec(stages, random_model(rng, "byte", "</w>"))  # type: ignore[arg-type]
    core, slow = Tokenizer(spec), Tokenizer(spec, engine="reference")
    parts = ["a", "ab", "Σ", "ΑΣ", "Σ.", ".Σ", "'", " ", "\n ", "\t", "中", "B", "1"]
    texts = ["".join(rng.choices(parts, k=rng.randint(1, 14))) for _ in range(40)]
    for text in [*texts, "ab " * 15, "  a  ", " ", "", "aaΣ " * 12 + "Σ'b"]:
        whole = core.count(text)
        for n in {0, 1, 2, 5, max(whole - 1, 0), whole}:
            for side in ("right", "left"):
                assert core.truncate(text, n, side) == slow.truncate(text, n, side), (text, n, side)  # type: ignore[arg-type]
        if len(text) < 60:
            assert core.chunk(text, 7, 2) == slow.chunk(text, 7, 2), text


def test_white_space_is_dropped_and_belongs_to_no_token() -> None:
    tok = subword.train(["ab"], vocab_size=257, pattern="spaces")
    assert tok.decode(tok.encode(" ab \n ab\t")) == "abab\t"
    assert tok.tokenize(" ab  ab").byte_spans.tolist() == [[1, 3], [5, 7]]
    assert tok.count("   ") == 0 and tok.truncate("ab   ab", 1) == "ab   "
    assert [chunk.text for chunk in tok.chunk(" ab ab ", 1)] == [" ab ", "ab "]


def test_limits_reach_over_what_is_dropped() -> None:
    tok = subword.train(["x"], vocab_size=256, pattern="spaces")
    for text, side in ((" " * 100 + "x" * 1000, "right"), ("x" * 1000 + " " * 100, "left")):
        for n in (0, 1, 3):
            assert len(tok.truncate(text, n, side)) == 100 + n  # type: ignore[arg-type]


def test_limits_see_cuts_in_lower_case() -> None:
    pieces = [*(bytes([byte]) for byte in range(256)), b"b ", b"b b"]
    model = BPE(Vocab.of((piece, id) for id, piece in enumerate(pieces)), np.array([(98, 32), (256, 98)]))
    tok = Tokenizer(Spec((Lowercase(), SplitRegex(r"b b|[a-z]|[A-Z]|\s")), model))
    text = "B " * 101
    counts = [tok.count(text[start:]) for start in range(len(text) + 1)]
    for n in range(102):
        assert tok.truncate(text, n, "left") == text[min(at for at, count in enumerate(counts) if count <= n) :]


# ======================== training ========================

CORPORA = {
    "two letters": " ".join("".join(random.Random(i).choices("ab", k=i % 11 + 1)) for i in range(300)),
    "runs": " ".join("a" * n for n in range(1, 30)),
    "many scripts": "\n".join(TEXTS[name] for name in TEXTS if "</w>" not in TEXTS[name]),
    "a sentence": "low lower lowest slow slower newer newest wide wider widest",
}


def clean(corpus: str) -> str:
    return corpus.replace("\r", "\n").encode("utf-8", "replace").decode()


def learned(tok: Tokenizer) -> list[tuple[str, str]]:
    pieces = {id: piece.decode() for piece, id in tok.spec.model.vocab.items()}
    return [(pieces[left], pieces[right]) for left, right in tok.spec.model.merges.tolist()]


def words_of(corpus: str) -> dict[tuple[str, ...], int]:
    counted: dict[tuple[str, ...], int] = {}
    for piece in patterns.split("spaces", corpus):
        word = (*piece[:-1], piece[-1] + "</w>")
        counted[word] = counted.get(word, 0) + 1
    return counted


@pytest.mark.parametrize("tie_rule", reference.TIE_RULES)
@pytest.mark.parametrize("name", CORPORA)
def test_training_is_that_of_the_reference(name: str, tie_rule: str) -> None:
    corpus = clean(CORPORA[name])
    words = words_of(corpus)
    alphabet = reference.alphabet_of(words)
    merges = reference.train(words, 40, alphabet=alphabet, tie_rule=tie_rule)
    vocab = reference.make_vocab(merges, alphabet)
    options = {"pattern": "spaces", "unit": "character", "end_of_word": "</w>", "tie_rule": tie_rule}
    with contextlib.suppress(subword.SubwordWarning):
        tok = subword.train([corpus], vocab_size=1 + len(vocab), **options)  # type: ignore[arg-type]
    assert learned(tok) == [(vocab[left], vocab[right]) for left, right in merges]
    assert list(tok.spec.model.vocab.pieces) == [b"<unk>", *(entry.encode() for entry in vocab)]
    assert (tok.training or {})["alphabet"] == len(alphabet)
    for threads in (1, 2):
        lines = corpus.split("\n")
        assert subword.train(lines, vocab_size=1 + len(vocab), threads=threads, **options) == tok  # type: ignore[arg-type]


@pytest.mark.parametrize("name", CORPORA)
def test_codes_are_those_of_subword_nmt(name: str) -> None:
    learn_bpe = pytest.importorskip("subword_nmt.learn_bpe")
    corpus, codes = clean(CORPORA[name]), io.StringIO()
    with contextlib.redirect_stderr(io.StringIO()):
        learn_bpe.learn_bpe(io.StringIO(corpus), codes, 60, min_frequency=1)
    theirs = [tuple(line.split(" ")) for line in codes.getvalue().split("\n")[1:-1]]
    size = 1 + len(reference.alphabet_of(words_of(corpus))) + len(theirs)
    tok = subword.train(
        [corpus], vocab_size=size, pattern="spaces", unit="character", end_of_word="</w>", tie_rule="largest-string"
    )
    assert learned(tok) == theirs


def test_a_sentence_by_hand() -> None:
    options = {"pattern": "spaces", "unit": "character", "end_of_word": "</w>", "tie_rule": "largest-string"}
    tok = subword.train(["aab ab", "ab ab b"], vocab_size=1 + 2 + 2, **options)  # type: ignore[arg-type]
    assert learned(tok) == [("a", "b</w>"), ("a", "ab</w>")]
    assert list(tok.vocab) == [b"<unk>", b"a", b"b</w>", b"ab</w>", b"aab</w>"]
    assert tok.decode(tok.encode("ab  aab b")) == "ab aab b"


def test_training_over_characters_keeps_white_space_where_the_pattern_does() -> None:
    for marker in ("", "</w>"):
        tok = subword.train(["the cat  sat"], vocab_size=14, pattern="gpt2", unit="character", end_of_word=marker)
        assert tok.decode(tok.encode("the cat  sat the")) == "the cat  sat the"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocab_size": 5}, r"below the minimum of 6: <unk> and 4 characters and 1 special tokens"),
        ({"vocab_size": 0}, "below the minimum of 2"),
        ({"unit": "word"}, "unknown unit 'word'"),
        ({"unit": "byte"}, 'goes with unit="character"'),
        ({"end_of_word": 5}, "must be a string"),
        ({"special_tokens": ["<unk>"]}, "leave it out of special_tokens"),
        ({"texts": ["b</w>x b</w>y c</w>z b"], "vocab_size": 17}, "the texts hold '<unk>' or the end-of-word marker"),
        ({"texts": ["a</w>a b</w>c"], "vocab_size": 13}, "the texts hold '<unk>' or the end-of-word marker"),
        ({"texts": ["x<unk>y x<unk>z z<unk>y"], "vocab_size": 15, "end_of_word": ""}, "the texts hold '<unk>'"),
        ({"texts": ["ab ba b"], "vocab_size": 7, "end_of_word": "b"}, "the texts hold '<unk>' or the end-of-word"),
    ],
)
def test_training_refuses(options: dict[str, object], message: str) -> None:
    given = {"texts": ["ab ba"], "vocab_size": 60, "unit": "character", "end_of_word": "</w>", "pattern": "spaces"}
    given |= {"special_tokens": ["<s>"]} | options
    with pytest.raises(subword.SubwordValueError, match=message):
        subword.train(**given)  # type: ignore[arg-type]


def test_ill_formed_pieces_are_not_learned_from() -> None:
    tok = subword.train([b"ab \xff\xff \xffab"], vocab_size=4, pattern="spaces", unit="character")
    assert list(tok.vocab) == [b"<unk>", b"a", b"b", b"ab"]
    assert tok.encode(b"ab a\xff") == [3, 1, 0]
