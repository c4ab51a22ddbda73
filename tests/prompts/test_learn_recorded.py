"""Formats learnt from 20 published rows make all the others byte for byte."""

import re
from pathlib import Path
from typing import Any

import pytest

from dikast.core.errors import UserError
from dikast.prompts.format import load_format
from dikast.prompts.learn.learn import Learnt, Reading, learn_format, prove_on
from dikast.prompts.learn.proof import prove, question_of, spelt
from dikast.prompts.learn.rows import prompts_of, read_rows

NAMES = {"1": "instruction", "2": "response", "3": "reference", "4": "criterion"}
NO_REFERENCE = {"1": "instruction", "2": "response", "3": "criterion"}
HEADINGS = {
    "instruction": "###The instruction to evaluate:",
    "response": "###Response to evaluate:",
    "reference": "###Reference Answer (Score 5):",
}
WITH, WITHOUT = (  # of the skeletons; the catalog of released judges has them too
    "e41d304e10be66b464511658a8f3c10d2f348518b524b3dba46221286616e369",
    "baa87fbf17638e6b383092641d060a4c5bded2f98102ac965d829a9fe7148404",
)
LEVELS = {"levels": "field"}  # every level ends in a full stop, and in one set they begin with the same words
EDGES = {  # every instruction of mt_bench_eval is a dialogue with the same lines around it
    "vicuna_eval": LEVELS,
    "mt_bench_eval": {**LEVELS, "1": "field"},
}
PICTURE = "ba9e1f72e4afad209e1cf2d618fcb78b7d6eb7a7fc084b1831205d44dd400568"


def learnt(recorded: Path, name: str, seed: int, **more: Any) -> Learnt:
    reading = Reading(prompt=("instruction",), names=NAMES, seed=seed, **more)
    return learn_format(recorded / "prometheus" / f"{name}.json.gz", reading)


def between(text: str, heading: str) -> str:
    """What stands under a heading, up to the empty line before the next one."""
    found = re.search(re.escape(heading) + r"\n(.*?)\n\n###", text, re.S)
    assert found
    return found[1]


@pytest.mark.parametrize("name", ["vicuna_eval", "mt_bench_eval"])
@pytest.mark.parametrize("seed", [0, 1])
def test_five_slots_from_twenty_rows_hold_on_the_other_300(recorded: Path, name: str, seed: int) -> None:
    found = learnt(recorded, name, seed, edges=EDGES[name])
    report = found.report
    assert report.slots == ("instruction", "response", "reference", "criterion", "levels")
    assert (len(report.rows_drawn), report.held_out, report.misfits) == (20, 300, ())
    assert report.skeleton_sha256 == WITH
    for row in prompts_of(read_rows(recorded / "prometheus" / f"{name}.json.gz"), ("instruction",), name):
        slots = found.skeleton.split(row.text)
        assert isinstance(slots, dict)
        assert {slot: slots[slot] for slot in HEADINGS} == {s: between(row.text, h) for s, h in HEADINGS.items()}
        levels = "".join(f"\nScore {n}: " + slots[f"level {n}"] for n in "12345")
        assert f"[{slots['criterion']}]{levels}" == between(row.text, "###Score Rubrics:")


@pytest.mark.parametrize("seed", [0, 1])
def test_lines_that_every_instruction_shares_are_not_decided_by_chance(recorded: Path, seed: int) -> None:
    with pytest.raises(UserError, match=r"1 begins with 'Here is a previous dialogue .* in every row") as caught:
        learnt(recorded, "mt_bench_eval", seed)
    assert r"1 ends with '\n\nAssistant:' in every row" in str(caught.value)
    assert "--edge SLOT[.begin|.end|.inside]=prompt" in str(caught.value)
    whole = learnt(
        recorded, "mt_bench_eval", seed, edges={**LEVELS, "1.begin": "prompt", "1.end": "prompt", "1.inside": "field"}
    )
    assert whole.report.misfits == ()
    assert whole.report.skeleton_sha256 != WITH  # the same rows, another reading of them


def test_the_stored_format_makes_the_published_rows(recorded: Path, tmp_path: Path) -> None:
    """Through the YAML on disk, read back, and nothing else of the learning."""
    found = learnt(recorded, "vicuna_eval", 0, edges=LEVELS)
    found.write(tmp_path / "vicuna.yaml")
    form = load_format(tmp_path / "vicuna.yaml")
    assert form.hash == found.format.hash == found.report.format_hash
    for row in prompts_of(read_rows(recorded / "prometheus" / "mt_bench_eval.json.gz"), ("instruction",), ""):
        slots = found.skeleton.split(row.text)
        assert isinstance(slots, dict)
        item, rubric = question_of(slots, form.scale)
        (message,) = form.ask(item, rubric, (0,))
        assert message.text == row.text


@pytest.mark.parametrize("seed", [0, 1])
def test_both_columns_of_the_pairs_without_a_reference(recorded: Path, seed: int) -> None:
    columns = ("chosen_instruction", "rejected_instruction")
    found = learn_format(
        recorded / "prometheus" / "hhh_alignment_eval.json.gz",
        Reading(columns, names=NO_REFERENCE, seed=seed, edges=LEVELS),
    )
    report = found.report
    assert report.slots == ("instruction", "response", "criterion", "levels")
    assert (len(report.rows_drawn), report.held_out, report.misfits) == (20, 402, ())
    assert report.skeleton_sha256 == WITHOUT


def test_rows_with_a_picture_by_their_fields_and_then_the_training_rows(recorded: Path) -> None:
    folder = recorded / "prometheus"
    found = learn_format(
        folder / "perception_eval_sample.jsonl", Reading(("instruction",)), dialect="bridge", images_first=True
    )
    assert found.report.way == "fields"
    assert found.report.columns["response"] == "original_response"
    assert (found.report.held_out, found.report.misfits, found.report.skeleton_sha256) == (1, (), PICTURE)
    proven = prove_on(found, folder / "perception_train_sample.json", ("conversations",))
    assert (proven.report.held_out, proven.report.misfits) == (4, ())
    rows = prompts_of(read_rows(folder / "perception_train_sample.json"), ("conversations",), "")
    assert all(row.pictured for row in rows)
    slots = found.skeleton.split(rows[0].text)
    assert isinstance(slots, dict)
    item, rubric = question_of(slots, found.format.scale, pictured=True)
    (message,) = found.format.ask(item, rubric, (0,))
    assert spelt(message) == "<image>\n" + rows[0].text


def test_three_rows_that_share_their_question_are_too_few_without_fields(recorded: Path) -> None:
    with pytest.raises(UserError, match="too few to tell fixed text"):
        learn_format(recorded / "prometheus" / "perception_train_sample.json", Reading(("conversations",)))


def test_a_published_row_with_one_character_changed_is_named(recorded: Path) -> None:
    found = learnt(recorded, "vicuna_eval", 0, edges=LEVELS)
    rows = prompts_of(read_rows(recorded / "prometheus" / "vicuna_eval.json.gz"), ("instruction",), "")[:3]
    heading = "###Reference Answer (Score 5):"
    at = rows[1].text.index(heading)
    changed = rows[1].text[:at] + heading.replace("5", "4") + rows[1].text[at + len(heading) :]
    rows[1] = type(rows[1])(rows[1].row, rows[1].column, changed, rows[1].record)
    (misfit,) = prove(found.format, found.skeleton, rows, {})
    assert (misfit.row, misfit.offset) == (2, at + heading.index("5"))
    assert misfit.expected.startswith("5):")
    assert misfit.found.startswith("4):")


def test_rows_with_and_without_a_reference_together_are_refused(recorded: Path) -> None:
    """A heading that half of the rows lack would disappear in the slot before it."""
    folder = recorded / "prometheus"
    with_reference = read_rows(folder / "vicuna_eval.json.gz")[:40]
    without = [
        (100 + i, {"instruction": row["chosen_instruction"]})
        for i, row in read_rows(folder / "hhh_alignment_eval.json.gz")[:40]
    ]
    with pytest.raises(UserError, match="a slot contains a part of the prompt: '###Reference Answer"):
        learn_format([*with_reference, *without], Reading(("instruction",), accept_names=True))
