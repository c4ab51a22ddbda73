"""A page that grows: what another lab told of other experiments stays."""

import re
from pathlib import Path

from dikast.audit.estimate import Estimate, undefined
from dikast.lab.experiment import load_experiment, names
from dikast.lab.findings import UNDECIDED, Finding, findings
from dikast.lab.lab_report import to_markdown
from dikast.lab.running import run_experiments
from dikast.surface.laboratory.lab_page import lab_page
from lab_experiments import written
from runs import dikast_here

PAGE = Path(__file__).parents[2] / "docs" / "lab.md"


def page_of(folder: Path, *names: str, **changes: object) -> str:
    for name in names:
        path = written(folder, **changes)
        run_experiments([load_experiment(path.rename(folder / f"{name}.yaml"))], folder / "lab")
    return to_markdown(findings(folder / "lab"))


def test_a_page_of_two_labs_is_that_of_one(tmp_path: Path) -> None:
    for name in ("one", "other", "both"):
        (tmp_path / name).mkdir()
    first = page_of(tmp_path / "one", "b", "d")
    page_of(tmp_path / "other", "a", "c")
    both = page_of(tmp_path / "both", "a", "b", "c", "d")
    assert to_markdown(findings(tmp_path / "other" / "lab"), first) == both
    assert to_markdown(findings(tmp_path / "one" / "lab"), both) == both
    file = tmp_path / "lab.md"
    for name in ("one", "other"):
        assert dikast_here("lab", "report", tmp_path / name / "lab", "--out", file, "--keep").returncode == 0
    assert file.read_text() == both
    assert dikast_here("lab", "report", tmp_path / "one" / "lab", "--out", file).returncode == 0
    assert file.read_text() == first


def test_what_is_new_replaces_what_was_told(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    before = page_of(tmp_path / "old", "a", "b")
    after = page_of(tmp_path, "a", holds={"gain": {"above": 0.2}})
    kept = to_markdown(findings(tmp_path / "lab"), before)
    assert kept.count("## a\n") == kept.count("## b\n") == 1
    assert "above 0.2" in kept.split("## b\n")[0]
    assert kept.split("## b\n")[1] == before.split("## b\n")[1]
    assert "## b" not in after


def test_what_was_told_of_another_definition_does_not_stay(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    before = page_of(tmp_path / "old", "a", "b")
    changed = load_experiment(written(tmp_path, holds={"gain": {"above": 0.2}}).rename(tmp_path / "a.yaml"))
    kept = to_markdown([Finding(changed, (), {}, {}, "not run", "no seed is done in every arm")], before)
    assert "**Not run**" in kept.split("## b\n")[0]
    assert kept.split("## b\n")[1] == before.split("## b\n")[1]


def test_the_page_of_the_docs_tells_of_the_catalogue_as_it_is() -> None:
    told = dict(re.findall(r"(?ms)^## (\S+)$.*?Definition: `(\w+)`", PAGE.read_text()))
    assert told == {name: load_experiment(name).hash[:12] for name in names()}


def test_arms_without_a_value_stay_in_the_figure(tmp_path: Path) -> None:
    """Beside two that have one; an effect without a method has its reason alone."""
    known, none = Estimate(0.5, 40, 0.4, 0.6, method="over items"), undefined(40, "all scores are alike")
    experiment = load_experiment(written(tmp_path))
    arms = {(name, "text", "pearson"): each for name, each in {"good": known, "poor": known, "flat": none}.items()}
    cost = {"taught_examples": 0.0, "taught_tokens": 0.0, "graded_items": 120.0, "graded_tokens": 9.0}
    page = lab_page([Finding(experiment, (1,), {"gain": none}, arms, UNDECIDED, "all scores are alike", cost=cost)])
    figure = page.partition("<svg")[2].partition("</svg>")[0]
    assert figure.count("<circle") == 2
    assert "undefined n 40" in figure
    assert '<td class="words">all scores are alike</td>' in page
