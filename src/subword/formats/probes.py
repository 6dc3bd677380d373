"""Texts on which two tokenizers that should mean the same are compared: always the same ones for the same spec."""

from __future__ import annotations

import random
from collections.abc import Iterator

from .. import _core
from ..patterns import UNICODE
from ..spec import Spec

GLUED_ENTRIES = 2000
"""So many entries of the vocabulary, drawn at random, are put side by side."""

LOOK_LIKE_SPACES = "\x1c\x1d\x1e\x1f\u180e\u200b\u200c\u200d\u2060\ufeff"

TEXTS = (
    "",
    "The quick brown fox jumps over the lazy dog. THE QUICK BROWN FOX! The-Quick_brown/fox.jumps",
    "I'm you're he's we've they'll she'd DON'T HOW'S I'lL o'Ll ''s 's's don’t it'ſ",
    "camelCaseWords HTMLParser XMLHttpRequest snake_case_words SCREAMING_CASE x86_64 3D 4th ﬁn straße",
    # digits
    "0 12 345 6789 01234 567890 1234567 12345678 1,234,567.89 -1 1e10 0xFF 50% $5 5€ 12:34:56 2024-02-29",
    "٠١٢٣٤٥ ۱۲۳۴ १२३४५ ๑๒๓๔ 一二三 １２３４５ 1٢3४5 ½ ² Ⅷ ① x²+y²=z²",
    # code
    "def f(x, *, y=0):\n    if x >= y and not isinstance(x, str):\n\t\treturn x[::-1] ** 2  # note\n\n\nclass A:\n",
    "#include <stdio.h>\r\nint main(void)\r\n{\r\n    for (;;i++) { p->q = ~a & b << 3; }\r\n}\r\n",
    '{"key": [1, 2.5e-3, null], "a\\nb": "<p class=\'x\'>&amp;</p>"}\n/* c */ // d <!-- e -->\n',
    "https://example.org/a/b?c=d&e=%20f#g user@example.org C:\\dir\\file.txt ../x/./y",
    "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ ... ---- ==== ???!!! :-) (a)[b]{c}<d>*e*",
    # emoji, alone and joined
    "😀😃 👍🏽 👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪🇫🇷🇯 1️⃣ ❤️ ❤ ☺︎ a😀b 😀a😀",
    # the same characters, composed and not; signs that normalization changes
    "é e\u0301 e\u0301\u0323 e\u0323\u0301 ñ ö ệ 각 \u1100\u1161\u11a8 が か\u3099 \u212b \u2126 \u1e9b\u0323",
    "ﬁ ﬀ ① ½ Ａ ｶﾞ ㎏ ℃ ª º … ﷺ ℌ 𝔸 x\u0345 \u0301 \u0301a",
    "مرحبا بالعالم שלום עולם สวัสดีชาวโลก नमस्ते दुनिया 你好，世界。こんにちは世界 안녕하세요 세계",
    "Привет, мир! ЁЖИК Γειά σου Κόσμε ΟΔΥΣΣΕΥΣ Zażółć gęślą jaźń İSTANBUL ılık Đường phố Hà Nội",
    *(char * 700 for char in "a 1\n\t!é语"),
    "ab" * 400 + " \n" * 100,
)  # fmt: skip

ILL_FORMED = (
    b"\xc3(", b"\xe4\xb8", b"a\xe4\xb8b", b"\xf0\x9f\x98", b"\xf0\x9f\x98 \xf0\x9f", b"\xed\xa0\x80", b"\xc0\xaf",
    b"\xf4\x90\x80\x80", b"\x80" * 50, b"\xff\xfe\xfd", b"caf\xe9 na\xefve", b" \xff \xff", b"1\xff2", b"\n\xff\n",
)  # fmt: skip


def probe_texts(spec: Spec) -> Iterator[bytes]:
    """Texts with all that tokenizers are known to differ on.

    Letters, marks and digits of every script; white space of every kind; code; emoji; ill-formed bytes; characters from
    every corner of Unicode; each extra token inside text; and random entries of the vocabulary, glued together.
    """
    yield from (text.encode() for text in TEXTS)
    yield from ILL_FORMED
    yield from (b"a%cb %c" % (byte, byte) for byte in range(256))
    yield from _white_space()
    yield from _scripts()
    yield from _corners()
    yield from _extra_tokens(spec)
    yield from _glued(list(spec.model.vocab.pieces))


def _white_space() -> Iterator[bytes]:
    ranges = _core.unicode_ranges("White_Space", UNICODE)
    spaces = [chr(code) for first, last in ranges for code in range(first, last + 1)] + [*LOOK_LIKE_SPACES]
    for space in spaces:
        yield f"{space}a{space}{space}b {space}c.{space}1{space}\n{space}{space}".encode()
    yield "".join(spaces).encode()
    yield "".join(f"{one}{other}" for one in spaces for other in "\n \xa0a").encode()


def _scripts() -> Iterator[bytes]:
    """The start and the end of every range of letters, marks and numbers, which every script has of its own."""
    for name in ("L", "M", "N"):
        for first, last in _core.unicode_ranges(name, UNICODE):
            codes = sorted({*range(first, min(first + 12, last + 1)), (first + last) // 2, last})
            word = "".join(map(chr, codes))
            yield f"{word} {word[::-1]}a".encode()


def _corners() -> Iterator[bytes]:
    """A character of each 64 in all of Unicode, assigned or not."""
    chars = [chr(code) for code in range(0, 0x110000, 64) if not 0xD800 <= code < 0xE000]
    for at in range(0, len(chars), 128):
        yield "".join(chars[at : at + 128]).encode()
        yield " ".join(chars[at : at + 128]).encode()


def _extra_tokens(spec: Spec) -> Iterator[bytes]:
    contents = [token.content for token in spec.extra]
    for content in contents:
        inside = f"a{content}b {content} c {content}{content}\n{content}\n{content[:-1]} {content.swapcase()}"
        yield from (content.encode(), inside.encode())
    for at in range(0, len(contents), 64):
        yield "".join(contents[at : at + 64]).encode()
        yield " x ".join(contents[at : at + 64]).encode()


def _glued(pieces: list[bytes]) -> Iterator[bytes]:
    rng = random.Random(0)
    for _ in range(GLUED_ENTRIES // 8):
        yield b"".join(rng.choices(pieces, k=8))
    yield b"".join(rng.choices(pieces, k=GLUED_ENTRIES))
