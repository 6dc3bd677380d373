"""A tokenizer with fewer entries, in which text made of those that stay encodes as before.

Why that can be: what the merge loop does inside a stretch of text that ends up as one token does not depend on what is
beside it, since nothing merges across its borders. So a token is always made in the same way, step by step as on its
own bytes; the tokens in between are its *ancestors*: the two that its last merge joins, theirs, and so on. Here each
entry that stays keeps its ancestors, and a rule stays if the three entries that it is about do. A text whose tokens all
stay then goes through the same steps: each step that was taken can still be taken, and there is no rule that was not
there before, so the step that came first still does; and where no rule applied at the end, none does now. That holds
for merge lists and for ranks, whatever the vocabulary: it needs no proof that entries encode to themselves. An entry
that no merges make has no ancestors. Where the model ignores merges for whole pieces, a piece that is an entry that
stays is that entry before and after; any other piece goes the way above.

Where units are not plain bytes, what a token is made of cannot always be told from what it spells (a marker, an unknown
character). There all parts of all merges that make an entry count as its ancestors, which can only be more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .arguments import integer, list_of, token_content
from .errors import SubwordValueError, UnknownTokenError
from .remap import Remap
from .spec import BPE, Packed, Spec, Vocab, bpe_of
from .tokenizer import Tokenizer

LONG = 4096
"""Longer entries are not tried by `last_merges`, so nothing follows where it does not say how they are made."""

BATCH = 16 << 20
"""About how many bytes of text are encoded at once."""


def prune(
    tok: Tokenizer,
    keep: Iterable[int | str | bytes] | None,
    unused_on: Iterable[Any] | None,
    drop_tokens: Iterable[str],
    threads: int | None,
) -> tuple[Spec, Remap]:
    """What `Tokenizer.prune` says."""
    spec = tok.spec
    model, extra = bpe_of(spec.model, "only a BPE can be pruned"), {token.content: token.id for token in spec.extra}
    drops = [token_content(token) for token in list_of("drop_tokens", drop_tokens)]
    for token in drops:
        if token not in extra:
            known = ", ".join(map(repr, extra)) or "none"
            raise UnknownTokenError(f"drop_tokens: {token!r} is no special or added token; there are {known}")
    if keep is None and unused_on is None and not drops:
        raise SubwordValueError("nothing says what to remove: give keep=, unused_on= or drop_tokens=")
    dropped = {extra[token] for token in drops}

    named = set() if keep is None else _ids_of(tok, keep)
    for token in drops:
        if extra[token] in named and model.vocab.piece_of(extra[token]) is None:
            raise SubwordValueError(f"keep and drop_tokens both name {token!r}")
    wanted = set[int]()
    if unused_on is not None:
        wanted |= _used(tok, unused_on, threads)
    if keep is None and unused_on is None:
        wanted |= set(model.vocab.ids.tolist())
    wanted |= {item for item in (*spec.template.single, *spec.template.pair) if not isinstance(item, str)}
    wanted |= {*extra.values(), *(set(spec.roles.values()) & _known(tok))}
    kept = _with_ancestors(tok, named | (wanted - dropped) | _alphabet(model))
    left = sorted(kept)
    new_ids = {id: new for new, id in enumerate(left)}
    report = {"prunes": tok.fingerprint, "vocab_size": len(left), "removed": len(_known(tok)) - len(left)}
    notes = {name: note for name, note in spec.notes.items() if name not in ("training", "history")}
    changed = spec.replace(
        model=_model(model, new_ids),
        extra=tuple(replace(token, id=new_ids[token.id]) for token in spec.extra if token.id not in dropped),
        template=spec.template.with_ids(lambda id: None if id in dropped else new_ids[id]),
        roles={role: new_ids[id] for role, id in spec.roles.items() if id in new_ids and id not in dropped},
        notes={**notes, "training": report},
    )
    return changed, Remap.of(tok.n_vocab, [[id] for id in left])


# ======================== what stays ========================


def _ids_of(tok: Tokenizer, keep: Iterable[int | str | bytes]) -> set[int]:
    """Tokens given as ids, or as what they spell."""
    items = list_of("keep", keep)
    ids = {tok.token_id(item) if isinstance(item, (str, bytes)) else integer("an id in keep", item) for item in items}
    if strays := ids - _known(tok):
        raise UnknownTokenError(f"keep: the vocabulary has no id {min(strays)}")
    return ids


def _known(tok: Tokenizer) -> set[int]:
    return {*tok.spec.model.vocab.ids.tolist(), *(token.id for token in tok.spec.extra)}


def _used(tok: Tokenizer, texts: Iterable[Any], threads: int | None) -> set[int]:
    """The ids that some texts take. Special tokens are taken from them: these stay anyhow."""
    used = np.zeros(tok.n_vocab, dtype=np.bool_)
    for batch in _batches(texts):
        used[tok.encode_batch_to_numpy(batch, allowed_special="all", threads=threads).ids] = True
    return set(np.flatnonzero(used).tolist())


def _batches(texts: Iterable[Any]) -> Iterator[list[Any]]:
    if isinstance(texts, (str, bytes, bytearray, memoryview)):
        raise SubwordValueError(f"unused_on must be a list of texts, not one {type(texts).__name__}: write [text]")
    try:
        items = iter(texts)
    except TypeError:
        raise SubwordValueError(f"unused_on must be a list of texts, not {type(texts).__name__}") from None
    batch: list[Any] = []
    size = 0
    for text in items:
        batch.append(text)
        size += 64 + (len(text) if isinstance(text, (str, bytes)) else 0)
        if size >= BATCH:
            yield batch
            batch, size = [], 0
    yield batch


def _alphabet(model: BPE) -> set[int]:
    """What pieces start as, so that every text can still be encoded."""
    marker = model.end_of_word.encode()

    def is_unit(piece: bytes) -> bool:
        length = len(piece) if model.unit == "byte" else len(piece.decode("utf-8", "surrogateescape"))
        return length == 1

    def marked(piece: bytes) -> bool:
        return bool(marker) and piece.endswith(marker) and is_unit(piece.removesuffix(marker))

    units = {id for piece, id in model.vocab.items() if is_unit(piece) or marked(piece)}
    return units if model.unk is None else units | {model.unk}


def _with_ancestors(tok: Tokenizer, wanted: Iterable[int]) -> set[int]:
    """The wanted ids, and those of all entries that are needed to make them."""
    parts = _parts(tok)
    kept: set[int] = set()
    todo = list(wanted)
    while todo:
        id = todo.pop()
        if id not in kept:
            kept.add(id)
            todo += parts.get(id, ())
    return kept


def _parts(tok: Tokenizer) -> dict[int, list[int]]:
    """The entries that each is made of; none for those that start pieces, and those that no merges make."""
    model = bpe_of(tok.spec.model, "only a BPE can be pruned")
    if model.unit != "byte" or model.end_of_word or model.unk is not None:
        return _all_parts(model, None)
    parts = {}
    long = set[int]()
    pairs = tok.last_merges().tolist()
    for (piece, id), pair in zip(model.vocab.items(), pairs, strict=True):
        if pair[0] >= 0:
            parts[id] = pair
        elif len(piece) > LONG:
            long.add(id)
    if long:
        parts.update(_all_parts(model, long))
    return parts


def _all_parts(model: BPE, of: Collection[int] | None) -> dict[int, list[int]]:
    """What may be joined to make each entry (or each of some), by any rule."""
    ids = dict(model.vocab.items())
    parts: dict[int, list[int]] = {}
    if model.priority == "merges":
        pieces = {id: piece for piece, id in ids.items()}
        for left, right in model.merges.tolist():
            id = ids[pieces[left] + pieces[right]]
            if of is None or id in of:
                parts.setdefault(id, []).extend((left, right))
        return parts
    for piece, id in ids.items():
        if of is None or id in of:
            cuts = ((ids.get(piece[:at]), ids.get(piece[at:])) for at in range(1, len(piece)))
            parts[id] = [part for a, b in cuts if a is not None and b is not None for part in (a, b)]
    return parts


# ======================== the model ========================


def _model(model: BPE, new_ids: dict[int, int]) -> BPE:
    """The entries that stay, in their order, and the merges of which all three entries do."""
    entries = [(piece, id) for piece, id in model.vocab.items() if id in new_ids]
    vocab = Vocab(
        Packed.of(piece for piece, _ in entries), np.array([new_ids[id] for _, id in entries], dtype=np.uint32)
    )
    pieces = {id: piece for piece, id in entries}
    spelled = set(pieces.values())
    merges = [
        (new_ids[left], new_ids[right])
        for left, right in model.merges.tolist()
        if left in pieces and right in pieces and pieces[left] + pieces[right] in spelled
    ]
    return replace(
        model,
        vocab=vocab,
        merges=np.array(merges, dtype=np.uint32).reshape(-1, 2),
        unk=None if model.unk is None else new_ids[model.unk],
    )
