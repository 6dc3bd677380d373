"""Mistral's `tekken.json`: ranks in JSON, with the split pattern and the special tokens.

    {"config": {"pattern", "num_vocab_tokens", "default_vocab_size", "default_num_special_tokens", "version"},
     "vocab": [{"rank", "token_bytes": base64, "token_str"}, …],
     "special_tokens": [{"rank", "token_str", "is_control"}, …],      of versions up to v7, it may be left out
     "image", "audio", …}                                             what other kinds of input take; kept as notes

Special tokens come first: `default_num_special_tokens` ids from 0 on. Those that are not listed are called
`<SPECIAL_9>` by their ids. An entry's id is its rank behind them; entries beyond `default_vocab_size` have none. The
lower rank merges first; a piece that is an entry as a whole is that entry (as with tiktoken).
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from typing import Any

from ..errors import FormatError, SubwordValueError, warn
from ..patterns import get_pattern
from ..spec import BPE, MAX_ID, ExtraToken, MatchTokens, Spec, Split, SplitRegex, Vocab
from .bare import missing_bytes, refuse, special_tokens_of, split_pattern, splitting_by
from .json_node import Node, parse, shown
from .rank_merges import check_order

KIND = "a tekken.json"

PARTS = {
    "pieces": "vocab, token_bytes in base64",
    "ids": "vocab, rank, behind the special tokens",
    "merges": "the ranks: of two neighbours that spell an entry, those that spell the one with the lowest merge first",
    "pattern": "config.pattern, the regular expression",
    "normalization": None,
    "extra tokens": "special_tokens",
    "template": None,
    "roles": "by Mistral's names: <s>, </s>, <pad>, <unk>",
    "notes": "config.version, image, audio and what else there is",
}
LIMITS = (
    "special tokens with other than the first ids; bytes with other than the first ids behind these; "
    "merges in another order than that of the ids they make"
)

EARLY_SPECIAL = (
    *("<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]"),
    *("[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]"),
    *("[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]"),
)
"""The special tokens of files that list none, which those up to v7 may (mistral-common 1.13)."""

ROLES = {"bos": "<s>", "eos": "</s>", "pad": "<pad>", "unk": "<unk>"}
LAST_EARLY_VERSION = 7
MOST_SPECIAL = 2**20


def looks_like(data: bytes) -> bool:
    """A JSON object that begins with the settings, the entries or the special tokens of such a file."""
    start = data[:4096].removeprefix(b"\xef\xbb\xbf")
    settings = rb'"config"\s*:\s*\{[^{}]*"(?:default_vocab_size|default_num_special_tokens|num_vocab_tokens)"'
    entry = rb'"(?:vocab|special_tokens)"\s*:\s*\[\s*\{\s*"(?:rank|token_bytes|token_str|is_control)"'
    return re.match(rb"\s*\{", start) is not None and re.search(settings + rb"|" + entry, start) is not None


def read(data: bytes, source: str) -> Spec:
    """The spec that a file holds.

    Raises:
        FormatError: the file is damaged, or of a version that is not supported.
    """
    root = parse(data, source)
    config = root["config"]
    count = config["default_num_special_tokens"].number(0, MOST_SPECIAL)
    size = config["default_vocab_size"].number(0, MAX_ID)
    vocab = root["vocab"]
    wanted = size - count
    if wanted < 256:
        problem = f"{size} ids with {count} special tokens leave no room for the 256 bytes"
        raise config["default_vocab_size"].error(problem)
    rows = vocab.value if isinstance(vocab.value, list) else list(vocab.items())
    if len(rows) < wanted:
        raise vocab.error(f"{len(rows):,} entries, where {wanted:,} are wanted; is the file complete?")
    pieces = _pieces(vocab, rows[:wanted])
    special = _special(root, config, count)
    model = BPE(
        Vocab.of((piece, count + rank) for rank, piece in enumerate(pieces)), priority="rank", ignore_merges=True
    )
    try:
        model.compiled()
    except FormatError as error:
        raise vocab.error(str(error)) from None
    try:
        splitting = splitting_by(config["pattern"].text())
    except SubwordValueError as error:
        raise config["pattern"].error(str(error)) from None
    ids = {token: id for id, token in enumerate(special)}
    others = {name: value for name, value in root.value.items() if name not in ("config", "vocab", "special_tokens")}
    plain = [token.text() for token in _not_control(root)]
    return Spec(
        stages=(*([MatchTokens()] if ids else []), splitting),
        model=model,
        extra=tuple(ExtraToken(id, token) for token, id in ids.items()),
        roles={role: ids[token] for role, token in ROLES.items() if token in ids},
        notes={
            "tekken": {"version": config["version"].text(), **others, **({"not_control": plain} if plain else {})},
        },
    )


def _pieces(vocab: Node, rows: list[Any]) -> list[bytes]:
    """The entries by their ranks. What is wrong with one is looked for only where something is."""
    try:
        pieces = [b64decode(row["token_bytes"], validate=True) for row in rows]
        if [row["rank"] for row in rows] == [*range(len(rows))] and pieces[:256] == [bytes([i]) for i in range(256)]:
            return pieces
    except (TypeError, KeyError, ValueError):  # of base64, too
        pass
    for rank, row in enumerate(rows):
        node = vocab.child(rank, row)
        if node["rank"].number(0, MAX_ID) != rank:
            raise node["rank"].expected(str(rank))
        encoded = node["token_bytes"]
        try:
            piece = b64decode(encoded.text(), validate=True)
        except ValueError:
            raise encoded.expected("bytes in base64") from None
        if rank < 256 and piece != bytes([rank]):
            raise encoded.error(f"the first 256 entries are the bytes in their order; here stands {shown(piece)}")
    raise vocab.error("its entries cannot be read")


def _special(root: Node, config: Node, count: int) -> list[str]:
    """The special tokens by their ids."""
    listed = root.get("special_tokens")
    if listed.value is None:
        version = config["version"]
        found = re.fullmatch(r"v([0-9]{1,4})", version.text())
        if found is None or int(found[1]) > LAST_EARLY_VERSION:
            raise version.error(f"a file of the version {shown(version.value)} must list its special_tokens")
        names = list(EARLY_SPECIAL)
    else:
        names = []
        for rank, node in enumerate(listed.items()):
            if node["rank"].number(0, MAX_ID) != rank:
                raise node["rank"].expected(str(rank))
            names.append(node["token_str"].text())
            if not names[-1]:
                raise node["token_str"].error("a token cannot be empty")
    if len(names) > count:
        raise config["default_num_special_tokens"].error(f"{count}, but there are {len(names)} special tokens")
    names += [filler(id) for id in range(len(names), count)]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise listed.error(f"{shown(twice)} is a special token twice")
    return names


def _not_control(root: Node) -> list[Node]:
    listed = root.get("special_tokens")
    rows = listed.items() if listed.value is not None else iter(())
    return [node["token_str"] for node in rows if not node.get("is_control", True).flag()]


def filler(id: int) -> str:
    """What a special token is called that has no name."""
    return f"<SPECIAL_{id}>"


# ======================== writing ========================


def write(spec: Spec) -> bytes:
    """The file that holds `spec`. Warns of roles that it has no place for.

    Raises:
        SubwordValueError: the format cannot hold something of `spec`; the message names it.
    """
    regex = _regex(split_pattern(spec, KIND))
    ids = special_tokens_of(spec)
    if [*ids.values()] != [*range(len(ids))]:
        at = next(at for at, id in enumerate([*ids.values(), -1]) if at != id)
        refuse(KIND, f"special tokens with other than the first ids: none has the id {at}")
    pieces, first = spec.model.vocab.pieces, len(ids)
    missing = missing_bytes(pieces)
    if missing:
        refuse(KIND, f"a model without tokens for the bytes {missing!r}")
    for rank, (piece, id) in enumerate(spec.model.vocab.items()):
        if id != first + rank:
            refuse(KIND, f"the id {id} for {piece!r}: behind the special tokens, ids have no holes there")
        if rank < 256 and piece != bytes([rank]):
            refuse(KIND, f"the id {id} for {piece!r}: behind the special tokens, the bytes stand in their order there")
    check_order(spec, KIND)
    names = [*ids]
    said = dict(spec.notes.get("tekken", {})) if isinstance(spec.notes.get("tekken"), dict) else {}
    version, plain = str(said.pop("version", "v7")), said.pop("not_control", [])
    listed = next((at for at in range(len(names), 0, -1) if names[at - 1] != filler(at - 1)), 0)
    special = [
        {"rank": id, "token_str": token, "is_control": token not in plain} for id, token in enumerate(names[:listed])
    ]
    kept = {role: ids[token] for role, token in ROLES.items() if token in ids}
    lost = [role for role, id in spec.roles.items() if kept.get(role) != id]
    if lost:
        text = f"{KIND} has no place for the roles {', '.join(lost)}"
        warn(text)
    document = {
        "config": {
            "pattern": regex,
            "num_vocab_tokens": len(pieces),
            "default_vocab_size": first + len(pieces),
            "default_num_special_tokens": first,
            "version": version,
        },
        "vocab": [
            {"rank": rank, "token_bytes": b64encode(piece).decode(), "token_str": _text(piece)}
            for rank, piece in enumerate(pieces)
        ],
        "special_tokens": special,
        **said,
    }
    try:
        return json.dumps(document, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        refuse(KIND, f"these notes: {error}")


def _text(piece: bytes) -> str | None:
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return None


def _regex(splitting: Split | SplitRegex) -> str:
    if isinstance(splitting, SplitRegex):
        if splitting.syntax != "tiktoken" or splitting.allow_backtracking:
            refuse(KIND, f"the split pattern {splitting!r}")
        return splitting.regex
    row = get_pattern(splitting.pattern)
    if not isinstance(row.regex, str) or row.drops:
        refuse(KIND, f"the pattern {splitting.pattern!r}, which is several expressions in a row, or drops text")
    return row.regex
