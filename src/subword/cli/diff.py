"""`subword diff`: where two tokenizers are not the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.text import Text

from .. import differences
from ..formats import LeftOutError
from ..report.terminal import visible
from ..tokenizer import Tokenizer, load
from . import common

SHORTENED = 200
"""What is longer is cut off, but not with --all."""

IDS = 12


def diff(
    one: Annotated[str, typer.Argument(metavar="A", help="A tokenizer file or known name.", show_default=False)],
    other: Annotated[str, typer.Argument(metavar="B", help="Another one.", show_default=False)],
    everything: Annotated[
        bool, typer.Option("--all", help=f"Describe all differences, not the first {differences.MOST} of each part.")
    ] = False,
    pattern: common.PatternOpt = None,
    regex: common.RegexOpt = None,
    special: common.SpecialOpt = None,
    json: common.JsonOpt = False,
) -> None:
    """Tell where two tokenizers are not the same, with a shortest text on which each difference shows.

    Compared are the bytes of every id, merges and scores, extra tokens with their flags, normalization, split rules,
    the template, how ids decode, roles and chat templates; of any two formats and kinds. Below what differs, - is A and
    + is B. --pattern, --regex and --special are for those of the two that leave them out. --json prints {"same",
    "parts"}.

    Exit codes: 0 the same; 1 different; 2 one of them cannot be used.

    \b
    Examples:
      subword diff tokenizer.json o200k_base
      subword diff published/ finetuned/ --all | less
      subword diff a.json b.json --json | jq '.parts[] | {part, count}'
      subword diff a.json b.json > /dev/null && echo the same
    """
    said = common.left_out(pattern, regex, special)
    toks = [_loaded(name, said) for name in (one, other)]
    parts = differences.find(toks[0], toks[1], most=None if everything else differences.MOST)
    if json:
        common.print_json({"same": not parts, "parts": [part.as_data() for part in parts]})
    else:
        console = common.console()
        for line in _lines((one, other), toks, parts, everything):
            console.print(line, soft_wrap=True)
    if parts:
        raise typer.Exit(1)


def _loaded(name: str, said: dict[str, Any]) -> Tokenizer:
    """A tokenizer, told what it leaves out if it does leave it out."""
    try:
        return load(name)
    except LeftOutError:
        return load(name, **said)


def _lines(
    names: tuple[str, str], toks: list[Tokenizer], parts: list[differences.Part], everything: bool
) -> Iterator[Text]:
    for name, tok, sign, style in zip(names, toks, "-+", ("red", "green"), strict=True):
        kind = type(tok.spec.model).__name__
        yield Text(f"{sign} {name}: {kind}, {len(tok.vocab):,} entries, fingerprint {tok.fingerprint[:12]}", style)
    if not parts:
        yield Text("They are the same.", "bold")
        return
    yield Text("They differ: " + ", ".join(f"{part.name} ({part.count:,})" for part in parts), "bold")
    for part in parts:
        yield Text(f"\n{part.name}", "bold")
        for item in part.items:
            yield Text(f"  {_seen(item.what)}")
            for sign, value, style in (("-", item.one, "red"), ("+", item.other, "green")):
                for line in [] if value is None else _value(value, everything):
                    yield Text(f"    {sign} {line}", style)
            if item.shown is not None:
                yield from _shown(item.shown, everything)
        if part.count > len(part.items):
            yield Text(f"  … {part.count - len(part.items):,} more; --all has them", "dim")


def _value(value: str, everything: bool) -> list[str]:
    lines = [_seen(line) for line in value.split("\n")] or [""]
    if everything:
        return lines
    short = [line if len(line) <= SHORTENED else line[:SHORTENED] + " …" for line in lines[:6]]
    return short + [f"… {len(lines) - 6} more lines"] * (len(lines) > 6)


def _seen(text: str) -> str:
    """Text that cannot steer a terminal: invisible characters as glyphs, but for single spaces between words."""
    inner = visible(text.encode("utf-8", "surrogateescape"))
    return inner if text != text.strip(" ") or "  " in text else inner.replace("␣", " ")


def _shown(shown: differences.Shown, everything: bool) -> Iterator[Text]:
    text = visible(shown.text[: None if everything else SHORTENED]) or "(no text)"
    chars = shown.text.decode("utf-8", "ignore")
    if chars.encode() == shown.text and not chars.isascii() and len(chars) <= 8:  # which may look like others
        text += f" ({' '.join(f'U+{ord(char):04X}' for char in chars)})"
    way = {differences.ORDINARY: "", "decode": ", decoded"}.get(shown.way, f" with {shown.way}")
    yield Text.assemble("    text ", (text, "bold"), f"{way} gives ", *_both(shown, everything))


def _both(shown: differences.Shown, everything: bool) -> Iterator[Any]:
    for value, style, behind in ((shown.one, "red", " and "), (shown.other, "green", "")):
        yield (repr(visible(value)) if isinstance(value, bytes) else _listed(value, everything), style)
        yield behind


def _listed(ids: list[int], everything: bool) -> str:
    if everything or len(ids) <= IDS:
        return str(ids)
    return f"[{', '.join(map(str, ids[:IDS]))}, … {len(ids) - IDS} more]"
