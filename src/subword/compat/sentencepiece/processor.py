"""`SentencePieceProcessor`: encoding and decoding under sentencepiece's names."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from ...errors import SubwordValueError
from ...formats import sentencepiece_model as proto
from ...formats.wire import Message
from .arguments import (
    MOST,
    PROTOS,
    each,
    file_bytes,
    ids_checked,
    is_sequence,
    only_once,
    own,
    pieces_checked,
    power,
    proto_bytes,
    return_type_of,
    sample_size,
    text_checked,
    threads_of,
    utf8,
    whole,
    with_flags,
)
from .errors import RangeError, RefusedError, WrongTypeError
from .model import Model, Normalized, Tokens, randomness
from .names import both_names
from .results import array_of, decoded_as, message_as, normalized, offset_mapping
from .sentencepiece_pb2 import SentencePieceText, text_of

T = TypeVar("T")


class ThreadPool:
    """How many threads a call may use. Threads themselves live only as long as a call."""

    def __init__(self, num_threads: int) -> None:
        self._threads = threads_of(num_threads)

    def num_threads(self) -> int:
        """How many."""
        return self._threads


@both_names
class SentencePieceProcessor:
    """A model of SentencePiece, with sentencepiece's methods, each under two names: `EncodeAsIds`, `encode_as_ids`.

    What calls return is up to `return_type` (`out_type` is the same): `int` for ids, `str` or `bytes` for pieces,
    `"numpy"` for ids as an array, `"proto"` for a `SentencePieceText` with places in bytes, `"immutable_proto"` for one
    with places in characters, `"serialized_proto"` for its bytes, `"offset_mapping"` for a dict of lists. A list of
    texts gives a list of results.
    """

    def __init__(
        self,
        model_file: str | os.PathLike[str] | None = None,
        model_proto: Any = None,
        out_type: Any = None,
        add_bos: bool = False,
        add_eos: bool = False,
        reverse: bool = False,
        emit_unk_piece: bool = False,
        enable_sampling: bool = False,
        nbest_size: int = -1,
        alpha: float = 0.1,
        num_threads: int = -1,
        return_type: Any = None,
    ) -> None:
        """A processor of a model file, of the bytes of one, or of none yet (`Load` takes one).

        Args:
            add_bos, add_eos, reverse, emit_unk_piece, enable_sampling, nbest_size, alpha, num_threads, return_type:
                what `Encode` takes where it is not told.

        Raises:
            RuntimeError: the file cannot be read, or is no model.
            ValueError: the arguments contradict each other.
        """
        self._loaded: Model | None = None
        self._encode_options: list[str] = []
        self._decode_options: list[str] = []
        self._return_type = return_type_of(return_type, out_type, int)
        self._add_bos = add_bos
        self._add_eos = add_eos
        self._reverse = reverse
        self._emit_unk_piece = emit_unk_piece
        self._enable_sampling = enable_sampling
        self._nbest_size = nbest_size
        self._alpha = alpha
        self._num_threads = num_threads
        if model_file or model_proto:
            self.Load(model_file, model_proto)

    # ======================== loading ========================

    @classmethod
    def from_file(cls, model_file: str | os.PathLike[str], **kwargs: Any) -> Any:
        """A processor of a model file."""
        only_once(kwargs)
        processor = cls(**kwargs)
        processor.LoadFromFile(model_file)
        return processor

    @classmethod
    def from_proto(cls, model_proto: Any, **kwargs: Any) -> Any:
        """A processor of the bytes of a model file, or of a protobuf message."""
        only_once(kwargs)
        processor = cls(**kwargs)
        processor.LoadFromSerializedProto(model_proto)
        return processor

    def Load(self, model_file: str | os.PathLike[str] | None = None, model_proto: Any = None) -> bool:
        """Take a model. Returns True."""
        if model_file and model_proto:
            raise SubwordValueError("model_file and model_proto are both given: give one of them")
        if model_proto:
            return self.LoadFromSerializedProto(model_proto)
        if model_file:
            return self.LoadFromFile(model_file)
        raise SubwordValueError("there is no model to load: give model_file or model_proto")

    def LoadFromFile(self, arg: str | os.PathLike[str]) -> bool:
        """Take the model of a file. Returns True."""
        self._loaded = Model(file_bytes(arg))
        return True

    def LoadFromSerializedProto(self, serialized: Any) -> bool:
        """Take the model of these bytes, or of this protobuf message. Returns True."""
        self._loaded = Model(proto_bytes("the model", serialized))
        return True

    def serialized_model_proto(self) -> bytes:
        """The bytes of the model file; none without a model."""
        return b"" if self._loaded is None else proto.write(self._loaded.message)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_loaded": None, "model_proto": self.serialized_model_proto()}

    def __setstate__(self, state: Any) -> None:
        state = {"model_proto": state} if isinstance(state, bytes) else dict(state)
        SentencePieceProcessor.__init__(self)
        data = state.pop("model_proto")
        self.__dict__.update(state)
        if data:
            self.LoadFromSerializedProto(data)

    @property
    def _model(self) -> Model:
        if self._loaded is None:
            raise RefusedError("this processor has no model yet: call Load, or give it model_file or model_proto")
        return self._loaded

    # ======================== encoding ========================

    def Encode(
        self,
        input: Any,
        add_bos: bool | None = None,
        add_eos: bool | None = None,
        reverse: bool | None = None,
        emit_unk_piece: bool | None = None,
        enable_sampling: bool | None = None,
        nbest_size: int | None = None,
        alpha: float | None = None,
        num_threads: int | None = None,
        thread_pool: ThreadPool | None = None,
        return_type: Any = None,
        out_type: Any = None,
        return_bytes: bool | None = None,
    ) -> Any:
        """The pieces of a text, or of each text of a list.

        Args:
            add_bos, add_eos: put the ids that start and end a text around it; after `reverse`.
            reverse: the last piece first.
            emit_unk_piece: `<unk>` as the piece of what is unknown, instead of the text itself.
            enable_sampling: draw a random segmentation, of the `nbest_size` best or (-1) of all, with probabilities to
                the power of `alpha`. For a model that merges, `alpha` is the probability with which a merge is left
                out.
            num_threads, thread_pool: with how many threads to encode a list; -1 for all cores.
            return_bytes: for `"offset_mapping"`: pieces and places in bytes. By default, where the text is bytes.

        Raises:
            TypeError: the input is no text and no list of texts.
            ValueError: arguments that cannot be used together, or the model has no such token.
            RuntimeError: the model cannot do it.
        """
        kind = self._kind(return_type, out_type)
        if return_bytes is not None and kind != "offset_mapping":
            raise SubwordValueError('return_bytes is for return_type="offset_mapping" alone')
        sampling = own(enable_sampling, self._enable_sampling)
        size, alpha = own(nbest_size, self._nbest_size), own(alpha, self._alpha)
        if sampling and (size in (None, 0, 1) or alpha is None):
            raise SubwordValueError(
                "to sample, give alpha and an nbest_size above 1, or nbest_size=-1 to draw from all segmentations"
            )
        threads = self._threads(num_threads, thread_pool)
        edits = self._edits(kind, add_bos, add_eos, reverse, emit_unk_piece)
        texts = input if isinstance(input, list) else [text_checked(input)]
        for text in texts:
            if not isinstance(text, (str, bytes)):
                raise WrongTypeError(f"a list of texts must hold str or bytes, not {type(text).__name__}")
        if return_bytes is None and kind == "offset_mapping":
            return_bytes = bool(texts) and isinstance(texts[0], bytes)
        results: list[Any]
        if sampling:
            size, alpha = sample_size(size), power(alpha)
            normalized = [self._model.normalize(utf8(text)) for text in texts]
            segmented = [(text, self._model.sample(text, size, alpha)) for text in normalized]
            results = [self._result(kind, text, tokens, edits, return_bytes) for text, tokens in segmented]
        elif kind == "numpy" and not edits:
            ragged = self._model.tokenizer.encode_batch_to_numpy(texts, disallowed_special=(), threads=threads)
            ragged.ids.setflags(write=False)
            results = [ids.view(np.int32) for ids in ragged]
        elif kind in (int, "numpy"):
            results = self._ids(kind, self._model.encode(texts, threads), edits)
        elif kind in (str, bytes):
            results = self._pieces(kind, texts, edits, threads)
        else:
            results = []
            for text in texts:
                normal = self._model.normalize(utf8(text))
                results.append(self._result(kind, normal, self._model.tokens(normal), edits, return_bytes))
        return results if isinstance(input, list) else results[0]

    def ParallelEncode(
        self,
        input: Any,
        add_bos: bool | None = None,
        add_eos: bool | None = None,
        reverse: bool | None = None,
        emit_unk_piece: bool | None = None,
        chunk_len: int | None = None,
        num_threads: int | None = None,
        thread_pool: ThreadPool | None = None,
        return_type: Any = None,
        out_type: Any = None,
    ) -> Any:
        """`Encode` for long texts. `chunk_len` is checked, and has no meaning here."""
        if isinstance(chunk_len, bool) or not isinstance(chunk_len, int) or chunk_len <= 0:
            raise SubwordValueError(f"chunk_len must be a whole number above 0, not {chunk_len!r}")
        kind = self._kind(return_type, out_type)
        if kind == "offset_mapping":
            raise SubwordValueError('ParallelEncode has no return_type="offset_mapping"; Encode has')
        return self.Encode(
            input,
            add_bos=add_bos,
            add_eos=add_eos,
            reverse=reverse,
            emit_unk_piece=emit_unk_piece,
            enable_sampling=False,
            num_threads=num_threads,
            thread_pool=thread_pool,
            return_type=kind,
        )

    def NBestEncode(
        self,
        input: Any,
        add_bos: bool | None = None,
        add_eos: bool | None = None,
        reverse: bool | None = None,
        emit_unk_piece: bool | None = None,
        nbest_size: int | None = None,
        return_type: Any = None,
        out_type: Any = None,
    ) -> Any:
        """The best segmentations of a text, the best first; there may be fewer than `nbest_size`. See `Encode`."""
        kind = self._kind(return_type, out_type)
        if kind == "offset_mapping":
            raise SubwordValueError('NBestEncode has no return_type="offset_mapping"; Encode has')
        size = whole("nbest_size", own(nbest_size, self._nbest_size))
        if size > MOST:
            raise RefusedError(f"nbest_size={size} is more than {MOST}; Tokenizer.nbest has no such limit")
        edits = self._edits(kind, add_bos, add_eos, reverse, emit_unk_piece)
        return each(input, lambda text: self._nbest(kind, utf8(text_checked(text)), max(size, 1), edits))

    def SampleEncodeAndScore(
        self,
        input: Any,
        out_type: Any = None,
        add_bos: bool | None = None,
        add_eos: bool | None = None,
        reverse: bool | None = None,
        emit_unk_piece: bool | None = None,
        num_samples: int | None = None,
        alpha: float | None = None,
        wor: bool | None = None,
        include_best: bool | None = None,
        return_type: Any = None,
    ) -> Any:
        """Random segmentations with their scores, as pairs or, for the messages, as their `score`.

        The score is the logarithm of the probability of a segmentation, by the model to the power of `alpha`.

        Args:
            num_samples: how many.
            wor: none of them twice ("without replacement"). The score is then the logarithm of the probability to be
                among the samples.
            include_best: with `wor`: the best one is among them, with the score 0.
        """
        kind = self._kind(return_type, out_type)
        count = whole("num_samples", 1 if num_samples is None else num_samples)
        if count < 1:
            raise RefusedError(f"num_samples must be at least 1, not {count}")
        if include_best and not wor:
            raise RefusedError("include_best goes with wor=True")
        exponent = power(1.0 if alpha is None else alpha)
        edits = self._edits(kind, add_bos, add_eos, reverse, emit_unk_piece)

        def scored(text: Any) -> Any:
            normal = self._model.normalize(utf8(text_checked(text)))
            found = self._model.segmentations(normal)
            rows: list[tuple[Tokens, float]] = []
            if found is None:
                raise RefusedError("a text without pieces has no segmentations to draw from")
            if not wor:
                rows = found.sample(count, exponent, randomness.getrandbits(64))
            else:
                rows = self._different(found, count, exponent, bool(include_best))
            if kind in PROTOS:
                texts = [self._model.message_of(normal, tokens, score) for tokens, score in rows]
                return message_as(kind, texts)
            return [(self._result(kind, normal, tokens, edits, None), score) for tokens, score in rows]

        return each(input, scored)

    def _different(self, found: Any, count: int, alpha: float, include_best: bool) -> list[tuple[Tokens, float]]:
        """Samples without replacement, and the probability to be among them (Kool et al. 2019): that a Gumbel variable
        is above the perturbed score of the first that is not."""
        drawn = found.sample_without_replacement(count + 1, alpha, randomness.getrandbits(64))
        best: list[tuple[Tokens, float]] = []
        if include_best:
            first = found.nbest(1)[0][0]
            best = [(first, 0.0)]
            if any(row[0] == first for row in drawn):
                drawn = [row for row in drawn if row[0] != first]
            elif len(drawn) > count:
                drawn.pop()
        bound = drawn[-1][2] if len(drawn) + len(best) > count else -math.inf
        kept = drawn[:-1] if len(drawn) + len(best) > count else drawn
        return best + [(tokens, _log_of_inclusion(log - bound)) for tokens, log, _ in kept]

    def CalculateEntropy(self, input: Any, alpha: float, num_threads: int | None = None) -> Any:
        """The entropy, in nats, of the segmentations of a text, by their probabilities to the power of `alpha`."""
        self._threads(num_threads, None)
        exponent = power(alpha)

        def entropy(text: Any) -> float:
            found = self._model.segmentations(self._model.normalize(utf8(text_checked(text))))
            return 0.0 if found is None else found.entropy(exponent)

        return each(input, entropy)

    def Normalize(self, input: Any, with_offsets: bool | None = None) -> Any:
        """The text as the model sees it; with `with_offsets`, also where in the original what each character (for
        bytes, each byte) of it comes from starts, and where the original ends."""
        return each(input, lambda text: normalized(self._model.normalize, text, bool(with_offsets)))

    # ---- inside ----

    def _kind(self, return_type: Any, out_type: Any) -> Any:
        return return_type_of(return_type, out_type, self._return_type)

    def _threads(self, num_threads: Any, pool: Any) -> int:
        number = own(num_threads, self._num_threads)
        if not isinstance(number, int):
            raise WrongTypeError(f"num_threads must be a whole number, not {number!r}")
        return pool.num_threads() if isinstance(pool, ThreadPool) else threads_of(number)

    def _edits(self, kind: Any, bos: Any, eos: Any, reverse: Any, emit_unk: Any) -> list[str]:
        """What is done to the pieces of a text, in its order."""
        given = {
            "unk_piece": ("emit_unk_piece", own(emit_unk, self._emit_unk_piece)),
            "reverse": ("reverse", own(reverse, self._reverse)),
            "bos": ("add_bos", own(bos, self._add_bos)),
            "eos": ("add_eos", own(eos, self._add_eos)),
        }
        for name, value in given.values():
            if isinstance(value, (type, str)):
                raise WrongTypeError(f"{name} must be True or False, not {value!r}: write return_type={value!r}")
        edits = [edit for edit, (_, value) in given.items() if value]
        if edits and (kind in PROTOS or kind == "offset_mapping"):
            raise RefusedError(
                f"{given[edits[0]][0]} does not go with return_type={kind!r}: change the message afterwards"
            )
        for edit, id in (("bos", self._model.bos), ("eos", self._model.eos)):
            if edit in edits and id < 0:
                raise SubwordValueError(f"{given[edit][0]}: the model has no control symbol for {edit}")
        return [*self._encode_options, *edits]

    def _ids(self, kind: Any, batch: Iterable[list[int]], edits: list[str]) -> list[Any]:
        model = self._model
        results = []
        for ids in batch:
            for edit in edits:
                if edit == "reverse":
                    ids.reverse()
                elif edit == "bos" and model.bos >= 0:
                    ids.insert(0, model.bos)
                elif edit == "eos" and model.eos >= 0:
                    ids.append(model.eos)
            results.append(array_of(ids) if kind == "numpy" else ids)
        return results

    def _pieces(self, kind: Any, texts: Sequence[Any], edits: list[str], threads: int) -> list[Any]:
        """Pieces, of texts that are looked at again only where something is unknown."""
        model, known = self._model, self._model.pieces if kind is str else self._model.bytes
        results = []
        for text, ids in zip(texts, model.encode(texts, threads), strict=True):
            if model.unknown in ids:
                normal = model.normalize(utf8(text))
                found = model.text_pieces(normal, model.tokens(normal))
                results.append(self._edited(kind, found, edits))
            elif edits:
                results.append(self._edited(kind, [model.bytes[id] for id in ids], edits))
            else:
                results.append([known[id] for id in ids])
        return results

    def _edited(self, kind: Any, pieces: list[bytes], edits: list[str]) -> list[Any]:
        model = self._model
        for edit in edits:
            if edit == "unk_piece":
                pieces = [model.bytes[model.unknown] if model.id_of(p) == model.unknown else p for p in pieces]
            elif edit == "reverse":
                pieces = pieces[::-1]
            elif edit == "bos" and model.bos >= 0:
                pieces = [model.bytes[model.bos], *pieces]
            elif edit == "eos" and model.eos >= 0:
                pieces = [*pieces, model.bytes[model.eos]]
        return pieces if kind is bytes else [piece.decode() for piece in pieces]

    def _result(self, kind: Any, text: Normalized, tokens: Tokens, edits: list[str], return_bytes: Any) -> Any:
        """One segmentation as the call wants it."""
        if kind in (int, "numpy"):
            return self._ids(kind, [[id for id, _ in tokens]], edits)[0]
        if kind in (str, bytes):
            return self._edited(kind, self._model.text_pieces(text, tokens), edits)
        message = self._with_options(self._model.message_of(text, tokens), self._encode_options)
        if kind == "offset_mapping":
            mapping = offset_mapping(message, return_bytes)
            del mapping["text"]
            return mapping
        return message_as(kind, message)

    def _nbest(self, kind: Any, text: bytes, n: int, edits: list[str]) -> Any:
        normal = self._model.normalize(text)
        found = self._model.nbest(normal, n)
        if kind in PROTOS:
            options = self._encode_options
            messages = [
                self._with_options(self._model.message_of(normal, tokens, score), options) for tokens, score in found
            ]
            return message_as(kind, messages)
        return [self._result(kind, normal, tokens, edits, None) for tokens, _ in found]

    def _with_options(self, message: SentencePieceText, options: list[str]) -> SentencePieceText:
        """A message as `SetEncodeExtraOptions` wants it."""
        model, end = self._model, len(message.text_as_bytes)
        rows = [dict(piece._message.values) for piece in message.pieces]
        for option in options:
            if option == "reverse":
                rows.reverse()
            elif option == "bos" and model.bos >= 0:
                rows.insert(0, {"piece": model.bytes[model.bos], "id": model.bos, "begin": 0, "end": 0})
            elif option == "eos" and model.eos >= 0:
                rows.append({"piece": model.bytes[model.eos], "id": model.eos, "begin": end, "end": end})
            elif option == "unk_piece":
                for row in rows:
                    if row["id"] == model.unknown:
                        row["piece"] = model.bytes[model.unknown]
        return text_of(message.text_as_bytes, rows, message._message.values.get("score")) if options else message

    # ======================== decoding ========================

    def Decode(
        self,
        input: Any,
        return_type: Any = None,
        out_type: Any = None,
        num_threads: int | None = None,
        thread_pool: ThreadPool | None = None,
        return_bytes: bool | None = None,
    ) -> Any:
        """The text of an id, a piece, a sequence of either, or a sequence of such sequences.

        Args:
            return_type: `str` (the default; pieces that are bytes give bytes), `bytes`, a kind of message, or
                `"offset_mapping"`.

        Raises:
            IndexError: an id that the model does not have.
            TypeError: what is neither ids nor pieces.
        """
        kind = return_type_of(return_type, out_type, str)
        if return_bytes is not None and kind != "offset_mapping":
            raise SubwordValueError('return_bytes is for return_type="offset_mapping" alone')
        threads = self._threads(num_threads, thread_pool)
        if kind in (int, "numpy"):
            raise SubwordValueError(f"text is not decoded to {kind!r}: give return_type=str or bytes")
        if input is None or (isinstance(input, (str, bytes)) and not input):
            input = []
        items = input if is_sequence(input) else [input]
        is_batch = items.ndim > 1 if hasattr(items, "ndim") else len(items) > 0 and is_sequence(items[0])
        batch = list(items) if is_batch else [items]
        first = next((item[0] for item in batch if is_sequence(item) and len(item)), None)
        if isinstance(first, (str, bytes)):
            in_bytes = isinstance(first, bytes)
            results = [self._decode_pieces(kind, pieces_checked(item), in_bytes, return_bytes) for item in batch]
        else:
            numbers = [ids_checked(item) for item in batch]
            for ids in numbers:
                self._check(ids)
            results = self._decode_ids(kind, numbers, threads, bool(return_bytes))
        return results if is_batch else results[0]

    def _decode_ids(self, kind: Any, batch: list[list[int]], threads: int, return_bytes: bool) -> list[Any]:
        model = self._model
        if kind not in (str, bytes) or self._decode_options:
            messages = [self._decoded([(model.bytes[id], id) for id in ids]) for ids in batch]
            return [decoded_as(kind, message, return_bytes) for message in messages]
        if model.byte_of or len(batch) == 1:
            texts = [model.decode(ids) for ids in batch]
        else:
            texts = model.tokenizer.decode_batch(batch, skip_special_tokens=True, threads=threads)
        return [text.encode() for text in texts] if kind is bytes else texts

    def _decode_pieces(self, kind: Any, pieces: list[bytes], in_bytes: bool, return_bytes: bool | None) -> Any:
        model = self._model
        rows = [(piece, model.id_of(piece)) for piece in pieces]
        kind = bytes if kind is str and in_bytes else kind
        if kind in (str, bytes) and not self._decode_options and all(id != model.unknown for _, id in rows):
            text = model.decode([id for _, id in rows])
            return text if kind is str else text.encode()
        return decoded_as(kind, self._decoded(rows), bool(return_bytes) or in_bytes)

    def _decoded(self, rows: list[tuple[bytes, int]]) -> SentencePieceText:
        model = self._model
        for option in self._decode_options:
            if option == "reverse":
                rows = rows[::-1]
            elif option == "bos" and model.bos >= 0:
                rows = [(model.bytes[model.bos], model.bos), *rows]
            elif option == "eos" and model.eos >= 0:
                rows = [*rows, (model.bytes[model.eos], model.eos)]
            elif option == "unk_piece":
                rows = [(model.bytes[id] if id == model.unknown else piece, id) for piece, id in rows]
        return model.decoded(rows)

    # ======================== the pieces ========================

    def GetPieceSize(self) -> int:
        """How many pieces there are; 0 without a model."""
        return 0 if self._loaded is None else len(self._loaded.pieces)

    piece_size = GetPieceSize
    vocab_size = GetPieceSize
    __len__ = GetPieceSize

    def PieceToId(self, piece: Any) -> Any:
        """The id of a piece, or of each of several; the unknown piece's id for one that there is not."""
        if isinstance(piece, (str, bytes)):
            return self._model.id_of(utf8(piece))
        return [self._model.id_of(one) for one in pieces_checked(piece)]

    __getitem__ = PieceToId

    def IdToPiece(self, id: Any) -> Any:
        """The piece of an id, or of each of several."""
        return self._of_ids(id, lambda model, id: model.pieces[id])

    def GetScore(self, id: Any) -> Any:
        """The score of an id, or of each of several."""
        return self._of_ids(id, lambda model, id: model.scores[id])

    def IsUnknown(self, id: Any) -> Any:
        """Whether it is the unknown piece."""
        return self._of_ids(id, lambda model, id: model.types[id] == proto.UNKNOWN)

    def IsControl(self, id: Any) -> Any:
        """Whether it is a control symbol, which no text spells."""
        return self._of_ids(id, lambda model, id: model.types[id] == proto.CONTROL)

    def IsUnused(self, id: Any) -> Any:
        """Whether it is a piece that is never taken."""
        return self._of_ids(id, lambda model, id: model.types[id] == proto.UNUSED)

    def IsByte(self, id: Any) -> Any:
        """Whether it is a byte, for characters without an entry."""
        return self._of_ids(id, lambda model, id: model.types[id] == proto.BYTE)

    def _of_ids(self, id: Any, what: Callable[[Model, int], T]) -> T | list[T]:
        try:
            ids = [operator.index(id)]
        except TypeError:
            ids = ids_checked(id)
            self._check(ids)
            return [what(self._model, one) for one in ids]
        self._check(ids)
        return what(self._model, ids[0])

    def _check(self, ids: Sequence[int]) -> None:
        size = self.GetPieceSize()
        for id in ids:
            if not 0 <= id < size:
                raise RangeError(f"the model has no id {id}: its ids are 0 to {size - 1}")

    def unk_id(self) -> int:
        """The id of the unknown piece, -1 if there is none."""
        return -1 if self._loaded is None else self._loaded.unk

    def bos_id(self) -> int:
        """The id that starts a text, -1 if there is none."""
        return -1 if self._loaded is None else self._loaded.bos

    def eos_id(self) -> int:
        """The id that ends a text, -1 if there is none."""
        return -1 if self._loaded is None else self._loaded.eos

    def pad_id(self) -> int:
        """The id that fills up batches, -1 if there is none."""
        return -1 if self._loaded is None else self._loaded.pad

    # ======================== settings that change the model ========================

    def SetEncodeExtraOptions(self, extra_option: str) -> bool:
        """What to do with the pieces of each text: `"reverse:bos:eos:unk"`, in this order. Returns True."""
        self._encode_options = self._options(extra_option)
        return True

    def SetDecodeExtraOptions(self, extra_option: str) -> bool:
        """What to do with pieces before they are decoded. Returns True."""
        self._decode_options = self._options(extra_option)
        return True

    def _options(self, names: str) -> list[str]:
        options = [{"unk": "unk_piece"}.get(name, name) for name in names.split(":")] if names else []
        for option in options:
            if option not in ("bos", "eos", "reverse", "unk_piece"):
                raise RefusedError(f"unknown option {option!r}: there are bos, eos, reverse and unk")
            if {"bos": self._model.bos, "eos": self._model.eos}.get(option, 0) < 0:
                raise RefusedError(f"the option {option!r}: the model has no control symbol for it")
        return options

    def SetVocabulary(self, valid_vocab: Iterable[str]) -> bool:
        """Take only these pieces, and single characters. Returns True."""
        kept = set(valid_vocab)
        fixed = (proto.CONTROL, proto.UNKNOWN, proto.USER_DEFINED, proto.BYTE)
        self._retype(
            lambda piece, type: (
                type if type in fixed else proto.NORMAL if piece in kept or len(piece) == 1 else proto.UNUSED
            )
        )
        return True

    def ResetVocabulary(self) -> bool:
        """Take all pieces again. Returns True."""
        self._retype(lambda piece, type: proto.NORMAL if type == proto.UNUSED else type)
        return True

    def LoadVocabulary(self, filename: str | os.PathLike[str], threshold: int) -> bool:
        """Take only the pieces that a file has, a line each, with a tab and a count of at least `threshold` behind it.
        Returns True."""
        kept = []
        for number, line in enumerate(
            file_bytes(filename).decode("utf-8", "replace").removesuffix("\n").split("\n"), 1
        ):
            piece, _, count = line.partition("\t")
            try:
                often = int(count.partition("\t")[0]) if count else 1
            except ValueError:
                raise RefusedError(f"{filename}: line {number} has no whole number behind the tab") from None
            if not piece:
                raise RefusedError(f"{filename}: line {number} has no piece")
            if often >= threshold:
                kept.append(piece)
        return self.SetVocabulary(kept)

    def _retype(self, type_of: Callable[[str, int], int]) -> None:
        model = self._model
        message = Message(model.message.table, dict(model.message.values), model.message.unknown)
        message.values["pieces"] = [
            Message(piece.table, piece.values | {"type": type_of(piece.piece, piece.type)}, piece.unknown)
            for piece in model.message.pieces
        ]
        self._loaded = Model(message)

    def OverrideNormalizerSpec(self, **kwargs: Any) -> bool:
        """Change settings of the normalizer: `add_dummy_prefix`, `remove_extra_whitespaces`, `escape_whitespaces`.
        Returns True."""
        old = self._model.message
        message = Message(old.table, dict(old.values), old.unknown)
        message.values["normalizer_spec"] = with_flags(old.normalizer_spec, kwargs)
        self._loaded = Model(message)
        return True

    Tokenize = Encode
    Detokenize = Decode


KINDS = {
    "Ids": int,
    "Pieces": str,
    "Numpy": "numpy",
    "Proto": "proto",
    "SerializedProto": "serialized_proto",
    "ImmutableProto": "immutable_proto",
}


def _add_shorthands() -> None:
    """`EncodeAsIds(...)` for `Encode(..., return_type=int)`, and so on."""

    def encode(kind: Any) -> Callable[..., Any]:
        return lambda self, input, **kwargs: self.Encode(input, return_type=kind, **kwargs)

    def sample(kind: Any) -> Callable[..., Any]:
        return lambda self, input, nbest_size=None, alpha=None, **kwargs: self.Encode(
            input, nbest_size=nbest_size, alpha=alpha, return_type=kind, enable_sampling=True, **kwargs
        )

    def nbest(kind: Any) -> Callable[..., Any]:
        return lambda self, input, nbest_size=None, **kwargs: self.NBestEncode(
            input, nbest_size=nbest_size, return_type=kind, **kwargs
        )

    def parallel(kind: Any) -> Callable[..., Any]:
        return lambda self, input, **kwargs: self.ParallelEncode(input, return_type=kind, **kwargs)

    def score(kind: Any) -> Callable[..., Any]:
        return lambda self, input, num_samples=None, alpha=None, **kwargs: self.SampleEncodeAndScore(
            input, num_samples=num_samples, alpha=alpha, return_type=kind, **kwargs
        )

    def decode(kind: Any) -> Callable[..., Any]:
        return lambda self, input, return_type=None, **kwargs: self.Decode(
            input, return_type=kind if return_type is None and "out_type" not in kwargs else return_type, **kwargs
        )

    made: dict[str, Callable[..., Any]] = {"EncodeAsOffsetMapping": encode("offset_mapping")}
    for name, kind in KINDS.items():
        made |= {
            f"EncodeAs{name}": encode(kind),
            f"SampleEncodeAs{name}": sample(kind),
            f"NBestEncodeAs{name}": nbest(kind),
            f"ParallelEncodeAs{name}": parallel(kind),
            f"SampleEncodeAndScoreAs{name}": score(kind),
        }
        if kind in PROTOS:
            made |= {f"DecodeIdsAs{name}": decode(kind), f"DecodePiecesAs{name}": decode(kind)}
    made |= {"DecodeIds": decode(None), "DecodePieces": decode(None)}
    for name, method in made.items():
        method.__name__ = name
        method.__qualname__ = f"SentencePieceProcessor.{name}"
        method.__doc__ = "`Decode` or one of the `Encode` methods, with the result that the name says."
        setattr(SentencePieceProcessor, name, method)
    both_names(SentencePieceProcessor)


_add_shorthands()


def _log_of_inclusion(x: float) -> float:
    """log(1 - exp(-exp(x))), which for small x is x - exp(x) / 2 and so on."""
    if x > 30:
        return 0.0
    y = math.exp(x)
    return x - y / 2 + y * y / 24 if x < -10 else math.log(-math.expm1(-y))
