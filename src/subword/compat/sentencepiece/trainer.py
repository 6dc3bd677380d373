"""`SentencePieceTrainer`: training with sentencepiece's options, and its files."""

from __future__ import annotations

import base64
import os
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, repeat
from typing import Any

from ... import _core
from ...errors import SubwordOSError, SubwordValueError, warn
from ...formats import sentencepiece as files
from ...formats import sentencepiece_model as proto
from ...formats.files import write_file
from ...formats.wire import Field, Message
from ...training_sentencepiece import train_sentencepiece
from .arguments import file_bytes, threads_of, utf8
from .errors import FileError, TrainingError, WrongTypeError
from .model import Model
from .names import both_names
from .normalizer import SentencePieceNormalizer, fill_in_rules

MODEL_TYPES = {"UNIGRAM": proto.UNIGRAM, "BPE": proto.BPE, "WORD": proto.WORD, "CHAR": proto.CHAR}
IGNORED = (
    "accept_language",
    "self_test_sample_size",
    "mining_sentence_size",
    "training_sentence_size",
    "train_extremely_large_corpus",
    "enable_differential_privacy",
    "differential_privacy_noise_level",
    "differential_privacy_clipping_threshold",
)
"""Options that sentencepiece has, and no longer looks at."""

SAME = """
vocab_size byte_fallback seed_sentencepiece_size shrinking_factor num_sub_iterations max_sentencepiece_length
split_by_unicode_script split_by_number split_by_whitespace split_digits treat_whitespace_as_suffix
allow_whitespace_only_pieces control_symbols user_defined_symbols required_chars unk_id bos_id eos_id pad_id unk_piece
bos_piece eos_piece pad_piece unk_surface hard_vocab_limit
""".split()
"""Options that `train_sentencepiece` has under the same names."""

INCONSISTENT = "allow_inconsistent_pretokenization"

BOUNDARY, SPACE = "\U000f5b0d", "\U000f5b0e"
"""While learning, what stands where lines are cut, and for a space that is a symbol: characters that are nobody's."""

LEFT_OUT = "▅".encode()
"""Lines with this character are left out, as sentencepiece does."""


@both_names
class SentencePieceTrainer:
    """Training, by sentencepiece's options."""

    @staticmethod
    def Train(arg: str | None = None, logstream: Any = None, **kwargs: Any) -> None:
        """Train a model, and write it to `model_prefix`.model and .vocab, or to `model_writer`.

        Options are keyword arguments, or all in one string, `"--input=a.txt --model_prefix=m --vocab_size=1000"`.

        Args:
            logstream: taken, and not written to: training here says nothing.
            sentence_iterator: lines of text, in place of `input`, which is a file or a list of files.
            model_writer: a file, in place of `model_prefix`.
            normalizer: a `SentencePieceNormalizer`, in place of options that say how text is normalized.
            pretokenizer: a function that cuts a normalized line into parts, across which no piece may stand;
                `allow_inconsistent_pretokenization` lets the parts be other text.

        Raises:
            ValueError: an option that there is not, or one that cannot be used.
            RuntimeError: the same; and a file that cannot be read, or text that does not give such a model.
        """
        if isinstance(arg, str):
            Job.of(_options_of(arg)).run()
            return
        sentences = kwargs.pop("sentence_iterator", None)
        reader = kwargs.pop("sentence_reader", None)
        writer, normalizer = kwargs.pop("model_writer", None), kwargs.pop("normalizer", None)
        pretokenizer, may_differ = (kwargs.pop(name, None) for name in ("pretokenizer", INCONSISTENT))
        job = Job.of({name: _written(value) for name, value in kwargs.items()})
        job.pretokenizer, job.may_differ = pretokenizer, bool(may_differ)
        job.sentences, job.writer = sentences if reader is None else reader, writer
        if normalizer is not None:
            job.normalize_with(normalizer)
        job.run()


@dataclass
class Job:
    """A training run."""

    trainer: Message = field(default_factory=lambda: Message(proto.TRAINER))
    normalizer: Message = field(default_factory=lambda: Message(proto.NORMALIZER))
    denormalizer: Message = field(default_factory=lambda: Message(proto.NORMALIZER))
    sentences: Any = None
    writer: Any = None
    pretokenizer: Callable[[str], Iterable[str]] | None = None
    may_differ: bool = False

    @classmethod
    def of(cls, options: Mapping[str, str | list[str]]) -> Job:
        """The run that some options ask for.

        Raises:
            TrainingError: there is no such option, or a value is none.
        """
        job = cls()
        trainer, normalizer = ({own.name: own for own in table.values()} for table in (proto.TRAINER, proto.NORMALIZER))
        for name, given in options.items():
            if name == "normalization_rule_name":
                job.normalizer.values["name"] = given
            elif name == "denormalization_rule_tsv":
                off = ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces")
                job.denormalizer.values |= {"normalization_rule_tsv": given, **dict.fromkeys(off, False)}
            elif name == "minloglevel":
                _number(name, given)
            elif name in IGNORED:
                warn(f"{name} has no meaning, here as in sentencepiece")
            elif name in trainer:
                job.trainer.values[name] = _value(trainer[name], given)
            elif name in normalizer:
                job.normalizer.values[name] = _value(normalizer[name], given)
            else:
                raise TrainingError(f"unknown option {name!r}")
        return job

    def normalize_with(self, normalizer: Any) -> None:
        if not isinstance(normalizer, SentencePieceNormalizer):
            raise WrongTypeError(f"normalizer must be a SentencePieceNormalizer, not {type(normalizer).__name__}")
        if self.normalizer.values:
            raise TrainingError(f"{next(iter(self.normalizer.values))} does not go with normalizer, which says it")
        self.normalizer = normalizer.spec

    def run(self) -> None:
        trainer = self.trainer
        if (self.sentences is None) != bool(trainer.input):
            raise TrainingError("give either input or sentence_iterator: one of them, and not both")
        if (self.writer is None) != bool(trainer.model_prefix):
            raise TrainingError("give either model_prefix or model_writer: one of them, and not both")
        try:
            self._check()
            message = self._learned()
        except SubwordValueError as error:
            raise error if isinstance(error, TrainingError) else TrainingError(str(error)) from error
        data = proto.write(message)
        Model(data)  # what is written can be read
        if self.writer is not None:
            self.writer.write(data)
            return
        with_scores = trainer.vocabulary_output_piece_score
        lines = [f"{piece.piece}\t{piece.score:.6g}" if with_scores else piece.piece for piece in message.pieces]
        try:
            write_file(f"{trainer.model_prefix}.model", data)
            write_file(f"{trainer.model_prefix}.vocab", "".join(f"{line}\n" for line in lines).encode())
        except SubwordOSError as error:
            raise FileError(str(error)) from error

    def _check(self) -> None:
        trainer = self.trainer
        for name in ("seed_sentencepieces_file", "auto_character_coverage"):
            if trainer.values.get(name):
                raise TrainingError(f"{name} is not there; subword.train_sentencepiece lists what is")
        if self.pretokenizer is not None and trainer.pretokenization_delimiter:
            raise TrainingError("give pretokenizer or pretokenization_delimiter, not both")
        if trainer.input_format not in ("", "text", "tsv"):
            raise TrainingError(f"input_format must be text or tsv, not {trainer.input_format!r}")
        if not self.normalizer.escape_whitespaces:
            raise TrainingError("escape_whitespaces must be true: no entry has a space in it")
        fill_in_rules(self.normalizer, "nmt_nfkc")
        if self.denormalizer.normalization_rule_tsv:
            fill_in_rules(self.denormalizer, "identity")

    def _learned(self) -> Message:
        """The model that the text gives, with the options of this run."""
        trainer, normalizer = self.trainer, self.normalizer
        options: dict[str, Any] = {name: getattr(trainer, name) for name in SAME}
        options |= {name: getattr(normalizer, name) for name in ("add_dummy_prefix", "remove_extra_whitespaces")}
        options["model_type"] = next(name for name, type in MODEL_TYPES.items() if type == trainer.model_type).lower()
        options["precompiled_charsmap"] = base64.b64encode(normalizer.precompiled_charsmap).decode()
        lines: Iterable[str | bytes] = self._lines()
        if self._is_cut:
            # Nothing is learned across a user-defined symbol. Lines are normalized before they are cut, so not again.
            lines = self._cut(self._lines())
            options |= {"add_dummy_prefix": False, "remove_extra_whitespaces": False, "precompiled_charsmap": ""}
            symbols = [SPACE if symbol == " " else symbol for symbol in trainer.user_defined_symbols]
            options["user_defined_symbols"] = [*symbols, BOUNDARY]
            options["vocab_size"] += 1
        tokenizer = train_sentencepiece(
            lines,
            character_coverage=1.0 if trainer.use_all_vocab else trainer.character_coverage,
            threads=threads_of(trainer.num_threads),
            **options,
        )
        message = proto.read(files.write(tokenizer.spec))
        if self._is_cut:
            message.values["pieces"] = [piece for piece in message.pieces if piece.piece != BOUNDARY]
            for piece in message.pieces:
                piece.values["piece"] = " " if piece.piece == SPACE else piece.piece
        values = message.values | {"normalizer_spec": normalizer}
        trained = message.trainer_spec.values | trainer.values | {"vocab_size": len(message.pieces)}
        values["trainer_spec"] = Message(proto.TRAINER, trained)
        if self.denormalizer.precompiled_charsmap:
            values["denormalizer_spec"] = self.denormalizer
        return Message(proto.MODEL, values)

    @property
    def _is_cut(self) -> bool:
        """Whether lines are normalized, and cut, before they are learned from. If a space is a user-defined symbol,
        sentencepiece learns from text with `▁` all the same."""
        trainer = self.trainer
        return bool(self.pretokenizer or trainer.pretokenization_delimiter or " " in trainer.user_defined_symbols)

    # ======================== the text ========================

    def _cut(self, lines: Iterable[bytes]) -> Iterator[str]:
        """Lines, normalized, with `BOUNDARY` where they are cut."""
        spec, trainer = self.normalizer, self.trainer
        flags = spec.add_dummy_prefix, spec.remove_extra_whitespaces, True, trainer.treat_whitespace_as_suffix
        rules = base64.b64encode(spec.precompiled_charsmap).decode()
        normalizer, delimiter = _core.SentencePieceNormalizer(rules, flags, []), trainer.pretokenization_delimiter
        for line in lines:
            text = normalizer.apply(line)[0].decode()
            if self.pretokenizer is None:
                yield text.replace(delimiter, BOUNDARY) if delimiter else text
                continue
            parts = list(self.pretokenizer(text))
            if "".join(parts) != text and not self.may_differ:
                raise TrainingError(
                    f"pretokenizer cut {text[:60]!r} into {parts[:5]!r}, which is other text; "
                    f"{INCONSISTENT}=True lets that be"
                )
            yield BOUNDARY.join(parts)

    def _lines(self) -> Iterator[bytes]:
        """The lines to learn from."""
        lines: Iterable[tuple[bytes, int]] = self._counted_lines()
        trainer, most = self.trainer, self.trainer.input_sentence_size
        if most > 0:
            lines = _sample(lines, most) if trainer.shuffle_input_sentence else islice(lines, most)
        for line, count in lines:
            yield from repeat(line, count)

    def _counted_lines(self) -> Iterator[tuple[bytes, int]]:
        for line in self._all_lines():
            text, count = line, 1
            if self.trainer.input_format == "tsv":
                text, _, number = line.partition(b"\t")
                if not number.isdigit() or int(number) < 1:
                    raise TrainingError(f"a line of input_format=tsv is a text, a tab and a count, not {line!r}")
                count = int(number)
            if text and len(text) <= self.trainer.max_sentence_length and LEFT_OUT not in text:
                yield text, count

    def _all_lines(self) -> Iterator[bytes]:
        if self.sentences is None:
            for name in self.trainer.input:
                yield from file_bytes(name).split(b"\n")
            return
        try:
            lines = iter(self.sentences)
        except TypeError:
            kind = type(self.sentences).__name__
            raise WrongTypeError(f"sentence_iterator must give texts, which a {kind} does not") from None
        for line in lines:
            if not isinstance(line, (str, bytes)):
                raise TrainingError(f"sentence_iterator must give str or bytes, not {type(line).__name__}")
            yield utf8(line).rstrip(b"\r\n")


def _sample(lines: Iterable[tuple[bytes, int]], most: int) -> list[tuple[bytes, int]]:
    """Some of the lines, each as likely as any other: the same ones in each run."""
    generator, kept = random.Random(0), list[tuple[bytes, int]]()
    for number, line in enumerate(lines):
        if number < most:
            kept.append(line)
        elif (place := generator.randrange(number + 1)) < most:
            kept[place] = line
    return kept


def _options_of(arguments: str) -> dict[str, str]:
    """`--name=value` for `name=value`."""
    options: dict[str, str] = {}
    for argument in arguments.split(" ") if arguments else []:
        name, _, value = argument.removeprefix("--").partition("=")
        options.setdefault(name, value)
    return options


def _written(value: Any) -> str | list[str]:
    """A value as options have it: a string, or a list of them."""
    if isinstance(value, (list, tuple)):
        return [str(one) for one in value]
    return os.fsdecode(value) if isinstance(value, os.PathLike) else str(value)


def _value(own: Field, given: str | list[str]) -> Any:
    """The value of an option."""
    if own.repeated and isinstance(given, list):
        return given
    text = ",".join(given) if isinstance(given, list) else given
    if own.name == "model_type":
        if text.upper() not in MODEL_TYPES:
            raise TrainingError(f"model_type must be unigram, bpe, word or char, not {text!r}")
        return MODEL_TYPES[text.upper()]
    if own.repeated:
        return [quoted.replace('""', '"') if quoted else plain for quoted, plain in CSV.findall(text)]
    if own.kind == "bool":
        if text.lower() not in BOOLS:
            raise TrainingError(f"{own.name} must be true or false, not {text!r}")
        return BOOLS[text.lower()]
    if own.kind in ("int", "float"):
        return _number(own.name, text, int if own.kind == "int" else float)
    return text.encode() if own.kind == "bytes" else text


CSV = re.compile(r'(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))')
BOOLS = dict.fromkeys(["", "true", "t", "yes", "y", "1"], True) | dict.fromkeys(["false", "f", "no", "n", "0"], False)


def _number(name: str, text: Any, kind: type[int] | type[float] = int) -> Any:
    try:
        return kind(text)
    except (TypeError, ValueError):
        raise TrainingError(f"{name} must be a number, not {text!r}") from None
