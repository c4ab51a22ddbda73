"""`--media-root` on every verb that opens the pictures of items: what lies outside it is not opened."""

import builtins
import re
from html import unescape
from pathlib import Path
from typing import Any

import orjson
import pytest
from PIL import Image as Pictures
from typer.main import get_command
from typer.testing import CliRunner

import runs
from dikast.core.machine.worker_pool import worker_pool
from dikast.core.media import media_rules
from dikast.core.media.media_files import forget
from dikast.surface.cli import app
from surface.viewer.viewing_here import Viewed

OPENS_NONE = {  # pictures of items, that is: their records alone, or what a verb draws itself
    "replay", "merge-runs", "audit", "demo", "prove", "doctor", "train release", "train merge", "world make",
    "world teach", "world peek", "bench list", "bench show", "bench report", "bench new", "lab list", "lab report",
    "corpus convert", "format list", "format show", "format learn", "rubric list", "rubric show", "rubric new",
    "rubric lint",
}  # fmt: skip


def test_every_verb_that_opens_pictures_takes_it() -> None:
    without = set()
    for name, lazy in get_command(app).verbs.items():  # type: ignore[attr-defined]
        built = lazy.build(name)
        for inner, verb in getattr(built, "commands", {"": built}).items():
            if not any(each.name == "media_root" for each in verb.params):
                without.add(f"{name} {inner}".strip())
    assert without == OPENS_NONE


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder whose items, lists and recipes name pictures in it, above it and by an absolute path."""
    folder = tmp_path / "root"
    folder.mkdir()
    for number, name in enumerate(("root/a.png", "secret.png", "other.png")):
        Pictures.new("RGB", (96, 96), (number, 40, 90)).save(tmp_path / name)
    items = [
        {"id": str(k), "instruction": "What is it?", "image": name, "responses": ["red", "blue"], "gold": [1, 5]}
        for k, name in enumerate(("a.png", "../secret.png", str(tmp_path / "other.png")))
    ]
    runs.write_jsonl(folder / "items.jsonl", items)
    graded = runs.dikast_here(
        "grade", folder / "items.jsonl", "--judge", "mock:oracle", "--rubric", "helpfulness", "--out",
        folder / "runs" / "first",
    )  # fmt: skip
    assert graded.returncode == 0, graded.stderr
    (folder / "list.txt").write_text(f"a.png\n../secret.png\n{tmp_path / 'other.png'}\n", "utf-8")
    recipe = {"recipe": "perception", "teacher": "mock:constant", "images": "list.txt"}
    (folder / "build.json").write_bytes(orjson.dumps(recipe))
    (folder / "judge.yaml").write_bytes(
        orjson.dumps({"corpus": [{"recipe": "build.json"}], "held": {"recipe": "build.json"},
                      "train": {"init": str(folder / "model"), "device": "cpu", "steps": 1}})
    )  # fmt: skip
    training = {"init": str(folder / "model"), "out": "trained", "device": "cpu", "steps": 1, "workers": 1,
                "data": [{"items": ["items.jsonl"], "formats": ["score-only"], "rubric": "helpfulness"}]}  # fmt: skip
    (folder / "sft.yaml").write_bytes(orjson.dumps(training))
    return folder


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of the pictures that are opened."""
    found: set[str] = set()
    plain = builtins.open

    def recording(file: Any, *given: Any, **options: Any) -> Any:
        if str(file).endswith(".png"):
            found.add(Path(file).name)
        return plain(file, *given, **options)

    monkeypatch.setattr(builtins, "open", recording)
    return found


@pytest.mark.parametrize(
    "words",
    [
        ("export", "runs/first", "out.csv"),
        ("prefs", "runs/first", "--format", "trl", "--out", "out.jsonl"),
        ("corpus", "check", "items.jsonl"),
        ("corpus", "card", "items.jsonl", "--out", "card.md"),
        ("corpus", "build", "build.json", "--out", "built", "--dry-run"),
        ("make-judge", "judge.yaml", "--out", "made"),
        ("train", "sft", "--config", "sft.yaml"),
        ("align", "--policy", "model", "--judge", "mock:oracle", "--prompts", "items.jsonl", "--held-out",
         "items.jsonl", "--out", "up", "--force", "--dry-run"),
    ],
)  # fmt: skip
def test_pictures_outside_are_not_opened(
    words: tuple[str, ...], root: Path, opened: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if {"make-judge", "train", "align"} & set(words):
        pytest.importorskip("torch")
        import tiny_models

        tiny_models.build("llava", root / "model")
    monkeypatch.chdir(root)
    forget()
    opened.clear()
    CliRunner().invoke(app, [*words, "--media-root", "."])
    assert opened <= {"a.png"}
    with media_rules() as rules:
        assert not rules.root  # they hold for this one verb
    CliRunner().invoke(app, list(words))
    assert opened >= {"secret.png"}, "the test would prove nothing"


def test_a_file_for_trainers_names_no_picture_outside(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    stored = {"id": "s", "instruction": "What is it?", "image": "s3://bucket/x.png", "responses": ["red", "blue"]}
    items = [*map(orjson.loads, (root / "items.jsonl").read_bytes().splitlines()), stored]
    runs.write_jsonl(root / "items.jsonl", items)
    for flags, named in (((), 3), (("--media-root", "."), 1)):
        out = root / f"out{named}.jsonl"
        told = CliRunner().invoke(app, ["prefs", "runs/first", "--format", "trl", "--out", str(out), *flags])
        assert told.exit_code == 0, told.output
        rows = [orjson.loads(line) for line in out.read_bytes().splitlines()]
        assert len(rows) == named
        text = out.read_text("utf-8")
        assert ("secret.png" in text, "other.png" in text, "a.png" in text) == (named > 1, named > 1, True)
        outside = re.search(r"left out: (\d) \(items with pictures outside the media root\)", told.output)
        assert (outside is None) if named > 1 else (outside is not None and outside[1] == "3")


def test_the_viewer_shows_no_picture_outside(root: Path) -> None:
    for flags, shown in ((), [True] * 3), (("--media-root", str(root)), [True, False, False]):
        viewed = Viewed(root / "runs", *flags)
        links = re.findall(r'href="(/item\?[^"]*)"', viewed.page("/run", of="first"))
        pages = [viewed.page(unescape(link)) for link in links[::2]]  # each has two responses
        assert viewed.stop() == 0
        assert ["data:image/" in page for page in pages] == shown


def root_of_a_worker(_: int) -> str:
    with media_rules() as rules:
        return rules.root


def test_worker_processes_hold_the_same_rules(tmp_path: Path) -> None:
    with media_rules(root=tmp_path), worker_pool(1) as pool:
        assert pool.submit(root_of_a_worker, 0).result() == str(tmp_path.resolve())
