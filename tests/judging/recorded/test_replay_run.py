"""Every number again without a model: the same, or with another parser."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from dikast.core.errors import DataError, UserError
from dikast.engines.base import Completion, Request, Sampling
from dikast.engines.mock import Mock
from dikast.judging.judge import Judge
from dikast.judging.judge_file import compare_file, compare_file_by_scores, grade_file
from dikast.judging.recorded.replay_run import replay
from dikast.judging.run_plan import Source
from runs import lines, pairs, rows, summary, write_jsonl
from scripted import Scripted

RUBRIC = {"name": "good", "criterion": "Is it good?", "scale": "1-5"}


@pytest.fixture(autouse=True)
def no_model(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Any request to an engine after `closed.append` fails the test."""
    closed: list[str] = []
    stream = Mock.stream

    def guarded(self: Mock, requests: Iterable[Request]) -> Iterator[Completion]:
        assert not closed, "a replay asked a model"
        return stream(self, requests)

    monkeypatch.setattr(Mock, "stream", guarded)
    return closed


def same_but_for_the_run(replayed: dict[str, Any], original: dict[str, Any]) -> None:
    for key in replayed.keys() - {"of", "format", "replay"}:
        assert replayed[key] == original[key], key


def test_a_graded_run_is_identical(tmp_path: Path, no_model: list[str]) -> None:
    items, run, out = write_jsonl(tmp_path / "items.jsonl", rows(60)), tmp_path / "run", tmp_path / "again"
    original = grade_file(Judge("mock:failing,seed=1", "helpfulness"), Source(str(items)), run)
    assert len(original["status"]) > 4  # of every kind of failure some
    no_model.append("closed")
    replayed = replay(run)
    assert replayed["replay"] == {"verdicts": 60, "changed": 0, "fields": {}}
    same_but_for_the_run(replayed, original)
    assert replay(run, out=out)["replay"]["changed"] == 0
    one, other = (sorted((each / "verdicts.jsonl").read_bytes().splitlines()) for each in (run, out))
    assert one == other
    for name in ("keys.txt", "rubrics.jsonl", "gold.jsonl", "sheets.jsonl"):
        assert (out / name).read_bytes() == (run / name).read_bytes()
    assert replay(out)["replay"]["changed"] == 0  # what was replayed can be replayed
    with pytest.raises(UserError, match="already holds verdicts"):
        replay(run, out=out)


def test_sheets_that_items_bring_are_summed_up_again(tmp_path: Path, no_model: list[str]) -> None:
    own = {"criteria": [{"name": "x", "criterion": "X?", "weight": 2}, {"name": "y", "criterion": "Y?"}]}
    other = {"criteria": [{"name": "x", "criterion": "X?"}, {"name": "y", "criterion": "Y?", "weight": 5}]}
    sheets = [{**row, "rubric": rubric} for row, rubric in zip(rows(3), (own, other, RUBRIC), strict=True)]
    items, run, out = write_jsonl(tmp_path / "items.jsonl", sheets), tmp_path / "run", tmp_path / "again"
    original = grade_file(Judge("mock:random"), Source(str(items)), run)
    items.unlink()
    no_model.append("closed")
    same_but_for_the_run(replay(run, out=out), original)
    assert original["totals"]["responses"] == 2
    assert (out / "totals.jsonl").read_bytes() == (run / "totals.jsonl").read_bytes()
    (run / "sheets.jsonl").write_text("{}\n")
    with pytest.raises(DataError, match="the file has changed since it was written"):
        replay(run)
    (run / "checksums.json").unlink()
    with pytest.raises(DataError, match=r"sheets\.jsonl:1: the record has no .criteria."):
        replay(run)


@pytest.mark.parametrize("way", ["both", "one", "scores", "resample", "samples", "sheet"])
def test_what_follows_from_verdicts_follows_again(tmp_path: Path, no_model: list[str], way: str) -> None:
    run, out = tmp_path / "run", tmp_path / "again"
    items = write_jsonl(tmp_path / "items.jsonl", rows(15) if way in ("samples", "sheet") else pairs(15))
    warm = Sampling(temperature=1.0)
    judge = Judge("mock:oracle,r=0.5,refused=0.1", "helpfulness", sampling=warm, samples=2 if way == "samples" else 1)
    source = Source(str(items))
    if way in ("both", "one"):
        original, name = compare_file(judge, source, run, both_orders=way == "both"), "preferences.jsonl"
    elif way in ("scores", "resample"):
        equal: Any = "resample" if way == "resample" else "expected"
        original, name = compare_file_by_scores(judge, source, run, equal=equal), "preferences.jsonl"
    elif way == "samples":
        original, name = grade_file(judge, source, run), "combined.jsonl"
    else:
        sheet = {"name": "s", "criteria": [RUBRIC, {**RUBRIC, "name": "brief", "criterion": "Brief?"}]}
        original, name = grade_file(Judge("mock:random", sheet), source, run), "totals.jsonl"
    no_model.append("closed")
    same_but_for_the_run(replay(run), original)
    same_but_for_the_run(replay(run, out=out), original)
    assert (out / name).read_bytes() == (run / name).read_bytes()
    assert summary(out).items() >= {name: original[name] for name in ("kind", "judge", "items", "questions")}.items()
    assert not list(out.glob("*.part"))


def test_another_parser_reads_what_the_first_could_not(tmp_path: Path) -> None:
    replies = ["Good. [RESULT] 4", "Verdict: 2", "Bad. [RESULT] 1"]

    def say(request: Request) -> str:
        return "no idea" if "/" in request.key else replies[int(request.about["item"][1:])]

    items, run, out = write_jsonl(tmp_path / "items.jsonl", rows(3)), tmp_path / "run", tmp_path / "again"
    original = grade_file(Judge(Scripted(say), RUBRIC), Source(str(items)), run)
    assert original["status"] == {"ok": 1, "unparsed": 2}
    again = replay(run, format="verbatim", out=out)
    assert again["status"] == {"ok": 2, "unparsed": 1}
    assert again["replay"]["changed"] == 3
    assert again["replay"]["fields"]["status"] == 3
    found = {each["question"]["item"]: each for each in lines(out / "verdicts.jsonl")}
    assert [found[name]["label"] for name in ("i0", "i1", "i2")] == ["4", None, "1"]
    assert [each["how"] for each in found["i0"]["attempts"]] == ["ask", "continue", "constrain"]  # nothing is dropped
    before = {each["key"]: each for each in lines(run / "verdicts.jsonl")}
    assert all(before[each["key"]]["hashes"]["format"] != each["hashes"]["format"] for each in found.values())
    assert orjson.loads((out / "judge.lock.json").read_bytes())["format"]["name"] == "verbatim"
    assert replay(out)["replay"]["changed"] == 0


def test_a_format_that_reads_other_labels_parses_the_text(tmp_path: Path) -> None:
    items, run = write_jsonl(tmp_path / "items.jsonl", pairs(6)), tmp_path / "run"
    compare_file(Judge("mock:oracle,r=1", "helpfulness"), Source(str(items)), run)
    numbered = tmp_path / "numbered.yaml"
    numbered.write_text(
        "kind: pairwise\ndialect: verdict\nmarker: 'Verdict:'\nwords: {first: one, second: two, tie: draw}\n"
        "user: '{{ first }} or {{ second }}?'\n"
    )
    again = replay(run, format=numbered)
    assert again["status"] == {"ok": 12}
    assert again["replay"]["fields"].keys() <= {"distribution", "mass", "label"}
    assert again["preferences"]["position_bias_nats"]["n"] == 0


def test_what_cannot_be_replayed(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"it has no readable judge\.lock\.json"):
        replay(tmp_path)
    items, run = write_jsonl(tmp_path / "items.jsonl", rows(3)), tmp_path / "run"
    grade_file(Judge("mock:constant", RUBRIC), Source(str(items)), run)
    with pytest.raises(UserError, match="is absolute, and the format 'pairwise' is pairwise"):
        replay(run, format="pairwise")
    lock = (run / "judge.lock.json").read_text()
    (run / "checksums.json").unlink()
    (run / "judge.lock.json").write_text(lock.replace('"dialect": "verdict"', '"dialect": "bracketed"'))
    with pytest.raises(UserError, match="was read by another version of the parser; use --format absolute"):
        replay(run)
    (run / "judge.lock.json").write_text("{")
    with pytest.raises(UserError, match="no readable"):
        replay(run)
    (run / "judge.lock.json").write_text(lock)
    assert replay(run)["replay"]["changed"] == 0
    (run / "rubrics.jsonl").write_text("{}\n")
    with pytest.raises(DataError, match=r"rubrics\.jsonl:1: the record has no .hash."):
        replay(run)
    (run / "rubrics.jsonl").write_text("")
    with pytest.raises(DataError, match=r"is not in rubrics\.jsonl"):
        replay(run)


def test_only_what_counts_is_replayed(tmp_path: Path) -> None:
    items, run = write_jsonl(tmp_path / "items.jsonl", rows(10)), tmp_path / "run"
    grade_file(Judge("mock:constant", RUBRIC), Source(str(items)), run)
    write_jsonl(items, rows(4))
    grade_file(Judge("mock:constant", RUBRIC), Source(str(items)), run)
    assert replay(run)["replay"]["verdicts"] == 4
