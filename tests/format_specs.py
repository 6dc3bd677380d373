"""Specs to save and load: made by hand, and drawn at random."""

from __future__ import annotations

import copy
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from hypothesis import strategies as st

from subword.byte_alphabet import GPT2_BYTE_ORDER
from subword.errors import SubwordValueError, SubwordWarning
from subword.formats import tokenizer_json
from subword.patterns import DIGITS, PATTERNS, digits_and_rest, pattern_of
from subword.spec import (
    BPE,
    Decode,
    Digits,
    ExtraToken,
    Lowercase,
    MatchTokens,
    Normalize,
    PrefixSpace,
    Spec,
    Split,
    Stage,
    Template,
    Vocab,
)

# ======================== specs to save ========================

# Of rows with the same expressions, tokenizer.json gives back the first.
NAMES = sorted(name for name, row in PATTERNS.items() if pattern_of(*row.steps) is row and not digits_and_rest(row))

MERGES = [(b"t", b"h"), (b"th", b"e"), (b" ", b"the"), (b"\n", b"\n")]


def bpe(merges: list[tuple[bytes, bytes]] = MERGES, priority: Any = "merges", ignore_merges: bool = False) -> BPE:
    """The 256 bytes in GPT-2's order, then one token a merge."""
    ids = {bytes([byte]): id for id, byte in enumerate(GPT2_BYTE_ORDER)}
    for left, right in merges:
        ids[left + right] = len(ids)
    rows = [(ids[left], ids[right]) for left, right in merges] if priority == "merges" else []
    return BPE(Vocab.of(ids.items()), np.array(rows, dtype=np.uint32).reshape(-1, 2), priority, ignore_merges)


def spec_of(
    *extra: ExtraToken, model: BPE | None = None, stages: tuple[Stage, ...] = (Split("gpt2"),), **more: Any
) -> Spec:
    """A spec that takes its extra tokens from text where `normalized` says, before and behind the normalizers."""
    normalizers = tuple(stage for stage in stages if isinstance(stage, (Normalize, Lowercase)))
    others = tuple(stage for stage in stages if not isinstance(stage, (Normalize, Lowercase)))
    taken = {token.normalized for token in extra if token.kind != "unmatchable"}
    raw, normalized = ((MatchTokens(flag),) if flag in taken else () for flag in (False, True))
    return Spec((*raw, *normalizers, *normalized, *others), model or bpe(), extra, **more)


END = ExtraToken(260, "<|end|>")
WITH_END = spec_of(END, template=Template(("A", 260), ("A", 260, "B", 260)), roles={"eos": 260}, notes={"from": "é\n"})

HARD = [
    "a b",
    "a\nb",
    "\n",
    "\r\n",
    '"',
    "\\",
    "'",
    "\u2028",
    "\0",
    "{}",
    "é",
    "Ġ",
    "Ġthe",
    "the",
    " ",
    "<|x|>",
    "t",
    "ab",
]


@st.composite
def models(draw: st.DrawFn) -> BPE:
    """Bytes and random merges of a few of them, with ids in any order, some of them missing; a marker now and then."""
    pieces = [bytes([byte]) for byte in range(256)]
    parts = [bytes([byte]) for byte in b"ab \n\xc3\xa9"]
    marker = draw(st.sampled_from(["", "", "", "</w>", "b"]))
    if marker:
        pieces += [piece + marker.encode() for piece in pieces if piece + marker.encode() not in pieces]
        parts += [b"a" + marker.encode(), b"b" + marker.encode()]
    merges: list[tuple[bytes, bytes]] = []
    for pair in draw(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=8)):
        left, right = (parts[number % len(parts)] for number in pair)
        if left.endswith(b"</w>"):
            continue
        if (left, right) not in merges:
            merges.append((left, right))
        if left + right not in pieces:
            pieces.append(left + right)
            parts.append(left + right)
    rng = random.Random(draw(st.integers(0, 2**32)))
    ids = rng.sample(range(len(pieces) + draw(st.sampled_from([0, 0, 3]))), len(pieces))
    entries = dict(zip(pieces, ids, strict=True))
    rows = np.array([(entries[left], entries[right]) for left, right in merges], dtype=np.uint32).reshape(-1, 2)
    return BPE(Vocab.of(entries.items()), rows, "merges", draw(st.booleans()), end_of_word=marker)


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    """Any spec: a random model, hard extra tokens with ids among and behind the model's, all flags and stages."""
    model = draw(models())
    used = set(model.vocab.ids.tolist())
    free = [id for id in range(len(used) + 12) if id not in used]
    contents = st.sampled_from(HARD) | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4)
    extra = []
    for content in draw(st.lists(contents, max_size=5, unique=True)):
        id = free.pop(draw(st.sampled_from([0, 0, 0, 1])))
        kind = draw(st.sampled_from(["special", "special", "added", "unmatchable"]))
        flags = [kind != "unmatchable" and draw(st.integers(0, 4)) == 0 for _ in range(4)]
        extra.append(ExtraToken(id, content, kind, *flags))
    extra.sort(key=lambda token: token.id)
    known = [*used, *(token.id for token in extra)]
    around = [draw(st.lists(st.sampled_from(known), max_size=2)) for _ in range(5)]
    template = Template((*around[0], "A", *around[1]), (*around[2], "A", *around[3], "B", *around[4]))
    forms = draw(st.lists(st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]), max_size=2))
    lowered = st.sampled_from([Lowercase(), *[Lowercase(final_sigma=False, unicode="17.0")] * 3])
    lower = [draw(lowered)] if draw(st.integers(0, 3)) == 0 else []
    prefix_space = [PrefixSpace()] if draw(st.integers(0, 3)) == 0 else []
    digits = draw(st.none() | st.builds(Digits, st.sampled_from(sorted(DIGITS)), st.sampled_from(["16.0", "17.0"])))
    splitting = [*([digits] if digits else []), Split(draw(st.sampled_from(NAMES)))]
    return spec_of(
        *extra,
        model=model,
        stages=(*map(Normalize, forms), *lower, *prefix_space, *splitting),
        template=draw(st.sampled_from([Template(), template])),
        decode=Decode(model.end_of_word) if model.end_of_word else Decode(),
        roles=draw(st.dictionaries(st.sampled_from(["bos", "eos", "pad", "unk"]), st.sampled_from(known))),
        notes=draw(st.dictionaries(st.text(max_size=3), st.none() | st.integers() | st.text(max_size=9), max_size=2)),
    )


def write_json(spec: Spec) -> bytes:
    """tokenizer.json, without the warning about roles."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SubwordWarning)
        data: bytes = tokenizer_json.write(spec)
    return data


def result_or_error(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a call returns, or the error of ours that it raises."""
    try:
        return function(*arguments)
    except SubwordValueError as error:
        return error


# ======================== damage ========================

LONE = "\ud800"
STRANGE: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    2**31,
    1e999,
    "",
    "x",
    "\ud800",
    [],
    [[]],
    {},
    {"type": "Sequence"},
    [None, 1],
    {"": {}},
]


def changed(root: Any, *changes: tuple[str, Any]) -> Any:
    """A copy with `model.vocab.th` and the like set to other values; `...` deletes."""
    root = copy.deepcopy(root)
    for path, value in changes:
        *keys, last = (int(key) if key.isdigit() else key for key in path.split("."))
        node = root
        for key in keys:
            node = node[key]
        if value is ...:
            del node[last]
        else:
            node[last] = copy.deepcopy(value)
    return root


def nodes(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values in a document, but of only a few of the vocabulary."""
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in list(children)[-5:] if len(value if children else ()) > 50 else children:
        yield from nodes(child, (*path, key))
