"""Writing tokenizer.json, as `tokenizer_json.py` says."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, cast

import numpy as np

from ..byte_alphabet import NEVER_IN_UTF8, spelled_bytes, to_alphabet
from ..errors import SubwordValueError, warn
from ..spec import (
    BPE,
    BYTE,
    ByteAlphabet,
    ExtraToken,
    MatchTokens,
    ScoreBPE,
    Spec,
    Stage,
    Unigram,
    WordLevel,
    WordPiece,
)
from .rank_merges import merges_of_rank_model
from .tokenizer_json_added import assigned_ids, comes_to_the_model, shared_problem, write_added_token
from .tokenizer_json_decoders import write_decoder
from .tokenizer_json_models import as_read
from .tokenizer_json_normalizers import count_normalizers, is_prepend, write_normalizers
from .tokenizer_json_padding import write_padding
from .tokenizer_json_splits import write_pre_tokenizers
from .tokenizer_json_templates import template_roles, write_post_processor


def write(spec: Spec) -> bytes:
    """The file that makes tokenizers 0.23 give the ids that `spec` gives; the same spec gives the same bytes.

    Warns of roles that the file has no place for; notes are left out.

    Raises:
        SubwordValueError: the format cannot hold something of `spec`; the message names it.
    """
    normalizers, splits = _parts(spec)
    model, names = _MODELS[type(spec.model)](spec)
    added = sorted((token for token in spec.extra if token.kind != "unmatchable"), key=lambda token: token.id)
    names |= {token.id: token.content for token in spec.extra}
    _warn_of_roles(spec)
    try:
        document: dict[str, Any] = {
            "version": "1.0",
            **write_padding(spec.padded, names),
            "added_tokens": [write_added_token(token) for token in added],
            "normalizer": write_normalizers(normalizers),
            "pre_tokenizer": write_pre_tokenizers(splits),
            "post_processor": write_post_processor(spec.template, names),
            "decoder": write_decoder(spec.decode, spec.model),
            "model": model,
        }
    except SubwordValueError as error:
        _refuse(str(error))
    return _dumped(document)


def _dumped(document: dict[str, Any]) -> bytes:
    """The document, indented, with one merge or entry with a score a line: `json` would take four lines for it."""
    name = "merges" if "merges" in document["model"] else "vocab"
    rows = document["model"].pop(name)
    if not isinstance(rows, list):
        document["model"][name] = rows
        return (json.dumps(document, ensure_ascii=False, indent=2) + "\n").encode()
    tail = "[]\n  }\n}"
    document["model"][name] = []
    text = json.dumps(document, ensure_ascii=False, indent=2).removesuffix(tail)
    lines = ",\n".join("      " + json.dumps(row, ensure_ascii=False) for row in rows)
    return (text + (f"[\n{lines}\n    ]\n  }}\n}}" if rows else tail) + "\n").encode()


def _refuse(what: str) -> NoReturn:
    raise SubwordValueError(f"tokenizer.json cannot hold {what}; save as .subword instead")


# ======================== stages ========================


def _parts(spec: Spec) -> tuple[list[Stage], list[Stage]]:
    """The stages that are normalizers and those that are pre-tokenizers, with that of a BPE over bytes.

    They must be in the order of tokenizers, and take from text the tokens that it takes.
    """
    stages = list(spec.stages)
    for token in spec.extra:
        if token.kind != "unmatchable" and MatchTokens(token.normalized) not in stages:
            _refuse(f"the token {token.content!r} (id {token.id}) that no stage takes from text: tokenizers takes all")
    raw, normalized = (stages.index(stage) if stage in stages else None for stage in (MatchTokens(), MatchTokens(True)))
    rest: list[Stage] = [stage for stage in stages if not isinstance(stage, MatchTokens)]
    if normalized is None:
        end = count_normalizers(rest)
        while end < len(rest) and is_prepend(rest[end]):
            end += 1 + count_normalizers(rest[end + 1 :])
    else:
        end = normalized - (raw is not None)
    taken = [stage for stage in stages if isinstance(stage, MatchTokens)]
    if raw not in (None, 0) or len(set(taken)) < len(taken):
        _refuse(f"the stages {', '.join(map(repr, spec.stages))} in this order")
    splits: list[Stage] = rest[end:]
    if isinstance(spec.model, BPE) and spec.model.unit == "byte":
        splits.append(ByteAlphabet())
    return rest[:end], splits


def _warn_of_roles(spec: Spec) -> None:
    kept = template_roles(spec.template) | {"unk": spec.roles.get("unk")}
    lost = ", ".join(name for name, id in spec.roles.items() if kept.get(name) != id)
    if lost:
        text = f"tokenizer.json has no place for the roles {lost}; transformers keeps them in tokenizer_config.json"
        warn(text)


# ======================== models ========================

Written = tuple[dict[str, Any], dict[int, str]]
"""A model as the file has it, and the names of its tokens by their ids."""


def _write_bpe(spec: Spec) -> Written:
    model = cast("BPE", spec.model)
    model_vocab, merges = _model_vocab(spec), _merges(spec)
    added = sorted((token for token in spec.extra if token.kind != "unmatchable"), key=lambda token: token.id)
    names = {id: token for token, id in model_vocab.items()}
    vocab = _with_added_tokens(model_vocab, added)
    unk = spec.roles.get("unk", -1) if model.unit == "byte" else model.unk
    merged = {name for left, right in merges for name in (names[left], names[right])}
    merged |= {_joined(model, names[left], names[right]) for left, right in merges}
    for token in added:
        _check_added_token(token, vocab, model_vocab, merged, spec)
    known = names | {token.id: token.content for token in spec.extra}
    written = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None if unk is None else known.get(unk),
        "continuing_subword_prefix": model.continuing_subword_prefix or None,
        "end_of_word_suffix": model.end_of_word or None,
        "fuse_unk": model.fuse_unk,
        "byte_fallback": model.byte_fallback,
        "ignore_merges": model.ignore_merges,
        "vocab": dict(sorted(vocab.items(), key=lambda entry: entry[1])),
        "merges": [[names[left], names[right]] for left, right in merges],
    }
    return written, names


def _joined(model: BPE, left: str, right: str) -> str:
    return model.joined(left.encode(), right.encode()).decode(errors="replace")


def _write_words(spec: Spec) -> Written:
    model = cast("WordPiece | WordLevel", spec.model)
    model_vocab = {_text_of(piece, id): id for piece, id in model.vocab.items()}
    added = sorted((token for token in spec.extra if token.kind != "unmatchable"), key=lambda token: token.id)
    if len(added) < len(spec.extra):
        _refuse("unmatchable tokens of words: they would be tokens of the model")
    vocab = _with_added_tokens(model_vocab, added)
    for token in added:
        listed, known = token.content in vocab, token.content in model_vocab
        is_special = token.kind == "special" and token.id != model.unk
        problem = None
        if known and is_special:
            problem = "special tokens leave the model there, and this one is an entry"
        elif listed and not known and token.kind == "added":
            problem = "listed in the vocabulary, as its id needs, it would also be a token of the model"
        if problem is not None:
            _refuse(f"the token {token.content!r} (id {token.id}): {problem}")
    pieces: dict[str, Any] = {}
    if isinstance(model, WordPiece):
        pieces["continuing_subword_prefix"] = model.continuing_subword_prefix
        pieces["max_input_chars_per_word"] = model.max_input_chars_per_word
    names = {id: token for token, id in model_vocab.items()}
    written = {
        "type": type(model).__name__,
        "unk_token": names[model.unk],
        **pieces,
        "vocab": dict(sorted(vocab.items(), key=lambda entry: entry[1])),
    }
    return written, names


def _write_scored(spec: Spec) -> Written:
    model = cast("Unigram | ScoreBPE", spec.model)
    if model.precision != "float64":
        _refuse("scores that are added up in 32 bits, as SentencePiece does: there ids would differ now and then")
    names = {id: _text_of(piece, id) for piece, id in model.vocab.items()}
    ids = set(names)
    for token in sorted(spec.extra, key=lambda token: token.id):
        if token.kind == "unmatchable":
            _refuse(f"the unmatchable token {token.content!r}")
        if token.id not in names and token.id != max(ids, default=-1) + 1:
            _refuse(f"the id {token.id} of the token {token.content!r}")
        ids.add(token.id)
    falls_back = bool(np.any(model.kinds == BYTE))
    if isinstance(model, Unigram):
        if list(names) != list(range(len(names))):
            _refuse("ids with holes in a Unigram")
        scores = [as_written(score) for score in model.scores.tolist()]
        if None in scores:
            _refuse("a score that tokenizers reads as another number")
        vocab = [[names[id], score] for id, score in zip(names, scores, strict=True)]
        return {"type": "Unigram", "unk_id": model.unk, "vocab": vocab, "byte_fallback": falls_back}, names
    if not len(model.merges) or not falls_back:
        _refuse("a model of merges by score: make a merge list, with bytes to fall back to")
    written = {
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
    return written, names


def as_written(score: float) -> float | None:
    """A number that tokenizers takes for `score`, if there is one beside it."""
    near = (score, np.nextafter(score, -np.inf), np.nextafter(score, np.inf))
    return next((float(number) for number in near if as_read(float(number)) == score), None)


_MODELS: dict[type, Callable[[Spec], Written]] = {
    BPE: _write_bpe,
    WordPiece: _write_words,
    WordLevel: _write_words,
    Unigram: _write_scored,
    ScoreBPE: _write_scored,
}


def _text_of(piece: bytes, id: int) -> str:
    try:
        return piece.decode()
    except UnicodeDecodeError:
        _refuse(f"the token {piece!r} (id {id}), which is not text")


def _model_vocab(spec: Spec) -> dict[str, int]:
    """The model's entries and the unmatchable tokens, spelled as the file spells them."""
    model = cast("BPE", spec.model)
    if model.unit == "character":
        for token in spec.extra:
            if token.kind == "unmatchable":
                _refuse(f"the unmatchable token {token.content!r} (id {token.id}): it would be a token of the model")
        return {_text_of(piece, id): id for piece, id in model.vocab.items()}
    if to_alphabet(model.end_of_word.encode()) != model.end_of_word:
        _refuse(f"the end-of-word marker {model.end_of_word!r} of a byte-level BPE: it is spelled otherwise there")
    vocab = {to_alphabet(piece): id for piece, id in spec.model.vocab.items()}
    missing = bytes(b for b in range(256) if b not in NEVER_IN_UTF8 and to_alphabet(bytes([b])) not in vocab)
    if missing:
        _refuse(f"a model without tokens for the bytes {missing!r}: tokenizers would drop them from text")
    for token in spec.extra:
        if token.kind == "unmatchable":
            if spelled_bytes(token.content) is not None:
                _refuse(f"the unmatchable token {token.content!r} (id {token.id}): it would spell bytes there")
            vocab[token.content] = token.id
    return vocab


def _merges(spec: Spec) -> Sequence[Sequence[int]]:
    model = cast("BPE", spec.model)
    if model.priority == "merges":
        return cast("list[list[int]]", model.merges.tolist())
    try:
        return merges_of_rank_model(spec)
    except SubwordValueError as error:
        _refuse(f"these ranks: {error}")


# ======================== added tokens ========================


def _with_added_tokens(vocab: dict[str, int], added: list[ExtraToken]) -> dict[str, int]:
    """`vocab` with the added tokens that would get other ids without it: all but those at the end, else all."""
    ids = [token.id for token in added]
    contents = [token.content for token in added]
    start = len(ids)
    while start > 0 and (start == len(ids) or ids[start - 1] + 1 == ids[start]):
        start -= 1
    listed = vocab | dict(zip(contents[:start], ids[:start], strict=True))
    if list(assigned_ids(listed.get, len(listed), contents)) == ids:
        return listed
    return vocab | dict(zip(contents, ids, strict=True))


def _check_added_token(
    token: ExtraToken, vocab: dict[str, int], model_vocab: dict[str, int], merged: set[str], spec: Spec
) -> None:
    """Nothing but the added token itself may give its id, unless `read` says that the model does."""
    model, problem = cast("BPE", spec.model), None
    if token.id == model.unk:
        return
    piece = spelled_bytes(token.content) if model.unit == "byte" else token.content.encode()
    whole = (
        model.ignore_merges and piece is not None and comes_to_the_model(token, piece, model.end_of_word, spec.stages)
    )
    if model_vocab.get(token.content, token.id) != token.id:
        problem = f"the model spells its token {model_vocab[token.content]} the same way there"
    elif token.content in model_vocab and piece is not None:
        problem = shared_problem(token, piece, token.content in merged, whole)
    elif token.content in vocab and (whole or (piece is not None and model.ignore_merges and token.kind == "added")):
        problem = "listed in the vocabulary, as its id needs, it would also be a token of the model"
    if problem is not None:
        _refuse(f"the token {token.content!r} (id {token.id}): {problem}")
