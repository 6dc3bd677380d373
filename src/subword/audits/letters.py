"""Where the letters of words are: a model sees ids, not what they spell.

To count the r in "strawberry" it must know by heart what each token holds; to reverse a word, what the pieces are of
quite other tokens; to rhyme, that other tokens end alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..tokenizer import Tokenizer

WORDS = (("strawberry", "r"), ("mississippi", "s"), ("Connecticut", "c"), ("Donaudampfschifffahrtskapitän", "f"))
"""Words, and a letter to look for."""

RHYMES = (
    ("nation", "station", "creation", "imagination"),
    ("light", "night", "bright", "delight"),
    ("singing", "ringing", "bringing", "springing"),
    ("cat", "hat", "flat", "acrobat"),
    ("day", "play", "today", "holiday"),
)
"""Words that end alike, in sound and in letters."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word with a space before it, as in a text, and where one of its letters is."""

    word: str
    letter: str
    pieces: tuple[bytes, ...]
    held: tuple[int, ...]
    """How often the letter is in each of the pieces, capitals and small ones alike."""
    reversed: tuple[bytes, ...]
    """The pieces of the word written backwards."""
    shared: int
    """How many of the pieces of the word, written backwards, are pieces of the reversed word."""


@dataclass(frozen=True, slots=True)
class Rhyme:
    """Words that rhyme, and their pieces."""

    words: tuple[str, ...]
    pieces: tuple[tuple[bytes, ...], ...]
    alike: int
    """How many of them end in the commonest of the last pieces."""


@dataclass(frozen=True, slots=True)
class Letters:
    """What the tokens of words say of their letters."""

    words: tuple[Word, ...]
    rhymes: tuple[Rhyme, ...]
    reversible: float
    """The share of pieces that a word and its reverse have in common, as `Word.shared` counts them."""
    rhyming: float
    """The share of the rhyming words that end in the commonest last piece of their rhyme."""


def letters(tok: Tokenizer, words: Sequence[tuple[str, str]] = WORDS) -> Letters:
    """Which tokens hold which letters, what reversal does to them, and whether rhymes show.

    Args:
        words: words, each with the letter to look for.
    """
    found = tuple(_word(tok, word, letter) for word, letter in words)
    rhymes = tuple(_rhyme(tok, group) for group in RHYMES)
    pieces = sum(len(word.pieces) for word in found)
    return Letters(
        words=found,
        rhymes=rhymes,
        reversible=sum(word.shared for word in found) / pieces if pieces else 0.0,
        rhyming=sum(rhyme.alike for rhyme in rhymes) / sum(len(rhyme.words) for rhyme in rhymes),
    )


def _pieces(tok: Tokenizer, word: str) -> tuple[bytes, ...]:
    return tuple(map(tok.token_bytes, tok.encode_ordinary(" " + word)))


def _word(tok: Tokenizer, word: str, letter: str) -> Word:
    pieces, backwards = _pieces(tok, word), _pieces(tok, word[::-1])
    there = [piece.strip(b" ") for piece in backwards]
    shared = 0
    for piece in pieces:
        turned = piece.strip(b" ").decode("utf-8", "surrogateescape")[::-1].encode("utf-8", "surrogateescape")
        if turned and turned in there:
            there.remove(turned)
            shared += 1
    held = tuple(piece.decode("utf-8", "replace").lower().count(letter.lower()) for piece in pieces)
    return Word(word, letter, pieces, held, backwards, shared)


def _rhyme(tok: Tokenizer, words: tuple[str, ...]) -> Rhyme:
    pieces = tuple(_pieces(tok, word) for word in words)
    last = [piece[-1].strip(b" ") for piece in pieces if piece]
    return Rhyme(words, pieces, max(map(last.count, last), default=0))
