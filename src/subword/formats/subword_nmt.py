"""The codes of subword-nmt: merges over characters, as its `learn-bpe` writes them and its `apply-bpe` reads them.

    codes      = "#version: 0.2\\n" line*          line = token " " token "\\n", what merges first stands first
    vocabulary = (token " " count "\\n")*          of `get-vocab`; a token that does not end a word has "@@" behind it

A token that ends a word has `</w>` behind it. Text is cut at spaces and line ends. A merge that stands twice counts
once.

The codes have no ids. They are defined here: `<unk>`, for characters that the codes do not know, has 0; then come the
characters of the codes by code point, each within a word and at its end; then what the merges make, in their order.
With a vocabulary, its tokens have the ids of their lines, and the others follow. (subword-nmt's own use of such a
file, to take back merges whose tokens are not in it, is another way to encode, and not done here.)
"""

from __future__ import annotations

import re
from typing import NoReturn

import numpy as np

from ..errors import FormatError, SubwordValueError, warn
from ..spec import BPE, Decode, Spec, Split, Template, Vocab
from .json_node import shown

MARKER = "</w>"
UNK = "<unk>"
JOINED = "@@"

_VERSION = "#version: 0.2"

PARTS = {
    "pieces": "the tokens of the lines and what they make; characters that no line has are unknown",
    "ids": None,
    "merges": "a pair of tokens a line, the first merges first",
    "pattern": "none is said: text is cut at spaces and line ends (spaces)",
    "normalization": "none is said: there is none",
    "extra tokens": None,
    "template": None,
    "roles": None,
    "notes": None,
}
LIMITS = "anything but characters with </w> at the end of a word; ids, which subword gives by the order of the tokens"


def looks_like(data: bytes) -> bool:
    """Whether it is such a file. Files of merges over bytes start alike, but have no token that ends a word."""
    return data.startswith(b"#version:") and re.search(rb"</w>\r?(\n|\Z)", data) is not None


# ======================== reading ========================


def read(data: bytes, source: str, vocabulary: bytes | None = None) -> Spec:
    """The spec that codes mean; with a `vocabulary`, the bytes of the file of `get-vocab`, by its ids.

    Raises:
        FormatError: the file is damaged, or of version 0.1.
    """
    first, *lines = _text(data, source).rstrip("\n").split("\n")
    if first.rstrip("\r ") != _VERSION:
        raise FormatError(f"{source}: the first line is {shown(first)}; subword reads {_VERSION!r}, learn it again")
    pairs: dict[tuple[str, str], None] = {}
    for number, line in enumerate(lines, 2):
        pair = line.strip("\r\n ").split(" ")
        if len(pair) != 2 or not all(_is_token(token) for token in pair) or pair[0].endswith(MARKER):
            raise FormatError(f"{source}, line {number}: expected two tokens, found {shown(line)}")
        if "".join(pair).endswith(MARKER) and not pair[1].endswith(MARKER):
            raise FormatError(
                f"{source}, line {number}: {shown(line)} makes a token end in {MARKER!r} that ends no word"
            )
        pairs.setdefault((pair[0], pair[1]))
    listed = [] if vocabulary is None else _listed(_text(vocabulary, f"{source}, vocabulary"), source)
    try:
        return _spec(list(pairs), listed)
    except SubwordValueError as error:
        raise FormatError(f"{source}: {error}") from None


def _text(data: bytes, source: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"{source}: not UTF-8 at byte {error.start}") from None


def _is_token(token: str) -> bool:
    """Whether a piece can hold it: it is not empty, and the marker stands at its end if anywhere."""
    stem = token.removesuffix(MARKER)
    return bool(stem) and MARKER not in stem and not re.search("[ \r\n]", stem)


def _listed(text: str, source: str) -> list[str]:
    """The tokens of a vocabulary, as the codes spell them."""
    tokens = []
    for number, line in enumerate(text.rstrip("\n").split("\n"), 1):
        row = re.fullmatch(r"([^ ]+) ([0-9]+)", line.strip("\r\n "))
        if row is None:
            raise FormatError(f"{source}, vocabulary, line {number}: expected a token and a count, found {shown(line)}")
        tokens.append(row[1].removesuffix(JOINED) if row[1].endswith(JOINED) else row[1] + MARKER)
    return tokens


def _spec(pairs: list[tuple[str, str]], listed: list[str] | None = None) -> Spec:
    made = {left + right for left, right in pairs}
    parts = {part for pair in pairs for part in pair}
    for part in sorted(parts - made):
        if len(part.removesuffix(MARKER)) > 1:
            raise SubwordValueError(f"a merge joins {part!r}, which no merge makes; is a part of the file missing?")
    if UNK in made:
        raise SubwordValueError(f"a merge makes {UNK!r}, which is the name of the unknown token")
    characters = sorted({char for part in parts for char in part.removesuffix(MARKER)})
    alphabet = [char + end for char in characters for end in ("", MARKER)]
    tokens = dict.fromkeys([*(listed or ()), UNK, *alphabet, *(left + right for left, right in pairs)])
    ids = {token: id for id, token in enumerate(tokens)}
    return Spec(
        stages=(Split("spaces"),),
        model=BPE(
            Vocab.of((token.encode(), id) for token, id in ids.items()),
            np.array([(ids[left], ids[right]) for left, right in pairs], dtype=np.uint32).reshape(-1, 2),
            unit="character",
            end_of_word=MARKER,
            unk=ids[UNK],
        ),
        decode=Decode(trim=True),
    )


# ======================== writing ========================


def write(spec: Spec) -> bytes:
    """The codes by which subword-nmt cuts words as `spec` does; the same spec gives the same bytes.

    Warns where the ids of `spec` are not those that `read` defines, as they are not in the file.

    Raises:
        SubwordValueError: subword-nmt would not cut text so; the message names what differs.
    """
    model = spec.model
    if not isinstance(model, BPE) or model.unit != "character" or model.end_of_word != MARKER or model.ignore_merges:
        _refuse(f"a model other than of characters with {MARKER!r} at the end of a word and merges for every piece")
    if spec.stages != (Split("spaces"),):
        _refuse(f"the stages {', '.join(map(repr, spec.stages))}: it has the split pattern 'spaces' alone")
    if spec.extra or spec.template != Template():
        _refuse("extra tokens or a template")
    names: dict[int, str] = {}
    for piece, id in model.vocab.items():
        names[id] = piece.decode(errors="replace")
        if names[id].encode() != piece or not _is_token(names[id]):
            _refuse(f"the token {piece!r} (id {id})")
    pairs = [(names[left], names[right]) for left, right in model.merges.tolist()]
    if list(model.vocab.items()) != list(_spec(pairs).model.vocab.items()):
        text = "subword-nmt's codes hold no ids: read from them, this tokenizer will have others; .subword keeps them"
        warn(text)
    return "".join([_VERSION + "\n", *(f"{left} {right}\n" for left, right in pairs)]).encode()


def _refuse(what: str) -> NoReturn:
    raise SubwordValueError(f"subword-nmt's codes cannot hold {what}; save as .subword instead")
