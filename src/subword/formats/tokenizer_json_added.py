"""Added tokens in tokenizer.json, and which of them are entries of the model, too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ..spec import (
    MAX_ID,
    CleanText,
    ExtraToken,
    Lowercase,
    MatchTokens,
    Normalize,
    PadChinese,
    Precompiled,
    Stage,
    StripAccents,
    StripMarks,
)
from .json_node import Node, shown
from .tokenizer_json_tokens import AnyTokens

FLAGS = ("single_word", "lstrip", "rstrip")


_ROW = ("id", "content", *FLAGS, "normalized", "special")
_ROW_TYPES = [int, str, *[bool] * 5]


def read_added_tokens(node: Node, tokens: AnyTokens, tell: Callable[[str], None]) -> dict[str, ExtraToken]:
    """The added tokens by content, with the ids that tokenizers gives them, which need not be those of the file."""
    rows = [(step, _read_added_token(step)) for step in node.items()]
    owners: dict[int, str] = {}
    added: dict[str, ExtraToken] = {}
    ids = assigned_ids(tokens.id_of, len(tokens), (token.content for _, token in rows))
    for (step, token), id in zip(rows, ids, strict=True):
        if token.content in added:
            raise step["content"].error(f"{shown(token.content)} stands twice in the list")
        if token.id != id:
            tell(
                f"{step['id'].path}: the file says {token.id}, but {shown(token.content)} has the id {id}, as in "
                "tokenizers; list it in model.vocab with the id it should have"
            )
        owner = tokens.token_of(id) or owners.setdefault(id, token.content)
        if owner != token.content:
            raise step["id"].error(f"the id {id} also belongs to {shown(owner)}")
        added[token.content] = token if token.id == id else replace(token, id=id)
    return added


def _read_added_token(step: Node) -> ExtraToken:
    row = step.fields()
    values: list[Any] = [*map(row.get, _ROW)]
    if len(row) == len(_ROW) and [*map(type, values)] == _ROW_TYPES:
        id, content, single_word, lstrip, rstrip, normalized, special = values
        if content.isascii() and content and 0 <= id <= MAX_ID:  # all but a few are such: no need to go one by one
            kind: Any = "special" if special else "added"
            return ExtraToken(id, content, kind, single_word, lstrip, rstrip, normalized)
    special = step.get("special", False).flag()
    content = step["content"].text()
    if not content:
        raise step["content"].error("an added token cannot be empty")
    return ExtraToken(
        id=step["id"].number(0, MAX_ID),
        content=content,
        kind="special" if special else "added",
        normalized=step.get("normalized", not special).flag(),
        **{name: step.get(name, False).flag() for name in FLAGS},
    )


def write_added_token(token: ExtraToken) -> dict[str, Any]:
    return {
        "id": token.id,
        "content": token.content,
        **{name: getattr(token, name) for name in FLAGS},
        "normalized": token.normalized,
        "special": token.kind == "special",
    }


def assigned_ids(id_of: Callable[[str], int | None], count: int, contents: Iterable[str]) -> Iterator[int]:
    """The ids that tokenizers gives added tokens, in their order in the file, whatever ids the file names.

    Args:
        id_of: the id of a token in `model.vocab`.
        count: so many tokens are there.
    """
    last = -1
    for content in contents:
        id = id_of(content)
        id = max(count, last + 1) if id is None else id
        last = max(last, id)
        yield id


def matching(added: Iterable[ExtraToken], normalized: bool) -> tuple[MatchTokens, ...]:
    """The stage that takes tokens from raw or from normalized text, if there are any to take."""
    needed = any(token.normalized == normalized for token in added)
    return (MatchTokens(normalized),) if needed else ()


def comes_to_the_model(token: ExtraToken, piece: bytes, marker: str, stages: Sequence[Stage]) -> bool:
    """Whether some text becomes a piece that is the added token's entry, though the token is not taken from it."""
    if token.single_word or token.content.encode() != piece or (marker and token.content.endswith(marker)):
        return True
    if token.normalized:
        return False
    # What NFC and NFD make of other characters is not ASCII, but for a Kelvin sign, a Greek ; and a Greek accent.
    plain = token.content.isascii() and not set("K;`") & set(token.content)
    forms = ("NFKC", "NFKD") if plain else ("NFC", "NFD", "NFKC", "NFKD")
    if any(isinstance(stage, Lowercase) for stage in stages) and token.content.lower() != token.content:
        return False  # there are no capitals left
    others = (Lowercase, CleanText, PadChinese, StripAccents, StripMarks, Precompiled)
    return any(isinstance(s, others) or (isinstance(s, Normalize) and s.form in forms) for s in stages)


def shared_problem(token: ExtraToken, piece: bytes, merged: bool, whole: bool) -> str | None:
    """What stands against an added token that is an entry of the model too, where that is written.

    `merged`: merges use the entry. `whole`: text comes to the model that `ignore_merges` turns into it.
    """
    if token.content.encode() != piece:
        return f"{shown(token.content)} would have the id of the bytes {piece!r}, which the model spells the same way"
    if token.kind == "special" and (merged or whole) and len(piece) > 1:
        reason = (
            "model.merges use it" if merged else "model.ignore_merges also gives it for text that it is not taken from"
        )
        advice = "set `special` to false" + (", or take those merges out" if merged else "")
        return f"{shown(token.content)} is special, but {reason}, so that ordinary text could give its id; {advice}"
    return None
