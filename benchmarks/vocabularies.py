"""The vocabularies that the benchmarks run on, each in the files that libraries read.

GPT-2's, cl100k and o200k come in packages of the `bench` group. Those of Llama 3 and Qwen 3 are taken from a folder of
real vocabularies, `conformance/files` in the folder that SUBWORD_SHARED names or in `shared` beside the project; where
there is none, their cases are left out. So are Gemma 3's, T5's, Llama 2's and BERT's, of other families. One of each
family is trained on the spot.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import texts

import subword
from subword.patterns import PATTERNS

SHARED = Path(os.environ.get("SUBWORD_SHARED") or texts.ROOT.parent / "shared")
KIT = SHARED / "conformance" / "files"
# What another version of this file has made is not read.
FOLDER = texts.WORK / "vocabularies" / hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]
TRAINED_SIZE = 32_000
NOT_HERE = "its files are not here: SUBWORD_SHARED names the folder that has them"


def prepare(name: str, data: Path | None) -> dict[str, Any] | str:
    """The files of a vocabulary and what they leave out, for `Library.load`; or why there is none.

    `ranks` is a `.tiktoken` file, `json` a `tokenizer.json` and `model` a file of SentencePiece's. `original` says in
    which of them it was published: libraries that read several read that one. `family` is a row of `worker.CANNOT`.
    """
    facts = FOLDER / f"{name}.facts"
    if not facts.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        made = ROWS[name](name, data)
        if isinstance(made, str):
            return made
        facts.write_text(json.dumps(made))
    return dict(json.loads(facts.read_text()))


def known(name: str, data: Path | None) -> dict[str, Any]:
    """A vocabulary that subword knows by name. Its `tokenizer.json` is made, for libraries that read no other form."""
    known_name, pattern = {"gpt2": ("r50k_base", "gpt2")}.get(name, (f"{name}_base", name))
    tok = subword.load("gpt2" if name == "gpt2" else known_name)
    return written(tok, known_name, pattern)


def from_kit(name: str, data: Path | None) -> dict[str, Any] | str:
    file, ranks, pattern = {
        "llama3": ("llama3.json", "more/llama3.tiktoken.model", "llama3"),
        "qwen3": ("qwen3.json", "more/qwen.tiktoken", "qwen2"),
    }[name]
    if not (KIT / file).exists():
        return NOT_HERE
    shutil.copyfile(KIT / file, FOLDER / f"{name}.json")
    shutil.copyfile(KIT / ranks, FOLDER / f"{name}.tiktoken")
    tok = subword.load(FOLDER / f"{name}.json")
    return facts_of(tok, name, pattern, "json")


def gemma3(name: str, data: Path | None) -> dict[str, Any] | str:
    """SentencePiece's BPE, published as a list of merges."""
    file = FOLDER / f"{name}.json"
    if not (KIT / file.name).exists():
        return NOT_HERE
    shutil.copyfile(KIT / file.name, file)
    facts = {"name": name, "family": "characters", "original": "json", "json": str(file)}
    return facts | {"pattern": "", "regex": "", "plain": ""}


def trained(name: str, data: Path | None) -> dict[str, Any]:
    """quicktok keeps its own form of it beside the files."""
    tok = subword.train(documents(data), vocab_size=TRAINED_SIZE, pattern="o200k", byte_order="gpt2")
    made = written(tok, name, "o200k")
    command = [sys.executable, "-m", "quicktok.importer", made["json"], name, "--data-dir", str(FOLDER)]
    subprocess.run(command, capture_output=True, timeout=300, check=False)  # where it fails, quicktok has no such name
    return made


def sentencepiece_trained(name: str, data: Path | None) -> dict[str, Any]:
    """By SentencePiece: a unigram model with its defaults, as T5 has them; or BPE as Llama 2 has it."""
    import sentencepiece

    as_llama2: dict[str, Any] = {
        "model_type": "bpe",
        "byte_fallback": True,
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
    }
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(line for document in documents(data) for line in document.split("\n") if line),
        model_prefix=str(FOLDER / name),
        vocab_size=TRAINED_SIZE,
        minloglevel=2,
        **({} if name == "unigram" else as_llama2),
    )
    return model_facts(name)


def sentencepiece_from_kit(name: str, data: Path | None) -> dict[str, Any] | str:
    file = {"t5": "t5.model", "llama2": "llama2_spm.model"}[name]
    if not (KIT / file).exists():
        return NOT_HERE
    shutil.copyfile(KIT / file, FOLDER / f"{name}.model")
    return model_facts(name)


def model_facts(name: str) -> dict[str, Any]:
    family = "unigram" if name in ("unigram", "t5") else "scores"
    facts = {"name": name, "family": family, "original": "model", "model": str(FOLDER / f"{name}.model")}
    return facts | {"pattern": "", "regex": "", "plain": ""}


def wordpiece(name: str, data: Path | None) -> dict[str, Any] | str:
    """BERT's, or one trained in its manner."""
    file = FOLDER / f"{name}.json"
    if name == "bert":
        if not (KIT / "bert_base_uncased.json").exists():
            return NOT_HERE
        shutil.copyfile(KIT / "bert_base_uncased.json", file)
    else:
        tok = subword.train(
            documents(data),
            vocab_size=TRAINED_SIZE,
            algorithm="wordpiece",
            criterion="frequency",
            pattern="bert-uncased",
            special_tokens=["[PAD]", "[CLS]", "[SEP]", "[MASK]"],
        )
        tok.save(file, "tokenizer.json")
    facts = {"name": name, "family": "wordpiece", "original": "json", "json": str(file)}
    return facts | {"pattern": "", "regex": "", "plain": ""}


def documents(data: Path | None) -> list[str]:
    """What is trained on: prose, code and languages in equal parts."""
    kinds = ("english", "code", "german", "russian", "hindi", "chinese", "japanese")
    files = [texts.prepare(kind, 1, data).path for kind in kinds]
    return [document for file in files for document in json.loads(Path(file).read_text("utf-8"))]


def written(tok: subword.Tokenizer, name: str, pattern: str) -> dict[str, Any]:
    tok.save(FOLDER / f"{name}.tiktoken", "tiktoken")
    tok.save(FOLDER / f"{name}.json", "tokenizer.json")
    return facts_of(tok, name, pattern, "ranks")


def facts_of(tok: subword.Tokenizer, name: str, pattern: str, original: str) -> dict[str, Any]:
    row = PATTERNS[pattern]
    return {
        "name": name,
        "family": "bpe",
        "ranks": str(FOLDER / f"{name}.tiktoken"),
        "json": str(FOLDER / f"{name}.json"),
        "original": original,
        "pattern": pattern,
        "regex": row.regex,
        "plain": row.plain,
        "special_tokens": tok.special_tokens,
    }


ROWS: dict[str, Callable[[str, Path | None], dict[str, Any] | str]] = {
    "gpt2": known,
    "cl100k": known,
    "o200k": known,
    "llama3": from_kit,
    "qwen3": from_kit,
    "gemma3": gemma3,
    "trained": trained,
    "unigram": sentencepiece_trained,
    "t5": sentencepiece_from_kit,
    "spm-bpe": sentencepiece_trained,
    "llama2": sentencepiece_from_kit,
    "wordpiece": wordpiece,
    "bert": wordpiece,
}
