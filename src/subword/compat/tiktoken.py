"""tiktoken's public functions and its `Encoding`, on subword.

    import subword.compat.tiktoken as tiktoken

    enc = tiktoken.get_encoding("o200k_base")

Names, arguments, results and the classes of errors are those of tiktoken 0.14. What differs, and why:

* `pat_str` is any expression that runs in linear time (`subword.SplitRegex` says which do) and leaves out no text;
  another is a ValueError. Every pattern of tiktoken's own encodings is of that kind.
* Errors say more: a refused special token is a `SpecialTokenError` (a ValueError), an unknown id an
  `UnknownTokenError` (a KeyError). Ids that are no ids at all (`-1`, `"a"`) are these, too, where tiktoken raises
  OverflowError or TypeError, and a wrong `explicit_n_vocab` is a ValueError, not an AssertionError.
* An encoding that could not encode every text, or not decode every id to one thing, is refused at once: a byte without
  a token, two tokens of one rank, a special token with the rank of another token. tiktoken panics later, or guesses.
* Of special tokens that start alike, the longest is taken from text; tiktoken takes one by chance of a hash table.
* A lone surrogate is U+FFFD in every method; in tiktoken, `encode_to_numpy` and `encode_with_unstable` raise.
* `encode_with_unstable` gives its completions in sorted order.
* Decoding a batch takes one thread, whatever `num_threads` says.
* Plugins (`tiktoken_ext`) are not looked for, and the submodules `core`, `load`, `model` and `registry` are not there.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Set
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from .. import formats
from ..errors import SubwordValueError, UnknownTokenError
from ..formats.bare import bpe_spec, checked_special_tokens, splitting_by
from ..formats.known import KNOWN
from ..patterns import PATTERNS, get_pattern
from ..spec import BPE, Split, Vocab
from ..tokenizer import NONE, Tokenizer

Allowed: TypeAlias = "Literal['all'] | Set[str]"
Disallowed: TypeAlias = "Literal['all'] | Collection[str]"

__all__ = ["Encoding", "encoding_for_model", "encoding_name_for_model", "get_encoding", "list_encoding_names"]


class Encoding:
    """A tokenizer with tiktoken's methods. Immutable, safe to share between threads, picklable."""

    def __init__(
        self,
        name: str,
        *,
        pat_str: str,
        mergeable_ranks: Mapping[bytes, int],
        special_tokens: Mapping[str, int],
        explicit_n_vocab: int | None = None,
    ) -> None:
        """An encoding of one's own.

        Args:
            name: what it is called.
            pat_str: the split pattern: its regular expression, as tiktoken writes it, or its name in subword.
            mergeable_ranks: tokens to their ranks; the lower rank merges first, and is the id.
            special_tokens: special tokens to their ids. Two may have the same id: it decodes to the first.
            explicit_n_vocab: checked to be the number of tokens and the largest id plus one.

        Raises:
            ValueError: one of them cannot be used; the message says why.
        """
        self.name = name
        self._pat_str = pat_str
        self._mergeable_ranks = dict(mergeable_ranks)
        self._special_tokens = dict(special_tokens)
        self.max_token_value: int = max([*self._mergeable_ranks.values(), *self._special_tokens.values()], default=-1)
        tokens = len(self._mergeable_ranks) + len(self._special_tokens)
        if explicit_n_vocab and not tokens == self.n_vocab == explicit_n_vocab:
            raise SubwordValueError(
                f"explicit_n_vocab={explicit_n_vocab}, but there are {tokens} tokens with ids up to "
                f"{self.max_token_value}"
            )
        special, self._second = _one_name_an_id(self._special_tokens, self.n_vocab)
        vocab = Vocab.of((token, rank) for token, rank in self._mergeable_ranks.items() if token)
        self._empty = self._mergeable_ranks.get(b"")  # Whisper's: no text gives it, and it decodes to nothing
        model = BPE(vocab, priority="rank", ignore_merges=True)
        splitting = Split(pat_str) if pat_str in PATTERNS else splitting_by(pat_str)
        self._tok = Tokenizer(bpe_spec(model, splitting, checked_special_tokens(special), source=f"Encoding {name!r}"))

    def __repr__(self) -> str:
        return f"<Encoding {self.name!r}>"

    def __reduce__(self) -> Any:
        if _encodings.get(self.name) is self:
            return get_encoding, (self.name,)
        return _rebuild, (self.name, self._pat_str, self._mergeable_ranks, self._special_tokens)

    # ======================== encoding ========================

    def encode_ordinary(self, text: str) -> list[int]:
        """The ids of a text in which special tokens are just text."""
        return self._tok.encode_ordinary(_text(text))

    def encode(
        self, text: str, *, allowed_special: Allowed = NONE, disallowed_special: Disallowed = "all"
    ) -> list[int]:
        """The ids of a text. Special tokens in `allowed_special` are taken from it; text that spells one in
        `disallowed_special` (`"all"`: any that is not allowed) is refused; others are just text.

        Raises:
            ValueError: the text spells a special token that is not allowed.
        """
        ids = self._tok.encode(_text(text), allowed_special or NONE, disallowed_special)
        return self._first_names(ids) if self._second and allowed_special else ids

    def encode_to_numpy(
        self, text: str, *, allowed_special: Allowed = NONE, disallowed_special: Disallowed = "all"
    ) -> npt.NDArray[np.uint32]:
        """The ids of a text as an array, shape (tokens,), uint32. See `encode`."""
        ids = self._tok.encode_to_numpy(_text(text), allowed_special or NONE, disallowed_special)
        for second, id in self._second.items():
            ids[ids == second] = id
        return ids

    def encode_ordinary_batch(self, text: Iterable[str], *, num_threads: int = 8) -> list[list[int]]:
        """The ids of several texts in which special tokens are just text."""
        return self._tok.encode_batch([_text(each) for each in text], disallowed_special=(), threads=num_threads)

    def encode_batch(
        self,
        text: Iterable[str],
        *,
        num_threads: int = 8,
        allowed_special: Allowed = NONE,
        disallowed_special: Disallowed = "all",
    ) -> list[list[int]]:
        """The ids of several texts. See `encode`."""
        texts = [_text(each) for each in text]
        batch = self._tok.encode_batch(texts, allowed_special or NONE, disallowed_special, threads=num_threads)
        return [self._first_names(ids) for ids in batch] if self._second and allowed_special else batch

    def encode_with_unstable(
        self, text: str, *, allowed_special: Allowed = NONE, disallowed_special: Disallowed = "all"
    ) -> tuple[list[int], list[list[int]]]:
        """The tokens of a text that stay whatever is written after it, and how the rest may come out.

        The rest are the bytes of the last piece, with the white space before it if it is white space. If more text
        follows, some token stands across the end of the present text. So, for every place in the rest, each token that
        starts with what stands from there to the end is put there, and the result is encoded: what covers the rest, up
        to the token that crosses its end, is a completion. One more, where the rest ends in white space, has its last
        character apart, as a letter after it would have it.

        Returns:
            The stable ids, and the completions in sorted order.
        """
        self.encode(text, allowed_special=allowed_special, disallowed_special=disallowed_special)  # to refuse it
        stable, rest = self._stable(text, allowed_special)
        completions: set[tuple[int, ...]] = set()
        if rest:
            completions.update((self._mergeable_ranks[token],) for token in self._tokens_that_start_with(rest))
        for at in range(1, len(rest)):
            for token in self._tokens_that_start_with(rest[at:]):
                completions.add(tuple(self._covering(rest[:at] + token, len(rest))))
        last = rest.decode("utf-8", "ignore")[-1:]
        if last.isspace() and len(last.encode()) < len(rest):
            before = rest.removesuffix(last.encode())
            completions.add((*self._encode_single_piece(before), *self._encode_single_piece(last)))
        return stable, [list(completion) for completion in sorted(completions)]

    def encode_single_token(self, text_or_bytes: str | bytes) -> int:
        """The id of a token, special tokens included.

        Raises:
            KeyError: it is no token.
        """
        token = text_or_bytes.encode() if isinstance(text_or_bytes, str) else bytes(text_or_bytes)
        id = self._mergeable_ranks.get(token)
        if id is None:
            id = self._special_tokens.get(token.decode("utf-8", "replace"))
        if id is None:
            raise UnknownTokenError(f"{text_or_bytes!r} is no token of {self.name}")
        return id

    # ======================== decoding ========================

    def decode_bytes(self, tokens: Iterable[int]) -> bytes:
        """The bytes of some ids.

        Raises:
            KeyError: an id that the encoding does not have.
        """
        return self._tok.decode_bytes(self._known_ids(tokens))

    def decode(self, tokens: Iterable[int], errors: str = "replace") -> str:
        """The text of some ids. Bytes that are no text are treated as `errors` says, as in `bytes.decode`."""
        return self.decode_bytes(tokens).decode("utf-8", errors)

    def decode_single_token_bytes(self, token: int) -> bytes:
        """The bytes of one id, special tokens included.

        Raises:
            KeyError: the encoding has no such id.
        """
        return b"".join(self._tok.token_bytes(id) for id in self._known_ids([token]))

    def decode_tokens_bytes(self, tokens: Iterable[int]) -> list[bytes]:
        """The bytes of each of some ids."""
        return [self.decode_single_token_bytes(token) for token in tokens]

    def decode_with_offsets(self, tokens: Iterable[int]) -> tuple[str, list[int]]:
        """The text of some ids and, for each, the first character that holds a byte of it.

        Raises:
            UnicodeDecodeError: the ids are not whole characters.
        """
        pieces = self.decode_tokens_bytes(tokens)
        data = b"".join(pieces)
        text = data.decode("utf-8", "strict")
        starts = np.cumsum([0, *map(len, pieces)])[:-1]
        characters = np.cumsum((np.frombuffer(data, dtype=np.uint8) & 0xC0) != 0x80) - 1  # the character of each byte
        return text, characters[starts].tolist() if data else [0] * len(pieces)

    def decode_batch(
        self, batch: Iterable[Iterable[int]], *, errors: str = "replace", num_threads: int = 8
    ) -> list[str]:
        """The texts of several lists of ids."""
        return [data.decode("utf-8", errors) for data in self.decode_bytes_batch(batch, num_threads=num_threads)]

    def decode_bytes_batch(self, batch: Iterable[Iterable[int]], *, num_threads: int = 8) -> list[bytes]:
        """The bytes of several lists of ids."""
        return [self.decode_bytes(tokens) for tokens in batch]

    # ======================== what it is ========================

    def token_byte_values(self) -> list[bytes]:
        """The bytes of all tokens but the special ones, sorted."""
        return list(self._sorted_tokens)

    @property
    def eot_token(self) -> int:
        """The id of `<|endoftext|>`. Raises KeyError if there is none."""
        return self._special_tokens["<|endoftext|>"]

    @cached_property
    def special_tokens_set(self) -> set[str]:
        """The special tokens."""
        return set(self._special_tokens)

    def is_special_token(self, token: int) -> bool:
        """Whether the id is that of a special token."""
        return token in self._special_ids

    @property
    def n_vocab(self) -> int:
        """The largest id plus one."""
        return self.max_token_value + 1

    # ======================== inside ========================

    @cached_property
    def _special_ids(self) -> frozenset[int]:
        return frozenset(self._special_tokens.values())

    @cached_property
    def _sorted_tokens(self) -> list[bytes]:
        return sorted(self._mergeable_ranks)

    @cached_property
    def _pieces(self) -> Tokenizer:
        """The same model without splitting."""
        spec = self._tok.spec
        return Tokenizer(spec.replace(stages=(Split("none"),), extra=()))

    def _encode_single_piece(self, text_or_bytes: str | bytes) -> list[int]:
        return self._pieces.encode_ordinary(text_or_bytes)

    def _encode_bytes(self, text: bytes) -> list[int]:
        """The ids of bytes that may break off inside a character: such bytes belong to the piece before them."""
        try:
            return self.encode_ordinary(text.decode())
        except UnicodeDecodeError as error:
            stable, rest = self._stable(text[: error.start].decode(), NONE)
            return stable + self._encode_single_piece(rest + text[error.start :])

    def _first_names(self, ids: list[int]) -> list[int]:
        return [self._second.get(id, id) for id in ids]

    def _known_ids(self, tokens: Iterable[int]) -> Iterable[int]:
        """Ids for the tokenizer: without the empty token, and refusing what only it knows."""
        if not self._second and self._empty is None:
            return tokens
        tokens = list(tokens)
        for token in tokens:
            if token in self._second:
                raise UnknownTokenError(f"the vocabulary has no id {token}")
        return [token for token in tokens if token != self._empty]

    def _stable(self, text: str, allowed_special: Allowed) -> tuple[list[int], bytes]:
        """The ids before the last piece, and the bytes from there; with white space, all of it at the end."""
        ids = self.encode(text, allowed_special=allowed_special, disallowed_special=())
        if not ids or self.is_special_token(ids[-1]):
            return ids, b""
        spans = self._tok.tokenize(text, allowed_special or NONE, ()).byte_spans
        first = int(np.searchsorted(spans[:, 0], self._last_piece(text, allowed_special)))
        if self._is_white(ids[first]):
            while first > 0 and self._is_white(ids[first - 1]):
                first -= 1
        return ids[:first], self.decode_bytes(ids[first:])

    def _last_piece(self, text: str, allowed_special: Allowed) -> int:
        """The byte at which the last piece starts."""
        policy, _ = self._tok._how(allowed_special or NONE, (), False)
        return int(self._tok._engine.split(text, policy)[-1][0])

    def _is_white(self, id: int) -> bool:
        return not self.is_special_token(id) and not self.decode_single_token_bytes(id).strip(b" \n\t")

    def _tokens_that_start_with(self, data: bytes) -> list[bytes]:
        """Of the sorted tokens, those from `data` on that start with it."""
        tokens = self._sorted_tokens
        first = bisect_left(tokens, data)
        behind = data.rstrip(b"\xff")  # the smallest bytes above all that start with `data`
        last = bisect_left(tokens, behind[:-1] + bytes([behind[-1] + 1])) if behind else len(tokens)
        return tokens[first:last]

    def _covering(self, data: bytes, length: int) -> list[int]:
        """The first ids of `data` that have `length` bytes together."""
        try:
            ids = self.encode_ordinary(data.decode())
        except UnicodeDecodeError:
            ids = self._encode_single_piece(data)
        covered = 0
        for count, id in enumerate(ids, 1):
            covered += len(self._tok.token_bytes(id))
            if covered >= length:
                return ids[:count]
        return ids


def _text(text: str) -> str:
    if not isinstance(text, str):
        raise TypeError(f"a text must be str, not {type(text).__name__}")
    return text


def _one_name_an_id(special_tokens: Mapping[str, int], n_vocab: int) -> tuple[dict[str, int], dict[int, int]]:
    """Special tokens with an id each, and, for second names of an id, which got ids from `n_vocab` on, the true one."""
    named: set[int] = set()
    special: dict[str, int] = {}
    second: dict[int, int] = {}
    for token, id in special_tokens.items():
        if id in named:
            second[n_vocab + len(second)] = id
        special[token] = n_vocab + len(second) - 1 if id in named else id
        named.add(id)
    return special, second


def _rebuild(name: str, pat_str: str, ranks: dict[bytes, int], special_tokens: dict[str, int]) -> Encoding:
    return Encoding(name, pat_str=pat_str, mergeable_ranks=ranks, special_tokens=special_tokens)


# ======================== by name ========================

_encodings: dict[str, Encoding] = {}
_lock = threading.Lock()

# What tiktoken has beside the special tokens of `known.py`: a second name for an id.
_SECOND_NAMES = {"o200k_harmony": {"<|reserved_200018|>": 200018}}


def get_encoding(encoding_name: str) -> Encoding:
    """An encoding of OpenAI's by name, the same object each time. See `subword.load` for where its file is looked for.

    Raises:
        ValueError: there is no such encoding; the message lists those there are.
        OSError: its vocabulary is not on this machine and cannot be downloaded.
    """
    with _lock:
        if not isinstance(encoding_name, str) or encoding_name not in _encodings:
            spec = formats.load_known(encoding_name)
            row = KNOWN[encoding_name]
            _encodings[encoding_name] = Encoding(
                encoding_name,
                pat_str=str(get_pattern(row.pattern).regex),
                mergeable_ranks=dict(spec.model.vocab.items()),
                special_tokens=row.special_tokens | _SECOND_NAMES.get(encoding_name, {}),
            )
        return _encodings[encoding_name]


def list_encoding_names() -> list[str]:
    """The names that `get_encoding` takes."""
    return list(KNOWN)


# Models, and what the names of models begin with, by encoding: tiktoken 0.14, model.py. `{}` stands for each of the
# sizes of the first models.
_SIZES = ("davinci", "curie", "babbage", "ada")
_MODELS = {
    "o200k_base": "o1 o3 o4-mini gpt-5 gpt-4.1 gpt-4o",
    "cl100k_base": "gpt-4 gpt-3.5-turbo gpt-3.5 gpt-35-turbo davinci-002 babbage-002 text-embedding-ada-002 "
    "text-embedding-3-small text-embedding-3-large",
    "p50k_base": "text-davinci-003 text-davinci-002 code-davinci-002 code-davinci-001 code-cushman-002 "
    "code-cushman-001 davinci-codex cushman-codex",
    "p50k_edit": "text-davinci-edit-001 code-davinci-edit-001",
    "r50k_base": "{} text-{}-001 text-similarity-{}-001 text-search-{}-doc-001 code-search-babbage-code-001 "
    "code-search-ada-code-001",
    "gpt2": "gpt2 gpt-2",
}
_PREFIXES = {
    "o200k_base": "o1- o3- o4-mini- gpt-5 gpt-4.5- gpt-4.1- chatgpt-4o- gpt-4o- ft:gpt-4o",
    "cl100k_base": "gpt-4- gpt-3.5-turbo- gpt-35-turbo- ft:gpt-4 ft:gpt-3.5-turbo ft:davinci-002 ft:babbage-002",
    "o200k_harmony": "gpt-oss-",
}


def _by_name(table: Mapping[str, str]) -> dict[str, str]:
    return {
        name.format(size): encoding for encoding, names in table.items() for name in names.split() for size in _SIZES
    }


MODEL_TO_ENCODING = _by_name(_MODELS)
MODEL_PREFIX_TO_ENCODING = _by_name(_PREFIXES)


def encoding_name_for_model(model_name: str) -> str:
    """The name of the encoding that a model uses.

    Raises:
        KeyError: the model is not known.
    """
    if model_name in MODEL_TO_ENCODING:
        return MODEL_TO_ENCODING[model_name]
    for prefix in sorted(MODEL_PREFIX_TO_ENCODING, key=len, reverse=True):
        if model_name.startswith(prefix):
            return MODEL_PREFIX_TO_ENCODING[prefix]
    raise UnknownTokenError(f"no encoding is known for the model {model_name!r}; get_encoding takes an encoding's name")


def encoding_for_model(model_name: str) -> Encoding:
    """The encoding that a model uses.

    Raises:
        KeyError: the model is not known.
    """
    return get_encoding(encoding_name_for_model(model_name))
