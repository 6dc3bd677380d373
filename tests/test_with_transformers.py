"""Tokenizers of transformers, both ways."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from format_specs import spec_of
from vocabularies import shared_folder

import subword
from subword import ExtraToken, SubwordValueError, Template, Tokenizer
from subword.formats import tokenizer_json

SHARED = shared_folder()
TEXTS = [
    "Hello world, it's 2026! é e\u0301 中文 <s> </s> [CLS] 👩\u200d💻\n\n\tdef f(x):\r\n  y",
    "",
    " a ",
    "<|endoftext|> <unk>",
]
SPEC = spec_of(
    *(ExtraToken(id, text) for id, text in ((260, "<s>"), (261, "<pad>"), (262, "<image>"))),
    template=Template((260, "A"), (260, "A", 260, "B")),
    roles={"bos": 260, "pad": 261, "image": 262},
    chat={"default": "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}"},
)


def test_there_and_back() -> None:
    pytest.importorskip("transformers")
    tok = Tokenizer(SPEC)
    theirs = tok.to_transformers()
    assert (theirs.bos_token, theirs.pad_token, theirs.pad_token_id) == ("<s>", "<pad>", 261)
    for text in ("the cat<s>", " x\n\nthe"):
        assert theirs.encode(text) == tok.encode(text, allowed_special="all", add_special_tokens=True)
        assert theirs.decode(tok.encode_ordinary(text)) == text
    talk = [{"role": "user", "content": "the end"}]
    assert theirs.apply_chat_template(talk)["input_ids"] == tok.chat(talk).ids.tolist()
    theirs(["a", "bcd"], padding=True, truncation=True, max_length=3)  # which leaves its settings behind
    again = subword.load(theirs)
    assert again == tok
    assert {**again.spec.roles} == {**SPEC.roles}
    assert again.spec.chat == SPEC.chat
    several = Tokenizer(SPEC.replace(chat={"default": "a", "rag": "b"}))
    assert subword.load(several.to_transformers()).spec.chat == {"default": "a", "rag": "b"}


@pytest.mark.skipif(SHARED is None, reason="no conformance kit: set SUBWORD_SHARED to the folder that has it")
@pytest.mark.parametrize("name", ["gpt2", "bert_base_uncased", "llama2", "xlnet", "clip", "modernbert", "gpt_neox"])
def test_published_tokenizers(name: str) -> None:
    transformers = pytest.importorskip("transformers")
    path = str((SHARED or Path()) / "conformance" / "files" / f"{name}.json")
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=path)
    tok = subword.load(theirs)
    assert tok.fingerprint == subword.load(path).fingerprint
    back = tok.to_transformers()
    for text in TEXTS:
        ids = theirs(text)["input_ids"]
        assert tok.encode(text, allowed_special="all", add_special_tokens=True) == ids == back(text)["input_ids"]
        assert tok.decode(ids) == theirs.decode(ids, clean_up_tokenization_spaces=False)


def test_a_tokenizer_of_tokenizers() -> None:
    hf = pytest.importorskip("tokenizers")
    assert subword.load(hf.Tokenizer.from_str(tokenizer_json.write(SPEC.replace(roles={})).decode())) == Tokenizer(SPEC)


def test_one_that_runs_in_python_is_refused() -> None:
    transformers = pytest.importorskip("transformers")
    base = transformers.PreTrainedTokenizerFast
    slow = type("Slow", (base,), {"__init__": lambda self: None, "backend_tokenizer": None})
    with pytest.raises(SubwordValueError, match=r"a Slow runs in Python and has no tokenizer\.json"):
        subword.load(slow())


def test_without_transformers_it_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['transformers'] = None\nimport subword\n"
        "tok = subword.train(['ab'], vocab_size=256, pattern='gpt2')\n"
        "try: tok.to_transformers()\n"
        "except subword.SubwordValueError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'subword[transformers]'" in done.stdout
