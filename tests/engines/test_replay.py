"""Recorded replies come back for the question they were given to, and for no other."""

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from asking import READ, STRINGS, absolute, pair
from dikast.core.canonical import canonical_json
from dikast.core.errors import DataError, UserError
from dikast.core.verdict import Attempt, Question, Status, Verdict
from dikast.engines.base import Request
from dikast.engines.replay import ReplayEngine
from dikast.engines.spec import open_engine
from dikast.testing import check_engine, sample_requests

ONE = {"item": "item-0", "responses": [0], "criterion": "helpfulness", "sample": 0, "reply": "Good. [RESULT] 4"}


def written(path: Path, *records: object) -> Path:
    lines = "".join(json.dumps(record) + "\n" for record in records)
    path.write_bytes(gzip.compress(lines.encode()) if path.suffix == ".gz" else lines.encode())
    return path


def asked(engine: ReplayEngine, request: Request) -> str:
    (completion,) = engine.stream([request])
    assert completion.key == request.key
    return f"error {completion.error.kind}" if completion.error is not None else completion.text


@pytest.mark.parametrize("name", ["replies.jsonl", "replies.jsonl.gz"])
def test_by_key_and_by_question(tmp_path: Path, name: str) -> None:
    pair_record = {"item": "item-0", "responses": [1, 0], "criterion": "helpfulness", "raw": "B is better"}
    path = written(tmp_path / name, ONE, {"key": "key-9-0", "raw": "Zażółć 漢字"}, pair_record)
    engine = ReplayEngine(str(path))
    assert asked(engine, absolute(0)) == "Good. [RESULT] 4"
    assert asked(engine, absolute(9)) == "Zażółć 漢字"
    assert asked(engine, pair(0, turned=True)) == "B is better"
    assert asked(engine, pair(0)) == "error not_recorded"
    assert asked(engine, absolute(0, sample=1)) == "error not_recorded"
    assert asked(engine, absolute(0, criterion="honesty")) == "error not_recorded"


def test_a_record_without_criterion_fits_any_and_one_with_comes_first(tmp_path: Path) -> None:
    any_criterion = {"item": "item-0", "reply": "for any"}
    engine = ReplayEngine(str(written(tmp_path / "r.jsonl", any_criterion, ONE)))
    assert asked(engine, absolute(0)) == "Good. [RESULT] 4"
    assert asked(engine, absolute(0, criterion="honesty")) == "for any"


def test_what_is_not_recorded_says_what_was_looked_for(tmp_path: Path) -> None:
    engine = ReplayEngine(str(written(tmp_path / "r.jsonl", ONE)))
    (completion,) = engine.stream([absolute(7)])
    assert completion.error is not None
    assert "item 'item-7' (responses [0], criterion 'helpfulness', sample 0) or key 'key-7-0'" in str(completion.error)
    assert not completion.error.retryable
    assert asked(engine, Request("bare", ())) == "error not_recorded"


def verdict(key: str, item: str = "item-0", **fields: Any) -> dict[str, Any]:
    made = Verdict(key, Question(item, "helpfulness"), Status.OK, label="4", score=4.0, raw="last words")
    found: dict[str, Any] = json.loads(canonical_json(replace(made, **fields).to_dict()))
    return found


def test_a_run_folder_gives_the_reply_to_each_way_of_asking(tmp_path: Path) -> None:
    read = {label: -1.0 - i for i, label in enumerate(STRINGS)}
    attempts = (
        Attempt("ask", "no verdict", Status.UNPARSED, finish="length"),
        Attempt("continue", " 4", Status.OK, finish="stop", label_logprobs=read, marker="forced"),
    )
    written(tmp_path / "verdicts.jsonl", verdict("k1", attempts=attempts), verdict("k2", "item-1"))
    engine = ReplayEngine(str(tmp_path))
    request = absolute(0, readout=READ)
    (first,) = engine.stream([request])
    assert (first.text, first.finish, first.label_logprobs) == ("no verdict", "length", None)
    (follow,) = engine.stream([replace(request, key=f"{request.key}/continue")])
    assert (follow.text, follow.finish, follow.label_logprobs, follow.marker) == (" 4", "stop", read, "forced")
    (plain,) = engine.stream([replace(request, key="k1/continue", readout=None)])
    assert (plain.text, plain.label_logprobs) == (" 4", None)
    assert asked(engine, replace(request, key=f"{request.key}/constrain")) == "error not_recorded"
    assert asked(engine, absolute(1)) == "last words"


def test_a_recorded_failure_of_the_engine_is_no_reply(tmp_path: Path) -> None:
    lost = Attempt("ask", "", Status.ENGINE_ERROR, "timeout: too slow", finish="error")
    fields: dict[str, Any] = {
        "status": Status.ENGINE_ERROR,
        "label": None,
        "score": None,
        "raw": "",
        "reason": "timeout: too slow",
    }
    written(tmp_path / "verdicts.jsonl", verdict("k1", attempts=(lost,), **fields))
    (completion,) = ReplayEngine(str(tmp_path)).stream([absolute(0)])
    assert completion.error is not None
    assert completion.error.kind == "not_recorded"
    assert "recorded as engine_error: timeout: too slow" in str(completion.error)


def test_one_question_under_two_keys_is_ambiguous_unless_asked_by_key(tmp_path: Path) -> None:
    written(tmp_path / "verdicts.jsonl", verdict("k1", raw="old"), verdict("k2", "item-1"), verdict("k3", raw="new"))
    engine = ReplayEngine(str(tmp_path))
    (completion,) = engine.stream([absolute(0)])
    assert completion.error is not None
    assert completion.error.kind == "ambiguous"
    assert "lines 1 and 3" in str(completion.error)
    assert asked(engine, replace(absolute(0), key="k3")) == "new"


@pytest.mark.parametrize(
    "twins",
    [
        ({"key": "k", "raw": "x"}, {"key": "k", "raw": "y"}),
        (ONE, {**ONE, "reply": "another"}),
        (ONE, {**ONE, "key": "k"}),
    ],
)
def test_two_lines_for_the_same_are_refused_by_line(tmp_path: Path, twins: tuple[object, object]) -> None:
    path = written(tmp_path / "r.jsonl", twins[0], {"key": "other", "raw": ""}, twins[1])
    with pytest.raises(DataError, match=r"r\.jsonl:3: answers the same as line 1"):
        ReplayEngine(str(path))


@pytest.mark.parametrize(
    ("record", "told"),
    [
        ({"key": "k"}, "field 'raw': a record needs the reply"),
        ({"reply": "x"}, "field 'key': a record needs a 'key', or an 'item'"),
        ({"item": 3, "reply": "x"}, "field 'item': expected text, got 3"),
        ({"item": "a", "responses": 0, "reply": "x"}, "field 'responses': expected a list"),
        ({"item": "a", "sample": "0", "reply": "x"}, "field 'sample': expected a whole number"),
        (["k", "x"], "a record is an object"),
    ],
)
def test_a_record_that_cannot_be_meant_is_told_by_line(tmp_path: Path, record: object, told: str) -> None:
    path = written(tmp_path / "r.jsonl", ONE, record)
    with pytest.raises(DataError, match=f"r.jsonl:2: {told}"):
        ReplayEngine(str(path))


def test_a_torn_last_line_is_let_go_in_a_run_and_told_in_a_file(tmp_path: Path) -> None:
    path = written(tmp_path / "verdicts.jsonl", verdict("k1"))
    path.write_bytes(path.read_bytes() + b'{"key": "k2", "raw"')
    assert asked(ReplayEngine(str(tmp_path)), absolute(0)) == "last words"
    with pytest.raises(DataError, match=r"verdicts\.jsonl:2: not a JSON object"):
        ReplayEngine(str(path))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"a run folder holds verdicts\.jsonl"):
        open_engine(f"replay:{tmp_path}")
    with pytest.raises(UserError, match="No such file"):
        open_engine(f"replay:{tmp_path}/none.jsonl")
    (tmp_path / "no.gz").write_bytes(b"plain")
    with pytest.raises(UserError, match="Not a gzipped file"):
        open_engine(f"replay:{tmp_path}/no.gz")


def test_identity_is_the_content_wherever_it_lies(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    here, packed = written(tmp_path / "a.jsonl", ONE), written(tmp_path / "b" / "c.jsonl.gz", ONE)
    other = written(tmp_path / "d.jsonl", {**ONE, "reply": "else"})
    spelt = [canonical_json(ReplayEngine(str(path)).identity()) for path in (here, packed, other)]
    assert spelt[0] == spelt[1] != spelt[2]


def test_an_empty_file_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"\n\n")
    assert asked(ReplayEngine(str(path)), absolute(0)) == "error not_recorded"


def test_a_file_that_changes_meanwhile_is_told(tmp_path: Path) -> None:
    path = written(tmp_path / "r.jsonl", ONE)
    engine = ReplayEngine(str(path))
    path.write_bytes(b"x" * path.stat().st_size)
    assert asked(engine, absolute(0)) == "error changed"


def test_replay_conforms(tmp_path: Path) -> None:
    requests = sample_requests()
    records = [
        {"item": r.about["item"], "sample": r.about["sample"], "reply": f"[RESULT] {i}"} for i, r in enumerate(requests)
    ]
    check_engine(ReplayEngine(str(written(tmp_path / "r.jsonl", *records))), requests=requests)
