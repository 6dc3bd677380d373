"""One training, many sizes: what a tokenizer would be if fewer merges had been learned."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .arguments import integer
from .errors import SubwordValueError
from .spec import BPE, Packed, Vocab, bpe_of
from .tokenizer import Tokenizer


def cut(tok: Tokenizer, n: int) -> Tokenizer:
    """`Tokenizer.cut`, which says what it does."""
    spec, model = tok.spec, bpe_of(tok.spec.model, "only a BPE can be made smaller as if it had been trained so")
    n = integer("n", n)
    report = tok.training
    total = len(tok.vocab)
    made = _made_in_order(tok)
    unmade = total - len(made)
    least = unmade + (report or {}).get("initial_merges", 0)
    if n < least:
        raise SubwordValueError(f"n={n} is below the minimum of {least}: what no merge makes, initial and extra tokens")
    if n > total and (report is None or report.get("stopped") != "no pairs left"):
        raise SubwordValueError(f"n={n} is more than the {total} entries that the tokenizer has")
    _refuse(tok, made[np.isin(made, [token.id for token in spec.extra])], "is an extra token, too")
    removed = np.sort(made[n - unmade :])
    if len(removed) and (report or {}).get("keep_whole_characters") and n > unmade:
        last = model.vocab.piece_of(int(made[n - unmade - 1])) or b""
        if last.decode("utf-8", "ignore").encode() != last:
            raise SubwordValueError(
                f"n={n}: the last entry would be the beginning of a character, {last!r}, without a character that it "
                "begins; one or two fewer, or more, will do"
            )

    def moved(ids: Any) -> Any:
        """What becomes of the ids: those behind a removed one move up."""
        return (np.asarray(ids, np.int64) - np.searchsorted(removed, ids)).astype(np.uint32)

    def id_of(id: int) -> int:
        return int(moved(id))

    keep = np.isin(model.vocab.ids, removed, invert=True)
    pieces = [piece for piece, is_kept in zip(model.vocab.pieces, keep.tolist(), strict=True) if is_kept]
    extra = tuple(replace(token, id=id_of(token.id)) for token in spec.extra)

    smaller = BPE(
        Vocab(Packed.of(pieces), moved(model.vocab.ids[keep])),
        moved(model.merges[: len(made) - len(removed)]) if model.priority == "merges" else model.merges,
        model.priority,
        model.ignore_merges,
        model.unit,
        model.end_of_word,
        None if model.unk is None else id_of(model.unk),
        model.continuing_subword_prefix,
        model.fuse_unk,
        model.byte_fallback,
    )
    return Tokenizer(
        spec.replace(
            model=smaller,
            extra=extra,
            template=spec.template.with_ids(id_of),
            roles={role: id_of(id) for role, id in spec.roles.items()},
            notes=_notes(spec.notes, n, total, len(made) - len(removed)),
        ),
        engine=tok._engine_name,
    )


def _made_in_order(tok: Tokenizer) -> npt.NDArray[np.int64]:
    """The ids of the entries that merges make, in the order in which they were learned.

    Raises:
        SubwordValueError: the merges stand in no order in which they can have been learned.
    """
    model = bpe_of(tok.spec.model, "only a BPE can be made smaller as if it had been trained so")
    ids = model.vocab.ids.astype(np.int64)
    lengths = np.diff(model.vocab.pieces.offsets.astype(np.int64))
    if model.priority == "rank":
        parts = tok.last_merges()
        bad = (parts.max(axis=1) >= ids) | ((parts[:, 0] < 0) & (lengths > 1))
        _refuse(tok, ids[bad], "is not made of entries before it")
        return ids[parts[:, 0] >= 0]
    id_of = dict(model.vocab.items())
    piece_of = {id: piece for piece, id in id_of.items()}
    merges = model.merges.tolist()
    results = [id_of[piece_of[left] + piece_of[right]] for left, right in merges]
    known = piece_of.keys() - set(results)
    for (left, right), id in zip(merges, results, strict=True):
        if id in known or left not in known or right not in known:
            _refuse(tok, [id], "is made twice" if id in known else "is made of an entry that is made later")
        known.add(id)
    units = known - set(results) - {model.unk}
    for id in units:
        text = piece_of[id].decode("utf-8", "replace").removesuffix(model.end_of_word)
        if (model.unit == "byte" and len(piece_of[id].removesuffix(model.end_of_word.encode())) > 1) or len(text) > 1:
            _refuse(tok, [id], "is longer than what pieces start as, and no merge makes it")
    return np.array(results, dtype=np.int64)


def _refuse(tok: Tokenizer, ids: Any, why: str) -> None:
    for id in ids:
        raise SubwordValueError(
            "this tokenizer cannot be cut to a size: its merges stand in no order in which they can have been learned: "
            f"the entry {tok.token_piece(int(id))!r} (id {int(id)}) {why}"
        )


# ======================== what training says of each size ========================


CURVE_STEP = 1000
"""How many merges lie between two rows of the curve of a training."""

Numbers: TypeAlias = "npt.NDArray[np.uint64]"


def history(counts: Numbers, size: tuple[int, Numbers], scale: int) -> dict[str, Any]:
    """What is known of each merge, small enough to be kept: how often its pair was counted, the bytes of the text, and
    how many tokens the text had before the first merge and after each, all times `scale`."""
    return {"counts": _packed(counts), "bytes": size[0], "tokens": _packed(size[1]), "scale": scale}


def _packed(numbers: Numbers) -> str:
    """Differences, zipped."""
    steps = np.diff(numbers.astype(np.int64), prepend=0).astype("<i8").tobytes()
    return base64.b64encode(zlib.compress(steps, 9)).decode()


def _unpacked(text: str) -> Numbers:
    return np.cumsum(np.frombuffer(zlib.decompress(base64.b64decode(text)), "<i8")).astype(np.uint64)


def curve(counts: Numbers, size: tuple[int, Numbers], base: int, scale: int) -> list[dict[str, int | float | None]]:
    """What the text is before the first merge, after each thousand, and in the end, for a training report.

    `count`: how often the last pair was counted. (Of the two pairs in `aaa` only one is merged: the number of tokens
    says what was.)
    """
    text_bytes, tokens = size
    rows: list[dict[str, int | float | None]] = []
    for done in dict.fromkeys((*range(0, len(tokens), CURVE_STEP), len(tokens) - 1)):
        rows.append(
            {
                "merges": done,
                "vocab_size": base + done,
                "tokens": number(int(tokens[done]), scale),
                "bytes_per_token": round(text_bytes / int(tokens[done]), 4) if tokens[done] else None,
                "count": number(int(counts[done - 1]), scale) if done else None,
            }
        )
    return rows


def number(numerator: int, denominator: int) -> int | float:
    """A count by weight, for the report."""
    return numerator // denominator if numerator % denominator == 0 else numerator / denominator


def _notes(notes: Mapping[str, Any], n: int, total: int, merges: int) -> dict[str, Any]:
    """The notes with the report of a training that asked for `n` entries, if there was one."""
    kept = {name: note for name, note in notes.items() if name not in ("training", "history")}
    report = notes.get("training")
    if not isinstance(report, Mapping) or "asked" not in report:
        return kept
    report = dict(report)
    report |= {"asked": n, "vocab_size": min(n, total), "merges": merges, "least_count": None}
    report["stopped"] = "vocab size reached" if n <= total else "no pairs left"
    if "pruned" in report:
        certain = min(report["pruned"]["certain_merges"], merges) if report["pruned"]["distinct_pieces"] else merges
        report["pruned"] = report["pruned"] | {"certain_merges": certain}
    kept["training"] = report
    report["curve"] = [row for row in report.get("curve", ()) if row["merges"] <= merges]
    if "history" in notes:
        seen, scale = notes["history"], notes["history"]["scale"]
        counts, size = _unpacked(seen["counts"])[:merges], (seen["bytes"], _unpacked(seen["tokens"])[: merges + 1])
        report["least_count"] = number(int(counts[-1]), scale) if merges else None
        report["curve"] = curve(counts, size, report["vocab_size"] - merges, scale)
        kept["history"] = history(counts, size, scale)
    return kept
