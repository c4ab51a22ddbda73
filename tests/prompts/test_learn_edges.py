"""Prompts alone: what is learnt is the template that made them, byte for byte, or nothing."""

import json
import os
import random
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from dikast.core.errors import UserError
from dikast.prompts.learn.edges import Edge
from dikast.prompts.learn.learn import Learnt, Reading, learn_format
from dikast.prompts.learn.proof import prove
from dikast.prompts.learn.rows import Rendered
from dikast.surface.cli import app

WORDS = (
    "amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "islet", "jetty", "knoll", "larch", "maple",
    "north", "ocean", "pearl", "quill", "raven", "stone", "tulip", "umber", "viola", "water", "yacht", "zebra",
)  # fmt: skip


def words(rng: random.Random, least: int = 3, most: int = 12) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(least, most)))


Style = Callable[[random.Random], str]
FIELDS: dict[str, Style] = {
    "varied": lambda rng: words(rng).capitalize() + rng.choice([".", "!", "?", "", " :)"]),
    "empty": lambda rng: rng.choice(["", words(rng), words(rng)]),
    "spaced": lambda rng: " " * rng.randint(0, 2) + words(rng) + "\n" * rng.randint(0, 2),
    "lines": lambda rng: "\n".join(words(rng) for _ in range(rng.randint(1, 4))),
    "paragraphs": lambda rng: "\n\n".join(words(rng) for _ in range(rng.randint(2, 4))),
    "sentence": lambda rng: words(rng).capitalize() + ".",
    "question": lambda rng: f"What is the {words(rng)}?",
    "sure": lambda rng: f"Sure! Here it is: {words(rng)}",
    "thanks": lambda rng: words(rng) + " Thanks",
    "quoted": lambda rng: f'"{words(rng)}"',
    "bold": lambda rng: f"**{words(rng)}**",
    "round": lambda rng: f"({words(rng)})",
    "json list": lambda rng: f'["{words(rng)}"]',
    "json": lambda rng: f'{{"a": "{words(rng)}"}}',
    "html": lambda rng: f"<p>{words(rng)}</p>",
    "end token": lambda rng: words(rng) + "</s>",
    "bullets": lambda rng: "\n".join(f"- {words(rng, 1, 3)}" for _ in range(rng.randint(2, 5))),
    "numbered": lambda rng: "\n".join(f"{i}. {words(rng, 1, 3)}" for i in (1, 2, 3)),
    "reasoned": lambda rng: f"Reason: {words(rng)}\nAnswer: {words(rng, 1, 2)}",
    "labelled": lambda rng: f"Answer: {words(rng)}",
    "dashed": lambda rng: f"{words(rng)} - {words(rng)}",
}
# Literals and slots in turn, and whether fields that are not alike are enough to learn it from prompts alone.
SKELETONS: dict[str, tuple[list[str], bool]] = {
    "blank line after the question": (
        ["[Question]\n", "instruction", "\n\n[The Start of Answer]\n", "response",
         "\n[The End of Answer]\nSay Rating: 1 to 5."], True),
    "many blank lines": (
        ["### Task\nGrade.\n\n### Question\n\n", "instruction", "\n\n\n### Response\n", "response", "\n\n### Grade\n"],
        True),
    "closing line with another sign": (
        ["### Question\n", "instruction", "\n### Answer\n", "response", "\n*** END ***\nRate it now: "], True),
    "closing line of words": (
        ["### Question\n", "instruction", "\nThat was all.\n\n### Answer\n", "response", "\n\nNow rate it.\n"], False),
    "trailing spaces": (
        ["## Q\n", "instruction", " \n## A\n", "response", "  \n\n## End\nNow [RESULT]"], True),
    "closing signs": (
        ["### Question\n", "instruction", ".\n### Answer\n", "response", " ###\n### Rate\n"], False),
    "labels": (
        ["Question: ", "instruction", "\nAnswer: ", "response", "\n\nRate the answer 1-5.\nRating: "], True),
    "brackets in a line": (
        ["Is [", "response", "] a good answer to [", "instruction", "]? Say Rating: 1."], True),
    "repeated headings": (
        ["### Text\n", "first", "\n### Mark\nx\n### Text\n", "second", "\n### Mark\nWhich one?"], True),
    "one dividing line": (
        ["You are a judge of answers.\n---\n", "instruction", "\n---\n", "response", "\n---\nRating:"], True),
    "a field shown twice": (
        ["## Q\n", "instruction", "\n## A\n", "response", "\n## Once more\n", "instruction", "\n## Rate\n"], True),
    "tags": (
        ["Grade it.\n<question>\n", "instruction", "\n</question>\n<answer>\n", "response", "\n</answer>\nGo."], True),
    "two fields under one heading": (
        ["### Case\nQuestion: ", "instruction", "\nAnswer: ", "response", "\n### Verdict\nSay it."], False),
    "two fields without a label": (
        ["### Case\n", "instruction", "\n\n", "response", "\n### Verdict\nSay it."], False),
    "words between the fields": (
        ["Compare the two texts ", "first", " and also ", "second", " and then say which one is better."], False),
    "a bracketed criterion": (
        ["### Question\n", "instruction", "\n\n### Answer\n", "response", "\n\n### Rubric\n[", "criterion",
         "]\n\nDo it now.\n### Mark: "], False),
}  # fmt: skip


def rows_of(woven: list[str], first: str, second: str, count: int = 36) -> list[tuple[int, dict[str, Any]]]:
    """Prompts of that skeleton; its fields are of these styles in turn."""
    rng = random.Random(f"{woven} {first} {second}")
    names = list(dict.fromkeys(woven[1::2]))
    found = []
    for place in range(1, count + 1):
        fields = {name: FIELDS[(first, second)[i % 2]](rng) for i, name in enumerate(names)}
        text = "".join(fields[each] if i % 2 else each for i, each in enumerate(woven))
        found.append((place, {"prompt": text, **{f"the {name}": value for name, value in fields.items()}}))
    return found


def learn(woven: list[str], rows: list[tuple[int, dict[str, Any]]], **more: Any) -> Learnt:
    slots = woven[1::2]
    names = {str(i): name for i, name in enumerate(slots, 1) if name not in slots[: i - 1]}
    reading = Reading(prompt=("prompt",), by="rows", names=names, **more)
    return learn_format(rows, reading, dialect="verdict", marker="Rating:", scale="1-5", name="ours")


def is_template(learnt: Learnt, woven: list[str]) -> bool:
    return (learnt.skeleton.literals, learnt.skeleton.slots) == (tuple(woven[::2]), tuple(woven[1::2]))


@pytest.mark.parametrize("name", SKELETONS)
def test_fields_that_are_not_alike_give_the_template_or_a_refusal(name: str) -> None:
    woven, learnable = SKELETONS[name]
    rows = rows_of(woven, "varied", "varied")
    if not learnable:
        with pytest.raises(
            UserError, match=r"do not show where these slots begin and end|no slot '2'|have no common prompt"
        ):
            learn(woven, rows)
        return
    found = learn(woven, rows)
    assert is_template(found, woven)
    assert (found.report.held_out, found.report.misfits) == (16, ())


@pytest.mark.parametrize("name", SKELETONS)
def test_no_prompt_is_learnt_wrong_whatever_its_fields_look_like(name: str) -> None:
    woven, _ = SKELETONS[name]
    for style in FIELDS:
        for pair in ((style, "varied"), ("varied", style), (style, style)):
            try:
                found = learn(woven, rows_of(woven, *pair))
            except UserError:
                continue
            assert found.report.misfits or is_template(found, woven), (name, pair, found.skeleton.literals)


@pytest.mark.parametrize("name", SKELETONS)
def test_with_fields_every_one_of_them_is_learnt(name: str) -> None:
    woven, _ = SKELETONS[name]
    for first, second in (("varied", "varied"), ("question", "sentence"), ("sure", "thanks")):
        fields = {slot: f"the {slot}" for slot in woven[1::2]}
        reading = Reading(prompt=("prompt",), fields=fields)
        rows = rows_of(woven, first, second)
        found = learn_format(rows, reading, dialect="verdict", marker="Rating:", scale="1-5", name="ours")
        assert found.report.misfits == ()
        assert is_template(found, woven)


def test_what_a_rule_decided_is_listed_with_its_reason() -> None:
    woven, _ = SKELETONS["blank line after the question"]
    (blank,) = learn(woven, rows_of(woven, "varied", "varied")).report.edges
    assert (blank.slot, blank.side, blank.text, blank.owner) == ("instruction", "end", "\n\n", "prompt")
    assert str(blank).startswith(r"'\n\n' after instruction: part of the prompt (white space that all rows share")


def test_a_full_stop_of_every_row_is_nobodys_until_the_user_says_so() -> None:
    woven, _ = SKELETONS["blank line after the question"]
    rows = rows_of(woven, "sentence", "varied")
    with pytest.raises(UserError, match=r"1 ends with '\.' in every row: part of the prompt, or of the field\?"):
        learn(woven, rows)
    assert is_template(learn(woven, rows, edges={"1.end": "field"}), woven)
    stopped = learn(woven, rows, edges={"1.end": "prompt"}).skeleton.literals[1]
    assert stopped == ".\n\n[The Start of Answer]\n"


def test_text_outside_the_slots_cannot_be_given_to_a_field() -> None:
    woven = ["Question: ", "instruction", "\nNow the answer that was given to it\n", "response", "\nRate it now: "]
    with pytest.raises(UserError, match=r"1 begins with 'Question: '"):
        learn(woven, rows_of(woven, "varied", "varied"))
    with pytest.raises(UserError, match=r"--edge 1.begin=field: 'Question: ' is outside the slot"):
        learn(woven, rows_of(woven, "varied", "varied"), edges={"1": "field"})


# --- random skeletons: learnt from prompts alone, then compared byte for byte on fresh fields

SIGNS = [
    "",
    ".",
    "?",
    "!",
    "...",
    "。",
    ";",
    ",",
    ":",
    '"',
    "'",
    "`",
    "*",
    "**",
    ")",
    "]",
    ">",
    " .",
    " ?",
    "</s>",
    "-",
]
OPENINGS = ["", '"', "'", "`", "*", "**", "(", "[", "<", "- ", "> ", "¿", "Q. ", "$", "```\n"]
BREAKS = ["\n", "\n\n", " \n", "\n---\n", "\n```\n", "\n\n\n"]
HEADS = ["### {}\n", "### {}\n\n", "[{}]\n", "**{}**\n", "{}: ", "## {}:\n", "<{}>\n", "Here is the {}:\n"]


@st.composite
def templates(draw: st.DrawFn) -> list[str]:
    """Literals and slots in turn, now and then with a sign on either side of a slot."""
    head = draw(st.sampled_from(HEADS))
    opening, sign = (st.just("") | st.just("") | st.just("") | st.sampled_from(each) for each in (OPENINGS, SIGNS))
    woven, literal = [], draw(st.sampled_from(["", "Judge the answer.\n\n", "You are a judge.\n"]))
    for slot in ("instruction", "response"):
        woven += [literal + head.format(slot.capitalize()) + draw(opening), slot]
        literal = draw(sign) + draw(st.sampled_from(BREAKS))
    return [
        *woven,
        literal + draw(st.sampled_from(["### Mark\n", "Rate it from 1 to 5.\nRating: ", "[End]\nRating:", ""])),
    ]


def of_style(draw: st.DrawFn, rng: random.Random) -> Callable[[], str]:
    """Texts that all begin and end with one sign, never do, or do at times."""
    begin, end, how = draw(st.sampled_from(OPENINGS)), draw(st.sampled_from(SIGNS)), draw(st.integers(0, 4))

    def text() -> str:
        said = words(rng) if rng.random() < 0.7 else f"{words(rng)}\n{words(rng)}"
        signed = how == 0 or (how > 1 and rng.random() < 0.5)
        return f"{begin}{said}{end}" if signed else said

    return text


@settings(max_examples=int(os.environ.get("DIKAST_EXAMPLES", "150")), deadline=None, derandomize=True)
@given(st.data(), templates(), st.integers(0, 10**6))
def test_random_skeletons_are_learnt_or_refused_never_learnt_wrong(data: Any, woven: list[str], seed: int) -> None:
    rng = random.Random(seed)
    draw = data.draw
    styles = {slot: of_style(draw, rng) for slot in woven[1::2]}
    rows = []
    for place in range(1, 31):
        fields = {slot: styles[slot]() for slot in styles}
        rows.append((place, {"prompt": "".join(fields[each] if i % 2 else each for i, each in enumerate(woven))}))
    try:
        found = learn(woven, rows)
    except UserError:
        return
    if found.report.misfits:
        return
    for begin, end in product(OPENINGS, SIGNS):
        fresh = {slot: f"{begin}{words(rng)}{end}" for slot in styles}
        text = "".join(fresh[each] if i % 2 else each for i, each in enumerate(woven))
        assert prove(found.format, found.skeleton, [Rendered(1, "prompt", text)], {(1, "prompt"): fresh}) == []


def test_a_line_between_fields_is_listed_as_it_may_be_how_every_field_begins() -> None:
    woven = ["Read the question carefully.\n", "instruction", "\nThe answer follows here\n", "response", "\nRate it: "]
    found = learn(woven, rows_of(woven, "varied", "varied"))
    assert is_template(found, woven)
    assert any(isinstance(each, Edge) and each.text == "The answer follows here" for each in found.report.edges)


@pytest.mark.parametrize(
    ("name", "edges"),
    [
        ("closing line of words", {"1": "prompt", "2": "prompt"}),
        ("closing signs", {"1.end": "prompt", "2.end": "prompt"}),
    ],
)
def test_the_user_says_whose_a_shared_text_is(name: str, edges: dict[str, str]) -> None:
    woven, _ = SKELETONS[name]
    found = learn(woven, rows_of(woven, "varied", "varied"), edges=edges)
    assert is_template(found, woven)
    assert {each.why for each in found.report.edges if each.owner == "prompt" and each.text.strip()} == {
        "as --edge says"
    }


def test_fields_that_all_begin_alike_stay_whole_where_the_user_says_so() -> None:
    woven, _ = SKELETONS["many blank lines"]
    rows = rows_of(woven, "question", "sure")
    with pytest.raises(UserError, match=r"1 begins with 'What is the ' in every row: part of the prompt, or of"):
        learn(woven, rows)
    assert is_template(learn(woven, rows, edges={"1": "field", "2": "field"}), woven)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ({"7": "field"}, "write SLOT, SLOT.begin, SLOT.end or SLOT.inside; slots are 1, 2"),
        ({"1.middle": "field"}, r"--edge 1.middle=field: write SLOT"),
        ({"1": "mine"}, "--edge 1=mine: say prompt or field"),
        ({"1.inside": "prompt"}, "text inside a slot belongs to the field"),
    ],
)
def test_wrong_edges(edges: dict[str, str], message: str) -> None:
    woven, _ = SKELETONS["labels"]
    with pytest.raises(UserError, match=message):
        learn(woven, rows_of(woven, "varied", "varied"), edges=edges)


def test_text_that_only_the_drawn_rows_share_is_left_to_the_field() -> None:
    woven, _ = SKELETONS["many blank lines"]
    rows = rows_of(woven, "varied", "varied", 60)
    drawn = learn(woven, rows).report.rows_drawn
    for place, row in rows:
        if place in drawn:  # chance: all of the twenty end in a full stop, and begin alike
            text = row["prompt"].replace("### Response\n", "### Response\nThe best: ")
            row["prompt"] = text.replace("\n\n### Grade", ".\n\n### Grade")
    assert is_template(learn(woven, rows), woven)


def test_prompts_with_a_blank_line_from_the_command_line(tmp_path: Path) -> None:
    """Once the blank line after the question was the question's, and "0 of them differ"."""
    woven, _ = SKELETONS["blank line after the question"]
    rows = rows_of(woven, "varied", "varied", 30)
    source, out = tmp_path / "rows.jsonl", tmp_path / "m.yaml"
    source.write_text("".join(json.dumps({"prompt": row["prompt"]}) + "\n" for _, row in rows))
    said = CliRunner().invoke(
        app, ["format", "learn", str(source), "--prompt", "prompt", "--accept-names", "--dialect", "verdict",
              "--marker", "Rating:", "--scale", "1-5", "--out", str(out)],
    )  # fmt: skip
    assert said.exit_code == 0, said.output
    assert "held out: 10 prompts, 0 of them differ" in said.output
    assert r"'\n\n' after instruction: part of the prompt (white space" in said.output
    assert "{{ instruction }}\n\n  [The Start of Answer]" in out.read_text()
