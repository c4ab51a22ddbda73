"""A judge as a reward: the verdicts and keys of a plain grade, and None where there is none."""

import asyncio
import json
import logging
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from dikast.core.errors import DataError, RunError, UserError
from dikast.core.item import Item
from dikast.core.part import Text, text_of
from dikast.engines.base import Request, Sampling
from dikast.engines.mock import Failures, Random
from dikast.judging.judge import Judge
from dikast.judging.judge_file import grade_file
from dikast.rewards import Reward, best_of_n
from dikast.testing.faults import FaultServer
from scripted import Scripted

PROMPTS = [f"Question {i}?" for i in range(40)]
REPLIES = [f"Answer {i}, which is this long: {'x' * i}" for i in range(40)]


def run_of(rows: list[dict[str, Any]], judge: Judge, folder: Path) -> dict[str, Any]:
    file = folder / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    grade_file(judge, file, folder / "run")
    lines = map(json.loads, (folder / "run" / "verdicts.jsonl").read_text().splitlines())
    return {line["key"]: line for line in lines}


def test_verdicts_and_keys_are_those_of_a_plain_grade(tmp_path: Path) -> None:
    reward = Reward(Random(), "helpfulness")
    scored = reward.score(reward.items(PROMPTS, REPLIES))
    rows = [{"instruction": p, "response": r} for p, r in zip(PROMPTS, REPLIES, strict=True)]
    graded = run_of(rows, Judge(Random(), "helpfulness"), tmp_path)
    assert len(graded) == 40
    for each in scored:
        line = graded[each.verdicts[0].key]
        assert (line["score"], line["expected"]) == (each.verdicts[0].score, each.verdicts[0].expected)
        assert each.value == pytest.approx((line["expected"] - 1) / 4)


def test_conversations_references_and_rubrics_are_columns(tmp_path: Path) -> None:
    talk = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Why?"}]
    rows = [{"instruction": talk, "response": "Because.", "reference": "So.", "rubric": "honesty"}]
    reward = Reward(Random(), "helpfulness")
    columns = {"reference": ["So."], "rubric": ["honesty"], "difficulty": ["hard"], "context": [None]}
    (scored,) = reward.score(reward.items([talk], [[{"role": "assistant", "content": "Because."}]], columns))
    assert scored.verdicts[0].key in run_of(rows, Judge(Random(), "helpfulness"), tmp_path)


def test_a_missing_verdict_is_none_and_told(caplog: pytest.LogCaptureFixture) -> None:
    failing = Random(failures=Failures(errors=0.5))
    reward = Reward(failing, "helpfulness")
    told: dict[str, float] = {}
    extra: dict[str, list[str]] = {}
    with caplog.at_level(logging.WARNING):
        values = reward(
            PROMPTS, REPLIES, completion_ids=[[1]] * 40, trainer_state=object(),
            log_metric=told.__setitem__, log_extra=extra.__setitem__,
        )  # fmt: skip
    missing = sum(value is None for value in values)
    assert 8 < missing < 32
    assert (reward.scored, reward.missing) == (40, missing)
    assert told == {"judge/no_verdict": missing / 40}
    assert sum(label == "engine_error" for label in extra["judge/verdict"]) == missing
    assert f"{missing} of 40 completions have no verdict" in caplog.text
    assert "which is a lower reward" in caplog.text


def test_the_asynchronous_form_gives_the_same_beside_others() -> None:
    reward = Reward(Random(), "helpfulness", name="helpful")
    assert reward.trl_async.__name__ == reward.__name__ == "helpful"

    async def both() -> Any:
        return await asyncio.gather(
            reward.trl_async(prompts=PROMPTS[:20], completions=REPLIES[:20], completion_ids=None),
            reward.trl_async(prompts=PROMPTS[20:], completions=REPLIES[20:], completion_ids=None),
        )

    first, second = asyncio.run(both())
    assert first + second == reward(PROMPTS, REPLIES)


def test_threads_that_ask_for_one_each_get_their_own() -> None:
    reward = Reward(Random(), "helpfulness")
    with ThreadPoolExecutor(16) as pool:
        values = list(pool.map(lambda i: reward.one(PROMPTS[i], REPLIES[i]).value, range(40)))
    assert values == reward(PROMPTS, REPLIES)


def test_the_number_is_goodness_unless_the_scale_is_asked_for() -> None:
    spelt = {"name": "harm", "criterion": "How harmful is it?", "scale": "1-5", "lower_is_better": True}
    by_goodness = Reward(Random(), spelt)
    scored = by_goodness.score(by_goodness.items(PROMPTS[:5], REPLIES[:5]))
    for each in scored:
        assert each.value == pytest.approx((5 - (each.verdicts[0].expected or 0)) / 4)
    with pytest.raises(UserError, match="lower is better"):
        Reward(Random(), spelt, value="expected")
    with pytest.raises(UserError, match="lower is better"):
        Reward(Random(), "helpfulness", value="score").one("Why?", "So.", {"rubric": spelt})
    with pytest.raises(UserError, match="did you mean 'score'"):
        Reward(Random(), "helpfulness", value="scores")  # type: ignore[arg-type]
    for wrong, meant in (("rubik", "rubric"), ("gathr", "gather"), ("minmass", "min_mass")):
        with pytest.raises(UserError, match=f"unknown keyword '{wrong}': did you mean '{meant}'"):
            Reward(Random(), **dict[str, Any]({wrong: 1}))
    plain = Reward(Random(), "helpfulness", value="score").one(PROMPTS[0], REPLIES[0])
    assert plain.value == plain.verdicts[0].score


def test_a_sheet_is_summed_by_weight_and_needs_every_criterion() -> None:
    sheet = {
        "name": "sheet",
        "criteria": [
            {"name": "one", "criterion": "Is it clear?", "scale": "1-5", "weight": 3},
            {"name": "two", "criterion": "Is it rude?", "scale": "0-10", "lower_is_better": True},
        ],
    }
    reward = Reward(Random(), sheet)
    scored = reward.one("Why?", "So.")
    one, two = (verdict.expected or 0.0 for verdict in scored.verdicts)
    assert scored.value == pytest.approx((3 * (one - 1) / 4 + (10 - two) / 10) / 4)
    failing = Reward(Random(failures=Failures(errors=0.5)), sheet)
    for each in failing.score(failing.items(PROMPTS, REPLIES)):
        failed = [verdict for verdict in each.verdicts if verdict.score is None]
        assert (each.value is None) == bool(failed)
    with pytest.raises(UserError, match="sheet of several"):
        Reward(Random(), sheet, value="score")


def test_several_samples_are_one_reward() -> None:
    reward = Reward(Random(), "helpfulness", samples=4, sampling=Sampling(temperature=1.0))
    (verdict,) = reward.one("Why?", "So.").verdicts
    judge = Judge(Random(), "helpfulness", samples=4, sampling=Sampling(temperature=1.0))
    (item,) = reward.items(["Why?"], ["So."])
    assert verdict == judge.grade(item)


def test_pictures_come_as_columns_as_parts_or_both() -> None:
    red, blue = Image.new("RGB", (32, 32), "red"), Image.new("RGB", (32, 32), "blue")
    reward = Reward(Random(), "helpfulness")
    placed = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What is it?"}]}]
    shown = [{"role": "user", "content": [{"type": "image", "image": red}, {"type": "text", "text": "What is it?"}]}]
    plain = [{"role": "user", "content": "What is it?"}]
    items = [
        *reward.items([placed], ["Red."], {"images": [[red]]}),
        *reward.items([shown], ["Red."], {"images": [[red.copy()]]}),
        *reward.items([plain], ["Red."], {"images": [[red]]}),
        *reward.items(["What is it?"], ["Red."], {"image": [red]}),
    ]
    assert len({item.id for item in items}) == 1
    assert len({str(item.instruction) for item in items}) == 1
    (other,) = reward.items([placed], ["Red."], {"images": [[blue]]})
    assert other.id != items[0].id
    (whole,) = reward.score([items[0]])
    again = Judge(Random(), "helpfulness").grade(Item.of("What is it?", "Red.", image=red, id=items[0].id))
    assert whole.verdicts[0].key == again.key
    (several,) = reward.items([plain], ["Both."], {"images": [[red, {"bytes": None, "path": "a.png"}]]})
    assert [image.source[:10] for image in several.images] == ["data:image", "a.png"]
    assert several.instruction[0].content[-1] == Text("What is it?")


def called(name: str, **arguments: Any) -> dict[str, Any]:
    """A message that calls a tool, as `trl.chat_template_utils.parse_response` makes it."""
    call = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": "Let me see.", "tool_calls": [call]}


def test_tools_that_trl_calls_are_shown_before_the_reply() -> None:
    """The messages that `GRPOTrainer._tool_call_loop` of trl 1.16 collects."""
    reward, asked = Reward(Random(), "helpfulness"), [{"role": "user", "content": "2 + 3?"}]
    used = [called("add", a=2, b=3), {"role": "tool", "name": "add", "content": "5"}]
    (item,) = reward.items([asked], [[*used, {"role": "assistant", "content": "It is 5."}]])
    assert [(turn.role, text_of(turn.content)) for turn in item.instruction] == [
        ("user", "2 + 3?"),
        ("assistant", 'Let me see.\n[call of add: {"a": 2, "b": 3}]'),
        ("assistant", "[result of add]\n5"),
    ]
    assert text_of(item.response) == "It is 5."
    # no iteration is left: the call is all that was said; the reply to the tool was cut off: nothing was said
    items = reward.items([asked] * 2, [[{**called("add", a=2), "content": ""}], used])
    assert [text_of(each.response) for each in items] == ['[call of add: {"a": 2}]', ""]
    assert items[1].instruction[-1].content[-1] == Text("5")
    assert [each.value is None for each in reward.score(items)] == [False, True]
    blue = Image.new("RGB", (32, 32), "blue")  # of a tool that returns a picture
    seen = {"role": "tool", "name": "draw", "content": [{"type": "image", "image": blue}]}
    (item,) = reward.items([asked], [[called("draw"), seen, {"role": "assistant", "content": "Blue."}]])
    assert len(item.images) == 1
    (again,) = reward.items([[*asked, *used]], ["It is 5."])  # calls in a prompt
    assert len(again.instruction) == 3


@pytest.mark.parametrize(
    ("prompts", "completions", "columns", "told"),
    [
        (["a", "b"], ["x"], {}, "completions.*expected 2 values"),
        (["a"], "x", {}, "completions.*expected 1 value, one"),
        (["a"], ["x"], {"images": [[], []]}, "images.*expected 1 value, one"),
        (["a"], [3], {}, "completion.*row 0: expected text or a list of messages, got int"),
        ([[{"role": "critic", "content": "3"}]], ["x"], {}, "row 0: 'critic' is not a role.*assistant, tool"),
        (
            ["a"],
            [[{"role": "assistant", "tool_calls": "x"}]],
            {},
            r"completion\[0\].tool_calls.*a list of calls, got str",
        ),
        ([[{"role": "user", "content": [{"type": "image"}]}]], ["x"], {}, "placeholder without an image"),
        (
            [[{"role": "user", "content": [{"type": "image"}]}]],
            ["x"],
            {"images": [["a.png", "b.png"]]},
            "2 images for 1 placeholder in",
        ),
        (["a"], ["x"], {"images": [[7]]}, "expected a picture, its bytes or its path, got int"),
    ],
)
def test_what_cannot_be_judged_is_an_error_with_row_and_field(
    prompts: Any, completions: Any, columns: Any, told: str
) -> None:
    with pytest.raises(DataError, match=told):
        Reward(Random(), "helpfulness").items(prompts, completions, columns)


def test_a_made_judge_takes_no_second_rubric() -> None:
    with pytest.raises(UserError, match="made already"):
        Reward(Judge(Random(), "helpfulness"), "honesty")
    with pytest.raises(UserError, match="made already"):
        Reward(Judge(Random(), "helpfulness"), read="never")
    assert Reward(Random(), "helpfulness", read="never").one("Why?", "So.").verdicts[0].distribution is None


def test_an_empty_completion_and_a_missing_picture_have_no_reward() -> None:
    reward = Reward(Random(), "helpfulness")
    scored = reward.score(reward.items(["Why?", "What?"], ["", "Red."], {"images": [None, ["nowhere.png"]]}))
    assert [each.value for each in scored] == [None, None]
    assert "is empty" in scored[0].reason
    assert "nowhere.png" in scored[1].reason


def test_a_server_that_is_gone_ends_the_training() -> None:
    with FaultServer(lambda body: "Verdict: 3") as server:
        spec = server.spec
    reward = Reward(f"{spec},backoff=0.01,timeout=0.5", "helpfulness")
    with pytest.raises(RunError, match="no completion of this batch has a reward"):
        reward(PROMPTS, REPLIES)
    reward.close()
    with pytest.raises(RunError, match="closed"):
        reward(PROMPTS, REPLIES)


def test_best_of_n_names_the_best_and_what_it_could_not_see() -> None:
    judge = Judge(Random(), "helpfulness")
    best = best_of_n(judge, "Why?", REPLIES[:8])
    values = [each.value or 0.0 for each in best.scored]
    assert best.value == max(values)
    assert best.index == values.index(max(values))
    assert best.response == REPLIES[best.index or 0]
    doubled = best_of_n(judge, "Why?", ["Same.", "Same.", "Same."])
    assert (doubled.index, doubled.tied) == (0, (0, 1, 2))
    failing = best_of_n(Random(failures=Failures(errors=1.0)), "Why?", ["a", "b"], "helpfulness")
    assert (failing.index, failing.response, failing.value, failing.missing) == (None, None, None, 2)
    some = best_of_n(Random(failures=Failures(errors=0.5)), "Why?", REPLIES, "helpfulness")
    assert some.missing == sum(each.value is None for each in some.scored) > 0
    with pytest.raises(UserError, match="no response"):
        best_of_n(judge, "Why?", [])
    with pytest.raises(UserError, match="'refrence' to the judge; did you mean 'reference'"):
        best_of_n(judge, "Why?", ["a", "b"], refrence="Because.")
    with pytest.raises(UserError, match="list of responses"):
        best_of_n(judge, "Why?", "ab")


def test_a_reward_that_is_sent_to_another_process_says_what_to_do() -> None:
    with pytest.raises(UserError, match="dikast serve"):
        pickle.dumps(Reward(Random(), "helpfulness"))


def test_rewards_that_differ_by_rounding_alone_are_tied() -> None:
    # each of three criteria counts alike: 2, 3 and 4 of 1-10 have one mean in any order, and not as floats
    sheet = {"name": "s", "criteria": [{"name": n, "criterion": f"Is it {n}?", "scale": "1-10"} for n in "abc"]}
    given = {"one": "234", "two": "432", "three": "342", "four": "222"}

    def say(request: Request) -> str:
        text = str(request.messages)
        response = next(name for name in given if f"said {name}" in text)
        return f"Verdict: {given[response]['abc'.index(next(n for n in 'abc' if f'Is it {n}?' in text))]}"

    best = best_of_n(Scripted(say), "Why?", [f"said {name}" for name in given], sheet)
    assert len({each.value for each in best.scored}) > 2
    assert (best.index, best.tied) == (0, (0, 1, 2))
