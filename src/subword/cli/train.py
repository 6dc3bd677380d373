"""`subword train`: learn a tokenizer from files."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer

from .. import counts, training
from ..bert import CLEANINGS
from ..corpus import find_files, read_texts, size_on_disk
from ..formats import FORMATS
from ..patterns import PATTERNS
from ..report.terminal import visible
from ..spec import SplitRegex
from ..tokenizer import Tokenizer
from ..training_baselines import BASELINES, RULES
from ..training_wordpiece import CRITERIA
from . import common

TieRule: TypeAlias = Literal["smallest-ids", "first-seen", "largest-string"]
Normalization: TypeAlias = Literal["NFC", "NFD", "NFKC", "NFKD"]
Unit: TypeAlias = Literal["byte", "character"]
ByteOrder: TypeAlias = Literal["value", "gpt2"]

DigitGroups: TypeAlias = Literal["pattern", "one", "three-left", "three-right"]

TIE_RULES = ", ".join(training.TIE_RULES)
SUFFIXES = tuple(suffix for row in FORMATS for suffix in row.suffixes)

# What says how text becomes pieces, for `train` and `count-pieces`.
PatternOpt = Annotated[
    str,
    typer.Option(
        "--pattern", metavar="NAME", help=f"How text is cut into pieces: {', '.join([*PATTERNS, *CLEANINGS])}."
    ),
]
DigitsOpt = Annotated[
    DigitGroups,
    typer.Option(
        "--digits",
        metavar="NAME",
        parser=common.one_of(*counts.DIGITS),
        help=f"How numbers are cut before the pattern: {', '.join(counts.DIGITS)} (place values line up).",
    ),
]
RegexOpt = Annotated[
    str | None,
    typer.Option("--regex", metavar="REGEX", help="An expression of your own instead, in tiktoken's syntax."),
]
SpecialOpt = Annotated[
    list[str] | None,
    typer.Option("--special", metavar="TOKEN", show_default=False, help="A special token; may be repeated."),
]
NormalizationOpt = Annotated[
    Normalization | None,
    typer.Option(
        "--normalization",
        metavar="FORM",
        parser=common.one_of(*counts.NORMALIZATIONS),
        help=f"Bring text into a Unicode form first: {', '.join(counts.NORMALIZATIONS)}.",
    ),
]
MemoryOpt = Annotated[
    str | None,
    typer.Option("--memory", metavar="SIZE", help="How much memory counts may take, as in 2GB; the rest goes to disk."),
]


def train(
    ctx: typer.Context,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", show_default=False, help="Where the tokenizer goes.")
    ],
    files: common.FilesArg = None,
    counted: Annotated[
        list[Path] | None,
        typer.Option(
            "--counts",
            metavar="TABLE",
            show_default=False,
            help="What count-pieces wrote, instead of files; may be repeated: tables add up.",
        ),
    ] = None,
    vocab_size: Annotated[
        int | None,
        typer.Option(
            "--vocab-size",
            "-v",
            metavar="SIZE",
            parser=common.parse_size,
            show_default=False,
            help="Entries in all: bytes, merges and special tokens. 32000, 32_000 or 32k (k is 1,000).",
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            metavar="NAME",
            parser=common.one_of(*training.PRESETS),
            help=f"Size, pattern and special tokens as in {' or '.join(training.PRESETS)}, where not given otherwise.",
        ),
    ] = None,
    pattern: PatternOpt = "o200k",
    digits: DigitsOpt = "pattern",
    regex: RegexOpt = None,
    special: SpecialOpt = None,
    bos: Annotated[
        str | None, typer.Option("--bos", metavar="TOKEN", help="The special token that stands before a text.")
    ] = None,
    eos: Annotated[
        str | None, typer.Option("--eos", metavar="TOKEN", help="The special token that stands after a text.")
    ] = None,
    pad: Annotated[str | None, typer.Option("--pad", metavar="TOKEN", help="The one that fills up batches.")] = None,
    normalization: NormalizationOpt = None,
    algorithm: Annotated[
        Literal["bpe", "wordpiece", "word", "rules", "character", "byte"],
        typer.Option(
            "--algorithm",
            metavar="NAME",
            parser=common.one_of("bpe", "wordpiece", *BASELINES),
            help=f"Which model: bpe, wordpiece; without merges, for comparison: {', '.join(BASELINES)}.",
        ),
    ] = "bpe",
    criterion: Annotated[
        Literal["likelihood", "frequency"],
        typer.Option(
            "--criterion",
            metavar="NAME",
            parser=common.one_of(*CRITERIA),
            help=f"Of a WordPiece, by what the next pair is chosen: {' or '.join(CRITERIA)}.",
        ),
    ] = "likelihood",
    unit: Annotated[
        Unit,
        typer.Option(
            "--unit",
            metavar="byte|character",
            parser=common.one_of("byte", "character"),
            help="What tokens are merged from.",
        ),
    ] = "byte",
    end_of_word: Annotated[
        str,
        typer.Option(
            "--end-of-word",
            metavar="MARKER",
            show_default=False,
            help="Mark the last character of each piece, as with </w>; for --unit character.",
        ),
    ] = "",
    tie_rule: Annotated[
        TieRule,
        typer.Option(
            "--tie-rule",
            metavar="NAME",
            parser=common.one_of(*training.TIE_RULES),
            help=f"Which of equally frequent pairs goes first: {TIE_RULES}.",
        ),
    ] = "smallest-ids",
    byte_order: Annotated[
        ByteOrder,
        typer.Option(
            "--byte-order",
            metavar="value|gpt2",
            parser=common.one_of(*training.BYTE_ORDERS),
            help="Which byte gets which of the ids 0 to 255.",
        ),
    ] = "value",
    weight: Annotated[
        list[str] | None,
        typer.Option(
            "--weight",
            metavar="SOURCE=WEIGHT",
            show_default=False,
            help="Multiply the counts of a source, as in code=3/10; may be repeated. For --counts.",
        ),
    ] = None,
    min_count: Annotated[
        int, typer.Option("--min-count", metavar="N", min=1, help="Leave out pieces that are counted less often.")
    ] = 1,
    memory: MemoryOpt = None,
    threads: common.ThreadsOpt = None,
    field: common.FieldOpt = "text",
    stdin_format: common.StdinOpt = "text",
    force: common.ForceOpt = False,
    json: common.JsonOpt = False,
) -> None:
    """Train a tokenizer on text.

    The same text gives the same tokenizer, for any number of threads.

    \b
    Examples:
      subword train corpus/ --vocab-size 32k --out tokenizer.json
      subword train "data/*.jsonl.zst" --field content -v 50_000 -o tok.json
      subword train book.txt -v 1000 -o tok.json --special "<|endoftext|>"
      subword train corpus/ --preset llama3 -o tokenizer.json
      zcat dump.gz | subword train - -v 8k -o tok.json --pattern cl100k
      subword train --counts code.parquet --counts web.parquet --weight code=3/10 -v 32k -o tok.json
      subword train corpus/ -v 30k -o vocab.txt --algorithm wordpiece --pattern bert-uncased --special "[MASK]"
      subword train corpus/ -v 50k -o words.subword --algorithm word
      subword train book.txt -v 8k -o tok.subword --pattern spaces --unit character --end-of-word "</w>"
    """
    if not files and not counted and algorithm != "byte":
        raise common.UsageError("no text: give files, or --counts with what count-pieces wrote")
    if files and counted:
        raise common.UsageError("give files or --counts, not both")
    if weight and not counted:
        raise common.UsageError("--weight goes with --counts: count each source with count-pieces --source first")
    if not out.name.lower().endswith(SUFFIXES):
        raise common.UsageError(f"--out {out}: the name says the format and must end in {' or '.join(SUFFIXES)}")
    common.check_out(out, force)
    arguments: dict[str, Any] = {
        "vocab_size": vocab_size,
        "pattern": pattern_of(pattern, regex),
        "digits": digits,
        "special_tokens": special or (),
        "bos_token": bos,
        "eos_token": eos,
        "pad_token": pad,
        "normalization": normalization,
        "algorithm": algorithm,
        "criterion": criterion,
        "unit": unit,
        "end_of_word": end_of_word,
        "tie_rule": tie_rule,
        "byte_order": byte_order,
        "min_count": min_count,
        "memory": memory,
    }

    def is_given(option: str) -> bool:
        source = ctx.get_parameter_source(option)
        return source is not None and source.name == "COMMANDLINE"

    for name, value in training.PRESETS[preset].items() if preset else ():
        if not is_given({"special_tokens": "special", "bos_token": "bos"}.get(name, name)):
            arguments[name] = value
    if algorithm == "wordpiece" and not is_given("pattern") and regex is None and not preset:
        arguments["pattern"] = "bert-cased"
    if algorithm == "rules":
        arguments["pattern"] = RULES if not is_given("pattern") and regex is None else arguments["pattern"]
    if arguments["vocab_size"] is None and algorithm not in BASELINES:
        raise common.UsageError("give --vocab-size, or a --preset that has one")
    started = time.perf_counter()
    if counted:
        for name in ("pattern", "digits"):  # what the tables say, unless something else is said here
            if not is_given(name) and not (name == "pattern" and regex is not None) and not preset:
                arguments[name] = None
        with common.progress() as report:
            tok = training.train(
                counts=counted, weights=_weights(weight), **arguments, threads=threads, progress=_learning(report)
            )
    else:
        found = find_files(files or ())
        tokens = tuple(dict.fromkeys(token for token in [*arguments["special_tokens"], bos, eos, pad] if token))
        splitting = counts.Splitting(arguments["pattern"], digits, normalization, tokens)
        with common.progress() as report, common.ticking("count", size_on_disk(found), report) as tick:
            texts = texts_in(found, splitting, field, stdin_format, tick)
            tok = training.train(texts, **arguments, threads=threads, progress=_learning(report))
    tok.save(out)
    summary: dict[str, Any] = {
        "out": str(out),
        **(tok.training or {}),
        "seconds": round(time.perf_counter() - started, 3),
        "first_merges": [visible(tok.token_bytes(id)) for id in _merged_ids(tok)[:24]],
        "fingerprint": tok.fingerprint,
    }
    common.print_json(summary) if json else _render(summary)


def pattern_of(pattern: str, regex: str | None) -> str | SplitRegex:
    """What `--pattern` and `--regex` mean."""
    if regex is not None and pattern != "o200k":
        raise common.UsageError("give --pattern or --regex, not both")
    if pattern not in (*PATTERNS, *CLEANINGS):
        raise common.UsageError(f"unknown --pattern {pattern!r}; there are {', '.join([*PATTERNS, *CLEANINGS])}")
    return pattern if regex is None else SplitRegex(regex)


def texts_in(
    files: list[Path],
    splitting: counts.Splitting,
    field: str,
    stdin: common.StdinFormat,
    tick: Callable[[int], None] | None,
) -> Iterator[bytes]:
    """The texts in files, for counting. (Not `files=`, for the progress in bytes on disk, whose total is known.)"""
    whole, specials = splitting.keeps_texts_whole, splitting.special_tokens
    return read_texts(files, field, tick, uncuttable=specials, whole=whole, stdin=stdin)


def _weights(items: list[str] | None) -> dict[str, str]:
    """
    >>> _weights(["code=3/10", "a=b=2"])
    {'code': '3/10', 'a=b': '2'}
    """
    weights = {}
    for item in items or ():
        name, equals, weight = item.rpartition("=")
        if not equals:
            raise common.UsageError(f"--weight {item!r}: write SOURCE=WEIGHT, as in code=3/10")
        weights[name] = weight
    return weights


def _learning(report: common.Report | None) -> common.Report | None:
    """`report` without the stage of counting, which the reading of files reports itself."""
    return report and (lambda stage, done, total: None if stage == "count" else report(stage, done, total))


def _merged_ids(tok: Tokenizer) -> list[int]:
    """The ids of the entries that merges made, in the order in which they were learned."""
    model, training = tok.spec.model, tok.training or {}
    ids: list[int] = model.vocab.ids.tolist()
    return ids[len(ids) - int(training["merges"]) :]


def _render(summary: dict[str, Any]) -> None:
    amounts, speed = "", ""
    if "pieces" in summary:
        amounts = f"{summary['pieces']:,} pieces, {summary['distinct_pieces']:,} distinct"
    if summary.get("bytes") is not None:
        megabytes = summary["bytes"] / 1e6
        amounts, speed = (
            f"{megabytes:,.2f} MB in {amounts}",
            f" ({megabytes / max(summary['seconds'], 0.001):,.1f} MB/s)",
        )
    if "unknown" in summary:
        amounts += f"; {summary['unknown']:,} of {summary['known'] + summary['unknown']:,} unknown"
    pruned = summary.get("pruned", {}).get("distinct_pieces", 0)
    if pruned:
        amounts += f"; {pruned:,} rarer ones left out, {summary['pruned']['certain_merges']:,} merges certain"
    rows = (
        ("vocabulary", f"{summary['vocab_size']:,} entries, {summary['merges']:,} of them merges"),
        ("text", amounts),
        ("time", f"{summary['seconds']:,.1f} s{speed}"),
        ("first merges", "  ".join(summary["first_merges"])),
        ("written to", summary["out"]),
    )
    common.print_card([(name, value) for name, value in rows if value])
