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
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from typing import Annotated, Any

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


def check_syntax(conditions: Sequence[str] | None) -> None:
    """Refuse what is no condition before the work."""
    for text in conditions or ():
        parse(text)


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
    close = get_close_matches(name, rows or known, LISTED, 0 if rows else 0.3) or list(known)
    raise UsageError(f"--fail-if: no number is called {name!r}; there are {_listed(close)}")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:LISTED]) + (f" … ({len(names) - LISTED:,} more)" if len(names) > LISTED else "")
