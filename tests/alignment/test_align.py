"""The loop of an alignment: its files, its figures, interruptions, bad input."""

import json
import os
import random
import re
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml
from safetensors.torch import load_file

import tiny_models
from dikast.alignment.align import align
from dikast.alignment.align_options import AlignOptions
from dikast.core.errors import DataError, EngineError, RunError, TooManyMissing, UserError
from dikast.core.output_folder import one_writer
from dikast.core.records import read_items
from dikast.core.rubric import Rubric
from dikast.core.runs.run_files import changed_files
from dikast.engines.base import Completion, Request
from dikast.engines.spec import open_engine
from runs import dikast_here, files_in, fill, flips, nursery, small_disk
from scripted import Scripted

Made = Callable[..., AlignOptions]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.slow
def test_an_engine_that_no_spec_names_is_the_teacher(options: Made, tmp_path: Path) -> None:
    wanted = options(judge="mock:random", rounds=1)
    align(wanted, judge=open_engine("mock:oracle,r=1"))
    golds = {item.id: item.gold["scores"] for item in read_items(str(tmp_path / "run/round-1/samples.jsonl"))}
    rubrics = {item.id: item.rubric for item in read_items(str(wanted.prompts))}
    for line in lines(tmp_path / "run/round-1/rankings.jsonl"):
        rubric = rubrics[line["item"]]
        assert isinstance(rubric, Rubric)
        wished = [rubric.scale.goodness(value) for value in golds[line["item"]]]
        assert line["rewards"] == pytest.approx(wished, abs=0.1)  # the oracle is not quite sure of a label
    with pytest.raises(UserError, match="other judge"):
        align(wanted)


@pytest.mark.slow
@pytest.mark.soak(1000)
def test_two_rounds_leave_their_files_and_figures(options: Made, tmp_path: Path, tries: int) -> None:
    """And a flipped bit in any file is reported, and changes no figure."""
    told, run = list[str](), tmp_path / "run"
    wanted = options(most_kl=1e6, second_judge="mock:random")
    done = align(wanted, tell=told.append)
    assert done == json.loads((run / "report.json").read_bytes())
    assert [each["round"] for each in done["rounds"]] == list(range(len(done["rounds"])))
    start, first = done["rounds"][:2]
    for each in (start, first):
        for name in ("reward", "second", "gold", "words", "empty", "unreadable", "kl"):
            assert each["held_out"][name]["n"] == 8, name
        assert {"value", "low", "high", "n", "dropped"} <= each["held_out"]["reward"].keys()
    assert start["held_out"]["kl"]["value"] == 0
    assert first["held_out"]["kl"]["value"] != 0
    assert first["held_out"]["wins"]["n"] == 8
    assert first["held_out"]["reward"]["change"]["n"] == 8
    assert "wins" not in start["held_out"]
    folder = run / "round-1"
    for name in ("samples.jsonl", "judge/verdicts.jsonl", "rankings.jsonl", "pairs.jsonl", "model/config.json",
                 "reference.safetensors", "held-out/measures.jsonl", "report.json"):  # fmt: skip
        assert (folder / name).is_file(), name
    assert not (folder / "checkpoints").exists()
    assert changed_files(folder) == {}
    samples = list(read_items(str(folder / "samples.jsonl")))
    assert [item.id for item in samples] == [item.id for item in read_items(str(wanted.prompts))]
    assert all(len(item.responses) == 3 and len(item.gold["scores"]) == 3 for item in samples)
    rewards = {line["item"]: line["rewards"] for line in lines(folder / "rankings.jsonl")}
    pairs = list(read_items(str(folder / "pairs.jsonl")))
    assert len(pairs) == first["pairs"]
    assert first["pairs"] + sum(first["dropped"].values()) == first["prompts"] == 20
    by_id = {item.id: item for item in samples}
    for pair in pairs:
        best, worst = pair.meta["samples"]
        values = rewards[pair.id]
        assert (values[best], values[worst]) == (max(values), min(values))
        assert pair.responses == (by_id[pair.id].responses[best], by_id[pair.id].responses[worst])
        assert pair.meta["margin"] == pytest.approx(max(values) - min(values))
    assert first["samples"]["replies"] == 60
    assert {"sample", "judge", "train", "measure"} == first["seconds"].keys()
    asked = first["verdicts"]
    assert asked == 60
    assert any(line.startswith("round-1: reward ") for line in told)

    before = {path: path.stat().st_mtime_ns for path in run.rglob("*.safetensors")}
    again = align(wanted)
    assert again["rounds"] == done["rounds"]  # nothing is done twice
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*.safetensors")} == before
    (folder / "report.json").unlink()
    (folder / "held-out/asked.json").unlink()
    known = align(wanted)["rounds"][1]  # as after a kill before both were written: what was spent is not lost
    assert known["asked_held_out"] == first["asked_held_out"]
    assert known["held_out"] == first["held_out"]
    assert all(known["seconds"][step]["wall"] >= spent["wall"] for step, spent in first["seconds"].items())
    with pytest.raises(UserError, match="with other second_judge, settings: give this one another --out"):
        align(options(samples=4))
    with one_writer(run, "aligning"), pytest.raises(RunError, match="another process is aligning here"):
        align(wanted)
    found = 0
    for number, flipped in enumerate(flips(run, files_in(run), tries, seed=4)):
        sick = dikast_here("doctor", run)
        found += sick.returncode
        page = dikast_here("report", run, "-o", tmp_path / "page.json")
        assert page.returncode == 2 or figures(json.loads((tmp_path / "page.json").read_bytes())) == figures(done)
        try:
            again, refused = align(wanted), ""
        except DataError as error:
            refused = str(error)
        assert refused or figures(again) == figures(done), (number, flipped)
        assert not refused or sick.returncode == 1, (number, flipped)
        if "`dikast doctor RUN --repair`" in refused:  # the line is moved aside, and its question is asked again
            assert dikast_here("doctor", run, "--repair").returncode == 0, (number, flipped)
            assert figures(align(wanted)) == figures(done), (number, flipped)
        else:
            assert not refused or re.search(r"restore|remove|copy the model again", refused), refused
    assert found > tries * 0.8


def figures(report: dict[str, Any]) -> list[Any]:
    """What was measured in each state, and how many pairs it learnt from."""
    return [(each["round"], each["held_out"], each.get("pairs")) for each in report["rounds"]]


@pytest.mark.slow
def test_comparisons_give_the_published_rewards_also_after_full_disks(options: Made, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 16) as disk:
        wanted = options(judge="mock:oracle,r=0,nats=0.5", schedule="full", rounds=1, out=disk / "run")
        for leave in (0, 8_192, 65_536, 524_288):
            filling = fill(disk, leave)
            with pytest.raises((RunError, UserError), match=r"o space|is full|cannot be written|GB are free"):
                align(wanted)
            filling.unlink()
        done = align(wanted)
        assert not list(disk.rglob("*.part*"))
        shutil.copytree(disk / "run", tmp_path / "run")
    ranked = {line["item"]: line for line in lines(tmp_path / "run/round-1/judge/rankings.jsonl")}
    for line in lines(tmp_path / "run/round-1/rankings.jsonl"):
        assert line["rewards"] == ranked[line["item"]]["rewards"]
    assert done["rounds"][1]["verdicts"] == 20 * 3 * 2


def command(wanted: AlignOptions) -> list[str]:
    """The command line of an alignment."""
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in asdict(wanted).items()
             if value is not None and not isinstance(value, bool)]  # fmt: skip
    return ["align", *flags, "--quiet"]


@pytest.mark.slow
@pytest.mark.soak(50)
def test_a_killed_alignment_ends_with_the_same_pairs_and_weights(options: Made, tmp_path: Path, tries: int) -> None:
    whole = options(out=tmp_path / "whole")
    with nursery("torch", "transformers", "dikast.alignment.align", "dikast.training.dpo") as children:
        started = time.monotonic()
        assert children.run(command(whole)) == 0, children.said()
        taken = time.monotonic() - started
        for number in range(tries):
            parts = replace(whole, out=tmp_path / f"parts-{number}")
            rng = random.Random(number)
            for _ in range(4):
                code = children.kill_after(command(parts), rng.uniform(0, taken))
                assert code in (0, -signal.SIGKILL), children.said()
                if code == 0:
                    break
            else:
                assert children.run(command(parts)) == 0, children.said()
            found = sorted(path.relative_to(whole.out) for path in whole.out.rglob("pairs.jsonl"))
            found += sorted(path.relative_to(whole.out) for path in whole.out.rglob("samples.jsonl"))
            assert len(found) >= 4
            for name in found:
                assert (parts.out / name).read_bytes() == (whole.out / name).read_bytes(), (number, name)
            for name in sorted(path.relative_to(whole.out) for path in whole.out.rglob("model/model.safetensors")):
                one, two = load_file(whole.out / name), load_file(parts.out / name)
                assert all((tensor == two[key]).all() for key, tensor in one.items()), (number, name)


@pytest.mark.slow
def test_a_judge_that_fails_stops_the_run_and_what_it_said_is_kept(options: Made, tmp_path: Path) -> None:
    with pytest.raises(TooManyMissing, match=r"of 8 verdicts are missing, more than --max-failures allows"):
        align(options(judge="mock:failing"))
    assert len(lines(tmp_path / "run/start/held-out/judge/verdicts.jsonl")) == 8
    told = {key.replace("_", "-"): value for key, value in asdict(options(judge="mock:failing")).items()}
    given = {f"--{key}": value for key, value in told.items() if value is not None and value is not False}
    line = [part for flag, value in given.items() for part in ([flag] if value is True else [flag, str(value)])]
    again = dikast_here("align", *line)
    assert again.returncode == 3, again.stderr
    done = align(options(judge="mock:failing", max_failures="100%", rounds=1))
    assert done["rounds"][1]["dropped"]["a verdict is missing"] > 0


def test_a_plan_that_could_not_be_written_is_written_by_the_next_run(options: Made, tmp_path: Path) -> None:
    from dikast.alignment.align import _check_plan
    from dikast.alignment.align_inputs import checked

    run = tmp_path / "run"
    run.mkdir()
    (run / "checksums.json").write_text('{"align.json": ["00000000"]}')  # as a full disk, or a kill, leaves the folder
    (run / "align.json.part").write_text("{")
    _check_plan(run, checked(options()))
    assert (run / "align.json").is_file()
    assert changed_files(run) == {}


@pytest.mark.slow
def test_prompts_that_all_tie_end_the_run_with_the_reason(options: Made) -> None:
    done = align(options(judge="mock:constant"))
    assert "0 of 20 prompts give a pair, fewer than a fifth" in done["stopped"]
    assert "equal" in done["stopped"]
    assert done["model"] == options().policy
    assert len(done["rounds"]) == 2


@pytest.mark.slow
def test_empty_identical_and_missing_replies_are_counted(
    options: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is said to the first prompt, the same to the second, the third is not answered, the fourth once, and one
    of three replies to every other is empty. Of the held-out prompts the first is not answered; the second is from the
    first round on with nothing.
    """
    wanted = options(rounds=1, judge="mock:prefers-long,r=0", second_judge="mock:random", schedule="full")
    prompts, held = ([item.id for item in read_items(str(path))] for path in (wanted.prompts, wanted.held_out))
    unanswered = Completion("", finish="error", error=EngineError("too long", kind="context"))

    def say(request: Request) -> Completion | str:
        draw, item, k = request.key.rsplit("/", 2)
        if draw.endswith("/held-out"):
            number = held.index(item)
            return unanswered if number == 0 else " " if number == 1 and draw != "start/held-out" else "A circle."
        number = prompts.index(item)
        if number == 2:
            return unanswered
        if number == 0 or k == "1" or (number == 3 and k == "2"):
            return "The circle is red." if number == 1 else "\n"
        return "The circle is red." if number == 1 else f"The square is blue.{' So it is.' * int(k)}"

    monkeypatch.setattr("dikast.alignment.align._engine", lambda model, device: Scripted(say))
    told = list[str]()
    done = align(wanted, tell=told.append)
    (start, first), run = done["rounds"], tmp_path / "run"
    assert (first["prompts"], first["pairs"], first["dropped"]) == (
        20, 16, {"all replies are the same": 2, "fewer than two different replies that are not empty": 1,
                 "the policy did not answer": 1},
    )  # fmt: skip
    counts = ("replies", "empty", "repeated", "all_the_same")
    assert [first["samples"][name] for name in counts] == [57, 3 + 2 + 16, 2 + 2 + 1, 2]
    assert json.loads((run / "round-1/failed.json").read_bytes()) == {prompts[2]: "context: too long"}
    assert any(line.startswith("round-1: 1 prompts were not answered: ") for line in told)
    rewards = {line["item"]: line["rewards"] for line in lines(run / "round-1/rankings.jsonl")}
    for pair in read_items(str(run / "round-1/pairs.jsonl")):
        best, worst = pair.meta["samples"]
        assert {best, worst} == {0, 2}
        assert rewards[pair.id][best] > rewards[pair.id][worst]
        assert rewards[pair.id][1] is None
    assert first["verdicts"] == 16 * 2  # two replies in both orders
    assert first["missing"] == 0
    figures = ("reward", "second", "words", "empty", "kl", "wins")
    assert {(first["held_out"][name]["n"], first["held_out"][name]["dropped"]) for name in figures} == {(7, 1)}
    assert (start["held_out"]["empty"]["value"], first["held_out"]["empty"]["value"]) == (0, pytest.approx(1 / 7))
    row = next(line for line in lines(run / "round-1/held-out/measures.jsonl") if line["item"] == held[1])
    assert (row["reward"], row["second"], row["empty"], row["wins"]) == (0, 0, 1, 0)
    assert first["held_out"]["wins"]["value"] == pytest.approx(6 * 0.5 / 7)


@pytest.mark.slow
def test_the_classes_of_the_published_policy_with_adapters(options: Made, tmp_path: Path) -> None:
    training = tmp_path / "adapters.yaml"
    training.write_text("{train: lora, lora: {rank: 2}, learning_rate: 1.0e-3, batch_size: 8, device: cpu}")
    folder = tiny_models.build("llava_onevision", tmp_path / "onevision")
    done = align(options(policy=str(folder), training=training, rounds=1, samples=2))
    assert done["rounds"][1]["held_out"]["kl"]["n"] == 8
    assert (tmp_path / "run/round-1/model/model.safetensors").is_file()


@pytest.mark.slow
def test_rounds_may_train_in_several_processes(options: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """FSDP2 over two CPU processes ends with the weights of one."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    shipped = resources.files("dikast.training").joinpath("recipes", "fsdp2.yaml").read_text("utf-8")
    several = {"num_processes": 2, "use_cpu": True, "mixed_precision": "no", "main_process_port": 0}
    (tmp_path / "accelerate.yaml").write_text(yaml.safe_dump(yaml.safe_load(shipped) | several))
    launch = [sys.executable, "-m", "accelerate.commands.launch", "--config_file", str(tmp_path / "accelerate.yaml")]
    wanted = options(rounds=1, out=tmp_path / "alone")
    align(wanted)
    with pytest.raises(RunError, match=r"(?s)-m dikast train dpo --config .*exit code 1.*No module named"):
        align(replace(wanted, out=tmp_path / "run", launch=shlex.join([sys.executable, "-S", "-E"])))
    done = align(replace(wanted, out=tmp_path / "run", launch=shlex.join(launch)))
    assert done["rounds"][1]["held_out"]["kl"]["n"] == 8
    assert done["rounds"][1]["seconds"]["train"]["cpu"] > 1  # that of the launched processes, which import torch
    one, two = (load_file(tmp_path / name / "round-1/model/model.safetensors") for name in ("alone", "run"))
    assert max(float((tensor - two[name]).abs().max()) for name, tensor in one.items()) < 5e-4
    assert "2" in (tmp_path / "run/round-1/model/README.md").read_text("utf-8").partition("processes")[2][:20]


@pytest.mark.parametrize("step", ["answered", "measuring", "judging", "training"])
def test_a_folder_that_is_gone_ends_the_run_at_once(step: str, options: Made, tmp_path: Path) -> None:
    out, told = tmp_path / "run", list[str]()

    def lose(line: str) -> None:
        told.append(line)
        if step in line and out.exists():
            shutil.rmtree(out) if step in ("answered", "judging") else out.rename(tmp_path / "away")

    with pytest.raises(RunError, match=r"was removed, moved or replaced during the run, which stops here: put it back"):
        align(options(), tell=lose)
    assert not out.exists()
    assert step in told[-1]
