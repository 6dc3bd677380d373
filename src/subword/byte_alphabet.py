"""GPT-2's byte alphabet: each of the 256 bytes as one visible character, so that text files can hold any token.

A byte that Latin-1 prints (all but the soft hyphen) is its own character; the other 68, in rising order, are U+0100,
U+0101, … The space is `Ġ`, the newline `Ċ`. vocab.json, merges.txt and tokenizer.json spell byte-level tokens this way.
"""

from __future__ import annotations

from .errors import SubwordValueError

_PRINTABLE = bytes([*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)])
_REST = bytes(sorted(set(range(256)) - set(_PRINTABLE)))

GPT2_BYTE_ORDER = _PRINTABLE + _REST
"""The bytes in the order in which GPT-2 gives them the ids 0 … 255: the printable ones first."""

NEVER_IN_UTF8 = bytes([0xC0, 0xC1, *range(0xF5, 0x100)])
"""The bytes that no well-formed UTF-8 has. A byte-level vocabulary may lack them, and then encodes any `str`."""

BYTE_TO_CHAR: tuple[str, ...] = tuple(
    chr(byte) if byte in _PRINTABLE else chr(256 + _REST.index(byte)) for byte in range(256)
)
"""The character of each byte: `BYTE_TO_CHAR[0x20] == "Ġ"`."""

# Back to bytes by way of Latin-1. Latin-1 characters outside the alphabet go where Latin-1 cannot encode them.
_OUTSIDE = 0xFFFF
_CHAR_TO_BYTE = dict.fromkeys(range(256), _OUTSIDE) | {ord(char): byte for byte, char in enumerate(BYTE_TO_CHAR)}


def to_alphabet(data: bytes) -> str:
    """Spell bytes in the alphabet.

    >>> to_alphabet(b" the")
    'Ġthe'
    """
    return data.decode("latin-1").translate(BYTE_TO_CHAR)


def from_alphabet(text: str) -> bytes:
    """The bytes that `text` spells.

    >>> from_alphabet("Ġthe")
    b' the'

    Raises:
        SubwordValueError: a character of `text` is not in the alphabet.
    """
    data = spelled_bytes(text)
    if data is None:
        char = next(char for char in text if char not in BYTE_TO_CHAR)
        raise SubwordValueError(f"{char!r} (U+{ord(char):04X}) in {text!r} does not stand for a byte")
    return data


def spelled_bytes(text: str) -> bytes | None:
    """The bytes that `text` spells, or None where a character is not in the alphabet."""
    try:
        return text.translate(_CHAR_TO_BYTE).encode("latin-1")
    except UnicodeEncodeError:
        return None
