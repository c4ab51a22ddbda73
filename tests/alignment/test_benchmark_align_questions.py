"""The side questions of `make align`: rewards from claims, clips of the same things, gold at equal KL, each by hand."""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest
from benchmarks import align, align_questions
from benchmarks.align_clips import FRAMES, Replies, claims_table, clips_of, gold_in, moving
from benchmarks.align_figures import Arm
from benchmarks.align_questions import BeforeClaims, ByClaims, at_kl, changes_table, points_lost

from dikast.core.item import Item, item_to
from dikast.core.part import Text, text_of
from dikast.core.records import read_items, write_records
from dikast.core.rubric import Rubric
from dikast.core.runs.run_files import write_checked
from dikast.core.verdict import Verdict
from dikast.engines.base import Completion, Engine, Request
from dikast.engines.scout import Scout
from dikast.engines.wrapper import Wrapper
from dikast.judging.judge import Judge
from dikast.worlds.domains.paraphrases import say
from dikast.worlds.domains.scenes import Scenes
from dikast.worlds.domains.vocabulary import COLOURS
from dikast.worlds.replies import claims_of_sentences, scene_of, sentences_of

FINDINGS = """Claim: The cross is purple.
Evidence: cross a 2 medium purple striped cross
Finding: right, hues
Claim: The heart is teal.
Evidence: heart c 2 small yellow dotted heart
Finding: wrong, hues, 1 lost, 1 in all
Claim: The star is large.
Evidence: star c 4 small green plain star
Finding: wrong, not weighed
Omissions: a 2 medium purple striped cross; left out: purple diamond and purple diamond, 2 lost, 3 in all
Lost: 17
Verdict: 4"""


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> list[Item]:
    """Eight items of scenes of which the best label is the highest for some and the lowest for others."""
    file = align.world(tmp_path_factory.mktemp("world"), "held", 8, align.BUDGETS["tiny"])
    items = list(read_items(str(file)))
    assert {item.meta["spec"]["lower_is_better"] for item in items} == {True, False}
    return items


def test_points_lost_are_added_up_from_the_findings() -> None:
    assert points_lost(FINDINGS) == 3  # not the 17 that stand at the end
    assert points_lost("Verdict: 5") == 0


class Wrong(Wrapper):
    """An engine that says after its findings what is not so."""

    def stream(self, requests: Any) -> Iterator[Completion]:
        asked: dict[str, Request] = {}
        for done in self.engine.stream(asked.setdefault(each.key, each) for each in requests):
            assert done.label_logprobs is not None
            text = done.text.partition("\nLost:")[0] + "\nLost: 0\nVerdict:"
            told = dict.fromkeys(done.label_logprobs, math.log(1 / len(done.label_logprobs)))
            yield replace(done, text=text, label_logprobs=told)


def graded(engine: Engine, items: list[Item]) -> list[Verdict]:
    """The verdicts in the order of the items."""
    found = {verdict.question.item: verdict for verdict in Judge(engine).grade_many(items)}
    return [found[item.id] for item in items]


def test_a_reward_from_claims_reads_nothing_but_the_findings(scenes: list[Item]) -> None:
    lost = [points_lost(each.feedback) for each in graded(Scout(), scenes)]
    assert len(set(lost)) > 1
    for engine in (ByClaims(Scout()), ByClaims(Wrong(Scout()))):
        for item, points, verdict in zip(scenes, lost, graded(engine, scenes), strict=True):
            assert verdict.expected is not None
            assert isinstance(item.rubric, Rubric)
            assert item.rubric.scale.goodness(verdict.expected) == pytest.approx(1 / (1 + points), abs=1e-6)


def test_a_grade_before_claims_comes_without_findings(scenes: list[Item]) -> None:
    plain, found = (graded(engine, scenes) for engine in (Scout(), BeforeClaims(Scout())))
    for then, verdict in zip(plain, found, strict=True):
        assert verdict.score is not None
        assert verdict.feedback == ""
        assert verdict.usage.tokens_out < then.usage.tokens_out
        assert verdict.mass == pytest.approx(1)


def test_a_clip_moves_one_thing_a_frame_and_keeps_the_gold(scenes: list[Item], tmp_path: Path) -> None:
    moved = 0
    for item in scenes:
        scene = scene_of(item.meta)
        assert scene is not None
        frames = moving(scene, item.id)
        assert frames == moving(scene, item.id)
        assert len(frames) == FRAMES
        for before, after in pairwise(frames):
            changed = [(a, b) for a, b in zip(before.things, after.things, strict=True) if a != b]
            moved += len(changed)
            assert len(changed) <= 1
            cells = [(thing.col, thing.row) for thing in after.things]
            assert len(set(cells)) == len(cells)
            for a, b in changed:
                assert abs(a.col - b.col) + abs(a.row - b.row) == 1
                assert replace(a, col=b.col, row=b.row) == b
                assert (b.col, b.row) not in scene.covers
        weighed = item.meta["spec"]["weights"]
        claims = [claims_of_sentences().get(each.casefold()) for each in sentences_of(text_of(item.responses[0]))]
        told = [claim for claim in claims if claim is not None and claim.aspect in weighed]
        for frame in frames:
            assert [Scenes().measure(claim, frame) for claim in told] == [Scenes().measure(c, scene) for c in told]
    assert moved > 2 * len(scenes)
    clips = list(read_items(str(clips_of({item.id: item for item in scenes}, tmp_path, "clip", 96))))
    assert [len(clip.images) for clip in clips] == [FRAMES] * len(scenes)
    assert [text_of(clip.instruction[0].content) for clip in clips] == [
        text_of(item.instruction[0].content) for item in scenes
    ]


def test_the_floor_reads_a_reply_against_other_things(scenes: list[Item], tmp_path: Path) -> None:
    """A reply that is right of its own things, and of a thing that the next prompt has otherwise or not."""
    prompts = {item.id: item for item in scenes}
    true = [" ".join(say("colour", (each["shape"], each["colour"]), 0) for each in item.meta["scene"]["things"])
            for item in scenes]  # fmt: skip
    rows = [item_to(replace(item, responses=((Text(text),),))) for item, text in zip(scenes, true, strict=True)]
    write_records(tmp_path / "samples.jsonl", rows)
    told = Replies([tmp_path / "samples.jsonl"], prompts)
    gold, floor = told.column(gold_in), told.floor()
    assert gold.keys() == floor.keys() == {(0, item.id) for item in scenes}
    weighed = [key for key in gold if "colour" in prompts[key[1]].meta["spec"]["weights"]]
    assert weighed
    assert sum(floor[key] for key in weighed) < sum(gold[key] for key in weighed)


def test_what_replies_claim_by_hand(scenes: list[Item], tmp_path: Path) -> None:
    """Of every prompt's first thing one right colour, twice, and one wrong colour, in the replies of the start."""
    usual = arm(tmp_path / "scout", [[0.5], [0.5]], [0.0, 1.0])
    rows = []
    for item in scenes:
        things = item.meta["scene"]["things"]
        one = things[0]
        shown = {each["colour"] for each in things if each["shape"] == one["shape"]}
        other = next(each for each in COLOURS if each not in shown)
        told = [say("colour", (one["shape"], each), voice) for voice in (0, 1) for each in (one["colour"], other)][:3]
        rows.append(item_to(replace(item, responses=((Text(" ".join(told)),),))))
    write_records(tmp_path / "scout/start/held-out/samples.jsonl", rows)
    head, _, row = claims_table([usual], tmp_path, {item.id: item for item in scenes})
    cells = dict(zip(head.strip("| ").split(" | "), row.strip("|").split("|"), strict=True))
    weighed = sum("colour" in item.meta["spec"]["weights"] for item in scenes)
    assert float(cells["weighed claims a reply"]) == pytest.approx(2 * weighed / len(scenes), abs=0.005)
    assert cells["claims said again"].strip() == "0.33"
    assert cells["colour: a reply"].strip() == "2.00"  # a claim that is repeated in other words is one
    assert cells["colour: right"].strip().startswith("0.50")
    assert (cells["size: a reply"].strip(), cells["size: right"].strip()) == ("0.00", "")


def state(folder: Path, gold: list[float], kl: float) -> None:
    """Held-out measures of one state."""
    (folder / "held-out").mkdir(parents=True)
    rows = [{"item": f"p{i}", "gold": each, "kl": kl, "words": 9.0} for i, each in enumerate(gold)]
    write_checked(folder / "held-out" / "measures.jsonl", b"".join(orjson.dumps(row) + b"\n" for row in rows))


def arm(folder: Path, golds: list[list[float]], kls: list[float]) -> Arm:
    """A finished arm, from the gold and the mean KL of its states."""
    for number, (gold, kl) in enumerate(zip(golds, kls, strict=True)):
        state(folder / (f"round-{number}" if number else "start"), gold, kl)
    rounds = [{"calls": 10, "tokens": 100, "asked_held_out": {"calls": 1, "tokens": 5}, "seconds": {}}] * len(golds)
    report = {"model": str(folder / f"round-{len(golds) - 1}" / "model"), "rounds": rounds, "stopped": ""}
    (folder / "report.json").write_bytes(orjson.dumps(report))
    return Arm(folder.name, [folder])


def test_gold_at_equal_kl_by_hand(tmp_path: Path) -> None:
    usual = arm(tmp_path / "scout", [[0.2, 0.4], [0.4, 0.4], [0.6, 0.8]], [0.0, 1.0, 3.0])
    assert at_kl(usual, 0.5) == pytest.approx({"p0": 0.3, "p1": 0.4})  # half of the way to round 1
    assert at_kl(usual, 1.0) == pytest.approx({"p0": 0.4, "p1": 0.4})
    assert at_kl(usual, 2.0) == pytest.approx({"p0": 0.5, "p1": 0.6})  # half of the way from round 1 to round 2
    assert at_kl(usual, 3.0) == pytest.approx({"p0": 0.6, "p1": 0.8})
    other = arm(tmp_path / "claims", [[0.2, 0.4], [0.8, 0.5]], [0.0, 2.0])
    rows = [line.strip("| ").split(" | ") for line in changes_table(usual, [other], {})]
    cells = dict(zip(rows[0], rows[3], strict=True))
    # At the end .6 and .8 against .8 and .5: +.2 and -.3. At 2 nats .5 and .6 against .8 and .5: +.3 and -.1.
    assert cells["less that of `scout`, paired"].startswith("-0.050 [")
    assert cells["gold at equal KL less that of `scout`, paired"].startswith("+0.100 [")
    assert cells["gold at equal KL less that of `scout`, paired"].endswith("at 2.0")
    assert (cells["questions to the judge"], cells["tokens"]) == ("22", "210")


def test_rounds_change_and_steps_stay() -> None:
    usual = align.BUDGETS["full"]
    for name, rounds in (("one-round", 1), ("six-rounds", 6)):
        now = align_questions.QUESTIONS[name].budget(usual)
        assert (now.rounds, now.rounds * now.epochs) == (rounds, usual.rounds * usual.epochs)
        assert replace(now, rounds=usual.rounds, epochs=usual.epochs) == usual


@pytest.mark.slow
def test_questions_of_one_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--out", str(tmp_path), "--budget", "tiny", "--rate", "1e-4"]
    questions = partial(align_questions.main, [*flags, "--questions", "claims,samples-2,clips"])
    align.main([*flags, "--arms", "gold,scout", "--seeds", "1"])
    capsys.readouterr()
    questions()
    table = capsys.readouterr().out.partition("Budget `tiny`")[2]
    for line in (
        "| scout |  | ", "| claims | reward: points lost", "| samples-2 | 2 replies a prompt",
        "| claims | round 1 | 1 |",
        "| N | whole response: expected grade |", "| start | picture | 1 |", "| scout | clip | 1 |",
        "| gold | the picture four times | 1 |",
        "| policy | shown | weighed claims a reply | claims said again | colour: a reply |",
    ):  # fmt: skip
        assert line in table
    assert "beta" not in table  # what is not finished has no row
    reports = [tmp_path / "tiny/questions" / name / "report.json" for name in ("claims", "samples-2")]
    made = [file.stat().st_mtime_ns for file in reports]
    questions()  # nothing is done again
    assert [file.stat().st_mtime_ns for file in reports] == made
    assert capsys.readouterr().out.partition("Budget `tiny`")[2] == table
