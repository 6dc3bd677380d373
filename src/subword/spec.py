"""What a tokenizer is, as frozen data: an ordered list of stages, a model, extra tokens, and a template.

Text passes the stages in their order; the model turns each piece that the last stage yields into ids; the template
adds control tokens around them. Every file format reads into a `Spec` and writes from one, and the core compiles a
`Spec` once into an engine. Vocabulary and merges are packed buffers, not hundreds of thousands of Python objects.

    raw text -> MatchTokens -> CleanText, PadChinese, Normalize, StripAccents, Lowercase -> MatchTokens(normalized=True)
        -> PrefixSpace, or SentencePiece and others that look at the whole text -> Digits -> Split or SplitPunctuation
        -> BPE, WordPiece, WordLevel, LongestMatch, or SentencePiece's Unigram, ScoreBPE, Words, Characters -> Template
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

from .arguments import integer, list_of, string, token_content
from .errors import SubwordValueError
from .models import (
    BPE,
    BYTE,
    MAX_ID,
    MODELS,
    NORMAL,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    Characters,
    Ids,
    LongestMatch,
    Model,
    Packed,
    ScoreBPE,
    Scored,
    Stretches,
    Unigram,
    Vocab,
    WordLevel,
    WordPiece,
    Words,
    bpe_of,
    whole_numbers,
)
from .stages import (
    STAGES,
    ByteAlphabet,
    CleanText,
    Digits,
    Lowercase,
    MatchTokens,
    Metaspace,
    Nmt,
    Normalize,
    PadChinese,
    Precompiled,
    PrefixSpace,
    Replace,
    ReplaceRegex,
    SentencePiece,
    Split,
    SplitAt,
    SplitLength,
    SplitPunctuation,
    SplitRegex,
    SplitScripts,
    Stage,
    Strip,
    StripAccents,
    StripMarks,
    check_fields,
)

__all__ = [
    "BPE",
    "BYTE",
    "DECODINGS",
    "MAX_ID",
    "MODELS",
    "NORMAL",
    "STAGES",
    "UNKNOWN",
    "UNUSED",
    "USER_DEFINED",
    "ByteAlphabet",
    "Characters",
    "CleanText",
    "Decode",
    "DecodeSentencePiece",
    "DecodeSteps",
    "DecodeWordPiece",
    "Decoding",
    "Digits",
    "ExtraToken",
    "Ids",
    "Kind",
    "LongestMatch",
    "Lowercase",
    "MatchTokens",
    "Metaspace",
    "Model",
    "Nmt",
    "Normalize",
    "Packed",
    "PadChinese",
    "Precompiled",
    "PrefixSpace",
    "Replace",
    "ReplaceRegex",
    "ScoreBPE",
    "Scored",
    "SentencePiece",
    "Spec",
    "Split",
    "SplitAt",
    "SplitLength",
    "SplitPunctuation",
    "SplitRegex",
    "SplitScripts",
    "Stage",
    "Stretches",
    "Strip",
    "StripAccents",
    "StripMarks",
    "Template",
    "Unigram",
    "Vocab",
    "WordLevel",
    "WordPiece",
    "Words",
    "bpe_of",
    "whole_numbers",
]

# ======================== extra tokens and template ========================

Kind: TypeAlias = Literal["special", "added", "unmatchable"]
_KINDS = get_args(Kind)


@dataclass(frozen=True, slots=True)
class ExtraToken:
    """A token beside the model's own entries.

    * `special`: control structure. Taken from text only where a call allows it; never in `encode_ordinary`.
    * `added`: the user's own. Always taken from text.
    * `unmatchable`: no text can give it; it only decodes.

    `single_word`, `lstrip` and `rstrip` are HF's flags: match only between characters that are not word characters;
    swallow the white space on the left, on the right. `normalized` says at which `MatchTokens` stage it is taken.
    """

    id: int
    content: str
    kind: Kind = "special"
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = False

    def __post_init__(self) -> None:
        if (
            type(self.id) is int
            and 0 <= self.id <= MAX_ID
            and type(self.content) is str
            and self.content
            and self.content.isascii()
            and type(self.kind) is str
            and self.kind in _KINDS
            and type(self.single_word) is type(self.lstrip) is type(self.rstrip) is type(self.normalized) is bool
        ):
            return  # nearly all are such, and there may be many thousands
        check_fields(self)
        if self.kind not in _KINDS:
            raise SubwordValueError(f"ExtraToken.kind must be one of {', '.join(_KINDS)}, not {self.kind!r}")
        token_content(self.content)
        if self.id > MAX_ID:
            raise SubwordValueError(f"the id {self.id} of the token {self.content!r} is beyond the largest, {MAX_ID}")


@dataclass(frozen=True, slots=True)
class Template:
    """What `add_special_tokens=True` puts around text: ids, and `"A"` and `"B"` where the texts go.

    `single_types` and `pair_types` are the type ids of these, as models take them; empty where they are 0 up to the
    second text and 1 from there on.
    """

    single: tuple[int | str, ...] = ("A",)
    pair: tuple[int | str, ...] = ("A", "B")
    single_types: tuple[int, ...] = ()
    pair_types: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name, texts in (("single", ["A"]), ("pair", ["A", "B"])):
            items = tuple(map(_template_item, list_of(f"Template.{name}", getattr(self, name))))
            if sorted(item for item in items if isinstance(item, str)) != texts:
                wanted = '"A" and "B" once each' if name == "pair" else '"A" once and no "B"'
                raise SubwordValueError(f"Template.{name} must hold {wanted}, not {list(items)}")
            object.__setattr__(self, name, items)
            self._check_types(f"{name}_types", items)

    def _check_types(self, name: str, items: tuple[int | str, ...]) -> None:
        types = tuple(integer("a type id", type_id) for type_id in list_of(f"Template.{name}", getattr(self, name)))
        if types and len(types) != len(items):
            raise SubwordValueError(f"Template.{name} has {len(types)} types for {len(items)} items")
        object.__setattr__(self, name, () if types == _usual_types(items) else types)

    def types_of(self, items: tuple[int | str, ...]) -> tuple[int, ...]:
        """The type id of each item of `single` or of `pair`."""
        return (self.pair_types if "B" in items else self.single_types) or _usual_types(items)

    def with_ids(self, change: Callable[[int], int | None]) -> Template:
        """The same with other ids; those that become None are left out."""
        rows: list[tuple[tuple[int | str, int], ...]] = []
        for items in (self.single, self.pair):
            new = (item if isinstance(item, str) else change(item) for item in items)
            rows.append(
                tuple((item, own) for item, own in zip(new, self.types_of(items), strict=True) if item is not None)
            )
        return Template.of_rows(*rows)

    @classmethod
    def of_rows(cls, single: Iterable[tuple[int | str, int]], pair: Iterable[tuple[int | str, int]]) -> Template:
        """From items with their types."""
        (first, first_types), (second, second_types) = (tuple(zip(*row, strict=True)) for row in (single, pair))
        return cls(first, second, first_types, second_types)

    def outline(self) -> dict[str, list[Any]]:
        """The template as plain data. Older files have no types in it."""
        rows = {name: list(getattr(self, name)) for name in self.__dataclass_fields__}
        return {name: row for name, row in rows.items() if row or name in ("single", "pair")}


def _usual_types(items: tuple[int | str, ...]) -> tuple[int, ...]:
    second = items.index("B") if "B" in items else len(items)
    return tuple(int(at >= second) for at in range(len(items)))


def _template_item(item: Any) -> int | str:
    if isinstance(item, str) and item in ("A", "B"):
        return item
    try:
        return integer("an id", item)
    except SubwordValueError:
        raise SubwordValueError(f'a template holds ids, "A" and "B", not {item!r}') from None


@dataclass(frozen=True, slots=True)
class Decode:
    """How the end-of-word marker of a model decodes: to `end_of_word`; with `trim`, to nothing behind the last id."""

    end_of_word: str = " "
    trim: bool = False

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def looks_around(self) -> bool:
        """Whether what a token decodes to depends on the tokens beside it."""
        return self.trim


@dataclass(frozen=True, slots=True)
class DecodeWordPiece:
    """Put a space in front of each token but the first, and of those that start with `prefix`, which lose that instead.

    With an empty `prefix`, no token does. `cleanup` undoes in each token what splitting has done to punctuation, as HF
    tokenizers does: ` .` becomes `.`, and likewise `? ! ,` and `n't 'm 's 've 're`.
    """

    prefix: str = "##"
    cleanup: bool = True

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def looks_around(self) -> bool:
        """Whether what a token decodes to depends on the tokens beside it."""
        return True


@dataclass(frozen=True, slots=True)
class DecodeSentencePiece:
    """`▁` as a space, bytes as bytes, an unknown token as `unk_surface`. At the start of a text `▁` is left out:
    `"one"` of them, one of each token before there is text (`"all"`), all of the first token (`"token"`), or `"none"`.
    Then the text is rewritten by `rules`, the `precompiled_charsmap` of SentencePiece's denormalizer, in base64.
    """

    strip: Literal["none", "one", "all", "token"] = "one"
    unk_surface: str = " \u2047 "
    rules: str = ""

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def looks_around(self) -> bool:
        """Whether what a token decodes to depends on the tokens beside it."""
        return self.strip != "none" or bool(self.rules)


@dataclass(frozen=True, slots=True)
class DecodeSteps:
    """Tokens are strings, and steps change the list of them, one after the other; as decoders of HF tokenizers do it.

    Each step is a tuple of its name and its settings, all strings:

    * `spell-bytes` (only in front): entries are bytes, to be written in GPT-2's alphabet.
    * `replace old new`, `replace-regex regex new`: in each token.
    * `byte-fallback`: tokens `<0x0A>` are bytes; a run of them is text if it is well-formed, else each is U+FFFD.
    * `fuse`: one token of all. `spaces`: the same, with a space between them.
    * `strip character start stop`: at most so many of it are taken off the ends of each token.
    * `byte-level`: what is written in GPT-2's alphabet is bytes, and all of them one token.
    * `word-piece prefix cleanup`: as `DecodeWordPiece`.
    * `metaspace character strips`: the character is a space; with `strips` it is left out of the first token.
    * `ctc pad delimiter cleanup`: of equal tokens side by side one stays, `pad` is taken out, and if it is cleaned up,
      `delimiter` is a space; tokens of nothing are dropped.
    * `end-of-word suffix`: it is a space, and in the last token nothing.
    """

    steps: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        steps = tuple(
            tuple(list_of("a step of DecodeSteps", step)) for step in list_of("DecodeSteps.steps", self.steps)
        )
        for number, step in enumerate(steps):
            name = string("a step of DecodeSteps", step[0] if step else "")
            if _STEPS.get(name) != len(step) - 1 or (name == "spell-bytes" and number):
                raise SubwordValueError(f"DecodeSteps.steps: {step!r} is no step, or does not stand there")
            for setting in step:
                string(f"a setting of {name}", setting)
        object.__setattr__(self, "steps", steps)

    @property
    def looks_around(self) -> bool:
        """Whether what a token decodes to depends on the tokens beside it."""
        return True


_STEPS = {
    "spell-bytes": 0,
    "replace": 2,
    "replace-regex": 2,
    "byte-fallback": 0,
    "fuse": 0,
    "spaces": 0,
    "strip": 3,
    "byte-level": 0,
    "word-piece": 2,
    "metaspace": 2,
    "ctc": 3,
    "end-of-word": 1,
}
"""How many settings each step has."""

Decoding: TypeAlias = Decode | DecodeWordPiece | DecodeSentencePiece | DecodeSteps
DECODINGS: dict[str, type[Any]] = {cls.__name__: cls for cls in get_args(Decoding)}


def _decode_row(decode: Decoding) -> dict[str, Any]:
    """As the outline has it. Older files have no type in it, and no rules."""
    settings = {name: value for name, value in asdict(decode).items() if (name, value) != ("rules", "")}
    return {**({} if isinstance(decode, Decode) else {"type": type(decode).__name__}), **settings}


# ======================== the whole ========================


@dataclass(frozen=True, eq=False)
class Spec:
    """A tokenizer as a value. Two specs are equal when their fingerprints are.

    `roles` names the ids that stand for `bos`, `eos`, `pad`, `unk` and others; like `notes` (what a trainer or a file
    says about itself), `chat` (Jinja chat templates by their names; most often there is one, `default`) and `padded`
    (defaults of arguments of `Tokenizer.encode_padded`) they change no id of a text and are not part of the
    fingerprint. All are read-only; `replace` makes others.
    """

    stages: tuple[Stage, ...]
    model: Model
    extra: tuple[ExtraToken, ...] = ()
    template: Template = Template()
    decode: Decoding = Decode()
    roles: Mapping[str, int] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)
    chat: Mapping[str, str] = field(default_factory=dict)
    padded: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, kinds in (("stages", tuple(STAGES.values())), ("extra", (ExtraToken,))):
            items = tuple(list_of(f"Spec.{name}", getattr(self, name)))
            for item in items:
                if not isinstance(item, kinds):
                    wanted = " or ".join(kind.__name__ for kind in kinds)
                    raise SubwordValueError(f"Spec.{name} must hold {wanted}, not {item!r}")
            object.__setattr__(self, name, items)
        for name, kinds in (
            ("model", tuple(MODELS.values())),
            ("template", (Template,)),
            ("decode", tuple(DECODINGS.values())),
            ("roles", (Mapping,)),
            ("notes", (Mapping,)),
            ("chat", (Mapping,)),
            ("padded", (Mapping,)),
        ):
            if not isinstance(getattr(self, name), kinds):
                wanted = " or a ".join(kind.__name__ for kind in kinds)
                raise SubwordValueError(f"Spec.{name} must be a {wanted}, not {getattr(self, name)!r}")
        roles = {string("a role", role): integer(f"Spec.roles[{role!r}]", id) for role, id in self.roles.items()}
        object.__setattr__(self, "roles", MappingProxyType(roles))
        object.__setattr__(self, "notes", MappingProxyType(dict(self.notes)))
        object.__setattr__(self, "padded", MappingProxyType(dict(self.padded)))
        chat = {string("a name", name): string(f"Spec.chat[{name!r}]", text) for name, text in self.chat.items()}
        object.__setattr__(self, "chat", MappingProxyType(chat))

    def __reduce__(self) -> Any:  # read-only views cannot be pickled
        values = (getattr(self, name) for name in self.__dataclass_fields__)
        return Spec, tuple(dict(value) if isinstance(value, MappingProxyType) else value for value in values)

    def outline(self) -> dict[str, Any]:
        """Everything but the packed buffers, as plain data that JSON can hold; `from_outline` is its inverse."""
        return {
            "stages": [{"stage": type(stage).__name__, **asdict(stage)} for stage in self.stages],
            "model": {"type": type(self.model).__name__, **self.model.settings()},
            "extra": [asdict(token) for token in self.extra],
            "template": self.template.outline(),
            **({} if self.decode == Decode() else {"decode": _decode_row(self.decode)}),
        }

    def buffers(self) -> dict[str, bytes]:
        """The packed buffers by name, little-endian."""
        return {
            name: buffer if isinstance(buffer, bytes) else buffer.astype(buffer.dtype.newbyteorder("<")).tobytes()
            for name, buffer in self.model.buffers().items()
        }

    @classmethod
    def from_outline(
        cls,
        outline: dict[str, Any],
        buffers: Mapping[str, Any],
        roles: dict[str, int] | None = None,
        notes: dict[str, Any] | None = None,
        chat: dict[str, str] | None = None,
        padded: dict[str, Any] | None = None,
    ) -> Spec:
        """The spec that `outline()` and `buffers()` describe. Raises KeyError, TypeError or ValueError on others.

        The pieces are taken as bytes, the numbers from any buffer; what is read-only is not copied.
        """
        stages = tuple(
            STAGES[row["stage"]](**{name: value for name, value in row.items() if name != "stage"})
            for row in outline["stages"]
        )
        if outline["model"]["type"] not in MODELS:
            raise SubwordValueError(f"unknown model {outline['model']['type']!r}")
        model = MODELS[outline["model"]["type"]].of_parts(outline["model"], buffers)
        decode = {**outline.get("decode", {})}
        decoding = DECODINGS[decode.pop("type", "Decode")]
        return cls(
            stages=stages,
            model=model,
            extra=tuple(ExtraToken(**row) for row in outline["extra"]),
            template=Template(**{name: tuple(row) for name, row in outline["template"].items()}),
            decode=decoding(**decode),
            roles=roles or {},
            notes=notes or {},
            chat=chat or {},
            padded=padded or {},
        )

    @cached_property
    def fingerprint(self) -> str:
        """64 hexadecimal digits that are equal exactly when two tokenizers mean the same: a SHA-256 of the content."""
        digest = hashlib.sha256(json.dumps(self.outline(), sort_keys=True, ensure_ascii=True).encode())
        for name, buffer in self.buffers().items():
            digest.update(f"\n{name} {len(buffer)}\n".encode())
            digest.update(buffer)
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        return self.fingerprint == other.fingerprint if isinstance(other, Spec) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def replace(self, **changes: Any) -> Spec:
        """A spec with some fields changed."""
        try:
            return replace(self, **changes)
        except TypeError as error:
            raise SubwordValueError(f"a Spec cannot be changed so: {error}") from None
