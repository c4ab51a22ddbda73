"""Learning a format: what it finds, what it refuses, and how it names what does not fit. All prompts here are ours."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from dikast.core.errors import DataError, UserError
from dikast.core.item import Item
from dikast.core.rubric import Rubric
from dikast.core.scale import Scale
from dikast.prompts.format import format_from, load_format
from dikast.prompts.learn.document import document_of, template_of, to_yaml
from dikast.prompts.learn.learn import Learnt, Reading, learn_format
from dikast.prompts.learn.skeleton import Misfit, Skeleton

WORDS = ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "islet", "jetty", "knoll", "larch"]
Row = dict[str, Any]


def prose(rng: random.Random, count: int = 12) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(count)).capitalize() + rng.choice([".", "!", ""])


def made(build: Callable[[Row], str], count: int = 40, *, seed: int = 5) -> list[tuple[int, Row]]:
    """Rows with fields of drawn words and the prompt that `build` makes of them."""
    rng = random.Random(seed)
    rows = []
    for place in range(1, count + 1):
        row: Row = {name: prose(rng) for name in ("question", "response", "second", "reference", "criterion")}
        row |= {f"score{n}_description": prose(rng, 6) for n in (1, 2, 3)}
        rows.append((place, {**row, "prompt": build(row)}))
    return rows


def headed(row: Row) -> str:
    levels = "\n".join(f"{n}) {row[f'score{n}_description']}" for n in (1, 2, 3))
    return (
        f"## Duty\nGrade the answer, then write [RESULT] and a number.\n\n## Asked\n{row['question']}\n\n"
        f"## Answer given\n{row['response']}\n\n## Criterion\n<{row['criterion']}>\n{levels}\n\n## Verdict\n"
    )


def inline(row: Row) -> str:
    return (
        f"Which of two answers is better? Question: [{row['question']}] The first answer: [{row['response']}] The"
        f" second answer: [{row['second']}] Reply with [RESULT] and the better one."
    )


def learnt(rows: Sequence[tuple[int, Row]], **reading: Any) -> Learnt:
    return learn_format(rows, Reading(prompt=("prompt",), **reading), name="ours")


HEADED = {"1": "instruction", "2": "response", "3": "criterion"}


def test_headings_divide_and_levels_are_counted_up() -> None:
    found = learnt(made(headed), by="rows", names=HEADED)
    assert found.report.way == "headings"
    assert found.report.slots == ("instruction", "response", "criterion", "levels")
    assert (found.report.held_out, found.report.misfits) == (20, ())
    assert (found.format.scale, found.format.dialect, found.format.marker) == ("1-3", "bracketed", "[RESULT]")
    assert "\n{%+ for level in levels" not in found.format.user
    assert "{{ level.label }}) {{ level.text }}" in found.format.user


def test_fields_and_rows_alone_give_the_same_skeleton() -> None:
    rows = made(headed)
    by_fields = learnt(rows, fields={"instruction": "question", "levels": "score*_description",
                                     "response": "response", "criterion": "criterion"})  # fmt: skip
    assert by_fields.report.way == "fields"
    assert by_fields.report.skeleton_sha256 == learnt(rows, by="rows", names=HEADED).report.skeleton_sha256


def test_columns_with_names_known_from_published_sets_are_found() -> None:
    found = learnt(made(headed))
    assert found.report.columns["instruction"] == "question"
    assert found.report.columns["level 2"] == "score2_description"
    assert found.report.misfits == ()


def test_prompts_without_headings_are_divided_by_what_they_share() -> None:
    found = learnt(made(inline), by="rows", names={"1": "instruction", "2": "first", "3": "second"})
    assert found.report.way == "common text"
    assert found.report.misfits == ()
    assert found.format.kind == "pairwise"
    assert found.format.words == (("first", "A"), ("second", "B"))
    slots = found.skeleton.split(made(inline)[0][1]["prompt"])
    assert isinstance(slots, dict)
    assert slots["first"] == made(inline)[0][1]["response"]


def test_a_field_that_stands_in_the_prompt_twice_is_a_slot_twice() -> None:
    rows = made(lambda row: f"{headed(row)}\nOnce more: {row['question']}\nNow write [RESULT] and a number.")
    found = learnt(rows)
    assert found.skeleton.slots[0] == found.skeleton.slots[-1] == "instruction"
    assert found.report.misfits == ()


def test_short_fields_that_occur_by_chance_elsewhere_are_placed_by_the_other_rows() -> None:
    rows = made(headed)
    for _, row in rows[:10]:
        row["response"] = "a"  # which stands in nearly every word of the prompt
        row["prompt"] = headed(row)
    found = learnt(rows, fields={"instruction": "question", "response": "response", "criterion": "criterion",
                                 "levels": "score*_description"})  # fmt: skip
    assert found.report.misfits == ()
    assert found.skeleton.literals[1].endswith("## Answer given\n")


@pytest.mark.parametrize(
    ("changed", "fields", "told"),
    [
        ({}, {"response": "response"}, "may be missing (--field instruction=COLUMN or --field reference=COLUMN or"
         " --field criterion=COLUMN or --field context=COLUMN or --field levels=COLUMN)"),
        ({"criterion": None}, {"response": "response", "criterion": "criterion"}, "(--field criterion=COLUMN), or"),
        ({}, {"response": "response", "criterion": "reference"}, "another column (--field criterion=COLUMN)"),
        ({}, {"response": "response", "criterion": "prompt"}, "name another column (--field criterion=COLUMN)"),
        ({}, {"instruction": "question", "criterion": "criterion", "levels": "score*_description",
              "context": "response"}, "(--field response=COLUMN)"),
    ],
)  # fmt: skip
def test_a_field_that_is_missing_is_named_with_its_flag(changed: Row, fields: dict[str, str], told: str) -> None:
    rows = [(place, {**row, **changed}) for place, row in made(headed)]
    with pytest.raises(UserError) as caught:
        learnt(rows, fields=fields)
    assert told in str(caught.value)


def test_slots_without_a_name_are_told_and_never_guessed() -> None:
    with pytest.raises(UserError, match="4 slots, and 3 of them need a name") as caught:
        learnt(made(headed), by="rows")
    assert "2: after '## Answer given', such as" in str(caught.value)
    assert "--name 1=instruction" not in str(caught.value)  # "Asked" says nothing that is known
    assert "--name 3=criterion" in str(caught.value)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"9": "response"}, "there is no slot '9'; slots are 1, 2, 3, levels"),
        ({"1": "question"}, "'question' is no name; slots are 1, 2, 3, levels, names are instruction"),
        ({**HEADED, "1": "response"}, "two slots have the same name"),
    ],
)
def test_wrong_names(names: dict[str, str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        learnt(made(headed), by="rows", names=names)


def test_a_row_that_does_not_fit_is_named_with_its_first_difference() -> None:
    rows = made(headed)
    report = learnt(rows, by="rows", names=HEADED).report
    place = next(i for i, _ in rows if i not in report.rows_drawn)
    prompt = rows[place - 1][1]["prompt"]
    rows[place - 1][1]["prompt"] = prompt.replace("## Answer given", "## Answer taken")
    (misfit,) = learnt(rows, by="rows", names=HEADED).report.misfits
    at = prompt.index("## Answer given") + len("## Answer ")
    assert (misfit.row, misfit.offset) == (place, at)
    assert misfit.expected.startswith("given\n")
    assert misfit.found.startswith("taken\n")
    assert str(misfit).startswith(f"row {place}: the prompt differs at character {at}: expected 'given")


def test_a_row_by_fields_that_does_not_fit_is_named_too() -> None:
    rows = made(headed)
    report = learnt(rows).report
    place = next(i for i, _ in rows if i not in report.rows_drawn)
    rows[place - 1][1]["prompt"] = rows[place - 1][1]["prompt"].replace("a number.", "a number!")
    (misfit,) = learnt(rows).report.misfits
    assert (misfit.row, misfit.expected[:1], misfit.found[:1]) == (place, ".", "!")


def test_a_row_that_can_be_taken_apart_in_two_ways_is_a_misfit() -> None:
    skeleton = Skeleton(("Q: ", "\nA: ", ""), ("instruction", "response"))
    assert skeleton.split("Q: x\nA: y") == {"instruction": "x", "response": "y"}
    found = skeleton.split("Q: x\nA: y\nA: z", 3)
    assert isinstance(found, Misfit)
    assert str(found).startswith("row 3: 'A:' occurs in it more than once (also at character 9)")


def test_a_heading_that_only_some_rows_have_is_not_swallowed() -> None:
    rows = made(headed)
    for _, row in rows[::2]:
        row["prompt"] = row["prompt"].replace(
            "\n\n## Criterion", f"\n\n## Model answer\n{row['reference']}\n\n## Criterion"
        )
    with pytest.raises(UserError, match=r"contains a part of the prompt: '## Model answer' .* in \d+ of 20 rows"):
        learnt(rows, by="rows", names=HEADED)


def test_a_field_that_holds_the_prompt_is_refused() -> None:
    rows = [(i, {**row, "whole": row["prompt"]}) for i, row in made(headed)]
    with pytest.raises(UserError, match="contains the fixed text"):
        learnt(rows, fields={"response": "whole", "instruction": "question"})


def test_fields_that_leave_nothing_of_a_prompt_are_refused() -> None:
    rows = made(lambda row: f"{row['question']}\n{row['response']}")
    with pytest.raises(UserError, match="nothing is left of the prompt"):
        learnt(rows, fields={"response": "response", "instruction": "question"})


def test_fields_of_rows_from_two_prompts_are_refused() -> None:
    rows = made(headed, 20) + [(20 + i, row) for i, row in made(inline, 20)]
    with pytest.raises(UserError, match="no one prompt makes these rows"):
        learnt(rows, fields={"instruction": "question", "response": "response"})


def test_a_prompt_that_does_not_say_how_it_is_answered_needs_a_dialect() -> None:
    rows = made(lambda row: headed(row).replace("[RESULT]", "the mark"))
    with pytest.raises(UserError, match="name the dialect"):
        learnt(rows, by="rows", names=HEADED)


def test_the_learnt_format_says_what_an_item_lacks() -> None:
    form = learnt(made(headed)).format
    full = Rubric("r", "Is it right?", Scale.parse("1-3"), (("1", "no"), ("2", "partly"), ("3", "yes")))
    (message,) = form.ask(Item.of("q", "a"), full, (0,))
    assert "## Criterion\n<Is it right?>\n1) no\n2) partly\n3) yes\n\n## Verdict\n" in message.text
    with pytest.raises(DataError, match="does not say it for 2: add them to its 'levels'"):
        form.ask(Item.of("q", "a"), Rubric("r", "c", full.scale, (("1", "no"), ("3", "yes"))), (0,))
    with pytest.raises(DataError, match="asks on the scale 1-3, rubric 'r' is on 1-5"):
        form.ask(Item.of("q", "a"), Rubric("r", "c", Scale.parse("1-5")), (0,))
    with pytest.raises(DataError, match="cannot ask without a instruction"):
        form.ask(Item.of((), "a"), full, (0,))


def test_pictures_stand_first_where_the_rows_say_so() -> None:
    rows = [(i, {**row, "prompt": "<image>\n" + row["prompt"]}) for i, row in made(headed)]
    form = learnt(rows, by="rows", names=HEADED).format
    rubric = Rubric("r", "c", Scale.parse("1-3"), (("1", "x"), ("2", "y"), ("3", "z")))
    (message,) = form.ask(Item.of("q", "a", image="cat.png"), rubric, (0,))
    assert [type(part).__name__ for part in message.parts[:2]] == ["Image", "Span"]
    assert message.text.startswith("\n## Duty")
    (plain,) = form.ask(Item.of("q", "a"), rubric, (0,))
    assert plain.text.startswith("## Duty")


TEXT = st.text(st.sampled_from("ab{}%#\r\n \t\\'\"é"), min_size=1, max_size=12)


@settings(max_examples=60, deadline=None)
@given(st.lists(TEXT, min_size=3, max_size=3), TEXT, TEXT)
def test_any_skeleton_survives_the_template_and_the_yaml(literals: list[str], instruction: str, response: str) -> None:
    skeleton = Skeleton(tuple(literals), ("instruction", "response"))
    document = document_of("x", {"": skeleton}, dialect="bracketed", marker="", scale="", words={})
    assert document["user"] == template_of(skeleton)
    read = yaml.safe_load(to_yaml(document))
    assert read["user"] == document["user"]
    if not response.strip():
        return
    (message,) = format_from(read, path="x").ask(
        Item.of(instruction, response), Rubric("r", "c", Scale.parse("1-5")), (0,)
    )
    assert message.text == skeleton.fill({"instruction": instruction, "response": response})


def test_the_report_lies_beside_the_format(tmp_path: Path) -> None:
    found = learnt(made(headed))
    found.write(tmp_path / "sub" / "ours.yaml")
    assert load_format(tmp_path / "sub" / "ours.yaml").hash == found.report.format_hash
    report = yaml.safe_load((tmp_path / "sub" / "ours.report.json").read_text())
    assert (report["held_out"], report["misfits"], report["seed"]) == (20, [], 0)
    assert report["skeleton_sha256"] == found.skeleton.sha256
    assert 0 < report["shared"]["task"] < report["shared"]["question"] < 1


def test_a_file_of_one_row_proves_nothing() -> None:
    with pytest.raises(UserError, match="learnt from some rows and verified on others"):
        learnt(made(headed, 1))
