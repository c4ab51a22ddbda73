from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dikast.core.verdict import (
    Attempt,
    Claim,
    Hashes,
    Preference,
    Question,
    Status,
    Usage,
    Verdict,
    verdict_from,
)

FULL = Verdict(
    key="k",
    question=Question("item", "tone", (1, 0), 2),
    status=Status.OK,
    label="4",
    score=4.0,
    feedback="Fine.",
    raw="Fine. [4]",
    distribution={"4": 0.75, "5": 0.25},
    mass=0.9,
    marker="own",
    expected=4.25,
    claims=(Claim("it rains", "true", "seen"),),
    attempts=(Attempt("ask", "Fine. [4]", Status.OK, finish="stop", usage=Usage(10, 2, 3, 0.5, 0.01)),),
    usage=Usage(10, 2, 3, 0.5, 0.01),
    hashes=Hashes("j", "f", "r", "i"),
)


def test_a_verdict_comes_back_from_json() -> None:
    raw = orjson.dumps(FULL.to_dict())
    assert raw.startswith(b'{"key":"k"')
    assert verdict_from(orjson.loads(raw)) == FULL
    bare = Verdict("k", Question("item", "tone"), Status.REFUSED, reason="no verdict and a refusal", raw="I cannot.")
    assert verdict_from(orjson.loads(orjson.dumps(bare.to_dict()))) == bare


def test_a_conflict_is_written_only_where_there_is_one() -> None:
    raw = orjson.dumps(FULL.to_dict())
    assert b"conflict" not in raw  # records of earlier versions stay as they are
    torn = replace(FULL, conflict=True)
    assert orjson.loads(orjson.dumps(torn.to_dict()))["conflict"] is True
    assert verdict_from(orjson.loads(orjson.dumps(torn.to_dict()))) == torn
    with pytest.raises(ValueError, match="no conflict"):
        Verdict("k", Question("item", "tone"), Status.UNPARSED, conflict=True)


@given(
    status=st.sampled_from([status for status in Status if status is not Status.OK]),
    raw=st.text(st.characters(exclude_categories=["Cs"])),
    tokens=st.integers(0, 2**40),
    cost=st.none() | st.floats(0, 100),
    responses=st.lists(st.integers(0, 9), min_size=1, max_size=2),
)
def test_failures_come_back_from_json(
    status: Status, raw: str, tokens: int, cost: float | None, responses: list[int]
) -> None:
    usage = Usage(tokens, 0, tokens, 1.5, cost)
    attempts = (Attempt("continue", raw, status, "why", usage=usage),) * 2
    verdict = Verdict(
        "k", Question("i", "c", tuple(responses), 3), status, raw=raw, reason="why", attempts=attempts, usage=usage
    )
    assert verdict_from(orjson.loads(orjson.dumps(verdict.to_dict()))) == verdict


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.OK])
def test_a_failure_is_never_a_number(status: Status) -> None:
    with pytest.raises(ValueError, match="either a label or a status"):
        replace(FULL, status=status)
    with pytest.raises(ValueError, match="no score"):
        replace(FULL, status=status, label=None)
    with pytest.raises(ValueError, match="either a choice or a status"):
        Preference("i", "c", (0, 1), "a", status)


def test_a_verdict_without_a_label_is_none() -> None:
    with pytest.raises(ValueError, match="either a label or a status"):
        replace(FULL, label=None, score=None)
    with pytest.raises(ValueError, match="finite"):
        replace(FULL, score=float("nan"))
    with pytest.raises(ValueError, match="either a choice or a status"):
        Preference("i", "c", (0, 1), None, Status.OK)
    assert Preference("i", "c", (0, 1), "tie", Status.OK, consistent=False).choice == "tie"
    assert replace(FULL, label="b", score=None).score is None  # a pair has a choice and no number


def test_usage_adds_up() -> None:
    assert Usage(1, 2, 3, 0.5, 0.25) + Usage(10, 20, 30, 1.0) == Usage(11, 22, 33, 1.5, 0.25)
    assert (Usage() + Usage()).cost is None  # a price nobody knows is not zero


def test_what_is_no_verdict() -> None:
    good = orjson.loads(orjson.dumps(FULL.to_dict()))
    for broken in (
        {}, {**good, "status": "fine"}, {**good, "surprise": 1}, {**good, "question": None}, {**good, "label": None}
    ):  # fmt: skip
        with pytest.raises((KeyError, TypeError, ValueError)):
            verdict_from(broken)


def test_equal_verdicts_hash_alike() -> None:
    assert hash(FULL) == hash(verdict_from(orjson.loads(orjson.dumps(FULL.to_dict()))))
