"""Two tokenizers, part by part: where they are not the same, each with a shortest text on which that shows.

A text is looked for with what is only different in this one respect where that can be made (the first tokenizer with a
stage of the second, say), then cut down as far as the two still differ on it; what it is said to give is what the two
tokenizers give.
"""

from __future__ import annotations

import difflib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any, Literal, NamedTuple

from .errors import SubwordError
from .explain import views
from .formats.probes import probe_texts
from .models import BPE, ScoreBPE, Unigram
from .patterns import PATTERNS
from .spec import Decode, ExtraToken
from .stages import (
    Digits,
    MatchTokens,
    Split,
    SplitAt,
    SplitLength,
    SplitPunctuation,
    SplitRegex,
    SplitScripts,
)
from .tokenizer import Tokenizer

MOST = 10
"""So many differences of a part are described, if not told otherwise."""

MOST_CHARACTERS = 100_000
"""A word of more characters is not tried."""

TRIES = 4000
"""So many texts are tried for one difference."""


class Shown(NamedTuple):
    """A text on which a difference shows.

    Attributes:
        text: the text.
        way: how it was encoded, as arguments of `encode`; with `PAIR`, as both texts of a pair, and `TYPES` are the
            type ids of that; "decode" where `one` and `other` are what ids of it decode to.
        one, other: what the two tokenizers give.
    """

    text: bytes
    way: str
    one: list[int] | bytes
    other: list[int] | bytes


class Item(NamedTuple):
    """A difference: of what, and what it is in each of the two; None where one has no such thing."""

    what: str
    one: str | None
    other: str | None
    shown: Shown | None = None


def _item(what: str, values: Iterable[str | None], shown: Shown | None = None) -> Item:
    one, other = values
    return Item(what, one, other, shown)


@dataclass(frozen=True)
class Part:
    """What differs in one part of a tokenizer: how many things, and the first of them."""

    name: str
    count: int
    items: tuple[Item, ...]

    def as_data(self) -> dict[str, Any]:
        """The same as data that JSON can hold."""
        return {"part": self.name, "count": self.count, "items": [_item_data(item) for item in self.items]}


def find(one: Tokenizer, other: Tokenizer, most: int | None = MOST) -> list[Part]:
    """Where two tokenizers are not the same; nothing if they are.

    Compared: the model and its settings; the bytes of every id; merges, scores; extra tokens with their flags; each
    stage; the template; how ids decode; roles, lengths of batches and chat templates. A merge list and ranks that are
    proved to come to the same are the same.

    Args:
        most: so many differences of each part are described; None for all. They are counted all the same.
    """
    pair = _Pair(one, other, most)
    makers = (_model, _ids, _merges, _scores, _extra, _stages, _template, _decoding, _roles, _padded, _chat)
    parts = [part for make in makers for part in make(pair)]
    return [part for part in parts if part.count]


class _Pair:
    """The two tokenizers, and what several parts want to know of them."""

    def __init__(self, one: Tokenizer, other: Tokenizer, most: int | None) -> None:
        self.one, self.other, self.most = one, other, most
        self.specs = one.spec, other.spec
        self.same_kind = type(one.spec.model) is type(other.spec.model)
        self._probes: list[bytes] | None = None

    def few(self, items: Iterable[Any]) -> list[Any]:
        return list(islice(items, self.most))

    @property
    def probes(self) -> list[bytes]:
        if self._probes is None:
            texts = {*probe_texts(self.one.spec), *probe_texts(self.other.spec)}
            self._probes = sorted(texts, key=lambda text: (_oddness(text), len(text), text))
        return self._probes


# ======================== texts ========================

_WAYS: dict[str, dict[str, Any]] = {
    "ordinary": {"disallowed_special": ()},
    'allowed_special="all"': {"allowed_special": "all"},
    "add_special_tokens=True": {"allowed_special": "all", "add_special_tokens": True},
}

ORDINARY, ALLOWED, ADDED = _WAYS
PAIR, TYPES = "as both texts of a pair", "as both texts of a pair, as type ids,"


def _given(tok: Tokenizer, text: bytes, way: str) -> list[int] | None:
    try:
        return given(tok, text, way)
    except SubwordError:
        return None  # such as bytes that the vocabulary lacks


def given(tok: Tokenizer, text: bytes, way: str) -> list[int]:
    """What a tokenizer gives for a text in one of the ways of `Shown`, but for "decode"."""
    if way in _WAYS:
        return tok.encode(text, **_WAYS[way])
    whole: dict[str, Any] = {"max_length": None, "length": None, "pad_to_multiple_of": 1, **_WAYS[ALLOWED]}
    padded = tok.encode_padded([text], [text], **whole)
    return list(map(int, (padded.type_ids if way == TYPES else padded.ids)[0]))


def _oddness(data: bytes) -> int:
    """0 for text that people can read, 1 for other text, 2 for bytes that are none."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return 2
    return int(not text.isprintable())


def _by_length(text: bytes) -> tuple[int, bytes]:
    return len(text), text


def _shown(pair: _Pair, text: bytes, way: str) -> Shown | None:
    """A text with what the two give, if that is not the same."""
    one, other = (_given(tok, text, way) for tok in (pair.one, pair.other))
    return Shown(text, way, one or [], other or []) if one != other else None


def _search(
    pair: _Pair, texts: Iterable[bytes], way: str = ORDINARY, apart: Callable[[bytes], bool] = lambda text: True
) -> Shown | None:
    """A short text on which the two differ, and on which `apart` says that they differ in the respect asked about."""

    def differs(text: bytes) -> bool:
        return apart(text) and _given(pair.one, text, way) != _given(pair.other, text, way)

    found = next((text for text in islice(texts, TRIES) if differs(text)), None)
    return None if found is None else _shown(pair, shortest(found, differs), way)


def shortest(text: bytes, differs: Callable[[bytes], bool]) -> bytes:
    """`text` without all characters that can be left out, one stretch after the other, so that `differs` still holds.

    >>> shortest(b"one two three", lambda text: b"t" in text and b"h" in text)
    b'th'
    """
    units = [unit.encode("utf-8", "surrogateescape") for unit in text.decode("utf-8", "surrogateescape")]
    size = len(units)
    while size:
        at = 0
        while at < len(units):
            rest = units[:at] + units[at + size :]
            if differs(b"".join(rest)):
                units = rest
            else:
                at += size
        size = len(units) if size > len(units) else size // 2
    return b"".join(units)


def _changed(pair: _Pair, **fields: Any) -> Tokenizer | None:
    """The first tokenizer with fields of its spec changed, if there is such a tokenizer."""
    try:
        return Tokenizer(pair.one.spec.replace(**fields))
    except SubwordError:
        return None


def _apart(one: Tokenizer, other: Tokenizer | None, way: str) -> Callable[[bytes], bool]:
    if other is None:
        return lambda text: False
    return lambda text: _given(one, text, way) != _given(other, text, way)


# ======================== model, ids ========================


def _model(pair: _Pair) -> Iterator[Part]:
    mine, theirs = (
        {"type": type(spec.model).__name__, **spec.model.settings(), "n_vocab": tok.n_vocab}
        for spec, tok in zip(pair.specs, (pair.one, pair.other), strict=True)
    )
    names = [name for name in {**mine, **theirs} if mine.get(name) != theirs.get(name)]
    if pair.same_kind and {"priority", "ignore_merges"} & set(names) and _same_by_other_means(pair):
        names = [name for name in names if name not in ("priority", "ignore_merges")]
    if "type" in names:
        names = ["type", *(name for name in names if name == "n_vocab")]
    items = [Item(name, _word(mine, name), _word(theirs, name), _setting(pair, name)) for name in names]
    yield Part("model", len(items), tuple(items))


def _setting(pair: _Pair, name: str) -> Shown | None:
    """A text on which another value of one setting of the model shows, if there is such a text."""
    models = [spec.model for spec in pair.specs]
    if not pair.same_kind or not hasattr(models[1], name):
        return None
    values = [getattr(model, name) for model in models]
    for tok, value in ((pair.one, values[1]), (pair.other, values[0])):
        try:
            changed = Tokenizer(tok.spec.replace(model=replace(tok.spec.model, **{name: value})))
        except SubwordError:
            continue  # the setting goes with others, or with other entries
        texts = (*_entries_apart(tok, changed), *_texts_for_setting(values), *pair.probes)
        found = _search(pair, texts, apart=_apart(tok, changed, ORDINARY))
        if found is not None:
            return found
    return None


def _texts_for_setting(values: Sequence[Any]) -> Iterator[bytes]:
    """Texts that a setting may be about: unknown characters, alone and side by side, and words of a certain length."""
    chars = ("ñ", "語", "☃", "😀", "\x01", "\ue000", "\U000f0000")  # of which most vocabularies lack one
    yield from (form.replace("{}", char).encode() for char in chars for form in ("{}", "{}{}", "a{}", "{}a", "a{}{}a"))
    for value in values:
        if type(value) is int and 0 < value <= MOST_CHARACTERS:
            yield from (b"a" * value, b"a" * (value + 1))


def _entries_apart(one: Tokenizer, other: Tokenizer) -> list[bytes]:
    """Entries that two do not encode alike, as text: a few, the shortest first."""
    texts = sorted({_spelled(one, id) for _, id in one.spec.model.vocab.items()}, key=_by_length)
    rows = (tok.encode_batch(texts, **_WAYS[ORDINARY]) for tok in (one, other))
    try:
        apart = (text for text, mine, theirs in zip(texts, *rows, strict=True) if mine != theirs)
        return list(islice(apart, MOST))
    except SubwordError:
        return []  # such as a byte that is no entry


def _word(values: Mapping[str, Any], name: str) -> str | None:
    return str(values[name]) if name in values else None


def _ids(pair: _Pair) -> Iterator[Part]:
    mine, theirs = (_bytes_of_ids(tok, pair.same_kind) for tok in (pair.one, pair.other))
    if mine == theirs:
        return
    differing = sorted(id for id in mine.keys() | theirs.keys() if mine.get(id) != theirs.get(id))
    places = {data: id for id, data in theirs.items()}
    items = []
    for id in pair.few(differing):
        a, b = mine.get(id), theirs.get(id)
        what = f"id {id}"
        if a is not None and b is not None:
            now = places.get(a)
            if now is not None and mine.get(now) == b:
                what += f", swapped with {now}"
            elif now is not None:
                what += f", which has become {now}"
        items.append(Item(what, _text(a), _text(b), _text_with(pair, id, a, b)))
    yield Part("ids", len(differing), tuple(items))


def _bytes_of_ids(tok: Tokenizer, as_stored: bool) -> dict[int, bytes]:
    """The bytes of each id: as the vocabulary stores them; between models of different kinds, what they decode to."""
    extra = {token.id: token.content.encode() for token in tok.spec.extra}
    entries = tok.spec.model.vocab.items()
    if as_stored:
        return {id: piece for piece, id in entries} | extra
    return {id: tok.token_bytes(id) for _, id in entries} | extra


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "surrogateescape")


def _text_with(pair: _Pair, id: int, *pieces: bytes | None) -> Shown | None:
    """A text to which one of the two gives an id, and the other something else."""
    extra = any(token.id == id for spec in pair.specs for token in spec.extra)
    for piece in pieces:
        if piece is None:
            continue
        spelled = {piece, *(_spelled(tok, id) for tok in (pair.one, pair.other))}
        for text in sorted(spelled, key=_by_length):
            for way in (ALLOWED, ORDINARY) if extra else (ORDINARY,):
                shown = _shown(pair, text, way)
                if shown is not None and (id in shown.one) != (id in shown.other):
                    return shown
    return None


def _spelled(tok: Tokenizer, id: int) -> bytes:
    try:
        return tok.token_bytes(id)
    except SubwordError:
        return b""


# ======================== merges and scores ========================


def _same_by_other_means(pair: _Pair) -> bool:
    """Whether one goes by ranks, the other by a merge list, or one takes entries as they stand, and all the same."""
    models = [spec.model for spec in pair.specs]
    if not all(isinstance(model, BPE) and model.unit == "byte" and not model.end_of_word for model in models):
        return False
    rules = [_rules(tok) for tok in (pair.one, pair.other)]
    if rules[0] != rules[1]:
        return False
    # Each entry of more than a byte is what its bytes encode to, in both: then neither setting changes anything.
    made = len(set(map(b"".join, rules[0])))
    return all(
        made == int((tok.last_merges()[:, 0] >= 0).sum()) == _long_entries(tok) for tok in (pair.one, pair.other)
    )


def _long_entries(tok: Tokenizer) -> int:
    return sum(len(piece) > 1 for piece in tok.spec.model.vocab.pieces)


def _rules(tok: Tokenizer) -> list[tuple[bytes, bytes]]:
    """The pairs that merge, the first ones first."""
    model = tok.spec.model
    if isinstance(model, BPE):
        rows = views.merges(tok)
        return [(row.left, row.right) for row in rows if row.left is not None and row.right is not None]
    if isinstance(model, ScoreBPE):
        piece_of = {id: piece for piece, id in model.vocab.items()}
        return [(piece_of[left], piece_of[right]) for left, right in model.merges.tolist()]
    return []


def _merges(pair: _Pair) -> Iterator[Part]:
    by_rank = [isinstance(spec.model, BPE) and spec.model.priority == "rank" for spec in pair.specs]
    if not pair.same_kind or all(by_rank):  # ranks are ids, and have been compared
        return
    mine, theirs = _rules(pair.one), _rules(pair.other)
    if mine == theirs:
        return
    if not mine or not theirs:
        sizes = (f"{len(rules):,} pairs" if rules else None for rules in (mine, theirs))
        yield Part("merges", 1, (_item("merge list", sizes),))
        return
    before, after = ({rule: at for at, rule in enumerate(rules)} for rules in (mine, theirs))
    moved = _moved([after[rule] for rule in mine if rule in after])
    common = [rule for rule in mine if rule in after]
    rows = [(rule, before.get(rule), after.get(rule)) for rule in (common[at] for at in moved)]
    rows += [(rule, at, None) for rule, at in before.items() if rule not in after]
    rows += [(rule, None, at) for rule, at in after.items() if rule not in before]
    rows.sort(key=lambda row: min(at for at in row[1:] if at is not None))
    like_one = pair.other if pair.specs[0].stages == pair.specs[1].stages else _with_stages(pair)
    items = []
    for (left, right), was, is_ in pair.few(rows):
        words = "merge " + " + ".join(repr(_text(each)) for each in (left, right))
        places = [None if at is None else f"number {at:,}" for at in (was, is_)]
        texts = _contested(left, right, (mine, theirs), was, is_)
        items.append(_item(words, places, _search(pair, texts, apart=_cuts_apart(pair.one, like_one))))
    yield Part("merges", len(rows), tuple(items))


def _with_stages(pair: _Pair) -> Tokenizer | None:
    """The second tokenizer with the stages of the first: what is left is the model's doing."""
    try:
        return Tokenizer(pair.other.spec.replace(stages=pair.one.spec.stages))
    except SubwordError:
        return None


def _cuts_apart(one: Tokenizer, other: Tokenizer | None) -> Callable[[bytes], bool]:
    """Whether two cut a text into tokens at different places, whatever the ids of these are."""
    if other is None:
        return lambda text: False

    def cut(tok: Tokenizer, text: bytes) -> Any:
        try:
            return tok.tokenize(text, disallowed_special=()).byte_spans.tolist()
        except SubwordError:
            return None

    return lambda text: cut(one, text) != cut(other, text)


def _moved(places: Sequence[int]) -> list[int]:
    """Which numbers to take out, at the least, so that the rest rises: by their places in the list."""
    ends: list[int] = []  # ends[n]: the smallest number that ends a rising row of n + 1
    length = []
    for number in places:
        at = bisect_left(ends, number)
        ends[at : at + 1] = [number]
        length.append(at)
    wanted, kept = len(ends) - 1, set()
    above = None
    for at in range(len(places) - 1, -1, -1):
        if length[at] == wanted and (above is None or places[at] < above):
            kept.add(at)
            above, wanted = places[at], wanted - 1
    return [at for at in range(len(places)) if at not in kept]


def _contested(
    left: bytes, right: bytes, rules: tuple[Sequence[tuple[bytes, bytes]], ...], *places: int | None
) -> Iterator[bytes]:
    """Texts in which a merge competes with others that come between its two places."""
    made = left + right
    yield made
    first = min(at for at in places if at is not None)
    last = max(at if at is not None else len(rules[0]) for at in places)
    for some in rules:
        between = some[first : last + 1]
        yield from (a + made for a, b in between if b == left)
        yield from (made + b for a, b in between if a == right)
        yield from (a + b + right for a, b in between if b.endswith(left) or (a + b).endswith(left))
        yield from (left + a + b for a, b in between if a.startswith(right) or (a + b).startswith(right))
    for some in rules:
        yield from (a + b for a, b in some if made in a + b)


def _scores(pair: _Pair) -> Iterator[Part]:
    models = [spec.model for spec in pair.specs]
    if not (pair.same_kind and all(isinstance(model, (Unigram, ScoreBPE)) for model in models)):
        return
    if any(len(model.merges) for model in models if isinstance(model, ScoreBPE)):
        return  # with merges, scores do not count
    tables = []
    for model in models:
        assert isinstance(model, (Unigram, ScoreBPE))
        rows = zip(model.vocab.pieces, model.scores.tolist(), model.kinds.tolist(), strict=True)
        tables.append({piece: (score, _KINDS[kind]) for piece, score, kind in rows})
    mine, theirs = tables
    differing = [piece for piece in mine if piece in theirs and mine[piece] != theirs[piece]]
    items = []
    for piece in pair.few(differing):
        own = pair.one.token_bytes(pair.one.token_id(piece))
        longer = (other for other in mine if piece in other)
        texts = (text for base in (own, *longer) for text in _around(base.replace("▁".encode(), b" ")))
        words = (f"{table[piece][0]:g}, {table[piece][1]}" for table in tables)
        items.append(_item(f"score of {_text(piece)!r}", words, _search(pair, texts)))
    yield Part("scores", len(differing), tuple(items))


_KINDS = ("normal", "user-defined", "unused", "byte", "unknown")


def _around(text: bytes) -> tuple[bytes, ...]:
    return (text, b" " + text, text + b"a", b"a" + text, text + text)


# ======================== extra tokens ========================


def _extra(pair: _Pair) -> Iterator[Part]:
    mine, theirs = ({token.content: token for token in spec.extra} for spec in pair.specs)
    contents = [content for content in {**mine, **theirs} if mine.get(content) != theirs.get(content)]
    items = []
    for content in pair.few(contents):
        a, b = mine.get(content), theirs.get(content)
        item = Item(f"token {content!r}", _flags(a, b), _flags(b, a))
        items.append(item._replace(shown=_taken_apart(pair, content, a, b)))
    yield Part("extra tokens", len(contents), tuple(items))


def _taken_apart(pair: _Pair, content: str, one: ExtraToken | None, other: ExtraToken | None) -> Shown | None:
    """A text of which the two do not take a token alike."""
    if one is None or other is None:

        def apart(way: str) -> Callable[[bytes], bool]:
            return lambda text: _takes(pair.one, text, way, one) != _takes(pair.other, text, way, other)
    else:
        extra = [other if token.content == content else token for token in pair.one.spec.extra]
        stages = pair.other.spec.stages if one.normalized != other.normalized else pair.one.spec.stages
        changed = _changed(pair, extra=extra, stages=stages)

        def apart(way: str) -> Callable[[bytes], bool]:
            return _apart(pair.one, changed, way)

    shown = (_search(pair, _with_token(content), way, apart(way)) for way in (ALLOWED, ORDINARY))
    return next(filter(None, shown), None)


def _takes(tok: Tokenizer, text: bytes, way: str, token: ExtraToken | None) -> bool:
    return token is not None and token.id in (_given(tok, text, way) or ())


def _flags(token: ExtraToken | None, other: ExtraToken | None) -> str | None:
    """What a token is, as far as the other is not the same."""
    if token is None:
        return None
    own, theirs = asdict(token), asdict(other) if other is not None else {}
    names = [name for name, value in own.items() if theirs.get(name) != value]
    if other is None:
        names = [name for name in names if name in ("id", "kind") or own[name] is True]
    return ", ".join(f"{name} {own[name]}" for name in names if name != "content")


def _with_token(content: str) -> Iterator[bytes]:
    around = ("{}", "a{}", "{}a", "a{}a", " {}", "{} ", "a {}", "{} a", "a {} a", "1{}1", "_{}_", "\n{}\n")
    for spelled in dict.fromkeys((content, content.upper(), content.lower(), content.swapcase())):
        yield from (form.replace("{}", spelled).encode() for form in around)


# ======================== stages ========================

_CUTTING = (Digits, Split, SplitAt, SplitLength, SplitPunctuation, SplitRegex, SplitScripts)


def _stages(pair: _Pair) -> Iterator[Part]:
    mine, theirs = (spec.stages for spec in pair.specs)
    found: dict[str, list[Item]] = {"normalization": [], "split rules": [], "matching of extra tokens": []}
    for first, last, start, end in _blocks(list(map(repr, mine)), list(map(repr, theirs))):
        for at in range(max(last - first, end - start)):
            place = min(first + at, last)
            gone, new = mine[first + at : last][:1], theirs[start + at : end][:1]
            changes = [(gone, new)]
            if gone and new and _part_of(gone[0]) != _part_of(new[0]):
                changes = [(gone, ()), ((), new)]
            for before, after in changes:
                stages = (*mine[:place], *after, *mine[place + len(before) :])
                found[_part_of((before or after)[0])].append(_stage_item(pair, before, after, stages))
    for name, items in found.items():
        yield Part(name, len(items), tuple(pair.few(items)))


def _part_of(stage: Any) -> str:
    if isinstance(stage, MatchTokens):
        return "matching of extra tokens"
    return "split rules" if isinstance(stage, _CUTTING) else "normalization"


def _blocks(mine: list[str], theirs: list[str]) -> Iterator[tuple[int, int, int, int]]:
    for kind, first, last, start, end in difflib.SequenceMatcher(None, mine, theirs, autojunk=False).get_opcodes():
        if kind != "equal":
            yield first, last, start, end


def _stage_item(pair: _Pair, gone: Sequence[Any], new: Sequence[Any], stages: tuple[Any, ...]) -> Item:
    changed = _changed(pair, stages=stages)
    expressions = [regex for stage in (*gone, *new) for regex in _expressions(stage)]
    texts = [*_texts_for(expressions), *pair.probes]
    shown = None
    for way in (ORDINARY, ALLOWED) if changed is not None else ():
        shown = shown or _search(pair, texts, way, _apart(pair.one, changed, way))
    what = " and ".join(dict.fromkeys(type(stage).__name__ for stage in (*gone, *new)))
    if len(expressions) == 2 and expressions[0] != expressions[1]:
        what += f", from character {_parting(*expressions) + 1} of the expression on"
    return _item(what, (_stage_text(a, b) for a, b in ((gone, new), (new, gone))), shown)


def _stage_text(stages: Sequence[Any], others: Sequence[Any]) -> str | None:
    """A stage, as far as the other is not the same."""
    if not stages:
        return None
    (stage,) = stages
    rows = asdict(stage)
    if others and type(others[0]) is type(stage):
        theirs = asdict(others[0])
        rows = {name: value for name, value in rows.items() if value != theirs[name]}
    words = [f"{name} {value!r}" for name, value in rows.items()]
    if isinstance(stage, Split):
        words += _expressions(stage)
    return ", ".join(words) or "there"


def _expressions(stage: Any) -> list[str]:
    if isinstance(stage, SplitRegex):
        return [stage.regex]
    if isinstance(stage, Split):
        regex = PATTERNS[stage.pattern].regex
        return [regex] if isinstance(regex, str) else list(regex)
    return []


def _texts_for(expressions: Sequence[str]) -> Iterator[bytes]:
    """Texts with the characters at which two expressions part, and those beside them."""
    if len(expressions) != 2:
        return
    one, other = expressions
    start, back = _parting(one, other), _parting(one[::-1], other[::-1])
    near = "".join(regex[max(start - 4, 0) : len(regex) - back + 4] for regex in expressions)
    codes = {ord(char) + step for char in near for step in (-1, 0, 1)}
    chars = [chr(code) for code in sorted(codes) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000]
    for char in chars:
        for form in (
            "{}",
            "a{}",
            "{}a",
            "a{}a",
            " {}a",
            "{0}{0}",
            "{0}{0}{0}{0}",
            "1{}",
            "{}1",
            "a {} b",
            "{}\n",
            "'{}",
        ):
            yield form.replace("{0}", char).replace("{}", char).encode()


def _parting(one: str, other: str) -> int:
    """How many characters two texts start with alike."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


# ======================== template, decoding, roles, chat ========================


def _template(pair: _Pair) -> Iterator[Part]:
    mine, theirs = (spec.template for spec in pair.specs)
    items = []
    names: tuple[Literal["single"], Literal["pair"]] = ("single", "pair")
    for name in names:
        rows = [(_items(tok, name), template) for tok, template in ((pair.one, mine), (pair.other, theirs))]
        if rows[0][0] != rows[1][0] or getattr(mine, name) != getattr(theirs, name):
            ways = (ADDED,) if name == "single" else (PAIR, TYPES)
            shown = next(filter(None, (_search(pair, [b"", b"a"], way) for way in ways)), None)
            what = "around one text" if name == "single" else "around two texts"
            items.append(Item(what, rows[0][0], rows[1][0], shown))
    yield Part("template", len(items), tuple(items))


def _items(tok: Tokenizer, name: Literal["single", "pair"]) -> str:
    items = getattr(tok.spec.template, name)
    types = tok.spec.template.types_of(getattr(tok.spec.template, name))
    words = (item if isinstance(item, str) else f"{tok.token_piece(item)} ({item})" for item in items)
    return " ".join(f"{word}:{type_id}" for word, type_id in zip(words, types, strict=True))


def _decoding(pair: _Pair) -> Iterator[Part]:
    mine, theirs = (spec.decode for spec in pair.specs)
    markers = [isinstance(spec.model, BPE) and bool(spec.model.end_of_word) for spec in pair.specs]
    if mine == theirs or (all(isinstance(each, Decode) for each in (mine, theirs)) and not any(markers)):
        return  # without a marker at the ends of words there is nothing that `Decode` could do
    plain = [type(each).__name__ + "".join(f", {k} {v!r}" for k, v in asdict(each).items()) for each in (mine, theirs)]
    changed = _changed(pair, decode=theirs)

    def decodes_apart(text: bytes) -> bool:
        ids = _given(pair.one, text, ORDINARY)
        return changed is not None and ids is not None and pair.one.decode_bytes(ids) != changed.decode_bytes(ids)

    found = next((text for text in pair.probes if decodes_apart(text)), None)
    shown = None
    if found is not None and changed is not None:
        text = shortest(found, decodes_apart)
        ids = _given(pair.one, text, ORDINARY) or []
        shown = Shown(text, "decode", pair.one.decode_bytes(ids), changed.decode_bytes(ids))
    yield Part("decoding", 1, (Item("how ids decode", plain[0], plain[1], shown),))


def _roles(pair: _Pair) -> Iterator[Part]:
    mine, theirs = (spec.roles for spec in pair.specs)
    names = [name for name in {**mine, **theirs} if mine.get(name) != theirs.get(name)]
    items = tuple(Item(name, _word(mine, name), _word(theirs, name)) for name in names)
    yield Part("roles", len(items), items)


def _padded(pair: _Pair) -> Iterator[Part]:
    mine, theirs = (spec.padded for spec in pair.specs)
    names = [name for name in {**mine, **theirs} if mine.get(name) != theirs.get(name)]
    yield Part("lengths of batches", len(names), tuple(Item(n, _word(mine, n), _word(theirs, n)) for n in names))


def _chat(pair: _Pair) -> Iterator[Part]:
    mine, theirs = (spec.chat for spec in pair.specs)
    items = []
    for name in {**mine, **theirs}:
        a, b = mine.get(name), theirs.get(name)
        if a is not None and b is not None and a != b:
            items.append(_first_lines(name, a.splitlines(), b.splitlines()))
        elif a != b:
            items.append(_item(f"template {name!r}", (f"{len(t):,} characters" if t else None for t in (a, b))))
    yield Part("chat templates", len(items), tuple(items))


def _first_lines(name: str, mine: list[str], theirs: list[str]) -> Item:
    """Where two chat templates first differ."""
    blocks = list(_blocks(mine, theirs))
    first, last, start, end = blocks[0] if blocks else (0, 0, 0, 0)
    more = f", and at {len(blocks) - 1} more places" if blocks[1:] else ""
    words = f"template {name!r}, line {first + 1}{more}" if blocks else f"template {name!r}, the ends of its lines"
    return _item(words, ("\n".join(part) or None for part in (mine[first:last], theirs[start:end])))


def _item_data(item: Item) -> dict[str, Any]:
    row: dict[str, Any] = {"what": item.what, "one": item.one, "other": item.other, "shown": None}
    if item.shown is not None:
        shown = item.shown
        values = [v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in (shown.one, shown.other)]
        text = shown.text.decode("utf-8", "replace")
        row["shown"] = {
            "text": text, "bytes": shown.text.hex(), "way": shown.way, "one": values[0], "other": values[1],
        }  # fmt: skip
    return row
