"""What callers pass, checked: wrong types and values raise the package's own errors, with the name of the argument.

Whole numbers and truth values may be NumPy's.
"""

from __future__ import annotations

import operator
import os
import re
import reprlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .errors import SubwordValueError


def integer(name: str, value: Any, least: int = 0, most: int = 2**63 - 1) -> int:
    """A whole number of at least `least`. One beyond `most` is as good as `most`."""
    try:
        number = None if isinstance(value, (bool, np.bool_)) else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least:
        raise SubwordValueError(f"{name} must be an integer of at least {least}, not {reprlib.repr(value)}")
    return min(number, most)


def flag(name: str, value: Any) -> bool:
    """True or False, and nothing that only counts as such."""
    if not isinstance(value, (bool, np.bool_)):
        raise SubwordValueError(f"{name} must be True or False, not {reprlib.repr(value)}")
    return bool(value)


def string(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise SubwordValueError(f"{name} must be a string, not {reprlib.repr(value)}")
    return value


def choice(name: str, value: Any, known: Sequence[str]) -> None:
    """Refuse what is not one of the `known` words."""
    if not isinstance(value, str) or value not in known:
        raise SubwordValueError(f"unknown {name} {value!r}; choose one of {', '.join(map(repr, known))}")


def list_of(name: str, value: Any) -> list[Any]:
    """The items of a list, which one string is not."""
    if isinstance(value, (str, bytes)):
        raise SubwordValueError(f"{name} must be a list, not one string: put it into a list, [{reprlib.repr(value)}]")
    try:
        items = iter(value)
    except TypeError:
        raise SubwordValueError(f"{name} must be a list, not {type(value).__name__}") from None
    return list(items)


def path_of(path: Any) -> str:
    """A path argument as `str`."""
    try:
        name = os.fsdecode(path)
        os.fsencode(name)
    except TypeError:
        raise SubwordValueError(f"a path must be str or os.PathLike, not {type(path).__name__}") from None
    except UnicodeError:
        raise SubwordValueError(f"the path {path!r} holds a lone surrogate, which no file name does") from None
    if not name or "\0" in name:
        raise SubwordValueError(f"{name!r} is not a path")
    return name


def token_content(content: Any) -> str:
    """What the content of an extra token can be."""
    if not isinstance(content, str) or not content:
        raise SubwordValueError(f"a token must be a string of at least one character, not {content!r}")
    try:
        content.encode()
    except UnicodeEncodeError:
        raise SubwordValueError(f"the token {content!r} holds a lone surrogate, which no text can spell") from None
    return content


def byte_count(name: str, value: Any, least: int = 1_000_000) -> int:
    """A number of bytes, which may be written as `"500MB"`, `"2GB"` or `"1.5 GiB"`."""
    if not isinstance(value, str):
        return integer(name, value, least)
    match = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,3})?) *(?:([kmgt])(i?)b?|b?)", value.strip().lower())
    if match is None:
        raise SubwordValueError(f'{name} must be a number of bytes, or as in "500MB" or "2GB", not {value!r}')
    number, unit, binary = match.groups()
    size = int(float(number) * (1024 if binary else 1000) ** (" kmgt".index(unit or " ")))
    return integer(name, size, least)


def thread_count(threads: Any) -> int:
    """`threads`, or the cores this process may use."""
    if threads is None:
        affinity: Callable[[int], Sequence[int]] | None = getattr(os, "sched_getaffinity", None)
        return len(affinity(0)) if affinity else os.cpu_count() or 1
    number = integer("threads", threads, 1)
    if number > 1024:
        raise SubwordValueError(f"threads must be at most 1024, not {threads!r}")
    return number
