"""Adapters of a reward for other trainers, each of which needs a number where trl accepts None.

`missing` is the reward of a completion without a verdict: `raise` (MissingVerdict), or a number that the user chooses;
such completions are also counted. There is no default number.
"""

import asyncio
import math
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Literal

from dikast.core.errors import DataError, UserError, require
from dikast.core.item import Item
from dikast.core.text import counted
from dikast.rewards.reward import MissingVerdict, Reward, Scored

Missing = Literal["raise"] | float
_PROMPTS = ("prompt", "question", "instruction")  # of verl's extra_info, in this order
_ENDS = ("<|im_end|>", "<|eot_id|>", "<|end_of_text|>", "<|endoftext|>", "</s>", "<eos>", "<end_of_turn>", "<|end|>")


def number_of(scored: Scored, missing: Missing) -> float:
    """The reward, or the number chosen for missing verdicts; MissingVerdict if none was chosen."""
    if scored.value is not None:
        return scored.value
    if missing == "raise":
        told = f"a completion has no verdict ({scored.reason}), and this trainer cannot represent a missing reward"
        raise MissingVerdict(f"{told}: improve the judge, or name the number that such a completion gets (missing=...)")
    return float(missing)


def checked(missing: Missing) -> Missing:
    """`missing` where it is `raise` or a finite number; UserError."""
    number = isinstance(missing, int | float) and not isinstance(missing, bool)
    if missing != "raise" and not (number and math.isfinite(missing)):
        raise UserError(f"missing={missing!r}: use 'raise' or a finite number")
    return missing


def verl(reward: Reward, *, missing: Missing = "raise") -> Callable[..., dict[str, float]]:
    """`compute_score` for verl, one sample a call.

    verl does not pass the prompt: it is read from `extra_info`, under `prompt`, `question` or `instruction`, with
    `images`, `reference` and `context` beside it. `ground_truth` is not shown to the judge. Every answer has `score`
    and `no_verdict` (0 or 1), which verl logs.
    """
    checked(missing)

    def compute_score(
        data_source: object, solution_str: str, ground_truth: object, extra_info: Any = None, **_: object
    ) -> dict[str, float]:
        return _score_dict(reward.score([_of_verl(reward, solution_str, extra_info)])[0], missing)

    return compute_score


def verl_async(reward: Reward, *, missing: Missing = "raise") -> Callable[..., Coroutine[Any, Any, dict[str, float]]]:
    """As `verl`, as a coroutine function, which verl's reward loop awaits."""
    checked(missing)

    async def compute_score(
        data_source: object, solution_str: str, ground_truth: object, extra_info: Any = None, **_: object
    ) -> dict[str, float]:
        item = await asyncio.to_thread(_of_verl, reward, solution_str, extra_info)
        return _score_dict((await reward.score_async([item]))[0], missing)

    return compute_score


def verl_batch(reward: Reward, *, missing: Missing = "raise") -> Callable[..., list[dict[str, float]]]:
    """`compute_score` for verl's batch manager, which hands over lists."""
    checked(missing)

    def compute_score(
        data_sources: Sequence[object],
        solution_strs: Sequence[str],
        ground_truths: Sequence[object],
        extra_infos: Sequence[Any],
        **_: object,
    ) -> list[dict[str, float]]:
        items = [_of_verl(reward, *row) for row in zip(solution_strs, extra_infos, strict=True)]
        return [_score_dict(each, missing) for each in reward.score(items)]

    return compute_score


def _of_verl(reward: Reward, solution: str, extra: Any) -> Item:
    told = extra if isinstance(extra, Mapping) else {}
    name = next((name for name in _PROMPTS if told.get(name) is not None), None)
    if name is None:
        raise DataError(
            f"verl does not hand over the prompt: put it into extra_info as {', '.join(map(repr, _PROMPTS))}",
            field="extra_info",
        )
    plain = {key: _plain(value) for key, value in told.items()}
    row = {key: [plain[key]] for key in ("images", "reference", "context") if plain.get(key) is not None}
    return reward.items([plain[name]], [solution], row)[0]


def _plain(value: Any) -> Any:
    """Lists in place of the arrays that Parquet columns are read as."""
    return value.tolist() if hasattr(value, "tolist") and hasattr(value, "dtype") else value


def _score_dict(scored: Scored, missing: Missing) -> dict[str, float]:
    return {"score": number_of(scored, missing), "no_verdict": float(scored.value is None)}


def openrlhf(
    reward: Reward,
    *,
    missing: Missing = "raise",
    ends: Sequence[str] = _ENDS,
    prompt: Callable[[str], object] | None = None,
) -> Callable[..., dict[str, Any]]:
    """`reward_func` for OpenRLHF: `queries` are prompt and reply in one text, `prompts` where the reply begins.

    Trailing special tokens in `ends` are removed from the reply. `prompt` converts a rendered prompt to what the judge
    is shown, such as the question without the chat template; by default it is shown unchanged. `labels` are not shown.
    """
    checked(missing)

    def reward_func(
        queries: Sequence[str], prompts: Sequence[str], labels: object = None, **_: object
    ) -> dict[str, Any]:
        if len(queries) != len(prompts):
            told = f"{counted(len(prompts), 'prompt')} for {counted(len(queries), 'query', 'queries')}"
            raise DataError(told, field="prompts")
        rows = enumerate(zip(queries, prompts, strict=True))
        replies = [reply_of(query, asked, ends, field=f"queries[{i}]") for i, (query, asked) in rows]
        shown = [each if prompt is None else prompt(each) for each in prompts]
        scored = reward.score(reward.items(shown, replies))
        return _tensors(openrlhf_answer(scored, missing))

    return reward_func


def reply_of(query: str, prompt: str, ends: Sequence[str] = _ENDS, *, field: str = "queries") -> str:
    """The reply in a query that begins with its prompt; DataError, naming the `field`, for one that does not."""
    if not query.startswith(prompt):
        told = f"the query {query[:60]!r} does not begin with its prompt {prompt[:60]!r}"
        raise DataError(f"{told}: the start of the reply is unknown", field=field)
    reply = query[len(prompt) :].rstrip()
    while end := next((each for each in ends if reply.endswith(each)), ""):
        reply = reply.removesuffix(end).rstrip()
    return reply.strip()


def openrlhf_answer(scored: Sequence[Scored], missing: Missing) -> dict[str, Any]:
    """The answer that OpenRLHF expects for a batch, as lists."""
    numbers = [number_of(each, missing) for each in scored]
    return {
        "rewards": numbers,
        "scores": numbers,
        "extra_logs": {"no_verdict": [float(each.value is None) for each in scored]},
    }


def _tensors(told: Mapping[str, Any]) -> dict[str, Any]:
    torch = require("torch", "hf")
    return {
        name: _tensors(value) if isinstance(value, Mapping) else torch.tensor(value, dtype=torch.float32)
        for name, value in told.items()
    }


def swift(reward: Reward, *, missing: Missing = "raise", asynchronous: bool = False) -> type:
    """A class for the `orms` of ms-swift, whose objects are called with `completions` and the columns of the data set.

    The prompt is read from `messages`, without the reply that ends them, or from `prompt`. `asynchronous` makes one
    whose call is a coroutine; it must then be derived from swift's `AsyncORM` too:
    `class Judge(swift(reward, asynchronous=True), AsyncORM): pass`.
    """
    checked(missing)

    def numbers(scored: Sequence[Scored]) -> list[float]:
        return [number_of(each, missing) for each in scored]

    class SwiftReward:
        """A judge as an outcome reward."""

        def __init__(self, args: object = None, **_: object) -> None:
            self.args = args

        def __call__(self, completions: Sequence[Any], **columns: Any) -> list[float]:
            return numbers(reward.score(_of_swift(reward, completions, columns)))

    class AsyncSwiftReward:
        """A judge as an outcome reward that is awaited."""

        def __init__(self, args: object = None, **_: object) -> None:
            self.args = args

        async def __call__(self, completions: Sequence[Any], **columns: Any) -> list[float]:
            items = await asyncio.to_thread(_of_swift, reward, completions, columns)
            return numbers(await reward.score_async(items))

    return AsyncSwiftReward if asynchronous else SwiftReward


def _of_swift(reward: Reward, completions: Sequence[Any], columns: Mapping[str, Any]) -> list[Item]:
    prompts = columns.get("messages", columns.get("prompt", columns.get("prompts")))
    if prompts is None:
        raise DataError("swift does not pass the prompt: keep the column 'messages'", field="messages")
    asked = [
        each[:-1] if isinstance(each, list) and each and each[-1].get("role") == "assistant" else each
        for each in prompts
    ]
    placed = [_placed(each) for each in asked]
    return reward.items(placed, completions, columns)


def _placed(messages: Any) -> Any:
    """Messages whose `<image>` markers are converted to image placeholders."""
    if not isinstance(messages, list):
        return messages
    return [
        {**each, "content": _cut(each["content"])} if isinstance(each.get("content"), str) else each
        for each in messages
    ]


def _cut(text: str) -> Any:
    pieces = text.split("<image>")
    if len(pieces) == 1:
        return text
    parts: list[dict[str, str]] = []
    for i, piece in enumerate(pieces):
        parts += [{"type": "image"}] * (i > 0) + (
            [{"type": "text", "text": piece.strip("\n")}] if piece.strip() else []
        )
    return parts
