"""Mocks reply as real judges would, and fail as often as told."""

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from asking import FIVE, READ, STRINGS, absolute, pair
from dikast.core.canonical import canonical_json
from dikast.core.errors import EngineError, UserError
from dikast.core.message import Message, Span
from dikast.engines.base import Completion, Readout, Request
from dikast.engines.mock import Constant, Failures, Mock, Oracle, Random, open_mock
from dikast.engines.mock.json_reply import fitting


class Best(Mock):
    """What an outsider writes: one method."""

    def decide(self, request: Request) -> str:
        return max(FIVE, key=FIVE.__getitem__)


class Torn(Mock):
    def decide(self, request: Request) -> Mapping[str, float]:
        return {"1": 0.0, "5": math.log(3)}


def test_one_method_makes_a_mock() -> None:
    assert Best(feedback=0).reply(absolute()).text == "[RESULT] 5"
    completion = Torn().reply(absolute(readout=READ))
    assert completion.text.endswith("\n[RESULT] 5")
    read = completion.label_logprobs
    assert read is not None
    assert read[" 5"] - read[" 1"] == pytest.approx(math.log(3))
    assert read[" 3"] < -50
    with pytest.raises(NotImplementedError, match="Mock must say how"):
        Mock().reply(absolute())


def test_a_reply_is_prose_then_marker_then_label() -> None:
    completion = Constant(label="4", feedback=7).reply(absolute())
    prose, _, verdict = completion.text.rpartition("\n")
    assert len(prose.split()) == 7
    assert verdict == "[RESULT] 4"
    assert len(Constant(label="4", feedback=500).reply(absolute()).text.split()) == 502
    assert (completion.finish, completion.label_logprobs, completion.marker) == ("stop", None, None)
    assert (completion.usage.tokens_in, completion.usage.tokens_out) == (
        (12 + 400 + 3) // 4,
        len(completion.text) // 4 + 1,
    )


def test_a_read_out_is_a_distribution_over_the_strings_asked_for() -> None:
    completion = Constant(label="2").reply(absolute(readout=READ))
    read = completion.label_logprobs
    assert read is not None
    assert tuple(read) == STRINGS
    assert max(read, key=read.__getitem__) == " 2"
    assert sum(map(math.exp, read.values())) == pytest.approx(0.99)
    assert completion.marker == "own"
    alone = Constant(label="2").reply(absolute(readout=Readout(STRINGS, "[RESULT]", generate=False)))
    assert (alone.text, alone.marker, alone.label_logprobs) == ("", "forced", read)


def test_a_reply_that_continues_at_the_marker_is_the_label_alone() -> None:
    completion = Constant(label="4").reply(absolute(prefill="Well said.\n[RESULT]", readout=READ))
    assert (completion.text, completion.marker) == (" 4", "forced")


def test_choices_and_schemas_are_kept_to() -> None:
    assert Constant(label="4").reply(absolute(choices=STRINGS)).text == " 4"
    assert Constant(label="4").reply(absolute(choices=("four", "4"))).text == "4"
    assert Constant(label="4").reply(absolute(choices=("yes", "no"))).text in ("yes", "no")
    schema = {
        "type": "object",
        "properties": {"feedback": {"type": "string"}, "score": {"type": "integer", "minimum": 1, "maximum": 5}},
        "required": ["feedback", "score"],
    }
    said = json.loads(Constant(label="4", feedback=3).reply(absolute(schema=schema)).text)
    assert said == {"feedback": "The response keeps", "score": 4}


def test_json_fits_what_schemas_ask() -> None:
    schema = {
        "$defs": {"grade": {"enum": ["A", "B", "C"]}},
        "type": "object",
        "properties": {
            "grade": {"$ref": "#/$defs/grade"},
            "winner": {"type": "string"},
            "claims": {"type": "array", "items": {"type": "string", "maxLength": 4}, "minItems": 2},
            "sure": {"type": "boolean"},
            "kind": {"const": "verdict"},
            "level": {"type": ["number", "null"], "minimum": 7},
            "note": {"anyOf": [{"type": "null"}, {"type": "string"}]},
        },
    }
    assert fitting(schema, "B", "some prose") == {
        "grade": "B",
        "winner": "B",
        "claims": ["some", "some"],
        "sure": False,
        "kind": "verdict",
        "level": 7,
        "note": None,
    }
    assert fitting({"enum": [1, 2, 3]}, "2", "") == 2
    assert fitting({"type": "number"}, "2.5", "") == 2.5
    assert fitting({"$ref": "#"}, "2", "prose") == "prose"  # a schema that is only itself


def test_constant_is_the_middle_unless_told() -> None:
    assert Constant().reply(absolute()).text[-1] == "3"
    assert Constant().reply(pair(ties=True)).text[-1] == "T"
    assert Constant().reply(pair()).text[-1] == "A"
    error = Constant(label="9").reply(absolute(3)).error
    assert error is not None
    assert error.kind == "off_label"
    assert "item 'item-3': mock:constant says '9'" in str(error)


def test_random_is_uniform_and_hangs_on_key_and_seed_alone() -> None:
    requests = [absolute(i, None) for i in range(5000)]
    forth = {each.key: each.text for each in Random().stream(requests)}
    back = {each.key: each.text for each in Random().stream(reversed(requests))}
    assert forth == back
    counts = Counter(text[-1] for text in forth.values())
    chi = sum((count - 1000) ** 2 / 1000 for count in counts.values())
    assert len(counts) == 5
    assert chi < 18.5  # 4 degrees of freedom, p = .001
    assert [each.text for each in Random(seed=1).stream(requests)] != list(forth.values())
    moved = [absolute(i, None, seed=1) for i in range(5000)]
    assert [each.text for each in Random().stream(moved)] != list(forth.values())


@pytest.mark.parametrize("mock", [Random(), Constant(), Oracle()])
def test_requests_that_do_not_tell_enough_fail_as_completions(mock: Mock) -> None:
    bare = Request("k", (Message("user", (Span("?"),)),))
    error = mock.reply(bare).error
    assert error is not None
    assert error.kind in ("no_labels", "no_about")


def test_an_engine_error_of_a_mock_is_a_completion() -> None:
    class Shy(Mock):
        def decide(self, request: Request) -> str:
            raise EngineError("not today", kind="shy", retryable=True)

    completion = Shy().reply(absolute())
    assert completion.finish == "error"
    assert completion.error is not None
    assert completion.error.retryable


def kind_of(completion: Completion) -> str:
    if completion.error is not None:
        return "retryable" if completion.error.retryable else "errors"
    if completion.refusal or "can't help" in completion.text:
        return "refused"
    if completion.finish == "length":
        return "truncated"
    if "[RESULT]" not in completion.text:
        return "unparsed"
    return "off_scale" if completion.text[-2:] not in STRINGS else "ok"


def test_failures_come_in_their_shares_and_are_the_same_each_time() -> None:
    shares = {"refused": 0.1, "truncated": 0.05, "unparsed": 0.15, "off_scale": 0.1, "errors": 0.05, "retryable": 0.2}
    mock = open_mock("constant", **shares)
    requests = [absolute(i) for i in range(8000)]
    kinds = [kind_of(each) for each in mock.stream(requests)]
    for kind, share in shares.items():
        assert kinds.count(kind) / 8000 == pytest.approx(share, abs=4 * math.sqrt(share / 8000))
    assert kinds[::-1] == [kind_of(each) for each in mock.stream(requests[::-1])]
    refusals = [bool(each.refusal) for each in mock.stream(requests) if kind_of(each) == "refused"]
    assert 0.4 < sum(refusals) / len(refusals) < 0.6


def test_failing_is_shared_out_evenly() -> None:
    assert open_mock("oracle", failing=0.3).failures == Failures.evenly(0.3)
    assert open_mock("failing").failures == Failures.evenly(0.6)
    assert open_mock("failing", refused=1).failures == Failures(refused=1)
    with pytest.raises(UserError, match="not both"):
        open_mock("random", failing=0.1, refused=0.2)
    with pytest.raises(UserError, match=r"sum to at most 1.*refused=0.7"):
        open_mock("random", refused=0.7, errors=0.7)


def test_failures_meet_the_read_out_as_in_a_real_engine() -> None:
    cut = Constant(failures=Failures(truncated=1)).reply(absolute(readout=READ))
    assert (cut.finish, cut.label_logprobs, cut.marker) == ("length", None, None)
    prose = Constant(failures=Failures(unparsed=1)).reply(absolute(readout=READ))
    assert "[RESULT]" not in prose.text
    assert prose.marker == "forced"
    assert prose.label_logprobs is not None
    off = Constant(failures=Failures(off_scale=1)).reply(absolute(readout=READ))
    assert off.text.endswith("[RESULT] 11")
    assert off.label_logprobs is not None
    assert sum(map(math.exp, off.label_logprobs.values())) == pytest.approx(0.02)
    assert Constant(failures=Failures(unparsed=1)).reply(absolute(choices=STRINGS)).text == " 3"
    assert Constant(failures=Failures(truncated=1)).reply(absolute(prefill="[RESULT]")).text == " 3"
    json_cut = Constant(failures=Failures(truncated=1)).reply(absolute(schema={"properties": {"score": {"enum": [3]}}}))
    assert (json_cut.text, json_cut.finish) == ('{"scor', "length")
    alone = Constant(failures=Failures(truncated=1)).reply(absolute(readout=replace(READ, generate=False)))
    assert (alone.text, alone.finish, alone.marker) == ("", "stop", "forced")


def test_every_request_is_logged_before_it_is_answered(tmp_path: Path) -> None:
    log = tmp_path / "asked"
    log.write_text("earlier\n")
    mock = open_mock("constant", log=str(log))
    stream = mock.stream(absolute(i) for i in range(3))
    assert log.read_text() == "earlier\n"
    next(stream)
    assert log.read_text() == "earlier\nkey-0-0\n"
    list(stream)
    assert log.read_text().splitlines() == ["earlier", "key-0-0", "key-1-0", "key-2-0"]


def test_identity_holds_what_could_change_an_answer(tmp_path: Path) -> None:
    plain = open_mock("oracle", r=0.5)
    assert canonical_json(plain.identity()) == canonical_json(
        open_mock("oracle", r=0.5, log=str(tmp_path / "l")).identity()
    )
    others = [{"r": 0.6}, {"r": 0.5, "seed": 1}, {"r": 0.5, "refused": 0.1}, {"r": 0.5, "feedback": 3}]
    spelt = {canonical_json(open_mock("oracle", **setting).identity()) for setting in others}
    assert len(spelt | {canonical_json(plain.identity())}) == 5
    assert plain.name == "mock:oracle,r=0.5"


@pytest.mark.parametrize("setting", [{"feedback": -1}, {"latency": -0.5}, {"latency": math.nan}])
def test_settings_that_cannot_be_meant(setting: dict[str, float]) -> None:
    with pytest.raises(UserError, match="not negative"):
        open_mock("constant", **setting)
