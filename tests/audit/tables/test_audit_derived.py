"""Columns derived from others, by hand, with what is undefined."""

import math
from typing import Any

import pytest

from dikast.audit.plan import Column, PairLabels
from dikast.audit.tables.checklist import checklist
from dikast.audit.tables.derived import Setting, in_order, make
from dikast.core.errors import DataError, UserError
from dikast.core.scale import Scale


def made(column: Column, *rows: tuple[Any, ...], setting: Setting | None = None) -> list[Any]:
    """The values of the rows, or in their place the reason why there is none."""
    inputs = list(zip(*rows, strict=True))
    found = make(column, inputs, setting or Setting(), lambda row, at: ("x.csv", row + 2))
    return [why if value is None else value for value, why in zip(found.values, found.why, strict=True)]


@pytest.mark.parametrize(
    ("operator", "value"),
    [
        ("mean", 4.5),  # (1 + 9 + 3 + 5) / 4
        ("geometric", 135**0.25),  # the fourth root of 1 * 9 * 3 * 5
        ("least", 1),
        ("greatest", 9),
        ("total", 18),
    ],
)
def test_many_columns_are_combined(operator: str, value: float) -> None:
    column = Column("x", operator, ("a", "b", "c"))
    (found,) = made(column, (1, "9", [3, 5.0]))
    assert math.isclose(found, value, rel_tol=1e-11)
    assert made(column, (1, "", [3, 5])) == ["no input"]
    assert made(column, (1, None, [3, math.nan])) == ["no input"]


def test_what_is_missing_is_skipped_where_that_is_said() -> None:
    assert made(Column("x", "mean", ("a", "b"), missing="skip"), (4, ""), (None, "NA"), (1, 2)) == [4, "no input", 1.5]


def test_weights() -> None:
    weights = (1.0, 2.0, 1.0)
    assert made(Column("x", "mean", ("a", "b", "c"), weights=weights), (1, 2, 5)) == [2.5]  # (1 + 4 + 5) / 4
    assert made(Column("x", "total", ("a", "b", "c"), weights=weights), (1, 2, 5)) == [10]
    assert made(Column("x", "geometric", ("a", "b"), weights=(1.0, 3.0)), (16, 1)) == [2]  # the fourth root of 16
    idle = Column("x", "mean", ("a", "b"), weights=(0.0, 1.0), missing="skip")
    assert made(idle, (16, ""), (16, 2)) == ["divided by zero", 2]


def test_a_weight_is_that_of_an_input_however_many_entries_it_has() -> None:
    # the mean of 5 and of 1, 1, 1, weighing alike, is 3: not 2, as if the list were three inputs
    lists = [(5, [1, 1, 1]), (5, "[1, 1]"), (5, {"ann": 1}), (5, 1)]
    assert made(Column("x", "mean", ("a", "b"), weights=(1.0, 1.0)), *lists) == [3, 3, 3, 3]
    assert made(Column("x", "geometric", ("a", "b"), weights=(1.0, 1.0)), (4, [9, 9, 9]), (4, 9)) == [6, 6]
    thirds = Column("x", "mean", ("a", "b"), weights=(1.0, 3.0))
    assert len(set(made(thirds, (0.2, [0.1, 0.2, 0.3]), (0.2, [0.3, 0.1, 0.2]), (0.2, 0.2)))) == 1  # ties stay ties
    skipping = Column("x", "mean", ("a", "b"), weights=(1.0, 1.0), missing="skip")
    assert made(skipping, (5, [1, None, 1]), (5, [])) == [3, 5]
    assert made(Column("x", "total", ("a", "b"), weights=(1.0, 2.0)), (5, [1, 1])) == [9]


def test_an_empty_list_is_a_missing_input() -> None:
    assert made(Column("x", "mean", ("a", "b")), (5, []), (5, "[]"), (5, {}), (5, [3])) == [
        "no input", "no input", "no input", 4,
    ]  # fmt: skip


def test_means_that_should_be_equal_are_equal() -> None:
    column = Column("x", "mean", ("a", "b", "c"))
    assert len(set(made(column, (0.1, 0.2, 0.3), (0.3, 0.2, 0.1), (0.2, 0.2, 0.2), (0, 0.3, 0.3)))) == 1
    assert made(Column("x", "geometric", ("a", "b")), (2, 8), (4, 4), (16, 1)) == [4, 4, 4]
    assert made(Column("x", "difference", ("a", "b")), (2.2, 1.2), (0.3, 0.1)) == [1, 0.2]


def test_what_divides_by_zero_is_undefined() -> None:
    assert made(Column("x", "ratio", ("a", "b")), (3, 4), (3, 0), (0, 0), (0, 5)) == [
        0.75, "divided by zero", "divided by zero", 0,
    ]  # fmt: skip
    assert made(Column("x", "geometric", ("a", "b")), (3, 0), (-1, -4)) == [0, "geometric mean of a negative number"]


def test_two_scores_make_a_winner() -> None:
    column = Column("x", "winner", ("a", "b"))
    assert made(column, (7, 8), (8, 8), (9, "3"), (9, "")) == ["second", "tie", "first", "no input"]
    assert made(Column("x", "winner", ("both",)), ("[7, 8]",), ([3, 1],), ([1, 2, 3],)) == [
        "second", "first", "3 numbers where two are needed",
    ]  # fmt: skip
    near = Column("x", "winner", ("a", "b"), within=0.1)
    assert made(near, (0.3, 0.2), (0.31, 0.2)) == ["tie", "first"]
    setting = Setting(labels=PairLabels("1", "2", "0|1.5"))
    assert made(column, (7, 8), (8, 8), setting=setting) == ["2", "0"]


def test_failures_are_not_averaged() -> None:
    scaled = Column("x", "mean", ("a", "b"), scale=Scale.parse("1-5"))
    assert made(scaled, (5, -1), (5, 4)) == ["no input", 4.5]
    assert made(Column("x", "mean", ("a", "b")), (5, -1.0), setting=Setting(failed=frozenset({"-1"}))) == ["no input"]
    labelled = Setting(scale=Scale.parse("pass/fail"))
    assert made(Column("x", "mean", ("a", "b")), ("pass", "FAIL"), setting=labelled) == [0.5]
    with pytest.raises(
        DataError, match=r"x.csv:3: field 'b': expected a number here, not 'good' \(for the column 'x'\)"
    ):
        made(Column("x", "mean", ("a", "b")), (1, 2), (1, "good"))


def test_checklists() -> None:
    # the color (2) hangs on the cat (1), its shade (3) on the color; the dog (4) on nothing
    parents = {"2": [1], "3": "2", "4": "0"}
    assert checklist({"1": "yes", "2": "yes", "3": "no", "4": "yes"}, parents) == 0.75
    assert checklist({"1": "no", "2": "yes", "3": "yes", "4": "Yes"}, parents) == 0.25
    assert checklist({"1": 1, "2": 0.0, "3": "1", "4": True}, parents) == 0.5
    assert checklist({"1": 0.5, "2": 1}, {"2": [1]}) == 0.75
    assert math.isnan(checklist({"1": None, "2": "yes"}, {"2": [1]}))
    assert math.isnan(checklist({"1": None, "2": "yes"}, {"2": [1]}, skip=True))  # nothing is left
    assert checklist({"1": None, "2": "yes", "3": "no"}, {"2": [1]}, skip=True) == 0
    assert checklist({"1": "no", "2": None}, {"2": [1]}) == 0  # its parent decides it
    assert math.isnan(checklist({}, {}))


@pytest.mark.parametrize(
    ("answers", "parents", "told"),
    [
        ({"1": "maybe"}, {}, "'maybe' answers '1' with neither yes nor no"),
        ({"1": 2}, {}, "neither yes nor no, nor with a number from 0 to 1"),
        ({"1": "yes"}, {"1": [7]}, "'1' depends on '7', which has no answer"),
        ({"1": "yes"}, {"9": [1]}, "parents are given for '9', which has no answer"),
        ({"1": "yes", "2": "yes"}, {"1": [2], "2": [1]}, "form a cycle"),
    ],
)
def test_checklists_that_cannot_be_read(answers: dict[str, Any], parents: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError, match=told):
        checklist(answers, parents)


def test_checklists_of_columns_and_of_cells() -> None:
    wide = Column("x", "checklist", ("cat", "grey"), parents={"grey": ["cat"]})
    assert made(wide, ("no", "yes"), ("yes", "no"), ("yes", "")) == [0, 0.5, "no input"]
    cells = Column("x", "checklist", ("answers",), parents="tree")
    assert made(cells, ({"1": "no", "2": "yes"}, {"1": [0], "2": [1]}), ("[1, 1, 0, 0]", None)) == [0, 0.5]
    with pytest.raises(DataError, match=r"x.csv:2: field 'cat': 'maybe' answers 'cat'"):
        made(wide, ("maybe", "yes"))


def test_columns_follow_what_they_are_made_of() -> None:
    a, b, c = Column("a", "mean", ("b", "x")), Column("b", "least", ("c",)), Column("c", "total", ("x", "y"))
    assert [column.name for column in in_order([a, b, c], ["a"])] == ["c", "b", "a"]
    with pytest.raises(UserError, match="b -> c -> b is a cycle"):
        list(in_order([a, b, Column("c", "total", ("b",))], ["a"]))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"operator": "meen", "inputs": ("a",)}, "there is no operator 'meen': did you mean 'mean'?"),
        ({"operator": "mean", "inputs": ()}, "mean needs the columns it is made of"),
        ({"operator": "ratio", "inputs": ("a", "b", "c")}, "ratio takes two columns, not 3"),
        ({"operator": "parse", "inputs": ("a",)}, "parse needs a dialect"),
        ({"operator": "least", "inputs": ("a",), "weights": (1.0,)}, "weights are of mean, geometric and total"),
        ({"operator": "mean", "inputs": ("a",), "weights": (-1.0,)}, "weights are numbers of 0 or more"),
        ({"operator": "mean", "inputs": ("a", "b"), "weights": (0.0, 0.0)}, "weights are all 0"),
        ({"operator": "mean", "inputs": ("a", "x")}, "it is derived from itself"),
        ({"operator": "winner", "inputs": ("a", "b"), "missing": "skip"}, "winner cannot skip what is missing"),
    ],
)
def test_columns_without_sense_are_refused(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError, match=told):
        Column("x", **arguments)
