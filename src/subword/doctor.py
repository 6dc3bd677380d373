"""A tokenizer beside the library that it came from: the same ids for the same text? And how fast are the two?

The library reads the same file where it can; else what subword writes for it. What it gives is the standard here.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import metadata
from typing import Any, NamedTuple

from . import formats
from .audits.parallel import builtin_passage
from .differences import shortest
from .errors import SubwordError, SubwordValueError
from .formats import compiled, model_folder, tokenizer_json
from .formats.probes import probe_texts
from .patterns import PATTERNS
from .spec import BPE, Split, SplitRegex
from .tokenizer import Tokenizer, load

LIBRARIES = ("tokenizers", "tiktoken", "sentencepiece", "transformers")

OF_FORMAT = {
    "tokenizer.json": "tokenizers",
    "vocab+merges": "tokenizers",
    "vocab.txt": "tokenizers",
    "clip": "tokenizers",
    "native": "tokenizers",
    "gguf": "tokenizers",
    "tiktoken": "tiktoken",
    "tekken": "tiktoken",
    "minbpe": "tiktoken",
    "sentencepiece": "sentencepiece",
}
"""The library that a format is checked against, if not told otherwise."""

WINDOW = 400
"""Characters on each side of where ids begin to differ, in which a shorter text is looked for first."""

SPEED_BYTES = 1 << 20
ROUNDS = 5

_WITHOUT_ENDS: dict[str, Any] = {"allowed_special": "all"}
_WITH_ENDS: dict[str, Any] = {"allowed_special": "all", "add_special_tokens": True}


@dataclass(frozen=True)
class Peer:
    """The library with the tokenizer loaded.

    Attributes:
        name, version: of the library.
        reads: what it was made from.
        encode: text -> ids. `way` is what subword must be told for the same.
        decode: ids -> text.
        piece: the token of an id, as the library spells it.
        seconds: how long loading took.
    """

    name: str
    version: str
    reads: str
    encode: Callable[[str], list[int]]
    decode: Callable[[list[int]], str]
    piece: Callable[[int], str]
    way: dict[str, Any]
    seconds: float = 0.0


class Difference(NamedTuple):
    """A text on which the two differ, of which nothing can be left out; what they give, and the tokens' names."""

    what: str
    text: str
    ours: list[int] | str
    theirs: list[int] | str
    our_pieces: list[str]
    their_pieces: list[str]


class Speed(NamedTuple):
    """What was measured. Megabytes (10^6 bytes) a second, on one thread, text by text, ids as Python lists.

    `cold` is the first pass after loading; `warm` the best of several, the two libraries taking turns.
    """

    texts: int
    bytes: int
    rounds: int
    our_load: float
    their_load: float
    our_cold: float
    their_cold: float
    our_warm: float
    their_warm: float


@dataclass(frozen=True)
class Checkup:
    """What `check` found.

    Attributes:
        peer: the library.
        texts, bytes: on how much they were compared.
        difference: the first difference, or None.
        failures: how often the library itself failed on a text, and how the first time.
        speed: None where it was not asked for.
    """

    peer: Peer
    texts: int
    bytes: int
    difference: Difference | None
    failures: tuple[int, str]
    speed: Speed | None


def check(
    path: str,
    texts: Iterable[str] | None = None,
    against: str | None = None,
    *,
    said: dict[str, Any] | None = None,
    speed: bool = True,
) -> Checkup:
    """Compare a tokenizer with the library it came from.

    Args:
        path: a file, a folder or a known name, as for `load`.
        texts: on which to compare; by default those that are meant to hurt (`formats.probes`).
        against: one of `LIBRARIES`; by default by the kind of file.
        said: what `load` must be told.
        speed: whether to time the two, too.

    Raises:
        SubwordValueError: the library is not installed, or has no such tokenizers.
    """
    start = time.perf_counter()
    with _nothing_kept():
        tok = load(path, **(said or {}))
    our_load = time.perf_counter() - start
    peer = connect(path, tok, against)
    listed = None if texts is None else list(texts)
    compared = _probes(tok) if listed is None else listed
    difference, count, failures = _compare(tok, peer, compared)
    timed = _time(path, tok, peer, listed, our_load, said) if speed else None
    size = sum(len(text.encode("utf-8", "replace")) for text in compared[:count])
    return Checkup(peer, count, size, difference, failures, timed)


@contextmanager
def _nothing_kept() -> Iterator[None]:
    """Without what is kept of files that were loaded before: the other library has nothing of the kind."""
    before = os.environ.get(compiled.SWITCH)
    os.environ[compiled.SWITCH] = "off"
    try:
        yield
    finally:
        if before is None:
            del os.environ[compiled.SWITCH]
        else:
            os.environ[compiled.SWITCH] = before


def _probes(tok: Tokenizer) -> list[str]:
    """Well-formed texts: other libraries take `str`."""
    texts = []
    for data in (*probe_texts(tok.spec), *tok.spec.model.vocab.pieces):
        try:
            texts.append(data.decode())
        except UnicodeDecodeError:
            continue
    return texts


# ======================== libraries ========================


def connect(path: str, tok: Tokenizer, against: str | None = None) -> Peer:
    """The library with the tokenizer, loaded from the same file where it reads such files.

    Raises:
        SubwordValueError: it is not installed, or has no such tokenizers.
    """
    file, row, _ = formats.recognise(path)
    if against is None:
        against = OF_FORMAT.get(row.name)
        if os.path.isdir(path) and os.path.exists(os.path.join(path, model_folder.CONFIG)):
            against = "transformers" if _is_installed("transformers") else against
    if against is None:
        known = ", ".join(LIBRARIES)
        raise SubwordValueError(f"{path}: {row.name} belongs to no library that is known here; say --against ({known})")
    if against not in _CONNECT:
        raise SubwordValueError(f"{against!r} is none of the libraries that are known here: {', '.join(LIBRARIES)}")
    if not _is_installed(against):
        raise SubwordValueError(f"{against} is not installed: pip install {against}")
    start = time.perf_counter()
    peer = _CONNECT[against](path if os.path.isdir(path) else file, row.name, tok)
    return replace(peer, seconds=time.perf_counter() - start)


def _is_installed(library: str) -> bool:
    try:
        metadata.version(library)
    except metadata.PackageNotFoundError:
        return False
    return True


def _tokenizers(file: str, kind: str, tok: Tokenizer) -> Peer:
    import tokenizers

    if kind == "tokenizer.json":
        path = os.path.join(file, "tokenizer.json") if os.path.isdir(file) else file
        theirs, reads = tokenizers.Tokenizer.from_file(path), os.path.basename(path)
    else:
        written = tokenizer_json.write(tok.spec.replace(roles={})).decode()
        theirs, reads = tokenizers.Tokenizer.from_str(written), "the tokenizer.json that subword writes of it"
    theirs.no_truncation()
    theirs.no_padding()
    return Peer(
        "tokenizers",
        tokenizers.__version__,
        reads,
        lambda text: list(theirs.encode(text, add_special_tokens=True).ids),
        lambda ids: str(theirs.decode(ids, skip_special_tokens=False)),
        lambda id: str(theirs.id_to_token(id)),
        _WITH_ENDS,
    )


def _tiktoken(file: str, kind: str, tok: Tokenizer) -> Peer:
    import tiktoken
    from tiktoken.load import load_tiktoken_bpe

    splits = [stage for stage in tok.spec.stages if isinstance(stage, (Split, SplitRegex))]
    model = tok.spec.model
    if not isinstance(model, BPE) or model.end_of_word or len(splits) != 1:
        raise SubwordValueError("tiktoken has no such tokenizers: it has byte-level BPE with one split pattern")
    (split,) = splits
    regex = PATTERNS[split.pattern].regex if isinstance(split, Split) else split.regex
    if not isinstance(regex, str):
        raise SubwordValueError(f"tiktoken has one split pattern, and this tokenizer {len(regex)}")
    if kind == "tiktoken" and os.path.exists(file):
        ranks, reads = load_tiktoken_bpe(file), os.path.basename(file)
    else:
        ranks, reads = dict(model.vocab.items()), "the ranks as subword reads them"
    # It has one kind of them: what is always taken from text is there if all are allowed.
    extra = {token.content: token.id for token in tok.spec.extra if token.kind != "unmatchable"}
    theirs = tiktoken.Encoding("checked", pat_str=regex, mergeable_ranks=ranks, special_tokens=extra)
    return Peer(
        "tiktoken",
        metadata.version("tiktoken"),
        reads,
        lambda text: list(theirs.encode(text, allowed_special="all")),
        lambda ids: str(theirs.decode(ids)),
        lambda id: theirs.decode_single_token_bytes(id).decode("utf-8", "backslashreplace"),
        _WITHOUT_ENDS,
    )


def _sentencepiece(file: str, kind: str, tok: Tokenizer) -> Peer:
    import sentencepiece

    if kind != "sentencepiece":
        raise SubwordValueError(f"sentencepiece reads its own .model files only; this is {kind}")
    theirs = sentencepiece.SentencePieceProcessor(model_file=file)
    return Peer(
        "sentencepiece",
        metadata.version("sentencepiece"),
        os.path.basename(file),
        lambda text: list(theirs.encode(text)),
        lambda ids: str(theirs.decode(ids)),
        lambda id: str(theirs.id_to_piece(id)),
        {"disallowed_special": ()},
    )


def _transformers(file: str, kind: str, tok: Tokenizer) -> Peer:
    import transformers

    if os.path.isdir(file):
        theirs, reads = transformers.AutoTokenizer.from_pretrained(file, local_files_only=True), "the folder"
    elif kind == "tokenizer.json":
        theirs, reads = transformers.PreTrainedTokenizerFast(tokenizer_file=file), os.path.basename(file)
    else:
        theirs, reads = tok.to_transformers(), "what subword's to_transformers gives"
    return Peer(
        "transformers",
        transformers.__version__,
        reads,
        lambda text: list(theirs(text)["input_ids"]),
        lambda ids: str(theirs.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)),
        lambda id: str(theirs.convert_ids_to_tokens(id)),
        _WITH_ENDS,
    )


_CONNECT: dict[str, Callable[[str, str, Tokenizer], Peer]] = {
    "tokenizers": _tokenizers,
    "tiktoken": _tiktoken,
    "sentencepiece": _sentencepiece,
    "transformers": _transformers,
}


# ======================== comparing ========================


class _FailedError(Exception):
    """The library failed on a text."""


def _theirs(peer: Peer, text: str) -> list[int]:
    try:
        return peer.encode(text)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of Rust is no Exception
        raise _FailedError(f"{type(error).__name__}: {error}") from None


def _ours(tok: Tokenizer, peer: Peer, text: str) -> list[int] | str:
    try:
        return tok.encode(text, **peer.way)
    except SubwordError as error:
        return f"{type(error).__name__}: {error}"


def _compare(tok: Tokenizer, peer: Peer, texts: Sequence[str]) -> tuple[Difference | None, int, tuple[int, str]]:
    failures, first = 0, ""
    for count, text in enumerate(texts, 1):
        try:
            theirs = _theirs(peer, text)
        except _FailedError as error:
            failures += 1
            first = first or f"{error} (on {text[:80]!r})"
            continue
        if _ours(tok, peer, text) != theirs:
            return _of_ids(tok, peer, text), count, (failures, first)
        if _decoded(tok, theirs) != peer.decode(theirs):
            return _of_decoding(tok, peer, text), count, (failures, first)
    return None, len(texts), (failures, first)


def _of_ids(tok: Tokenizer, peer: Peer, text: str) -> Difference:
    def differs(data: bytes) -> bool:
        part = data.decode("utf-8", "replace")
        try:
            return _ours(tok, peer, part) != _theirs(peer, part)
        except _FailedError:
            return False

    text = _smallest(tok, peer, text, differs)
    ours, theirs = _ours(tok, peer, text), _theirs(peer, text)
    our_pieces = [] if isinstance(ours, str) else [tok.token_piece(id) for id in ours]
    return Difference("ids", text, ours, theirs, our_pieces, [peer.piece(id) for id in theirs])


def _of_decoding(tok: Tokenizer, peer: Peer, text: str) -> Difference:
    def differs(data: bytes) -> bool:
        try:
            ids = _theirs(peer, data.decode("utf-8", "replace"))
        except _FailedError:
            return False
        return _decoded(tok, ids) != peer.decode(ids)

    text = _smallest(tok, peer, text, differs)
    ids = _theirs(peer, text)
    pieces = [peer.piece(id) for id in ids]
    return Difference("decoding", text, _decoded(tok, ids), peer.decode(ids), pieces, pieces)


def _decoded(tok: Tokenizer, ids: list[int]) -> str:
    try:
        return tok.decode(ids)
    except SubwordError as error:
        return f"{type(error).__name__}: {error}"


def _smallest(tok: Tokenizer, peer: Peer, text: str, differs: Callable[[bytes], bool]) -> str:
    """A long text is first cut to what stands around the place where the ids part, if they still do."""
    if len(text) > 2 * WINDOW:
        ours, theirs = _ours(tok, peer, text), _theirs(peer, text)
        at = next((at for at, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), 0)
        place = len(_decoded(tok, theirs[:at]))
        for size in (WINDOW // 4, WINDOW, 8 * WINDOW):
            part = text[max(place - size, 0) : place + size]
            if differs(part.encode()):
                text = part
                break
    return shortest(text.encode("utf-8", "replace"), differs).decode("utf-8", "replace")


# ======================== speed ========================


def _time(
    path: str, tok: Tokenizer, peer: Peer, texts: list[str] | None, our_load: float, said: dict[str, Any] | None
) -> Speed | None:
    """Both on the same texts, one after the other; which goes first changes from round to round."""
    if texts is None:
        lines = [parallel.text for parallel in builtin_passage().texts]
        texts = lines * (SPEED_BYTES // 4 // max(sum(map(len, lines)), 1) + 1)
    chosen: list[str] = []
    size = 0
    for text in texts:
        if size >= SPEED_BYTES:
            break
        chosen.append(text[: SPEED_BYTES - size])
        size += len(chosen[-1].encode("utf-8", "replace"))
    if not size:
        return None
    with _nothing_kept():
        fresh = load(path, **(said or {}))  # which has met no text yet
        cold_peer = connect(path, fresh, peer.name)
    works: list[Callable[[], None]] = [
        lambda: _run(lambda text: fresh.encode(text, **peer.way), chosen),
        lambda: _run(cold_peer.encode, chosen),
    ]
    cold = [_seconds(work) for work in works]
    warm = [list[float](), list[float]()]
    for number in range(ROUNDS):
        for at in (0, 1) if number % 2 else (1, 0):
            warm[at].append(_seconds(works[at]))
    speeds = [round(size / 1e6 / max(seconds, 1e-9), 2) for seconds in (*cold, min(warm[0]), min(warm[1]))]
    return Speed(
        len(chosen),
        size,
        ROUNDS,
        round(our_load, 3),
        round(peer.seconds, 3),
        speeds[0],
        speeds[1],
        speeds[2],
        speeds[3],
    )


def _run(encode: Callable[[str], Any], texts: Sequence[str]) -> None:
    for text in texts:
        try:
            encode(text)
        except Exception:  # what fails is told by the comparison
            continue


def _seconds(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
