"""The tokenizer in a GGUF file, as llama.cpp reads it (`gguf_values.py` has how the file is laid out).

    tokenizer.ggml.model      the kind: "gpt2" (merges over bytes), "llama" (SentencePiece's merges by score),
                              "t5" (Unigram), "bert" (WordPiece), "rwkv" (longest match)
    tokenizer.ggml.pre        how text is split before a "gpt2": see `gguf_pre.py`
    tokenizer.ggml.tokens     an entry by its id; spelled in GPT-2's byte alphabet ("gpt2"), with ▁ for spaces ("llama",
                              "t5"), with ▁ before what starts a word instead of ## before what continues one ("bert"),
                              as Python's bytes without quotes ("rwkv")
    tokenizer.ggml.token_type, .scores, .merges                  by id; and "left right" in their order
    tokenizer.ggml.NAME_token_id                                 the roles
    tokenizer.ggml.add_bos_token, .add_eos_token, .add_sep_token what goes around texts
    tokenizer.ggml.add_space_prefix, .remove_extra_whitespaces, .precompiled_charsmap
    tokenizer.ggml.normalizer.lowercase, .strip_accents          of a "bert"; both are true where they are not said
    tokenizer.chat_template, tokenizer.chat_template.NAME

Token types: 1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte. The file has no place for normalization
(NFC), for the flags of tokens, or for other templates; llama.cpp does without. Unused entries called `[PAD9]` by their
ids stand for ids without a token. What a file leaves out is as llama.cpp has it; of a "bert", words of more than 100
characters are unknown, as BERT's are. A "gpt2" may lack entries for bytes, which leave the text then, as in HF
tokenizers. Of models with tensors, only what stands before these is read.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..bert import SPLIT, Cleaning
from ..byte_alphabet import NEVER_IN_UTF8, spelled_bytes, to_alphabet
from ..errors import FormatError, SubwordValueError, warn
from ..spec import (
    BPE,
    BYTE,
    NORMAL,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    ByteAlphabet,
    Decode,
    DecodeSentencePiece,
    DecodeSteps,
    DecodeWordPiece,
    Decoding,
    ExtraToken,
    LongestMatch,
    MatchTokens,
    Model,
    ScoreBPE,
    SentencePiece,
    Spec,
    Stage,
    Template,
    Unigram,
    Vocab,
    WordPiece,
)
from . import gguf_pre
from .bare import refuse
from .gguf_values import BOOL, F32, I8, I32, STRING, U8, U32, Value, Values
from .gguf_values import looks_like as looks_like
from .gguf_values import read as read_values
from .gguf_values import write as write_values
from .json_node import shown
from .rank_merges import merge_list

KIND = "a GGUF file"

PARTS = {
    "pieces": "tokenizer.ggml.tokens, spelled as the kind of model has it",
    "ids": "the places of the tokens",
    "merges": "tokenizer.ggml.merges, of a gpt2; by tokenizer.ggml.scores, of a llama",
    "pattern": "tokenizer.ggml.pre, a name, of a gpt2",
    "normalization": "tokenizer.ggml.precompiled_charsmap of a t5; .normalizer.lowercase of a bert",
    "extra tokens": "tokens of the types control, user defined and unused",
    "template": "tokenizer.ggml.add_bos_token, .add_eos_token, .add_sep_token",
    "roles": "tokenizer.ggml.NAME_token_id",
    "notes": "general.architecture, general.name; chat templates: tokenizer.chat_template",
}
LIMITS = (
    "normalization of a BPE; split patterns that llama.cpp has no name for; flags of tokens; templates other than bos, "
    "eos and sep; a WordLevel, or a model over characters"
)

G = "tokenizer.ggml."
CHAT = "tokenizer.chat_template"
NAMED = ("general.architecture", "general.name")

T_NORMAL, T_UNKNOWN, T_CONTROL, T_USER_DEFINED, T_UNUSED, T_BYTE = 1, 2, 3, 4, 5, 6

ROLES = {
    "bos": "bos_token_id",
    "eos": "eos_token_id",
    "eot": "eot_token_id",
    "eom": "eom_token_id",
    "unk": "unknown_token_id",
    "sep": "seperator_token_id",  # spelled so
    "pad": "padding_token_id",
    "cls": "cls_token_id",
    "mask": "mask_token_id",
    "fim_pre": "fim_pre_token_id",
    "fim_suf": "fim_suf_token_id",
    "fim_mid": "fim_mid_token_id",
    "fim_pad": "fim_pad_token_id",
    "fim_rep": "fim_rep_token_id",
    "fim_sep": "fim_sep_token_id",
}
OLD_ROLES = {"fim_pre": "prefix_token_id", "fim_suf": "suffix_token_id", "fim_mid": "middle_token_id"}

WORD_START = "▁"


class _Kind(NamedTuple):
    """What goes for a kind of model where the file does not say it."""

    read: Callable[[_File], tuple[tuple[Stage, ...], Model, Decoding]]
    add_bos: bool = False
    add_eos: bool = False
    add_sep: bool = False
    roles: Mapping[str, int] = {}


class _File:
    """The tokens of a file on their way into a model and extra tokens."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self.tokens = values.strings(G + "tokens")
        if not self.tokens or len(self.tokens) > 2**26:
            raise values.error(G + "tokens", f"{len(self.tokens):,} tokens")
        count, key = len(self.tokens), G + "token_type"
        self.types = [T_NORMAL] * count
        if key in values:
            self.types = values.numbers(key, (I32, U32), count).tolist()
        self.roles = {}
        for name, role_key in [*((role, OLD_ROLES[role]) for role in OLD_ROLES), *ROLES.items()]:
            id = values.number(G + role_key, 2**32 - 1)
            if id is not None and id < count:  # llama.cpp, too, goes without others
                self.roles[name] = id
        self.pre: gguf_pre.Pre | None = None

    def ids(self, *types: int) -> list[int]:
        return [id for id, type in enumerate(self.types) if type in types]

    def text(self, id: int) -> str:
        try:
            return self.tokens[id].decode()
        except UnicodeDecodeError:
            raise self.error(id, f"{shown(self.tokens[id])} is not UTF-8") from None

    def error(self, id: int, problem: str) -> FormatError:
        return self.values.error(f"{G}tokens[{id}]", problem)

    def extra(self, model: Model) -> tuple[ExtraToken, ...]:
        """The tokens that are no entries: by their types, and those that no text could give."""
        entries = set(model.vocab.ids.tolist())
        kinds = {T_CONTROL: "special", T_UNKNOWN: "special", T_USER_DEFINED: "added"}
        found = []
        for id, type in enumerate(self.types):
            if id in entries and not (id == model.unk and type == T_CONTROL):
                continue
            text = self.text(id)
            if text and not (type == T_UNUSED and text == hole(id)):
                found.append(ExtraToken(id, text, kinds.get(type, "unmatchable")))  # type: ignore[arg-type]
        return tuple(found)


def hole(id: int) -> str:
    """What stands for an id without a token."""
    return f"[PAD{id}]"


def read(data: bytes, source: str) -> Spec:
    """The spec of the tokenizer in a file.

    Raises:
        FormatError: the file is damaged, has no tokenizer, or one that is not supported.
    """
    values = Values(read_values(data, source), source)
    name = values.text(G + "model")
    kind = KINDS.get(name)
    if kind is None:
        problem = f"the kind {shown(name)} of tokenizer is not supported; {', '.join(KINDS)} are"
        raise values.error(G + "model", problem)
    file = _File(values)
    stages, model, decode = kind.read(file)
    try:
        model.compiled()
    except FormatError as error:
        raise FormatError(f"{source}: {G}tokens: {error}") from None
    extra = file.extra(model)
    if any(token.kind != "unmatchable" for token in extra):
        stages = (MatchTokens(), *stages)
    for role, id in kind.roles.items():
        if id < len(file.tokens) and file.types[id] != T_NORMAL:
            file.roles.setdefault(role, id)
    chat = {"default": values.text(CHAT)} if CHAT in values else {}
    for key in values.values:
        if key.startswith(CHAT + "."):
            chat[key.removeprefix(CHAT + ".")] = values.text(key)
    known = {token.id for token in extra} | set(model.vocab.ids.tolist())
    return Spec(
        stages=stages,
        model=model,
        extra=extra,
        template=_template(file, kind),
        decode=decode,
        roles={role: id for role, id in file.roles.items() if id in known},
        notes={key: values.text(key) for key in NAMED if key in values} | _pre_note(file, name),
        chat=chat,
    )


def _pre_note(file: _File, name: str) -> dict[str, str]:
    """The name of the split pattern, as several have the same one."""
    return {G + "pre": file.values.text(G + "pre", "")} if name == "gpt2" and G + "pre" in file.values else {}


def _template(file: _File, kind: _Kind) -> Template:
    pre = file.pre or gguf_pre.Pre((), "none")
    defaults = (kind.add_bos or pre.add_bos, kind.add_eos, kind.add_sep or pre.add_sep)
    said = [
        file.values.flag(f"{G}add_{role}_token", default)
        for role, default in zip(("bos", "eos", "sep"), defaults, strict=True)
    ]
    ends = []
    for role, wanted in zip(("bos", "eos", "sep"), said, strict=True):
        id = file.roles.get(role, file.roles.get("cls") if role == "bos" else None)
        if wanted and id is None and f"{G}add_{role}_token" in file.values:
            raise file.values.error(f"{G}add_{role}_token", f"it is true, but there is no {G}{ROLES[role]}")
        ends.append([id] if wanted and id is not None else [])
    return template_of(*ends)


def template_of(bos: list[int], eos: list[int], sep: list[int]) -> Template:
    """What goes around texts where these tokens are added. `sep` ends each text of a BERT, which has no `eos`."""
    if sep:
        return Template((*bos, "A", *sep), (*bos, "A", *sep, "B", *sep))
    return Template((*bos, "A", *eos), (*bos, "A", *eos, *bos, "B", *eos))


# ======================== the kinds of models ========================


def _read_bpe(file: _File) -> tuple[tuple[Stage, ...], Model, Decoding]:
    values = file.values
    name = values.text(G + "pre", gguf_pre.DEFAULT)
    row = gguf_pre.BY_NAME.get(name)
    if row is None:
        known = "llama.cpp knows it, but it cannot be run here" if name in gguf_pre.OTHERS else "it is unknown"
        raise values.error(G + "pre", f"the split pattern {shown(name)}: {known}")
    if G + "pre" not in values:
        text = f"{values.source}: the file says no split pattern; taken is what llama.cpp takes then"
        warn(text)
    file.pre = row
    entries: dict[str, tuple[int, bytes]] = {}
    for id in file.ids(T_NORMAL, T_BYTE):
        text = file.text(id)
        piece = spelled_bytes(text)
        if piece and entries.setdefault(text, (id, piece))[0] != id:
            raise file.error(id, f"{shown(piece)} is the entry {entries[text][0]}, too")
    merges = _merges(file, entries)
    missing = set(map(_byte, range(256))) - {piece for _, piece in entries.values()}
    if missing <= set(map(_byte, NEVER_IN_UTF8)):
        vocab = Vocab.of((piece, id) for id, piece in entries.values())
        return row.stages, BPE(vocab, merges, "merges", row.ignore_merges), Decode()
    # As HF tokenizers does it, which such a vocabulary was trained with: a byte that is no entry leaves the text.
    shown_bytes = ", ".join(f"0x{piece[0]:02X}" for piece in sorted(missing))
    warn(f"{values.source}: {G}tokens: no entry for the bytes {shown_bytes}: they are dropped from text")
    vocab = Vocab.of((text.encode(), id) for text, (id, _) in entries.items())
    model = BPE(vocab, merges, "merges", row.ignore_merges, "character")
    return (*row.stages, ByteAlphabet()), model, DecodeSteps((("byte-level",),))


def _byte(value: int) -> bytes:
    return bytes([value])


def _no_piece_twice(file: _File, vocab: Vocab) -> None:
    seen: dict[bytes, int] = {}
    for piece, id in vocab.items():
        if seen.setdefault(piece, id) != id:
            raise file.error(id, f"{shown(piece)} is the entry {seen[piece]}, too")


def _merges(file: _File, entries: Mapping[str, tuple[int, bytes]]) -> Any:
    rows = []
    lines = file.values.strings(G + "merges")
    for number, line in enumerate(lines):
        try:
            text = line.decode()
        except UnicodeDecodeError:
            raise file.values.error(f"{G}merges[{number}]", f"{shown(line)} is not UTF-8") from None
        at = text.find(" ", 1)
        left, right = text[:at], text[at + 1 :]
        if at < 0 or left not in entries or right not in entries or left + right not in entries:
            problem = f"{shown(text)} does not join two entries to a third, with one space between them"
            raise file.values.error(f"{G}merges[{number}]", problem)
        rows.append((entries[left][0], entries[right][0]))
    if len(set(rows)) < len(rows):
        seen: set[tuple[int, int]] = set()
        number = next(at for at, row in enumerate(rows) if row in seen or seen.add(row))  # type: ignore[func-returns-value]
        raise file.values.error(f"{G}merges[{number}]", f"{shown(lines[number])} stands there twice")
    return np.array(rows, dtype=np.uint32).reshape(-1, 2)


def _scored(file: _File, cls: type[Unigram] | type[ScoreBPE]) -> Model:
    """The model of SentencePiece's kinds. User-defined entries are spelled with spaces in the file."""
    kinds = {T_NORMAL: NORMAL, T_USER_DEFINED: USER_DEFINED, T_UNUSED: UNUSED, T_BYTE: BYTE, T_UNKNOWN: UNKNOWN}
    count = len(file.tokens)
    scores = file.values.numbers(G + "scores", (F32, I32), count).astype(np.float64)
    unk = file.roles.get("unk")
    unknowns = file.ids(T_UNKNOWN)
    if unk is None:
        unk = unknowns[0] if unknowns else next(iter(KINDS["llama" if cls is ScoreBPE else "t5"].roles.values()))
    if unk >= count:
        raise file.values.error(G + "unknown_token_id", f"there is no token {unk}")
    rows = []
    for id, type in enumerate(file.types):
        kind = UNKNOWN if id == unk else kinds.get(type)
        if type == T_UNUSED and file.text(id) == hole(id):
            continue
        if kind is None and type != T_CONTROL:
            raise file.values.error(f"{G}token_type[{id}]", f"the type {type} is unknown")
        if kind is None or (kind == UNKNOWN and id != unk):
            continue
        if not file.tokens[id]:
            raise file.error(id, "the token is empty")
        text = file.text(id).replace(" ", WORD_START) if kind == USER_DEFINED else file.text(id)
        if not np.isfinite(scores[id]):
            raise file.values.error(f"{G}scores[{id}]", f"the score of {shown(text)} is {scores[id]}")
        if kind == BYTE and not re.fullmatch("<0x[0-9A-F]{2}>", text):
            raise file.error(id, f"{shown(text)} is of the type byte, and none like <0x0A>")
        rows.append((text.encode(), id, kind))
    vocab = Vocab.of((piece, id) for piece, id, _ in rows)
    _no_piece_twice(file, vocab)
    found = sum(kind == BYTE for *_, kind in rows)
    if found not in (0, 256):
        raise file.values.error(G + "token_type", f"{found} tokens of the type byte, where there are all 256 or none")
    ids = [id for _, id, _ in rows]
    return cls(vocab, scores[ids], unk, np.array([kind for *_, kind in rows], dtype=np.uint8), "float32")


def _read_spm(file: _File) -> tuple[tuple[Stage, ...], Model, Decoding]:
    prefix = file.values.flag(G + "add_space_prefix", True)
    stage = SentencePiece("", prefix, file.values.flag(G + "remove_extra_whitespaces", False))
    return (stage,), _scored(file, ScoreBPE), _decoding(stage)


def _read_unigram(file: _File) -> tuple[tuple[Stage, ...], Model, Decoding]:
    prefix = file.values.flag(G + "add_space_prefix", False)
    key, rules = G + "precompiled_charsmap", b""
    if key in file.values:
        rules = file.values.numbers(key, (I8, U8)).tobytes()
    encoded = base64.b64encode(rules).decode()
    stage = SentencePiece(encoded, prefix, file.values.flag(G + "remove_extra_whitespaces", False))
    return (stage,), _scored(file, Unigram), _decoding(stage)


def _decoding(stage: SentencePiece) -> DecodeSentencePiece:
    return DecodeSentencePiece("all" if stage.remove_extra_whitespaces else "one" if stage.add_dummy_prefix else "none")


def _read_word_piece(file: _File) -> tuple[tuple[Stage, ...], Model, Decoding]:
    lowercase = file.values.flag(G + "normalizer.lowercase", True)
    cleaning = Cleaning(lowercase, file.values.flag(G + "normalizer.strip_accents", lowercase))
    unk = file.roles.get("unk", KINDS["bert"].roles["unk"])
    if unk >= len(file.tokens):
        raise file.values.error(G + "unknown_token_id", f"there is no token {unk}")
    file.roles.setdefault("unk", unk)
    rows = [(_word_piece(file.text(id), id == unk), id) for id in sorted({*file.ids(T_NORMAL), unk}) if file.tokens[id]]
    vocab = Vocab.of((piece.encode(), id) for piece, id in rows)
    _no_piece_twice(file, vocab)
    return (*cleaning.stages, SPLIT), WordPiece(vocab, unk), DecodeWordPiece()


def _word_piece(token: str, is_unk: bool) -> str:
    """An entry as BERT spells it. What stands in brackets is spelled alike in both."""
    if is_unk or (token.startswith("[") and token.endswith("]") and len(token) > 1):
        return token
    return token[1:] if token.startswith(WORD_START) and len(token) > 1 else "##" + token


def _read_rwkv(file: _File) -> tuple[tuple[Stage, ...], Model, Decoding]:
    rows = [(_unescaped(file, id), id) for id in file.ids(T_NORMAL)]
    vocab = Vocab.of(rows)
    _no_piece_twice(file, vocab)
    return (), LongestMatch(vocab), Decode()


_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|([^x]))", re.DOTALL)
_SHORT = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}


def _unescaped(file: _File, id: int) -> bytes:
    token = file.tokens[id]
    piece = _ESCAPE.sub(lambda m: bytes([int(m[1], 16)]) if m[1] else _SHORT.get(m[2], m[2]), token)
    if not piece:
        raise file.error(id, "the token is empty")
    return piece


KINDS: dict[str, _Kind] = {
    "gpt2": _Kind(_read_bpe),
    "llama": _Kind(_read_spm, add_bos=True, roles={"unk": 0, "bos": 1, "eos": 2}),
    "t5": _Kind(_read_unigram, add_eos=True, roles={"unk": 2, "eos": 1, "pad": 0}),
    "bert": _Kind(_read_word_piece, True, False, True, {"unk": 100, "bos": 101, "sep": 102, "pad": 0, "mask": 103}),
    "rwkv": _Kind(_read_rwkv),
}


# ======================== writing ========================


def write(spec: Spec) -> bytes:
    """A GGUF file with the tokenizer, and without tensors.

    Raises:
        SubwordValueError: the format cannot hold something of `spec`; the message names it.
    """
    for token in spec.extra:
        if token.single_word or token.lstrip or token.rstrip:
            refuse(KIND, f"the flags of the token {token.content!r} (id {token.id})")
    if any(token.kind != "unmatchable" for token in spec.extra) and not any(
        isinstance(stage, MatchTokens) for stage in spec.stages
    ):
        refuse(KIND, "extra tokens that no stage takes from text")
    rest = tuple(stage for stage in spec.stages if not isinstance(stage, MatchTokens))
    writer = _WRITERS.get(type(spec.model))
    if writer is None:
        refuse(KIND, f"a {type(spec.model).__name__}")
    made = writer(spec, rest)
    values: dict[str, Value] = {}
    notes = {key: str(spec.notes[key]) for key in NAMED if key in spec.notes}
    values |= {key: Value(STRING, text) for key, text in ({NAMED[0]: "llama"} | notes).items()}
    values[G + "model"] = Value(STRING, made.kind)
    values |= {G + key: value for key, value in made.settings.items()}
    values |= {G + key: value for key, value in _tokens(spec, made).items()}
    lost = [role for role in spec.roles if role not in ROLES]
    if lost:
        text = f"{KIND} has no place for the roles {', '.join(lost)}"
        warn(text)
    values |= {G + ROLES[role]: Value(U32, id) for role, id in spec.roles.items() if role in ROLES}
    values |= {G + key: value for key, value in _ends(spec, made.kind).items()}
    for name, template in spec.chat.items():
        values[CHAT if name == "default" else f"{CHAT}.{name}"] = Value(STRING, template)
    return write_values(values)


class _Made(NamedTuple):
    """What a writer of a kind made: entries with their spelling, type and score by id, and settings."""

    kind: str
    entries: dict[int, tuple[bytes, int, float]]
    settings: dict[str, Value]
    has_scores: bool = False


def _tokens(spec: Spec, made: _Made) -> dict[str, Value]:
    types = {"special": T_CONTROL, "added": T_USER_DEFINED, "unmatchable": T_UNUSED}
    rows = dict(made.entries)
    for token in spec.extra:
        if token.id not in rows:
            rows[token.id] = (token.content.encode(), types[token.kind], 0.0)
    count = max(rows) + 1
    if count > 2 * len(rows) + 2**16:
        refuse(KIND, f"ids up to {count - 1:,} for {len(rows):,} tokens: each id without a token takes a place")
    for id in range(count):
        rows.setdefault(id, (hole(id).encode(), T_UNUSED, 0.0))
    ordered = [rows[id] for id in range(count)]
    spelled: dict[bytes, int] = {}
    for id, (text, *_) in enumerate(ordered):
        if spelled.setdefault(text, id) != id:
            refuse(KIND, f"the ids {spelled[text]} and {id}, which are spelled alike there: {shown(text)}")
    scores = {"scores": Value(F32, [score for *_, score in ordered], True)} if made.has_scores else {}
    return {
        "tokens": Value(STRING, [text for text, *_ in ordered], True),
        **scores,
        "token_type": Value(I32, [type for _, type, _ in ordered], True),
    }


def _ends(spec: Spec, kind: str) -> dict[str, Value]:
    """The settings that mean the template."""
    roles = spec.roles
    for add_bos in (False, True):
        for end in ("", "eos", "sep"):
            bos = roles.get("bos", roles.get("cls"))
            if (add_bos and bos is None) or (end and end not in roles):
                continue
            eos, sep = ([roles[name]] if end == name else [] for name in ("eos", "sep"))
            if template_of([bos] if add_bos and bos is not None else [], eos, sep) == spec.template:
                said = {"bos": add_bos, "eos": end == "eos", "sep": end == "sep"}
                return {f"add_{role}_token": Value(BOOL, wanted) for role, wanted in said.items()}
    if kind != "bert" or "eos" not in roles or "sep" in roles:
        refuse(KIND, f"the template {spec.template.single!r} with the roles {dict(roles)!r}")
    last = roles["eos"]  # as other readers call what BERT ends texts with
    return _ends(spec.replace(roles={**roles, "sep": last}), kind) | {ROLES["sep"]: Value(U32, last)}


def _write_bpe(spec: Spec, rest: tuple[Stage, ...]) -> _Made:
    model = spec.model
    assert isinstance(model, BPE)
    if model.unit != "byte" or model.end_of_word or model.unk is not None:
        refuse(KIND, f"a model over {model.unit}s with the end-of-word marker {model.end_of_word!r}")
    if spec.decode != Decode():
        refuse(KIND, f"decoding by {spec.decode!r}")
    noted = gguf_pre.BY_NAME.get(str(spec.notes.get(G + "pre")))
    rows = [row for row in ([noted] if noted else []) + list(gguf_pre.ROWS) if row.stages == rest]
    if not rows:
        rewriting = [stage for stage in rest if type(stage).__name__ not in ("Split", "SplitRegex", "Digits")]
        what = "the stage " + repr(rewriting[0]) if rewriting else f"the split {', '.join(map(repr, rest)) or 'none'}"
        refuse(KIND, f"{what}: llama.cpp has no name for it")
    try:
        plain = merge_list(spec.replace(model=_without_ignoring(model)))
        row = next((row for row in rows if row.ignore_merges == model.ignore_merges), rows[0])
        if row.ignore_merges != model.ignore_merges and model.priority == "merges":
            plain = merge_list(spec)  # every entry is made by its merges, so it is all the same
    except SubwordValueError as error:
        refuse(KIND, f"this model: {error}")
    name = str(spec.notes[G + "pre"]) if row is noted else row.names[0]
    names = {id: to_alphabet(piece) for piece, id in model.vocab.items()}
    return _Made(
        "gpt2",
        {id: (text.encode(), T_NORMAL, 0.0) for id, text in names.items()},
        {
            "pre": Value(STRING, name),
            "merges": Value(STRING, [f"{names[left]} {names[right]}".encode() for left, right in plain], True),
        },
    )


def _without_ignoring(model: BPE) -> BPE:
    return model if model.priority == "rank" else BPE(model.vocab, model.merges)


def _write_scored(spec: Spec, rest: tuple[Stage, ...]) -> _Made:
    model = spec.model
    assert isinstance(model, (Unigram, ScoreBPE))
    kind = "llama" if isinstance(model, ScoreBPE) else "t5"
    if len(rest) != 1 or not isinstance(rest[0], SentencePiece):
        refuse(KIND, f"the stages {', '.join(map(repr, rest)) or 'none'} with a {type(model).__name__}")
    stage = rest[0]
    if not stage.escape_whitespaces or stage.treat_whitespace_as_suffix:
        refuse(KIND, "spaces that are not escaped, or stand behind words")
    if kind == "llama" and stage.rules:
        refuse(KIND, "normalization rules of a ScoreBPE")
    if model.precision != "float32" or np.any(model.scores != model.scores.astype(np.float32)):
        refuse(KIND, "scores that are added up in 64 bits")
    if len(model.merges):
        refuse(KIND, "a list of merges of a ScoreBPE")
    if spec.decode != _decoding(stage):
        refuse(KIND, f"decoding by {spec.decode!r}")
    types = {NORMAL: T_NORMAL, USER_DEFINED: T_USER_DEFINED, UNUSED: T_UNUSED, BYTE: T_BYTE, UNKNOWN: T_UNKNOWN}
    entries = {}
    for (piece, id), score, number in zip(model.vocab.items(), model.scores, model.kinds.tolist(), strict=True):
        spelled = piece.replace(WORD_START.encode(), b" ") if number == USER_DEFINED else piece
        if number == USER_DEFINED and b" " in piece:
            refuse(KIND, f"the user-defined entry {piece!r} with a space")
        entries[id] = (spelled, types[number], float(score))
    for token in spec.extra:
        if token.kind == "added":
            refuse(KIND, f"the added token {token.content!r} beside the entries of a {type(model).__name__}")
        if token.id in entries:
            refuse(KIND, f"the extra token {token.content!r} that is an entry, too")
    settings = {
        "add_space_prefix": Value(BOOL, stage.add_dummy_prefix),
        "remove_extra_whitespaces": Value(BOOL, stage.remove_extra_whitespaces),
    }
    if stage.rules:
        settings["precompiled_charsmap"] = Value(U8, np.frombuffer(base64.b64decode(stage.rules), np.uint8), True)
    if spec.roles.get("unk") != model.unk:
        settings[ROLES["unk"]] = Value(U32, model.unk)
    return _Made(kind, entries, settings, has_scores=True)


def _write_word_piece(spec: Spec, rest: tuple[Stage, ...]) -> _Made:
    model = spec.model
    assert isinstance(model, WordPiece)
    if (model.continuing_subword_prefix, model.max_input_chars_per_word) != ("##", 100):
        refuse(KIND, f"the prefix {model.continuing_subword_prefix!r}, or words of other than 100 characters")
    cleanings = [Cleaning(lowercase, accents) for lowercase in (True, False) for accents in (True, False)]
    cleaning = next((each for each in cleanings if (*each.stages, SPLIT) == rest), None)
    if cleaning is None:
        refuse(KIND, f"the stages {', '.join(map(repr, rest)) or 'none'} with a WordPiece; only BERT's")
    if spec.decode != DecodeWordPiece():
        refuse(KIND, f"decoding by {spec.decode!r}")
    entries = {}
    for piece, id in model.vocab.items():
        text = piece.decode(errors="replace")
        spelled = _bert_spelled(text, id == model.unk)
        if _word_piece(spelled, id == model.unk) != text:
            refuse(KIND, f"the entry {text!r} (id {id}), which would be read as another one")
        type = T_CONTROL if id == model.unk and any(token.id == id for token in spec.extra) else T_NORMAL
        entries[id] = (spelled.encode(), T_UNKNOWN if id == model.unk and type == T_NORMAL else type, 0.0)
    settings = {
        "normalizer.lowercase": Value(BOOL, cleaning.lowercase),
        "normalizer.strip_accents": Value(BOOL, cleaning.strip_accents),
    }
    if spec.roles.get("unk") != model.unk:
        settings[ROLES["unk"]] = Value(U32, model.unk)
    return _Made("bert", entries, settings)


def _bert_spelled(text: str, is_unk: bool) -> str:
    if is_unk or (text.startswith("[") and text.endswith("]") and len(text) > 1):
        return text
    return text[2:] if text.startswith("##") and len(text) > 2 else WORD_START + text


def _write_rwkv(spec: Spec, rest: tuple[Stage, ...]) -> _Made:
    if rest or spec.decode != Decode():
        refuse(KIND, "stages before a LongestMatch, or another way to decode")
    entries = {id: (repr(piece)[2:-1].encode(), T_NORMAL, 0.0) for piece, id in spec.model.vocab.items()}
    return _Made("rwkv", entries, {})


_WRITERS: dict[type, Callable[[Spec, tuple[Stage, ...]], _Made]] = {
    BPE: _write_bpe,
    ScoreBPE: _write_scored,
    Unigram: _write_scored,
    WordPiece: _write_word_piece,
    LongestMatch: _write_rwkv,
}
