"""Replies with one thing wrong, over the wire and through the command line: what could be read of them is kept."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dikast.engines.decision import DecisionQuestion, SystemOne
from dikast.engines.http.decode import count_of, decoded, said
from dikast.engines.http.failure import retry_after
from dikast.surface.cli import app
from dikast.testing.faults import FaultServer, Spoilt
from engines.decision_server import DecisionServer
from engines.http_servers import grade, verdicts, write_items

QUICK = "timeout=5,backoff=0.001,retries=2,key_env=JUDGE_KEY"
HUGE = 18446744073709551615


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key, which is looked for in every reply."""
    monkeypatch.setenv("JUDGE_KEY", "sk-AbCdEf0123456789xyz")


def with_usage(value: dict[str, Any], **usage: Any) -> dict[str, Any]:
    return {**value, "usage": {**value["usage"], **usage}}


def with_text(value: dict[str, Any], text: str) -> bytes:
    """As JSON in which the text stands as it is spelt here."""
    value["choices"][0]["message"]["content"] = "TEXT"
    return json.dumps(value).encode().replace(b"TEXT", text.encode())


def judged(spoil: Callable[[dict[str, Any]], Any], folder: Path, *more: str) -> tuple[dict[str, Any], Counter[str]]:
    """The one verdict of a run against that server, and what it was asked; run again, the folder asks nothing."""
    with FaultServer("Fine.\nVerdict: 4", spoil=lambda value, _: spoil(value)) as server:
        items = write_items(folder / "items.jsonl", 1)
        grade(items, f"{server.spec},{QUICK}", folder / "run", *more)
        asked = Counter(server.tries)
        _, summary = grade(items, f"{server.spec},{QUICK}", folder / "run", *more)
        *_, verdict = verdicts(folder / "run")
        if verdict["status"] != "engine_error":
            assert summary["asked"] == 0
            assert server.tries == asked
    return verdict, asked


@pytest.mark.parametrize(
    "count", [HUGE, 10**400, -1, 2.5, "12", True, None, [], {"a": 1}], ids=lambda each: str(each)[:20]
)
def test_a_count_that_cannot_be_one_is_unknown_and_the_folder_stays_usable(count: Any, tmp_path: Path) -> None:
    """2^64 - 1 could not be written as JSON: the run ended, and so did every later one in that folder."""
    verdict, asked = judged(lambda value: with_usage(value, prompt_tokens=count, completion_tokens=7), tmp_path)
    assert (verdict["status"], verdict["label"], asked.total()) == ("ok", "4", 1)
    assert (verdict["usage"]["tokens_in"], verdict["usage"]["tokens_out"], verdict["usage"]["cost"]) == (0, 7, None)


@pytest.mark.parametrize(
    ("spelt", "text"),
    [
        ("Fine \\ud800.\\nVerdict: 4", "Fine \ufffd.\nVerdict: 4"),
        ("Fine \\ud83d\\ude00.\\nVerdict: 4", "Fine \U0001f600.\nVerdict: 4"),
        ("Fine\ttab.\\nVerdict: 4", "Fine\ttab.\nVerdict: 4"),
        (f"Fine &#{'1' * 6_000}; \\nVerdict: 4", f"Fine &#{'1' * 6_000}; \nVerdict: 4"),
    ],
    ids=["half a pair", "a pair", "a control character", "a character of 6,000 digits"],
)
def test_a_text_that_is_not_json_to_the_letter_is_paid_for_once(spelt: str, text: str, tmp_path: Path) -> None:
    """Half a surrogate pair was taken for no JSON, and the reply was asked for again in every run."""
    verdict, asked = judged(lambda value: with_text(value, spelt), tmp_path, "--read", "never")
    assert (verdict["status"], verdict["label"], verdict["raw"], asked.total()) == ("ok", "4", text, 1)


def test_alternatives_that_are_no_list_cost_their_probabilities_alone(tmp_path: Path) -> None:
    def spoil(value: dict[str, Any]) -> Any:
        for entry in (value["choices"][0]["logprobs"] or {"content": []})["content"]:
            entry["top_logprobs"] = 5
        return value

    verdict, asked = judged(spoil, tmp_path)
    assert (verdict["status"], verdict["label"], asked.total()) == ("ok", "4", 1)
    assert "no list (5)" in verdict["reason"]
    assert "no list (5)" in verdict["attempts"][0]["unread"]


@pytest.mark.parametrize("error", ["overloaded", {"message": "the engine died", "code": 500}, ["x"]], ids=str)
def test_an_error_beside_the_choices_is_no_verdict_and_what_was_said_is_kept(error: Any, tmp_path: Path) -> None:
    verdict, _ = judged(lambda value: {**value, "error": error}, tmp_path)
    assert (verdict["status"], verdict["score"]) == ("engine_error", None)
    assert "error beside the reply" in verdict["reason"]
    assert verdict["raw"] == "Fine.\nVerdict: 4"
    assert verdict["usage"]["tokens_out"] > 0


@pytest.mark.parametrize("nothing", [None, "", {}, []], ids=str)
def test_an_error_that_is_none_is_none(nothing: Any, tmp_path: Path) -> None:
    verdict, _ = judged(lambda value: {**value, "error": nothing}, tmp_path)
    assert (verdict["status"], verdict["label"]) == ("ok", "4")


@pytest.mark.parametrize(
    "wait",
    ["Fri, 31 Dec 9999 23:59:59 -2300", "1 Jan 9999 00:00:00 -2359", "Fri, 31 Dec 9999 23:59:59 GMT", "nan", "1e999",
     "99999999999999999999 Jan 2020", "Sun, 99 Nov 1994 08:49:37 GMT"],
)  # fmt: skip
def test_a_date_that_no_clock_shows_is_no_wait(wait: str, tmp_path: Path) -> None:
    assert retry_after({"Retry-After": wait}) is None
    replies = iter([Spoilt({"error": "slow down"}, 429, {"Retry-After": wait})])
    verdict, asked = judged(lambda value: next(replies, value), tmp_path)
    assert (verdict["status"], verdict["label"], asked.total()) == ("ok", "4", 2)


@pytest.mark.parametrize(
    ("field", "value"), [("content", [{"type": "text", "text": None}, {"type": "text", "text": "Verdict: 3"}])]
)
def test_parts_without_a_text_say_nothing(field: str, value: Any, tmp_path: Path) -> None:
    """A null was read as the word None."""

    def spoil(reply: dict[str, Any]) -> Any:
        reply["choices"][0]["message"][field] = value
        return reply

    verdict, _ = judged(spoil, tmp_path, "--read", "never")
    assert (verdict["label"], verdict["raw"]) == ("3", "Verdict: 3")


@pytest.mark.parametrize("read", ["auto", "never"])
@pytest.mark.parametrize("reason", ["of_a_later_version", 7, {"type": "new"}, ["stop"]], ids=str)
def test_a_reason_to_end_that_is_not_known_is_kept_and_told(reason: Any, read: str, tmp_path: Path) -> None:
    def spoil(value: dict[str, Any]) -> Any:
        value["choices"][0]["finish_reason"] = reason
        return value

    verdict, asked = judged(spoil, tmp_path, "--read", read)
    assert (verdict["status"], verdict["label"], asked.total()) == ("ok", "4", 1)
    assert verdict["attempts"][0]["finish"] == said(reason)
    assert f"a reason that is not known ({said(reason)})" in verdict["reason"]


@pytest.mark.parametrize("reason", ["", None, "stop", "eos_token", "end_turn", "tool_calls"])
def test_a_reason_to_end_that_servers_are_known_to_give_is_no_news(reason: Any, tmp_path: Path) -> None:
    def spoil(value: dict[str, Any]) -> Any:
        value["choices"][0]["finish_reason"] = reason
        return value

    verdict, _ = judged(spoil, tmp_path)
    assert (verdict["status"], verdict["attempts"][0]["finish"]) == ("ok", "stop")
    assert verdict["distribution"]


def test_a_reply_that_may_be_cut_is_no_verdict_where_it_could_go_on(tmp_path: Path) -> None:
    def spoil(value: dict[str, Any]) -> Any:
        value["choices"][0]["finish_reason"] = "of_a_later_version"
        value["choices"][0]["message"]["content"] = "Fine.\nVerdict: 1."
        return value

    verdict, asked = judged(spoil, tmp_path)
    assert (verdict["status"], verdict["score"], asked.total()) == ("truncated", None, 1)
    assert "an end for another reason (of_a_later_version)" in verdict["reason"]
    _, again = replay_of(tmp_path / "run", tmp_path / "again")
    assert [each["status"] for each in again] == ["truncated"]


def replay_of(run: Path, out: Path) -> tuple[int, list[dict[str, Any]]]:
    done = CliRunner().invoke(app, ["replay", str(run), "--out", str(out)])
    return done.exit_code, verdicts(out)


def test_a_decision_about_another_question_is_no_verdict(tmp_path: Path) -> None:
    """By its name, and where several answers come back, or none."""

    def shares(text: str, answers: list[str]) -> list[float]:
        return [0.05, 0.05, 0.1, 0.7, 0.1]

    def renamed(value: dict[str, Any]) -> Any:
        return {**value, "answers": [{**value["answers"][0], "name": "another"}]}

    def beside(value: dict[str, Any]) -> Any:
        return {**value, "answers": [*value["answers"], {**value["answers"][0], "name": "another"}]}

    def without(value: dict[str, Any]) -> Any:
        return {**value, "answers": []}

    spoilt = ((renamed, "another"), (beside, "2 answers to one question"), (without, "0 answers to one question"))
    for spoil, told in spoilt:
        with DecisionServer(shares, spoil=spoil) as server:
            items = write_items(tmp_path / "items.jsonl", 1)
            _, summary = grade(items, f"{server.spec},{QUICK}", tmp_path / told, "--read", "only")
        assert summary["status"] == {"engine_error": 1}
        assert told in next(iter(summary["failures"]))


def test_an_answer_under_another_name_is_none_by_hand() -> None:
    answer = {"type": "noul", "noul": 0.7}
    asked = DecisionQuestion("binary", ("no", "yes"))
    assert SystemOne().probabilities({"answers": {"verdict": answer}}, asked) == {"no": pytest.approx(0.3), "yes": 0.7}
    with pytest.raises(KeyError):  # which `_Answers.read` tells as a bad reply
        SystemOne().probabilities({"answers": {"another": answer}}, asked)


def test_decoding_by_hand() -> None:
    assert decoded(b'{"a": NaN}')["a"] != decoded(b'{"a": NaN}')["a"]
    assert decoded(b'{"a": 1e999, "b": ' + b"9" * 5000 + b"}") == {"a": float("inf"), "b": float("inf")}
    assert decoded(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}
    assert decoded(b'{"a": "\xff"}') == {"a": "\ufffd"}
    assert decoded(b'["\\udc00\\ud800"]') == ["\ufffd\ufffd"]
    for wrong in (b"", b"{", b"nothing", b"[" * 100_000, b'{"a": 1} {"a": 2}'):
        with pytest.raises(ValueError):  # noqa: PT011  every way of not being JSON
            decoded(wrong)


def test_counts_and_words_by_hand() -> None:
    assert [count_of(each) for each in (0, 7, 12.0, 10**9)] == [0, 7, 12, 10**9]
    assert [count_of(each) for each in (True, -1, 1.5, "7", None, 10**9 + 1, float("inf"), float("nan"))] == [None] * 8
    assert [said(each) for each in ("a", {"b": 1}, [None], 5)] == ["a", '{"b":1}', "[null]", "5"]
