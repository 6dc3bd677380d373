"""`--fail-if "premium(hin_Deva) > 3"`: conditions on the numbers of a report, for CI.

    condition = name operator number
    name      = field, or fields with dots between them, as --json has them; for a row of a list, the name of the
                row behind it in brackets: premium(hin_Deva), fairness.languages.premium(hin_Deva)
    operator  = < <= > >= == !=

A name is that of a number if it is all of its path, or the end of exactly one.
"""

from __future__ import annotations

import operator
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Annotated, Any, NoReturn, get_args, get_origin, get_type_hints

import typer

from .common import UsageError

OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le, ">=": operator.ge, "==": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt,
}  # fmt: skip

KEYS = ("language", "name", "source", "word", "token", "what", "other", "kind")
"""The fields that a row goes by, the first that is text."""

LISTED = 12

_CONDITION = re.compile(
    r"\s*([^<>=!]+?)\s*(<=|>=|==|!=|<|>)\s*([-+]?[0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)(%?)\s*"
)

FailIfOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-if",
        metavar="CONDITION",
        help='Exit with 1 if a number of the report is so, as in "premium(hin_Deva) > 3"; may be repeated.',
        show_default=False,
    ),
]


def numbers(data: Any, path: str = "", key: str = "") -> Iterator[tuple[str, float | None]]:
    """The numbers of a report by their names.

    >>> dict(numbers({"gini": 0.2, "languages": [{"language": "hin", "premium": 4}]}))
    {'gini': 0.2, 'languages.premium(hin)': 4.0}
    """
    if isinstance(data, dict):
        for name, value in data.items():
            yield from numbers(value, f"{path}.{name}" if path else str(name), key)
    elif isinstance(data, list):
        for at, value in enumerate(data):
            named = (
                next((value[k] for k in KEYS if isinstance(value.get(k), str)), None)
                if isinstance(value, dict)
                else None
            )
            yield from numbers(value, path, named or str(at))
    elif data is None or (isinstance(data, (int, float)) and not isinstance(data, bool)):
        yield f"{path}({key})" if key else path, None if data is None else float(data)


def parse(text: str) -> tuple[str, str, float]:
    """
    >>> parse("premium(hin_Deva) > 3"), parse("unused_share>=40%")
    (('premium(hin_Deva)', '>', 3.0), ('unused_share', '>=', 0.4))
    """
    found = _CONDITION.fullmatch(text)
    if not found:
        raise UsageError(f'--fail-if {text!r}: write a name, one of {" ".join(OPERATORS)}, and a number: "gini > 0.3"')
    value = float(found[3].replace("_", ""))
    return found[1], found[2], value / 100 if found[4] else value


def check(conditions: Sequence[str] | None, data: Any) -> None:
    """Exit with 1 if any condition holds, and say which. `data` is what --json prints.

    Raises:
        UsageError: no number has such a name, or several have.
    """
    if not conditions:
        return
    known = dict(numbers(data))
    failed = []
    for text in conditions:
        name, sign, limit = parse(text)
        full = _find(name, known)
        value = known[full]
        if value is None:
            raise UsageError(f"--fail-if {text!r}: {full} has no value in this report")
        if OPERATORS[sign](value, limit):
            failed.append(f"failed: {text.strip()}: it is {value:g}")
    if failed:
        print("\n".join(failed), file=sys.stderr)
        raise typer.Exit(1)


ANY = "*"
"""The name of whatever a table has by names of its own."""


def names_of(type: Any, path: str = "", row: bool = False) -> Iterator[tuple[str, bool]]:
    """The names of the numbers that a type holds, and whether each is in a row of a list. A dict of names and types
    is a type, too; what has no name there stands where the dict does.

    >>> list(names_of(tuple[int, ...], "lengths")), list(names_of(dict[str, float | None], "shares"))
    ([('lengths', True)], [('shares.*', False)])
    """
    below = f"{path}." if path else ""
    if isinstance(type, dict):
        for name, each in type.items():
            yield from names_of(each, below + name if name else path, row)
    elif get_origin(type) is UnionType:
        for each in dict.fromkeys(get_args(type)):
            yield from names_of(each, path, row) if each is not NoneType else ()
    elif is_dataclass(type):
        for name, each in get_type_hints(type).items():
            yield from names_of(each, below + name, row)
    elif get_origin(type) is tuple:
        for each in {each: None for each in get_args(type) if each is not ...}:
            yield from names_of(each, path, True)
    elif get_origin(type) is dict:
        yield from names_of(get_args(type)[1], below + ANY, row)
    elif type in (int, float):
        yield path, row


def check_names(conditions: Sequence[str] | None, type: Any, rows: Mapping[str, Collection[str]]) -> None:
    """Refuse, before the work, what is no condition, and names that no number of the report will have.

    Args:
        type: of the report, as `names_of` takes it.
        rows: the names of the rows of those lists of which they are known: path of the list -> names.
    """
    known = dict(names_of(type))
    for text in conditions or ():
        name, _, _ = parse(text)
        field, bracket, key = name.partition("(")
        found = [path for path, row in known.items() if row == bool(bracket) and _ends(path, field.strip())]
        if not found:
            lasts = {path: path.rpartition(".")[2] for path in known}
            near = get_close_matches(field.strip().rpartition(".")[2], set(lasts.values()), LISTED, 0.6)
            close = [path for last in near for path in known if lasts[path] == last] or list(known)
            _unknown(name, [f"{path}(…)" if known[path] else path for path in close])
        lists = [rows.get(path.rpartition(".")[0]) for path in found]
        if all(held is not None and key.removesuffix(")") not in held for held in lists):
            _unknown(name, _likest(name, [f"{field}({each})" for held in lists for each in held or ()]))


def _ends(path: str, name: str) -> bool:
    """Whether a name is a path or its end. What has a name of its own stands behind that of its table."""
    fields, given = path.split("."), name.split(".")
    ends = zip(reversed(fields), reversed(given), strict=False)
    fits = len(given) <= len(fields) and all(one in (other, ANY) for one, other in ends)
    return fits and fields[-len(given)] != ANY


def _likest(name: str, rows: Sequence[str]) -> list[str]:
    """Those that begin alike first: a language has the same code in other scripts."""
    return sorted(
        rows, key=lambda row: -next((at for at, (a, b) in enumerate(zip(row, name, strict=False)) if a != b), len(row))
    )


def _unknown(name: str, others: Sequence[str]) -> NoReturn:
    raise UsageError(f"--fail-if: no number is called {name!r}; there are {_listed(others)}")


def _find(name: str, known: dict[str, float | None]) -> str:
    if name in known:
        return name
    ends = [full for full in known if full.endswith(f".{name}")]
    if len(ends) == 1:
        return ends[0]
    if ends:
        raise UsageError(f"--fail-if: {name!r} can be several: {_listed(ends)}; write more of it")
    field = name.split("(")[0].rpartition(".")[2]
    rows = [full for full in known if re.split(r"[.(]", full.rpartition("(")[0] or full)[-1] == field]
    _unknown(name, _likest(name, rows) if rows else get_close_matches(name, known, LISTED, 0.3) or list(known))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:LISTED]) + (f" … ({len(names) - LISTED:,} more)" if len(names) > LISTED else "")
