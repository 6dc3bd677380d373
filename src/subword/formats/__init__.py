"""Tokenizer files: bytes to `Spec` and back. One file a format; the grammar of each stands at the top of its file.

`load` recognises a format by what the file holds, never by its name; `save` takes it from the name or is told.

To add a format: one file with `looks_like`, `read` and `write`, and one row in `FORMATS`.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ..arguments import path_of
from ..errors import SubwordValueError, warn
from ..spec import Spec, Split, SplitRegex
from ..tokenizer import Text
from ..writing import MissingFileError, os_error
from . import compiled, hub, known, model_folder
from .bare import Input, LeftOutError
from .files import read_file, write_file, write_files

if TYPE_CHECKING:
    from .comparing import NOT_COMPARED, Comparison, Difference, DifferenceError, compare
    from .converting import LossError

__all__ = [
    "FORMATS",
    "NOT_COMPARED",
    "PARTS",
    "Comparison",
    "Conversion",
    "Difference",
    "DifferenceError",
    "Format",
    "LeftOutError",
    "LossError",
    "compare",
    "convert",
    "load",
    "read",
    "recognise",
    "save",
]


def __getattr__(name: str) -> Any:
    """What other files have, imported when it is asked for: loading should not wait for it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(".converting" if name == "LossError" else ".comparing", __name__), name)


AnyPath: TypeAlias = "str | bytes | os.PathLike[str] | os.PathLike[bytes]"

MODEL_FOLDER = "model-folder"

GGUF_HEAD_BYTES = 2**28
"""So much of a file is read at most; what it says before its tensors has some megabytes."""

HEAD_BYTES = 4096
"""So much of a file is enough for `looks_like`."""

BESIDE = ("*merges.txt", "vocab.bpe")
"""Files that are read with others, and are none by themselves."""

PARTS = ("pieces", "ids", "merges", "pattern", "normalization", "extra tokens", "template", "roles", "notes")
"""What a tokenizer consists of, as far as files tell it apart."""


def _split_pattern(spec: Spec) -> str | SplitRegex | None:
    splits = (stage for stage in spec.stages if isinstance(stage, (Split, SplitRegex)))
    return next((stage.pattern if isinstance(stage, Split) else stage for stage in splits), None)


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of tokenizer file.

    Attributes:
        suffixes: of file names by which `save` takes this format.
        names: what such files are called in a folder, as patterns.
        module: the file here that reads and writes it.
        starts: what such a file starts with, behind a byte-order mark and white space; nothing if that is not known.
        sign: what `looks_like` looks for, in words.
        looks_like: whether the bytes of a file, or the first `HEAD_BYTES` of them, are of this kind, sound or damaged.
        read: the spec that a file means.
        files: the file, and those beside it that are read, too.
        write: the file that holds a spec; a format of several files gives their names with their bytes.
        whole: it says all of a tokenizer. Others leave out the split pattern and the special tokens, and `load` takes
            these as arguments; in a folder, a whole one goes first.
        folder: it is a folder of files.
        said: what `load` must be told as `pattern` to read what `write` wrote of a spec.
        holds_chat: it has a place for chat templates.
        recognised: it is known by its content.
    """

    name: str
    suffixes: tuple[str, ...]
    names: tuple[str, ...]
    module: str
    sign: str
    looks_like: Callable[[bytes], bool]
    read: Callable[[Input], Spec]
    write: Callable[[Spec], bytes] | Callable[[Spec], dict[str, bytes]]
    starts: tuple[bytes, ...] = ()
    whole: bool = True
    folder: bool = False
    files: Callable[[Input], tuple[Input, ...]] = lambda file: (file,)
    said: Callable[[Spec], str | SplitRegex | None] = _split_pattern
    holds_chat: bool = False
    recognised: bool = True

    @property
    def parts(self) -> Mapping[str, str | None]:
        """Where in the file each of `PARTS` is, or None where the format has no place for it."""
        parts: Mapping[str, str | None] = import_module(f".{self.module}", __name__).PARTS
        return parts

    @property
    def limits(self) -> str:
        """What else it cannot hold."""
        return str(import_module(f".{self.module}", __name__).LIMITS)


def _of(module: str, name: str) -> Callable[..., Any]:
    """A function of a file here, which is imported when that is called: loading should not wait for other formats."""
    return lambda *arguments: getattr(import_module(f".{module}", __name__), name)(*arguments)


def _whole(read: Callable[[bytes, str], Spec]) -> Callable[[Input], Spec]:
    """`read` for files that leave nothing to say."""

    def read_input(file: Input) -> Spec:
        if file.pattern is not None or file.special_tokens is not None:
            problem = "this file says its split pattern and its special tokens itself; give neither of them"
            raise SubwordValueError(f"{file.name}: {problem}")
        return read(file.data, file.name)

    return read_input


def _read_tokenizer_json(file: Input) -> Spec:
    return _whole(lambda data, name: _of("tokenizer_json", "read")(data, name, file.warn))(file)


FORMATS: tuple[Format, ...] = (
    Format(
        name="native",
        suffixes=(".subword",),
        names=("*.subword",),
        module="native",
        sign="a first line 'subword tokenizer 1'",
        starts=(b"subword tokenizer ",),
        looks_like=_of("native", "looks_like"),
        read=_whole(_of("native", "read")),
        write=_of("native", "write"),
        holds_chat=True,
    ),
    Format(
        name="minbpe",
        suffixes=(),
        names=("*.model",),
        module="minbpe",
        sign="a first line 'minbpe v1'",
        starts=(b"minbpe v",),
        looks_like=_of("minbpe", "looks_like"),
        read=_whole(_of("minbpe", "read")),
        write=_of("minbpe", "write"),
    ),
    Format(
        name="gguf",
        suffixes=(".gguf",),
        names=("*.gguf",),
        module="gguf",
        sign="bytes GGUF",
        starts=(b"GGUF",),
        looks_like=_of("gguf", "looks_like"),
        read=_whole(_of("gguf", "read")),
        write=_of("gguf", "write"),
        holds_chat=True,
    ),
    Format(
        name="sentencepiece",
        suffixes=(".model",),
        names=("*.model",),
        module="sentencepiece",
        sign="bytes 0A … 0A",
        starts=(b"\n",),
        looks_like=_of("sentencepiece", "looks_like"),
        read=_whole(_of("sentencepiece", "read")),
        write=_of("sentencepiece", "write"),
    ),
    Format(
        name="subword-nmt",
        suffixes=(".codes",),
        names=("*.codes",),
        module="subword_nmt",
        sign="a first line '#version: …' and tokens that end in </w>, without a vocabulary beside it",
        starts=(b"#version:",),
        looks_like=_of("subword_nmt", "looks_like"),
        read=_whole(_of("subword_nmt", "read")),
        write=_of("subword_nmt", "write"),
    ),
    Format(
        name="clip",
        suffixes=(".txt.gz",),
        names=("bpe_simple_vocab_16e6.txt.gz", "bpe_simple_vocab_16e6.txt"),
        module="clip",
        sign="a first line '\"bpe_simple_vocab_16e6.txt#version: …', compressed or not",
        starts=(b"\x1f\x8b", b'"bpe_simple_vocab'),
        looks_like=_of("clip", "looks_like"),
        read=_whole(_of("clip", "read")),
        write=_of("clip", "write"),
    ),
    Format(
        name="vocab+merges",
        suffixes=(),
        names=("*vocab.json", "*encoder.json"),
        module="vocab_merges",
        sign="a JSON object of tokens and numbers, or a first line '#version: …'",
        starts=(b"{", b"#version:"),
        looks_like=_of("vocab_merges", "looks_like"),
        read=_of("vocab_merges", "read"),
        write=_of("vocab_merges", "write"),
        whole=False,
        folder=True,
        files=_of("vocab_merges", "pair"),
    ),
    Format(
        name="tekken",
        suffixes=("tekken.json",),
        names=("*tekken*.json",),
        module="tekken",
        sign="a JSON object with default_num_special_tokens in its config",
        starts=(b"{",),
        looks_like=_of("tekken", "looks_like"),
        read=_whole(_of("tekken", "read")),
        write=_of("tekken", "write"),
    ),
    Format(
        name="tokenizer.json",
        suffixes=(".json",),
        names=("tokenizer.json",),
        module="tokenizer_json",
        sign="any other JSON object",
        starts=(b"{",),
        looks_like=_of("tokenizer_json", "looks_like"),
        read=_read_tokenizer_json,
        write=_of("tokenizer_json", "write"),
    ),
    Format(
        name=MODEL_FOLDER,
        suffixes=(),
        names=(),
        module="model_files",
        sign="a folder with tokenizer.json and tokenizer_config.json",
        looks_like=_of("model_files", "looks_like"),
        read=_of("model_files", "read"),
        write=_of("model_files", "write"),
        folder=True,
        holds_chat=True,
        recognised=False,
    ),
    Format(
        name="tiktoken",
        suffixes=(".tiktoken",),
        names=("*.tiktoken", "*.model"),
        module="tiktoken",
        sign="a first line of base64, a space and a number",
        looks_like=_of("tiktoken", "looks_like"),
        read=_of("tiktoken", "read"),
        write=_of("tiktoken", "write"),
        whole=False,
    ),
    Format(
        name="rwkv",
        suffixes=(),
        names=("rwkv_vocab*.txt",),
        module="rwkv",
        sign="a first line of an id, a Python literal and its length",
        looks_like=_of("rwkv", "looks_like"),
        read=_of("rwkv", "read"),
        write=_of("rwkv", "write"),
        whole=False,
        said=lambda spec: None,
    ),
    Format(
        name="vocab.txt",
        suffixes=("vocab.txt",),
        names=("*vocab.txt",),
        module="vocab_txt",
        sign="a line [UNK] among lines of one entry each",
        looks_like=_of("vocab_txt", "looks_like"),
        read=_of("vocab_txt", "read"),
        write=_of("vocab_txt", "write"),
        whole=False,
        files=_of("vocab_txt", "files"),
        said=_of("vocab_txt", "said"),
    ),
)


def load(
    path: AnyPath, pattern: str | SplitRegex | None = None, special_tokens: Mapping[str, int] | None = None
) -> Spec:
    """Read a tokenizer file, the one in a folder, a vocabulary that is known by name (`known.py`), or a model on
    the Hub (`hub.py`).

    The content decides what format it is. A file or folder of that name goes before a known vocabulary. What a model's
    folder says beside the tokenizer file counts, see `model_folder.py`.

    Args:
        pattern: the split pattern, for a file that does not say it.
        special_tokens: the special tokens with their ids, likewise.

    Raises:
        SubwordOSError: the file cannot be read; it is a FileNotFoundError where nothing stands at `path`.
        FormatError: it is of no known format, damaged, or asks for something not supported.
        SubwordValueError: an argument cannot be used, or a folder holds more than one tokenizer.
    """
    name = _local(path_of(path))
    if _is_known(name) and pattern is None and special_tokens is None:
        return load_known(name)
    if os.path.isdir(name):
        return model_folder.configured(load(_file_in(name), pattern, special_tokens), model_folder.Folder(name))
    if compiled.is_on():
        kept = compiled.find_path(Input(b"", name, name, pattern, special_tokens))
        if kept is not None:
            return kept
    return _read(_input_of(name, pattern, special_tokens))


def _local(name: str) -> str:
    """A path; of a model on the Hub, that of the folder with its files.

    GGUF files stay there: each has all of a model in it.
    """
    if not hub.is_id(name):
        return name
    return hub.fetch(name, [pattern for pattern in _names() if not pattern.endswith(".gguf")])


def _names() -> list[str]:
    """What tokenizer files are called, and what is read beside them, as patterns."""
    return list(dict.fromkeys([*(name for row in FORMATS for name in row.names), *BESIDE]))


def recognise(path: AnyPath) -> tuple[str, Format, int]:
    """The file that `load` would read, its format, and its size in bytes.

    Raises:
        SubwordOSError, FormatError: as for `load`; damage to the file is not looked for.
    """
    file = _input_of(path)
    return file.path or file.name, _format_of_content(file), len(file.data)


def _input_of(
    path: AnyPath, pattern: str | SplitRegex | None = None, special_tokens: Mapping[str, int] | None = None
) -> Input:
    name = _local(path_of(path))
    if _is_known(name):
        if pattern is not None or special_tokens is not None:
            raise SubwordValueError(f"{name} has its own split pattern and special tokens; give neither of them")
        return _known_input(name)
    if os.path.isdir(name):
        name = _file_in(name)
    try:
        data = read_file(name, most={b"GGUF": GGUF_HEAD_BYTES})
    except MissingFileError as error:
        if os.path.basename(name) != name or "." in name:
            raise
        problem = f"{error.strerror}, and no vocabulary is known by this name; known are {', '.join(known.KNOWN)}"
        raise MissingFileError(error.errno, problem, name) from None
    return Input(data, name, name, pattern, special_tokens)


def _is_known(name: str) -> bool:
    return name in known.KNOWN and not os.path.lexists(name)


def read(data: bytes, source: str = "<bytes>") -> Spec:
    """The spec in the bytes of a tokenizer file; errors call it `source`.

    Raises:
        FormatError: as for `load`.
    """
    return _read(Input(data, source))


def _read(file: Input) -> Spec:
    """The spec in a file, or what was kept when it was read before."""
    row = _format_of_content(file)
    if not compiled.is_on():
        return row.read(file)
    digests = [each.sha256 for each in row.files(file)]
    spec = compiled.find(file, digests)
    if spec is None:
        spec = row.read(file)
        compiled.keep(file, digests, spec)
    return spec


def _format_of_content(file: Input) -> Format:
    row = _recognise(file.data)
    if row is not None:
        # Codes of subword-nmt and the merges of a vocabulary of GPT-1's kind are alike.
        in_two = row.name == "subword-nmt" and _of("vocab_merges", "has_vocabulary")(file)
        return next(row for row in FORMATS if row.name == "vocab+merges") if in_two else row
    if not file.data:
        raise file.error("the file is empty")
    looked_for = "; ".join(f"{row.sign} ({row.name})" for row in FORMATS if row.recognised)
    start = bytes(file.data[:24])
    raise file.error(f"no tokenizer format that subword reads. It starts with {start!r}; looked for {looked_for}")


def _recognise(data: bytes) -> Format | None:
    head = data[:HEAD_BYTES].removeprefix(b"\xef\xbb\xbf")
    heads = (head, head.lstrip())
    for row in FORMATS:
        may_be = row.recognised and (not row.starts or any(head.startswith(row.starts) for head in heads))
        if may_be and row.looks_like(data):
            return row
    return None


def load_known(name: str) -> Spec:
    """A vocabulary that is known by name.

    Raises:
        SubwordValueError: there is none of this name; the message lists those there are.
        SubwordOSError: it is not on this machine and cannot be downloaded.
    """
    if not isinstance(name, str) or name not in known.KNOWN:
        raise SubwordValueError(f"no vocabulary is known by the name {name!r}; known are {', '.join(known.KNOWN)}")
    row = known.KNOWN[name]
    # What was kept spares looking for the files, too: their hashes are known.
    kept = None
    if compiled.is_on():
        said = Input(b"", row.files[0].name, None, row.pattern, row.special_tokens)
        kept = compiled.find(said, [file.sha256 for file in row.files])
    return _read(_known_input(name)) if kept is None else kept


def _known_input(name: str) -> Input:
    row = known.KNOWN[name]
    files = known.fetch(row)
    first, data = next(iter(files.items()))
    return Input(data, first, None, row.pattern, row.special_tokens, files)


def save(spec: Spec, path: AnyPath, format: str | None = None) -> Path:
    """Write a tokenizer file, atomically: whatever happens, the old file or the new one stands there, whole.

    What is written is read back first: it must be the same tokenizer, or give the same on texts meant to hurt.

    Args:
        spec: The tokenizer.
        path: Where to write. Its suffix says in which format: `.subword` (subword's own, holds everything), `.json`
            (tokenizer.json of HF tokenizers), `tekken.json` (Mistral), `.gguf`, `.model` (SentencePiece), `.tiktoken`,
            `.codes` (subword-nmt), `.txt.gz` (CLIP) or `vocab.txt` (BERT); a folder that is there, or a name that ends
            in a slash, is a model's folder.
        format: The name of a format (a row of `FORMATS`), for a name that does not say. With `model-folder` and
            `vocab+merges`, `path` is a folder, which is made if it is not there.

    Returns:
        Where the file is.

    Raises:
        SubwordValueError: there is no such format, or it cannot hold something of `spec`; the message names it.
        SubwordOSError: the file cannot be written.
    """
    name = path_of(path)
    row = _format_of(name, format)
    written = row.write(spec)
    if row.parts["ids"] is not None:
        from . import converting

        converting.checked(spec, name, lambda: _read_back(spec, row, name, written), True, (), always=False)
    if spec.chat and not row.holds_chat:
        warn(f"{name}: this format has no place for chat templates; a .subword file or a model's folder has")
    return _put(name, written)


def _put(name: str, written: bytes | dict[str, bytes]) -> Path:
    if isinstance(written, bytes):
        write_file(name, written)
    else:
        write_files(name, written)
    return Path(name)


class Conversion(NamedTuple):
    """What `convert` did: where the file is, in which format, on how many texts it was compared, what changed without
    changing an id, and what was lost."""

    path: Path
    format: str
    texts: int
    changed: tuple[str, ...]
    lost: tuple[str, ...] = ()


def convert(
    source: AnyPath | Spec,
    path: AnyPath,
    format: str | None = None,
    texts: Iterable[Text] = (),
    allow_lossy: bool = False,
) -> Conversion:
    """Write a tokenizer in another format, after making sure that the new file means the same.

    What would be written is read back and compared (`comparing.compare`), before anything is written.

    Args:
        source: a file, as for `load`, or a tokenizer that was loaded already.
        path, format: as for `save`.
        texts: on which to compare the two, beside those that the package has.
        allow_lossy: leave out what the format cannot hold (`converting.LOSSES`).

    Raises:
        LossError: the format cannot hold all of it; the message, and `lost`, say what. Nothing was written.
        DifferenceError: the two would differ; the message says on what. Nothing was written.
        SubwordValueError, SubwordOSError, FormatError: as for `load` and `save`.
    """
    from . import converting

    spec = source if isinstance(source, Spec) else load(source)
    name = path_of(path)
    row = _format_of(name, format)
    kept, lost = converting.reduced(spec, row.write, row.holds_chat, name, allow_lossy)
    written = row.write(kept)
    done = converting.checked(
        kept, name, lambda: _read_back(kept, row, name, written), row.parts["ids"] is not None, texts, always=True
    )
    return Conversion(_put(name, written), row.name, done.texts, done.changed, lost)


def _read_back(spec: Spec, row: Format, name: str, written: bytes | dict[str, bytes]) -> Spec:
    """The tokenizer that reading what was written would give."""
    file = _written_input(spec, row, name, written)
    return (_format_of_content(file) if row.recognised else row).read(file)


def _written_input(spec: Spec, row: Format, name: str, written: bytes | dict[str, bytes]) -> Input:
    """What was written, as it will be read: with the arguments that `load` needs for it."""
    files = {name: written} if isinstance(written, bytes) else written
    first, data = next(iter(files.items()))
    if row.whole:
        return Input(data, first, None, others=files)
    specials = {token.content: token.id for token in spec.extra if token.kind == "special"}
    return Input(data, first, None, row.said(spec), specials, files)


def _format_of(name: str, format: str | None) -> Format:
    for row in FORMATS:
        if row.name == format if format is not None else name.lower().endswith(row.suffixes):
            return row
    if format is None and (name.endswith(("/", os.sep)) or os.path.isdir(name)):
        return _format_of(name, MODEL_FOLDER)
    names = ", ".join(row.name for row in FORMATS)
    if format is None:
        endings = ", ".join(f"{' or '.join(row.suffixes)} ({row.name})" for row in FORMATS if row.suffixes)
        endings += f", or / ({MODEL_FOLDER})"
        raise SubwordValueError(f"{name}: the name says no format; end it in {endings}, or pass format= ({names})")
    names = ", ".join(repr(row.name) for row in FORMATS)
    raise SubwordValueError(f"unknown format {format!r}; the formats are {names}")


def _file_in(folder: str) -> str:
    """The one tokenizer file in a folder: a whole one, else one that leaves something out."""
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise os_error(error, "cannot read a tokenizer", folder) from error
    patterns = [pattern for pattern in _names() if pattern not in BESIDE]
    called_so = [name for name in names if any(fnmatch(name, pattern) for pattern in patterns)]
    rows = {name: _recognise(_head(os.path.join(folder, name))) for name in called_so}
    for found in (
        [name for name, row in rows.items() if row is not None and row.whole],
        [name for name, row in rows.items() if row is not None and not row.whole],
        called_so,  # of no known format: reading it says what was looked for
    ):
        if "tokenizer.json" in found and model_folder.CONFIG in names:
            return os.path.join(folder, "tokenizer.json")  # a model's folder: the others are what this was made from
        if len(found) > 1:
            raise SubwordValueError(f"{folder}: more than one tokenizer is here, name one of {', '.join(found)}")
        if found:
            return os.path.join(folder, found[0])
    message = f"this folder holds no tokenizer (looked for {', '.join(patterns)})"
    raise MissingFileError(errno.ENOENT, message, folder)


def _head(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(HEAD_BYTES)
    except OSError as error:
        raise os_error(error, "cannot read a tokenizer", path) from error
