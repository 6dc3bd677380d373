"""Counting: text in, a `CountTable` out."""

from __future__ import annotations

import hashlib
import operator
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

from . import _core, corpus
from .arguments import byte_count, choice, list_of, path_of, string, thread_count
from .corpus.cutting import cut, may_span_a_cut
from .corpus.storing import Blocks
from .corpus.utf8 import ERRORS, handled_text
from .counts import CountTable, Part, Run, Splitting, run_of, source_name
from .engine import extra_rows, stage_rows
from .errors import SubwordValueError
from .spec import SplitRegex
from .tokenizer import Text

Progress: TypeAlias = "Callable[[str, int, int | None], object]"

FEED_BYTES = 16 << 20
"""About how much text the counter gets at once, where memory is not bounded."""


def count_pieces(
    texts: Iterable[Text | Mapping[str, Any]] | None = None,
    *,
    files: Iterable[str | os.PathLike[str]] | None = None,
    pattern: str | SplitRegex = "o200k",
    digits: Literal["pattern", "one", "three-left", "three-right"] = "pattern",
    special_tokens: Iterable[str] = (),
    normalization: Literal["NFC", "NFD", "NFKC", "NFKD"] | None = None,
    source: str = "",
    field: str = "text",
    errors: Literal["keep", "strict", "replace"] = "keep",
    memory: int | str | None = None,
    temp: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> CountTable:
    """Count the pieces of texts or of files: the first of the two steps of `train`.

    The table can be saved, added to others, and learned from, for any size and tie rule, without reading the text
    again: `train(counts=count_pieces(texts), …)` is `train(texts, …)`. It is the same for any number of threads, any
    `memory`, and any way of dividing the text: `count_pieces(a + b)` has the counts of `count_pieces(a) +
    count_pieces(b)` for lists of texts.

    Args:
        texts, files, pattern, digits, special_tokens, normalization, field, errors, threads: as for `train`. These
            special tokens, in this order, are those of the tokenizer.
        source: a name for this text, which `train` can give a weight.
        memory: how much memory the counts may take while counting, in bytes or as in `"2GB"`; what goes beyond it is
            kept on disk. Python and its libraries, some 100 MB, come on top, and so do the distinct pieces of one text
            that must not be cut (with a pattern of one's own, `"none"`, or normalization). Without it all counts stay
            in memory.
        temp: the folder for what goes to disk; the system's temporary one if not given. If the process is killed,
            nothing of it is left there.
        progress: called as `progress("count", bytes, None)`.

    Raises:
        SubwordValueError: an argument cannot be used.
        SubwordOSError: a file cannot be read, or the temporary one not be written.
    """
    splitting = Splitting(pattern, digits, normalization, tuple(list_of("special_tokens", special_tokens)))
    if progress is not None and not callable(progress):
        raise SubwordValueError(f"progress must be a function of (stage, done, total), not {progress!r}")
    items = source_of(texts, files, string("field", field), errors, splitting)
    limit = None if memory is None else byte_count("memory", memory)
    folder = None if temp is None else path_of(temp)
    return count_texts(items, splitting, source_name(source), limit, folder, thread_count(threads), progress)


def source_of(
    texts: Iterable[Text | Mapping[str, Any]] | None,
    files: Iterable[str | os.PathLike[str]] | None,
    field: str,
    errors: str,
    splitting: Splitting,
) -> Iterator[Text]:
    """The texts, one way or the other."""
    choice("errors", errors, ERRORS)
    if (texts is None) == (files is None):
        raise SubwordValueError("give either texts or files=, one of the two")
    if isinstance(texts, (str, bytes, bytearray, memoryview)):
        kind = type(texts).__name__
        raise SubwordValueError(f"texts must be a list of texts, not one {kind}: write [text], or files=[path]")
    if isinstance(texts, Mapping):  # such as a dict of data sets: its keys are no corpus
        names = ", ".join(map(repr, texts))
        raise SubwordValueError(
            f"texts must be a list of texts, not a {type(texts).__name__}; did you mean one of {names}?"
        )
    if isinstance(files, (str, os.PathLike)):
        raise SubwordValueError(f"files must be a list of paths, not one path: write [{str(files)!r}]")
    if files is not None:
        found = corpus.find_files(list_of("files", files))
        whole = splitting.keeps_texts_whole
        return corpus.read_texts(found, field, uncuttable=splitting.special_tokens, whole=whole, errors=errors)
    assert texts is not None
    try:
        items = iter(texts)
    except TypeError:
        raise SubwordValueError(f"texts must be a list of texts, not {type(texts).__name__}") from None
    return _texts_in(items, field) if errors == "keep" else _well_formed(_texts_in(items, field), errors)


def count_texts(
    texts: Iterator[Text],
    splitting: Splitting,
    source: str = "",
    memory: int | None = None,
    temp: str | None = None,
    threads: int = 1,
    progress: Progress | None = None,
    *,
    hashed: bool = True,
) -> CountTable:
    """`count_pieces` with arguments that were checked; `hashed`: note the SHA-256 of the text."""
    # An eighth of the memory is for sorted pieces, before they go to disk. Tables are full at two thirds of theirs.
    limit = None if memory is None else memory * 7 // 8
    feed = FEED_BYTES if memory is None else min(FEED_BYTES, max(memory // 512, 1 << 12))
    counter = _core.PieceCounter(stage_rows(splitting.stages), extra_rows(splitting.extra), limit)
    digest = hashlib.sha256() if hashed else None
    blocks = Blocks(None if memory is None else memory // 8, temp)
    runs: list[Run] = []
    if memory is not None and not splitting.keeps_texts_whole and not may_span_a_cut(splitting.special_tokens):
        texts = _in_parts(texts, feed)
    for batch in _batches(texts, feed):
        if limit is not None and counter.is_full_for(sum(map(_size_of, batch))):
            runs += _drained(counter, blocks, source)
        counter.feed(batch, threads)
        for text in batch if digest else ():
            digest.update(_bytes_of(text))  # type: ignore[union-attr]
        if progress:
            progress("count", counter.text_bytes, None)
    runs += _drained(counter, blocks, source)
    part = Part(counter.pieces, counter.text_bytes, digest.hexdigest() if digest else None)
    return CountTable(splitting, {source: (part,)}, True, counter.pieces, runs)


def _drained(counter: _core.PieceCounter, blocks: Blocks, source: str) -> list[Run]:
    """What the counter held, as runs."""
    handles: dict[int, list[Any]] = {}
    counter.drain(lambda run, block: handles.setdefault(run, []).append(blocks.add(block)))
    return [run_of(blocks, run, source) for run in handles.values()]


def _texts_in(items: Iterator[Any], field: str) -> Iterator[Text]:
    """The texts; of rows, such as those of a data set of Hugging Face's, what is in their `field`."""
    for number, item in enumerate(items):
        if isinstance(item, (str, bytes)) or not isinstance(item, Mapping):
            yield item
        elif field in item:
            yield item[field]
        else:
            names = ", ".join(map(repr, item))
            raise SubwordValueError(f"text {number}: a row without the field {field!r}; it has {names or 'none'}")


def _well_formed(texts: Iterator[Any], errors: str) -> Iterator[Any]:
    for number, text in enumerate(texts):
        if isinstance(text, (bytes, bytearray, memoryview)):
            yield handled_text(bytes(text), f"text {number}", errors)
            continue
        if isinstance(text, str) and errors == "strict" and (alone := _SURROGATE.search(text)):
            raise SubwordValueError(
                f"text {number}: a surrogate, which UTF-8 does not have, at character {alone.start()}"
            )
        yield text


_SURROGATE = re.compile("[\ud800-\udfff]")


def _in_parts(texts: Iterator[Any], most: int) -> Iterator[Any]:
    """The texts, long ones in parts that have the same pieces."""
    for text in texts:
        if isinstance(text, (str, bytes)) and len(text) > most:
            yield from cut(_blocks_of(text, most), most)
        else:
            yield text


def _blocks_of(text: str | bytes, most: int) -> Iterator[bytes]:
    start = 0
    while start < len(text):
        end = start + most
        if isinstance(text, str) and "\ud800" <= text[end - 1 : end] < "\udc00":
            end += 1  # what is behind it may be the other half of a character
        yield _bytes_of(text[start:end])
        start = end


def _size_of(text: Any) -> int:
    """About how many bytes a text has. One that is none is told when it is counted."""
    return operator.length_hint(text)


def _batches(texts: Iterator[Text], most: int) -> Iterator[list[Text]]:
    """Texts in lists of about `most` bytes."""
    batch: list[Text] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += 64 + _size_of(text)  # an empty text takes room, too
        if size >= most:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _bytes_of(text: Any) -> bytes:
    if not isinstance(text, str):
        return text if isinstance(text, bytes) else bytes(text)
    try:
        return text.encode()
    except UnicodeEncodeError:  # surrogates, read as everywhere: a pair as its character, one alone as U+FFFD
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()
