"""The plan of a configuration on given cards: as values, and in lines."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dikast.core.errors import UserError
from dikast.training.config import Config, load_config
from dikast.training.data.examples import files_of, rows_of_file
from dikast.training.planning.training_plan import CARDS, GB, SHARE, cure, plan, shape_of, work_of
from dikast.training.preferences import load_preference_config


@dataclass(frozen=True, slots=True)
class PlanAsked:
    """The inputs of a plan: cards, and examples as far as they are known. See `dikast train plan --help`."""

    shape: Path | None = None
    card: str = "H100"
    cards: int = 1
    rows: int = 0
    length: int = 0
    learnt: int = 0
    tiles: int = 0
    rate: float = 0.0
    dpo: bool = False


def planned(source: Path, asked: PlanAsked) -> dict[str, Any]:
    """The plan of a configuration file, as JSON values; `hours` is None where the number of examples is not known."""
    if asked.card not in CARDS:
        raise UserError(f"--card {asked.card!r}: choose {', '.join(CARDS)}")
    if asked.cards < 1:
        raise UserError(f"--cards: 1 or more, got {asked.cards}")
    config = load_preference_config(source) if asked.dpo else load_config(source)
    card, shape = CARDS[asked.card], shape_of(config, asked.shape)
    work = work_of(config, length=asked.length, learnt=asked.learnt, tiles=asked.tiles)
    made = plan(config, shape, work, cards=asked.cards)
    rows = asked.rows or _records(config)
    examples = config.steps * config.batch_size if config.steps else round(config.epochs * rows)
    tokens = examples * work.tokens
    holds = made.total <= card.memory
    return {
        "parameters": made.counts.parameters, "trained": made.counts.trained, "card": card.name, "cards": asked.cards,
        "memory_gb_a_card": {name: size / GB for name, size in made.memory.items()}, "total_gb_a_card": made.total / GB,
        "memory_gb": card.memory / GB, "fits": holds,
        "cure": "" if holds else cure(config, shape, work, asked.cards, card.memory),
        "pass": {"rows": work.rows, "tokens": work.rows * work.tokens, "learnt": work.learnt, "tiles": work.tiles},
        "examples": examples or None, "tokens": tokens or None,
        "operations_a_token": made.operations,
        "tokens_per_second": (asked.rate or SHARE * card.peak / made.operations) * asked.cards,
        "hours": made.hours(tokens, card, asked.rate) if tokens else None,
        "rate": "given" if asked.rate else f"assumed: {SHARE:.0%} of the card's peak, not measured",
        "checkpoint_gb": made.checkpoint / GB, "disk_gb": made.disk / GB,
    }  # fmt: skip


def _records(config: Config) -> int:
    """The records of the configuration's data, repeated as it says; 0 where a file is not there yet."""
    found = 0
    for data in config.data:
        try:
            count = sum(sum(1 for _ in rows_of_file(file, talk=bool(data.talk)))
                        for file in files_of(config, data.items or data.talk))  # fmt: skip
        except UserError:
            return 0
        found += data.repeat * (min(count, data.limit) if data.limit else count)
    return found


def plan_lines(found: dict[str, Any]) -> list[str]:
    """The plan in lines."""
    memory = found["memory_gb_a_card"]
    moments = ("weights", "gradients", "optimizer", "gathered", "activations", "logits")
    parts = ", ".join(f"{name} {memory[name]:.3g}" for name in moments if memory[name])
    pass_ = found["pass"]
    lines = [
        f"model       {found['parameters']:,} parameters, {found['trained']:,} trained",
        f"a pass      {pass_['rows']} rows, {pass_['tokens']:,} tokens, {pass_['learnt']:,} learnt"
        + (f", {pass_['tiles']} tiles" if pass_["tiles"] else ""),
        f"memory      {found['total_gb_a_card']:.3g} of {found['memory_gb']:.3g} GB on each of {found['cards']} x "
        f"{found['card']}: " + ("fits" if found["fits"] else f"does not fit; {found['cure']}"),
        f"            {parts} GB; in the optimizer's step {memory['in_step']:.3g} in place of what follows its moments",
    ]
    hours = "unknown: give --rows" if found["hours"] is None else f"{found['hours']:.3g} for {found['tokens']:,} tokens"
    lines.append(f"hours       {hours} at {found['tokens_per_second']:,.0f} tokens a second ({found['rate']})")
    lines.append(f"disk        {found['disk_gb']:.3g} GB, {found['checkpoint_gb']:.3g} a checkpoint")
    return lines
