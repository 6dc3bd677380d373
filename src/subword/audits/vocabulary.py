"""What a vocabulary is made of: scripts, kinds, lengths, entries that differ in little; what it shares with another
one; and what its entries say about the text that it was learned from.

A vocabulary is a fingerprint of its training text: words that stood there often have entries, others have none.
Evidence is counted, not guessed: of the commonest words of each language (those of the passage in `passage.txt`) and of
the typical words of each kind of markup and code (`TRACES`), the share that has an entry of its own.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from ..scripts import script_of
from ..spec import BPE, WordPiece
from ..tokenizer import Tokenizer
from .parallel import builtin_passage

PART = "part of a character"

KINDS = {
    "word with a space": "letters with a space before them, or where words have an end, behind: as in running text",
    "word without": "letters alone: at the start of a line or inside a word",
    "number": "digits, with or without a space before",
    "marks": "punctuation and symbols",
    "white space": "spaces, tabs, newlines",
    "mixed": "letters with digits or marks, as in code and in contractions",
    PART: "bytes that are no whole character",
    "extra": "special and added tokens",
}
"""What an entry is."""

TRACES: dict[str, tuple[str, ...]] = {
    "Python": ("elif", " lambda", "__init__", " isinstance", "self", "kwargs", " numpy", "def", " pytest", " except"),
    "JavaScript": ("undefined", " const", "document", "async", "addEventListener", " typeof", "jQuery", "onclick",
                   "React", "innerHTML"),
    "Java": ("public", "@Override", " throws", "ArrayList", "System", " extends", " implements", "import", "java",
             "getString"),
    "C and C++": ("#include", " nullptr", "std", "printf", "typedef", " unsigned", "sizeof", "struct", "ifdef",
                  "endif"),
    "Go": (" func", " nil", "package", "fmt", ":=", "goroutine", " chan", "golang", "Errorf", " interface"),
    "Rust": (" fn", " impl", " mut", "unwrap", "println", " pub", "crate", "usize", "enum", "struct"),
    "SQL": ("SELECT", " WHERE", " FROM", " INSERT", "VARCHAR", " JOIN", "PRIMARY", " ORDER", " NULL", " UPDATE"),
    "HTML": ("<div", "</", "href", "class", "<br", "&nbsp", "html", "<span", "</p", "charset"),
    "LaTeX": ("mathbb", "frac", "mathrm", "usepackage", "textbf", "cdot", "mathcal", "varepsilon", "leq", "hline"),
    "Wiki and Markdown": ("[[", "]]", "{{", "}}", "###", "```", "**", "://", "==", "thumb"),
    "Chat and forums": (" lol", " reddit", " upvote", " thx", " imho", " haha", " btw", " plz", "edit", " Twitter"),
}  # fmt: skip
"""Words that are typical of a kind of text."""

MANY = 40
"""An entry of more characters than this, of more than a few different ones, is a text that was learned by heart."""


@dataclass(frozen=True, slots=True)
class Share:
    """A group of entries."""

    name: str
    entries: int
    share: float
    """Of all entries."""
    example: bytes
    """The longest."""


@dataclass(frozen=True, slots=True)
class Twins:
    """Entries that differ only in capitals and in a space before or after."""

    entries: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """What of a language, or of a kind of text, has entries."""

    name: str
    tried: int
    """Words of it."""
    entries: int
    """Those that are one entry, with a space before or without."""
    share: float
    examples: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Overlap:
    """What two vocabularies have in common: entries with the same bytes."""

    other: str
    entries: int
    """Of the other one."""
    shared: int
    jaccard: float
    """Shared entries, of all that either has."""
    of_this: float
    of_other: float
    only_this: tuple[bytes, ...]
    """Some that the other one lacks: the first by their ids."""
    only_other: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What a vocabulary is made of."""

    entries: int
    scripts: tuple[Share, ...]
    """By the script of their characters, the largest first; `none` for entries without letters, `mixed` for several."""
    kinds: tuple[Share, ...]
    """In the order of `KINDS`."""
    byte_lengths: tuple[int, ...]
    """How many entries have 0 bytes, 1 byte, 2 bytes and so on."""
    mean_bytes: float
    longest: tuple[bytes, ...]
    """The entries with the most characters, the longest first."""
    longest_words: tuple[bytes, ...]
    """The same of entries that are words: letters, with a space before or without."""
    by_heart: tuple[bytes, ...]
    """Those that are stretches of text, not words or runs of a mark; see `MANY`."""
    twins: int
    """How many entries have the same text as another one, but for capitals and spaces at the ends."""
    twins_by_space: int
    """The same where only spaces differ."""
    twins_by_case: int
    """The same where only capitals differ."""
    largest_twins: tuple[Twins, ...]
    languages: tuple[Trace, ...]
    """What the vocabulary has of each language of the passage, the most first."""
    texts: tuple[Trace, ...]
    """The same of code, markup and other kinds of text."""
    overlap: Overlap | None


def vocabulary(
    tok: Tokenizer, other: Tokenizer | None = None, *, other_name: str = "other", shown: int = 30
) -> Vocabulary:
    """Look at the entries of a tokenizer.

    Args:
        other: a tokenizer to compare its vocabulary with.
        other_name: what to call that.
        shown: how many of the longest entries, and of others, to give.
    """
    entries, extra, size = spelled(tok), tok.spec.extra, len(tok.vocab)
    known: dict[bytes, int] = {}
    for id, data in entries:
        known.setdefault(data, id)
    texts = {data: text for data in known if (text := _text(data)) is not None}
    lengths = Counter(len(data) for _, data in entries)
    longest = sorted(texts, key=lambda data: (-len(texts[data]), known[data]))
    scripts = ((PART if data not in texts else script_of(texts[data]), data) for _, data in entries)
    kinds = _shares(((_kind(texts.get(data)), data) for _, data in entries), size)
    words = (data for data in longest if _kind(texts[data]).startswith("word"))
    twins, spaces, cases, groups = _twins(texts)
    return Vocabulary(
        entries=size,
        scripts=_shares(scripts, size),
        kinds=_in_order(kinds, Share("extra", len(extra), len(extra) / size, _longest_extra(tok))),
        byte_lengths=tuple(lengths[length] for length in range(max(lengths, default=0) + 1)),
        mean_bytes=sum(length * count for length, count in lengths.items()) / max(len(entries), 1),
        longest=tuple(longest[:shown]),
        longest_words=tuple(itertools.islice(words, shown)),
        by_heart=tuple(data for data in longest if _is_by_heart(texts[data]))[:shown],
        twins=twins,
        twins_by_space=spaces,
        twins_by_case=cases,
        largest_twins=groups[:shown],
        languages=_languages(known),
        texts=tuple(sorted((_trace(name, typical, known) for name, typical in TRACES.items()), key=_most)),
        overlap=None if other is None else _overlap(known, other, other_name, shown),
    )


def spelled(tok: Tokenizer) -> list[tuple[int, bytes]]:
    """The entries of the model by their ids, as they stand in running text: with spaces instead of `▁` in front, of
    `</w>` behind, and, in front of what starts a word, of no `##`. Extra tokens are left out."""
    model = tok.spec.model
    extra = {token.id for token in tok.spec.extra}
    if isinstance(model, BPE) and not model.end_of_word and model.unit == "byte":
        found = ((id, piece) for piece, id in model.vocab.items())
    elif isinstance(model, WordPiece):
        prefix = model.continuing_subword_prefix.encode()
        found = ((id, tok.token_bytes(id) if piece.startswith(prefix) else b" " + piece) for piece, id in
                 model.vocab.items())  # fmt: skip
    else:
        found = ((id, tok.token_bytes(id)) for id in model.vocab.ids.tolist())
    return sorted((id, data) for id, data in found if id not in extra)


def _text(piece: bytes) -> str | None:
    """The text of an entry, or None if it is none."""
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return None


def _kind(text: str | None) -> str:
    """
    >>> [_kind(text) for text in (" день", "ing", " 12", "…)", "\\n ", "don't", None)]
    ['word with a space', 'word without', 'number', 'marks', 'white space', 'mixed', 'part of a character']
    """
    if text is None:
        return PART
    body = text.strip()
    if not body:
        return "white space"
    classes = {unicodedata.category(char)[0] for char in body}
    if classes <= {"L", "M"}:
        return "word with a space" if " " in (text[0], text[-1]) else "word without"
    if classes <= {"N"}:
        return "number"
    return "marks" if not classes & {"L", "N"} else "mixed"


def _shares(named: Iterator[tuple[str, bytes]], of: int) -> tuple[Share, ...]:
    counts: Counter[str] = Counter()
    longest: dict[str, bytes] = {}
    for name, piece in named:
        counts[name] += 1
        if len(piece) > len(longest.get(name, b"")):
            longest[name] = piece
    return tuple(Share(name, count, count / of, longest.get(name, b"")) for name, count in counts.most_common())


def _in_order(shares: tuple[Share, ...], extra: Share) -> tuple[Share, ...]:
    found = {share.name: share for share in (*shares, extra) if share.entries}
    return tuple(found[name] for name in KINDS if name in found)


def _longest_extra(tok: Tokenizer) -> bytes:
    return max((token.content.encode() for token in tok.spec.extra), key=len, default=b"")


def _is_by_heart(text: str) -> bool:
    """
    >>> _is_by_heart("all rights reserved. this is a text without end"), _is_by_heart("-" * 99), _is_by_heart("word")
    (True, False, False)
    """
    return len(text) > MANY and len(set(text)) > 6 and any(char.isalpha() for char in text)


def _twins(texts: dict[bytes, str]) -> tuple[int, int, int, tuple[Twins, ...]]:
    """How many entries have a twin: by either, by spaces alone, by capitals alone; and the largest groups."""
    groups: dict[str, list[bytes]] = {}
    spaces: Counter[str] = Counter()
    cases: Counter[str] = Counter()
    for piece, text in texts.items():
        bare = text.strip(" ")
        if not any(char.isalpha() for char in bare):
            continue
        groups.setdefault(bare.lower(), []).append(piece)
        spaces[bare] += 1
        cases[text.lower()] += 1
    several = sorted((group for group in groups.values() if len(group) > 1), key=lambda group: (-len(group), group))
    return (
        sum(map(len, several)),
        sum(count for count in spaces.values() if count > 1),
        sum(count for count in cases.values() if count > 1),
        tuple(Twins(tuple(sorted(group))) for group in several),
    )


def _languages(known: dict[bytes, int]) -> tuple[Trace, ...]:
    """By the words of the passage that no other language of it has. Languages without spaces between words, or with
    only a few such words, are left out."""
    words = {}
    for row in builtin_passage().texts:
        found = dict.fromkeys(re.findall(r"[^\W\d_](?:[^\W\d_]|[\u0300-\u036f\u0900-\u0dff])+", row.text))
        words[f"{row.name} ({row.language})"] = [word for word in found if len(word) < 13]
    languages = Counter(word.casefold() for found in words.values() for word in {w.casefold() for w in found})
    own = {name: [word for word in found if languages[word.casefold()] == 1] for name, found in words.items()}
    traces = (_trace(name, tuple(found), known) for name, found in own.items() if len(found) >= 30)
    return tuple(sorted(traces, key=_most))


def _trace(name: str, words: tuple[str, ...], known: dict[bytes, int]) -> Trace:
    hits = []
    for word in words:
        bare = word.strip(" ").encode()
        hits += [piece for piece in (b" " + bare, bare + b" ", bare) if piece in known][:1]
    longest = sorted(hits, key=lambda piece: (-len(piece), piece))[:5]
    return Trace(name, len(words), len(hits), len(hits) / len(words), tuple(longest))


def _most(trace: Trace) -> tuple[float, str]:
    return -trace.share, trace.name


def _overlap(here: dict[bytes, int], other: Tokenizer, name: str, shown: int) -> Overlap:
    there: dict[bytes, int] = {}
    for id, data in spelled(other):
        there.setdefault(data, id)
    shared = len(here.keys() & there.keys())
    either = len(here) + len(there) - shared
    return Overlap(
        other=name,
        entries=len(there),
        shared=shared,
        jaccard=shared / either if either else 1.0,
        of_this=shared / len(here) if here else 0.0,
        of_other=shared / len(there) if there else 0.0,
        only_this=_lacking(here, there, shown),
        only_other=_lacking(there, here, shown),
    )


def _lacking(here: dict[bytes, int], there: dict[bytes, int], shown: int) -> tuple[bytes, ...]:
    return tuple(sorted(here.keys() - there.keys(), key=here.__getitem__)[:shown])
