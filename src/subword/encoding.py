"""What `tokenize` and the array calls return: ids with what they stand for and where, and batches of ids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

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
