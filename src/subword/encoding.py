"""What `tokenize`, `chat` and the array calls return: ids with what they stand for and where, and batches of ids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .errors import SubwordValueError
from .spec import Stretches


@dataclass(frozen=True, eq=False, repr=False)
class Encoding:
    """The tokens of one text, with their places in it.

    Attributes:
        ids: the ids, shape (tokens,), uint32.
        token_bytes: the bytes that each token decodes to.
        pieces: each token as files of the vocabulary spell it (`Ġthe`).
        byte_spans: start and end of each token in the bytes of the text, shape (tokens, 2), uint64.
        char_spans: the same in characters. All tokens of one character have that character's span.
        text: the text.

    The spans are on the text as it was given, whatever the stages rewrote. Together they cover it, but for what the
    split pattern drops. A token of the template has an empty span.
    """

    text: str | bytes
    ids: npt.NDArray[np.uint32]
    token_bytes: list[bytes]
    pieces: list[str]
    byte_spans: npt.NDArray[np.uint64]
    char_spans: npt.NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[int]:
        return iter(self.ids.tolist())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Encoding):
            return NotImplemented
        return self.text == other.text and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in ("ids", "byte_spans", "char_spans")
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = " ".join(f"{piece}:{id}" for piece, id in zip(self.pieces[:12], self.ids.tolist(), strict=False))
        return f"Encoding({len(self)} tokens: {shown}{' …' if len(self) > 12 else ''})"

    def __str__(self) -> str:
        from .report import terminal  # a door to a room above: tests/test_layout.py lists them

        return terminal.coloured_tokens(self, rule=True).plain

    def __rich__(self) -> Any:
        from .report import terminal

        return terminal.coloured_tokens(self)

    def _repr_html_(self) -> str:
        from .report import terminal

        return terminal.tokens_html(self)


class Segment(NamedTuple):
    """A stretch of the rendered text from one place.

    Attributes:
        text: the stretch.
        trusted: whether the template spells it.
        message: the number of the message that it came from, or at which the template spelled it; None for neither.
    """

    text: str
    trusted: bool
    message: int | None


@dataclass(frozen=True, eq=False, repr=False)
class Chat:
    """A conversation as a model sees it.

    Attributes:
        text: what the template made of the messages.
        segments: the same, cut where the origin changes.
        ids: the ids, shape (tokens,), uint32.
        char_spans: start and end of each token in `text`, in characters, shape (tokens, 2), uint64.
        messages: the number of the message that each token belongs to, -1 for none, shape (tokens,), int32. A token
            belongs to the message of its first character.
        roles: the `role` of that message, or None.
        loss_mask: whether a model is trained to give the token, shape (tokens,), bool: where the template says so
            (`{% generation %}`), what it says; else of each message of the role `assistant` what stands behind its
            header, up to and with the control token that ends it.
    """

    text: str
    segments: tuple[Segment, ...]
    ids: npt.NDArray[np.uint32]
    char_spans: npt.NDArray[np.uint64]
    messages: npt.NDArray[np.int32]
    roles: list[str | None]
    loss_mask: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"Chat({len(self)} tokens, {int(self.loss_mask.sum())} of them to be learned: {self.text[:60]!r})"


@dataclass(frozen=True, eq=False, repr=False)
class Padded:
    """Texts as arrays of one shape, (rows, length), int64.

    Attributes:
        ids: the ids, and the pad id where there are no more.
        attention_mask: 1 for the tokens of a text and of the template, 0 for padding.
        type_ids: those of the template; most have 1 from the second text of a pair on, else 0.
        texts: the number of the text that each row is of, shape (rows,): with a stride, a text can have several.
    """

    ids: npt.NDArray[np.int64]
    attention_mask: npt.NDArray[np.int64]
    type_ids: npt.NDArray[np.int64]
    texts: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        rows, length = self.ids.shape
        return f"Padded({rows} rows of {length} tokens, {int(self.attention_mask.sum())} of them no padding)"


class Ragged(Stretches["npt.NDArray[np.uint32]"]):
    """Lists of ids of different lengths in one buffer: item `i` is `ids[offsets[i]:offsets[i + 1]]`, without a copy.

    Attributes:
        ids: all ids, shape (tokens,), uint32.
        offsets: where each item starts, and the end, shape (items + 1,), uint64.
    """

    __slots__ = ()

    def __init__(self, ids: npt.NDArray[np.uint32], offsets: npt.NDArray[np.uint64]) -> None:
        if not isinstance(ids, np.ndarray) or ids.ndim != 1:
            raise SubwordValueError(f"the ids of a Ragged must be an array of one dimension, not {type(ids).__name__}")
        super().__init__(ids, offsets)

    @property
    def ids(self) -> npt.NDArray[np.uint32]:
        """All ids."""
        ids: npt.NDArray[np.uint32] = self.buffer
        return ids

    def tolist(self) -> list[list[int]]:
        """The items as Python lists."""
        return [item.tolist() for item in self]

    def __repr__(self) -> str:
        return f"Ragged({len(self)} items, {len(self.ids)} ids)"
