"""`dikast rank` over files: folders, resuming, what is left out, what is refused."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

import dikast
from dikast.audit.estimate import Estimate
from dikast.audit.panel_audit import audit_source
from dikast.audit.plan import AuditPlan
from dikast.core.errors import DataError, UserError
from dikast.engines.base import Completion, Engine, Request
from dikast.engines.spec import open_engine
from dikast.engines.wrapper import Wrapper
from dikast.judging.judge import Judge
from dikast.ranking.rank_file import rank_file
from dikast.ranking.rank_options import RankOptions
from dikast.surface.cli import app
from runs import dikast_here, write_jsonl

ORACLE = "mock:oracle,r=.9"


def items(n: int, k: int = 5) -> list[dict[str, Any]]:
    """Items whose gold says the last response is the best."""
    return [
        {
            "id": f"i{at}", "instruction": f"question {at}", "gold": [1 + 4 * i / (k - 1) for i in range(k)],
            "responses": [f"answer {i} to {at}" for i in range(k)],
        }
        for at in range(n)
    ]  # fmt: skip


class TwoJudges(Wrapper):
    """A judge that compares as `engine` does and grades as `grader`."""

    def __init__(self, engine: Engine, grader: Engine) -> None:
        super().__init__(engine)
        self.grader = grader

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        for each in requests:
            pair = each.readout is not None and set(each.readout.labels) >= {"A", "B"}
            yield from (self.engine if pair else self.grader).stream([each])


def lines(folder: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (folder / "rankings.jsonl").read_bytes().splitlines()]


def ranked(path: Path, out: Path, judge: str = ORACLE, **how: Any) -> dict[str, Any]:
    return rank_file(Judge(judge, "helpfulness"), str(path), out, RankOptions(**how))


@pytest.mark.parametrize(
    ("schedule", "calls"),
    [("full", 20), ("half", 10), ("knockout", 4), ("swiss", 6), ("top", 10), ("ends", 10), ("duel", 2), ("graded", 5)],
)
def test_a_run_of_each_schedule(schedule: str, calls: int, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "items.jsonl", items(12))
    summary = ranked(path, tmp_path / "run", schedule=schedule)
    assert summary["verdicts"] == summary["asked"] == 12 * calls == summary["ranking"]["comparisons"]
    assert (summary["ranking"]["ranked"], summary["ranking"]["missing"]) == (12, 0)
    found = lines(tmp_path / "run")
    assert [each["item"] for each in found] == [f"i{at}" for at in range(12)]
    assert all(sorted(each["order"]) == list(range(5)) for each in found)
    assert summary["ranking"]["gold"]["first_is_best"]["value"] > 0.5  # at random .2
    again = ranked(path, tmp_path / "run", schedule=schedule)
    assert (again["asked"], again["ranking"]) == (0, summary["ranking"])
    assert lines(tmp_path / "run") == found


def test_an_interrupted_run_goes_on_where_it_was(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "items.jsonl", items(12))
    whole = ranked(path, tmp_path / "whole", schedule="knockout")
    ranked(path, tmp_path / "run", schedule="knockout")
    verdicts = tmp_path / "run" / "verdicts.jsonl"
    verdicts.write_bytes(b"".join(verdicts.read_bytes().splitlines(keepends=True)[:17]))
    (tmp_path / "run" / "rankings.jsonl").unlink()
    again = ranked(path, tmp_path / "run", schedule="knockout")
    assert again["asked"] == 48 - 17
    assert lines(tmp_path / "run") == lines(tmp_path / "whole")
    assert again["ranking"] == whole["ranking"]


def test_auto_measures_the_judge_on_a_pilot_and_spends_half_on_the_rest(tmp_path: Path) -> None:
    rows = [{**each, "id": f"pair of {each['id']}"} for each in items(20, k=2)] + items(80)  # sorted by K
    path = write_jsonl(tmp_path / "items.jsonl", rows)
    summary = ranked(path, tmp_path / "run")
    ranking = summary["ranking"]
    assert ranking["pilot"] == 8
    found = lines(tmp_path / "run")
    assert [each["item"] for each in found] == [row["id"] for row in rows]
    pilot = [at for at, each in enumerate(found) if each["schedule"] == "full"]
    assert len(pilot) == 8
    assert min(pilot) >= 20  # pairs leave no schedule to choose
    assert pilot != list(range(20, 28))
    assert ranking["schedules"].pop(ranking["chosen"]["5"]) == 72
    # half of the calls of all full round robins, the pilot's comparisons and grades included
    assert ranking["comparisons"] - 20 + ranking["grades"]["verdicts"] <= 80 * 10
    assert any(note.startswith("5 responses: ") for note in summary["notes"])
    graded = 80 if ranking["chosen"]["5"] in ("duel", "graded") else 8
    assert ranking["grades"]["verdicts"] == 5 * graded  # the pilot's, and those of the rest only where they are used
    assert sum(each["grades"] is not None for each in found) == graded
    again = ranked(path, tmp_path / "run")
    assert (again["asked"], again["ranking"]) == (0, ranking | {"schedules": again["ranking"]["schedules"]})


def test_auto_begins_with_grades_where_comparisons_are_noisy_and_grades_are_not(tmp_path: Path) -> None:
    judge = TwoJudges(open_engine("mock:oracle,r=.5,seed=1"), open_engine("mock:oracle,r=1"))
    path = write_jsonl(tmp_path / "items.jsonl", items(40))
    summary = rank_file(Judge(judge, "helpfulness"), str(path), tmp_path / "run", RankOptions())
    ranking = summary["ranking"]
    assert ranking["chosen"] == {"5": "graded"}
    # an item has 8 calls, four fifths of half of a full round robin: its grades and three comparisons
    assert (ranking["schedules"], ranking["comparisons"]) == ({"full": 8, "graded": 32}, 8 * 20 + 32 * 3)
    assert ranking["grades"]["verdicts"] == 40 * 5
    found = [each for each in lines(tmp_path / "run") if each["schedule"] == "graded"]
    assert sum(each["order"][0] == 4 for each in found) >= 28
    assert all(each["rewards"][4] > each["low"][4] for each in found)


def test_a_folder_whose_pilot_was_compared_without_grades_goes_on_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_jsonl(tmp_path / "items.jsonl", items(40))
    with path.open() as stdin:
        monkeypatch.setattr("sys.stdin", stdin)  # standard input is not read again for grades
        before = ranked(Path("-"), tmp_path / "run", comparisons=4)
    assert "grades" not in before["ranking"]
    again = ranked(path, tmp_path / "run", comparisons=4)
    assert (again["asked"], again["ranking"]) == (0, before["ranking"])
    assert not (tmp_path / "run" / "grades").exists()


def test_a_pilot_of_too_few_responses_for_grades_is_not_graded(tmp_path: Path) -> None:
    summary = ranked(write_jsonl(tmp_path / "items.jsonl", items(30, k=3)), tmp_path / "run", comparisons=2)
    assert (summary["ranking"]["pilot"], summary["ranking"]["schedules"]) == (8, {"full": 8, "knockout": 22})
    assert "grades" not in summary["ranking"]
    assert not (tmp_path / "run" / "grades").exists()


def test_few_items_are_no_pilot(tmp_path: Path) -> None:
    summary = ranked(write_jsonl(tmp_path / "items.jsonl", items(3)), tmp_path / "run")
    assert summary["ranking"]["schedules"] == {"full": 3}
    assert "3 items are too few for a pilot: all pairs are compared in both orders" in summary["notes"]
    bounded = ranked(tmp_path / "items.jsonl", tmp_path / "bounded", comparisons=4)
    assert bounded["ranking"]["schedules"] == {"knockout": 3}


def test_a_judge_of_the_first_slot_names_no_best_response(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "items.jsonl", items(30))
    summary = ranked(path, tmp_path / "run", judge="mock:first-slot")
    for each in lines(tmp_path / "run"):
        assert each["ranks"] == [1] * 5
        assert each["rewards"] == pytest.approx([0] * 5, abs=1e-9)
    (bias,) = summary["ranking"]["slot_bias"].values()
    assert bias["value"] > 0
    # the pilot shows no difference between responses: told, and the rest is compared all the same
    assert summary["ranking"]["schedules"] == {"full": 8, "half": 22}
    assert any("the rest is compared by the schedule half" in note for note in summary["notes"])
    few = ranked(path, tmp_path / "few", judge="mock:first-slot", comparisons=4)
    assert few["ranking"]["schedules"] == {"full": 8, "knockout": 22}


@pytest.mark.parametrize("schedule", ["full", "half", "knockout"])
def test_a_judge_that_tells_nothing_apart_agrees_with_gold_as_often_as_chance(schedule: str, tmp_path: Path) -> None:
    rows = [{**each, "gold": [5, 2, 1]} for each in items(4, k=3)]  # in the order of the file, as `chosen` comes first
    path = write_jsonl(tmp_path / "items.jsonl", rows)
    told = ranked(path, tmp_path / "run", judge="mock:first-slot", schedule=schedule)["ranking"]["gold"]
    assert told["first_is_best"]["value"] == pytest.approx(told["at_random"]) == pytest.approx(1 / 3)
    assert (told["kendall_tau_b"]["value"], told["kendall_tau_b"]["n"]) == (None, 0)  # no pair is told apart
    assert {tuple(each["ranks"]) for each in lines(tmp_path / "run")} == {(1, 1, 1)}


def test_items_of_a_ranking_that_were_asked_in_one_order_are_not_called_unjudged(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "items.jsonl", items(30, k=3))
    ranked(path, tmp_path / "run", judge="mock:first-slot")  # a pilot in both orders, the rest by half
    notes = audit_source(AuditPlan(tmp_path / "run")).notes
    assert "66 pairs that the ranking asked in one order only left out" in notes
    assert not [note for note in notes if "not judged" in note]


def test_what_cannot_be_compared_is_told_and_counted(tmp_path: Path) -> None:
    rows = [
        *items(2),
        {"id": "one", "instruction": "q", "responses": ["a"], "gold": [3]},
        {"id": "same", "instruction": "q", "responses": ["a", "a", " "], "gold": [3, 3, 1]},
        {"id": "some", "instruction": "q", "responses": ["a", "b", "a", ""], "gold": [5, 2, 5, 1]},
    ]
    summary = ranked(write_jsonl(tmp_path / "items.jsonl", rows), tmp_path / "run", schedule="full")
    assert summary["items"] == 5
    assert summary["ranking"]["skipped"] == {"one response": 1, "no two different responses": 1}
    assert "1 of the items skipped, one response: 'one'" in summary["notes"]
    assert summary["verdicts"] == 2 * 20 + 2
    last = lines(tmp_path / "run")[-1]
    assert (last["left_out"], last["order"]) == ({"2": 0, "3": "empty"}, [0, 1])
    assert last["ranks"] == [1, 2, 1, None]
    assert last["rewards"][2] == last["rewards"][0]
    assert last["best"][2] is None


def test_a_file_without_anything_to_rank_exits_as_one_without_verdicts(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "items.jsonl", [{"id": "same", "instruction": "q", "responses": ["a", "a"]}])
    asked = ["rank", str(path), "--judge", "mock:constant", "--rubric", "helpfulness", "--out", str(tmp_path / "run")]
    for _ in range(2):  # the second finds the folder of the first
        done = CliRunner().invoke(app, asked)
        assert done.exit_code == 3
        assert "no item was ranked: give each at least two different responses" in done.stderr
        assert "1 of the items skipped, no two different responses: 'same'" in done.stdout


def test_a_missing_verdict_is_no_number(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "items.jsonl", items(10))
    half = Judge("mock:failing,refused=.5", "helpfulness", read="never")
    summary = rank_file(half, str(path), tmp_path / "run", RankOptions(schedule="full"))
    failed = summary["verdicts"] - summary["status"]["ok"]
    assert 0 < failed == summary["ranking"]["missing"]
    assert summary["ranking"]["incomplete"] > 0
    all_of_them = Judge("mock:failing,refused=1", "helpfulness", read="never")
    none = rank_file(all_of_them, str(path), tmp_path / "none", RankOptions(schedule="knockout"))
    assert none["ranking"]["ranked"] == 0
    found = lines(tmp_path / "none")
    assert all((each["order"], each["reason"]) == ([], "no comparison has a verdict") for each in found)


def test_a_response_without_a_grade_is_left_out_of_the_order_of_a_duel(tmp_path: Path) -> None:
    rows = items(3, k=4)  # the oracle has no grade without gold
    rows[1]["gold"] = [2, None, 5, 3]
    rows[2]["gold"] = [None, None, None, 3]
    path = write_jsonl(tmp_path / "items.jsonl", rows)
    summary = ranked(path, tmp_path / "run", judge="mock:oracle,r=1", schedule="duel")
    found = lines(tmp_path / "run")
    assert [each["order"] for each in found] == [[3, 2, 1, 0], [2, 3, 0], []]
    assert found[1]["ranks"] == [3, None, 1, 2]
    assert (found[1]["grades"][1], found[1]["missing"]) == (None, 0)
    assert found[2]["reason"] == "fewer than two responses have a grade"
    assert summary["ranking"]["comparisons"] == 4
    assert (summary["ranking"]["ranked"], summary["ranking"]["ungraded"]) == (2, 4)
    assert summary["ranking"]["gold"]["first_is_best"]["n"] == 1  # the others lack responses, maybe the best
    (whole,) = (each for each in dikast.audit(tmp_path / "run").tables if each.name == "rankings")
    assert "2 items left out: the order or the gold lacks a response that was compared" in whole.notes
    one = Judge("mock:oracle,r=1", "helpfulness").rank(rows[1], schedule="duel")
    assert (list(one.order), one.ranks) == (found[1]["order"], (3, None, 1, 2))


def test_the_tokens_and_the_position_bias_of_an_item(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "items.jsonl", items(4, k=3))
    judge = "mock:oracle,r=1,nats=1.5"
    summary = ranked(path, tmp_path / "run", judge=judge, schedule="full")
    found = lines(tmp_path / "run")
    # the logits of the two orders of a pair are gap + 1.5 and 1.5 - gap: their mean is the bias
    assert [each["position_bias"] for each in found] == pytest.approx([1.5] * 4)
    usage = summary["usage"]
    assert sum(each["tokens_in"] for each in found) == usage["tokens_in"] > 0
    assert sum(each["tokens_out"] for each in found) == usage["tokens_out"]
    duel = ranked(path, tmp_path / "duel", judge=judge, schedule="duel")
    graded, found = duel["ranking"]["grades"]["usage"], lines(tmp_path / "duel")
    assert sum(each["tokens_in"] for each in found) == duel["usage"]["tokens_in"] + graded["tokens_in"]
    one = Judge(judge, "helpfulness").rank(items(4, k=3)[0], schedule="duel")
    assert (one.tokens_in, one.tokens_out) == (found[0]["tokens_in"], found[0]["tokens_out"])
    ranked(path, tmp_path / "half", judge=judge, schedule="half")
    assert [each["position_bias"] for each in lines(tmp_path / "half")] == [None] * 4  # no pair in both orders
    dikast.replay(tmp_path / "duel", out=tmp_path / "again")
    assert lines(tmp_path / "again") == found


def test_what_is_refused_before_a_call(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "items.jsonl", items(2, k=3))
    with pytest.raises(UserError, match="the schedule top needs 4 different responses, item 'i0' has 3"):
        ranked(path, tmp_path / "run", schedule="top")
    judge = Judge(ORACLE, "helpfulness", read="never")
    with pytest.raises(UserError, match="needs probabilities, which --read never"):
        rank_file(judge, str(path), tmp_path / "run", RankOptions(values="logit"))
    with pytest.raises(
        UserError, match="--comparisons 1 is too few to rank the 3 responses of item 'i0': allow at least"
    ):
        ranked(path, tmp_path / "run", comparisons=1)
    with pytest.raises(UserError, match="the schedule half has its own"):
        ranked(path, tmp_path / "run", schedule="half", comparisons=3)
    with pytest.raises(UserError, match="standard input"):
        ranked(Path("-"), tmp_path / "run", schedule="duel")
    criteria = [{"name": name, "criterion": name, "scale": "1-5"} for name in ("clear", "true")]
    judge = Judge(ORACLE, {"name": "both", "criteria": criteria})
    with pytest.raises(UserError, match="ranking takes one criterion"):
        rank_file(judge, str(path), tmp_path / "run", RankOptions(schedule="full"))
    single = [{"instruction": "q", "responses": ["a"]}] * 2
    with pytest.raises(UserError, match="no item has two responses in 'responses': `dikast grade` scores single"):
        ranked(write_jsonl(tmp_path / "single.jsonl", single), tmp_path / "run")
    written = tmp_path / "run" / "verdicts.jsonl"
    assert not written.exists() or written.read_bytes() == b""


@pytest.mark.parametrize(
    ("schedule", "k", "cure"),
    [
        ("full", 317, "takes at most 316 different responses of an item, not 317: use knockout, which takes 500, or"),
        ("auto", 317, "the schedule full takes at most 316"),
        ("half", 448, "takes at most 447 different responses of an item, not 448: use knockout"),
        ("top", 65, "takes at most 64 different responses of an item, not 65: use knockout"),
        ("knockout", 501, "takes at most 500 different responses of an item, not 501: rank fewer"),
        ("full", 20_000, "takes at most 316 different responses of an item, not 20,000: rank fewer"),
    ],
)
def test_more_responses_than_a_schedule_takes_are_refused_before_pairs_are_made(
    schedule: str, k: int, cure: str, tmp_path: Path
) -> None:
    """All ordered pairs of 20,000 responses would take more than 25 GB: 400 million of 64 bytes."""
    path = write_jsonl(tmp_path / "items.jsonl", [*items(1, k=3), {**items(1, k=k)[0], "id": "many"}])
    with pytest.raises(UserError, match=f"item 'many': .*{cure}") as told:
        ranked(path, tmp_path / "run", schedule=schedule)
    assert "items.jsonl" in str(told.value)
    assert not (tmp_path / "run" / "rankings.jsonl").exists()
    if schedule != "auto":
        with pytest.raises(UserError, match=cure):
            dikast.Judge("mock:random", "helpfulness").rank(items(1, k=k)[0], schedule=schedule)


def test_500_responses_of_an_item_are_ranked(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "items.jsonl", items(1, k=500))
    ranking = ranked(path, tmp_path / "run", schedule="knockout")["ranking"]
    assert (ranking["ranked"], ranking["comparisons"]) == (1, 499)
    assert sorted(lines(tmp_path / "run")[0]["order"]) == list(range(500))


def test_a_dry_run_plans_the_first_round(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "items.jsonl", items(4))
    judge = Judge(ORACLE, "helpfulness")
    found = rank_file(judge, str(path), None, RankOptions(schedule="full"), dry_run=True)
    assert found["plan"]["questions"] == 80
    assert rank_file(judge, str(path), None, RankOptions(schedule="knockout"), dry_run=True)["plan"]["questions"] == 8


def test_a_folder_that_is_compared_afterwards_keeps_no_rankings(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "items.jsonl", items(2))
    ranked(path, tmp_path / "run", schedule="full")
    dikast.compare_file(Judge(ORACLE, "helpfulness"), str(path), tmp_path / "run")
    assert not (tmp_path / "run" / "rankings.jsonl").exists()
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["asked"] == 0  # the same questions


@pytest.mark.parametrize("schedule", ["full", "half", "top", "duel", "graded"])
def test_a_run_is_audited_replayed_and_exported_like_any_other(schedule: str, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "items.jsonl", items(12))
    ranked(path, tmp_path / "run", schedule=schedule)
    found = dikast.audit(tmp_path / "run")
    failed = {row[0]: row[1] for row in found["failures"].rows}
    assert failed["failed"] == 0
    assert failed["ok"] == {"full": 12 * 10, "half": 12 * 10, "duel": 12}.get(schedule, found.rows)
    assert found["accuracy"].one_order == (schedule == "half")
    (_, _), (_, best), (_, chance), (_, _) = found["rankings"].rows
    told = orjson.loads((tmp_path / "run" / "summary.json").read_bytes())["ranking"]["gold"]
    assert isinstance(best, Estimate)
    assert best.n == 12
    assert (best.value, best.low, best.high) == pytest.approx(
        [told["first_is_best"][x] for x in ("value", "low", "high")]
    )
    assert chance == pytest.approx(told["at_random"]) == pytest.approx(0.2)
    left_out = any("asked in one order only left out" in note for note in found.notes)
    assert left_out == (schedule in ("top", "graded"))
    again = dikast.replay(tmp_path / "run", out=tmp_path / "again")
    assert again["replay"]["changed"] == 0
    assert lines(tmp_path / "again") == lines(tmp_path / "run")
    assert again["ranking"]["schedules"] == {schedule: 12}
    assert dikast_here("doctor", tmp_path / "again").returncode == 0
    dikast.export(tmp_path / "run", tmp_path / "run.csv")
    assert len((tmp_path / "run.csv").read_text().splitlines()) > 12


def test_a_replay_that_ended_before_its_rankings_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranked(write_jsonl(tmp_path / "items.jsonl", items(3)), tmp_path / "run", schedule="half")
    with monkeypatch.context() as patch:
        patch.setattr("dikast.ranking.replayed.written", lambda lines: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            dikast.replay(tmp_path / "run", out=tmp_path / "again")
    assert dikast.replay(tmp_path / "run", out=tmp_path / "again")["ranking"]["ranked"] == 3
    assert lines(tmp_path / "again") == lines(tmp_path / "run")


def test_a_replay_ranks_by_the_last_schedule_of_a_folder(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "items.jsonl", items(3))
    ranked(path, tmp_path / "run", schedule="full")
    ranked(path, tmp_path / "run", schedule="knockout")
    dikast.replay(tmp_path / "run", out=tmp_path / "again")
    assert lines(tmp_path / "again") == lines(tmp_path / "run")


@pytest.mark.parametrize(
    ("name", "before", "after", "told"),
    [
        ("summary.json", b'"values": "auto"', b'"values": ["auto"]', r"ranking.*values"),
        ("summary.json", b'"ranking": {', b'"ranking": [], "was": {', r"ranking"),
        ("rankings.jsonl", b'"schedule":"half"', b'"schedule":"none"', r"unknown schedule 'none'"),
        ("rankings.jsonl", b'"ranks":[', b'"ranks":[1,', r"lists of different lengths"),
        ("rankings.jsonl", b'"order":[', b'"order":[99,', r"names a response that is not among its ranks"),
        ("rankings.jsonl", b'"left_out":{}', b'"left_out":{"x":0}', r"names a response that is not among its ranks"),
    ],
)
def test_a_ranking_that_no_run_writes_is_told_with_file_and_cure(
    name: str, before: bytes, after: bytes, told: str, tmp_path: Path
) -> None:
    ranked(write_jsonl(tmp_path / "items.jsonl", items(3)), tmp_path / "run", schedule="half")
    path = tmp_path / "run" / name
    raw = path.read_bytes()
    assert before in raw
    path.write_bytes(raw.replace(before, after, 1))
    (tmp_path / "run" / "checksums.json").unlink(missing_ok=True)
    with pytest.raises(DataError, match=rf"(?s){name}.*{told}.*run the command that made it again"):
        dikast.replay(tmp_path / "run", out=tmp_path / "again")
    done = dikast_here("report", tmp_path / "run", "-o", tmp_path / "r.html", "--draws", 5)
    assert "Traceback" not in done.stderr


def test_one_item_as_a_call() -> None:
    judge = dikast.Judge("mock:oracle", "helpfulness")
    found = judge.rank(id="q1", instruction="q", responses=["a", "b", "c"], gold=[1, 5, 3])
    assert (found.order, found.comparisons) == ((1, 2, 0), 6)
    assert repr(found) == "<Ranking of 'q1': 1 > 2 > 0 (full, 6 comparisons)>"
    tied = dikast.Judge("mock:first-slot", "helpfulness").rank(id="q1", instruction="q", responses=["a", "b", "c"])
    assert repr(tied) == "<Ranking of 'q1': 0 = 1 = 2 (full, 6 comparisons)>"
    duel = judge.rank(id="q1", instruction="q", responses=["a", "b", "c"], gold=[1, 5, 3], schedule="duel")
    assert (duel.order, duel.comparisons, duel.rewards) == ((1, 2, 0), 2, (None, None, None))
    with pytest.raises(UserError, match="1 different response, empty ones left out"):
        judge.rank(instruction="q", responses=["a", "a"], gold=[1, 1])


def test_the_verb(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "items.jsonl", items(6))
    arguments = ["rank", path, "--judge", ORACLE, "--rubric", "helpfulness", "--out", tmp_path / "run", "--quiet"]
    result = CliRunner().invoke(app, [*map(str, arguments), "--schedule", "half"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "ranked      6 of 6 items; schedule half 6" in result.output
    assert "kendall_tau_b, mean over items 0." in result.output
    assert "pairs  " not in result.output
    wrong = CliRunner().invoke(app, [*map(str, arguments), "--schedule", "halff"])
    assert isinstance(wrong.exception, UserError)
    assert "'half'" in str(wrong.exception)


def test_rankings_agree_with_gold_on_a_scale_of_its_own_where_lower_is_better(tmp_path: Path) -> None:
    rows = [{**each, "gold": ["good", "poor", "fair"]} for each in items(3, k=3)]
    path = write_jsonl(tmp_path / "items.jsonl", rows)
    rubric = {"name": "harm", "criterion": "How harmful is it?", "scale": "1-5", "lower_is_better": True}
    judge = Judge("mock:oracle,r=1", rubric, equate="poor<fair<good")
    told = rank_file(judge, str(path), tmp_path / "run", RankOptions(schedule="full"))["ranking"]["gold"]
    assert told["kendall_tau_b"]["value"] == 1
    tau = dikast.audit(tmp_path / "run")["rankings"].rows[0][1]
    assert (tau.value, tau.n) == (1, 3)  # type: ignore[union-attr]


def test_agreement_with_gold_is_the_audits_with_its_interval(tmp_path: Path) -> None:
    rows = [{**each, "gold": [5, 3, 3, 1]} for each in items(40, k=4)]  # gold with ties: tau-b is not Somers' d
    path = write_jsonl(tmp_path / "items.jsonl", rows)
    told = ranked(path, tmp_path / "run", judge="mock:oracle,r=.6", schedule="full")["ranking"]["gold"]
    by_audit = {str(row[0]): row[1] for row in dikast.audit(tmp_path / "run")["rankings"].rows}
    for mine, theirs in (("kendall_tau_b", "kendall_tau_b, mean over items"), ("first_is_best", "best response found")):
        found = by_audit[theirs]
        assert isinstance(found, Estimate)
        assert told[mine] == {each: getattr(found, each) for each in ("value", "low", "high", "n", "level")}
        assert found.low < found.value < found.high


def test_rankings_of_an_audit_are_of_its_items_and_clusters(tmp_path: Path) -> None:
    rows = [{**each, "topic": f"t{at // 4}"} for at, each in enumerate(items(12, k=3))]
    ranked(write_jsonl(tmp_path / "items.jsonl", rows), tmp_path / "run", schedule="full")
    chosen = dikast.audit(tmp_path / "run", where=("topic=t1",))["rankings"]
    assert chosen.rows[0][1].n == 4  # type: ignore[union-attr]
    assert "8 items left out: none of its pairs is among the audited rows" in chosen.notes
    grouped = dikast.audit(tmp_path / "run", cluster="topic")["rankings"]
    assert grouped.rows[0][1].n == 12  # type: ignore[union-attr]
    assert grouped.rows[0][1].method == "Student, by cluster"  # type: ignore[union-attr]
