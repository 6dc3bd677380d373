"""Learning further merges for a tokenizer that is there: every old id and merge stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np

from .arguments import byte_count, choice, integer
from .counting import count_source
from .counts import CountTable, Splitting, table_of
from .errors import SubwordValueError, warn
from .remap import Remap
from .sizes import number
from .spec import MAX_ID, Digits, ExtraToken, MatchTokens, Packed, Split, Stage, Vocab, bpe_of
from .tokenizer import Changed, Tokenizer
from .training import TIE_RULES


@dataclass(frozen=True)
class _Stages:
    """How a tokenizer cuts text into pieces, for counting: what `Splitting` is for a training."""

    stages: tuple[Stage, ...]
    extra: tuple[ExtraToken, ...]
    protected: ClassVar[tuple[str, ...]] = ()

    @property
    def special_tokens(self) -> tuple[str, ...]:
        return tuple(token.content for token in self.extra)

    @property
    def keeps_texts_whole(self) -> bool:
        """As for `Splitting`. Of other stages, and of tokens that look beside them, no one knows where cuts may be."""
        return not all(
            isinstance(stage, (MatchTokens, Digits)) or (isinstance(stage, Split) and stage.pattern != "none")
            for stage in self.stages
        ) or any(token.lstrip or token.rstrip or token.single_word for token in self.extra)


def extend(
    tok: Tokenizer,
    texts: Any,
    files: Any,
    counts: Any,
    add: int,
    tie_rule: str,
    weights: Any,
    min_count: int,
    field: str,
    errors: str,
    memory: int | str | None,
    threads: int | None,
    progress: Any,
) -> Changed:
    """`Tokenizer.extend`, which says what it does."""
    add = integer("add", add, 1)
    choice("tie_rule", tie_rule, TIE_RULES)
    least = integer("min_count", min_count, 1)
    limit = None if memory is None else byte_count("memory", memory)
    if progress is not None and not callable(progress):
        raise SubwordValueError(f"progress must be a function of (stage, done, total), not {progress!r}")
    if tok.n_vocab + add > MAX_ID:
        raise SubwordValueError(f"{add} more entries would go beyond the largest id, {MAX_ID}")
    _check_ranks(tok)
    spec = tok.spec
    own = _Stages(spec.stages, tuple(token for token in spec.extra if token.kind != "unmatchable"))
    if counts is None:
        splitting = cast(Splitting, own)
        table = count_source(
            texts, files, field, errors, splitting, "", limit, None, threads, 1, progress, hashed=False
        )
    else:
        table = table_of(counts, texts, files)
        _check_counts(table, own)
    if tie_rule == "first-seen" and not table.has_first:
        raise SubwordValueError(
            'tie_rule="first-seen" takes the order from the column `first`, which the counts do not have: count again'
        )
    if table.total == 0:
        raise SubwordValueError("there is nothing to learn from: the texts hold nothing outside extra tokens")
    if limit is not None:
        table.check_memory(limit, add, weights, least)
    pieces, scale, pruned = table.pieces(weights, least, in_order=tie_rule == "first-seen")
    tell = (lambda done: progress("learn", done, add) and None) if progress else None
    taken = [token.content.encode() for token in spec.extra]
    merges, found, *_ = pieces.extend_bpe(add, spec.model.compiled(), taken, tie_rule, tell)
    report: dict[str, Any] = {
        "algorithm": "bpe",
        "extends": tok.fingerprint,
        "asked_to_add": add,
        "vocab_size": len(tok.vocab) + len(merges),
        "merges": len(merges),
        "stopped": "all added" if len(merges) == add else "no pairs left",
        "least_count": number(int(found[-1]), scale) if len(found) else None,
        "bytes": table.text_bytes,
        "pieces": table.total,
        "distinct_pieces": pieces.distinct,
        "tie_rule": tie_rule,
    }
    if weights:
        report["weights"] = {name: str(weight) for name, weight in sorted(weights.items())}
    if least > 1:
        left_out = number(pruned.count.numerator, pruned.count.denominator)
        report["pruned"] = {"min_count": least, "distinct_pieces": pruned.pieces, "pieces": left_out}
    if len(merges) < add:
        warn(f"the text has no pairs left after {len(merges)} merges, not the {add} asked for; give it more text")
    return _changed(tok, merges.tolist(), report)


def _changed(tok: Tokenizer, merges: list[list[int]], report: dict[str, Any]) -> Changed:
    """The tokenizer with these merges, of places in the old vocabulary and, behind these, among the new entries."""
    spec, vocab, first = tok.spec, tok.spec.model.vocab, tok.n_vocab
    ids: list[int] = [*vocab.ids.tolist(), *range(first, first + len(merges))]
    pieces = list(vocab.pieces)
    parts: list[list[int]] = [[id] for id in vocab.ids.tolist()]
    old = bpe_of(spec.model, "only a BPE can be extended")
    marker = old.end_of_word.encode()
    for left, right in merges:
        pieces.append(pieces[left] + pieces[right])
        parts.append(parts[left] + parts[right])
        if marker and pieces[-1].endswith(marker) != pieces[right].endswith(marker):
            raise SubwordValueError(
                "the texts hold the end-of-word marker, so that two tokens would be spelled alike; take it out of them"
            )
    model = replace(
        old,
        vocab=Vocab(Packed.of(pieces), np.array(ids, dtype=np.uint32)),
        merges=np.array(
            [*old.merges.tolist(), *([ids[left], ids[right]] for left, right in merges)], dtype=np.uint32
        ).reshape(-1, 2)
        if old.priority == "merges"
        else old.merges,
    )
    notes = {name: note for name, note in spec.notes.items() if name not in ("training", "history")}
    extended = Tokenizer(spec.replace(model=model, notes={**notes, "training": report}), engine=tok._engine_name)
    rows: list[Sequence[int]] = [()] * first
    for id in (*vocab.ids.tolist(), *(token.id for token in spec.extra)):
        rows[id] = (id,)
    return Changed(extended, Remap.of(first, [*rows, *parts[len(vocab) :]]))


def _check_ranks(tok: Tokenizer) -> None:
    """That entries behind the old ones leave these as they are, where any two that spell an entry are merged.

    What encodes to itself is made by old merges alone wherever its bytes are together, and so nothing new is a part of
    it. What does not might be made with a new entry, and by its low rank before all that is newer.
    """
    model = bpe_of(tok.spec.model, "only a BPE can be extended")
    if model.priority != "rank":
        return
    lengths = np.diff(model.vocab.pieces.offsets.astype(np.int64))
    dead = np.flatnonzero((tok.last_merges()[:, 0] < 0) & (lengths > 1))
    if len(dead):
        id = int(model.vocab.ids[dead[0]])
        raise SubwordValueError(
            f"this tokenizer cannot be extended: it merges by rank, and {len(dead)} of its entries do not encode to "
            f"themselves, such as {tok.token_piece(id)!r} (id {id}), so new entries could change how old ones are used"
        )


def _check_counts(table: CountTable, own: _Stages) -> None:
    """That what was counted are the pieces of this tokenizer."""

    def cuts(stages: tuple[Stage, ...]) -> list[Stage]:
        return [stage for stage in stages if not isinstance(stage, MatchTokens)]

    there = table.splitting
    if cuts(there.stages) != cuts(own.stages):
        raise SubwordValueError(
            f"the counts were made with other stages than this tokenizer has: {cuts(there.stages)}, not "
            f"{cuts(own.stages)}; count again with its own, or give it the text"
        )
    flagged = any(token.single_word or token.lstrip or token.rstrip or token.normalized for token in own.extra)
    if flagged or set(there.special_tokens) != set(own.special_tokens):
        raise SubwordValueError(
            f"the counts were made with the special tokens {list(there.special_tokens)}, and this tokenizer takes "
            f"{list(own.special_tokens)} from text; count again with these, or give it the text"
        )
