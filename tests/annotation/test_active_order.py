"""An active order: known chances, kept in the labels, and a mean that allows for them."""

import asyncio
import math
import random
import sqlite3
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiohttp.test_utils import make_mocked_request
from typer.testing import CliRunner

import runs
from annotation.labelling_here import table
from dikast.annotation.active_order import Priority, chances, priorities_of, uncertainty_of
from dikast.annotation.label_store import SKIPPED, Labelled, LabelStore
from dikast.annotation.labelling_questions import Kind, ToLabel, read_questions
from dikast.annotation.labelling_server import LabelServer
from dikast.annotation.precision import progress
from dikast.annotation.session import Shares, judged_by, opened
from dikast.core.errors import UserError
from dikast.core.gold import LABEL_CHANCE
from dikast.core.rubric import load_rubric
from dikast.surface.cli import app


def test_two_raters_at_different_paces_leave_no_bias() -> None:
    """12 questions worth their weight: rater 1 has all and stops after 3, rater 2 has half and stops after 4."""
    weight = {str(k): 0.4 + k / 10 for k in range(12)}
    draw, estimates = random.Random(3), []
    for _ in range(6000):
        order = {key: Priority(w, draw.random() / w) for key, w in weight.items()}
        mine = {1: sorted(order, key=lambda key: order[key].place)}
        mine[2] = [key for key in mine[1] if int(key) % 2]
        done = {1: 3, 2: 4}
        reached = {rater: order[mine[rater][done[rater]]].place for rater in mine}
        found = chances(order, [(rater, key) for rater in mine for key in mine[rater][: done[rater]]], reached)
        estimates.append(sum(weight[key] / chance for key, chance in found.items()))
    error = float(np.std(estimates)) / math.sqrt(len(estimates))
    assert abs(float(np.mean(estimates)) - sum(weight.values())) < 3 * error < 0.5


def test_all_asked_is_certain() -> None:
    order = {"x": Priority(0.5, 0.1), "y": Priority(1.5, 0.4)}
    assert chances(order, [(1, "x"), (1, "y")], {}) == {"x": 1.0, "y": 1.0}
    assert chances(order, [(1, "x")], {1: 0.4}) == {"x": 0.2}  # .5 x .4


def test_weights_go_by_rank() -> None:
    """Of three questions the ranks are 1/6, 1/2 and 5/6 of the way from .75 to 1.25; one of unknown certainty is 1."""
    order = priorities_of(["none", "least", "most", "middle"], {"most": 0.4, "least": 0.0, "middle": 0.1}, 0)
    assert [order[key].weight for key in ("least", "middle", "most", "none")] == pytest.approx([5 / 6, 1, 7 / 6, 1])


def test_labels_keep_their_chances_and_the_audit_allows_for_them(tmp_path: Path) -> None:
    """Two raters stop at different places; a resume, and the audit of the run, know the chances of the start."""
    items, run, out = runs.write_jsonl(tmp_path / "i.jsonl", runs.rows(60)), tmp_path / "run", tmp_path / "labels"
    judged = runs.dikast_here("grade", items, "--judge", "mock:oracle,r=.8", "--rubric", "helpfulness", "--out", run)
    assert judged.returncode == 0, judged.stderr
    questions = read_questions(str(items), {}, load_rubric("helpfulness"), "absolute")
    known = {each.key: each for each in questions}
    spread = uncertainty_of(run, questions)
    assert len(spread) == 60
    labelled: dict[str, ToLabel] = {}
    with opened(out, questions, Shares(raters=2, overlap=1, repeats=0.1), spread) as session:
        for rater, many in ((1, 8), (2, 12)):
            for _ in range(many):
                due = session.store.due(rater)
                assert due is not None
                labelled[due.question] = known[due.question]
                session.store.keep(due.id, known[due.question].known)
        given = session.store.chances()
        mean = progress(session.questions, session.store.labels(), judged_by(run, questions), given)["mean (0 to 1)"]
    assert set(given) == set(labelled)
    assert all(0 < each < 1 for each in given.values())
    assert max(given.values()) > 1.2 * min(given.values())
    assert mean.method.startswith("active inference")
    with opened(out, questions, Shares(raters=2, overlap=1, repeats=0.1), dict.fromkeys(spread, 1.0)) as session:
        assert session.store.chances() == given
    rows = table(out / "labels.csv")
    at = [key for key in known if key in labelled]
    assert [float(row[LABEL_CHANCE]) for row in rows] == [float(f"{given[key]:.9g}") for key in at]
    audited = runs.dikast_here("audit", run, "--gold-file", out / "labels.csv", "--draws", 1)
    assert audited.returncode == 0, audited.stderr
    assert "labels and verdicts (active inference)" in audited.stdout
    assert f"{1 + 4 * mean.value:.4f}" in audited.stdout  # the same figure on the scale from 1 to 5
    assert "unequal chances" in audited.stdout + audited.stderr
    bad = runs.write_jsonl(tmp_path / "bad.jsonl", [row | {LABEL_CHANCE: "7"} for row in rows])
    refused = runs.dikast_here("audit", run, "--gold-file", bad, "--draws", 1)
    assert (refused.returncode, "no probability above 0" in refused.stderr) == (2, True), refused.stderr
    for more, told in (
        (("--raters", 2, "--overlap", 1, "--repeats", 0.1), "began with other --order (it was active)"),
        (("--order", "active"), "give its run on these items with --run"),
    ):
        refused = runs.dikast_here("annotate", items, "--out", out, "--export", *more)
        assert (refused.returncode, told in refused.stderr) == (2, True), refused.stderr


@pytest.mark.parametrize(
    ("kind", "verb", "answer"),
    [("pairwise", "compare", "a"), ("claims", "grade", "right"), ("spans", "grade", "[]"), ("boxes", "grade", "[]")],
)
def test_every_kind_has_an_active_order(kind: Kind, verb: str, answer: str, tmp_path: Path) -> None:
    """A pair goes by what both orders say of it; a claim, and what is marked, by the score of the response."""
    given = runs.pairs(30) if kind == "pairwise" else [row | {"response": "One. Two."} for row in runs.rows(30)]
    items, run = runs.write_jsonl(tmp_path / "i.jsonl", given), tmp_path / "run"
    line = [verb, str(items), "--judge", "mock:oracle,r=.8", "--rubric", "helpfulness", "--out", str(run), "-q"]
    assert CliRunner().invoke(app, line).exit_code == 0
    questions = read_questions(str(items), {}, load_rubric("helpfulness"), kind)
    judged, spread = judged_by(run, questions), uncertainty_of(run, questions)
    assert set(judged) == set(spread) == {each.key for each in questions}
    shares: dict[str, list[Any]] = {}  # by item: what each verdict says, on its own
    for verdict in runs.lines(run / "verdicts.jsonl"):
        said = verdict["distribution"]
        sure = [said.get("a", 0), said.get("tie", 0)] if kind == "pairwise" else [said[str(k)] for k in range(1, 6)]
        shares.setdefault(verdict["question"]["item"], []).append(np.array(sure))
    for each in questions[:8]:
        mean = np.mean(shares[each.item.id], axis=0)
        worth = np.array([1, 0.5]) if kind == "pairwise" else np.arange(5) / 4
        assert spread[each.key] == pytest.approx(math.sqrt(mean @ worth**2 - (mean @ worth) ** 2))
    out = tmp_path / "labels"
    with opened(out, questions, Shares(), spread) as session:
        asked = []
        for _ in range(8):
            due = session.store.due(1)
            assert due is not None
            session.store.keep(due.id, answer)
            asked.append(due.question)
        chosen = session.store.chances()
        mean = progress(session.questions, session.store.labels(), judged, chosen)["mean (0 to 1)"]
    order = priorities_of([each.key for each in questions], spread, 0)
    assert asked == sorted(order, key=lambda key: order[key].place)[:8]
    assert set(chosen) == set(asked)
    assert all(0 < each < 1 for each in chosen.values())
    assert (mean.value, mean.method.partition(",")[0]) == (1.0, "active inference")
    if kind == "pairwise":
        found = CliRunner().invoke(app, ["audit", str(run), "--gold-file", str(out / "labels.csv"), "--draws", "1"])
        assert (found.exit_code, "accuracy is of the labelled pairs" in found.output) == (0, True), found.output


def test_a_judge_without_probabilities_gives_no_order(tmp_path: Path) -> None:
    items, run = runs.write_jsonl(tmp_path / "i.jsonl", runs.rows(3)), tmp_path / "run"
    runs.dikast_here(
        "grade", items, "--judge", "mock:oracle", "--rubric", "helpfulness", "--read", "never", "--out", run
    )
    refused = runs.dikast_here(
        "annotate", items, "--out", tmp_path / "labels", "--run", run, "--order", "active", "--export"
    )
    assert (refused.returncode, "no label probabilities" in refused.stderr) == (2, True), refused.stderr
    assert not (tmp_path / "labels").exists()


def test_random_order_keeps_the_form_that_earlier_versions_read(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "i.jsonl", runs.rows(2))
    questions = read_questions(str(items), {}, load_rubric("helpfulness"), "absolute")
    with opened(tmp_path / "labels", questions, Shares()) as session:
        assert session.store.chances() == {}
    database = sqlite3.connect(tmp_path / "labels" / "labels.sqlite")
    assert database.execute("pragma user_version").fetchone() == (1,)
    database.close()


def test_what_is_skipped_or_practised_does_not_draw_the_mean_to_0(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "i.jsonl", runs.rows(30))
    questions = read_questions(str(items), {}, load_rubric("helpfulness"), "absolute")
    judged = {each.key: (int(each.known) - 1) / 8 + 0.2 for each in questions}
    with opened(tmp_path / "labels", questions, Shares(training=4), dict.fromkeys(judged, 1.0)) as session:
        store, said = session.store, {}
        while due := store.due(1):
            value = SKIPPED if due.place % 7 == 5 else session.questions[due.question].known
            store.keep(due.id, value, "?" * (not value))
            if due.kind == "item" and value:
                said[due.question] = (int(value) - 1) / 4
        found = progress(session.questions, store.labels(), judged, store.chances())["mean (0 to 1)"]
    # gold is 2 x judged - .4 here, so the skipped questions are predicted as if labelled; practice has no part in it
    assert (found.n, len(said)) == (22, 22)
    assert math.isclose(found.value, np.mean([(int(each.known) - 1) / 4 for each in questions[4:]]))
    assert "4 unlabelled" in found.method


class Hurried(LabelStore):
    """A store whose rater takes the last label back just after it was read."""

    def labels(self) -> list[Labelled]:
        """As the rater is quicker than the page."""
        found = super().labels()
        self.undo(1, self.last(1) or 0)
        return found


def test_a_label_taken_back_while_the_page_is_made(tmp_path: Path) -> None:
    """The owner's page shows one moment (it had a label without a chance, and was an error 500)."""
    items = runs.write_jsonl(tmp_path / "i.jsonl", runs.rows(9))
    questions = read_questions(str(items), {}, load_rubric("helpfulness"), "absolute")
    judged = dict.fromkeys([each.key for each in questions], 0.5)
    with opened(tmp_path / "labels", questions, Shares(), judged) as session:
        for _ in range(5):
            due = session.store.due(1)
            assert due is not None
            session.store.keep(due.id, "3")
        store = Hurried(tmp_path / "labels")
        server = LabelServer(store, session.questions, session.owner, judged=judged)
        request = make_mocked_request("GET", "/", match_info={"token": session.owner})
        for left in (5, 4):
            page = asyncio.run(server._progress(request))
            assert f"(n = {left})" in str(getattr(page, "text", "")), left
        store.close()


class Long(LabelStore):
    """A store of so many questions that reading its labels takes a while."""

    def labels(self) -> list[Labelled]:
        """As from a large table."""
        time.sleep(0.5)
        return super().labels()


def test_labels_are_taken_while_the_page_of_the_owner_is_made(tmp_path: Path) -> None:
    """Of 300,000 tasks the page takes seconds, in which every rater waited."""
    items = runs.write_jsonl(tmp_path / "i.jsonl", runs.rows(3))
    questions = read_questions(str(items), {}, load_rubric("helpfulness"), "absolute")
    with opened(tmp_path / "labels", questions, Shares()) as session:
        store = Long(tmp_path / "labels")
        server = LabelServer(store, session.questions, session.owner)
        request = make_mocked_request("GET", "/", match_info={"token": session.owner})

        async def meanwhile() -> int:
            page, labelled = asyncio.create_task(server._progress(request)), 0
            await asyncio.sleep(0.1)
            while not page.done() and (due := store.due(1)) is not None:
                labelled += await server._written(store.label(due.id, "3"))
            assert not page.done()
            assert "of 3 labels" in str(getattr(await page, "text", ""))
            return labelled

        assert asyncio.run(meanwhile()) == 3
        store.close()


def test_the_page_of_the_owner_counts_skips_apart(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "i.jsonl", runs.rows(5))
    questions = read_questions(str(items), {}, load_rubric("helpfulness"), "absolute")
    with opened(tmp_path / "labels", questions, Shares(raters=2)) as session:
        for value in ("3", SKIPPED, "4", SKIPPED):
            due = session.store.due(1)
            assert due is not None
            assert session.store.keep(due.id, value, "" if value else "no picture")
        server = LabelServer(session.store, session.questions, session.owner)
        request = make_mocked_request("GET", "/", match_info={"token": session.owner})
        text = str(getattr(asyncio.run(server._progress(request)), "text", ""))
    assert ": 2 of 10 labels, 2 skipped</h1>" in text
    assert '<th scope="row">1</th><td>2</td><td>2</td><td>5</td><td><progress max="5" value="4"' in text
    assert '<th scope="row">2</th><td>0</td><td>0</td><td>5</td><td><progress max="5" value="0"' in text


def test_a_file_is_told_to_be_no_run(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "i.jsonl", runs.rows(2))
    questions = read_questions(str(items), {}, load_rubric("helpfulness"), "absolute")
    for take in (judged_by, uncertainty_of):
        with pytest.raises(UserError, match=r"i\.jsonl: this is not a run: it has no verdicts\.jsonl"):
            take(items, questions)
