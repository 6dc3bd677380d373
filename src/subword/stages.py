"""The stages that text passes before a model, as frozen data; `spec.py` says in which order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from .arguments import flag, integer, string
from .errors import SubwordValueError


def check_fields(row: Any) -> None:
    """Refuse values of other types than the fields of a stage or a token say; NumPy's scalars become Python's."""
    for name, own in row.__dataclass_fields__.items():
        given = getattr(row, name)
        check: Callable[[str, Any], Any] = _CHECKS.get(own.type, string)
        checked = check(f"{type(row).__name__}.{name}", given)
        if checked is not given:
            object.__setattr__(row, name, checked)


_CHECKS: dict[Any, Callable[[str, Any], Any]] = {"bool": flag, "int": integer}


@dataclass(frozen=True, slots=True)
class MatchTokens:
    """Cut out the extra tokens that are taken from the text as it stands here.

    Those whose `normalized` flag equals this stage's are matched, the leftmost first and of these the longest.
    """

    normalized: bool = False

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class Normalize:
    """Rewrite the text into a Unicode normalization form, by the tables of the Unicode version `unicode`."""

    form: Literal["NFC", "NFD", "NFKC", "NFKD"]
    unicode: str = "9.0"

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class Lowercase:
    """Rewrite the text into lower case, by the full mappings of the Unicode version `unicode`.

    With `final_sigma`, a capital sigma at the end of a word becomes `ς`, as Python's `str.lower` has it; without,
    characters do not look at each other, as in HF tokenizers.
    """

    final_sigma: bool = True
    unicode: str = "16.0"

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class CleanText:
    """Leave out control, format and private characters and U+FFFD; make tabs, newlines and other white space spaces.

    By the classes of the Unicode version `unicode`, as HF's BertNormalizer with `clean_text`.
    """

    unicode: str = "8.0"

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class PadChinese:
    """Put a space on each side of each Chinese character, as HF's BertNormalizer with `handle_chinese_chars`."""


@dataclass(frozen=True, slots=True)
class StripAccents:
    """Leave out nonspacing marks (`\\p{Mn}` of the Unicode version `unicode`): behind `Normalize("NFD")`, accents."""

    unicode: str = "8.0"

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class PrefixSpace:
    """Put a space in front of each stretch of text between extra tokens that does not start with one."""


@dataclass(frozen=True, slots=True)
class Digits:
    """Cut runs of numbers (`\\p{N}` of the Unicode version `unicode`) apart from the rest, and into groups.

    * `"one"`: each number alone.
    * `"three-left"`: up to three from the left, `123|456|7`.
    * `"three-right"`: three from the right, so that place values line up, `1|234|567`.
    """

    grouping: Literal["one", "three-left", "three-right"]
    unicode: str = "16.0"

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class Split:
    """Cut the text into pieces with a row of `patterns.py`, by the classes of the Unicode version `unicode`."""

    pattern: str
    unicode: str = "16.0"

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class SplitRegex:
    """Cut the text into pieces with a regular expression of one's own, by the classes of the Unicode version `unicode`.

    Each match is a piece, and so is what no match covers; a match of nothing is a boundary. `syntax` is that of
    `"tiktoken"` (fancy-regex) or `"oniguruma"` (HF tokenizers), with their differences: in Oniguruma `$` also matches
    before a newline and `{1,3}+` repeats. It runs in linear time: the regular subset, looks ahead at one character, and
    possessive quantifiers that are proved to change nothing. Anything else needs `allow_backtracking`, and gets a
    budget of steps (10,000 and 100 a byte), beyond which encoding fails with a `SubwordValueError`.
    """

    regex: str
    syntax: Literal["tiktoken", "oniguruma"] = "tiktoken"
    allow_backtracking: bool = False
    unicode: str = "16.0"

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class SentencePiece:
    """Rewrite the text as SentencePiece does, by the settings of its `NormalizerSpec`.

    `rules` is `precompiled_charsmap` in base64: of the strings that it replaces, the longest that stands at a place
    goes first; a byte that is in no well-formed character becomes U+FFFD. Then spaces: `remove_extra_whitespaces`
    leaves one of several, and none at the ends; `add_dummy_prefix` puts one in front (behind, with
    `treat_whitespace_as_suffix`); `escape_whitespaces` makes them `▁`. What the model has as user-defined entries is
    not rewritten.
    """

    rules: str = ""
    add_dummy_prefix: bool = True
    remove_extra_whitespaces: bool = True
    escape_whitespaces: bool = True
    treat_whitespace_as_suffix: bool = False

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class Precompiled:
    """Rewrite the text by SentencePiece's rules as HF tokenizers reads them: grapheme by grapheme, if it has less than
    six bytes, by the *shortest* rule that it starts with; otherwise character by character. `rules` is in base64."""

    rules: str

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class StripMarks:
    """Leave out all marks (`\\p{M}` of the Unicode version `unicode`), as HF's normalizer StripAccents."""

    unicode: str = "9.0"

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class Replace:
    """Replace each `old` in the text by `new`; with `runs`, only two and more of them in a row, by one `new`."""

    old: str
    new: str
    runs: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.old:
            raise SubwordValueError("Replace.old must not be empty")


@dataclass(frozen=True, slots=True)
class ReplaceRegex:
    """Replace what the regular expression matches by `new`; a match of nothing, too, but for one right behind another.

    The expression is in Oniguruma's syntax and runs as in `SplitRegex`, with backtracking where it needs it.
    """

    regex: str
    new: str
    unicode: str = "16.0"

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class Nmt:
    """Leave out control characters and make some other characters spaces, by the list of SentencePiece's `nmt_nfkc`."""


@dataclass(frozen=True, slots=True)
class ByteAlphabet:
    """Write each byte as the character that GPT-2's alphabet has for it (`Ġ` for a space).

    Only where something looks at the text after that: a BPE over bytes needs no such stage.
    """


@dataclass(frozen=True, slots=True)
class Strip:
    """Leave out white space at the start and at the end of each stretch of text between extra tokens."""

    left: bool = True
    right: bool = True

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class Metaspace:
    """Make spaces `replacement`, and put one in front of the text: `prepend` says where that does not start with one
    (`"missing"`, and `"first"` for the start of the whole text only), `"always"`, or `"never"`.

    With `words`, white space of all kinds only ends words: it is left out, and each word gets one in front.
    """

    replacement: str = "▁"
    prepend: Literal["missing", "first", "always", "never"] = "missing"
    words: bool = False
    spaces: bool = True
    """Whether spaces are replaced at all."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class SplitPunctuation:
    """Cut the text at white space, which is left out, and around each punctuation mark, which is a piece: all of ASCII
    that is no letter, number or control, and `\\p{P}` of the Unicode version `unicode`. As HF's BertPreTokenizer.
    """

    unicode: str = "8.0"

    def __post_init__(self) -> None:
        check_fields(self)


Behavior: TypeAlias = Literal["removed", "isolated", "merged-with-previous", "merged-with-next", "contiguous"]


@dataclass(frozen=True, slots=True)
class SplitAt:
    """Cut the text around matches. What matches is of one `kind`:

    * `"string"`: each `pattern`. `"regex"`: what the expression `pattern` matches, as in `ReplaceRegex`.
    * `"white-space"`, `"numbers"` (`\\p{N}`), `"punctuation"` (of ASCII all that is visible and no letter or number,
      and `\\p{P}`): each character that is such, by the classes of the Unicode version `unicode`.

    A match is left out (`"removed"`), a piece (`"isolated"`), joined to what is before it or after it, if that is no
    match (`"merged-with-previous"`, `"merged-with-next"`), or joined to the matches beside it (`"contiguous"`).
    With `invert`, what matches and what does not change places. As HF's pre-tokenizers Split, Digits and others.
    """

    kind: Literal["string", "regex", "white-space", "numbers", "punctuation"]
    pattern: str = ""
    behavior: Behavior = "isolated"
    invert: bool = False
    unicode: str = "16.0"

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class SplitScripts:
    """Cut the text where the script changes, by the scripts of the Unicode version `unicode`; Hiragana and Katakana
    count as Han. Spaces and what is not assigned go with what is before them, and are left out at the start of a text.
    As HF's UnicodeScripts.
    """

    unicode: str = "9.0"

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class SplitLength:
    """Cut the text into pieces of `length` characters; the last may have fewer."""

    length: int

    def __post_init__(self) -> None:
        check_fields(self)
        if self.length < 1:
            raise SubwordValueError(f"SplitLength.length must be at least 1, not {self.length}")


Stage: TypeAlias = (
    MatchTokens
    | Normalize
    | Lowercase
    | CleanText
    | PadChinese
    | StripAccents
    | PrefixSpace
    | SentencePiece
    | Precompiled
    | StripMarks
    | Replace
    | ReplaceRegex
    | Nmt
    | ByteAlphabet
    | Strip
    | Metaspace
    | Digits
    | Split
    | SplitRegex
    | SplitPunctuation
    | SplitAt
    | SplitScripts
    | SplitLength
)
STAGES: dict[str, type[Any]] = {cls.__name__: cls for cls in get_args(Stage)}
