"""Conversations -> ids, by the chat template that a model was trained with (needs Jinja2: `pip install subword[chat]`).

A control token is taken only where the template spells it, in one piece: not from messages, tools or other values, and
not from what they and the template spell together. See `tracked` for how that is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..arguments import flag, list_of, string
from ..encoding import Chat, Segment
from ..errors import SubwordValueError, warn
from ..tokenizer import Tokenizer

if TYPE_CHECKING:
    from .rendering import Rendered


def encode_chat(
    tokenizer: Tokenizer,
    messages: Iterable[Mapping[str, Any]],
    template: str | None,
    tools: Iterable[Mapping[str, Any]] | None,
    documents: Iterable[Mapping[str, Any]] | None,
    add_generation_prompt: bool,
    continue_final_message: bool,
    variables: Mapping[str, Any],
) -> Chat:
    """What `Tokenizer.chat` returns; see there."""
    try:
        from . import rendering
    except ImportError as error:
        raise SubwordValueError("chat templates need Jinja2: pip install 'subword[chat]'") from error

    listed = [_message(index, message) for index, message in enumerate(list_of("messages", messages))]
    given = {"tools": _mappings("tools", tools), "documents": _mappings("documents", documents)}
    add = flag("add_generation_prompt", add_generation_prompt)
    if flag("continue_final_message", continue_final_message) and (add or not listed):
        problem = "it goes on with the last message, so there must be one, and add_generation_prompt starts another"
        raise SubwordValueError(f"continue_final_message: {problem}")
    source = _template(tokenizer, template, bool(given["tools"]))
    names = {f"{role}_token": rendering.literal(content) for role, content in role_tokens(tokenizer).items()}
    values = {**names, **given, **variables}
    rendered = rendering.render(source, listed, {**values, "add_generation_prompt": add})
    if continue_final_message:
        rendered = _unfinished(rendered, len(listed) - 1)
    ids, spans = _encode(tokenizer, rendered)
    owners, loss = _per_character(rendered)
    if not rendered.says_generated:
        spoken = any(message.get("role") == "assistant" for message in listed)
        header = _header(source, listed, values) if spoken else ""
        loss = _learned(tokenizer, rendered, owners, listed, header, ids, spans)
    starts = spans[:, 0].astype(np.int64)
    of_token = owners[starts] if len(starts) else np.zeros(0, np.int32)
    return Chat(
        text=rendered.text,
        segments=_segments(rendered),
        ids=ids,
        char_spans=spans,
        messages=of_token,
        roles=[_role(listed[at]) if at >= 0 else None for at in of_token.tolist()],
        loss_mask=loss[starts] if len(starts) else np.zeros(0, np.bool_),
    )


def _unfinished(rendered: Rendered, last: int) -> Rendered:
    """The text up to the end of what the last message says."""
    ends = [at for at, (_, origin) in enumerate(rendered.runs) if origin.message == last and origin.field == "content"]
    if not ends:
        problem = "the template does not put the content of the last message in as it stands"
        raise SubwordValueError(f"continue_final_message: {problem}")
    runs = rendered.runs[: ends[-1] + 1]
    return rendered._replace(text=rendered.text[: sum(length for length, _ in runs)], runs=runs)


def _header(source: str, messages: Sequence[Mapping[str, Any]], values: Mapping[str, Any]) -> str:
    """What the template puts where the model is to go on: it stands in front of what the model said, too."""
    from . import rendering

    try:
        without, with_prompt = (
            rendering.render(source, messages, {**values, "add_generation_prompt": flag}).text for flag in (False, True)
        )
    except SubwordValueError:
        return ""  # one of the two the template refuses
    return with_prompt[len(without) :] if with_prompt.startswith(without) else ""


def role_tokens(tokenizer: Tokenizer) -> dict[str, str]:
    """The tokens that the roles of a tokenizer name, as text."""
    extra = {token.id: token.content for token in tokenizer.spec.extra}
    return {
        role: extra[id] if id in extra else tokenizer.token_bytes(id).decode(errors="replace")
        for role, id in tokenizer.spec.roles.items()
    }


def _message(index: int, message: Any) -> Mapping[str, Any]:
    if not isinstance(message, Mapping) or not all(isinstance(key, str) for key in message):
        wanted = 'a mapping of strings to values, as {"role": "user", "content": "Hello"}'
        raise SubwordValueError(f"messages[{index}] must be {wanted}, not {type(message).__name__}")
    return message


def _mappings(name: str, values: Any) -> list[Any] | None:
    if values is None:
        return None
    listed = list_of(name, values)
    for index, value in enumerate(listed):
        if not isinstance(value, Mapping):
            raise SubwordValueError(f"{name}[{index}] must be a mapping (JSON), not {type(value).__name__}")
    return listed


def _template(tokenizer: Tokenizer, template: str | None, with_tools: bool) -> str:
    known = tokenizer.spec.chat
    if template is not None:
        string("template", template)
        if template in known or "{" in template:
            return known.get(template, template)
        there = ", ".join(map(repr, known)) or "none"
        raise SubwordValueError(
            f"there is no chat template {template!r} (there is: {there}), nor is it the text of one"
        )
    if with_tools and "tool_use" in known:
        return known["tool_use"]
    if "default" in known:
        return known["default"]
    if len(known) == 1:
        return next(iter(known.values()))
    there = f"has the chat templates {', '.join(map(repr, known))}" if known else "has no chat template"
    raise SubwordValueError(
        f"this tokenizer {there}; pass template= (a name, or the text of one), or load the folder of a model that "
        "has one, in tokenizer_config.json or chat_template.jinja"
    )


def _role(message: Mapping[str, Any]) -> str | None:
    role = message.get("role")
    return role if isinstance(role, str) else None


# ======================== encoding ========================


def _encode(tokenizer: Tokenizer, rendered: Rendered) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64]]:
    """The ids and their spans in characters.

    As long as the text spells control tokens only where they are trusted, it is encoded in one go, as by transformers.
    Otherwise what is between the trusted ones is encoded by itself, as ordinary text.
    """
    trusted = _trusted_tokens(tokenizer, rendered)
    whole = tokenizer.tokenize(rendered.text, allowed_special="all")
    specials = np.array(list(tokenizer.special_tokens.values()), dtype=np.uint32)
    taken = np.flatnonzero(np.isin(whole.ids, specials))
    found = [
        (*_without_space(rendered.text, *span), id)
        for span, id in zip(whole.char_spans[taken].tolist(), whole.ids[taken].tolist(), strict=True)
    ]
    if found == [(*_without_space(rendered.text, start, end), id) for start, end, id in trusted]:
        return whole.ids, whole.char_spans
    _warn_of_roles(rendered, [span for span in found if span not in trusted])
    return _encode_apart(tokenizer, rendered.text, trusted)


def _warn_of_roles(rendered: Rendered, refused: Sequence[tuple[int, int, int]]) -> None:
    """Some templates put control tokens together from their own text and a role: say that these are none here."""
    lengths = [length for length, _ in rendered.runs]
    trusted = np.repeat([origin.trusted for _, origin in rendered.runs], lengths)
    of_role = np.repeat([origin.field == "role" for _, origin in rendered.runs], lengths)
    for start, end, _ in refused:
        span = slice(start, end)
        if np.any(trusted[span]) and np.any(of_role[span]) and np.all(trusted[span] | of_role[span]):
            token = rendered.text[span]
            warn(f"the chat template makes {token!r} from the role of a message: it is ordinary text, no control token")
            return


def _trusted_tokens(tokenizer: Tokenizer, rendered: Rendered) -> list[tuple[int, int, int]]:
    """Start, end and id of each control token that the template spells."""
    flags = {token.id: token for token in tokenizer.spec.extra}
    found = []
    for start, end in _trusted_stretches(rendered):
        for first, last, id in tokenizer.find_special(rendered.text[start:end]):
            first, last = first + start, last + start
            around = rendered.text[max(first - 1, 0) : first] + rendered.text[last : last + 1]
            if not (flags[id].single_word and any(char == "_" or char.isalnum() for char in around)):
                found.append((first, last, id))
    return found


def _trusted_stretches(rendered: Rendered) -> list[tuple[int, int]]:
    stretches: list[tuple[int, int]] = []
    at, open_ = 0, False
    for length, origin in rendered.runs:
        if origin.trusted:
            start = stretches.pop()[0] if open_ else at
            stretches.append((start, at + length))
        open_ = origin.trusted
        at += length
    return stretches


def _without_space(text: str, start: int, end: int) -> tuple[int, int]:
    """A span without the white space at its ends, which tokens with the flags `lstrip` and `rstrip` swallow."""
    inner = text[start:end]
    return start + len(inner) - len(inner.lstrip()), end - len(inner) + len(inner.rstrip())


def _encode_apart(
    tokenizer: Tokenizer, text: str, controls: Sequence[tuple[int, int, int]]
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64]]:
    flags = {token.id: token for token in tokenizer.spec.extra}
    ids: list[npt.NDArray[np.uint32]] = []
    spans: list[npt.NDArray[np.uint64]] = []
    end = 0
    for start, stop, id in [*controls, (len(text), len(text), None)]:
        between = text[end:start]
        left = start
        if id is not None and flags[id].lstrip:
            between = between.rstrip()
            left = end + len(between)
        part = tokenizer.tokenize(between, disallowed_special=())
        ids.append(part.ids)
        spans.append(part.char_spans + np.uint64(end))
        end = stop
        if id is not None:
            if flags[id].rstrip:
                end += len(text[end:]) - len(text[end:].lstrip())
            ids.append(np.array([id], dtype=np.uint32))
            spans.append(np.array([[left, end]], dtype=np.uint64))
    return np.concatenate(ids), np.concatenate(spans)


# ======================== what belongs to what ========================


def _per_character(rendered: Rendered) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
    """The message of each character, and whether it is generated."""
    lengths = [length for length, _ in rendered.runs]
    owners = np.repeat(np.array([origin.message for _, origin in rendered.runs], dtype=np.int32), lengths)
    generated = np.repeat(np.array([origin.generated for _, origin in rendered.runs], dtype=np.bool_), lengths)
    return owners, generated


def _learned(
    tokenizer: Tokenizer,
    rendered: Rendered,
    owners: npt.NDArray[np.int32],
    messages: Sequence[Mapping[str, Any]],
    header: str,
    ids: npt.NDArray[np.uint32],
    spans: npt.NDArray[np.uint64],
) -> npt.NDArray[np.bool_]:
    """Which characters are learned, where the template does not say it."""
    said = np.repeat(
        [not origin.trusted and origin.field not in ("role", "name") for _, origin in rendered.runs],
        [length for length, _ in rendered.runs],
    )
    specials = np.array(list(tokenizer.special_tokens.values()), dtype=np.uint32)
    controls = spans[np.isin(ids, specials)].astype(np.int64)
    learned = np.zeros(len(rendered.text), dtype=np.bool_)
    borders = np.flatnonzero(np.diff(owners)) + 1
    for start, end in pairwise([0, *borders.tolist(), len(owners)]):
        owner = int(owners[start]) if start < end else -1
        if owner < 0 or messages[owner].get("role") != "assistant":
            continue
        own = np.flatnonzero(said[start:end]) + start
        first = int(own[0]) if len(own) else end
        if header and rendered.text.startswith(header, start):
            first = min(first, start + len(header))
        last = int(own[-1]) + 1 if len(own) else first
        behind = controls[(controls[:, 0] >= last) & (controls[:, 1] <= end)]
        learned[first : int(behind[0, 1]) if len(behind) else last] = True
    return learned


def _segments(rendered: Rendered) -> tuple[Segment, ...]:
    segments: list[Segment] = []
    at = 0
    for length, origin in rendered.runs:
        message = origin.message if origin.message >= 0 else None
        text = rendered.text[at : at + length]
        at += length
        if segments and segments[-1][1:] == (origin.trusted, message):
            segments[-1] = Segment(segments[-1].text + text, origin.trusted, message)
        elif length:
            segments.append(Segment(text, origin.trusted, message))
    return tuple(segments)
