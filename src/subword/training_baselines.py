"""What subword tokenizers are measured against: words, what rules make of words, characters, bytes. Nothing is merged.

To add one: a row in `BASELINES`, and what its entries are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import bert, patterns
from .counts import CountTable, Splitting
from .errors import SubwordValueError, warn
from .spec import BPE, Decode, DecodeWordPiece, ExtraToken, Model, Packed, Spec, SplitRegex, Template, Vocab, WordLevel

UNK = b"<unk>"

_ENDINGS = r"a(?:ble|tions?)|e(?:d|rs?|st)|ful|i(?:ble|ngs?|sms?|sts?|ty|ties|ves?|ze[ds]?|zing)|l(?:ess|y)|ments?|ness"
_WORD = r"(?:\p{Lu}\p{Ll}{2,}?|\p{Ll}{3,}?)"  # as short as can be: the ending is as long as can be
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"

RULES = SplitRegex(
    "|".join(
        (
            rf" ?{_WORD}(?=(?:{_ENDINGS})(?!{_LOWER}))",
            rf" ?\p{{Lu}}?{_LOWER}+",
            rf" ?\p{{Lu}}+(?!{_LOWER})",
            r" ?[\p{Lu}\p{Lt}]",
            r" ?\p{N}+",
            r" ?_+",
            r" ?[^\s\p{L}\p{M}\p{N}_]+",
            r"\s+(?!\S)",
            r"\s",
        )
    ),
    allow_backtracking=True,
)
"""Words by rules: cut at underscores and where camelCase starts a word (`HTTP|Server`), with common English endings
apart from a stem of at least three letters (`organ|izing`), digits from letters. A space belongs to what follows it."""

BASELINES: dict[str, str | SplitRegex] = {"word": "o200k", "rules": RULES, "character": "o200k", "byte": "o200k"}
"""The names, each with the pattern that is taken where none is given. Characters and bytes do not depend on how text is
cut, unless that leaves something out."""


def check(algorithm: str, pattern: Any, needless: Sequence[str]) -> None:
    """Refuse arguments that a baseline has no use for. `needless` names those that were given and are about merges."""
    if needless:
        raise SubwordValueError(f"nothing is merged with algorithm={algorithm!r}: leave out {', '.join(needless)}")
    if algorithm == "rules" and pattern not in (None, RULES):
        raise SubwordValueError('algorithm="rules" cuts text by its own rules: leave out pattern, or take "word"')


def spec_of(
    algorithm: str,
    table: CountTable | None,
    splitting: Splitting,
    vocab_size: int | None,
    min_count: int,
    byte_order: bytes,
    roles: tuple[str | None, str | None, str | None],
) -> Spec:
    """Ids: `<unk>` (but for bytes), the entries, the special tokens. `table` is None for bytes alone.

    Of words, the most frequent are kept, and have the lowest ids; of equals, those first that are smaller as bytes. Of
    characters, too, the most frequent are kept, of equals the smaller code points; their ids are in order of these.

    Raises:
        SubwordValueError: there is no room for the least that there must be.
    """
    specials = splitting.special_tokens
    report: dict[str, Any] = {"algorithm": algorithm, "asked": vocab_size, "vocab_size": 0, "merges": 0}
    if table is None:
        entries = [bytes([byte]) for byte in byte_order]
        if vocab_size not in (None, 256 + len(specials)):
            needed = f"256 bytes and {len(specials)} special tokens are {256 + len(specials)} entries"
            raise SubwordValueError(f"vocab_size={vocab_size}: {needed}, no more and no less; leave it out")
    else:
        counts = _words(table) if algorithm in ("word", "rules") else _characters(table)
        ordered = sorted(
            (item for item in counts.items() if item[1] >= min_count), key=lambda item: (-item[1], item[0])
        )
        if vocab_size is not None and vocab_size <= 1 + len(specials):
            least = f"{UNK.decode()}, one entry" + (f" and {len(specials)} special tokens" if specials else "")
            raise SubwordValueError(f"vocab_size={vocab_size} is below the minimum of {2 + len(specials)}: {least}")
        kept = ordered if vocab_size is None else ordered[: vocab_size - 1 - len(specials)]
        if not kept:
            raise SubwordValueError(f"there is nothing to train on: nothing is counted as often as {min_count=}")
        if vocab_size is not None and len(kept) + 1 + len(specials) < vocab_size:
            warn(
                f"the text has no more than {len(kept)} words or characters to take: the vocabulary has "
                f"{len(kept) + 1 + len(specials)} entries, not the {vocab_size} asked for"
            )
        found = [entry for entry, _ in kept]
        entries = [UNK, *(sorted(found) if algorithm == "character" else found)]
        report |= {
            "least_count": kept[-1][1],
            "known": sum(count for _, count in kept),
            "unknown": counts.total() - sum(count for _, count in kept),
            "bytes": table.text_bytes,
            "pieces": table.total,
            "distinct_pieces": table.distinct,
            "pattern": splitting.pattern.regex if isinstance(splitting.pattern, SplitRegex) else splitting.pattern,
            "digits": splitting.digits,
        }
    report["vocab_size"] = len(entries) + len(specials)
    vocab = Vocab(Packed.of(entries), np.arange(len(entries), dtype=np.uint32))
    no_merges = np.zeros((0, 2), dtype=np.uint32)
    decode: Decode | DecodeWordPiece = Decode()
    model: Model = BPE(vocab, no_merges)
    if algorithm in ("word", "rules"):
        model = WordLevel(vocab, unk=0)
        decode = DecodeWordPiece(prefix="", cleanup=False) if _drops(splitting) else Decode()
    elif algorithm == "character":
        model = BPE(vocab, no_merges, unit="character", unk=0)
        decode = Decode(trim=True) if _drops(splitting) else Decode("")
    return _with_specials(splitting, model, decode, specials, roles, report)


def _with_specials(
    splitting: Splitting,
    model: Model,
    decode: Decode | DecodeWordPiece,
    specials: Sequence[str],
    roles: tuple[str | None, str | None, str | None],
    report: Mapping[str, Any],
) -> Spec:
    ids = {token: len(model.vocab) + at for at, token in enumerate(specials)}
    before, after, pad = ([ids[token]] if token is not None else [] for token in roles)
    named = {"bos": before, "eos": after, "pad": pad, "unk": [] if model.unk is None else [model.unk]}
    return Spec(
        stages=splitting.stages,
        model=model,
        extra=tuple(ExtraToken(id, token) for token, id in ids.items()),
        template=Template((*before, "A", *after), (*before, "A", *after, "B", *after)),
        decode=decode,
        roles={role: id[0] for role, id in named.items() if id},
        notes={"training": report},
    )


def _words(table: CountTable) -> Counter[bytes]:
    """Well-formed pieces, with their counts. A word that is spelled as the unknown token is no other entry."""
    counts: Counter[bytes] = Counter()
    for piece, count in table:
        if piece != UNK and piece.decode("utf-8", "ignore").encode() == piece:
            counts[piece] = count
    return counts


def _characters(table: CountTable) -> Counter[bytes]:
    """Characters of well-formed pieces, with their counts."""
    counts: Counter[str] = Counter()
    for piece, count in table:
        text = piece.decode("utf-8", "ignore")
        if len(piece) == len(text.encode()):
            for char in text:
                counts[char] += count
    return Counter({char.encode(): count for char, count in counts.items()})


def _drops(splitting: Splitting) -> bool:
    """Whether the white space between pieces is left out."""
    pattern = splitting.pattern
    return pattern in bert.CLEANINGS or (isinstance(pattern, str) and patterns.get_pattern(pattern).drops)
