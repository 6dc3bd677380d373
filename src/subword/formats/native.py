"""subword's own format: everything a `Spec` holds, readable with `head -2`, and checked to the last bit.

    file     = magic header section* checksum
    magic    = "subword tokenizer " version "\\n"        version: decimal digits; this module reads and writes 1
    header   = one line of JSON (ASCII) "\\n"            {"outline", "roles", "notes", "chat", "sections", "written_by"}
    section  = bytes                                    in the order and with the lengths of header.sections
    checksum = "sha256 " 64 hexadecimal digits "\\n"     of everything before it

`outline` and the sections are what `Spec.outline()` and `Spec.buffers()` give: stages, model settings, extra tokens and
template as JSON; the pieces of the vocabulary end to end, their offsets (64-bit), ids and, of a BPE, merges (32-bit),
all little-endian. `chat`, and `padded` like it, is there only if there is something in it. Nothing follows the
checksum. In a shell: `head -c -72 x.subword | sha256sum; tail -1 x.subword`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection
from dataclasses import asdict

import numpy as np

from .. import _core
from ..errors import FormatError, SubwordError, SubwordValueError
from ..patterns import DIGITS, PATTERNS, SYNTAXES
from ..spec import (
    BPE,
    MODELS,
    Decode,
    DecodeWordPiece,
    LongestMatch,
    ScoreBPE,
    Spec,
    Unigram,
    WordLevel,
    WordPiece,
)
from .json_node import Node, parse, shown

MAGIC = b"subword tokenizer "
VERSION = 1

PARTS = {
    "pieces": "sections pieces (their bytes, end to end) and offsets",
    "ids": "section ids",
    "merges": "section merges, pairs of ids, the first merges first; none where outline.model.priority is rank: "
    "then the entry with the lowest id merges first. What pieces start as: outline.model, unit, end_of_word and unk. A "
    "WordPiece, a WordLevel or a LongestMatch has none",
    "pattern": "outline.stages, Split, by the name of a pattern",
    "normalization": "outline.stages, Normalize, Lowercase and PrefixSpace",
    "extra tokens": "outline.extra, with their kinds and flags; when they are taken: outline.stages, MatchTokens",
    "template": "outline.template",
    "roles": "roles",
    "notes": "notes; chat templates: chat",
}
LIMITS = "nothing: it holds all that a tokenizer of subword is"

_SECTIONS = tuple(dict.fromkeys(name for model in MODELS.values() for name in model.BUFFERS))

_CHECKSUM_BYTES = len("sha256 ") + 64 + len("\n")

# The fields of stages that hold one of a few names. Which Unicode versions there are, the core knows.
_NAMES: dict[str, Collection[str]] = {
    "form": ("NFC", "NFD", "NFKC", "NFKD"),
    "grouping": DIGITS,
    "pattern": PATTERNS,
    "syntax": SYNTAXES,
}


def looks_like(data: bytes) -> bool:
    return data.startswith(MAGIC)


# ======================== writing ========================


def write(spec: Spec) -> bytes:
    """The file that holds `spec`; the same spec gives the same bytes.

    Raises:
        SubwordValueError: the notes hold something that JSON cannot.
    """
    buffers = spec.buffers()
    header = {
        "outline": spec.outline(),
        "roles": dict(spec.roles),
        "notes": dict(spec.notes),
        **({"chat": dict(spec.chat)} if spec.chat else {}),
        **({"padded": dict(spec.padded)} if spec.padded else {}),
        "sections": [[name, len(buffer)] for name, buffer in buffers.items()],
        "written_by": f"subword {_core.__version__}",
    }
    try:
        line = json.dumps(header, ensure_ascii=True, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise SubwordValueError(f"the notes or roles of this tokenizer cannot be saved as JSON: {error}") from None
    body = b"".join([MAGIC, b"%d\n" % VERSION, line, b"\n", *buffers.values()])
    return body + _checksum(body)


def _checksum(body: bytes) -> bytes:
    return b"sha256 " + hashlib.sha256(body).hexdigest().encode() + b"\n"


# ======================== reading ========================


def read(data: bytes, source: str) -> Spec:
    """The spec that a file holds.

    Raises:
        FormatError: the file is damaged, cut off, has something behind its end, or is of a newer version.
    """
    start = _check_version(data, source)
    body = data[:-_CHECKSUM_BYTES]
    end = data.find(b"\n", start)
    if end < 0:
        raise FormatError(f"{source}: cut off in its header line; get the file again")
    whole = data[-_CHECKSUM_BYTES:] == _checksum(body)
    try:
        header = Node(parse(data[start:end], source).value, source, "header")
        sections = _sections(header["sections"], end + 1)
    except FormatError as error:
        raise error if whole else FormatError(f"{source}: the header line is damaged; get the file again") from None
    _check_length(data, sections, source)
    if not whole:
        raise FormatError(f"{source}: the checksum does not match: the file is damaged; get it again")
    buffers = {name: body[first:last] for name, (first, last) in sections.items()}
    return _spec(header, buffers)


def _check_version(data: bytes, source: str) -> int:
    """Where the header starts, if the first line names a version that this module reads."""
    line = re.match(rb"([1-9][0-9]{0,8})\n", data[len(MAGIC) : len(MAGIC) + 12]) if looks_like(data) else None
    if line is None:
        raise FormatError(f"{source}: the first line should be 'subword tokenizer {VERSION}', found {data[:32]!r}")
    if int(line[1]) > VERSION:
        raise FormatError(
            f"{source}: written in version {int(line[1])} of the format; subword {_core.__version__} reads up to "
            f"version {VERSION}: upgrade with `pip install -U subword`"
        )
    return len(MAGIC) + line.end()


def _sections(table: Node, start: int) -> dict[str, tuple[int, int]]:
    """Where each section starts and ends. Only the numbers are looked at; nothing of their size is allocated."""
    sections: dict[str, tuple[int, int]] = {}
    for row in table.items():
        name, size = row.value if isinstance(row.value, list) and len(row.value) == 2 else ("", None)
        if name not in [known for known in _SECTIONS if known not in sections]:
            raise row.expected(f"one of the sections {', '.join(_SECTIONS)}, each once, and its length")
        length = row.child(1, size).number(0, 2**62)
        sections[name] = (start, start + length)
        start += length
    if not sections:
        raise table.expected(f"the sections {', '.join(_SECTIONS)}")
    return sections


def _check_length(data: bytes, sections: dict[str, tuple[int, int]], source: str) -> None:
    stops = {f"section {name!r}": stop for name, (_, stop) in sections.items()}
    stops["checksum"] = length = max(stops.values()) + _CHECKSUM_BYTES
    if len(data) > length:
        raise FormatError(f"{source}: {len(data) - length:,} bytes too many behind the checksum; get the file again")
    for name, stop in stops.items():
        if len(data) < stop:
            raise FormatError(f"{source}: cut off in its {name}, {len(data):,} of {length:,} bytes; get the file again")


def _spec(header: Node, buffers: dict[str, bytes]) -> Spec:
    outline, roles, notes = (header[name].fields() for name in ("outline", "roles", "notes"))
    chat, padded = header.get("chat", {}).fields(), header.get("padded", {}).fields()
    try:
        spec = Spec.from_outline(outline, buffers, roles, notes, chat, padded)
        stray = buffers.keys() - set(spec.model.BUFFERS)
        problem = f"the section {min(stray)!r} belongs to no such model" if stray else _problem(spec)
    except (SubwordError, KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        problem = f"{type(error).__name__}: {error}"
    if problem is not None:
        raise header.error(f"{problem}; whatever wrote this file is at fault")
    return spec


# ======================== checking ========================


def _problem(spec: Spec) -> str | None:
    """What is wrong with a spec that came out of a file with a good checksum, or None."""
    checks = (_stage_problem, _model_problem, _extra_problem, _template_problem, _role_problem)
    return next((problem for check in checks if (problem := check(spec)) is not None), None)


def _stage_problem(spec: Spec) -> str | None:
    for index, stage in enumerate(spec.stages):
        for name, value in asdict(stage).items():
            if name in _NAMES and value not in _NAMES[name]:
                return f"outline.stages[{index}].{name}: {shown(value)} is unknown; a newer subword may know it"
    return None


def _model_problem(spec: Spec) -> str | None:
    model = spec.model
    pieces, ids = model.vocab.pieces, model.vocab.ids
    if len(pieces) != len(ids):
        return f"{len(pieces)} pieces with {len(ids)} ids"
    if np.any(ids[1:] <= ids[:-1]):
        return "the ids of the vocabulary do not rise"
    piece_of = dict(zip(ids.tolist(), pieces, strict=True))
    if len(set(piece_of.values())) != len(piece_of) or b"" in piece_of.values():
        return "the vocabulary holds a piece twice, or an empty one"
    if model.unk is not None and model.unk not in piece_of:
        return f"outline.model.unk: no entry has the id {shown(model.unk)}"
    if isinstance(spec.decode, DecodeWordPiece) and re.search("[\ud800-\udfff]", spec.decode.prefix):
        return f"outline: a lone surrogate in {shown(spec.decode)}"
    return _MODEL_PROBLEMS[type(model)](spec, model, piece_of)


def _bpe_problem(spec: Spec, model: BPE, piece_of: dict[int, bytes]) -> str | None:
    if model.priority not in ("merges", "rank") or model.unit not in ("byte", "character"):
        return f"outline.model: unknown settings {shown(model.priority)}, {shown(model.unit)}"
    shown_end = spec.decode.end_of_word if isinstance(spec.decode, Decode) else ""
    if re.search("[\ud800-\udfff]", model.end_of_word + shown_end):
        return f"outline: a lone surrogate in {shown(model.end_of_word)}, {shown(spec.decode)}"
    spelled = set(piece_of.values())
    for row, (left, right) in enumerate(model.merges.tolist()):
        if left not in piece_of or right not in piece_of or piece_of[left] + piece_of[right] not in spelled:
            return f"merge {row}, of the ids {left} and {right}, joins or makes a token that is not in the vocabulary"
    if len(np.unique(model.merges, axis=0)) != len(model.merges):
        return "a merge stands twice in the list"
    return None


def _word_piece_problem(spec: Spec, model: WordPiece, piece_of: dict[int, bytes]) -> str | None:
    if re.search("[\ud800-\udfff]", model.continuing_subword_prefix):
        return f"outline.model: a lone surrogate in {shown(model.continuing_subword_prefix)}"
    return None


def _scored_problem(spec: Spec, model: Unigram | ScoreBPE, piece_of: dict[int, bytes]) -> str | None:
    if model.precision not in ("float32", "float64"):
        return f"outline.model.precision: {shown(model.precision)} is unknown"
    if not np.all(np.isfinite(model.scores)):
        return "a score is not a finite number"
    return None


_MODEL_PROBLEMS: dict[type, Callable[..., str | None]] = {
    BPE: _bpe_problem,
    WordPiece: _word_piece_problem,
    Unigram: _scored_problem,
    ScoreBPE: _scored_problem,
    WordLevel: lambda spec, model, piece_of: None,
    LongestMatch: lambda spec, model, piece_of: None,
}


def _extra_problem(spec: Spec) -> str | None:
    piece_of = dict(zip(spec.model.vocab.ids.tolist(), spec.model.vocab.pieces, strict=True))
    ids: set[int] = set()
    contents: set[str] = set()
    for index, token in enumerate(spec.extra):
        where = f"outline.extra[{index}]: {shown(token.content)} (id {shown(token.id)})"
        if token.kind not in ("special", "added", "unmatchable"):
            return f"{where} is of the unknown kind {shown(token.kind)}; a newer subword may know it"
        if token.id in ids or token.content in contents:
            return f"{where} repeats a content or an id"
        if piece_of.get(token.id, token.content.encode()) != token.content.encode():
            return f"{where} has the id of {piece_of[token.id]!r} in the vocabulary"
        ids.add(token.id)
        contents.add(token.content)
    return None


def _template_problem(spec: Spec) -> str | None:
    for name in ("single", "pair"):
        for item in getattr(spec.template, name):
            if not isinstance(item, str) and not _is_known(item, spec):
                return f"outline.template.{name}: no token has the id {shown(item)}"
    return None


def _role_problem(spec: Spec) -> str | None:
    strays = (f"{name}: no token has the id {shown(id)}" for name, id in spec.roles.items() if not _is_known(id, spec))
    return next((f"roles.{stray}" for stray in strays), None)


def _is_known(id: int, spec: Spec) -> bool:
    return bool(np.any(spec.model.vocab.ids == id)) or any(token.id == id for token in spec.extra)
