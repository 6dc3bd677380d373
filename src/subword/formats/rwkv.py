"""RWKV's vocabulary files (`rwkv_vocab_v20230424.txt`): entries of bytes, of which the longest match is taken.

    file = line*
    line = id " " literal " " length "\\n"    literal: a Python string 'a\\n', or bytes b'\\xe4'; length: of its bytes

Each single byte is an entry, so there is nothing unknown and nothing is split before. The file has no special tokens;
RWKV's models end texts with the id 0, which no entry has: `load(special_tokens={"<|endoftext|>": 0})` gives it a name.
"""

from __future__ import annotations

import re

from ..errors import FormatError, SubwordValueError, warn
from ..spec import MAX_ID, Decode, ExtraToken, LongestMatch, MatchTokens, Spec, Template, Vocab
from .bare import Input, checked_special_tokens, refuse, special_tokens_of
from .json_node import shown

KIND = "an RWKV vocabulary"

PARTS = {
    "pieces": "each line, a Python literal",
    "ids": "each line, the first number",
    "merges": None,
    "pattern": None,
    "normalization": None,
    "extra tokens": None,
    "template": None,
    "roles": None,
    "notes": None,
}
LIMITS = "models other than LongestMatch; stages before it"

_LINE = re.compile(rb"""([0-9]{1,10}) (b?(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")) ([0-9]{1,10})\s*""")
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_SHORT = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", "'": "'", '"': '"', "0": "\0"}


def looks_like(data: bytes) -> bool:
    return _LINE.fullmatch(data[:4096].split(b"\n", 1)[0].removeprefix(b"\xef\xbb\xbf")) is not None


def read(file: Input) -> Spec:
    """The spec that a file and what is said of it mean.

    Raises:
        FormatError: the file is damaged.
        SubwordValueError: a split pattern was given; there is none.
    """
    if file.pattern is not None:
        raise SubwordValueError(f"{file.name}: {KIND} matches whole texts; give no pattern")
    lines: dict[bytes, int] = {}
    ids: dict[int, bytes] = {}
    for number, line in enumerate(file.data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if not line.strip():
            continue
        id, piece = _entry(file, line, number)
        if id in ids:
            raise file.error(f"the id {id} stands already in another line", number)
        if piece in lines:
            raise file.error(f"the entry {shown(piece)} stands already in line {lines[piece]}", number)
        lines[piece] = number
        ids[id] = piece
    special = checked_special_tokens(file.special_tokens or {})
    for token, id in special.items():
        if ids.get(id, token.encode()) != token.encode():
            taken = f"the special token {shown(token)} cannot have the id {id}, which is that of {shown(ids[id])}"
            raise FormatError(f"{file.name}: {taken}")
    model = LongestMatch(Vocab.of((piece, id) for id, piece in ids.items() if id not in special.values()))
    try:
        model.compiled()
    except FormatError as error:
        raise file.error(f"{error}; is the file complete?") from None
    extra = tuple(ExtraToken(id, token) for token, id in sorted(special.items(), key=lambda item: item[1]))
    return Spec((MatchTokens(),) if extra else (), model, extra)


def _entry(file: Input, line: bytes, number: int) -> tuple[int, bytes]:
    found = _LINE.fullmatch(line)
    if found is None:
        problem = f"expected an id, a Python literal and its length, found {shown(line)}; is the file complete?"
        raise file.error(problem, number)
    id, literal, length = int(found[1]), found[2], int(found[3])
    if id > MAX_ID:
        raise file.error(f"the id {id} is beyond the largest, {MAX_ID}", number)
    piece = literal[1:-1] if literal[:1] != b"b" and b"\\" not in literal else _unescaped(file, literal, number)
    if not piece:
        raise file.error("the entry is empty", number)
    if len(piece) != length:
        raise file.error(f"{shown(piece)} has {len(piece)} bytes, not {length}; is the file complete?", number)
    return id, piece


def _unescaped(file: Input, literal: bytes, number: int) -> bytes:
    is_bytes = literal[:1] == b"b"
    try:
        inside = literal[1 + is_bytes : -1].decode("latin-1" if is_bytes else "utf-8")
        text = _ESCAPE.sub(_char, inside)
        return text.encode("latin-1" if is_bytes else "utf-8")
    except (ValueError, KeyError):  # of UTF-8, too
        raise file.error(f"{shown(literal)} is no literal of Python's that this format has", number) from None


def _char(found: re.Match[str]) -> str:
    digits = found[1] or found[2] or found[3]
    return _SHORT[found[4]] if digits is None else chr(int(digits, 16))


# ======================== writing ========================


def write(spec: Spec) -> bytes:
    """The file with the vocabulary of `spec`. Warns of what must be said again when it is loaded.

    Raises:
        SubwordValueError: neither the file nor the arguments of `load` can hold something of `spec`.
    """
    if not isinstance(spec.model, LongestMatch):
        refuse(KIND, f"a {type(spec.model).__name__}")
    others = [stage for stage in spec.stages if stage != MatchTokens()]
    if others:
        refuse(KIND, f"the stages {', '.join(map(repr, others))}")
    if spec.template != Template() or spec.decode != Decode():
        refuse(KIND, "a template, or another way to decode")
    for token in spec.extra:
        if token.kind != "special" or token.single_word or token.lstrip or token.rstrip or token.normalized:
            refuse(KIND, f"the {token.kind} token {token.content!r} (id {token.id}) as it is")
    special = special_tokens_of(spec)
    if special:
        text = f"{KIND} has no place for special tokens: load it with special_tokens={special!r}"
        warn(text)
    if spec.roles:
        text = f"{KIND} has no place for the roles {', '.join(spec.roles)}"
        warn(text)
    lines = (f"{id} {_literal(piece)} {len(piece)}\n" for piece, id in spec.model.vocab.items())
    return "".join(lines).encode()


def _literal(piece: bytes) -> str:
    try:
        return repr(piece.decode())
    except UnicodeDecodeError:
        return repr(piece)
