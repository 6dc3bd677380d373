"""More parts of `subword audit`: code, morphology, the vocabulary and its size, mixtures of languages."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from ..audits import (
    Code,
    Morphology,
    Vocabulary,
    VocabularySize,
    builtin_passage,
    measured_ratios,
    read_morphemes,
    read_parallel,
)
from ..audits import code as measure_code
from ..audits import mixture as measure_mixture
from ..audits import morphology as measure_morphology
from ..audits import vocabulary as measure_vocabulary
from ..audits import vocabulary_size as measure_size
from ..audits import weight as weigh
from ..corpus import find_files, read_texts
from ..errors import SubwordValueError
from ..report.audits import plain
from ..report.code import code_part
from ..report.money import mixture_part
from ..report.morphology import morphology_part
from ..report.parts import Facts, Part
from ..report.vocabulary import vocabulary_part
from ..report.vocabulary_size import short, sizes_part
from ..tokenizer import load
from . import common
from .audit import audit
from .audit_common import (
    Asked,
    ParallelOpt,
    ParametersOpt,
    ReferenceOpt,
    TextsArg,
    WidthOpt,
    WindowOpt,
    command,
    source_of,
    texts_of,
)

__all__ = ["audit"]

AgainstOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--against", metavar="TOKENIZER", help="A tokenizer to compare with; may be repeated.", show_default=False
    ),
]


@command()
def code(
    asked: Asked,
    texts: TextsArg = None,
    against: AgainstOpt = None,
    field: common.FieldOpt = "text",
) -> None:
    """What code costs: indentation, naming conventions, boilerplate, comments, programming languages, data formats.

    All is measured on texts that come with the package. With --against, two tokenizers (such as a general one and one
    trained on code) are compared on TEXT, or, without, on one program in ten languages.

    \b
    Examples:
      subword audit code gpt2
      subword audit code o200k_base src/ --against cl100k_base --against tokenizer.json
    """
    tok = asked.start(Code)
    others = {each: load(each) for each in against or ()}
    files = list(read_texts(find_files(texts), field, whole=True)) if texts else []
    if texts and not files:
        raise SubwordValueError(f"{source_of(texts)}: there is no text to measure")
    found = measure_code(tok, files, name=asked.name, source=source_of(texts or []), others=others)
    asked.show(tok, found, [code_part(found)])


@command()
def morphology(
    asked: Asked,
    words: Annotated[
        Path | None,
        typer.Option("--words", metavar="FILE", help="Words by their morphemes; the built-in list if not given."),
    ] = None,
) -> None:
    """Whether words are cut where their morphemes meet: precision, recall, F1, and a MorphScore.

    A word list has a word a line, un|break|able, or the code of its language before it and a tab. The built-in one has
    fifteen words in each of ten languages; a machine wrote it.

    \b
    Examples:
      subword audit morphology tokenizer.json
      subword audit morphology o200k_base --words turkish.tsv --json
    """
    tok = asked.start(Morphology)
    if words is None:
        found = measure_morphology(tok)
    else:
        found = measure_morphology(tok, read_morphemes(words), source=words.name)
    asked.show(tok, found, [morphology_part(found)])


@command()
def vocabulary(
    asked: Asked,
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="TOKENIZER", help="A tokenizer to compare the vocabulary with."),
    ] = None,
) -> None:
    """What a vocabulary is made of, what it was learned from, and what it shares with another one.

    By script, by kind, by length; entries that differ only in capitals or spaces; the languages and kinds of text whose
    words have entries of their own.

    \b
    Examples:
      subword audit vocabulary tokenizer.json
      subword audit vocabulary o200k_base --against cl100k_base --json
    """
    tok = asked.start(Vocabulary)
    found = measure_vocabulary(tok, None if against is None else load(against), other_name=against or "")
    asked.show(tok, found, [vocabulary_part(found)])


@command()
def sizes(
    asked: Asked,
    texts: TextsArg = None,
    wanted: Annotated[
        str, typer.Option("--sizes", metavar="N,N,…", help="Vocabularies to train on TEXT.")
    ] = "1k,2k,4k,8k,16k,32k,64k,128k",
    width: WidthOpt = 4096,
    tied: Annotated[bool, typer.Option("--tied", help="One table serves for input and output.")] = False,
    parameters: ParametersOpt = None,
    window: WindowOpt = 128_000,
    field: common.FieldOpt = "text",
) -> None:
    """How large a vocabulary should be: what its entries cost a model, and what they save on a text.

    Tables, output layer, share of the model, and what the published scaling law holds best. With TEXT, vocabularies of
    other sizes, cut from one training on it, stand beside the tokenizer.

    \b
    Examples:
      subword audit sizes o200k_base --width 12288
      subword audit sizes tokenizer.json corpus/ --sizes 8k,16k,32k,64k --width 4096 --parameters 8b --html sizes.html
    """
    learned = tuple(common.parse_size(each) for each in wanted.split(",") if each.strip())
    if not learned or min(learned) < 256:
        raise common.UsageError(f"--sizes {wanted}: write sizes of at least 256, with commas between: 8k,16k,32k")
    tok = asked.start(VocabularySize)
    data = texts_of(tok, texts, field)
    if texts and not data:
        raise SubwordValueError(f"{source_of(texts)}: there is no text to learn from")
    found = measure_size(
        tok, data, name=asked.name, source=source_of(texts or []), sizes=learned, width=width,
        tied=tied, parameters=parameters, window=window,
    )  # fmt: skip
    asked.show(tok, found, [sizes_part(found)])


@audit.command()
def mixture(
    tokenizer: Annotated[
        str | None,
        typer.Argument(metavar="[TOKENIZER]", help="To measure ratios with that are not given.", show_default=False),
    ] = None,
    share: Annotated[
        list[str] | None,
        typer.Option(
            "--share", metavar="CODE=SHARE[:RATIO]", help="A language of the mixture; repeat it.", show_default=False
        ),
    ] = None,
    better: Annotated[
        list[str] | None,
        typer.Option("--better", metavar="CODE=RATIO", help="Its ratio with a better tokenizer.", show_default=False),
    ] = None,
    against: Annotated[
        str | None, typer.Option("--against", metavar="TOKENIZER", help="A tokenizer to measure better ratios with.")
    ] = None,
    entries: Annotated[
        int | None,
        typer.Option(
            "--entries",
            metavar="N",
            parser=common.parse_size,
            help="How many more entries the better one has.",
            show_default=False,
        ),
    ] = None,
    width: WidthOpt = 4096,
    parallel: ParallelOpt = None,
    reference: ReferenceOpt = "eng",
    json: common.JsonOpt = False,
) -> None:
    """What content in several languages costs on average, and what a better tokenizer saves.

    A share is in parts or in percent. A ratio is the tokens that a language takes for what takes one token in the
    language of reference; where none is given, TOKENIZER measures it on the parallel texts. --entries says what more
    entries cost: so many rows of --width numbers in each of the model's two tables.

    \b
    Examples:
      subword audit mixture --share en=40:1 --share hi=30:1.3 --share ja=30:3 --better ja=1.5 --entries 30k
      subword audit mixture gpt2 --share eng=70 --share jpn=30 --against o200k_base
    """
    parts = [_named(each, "--share", "CODE=SHARE or CODE=SHARE:RATIO") for each in share or ()]
    if not parts:
        raise common.UsageError("no mixture: give --share CODE=SHARE at least once, as in --share eng=70")
    codes = [code for code, _ in parts]
    if twice := [code for code in codes if codes.count(code) > 1]:
        raise common.UsageError(f"--share {twice[0]} is there twice")
    shares = {code: _number(value.partition(":")[0], "--share", code) for code, value in parts}
    ratios = {code: _number(value.partition(":")[2], "--share", code) for code, value in parts if ":" in value}
    given = {
        code: _number(value, "--better", code)
        for code, value in (_named(each, "--better", "CODE=RATIO") for each in better or ())
    }
    missing = [code for code in shares if code not in ratios]
    if (missing or against is not None) and tokenizer is None:
        what = f"no ratio for {', '.join(missing)}" if missing else "--against compares with a tokenizer"
        raise common.UsageError(f"{what}: name a TOKENIZER to measure with, or write --share CODE=SHARE:RATIO")
    others = dict(given)
    if tokenizer is not None and (missing or against is not None):
        collection = builtin_passage() if parallel is None else read_parallel(parallel, reference)
        tok = load(tokenizer)
        ratios |= measured_ratios(tok, collection, missing)
        if against is not None:
            others = measured_ratios(load(against), collection, shares, tok) | given
    found = measure_mixture(shares, ratios, others if better or against is not None else None)
    more = None if entries is None else weigh(entries, width)
    if json:
        common.print_json(plain({"mixture": found, "more_entries": more}))
        return
    page = [mixture_part(found)]
    if more is not None:
        table, tables = f"{short(more.table)} numbers", f"{short(more.tables)} numbers, {short(more.bytes)}B"
        rows = (("more entries", f"{entries:,} × {width:,} = {table}"), ("both tables", tables))
        page.append(Part("What the entries cost", (Facts(rows),)))
    common.print_parts(page)


def _named(text: str, option: str, form: str) -> tuple[str, str]:
    code, equals, value = text.partition("=")
    if not (code.strip() and equals and value.strip()):
        raise common.UsageError(f"{option} {text!r}: write {form}")
    return code.strip(), value.strip()


def _number(text: str, option: str, code: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise common.UsageError(f"{option} {code}: {text!r} is not a number greater than 0")
    return value
