"""How large a vocabulary should be: published figures, the scaling law's goldens, and a curve held against training."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from texts import TEXTS
from vocabularies import byte_vocab

import subword
from subword import audits
from subword.audits.vocabulary_size import FEW
from subword.cli import main
from subword.errors import SubwordValueError
from subword.report.parts import Finding, Part
from subword.report.vocabulary_size import sizes_part
from subword.spec import BPE, Spec, Split, Vocab

BYTES = subword.Tokenizer(Spec((Split("gpt2"),), BPE(byte_vocab(), np.zeros((0, 2), dtype=np.uint32))))


def findings(part: Part) -> list[str]:
    return [block.what for block in part.blocks if isinstance(block, Finding)]


def of_size(entries: int) -> subword.Tokenizer:
    """A tokenizer with so many entries, none of which merges make."""
    pieces = [(bytes([byte]), byte) for byte in range(256)]
    pieces += [(b"x" + at.to_bytes(4, "big"), at) for at in range(256, entries)]
    return subword.Tokenizer(Spec((Split("gpt2"),), BPE(Vocab.of(pieces), np.zeros((0, 2), dtype=np.uint32))))


# ======================== weights ========================


def test_tables_of_known_models() -> None:
    """Vocabularies and widths as published, and what is said of them."""
    small = audits.weight(32_000, 4096)
    assert (small.table, small.tables) == (131_072_000, 262_144_000)  # 131 M, 262 M
    llama3 = audits.weight(128_256, 4096, parameters=8_000_000_000)
    assert (llama3.table, llama3.tables) == (525_336_576, 1_050_673_152)  # 525 M, 1.05 B
    assert round(100 * (llama3.share or 0)) == 13
    assert audits.weight(512_000, 4096).tables == 4_194_304_000  # 4.19 B
    assert audits.weight(50_257, 768).table == 38_597_376  # 38.6 M
    assert audits.weight(200_019, 12_288, tied=True).bytes == 4_915_666_944  # 4.9 GB
    assert audits.weight(500_000, 768).table == 384_000_000
    assert audits.weight(1_000_000, 4096).tables == 8_192_000_000  # 8.2 B
    tied = audits.weight(32_000, 4096, tied=True, bytes_per_number=4)
    assert (tied.table, tied.tables, tied.bytes) == (131_072_000, 131_072_000, 524_288_000)
    assert small.output_flops == 262_144_000 and small.share is None


def test_attention_goes_by_the_square() -> None:
    assert audits.attention_ratio(2500, 500) == 25
    with pytest.raises(SubwordValueError, match="fewer must be"):
        audits.attention_ratio(1, 0)


# ======================== the law ========================

GOLDEN = {
    33e6: (5.8, 6.1, 4.7), 302e6: (18.2, 19.5, 15.8), 1.13e9: (27.3, 29.4, 24.6), 2.87e9: (37.9, 41.0, 35.3),
    7e9: (62.3, 67.5, 59.5), 13e9: (83, 91, 81), 70e9: (212, 231, 218), 300e9: (356, 389, 384),
}  # fmt: skip
"""Parameters without tables -> thousands of entries by the three fits of Tao et al. 2024, from their own program."""


@pytest.mark.parametrize("parameters", GOLDEN)
def test_the_scaling_law_is_the_published_one(parameters: float) -> None:
    found = audits.optimum(int(parameters))
    thousands = [each / 1000 for each in (found.by_flops, found.by_derivative, found.by_loss)]
    digits = 1 if parameters < 10e9 else 0
    assert [round(each, digits) for each in thousands] == pytest.approx(GOLDEN[parameters], abs=0.11)


def test_the_fit_by_loss_is_its_minimum() -> None:
    """Held against the loss itself, by brute force."""
    parameters, found = 2.87e9, audits.optimum(2_870_000_000)
    flops = (parameters / np.exp(-2.48465)) ** 2

    def loss(entries: float) -> float:
        tables = entries * found.width / 1e6
        tokens = flops / 1e15 / (6 * (parameters / 1e6 + tables))
        return float(0.195842 / tables**0.670737 + 2.124112 / tokens**0.446606)

    assert min(range(1000, 200_000, 10), key=loss) == pytest.approx(found.by_loss, abs=10)


# ======================== the curve ========================


def test_the_curve_is_that_of_single_trainings() -> None:
    texts = [text for text in TEXTS.values() if "<" not in text][:80] * 2
    found = audits.vocabulary_size(BYTES, texts, name="bytes", sizes=[300, 400], width=10, window=100)
    assert [(row.name, row.trained, row.weight.vocabulary) for row in found.sizes] == [
        ("bytes", False, 256), ("trained", True, 300), ("trained", True, 400),
    ]  # fmt: skip
    for row in found.sizes[1:]:
        tok = subword.train(texts, vocab_size=row.weight.vocabulary, pattern="gpt2")
        ids = np.concatenate([np.array(tok.encode_ordinary(text), dtype=np.int64) for text in texts])
        counts = np.bincount(ids, minlength=row.weight.vocabulary)
        size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
        words = sum(len(text.encode("utf-8", "surrogatepass").split()) for text in texts)
        assert (row.tokens, row.bytes_per_token) == (len(ids), size / len(ids))
        assert row.window_words == int(100 * words / len(ids))
        assert row.output_flops == 2 * 10 * row.weight.vocabulary * len(ids)
        assert (row.occurrences, row.median) == (len(ids) / len(counts), np.median(counts))
        assert row.rare == np.mean(counts < FEW)
        assert row.attention == pytest.approx((len(ids) / found.sizes[-1].tokens) ** 2)
    assert found.sizes[0].bytes_per_token == 1 and found.sizes[-1].attention == 1
    assert findings(sizes_part(found)) == []


def test_a_text_with_too_few_pairs_ends_the_curve() -> None:
    found = audits.vocabulary_size(BYTES, ["ab ab"], sizes=[256, 1000, 4000])
    assert [row.weight.vocabulary for row in found.sizes] == [256, 256, 258]


def test_no_text_no_curve() -> None:
    for texts in ([], [""]):
        found = audits.vocabulary_size(BYTES, texts)
        assert found.sizes == () and found.optimum is None and findings(sizes_part(found)) == []
    with pytest.raises(SubwordValueError, match="size must be an integer of at least 256"):
        audits.vocabulary_size(BYTES, ["ab"], sizes=[100])
    with pytest.raises(SubwordValueError, match="has no room for"):
        audits.vocabulary_size(of_size(1000), parameters=8_000_000, width=4096)


def test_a_vocabulary_out_of_proportion_is_found_and_one_that_fits_is_not() -> None:
    """A model of 135 M parameters and 576 numbers a row: some 13,000 entries by the law."""
    wide = {"width": 576, "parameters": 135_000_000}
    assert findings(sizes_part(audits.vocabulary_size(of_size(20_000), **wide))) == []  # type: ignore[arg-type]
    large = audits.vocabulary_size(of_size(100_000), **wide)  # type: ignore[arg-type]
    assert [each.split(" ")[:2] for each in findings(sizes_part(large))] == [["The", "tables"], ["The", "vocabulary"]]
    assert "85 %" in findings(sizes_part(large))[0] and "larger" in findings(sizes_part(large))[1]
    small = audits.vocabulary_size(BYTES, width=4096, parameters=7_000_000_000)
    assert ["smaller" in each for each in findings(sizes_part(small))] == [True]


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    BYTES.save("tok.subword")
    Path("a.txt").write_text("the cat sat on the mat " * 9)
    args = ("audit", "sizes", "tok.subword", "a.txt", "--sizes", "257,260", "--width", "10", "--window", "1k")
    assert main([*args, "--parameters", "0.01b", "--tied", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["weight"]["tables"] == 2560 and found["weight"]["share"] == 2560 / 10_000_000
    assert [row["weight"]["vocabulary"] for row in found["sizes"]] == [256, 257, 260]
    assert found["optimum"]["parameters"] == 10_000_000 - 2560
    Path("empty.txt").touch()
    assert (
        main(["audit", "sizes", "tok.subword", "empty.txt"]) == 1
        and "empty.txt: there is no" in capsys.readouterr().err
    )
    assert main([*args, "--sizes", "100"]) == 2 and "sizes of at least 256" in capsys.readouterr().err
    assert main([*args, "--parameters", "many"]) == 2 and "is not a size" in capsys.readouterr().err
