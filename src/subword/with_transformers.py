"""Tokenizers of the library transformers, both ways."""

from __future__ import annotations

import json
from typing import Any

from . import formats
from .errors import SubwordValueError
from .formats import model_folder
from .formats.json_node import Node
from .spec import Spec


def is_one(value: object) -> bool:
    """Whether this is a tokenizer of transformers, or of tokenizers, which it wraps. Nothing is imported for it."""
    return any(kind.__module__.partition(".")[0] in ("transformers", "tokenizers") for kind in type(value).__mro__)


def read(theirs: Any) -> Spec:
    """The spec that a tokenizer of transformers means, with its named tokens and its chat templates.

    What calls to it left behind about truncation and padding is no part of it.

    Raises:
        FormatError: it has something that is not supported.
        SubwordValueError: it is one that runs in Python and has no `tokenizer.json`.
    """
    source = type(theirs).__name__
    backend = getattr(theirs, "backend_tokenizer", theirs)
    if not hasattr(backend, "to_str"):
        raise SubwordValueError(
            f"a {source} runs in Python and has no tokenizer.json: save it, and load the files, or use its fast form"
        )
    content = {**json.loads(backend.to_str()), "truncation": None, "padding": None}
    spec = formats.read(json.dumps(content).encode(), source)
    named = {
        name: str(token) for name, token in getattr(theirs, "special_tokens_map", {}).items() if isinstance(token, str)
    }
    spec = model_folder.with_named_tokens(spec, [Node(named, source)])
    chat = getattr(theirs, "chat_template", None)
    if isinstance(chat, str):
        chat = {model_folder.DEFAULT: chat}
    return spec.replace(chat=dict(chat)) if chat else spec


def to_transformers(spec: Spec) -> Any:
    """A `PreTrainedTokenizerFast` that gives the same ids; see `Tokenizer.to_transformers`."""
    try:
        import tokenizers
        import transformers
    except ImportError as error:
        raise SubwordValueError("this needs transformers: pip install 'subword[transformers]'") from error
    from .formats import tokenizer_json  # not before: loading should not wait for it

    extra = {token.id: token.content for token in spec.extra}
    names = {f"{role}_token": extra[id] for role, id in spec.roles.items() if id in extra}
    standard = {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}
    more = {name: token for name, token in names.items() if name not in standard}
    theirs = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizers.Tokenizer.from_str(tokenizer_json.write(spec.replace(roles={})).decode()),
        **{name: token for name, token in names.items() if name in standard},
        **({"extra_special_tokens": more} if more else {}),
        clean_up_tokenization_spaces=False,
    )
    chat = dict(spec.chat)
    if chat:
        theirs.chat_template = chat[model_folder.DEFAULT] if list(chat) == [model_folder.DEFAULT] else chat
    return theirs
