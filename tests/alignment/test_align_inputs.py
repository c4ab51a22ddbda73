"""What an alignment checks before the first reply: prompts, media, models, settings."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tiny_models
from dikast.alignment.align import align
from dikast.alignment.align_inputs import checked
from dikast.alignment.align_options import AlignOptions
from dikast.core.errors import UserError
from runs import lines
from videos import make_video

Made = Callable[..., AlignOptions]


def test_the_judge_may_be_the_policy_and_every_report_says_so(options: Made, policy: Path) -> None:
    assert checked(options(judge=str(policy))).own_judge
    assert not checked(options()).own_judge


def test_bad_input_is_told_at_once_before_the_first_sample(
    options: Made, tmp_path: Path, scenes: Path, policy: Path
) -> None:
    blind = tiny_models.build("llama", tmp_path / "blind")
    rows = lines(scenes / "prompts/items-00000.jsonl")
    broken = tmp_path / "broken.jsonl"
    broken.write_text("".join(json.dumps({**row, "rubric": None}) + "\n" for row in rows[:1]))
    twice = tmp_path / "twice.jsonl"
    twice.write_text("".join(json.dumps({"id": "same", "instruction": text}) + "\n" for text in ("a", "b")))
    nothing = tmp_path / "nothing.jsonl"
    nothing.write_text('{"id": "x", "response": "only said"}\n')
    (tmp_path / "bad.yaml").write_text("{beta: -1, betta: 2}")
    (tmp_path / "own.yaml").write_text("{model: elsewhere}")
    same = scenes / "prompts/items-00000.jsonl"
    asked: dict[str, Any] = {"id": "x", "instruction": "Describe it.", "rubric": "helpfulness"}
    media = {"picture": {"type": "image", "image": "no.png"}, "clip": {"type": "video", "video": "no.mp4"}}
    gone: dict[str, dict[str, Any]] = {
        "clip": {**asked, "instruction": [media["clip"], {"type": "text", "text": "Describe it."}]},
        **{field: {**asked, field: [media["picture"]]} for field in ("context", "reference")},
    }
    for name, row in gone.items():
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    for values, said in (
        ({"prompts": tmp_path / "clip.jsonl"}, r"clip\.jsonl:1: item 'x': .*no\.mp4 does not exist"),
        ({"prompts": tmp_path / "context.jsonl"}, r"context\.jsonl:1: item 'x': .*no\.png does not exist"),
        ({"held_out": tmp_path / "reference.jsonl"}, r"reference\.jsonl:1: item 'x': .*no\.png does not exist"),
        ({"policy": str(blind)}, r"has no vision, and item 'scenes-.*items-00000\.jsonl:1.*shows a picture"),
        ({"policy": "mock:random"}, r"--policy mock:random: is neither a model folder nor hf:ORG/NAME"),
        ({"held_out": same}, r"20 prompts of .* also stand in .*--force"),
        ({"prompts": broken}, r"(?s)item 'scenes-.*png.*does not exist"),
        ({"prompts": twice, "rubric": "helpfulness"}, r"the id 'same' is on line 1 already"),
        ({"prompts": nothing, "rubric": "helpfulness"}, r"has no instruction"),
        ({"training": tmp_path / "bad.yaml"}, r"(?s)beta.*unknown key|unknown key.*beta"),
        ({"training": tmp_path / "own.yaml"}, r"'model' is set by the alignment itself"),
        ({"training": tmp_path / "none.yaml"}, r"--training .*none\.yaml: No such file"),
        ({"judge": "mock:nobody", "max_failures": "many"}, r"(?s)2 mistakes.*--max-failures 'many'.*mock:nobody"),
        ({"prompts": twice}, r"(?s)the id 'same'"),
        (
            {"launch": "no-such-launcher --processes 2"},
            r"--launch no-such-launcher --processes 2: there is no such prog",
        ),
        ({"launch": "accelerate 'launch"}, r"--launch accelerate 'launch: No closing quotation"),
    ):
        with pytest.raises(UserError, match=said):
            align(options(**values))
        assert not (tmp_path / "run").exists()
    (tmp_path / "run").mkdir()
    (tmp_path / "run/mine.txt").write_text("mine")
    with pytest.raises(UserError, match="holds something else"):
        align(options())


def test_a_policy_need_not_see_what_it_is_not_shown(options: Made, tmp_path: Path, scenes: Path) -> None:
    """Pictures of the reference are the judge's; responses do not count."""
    blind = tiny_models.build("llama", tmp_path / "blind")
    (shown, _) = lines(scenes / "prompts/items-00000.jsonl")[0]["instruction"]
    picture = [{**shown, "image": str(scenes / "prompts" / shown["image"])}]
    for name in ("prompts", "held"):
        said = [picture, [{**shown, "image": "never-drawn.png"}]]
        row = {"id": name, "instruction": f"Draw {name}.", "rubric": "helpfulness", "reference": picture,
               "responses": said}  # fmt: skip
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    given = checked(options(policy=str(blind), prompts=tmp_path / "prompts.jsonl", held_out=tmp_path / "held.jsonl"))
    assert (len(given.prompts), given.overlap) == (1, 0)


def test_clips_that_stand_in_both_files_are_found_by_content(options: Made, tmp_path: Path) -> None:
    folder = tiny_models.build("llava_onevision", tmp_path / "onevision")
    for name in ("prompts", "held"):
        (tmp_path / name).mkdir()
        make_video(tmp_path / name / f"{name}.mp4")
        asked = [{"type": "video", "video": f"{name}.mp4"}, {"type": "text", "text": "What happens?"}]
        row = {"id": name, "instruction": asked, "rubric": "helpfulness"}
        (tmp_path / name / "items.jsonl").write_text(json.dumps(row) + "\n")
    both = {"prompts": tmp_path / "prompts/items.jsonl", "held_out": tmp_path / "held/items.jsonl"}
    with pytest.raises(UserError, match=r"1 prompts of .* also stand in"):
        checked(options(policy=str(folder), **both))


def test_prompts_that_stand_in_both_files_are_counted_when_forced(options: Made, scenes: Path) -> None:
    assert checked(options(held_out=scenes / "prompts/items-00000.jsonl", force=True)).overlap == 20
