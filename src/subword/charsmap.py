"""SentencePiece's normalization rules (`precompiled_charsmap`): made from pairs of texts, or by name, and read again.

The content of the field is a double array (Darts) over the bytes of what is replaced, and the texts that replace it,
each ended by a zero byte. Four bytes in front say how large the array is. Unicode's rules are hundreds of thousands, as
SentencePiece does not look at what it has replaced: each way to write a character stands there. Most share their ends,
so nodes with the same rest are one.

    >>> rules = {"ﬁ": "fi", "é": "é"}
    >>> rules_of(build(rules)) == rules
    True
    >>> apply(rules, "ﬁé".encode()).decode()
    'fié'
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache
from itertools import product

from . import _core
from .arguments import choice
from .errors import FormatError, SubwordValueError

UNICODE = "17.0"
"""The version whose tables the named rules are made from. SentencePiece 0.2.3 has the same; older ones have older."""

_LEAF = 1 << 31
_MOST = 1 << 20


def read_tsv(data: bytes, source: str) -> dict[str, str]:
    """The rules in a file: lines of code points in hexadecimal, a tab, and the code points that replace them.

    Example:
        >>> read_tsv(b"41 301\\tC1\\n61\\t\\n", "rules.tsv")
        {'Á': 'Á', 'a': ''}

    Raises:
        FormatError: a line is no rule.
    """
    rules: dict[str, str] = {}
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        old, _, rest = line.partition("\t")
        try:
            pair = [
                "".join(chr(int(code.removeprefix("U+"), 16)) for code in part.split())
                for part in (old, rest.partition("\t")[0].partition("#")[0])
            ]
            for text in pair:
                text.encode()
        except (ValueError, OverflowError):
            raise FormatError(
                f"{source}, line {number}: {line[:80]!r} is no rule: write code points in hexadecimal, a tab, and what "
                "replaces them, as in '41 301\\tC1'"
            ) from None
        rules[pair[0]] = pair[1]
    return rules


def build(rules: Mapping[str, str]) -> str:
    """The content of the field, in base64: each key is replaced by its value. Empty without rules.

    Raises:
        SubwordValueError: a text is empty, or holds what rules cannot; or there are too many rules.
    """
    if not rules:
        return ""
    keys: list[tuple[bytes, int]] = []
    places: dict[bytes, int] = {}
    texts = bytearray()
    for old, new in rules.items():
        for text in (old, new):
            if not isinstance(text, str) or "\0" in text:
                raise SubwordValueError(
                    f"a rule replaces a text by a text without zero bytes; {old!r} -> {new!r} does not"
                )
        try:
            key, value = old.encode(), new.encode()
        except UnicodeEncodeError:
            raise SubwordValueError(f"the rule {old!r} -> {new!r} holds a lone surrogate") from None
        if not key:
            raise SubwordValueError(f"a rule for the empty text, which would become {new!r}")
        if value not in places:
            places[value] = len(texts)
            texts += value + b"\0"
        keys.append((key, places[value]))
    table = _core.charsmap_table(sorted(keys))
    return base64.b64encode(struct.pack("<I", len(table)) + table + texts).decode()


def rules_of(content: str) -> dict[str, str]:
    """The rules in the content of the field, in base64; a rule whose key is no text is left out.

    Raises:
        FormatError: it is damaged.
    """
    try:
        data = base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        raise FormatError("normalization rules that are not in base64") from None
    if not data:
        return {}
    size = int.from_bytes(data[:4], "little")
    if len(data) < 4 or size == 0 or size % 4 or size + 4 >= len(data) or data[-1] != 0:
        raise FormatError("the normalization rules (precompiled_charsmap) are damaged")
    units, texts = struct.unpack(f"<{size // 4}I", data[4 : 4 + size]), data[4 + size :]
    rules: dict[str, str] = {}

    children: dict[int, list[int]] = defaultdict(list)  # of each base
    for at, unit in enumerate(units):
        if not unit & _LEAF and unit & 0xFF:
            children[at ^ unit & 0xFF].append(at)
    waiting = [(_offset(units[0]), b"")]
    while waiting:
        base, key = waiting.pop()
        if len(key) > 255 or len(waiting) > _MOST:  # nodes that lead back, or to ever more
            raise FormatError("the normalization rules (precompiled_charsmap) are damaged: they have no end")
        for at in children.get(base, ()):
            unit = units[at]
            below, longer = at ^ _offset(unit), bytes([*key, unit & 0xFF])
            if unit >> 8 & 1 and below < len(units):
                place = units[below] & ~_LEAF
                with suppress(UnicodeDecodeError):
                    rules[longer.decode()] = texts[place : texts.find(b"\0", place)].decode()
            waiting.append((below, longer))
    return rules


def _offset(unit: int) -> int:
    return (unit >> 10) << ((unit & 1 << 9) >> 6)


def apply(rules: Mapping[str, str], text: bytes) -> bytes:
    """A text with the longest rule at each place applied; what no rule replaces stays as it is."""
    encoded = {old.encode(): new.encode() for old, new in rules.items()}
    longest = max(map(len, encoded), default=0)
    out, at = bytearray(), 0
    while at < len(text):
        ends = range(min(len(text), at + longest), at, -1)
        end = next((end for end in ends if text[at:end] in encoded), None)
        out += text[at : at + 1] if end is None else encoded[text[at:end]]
        at = at + 1 if end is None else end
    return bytes(out)


# ======================== by name ========================


@cache
def named(name: str) -> str:
    """The content of the field for the rules of a name, in base64.

    `nfkc`: Unicode's form NFKC. `nmt_nfkc`: with white space of all kinds as spaces, without control characters, and
    with `～` as it is. `nfkc_cf` and `nmt_nfkc_cf`: lower case as well. `identity`: none.
    """
    choice("normalization_rule_name", name, tuple(NAMES))
    return build(NAMES[name]())


def _nfkc() -> dict[str, str]:
    """Every character that NFKC changes, and every sequence that becomes one: in any way to write its parts."""
    characters = _characters()
    composed, decomposed = (_forms(characters, form) for form in ("NFKC", "NFKD"))
    rules = {c: new for c, new in zip(characters, composed, strict=True) if c != new}
    spellings: dict[str, list[str]] = defaultdict(list)
    sequences: set[str] = set()
    for c, parts in zip(characters, decomposed, strict=True):
        if len(parts) == 1:
            spellings[parts].append(c)
        else:
            sequences.add(parts)
    listed = sorted(sequences)
    longer: dict[str, str] = {}
    for parts, whole in zip(listed, _forms(listed, "NFC"), strict=True):
        if whole != parts:
            longer.update(
                (text, whole) for text in map("".join, product(*(spellings[c] for c in parts))) if text != whole
            )
    return _without_needless(rules, longer)


def _characters() -> list[str]:
    """All but zero, the line break, and surrogates."""
    return [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000 and code != 0x0A]


def _forms(texts: Iterable[str], form: str) -> list[str]:
    """Each text in a form. (A line break composes with nothing.)"""
    return _core.normalize("\n".join(texts), form, UNICODE).split("\n")


def _without_needless(rules: dict[str, str], longer: Mapping[str, str]) -> dict[str, str]:
    """`rules` of single characters, with those longer ones that do not follow from shorter ones."""
    kept = dict(rules)
    for old, new in sorted(longer.items(), key=lambda item: (len(item[0]), item[0])):
        if _rewritten(kept, old, len(old) - 1) != new:
            kept[old] = new
    return kept


def _rewritten(rules: Mapping[str, str], text: str, most: int) -> str:
    """By the longest rules of so many characters at most."""
    out, at = "", 0
    while at < len(text):
        size = next((size for size in range(min(most, len(text) - at), 0, -1) if text[at : at + size] in rules), 0)
        out += rules[text[at : at + size]] if size else text[at]
        at += size or 1
    return out


_SPACES = "\t\n\f\r\u061c\u1680\u200b\u200c\u200e\u200f\u2028\u2029\u2581\ufeff\ufffd"
_CONTROLS = [*range(0x01, 0x09), 0x0B, *range(0x0E, 0x20), 0x7F, 0x8F, 0x9F]


def _nmt(rules: dict[str, str]) -> dict[str, str]:
    """What the NMT models of Google's do besides: white space, control characters, and a tilde that Japanese needs."""
    changed = {**rules, **dict.fromkeys(_SPACES, " "), **dict.fromkeys(map(chr, _CONTROLS), "")}
    del changed["～"]
    return changed


_CHEROKEE = range(0x13A0, 0x13F6)
_ALSO_FOLDED = str.maketrans(
    "µſͅςϐϑϕϖϰϱϵẛιᲀᲁᲂᲃᲄᲅᲆᲇᲈΐΰſt\ua7ce\ua7d2\ua7d4",
    "μsισβθφπκρεṡιвдосттъѣꙋΐΰst\ua7cf\ua7d3\ua7d5",
) | {code: code + 0x1B for code in range(0x16EA0, 0x16EB9)}
"""Small letters that are folded to other small letters, and capitals that came with Unicode 17."""


def _folded(c: str, lower: str) -> str:
    """A character by Unicode's simple case folding: in lower case, but for Cherokee, whose old letters are capitals."""
    code = ord(c)
    if 0xAB70 <= code <= 0xABBF:
        return chr(code - 0xAB70 + 0x13A0)
    if 0x13F8 <= code <= 0x13FD:
        return chr(code - 8)
    if code in _CHEROKEE:
        return c
    return lower.translate(_ALSO_FOLDED) if len(lower) == 1 else c


def _case_folded(rules: dict[str, str]) -> dict[str, str]:
    characters = _characters()
    lower = _core.lowercase("\n".join(characters), False, "16.0").split("\n")
    table = {c: small for c, lowered in zip(characters, lower, strict=True) if (small := _folded(c, lowered)) != c}
    changes = str.maketrans(table)
    folded = {**table, **{old: new.translate(changes) for old, new in rules.items()}}
    return _without_needless(
        {old: new for old, new in folded.items() if len(old) == 1},
        {old: new for old, new in folded.items() if len(old) > 1},
    )


NAMES: dict[str, Callable[[], dict[str, str]]] = {
    "identity": dict,
    "nfkc": _nfkc,
    "nmt_nfkc": lambda: _nmt(_nfkc()),
    "nfkc_cf": lambda: _case_folded(_nfkc()),
    "nmt_nfkc_cf": lambda: _case_folded(_nmt(_nfkc())),
}
"""The names of rules, and what makes them."""
