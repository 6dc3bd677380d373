"""The models as the plain-Python engine runs them: a class each, around the reference algorithms.

Each says what a piece is encoded to, and where in the piece, in bytes, each token ends.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate, pairwise
from typing import Any, Protocol, TypeAlias

from .bpe import reference
from .byte_alphabet import NEVER_IN_UTF8
from .errors import FormatError, SubwordValueError
from .longest_match import reference as longest_match
from .spec import (
    BPE,
    BYTE,
    NORMAL,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    Characters,
    LongestMatch,
    Model,
    ScoreBPE,
    Scored,
    Unigram,
    WordLevel,
    WordPiece,
    Words,
)
from .unigram import reference as unigram
from .unigram.reference import float32
from .wordpiece import reference as wordpiece

IsPassed: TypeAlias = Callable[[], bool]


class ReferenceModel(Protocol):
    """What `ReferenceEngine` asks of a model."""

    missing: bytes
    """Bytes that it cannot encode; none of them stands in well-formed text."""

    def encode(self, text: str, is_passed: IsPassed | None = None) -> Iterator[tuple[int, int]]:
        """The id of each token of a piece, and where it ends, in bytes.

        With `is_passed`, merges are passed over (WordPiece: entries), and none is looked up as a whole.
        """

    def last_merge(self, piece: bytes, id: int) -> tuple[int, int] | None:
        """The ids that the last merge of an entry joins, if one does."""


def reference_model(model: Model) -> ReferenceModel:
    made: ReferenceModel = _CLASSES[type(model)](model)
    return made


class ReferenceBPE:
    """Merges, one after the other."""

    def __init__(self, model: BPE) -> None:
        self.model = model
        self.ids = dict(model.vocab.items())
        self.bytes = {id: piece for piece, id in self.ids.items()}
        units = {bytes([byte]): bytes([byte]) + model.end_of_word.encode() for byte in range(256)}
        lacking = (byte for byte, marked in units.items() if byte not in self.ids or marked not in self.ids)
        self.missing = b"".join(lacking) if model.unit == "byte" else b""
        if set(self.missing) - set(NEVER_IN_UTF8):
            raise FormatError("a byte-level vocabulary needs an entry for each byte that UTF-8 has")
        pairs: list[tuple[int, int]] = [(int(left), int(right)) for left, right in model.merges]
        self.ranks = {pair: rank for rank, pair in enumerate(pairs)}
        self.merges = {(a, b): self.ids[model.joined(self.bytes[a], self.bytes[b])] for a, b in pairs}

    def encode(self, text: str, is_passed: IsPassed | None = None) -> Iterator[tuple[int, int]]:
        data = text_bytes(text)
        if self.model.is_general:
            if is_passed:
                raise SubwordValueError("a BPE with prefixes, byte fallback or fused unknown characters has no dropout")
            yield from self.encode_characters(text)
            return
        if self.model.ignore_merges and data in self.ids and is_passed is None:
            ids = [self.ids[data]]
        elif self.model.priority == "rank":
            ids = reference.encode_by_rank(data, self.ids, is_passed or reference.none)
        else:
            ids = reference.encode(self.units_of(text), self.merges, self.ranks, is_passed or reference.none)
        sizes = {}  # of the characters, by where they start
        at = 0
        for char in text:
            sizes[at] = len(text_bytes(char))
            at += sizes[at]
        end = 0
        for number, id in enumerate(ids, 1):
            end += sizes[end] if id == self.model.unk else len(self.bytes[id])
            yield id, len(data) if number == len(ids) else end  # the marker covers nothing

    def encode_characters(self, text: str) -> list[tuple[int, int]]:
        """With all that HF tokenizers' BPE can be set to. Parts are tokens, and how many bytes they stand for."""
        model, data = self.model, text_bytes(text)
        if model.ignore_merges and data in self.ids:
            return [(self.ids[data], len(data))]
        parts: list[tuple[int, int]] = []
        unknown: list[int] = []  # sizes of unknown characters; they wait for one that is known, and bytes pass them
        dropped = 0
        for at, char in enumerate(text):
            size = len(text_bytes(char))
            unit = (model.continuing_subword_prefix if at else "") + char
            entry = text_bytes(unit + (model.end_of_word if at == len(text) - 1 else ""))
            fallback = [self.ids.get(f"<0x{byte:02X}>".encode()) for byte in entry] if model.byte_fallback else [None]
            if entry in self.ids:
                parts += [(model.unk or 0, sum(unknown))] if unknown else []
                parts.append((self.ids[entry], size + dropped))
                unknown, dropped = [], 0
            elif None not in fallback:
                last = len(fallback) - 1
                sizes = [int(number < size) for number in range(last)] + [max(size - last, 0)]
                parts += [(id, own) for id, own in zip(fallback, sizes, strict=True) if id is not None]
            elif model.unk is None:
                dropped += size
            elif unknown and not model.fuse_unk:
                parts.append((model.unk, sum(unknown)))
                unknown = [size]
            else:
                unknown.append(size)
        parts += [(model.unk or 0, sum(unknown))] if unknown else []
        if parts:
            parts[-1] = (parts[-1][0], parts[-1][1] + dropped)
        while True:
            pairs = [((left, right), at) for at, ((left, _), (right, _)) in enumerate(pairwise(parts))]
            found = min(((self.ranks[pair], at) for pair, at in pairs if pair in self.ranks), default=None)
            if found is None:
                break
            (left, left_size), (right, right_size) = parts[found[1] : found[1] + 2]
            parts[found[1] : found[1] + 2] = [(self.merges[left, right], left_size + right_size)]
        ends = accumulate(size for _, size in parts)
        return [(id, min(end, len(data))) for (id, _), end in zip(parts, ends, strict=True)]

    def units_of_entry(self, entry: bytes) -> list[int]:
        """What a piece of which `entry` would be all, or the start, starts as."""
        marker = self.model.end_of_word.encode()
        ends = bool(marker) and entry.endswith(marker)
        stem = entry.removesuffix(marker) if ends else entry
        return self.units_of(stem.decode("utf-8", "surrogateescape"), ends) if stem else []

    def units_of(self, text: str, ends: bool = True) -> list[int]:
        """The ids that a piece starts as: of its bytes or characters, the last with the marker behind it if it ends."""
        model = self.model
        chars = [text_bytes(char) for char in text]
        units = chars if model.unit == "character" else [bytes([byte]) for byte in b"".join(chars)]
        units[-1] += model.end_of_word.encode() if ends else b""
        return [self.ids[unit] if model.unk is None else self.ids.get(unit, model.unk) for unit in units]

    def last_merge(self, piece: bytes, id: int) -> tuple[int, int] | None:
        """Without the rules that make it, an entry comes down to the two parts that one of them would join.

        Of a model that is general, the first rule that makes it.
        """
        if self.model.is_general:
            return next((pair for pair in self.ranks if self.merges[pair] == id), None)
        units = self.units_of_entry(piece)
        if not 1 < len(units) <= 4096:
            return None
        parts: list[int]
        if self.model.priority == "rank":
            known = {entry: id for entry, id in self.ids.items() if entry != piece}
            parts = reference.encode_by_rank(piece, known)
            return (parts[0], parts[1]) if len(parts) == 2 else None
        rules = {pair: made for pair, made in self.merges.items() if made != id}
        parts = reference.encode(units, rules, self.ranks)
        if len(parts) != 2 or self.merges.get((parts[0], parts[1])) != id:
            return None
        return parts[0], parts[1]


class ReferenceWordPiece:
    """The longest entry, again and again."""

    missing = b""

    def __init__(self, model: WordPiece) -> None:
        self.model = model
        self.ids = dict(model.vocab.items())
        self.bytes = {id: piece for piece, id in self.ids.items()}

    def encode(self, text: str, is_passed: IsPassed | None = None) -> Iterator[tuple[int, int]]:
        model, data = self.model, text_bytes(text)
        prefix = model.continuing_subword_prefix.encode()
        entries = [self.bytes[model.unk]]
        ends = list(accumulate(len(text_bytes(char)) for char in text))

        def is_left_out(start: int, end: int) -> bool:
            # never the entry of a single character
            return is_passed is not None and end > ends[bisect_right(ends, start)] and is_passed()

        if len(text) <= model.max_input_chars_per_word:
            unk = self.bytes[model.unk]
            entries = wordpiece.encode(data, self.ids, unk, prefix, max_chars=len(data), is_passed=is_left_out)
        end = 0
        for number, entry in enumerate(entries, 1):
            end += len(entry) - (len(prefix) if end else 0)
            yield self.ids[entry], len(data) if number == len(entries) else end

    def last_merge(self, piece: bytes, id: int) -> tuple[int, int] | None:
        return None


class ReferenceScored:
    """The best segmentation, merges by score, or what is looked up; then what unknown characters become."""

    missing = b""

    def __init__(self, model: Scored) -> None:
        self.model = model
        self.scores: dict[str, float] = {}  # of what text can spell
        self.user_defined: list[str] = []
        self.bytes: dict[int, int] = {}
        single = model.precision == "float32"
        rows = list(zip(model.vocab.items(), model.scores.tolist(), model.kinds.tolist(), strict=True))
        normal = [score for _, score, kind in rows if kind == NORMAL or not single]
        self.unk_score = min(normal, default=float32(3.4028234663852886e38)) - 10.0
        if single:
            self.unk_score = float32(self.unk_score)
        self.ids: dict[str, int] = {}
        spelled = {id: piece.decode("utf-8", "surrogateescape") for (piece, id), _, _ in rows}
        self.spelled_unk = None if single else spelled[model.unk]  # tokenizers takes it from text
        self.ranks = {(spelled[int(a)], spelled[int(b)]): rank for rank, (a, b) in enumerate(model.merges)}
        for (piece, id), score, kind in rows:
            text = piece.decode("utf-8", "surrogateescape")
            if kind == BYTE:
                self.bytes[int(piece[3:5], 16)] = id
            if isinstance(model, (Words, Characters)) and kind != UNKNOWN:
                self.ids[text] = id
            if kind == UNUSED or (single and kind in (BYTE, UNKNOWN)):
                continue
            if kind == USER_DEFINED:
                self.user_defined.append(text)
                score = float32(0.1 * (len(piece) - 1)) if single else score
            self.scores[text] = score
            self.ids[text] = id

    def encode(self, text: str, is_passed: IsPassed | None = None) -> Iterator[tuple[int, int]]:
        if is_passed and not isinstance(self.model, ScoreBPE):
            raise SubwordValueError(f"a {type(self.model).__name__} merges nothing that dropout could pass over")
        ways = {Unigram: self.segment, Words: self.words, Characters: self.characters}
        way = ways.get(type(self.model))
        pieces = way(text) if way else self.merge(text, is_passed or reference.none)
        end, unknown = 0, ""  # the unknown token itself, too, joins what is unknown beside it
        for piece in pieces:
            start, end = end, end + len(text_bytes(piece))
            if self.ids.get(piece, self.model.unk) == self.model.unk:
                unknown += piece
                continue
            yield from self.unknown(unknown, start)
            yield self.ids[piece], end
            unknown = ""
        yield from self.unknown(unknown, end)

    def unknown(self, text: str, end: int) -> Iterator[tuple[int, int]]:
        """What becomes of characters without an entry, which end at a place."""
        data = text_bytes(text)
        if data and (not self.bytes or text == self.spelled_unk):
            yield self.model.unk, end
        elif data:
            yield from ((self.bytes[byte], end - len(data) + at) for at, byte in enumerate(data, 1))

    def segment(self, text: str) -> list[str]:
        return unigram.viterbi(text, self.scores, self.model.precision, self.unk_score)[0]

    def words(self, text: str) -> list[str]:
        """Cut in front of each `▁`."""
        first, *others = text.split("▁")
        return [*([first] if first else []), *(f"▁{word}" for word in others)]

    def characters(self, text: str) -> list[str]:
        """Characters and user-defined entries."""
        symbols, at = list[str](), 0
        while at < len(text):
            found = max((entry for entry in self.user_defined if text.startswith(entry, at)), key=len, default="")
            symbols.append(found or text[at])
            at += len(symbols[-1])
        return symbols

    def merge(self, text: str, is_passed: IsPassed) -> list[str]:
        """The best pair becomes one, again and again; user-defined entries do not merge."""

        def worth(left: str, right: str) -> float | None:
            if self.ranks:
                return -self.ranks[left, right] if (left, right) in self.ranks else None
            return self.scores.get(left + right)

        symbols = self.characters(text)
        frozen = [symbol in self.user_defined for symbol in symbols]
        passed = [False] * len(text)  # the pair at each place, as long as neither of the two has changed
        while True:
            pairs = [
                (score, -place)
                for place, pair in enumerate(pairwise(symbols))
                if (score := worth(*pair)) is not None and not frozen[place] and not frozen[place + 1]
                if not passed[place]
            ]
            if not pairs:
                return symbols
            place = -max(pairs)[1]
            passed[place] = is_passed()
            if passed[place]:
                continue
            symbols[place : place + 2] = [symbols[place] + symbols[place + 1]]
            del frozen[place + 1], passed[place]
            passed[place] = passed[max(place - 1, 0)] = False

    def last_merge(self, piece: bytes, id: int) -> tuple[int, int] | None:
        return None


class ReferenceWordLevel:
    """The piece itself, or what is unknown."""

    missing = b""

    def __init__(self, model: WordLevel) -> None:
        self.unk = model.unk
        self.ids = dict(model.vocab.items())

    def encode(self, text: str, is_passed: IsPassed | None = None) -> Iterator[tuple[int, int]]:
        if is_passed:
            raise SubwordValueError("words are looked up: there is nothing to pass over")
        data = text_bytes(text)
        yield self.ids.get(data, self.unk), len(data)

    def last_merge(self, piece: bytes, id: int) -> tuple[int, int] | None:
        return None


class ReferenceLongestMatch:
    """The longest entry, again and again."""

    missing = b""

    def __init__(self, model: LongestMatch) -> None:
        self.ids = dict(model.vocab.items())
        self.longest = max(map(len, self.ids))
        lacking = [byte for byte in range(256) if bytes([byte]) not in self.ids]
        if lacking:
            raise FormatError(f"no entry for the byte {lacking[0]:#04x}, so it could not be encoded")

    def encode(self, text: str, is_passed: IsPassed | None = None) -> Iterator[tuple[int, int]]:
        if is_passed:
            raise SubwordValueError("nothing is merged: there is nothing to pass over")
        end = 0
        for entry in longest_match.encode(text_bytes(text), self.ids, self.longest):
            end += len(entry)
            yield self.ids[entry], end

    def last_merge(self, piece: bytes, id: int) -> tuple[int, int] | None:
        return None


_CLASSES: dict[type, Any] = {
    BPE: ReferenceBPE,
    WordPiece: ReferenceWordPiece,
    WordLevel: ReferenceWordLevel,
    LongestMatch: ReferenceLongestMatch,
    Unigram: ReferenceScored,
    ScoreBPE: ReferenceScored,
    Words: ReferenceScored,
    Characters: ReferenceScored,
}


def text_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
