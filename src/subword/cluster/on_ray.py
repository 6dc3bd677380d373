"""Counting on a cluster of Ray's, or on one that is started on this machine for the time of the call.

A shard is a task, and what it returns is its table, which comes through Ray's object store. Ray runs a task again when
the process or the machine that ran it dies; a task has one result, so nothing is counted twice.
"""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..corpus.storing import Blocks
from ..counting import Job
from ..counts import CountTable
from ..errors import SubwordError, SubwordOSError, SubwordValueError
from .processes import ATTEMPTS
from .shards import Shard, Tables, Told, count_shard, died, shards_of

AHEAD = 2
"""How many tasks for each place to work are handed in: more would fill the object store."""


def count_files(
    files: Sequence[Path],
    job: Job,
    source: str,
    address: str | None,
    temp: str | None,
    told: Told | None = None,
) -> CountTable:
    """Count files, each task with the threads and the memory of `job`.

    Args:
        address: of the cluster, as for `ray.init`.
        temp: the folder for what the table has no memory for, on this machine.

    Raises:
        SubwordValueError: Ray is not installed.
        SubwordOSError: there is no cluster at the address, or one shard ended process after process.
        SubwordError: what one process would raise, of the first of the texts for which there is something to raise.
    """
    try:
        import ray
    except ImportError:
        raise SubwordValueError('counting on a cluster takes Ray: pip install "subword[ray]"') from None
    with _connected(ray, address):
        most = max((int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]), default=0)
        if 0 < most < job.threads:  # a task would wait for ever
            raise SubwordValueError(f"no machine of the cluster has {job.threads} processors: the most is {most}")
        places = max(int(ray.cluster_resources().get("CPU", 1)) // job.threads, 1)
        shards = shards_of(files, job.splitting, job.hashed, places)
        tables = Tables(Blocks(None if job.memory is None else job.memory // 8, temp), shards)
        _count(ray, tables, job, AHEAD * places, told)
    return tables.table(job, source)


def _count(ray: Any, tables: Tables, job: Job, most: int, told: Told | None) -> None:
    task = ray.remote(num_cpus=job.threads, max_retries=ATTEMPTS - 1)(_table_of)
    the_job = ray.put(job)
    waiting = deque(range(len(tables.shards)))
    running: dict[Any, int] = {}
    errors: dict[int, SubwordError] = {}
    counted = read = 0
    try:
        while waiting or running:
            while waiting and len(running) < most:
                number = waiting.popleft()
                running[task.remote(tables.shards[number], the_job)] = number
            for result in ray.wait([*running], timeout=1)[0]:
                number = running.pop(result)
                try:
                    table, its_counted, its_read = ray.get(result)
                    tables.add(number, io.BytesIO(table))
                    counted, read = counted + its_counted, read + its_read
                except SubwordError as error:
                    errors[number] = getattr(error, "cause", error)  # Ray's is a subclass of it that tells more
                except ray.exceptions.RayError as error:
                    errors[number] = died(tables.shards[number], ATTEMPTS, str(error).strip().split("\n")[0])
                if told is not None:
                    told(counted, read)
            if errors:  # those before it may have something to say, too
                waiting = deque(number for number in waiting if number < min(errors))
    finally:
        for result in running:
            ray.cancel(result, force=True)
    if errors:
        raise errors[min(errors)]


def _table_of(shard: Shard, job: Job) -> tuple[bytes, int, int]:
    """What runs on the cluster: the table of a shard, the bytes of text in it, and those on disk that were read."""
    file = io.BytesIO()
    amounts = (0, 0)

    def told(counted: int, read: int) -> None:
        nonlocal amounts
        amounts = (counted, read)

    count_shard(shard, job, file, told)
    return file.getvalue(), *amounts


@contextmanager
def _connected(ray: Any, address: str | None) -> Iterator[None]:
    """Connected to a cluster: with the one that this process is connected to already, or until the end."""
    if ray.is_initialized():
        if address is not None:
            raise SubwordValueError("this process is connected to a cluster of Ray's already: ray=True counts there")
        yield
        return
    try:
        ray.init(address=address, log_to_driver=False, logging_level="error")
    except (OSError, ValueError, RuntimeError) as error:
        raise SubwordOSError(None, f"no cluster of Ray's: {error}", address or "") from error
    try:
        yield
    finally:
        ray.shutdown()
