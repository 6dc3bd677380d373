"""vocab.json and merges.txt, the files of GPT-2 and RoBERTa: a vocabulary, its merges, and nothing else.

    vocab.json    one JSON object {token: id}
    merges.txt    "#version: …\\n"? line*        line = token " " token "\\n", what merges first stands first

Tokens spell bytes in GPT-2's alphabet (`byte_alphabet.py`). Special tokens stand in vocab.json as they are; which they
are, and the split pattern, is not in the files (see `bare.py`). A token that spells no bytes and is not special is
`unmatchable`. The two files stand in one folder; their names end in `vocab.json` and `merges.txt`, or, as GPT-2's own
are called, `encoder.json` and `vocab.bpe`, and start alike.

Vocabularies with a marker at the ends of words (GPT-1, CLIP) come in files of the same form, and are refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import re

import numpy as np

from .. import _core
from ..byte_alphabet import spelled_bytes, to_alphabet
from ..errors import SubwordValueError
from ..spec import BPE, MAX_ID, ExtraToken, Packed, Spec
from .bare import (
    Input,
    bpe_spec,
    entries,
    missing_bytes,
    refuse,
    special_tokens_of,
    split_pattern,
    warn_of_roles,
    warn_of_what_is_left_out,
    what_is_left_out,
)
from .json_node import parse, shown
from .rank_merges import merge_list
from .tokenizer_json_tokens import Tokens, without

KIND = "vocab.json with merges.txt"
MARKER = "</w>"
NAMES = (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe"))

_JSON = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*[-0-9]')
_VERSION = re.compile(rb"(?:\xef\xbb\xbf)?#version:")

PARTS = {
    "pieces": "vocab.json, the keys, in GPT-2's byte alphabet",
    "ids": "vocab.json, the values",
    "merges": "merges.txt, a pair of tokens a line, the first merges first",
    "pattern": None,
    "normalization": None,
    "extra tokens": "vocab.json, special tokens as they are; which those are, nothing says",
    "template": None,
    "roles": None,
    "notes": None,
}
LIMITS = "ranks that no merge list can stand for; added tokens; special tokens that are spelled like an entry"


def looks_like(data: bytes) -> bool:
    """Whether it is one of the two."""
    return _JSON.match(data[:4096]) is not None or _VERSION.match(data) is not None


def has_vocabulary(merges: Input) -> bool:
    """Whether the vocabulary of merges stands beside them."""
    name = os.path.basename(merges.name)
    beside = (name[: -len(end)] + vocab for vocab, end in NAMES if name.lower().endswith(end))
    return any(merges.beside(other) is not None for other in beside)


# ======================== reading ========================


def read(file: Input) -> Spec:
    """The spec that the two files and what is said of them mean; `file` is either.

    Raises:
        FormatError: the other is missing, one is damaged, or what they leave out is neither given nor known.
    """
    vocab_file, merges_file = pair(file)
    digests = vocab_file.sha256, merges_file.sha256
    entries_read = _core.read_entries(vocab_file.data, merges_file.data, MAX_ID)
    if entries_read is not None:
        spec = _read_sound(file, vocab_file, Tokens.of_core(entries_read, by_characters=False), digests)
        if spec is not None:
            return spec
    ids = _vocab(vocab_file)
    merges = _merges(merges_file)
    pieces = {token: spelled_bytes(token) for token in ids}
    missing = missing_bytes(Packed.of(piece for piece in pieces.values() if piece is not None))
    if missing:
        raise vocab_file.error(
            f"no token for the bytes {shown(missing)} in GPT-2's alphabet ({shown(to_alphabet(missing))}): this is no "
            "byte-level vocabulary. Those over characters (GPT-1) are read from tokenizer.json"
        )
    if all(to_alphabet(bytes([byte])) + MARKER in ids for byte in range(256)):
        raise vocab_file.error(
            f"each byte stands here with {MARKER} behind it, too, so the ends of words are marked (CLIP): this is read "
            "from tokenizer.json, or from CLIP's own bpe_simple_vocab_16e6.txt.gz"
        )
    splitting, special, roles = what_is_left_out(file, KIND, *digests)
    _check_special_tokens(vocab_file, ids, special)
    model_ids = {token: id for token, id in ids.items() if token not in special}
    rows = _merge_rows(merges_file, merges, model_ids, pieces)
    unmatchable = [ExtraToken(id, token, "unmatchable") for token, id in model_ids.items() if pieces[token] is None]
    spelled = {piece: id for token, id in model_ids.items() if (piece := pieces[token]) is not None}
    model = BPE(entries(spelled, vocab_file), np.array(rows, dtype=np.uint32).reshape(-1, 2))
    return bpe_spec(model, splitting, special, unmatchable, source=vocab_file.name, roles=roles)


def _read_sound(file: Input, vocab_file: Input, tokens: Tokens, digests: tuple[str, str]) -> Spec | None:
    """What `read` gives for files in which nothing is wrong, many times as fast; None for others."""
    marked = (tokens.id_of(to_alphabet(bytes([byte])) + MARKER) for byte in range(256))
    if missing_bytes(tokens.vocab.pieces) or None not in marked:
        return None
    splitting, special, roles = what_is_left_out(file, KIND, *digests)
    gone = []
    for token, id in special.items():
        at = tokens.entry(token)
        if tokens.id_of(token) not in (None, id) or tokens.token_of(id) not in (None, token):
            return None
        if at is not None:
            gone.append(at)
    if any(tokens.merged[at] for at in gone):
        return None
    unmatchable = [ExtraToken(id, token, "unmatchable") for token, id in tokens.others.items() if token not in special]
    model = BPE(without(tokens.vocab, gone), tokens.merges)
    return bpe_spec(model, splitting, special, unmatchable, source=vocab_file.name, roles=roles)


def pair(file: Input) -> tuple[Input, Input]:
    """The vocabulary and the merges."""
    is_vocab = _VERSION.match(file.data) is None
    name = os.path.basename(file.name)
    for names in NAMES:
        mine, other = names if is_vocab else names[::-1]
        if name.lower().endswith(mine):
            wanted = name[: -len(mine)] + other
            found = file.beside(wanted)
            if found is None:
                problem = f"the other half is missing: {wanted} should stand beside it"
                if not is_vocab:
                    problem += f" (codes of subword-nmt, which need none, have tokens that end in {MARKER})"
                raise file.error(problem)
            return (file, found) if is_vocab else (found, file)
    this, that = ("a vocabulary", "merges") if is_vocab else ("merges", "vocabulary")
    endings = " or ".join(f"*{vocab} and *{merges}" for vocab, merges in NAMES)
    raise file.error(f"this is {this}, and its {that} are in another file: call the two {endings}, in one folder")


def _vocab(file: Input) -> dict[str, int]:
    root = parse(file.data, file.name)
    ids: dict[str, int] = root.fields()
    tokens: dict[int, str] = {}
    for token, id in ids.items():
        if type(id) is not int or not 0 <= id <= MAX_ID:
            raise root.child(token, id).expected(f"an id from 0 to {MAX_ID}")
        if tokens.setdefault(id, token) != token:
            raise root.child(token, id).error(f"{shown(tokens[id])} has the id {id}, too")
    if re.search("[\ud800-\udfff]", "".join(ids)):
        token = next(token for token in ids if re.search("[\ud800-\udfff]", token))
        raise root.child(token, ids[token]).error("half a surrogate pair; write the character whole")
    return ids


def _merges(file: Input) -> list[tuple[int, list[str]]]:
    """The number of each line, and the two tokens in it."""
    try:
        lines = file.data.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise file.error(f"not UTF-8 at byte {error.start}; save the file as UTF-8") from None
    if not lines[-1]:
        lines.pop()
    rows = [(number, line.removesuffix("\r").split(" ")) for number, line in enumerate(lines, 1)]
    if rows and lines[0].startswith("#version:"):
        rows.pop(0)
    for number, pair in rows:
        if len(pair) != 2 or not all(pair):
            raise file.error(f"expected two tokens with a space between, found {shown(' '.join(pair))}", number)
    return rows


def _check_special_tokens(file: Input, ids: dict[str, int], special: dict[str, int]) -> None:
    tokens = {id: token for token, id in ids.items()}
    for token, id in special.items():
        if ids.get(token, id) != id:
            raise file.error(f"the special token {shown(token)} has the id {ids[token]} here, not {id}")
        if tokens.get(id, token) != token:
            raise file.error(f"the id {id}, given to the special token {shown(token)}, is that of {shown(tokens[id])}")


def _merge_rows(
    file: Input, merges: list[tuple[int, list[str]]], ids: dict[str, int], pieces: dict[str, bytes | None]
) -> list[tuple[int, int]]:
    lines: dict[tuple[int, int], int] = {}
    spelled = {token: id for token, id in ids.items() if pieces[token] is not None}
    for number, (left, right) in merges:
        if not (left in spelled and right in spelled and left + right in spelled):
            token = next(token for token in (left, right, left + right) if token not in spelled)
            problem = "spells no bytes" if token in ids else "is not in the vocabulary, or is a special token"
            raise file.error(f"{shown(token)} {problem}; do the two files belong together?", number)
        pair = (spelled[left], spelled[right])
        if lines.setdefault(pair, number) != number:
            raise file.error(f"the merge stands already in line {lines[pair]}", number)
    return list(lines)


# ======================== writing ========================


def write(spec: Spec) -> dict[str, bytes]:
    """The two files. Warns of what must be said again when they are loaded.

    Raises:
        SubwordValueError: neither the files nor the arguments of `load` can hold something of `spec`.
    """
    unmatchable = {token.content: token.id for token in spec.extra if token.kind == "unmatchable"}
    rest = spec.replace(extra=tuple(token for token in spec.extra if token.kind != "unmatchable"))
    split_pattern(rest, KIND)
    try:
        merges = merge_list(spec)
    except SubwordValueError as error:
        refuse(KIND, f"this model: {error}")
    names = {id: to_alphabet(piece) for piece, id in spec.model.vocab.items()}
    vocab = {name: id for id, name in names.items()}
    missing = missing_bytes(spec.model.vocab.pieces)
    if missing:
        refuse(KIND, f"a model without tokens for the bytes {missing!r}")
    for token, id in (unmatchable | special_tokens_of(rest)).items():
        if token in vocab:
            refuse(KIND, f"the token {token!r} (id {id}): the model spells its token {vocab[token]} the same way there")
        if token in unmatchable and spelled_bytes(token) is not None:
            refuse(KIND, f"the unmatchable token {token!r} (id {id}): it would spell bytes there")
        vocab[token] = id
    ordered = dict(sorted(vocab.items(), key=lambda entry: entry[1]))
    lines = ["#version: 0.2", *(f"{names[left]} {names[right]}" for left, right in merges)]
    data = {
        "vocab.json": (json.dumps(ordered, ensure_ascii=False, indent=0) + "\n").encode(),
        "merges.txt": ("\n".join(lines) + "\n").encode(),
    }
    digests = [hashlib.sha256(each).hexdigest() for each in data.values()]
    warn_of_what_is_left_out(rest, KIND, *digests)
    warn_of_roles(rest, KIND, *digests)
    return data
