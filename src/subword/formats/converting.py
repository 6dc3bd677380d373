"""From one format to another: what is written is read back and compared before it is kept, what is lost is named.

A format that cannot hold something of a tokenizer refuses it. Then it is looked for what could be left out (`LOSSES`)
so that it holds the rest; the error says what that is, and with `allow_lossy` it is done. What is written is compared
with the tokenizer without these parts, so that nothing else gets lost.

To add something that can be left out: one row in `LOSSES`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from ..errors import FormatError, SubwordValueError, SubwordWarning
from ..spec import (
    CleanText,
    Decode,
    ExtraToken,
    Lowercase,
    MatchTokens,
    Normalize,
    PadChinese,
    Precompiled,
    PrefixSpace,
    Replace,
    Spec,
    Stage,
    Strip,
    StripAccents,
    StripMarks,
    Template,
)
from ..tokenizer import Text, Tokenizer

NORMALIZERS = (
    *(Normalize, Lowercase, CleanText, PadChinese, StripAccents, StripMarks, Replace, Strip, Precompiled, PrefixSpace),
)


class LossError(SubwordValueError):
    """A format that cannot hold all of a tokenizer. `lost` is what would have to be left out."""

    def __init__(self, message: str, lost: tuple[str, ...]) -> None:
        super().__init__(message)
        self.lost = lost


class Loss(NamedTuple):
    """What can be left out: how it is called, and the tokenizer without it (the same one where there is none)."""

    name: Callable[[Spec], str]
    without: Callable[[Spec], Spec]


def _without_chat(spec: Spec) -> Spec:
    return spec.replace(chat={}) if spec.chat else spec


def _without_flags(spec: Spec) -> Spec:
    extra = tuple(replace(token, single_word=False, lstrip=False, rstrip=False) for token in spec.extra)
    return spec if extra == spec.extra else spec.replace(extra=extra)


def _is_normalizer(stage: Stage) -> bool:
    return isinstance(stage, NORMALIZERS)


def _normalizers_called(spec: Spec) -> str:
    called = [
        stage.form if isinstance(stage, Normalize) else type(stage).__name__
        for stage in spec.stages
        if _is_normalizer(stage)
    ]
    return f"normalizer {', '.join(called)}"


def _without_normalizers(spec: Spec) -> Spec:
    """Tokens that were taken from normalized text are taken from the text."""
    if not any(map(_is_normalizer, spec.stages)):
        return spec
    rest = [stage for stage in spec.stages if not _is_normalizer(stage) and not isinstance(stage, MatchTokens)]
    extra = tuple(replace(token, normalized=False) for token in spec.extra)
    takes = any(isinstance(stage, MatchTokens) for stage in spec.stages)
    return spec.replace(stages=(*([MatchTokens()] if takes else []), *rest), extra=extra)


def _without_added(spec: Spec) -> Spec:
    extra = tuple(
        ExtraToken(token.id, token.content, "special", token.single_word, token.lstrip, token.rstrip)
        if token.kind == "added"
        else token
        for token in spec.extra
    )
    if extra == spec.extra:
        return spec
    rest = [stage for stage in spec.stages if not isinstance(stage, MatchTokens)]
    return spec.replace(stages=(MatchTokens(), *rest), extra=extra)


def _without_unmatchable(spec: Spec) -> Spec:
    extra = tuple(token for token in spec.extra if token.kind != "unmatchable")
    return spec if extra == spec.extra else spec.replace(extra=extra)


def _kinds_called(spec: Spec) -> str:
    names = [token.content for token in spec.extra if token.kind == "added"]
    shown = ", ".join(names[:4]) + f" and {len(names) - 4} more" * (len(names) > 4)
    return f"special token policy: added tokens become special ({shown})"


LOSSES = (
    Loss(lambda spec: f"chat template {', '.join(spec.chat)}", _without_chat),
    Loss(lambda spec: "flags of tokens (single_word, lstrip, rstrip)", _without_flags),
    Loss(
        lambda spec: "template (what add_special_tokens adds)",
        lambda spec: spec if spec.template == Template() else spec.replace(template=Template()),
    ),
    Loss(_normalizers_called, _without_normalizers),
    Loss(_kinds_called, _without_added),
    Loss(lambda spec: "tokens that no text gives (unmatchable)", _without_unmatchable),
    Loss(
        lambda spec: "how ids decode",
        lambda spec: spec if spec.decode == Decode() else spec.replace(decode=Decode()),
    ),
)


Writer: TypeAlias = "Callable[[Spec], bytes] | Callable[[Spec], dict[str, bytes]]"


class Reduced(NamedTuple):
    """What of a tokenizer a format can hold, and what is left out."""

    spec: Spec
    lost: tuple[str, ...]


def reduced(spec: Spec, write: Writer, holds_chat: bool, name: str, allow_lossy: bool) -> Reduced:
    """As much of a tokenizer as `write` takes; without `allow_lossy`, all of it.

    Raises:
        LossError: there would be something lost; the message says what. `name` is that of the file.
        SubwordValueError: leaving out parts does not help, as for a whole kind of model.
    """
    lost: list[str] = []
    problem = "this format has no place for chat templates"
    with warnings.catch_warnings():  # those of what is written come when it is
        warnings.simplefilter("ignore", SubwordWarning)
        kept = spec
        if spec.chat and not holds_chat:
            lost.append(LOSSES[0].name(spec))
            kept = _without_chat(spec)
        error = _refusal(kept, write)
        while error is not None:
            problem = problem if lost else str(error)
            for row in LOSSES:
                fewer = row.without(kept)
                after = error if fewer is kept else _refusal(fewer, write)
                if after is None or str(after) != str(error):
                    lost.append(row.name(kept))
                    kept, error = fewer, after
                    break
            else:
                raise error
    if lost and not allow_lossy:
        advice = "--allow-lossy, or allow_lossy=True, leaves it out"
        raise LossError(f"{name}: {problem}. What would be lost: {'; '.join(lost)}. {advice}", tuple(lost))
    return Reduced(kept, tuple(lost))


def _refusal(spec: Spec, write: Writer) -> SubwordValueError | None:
    """Why this cannot be written, if it cannot."""
    try:
        write(spec)
    except SubwordValueError as error:
        return error
    return None


class Checked(NamedTuple):
    """What was found of what was written: on how many texts it was compared, and what changed."""

    texts: int
    changed: tuple[str, ...]


def checked(
    spec: Spec, name: str, read_back: Callable[[], Spec], holds_ids: bool, texts: Iterable[Text], always: bool
) -> Checked:
    """Compare a tokenizer with what was written of it. Where the two are the same value, only if `always`.

    Raises:
        DifferenceError: they differ. Where the format `holds_ids`, that is a defect.
        FormatError: what was written cannot be read, likewise.
    """
    try:
        again = read_back()
    except FormatError as error:
        problem = "nothing was written, because it could not be read again. This is a defect of subword"
        raise FormatError(f"{name}: {problem}; please report it. {error}") from error
    if not always and again == spec:
        return Checked(0, ())
    from .comparing import DifferenceError, compare

    difference, count, changed = compare(Tokenizer(spec), Tokenizer(again), texts)
    if difference is not None and not holds_ids:
        problem = "this format holds no ids, and read from it, those of this tokenizer would be others, so nothing was"
        raise DifferenceError(
            f"{name}: {problem} written; Tokenizer.save writes it all the same. {difference}", difference
        )
    if difference is not None:
        problem = (
            "in this format it would not be the same tokenizer, so nothing was written. This is a defect of subword"
        )
        raise DifferenceError(f"{name}: {problem}; please report it. {difference}", difference)
    return Checked(count, changed)


def stages_that_rewrite(stages: Iterable[Stage]) -> Iterator[Stage]:
    """Those behind which a text is another one, so that it matters where a token is taken from it."""
    return filter(_is_normalizer, stages)
