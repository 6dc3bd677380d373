"""`truncation` and `padding` in tokenizer.json: the defaults of `Tokenizer.encode_padded`, both ways.

Other calls do neither: `encode` gives all the ids of a text, where tokenizers' own cuts and pads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..spec import MAX_ID
from .json_node import Node

_STRATEGIES = {"LongestFirst": "longest", "OnlyFirst": "first", "OnlySecond": "second"}
_SIDES = {"Right": "right", "Left": "left"}
_MOST = 2**63 - 1


def read_padding(root: Node) -> dict[str, Any]:
    """The arguments of `encode_padded` that a file has; of a stride, what stands there, which no call uses."""
    truncation, padding = root.get("truncation"), root.get("padding")
    found: dict[str, Any] = {}
    if truncation.value is not None:
        found["max_length"] = truncation["max_length"].number(1, _MOST)
        found["truncate"] = truncation["strategy"].one_of(_STRATEGIES)
        found["truncation_side"] = truncation.get("direction", "Right").one_of(_SIDES)
        found["stride"] = truncation.get("stride", 0).number(0, _MOST)
        if found["stride"] >= found["max_length"]:
            raise truncation["stride"].error(f"it must be smaller than max_length, {found['max_length']}")
    if padding.value is not None:
        strategy = padding["strategy"]
        fixed = strategy.value != "BatchLongest"
        found["length"] = strategy["Fixed"].number(1, _MOST) if fixed else None
        multiple = padding.get("pad_to_multiple_of")
        found["pad_to_multiple_of"] = 1 if multiple.value in (None, 0) else multiple.number(1, _MOST)
        found["padding_side"] = padding.get("direction", "Right").one_of(_SIDES)
        found["pad_id"] = padding["pad_id"].number(0, MAX_ID)
        found["pad_type_id"] = padding.get("pad_type_id", 0).number(0, 2**32 - 1)
    return found


def write_padding(padded: Mapping[str, Any], names: dict[int, str]) -> dict[str, Any]:
    """The two fields; None where nothing is said."""
    truncation = padding = None
    if padded.get("max_length") is not None:
        truncation = {
            "direction": _back(padded.get("truncation_side", "right"), _SIDES),
            "max_length": padded["max_length"],
            "strategy": _back(padded.get("truncate", "longest"), _STRATEGIES),
            "stride": padded.get("stride") or 0,
        }
    if padded.get("pad_id") is not None:
        length, multiple = padded.get("length"), padded.get("pad_to_multiple_of", 1)
        padding = {
            "strategy": "BatchLongest" if length is None else {"Fixed": length},
            "direction": _back(padded.get("padding_side", "right"), _SIDES),
            "pad_to_multiple_of": None if multiple == 1 else multiple,
            "pad_id": padded["pad_id"],
            "pad_type_id": padded.get("pad_type_id", 0),
            "pad_token": names.get(padded["pad_id"], "[PAD]"),
        }
    return {"truncation": truncation, "padding": padding}


def _back(word: str, words: dict[str, str]) -> str:
    return next(name for name, own in words.items() if own == word)
