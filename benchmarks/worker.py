"""One measurement, in a process of its own: `python worker.py JOB`, both JSON; prints one line of JSON.

Nothing is imported before the clock that the library does not need: NumPy, for hashing what came out, only afterwards.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import resource
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from libraries import LIBRARIES, CannotError, Library

PATIENCE = 3.0  # seconds of warm passes after which no further one is begun
BATCH = 20_000_000  # characters encoded at once: a larger text is read in several goes, as a program would

CANNOT = {
    "bpe": "has no byte-level BPE with a split pattern",
    "characters": "has no BPE of characters as merges",
    "unigram": "has no unigram models",
    "scores": "has no BPE by scores",
    "wordpiece": "has no WordPiece",
}
"""Why a library cannot do a case: whose vocabulary is of a family that it does not have."""

Job = dict[str, Any]
Hash = Callable[[Any], None]


def main(job: Job) -> dict[str, Any]:
    library = LIBRARIES[job["library"]]()
    family = job["vocabulary"]["family"]
    if family not in library.families:
        return {"cannot": CANNOT[family]}
    path = Path(job["text"])
    texts: list[str] = (
        sorted(map(str, path.iterdir())) if path.is_dir() else json.loads(path.read_text("utf-8", "surrogatepass"))
    )
    forget_peak()
    try:
        return MEASURES[job["task"]](library, texts, job)
    except CannotError as reason:
        return {"cannot": str(reason)}


def load(library: Library, job: Job) -> dict[str, Any]:
    """Seconds that importing takes, and reading the vocabulary."""
    gc.collect()
    gc.freeze()  # so that the texts are not looked through in every collection
    started = time.perf_counter()
    library.imports()
    if job.get("imported"):
        library.imports_lazily()
    imported = time.perf_counter()
    library.load(job["vocabulary"])
    return {"import": imported - started, "load": time.perf_counter() - imported}


def passes(
    work: Callable[[Any], Any], batches: list[Any], hashed: Callable[[Any, Any], None], job: Job
) -> dict[str, Any]:
    """Seconds of the first pass over all batches, and of the best of those after it; a hash of what the first gave."""
    state = hashlib.sha256()
    cold = 0.0
    warm: list[float] = []
    resident: list[float] = []
    for batch in batches:
        seconds, result = timed(work, batch)
        cold += seconds
        hashed(state, result)
        del result
        resident.append(resident_mb())
    found = {"cold": cold, "peak_mb": peak_mb(), "digest": state.hexdigest()}
    while len(warm) < job["passes"] and sum(warm) < PATIENCE:
        warm.append(sum(timed(work, batch)[0] for batch in batches))
    if warm:
        found["warm"] = min(warm)
    if len(batches) > 1:
        found["resident_mb"] = resident
    return found


def timed(work: Callable[[Any], Any], batch: Any) -> tuple[float, Any]:
    gc.collect()
    gc.disable()
    started = time.perf_counter()
    result = work(batch)
    seconds = time.perf_counter() - started
    gc.enable()
    return seconds, result


def in_batches(texts: list[str], length: int) -> list[list[str]]:
    batches: list[list[str]] = [[]]
    held = 0
    for text in texts:
        if held >= length:
            batches.append([])
            held = 0
        batches[-1].append(text)
        held += len(text)
    return batches


# ======================== what is measured ========================


def measure_arrays(library: Library, texts: list[str], job: Job) -> dict[str, Any]:
    loaded = load(library, job)
    threads = job["threads"]
    return loaded | passes(
        lambda batch: library.arrays(batch, threads),
        in_batches(texts, BATCH),
        lambda state, result: hash_rows(state, library.rows(result)),
        job,
    )


def measure_lists(library: Library, texts: list[str], job: Job) -> dict[str, Any]:
    loaded = load(library, job)
    return loaded | passes(lambda batch: library.lists(batch, job["threads"]), [texts], hash_rows, job)


def measure_counts(library: Library, texts: list[str], job: Job) -> dict[str, Any]:
    def hash_counts(state: Any, counts: Iterable[int]) -> None:
        state.update(json.dumps([int(count) for count in counts]).encode())

    loaded = load(library, job)
    return loaded | passes(lambda batch: library.counts(batch, job["threads"]), [texts], hash_counts, job)


def measure_files(library: Library, texts: list[str], job: Job) -> dict[str, Any]:
    loaded = load(library, job)
    return loaded | passes(
        lambda paths: library.files(paths, job["threads"]),
        [job["files"]],
        lambda state, result: hash_rows(state, library.rows(result)),
        job,
    )


def measure_call(library: Library, texts: list[str], job: Job) -> dict[str, Any]:
    """One call a line. The ids are hashed in a pass of their own, last."""
    loaded = load(library, job)
    call = getattr(library, job["call"])

    def one_by_one(lines: list[str]) -> None:
        for line in lines:
            call(line)

    call("")
    found = loaded | passes(one_by_one, [texts], lambda state, result: None, job)
    state = hashlib.sha256()
    hash_rows(state, map(call, texts))
    return found | {"digest": state.hexdigest()}


def measure_load(library: Library, texts: list[str], job: Job) -> dict[str, Any]:
    loaded = load(library, job)
    state = hashlib.sha256()
    hash_rows(state, library.rows(library.arrays(texts[:20], 1)))
    return loaded | {"peak_mb": peak_mb(), "digest": state.hexdigest()}


def measure_decode(library: Library, texts: list[str], job: Job) -> dict[str, Any]:
    """The ids are those that the library gives for the texts; making them is not counted."""
    import numpy as np

    loaded = load(library, job)
    encoded = library.rows(library.arrays(texts, 1))
    single = job["call"] == "decode"
    ids = [library.ids_to_decode(np.ascontiguousarray(row, dtype=np.uint32), single) for row in encoded]

    def hash_texts(state: Any, decoded: Iterable[str]) -> None:
        for text in decoded:
            state.update(len(text).to_bytes(8, "little") + text.encode())

    decode = library.decode
    if single:
        return loaded | passes(lambda batch: [decode(row) for row in batch], [ids], hash_texts, job)
    return loaded | passes(lambda batch: library.decode_batch(batch, job["threads"]), [ids], hash_texts, job)


def measure_memory(library: Library, texts: list[str], job: Job) -> dict[str, Any]:
    """Words that never repeat, a tenth at a time: what the process holds after each; then the first tenth again.

    `slope` is bytes that the process grows by, a word, over the second half.
    """
    loaded = load(library, job)
    batches = in_batches(texts, -(-sum(map(len, texts)) // 10))

    def work(batch: list[str]) -> Any:
        return library.arrays(batch, 1)

    def digest(state: Any, result: Any) -> None:
        hash_rows(state, library.rows(result))

    first = passes(work, batches[:1], digest, job | {"passes": 0})
    found = passes(work, batches[1:], digest, job | {"passes": 0})
    again = passes(work, batches[:1], digest, job | {"passes": 0})
    if again["digest"] != first["digest"]:
        return {"fails": "other ids when a text comes again"}
    cold = first["cold"] + found["cold"]
    grown = found["resident_mb"][-1] - found["resident_mb"][-6]  # over five of the ten parts
    slope = grown * 1e6 / (sum(text.count(" ") + 1 for text in texts) / 2)
    return loaded | found | {"cold": cold, "slope": slope, "digest": first["digest"] + found["digest"]}


def measure_train(library: Library, texts: list[str], job: Job) -> dict[str, Any]:
    gc.freeze()
    started = time.perf_counter()
    tokens = library.train(texts, job)
    seconds = time.perf_counter() - started
    return {"cold": seconds, "peak_mb": peak_mb(), "tokens": [token.hex() for token in tokens]}


def measure_count(library: Library, texts: list[str], job: Job) -> dict[str, Any]:
    library.imports()
    return passes(lambda batch: library.count_pieces(batch, job), [texts], hash_table, job)


def measure_large(library: Library, texts: list[str], job: Job) -> dict[str, Any]:
    """Training on, or counting, files that together are larger than what may be held of them: one pass.

    A table that was counted is gone through as well, which is part of the peak and not of the time.
    """
    library.imports()
    if job["call"] == "train":
        return passes(lambda files: library.train_files(files, job), [texts], hash_rows, job)
    return passes(lambda files: library.count_files(files, job), [texts], hash_all_of_table, job)


MEASURES: dict[str, Callable[[Library, list[str], Job], dict[str, Any]]] = {
    "arrays": measure_arrays,
    "lists": measure_lists,
    "counts": measure_counts,
    "files": measure_files,
    "call": measure_call,
    "load": measure_load,
    "decode": measure_decode,
    "memory": measure_memory,
    "train": measure_train,
    "count": measure_count,
    "large": measure_large,
}


# ======================== what came out ========================


def hash_rows(state: Any, rows: Iterable[Any]) -> None:
    """The ids of each text and how many there are."""
    import numpy as np

    for row in rows:
        ids = np.ascontiguousarray(row, dtype="<u4")
        state.update(len(ids).to_bytes(8, "little"))
        state.update(ids.tobytes())


def hash_table(state: Any, table: Any) -> None:
    """Pieces and their counts, as far as can be told without a walk through them."""
    state.update(json.dumps([table.total, table.text_bytes]).encode())


def hash_all_of_table(state: Any, table: Any) -> None:
    hash_table(state, table)
    state.update(str(table.distinct).encode())


def from_status(field: str) -> float:
    return int(Path("/proc/self/status").read_text().split(field)[1].split()[0]) * 1024 / 1e6


def resident_mb() -> float:
    try:
        return from_status("VmRSS:")
    except (OSError, IndexError):
        return peak_mb()


def forget_peak() -> None:
    """Begin to measure the peak anew, where the system can: reading the text took more than the text takes."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_mb() -> float:
    """The most memory that this process has held since the texts were read.

    From /proc where there is one: on Linux, `ru_maxrss` starts from what the parent process held.
    """
    try:
        return from_status("VmHWM:")
    except (OSError, IndexError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
