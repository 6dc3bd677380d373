"""Reading tokenizer.json; what stands in it says `tokenizer_json.py`."""

from __future__ import annotations

import re
from collections.abc import Callable

from .. import _core
from ..errors import FormatError, warn
from ..spec import (
    BPE,
    MAX_ID,
    ByteAlphabet,
    ReplaceRegex,
    ScoreBPE,
    Spec,
    Split,
    SplitPunctuation,
    SplitRegex,
    Stage,
    Unigram,
)
from .json_node import Node, parse, shown
from .tokenizer_json_added import matching
from .tokenizer_json_decoders import read_decoder
from .tokenizer_json_models import Read, read_model
from .tokenizer_json_normalizers import read_normalizers
from .tokenizer_json_padding import read_padding
from .tokenizer_json_splits import WHOLE, read_pre_tokenizers
from .tokenizer_json_templates import Known, read_post_processor, template_roles
from .tokenizer_json_tokens import Tokens


def read(data: bytes, source: str, tell: Callable[[str], None] = warn) -> Spec:
    """The spec that a file holds. `tell` is called with what of the file is left out.

    The core reads the two large members, `parse` the rest. What the core does not take, or is wrong with the rest, is
    for the other way: to read all of it here, which finds what is wrong and says where.

    Raises:
        FormatError: the file is damaged, contradicts itself, or asks for something that is not supported.
    """
    for by_characters in (False, True) if b'"ByteLevel"' in data else (True,):
        found = _core.read_members(data, MAX_ID, by_characters)
        if found is not None:
            vocab, merges, entries = found
            (start, end), (next_start, next_end) = sorted((vocab, merges))
            rest = b"null".join((data[:start], data[end:next_start], data[next_end:]))
            told: list[str] = []
            try:
                spec = _spec(parse(rest, source), Tokens.of_core(entries, by_characters), told.append)
            except FormatError:
                continue
            for text in told:
                tell(text)
            return spec
    return _spec(parse(data, source), None, tell)


def _spec(root: Node, tokens: Tokens | None, tell: Callable[[str], None]) -> Spec:
    """The spec; `tokens` where they are read already and stand no more in `root`."""
    version = root.get("version")
    if version.value not in (None, "1.0"):
        raise version.error(f"{shown(version.value)} is not supported: only version 1.0 is known")
    normalizers = read_normalizers(root.get("normalizer"))
    splits = read_pre_tokenizers(root.get("pre_tokenizer"), normalizers)
    read = read_model(root, tokens, (*normalizers, *splits), tell)
    added = tuple(sorted(read.added.values(), key=lambda token: token.id))
    extra = tuple(sorted([*added, *read.unmatchable], key=lambda token: token.id))
    template = read_post_processor(root.get("post_processor"), Known(read.tokens, extra))
    raw, behind = matching(added, False), matching(added, True)
    return Spec(
        stages=_stages((*raw, *normalizers, *behind), splits, read),
        model=read.model,
        extra=extra,
        template=template,
        decode=read_decoder(root.get("decoder"), read.model, extra),
        padded=read_padding(root),
        roles=template_roles(template) | _unk_role(root["model"].get("unk_token"), read),
    )


def _stages(before: tuple[Stage, ...], splits: tuple[Stage, ...], read: Read) -> tuple[Stage, ...]:
    """All stages. Those that the model does itself, or that change nothing, are left out."""
    stages = [*(stage for stage in before if not _is_idle(stage, splits, read)), *splits]
    by_bytes = isinstance(read.model, BPE) and read.model.unit == "byte"
    if by_bytes:
        stages.remove(ByteAlphabet())
    if isinstance(read.model, (Unigram, ScoreBPE)):
        return tuple(stages)
    if not splits or (by_bytes and not any(isinstance(stage, (Split, SplitRegex)) for stage in stages)):
        stages.append(WHOLE)
    return tuple(stages)


def _is_idle(stage: Stage, splits: tuple[Stage, ...], read: Read) -> bool:
    """Whether it replaces white space that the first split drops, and that no added token looks at."""
    dropping = [Split(pattern) for pattern in ("clip", "clip-cased", "whitespace-split")]
    if stage != ReplaceRegex(r"\s+", " ") or not splits or splits[0] not in [*dropping, SplitPunctuation()]:
        return False
    looking = (token for token in read.added.values() if token.normalized)
    return not any(token.lstrip or token.rstrip or re.search(r"\s", token.content) for token in looking)


def _unk_role(unk: Node, read: Read) -> dict[str, int]:
    """A model with all bytes never needs its unknown token; the file may still name it."""
    own = getattr(read.model, "unk", None)
    if own is not None or unk.value is None:
        return {} if own is None else {"unk": own}
    id = read.tokens.id_of(unk.text())
    if id is None and unk.value not in read.added:
        raise unk.error(f"{shown(unk.value)} is not a token")
    return {"unk": read.added[unk.value].id if id is None else id}
