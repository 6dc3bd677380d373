"""Methods under two names."""

from __future__ import annotations

import re
from typing import TypeVar

T = TypeVar("T", bound=type)


def both_names(cls: T) -> T:
    """Give each method in CamelCase a second name in snake_case."""
    for name, method in list(vars(cls).items()):
        if name[0].isupper():
            setattr(cls, snake_case(name), method)
    return cls


def snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower().replace("n_best", "nbest")
