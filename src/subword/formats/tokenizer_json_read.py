"""Reading tokenizer.json; what stands in it says `tokenizer_json.py`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, Protocol, TypeAlias, cast

import numpy as np

from .. import _core
from .._core import regex_covers
from ..byte_alphabet import NEVER_IN_UTF8, spelled_bytes, to_alphabet
from ..engine import split_punctuation
from ..errors import FormatError, SubwordValueError, warn
from ..patterns import DIGITS, UNICODE, Pattern, digits_and_rest, get_pattern, pattern_of
from ..spec import (
    BPE,
    MAX_ID,
    CleanText,
    Decode,
    DecodeWordPiece,
    Decoding,
    Digits,
    ExtraToken,
    Lowercase,
    MatchTokens,
    Normalize,
    Packed,
    PadChinese,
    PrefixSpace,
    Spec,
    Split,
    SplitPunctuation,
    SplitRegex,
    Stage,
    StripAccents,
    Template,
    Vocab,
    WordLevel,
    WordPiece,
)
from .json_node import Node, parse, shown

# The Unicode versions of tokenizers 0.23: of its normalizers, of the classes in its split expressions …
NORMALIZER_UNICODE = Normalize("NFC").unicode
SPLIT_UNICODE = UNICODE
DIGITS_UNICODE = "17.0"  # of `Digits`, which asks the Rust library


# What the file must say of parts that subword does not have, and what to do where it says something else.
_FIXED_FIELDS: dict[str, tuple[tuple[Any, ...], str]] = {
    "version": ((None, "1.0"), "only version 1.0 is known"),
}
_LEFT_OUT = {
    "truncation": "it cuts ids off, which `encode` never does; cut with `truncate` or `chunk`",
    "padding": "it adds ids, which `encode` never does; pad where batches are made",
}
_FIXED_MODEL_FIELDS: dict[str, tuple[tuple[Any, ...], str]] = {
    "type": ((None, "BPE"), "only BPE, WordPiece and WordLevel are supported"),
    "dropout": ((None, 0, 0.0), "it makes ids random; set it to null and use `sample`"),
    "continuing_subword_prefix": ((None, ""), "a byte-level BPE has none"),
    # In a byte-level BPE what is unknown fuses, or falls back to bytes, or is `unk_token`: nothing is.
    "fuse_unk": ((None, False, True), "use false"),
    "byte_fallback": ((None, False, True), "use false"),
}
_FIXED_CHARACTER_FIELDS: dict[str, tuple[tuple[Any, ...], str]] = {
    "fuse_unk": ((None, False), "each unknown character is a token of its own; use false"),
    "byte_fallback": ((None, False), "an unknown character is the unknown token; use false"),
}


def read(data: bytes, source: str, tell: Callable[[str], None] = warn) -> Spec:
    """The spec that a file holds. `tell` is called with what of the file is left out.

    The core reads the two large members, `parse` the rest. What the core does not take, or is wrong with the rest, is
    for the other way: to read all of it here, which finds what is wrong and says where.

    Raises:
        FormatError: the file is damaged, contradicts itself, or asks for something that is not supported.
    """
    for by_characters in (False, True):
        found = _core.read_members(data, MAX_ID, by_characters)
        if found is not None:
            vocab, merges, entries = found
            (start, end), (next_start, next_end) = sorted((vocab, merges))
            rest = b"null".join((data[:start], data[end:next_start], data[next_end:]))
            try:
                root = parse(rest, source)
                spec = _spec(root, Tokens(entries, by_characters))
            except FormatError:
                continue
            _tell_of_what_is_left_out(root, tell)
            return spec
    root = parse(data, source)
    spec = _spec(root, None)
    _tell_of_what_is_left_out(root, tell)
    return spec


def _tell_of_what_is_left_out(root: Node, tell: Callable[[str], None]) -> None:
    for name, problem in _LEFT_OUT.items():
        if root.get(name).value is not None:
            tell(f"the field {name!r} is left out: {problem}")


class AnyTokens(Protocol):
    """The tokens of a model, as those ask of them that do not ask which model it is."""

    def __len__(self) -> int: ...

    def id_of(self, token: str) -> int | None: ...

    def token_of(self, id: int) -> str | None: ...


class Tokens:
    """The tokens of a model, as the core reads them: those that spell something, packed, the others, and the merges."""

    def __init__(self, entries: _core.Entries, by_characters: bool) -> None:
        for numbers in (entries.offsets, entries.ids, entries.merges):
            numbers.setflags(write=False)  # so that nothing copies them
        self.by_characters = by_characters
        self.vocab = Vocab(Packed(entries.pieces, entries.offsets), entries.ids)
        self.merges = entries.merges
        self.merged = entries.merged
        self.others = dict(entries.others)
        self._find = entries.find
        self._others_by_id = {id: token for token, id in entries.others}

    def __len__(self) -> int:
        return len(self.vocab) + len(self.others)

    def entry(self, token: str) -> int | None:
        """At which place in `vocab` a token stands, if it does."""
        piece = token.encode() if self.by_characters else spelled_bytes(token)
        return None if piece is None else self._find(piece)

    def id_of(self, token: str) -> int | None:
        at = self.entry(token)
        return self.others.get(token) if at is None else int(self.vocab.ids[at])

    def token_of(self, id: int) -> str | None:
        piece = self.vocab.piece_of(id)
        if piece is None:
            return self._others_by_id.get(id)
        return piece.decode() if self.by_characters else to_alphabet(piece)


def _spec(root: Node, tokens: Tokens | None) -> Spec:
    """The spec; `tokens` where they are read already and stand no more in `root`."""
    check_fixed(root, _FIXED_FIELDS)
    if tokens is None and is_word_piece(root["model"]):
        return read_word_piece(root)
    if tokens is None and is_scored(root["model"]):
        from .tokenizer_json_scored import read_scored  # which needs what stands here

        return read_scored(root)
    check_fixed(root["model"], _FIXED_MODEL_FIELDS)
    splitting, unit = _read_pre_tokenizer(root.get("pre_tokenizer"))
    if unit == "character":
        check_fixed(root["model"], _FIXED_CHARACTER_FIELDS)
    decode = _read_decoder(root.get("decoder"), root["model"], unit)
    if tokens is None:
        tokens = _read_tokens(root["model"], unit)
    elif tokens.by_characters != (unit == "character"):
        raise root["model"].error("its tokens are spelled otherwise")
    added = read_added_tokens(root.get("added_tokens", []), tokens)
    normalizers = _read_normalizer(root.get("normalizer"), splitting, added)
    model, unmatchable = _read_model(root["model"], tokens, added, root, unit, normalizers)
    extra = tuple(sorted([*added.values(), *unmatchable], key=lambda token: token.id))
    template = read_post_processor(root.get("post_processor"), Known(tokens, extra))
    return Spec(
        stages=(*matching(added, False), *normalizers, *matching(added, True), *splitting),
        model=model,
        extra=extra,
        template=template,
        decode=decode,
        roles=template_roles(template) | _unk_role(root["model"].get("unk_token"), tokens, added),
    )


class Known:
    """The ids that stand for something."""

    def __init__(self, tokens: AnyTokens, extra: Iterable[ExtraToken]) -> None:
        self.tokens = tokens
        self.extra = {token.id for token in extra}

    def __contains__(self, id: int) -> bool:
        return id in self.extra or self.tokens.token_of(id) is not None


def matching(added: dict[str, ExtraToken], normalized: bool) -> tuple[MatchTokens, ...]:
    """The stage that takes tokens from raw or from normalized text, if there are any to take."""
    needed = any(token.normalized == normalized for token in added.values())
    return (MatchTokens(normalized),) if needed else ()


def check_fixed(node: Node, table: dict[str, tuple[tuple[Any, ...], str]]) -> None:
    for name, (allowed, advice) in table.items():
        field = node.get(name)
        if not any(type(field.value) is type(value) and field.value == value for value in allowed):
            raise field.error(f"{shown(field.value)} is not supported: {advice}")


def steps_of(node: Node, key: str) -> list[Node]:
    """The steps of a `Sequence`, nested ones opened up; none for null."""
    todo, steps = [node] if node.value is not None else [], []
    while todo:
        step = todo.pop()
        if step["type"].text() == "Sequence":
            todo.extend(reversed(list(step[key].items())))
        else:
            steps.append(step)
    return steps


def unsupported(step: Node, known: str) -> FormatError:
    return step["type"].error(f"{shown(step['type'].value)} is not supported; {known}")


def _read_decoder(node: Node, model: Node, unit: str) -> Decode:
    marker = _end_of_word(model)
    if unit == "byte":
        for step in steps_of(node, "decoders"):
            if step["type"].value != "ByteLevel":
                raise unsupported(step, "a byte-level BPE has the decoder ByteLevel")
        if to_alphabet(marker.encode()) != marker:
            raise model["end_of_word_suffix"].error(f"{shown(marker)} is not spelled alike in GPT-2's byte alphabet")
        return Decode(marker) if marker else Decode()
    if node.value is None or node["type"].text() != "BPEDecoder":
        raise node.error(f"{shown(node.value)} is not supported: a BPE over characters has a BPEDecoder")
    if not marker or node.get("suffix", "</w>").text() != marker:
        raise node.error("its suffix and model.end_of_word_suffix must be the same, and not empty")
    return Decode(trim=True)


def _end_of_word(model: Node) -> str:
    suffix = model.get("end_of_word_suffix")
    return "" if suffix.value is None else suffix.text()


def _read_normalizer(node: Node, splitting: Sequence[Stage], added: dict[str, ExtraToken]) -> tuple[Stage, ...]:
    stages: list[Stage] = []
    for step in steps_of(node, "normalizers"):
        kind = step["type"].value
        if kind in ("NFC", "NFD", "NFKC", "NFKD"):
            stages.append(Normalize(kind, NORMALIZER_UNICODE))
        elif kind == "Lowercase":
            stages.append(Lowercase(final_sigma=False))
        elif kind == "Replace":
            _check_white_space(step, splitting, added)
        elif kind == "BertNormalizer":
            stages += _read_bert_normalizer(step)
        else:
            raise unsupported(
                step,
                "the normalizers are NFC, NFD, NFKC, NFKD, Lowercase, BertNormalizer, Replace of white space and a "
                "Sequence of these",
            )
    return tuple(stages)


def _read_bert_normalizer(step: Node) -> Iterator[Stage]:
    """Its stages, in its order. `strip_accents` says what `lowercase` does unless it says something itself."""
    lowercase = step.get("lowercase", True).flag()
    strip_accents = step.get("strip_accents")
    if step.get("clean_text", True).flag():
        yield CleanText()
    if step.get("handle_chinese_chars", True).flag():
        yield PadChinese()
    if lowercase if strip_accents.value is None else strip_accents.flag():
        yield from (Normalize("NFD", NORMALIZER_UNICODE), StripAccents())
    if lowercase:
        yield Lowercase(final_sigma=False)


def _check_white_space(step: Node, splitting: Sequence[Stage], added: dict[str, ExtraToken]) -> None:
    """Replacing white space changes nothing where the first split drops all of it, and no added token looks at it."""
    if step["pattern"].value != {"Regex": r"\s+"} or step["content"].value != " ":
        raise step.error(r"the only Replace that is supported is that of the Regex \s+ by a space")
    dropping = [Split(pattern) for pattern in ("clip", "clip-cased", "whitespace-split")]
    if splitting[0] not in [*dropping, SplitPunctuation()]:
        raise step.error("white space can be replaced only where the first pre-tokenizer drops it")
    for token in added.values():
        if token.normalized and (token.lstrip or token.rstrip or re.search(r"\s", token.content)):
            raise step.error(f"the added token {shown(token.content)} looks at the white space that this replaces")


def _read_pre_tokenizer(node: Node) -> tuple[tuple[Stage, ...], Literal["byte", "character"]]:
    """The stages, and what the model is over."""
    known = "a byte-level BPE has ByteLevel, or a Sequence of Splits and Digits and then ByteLevel; one over "
    known += "characters has WhitespaceSplit, BertPreTokenizer, Splits, Digits, or a Sequence of these"
    steps = steps_of(node, "pretokenizers") or [node]
    *cutting, last = steps
    if last.value is None:
        raise node.error(f"there is none, so this is no byte-level BPE; {known}")
    types = {step["type"].text() for step in steps}
    if types <= {*_CUTTING} and types != {"Digits"}:
        return tuple(_read_cutting(steps)), "character"
    for step, kinds in [*((step, _CUTTING) for step in cutting), (last, ("ByteLevel",))]:
        if step["type"].value not in kinds:
            raise unsupported(step, known)
    prefix_space = last.get("add_prefix_space", True)
    if cutting and prefix_space.flag():
        raise prefix_space.error("a space in front of every piece is not supported; set it to false")
    stages = _read_cutting(cutting)
    if last.get("use_regex", True).flag():
        stages.append(Split("gpt2", SPLIT_UNICODE))
    if not any(isinstance(stage, (Split, SplitRegex)) for stage in stages):
        stages.append(Split("none", SPLIT_UNICODE))
    return (PrefixSpace(), *stages) if prefix_space.flag() else tuple(stages), "byte"


_Step: TypeAlias = "tuple[str, bool] | Digits | SplitPunctuation"
"""The expression of a Split, and whether what it does not match is dropped; or a stage."""


def _read_cutting(steps: list[Node]) -> list[Stage]:
    """Splits and Digits as stages: rows of `patterns.py` where they spell such, the longest first."""
    read = [_CUTTING[step["type"].value](step) for step in steps]
    stages: list[Stage] = []
    at = 0
    while at < len(read):
        end, row = next(
            ((end, row) for end in range(len(read), at, -1) if (row := _row_of(*read[at:end]))), (at + 1, None)
        )
        step = read[at]
        if row is not None:
            stages.append(Split(row.name, SPLIT_UNICODE))
        elif isinstance(step, (Digits, SplitPunctuation)):
            stages.append(step)
        elif step[0] in _GROUPINGS:
            stages.append(Digits(cast("Any", _GROUPINGS[step[0]]), SPLIT_UNICODE))
        else:
            stages.append(SplitRegex(step[0], "oniguruma", unicode=SPLIT_UNICODE))
        at = end
    return stages


def _read_digits(step: Node) -> Digits:
    check_fixed(step, {"individual_digits": ((True,), "use true, or a Split by an expression")})
    return Digits("one", DIGITS_UNICODE)


def _read_split(step: Node) -> tuple[str, bool]:
    regex = step["pattern"]["Regex"]
    covers = regex.text() not in _GROUPINGS
    drops = (step["behavior"].value, step.get("invert").value) == ("Removed", True)
    if drops and _row_of((regex.text(), True)) is not None:
        return regex.text(), True
    try:
        covers = covers and regex_covers(regex.text(), "oniguruma", allow_backtracking=False)
    except SubwordValueError as error:
        if _row_of((regex.text(), False)) is None:
            raise regex.error(str(error)) from None
    if covers and drops:
        return regex.text(), False  # nothing is there to be removed
    check_fixed(step, {"behavior": (("Isolated",), "use Isolated"), "invert": ((None, False), "use false")})
    return regex.text(), False


def _read_white_space_split(step: Node) -> tuple[str, bool]:
    return get_pattern("whitespace-split").steps[0], True


def _read_bert_pre_tokenizer(step: Node) -> SplitPunctuation:
    return SplitPunctuation()


_CUTTING: dict[Any, Callable[[Node], _Step]] = {
    "Digits": _read_digits,
    "Split": _read_split,
    "WhitespaceSplit": _read_white_space_split,
    "BertPreTokenizer": _read_bert_pre_tokenizer,
}
_GROUPINGS = {groups: grouping for grouping, groups in DIGITS.items()}


def _row_of(*steps: _Step) -> Pattern | None:
    """The row that Splits spell; none for one that a stage `Digits` and another row spell, which are taken then.

    `{1,3}+` repeats in Oniguruma, so that what tiktoken publishes may be no row here.
    """
    texts = [step for step in steps if not isinstance(step, (Digits, SplitPunctuation))]
    splits = [step for step in texts if not re.search(r"[0-9]\}\+", step[0])]
    row = pattern_of(*(regex for regex, _ in splits)) if len(splits) == len(steps) else None
    if row is None or digits_and_rest(row) is not None or any(drops != row.drops for _, drops in splits):
        return None
    return row


def _read_tokens(node: Node, unit: Literal["byte", "character"]) -> Tokens:
    """Tokens that the core did not read: what is wrong with them, or else a plain spelling of the same for the core."""
    vocab = _read_vocab(node["vocab"])
    for token in vocab:
        if not token:
            raise node["vocab"].child(token, token).error("a token cannot be empty")
        node["vocab"].child(token, token).text()
    merges = read_merges(node["merges"], {t: id for t, id in vocab.items() if unit == "character" or spelled_bytes(t)})
    plain = json.dumps({"model": {"vocab": vocab, "merges": merges}}).encode()
    found = _core.read_members(plain, MAX_ID, unit == "character")
    if found is None:
        raise node.error("its vocab and merges do not belong together")
    return Tokens(found[2], unit == "character")


def _read_vocab(node: Node) -> dict[str, int]:
    vocab = node.fields()
    owners: dict[int, str] = {}
    for token, id in vocab.items():
        if type(id) is not int or not 0 <= id <= MAX_ID:
            raise node.child(token, id).expected(f"a whole number from 0 to {MAX_ID}")
        if owners.setdefault(id, token) is not token:
            raise node.child(token, id).error(f"the id {id} also belongs to {shown(owners[id])}")
    return vocab


def read_merges(node: Node, ids: dict[str, int]) -> list[list[str]]:
    rows: dict[tuple[int, int], int] = {}
    pairs: list[list[str]] = []
    if isinstance(node.value, list) and len({type(row) for row in node.value}) > 1:
        raise node.error("pairs and strings are mixed; write all merges as pairs")
    for row in node.items():
        pair = row.value.split(" ") if isinstance(row.value, str) else row.value
        if not (isinstance(pair, list) and len(pair) == 2 and type(pair[0]) is type(pair[1]) is str):
            raise row.expected('a pair of tokens, ["a", "b"] or "a b"')
        left, right = pair
        for token in (left, right, left + right):
            if token not in ids:
                raise row.error(f"{shown(token)} is not a token of model.vocab, or spells no bytes")
        index = rows.setdefault((ids[left], ids[right]), len(pairs))
        if index != len(pairs):
            raise row.error(f"{shown(pair)} stands already in row {index}")
        pairs.append(pair)
    return pairs


def read_added_tokens(node: Node, tokens: AnyTokens) -> dict[str, ExtraToken]:
    """The added tokens by content, with the ids that tokenizers gives them."""
    rows = [(step, _read_added_token(step)) for step in node.items()]
    owners: dict[int, str] = {}
    added: dict[str, ExtraToken] = {}
    ids = assigned_ids(tokens.id_of, len(tokens), (token.content for _, token in rows))
    for (step, token), id in zip(rows, ids, strict=True):
        if token.content in added:
            raise step["content"].error(f"{shown(token.content)} stands twice in the list")
        if token.id != id:
            raise step["id"].error(
                f"the file says {token.id}, but tokenizers gives {shown(token.content)} the id {id}; "
                "list the token in model.vocab with the id it should have"
            )
        owner = tokens.token_of(id) or owners.setdefault(id, token.content)
        if owner != token.content:
            raise step["id"].error(f"the id {id} also belongs to {shown(owner)}")
        added[token.content] = token
    return added


def _read_added_token(step: Node) -> ExtraToken:
    special = step.get("special", False).flag()
    flags = {name: step.get(name, False).flag() for name in ("single_word", "lstrip", "rstrip")}
    if not step["content"].text():
        raise step["content"].error("an added token cannot be empty")
    return ExtraToken(
        id=step["id"].number(0, MAX_ID),
        content=step["content"].text(),
        kind="special" if special else "added",
        normalized=step.get("normalized", not special).flag(),
        **flags,
    )


def assigned_ids(id_of: Callable[[str], int | None], count: int, contents: Iterable[str]) -> Iterator[int]:
    """The ids that tokenizers gives added tokens, in their order in the file, whatever ids the file names.

    Args:
        id_of: the id of a token in `model.vocab`.
        count: so many tokens are there.
    """
    last = -1
    for content in contents:
        id = id_of(content)
        id = max(count, last + 1) if id is None else id
        last = max(last, id)
        yield id


def _read_model(
    node: Node,
    tokens: Tokens,
    added: dict[str, ExtraToken],
    root: Node,
    unit: Literal["byte", "character"],
    normalizers: Sequence[Stage],
) -> tuple[BPE, list[ExtraToken]]:
    """The model, and the tokens of its `vocab` that no text can give."""
    ignore_merges = node.get("ignore_merges", False).flag()
    marker = _end_of_word(node)
    unk = None
    if unit == "character":
        unk = _read_unk(node.get("unk_token"), tokens)
        for token in map(bytes.decode, tokens.vocab.pieces):
            if marker in token.removesuffix(marker):
                raise node["vocab"].child(token, token).error(f"{marker!r} can only stand at the end of a token")
    gone: list[int] = []
    for index, extra in enumerate(added.values()):
        at = tokens.entry(extra.content)
        if at is None:
            continue
        piece, merged = tokens.vocab.pieces[at], bool(tokens.merged[at])
        kept = _is_unit(piece, unit, marker) or merged or extra.id == unk
        kept = kept or (ignore_merges and extra.kind == "added")
        whole = ignore_merges and comes_to_the_model(extra, piece, marker, normalizers)
        problem = shared_problem(extra, piece, merged, whole) if kept or whole else None
        if problem is not None:
            raise root["added_tokens"].child(index, None).error(problem)
        if not kept:
            gone.append(at)
    if unit == "byte":
        _check_bytes(node["vocab"], tokens, set(gone), marker)
    unmatchable = [ExtraToken(id, token, "unmatchable") for token, id in tokens.others.items() if token not in added]
    vocab = without(tokens.vocab, gone)
    return BPE(vocab, tokens.merges, "merges", ignore_merges, unit, marker, unk), unmatchable


def without(vocab: Vocab, places: Iterable[int]) -> Vocab:
    """The entries but for those at some places."""
    places = sorted(places)
    if not places:
        return vocab
    data, offsets = vocab.pieces.data, vocab.pieces.offsets
    ends, starts = offsets[places].tolist(), offsets[np.array(places) + 1].tolist()
    pieces = b"".join(data[start:end] for start, end in zip([0, *starts], [*ends, len(data)], strict=True))
    lengths = np.delete(np.diff(offsets), places)
    rest = np.concatenate([np.zeros(1, np.uint64), np.cumsum(lengths, dtype=np.uint64)])
    return Vocab(Packed(pieces, rest), np.delete(vocab.ids, places))


def _is_unit(piece: bytes, unit: str, marker: str) -> bool:
    """Whether a piece may start as this."""
    return len(piece) == 1 or (unit == "character" and len(piece.decode().removesuffix(marker)) == 1)


def _read_unk(node: Node, tokens: AnyTokens) -> int:
    if node.value is None:
        raise node.error("without one, tokenizers drops unknown characters, which is not supported; name a token")
    id = tokens.id_of(node.text())
    if id is None:
        raise node.error(f"{shown(node.value)} is not a token of model.vocab")
    return id


def _check_bytes(node: Node, tokens: Tokens, gone: set[int], marker: str) -> None:
    for end in dict.fromkeys(("", marker)):
        needed = (byte for byte in range(256) if byte not in NEVER_IN_UTF8)
        found = {byte: tokens.entry(to_alphabet(bytes([byte])) + end) for byte in needed}
        missing = [byte for byte, at in found.items() if at is None or at in gone]
        if missing:
            listed = " ".join(f"0x{byte:02X}" for byte in missing[:16]) + (" …" if len(missing) > 16 else "")
            behind = f" with {end!r} behind it" if end else ""
            raise node.error(f"a byte-level BPE needs a token for each byte{behind}; there is none for {listed}")


def comes_to_the_model(token: ExtraToken, piece: bytes, marker: str, stages: Sequence[Stage]) -> bool:
    """Whether some text becomes a piece that is the added token's entry, though the token is not taken from it."""
    if token.single_word or token.content.encode() != piece or (marker and token.content.endswith(marker)):
        return True
    if token.normalized:
        return False
    # What NFC and NFD make of other characters is not ASCII, but for a Kelvin sign, a Greek ; and a Greek accent.
    plain = token.content.isascii() and not set("K;`") & set(token.content)
    forms = ("NFKC", "NFKD") if plain else ("NFC", "NFD", "NFKC", "NFKD")
    others = (Lowercase, CleanText, PadChinese, StripAccents)
    return any(isinstance(s, others) or (isinstance(s, Normalize) and s.form in forms) for s in stages)


def shared_problem(token: ExtraToken, piece: bytes, merged: bool, whole: bool) -> str | None:
    """What stands against an added token that is an entry of the model too.

    `merged`: merges use the entry. `whole`: text comes to the model that `ignore_merges` turns into it.
    """
    if token.content.encode() != piece:
        return f"{shown(token.content)} would have the id of the bytes {piece!r}, which the model spells the same way"
    if token.kind == "special" and (merged or whole) and len(piece) > 1:
        reason = (
            "model.merges use it" if merged else "model.ignore_merges also gives it for text that it is not taken from"
        )
        advice = "set `special` to false" + (", or take those merges out" if merged else "")
        return f"{shown(token.content)} is special, but {reason}, so that ordinary text could give its id; {advice}"
    return None


# ------------------------ WordPiece ------------------------


class Words:
    """The tokens of a WordPiece: all spelled as they are."""

    def __init__(self, ids: dict[str, int]) -> None:
        self.ids = ids
        self.tokens = {id: token for token, id in ids.items()}

    def __len__(self) -> int:
        return len(self.ids)

    def id_of(self, token: str) -> int | None:
        return self.ids.get(token)

    def token_of(self, id: int) -> str | None:
        return self.tokens.get(id)


def is_scored(model: Node) -> bool:
    """Whether a model is of SentencePiece's kind: a Unigram, or a BPE over characters that falls back to bytes."""
    fields = model.fields()
    kind, has_scores = fields.get("type"), isinstance(fields.get("vocab"), list)
    return kind == "Unigram" or (kind is None and has_scores) or (kind == "BPE" and fields.get("byte_fallback") is True)


def is_word_piece(model: Node) -> bool:
    """Whether a model is a WordPiece, or the like of it with whole words. Old files do not say the type: a BPE has
    merges, a word list has no prefix."""
    fields = model.fields()
    is_untold = fields.get("type") is None and "merges" not in fields and "continuing_subword_prefix" in fields
    return fields.get("type") in ("WordPiece", "WordLevel") or is_untold


def read_word_piece(root: Node) -> Spec:
    node = root["model"]
    words = Words(_read_words(node["vocab"]))
    added = read_added_tokens(root.get("added_tokens", []), words)
    splitting = _read_word_splitting(root.get("pre_tokenizer"))
    normalizers = _read_normalizer(root.get("normalizer"), splitting, added)
    unk = _read_unk(node["unk_token"], words)
    gone = set()
    for index, extra in enumerate(added.values()):
        # Special ones leave the model, so that ordinary text cannot give their ids; others may be parts of words.
        if extra.kind != "special" or extra.id == unk or extra.content not in words.ids:
            continue
        if can_be_a_word(extra, normalizers, splitting):
            problem = f"{shown(extra.content)} is special, but text that it is not taken from can become this word"
            raise root["added_tokens"].child(index, None).error(f"{problem}; set `special` to false")
        gone.add(extra.content)
    template = read_post_processor(root.get("post_processor"), Known(words, added.values()))
    vocab = Vocab.of((token.encode(), id) for token, id in words.ids.items() if token not in gone)
    model: WordPiece | WordLevel
    if node.fields().get("type") == "WordLevel":
        model = WordLevel(vocab, unk)
    else:
        prefix, most = node["continuing_subword_prefix"].text(), node["max_input_chars_per_word"].number(0, 2**63 - 1)
        model = WordPiece(vocab, unk, prefix, most)
    return Spec(
        stages=(*matching(added, False), *normalizers, *matching(added, True), *splitting),
        model=model,
        extra=tuple(sorted(added.values(), key=lambda token: token.id)),
        template=template,
        decode=_read_word_decoder(root.get("decoder")),
        roles=template_roles(template) | {"unk": unk},
    )


def _read_words(node: Node) -> dict[str, int]:
    vocab = _read_vocab(node)
    for token in vocab:
        if not token:
            raise node.child(token, token).error("a token cannot be empty")
        node.child(token, token).text()
    return vocab


def _read_word_splitting(node: Node) -> tuple[Stage, ...]:
    steps = steps_of(node, "pretokenizers")
    for step in steps:
        if step["type"].value not in _CUTTING:
            raise unsupported(step, f"a WordPiece has {', '.join(_CUTTING)}, or a Sequence of these")
    return tuple(_read_cutting(steps)) or (Split("none", SPLIT_UNICODE),)


def _read_word_decoder(node: Node) -> Decoding:
    if node.value is None:
        return DecodeWordPiece(prefix="", cleanup=False)  # spaces between all tokens
    if node["type"].value != "WordPiece":
        raise unsupported(node, "a WordPiece has the decoder WordPiece, or none")
    prefix, cleanup = node.get("prefix", "##").text(), node.get("cleanup", True).flag()
    if not prefix and cleanup:
        raise node["prefix"].error("an empty prefix goes with `cleanup` set to false")
    return DecodeWordPiece(prefix, cleanup) if prefix else Decode()


def can_be_a_word(token: ExtraToken, normalizers: Sequence[Stage], splitting: Sequence[Stage]) -> bool:
    """Whether some text becomes a piece that starts with a token, though the token is not taken from it."""
    is_cut = SplitPunctuation() in splitting and list(split_punctuation(token.content)) != [token.content]
    return not is_cut and comes_to_the_model(token, token.content.encode(), "", normalizers)


# ------------------------ template ------------------------


def read_post_processor(node: Node, known: Known) -> Template:
    steps = steps_of(node, "processors")
    for step in steps:
        if step["type"].value != "ByteLevel" and step["type"].value not in _TEMPLATES:
            raise unsupported(step, f"the post-processors are ByteLevel, {', '.join(_TEMPLATES)} and a Sequence")
    templates = [step for step in steps if step["type"].value in _TEMPLATES]
    for step in templates[1:]:
        raise step.error("a second template is not supported; make it one")
    return _TEMPLATES[templates[0]["type"].value](templates[0], known) if templates else Template()


def _read_template(step: Node, known: Known) -> Template:
    single = _read_template_items(step, "single", ["A"], known)
    pair = _read_template_items(step, "pair", ["A", "B"], known)
    items, types = ([tuple(row[at] for row in rows) for rows in (single, pair)] for at in (0, 1))
    return Template(items[0], items[1], types[0], types[1])


def _read_template_items(step: Node, name: str, texts: list[str], known: Known) -> list[tuple[Any, int]]:
    """The items, each with its type id."""
    items: list[tuple[Any, int]] = []
    for row in step[name].items():
        for kind in ("Sequence", "SpecialToken"):
            if kind in row.fields():
                break
        else:
            raise row.expected('{"Sequence": …} or {"SpecialToken": …}')
        type_id = row[kind].get("type_id", 0).number(0, MAX_ID)
        part = row[kind]["id"]
        if kind == "Sequence":
            items.append((part.text(), type_id))
        else:
            tokens = step["special_tokens"].fields()
            if part.text() not in tokens:
                raise part.error(f"{shown(part.value)} is not in {step['special_tokens'].path}")
            ids = step["special_tokens"][part.text()]["ids"].items()
            items += [(_read_id(id, known), type_id) for id in ids]
    if sorted(item for item, _ in items if isinstance(item, str)) != texts:
        raise step[name].error(f"it should hold the Sequence {' and '.join(texts)}, once")
    return items


def _read_roberta(step: Node, known: Known) -> Template:
    cls, sep = _read_named_id(step["cls"], known), _read_named_id(step["sep"], known)
    return Template((cls, "A", sep), (cls, "A", sep, sep, "B", sep), pair_types=(0,) * 6)


def _read_bert(step: Node, known: Known) -> Template:
    cls, sep = _read_named_id(step["cls"], known), _read_named_id(step["sep"], known)
    return Template((cls, "A", sep), (cls, "A", sep, "B", sep))


def _read_named_id(node: Node, known: Known) -> int:
    """The id of a `["token", id]`."""
    pair = list(node.items())
    if len(pair) != 2:
        raise node.expected("a token and its id")
    return _read_id(pair[1], known)


def _read_id(node: Node, known: Known) -> int:
    if node.number(0, MAX_ID) not in known:
        raise node.error(f"no token has the id {node.value}")
    return node.number(0, MAX_ID)


_TEMPLATES = {"TemplateProcessing": _read_template, "RobertaProcessing": _read_roberta, "BertProcessing": _read_bert}


def template_roles(template: Template) -> dict[str, int]:
    """What a template tells of roles: one id before a text is `bos`, one after it is `eos`."""
    at = template.single.index("A")
    before, after = template.single[:at], template.single[at + 1 :]
    return {name: cast("int", ids[0]) for name, ids in (("bos", before), ("eos", after)) if len(ids) == 1}


def _unk_role(unk: Node, tokens: AnyTokens, added: dict[str, ExtraToken]) -> dict[str, int]:
    """A model with all bytes never needs its unknown token; the file may still name it."""
    if unk.value is None:
        return {}
    id = tokens.id_of(unk.text())
    if id is None and unk.value not in added:
        raise unk.error(f"{shown(unk.value)} is not a token")
    return {"unk": added[unk.value].id if id is None else id}
