"""A model's folder: what stands beside tokenizer.json counts, as in transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from format_specs import bpe, spec_of
from test_convert_matrix import SPECS

import subword
from subword import ExtraToken, FormatError, Template, Tokenizer
from subword.formats import model_folder, tokenizer_json
from subword.spec import BPE, Vocab

BASE = spec_of(ExtraToken(260, "<|end|>"), ExtraToken(261, "<own>", "added"))


def folder_of(path: Path, spec: Any = BASE, **files: Any) -> Path:
    """A folder with a tokenizer.json, and files whose names have `__` for the dot."""
    (path / "tokenizer.json").write_bytes(tokenizer_json.write(spec))
    for name, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (path / name.replace("__", ".")).write_text(text, "utf-8")
    return path


def load(path: Path, spec: Any = BASE, **files: Any) -> Tokenizer:
    return subword.load(folder_of(path, spec, **files))


def test_named_tokens_are_roles(tmp_path: Path) -> None:
    config = {"eos_token": "<|end|>", "pad_token": {"content": "<|end|>", "special": True}, "image_token": "<own>"}
    tok = load(tmp_path, tokenizer_config__json={**config, "add_bos_token": False, "tokenizer_class": "X"})
    assert (tok.eos_id, tok.pad_id, tok.bos_id) == (260, 260, None)
    assert dict(tok.spec.roles) == {"eos": 260, "pad": 260, "image": 261}
    assert tok.special_tokens == {"<|end|>": 260, "<own>": 261}  # what is named is special
    assert Tokenizer(BASE).special_tokens == {"<|end|>": 260}


def test_tokens_that_are_not_there_get_the_next_ids(tmp_path: Path) -> None:
    config = {
        "added_tokens_decoder": {
            "262": {"content": "<two>", "special": False, "lstrip": True, "normalized": False},
            "260": {"content": "<|end|>", "special": True},
        },
        "bos_token": "<bos>",
        "additional_special_tokens": ["<more>"],
    }
    tok = load(tmp_path, tokenizer_config__json=config)
    assert [(token.id, token.content, token.kind) for token in tok.spec.extra[2:]] == [
        (262, "<two>", "added"),
        (263, "<bos>", "special"),
        (264, "<more>", "special"),
    ]
    assert tok.encode("a  <two><more>", allowed_special="all") == [*tok.encode("a"), 262, 264]
    assert tok.bos_id == 263


def test_an_entry_that_is_named_becomes_special(tmp_path: Path) -> None:
    """And leaves the model, so that ordinary text cannot give it."""
    model = bpe()
    entries = [*model.vocab.items(), (b"<s>", 260)]
    spec = spec_of(model=BPE(Vocab.of(entries), model.merges))
    tok = load(tmp_path, spec, tokenizer_config__json={"bos_token": "<s>"})
    assert tok.special_tokens == {"<s>": 260}
    assert tok.encode("<s>a", allowed_special="all") == [260, *tok.encode("a")]
    assert 260 not in tok.encode_ordinary("<s>")
    assert 260 not in tok.spec.model.vocab.ids


def test_the_tokens_map_counts_where_there_is_no_decoder(tmp_path: Path) -> None:
    tokens_map = {"eos_token": {"content": "<own>"}, "pad_token": None, "additional_special_tokens": ["<|end|>"]}
    old = load(
        tmp_path,
        tokenizer_config__json={"eos_token": "<|end|>", "pad_token": "<own>"},
        special_tokens_map__json=tokens_map,
    )
    assert dict(old.spec.roles) == {"eos": 261}
    config = {"eos_token": "<|end|>", "added_tokens_decoder": {}}
    new = load(tmp_path, tokenizer_config__json=config, special_tokens_map__json=tokens_map)
    assert dict(new.spec.roles) == {"eos": 260}


def test_ends_where_there_is_no_template(tmp_path: Path) -> None:
    config = {"bos_token": "<own>", "eos_token": "<|end|>", "add_bos_token": True, "add_eos_token": True}
    tok = load(tmp_path, tokenizer_config__json=config)
    assert tok.encode("a", add_special_tokens=True) == [261, *tok.encode("a"), 260]
    assert tok.spec.template == Template((261, "A", 260), (261, "A", 260, 261, "B", 260))
    own = Template((260, "A"), (260, "A", "B"))
    assert load(tmp_path, BASE.replace(template=own), tokenizer_config__json=config).spec.template == own
    only = load(tmp_path, tokenizer_config__json={**config, "add_bos_token": None, "add_eos_token": True})
    assert only.spec.template.single == ("A", 260)


def test_chat_templates(tmp_path: Path) -> None:
    assert load(tmp_path, tokenizer_config__json={"chat_template": "one"}).spec.chat == {"default": "one"}
    rows = [{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}]
    named = load(tmp_path, tokenizer_config__json={"chat_template": rows})
    assert named.spec.chat == {"default": "d", "tool_use": "t"}
    assert named == Tokenizer(BASE)  # it changes no id
    saved = named.save(tmp_path / "x.subword")
    assert subword.load(saved).spec.chat == named.spec.chat
    saved.unlink()
    with pytest.warns(subword.SubwordWarning, match="no place for chat templates"):
        named.save(tmp_path / "tokenizer.json")
    (tmp_path / "additional_chat_templates").mkdir()
    (tmp_path / "additional_chat_templates" / "rag.jinja").write_text("r")
    files = {"chat_template__jinja": "ü\n", "tokenizer_config__json": {"chat_template": rows}}
    assert load(tmp_path, **files).spec.chat == {"default": "ü\n", "tool_use": "t", "rag": "r"}


def test_a_folder_with_what_it_was_made_from(tmp_path: Path) -> None:
    """A model's folder may hold other tokenizer files; tokenizer.json is the one that counts."""
    Tokenizer(BASE).save(tmp_path / "other.subword")
    folder_of(tmp_path)
    with pytest.raises(subword.SubwordValueError, match="more than one tokenizer is here"):
        subword.load(tmp_path)
    assert load(tmp_path, tokenizer_config__json={}) == Tokenizer(BASE)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"tokenizer_config__json": "["}, "tokenizer_config.json: not JSON"),
        ({"tokenizer_config__json": []}, "tokenizer_config.json: expected an object"),
        ({"special_tokens_map__json": 1}, "special_tokens_map.json: expected an object"),
        ({"tokenizer_config__json": {"bos_token": ""}}, "bos_token: a token cannot be empty"),
        ({"tokenizer_config__json": {"bos_token": {}}}, "bos_token: the field 'content' is missing"),
        ({"tokenizer_config__json": {"add_bos_token": "yes"}}, "add_bos_token: expected true or false"),
        ({"tokenizer_config__json": {"additional_special_tokens": "x"}}, "additional_special_tokens: expected a list"),
        ({"tokenizer_config__json": {"chat_template": 1}}, "chat_template: expected a list"),
        (
            {"tokenizer_config__json": {"chat_template": [{"template": ""}]}},
            r"chat_template\[0\]: the field 'name' is missing",
        ),
        ({"tokenizer_config__json": {"added_tokens_decoder": {"x": {"content": "a"}}}}, "'x' is no id"),
        ({"tokenizer_config__json": {"added_tokens_decoder": {"5": {"content": "<own>"}}}}, "'<own>' with the id 261"),
        ({"tokenizer_config__json": {"added_tokens_decoder": {"9": {"content": "<n>"}}}}, "has the id 262, not 9"),
        ({"tokenizer_config__json": {"added_tokens_decoder": {"9": {"content": "the"}}}}, "with the id"),
    ],
)
def test_damage_is_reported(tmp_path: Path, files: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        load(tmp_path, **files)


def test_a_template_that_is_not_utf8(tmp_path: Path) -> None:
    folder_of(tmp_path)
    (tmp_path / "chat_template.jinja").write_bytes(b"a\xff")
    with pytest.raises(FormatError, match=r"chat_template\.jinja: not UTF-8 at byte 1"):
        subword.load(tmp_path)


def test_as_transformers_reads_it(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    jinja = (
        "{{ bos_token }}{% for m in messages %}{{ '<|start|>' + m['role'] + '\n' }}{% generation %}"
        "{{ m['content'] | trim }}{{ eos_token }}{% endgeneration %}{% endfor %}"
        "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
    )
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": {
            "content": "<bos>",
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "single_word": False,
            "__type": "AddedToken",
        },
        "eos_token": "<|end|>",
        "added_tokens_decoder": {
            "260": {"content": "<|end|>", "special": True, "rstrip": True},
            "261": {"content": "<own>", "special": False},
            "262": {"content": "<|start|>", "special": True},
            "263": {"content": "<two>", "special": False, "lstrip": True, "normalized": False},
        },
        "additional_special_tokens": ["<|start|>"],
        "chat_template": jinja,
    }
    spec = spec_of(ExtraToken(260, "<|end|>", rstrip=True), ExtraToken(261, "<own>", "added", normalized=True))
    tok = load(tmp_path, spec, tokenizer_config__json=config)
    theirs = transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path)
    for role in ("bos", "eos", "pad", "unk"):
        assert getattr(tok, f"{role}_id") == getattr(theirs, f"{role}_token_id")
    for text in ("the <two> end", "<|start|><bos> x<|end|>  \n the<own>", " <own>"):
        assert tok.encode(text, allowed_special="all") == theirs.encode(text, add_special_tokens=False), text
    talk = [{"role": "user", "content": "  the\n<own> end"}, {"role": "assistant", "content": "ünï 👋 "}]
    for prompt in (False, True):
        made = tok.chat(talk, add_generation_prompt=prompt)
        wanted = theirs.apply_chat_template(
            talk, add_generation_prompt=prompt, return_dict=True, return_assistant_tokens_mask=True
        )
        assert made.ids.tolist() == wanted["input_ids"]
        assert made.text == theirs.apply_chat_template(talk, add_generation_prompt=prompt, tokenize=False)
        assert made.loss_mask.astype(int).tolist() == wanted["assistant_masks"]


# ======================== writing ========================


def full() -> Tokenizer:
    extra = (
        ExtraToken(260, "<|end|>"),
        ExtraToken(261, "<own>", "added", lstrip=True),
        ExtraToken(262, "<image>"),
        ExtraToken(263, "<s>"),
    )
    template = Template((263, "A"), (263, "A", 263, "B"))
    roles = {"bos": 263, "eos": 260, "pad": 260, "image": 262}
    chat = {"default": "{{ bos_token }}{{ messages[0].content }}é", "tool use": "t", "rag": "r"}
    return Tokenizer(spec_of(*extra, template=template, roles=roles).replace(chat=chat))


def test_a_folder_comes_back(tmp_path: Path) -> None:
    tok = full()
    tok = Tokenizer(tok.spec.replace(chat={name: text for name, text in tok.spec.chat.items() if name != "tool use"}))
    for name in ("a/", "b"):
        (tmp_path / "b").mkdir(exist_ok=True)
        saved = tok.save(f"{tmp_path}/{name}")
        assert sorted(path.relative_to(saved).as_posix() for path in saved.rglob("*.*")) == [
            "additional_chat_templates/rag.jinja",
            "chat_template.jinja",
            "special_tokens_map.json",
            "tokenizer.json",
            "tokenizer_config.json",
        ]
        again = subword.load(saved)
        assert again == tok
        assert (again.spec.roles, again.spec.chat) == (tok.spec.roles, tok.spec.chat)


def test_a_template_that_is_no_file_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(subword.SubwordValueError, match="'tool use', which would be the name of a file"):
        full().save(tmp_path / "x", format="model-folder")
    assert not (tmp_path / "x").exists()


def test_roles_of_plain_entries_are_told(tmp_path: Path) -> None:
    """Whoever reads a folder makes a token special that is named there."""
    tok = Tokenizer(BASE.replace(roles={"pad": 0, "sep": 261, "eos": 260}))
    with pytest.warns(subword.SubwordWarning, match="no place for the roles pad, sep"):
        saved = tok.save(f"{tmp_path}/x/")
    again = subword.load(saved)
    assert again == tok and dict(again.spec.roles) == {"eos": 260}


@pytest.mark.parametrize(
    ("kind", "name", "id"),
    [("WordPiece", "the", 28), ("WordLevel", "cat", 2), ("HF's Unigram", "▁the", 1), ("longest match", "the", 257)],
)
def test_a_named_entry_is_no_longer_taken_from_text(kind: str, name: str, id: int) -> None:
    """Whatever the model: the entry that a folder names is a special token from then on."""
    spec = SPECS[kind]()
    config = json.dumps({"x_token": name}).encode()
    tok = Tokenizer(model_folder.configured(spec, model_folder.Folder("", {model_folder.CONFIG: config})))
    assert tok.special_tokens[name] == id and tok.spec.roles["x"] == id
    assert id in Tokenizer(spec).encode(name.replace("▁", " "))
    for text in (name, name.replace("▁", " ")):
        assert id not in tok.encode_ordinary(text)
    assert tok.encode(name, allowed_special="all") == [id]


def test_a_folder_of_ours_in_transformers(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="the package transformers is not installed")
    tok = full()
    tok = Tokenizer(tok.spec.replace(chat={"default": tok.spec.chat["default"]}))
    theirs = transformers.AutoTokenizer.from_pretrained(str(tok.save(f"{tmp_path}/x/")))
    for text in ("", "the  the\n", "a <own><|end|> b<image>", "é ½ 12345"):
        ids = tok.encode(text, allowed_special="all", add_special_tokens=True)
        assert theirs.encode(text) == ids
        assert theirs.decode(ids) == tok.decode(ids)
    named = (theirs.bos_token_id, theirs.eos_token_id, theirs.pad_token_id, theirs.image_token)
    assert named == (263, 260, 260, "<image>")
    messages = [{"role": "user", "content": "hi"}]
    assert theirs.apply_chat_template(messages, tokenize=False) == "<s>hié"
