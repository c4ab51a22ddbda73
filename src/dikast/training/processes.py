"""Training in a single process or distributed over several: `accelerate launch -m dikast train sft --config C.yaml`."""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from typing import Any, Self, TypeVar

import torch

from dikast.core.errors import RunError, UserError, machine_error
from dikast.training.config import Config
from dikast.training.fsdp.sharded_model import launched_for_fsdp

_T = TypeVar("_T")
_PATIENCE = timedelta(hours=6)  # while one process prepares the data for all
_FAREWELL = timedelta(seconds=10)  # for the others, after an error that may be of one process alone


class SingleProcess:
    """A single process. Training is the body of its `with`, which several processes leave together."""

    rank, size, main = 0, 1, True
    shards = 1  # number of processes that the model is sharded over
    about = "1"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        pass

    def join(self, model: Any, optimizer: Any) -> tuple[Any, Any]:
        """The model to call, and the optimizer to step."""
        return model, optimizer

    def backward(self, loss: torch.Tensor) -> None:
        """Add the gradient of this process's share of the loss."""
        loss.backward()

    def clip(self, parameters: Iterable[torch.Tensor], most: float) -> float:
        """Clip the gradient over all processes to a norm of at most `most`; returns the norm before clipping."""
        norm: Any = torch.nn.utils.clip_grad_norm_(parameters, most)
        return float(norm.full_tensor() if hasattr(norm, "full_tensor") else norm)

    def total(self, value: float) -> float:
        """The sum over the processes."""
        return value

    def from_main(self, make: Callable[[], _T]) -> _T:
        """The result of `make` in every process; only the main process calls it, and its error is raised in all."""
        return make()

    def wait(self) -> None:
        """Until every process is here."""


class Distributed(SingleProcess):
    """Several processes, through accelerate: replicas (DDP) or shards (FSDP2), as it was launched."""

    def __init__(self, config: Config) -> None:
        if os.environ.get("ACCELERATE_USE_DEEPSPEED", "false").lower() == "true":
            raise UserError(
                "DeepSpeed takes a step after every piece of a batch, which this loop cannot follow: use fsdp2.yaml"
            )
        from accelerate import Accelerator
        from accelerate.utils import DistributedDataParallelKwargs, InitProcessGroupKwargs

        self._made = not torch.distributed.is_initialized()  # a process group of the caller is not closed
        if self._made:
            _open_again()
        self._accelerator = Accelerator(
            mixed_precision="bf16" if config.precision == "bf16" else "no",
            cpu=config.device == "cpu" or not torch.cuda.is_available(),
            kwargs_handlers=[
                InitProcessGroupKwargs(timeout=_PATIENCE),
                DistributedDataParallelKwargs(find_unused_parameters=True),  # text rows do not use the vision tower
            ],
        )
        self.rank = self._accelerator.process_index
        self.size = self._accelerator.num_processes
        self.main = self._accelerator.is_main_process
        sharded = launched_for_fsdp()
        self.shards = self.size if sharded else 1
        self.about = f"{self.size}, {'FSDP2' if sharded else self._accelerator.distributed_type.value}"

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        """Close the process group, when all are here: a process whose peer has ended may be aborted while it ends."""
        if not self._made or not torch.distributed.is_initialized():
            return
        from accelerate.state import AcceleratorState
        from torch.distributed import distributed_c10d

        with suppress(RuntimeError):  # the launcher reports a process that has ended
            if kind is None:
                self.wait()
            elif torch.distributed.get_backend() == "gloo":
                torch.distributed.monitored_barrier(timeout=_FAREWELL)
        _closed.append((torch.distributed.get_backend(), distributed_c10d._get_default_store()))
        torch.distributed.destroy_process_group()
        AcceleratorState._reset_state(reset_partial_state=True)  # else it would take the next group for this one

    def join(self, model: Any, optimizer: Any) -> tuple[Any, Any]:
        """As `SingleProcess.join`; a sharded model was sharded when it was opened."""
        if self.shards > 1:
            return model, optimizer
        prepared: tuple[Any, Any] = self._accelerator.prepare(model, optimizer)
        return prepared

    def backward(self, loss: torch.Tensor) -> None:
        """As for a single process; the loss is scaled by the number of processes, which average their gradients."""
        self._accelerator.backward(loss * self.size)

    def total(self, value: float) -> float:
        """The sum over the processes."""
        tensor = torch.tensor(value, dtype=torch.float64, device="cpu" if self._on_cpu else self._accelerator.device)
        torch.distributed.all_reduce(tensor)
        return float(tensor)

    def from_main(self, make: Callable[[], _T]) -> _T:
        """As `SingleProcess.from_main`: the others receive the value, or the type and message of the error."""
        told: list[Any] = [None, None]
        error: Exception | None = None
        if self.main:
            try:
                told[0] = make()
            except Exception as raised:  # the other processes must learn of any error
                error = raised
                why = machine_error(raised) if isinstance(raised, OSError) else raised
                told[1] = isinstance(raised, UserError), f"{why}" or type(raised).__name__
        torch.distributed.broadcast_object_list(told)
        if error is not None:
            raise error
        if told[1] is not None:
            usage, why = told[1]
            raise UserError(why) if usage else RunError(why)
        found: _T = told[0]
        return found

    @property
    def _on_cpu(self) -> bool:
        return self._accelerator.device.type == "cpu"

    def wait(self) -> None:
        """Until every process is here."""
        self._accelerator.wait_for_everyone()


_closed: list[tuple[str, Any]] = []  # backend and store of each group of this process that was closed


def _open_again() -> None:
    """A group where there was one before: under the same keys the processes would find addresses of the closed one."""
    if not _closed:
        return  # accelerate opens the first
    from torch.distributed import PrefixStore  # type: ignore[attr-defined]  # torch does not list what it exports

    backend, store = _closed[0]
    torch.distributed.init_process_group(
        backend,
        timeout=_PATIENCE,
        store=PrefixStore(f"group-{len(_closed)}", store),
        rank=int(os.environ["RANK"]),
        world_size=int(os.environ["WORLD_SIZE"]),
    )


def team_of(config: Config) -> SingleProcess:
    """The processes this one was started with."""
    return Distributed(config) if int(os.environ.get("WORLD_SIZE", "1")) > 1 else SingleProcess()
