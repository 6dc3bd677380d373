"""tokenizer.json with a model of SentencePiece's kind: Unigram, or a BPE over characters that falls back to bytes.

Special tokens that are entries stay in the vocabulary, but no text spells them (they are `UNUSED`). There text could,
if a normalizer made it so; here it cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from ..bert import LOWERCASE
from ..spec import (
    BYTE,
    MAX_ID,
    NORMAL,
    UNKNOWN,
    UNUSED,
    DecodeSentencePiece,
    ExtraToken,
    Lowercase,
    MatchTokens,
    Metaspace,
    Normalize,
    Precompiled,
    Replace,
    ScoreBPE,
    Spec,
    SplitRegex,
    Stage,
    Strip,
    StripMarks,
    Unigram,
    Vocab,
)
from .json_node import Node, shown
from .sentencepiece_model import byte_piece
from .tokenizer_json_read import (
    NORMALIZER_UNICODE,
    Known,
    Words,
    check_fixed,
    matching,
    read_added_tokens,
    read_merges,
    read_post_processor,
    steps_of,
    template_roles,
    unsupported,
)

BEFORE_MARKS = "▁[^▁]*|[^▁]+"
"""Cuts in front of each `▁`, as Metaspace does."""

_FIXED: dict[str, tuple[tuple[Any, ...], str]] = {
    "dropout": ((None, 0, 0.0), "it makes ids random; set it to null"),
    "continuing_subword_prefix": ((None, ""), "models of this kind have none"),
    "end_of_word_suffix": ((None, ""), "models of this kind have none"),
    "ignore_merges": ((None, False), "a piece that is an entry is merged like any other; use false"),
}


def read_scored(root: Node) -> Spec:
    node = root["model"]
    is_unigram = isinstance(node["vocab"].value, list)
    check_fixed(node, _FIXED)
    rows = list(_read_scores(node["vocab"])) if is_unigram else list(_read_ids(node["vocab"]))
    words = Words({token: id for token, id, _ in rows})
    added = read_added_tokens(root.get("added_tokens", []), words)
    unk = _read_unk(node, words, is_unigram)
    specials = {token.content for token in added.values() if token.kind == "special"}
    bytes_of = {byte_piece(byte) for byte in range(256)} if node.get("byte_fallback", False).flag() else set()
    lacking = sorted(token for token in bytes_of if token not in words.ids)
    if lacking:
        raise node["byte_fallback"].error(f"{lacking[0]!r} is no entry, and {len(lacking) - 1} other bytes")
    kinds = {unk: UNKNOWN} | {words.ids[token]: BYTE for token in bytes_of}
    for token in specials & set(words.ids):
        kinds.setdefault(words.ids[token], UNUSED)
    normalizers = tuple(_read_normalizers(root.get("normalizer")))
    splitting, prepends = _read_pre_tokenizer(root.get("pre_tokenizer"), normalizers)
    extra = tuple(sorted(added.values(), key=lambda token: token.id))
    template = read_post_processor(root.get("post_processor"), Known(words, extra))
    rows.sort(key=lambda row: row[1])
    vocab = Vocab.of((token.encode(), id) for token, id, _ in rows)
    scores = np.array([score for _, _, score in rows], dtype=np.float64)
    entry_kinds = np.array([kinds.get(id, NORMAL) for _, id, _ in rows], dtype=np.uint8)
    model: Unigram | ScoreBPE
    if is_unigram:
        model = Unigram(vocab, scores, unk, entry_kinds, "float64")
    else:
        pairs = [[words.ids[left], words.ids[right]] for left, right in read_merges(node["merges"], words.ids)]
        merges = np.array(pairs, dtype=np.uint32).reshape(-1, 2)
        model = ScoreBPE(vocab, scores, unk, entry_kinds, "float64", merges)
    return Spec(
        stages=(*matching(added, False), *normalizers, *matching(added, True), *splitting),
        model=model,
        extra=extra,
        template=template,
        decode=_read_decoder(root.get("decoder"), prepends, words.tokens[unk]),
        roles=template_roles(template) | {"unk": unk},
    )


def _read_scores(vocab: Node) -> Iterator[tuple[str, int, float]]:
    seen: set[str] = set()
    for id, row in enumerate(vocab.items()):
        if not isinstance(row.value, list) or len(row.value) != 2:
            raise row.expected("[token, score]")
        token, score = row.child(0, row.value[0]).text(), row.value[1]
        if not isinstance(score, (int, float)) or isinstance(score, bool) or not np.isfinite(score):
            raise row.child(1, score).expected("a finite number")
        if not token or token in seen:
            raise row.error(f"the token {shown(token)} is empty, or stands there twice")
        seen.add(token)
        yield token, id, as_read(float(score))


def as_read(score: float) -> float:
    """The number that tokenizers takes a score for: its JSON reader rounds twice, so the last bit may be another.

    That decides between segmentations whose scores are nearly the same.
    """
    digits, _, exponent = repr(abs(score)).partition("e")
    whole, _, fraction = digits.partition(".")
    number, power = float(int(whole + fraction)), int(exponent or 0) - len(fraction)
    size = number * 10.0**power if power >= 0 else number / 10.0**-power
    return -size if score < 0 else size


def as_written(score: float) -> float | None:
    """A number that tokenizers takes for `score`, if there is one beside it."""
    near = (score, np.nextafter(score, -np.inf), np.nextafter(score, np.inf))
    return next((float(number) for number in near if as_read(float(number)) == score), None)


def _read_ids(vocab: Node) -> Iterator[tuple[str, int, float]]:
    ids: set[int] = set()
    for token, id in vocab.fields().items():
        number = vocab.child(token, id).number(0, MAX_ID)
        if not token or number in ids:
            raise vocab.child(token, id).error("the token is empty, or its id is given twice")
        ids.add(number)
        yield token, number, 0.0


def _read_unk(node: Node, words: Words, is_unigram: bool) -> int:
    if is_unigram:
        unk = node.get("unk_id")
        if unk.value is None:
            raise node.error("without `unk_id`, text with other characters cannot be encoded; name a token for them")
        if unk.number(0, MAX_ID) not in words.tokens:
            raise unk.error(f"no token has the id {unk.value}")
        return unk.number(0, MAX_ID)
    found = words.id_of(node["unk_token"].text())
    if found is None:
        raise node["unk_token"].error(f"{shown(node['unk_token'].value)} is no token")
    return found


def _read_normalizers(node: Node) -> Iterator[Stage]:
    for step in steps_of(node, "normalizers"):
        kind = step["type"].value
        if kind in ("NFC", "NFD", "NFKC", "NFKD"):
            yield Normalize(kind, NORMALIZER_UNICODE)
        elif kind == "Lowercase":
            yield LOWERCASE
        elif kind == "StripAccents":
            yield StripMarks()
        elif kind == "Precompiled":
            if step.get("precompiled_charsmap").value:
                yield Precompiled(step["precompiled_charsmap"].text())
        elif kind == "Replace":
            yield _read_replace(step)
        elif kind == "Prepend":
            yield Metaspace(step["prepend"].text(), "always", spaces=False)
        elif kind == "Strip":
            yield Strip(step["strip_left"].flag(), step["strip_right"].flag())
        else:
            known = "NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Precompiled, Replace, Prepend, Strip, Sequence"
            raise unsupported(step, f"the normalizers of such a model are {known}")


def _read_replace(step: Node) -> Replace:
    pattern, new = step["pattern"].fields(), step["content"].text()
    if pattern == {"Regex": " {2,}"}:
        return Replace(" ", new, runs=True)
    if set(pattern) != {"String"} or not isinstance(pattern["String"], str) or not pattern["String"]:
        raise step["pattern"].error("only a String, or the Regex ' {2,}', can be replaced")
    return Replace(pattern["String"], new)


def _read_pre_tokenizer(node: Node, normalizers: Sequence[Stage]) -> tuple[tuple[Stage, ...], str]:
    """The stages, and what is put in front of a text."""
    steps = steps_of(node, "pretokenizers")
    words = bool(steps) and steps[0]["type"].value == "WhitespaceSplit"
    rest = steps[1:] if words else steps
    if not rest and not words:
        return (), "never"
    if len(rest) == 1 and rest[0]["type"].value == "Split" and not words:
        is_plain = rest[0]["pattern"].value == {"String": " "}
        if is_plain and any(isinstance(stage, Replace) and stage.old == " " for stage in normalizers):
            return (), "never"  # there is no space left to split at
        raise rest[0].error("only a Split at spaces, of which a normalizer has left none, is supported")
    if len(rest) != 1 or rest[0]["type"].value != "Metaspace":
        raise unsupported((rest or steps)[0], "such a model has Metaspace, or WhitespaceSplit and Metaspace")
    step = rest[0]
    if step["replacement"].text() != "▁":
        raise step["replacement"].error("only ▁ is supported")
    old = "always" if step.get("add_prefix_space", True).flag() else "never"
    scheme = step.get("prepend_scheme", old).text()
    prepends = {"always": "missing", "first": "first", "never": "never"}.get(scheme)
    if prepends is None or (words and scheme != "always"):
        raise step.error(f"the scheme {shown(scheme)} is not supported here")
    stages: list[Stage] = [Metaspace("▁", prepends, words)]  # type: ignore[arg-type]
    if step.get("split", True).flag():
        stages.append(SplitRegex(BEFORE_MARKS, "oniguruma"))
    elif words:
        raise step["split"].error("words that are cut at white space are split")
    return tuple(stages), prepends


def _read_decoder(node: Node, prepends: str, unk: str) -> DecodeSentencePiece:
    steps = steps_of(node, "decoders")
    kinds = [step["type"].value for step in steps]
    if kinds == ["Metaspace"]:
        old = "always" if steps[0].get("add_prefix_space", True).flag() else "never"
        scheme = steps[0].get("prepend_scheme", old).text()
        return DecodeSentencePiece("none" if scheme == "never" else "token", unk)
    if kinds[:3] == ["Replace", "ByteFallback", "Fuse"] and kinds[3:] in ([], ["Strip"]):
        replaced = (steps[0]["pattern"].value, steps[0]["content"].value)
        if replaced == ({"String": "▁"}, " "):
            if kinds[3:] == []:
                return DecodeSentencePiece("none", unk)
            strip = steps[3]
            if (strip["content"].value, strip["start"].value, strip["stop"].value) == (" ", 1, 0):
                return DecodeSentencePiece("one", unk)
    raise node.error("such a model decodes by Metaspace, or by Replace ▁, ByteFallback, Fuse and perhaps Strip")


# ======================== writing ========================


def document_of(
    spec: Spec,
    refuse: Callable[[str], NoReturn],
    added_token: Callable[[ExtraToken], dict[str, Any]],
    post_processor: Callable[[dict[int, str]], dict[str, Any] | None],
) -> dict[str, Any]:
    """What the file of a spec holds."""
    model = spec.model
    assert isinstance(model, (Unigram, ScoreBPE))
    if model.precision != "float64":
        refuse("scores that are added up in 32 bits, as SentencePiece does: there ids would differ now and then")
    names = {id: piece.decode() for piece, id in model.vocab.items()}
    added = sorted(spec.extra, key=lambda token: token.id)
    for token in added:
        if token.kind == "unmatchable":
            refuse(f"the unmatchable token {token.content!r}")
        if (
            token.id not in names
            and token.id != max([*names, *(other.id for other in added if other.id < token.id)]) + 1
        ):
            refuse(f"the id {token.id} of the token {token.content!r}")
    rest = [stage for stage in spec.stages if not isinstance(stage, MatchTokens)]
    is_split = bool(rest) and rest[-1] == SplitRegex(BEFORE_MARKS, "oniguruma")
    rest = rest[:-1] if is_split else rest
    last = rest[-1] if rest else None
    spaces = last if isinstance(last, Metaspace) and last.spaces else None
    rest = rest if spaces is None else rest[:-1]
    if is_split and spaces is None:
        refuse("the last split without a Metaspace stage")
    kinds: dict[str, Any]
    byte_fallback = bool(np.any(model.kinds == BYTE))
    if isinstance(model, Unigram):
        if list(names) != list(range(len(names))):
            refuse("ids with holes in a Unigram")
        scores = [as_written(score) for score in model.scores.tolist()]
        if None in scores:
            refuse("a score that tokenizers reads as another number")
        vocab = [[names[id], score] for id, score in zip(names, scores, strict=True)]
        kinds = {"type": "Unigram", "unk_id": model.unk, "vocab": vocab, "byte_fallback": byte_fallback}
    else:
        if not len(model.merges) or not byte_fallback:
            refuse("a model of merges by score: make a merge list, with bytes to fall back to")
        kinds = {
            "type": "BPE",
            "dropout": None,
            "unk_token": names[model.unk],
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": True,
            "byte_fallback": True,
            "ignore_merges": False,
            "vocab": {name: id for id, name in names.items()},
            "merges": [[names[left], names[right]] for left, right in model.merges.tolist()],
        }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [added_token(token) for token in added],
        "normalizer": _sequence("normalizers", [_normalizer(stage, refuse) for stage in rest]),
        "pre_tokenizer": _pre_tokenizer(spaces, is_split, refuse),
        "post_processor": post_processor(names | {token.id: token.content for token in added}),
        "decoder": _decoder(spec, names[model.unk], refuse),
        "model": kinds,
    }


def _sequence(key: str, steps: list[dict[str, Any]]) -> dict[str, Any] | None:
    return None if not steps else steps[0] if len(steps) == 1 else {"type": "Sequence", key: steps}


def _normalizer(stage: Stage, refuse: Callable[[str], NoReturn]) -> dict[str, Any]:
    step: dict[str, Any]
    match stage:
        case Normalize():
            step = {"type": stage.form}
        case Lowercase() if stage == LOWERCASE:
            step = {"type": "Lowercase"}
        case StripMarks():
            step = {"type": "StripAccents"}
        case Precompiled():
            step = {"type": "Precompiled", "precompiled_charsmap": stage.rules}
        case Replace(old=" ", runs=True):
            step = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": stage.new}
        case Replace(runs=False):
            step = {"type": "Replace", "pattern": {"String": stage.old}, "content": stage.new}
        case Metaspace(prepend="always", spaces=False):
            step = {"type": "Prepend", "prepend": stage.replacement}
        case Strip():
            step = {"type": "Strip", "strip_left": stage.left, "strip_right": stage.right}
        case _:
            refuse(f"the stage {stage!r}")
    return step


def _pre_tokenizer(spaces: Metaspace | None, split: bool, refuse: Callable[[str], NoReturn]) -> dict[str, Any] | None:
    if spaces is None:
        return None
    scheme = {"missing": "always", "first": "first", "never": "never"}.get(spaces.prepend)
    if spaces.replacement != "▁" or scheme is None or (spaces.words and not split):
        refuse(f"the stage {spaces!r}")
    step = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split}
    return _sequence("pretokenizers", [{"type": "WhitespaceSplit"}, step] if spaces.words else [step])


def _decoder(spec: Spec, unk: str, refuse: Callable[[str], NoReturn]) -> dict[str, Any]:
    decode = spec.decode
    if (
        not isinstance(decode, DecodeSentencePiece)
        or decode.unk_surface != unk
        or decode.strip == "all"
        or decode.rules
    ):
        refuse(f"the way to decode, {decode!r}")
    if decode.strip == "token":
        return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    steps: list[dict[str, Any]] = [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ]
    if decode.strip == "one":
        steps.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    return {"type": "Sequence", "decoders": steps}
