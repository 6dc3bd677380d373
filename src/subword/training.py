"""Training: text in, tokenizer out. Count the pieces, then learn merges from the counts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Literal

import numpy as np

from . import bert, patterns, training_baselines, training_wordpiece
from .arguments import byte_count, choice, integer, list_of, path_of, string, thread_count, token_content
from .byte_alphabet import GPT2_BYTE_ORDER
from .checkpoint import Checkpoint
from .counting import Progress, count_source
from .counts import CountTable, Splitting, Weight, table_of
from .errors import SubwordValueError, warn
from .sizes import curve, history, number
from .spec import BPE, MAX_ID, Decode, ExtraToken, Packed, Spec, SplitRegex, Stage, Template, Vocab
from .special import LLAMA3_TOKENS
from .tokenizer import Text, Tokenizer
from .wanted import Wanted

BYTE_ORDERS = {"value": bytes(range(256)), "gpt2": GPT2_BYTE_ORDER}
"""The bytes in the order of their ids: by value, or as GPT-2 and HF have them (printable ones first)."""

PRESETS: dict[str, dict[str, Any]] = {
    "gpt2": {
        "vocab_size": 50_257,
        "pattern": "gpt2",
        "special_tokens": ("<|endoftext|>",),
        "byte_order": "gpt2",
    },
    "llama3": {
        "vocab_size": 128_256,
        "pattern": "llama3",
        "special_tokens": LLAMA3_TOKENS,
        "bos_token": "<|begin_of_text|>",
    },
}
"""Arguments of `train` for a tokenizer in the style of a known one: `train(texts, **PRESETS["llama3"])`.

`llama3`: 128,000 entries and 256 special tokens, most of them reserved; up to three digits together.
"""

_PATTERNS: dict[str, str | SplitRegex] = {
    "bpe": "o200k",
    "wordpiece": "bert-cased",
    **training_baselines.BASELINES,
}
"""Which pattern is taken where none is given."""

TIE_RULES = ("smallest-ids", "first-seen", "largest-string")

ALL_BYTES = [bytes([byte]) for byte in range(256)]

UNK = "<unk>"
"""What stands for unknown characters."""


def train(
    texts: Iterable[Text | Mapping[str, Any]] | None = None,
    *,
    files: Iterable[str | os.PathLike[str]] | None = None,
    counts: CountTable | str | os.PathLike[str] | Iterable[CountTable | str | os.PathLike[str]] | None = None,
    vocab_size: int | None = None,
    algorithm: Literal["bpe", "wordpiece", "word", "rules", "character", "byte"] = "bpe",
    criterion: Literal["likelihood", "frequency"] = "likelihood",
    pattern: str | SplitRegex | None = None,
    digits: Literal["pattern", "one", "three-left", "three-right"] | None = None,
    special_tokens: Iterable[str] = (),
    bos_token: str | None = None,
    eos_token: str | None = None,
    pad_token: str | None = None,
    normalization: Literal["NFC", "NFD", "NFKC", "NFKD"] | None = None,
    unit: Literal["byte", "character"] = "byte",
    end_of_word: str = "",
    tie_rule: Literal["smallest-ids", "first-seen", "largest-string"] = "smallest-ids",
    byte_order: Literal["value", "gpt2"] = "value",
    weights: Mapping[str, Weight] | None = None,
    min_count: int = 1,
    max_token_bytes: int | None = None,
    initial: Iterable[str | bytes] = (),
    limit_alphabet: int | None = None,
    keep_whole_characters: bool = False,
    field: str = "text",
    errors: Literal["keep", "strict", "replace"] = "keep",
    memory: int | str | None = None,
    threads: int | None = None,
    processes: int = 1,
    progress: Progress | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Tokenizer:
    """Train a tokenizer on texts, on files, or on pieces that were counted. The result is the same for any number of
    threads and processes, for any `memory`, and for counts of the same text.

    The text is cut into pieces by `pattern`; then, again and again, the two neighbouring tokens that are counted most
    often become one, until there are `vocab_size` entries (Sennrich, Haddow and Birch 2016, "Neural Machine Translation
    of Rare Words with Subword Units", over bytes). Counts are exact, in 64 bits. Special tokens cut the text and are
    never counted.

    With `algorithm="wordpiece"`, tokens are made of characters, those that continue a word with `##` in front, and what
    is learned is only the vocabulary: it is encoded with the longest entry first (`spec.WordPiece`).

    Four others merge nothing; they are what subwords are compared with (`subword.audits.compare`). `"word"`: pieces are
    looked up as a whole, the most frequent ones (of equals, the smaller as bytes) have entries, and `<unk>`, with the
    id 0, stands for any other. `"rules"`: the same, with text cut by rules (`training_baselines.RULES`: underscores,
    camelCase, common English endings). `"character"`: the most frequent characters (of equals, the smaller code
    points), and `<unk>`. `"byte"`: the 256 bytes; texts are not looked at, and need not be given.

    Args:
        texts: the texts, each `str` or bytes, or rows (mappings, as of a data set of Hugging Face's) with a text in
            their `field`. One text alone is an error, not a corpus of its characters.
        files: paths, folders and globs instead of texts; `.jsonl` files give the texts in their `field`.
        counts: what `count_pieces` gave instead of texts: a table, the path of a saved one, or several of these, which
            are added up. How text became pieces stands in them; `pattern`, `digits`, `normalization` and
            `special_tokens` need not be given again, and must say the same if they are.
        vocab_size: how many entries the tokenizer has in the end, the 256 bytes (or the characters) and the special
            tokens included. What merges nothing takes all there are if it is not given.
        criterion: of a WordPiece, which pair is merged: with `"likelihood"`, the one with the highest count(ab) /
            (count(a) * count(b)), as published; with `"frequency"`, that with the highest count(ab), as the trainer of
            HF tokenizers does it.
        pattern: the name of a row of `subword.patterns.PATTERNS`, or `subword.SplitRegex(r"…")`; `"o200k"` if not
            given. Of a WordPiece mostly `"bert-cased"`, which is taken if not given, or `"bert-uncased"`: BERT's basic
            tokenization.
        digits: how numbers are cut before the pattern sees the rest: `"pattern"` leaves them to the pattern; `"one"`
            makes each a piece; `"three-left"` groups up to three from the left; `"three-right"` groups three from the
            right, so that place values line up (`1|234|567`).
        special_tokens: these get the last ids, in their order; `[UNK]` of a WordPiece has the id 0.
        bos_token, eos_token: special tokens that `add_special_tokens=True` puts before and after a text.
        pad_token: the special token that fills up batches.
        normalization: a Unicode normalization form to bring the text into first.
        unit: what pieces start as. With `"character"` the alphabet is the characters of the texts, and `<unk>`, with
            the id 0, stands for all others; pieces that are not well-formed UTF-8 are not learned from.
        end_of_word: a marker behind the last character of each piece, such as `</w>`, for `unit="character"`. With
            the pattern `"spaces"` and the tie rule `"largest-string"`, that is what subword-nmt learns.
        tie_rule: which of the pairs that are counted equally often is merged. `"smallest-ids"` (HF tokenizers,
            rustbpe) and `"largest-string"` (subword-nmt) do not depend on the order of the texts; `"first-seen"`
            (minbpe, the textbooks) takes the pair that comes first in the text as merged so far.
        byte_order: the ids of the bytes: `"value"`, or `"gpt2"` (which `"smallest-ids"` looks at, too).
        weights: what the counts of a source (see `count_pieces`) are multiplied by: `{"code": "3/10"}`; whole numbers,
            `Fraction`s, or these as strings, and exact. The other sources keep their counts; 0 leaves a source out.
        min_count: from 2 on, leave out pieces that are counted (by weight) less often. `training["pruned"]` then says
            how many pieces that were, and how many of the first merges are *certain*: proved to be those of all pieces.
            The proof goes merge by merge. As long as the merges are the same, a pair stands in all pieces as often as
            in those that were kept, and more often by at most as much as was left out around such a pair; so the winner
            is the same while it leads every other pair by more than that. (For `unit="byte"` without
            `keep_whole_characters`; else none is certain.)
        max_token_bytes: no token is longer. Pairs that would make a longer one are passed over, all others are learned
            as ever. The end-of-word marker does not count, nor do special tokens and `<unk>`. A character that is
            longer itself is an error.
        initial: tokens to have from the start; they count towards the size, and so does what they are made of. Each
            must be one piece as a text of its own, and is then encoded as one token: as if they were the only text,
            each counted once, merges are learned from them until each is one token; these merges come before all that
            are learned from the texts. `training` says how many (`initial_merges`).
        limit_alphabet: for `unit="character"`, how many characters to keep: the most frequent, of equals those with the
            smallest code points, and any of `initial`. The others are `<unk>`, and nothing merges with them. (With an
            end-of-word marker, a character can have two entries: with it and without.)
        keep_whole_characters: for `unit="byte"`, no token of several bytes holds part of a UTF-8 character, with the
            exception that merges of pairs cannot do without: a character of three or four bytes is made of its
            *beginning* (all its bytes but the last), which is made of bytes. Such a beginning is learned only together
            with a character that needs it, right before it, and never joined to anything else. So every token is a
            single byte, or whole characters, or a beginning of a character that is a token as well. Characters compete
            by their own counts; one for which there is no room with its beginning is passed over. Ties: to
            `"smallest-ids"`, beginnings stand behind the 256 bytes, in the order of their bytes. (Tokens of
            `unit="character"` are whole characters anyway.)
        errors: what becomes of bytes that are not UTF-8: `"keep"` learns from them as they are; `"replace"` puts U+FFFD
            in their place; with `"strict"` they are an error that names the file and the place.
        memory: how much memory counting and learning may take, in bytes or as in `"2GB"`. Counts beyond it go to disk;
            learning needs the distinct pieces in memory, and an error says so, and which `min_count` would help.
        threads: how many threads count; all cores by default.
        processes: how many processes read and count `files`, as for `count_pieces`.
        progress: called as `progress(stage, done, total)` with the stage `"count"` (bytes; total unknown) or
            `"learn"` (merges).
        checkpoint: a file for the merges so far, written every half minute while merges are learned, and when that is
            stopped by Ctrl-C. If it is there, the same call on the same text goes on from it, to the same result as in
            one run. In the end it is removed. (The text is counted again; `counts=` saves that.)

    Returns:
        The tokenizer. `tok.training` says what was asked for and what was found: when the text has no pairs left
        before the size is reached, `stopped` is `"no pairs left"`, and a `SubwordWarning` says so too. Its `curve` says
        how many tokens the text is after each thousand merges; `learned_from`, of how many pieces and bytes (both by
        weight, and without what `min_count` left out).

    Raises:
        SubwordValueError: there is nothing to train on, the size is below the minimum (the message names it), or
            another argument cannot be used. Or the checkpoint is that of another call, or of other text.
        FormatError: the checkpoint is damaged.
        SubwordOSError: a file cannot be read.
    """
    specials = _special_tokens(special_tokens, bos_token, eos_token, pad_token)
    if isinstance(algorithm, str) and algorithm in ("unigram", "sentencepiece", "sentencepiece-bpe"):
        raise SubwordValueError(f"{algorithm!r} has options of its own: it is trained by train_sentencepiece")
    choice("algorithm", algorithm, tuple(_PATTERNS))
    choice("criterion", criterion, training_wordpiece.CRITERIA)
    choice("unit", unit, ("byte", "character"))
    choice("tie_rule", tie_rule, TIE_RULES)
    choice("byte_order", byte_order, tuple(BYTE_ORDERS))
    _check_marker(end_of_word, unit)
    least = integer("min_count", min_count, 1)
    wanted = Wanted.of(max_token_bytes, initial, limit_alphabet, keep_whole_characters, unit)
    if algorithm == "wordpiece" and (
        (unit, end_of_word, byte_order, checkpoint) != ("byte", "", "value", None) or wanted != Wanted()
    ):
        raise SubwordValueError(
            "a WordPiece is made of characters, and of all there are: leave out unit, end_of_word, byte_order, "
            "checkpoint, max_token_bytes, initial, limit_alphabet and keep_whole_characters"
        )
    is_baseline = algorithm in training_baselines.BASELINES
    if is_baseline:
        needless = {
            "criterion": criterion != "likelihood",
            "unit": unit != "byte",
            "end_of_word": end_of_word,
            "tie_rule": tie_rule != "smallest-ids",
            "weights": weights,
            "byte_order": algorithm != "byte" and byte_order != "value",
            "checkpoint": checkpoint,
            "max_token_bytes, initial, limit_alphabet and keep_whole_characters": wanted != Wanted(),
        }
        training_baselines.check(algorithm, pattern, [name for name, told in needless.items() if told])
        pattern = training_baselines.RULES if algorithm == "rules" else pattern
    limit = None if memory is None else byte_count("memory", memory)
    asked = None if is_baseline and vocab_size is None else integer("vocab_size", vocab_size)
    vocab_size = asked or 0
    threads = thread_count(threads)
    if progress is not None and not callable(progress):
        raise SubwordValueError(f"progress must be a function of (stage, done, total), not {progress!r}")
    if counts is None:
        splitting = Splitting(
            _PATTERNS[algorithm] if pattern is None else pattern,
            "pattern" if digits is None else digits,
            normalization,
            specials,
        )
    else:
        table = table_of(counts, texts, files)
        splitting = table.splitting
        _check_told(splitting, pattern, digits, normalization, specials)
        specials = splitting.special_tokens
    has_unk = unit == "character" or (is_baseline and algorithm != "byte")
    if has_unk and UNK in specials:
        raise SubwordValueError(f"{UNK!r} is a token of such a vocabulary anyway; leave it out of special_tokens")
    roles = (bos_token, eos_token, pad_token)
    order = BYTE_ORDERS[byte_order]
    if algorithm == "byte":
        return Tokenizer(training_baselines.spec_of(algorithm, None, splitting, asked, least, order, roles))
    first_merges = 0
    if algorithm == "bpe":
        wanted.check_pieces(splitting)
        first_merges = wanted.merges_needed(unit, BYTE_ORDERS[byte_order], end_of_word, tie_rule)
        check_size(vocab_size, [UNK.encode()] if unit == "character" else ALL_BYTES, first_merges, specials)
    saved = None
    if checkpoint is not None:
        told = {name: str(weight) for name, weight in sorted((weights or {}).items())}
        saved = Checkpoint(
            path_of(checkpoint),
            {
                "vocab_size": vocab_size,
                "pattern": splitting.pattern if isinstance(splitting.pattern, str) else asdict(splitting.pattern),
                "digits": splitting.digits,
                "normalization": splitting.normalization,
                "special_tokens": list(specials),
                "unit": unit,
                "end_of_word": end_of_word,
                "tie_rule": tie_rule,
                "byte_order": byte_order,
                "weights": told,
                "min_count": least,
                "max_token_bytes": wanted.max_token_bytes,
                "initial": [token.decode("latin-1") for token in wanted.initial],
                "limit_alphabet": wanted.limit_alphabet,
                "keep_whole_characters": wanted.keep_whole_characters,
            },
        )
    if counts is None:
        table = count_source(
            texts, files, field, errors, splitting, "", limit, None, threads, processes, progress, hashed=False
        )
    if tie_rule == "first-seen" and not table.has_first:
        raise SubwordValueError(
            'tie_rule="first-seen" takes the order from the column `first`, which the counts do not have: count again'
        )
    if table.total == 0:
        raise SubwordValueError(
            "there is nothing to train on: "
            + ("the texts hold nothing outside special tokens" if table.text_bytes else "no text was given")
        )
    if is_baseline:
        return Tokenizer(training_baselines.spec_of(algorithm, table, splitting, asked, least, order, roles))
    if limit is not None:
        table.check_memory(limit, vocab_size, weights, least)
    pieces, scale, pruned = table.pieces(weights, least, in_order=tie_rule == "first-seen")
    table = replace(table, runs=())  # what they hold goes, unless someone else has the table
    if pieces.distinct == 0:
        raise SubwordValueError(f"there is nothing to train on: no piece is left with {min_count=} and {weights=}")

    if algorithm == "wordpiece":
        alphabet = training_wordpiece.alphabet_of(pieces, criterion)
    elif unit == "byte":
        alphabet = [bytes([byte]) for byte in BYTE_ORDERS[byte_order]]
    else:
        symbols = pieces.characters(end_of_word, wanted.limit_alphabet, wanted.initial)
        wanted.check_characters(symbols, end_of_word)
        alphabet = [UNK.encode(), *symbols]
    others = [token for token in specials if token != bert.UNK or algorithm == "bpe"]  # than those in the alphabet
    check_size(vocab_size, alphabet, first_merges, others)
    room = vocab_size - len(alphabet) - len(others)
    start = None if saved is None else saved.start(pieces)

    def tell(done: int) -> bool:
        if progress:
            progress("learn", done, room)
        return saved is not None and saved.is_due()

    if progress:
        progress("learn", 0, room)  # with much text, the first merge is a while away
    told_to = (tie_rule, tell if progress or saved else None, wanted.max_token_bytes)
    rest = (wanted.initial, start, saved and saved.keep)
    learned = None
    try:
        if algorithm == "wordpiece":
            learned = training_wordpiece.learn(pieces, alphabet, room, criterion, tie_rule, told_to[1])
            merges, found, certain, size = learned.merges, learned.counts, 0, learned.size
        elif unit == "byte":
            order, whole = BYTE_ORDERS[byte_order], wanted.keep_whole_characters
            merges, found, certain, size = pieces.learn_bpe(room, order, *told_to, whole, *rest)
        else:
            most = wanted.limit_alphabet
            merges, found, certain, size = pieces.learn_bpe_of_characters(room, end_of_word, *told_to, most, *rest)
    except KeyboardInterrupt:
        if saved is None or saved.merges is None:
            raise
        raise KeyboardInterrupt(f"{saved.path} has {saved.merges:,} merges: the same call goes on from there") from None
    if unit == "character":
        merges = merges + np.uint32(1)  # behind <unk>
    if saved is not None:
        saved.remove()
    report: dict[str, Any] = {
        "algorithm": algorithm,
        "asked": vocab_size,
        "vocab_size": len(alphabet) + len(merges) + len(others),
        "merges": len(merges),
        "stopped": "vocab size reached" if len(merges) == room else "no pairs left",
        "least_count": number(int(found[-1]), scale) if len(found) else None,
        "bytes": table.text_bytes,
        "pieces": table.total,
        "distinct_pieces": pieces.distinct,
        "pattern": splitting.pattern.regex if isinstance(splitting.pattern, SplitRegex) else splitting.pattern,
        "digits": splitting.digits,
        "tie_rule": tie_rule,
        "byte_order": byte_order,
        **wanted.report(first_merges),
        "learned_from": {"pieces": number(pieces.total, scale), "bytes": number(size[0], scale)},
        "curve": curve(found, size, len(alphabet) + len(others), scale),
    }
    if any(table.sources):
        sizes = {name: [part.bytes for part in parts] for name, parts in table.sources.items()}
        report["sources"] = {
            name: {
                "bytes": None if None in sizes[name] else sum(size or 0 for size in sizes[name]),
                "pieces": sum(part.pieces for part in parts),
            }
            for name, parts in table.sources.items()
        }
    if weights:
        report["weights"] = {name: str(weight) for name, weight in sorted(weights.items())}
    if least > 1:
        report["pruned"] = {
            "min_count": least,
            "distinct_pieces": pruned.pieces,
            "pieces": number(pruned.count.numerator, pruned.count.denominator),
            "certain_merges": certain if pruned.pieces else len(merges),
        }
    if unit == "character":
        report |= {"unit": unit, "end_of_word": end_of_word, "alphabet": len(alphabet) - 1}
    if learned is not None:
        del report["byte_order"]
        report |= {"criterion": criterion, "alphabet": len(alphabet) - 1}
        spec = training_wordpiece.spec_of(splitting.stages, learned, specials, roles, report)
    else:
        spec = _bpe_spec(splitting.stages, alphabet, merges, specials, roles, report, history(found, size, scale))
    if unit == "character" and isinstance(spec.model, BPE):
        _check_spelling(spec.model, end_of_word.encode())
        model = replace(spec.model, unit=unit, end_of_word=end_of_word, unk=0)
        # Where pieces keep the white space around them, the marker stands for none.
        drops = splitting.pattern in bert.CLEANINGS or (
            isinstance(splitting.pattern, str) and patterns.get_pattern(splitting.pattern).drops
        )
        spec = spec.replace(model=model, decode=Decode(trim=True) if drops else Decode(""))
    if report["stopped"] == "no pairs left":
        which = "that may be merged " if wanted.max_token_bytes or wanted.keep_whole_characters else ""
        warn(
            f"the text has no pairs left {which}after {len(merges)} merges: the vocabulary has {report['vocab_size']} "
            f"entries, not the {vocab_size} asked for; train on more text, or ask for fewer"
        )
    return Tokenizer(spec)


def _bpe_spec(
    stages: Sequence[Stage],
    alphabet: Sequence[bytes],
    merges: np.ndarray[Any, np.dtype[np.uint32]],
    specials: Sequence[str],
    roles: tuple[str | None, str | None, str | None],
    report: dict[str, Any],
    seen: dict[str, Any],
) -> Spec:
    """Ids: the alphabet in its order, the merges, the special tokens."""
    pieces = list(alphabet)
    for left, right in merges.tolist():
        pieces.append(pieces[left] + pieces[right])
    ids = {token: len(pieces) + at for at, token in enumerate(specials)}
    bos, eos, pad = roles
    named = {"bos": bos, "eos": eos, "pad": pad}
    before, after = ([ids[token]] if token is not None else [] for token in (bos, eos))
    return Spec(
        stages=tuple(stages),
        model=BPE(Vocab(Packed.of(pieces), np.arange(len(pieces), dtype=np.uint32)), merges),
        extra=tuple(ExtraToken(id, token) for token, id in ids.items()),
        template=Template((*before, "A", *after), (*before, "A", *after, "B", *after)),
        roles={role: ids[token] for role, token in named.items() if token is not None},
        notes={"training": report, "history": seen},
    )


def _check_spelling(model: BPE, marker: bytes) -> None:
    """Tokens must be told apart by what they spell, and those that end a piece must be those that end in the marker."""
    pieces = list(model.vocab.pieces)
    ends = [bool(marker) and piece.endswith(marker) and piece != marker for piece in pieces]
    for (_, right), id in zip(model.merges.tolist(), range(len(pieces) - len(model.merges), len(pieces)), strict=True):
        ends[id] = ends[right]
    alike = bool(marker) and [piece.endswith(marker) for piece in pieces] != ends
    if alike or len(set(pieces)) < len(pieces):
        raise SubwordValueError(
            f"the texts hold {UNK!r} or the end-of-word marker, so that two tokens would be spelled alike; take it out "
            "of the texts, or choose another end_of_word"
        )


# ======================== arguments ========================


def _special_tokens(tokens: Iterable[str], *named: str | None) -> tuple[str, ...]:
    specials = [token_content(token) for token in list_of("special_tokens", tokens)]
    roles = (token_content(token) for token in named if token is not None)
    return (*specials, *(token for token in dict.fromkeys(roles) if token not in specials))


def _check_told(
    splitting: Splitting,
    pattern: str | SplitRegex | None,
    digits: str | None,
    normalization: str | None,
    specials: Sequence[str],
) -> None:
    """That what a call says besides `counts` is how these were counted."""
    told = Splitting(
        splitting.pattern if pattern is None else pattern,
        splitting.digits if digits is None else digits,
        splitting.normalization if normalization is None else normalization,
        splitting.special_tokens if set(specials) <= set(splitting.special_tokens) else tuple(specials),
    )
    if (difference := splitting.difference(told)) is not None:
        raise SubwordValueError(
            f"the counts were made with other stages than this call says: {difference}; leave that out, or count again"
        )


def _check_marker(end_of_word: str, unit: str) -> None:
    if string("end_of_word", end_of_word):
        token_content(end_of_word)
        if unit != "character":
            raise SubwordValueError('end_of_word goes with unit="character"')


def check_size(vocab_size: int, alphabet: Sequence[bytes], first_merges: int, specials: Sequence[str]) -> None:
    """Refuse a size that has no room for these, or is beyond all ids."""
    minimum = len(alphabet) + first_merges + len(specials)
    if vocab_size < minimum:
        units = "256 bytes" if alphabet == ALL_BYTES else f"{alphabet[0].decode()} and {len(alphabet) - 1} characters"
        raise SubwordValueError(
            f"vocab_size={vocab_size} is below the minimum of {minimum}: {units}"
            + (f" and {first_merges} merges for the initial tokens" if first_merges else "")
            + (f" and {len(specials)} special tokens" if specials else "")
        )
    if vocab_size > MAX_ID:
        raise SubwordValueError(f"vocab_size={vocab_size} is beyond the largest id, {MAX_ID}")
