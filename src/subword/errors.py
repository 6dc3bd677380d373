"""Every failure that a user can cause: a `SubwordError` that is also the built-in error one would expect to catch.

A message says what was wrong, where (file, field or line, id, position), and what to do about it.
"""

from __future__ import annotations

import sys
import warnings


class SubwordError(Exception):
    """The base of all errors of this package."""


class SubwordValueError(SubwordError, ValueError):
    """An argument, a text or a setting that cannot be used."""


class FormatError(SubwordValueError):
    """A tokenizer file that is damaged, or that asks for something not supported."""


class SpecialTokenError(SubwordValueError):
    """Text that spells a special token where the call does not allow it."""


class UnknownTokenError(SubwordError, KeyError):
    """An id or a token that the vocabulary does not have."""

    def __str__(self) -> str:  # KeyError would print the repr of the message, quotes and escapes included
        return str(self.args[0]) if self.args else ""


class SubwordOSError(SubwordError, OSError):
    """A file that cannot be read or written."""


class InternalError(SubwordError, RuntimeError):
    """A defect of subword itself: please report it with the message."""


class SubwordWarning(UserWarning):
    """Something the user should know although the call went through."""


def warn(text: str) -> None:
    """A `SubwordWarning` that points at the line outside this package from which it was called."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, SubwordWarning, stacklevel=level)
