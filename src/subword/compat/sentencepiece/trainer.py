"""`SentencePieceTrainer`: training with sentencepiece's options, and its files."""

from __future__ import annotations

import base64
import csv
import io
import os
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, repeat
from typing import Any

from ...errors import SubwordOSError, SubwordValueError, warn
from ...formats import sentencepiece as files
from ...formats import sentencepiece_model as proto
from ...formats.files import write_file
from ...formats.wire import Field, Message
from ...training_unigram import train_unigram
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
        if kwargs.pop("pretokenizer", None) is not None:
            raise TrainingError("pretokenizer: text is not cut by a function here; subword.train takes a split pattern")
        kwargs.pop("allow_inconsistent_pretokenization", None)
        job = Job.of({name: _written(value) for name, value in kwargs.items()})
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

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Job:
        """The run that some options ask for.

        Raises:
            TrainingError: there is no such option, or a value is none.
        """
        job = cls()
        trainer, normalizer = ({own.name: own for own in table.values()} for table in (proto.TRAINER, proto.NORMALIZER))
        for name, text in options.items():
            if name == "normalization_rule_name":
                job.normalizer.values["name"] = text
            elif name == "denormalization_rule_tsv":
                off = ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces")
                job.denormalizer.values |= {"normalization_rule_tsv": text, **dict.fromkeys(off, False)}
            elif name == "minloglevel":
                _number(name, text)
            elif name in IGNORED:
                warn(f"{name} has no meaning, here as in sentencepiece")
            elif name in trainer:
                job.trainer.values[name] = _value(trainer[name], text)
            elif name in normalizer:
                job.normalizer.values[name] = _value(normalizer[name], text)
            else:
                raise TrainingError(f"unknown option {name!r}")
        return job

    def normalize_with(self, normalizer: Any) -> None:
        if not isinstance(normalizer, SentencePieceNormalizer):
            raise WrongTypeError(f"normalizer must be a SentencePieceNormalizer, not {type(normalizer).__name__}")
        if self.normalizer.values:
            raise TrainingError(f"{next(iter(self.normalizer.values))} does not go with normalizer, which says it")
        self.normalizer = normalizer._spec

    def run(self) -> None:
        trainer = self.trainer
        if (self.sentences is None) != bool(trainer.input):
            raise TrainingError("give either input or sentence_iterator: one of them, and not both")
        if (self.writer is None) != bool(trainer.model_prefix):
            raise TrainingError("give either model_prefix or model_writer: one of them, and not both")
        try:
            self._check()
            message = self._laid_out(self._learned())
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
        if trainer.model_type != proto.UNIGRAM:
            raise TrainingError(f"models of the type {trainer.model_type} are not trained here yet")
        for name in ("pretokenization_delimiter", "seed_sentencepieces_file", "auto_character_coverage"):
            if trainer.values.get(name):
                raise TrainingError(f"{name} is not there; subword.train_unigram lists what is")
        if trainer.input_format not in ("", "text", "tsv"):
            raise TrainingError(f"input_format must be text or tsv, not {trainer.input_format!r}")
        if not self.normalizer.escape_whitespaces:
            raise TrainingError("escape_whitespaces must be true: spaces would be in no entry")
        if trainer.unk_id < 0:
            raise TrainingError("unk_id must be at least 0: a model has an unknown piece")
        if not trainer.hard_vocab_limit and trainer.use_all_vocab:
            trainer.values["character_coverage"] = 1.0
        fill_in_rules(self.normalizer, self.denormalizer)

    def _learned(self) -> Message:
        """The model that the text gives, with the pieces of `_named` somewhere."""
        trainer, normalizer = self.trainer, self.normalizer
        named = self._named()
        unk = trainer.unk_piece
        tokenizer = train_unigram(
            self._lines(),
            vocab_size=trainer.vocab_size,
            character_coverage=1.0 if trainer.use_all_vocab else trainer.character_coverage,
            byte_fallback=trainer.byte_fallback,
            seed_sentencepiece_size=trainer.seed_sentencepiece_size,
            shrinking_factor=trainer.shrinking_factor,
            num_sub_iterations=trainer.num_sub_iterations,
            max_sentencepiece_length=trainer.max_sentencepiece_length,
            split_by_unicode_script=trainer.split_by_unicode_script,
            split_by_number=trainer.split_by_number,
            split_by_whitespace=trainer.split_by_whitespace,
            split_digits=trainer.split_digits,
            treat_whitespace_as_suffix=trainer.treat_whitespace_as_suffix,
            allow_whitespace_only_pieces=trainer.allow_whitespace_only_pieces,
            add_dummy_prefix=normalizer.add_dummy_prefix,
            remove_extra_whitespaces=normalizer.remove_extra_whitespaces,
            precompiled_charsmap=base64.b64encode(normalizer.precompiled_charsmap).decode(),
            control_symbols=[piece for piece, type in named.items() if type == proto.CONTROL],
            user_defined_symbols=[piece for piece, type in named.items() if type == proto.USER_DEFINED],
            required_chars=trainer.required_chars,
            unk_piece=unk,
            bos_piece=None,
            eos_piece=None,
            pad_piece=None,
            unk_surface=trainer.unk_surface,
            hard_vocab_limit=trainer.hard_vocab_limit,
            threads=threads_of(trainer.num_threads),
        )
        return proto.read(files.write(tokenizer.spec))

    def _named(self) -> dict[str, int]:
        """The pieces that options name, but for the unknown piece and the bytes, and their types, in the order of the
        options."""
        trainer, named = self.trainer, dict[str, int]()
        for role in ("bos", "eos", "pad"):
            if getattr(trainer, f"{role}_id") >= 0:
                named[getattr(trainer, f"{role}_piece")] = proto.CONTROL
        roles = set(named)
        for symbols, type in (("control_symbols", proto.CONTROL), ("user_defined_symbols", proto.USER_DEFINED)):
            for symbol in getattr(trainer, symbols):
                if symbol == trainer.unk_piece or (symbol in named and symbol not in roles):
                    raise TrainingError(f"{symbols}: {symbol!r} is there already")
                roles.discard(symbol)
                named[symbol] = type
        return named

    def _laid_out(self, learned: Message) -> Message:
        """The model with each piece at its id, and with the options of this run."""
        trainer, pieces = self.trainer, {piece.piece: piece for piece in learned.pieces}
        fixed: dict[int, str] = {}
        for role in ("unk", "bos", "eos", "pad"):
            id, piece = getattr(trainer, f"{role}_id"), getattr(trainer, f"{role}_piece")
            if id < 0:
                continue
            if id in fixed or id >= len(pieces):
                what = "is that of another piece" if id in fixed else f"is beyond the {len(pieces)} entries"
                raise TrainingError(f"{role}_id={id} {what}")
            fixed[id] = piece
        first = [name for name in self._named() if name not in fixed.values()]
        first += [piece.piece for piece in learned.pieces if piece.type == proto.BYTE]
        others = [piece.piece for piece in learned.pieces if piece.type == proto.NORMAL]
        rest = iter([*first, *others])
        rows = [pieces[fixed[id]] if id in fixed else pieces[next(rest)] for id in range(len(pieces))]
        trained = Message(proto.TRAINER, trainer.values | {"vocab_size": len(rows)})
        values = {"pieces": rows, "trainer_spec": trained, "normalizer_spec": self.normalizer}
        if self.denormalizer.precompiled_charsmap:
            values["denormalizer_spec"] = self.denormalizer
        return Message(proto.MODEL, values)

    # ======================== the text ========================

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


def _written(value: Any) -> str:
    """A value as sentencepiece's options have it: a list as a line of CSV."""
    if not isinstance(value, (list, tuple)):
        return os.fspath(value) if isinstance(value, os.PathLike) else str(value)
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow([str(one) for one in value])
    return out.getvalue()


def _value(own: Field, text: str) -> Any:
    """The value of an option."""
    if own.name == "model_type":
        if text.upper() not in MODEL_TYPES:
            raise TrainingError(f"model_type must be unigram, bpe, word or char, not {text!r}")
        return MODEL_TYPES[text.upper()]
    if own.repeated:
        return _csv(text)
    if own.kind == "bool":
        if text.lower() not in BOOLS:
            raise TrainingError(f"{own.name} must be true or false, not {text!r}")
        return BOOLS[text.lower()]
    if own.kind in ("int", "float"):
        return _number(own.name, text, int if own.kind == "int" else float)
    return text.encode() if own.kind == "bytes" else text


BOOLS = dict.fromkeys(["", "true", "t", "yes", "y", "1"], True) | dict.fromkeys(["false", "f", "no", "n", "0"], False)


def _csv(line: str) -> list[str]:
    """The fields of one line of CSV, which may hold line ends in quotes."""
    return [field for row in csv.reader(io.StringIO(line, newline="")) for field in row]


def _number(name: str, text: str, kind: type[int] | type[float] = int) -> Any:
    try:
        return kind(text)
    except ValueError:
        raise TrainingError(f"{name} must be a number, not {text!r}") from None
