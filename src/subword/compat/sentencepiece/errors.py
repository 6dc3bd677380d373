"""Errors of this package that are also what sentencepiece raises in the same place."""

from __future__ import annotations

from ...errors import FormatError, SubwordError, SubwordOSError, SubwordValueError


class WrongTypeError(SubwordError, TypeError):
    """An argument of a type that cannot be used."""


class RangeError(SubwordError, IndexError):
    """An id that the model does not have."""


class RefusedError(SubwordError, RuntimeError):
    """What the model, or this module, cannot do."""


class ModelError(FormatError, RuntimeError):
    """A model file that is damaged, or that asks for something not supported."""


class FileError(SubwordOSError, RuntimeError):
    """A file that cannot be read or written."""


class TrainingError(SubwordValueError, RuntimeError):
    """Options that cannot be used, or text that does not give a model with them."""
