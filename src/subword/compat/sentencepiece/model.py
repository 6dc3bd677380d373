"""A model file, compiled: what the processor asks of it."""

from __future__ import annotations

import base64
import math
import random
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ... import _core
from ...engine import compile_spec
from ...errors import FormatError
from ...formats import sentencepiece as files
from ...formats import sentencepiece_model as proto
from ...formats.wire import Message
from ...spec import ScoreBPE, SentencePiece, Unigram
from ...tokenizer import Tokenizer
from .errors import ModelError, RefusedError
from .sentencepiece_pb2 import SentencePieceText, text_of

MARK = "▁".encode()
REPLACEMENT = "\ufffd".encode()

Tokens: TypeAlias = "list[tuple[int, int]]"
"""Ids, each with the byte of the normalized text at which it ends."""

randomness = random.Random()
"""Where samples come from; `SetRandomGeneratorSeed` sets it."""


class Normalized(NamedTuple):
    """A text as the model sees it, and for each of its bytes where in the original it comes from."""

    original: bytes
    text: bytes
    starts: npt.NDArray[np.uint64]


class Model:
    """A model: its pieces, and how to get to them and back."""

    def __init__(self, data: bytes | Message) -> None:
        """Raises:
        ModelError: the bytes are no such model, or of a kind that is not supported.
        """
        try:
            message = proto.read(data) if isinstance(data, bytes) else data
            spec = files.spec_of(message)
            self.tokenizer = Tokenizer(spec)
        except FormatError as error:
            raise ModelError(str(error)) from None
        self.message = message
        trainer = message.trainer_spec
        self.pieces: list[str] = [piece.piece for piece in message.pieces]
        self.types: list[int] = [piece.type for piece in message.pieces]
        self.scores: list[float] = [piece.score for piece in message.pieces]
        self.bytes = [piece.encode() for piece in self.pieces]
        # A reserved piece hides one of the same spelling that text can give.
        rows = sorted(enumerate(self.bytes), key=lambda row: self.types[row[0]] not in _TAKEN_FROM_TEXT)
        self.ids = {piece: id for id, piece in rows}
        self.unk = self._role(trainer.unk_piece or "<unk>", proto.UNKNOWN)
        self.bos = self._role(trainer.bos_piece or "<s>", proto.CONTROL)
        self.eos = self._role(trainer.eos_piece or "</s>", proto.CONTROL)
        self.pad = self._role(trainer.pad_piece or "<pad>", proto.CONTROL)
        self.unknown = next(id for id, type in enumerate(self.types) if type == proto.UNKNOWN)
        self.byte_of = {id: int(self.pieces[id][3:5], 16) for id, type in enumerate(self.types) if type == proto.BYTE}
        stage = next(stage for stage in spec.stages if isinstance(stage, SentencePiece))
        protected = [piece for piece, type in zip(self.pieces, self.types, strict=True) if type == proto.USER_DEFINED]
        flags = (
            stage.add_dummy_prefix,
            stage.remove_extra_whitespaces,
            stage.escape_whitespaces,
            stage.treat_whitespace_as_suffix,
        )
        self.normalizer = _core.SentencePieceNormalizer(stage.rules, flags, protected)
        back = message.denormalizer_spec.precompiled_charsmap
        rules = base64.b64encode(back).decode()
        self.denormalizer = _core.SentencePieceNormalizer(rules, (False,) * 4, []) if back else None
        self.bare = compile_spec(spec.replace(stages=(), extra=()))  # takes what is normalized already
        self.kind = type(spec.model)

    def _role(self, piece: str, type: int) -> int:
        id = self.ids.get(piece.encode(), -1)
        return id if id >= 0 and self.types[id] == type else -1

    def id_of(self, piece: bytes) -> int:
        """The id of a piece, that of the unknown piece where there is no such piece."""
        return self.ids.get(piece, self.unknown)

    # ======================== encoding ========================

    def normalize(self, text: bytes) -> Normalized:
        return Normalized(text, *self.normalizer.apply(text))

    def encode(self, texts: Iterable[str | bytes], threads: int) -> list[list[int]]:
        return self.tokenizer.encode_batch(texts, disallowed_special=(), threads=threads)

    def tokens(self, text: Normalized) -> Tokens:
        """The best segmentation."""
        ids, spans, _ = self.bare.encode_with_spans(text.text, self.bare.ordinary_policy, False)
        return list(zip(ids.tolist(), spans[:, 1].tolist(), strict=True))

    def segmentations(self, text: Normalized) -> _core.Segmentations | None:
        """All segmentations of a text; None for a text that has only that of no pieces.

        Raises:
            RefusedError: the model gives segmentations no probabilities.
        """
        if self.kind is not Unigram:
            raise RefusedError("only a Unigram model has segmentations with scores, not one of this kind")
        parts = self.bare.segmentations(text.text, self.bare.ordinary_policy)
        return next((part for part in parts if not isinstance(part, int)), None)

    def nbest(self, text: Normalized, n: int) -> list[tuple[Tokens, float]]:
        """The best segmentations with their scores."""
        found = self.segmentations(text)
        return [([], 0.0)] if found is None else found.nbest(n)

    def sample(self, text: Normalized, nbest_size: int, alpha: float) -> Tokens:
        """A random segmentation: of all that there are, or of the best ones; where a model merges, one without some of
        the merges."""
        if self.kind is ScoreBPE:
            seed, dropout = randomness.getrandbits(63), min(alpha, 1.0)
            ids = self.bare.encode_with_dropout(text.text, self.bare.ordinary_policy, dropout, seed, 1)[0]
            return self._with_ends(text.text, ids)
        if nbest_size in (0, 1):
            return self.tokens(text)
        if nbest_size < 0:
            found = self.segmentations(text)
            return [] if found is None else found.sample(1, alpha, randomness.getrandbits(64))[0][0]
        best = self.nbest(text, nbest_size)
        weights = [math.exp(alpha * (score - best[0][1])) for _, score in best]
        return randomness.choices(best, weights)[0][0]

    def _with_ends(self, text: bytes, ids: list[int]) -> Tokens:
        """Ids with the places where they end. What is unknown ends where the next entry starts."""
        tokens: Tokens = []
        at = 0
        for number, id in enumerate(ids):
            if id != self.unknown:
                at += 1 if id in self.byte_of else len(self.bytes[id])
            else:
                at = text.find(self.bytes[ids[number + 1]], at + 1) if number + 1 < len(ids) else len(text)
            tokens.append((id, at))
        return tokens

    def text_pieces(self, text: Normalized, tokens: Tokens) -> list[bytes]:
        """The pieces: those of the model, and what was unknown as it stands in the normalized text."""
        pieces, at = [], 0
        for id, end in tokens:
            pieces.append(text.text[at:end] if id == self.unknown else self.bytes[id])
            at = end
        return pieces

    def message_of(self, text: Normalized, tokens: Tokens, score: float | None = None) -> SentencePieceText:
        """The pieces with their places in the original text, in bytes.

        Of the bytes that a character without an entry became, the last stands for it.
        """
        places = text.starts[np.array([0, *(end for _, end in tokens)], dtype=np.intp)].tolist()
        rows: list[dict[str, Any]] = []
        at = lead = 0
        for piece, (id, end), begin, stop in zip(
            self.text_pieces(text, tokens), tokens, places, places[1:], strict=False
        ):
            row = {"piece": piece, "id": id}
            if id in self.byte_of:
                lead = lead if text.text[at] & 0xC0 == 0x80 else begin
                begin = lead
                if end < len(text.text) and text.text[end] & 0xC0 == 0x80:
                    rows.append(row | {"begin": lead, "end": lead})
                    at = end
                    continue
            rows.append(row | {"surface": text.original[begin:stop], "begin": begin, "end": stop})
            at = end
        return text_of(text.original, rows, score)

    # ======================== decoding ========================

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids that the model has."""
        if self.byte_of and not self.byte_of.keys().isdisjoint(ids):
            return self.decoded([(self.bytes[id], id) for id in ids]).text
        return self.tokenizer.decode(ids, skip_special_tokens=True)

    def decoded(self, pieces: Iterable[tuple[bytes, int]]) -> SentencePieceText:
        """Pieces and what each gives of the text. A piece that is none of the model's stands for itself; a byte that is
        part of no character is U+FFFD."""
        normalizer, trainer = self.message.normalizer_spec, self.message.trainer_spec
        removes, strips = normalizer.remove_extra_whitespaces, normalizer.add_dummy_prefix
        rows: list[dict[str, Any]] = []
        waiting: list[int] = []
        size, text = 0, list[bytes]()
        is_start, stripped = True, False

        def add(row: dict[str, Any], surface: bytes) -> None:
            nonlocal size
            row.update(surface=surface, begin=size, end=size + len(surface))
            text.append(surface)
            size += len(surface)

        def add_bytes() -> None:
            surfaces = _characters(bytes(waiting))
            for row, surface in zip(rows[len(rows) - len(waiting) :], surfaces, strict=True):
                add(row, surface)
            waiting.clear()

        for piece, id in pieces:
            if id not in self.byte_of:
                add_bytes()
            rows.append({"piece": piece, "id": id})
            if id in self.byte_of:
                waiting.append(self.byte_of[id])
                continue
            is_start = is_start and not stripped and not size
            surface, stripped = piece, False
            if self.types[id] == proto.CONTROL:
                surface = b""
            elif self.types[id] == proto.UNKNOWN:
                surface = trainer.unk_surface.encode() if piece == self.bytes[id] else piece
            else:
                if is_start and (removes or strips) and surface.startswith(MARK):
                    surface, stripped = surface[len(MARK) :], not removes
                surface = surface.replace(MARK, b" ")
            add(rows[-1], surface)
        add_bytes()
        whole = b"".join(text)
        return text_of(whole if self.denormalizer is None else self.denormalizer.apply(whole)[0], rows)


_TAKEN_FROM_TEXT = (proto.NORMAL, proto.USER_DEFINED, proto.UNUSED)


def _characters(data: bytes) -> list[bytes]:
    """For each byte what it gives: the last of a character gives that character, one of no character U+FFFD."""
    surfaces: list[bytes] = []
    for char in data.decode("utf-8", "surrogateescape"):
        whole = char.encode("utf-8", "surrogateescape")
        surfaces += [b""] * (len(whole) - 1)
        surfaces.append(REPLACEMENT if "\udc80" <= char <= "\udcff" else whole)
    return surfaces
