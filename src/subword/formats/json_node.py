"""Reading JSON that may be damaged or hostile: every check names the file and the path of the value it is about."""

from __future__ import annotations

import json
import re
import reprlib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from ..errors import FormatError

_short = reprlib.Repr()
_short.maxstring = _short.maxother = _short.maxlong = 60
_short.maxlevel = 2


def shown(value: object) -> str:
    """`value` for an error message, cut to a length that can be read."""
    return _short.repr(value)


def step_into(path: str, key: str | int) -> str:
    """The path of an item or a field: `model.merges[3]`, `model.vocab["a b"]`."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    if not re.fullmatch(r"[A-Za-z_]\w*", key):
        return f"{path}[{json.dumps(key)}]"
    return f"{path}.{key}" if path else key


class Node:
    """A value inside a JSON file, with the file and the path that errors name."""

    __slots__ = ("_key", "_parent", "source", "value")

    def __init__(self, value: Any, source: str, key: str | int = "", parent: Node | None = None) -> None:
        self.value = value
        self.source = source
        self._parent = parent
        self._key = key

    @property
    def path(self) -> str:
        """Where it stands; put together only when an error names it."""
        return str(self._key) if self._parent is None else step_into(self._parent.path, self._key)

    def error(self, problem: str) -> FormatError:
        """A FormatError about this value."""
        return FormatError(f"{self.source}: {self.path + ': ' if self.path else ''}{problem}")

    def expected(self, what: str) -> FormatError:
        """A FormatError that says what should stand here."""
        return self.error(f"expected {what}, found {shown(self.value)}")

    def child(self, key: str | int, value: Any) -> Node:
        return Node(value, self.source, key, self)

    def __getitem__(self, key: str) -> Node:
        """A field that must be there."""
        fields = self.fields()
        if key not in fields:
            raise self.error(f"the field {key!r} is missing")
        return self.child(key, fields[key])

    def get(self, key: str, default: Any = None) -> Node:
        """A field that may be missing, and then has a default."""
        return self.child(key, self.fields().get(key, default))

    def fields(self) -> dict[str, Any]:
        if not isinstance(self.value, dict):
            raise self.expected("an object")
        return self.value

    def items(self) -> Iterator[Node]:
        if not isinstance(self.value, list):
            raise self.expected("a list")
        return (self.child(index, item) for index, item in enumerate(self.value))

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.expected("a string")
        if not self.value.isascii() and re.search("[\ud800-\udfff]", self.value):
            raise self.error(f"half a surrogate pair in {shown(self.value)}; write the character whole")
        return self.value

    def number(self, first: int, last: int) -> int:
        if type(self.value) is not int or not first <= self.value <= last:
            raise self.expected(f"a whole number from {first} to {last}")
        return self.value

    def one_of(self, words: Mapping[str, str]) -> str:
        """What `words` has for a word."""
        if not isinstance(self.value, str) or self.value not in words:
            raise self.expected(f"one of {', '.join(words)}")
        return words[self.value]

    def flag(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.expected("true or false")
        return self.value


def steps_of(node: Node, key: str) -> list[Node]:
    """The steps of a `Sequence`, nested ones opened up; none for null."""
    todo, steps = [node] if node.value is not None else [], []
    while todo:
        step = todo.pop()
        if step["type"].text() == "Sequence":
            todo.extend(reversed(list(step[key].items())))
        else:
            steps.append(step)
    return steps


def unsupported(step: Node, known: str) -> FormatError:
    """A FormatError about the type of a step."""
    return step["type"].error(f"{shown(step['type'].value)} is not supported; {known}")


def parse(data: bytes, source: str) -> Node:
    """Parse a JSON file; a byte-order mark at its start is accepted.

    Raises:
        FormatError: it is not UTF-8, not JSON, nested too deeply, or one object gives the same key twice.
    """
    try:
        text = data.decode("utf-8-sig")
        return Node(json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant), source)
    except UnicodeDecodeError as error:
        raise FormatError(f"{source}: not UTF-8 at byte {error.start}; save the file as UTF-8") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise FormatError(f"{source}: not JSON at {where}: {error.msg}; is the file complete?") from None
    except RecursionError:
        raise FormatError(f"{source}: the JSON is nested too deeply for a tokenizer file") from None
    except ValueError as error:
        raise FormatError(f"{source}: {error}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        twice = next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
        raise ValueError(f"one object gives the key {shown(twice)} twice")
    return fields


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON and has no place in a tokenizer file")
