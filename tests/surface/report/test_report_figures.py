"""Figures show the numbers that they are of, and their names do not run into each other, however long they are."""

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest

import runs
from dikast.audit.estimate import Estimate
from dikast.audit.rendering import Table
from dikast.audit.results import Slices
from dikast.surface.report.embedded.long_tables import slices
from dikast.surface.report.figures import WIDTH, Row, Ruler, forest, histogram, rulers

LETTER = 10.3  # units of the figure's width that a letter takes on a phone
TEXT = re.compile(r'<text x="([\d.]+)" y="([\d.]+)" text-anchor="(\w+)" class="(\w*)">([^<]*)')


@pytest.mark.parametrize("n", [7, 4069, 100_000])
@pytest.mark.parametrize("value", [3.019, math.nan])
def test_the_figures_of_a_forest_plot_fit_beside_it(value: float, n: int) -> None:
    """On a phone, where letters are widest: of 30,000 rows `n 4,069` was cut off."""
    rows = [Row("13 to 24 characters", value, 2.9, 3.1, n), Row("x", 3.0, 2.9, 3.1, 7)]
    told = [each for each in TEXT.findall(str(forest(rows, math.nan, 2.9, 3.1))) if " n " in each[4]]
    assert [each[4] for each in told] == [f"{'undefined' if math.isnan(value) else '3.019'} n {n:,}", "3.000 n 7"]
    assert all(float(x) + LETTER * len(text) <= WIDTH for x, _, _, _, text in told)


@pytest.mark.parametrize("low", [-0.7, 0.5, -0.001])
def test_agreement_below_zero_is_drawn_where_it_is(low: float) -> None:
    """A judge with a correlation of -.6 was drawn at 0, where a useless one lies."""
    value = low + 0.1
    drawn = str(rulers([Ruler("r", value, low, low + 0.2, 0.05, None), Ruler("s", 0.4, 0.3, 0.5, None, 0.9)]))
    ticks = {float(text): float(x) for x, _, anchor, _, text in TEXT.findall(drawn) if anchor == "middle"}
    assert sorted(ticks) == ([-1, -0.5, 0, 0.5, 1] if low == -0.7 else [0, 0.25, 0.5, 0.75, 1])
    start = min(ticks)

    def value_at(x: str) -> float:
        return start + (float(x) - ticks[start]) / (ticks[1] - ticks[start]) * (1 - start)

    assert [value_at(x) for x in re.findall(r'<circle cx="([\d.]+)"', drawn)] == pytest.approx([value, 0.4], abs=0.003)
    ends = [float(value_at(x)) for pair in re.findall(r'<line x1="([\d.]+)"[^>]* x2="([\d.]+)"[^>]*"interval"', drawn)
            for x in pair]  # fmt: skip
    assert ends == pytest.approx([max(low, start), low + 0.2, 0.3, 0.5], abs=0.003)
    marks = [value_at(x) for x in re.findall(r'<path d="M([\d.]+)', drawn)]
    assert marks == pytest.approx([0.05, 0.9], abs=0.003)


@pytest.mark.parametrize("gold", [0, 3])
@pytest.mark.parametrize(
    ("names", "below"),
    [
        (["1", "2", "3", "4", "5"], False),
        (["a", "b", "tie", "disagree"], False),
        ([f"{i} of 1-5{more}" for i in range(1, 6) for more in ("", ", lower is better")], True),
        ([f"{i / 2:g}" for i in range(21)], True),  # 640 / 21 = 30.5 units for "0.5", which takes 30.9
    ],
)
def test_names_of_labels_do_not_overlap(names: list[str], below: bool, gold: int) -> None:
    drawn = str(histogram({name: (i + 1, gold) for i, name in enumerate(names)}))
    told = [each for each in TEXT.findall(drawn) if each[3] != "small"]
    assert [each[4] for each in told] == names
    lines = {float(y) for _, y, *_ in told}
    assert len(lines) == (len(names) if below else 1)
    ends = []
    for x, y, anchor, _, name in told:
        wide = LETTER * len(name)
        left = float(x) - (wide if anchor == "end" else wide / 2)
        assert 0 <= left <= left + wide <= WIDTH
        ends.append((float(y), left, left + wide))
    ends.sort()
    for (y, _, right), (next_y, left, _) in itertools.pairwise(ends):
        assert right <= left if y == next_y else next_y - y >= 18  # the letters of a phone are 18 units high
    for x, wide in re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', drawn):
        assert float(x) + float(wide) <= WIDTH
    assert drawn.count("<rect") == len(names) * (2 if gold else 1)


CELL = re.compile(r"<t[dh][^>]*>(.*?)</t[dh]>")
DOT = re.compile(r'<circle cx="([\d.]+)"[^>]*><title>(\w+): (-?[\d.]+) \[(-?[\d.]+), (-?[\d.]+)\]')


@pytest.fixture(scope="module")
def panel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three judges on 90 responses of three topics, and their page."""
    folder = tmp_path_factory.mktemp("panel")
    rows = [{**row, "topic": ("arithmetic", "baking", "chess")[k % 3]} for k, row in enumerate(runs.rows(90))]
    judges = [
        word for seed, r in ((1, 0.9), (2, 0.6), (3, 0.3)) for word in ("--judge", f"mock:oracle,r={r},seed={seed}")
    ]
    _done("grade", runs.write_jsonl(folder / "items.jsonl", rows), *judges, "--rubric", "helpfulness", "--out",
          folder / "run", "-q")  # fmt: skip
    _done("report", folder / "run", "-o", folder / "r.html", "--draws", 200, "--queue", 3, "--by", "topic")
    return folder


def _done(*words: object) -> None:
    done = runs.dikast_here(*words)
    assert done.returncode == 0, done.stderr


def _figures(page: Path, title: str) -> list[str]:
    found = re.findall(r'<figure class="panel[^"]*"><figcaption>(.*?)</figure>', page.read_text("utf-8"), re.S)
    return [each for each in found if each.startswith(title)]


def _scores(run: Path) -> dict[str, float]:
    return {row["question"]["item"]: row["score"] for row in runs.lines(run / "verdicts.jsonl")}


def _judges(panel: Path) -> list[Path]:
    return sorted(each for each in (panel / "run").iterdir() if each.is_dir())


def test_of_very_many_slices_a_page_holds_the_worst(tmp_path: Path) -> None:
    """300 slices of 4 rows: in slice k the judge is k % 4 levels off."""
    rows = [f"t{k},{k % 2 + 1 + k % 4},{k % 2 + 1}" for k in range(300) for _ in range(4)]
    (tmp_path / "x.csv").write_text("topic,score,gold\n" + "\n".join(rows) + "\n")
    out = [word for name in ("r.html", "r.json") for word in ("-o", tmp_path / name)]
    _done("report", tmp_path / "x.csv", *out, "--by", "topic", "--scale", "1-5", "--draws", 20, "--queue", 2)
    (figure,) = _figures(tmp_path / "r.html", "Agreement by slice (By topic: 300 slices): exact, worst first")
    right = {f"t{k}" for k in range(0, 300, 4)}  # the other 225 agree in no row
    drawn = [name for _, name, *_ in DOT.findall(figure)]
    assert len(drawn) == 40
    assert not right & set(drawn)
    assert "drawn are the first 40 of 300 slices" in figure
    text = (tmp_path / "r.html").read_text("utf-8")
    (below,) = re.findall(r"<h4>By topic: 300 slices</h4>.*?<tbody>(.*?)</tbody>.*?shown are the 200 with the worst"
                          r" exact of 300 rows; all are in the report as JSON", text, re.S)  # fmt: skip
    shown = re.findall(r"<th scope=row>(t\d+)</th>", below)
    assert len(shown) == 200
    assert not right & set(shown)
    assert all(f'"t{k}"' in (tmp_path / "r.json").read_text("utf-8") for k in range(300))


def test_slices_come_in_the_order_that_is_told() -> None:
    """The least agreement and the most disagreement first; of means, which are not better or worse, the lowest."""

    def order(column: str) -> tuple[str, list[str]]:
        found = {name: Estimate(value, n=9) for name, value in (("x", 0.5), ("y", math.nan), ("z", 0.2), ("w", 0.9))}
        (each,) = slices([Table("by t", "By t", (), (), result=Slices("t", {column: found}))])
        return each.title, [row.name for row in each.rows]

    assert order("exact") == ("Agreement by slice (By t): exact, worst first", ["z", "x", "w", "y"])
    assert order("disagree") == ("Slices (By t): disagree, highest first", ["w", "x", "z", "y"])
    assert order("mean score") == ("Slices (By t): mean score, lowest first", ["z", "x", "w", "y"])


def test_slices_are_a_forest_plot_worst_first_drawn_to_scale(panel: Path) -> None:
    """Pearson's correlation of each slice, computed here from the verdicts, as a dot with its interval on one scale."""
    drawn = _figures(panel / "r.html", "Agreement by slice (By topic: 3 slices): pearson, worst first")
    assert len(drawn) == 4  # the joint verdict and each judge
    for figure, run in zip(drawn[1:], _judges(panel), strict=True):
        score = _scores(run)
        wanted = {}
        for first, topic in enumerate(("arithmetic", "baking", "chess")):
            ids = range(first, 90, 3)
            wanted[topic] = np.corrcoef([score[f"i{k}"] for k in ids], [k % 5 + 1 for k in ids])[0, 1]
        dots = [(float(x), name, *map(float, more)) for x, name, *more in DOT.findall(figure)]
        assert [each[1] for each in dots] == sorted(wanted, key=lambda name: wanted[name])
        lines = re.findall(r'<line x1="([\d.]+)"[^>]* x2="([\d.]+)"[^>]* class="interval"', figure)
        (left, *_), (right, *_) = min(dots), max(dots)
        scale = (right - left) / (max(each[2] for each in dots) - min(each[2] for each in dots))
        for (x, name, value, low, high), ends in zip(dots, lines, strict=True):
            assert value == pytest.approx(wanted[name], abs=0.0006)
            assert low < value < high
            for at, end in zip((low, high), ends, strict=True):
                assert float(end) == pytest.approx(
                    x + (at - value) * scale, abs=0.2 + 0.0025 * scale
                )  # printed to .001
        rows = [CELL.findall(row) for row in re.findall(r"<tr>(.*?)</tr>", figure)[1:]]
        assert [row[0] for row in rows] == [each[1] for each in dots]  # the same in the table for screen readers
        assert [row[1] for row in rows] == [f"{v:.3f} [{low:.3f}, {high:.3f}]" for _, _, v, low, high in dots]
        assert {row[2] for row in rows} == {"30"}


def test_judge_against_judge_is_their_correlation(panel: Path) -> None:
    (figure,) = _figures(panel / "r.html", "Judge against judge: pearson")
    head, *rows = [CELL.findall(row) for row in re.findall(r"<tr>(.*?)</tr>", figure)]
    assert [row[0] for row in rows] == head[1:]
    scores = [list(_scores(run).values()) for run in _judges(panel)]
    assert len(rows) == len(scores) == 3
    wanted = np.array(np.corrcoef(scores))
    for i, row in enumerate(rows):
        for j, cell in enumerate(row[1:]):
            assert cell == ("–" if i == j else f"{wanted[i, j]:.2f}<small>n 90</small>")


def test_the_opened_item_marks_the_chosen_level_and_draws_the_probabilities(panel: Path) -> None:
    """Of each row: the level that the verdict names, and bars as high as the recorded probabilities, the verdict's
    filled and gold's underlined.
    """
    text = (panel / "r.html").read_text("utf-8")
    verdicts = [{row["question"]["item"]: row for row in runs.lines(run / "verdicts.jsonl")} for run in _judges(panel)]
    seen = 0
    for number, said in enumerate(verdicts, 2):  # the first page is that of the joint verdict
        opened = re.findall(
            rf'<details class="entry" id="v-\w+-{number}".*?(?=<details class="entry"|</section>)', text, re.S
        )
        for entry in opened:
            found = re.search(r'<span class="deep">(i\d+)</span>', entry)
            assert found is not None
            verdict, gold = said[found[1]], int(found[1][1:]) % 5 + 1
            assert re.findall(r'<dt class="chosen">(.*?)</dt>', entry) == [verdict["label"]]
            assert re.findall(r"<dt>(.*?)</dt>", entry) == [each for each in "12345" if each != verdict["label"]]
            assert entry.count("← chosen") == 1
            bars = re.findall(r'height="([\d.]+)" rx="2" class="(\w+)"><title>(\d): ([\d.]+)</title>', entry)
            assert [each[2] for each in bars] == list("12345")
            for height, kind, label, told in bars:
                p = verdict["distribution"][label]
                assert float(told) == pytest.approx(p, abs=0.0006)
                assert float(height) == pytest.approx(max(44 * p, 0.75), abs=0.06)
                assert kind == ("judge" if label == verdict["label"] else "other")
            lines = re.findall(r'<line x1="([\d.]+)"[^>]*class="goldline"', entry)
            assert [float(each) for each in lines] == [34 * (gold - 1) + 6]
            seen += 1
    assert seen == 3 * (3 + 50)  # the queue and the sample of each judge


def test_the_pairwise_matrix_is_counted_by_hand(tmp_path: Path) -> None:
    """The share that the row wins of its pairs with the column, ties half; the other half of the matrix mirrors it."""
    names = ("alpha", "beta", "gamma")
    rows = runs.of_systems(120, 1, names=names)
    items = runs.write_jsonl(tmp_path / "pairs.jsonl", rows)
    _done("compare", items, "--judge", "mock:oracle", "--rubric", "helpfulness", "--out", tmp_path / "run", "-q")
    _done("report", tmp_path / "run", "-o", tmp_path / "r.html", "--draws", 50, "--queue", 0, "--sample", 0)
    joint: dict[str, set[str]] = {}
    for verdict in runs.lines(tmp_path / "run" / "verdicts.jsonl"):
        joint.setdefault(verdict["question"]["item"], set()).add(verdict["label"])
    assert all(len(said) == 1 for said in joint.values())  # this judge says the same in both orders
    won: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        (label,) = joint[row["id"]]
        share = {"a": 1.0, "b": 0.0, "tie": 0.5}[label]
        won.setdefault((row["model_a"], row["model_b"]), []).append(share)
        won.setdefault((row["model_b"], row["model_a"]), []).append(1 - share)
    text = (tmp_path / "r.html").read_text("utf-8")
    found = re.search(r"<summary>Head to head</summary>.*?</details>", text, re.S)
    assert found is not None
    head, *cells = [CELL.findall(row) for row in re.findall(r"<tr>(.*?)</tr>", found[0])]
    assert sorted(head[1:]) == sorted(names)
    for line in cells:
        for column, cell in zip(head[1:], line[1:], strict=True):
            if line[0] == column:
                assert cell == "–"
                continue
            shares = won[line[0], column]
            assert cell.startswith(f"{100 * sum(shares) / len(shares):.0f}%<small>")
            assert f"n {len(shares)}" in cell
