"""One class a library: how it is loaded from a rank file, how it encodes, how it trains. Imported only in a worker."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.uint32]


class Library(Protocol):
    """A library under test."""

    def load(self, job: dict[str, Any]) -> None:
        """Build an encoder from the files that the job names."""

    def encode_many(self, texts: list[str], threads: int) -> Any:
        """The ids of many texts, in the fastest public way, whatever it returns."""

    def arrays(self, encoded: Any) -> Iterable[Ids]:
        """What `encode_many` returned, as an array a text."""

    def encode_one(self, text: str) -> Any:
        """The ids of one text as a list, or what the library gives in its place; special-looking text is just text."""

    def train(self, texts: list[str], job: dict[str, Any]) -> list[bytes]:
        """The tokens learned, in the order in which they were, without the 256 bytes."""


def read_ranks(path: str) -> dict[bytes, int]:
    """A rank file: a token in base64 and its rank on each line."""
    rows = (line.split() for line in Path(path).read_bytes().splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in rows}


class Subword:
    def load(self, job: dict[str, Any]) -> None:
        import subword
        from subword.spec import BPE, Split, Vocab

        model = BPE(Vocab.of(read_ranks(job["ranks"]).items()), priority="rank")
        self.tok = subword.Tokenizer(subword.Spec(stages=(Split(job["pattern"]),), model=model))

    def encode_many(self, texts: list[str], threads: int) -> Any:
        return self.tok.encode_batch_to_numpy(texts, threads=threads)

    def arrays(self, encoded: Any) -> Iterable[Ids]:
        return (encoded[i] for i in range(len(encoded)))

    def encode_one(self, text: str) -> Any:
        return self.tok.encode_ordinary(text)

    def train(self, texts: list[str], job: dict[str, Any]) -> list[bytes]:
        import subword

        tok = subword.train(
            texts,
            vocab_size=job["vocab_size"],
            pattern=job["pattern"],
            byte_order=job.get("byte_order", "value"),
            threads=job["threads"],
        )
        return [tok.token_bytes(id) for id in range(256, tok.n_vocab)]


class Tiktoken:
    def load(self, job: dict[str, Any]) -> None:
        import tiktoken

        self.enc = tiktoken.Encoding(
            "benchmark", pat_str=job["regex"], mergeable_ranks=read_ranks(job["ranks"]), special_tokens={}
        )

    def encode_many(self, texts: list[str], threads: int) -> Any:
        if threads == 1:
            return [self.enc.encode_ordinary(text) for text in texts]
        return self.enc.encode_ordinary_batch(texts, num_threads=threads)

    def arrays(self, encoded: Any) -> Iterable[Ids]:
        return (np.array(ids, dtype=np.uint32) for ids in encoded)

    def encode_one(self, text: str) -> Any:
        return self.enc.encode_ordinary(text)

    def train(self, texts: list[str], job: dict[str, Any]) -> list[bytes]:
        raise NotImplementedError


class Tokenizers:
    """Hugging Face tokenizers. Its number of threads is an environment variable, which the driver sets."""

    def load(self, job: dict[str, Any]) -> None:
        import tokenizers

        self.tok = tokenizers.Tokenizer.from_file(job["tokenizer_json"])

    def encode_many(self, texts: list[str], threads: int) -> Any:
        return self.tok.encode_batch_fast(texts, add_special_tokens=False)

    def arrays(self, encoded: Any) -> Iterable[Ids]:
        return (np.array(encoding.ids, dtype=np.uint32) for encoding in encoded)

    def encode_one(self, text: str) -> Any:
        return self.tok.encode(text, add_special_tokens=False).ids

    def train(self, texts: list[str], job: dict[str, Any]) -> list[bytes]:
        tok = byte_level(job["plain"])
        from tokenizers import pre_tokenizers, trainers

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


class Gigatoken:
    def load(self, job: dict[str, Any]) -> None:
        import gigatoken

        self.tok = gigatoken.Tokenizer.from_tiktoken(job["ranks"], pretokenizer=job["pattern"], special_tokens={})

    def encode_many(self, texts: list[str], threads: int) -> Any:
        return self.tok.encode_batch(texts, parallel=threads != 1)

    def arrays(self, encoded: Any) -> Iterable[Ids]:
        return (np.asarray(ids, dtype=np.uint32) for ids in encoded)

    def encode_one(self, text: str) -> Any:
        return self.tok.encode(text)  # an array: it gives no list for one text

    def train(self, texts: list[str], job: dict[str, Any]) -> list[bytes]:
        import gigatoken

        separator = b"\x00\x00"
        _, merges = gigatoken.train_bpe(
            separator.join(text.encode() for text in texts), job["vocab_size"], [], separator=separator
        )
        return [left + right for left, right in merges]


class Rustbpe:
    def load(self, job: dict[str, Any]) -> None:
        raise NotImplementedError

    def encode_many(self, texts: list[str], threads: int) -> Any:
        raise NotImplementedError

    def arrays(self, encoded: Any) -> Iterable[Ids]:
        raise NotImplementedError

    def encode_one(self, text: str) -> Any:
        raise NotImplementedError

    def train(self, texts: list[str], job: dict[str, Any]) -> list[bytes]:
        import rustbpe

        tok = rustbpe.Tokenizer()
        tok.train_from_iterator(iter(texts), job["vocab_size"], pattern=job["regex"])
        return [bytes(token) for token, rank in sorted(tok.get_mergeable_ranks(), key=lambda row: row[1]) if rank > 255]


LIBRARIES: dict[str, type[Library]] = {
    "subword": Subword,
    "tiktoken": Tiktoken,
    "tokenizers": Tokenizers,
    "gigatoken": Gigatoken,
    "rustbpe": Rustbpe,
}


# ---- Hugging Face's form of a rank file ----


def byte_alphabet() -> list[str]:
    """For each byte, the character that stands for it in byte-level vocabularies since GPT-2."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in visible]
    chars = {byte: chr(byte) for byte in visible} | {byte: chr(256 + i) for i, byte in enumerate(others)}
    return [chars[byte] for byte in range(256)]


def byte_level(plain: str) -> Any:
    """An empty byte-level BPE tokenizer that splits with a regular expression."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers

    tok = Tokenizer(models.BPE())
    steps = [
        pre_tokenizers.Split(Regex(plain), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ]
    tok.pre_tokenizer = pre_tokenizers.Sequence(steps)
    return tok


def write_tokenizer_json(ranks_path: str, plain: str, path: Path) -> None:
    """The same tokenizer as a merge list: each token is made from the two parts that the tokens before it leave."""
    from tokenizers import models

    ranks = read_ranks(ranks_path)
    alphabet = byte_alphabet()

    def spell(token: bytes) -> str:
        return "".join(alphabet[byte] for byte in token)

    merges = []
    for token, rank in sorted(ranks.items(), key=lambda row: row[1]):
        parts = [token[i : i + 1] for i in range(len(token))]
        while len(parts) > 2:
            best, at = min((ranks.get(parts[i] + parts[i + 1], rank), i) for i in range(len(parts) - 1))
            if best >= rank:
                break
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        if len(parts) == 2:
            merges.append((spell(parts[0]), spell(parts[1])))

    tok = byte_level(plain)
    tok.model = models.BPE({spell(token): rank for token, rank in ranks.items()}, merges, ignore_merges=True)
    partial = path.with_suffix(f".{os.getpid()}")
    tok.save(str(partial), pretty=False)
    partial.replace(path)
