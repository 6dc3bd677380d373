"""One measurement, in a process of its own: `python worker.py JOB`, both JSON; prints one line of JSON."""

from __future__ import annotations

import gc
import hashlib
import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from libraries import LIBRARIES, Library

PASSES = 3
PATIENCE = 10.0  # seconds of warm passes after which no further one is begun


def main(job: dict[str, Any]) -> dict[str, Any]:
    library = LIBRARIES[job["library"]]()
    texts: list[str] = json.loads(Path(job["texts"]).read_text("utf-8"))
    if job["task"] == "train":
        return run_train(library, texts, job)
    started = time.perf_counter()
    library.load(job)
    load = time.perf_counter() - started

    def many() -> Any:
        return library.encode_many(texts, job["threads"])

    def one_by_one() -> None:
        encode_one = library.encode_one
        for text in texts:
            encode_one(text)

    if job["task"] == "check":
        return {"digest": digest(library, many()), "each": each_digest(library, texts[:1000])}
    cold, warm = measure(many if job["task"] == "many" else one_by_one)
    return {"load": load, "cold": cold, "warm": warm, "peak_mb": peak_mb()}


def run_train(library: Library, texts: list[str], job: dict[str, Any]) -> dict[str, Any]:
    started = time.perf_counter()
    tokens = library.train(texts, job)
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "peak_mb": peak_mb(), "tokens": [token.hex() for token in tokens]}


def measure(work: Callable[[], Any]) -> tuple[float, float]:
    """Seconds of the first pass, and of the best of those after it."""
    gc.collect()
    cold = timed(work)
    warm: list[float] = []
    while len(warm) < PASSES and (not warm or sum(warm) < PATIENCE):
        warm.append(timed(work))
    return cold, min(warm)


def timed(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    result = work()
    seconds = time.perf_counter() - started
    del result
    return seconds


def digest(library: Library, encoded: Any) -> str:
    """A hash of the ids and of where each text's end."""
    state = hashlib.sha256()
    for ids in library.arrays(encoded):
        state.update(len(ids).to_bytes(8, "little"))
        state.update(np.ascontiguousarray(ids, dtype="<u4").tobytes())
    return state.hexdigest()


def each_digest(library: Library, texts: list[str]) -> str:
    state = hashlib.sha256()
    for text in texts:
        state.update(np.asarray(library.encode_one(text), dtype="<u4").tobytes())
    return state.hexdigest()


def peak_mb() -> float:
    """The most memory that this process has held.

    From /proc where there is one: on Linux, `ru_maxrss` starts from what the parent process held.
    """
    try:
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e6
    except (OSError, IndexError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
