"""Post-processors in tokenizer.json: what they put around texts, as a `Template`.

Those of a Sequence do so one after the other. What they do to offsets is other libraries' convention.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, cast

from ..spec import MAX_ID, ExtraToken, Template
from .json_node import Node, shown, steps_of, unsupported
from .tokenizer_json_tokens import AnyTokens

MAX_TYPE = 2**32 - 1

Row: TypeAlias = "list[tuple[int | str, int]]"
"""Ids, and `"A"` and `"B"` where texts go, each with its type."""


class Known:
    """The ids that stand for something."""

    def __init__(self, tokens: AnyTokens, extra: Iterable[ExtraToken]) -> None:
        self.tokens = tokens
        self.extra = {token.id for token in extra}

    def __contains__(self, id: int) -> bool:
        return id in self.extra or self.tokens.token_of(id) is not None


def read_post_processor(node: Node, known: Known) -> Template:
    single: Row = [("A", 0)]
    first: Row = [("A", 0)]  # the two of a pair stay apart until a template joins them
    second: Row = [("B", 1)]
    pair: Row | None = None
    for step in steps_of(node, "processors"):
        kind = step["type"].value
        if kind != "ByteLevel" and kind not in ("TemplateProcessing", *_AROUND):
            names = ", ".join(("ByteLevel", "TemplateProcessing", *_AROUND))
            raise unsupported(step, f"the post-processors are {names} and a Sequence")
        if kind == "ByteLevel":
            continue
        if pair is not None:
            raise step.error("nothing can follow a TemplateProcessing but ByteLevel: tokenizers fails there")
        if kind == "TemplateProcessing":
            pair = _filled(step, "pair", {"A": first, "B": second}, known)
            single = _filled(step, "single", {"A": single}, known)
            continue
        cls, sep = (_read_named_id(step[name], known) for name in ("cls", "sep"))
        single = _AROUND[kind](cls, single, sep, 0)
        first, second = _AROUND[kind](cls, first, sep, 0), _AROUND[kind](cls, second, sep, 1)
    return Template.of_rows(single, first + second if pair is None else pair)


def _bert(cls: int, row: Row, sep: int, number: int) -> Row:
    return [*([] if number else [(cls, 0)]), *row, (sep, number)]


def _roberta(cls: int, row: Row, sep: int, number: int) -> Row:
    return [(sep if number else cls, 0), *((item, 0) for item, _ in row), (sep, 0)]


_AROUND: dict[Any, Callable[[int, Row, int, int], Row]] = {"BertProcessing": _bert, "RobertaProcessing": _roberta}
"""What stands around the first text (0) and the second (1)."""


def _filled(step: Node, name: str, texts: dict[str, Row], known: Known) -> Row:
    """A template with the rows of the texts where they go."""
    found: Row = []
    used: list[str] = []
    for row in step[name].items():
        kind = next((kind for kind in ("Sequence", "SpecialToken") if kind in row.fields()), None)
        if kind is None:
            raise row.expected('{"Sequence": …} or {"SpecialToken": …}')
        type_ = row[kind].get("type_id", 0).number(0, MAX_TYPE)
        part = row[kind]["id"]
        if kind == "Sequence":
            used.append(part.text())
            found += [(item, type_) for item, _ in texts.get(part.text(), [])]
            continue
        if part.text() not in step["special_tokens"].fields():
            raise part.error(f"{shown(part.value)} is not in {step['special_tokens'].path}")
        ids = step["special_tokens"][part.text()]["ids"].items()
        found += [(_read_id(id, known), type_) for id in ids]
    if sorted(used) != sorted(texts):
        raise step[name].error(f"it should hold the Sequence {' and '.join(texts)}, once")
    return found


def _read_named_id(node: Node, known: Known) -> int:
    """The id of a `["token", id]`."""
    pair = list(node.items())
    if len(pair) != 2:
        raise node.expected("a token and its id")
    return _read_id(pair[1], known)


def _read_id(node: Node, known: Known) -> int:
    if node.number(0, MAX_ID) not in known:
        raise node.error(f"no token has the id {node.value}")
    return node.number(0, MAX_ID)


def template_roles(template: Template) -> dict[str, int]:
    """What a template tells of roles: one id before a text is `bos`, one after it is `eos`."""
    at = template.single.index("A")
    before, after = template.single[:at], template.single[at + 1 :]
    return {name: cast("int", ids[0]) for name, ids in (("bos", before), ("eos", after)) if len(ids) == 1}


def write_post_processor(template: Template, names: dict[int, str]) -> dict[str, Any] | None:
    if template == Template():
        return None
    used = sorted({item for item in template.single + template.pair if isinstance(item, int)})
    rows = {
        name: [_item(*row, names) for row in zip(getattr(template, name), template.types_of(name), strict=True)]
        for name in ("single", "pair")
    }
    specials = {names[id]: {"id": names[id], "ids": [id], "tokens": [names[id]]} for id in used}
    return {"type": "TemplateProcessing", **rows, "special_tokens": specials}


def _item(item: int | str, type_id: int, names: dict[int, str]) -> dict[str, Any]:
    if isinstance(item, str):
        return {"Sequence": {"id": item, "type_id": type_id}}
    return {"SpecialToken": {"id": names[item], "type_id": type_id}}
