"""Training as SentencePiece does it, under its names, without loss unless that is asked for.

All four kinds of model share what stands around the learner: symbols and their ids, how text becomes words, the spec.
To add a kind: a row in `MODELS`, and a function that learns its entries.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from dataclasses import field as own_field
from functools import cached_property
from itertools import islice
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from . import _core, charsmap
from .arguments import byte_count, choice, flag, integer, list_of, path_of, string, thread_count, token_content
from .corpus.storing import Blocks
from .counting import Progress, count_into, count_texts, source_of
from .counts import CountTable, Part, Splitting, run_of, table_of
from .errors import SubwordOSError, SubwordValueError, warn
from .scripts import SCRIPTS
from .spec import (
    BYTE,
    NORMAL,
    UNKNOWN,
    USER_DEFINED,
    Characters,
    DecodeSentencePiece,
    ExtraToken,
    MatchTokens,
    ScoreBPE,
    Scored,
    SentencePiece,
    Spec,
    SplitRegex,
    Stage,
    Unigram,
    Vocab,
    Words,
)
from .tokenizer import Text, Tokenizer

ROWS = 1 << 16
"""So many counted words are taken at once."""

PART = 1 << 20
"""Long texts are rewritten in parts of about so many bytes, which take ten times that while they are."""

COUNTED_BY = ("spaces", "whitespace-split", "none")
"""Patterns whose pieces hold whole words."""

MEMORY = {"unigram": (100, 100), "bpe": (50, 100), "word": (20, 300), "char": (20, 300)}
"""Learning takes at most about so many bytes of memory for each byte of the different words, and for each word."""

MOST = 2**63 - 1
"""Counts and sums of them stay within."""

_SPACE_IN_TEXT, _SPACE_IN_BYTES = (
    re.compile("(?<=[0-9A-Za-z]) (?=[0-9A-Za-z])"),
    re.compile(b"(?<=[0-9A-Za-z]) (?=[0-9A-Za-z])"),
)

_WHOLE = r"[\s\S]+"

CONTROL = -1
"""The kind of a symbol that no text spells; the others are those of entries of a model."""

Rules: TypeAlias = "tuple[int, bool, bool, bool, bool, bool, bool]"


def train_sentencepiece(
    texts: Iterable[Text | Mapping[str, Any]] | None = None,
    *,
    files: Iterable[str | os.PathLike[str]] | None = None,
    counts: CountTable | str | os.PathLike[str] | Iterable[CountTable | str | os.PathLike[str]] | None = None,
    vocab_size: int | None = None,
    model_type: Literal["unigram", "bpe", "word", "char"] = "unigram",
    character_coverage: float = 0.9995,
    byte_fallback: bool | None = None,
    seed_sentencepiece_size: int = 1_000_000,
    shrinking_factor: float = 0.75,
    num_sub_iterations: int = 2,
    max_sentencepiece_length: int = 16,
    split_by_unicode_script: bool = True,
    split_by_number: bool = True,
    split_by_whitespace: bool = True,
    split_digits: bool = False,
    treat_whitespace_as_suffix: bool = False,
    allow_whitespace_only_pieces: bool = False,
    add_dummy_prefix: bool = True,
    remove_extra_whitespaces: bool = False,
    normalization_rule_name: str = "identity",
    normalization_rule_tsv: str | os.PathLike[str] | None = None,
    denormalization_rule_tsv: str | os.PathLike[str] | None = None,
    precompiled_charsmap: str = "",
    control_symbols: Iterable[str] = (),
    user_defined_symbols: Iterable[str] = (),
    required_chars: str = "",
    unk_id: int = 0,
    bos_id: int = 1,
    eos_id: int = 2,
    pad_id: int = -1,
    unk_piece: str = "<unk>",
    bos_piece: str = "<s>",
    eos_piece: str = "</s>",
    pad_piece: str = "<pad>",
    unk_surface: str = " \u2047 ",
    hard_vocab_limit: bool = True,
    field: str = "text",
    errors: Literal["keep", "strict", "replace"] = "keep",
    memory: int | str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Tokenizer:
    """Train a tokenizer of SentencePiece's kinds on texts or files: on the raw stream, with spaces as `▁`.

    Options have SentencePiece's names and meanings; where a default is another, text is not lost: a character without
    an entry becomes its bytes, spaces are kept, and nothing is folded. The result is the same for any number of
    threads. Words are counted first, so memory grows with the different words (`MEMORY` has the figures);
    without `split_by_whitespace` each text is one word.

    Args:
        texts, files, field, errors, threads, progress: as for `train`.
        counts: what `count_pieces` gave instead of texts, as for `train`. Each piece is a text of its own, as often as
            it was counted. So with the pattern `"spaces"` or `"whitespace-split"`, words are learned from as they are
            from text between whose words there is one space; with `"none"`, from texts as they are. The special tokens
            that text was cut at become control symbols, where they are no other symbols.
        memory: how much memory may be taken, in bytes or as in `"2GB"`. Counts beyond it go to disk; learning needs the
            different words in memory, and an error says how much that is if it is more.
        vocab_size: how many entries there are in the end, with symbols, bytes and the unknown piece. Words and
            characters are all taken if it is not given.
        model_type: `"unigram"`: a unigram language model (Kudo 2018, "Subword Regularization"). `"bpe"`: again and
            again the two neighbours that are counted most often become one entry, from characters on; of pairs counted
            equally often, the one of fewer characters, then the smaller. `"word"` and `"char"`: the most frequent
            words, or characters.
        character_coverage: the most frequent characters get entries until they make up this share of the text.
        byte_fallback: 256 entries for bytes, which characters become that have no entry. There are, if it is not said,
            but for words.
        seed_sentencepiece_size, shrinking_factor, num_sub_iterations: of a unigram model: with how many entries
            learning starts; what share is kept when those are thrown away without which the text would lose least; how
            many rounds of expectation maximization come before each time.
        max_sentencepiece_length: the longest entry of a unigram model or a BPE in characters, at most 255.
        split_by_unicode_script, split_by_number, split_by_whitespace, split_digits, allow_whitespace_only_pieces: which
            strings cannot be entries of these.
        add_dummy_prefix, remove_extra_whitespaces, treat_whitespace_as_suffix, precompiled_charsmap: see the stage
            `SentencePiece`; the last is `rules` there, the first three its fields.
        normalization_rule_name: how text is rewritten: one of `subword.charsmap.NAMES`.
        normalization_rule_tsv, denormalization_rule_tsv: files of rules of one's own, for text and for what is decoded:
            a line is code points in hexadecimal, a tab, and the code points that replace them.
        control_symbols, user_defined_symbols: tokens that no text spells, and such as are always taken from it.
        unk_id, bos_id, eos_id, pad_id: -1 leaves one out. The other symbols get the lowest ids that are left, then the
            bytes, then what was learned.
        hard_vocab_limit: whether it is an error if the text has too few entries to give; otherwise, and of words and
            characters, there are fewer.

    Raises:
        SubwordValueError: there is nothing to train on, `vocab_size` is too small or too large, or another argument
            cannot be used.
        SubwordOSError: a file cannot be read.
    """
    choice("model_type", model_type, tuple(MODELS))
    learn, model = MODELS[model_type]
    roles = {
        "unk": (unk_piece, unk_id),
        "bos": (bos_piece, bos_id),
        "eos": (eos_piece, eos_id),
        "pad": (pad_piece, pad_id),
    }
    controls = [token_content(symbol) for symbol in list_of("control_symbols", control_symbols)]
    defined = [token_content(symbol) for symbol in list_of("user_defined_symbols", user_defined_symbols)]
    limit = None if memory is None else byte_count("memory", memory)
    given = None if counts is None else table_of(counts, texts, files)
    if given is not None:
        _check_splitting(given.splitting)
        known = {*controls, *defined, *(piece for piece, id in roles.values() if id >= 0)}
        controls += [token for token in given.splitting.special_tokens if token not in known]
    spelled = defined
    if model_type == "word":  # which are looked up with the space in front
        spelled = [name for own in defined for name in ([own] if own.startswith("▁") else [own, f"▁{own}"])]
    with_bytes = model_type != "word" if byte_fallback is None else flag("byte_fallback", byte_fallback)
    symbols = _symbols(roles, controls, spelled, with_bytes)
    longest = integer("max_sentencepiece_length", max_sentencepiece_length, 1)
    if longest > 255:
        raise SubwordValueError(f"max_sentencepiece_length={longest} is beyond 255")
    coverage, factor = _share("character_coverage", character_coverage), _share("shrinking_factor", shrinking_factor)
    if factor == 1:
        raise SubwordValueError("shrinking_factor must be less than 1: nothing would be thrown away")
    if vocab_size is None and model_type in ("unigram", "bpe"):
        raise SubwordValueError(f"give vocab_size: of a model of the type {model_type!r} it must be said")
    asked = None if vocab_size is None else integer("vocab_size", vocab_size)
    if asked is not None and asked <= len(symbols):
        raise SubwordValueError(f"vocab_size={asked} has no room beside {len(symbols)} symbols")
    if asked is not None and max(symbols) >= asked:
        beyond = max(symbols)
        raise SubwordValueError(f"{symbols[beyond].name!r} has the id {beyond}, beyond vocab_size={asked}")
    normalizer = SentencePiece(
        _rules(precompiled_charsmap, normalization_rule_name, normalization_rule_tsv),
        flag("add_dummy_prefix", add_dummy_prefix),
        flag("remove_extra_whitespaces", remove_extra_whitespaces),
        True,
        flag("treat_whitespace_as_suffix", treat_whitespace_as_suffix),
    )
    rules = (
        longest,
        flag("split_by_unicode_script", split_by_unicode_script),
        flag("split_by_number", split_by_number),
        flag("split_by_whitespace", split_by_whitespace),
        flag("split_digits", split_digits),
        treat_whitespace_as_suffix,
        flag("allow_whitespace_only_pieces", allow_whitespace_only_pieces),
    )
    words = r"▁[^▁]*|[^▁]+" if model_type == "word" else _pattern(rules)
    splitting = _Splitting(
        normalizer=normalizer,
        words=words,
        kept=tuple(spelled),
        rules_have_no_spaces=not precompiled_charsmap and normalization_rule_tsv is None,
    )
    if given is None:
        items = source_of(texts, files, string("field", field), errors, splitting, limit)
        if splitting.can_be_cut:
            items = ((part,) for text in items for whole in text for part in _cut(whole))
        table = count_texts(items, splitting, "", limit, None, thread_count(threads), progress, hashed=False)
    else:
        table = _recount(given, splitting, limit, thread_count(threads))
    if limit is not None:
        _check_memory(limit, table, model_type)
    counted = _words(table, spelled, table.text_bytes if given is None else given.text_bytes)
    if not len(counted.counts):
        raise SubwordValueError("there is nothing to train on: the texts hold no words")
    room = None if asked is None else asked - len(symbols)
    required: str = string("required_chars", required_chars)
    if with_bytes and "▁".encode() not in counted.data:
        required += "▁"  # as bytes it would not become a space again
    learned = learn(
        counted,
        room,
        _Options(
            coverage,
            required,
            rules,
            integer("seed_sentencepiece_size", seed_sentencepiece_size, 1),
            factor,
            integer("num_sub_iterations", num_sub_iterations, 1),
            thread_count(threads),
            None if progress is None else lambda done: progress("learn", done, room),
        ),
    )
    names = {symbol.name.encode() for symbol in symbols.values()}
    pieces = [piece for piece in learned.pieces if piece[0] not in names]
    total = len(symbols) + len(pieces)
    if asked is not None and total < asked:
        problem = f"the text gives no more than {total} entries, not the {asked} asked for"
        if flag("hard_vocab_limit", hard_vocab_limit) and model_type in ("unigram", "bpe"):
            raise SubwordValueError(f"{problem}: ask for fewer, give more text, or set hard_vocab_limit=False")
        if max(symbols) >= total:
            raise SubwordValueError(f"{problem}, and {symbols[max(symbols)].name!r} has the id {max(symbols)}")
        warn(problem)
    report = {
        "algorithm": "unigram" if model_type == "unigram" else f"sentencepiece-{model_type}",
        "asked": asked,
        "vocab_size": total,
        "bytes": counted.bytes,
        "words": int(counted.counts.sum()),
        "distinct_words": len(counted.counts),
        **learned.report,
    }
    trainer = {
        "character_coverage": coverage,
        "control_symbols": controls,
        "user_defined_symbols": defined,
        "required_chars": required_chars,
        "max_sentencepiece_length": longest,
        "split_by_unicode_script": split_by_unicode_script,
        "split_by_number": split_by_number,
        "split_by_whitespace": split_by_whitespace,
        "split_digits": split_digits,
        "allow_whitespace_only_pieces": allow_whitespace_only_pieces,
    }
    strip = "all" if remove_extra_whitespaces else "one" if add_dummy_prefix else "none"
    named = normalization_rule_name if not (precompiled_charsmap or normalization_rule_tsv) else ""
    back = _rules("", "identity", denormalization_rule_tsv)
    return Tokenizer(
        _spec(
            model,
            symbols,
            pieces,
            normalizer,
            DecodeSentencePiece(strip, unk_surface, back),  # type: ignore[arg-type]
            {role: id for role, (_, id) in roles.items() if id >= 0 and symbols[id].kind != USER_DEFINED},
            {"training": report, "sentencepiece": trainer, **({"normalizer": named} if named else {})},
        )
    )


def _share(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1:
        raise SubwordValueError(f"{name} must be above 0 and at most 1, not {value!r}")
    return float(value)


def _rules(precompiled: str, name: str, tsv: str | os.PathLike[str] | None) -> str:
    """Rules in base64, however they are given."""
    if string("precompiled_charsmap", precompiled):
        if tsv is not None or name != "identity":
            raise SubwordValueError("give precompiled_charsmap or other rules of normalization, not both")
        return precompiled
    if tsv is None:
        return charsmap.named(name)
    if name != "identity":
        raise SubwordValueError("give normalization_rule_name or normalization_rule_tsv, not both")
    path = path_of(tsv)
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise SubwordOSError(error.errno, error.strerror, str(path)) from None
    return charsmap.build(charsmap.read_tsv(data, str(path)))


# ======================== symbols ========================


class Symbol(NamedTuple):
    name: str
    kind: int


def _symbols(
    roles: Mapping[str, tuple[str, int]], controls: list[str], defined: list[str], byte_fallback: bool
) -> dict[int, Symbol]:
    """What is no text, by its id. A symbol that is named for a role, and again in a list, is what the list says."""
    symbols: dict[int, Symbol] = {}
    ids: dict[str, int] = {}
    for role, (piece, given) in roles.items():
        id = integer(f"{role}_id", given, -1)
        if id < 0:
            continue
        if id in symbols:
            raise SubwordValueError(f"{role}_id={id} is the id of {symbols[id].name!r}")
        if token_content(piece) in ids:
            raise SubwordValueError(f"the symbol {piece!r} is given twice")
        symbols[id] = Symbol(piece, UNKNOWN if role == "unk" else CONTROL)
        ids[piece] = id
    if roles["unk"][1] < 0:
        raise SubwordValueError("unk_id must not be negative: a model has an unknown piece")
    byte_pieces = [f"<0x{byte:02X}>" for byte in range(256)] if byte_fallback else []
    lists = ((controls, CONTROL), (defined, USER_DEFINED), (byte_pieces, BYTE))
    seen: set[str] = {roles["unk"][0]}
    free = 0
    for name, kind in ((name, kind) for names, kind in lists for name in names):
        if name in seen:
            raise SubwordValueError(f"the symbol {name!r} is given twice")
        seen.add(name)
        while free in symbols:
            free += 1
        symbols[ids.get(name, free)] = Symbol(name, kind)
    return symbols


def _spec(
    model: Any,
    symbols: Mapping[int, Symbol],
    pieces: list[tuple[bytes, float]],
    normalizer: SentencePiece,
    decode: DecodeSentencePiece,
    roles: Mapping[str, int],
    notes: Mapping[str, Any],
) -> Spec:
    """What was learned gets the ids, in their order, that no symbol has."""
    free = (id for id in range(len(symbols) + len(pieces)) if id not in symbols)
    rows = [(piece, id, score, NORMAL) for (piece, score), id in zip(pieces, free, strict=True)]
    rows += [(symbol.name.encode(), id, 0.0, symbol.kind) for id, symbol in symbols.items() if symbol.kind != CONTROL]
    rows.sort(key=lambda row: row[1])
    controls = [ExtraToken(id, symbol.name) for id, symbol in sorted(symbols.items()) if symbol.kind == CONTROL]
    return Spec(
        stages=(*([MatchTokens()] if controls else []), normalizer),
        model=model(
            vocab=Vocab.of((piece, id) for piece, id, _, _ in rows),
            scores=np.array([score for _, _, score, _ in rows]),
            unk=roles["unk"],
            kinds=np.array([kind for _, _, _, kind in rows], dtype=np.uint8),
            precision="float32",
        ),
        extra=tuple(controls),
        decode=decode,
        roles=roles,
        notes=notes,
    )


# ======================== words ========================


@dataclass(frozen=True)
class _Splitting(Splitting):
    """How text becomes words: as SentencePiece rewrites it, cut where its trainer cuts."""

    normalizer: SentencePiece = own_field(default_factory=SentencePiece)
    words: str = ""
    kept: tuple[str, ...] = ()
    rules_have_no_spaces: bool = False

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        return (self.normalizer, SplitRegex(self.words, "oniguruma"))

    @property
    def keeps_texts_whole(self) -> bool:
        return True

    @property
    def can_be_cut(self) -> bool:
        """Whether a text has the words of its parts, if a space between them is left out."""
        by_name = self.normalizer.rules == "" or self.rules_have_no_spaces
        has_spaces = any(" " in symbol or "▁" in symbol for symbol in self.kept)
        return self.normalizer.add_dummy_prefix and self.words != _WHOLE and by_name and not has_spaces

    @property
    def protected(self) -> tuple[str, ...]:
        return self.kept


def _cut(text: Text) -> Iterator[Text]:
    """A long text in parts that have its words: the space between two is that which stands in front of each text."""
    start = 0
    while isinstance(text, (str, bytes)) and len(text) - start > 2 * PART:
        space = _SPACE_IN_TEXT if isinstance(text, str) else _SPACE_IN_BYTES
        found = space.search(text, start + PART)  # type: ignore[arg-type]
        if found is None:
            break
        yield text[start : found.start()]
        start = found.end()
    yield text[start:] if start else text


class _Counted(NamedTuple):
    """The different words: their bytes, where each starts, how often it occurs. And how many bytes the text has."""

    data: bytes
    offsets: np.ndarray[Any, np.dtype[np.int64]]
    counts: np.ndarray[Any, np.dtype[np.int64]]
    bytes: int | None

    def columns(self) -> tuple[Any, Any, Any]:
        return self.data, self.offsets, self.counts


def _pattern(rules: Rules) -> str:
    """A regular expression for words: what the trainer's rules cannot reach across is in different ones."""
    _, _, _, by_whitespace, _, suffix, whitespace_only = rules
    if not by_whitespace:
        return _WHOLE
    marks = "▁+" if whitespace_only else "▁"
    return f"[^▁]*{marks}|[^▁]+" if suffix else f"{marks}[^▁]*|[^▁]+"


def _check_memory(memory: int, table: CountTable, model_type: str) -> None:
    """That learning takes no more, by what it took at most of words of any kind."""
    rows = table.survey()
    words, size = sum(row[1] for row in rows), sum(row[2] for row in rows)
    each_byte, each_word = MEMORY[model_type]
    need = each_byte * size + each_word * words
    if need > memory:
        raise SubwordValueError(
            f"learning from {words:,} distinct words of {size:,} bytes takes up to {need / 1e6:,.1f} MB, more than "
            f"memory={memory / 1e6:,.1f} MB: give it more, or train on a part of the text (without split_by_whitespace "
            "each text is one word)"
        )


def _check_splitting(splitting: Splitting) -> None:
    """That counted pieces are what stands between white space, or whole texts."""
    if splitting.digits != "pattern" or splitting.normalization is not None:
        raise SubwordValueError(
            "the counts were made with digits= or normalization=, which such a tokenizer does not have: count again "
            "without, and say how text is rewritten with normalization_rule_name="
        )
    if not isinstance(splitting.pattern, SplitRegex) and splitting.pattern not in COUNTED_BY:
        raise SubwordValueError(
            f"the counts were made with the pattern {splitting.pattern!r}, which cuts words: count with one of "
            f"{', '.join(map(repr, COUNTED_BY))}"
        )


def _recount(table: CountTable, splitting: _Splitting, memory: int | None, threads: int) -> CountTable:
    """The words of counted texts: a source for each power of two, of which counts are sums."""
    blocks = Blocks(None if memory is None else memory // 8, None)
    sources, runs = {}, []
    for power in range(63):

        def texts(bit: int = 1 << power) -> Iterator[tuple[bytes]]:
            for data, offsets, counts, *_ in table.rows(ROWS):
                places = np.flatnonzero(counts & bit)
                for start, end in zip(offsets[places].tolist(), offsets[places + 1].tolist(), strict=True):
                    yield (data[start:end],)

        counted = count_into(blocks.add, texts(), splitting, memory, threads, None, None)
        if counted.pieces:
            name = f"{power:02}"
            sources[name] = (Part(counted.pieces),)
            runs += [run_of(blocks, handles, (name,)) for handles in counted.runs]
    return CountTable(splitting, sources, False, 0, runs)


def _words(table: CountTable, defined: list[str], size: int | None) -> _Counted:
    """The different words without user-defined symbols. `size`: how many bytes the text has."""
    parts: list[bytes] = []
    lengths: list[Any] = [np.zeros(1, dtype=np.int64)]
    counts: list[Any] = [np.zeros(0, dtype=np.int64)]
    longest_first = "|".join(re.escape(symbol) for symbol in sorted(defined, key=len, reverse=True))
    cuts = re.compile(longest_first.replace("\\ ", "▁").encode()) if defined else None
    if cuts is None and list(table.sources) == [""]:
        for data, offsets, number, *_ in table.rows(ROWS):
            parts.append(data)
            lengths.append(np.diff(offsets))
            counts.append(number)
    else:
        total = 0
        every = _weighed(table)
        while words := list(islice(every, ROWS)):
            rows = [
                (part, count)
                for word, count in words
                for part in ([word] if cuts is None else cuts.split(word))
                if part
            ]
            total += sum(len(part) * count for part, count in rows)
            if total > MOST:
                raise SubwordValueError("the words are counted too often: 2^63 bytes of text and more; train on a part")
            parts += (part for part, _ in rows)
            lengths.append(np.array([len(part) for part, _ in rows], dtype=np.int64))
            counts.append(np.array([count for _, count in rows], dtype=np.int64))
    return _Counted(b"".join(parts), np.cumsum(np.concatenate(lengths)), np.concatenate(counts), size)


def _weighed(table: CountTable) -> Iterator[tuple[bytes, int]]:
    """The words, each once, with the sum of its counts, those of a power of two that often."""
    powers = [int(name or 0) for name in table.sources]
    last, sum = b"", 0
    for data, offsets, counts, _, sources in table.rows(ROWS):
        columns = (offsets.tolist(), offsets[1:].tolist(), counts.tolist(), sources.tolist())
        for start, end, count, source in zip(*columns, strict=False):
            word = data[start:end]
            if word != last and last:
                yield last, sum
                sum = 0
            last = word
            sum += count << powers[source]
    if last:
        yield last, sum


# ======================== learning ========================


class _Options(NamedTuple):
    character_coverage: float
    required_chars: str
    rules: Rules
    seed_sentencepiece_size: int
    shrinking_factor: float
    num_sub_iterations: int
    threads: int
    tell: Callable[[int], object] | None


class _Learned(NamedTuple):
    """Entries with their scores, in the order of their ids, and what is to be reported."""

    pieces: list[tuple[bytes, float]]
    report: dict[str, Any]


def _learn_unigram(words: _Counted, room: int | None, options: _Options) -> _Learned:
    pieces, rounds, left_out = _core.learn_unigram(
        *words.columns(),
        list(SCRIPTS),
        room or 0,
        options.character_coverage,
        options.required_chars,
        options.seed_sentencepiece_size,
        options.shrinking_factor,
        options.num_sub_iterations,
        options.rules,
        options.threads,
    )
    report = {
        "characters_left_out": left_out,
        "log_likelihood": rounds[-1][1],
        "rounds": [list(row) for row in rounds],
    }
    return _Learned([(piece, float(np.float32(score))) for piece, score in pieces], report)


def _learn_bpe(words: _Counted, room: int | None, options: _Options) -> _Learned:
    """What is merged in the order of learning, and behind it the characters: the score is minus the place."""
    merged, counts, characters, tokens, left_out = _core.learn_sentencepiece_bpe(
        *words.columns(),
        list(SCRIPTS),
        room or 0,
        options.character_coverage,
        options.required_chars,
        options.rules,
        options.tell,
    )
    entries = [*merged, *(character.encode() for character in characters)]
    report = {
        "merges": len(merged),
        "least_count": counts[-1] if counts else None,
        "tokens": tokens[-1],
        "characters_left_out": left_out,
    }
    return _Learned([(piece, -float(place)) for place, piece in enumerate(entries)], report)


def _learn_characters(words: _Counted, room: int | None, options: _Options) -> _Learned:
    return _most_frequent(*_covering(words, options), room)


def _learn_words(words: _Counted, room: int | None, options: _Options) -> _Learned:
    """Words of characters that the coverage leaves out get no entry."""
    characters, left_out = _covering(words, options)
    known = {character for character, _ in characters}
    counts: dict[str, int] = {}
    for start, end, count in zip(words.offsets, words.offsets[1:], words.counts.tolist(), strict=False):
        word = words.data[start:end].decode("utf-8", "ignore")
        if known.issuperset(word) and len(word.encode()) == end - start:
            counts[word] = counts.get(word, 0) + count  # cut at symbols, it may be there several times
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return _most_frequent(ordered, left_out, room)


def _covering(words: _Counted, options: _Options) -> tuple[list[tuple[str, int]], int]:
    return _core.covering_characters(*words.columns(), options.character_coverage, options.required_chars)


def _most_frequent(ordered: list[tuple[str, int]], left_out: int, room: int | None) -> _Learned:
    """Scores are logarithms of shares, of all that could have been taken."""
    scores = _core.log_shares([count for _, count in ordered])
    kept = zip(ordered[:room], scores, strict=False)
    return _Learned(
        [(text.encode(), float(np.float32(score))) for (text, _), score in kept], {"characters_left_out": left_out}
    )


MODELS: dict[str, tuple[Callable[[_Counted, int | None, _Options], _Learned], type[Scored]]] = {
    "unigram": (_learn_unigram, Unigram),
    "bpe": (_learn_bpe, ScoreBPE),
    "word": (_learn_words, Words),
    "char": (_learn_characters, Characters),
}
"""SentencePiece's names of its models: how their entries are learned, and what they are."""
