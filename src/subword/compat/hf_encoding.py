"""What `subword.compat.tokenizers` gives for a text: tokens with their places, and how HF tokenizers changes them.

A post-processor is the object that `tokenizer.json` has for it: a template of one kind or another, or one that takes
white space off offsets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from ..byte_alphabet import to_alphabet
from ..errors import FormatError, SubwordValueError

Span: TypeAlias = "tuple[int, int]"

LISTS = ("_ids", "_type_ids", "_tokens", "_words", "_offsets", "_special_tokens_mask", "_attention_mask")


class Encoding:
    """The tokens of a text or of a pair of texts. Changed in place by `pad`, `truncate` and `set_sequence_id`."""

    def __init__(self, rows: Iterable[tuple[int, str, int | None, Span]] = (), special: int = 0) -> None:
        listed = list(rows)
        self._ids = [id for id, _, _, _ in listed]
        self._tokens = [token for _, token, _, _ in listed]
        self._words = [word for _, _, word, _ in listed]
        self._offsets = [span for _, _, _, span in listed]
        self._type_ids = [0] * len(listed)
        self._special_tokens_mask = [special] * len(listed)
        self._attention_mask = [1] * len(listed)
        self._overflowing: list[Encoding] = []
        self._ranges: dict[int, range] = {}
        self._no_offsets = ""

    def __len__(self) -> int:
        return len(self._ids)

    def __repr__(self) -> str:
        names = "ids, type_ids, tokens, offsets, attention_mask, special_tokens_mask, overflowing"
        return f"Encoding(num_tokens={len(self)}, attributes=[{names}])"

    # ======================== what it holds ========================

    @property
    def ids(self) -> list[int]:
        """The ids."""
        return list(self._ids)

    @property
    def tokens(self) -> list[str]:
        """The tokens, as the vocabulary spells them."""
        return list(self._tokens)

    @property
    def offsets(self) -> list[Span]:
        """Start and end of each token in its text, in characters."""
        if self._no_offsets:
            raise SubwordValueError(self._no_offsets)
        return list(self._offsets)

    @property
    def type_ids(self) -> list[int]:
        """The type of each token."""
        return list(self._type_ids)

    @property
    def attention_mask(self) -> list[int]:
        """0 for padding, else 1."""
        return list(self._attention_mask)

    @property
    def special_tokens_mask(self) -> list[int]:
        """1 for what a template added, and for padding, else 0."""
        return list(self._special_tokens_mask)

    @property
    def word_ids(self) -> list[int | None]:
        """The piece of its text that each token is of."""
        return list(self._words)

    @property
    def words(self) -> list[int | None]:
        """As `word_ids`, an older name."""
        return self.word_ids

    @property
    def overflowing(self) -> list[Encoding]:
        """What truncation cut off, in windows."""
        return list(self._overflowing)

    @property
    def n_sequences(self) -> int:
        """How many texts it is of."""
        return len(self._ranges) or 1

    @property
    def sequence_ids(self) -> list[int | None]:
        """The text that each token is of."""
        ids: list[int | None] = [None] * len(self)
        for sequence in range(self.n_sequences):
            for at in self._range(sequence):
                ids[at] = sequence
        return ids

    # ======================== from one to another ========================

    def token_to_sequence(self, token_index: int) -> int | None:
        """The text that a token is of."""
        if not 0 <= token_index <= len(self):
            return None
        if not self._ranges:
            return 0
        return next((sequence for sequence, own in self._ranges.items() if token_index in own), None)

    def token_to_chars(self, token_index: int) -> Span | None:
        """Start and end of a token in its text."""
        if self.token_to_sequence(token_index) is None or token_index >= len(self):
            return None
        return self.offsets[token_index]

    def token_to_word(self, token_index: int) -> int | None:
        """The piece that a token is of."""
        if self.token_to_sequence(token_index) is None or token_index >= len(self):
            return None
        return self._words[token_index]

    def char_to_token(self, char_pos: int, sequence_index: int = 0) -> int | None:
        """The token at a character."""
        offsets = self.offsets
        return next((at for at in self._range(sequence_index) if offsets[at][0] <= char_pos < offsets[at][1]), None)

    def char_to_word(self, char_pos: int, sequence_index: int = 0) -> int | None:
        """The piece at a character."""
        token = self.char_to_token(char_pos, sequence_index)
        return None if token is None else self._words[token]

    def word_to_tokens(self, word_index: int, sequence_index: int = 0) -> Span | None:
        """First token of a piece, and the one behind its last."""
        found = []
        for at in self._range(sequence_index):
            word = self._words[at]
            if word is not None and word > word_index:
                break
            if word == word_index:
                found.append(at)
        return (found[0], found[-1] + 1) if found else None

    def word_to_chars(self, word_index: int, sequence_index: int = 0) -> Span | None:
        """Start and end of a piece in its text."""
        tokens = self.word_to_tokens(word_index, sequence_index)
        if tokens is None:
            return None
        return self.offsets[tokens[0]][0], self.offsets[tokens[1] - 1][1]

    def _range(self, sequence: int) -> range:
        return self._ranges.get(sequence, range(len(self)))

    # ======================== changing ========================

    def set_sequence_id(self, sequence_id: int) -> None:
        """Say that all of it is of one text of several. What was said before stays, as in tokenizers."""
        self._ranges[sequence_id] = range(len(self))

    def pad(
        self,
        length: int,
        direction: str = "right",
        pad_id: int = 0,
        pad_type_id: int = 0,
        pad_token: str = "[PAD]",
    ) -> None:
        """Fill up to a length, what is overflowing as well."""
        check_direction(direction)
        for other in self._overflowing:
            other.pad(length, direction, pad_id, pad_type_id, pad_token)
        missing = max(length - len(self), 0)
        fill: tuple[Any, ...] = (pad_id, pad_type_id, pad_token, None, (0, 0), 1, 0)
        for name, value in zip(LISTS, fill, strict=True):
            row, padding = getattr(self, name), [value] * missing
            setattr(self, name, padding + row if direction == "left" else row + padding)
        if direction == "left":
            self._ranges = {
                sequence: range(own.start + missing, own.stop + missing) for sequence, own in self._ranges.items()
            }

    def truncate(self, max_length: int, stride: int = 0, direction: str = "right") -> None:
        """Cut to a length; what is over goes to `overflowing`, in windows that share `stride` tokens."""
        check_direction(direction)
        size = len(self)
        if max_length >= size:
            return
        if max_length == 0:
            self._overflowing.append(self._part(0, size))
            self._take(Encoding())
            return
        if stride >= max_length:
            raise SubwordValueError(
                f"stride={stride} must be less than max_length={max_length}, of which the tokens of the template are "
                "taken off"
            )
        step = max_length - stride
        windows: list[Span] = []
        if direction == "right":
            for start in range(0, size, step):
                windows.append((start, min(start + max_length, size)))
                if windows[-1][1] == size:
                    break
        else:
            for stop in range(size, 0, -step):
                windows.append((max(stop - max_length, 0), stop))
                if windows[-1][0] == 0:
                    break
        first, *others = [self._part(start, stop) for start, stop in windows]
        self._take(first)
        self._overflowing = others

    def _part(self, start: int, stop: int) -> Encoding:
        part = Encoding()
        for name in LISTS:
            setattr(part, name, getattr(self, name)[start:stop])
        part._no_offsets = self._no_offsets
        return part

    def _take(self, other: Encoding) -> None:
        for name in LISTS:
            setattr(self, name, getattr(other, name))
        self._ranges = {}

    def copy(self) -> Encoding:
        """Another one with the same content."""
        made = self._part(0, len(self))
        made._ranges = dict(self._ranges)
        made._overflowing = [other.copy() for other in self._overflowing]
        return made

    @staticmethod
    def merge(encodings: Sequence[Encoding], growing_offsets: bool = True) -> Encoding:
        """One after the other; with `growing_offsets`, each one's offsets go on from those of the one before."""
        made = Encoding()
        for encoding in encodings:
            made._append(encoding, growing_offsets)
        return made

    def _append(self, other: Encoding, growing_offsets: bool) -> None:
        overflowing = []
        for mine, each in [
            *((mine, each) for mine in self._overflowing for each in (other, *other._overflowing)),
            *((self, each) for each in other._overflowing),
        ]:
            joined = mine.copy()
            joined._append(each, growing_offsets)
            overflowing.append(joined)
        shift = self._offsets[-1][1] if growing_offsets and self._offsets else 0
        size = len(self)
        for name in LISTS:
            row = getattr(other, name)
            if name == "_offsets" and shift:
                row = [(start + shift, end + shift) for start, end in row]
            setattr(self, name, getattr(self, name) + row)
        self._ranges |= {sequence: range(size + of.start, size + of.stop) for sequence, of in other._ranges.items()}
        self._overflowing = overflowing
        self._no_offsets = self._no_offsets or other._no_offsets


def check_direction(direction: str) -> None:
    if direction not in ("right", "left"):
        raise SubwordValueError(f"direction must be 'right' or 'left', not {direction!r}")


# ======================== post-processors ========================


def added_by(processor: Mapping[str, Any] | None, is_pair: bool) -> int:
    """How many tokens a post-processor adds."""
    if processor is None:
        return 0
    kind = processor["type"]
    if kind == "Sequence":
        return sum(added_by(step, is_pair) for step in processor["processors"])
    if kind in ("RobertaProcessing", "BertProcessing"):
        return (4 if kind == "RobertaProcessing" else 3) if is_pair else 2
    if kind == "TemplateProcessing":
        rows = processor["pair" if is_pair else "single"]
        names = [row["SpecialToken"]["id"] for row in rows if "SpecialToken" in row]
        return sum(len(processor["special_tokens"][name]["ids"]) for name in names)
    return 0


def processed(processor: Mapping[str, Any] | None, encodings: list[Encoding], add_special_tokens: bool) -> Encoding:
    """What a post-processor makes of the encodings of one text or two."""
    for sequence, encoding in enumerate(encodings):
        for each in (encoding, *encoding._overflowing):
            each._type_ids = [sequence] * len(each)
            # Without one, a text by itself, and windows of a pair, do not know of which text they are.
            if processor is not None or (each is encoding and len(encodings) > 1):
                each.set_sequence_id(sequence)
    return Encoding.merge(_steps(processor, encodings, add_special_tokens), growing_offsets=False)


def _steps(processor: Mapping[str, Any] | None, encodings: list[Encoding], add: bool) -> list[Encoding]:
    kind = None if processor is None else processor["type"]
    if processor is None or kind is None:
        return encodings
    if kind == "Sequence":
        for step in processor["processors"]:
            encodings = _steps(step, encodings, add)
        return encodings
    if kind == "ByteLevel" or kind == "RobertaProcessing":
        if processor.get("trim_offsets", True):
            _trim(encodings, processor.get("add_prefix_space", True))
        if kind == "ByteLevel":
            for sequence, encoding in enumerate(encodings):
                encoding.set_sequence_id(sequence)
            return encodings
        for encoding in encodings:  # RoBERTa has one type for all
            encoding._type_ids = [0] * len(encoding)
    if kind in ("RobertaProcessing", "BertProcessing"):
        return _between_ends(processor, encodings) if add else encodings
    if kind == "TemplateProcessing":
        return _template(processor, encodings, add)
    raise FormatError(f"the post-processor {kind!r} is not supported")


def _trim(encodings: Iterable[Encoding], add_prefix_space: bool) -> None:
    """Take the white space at the ends of tokens off their offsets, but for a space that was put in front."""
    for encoding in encodings:
        for at, (token, (start, end)) in enumerate(zip(encoding._tokens, encoding._offsets, strict=True)):
            left = len(token) - len(token.lstrip(_BLANKS))
            right = len(token) - len(token.rstrip(_BLANKS))
            if left and (at == 0 or start == 0) and add_prefix_space:
                left -= 1
            if left:
                start = min(start + left, end)
            if right and end >= right:
                end = max(end - right, start)
            encoding._offsets[at] = (start, end)
        _trim(encoding._overflowing, add_prefix_space)


_BLANKS = to_alphabet(b" ") + "".join(map(chr, (*range(9, 14), 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B))))
_BLANKS += "\u2028\u2029\u202f\u205f\u3000"


def _special(ids: Sequence[int], tokens: Sequence[str], type_id: int) -> Encoding:
    made = Encoding(((id, token, None, (0, 0)) for id, token in zip(ids, tokens, strict=True)), special=1)
    made._type_ids = [type_id] * len(made)
    return made


def _between_ends(processor: Mapping[str, Any], encodings: list[Encoding]) -> list[Encoding]:
    (sep, sep_id), (cls, cls_id) = processor["sep"], processor["cls"]
    is_roberta = processor["type"] == "RobertaProcessing"
    made = []
    for sequence, encoding in enumerate(encodings):
        type_id = 0 if is_roberta else sequence
        first = [_special([sep_id], [sep], type_id)] if sequence and is_roberta else []
        first = first if sequence else [_special([cls_id], [cls], 0)]
        around = []
        for each in (encoding, *encoding._overflowing):
            alone = each.copy()
            alone._overflowing = []
            alone._type_ids = [type_id] * len(alone)
            whole = Encoding.merge([*first, alone, _special([sep_id], [sep], type_id)], growing_offsets=False)
            whole._ranges = {sequence: range(len(first), len(first) + len(alone))}
            around.append(whole)
        around[0]._overflowing = around[1:]
        made.append(around[0])
    return made


def _template(processor: Mapping[str, Any], encodings: list[Encoding], add: bool) -> list[Encoding]:
    made = []
    for row in processor["pair" if len(encodings) > 1 else "single"]:
        if "Sequence" in row:
            sequence = int(row["Sequence"]["id"] != "A")
            encoding = encodings[sequence].copy()
            encoding._type_ids = [row["Sequence"].get("type_id", 0)] * len(encoding)  # windows keep theirs
            made.append(encoding)
        elif add:
            token = processor["special_tokens"][row["SpecialToken"]["id"]]
            made.append(_special(token["ids"], token["tokens"], row["SpecialToken"].get("type_id", 0)))
    return made


# ======================== truncation ========================


def truncated(encodings: list[Encoding], settings: Mapping[str, Any], added: int) -> None:
    """Cut the encodings of one text or two to a length that leaves room for `added` tokens."""
    room = settings["max_length"] - added
    if room < 0:
        raise SubwordValueError(
            f"max_length={settings['max_length']} has no room for the {added} tokens of the template"
        )
    stride, direction = settings["stride"], settings["direction"]
    sizes = [len(encoding) for encoding in encodings]
    over = sum(sizes) - room
    if over <= 0:
        return
    if room == 0:
        targets = [0] * len(sizes)
    elif settings["strategy"] == "longest_first":
        targets = [sizes[0] - over] if len(sizes) == 1 else _both_shorter(sizes[0], sizes[1], room)
    else:
        which = int(settings["strategy"] == "only_second")
        if which >= len(sizes):
            raise SubwordValueError("strategy='only_second' needs a second text")
        if sizes[which] <= over:
            raise SubwordValueError(
                f"the text to be cut has {sizes[which]} tokens, and {over} are too many: the other is too long"
            )
        targets = list(sizes)
        targets[which] -= over
    for encoding, target in zip(encodings, targets, strict=True):
        encoding.truncate(target, stride, direction)


def _both_shorter(a: int, b: int, room: int) -> list[int]:
    """The longer of two is cut until it is as long as the other, then both."""
    short, long = min(a, b), max(a, b)
    long = short if short > room else max(short, room - short)
    if short + long > room:
        short, long = room // 2, room // 2 + room % 2
    return [short, long] if a <= b else [long, short]
