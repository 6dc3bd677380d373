"""The reference of BPE against answers worked out by hand, a naive second implementation, and other libraries."""

from __future__ import annotations

import doctest
import json
import os
import random
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import texts
from hypothesis import given
from hypothesis import strategies as st

from subword.bpe import reference
from subword.bpe.reference import (
    BYTES,
    TIE_RULES,
    alphabet_of,
    decode,
    encode,
    encode_by_rank,
    get_stats,
    make_vocab,
    merge,
    train,
)

BY_HAND = Path(__file__).parent.parent / "examples" / "bpe_by_hand.py"

SENTENCE = "low lower lowest slow slower newer newest wide wider widest"


def learn(text: str, n: int, tie_rule: str, mark: str = "") -> tuple[list[str], list[str], dict[tuple[int, int], int]]:
    """Split at spaces and train on characters: the alphabet, the vocabulary and the merges."""
    pieces = [word + mark for word in text.split(" ")]
    letters = alphabet_of(pieces)
    merges = train(pieces, n, alphabet=letters, tie_rule=tie_rule)
    return letters, make_vocab(merges, letters), merges


def learned(text: str, n: int, tie_rule: str, mark: str = "") -> str:
    """The merges as one reads them: `l+o lo+w`."""
    _, vocab, merges = learn(text, n, tie_rule, mark)
    return " ".join(f"{vocab[left]}+{vocab[right]}" for left, right in merges)


def encoded(piece: str, text: str, n: int, tie_rule: str, mark: str = "") -> str:
    """`piece` as its symbols: `low est·`."""
    letters, vocab, merges = learn(text, n, tie_rule, mark)
    return " ".join(vocab[id] for id in encode(map(letters.index, piece + mark), merges))


def counted(text: str, mark: str = "") -> dict[str, int]:
    """How often each two characters are neighbours within a word: `{"l+o": 5}`."""
    pieces = [word + mark for word in text.split(" ")]
    letters = alphabet_of(pieces)
    stats: dict[tuple[int, int], int] = {}
    for piece in pieces:
        get_stats(map(letters.index, piece), stats)
    return {f"{letters[left]}+{letters[right]}": count for (left, right), count in stats.items()}


# ---------------------------------------------------------------------------------------------------------------------
# by hand


def test_examples_in_the_docstrings() -> None:
    failed, tried = doctest.testmod(reference)
    assert tried > 15
    assert failed == 0


def test_counts_of_neighbours() -> None:
    assert get_stats([]) == get_stats([1]) == {}
    assert get_stats(b"aaa") == {(97, 97): 2}
    assert list(get_stats(b"abcab")) == [(97, 98), (98, 99), (99, 97)]  # in the order met
    assert get_stats(b"ab", {(97, 98): 10}, times=3) == {(97, 98): 13}


def test_overlapping_pairs_are_merged_from_the_left() -> None:
    assert merge([], (1, 1), 2) == []
    assert merge([1, 1], (1, 1), 2) == [2]
    assert merge([1, 1, 1], (1, 1), 2) == [2, 1]
    assert merge([1, 1, 1, 1], (1, 1), 2) == [2, 2]
    assert merge([1, 2, 1, 2, 1], (1, 2), 3) == [3, 3, 1]
    assert merge([1, 2, 1, 2, 1], (2, 1), 3) == [1, 3, 3]


def test_the_first_example_of_everyone() -> None:
    merges = train([b"aaabdaaabac"], 3, tie_rule="first-seen")
    ids = encode(b"aaabdaaabac", merges)
    assert ids == [258, 100, 258, 97, 99]
    assert decode(ids, make_vocab(merges)) == b"aaabdaaabac"


def test_sentence_counts() -> None:
    by_count: dict[int, str] = {}
    for pair, count in counted(SENTENCE, "·").items():
        by_count[count] = f"{by_count.get(count, '')} {pair}".strip()
    assert by_count == {
        5: "l+o o+w w+e",
        4: "e+r r+·",
        3: "e+s s+t t+· w+i i+d d+e",
        2: "w+· s+l n+e e+w",
        1: "e+·",
    }


def test_sentence_merges() -> None:
    assert learned(SENTENCE, 8, "first-seen", "·") == "l+o lo+w e+r er+· e+s es+t est+· w+i"


def test_sentence_symbols_in_use() -> None:
    _, vocab, merges = learn(SENTENCE, 8, "first-seen", "·")
    letters = vocab[: -len(merges)]
    ids = {id for word in SENTENCE.split() for id in encode(map(letters.index, word + "·"), merges)}
    assert {vocab[id] for id in ids} == {"est·", "er·", "·", "low", "wi", "d", "e", "n", "s", "w"}


@pytest.mark.parametrize(
    ("word", "symbols"), [("lowest", "low est·"), ("wider", "wi d er·"), ("slowest", "s low est·")]
)
def test_sentence_words(word: str, symbols: str) -> None:
    assert encoded(word, SENTENCE, 8, "first-seen", "·") == symbols


@pytest.mark.parametrize(
    ("tie_rule", "merges", "unseen"),
    [
        ("first-seen", "a+b ab+· a+ab· a+aab·", "a a ab ab·"),
        ("largest-string", "a+b ab+· a+ab· ab+ab·", "a a abab·"),
    ],
)
def test_a_tie_decides(tie_rule: str, merges: str, unseen: str) -> None:
    text = "aaab aab ab abab"
    assert learned(text, 4, tie_rule, "·") == merges
    assert encoded("aaabab", text, 4, tie_rule, "·") == unseen


def test_a_tie_decides_counts() -> None:
    pieces = ["aaab·", "aab·", "ab·", "abab·"]
    letters = alphabet_of(pieces)
    split = [[letters.index(symbol) for symbol in piece] for piece in pieces]
    counts = []
    for pair, idx in train(pieces, 4, alphabet=letters, tie_rule="first-seen").items():
        stats: dict[tuple[int, int], int] = {}
        for ids in split:
            get_stats(ids, stats)
        counts.append(stats[pair])
        split = [merge(ids, pair, idx) for ids in split]
    assert counts == [5, 4, 2, 1]


def test_the_cat_in_the_hat() -> None:
    text = "the cat in the hat"
    assert {pair for pair, count in counted(text).items() if count == 2} == {"t+h", "h+e", "a+t"}
    assert max(counted(text).values()) == 2
    assert learned(text, 3, "first-seen") == "t+h th+e a+t"
    assert [encoded(word, text, 3, "first-seen") for word in ("the", "hat")] == ["the", "h at"]


def test_rules_out_of_order() -> None:
    t, h, e, th, the = range(5)
    # one pass a rule, the later rule first: it finds nothing yet
    ids = merge(merge([t, h, e], (th, e), the), (t, h), th)
    assert ids == [th, e]
    # a rank is another thing: as soon as `th` stands there, `th+e` may merge, whatever its rank
    assert encode([t, h, e], {(t, h): th, (th, e): the}, ranks={(th, e): 0, (t, h): 1}) == [the]


def test_müller() -> None:
    text = "Müller Müller Müller".encode()
    assert len(text) == 23
    assert list(text[:8]) == [77, 195, 188, 108, 108, 101, 114, 32]
    stats = get_stats(text)
    assert sorted(stats.values()) == [2, 2, 3, 3, 3, 3, 3, 3]
    assert stats[114, 32] == stats[32, 77] == 2

    vocab = make_vocab({(195, 188): 256, (256, 101): 257})
    assert vocab[256] == b"\xc3\xbc"
    assert decode([77, 257], vocab).decode() == "Müe"


def test_müller_with_english_merges() -> None:
    merges = train(b"the cat in the hat".split(b" "), 3)
    ids = encode("Müller".encode(), merges)
    assert ids == [77, 195, 188, 108, 108, 101, 114]
    assert decode(ids, make_vocab(merges)).decode() == "Müller"


@pytest.mark.parametrize(
    ("char", "ids"), [("H", [72]), ("ü", [195, 188]), ("世", [228, 184, 150]), ("😊", [240, 159, 152, 138])]
)
def test_utf8(char: str, ids: list[int]) -> None:
    merges = train(b"the cat in the hat".split(b" "), 3)
    assert encode(char.encode(), merges) == ids
    assert decode(ids, make_vocab(merges)).decode() == char


def test_a_character_newer_than_the_training_text() -> None:
    merges = train([word.encode() for word in SENTENCE.split()], 20)
    newer = "\U0001faea"  # Unicode 17.0
    assert encode(newer.encode(), merges) == list(newer.encode())
    ids = encode(f"newer{newer}".encode(), merges)
    assert len(ids) < 5 + 4
    assert decode(ids, make_vocab(merges)).decode() == f"newer{newer}"


# ---------------------------------------------------------------------------------------------------------------------
# edges


@pytest.mark.parametrize("pieces", [[], [b""], [b"a"], [b"", b"a", b"b"], {}, {b"a": 10}])
def test_nothing_to_merge(pieces: list[bytes]) -> None:
    assert train(pieces, 5) == {}


def test_training_stops_when_no_pair_is_left() -> None:
    assert make_vocab(train([b"abc", b"abd"], 1000))[256:] == [b"ab", b"abc", b"abd"]
    assert train([b"abc"], 0) == {}


def test_merges_never_cross_pieces() -> None:
    assert make_vocab(train([b"ab", b"ab", b"ba"], 1000))[256:] == [b"ab", b"ba"]


def test_counts_are_exact() -> None:
    # 2**53 is the first count that a float cannot tell from the next
    assert list(train({b"ab": 2**53, b"cd": 2**53 + 1}, 1)) == [(99, 100)]


def test_a_text_is_not_a_list_of_pieces() -> None:
    with pytest.raises(TypeError, match="must be a list"):
        train("the cat", 5, alphabet="aceht ")
    with pytest.raises(TypeError, match="must be a list"):
        train(b"the cat", 5)  # type: ignore[arg-type]


def test_symbols_can_be_strings() -> None:
    pieces = [("l", "o", "w</w>"), ("s", "l", "o", "w</w>")]
    letters = alphabet_of(pieces)
    assert letters == ["l", "o", "s", "w</w>"]
    vocab = make_vocab(train(pieces, 3, alphabet=letters, tie_rule="largest-string"), letters)
    assert vocab[4:] == ["ow</w>", "low</w>", "slow</w>"]


def test_only_smallest_ids_looks_at_the_alphabet() -> None:
    backwards = BYTES[::-1]
    pieces = [b"ab", b"cd"]
    for tie_rule, same in [("first-seen", True), ("smallest-ids", False), ("largest-string", True)]:
        forth = make_vocab(train(pieces, 1, tie_rule=tie_rule))
        back = make_vocab(train(pieces, 1, alphabet=backwards, tie_rule=tie_rule), backwards)
        assert (forth[256] == back[256]) is same, tie_rule


def test_ids_that_do_not_follow_the_order_of_learning() -> None:
    a, b, c = 10, 11, 12
    merges = {(a, b): 3, (b, c): 2, (3, c): 1}
    ranks = {(a, b): 0, (b, c): 1, (3, c): 2}
    assert encode([a, b, c], merges, ranks) == [1]
    assert encode([b, b, c], merges, ranks) == [b, 2]
    assert encode([a, b, c], merges) == [a, 2]  # without ranks the lower id goes first


def test_one_merge_at_a_time() -> None:
    # `X a` ranks before `a b`: after the first `ab` it goes before the second one
    a, b, x, y = range(4)
    assert encode([a, b, a, b], {(a, b): x, (x, a): y}, ranks={(x, a): 0, (a, b): 1}) == [y, b]


# ---------------------------------------------------------------------------------------------------------------------
# a second implementation: it keeps strings, not ids, and looks for its pair from the start of the text every time


def naive_train(pieces: list[bytes], n: int, tie_rule: str) -> list[tuple[bytes, bytes]]:
    entries = [bytes([byte]) for byte in range(256)]
    text = [[piece[i : i + 1] for i in range(len(piece))] for piece in pieces]
    found: list[tuple[bytes, bytes]] = []
    while len(found) < n:
        met = [pair for piece in text for pair in pairwise(piece)]
        if not met:
            break
        highest = max(met.count(pair) for pair in set(met))
        ties = {pair for pair in met if met.count(pair) == highest}
        if tie_rule == "first-seen":
            left, right = next(pair for pair in met if pair in ties)
        elif tie_rule == "smallest-ids":
            left, right = min(ties, key=lambda pair: [entries.index(part) for part in pair])
        else:
            left, right = max(ties)
        found.append((left, right))
        entries.append(left + right)
        for piece in text:
            place = 0
            while place < len(piece) - 1:
                if piece[place] == left and piece[place + 1] == right:
                    piece[place : place + 2] = [left + right]
                place += 1
    return found


def small_corpus(seed: int) -> list[bytes]:
    """Short pieces over one to four letters: many ties, many overlaps."""
    rng = random.Random(seed)
    letters = "abcd"[: rng.randint(1, 4)]
    return ["".join(rng.choices(letters, k=rng.randint(1, 10))).encode() for _ in range(rng.randint(1, 40))]


@pytest.mark.parametrize("tie_rule", TIE_RULES)
@pytest.mark.parametrize("seed", range(40))
def test_against_a_naive_recount(tie_rule: str, seed: int) -> None:
    pieces = small_corpus(seed)
    merges = train(pieces, 15, tie_rule=tie_rule)
    vocab = make_vocab(merges)
    assert [(vocab[left], vocab[right]) for left, right in merges] == naive_train(pieces, 15, tie_rule)


# ---------------------------------------------------------------------------------------------------------------------
# properties

corpora = st.lists(st.text("ab", max_size=12).map(str.encode) | st.text("abü", max_size=8).map(str.encode), max_size=12)


@given(corpora, st.text() | st.text("abü"), st.sampled_from(sorted(TIE_RULES)))
def test_decode_inverts_encode(pieces: list[bytes], text: str, tie_rule: str) -> None:
    merges = train(pieces, 20, tie_rule=tie_rule)
    assert decode(encode(text.encode(), merges), make_vocab(merges)).decode() == text


@given(corpora, st.sampled_from(sorted(TIE_RULES)))
def test_encode_repeats_the_training(pieces: list[bytes], tie_rule: str) -> None:
    merges = train(pieces, 20, tie_rule=tie_rule)
    for piece in pieces:
        ids = list(piece)
        for pair, idx in merges.items():
            ids = merge(ids, pair, idx)
        assert encode(piece, merges) == ids


@given(corpora, st.text("abü", max_size=30), st.sampled_from(sorted(TIE_RULES)))
def test_ranks_say_the_same_as_merges(pieces: list[bytes], text: str, tie_rule: str) -> None:
    merges = train(pieces, 20, tie_rule=tie_rule)
    ranks = {token: id for id, token in enumerate(make_vocab(merges))}
    assert encode_by_rank(text.encode(), ranks) == encode(text.encode(), merges)


@given(corpora, st.sampled_from(sorted(TIE_RULES)))
def test_counts_stand_for_repeated_pieces(pieces: list[bytes], tie_rule: str) -> None:
    counts: dict[bytes, int] = {}
    for piece in pieces:
        counts[piece] = counts.get(piece, 0) + 1
    assert list(train(counts, 20, tie_rule=tie_rule).items()) == list(train(pieces, 20, tie_rule=tie_rule).items())


@given(corpora, st.randoms(use_true_random=False), st.sampled_from(["smallest-ids", "largest-string"]))
def test_the_order_of_pieces_does_not_matter(pieces: list[bytes], rng: random.Random, tie_rule: str) -> None:
    shuffled = rng.sample(pieces, len(pieces))
    assert list(train(shuffled, 20, tie_rule=tie_rule)) == list(train(pieces, 20, tie_rule=tie_rule))


@given(corpora, st.integers(0, 20), st.sampled_from(sorted(TIE_RULES)))
def test_a_shorter_training_is_the_start_of_a_longer_one(pieces: list[bytes], n: int, tie_rule: str) -> None:
    assert list(train(pieces, n, tie_rule=tie_rule)) == list(train(pieces, 20, tie_rule=tie_rule))[:n]


@pytest.fixture(scope="module")
def hard_merges() -> dict[tuple[int, int], int]:
    """Merges learned from the hard texts themselves, so that encoding them has much to merge."""
    return train([piece.encode() for text in texts.TEXTS.values() for piece in re.findall(r"\s?\S+|\s", text)], 300)


@pytest.mark.parametrize("name", texts.TEXTS)
def test_hard_texts_come_back(name: str, hard_merges: dict[tuple[int, int], int]) -> None:
    text = texts.TEXTS[name]
    assert decode(encode(text.encode(), hard_merges), make_vocab(hard_merges)).decode() == text


@pytest.mark.parametrize("name", texts.BYTES)
def test_hard_bytes_come_back(name: str, hard_merges: dict[tuple[int, int], int]) -> None:
    data = texts.BYTES[name]
    assert decode(encode(data, hard_merges), make_vocab(hard_merges)) == data


def test_every_category_comes_back(hard_merges: dict[tuple[int, int], int]) -> None:
    for name, text in texts.every_category().items():
        assert decode(encode(text.encode(), hard_merges), make_vocab(hard_merges)).decode() == text, name


@pytest.mark.parametrize("seed", range(20))
def test_glued_tokens(seed: int, hard_merges: dict[tuple[int, int], int]) -> None:
    vocab = make_vocab(hard_merges)
    data = texts.glued(vocab[256:], 30, random.Random(seed))
    ids = encode(data, hard_merges)
    assert decode(ids, vocab) == data
    assert encode_by_rank(data, {token: id for id, token in enumerate(vocab)}) == ids


# ---------------------------------------------------------------------------------------------------------------------
# other libraries

# HF numbers the bytes by the code points of the characters that stand for them: first those that print
HF_BYTES = bytes([*range(33, 127), *range(161, 173), *range(174, 256), *range(33), *range(127, 161), 173])


def hf_train(pieces: list[bytes], n: int) -> list[tuple[tuple[int, int], int]]:
    """HF's merges by their ids."""
    hf = pytest.importorskip("tokenizers")
    tok = hf.Tokenizer(hf.models.BPE())
    tok.pre_tokenizer = hf.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    trainer = hf.trainers.BpeTrainer(
        vocab_size=256 + n, initial_alphabet=hf.pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tok.train_from_iterator([piece.decode() for piece in pieces], trainer)
    model = json.loads(tok.to_str())["model"]
    vocab = model["vocab"]
    return [((vocab[left], vocab[right]), vocab[left + right]) for left, right in model["merges"]]


@pytest.mark.parametrize("seed", range(40))
def test_training_against_hf(seed: int) -> None:
    pieces = small_corpus(seed)
    assert list(train(pieces, 20, alphabet=HF_BYTES).items()) == hf_train(pieces, 20)


def test_training_against_hf_where_the_byte_order_matters() -> None:
    pieces = [" a", "a b", "ü!", "!ü", "\n\n", "世", "界"]
    encoded = [piece.encode() for piece in pieces]
    assert list(train(encoded, 20, alphabet=HF_BYTES).items()) == hf_train(encoded, 20)
    assert make_vocab(train(encoded, 20, alphabet=HF_BYTES), HF_BYTES)[256:] != make_vocab(train(encoded, 20))[256:]


@pytest.mark.parametrize("seed", range(40))
def test_training_against_rustbpe(seed: int) -> None:
    rustbpe = pytest.importorskip("rustbpe")
    pieces = small_corpus(seed)
    tok = rustbpe.Tokenizer()
    tok.train_from_iterator([b" ".join(pieces).decode()], vocab_size=256 + 20, pattern="[a-d]+")
    assert make_vocab(train(pieces, 20)) == [bytes(token) for token, _ in tok.get_mergeable_ranks()]


@pytest.mark.parametrize("seed", range(40))
def test_encoding_against_hf_with_merges_nobody_learned(seed: int) -> None:
    hf = pytest.importorskip("tokenizers")
    # random rules in a random order, each making a token of its own
    rng = random.Random(seed)
    tokens = ["a", "b", "c"]
    rules: list[tuple[str, str]] = []
    while len(rules) < 12:
        left, right = rng.choice(tokens), rng.choice(tokens)
        if left + right not in tokens:
            tokens.append(left + right)
            rules.append((left, right))
    rng.shuffle(rules)
    ids = dict(zip(tokens, rng.sample(range(100), len(tokens)), strict=True))
    model = hf.models.BPE(ids, rules)
    merges = {(ids[left], ids[right]): ids[left + right] for left, right in rules}
    ranks = {(ids[left], ids[right]): rank for rank, (left, right) in enumerate(rules)}
    for _ in range(20):
        text = "".join(rng.choices("abc", k=rng.randint(1, 30)))
        assert encode([ids[char] for char in text], merges, ranks) == [token.id for token in model.tokenize(text)], text


@pytest.mark.parametrize("seed", range(40))
def test_encoding_against_tiktoken(seed: int) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    # random entries, not learned: some of them no merge can reach
    rng = random.Random(seed)
    entries = {"".join(rng.choices("abc", k=rng.randint(2, 6))).encode() for _ in range(20)}
    ranks = {token: id for id, token in enumerate([b"a", b"b", b"c", *rng.sample(sorted(entries), len(entries))])}
    tok = tiktoken.Encoding("random", pat_str="[abc]+", mergeable_ranks=ranks, special_tokens={})
    for _ in range(20):
        text = "".join(rng.choices("abc", k=rng.randint(1, 30)))
        if text.encode() not in ranks:  # tiktoken takes a piece that is an entry as a whole
            assert encode_by_rank(text.encode(), ranks) == tok.encode_ordinary(text), text


# ---------------------------------------------------------------------------------------------------------------------
# the example


def by_hand(*args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BY_HAND), *args]
    return subprocess.run(command, input=stdin, capture_output=True, encoding="utf-8", timeout=60)


def test_by_hand_prints_the_derivation() -> None:
    done = by_hand()
    assert (done.returncode, done.stderr) == (0, "")
    assert re.findall(r"^ +\d+\. (\S+), (\d+) times", done.stdout, re.MULTILINE) == [
        *(("l+o", "5"), ("lo+w", "5"), ("e+r", "4"), ("er+·", "4")),
        *(("e+s", "3"), ("es+t", "3"), ("est+·", "3"), ("w+i", "3")),
    ]
    for line in (
        "    5  l+o  o+w  w+e",
        "    4  e+r  r+·",
        "    3  e+s  s+t  t+·  w+i  i+d  d+e",
        "     est·  er·  ·  low  wi  d  e  n  s  w",
        "     lowest   low est·",
        "     wider    wi d er·",
    ):
        assert line in done.stdout.splitlines()


def test_by_hand_prints_the_longest_tokens_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(SENTENCE, encoding="utf-8")
    done = by_hand(str(tmp_path / "text.txt"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "merges      22, then no pair was left" in done.stdout
    rows = re.findall(r"^ +(\d+) +\d+  (\S+)$", done.stdout, re.MULTILINE)
    assert len(rows) == 10
    assert {token for _, token in rows[:4]} == {"lowest·", "newest·", "widest·", "slower·"}
    assert all(int(length) == len(token) for length, token in rows)


def test_by_hand_reads_standard_input() -> None:
    assert "abab·" in by_hand("-", stdin="abab abab").stdout


@pytest.mark.parametrize(
    ("content", "args", "message"),
    [
        (None, [], "cannot read FILE: No such file or directory"),
        (b"", [], "FILE has no words in it"),
        (b" \n\t ", [], "FILE has no words in it"),
        (b"ab \xff", [], "FILE is not UTF-8 text: byte 3 is 0xff"),
        ("a·b".encode(), [], "'·' occurs in the text; give another character with --mark"),
        (b"ab", ["--mark", "</w>"], "--mark must be one character"),
        (b"ab", ["--merges", "-1"], "--merges must not be negative: -1"),
    ],
)
def test_by_hand_says_what_is_wrong(tmp_path: Path, content: bytes | None, args: list[str], message: str) -> None:
    file = tmp_path / "text.txt"
    if content is not None:
        file.write_bytes(content)
    done = by_hand(str(file), *args)
    assert done.returncode == 2
    assert message.replace("FILE", str(file)) in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_by_hand_shows_how_it_is_used() -> None:
    assert "bpe_by_hand.py book.txt" in by_hand("--help").stdout


def test_by_hand_ends_quietly_when_nobody_reads() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run([sys.executable, str(BY_HAND)], stdout=write_end, stderr=subprocess.PIPE, timeout=60)
    os.close(write_end)
    assert done.stderr == b""
