"""`subword audit`: what a tokenizer costs, whom, and how it cuts text. Each part of the report is a command, too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from ..audits import (
    Code,
    Collection,
    Efficiency,
    Fairness,
    Language,
    Letters,
    Morphology,
    Numbers,
    Security,
    Tokens,
    Vocabulary,
    VocabularySize,
    builtin_passage,
    read_parallel,
)
from ..audits import code as measure_code
from ..audits import efficiency as measure_efficiency
from ..audits import fairness as measure_fairness
from ..audits import letters as measure_letters
from ..audits import morphology as measure_morphology
from ..audits import numbers as measure_numbers
from ..audits import security as measure_security
from ..audits import tokens as measure_tokens
from ..audits import vocabulary as measure_vocabulary
from ..audits import vocabulary_size as measure_size
from ..audits.efficiency import ALPHA
from ..report import audits as report
from ..report.code import code_part
from ..report.morphology import morphology_part
from ..report.parts import Part
from ..report.security import security_part
from ..report.tokens import tokens_part
from ..report.vocabulary import vocabulary_part
from ..report.vocabulary_size import sizes_part
from ..tokenizer import Tokenizer
from . import common
from .audit_common import (
    WHOLE,
    Asked,
    ParallelOpt,
    ParametersOpt,
    PriceOpt,
    ReferenceOpt,
    TextsArg,
    WidthOpt,
    WindowOpt,
    audit,
    command,
    source_of,
    texts_of,
)

__all__ = ["audit"]

PARTS: dict[str, Any] = {
    "vocabulary": int, "efficiency": tuple[Efficiency, ...], "fairness": Fairness, "numbers": Numbers,
    "letters": Letters, "code": Code, "morphology": Morphology, "entries": Vocabulary, "size": VocabularySize,
    "tokens": Tokens, "security": Security,
}  # fmt: skip
"""What the whole report holds."""

AlphaOpt = Annotated[float, typer.Option("--alpha", metavar="X", min=0, help="The order of Rényi efficiency.")]
BesideOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--beside", metavar="FILE", help="Text of another domain, to stand beside; may be repeated.", show_default=False
    ),
]


@command(WHOLE)
def report_(
    asked: Asked,
    texts: TextsArg = None,
    parallel: ParallelOpt = None,
    reference: ReferenceOpt = "eng",
    window: WindowOpt = 128_000,
    price: PriceOpt = None,
    width: WidthOpt = 4096,
    parameters: ParametersOpt = None,
    beside: BesideOpt = None,
    alpha: AlphaOpt = ALPHA,
    field: common.FieldOpt = "text",
) -> None:
    """The whole report: efficiency on the texts, if there are any, fairness across languages, numbers, letters, code,
    morphology, the vocabulary, broken and risky tokens, security, and what the vocabulary costs a model.

    \b
    Examples:
      subword audit o200k_base
      subword audit tokenizer.json book.txt --beside src/ --html audit.html
    """
    passage = passage_of(parallel, reference)
    tok = asked.start(
        PARTS if texts or beside else {**PARTS, "efficiency": None}, {"fairness.languages": codes(passage)}
    )
    data: dict[str, Any] = {"tokenizer": asked.name, "fingerprint": tok.fingerprint, "vocabulary": len(tok.vocab)}
    parts: list[Part] = []
    held = texts_of(tok, texts, field)
    if texts or beside:
        found = efficiency_of(tok, held, texts, beside, field, alpha)
        data["efficiency"] = found
        parts.append(report.efficiency_part(found))
    fair = measure_fairness(tok, passage, window=window, price=price)
    cut, spelt = measure_numbers(tok), measure_letters(tok)
    programs, words = measure_code(tok, name=asked.name), measure_morphology(tok)
    entries = measure_vocabulary(tok)
    size = measure_size(
        tok, held, name=asked.name, source=source_of(texts or []), width=width, parameters=parameters, window=window
    )
    data |= {"fairness": fair, "numbers": cut, "letters": spelt, "code": programs, "morphology": words}
    data |= {"entries": entries, "size": size}
    broken, risks = measure_tokens(tok, held), measure_security(tok, held)
    data |= {"tokens": broken, "security": risks}
    parts += [report.fairness_part(fair), report.numbers_part(cut), report.letters_part(spelt), code_part(programs)]
    parts += [morphology_part(words), vocabulary_part(entries), tokens_part(broken), security_part(risks)]
    parts += [sizes_part(size)]
    asked.show(tok, data, parts, brief=True)


@command()
def efficiency(
    asked: Asked,
    texts: TextsArg = None,
    beside: BesideOpt = None,
    alpha: AlphaOpt = ALPHA,
    field: common.FieldOpt = "text",
) -> None:
    """How much text a token holds, how evenly the vocabulary is used, which words are cut up at the greatest cost.

    --json prints a list: an object for the texts, and one for each --beside.

    \b
    Examples:
      subword audit efficiency tokenizer.json book.txt
      subword audit efficiency tokenizer.json prose/ --beside src/ --beside german.txt
    """
    if not texts and not beside:
        raise common.UsageError("no text: give files, folders, or - for standard input")
    tok = asked.start(PARTS["efficiency"])
    found = efficiency_of(tok, texts_of(tok, texts, field), texts, beside, field, alpha)
    asked.show(tok, found, [report.efficiency_part(found)])


@command()
def fairness(
    asked: Asked,
    parallel: ParallelOpt = None,
    reference: ReferenceOpt = "eng",
    window: WindowOpt = 128_000,
    price: PriceOpt = None,
) -> None:
    """What the same content costs in different languages: tokens, premium, context, price.

    A premium is how many times as many tokens a language takes as English (or as --reference). --json prints a list
    with an object a language, from the smallest premium to the greatest.

    \b
    Examples:
      subword audit fairness tokenizer.json
      subword audit fairness cl100k_base --parallel flores200_dataset/ --json
      subword audit fairness tokenizer.json --parallel udhr/ --window 200k --price 2.50
    """
    passage = passage_of(parallel, reference)
    tok = asked.start(tuple[Language, ...], {"": codes(passage)})
    found = measure_fairness(tok, passage, window=window, price=price)
    asked.show(tok, found.languages, [report.fairness_part(found)])


@command()
def numbers(
    asked: Asked,
) -> None:
    """How numbers are cut: is each cut as the next one is, and do the pieces keep to place value?

    \b
    Examples:
      subword audit numbers gpt2
      subword audit numbers tokenizer.json --json
    """
    tok = asked.start(Numbers)
    found = measure_numbers(tok)
    asked.show(tok, found, [report.numbers_part(found)])


@command()
def letters(
    asked: Asked,
) -> None:
    """Which tokens hold which letters, what reversal does to them, whether rhymes show.

    \b
    Examples:
      subword audit letters o200k_base
      subword audit letters tokenizer.json --json
    """
    tok = asked.start(Letters)
    found = measure_letters(tok)
    asked.show(tok, found, [report.letters_part(found)])


def efficiency_of(
    tok: Tokenizer,
    held: list[bytes],
    texts: Sequence[str] | None,
    beside: Sequence[str] | None,
    field: str,
    alpha: float,
) -> list[Efficiency]:
    groups = [(source_of(texts), held)] if texts else []
    groups += [(source_of([each]), texts_of(tok, [each], field)) for each in beside or ()]
    return [measure_efficiency(tok, parts, source=source, alpha=alpha) for source, parts in groups]


def passage_of(parallel: str | None, reference: str) -> Collection:
    return builtin_passage() if parallel is None else read_parallel(parallel, reference)


def codes(passage: Collection) -> list[str]:
    return [row.language for row in passage.texts]
