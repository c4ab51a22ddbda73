"""The training loop."""

import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from dikast.core.errors import RunError
from dikast.engines.local.loading import Loaded
from dikast.training.checkpoint import load_checkpoint, random_state, save_checkpoint, sound_checkpoint, trained
from dikast.training.config import Config
from dikast.training.data.batches import BatchPlan, Unit, micro_batches
from dikast.training.data.collate import Batch, collate, summed_loss, units_of
from dikast.training.data.distinct_media import shown_again
from dikast.training.data.media_loader import Tensors
from dikast.training.data.shards import Shards
from dikast.training.log import Log
from dikast.training.optimizer import optimizer_of
from dikast.training.packed_attention import use_packed_attention
from dikast.training.processes import SingleProcess
from dikast.training.schedule import rate_at, tell_long_warmup

Watcher = Callable[[dict[str, Any]], None]
_AHEAD = 4  # batches prepared ahead of the model
_ALIGNED = 32  # for a compiled model, row lengths are multiples of this many tokens, so that few shapes occur


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a run: `steps` done of `total`; if fewer, the same command resumes it."""

    steps: int
    total: int

    @property
    def complete(self) -> bool:
        """Whether all steps were done."""
        return self.steps >= self.total


class _Unsaved(NamedTuple):
    """A checkpoint that is due: the step it follows, that step's batches, and the state saved with the weights."""

    step: int
    micro: list[Batch]
    state: dict[str, Any]
    draws: dict[str, torch.Tensor]


class Loop:
    """One training run, resumed from its last checkpoint if it has one; `train` runs it to the end.

    runs: the identity of the run, and those that it had before; a checkpoint of another run is refused.
    """

    def __init__(
        self,
        config: Config,
        loaded: Loaded,
        shards: Shards,
        out: Path,
        team: SingleProcess,
        *,
        runs: tuple[str, ...],
    ) -> None:
        self._config, self._loaded, self._shards, self._team, self.run = config, loaded, shards, team, runs[0]
        self._folder = out / "checkpoints"
        self._plan = self._planned_batches()
        self._planned = config.steps or max(1, round(config.epochs * self._plan.per_epoch))  # steps of the schedule
        team.from_main(lambda: tell_long_warmup(self._planned, config.warmup, config.learning_rate))
        self.total = min(self._planned, config.stop_at or self._planned)
        if config.pack != "none":
            use_packed_attention(loaded.model)
        if config.compile:
            _compile_layers(loaded.model)
        self._forward, self._optimizer = team.join(loaded.model, optimizer_of(loaded.model, config))
        torch.manual_seed(config.seed + team.rank)
        self.done, self._spent, self._waited = 0, 0.0, 0.0
        self._unsaved: _Unsaved | None = None
        if (found := sound_checkpoint(self._folder, team)) is not None:
            state = load_checkpoint(found, loaded.model, self._optimizer, team, runs=runs)
            self.run = str(state["run"])  # a run keeps the identity that it began with
            self.done, self._spent = int(state["step"]), float(state["seconds"])
        self._log = team.from_main(lambda: Log(out / "train.jsonl", self.done))

    def train(self, *, watch: Watcher, judge: Callable[[int], None] | None = None) -> Outcome:
        """Train to the last step, or as long as `max_seconds` allows.

        watch: called with every line of the log, in the main process. judge: called with the number of steps done when
        an evaluation is due, and at the end after the last checkpoint; it must leave the model's mode and the random
        state unchanged. RunError if a loss is not a number, a batch does not fit, or a picture is no longer as it was
        prepared; the last checkpoint stays intact.
        """
        config, model, started = self._config, self._loaded.model, time.monotonic()
        first, tally = self.done, self._tally()
        if first < self.total:
            self._team.from_main(self._shards.check_files)
        model.train()
        with ThreadPoolExecutor(1) as pool:
            batches = self._batches(pool)
            for step in range(first, self.total):
                rate = rate_at(step, steps=self._planned, peak=config.learning_rate, warmup=config.warmup,
                               shape=config.schedule, final=config.min_lr_ratio)  # fmt: skip
                try:
                    micro = next(batches)
                    loss, norm = self._step(step, micro, rate)
                except RunError:
                    self._optimizer.zero_grad(set_to_none=True)
                    if self._team.size == 1:  # with several processes only one of them may have failed
                        with suppress(RunError):
                            self._save_checked()
                    raise
                tally.add(loss, micro)
                self.done, last = step + 1, step + 1 == self.total
                seconds = self._spent + time.monotonic() - started
                if self.done % config.log_every == 0 or last or step == first:
                    line = {"step": self.done, **tally.line(self._team, self._waited), "rate": rate, "norm": norm}
                    self._tell({**line, "steps": self.total, "seconds": seconds}, watch)
                    tally, self._waited = self._tally(), 0.0
                late = config.max_seconds > 0 and time.monotonic() - started >= config.max_seconds
                stop = config.max_seconds > 0 and self._team.total(late) > 0  # if one process is late, all stop
                if last or stop or (config.save_every and self.done % config.save_every == 0):
                    state = {"run": self.run, "seconds": self._spent + time.monotonic() - started}
                    self._unsaved = _Unsaved(step, micro, state, random_state())
                if last or stop:
                    self._save_checked()
                if judge is not None and self.evaluation_due():
                    began = time.monotonic()
                    judge(self.done)
                    tally.pause(time.monotonic() - began)
                if stop:
                    break
        return Outcome(self.done, self.total)

    def _planned_batches(self) -> BatchPlan:
        """Which examples each step learns from."""
        config, shards = self._config, self._shards
        return BatchPlan(
            shards.lengths, batch_size=config.batch_size, seed=config.seed, grouped=config.group_by_length,
            siblings=shards.siblings if config.pack == "trees" else None,
        )  # fmt: skip

    def _units(self, step: int) -> list[Unit]:
        """The units of a step, which are computed together, longest first."""
        return units_of(self._plan.step(step), self._shards, self._loaded, self._config.pack)

    def _counted(self, batch: Batch) -> float:
        """What a batch counts in the mean that is a step's loss."""
        return float(batch.weights.sum())

    def _tally(self) -> "_Tally":
        return _Tally(self._shards, shared=self._config.pack == "trees")

    def _tell(self, line: dict[str, Any], watch: Watcher) -> None:
        """Write a line of the log and pass it to `watch`, in the main process."""

        def told() -> None:
            self._log.write(line)
            watch(line)

        self._team.from_main(told)

    def evaluation_due(self) -> bool:
        """Whether an evaluation is due after the steps done."""
        every = self._config.eval.every
        return self.done >= self.total or (every > 0 and self.done % every == 0)

    def _step(self, step: int, micro: list[Batch], rate: float) -> tuple[float, float]:
        """One optimizer step; returns its mean loss (of `sft` in nats a target token), and the norm of the gradient."""
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        weight = max(self._team.total(sum(self._counted(batch) for batch in micro)), 1e-9)
        losses = []
        for batch in micro:
            with fits(batch, self._shards):
                loss = self._loss(self._forward, batch) / weight
                self._team.backward(loss)
            losses.append(loss.detach())
        norm = self._team.clip(trained(self._loaded.model).values(), self._config.clip or math.inf)
        total = self._team.total(float(sum(losses)))
        if not math.isfinite(norm) or not math.isfinite(total):
            raise self._not_a_number(step)
        self._save()  # the weights before this step gave a finite loss and gradient, so they can be saved
        with fits(micro[0], self._shards):  # the first step allocates the optimizer's moments
            self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        return total, norm

    def _save(self) -> None:
        """Write the checkpoint that is due, if any; called when a finite loss has shown that its weights are usable."""
        if self._unsaved is None:
            return
        step, _, state, draws = self._unsaved
        self._unsaved = None
        model, keep = self._loaded.model, self._config.keep
        save_checkpoint(self._folder, step + 1, model, self._optimizer, state, draws, self._team, keep)

    def _save_checked(self) -> None:
        """Write the last checkpoint, which no further step checks; RunError if its weights give no finite loss.

        The check is a forward pass of one micro-batch of the last step.
        """
        if self._unsaved is None:
            return
        step, micro, _, _ = self._unsaved
        with torch.random.fork_rng(), fits(micro[0], self._shards):
            loss = self._loss(self._forward, micro[0])
            self._team.backward(loss)  # only a backward pass reshards FSDP weights
        self._optimizer.zero_grad(set_to_none=True)
        if not math.isfinite(self._team.total(float(loss.detach()))):
            self._unsaved = None
            raise self._not_a_number(step)
        self._save()

    def _loss(self, model: Any, batch: Batch) -> torch.Tensor:
        """The weighted sum of the batch's losses, in nats."""
        reduced = self._config.precision == "bf16"
        return summed_loss(*logits_of(model, batch, self._loaded, reduced=reduced))

    def _batches(self, pool: ThreadPoolExecutor) -> Iterator[list[Batch]]:
        """The micro-batches of each step for this process, prepared ahead of time."""
        steps = iter(range(self.done, self.total))
        waiting = [pool.submit(self._micro, step) for step in itertools.islice(steps, _AHEAD)]
        while waiting:
            began = time.monotonic()
            micro = waiting.pop(0).result()
            self._waited += time.monotonic() - began
            yield micro
            waiting.extend(pool.submit(self._micro, step) for step in itertools.islice(steps, 1))

    def _micro(self, step: int) -> list[Batch]:
        team, most = self._team, self._config.max_tokens_per_micro_batch
        runs = micro_batches(self._units(step), most, team.size, packed=self._config.pack != "none")
        mine = [run[team.rank :: team.size] for run in runs]  # if it is empty, a unit of weight 0 keeps in step
        chosen = [[n for unit in own or run[:1] for n in unit.numbers] for run, own in zip(runs, mine, strict=True)]
        media = self._shards.load(itertools.chain.from_iterable(chosen))  # of all passes at once, for many threads
        return [
            self._collate(numbers, itertools.islice(media, len(numbers)), counts=bool(own))
            for numbers, own in zip(chosen, mine, strict=True)
        ]

    def _collate(self, numbers: Sequence[int], media: Iterator[Tensors] | None = None, *, counts: bool = True) -> Batch:
        batch = collate(
            self._shards,
            numbers,
            self._loaded,
            label_weight=self._config.label_loss_weight,
            label_smoothing=self._config.label_smoothing,
            multiple=_ALIGNED if self._config.compile else 1,
            pack=self._config.pack,
            media=media,
        )
        return batch if counts else replace(batch, weights=torch.zeros_like(batch.weights), learnt=0)

    def _alone(self, step: int) -> Iterator[tuple[int, ...]]:
        """The examples of a step, as few together as can have a loss."""
        return ((number,) for number in itertools.chain.from_iterable(self._plan.step(step)))

    def _not_a_number(self, step: int) -> RunError:
        """The error that names the first example whose loss is not a number, or else blames the gradient."""
        cure = "lower 'learning_rate' or use 'precision: fp32', and give another 'out'"
        kept = "the weights of the last checkpoint are intact"
        for numbers in self._alone(step):
            with torch.no_grad():
                loss = float(self._loss(self._loaded.model, self._collate(numbers)))
            if not math.isfinite(loss):
                name, origin = self._shards.name(numbers[0])
                return RunError(
                    f"{origin}: step {step + 1}: the loss of example {name!r} is {loss}: {cure}, or leave the record "
                    f"out if it alone does this; {kept}"
                )
        return RunError(f"step {step + 1}: the gradient is not a number though every loss is: {cure}; {kept}")


def _compile_layers(model: Any) -> None:
    """Compile only the repeated layers, each kind once: seconds instead of minutes.

    On a CPU eager attention is used, so that it is compiled too; the fused kernel's backward pass is slow there.
    """
    if model.device.type == "cpu":
        model.set_attn_implementation("eager")
    torch._dynamo.config.recompile_limit = max(64, torch._dynamo.config.recompile_limit)
    for layers in model.modules():
        if isinstance(layers, torch.nn.ModuleList):
            for layer in layers:
                layer.compile(dynamic=True)


def logits_of(model: Any, batch: Batch, loaded: Loaded, *, reduced: bool) -> tuple[torch.Tensor, Batch]:
    """What the model predicts at the kept positions, (kept, vocabulary), and the batch on the model's device.

    reduced: compute in bf16.
    """
    moved = placed(batch, loaded)
    cast = torch.autocast(loaded.device.type, torch.bfloat16) if reduced else nullcontext()
    with cast, shown_again(loaded.model, moved.places):
        return model(**moved.inputs, use_cache=False).logits, moved


def placed(batch: Batch, loaded: Loaded) -> Batch:
    """The batch on the model's device, with images in the model's precision; a table of segments is read on the CPU."""
    device, dtype = loaded.device, loaded.model.dtype
    inputs = {
        name: tensor.to(device, dtype if name.startswith("pixel_values") else None, non_blocking=True)
        if name != "attention_mask"
        else tensor
        for name, tensor in batch.inputs.items()
    }
    moved = {name: getattr(batch, name).to(device) for name in ("targets", "sources", "weights")}
    return replace(batch, inputs=inputs, **moved)


@contextmanager
def fits(batch: Batch, shards: Shards) -> Iterator[None]:
    """Turn out-of-memory errors into a RunError that names the batch and the cure."""
    try:
        yield
    except RuntimeError as error:
        if not isinstance(error, torch.OutOfMemoryError) and "can't allocate memory" not in str(error):
            raise
        rows, tokens = batch.size
        longest = max(batch.numbers, key=lambda number: int(shards.lengths[number]))
        name, origin = shards.name(longest)
        cure = "lower 'max_tokens_per_micro_batch'" if rows > 1 else "lower 'max_tokens' or leave the row out"
        raise RunError(
            f"{origin}: a batch of {rows} rows and {tokens} tokens does not fit into memory (its longest is {name!r}): "
            f"{cure}, or set 'checkpointing: true'; the last checkpoint is intact"
        ) from error


class _Tally:
    """Totals since the last line of the log."""

    def __init__(self, shards: Shards, *, shared: bool) -> None:
        self._lengths, self._since, self._shared = shards.lengths, time.monotonic(), shared
        self._losses: list[float] = []
        self._tokens = self._learnt = self._examples = self._computed = 0

    def add(self, loss: float, micro: list[Batch]) -> None:
        self._losses.append(loss)
        for batch in micro:
            if batch.learnt:  # none in a unit that only keeps the processes in step
                self._learnt += batch.learnt
                self._examples += len(batch.numbers)
                self._tokens += sum(int(self._lengths[number]) for number in batch.numbers)
                self._computed += batch.size[1]

    def pause(self, seconds: float) -> None:
        """Exclude time that was not spent on training."""
        self._since += seconds

    def line(self, team: SingleProcess, waited: float) -> dict[str, Any]:
        """Mean loss (nats a target token), and rates per second of wall clock over all processes, without padding.

        `waiting` is the share of the time that the main process spent waiting for batches, `waited` seconds. For trees
        also `shared`, the share of the examples' tokens that were not computed again.
        """
        spent = max(time.monotonic() - self._since, 1e-9)
        found = {
            "loss": sum(self._losses) / len(self._losses),
            "tokens_per_second": team.total(self._tokens) / spent,
            "learnt_per_second": team.total(self._learnt) / spent,
            "examples_per_second": team.total(self._examples) / spent,
            "waiting": min(waited / spent, 1.0),
        }
        if self._shared:
            found["shared"] = 1 - team.total(self._computed) / max(team.total(self._tokens), 1)
        return found
