#!/usr/bin/env python3
"""What short texts come to in tokens: prose, a question about letters, code, long numbers, French, Japanese.

Offline, with a tokenizer that is on this machine (a file, or a known name):

    python examples/count_tokens.py o200k_base

or as a provider counts, which takes its package and your key in ANTHROPIC_API_KEY:

    python examples/count_tokens.py --provider anthropic --model MODEL
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from rich.console import Console
from rich.table import Table
from rich.text import Text

import subword
from subword.provider import PROVIDERS, Provider
from subword.report.terminal import coloured_tokens

TEXTS = {
    "prose": "The old lighthouse keeper climbed the stairs each evening, counting every one of them aloud.",
    "letters": "How many times does the letter r occur in the word strawberry?",
    "Python": "def mean(values):\n    total = sum(values)\n    return total / len(values) if values else None\n",
    "numbers": "31415926535897932384626433 + 27182818284590452353602874 = 58598744820488384738229307",
    "French": "Le vieux gardien du phare montait l'escalier chaque soir en comptant les marches à voix haute.",
    "Japanese": "年老いた灯台守は毎晩、一段ずつ声に出して数えながら階段を上った。",
}


def main() -> int:
    parser = argparse.ArgumentParser(description="Count the tokens of a few texts.")
    parser.add_argument("tokenizer", nargs="?", default="o200k_base", help="a tokenizer file or known name")
    parser.add_argument("--provider", choices=PROVIDERS, help="ask a provider instead")
    parser.add_argument("--model", help="the provider's model")
    args = parser.parse_args()
    if args.provider and not args.model:
        parser.error("--provider needs --model")

    provider = Provider(args.provider, args.model) if args.provider else None
    tok = None if provider else subword.load(args.tokenizer)
    count: Callable[[str], int] = provider.count if provider else tok.count  # type: ignore[union-attr]

    console = Console(highlight=False, markup=False, emoji=False)
    table = Table(title=f"Tokens of {args.model if provider else args.tokenizer}")
    table.add_column("text")
    for heading in ("characters", "bytes", "tokens", "bytes/token"):
        table.add_column(heading, justify="right")
    for name, text in TEXTS.items():
        tokens, size = count(text), len(text.encode())
        table.add_row(name, str(len(text)), str(size), str(tokens), f"{size / tokens:.2f}")
    console.print(table)
    if provider:
        first, more = provider.overhead
        console.print(f"A request with one message takes {first} tokens more, each further message {more}.")
    if tok:
        for name, text in TEXTS.items():
            console.print(Text(f"{name}: ", "bold"), end="")
            console.print(coloured_tokens(tok.tokenize(text), rule=not console.color_system))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subword.SubwordError as error:
        sys.exit(f"error: {error}")
