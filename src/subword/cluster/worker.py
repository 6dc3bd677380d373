"""What runs in a process that `processes.py` starts: count one shard after the other, and say so.

It gets `(number, attempt, shard)` through a connection, and answers with `("read", number, bytes, bytes on disk)` now
and then, and with `("done", number)` or `("failed", number, error)` in the end. It ends when the connection does, and
so with the process that started it, however that ends.
"""

from __future__ import annotations

import os
import queue
import threading
import traceback
from multiprocessing.connection import Connection
from typing import Any

from ..counting import Job
from ..errors import InternalError, SubwordError, SubwordOSError
from .shards import Shard, count_shard


def table_of(folder: str, number: int) -> str:
    """The file that holds the table of a shard: it is there when the shard was counted, and then it is whole."""
    return os.path.join(folder, f"{number}.table")


def main(descriptor: int, folder: str) -> None:
    connection = Connection(descriptor)
    job: Job = connection.recv()
    orders: queue.SimpleQueue[tuple[int, int, Shard]] = queue.SimpleQueue()

    def listen() -> None:
        try:
            while True:
                orders.put(connection.recv())
        finally:
            os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        number, attempt, shard = orders.get()
        connection.send(_count(number, attempt, shard, job, folder, connection))


def _count(number: int, attempt: int, shard: Shard, job: Job, folder: str, connection: Connection) -> tuple[Any, ...]:
    unfinished = os.path.join(folder, f"{number}-{attempt}.part")
    try:
        with open(unfinished, "wb") as file:
            count_shard(shard, job, file, lambda done, read: connection.send(("read", number, done, read)))
        os.replace(unfinished, table_of(folder, number))
    except SubwordError as error:
        return "failed", number, error
    except OSError as error:
        problem = f"cannot keep counts in this temporary folder: {error.strerror or error}"
        return "failed", number, SubwordOSError(error.errno, problem, folder)
    except MemoryError:
        raise  # it dies, and is started again: others may leave more by then
    except Exception:
        return "failed", number, InternalError(f"{shard}: {traceback.format_exc()}")
    return "done", number
