"""How tokens look: coloured text and tables for a terminal (rich), a small block of HTML for a notebook.

Each token gets the next of a few background colours, so that neighbours can be told apart. White space and bytes that
are no whole character show as glyphs: `␣` space, `→` tab, `↵` newline, `⟨e4⟩` a byte, `⟨U+200B⟩` an invisible
character. Nothing that a text holds reaches the terminal as a control sequence.
"""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from ..encoding import Encoding
    from ..explain import Part

COLOURS = ("#ffe08a", "#a8dcff", "#ffc4c4", "#b9ecb9", "#dcc8ff")
"""Backgrounds of neighbouring tokens: light, under black text, so that dark and light terminals show them alike."""

RULE = "│"
"""What stands between tokens where there are no colours."""

GLYPHS = {" ": "␣", "\t": "→", "\n": "↵", "\r": "␍"}
_INVISIBLE = frozenset(("Cc", "Cf", "Co", "Zs", "Zl", "Zp"))


def visible(data: bytes) -> str:
    """The text that bytes spell, with everything shown that one would not see.

    >>> visible(b" caf\\xc3\\xa9\\n"), visible(b"\\xe4\\xb8"), visible("\\u200b".encode())
    ('␣café↵', '⟨e4⟩⟨b8⟩', '⟨U+200B⟩')
    """
    text = data.decode("utf-8", "surrogateescape")
    shown = text.translate(_SHOWN)
    return "◌" + shown if text[:1] > "\x7f" and unicodedata.combining(text[0]) else shown


class _Shown(dict[int, str]):
    """What a character shows as, by its code point; worked out when it is first met."""

    def __missing__(self, code: int) -> str:
        shown = self[code] = self.glyph(code)
        return shown

    @staticmethod
    def glyph(code: int) -> str:
        char = chr(code)
        if char in GLYPHS:
            return GLYPHS[char]
        if 0xDC80 <= code <= 0xDCFF:  # a byte that surrogateescape let through
            return f"⟨{code - 0xDC00:02x}⟩"
        if char < "\x7f":
            return char if char >= " " else f"⟨{code:02x}⟩"
        return f"⟨U+{code:04X}⟩" if unicodedata.category(char) in _INVISIBLE else char


_SHOWN = _Shown()


def _lines(data: bytes) -> list[str]:
    """As `visible`, cut after each newline."""
    *lines, last = data.split(b"\n")
    return [visible(line + b"\n") for line in lines] + [visible(last)]


def bracketed(part: Part) -> str:
    """A token as the merges put it together, down to single bytes: `⟦t h⟧ e`."""
    out: list[str] = []
    todo: list[Part | str] = [part]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            out.append(item)
        elif item.parts is None:
            out.append(visible(item.data))
        else:
            left, right = item.parts
            todo += ("⟧", right, " ", left, "⟦")
    return "".join(out) if part.parts is None else "".join(out[1:-1])


# ======================== rows ========================


@dataclass(frozen=True, slots=True)
class Row:
    """What there is to say about a token, as text."""

    id: str
    piece: str
    shown: str
    bytes: str
    byte_span: str
    char_span: str


HEADINGS = ("id", "token", "piece", "bytes", "byte span", "char span")


def rows(encoding: Encoding, max_tokens: int | None = None) -> Iterator[Row]:
    """One row a token, for the first `max_tokens` of them."""
    ids = encoding.ids[:max_tokens].tolist()
    for id, piece, data, byte_span, char_span in zip(
        ids, encoding.pieces, encoding.token_bytes, encoding.byte_spans.tolist(), encoding.char_spans.tolist(),
        strict=False,
    ):  # fmt: skip
        yield Row(
            str(id),
            visible(piece.encode("utf-8", "surrogatepass")),
            visible(data),
            data.hex(" "),
            "–".join(map(str, byte_span)),
            "–".join(map(str, char_span)),
        )


# ======================== terminal ========================


def coloured_tokens(encoding: Encoding, max_tokens: int | None = None, rule: bool = False) -> Text:
    """The text, token by token on alternating backgrounds; with `rule`, for terminals without colour, set apart by `│`.

    A newline shows as its glyph and is a newline as well.
    """
    text = Text()
    for number, data in enumerate(encoding.token_bytes[:max_tokens]):
        if rule and number:
            text.append(RULE)
        for at, line in enumerate(_lines(data)):
            text.append("\n" if at else "")
            text.append(line, "" if rule else _style(number))
    return text


def token_table(encoding: Encoding, max_tokens: int | None = None) -> Table:
    """A table of the tokens: id, text, the vocabulary's own spelling, bytes, and spans in bytes and characters."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in HEADINGS:
        table.add_column(heading, justify="right" if heading == "id" or heading.endswith("span") else "left")
    for number, row in enumerate(rows(encoding, max_tokens)):
        table.add_row(
            row.id, Text(row.shown, _style(number)), Text(row.piece), Text(row.bytes, "dim"), row.byte_span,
            row.char_span,
        )  # fmt: skip
    return table


def left_out(encoding: Encoding, max_tokens: int | None) -> int:
    """How many tokens `max_tokens` leaves out."""
    return 0 if max_tokens is None else max(len(encoding.ids) - max_tokens, 0)


def _style(number: int) -> str:
    return f"black on {COLOURS[number % len(COLOURS)]}"


# ======================== notebook ========================


def tokens_html(encoding: Encoding, max_tokens: int | None = 2000) -> str:
    """The same for a notebook: one block of HTML that needs nothing from outside, with details under the pointer."""
    out = ['<div style="font-family:monospace;line-height:1.7;white-space:pre-wrap;overflow-wrap:anywhere">']
    for number, (row, data) in enumerate(zip(rows(encoding, max_tokens), encoding.token_bytes, strict=False)):
        title = f"id {row.id} · bytes {row.bytes or 'none'} · bytes {row.byte_span} · characters {row.char_span}"
        style = f"background:{COLOURS[number % len(COLOURS)]};color:#111;border-radius:3px;padding:1px 0"
        shown = "<br>".join(html.escape(line) for line in _lines(data))
        out.append(f'<span style="{style}" title="{html.escape(title)}">{shown}</span>')
    more = left_out(encoding, max_tokens)
    count = len(encoding.ids)
    note = f"{count:,} token{'' if count == 1 else 's'}" + (f", the last {more:,} not shown" if more else "")
    out.append(f'<div style="opacity:.65;font-size:85%">{note}</div></div>')
    return "".join(out)
