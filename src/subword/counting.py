"""Counting: text in, a `CountTable` out."""

from __future__ import annotations

import hashlib
import operator
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from . import _core, corpus
from .arguments import byte_count, choice, integer, list_of, path_of, string, thread_count
from .corpus.cutting import cut, may_span_a_cut, too_long
from .corpus.storing import Blocks
from .corpus.utf8 import ERRORS, handled_text
from .counts import CountTable, Part, Splitting, run_of, source_name
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
    processes: int = 1,
    ray: bool | str = False,
    progress: Progress | None = None,
) -> CountTable:
    """Count the pieces of texts or of files: the first of the two steps of `train`.

    The table can be saved, added to others, and learned from, for any size and tie rule, without reading the text
    again: `train(counts=count_pieces(texts), …)` is `train(texts, …)`. It is the same for any number of threads and
    processes, any `memory`, and any way of dividing the text: `count_pieces(a + b)` has the counts of `count_pieces(a)
    + count_pieces(b)` for lists of texts.

    Args:
        texts, files, pattern, digits, special_tokens, normalization, field, errors, threads: as for `train`. These
            special tokens, in this order, are those of the tokenizer.
        source: a name for this text, which `train` can give a weight.
        memory: how much memory the counts may take while counting, in bytes or as in `"2GB"`; what goes beyond it is
            kept on disk. Python and its libraries, some 100 MB a process, come on top. What must be counted in one go
            can have an eighth of it: a text without line breaks, and any text with a pattern of one's own, `"none"`, or
            normalization. Without it all counts stay in memory.
        temp: the folder for what goes to disk; the system's temporary one if not given. If the process is killed,
            nothing is left there by one process; what several leave, the next to count there removes.
        processes: how many processes read and count `files`: they are given large files in parts. The threads and the
            memory are shared out among them. One that dies is started again, and its part counted once.
        ray: count `files` on a cluster, in tasks of `threads` threads (1 if not given): the address of a cluster of
            Ray's, or True: the one that this machine belongs to (or `RAY_ADDRESS` names), else one made for this call.
            `memory` is then what each task may take. All machines must find the files under the same names, and have
            the same version of subword.
        progress: called as `progress("count", bytes, None)`.

    Raises:
        SubwordValueError: an argument cannot be used.
        SubwordOSError: a file cannot be read, or the temporary one not be written, or a process dies again and again.
    """
    splitting = Splitting(pattern, digits, normalization, tuple(list_of("special_tokens", special_tokens)))
    if progress is not None and not callable(progress):
        raise SubwordValueError(f"progress must be a function of (stage, done, total), not {progress!r}")
    limit = None if memory is None else byte_count("memory", memory)
    folder = None if temp is None else path_of(temp)
    name = source_name(source)
    if ray is not False:
        from .cluster import on_ray

        if processes != 1:
            raise SubwordValueError("give processes= or ray=, not both: Ray starts as many as there is room for")
        found = files_of(texts, files, "ray")
        each = 1 if threads is None else thread_count(threads)
        choice("errors", errors, ERRORS)
        job = Job(splitting, string("field", field), limit, each, errors=errors)
        address = None if ray is True else string("ray", ray)
        return on_ray.count_files(found, job, name, address, folder, told_in_bytes(progress))
    return count_source(texts, files, field, errors, splitting, name, limit, folder, threads, processes, progress)


@dataclass(frozen=True)
class Job:
    """What is to be done with each part of the files, by whoever does it."""

    splitting: Splitting
    field: str
    memory: int | None
    threads: int
    hashed: bool = True
    errors: str = "keep"


def count_source(
    texts: Iterable[Text | Mapping[str, Any]] | None,
    files: Iterable[str | os.PathLike[str]] | None,
    field: str,
    errors: str,
    splitting: Splitting,
    source: str,
    memory: int | None,
    temp: str | None,
    threads: int | None,
    processes: int,
    progress: Progress | None,
    *,
    hashed: bool = True,
) -> CountTable:
    """Count texts or files, here or in several processes."""
    number = thread_count(threads)
    processes = integer("processes", processes, 1)
    if processes == 1:
        items = source_of(texts, files, string("field", field), errors, splitting, memory)
        return count_texts(items, splitting, source, memory, temp, number, progress, hashed=hashed)
    from .cluster import processes as several

    choice("errors", errors, ERRORS)
    job = Job(splitting, string("field", field), memory, number, hashed, errors)
    return several.count_files(
        files_of(texts, files, "processes"), job, source, processes, temp, told_in_bytes(progress)
    )


def told_in_bytes(progress: Progress | None) -> Callable[[int, int], object] | None:
    """A function of the bytes of text that were counted, and of those on disk that were read for it."""
    return (lambda counted, _: progress("count", counted, None)) if progress else None


def files_of(texts: object, files: Iterable[str | os.PathLike[str]] | None, option: str) -> list[Path]:
    """The files, for what takes no texts."""
    if texts is not None or files is None:
        raise SubwordValueError(f"{option}= goes with files=: texts that are in one process are counted there")
    _check_files(files)
    return corpus.find_files(list_of("files", files))


def _check_files(files: object) -> None:
    if isinstance(files, (str, os.PathLike)):
        raise SubwordValueError(f"files must be a list of paths, not one path: write [{str(files)!r}]")


def source_of(
    texts: Iterable[Text | Mapping[str, Any]] | None,
    files: Iterable[str | os.PathLike[str]] | None,
    field: str,
    errors: str,
    splitting: Splitting,
    memory: int | None,
) -> Iterator[Iterable[Text]]:
    """The texts, one way or the other, each in parts."""
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
    _check_files(files)
    if files is not None:
        return texts_in(corpus.find_files(list_of("files", files)), splitting, field, memory, errors=errors)
    assert texts is not None
    try:
        items = iter(texts)
    except TypeError:
        raise SubwordValueError(f"texts must be a list of texts, not {type(texts).__name__}") from None
    found = _texts_in(items, field)
    return ((text,) for text in (found if errors == "keep" else _well_formed(found, errors)))


def texts_in(
    files: Iterable[Path | corpus.Span],
    splitting: Splitting,
    field: str,
    memory: int | None,
    on_bytes: Callable[[int], None] | None = None,
    stdin: str = "text",
    errors: str = "keep",
) -> Iterator[Iterator[bytes]]:
    """The texts in files, each in parts, for `count_texts`. `on_bytes`: as for `corpus.read_texts`."""
    documents = corpus.read_documents(
        files,
        field,
        on_bytes,
        uncuttable=splitting.special_tokens,
        whole=splitting.keeps_texts_whole,
        stdin=stdin,
        errors=errors,
        most=None if memory is None else longest_part(memory),
    )
    return (document.parts for document in documents)


class TextHash:
    """The SHA-256 of each text, added up modulo 2^256: of one text, it is its SHA-256.

    So texts can be hashed in parts of a corpus, by several processes, and the order of texts does not matter.
    """

    def __init__(self) -> None:
        self.sum = 0

    def read(self, parts: Iterable[Text]) -> Iterator[Text]:
        """The parts of one text, handed on."""
        digest = hashlib.sha256()
        for part in parts:
            try:  # noqa: SIM105 (which costs more than to hash a short text)
                digest.update(_bytes_of(part))
            except (TypeError, ValueError, BufferError):
                pass  # no text, which is told when it is counted
            yield part
        self.sum += int.from_bytes(digest.digest(), "big")

    def hexdigest(self) -> str:
        return f"{self.sum % 2**256:064x}"


class Counted(NamedTuple):
    """What `count_into` found, besides the blocks: those of each run, and how many pieces and bytes there are."""

    runs: list[list[Any]]
    pieces: int
    bytes: int


def count_texts(
    texts: Iterable[Iterable[Text]],
    splitting: Splitting,
    source: str = "",
    memory: int | None = None,
    temp: str | None = None,
    threads: int = 1,
    progress: Progress | None = None,
    *,
    hashed: bool = True,
) -> CountTable:
    """`count_pieces` of texts that each come in parts, with arguments that were checked.

    Args:
        hashed: note the SHA-256 of the texts.
    """
    digest = TextHash() if hashed else None
    blocks = Blocks(None if memory is None else memory // 8, temp)
    tell = (lambda done: progress("count", done, None)) if progress else None
    counted = count_into(blocks.add, texts, splitting, memory, threads, digest, tell)
    part = Part(counted.pieces, counted.bytes, digest.hexdigest() if digest else None)
    runs = [run_of(blocks, handles, (source,)) for handles in counted.runs]
    return CountTable(splitting, {source: (part,)}, True, counted.pieces, runs)


def count_into(
    add: Callable[[bytes], Any],
    texts: Iterable[Iterable[Text]],
    splitting: Splitting,
    memory: int | None,
    threads: int,
    digest: TextHash | None,
    tell: Callable[[int], object] | None,
) -> Counted:
    """Count, and give what was counted to `add` block by block: it says how to find it again.

    An eighth of `memory` is left to whoever keeps the blocks, for sorted pieces before they go to disk. Tables are full
    at two thirds of theirs. `tell` is called with the number of bytes counted so far.
    """
    limit = None if memory is None else memory * 7 // 8
    most = None if memory is None else longest_part(memory)
    feed = FEED_BYTES if memory is None else min(FEED_BYTES, max(memory // 512, 1 << 12))
    counter = _core.PieceCounter(stage_rows(splitting.stages, splitting.protected), extra_rows(splitting.extra), limit)
    whole = splitting.keeps_texts_whole or may_span_a_cut(splitting.special_tokens)
    runs: list[list[Any]] = []

    def drain() -> None:
        handles: dict[int, list[Any]] = {}
        counter.drain(lambda run, block: handles.setdefault(run, []).append(add(block)))
        runs.extend(handles.values())

    def all_parts() -> Iterator[Text]:
        for number, parts in enumerate(texts):
            if most is not None:
                parts = _in_parts(parts, feed, whole, most, f"text {number}")
            yield from digest.read(parts) if digest else parts

    for batch in _batches(all_parts(), feed):
        if limit is not None and counter.is_full_for(sum(map(_size_of, batch))):
            drain()
        counter.feed(batch, threads)
        if tell:
            tell(counter.text_bytes)
    drain()
    return Counted(runs, counter.pieces, counter.text_bytes)


def longest_part(memory: int) -> int:
    """How long a text that must not be cut can be, in bytes: in the worst case its pieces take five times its size."""
    return memory // 8


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


def _in_parts(parts: Iterable[Any], feed: int, whole: bool, most: int, name: str) -> Iterator[Any]:
    """The parts of a text, long ones cut again, into parts of about `feed` bytes that have the same pieces."""
    for part in parts:
        if not whole and isinstance(part, (str, bytes)) and len(part) > feed:
            yield from cut(_blocks_of(part, feed), feed, most=most, name=name)
        elif _size_of(part) > most:
            raise too_long(name, most)
        else:
            yield part


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
