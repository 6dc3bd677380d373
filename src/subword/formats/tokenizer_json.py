"""tokenizer.json of HF tokenizers (0.23), as far as it is BPE over bytes, or over characters with an end of words.

One JSON object. Read, with ids equal to that library's:

    version         "1.0"
    truncation      null                     padding    null
    added_tokens    [{id, content, single_word, lstrip, rstrip, normalized, special}]
    normalizer      null | NFC | NFD | NFKC | NFKD | Lowercase | Replace \\s+ by a space | Sequence of these
    pre_tokenizer   ByteLevel | Sequence of Split(Regex, Isolated or Removed), WhitespaceSplit, Digits(individual), …
                    and then ByteLevel (Removed and inverted is the same as Isolated where the matches leave nothing
                    out; where they leave something out, only rows of `patterns.py` are known)
    post_processor  null | ByteLevel | TemplateProcessing | RobertaProcessing | BertProcessing | Sequence of these
    decoder         null | ByteLevel
    model           BPE: vocab {token: id}, merges [[left, right]] or ["left right"], ignore_merges, end_of_word_suffix;
                    unk_token, fuse_unk and byte_fallback change nothing where bytes are merged: all are known

A BPE over characters has WhitespaceSplit, Splits, Digits, or a Sequence of these for a pre_tokenizer, a BPEDecoder, an
end_of_word_suffix and an unk_token. To replace white space is accepted where the pieces drop it, so that it changes no
id; it is not kept.

Everything else is refused, by its JSON path. Tokens of `vocab` spell bytes in GPT-2's alphabet; one that does not is
`unmatchable` unless it is also an added token. An added token leaves the model's vocabulary (so that ordinary text
cannot give its id) unless the model itself needs it: a single byte; a token of the merges; with `ignore_merges`, any
that is not special.

tokenizers takes no id of an added token from the file: it gives it that of the `vocab` entry with the same content,
else the next free one. A file that says otherwise is refused, and writing lists tokens in `vocab` where that is needed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Literal, NoReturn, TypeAlias, cast

import numpy as np

from .._core import regex_covers, same_in_both_syntaxes
from ..byte_alphabet import NEVER_IN_UTF8, spelled_bytes, to_alphabet
from ..errors import FormatError, SubwordValueError, warn
from ..patterns import DIGITS, UNICODE, Pattern, digits_and_rest, get_pattern, pattern_of
from ..spec import (
    BPE,
    MAX_ID,
    Decode,
    Digits,
    ExtraToken,
    Lowercase,
    MatchTokens,
    Normalize,
    PrefixSpace,
    Spec,
    Split,
    SplitRegex,
    Stage,
    Template,
    Vocab,
)
from .json_node import Node, parse, shown
from .rank_merges import merges_of_rank_model

PARTS = {
    "pieces": "model.vocab, the keys, in GPT-2's byte alphabet, or as they are where units are characters",
    "ids": "model.vocab, the values; added_tokens[].id",
    "merges": "model.merges, pairs of tokens, the first merges first; model.ignore_merges, model.end_of_word_suffix",
    "pattern": "pre_tokenizer, Split with a regular expression, or ByteLevel with use_regex (gpt2); Digits before it",
    "normalization": "normalizer, lower case too; pre_tokenizer.add_prefix_space",
    "extra tokens": "added_tokens, with their flags; unmatchable ones only in model.vocab",
    "template": "post_processor",
    "roles": "only what the template (bos, eos) and model.unk_token say; the rest stands in tokenizer_config.json",
    "notes": None,
}
LIMITS = (
    "ranks that no merge list can stand for; a model without tokens for all bytes of UTF-8; stages in another order or "
    "of other Unicode versions; lower case with final sigmas; characters without an end-of-word marker; a prefix space "
    "with a pattern other than gpt2; tokens spelled like others"
)

# The Unicode versions of tokenizers 0.23: of its normalizers, of the classes in its split expressions …
NORMALIZER_UNICODE = Normalize("NFC").unicode
SPLIT_UNICODE = UNICODE
DIGITS_UNICODE = "17.0"  # of `Digits`, which asks the Rust library


def looks_like(data: bytes) -> bool:
    return data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"


# ======================== reading ========================

# What the file must say of parts that subword does not have, and what to do where it says something else.
_FIXED_FIELDS: dict[str, tuple[tuple[Any, ...], str]] = {
    "version": ((None, "1.0"), "only version 1.0 is known"),
    "truncation": ((None,), "it cuts ids off; set it to null and cut with `truncate` or `chunk`"),
    "padding": ((None,), "it adds ids; set it to null and pad where batches are made"),
}
_FIXED_MODEL_FIELDS: dict[str, tuple[tuple[Any, ...], str]] = {
    "type": ((None, "BPE"), "only BPE is supported"),
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


def read(data: bytes, source: str) -> Spec:
    """The spec that a file holds.

    Raises:
        FormatError: the file is damaged, contradicts itself, or asks for something that is not supported.
    """
    root = parse(data, source)
    _check_fixed(root["model"], _FIXED_MODEL_FIELDS)
    _check_fixed(root, _FIXED_FIELDS)
    splitting, unit = _read_pre_tokenizer(root.get("pre_tokenizer"))
    if unit == "character":
        _check_fixed(root["model"], _FIXED_CHARACTER_FIELDS)
    decode = _read_decoder(root.get("decoder"), root["model"], unit)
    vocab = _read_vocab(root["model"]["vocab"])
    added = _read_added_tokens(root.get("added_tokens", []), vocab)
    normalizers = _read_normalizer(root.get("normalizer"), splitting, added)
    model, unmatchable = _read_model(root["model"], vocab, added, root, unit, normalizers)
    extra = tuple(sorted([*added.values(), *unmatchable], key=lambda token: token.id))
    template = _read_post_processor(root.get("post_processor"), {*vocab.values(), *(token.id for token in extra)})
    return Spec(
        stages=(*_matching(added, False), *normalizers, *_matching(added, True), *splitting),
        model=model,
        extra=extra,
        template=template,
        decode=decode,
        roles=_template_roles(template) | _unk_role(root["model"].get("unk_token"), vocab, added),
    )


def _matching(added: dict[str, ExtraToken], normalized: bool) -> tuple[MatchTokens, ...]:
    """The stage that takes tokens from raw or from normalized text, if there are any to take."""
    needed = any(token.normalized == normalized for token in added.values())
    return (MatchTokens(normalized),) if needed else ()


def _check_fixed(node: Node, table: dict[str, tuple[tuple[Any, ...], str]]) -> None:
    for name, (allowed, advice) in table.items():
        field = node.get(name)
        if not any(type(field.value) is type(value) and field.value == value for value in allowed):
            raise field.error(f"{shown(field.value)} is not supported: {advice}")


def _steps(node: Node, key: str) -> list[Node]:
    """The steps of a `Sequence`, nested ones opened up; none for null."""
    todo, steps = [node] if node.value is not None else [], []
    while todo:
        step = todo.pop()
        if step["type"].text() == "Sequence":
            todo.extend(reversed(list(step[key].items())))
        else:
            steps.append(step)
    return steps


def _unsupported(step: Node, known: str) -> FormatError:
    return step["type"].error(f"{shown(step['type'].value)} is not supported; {known}")


def _read_decoder(node: Node, model: Node, unit: str) -> Decode:
    marker = _end_of_word(model)
    if unit == "byte":
        for step in _steps(node, "decoders"):
            if step["type"].value != "ByteLevel":
                raise _unsupported(step, "a byte-level BPE has the decoder ByteLevel")
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


def _read_normalizer(
    node: Node, splitting: Sequence[Stage], added: dict[str, ExtraToken]
) -> tuple[Normalize | Lowercase, ...]:
    stages: list[Normalize | Lowercase] = []
    for step in _steps(node, "normalizers"):
        kind = step["type"].value
        if kind in ("NFC", "NFD", "NFKC", "NFKD"):
            stages.append(Normalize(kind, NORMALIZER_UNICODE))
        elif kind == "Lowercase":
            stages.append(Lowercase(final_sigma=False))
        elif kind == "Replace":
            _check_white_space(step, splitting, added)
        else:
            raise _unsupported(
                step,
                "the normalizers are NFC, NFD, NFKC, NFKD, Lowercase, Replace of white space and a Sequence of these",
            )
    return tuple(stages)


def _check_white_space(step: Node, splitting: Sequence[Stage], added: dict[str, ExtraToken]) -> None:
    """Replacing white space changes nothing where the first split drops all of it, and no added token looks at it."""
    if step["pattern"].value != {"Regex": r"\s+"} or step["content"].value != " ":
        raise step.error(r"the only Replace that is supported is that of the Regex \s+ by a space")
    if splitting[0] not in [Split(pattern) for pattern in ("clip", "clip-cased", "whitespace-split")]:
        raise step.error("white space can be replaced only where the first pre-tokenizer drops it")
    for token in added.values():
        if token.normalized and (token.lstrip or token.rstrip or re.search(r"\s", token.content)):
            raise step.error(f"the added token {shown(token.content)} looks at the white space that this replaces")


def _read_pre_tokenizer(node: Node) -> tuple[tuple[Stage, ...], Literal["byte", "character"]]:
    """The stages, and what the model is over."""
    known = "a byte-level BPE has ByteLevel, or a Sequence of Splits and Digits and then ByteLevel; one over "
    known += "characters has WhitespaceSplit, Splits, Digits, or a Sequence of these"
    steps = _steps(node, "pretokenizers") or [node]
    *cutting, last = steps
    if last.value is None:
        raise node.error(f"there is none, so this is no byte-level BPE; {known}")
    types = {step["type"].text() for step in steps}
    if types <= {*_CUTTING} and types != {"Digits"}:
        return tuple(_read_cutting(steps)), "character"
    for step, kinds in [*((step, _CUTTING) for step in cutting), (last, ("ByteLevel",))]:
        if step["type"].value not in kinds:
            raise _unsupported(step, known)
    prefix_space = last.get("add_prefix_space", True)
    if cutting and prefix_space.flag():
        raise prefix_space.error("a space in front of every piece is not supported; set it to false")
    stages = _read_cutting(cutting)
    if last.get("use_regex", True).flag():
        stages.append(Split("gpt2", SPLIT_UNICODE))
    if not any(isinstance(stage, (Split, SplitRegex)) for stage in stages):
        stages.append(Split("none", SPLIT_UNICODE))
    return (PrefixSpace(), *stages) if prefix_space.flag() else tuple(stages), "byte"


_Step: TypeAlias = "tuple[str, bool] | Digits"
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
        elif isinstance(step, Digits):
            stages.append(step)
        elif step[0] in _GROUPINGS:
            stages.append(Digits(cast("Any", _GROUPINGS[step[0]]), SPLIT_UNICODE))
        else:
            stages.append(SplitRegex(step[0], "oniguruma", unicode=SPLIT_UNICODE))
        at = end
    return stages


def _read_digits(step: Node) -> Digits:
    _check_fixed(step, {"individual_digits": ((True,), "use true, or a Split by an expression")})
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
    _check_fixed(step, {"behavior": (("Isolated",), "use Isolated"), "invert": ((None, False), "use false")})
    return regex.text(), False


def _read_white_space_split(step: Node) -> tuple[str, bool]:
    return get_pattern("whitespace-split").steps[0], True


_CUTTING: dict[Any, Callable[[Node], _Step]] = {
    "Digits": _read_digits,
    "Split": _read_split,
    "WhitespaceSplit": _read_white_space_split,
}
_GROUPINGS = {groups: grouping for grouping, groups in DIGITS.items()}


def _row_of(*steps: _Step) -> Pattern | None:
    """The row that Splits spell; none for one that a stage `Digits` and another row spell, which are taken then.

    `{1,3}+` repeats in Oniguruma, so that what tiktoken publishes may be no row here.
    """
    splits = [step for step in steps if not isinstance(step, Digits) and not re.search(r"[0-9]\}\+", step[0])]
    row = pattern_of(*(regex for regex, _ in splits)) if len(splits) == len(steps) else None
    if row is None or digits_and_rest(row) is not None or any(drops != row.drops for _, drops in splits):
        return None
    return row


def _read_vocab(node: Node) -> dict[str, int]:
    vocab = node.fields()
    owners: dict[int, str] = {}
    for token, id in vocab.items():
        if type(id) is not int or not 0 <= id <= MAX_ID:
            raise node.child(token, id).expected(f"a whole number from 0 to {MAX_ID}")
        if owners.setdefault(id, token) is not token:
            raise node.child(token, id).error(f"the id {id} also belongs to {shown(owners[id])}")
    return vocab


def _read_added_tokens(node: Node, vocab: dict[str, int]) -> dict[str, ExtraToken]:
    """The added tokens by content, with the ids that tokenizers gives them."""
    tokens = [(step, _read_added_token(step)) for step in node.items()]
    owners = {id: token for token, id in vocab.items()}
    added: dict[str, ExtraToken] = {}
    for (step, token), id in zip(tokens, assigned_ids(vocab, (token.content for _, token in tokens)), strict=True):
        if token.content in added:
            raise step["content"].error(f"{shown(token.content)} stands twice in the list")
        if token.id != id:
            raise step["id"].error(
                f"the file says {token.id}, but tokenizers gives {shown(token.content)} the id {id}; "
                "list the token in model.vocab with the id it should have"
            )
        if owners.setdefault(id, token.content) != token.content:
            raise step["id"].error(f"the id {id} also belongs to {shown(owners[id])}")
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


def assigned_ids(vocab: dict[str, int], contents: Iterable[str]) -> Iterator[int]:
    """The ids that tokenizers gives added tokens, in their order in the file, whatever ids the file names."""
    last = -1
    for content in contents:
        id = vocab.get(content, max(len(vocab), last + 1))
        last = max(last, id)
        yield id


def _read_model(
    node: Node,
    vocab: dict[str, int],
    added: dict[str, ExtraToken],
    root: Node,
    unit: Literal["byte", "character"],
    normalizers: Sequence[Stage],
) -> tuple[BPE, list[ExtraToken]]:
    """The model, and the tokens of its `vocab` that no text can give."""
    ignore_merges = node.get("ignore_merges", False).flag()
    marker = _end_of_word(node)
    unk = None
    if unit == "byte":
        pieces = {token: spelled_bytes(token) for token in vocab}
    else:
        pieces = {token: node["vocab"].child(token, token).text().encode() for token in vocab}
        unk = _read_unk(node.get("unk_token"), vocab)
    merges, merged = _read_merges(node["merges"], vocab, pieces)
    # Most tokens are plain entries, and nothing is asked about them.
    plain = {token: piece for token, piece in pieces.items() if piece and token not in added} if unit == "byte" else {}
    entries, unmatchable = [(piece, vocab[token]) for token, piece in plain.items()], []
    for token, piece in pieces.items() if len(plain) < len(pieces) else ():
        if token in plain:
            continue
        extra = added.get(token)
        if piece is None:
            if extra is None:
                content = node["vocab"].child(token, token).text()
                unmatchable.append(ExtraToken(vocab[token], content, "unmatchable"))
            continue
        if not piece:
            raise node["vocab"].child(token, token).error("a token cannot be empty")
        if unit == "character" and marker in token.removesuffix(marker):
            raise node["vocab"].child(token, token).error(f"{marker!r} can only stand at the end of a token")
        kept = _is_unit(piece, unit, marker) or token in merged or (ignore_merges and extra and extra.kind == "added")
        whole = ignore_merges and extra is not None and _comes_to_the_model(extra, piece, marker, normalizers)
        kept = kept or extra is None or vocab[token] == unk
        if kept:
            entries.append((piece, vocab[token]))
        if extra is not None and (kept or whole):
            problem = _shared_problem(extra, piece, token in merged, whole)
            if problem is not None:
                raise root["added_tokens"].child(list(added).index(token), None).error(problem)
    if unit == "byte":
        _check_bytes(node["vocab"], {piece for piece, _ in entries}, marker)
    return BPE(Vocab.of(entries), merges, "merges", ignore_merges, unit, marker, unk), unmatchable


def _is_unit(piece: bytes, unit: str, marker: str) -> bool:
    """Whether a piece may start as this."""
    return len(piece) == 1 or (unit == "character" and len(piece.decode().removesuffix(marker)) == 1)


def _read_unk(node: Node, vocab: dict[str, int]) -> int:
    if node.value is None:
        raise node.error("without one, tokenizers drops unknown characters, which is not supported; name a token")
    if node.text() not in vocab:
        raise node.error(f"{shown(node.value)} is not a token of model.vocab")
    return vocab[node.text()]


def _check_bytes(node: Node, pieces: set[bytes], marker: str) -> None:
    for end in dict.fromkeys(("", marker)):
        needed = (byte for byte in range(256) if byte not in NEVER_IN_UTF8)
        missing = [byte for byte in needed if bytes([byte]) + end.encode() not in pieces]
        if missing:
            listed = " ".join(f"0x{byte:02X}" for byte in missing[:16]) + (" …" if len(missing) > 16 else "")
            behind = f" with {end!r} behind it" if end else ""
            raise node.error(f"a byte-level BPE needs a token for each byte{behind}; there is none for {listed}")


def _comes_to_the_model(token: ExtraToken, piece: bytes, marker: str, stages: Sequence[Stage]) -> bool:
    """Whether some text becomes a piece that is the added token's entry, though the token is not taken from it."""
    if token.single_word or token.content.encode() != piece or (marker and token.content.endswith(marker)):
        return True
    if token.normalized:
        return False
    # What NFC and NFD make of other characters is not ASCII, but for a Kelvin sign, a Greek ; and a Greek accent.
    plain = token.content.isascii() and not set("K;`") & set(token.content)
    forms = ("NFKC", "NFKD") if plain else ("NFC", "NFD", "NFKC", "NFKD")
    return any(isinstance(s, Lowercase) or (isinstance(s, Normalize) and s.form in forms) for s in stages)


def _shared_problem(token: ExtraToken, piece: bytes, merged: bool, whole: bool) -> str | None:
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


def _read_merges(node: Node, vocab: dict[str, int], pieces: dict[str, bytes | None]) -> tuple[Any, set[str]]:
    """The merges as ids, and all tokens that they join or make."""
    ids = {token: vocab[token] for token, piece in pieces.items() if piece is not None}
    rows: dict[tuple[int, int], int] = {}
    joined: list[str] = []
    kinds = {type(row) for row in node.value} if isinstance(node.value, list) else set()
    if len(kinds) > 1:
        raise node.error("pairs and strings are mixed; write all merges as pairs")
    found = _merges_without_fault(node.value, ids) if kinds == {list} else None
    if found is not None:
        return found
    for index, row in enumerate(cast("list[Any]", node.value) if kinds else node.items()):
        pair = row.split(" ") if isinstance(row, str) else row
        if not (isinstance(pair, list) and len(pair) == 2 and type(pair[0]) is type(pair[1]) is str):
            raise node.child(index, row).expected('a pair of tokens, ["a", "b"] or "a b"')
        left, right = pair
        token = left + right
        if not (left in ids and right in ids and token in ids):
            token = next(token for token in (left, right, token) if token not in ids)
            raise node.child(index, row).error(f"{shown(token)} is not a token of model.vocab, or spells no bytes")
        joined += left, right, token
        if rows.setdefault((ids[left], ids[right]), index) != index:
            raise node.child(index, row).error(f"{shown(pair)} stands already in row {rows[ids[left], ids[right]]}")
    return _pairs(rows), set(joined)


def _merges_without_fault(rows: list[list[Any]], ids: dict[str, int]) -> tuple[Any, set[str]] | None:
    """What `_read_merges` gives for pairs in which nothing is wrong, several times as fast; None for others."""
    tokens = list(chain.from_iterable(rows))
    if set(map(len, rows)) != {2} or set(map(type, tokens)) != {str}:
        return None
    tokens += map(str.__add__, tokens[::2], tokens[1::2])
    found = list(map(ids.get, tokens))
    if None in found:
        return None
    pairs = np.array(found[: 2 * len(rows)], dtype=np.uint32).reshape(-1, 2)
    keys = np.sort(pairs.astype(np.uint64) @ np.array([2**32, 1], dtype=np.uint64))
    return None if np.any(keys[1:] == keys[:-1]) else (pairs, set(tokens))


def _pairs(rows: Collection[tuple[int, int]]) -> Any:
    flat = np.fromiter(chain.from_iterable(rows), dtype=np.uint32, count=2 * len(rows))
    return flat.reshape(-1, 2)


# ------------------------ template ------------------------


def _read_post_processor(node: Node, known: set[int]) -> Template:
    steps = _steps(node, "processors")
    for step in steps:
        if step["type"].value != "ByteLevel" and step["type"].value not in _TEMPLATES:
            raise _unsupported(step, f"the post-processors are ByteLevel, {', '.join(_TEMPLATES)} and a Sequence")
    templates = [step for step in steps if step["type"].value in _TEMPLATES]
    for step in templates[1:]:
        raise step.error("a second template is not supported; make it one")
    return _TEMPLATES[templates[0]["type"].value](templates[0], known) if templates else Template()


def _read_template(step: Node, known: set[int]) -> Template:
    return Template(
        tuple(_read_template_items(step, "single", ["A"], 0, known)),
        tuple(_read_template_items(step, "pair", ["A", "B"], 1, known)),
    )


def _read_template_items(step: Node, name: str, texts: list[str], last_type: int, known: set[int]) -> list[int | str]:
    items: list[int | str] = []
    for row in step[name].items():
        for kind in ("Sequence", "SpecialToken"):
            if kind in row.fields():
                break
        else:
            raise row.expected('{"Sequence": …} or {"SpecialToken": …}')
        row[kind].get("type_id", 0).number(0, last_type)
        part = row[kind]["id"]
        if kind == "Sequence":
            items.append(part.text())
        else:
            tokens = step["special_tokens"].fields()
            if part.text() not in tokens:
                raise part.error(f"{shown(part.value)} is not in {step['special_tokens'].path}")
            items += [_read_id(id, known) for id in step["special_tokens"][part.text()]["ids"].items()]
    if sorted(item for item in items if isinstance(item, str)) != texts:
        raise step[name].error(f"it should hold the Sequence {' and '.join(texts)}, once")
    return items


def _read_roberta(step: Node, known: set[int]) -> Template:
    cls, sep = _read_named_id(step["cls"], known), _read_named_id(step["sep"], known)
    return Template((cls, "A", sep), (cls, "A", sep, sep, "B", sep))


def _read_bert(step: Node, known: set[int]) -> Template:
    cls, sep = _read_named_id(step["cls"], known), _read_named_id(step["sep"], known)
    return Template((cls, "A", sep), (cls, "A", sep, "B", sep))


def _read_named_id(node: Node, known: set[int]) -> int:
    """The id of a `["token", id]`."""
    pair = list(node.items())
    if len(pair) != 2:
        raise node.expected("a token and its id")
    return _read_id(pair[1], known)


def _read_id(node: Node, known: set[int]) -> int:
    if node.number(0, MAX_ID) not in known:
        raise node.error(f"no token has the id {node.value}")
    return node.number(0, MAX_ID)


_TEMPLATES = {"TemplateProcessing": _read_template, "RobertaProcessing": _read_roberta, "BertProcessing": _read_bert}


def _template_roles(template: Template) -> dict[str, int]:
    """What a template tells of roles: one id before a text is `bos`, one after it is `eos`."""
    at = template.single.index("A")
    before, after = template.single[:at], template.single[at + 1 :]
    return {name: cast("int", ids[0]) for name, ids in (("bos", before), ("eos", after)) if len(ids) == 1}


def _unk_role(unk: Node, vocab: dict[str, int], added: dict[str, ExtraToken]) -> dict[str, int]:
    """A model with all bytes never needs its unknown token; the file may still name it."""
    if unk.value is None:
        return {}
    if unk.text() in vocab:
        return {"unk": vocab[unk.value]}
    if unk.value in added:
        return {"unk": added[unk.value].id}
    raise unk.error(f"{shown(unk.value)} is not a token")


# ======================== writing ========================


def write(spec: Spec) -> bytes:
    """The file that makes tokenizers 0.23 give the ids that `spec` gives; the same spec gives the same bytes.

    Warns of roles that the file has no place for; notes are left out.

    Raises:
        SubwordValueError: the format cannot hold something of `spec`; the message names it.
    """
    _check_stages(spec)
    model_vocab, merges = _model_vocab(spec), _merges(spec)
    added = sorted((token for token in spec.extra if token.kind != "unmatchable"), key=lambda token: token.id)
    names = {id: token for token, id in model_vocab.items()} | {token.id: token.content for token in spec.extra}
    vocab = _with_added_tokens(model_vocab, added)
    unk = spec.roles.get("unk", -1) if spec.model.unk is None else spec.model.unk
    merged = {name for left, right in merges for name in (names[left], names[right], names[left] + names[right])}
    for token in added:
        _check_added_token(token, vocab, model_vocab, merged, spec)
    _warn_of_roles(spec)
    document: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added_token(token) for token in added],
        "normalizer": _normalizer(spec),
        "pre_tokenizer": _pre_tokenizer(spec),
        "post_processor": _post_processor(spec.template, names),
        "decoder": _decoder(spec),
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": names.get(unk),
            "continuing_subword_prefix": None,
            "end_of_word_suffix": spec.model.end_of_word or None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": spec.model.ignore_merges,
            "vocab": dict(sorted(vocab.items(), key=lambda entry: entry[1])),
            "merges": [],
        },
    }
    return _dumped(document, [[names[left], names[right]] for left, right in merges])


def _dumped(document: dict[str, Any], merges: list[list[str]]) -> bytes:
    """The document, indented, with one merge a line: `json` would take four lines for it."""
    tail = "[]\n  }\n}"
    text = json.dumps(document, ensure_ascii=False, indent=2).removesuffix(tail)
    rows = ",\n".join("      " + json.dumps(pair, ensure_ascii=False) for pair in merges)
    return (text + (f"[\n{rows}\n    ]\n  }}\n}}" if rows else tail) + "\n").encode()


def _refuse(what: str) -> NoReturn:
    raise SubwordValueError(f"tokenizer.json cannot hold {what}; save as .subword instead")


def _check_stages(spec: Spec) -> None:
    """The stages must be those of tokenizers, in its order, and take from text the tokens that it takes."""
    order = [MatchTokens(), Normalize, MatchTokens(normalized=True), PrefixSpace, Split]
    alike: dict[type, type] = {Lowercase: Normalize, Digits: Split, SplitRegex: Split}
    kinds = [alike.get(type(stage), type(stage)) for stage in spec.stages]
    places = [order.index(s if k is MatchTokens else k) for s, k in zip(spec.stages, kinds, strict=True)]
    once = [place for place in places if order[place] not in (Normalize, Split)]
    if places != sorted(places) or len(set(once)) != len(once):
        _refuse(f"the stages {', '.join(map(repr, spec.stages))} in this order")
    for stage in spec.stages:
        if isinstance(stage, (Normalize, Lowercase, Digits, Split, SplitRegex)):
            known = NORMALIZER_UNICODE if isinstance(stage, Normalize) else SPLIT_UNICODE
            if stage.unicode != known and stage != Digits("one", DIGITS_UNICODE):
                _refuse(f"Unicode {stage.unicode} in {stage!r}: tokenizers has {known} there")
        if isinstance(stage, Lowercase) and stage.final_sigma:
            _refuse("lower case with final sigmas")
    for token in spec.extra:
        if token.kind != "unmatchable" and MatchTokens(token.normalized) not in spec.stages:
            _refuse(f"the token {token.content!r} (id {token.id}) that no stage takes from text: tokenizers takes all")


def _warn_of_roles(spec: Spec) -> None:
    kept = _template_roles(spec.template) | {"unk": spec.roles.get("unk")}
    lost = ", ".join(name for name, id in spec.roles.items() if kept.get(name) != id)
    if lost:
        text = f"tokenizer.json has no place for the roles {lost}; transformers keeps them in tokenizer_config.json"
        warn(text)


def _model_vocab(spec: Spec) -> dict[str, int]:
    """The model's entries and the unmatchable tokens, spelled as the file spells them."""
    if spec.model.unit == "character":
        return _character_vocab(spec)
    vocab = {to_alphabet(piece): id for piece, id in spec.model.vocab.items()}
    missing = bytes(b for b in range(256) if b not in NEVER_IN_UTF8 and to_alphabet(bytes([b])) not in vocab)
    if missing:
        _refuse(f"a model without tokens for the bytes {missing!r}: tokenizers would drop them from text")
    for token in spec.extra:
        if token.kind == "unmatchable":
            if spelled_bytes(token.content) is not None:
                _refuse(f"the unmatchable token {token.content!r} (id {token.id}): it would spell bytes there")
            vocab[token.content] = token.id
    return vocab


def _character_vocab(spec: Spec) -> dict[str, int]:
    model = spec.model
    vocab: dict[str, int] = {}
    for piece, id in model.vocab.items():
        try:
            token = piece.decode()
        except UnicodeDecodeError:
            _refuse(f"the token {piece!r} (id {id}), which is not text")
        if not model.end_of_word or model.end_of_word in token.removesuffix(model.end_of_word):
            _refuse(f"characters without a marker at the ends of words, and only there: {token!r} (id {id})")
        vocab[token] = id
    for extra in spec.extra:
        if extra.kind == "unmatchable":
            _refuse(f"the unmatchable token {extra.content!r} (id {extra.id}): it would be a token of the model")
    return vocab


def _decoder(spec: Spec) -> dict[str, Any]:
    model = spec.model
    if model.unit == "character":
        if spec.decode != Decode(trim=True):
            _refuse(
                f"a model over characters with {spec.decode!r}: it decodes the end of a word to a space between words"
            )
        return {"type": "BPEDecoder", "suffix": model.end_of_word}
    if to_alphabet(model.end_of_word.encode()) != model.end_of_word:
        _refuse(f"the end-of-word marker {model.end_of_word!r} of a byte-level BPE: it is spelled otherwise there")
    if model.end_of_word and spec.decode != Decode(model.end_of_word):
        _refuse(f"a model over bytes with {spec.decode!r}: it decodes the end of a word to {model.end_of_word!r}")
    return _byte_level()


def _merges(spec: Spec) -> Sequence[Sequence[int]]:
    if spec.model.priority == "merges":
        return cast("list[list[int]]", spec.model.merges.tolist())
    try:
        return merges_of_rank_model(spec)
    except SubwordValueError as error:
        _refuse(f"these ranks: {error}")


def _with_added_tokens(vocab: dict[str, int], added: list[ExtraToken]) -> dict[str, int]:
    """`vocab` with the added tokens that would get other ids without it: all but those at the end, else all."""
    ids = [token.id for token in added]
    contents = [token.content for token in added]
    start = len(ids)
    while start > 0 and (start == len(ids) or ids[start - 1] + 1 == ids[start]):
        start -= 1
    listed = vocab | dict(zip(contents[:start], ids[:start], strict=True))
    if list(assigned_ids(listed, contents)) == ids:
        return listed
    return vocab | dict(zip(contents, ids, strict=True))


def _check_added_token(
    token: ExtraToken, vocab: dict[str, int], model_vocab: dict[str, int], merged: set[str], spec: Spec
) -> None:
    """Nothing but the added token itself may give its id, unless `read` says that the model does."""
    model, problem = spec.model, None
    piece = spelled_bytes(token.content) if model.unit == "byte" else token.content.encode()
    whole = (
        model.ignore_merges and piece is not None and _comes_to_the_model(token, piece, model.end_of_word, spec.stages)
    )
    if model_vocab.get(token.content, token.id) != token.id:
        problem = f"the model spells its token {model_vocab[token.content]} the same way there"
    elif token.content in model_vocab and piece is not None:
        problem = _shared_problem(token, piece, token.content in merged, whole)
    elif token.content in vocab and (whole or (piece is not None and model.ignore_merges and token.kind == "added")):
        problem = "listed in the vocabulary, as its id needs, it would also be a token of the model"
    if problem is not None:
        _refuse(f"the token {token.content!r} (id {token.id}): {problem}")


def _added_token(token: ExtraToken) -> dict[str, Any]:
    return {
        "id": token.id,
        "content": token.content,
        "single_word": token.single_word,
        "lstrip": token.lstrip,
        "rstrip": token.rstrip,
        "normalized": token.normalized,
        "special": token.kind == "special",
    }


def _normalizer(spec: Spec) -> dict[str, Any] | None:
    steps = [
        {"type": stage.form if isinstance(stage, Normalize) else "Lowercase"}
        for stage in spec.stages
        if isinstance(stage, (Normalize, Lowercase))
    ]
    if len(steps) > 1:
        return {"type": "Sequence", "normalizers": steps}
    return steps[0] if steps else None


def _pre_tokenizer(spec: Spec) -> dict[str, Any]:
    cutting = [stage for stage in spec.stages if isinstance(stage, (Digits, Split, SplitRegex)) and stage != _WHOLE]
    prefix_space, by_bytes = PrefixSpace() in spec.stages, spec.model.unit == "byte"
    built_in = by_bytes and cutting[-1:] == [Split("gpt2", SPLIT_UNICODE)]
    if built_in:
        cutting.pop()
    if not by_bytes and (prefix_space or all(isinstance(stage, Digits) for stage in cutting)):
        _refuse("a model over characters with a space in front of the text, or without a split pattern")
    steps = [step for stage in cutting for step in _steps_of(stage)]
    if by_bytes:
        steps.append(_byte_level(prefix_space, use_regex=built_in))
    if len(steps) == 1:
        return steps[0]
    if prefix_space:
        _refuse(f"a space in front of the text together with the stage {cutting[0]!r}")
    return {"type": "Sequence", "pretokenizers": steps}


_WHOLE = Split("none", SPLIT_UNICODE)


def _steps_of(stage: Digits | Split | SplitRegex) -> list[dict[str, Any]]:
    if isinstance(stage, Digits) and stage.unicode == DIGITS_UNICODE:
        return [{"type": "Digits", "individual_digits": True}]
    drops = isinstance(stage, Split) and get_pattern(stage.pattern).drops
    fixed = {"behavior": "Removed" if drops else "Isolated", "invert": drops}
    return [{"type": "Split", "pattern": {"Regex": regex}, **fixed} for regex in _regexes(stage)]


def _regexes(stage: Digits | Split | SplitRegex) -> Sequence[str]:
    """The expressions of a stage, as tokenizers reads them."""
    if isinstance(stage, Digits):
        return [DIGITS[stage.grouping]]
    if isinstance(stage, Split):
        return get_pattern(stage.pattern).steps
    if stage.syntax != "oniguruma" and not same_in_both_syntaxes(stage.regex):
        _refuse(f"the split pattern {stage.regex!r}, which says something else in Oniguruma's syntax")
    return [stage.regex]


def _byte_level(add_prefix_space: bool = False, use_regex: bool = True) -> dict[str, Any]:
    return {"type": "ByteLevel", "add_prefix_space": add_prefix_space, "trim_offsets": True, "use_regex": use_regex}


def _post_processor(template: Template, names: dict[int, str]) -> dict[str, Any] | None:
    if template == Template():
        return None
    used = sorted({item for item in template.single + template.pair if isinstance(item, int)})
    return {
        "type": "TemplateProcessing",
        "single": [_template_item(item, names) for item in template.single],
        "pair": [_template_item(item, names) for item in template.pair],
        "special_tokens": {names[id]: {"id": names[id], "ids": [id], "tokens": [names[id]]} for id in used},
    }


def _template_item(item: int | str, names: dict[int, str]) -> dict[str, Any]:
    if isinstance(item, str):
        return {"Sequence": {"id": item, "type_id": 0}}
    return {"SpecialToken": {"id": names[item], "type_id": 0}}
