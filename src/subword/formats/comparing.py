"""Do two tokenizers mean the same? Asked of a file before it is written, and of any two tokenizers.

Compared: the kind of model; the bytes of every id; the extra tokens; the template; how ids decode; and, on texts, the
ids: of ordinary text, with all special tokens allowed, with each one alone allowed, and with those that
`add_special_tokens` adds; and what these ids decode to. Not compared: roles, notes and chat
templates, which change no id.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..engine import text_bytes
from ..errors import SubwordValueError
from ..spec import BPE, Decode, Spec
from ..tokenizer import Text, Tokenizer
from .converting import stages_that_rewrite
from .probes import probe_texts

NOT_COMPARED = ("roles", "notes", "chat")


class Difference(NamedTuple):
    """Where two tokenizers do not mean the same.

    Attributes:
        what: what was compared.
        text: the text on which they differ; None where they differ on something else.
        one, other: what they give: lists of ids, or something that says it.
        near: the part of the text in which the ids begin to differ.
    """

    what: str
    text: bytes | None
    one: Any
    other: Any
    near: bytes = b""

    def __str__(self) -> str:
        if self.text is None:
            return f"{self.what}: {self.one} and {self.other}"
        at = _first(self.one, self.other)
        where = f"the text {self.near!r}"
        if len(self.near) < len(self.text):
            where += f" (in one of {len(self.text):,} bytes, from token {at:,} on)"
        return f"{self.what}: {where} gives {_window(self.one, at)} and {_window(self.other, at)}"


class Comparison(NamedTuple):
    """What `compare` found: the first difference, or None; on how many texts; and what changed without an effect."""

    difference: Difference | None
    texts: int
    changed: tuple[str, ...]


class DifferenceError(SubwordValueError):
    """A file that would not mean the same as what it was made from. `difference` says where."""

    def __init__(self, message: str, difference: Difference) -> None:
        super().__init__(message)
        self.difference = difference


def compare(one: Tokenizer, other: Tokenizer, texts: Iterable[Text] = ()) -> Comparison:
    """Whether two tokenizers mean the same: on every entry of the first, on texts meant to hurt, and on `texts`.

    >>> compare(tok, subword.load("tokenizer.json")).difference is None     # doctest: +SKIP
    True

    Raises:
        SubwordValueError: `texts` is one text, not several.
    """
    if isinstance(texts, (str, bytes)):
        raise SubwordValueError("texts must be several texts, not one: put it into a list")
    for facts in (_models, _tokens, _extra, _templates, _decodings):
        difference = facts(one.spec, other.spec)
        if difference is not None:
            return Comparison(difference, 0, ())
    count = 0
    for some in (one.spec.model.vocab.pieces, probe_texts(one.spec), map(text_bytes, texts)):
        for batch in _batches(some):
            difference = _on_texts(one, other, batch)
            if difference is not None:
                return Comparison(difference, count, ())
            count += len(batch)
    return Comparison(None, count, tuple(_changed(one.spec, other.spec)))


# ======================== what they are ========================


def _tokens(one: Spec, other: Spec) -> Difference | None:
    mine, theirs = (
        {id: piece for piece, id in spec.model.vocab.items()}
        | {token.id: token.content.encode() for token in spec.extra}
        for spec in (one, other)
    )
    return _first_of("the bytes of the id", mine, theirs)


def _extra(one: Spec, other: Spec) -> Difference | None:
    # Where no stage rewrites text, it is all the same before or behind which a token is taken.
    plain = not any(any(stages_that_rewrite(spec.stages)) for spec in (one, other))
    mine, theirs = (
        {token.content: replace(token, normalized=token.normalized and not plain) for token in spec.extra}
        for spec in (one, other)
    )
    return _first_of("the extra token", mine, theirs)


def _templates(one: Spec, other: Spec) -> Difference | None:
    if one.template == other.template:
        return None
    return Difference("the template", None, one.template, other.template)


def _models(one: Spec, other: Spec) -> Difference | None:
    mine, theirs = (type(spec.model).__name__ for spec in (one, other))
    return Difference("the model", None, mine, theirs) if mine != theirs else None


def _decodings(one: Spec, other: Spec) -> Difference | None:
    mine, theirs = ((_marker(spec), spec.decode) for spec in (one, other))
    plain = all(isinstance(spec.decode, Decode) for spec in (one, other))
    if mine == theirs or (plain and not (mine[0] or theirs[0])):
        return None
    return Difference("the marker at the ends of words, and how ids decode", None, mine, theirs)


def _marker(spec: Spec) -> str:
    return spec.model.end_of_word if isinstance(spec.model, BPE) else ""


def _first_of(what: str, mine: dict[Any, Any], theirs: dict[Any, Any]) -> Difference | None:
    if mine == theirs:
        return None
    key = next(key for key in [*mine, *theirs] if mine.get(key) != theirs.get(key))
    return Difference(f"{what} {key!r}", None, mine.get(key), theirs.get(key))


def _changed(one: Spec, other: Spec) -> Iterator[str]:
    """What is not the same and yet gives the same."""
    mine, theirs = one.model, other.model
    if isinstance(mine, BPE) and isinstance(theirs, BPE):
        yield from _merges_changed(mine, theirs)
    if len(mine.vocab) != len(theirs.vocab):
        yield f"{len(theirs.vocab):,} entries in the model, which were {len(mine.vocab):,}; the ids are the same"
    if one.stages != other.stages:
        yield f"the stages are {', '.join(map(repr, other.stages))}"
    for name in NOT_COMPARED:
        was, now = getattr(one, name), getattr(other, name)
        lost = [key for key in was if was[key] != now.get(key)]
        new = [key for key in now if key not in was]
        what = "chat templates" if name == "chat" else name
        if lost:
            yield f"{what} are not kept: {', '.join(lost)}"
        if new:
            yield f"{what} that were not there: {', '.join(new)}"


def _merges_changed(mine: BPE, theirs: BPE) -> Iterator[str]:
    if mine.priority != theirs.priority:
        kinds = {"merges": "a merge list", "rank": "the ranks of its entries"}
        yield f"the model goes by {kinds[theirs.priority]} instead of by {kinds[mine.priority]}, with the same ids"
    elif len(mine.merges) != len(theirs.merges):
        yield f"{len(theirs.merges):,} merges instead of {len(mine.merges):,}"
    if mine.ignore_merges != theirs.ignore_merges:
        yield f"ignore_merges is {theirs.ignore_merges} instead of {mine.ignore_merges}"


# ======================== what they give ========================


def _on_texts(one: Tokenizer, other: Tokenizer, texts: list[bytes]) -> Difference | None:
    ways: list[tuple[str, list[bytes], dict[str, Any]]] = [
        ("ordinary text", texts, {"disallowed_special": ()}),
        ("allowed_special='all'", texts, {"allowed_special": "all"}),
        ("add_special_tokens=True", texts, {"allowed_special": "all", "add_special_tokens": True}),
    ]
    contents = [content.encode() for content in one.special_tokens]
    any_of_them = re.compile(b"|".join(map(re.escape, contents)) or rb"(?!)")
    with_any = [text for text in texts if any_of_them.search(text)]
    for token, content in zip(one.special_tokens, contents, strict=True):
        with_it = [text for text in with_any if content in text]
        if with_it:
            way = {"allowed_special": {token}, "disallowed_special": ()}
            ways.append((f"allowed_special={{{token!r}}}", with_it, way))
    for what, some, arguments in ways:
        difference = _encoded(one, other, what, some, arguments)
        if difference is not None:
            return difference
    return None


def _encoded(
    one: Tokenizer, other: Tokenizer, what: str, texts: list[bytes], arguments: dict[str, Any]
) -> Difference | None:
    mine, theirs = (tok.encode_batch_to_numpy(texts, **arguments) for tok in (one, other))
    if not (np.array_equal(mine.offsets, theirs.offsets) and np.array_equal(mine.ids, theirs.ids)):
        at = next(i for i in range(len(texts)) if not np.array_equal(mine[i], theirs[i]))
        return _ids_differ(one, what, texts[at], mine[at].tolist(), theirs[at].tolist())
    for skip in (False, True):
        datas = [tok.decode_bytes(mine.ids, skip_special_tokens=skip) for tok in (one, other)]
        if datas[0] != datas[1]:
            at = next(
                i for i in range(len(texts)) if len({tok.decode_bytes(mine[i], skip) for tok in (one, other)}) > 1
            )
            spelled = [tok.decode_bytes(mine[at], skip) for tok in (one, other)]
            return Difference(
                f"decoding with skip_special_tokens={skip}, of the ids of {texts[at][:80]!r}", None, *spelled
            )
    return None


def _ids_differ(tok: Tokenizer, what: str, text: bytes, one: list[int], other: list[int]) -> Difference:
    near = text
    if len(text) > 80:
        at = _first(one, other)
        start = len(tok.decode_bytes(one[: max(at - 3, 0)]))
        near = text[start : start + 80] or text[-80:]
    return Difference(what, text, one, other, near)


def _first(one: list[int], other: list[int]) -> int:
    """The first place at which two lists differ."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _window(ids: list[int], at: int) -> str:
    first, last = max(at - 3, 0), at + 9
    return f"[{'… ' * (first > 0)}{', '.join(map(str, ids[first:last]))}{' …' * (len(ids) > last)}]"


def _batches(texts: Iterable[bytes], size: int = 16 << 20) -> Iterator[list[bytes]]:
    """Some thousand texts, or some megabytes of them, at a time."""
    held, batch = 0, list[bytes]()
    for text in texts:
        batch.append(text)
        held += len(text) + 100
        if held >= size:
            yield batch
            held, batch = 0, []
    if batch:
        yield batch
