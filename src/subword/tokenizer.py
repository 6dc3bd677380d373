"""The tokenizer that users hold: a `Spec` and the engine it was compiled into."""

from __future__ import annotations

import codecs
import operator
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from . import _core, sampling
from .arguments import choice, flag, integer, list_of, string, thread_count, token_content
from .encoding import Chat, Encoding, Padded, Ragged
from .engine import ENDS, ReferenceEngine, compile_spec
from .errors import SubwordValueError, UnknownTokenError
from .remap import Remap
from .spec import BPE, MAX_ID, ExtraToken, MatchTokens, Spec, SplitRegex, Unigram
from .special import find_fim

Text: TypeAlias = "str | bytes | bytearray | memoryview"
Names: TypeAlias = "Collection[str] | Literal['all']"

NONE: frozenset[str] = frozenset()
ALL: Literal["all"] = "all"
REPLACE = "replace"


def load(
    path: str | os.PathLike[str] | Any,
    *,
    pattern: str | SplitRegex | None = None,
    special_tokens: Mapping[str, int] | None = None,
    engine: Literal["core", "reference"] = "core",
) -> Tokenizer:
    """Read a tokenizer from a file, from a folder that holds one, from the Hugging Face Hub, or by the name of a known
    vocabulary; or take one of transformers.

    The format is recognised by the content. What a large vocabulary comes to is kept in a folder of the user's own, for
    the next load (`formats/compiled.py`); `SUBWORD_COMPILED=off` in the environment switches that off.

    Args:
        path: a native `.subword` file, a `tokenizer.json`, a GGUF file, a SentencePiece `.model`, Mistral's
            `tekken.json`, a `.tiktoken` file or Llama's `tokenizer.model`, a `vocab.json` with its `merges.txt`, a
            `vocab.txt` of BERT, a minbpe `.model`, codes of subword-nmt, CLIP's or RWKV's vocabulary file, or a folder
            with one of these. Where nothing is called so, one of `gpt2`, `r50k_base`,
            `p50k_base`, `p50k_edit`, `cl100k_base`, `o200k_base`, `o200k_harmony`: found on this machine or downloaded,
            and checked by its SHA-256. Of a model's folder, `tokenizer_config.json` and what else stands there beside
            the tokenizer file counts, too. `hf://org/name` (or `hf://org/name@revision`) is a model on the Hub. Or a
            tokenizer object of transformers.
        pattern: the split pattern (a name, or a `SplitRegex`), for a file that does not say it (`.tiktoken`,
            `vocab.json`) and is not a known one; for a `vocab.txt`, `"bert-uncased"` or `"bert-cased"`.
        special_tokens: its special tokens with their ids, likewise; `{}` for none.
        engine: `"core"`, or `"reference"` to run it in plain Python.

    Raises:
        SubwordOSError: the file cannot be read, or a known vocabulary is neither here nor can be downloaded.
        FormatError: the file is damaged, of no known format, or asks for something that is not supported.
        SubwordValueError: an argument cannot be used, or a folder holds more than one tokenizer.
    """
    from . import formats, with_transformers  # doors to rooms above: tests/test_layout.py lists them

    if with_transformers.is_one(path):
        return Tokenizer(with_transformers.read(path), engine=engine)
    return Tokenizer(formats.load(path, pattern, special_tokens), engine=engine)


class Tokenizer:
    """Turns text into ids and back. Immutable, safe to share between threads and processes, picklable.

    Two tokenizers are equal when their fingerprints are: when they mean the same, wherever they came from.

    Text is bytes. A `str` is taken as its UTF-8; a lone surrogate, which has none, as U+FFFD, and a surrogate pair as
    the character that it spells. Bytes that are not well-formed UTF-8 are kept as they are, each splitting as a
    character of no class would; so `decode_bytes(encode(data)) == data` for all bytes.

    Everything that takes text takes the same policy for special tokens, in tiktoken's words: those in
    `allowed_special` (`"all"` for all) are taken from the text; text that spells one in `disallowed_special` (`"all"`
    for all that are not allowed, the default) raises a `SpecialTokenError`; others are read as ordinary text.
    `add_special_tokens=True` puts the ids of the template around the text (such as a beginning-of-text token).
    """

    def __init__(self, spec: Spec, *, engine: Literal["core", "reference"] = "core") -> None:
        choice("engine", engine, ("core", "reference"))
        if not isinstance(spec, Spec):
            raise SubwordValueError(f"a Tokenizer is made of a Spec, not of {type(spec).__name__}; load() reads files")
        self._spec = spec
        self._engine_name = engine
        compiled = compile_spec(spec)  # which checks the spec, for the reference too
        self._engine: Any = compiled if engine == "core" else ReferenceEngine(spec)
        self._encode: Callable[[Text, Any, bool], list[int]] = self._engine.encode
        self._default_policy, self._ordinary_policy = self._engine.default_policy, self._engine.ordinary_policy
        self._policies: dict[tuple[str | frozenset[str], str | frozenset[str]], Any] = {}

    # ======================== what it is ========================

    @property
    def spec(self) -> Spec:
        """The tokenizer as data."""
        return self._spec

    @property
    def fingerprint(self) -> str:
        """64 hexadecimal digits, equal exactly for tokenizers that mean the same."""
        return self._spec.fingerprint

    @property
    def training(self) -> dict[str, Any] | None:
        """What the training run reported, for a tokenizer trained here, else None. See `train`.

        Of one that was extended or pruned, only what that did: nothing else would be true of it."""
        report: dict[str, Any] | None = self._spec.notes.get("training")
        return report and dict(report)

    @property
    def n_vocab(self) -> int:
        """The largest id plus one. Ids may have holes: `len(tok.vocab)` is the number of entries."""
        return int(self._engine.n_vocab)

    @cached_property
    def vocab(self) -> Mapping[bytes, int]:
        """Bytes of each token to its id; a view, not a copy."""
        return _VocabView(self)

    @property
    def special_tokens(self) -> dict[str, int]:
        """Special tokens to their ids, in the order of their ids. A copy."""
        return dict(self._specials)

    @property
    def bos_id(self) -> int | None:
        """The id that starts a text, if the tokenizer names one."""
        return self._spec.roles.get("bos")

    @property
    def eos_id(self) -> int | None:
        """The id that ends a text, if the tokenizer names one."""
        return self._spec.roles.get("eos")

    @property
    def pad_id(self) -> int | None:
        """The id that fills up batches, if the tokenizer names one."""
        return self._spec.roles.get("pad")

    @property
    def unk_id(self) -> int | None:
        """The id for what has none, if the tokenizer names one. A byte-level vocabulary needs none."""
        unk = self._spec.model.unk
        return self._spec.roles.get("unk") if unk is None else unk

    def token_bytes(self, id: int) -> bytes:
        """The bytes that `id` decodes to, by itself: without a `##` in front, and without a space.

        Raises:
            UnknownTokenError: the vocabulary has no such id.
        """
        data: bytes = self._engine.token_bytes(id)
        return data

    def token_piece(self, id: int) -> str:
        """The token as files of the vocabulary spell it: `Ġthe` for the bytes ` the` (GPT-2's byte alphabet), `the</w>`
        where the vocabulary has a marker for the end of a word, `##ing` where it has a prefix for what continues one.

        Raises:
            UnknownTokenError: the vocabulary has no such id.
        """
        data = self.token_bytes(id)
        id = operator.index(id)
        if id in self._extra_by_id:
            return self._extra_by_id[id]
        model = self._spec.model
        return model.spelled(model.vocab.piece_of(id) or data)

    def token_id(self, token: str | bytes) -> int:
        """The id of a token, given as its bytes or as text, with the marker or prefix that it has in the vocabulary.

        Raises:
            UnknownTokenError: it is no entry of the vocabulary, though it may well encode to several.
        """
        if not isinstance(token, (str, bytes, bytearray)):
            raise SubwordValueError(f"a token must be str or bytes, not {type(token).__name__}")
        data = token.encode("utf-8", "surrogatepass") if isinstance(token, str) else bytes(token)
        id: int | None = self._engine.token_id(data)
        if id is None:
            raise UnknownTokenError(f"{token!r} is no entry of the vocabulary; encode() gives the ids it is made of")
        return id

    def plan(self) -> list[tuple[str, str, str]]:
        """How the engine runs: rows of step, way, and why that way is exact."""
        rows: list[tuple[str, str, str]] = self._engine.plan()
        return rows

    def last_merges(self) -> npt.NDArray[np.int64]:
        """How the entries of the model are made: the two ids that the last merge of each entry's own bytes joins.

        Returns:
            Shape (entries, 2), in the order of `spec.model.vocab`. -1 for a single byte, and for an entry that its
            bytes do not encode to (unreachable by merges).

        Raises:
            SubwordValueError: the model has no merges.
        """
        if not isinstance(self._spec.model, BPE):
            raise SubwordValueError(f"a {type(self._spec.model).__name__} has no merges; only a BPE has")
        pairs: npt.NDArray[np.int64] = self._engine.last_merges()
        return pairs

    @cached_property
    def _specials(self) -> dict[str, int]:
        specials = sorted((t.id, t.content) for t in self._spec.extra if t.kind == "special")
        return {content: id for id, content in specials}

    @cached_property
    def _extra_by_id(self) -> dict[int, str]:
        return {token.id: token.content for token in self._spec.extra}

    # ======================== encoding ========================

    def encode(
        self,
        text: Text,
        allowed_special: Names = NONE,
        disallowed_special: Names = ALL,
        add_special_tokens: bool = False,
    ) -> list[int]:
        """The ids of a text.

        >>> tok.encode("hello world")                                       # doctest: +SKIP
        [15339, 1917]

        Raises:
            SpecialTokenError: the text spells a special token that is not allowed; the message says where and what
                to do.
        """
        if allowed_special is NONE and disallowed_special is ALL and add_special_tokens is False:
            return self._encode(text, self._default_policy, False)  # a short text takes less time than a call here
        return self._encode(text, *self._how(allowed_special, disallowed_special, add_special_tokens))

    def encode_ordinary(self, text: Text) -> list[int]:
        """The ids of a text in which special tokens are just text. Can never give a special id."""
        return self._encode(text, self._ordinary_policy, False)

    def nbest(self, text: Text, n: int) -> list[tuple[list[int], float]]:
        """The `n` best segmentations of a text, the best first, each with its score: the sum of its entries' scores.

        As `encode_ordinary`, with special tokens just text. There may be fewer.

        Raises:
            SubwordValueError: the model is not a Unigram.
        """
        return sampling.nbest(self._parts(text), integer("n", n, 1))

    def sample(
        self, text: Text, alpha: float = 1.0, *, seed: int, n: int = 1, nbest: int | None = None, distinct: bool = False
    ) -> list[tuple[list[int], float]]:
        """`n` random segmentations of a text, each with the logarithm of its probability (Kudo 2018, "Subword
        Regularization").

        A segmentation is drawn with a probability proportional to exp(`alpha` x its score), of all that there are, or
        of the `nbest` best: 0 draws all alike, 1 by the model, and large numbers nearly always the best one. With
        `distinct`, none is drawn twice. Special tokens are just text. The same `seed` draws the same.

        Raises:
            SubwordValueError: the model is not a Unigram; `distinct` goes with text that is one piece.
        """
        parts, n, alpha = self._parts(text), integer("n", n, 1), _number("alpha", alpha)
        seed = integer("seed", seed)
        if nbest is not None:
            if distinct:
                raise SubwordValueError("give nbest or distinct, not both")
            return sampling.sample_of_nbest(parts, n, alpha, integer("nbest", nbest, 1), seed)
        return (sampling.sample_different if distinct else sampling.sample)(parts, n, alpha, seed)

    def entropy(self, text: Text, alpha: float = 1.0) -> float:
        """The entropy, in nats, of the segmentations of a text as `sample` draws them.

        Raises:
            SubwordValueError: the model is not a Unigram.
        """
        return sampling.entropy(self._parts(text), _number("alpha", alpha))

    def _parts(self, text: Text) -> list[sampling.Part]:
        if not isinstance(self._spec.model, Unigram):
            kind = type(self._spec.model).__name__
            raise SubwordValueError(f"a {kind} gives segmentations no probabilities; only a Unigram does")
        if not isinstance(self._engine, _core.Engine) or not isinstance(self._ordinary_policy, _core.Policy):
            raise SubwordValueError("the plain-Python engine draws no samples; subword.unigram.reference shows how")
        return self._engine.segmentations(text, self._ordinary_policy)

    def encode_to_numpy(
        self,
        text: Text,
        allowed_special: Names = NONE,
        disallowed_special: Names = ALL,
        add_special_tokens: bool = False,
    ) -> npt.NDArray[np.uint32]:
        """The ids of a text as an array, shape (tokens,), uint32. No Python number is made."""
        policy, add = self._how(allowed_special, disallowed_special, add_special_tokens)
        ids: npt.NDArray[np.uint32] = self._engine.encode_to_numpy(text, policy, add)
        return ids

    def encode_batch(
        self,
        texts: Iterable[Text],
        allowed_special: Names = NONE,
        disallowed_special: Names = ALL,
        add_special_tokens: bool = False,
        threads: int | None = None,
    ) -> list[list[int]]:
        """The ids of several texts, worked on by `threads` threads (as many as there are cores, by default).

        The work is shared out by bytes: a long text is cut up for it, where that changes no id.
        """
        policy, add = self._how(allowed_special, disallowed_special, add_special_tokens)
        return list(self._engine.encode_batch(texts, policy, add, thread_count(threads)))

    def encode_batch_to_numpy(
        self,
        texts: Iterable[Text],
        allowed_special: Names = NONE,
        disallowed_special: Names = ALL,
        add_special_tokens: bool = False,
        threads: int | None = None,
    ) -> Ragged:
        """The ids of several texts in one buffer."""
        policy, add = self._how(allowed_special, disallowed_special, add_special_tokens)
        return Ragged(*self._engine.encode_batch_to_numpy(texts, policy, add, thread_count(threads)))

    def encode_padded(
        self,
        texts: Iterable[Text],
        pairs: Iterable[Text] | None = None,
        *,
        max_length: int | Literal["default"] | None = "default",
        stride: int | None = None,
        truncate: Literal["default", "longest", "first", "second"] = "default",
        truncation_side: Literal["default", "right", "left"] = "default",
        length: int | Literal["default"] | None = "default",
        pad_to_multiple_of: int | Literal["default"] = "default",
        padding_side: Literal["default", "right", "left"] = "default",
        pad_id: int | None = None,
        allowed_special: Names = NONE,
        disallowed_special: Names = ALL,
        add_special_tokens: bool = True,
        threads: int | None = None,
    ) -> Padded:
        """The ids of texts, or of pairs of texts, as arrays of one shape, with what models take beside them.

        What is `"default"` is as the tokenizer's file says (`spec.padded`; no other call looks at that), and where it
        says nothing, as said here.

        Args:
            pairs: the second text of each pair.
            max_length: rows have at most so many tokens, those of the template included; what is over is cut off. None,
                as by default, for no limit.
            stride: with `max_length`: keep what is over, in further rows, each starting with the last so many tokens of
                the text in the row before (on the left, ending with the first).
            truncate: what is cut of a pair: the longer one until both are as long, then both; the first; the second.
            truncation_side: where a text is cut; by default on the right.
            length: pad all rows to this; None, as by default, for the longest.
            pad_to_multiple_of: then make that longer, to a multiple of this.
            padding_side: on which side padding stands; by default on the right.
            pad_id: what to pad with, where the tokenizer names no pad token.

        Raises:
            SubwordValueError: arguments that cannot be used together, or padding is needed and there is no pad id.
            SpecialTokenError: a text spells a special token that is not allowed.
        """
        from . import batches

        shape = batches.shape_of(
            self.spec.padded,
            max_length=max_length,
            stride=stride,
            truncate=truncate,
            truncation_side=truncation_side,
            length=length,
            multiple_of=pad_to_multiple_of,
            padding_side=padding_side,
        )
        policy = allowed_special, disallowed_special
        return batches.encode_padded(self, texts, pairs, shape, pad_id, policy, add_special_tokens, threads)

    def tokenize(
        self,
        text: Text,
        allowed_special: Names = NONE,
        disallowed_special: Names = ALL,
        add_special_tokens: bool = False,
    ) -> Encoding:
        """The tokens of a text with their bytes and their places in it."""
        policy, add = self._how(allowed_special, disallowed_special, add_special_tokens)
        frozen = _core.frozen_text(text)
        ids, byte_spans, char_spans = self._engine.encode_with_spans(frozen, policy, add)
        listed = ids.tolist()
        return Encoding(
            text=frozen,
            ids=ids,
            token_bytes=[self.token_bytes(id) for id in listed],
            pieces=[self.token_piece(id) for id in listed],
            byte_spans=byte_spans,
            char_spans=char_spans,
        )

    def fim(
        self,
        prefix: Text,
        suffix: Text,
        order: Literal["psm", "spm"] = "psm",
        allowed_special: Names = NONE,
        disallowed_special: Names = "all",
    ) -> list[int]:
        """A prompt to fill in the middle: the ids of what stands before and after it, between the tokens for that.

        Which tokens those are, `special.FIM_TOKENS` says. The model goes on with the middle (M. Bavarian et al. 2022,
        "Efficient Training of Language Models to Fill in the Middle").

        Args:
            order: `"psm"`, prefix token, prefix, suffix token, suffix, middle token; or `"spm"`, prefix token, suffix
                token, suffix, middle token, prefix.

        Raises:
            SubwordValueError: the tokenizer has no such tokens.
            SpecialTokenError: a text spells a special token that is not allowed.
        """
        choice("order", order, ("psm", "spm"))
        known = {content: id for id, content in self._extra_by_id.items()}
        before, hole, middle = (known[token] for token in find_fim(known))
        first, last = (self.encode(text, allowed_special, disallowed_special) for text in (prefix, suffix))
        if order == "psm":
            return [before, *first, hole, *last, middle]
        return [before, hole, *last, middle, *first]

    def chat(
        self,
        messages: Iterable[Mapping[str, Any]],
        *,
        template: str | None = None,
        tools: Iterable[Mapping[str, Any]] | None = None,
        documents: Iterable[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
        **variables: Any,
    ) -> Chat:
        """A conversation as the model's own chat template writes it: ids, with the place, message and role of each.

        Only what the template itself spells can be a control token; all that comes from messages, tools, documents and
        variables is ordinary text, in whatever way the template puts it together.

        >>> tok.chat([{"role": "user", "content": "Hello"}], add_generation_prompt=True).ids     # doctest: +SKIP
        array([151644, 872, 198, 9707, 151645, 198, 151644, 77091, 198], dtype=uint32)

        Args:
            messages: mappings as the template wants them, most often with `role` and `content`.
            template: the name of one of `spec.chat`, or the text of one; by default `tool_use` where there are tools
                and a template of that name, else `default`.
            tools, documents: mappings of JSON, for templates that know them.
            add_generation_prompt: end with what stands in front of an answer.
            continue_final_message: end with what the last message says, so that a model goes on with it.
            variables: what else the template knows, such as `enable_thinking=False`.

        Raises:
            SubwordValueError: there is no template, or it refuses these messages, or Jinja2 is not installed
                (`pip install subword[chat]`).
            FormatError: the template is not Jinja.
        """
        from . import chat

        ends = add_generation_prompt, continue_final_message
        return chat.encode_chat(self, messages, template, tools, documents, *ends, variables)

    def count_chat(self, messages: Iterable[Mapping[str, Any]], **options: Any) -> int:
        """How many tokens a conversation takes. `options` are those of `chat`."""
        return len(self.chat(messages, **options).ids)

    def find_special(self, text: Text) -> list[tuple[int, int, int]]:
        """Where the text spells special tokens: (start, end, id), in characters; the leftmost, then the longest."""
        found: list[tuple[int, int, int]] = self._engine.find_special(text)
        return found

    # ======================== counting and cutting ========================

    def count(
        self,
        text: Text,
        allowed_special: Names = NONE,
        disallowed_special: Names = ALL,
        add_special_tokens: bool = False,
    ) -> int:
        """How many tokens a text takes: `len(encode(text))`, without making the list."""
        policy, add = self._how(allowed_special, disallowed_special, add_special_tokens)
        count: int = self._engine.count(text, policy, add)
        return count

    def count_batch(
        self,
        texts: Iterable[Text],
        allowed_special: Names = NONE,
        disallowed_special: Names = ALL,
        add_special_tokens: bool = False,
        threads: int | None = None,
    ) -> list[int]:
        """How many tokens each of several texts takes."""
        policy, add = self._how(allowed_special, disallowed_special, add_special_tokens)
        return list(self._engine.count_batch(texts, policy, add, thread_count(threads)))

    def fits(
        self,
        text: Text,
        n: int,
        allowed_special: Names = NONE,
        disallowed_special: Names = ALL,
        add_special_tokens: bool = False,
    ) -> bool:
        """Whether a text takes at most `n` tokens."""
        return self.count(text, allowed_special, disallowed_special, add_special_tokens) <= integer("n", n)

    def truncate(
        self,
        text: Any,
        n: int,
        side: Literal["right", "left"] = "right",
        allowed_special: Names = NONE,
        disallowed_special: Names = ALL,
        add_special_tokens: bool = False,
    ) -> Any:
        """The longest part of a text that takes at most `n` tokens and holds only whole characters, exactly.

        Args:
            side: where to cut: `"right"` keeps the start, `"left"` keeps the end.

        Returns:
            A `str` for a `str`, bytes for bytes.

        Raises:
            SubwordValueError: the tokens of the template alone are more than `n`.
        """
        policy, add = self._how(allowed_special, disallowed_special, add_special_tokens)
        choice("side", side, ("right", "left"))
        text = _core.frozen_text(text)
        start, end = self._engine.truncate(text, integer("n", n), side, policy, add)
        return text[start:end]

    def chunk(
        self,
        text: Any,
        max_tokens: int = 512,
        overlap: int = 0,
        ends: str = "character",
        allowed_special: Names = NONE,
        disallowed_special: Names = ALL,
        add_special_tokens: bool = False,
    ) -> list[Chunk]:
        """Cut a text into the fewest parts of at most `max_tokens` tokens each.

        (In a run of over 512 bytes that no split pattern can cut for sure, and that is not one piece either, such as a
        megabyte of digits, only the last places that can be reached are looked at, and there can be more than needed.)

        Args:
            overlap: a chunk starts before the end of the one before it, by the longest stretch of at most so many
                tokens (less where no room is left for anything new). Each chunk is then as long as it can be.
            ends: where chunks end: `"paragraph"` (at a blank line), `"sentence"` (by Unicode's UAX #29, for which a
                newline ends one too), `"word"` (at white space) or `"character"` (anywhere between two). A unit that
                alone does not fit is cut where the next finer ones end. Newlines stay with what they end, other white
                space with what follows it.

        Returns:
            Chunks `(text, start, end, tokens)`; `text[start:end]` of the original is the chunk's text.

        Raises:
            SubwordValueError: one character alone takes more than `max_tokens` tokens, or `overlap >= max_tokens`.
        """
        policy, add = self._how(allowed_special, disallowed_special, add_special_tokens)
        text = _core.frozen_text(text)
        choice("ends", ends, ENDS)
        limits = integer("max_tokens", max_tokens, 1), integer("overlap", overlap), ends
        spans = self._engine.chunk(text, limits, policy, add)
        return [Chunk(text[start:end], start, end, count) for start, end, count in spans]

    # ======================== decoding ========================

    def decode(self, ids: Iterable[int], errors: str = REPLACE, skip_special_tokens: bool = False) -> str:
        """The text of some ids. Ids may end inside a character: `errors` says what becomes of such bytes.

        Raises:
            UnknownTokenError: an id that the vocabulary does not have; the message says which and where.
            SubwordValueError: with `errors="strict"`, the bytes are not well-formed UTF-8.
        """
        if errors is not REPLACE:
            check_errors(errors)
        if skip_special_tokens is not False:
            skip_special_tokens = flag("skip_special_tokens", skip_special_tokens)
        try:
            text: str = self._engine.decode(ids, errors, skip_special_tokens)
        except UnicodeDecodeError as error:
            raise ill_formed(error) from error
        return text

    def decode_bytes(self, ids: Iterable[int], skip_special_tokens: bool = False) -> bytes:
        """The bytes of some ids, whatever they are as text."""
        data: bytes = self._engine.decode_bytes(ids, flag("skip_special_tokens", skip_special_tokens))
        return data

    def decode_batch(
        self,
        batch: Iterable[Iterable[int]],
        errors: str = "replace",
        skip_special_tokens: bool = False,
        threads: int | None = None,
    ) -> list[str]:
        """The texts of several lists of ids."""
        check_errors(errors)
        skip = flag("skip_special_tokens", skip_special_tokens)
        try:
            return list(self._engine.decode_batch(list_of("batch", batch), errors, skip, thread_count(threads)))
        except UnicodeDecodeError as error:
            raise ill_formed(error) from error

    def stream_decoder(self, errors: str = "replace", skip_special_tokens: bool = False) -> StreamDecoder:
        """A decoder for ids that arrive one by one."""
        return StreamDecoder(self, errors, skip_special_tokens)

    # ======================== making others ========================

    def with_tokens(
        self,
        special: Iterable[str] = (),
        added: Iterable[str | ExtraToken] = (),
        reserved: int = 0,
    ) -> Tokenizer:
        """A new tokenizer with more tokens; all existing ids stay.

        The new ones take the ids from `n_vocab` on: first `special`, then `added`, then `reserved` special tokens
        `<|reserved_0|>`, `<|reserved_1|>` … for later use. An item of `added` may be an `ExtraToken` with flags.

        Raises:
            SubwordValueError: a token is empty, is there already, or is given twice.
        """
        special, added = list_of("special", special), list_of("added", added)
        reserved = integer("reserved", reserved)
        taken = set(self._extra_by_id.values())
        wanted = [token if isinstance(token, ExtraToken) else ExtraToken(0, token, "added") for token in added]
        wanted = [ExtraToken(0, token, "special") for token in special] + wanted
        if self.n_vocab + len(wanted) + reserved > MAX_ID:
            raise SubwordValueError(f"{len(wanted) + reserved} more tokens would go beyond the largest id, {MAX_ID}")
        number = 0
        for _ in range(reserved):
            while f"<|reserved_{number}|>" in taken:
                number += 1
            wanted.append(ExtraToken(0, f"<|reserved_{number}|>", "special"))
            number += 1
        extra = list(self._spec.extra)
        for id, token in enumerate(wanted, self.n_vocab):
            if token.content in taken:
                raise SubwordValueError(f"the token {token.content!r} is there already, or given twice")
            taken.add(token.content)
            extra.append(replace(token, id=id))
        stages = self._spec.stages
        if extra and MatchTokens() not in stages:
            stages = (MatchTokens(), *stages)
        if any(token.normalized for token in extra) and MatchTokens(normalized=True) not in stages:
            raise SubwordValueError("normalized=True needs a tokenizer that matches tokens in normalized text")
        return Tokenizer(self._spec.replace(stages=stages, extra=tuple(extra)), engine=self._engine_name)

    def prune(
        self,
        keep: Iterable[int | str | bytes] | None = None,
        unused_on: Iterable[Text] | None = None,
        *,
        drop_tokens: Iterable[str] = (),
        threads: int | None = None,
    ) -> Changed:
        """A tokenizer without some of the entries. Every text whose tokens all stay has the same tokens as before.

        What stays is what `keep` names and what encoding `unused_on` gives; what these are merged from; the bytes (or
        characters) that pieces start as; and the special and other extra tokens, those of the template and of the roles
        included. The rest is removed, and the ids of what stays move together, in their order. Text that took a removed
        entry takes smaller ones.

        Args:
            keep: ids, or tokens as `str` or bytes.
            unused_on: texts; special tokens are taken from them. With `keep`, what either says stays.
            drop_tokens: extra tokens to remove, too; from the template and the roles as well. Text that spells one is
                ordinary text afterwards. Alone, it removes nothing else.
            threads: how many threads encode `unused_on`; all cores by default.

        Returns:
            `(tokenizer, remap)`; `remap` has the new id of each old one, and carries embedding tables over. The
            `training` of the tokenizer is about the pruning.

        Raises:
            UnknownTokenError: `keep` or `drop_tokens` names something that is not there.
            SubwordValueError: an argument cannot be used.
        """
        from . import pruning

        spec, remap = pruning.prune(self, keep, unused_on, drop_tokens, threads)
        return Changed(Tokenizer(spec, engine=self._engine_name), remap)

    def cut(self, n: int) -> Tokenizer:
        """The tokenizer with `n` entries in all: the last merges are left out. One training gives all sizes.

        Of a tokenizer that `train` made it is what training with `vocab_size=n` gives, its `training` included. (Only
        `least_count` is None where a file kept no history: all formats but subword's own.) Of others, the ids of what
        is left stay in their order and move up, so that there are no more holes than before.

        Raises:
            SubwordValueError: `n` is more than there are or leaves no room for what no merge makes, or (with
                `keep_whole_characters`) for a character whose beginning is there. Or the merges, or ranks, stand in no
                order in which they can have been learned; the message names an entry.
        """
        from . import sizes

        return sizes.cut(self, n)

    def extend(
        self,
        texts: Iterable[Any] | None = None,
        *,
        files: Iterable[str | os.PathLike[str]] | None = None,
        counts: Any = None,
        add: int,
        tie_rule: Literal["smallest-ids", "first-seen", "largest-string"] = "smallest-ids",
        weights: Mapping[str, Any] | None = None,
        min_count: int = 1,
        field: str = "text",
        errors: Literal["keep", "strict", "replace"] = "keep",
        memory: int | str | None = None,
        threads: int | None = None,
        progress: Callable[[str, int, int | None], object] | None = None,
    ) -> Changed:
        """Learn `add` more entries from text. Every old id and merge stays, and is used first: what the new ones join
        are the tokens that text had before. Learning on the same text from a smaller size gives the same as one run.

        New entries have the ids from `n_vocab` on. None spells an entry or an extra token that is there.

        Args:
            add: how many; fewer where the text has no pairs left, and a `SubwordWarning` says so.
            texts, files, counts, tie_rule, weights, min_count, field, errors, memory, threads, progress: as for
                `train`. The text is cut into pieces as this tokenizer does it; `counts` must have been made so.

        Returns:
            The tokenizer, and the remap: an embedding row for a new entry starts as the mean of those of the tokens
            that its bytes took before. Its `training` is about the extension.

        Raises:
            SubwordValueError: an argument cannot be used, or new entries would change what old ones make of a text:
                where merges go by rank and some entry does not encode to itself.
            SubwordOSError: a file cannot be read.
        """
        from . import extending

        return extending.extend(
            self, texts, files, counts, add, tie_rule, weights, min_count, field, errors, memory, threads, progress
        )

    def save(self, path: str | os.PathLike[str], format: str | None = None) -> Path:
        """Write the tokenizer to a file: all of it, or nothing. What would be written is read back first, and compared.

        Args:
            path: the file. An existing one is replaced only when the new one is complete.
            format: one of `subword.formats.FORMATS` by its name, such as `"tokenizer.json"`, `"gguf"` or
                `"model-folder"` (`path` is a folder); by default what the name says (`.subword`, `.json`, `.gguf`,
                `.model`, `tekken.json`, `.tiktoken`, `.codes`, `.txt.gz`, `vocab.txt`; with a slash at its end it is a
                model's folder).

        Raises:
            SubwordValueError: the format is unknown, or cannot hold a part of this tokenizer (the message says which).
            SubwordOSError: the file cannot be written.
        """
        from . import formats

        return formats.save(self._spec, path, format if format is None else string("format", format))

    def to_transformers(self) -> Any:
        """The tokenizer as a `PreTrainedTokenizerFast` of transformers, with its named tokens and chat templates.

        Raises:
            SubwordValueError: `tokenizer.json` cannot hold this tokenizer (the message says why), or transformers is
                not installed.
        """
        from . import with_transformers

        return with_transformers.to_transformers(self._spec)

    # ======================== as a value ========================

    def __eq__(self, other: object) -> bool:
        return self._spec == other._spec if isinstance(other, Tokenizer) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._spec)

    def __reduce__(self) -> Any:
        return _rebuild, (self._spec, self._engine_name)

    def __repr__(self) -> str:
        model = type(self._spec.model).__name__
        specials = len(self._specials)
        return f"<Tokenizer: {model}, {len(self.vocab):,} entries, {specials} special, {self.fingerprint[:12]}>"

    def _how(self, allowed: Names, disallowed: Names, add_special_tokens: bool) -> tuple[Any, bool]:
        """What a call does with special tokens, as the engine takes it: the policy, and whether to add the template."""
        if allowed is NONE and disallowed is ALL and add_special_tokens is False:
            return self._default_policy, False
        add = flag("add_special_tokens", add_special_tokens)
        key = hashable("allowed_special", allowed), hashable("disallowed_special", disallowed)
        policy = self._policies.get(key)
        if policy is None:
            taken = names_of("allowed_special", key[0], self._specials.keys())
            refused = names_of("disallowed_special", key[1], self._specials.keys() - taken)
            if len(self._policies) >= 64:
                self._policies.clear()
            policy = self._policies[key] = self._engine.policy(sorted(taken), sorted(refused))
        return policy, add


class Changed(NamedTuple):
    """A tokenizer made from another by changing its vocabulary, and what became of the ids."""

    tokenizer: Tokenizer
    remap: Remap


class Chunk(NamedTuple):
    """A part of a text: `text` is `original[start:end]`, and takes `tokens` tokens."""

    text: Any
    start: int
    end: int
    tokens: int


class StreamDecoder:
    """Gives text as soon as it is certain: the bytes of an unfinished character are held back.

    What `feed` and `finish` return, put together, is what `decode` gives for all the ids at once.
    """

    def __init__(self, tokenizer: Tokenizer, errors: str = "replace", skip_special_tokens: bool = False) -> None:
        if not isinstance(tokenizer, Tokenizer):
            raise SubwordValueError(f"a StreamDecoder is made of a Tokenizer, not of {type(tokenizer).__name__}")
        check_errors(errors)
        self._tokenizer = tokenizer
        self._skip = flag("skip_special_tokens", skip_special_tokens)
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors)
        self._errors = errors
        self._tail: list[int] = []  # the last ids, which may get a space behind them when more come

    def feed(self, ids: int | Iterable[int]) -> str:
        """The text that the next id, or the next few, make certain."""
        listed = ids if isinstance(ids, Iterable) else [ids]
        if self._tokenizer.spec.decode.looks_around:
            return self._decode(self._more(list(listed)), final=False)
        return self._decode(self._tokenizer.decode_bytes(listed, self._skip), final=False)

    def _more(self, ids: list[int]) -> bytes:
        """What `ids` add to the ids before them."""
        before, tail = self._tokenizer.decode_bytes(self._tail, self._skip), self._tail + ids
        data = self._tokenizer.decode_bytes(tail, self._skip)[len(before) :]
        self._tail = ids[-1:] if self._tokenizer.decode_bytes(ids[-1:], self._skip) else tail
        return data

    def finish(self) -> str:
        """What is left, and a fresh start."""
        text = self._decode(b"", final=True)
        self._utf8.reset()
        self._tail = []
        return text

    def _decode(self, data: bytes, final: bool) -> str:
        try:
            return self._utf8.decode(data, final)
        except UnicodeDecodeError as error:
            self._utf8.reset()
            raise SubwordValueError(f"the ids are not well-formed UTF-8: {error.reason}") from error


class _VocabView(Mapping[bytes, int]):
    """The entries and the extra tokens of a tokenizer, looked up where they are."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        extra = tokenizer.spec.extra
        own = np.isin([token.id for token in extra], tokenizer.spec.model.vocab.ids, invert=True)
        self._extra = [token for token, is_own in zip(extra, own.tolist(), strict=True) if is_own]

    def __getitem__(self, token: bytes) -> int:
        if not isinstance(token, bytes):
            raise UnknownTokenError(f"the keys of the vocabulary are bytes, not {type(token).__name__}")
        return self._tokenizer.token_id(token)

    def __iter__(self) -> Iterator[bytes]:
        yield from self._tokenizer.spec.model.vocab.pieces
        yield from (token.content.encode() for token in self._extra)

    def __len__(self) -> int:
        return len(self._tokenizer.spec.model.vocab) + len(self._extra)

    def __repr__(self) -> str:
        return f"<{len(self):,} entries>"


def _rebuild(spec: Spec, engine: Literal["core", "reference"]) -> Tokenizer:
    return Tokenizer(spec, engine=engine)


# ======================== arguments ========================


def names_of(name: str, value: str | frozenset[Any], everything: Collection[str]) -> frozenset[str]:
    """The names that a policy argument means: `everything` for `"all"`."""
    if isinstance(value, str):
        if value == "all":
            return frozenset(everything)
        raise SubwordValueError(f'{name} must be "all" or a set of tokens, not {value!r}: write {{{value!r}}}')
    return frozenset(map(token_content, value))


def hashable(name: str, value: Any) -> str | frozenset[Any]:
    """A policy argument as the key of what was made of it, not checked yet."""
    if isinstance(value, (str, frozenset)):
        return value
    try:
        return frozenset(list_of(name, value))
    except TypeError:
        raise SubwordValueError(f"{name} must hold strings, not lists or the like: {value!r}") from None


def check_errors(errors: str) -> None:
    try:
        b"\xff".decode("utf-8", errors)
    except UnicodeDecodeError:
        pass
    except (LookupError, TypeError, ValueError):
        known = "strict, replace, ignore, backslashreplace, surrogateescape"
        raise SubwordValueError(f"unknown way to treat errors: {errors!r}; there are {known}") from None


def ill_formed(error: UnicodeDecodeError) -> SubwordValueError:
    return SubwordValueError(
        f"the ids are not well-formed UTF-8 at byte {error.start} of the text ({error.reason}); pass "
        'errors="replace", or use decode_bytes'
    )


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -1e6 < value < 1e6:
        raise SubwordValueError(f"{name} must be a number, not {value!r}")
    return float(value)
