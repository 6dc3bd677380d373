"""The `Tokenizer`, `Encoding` and `AddedToken` of HF tokenizers, on subword.

    from subword.compat.tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file("tokenizer.json")
    tokenizer.encode("hello world").tokens

Names, arguments and results are those of tokenizers 0.23, its offsets included, for every `tokenizer.json` that subword
reads. What differs, and why:

* `normalizer`, `pre_tokenizer`, `model`, `post_processor` and `decoder` give what `tokenizer.json` has for them, as
  data to read; the model without its vocabulary. They cannot be set, nor is there a module with classes for them:
  change the file, or make a tokenizer by `subword.train`.
* `train`, `train_from_iterator` and the classes `ByteLevelBPETokenizer` and the like are not there: `subword.train` and
  `subword.train_sentencepiece` learn, and `save` writes a file to load here.
* Errors are `SubwordError`s, and each is a ValueError, a KeyError or an OSError; tokenizers raises Exception. Text that
  is no `str`, or ids that are no numbers, are a ValueError, not a TypeError.
* A lone surrogate in a text is U+FFFD; tokenizers refuses it.
* Where a file has a normalizer whose offsets are not known here, `Encoding.offsets` raises, and all else works.
* `async_…` methods are not there: threads (`asyncio.to_thread`) do the same.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from .. import formats
from ..arguments import choice, flag, integer, list_of, string
from ..errors import FormatError, SubwordValueError
from ..formats.files import read_file, write_file
from ..models import UNKNOWN, Unigram
from ..spec import ExtraToken, Spec
from ..stages import (
    ByteAlphabet,
    Digits,
    MatchTokens,
    Metaspace,
    PrefixSpace,
    Split,
    SplitAt,
    SplitLength,
    SplitPunctuation,
    SplitRegex,
    SplitScripts,
)
from ..tokenizer import Tokenizer as Ours
from . import hf_offsets
from .hf_encoding import Encoding, Span, added_by, check_direction, processed, truncated

__all__ = ["AddedToken", "Encoding", "Tokenizer"]

STRATEGIES = ("longest_first", "only_first", "only_second")
FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")

_SPLITS = (Digits, Split, SplitAt, SplitLength, SplitPunctuation, SplitRegex, SplitScripts)
_CUTTING = (*_SPLITS, ByteAlphabet, MatchTokens, Metaspace, PrefixSpace)
"""Stages that are no normalizers."""


class AddedToken:
    """A token beside the vocabulary, with its flags. `normalized` is what `special` is not, if it is not given."""

    def __init__(
        self,
        content: str = "",
        single_word: bool = False,
        lstrip: bool = False,
        rstrip: bool = False,
        normalized: bool | None = None,
        special: bool = False,
    ) -> None:
        self.content = string("content", content)
        self.single_word, self.lstrip, self.rstrip = single_word, lstrip, rstrip
        self.special = special
        self._normalized = normalized

    @property
    def normalized(self) -> bool:
        """Whether it is taken from normalized text."""
        return not self.special if self._normalized is None else self._normalized

    def __str__(self) -> str:
        return self.content

    def __repr__(self) -> str:
        flags = ("rstrip", "lstrip", "single_word", "normalized", "special")
        return f'AddedToken("{self.content}", ' + (", ".join(f"{name}={getattr(self, name)}" for name in flags) + ")")

    def __eq__(self, other: object) -> bool:
        return self.content == other.content if isinstance(other, AddedToken) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.content)

    def row(self, id: int) -> dict[str, Any]:
        """As `tokenizer.json` has it."""
        return {"id": id, "content": self.content, **{name: bool(getattr(self, name)) for name in FLAGS}}


class Tokenizer:
    """A tokenizer with the methods of HF tokenizers. Not immutable: settings and added tokens change it.

    Special tokens that text spells are taken, as there; with `encode_special_tokens` set, they are text.
    """

    _document: dict[str, Any]
    _source: str
    _truncation: dict[str, Any] | None
    _padding: dict[str, Any] | None
    _encode_special_tokens: bool
    _ready: _Ready | None

    def __init__(self, model: Any = None) -> None:
        """Not for use: `from_file`, `from_str`, `from_buffer` and `from_pretrained` make one."""
        problem = "a Tokenizer is not made of a model here: use Tokenizer.from_file, or subword.train to learn one"
        raise SubwordValueError(problem)

    @classmethod
    def _of(cls, document: dict[str, Any], source: str, data: bytes) -> Tokenizer:
        self = cls.__new__(cls)
        self._document = document
        self._source = source
        self._truncation = _truncation_of(document.get("truncation"))
        self._padding = _padding_of(document.get("padding"))
        self._encode_special_tokens = False
        as_it_is = document.get("truncation") is None and document.get("padding") is None
        self._ready = _Ready(formats.read(data, source), document) if as_it_is else None
        ids = self._engine().extra_ids  # tokenizers, too, does not take them from the file
        rows = [{**row, "id": ids.get(row["content"], row["id"])} for row in document.get("added_tokens", [])]
        self._document = {**document, "added_tokens": rows}
        return self

    @staticmethod
    def from_str(json: str) -> Tokenizer:
        """The tokenizer that the text of a `tokenizer.json` describes."""
        return _read(string("json", json).encode(), "<str>")

    @staticmethod
    def from_buffer(buffer: bytes) -> Tokenizer:
        """The tokenizer that the bytes of a `tokenizer.json` describe."""
        return _read(bytes(buffer), "<buffer>")

    @staticmethod
    def from_file(path: str | os.PathLike[str]) -> Tokenizer:
        """The tokenizer in a `tokenizer.json`."""
        return _read(read_file(os.fspath(path)), os.fspath(path))

    @staticmethod
    def from_pretrained(identifier: str, revision: str = "main", token: str | None = None) -> Tokenizer:
        """The tokenizer of a model on the Hub (`pip install subword[hub]`)."""
        if token is not None:
            raise SubwordValueError("token= is not taken: log in (`hf auth login`), or set HF_TOKEN")
        from ..formats import hub

        folder = hub.fetch(f"hf://{identifier}@{revision}", ["tokenizer.json"])
        return Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_ready": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __repr__(self) -> str:
        return f"Tokenizer({self._source!r}, {self.get_vocab_size():,} tokens)"

    # ======================== encoding ========================

    def encode(
        self, sequence: Any, pair: Any = None, is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> Encoding:
        """The tokens of a text, or of a pair; with `is_pretokenized`, of lists of words."""
        made = self._encoded(sequence, pair, is_pretokenized, add_special_tokens)
        self._pad([made])
        return made

    def encode_batch(
        self, input: Iterable[Any], is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> list[Encoding]:
        """The tokens of several texts, or pairs of texts, filled up to one length if padding is on."""
        made = []
        for each in list_of("input", input):
            is_pair = isinstance(each, (tuple, list)) and len(each) == 2 and _is_pair(each, is_pretokenized)
            first, second = each if is_pair else (each, None)
            made.append(self._encoded(first, second, is_pretokenized, add_special_tokens))
        self._pad(made)
        return made

    def encode_batch_fast(
        self, input: Iterable[Any], is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> list[Encoding]:
        """As `encode_batch`; there, it leaves the offsets out."""
        return self.encode_batch(input, is_pretokenized, add_special_tokens)

    def post_process(
        self, encoding: Encoding, pair: Encoding | None = None, add_special_tokens: bool = True
    ) -> Encoding:
        """Truncate, put the template around, and pad."""
        made = self._finished([encoding.copy(), *([] if pair is None else [pair.copy()])], add_special_tokens)
        self._pad([made])
        return made

    def num_special_tokens_to_add(self, is_pair: bool) -> int:
        """How many tokens the template adds."""
        return added_by(self._document.get("post_processor"), is_pair)

    def _encoded(self, sequence: Any, pair: Any, is_pretokenized: bool, add_special_tokens: bool) -> Encoding:
        texts = [sequence] if pair is None else [sequence, pair]
        parts = [self._sequence(text, flag("is_pretokenized", is_pretokenized)) for text in texts]
        return self._finished(parts, flag("add_special_tokens", add_special_tokens))

    def _sequence(self, text: Any, is_pretokenized: bool) -> Encoding:
        ready = self._engine()
        if not is_pretokenized:
            return ready.encode(_text(text), None, self._encode_special_tokens)
        if not isinstance(text, (list, tuple)):
            raise SubwordValueError(f"a text that is cut already must be a list of words, not {type(text).__name__}")
        words = (ready.encode(_text(word), at, self._encode_special_tokens) for at, word in enumerate(text))
        return Encoding.merge(list(words), growing_offsets=False)

    def _finished(self, parts: list[Encoding], add_special_tokens: bool) -> Encoding:
        if self._truncation is not None:
            added = self.num_special_tokens_to_add(len(parts) > 1) if add_special_tokens else 0
            truncated(parts, self._truncation, added)
        return processed(self._document.get("post_processor"), parts, add_special_tokens)

    def _pad(self, encodings: list[Encoding]) -> None:
        settings = self._padding
        if settings is None or not encodings:
            return
        fixed = settings["length"]
        length = max(len(encoding) for encoding in encodings) if fixed is None else fixed
        multiple = settings["pad_to_multiple_of"]
        if multiple:
            length = -(-length // multiple) * multiple
        names = ("direction", "pad_id", "pad_type_id", "pad_token")
        for encoding in encodings:
            encoding.pad(length, *(settings[name] for name in names))

    # ======================== decoding ========================

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = True) -> str:
        """The text of some ids; those that are no tokens are left out."""
        ours = self._engine().ours
        known = self._engine().token_of
        return ours.decode(
            [id for id in map(_id, ids) if known(id) is not None], skip_special_tokens=skip_special_tokens
        )

    def decode_batch(self, sequences: Iterable[Iterable[int]], skip_special_tokens: bool = True) -> list[str]:
        """The texts of several lists of ids."""
        return [self.decode(ids, skip_special_tokens) for ids in sequences]

    # ======================== vocabulary ========================

    def token_to_id(self, token: str) -> int | None:
        """The id of a token, or None."""
        return self._engine().ids.get(token)

    def id_to_token(self, id: int) -> str | None:
        """The token of an id, or None."""
        return self._engine().token_of(_id(id))

    def get_vocab(self, with_added_tokens: bool = True) -> dict[str, int]:
        """Tokens to their ids."""
        vocab = _vocab_of(self._document["model"])
        return {**vocab, **self._added()} if with_added_tokens else vocab

    def get_vocab_size(self, with_added_tokens: bool = True) -> int:
        """How many tokens there are."""
        vocab = self._document["model"]["vocab"]
        if not with_added_tokens:
            return len(vocab)
        known = _vocab_of(self._document["model"])
        return len(vocab) + sum(token not in known for token in self._added())

    def get_added_tokens_decoder(self) -> dict[int, AddedToken]:
        """Ids to added tokens."""
        rows = sorted(self._document.get("added_tokens", []), key=lambda row: row["id"])
        return {row["id"]: AddedToken(row["content"], **{name: row.get(name, False) for name in FLAGS}) for row in rows}

    def add_tokens(self, tokens: Iterable[str | AddedToken]) -> int:
        """Add tokens that are always taken from text; how many of them are new."""
        return self._add(tokens, special=False)

    def add_special_tokens(self, tokens: Iterable[str | AddedToken]) -> int:
        """Add control tokens; how many of them are new."""
        return self._add(tokens, special=True)

    def _add(self, tokens: Iterable[str | AddedToken], special: bool) -> int:
        vocab, rows = _vocab_of(self._document["model"]), list(self._document.get("added_tokens", []))
        places = {row["content"]: at for at, row in enumerate(rows)}
        taken = max([len(vocab) - 1, *(row["id"] for row in rows)])
        added = 0
        for token in list_of("tokens", tokens):
            if isinstance(token, str):
                token = AddedToken(token, special=special)
            if not isinstance(token, AddedToken):
                raise SubwordValueError(f"a token must be a str or an AddedToken, not {type(token).__name__}")
            flags = token.single_word, token.lstrip, token.rstrip, token._normalized, special or token.special
            own = AddedToken(token.content, *flags)
            at = places.get(own.content)
            if not own.content or (at is not None and rows[at] == own.row(rows[at]["id"])):
                continue
            id = vocab.get(own.content) if at is None else rows[at]["id"]
            if id is None:
                taken += 1
                id = taken
            if at is None:
                places[own.content] = len(rows)
                rows.append(own.row(id))
            else:
                rows[at] = own.row(id)
            added += 1
        if added:
            before = self._document
            self._document = {**before, "added_tokens": sorted(rows, key=lambda row: row["id"])}
            ready, self._ready = self._ready, None
            try:
                self._engine()
            except SubwordValueError:
                self._document, self._ready = before, ready
                raise
        return added

    def _added(self) -> dict[str, int]:
        return {row["content"]: row["id"] for row in self._document.get("added_tokens", [])}

    # ======================== settings ========================

    def enable_truncation(
        self, max_length: int, stride: int = 0, strategy: str = "longest_first", direction: str = "right"
    ) -> None:
        """Cut what is encoded from now on."""
        choice("strategy", strategy, STRATEGIES)
        check_direction(direction)
        max_length, stride = integer("max_length", max_length), integer("stride", stride)
        room = max_length - self.num_special_tokens_to_add(False)
        if max_length and stride >= room:
            raise SubwordValueError(
                f"stride={stride} must be less than the {room} tokens that max_length={max_length} leaves for a text"
            )
        self._truncation = {
            "max_length": max_length, "stride": stride, "strategy": strategy, "direction": direction,
        }  # fmt: skip

    def no_truncation(self) -> None:
        """Cut nothing."""
        self._truncation = None

    @property
    def truncation(self) -> dict[str, Any] | None:
        """How texts are cut."""
        return self._truncation and dict(self._truncation)

    def enable_padding(
        self,
        direction: str = "right",
        pad_id: int = 0,
        pad_type_id: int = 0,
        pad_token: str = "[PAD]",
        length: int | None = None,
        pad_to_multiple_of: int | None = None,
    ) -> None:
        """Fill up what is encoded from now on."""
        check_direction(direction)
        self._padding = {
            "length": None if length is None else integer("length", length),
            "pad_to_multiple_of": None
            if pad_to_multiple_of is None
            else integer("pad_to_multiple_of", pad_to_multiple_of),
            "pad_id": integer("pad_id", pad_id),
            "pad_token": string("pad_token", pad_token),
            "pad_type_id": integer("pad_type_id", pad_type_id),
            "direction": direction,
        }

    def no_padding(self) -> None:
        """Fill up nothing."""
        self._padding = None

    @property
    def padding(self) -> dict[str, Any] | None:
        """How texts are filled up."""
        return self._padding and dict(self._padding)

    @property
    def encode_special_tokens(self) -> bool:
        """Whether special tokens in text are just text."""
        return self._encode_special_tokens

    @encode_special_tokens.setter
    def encode_special_tokens(self, value: bool) -> None:
        self._encode_special_tokens = flag("encode_special_tokens", value)

    # ======================== parts ========================

    @property
    def normalizer(self) -> Any:
        """The normalizer, as the file has it."""
        return _view(self._document.get("normalizer"))

    @property
    def pre_tokenizer(self) -> Any:
        """The pre-tokenizer, as the file has it."""
        return _view(self._document.get("pre_tokenizer"))

    @property
    def post_processor(self) -> Any:
        """The post-processor, as the file has it."""
        return _view(self._document.get("post_processor"))

    @property
    def decoder(self) -> Any:
        """The decoder, as the file has it."""
        return _view(self._document.get("decoder"))

    @property
    def model(self) -> Any:
        """The settings of the model, as the file has them."""
        return _view(
            {name: value for name, value in self._document["model"].items() if name not in ("vocab", "merges")}
        )

    def train(self, *_: Any, **__: Any) -> NoReturn:
        """Not here: `subword.train` learns."""
        raise SubwordValueError(
            "a Tokenizer here is not trained: subword.train and subword.train_sentencepiece learn one"
        )

    train_from_iterator = train

    # ======================== writing ========================

    def to_str(self, pretty: bool = False) -> str:
        """The text of its `tokenizer.json`."""
        document = {
            **self._document,
            "truncation": _truncation_row(self._truncation),
            "padding": _padding_row(self._padding),
        }
        if pretty:
            return json.dumps(document, ensure_ascii=False, indent=2)
        return json.dumps(document, ensure_ascii=False, separators=(",", ":"))

    def save(self, path: str | os.PathLike[str], pretty: bool = True) -> None:
        """Write its `tokenizer.json`."""
        write_file(os.fspath(path), self.to_str(pretty).encode("utf-8", "surrogatepass"))

    def _engine(self) -> _Ready:
        if self._ready is None:
            content = {**self._document, "truncation": None, "padding": None}
            spec = formats.read(json.dumps(content, ensure_ascii=False).encode("utf-8", "surrogatepass"), self._source)
            self._ready = _Ready(spec, self._document)
        return self._ready


def _read(data: bytes, source: str) -> Tokenizer:
    try:
        document = json.loads(data)
    except ValueError as error:
        raise FormatError(f"{source}: not JSON: {error}") from None
    if not isinstance(document, dict) or not isinstance(document.get("model"), dict):
        raise FormatError(f"{source}: no tokenizer.json: there is no model in it")
    return Tokenizer._of(document, source, data)


def _view(value: Any) -> Any:
    """A copy of data, which nobody can take for a way to change the tokenizer."""
    return json.loads(json.dumps(value))


def _vocab_of(model: Mapping[str, Any]) -> dict[str, int]:
    vocab = model["vocab"]
    return dict(vocab) if isinstance(vocab, dict) else {row[0]: id for id, row in enumerate(vocab)}


def _text(text: Any) -> str:
    if not isinstance(text, str):
        raise SubwordValueError(f"a text must be a str, not {type(text).__name__}; is_pretokenized=True takes lists")
    return text


def _id(id: Any) -> int:
    return integer("an id", int(id) if isinstance(id, np.integer) else id)


def _is_pair(each: Sequence[Any], is_pretokenized: bool) -> bool:
    return all(isinstance(text, (list, tuple) if is_pretokenized else str) for text in each)


# ======================== settings in the file ========================

_STRATEGY = {"LongestFirst": "longest_first", "OnlyFirst": "only_first", "OnlySecond": "only_second"}


def _truncation_of(row: dict[str, Any] | None) -> dict[str, Any] | None:
    if row is None:
        return None
    try:
        return {
            "max_length": row["max_length"],
            "stride": row["stride"],
            "strategy": _STRATEGY[row["strategy"]],
            "direction": row.get("direction", "Right").lower(),
        }
    except (KeyError, AttributeError, TypeError) as error:
        raise FormatError(f"truncation: not understood: {error}") from None


def _truncation_row(settings: dict[str, Any] | None) -> dict[str, Any] | None:
    if settings is None:
        return None
    strategy = next(name for name, own in _STRATEGY.items() if own == settings["strategy"])
    return {
        "direction": settings["direction"].title(), "max_length": settings["max_length"], "strategy": strategy,
        "stride": settings["stride"],
    }  # fmt: skip


def _padding_of(row: dict[str, Any] | None) -> dict[str, Any] | None:
    if row is None:
        return None
    try:
        strategy = row["strategy"]
        return {
            "length": None if strategy == "BatchLongest" else strategy["Fixed"],
            "pad_to_multiple_of": row.get("pad_to_multiple_of"),
            "pad_id": row["pad_id"],
            "pad_token": row["pad_token"],
            "pad_type_id": row["pad_type_id"],
            "direction": row["direction"].lower(),
        }
    except (KeyError, AttributeError, TypeError) as error:
        raise FormatError(f"padding: not understood: {error}") from None


def _padding_row(settings: dict[str, Any] | None) -> dict[str, Any] | None:
    if settings is None:
        return None
    length = settings["length"]
    return {
        "strategy": "BatchLongest" if length is None else {"Fixed": length},
        "direction": settings["direction"].title(),
        "pad_to_multiple_of": settings["pad_to_multiple_of"],
        "pad_id": settings["pad_id"],
        "pad_type_id": settings["pad_type_id"],
        "pad_token": settings["pad_token"],
    }


# ======================== running ========================


class _Ready:
    """A tokenizer as it stands between two changes: what encodes, and what its tokens are called."""

    def __init__(self, spec: Spec, document: Mapping[str, Any]) -> None:
        self.ours = Ours(spec)
        self.ids: dict[str, int] = _vocab_of(document["model"])
        self.extra_ids = {token.content: token.id for token in spec.extra}
        self.ids.update(self.extra_ids)
        self._tokens = {id: token for token, id in self.ids.items()}
        self._extra = {token.id: token for token in spec.extra}
        self._normalizers = [stage for stage in spec.stages if not isinstance(stage, _CUTTING)]
        unknown = [type(stage).__name__ for stage in self._normalizers if not hf_offsets.is_known(stage)]
        self._no_offsets = (
            f"offsets as HF tokenizers gives them are not known behind the stage {unknown[0]}; "
            "subword.load(...).tokenize(text).char_spans has subword's own"
            if unknown
            else ""
        )
        self._cuts = any(isinstance(stage, _SPLITS) for stage in spec.stages)
        all_, none = self.ours._how("all", (), False)[0], self.ours._ordinary_policy
        self._policies = {False: all_, True: none}
        model = spec.model
        self._surface = model.unk if isinstance(model, Unigram) and model.pieces_of(UNKNOWN) else None

    def token_of(self, id: int) -> str | None:
        return self._tokens.get(id)

    @cached_property
    def _plain(self) -> Ours:
        """The same without normalizers, for text that has been normalized; all extra tokens are taken from that."""
        spec = self.ours.spec
        kept = [stage for stage in spec.stages if stage not in self._normalizers and not isinstance(stage, MatchTokens)]
        extra = tuple(
            ExtraToken(token.id, token.content, token.kind, token.single_word, token.lstrip, token.rstrip)
            for token in spec.extra
        )
        return Ours(spec.replace(stages=(MatchTokens(), *kept), extra=extra))

    def encode(self, text: str, word: int | None, ordinary: bool) -> Encoding:
        """The tokens of a text before the template; `word`, if it is a word of a text that is cut already."""
        engine, policy = self.ours._engine, self._policies[ordinary]
        ids, byte_spans, char_spans = engine.encode_with_spans(text, policy, False)
        listed, places = ids.tolist(), char_spans.tolist()
        raw = [
            id in self._extra and not self._extra[id].normalized and _same(text[start:end], self._extra[id])
            for id, (start, end) in zip(listed, places, strict=True)
        ]
        shown, moved = text, None
        if self._normalizers and not self._no_offsets:
            taken = [place for place, own in zip(places, raw, strict=True) if own]
            normalized, spans = self._normalized(text, taken)
            plain = self._plain._engine
            plain_policy = self._plain._how((), (), False)[0] if ordinary else self._plain._how("all", (), False)[0]
            again, *new = plain.encode_with_spans(normalized, plain_policy, False)
            if np.array_equal(again, ids):  # else, what it was normalized to spells an extra token: subword's own spans
                shown, moved, engine, policy = normalized, spans, plain, plain_policy
                byte_spans, places = new[0], new[1].tolist()
        parts = [shown[start:end] for start, end in places]
        spelled = [
            own or (id in self._extra and self._extra[id].normalized and _same(part, self._extra[id]))
            for id, own, part in zip(listed, raw, parts, strict=True)
        ]
        if word is not None:
            words = [word] * len(listed)
        elif self._cuts:
            starts = [start for start, _ in engine.split(shown, policy)]
            words = (np.searchsorted(starts, byte_spans[:, 0], "right") - 1).tolist()
        else:  # what stands between extra tokens is one piece
            words = np.cumsum([at > 0 and (own or spelled[at - 1]) for at, own in enumerate(spelled)]).tolist()
        rows = []
        for id, own, part, piece, span in zip(listed, spelled, parts, words, self._spans(places, moved), strict=True):
            rows.append((id, part if own or id == self._surface else self._tokens[id], piece, span))
        made = Encoding(rows)
        made._no_offsets = self._no_offsets
        return made

    @staticmethod
    def _spans(spans: list[list[int]], moved: list[Span] | None) -> list[Span]:
        """A token that is only put in front of a text has the place of the text's first character."""
        size = None if moved is None else len(moved)
        made = []
        for start, end in spans:
            end = end if end > start else start + 1
            if moved is None:
                made.append((start, end))
            elif start < (size or 0):
                made.append((moved[start][0], moved[min(end, len(moved)) - 1][1]))
            else:
                made.append((moved[-1][1], moved[-1][1]) if moved else (0, 0))
        return made

    def _normalized(self, text: str, taken: Iterable[Sequence[int]]) -> tuple[str, list[Span]]:
        """The text as its normalizers leave it, but for the extra tokens that are taken before, and where in the
        original each character stands."""
        parts: list[str] = []
        spans: list[Span] = []
        at = 0
        for start, end in [*taken, (len(text), len(text))]:
            own = [(place, place + 1) for place in range(at, start)]
            part, moved = hf_offsets.moved(self._normalizers, text[at:start], own) if at < start else ("", [])
            parts += (part, text[start:end])
            spans += moved
            spans += [(place, place + 1) for place in range(start, end)]
            at = end
        return "".join(parts), spans


def _same(text: str, token: ExtraToken) -> bool:
    """Whether a text spells a token, which may have swallowed white space beside it."""
    return text.strip() == token.content.strip()


_ELSEWHERE = ("models", "normalizers", "pre_tokenizers", "processors", "decoders", "trainers", "implementations")


def __getattr__(name: str) -> Any:
    if name in _ELSEWHERE or name.endswith("Tokenizer"):
        problem = "tokenizers are read from files here, and made by subword.train"
        raise AttributeError(f"subword.compat.tokenizers has no {name!r}: {problem}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
