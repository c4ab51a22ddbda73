"""Direct preference optimisation (Rafailov et al. 2023): the training loop with a loss of pairs."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as spelt
from torch.nn.functional import logsigmoid

from dikast.core.canonical import fingerprint
from dikast.core.runs.run_files import checksum, recorded, write_checked
from dikast.engines.local.loading import Loaded
from dikast.training.data.batches import BatchPlan, Unit, micro_batches
from dikast.training.data.collate import Batch, collate, cross_entropies, units_of
from dikast.training.data.prepare import data_hash, prepare_shards
from dikast.training.data.shards import Shards
from dikast.training.fsdp.sharded_model import dealt_out_again
from dikast.training.log import read_log
from dikast.training.loop import Loop, Watcher, fits, logits_of
from dikast.training.models.model import about, open_model, source_of
from dikast.training.models.model_card import write_card
from dikast.training.packed_attention import use_packed_attention
from dikast.training.planning.training_plan import check_before_loading
from dikast.training.plot import plot
from dikast.training.preferences import PreferenceConfig, load_preference_config
from dikast.training.processes import SingleProcess
from dikast.training.training_folder import in_folder, save_result, training_result

REFERENCE = "reference.safetensors"
_TABLE = "logprobs"


def dpo(config: "PreferenceConfig | str | Path", *, watch: Watcher = lambda line: None) -> dict[str, Any]:
    """Train the model that the configuration describes on pairs, resuming an earlier call.

    The folder `out` gets `reference.safetensors` (log-probabilities under the first model, computed once),
    `train.jsonl` (loss, margin, accuracy, log-ratios, rate, speed), `curves.svg`, `checkpoints/` and, at the end,
    `model/` with its card. watch: gets every line of the log. Returns what was done, as `sft` does; `examples` are
    pairs.
    """
    config = config if isinstance(config, PreferenceConfig) else load_preference_config(config)
    return in_folder(config, lambda team: _dpo(config, team, watch))


def _dpo(config: PreferenceConfig, team: SingleProcess, watch: Watcher) -> dict[str, Any]:
    team.from_main(lambda: check_before_loading(config))
    out, loaded = config.path(config.out), open_model(config, shards=team.shards)
    shards = prepare_shards(config, loaded, about(loaded), data := data_hash(config), team)
    start = source_of(config).identity() if config.model else about(loaded)
    data = fingerprint([data, shards.shown])
    runs = config.runs(data, start)
    loop = PreferenceLoop(config, loaded, shards, out, team, runs=runs)
    outcome = loop.train(watch=watch)

    def finish() -> None:
        plot(out)
        if outcome.complete:
            save_result(loaded, config, team)
            more = {"processes": team.about} if team.size > 1 else {}
            lines = read_log(out / "train.jsonl")
            write_card(
                out / "model", config, data=data, run=loop.run, examples=len(shards) // 2, lines=lines, evals=(),
                more=more, kind="policy",
            )  # fmt: skip

    team.from_main(finish)
    return training_result(config, outcome, team, examples=len(shards) // 2, run=loop.run)


class PreferenceLoop(Loop):
    """A `Loop` over pairs: examples 2p and 2p + 1 are the better and the worse response of pair p.

    A pair stays in one forward pass. With trees (the default) the common prefix of both rows is computed once, and
    every picture goes through the vision tower once.
    """

    def __init__(
        self,
        config: PreferenceConfig,
        loaded: Loaded,
        shards: Shards,
        out: Path,
        team: SingleProcess,
        *,
        runs: tuple[str, ...],
    ) -> None:
        self._settings = config
        self._measured: list[torch.Tensor] = []
        if config.pack != "none":
            use_packed_attention(loaded.model)
        self._reference = torch.from_numpy(reference(config, loaded, shards, out, team, runs))
        super().__init__(config, loaded, shards, out, team, runs=runs)

    def _planned_batches(self) -> BatchPlan:
        config, lengths = self._settings, self._shards.lengths
        return BatchPlan(
            lengths, batch_size=2 * config.batch_size, seed=config.seed, grouped=config.group_by_length,
            siblings=np.arange(len(lengths)) // 2,
        )  # fmt: skip

    def _units(self, step: int) -> list[Unit]:
        return pair_units(self._plan.step(step), self._shards, self._loaded, self._settings)

    def _alone(self, step: int) -> Iterator[tuple[int, ...]]:
        return iter(self._plan.step(step))

    def _counted(self, batch: Batch) -> float:
        return len(batch.numbers) / 2 if batch.learnt else 0.0

    def _loss(self, model: Any, batch: Batch) -> torch.Tensor:
        """The sum of the losses of the batch's pairs, in nats."""
        logprobs, tokens = replies_of(model, batch, self._loaded, self._settings)
        pairs = torch.tensor(batch.numbers[::2]) // 2
        ratios = logprobs - self._reference[pairs].to(logprobs)
        loss = preference_losses(ratios, logprobs[:, 0] / tokens[:, 0], self._settings)
        if not batch.learnt:
            return loss.sum() * 0.0
        if torch.is_grad_enabled():
            self._measured.append(ratios.detach().float().cpu())
        return loss.sum()

    def _tell(self, line: dict[str, Any], watch: Watcher) -> None:
        """As `Loop._tell`, with statistics of the pairs since the last line.

        `chosen`, `rejected`: mean log-ratios to the reference, in nats; `margin`: their difference times beta;
        `accuracy`: the share of pairs in which the better response has the larger ratio, half where they are equal.
        """
        found = torch.cat([*self._measured, torch.zeros(0, 2)]).double()
        self._measured.clear()
        edge = found[:, 0] - found[:, 1]
        won = (edge > 0).double() + (edge == 0).double() / 2
        sums = [float(each.sum()) for each in (found[:, 0], found[:, 1], self._settings.beta * edge, won)]
        n = max(self._team.total(len(found)), 1.0)
        names = ("chosen", "rejected", "margin", "accuracy")
        super()._tell(
            {**line, **{name: self._team.total(each) / n for name, each in zip(names, sums, strict=True)}}, watch
        )


def pair_units(step: Sequence[tuple[int, ...]], shards: Shards, loaded: Loaded, config: PreferenceConfig) -> list[Unit]:
    """The pairs of a step as units, most tokens first."""
    if config.pack == "trees":
        return units_of(step, shards, loaded, "trees")
    sizes, groups = shards.lengths, shards.groups
    found = []
    for numbers in step:
        lengths = [int(sizes[number]) for number in numbers]
        tokens = sum(lengths) if config.pack == "rows" else len(lengths) * max(lengths)
        found.append(Unit(numbers, tokens, int(groups[numbers[0]])))
    return sorted(found, key=lambda unit: -unit.tokens)


def replies_of(model: Any, batch: Batch, loaded: Loaded, config: PreferenceConfig) -> tuple[torch.Tensor, torch.Tensor]:
    """The log-probability in nats of each pair's replies, (pairs, 2), and how many tokens they have."""
    found = logprobs_of_replies(model, batch, loaded, reduced=config.precision == "bf16")
    tokens = torch.tensor([len(each) for each in batch.replies], device=found.device)
    return found.view(-1, 2), tokens.view(-1, 2)


def logprobs_of_replies(model: Any, batch: Batch, loaded: Loaded, *, reduced: bool = False) -> torch.Tensor:
    """The log-probability in nats of each example's reply, (examples,). reduced: with bf16 arithmetic."""
    losses = cross_entropies(*logits_of(model, batch, loaded, reduced=reduced))
    return torch.stack([-losses[torch.from_numpy(each).to(losses.device)].sum() for each in batch.replies])


def preference_losses(ratios: torch.Tensor, likelihood: torch.Tensor, config: PreferenceConfig) -> torch.Tensor:
    """The loss of each pair, (pairs,), in nats.

    ratios: (pairs, 2), log-ratios to the reference, the better response first. likelihood: (pairs,), the better
    response's log-probability a token. The preference term is the sigmoid loss of DPO; `dpop` subtracts by how much the
    better response has become less likely (DPO-positive); `sft_weight` adds imitation of it.
    """
    edge = ratios[:, 0] - ratios[:, 1]
    if config.dpop:
        edge = edge - config.dpop * (-ratios[:, 0]).clamp(min=0)
    loss = -config.dpo_alpha * logsigmoid(config.beta * edge)
    return loss - config.sft_weight * likelihood if config.sft_weight else loss


def reference(
    config: PreferenceConfig, loaded: Loaded, shards: Shards, out: Path, team: SingleProcess, runs: tuple[str, ...]
) -> NDArray[np.float32]:
    """The log-probabilities of each pair's replies under the model as it was opened, (pairs, 2), in nats.

    They are computed once and stored in `out`; several processes compute a share each.
    """
    path = out / REFERENCE
    stored = team.from_main(lambda: _stored(path, runs))
    if not stored:
        team.from_main(shards.check_files)
        part = out / f"reference-{team.rank}.npy"
        np.save(part, _computed(config, loaded, shards, team))
        team.wait()

        def join() -> None:
            parts = [out / f"reference-{rank}.npy" for rank in range(team.size)]
            whole = sum(np.load(each) for each in parts)
            write_checked(path, spelt({_TABLE: whole}, metadata={"run": runs[0]}))
            for each in parts:
                each.unlink()

        team.from_main(join)
    with safe_open(path, "np") as file:
        found: NDArray[np.float32] = file.get_tensor(_TABLE)
    return found


def _stored(path: Path, runs: tuple[str, ...]) -> bool:
    """Whether the file is there, undamaged and of this run."""
    if not path.is_file() or checksum(path) not in recorded(path.parent).get(path.name, []):
        return False
    try:
        with safe_open(path, "np") as file:
            return bool((file.metadata() or {}).get("run") in runs)
    except SafetensorError:
        return False


def _computed(config: PreferenceConfig, loaded: Loaded, shards: Shards, team: SingleProcess) -> NDArray[np.float32]:
    """The share of the reference that falls to this process; the rest is 0."""
    found = np.zeros((len(shards) // 2, 2), np.float32)
    mode, most = loaded.model.training, config.max_tokens_per_micro_batch
    loaded.model.eval()
    chunk = 64 * config.batch_size
    for start in range(0, len(found), chunk):
        step = [(2 * pair, 2 * pair + 1) for pair in range(start, min(start + chunk, len(found)))]
        units = pair_units(step, shards, loaded, config)
        runs = micro_batches(units, most, packed=config.pack != "none")
        for turn in range(0, len(runs), team.size):
            mine = turn + team.rank < len(runs)
            if not mine and team.shards == 1:
                break
            # processes that hold shares of one model pass through it together: one without a run repeats the first
            run = runs[turn + team.rank if mine else 0]
            numbers = [number for unit in run for number in unit.numbers]
            batch = collate(shards, numbers, loaded, pack=config.pack)
            with torch.no_grad(), fits(batch, shards):
                logprobs, _ = replies_of(loaded.model, batch, loaded, config)
            if mine:
                found[np.array(numbers[::2]) // 2] = logprobs.float().cpu().numpy()
    dealt_out_again(loaded.model)
    loaded.model.train(mode)
    return found
