import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from dikast.core.errors import DataError, UserError
from dikast.core.rubric import Rubric, Sheet, builtin_rubrics, load_rubric, with_scale
from dikast.core.scale import Scale

GOOD = """\
name: tone
criterion: Is the tone fit for the reader?
scale: 1-5
levels:
  1: Rude.
  3: Neutral.
  5: Warm.
weight: 2
"""


def only(source: Any) -> Rubric:
    rubric = load_rubric(source)
    assert isinstance(rubric, Rubric)
    return rubric


def write(folder: Path, text: str, name: str = "r.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", builtin_rubrics())
def test_built_in_rubrics_are_clean(name: str) -> None:
    rubric = only(name)
    assert rubric.name == name
    assert rubric.criterion.endswith("?")
    assert [label for label, _ in rubric.levels] == list(rubric.scale.labels)  # every level is described
    assert load_rubric(rubric.to_dict()) == rubric
    assert len({text for _, text in rubric.levels}) == len(rubric.levels)


def test_built_in_rubrics_have_distinct_fingerprints() -> None:
    assert len({only(name).hash for name in builtin_rubrics()}) == len(builtin_rubrics()) >= 6


def test_yaml_and_json_and_dict_are_one(tmp_path: Path) -> None:
    from_yaml = only(write(tmp_path, GOOD))
    value = yaml.safe_load(GOOD)
    tabbed = json.dumps({**value, "levels": {str(k): v for k, v in value["levels"].items()}}, indent="\t")
    assert only(write(tmp_path, tabbed, "r.json")) == from_yaml == only(value)
    assert from_yaml.levels == (("1", "Rude."), ("3", "Neutral."), ("5", "Warm."))
    assert from_yaml.weight == 2
    assert load_rubric(from_yaml) is from_yaml


def test_json_escapes_of_large_characters(tmp_path: Path) -> None:
    rubric = only(write(tmp_path, json.dumps({"criterion": "Is it \U0001f600 \u00e9?"}), "r.json"))
    assert rubric.criterion == "Is it \U0001f600 \u00e9?"
    assert rubric.name == "r"  # after its file


def test_fingerprint_is_a_contract() -> None:
    rubric = only(yaml.safe_load(GOOD))
    assert (
        rubric.hash == "7f35dc7e7678f24e162952280b2f9d9a"
    )  # verdicts on disk refer to it: a change here needs a migration
    assert only({**yaml.safe_load(GOOD), "weight": 1}).hash == rubric.hash  # no judge is shown the weight
    for change in ({"criterion": "Else?"}, {"levels": {1: "Rude."}}, {"scale": "0-5"}, {"lower_is_better": True}):
        assert only({**yaml.safe_load(GOOD), **change}).hash != rubric.hash


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "message"),
    [
        ("criterion:", "criterium:", 2, "criterium", "did you mean 'criterion'"),
        ("weight: 2", "colour: red", 8, "colour", "known keys: name, criterion"),
        ("weight: 2", "weight: -1", 8, "weight", "above 0"),
        ("weight: 2", "weight: .nan", 8, "weight", "above 0"),
        ("weight: 2", "weight: 1" + "0" * 400, 8, "", "a number of more than 64 bits"),
        ("weight: 2", "weight: heavy", 8, "weight", "above 0"),
        ("weight: 2", "weight: true", 8, "weight", "above 0"),
        ("  5: Warm.", "  6: Warm.", 7, "levels.6", "not on the scale 1-5"),
        ("  5: Warm.", "  five: Warm.", 7, "levels.five", "not on the scale 1-5"),
        ("  5: Warm.", "  5:", 7, "levels.5", "needs a description"),
        ("  5: Warm.", "  5: 5", 7, "levels.5", "needs a description"),
        ("  5: Warm.", "  3: Warm.", 7, "levels.3", "twice"),
        ("  5: Warm.", "  '3.0': Warm.", 7, "levels.3.0", "described twice"),
        ("  5: Warm.", "  2: Warm.", 7, "levels.2", "from the lowest value to the highest"),
        ("scale: 1-5", "scale: 5-1", 3, "scale", "runs backwards"),
        ("scale: 1-5", "scale: 5", 3, "scale", "is not a scale"),
        ("name: tone", "name: 7", 1, "name", "must be text"),
        ("criterion: Is the tone fit for the reader?", "criterion: ''", 2, "criterion", "needs a 'criterion'"),
        ("weight: 2", "lower_is_better: maybe", 8, "lower_is_better", "true or false"),
        ("weight: 2", "weight: 2\nweight: 3", 9, "weight", "twice"),
        ("weight: 2", "weight: [", 9, "", "not valid YAML"),
        ("weight: 2", "? [a]\n: 2", 8, "", "a key must be one word"),
        ("weight: 2", "weight: !kg 2", 8, "", "tag"),
    ],
)
def test_mistakes_name_line_and_field(tmp_path: Path, old: str, new: str, line: int, field: str, message: str) -> None:
    assert old in GOOD
    path = write(tmp_path, GOOD.replace(old, new))
    with pytest.raises(DataError, match=message) as caught:
        load_rubric(path)
    assert (caught.value.path, caught.value.line, caught.value.field) == (str(path), line, field)
    assert str(caught.value).startswith(f"{path}:{line}: ")


def test_mistakes_in_json_name_the_line(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        '{\n  "criterion": "c?",\n  "levels": {\n    "1": "a",\n    "9": "b"\n  },\n  "scale": "1-5"\n}',
        "r.json",
    )
    with pytest.raises(DataError, match="not on the scale") as caught:
        load_rubric(path)
    assert caught.value.line == 5
    with pytest.raises(DataError, match=r"r\.json:2: not valid JSON"):
        load_rubric(write(tmp_path, '{\n"a": [}', "r.json"))


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ({1: "a", 2: "b", 4: "c"}, "leave out 3 and no scale is stated"),  # a gap
        ({1: "a"}, "fewer than two"),
        ({1: "a", 10**12: "b"}, "leave out 2, 3"),  # found without listing a trillion labels
        ({"good": "a", "bad": "b"}, "need a 'scale'"),
        (["a", "b"], "need a 'scale'"),
    ],
)
def test_levels_without_a_scale(levels: Any, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        load_rubric({"criterion": "c?", "levels": levels})
    assert caught.value.field == "levels"


def test_levels_span_the_scale() -> None:
    assert only({"criterion": "c?", "levels": {0: "a", 1: "b", 2: "c"}}).scale == Scale.parse("0-2")
    assert only({"criterion": "c?", "levels": {"1": "a", "2": "b"}}).scale == Scale.parse("1-2")  # as in JSON
    assert only({"criterion": "c?"}).scale == Scale.parse("1-5")
    sorted_as_text = {"1": "a", "10": "j", "2": "b"}  # what tools make of a dict's order must not matter
    assert [label for label, _ in only({"criterion": "c?", "scale": "1-10", "levels": sorted_as_text}).levels] == [
        "1", "2", "10",
    ]  # fmt: skip


def test_levels_in_a_file_run_upwards(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_text("criterion: c?\nlevels:\n  2: a\n  1: b\n")
    with pytest.raises(DataError, match=r"r\.yaml:4: field 'levels\.1'.*from the lowest value to the highest"):
        load_rubric(path)
    path.write_text("criterion: c?\nscale: A-C\nlevels:\n  A: best\n  B: middling\n  C: worst\n")
    assert [label for label, _ in only(path).levels] == ["C", "B", "A"]


@pytest.mark.parametrize(
    ("scale", "labels", "values"),
    [
        ({"labels": ["poor", "fair", "good"]}, ("poor", "fair", "good"), (1, 2, 3)),
        ({"labels": [0, 5, 10]}, ("0", "5", "10"), (0, 5, 10)),  # numbers mean themselves
        ({"labels": ["no", "yes"], "values": [0, 1]}, ("no", "yes"), (0, 1)),
    ],
)
def test_scales_spelt_out(scale: Any, labels: tuple[str, ...], values: tuple[float, ...]) -> None:
    assert only({"criterion": "c?", "scale": scale}).scale == Scale(labels, values)


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        ({"label": ["a", "b"]}, "did you mean 'labels'"),
        ({"labels": "ab"}, "a list of 'labels'"),
        ({"labels": ["a", "b"], "values": [1]}, "one value for each"),
        ({"labels": ["a", "b"], "values": ["low", "high"]}, "must be numbers"),
        ({"labels": ["a", "b"], "values": 3}, "a list of numbers"),
        ({"labels": ["a", "b"], "values": [2, 1]}, "must rise"),
    ],
)
def test_scales_spelt_out_wrongly(scale: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_rubric({"criterion": "c?", "scale": scale})


def test_words_of_yaml_stay_words(tmp_path: Path) -> None:
    rubric = only(write(tmp_path, "criterion: c?\nscale: yes/no\nlevels:\n  no: Wrong.\n  yes: Right.\n"))
    assert rubric.levels == (("no", "Wrong."), ("yes", "Right."))


SHEET = """\
name: answer
scale: 0-10
criteria:
  - name: right
    criterion: Is it right?
    weight: 3
  - name: short
    criterion: Is it short?
    scale: pass/fail
  - name: harm
    criterion: Does it harm?
    lower_is_better: true
"""


def test_sheets_by_hand(tmp_path: Path) -> None:
    sheet = load_rubric(write(tmp_path, SHEET))
    assert isinstance(sheet, Sheet)
    assert [rubric.name for rubric in sheet] == ["right", "short", "harm"]
    assert [str(rubric.scale) for rubric in sheet] == ["0-10", "pass/fail", "0-10"]
    # weights 3, 1, 1; goodness 0.8, 1, 1 - 0.1 = 0.9: (2.4 + 1 + 0.9) / 5 = 0.86
    assert sheet.total({"right": 8, "short": 1, "harm": 1}) == pytest.approx(0.86)
    assert sheet.total({"right": 8, "short": 1, "harm": None}) is None  # unknown is not zero
    assert sheet.total({"right": 8, "short": 1}) is None


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("name: short", "name: right", 7, "two criteria are called 'right'"),
        ("criterion: Is it short?", "criterion:", 8, "needs a 'criterion'"),
        ("scale: 0-10", "scales: 0-10", 2, "did you mean 'scale'"),
        ("scale: 0-10", "weight: 3", 2, "unknown key 'weight'"),
    ],
)
def test_sheet_mistakes(tmp_path: Path, old: str, new: str, line: int, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        load_rubric(write(tmp_path, SHEET.replace(old, new)))
    assert caught.value.line == line


def test_a_weight_changes_a_sheet(tmp_path: Path) -> None:
    one, other = load_rubric(write(tmp_path, SHEET)), load_rubric(write(tmp_path, SHEET.replace("3", "4"), "s.yaml"))
    assert one.hash != other.hash
    for criteria in ([], "x", None, [3]):
        with pytest.raises(DataError, match=r"a list of at least one|each entry"):
            load_rubric({"criteria": criteria})


def test_an_edited_file_is_read_again(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    before = only(path)
    write(tmp_path, GOOD.replace("Warm", "Kindly warm"))
    assert only(path) != before
    for i in range(20):  # of one size, within one tick of the file system's clock
        write(tmp_path, f"criterion: Is it {i:02}?")
        assert only(path).criterion == f"Is it {i:02}?"


def test_files_that_are_no_rubric(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no such rubric file.*did you mean 'helpfulness'"):
        load_rubric("helpfullness")
    with pytest.raises(UserError, match="Is a directory"):
        load_rubric(tmp_path)
    for text, message in (("", "empty"), ("- a", "is a mapping"), ("just words", "is a mapping")):
        with pytest.raises(DataError, match=message):
            load_rubric(write(tmp_path, text))
    broken = tmp_path / "broken.yaml"
    broken.write_bytes(b"name: a\ncriterion: \xff\n")
    with pytest.raises(DataError, match=r"broken\.yaml:2: byte 19 is not UTF-8: save"):
        load_rubric(broken)
    large = tmp_path / "items.json"
    with large.open("wb") as file:
        file.truncate(2**30)  # sparse: it has no such blocks on disk
    with pytest.raises(DataError, match="is this the file you meant"):
        load_rubric(large)


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [*a]\n",
        "a: &a [1, 1, 1, 1, 1, 1, 1, 1]\n"
        + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 8)}]\n" for i in range(12)),
        "{" * 3000,
    ],
)
def test_documents_that_would_never_end(tmp_path: Path, text: str) -> None:
    with pytest.raises(DataError, match=r"nested too deeply|aliases written out"):
        load_rubric(write(tmp_path, text))


def test_another_scale_keeps_the_meaning_of_the_levels() -> None:
    rubric = load_rubric({"criterion": "Is it good?", "levels": {str(i): f"level {i}" for i in range(1, 6)}})
    assert isinstance(rubric, Rubric)

    def levels(scale: str) -> dict[str, str]:
        moved = with_scale(rubric, scale)
        assert isinstance(moved, Rubric)
        return dict(moved.levels)

    assert levels("1-10") == {"1": "level 1", "10": "level 5"}
    # (v - 1) / 4 of the way from 0 to 100: 0, 25, 50, 75, 100; from 1 to 3 the labels stand at 0, 1/2 and 1
    assert list(levels("0-100")) == ["0", "25", "50", "75", "100"]
    assert levels("1-3") == {"1": "level 1", "2": "level 3", "3": "level 5"}
    assert levels("pass/fail") == {"fail": "level 1", "pass": "level 5"}
    assert (levels("A-E")["A"], levels("A-E")["E"]) == ("level 5", "level 1")
    assert with_scale(rubric, "1-5") == rubric
    sheet = with_scale(Sheet("both", (rubric,)), "0-1/0.25")
    assert isinstance(sheet, Sheet)
    assert dict(next(iter(sheet)).levels)["0.75"] == "level 4"
    with pytest.raises(UserError, match="runs backwards"):
        with_scale(rubric, "5-1")


def test_a_rubric_from_python_takes_a_scale_in_words() -> None:
    rubric = Rubric("polite", "Is it polite?", "1-3", {3: "yes", 1: "no"})
    assert rubric.scale == Scale.parse("1-3")
    assert rubric.levels == (("1", "no"), ("3", "yes"))
    assert rubric == Rubric("polite", "Is it polite?", Scale.parse("1-3"), (("1", "no"), ("3", "yes")))
    assert rubric.hash == load_rubric({"name": "polite", "criterion": "Is it polite?", "scale": "1-3",
                                       "levels": {"1": "no", "3": "yes"}}).hash  # fmt: skip
    assert replace(rubric, weight=2.0).scale is rubric.scale
    assert repr(rubric) == "Rubric('polite', 'Is it polite?', '1-3')"
    assert Rubric(criterion="Is it polite?").scale == Scale.parse("1-5")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"scale": "5 to 1"}, "write a range"),
        ({"scale": 5}, "scale 5: write a range"),
        ({"criterion": None}, "needs a criterion"),
        ({"levels": {"7": "best"}}, "the level '7' is not on the scale 1-5"),
    ],
)
def test_a_rubric_from_python_that_cannot_be_meant_fails_at_once(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError, match=told):
        Rubric(**{"name": "polite", "criterion": "Is it polite?", "scale": "1-5", **fields})
