"""SentencePiece's `.model` files: a message of `sentencepiece_model.proto` (`sentencepiece_model.py` has its fields).

The pieces are the vocabulary, each at the place of its id, with a score and a type. Control pieces become special
tokens, which no text spells unless a call allows it; the unknown piece and the bytes of byte fallback are entries that
text does not spell.
"""

from __future__ import annotations

import base64
import binascii
from collections import Counter
from typing import Any

import numpy as np

from ..errors import FormatError
from ..spec import (
    BYTE,
    NORMAL,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    Characters,
    DecodeSentencePiece,
    ExtraToken,
    MatchTokens,
    ScoreBPE,
    Scored,
    SentencePiece,
    Spec,
    Template,
    Unigram,
    Vocab,
    Words,
)
from . import sentencepiece_model as proto
from .bare import refuse
from .wire import Message

KIND = "a SentencePiece model"

PARTS = {
    "pieces": "pieces, with their scores and types",
    "ids": "by the place of a piece",
    "merges": None,
    "pattern": None,
    "normalization": "normalizer_spec",
    "extra tokens": "pieces of the type CONTROL",
    "template": None,
    "roles": "trainer_spec: unk_piece, bos_piece, eos_piece, pad_piece",
    "notes": "trainer_spec",
}
LIMITS = (
    "split patterns, added tokens, ids with holes; models other than Unigram, ScoreBPE, Words and Characters in 32 bits"
)

_KINDS = {
    proto.NORMAL: NORMAL,
    proto.USER_DEFINED: USER_DEFINED,
    proto.UNUSED: UNUSED,
    proto.BYTE: BYTE,
    proto.UNKNOWN: UNKNOWN,
}
_MODELS: dict[int, Any] = {
    proto.UNIGRAM: Unigram,
    proto.BPE: ScoreBPE,
    proto.WORD: Words,
    proto.CHAR: Characters,
}
_TYPES = {kind: type for type, kind in _KINDS.items()}


def looks_like(data: bytes) -> bool:
    """It starts with a piece: a message that starts with its text and goes on with its score or kind, or ends. A text
    may start with empty lines, which look like the start of that."""
    length, at = _length(data, 1)
    size, begin = _length(data, at + 1)
    if data[:1] != b"\x0a" or data[at : at + 1] != b"\x0a" or begin + size > at + length:
        return False
    return begin + size == at + length or data[begin + size : begin + size + 1] in (b"\x15", b"\x18", b"")


def _length(data: bytes, at: int) -> tuple[int, int]:
    """A varint of up to three bytes, and where it ends."""
    end = next((i for i, byte in enumerate(data[at : at + 3], at) if byte < 128), at + 2) + 1
    return sum((byte & 127) << 7 * i for i, byte in enumerate(data[at:end])), end


def read(data: bytes, source: str) -> Spec:
    """The spec that a file holds.

    Raises:
        FormatError: the file is damaged, or its kind of model is not supported.
    """
    try:
        return spec_of(proto.read(data))
    except FormatError as error:
        raise FormatError(f"{source}: {error}") from None


def spec_of(model: Message) -> Spec:
    trainer, normalizer = model.trainer_spec, model.normalizer_spec
    back = model.denormalizer_spec
    if back.precompiled_charsmap and (
        back.add_dummy_prefix or back.remove_extra_whitespaces or back.escape_whitespaces
    ):
        raise FormatError("what the model does to the spaces of decoded text (denormalizer_spec) is not supported")
    rows = [(id, piece) for id, piece in enumerate(model.pieces) if piece.type != proto.CONTROL]
    controls = [(id, piece.piece) for id, piece in enumerate(model.pieces) if piece.type == proto.CONTROL]
    spelled = [piece.piece for _, piece in rows]
    if len(set(spelled)) != len(spelled):
        twice, _ = Counter(spelled).most_common(1)[0]
        raise FormatError(f"{twice!r} is a piece and also the spelling of a byte or of the unknown piece")
    stage = SentencePiece(
        base64.b64encode(normalizer.precompiled_charsmap).decode(),
        normalizer.add_dummy_prefix,
        normalizer.remove_extra_whitespaces,
        normalizer.escape_whitespaces,
        trainer.treat_whitespace_as_suffix,
    )
    unk = next(id for id, piece in rows if piece.type == proto.UNKNOWN)
    strip = "all" if normalizer.remove_extra_whitespaces else "one" if normalizer.add_dummy_prefix else "none"
    ids = {text: id for id, text in controls}
    roles = {
        role: ids[text]
        for role, text in (("bos", trainer.bos_piece), ("eos", trainer.eos_piece), ("pad", trainer.pad_piece))
        if text in ids
    }
    return Spec(
        stages=(*([MatchTokens()] if controls else []), stage),
        model=_MODELS[trainer.model_type](
            vocab=Vocab.of((piece.piece.encode(), id) for id, piece in rows),
            scores=np.array([piece.score for _, piece in rows], dtype=np.float64),
            unk=unk,
            # With byte fallback SentencePiece does not take a lone NUL from text, but its byte.
            kinds=np.array(
                [UNUSED if trainer.byte_fallback and piece.piece == "\0" else _KINDS[piece.type] for _, piece in rows],
                dtype=np.uint8,
            ),
            precision="float32",
        ),
        extra=tuple(ExtraToken(id, text) for id, text in controls),
        decode=DecodeSentencePiece(
            strip,  # type: ignore[arg-type]
            trainer.unk_surface,
            base64.b64encode(back.precompiled_charsmap).decode(),
        ),
        roles={"unk": unk, **roles},
        notes={"sentencepiece": _plain(trainer), **({"normalizer": normalizer.name} if normalizer.name else {})},
    )


def _plain(message: Message) -> dict[str, Any]:
    """What a message says, as JSON can hold it."""
    return {name: value for name, value in message.values.items() if not isinstance(value, (bytes, Message))}


def write(spec: Spec) -> bytes:
    """A model file.

    Raises:
        SubwordValueError: the format cannot hold the tokenizer.
    """
    model, stage = spec.model, spec.stages[-1] if spec.stages else None
    if not isinstance(model, Scored):
        refuse(KIND, f"a {type(model).__name__}")
    if not isinstance(stage, SentencePiece) or any(not isinstance(other, MatchTokens) for other in spec.stages[:-1]):
        refuse(KIND, "stages other than a SentencePiece stage")
    if not isinstance(spec.decode, DecodeSentencePiece) or spec.template != Template():
        refuse(KIND, "a template, or another way to decode")
    if model.precision != "float32" or np.any(model.scores != model.scores.astype(np.float32)):
        refuse(KIND, "scores that are added up in 64 bits")
    rows: dict[int, tuple[str, float, int]] = {}
    entries = zip(model.vocab.items(), model.scores.tolist(), model.kinds.tolist(), strict=True)
    for (piece, id), score, kind in entries:
        rows[id] = (_text(piece), score, _TYPES[kind])
    for token in spec.extra:
        if token.kind != "special" or token.single_word or token.lstrip or token.rstrip or token.normalized:
            refuse(KIND, f"the {token.kind} token {token.content!r} as it is")
        rows[token.id] = (token.content, 0.0, proto.CONTROL)
    if sorted(rows) != list(range(len(rows))):
        refuse(KIND, "ids with holes")
    pieces = []
    for id in range(len(rows)):
        text, score, kind = rows[id]
        values: dict[str, Any] = {"piece": text, "score": score}
        pieces.append(Message(proto.PIECE, values | ({} if kind == proto.NORMAL else {"type": kind})))
    known = {own.name for own in proto.TRAINER.values()}
    trained = {name: value for name, value in dict(spec.notes.get("sentencepiece", {})).items() if name in known}
    trainer = Message(proto.TRAINER, trained)
    trainer.values["model_type"] = next(number for number, kind in _MODELS.items() if kind is type(model))
    trainer.values["vocab_size"] = len(rows)
    trainer.values["byte_fallback"] = bool(np.any(model.kinds == BYTE))
    trainer.values["treat_whitespace_as_suffix"] = stage.treat_whitespace_as_suffix
    trainer.values["unk_surface"] = spec.decode.unk_surface
    contents = {id: text for id, (text, _, _) in rows.items()}
    for role in ("unk", "bos", "eos", "pad"):
        id = spec.roles.get(role, -1)
        trainer.values[f"{role}_id"] = id
        if id in contents:
            trainer.values[f"{role}_piece"] = contents[id]
    values = {
        "name": str(spec.notes.get("normalizer", "")),
        "precompiled_charsmap": _decoded(stage.rules),
        "add_dummy_prefix": stage.add_dummy_prefix,
        "remove_extra_whitespaces": stage.remove_extra_whitespaces,
        "escape_whitespaces": stage.escape_whitespaces,
    }
    strip = "all" if stage.remove_extra_whitespaces else "one" if stage.add_dummy_prefix else "none"
    if strip != spec.decode.strip:
        refuse(KIND, "spaces at the start that are stripped otherwise than they are added")
    parts = {"pieces": pieces, "trainer_spec": trainer, "normalizer_spec": Message(proto.NORMALIZER, values)}
    if spec.decode.rules:
        spaces = dict.fromkeys(("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces"), False)
        back = {"precompiled_charsmap": _decoded(spec.decode.rules), **spaces}
        parts["denormalizer_spec"] = Message(proto.NORMALIZER, back)
    return proto.write(Message(proto.MODEL, parts))


def _decoded(rules: str) -> bytes:
    try:
        return base64.b64decode(rules, validate=True)
    except binascii.Error:
        refuse(KIND, "normalization rules that are not in base64")


def _text(piece: bytes) -> str:
    try:
        return piece.decode()
    except UnicodeDecodeError:
        refuse(KIND, f"the entry {piece!r}, which is not UTF-8")
