"""What a model's folder says of its tokenizer beside the tokenizer file, as transformers reads it.

    tokenizer_config.json       NAME_token: a string, or an object with its content and flags; added_tokens_decoder: ids
                                to such objects; additional_special_tokens and extra_special_tokens: more;
                                add_bos_token, add_eos_token; chat_template: one, or a list of {"name", "template"}
    special_tokens_map.json     NAME_token and additional_special_tokens; only where the file above has no
                                added_tokens_decoder, and then it goes first
    chat_template.jinja         goes before chat_template in tokenizer_config.json
    chat_template.json          {"chat_template": …}, an older way to say so
    additional_chat_templates/NAME.jinja

Tokens that are named are special ones. Those that the tokenizer does not have get the ids that transformers gives them,
from its last one on. `add_bos_token` and `add_eos_token` count where the tokenizer file has no template of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from ..errors import FormatError
from ..spec import (
    BPE,
    BYTE,
    MAX_ID,
    UNUSED,
    ExtraToken,
    MatchTokens,
    Packed,
    ScoreBPE,
    Spec,
    Template,
    Unigram,
    Vocab,
)
from ..writing import os_error
from .files import read_file
from .json_node import Node, parse, shown

CONFIG, TOKENS_MAP, ADDED = "tokenizer_config.json", "special_tokens_map.json", "added_tokens_decoder"
TEMPLATE, OLD_TEMPLATE, MORE_TEMPLATES = "chat_template.jinja", "chat_template.json", "additional_chat_templates"
LISTS = ("additional_special_tokens", "extra_special_tokens", "model_specific_special_tokens")

DEFAULT = "default"
"""What a chat template without a name is called."""


class Folder:
    """Files by their names: in a folder, or, where they are given, in memory."""

    def __init__(self, path: str, files: Mapping[str, bytes] | None = None) -> None:
        self.path = path
        self.files = files

    def where(self, name: str) -> str:
        """What errors call a file."""
        return os.path.join(self.path, name)

    def read(self, name: str, what: str) -> bytes | None:
        """A file's content, if it is there."""
        if self.files is not None:
            return self.files.get(name)
        return read_file(self.where(name), what) if os.path.exists(self.where(name)) else None

    def names(self, below: str) -> list[str]:
        """The files in a folder in it; none if there is none."""
        if self.files is not None:
            return sorted(name.removeprefix(f"{below}/") for name in self.files if name.startswith(f"{below}/"))
        path = self.where(below)
        try:
            return sorted(os.listdir(path)) if os.path.isdir(path) else []
        except OSError as error:
            raise os_error(error, "cannot read the chat templates", path) from error


def configured(spec: Spec, folder: Folder) -> Spec:
    """A tokenizer that was read from a file in this folder, with what the other files say.

    Raises:
        SubwordOSError: a file cannot be read.
        FormatError: a file is damaged, or contradicts the tokenizer.
    """
    config = _object_in(folder, CONFIG)
    spec = replace(spec, chat={**spec.chat, **_chat_templates(folder, config)})
    naming = [config] if config is not None else []
    if config is None or ADDED not in config.fields():
        tokens_map = _object_in(folder, TOKENS_MAP)
        naming += [tokens_map] if tokens_map is not None else []
    if config is not None:
        for token, node in _decoder_rows(config):
            spec = _with_token(spec, token, node, token.kind == "special", has_id=True)
    spec = with_named_tokens(spec, naming)
    return spec if config is None else _with_ends(spec, config)


def with_named_tokens(spec: Spec, naming: Iterable[Node]) -> Spec:
    """The tokenizer with the roles of what these objects name `NAME_token`; the last one that names it counts."""
    roles: dict[str, int | None] = {}
    for node in naming:
        for role, each in _named(node):
            if each.value is None:
                roles[role] = None
                continue
            token = _token(each)
            spec = _with_token(spec, token, each, special=True)
            if role:
                roles[role] = next(own.id for own in spec.extra if own.content == token.content)
    kept = {role: id for role, id in {**spec.roles, **roles}.items() if id is not None}
    return replace(spec, roles=kept)


def _object_in(folder: Folder, name: str) -> Node | None:
    data = folder.read(name, "the settings of a tokenizer")
    if data is None:
        return None
    node = parse(data, folder.where(name))
    node.fields()
    return node


# ======================== tokens ========================


def _named(config: Node) -> Iterator[tuple[str, Node]]:
    """The tokens that a file names, with their roles; those without one have the role ""."""
    for key, value in config.fields().items():
        if key.endswith("_token") and (value is None or isinstance(value, (str, dict))):
            yield key.removesuffix("_token"), config.child(key, value)
        elif key in LISTS and isinstance(value, dict):
            for name, each in config.child(key, value).fields().items():
                yield name.removesuffix("_token"), config.child(key, value).child(name, each)
        elif key in LISTS and value is not None:
            for each_node in config.child(key, value).items():
                yield "", each_node


def _token(node: Node, id: int = 0) -> ExtraToken:
    """A token as a string, or as an object with flags."""
    if isinstance(node.value, str):
        content, flags, special = node, {}, True
    else:
        content, special = node["content"], node.get("special", True).flag()
        flags = {name: node.get(name, False).flag() for name in ("single_word", "lstrip", "rstrip")}
        flags["normalized"] = node.get("normalized", not special).flag()
    if not content.text():
        raise content.error("a token cannot be empty")
    return ExtraToken(id, content.text(), "special" if special else "added", **flags)


def _decoder_rows(config: Node) -> Iterator[tuple[ExtraToken, Node]]:
    rows = config.get(ADDED, {})
    for key, value in sorted(rows.fields().items(), key=lambda row: (len(row[0]), row[0])):
        node = rows.child(key, value)
        if not (key.isascii() and key.isdigit() and len(key) < 11 and int(key) <= MAX_ID):
            raise node.error(f"{shown(key)} is no id")
        special = node.get("special", False).flag()
        yield replace(_token(node, int(key)), kind="special" if special else "added"), node


def _with_token(spec: Spec, token: ExtraToken, node: Node, special: bool, has_id: bool = False) -> Spec:
    """The tokenizer with this token, and with it special if it is to be."""
    for index, own in enumerate(spec.extra):
        if own.content != token.content:
            continue
        if has_id and own.id != token.id:
            raise node.error(f"the tokenizer has {shown(token.content)} with the id {own.id}; mend one of the files")
        if own.kind == "special" or not (special or own.kind == "unmatchable"):
            return spec
        kind = "special" if special else token.kind
        changed = replace(own, kind=kind) if own.kind == "added" else replace(token, id=own.id, kind=kind)
        return _matched(spec, (*spec.extra[:index], changed, *spec.extra[index + 1 :]), changed)
    vocab = spec.model.vocab
    at = next((at for at, piece in enumerate(vocab.pieces) if piece == token.content.encode()), None)
    if at is not None:
        id = int(vocab.ids[at])
    else:
        id = max([-1, *(own.id for own in spec.extra), *vocab.ids[-1:].tolist()]) + 1
    if has_id and id != token.id:
        known = f"{shown(token.content)} is no token of the tokenizer, and the next one has the id {id}"
        raise node.error(f"{known}, not {token.id}" if at is None else f"the tokenizer has it with the id {id}")
    if at is not None:
        spec = _without_entry(spec, at)
    new = replace(token, id=id)
    return _matched(spec, tuple(sorted((*spec.extra, new), key=lambda own: own.id)), new)


def _without_entry(spec: Spec, at: int) -> Spec:
    """The tokenizer whose model does not give an entry that is now a special token, if it can do without."""
    model = spec.model
    id, piece = int(model.vocab.ids[at]), model.vocab.pieces[at]
    if id == model.unk:
        return spec
    if isinstance(model, (Unigram, ScoreBPE)):  # as tokenizer.json is read: it stays, and is never taken
        kinds = model.kinds.copy()
        kinds[at] = kinds[at] if kinds[at] == BYTE else UNUSED
        return replace(spec, model=replace(model, kinds=kinds))
    if len(piece) == 1:
        return spec
    if isinstance(model, BPE):
        spelled = dict(zip(model.vocab.ids.tolist(), model.vocab.pieces, strict=True))
        if np.any(model.merges == id) or any(spelled[a] + spelled[b] == piece for a, b in model.merges.tolist()):
            return spec
    rest = [each for index, each in enumerate(model.vocab.pieces) if index != at]
    return replace(spec, model=replace(model, vocab=Vocab(Packed.of(rest), np.delete(model.vocab.ids, at))))


def _matched(spec: Spec, extra: tuple[ExtraToken, ...], token: ExtraToken) -> Spec:
    """The tokenizer with these extra tokens, and the stage that takes the new one from text."""
    stages = spec.stages
    wanted = MatchTokens(token.normalized)
    if wanted not in stages:
        behind = [index for index, stage in enumerate(stages) if type(stage).__name__ in ("Normalize", "Lowercase")]
        place = behind[-1] + 1 if token.normalized and behind else int(token.normalized and MatchTokens() in stages)
        stages = (*stages[:place], wanted, *stages[place:])
    return replace(spec, stages=stages, extra=extra)


def _with_ends(spec: Spec, config: Node) -> Spec:
    """The tokenizer with the template that `add_bos_token` and `add_eos_token` mean, if it has none."""
    if spec.template != Template():
        return spec
    ends: list[list[int]] = []
    for role in ("bos", "eos"):
        node = config.get(f"add_{role}_token")
        wanted = node.value is not None and node.flag()
        ends.append([spec.roles[role]] if wanted and role in spec.roles else [])
    (bos, eos) = ends
    return replace(spec, template=Template((*bos, "A", *eos), (*bos, "A", *eos, *bos, "B", *eos)))


# ======================== chat templates ========================


def _chat_templates(folder: Folder, config: Node | None) -> dict[str, str]:
    """The chat templates by their names."""
    found: dict[str, str] = {}
    for node in (config, _object_in(folder, OLD_TEMPLATE)):
        said = node.get("chat_template") if node is not None else None
        if said is None or said.value is None:
            continue
        if isinstance(said.value, str):
            found[DEFAULT] = said.text()
            continue
        for each in said.items():
            found[each["name"].text()] = each["template"].text()
    names = [f"{MORE_TEMPLATES}/{name}" for name in folder.names(MORE_TEMPLATES) if name.endswith(".jinja")]
    for name in [TEMPLATE, *names]:
        data = folder.read(name, "a chat template")
        if data is not None:
            called = DEFAULT if name == TEMPLATE else name.removeprefix(f"{MORE_TEMPLATES}/").removesuffix(".jinja")
            found[called] = _text(data, folder.where(name))
    return found


def _text(data: bytes, path: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: not UTF-8 at byte {error.start}; save the file as UTF-8") from None
