"""subword-nmt's codes, CLIP's vocabulary file, and tokenizer.json over characters: read, written, refused."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import random
import re
import warnings
from pathlib import Path
from typing import Any

import pytest
from texts import TEXTS

import subword
from subword import (
    Decode,
    FormatError,
    Lowercase,
    Spec,
    Split,
    SubwordValueError,
    SubwordWarning,
    Template,
    Tokenizer,
    formats,
)
from subword.byte_alphabet import BYTE_TO_CHAR, GPT2_BYTE_ORDER, to_alphabet
from subword.formats import clip, native, subword_nmt, tokenizer_json
from subword.spec import ReplaceRegex

# ======================== subword-nmt ========================

CODES = b"#version: 0.2\nl o\nlo w</w>\nlo w\ne r</w>\nlow er</w>\n"
# `apply-bpe` 0.3.8 with these codes
APPLIED = {
    "low lower": "low lower",
    "lowlow slow": "low@@ low s@@ low",
    "  wo  l ": "w@@ o l",
    "lowe er": "low@@ e er",
    "we\nlow": "w@@ e low",
    "lo": "l@@ o",
}


def segmented(tok: Tokenizer, text: str) -> str:
    """The tokens of a text as subword-nmt prints them."""
    pieces = tok.tokenize(text).pieces
    return " ".join(piece.removesuffix("</w>") if piece.endswith("</w>") else piece + "@@" for piece in pieces)


def test_codes() -> None:
    spec = formats.read(CODES)
    tokens = ["<unk>", *(char + end for char in "elorw" for end in ("", "</w>"))]
    tokens += ["lo", "low</w>", "low", "er</w>", "lower</w>"]
    assert [(piece.decode(), id) for piece, id in spec.model.vocab.items()] == [(t, i) for i, t in enumerate(tokens)]
    tok, slow = Tokenizer(spec), Tokenizer(spec, engine="reference")
    for text, applied in APPLIED.items():
        assert segmented(tok, text).replace("<unk>", "s") == applied
        assert slow.encode(text) == tok.encode(text)
    assert tok.decode(tok.encode(" low  lower\nlow ")) == "low lower low"
    assert tok.encode("slow") == [tok.unk_id, tok.token_id("low</w>")]
    assert subword_nmt.write(spec) == CODES
    assert formats.read(CODES.replace(b"\n", b"\r\n") + b"lo w\r\n") == spec


def test_codes_with_a_vocabulary() -> None:
    vocabulary = b"low 20\nlow@@ 8\ne@@ 7\ns 3\nslow@@ 1\n"
    spec = subword_nmt.read(CODES, "codes", vocabulary)
    tok = Tokenizer(spec)
    assert [tok.token_id(token) for token in ("low</w>", "low", "e", "s</w>", "slow", "<unk>", "e</w>")] == [*range(7)]
    assert segmented(tok, "lowlow e") == "low@@ low e"
    assert formats.read(native.write(spec)) == spec
    with pytest.warns(SubwordWarning, match="hold no ids"):
        assert subword_nmt.write(spec) == CODES
    with pytest.raises(FormatError, match="codes, vocabulary, line 2: expected a token and a count, found 'low@@'"):
        subword_nmt.read(CODES, "codes", b"low 20\nlow@@\n")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (CODES.replace(b"0.2", b"0.1"), "the first line is '#version: 0.1'; subword reads '#version: 0.2'"),
        (CODES + b"a\n", "line 7: expected two tokens, found 'a'"),
        (CODES + b"a b c\n", "line 7: expected two tokens"),
        (CODES + b"\n\na b\n", "line 7: expected two tokens, found ''"),
        (CODES + b"low</w> e\n", "line 7: expected two tokens"),
        (CODES + b"a </w>\n", "line 7: expected two tokens"),
        (CODES + b"< /\n</ w\n</w >\n", "line 9: '</w >' makes a token end in '</w>' that ends no word"),
        (CODES + b"new est</w>\n", "joins 'est</w>', which no merge makes"),
        (CODES + b"< u\n<u n\n<un k\n<unk >\n", "a merge makes '<unk>'"),
        (CODES + b"\xff \xff\n", "not UTF-8 at byte 51"),
    ],
)
def test_bad_codes(data: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=re.escape(message)):
        formats.read(data, "x")


def trained(**options: Any) -> Tokenizer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SubwordWarning)
        given = {"pattern": "spaces", "unit": "character", "end_of_word": "</w>"} | options
        return subword.train([*TEXTS.values(), "low lower lowest"] * 2, **({"vocab_size": 1500} | given))


def test_trained_codes_cut_words_alike(tmp_path: Path) -> None:
    tok = trained()
    with pytest.warns(SubwordWarning, match="hold no ids"):
        tok.save(tmp_path / "a.codes")
    again = subword.load(tmp_path / "a.codes")
    rng = random.Random(1)
    known = [piece.decode() for piece in again.spec.model.vocab.pieces if piece != b"<unk>"]
    for _ in range(300):
        text = "".join(rng.choices([*known, " "], k=8)).replace("</w>", " ")
        if tok.unk_id not in tok.encode(text):
            assert segmented(tok, text) == segmented(again, text)
    again.save(tmp_path / "b.codes")
    assert subword.load(tmp_path / "b.codes") == again
    assert (tmp_path / "b.codes").read_bytes() == (tmp_path / "a.codes").read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unit": "byte", "end_of_word": ""}, "a model other than of characters with '</w>'"),
        ({"end_of_word": "§§"}, "a model other than of characters with '</w>'"),
        ({"pattern": "whitespace-split"}, r"the stages Split\(pattern='whitespace-split'"),
        ({"special_tokens": ["<s>"]}, "the stages MatchTokens"),
    ],
)
def test_what_codes_cannot_hold(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SubwordValueError, match=f"codes cannot hold {message}.*save as .subword"):
        subword_nmt.write(trained(**options).spec)


@pytest.mark.parametrize("name", ["x.subword", "x.json"])
def test_an_unknown_character_stays_unknown_when_saved(name: str, tmp_path: Path) -> None:
    tok = trained(pattern="whitespace-split")
    again = subword.load(tok.save(tmp_path / name))
    for each in (tok, again):
        assert each.encode("\U0001f917") == [tok.unk_id] != [None]
        assert each.tokenize("low \U0001f917").char_spans.tolist()[-1] == [4, 5]


def test_subword_nmt_gives_the_same() -> None:
    apply_bpe = pytest.importorskip("subword_nmt.apply_bpe")
    tok = Tokenizer(formats.read(CODES))
    theirs = apply_bpe.BPE(io.StringIO(CODES.decode()))
    rng = random.Random(2)
    for _ in range(2_000):
        line = "".join(rng.choices("lower  ", k=rng.randint(0, 30)))
        assert segmented(tok, line) == theirs.segment(line)


def test_codes_and_merges_with_a_vocabulary_start_alike(tmp_path: Path) -> None:
    (tmp_path / "merges.txt").write_bytes(CODES)
    assert subword.load(tmp_path / "merges.txt").spec == formats.read(CODES)
    assert formats.recognise(tmp_path / "merges.txt")[1].name == "subword-nmt"
    vocab = {to_alphabet(bytes([byte])): byte for byte in range(256)} | {
        "</": 256,
        "w>": 257,
        "</w>": 258,
        "a</w>": 259,
    }
    (tmp_path / "vocab.json").write_text(json.dumps(vocab))
    (tmp_path / "merges.txt").write_bytes(b"#version: 0.2\n< /\nw >\n</ w>\na </w>\n")
    for path in (tmp_path, tmp_path / "merges.txt"):
        assert formats.recognise(path)[1].name == "vocab+merges"
        tok = subword.load(path, pattern="none", special_tokens={})
        assert tok.encode("a</w>") == [259] and tok.spec.model.end_of_word == ""
    with pytest.raises(FormatError, match="line 4: '</ w>' makes a token end in '</w>' that ends no word"):
        formats.read((tmp_path / "merges.txt").read_bytes())
    (tmp_path / "merges.txt").write_bytes(CODES)
    (tmp_path / "vocab.json").write_text(json.dumps({"<unk>": 0, "l": 1, "o": 2, "lo": 3}))
    with pytest.raises(
        FormatError, match=r"no byte-level vocabulary. Those over characters \(GPT-1\) are read from tok"
    ):
        subword.load(tmp_path, pattern="none", special_tokens={})
    marked = [*(spelled + end for end in ("", "</w>") for spelled in BYTE_TO_CHAR), "lo"]
    (tmp_path / "vocab.json").write_text(json.dumps({token: id for id, token in enumerate(marked)}))
    with pytest.raises(FormatError, match="each byte stands here with </w> behind it"):
        subword.load(tmp_path, pattern="none", special_tokens={})


def test_a_folder_with_codes(tmp_path: Path) -> None:
    (tmp_path / "de.codes").write_bytes(CODES)
    assert subword.load(tmp_path).spec == formats.read(CODES)
    with pytest.raises(SubwordValueError, match="this file says its split pattern"):
        subword.load(tmp_path, pattern="gpt2")


# ======================== conversion ========================


def test_conversion(tmp_path: Path) -> None:
    tok = trained(pattern="whitespace-split", special_tokens=["<s>"])
    for name in ("a.subword", "a.json"):
        done = formats.convert(tok.spec, tmp_path / name, texts=list(TEXTS.values()))
        assert done.texts > 1000
        again = subword.load(tmp_path / name)
        assert formats.compare(tok, again).difference is None
        assert again.spec.replace(notes={}) == tok.spec.replace(notes={})
    codes = formats.read(CODES)
    assert formats.convert(codes, tmp_path / "a.codes").format == "subword-nmt"
    with (
        pytest.warns(SubwordWarning, match="hold no ids"),
        pytest.raises(formats.DifferenceError, match=r"holds no ids.* Tokenizer.save writes it all the same"),
    ):
        formats.convert(trained().spec, tmp_path / "b.codes")
    assert not (tmp_path / "b.codes").exists()
    for format in ("tiktoken", "vocab+merges", "minbpe"):
        with pytest.raises(SubwordValueError, match="cannot hold a model over characters with the end-of-word marker"):
            formats.convert(codes, tmp_path / "c", format)


def test_what_the_ends_of_words_decode_to_is_compared() -> None:
    spec = formats.read(CODES)
    for decode in (Decode(""), Decode(" "), Decode("_", trim=True)):
        found = formats.compare(Tokenizer(spec), Tokenizer(spec.replace(decode=decode))).difference
        assert found is not None and found.what.startswith("the marker at the ends of words")
    # Without a marker there is nothing to decode.
    tok = trained(pattern="gpt2", end_of_word="")
    assert formats.compare(tok, Tokenizer(tok.spec.replace(decode=Decode("_")))).difference is None


# ======================== CLIP ========================


def clip_lines() -> list[str]:
    """The merges of a vocabulary of CLIP's form, and some more: pairs of bytes, in a word and at its end; triples."""
    chars = [BYTE_TO_CHAR[byte] for byte in GPT2_BYTE_ORDER]
    letters = chars[64:90]
    pairs = [f"{a} {b}" for a, b in itertools.product(letters, chars)]
    pairs += [f"{a} {b}</w>" for a, b in itertools.product(chars, chars[:160])]
    return pairs + [f"{a}{b} {c}</w>" for a, b, c in itertools.product(letters, repeat=3)][:1500]


LINES = clip_lines()
VERSION = '"bpe_simple_vocab_16e6.txt#version: 0.2'


def clip_file(lines: list[str]) -> bytes:
    return "\n".join([VERSION, *lines, ""]).encode()


def test_clip() -> None:
    assert len(LINES) > clip.MERGES
    spec = formats.read(clip_file(LINES))
    assert formats.read(gzip.compress(clip_file(LINES))) == spec
    tok, slow = Tokenizer(spec), Tokenizer(spec, engine="reference")
    assert (tok.n_vocab, tok.bos_id, tok.eos_id, tok.pad_id) == (49_408, 49_406, 49_407, None)
    assert tok.token_id("!") == 0 and tok.token_id("!</w>") == 256 and tok.token_piece(512) == "".join(LINES[0].split())
    text = "A  Photo\tof <|ENDOFTEXT|> 12 don'T ΑΣ"
    pieces = tok.tokenize(text, allowed_special="all", disallowed_special=()).pieces
    assert [piece for piece in pieces if piece.endswith(("</w>", "|>"))] == [
        *("a</w>", "to</w>", "of</w>", "<|endoftext|>", "1</w>", "2</w>", "n</w>", "'t</w>", pieces[-1])
    ]
    for hard in [*TEXTS.values(), text]:
        assert tok.encode_ordinary(hard) == slow.encode_ordinary(hard), hard
        assert not set(tok.special_tokens.values()) & set(tok.encode_ordinary(hard))
    assert tok.decode(tok.encode("Of it")) == "of it "
    assert tok.encode("of", add_special_tokens=True) == [49_406, tok.token_id("of</w>"), 49_407]


def test_clip_is_written_as_it_was_read(tmp_path: Path) -> None:
    spec = formats.read(clip_file(LINES))
    Tokenizer(spec).save(tmp_path / "clip.txt.gz")
    assert gzip.decompress((tmp_path / "clip.txt.gz").read_bytes()) == clip_file(LINES[: clip.MERGES])
    assert subword.load(tmp_path / "clip.txt.gz").spec == spec == formats.read(native.write(spec))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (clip_file(LINES[: clip.MERGES - 1]), "48,893 merges, but CLIP's vocabulary has 48,894"),
        (clip_file([]), "0 merges, but"),
        (clip_file(["a b c", *LINES]), "line 2: expected two tokens, found 'a b c'"),
        (clip_file(["", *LINES]), "line 2: expected two tokens, found ''"),
        (clip_file(["a 中", *LINES]), "line 2: 'a 中' does not spell bytes"),
        (clip_file(["ab c", *LINES]), "line 2 joins 'ab', which no line before it makes"),
        (clip_file([LINES[0], *LINES]), "a second time"),
        (gzip.compress(clip_file(LINES))[:-9000], "cut off"),
        (clip_file(LINES).replace(b"! !", b"\xff \xff"), "damaged, 'utf-8' codec"),
    ],
)
def test_bad_clip_files(data: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=re.escape(message)):
        formats.read(data, "x")


def test_what_clips_file_cannot_hold() -> None:
    spec = formats.read(clip_file(LINES))
    for changes, message in [
        ({"stages": spec.stages[1:]}, "its stages is not CLIP's"),
        ({"extra": ()}, "its extra is not"),
        ({"template": Template()}, "its template is not"),
        ({"decode": Decode("</w>")}, "its decode is not"),
        ({"model": trained().spec.model}, "merges: it has 48,894"),
    ]:
        with pytest.raises(SubwordValueError, match=message):
            clip.write(spec.replace(**changes))
    with pytest.raises(SubwordValueError, match="lower case with final sigmas"):
        tokenizer_json.write(spec)


# ======================== tokenizer.json over characters ========================


def document(**changes: Any) -> dict[str, Any]:
    tokens = ["<unk>", "<s>", "l", "o", "w", "w</w>", "é</w>", "lo", "low</w>"]
    model = {
        "type": "BPE",
        "unk_token": "<unk>",
        "end_of_word_suffix": "</w>",
        "vocab": {token: id for id, token in enumerate(tokens)},
        "merges": [["l", "o"], ["lo", "w</w>"]],
    }
    whole = {
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "decoder": {"type": "BPEDecoder", "suffix": "</w>"},
        "added_tokens": [{"id": 1, "content": "<s>", "special": True}],
        "model": model | changes.pop("model", {}),
    }
    return whole | changes


def read(whole: dict[str, Any]) -> Spec:
    return tokenizer_json.read(json.dumps(whole).encode(), "x")


def test_tokenizer_json_over_characters() -> None:
    spec = read(document())
    assert spec.stages[-1] == Split("whitespace-split") and Lowercase(final_sigma=False, unicode="17.0") in spec.stages
    tok = Tokenizer(spec)
    assert tok.encode("LOW lé\n中w<s>", allowed_special="all") == [8, 2, 6, 0, 5, 1]
    assert tok.decode([8, 2, 6, 0, 5]) == "low lé <unk>w"
    for write in (native.write, tokenizer_json.write):
        assert formats.read(write(spec)) == spec


def test_ids_over_characters_are_those_of_tokenizers() -> None:
    hf = pytest.importorskip("tokenizers")
    whole = {"version": "1.0", **document()}
    whole["added_tokens"] = [
        {**document()["added_tokens"][0], **dict.fromkeys(("single_word", "lstrip", "rstrip"), False)}
    ]
    whole["added_tokens"][0]["normalized"] = False
    specs = [read(whole), trained(pattern="whitespace-split", special_tokens=["<s>"]).spec]
    rng = random.Random(3)
    for spec in specs:
        theirs, ours = hf.Tokenizer.from_str(tokenizer_json.write(spec).decode()), Tokenizer(spec)
        known = [piece.decode() for piece in spec.model.vocab.pieces]
        made = [
            "".join(rng.choices([*known, " ", "\n", "L", "中", "é", "<s>"], k=rng.randint(1, 9))) for _ in range(500)
        ]
        for text in [*TEXTS.values(), *made]:
            ids = theirs.encode(text, add_special_tokens=False).ids
            assert ours.encode(text, allowed_special="all") == ids, text
            kept = [id for id in ids if id != (ours.token_id("<s>"))]
            assert ours.decode(kept) == theirs.decode(kept), text


WHITE = {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": {"unk_token": "<?>"}}, "model.unk_token: '<?>' is not a token of model.vocab"),
        ({"model": {"fuse_unk": 1}}, "model.fuse_unk: expected true or false"),
        ({"pre_tokenizer": {"type": "Nobody"}}, "pre_tokenizer.type: 'Nobody' is not supported"),
        ({"normalizer": {"type": "Nobody"}}, "normalizer.type: 'Nobody' is not supported"),
    ],
)
def test_what_is_refused_over_characters(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError, match=re.escape(message)):
        read(document(**changes))


def test_replacing_white_space_is_accepted_where_it_is_dropped() -> None:
    assert read(document(normalizer=WHITE)) == read(document(normalizer=None))
    token = {"id": 1, "content": "<s>", "special": True, "normalized": True, "lstrip": True}
    assert ReplaceRegex(r"\s+", " ") in read(document(normalizer=WHITE, added_tokens=[token])).stages
    byte_level = json.loads(tokenizer_json.write(subword.train(["a b"], vocab_size=257, pattern="gpt2").spec))
    assert ReplaceRegex(r"\s+", " ") in read(byte_level | {"normalizer": WHITE}).stages


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pattern": "gpt2"}, "with Decode"),
    ],
)
def test_what_tokenizer_json_cannot_hold_over_characters(options: dict[str, Any], message: str) -> None:
    spec = trained(**options).spec
    with pytest.raises(SubwordValueError, match=f"tokenizer.json cannot hold .*{message}"):
        tokenizer_json.write(spec)
