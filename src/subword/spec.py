"""What a tokenizer is, as frozen data: an ordered list of stages, a model, extra tokens, and a template.

Text passes the stages in their order; the model turns each piece that the last stage yields into ids; the template
adds control tokens around them. Every file format reads into a `Spec` and writes from one, and the core compiles a
`Spec` once into an engine. Vocabulary and merges are packed buffers, not hundreds of thousands of Python objects.

    raw text -> MatchTokens -> Normalize -> Lowercase -> MatchTokens(normalized=True) -> PrefixSpace -> Digits -> Split
        -> BPE -> Template
"""

from __future__ import annotations

import hashlib
import json
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt

from . import _core
from .arguments import flag, integer, list_of, string, token_content
from .errors import SubwordValueError

Ids: TypeAlias = "npt.NDArray[np.uint32]"

MAX_ID = 2**31 - 1
"""The largest id. Above it, other tools' signed 32-bit ids would wrap."""

# ======================== stages ========================


def _check_fields(row: Any) -> None:
    """Refuse values of other types than the fields of a stage or a token say; NumPy's scalars become Python's."""
    for name, own in row.__dataclass_fields__.items():
        given = getattr(row, name)
        check: Callable[[str, Any], Any] = _CHECKS.get(own.type, string)
        checked = check(f"{type(row).__name__}.{name}", given)
        if checked is not given:
            object.__setattr__(row, name, checked)


_CHECKS: dict[Any, Callable[[str, Any], Any]] = {"bool": flag, "int": integer}


@dataclass(frozen=True, slots=True)
class MatchTokens:
    """Cut out the extra tokens that are taken from the text as it stands here.

    Those whose `normalized` flag equals this stage's are matched, the leftmost first and of these the longest.
    """

    normalized: bool = False

    def __post_init__(self) -> None:
        _check_fields(self)


@dataclass(frozen=True, slots=True)
class Normalize:
    """Rewrite the text into a Unicode normalization form, by the tables of the Unicode version `unicode`."""

    form: Literal["NFC", "NFD", "NFKC", "NFKD"]
    unicode: str = "9.0"

    def __post_init__(self) -> None:
        _check_fields(self)


@dataclass(frozen=True, slots=True)
class Lowercase:
    """Rewrite the text into lower case, by the full mappings of the Unicode version `unicode`.

    With `final_sigma`, a capital sigma at the end of a word becomes `ς`, as Python's `str.lower` has it; without,
    characters do not look at each other, as in HF tokenizers.
    """

    final_sigma: bool = True
    unicode: str = "16.0"

    def __post_init__(self) -> None:
        _check_fields(self)


@dataclass(frozen=True, slots=True)
class PrefixSpace:
    """Put a space in front of each stretch of text between extra tokens that does not start with one."""


@dataclass(frozen=True, slots=True)
class Digits:
    """Cut runs of numbers (`\\p{N}` of the Unicode version `unicode`) apart from the rest, and into groups.

    * `"one"`: each number alone.
    * `"three-left"`: up to three from the left, `123|456|7`.
    * `"three-right"`: three from the right, so that place values line up, `1|234|567`.
    """

    grouping: Literal["one", "three-left", "three-right"]
    unicode: str = "16.0"

    def __post_init__(self) -> None:
        _check_fields(self)


@dataclass(frozen=True, slots=True)
class Split:
    """Cut the text into pieces with a row of `patterns.py`, by the classes of the Unicode version `unicode`."""

    pattern: str
    unicode: str = "16.0"

    def __post_init__(self) -> None:
        _check_fields(self)


@dataclass(frozen=True, slots=True)
class SplitRegex:
    """Cut the text into pieces with a regular expression of one's own, by the classes of the Unicode version `unicode`.

    Each match is a piece, and so is what no match covers; a match of nothing is a boundary. `syntax` is that of
    `"tiktoken"` (fancy-regex) or `"oniguruma"` (HF tokenizers), with their differences: in Oniguruma `$` also matches
    before a newline and `{1,3}+` repeats. It runs in linear time: the regular subset, looks ahead at one character, and
    possessive quantifiers that are proved to change nothing. Anything else needs `allow_backtracking`, and gets a
    budget of steps (10,000 and 100 a byte), beyond which encoding fails with a `SubwordValueError`.
    """

    regex: str
    syntax: Literal["tiktoken", "oniguruma"] = "tiktoken"
    allow_backtracking: bool = False
    unicode: str = "16.0"

    def __post_init__(self) -> None:
        _check_fields(self)


Stage: TypeAlias = MatchTokens | Normalize | Lowercase | PrefixSpace | Digits | Split | SplitRegex
STAGES: dict[str, type[Any]] = {
    cls.__name__: cls for cls in (MatchTokens, Normalize, Lowercase, PrefixSpace, Digits, Split, SplitRegex)
}

# ======================== vocabulary and model ========================


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
    """

    vocab: Vocab
    merges: npt.NDArray[np.uint32] = field(default_factory=lambda: np.zeros((0, 2), dtype=np.uint32))
    priority: Literal["merges", "rank"] = "merges"
    ignore_merges: bool = False
    unit: Literal["byte", "character"] = "byte"
    end_of_word: str = ""
    unk: int | None = None
    _compiled: _core.Model | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.vocab, Vocab):
            raise SubwordValueError(f"the vocab of a BPE must be a Vocab, not {type(self.vocab).__name__}")
        for name in ("priority", "unit", "end_of_word"):
            string(name, getattr(self, name))
        if self.unk is not None:
            object.__setattr__(self, "unk", integer("unk", self.unk))
        object.__setattr__(self, "ignore_merges", flag("ignore_merges", self.ignore_merges))
        object.__setattr__(self, "merges", whole_numbers("the merges", self.merges, np.uint32, MAX_ID, (None, 2)))

    def __reduce__(self) -> Any:
        return BPE, tuple(getattr(self, name) for name, own in self.__dataclass_fields__.items() if own.init)

    def compiled(self, made: Ids | None = None) -> _core.Model:
        """The model as the core runs it: compiled once, and shared by all tokenizers that have it.

        `made` is what its method `made` gave for the same model before; with it nothing is proved again.

        Raises:
            FormatError: the model contradicts itself.
        """
        if self._compiled is None:
            compiled = _core.Model(
                self.vocab.pieces.data,
                np.require(self.vocab.pieces.offsets, np.uint64, _PLAIN),
                np.require(self.vocab.ids, np.uint32, _PLAIN),
                np.require(self.merges, np.uint32, _PLAIN).reshape(-1, 2),
                self.priority,
                self.ignore_merges,
                (self.unit, self.end_of_word, self.unk),
                None if made is None else np.require(made, np.uint32, _PLAIN),
            )
            object.__setattr__(self, "_compiled", compiled)
        return cast("_core.Model", self._compiled)


Model: TypeAlias = BPE

_PLAIN: tuple[Literal["C"], Literal["A"]] = ("C", "A")
"""Numbers side by side and aligned, as the core takes them."""

_UNITS = {"unit": "byte", "end_of_word": "", "unk": None}
"""Fields of a BPE that the outline has only where they differ: older files have none of them."""

# ======================== extra tokens and template ========================

Kind: TypeAlias = Literal["special", "added", "unmatchable"]


@dataclass(frozen=True, slots=True)
class ExtraToken:
    """A token beside the model's own entries.

    * `special`: control structure. Taken from text only where a call allows it; never in `encode_ordinary`.
    * `added`: the user's own. Always taken from text.
    * `unmatchable`: no text can give it; it only decodes.

    `single_word`, `lstrip` and `rstrip` are HF's flags: match only between characters that are not word characters;
    swallow the white space on the left, on the right. `normalized` says at which `MatchTokens` stage it is taken.
    """

    id: int
    content: str
    kind: Kind = "special"
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = False

    def __post_init__(self) -> None:
        _check_fields(self)
        token_content(self.content)
        if self.id > MAX_ID:
            raise SubwordValueError(f"the id {self.id} of the token {self.content!r} is beyond the largest, {MAX_ID}")


@dataclass(frozen=True, slots=True)
class Template:
    """What `add_special_tokens=True` puts around text: ids, and `"A"` and `"B"` where the texts go."""

    single: tuple[int | str, ...] = ("A",)
    pair: tuple[int | str, ...] = ("A", "B")

    def __post_init__(self) -> None:
        for name, texts in (("single", ["A"]), ("pair", ["A", "B"])):
            items = tuple(map(_template_item, list_of(f"Template.{name}", getattr(self, name))))
            if sorted(item for item in items if isinstance(item, str)) != texts:
                wanted = '"A" and "B" once each' if name == "pair" else '"A" once and no "B"'
                raise SubwordValueError(f"Template.{name} must hold {wanted}, not {list(items)}")
            object.__setattr__(self, name, items)


def _template_item(item: Any) -> int | str:
    if isinstance(item, str) and item in ("A", "B"):
        return item
    try:
        return integer("an id", item)
    except SubwordValueError:
        raise SubwordValueError(f'a template holds ids, "A" and "B", not {item!r}') from None


@dataclass(frozen=True, slots=True)
class Decode:
    """How the end-of-word marker of a model decodes: to `end_of_word`; with `trim`, to nothing behind the last id."""

    end_of_word: str = " "
    trim: bool = False

    def __post_init__(self) -> None:
        _check_fields(self)


# ======================== the whole ========================


@dataclass(frozen=True, eq=False)
class Spec:
    """A tokenizer as a value. Two specs are equal when their fingerprints are.

    `roles` names the ids that stand for `bos`, `eos`, `pad`, `unk` and others; like `notes` (what a trainer or a file
    says about itself) and `chat` (Jinja chat templates by their names; most often there is one, `default`) they change
    no id of a text and are not part of the fingerprint. All are read-only; `replace` makes others.
    """

    stages: tuple[Stage, ...]
    model: Model
    extra: tuple[ExtraToken, ...] = ()
    template: Template = Template()
    decode: Decode = Decode()
    roles: Mapping[str, int] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)
    chat: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, kinds in (("stages", tuple(STAGES.values())), ("extra", (ExtraToken,))):
            items = tuple(list_of(f"Spec.{name}", getattr(self, name)))
            for item in items:
                if not isinstance(item, kinds):
                    wanted = " or ".join(kind.__name__ for kind in kinds)
                    raise SubwordValueError(f"Spec.{name} must hold {wanted}, not {item!r}")
            object.__setattr__(self, name, items)
        for name, kind in (
            ("model", BPE),
            ("template", Template),
            ("decode", Decode),
            ("roles", Mapping),
            ("notes", Mapping),
            ("chat", Mapping),
        ):
            if not isinstance(getattr(self, name), kind):
                raise SubwordValueError(f"Spec.{name} must be a {kind.__name__}, not {getattr(self, name)!r}")
        roles = {string("a role", role): integer(f"Spec.roles[{role!r}]", id) for role, id in self.roles.items()}
        object.__setattr__(self, "roles", MappingProxyType(roles))
        object.__setattr__(self, "notes", MappingProxyType(dict(self.notes)))
        chat = {string("a name", name): string(f"Spec.chat[{name!r}]", text) for name, text in self.chat.items()}
        object.__setattr__(self, "chat", MappingProxyType(chat))

    def __reduce__(self) -> Any:  # read-only views cannot be pickled
        values = (getattr(self, name) for name in self.__dataclass_fields__)
        return Spec, tuple(dict(value) if isinstance(value, MappingProxyType) else value for value in values)

    def outline(self) -> dict[str, Any]:
        """Everything but the packed buffers, as plain data that JSON can hold; `from_outline` is its inverse."""
        return {
            "stages": [{"stage": type(stage).__name__, **asdict(stage)} for stage in self.stages],
            "model": {
                "type": type(self.model).__name__,
                "priority": self.model.priority,
                "ignore_merges": self.model.ignore_merges,
                **{name: value for name in _UNITS if (value := getattr(self.model, name)) != _UNITS[name]},
            },
            "extra": [asdict(token) for token in self.extra],
            "template": {"single": list(self.template.single), "pair": list(self.template.pair)},
            **({} if self.decode == Decode() else {"decode": asdict(self.decode)}),
        }

    def buffers(self) -> dict[str, bytes]:
        """The packed buffers by name, little-endian."""
        vocab = self.model.vocab
        return {
            "pieces": vocab.pieces.data,
            "offsets": vocab.pieces.offsets.astype("<u8").tobytes(),
            "ids": vocab.ids.astype("<u4").tobytes(),
            "merges": self.model.merges.astype("<u4").tobytes(),
        }

    @classmethod
    def from_outline(
        cls,
        outline: dict[str, Any],
        buffers: Mapping[str, Any],
        roles: dict[str, int] | None = None,
        notes: dict[str, Any] | None = None,
        chat: dict[str, str] | None = None,
    ) -> Spec:
        """The spec that `outline()` and `buffers()` describe. Raises KeyError, TypeError or ValueError on others.

        The pieces are taken as bytes, the numbers from any buffer; what is read-only is not copied.
        """
        stages = tuple(
            STAGES[row["stage"]](**{name: value for name, value in row.items() if name != "stage"})
            for row in outline["stages"]
        )
        if outline["model"]["type"] != "BPE":
            raise SubwordValueError(f"unknown model {outline['model']['type']!r}")
        model = BPE(
            vocab=Vocab(
                Packed(buffers["pieces"], np.frombuffer(buffers["offsets"], dtype="<u8")),
                np.frombuffer(buffers["ids"], dtype="<u4"),
            ),
            merges=np.frombuffer(buffers["merges"], dtype="<u4").reshape(-1, 2),
            priority=outline["model"]["priority"],
            ignore_merges=outline["model"]["ignore_merges"],
            **{name: outline["model"].get(name, value) for name, value in _UNITS.items()},
        )
        return cls(
            stages=stages,
            model=model,
            extra=tuple(ExtraToken(**row) for row in outline["extra"]),
            template=Template(tuple(outline["template"]["single"]), tuple(outline["template"]["pair"])),
            decode=Decode(**outline.get("decode", {})),
            roles=roles or {},
            notes=notes or {},
            chat=chat or {},
        )

    @cached_property
    def fingerprint(self) -> str:
        """64 hexadecimal digits that are equal exactly when two tokenizers mean the same: a SHA-256 of the content."""
        digest = hashlib.sha256(json.dumps(self.outline(), sort_keys=True, ensure_ascii=True).encode())
        for name, buffer in self.buffers().items():
            digest.update(f"\n{name} {len(buffer)}\n".encode())
            digest.update(buffer)
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        return self.fingerprint == other.fingerprint if isinstance(other, Spec) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def replace(self, **changes: Any) -> Spec:
        """A spec with some fields changed."""
        try:
            return replace(self, **changes)
        except TypeError as error:
            raise SubwordValueError(f"a Spec cannot be changed so: {error}") from None
