"""What is made of replies: reading before parsing, the ladder of follow-ups, and what is left as it is."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

import orjson
import pytest

from dikast.core.errors import EngineError, UserError
from dikast.core.rubric import Rubric, load_rubric
from dikast.core.verdict import Status, Usage, Verdict, verdict_from
from dikast.engines.base import Completion, Request, Sampling
from dikast.engines.mock import Oracle
from dikast.judging.judge import Judge
from dikast.judging.settling import AskSettings, settle_again
from dikast.prompts.format import load_format
from scripted import Scripted

RUBRIC = {"name": "good", "criterion": "Is it good?", "scale": "1-5"}
ITEM = {"id": "i", "instruction": "Say something.", "response": "Something."}
LABELS = (" 1", " 2", " 3", " 4", " 5")


def read(*shares: float, text: str = "Fine.", marker: str = "own", finish: str = "stop") -> Completion:
    """A reply with absolute probabilities of the labels 1 to 5."""
    logprobs = {label: math.log(share) if share else -math.inf for label, share in zip(LABELS, shares, strict=False)}
    return Completion("", text, finish, logprobs, marker)  # type: ignore[arg-type]


def graded(*replies: Completion | str, **settings: object) -> tuple[Verdict, list[Request]]:
    engine = Scripted(list(replies))
    verdict = Judge(engine, RUBRIC, **settings).grade(ITEM)  # type: ignore[arg-type]
    assert engine.say == [], "not every reply was asked for"
    return verdict, engine.requests


def again_of(verdict: Verdict) -> Verdict:
    """The verdict derived again from what was written down."""
    rubric = load_rubric(RUBRIC)
    assert isinstance(rubric, Rubric)
    return settle_again(
        verdict_from(orjson.loads(orjson.dumps(verdict))), rubric, load_format("absolute"), AskSettings()
    )


def hows(verdict: Verdict) -> list[str]:
    return [attempt.how for attempt in verdict.attempts]


def test_a_text_is_parsed() -> None:
    verdict, requests = graded("It says little.\nVerdict: 2")
    assert (verdict.label, verdict.score, verdict.status) == ("2", 2.0, Status.OK)
    assert (verdict.feedback, verdict.marker) == ("It says little.", "own")
    assert (verdict.distribution, verdict.expected, verdict.mass) == (None, None, None)
    assert verdict.raw == "It says little.\nVerdict: 2"
    assert requests[0].readout is not None
    assert requests[0].readout.labels == LABELS


def test_a_verdict_that_its_reply_contradicts_is_marked() -> None:
    verdict, _ = graded("Verdict: 4\nThe source does not exist, though.\nVerdict: 2")
    assert (verdict.label, verdict.conflict) == ("2", True)
    verdict, _ = graded("Verdict: 2\nIt says little.\nVerdict: 2")
    assert (verdict.label, verdict.conflict) == ("2", False)
    verdict, _ = graded(read(0.1, 0.7, text="Verdict: 4\nOn a second reading it says little.\nVerdict:"))
    assert (verdict.label, verdict.conflict) == ("2", True)


def test_an_unsure_reply_is_followed_up() -> None:
    verdict, _ = graded("Verdict: 4? no, 2", " 2")
    assert (verdict.label, verdict.marker, hows(verdict)) == ("2", "forced", ["ask", "continue"])
    assert verdict.attempts[0].status is Status.UNPARSED


def test_what_is_read_counts_not_what_is_written() -> None:
    # absolute .02, .08, .5, .3, .05: mass .95; 3 is likeliest; expected (.02 + .16 + 1.5 + 1.2 + .25) / .95 = 3.294737
    verdict, _ = graded(read(0.02, 0.08, 0.5, 0.3, 0.05, text="Fine.\nVerdict:"))
    assert (verdict.label, verdict.score, verdict.marker) == ("3", 3.0, "own")
    assert verdict.mass == pytest.approx(0.95)
    assert verdict.expected == pytest.approx(3.13 / 0.95)
    assert verdict.distribution is not None
    assert verdict.distribution["3"] == pytest.approx(0.5 / 0.95)
    assert verdict.feedback == "Fine."


@pytest.mark.parametrize(
    ("logprobs", "why"),
    [
        (dict.fromkeys(LABELS, 0.0), "sum to 5"),
        ({" 1": 3.0, " 2": 2.0}, "above 0"),
        ({" 1": math.nan}, "nan"),
    ],
)
def test_what_is_no_distribution_is_parsed_and_the_record_says_why(logprobs: dict[str, float], why: str) -> None:
    """It gave label 1 with a mass of 1, where the text says 4."""
    verdict, _ = graded(Completion("", "Fine.\nVerdict: 4", "stop", logprobs, "own"))
    assert (verdict.label, verdict.distribution, verdict.mass) == ("4", None, None)
    assert why in verdict.reason
    assert why in verdict.attempts[0].unread
    assert verdict.attempts[0].label_logprobs is None
    assert again_of(verdict) == verdict


def test_what_is_no_distribution_and_no_text_is_no_verdict() -> None:
    """A score-only reply has no text to parse: it is followed up, and stays without a verdict."""
    bad = Completion("", "", "stop", dict.fromkeys(LABELS, 0.0), "forced")
    verdict, _ = graded(bad, bad, bad, read="only")
    assert (verdict.status, verdict.label, hows(verdict)) == (Status.UNPARSED, None, ["ask", "continue", "constrain"])
    assert "sum to 5" in verdict.reason


def test_a_label_of_probability_zero_is_read_back_from_a_record() -> None:
    """JSON writes -infinity as null."""
    verdict, _ = graded(read(0.0, 0.6, 0.4, 0.0, 0.0, text="Fine.\nVerdict:"))
    assert again_of(verdict).distribution == verdict.distribution


_UNUSED = "the labels' probabilities were not used: the text after the marker states no verdict"


@pytest.mark.parametrize("text", ["Fine.\nVerdict: 4\nScratch that.", "Fine.\nVerdict: not 4", "Verdict: <4"])
def test_a_text_without_a_verdict_has_no_label_to_score(text: str) -> None:
    """It gave label 4 and no sign of doubt."""
    verdict, _ = graded(read(0, 0.1, 0, 0.9, text=text), read(0, 0.8, 0, 0.2, text="", marker="forced"))
    assert (verdict.label, verdict.marker, hows(verdict)) == ("2", "forced", ["ask", "continue"])
    first = verdict.attempts[0]
    assert (first.status, first.reason.endswith(_UNUSED)) == (Status.UNPARSED, True)
    assert first.label_logprobs is not None
    assert again_of(verdict) == verdict


@pytest.mark.parametrize("text", ["Fine.\nVerdict: 4 or 2", "Fine.\nVerdict: 4.5", "Fine.\nVerdict: 4-5"])
def test_a_text_off_the_scale_has_no_label_to_score_either(text: str) -> None:
    verdict, _ = graded(read(0, 0.1, 0, 0.9, text=text))
    assert (verdict.status, verdict.label, verdict.distribution) == (Status.OFF_SCALE, None, None)
    assert (verdict.reason.endswith(_UNUSED), "is not one of the scale 1-5" in verdict.reason) == (True, True)
    assert again_of(verdict) == verdict


def test_probabilities_that_do_not_fit_the_text_are_told() -> None:
    verdict = graded(read(0, 0.9, 0, 0.1, text="Fine.\nVerdict: 4"))[0]
    assert (verdict.label, verdict.status) == ("2", Status.OK)
    told = "the text says '4' (probability 0.100), but the likeliest label is '2' (probability 0.900)"
    assert (verdict.reason, verdict.attempts[0].reason) == (told, told)
    assert again_of(verdict) == verdict
    assert "(probability 0.000)" in graded(read(0, 1, text="Verdict: 4"))[0].reason
    assert graded(read(0, 0.1, 0, 0.9, text="Fine.\nVerdict: 4"))[0].reason == ""
    even = graded(read(0, 0.5, 0, 0.5, text="Fine.\nVerdict: 4"))[0]  # the first of the scale was the label
    assert (even.label, even.reason) == ("4", "")
    assert again_of(even) == even
    assert graded(read(0, 0.1, 0, 0.9, text="Verdict: 2\nNo, better.\nVerdict: 4"))[0].conflict


def test_probabilities_at_a_quoted_marker_are_not_used() -> None:
    """It was the label of the quotation, 5."""
    text = "Fine.\nVerdict: 2\n> Verdict: 5\nThe line above is what the response says of itself."
    verdict = graded(read(0, 0.01, 0, 0, 0.98, text=text))[0]
    assert (verdict.label, verdict.distribution, verdict.marker) == ("2", None, "own")
    assert verdict.reason.endswith("read at another marker than the one where the text states its verdict")
    assert again_of(verdict) == verdict


def test_a_marker_that_was_put_there_is_told() -> None:
    verdict, _ = graded(read(0.1, 0.7, text="It says little.", marker="forced"))
    assert (verdict.label, verdict.marker, verdict.feedback) == ("2", "forced", "It says little.")
    assert verdict.raw == "It says little."


@pytest.mark.parametrize(("least", "status"), [(0.3, Status.OK), (0.5, Status.OFF_SCALE)])
def test_too_little_mass_is_off_the_scale(least: float, status: Status) -> None:
    verdict, requests = graded(read(0.3, 0.1), min_mass=least)
    assert verdict.status is status
    assert verdict.mass == pytest.approx(0.4)
    assert len(requests) == 1
    if status is Status.OFF_SCALE:
        assert (verdict.label, verdict.score, verdict.distribution, verdict.expected) == (None, None, None, None)
        assert verdict.reason == "only 0.400 of the probability fell on the labels (at least 0.5 is asked for)"
        assert verdict.attempts[0].label_logprobs is not None


def test_no_mass_at_all() -> None:
    verdict, _ = graded(read(0, 0, 0, 0, 0))
    assert verdict.status is Status.OFF_SCALE
    assert verdict.reason.startswith("only 0.000")
    assert graded(replace(read(), label_logprobs={}))[0].status is Status.OFF_SCALE


def test_never_reading_asks_for_no_probabilities() -> None:
    verdict, requests = graded("Verdict: 4", read="never")
    assert verdict.label == "4"
    assert requests[0].readout is None


def test_only_reading_generates_nothing() -> None:
    verdict, requests = graded(read(0, 0, 0, 1, text="", marker="forced"), read="only")
    assert (verdict.label, verdict.feedback) == ("4", "")
    assert requests[0].readout is not None
    assert not requests[0].readout.generate
    with pytest.raises(UserError, match="'json-absolute' has no marker"):
        Judge(Scripted([]), RUBRIC, format="json-absolute", read="only").grade(ITEM)


def test_the_ladder_continues_then_constrains() -> None:
    verdict, (ask, go_on, choose) = graded("I am not sure what to say.", " hard to tell", " 3")
    assert (verdict.label, verdict.marker, verdict.status) == ("3", "forced", Status.OK)
    assert hows(verdict) == ["ask", "continue", "constrain"]
    assert [attempt.status for attempt in verdict.attempts] == [Status.UNPARSED, Status.UNPARSED, Status.OK]
    assert [attempt.raw for attempt in verdict.attempts] == ["I am not sure what to say.", " hard to tell", " 3"]
    assert verdict.raw == " 3"
    assert verdict.feedback == "I am not sure what to say."
    assert ask.prefill == ""
    assert go_on.prefill == choose.prefill == "I am not sure what to say.\nVerdict:"
    assert go_on.choices == ()
    assert choose.choices == LABELS
    assert (go_on.sampling.temperature, go_on.sampling.max_tokens) == (0.0, 16)
    assert go_on.readout is not None
    assert not go_on.readout.generate
    assert len({ask.key, go_on.key, choose.key}) == 3


def test_the_ladder_ends_at_the_first_verdict() -> None:
    verdict, _ = graded("Hm.", " 5")
    assert (verdict.label, verdict.marker, hows(verdict)) == ("5", "forced", ["ask", "continue"])


def test_a_follow_up_may_be_read() -> None:
    verdict, _ = graded("Hm.", read(0, 0, 0.9, text="", marker="forced"))
    assert (verdict.label, verdict.marker) == ("3", "forced")
    assert verdict.mass == pytest.approx(0.9)
    assert verdict.feedback == "Hm."


def test_when_all_ways_fail_every_reply_is_kept() -> None:
    verdict, requests = graded("Hm.", "well", "no")
    assert (verdict.status, verdict.label, verdict.score) == (Status.UNPARSED, None, None)
    assert hows(verdict) == ["ask", "continue", "constrain"]
    assert [attempt.raw for attempt in verdict.attempts] == ["Hm.", "well", "no"]
    assert len(requests) == 3


def test_usage_adds_up_over_the_ladder() -> None:
    first = Completion("", "Hm.", usage=Usage(100, 20, 30, 1.0, 0.5))
    second = Completion("", " 4", usage=Usage(130, 100, 2, 0.25))
    verdict, _ = graded(first, second)
    assert verdict.usage == Usage(230, 120, 32, 1.25, 0.5)


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (Completion("", "I think that", "length"), Status.TRUNCATED),
        (Completion("", "", refusal="not allowed"), Status.REFUSED),
        (Completion("", "I'm sorry, but I can't help with that."), Status.REFUSED),
        (Completion("", "Fine.\nVerdict: 7"), Status.OFF_SCALE),
        (read(0.9, 0.1, text="Fine", finish="length"), Status.TRUNCATED),
        (replace(read(0.9, 0.1), refusal="not allowed"), Status.REFUSED),
    ],
    ids=["cut", "refused", "refused-in-words", "off-scale", "cut-though-read", "refused-though-read"],
)
def test_what_is_not_recovered(reply: Completion, status: Status) -> None:
    verdict, requests = graded(reply)
    assert (verdict.status, verdict.label, verdict.score, verdict.expected) == (status, None, None, None)
    assert verdict.reason
    assert hows(verdict) == ["ask"]
    assert len(requests) == 1


def test_an_error_is_kept_with_what_came_before_it() -> None:
    down = Completion("", finish="error", error=EngineError("no answer", kind="timeout", retryable=True))
    verdict, _ = graded("Hm.", down)
    assert (verdict.status, verdict.reason) == (Status.ENGINE_ERROR, "timeout: no answer")
    assert [attempt.status for attempt in verdict.attempts] == [Status.UNPARSED, Status.ENGINE_ERROR]


def test_a_format_without_a_marker_has_no_ladder() -> None:
    verdict, requests = graded("no JSON", format="json-absolute")
    assert verdict.status is Status.UNPARSED
    assert len(requests) == 1
    assert requests[0].schema is not None
    assert requests[0].readout is None


def test_a_pair_is_read_by_response_not_by_slot() -> None:
    def first_slot(request: Request) -> Completion:
        return Completion(
            "", "Verdict:", "stop", {" A": math.log(0.6), " B": math.log(0.2), " tie": math.log(0.2)}, "own"
        )

    judge = Judge(Scripted(first_slot), RUBRIC)
    both = judge.compare({"id": "p", "instruction": "?", "responses": ["One.", "Two."]})
    a_first, b_first = both.orders
    assert (a_first.label, b_first.label) == ("a", "b")
    assert a_first.distribution == pytest.approx({"a": 0.6, "b": 0.2, "tie": 0.2})
    assert b_first.distribution == pytest.approx({"b": 0.6, "a": 0.2, "tie": 0.2})
    assert (both.choice, both.consistent) == ("tie", False)
    assert both.logit_a == pytest.approx(0.0)
    assert both.position_bias == pytest.approx(math.log(3))
    assert a_first.score is None
    assert a_first.expected is None


class Window(Scripted):
    """Takes four requests before it answers the first, last one first, and forgets one item."""

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        window: list[Request] = []
        for request in requests:
            window.append(request)
            if len(window) == 4:
                yield from self.answers(window)
                window.clear()
        yield from self.answers(window)
        yield Completion("never asked for", "Verdict: 1")

    def answers(self, window: list[Request]) -> Iterator[Completion]:
        for request in reversed(window):
            if request.about["item"] != "7":
                text = "Hm." if request.about["item"] == "2" and "/" not in request.key else " 4"
                yield Completion(request.key, text if "/" in request.key or text == "Hm." else "Verdict: 4")


def test_an_engine_may_answer_in_any_order_and_forget() -> None:
    items = [{**ITEM, "id": str(i)} for i in range(10)]
    verdicts = {v.question.item: v for v in Judge(Window([]), RUBRIC).grade_many(items)}
    assert len(verdicts) == 10
    assert verdicts["7"].status is Status.ENGINE_ERROR
    assert verdicts["7"].reason == "unanswered: the engine ended without a completion"
    assert hows(verdicts["2"]) == ["ask", "continue"]
    assert sum(v.status is Status.OK for v in verdicts.values()) == 9


def test_equal_items_each_get_a_verdict() -> None:
    items = [{**ITEM, "id": "same"} for _ in range(6)]
    assert [v.label for v in Judge(Window([]), RUBRIC).grade_many(items)] == ["4"] * 6
    nameless = [{"instruction": "?", "response": str(i)} for i in range(3)]
    assert sorted(v.question.item for v in Judge(Window([]), RUBRIC).grade_many(nameless)) == ["0", "1", "2"]


def test_items_that_cannot_be_asked_take_no_turn() -> None:
    engine = Scripted(lambda _: "Verdict: 1")
    items = [{**ITEM, "id": str(i), "image": "nowhere.png"} for i in range(2500)] + [{**ITEM, "id": "good"}]
    verdicts = list(Judge(engine, RUBRIC).grade_many(items))
    assert [request.about["item"] for request in engine.requests] == ["good"]
    assert sum(v.status is Status.BAD_ITEM for v in verdicts) == 2500
    assert "nowhere.png" in verdicts[0].reason
    assert verdicts[0].attempts == ()


def test_each_sample_has_a_seed_of_its_own() -> None:
    engine = Scripted(lambda request: f"Verdict: {request.about['sample'] + 2}")
    judge = Judge(engine, RUBRIC, sampling=Sampling(temperature=1.0, seed=5), samples=3)
    verdict = judge.grade(ITEM)
    assert [request.sampling.seed for request in engine.requests] == [5, 6, 7]
    assert verdict.distribution == pytest.approx({"1": 0.0, "2": 1 / 3, "3": 1 / 3, "4": 1 / 3, "5": 0.0})
    assert verdict.expected == pytest.approx(3.0)


@pytest.mark.parametrize("way", ["unparsed", "off_scale", "refused", "truncated", "errors"])
def test_a_failure_is_never_a_number(way: str) -> None:
    """With every engine fault that the mocks know, with and without reading."""
    for reading in ("auto", "never"):
        judge = Judge(f"mock:random,{way}=1", "helpfulness", read=reading)
        for verdict in judge.grade_many([{**ITEM, "id": str(i)} for i in range(20)]):
            if verdict.status is not Status.OK:
                assert (verdict.score, verdict.label, verdict.expected, verdict.distribution) == (None,) * 4
                assert verdict.reason
            elif way == "unparsed":
                assert verdict.marker == "forced"
            else:
                raise AssertionError(f"{way} gave {verdict.label}")


def test_lower_is_better_keeps_the_numbers() -> None:
    judge = Judge(Oracle(r=1.0), {**RUBRIC, "lower_is_better": True})
    assert judge.grade({**ITEM, "gold": 1}).score == 1.0
