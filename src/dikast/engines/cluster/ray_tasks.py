"""Pieces of work as tasks of a Ray cluster, in place of processes of this machine."""

import os
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dikast.core.errors import RunError, UserError
from dikast.core.media import MediaRules, media_rules
from dikast.engines.cluster.ray_connection import connect, first_line


@contextmanager
def ray_tasks(runner: str, most: int) -> Iterator[Executor]:
    """An executor whose calls are Ray tasks on the cluster of `--runner`, `most` at a time, one CPU each, and one GPU
    each where the cluster has any.

    Functions and arguments are pickled; they run in the folder in which the command runs, which every machine has to
    have, with the rules for media that hold here. A task whose machine dies is begun again on another one. UserError
    without a cluster or a CPU in it, and where a machine has another version of Dikast or no such folder; RunError
    where a task cannot be finished. When the block is left by an error or an interrupt, its tasks are stopped.
    """
    ray = connect(runner)
    resources = ray.cluster_resources()
    if not resources.get("CPU"):
        raise UserError(f"--runner {runner}: the cluster has no CPU: `dikast doctor --runner {runner}` lists it")
    with media_rules() as rules:
        pass
    task = ray.remote(num_cpus=1, num_gpus=int("GPU" in resources))(_done)
    with _Tasks(ray, partial(task.remote, os.getcwd(), rules, version("dikast")), most) as pool:
        try:
            yield pool
        except BaseException:
            pool.stop()
            raise


class _Tasks(ThreadPoolExecutor):
    """Threads of the driver, each of which waits for one task at a time, which `begin` begins."""

    def __init__(self, ray: Any, begin: Callable[..., Any], most: int) -> None:
        super().__init__(most)
        self._ray, self._begin = ray, begin
        self._running: set[Any] = set()
        self._stopped = False

    def submit(self, work: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        return super().submit(self._waited, work, args, named)

    def _waited(self, work: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """What the work returned, or raises its own error."""
        running = self._begin(work, args, named)
        self._running.add(running)
        if self._stopped:  # while it was being begun
            self._ray.cancel(running, force=True)
        try:
            return self._ray.get(running)
        except self._ray.exceptions.RayTaskError as error:
            raise getattr(error, "cause", None) or error from None
        except self._ray.exceptions.RayError as error:
            raise RunError(
                f"a task of the cluster ended before its work was done ({first_line(error)}); what was written before"
                " is kept: run the same command again"
            ) from error
        finally:
            self._running.discard(running)

    def stop(self) -> None:
        """Begin nothing more, and stop what runs."""
        self._stopped = True
        self.shutdown(wait=False, cancel_futures=True)
        for running in list(self._running):
            self._ray.cancel(running, force=True)


def _done(
    folder: str, rules: MediaRules, ours: str, work: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]
) -> Any:
    """Do the work on a machine of the cluster."""
    if (theirs := version("dikast")) != ours:
        raise UserError(f"{socket.gethostname()} has Dikast {theirs}, and this machine {ours}: install one version")
    if not Path(folder).is_dir():
        raise UserError(
            f"{socket.gethostname()} has no folder {folder}, in which the command runs: run it in a folder that all"
            " machines share"
        )
    os.chdir(folder)
    with media_rules(**asdict(rules)):
        return work(*args, **named)
