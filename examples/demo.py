#!/usr/bin/env python3
"""Train a tokenizer on real text, use it, check it, and show what it learned. This is what `make demo` runs.

The text is the source of Python's standard library, as it lies on this machine; TEXT=path in the environment, a file
or a folder, takes yours. The tokenizer is written to build/demo/tokenizer.json. The exit code is 1 if a check fails.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

import subword
from subword.corpus import find_files, read_texts
from subword.report.terminal import coloured_tokens, visible

VOCAB_SIZE = 4096
END = "<|endoftext|>"
OUT = Path(__file__).resolve().parent.parent / "build" / "demo" / "tokenizer.json"
NOT_THESE = {"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__"}
ENOUGH = 100_000_000
SAMPLE = '    def __init__(self, name: str = "naïve 你好"):  # 1234567\n'

console = Console(highlight=False, markup=False, emoji=False)


@dataclass
class Texts:
    """What to learn from, and a text to try the result on that was not learned from."""

    what: str
    train: list[bytes]
    unseen_name: str
    unseen: bytes
    sample: str


def standard_library() -> Texts:
    """Python's own modules without their tests; one is held out."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    files = [path for path in sorted(folder.rglob("*.py")) if not NOT_THESE.intersection(path.parts[:-1])]
    unseen = next((path for path in files if path.name == "argparse.py"), None)
    if unseen is None:
        raise subword.SubwordValueError("this Python came without the source of its library; give a text: TEXT=path")
    train = [path.read_bytes() for path in files if path != unseen]
    return Texts(f"Python's standard library ({len(train):,} files)", train, unseen.name, unseen.read_bytes(), SAMPLE)


def texts_of(path: str) -> Texts:
    """Your text, up to a size that takes seconds, with its last tenth held out."""
    parts: list[bytes] = []
    size = 0
    for part in read_texts(find_files([path])):
        parts.append(part)
        size += len(part)
        if size > ENOUGH:
            break
    text = b"".join(parts)
    cut = text.find(b"\n", len(text) * 9 // 10) + 1 or len(text) * 9 // 10
    train, unseen = text[:cut], text[cut:]
    sample = next((line for line in unseen.decode("utf-8", "replace").splitlines() if len(line) > 40), SAMPLE)
    return Texts(path, [train], f"the last tenth of {path}", unseen, sample[:200])


def hugging_face_agrees(file: Path, text: str, ids: list[int]) -> bool | None:
    """Whether HF tokenizers, loading the same file, gives the same ids; None if it is not installed."""
    try:
        import tokenizers
    except ImportError:
        return None
    return bool(tokenizers.Tokenizer.from_file(str(file)).encode(text, add_special_tokens=False).ids == ids)


def main() -> int:
    text = os.environ.get("TEXT") or None
    texts = texts_of(text) if text else standard_library()
    megabytes = sum(map(len, texts.train)) / 1e6

    console.print(f"Training {VOCAB_SIZE:,} entries on {texts.what}, {megabytes:.1f} MB …")
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", subword.SubwordWarning)  # that the text was too small for the size: said below
        tok = subword.train(texts.train, vocab_size=VOCAB_SIZE, special_tokens=[END])
    seconds = time.perf_counter() - start

    OUT.parent.mkdir(parents=True, exist_ok=True)
    tok.save(OUT)
    loaded = subword.load(OUT)

    repeat = max(1, 10_000_000 // max(len(texts.unseen), 1))  # some megabytes, so that there is something to measure
    much = texts.unseen * repeat
    start = time.perf_counter()
    loaded.encode_to_numpy(much, disallowed_special=())
    speed = len(much) / 1e6 / (time.perf_counter() - start)

    ids = loaded.encode_ordinary(texts.unseen)
    unseen_text = texts.unseen.decode("utf-8", "replace")
    checks: dict[str, bool | None] = {
        "loading the file gives the same tokenizer": loaded.fingerprint == tok.fingerprint,
        f"{texts.unseen_name}, never seen in training, decodes to the same bytes":
            loaded.decode_bytes(ids) == texts.unseen,
        "Hugging Face's tokenizers, from the same file, gives the same ids":
            hugging_face_agrees(OUT, unseen_text, loaded.encode(unseen_text, allowed_special="all")),
    }  # fmt: skip

    merged = [id for id in tok.spec.model.vocab.ids.tolist() if id >= 256 and id not in tok.special_tokens.values()]
    longest = sorted(merged, key=lambda id: (-len(tok.token_bytes(id)), id))
    words = [word for id in longest if re.search(r"\w", word := visible(tok.token_bytes(id)))]
    per_token = len(texts.unseen) / max(len(ids), 1)

    out = str(OUT.relative_to(Path.cwd()) if OUT.is_relative_to(Path.cwd()) else OUT)
    card = Table.grid(padding=(0, 2))
    card.add_column(style="bold", no_wrap=True)
    card.add_column(overflow="fold")
    shown = [visible(tok.token_bytes(id)) for id in merged[:32]]
    stopped = (tok.training or {}).get("stopped")
    card.add_row("vocabulary", f"{tok.n_vocab:,} entries ({stopped})")
    card.add_row("first merges", Text("  ".join(shown)))
    card.add_row("longest words", Text("  ".join(words[:12])))
    card.add_row("compression", f"{texts.unseen_name}: {len(texts.unseen):,} bytes in {len(ids):,} tokens")
    card.add_row("", f"{per_token:.2f} bytes a token (a token a byte would be 1.00)")
    card.add_row("training", f"{seconds:.1f} s, {megabytes / seconds:.1f} MB/s")
    card.add_row("encoding", f"{speed:.0f} MB/s on one thread")
    card.add_row(
        "a line", coloured_tokens(loaded.tokenize(texts.sample, disallowed_special=()), rule=not console.color_system)
    )
    card.add_row("written to", Text(out))
    console.print(card)
    for what, outcome in checks.items():
        word = "not checked, it is not installed" if outcome is None else "yes" if outcome else "NO"
        console.print(
            f"{what}: {word}", style="" if outcome is None else "green" if outcome else "bold red", soft_wrap=True
        )
    console.print(f'Next: subword show {out} "your text"   subword --help', soft_wrap=True)
    return int(False in checks.values())


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subword.SubwordError as error:
        sys.exit(f"error: {error}")
