"""Longest match in plain Python: what the fast core computes.

From the start of a text the longest entry that stands there, and again behind it. RWKV's tokenizers are such; each
single byte is an entry of theirs, so there always is one.

Nothing here is fast, and nothing should be made so: the core is tested against it. It needs only the standard
library and can be pasted into a notebook.
"""

from __future__ import annotations

from collections.abc import Container


def encode(text: bytes, entries: Container[bytes], longest: int) -> list[bytes]:
    """The entries that a text is cut into; `longest` is the length of the longest one.

    Example:
        >>> encode(b"hello hell", {b"h", b"e", b"l", b"o", b" ", b"hell"}, 4)
        [b'hell', b'o', b' ', b'hell']
    """
    tokens: list[bytes] = []
    start = 0
    while start < len(text):
        end = min(len(text), start + longest)
        while text[start:end] not in entries:  # ever shorter ones; one byte always is an entry
            end -= 1
            if end == start:
                raise ValueError(f"no entry stands at byte {start}")
        tokens.append(text[start:end])
        start = end
    return tokens
