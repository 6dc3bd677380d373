"""A string that knows where each of its characters came from, through what templates do with strings.

`Text` is a `str` with runs, pairs of length and `Origin`. What is not overridden here gives a plain `str`, and a plain
`str` came from nowhere: it is not trusted. So an operation that nobody thought of loses trust and never gains it.

Nor can pieces be put together to something that the template does not spell: where text was cut, or where something
that is not trusted was put in, however short, stands a *break*, a run of no characters. What is trusted on both sides
of a break is never read as one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, SupportsIndex, TypeAlias


class Origin(NamedTuple):
    """Where a character came from: the template's own text, or a field of a message, or (-1) neither.

    `generated` is whether it stands in a `{% generation %}` block.
    """

    trusted: bool = False
    message: int = -1
    field: str = ""
    generated: bool = False


Run: TypeAlias = "tuple[int, Origin]"

LOST = Origin()
LITERAL = Origin(trusted=True)
BREAK: Run = (0, LOST)


class Text(str):
    """A string with the origin of each character. Made without runs, it is not trusted."""

    __slots__ = ("_runs",)
    _runs: tuple[Run, ...]

    def __new__(cls, value: str = "", runs: Iterable[Run] | None = None) -> Text:
        self = str.__new__(cls, value)
        self._runs = ((len(self), LOST),) if runs is None else tuple(runs)
        return self

    def __str__(self) -> str:
        return self

    def __reduce__(self) -> Any:
        return Text, ("".join(self), self._runs)

    # ======================== putting together ========================

    def __add__(self, other: str) -> Text:
        return joined((self, other)) if isinstance(other, str) else NotImplemented

    def __radd__(self, other: str) -> Text:
        return joined((other, self)) if isinstance(other, str) else NotImplemented

    def join(self, parts: Iterable[str]) -> Text:
        listed = list(parts)
        str.join(self, listed)  # which refuses what is no string
        with_self = (part for item in listed for part in (self, item))
        next(with_self, None)
        return joined(with_self)

    def replace(self, old: str, new: str, count: SupportsIndex = -1, /) -> str:
        plain = str.replace(self, old, new, count)
        if not old:
            return plain
        pieces = self._tiled(str.split(self, old, count), len(old))
        return Text.join(new if isinstance(new, Text) else Text(new), pieces)

    def __mod__(self, values: Any) -> str:
        plain = str.__mod__(self, values)
        values = values if isinstance(values, (tuple, Mapping)) else (values,)
        return self._filled(plain, r"%(?:\((\w+)\))?s", "%%", "%", values)

    def format(self, *args: Any, **kwargs: Any) -> str:
        plain = str.format(self, *args, **kwargs)
        return self._formatted(plain, kwargs or args)

    def _formatted(self, plain: str, values: Any) -> str:
        return self._filled(plain, r"\{(\w*)\}", r"\{\{|\}\}", "[{}]", values)

    def _filled(self, plain: str, field: str, doubled: str, mark: str, values: Any) -> str:
        """`plain`, which Python made of this pattern, with origins, if its fields are plain names, numbers or empty."""
        parts: list[str] = []
        end, used = 0, 0
        for found in re.finditer(f"{field}|{doubled}|{mark}", self):
            parts.append(self._cut(end, found.start()))
            end = found.end()
            name = found[1]
            if re.fullmatch(doubled, found[0]):
                parts.append(self._cut(found.start(), found.start() + 1))
                continue
            try:
                if isinstance(values, Mapping):
                    value = values[name]
                else:
                    value = values[int(name) if name else used]
            except (LookupError, TypeError, ValueError):
                return plain
            used += 1
            parts.append(value if isinstance(value, str) else str(value))
        made = joined([*parts, self._cut(end, len(self))])
        return made if made == plain else plain

    # ======================== cutting ========================

    def _cut(self, start: int, stop: int) -> Text:
        """The characters from `start` to `stop`, with a break on each side where something was cut off."""
        runs: list[Run] = [BREAK] if start > 0 else []
        at = 0
        for length, origin in self._runs:
            first, last = max(at, start), min(at + length, stop)
            if first < last or (not length and start <= at <= stop):
                runs.append((last - first, origin))
            at += length
        if stop < len(self):
            runs.append(BREAK)
        return Text(str.__getitem__(self, slice(start, stop)), runs)

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        plain = str.__getitem__(self, key)
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            return self._cut(start, max(start, stop)) if step == 1 else plain
        at = range(len(self))[key]
        return self._cut(at, at + 1)

    def __iter__(self) -> Iterator[str]:
        return (self._cut(at, at + 1) for at in range(len(self)))

    def _tiled(self, parts: Iterable[str], gap: int) -> list[str]:
        """The parts that Python cut this text into, `gap` characters apart."""
        found: list[str] = []
        start = 0
        for part in parts:
            found.append(self._cut(start, start + len(part)))
            start += len(part) + gap
        return found

    def _split(self, parts: list[str], sep: str | None) -> list[str]:
        if sep is not None:
            return self._tiled(parts, len(sep))
        found: list[str] = []
        end = 0
        for part in parts:  # each starts at the next character that is not white space
            start = str.index(self, part, end)
            end = start + len(part)
            found.append(self._cut(start, end))
        return found

    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        return self._split(str.split(self, sep, maxsplit), sep)

    def rsplit(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        return self._split(str.rsplit(self, sep, maxsplit), sep)

    def splitlines(self, keepends: bool = False) -> list[str]:
        whole = self._tiled(str.splitlines(self, True), 0)
        plain = str.splitlines(self, keepends)
        return [line[: len(wanted)] for line, wanted in zip(whole, plain, strict=True)]

    def partition(self, sep: str, /) -> tuple[str, str, str]:
        first, middle, last = self._tiled(str.partition(self, sep), 0)
        return first, middle, last

    def rpartition(self, sep: str, /) -> tuple[str, str, str]:
        first, middle, last = self._tiled(str.rpartition(self, sep), 0)
        return first, middle, last

    def lstrip(self, chars: str | None = None, /) -> Text:
        return self._cut(len(self) - len(str.lstrip(self, chars)), len(self))

    def rstrip(self, chars: str | None = None, /) -> Text:
        return self._cut(0, len(str.rstrip(self, chars)))

    def strip(self, chars: str | None = None, /) -> Text:
        return self.lstrip(chars).rstrip(chars)

    def removeprefix(self, prefix: str, /) -> Text:
        return self._cut(len(prefix) if str.startswith(self, prefix) else 0, len(self))

    def removesuffix(self, suffix: str, /) -> Text:
        return self._cut(0, len(str.removesuffix(self, suffix)))

    # ======================== letters ========================

    def _mapped(self, change: Callable[[str], str]) -> str:
        """The text changed; with origins, if that is the same as changing each run by itself."""
        parts, at = [], 0
        for length, origin in self._runs:
            part = change(str.__getitem__(self, slice(at, at + length)))
            parts.append(Text(part, [(len(part), origin)]))
            at += length
        made, whole = joined(parts), change(str.__str__(self))
        return made if made == whole else whole

    def upper(self) -> str:
        return self._mapped(lambda part: str.upper(part))

    def lower(self) -> str:
        return self._mapped(lambda part: str.lower(part))

    def casefold(self) -> str:
        return self._mapped(lambda part: str.casefold(part))

    def swapcase(self) -> str:
        return self._mapped(lambda part: str.swapcase(part))

    def title(self) -> str:
        return self._mapped(lambda part: str.title(part))

    def capitalize(self) -> str:
        return joined((self[:1].upper(), self[1:].lower())) if self else self


def runs_of(text: str) -> tuple[Run, ...]:
    """The origins in a string; of a plain one, that it has none."""
    return text._runs if isinstance(text, Text) else ((len(text), LOST),)


def joined(parts: Iterable[str]) -> Text:
    """The parts, one after the other."""
    listed = list(parts)
    runs: list[Run] = []
    for part in listed:
        for length, origin in runs_of(part):
            if runs and runs[-1][1] == origin:
                runs[-1] = (runs[-1][0] + length, origin)
            elif length or not origin.trusted:
                runs.append((length, origin))
    return Text("".join(listed), runs)


def marked_as_generated(text: str) -> Text:
    """The text of a `{% generation %}` block."""
    return Text(text, [(length, origin._replace(generated=True)) for length, origin in runs_of(text)])
