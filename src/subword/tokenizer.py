"""The tokenizer that users hold: a `Spec` and the engine it was compiled into."""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .byte_alphabet import to_alphabet
from .encoding import Encoding, Ragged
from .engine import ReferenceEngine, compile_spec
from .errors import SubwordValueError, UnknownTokenError
from .spec import MAX_ID, ExtraToken, MatchTokens, Spec
from .special import find_fim

Text: TypeAlias = "str | bytes | bytearray | memoryview"
Names: TypeAlias = "Collection[str] | Literal['all']"

NONE: frozenset[str] = frozenset()


def load(path: str | os.PathLike[str], *, engine: Literal["core", "reference"] = "core") -> Tokenizer:
    """Read a tokenizer from a file, or from a folder that holds one. The format is recognised by the content.

    Args:
        path: a native `.subword` file, a `tokenizer.json` with a BPE, or a folder with either; codes of subword-nmt;
            or CLIP's vocabulary file.
        engine: `"core"`, or `"reference"` to run it in plain Python.

    Raises:
        SubwordOSError: the file cannot be read.
        FormatError: the file is damaged, of no known format, or asks for something that is not supported.
    """
    from . import formats  # a door to a room above: tests/test_layout.py lists them

    return Tokenizer(formats.load(path), engine=engine)


class Tokenizer:
    """Turns text into ids and back. Immutable, safe to share between threads and processes, picklable.

    Two tokenizers are equal when their fingerprints are: when they mean the same, wherever they came from.

    Text is bytes. A `str` is taken as its UTF-8; a lone surrogate, which has none, as U+FFFD, and a surrogate pair as
    the character that it spells. Bytes that are not well-formed UTF-8 are kept as they are, each splitting as a
    character of no class would; so `decode_bytes(encode(data)) == data` for all bytes.

    Everything that takes text takes the same policy for special tokens, in tiktoken's words: those in
    `allowed_special` (`"all"` for all) are taken from the text; text that spells one in `disallowed_special` (`"all"`
    for all that are not allowed, the default) raises a `SpecialTokenError`; others are read as ordinary text.
    `add_special_tokens=True` puts the ids of the template around the text (such as a beginning-of-text token).
    """

    def __init__(self, spec: Spec, *, engine: Literal["core", "reference"] = "core") -> None:
        if engine not in ("core", "reference"):
            raise SubwordValueError(f'engine must be "core" or "reference", not {engine!r}')
        if not isinstance(spec, Spec):
            raise SubwordValueError(f"a Tokenizer is made of a Spec, not of {type(spec).__name__}; load() reads files")
        self._spec = spec
        self._engine_name = engine
        self._engine: Any = compile_spec(spec) if engine == "core" else ReferenceEngine(spec)
        self._policies: dict[tuple[frozenset[str], frozenset[str]], Any] = {}

    # ======================== what it is ========================

    @property
    def spec(self) -> Spec:
        """The tokenizer as data."""
        return self._spec

    @property
    def fingerprint(self) -> str:
        """64 hexadecimal digits, equal exactly for tokenizers that mean the same."""
        return self._spec.fingerprint

    @property
    def training(self) -> dict[str, Any] | None:
        """What the training run reported, for a tokenizer trained here, else None. See `train`."""
        return self._spec.notes.get("training")

    @property
    def n_vocab(self) -> int:
        """The largest id plus one. Ids may have holes: `len(tok.vocab)` is the number of entries."""
        return int(self._engine.n_vocab)

    @cached_property
    def vocab(self) -> Mapping[bytes, int]:
        """Bytes of each token to its id; a view, not a copy."""
        return _VocabView(self)

    @cached_property
    def special_tokens(self) -> dict[str, int]:
        """Special tokens to their ids, in the order of their ids."""
        specials = sorted((t.id, t.content) for t in self._spec.extra if t.kind == "special")
        return {content: id for id, content in specials}

    @property
    def bos_id(self) -> int | None:
        """The id that starts a text, if the tokenizer names one."""
        return self._spec.roles.get("bos")

    @property
    def eos_id(self) -> int | None:
        """The id that ends a text, if the tokenizer names one."""
        return self._spec.roles.get("eos")

    @property
    def pad_id(self) -> int | None:
        """The id that fills up batches, if the tokenizer names one."""
        return self._spec.roles.get("pad")

    @property
    def unk_id(self) -> int | None:
        """The id for what has none, if the tokenizer names one. A byte-level vocabulary needs none."""
        unk = self._spec.model.unk
        return self._spec.roles.get("unk") if unk is None else unk

    def token_bytes(self, id: int) -> bytes:
        """The bytes that `id` decodes to.

        Raises:
            UnknownTokenError: the vocabulary has no such id.
        """
        data: bytes = self._engine.token_bytes(id)
        return data

    def token_piece(self, id: int) -> str:
        """The token as files of the vocabulary spell it: `Ġthe` for the bytes ` the` (GPT-2's byte alphabet), `the</w>`
        where the vocabulary has a marker for the end of a word.

        Raises:
            UnknownTokenError: the vocabulary has no such id.
        """
        data = self.token_bytes(id)
        if id in self._extra_by_id:
            return self._extra_by_id[id]
        model = self._spec.model
        data = (model.vocab.piece_of(id) or data) if model.end_of_word else data
        return to_alphabet(data) if model.unit == "byte" else data.decode(errors="replace")

    def token_id(self, token: str | bytes) -> int:
        """The id of a token, given as its bytes or as text, with the marker for the end of a word if it has one.

        Raises:
            UnknownTokenError: it is no entry of the vocabulary, though it may well encode to several.
        """
        if not isinstance(token, (str, bytes, bytearray)):
            raise SubwordValueError(f"a token must be str or bytes, not {type(token).__name__}")
        data = token.encode("utf-8", "surrogatepass") if isinstance(token, str) else bytes(token)
        id: int | None = self._engine.token_id(data)
        if id is None:
            raise UnknownTokenError(f"{token!r} is no entry of the vocabulary; encode() gives the ids it is made of")
        return id

    def plan(self) -> list[tuple[str, str, str]]:
        """How the engine runs: rows of step, way, and why that way is exact."""
        rows: list[tuple[str, str, str]] = self._engine.plan()
        return rows

    @cached_property
    def _extra_by_id(self) -> dict[int, str]:
        return {token.id: token.content for token in self._spec.extra}

    # ======================== encoding ========================

    def encode(
        self,
        text: Text,
        allowed_special: Names = NONE,
        disallowed_special: Names = "all",
        add_special_tokens: bool = False,
    ) -> list[int]:
        """The ids of a text.

        >>> tok.encode("hello world")                                       # doctest: +SKIP
        [15339, 1917]

        Raises:
            SpecialTokenError: the text spells a special token that is not allowed; the message says where and what
                to do.
        """
        policy = self._policy(allowed_special, disallowed_special)
        ids: list[int] = self._engine.encode(text, policy, add_special_tokens)
        return ids

    def encode_ordinary(self, text: Text) -> list[int]:
        """The ids of a text in which special tokens are just text. Can never give a special id."""
        ids: list[int] = self._engine.encode(text, self._engine.ordinary_policy, False)
        return ids

    def encode_to_numpy(
        self,
        text: Text,
        allowed_special: Names = NONE,
        disallowed_special: Names = "all",
        add_special_tokens: bool = False,
    ) -> npt.NDArray[np.uint32]:
        """The ids of a text as an array, shape (tokens,), uint32. No Python number is made."""
        policy = self._policy(allowed_special, disallowed_special)
        ids: npt.NDArray[np.uint32] = self._engine.encode_to_numpy(text, policy, add_special_tokens)
        return ids

    def encode_batch(
        self,
        texts: Iterable[Text],
        allowed_special: Names = NONE,
        disallowed_special: Names = "all",
        add_special_tokens: bool = False,
        threads: int | None = None,
    ) -> list[list[int]]:
        """The ids of several texts, worked on by `threads` threads (as many as there are cores, by default)."""
        policy = self._policy(allowed_special, disallowed_special)
        return list(self._engine.encode_batch(texts, policy, add_special_tokens, thread_count(threads)))

    def encode_batch_to_numpy(
        self,
        texts: Iterable[Text],
        allowed_special: Names = NONE,
        disallowed_special: Names = "all",
        add_special_tokens: bool = False,
        threads: int | None = None,
    ) -> Ragged:
        """The ids of several texts in one buffer."""
        policy = self._policy(allowed_special, disallowed_special)
        return Ragged(*self._engine.encode_batch_to_numpy(texts, policy, add_special_tokens, thread_count(threads)))

    def tokenize(
        self,
        text: Text,
        allowed_special: Names = NONE,
        disallowed_special: Names = "all",
        add_special_tokens: bool = False,
    ) -> Encoding:
        """The tokens of a text with their bytes and their places in it."""
        policy = self._policy(allowed_special, disallowed_special)
        ids, byte_spans, char_spans = self._engine.encode_with_spans(text, policy, add_special_tokens)
        listed = ids.tolist()
        return Encoding(
            text=text if isinstance(text, str) else bytes(text),
            ids=ids,
            token_bytes=[self.token_bytes(id) for id in listed],
            pieces=[self.token_piece(id) for id in listed],
            byte_spans=byte_spans,
            char_spans=char_spans,
        )

    def fim(
        self,
        prefix: Text,
        suffix: Text,
        order: Literal["psm", "spm"] = "psm",
        allowed_special: Names = NONE,
        disallowed_special: Names = "all",
    ) -> list[int]:
        """A prompt to fill in the middle: the ids of what stands before and after it, between the tokens for that.

        Which tokens those are, `special.FIM_TOKENS` says. The model goes on with the middle (M. Bavarian et al. 2022,
        "Efficient Training of Language Models to Fill in the Middle").

        Args:
            order: `"psm"`, prefix token, prefix, suffix token, suffix, middle token; or `"spm"`, prefix token, suffix
                token, suffix, middle token, prefix.

        Raises:
            SubwordValueError: the tokenizer has no such tokens.
            SpecialTokenError: a text spells a special token that is not allowed.
        """
        if order not in ("psm", "spm"):
            raise SubwordValueError(f'order must be "psm" or "spm", not {order!r}')
        known = {content: id for id, content in self._extra_by_id.items()}
        before, hole, middle = (known[token] for token in find_fim(known))
        first, last = (self.encode(text, allowed_special, disallowed_special) for text in (prefix, suffix))
        if order == "psm":
            return [before, *first, hole, *last, middle]
        return [before, hole, *last, middle, *first]

    def find_special(self, text: Text) -> list[tuple[int, int, int]]:
        """Where the text spells special tokens: (start, end, id), in characters; the leftmost, then the longest."""
        found: list[tuple[int, int, int]] = self._engine.find_special(text)
        return found

    # ======================== counting and cutting ========================

    def count(
        self,
        text: Text,
        allowed_special: Names = NONE,
        disallowed_special: Names = "all",
        add_special_tokens: bool = False,
    ) -> int:
        """How many tokens a text takes: `len(encode(text))`, without making the list."""
        return int(self._engine.count(text, self._policy(allowed_special, disallowed_special), add_special_tokens))

    def count_batch(
        self,
        texts: Iterable[Text],
        allowed_special: Names = NONE,
        disallowed_special: Names = "all",
        add_special_tokens: bool = False,
        threads: int | None = None,
    ) -> list[int]:
        """How many tokens each of several texts takes."""
        policy = self._policy(allowed_special, disallowed_special)
        return list(self._engine.count_batch(texts, policy, add_special_tokens, thread_count(threads)))

    def fits(
        self,
        text: Text,
        n: int,
        allowed_special: Names = NONE,
        disallowed_special: Names = "all",
        add_special_tokens: bool = False,
    ) -> bool:
        """Whether a text takes at most `n` tokens."""
        return self.count(text, allowed_special, disallowed_special, add_special_tokens) <= at_least_zero("n", n)

    def truncate(
        self,
        text: Any,
        n: int,
        side: Literal["right", "left"] = "right",
        allowed_special: Names = NONE,
        disallowed_special: Names = "all",
        add_special_tokens: bool = False,
    ) -> Any:
        """The longest part of a text that takes at most `n` tokens and holds only whole characters, exactly.

        Args:
            side: where to cut: `"right"` keeps the start, `"left"` keeps the end.

        Returns:
            A `str` for a `str`, bytes for bytes.

        Raises:
            SubwordValueError: the tokens of the template alone are more than `n`.
        """
        policy = self._policy(allowed_special, disallowed_special)
        start, end = self._engine.truncate(text, at_least_zero("n", n), side, policy, add_special_tokens)
        return slice_of(text, start, end)

    def chunk(
        self,
        text: Any,
        max_tokens: int = 512,
        overlap: int = 0,
        allowed_special: Names = NONE,
        disallowed_special: Names = "all",
        add_special_tokens: bool = False,
    ) -> list[Chunk]:
        """Cut a text into parts of at most `max_tokens` tokens each, every one as long as it can be.

        Args:
            overlap: a chunk starts before the end of the one before it, by the longest stretch of at most so many
                tokens (less where no room is left for anything new).

        Returns:
            Chunks `(text, start, end, tokens)`; `text[start:end]` of the original is the chunk's text.

        Raises:
            SubwordValueError: one character alone takes more than `max_tokens` tokens, or `overlap >= max_tokens`.
        """
        policy = self._policy(allowed_special, disallowed_special)
        spans = self._engine.chunk(
            text, at_least_zero("max_tokens", max_tokens), at_least_zero("overlap", overlap), policy, add_special_tokens
        )
        return [Chunk(slice_of(text, start, end), start, end, count) for start, end, count in spans]

    # ======================== decoding ========================

    def decode(self, ids: Iterable[int], errors: str = "replace", skip_special_tokens: bool = False) -> str:
        """The text of some ids. Ids may end inside a character: `errors` says what becomes of such bytes.

        Raises:
            UnknownTokenError: an id that the vocabulary does not have; the message says which and where.
            SubwordValueError: with `errors="strict"`, the bytes are not well-formed UTF-8.
        """
        return decode_utf8(self.decode_bytes(ids, skip_special_tokens), errors)

    def decode_bytes(self, ids: Iterable[int], skip_special_tokens: bool = False) -> bytes:
        """The bytes of some ids, whatever they are as text."""
        data: bytes = self._engine.decode_bytes(ids, skip_special_tokens)
        return data

    def decode_batch(
        self,
        batch: Iterable[Iterable[int]],
        errors: str = "replace",
        skip_special_tokens: bool = False,
        threads: int | None = None,
    ) -> list[str]:
        """The texts of several lists of ids."""
        decoded = self._engine.decode_bytes_batch(list_of("batch", batch), skip_special_tokens, thread_count(threads))
        return [decode_utf8(data, errors) for data in decoded]

    def stream_decoder(self, errors: str = "replace", skip_special_tokens: bool = False) -> StreamDecoder:
        """A decoder for ids that arrive one by one."""
        return StreamDecoder(self, errors, skip_special_tokens)

    # ======================== making others ========================

    def with_tokens(
        self,
        special: Iterable[str] = (),
        added: Iterable[str | ExtraToken] = (),
        reserved: int = 0,
    ) -> Tokenizer:
        """A new tokenizer with more tokens; all existing ids stay.

        The new ones take the ids from `n_vocab` on: first `special`, then `added`, then `reserved` special tokens
        `<|reserved_0|>`, `<|reserved_1|>` … for later use. An item of `added` may be an `ExtraToken` with flags.

        Raises:
            SubwordValueError: a token is empty, is there already, or is given twice.
        """
        special, added = list_of("special", special), list_of("added", added)
        taken = set(self._extra_by_id.values())
        wanted = [token if isinstance(token, ExtraToken) else ExtraToken(0, token, "added") for token in added]
        wanted = [ExtraToken(0, token, "special") for token in special] + wanted
        if self.n_vocab + len(wanted) + at_least_zero("reserved", reserved) > MAX_ID:
            raise SubwordValueError(f"{len(wanted) + reserved} more tokens would go beyond the largest id, {MAX_ID}")
        number = 0
        for _ in range(reserved):
            while f"<|reserved_{number}|>" in taken:
                number += 1
            wanted.append(ExtraToken(0, f"<|reserved_{number}|>", "special"))
            number += 1
        extra = list(self._spec.extra)
        for id, token in enumerate(wanted, self.n_vocab):
            check_content(token.content)
            if token.content in taken:
                raise SubwordValueError(f"the token {token.content!r} is there already, or given twice")
            taken.add(token.content)
            flags = {name: getattr(token, name) for name in ("kind", "single_word", "lstrip", "rstrip", "normalized")}
            extra.append(ExtraToken(id, token.content, **flags))
        stages = self._spec.stages
        if extra and MatchTokens() not in stages:
            stages = (MatchTokens(), *stages)
        if any(token.normalized for token in extra) and MatchTokens(normalized=True) not in stages:
            raise SubwordValueError("normalized=True needs a tokenizer that matches tokens in normalized text")
        return Tokenizer(self._spec.replace(stages=stages, extra=tuple(extra)), engine=self._engine_name)

    def save(self, path: str | os.PathLike[str], format: str | None = None) -> Path:
        """Write the tokenizer to a file: all of it, or nothing.

        Args:
            path: the file. An existing one is replaced only when the new one is complete.
            format: `"native"`, `"tokenizer.json"`, `"subword-nmt"` or `"clip"`; by default what the name says
                (`.subword`, `.json`, `.codes`, `.txt.gz`).

        Raises:
            SubwordValueError: the format is unknown, or cannot hold a part of this tokenizer (the message says which).
            SubwordOSError: the file cannot be written.
        """
        from . import formats

        return formats.save(self._spec, path, format)

    # ======================== as a value ========================

    def __eq__(self, other: object) -> bool:
        return self._spec == other._spec if isinstance(other, Tokenizer) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._spec)

    def __reduce__(self) -> Any:
        return _rebuild, (self._spec, self._engine_name)

    def __repr__(self) -> str:
        model = type(self._spec.model).__name__
        specials = len(self.special_tokens)
        return f"<Tokenizer: {model}, {len(self.vocab):,} entries, {specials} special, {self.fingerprint[:12]}>"

    def _policy(self, allowed: Names, disallowed: Names) -> Any:
        if allowed is NONE and isinstance(disallowed, str) and disallowed == "all":
            return self._engine.default_policy
        specials = self.special_tokens.keys()
        taken = names_of("allowed_special", allowed, specials)
        refused = names_of("disallowed_special", disallowed, specials - taken)
        key = (taken, refused)
        policy = self._policies.get(key)
        if policy is None:
            if len(self._policies) >= 64:
                self._policies.clear()
            policy = self._policies[key] = self._engine.policy(sorted(taken), sorted(refused))
        return policy


class Chunk(NamedTuple):
    """A part of a text: `text` is `original[start:end]`, and takes `tokens` tokens."""

    text: Any
    start: int
    end: int
    tokens: int


class StreamDecoder:
    """Gives text as soon as it is certain: the bytes of an unfinished character are held back.

    What `feed` and `finish` return, put together, is what `decode` gives for all the ids at once.
    """

    def __init__(self, tokenizer: Tokenizer, errors: str = "replace", skip_special_tokens: bool = False) -> None:
        check_errors(errors)
        self._tokenizer = tokenizer
        self._skip = skip_special_tokens
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors)
        self._errors = errors
        self._tail: list[int] = []  # the last ids, which may get a space behind them when more come

    def feed(self, ids: int | Iterable[int]) -> str:
        """The text that the next id, or the next few, make certain."""
        listed = ids if isinstance(ids, Iterable) else [ids]
        if self._tokenizer.spec.decode.trim:
            return self._decode(self._more(list(listed)), final=False)
        return self._decode(self._tokenizer.decode_bytes(listed, self._skip), final=False)

    def _more(self, ids: list[int]) -> bytes:
        """What `ids` add to the ids before them."""
        before, tail = self._tokenizer.decode_bytes(self._tail, self._skip), self._tail + ids
        data = self._tokenizer.decode_bytes(tail, self._skip)[len(before) :]
        self._tail = ids[-1:] if self._tokenizer.decode_bytes(ids[-1:], self._skip) else tail
        return data

    def finish(self) -> str:
        """What is left, and a fresh start."""
        text = self._decode(b"", final=True)
        self._utf8.reset()
        self._tail = []
        return text

    def _decode(self, data: bytes, final: bool) -> str:
        try:
            return self._utf8.decode(data, final)
        except UnicodeDecodeError as error:
            self._utf8.reset()
            raise SubwordValueError(f"the ids are not well-formed UTF-8: {error.reason}") from error


class _VocabView(Mapping[bytes, int]):
    """The entries and the extra tokens of a tokenizer, looked up where they are."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        ids = tokenizer.spec.model.vocab.ids
        self._extra = [token for token in tokenizer.spec.extra if not np.isin(token.id, ids, assume_unique=True)]

    def __getitem__(self, token: bytes) -> int:
        if not isinstance(token, bytes):
            raise UnknownTokenError(f"the keys of the vocabulary are bytes, not {type(token).__name__}")
        return self._tokenizer.token_id(token)

    def __iter__(self) -> Iterator[bytes]:
        yield from self._tokenizer.spec.model.vocab.pieces
        yield from (token.content.encode() for token in self._extra)

    def __len__(self) -> int:
        return len(self._tokenizer.spec.model.vocab) + len(self._extra)

    def __repr__(self) -> str:
        return f"<{len(self):,} entries>"


def _rebuild(spec: Spec, engine: Literal["core", "reference"]) -> Tokenizer:
    return Tokenizer(spec, engine=engine)


# ======================== arguments ========================


def thread_count(threads: int | None) -> int:
    """`threads`, or the cores this process may use."""
    if threads is None:
        affinity: Callable[[int], Sequence[int]] | None = getattr(os, "sched_getaffinity", None)
        return len(affinity(0)) if affinity else os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= 1024:
        raise SubwordValueError(f"threads must be an integer from 1 to 1024, or None for all cores; not {threads!r}")
    return threads


def at_least_zero(name: str, value: int) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or not 0 <= value.__index__() < 2**63:
        raise SubwordValueError(f"{name} must be an integer of at least 0, not {value!r}")
    return value.__index__()


def list_of(name: str, value: Any) -> list[Any]:
    """The items of a list, which one string is not."""
    if isinstance(value, (str, bytes)):
        raise SubwordValueError(f"{name} must be a list, not one string: put it into a list, [{value!r}]")
    try:
        return list(value)
    except TypeError:
        raise SubwordValueError(f"{name} must be a list, not {type(value).__name__}") from None


def names_of(name: str, value: Any, everything: Collection[str]) -> frozenset[str]:
    """The names that a policy argument means: `everything` for `"all"`."""
    if isinstance(value, str):
        if value == "all":
            return frozenset(everything)
        raise SubwordValueError(f'{name} must be "all" or a set of tokens, not {value!r}: write {{{value!r}}}')
    names = list_of(name, value)
    for token in names:
        check_content(token)
    return frozenset(names)


def check_content(content: str) -> None:
    """Refuse what cannot be the content of an extra token."""
    if not isinstance(content, str) or not content:
        raise SubwordValueError(f"a token must be a string of at least one character, not {content!r}")
    try:
        content.encode()
    except UnicodeEncodeError:
        raise SubwordValueError(f"the token {content!r} holds a lone surrogate, which no text can spell") from None


def check_errors(errors: str) -> None:
    try:
        b"\xff".decode("utf-8", errors)
    except UnicodeDecodeError:
        pass
    except (LookupError, TypeError, ValueError):
        known = "strict, replace, ignore, backslashreplace, surrogateescape"
        raise SubwordValueError(f"unknown way to treat errors: {errors!r}; there are {known}") from None


def decode_utf8(data: bytes, errors: str) -> str:
    check_errors(errors)
    try:
        return data.decode("utf-8", errors)
    except UnicodeDecodeError as error:
        raise SubwordValueError(
            f"the ids are not well-formed UTF-8 at byte {error.start} of the text ({error.reason}); pass "
            'errors="replace", or use decode_bytes'
        ) from error


def slice_of(text: Any, start: int, end: int) -> Any:
    return text[start:end] if isinstance(text, str) else memoryview(text).tobytes()[start:end]
