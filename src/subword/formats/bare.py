"""What files that hold only a vocabulary leave out: the split pattern and the special tokens.

The caller of `load` says them, or the file is one of `known.py`, told by its SHA-256. Nothing is guessed: a vocabulary
with a wrong pattern gives ids that look right and are not.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from .._core import regex_covers
from ..errors import FormatError, SubwordValueError, warn
from ..patterns import UNICODE, find_pattern, pattern_of
from ..spec import BPE, MAX_ID, ExtraToken, MatchTokens, Packed, Spec, Split, SplitRegex, Stage, Template, Vocab
from . import known
from .files import read_file
from .json_node import shown
from .published import Published

Splitting: TypeAlias = Split | SplitRegex


class LeftOutError(FormatError):
    """A file that leaves out what `load` was not told either. `problem` is the message without what to pass."""

    def __init__(self, message: str, problem: str) -> None:
        super().__init__(message)
        self.problem = problem

    def __reduce__(self) -> Any:
        return type(self), (str(self), self.problem)


@dataclass(frozen=True, slots=True)
class Input:
    """A file on its way into a spec: its bytes, the name that errors call it by, and what the caller says of it.

    `path` is where it was read from; None for bytes that are no file. `others` are files beside it by their names,
    where it is none. `warnings` are those that reading it gave.
    """

    data: bytes
    name: str
    path: str | None = None
    pattern: str | SplitRegex | None = None
    special_tokens: Mapping[str, int] | None = None
    others: Mapping[str, bytes] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    _digest: list[str] = field(default_factory=list, init=False, repr=False)

    @property
    def sha256(self) -> str:
        if not self._digest:
            self._digest.append(hashlib.sha256(self.data).hexdigest())
        return self._digest[0]

    def warn(self, problem: str) -> None:
        self.warnings.append(problem)
        text = f"{self.name}: {problem}"
        warn(text)

    def error(self, problem: str, line: int | None = None) -> FormatError:
        return FormatError(f"{self.name}: {f'line {line}: ' if line is not None else ''}{problem}")

    def beside(self, name: str) -> Input | None:
        """Another file in the same folder, if there is one."""
        if name in self.others:
            return replace(self, data=self.others[name], name=name)
        path = os.path.join(os.path.dirname(self.path), name) if self.path is not None else None
        if path is None or not os.path.exists(path):
            return None
        return replace(self, data=read_file(path), name=path, path=path)


# ======================== reading ========================


class Said(NamedTuple):
    """What a file leaves out, as the caller says it or as it is known. Roles are known only."""

    splitting: Splitting
    special_tokens: dict[str, int]
    roles: dict[str, int]


def what_is_left_out(file: Input, kind: str, *digests: str) -> Said:
    """The split pattern and the special tokens: as the caller says, else as is known of this file.

    Args:
        kind: what the format is called in errors.
        digests: the SHA-256 of each of its files.

    Raises:
        LeftOutError: neither says it; the message names what to pass.
        SubwordValueError: what the caller says cannot be used.
    """
    row = known.by_content(digests)
    pattern, special = file.pattern, file.special_tokens
    if row is not None:
        pattern = row.pattern if pattern is None else pattern
        special = row.special_tokens if special is None else special
    if pattern is None or special is None:
        missing = [name for name, value in (("pattern", pattern), ("special_tokens", special)) if value is None]
        if isinstance(row, Published):
            problem = (
                f"{file.name}: this is {row.name}'s vocabulary, and it depends on the model which special tokens it has"
            )
            raise LeftOutError(f"{problem}; pass special_tokens= to load(): {row.advice}", problem)
        problem = (
            f"{file.name}: {kind} holds neither the split pattern nor the special tokens, and this one (SHA-256 "
            f"{digests[0][:12]}…) is none that subword knows"
        )
        advice = (
            f"pass {' and '.join(f'{name}=' for name in missing)} to load(), as in "
            'pattern="cl100k", special_tokens={"<|endoftext|>": 100257}; special_tokens={} says that there are none'
        )
        raise LeftOutError(f"{problem}; {advice}", problem)
    splitting = pattern if isinstance(pattern, SplitRegex) else Split(find_pattern(pattern).name)
    special = checked_special_tokens(special)
    return Said(splitting, special, known.roles_of(row, special))


def splitting_by(regex: str) -> Splitting:
    """An expression of tiktoken or of minbpe as a stage: a row of `patterns.py`, or an expression of one's own.

    Raises:
        SubwordValueError: it has no linear way, or leaves something out of some text, which both drop, and here only
            rows do.
    """
    row = pattern_of(regex)
    if row is not None:
        return Split(row.name)
    if not regex_covers(regex, "tiktoken", allow_backtracking=False):
        raise SubwordValueError(f"the split pattern {shown(regex)} leaves out some text, which would be lost")
    return SplitRegex(regex)


def checked_special_tokens(special_tokens: Any) -> dict[str, int]:
    """Special tokens to their ids, as an argument gives them.

    Raises:
        SubwordValueError: they cannot be used.
    """
    if not isinstance(special_tokens, Mapping):
        found = type(special_tokens).__name__
        raise SubwordValueError(f"special_tokens must map tokens to their ids, not be a {found}")
    ids: dict[int, str] = {}
    for token, id in special_tokens.items():
        if not isinstance(token, str) or not token or any("\ud800" <= char <= "\udfff" for char in token):
            raise SubwordValueError(f"special_tokens: {shown(token)} is not a string that text can spell")
        if type(id) is not int or not 0 <= id <= MAX_ID:
            raise SubwordValueError(f"special_tokens: {shown(token)} needs an id from 0 to {MAX_ID}, not {shown(id)}")
        if ids.setdefault(id, token) != token:
            raise SubwordValueError(f"special_tokens: {shown(ids[id])} and {shown(token)} have the same id {id}")
    return dict(special_tokens)


def bpe_spec(
    model: BPE,
    splitting: Splitting,
    special_tokens: Mapping[str, int],
    others: Iterable[ExtraToken] = (),
    source: str = "",
    roles: Mapping[str, int] = MappingProxyType({}),
) -> Spec:
    """A spec that splits by `splitting` and takes `special_tokens` from text.

    Raises:
        FormatError: the model lacks a byte, or a special token has the id of something else.
    """
    missing = missing_bytes(model.vocab.pieces)
    if missing:
        raise FormatError(f"{source}: no token for the byte{'s' * (len(missing) > 1)} {shown(missing)}")
    extra = [*others, *(ExtraToken(id, token) for token, id in special_tokens.items())]
    for token in extra:
        taken = model.vocab.piece_of(token.id)
        if taken is not None and taken != token.content.encode():
            raise FormatError(
                f"{source}: the special token {shown(token.content)} cannot have the id {token.id}, which is that of "
                f"{shown(taken)}"
            )
    extra.sort(key=lambda token: token.id)
    stages: tuple[Stage, ...] = (*([MatchTokens()] if special_tokens else []), splitting)
    return Spec(stages, model, tuple(extra), roles=roles)


def missing_bytes(pieces: Packed) -> bytes:
    """The bytes that are no entry of their own."""
    starts = pieces.offsets[:-1][np.diff(pieces.offsets) == 1]
    return bytes(sorted(set(range(256)) - {pieces.data[start] for start in starts.tolist()}))


def entries(vocab: Mapping[bytes, int], file: Input) -> Vocab:
    """The vocabulary, without the empty token that Whisper's files have.

    No text can give it, so the ids of text do not depend on it; its id becomes a hole, and a warning says so.
    """
    if b"" in vocab:
        warn_of_empty(vocab[b""], file)
    return Vocab.of((piece, id) for piece, id in vocab.items() if piece)


def warn_of_empty(id: int, file: Input) -> None:
    file.warn(f"the token with the id {id} is empty; no text gives it, and here it has no id")


# ======================== writing ========================


def refuse(kind: str, what: str) -> NoReturn:
    raise SubwordValueError(f"{kind} cannot hold {what}; save as .subword instead")


def split_pattern(spec: Spec, kind: str) -> Splitting:
    """The pattern of a spec that only splits text and takes special tokens from it.

    Raises:
        SubwordValueError: it does more, which neither `kind` nor the arguments of `load` could say.
    """
    others = [stage for stage in spec.stages if stage != MatchTokens()]
    if len(others) != 1 or not isinstance(others[0], (Split, SplitRegex)) or others[0].unicode != UNICODE:
        refuse(kind, f"the stages {', '.join(map(repr, spec.stages))}; only one split")
    if spec.template != Template():
        refuse(kind, f"the template {spec.template.single!r}")
    if not isinstance(spec.model, BPE):
        refuse(kind, f"a {type(spec.model).__name__}")
    if spec.model.unit != "byte" or spec.model.end_of_word:
        refuse(kind, f"a model over {spec.model.unit}s with the end-of-word marker {spec.model.end_of_word!r}")
    for token in spec.extra:
        if token.kind != "special":
            refuse(kind, f"the token {token.content!r} (id {token.id}), which is not special but {token.kind}")
        if token.single_word or token.lstrip or token.rstrip or token.normalized:
            refuse(kind, f"the flags of the token {token.content!r} (id {token.id})")
        if MatchTokens() not in spec.stages:
            refuse(kind, f"the token {token.content!r} (id {token.id}) that no stage takes from text")
    return others[0]


def special_tokens_of(spec: Spec) -> dict[str, int]:
    return {token.content: token.id for token in sorted(spec.extra, key=lambda token: token.id)}


def warn_of_roles(spec: Spec, kind: str, *digests: str) -> None:
    """Say which roles are lost: all but those that `load` knows of the file."""
    kept = known.roles_of(known.by_content(digests), special_tokens_of(spec))
    lost = [name for name, id in spec.roles.items() if kept.get(name) != id]
    if lost:
        text = f"{kind} has no place for the roles {', '.join(lost)}"
        warn(text)


def warn_of_what_is_left_out(spec: Spec, kind: str, *digests: str) -> None:
    """Say what must be passed when the file is loaded, unless `load` knows the file."""
    splitting, special = split_pattern(spec, kind), special_tokens_of(spec)
    row = known.by_content(digests)
    if row is None or (Split(row.pattern), row.special_tokens) != (splitting, special):
        pattern = splitting.pattern if isinstance(splitting, Split) else splitting
        few = dict(list(special.items())[:8])
        text = f"{few!r}" if len(few) == len(special) else f"{few!r} and {len(special) - len(few)} more"
        text = f"{kind} holds neither the split pattern nor the special tokens: load it with pattern={pattern!r}, " + (
            f"special_tokens={text}"
        )
        warn(text)
