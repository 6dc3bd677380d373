"""Split patterns of one's own: random expressions against two other engines, and what is refused or gives up."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from test_patterns import by_hf, by_regex, bytes_only, pieces
from texts import BYTES, TEXTS

import subword
from subword import BPE, MatchTokens, Spec, Split, SplitRegex, SubwordValueError, Vocab, _core, patterns
from subword.formats import tokenizer_json

ALPHABET = "abAB1 \n.é"
ATOMS = [
    *("a", "b", "A", "1", " ", r"\n", ".", "é"),
    *("[ab]", "[^a]", r"[^\s1]", "[a-b1]", r"[b\s]", "(?i:a)", "(?i:[ab])"),
    *(r"\s", r"\S", r"\d", r"\w", r"\W", r"\p{L}", r"\p{Lu}"),
]
REPEATS = ["", "", "", "?", "*", "+", "??", "*?", "+?", "{2}", "{1,2}", "{0,2}", "{2,}", "++", "?+", "*+"]
LOOKS = [r"(?!\S)", "(?=a)", "(?!a)", r"(?=\s|1)", r"\z", r"(?!\s|\z)", "(?=[ab]+)", r"\b", r"\B"]
BACKTRACKING = ["(?<=a)", "(?<!ab)", r"(?<=\s|b1)", "(?=ab)", r"(?!a\s)", "(?>a|ab)", "(?>[ab]+)"]


def expression(rng: random.Random, more: list[str], depth: int = 0) -> str:
    """A random expression; `more` are assertions and groups that have no linear way."""
    kind = rng.random()
    if depth > 2 or kind < 0.4:
        return rng.choice(ATOMS) + rng.choice(REPEATS)
    if kind < 0.65:
        return "".join(expression(rng, more, depth + 1) for _ in range(rng.randint(1, 3)))
    if kind < 0.8:
        ways = (expression(rng, more, depth + 1) for _ in range(rng.randint(2, 3)))
        return f"(?:{'|'.join(ways)}){rng.choice(REPEATS)}"
    if kind < 0.9:
        return f"(?:{expression(rng, more, depth + 1)}){rng.choice(REPEATS)}"
    return expression(rng, more, depth + 1) + rng.choice(LOOKS + more)


@pytest.mark.parametrize(("allow", "seed"), [(False, seed) for seed in range(4)] + [(True, seed) for seed in range(2)])
def test_random_expressions(allow: bool, seed: int) -> None:
    rng = random.Random(seed)
    asked_hf = backtracking = 0
    refused_by_hf: list[str] = []
    given_up: list[str] = []
    for _ in range(300):
        while True:
            text = "|".join(expression(rng, BACKTRACKING if allow else []) for _ in range(rng.randint(1, 3)))
            try:
                tok = bytes_only(SplitRegex(text, allow_backtracking=allow))
                break
            except SubwordValueError:
                continue  # such as (a?)*, or a possessive repeat that is not redundant
        backtracking += any("backtracking" in how for _, how, _ in tok.plan())
        others = [by_regex(text)]
        if _core.same_in_both_syntaxes(text):
            try:
                others.append(by_hf(text))
                asked_hf += 1
            except Exception as error:  # tokenizers raises nothing narrower
                refused_by_hf.append(str(error))
        for _ in range(10):
            sample = "".join(rng.choices(ALPHABET, k=rng.randint(1, 14)))
            try:
                found = pieces(tok, sample)
            except SubwordValueError as error:
                given_up.append(str(error))
                break
            for other in others:
                assert found == other(sample), (text, sample)
    assert asked_hf > 50
    assert bool(backtracking) == allow
    assert all("target of repeat operator is invalid" in error for error in refused_by_hf)
    assert all(allow and "budget of steps" in error for error in given_up)


def test_random_expressions_give_the_ids_of_tiktoken() -> None:
    """Its regular expression engine shows its pieces only in ids: so every two and some four bytes are a token."""
    tiktoken = pytest.importorskip("tiktoken")
    alphabet = [bytes([byte]) for byte in sorted(set(ALPHABET.encode()))]
    pairs = [first + second for first in alphabet for second in alphabet]
    fours = [first + second for first in pairs for second in pairs][::7]
    ranks = {piece: rank for rank, piece in enumerate([*(bytes([byte]) for byte in range(256)), *pairs, *fours])}
    model = BPE(Vocab.of(ranks.items()), priority="rank", ignore_merges=True)
    rng = random.Random(9)
    asked = 0
    while asked < 200:
        text = "|".join(expression(rng, []) for _ in range(rng.randint(1, 3))) + "|(?s:.)"
        try:
            if not _core.regex_covers(text, "tiktoken", False):
                continue  # it panics at matches of nothing
        except SubwordValueError:
            continue
        asked += 1
        ours = subword.Tokenizer(Spec((SplitRegex(text),), model))
        theirs = tiktoken.Encoding("random", pat_str=text, mergeable_ranks=ranks, special_tokens={})
        for _ in range(10):
            sample = "".join(rng.choices(ALPHABET, k=rng.randint(1, 14)))
            assert ours.encode_ordinary(sample) == theirs.encode_ordinary(sample), (text, sample)


@pytest.mark.parametrize("syntax", patterns.SYNTAXES)
def test_the_reference_engine_runs_it_too(syntax: Any) -> None:
    expressions = [
        r"[A-Z]?[a-z]+|\s+(?!\S)|\S",
        r"\p{Han}+|[^\s\p{Han}]+",
        r"[\p{L}&&[^\p{Lu}]]+|(?i:ab|'s)",
        r"\w+|[^\w\s]",
        r"a$|\p{L}+\b|\b[.!]|(?<=a) ",
        r"(?=[A-Z])|\d{1,3}",
    ]
    for text in expressions:
        spec = Spec((SplitRegex(text, syntax, allow_backtracking=True),), bytes_only(Split("none")).spec.model)
        core, reference = subword.Tokenizer(spec), subword.Tokenizer(spec, engine="reference")
        for sample in [*TEXTS.values(), *BYTES.values()]:
            if len(sample) < 3_000:
                policy = reference._engine.ordinary_policy
                assert reference._engine.split(sample, policy) == core._engine.split(
                    sample, core._engine.ordinary_policy
                ), (text, sample)


# ======================== as part of a tokenizer ========================


def test_train_save_and_load(tmp_path: Path) -> None:
    own = SplitRegex(r"\p{N}{1,2}+| ?\p{L}++| ?[^\s\p{L}\p{N}]++|\s++")
    tok = subword.train(list(TEXTS.values()), vocab_size=400, pattern=own)
    assert tok.spec.stages == (own,)
    assert tok.training is not None
    assert tok.training["pattern"] == own.regex
    assert tok.spec != tok.spec.replace(stages=(SplitRegex(own.regex, "oniguruma"),))
    tok.save(tmp_path / "tok.subword")
    assert subword.load(tmp_path / "tok.subword") == tok
    with pytest.raises(SubwordValueError, match="says something else in Oniguruma's syntax"):
        tok.save(tmp_path / "tok.json")
    same = tok.spec.replace(stages=(SplitRegex(r"\p{N}{1,2}| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+"),))
    read = tokenizer_json.read(tokenizer_json.write(same), "tok.json")
    assert read.stages == (SplitRegex(same.stages[0].regex, "oniguruma"),)
    for text in TEXTS.values():
        assert subword.Tokenizer(read).encode_ordinary(text) == tok.encode_ordinary(text)


def test_every_place_is_a_limit(tmp_path: Path) -> None:
    """Limits ask patterns where text may be taken apart: own ones must not say what is not so."""
    texts = list(TEXTS.values())
    samples = ["ab ab, 12345 aaab\n\n b", "  a  b   12 3456", "aaaaaaaaab aaaa b", "x1y22z333 \n"]
    for own in (r"[ab]*b|a", r"\s*\n|\s|\S+", r"\d{3}", r"(?s:.{3})", r"(?=a)|b+(?!\S)", "deepseek-v3", "starcoder"):
        pattern = own if own in patterns.PATTERNS else SplitRegex(own)
        tok = subword.train(texts, vocab_size=300, pattern=pattern)
        for sample in samples:
            whole = tok.count(sample)
            for n in range(whole + 1):
                longest = max(end for end in range(len(sample) + 1) if tok.count(sample[:end]) <= n)
                assert len(tok.truncate(sample, n)) == longest, (own, sample, n)


def test_plan_says_how_and_why() -> None:
    assert any(how.startswith("automaton for a+") for _, how, _ in bytes_only(SplitRegex("a+")).plan())
    plan = bytes_only(SplitRegex("(?<=a)b", allow_backtracking=True)).plan()
    assert any(how.startswith("backtracking") and "a look behind needs it" in why for _, how, why in plan)


def test_too_much_backtracking_is_an_error_that_says_where() -> None:
    tok = bytes_only(SplitRegex(r"(?:a|aa)+(?<=b)|[ac]", allow_backtracking=True))
    assert tok.encode_ordinary("aab") == [97, 97, 98]
    for call in (tok.encode_ordinary, tok.count, tok.tokenize, tok.encode):
        with pytest.raises(SubwordValueError, match="budget of steps was used up in the piece at byte 1 "):
            call("c" + "a" * 100)
    with pytest.raises(SubwordValueError, match="budget of steps"):
        tok.encode_batch(["b", "a" * 100])


BAD: dict[str, tuple[SplitRegex, str]] = {
    "damaged": (SplitRegex("a(b"), r"at character 1, a \( without its \)"),
    "look-behind": (SplitRegex("(?<=a)b"), "at character 0, a look behind has no linear way.*allow_backtracking=True"),
    "possessive": (SplitRegex("a++ab"), "at character 0, a possessive repeat that may change what follows"),
    "back-reference": (SplitRegex(r"(a)\1", allow_backtracking=True), r"at character 3, the back-reference"),
    "syntax": (SplitRegex("a", "pcre"), 'unknown syntax "pcre"'),  # type: ignore[arg-type]
    "Unicode": (SplitRegex("a", unicode="15.0"), "no class tables for Unicode"),
    "too large": (SplitRegex("[ab]*a[ab]{18}"), "automaton becomes too large"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_expressions(name: str) -> None:
    own, message = BAD[name]
    for make in (lambda: bytes_only(own), lambda: subword.train(["a"], vocab_size=300, pattern=own)):
        with pytest.raises(SubwordValueError, match=message):
            make()


def test_the_reference_engine_says_what_it_cannot_run() -> None:
    spec = Spec((MatchTokens(), SplitRegex("a{1,2}+", "oniguruma")), BPE(Vocab.of((bytes([i]), i) for i in range(256))))
    with pytest.raises(SubwordValueError, match="the reference engine cannot run the split pattern"):
        subword.Tokenizer(spec, engine="reference").count("a")
