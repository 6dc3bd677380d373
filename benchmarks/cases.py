"""What is measured: a row a case; and what is to be reached: a row a bar.

A case is called `GROUP/…`, and `--only` takes patterns of such names. Each measures one or more of

    cold      seconds of the first pass over the text in a fresh process, loading not counted
    loaded    the same and the loading of the vocabulary from its file
    warm      seconds of the best of up to five further passes over the same text
    load      seconds to read the vocabulary
    peak_mb   the most memory that the process has held
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from texts import HOSTILE, KINDS

WARM = 5


@dataclass(frozen=True)
class Case:
    name: str
    text: str  # what `texts.prepare` knows
    megabytes: float
    vocabulary: str = "o200k"
    task: str = "arrays"  # a row of `worker.MEASURES`
    call: str = ""  # the method that is called, where a task has several
    threads: int = 1
    passes: int = WARM
    quick: bool = False  # part of --quick
    keeps_cache: bool = False  # what a library has cached on disk is there from the run before
    beside: str = ""  # a row of `BESIDE`
    memory: str = ""  # the budget, for tasks that take one


BESIDE: dict[str, dict[str, object]] = {
    "subword, 1 thread": {"threads": 1},
    "subword, arrays": {"task": "arrays"},
    "gigatoken, imported": {"imported": True},
}
"""A library in another way, measured in the same rounds as if it were another: how that differs from the case. No bar
looks at it but by its name. gigatoken imports awkward in its first batch; `imported`, it has done so before."""


QUICK = ("english", "code", "chinese")

FAMILIES = {
    "unigram": ("english", "japanese"),
    "t5": ("english",),  # it has no Japanese
    "spm-bpe": ("english", "japanese"),
    "llama2": ("english", "japanese"),
    "wordpiece": ("english", "japanese"),
    "bert": ("english", "japanese"),
}
"""What vocabularies of the other families encode: of each one that is trained on the spot, and a published one."""

CASES: list[Case] = [
    *(
        Case(f"cold/{megabytes}MB/{kind}", kind, megabytes, passes=0, quick=kind in QUICK, beside="gigatoken, imported")
        for megabytes in (1, 20)
        for kind in KINDS
    ),
    Case("cold/200MB/mixed", "mixed", 200, passes=0, beside="gigatoken, imported"),
    *(Case(f"warm/{kind}", kind, 20, quick=kind in QUICK) for kind in KINDS),
    *(Case(f"hostile/{name}", f"hostile/{name}", 1, quick=name in ("letter", "random")) for name in HOSTILE),
    Case("call/encode_ordinary", "lines", 1, task="call", call="encode_ordinary", quick=True),
    Case("call/encode", "lines", 1, task="call", call="encode", quick=True),
    Case("lists/english", "english", 20, task="lists", quick=True),
    Case("lists/2-threads/english", "english", 20, task="lists", threads=2),
    Case("counts/english", "english", 20, task="counts", quick=True, beside="subword, arrays"),
    Case("2-threads/english", "english", 20, threads=2, quick=True, beside="subword, 1 thread"),
    Case("2-threads/code", "code", 20, threads=2, beside="subword, 1 thread"),
    Case("files/english", "english", 20, task="files", threads=2),
    Case("decode/single", "lines", 1, task="decode", call="decode", quick=True),
    Case("decode/batch", "english", 20, task="decode", call="decode_batch", quick=True),
    *(
        Case(f"vocabulary/{vocabulary}/{kind}", kind, 20, vocabulary)
        for vocabulary in ("gpt2", "cl100k", "llama3", "qwen3", "gemma3", "trained")
        for kind in ("english", "code")
    ),
    *(
        Case(f"load/{vocabulary}", "lines", 1, vocabulary, task="load", quick=vocabulary == "o200k")
        for vocabulary in ("gpt2", "cl100k", "o200k", "llama3", "qwen3", "gemma3", "trained")
    ),
    *(
        Case(
            f"load-again/{vocabulary}",
            "lines",
            1,
            vocabulary,
            task="load",
            quick=vocabulary == "o200k",
            keeps_cache=True,
        )
        for vocabulary in ("o200k", "llama3", "qwen3", "gemma3")
    ),
    Case("memory/words", "words", 40, task="memory", passes=0),
    Case("train/cl100k", "mixed", 20, "cl100k", task="train", passes=0),
    Case("train/gpt2", "mixed", 20, "gpt2", task="train", passes=0),
    *(
        Case(f"family/{vocabulary}/{kind}", kind, 10, vocabulary, quick=kind == "english")
        for vocabulary, kinds in FAMILIES.items()
        for kind in kinds
    ),
    Case("train/unigram", "mixed", 49, "unigram", task="train", passes=0),
    Case("train/wordpiece", "mixed", 49, "wordpiece", task="train", passes=0),
    Case("count/20MB/mixed", "mixed", 20, task="count", passes=0, quick=True),
    Case("count/200MB/mixed", "mixed", 200, task="count", passes=0),
    Case("large/train/mixed", "mixed", 1000, task="large", call="train", threads=2, passes=0),
    Case("large/count/random", "random", 5000, task="large", call="count", threads=2, passes=0, memory="500MB"),
]


def own(paths: list[str]) -> list[Case]:
    """Cases for files of the user's own."""
    from pathlib import Path

    return [Case(f"own/{Path(path).stem}", path, Path(path).stat().st_size / 1e6) for path in paths]


# ======================== what is to be reached ========================


@dataclass(frozen=True)
class Bar:
    """What one measure of the cases that `cases` matches is compared with.

    `against` is `best` (the fastest other library), `original` (the fastest other that reads the published file), the
    name of a library, a row of `BESIDE`, or nothing. The ratio is their time over ours: `bar` and `aim`
    are what it is to be at least. `most` and `aim_most` are what our own figure is to be at most: seconds, seconds a
    call where calls are measured, seconds a MB where pieces are counted, bytes a word for `slope`, MB for `peak_mb`.
    """

    what: str
    cases: str
    measure: str
    against: str
    bar: float | None = None
    aim: float | None = None
    most: float | None = None
    aim_most: float | None = None

    def matches(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in self.cases.split())


PUBLISHED = "vocabulary/llama3/* vocabulary/qwen3/* vocabulary/gemma3/*"
JSON_FILES = "load/llama3 load/qwen3 load/gemma3"
UNIGRAM = "family/unigram/* family/t5/*"
SCORES = "family/spm-bpe/* family/llama2/*"
WORDPIECE = "family/wordpiece/* family/bert/*"
ASIAN = "warm/chinese warm/japanese warm/thai warm/hindi warm/emoji"

BARS: list[Bar] = [
    Bar("cold, 20 MB, array out, loading not counted", "cold/20MB/*", "cold", "best", 3, 6),
    Bar("cold, 200 MB not seen before, array out, one thread", "cold/200MB/*", "cold", "best", 1.2, 2),
    Bar("cold, 1 MB, loading counted", "cold/1MB/*", "loaded", "best", 1, 3),
    Bar("warm, array out, one thread", "warm/english warm/code", "warm", "gigatoken", 1, 1.3),
    Bar("warm, array out, one thread", ASIAN, "warm", "best", 2, 4),
    Bar("Llama 3, Qwen 3 and Gemma 3, array out, once", PUBLISHED, "cold", "best", 3, 6),
    Bar("Llama 3, Qwen 3 and Gemma 3, array out, again and again", PUBLISHED, "warm", "gigatoken", 1, 1.3),
    Bar("hostile: repeated characters", "hostile/letter hostile/spaces", "cold", "quicktok", 1, 2),
    Bar("hostile: Chinese without punctuation", "hostile/chinese", "cold", "quicktok", 1, 2),
    Bar("hostile: random letters", "hostile/random", "cold", "best", 3, 10),
    Bar("one short line, to a list", "call/*", "warm", "best", 1, aim_most=0.7e-6),
    Bar("Python lists, batch", "lists/*", "warm", "best", 1.2, 2),
    Bar("two threads over one, cold", "2-threads/*", "cold", "subword, 1 thread", 1.8, 1.95),
    Bar("two threads over one, warm", "2-threads/*", "warm", "subword, 1 thread", 1.8, 1.95),
    Bar("loading o200k from `.tiktoken`", "load/o200k", "load", "original", 1),
    Bar("loading a `tokenizer.json` of 128,000 to 256,000 entries", JSON_FILES, "load", "original", 1),
    Bar("loading o200k again, from our compiled cache", "load-again/o200k", "load", "", most=0.030, aim_most=0.010),
    Bar("loading a `tokenizer.json` again", JSON_FILES.replace("load/", "load-again/"), "load", "", most=0.050),
    Bar("count only, over encode to numpy", "counts/english", "warm", "subword, arrays", 1, 1.3),
    Bar("decode, batch", "decode/batch", "warm", "best", 2, 4),
    *(
        Bar(what, cases, measure, against, bar, aim)
        for measure in ("cold", "warm")
        for what, cases, against, bar, aim in (
            (f"unigram, array out, one thread, {measure}", UNIGRAM, "sentencepiece", 4, 8),
            (f"SentencePiece's BPE, array out, one thread, {measure}", SCORES, "gigatoken", 2, 4),
            (f"SentencePiece's BPE, array out, one thread, {measure}", SCORES, "sentencepiece", 30, None),
            (f"WordPiece, array out, one thread, {measure}", WORDPIECE, "tokie", 2, 5),
            (f"WordPiece, array out, one thread, {measure}", WORDPIECE, "tokenizers", 20, None),
        )
    ),
    Bar("training a unigram model, 49 MB", "train/unigram", "cold", "sentencepiece", 10, 20),
    Bar("training a unigram model, 49 MB: memory", "train/unigram", "peak_mb", "sentencepiece", 1),
    Bar("training a WordPiece by frequency, 49 MB", "train/wordpiece", "cold", "tokenizers", 4, 8),
    Bar("counting pieces, one thread", "count/*", "cold", "", most=1 / 100, aim_most=1 / 300),
    Bar("memory of training on 1 GB of files", "large/train/*", "peak_mb", "", most=1000),
    Bar("memory of counting 5 GB of random words in 500 MB", "large/count/*", "peak_mb", "", most=700),
    Bar("memory over the second half of 5 million new words", "memory/words", "slope", "", most=1.0),
]
