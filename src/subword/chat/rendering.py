"""A chat template (Jinja) and messages -> text with the origin of each character.

The template runs in Jinja's sandbox, with the conventions of transformers: blocks are trimmed, `raise_exception`,
`strftime_now`, `tojson` that escapes nothing, `break` and `continue`, `{% generation %}`. What is ours: each string
that the template spells is a trusted `Text`, each string of a message one with the number of the message, and Jinja's
own ways to put strings together keep both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

import jinja2
from jinja2 import nodes
from jinja2.compiler import CodeGenerator
from jinja2.ext import Extension, loopcontrols
from jinja2.filters import make_attrgetter
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import pass_environment
from jinja2.visitor import NodeTransformer

from ..errors import FormatError, SubwordValueError
from .tracked import LITERAL, Origin, Run, Text, joined, marked_as_generated, runs_of

BEGIN, ENTER, LEAVE = "_subword_begin", "_subword_enter", "_subword_leave"
"""What the hooks in loops are called, which say at which message a template is."""


GENERATION = re.compile(r"\{%[-+]?\s*generation\b")


class Rendered(NamedTuple):
    """What a template made of messages.

    `runs` cover the text; one of no characters is a break, see `tracked`. `message` of a trusted one is the message
    that the template was at. `says_generated` is whether the template marks what a model generates.
    """

    text: str
    runs: tuple[Run, ...]
    says_generated: bool


def render(template: str, messages: Sequence[Mapping[str, Any]], variables: Mapping[str, Any]) -> Rendered:
    """Render a chat template.

    Args:
        template: its source.
        messages: JSON-like: strings in lists and mappings in it get their origin.
        variables: what else the template may use. Strings are not trusted, unless they are a trusted `Text`.

    Raises:
        FormatError: the template is not Jinja.
        SubwordValueError: the template refuses the messages, or fails on them.
    """
    compiled = _compiled(template)
    place = _Place()
    hooks = {BEGIN: place.begin, ENTER: place.enter, LEAVE: place.leave}
    own = [Message(index, message) for index, message in enumerate(messages)]
    runs: list[Run] = []
    parts: list[str] = []
    try:
        context = compiled.new_context({**variables, "messages": own, **hooks})
        for part in compiled.root_render_func(context):
            parts.append(part)
            runs.extend(_placed(runs_of(part), place.message))
        text = joined([Text("".join(parts), runs)])
    except jinja2.TemplateError as error:
        raise SubwordValueError(f"the chat template refuses the messages: {error}") from error
    except Exception as error:  # the template is a program that others wrote: it can fail in any way
        raise SubwordValueError(f"the chat template failed: {type(error).__name__}: {error}") from error
    return Rendered(str.__add__("", text), runs_of(text), GENERATION.search(template) is not None)


def literal(text: str) -> Text:
    """Text that is trusted."""
    return Text(text, [(len(text), LITERAL)])


def _placed(runs: Sequence[Run], message: int) -> Iterator[Run]:
    """The runs of one output; those that no message gave belong to the message that the template is at.

    Where it is at none, they belong to the only message in the same output, if there is one.
    """
    if message < 0:
        given = {origin.message for _, origin in runs if origin.message >= 0}
        message = given.pop() if len(given) == 1 else -1
    for length, origin in runs:
        yield length, (origin if origin.message >= 0 else origin._replace(message=message))


class _Place:
    """At which message a template is: what the innermost loop over messages is at."""

    def __init__(self) -> None:
        self._stack = [-1]

    @property
    def message(self) -> int:
        return self._stack[-1]

    def begin(self) -> None:
        self._stack.append(self._stack[-1])

    def enter(self, value: object) -> None:
        if isinstance(value, Message):
            self._stack[-1] = value._index

    def leave(self) -> None:
        self._stack.pop()


class Message(dict[str, Any]):
    """A message as the template sees it. It has no attributes that could hide a field."""

    __slots__ = ("_index",)

    def __init__(self, index: int, message: Mapping[str, Any]) -> None:
        super().__init__({key: _with_origin(value, Origin(False, index, key)) for key, value in message.items()})
        self._index = index


def _with_origin(value: Any, origin: Origin) -> Any:
    if isinstance(value, str):
        return Text(value, [(len(value), origin)])
    if isinstance(value, Mapping):
        return {
            (_with_origin(key, origin) if isinstance(key, str) else key): _with_origin(item, origin)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_with_origin(item, origin) for item in value]
    return value


# ======================== Jinja ========================


class _Generator(CodeGenerator):  # type: ignore[misc, unused-ignore]
    """Jinja's compiler, but that strings of the template become trusted."""

    def _output_const_repr(self, group: Iterable[Any]) -> str:
        return f"environment.literal({''.join(group)!r})"

    def visit_Const(self, node: nodes.Const, frame: Any) -> None:  # noqa: N802
        value = node.as_const(frame.eval_ctx)
        if isinstance(value, str):
            self.write(f"environment.literal({value!r})")
        else:
            super().visit_Const(node, frame)

    def visit_TemplateData(self, node: nodes.TemplateData, frame: Any) -> None:  # noqa: N802
        self.write(f"environment.literal({node.data!r})")

    def visit_Concat(self, node: nodes.Concat, frame: Any) -> None:  # noqa: N802
        self.write("environment.put_together((")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("))")


class _Hooks(NodeTransformer):  # type: ignore[misc, unused-ignore]
    """Puts the hooks into loops."""

    def visit_For(self, node: nodes.For) -> list[nodes.Node]:  # noqa: N802
        self.generic_visit(node)
        if isinstance(node.target, nodes.Name):
            node.body.insert(0, _call(ENTER, node.lineno, nodes.Name(node.target.name, "load")))
        return [_call(BEGIN, node.lineno), node, _call(LEAVE, node.lineno)]


def _call(name: str, line: int, *arguments: nodes.Expr) -> nodes.Node:
    call = nodes.Call(nodes.Name(name, "load"), list(arguments), [], None, None)
    return nodes.ExprStmt(call).set_lineno(line, override=True)


class _Environment(ImmutableSandboxedEnvironment):  # type: ignore[misc, unused-ignore]
    code_generator_class = _Generator
    concat = staticmethod(joined)

    def literal(self, text: str) -> Text:
        return literal(text)

    def put_together(self, parts: Iterable[Any]) -> Text:
        return joined(part if isinstance(part, str) else str(part) for part in parts)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = _Hooks().visit(super()._parse(source, name, filename))
        assert isinstance(tree, nodes.Template)
        tree.set_environment(self)
        return tree

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        wrapped: Callable[..., str] | None = super().wrap_str_format(value)
        text = getattr(value, "__self__", None)
        if wrapped is None or not isinstance(text, Text):
            return wrapped

        def format(*args: Any, **kwargs: Any) -> str:
            plain = str.__add__("", wrapped(*args, **kwargs))  # what the sandbox lets through
            return text._formatted(plain, args[0] if value.__name__ == "format_map" else kwargs or args)

        return format


class _Generation(Extension):  # type: ignore[misc, unused-ignore]
    """`{% generation %} … {% endgeneration %}`: what a model generates."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Any) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_mark"), [], [], body).set_lineno(line)

    def _mark(self, caller: Callable[[], str]) -> str:
        return marked_as_generated(caller())


@pass_environment  # type: ignore[untyped-decorator, unused-ignore]
def _join(environment: Any, values: Iterable[Any], d: str | None = None, attribute: str | None = None) -> Text:
    if attribute is not None:
        values = map(make_attrgetter(environment, attribute), values)
    parts = [value if isinstance(value, str) else str(value) for value in values]
    return joined(parts) if d is None else Text.join(d if isinstance(d, Text) else Text(str(d)), parts)


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: Any = None,
    separators: Any = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise(message: str) -> None:
    raise jinja2.TemplateError(message)


def _environment() -> _Environment:
    environment = _Environment(
        trim_blocks=True, lstrip_blocks=True, optimized=False, extensions=[_Generation, loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.filters["join"] = _join
    environment.globals["raise_exception"] = _raise
    environment.globals["strftime_now"] = lambda format: datetime.now().strftime(format)
    return environment


@lru_cache(maxsize=64)
def _compiled(template: str) -> jinja2.Template:
    try:
        return _environment().from_string(template)
    except jinja2.TemplateSyntaxError as error:
        raise FormatError(f"the chat template is not Jinja, line {error.lineno}: {error.message}") from error
    except RecursionError:
        raise FormatError("the chat template is nested too deeply") from None
