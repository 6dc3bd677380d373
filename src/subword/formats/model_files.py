"""A model's folder as transformers writes it: `tokenizer.json` and what stands beside it (`model_folder.py` reads it).

    tokenizer.json                       all that changes ids
    tokenizer_config.json                the roles, by the tokens that have them; the extra tokens by their ids
    special_tokens_map.json              the roles once more, for older readers
    chat_template.jinja                  the chat template
    additional_chat_templates/NAME.jinja others

Only special tokens are named there, as whoever reads it makes a named token special.
"""

from __future__ import annotations

import json
import re
from typing import Any

from ..errors import warn
from ..spec import ExtraToken, Spec
from . import model_folder, tokenizer_json
from .bare import Input, refuse

FILE = "tokenizer.json"
STANDARD = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
"""The roles that transformers has fields for."""

PARTS = {
    **tokenizer_json.PARTS,
    "roles": f"{model_folder.CONFIG}, NAME_token; chat templates: {model_folder.TEMPLATE}",
    "notes": None,
}
LIMITS = f"what tokenizer.json cannot hold: {tokenizer_json.LIMITS}"


def looks_like(data: bytes) -> bool:
    """A folder is known by its files, never by the bytes of one."""
    return False


def read(file: Input) -> Spec:
    """The spec of a folder in memory: `tokenizer.json`, and in `others` the files beside it."""
    spec = tokenizer_json.read(file.data, file.name, file.warn)
    return model_folder.configured(spec, model_folder.Folder("", file.others))


def write(spec: Spec) -> dict[str, bytes]:
    """The files of the folder by their names. Warns of roles that it has no place for.

    Raises:
        SubwordValueError: `tokenizer.json` cannot hold something of `spec`; the message names it.
    """
    files = {FILE: tokenizer_json.write(spec.replace(roles={}, chat={}))}
    special = {token.id: token.content for token in spec.extra if token.kind == "special"}
    named = {role: special[id] for role, id in spec.roles.items() if id in special}
    config: dict[str, Any] = {
        "added_tokens_decoder": {str(token.id): _flags(token) for token in spec.extra if token.kind != "unmatchable"},
        **{f"{role}_token": token for role, token in named.items() if role in STANDARD},
        "clean_up_tokenization_spaces": False,
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    more = {f"{role}_token": token for role, token in named.items() if role not in STANDARD}
    if more:
        config["extra_special_tokens"] = more
    files[model_folder.CONFIG] = _json(config)
    files[model_folder.TOKENS_MAP] = _json({f"{role}_token": named[role] for role in STANDARD if role in named})
    for name, template in spec.chat.items():
        if name != model_folder.DEFAULT and not re.fullmatch(r"[\w.-]{1,100}", name):
            refuse("a model's folder", f"a chat template called {name!r}, which would be the name of a file")
        path = model_folder.TEMPLATE if name == model_folder.DEFAULT else f"{model_folder.MORE_TEMPLATES}/{name}.jinja"
        files[path] = template.encode()
    known = tokenizer_json.read(files[FILE], FILE).roles
    lost = [role for role, id in spec.roles.items() if role not in named and known.get(role) != id]
    if lost:
        text = f"a model's folder names special tokens only, and has no place for the roles {', '.join(lost)}"
        warn(text)
    return files


def _flags(token: ExtraToken) -> dict[str, Any]:
    return {
        "content": token.content,
        "lstrip": token.lstrip,
        "normalized": token.normalized,
        "rstrip": token.rstrip,
        "single_word": token.single_word,
        "special": token.kind == "special",
    }


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=2).encode() + b"\n"
