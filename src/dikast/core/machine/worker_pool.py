"""Worker processes that end with the process that started them."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnContext

from dikast.core.errors import RunError
from dikast.core.media import MediaRules, media_rules

_held = ExitStack()  # of a worker: until it ends


@contextmanager
def worker_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of spawned processes, each with one thread for arithmetic, and with the rules for media that hold here.

    The workers end when this process does, however it ends, and at once when it is interrupted. RunError where a worker
    was killed, there was not enough memory, or the system has no room for semaphores. The first mistake of another kind
    is raised when the workers have finished what they had begun.
    """
    context = multiprocessing.get_context("spawn")
    theirs, ours = context.Pipe(duplex=False)  # the kernel closes our end when this process dies
    with theirs, ours, _pool(workers, context, theirs) as pool:
        try:
            yield pool
        except BrokenProcessPool as error:
            raise RunError(
                "a worker process ended before its work was done: it was killed, or the memory was full; what was"
                " written before is kept: run the same command again, with fewer workers where memory is short (a"
                " script starts workers under `if __name__ == '__main__':` only)"
            ) from error
        except MemoryError as error:
            raise RunError(
                "not enough memory for the worker processes; what was written before is kept: run the same command"
                " again with fewer workers"
            ) from error
        except Exception:
            raise
        except BaseException:
            ours.close()
            raise


def _pool(workers: int, context: SpawnContext, theirs: Connection) -> ProcessPoolExecutor:
    with media_rules() as rules:
        pass
    try:
        return ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(theirs, rules))
    except (OSError, ImportError) as error:  # of a system without semaphores
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise RunError(
            f"worker processes need semaphores, which the system keeps in shared memory (/dev/shm), and none can be"
            f" made there ({why}): make room in it, or give one worker"
        ) from error


def _begin(parent: Connection, rules: MediaRules) -> None:
    """Prepare a worker. An interrupt from the terminal reaches every process; the parent's answer to it is enough."""
    os.environ["OMP_NUM_THREADS"] = "1"
    _held.enter_context(media_rules(**asdict(rules)))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: Connection) -> None:
    parent.poll(None)  # nothing is ever sent: this returns when the other end is closed
    os._exit(1)
