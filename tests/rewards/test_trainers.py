"""Rewards called as the code of verl, OpenRLHF and ms-swift calls them: by their arguments, threads and loops."""

import asyncio
import hashlib
import inspect
import io
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dikast.core.errors import DataError, UserError
from dikast.core.media import image_sha256
from dikast.engines.base import Completion, Request
from dikast.engines.mock import Failures, Random
from dikast.rewards import MissingVerdict, Reward
from dikast.rewards.trainers import openrlhf, reply_of, swift, verl, verl_async, verl_batch

QUESTIONS = [f"Question {i}?" for i in range(24)]
REPLIES = [f"Answer {i}." for i in range(24)]
PLAIN = [each.value for each in Reward(Random(), "helpfulness").score(
    Reward(Random(), "helpfulness").items(QUESTIONS, REPLIES)
)]  # fmt: skip


def reward(**failures: float) -> Reward:
    return Reward(Random(failures=Failures(**failures)), "helpfulness")


class Seeing(Random):
    """A mock that keeps the pictures it was shown."""

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        together = list(requests)
        self.seen = [[image_sha256(image) for m in each.messages for image in m.images] for each in together]
        return super().stream(together)


def rows() -> list[dict[str, Any]]:
    """What verl has of each sample beside its tokens; columns of Parquet come back as arrays."""
    return [
        {"data_source": "mine", "reward_model": {"style": "rule", "ground_truth": "4"}, "reply": reply,
         "extra_info": {"split": "train", "index": i, "question": question, "images": np.array([], dtype=object)}}
        for i, (question, reply) in enumerate(zip(QUESTIONS, REPLIES, strict=True))
    ]  # fmt: skip


def naive(samples: list[dict[str, Any]], compute_score: Callable[..., Any]) -> tuple[list[float], dict[str, list[Any]]]:
    """verl's naive manager: one call a sample, `score` put on the last token, every other key a column."""
    numbers, columns = [], defaultdict[str, list[Any]](list)
    for sample in samples:
        extra = sample["extra_info"]
        extra["num_turns"], extra["rollout_reward_scores"] = None, {}
        score = compute_score(
            data_source=sample["data_source"],
            solution_str=sample["reply"],
            ground_truth=sample["reward_model"]["ground_truth"],
            extra_info=extra,
        )
        if isinstance(score, dict):
            numbers.append(score["score"])
            for key, value in score.items():
                columns[key].append(value)
        else:
            numbers.append(score)
    return numbers, columns


async def loop(
    samples: list[dict[str, Any]], compute_score: Callable[..., Any], **router: Any
) -> list[tuple[float, dict[str, Any]]]:
    """verl's reward loop (`reward_loop/reward_manager/naive.py`): coroutine functions are awaited, others run in an
    executor, all samples at once. `router` is passed on where a reward model is served beside. Every key of a dict is
    logged; of a number, `acc`.
    """
    asynchronous = inspect.iscoroutinefunction(compute_score)

    async def one(sample: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        extra = sample["extra_info"]
        extra["num_turns"], extra["rollout_reward_scores"] = None, {}
        told = {
            "data_source": sample["data_source"], "solution_str": sample["reply"],
            "ground_truth": sample["reward_model"]["ground_truth"], "extra_info": extra, **router,
        }  # fmt: skip
        if asynchronous:
            result = await compute_score(**told)
        else:
            result = await asyncio.get_running_loop().run_in_executor(None, partial(compute_score, **told))
        return (result["score"], result) if isinstance(result, dict) else (result, {"acc": result})

    return await asyncio.gather(*(one(each) for each in samples))


def test_verl_one_sample_a_call() -> None:
    numbers, columns = naive(rows(), verl(reward()))
    assert numbers == PLAIN
    assert columns == {"score": PLAIN, "no_verdict": [0.0] * 24}


@pytest.mark.parametrize("router", [{}, {"reward_router_address": "127.0.0.1:9", "reward_model_tokenizer": None}])
@pytest.mark.parametrize("made", [verl, verl_async])
def test_verl_many_samples_at_once(made: Callable[[Reward], Callable[..., Any]], router: dict[str, Any]) -> None:
    found = asyncio.run(loop(rows(), made(reward()), **router))
    assert [score for score, _ in found] == PLAIN
    assert all(logged == {"score": score, "no_verdict": 0.0} for score, logged in found)


def test_verl_in_batches() -> None:
    samples = rows()
    scores = verl_batch(reward())(
        data_sources=np.array([each["data_source"] for each in samples], dtype=object),
        solution_strs=[each["reply"] for each in samples],
        ground_truths=[each["reward_model"]["ground_truth"] for each in samples],
        extra_infos=np.array([each["extra_info"] for each in samples], dtype=object),
    )
    assert [each["score"] for each in scores] == PLAIN
    assert {tuple(each) for each in scores} == {("score", "no_verdict")}


def test_verl_pictures_travel_in_extra_info() -> None:
    red, column = Image.new("RGB", (32, 32), "red"), np.empty(1, dtype=object)
    column[0] = {"bytes": _png(red), "path": None}
    extra = {"prompt": [{"role": "user", "content": "What is it?"}], "images": column}
    engine = Seeing()
    verl(Reward(engine, "helpfulness"))("mine", "Red.", None, extra)
    assert engine.seen == [[hashlib.sha256(_png(red)).hexdigest()]]


def test_verl_needs_the_prompt() -> None:
    for extra in (None, {}, {"index": 3}):
        with pytest.raises(DataError, match="does not hand over the prompt"):
            verl(reward())("mine", "Red.", "4", extra)


def test_a_missing_verdict_is_raised_or_the_number_that_was_named() -> None:
    with pytest.raises(MissingVerdict, match="cannot represent a missing reward"):
        naive(rows(), verl(reward(errors=0.5)))
    numbers, columns = naive(rows(), verl(reward(errors=0.5), missing=-1.0))
    assert 4 < sum(columns["no_verdict"]) < 20
    assert {score for score, none in zip(numbers, columns["no_verdict"], strict=True) if none} == {-1.0}
    wrong: Any
    for wrong in ("ignore", float("nan"), float("inf"), True, None, [0.0]):
        for made in (verl, verl_async, verl_batch, openrlhf, swift):
            with pytest.raises(UserError, match="'raise' or a finite number"):
                made(reward(), missing=wrong)


CHAT = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"


def test_openrlhf_one_query_a_call_from_many_threads() -> None:
    torch = pytest.importorskip("torch")
    prompts = [CHAT.format(each) for each in QUESTIONS]
    queries = [f"{p}{r}<|im_end|>" for p, r in zip(prompts, REPLIES, strict=True)]
    reward_func = openrlhf(reward(), prompt=lambda text: text.split("\n")[1].removesuffix("<|im_end|>"))

    async def executor() -> Any:
        return await asyncio.gather(
            *(asyncio.to_thread(reward_func, [q], [p], ["label"]) for q, p in zip(queries, prompts, strict=True))
        )

    told = asyncio.run(executor())
    for each, plain in zip(told, PLAIN, strict=True):
        info = {"reward": torch.tensor([each["rewards"]]), "score": torch.tensor([each["scores"]])}
        for key, value in each["extra_logs"].items():
            info[key] = torch.tensor([value.flatten()[0].item()])
        assert {key: value.tolist() for key, value in info.items()} == {
            "reward": [pytest.approx(plain)], "score": [pytest.approx(plain)], "no_verdict": [0.0],
        }  # fmt: skip


def test_openrlhf_batches_and_missing_verdicts() -> None:
    pytest.importorskip("torch")
    queries = [f"{q}{r}" for q, r in zip(QUESTIONS, REPLIES, strict=True)]
    told = openrlhf(reward())(queries=queries, prompts=QUESTIONS, labels=[None] * 24, extra="ignored")
    assert told["rewards"].tolist() == pytest.approx(PLAIN)
    with pytest.raises(MissingVerdict):
        openrlhf(reward(errors=0.5))(queries, QUESTIONS, None)
    some = openrlhf(reward(errors=0.5), missing=0)(queries, QUESTIONS, None)
    none = some["extra_logs"]["no_verdict"]
    assert 4 < none.sum().item() < 20
    assert some["rewards"][none.bool()].unique().tolist() == [0.0]


def test_where_a_reply_begins_and_ends() -> None:
    assert reply_of("Why? So.</s></s>\n", "Why?") == "So."
    assert reply_of("Why?", "Why?") == ""
    assert reply_of("Why?</s> is a tag</s>", "Why?") == "</s> is a tag"
    with pytest.raises(DataError, match="does not begin with its prompt"):
        reply_of("So.", "Why?")


def test_swift_objects_with_the_columns_of_a_data_set() -> None:
    messages = [
        [{"role": "user", "content": q}, {"role": "assistant", "content": r}]
        for q, r in zip(QUESTIONS, REPLIES, strict=True)
    ]
    made = swift(reward())(args=object())
    assert made(REPLIES, messages=messages, solution=["4"] * 24, trainer_state=None) == PLAIN
    assert made(completions=REPLIES, prompt=QUESTIONS) == PLAIN
    with pytest.raises(DataError, match="messages"):
        made(REPLIES, solution=["4"] * 24)
    with pytest.raises(MissingVerdict):
        swift(reward(errors=1.0))()(REPLIES, messages=messages)
    assert swift(reward(errors=1.0), missing=0.25)()(REPLIES, messages=messages) == [0.25] * 24


def test_swift_awaits_what_derives_from_its_own_class() -> None:
    class AsyncORM:
        """As in swift: what is one is gathered, anything else is called."""

    class Judge(swift(reward(), asynchronous=True), AsyncORM):  # type: ignore[misc]
        pass

    made = Judge(args=None)
    assert isinstance(made, AsyncORM)
    assert inspect.iscoroutinefunction(made.__call__)

    async def gathered() -> Any:
        return await asyncio.gather(made(REPLIES, prompt=QUESTIONS), made(REPLIES[:3], prompt=QUESTIONS[:3]))

    assert asyncio.run(gathered()) == [PLAIN, PLAIN[:3]]


def test_swift_places_pictures_by_their_word() -> None:
    red, engine = Image.new("RGB", (32, 32), "red"), Seeing()
    messages = [[{"role": "user", "content": "<image>What is it?"}, {"role": "assistant", "content": "Red."}]]
    swift(Reward(engine, "helpfulness"))()(["Red."], messages=messages, images=[[{"bytes": _png(red), "path": None}]])
    assert engine.seen == [[hashlib.sha256(_png(red)).hexdigest()]]


def _png(picture: Image.Image) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return buffer.getvalue()
