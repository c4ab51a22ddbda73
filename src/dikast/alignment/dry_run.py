"""Estimates of an alignment's questions, tokens, memory and hours, computed without loading weights.

Memory of the training is that of `training.planning` (caches of sampling and the judge are not counted). Hours are
operations divided by an assumed share of a card's peak throughput; they were not measured on a real card.
"""

from collections.abc import Sequence
from typing import Any

from dikast.alignment.align_inputs import Given
from dikast.core.item import Item
from dikast.judging.settling import with_frames
from dikast.prompts.ask import prompt_alone

_LOOKED_AT = 32  # prompts whose tokens are counted, spread evenly
_CARD = "H200"
_BANDWIDTH = 4.8e12  # bytes a second: NVIDIA's data sheet
_BATCH = 64  # assumed: replies that are written at a time


def dry_run(given: Given, cards: Sequence[int] = (1, 8)) -> dict[str, Any]:
    """Counts for one round and for all, and the memory per card and the hours for each number of cards."""
    from dikast.training.models.model import choose_trained, open_blank
    from dikast.training.planning.training_plan import CARDS, GB, SHARE, plan, work_of

    options = given.options
    config = given.training(given.policy, options.out.absolute())
    loaded = open_blank(config)
    parameters = sum(each.numel() for each in loaded.model.parameters())
    choose_trained(loaded.model, config)
    trained = sum(each.numel() for each in loaded.model.parameters() if each.requires_grad)
    asked = _mean_tokens(given.prompts, loaded, config.frames)
    n, k, held, reply = len(given.prompts), options.samples, len(given.held), options.max_tokens
    questions = {"pointwise": n * k, "full": n * k * (k - 1), "half": n * k * (k - 1) // 2}.get(options.schedule)
    graded = (1 if given.second is None else 2) + (0 if options.schedule == "pointwise" else 2)  # of a held-out reply
    training = round(n * config.epochs * (asked + 2 * reply))
    prompted, written = round((n * k + held) * asked), (n * k + held) * reply
    round_: dict[str, Any] = {
        "replies": n * k + held,
        "reply_tokens_at_most": written,
        "prompt_tokens": prompted,
        "questions_to_the_judge": None if questions is None else questions + held * graded,
        "pairs_at_most": n,
        "training_tokens_at_most": training,
    }
    again = 8 if config.checkpointing else 6
    work = {
        "training": again * parameters * training,
        "reference": 2 * parameters * training / config.epochs,
    }
    alone = {"reading": 2 * parameters * (prompted + 2 * held * reply)}
    writing = written / _BATCH * parameters * 2 / _BANDWIDTH
    found = []
    row = work_of(config, length=min(config.max_tokens, round(asked) + reply), learnt=reply)
    card = CARDS[_CARD]
    for number in cards:
        spent = {name: each / (card.peak * SHARE * number) / 3600 for name, each in work.items()}
        spent |= {name: each / (card.peak * SHARE) / 3600 for name, each in alone.items()}
        spent["writing_at_most"] = writing / 3600
        made = plan(config, loaded.model.config, row, cards=number)
        found.append({
            "cards": number, "card": _CARD, "memory_gb_a_card": made.total / GB, "fits": made.total < card.memory,
            "memory_gb_by_part": {name: size / GB for name, size in made.memory.items()},
            "hours_a_round": spent, "hours": options.rounds * sum(spent.values()),
        })  # fmt: skip
    return {
        "parameters": parameters, "trained": trained, "rounds": options.rounds,
        "tokens_of_a_prompt": {"mean": asked, "n": min(_LOOKED_AT, n)}, "round": round_, "cards": found,
        "assumed": f"{SHARE:.0%} of the peak; {_BATCH} replies at a time, read and written on one card, as only the "
        "training takes several (--launch); the judge's own time not counted; not measured on a card",
    }  # fmt: skip


def plan_lines(plan: dict[str, Any]) -> list[str]:
    """The plan in lines."""
    round_, asked = plan["round"], plan["tokens_of_a_prompt"]
    questions = round_["questions_to_the_judge"]
    asking = "the same number of questions" if questions is None else f"{questions:,} questions"
    training = f"{round_['training_tokens_at_most']:,} tokens of training at most"
    replies, written = round_["replies"], round_["reply_tokens_at_most"]
    lines = [
        f"policy      {plan['parameters']:,} parameters, {plan['trained']:,} trained",
        f"a round     {replies:,} replies, together {written:,} tokens at most, to {round_['prompt_tokens']:,} tokens "
        f"of prompts ({asked['mean']:.0f} each, mean of {asked['n']})",
        f"            {asking} to the judge; {round_['pairs_at_most']:,} pairs at most, {training}",
    ]
    for each in plan["cards"]:
        spent = ", ".join(f"{name.replace('_', ' ')} {_time(hours)}" for name, hours in each["hours_a_round"].items())
        fits = "" if each["fits"] else " (does not fit)"
        lines.append(
            f"{each['cards']} x {each['card']}".ljust(12) + f"{_size(each['memory_gb_a_card'])} a card in training"
            f"{fits}; {_time(each['hours'])} for {plan['rounds']} rounds (in each: {spent})"
        )
    return [*lines, f"assumed     {plan['assumed']}"]


def _size(gb: float) -> str:
    return f"{gb:,.0f} GB" if gb >= 100 else f"{gb:.3g} GB"


def _time(hours: float) -> str:
    """A time in the unit that suits it."""
    seconds = 3600 * hours
    if seconds < 1:
        return "under 1 s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{60 * hours:.0f} minutes" if hours < 2 else f"{hours:,.1f} hours"


def _mean_tokens(items: Sequence[Item], loaded: Any, frames: int) -> float:
    from dikast.engines.local.prompt import encode

    sizes = []
    n = min(len(items), _LOOKED_AT)
    for item in (items[i * len(items) // n] for i in range(n)):
        asked = prompt_alone(with_frames(item, (), frames))
        sizes.append(len(encode(asked, loaded.processor).ids))
    return sum(sizes) / len(sizes)
