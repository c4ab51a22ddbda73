"""The training loop."""

import itertools
import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import torch

from dikast.core.errors import RunError
from dikast.engines.local.loading import Loaded
from dikast.training.batches import Batch, Plan, collate, micro_batches, summed_loss
from dikast.training.checkpoint import checkpoints, load_checkpoint, save_checkpoint, trained
from dikast.training.config import Config
from dikast.training.schedule import rate_at
from dikast.training.shards import Shards

Watcher = Callable[[dict[str, Any]], None]
_AHEAD = 4  # batches that are put together while the model works
_ALIGNED = 64  # row lengths of a compiled model are multiples of so many tokens, so that few shapes occur


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended: `steps` done of `total`; with fewer, the same command goes on."""

    steps: int
    total: int

    @property
    def complete(self) -> bool:
        """Whether all steps were done."""
        return self.steps >= self.total


def train(
    config: Config,
    loaded: Loaded,
    shards: Shards,
    out: Path,
    *,
    run: str,
    watch: Watcher,
    judge: Callable[[int], None] | None = None,
) -> Outcome:
    """Train to the last step, from the last checkpoint in `out` if there is one.

    run: what makes this run this run; a checkpoint of another is refused. watch: gets every line of the log. judge:
    called with the number of steps done as an evaluation falls due. RunError when a loss is not a number or a batch
    does not fit; the last checkpoint is intact then.
    """
    model, started = loaded.model, time.monotonic()
    plan = Plan(shards.lengths, batch_size=config.batch_size, seed=config.seed, grouped=config.group_by_length)
    total = config.steps or max(1, round(config.epochs * plan.per_epoch))
    optimizer = _optimizer(model, config)
    torch.manual_seed(config.seed)
    done, seconds = 0, 0.0
    if found := checkpoints(out / "checkpoints"):
        state = load_checkpoint(found[-1], model, optimizer, run=run)
        done, seconds = int(state["step"]), float(state["seconds"])
    log = Log(out / "train.jsonl", done)
    forward = torch.compile(model, dynamic=True) if config.compile else model
    arithmetic = _arithmetic(config, loaded.device)
    tally = _Tally()
    model.train()

    def save(step: int) -> None:
        state = {"run": run, "seconds": seconds + time.monotonic() - started}
        save_checkpoint(out / "checkpoints", step, model, optimizer, state, config.keep)

    with ThreadPoolExecutor(1) as pool:
        batches = _batches(config, loaded, shards, plan, range(done, total), pool)
        for step in range(done, total):
            rate = rate_at(step, steps=total, peak=config.learning_rate, warmup=config.warmup,
                           shape=config.schedule, final=config.final_rate)  # fmt: skip
            for group in optimizer.param_groups:
                group["lr"] = rate
            micro = next(batches)
            weight = float(sum(batch.weights.sum() for batch in micro))
            losses = []
            for batch in micro:
                with _fits(batch, shards):
                    loss = _loss(forward, batch, loaded, arithmetic) / max(weight, 1.0)
                    loss.backward()
                losses.append(loss.detach())
            norm = torch.nn.utils.clip_grad_norm_(trained(model).values(), config.clip or math.inf)
            if not math.isfinite(float(norm)) or not math.isfinite(float(sum(losses))):
                raise _not_a_number(model, micro, loaded, shards, step, arithmetic)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            tally.add(float(sum(losses)), micro)
            now, last = step + 1, step + 1 == total
            if now % config.log_every == 0 or last or now == done + 1:
                line = {"step": now, **tally.line(), "rate": rate, "norm": float(norm), "steps": total}
                line["seconds"] = seconds + time.monotonic() - started
                log.write(line)
                watch(line)
                tally = _Tally()
            if judge is not None and ((config.eval.every and now % config.eval.every == 0) or last):
                model.eval()
                with torch.random.fork_rng():
                    judge(now)
                model.train()
                tally = _Tally()
            stop = config.max_seconds and time.monotonic() - started >= config.max_seconds
            if last or stop or (config.save_every and now % config.save_every == 0):
                save(now)
            if stop and not last:
                return Outcome(now, total)
    return Outcome(total, total)


def _optimizer(model: torch.nn.Module, config: Config) -> torch.optim.AdamW:
    """AdamW (Loshchilov & Hutter 2019); matrices decay, vectors (norms, biases) do not."""
    parameters = list(trained(model).values())
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    cuda = any(p.is_cuda for p in parameters)
    betas = (config.betas[0], config.betas[1])
    return torch.optim.AdamW([g for g in groups if g["params"]], lr=config.learning_rate, betas=betas, fused=cuda)


def _arithmetic(config: Config, device: torch.device) -> Callable[[], AbstractContextManager[Any]]:
    if config.precision == "bf16":
        return lambda: torch.autocast(device.type, torch.bfloat16)
    return nullcontext


def _batches(
    config: Config, loaded: Loaded, shards: Shards, plan: Plan, steps: range, pool: ThreadPoolExecutor
) -> Iterator[list[Batch]]:
    """The micro-batches of each step, put together ahead of time."""

    def make(step: int) -> list[Batch]:
        cuts = micro_batches(plan.step(step), shards, config.micro_tokens)
        multiple = _ALIGNED if config.compile else 1
        weight = config.verdict_weight
        return [collate(shards, c, padding=loaded.padding, label_weight=weight, multiple=multiple) for c in cuts]

    todo = iter(steps)
    waiting = [pool.submit(make, step) for step in itertools.islice(todo, _AHEAD)]
    while waiting:
        yield waiting.pop(0).result()
        waiting.extend(pool.submit(make, step) for step in itertools.islice(todo, 1))


def _loss(
    model: Any, batch: Batch, loaded: Loaded, arithmetic: Callable[[], AbstractContextManager[Any]]
) -> torch.Tensor:
    """The weighted sum of the batch's losses, in nats."""
    moved = placed(batch, loaded)
    with arithmetic():
        logits = model(**moved.inputs, use_cache=False, logits_to_keep=moved.targets.shape[1] + 1).logits
    return summed_loss(logits, moved)


def placed(batch: Batch, loaded: Loaded) -> Batch:
    """The batch where the model is, images in its precision."""
    device, dtype = loaded.device, loaded.model.dtype
    inputs = {
        name: tensor.to(device, dtype if tensor.is_floating_point() else None, non_blocking=True)
        for name, tensor in batch.inputs.items()
    }
    return Batch(inputs, batch.targets.to(device), batch.weights.to(device), batch.numbers)


@contextmanager
def _fits(batch: Batch, shards: Shards) -> Iterator[None]:
    """Say which batch did not fit into memory, and what to do."""
    try:
        yield
    except RuntimeError as error:
        if not isinstance(error, torch.OutOfMemoryError) and "can't allocate memory" not in str(error):
            raise
        rows, tokens = batch.size
        longest = max(batch.numbers, key=lambda number: int(shards.lengths[number]))
        name, origin = shards.name(longest)
        cure = "lower 'micro_tokens'" if rows > 1 else "lower 'max_tokens' or leave the row out"
        raise RunError(
            f"{origin}: a batch of {rows} rows by {tokens} tokens does not fit into memory (its longest is {name!r}): "
            f"{cure}, or set 'checkpointing: true'; the last checkpoint is intact"
        ) from error


def _not_a_number(
    model: Any,
    micro: list[Batch],
    loaded: Loaded,
    shards: Shards,
    step: int,
    arithmetic: Callable[[], AbstractContextManager[Any]],
) -> RunError:
    """The error that names the first example whose own loss is not a number, or says that only the gradient is not."""
    kept = "the weights of the last checkpoint are intact"
    for batch in micro:
        for number in batch.numbers:
            alone = collate(shards, [number], padding=loaded.padding, label_weight=1.0)
            with torch.no_grad():
                loss = float(_loss(model, alone, loaded, arithmetic))
            if not math.isfinite(loss):
                name, origin = shards.name(number)
                return RunError(
                    f"{origin}: step {step + 1}: the loss of example {name!r} is {loss}: lower 'learning_rate', use "
                    f"'precision: fp32', or leave the record out if it alone does this; {kept}"
                )
    return RunError(
        f"step {step + 1}: the gradient is not a number though every loss is: lower 'learning_rate' or use 'precision: "
        f"fp32'; {kept}"
    )


class _Tally:
    """What happened since the last line of the log."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._losses: list[float] = []
        self._tokens = self._learnt = self._examples = 0

    def add(self, loss: float, micro: list[Batch]) -> None:
        self._losses.append(loss)
        self._examples += sum(len(batch.numbers) for batch in micro)
        self._tokens += sum(batch.size[0] * batch.size[1] for batch in micro)
        self._learnt += sum(int((batch.weights > 0).sum()) for batch in micro)

    def line(self) -> dict[str, Any]:
        """Mean loss (nats a token), and rates per second of wall clock."""
        spent = max(time.monotonic() - self._since, 1e-9)
        found = {
            "loss": sum(self._losses) / len(self._losses),
            "tokens_per_second": self._tokens / spent,
            "learnt_per_second": self._learnt / spent,
            "examples_per_second": self._examples / spent,
        }
        return found


def steps_done(out: Path) -> int:
    """The steps of the last checkpoint in a run's folder; 0 without one."""
    found = checkpoints(out / "checkpoints")
    return int(found[-1].name.removeprefix("step-")) if found else 0


class Log:
    """A JSONL file of lines with a `step`; lines of steps that will be done again are dropped."""

    def __init__(self, path: Path, done: int) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = [line for line in read_log(path) if line["step"] <= done]
        path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in kept))

    def write(self, line: dict[str, Any]) -> None:
        """Append a line."""
        with self._path.open("ab") as file:
            file.write(orjson.dumps(line, option=orjson.OPT_SERIALIZE_NUMPY) + b"\n")


def read_log(path: Path) -> list[dict[str, Any]]:
    """The lines of a log, without one that a crash tore."""
    if not path.is_file():
        return []
    lines = path.read_bytes().split(b"\n")
    return [orjson.loads(line) for line in lines[:-1] if line.strip()]
