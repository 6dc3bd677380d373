"""`subword train`: learn a tokenizer from files."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer

from .. import counting, counts, training
from ..arguments import byte_count
from ..bert import CLEANINGS
from ..corpus import find_files, size_on_disk
from ..corpus.utf8 import ERRORS
from ..patterns import PATTERNS
from ..report.terminal import visible
from ..report.training import curve_line, training_page
from ..spec import SplitRegex
from ..tokenizer import Tokenizer
from ..training_baselines import BASELINES, RULES
from ..training_wordpiece import CRITERIA
from ..writing import replacing
from . import common
from .train_sentencepiece import MODEL_TYPES, first_entries
from .train_sentencepiece import check as check_kind
from .train_sentencepiece import train as train_sentencepiece

Algorithm: TypeAlias = Literal[
    "bpe",
    "wordpiece",
    "unigram",
    "sentencepiece-bpe",
    "sentencepiece-word",
    "sentencepiece-char",
    "word",
    "rules",
    "character",
    "byte",
]
TieRule: TypeAlias = Literal["smallest-ids", "first-seen", "largest-string"]
Normalization: TypeAlias = Literal["NFC", "NFD", "NFKC", "NFKD"]
Unit: TypeAlias = Literal["byte", "character"]
ByteOrder: TypeAlias = Literal["value", "gpt2"]

DigitGroups: TypeAlias = Literal["pattern", "one", "three-left", "three-right"]

Errors: TypeAlias = Literal["keep", "strict", "replace"]

TIE_RULES = ", ".join(training.TIE_RULES)
MOST_NAMES = 20
"""So many names of files stand in a report."""

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
ProcessesOpt = Annotated[
    int,
    typer.Option("--processes", metavar="N", min=1, help="How many processes count; they share out the threads."),
]
MemoryOpt = Annotated[
    str | None,
    typer.Option("--memory", metavar="SIZE", help="How much memory counts may take, as in 2GB; the rest goes to disk."),
]

TieRuleOpt = Annotated[
    TieRule,
    typer.Option(
        "--tie-rule",
        metavar="NAME",
        parser=common.one_of(*training.TIE_RULES),
        help=f"Which of equally frequent pairs goes first: {TIE_RULES}.",
    ),
]
WeightOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--weight",
        metavar="SOURCE=WEIGHT",
        show_default=False,
        help="Multiply the counts of a source, as in code=3/10; may be repeated. For --counts.",
    ),
]
MinCountOpt = Annotated[
    int, typer.Option("--min-count", metavar="N", min=1, help="Leave out pieces that are counted less often.")
]
ErrorsOpt = Annotated[
    Errors,
    typer.Option(
        "--errors",
        metavar="|".join(ERRORS),
        parser=common.one_of(*ERRORS),
        help="Bytes that are not UTF-8: kept, an error, or U+FFFD in their place.",
    ),
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
    sizes: Annotated[
        str | None,
        typer.Option(
            "--sizes",
            metavar="SIZE,…",
            show_default=False,
            help="Several sizes from one training, instead of --vocab-size: as in 8k,16k,32k. Each gets a file.",
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
        Algorithm,
        typer.Option(
            "--algorithm",
            metavar="NAME",
            parser=common.one_of("bpe", "wordpiece", *MODEL_TYPES, *BASELINES),
            help=f"Which model: bpe, wordpiece; as SentencePiece has them: {', '.join(MODEL_TYPES)}; without merges, "
            f"for comparison: {', '.join(BASELINES)}.",
        ),
    ] = "bpe",
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            show_default=False,
            help="An option of SentencePiece's by its name, as in character_coverage=0.9999; may be repeated. For "
            "unigram and sentencepiece-*.",
        ),
    ] = None,
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
    tie_rule: TieRuleOpt = "smallest-ids",
    byte_order: Annotated[
        ByteOrder,
        typer.Option(
            "--byte-order",
            metavar="value|gpt2",
            parser=common.one_of(*training.BYTE_ORDERS),
            help="Which byte gets which of the ids 0 to 255.",
        ),
    ] = "value",
    weight: WeightOpt = None,
    min_count: MinCountOpt = 1,
    max_token_bytes: Annotated[
        int | None, typer.Option("--max-token-bytes", metavar="N", min=1, help="Make no token that is longer.")
    ] = None,
    initial: Annotated[
        list[str] | None,
        typer.Option(
            "--initial",
            metavar="TOKEN",
            show_default=False,
            help="A token to have from the start; may be repeated.",
        ),
    ] = None,
    initial_file: Annotated[
        Path | None,
        typer.Option("--initial-file", metavar="FILE", show_default=False, help="Such tokens, one a line."),
    ] = None,
    limit_alphabet: Annotated[
        int | None,
        typer.Option(
            "--limit-alphabet",
            metavar="N",
            min=1,
            help="Keep the N most frequent characters; for --unit character.",
        ),
    ] = None,
    keep_whole_characters: Annotated[
        bool,
        typer.Option("--keep-whole-characters", help="Learn no token that holds part of a character; for --unit byte."),
    ] = False,
    memory: MemoryOpt = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint",
            metavar="FILE",
            show_default=False,
            help="Keep the merges so far in this file; the same command goes on from there if it was stopped.",
        ),
    ] = None,
    threads: common.ThreadsOpt = None,
    processes: ProcessesOpt = 1,
    field: common.FieldOpt = "text",
    errors: ErrorsOpt = "keep",
    stdin_format: common.StdinOpt = "text",
    report_to: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="Write a page about the training as well: one .html file."),
    ] = None,
    force: common.ForceOpt = False,
    progress: common.ProgressOpt = "auto",
    json: common.JsonOpt = False,
) -> None:
    """Train a tokenizer on text.

    The same text gives the same tokenizer, for any number of threads.

    With --sizes the name that --out gives gets each size as it is written, at {size} or before the suffix: tok-8k.json.
    Each file is what a training of that size alone would give.

    \b
    Examples:
      subword train corpus/ --vocab-size 32k --out tokenizer.json
      subword train "data/*.jsonl.zst" --field content -v 50_000 -o tok.json
      subword train book.txt -v 1000 -o tok.json --special "<|endoftext|>"
      subword train corpus/ --preset llama3 -o tokenizer.json
      zcat dump.gz | subword train - -v 8k -o tok.json --pattern cl100k
      subword train corpus/ --sizes 8k,16k,32k -o "tok-{size}.json" --checkpoint tok.checkpoint
      subword train --counts code.parquet --counts web.parquet --weight code=3/10 -v 32k -o tok.json
      subword train corpus/ -v 30k -o vocab.txt --algorithm wordpiece --pattern bert-uncased --special "[MASK]"
      subword train corpus/ -v 32k -o spm.model --algorithm sentencepiece-bpe --set normalization_rule_name=nmt_nfkc
      subword train corpus/ -v 32k -o unigram.model --algorithm unigram --set user_defined_symbols="<sep>,<cls>"
      subword train corpus/ -v 50k -o words.subword --algorithm word
      subword train book.txt -v 8k -o tok.subword --pattern spaces --unit character --end-of-word "</w>"
    """
    check_inputs(files, counted, weight, needs_text=algorithm != "byte")
    if counted and processes > 1:
        raise common.UsageError("--processes is for reading files; --counts has been counted")
    if counted and errors != "keep":
        raise common.UsageError("--errors is for reading files; --counts has been counted: say it to count-pieces")
    if sizes is not None and vocab_size is not None:
        raise common.UsageError("give --vocab-size or --sizes, not both")
    common.check_tokenizer_out(out, force=True)

    def is_given(option: str) -> bool:
        source = ctx.get_parameter_source(option)
        return source is not None and source.name == "COMMANDLINE"

    check_kind(algorithm, out, filter(is_given, ctx.params))
    if algorithm in BASELINES and (sizes is not None or report_to is not None):
        raise common.UsageError(f"--sizes and --report are about merges, and {algorithm} has none")
    outs = {out: None} if sizes is None else _outs(out, sizes)
    for path in outs:
        common.check_tokenizer_out(path, force)
    if checkpoint is not None:
        common.check_out(checkpoint, force=True)
    if report_to is not None:
        if report_to.suffix.lower() not in (".html", ".htm"):
            raise common.UsageError(f"--report {report_to}: a report is an .html file; the name must say so")
        common.check_out(report_to, force)
    arguments: dict[str, Any] = {
        "vocab_size": vocab_size if sizes is None else max(size or 0 for size in outs.values()),
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
        "max_token_bytes": max_token_bytes,
        "initial": [*(initial or ()), *(_lines_of(initial_file) if initial_file else ())],
        "limit_alphabet": limit_alphabet,
        "keep_whole_characters": keep_whole_characters,
        "memory": memory,
        "checkpoint": checkpoint,
    }

    for name, value in training.PRESETS[preset].items() if preset else ():
        of_sizes = name == "vocab_size" and sizes is not None
        if not of_sizes and not is_given({"special_tokens": "special", "bos_token": "bos"}.get(name, name)):
            arguments[name] = value
    if algorithm == "wordpiece" and not is_given("pattern") and regex is None and not preset:
        arguments["pattern"] = "bert-cased"
    if algorithm == "rules":
        arguments["pattern"] = RULES if not is_given("pattern") and regex is None else arguments["pattern"]
    if arguments["vocab_size"] is None and algorithm not in (*BASELINES, "sentencepiece-word", "sentencepiece-char"):
        raise common.UsageError("give --vocab-size, or a --preset that has one")
    if sizes is not None and unit == "byte":
        tokens = {token for token in (*arguments["special_tokens"], bos, eos, pad) if token}
        training.check_size(min(size or 0 for size in outs.values()), training.ALL_BYTES, 0, sorted(tokens))
    started = time.perf_counter()
    if algorithm in MODEL_TYPES:
        roles = {"bos": bos, "eos": eos, "pad": pad}
        tok = train_sentencepiece(
            algorithm,
            files or (),
            counted,
            vocab_size,
            special,
            roles,
            set_,
            memory,
            threads,
            field,
            errors,
            stdin_format,
            progress,
        )
    elif counted:
        for name in ("pattern", "digits"):  # what the tables say, unless something else is said here
            if not is_given(name) and not (name == "pattern" and regex is not None) and not preset:
                arguments[name] = None
        with common.progress(how=progress) as report:
            tok = training.train(
                counts=counted, weights=weights_of(weight), **arguments, threads=threads, progress=learning(report)
            )
    else:
        found = find_files(files or ())
        specials = tuple(dict.fromkeys(token for token in [*arguments["special_tokens"], bos, eos, pad] if token))
        splitting = counts.Splitting(arguments["pattern"], digits, normalization, specials)
        limit = None if memory is None else byte_count("--memory", memory)
        with common.progress(how=progress) as report, common.ticking("count", size_on_disk(found), report) as tick:
            # (Not `files=`, for the progress in bytes on disk, whose total is known.)
            texts = chain.from_iterable(counting.texts_in(found, splitting, field, limit, tick, stdin_format, errors))
            how: dict[str, Any] = {"texts": texts, "progress": learning(report)}
            if processes > 1:
                how = {"files": found, "field": field, "errors": errors, "processes": processes, "progress": report}
            tok = training.train(**how, **arguments, threads=threads)
    written = {}
    for path, size in sorted(
        outs.items(), key=lambda item: item[1] or 0, reverse=True
    ):  # a size too small costs no other
        one = tok if size is None else tok.cut(size)
        one.save(path)
        written[path] = {"out": str(path), "vocab_size": len(one.vocab), "fingerprint": one.fingerprint}
    summary: dict[str, Any] = {
        **({"out": str(out)} if sizes is None else {"sizes": [written[path] for path in outs]}),
        **(tok.training or {}),
        "seconds": round(time.perf_counter() - started, 3),
        "report": None if report_to is None else str(report_to),
        **(
            {"first_entries": first_entries(tok, 24)}
            if algorithm in MODEL_TYPES
            else {"first_merges": [visible(tok.token_bytes(id)) for id in _merged_ids(tok)[:24]]}
        ),
        "fingerprint": tok.fingerprint,
    }
    if report_to is not None:
        with replacing(str(report_to), "a report") as file:
            file.write(training_page(tok, out.name, _about(summary, counted or files or (), memory)).encode())
    common.print_json(summary) if json else _render(summary)


def _about(summary: dict[str, Any], inputs: Sequence[Path | str], memory: str | None) -> dict[str, str]:
    """What the report says of a run besides what the tokenizer knows."""
    names = list(map(str, inputs))
    return {
        "read": ", ".join(names[:MOST_NAMES])
        + (f" and {len(names) - MOST_NAMES:,} more" if names[MOST_NAMES:] else ""),
        "memory": memory or "",
        "time": f"{summary['seconds']:,.1f} s{_speed(summary)}",
        "written to": "  ".join(_written(summary)),
    }


def _written(summary: dict[str, Any]) -> list[str]:
    return [row["out"] for row in summary.get("sizes", [summary])]


def _outs(out: Path, sizes: str) -> dict[Path, int | None]:
    """Where the tokenizer of each size goes.

    >>> _outs(Path("tok.json"), "8k, 16000")
    {PosixPath('tok-8k.json'): 8000, PosixPath('tok-16000.json'): 16000}
    """
    outs: dict[Path, int | None] = {}
    suffix = next(suffix for suffix in common.SUFFIXES if out.name.lower().endswith(suffix))
    stem = out.name[: len(out.name) - len(suffix)]
    pattern = out.name if "{size}" in out.name else f"{stem}-{{size}}{out.name[len(stem) :]}"
    for text in map(str.strip, sizes.split(",")):
        try:
            size = common.parse_size(text)
        except typer.BadParameter as error:
            raise common.UsageError(f"--sizes {sizes}: {error.message}") from None
        if size in outs.values():
            raise common.UsageError(f"--sizes {sizes}: {size} is there twice")
        outs[out.with_name(pattern.replace("{size}", text))] = size
    return outs


def pattern_of(pattern: str, regex: str | None) -> str | SplitRegex:
    """What `--pattern` and `--regex` mean."""
    if regex is not None and pattern != "o200k":
        raise common.UsageError("give --pattern or --regex, not both")
    if pattern not in (*PATTERNS, *CLEANINGS):
        raise common.UsageError(f"unknown --pattern {pattern!r}; there are {', '.join([*PATTERNS, *CLEANINGS])}")
    return pattern if regex is None else SplitRegex(regex)


def _lines_of(path: Path) -> list[bytes]:
    """The lines that are not empty, white space and all, without their ends."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise common.UsageError(f"--initial-file {path}: {error.strerror}") from None
    return [line for line in data.replace(b"\r\n", b"\n").split(b"\n") if line]


def check_inputs(
    files: list[str] | None, counted: list[Path] | None, weight: list[str] | None, needs_text: bool = True
) -> None:
    """Refuse what does not say from what to learn."""
    if needs_text and not files and not counted:
        raise common.UsageError("no text: give files, or --counts with what count-pieces wrote")
    if files and counted:
        raise common.UsageError("give files or --counts, not both")
    if weight and not counted:
        raise common.UsageError("--weight goes with --counts: count each source with count-pieces --source first")


def weights_of(items: list[str] | None) -> dict[str, str]:
    """What `--weight` says.

    >>> weights_of(["code=3/10", "a=b=2"])
    {'code': '3/10', 'a=b': '2'}
    """
    weights = {}
    for item in items or ():
        name, equals, weight = item.rpartition("=")
        if not equals:
            raise common.UsageError(f"--weight {item!r}: write SOURCE=WEIGHT, as in code=3/10")
        weights[name] = weight
    return weights


def learning(report: common.Report | None) -> common.Report | None:
    """`report` without the stage of counting, which the reading of files reports itself."""
    return report and (lambda stage, done, total: None if stage == "count" else report(stage, done, total))


def _merged_ids(tok: Tokenizer) -> list[int]:
    """The ids of the entries that merges made, in the order in which they were learned."""
    model, training = tok.spec.model, tok.training or {}
    ids: list[int] = model.vocab.ids.tolist()
    return ids[len(ids) - int(training["merges"]) :]


def _speed(summary: dict[str, Any]) -> str:
    if summary.get("bytes") is None:
        return ""
    return f" ({summary['bytes'] / 1e6 / max(summary['seconds'], 0.001):,.1f} MB/s)"


def _render(summary: dict[str, Any]) -> None:
    amounts = ""
    if "pieces" in summary:
        amounts = f"{summary['pieces']:,} pieces, {summary['distinct_pieces']:,} distinct"
    if "words" in summary:
        amounts = f"{summary['words']:,} words, {summary['distinct_words']:,} distinct"
        if summary["characters_left_out"]:
            amounts += f"; {summary['characters_left_out']:,} rare characters without an entry"
    if summary.get("bytes") is not None:
        amounts = f"{summary['bytes'] / 1e6:,.2f} MB in {amounts}"
    if "unknown" in summary:
        amounts += f"; {summary['unknown']:,} of {summary['known'] + summary['unknown']:,} unknown"
    pruned = summary.get("pruned", {}).get("distinct_pieces", 0)
    if pruned:
        amounts += f"; {pruned:,} rarer ones left out, {summary['pruned']['certain_merges']:,} merges certain"
    merges = summary.get("merges")
    rows = (
        ("vocabulary", f"{summary['vocab_size']:,} entries" + (f", {merges:,} of them merges" if merges else "")),
        ("text", amounts),
        ("tokens", curve_line(summary)),
        ("time", f"{summary['seconds']:,.1f} s{_speed(summary)}"),
        ("first merges", "  ".join(summary.get("first_merges", ()))),
        ("first entries", "  ".join(summary.get("first_entries", ()))),
        ("written to", " and ".join([*_written(summary), *filter(None, [summary["report"]])])),
    )
    common.print_card([(name, value) for name, value in rows if value])
