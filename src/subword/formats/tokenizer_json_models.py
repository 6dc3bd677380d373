"""Models in tokenizer.json, and which of ours they are.

Special tokens that are entries leave the model, so that ordinary text can never give their ids; in a model with scores
they stay, but no text spells them. Where text that they are not taken from could become them in tokenizers, as a
normalizer makes it so, it cannot here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..byte_alphabet import NEVER_IN_UTF8, spelled_bytes, to_alphabet
from ..engine import split_punctuation
from ..spec import (
    BPE,
    BYTE,
    MAX_ID,
    NORMAL,
    UNKNOWN,
    UNUSED,
    ByteAlphabet,
    ExtraToken,
    Model,
    ScoreBPE,
    SplitPunctuation,
    Stage,
    Unigram,
    Vocab,
    WordLevel,
    WordPiece,
)
from .json_node import Node, shown
from .sentencepiece_model import byte_piece
from .tokenizer_json_added import comes_to_the_model, read_added_tokens
from .tokenizer_json_tokens import AnyTokens, Tokens, Words, read_merges, read_vocab, without

Tell: TypeAlias = Callable[[str], None]

BYTES = frozenset(byte_piece(byte) for byte in range(256))


class Read(NamedTuple):
    """A model, its tokens, the added tokens by content, and the tokens of its `vocab` that no text can give."""

    model: Model
    tokens: AnyTokens
    added: dict[str, ExtraToken]
    unmatchable: list[ExtraToken]


def kind_of(node: Node) -> str:
    """The type of a model. Old files do not say it: a BPE has merges, a WordPiece a prefix, a Unigram a list."""
    fields = node.fields()
    kind = fields.get("type")
    if kind is None:
        has_scores = isinstance(fields.get("vocab"), list)
        untold = "WordPiece" if "continuing_subword_prefix" in fields else "WordLevel"
        kind = "Unigram" if has_scores else "BPE" if "merges" in fields else untold
    if kind not in ("BPE", *_READ):
        raise node["type"].error(f"{shown(kind)} is not supported: the models are BPE, {', '.join(_READ)}")
    return str(kind)


def read_model(root: Node, tokens: Tokens | None, stages: Sequence[Stage], tell: Tell) -> Read:
    """The model of a file; `tokens` where they are read already and stand no more in `root`.

    `stages` are all that stand before it; the last of them is for a BPE over bytes if it writes these as text.
    """
    kind = kind_of(root["model"])
    if kind != "BPE":
        return _READ[kind](root, stages, tell)
    return _read_bpe(root, tokens, stages, tell)


# ======================== BPE ========================


def _read_bpe(root: Node, tokens: Tokens | None, stages: Sequence[Stage], tell: Tell) -> Read:
    node = root["model"]
    prefix, suffix = _affix(node, "continuing_subword_prefix"), _affix(node, "end_of_word_suffix")
    flags = [node.get(name, False) for name in ("fuse_unk", "byte_fallback", "ignore_merges")]
    fuse_unk, byte_fallback, ignore_merges = (flag.value is not None and flag.flag() for flag in flags)
    _tell_of_dropout(node.get("dropout"), tell)
    writes_bytes = bool(stages) and stages[-1] == ByteAlphabet() and ByteAlphabet() not in stages[:-1]
    may_be_bytes = writes_bytes and not prefix and to_alphabet(suffix.encode()) == suffix
    if tokens is None:
        tokens = _read_tokens(node, may_be_bytes, prefix, suffix)
    elif tokens.by_characters == (may_be_bytes and _has_bytes(tokens.entry, suffix)) or prefix:
        raise node.error("its tokens are spelled otherwise")
    by_bytes = not tokens.by_characters
    added = read_added_tokens(root.get("added_tokens", []), tokens, tell)
    unk = None if by_bytes else _read_unk(node.get("unk_token"), tokens)
    units = Units(by_bytes, prefix.encode(), suffix.encode(), unk, byte_fallback)
    gone, specials = _gone(root["added_tokens"] if added else root, tokens, added, units, ignore_merges)
    if ignore_merges:
        _tell_of_words((token for token in added.values() if token.id in specials), suffix, stages, tell)
    merges = _without_specials(tokens, specials, prefix)
    if len(merges) < len(tokens.merges):
        lost = len(tokens.merges) - len(merges)
        tell(f"{lost} of model.merges are left out: they join or make special tokens, which text must not spell")
    unmatchable = [ExtraToken(id, token, "unmatchable") for token, id in tokens.others.items() if token not in added]
    model: Model
    is_plain = not (by_bytes or prefix or suffix or ignore_merges)
    falls_back = byte_fallback and all(tokens.entry(token) is not None for token in BYTES)
    if is_plain and falls_back and unk is not None and not np.any(merges == unk):
        kinds: dict[int | None, int] = {unk: UNKNOWN, **{tokens.id_of(token): BYTE for token in BYTES}}
        for token in added.values():
            if token.kind == "special" and tokens.entry(token.content) is not None:
                kinds.setdefault(token.id, UNUSED)
        model = ScoreBPE(tokens.vocab, np.zeros(len(tokens.vocab)), unk, _kinds(tokens.vocab, kinds), "float64", merges)
        model.compiled(tokens.made if len(merges) == len(tokens.merges) else None)  # it is needed anyway
    elif by_bytes:
        model = BPE(without(tokens.vocab, gone), merges, "merges", ignore_merges, end_of_word=suffix)
    else:
        vocab = without(tokens.vocab, gone)
        model = BPE(vocab, merges, "merges", ignore_merges, "character", suffix, unk, prefix, fuse_unk, byte_fallback)
    return Read(model, tokens, added, unmatchable)


class Units(NamedTuple):
    """What pieces of a BPE start as."""

    by_bytes: bool
    prefix: bytes
    suffix: bytes
    unk: int | None
    byte_fallback: bool

    def has(self, piece: bytes, id: int) -> bool:
        """Whether a piece may start as this entry."""
        if len(piece) == 1 or id == self.unk or (self.byte_fallback and piece.decode(errors="replace") in BYTES):
            return True
        inner = piece.removesuffix(self.suffix)
        spelled = {piece, inner, piece.removeprefix(self.prefix), inner.removeprefix(self.prefix)}
        return any(len(part if self.by_bytes else part.decode(errors="replace")) == 1 for part in spelled)


def _gone(
    node: Node, tokens: Tokens, added: dict[str, ExtraToken], units: Units, ignore_merges: bool
) -> tuple[list[int], set[int]]:
    """The places of the entries that leave the model, being added tokens; and the ids of those that are special."""
    gone: list[int] = []
    specials: set[int] = set()
    for index, extra in enumerate(added.values()):
        at = tokens.entry(extra.content)
        if at is None:
            continue
        piece = tokens.vocab.pieces[at]
        if extra.content.encode() != piece and (units.has(piece, extra.id) or tokens.merged[at] or ignore_merges):
            problem = f"would have the id of the bytes {piece!r}, which the model spells the same way"
            raise node.child(index, None).error(f"{shown(extra.content)} {problem}")
        if units.has(piece, extra.id):
            continue
        if extra.kind == "special":
            specials.add(extra.id)
        elif ignore_merges or tokens.merged[at]:
            continue
        gone.append(at)
    return gone, specials


def _tell_of_words(specials: Iterable[ExtraToken], marker: str, stages: Sequence[Stage], tell: Tell) -> None:
    """Tells of special tokens that tokenizers gives also for text that they are not taken from."""
    for token in specials:
        is_cut = SplitPunctuation() in stages and list(split_punctuation(token.content)) != [token.content]
        if not is_cut and comes_to_the_model(token, token.content.encode(), marker, stages):
            tell(f"text that {shown(token.content)} is not taken from may become it in tokenizers; here it cannot")


def _without_specials(tokens: Tokens, specials: set[int], prefix: str) -> Any:
    """The merges but for those that join or make special tokens."""
    if not any(tokens.merged[tokens.vocab.ids.searchsorted(np.uint32(id))] for id in specials):
        return tokens.merges
    start, pieces = len(prefix.encode()), {tokens.vocab.piece_of(id) for id in specials}
    keep = []
    for left, right in tokens.merges.tolist():
        first, second = tokens.vocab.piece_of(left) or b"", tokens.vocab.piece_of(right) or b""
        keep.append(not {first, second, first + second[start:]} & pieces)
    return tokens.merges[np.array(keep)]


def _tell_of_dropout(node: Node, tell: Tell) -> None:
    dropout = node.value
    if dropout is None:
        return
    if type(dropout) not in (int, float) or not 0 <= dropout <= 1:
        raise node.expected("a number from 0 to 1")
    if dropout:
        tell(f"the field 'model.dropout' is left out: `encode` draws nothing; call `sample` with dropout={dropout}")


def _read_tokens(node: Node, may_be_bytes: bool, prefix: str, suffix: str) -> Tokens:
    """Tokens that the core did not read."""
    ids = read_vocab(node["vocab"])
    # Of a pair that stands there twice, the last counts.
    pairs = list(dict.fromkeys(reversed(list(read_merges(node["merges"], ids, prefix)))))[::-1]
    merged = {token for left, right in pairs for token in (left, right)}
    by_bytes = (
        may_be_bytes and _has_bytes(ids.get, suffix) and all(spelled_bytes(token) is not None for token in merged)
    )
    return Tokens.of(ids, pairs, not by_bytes, prefix)


def _has_bytes(find: Callable[[str], int | None], suffix: str) -> bool:
    """Whether there is a token for each byte that text may have, and one that ends a word."""
    needed = [to_alphabet(bytes([byte])) for byte in range(256) if byte not in NEVER_IN_UTF8]
    return all(find(token + end) is not None for token in needed for end in {"", suffix})


def _kinds(vocab: Vocab, kinds: dict[int | None, int]) -> Any:
    made = np.full(len(vocab), NORMAL, dtype=np.uint8)
    for id, kind in kinds.items():
        made[vocab.ids.searchsorted(np.uint32(id or 0))] = kind
    return made


def _affix(node: Node, name: str) -> str:
    affix = node.get(name)
    return "" if affix.value is None else affix.text()


def _read_unk(node: Node, tokens: AnyTokens) -> int | None:
    """The id of the unknown token; None where there is none, so that what is unknown is dropped."""
    if node.value is None:
        return None
    id = tokens.id_of(node.text())
    if id is None:
        raise node.error(f"{shown(node.value)} is not a token of model.vocab")
    return id


# ======================== models without merges ========================


def _read_word_piece(root: Node, stages: Sequence[Stage], tell: Tell) -> Read:
    node = root["model"]
    words, added, unk, vocab = _read_words(root, stages, tell)
    prefix = node.get("continuing_subword_prefix", "##").text()
    most = node.get("max_input_chars_per_word", 100).number(0, 2**63 - 1)
    return Read(WordPiece(vocab, unk, prefix, most), words, added, [])


def _read_word_level(root: Node, stages: Sequence[Stage], tell: Tell) -> Read:
    words, added, unk, vocab = _read_words(root, stages, tell)
    return Read(WordLevel(vocab, unk), words, added, [])


def _read_words(root: Node, stages: Sequence[Stage], tell: Tell) -> tuple[Words, dict[str, ExtraToken], int, Vocab]:
    words = Words(read_vocab(root["model"]["vocab"]))
    added = read_added_tokens(root.get("added_tokens", []), words, tell)
    unk = _read_unk(root["model"]["unk_token"], words)
    if unk is None:
        raise root["model"]["unk_token"].error("without one, tokenizers cannot encode unknown words; name a token")
    gone = {token.content for token in added.values() if token.kind == "special" and token.id != unk}
    _tell_of_words((added[name] for name in sorted(gone & set(words.ids))), "", stages, tell)
    vocab = Vocab.of((token.encode(), id) for token, id in words.ids.items() if token not in gone)
    return words, added, unk, vocab


def _read_unigram(root: Node, stages: Sequence[Stage], tell: Tell) -> Read:
    node = root["model"]
    rows = list(_read_scores(node["vocab"]))
    words = Words({token: id for token, id, _ in rows})
    added = read_added_tokens(root.get("added_tokens", []), words, tell)
    unk = node.get("unk_id")
    if unk.value is None:
        raise unk.error("without one, text with other characters cannot be encoded; give the id of a token for them")
    if unk.number(0, MAX_ID) not in words.tokens:
        raise unk.error(f"no token has the id {unk.value}")
    falls_back = node.get("byte_fallback", False)
    kinds: dict[int | None, int] = {unk.value: UNKNOWN}
    if falls_back.value is not None and falls_back.flag():
        lacking = sorted(token for token in BYTES if token not in words.ids)
        if lacking:
            raise falls_back.error(f"{lacking[0]!r} is no entry, and {len(lacking) - 1} other bytes")
        kinds |= {words.ids[token]: BYTE for token in BYTES}
    for token in added.values():
        if token.kind == "special" and token.content in words.ids:
            kinds.setdefault(token.id, UNUSED)
    vocab = Vocab.of((token.encode(), id) for token, id, _ in rows)
    scores = np.array([score for _, _, score in rows], dtype=np.float64)
    return Read(Unigram(vocab, scores, unk.value, _kinds(vocab, kinds), "float64"), words, added, [])


def _read_scores(vocab: Node) -> Iterator[tuple[str, int, float]]:
    seen: set[str] = set()
    for id, row in enumerate(vocab.items()):
        if not isinstance(row.value, list) or len(row.value) != 2:
            raise row.expected("[token, score]")
        token, score = row.child(0, row.value[0]).text(), row.value[1]
        if not isinstance(score, (int, float)) or isinstance(score, bool) or not np.isfinite(score):
            raise row.child(1, score).expected("a finite number")
        if not token or token in seen:
            raise row.error(f"the token {shown(token)} is empty, or stands there twice")
        seen.add(token)
        yield token, id, as_read(float(score))


def as_read(score: float) -> float:
    """The number that tokenizers takes a score for: its JSON reader rounds twice, so the last bit may be another.

    That decides between segmentations whose scores are nearly the same.
    """
    digits, _, exponent = repr(abs(score)).partition("e")
    whole, _, fraction = digits.partition(".")
    number, power = float(int(whole + fraction)), int(exponent or 0) - len(fraction)
    size = number * 10.0**power if power >= 0 else number / 10.0**-power
    return -size if score < 0 else size


_READ: dict[Any, Callable[[Node, Sequence[Stage], Tell], Read]] = {
    "WordPiece": _read_word_piece,
    "WordLevel": _read_word_level,
    "Unigram": _read_unigram,
}
