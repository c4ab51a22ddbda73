"""Derived columns, long form, lists in cells and recorded replies, from the command line."""

import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from audit_tables import Run, refused, rows_of, values, write
from dikast.audit.audit import audit_file
from dikast.audit.plan import AuditPlan, Column
from dikast.core.scale import Scale
from dikast.prompts.recorded import reply_reader

CONFIG = """
score: overall
gold: people
scale: 1-5
columns:
  overall: {mean: [clarity, accuracy]}
  people: {mean: ratings}
  best: {winner: [scores.0, scores.1]}
  shorter: {ratio: [clarity, zero]}
"""
ROWS: list[dict[str, Any]] = [
    {"id": "a", "clarity": 3, "accuracy": 4, "ratings": "[4, 4]", "scores": "[7, 8]", "zero": 0},
    {"id": "b", "clarity": 1, "accuracy": 2, "ratings": "[1, 2]", "scores": "[8, 8]", "zero": 2},
    {"id": "c", "clarity": 5, "accuracy": 5, "ratings": "[5, 4]", "scores": "[9, 3]", "zero": 0},
    {"id": "d", "clarity": 2, "accuracy": "", "ratings": "[2, 2]", "scores": "[1, 3]", "zero": 4},
]


def config(tmp_path: Path, text: str = CONFIG) -> Path:
    (tmp_path / "audit.yaml").write_text(text)
    return tmp_path / "audit.yaml"


def test_columns_of_a_configuration(tmp_path: Path, run_audit: Run) -> None:
    file, settings = write(tmp_path / "x.csv", ROWS), config(tmp_path)
    found = run_audit(file, "--config", settings)
    # 3.5, 1.5 and 5 against 4, 1.5 and 4.5: the judge is right once
    agreement = values(found)
    assert (agreement["exact"]["value"], agreement["exact"]["n"]) == (1 / 3, 3)
    assert agreement["mae"]["value"] == 1 / 3
    assert found["notes"] == ["column 'overall': 1 row of 4 undefined (1 no input)"]
    assert found["plan"]["columns"]["overall"] == {"mean": ["clarity", "accuracy"]}
    wins = run_audit(file, "--config", settings, "--score", "best", "--pairwise", "--gold", "best")
    assert rows_of(wins, "preferences", "side")["second wins"]["share"]["value"] == 0.5
    means = run_audit(file, "--config", settings, "--mean", "shorter", "--mean", "scores.1")
    rows = rows_of(means, "means", "column")
    assert (rows["shorter"]["mean"]["value"], rows["shorter"]["n"], rows["scores.1"]["mean"]["value"]) == (0.5, 2, 5.5)
    assert "column 'shorter': 2 rows of 4 undefined (2 divided by zero)" in means["notes"]


def test_undefined_rows_are_counted_among_those_that_are_audited(tmp_path: Path, run_audit: Run) -> None:
    found = run_audit(
        write(tmp_path / "x.csv", ROWS), "--config", config(tmp_path), "--mean", "shorter", "--where", "zero=0"
    )
    assert "column 'shorter': 2 rows of 2 undefined (2 divided by zero)" in found["notes"]
    assert not any("'overall'" in note for note in found["notes"])


def test_an_undefined_verdict_is_a_failure_with_its_reason(tmp_path: Path, run_audit: Run) -> None:
    found = run_audit(write(tmp_path / "x.csv", ROWS), "--config", config(tmp_path), "--score", "shorter",
                      "--allow-unread")  # fmt: skip
    failures = rows_of(found, "failures", "status")
    assert (failures["divided by zero"]["count"], failures["off_scale"]["count"]) == (2, 2)  # the others are .5


def test_a_configuration_may_come_through_a_pipe(tmp_path: Path, run_audit: Run) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text(CONFIG), daemon=True)
    writer.start()
    found = run_audit(write(tmp_path / "x.csv", ROWS), "--config", pipe)
    writer.join()
    assert values(found)["exact"]["n"] == 3


def test_the_same_nouns_in_python(tmp_path: Path) -> None:
    columns = (Column("overall", "mean", ("clarity", "accuracy")), Column("people", "mean", ("ratings",)))
    plan = AuditPlan(write(tmp_path / "x.csv", ROWS), score="overall", gold=("people",), columns=columns)
    assert audit_file(plan)["agreement"].estimate("pearson").n == 3


def test_all_mistakes_of_a_configuration_at_once(tmp_path: Path, run_audit: Run) -> None:
    text = """
scor: overall
columns:
  overall: {meen: [clarity, accuracy]}
  human: {mean: ratings, wieghts: [1], scale: 5-1}
  best: {winner: [a, b, c], parents: x}
  said: {parse: reply}
  both: {mean: a, least: b}
  bare: 3
"""
    told = refused(run_audit, write(tmp_path / "x.csv", ROWS), "--config", config(tmp_path, text))
    for line in (
        "2: field 'scor': unknown key: did you mean 'score'?",
        "4: field 'columns.overall.meen': unknown key: did you mean 'mean'?",
        "5: field 'columns.human.wieghts': unknown key: did you mean 'weights'?",
        "5: field 'columns.human.scale': scale '5-1' runs backwards",
        "6: field 'columns.best': winner takes two columns, not 3; winner has no parents",
        "7: field 'columns.said': parse needs a dialect",
        "8: field 'columns.both': the column has 2 operators (mean, least)",
        "9: field 'columns.bare': a column is a mapping with one operator",
    ):
        assert line in told


def test_derived_columns_that_cannot_be_made(tmp_path: Path, run_audit: Run) -> None:
    file = write(tmp_path / "x.csv", ROWS)
    settings = config(tmp_path, "columns: {clarity: {mean: [accuracy, zero]}, far: {mean: [clarty]}}")
    for used in ("clarity", "far", "zero"):  # all are told at once, also those that nothing asks for
        told = refused(run_audit, file, "--config", settings, "--mean", used)
        assert "2 mistakes in the columns" in told
        assert "the file has a column 'clarity' already" in told
        assert "column 'far' is made of 'clarty': " in told
        assert "no column 'clarty'; did you mean 'clarity'?" in told


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ("own: {mean: [clarity, own]}", "'columns.own': it is derived from itself"),
        (
            "a: {mean: [b]}\n  b: {least: [c]}\n  c: {total: [a]}",
            "'columns.a': a -> b -> c -> a is a cycle",
        ),
        ("bare: {winner: [clarity, accuracy, zero]}", "winner takes two columns, not 3"),
        ("odd: {meen: [clarity]}", "did you mean 'mean'?"),
        ("flat: {mean: [clarity, accuracy], weights: [0, 0]}", "weights are all 0"),
        ("gone: {mean: [clarity@none.csv]}", "column 'gone' is made of 'clarity@none.csv'"),
    ],
)
def test_mistakes_in_columns_that_nothing_asks_for(columns: str, told: str, tmp_path: Path, run_audit: Run) -> None:
    file, settings = (
        write(tmp_path / "x.csv", ROWS),
        config(tmp_path, f"columns:\n  fine: {{mean: clarity}}\n  {columns}"),
    )
    assert told in refused(run_audit, file, "--config", settings, "--mean", "zero")


def test_an_operator_on_two_numbers_that_never_finds_two(tmp_path: Path, run_audit: Run) -> None:
    file, settings = write(tmp_path / "x.csv", ROWS), config(tmp_path, "columns: {best: {winner: clarity}}")
    told = refused(run_audit, file, "--config", settings, "--score", "best", "--pairwise")
    assert (
        "winner takes two columns, or one of two entries; every row of clarity has 1 number where two are needed"
        in told
    )


def test_a_winner_from_two_files(tmp_path: Path, run_audit: Run) -> None:
    one = write(tmp_path / "one.csv", [{"id": k, "score": k % 5, "gold": "a"} for k in range(10)])
    write(tmp_path / "two.csv", [{"id": k, "score": 2} for k in range(9)])
    settings = config(tmp_path, "columns: {won: {winner: [score, score@two.csv]}}")
    found = run_audit(one, "--config", settings, "--score", "won", "--gold", "gold", "--pairwise")
    # 0 1 2 3 4 0 1 2 3 against 2: the first wins 3 times, ties twice and loses 4 times; the tenth has no partner
    assert [row["share"]["value"] for row in found["tables"]["preferences"]["rows"][:3]] == [3 / 9, 2 / 9, 4 / 9]
    assert rows_of(found, "failures", "status")["failed"]["count"] == 1


LONG: list[dict[str, Any]] = [
    {"item": item, "who": who, "rating": rating, "model": f"m{item}"}
    for item, ratings in enumerate(
        [{"ann": 3, "bob": 4, "gpt": 4}, {"ann": 1, "gpt": 2}, {"bob": 5, "ann": 5, "gpt": 3}]
    )
    for who, rating in ratings.items()
]


def test_long_form(tmp_path: Path, run_audit: Run) -> None:
    file = write(tmp_path / "x.csv", LONG)
    arguments = ("--long", "who", "--id", "item", "--score", "rating.gpt", "--gold", "rating.*", "--scale", "1-5")
    found = run_audit(file, *arguments, "--by", "model")
    assert found["rows"] == 3
    assert values(found)["bias"]["value"] == -0.5 / 3  # 4, 2, 3 against 3.5, 1, 5
    assert [row["raters"] for row in found["tables"]["rater pairs"]["rows"]] == ["rating.ann - rating.bob"]
    assert len(found["tables"]["by model"]["rows"]) == 3
    backwards = run_audit(write(tmp_path / "y.csv", LONG[::-1]), *arguments)
    assert values(backwards)["spearman"]["value"] == values(found)["spearman"]["value"]


def test_long_form_of_another_file(tmp_path: Path, run_audit: Run) -> None:
    write(tmp_path / "people.csv", [row for row in LONG if row["who"] != "gpt"])
    file = write(tmp_path / "judge.csv", [{"item": k, "score": s} for k, s in enumerate([4, 2, 3, 5])])
    arguments = ("--long", "who@people.csv", "--id", "item", "--score", "score", "--gold", "rating.*@people.csv")
    found = run_audit(file, *arguments, "--scale", "1-5")
    assert values(found)["bias"]["value"] == -0.5 / 3
    assert "1 row without a partner in people.csv (by item)" in found["notes"]
    settings = config(tmp_path, "columns: {people: {total: 'rating.*@people.csv'}}")
    found = run_audit(file, *arguments[:4], "--config", settings, "--mean", "people")
    assert rows_of(found, "means", "column")["people"]["mean"]["value"] == (7 + 1 + 10) / 3


def test_a_crowd_is_taken_rating_by_rating(tmp_path: Path, run_audit: Run) -> None:
    rows = [{"id": k, "who": f"w{k}-{j}", "rating": 1 + (k + j) % 5} for k in range(12) for j in range(3)]
    found = run_audit(write(tmp_path / "x.csv", rows), "--long", "who", "--gold", "rating.*", "--scale", "1-5")
    assert [row["raters"] for row in found["tables"]["rater pairs"]["rows"]] == [
        "rating.#1 - rating.#2", "rating.#1 - rating.#3", "rating.#2 - rating.#3",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "arguments", "told"),
    [
        (LONG, ("--score", "rating"), "x.csv:3: field 'rating': differs from line 2"),
        (LONG, ("--score", "rating", "--gold", "rating.*"), "'rating' differs among raters"),
        ([*LONG, LONG[0]], ("--gold", "rating.*"), "'ann' is repeated here for '0' (first on line 2)"),
        ([*LONG, {**LONG[0], "who": ""}], ("--gold", "rating.*"), "x.csv:10: field 'who': no rater is named here"),
        (LONG, ("--gold", "rating.eve"), "there is no column 'rating.eve'"),
        (LONG, ("--gold", "ratng.*"), "there is no column 'ratng'; did you mean 'rating'?"),
        ([{**row, "rating": ""} for row in LONG], ("--gold", "rating.*"), "nobody rated 'rating'"),
    ],
)
def test_long_form_that_cannot_be_read(
    rows: list[dict[str, Any]], arguments: tuple[str, ...], told: str, tmp_path: Path, run_audit: Run
) -> None:
    file = write(tmp_path / "x.csv", rows)
    assert told in refused(run_audit, file, "--long", "who", "--id", "item", *arguments)


def test_all_raters_need_a_long_form(tmp_path: Path, run_audit: Run) -> None:
    assert "(--long)" in refused(run_audit, write(tmp_path / "x.csv", ROWS), "--gold", "ratings.*")
    assert "did you mean 'who'?" in refused(
        run_audit, write(tmp_path / "y.csv", LONG), "--long", "whoo", "--id", "item", "--gold", "rating.*"
    )


REPLIES = [
    {"id": k, "reply": f"Both are fine. [[{mark}]]", "gold": "a"} for k, mark in enumerate(["A>B"] * 8 + ["B>>A"])
]


def test_recorded_replies_of_pairs(tmp_path: Path, run_audit: Run) -> None:
    rows = [*REPLIES, {"id": 9, "reply": "I am lost.", "gold": "a"}]
    arguments = ("--score", "reply", "--parse", "arena", "--gold", "gold", "--pairwise")
    found = run_audit(write(tmp_path / "x.jsonl", rows), *arguments)
    assert rows_of(found, "accuracy", "statistic")["accuracy (all)"]["as shown"]["value"] == 8 / 9
    assert rows_of(found, "failures", "status")["unparsed"]["count"] == 1
    twice = run_audit(tmp_path / "x.jsonl", *arguments, "--swapped", "reply", "--swapped-as", "slots")
    assert values(twice, "orders")["same verdict in both orders"]["value"] == 0
    lost = write(tmp_path / "lost.jsonl", [*rows, {"id": 10, "reply": "Neither, I would say.", "gold": "a"}])
    told = refused(run_audit, lost, *arguments)
    assert "the dialect arena reads no verdict in 2 of the 11 replies in column 'reply'" in told
    assert "'...I am lost.', '...Neither, I would say.'" in told
    assert rows_of(run_audit(lost, *arguments, "--allow-unread"), "failures", "status")["unparsed"]["count"] == 2
    assert "did you mean 'arena'?" in refused(run_audit, lost, "--score", "reply", "--parse", "arna", "--pairwise")


def test_strong_choices_in_recorded_replies_count_as_those_of_a_column(tmp_path: Path, run_audit: Run) -> None:
    marks = ["A>B", "A>>B", "B>A", "B>>A", "A=B", "A>>B", "B>A", "A>B", "A>>B"]
    rows = [
        {"id": k, "reply": f"I have read both. [[{mark}]]", "mark": mark, "one": f"m{k % 2}", "two": "m2"}
        for k, mark in enumerate(marks)
    ]
    file = write(tmp_path / "x.jsonl", rows)
    players = ("--pairwise", "--first", "one", "--second", "two", "--strong", "3", "--draws", "20")
    read, marked = (
        run_audit(file, "--score", "reply", "--parse", "arena", *players),
        run_audit(file, "--score", "mark", *players),
    )
    labelled = run_audit(file, "--score", "reply", "--parse", "arena", *players, "--pair-labels", "x,y,z")
    for player, row in rows_of(marked, "players", "player").items():
        same = rows_of(read, "players", "player")[player]
        counts = ("games", "strong wins", "wins", "ties", "losses", "strong losses")
        assert [same[name] for name in counts] == [row[name] for name in counts]
        assert same["mean grade"]["value"] == row["mean grade"]["value"]
    assert rows_of(read, "players", "player")["m2"]["strong wins"] == 1
    assert rows_of(labelled, "players", "player")["m2"].get("strong wins", 0) == 0


def test_recorded_replies_on_a_scale(tmp_path: Path, run_audit: Run) -> None:
    rows = [{"id": k, "out": f"Good enough. [RESULT] {k % 5 + 1}", "gold": k % 5 + 1} for k in range(20)]
    file = write(tmp_path / "x.jsonl", rows)
    found = run_audit(file, "--score", "out", "--parse", "bracketed", "--gold", "gold", "--scale", "1-5")
    assert values(found)["exact"]["value"] == 1
    told = refused(run_audit, file, "--score", "out", "--parse", "bracketed", "--gold", "gold")
    assert "say what the replies state: --scale, or --pairwise for choices" in told
    column = Column("said", "parse", ("out",), dialect="bracketed", scale=None)
    plan = AuditPlan(file, score="said", gold=("gold",), columns=(column,))
    with pytest.raises(Exception, match="reply_reader"):
        audit_file(plan)
    found_too = audit_file(replace(plan, replies=reply_reader, scale=Scale.parse("1-5")))
    assert found_too["agreement"].estimate("exact").value == 1


def test_lists_of_annotations_in_cells(tmp_path: Path, run_audit: Run) -> None:
    rows = [{"id": k, "said": '["x", "y", "z"]', "gold": '["x", "z", "y"]'} for k in range(12)]
    found = run_audit(write(tmp_path / "x.csv", rows), "--ranked", "--score", "said", "--gold", "gold")
    statistics = rows_of(found, "rankings", "statistic")
    assert statistics["pairs in the right order"]["value"]["value"] == 2 / 3


@pytest.mark.parametrize("text", ["inf", "-inf", "1e400", "Infinity"])
def test_an_infinite_score_is_no_number(text: str, tmp_path: Path, run_audit: Run) -> None:
    rows = [{"score": text if k == 3 else k % 5 + 1, "gold": k % 5 + 1} for k in range(20)]
    file = write(tmp_path / "x.csv", rows)
    told = refused(run_audit, file, "--score", "score", "--gold", "gold")
    assert f"x.csv:5: field 'score': expected a number here, not '{text}': name it with --failed" in told
    found = run_audit(file, "--score", "score", "--gold", "gold", "--failed", text)
    assert rows_of(found, "failures", "status")["failed"]["count"] == 1


def test_scores_and_gold_in_words(tmp_path: Path, run_audit: Run) -> None:
    words = ("None", "minor", "Major")
    rows = [{"score": words[k % 3], "gold": words[(k + (k > 8)) % 3].lower()} for k in range(12)]
    file, scale = write(tmp_path / "x.csv", rows), ("--scale", "None<minor<major")
    found = run_audit(file, "--score", "score", "--gold", "gold", *scale)
    # nine rows agree; the others are off by +1, +1 and -2 (major said where gold is none)
    agreement = values(found)
    assert (agreement["exact"]["value"], agreement["exact"]["n"], agreement["mae"]["value"]) == (0.75, 12, 4 / 12)
    assert found["plan"]["scale"] == "None<minor<major"
    rows[5]["gold"] = "severe"
    told = refused(run_audit, write(file, rows), "--score", "score", "--gold", "gold", *scale)
    assert "x.csv:7: field 'gold': 'severe' is not on the scale None<minor<major" in told


@pytest.mark.parametrize(("suffix", "mark"), [("csv", -1), ("jsonl", -1), ("jsonl", -1.0), ("jsonl", "-1")])
def test_a_number_that_marks_a_failure_does_so_in_every_file(
    suffix: str, mark: Any, tmp_path: Path, run_audit: Run
) -> None:
    rows = [{"score": k % 5 + 1, "gold": mark if k == 3 else k % 5 + 1} for k in range(20)]
    file = write(tmp_path / f"x.{suffix}", rows)
    line = (file, "--score", "score", "--gold", "gold", "--scale", "1-5")
    assert "--failed VALUE marks gold that is missing" in refused(run_audit, *line)
    found = run_audit(*line, "--failed=-1")
    assert values(found)["exact"]["n"] == 19
