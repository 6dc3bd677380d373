"""What texts cost: tokens, share of a context window, and money, by file and by role; and what a mixture of languages
costs on average.

Prices are what the user says they are, in a CSV file that `PRICE_TEMPLATE` begins: none comes with the package, since a
price that was right when it was written would be wrong when it is read.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..arguments import integer, path_of
from ..engine import text_bytes
from ..errors import SubwordOSError, SubwordValueError
from ..tokenizer import Text, Tokenizer
from .parallel import Collection

ROLES = {
    "system": "the system prompt",
    "instructions": "instruction files, which tools put into every conversation",
    "tools": "schemas of tools",
    "history": "what was said before",
    "prompt": "all else: files, documents, the question",
}
"""What a text in a context window is there for. The order is that in which they stand in a request."""

NAMES: tuple[tuple[str, str], ...] = (
    ("instructions", r"(claude|agents|agent|gemini|copilot-instructions|conventions)(\.local)?\.md"),
    ("instructions", r"\.(cursorrules|windsurfrules|clinerules)|.*\.(mdc|instructions\.md)"),
    ("tools", r"(.*[._-])?(tools|functions|tool_schemas?)\.json"),
    ("history", r"(.*[._-])?(history|messages|conversation|transcript)\.(json|jsonl|md|txt)"),
    ("system", r"(.*[._-])?system([._-]?prompt)?\.(md|txt)"),
)
"""Which role the name of a file speaks for, where nobody says otherwise; in any case of letters."""

PRICE_TEMPLATE = """\
# Prices of a million tokens, all in one currency: what your provider says today. Nothing is filled in, since no price
# is guessed. A row a model; take out rows and these lines as you like. `output` may stay empty.
model,input,output
my-model,,
another-model,,
"""


@dataclass(frozen=True, slots=True)
class Price:
    """What a model costs, for a million tokens."""

    model: str
    input: float
    output: float | None


@dataclass(frozen=True, slots=True)
class Item:
    """A file, or another text, in a context window."""

    name: str
    role: str
    """One of `ROLES`."""
    tokens: int
    bytes: int
    share: float
    """Of the window: 1 would fill it."""


@dataclass(frozen=True, slots=True)
class RoleTotal:
    """What all texts of a role come to."""

    role: str
    items: int
    tokens: int
    share: float


@dataclass(frozen=True, slots=True)
class Cost:
    """What a request costs with one model: the texts, and a reply of so many tokens."""

    model: str
    input: float
    output: float | None
    """None where no reply is reckoned with, or the table has no price for one."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What is in a context window."""

    window: int
    reply: int
    """Tokens that are kept free for the reply."""
    tokens: int
    share: float
    left: int
    """What the window still holds beside the texts and the reply; below 0 if they do not fit."""
    items: tuple[Item, ...]
    """In the order in which they were given."""
    roles: tuple[RoleTotal, ...]
    """Those that there are, in the order of `ROLES`."""
    costs: tuple[Cost, ...]
    """For each model of the price table."""


def role_of(name: str) -> str:
    """The role that the name of a file speaks for.

    >>> role_of("repo/CLAUDE.md"), role_of("search.tools.json"), role_of("chat-history.jsonl"), role_of("main.py")
    ('instructions', 'tools', 'history', 'prompt')
    """
    last = re.split(r"[/\\]", name)[-1].lower()
    return next((role for role, pattern in NAMES if re.fullmatch(pattern, last)), "prompt")


def budget(
    tok: Tokenizer,
    texts: Iterable[tuple[str, str, Text]],
    *,
    window: int = 128_000,
    reply: int = 0,
    prices: Iterable[Price] = (),
) -> Budget:
    """Count what would stand in a context window. What looks like a special token is text.

    A provider adds some tokens around each message; `subword count --provider` shows how many.

    Args:
        texts: for each its name, its role (a row of `ROLES`), and the text itself.
        window: the tokens that the context window holds.
        reply: tokens to keep free for the reply.
        prices: as `read_prices` gives them.
    """
    window, reply = integer("window", window, 1), integer("reply", reply)
    items = []
    for name, role, text in texts:
        if role not in ROLES:
            raise SubwordValueError(f"{name}: unknown role {role!r}; choose one of {', '.join(ROLES)}")
        data = text_bytes(text)
        tokens = tok.count(data, allowed_special=set(), disallowed_special=())
        items.append(Item(name, role, tokens, len(data), tokens / window))
    total = sum(item.tokens for item in items)
    by_role = {role: [item.tokens for item in items if item.role == role] for role in ROLES}
    return Budget(
        window=window,
        reply=reply,
        tokens=total,
        share=total / window,
        left=window - total - reply,
        items=tuple(items),
        roles=tuple(
            RoleTotal(role, len(found), sum(found), sum(found) / window) for role, found in by_role.items() if found
        ),
        costs=tuple(
            Cost(
                model=price.model,
                input=total * price.input / 1e6,
                output=None if price.output is None or not reply else reply * price.output / 1e6,
            )
            for price in prices
        ),
    )


def read_prices(path: str | os.PathLike[str]) -> tuple[Price, ...]:
    """The price table in a CSV file, laid out as `PRICE_TEMPLATE`.

    Raises:
        SubwordOSError: the file cannot be read.
        SubwordValueError: it is no such table, or a price is missing or no number; the message says in which line.
    """
    name = path_of(path)
    try:
        text = Path(name).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SubwordValueError(f"{name}: not UTF-8 (byte {error.start})") from error
    except OSError as error:
        raise SubwordOSError(error.errno, error.strerror, name) from error
    numbered = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip() and line[0] != "#"]
    try:
        rows = [(number, *csv.reader(io.StringIO(line), strict=True)) for number, line in numbered]
    except csv.Error as error:
        raise SubwordValueError(f"{name}: not well-formed CSV: {error}") from error
    template = "subword budget --price-template writes one to fill in"
    head = [cell.strip().lower() for cell in rows[0][1]] if rows else []
    if not {"model", "input"} <= set(head):
        raise SubwordValueError(f"{name}: not a price table, whose first line is model,input,output; {template}")
    prices = []
    for number, cells in rows[1:]:
        if len(cells) > len(head):
            raise SubwordValueError(f"{name}, line {number}: {len(cells)} cells under {len(head)} headings")
        row = dict(zip(head, (cell.strip() for cell in cells), strict=False))
        model = row["model"]
        if not model:
            raise SubwordValueError(f"{name}, line {number}: the row has no model")
        paid = _price(name, number, model, "input", row.get("input", ""))
        if paid is None:
            raise SubwordValueError(
                f"{name}, line {number}: {model} has no price for input; fill it in or take out the row"
            )
        prices.append(Price(model, paid, _price(name, number, model, "output", row.get("output", ""))))
    if not prices:
        raise SubwordValueError(f"{name}: a price table without a row; {template}")
    return tuple(prices)


def _price(name: str, line: int, model: str, column: str, cell: str) -> float | None:
    if not cell:
        return None
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise SubwordValueError(
            f"{name}, line {line}: {model}, {column}: {cell!r} is no price; write a number, as 2.50"
        )
    return value


# ======================== mixtures ========================


@dataclass(frozen=True, slots=True)
class Part:
    """A language of a mixture."""

    language: str
    share: float
    """Of the content: all shares add up to 1."""
    ratio: float
    """Its tokens for what takes one token in the language that all are measured against."""
    better: float | None
    """The same with the other tokenizer."""


@dataclass(frozen=True, slots=True)
class Mixture:
    """What content in several languages costs on average."""

    parts: tuple[Part, ...]
    average: float
    """Tokens for what takes one token in the language that all are measured against."""
    better: float | None
    """The average with the other tokenizer; None where there is none."""
    saving: float | None
    """The share of tokens that the other one saves."""


def mixture(
    shares: Mapping[str, float], ratios: Mapping[str, float], better: Mapping[str, float] | None = None
) -> Mixture:
    """The average cost of a mixture of languages, and what a better tokenizer would save.

    >>> found = mixture({"en": 40, "hi": 30, "ja": 30}, {"en": 1, "hi": 1.3, "ja": 3}, {"ja": 1.5})
    >>> round(found.average, 2), round(found.better, 2), round(found.saving, 3)
    (1.69, 1.24, 0.266)

    Args:
        shares: how much of the content is in each language, in parts or in percent.
        ratios: the tokens of each language for what takes one in the language of reference.
        better: the ratios with another tokenizer, against the same tokens of the first one; languages that are not in
            it keep theirs.
    """
    if not shares:
        raise SubwordValueError("a mixture has at least one language")
    for what, values in (("share", shares), ("ratio", ratios), ("better ratio", better or {})):
        for language, value in values.items():
            if not (isinstance(value, (int, float)) and 0 < value < math.inf):
                raise SubwordValueError(f"{language}: a {what} is a number greater than 0, not {value!r}")
            if language not in shares:
                raise SubwordValueError(f"{language}: there is a {what}, but no share")
    if missing := [language for language in shares if language not in ratios]:
        raise SubwordValueError(f"no ratio for {', '.join(missing)}")
    whole = math.fsum(shares.values())
    parts = tuple(
        Part(
            language=language,
            share=share / whole,
            ratio=float(ratios[language]),
            better=None if better is None else float(better.get(language, ratios[language])),
        )
        for language, share in shares.items()
    )
    average = math.fsum(part.share * part.ratio for part in parts)
    other = None if better is None else math.fsum(part.share * (part.better or 0.0) for part in parts)
    return Mixture(parts, average, other, None if other is None else 1 - other / average)


def measured_ratios(
    tok: Tokenizer, texts: Collection, languages: Iterable[str], base: Tokenizer | None = None
) -> dict[str, float]:
    """The tokens of languages for what takes one token in the language of reference, on parallel texts.

    Args:
        languages: codes of the collection (`hin_Deva`), or their first parts, if only one has it.
        base: whose tokens in the language of reference are 1; `tok` itself if not given.

    Raises:
        SubwordValueError: the collection has no such language, or several.
    """
    base = base or tok
    ratios = {}
    for language in languages:
        found = [row for row in texts.texts if row.language == language] or [
            row for row in texts.texts if re.split("[_-]", row.language)[0] == language
        ]
        if len(found) != 1:
            problem = f"is {' and '.join(row.language for row in found)}" if found else "is not there"
            raise SubwordValueError(f"{texts.source}: {language} {problem}; its codes are as {texts.texts[0].language}")
        text, reference = found[0].text, found[0].reference
        ratios[language] = len(tok.encode_ordinary(text)) / len(base.encode_ordinary(reference))
    return ratios
