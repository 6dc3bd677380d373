"""Counting in several processes of this machine.

Each is a fresh interpreter: after a fork, locks of other threads would stay locked for ever. A shard is counted when
its table has its name in the temporary folder, which happens at once; so of a process that dies it is known whether it
got that far, and nothing is counted twice.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any

from ..corpus.storing import Blocks, shared_folder
from ..counting import Job
from ..counts import CountTable
from ..errors import SubwordError
from .shards import Tables, Told, died, shards_of
from .worker import table_of

ATTEMPTS = 3
"""How often a shard is counted before it is given up, when the processes that count it die."""

PATIENCE = 5
"""Seconds that a process has for its end, once it cannot be heard any more."""

CODE = """
import sys
sys.path[:] = {path}
from subword.cluster.worker import main
main({connection}, {folder})
"""
"""What a process runs: its modules are found where ours are, whatever folder it starts in."""


def count_files(
    files: Sequence[Path],
    job: Job,
    source: str,
    processes: int,
    temp: str | None,
    told: Told | None = None,
) -> CountTable:
    """Count files in several processes, which share out the threads and the memory of `job` among themselves.

    Raises:
        SubwordError: what one process would raise, of the first of the texts for which there is something to raise.
        SubwordOSError: the temporary folder cannot be used, or one shard ended process after process.
    """
    shards = shards_of(files, job.splitting, job.hashed, processes)
    tables = Tables(Blocks(None if job.memory is None else job.memory // 8, temp), shards)
    each = replace(
        job,
        memory=None if job.memory is None else max(job.memory // processes, 1 << 16),
        threads=max(job.threads // processes, 1),
    )
    if shards:
        with shared_folder(temp) as folder, _Workers(each, folder, min(processes, len(shards))) as workers:
            workers.count(tables, told)
    return tables.table(job, source)


class _Workers:
    """The processes that are at work, each with its connection."""

    def __init__(self, job: Job, folder: str, number: int) -> None:
        self._job = job
        self._folder = folder
        self._number = number
        self._running: dict[Connection, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> _Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running.values():
            process.kill()
        for connection in [*self._running]:
            self._end(connection)

    def count(self, tables: Tables, told: Told | None) -> None:
        shards = tables.shards
        waiting = deque(range(len(shards)))
        attempts = [0] * len(shards)
        at: dict[Connection, int] = {}
        amounts = [(0, 0)] * len(shards)
        errors: dict[int, SubwordError] = {}

        def give(connection: Connection) -> None:
            number = waiting.popleft()
            attempts[number] += 1
            at[connection] = number
            with suppress(OSError):  # it has died already, which the next wait tells
                connection.send((number, attempts[number], shards[number]))

        def done(number: int) -> None:
            path = table_of(self._folder, number)
            with open(path, "rb") as file:
                tables.add(number, file)
            os.unlink(path)

        while waiting or at:
            while waiting and len(at) < self._number:
                idle = [connection for connection in self._running if connection not in at]
                give(idle[0] if idle else self._start())
            for connection in wait([*at]):
                assert isinstance(connection, Connection)
                number = at[connection]
                message = _message(connection)
                if message is None:
                    how = self._end(connection)
                    del at[connection]
                    if os.path.exists(table_of(self._folder, number)):
                        done(number)
                    elif attempts[number] < ATTEMPTS:
                        waiting.appendleft(number)
                    else:
                        errors[number] = died(shards[number], ATTEMPTS, how)
                elif message[0] == "read":
                    amounts[number] = message[2:]
                else:
                    del at[connection]
                    if message[0] == "done":
                        done(number)
                    else:
                        errors[number] = message[2]
                if errors:  # those before it may have something to say, too
                    waiting = deque(number for number in waiting if number < min(errors))
                if told is not None:
                    told(sum(counted for counted, _ in amounts), sum(read for _, read in amounts))
        if errors:
            raise errors[min(errors)]

    def _start(self) -> Connection:
        ours, theirs = Pipe()
        path = [os.path.abspath(folder) for folder in sys.path]
        code = CODE.format(path=path, connection=theirs.fileno(), folder=repr(self._folder))
        with theirs, open(self._problems, "ab") as problems:
            process = subprocess.Popen(
                [sys.executable, "-c", code],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=problems,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is for us alone, and we end them
            )
        self._running[ours] = process
        with suppress(OSError):
            ours.send(self._job)
        return ours

    @property
    def _problems(self) -> str:
        """What the processes say that end by themselves."""
        return os.path.join(self._folder, "problems")

    def _end(self, connection: Connection) -> str:
        """Forget a process that has died. How it did."""
        process = self._running.pop(connection)
        connection.close()
        try:
            code = process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        if code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
            more = ": is there enough memory? fewer processes, or memory=, take less" if code == -signal.SIGKILL else ""
            return name + more
        said = Path(self._problems).read_text("utf-8", "replace").split("\n") if os.path.exists(self._problems) else []
        return next((line for line in reversed(said) if line.strip()), f"exit code {code}")


def _message(connection: Connection) -> Any:
    """What a process has sent, or None if it has died."""
    try:
        return connection.recv()
    except (EOFError, OSError):
        return None
