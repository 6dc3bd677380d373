"""One class a library: how it is loaded and called, in the fastest way that is public. Imported only in a worker.

A method that a class does not have is something that its library cannot do. `CannotError` says why, where that needs
saying.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, ClassVar

Vocabulary = dict[str, Any]  # what vocabularies.prepare gives
Texts = list[str]
Ids = list[int]


class CannotError(Exception):
    """The library has no way to do this. The message says why."""


class Library:
    """A library under test."""

    reads_original = True  # whether it reads a published file; the others carry vocabularies in a form of their own
    families: tuple[str, ...] = ("bpe",)  # whose vocabularies it reads, or trains; "bpe" is the one of bytes

    def imports(self) -> None:
        """Import the library, and NumPy where it gives arrays."""

    def imports_lazily(self) -> None:
        """Import what the library would import in its first call, which is part of its first pass otherwise."""

    def load(self, vocabulary: Vocabulary) -> None:
        """Read a vocabulary from its file."""
        raise CannotError("encodes with no vocabulary that is measured here")

    def arrays(self, texts: Texts, threads: int) -> Any:
        """The ids of many texts, as arrays where the library has them, and in what it gives where it has none."""
        raise CannotError("has no such call")

    def rows(self, encoded: Any) -> Iterable[Any]:
        """What `arrays` or `files` gave, as something a text that NumPy reads."""
        return encoded  # type: ignore[no-any-return]

    def lists(self, texts: Texts, threads: int) -> list[Ids]:
        """The ids of many texts as Python lists."""
        raise CannotError("has no such call")

    def counts(self, texts: Texts, threads: int) -> Iterable[int]:
        """How many tokens each of many texts takes, without making the ids."""
        raise CannotError("has no call that only counts")

    def encode_ordinary(self, text: str) -> Ids:
        """The ids of one text as a list; what looks like a special token is just text."""
        raise CannotError("has no such call")

    def encode(self, text: str) -> Ids:
        """The ids of one text as a list, special tokens looked for."""
        raise CannotError("has no such call")

    def files(self, paths: list[str], threads: int) -> Any:
        """Files in, ids out."""
        texts = []
        for path in paths:
            with open(path, encoding="utf-8") as file:
                texts.append(file.read())
        return self.arrays(texts, threads)

    def ids_to_decode(self, ids: Any, single: bool) -> Any:
        """The ids of a text, of which a NumPy array is given, in the form that is decoded fastest."""
        return ids.tolist()

    def decode(self, ids: Any) -> str:
        raise CannotError("has no such call")

    def decode_batch(self, batch: list[Any], threads: int) -> list[str]:
        return [self.decode(ids) for ids in batch]

    def train(self, texts: Texts, job: dict[str, Any]) -> list[bytes]:
        """The tokens learned, in the order in which they were, without the 256 bytes."""
        raise CannotError("trains no such vocabulary")

    def count_pieces(self, texts: Texts, job: dict[str, Any]) -> Any:
        """A table of the pieces of texts."""
        raise CannotError("counts no pieces")

    def count_files(self, files: list[str], job: dict[str, Any]) -> Any:
        """The same of files, within so much memory."""
        raise CannotError("counts no pieces")

    def train_files(self, files: list[str], job: dict[str, Any]) -> list[list[int]]:
        """A vocabulary is trained on files; something to be hashed."""
        raise CannotError("trains no such vocabulary")


class Subword(Library):
    families = ("bpe", "characters", "unigram", "scores", "wordpiece")

    def imports(self) -> None:
        import subword  # noqa: F401

    def load(self, vocabulary: Vocabulary) -> None:
        import subword

        if vocabulary["name"] == "trained":
            self.tok = subword.load(vocabulary["ranks"], pattern=vocabulary["pattern"], special_tokens={})
        else:
            self.tok = subword.load(vocabulary[vocabulary["original"]])
        # Texts spell Gemma's "<unk>", and the other libraries take that for the token.
        name, setting = ("allowed", "all") if vocabulary["name"] == "gemma3" else ("disallowed", ())
        self.special: dict[str, Any] = {f"{name}_special": setting}
        self.encode_ordinary = self.tok.encode_ordinary  # type: ignore[method-assign]
        self.encode = self.tok.encode  # type: ignore[method-assign]
        self.decode = self.tok.decode  # type: ignore[method-assign]

    def arrays(self, texts: Texts, threads: int) -> Any:
        return self.tok.encode_batch_to_numpy(texts, threads=threads, **self.special)

    def lists(self, texts: Texts, threads: int) -> list[Ids]:
        return self.tok.encode_batch(texts, threads=threads, **self.special)

    def counts(self, texts: Texts, threads: int) -> Iterable[int]:
        return self.tok.count_batch(texts, threads=threads, **self.special)

    def ids_to_decode(self, ids: Any, single: bool) -> Any:
        return ids.tolist() if single else ids

    def decode_batch(self, batch: list[Any], threads: int) -> list[str]:
        return self.tok.decode_batch(batch, threads=threads)

    def train(self, texts: Texts, job: dict[str, Any]) -> list[bytes]:
        import subword

        if job["family"] == "unigram":
            tok = subword.train_sentencepiece(lines_of(texts), vocab_size=job["vocab_size"], threads=job["threads"])
            return [tok.token_bytes(id) for id in range(3 + 256, tok.n_vocab)]
        if job["family"] == "wordpiece":
            tok = subword.train(
                texts,
                vocab_size=job["vocab_size"],
                algorithm="wordpiece",
                criterion="frequency",
                pattern="bert-uncased",
                threads=job["threads"],
            )
            return [tok.token_piece(id).encode() for id in range(1, tok.n_vocab)]
        tok = subword.train(
            texts,
            vocab_size=job["vocab_size"],
            pattern=job["pattern"],
            byte_order=job.get("byte_order", "value"),
            threads=job["threads"],
        )
        return [tok.token_bytes(id) for id in range(256, tok.n_vocab)]

    def count_pieces(self, texts: Texts, job: dict[str, Any]) -> Any:
        import subword

        return subword.count_pieces(texts, pattern=job["pattern"], threads=job["threads"])

    def count_files(self, files: list[str], job: dict[str, Any]) -> Any:
        import subword

        return subword.count_pieces(files=files, pattern=job["pattern"], memory=job["memory"], threads=job["threads"])

    def train_files(self, files: list[str], job: dict[str, Any]) -> list[list[int]]:
        import subword

        tok = subword.train(files=files, vocab_size=job["vocab_size"], pattern=job["pattern"], threads=job["threads"])
        return [list(tok.token_bytes(id)) for id in range(tok.n_vocab)]


class Gigatoken(Library):
    families = ("bpe", "characters", "scores")

    def imports(self) -> None:
        import gigatoken  # noqa: F401
        import numpy  # noqa: F401

    def imports_lazily(self) -> None:
        import awkward  # noqa: F401

    def load(self, vocabulary: Vocabulary) -> None:
        import gigatoken

        if vocabulary["original"] == "json":
            self.tok = gigatoken.Tokenizer(vocabulary["json"])
        elif vocabulary["original"] == "model":
            self.tok = gigatoken.Tokenizer.from_sentencepiece(vocabulary["model"])
        else:
            self.tok = gigatoken.Tokenizer.from_tiktoken(
                vocabulary["ranks"], vocabulary["pattern"], vocabulary["special_tokens"]
            )
        self.backend = self.tok.backend  # saves it two Python calls

    def arrays(self, texts: Texts, threads: int) -> Any:
        return self.backend.encode_batch(texts, parallel=threads != 1)

    def lists(self, texts: Texts, threads: int) -> list[Ids]:
        found: list[Ids] = self.backend.encode_batch_list(texts, parallel=threads != 1)
        return found

    def encode_ordinary(self, text: str) -> Ids:
        ids: Ids = self.backend.encode(text).tolist()
        return ids

    def encode(self, text: str) -> Ids:
        if not hasattr(self, "compat"):
            self.compat = self.tok.as_tiktoken()
        ids: Ids = self.compat.encode(text)
        return ids

    def files(self, paths: list[str], threads: int) -> Any:
        return self.tok.encode_files(paths, parallel=threads != 1)

    def ids_to_decode(self, ids: Any, single: bool) -> Any:
        return ids

    def decode(self, ids: Any) -> str:
        data: bytes = self.backend.decode(ids)
        return data.decode()

    def train(self, texts: Texts, job: dict[str, Any]) -> list[bytes]:
        import gigatoken

        if job["pattern"] != "gpt2":
            raise CannotError("trains with GPT-2's split only")
        separator = b"\x00\x00"
        data = separator.join(text.encode() for text in texts)
        _, merges = gigatoken.train_bpe(data, job["vocab_size"], [], separator=separator)
        return [left + right for left, right in merges]


class Quicktok(Library):
    """It carries its vocabularies. Others are imported into a form of its own, which `vocabularies.trained` does."""

    reads_original = False

    def imports(self) -> None:
        import numpy  # noqa: F401
        import quicktok  # noqa: F401

    def load(self, vocabulary: Vocabulary) -> None:
        import quicktok

        if vocabulary["pattern"] == "gpt2":
            raise CannotError("refuses GPT-2's split pattern")
        folder = os.path.dirname(vocabulary["json"]) if vocabulary["name"] == "trained" else ""
        self.tok = quicktok.get_encoding(vocabulary["name"], folder)
        self.encode_ordinary = self.tok.encode_ordinary  # type: ignore[method-assign]
        self.encode = self.tok.encode  # type: ignore[method-assign]
        self.decode = self.tok.decode  # type: ignore[method-assign]

    def arrays(self, texts: Texts, threads: int) -> Any:
        return self.tok.encode_batch(texts, threads)

    def rows(self, encoded: Any) -> Iterable[Any]:
        tokens, offsets = encoded
        return (tokens[start:end] for start, end in pairwise(offsets.tolist()))

    def lists(self, texts: Texts, threads: int) -> list[Ids]:
        if threads == 1:
            return [self.tok.encode_ordinary(text) for text in texts]
        return [row.tolist() for row in self.rows(self.tok.encode_batch(texts, threads))]

    def counts(self, texts: Texts, threads: int) -> Iterable[int]:
        if threads == 1:
            return [self.tok.count(text) for text in texts]
        import quicktok

        counted: Iterable[int] = quicktok.count_batch(self.tok, texts, threads)
        return counted

    def decode_batch(self, batch: list[Any], threads: int) -> list[str]:
        texts: list[str] = self.tok.decode_batch(batch)
        return texts


class Splintr(Library):
    """Its number of threads is an environment variable, which the driver sets."""

    PATTERNS: ClassVar = {
        "gpt2": "GPT2",
        "cl100k": "CL100K_BASE",
        "o200k": "O200K_BASE",
        "llama3": "LLAMA3",
        "qwen2": "QWEN2",
    }

    def imports(self) -> None:
        import numpy  # noqa: F401  # its flat form is bytes, which NumPy makes an array of
        import splintr  # noqa: F401

    def load(self, vocabulary: Vocabulary) -> None:
        import splintr

        if vocabulary["original"] == "json":
            self.tok: Any = splintr.from_json(vocabulary["json"])
        else:
            pattern = getattr(splintr, f"{self.PATTERNS[vocabulary['pattern']]}_PATTERN")
            self.tok = splintr.Tokenizer(vocabulary["ranks"], pattern, vocabulary["special_tokens"])
        self.encode_ordinary = self.tok.encode_ordinary  # type: ignore[method-assign]
        self.encode = self.tok.encode  # type: ignore[method-assign]
        self.decode = self.tok.decode  # type: ignore[method-assign]

    def arrays(self, texts: Texts, threads: int) -> Any:
        import numpy as np

        ids, offsets = self.tok.encode_batch_flat(texts)
        return np.frombuffer(ids, dtype=np.uint32), np.frombuffer(offsets, dtype=np.uint64)

    def rows(self, encoded: Any) -> Iterable[Any]:
        ids, offsets = encoded
        return (ids[start:end] for start, end in pairwise(offsets.tolist()))

    def lists(self, texts: Texts, threads: int) -> list[Ids]:
        found: list[Ids] = self.tok.encode_batch(texts)
        return found

    def decode_batch(self, batch: list[Any], threads: int) -> list[str]:
        texts: list[str] = self.tok.decode_batch(batch)
        return texts


class Tokie(Library):
    """Its number of threads is an environment variable, too."""

    families = ("bpe", "characters", "wordpiece")

    def imports(self) -> None:
        import numpy  # noqa: F401
        import tokie  # noqa: F401

    def load(self, vocabulary: Vocabulary) -> None:
        import tokie

        self.tok = tokie.Tokenizer.from_json(vocabulary["json"])

    def arrays(self, texts: Texts, threads: int) -> Any:
        return self.tok.encode_batch(texts, add_special_tokens=False)

    def rows(self, encoded: Any) -> Iterable[Any]:
        if isinstance(encoded, tuple):  # of encode_files
            ids, offsets = encoded
            return (ids[start:end] for start, end in pairwise(offsets.tolist()))
        return (encoding.ids for encoding in encoded)

    def lists(self, texts: Texts, threads: int) -> list[Ids]:
        return [encoding.ids for encoding in self.tok.encode_batch(texts, add_special_tokens=False)]

    def counts(self, texts: Texts, threads: int) -> Iterable[int]:
        counted: list[int] = self.tok.count_tokens_batch(texts)
        return counted

    def encode_ordinary(self, text: str) -> Ids:
        ids: Ids = self.tok.encode(text, add_special_tokens=False).ids
        return ids

    encode = encode_ordinary  # it has one way

    def files(self, paths: list[str], threads: int) -> Any:
        return self.tok.encode_files(paths)

    def decode(self, ids: Any) -> str:
        return self.tok.decode(ids) or ""

    def decode_batch(self, batch: list[Any], threads: int) -> list[str]:
        return [text or "" for text in self.tok.decode_batch(batch)]


class BpeOpenai(Library):
    """It reads its vocabularies while it is imported, so that its import is counted as loading."""

    reads_original = False

    def load(self, vocabulary: Vocabulary) -> None:
        import bpe_openai

        if vocabulary["name"] not in ("cl100k_base", "o200k_base"):
            raise CannotError("has only the vocabularies that it carries")
        self.enc = bpe_openai.get_encoding(vocabulary["name"])
        self.encode_ordinary = self.enc.encode_ordinary  # type: ignore[method-assign]
        self.encode = self.enc.encode  # type: ignore[method-assign]
        self.decode = self.enc.decode  # type: ignore[method-assign]

    def arrays(self, texts: Texts, threads: int) -> Any:
        return self.lists(texts, threads)

    def lists(self, texts: Texts, threads: int) -> list[Ids]:
        if threads == 1:
            return [self.enc.encode_ordinary(text) for text in texts]
        found: list[Ids] = self.enc.encode_ordinary_batch(texts, num_threads=threads)
        return found


class Tiktoken(Library):
    def imports(self) -> None:
        import tiktoken.load  # noqa: F401

    def load(self, vocabulary: Vocabulary) -> None:
        import tiktoken
        from tiktoken.load import load_tiktoken_bpe

        ranks = load_tiktoken_bpe(vocabulary["ranks"])
        special_tokens = vocabulary["special_tokens"]
        self.enc = tiktoken.Encoding(
            "benchmark", pat_str=vocabulary["regex"], mergeable_ranks=ranks, special_tokens=special_tokens
        )
        self.encode_ordinary = self.enc.encode_ordinary  # type: ignore[method-assign]
        self.encode = self.enc.encode  # type: ignore[method-assign]
        self.decode = self.enc.decode  # type: ignore[method-assign]

    def arrays(self, texts: Texts, threads: int) -> Any:
        return self.lists(texts, threads)  # its encode_to_numpy looks for special tokens, and is no faster

    def lists(self, texts: Texts, threads: int) -> list[Ids]:
        if threads == 1:
            return [self.enc.encode_ordinary(text) for text in texts]
        found: list[Ids] = self.enc.encode_ordinary_batch(texts, num_threads=threads)
        return found

    def decode_batch(self, batch: list[Any], threads: int) -> list[str]:
        if threads == 1:
            return [self.enc.decode(ids) for ids in batch]
        texts: list[str] = self.enc.decode_batch(batch, num_threads=threads)
        return texts


class Tokenizers(Library):
    """Hugging Face tokenizers. Its number of threads is an environment variable, too."""

    families = ("bpe", "characters", "wordpiece")

    def imports(self) -> None:
        import tokenizers  # noqa: F401

    def load(self, vocabulary: Vocabulary) -> None:
        import tokenizers

        self.tok = tokenizers.Tokenizer.from_file(vocabulary["json"])
        self.tok.no_truncation()  # as BERT's file asks for
        self.tok.no_padding()

    def arrays(self, texts: Texts, threads: int) -> Any:
        return self.tok.encode_batch_fast(texts, add_special_tokens=False)

    def rows(self, encoded: Any) -> Iterable[Any]:
        return (encoding.ids for encoding in encoded)

    def lists(self, texts: Texts, threads: int) -> list[Ids]:
        return [encoding.ids for encoding in self.tok.encode_batch_fast(texts, add_special_tokens=False)]

    def encode_ordinary(self, text: str) -> Ids:
        ids: Ids = self.tok.encode(text, add_special_tokens=False).ids
        return ids

    encode = encode_ordinary  # it has one way

    def decode(self, ids: Any) -> str:
        text: str = self.tok.decode(ids, skip_special_tokens=False)
        return text

    def decode_batch(self, batch: list[Any], threads: int) -> list[str]:
        texts: list[str] = self.tok.decode_batch(batch, skip_special_tokens=False)
        return texts

    def train(self, texts: Texts, job: dict[str, Any]) -> list[bytes]:
        from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

        if job["family"] == "wordpiece":
            tok = Tokenizer(models.WordPiece(unk_token="[UNK]"))
            tok.normalizer = normalizers.BertNormalizer()
            tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
            words = trainers.WordPieceTrainer(
                vocab_size=job["vocab_size"], special_tokens=["[UNK]"], limit_alphabet=1 << 30, show_progress=False
            )
            tok.train_from_iterator(texts, words, length=len(texts))
            by_id = sorted((id, token) for token, id in tok.get_vocab().items())
            return [token.encode() for _, token in by_id[1:]]
        tok = Tokenizer(models.BPE())
        steps = [
            pre_tokenizers.Split(Regex(job["plain"]), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
        tok.pre_tokenizer = pre_tokenizers.Sequence(steps)
        trainer = trainers.BpeTrainer(
            vocab_size=job["vocab_size"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            special_tokens=[],
            show_progress=False,
        )
        tok.train_from_iterator(texts, trainer, length=len(texts))
        by_id = sorted((id, token) for token, id in tok.get_vocab().items())
        bytes_of = {char: byte for byte, char in enumerate(byte_alphabet())}
        return [bytes(bytes_of[char] for char in token) for _, token in by_id[256:]]


class Kitoken(Library):
    families = ("bpe", "characters", "unigram", "scores", "wordpiece")

    def imports(self) -> None:
        import kitoken  # noqa: F401

    def load(self, vocabulary: Vocabulary) -> None:
        from kitoken import Kitoken as Library

        if vocabulary["original"] == "model":
            self.tok = Library.from_sentencepiece_file(vocabulary["model"])
        elif vocabulary["original"] == "json" or vocabulary["name"] == "trained":  # it knows rank files by their length
            self.tok = Library.from_tokenizers_file(vocabulary["json"])
        else:
            self.tok = Library.from_tiktoken_file(vocabulary["ranks"])
        self.encode_ordinary = self.tok.encode  # type: ignore[method-assign]

    def arrays(self, texts: Texts, threads: int) -> Any:
        return self.lists(texts, threads)

    def lists(self, texts: Texts, threads: int) -> list[Ids]:
        found: list[Ids] = self.tok.encode_all(texts)
        return found

    def encode(self, text: str) -> Ids:
        ids: Ids = self.tok.encode(text, True)
        return ids

    def decode(self, ids: Any) -> str:
        data: bytes = self.tok.decode(ids, True)
        return data.decode()

    def decode_batch(self, batch: list[Any], threads: int) -> list[str]:
        return [data.decode() for data in self.tok.decode_all(batch, True)]


class Sentencepiece(Library):
    """It has no byte-level BPE with a split pattern."""

    families = ("unigram", "scores")

    def imports(self) -> None:
        import sentencepiece  # noqa: F401

    def load(self, vocabulary: Vocabulary) -> None:
        import sentencepiece

        self.model = sentencepiece.SentencePieceProcessor(model_file=vocabulary["model"])
        encode: Any = self.model.encode_as_ids
        self.encode = self.encode_ordinary = encode  # type: ignore[method-assign]

    def arrays(self, texts: Texts, threads: int) -> Any:
        return self.lists(texts, threads)  # its arrays are made from lists, and no faster

    def lists(self, texts: Texts, threads: int) -> list[Ids]:
        found: list[Ids] = self.model.encode(texts, num_threads=threads)
        return found

    def train(self, texts: Texts, job: dict[str, Any]) -> list[bytes]:
        import io

        import sentencepiece

        written = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines_of(texts)),
            model_writer=written,
            vocab_size=job["vocab_size"],
            num_threads=job["threads"],
            byte_fallback=True,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            max_sentence_length=1 << 30,
            minloglevel=2,
        )
        model = sentencepiece.SentencePieceProcessor(model_proto=written.getvalue())
        pieces = (model.id_to_piece(id) for id in range(3 + 256, model.get_piece_size()))
        return [piece.replace("\u2581", " ").encode() for piece in pieces]


class Rustbpe(Library):
    """A trainer; it has no file of its own to load."""

    def train(self, texts: Texts, job: dict[str, Any]) -> list[bytes]:
        import rustbpe

        tok = rustbpe.Tokenizer()
        tok.train_from_iterator(iter(texts), job["vocab_size"], pattern=job["regex"])
        return [bytes(token) for token, rank in sorted(tok.get_mergeable_ranks(), key=lambda row: row[1]) if rank > 255]


def lines_of(texts: Texts) -> Texts:
    """What SentencePiece learns from: a sentence a line."""
    return [line for text in texts for line in text.split("\n") if line]


def byte_alphabet() -> list[str]:
    """For each byte, the character that stands for it in byte-level vocabularies since GPT-2."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in visible]
    chars = {byte: chr(byte) for byte in visible} | {byte: chr(256 + i) for i, byte in enumerate(others)}
    return [chars[byte] for byte in range(256)]


LIBRARIES: dict[str, type[Library]] = {
    "subword": Subword,
    "gigatoken": Gigatoken,
    "quicktok": Quicktok,
    "splintr": Splintr,
    "tokie": Tokie,
    "bpe-openai": BpeOpenai,
    "tiktoken": Tiktoken,
    "tokenizers": Tokenizers,
    "kitoken": Kitoken,
    "sentencepiece": Sentencepiece,
    "rustbpe": Rustbpe,
}

TRAINERS = ("subword", "gigatoken", "tokenizers", "rustbpe", "sentencepiece")
COUNTERS = ("subword",)
ENCODERS = tuple(name for name in LIBRARIES if name != "rustbpe")

PACKAGES = {"quicktok": "quicktok-v1", "splintr": "splintr-rs"}
"""What a library is called on PyPI, where that is not its name."""
