"""What texts cost, and what a mixture of languages costs: by hand, and as the commands show it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from test_reports import Outline
from vocabularies import byte_vocab

import subword
from subword import audits
from subword.audits.money import PRICE_TEMPLATE, ROLES, Price, role_of
from subword.cli import main
from subword.errors import SubwordOSError, SubwordValueError
from subword.report.money import budget_part, mixture_part
from subword.report.parts import Finding, Part
from subword.spec import BPE, Spec, Split

BYTES = subword.Tokenizer(Spec((Split("gpt2"),), BPE(byte_vocab(), np.zeros((0, 2), dtype=np.uint32))))
"""A token a byte."""


def findings(part: Part) -> list[str]:
    return [block.what for block in part.blocks if isinstance(block, Finding)]


# ======================== budgets ========================


def test_a_budget_by_hand() -> None:
    texts = [
        ("a.md", "instructions", "x" * 10), ("b", "prompt", "é" * 10), ("c", "system", b"z" * 20),
        ("d", "prompt", ""),
    ]  # fmt: skip
    prices = [Price("big", 3, 15), Price("small", 0.5, None)]
    found = audits.budget(BYTES, texts, window=200, reply=40, prices=prices)
    assert (found.tokens, found.share, found.left) == (50, 0.25, 110)
    assert [(item.tokens, item.bytes, item.share) for item in found.items] == [
        (10, 10, 0.05), (20, 20, 0.1), (20, 20, 0.1), (0, 0, 0),
    ]  # fmt: skip
    assert [(row.role, row.items, row.tokens, row.share) for row in found.roles] == [
        ("system", 1, 20, 0.1), ("instructions", 1, 10, 0.05), ("prompt", 2, 20, 0.1),
    ]  # fmt: skip
    assert [(cost.model, cost.input, cost.output) for cost in found.costs] == [
        ("big", 50 * 3 / 1e6, 40 * 15 / 1e6), ("small", 50 * 0.5 / 1e6, None),
    ]  # fmt: skip
    assert findings(budget_part(found, "bytes")) == []


def test_a_budget_that_does_not_fit_is_found() -> None:
    found = audits.budget(BYTES, [("a", "prompt", "x" * 90)], window=100, reply=20)
    assert found.left == -10
    assert findings(budget_part(found, "bytes")) == ["The texts do not fit: 10 tokens too many."]


def test_instructions_that_fill_the_window_are_found() -> None:
    texts = [("CLAUDE.md", "instructions", "x" * 30), ("t", "tools", "x" * 25), ("a", "prompt", "x" * 5)]
    assert findings(budget_part(audits.budget(BYTES, texts, window=100), "bytes")) == [
        "55.0 % of the window is gone before anything is said."
    ]
    texts[0] = ("CLAUDE.md", "prompt", "x" * 30)
    assert findings(budget_part(audits.budget(BYTES, texts, window=100), "bytes")) == []


def test_what_looks_special_is_text() -> None:
    tok = BYTES.with_tokens(special=["<|end|>"])
    assert audits.budget(tok, [("a", "prompt", "<|end|>")]).tokens == 7


def test_bad_budgets() -> None:
    with pytest.raises(SubwordValueError, match="a: unknown role 'user'; choose one of system, instructions"):
        audits.budget(BYTES, [("a", "user", "x")])
    with pytest.raises(SubwordValueError, match="window must be an integer of at least 1"):
        audits.budget(BYTES, [], window=0)


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("CLAUDE.md", "instructions"), ("/repo/AGENTS.md", "instructions"), ("GEMINI.md", "instructions"),
        ("CLAUDE.local.md", "instructions"), (".cursorrules", "instructions"), ("rules/a.mdc", "instructions"),
        (".github\\copilot-instructions.md", "instructions"), ("x.instructions.md", "instructions"),
        ("tools.json", "tools"), ("my-functions.json", "tools"), ("search.tools.json", "tools"),
        ("history.jsonl", "history"), ("chat_messages.json", "history"), ("system.md", "system"),
        ("system_prompt.txt", "system"), ("agent.system-prompt.md", "system"), ("README.md", "prompt"),
        ("stools.json", "prompt"), ("ecosystem.md", "prompt"), ("prehistory.md", "prompt"), ("main.py", "prompt"),
    ],
)  # fmt: skip
def test_roles_by_names(name: str, role: str) -> None:
    assert role_of(name) == role and role in ROLES


# ======================== prices ========================


def test_prices_are_read(tmp_path: Path) -> None:
    path = tmp_path / "prices.csv"
    path.write_text('\ufeff# mine\nModel, input ,output,note\n\n"big, new",3,15,x\nsmall,0.25,,\ncut,1\n', "utf-8")
    assert audits.read_prices(path) == (Price("big, new", 3, 15), Price("small", 0.25, None), Price("cut", 1, None))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PRICE_TEMPLATE, "line 4: my-model has no price for input; fill it in or take out the row"),
        ("", "not a price table"),
        ("a,b\n1,2\n", "not a price table, whose first line is model,input,output"),
        ("model,input\n", "without a row"),
        ("model,input\nx,three\n", "line 2: x, input: 'three' is no price"),
        ("model,input\nx,-3\n", "'-3' is no price"),
        ("model,input\nx,nan\n", "'nan' is no price"),
        ("model,input,output\nx,3,inf\n", "x, output: 'inf' is no price"),
        ("model,input\n,3\n", "line 2: the row has no model"),
        ("model,input\nx,3,4\n", "line 2: 3 cells under 2 headings"),
        (b"model,input\nx\xff,3\n", "not UTF-8"),
        ('model,input\n"x,3\n', "not well-formed CSV"),
    ],
)
def test_price_tables_that_cannot_be_used(text: str | bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "prices.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(SubwordValueError, match=message):
        audits.read_prices(path)


def test_prices_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(SubwordOSError, match="none"):
        audits.read_prices(tmp_path / "none.csv")


# ======================== mixtures ========================

SHARES = {"en": 40, "hi": 30, "ja": 30}
RATIOS = {"en": 1, "hi": 1.3, "ja": 3}


def test_a_mixture_by_hand() -> None:
    """.4 + .39 + .9 = 1.69; with Japanese at 1.5 .4 + .39 + .45 = 1.24, which is 26.6 % less."""
    found = audits.mixture(SHARES, RATIOS)
    assert found.average == pytest.approx(1.69) and (found.better, found.saving) == (None, None)
    better = audits.mixture(SHARES, RATIOS, {"ja": 1.5})
    assert better.better == pytest.approx(1.24) and round(100 * (better.saving or 0), 1) == 26.6
    assert [part.share for part in better.parts] == [0.4, 0.3, 0.3]
    assert [part.better for part in better.parts] == [1, 1.3, 1.5]
    half = audits.mixture({"en": 0.4, "hi": 0.3, "ja": 0.3}, RATIOS)
    assert half.average == pytest.approx(found.average)
    assert findings(mixture_part(better)) == []


def test_what_the_entries_of_a_better_one_cost() -> None:
    more = audits.weight(30_000, 4096)
    assert (more.table, more.tables) == (122_880_000, 245_760_000)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (({}, {}), "at least one language"),
        (({"en": 0}, {"en": 1}), "en: a share is a number greater than 0"),
        (({"en": 1}, {}), "no ratio for en"),
        (({"en": 1}, {"en": float("inf")}), "en: a ratio is a number"),
        (({"en": 1}, {"en": 1, "de": 2}), "de: there is a ratio, but no share"),
        (({"en": 1}, {"en": 1}, {"de": 2}), "de: there is a better ratio, but no share"),
    ],
)
def test_bad_mixtures(arguments: tuple[dict[str, float], ...], message: str) -> None:
    with pytest.raises(SubwordValueError, match=message):
        audits.mixture(*arguments)


def test_measured_ratios_are_against_the_first_tokenizer() -> None:
    """One that also takes fewer tokens for English gains there, too."""
    texts = audits.Collection("here", "udhr", "eng", (
        audits.Parallel("eng_Latn", "abab", "abab"), audits.Parallel("deu_Latn", "ababab", "abab"),
        audits.Parallel("por_PT", "a", "abab"), audits.Parallel("por_BR", "b", "abab"),
    ))  # fmt: skip
    merges = np.array([(97, 98)], dtype=np.uint32)
    pairs = subword.Tokenizer(Spec((Split("gpt2"),), BPE(byte_vocab((b"ab", 256)), merges)))
    assert audits.measured_ratios(BYTES, texts, ["eng", "deu_Latn"]) == {"eng": 1, "deu_Latn": 1.5}
    assert audits.measured_ratios(pairs, texts, ["eng", "deu"], BYTES) == {"eng": 0.5, "deu": 0.75}
    assert audits.measured_ratios(pairs, texts, ["eng", "deu"]) == {"eng": 1, "deu": 1.5}
    with pytest.raises(SubwordValueError, match="here: fra is not there"):
        audits.measured_ratios(BYTES, texts, ["fra"])
    with pytest.raises(SubwordValueError, match="por is por_PT and por_BR"):
        audits.measured_ratios(BYTES, texts, ["por"])


# ======================== commands ========================


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[str, str]]:
    monkeypatch.chdir(tmp_path)
    BYTES.save("tok.subword")
    (tmp_path / "repo").mkdir()
    for name, text in {
        "CLAUDE.md": b"x" * 20,
        "tools.json": b"[1]",
        "a.py": b"print()",
        "p.png": b"\x89\0\xff",
    }.items():
        (tmp_path / "repo" / name).write_bytes(text)
    (tmp_path / "prices.csv").write_text("model,input,output\nbig,2,10\n")

    def run(*args: str, code: int = 0) -> tuple[str, str]:
        assert main(args) == code, capsys.readouterr().err
        out, error = capsys.readouterr()
        return out, error

    return run


@pytest.mark.filterwarnings("always::subword.SubwordWarning")
def test_the_budget_command(run: Callable[..., tuple[str, str]]) -> None:
    args = ("budget", "repo", "-t", "tok.subword", "--window", "1k", "--reply", "100", "--prices", "prices.csv")
    out, error = run(*args, "--json")
    found = json.loads(out)
    assert "p.png" in error
    assert (found["tokenizer"], found["window"], found["tokens"], found["left"]) == ("tok.subword", 1000, 30, 870)
    assert {Path(item["name"]).name: (item["role"], item["tokens"]) for item in found["items"]} == {
        "CLAUDE.md": ("instructions", 20), "tools.json": ("tools", 3), "a.py": ("prompt", 7),
    }  # fmt: skip
    assert found["costs"] == [{"model": "big", "input": 6e-05, "output": 0.001}]
    assert json.loads(run(*args, "--json", "--html", "b.html")[0]) == found
    words = " ".join(Outline(Path("b.html").read_text("utf-8")).words)
    assert "Budget" in words and "CLAUDE.md" in words and "By role." in words
    assert "b.html exists" in run(*args, "--html", "b.html", code=1)[1]
    shown, _ = run(*args)
    assert "kept for the reply\t100\n" in shown and "\nbig\t0.000060\t0.001000\t0.001060\n" in shown
    again = json.loads(run(*args, "--role", "system=repo/a.py", "--role", "history=prices.csv", "--json")[0])
    assert {item["name"]: item["role"] for item in again["items"]} == {
        "repo/CLAUDE.md": "instructions", "repo/a.py": "system", "repo/tools.json": "tools", "prices.csv": "history",
    }  # fmt: skip


def test_the_budget_command_says_what_is_wrong(run: Callable[..., tuple[str, str]]) -> None:
    assert run("budget", "--price-template")[0] == PRICE_TEMPLATE
    assert "nothing to count" in run("budget", code=2)[1]
    assert "unknown role 'user'" in run("budget", "--role", "user=repo", code=2)[1]
    assert "write ROLE=PATH" in run("budget", "--role", "system", code=2)[1]
    assert "none" in run("budget", "none", "-t", "tok.subword", code=1)[1]
    assert "no-prices.csv" in run("budget", "repo/a.py", "-t", "tok.subword", "--prices", "no-prices.csv", code=1)[1]


def test_the_mixture_command(run: Callable[..., tuple[str, str]]) -> None:
    shares = ("--share", "en=40:1", "--share", "hi=30:1.3", "--share", "ja=30:3")
    found = json.loads(run("audit", "mixture", *shares, "--better", "ja=1.5", "--entries", "30k", "--json")[0])
    assert found["mixture"]["average"] == pytest.approx(1.69) and found["mixture"]["better"] == pytest.approx(1.24)
    assert found["more_entries"]["table"] == 122_880_000 and found["more_entries"]["tables"] == 245_760_000
    shown, _ = run("audit", "mixture", *shares, "--better", "ja=1.5", "--entries", "30k")
    assert "saving\t26.6 % of the tokens" in shown and "30,000 × 4,096 = 123 M numbers" in shown
    measured = json.loads(run("audit", "mixture", "tok.subword", "--share", "eng=1", "--share", "rus=1", "--json")[0])
    ratios = [part["ratio"] for part in measured["mixture"]["parts"]]
    assert ratios[0] == 1 and 1.5 < ratios[1] < 2.5 and measured["mixture"]["better"] is None
    same = json.loads(
        run("audit", "mixture", "tok.subword", "--share", "eng=1", "--against", "tok.subword", "--json")[0]
    )
    assert same["mixture"]["saving"] == 0


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "no mixture"),
        (("--share", "en"), "write CODE=SHARE"),
        (("--share", "en=1:1", "--share", "en=2:1"), "--share en is there twice"),
        (("--share", "en=x:1"), "'x' is not a number"),
        (("--share", "en=1"), "no ratio for en: name a TOKENIZER"),
        (("--share", "en=1:1", "--against", "x"), "--against compares with a tokenizer"),
        (("--share", "en=1:1", "--better", "en"), "write CODE=RATIO"),
    ],
)
def test_mixtures_that_cannot_be_used(args: tuple[str, ...], message: str, run: Callable[..., tuple[str, str]]) -> None:
    assert message in run("audit", "mixture", *args, code=2)[1]
