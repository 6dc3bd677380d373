"""`subword doctor`: a tokenizer beside the library that it came from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.text import Text

from .. import doctor as checkups
from ..report.terminal import RULE, visible
from . import common

IDS = 20
"""So many ids, and bytes of a text times ten, are shown of what differs."""


def doctor(
    tokenizer: common.TokenizerArg,
    files: common.FilesArg = None,
    text: common.TextOpt = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="LIB",
            parser=common.one_of(*checkups.LIBRARIES),
            help=f"The library: {', '.join(checkups.LIBRARIES)}; by default the one of the kind of file.",
            show_default=False,
        ),
    ] = None,
    speed: Annotated[bool, typer.Option("--speed/--no-speed", help="Time the two, too.")] = True,
    field: common.FieldOpt = "text",
    stdin_format: common.StdinOpt = "text",
    pattern: common.PatternOpt = None,
    regex: common.RegexOpt = None,
    special: common.SpecialOpt = None,
    json: common.JsonOpt = False,
) -> None:
    """Check a tokenizer against the library that it came from, on text of your own.

    Both encode each text, with special tokens taken from it and the template around it as that library does by default,
    and decode the ids. The first difference is shown on a text of which nothing can be left out. Without files or
    --text, on texts that are meant to hurt, and on every entry of the vocabulary. Then both are timed on up to a
    megabyte of the text, in turns, on one thread. --json prints all of it.

    Exit codes: 0 the same; 1 different; 2 it cannot be checked, as when the library is not installed.

    \b
    Examples:
      subword doctor tokenizer.json
      subword doctor tokenizer.json book.txt corpus/*.jsonl.zst --field content
      subword doctor spiece.model --against sentencepiece --text "How is this cut?"
      git diff | subword doctor cl100k_base - --no-speed
    """
    texts = None
    if files or text is not None:
        source = common.Input(files, text, field, stdin_format)
        documents = source.documents(whole=True)
        texts = [b"".join(document.parts).decode("utf-8", "replace") for document in documents]
    said = common.left_out(pattern, regex, special)
    found = checkups.check(tokenizer, texts, against, said=said, speed=speed)
    if json:
        common.print_json(_data(found))
    else:
        for line in _lines(tokenizer, found, texts is None):
            common.console().print(line, soft_wrap=True)
    if found.difference is not None:
        raise typer.Exit(1)


def _data(found: checkups.Checkup) -> dict[str, Any]:
    peer = found.peer
    return {
        "same": found.difference is None,
        "against": peer.name,
        "version": peer.version,
        "reads": peer.reads,
        "texts": found.texts,
        "bytes": found.bytes,
        "difference": None if found.difference is None else found.difference._asdict(),
        "failures": found.failures[0],
        "first_failure": found.failures[1] or None,
        "speed": None if found.speed is None else found.speed._asdict(),
    }


def _lines(name: str, found: checkups.Checkup, built_in: bool) -> Iterator[Text]:
    peer = found.peer
    yield Text(f"{name} against {peer.name} {peer.version}, which reads {peer.reads}")
    kind = f"{found.texts:,} built-in texts and entries" if built_in else _texts(found.texts)
    on = f"{kind}, {found.bytes:,} bytes"
    if found.difference is None:
        yield Text(f"The same on {on}.", "bold green")
    else:
        yield from _difference(found.difference, found.texts)
    count, first = found.failures
    if count:
        yield Text(f"{peer.name} itself failed on {count:,} of them, first with {common.one_line(first)}", "yellow")
    if found.speed is not None:
        yield from _speed(found.speed, peer.name, built_in)


def _difference(difference: checkups.Difference, texts: int) -> Iterator[Text]:
    yield Text(f"Different, in {difference.what}, on text {texts:,}. The shortest text that shows it:", "bold red")
    chars = difference.text
    shown = visible(chars[: IDS * 10].encode("utf-8", "surrogatepass")) + (" …" if len(chars) > IDS * 10 else "")
    if not chars.isascii() and len(chars) <= 8:  # which may look like others
        shown += f" ({' '.join(f'U+{ord(char):04X}' for char in chars)})"
    yield Text.assemble("  text    ", (shown or "(no text)", "bold"))
    for who, value, pieces, style in (
        ("subword", difference.ours, difference.our_pieces, "green"),
        ("library", difference.theirs, difference.their_pieces, "red"),
    ):
        if isinstance(value, str):
            yield Text.assemble(f"  {who} ", (visible(value.encode("utf-8", "surrogatepass")), style))
            continue
        more = f" … {len(value):,} in all" if len(value) > IDS else ""
        spelled = RULE.join(visible(piece.encode("utf-8", "surrogatepass")) for piece in pieces[:IDS])
        yield Text.assemble(f"  {who} ", (f"{' '.join(map(str, value[:IDS]))}{more}   {spelled}", style))


def _speed(speed: checkups.Speed, name: str, built_in: bool) -> Iterator[Text]:
    of = "of the built-in passage in many languages" if built_in else "of the same texts"
    how = f"{_texts(speed.texts)} by themselves, one thread, ids as lists; warm is the best of {speed.rounds} rounds"
    yield Text(f"Speed, on {speed.bytes:,} bytes {of}, {how} in turns:", "dim")
    width = max(len(name), len("subword"))
    yield Text(f"  {'':{width}}  {'load':>8}  {'cold':>12}  {'warm':>12}")
    for who, load, cold, warm in (
        ("subword", speed.our_load, speed.our_cold, speed.our_warm),
        (name, speed.their_load, speed.their_cold, speed.their_warm),
    ):
        yield Text(f"  {who:{width}}  {load:>6.2f} s  {cold:>7.1f} MB/s  {warm:>7.1f} MB/s")


def _texts(count: int) -> str:
    return "1 text" if count == 1 else f"{count:,} texts"
