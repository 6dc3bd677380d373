"""The models of a spec, as frozen data: settings, and a vocabulary and merges in packed buffers."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar, cast, get_args

import numpy as np
import numpy.typing as npt

from . import _core
from .arguments import flag, integer, list_of, string
from .byte_alphabet import to_alphabet
from .errors import SubwordValueError

Ids: TypeAlias = "npt.NDArray[np.uint32]"

MAX_ID = 2**31 - 1
"""The largest id. Above it, other tools' signed 32-bit ids would wrap."""

T = TypeVar("T")


class Stretches(Sequence[T]):
    """A buffer cut at offsets: item `i` is `buffer[offsets[i]:offsets[i + 1]]`. Reads like a list of these."""

    __slots__ = ("buffer", "offsets")

    def __init__(self, buffer: Any, offsets: npt.NDArray[np.uint64]) -> None:
        offsets = whole_numbers("the offsets", offsets, np.uint64, 2**63 - 1, (None,))
        if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(buffer) or np.any(offsets[1:] < offsets[:-1]):
            raise SubwordValueError("the offsets do not rise from 0 to the length of what they cut")
        self.buffer = buffer
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        at = range(len(self))[index]  # refuses what a list refuses, as a list does
        return self.buffer[int(self.offsets[at]) : int(self.offsets[at + 1])]

    def __iter__(self) -> Iterator[T]:
        ends = self.offsets.tolist()
        return (self.buffer[start:end] for start, end in pairwise(ends))

    def __reduce__(self) -> Any:
        return type(self), (self.buffer, self.offsets)


class Packed(Stretches[bytes]):
    """Byte strings in one buffer, `data`."""

    __slots__ = ()

    def __init__(self, data: bytes, offsets: npt.NDArray[np.uint64]) -> None:
        if not isinstance(data, (bytes, bytearray)):
            raise SubwordValueError(f"packed bytes must be bytes, not {type(data).__name__}")
        super().__init__(bytes(data), offsets)

    @classmethod
    def of(cls, items: Iterable[bytes]) -> Packed:
        items = list_of("the entries", items)
        if not set(map(type, items)) <= {bytes}:
            for item in items:
                if not isinstance(item, (bytes, bytearray)):
                    raise SubwordValueError(f"an entry of a vocabulary must be bytes, not {item!r}")
        return cls(b"".join(items), np.cumsum([0, *map(len, items)], dtype=np.uint64))

    @property
    def data(self) -> bytes:
        """All of them, one after the other."""
        data: bytes = self.buffer
        return data


def whole_numbers(what: str, values: Any, dtype: type, most: int, shape: tuple[int | None, ...]) -> Any:
    """Numbers from 0 to `most` as an array that is read-only, and a copy only where `values` could still change.

    `shape` has None where any length will do.
    """
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError) as error:
        raise SubwordValueError(f"{what} must be an array of whole numbers: {error}") from None
    if array.size == 0 and array.ndim < len(shape):
        array = np.zeros([length or 0 for length in shape], dtype)
    fits = array.ndim == len(shape) and all(want in (None, have) for want, have in zip(shape, array.shape, strict=True))
    if not fits or (array.size and array.dtype.kind not in "iu"):
        wanted = "pairs of whole numbers" if len(shape) == 2 else "whole numbers"
        raise SubwordValueError(f"{what} must be an array of {wanted}, not {array.dtype} of shape {array.shape}")
    if array.size and (array.min() < 0 or array.max() > most):
        raise SubwordValueError(f"{what} must be from 0 to {most}; they go from {array.min()} to {array.max()}")
    array = array.astype(dtype, copy=array.flags.writeable)
    array.setflags(write=False)
    return array


@dataclass(frozen=True, eq=False, slots=True)
class Vocab:
    """The entries of a model: `pieces[i]` has the id `ids[i]`; ids rise and may have holes."""

    pieces: Packed
    ids: Ids

    def __post_init__(self) -> None:
        if not isinstance(self.pieces, Packed):
            raise SubwordValueError(f"the pieces must be Packed, not {type(self.pieces).__name__}: see Vocab.of")
        object.__setattr__(self, "ids", whole_numbers("the ids", self.ids, np.uint32, MAX_ID, (None,)))

    def __reduce__(self) -> Any:
        return Vocab, (self.pieces, self.ids)

    @classmethod
    def of(cls, entries: Iterable[tuple[bytes, int]]) -> Vocab:
        """Pack `(piece, id)` entries, in any order."""
        try:
            ordered = sorted([(piece, operator.index(id)) for piece, id in entries], key=operator.itemgetter(1))
        except (TypeError, ValueError) as error:
            raise SubwordValueError(f"a Vocab is made of pairs of bytes and id: {error}") from None
        for _, id in ordered[:1] + ordered[-1:]:
            if not 0 <= id <= MAX_ID:
                raise SubwordValueError(f"id {id} is outside 0 … {MAX_ID}")
        return cls(Packed.of(piece for piece, _ in ordered), np.array([id for _, id in ordered], dtype=np.uint32))

    @classmethod
    def of_buffers(cls, buffers: Mapping[str, Any]) -> Vocab:
        """The inverse of `buffers`. The pieces are taken as bytes, the numbers from any buffer."""
        offsets = np.frombuffer(buffers["offsets"], dtype="<u8")
        return cls(Packed(buffers["pieces"], offsets), np.frombuffer(buffers["ids"], dtype="<u4"))

    def buffers(self) -> dict[str, npt.NDArray[Any] | bytes]:
        """The packed buffers by name."""
        return {"pieces": self.pieces.data, "offsets": self.pieces.offsets, "ids": self.ids}

    def packed(self) -> tuple[bytes, npt.NDArray[np.uint64], Ids]:
        """Pieces, offsets and ids as the core takes them."""
        offsets, ids = np.require(self.pieces.offsets, np.uint64, _PLAIN), np.require(self.ids, np.uint32, _PLAIN)
        return self.pieces.data, offsets, ids

    def __len__(self) -> int:
        return len(self.ids)

    def piece_of(self, id: int) -> bytes | None:
        """The entry with an id, if there is one."""
        if not 0 <= id <= MAX_ID:
            return None
        at = int(self.ids.searchsorted(np.uint32(id)))  # of another type, it would have all ids converted
        if at == len(self.ids) or self.ids[at] != id:
            return None
        piece: bytes = self.pieces[at]
        return piece

    def items(self) -> Iterator[tuple[bytes, int]]:
        """Pairs of piece and id, in the order of the ids."""
        return zip(self.pieces, self.ids.tolist(), strict=True)


@dataclass(frozen=True, eq=False, slots=True)
class BPE:
    """Byte-pair encoding. A piece starts as its bytes; pairs of neighbours are merged until none can be.

    `priority` says which pair goes first (the leftmost of equals):

    * `"merges"`: the pair that stands first in the list `merges`, rows of (left id, right id); what it makes is the
      entry that spells both.
    * `"rank"`: any two neighbours that together spell an entry, the entry with the lowest id (tiktoken's rule).

    With `ignore_merges`, a piece that is an entry as a whole is that entry, whatever the merges say.

    With `unit="character"`, a piece starts as its characters; one without an entry is the entry with the id `unk`. With
    an `end_of_word` marker, the last unit of a piece is the entry that spells it and the marker (`t</w>`), so an entry
    that ends in the marker is the end of a piece. Both go with `priority="merges"` only.

    What else HF tokenizers' BPE can be set to goes with characters only: a `continuing_subword_prefix` stands in front
    of the entries of all but the first, and is left out in the middle of what a merge makes; with `byte_fallback`, a
    character without an entry becomes `<0x00>` … of its bytes, if all of these are entries; with `fuse_unk`, unknown
    characters side by side are one token; without `unk`, they are dropped.
    """

    BUFFERS: ClassVar[tuple[str, ...]] = ("pieces", "offsets", "ids", "merges")

    vocab: Vocab
    merges: npt.NDArray[np.uint32] = field(default_factory=lambda: np.zeros((0, 2), dtype=np.uint32))
    priority: Literal["merges", "rank"] = "merges"
    ignore_merges: bool = False
    unit: Literal["byte", "character"] = "byte"
    end_of_word: str = ""
    unk: int | None = None
    continuing_subword_prefix: str = ""
    fuse_unk: bool = False
    byte_fallback: bool = False
    _compiled: _core.Model | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.vocab, Vocab):
            raise SubwordValueError(f"the vocab of a BPE must be a Vocab, not {type(self.vocab).__name__}")
        for name in ("priority", "unit", "end_of_word", "continuing_subword_prefix"):
            string(name, getattr(self, name))
        for name in ("ignore_merges", "fuse_unk", "byte_fallback"):
            object.__setattr__(self, name, flag(name, getattr(self, name)))
        if self.unit != "character" and (self.continuing_subword_prefix or self.fuse_unk or self.byte_fallback):
            raise SubwordValueError("a prefix, fuse_unk and byte_fallback go with a BPE over characters only")
        if self.unk is not None:
            object.__setattr__(self, "unk", integer("unk", self.unk))
        object.__setattr__(self, "merges", whole_numbers("the merges", self.merges, np.uint32, MAX_ID, (None, 2)))

    def __reduce__(self) -> Any:
        return BPE, _init_values(self)

    def settings(self) -> dict[str, Any]:
        """What the outline of a spec says of it beside its type. Older files have none of the fields in `_UNITS`."""
        units = {name: value for name in _UNITS if (value := getattr(self, name)) != _UNITS[name]}
        return {"priority": self.priority, "ignore_merges": self.ignore_merges, **units}

    def buffers(self) -> dict[str, npt.NDArray[Any] | bytes]:
        """The packed buffers by name."""
        return {**self.vocab.buffers(), "merges": self.merges}

    @classmethod
    def of_parts(cls, settings: Mapping[str, Any], buffers: Mapping[str, Any]) -> BPE:
        """The model that `settings()` and `buffers()` describe."""
        return cls(
            vocab=Vocab.of_buffers(buffers),
            merges=np.frombuffer(buffers["merges"], dtype="<u4").reshape(-1, 2),
            priority=settings["priority"],
            ignore_merges=settings["ignore_merges"],
            **{name: settings.get(name, value) for name, value in _UNITS.items()},
        )

    @property
    def is_general(self) -> bool:
        """Whether it has settings for which the core has only the general merge loop."""
        needs = self.continuing_subword_prefix or self.fuse_unk or self.byte_fallback or self.unk is None
        return self.unit == "character" and bool(needs or self._has_odd_merges() or self.has_inner_markers())

    def _has_odd_merges(self) -> bool:
        """Whether merges join the unknown token, or a pair twice."""
        pairs = self.merges[:, 0].astype(np.uint64) << np.uint64(32) | self.merges[:, 1]
        pairs.sort()  # which is several times as fast as np.unique
        return bool(np.any(self.merges == self.unk) or np.any(pairs[1:] == pairs[:-1]))

    def has_inner_markers(self) -> bool:
        """Whether an entry holds the end-of-word marker elsewhere than at its end."""
        marker = self.end_of_word.encode()
        return bool(marker) and any(marker in piece.removesuffix(marker) for piece in self.vocab.pieces)

    def joined(self, left: bytes, right: bytes) -> bytes:
        """What a merge of two entries makes."""
        return left + right[len(self.continuing_subword_prefix.encode()) :]

    def spelled(self, piece: bytes) -> str:
        """An entry as files of the vocabulary spell it."""
        return to_alphabet(piece) if self.unit == "byte" else piece.decode(errors="replace")

    def compiled(self, made: Ids | None = None) -> _core.Model:
        """The model as the core runs it: compiled once, and shared by all tokenizers that have it.

        `made` is what its method `made` gave for the same model before; with it nothing is proved again.

        Raises:
            FormatError: the model contradicts itself.
        """
        if self._compiled is None and self.is_general:
            compiled = _core.Model.characters(
                *self.vocab.packed(),
                np.require(self.merges, np.uint32, _PLAIN).reshape(-1, 2),
                (self.continuing_subword_prefix, self.end_of_word),
                self.unk,
                (self.fuse_unk, self.byte_fallback, self.ignore_merges),
            )
            object.__setattr__(self, "_compiled", compiled)
        if self._compiled is None:
            compiled = _core.Model.bpe(
                *self.vocab.packed(),
                np.require(self.merges, np.uint32, _PLAIN).reshape(-1, 2),
                self.priority,
                self.ignore_merges,
                (self.unit, self.end_of_word, self.unk),
                None if made is None else np.require(made, np.uint32, _PLAIN),
            )
            object.__setattr__(self, "_compiled", compiled)
        return cast("_core.Model", self._compiled)


@dataclass(frozen=True, eq=False, slots=True)
class WordPiece:
    """Longest entry first. A piece is cut into the longest entry that it starts with; then what is left, into the
    longest among the entries that continue a word, which have `continuing_subword_prefix` in front; and so on.

    A piece that cannot be cut so to its end, or that has more than `max_input_chars_per_word` characters, is the entry
    with the id `unk` as a whole.
    """

    BUFFERS: ClassVar[tuple[str, ...]] = ("pieces", "offsets", "ids")

    vocab: Vocab
    unk: int
    continuing_subword_prefix: str = "##"
    max_input_chars_per_word: int = 100
    _compiled: _core.Model | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.vocab, Vocab):
            raise SubwordValueError(f"the vocab of a WordPiece must be a Vocab, not {type(self.vocab).__name__}")
        string("continuing_subword_prefix", self.continuing_subword_prefix)
        for name in ("unk", "max_input_chars_per_word"):
            object.__setattr__(self, name, integer(name, getattr(self, name)))

    def __reduce__(self) -> Any:
        return WordPiece, _init_values(self)

    def settings(self) -> dict[str, Any]:
        """What the outline of a spec says of it beside its type."""
        return {name: getattr(self, name) for name in _WORD_PIECE}

    def buffers(self) -> dict[str, npt.NDArray[Any] | bytes]:
        """The packed buffers by name."""
        return self.vocab.buffers()

    @classmethod
    def of_parts(cls, settings: Mapping[str, Any], buffers: Mapping[str, Any]) -> WordPiece:
        """The model that `settings()` and `buffers()` describe."""
        return cls(Vocab.of_buffers(buffers), **{name: settings[name] for name in _WORD_PIECE})

    def spelled(self, piece: bytes) -> str:
        """An entry as files of the vocabulary spell it."""
        return piece.decode(errors="replace")

    def compiled(self, made: Ids | None = None) -> _core.Model:
        """The model as the core runs it: compiled once, and shared. Nothing of it is proved, so `made` is None.

        Raises:
            FormatError: the model contradicts itself.
        """
        if self._compiled is None:
            most = min(self.max_input_chars_per_word, MAX_ID)
            compiled = _core.Model.word_piece(*self.vocab.packed(), self.continuing_subword_prefix, self.unk, most)
            object.__setattr__(self, "_compiled", compiled)
        return cast("_core.Model", self._compiled)


@dataclass(frozen=True, eq=False, slots=True)
class WordLevel:
    """A piece is an entry as a whole; one that is none is the entry with the id `unk`, as a whole."""

    BUFFERS: ClassVar[tuple[str, ...]] = ("pieces", "offsets", "ids")

    vocab: Vocab
    unk: int
    _compiled: _core.Model | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.vocab, Vocab):
            raise SubwordValueError(f"the vocab of a WordLevel must be a Vocab, not {type(self.vocab).__name__}")
        object.__setattr__(self, "unk", integer("unk", self.unk))

    def __reduce__(self) -> Any:
        return WordLevel, _init_values(self)

    def settings(self) -> dict[str, Any]:
        """What the outline of a spec says of it beside its type."""
        return {"unk": self.unk}

    def buffers(self) -> dict[str, npt.NDArray[Any] | bytes]:
        """The packed buffers by name."""
        return self.vocab.buffers()

    @classmethod
    def of_parts(cls, settings: Mapping[str, Any], buffers: Mapping[str, Any]) -> WordLevel:
        """The model that `settings()` and `buffers()` describe."""
        return cls(Vocab.of_buffers(buffers), settings["unk"])

    def spelled(self, piece: bytes) -> str:
        """An entry as files of the vocabulary spell it."""
        return piece.decode(errors="replace")

    def compiled(self, made: Ids | None = None) -> _core.Model:
        """The model as the core runs it: compiled once, and shared. Nothing of it is proved, so `made` is None.

        Raises:
            FormatError: the model contradicts itself.
        """
        if self._compiled is None:
            object.__setattr__(self, "_compiled", _core.Model.word_level(*self.vocab.packed(), self.unk))
        return cast("_core.Model", self._compiled)


@dataclass(frozen=True, eq=False, slots=True)
class LongestMatch:
    """From the start of a piece the longest entry that stands there, and again behind it (RWKV's tokenizers).

    Entries are bytes, and each single byte must be one, so that nothing is unknown.
    """

    BUFFERS: ClassVar[tuple[str, ...]] = ("pieces", "offsets", "ids")
    unk: ClassVar[None] = None

    vocab: Vocab
    _compiled: _core.Model | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.vocab, Vocab):
            raise SubwordValueError(f"the vocab of a LongestMatch must be a Vocab, not {type(self.vocab).__name__}")

    def __reduce__(self) -> Any:
        return LongestMatch, _init_values(self)

    def settings(self) -> dict[str, Any]:
        """What the outline of a spec says of it beside its type: nothing."""
        return {}

    def buffers(self) -> dict[str, npt.NDArray[Any] | bytes]:
        """The packed buffers by name."""
        return self.vocab.buffers()

    @classmethod
    def of_parts(cls, settings: Mapping[str, Any], buffers: Mapping[str, Any]) -> LongestMatch:
        """The model that `settings()` and `buffers()` describe."""
        return cls(Vocab.of_buffers(buffers))

    def spelled(self, piece: bytes) -> str:
        """An entry as a reader sees it."""
        return piece.decode(errors="replace")

    def compiled(self, made: Ids | None = None) -> _core.Model:
        """The model as the core runs it: compiled once, and shared. Nothing of it is proved, so `made` is None.

        Raises:
            FormatError: a byte is no entry.
        """
        if self._compiled is None:
            object.__setattr__(self, "_compiled", _core.Model.longest_match(*self.vocab.packed()))
        return cast("_core.Model", self._compiled)


# What an entry of a model with scores is.
NORMAL, USER_DEFINED, UNUSED, BYTE, UNKNOWN = range(5)


@dataclass(frozen=True, eq=False, slots=True)
class Scored:
    """A model whose entries have scores. Its fields are described in `Unigram`."""

    BUFFERS: ClassVar[tuple[str, ...]] = ("pieces", "offsets", "ids", "scores", "kinds", "merges")
    ALGORITHM: ClassVar[str] = ""

    vocab: Vocab
    scores: npt.NDArray[np.float64]
    unk: int
    kinds: npt.NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))
    precision: Literal["float32", "float64"] = "float32"
    merges: npt.NDArray[np.uint32] = field(default_factory=lambda: np.zeros((0, 2), dtype=np.uint32))
    _compiled: _core.Model | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        name = type(self).__name__
        if not isinstance(self.vocab, Vocab):
            raise SubwordValueError(f"the vocab of a {name} must be a Vocab, not {type(self.vocab).__name__}")
        object.__setattr__(self, "unk", integer("unk", self.unk))
        string("precision", self.precision)
        try:
            scores = np.asarray(self.scores, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise SubwordValueError(f"the scores must be an array of numbers: {error}") from None
        kinds = self.kinds if len(self.kinds) else np.zeros(len(self.vocab), dtype=np.uint8)
        kinds = whole_numbers("the kinds", kinds, np.uint8, UNKNOWN, (None,))
        for what, values in (("scores", scores), ("kinds", kinds)):
            if values.shape != (len(self.vocab),):
                raise SubwordValueError(f"{name}: {values.shape} {what} for {len(self.vocab)} entries")
        scores = scores.copy() if scores.flags.writeable else scores
        scores.setflags(write=False)
        object.__setattr__(self, "scores", scores)
        object.__setattr__(self, "kinds", kinds)
        object.__setattr__(self, "merges", whole_numbers("the merges", self.merges, np.uint32, MAX_ID, (None, 2)))
        if len(self.merges) and not isinstance(self, ScoreBPE):
            raise SubwordValueError(f"a {name} has no merges")

    def __reduce__(self) -> Any:
        return type(self), _init_values(self)

    def settings(self) -> dict[str, Any]:
        """What the outline of a spec says of it beside its type."""
        return {"unk": self.unk, "precision": self.precision}

    def buffers(self) -> dict[str, npt.NDArray[Any] | bytes]:
        """The packed buffers by name."""
        return {**self.vocab.buffers(), "scores": self.scores, "kinds": self.kinds, "merges": self.merges}

    @classmethod
    def of_parts(cls, settings: Mapping[str, Any], buffers: Mapping[str, Any]) -> Any:
        """The model that `settings()` and `buffers()` describe."""
        scores, kinds = np.frombuffer(buffers["scores"], dtype="<f8"), np.frombuffer(buffers["kinds"], dtype=np.uint8)
        merges = np.frombuffer(buffers["merges"], dtype="<u4").reshape(-1, 2)
        return cls(Vocab.of_buffers(buffers), scores, settings["unk"], kinds, settings["precision"], merges)

    def spelled(self, piece: bytes) -> str:
        """An entry as files of the vocabulary spell it."""
        return piece.decode(errors="replace")

    def pieces_of(self, kind: int) -> list[str]:
        """The entries of a kind."""
        return [self.spelled(self.vocab.pieces[int(at)]) for at in np.flatnonzero(self.kinds == kind)]

    def compiled(self, made: Ids | None = None) -> _core.Model:
        """The model as the core runs it: compiled once, and shared.

        `made` is what its method `made` gave for the same model before, or what reading the merges has found.

        Raises:
            FormatError: the model contradicts itself.
        """
        if self._compiled is None:
            scores = np.require(self.scores, np.float64, _PLAIN)
            kinds, merges = np.require(self.kinds, np.uint8, _PLAIN), np.require(self.merges, np.uint32, _PLAIN)
            pieces, offsets, ids = self.vocab.packed()
            pairs = merges.reshape(-1, 2)
            compiled = _core.Model.scored(
                pieces,
                offsets,
                ids,
                self.ALGORITHM,
                scores,
                kinds,
                self.precision,
                self.unk,
                pairs,
                None if made is None else np.require(made, np.uint32, _PLAIN),
            )
            object.__setattr__(self, "_compiled", compiled)
        return cast("_core.Model", self._compiled)


class Unigram(Scored):
    """The unigram language model: the segmentation of a piece whose entries' scores have the largest sum.

    `precision` is what scores are added up in: `"float32"`, as SentencePiece does over the whole text, or `"float64"`,
    as HF tokenizers does. `kinds` says what each entry is:

    * `NORMAL` (0).
    * `USER_DEFINED` (1): taken nearly always where it stands, and never rewritten before (SentencePiece's).
    * `UNUSED` (2): never taken.
    * `BYTE` (3): `<0x00>` to `<0xFF>`, all or none: what a character becomes that is no entry.
    * `UNKNOWN` (4): the entry with the id `unk`, which stands for characters that are no entry, a run of them together.
    """

    __slots__ = ()
    ALGORITHM: ClassVar[str] = "unigram"


class ScoreBPE(Scored):
    """SentencePiece's byte-pair encoding: a piece starts as its characters, and of all neighbours that together spell
    an entry those with the highest score merge, the leftmost of equals. Fields and kinds are those of `Unigram`;
    `USER_DEFINED` entries are taken first, the longest, and never merge.

    With `merges`, rows of (left id, right id), only these pairs merge, and the first in the list goes first; scores do
    not count then. That is how HF tokenizers holds such models.
    """

    __slots__ = ()
    ALGORITHM: ClassVar[str] = "merges"


def _init_values(model: Any) -> tuple[Any, ...]:
    return tuple(getattr(model, own.name) for own in fields(model) if own.init)


class Words(Scored):
    """SentencePiece's word model: a text is cut in front of each `▁`, and its words are looked up. Scores do not count.

    Fields and kinds are those of `Unigram`. (A `WordLevel` has an unknown token for each piece, this one for a run.)
    """

    __slots__ = ()
    ALGORITHM: ClassVar[str] = "words"


class Characters(Scored):
    """SentencePiece's character model: each character is looked up, user-defined entries before, the longest first.

    Fields and kinds are those of `Unigram`. Scores do not count.
    """

    __slots__ = ()
    ALGORITHM: ClassVar[str] = "characters"


Model: TypeAlias = BPE | WordPiece | WordLevel | LongestMatch | Unigram | ScoreBPE | Words | Characters
MODELS: dict[str, type[Any]] = {cls.__name__: cls for cls in get_args(Model)}


def bpe_of(model: Model, why: str) -> BPE:
    """The model, if it is a BPE.

    Raises:
        SubwordValueError: it is none; `why` says what only a BPE can do.
    """
    if not isinstance(model, BPE):
        raise SubwordValueError(f"{why}; this is a {type(model).__name__}")
    return model


_WORD_PIECE = ("unk", "continuing_subword_prefix", "max_input_chars_per_word")

_PLAIN: tuple[Literal["C"], Literal["A"]] = ("C", "A")
"""Numbers side by side and aligned, as the core takes them."""

_UNITS: dict[str, Any] = {
    "unit": "byte",
    "end_of_word": "",
    "unk": None,
    "continuing_subword_prefix": "",
    "fuse_unk": False,
    "byte_fallback": False,
}
"""Fields of a BPE that its settings have only where they differ."""
