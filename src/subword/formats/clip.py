"""CLIP's vocabulary file, `bpe_simple_vocab_16e6.txt.gz`: the merges of OpenAI's CLIP, compressed with gzip or not.

    file    = version line*                 line = token " " token "\\n", what merges first stands first
    version = '"bpe_simple_vocab_16e6.txt#version: ' number "\\n"

Tokens spell bytes in GPT-2's alphabet (`byte_alphabet.py`); one that ends in `</w>` ends a piece. Only the first
48,894 merges count, as in CLIP itself. Ids: the 256 bytes in GPT-2's order, the same with `</w>`, one a merge,
`<|startoftext|>` and `<|endoftext|>`, which stand around every text. All else (lower case, the split pattern) is CLIP's
code, not the file's.

CLIP cleans text before all this, by `ftfy.fix_text` and by undoing HTML escapes. Of that only NFC is done here: ids
equal CLIP's for text that the rest of the cleaning leaves alone. (CLIP takes lower case from the Python that runs it,
which may know other letters than Unicode 16.) CLIP always takes its two special tokens from text, but not behind
punctuation; here a call says whether they are taken, `allowed_special="all"`, and then they are wherever they stand.
"""

from __future__ import annotations

import gzip
import zlib
from typing import NoReturn

import numpy as np

from ..byte_alphabet import GPT2_BYTE_ORDER, spelled_bytes, to_alphabet
from ..errors import FormatError, SubwordValueError
from ..spec import BPE, Decode, ExtraToken, Lowercase, MatchTokens, Normalize, Packed, Spec, Split, Template, Vocab
from .json_node import shown

MERGES = 49152 - 256 - 2
MARKER = "</w>"
SPECIALS = ("<|startoftext|>", "<|endoftext|>")

MAX_BYTES = 1 << 26
"""Of a decompressed file. CLIP's has 3 MB."""

PARTS = {
    "pieces": "the tokens of the lines and what they make, in GPT-2's byte alphabet",
    "ids": "by place: the bytes, the bytes with </w>, one a line, the two special tokens",
    "merges": "a pair of tokens a line, the first merges first",
    "pattern": "none is said: CLIP's own (clip)",
    "normalization": "none is said: CLIP's own, NFC and lower case",
    "extra tokens": "none is said: <|startoftext|> and <|endoftext|>",
    "template": "none is said: the two special tokens around a text",
    "roles": "none is said: the two special tokens are bos and eos",
    "notes": None,
}
LIMITS = "anything but CLIP's vocabulary of 49,408 tokens, or one of the same size and settings"

_VERSION = b'"bpe_simple_vocab_16e6.txt#version: '


def looks_like(data: bytes) -> bool:
    try:
        return _decompressed(data, len(_VERSION))[0].startswith(_VERSION)
    except zlib.error:
        return False


def _decompressed(data: bytes, length: int) -> tuple[bytes, bool]:
    """At most `length` bytes of what the file holds, and whether that is all."""
    if not data.startswith(b"\x1f\x8b"):
        return data[:length], len(data) <= length
    unzip = zlib.decompressobj(wbits=31)
    return unzip.decompress(data, length), unzip.eof


# ======================== reading ========================


def read(data: bytes, source: str) -> Spec:
    """The spec that a file means.

    Raises:
        FormatError: the file is damaged, or has fewer merges than CLIP's vocabulary needs.
    """
    try:
        content, whole = _decompressed(data, MAX_BYTES)
        if not whole:
            raise FormatError(
                f"{source}: cut off, or more than {MAX_BYTES:,} bytes, of which CLIP's file has 3 million"
            )
        text = content.decode()
    except (zlib.error, UnicodeDecodeError) as error:
        raise FormatError(f"{source}: damaged, {error}; get the file again") from None
    lines = text.split("\n")[1 : MERGES + 1]
    if len(lines) < MERGES or lines[-1] == "":
        raise FormatError(
            f"{source}: {len(lines) - (lines[-1:] == ['']):,} merges, but CLIP's vocabulary has {MERGES:,}; get the "
            "file again"
        )
    pairs = []
    for number, line in enumerate(lines, 2):
        pair = line.split()
        if len(pair) != 2:
            raise FormatError(f"{source}, line {number}: expected two tokens, found {shown(line)}")
        pieces = [spelled_bytes(token) for token in pair]
        if pieces[0] is None or pieces[1] is None:
            raise FormatError(f"{source}, line {number}: {shown(line)} does not spell bytes in GPT-2's alphabet")
        pairs.append((pieces[0], pieces[1]))
    try:
        return _spec(pairs)
    except SubwordValueError as error:
        raise FormatError(f"{source}: {error}") from None


def _spec(pairs: list[tuple[bytes, bytes]]) -> Spec:
    marker = MARKER.encode()
    pieces = [bytes([byte]) + end for end in (b"", marker) for byte in GPT2_BYTE_ORDER]
    ids = {piece: id for id, piece in enumerate(pieces)}
    rows = []
    for number, (left, right) in enumerate(pairs, 2):
        unknown = [part for part in (left, right) if part not in ids]
        if unknown:
            raise SubwordValueError(f"line {number} joins {to_alphabet(unknown[0])!r}, which no line before it makes")
        rows.append((ids[left], ids[right]))
        if left + right in ids:
            raise SubwordValueError(f"line {number} makes {to_alphabet(left + right)!r} a second time")
        ids[left + right] = len(ids)
    start, end = len(ids), len(ids) + 1
    return Spec(
        stages=(Normalize("NFC"), Lowercase(), MatchTokens(normalized=True), Split("clip")),
        model=BPE(
            Vocab(Packed.of(ids), np.arange(len(ids), dtype=np.uint32)),
            np.array(rows, dtype=np.uint32).reshape(-1, 2),
            end_of_word=MARKER,
        ),
        extra=tuple(ExtraToken(id, token, normalized=True) for id, token in zip((start, end), SPECIALS, strict=True)),
        template=Template((start, "A", end), (start, "A", end, end, "B", end)),
        decode=Decode(" "),
        roles={"bos": start, "eos": end},
    )


# ======================== writing ========================


def write(spec: Spec) -> bytes:
    """The file, compressed, that makes CLIP give the ids that `spec` gives; the same spec gives the same bytes.

    Raises:
        SubwordValueError: `spec` is no tokenizer of CLIP's kind; the message names what differs.
    """
    if not isinstance(spec.model, BPE):
        _refuse(f"a {type(spec.model).__name__}")
    pieces = dict(zip(spec.model.vocab.ids.tolist(), spec.model.vocab.pieces, strict=True))
    pairs = [(pieces[left], pieces[right]) for left, right in spec.model.merges.tolist()]
    if len(pairs) != MERGES:
        _refuse(f"{len(pairs):,} merges: it has {MERGES:,}")
    expected = _spec(pairs).outline()
    for part, value in spec.outline().items():
        if value != expected.get(part):
            _refuse(f"this tokenizer: its {part} is not CLIP's")
    if spec != _spec(pairs):
        _refuse("this tokenizer: its ids are not the bytes, the bytes with </w>, and the merges, in this order")
    lines = [to_alphabet(left) + " " + to_alphabet(right) + "\n" for left, right in pairs]
    return gzip.compress(_VERSION + b"0.2\n" + "".join(lines).encode(), mtime=0)


def _refuse(what: str) -> NoReturn:
    raise SubwordValueError(f"CLIP's vocabulary file cannot hold {what}; save as .subword instead")
