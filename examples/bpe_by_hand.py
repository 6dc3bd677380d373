#!/usr/bin/env python3
"""Byte-pair encoding by hand: watch the merges of one sentence, or see what BPE finds in a file.

Words are cut at white space and taken as characters, with a mark for the end of each. Of pairs that occur equally
often, the one met first in the text is merged.
"""

import argparse
import io
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from subword.bpe import reference

SENTENCE = "low lower lowest slow slower newer newest wide wider widest"
TO_ENCODE = ("lowest", "wider", "slowest")

EXAMPLES = """\
examples:
  bpe_by_hand.py                           the derivation for a short sentence, step by step
  bpe_by_hand.py book.txt                  the ten longest tokens that 200 merges find in a file
  bpe_by_hand.py --merges 1000 book.txt    the same with 1000 merges
  zcat book.txt.gz | bpe_by_hand.py -      the text from standard input

Every merge counts the whole text again, so a file of more than a few megabytes takes minutes.
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", nargs="?", help="a UTF-8 text file, or - for standard input")
    parser.add_argument("--merges", type=int, metavar="N", help="how many merges to learn (8, with a file 200)")
    parser.add_argument("--mark", default="·", help="the character that marks the end of a word (%(default)s)")
    args = parser.parse_args()
    if args.merges is not None and args.merges < 0:
        parser.error(f"--merges must not be negative: {args.merges}")
    if len(args.mark) != 1 or args.mark.isspace():
        parser.error(f"--mark must be one character that is not white space: {args.mark!r}")

    if args.file is None:
        text, n_merges = SENTENCE, 8 if args.merges is None else args.merges
    else:
        name = "standard input" if args.file == "-" else args.file
        try:
            data = sys.stdin.buffer.read() if args.file == "-" else Path(args.file).read_bytes()
            text, n_merges = data.decode(), 200 if args.merges is None else args.merges
        except OSError as error:
            parser.error(f"cannot read {name}: {error.strerror}")
        except UnicodeDecodeError as error:
            parser.error(f"{name} is not UTF-8 text: byte {error.start} is {data[error.start]:#04x}")
        if not text.split():
            parser.error(f"{name} has no words in it, so there is nothing to learn")
    if args.mark in text:
        parser.error(f"{args.mark!r} occurs in the text; give another character with --mark")

    # word and mark -> how often, in the order in which they are met
    pieces = Counter(word + args.mark for word in text.split())
    if args.file is None:
        show_derivation(pieces, n_merges, args.mark)
    else:
        show_longest(pieces, n_merges)


def show_derivation(pieces: dict[str, int], n_merges: int, mark: str) -> None:
    """Print every step: the counts, each merge and what it does to the words, and how words are encoded."""
    letters = reference.alphabet_of(pieces)
    merges = reference.train(pieces, n_merges, alphabet=letters, tie_rule="first-seen")
    vocab = reference.make_vocab(merges, letters)

    def spell(ids: Iterable[int], between: str = " ") -> str:
        return between.join(vocab[id] for id in ids)

    def count(split: list[list[int]]) -> dict[reference.Pair, int]:
        stats: dict[reference.Pair, int] = {}
        for ids, times in zip(split, pieces.values(), strict=True):
            reference.get_stats(ids, stats, times)
        return stats

    split = [[letters.index(symbol) for symbol in piece] for piece in pieces]
    width = max(len(spell(ids)) for ids in split) + 3

    def show(split: list[list[int]]) -> None:
        cells = [spell(ids).ljust(width) for ids in split]
        for row in range(0, len(cells), 5):
            print("     " + "".join(cells[row : row + 5]).rstrip())

    print(f"The words as characters; {mark} marks the end of each:\n")
    show(split)

    print("\nHow often each two stand side by side:\n")
    stats = count(split)
    for n in sorted(set(stats.values()), reverse=True):
        print(f"{n:5}  " + "  ".join(spell(pair, "+") for pair in stats if stats[pair] == n))

    print("\nThe most frequent pair becomes one symbol; of equals, the one met first. Then all is counted again:")
    for step, (pair, idx) in enumerate(merges.items(), start=1):
        stats = count(split)
        ties = [spell(other, "+") for other in stats if stats[other] == stats[pair] and other != pair]
        times = "once" if stats[pair] == 1 else f"{stats[pair]} times"
        print(f"\n{step:3}. {spell(pair, '+')}, {times}" + (f", like {', '.join(ties)}" if ties else ""))
        split = [reference.merge(ids, pair, idx) for ids in split]
        show(split)

    in_use = {vocab[id] for ids in split for id in ids}
    print("\nSymbols now in use:\n")
    print("     " + "  ".join(sorted(in_use, key=lambda symbol: (mark not in symbol, -len(symbol), symbol))))

    print("\nThe merges in the same order encode a word, also one that the text does not have:\n")
    for word in TO_ENCODE:
        ids = [letters.index(symbol) for symbol in word + mark]
        print(f"     {word:8} {spell(reference.encode(ids, merges))}")


def show_longest(pieces: dict[str, int], n_merges: int) -> None:
    """Print the ten longest tokens, and the merge that made each."""
    letters = reference.alphabet_of(pieces)
    merges = reference.train(pieces, n_merges, alphabet=letters, tie_rule="first-seen")
    learned = list(enumerate(reference.make_vocab(merges, letters)[len(letters) :], start=1))

    print(f"words       {sum(pieces.values()):,} ({len(pieces):,} different)")
    print(f"characters  {len(letters):,} different")
    print(f"merges      {len(merges):,}" + (", then no pair was left" if len(merges) < n_merges else ""))
    if learned:
        print("\nThe longest tokens:\n\n  length  merge  token")
    for step, token in sorted(learned, key=lambda row: -len(row[1]))[:10]:
        print(f"{len(token):8}  {step:5}  {token if token.isprintable() else repr(token)}")


if __name__ == "__main__":
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # whatever the terminal's default is
    try:
        main()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
