"""From a `Spec` to something that runs: the core's engine, or the plain-Python one that it is tested against.

Both have the same methods (`_core.pyi` lists them); a `Tokenizer` does not know which it holds.
"""

from __future__ import annotations

import operator
import re
import string
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _core, charsmap, patterns
from .arguments import list_of
from .bpe import reference as bpe
from .byte_alphabet import to_alphabet
from .errors import FormatError, SpecialTokenError, SubwordValueError, UnknownTokenError
from .reference_models import reference_model
from .reference_stages import CUTS, REWRITES, cleaned, decode_steps
from .spec import (
    BPE,
    BYTE,
    USER_DEFINED,
    ByteAlphabet,
    CleanText,
    Decode,
    DecodeSentencePiece,
    DecodeSteps,
    DecodeWordPiece,
    Decoding,
    Digits,
    ExtraToken,
    Lowercase,
    MatchTokens,
    Metaspace,
    Model,
    Nmt,
    Normalize,
    PadChinese,
    Precompiled,
    PrefixSpace,
    Replace,
    ReplaceRegex,
    Scored,
    SentencePiece,
    Spec,
    Split,
    SplitAt,
    SplitLength,
    SplitPunctuation,
    SplitRegex,
    SplitScripts,
    Stage,
    Strip,
    StripAccents,
    StripMarks,
)

Engine = _core.Engine

# Where chunks may end, the finest first.
ENDS = ("character", "word", "sentence", "paragraph")


def stage_rows(stages: Iterable[Stage], protected: Sequence[str] = ()) -> list[tuple[str, ...]]:
    """Stages as the core takes them: the name, then the settings in their order, as text.

    Behind those of a `SentencePiece` stage stands what it leaves alone: the user-defined entries of the model.

    A `Split` becomes a row for each expression of its pattern: `Split` with the name of the scanner that the core has
    for it, or `SplitRegex`, whose last setting is whether what no match covers is dropped.
    """
    rows: list[tuple[str, ...]] = []
    for stage in stages:
        if isinstance(stage, Split):
            pattern = patterns.get_pattern(stage.pattern)
            for plain in pattern.steps:
                scanner = patterns.scanner_of(plain)
                if scanner:
                    rows.append(("Split", scanner, stage.unicode))
                else:
                    regex = SplitRegex(plain, "oniguruma", unicode=stage.unicode)
                    rows.append((*_row(regex), "true" if pattern.drops else "false"))
        elif isinstance(stage, SplitAt) and (stage.kind, stage.behavior, stage.invert) == ("regex", "removed", True):
            # What the matches leave out is dropped: of that more is known than of other ways to cut.
            rows.append(("SplitRegex", stage.pattern, "oniguruma", "true", stage.unicode, "true"))
        elif isinstance(stage, SentencePiece):
            rows.append((*_row(stage), *protected))
        else:
            rows.append((*_row(stage), "false") if isinstance(stage, SplitRegex) else _row(stage))
    return rows


def _user_defined(model: Model) -> list[str]:
    return model.pieces_of(USER_DEFINED) if isinstance(model, Scored) else []


def _row(stage: Stage | Decoding) -> tuple[str, ...]:
    """Its name, and its settings as text."""
    if isinstance(stage, DecodeSteps):
        return "DecodeSteps", *(setting for step in stage.steps for setting in step)
    values = (getattr(stage, name) for name in stage.__dataclass_fields__)
    return type(stage).__name__, *(str(value).lower() if isinstance(value, (bool, int)) else value for value in values)


def extra_rows(extra: Iterable[ExtraToken]) -> list[tuple[int, str, str, bool, bool, bool, bool]]:
    return [(t.id, t.content, t.kind, t.single_word, t.lstrip, t.rstrip, t.normalized) for t in extra]


def around(items: Sequence[int | str]) -> tuple[list[int], list[int]]:
    """The ids before and after the text in a template for one text."""
    at = items.index("A")
    return [int(id) for id in items[:at]], [int(id) for id in items[at + 1 :]]


def compile_spec(spec: Spec) -> Engine:
    """The core's engine for a spec.

    Raises:
        FormatError: the spec contradicts itself.
    """
    try:
        engine = _core.Engine(
            stage_rows(spec.stages, _user_defined(spec.model)),
            spec.model.compiled(),
            extra_rows(spec.extra),
            around(spec.template.single),
            _row(spec.decode),
        )
    except (TypeError, OverflowError, UnicodeError) as error:  # a value of another type than the fields say
        raise FormatError(f"the spec holds a value that does not belong there: {error}") from error
    for id in spec.template.pair:
        if not isinstance(id, str):
            try:
                engine.token_bytes(id)
            except UnknownTokenError as error:
                raise FormatError(f"the template for two texts: {error}") from None
    return engine


# ======================== the same in plain Python =================
Span = tuple[int, int]


class Segment(NamedTuple):
    """Text on its way through the stages: its characters and, for each, the span of bytes it came from.

    Ill-formed bytes are surrogates, one each, as Python's "surrogateescape" reads them.
    """

    text: str
    spans: list[Span]


class ReferencePolicy(NamedTuple):
    allowed: frozenset[str]
    disallowed: frozenset[str]


class ReferenceEngine:
    """Runs a spec with the regular expressions and the reference algorithms themselves. Slow, and meant to be read."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.model = reference_model(spec.model)
        self.ids: dict[bytes, int] = dict(spec.model.vocab.items())
        self.bytes: dict[int, bytes] = {id: piece for piece, id in self.ids.items()}
        self.template = around(spec.template.single)
        specials = frozenset(token.content for token in spec.extra if token.kind == "special")
        self.default_policy = ReferencePolicy(frozenset(), specials)
        self.ordinary_policy = ReferencePolicy(frozenset(), frozenset())
        # One that is taken from normalized text decodes to what it is taken as, as in HF tokenizers.
        shown = ((t.id, self.normalized(t.content) if t.normalized else t.content) for t in spec.extra)
        self.bytes.update((id, content.encode()) for id, content in shown)
        self.n_vocab = max(self.bytes, default=-1) + 1

    def plan(self) -> list[tuple[str, str, str]]:
        return [("every step", "in plain Python", 'the tokenizer was made with engine="reference"')]

    def policy(self, allowed: Iterable[str], disallowed: Iterable[str]) -> ReferencePolicy:
        return ReferencePolicy(frozenset(allowed), frozenset(disallowed))

    # ---- the stages ----

    def tokens(self, text: Any, policy: ReferencePolicy, add_special_tokens: bool = False) -> list[tuple[int, Span]]:
        """Ids and byte spans."""
        data = text_bytes(text)
        self.check(data, policy)
        tokens: list[tuple[int, Span]] = []
        for unit in self.units(data, policy):
            if isinstance(unit, Segment):
                tokens += self.encode_piece(unit, data)
            else:
                tokens.append((unit[0].id, unit[1]))
        if add_special_tokens:
            before, after = self.template
            end = len(data)
            tokens = [(id, (0, 0)) for id in before] + tokens + [(id, (end, end)) for id in after]
        return tokens

    def units(self, data: bytes, policy: ReferencePolicy) -> Iterator[Segment | tuple[ExtraToken, Span]]:
        """Pieces, and the extra tokens between them."""
        text = data.decode("utf-8", "surrogateescape")
        spans, at = [], 0
        for char in text:
            size = len(char.encode("utf-8", "surrogateescape"))
            spans.append((at, at + size))
            at += size
        units: list[Segment | tuple[ExtraToken, Span]] = [Segment(text, spans)]
        for stage in self.spec.stages:
            run = self.stage(stage, policy, data)
            units = [out for unit in units for out in (run(unit) if isinstance(unit, Segment) else [unit])]
        return (unit for unit in units if not isinstance(unit, Segment) or unit.text)

    def stage(self, stage: Stage, policy: ReferencePolicy, data: bytes) -> Callable[[Segment], Iterable[Any]]:
        if isinstance(stage, MatchTokens):
            return lambda segment: self.match(segment, policy, stage.normalized)
        if isinstance(stage, Normalize):
            return lambda segment: [normalize(segment, stage)]
        if isinstance(stage, Lowercase):
            return lambda segment: [lowercase(segment, stage)]
        if isinstance(stage, (SplitAt, SplitScripts, SplitLength)):
            return lambda segment: (
                Segment(segment.text[a:b], segment.spans[a:b]) for a, b in CUTS[type(stage)](stage, segment.text)
            )
        if isinstance(stage, ByteAlphabet):
            return lambda segment: [in_alphabet(segment, data)]
        if isinstance(stage, (Replace, ReplaceRegex, Nmt)):
            return lambda segment: made_of(segment, REWRITES[type(stage)](stage, segment.text))
        if isinstance(stage, (Precompiled, StripMarks, Strip, Metaspace)):
            return lambda segment: made_of(segment, text_parts(segment, stage))
        if isinstance(stage, SentencePiece):
            return lambda segment: [sentencepiece(segment, stage, _user_defined(self.spec.model))]
        if isinstance(stage, (CleanText, PadChinese, StripAccents)):
            return lambda segment: [rewrite(segment, CHARACTERS[type(stage)])]
        if isinstance(stage, SplitPunctuation):
            return lambda segment: cut(segment, split_punctuation(segment.text))
        if isinstance(stage, PrefixSpace):
            return lambda segment: [prefix_space(segment)]
        if isinstance(stage, Digits):
            return lambda segment: cut(segment, patterns.split_digits(stage.grouping, segment.text, stage.unicode))
        if isinstance(stage, SplitRegex):
            return lambda segment: cut(segment, patterns.split_by(stage.regex, stage.syntax, segment.text))
        return lambda segment: cut(segment, patterns.split(stage.pattern, segment.text))

    def check(self, data: bytes, policy: ReferencePolicy) -> None:
        for at, byte in enumerate(data if self.model.missing else b""):
            if byte in self.model.missing:
                raise SubwordValueError(f"byte {at} of the text is 0x{byte:02X}, for which there is no entry")
        text = data.decode("utf-8", "surrogateescape")
        found = [(text.find(token), -len(token), token) for token in policy.disallowed if token and token in text]
        if found:
            at, _, token = min(found)
            raise SpecialTokenError(f"the text spells the special token {token!r} at character {at}")

    def match(
        self, segment: Segment, policy: ReferencePolicy, normalized: bool
    ) -> Iterator[Segment | tuple[ExtraToken, Span]]:
        text, spans = segment
        taken = {}
        for token in self.spec.extra:
            if token.normalized == normalized and (token.kind == "added" or token.content in policy.allowed):
                content = self.normalized(token.content) if normalized else token.content
                if content:
                    taken[content] = token
        start = 0
        longest_first = "|".join(re.escape(content) for content in sorted(taken, key=len, reverse=True))
        for hit in re.finditer(longest_first, text) if taken else ():
            token, (left, right) = taken[hit[0]], hit.span()
            if token.single_word and (is_word(text[max(left - 1, 0) : left]) or is_word(text[right : right + 1])):
                continue
            left, right = max(left, start), max(right, start)  # the token before may have swallowed white space here
            while token.lstrip and left > start and is_space(text[left - 1]):
                left -= 1
            while token.rstrip and right < len(text) and is_space(text[right]):
                right += 1
            if left > start:
                yield Segment(text[start:left], spans[start:left])
            yield token, (spans[left][0], spans[right - 1][1]) if left < right else (spans[left - 1][1],) * 2
            start = right
        if start < len(text):
            yield Segment(text[start:], spans[start:])

    def encode_with_dropout(self, text: Any, policy: Any, dropout: float, seed: int, n: int) -> list[list[int]]:
        data, is_passed = text_bytes(text), bpe.dropout(dropout, bpe.random_units(seed)) if dropout else None
        self.check(data, policy)
        draws = list[list[int]]()
        for _ in range(n):
            draws.append([])
            for unit in self.units(data, policy):
                tokens = self.model.encode(unit.text, is_passed) if isinstance(unit, Segment) else [(unit[0].id, 0)]
                draws[-1] += [id for id, _ in tokens]
        return draws

    def normalized(self, content: str) -> str:
        """What the stages before the matching of normalized tokens make of the content of one."""
        if MatchTokens(True) not in self.spec.stages:
            return content
        for stage in self.spec.stages[: self.spec.stages.index(MatchTokens(True))]:
            if content and not isinstance(stage, (MatchTokens, PrefixSpace, SentencePiece)):
                made = self.stage(stage, self.ordinary_policy, b"")(Segment(content, [(0, 0)] * len(content)))
                content = "".join(segment.text for segment in made)
        return content

    def encode_piece(self, piece: Segment, data: bytes) -> Iterator[tuple[int, Span]]:
        spans = [span for char, span in zip(*piece, strict=True) for span in byte_spans(char, span, data)]
        at = 0
        for id, after in self.model.encode(piece.text):
            start = spans[at][0] if at < len(spans) else spans[-1][1]
            yield id, (start, spans[after - 1][1] if after > at else start)
            at = after

    # ---- the methods of the core's engine ----

    def encode(self, text: Any, policy: Any, add_special_tokens: bool) -> list[int]:
        return [id for id, _ in self.tokens(text, policy, add_special_tokens)]

    def encode_to_numpy(self, text: Any, policy: Any, add_special_tokens: bool) -> npt.NDArray[np.uint32]:
        return np.array(self.encode(text, policy, add_special_tokens), dtype=np.uint32)

    def encode_batch(self, texts: Any, policy: Any, add_special_tokens: bool, threads: int) -> list[list[int]]:
        return over_texts(texts, lambda text: self.encode(text, policy, add_special_tokens))

    def encode_batch_to_numpy(
        self, texts: Any, policy: Any, add_special_tokens: bool, threads: int
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64]]:
        batch = self.encode_batch(texts, policy, add_special_tokens, threads)
        offsets = np.cumsum([0, *map(len, batch)], dtype=np.uint64)
        return np.array([id for ids in batch for id in ids], dtype=np.uint32), offsets

    def count(self, text: Any, policy: Any, add_special_tokens: bool) -> int:
        return len(self.tokens(text, policy, add_special_tokens))

    def count_batch(self, texts: Any, policy: Any, add_special_tokens: bool, threads: int) -> list[int]:
        return over_texts(texts, lambda text: self.count(text, policy, add_special_tokens))

    def encode_with_spans(self, text: Any, policy: Any, add_special_tokens: bool) -> tuple[Any, Any, Any]:
        tokens = self.tokens(text, policy, add_special_tokens)
        starts = char_starts(text)
        chars = [char_span(starts, span) for _, span in tokens]
        return (
            np.array([id for id, _ in tokens], dtype=np.uint32),
            np.array([span for _, span in tokens], dtype=np.uint64).reshape(-1, 2),
            np.array(chars, dtype=np.uint64).reshape(-1, 2),
        )

    def split(self, text: Any, policy: Any) -> list[Span]:
        data = text_bytes(text)
        self.check(data, policy)
        units = self.units(data, policy)
        return [(u.spans[0][0], u.spans[-1][1]) if isinstance(u, Segment) else u[1] for u in units]

    def find_special(self, text: Any) -> list[tuple[int, int, int]]:
        everything = ReferencePolicy(frozenset(t.content for t in self.spec.extra if t.kind == "special"), frozenset())
        plain = [ExtraToken(token.id, token.content) for token in self.spec.extra if token.kind == "special"]
        starts = char_starts(text)
        found = ReferenceEngine(self.spec.replace(extra=tuple(plain), stages=(MatchTokens(),))).units(
            text_bytes(text), everything
        )
        return [(*char_span(starts, unit[1]), unit[0].id) for unit in found if not isinstance(unit, Segment)]

    def truncate(self, text: Any, n: int, side: str, policy: Any, add_special_tokens: bool) -> Span:
        if side not in ("right", "left"):
            raise SubwordValueError(f'side must be "right" or "left", not {side!r}')
        self.count("", policy, add_special_tokens)
        self.check(text_bytes(text), policy)
        policy = policy._replace(disallowed=frozenset())
        cuts = range(len(text) + 1) if isinstance(text, str) else char_starts(text)
        for cut in reversed(cuts) if side == "right" else cuts:
            kept = (0, cut) if side == "right" else (cut, len(text))
            if self.count(text[slice(*kept)], policy, add_special_tokens) <= n:
                return kept
        raise SubwordValueError(f"a limit of {n} is too small: the special tokens around the text are more")

    def chunk(
        self, text: Any, limits: tuple[int, int, str], policy: Any, add_special_tokens: bool
    ) -> list[tuple[int, int, int]]:
        max_tokens, overlap, ends = limits
        if overlap >= max_tokens:
            raise SubwordValueError(f"overlap={overlap} must be smaller than max_tokens={max_tokens}")
        self.check(text_bytes(text), policy)
        policy = policy._replace(disallowed=frozenset())

        def count(start: int, end: int) -> int:
            return self.count(text[start:end], policy, add_special_tokens)

        def reached(start: int) -> list[int]:
            return [end for end in places if start < end and count(start, end) <= max_tokens]

        places = self.places(text, ends, lambda start, end: count(start, end) <= max_tokens)
        if not overlap:
            spans = fewest(len(text), reached)
        else:
            spans = overlapping(
                len(text), reached, lambda a, b: a + self.truncate(text[a:b], overlap, "left", policy, False)[0]
            )
        done = spans[-1][1] if spans else 0
        if done < len(text):
            raise SubwordValueError(f"max_tokens={max_tokens} is too small for the character at {done}")
        return [(start, end, count(start, end)) for start, end in spans]

    def places(self, text: Any, ends: str, fits: Callable[[int, int], bool]) -> list[int]:
        """Where chunks may end: where units of a kind do, and in one that does not fit where the next finer do."""
        starts = char_starts(text)
        chars = starts if isinstance(text, bytes) else range(len(text) + 1)
        kinds = {chars[starts.index(at)]: ENDS.index(kind) for at, kind in _core.text_ends(text)}

        def cut(start: int, stop: int, kind: int) -> list[int]:
            inside = [at for at in chars if start < at < stop and kinds.get(at, 0) >= kind]
            units = pairwise([start, *inside, stop])
            return [at for unit in units for at in ([unit[1]] if not kind or fits(*unit) else cut(*unit, kind - 1))]

        return cut(0, len(text), ENDS.index(ends)) if len(text) else []

    def last_merges(self) -> npt.NDArray[np.int64]:
        rows = [self.model.last_merge(piece, id) or (-1, -1) for piece, id in self.spec.model.vocab.items()]
        return np.array(rows, dtype=np.int64).reshape(-1, 2)

    def decode_bytes(self, ids: Any, skip_special_tokens: bool) -> bytes:
        skipped = {t.id for t in self.spec.extra if t.kind != "added"} if skip_special_tokens else set()
        numbers = map(id_of, list_of("token ids", ids))
        kept = [id for id in numbers if id not in skipped]
        decode = self.spec.decode
        if isinstance(decode, DecodeWordPiece):
            return b"".join(decode_word_piece(self.piece(id), number == 0, decode) for number, id in enumerate(kept))
        if isinstance(decode, DecodeSentencePiece):
            return self.decode_sentencepiece(kept, decode)
        if isinstance(decode, DecodeSteps):
            spells = decode.steps[:1] == (("spell-bytes",),)
            extra = {token.id for token in self.spec.extra}
            entries = ((None if id in extra else self.spec.model.vocab.piece_of(id), self.piece(id)) for id in kept)
            return decode_steps(
                decode.steps,
                [to_alphabet(own) if spells and own is not None else (own or piece).decode() for own, piece in entries],
            )
        data = b"".join(self.token_bytes(id) for id in kept)
        if decode.trim and kept and self.ends_word(kept[-1]):
            data = data[: len(data) - len(decode.end_of_word.encode())]
        return data

    def decode_sentencepiece(self, ids: list[int], decode: DecodeSentencePiece) -> bytes:
        data, is_start = b"", decode.strip != "none"
        extra = {token.id for token in self.spec.extra}
        for id in ids:
            part = self.token_bytes(id)
            if is_start and id not in extra:
                mark = "▁".encode()
                if decode.strip == "token":
                    part = self.piece(id).replace(mark, b"")
                elif self.piece(id).startswith(mark):
                    part = part[1:]
            is_start = is_start and decode.strip == "all" and not part
            data += part
        return charsmap.apply(charsmap.rules_of(decode.rules), data) if decode.rules else data

    def ends_word(self, id: int) -> bool:
        model = self.spec.model
        marker = model.end_of_word.encode() if isinstance(model, BPE) else b""
        return bool(marker) and (model.vocab.piece_of(id) or b"").endswith(marker)

    def decode(self, ids: Any, errors: str, skip_special_tokens: bool) -> str:
        return self.decode_bytes(ids, skip_special_tokens).decode("utf-8", errors)

    def decode_batch(self, batch: Any, errors: str, skip_special_tokens: bool, threads: int) -> list[str]:
        return [self.decode(ids, errors, skip_special_tokens) for ids in batch]

    def piece(self, id: int) -> bytes:
        if id not in self.bytes:
            raise UnknownTokenError(f"the vocabulary has no id {id}")
        return self.bytes[id]

    def token_bytes(self, id: Any) -> bytes:
        data, model, decode = self.piece(id_of(id)), self.spec.model, self.spec.decode
        if isinstance(decode, DecodeSteps):
            return self.decode_bytes([id], skip_special_tokens=False)
        if isinstance(decode, DecodeWordPiece):
            return data.removeprefix(decode.prefix.encode())
        if isinstance(decode, DecodeSentencePiece) and model.vocab.piece_of(id_of(id)) is not None:
            if isinstance(model, Scored) and data.decode() in model.pieces_of(BYTE):
                return bytes([int(data[3:5], 16)])
            return decode.unk_surface.encode() if id_of(id) == model.unk else data.replace("▁".encode(), b" ")
        if isinstance(model, BPE) and isinstance(decode, Decode) and self.ends_word(id_of(id)):
            return data.removesuffix(model.end_of_word.encode()) + decode.end_of_word.encode()
        return data

    def token_id(self, token: bytes) -> int | None:
        extra = {t.content.encode(): t.id for t in self.spec.extra}
        return extra.get(token, self.ids.get(token))


def fewest(length: int, reached: Callable[[int], list[int]]) -> list[Span]:
    """A shortest way to the end, or to the farthest place that can be reached."""
    came_from, layer = {0: 0}, [0]
    while layer and length not in came_from:
        found = {end: start for start in layer for end in reached(start) if end not in came_from}
        came_from.update(found)
        layer = sorted(found)
    spans, end = list[Span](), max(came_from)
    while end:
        spans.append((came_from[end], end))
        end = came_from[end]
    return spans[::-1]


def overlapping(length: int, reached: Callable[[int], list[int]], back: Callable[[int, int], int]) -> list[Span]:
    """Each as long as it can be; the next starts where `back` says, or at its end where that leads nowhere."""
    spans, start, done = list[Span](), 0, 0
    while done < length:
        end = max(reached(start), default=start)
        if end > done:
            spans.append((start, end))
            start, done = back(start, end), end
            start = start if start > spans[-1][0] else end
        elif start < done:
            start = done
        else:
            break
    return spans


def decode_word_piece(piece: bytes, is_first: bool, decode: DecodeWordPiece) -> bytes:
    prefix = decode.prefix.encode()
    if not is_first:
        piece = piece[len(prefix) :] if prefix and piece.startswith(prefix) else b" " + piece
    return cleaned(piece.decode("utf-8", "surrogateescape"), decode.cleanup).encode("utf-8", "surrogateescape")


def over_texts(texts: Iterable[Any], work: Callable[[Any], Any]) -> list[Any]:
    """`work` on every text; an error names its text."""
    done = []
    for index, text in enumerate(list_of("texts", texts)):
        try:
            done.append(work(text))
        except SubwordValueError as error:
            raise type(error)(f"text {index} of the batch: {error}") from None
    return done


def id_of(id: Any) -> int:
    try:
        if not isinstance(id, (bool, np.bool_)):
            return operator.index(id)
    except TypeError:
        pass
    raise SubwordValueError(f"a token id must be an integer, not {id!r} ({type(id).__name__})")


def text_bytes(text: Any) -> bytes:
    """Bytes as they are; a `str` as UTF-8, a surrogate pair as its character, a lone surrogate as U+FFFD."""
    if isinstance(text, str):
        try:
            return text.encode()
        except UnicodeEncodeError:
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()
    return bytes(_core.frozen_text(text))


def char_starts(text: Any) -> list[int]:
    """The byte at which each character starts, and the number of bytes; each ill-formed byte is a character."""
    paired = isinstance(text, str) and text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    chars = paired or text_bytes(text).decode("utf-8", "surrogateescape")
    return [0, *accumulate(len(char.encode("utf-8", "surrogateescape")) for char in chars)]


def char_span(starts: list[int], span: Span) -> Span:
    first = int(np.searchsorted(starts, span[0], "right")) - 1
    return first, int(np.searchsorted(starts, span[1], "left")) if span[1] > span[0] else first


def normalize(segment: Segment, stage: Normalize) -> Segment:
    """Cluster by cluster, a cluster being the shortest stretch that can be normalized apart from what follows.

    Where characters are composed, those of a cluster that changes have the span of the whole; where they are taken
    apart, that of the character they come from.
    """

    def form(text: str) -> str:  # ill-formed bytes stay, and separate what stands around them
        parts = re.split("([\ud800-\udfff])", text)
        return "".join(p if "\ud800" <= p <= "\udfff" else _core.normalize(p, stage.form, stage.unicode) for p in parts)

    text, spans = segment
    out, out_spans, start = [], list[Span](), 0
    for end in range(1, len(text) + 1):
        new = form(text[start:end])
        if new + form(text[end:]) == form(text[start:]):
            out.append(new)
            if new == text[start:end]:
                out_spans += spans[start:end]
            elif stage.form in ("NFD", "NFKD"):
                out_spans += [spans[start + at] for at in sources(text[start:end], new, form)]
            else:
                out_spans += [(spans[start][0], spans[end - 1][1])] * len(new)
            start = end
    return Segment("".join(out), out_spans)


def sources(text: str, new: str, form: Callable[[str], str]) -> list[int]:
    """Of each character that a text is taken apart into, the place of the one it comes from; marks that change their
    order take the places in order.
    """
    starts = defaultdict(list)  # for each character, one after the other, whether it is the first of what one becomes
    for char in text:
        for number, part in enumerate(form(char)):
            starts[part].append(number == 0)
    places, at = [], -1
    for char in new:
        at += starts[char].pop(0)
        at = max(at, 0)
        places.append(at)
    return places


def lowercase(segment: Segment, stage: Lowercase) -> Segment:
    """Character by character; a sigma is final where a cased character is before it and none behind."""
    text, spans = segment
    out, out_spans = [], list[Span]()
    for at, char in enumerate(text):
        new = char if "\ud800" <= char <= "\udfff" else _core.lowercase(char, False, stage.unicode)
        if char == "Σ" and stage.final_sigma and is_cased(text[:at][::-1]) and not is_cased(text[at + 1 :]):
            new = "ς"
        out.append(new)
        out_spans += [spans[at]] * len(new)
    return Segment("".join(out), out_spans)


def rewrite(segment: Segment, change: Callable[[str], str]) -> Segment:
    """Character by character. A space in front of one stands at its start, one behind it at its end."""
    out, out_spans = [], list[Span]()
    for char, (start, end) in zip(*segment, strict=True):
        new = change(char)
        out.append(new)
        out_spans += [(start, start), (start, end), (end, end)] if len(new) == 3 else [(start, end)] * len(new)
    return Segment("".join(out), out_spans)


def clean_text(char: str) -> str:
    if char in "\0\ufffd" or (char not in "\t\n\r" and patterns.character_class("C", "8.0").fullmatch(char)):
        return ""
    return " " if is_space(char) else char


CHINESE = re.compile(
    "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002b81f\U0002b920-\U0002ceaf"
    "\U0002f800-\U0002fa1f]"
)

CHARACTERS: dict[type, Callable[[str], str]] = {
    CleanText: clean_text,
    PadChinese: lambda char: f" {char} " if CHINESE.fullmatch(char) else char,
    StripAccents: lambda char: "" if patterns.character_class("Mn", "8.0").fullmatch(char) else char,
}


def split_punctuation(text: str) -> Iterator[str]:
    """Words, and each punctuation mark alone."""
    word = ""
    for char in text:
        mark = char in string.punctuation or patterns.character_class("P", "8.0").fullmatch(char)
        if not mark and not is_space(char):
            word += char
            continue
        yield from filter(None, (word, char if mark else ""))
        word = ""
    if word:
        yield word


def is_cased(text: str) -> bool:
    """Whether the first character of `text` that has a case, or is no mark or the like, has one."""
    beside = next((char for char in text if not patterns.character_class("Case_Ignorable").fullmatch(char)), "")
    return bool(patterns.character_class("Cased").fullmatch(beside))


def prefix_space(segment: Segment) -> Segment:
    if segment.text.startswith(" ") or not segment.text:
        return segment
    at = segment.spans[0][0]
    return Segment(" " + segment.text, [(at, at), *segment.spans])


def made_of(segment: Segment, parts: Iterable[tuple[int, int, str]]) -> list[Segment]:
    """What a stage makes of a text: from where to where in it, and what becomes of that, in order. What is new has the
    span of what it stands for; what is nothing is no text."""
    out, out_spans, spans = "", list[Span](), segment.spans
    for start, end, new in parts:
        at = spans[start][0] if start < len(spans) else spans[-1][1]
        out += new
        out_spans += [(spans[start][0], spans[end - 1][1]) if start < end else (at, at)] * len(new)
    return [Segment(out, out_spans)] if out else []


def byte_spans(char: str, span: Span, data: bytes) -> list[Span]:
    """Of each byte of a character that stands for a part of a text: its own if the character stands there, else all."""
    made, (start, end) = char.encode("utf-8", "surrogateescape"), span
    return [(at, at + 1) for at in range(start, end)] if made == data[start:end] else [span] * len(made)


def in_alphabet(segment: Segment, data: bytes) -> Segment:
    """Each byte as a character, with its own span where it has one."""
    out = "".join(to_alphabet(char.encode("utf-8", "surrogateescape")) for char in segment.text)
    return Segment(out, [span for char, span in zip(*segment, strict=True) for span in byte_spans(char, span, data)])


def whole_text(segment: Segment, stage: Precompiled | StripMarks | Strip | Metaspace) -> Segment:
    """What a stage makes of a text; what is new has the span of what it stands for."""
    return next(iter(made_of(segment, text_parts(segment, stage))), Segment("", []))


def text_parts(segment: Segment, stage: Precompiled | StripMarks | Strip | Metaspace) -> list[tuple[int, int, str]]:
    """What becomes of the parts of a text, for `made_of`."""
    text, spans = segment
    parts: list[tuple[int, int, str]] = []  # from where to where in the text, and what becomes of it
    if isinstance(stage, Strip):
        left, right = re.match(f"[{SPACES}]*", text), re.search(f"[{SPACES}]*\\Z", text)
        start = left.end() if left and stage.left else 0
        end = right.start() if right and stage.right else len(text)
        parts = [(at, at + 1, text[at]) for at in range(start, max(start, end))]
    elif isinstance(stage, (Precompiled, StripMarks)):
        made = _core.stage_parts(text.encode("utf-8", "surrogateescape"), _row(stage))
        sizes = [0, *accumulate(len(char.encode("utf-8", "surrogateescape")) for char in text)]
        place = {byte: at for at, byte in enumerate(sizes)}
        parts = [(place[a], place[b], new.decode("utf-8", "surrogateescape")) for a, b, new in made]
    elif stage.words:
        for hit in re.finditer(f"[^{SPACES}]+", text):
            if not hit[0].startswith(stage.replacement):
                parts.append((hit.start(), hit.start(), stage.replacement))
            parts += [(at, at + 1, text[at]) for at in range(*hit.span())]
    else:
        shown = text.replace(" ", stage.replacement) if stage.spaces else text
        missing = bool(text) and not shown.startswith(stage.replacement)
        starts = bool(spans) and spans[0][0] == 0
        if bool(text) and {"missing": missing, "first": missing and starts, "always": True}.get(stage.prepend, False):
            parts.append((0, 0, stage.replacement))
        for at, char in enumerate(text):
            parts.append((at, at + 1, stage.replacement if stage.spaces and char == " " else char))
    return sorted(parts, key=lambda part: part[:2])


SPACES = "\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""White space (the property White_Space), as a class of a regular expression."""


def sentencepiece(segment: Segment, stage: SentencePiece, protected: list[str]) -> Segment:
    data, origins = b"", list[int]()
    for char, (start, end) in zip(segment.text, segment.spans, strict=True):
        size = len(char.encode("utf-8", "surrogateescape"))
        origins += range(start, end) if size == end - start else [start] * size
        data += char.encode("utf-8", "surrogateescape")
    origins.append(segment.spans[-1][1] if segment.spans else 0)
    flags = (
        stage.add_dummy_prefix,
        stage.remove_extra_whitespaces,
        stage.escape_whitespaces,
        stage.treat_whitespace_as_suffix,
    )
    normalized, starts = _core.SentencePieceNormalizer(stage.rules, flags, protected).apply(data)
    spans, at = list[Span](), 0
    text = normalized.decode("utf-8", "surrogateescape")
    for char in text:
        after = at + len(char.encode("utf-8", "surrogateescape"))
        spans.append((origins[starts[at]], origins[starts[after]]))
        at = after
    return Segment(text, spans)


def cut(segment: Segment, pieces: Iterable[str]) -> Iterator[Segment]:
    at = 0
    for piece in pieces:
        at = segment.text.index(piece, at)  # behind what a pattern drops
        yield Segment(piece, segment.spans[at : at + len(piece)])
        at += len(piece)


def is_space(char: str) -> bool:
    return bool(patterns.character_class("White_Space").fullmatch(char))


def is_word(char: str) -> bool:
    return bool(patterns.character_class("Word").fullmatch(char))
