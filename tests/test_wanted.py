"""What can be asked of tokens besides being frequent: each option against the reference, and what it promises."""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from texts import TEXTS

import subword
from subword import SubwordValueError, Tokenizer, _core
from subword.bpe import reference

TIE_RULES = list(reference.TIE_RULES)
REAL = [text for text in TEXTS.values() if text]
HARD = ["a", "b", "é", "è", "你", "佢", "佣", "𐀀", "😀", "😁"]  # two, three and four bytes, with beginnings in common
MARK = "</w>"


def random_pieces(rng: random.Random, letters: list[str]) -> dict[bytes, int]:
    pieces: dict[bytes, int] = {}
    for _ in range(rng.randint(1, 8)):
        piece = "".join(rng.choices(letters, k=rng.randint(1, 9))).encode()
        pieces[piece] = pieces.get(piece, 0) + rng.choice((1, 1, 1, 2, 3))
    return pieces


def some(rng: random.Random, pieces: dict[bytes, int], letters: list[str]) -> list[bytes]:
    """Tokens of a vocabulary for these pieces: words of theirs and others."""
    others = ["".join(rng.choices(letters, k=rng.randint(1, 6))).encode() for _ in range(2)]
    return list(dict.fromkeys(rng.sample([*pieces, *others], k=rng.randint(0, 2))))


def listed(merges: Any) -> list[tuple[int, int]]:
    return [tuple(pair) for pair in merges.tolist()]


# ======================== the merges of the reference ========================


@pytest.mark.parametrize("tie_rule", TIE_RULES)
def test_bytes(tie_rule: str) -> None:
    rng = random.Random(tie_rule)
    for round in range(2_500):
        letters = list("abcd"[: rng.randint(1, 4)])
        pieces = random_pieces(rng, letters)
        most = rng.choice((None, 1, 2, 3, 4, 5, 7))
        initial = some(rng, pieces, letters) if round % 2 else []
        initial = [token for token in initial if len(token) <= (most or 9)]
        order = bytes(rng.sample(range(256), 256)) if round % 3 == 0 else reference.BYTES

        def allowed(token: bytes, most: int | None = most) -> bool:
            return most is None or len(token) <= most

        def train(pieces: Any, n: int, given: Any = (), order: bytes = order, allowed: Any = allowed) -> Any:
            return reference.train(pieces, n, alphabet=order, tie_rule=tie_rule, allowed=allowed, given=given)

        first = train(dict.fromkeys(initial, 1), 100)
        expected = train(pieces, len(first) + 15, first)
        merges, _, certain, _ = _core.Pieces(list(pieces.items())).learn_bpe(
            len(first) + 15, order, tie_rule, None, most, False, initial
        )
        assert listed(merges) == list(expected), (pieces, most, initial)
        assert certain == 0  # nothing was left out
        vocab = reference.make_vocab(expected, order)
        assert all(allowed(token) for token in vocab) and set(initial) <= set(vocab)
        for token in initial:
            ids = reference.encode(map(order.index, token), expected)
            assert [vocab[id] for id in ids] == [token]


@pytest.mark.parametrize("tie_rule", TIE_RULES)
def test_whole_characters(tie_rule: str) -> None:
    rng = random.Random(tie_rule)
    for round in range(2_500):
        letters = rng.sample(HARD, rng.randint(1, 6))
        pieces = random_pieces(rng, letters)
        if round % 4 == 0:  # ill-formed, cut anywhere
            pieces = {piece[rng.randint(0, 1) : rng.randint(2, 9)] or b"a": count for piece, count in pieces.items()}
        most = rng.choice((None, None, 1, 2, 3, 4, 6))
        initial = [t for t in some(rng, {}, letters) if len(t) <= (most or 99)] if round % 2 else []

        def allowed(token: bytes, most: int | None = most) -> bool:
            return most is None or len(token) <= most

        needed = len(reference.train_whole_characters({}, 99, tie_rule=tie_rule, initial=initial))
        room = needed + rng.randint(0, 20)
        expected = reference.train_whole_characters(pieces, room, tie_rule=tie_rule, allowed=allowed, initial=initial)
        merges, _, _, (_, sizes) = _core.Pieces(list(pieces.items())).learn_bpe(
            room, reference.BYTES, tie_rule, None, most, True, initial
        )
        assert listed(merges) == list(expected), (pieces, most, initial, room)
        done = rng.randint(0, len(expected))
        some_merges = dict(list(expected.items())[:done])
        tokens = sum(count * len(reference.encode(piece, some_merges)) for piece, count in pieces.items())
        assert len(sizes) == len(expected) + 1
        assert round % 4 == 0 or sizes[done] == tokens
        vocab = reference.make_vocab(expected)
        check_whole(vocab[256:])
        assert len(set(vocab)) == len(vocab) and all(allowed(token) for token in vocab)
        assert all(reference.encode(token, expected) == [vocab.index(token)] for token in initial)


def check_whole(learned: list[bytes]) -> None:
    """Each is whole characters, or a beginning of one that is there as well."""
    characters = {token for token in learned if reference.is_text(token) and len(token.decode()) == 1}
    beginnings = {c[:length] for c in characters for length in range(2, len(c))}
    assert all(reference.is_text(token) or token in beginnings for token in learned)


def kept_characters(pieces: dict[bytes, int], most: int | None, initial: list[bytes]) -> set[str]:
    counts: Counter[str] = Counter()
    for piece, count in pieces.items():
        for c in piece.decode():
            counts[c] += count
    needed = {c for token in initial for c in token.decode()}
    ranked = sorted({*counts, *needed}, key=lambda c: (c not in needed, -counts[c], c))
    return set(ranked[:most])


def symbols_of(piece: str, kept: set[str], mark: str) -> list[tuple[str, ...]]:
    """The piece, cut where a character is not kept."""
    runs: list[list[str]] = [[]]
    for at, c in enumerate(piece):
        if c in kept:
            runs[-1].append(c + mark if at == len(piece) - 1 else c)
        else:
            runs.append([])
    return [tuple(run) for run in runs if run]


@pytest.mark.parametrize("tie_rule", TIE_RULES)
def test_characters(tie_rule: str) -> None:
    rng = random.Random(tie_rule)
    for round in range(2_500):
        letters = rng.sample(HARD, rng.randint(1, 6))
        pieces = random_pieces(rng, letters)
        mark = rng.choice(("", MARK))
        initial = some(rng, {}, letters) if round % 2 else []
        needed = len({c for token in initial for c in token.decode()})
        limit = rng.choice((None, needed + 1, needed + 2, needed + 4))
        most = rng.choice((None, 4, 5, 8, 12))
        initial = [token for token in initial if len(token) <= (most or 99)]
        kept = kept_characters(pieces, limit, initial)
        words: dict[tuple[str, ...], int] = {}
        alphabet = set()
        for piece, count in [*pieces.items(), *((token, 0) for token in initial)]:
            for run in symbols_of(piece.decode(), kept, mark):
                alphabet |= set(run)
                if count:
                    words[run] = words.get(run, 0) + count

        def allowed(token: str, most: int | None = most, mark: str = mark) -> bool:
            return most is None or len(token.removesuffix(mark).encode()) <= most

        options: dict[str, Any] = {"alphabet": sorted(alphabet), "tie_rule": tie_rule, "allowed": allowed}
        once = {run: 1 for token in initial for run in symbols_of(token.decode(), kept, mark)}
        first = reference.train(once, 100, **options)
        expected = reference.train(words, len(first) + 15, given=first, **options)
        ours = _core.Pieces(list(pieces.items()))
        assert ours.characters(mark, limit, initial) == [symbol.encode() for symbol in sorted(alphabet)]
        merges, *_ = ours.learn_bpe_of_characters(len(first) + 15, mark, tie_rule, None, most, limit, initial)
        assert listed(merges) == list(expected), (pieces, mark, limit, most, initial)
        spelled = reference.make_vocab(expected, sorted(alphabet))
        assert {token.decode() + mark for token in initial} <= set(spelled)


@pytest.mark.parametrize("tie_rule", TIE_RULES)
def test_min_count_over_characters(tie_rule: str) -> None:
    rng = random.Random(tie_rule)
    for _ in range(300):
        pieces = random_pieces(rng, list("abcdé"))
        least = rng.randint(1, 4)
        kept = {piece: count for piece, count in pieces.items() if count >= least}
        if not kept:
            continue
        words = {run: count for piece, count in kept.items() for run in symbols_of(piece.decode(), set("abcdé"), MARK)}
        alphabet = reference.alphabet_of(words)
        expected = reference.train(words, 12, alphabet=alphabet, tie_rule=tie_rule)
        vocab = reference.make_vocab(expected, alphabet)
        texts = [piece for piece, count in pieces.items() for _ in range(count)]
        with contextlib.suppress(subword.SubwordWarning):
            tok = subword.train(
                texts,
                vocab_size=1 + len(vocab),
                pattern="none",
                unit="character",
                end_of_word=MARK,
                min_count=least,
                tie_rule=tie_rule,  # type: ignore[arg-type]
            )
        assert list(tok.spec.model.vocab.pieces) == [b"<unk>", *(token.encode() for token in vocab)]


@pytest.mark.parametrize("tie_rule", TIE_RULES)
def test_merges_that_are_certain_with_limits_and_initial_tokens(tie_rule: str) -> None:
    rng = random.Random(tie_rule)
    proved = 0
    for _ in range(400):
        letters = list("abcdef"[: rng.randint(2, 6)])
        pieces: Counter[bytes] = Counter()
        for _ in range(rng.randint(2, 25)):
            pieces["".join(rng.choices(letters, k=rng.randint(1, 9))).encode()] += rng.choice((1, 1, 2, 3, 30, 300))
        texts = list(pieces.elements())
        rng.shuffle(texts)
        least = rng.choice((2, 3, 4, 10, 40))
        if max(pieces.values()) < least:
            continue
        most, initial = rng.choice((None, 2, 3, 4)), [b"ab"] if rng.random() < 0.5 else []
        table = subword.count_pieces(texts, pattern="none")
        options = (30, reference.BYTES, tie_rule, None, most, False, initial)
        expected, *_ = table.pieces(in_order=True)[0].learn_bpe(*options)
        merges, _, certain, _ = table.pieces(min_count=least, in_order=True)[0].learn_bpe(*options)
        assert merges[:certain].tolist() == expected[:certain].tolist()
        lost = any(count < least for count in pieces.values())
        assert certain >= len(initial) if lost else certain == 0
        proved += len(initial) < certain < len(merges)
    assert proved > 20


def test_a_pair_that_is_too_long_does_not_end_the_proof() -> None:
    texts = ["abcd"] * 1_000 + ["xy"] * 50 + [f"{n}" for n in range(100, 120)]
    tok = subword.train(texts, vocab_size=259, pattern="none", min_count=2, max_token_bytes=2)
    assert [token.decode() for token in list(tok.vocab)[256:]] == ["ab", "cd", "xy"]
    assert tok.training is not None and tok.training["pruned"]["certain_merges"] == 3


# ======================== what is promised, on real text ========================


def train_real(**options: Any) -> Tokenizer:
    return subword.train(REAL, **{"vocab_size": 900, **options})


@pytest.mark.filterwarnings("ignore::subword.SubwordWarning")
@pytest.mark.parametrize("tie_rule", TIE_RULES)
@pytest.mark.parametrize("whole", [False, True])
def test_no_token_is_longer_than_asked(whole: bool, tie_rule: str) -> None:
    longest = []
    for most in range(1, 21):
        tok = train_real(
            max_token_bytes=most, keep_whole_characters=whole, tie_rule=tie_rule, pattern="none", vocab_size=1_400
        )
        longest.append(max(map(len, tok.vocab)))
        assert longest[-1] <= most
        assert all(tok.decode_bytes(tok.encode(text)) == _core.frozen_text(text).encode() for text in REAL[:3])
    assert longest[:8] == list(range(1, 9))  # and tokens of exactly that length are made


@pytest.mark.filterwarnings("ignore::subword.SubwordWarning")
def test_no_token_of_characters_is_longer_than_asked() -> None:
    for mark in ("", "</mark>"):
        for most in range(4, 21):
            tok = train_real(max_token_bytes=most, unit="character", end_of_word=mark, vocab_size=3_000)
            lengths = [len(token.removesuffix(mark.encode())) for token in tok.vocab if token != b"<unk>"]
            assert max(lengths) <= most
            assert most > 8 or max(lengths) == most


@pytest.mark.parametrize("tie_rule", TIE_RULES)
@pytest.mark.parametrize("pattern", ["o200k", "none"])
def test_tokens_are_whole_characters(pattern: str, tie_rule: str) -> None:
    for size in (257, 258, 259, 260, 300, 301, 302, 303, 1_000):
        tok = train_real(keep_whole_characters=True, pattern=pattern, tie_rule=tie_rule, vocab_size=size)
        assert tok.n_vocab == size
        check_whole(list(tok.vocab)[256:])


@pytest.mark.filterwarnings("ignore:a .tiktoken file holds neither")
def test_whole_characters_come_out_of_every_file(tmp_path: Path) -> None:
    tok = train_real(keep_whole_characters=True, initial=[" whole", "你好"], max_token_bytes=9)
    assert [tok.decode(tok.encode(text)) for text in (" whole", "你好")] == [" whole", "你好"]
    assert len(tok.encode(" whole")) == len(tok.encode("你好")) == 1
    for name in ("a.tiktoken", "a.json", "a.subword"):
        bare: dict[str, Any] = {"pattern": "o200k", "special_tokens": {}} if name == "a.tiktoken" else {}
        again = subword.load(tok.save(tmp_path / name), **bare)
        for text in REAL:
            assert again.encode(text, disallowed_special=()) == tok.encode(text, disallowed_special=()), name


def test_a_beginning_is_in_no_vocabulary_without_its_character() -> None:
    texts = ["你"] * 10 + ["佢"] * 9 + ["佣"] * 8 + ["😀"] * 7
    options: dict[str, Any] = {"keep_whole_characters": True}
    learned = [b"\xe4\xbd", *(c.encode() for c in "你佢佣"), *("😀".encode()[:n] for n in (2, 3, 4))]
    for size in (258, 259, 260, 263):
        assert list(subword.train(texts, vocab_size=size, **options).vocab)[256:] == learned[: size - 256]
    for size, there in ((257, 256), (261, 260), (262, 260)):
        with pytest.warns(subword.SubwordWarning, match=f"no pairs left that may be merged after {there - 256} merges"):
            assert subword.train(texts, vocab_size=size, **options).n_vocab == there


# ======================== initial tokens, and a smaller alphabet ========================


@pytest.mark.parametrize("tie_rule", TIE_RULES)
def test_initial_tokens_are_there_and_count(tie_rule: str) -> None:
    tokens = [" diabetes", " diabetic", "mellitus", b"\xf0\x9f", "é", "x"]
    tok = train_real(initial=tokens, tie_rule=tie_rule, special_tokens=["<s>"])
    assert tok.n_vocab == 900 and tok.training is not None
    assert all(len(tok.encode(token)) == 1 for token in tokens)
    made = tok.training["initial_merges"]
    assert tok.training["initial"] == 6
    pieces = [token if isinstance(token, bytes) else token.encode() for token in tokens]
    first = reference.train(pieces, 99, tie_rule=tie_rule)
    assert len(first) == made and listed(tok.spec.model.merges)[:made] == list(first)
    least = 256 + 1 + made
    assert train_real(initial=tokens, tie_rule=tie_rule, special_tokens=["<s>"], vocab_size=least).n_vocab == least
    with pytest.raises(SubwordValueError, match=f"minimum of {least}: 256 bytes and {made} merges for the initial tok"):
        train_real(initial=tokens, tie_rule=tie_rule, special_tokens=["<s>"], vocab_size=least - 1)


def test_initial_tokens_of_characters_end_a_word() -> None:
    tok = subword.train(
        ["low lower"], vocab_size=16, unit="character", end_of_word=MARK, pattern="spaces", initial=["newest", "é"]
    )
    assert [tok.token_piece(id) for id in tok.encode("newest é")] == ["newest</w>", "é</w>"]
    with pytest.raises(SubwordValueError, match="<unk> and 11 characters and 6 merges for the initial tokens"):
        subword.train(
            ["low lower"], vocab_size=15, unit="character", end_of_word=MARK, pattern="spaces", initial=["newest", "éa"]
        )


def test_a_smaller_alphabet_keeps_the_most_frequent() -> None:
    options: dict[str, Any] = {"unit": "character", "pattern": "spaces", "limit_alphabet": 2}
    tok = subword.train(["bbb ccc aa da ad"], vocab_size=6, **options)  # four of a; three of b and of c
    assert list(tok.vocab) == [b"<unk>", b"a", b"b", b"bb", b"aa", b"bbb"]
    tok = subword.train(["xay xay xby ay"], vocab_size=4, **options)  # four of y; three of a and of x
    assert list(tok.vocab) == [b"<unk>", b"a", b"y", b"ay"]
    assert tok.encode("xay") == [0, 3]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"initial": ["New York"]}, r"initial token 'New York' is cut into 'New' \| ' York' \(pattern 'o200k'"),
        ({"initial": ["1234"]}, r"'1234' is cut into '123' \| '4'"),
        ({"initial": ["12"], "digits": "one"}, r"'12' is cut into '1' \| '2'"),
        ({"initial": ["a<s>"]}, "holds the special token '<s>'"),
        ({"initial": ["<s>"]}, "holds the special token '<s>'"),
        ({"initial": ["é"], "normalization": "NFD"}, r"becomes 'e\\u0301': give it like that"),
        ({"initial": [" "], "pattern": "spaces"}, "' ' is left out of all pieces"),
        ({"initial": "abc"}, "initial must be a list"),
        ({"initial": [""]}, "must be a string or bytes, and not empty"),
        ({"initial": [5]}, "must be a string or bytes, and not empty, not 5"),
        ({"initial": ["\ud800"]}, "lone surrogate"),
        ({"initial": ["abcd"], "max_token_bytes": 3}, "'abcd' has 4 bytes, more than max_token_bytes=3"),
        ({"initial": [b"\xff"], "keep_whole_characters": True}, r"b'\\xff' is not made of whole characters"),
        ({"initial": [b"\xff"], "unit": "character"}, r"b'\\xff' is not made of whole characters"),
        (
            {"initial": ["abc"], "unit": "character", "limit_alphabet": 2},
            "have 3 characters, more than limit",
        ),
        ({"max_token_bytes": 0}, "max_token_bytes must be an integer of at least 1, not 0"),
        ({"max_token_bytes": 2.5}, "max_token_bytes must be an integer"),
        ({"max_token_bytes": 2, "unit": "character"}, "max_token_bytes=2 is less than a character.*'你' has 3 bytes"),
        ({"limit_alphabet": 0, "unit": "character"}, "limit_alphabet must be an integer of at least 1"),
        ({"limit_alphabet": 5}, 'limit_alphabet goes with unit="character"'),
        ({"keep_whole_characters": "yes"}, "keep_whole_characters must be True or False"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SubwordValueError, match=message):
        subword.train(["ab ab 你"], **{"vocab_size": 300, "special_tokens": ["<s>"], **options})


def test_from_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("low lower lowest 你好 你们 " * 20, "utf-8")
    (tmp_path / "words.txt").write_bytes(b" dia\r\n\nbetes\n")
    out, text = tmp_path / "t.json", str(tmp_path / "text.txt")

    def run(*args: str) -> str:
        command = [sys.executable, "-m", "subword", "train", text, "-o", str(out), "--force", *args]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        return done.stdout if done.returncode == 0 else done.stderr

    size = ["-v", "285"]
    words = ["--initial", "xy", "--initial-file", str(tmp_path / "words.txt")]
    run(*size, "--max-token-bytes", "6", *words, "--keep-whole-characters")
    tok = subword.load(out)
    assert max(map(len, tok.vocab)) == 6
    assert [len(tok.encode(token)) for token in ("xy", " dia", "betes", "你")] == [1, 1, 1, 1]
    check_whole(list(tok.vocab)[256:])
    assert "limit_alphabet goes with unit" in run(*size, "--limit-alphabet", "3")
    assert "--initial-file nowhere: No such file" in run(*size, "--initial-file", "nowhere")
    out = tmp_path / "t.subword"
    run("-v", "5", "--unit", "character", "--limit-alphabet", "3", "--pattern", "spaces")
    assert list(subword.load(out).vocab) == [b"<unk>", b"l", b"o", b"w", b"lo"]
