"""Stages keep their names from version to version, and judges of arms are merged."""

import re
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from dikast.core.errors import DataError, UserError
from dikast.core.media import load_image
from dikast.core.part import text_of
from dikast.core.records import read_items
from dikast.engines.base import Request
from dikast.engines.local.source import ModelSource
from dikast.engines.scout import Scout
from dikast.lab import stages
from dikast.lab.experiment import load_experiment
from dikast.lab.findings import findings
from dikast.lab.gold_feedback import GoldFeedback
from dikast.lab.judge_stages import JudgeStage, MergeStage, runs_of
from dikast.lab.lab_report import to_markdown
from dikast.lab.running import run_experiments
from dikast.worlds.domains.vocabulary import COLOURS
from dikast.worlds.settings import Settings
from lab_experiments import TRAIN, written


def test_names_are_those_of_the_version_before() -> None:
    """So that its folders are gone on with. The names are those that 0a23c539 gave."""
    assert runs_of(load_experiment("references"), (1,))["given", 1, "scenes"].items.name == "90f0fd935d53"
    taught = runs_of(load_experiment("larger-judges"), (1,))["middle", 1, "fresh"]
    assert taught.judge is not None
    assert (taught.name, taught.items.name, taught.judge.name) == ("0b7704e49c87", "fdc71b3d7e43", "10fa7191471f")


def test_another_scout_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a lab that was begun with other weights does not mix two judges."""

    def names() -> list[str]:
        given = runs_of(load_experiment("references"), (1,))["given", 1, "scenes"]
        taught = runs_of(load_experiment("a-a-taught"), (1,))
        judges = [stage.judge.name for stage in taught.values() if stage.judge is not None]
        assert judges
        return [given.name, *judges]

    before = names()
    assert names() == before
    monkeypatch.setattr(ModelSource, "identity", lambda self: {"weights": "others"})
    assert not set(names()) & set(before)


def test_items_of_a_world_that_draws_others_now_are_drawn_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    def names(experiment: str) -> list[str]:
        return [stage.items.name for stage in runs_of(load_experiment(experiment), (1,)).values()]

    before = names("rubrics-composed"), names("references")
    monkeypatch.setattr(Settings, "generator", property(lambda self: "worlds/4.9"))
    assert names("rubrics-composed") != before[0]
    assert names("references") == before[1]


def test_lessons_that_quote_the_rubric_in_another_form_are_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    def names(experiment: str) -> list[str]:
        return [stage.judge.name for stage in runs_of(load_experiment(experiment), (1,)).values() if stage.judge]

    before = names("rubrics-composed"), names("larger-judges")
    monkeypatch.setattr(stages, "QUOTED", 99)
    assert not set(names("rubrics-composed")) & set(before[0])
    assert names("larger-judges") == before[1]


def test_sentences_stand_at_the_bottom_of_pictures_of_the_same_size(tmp_path: Path) -> None:
    runs = runs_of(load_experiment("words-in-pictures"), (1,))
    items = {}
    for arm in ("clean", "other words", "order", "verdict"):
        stage = runs[arm, 1, "scenes"].items
        stage = replace(stage, told=replace(stage.told, n=4))
        stage.run(tmp_path)
        items[arm] = list(read_items(str(stage.folder(tmp_path) / "items.jsonl")))
    for clean, *others in zip(*items.values(), strict=True):
        pictures = [load_image(item.images[0]).picture for item in others]
        whole = load_image(clean.images[0]).picture
        assert len({picture.tobytes() for picture in pictures}) == 3
        for picture in pictures:
            assert picture.size == whole.size
            above = (0, 0, whole.width, whole.height * 3 // 4)
            assert picture.crop(above).tobytes() == whole.crop(above).tobytes()
        assert all(item.response == clean.response and item.gold == clean.gold for item in others)


def test_a_paraphrased_reference_says_what_is_true_in_sentences_that_the_response_has_not(tmp_path: Path) -> None:
    runs = runs_of(load_experiment("paraphrased-references"), (1,))
    for arm in ("same words", "other words"):
        stage = runs[arm, 1, "scenes"].items
        replace(stage, told=replace(stage.told, n=24)).run(tmp_path)
    same, other = (
        list(read_items(str(file))) for file in sorted(tmp_path.glob("items/*/items.jsonl"), key=_as_in_response)
    )
    for one, two in zip(same, other, strict=True):
        assert one.reference is not None
        assert two.reference is not None
        assert one.response == two.response
        right = [claim["text"] for claim in one.gold["claims"] if claim["verdict"] == "right"]
        assert all(text in text_of(one.reference) for text in right)
        assert not any(text in text_of(two.reference) for text in right)
        told = {word for claim in one.gold["claims"] for word in re.findall(r"[a-z]+", claim.get("correction", ""))}
        assert told & {*COLOURS} <= set(re.findall(r"[a-z]+", text_of(two.reference).lower()))


def _as_in_response(file: Path) -> bool:
    """Whether the references are not those of the same words, so that these come first."""
    item = next(iter(read_items(str(file))))
    return not any(claim["text"] in text_of(item.reference or ()) for claim in item.gold["claims"])


@pytest.mark.slow
def test_the_rubrics_that_grade_diversity_are_new_to_every_judge(tmp_path: Path) -> None:
    runs = runs_of(load_experiment("many-rubrics"), (1,))
    for arm, least in (("twelve", 12), ("a hundred", 90), ("a thousand", 300)):
        run = runs[arm, 1, "unseen"]
        assert isinstance(run.judge, JudgeStage)
        told = []
        for stage in (*run.judge.items(), run.items):
            fewer = replace(stage, told=replace(stage.told, n=min(stage.told.n, 1_500)))
            fewer.run(tmp_path)
            items = read_items(str(fewer.folder(tmp_path) / "items.jsonl"))
            told.append({repr(item.rubric) for item in items})
        taught, held = told
        assert len(taught) >= least
        assert len(held) > 50
        assert not taught & held, arm


def test_a_merged_judge_is_that_of_its_arms() -> None:
    runs = runs_of(load_experiment("merged-judges"), (1, 2))
    for seed in (1, 2):
        merged = runs["ties", seed, "own"].judge
        assert isinstance(merged, MergeStage)
        assert merged.judges == tuple(runs[arm, seed, "own"].judge for arm in ("single", "pairs"))
        assert merged.name != runs["linear", seed, "own"].judge.name  # type: ignore[union-attr]
        assert runs["ties", seed, "own"].items == runs["joint", seed, "own"].items


def test_experiments_share_the_judges_that_are_the_same() -> None:
    arms = {"feedback-order": "feedback first", "long-lessons": "short", "domain-left-out": "things left out"}
    judges = {
        run.judge.name
        for name, wanted in arms.items()
        for (arm, _, _), run in runs_of(load_experiment(name), (1,)).items()
        if arm == wanted and run.judge is not None
    }
    assert len(judges) == 1


@pytest.mark.slow
def test_every_format_of_an_experiment_is_taught_and_graded_in(tmp_path: Path) -> None:
    """One step, after which replies are not yet right."""
    few = {"data": {"lessons": {"n": 16}}, "budget": {"tokens": None, "examples": 16}, "held": {"other": {"n": 6}}}
    experiment = load_experiment("feedback-order", few)
    run_experiments([experiment], tmp_path, seeds=1, jobs=2)
    told = {
        arm: orjson.loads((run.folder(tmp_path) / "summary.json").read_bytes())
        for (arm, _, _), run in runs_of(experiment, (1,)).items()
    }
    assert {arm: each["format"] for arm, each in told.items()} == {
        "feedback first": "scout", "score first": "scout-score-first", "score only": "scout",
        "prose first": "scout-prose",
    }  # fmt: skip
    assert {each["asked"] for each in told.values()} == {6}


@pytest.mark.slow
def test_judges_are_merged_after_they_are_taught(tmp_path: Path) -> None:
    tiny = {
        **TRAIN, "budget": {"examples": 16}, "format": "scout",
        "train": {"model": "scout", "batch_size": 8},
        "data": {"some": {"world": {"domain": "text"}, "n": 20, "lessons": True, "formats": ["scout"]}},
        "held": {"text": {"n": 8}},
    }  # fmt: skip
    merge = {"train": None, "data": None, "budget": None}
    arms = {
        "poor": {"judge": None, "draw": 1},
        "linear": {**merge, "merge": {"of": ["good", "poor"]}},
        "ties": {**merge, "merge": {"of": ["good", "poor"], "method": "ties"}},
    }
    out = tmp_path / "lab"
    experiment = load_experiment(written(tmp_path, base=tiny, arms=arms))
    run_experiments([experiment], out, jobs=2)
    [found] = findings(out)
    assert found.seeds == (1,)
    assert found.cost["taught_examples"] == 32  # merging teaches nothing
    assert found.cost["graded_items"] == 32
    runs = runs_of(experiment, (1,))
    weights = {
        arm: (runs[arm, 1, "text"].judge.model(out) / "model.safetensors").read_bytes()  # type: ignore[union-attr]
        for arm in ("good", "poor", "linear", "ties")
    }
    assert len(set(weights.values())) == 4
    import torch
    from safetensors.torch import load

    tensors = {arm: load(each) for arm, each in weights.items()}
    for name, value in tensors["linear"].items():
        middle = (tensors["good"][name].float() + tensors["poor"][name].float()) / 2
        assert torch.allclose(value.float(), middle, atol=1e-2, rtol=1e-2), name


def test_a_reply_begins_with_the_feedback_of_gold() -> None:
    asked: list[Request] = []

    class Listening(GoldFeedback):
        def __init__(self) -> None:
            super().__init__(Scout())
            inner = self.engine.stream
            self.engine.stream = lambda requests: inner(map(heard, requests))  # type: ignore[method-assign]

    def heard(request: Request) -> Request:
        asked.append(request)
        return request

    from dikast.judging.judge import Judge
    from dikast.worlds.make import make
    from dikast.worlds.settings import Settings
    from dikast.worlds.teach import lesson

    [sample] = make(Settings(domain="text", seed=3), 1)
    item = lesson(sample)
    with Listening() as engine:
        judge = Judge(engine, format="scout", read="only")
        found = judge.grade(item)
        assert [each.prefill for each in asked] == [item.gold["feedback"]]
        assert found.distribution is not None
        assert found.hashes is not None
        assert found.hashes.judge != Judge(Scout(), format="scout", read="only").hash
        with pytest.raises(UserError, match="has no gold feedback to begin the reply with"):
            judge.grade(replace(item, gold={**item.gold, "feedback": ""}))


@pytest.mark.slow
def test_items_that_changed_are_made_again_where_the_cure_is_followed(tmp_path: Path) -> None:
    experiment, out = load_experiment(written(tmp_path)), tmp_path / "lab"
    run_experiments([experiment], out)
    page = to_markdown(findings(out))
    [file] = out.glob("items/*/items.jsonl")
    whole = file.read_bytes()
    file.write_bytes(whole.replace(b"1", b"2", 1))
    with pytest.raises(DataError, match=r"items\.jsonl: the file has changed .*: remove the file, and run the experim"):
        run_experiments([experiment], out)
    file.unlink()
    run_experiments([experiment], out)
    assert file.read_bytes() == whole
    assert to_markdown(findings(out)) == page
