"""What can be asked of the tokens that training makes, besides being frequent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import _core
from .arguments import flag, integer, list_of
from .counts import Splitting
from .engine import compile_spec
from .errors import SubwordValueError
from .spec import BPE, ExtraToken, Packed, Spec, Vocab

N_BYTES = 256


@dataclass(frozen=True)
class Wanted:
    """Arguments of `train`, checked. `initial` is unique tokens, each a piece of its own."""

    max_token_bytes: int | None = None
    initial: list[bytes] = field(default_factory=list)
    limit_alphabet: int | None = None
    keep_whole_characters: bool = False

    @classmethod
    def of(
        cls,
        max_token_bytes: Any,
        initial: Iterable[Any],
        limit_alphabet: Any,
        keep_whole_characters: Any,
        unit: str,
    ) -> Wanted:
        """All that can be said without knowing how text is split.

        Raises:
            SubwordValueError: an argument cannot be used, or two contradict each other.
        """
        most = None if max_token_bytes is None else integer("max_token_bytes", max_token_bytes, 1)
        alphabet = None if limit_alphabet is None else integer("limit_alphabet", limit_alphabet, 1)
        if alphabet is not None and unit == "byte":
            raise SubwordValueError(
                'limit_alphabet goes with unit="character": the alphabet of unit="byte" is the 256 bytes, whatever the '
                "text is"
            )
        whole = flag("keep_whole_characters", keep_whole_characters)
        tokens = list(dict.fromkeys(_initial_token(token) for token in list_of("initial", initial)))
        for token in tokens:
            if most is not None and len(token) > most:
                raise SubwordValueError(
                    f"the initial token {_shown(token)} has {len(token)} bytes, more than max_token_bytes={most}"
                )
            if (whole or unit == "character") and _text_or_none(token) is None:
                why = 'unit="character"' if unit == "character" else "keep_whole_characters"
                raise SubwordValueError(
                    f"the initial token {_shown(token)} is not made of whole characters (UTF-8), as {why} has them"
                )
        needed = {character for token in tokens for character in token.decode(errors="replace")}
        if alphabet is not None and len(needed) > alphabet:
            raise SubwordValueError(
                f"the initial tokens have {len(needed)} characters, more than limit_alphabet={alphabet}"
            )
        return cls(most, tokens, alphabet, whole)

    def check_pieces(self, splitting: Splitting) -> None:
        """That each initial token, as a text of its own, is one piece: else no merges could ever make it.

        Raises:
            SubwordValueError: one is cut, or rewritten, and how.
        """
        if not self.initial:
            return
        entries = Vocab(Packed.of(bytes([byte]) for byte in range(N_BYTES)), np.arange(N_BYTES, dtype=np.uint32))
        specials = splitting.special_tokens
        extra = tuple(ExtraToken(N_BYTES + at, special) for at, special in enumerate(specials))
        engine = compile_spec(Spec(stages=splitting.stages, model=BPE(entries), extra=extra))
        policy = engine.policy(specials, [])
        for token in self.initial:
            ids = engine.encode(token, policy, False)
            spans = engine.split(token, policy)
            if special := next((specials[id - N_BYTES] for id in ids if id >= N_BYTES), None):
                why = f"holds the special token {special!r}, which is never part of another"
            elif len(spans) > 1:
                why = f"is cut into {' | '.join(_shown(token[start:end]) for start, end in spans)}"
            elif not ids:
                why = "is left out of all pieces"
            elif bytes(ids) != token:
                why = f"becomes {bytes(ids).decode(errors='replace')!a}: give it like that"
            else:
                continue
            raise SubwordValueError(
                f"the initial token {_shown(token)} {why} (pattern {splitting.pattern!r}, digits {splitting.digits!r}, "
                f"normalization {splitting.normalization!r})"
            )

    def merges_needed(self, unit: str, byte_order: bytes, end_of_word: str, tie_rule: str) -> int:
        """How many merges make the initial tokens."""
        pieces = _core.Pieces([(token, 1) for token in self.initial])
        enough = sum(map(len, self.initial))
        if unit == "byte":
            merges, *_ = pieces.learn_bpe(
                enough, byte_order, tie_rule, None, self.max_token_bytes, self.keep_whole_characters
            )
        else:
            merges, *_ = pieces.learn_bpe_of_characters(enough, end_of_word, tie_rule, None, self.max_token_bytes)
        return len(merges)

    def check_characters(self, alphabet: Sequence[bytes], end_of_word: str) -> None:
        """That none of these symbols is too long itself.

        Raises:
            SubwordValueError: one is.
        """
        longest = max((symbol.removesuffix(end_of_word.encode()) for symbol in alphabet), key=len, default=b"")
        if self.max_token_bytes is not None and len(longest) > self.max_token_bytes:
            raise SubwordValueError(
                f"max_token_bytes={self.max_token_bytes} is less than a character of the texts has: "
                f'{_shown(longest)} has {len(longest)} bytes; raise it, or take unit="byte"'
            )

    def report(self, initial_merges: int) -> dict[str, Any]:
        """For `training`: what differs from the default."""
        rows = {
            "max_token_bytes": self.max_token_bytes,
            "initial": len(self.initial),
            "initial_merges": initial_merges,
            "limit_alphabet": self.limit_alphabet,
            "keep_whole_characters": self.keep_whole_characters,
        }
        return {name: value for name, value in rows.items() if value}


def _initial_token(token: Any) -> bytes:
    if not isinstance(token, (str, bytes, bytearray)) or not token:
        raise SubwordValueError(f"an initial token must be a string or bytes, and not empty, not {token!r}")
    try:
        return token.encode() if isinstance(token, str) else bytes(token)
    except UnicodeEncodeError:
        raise SubwordValueError(
            f"the initial token {token!r} holds a lone surrogate, which no text can spell"
        ) from None


def _text_or_none(token: bytes) -> str | None:
    try:
        return token.decode()
    except UnicodeDecodeError:
        return None


def _shown(token: bytes) -> str:
    text = _text_or_none(token)
    return repr(token if text is None else text)
