"""Typed decisions, against a server that the openai SDK's own types hold to the contract."""

import logging
import math
from pathlib import Path
from typing import Any

import openai
import PIL.Image
import pytest

from dikast import Judge
from dikast.core.errors import UserError
from dikast.core.message import Message, Span
from dikast.core.part import Image
from dikast.core.verdict import Status
from dikast.engines.base import Completion, Readout, Request
from dikast.engines.decision import DecisionEngine
from dikast.engines.spec import open_engine
from dikast.testing import check_engine, sample_requests
from engines.decision_server import MODEL, DecisionServer, text_of
from engines.http_servers import LABELS, READ, ask, grade, system_one, verdicts, write_items

FIVE = (0.05, 0.1, 0.15, 0.3, 0.4)
SCALE = Readout(LABELS, "Verdict:", ordered=True)
FAST = "backoff=0.01,retries=1,timeout=5"


def ramp(text: str, answers: list[str]) -> list[float]:
    """Probabilities that rise along the answers."""
    total = len(answers) * (len(answers) + 1) / 2
    return [(i + 1) / total for i in range(len(answers))]


def one(server: DecisionServer, request: Request, options: str = FAST) -> Completion:
    engine = open_engine(f"{server.spec},{options}")
    assert isinstance(engine, DecisionEngine)
    (found,) = engine.stream([request])
    engine.close()
    return found


def test_the_sdk_itself_understands_the_server() -> None:
    with DecisionServer(ramp) as server:
        client = openai.OpenAI(base_url=server.base, api_key="none", max_retries=0)
        decision = client.decisions.create(
            model=MODEL,
            input=[{"role": "user", "content": [{"type": "input_text", "text": "Two and two are four."}]}],
            questions=[
                {"type": "predicate", "instructions": "It is true."},
                {"type": "score", "instructions": "How clear?", "levels": [{"label": "dim"}, {"label": "clear"}]},
            ],
        )
        client.close()
    predicate, score = decision.answers
    assert predicate.type == "predicate"
    assert predicate.probability == pytest.approx(1 / 3)
    assert score.type == "score"
    assert {each.label: each.probability for each in score.probabilities} == pytest.approx(
        {"dim": 1 / 3, "clear": 2 / 3}
    )


def test_the_server_refuses_what_the_contract_does_not_know() -> None:
    with DecisionServer(ramp) as server:
        found = one(server, ask(readout=SCALE), FAST + ',extra={"temperature":0}')
        assert not server.asked
    assert found.error is not None
    assert found.error.kind == "bad_request"
    assert "temperature" in str(found.error)


@pytest.mark.parametrize(
    ("readout", "kind", "expected"),
    [
        (SCALE, "score", FIVE),
        (Readout((" A", " B", " tie"), "Verdict:"), "choice", (0.2, 0.3, 0.5)),
        (Readout((" A", " B"), "Verdict:"), "choice", (0.9, 0.1)),
        (Readout((" fail", " pass"), "Verdict:", ordered=True), "predicate", (0.8, 0.2)),
    ],
)
def test_labels_are_read_by_their_names(readout: Readout, kind: str, expected: tuple[float, ...]) -> None:
    """The server lists probabilities in another order than it was asked in."""

    def shares(text: str, answers: list[str]) -> tuple[float, ...]:
        return expected[::-1] if answers == ["true", "false"] else expected  # the higher label is the true one

    with DecisionServer(shares) as server:
        found = one(server, ask(readout=readout))
    assert found.error is None
    assert server.asked[0]["questions"][0]["type"] == kind
    assert found.label_logprobs is not None
    assert [math.exp(found.label_logprobs[label]) for label in readout.labels] == pytest.approx(list(expected))
    assert (found.text, found.marker) == ("", "forced")
    assert (found.usage.tokens_in, found.usage.tokens_cached, found.usage.tokens_out) == (90, 60, 1)


def test_a_choice_is_answered_with_the_likeliest() -> None:
    with DecisionServer(ramp) as server:
        found = one(server, ask(choices=(" yes", " no")))
    assert (found.text, found.label_logprobs) == (" no", None)


def test_what_cannot_be_asked_is_an_error_of_that_request() -> None:
    with DecisionServer(ramp) as server:
        for request in (ask(), ask(readout=Readout((" 1",), "V:")), Request("void", (), readout=SCALE)):
            found = one(server, request)
            assert found.error is not None
            assert found.error.kind == "bad_request"
        assert not server.asked


def test_it_keeps_the_protocol() -> None:
    """Prompts are asked with a read-out, as there is nothing else that a decision can answer."""
    with DecisionServer(ramp) as server:
        engine = open_engine(f"{server.spec},{FAST}")
        assert isinstance(engine, DecisionEngine)
        asked = [
            Request(each.key, each.messages, readout=Readout(LABELS, "[RESULT]", ordered=True), about=each.about)
            for each in sample_requests()
        ]
        check_engine(engine, requests=asked)
        engine.close()


def test_grading_gives_the_distribution_and_says_that_there_is_no_feedback(caplog: pytest.LogCaptureFixture) -> None:
    with DecisionServer(lambda text, answers: FIVE) as server, caplog.at_level(logging.WARNING, "dikast"):
        judge = Judge(f"{server.spec},{FAST}", "helpfulness")
        verdict = judge.grade(instruction="What is 2 + 2?", response="4")
        again = judge.grade(instruction="What is 3 + 3?", response="6")
    assert (verdict.status, verdict.label, verdict.score) == (Status.OK, "5", 5)
    assert verdict.distribution == pytest.approx(dict(zip("12345", FIVE, strict=True)))
    assert verdict.expected == pytest.approx(0.05 + 0.2 + 0.45 + 1.2 + 2.0)
    assert verdict.mass == pytest.approx(1)
    assert verdict.feedback == again.feedback == ""
    said = [record.getMessage() for record in caplog.records if "no feedback" in record.getMessage()]
    assert len(said) == 1
    assert "What is 2 + 2?" in text_of(server.asked[0])


def test_comparing_turns_slots_into_responses() -> None:
    """An endpoint that always prefers what is shown first is found out by the two orders."""
    with DecisionServer(lambda text, answers: (0.7, 0.2, 0.1)) as server:
        judge = Judge(f"{server.spec},{FAST}", "helpfulness", compare_format="choice-only")
        found = judge.compare(instruction="What is 2 + 2?", responses=["4", "5"])
    assert (found.choice, found.consistent) == ("tie", False)
    assert found.logit_a == pytest.approx(0)
    assert found.position_bias == pytest.approx(math.log(0.7 / 0.2))


def test_a_run_through_the_command_line(tmp_path: Path) -> None:
    with DecisionServer(lambda text, answers: FIVE) as server:
        code, summary = grade(
            write_items(tmp_path / "items.jsonl", 5),
            f"{server.spec},{FAST}",
            tmp_path / "run",
            "--format",
            "score-only",
        )
    assert (code, summary["status"]) == (0, {"ok": 5})
    assert summary["criteria"]["helpfulness"]["labels"] == {"5": 5}
    assert {verdict["marker"] for verdict in verdicts(tmp_path / "run")} == {"forced"}


def test_a_refusal_is_a_refusal() -> None:
    def refuse(value: dict[str, Any]) -> dict[str, Any]:
        return {**value, "answers": [{"type": "refusal", "name": "verdict"}]}

    with DecisionServer(ramp, spoil=refuse) as server:
        verdict = Judge(f"{server.spec},{FAST}", "helpfulness").grade(instruction="Q?", response="A.")
    assert (verdict.status, verdict.score) == (Status.REFUSED, None)


def with_shares(label: str, share: object) -> Any:
    """Spoils the reply: five answers of that share, whose labels are `label` with their number in it."""

    def spoil(value: dict[str, Any]) -> dict[str, Any]:
        told = [{"label": label.format(i), "probability": share} for i in range(1, 6)]
        return {**value, "answers": [{**value["answers"][0], "probabilities": told}]}

    return spoil


@pytest.mark.parametrize(
    "spoil",
    [
        lambda value: [],
        lambda value: {**value, "answers": []},
        lambda value: {**value, "answers": value["answers"] * 2},
        lambda value: {**value, "answers": [{**value["answers"][0], "type": "choice"}]},
        lambda value: {**value, "answers": [{**value["answers"][0], "probabilities": []}]},
        with_shares("{}", 0.3),
        with_shares("{}", "0.2"),
        with_shares("{}", math.nan),
        with_shares("level {}", 0.2),
    ],
    ids=["list", "none", "two", "other-type", "empty", "sum", "text", "nan", "labels"],
)
def test_an_answer_that_is_none_is_never_a_verdict(spoil: Any) -> None:
    with DecisionServer(lambda text, answers: FIVE, spoil=spoil) as server:
        found = one(server, ask(readout=SCALE))
    assert found.error is not None
    assert found.error.kind == "bad_response"


def test_another_model_is_an_error() -> None:
    with DecisionServer(ramp, spoil=lambda value: {**value, "model": "somebody-else"}) as server:
        found = one(server, ask(readout=SCALE))
    assert found.error is not None
    assert found.error.kind == "wrong_model"


def test_images_go_as_parts_of_the_message(tmp_path: Path) -> None:
    path = tmp_path / "red.png"
    PIL.Image.new("RGB", (32, 32), "red").save(path)
    message = Message("user", (Span("See ", trusted=True), Image(str(path)), Span(" <|im_end|>")))
    with DecisionServer(ramp) as server:
        found = one(server, Request("k", (Message("system", (Span("Judge."),)), message), readout=SCALE))
    assert found.error is None
    system, user = server.asked[0]["input"]
    assert system["content"] == [{"type": "input_text", "text": "Judge."}]
    assert [part["type"] for part in user["content"]] == ["input_text", "input_image", "input_text"]
    assert user["content"][1]["image_url"].startswith("data:image/png;base64,")
    assert "<|im_end|>" not in user["content"][2]["text"], "control tokens in untrusted text are broken up"


def test_specs(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"ends in /decisions or in /systemone"):
        open_engine("decision:http://127.0.0.1:1/v1#m")
    with pytest.raises(UserError, match="unknown option 'top_logprobs'"):
        open_engine("decision:http://127.0.0.1:1/v1/decisions#m,top_logprobs=3")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UserError, match="OPENAI_API_KEY is not set"):
        open_engine("decision:some-model")
    engine = open_engine("decision:http://127.0.0.1:1/v1/systemone#m,server=box")
    assert engine.identity() == {
        "engine": "decision", "contract": "systemone", "server": "box", "model": "m", "extra": {}, "inert": 1,
    }  # fmt: skip
    with DecisionServer(ramp) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "abc")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base)
        engine = open_engine(f"decision:{MODEL}")
        (found,) = engine.stream([ask(readout=READ)])
        assert found.error is None
        assert server.keys == {"Bearer abc"}
        assert isinstance(engine, DecisionEngine)
        engine.close()


@pytest.mark.slow
@pytest.mark.xdist_group("servers")
def test_system_one_of_a_real_server(transformers_text: str, tmp_path: Path) -> None:
    spec = system_one(transformers_text)
    engine = open_engine(spec)
    readouts = [SCALE, Readout((" A", " B", " tie"), "V:"), Readout((" fail", " pass"), "V:", ordered=True)]
    requests = [ask(i, readout=readout) for i, readout in enumerate(readouts)]
    found = {each.key: each for each in engine.stream(requests)}
    for request in requests:
        each = found[request.key]
        assert each.error is None
        assert each.label_logprobs is not None
        assert request.readout is not None
        assert each.label_logprobs.keys() == set(request.readout.labels)
        assert math.fsum(map(math.exp, each.label_logprobs.values())) == pytest.approx(1)
        assert each.usage.tokens_in > 20
    check_engine(engine, requests=[Request(e.key, e.messages, readout=SCALE, about=e.about) for e in sample_requests()])
    assert isinstance(engine, DecisionEngine)
    engine.close()
    _, summary = grade(write_items(tmp_path / "items.jsonl", 4), spec, tmp_path / "run", "--format", "score-only")
    assert summary["status"] == {"ok": 4}
    pair = Judge(spec, "helpfulness", compare_format="choice-only").compare(instruction="Q?", responses=["A.", "B."])
    assert pair.logit_a is not None


@pytest.mark.slow
@pytest.mark.xdist_group("servers")
def test_images_of_system_one_are_seen_by_a_real_server(transformers_llava: str, tmp_path: Path) -> None:
    engine = open_engine(system_one(transformers_llava))
    paths = [tmp_path / f"{color}.png" for color in ("red", "blue")]
    for path in paths:
        PIL.Image.new("RGB", (64, 64), path.stem).save(path)

    def asked(key: str, *images: Path) -> Request:
        parts: tuple[Span | Image, ...] = (*(Image(str(path)) for path in images), Span("Grade [image-1] this."))
        pair = Readout((" A", " B"), "V:")  # its options go by A and B, which are tokens of this model; C is not
        return Request(key, (Message("user", parts),), readout=pair)

    found = {e.key: e for e in engine.stream([asked("none"), asked("red", paths[0]), asked("two", *paths)])}
    assert [each.error for each in found.values()] == [None] * 3
    tokens = {key: each.usage.tokens_in for key, each in found.items()}
    assert tokens["none"] < tokens["red"] < tokens["two"]
    assert isinstance(engine, DecisionEngine)
    engine.close()
