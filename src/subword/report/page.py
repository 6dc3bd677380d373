"""A page to keep and to send: one HTML file that needs nothing from outside, no network and no script.

Each function gives a piece of HTML and escapes the text that it is given; `page` puts pieces together. The page follows
the reader's light or dark setting, fits a phone, and prints in black on white.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

STYLE = """
:root { color-scheme: light dark; --ink: #1c2024; --faint: #5f6873; --paper: #fff; --line: #d9dee4; --shade: #f5f7f9 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7eb; --faint: #9aa4b0; --paper: #15181c; --line: #343b44; --shade: #1d2127 }
}
* { box-sizing: border-box }
body { margin: 0 auto; padding: 2.5rem 1.25rem 4rem; max-width: 48rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", "Noto Sans", sans-serif }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .4rem; overflow-wrap: anywhere }
h2 { font-size: 1.15rem; margin: 2.4rem 0 .7rem }
p { margin: .6rem 0 }
.lead, figcaption, caption, footer { color: var(--faint) }
code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "Noto Sans Mono", monospace; font-size: .9em;
  overflow-wrap: anywhere }
dl { display: grid; grid-template-columns: minmax(8rem, max-content) minmax(0, 1fr); margin: 0;
  border-top: 1px solid var(--line) }
dt, dd { padding: .38rem 0; margin: 0; border-bottom: 1px solid var(--line) }
dt { color: var(--faint); padding-right: 1.5rem }
dd { overflow-wrap: anywhere }
.wide { overflow-x: auto; max-width: 100% }
dl + .wide, .wide + .wide { margin-top: 1.4rem }
table { border-collapse: collapse; width: 100%; font-size: .93rem; font-variant-numeric: tabular-nums }
caption, figcaption { text-align: left; font-size: .9rem; padding: .2rem 0 .5rem }
th, td { padding: .3rem .75rem; text-align: left; border-bottom: 1px solid var(--line); vertical-align: baseline }
th { font-weight: 600; border-bottom: 2px solid var(--line); vertical-align: bottom }
tbody tr:nth-child(even) { background: var(--shade) }
.number { text-align: right }
th, td { overflow-wrap: anywhere }
td:not(.number) { min-width: 4rem }
td.number { white-space: nowrap }
figure { margin: 1rem 0 }
figure svg { display: block; width: 100%; max-width: 36rem; height: auto }
.tokens { display: flex; flex-wrap: wrap; gap: .35rem; padding: 0; margin: .6rem 0; list-style: none }
.tokens code { display: block; padding: .05rem .45rem; border: 1px solid var(--line); border-radius: .3rem;
  background: var(--shade); unicode-bidi: isolate }
.coloured { line-height: 1.8; margin: 0; overflow-wrap: anywhere }
.coloured code { padding: .05rem .1rem; border-radius: .2rem; unicode-bidi: isolate }
.finding { border-left: 4px solid #d08a1d; background: var(--shade); padding: .5rem .9rem; margin: 1rem 0 }
.finding p { margin: .2rem 0; overflow-wrap: anywhere }
footer { margin-top: 3rem; font-size: .85rem; border-top: 1px solid var(--line); padding-top: .8rem;
  overflow-wrap: anywhere }
@media (max-width: 30rem) {
  body { padding-top: 1.25rem }
  dl { grid-template-columns: minmax(0, 1fr) }
  dt { border: 0; padding-bottom: 0; font-size: .88rem }
  dd { padding-top: 0 }
  table { font-size: .85rem }
  th, td { padding: .3rem .25rem }
}
@media print {
  :root { color-scheme: light; --ink: #000; --faint: #444; --paper: #fff; --line: #bbb; --shade: #fff }
  body { max-width: none; padding: 0; font-size: 10pt }
  h2, caption { break-after: avoid }
  figure, tr, dt, dd { break-inside: avoid }
  thead { display: table-header-group }
  .wide { overflow: visible }
}
"""


def page(title: str, lead: str, *sections: str, foot: str = "") -> str:
    """A whole page: its title, a sentence under it, sections, and small print."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{text(title)}</h1>\n"
        f'<p class="lead">{text(lead)}</p>\n</header>\n<main>\n'
        + "\n".join(sections)
        + f"\n</main>\n<footer>{text(foot)}</footer>\n</body>\n</html>\n"
    )


def section(title: str, *content: str) -> str:
    return f"<section>\n<h2>{text(title)}</h2>\n" + "\n".join(content) + "\n</section>"


def paragraph(words: str) -> str:
    return f"<p>{text(words)}</p>"


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """Names and what they name; rows of which nothing is said are left out."""
    cells = (f"<dt>{text(name)}</dt><dd>{text(value)}</dd>" for name, value in rows if value)
    return "<dl>\n" + "\n".join(cells) + "\n</dl>"


def table(caption: str, headings: Sequence[str], rows: Iterable[Sequence[str | int | float | None]]) -> str:
    """A table; numbers stand to the right, with commas between thousands, and None as a dash."""
    rows = list(rows)
    right = numeric(headings, rows)

    def cell(kind: str, at: int, value: str) -> str:
        attributes = (' scope="col"' if kind == "th" else "") + (' class="number"' if right[at] else "")
        return f"<{kind}{attributes}>{text(value)}</{kind}>"

    def line(kind: str, values: Sequence[str]) -> str:
        return "<tr>" + "".join(cell(kind, at, value) for at, value in enumerate(values)) + "</tr>"

    return (
        f'<div class="wide">\n<table>\n<caption>{text(caption)}</caption>\n'
        f"<thead>{line('th', headings)}</thead>\n<tbody>\n"
        + "\n".join(line("td", row) for row in shown(rows))
        + "\n</tbody>\n</table>\n</div>"
    )


def numeric(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> list[bool]:
    """Which columns have nothing but numbers in them, or dashes."""
    columns = [[row[at] for row in rows if row[at] is not None] for at in range(len(headings))]
    return [
        bool(cells) and all(isinstance(cell, (int, float)) or bool(_WRITTEN.fullmatch(str(cell))) for cell in cells)
        for cells in columns
    ]


_WRITTEN = re.compile(r"-?[0-9][0-9,]*(\.[0-9]+)?( [kMGTP])?")
"""A number in a string: `0.000060`, `1.5 G`."""


def shown(rows: Sequence[Sequence[str | int | float | None]]) -> list[list[str]]:
    """The cells of a table as text; of a column all with as many decimals as one of them has, three at most.

    >>> shown([("a", 12.5), ("b", 3.0), ("c", 1 / 3)]), shown([("a", 2.0), ("b", None)])
    ([['a', '12.500'], ['b', '3.000'], ['c', '0.333']], [['a', '2'], ['b', '–']])
    """
    columns = [list(column) for column in zip(*rows, strict=True)]
    decimals = [max((_decimals(each) for each in column if isinstance(each, float)), default=0) for column in columns]
    return [[number(cell, most) for cell, most in zip(row, decimals, strict=True)] for row in rows]


def _decimals(value: float) -> int:
    written = number(value)
    return len(written.partition(".")[2].rstrip("0"))


def figure(svg: str, caption: str) -> str:
    """A drawing, which `charts.draw` has given a title for those who cannot see it, and what is said under it."""
    return f"<figure>\n{svg}\n<figcaption>{text(caption)}</figcaption>\n</figure>"


def tokens(shown: Iterable[str]) -> str:
    """Tokens side by side, as `terminal.visible` shows them."""
    return '<ul class="tokens">' + "".join(f"<li><code>{text(token)}</code></li>" for token in shown) + "</ul>"


def number(value: str | int | float | None, decimals: int = 3) -> str:
    """
    >>> number(1234567), number(1234.5), number(3.5), number(None), number("as it is")
    ('1,234,567', '1,234.5', '3.500', '–', 'as it is')
    """
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.{min(decimals, 1) if value >= 100 else decimals}f}"
    return value if isinstance(value, str) else f"{value:,}"


def text(words: str) -> str:
    """Text as HTML. What a file or a token holds may be anything; characters that no page may hold are shown."""
    safe = "".join(char if char in "\n\t" or char >= " " else "\ufffd" for char in words)
    return html.escape(safe.encode("utf-8", "replace").decode())
