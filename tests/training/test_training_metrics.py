"""Judge metrics during training: the log and the card agree with the saved model."""

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from safetensors.torch import load_file

from dikast.core.errors import DataError
from dikast.core.records.items import read_items
from dikast.core.rubric import Rubric
from dikast.engines.local.engine import LocalEngine
from dikast.engines.scout import folder
from dikast.judging.judge import Judge
from dikast.training.config import load_config
from dikast.training.data.batches import BatchPlan
from dikast.training.data.shards import Shards
from dikast.training.log import read_log
from dikast.training.metrics import held_out, judge_metrics
from dikast.training.models.model import open_model
from dikast.training.plot import plot
from dikast.training.sft import sft
from dikast.worlds.settings import Settings
from dikast.worlds.write import write_world


@pytest.fixture(scope="module")
def items(world: Path) -> dict[str, list[str]]:
    return {kind: [str(world / kind / "items-00000.jsonl")] for kind in ("scenes", "pairs")}


def test_metrics_of_the_log_are_those_of_the_saved_model(
    write_config: Callable[..., Path], items: dict[str, list[str]], tmp_path: Path
) -> None:
    config = write_config(
        data=[
            {"items": items["scenes"], "formats": ["short.yaml"]},
            {"items": items["pairs"], "formats": ["short-pair.yaml"]},
        ],
        eval={"items": items["scenes"] + items["pairs"], "formats": ["short.yaml", "short-pair.yaml"], "every": 4,
              "min_mass": 0.0},
        steps=8, batch_size=6, learning_rate=3e-3, log_every=4,
    )  # fmt: skip
    for name, kind, shown in (
        ("short", "absolute", "{{ response }}"),
        ("short-pair", "pairwise", "{{ first }}\n{{ second }}"),
    ):
        text = (
            f"kind: {kind}\ndialect: verdict\nmarker: 'Verdict:'\nfeedback: false\nuser: |-\n  {{{{ instruction }}}}\n"
        )
        (tmp_path / f"{name}.yaml").write_text(text + "".join(f"  {line}\n" for line in shown.split("\n")), "utf-8")
    done = sft(config)
    lines = read_log(tmp_path / "run-c" / "eval.jsonl")
    assert [(line["step"], line["format"]) for line in lines] == [
        (step, name) for step in (4, 8) for name in ("short", "short-pair")
    ]
    grades, pairs = lines[-2:]
    assert (grades["failed"]["n"], pairs["failed"]["n"]) == (12, 12)
    assert (grades["failed"]["value"], pairs["failed"]["value"]) == (0.0, 0.0)

    engine = LocalEngine(str(done["model"]), device="cpu")
    judge = Judge(engine, format=tmp_path / "short.yaml", compare_format=tmp_path / "short-pair.yaml", min_mass=0.0)
    found = list(read_items(items["scenes"][0]))
    verdicts = {verdict.question.item: verdict for verdict in judge.grade_many(found)}
    scores, golds = [], []
    for item in found:
        assert isinstance(item.rubric, Rubric)
        scale, score = item.rubric.scale, verdicts[item.id].score
        if score is None:
            continue
        scores.append(scale.goodness(score))
        golds.append(scale.goodness(item.gold["score"]))
    assert grades["failed"]["value"] == pytest.approx(1 - len(scores) / len(found))
    known = np.ptp(scores) > 0
    expected = float(np.corrcoef(scores, golds)[0, 1]) if known else None
    assert grades["pearson"]["value"] == (pytest.approx(expected, abs=1e-6) if known else None)
    assert grades["exact"]["value"] == pytest.approx(np.mean(np.array(scores) == golds))
    masses = [verdict.mass for verdict in verdicts.values() if verdict.mass is not None]
    assert grades["mass"]["value"] == pytest.approx(np.median(masses), abs=1e-5)

    compared = [each for each in judge.compare_many(read_items(items["pairs"][0])) if each.choice is not None]
    assert pairs["failed"]["value"] == pytest.approx(1 - len(compared) / 12)
    assert pairs["swap_consistency"]["value"] == pytest.approx(np.mean([bool(each.consistent) for each in compared]))
    gold = {item.id: item.gold["preference"] for item in read_items(items["pairs"][0])}
    assert pairs["accuracy"]["value"] == pytest.approx(np.mean([each.outcome == gold[each.item] for each in compared]))
    clear = [each for each in compared if gold[each.item] != "tie"]
    right = [((each.logit_a or 0.0) > 0) == (gold[each.item] == "a") for each in clear]
    assert (pairs["clear_accuracy"]["n"], pairs["clear_accuracy"]["value"]) == (
        len(clear),
        pytest.approx(np.mean(right)),
    )

    card = (tmp_path / "run-c" / "model" / "README.md").read_text("utf-8")
    assert f"run | `{done['run']}`" in card
    assert "| short | 0." in card
    assert "learning_rate: 0.003" in card
    assert "CPU" in card
    assert load_config(config).hash  # the configuration in the card is that of the run


def test_held_out_files_that_share_ids_are_refused(
    write_config: Callable[..., Path], world: Path, tmp_path: Path
) -> None:
    (tmp_path / "again").mkdir()
    file = tmp_path / "again" / "items.jsonl"
    file.write_text((world / "texts" / "items-00000.jsonl").read_text("utf-8"), "utf-8")
    items = [str(world / "texts" / "items-00000.jsonl"), str(file)]
    told = {"items": items, "formats": ["absolute-short.yaml"]}
    with pytest.raises(DataError, match=r"(?s)again.*is in .*texts.*too: give each held-out item a unique id"):
        held_out(load_config(write_config(family="llama", eval=told)))
    told = {"items": items[:1], "formats": ["pairwise-short.yaml"]}
    with pytest.raises(DataError, match=r"(?s)c\.yaml.*eval\.formats.*none of the formats pairwise-short can ask"):
        held_out(load_config(write_config(family="llama", eval=told)))


def test_claims_are_counted_against_those_of_gold(write_config: Callable[..., Path], tmp_path: Path) -> None:
    """On `scout`, whose claims are often but not always right."""
    (file,) = write_world(Settings(split="fresh", seed=21), 12, tmp_path / "fresh").files
    config = load_config(
        write_config(init=None, model=str(folder()), eval={"items": [str(file)], "formats": ["scout"]})
    )
    held = held_out(config)
    assert held is not None
    (found,) = judge_metrics(open_model(config), held, config, step=0)

    def told(text: str, verdict: str) -> tuple[str, str]:
        return " ".join(re.findall(r"\w+", text.casefold())), {"unsupported": "unclear"}.get(verdict, verdict)

    items = {item.id: item for item in read_items(str(file))}
    said = due = hits = both = 0
    for verdict in Judge(LocalEngine(str(folder()), device="cpu"), format="scout").grade_many(items.values()):
        ours = Counter(told(claim.text, claim.verdict) for claim in verdict.claims)
        gold = Counter(told(claim["text"], claim["verdict"]) for claim in items[verdict.question.item].gold["claims"])
        said, due, both = said + ours.total(), due + gold.total(), both + (ours & gold).total()
        hits += (Counter(text for text, _ in ours.elements()) & Counter(text for text, _ in gold.elements())).total()
    assert found["verdict_f1"]["value"] == pytest.approx(2 * both / (said + due))
    assert found["claim_f1"]["value"] == pytest.approx(2 * hits / (said + due))
    assert 0.5 < found["verdict_f1"]["value"] <= found["claim_f1"]["value"] <= 1
    assert found["verdict_f1"]["n"] == 12


def test_an_evaluation_that_fails_loses_no_training_and_is_made_up_for(
    write_config: Callable[..., Path], world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dikast.training import metrics

    told = {"items": [str(world / "scenes" / "items-00000.jsonl")], "formats": ["absolute-short.yaml"], "limit": 2}
    config = write_config(eval={**told, "max_tokens": 4}, save_every=0)

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("the judge cannot be asked")

    with monkeypatch.context() as changed:
        changed.setattr(metrics, "judge_metrics", fails)
        with pytest.raises(RuntimeError, match="cannot be asked"):
            sft(config)
    assert [each.name for each in (tmp_path / "run-c" / "checkpoints").iterdir()] == ["step-00000004"]
    done = sft(config)
    assert done["complete"]
    assert [line["step"] for line in read_log(tmp_path / "run-c" / "eval.jsonl")] == [4]
    sft(config)  # nothing is left to do, and nothing is done twice
    assert [line["step"] for line in read_log(tmp_path / "run-c" / "eval.jsonl")] == [4]
    both = [str(world / kind / "items-00000.jsonl") for kind in ("scenes", "pairs")]
    more = {"items": both, "limit": 1, "max_tokens": 4}
    sft(write_config(eval={**more, "formats": ["absolute-short.yaml", "pairwise-short.yaml"]}, save_every=0))
    lines = [(line["step"], line["format"]) for line in read_log(tmp_path / "run-c" / "eval.jsonl")]
    assert lines == [(4, "absolute-short"), (4, "pairwise-short")]  # a half is made whole


def test_an_evaluation_made_up_for_changes_no_weight(
    write_config: Callable[..., Path], world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dikast.training import metrics

    items = [str(world / "scenes" / "items-00000.jsonl")]
    told = {"items": items, "formats": ["absolute-short.yaml"], "limit": 2, "max_tokens": 4, "every": 2}
    lora = {"train": "lora", "lora": {"dropout": 0.3, "rank": 4}, "eval": told}  # dropout draws random numbers
    sft(write_config("whole", **lora))

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("the judge cannot be asked")

    with monkeypatch.context() as changed:
        changed.setattr(metrics, "judge_metrics", fails)
        with pytest.raises(RuntimeError, match="cannot be asked"):
            sft(write_config("broken", **lora))
    sft(write_config("broken", **lora))
    whole, broken = (
        load_file(tmp_path / f"run-{name}" / "model" / "model.safetensors") for name in ("whole", "broken")
    )
    assert all(torch.equal(whole[name], broken[name]) for name in whole)
    logs = [read_log(tmp_path / f"run-{name}" / "eval.jsonl") for name in ("whole", "broken")]
    assert [line["step"] for line in logs[0]] == [2, 4]
    assert logs[0] == logs[1]


def test_the_log_is_the_same_with_evaluations_between_its_lines_and_counts_no_padding(
    write_config: Callable[..., Path], world: Path, tmp_path: Path
) -> None:
    told = {"items": [str(world / "scenes" / "items-00000.jsonl")], "formats": ["absolute-short.yaml"], "limit": 1}
    logs = []
    for name, every in (("never", 0), ("often", 1)):
        sft(write_config(name, log_every=4, steps=5, eval={**told, "max_tokens": 4, "every": every}))
        logs.append(read_log(tmp_path / f"run-{name}" / "train.jsonl"))
    assert [line["step"] for line in logs[0]] == [1, 4, 5]
    assert [line["loss"] for line in logs[0]] == [line["loss"] for line in logs[1]]
    config = load_config(write_config("never", log_every=4, steps=5))
    (shards,) = [Shards.open(path.parent) for path in tmp_path.glob("shards/*/done.json")]
    plan = BatchPlan(shards.lengths, batch_size=4, seed=config.seed, grouped=True)
    tokens = sum(int(shards.lengths[number]) for number in plan.step(4))
    line = logs[0][-1]
    assert line["tokens_per_second"] / line["examples_per_second"] == pytest.approx(tokens / 4)


def test_curves_below_zero_are_shown_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.jsonl").write_text('{"step": 1, "loss": 1.0, "rate": 0.1}\n')
    known = {"value": -0.7, "low": -0.9, "high": -0.2, "n": 9}
    (tmp_path / "eval.jsonl").write_text(json.dumps({"step": 1, "format": "f", "pearson": known}) + "\n")
    drawn: list[float] = []
    set_limits = Axes.set_ylim

    def spy(axis: Axes, *limits: Any, **more: Any) -> Any:
        drawn.extend(limit for limit in limits[:1] if isinstance(limit, float))
        return set_limits(axis, *limits, **more)

    monkeypatch.setattr(Axes, "set_ylim", spy)
    plot(tmp_path)
    assert min(drawn) == pytest.approx(-0.92)


@pytest.mark.parametrize(("kind", "name"), [("image", "nowhere.png"), ("video", "nowhere.mp4")])
def test_what_held_out_items_show_and_is_missing_stops_the_run_before_it_starts(
    kind: str, name: str, write_config: Callable[..., Path], world: Path, tmp_path: Path
) -> None:
    row = json.loads((world / "scenes" / "items-00000.jsonl").read_text("utf-8").splitlines()[0])
    row["instruction"] = [{"type": kind, kind: name}, {"type": "text", "text": "What is there?"}]
    path = tmp_path / "blind.jsonl"
    path.write_text(json.dumps(row) + "\n", "utf-8")
    with pytest.raises(DataError, match=f"blind.jsonl:1: held-out item .*{name}"):
        sft(write_config(eval={"items": [str(path)], "formats": ["absolute-short.yaml"]}))
    assert not (tmp_path / "run-c").exists()


def test_held_out_items_without_gold_stop_the_run_before_it_starts(
    write_config: Callable[..., Path], tmp_path: Path
) -> None:
    from dikast.core.errors import DataError

    path = tmp_path / "bare.jsonl"
    path.write_text('{"id": "a", "instruction": "q", "response": "r", "rubric": "helpfulness"}\n', "utf-8")
    with pytest.raises(DataError, match=r"bare.jsonl:1: .*'a' has no gold"):
        sft(write_config(eval={"items": [str(path)]}))
    assert not (tmp_path / "run-c").exists()
