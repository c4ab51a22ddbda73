"""From data to a run, as locks and cards say."""

from pathlib import Path

import orjson
import pytest

import runs
import tiny_models
from dikast.surface.viewer.run_index import RunIndex
from dikast.surface.viewer.viewer_pages import ViewerPages
from surface.viewer.conftest import grade
from surface.viewer.viewing_here import words


def lineage(root: Path, run: str) -> str:
    """The steps of a run as the page shows them."""
    page = words(ViewerPages(RunIndex(root)).run({"of": run}))
    return page.partition("Provenance")[2].partition("A report of this run")[0]


def test_a_run_on_a_world(tmp_path: Path) -> None:
    done = runs.dikast_here("world", "make", "--out", tmp_path / "shapes", "-n", "4", "--seed", "11")
    assert done.returncode == 0, done.stderr
    grade(tmp_path / "shapes" / "items-00000.jsonl", tmp_path / "runs" / "one", "mock:oracle")
    told = lineage(tmp_path / "runs", "one")
    order = ["judge : mock:oracle", "with exact gold : shapes", "items : ", "run : one", "audit : dikast audit"]
    assert [told.index(each) for each in order] == sorted(told.index(each) for each in order)
    assert "seed 11" in told


def test_items_that_are_gone_are_told(tmp_path: Path) -> None:
    items = runs.write_jsonl(
        tmp_path / "items.jsonl", [{k: v for k, v in row.items() if k != "gold"} for row in runs.rows(2)]
    )
    grade(items, tmp_path / "runs" / "one", "mock:random")
    items.unlink()
    told = lineage(tmp_path / "runs", "one")
    assert "no longer there" in told
    assert "--gold-file LABELS (the run has no gold)" in told


@pytest.mark.slow
def test_a_judge_that_was_trained(tmp_path: Path) -> None:
    from dikast.training.config import Config, Data
    from dikast.training.models.model_card import write_card

    runs.dikast_here("world", "make", "--out", tmp_path / "shapes", "-n", "4", "--seed", "11")
    model = tiny_models.build("llama", tmp_path / "trained" / "model")
    config = Config(out="trained", data=(Data(items=("shapes/items-00000.jsonl",)),), model="base/model")
    write_card(model, config, data="d" * 32, run="r" * 32, examples=4, lines=[], evals=[], more={})
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(2))
    grade(items, tmp_path / "runs" / "one", str(model))
    told = lineage(tmp_path / "runs", "one")
    order = [
        "with exact gold : shapes",
        "training data : shapes/items-00000.jsonl",
        "training : trained",
        "judge : ",
        "run : ",
    ]
    assert [told.index(each) for each in order] == sorted(told.index(each) for each in order)
    assert "trained from base/model" in told
    assert "weights " in told


def test_a_command_to_copy_has_its_folder_quoted_and_a_card_of_aliases_ends(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(2))
    run = grade(items, tmp_path / "runs" / "x; touch owned", "mock:random")
    card = tmp_path / "card"
    card.mkdir()
    bomb = "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12))
    text = f"| trained | x |\n```yaml\na0: &a0 [x]\n{bomb}\ndata: [{{items: [*a11]}}]\n```\n"
    (card / "README.md").write_text(text)
    summary = orjson.loads((run / "summary.json").read_bytes()) | {"judge": str(card)}
    (run / "summary.json").write_bytes(orjson.dumps(summary))
    (run / "checksums.json").unlink()
    assert f"dikast audit '{run}'" in lineage(tmp_path / "runs", run.name)
