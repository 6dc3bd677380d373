"""Texts meant to hurt, shared by all tests. To add one: one row here, and every test that walks the table runs it.

`TEXTS` can be written as UTF-8. `SURROGATES` are strings that cannot, `BYTES` are ill-formed UTF-8.
"""

from __future__ import annotations

import random
import sys
import sysconfig
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

Token = TypeVar("Token", bytes, str)

STDLIB = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
"""Much text that every machine has: Python's own modules."""

# Every code point with the property White_Space, and those that look like one or that some library takes for one.
SPACES = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
NOT_SPACES = "\x1c\x1d\x1e\x1f\u180e\u200b\u200c\u200d\u2060\ufeff"

TEXTS: dict[str, str] = {
    # ---- short and plain
    "empty": "",
    "one letter": "a",
    "one capital": "Z",
    "one digit": "7",
    "one mark": "!",
    "one space": " ",
    "word": "hello",
    "space and word": " hello",
    "sentence": "The quick brown fox jumps over the lazy dog.",
    "textbook": "low lower lowest slow slower newer newest wide wider widest",
    "ascii": "".join(map(chr, range(128))),
    "latin-1": "".join(map(chr, range(256))),
    # ---- white space
    "spaces of every kind": SPACES,
    "no spaces, though they look it": NOT_SPACES,
    "each space between letters": "".join(f"a{space}" for space in SPACES + NOT_SPACES),
    "each space before a letter": "".join(f"{space}{space}a" for space in SPACES + NOT_SPACES),
    "each space after a full stop": "".join(f".{space}" for space in SPACES + NOT_SPACES),
    "spaces at the start": "   a",
    "spaces at the end": "a   ",
    "one space at the end": "a ",
    "spaces in the middle": "a b  c   d    e",
    "spaces around marks": " ! ?  ;   : . ",
    "spaces before a digit": "a 1  2   3",
    "tab at the start": "\ta",
    "tabs and spaces": "\t \t  \t\t a\t b \t",
    "tabs before newlines": "a\t\n\t\nb\t\t\n",
    "newline": "\n",
    "newlines at the start": "\n\n\na",
    "newlines at the end": "a\n\n\n",
    "newlines of every kind": "a\nb\rc\r\nd\n\re\vf\fg\x85h\u2028i\u2029j",
    "blank lines": "a\n\nb\n \n\n  \nc\n\n\n\nd",
    "windows lines": "one\r\ntwo\r\n\r\n three \r\n",
    "space before newline": "a \nb  \nc   \n\n",
    "space after newline": "a\n b\n  c\n   d",
    "white space only": " \n \t\r\n  \u3000\xa0 \n\n ",
    "full stop and newlines": "end.\n\nNext!\n\r\n(third)\n",
    "full stop, newline, slash": "a.\n/b ./\n/ //\n\n",
    "line separators": "\u2028a\u2028\u2028b \u2029 c\u2028",
    "line separator before newline": "a\u2028\né",
    "no-break spaces": "10\xa0000\u202f€ \xa0 a\xa0\xa0b",
    "wide spaces": "\u3000こんにちは\u3000世界\u3000",
    # ---- contractions
    "contractions": "I'm you're he's we've they'll she'd don't it's",
    "contractions, capitals": "I'M YOU'RE HE'S WE'VE THEY'LL SHE'D DON'T",
    "contractions, mixed": "HOW'S I'lL you'Re We'vE o'Ll 'S 's'S'd'D",
    "contractions, long s": "it'\u017f that'\u017f IT'\u017f '\u017f\u017f",
    "contractions, kelvin and dotless": "i'\u212a I'\u0130 a'\u0131ll",
    "contractions, curly": "don’t it’s we’ll ‘tis’",
    "contractions, next to others": "''s 's' 'lll 'rex 'sab x's1 1's .'s 'ſt",
    "contractions, glued": "he'll'll've'd'm 's's's a'b'c'd",
    "contractions, after spaces": " 's  's\n'll\t're 'tis",
    "quotes": "'a' \"b\" ''c'' `d` «e» „f“",
    # ---- numbers
    "digits": "0 12 345 6789 01234 567890 1234567 12345678 123456789 1234567890",
    "digits and letters": "a1b22c333d4444e55555 1a 22b 333c x86_64 3D 4th",
    "digits with marks": "1,234,567.89 -1 +1 1e10 1.5e-3 0xFF 0b1010 1_000 1/2 50% $5 5€ 12:34:56",
    "digits, dates": "2024-02-29 29.2.2024 2/29/24 1990s '90s",
    "digits of other scripts": "٠١٢٣٤٥ ۱۲۳۴ १२३४५ ๑๒๓๔ 一二三四 １２３４５",
    "digits of several scripts, glued": "1٢३4๕6７8",
    "numbers that are no digits": "½ ⅔ ² ³ ¹ Ⅷ ⅷ ① ㊿ 〇 ፼ x²+y²=z²",
    # ---- marks and symbols
    "marks": "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
    "marks, glued to words": "(a)[b]{c}<d>*e*_f_~g~#h @i $j a,b;c:d.e!f?g/h\\i|j",
    "marks, runs": "... ---- ==== ???!!! :-) /* */ // <!-- --> ~~~ ***",
    "marks, other scripts": "。、！？「」『』（）・…—–‘’“”¿¡‹›§¶†‡",
    "symbols": "€£¥₹₿ ©®™ ±×÷≤≥≠∞√∑∫ ←↑→↓ ♠♥♦♣ ░▒▓█ ┌─┐",
    "modifier symbols": "^ ` ¨ ¯ ´ ¸ ˂ ˗ ^a `b ´c ¨d",
    # ---- letters of many scripts
    "german": "Müller grüßt Größe, STRASSE, STRAẞE und Donaudampfschifffahrtskapitän.",
    "müller": "Müller Müller Müller",
    "french": "L'été où j'étais né, ç'aurait été « l'œuvre » d'Aïcha.",
    "turkish": "İstanbul ılık ISPARTA ışık Iğdır diyarbakır İI ıi",
    "vietnamese": "Tiếng Việt Đường phố Hà Nội",
    "polish": "Zażółć gęślą jaźń ZAŻÓŁĆ GĘŚLĄ JAŹŃ",
    "greek": "Γειά σου Κόσμε ΟΔΥΣΣΕΥΣ Ὀδυσσεύς ᾳ ᾼ ΐ",
    "russian": "Съешь же ещё этих мягких французских булок, да выпей чаю.",
    "georgian": "გამარჯობა მსოფლიო ᲒᲐᲛᲐᲠᲯᲝᲑᲐ",
    "armenian": "Բարև աշխարհ և ﬓ",
    "cherokee": "ᎣᏏᏲ ᏣᎳᎩ ꭳꮟꮺ",
    "hebrew": "שלום עולם, שָׁלוֹם!",
    "arabic": "مرحبا بالعالم، كَتَبَ ١٢٣ ﷺ ـــ",
    "right to left and back": "abc \u202eאבג\u202c def \u2067عربي\u2069 123 \u200fא\u200e a",
    "hindi": "नमस्ते दुनिया क्षत्रिय हिन्दी",
    "tamil": "வணக்கம் உலகம் கொ",
    "bengali": "ওহে বিশ্ব কো",
    "thai": "สวัสดีชาวโลก น้ำ ๆ",
    "lao": "ສະບາຍດີ ນ້ຳ",
    "khmer": "ជំរាបសួរ\u200bពិភពលោក",
    "burmese": "မင်္ဂလာပါ ကမ္ဘာ",
    "tibetan": "བཀྲ་ཤིས་བདེ་ལེགས།",
    "amharic": "ሰላም ልዑል፡ ፩፪፫",
    "korean": "안녕하세요 세계 각",
    "korean, jamo": "\u1100\u1161\u11a8 \u1112\u1161\u11ab\u1100\u1173\u11af 한글",
    "chinese": "世界，你好！我们在2024年学习。",
    "chinese, rare": "𠮷野家 𡃁 㐀 龦 \uf900 \U00020000\U0002a6df",
    "japanese": "探偵は犯人がまだ部屋にいることを知っていた。カタカナ ｶﾀｶﾅ 々〆ヶ",
    "japanese, voiced": "がぎぐ か\u3099き\u3099く\u3099 ハ\u309a ﾊﾟ",
    "mongolian": "ᠮᠣᠩᠭᠣᠯ\u180eᠤᠨ",
    "beyond the first plane": "𐐀𐐨 𝐀𝐛𝟎 𒀀 𓀀 𐎀 𞤀𞤢 𝒳",
    # ---- case
    "case": "camelCase PascalCase snake_case SCREAMING_CASE kebab-case HTTPServer iOS eBay McDonald XMLHttpRequest2",
    "case, one letter": "aB Ab ABc aBC A a AAA aaa aAaAaA",
    "case, sharp s": "ß ẞ SS ss Straße ſs ſ",
    "case, titlecase": "ǅ ǆ Ǆ ǅemal aǅb ǅǅ AǅB ǲ ᾈ ᾳ",
    "case, none": "中文 A中B中C a中b中c 中A中a AあBいC aªbºc",
    "case, none and capitals": "中AB中ab中 あAあBあ ªA ºB ʰA Aʰ Aʰa אA אa",
    "case, marks after capitals": "É E\u0301 E\u0301e\u0301 A\u0301B\u0301c A\u20ddb",
    "case, modifier letters": "ʰʷ xʰ Xʰ ⁿ aⁿA ᵃb",
    "case, other scripts": "ПриветМир ΑΒΓαβγ ԱԲգդ ᏣᎳꮳꮃ 𐐀𐐨𐐀",
    # ---- combining, joining, composing
    "combining": "e\u0301 o\u0302\u0323 n\u0303 a\u030a\u0301 u\u0308\u0304",
    "combining first": "\u0301a \u0301 \u0301\u0301 \n\u0301 .\u0301 1\u0301",
    "combining, many": "Z" + "\u0351\u032b\u0323\u0301" * 8 + "algo",
    "combining, orders": "q\u0323\u0307 q\u0307\u0323 \u1e69 s\u0323\u0307 s\u0307\u0323",
    "composed and not": "é e\u0301 Å A\u030a \u212b ñ n\u0303 가 \u1100\u1161",
    "compatibility": "ﬁ ﬀ ㎏ ™ ½ ℌ ① ｆｕｌｌ ﷺ ㍿ ſ \u212a \u212b \u2126",
    "enclosing": "1\u20e3 a\u20dd #\ufe0f\u20e3",
    "joiners": "क्\u200dष क्\u200cष می\u200cخواهم a\u200db a\u200cb",
    "soft hyphen": "Donau\xaddampf\xadschiff \xad a\xad",
    "variation selectors": "☺\ufe0e ☺\ufe0f ❤\ufe0f 葛\U000e0100 a\ufe0f",
    # ---- emoji
    "emoji": "😊 a😊b 😊😊😊 1😊2",
    "emoji, families": "👩\u200d👩\u200d👧\u200d👦 👨\u200d💻 🏳\ufe0f\u200d🌈 ❤\ufe0f\u200d🔥",
    "emoji, skins": "👍🏽 👋🏻👋🏿 👩🏾\u200d🚀",
    "emoji, flags": "🇩🇪🇯🇵 🇺🇸🇺 \U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
    # ---- characters that some code takes for none
    "nul": "\x00",
    "nul inside": "a\x00b \x00 \x00\x00c\x00",
    "byte order mark": "\ufeffa",
    "byte order mark inside": "a\ufeffb \ufeff \ufeff",
    "controls": "a\x01b\x07c\x08d\x1be\x7ff\x80g\x9fh",
    "controls, escapes": "\x1b[31mred\x1b[0m \x1b]0;title\x07",
    "controls among words": "a\u0010b\u0010 c\u2026d\u2026 e\u202ff \t\u0010\u2026\u202f\t",
    "replacement character": "a\ufffdb \ufffd\ufffd",
    "noncharacters": "\ufffe \uffff \ufdd0 \U0001fffe \U0010ffff",
    "unassigned": "\u0378 \U0003fffe \U000e0080 a\u0378b",
    "private use": "\ue000 \uf8ff \U000f0000 \U0010fffd a\ue000b",
    "tags": "a\U000e0061\U000e0062\U000e007fb \U000e0001",
    "interlinear": "\ufff9a\ufffab\ufffb \ufffc",
    "smallest and largest of each length": "\x00\x7f\x80\u07ff\u0800\uffff\U00010000\U0010ffff",
    "around the surrogates": "\ud7ff\ue000",
    "byte alphabet": "ĠĊĉ Ġhello Ā\u0143 \xad \xa0",
    "metaspace": "▁ ▁a a▁b ▁▁ _a _ _",
    "word pieces": "##ing ## #a ##",
    "end of word": "a</w> </w> low·",
    "byte fallback": "<0x0A> <0xE4><0xB8> <0x00> <0xFF>",
    # ---- special-looking text
    "special, gpt": "<|endoftext|> a<|endoftext|>b <|endofprompt|> <|fim_prefix|>",
    "special, chat": "<|im_start|>user\nhi<|im_end|> [INST] a [/INST] <|start_header_id|>",
    "special, bert": "[CLS] a [SEP] [MASK] [UNK] [PAD]",
    "special, sentencepiece": "<s> a</s> <unk> <pad> <bos> <eos>",
    "special, in parts": "<| endoftext |> <|endoftext <|endoftext| endoftext|> <|endof text|> <|ENDOFTEXT|>",
    "special, nested": "<|endof<|endoftext|>text|> <|<|endoftext|>|> <|endoftext|><|endoftext|>",
    "special, spaces around": "a  <|endoftext|>  b\n<|endoftext|>\nc",
    "special, accents inside": "<|endo\u0301ftext|> <|endoftext|\u0301>",
    # ---- code and data
    "python": "def push(queue, item):\n    queue.append(item)\n    return len(queue)  # type: ignore[attr]\n",
    "python, deep": "class A:\n\n    def f(self):\n        if x:\n            return {'a': [1, 2], **b}\n\n\n",
    "c": '#include <stdio.h>\n\nint main(void) {\n\tprintf("%d\\n", 0x1F);\n\treturn 0;\n}\n',
    "html": '<!DOCTYPE html>\n<div class="a b">&amp;&#39;</div><br/>\n<!-- x -->',
    "json": '{"a": [1, -2.5e3, true, null], "b\\n": {"\\u00e9": "é"}, "c": ""}\n',
    "sql": "SELECT * FROM t WHERE a='b' AND c<>'d''e' -- f;\n",
    "shell": "ls -la | grep '^d' && echo \"$HOME\" > /dev/null 2>&1; cd ~/x\\ y\n",
    "tex": "\\frac{a_1}{b^2} = \\sum_{i=0}^{n} $x_i$ \\\\\n",
    "diff": "--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n-old\n+new\n",
    "paths": "https://example.com/a?b=c&d=%20#e user@example.com C:\\Users\\x\\y ../../z 192.168.0.1 ::1",
    "base64": "SGVsbG8sIHdvcmxkIQ== 9f86d081884c7d659a2feaa0c55ad015",
    "markdown": "# Title\n\n* **a** _b_\n  1. `c`\n\n> d\n\n| e | f |\n|---|---|\n",
    "csv": 'a,"b ""c""",d\r\n1,,3\r\n',
    # ---- runs
    "run of a": "a" * 100,
    "run of A": "A" * 100,
    "run of spaces": " " * 100,
    "run of spaces and a letter": " " * 100 + "a",
    "run of newlines": "\n" * 100,
    "run of windows newlines": "\r\n" * 50,
    "run of tabs": "\t" * 100,
    "run of digits": "0" * 100,
    "run of carets": "^" * 100,
    "run of dashes": "-" * 100 + "\n",
    "run of 's": "'s" * 50,
    "run of ab": "ab" * 50,
    "run of aab": "aab" * 33,
    "run of aA": "aA" * 50,
    "run of a 1": "a1" * 50,
    "run of space a": " a" * 50,
    "run of space newline": " \n" * 50,
    "run of 的": "的" * 50,
    "run of emoji": "😊" * 30,
    "run of accents": "e" + "\u0301" * 50,
    "run of nul": "\x00" * 50,
    "run of no-break spaces": "\xa0" * 50,
    "fibonacci word": "abaababaabaababaababaabaababaabaababaababaabaababaababa",
    "powers of a": " ".join("a" * n for n in range(1, 18)),
}

# Code points of one Unicode version each, as letters, digits, marks and symbols: a library that knows an older version
# takes them for unassigned. One text has them alone, one among letters and digits.
_NEW: dict[str, str] = {
    "13.0": "\ua7f5 \ua7f6 \U00010e80 \U00030000 \U00011950 \U0001fbf0 \U00010eab \U0001fac0 \U0001fad6",
    "14.0": "\ua7c0 \ua7c1 \U00010570 \U0001e290 \U00016ac0 \U00010f82 \U0001fae0",
    "15.0": "\U0001df25 \U0001e030 \U00011f02 \U00031350 \U00011f50 \U0001d2c0 \U00011f03 \u0ece \U0001fae8",
    "15.1": "\U0002ebf0 \U0002ee5d \u2ffc \u31ef",
    "16.0": "\ua7cb \ua7cd \u1c89 \u1c8a \U00010d4e \U000105c0 \U00010d40 \u0897 \U000113b8 \U00010d8e \U0001fae9",
    "17.0": "\ua7ce \ua7cf \ua7f1 \U000323b0 \U00011de0 \U00016ff4 \u1acf \U00011b61 \u20c1 \U0001cef0 \U0001faea",
}
for _version, _text in _NEW.items():
    TEXTS[f"new in Unicode {_version}"] = _text
    TEXTS[f"new in Unicode {_version}, among others"] = "".join(f"a{c}b A{c}B 1{c}2 .{c} {c}{c}" for c in _text.split())

# Halves of characters that Python can hold in a `str` and UTF-8 cannot.
SURROGATES: dict[str, str] = {
    "high": "\ud83d",
    "low": "\ude0a",
    "low before high": "\ude0a\ud83d",
    "two high": "\ud83d\ud83d",
    "pair, not joined": "\ud83d\ude0a",  # in Python still two halves, not U+1F60A
    "at the start": "\ud800abc",
    "at the end": "abc\udfff",
    "in the middle": "a\ud83db c\ude0ad",
    "of undecodable bytes": "caf\udce9.txt",  # os.fsdecode(b"caf\xe9.txt")
}

# Ill-formed UTF-8.
BYTES: dict[str, bytes] = {
    "continuation alone": b"\x80",
    "continuations": b"a\x80\x81\xbfb",
    "start of two bytes": b"\xc3",
    "start of two bytes, then a letter": b"\xc3a",
    "start of three bytes": b"\xe4\xb8",
    "start of three bytes, then a letter": b"\xe4\xb8a",
    "start of four bytes": b"\xf0\x9f\x98",
    "start of four bytes, then a character": b"\xf0\x9f\xe4\xb8\x96",
    "cut off at the end": "世界😊".encode()[:-1],
    "cut off at the start": "世界😊".encode()[1:],
    "cut off at both ends": "😊 Müller 😊".encode()[2:-2],
    "too long for a slash": b"\xc0\xaf",
    "too long for nul": b"\xc0\x80",
    "too long, three bytes": b"\xe0\x80\xaf \xe0\x9f\xbf",
    "too long, four bytes": b"\xf0\x80\x80\xaf \xf0\x8f\xbf\xbf",
    "surrogate": b"\xed\xa0\x80",
    "surrogates of an emoji": b"\xed\xa0\xbd\xed\xb8\x8a",
    "above U+10FFFF": b"\xf4\x90\x80\x80",
    "start of five and six bytes": b"\xf8\x88\x80\x80\x80 \xfc\x84\x80\x80\x80\x80",
    "bytes that never occur": b"\xfe\xff\xc0\xc1\xf5",
    "utf-16": "Müller".encode("utf-16"),
    "latin-1": "Müller grüßt".encode("latin-1"),
    "shift-jis": "探偵".encode("shift-jis"),
    "among words": b"the \xff cat\xc3 sat\x80. \xe4\xb8\n",
    "among spaces": b" \xff  \x80\n\xc3 \xe4\xb8 \n",
    "after digits": b"123\xff456\xc3789",
    "run of continuations": b"\x80" * 50,
    "run of starts": b"\xf0" * 50,
    "every byte": bytes(range(256)),
    "every byte, backwards": bytes(range(255, -1, -1)),
    "every byte between letters": b"".join(b"a%cb" % byte for byte in range(256)),
}


def glued(tokens: Sequence[Token], n: int, rng: random.Random) -> Token:
    """Put `n` random tokens of a vocabulary together: text in which many merges compete.

    Example:
        >>> glued([b"a", b"ab", b"b"], 4, random.Random(0))
        b'ababaab'
    """
    chosen = [rng.choice(tokens) for _ in range(n)]
    return tokens[0][:0].join(chosen)


def every_character() -> Iterator[str]:
    """All code points of every Unicode category that has characters, in runs and next to other kinds."""
    by_category: dict[str, list[str]] = {}
    for point in [*range(0x3100), *range(0xA000, 0xAC40), *range(0xF900, 0x10900), *range(0x1E000, 0x1FB00), 0x10FFFF]:
        by_category.setdefault(unicodedata.category(chr(point)), []).append(chr(point))
    by_category.pop("Cs", None)
    for chars in by_category.values():
        for start in range(0, len(chars), 400):
            some = chars[start : start + 400]
            yield "".join(some)
            yield " ".join(some)
            yield "".join(f"a{char}B{char}1\n{char}{char} '{char}s" for char in some)


def hurting_for(vocab: Sequence[bytes]) -> Iterator[str]:
    """All of the above, every character, this vocabulary's entries glued together, code, and long runs."""
    yield from every_character()
    yield from TEXTS.values()
    yield from (data.decode("utf-8", "replace") for data in BYTES.values())
    rng = random.Random(1)
    for _ in range(300):
        yield rng.randbytes(rng.randint(1, 80)).decode("latin-1")
        yield rng.randbytes(rng.randint(1, 80)).decode("utf-8", "replace")
        yield glued(vocab, rng.randint(1, 30), rng).decode("utf-8", "replace")
    for path in STDLIB[:60]:
        yield path.read_text("utf-8", "replace")
    for run in ("a", "A", " ", "\n", "1", "=", "中", "é", "\u0301", "ab", "aA", " \n", "😀", "字1", "HOW'S"):
        yield run * 3_000


def every_category() -> dict[str, str]:
    """Three code points of each general category (`Lu`, `Mn`, `Cn` …): the first, the middle one and the last.

    Surrogates (`Cs`) are left out. The tables are those of the Python that runs, so the middle one differs by version.
    """
    members: dict[str, list[str]] = {}
    for char in map(chr, range(sys.maxunicode + 1)):
        members.setdefault(unicodedata.category(char), []).append(char)
    del members["Cs"]
    return {
        name: "".join(dict.fromkeys((chars[0], chars[len(chars) // 2], chars[-1])))
        for name, chars in sorted(members.items())
    }
