"""`SentencePieceNormalizer`: what happens to a text before it is cut into pieces, by itself."""

from __future__ import annotations

import base64
import os
from typing import Any

from ... import _core, charsmap
from ...errors import FormatError, SubwordValueError
from ...formats import sentencepiece_model as proto
from ...formats import wire
from ...formats.wire import Message
from .arguments import each, file_bytes, proto_bytes, text_checked, utf8, with_flags
from .errors import ModelError, RefusedError
from .model import Normalized
from .names import both_names
from .results import normalized


@both_names
class SentencePieceNormalizer:
    """The normalizer of a model, or one by the name of its rules."""

    def __init__(
        self,
        model_file: str | os.PathLike[str] | None = None,
        model_proto: Any = None,
        normalizer_spec: Any = None,
        rule_tsv: Any = None,
        rule_name: str | None = None,
        norm_map: Any = None,
        add_dummy_prefix: bool | None = None,
        escape_whitespaces: bool | None = None,
        remove_extra_whitespaces: bool | None = None,
    ) -> None:
        """One of the first six says where the rules come from; the others change what is said there.

        Raises:
            RuntimeError: a file cannot be read, or is no model.
            ValueError: nothing says where the rules come from.
        """
        if model_file:
            spec = _spec_of(file_bytes(model_file), os.fspath(model_file))
        elif model_proto:
            spec = _spec_of(proto_bytes("the model", model_proto), "model_proto")
        elif normalizer_spec:
            spec = _read(proto_bytes("the spec", normalizer_spec), proto.NORMALIZER, "normalizer_spec")
        elif rule_tsv:
            spec = Message(proto.NORMALIZER, {"precompiled_charsmap": rules_of_tsv(rule_tsv)})
        elif rule_name:
            spec = Message(proto.NORMALIZER, {"name": rule_name, "precompiled_charsmap": rules_named(rule_name)})
        elif norm_map:
            spec = Message(proto.NORMALIZER, {"precompiled_charsmap": rules_of_pairs(norm_map)})
        else:
            raise SubwordValueError("nothing says what the normalizer does: give a model, a spec or rules")
        given = {
            "add_dummy_prefix": add_dummy_prefix,
            "escape_whitespaces": escape_whitespaces,
            "remove_extra_whitespaces": remove_extra_whitespaces,
        }
        self._compile(with_flags(spec, {name: value for name, value in given.items() if value is not None}))

    def _compile(self, spec: Message) -> None:
        self._spec = spec
        rules = base64.b64encode(spec.precompiled_charsmap).decode()
        flags = spec.add_dummy_prefix, spec.remove_extra_whitespaces, spec.escape_whitespaces, False
        try:
            self._normalizer = _core.SentencePieceNormalizer(rules, flags, [])
        except FormatError as error:
            raise ModelError(f"the rules of the normalizer: {error}") from None

    def Normalize(self, input: Any, with_offsets: bool | None = None) -> Any:
        """The text as a model with these rules sees it, or each text of a list; with `with_offsets`, also where in the
        original what each character (for bytes, each byte) of it comes from starts, and where the original ends."""

        def normalize(text: bytes) -> Normalized:
            return Normalized(text, *self._normalizer.apply(text))

        return each(input, lambda text: normalized(normalize, text, bool(with_offsets)))

    def Decompile(self) -> list[tuple[str, str]]:
        """The rules as pairs: what is replaced, in order, and by what.

        Raises:
            RuntimeError: there are none.
        """
        rules = charsmap.rules_of(base64.b64encode(self._spec.precompiled_charsmap).decode())
        if not rules:
            raise RefusedError("this normalizer has no rules")
        return sorted(rules.items())

    def serialized_normalizer_spec(self) -> bytes:
        """The rules and settings, as a message of SentencePiece's."""
        return wire.write(self._spec)

    def serialized_model_proto(self) -> bytes:
        """A model with nothing but these rules and settings."""
        return wire.write(Message(proto.MODEL, {"normalizer_spec": self._spec}))

    @property
    def spec(self) -> Message:
        """The rules and settings."""
        return self._spec

    def __getstate__(self) -> bytes:
        return self.serialized_model_proto()

    def __setstate__(self, state: bytes) -> None:
        self._compile(_spec_of(state, "the pickle"))


def _spec_of(data: bytes, where: str) -> Message:
    spec: Message = _read(data, proto.MODEL, where).normalizer_spec
    return spec


def _read(data: bytes, table: wire.Table, where: str) -> Message:
    try:
        return wire.read(data, table, where)
    except FormatError as error:
        raise ModelError(str(error)) from None


# ======================== rules ========================


def fill_in_rules(spec: Message, default: str) -> None:
    """Put the rules that a spec names into it."""
    if spec.normalization_rule_tsv:
        if spec.precompiled_charsmap:
            raise SubwordValueError("normalization_rule_tsv does not go with precompiled_charsmap")
        spec.values |= {"name": "user_defined", "precompiled_charsmap": rules_of_tsv(spec.normalization_rule_tsv)}
    elif not spec.precompiled_charsmap:
        name = spec.name or default
        spec.values |= {"name": name, "precompiled_charsmap": rules_named(name)}


def rules_named(name: str) -> bytes:
    """The rules that have a name."""
    try:
        return base64.b64decode(charsmap.named(name))
    except SubwordValueError as error:
        raise RefusedError(str(error)) from None


def rules_of_tsv(path: Any) -> bytes:
    """The rules of a file: code points in hexadecimal, a tab, and those that they become."""
    return base64.b64decode(charsmap.build(charsmap.read_tsv(file_bytes(path), os.fspath(path))))


def rules_of_pairs(pairs: Any) -> bytes:
    """The rules that some pairs of strings are."""
    rules: dict[str, str] = {}
    for pair in pairs:
        try:
            old, new = (utf8(text_checked(text)).decode() for text in pair)
        except UnicodeDecodeError:
            raise SubwordValueError(f"norm_map: {pair!r} is not UTF-8") from None
        if old in rules or old == new:
            raise SubwordValueError(f"norm_map: {old!r} {'is there twice' if old in rules else 'would stay as it is'}")
        rules[old] = new
    return base64.b64decode(charsmap.build(rules))
