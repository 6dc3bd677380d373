"""Decoders in tokenizer.json: steps, and the ways to decode that are quicker and mean the same, both ways."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..byte_alphabet import to_alphabet
from ..errors import SubwordValueError
from ..spec import (
    BPE,
    BYTE,
    Decode,
    DecodeSentencePiece,
    DecodeSteps,
    DecodeWordPiece,
    Decoding,
    ExtraToken,
    Model,
    ScoreBPE,
    Unigram,
)
from .json_node import Node, steps_of, unsupported
from .tokenizer_json_normalizers import read_pattern
from .tokenizer_json_splits import read_metaspace

Steps = tuple[tuple[str, ...], ...]


def read_decoder(node: Node, model: Model, extra: Iterable[ExtraToken]) -> Decoding:
    """How the model's tokens decode."""
    steps: list[tuple[str, ...]] = []
    for step in steps_of(node, "decoders"):
        read = _READ.get(step["type"].value)
        if read is None:
            raise unsupported(step, f"the decoders are {', '.join(_READ)} and a Sequence of these")
        steps.append(read(step))
    return quicker(tuple(steps) if node.value is not None else (("spaces",),), model, list(extra))


def quicker(steps: Steps, model: Model, extra: list[ExtraToken]) -> Decoding:
    """A way to decode that is not by steps, where there is one; else by steps."""
    by_bytes = isinstance(model, BPE) and model.unit == "byte"
    if len(steps) == 1 and steps[0][0] == "word-piece" and steps[0][1] and not by_bytes:
        return DecodeWordPiece(steps[0][1], steps[0][2] == "true")
    for decode, own in _ways(model):
        if steps == own and not _differs(decode, model, extra):
            return decode
    return DecodeSteps((("spell-bytes",), *steps) if by_bytes else steps)


def _ways(model: Model) -> Iterable[tuple[Decoding, Steps]]:
    """Ways to decode tokens of a model, and the steps that they stand for."""
    if isinstance(model, BPE) and model.unit == "byte":
        return [(Decode(model.end_of_word) if model.end_of_word else Decode(), (("byte-level",),))]
    ways: list[tuple[Decoding, Steps]] = [(DecodeWordPiece(prefix="", cleanup=False), (("spaces",),))]
    if isinstance(model, BPE) and model.end_of_word:
        ways.append((Decode(trim=True), (("end-of-word", model.end_of_word),)))
    else:
        ways += [(Decode(), steps) for steps in ((), (("fuse",),), (("word-piece", "", "false"),))]
    if isinstance(model, (Unigram, ScoreBPE)):
        unk = model.vocab.piece_of(model.unk)
        text = "" if unk is None else unk.decode(errors="replace")
        ways += [(DecodeSentencePiece(strip, text), own) for strip, own in _SENTENCEPIECE.items()]  # type: ignore[arg-type]
    return ways


_BYTES = (("replace", "▁", " "), ("byte-fallback",), ("fuse",))
_SENTENCEPIECE: dict[str, Steps] = {
    "token": (("metaspace", "▁", "true"),),
    "none": _BYTES,
    "one": (*_BYTES, ("strip", " ", "1", "0")),
}


def _differs(decode: Decoding, model: Model, extra: list[ExtraToken]) -> bool:
    """Whether steps would change tokens that the quicker way leaves as they are."""
    if isinstance(decode, DecodeSentencePiece):
        if any("▁" in token.content or token.content.startswith(" ") for token in extra):
            return True
        is_byte = re.compile("<0x[0-9a-fA-F+][0-9a-fA-F]>")
        kinds = model.kinds if isinstance(model, (Unigram, ScoreBPE)) else np.zeros(0)
        has_bytes = bool(np.any(kinds == BYTE))
        if any(is_byte.fullmatch(token.content) for token in extra):
            return True
        if decode.strip == "token":
            return has_bytes  # which stay as they are spelled
        text = model.vocab.pieces.data
        return not has_bytes and b"<0x" in text and bool(is_byte.search(text.decode(errors="replace")))
    if isinstance(decode, Decode) and decode.trim and isinstance(model, BPE):
        return model.has_inner_markers() or any(model.end_of_word in token.content for token in extra)
    if isinstance(decode, Decode) and isinstance(model, BPE) and model.end_of_word:
        return to_alphabet(model.end_of_word.encode()) != model.end_of_word
    return False


def _read_replace(step: Node) -> tuple[str, ...]:
    kind, old = read_pattern(step["pattern"])
    return "replace" if kind == "string" else "replace-regex", old, step["content"].text()


def _read_strip(step: Node) -> tuple[str, ...]:
    if len(step["content"].text()) != 1:
        raise step["content"].expected("one character")
    counts = (str(step[name].number(0, 2**31 - 1)) for name in ("start", "stop"))
    return "strip", step["content"].text(), *counts


def _read_word_piece(step: Node) -> tuple[str, ...]:
    return "word-piece", step.get("prefix", "##").text(), _shown(step.get("cleanup", True).flag())


def _read_metaspace(step: Node) -> tuple[str, ...]:
    mark, prepend, _ = read_metaspace(step)
    return "metaspace", mark, _shown(prepend != "never")


def _read_ctc(step: Node) -> tuple[str, ...]:
    pad, delimiter = step.get("pad_token", "<pad>").text(), step.get("word_delimiter_token", "|").text()
    return "ctc", pad, delimiter, _shown(step.get("cleanup", True).flag())


def _shown(value: bool) -> str:
    return str(value).lower()


_READ: dict[Any, Callable[[Node], tuple[str, ...]]] = {
    "BPEDecoder": lambda step: ("end-of-word", step.get("suffix", "</w>").text()),
    "ByteFallback": lambda _: ("byte-fallback",),
    "ByteLevel": lambda _: ("byte-level",),
    "CTC": _read_ctc,
    "Fuse": lambda _: ("fuse",),
    "Metaspace": _read_metaspace,
    "Replace": _read_replace,
    "Strip": _read_strip,
    "WordPiece": _read_word_piece,
}

# ======================== writing ========================


def write_decoder(decode: Decoding, model: Model) -> dict[str, Any] | None:
    """Raises SubwordValueError with what cannot be held."""
    return _joined(_steps_of(decode, model))


def _steps_of(decode: Decoding, model: Model) -> Steps:
    by_bytes = isinstance(model, BPE) and model.unit == "byte"
    if isinstance(decode, DecodeSteps):
        spells = decode.steps[:1] == (("spell-bytes",),)
        if spells != by_bytes:
            raise SubwordValueError(f"the way to decode {decode!r}, for a model of another kind")
        return decode.steps[int(spells) :]
    if isinstance(decode, DecodeWordPiece) and decode.prefix and not by_bytes:
        return (("word-piece", decode.prefix, _shown(decode.cleanup)),)
    for way, steps in _ways(model):
        plain = way == Decode() and isinstance(decode, Decode) and not (isinstance(model, BPE) and model.end_of_word)
        if way == decode or plain:
            return (("word-piece", "", "false"),) if plain and not by_bytes else steps
    raise SubwordValueError(f"a {type(model).__name__} with {decode!r}")


def _joined(steps: Steps) -> dict[str, Any] | None:
    if steps == (("spaces",),):
        return None
    written = [_written(*step) for step in steps]
    return written[0] if len(written) == 1 else {"type": "Sequence", "decoders": written}


def _written(name: str, *settings: str) -> dict[str, Any]:
    match (name, *settings):
        case ("replace", old, new):
            return {"type": "Replace", "pattern": {"String": old}, "content": new}
        case ("replace-regex", old, new):
            return {"type": "Replace", "pattern": {"Regex": old}, "content": new}
        case ("strip", content, start, stop):
            return {"type": "Strip", "content": content, "start": int(start), "stop": int(stop)}
        case ("byte-level",):
            return {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
        case ("word-piece", prefix, cleanup):
            return {"type": "WordPiece", "prefix": prefix, "cleanup": cleanup == "true"}
        case ("metaspace", mark, strips):
            scheme = "always" if strips == "true" else "never"
            return {"type": "Metaspace", "replacement": mark, "prepend_scheme": scheme, "split": True}
        case ("ctc", pad, delimiter, cleanup):
            return {"type": "CTC", "pad_token": pad, "word_delimiter_token": delimiter, "cleanup": cleanup == "true"}
        case ("end-of-word", suffix):
            return {"type": "BPEDecoder", "suffix": suffix}
        case ("fuse",):
            return {"type": "Fuse"}
        case ("byte-fallback",):
            return {"type": "ByteFallback"}
    raise SubwordValueError(f"the step of decoding {name!r}")
