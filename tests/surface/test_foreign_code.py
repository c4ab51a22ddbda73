"""`yes |` in front of every verb: nothing that comes with a model, a format, a recipe or a configuration is run."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
import yaml
from typer.main import get_command
from typer.testing import CliRunner

import tiny_models
from dikast.core.errors import UserError
from dikast.surface.cli import app
from runs import pairs, rows, write_jsonl

HERE = Path(__file__).parents[2]
CODE = "from pathlib import Path\nPath({marker!r}).write_text('ran')\nclass Evil: pass\n"
PYTHON = "!!python/object/apply:pathlib.Path.touch [!!python/object/apply:pathlib.Path [{marker}]]"
JINJA = "{{{{ cycler.__init__.__globals__.os.mkdir('{marker}') }}}}{{{{ response }}}}"


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """What is there when foreign code has run."""
    return tmp_path / "ran"


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.build("llama", tmp_path_factory.mktemp("tiny") / "llama")


@pytest.fixture
def evil(sound: Path, tmp_path: Path, marker: Path) -> Path:
    """A model folder that needs the code which comes with it."""
    folder = tmp_path / "evil"
    shutil.copytree(sound, folder)
    (folder / "evil.py").write_text(CODE.format(marker=str(marker)), "utf-8")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config |= {"model_type": "evil", "auto_map": {"AutoConfig": "evil.Evil", "AutoModelForCausalLM": "evil.Evil"}}
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    return folder


Line = Callable[[Path, Path], list[object]]


def training(tmp: Path, model: Path, **more: object) -> Path:
    """A training configuration that starts from the folder."""
    write_jsonl(tmp / "i.jsonl", rows(4))
    path = tmp / "train.yaml"
    values = {"model": str(model), "out": "trained", "data": [{"items": ["i.jsonl"]}], "steps": 1, "device": "cpu"}
    path.write_text(yaml.safe_dump({**values, **more}), "utf-8")
    return path


def recipe(tmp: Path, model: Path) -> Path:
    """The recipe of the repository, with the folder as its teacher."""
    shutil.copytree(HERE / "recipes" / "corpus", tmp / "recipes")
    path = tmp / "recipes" / "feedback.yaml"
    value = yaml.safe_load(path.read_text("utf-8"))
    path.write_text(yaml.safe_dump({**value, "teacher": f"hf:{model}"}), "utf-8")
    return path


def bench(tmp: Path) -> Path:
    """A bench of two rows in the folder."""
    write_jsonl(tmp / "rows.jsonl", rows(2))
    path = tmp / "mine.yaml"
    value = {
        "name": "mine", "title": "Mine", "about": "two rows", "state": "schema only", "kind": "scores",
        "source": {"hub": "org/mine", "files": {"rows.jsonl": ""}}, "official": {"metric": "mean score"},
        "fields": {"instruction": "instruction", "response": "response"}, "licence": "-", "citation": "-",
    }  # fmt: skip
    path.write_text(yaml.safe_dump(value), "utf-8")
    return path


# Every verb, as it would be typed where a hostile model folder may be named; the others with what they read anyway.
LINES: dict[str, Line] = {
    "grade": lambda tmp, m: ["grade", write_jsonl(tmp / "i.jsonl", rows(2)), "--judge", m, "--out", tmp / "run"],
    "compare": lambda tmp, m: ["compare", write_jsonl(tmp / "p.jsonl", pairs(2)), "--judge", m, "--out", tmp / "run"],
    "rank": lambda tmp, m: ["rank", write_jsonl(tmp / "p.jsonl", pairs(2)), "--judge", m, "--out", tmp / "run"],
    "probe": lambda tmp, m: ["probe", "--judge", m, "--out", tmp / "run", "--calls", 5, "--only", "level-order"],
    "prove": lambda tmp, m: ["prove", "--judge", m, "--out", tmp / "run", "--calls", 20],
    "replay": lambda tmp, m: ["replay", m],
    "merge-runs": lambda tmp, m: ["merge-runs", m, tmp, "--out", tmp / "run"],
    "audit": lambda tmp, m: ["audit", m],
    "report": lambda tmp, m: ["report", m],
    "export": lambda tmp, m: ["export", m, tmp / "o.csv"],
    "align": lambda tmp, m: [
        "align",
        "--policy",
        m,
        "--judge",
        "mock:random",
        "--rubric",
        "helpfulness",
        "--prompts",
        write_jsonl(tmp / "a.jsonl", rows(2)),
        "--held-out",
        write_jsonl(tmp / "b.jsonl", rows(3)[2:]),
        "--out",
        tmp / "run",
    ],
    "annotate": lambda tmp, m: ["annotate", m / "config.json", "--export", "--out", tmp / "labels"],
    "view": lambda tmp, m: ["view", m / "config.json"],
    "make-judge": lambda tmp, m: ["make-judge", m, "--out", tmp / "made"],
    "prefs": lambda tmp, m: ["prefs", m, "--format", "trl", "--out", tmp / "o.jsonl"],
    "serve": lambda tmp, m: ["serve", "--judge", m, "--port", 0],
    "demo": lambda tmp, m: ["demo", "--help"],
    "doctor": lambda tmp, m: ["doctor", m],
    "train new": lambda tmp, m: ["train", "new", "--config", training(tmp, m), "--out", tmp / "new"],
    "train release": lambda tmp, m: ["train", "release", m, "--out", tmp / "released"],
    "train look": lambda tmp, m: ["train", "look", "--config", training(tmp, m)],
    "train plan": lambda tmp, m: ["train", "plan", "--config", training(tmp, m)],
    "train sft": lambda tmp, m: ["train", "sft", "--config", training(tmp, m)],
    "train dpo": lambda tmp, m: ["train", "dpo", "--config", training(tmp, m)],
    "train merge": lambda tmp, m: ["train", "merge", m, m, "--out", tmp / "merged"],
    "world make": lambda tmp, m: ["world", "make", "--out", m, "--n", 1],
    "world teach": lambda tmp, m: ["world", "teach", "--out", m, "--n", 1],
    "world peek": lambda tmp, m: ["world", "peek", m],
    "bench list": lambda tmp, m: ["bench", "list"],
    "bench show": lambda tmp, m: ["bench", "show", "vicuna-turn-1", "--data", m],
    "bench run": lambda tmp, m: ["bench", "run", bench(tmp), "--judge", m, "--out", tmp / "run", "--data", tmp],
    "bench report": lambda tmp, m: ["bench", "report", m],
    "bench new": lambda tmp, m: ["bench", "new", bench(tmp), "--data", m],
    "lab list": lambda tmp, m: ["lab", "list"],
    "lab run": lambda tmp, m: ["lab", "run", m, "--judge", m, "--model", m, "--out", tmp / "lab"],
    "lab report": lambda tmp, m: ["lab", "report", m],
    "corpus convert": lambda tmp, m: ["corpus", "convert", m / "config.json", tmp / "o.jsonl", "--to", "trl"],
    "corpus check": lambda tmp, m: ["corpus", "check", m / "config.json"],
    "corpus card": lambda tmp, m: ["corpus", "card", m / "config.json", tmp / "card.md"],
    "corpus build": lambda tmp, m: ["corpus", "build", recipe(tmp, m), "--out", tmp / "built"],
    "rubric list": lambda tmp, m: ["rubric", "list"],
    "rubric show": lambda tmp, m: ["rubric", "show", m],
    "rubric new": lambda tmp, m: ["rubric", "new", tmp / "rubric.yaml"],
    "rubric lint": lambda tmp, m: ["rubric", "lint", m],
    "format list": lambda tmp, m: ["format", "list"],
    "format show": lambda tmp, m: ["format", "show", m],
    "format learn": lambda tmp, m: ["format", "learn", m / "config.json"],
}
OPENING = (
    "bench run",
    "serve",
    "grade",
    "compare",
    "rank",
    "probe",
    "prove",
    "train look",
    "train plan",
    "train sft",
    "train dpo",
    "align",
    "corpus build",
)  # what opens the model


def verbs() -> list[str]:
    found = []
    for name, lazy in get_command(app).verbs.items():  # type: ignore[attr-defined]
        found += [f"{name} {inner}" for inner in getattr(lazy.build(name), "commands", {})] or [name]
    return found


def test_every_verb_is_tried() -> None:
    assert set(verbs()) == set(LINES)


@pytest.mark.parametrize("verb", LINES)
def test_yes_in_front_of_a_verb_runs_nothing(verb: str, evil: Path, tmp_path: Path, marker: Path) -> None:
    arguments = [str(each) for each in LINES[verb](tmp_path, evil)]
    result = CliRunner().invoke(app, arguments, input="y\n" * 1000)
    assert not marker.exists()
    assert "trust_remote_code" not in result.output
    assert "[y/N]" not in result.output
    assert result.exception is None or isinstance(result.exception, UserError | SystemExit | typer.Exit), result.output
    if verb in OPENING:
        assert isinstance(result.exception, UserError)
        assert "config.json: field 'auto_map' asks for code that comes with the model" in str(result.exception)


@pytest.mark.parametrize("verb", ["grade", "format show"])
@pytest.mark.parametrize(
    "content", [PYTHON, "kind: absolute\ndialect: verdict\nuser: '" + JINJA.replace("'", "''") + "'\n"]
)
def test_a_hostile_format_is_data(verb: str, content: str, tmp_path: Path, marker: Path) -> None:
    path = tmp_path / "format.yaml"
    path.write_text(content.format(marker=marker), "utf-8")
    items = write_jsonl(tmp_path / "i.jsonl", rows(2))
    arguments = (
        ["grade", items, "--judge", "mock:oracle", "--format", path, "--out", tmp_path / "run"]
        if verb == "grade"
        else ["format", "show", path]
    )
    result = CliRunner().invoke(app, [str(each) for each in arguments], input="y\n" * 10)
    assert isinstance(result.exception, UserError), result.output
    assert not marker.exists()


@pytest.mark.parametrize(
    "line",
    [
        lambda path, tmp: ["corpus", "build", path, "--out", tmp / "built"],
        lambda path, tmp: ["train", "sft", "--config", path],
        lambda path, tmp: ["grade", tmp / "i.jsonl", "--judge", "mock:oracle", "--rubric", path, "--out", tmp / "r"],
        lambda path, tmp: ["grade", tmp / "i.jsonl", "--judge", "mock:oracle", "--config", path, "--out", tmp / "r"],
        lambda path, tmp: ["train", "dpo", "--config", path],
        lambda path, tmp: ["make-judge", path, "--out", tmp / "r"],
        lambda path, tmp: ["bench", "run", path, "--judge", "mock:oracle", "--out", tmp / "r"],
        lambda path, tmp: ["annotate", tmp / "i.jsonl", "--rubric", path, "--export", "--out", tmp / "r"],
        lambda path, tmp: ["align", "--policy", tmp, "--judge", "mock:oracle", "--prompts", tmp / "i.jsonl",
                           "--held-out", tmp / "i.jsonl", "--training", path, "--out", tmp / "r"],
    ],
    ids=["recipe", "training", "rubric", "configuration", "preferences", "judge", "bench", "labels", "alignment"],
)  # fmt: skip
def test_a_hostile_yaml_is_data(line: Callable[[Path, Path], list[object]], tmp_path: Path, marker: Path) -> None:
    write_jsonl(tmp_path / "i.jsonl", rows(2))
    path = tmp_path / "hostile.yaml"
    for content in (PYTHON, f"name: {PYTHON}\n", "criterion: &a [*a]\n"):
        path.write_text(content.format(marker=marker) if "{marker}" in content else content, "utf-8")
        result = CliRunner().invoke(app, [str(each) for each in line(path, tmp_path)], input="y\n" * 10)
        assert isinstance(result.exception, UserError | SystemExit), (content, result.exception, result.output)
        assert not marker.exists()


@pytest.mark.parametrize("key", ["model", "init"])
def test_a_recipe_of_a_judge_whose_model_brings_code_is_refused_before_anything_is_built(
    key: str, evil: Path, tmp_path: Path, marker: Path
) -> None:
    (tmp_path / "set.yaml").write_text("{recipe: feedback, teacher: 'world:text', rubrics: 1}", "utf-8")
    held = write_jsonl(tmp_path / "held.jsonl", rows(2, rubric="helpfulness"))
    told = {"corpus": [{"recipe": "set.yaml"}], "held": {"items": held.name}, "train": {key: evil.name, "steps": 1}}
    (tmp_path / "judge.yaml").write_text(yaml.safe_dump(told), "utf-8")
    arguments = ["make-judge", str(tmp_path / "judge.yaml"), "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, arguments, input="y\n" * 100)
    assert "field 'auto_map' asks for code that comes with the model" in str(result.exception)
    assert not (tmp_path / "out").exists()
    assert not marker.exists()


@pytest.mark.parametrize("name", ["../outside", "/tmp/outside", "..", ".", "a/b", "", "-rf", "a\nb", "x" * 81, "a\0b"])
def test_a_bench_names_no_folder_outside_of_out(name: str, tmp_path: Path) -> None:
    path = bench(tmp_path)
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text("utf-8")), "name": name}), "utf-8")
    arguments = ["bench", "run", path, "--judge", "mock:random", "--data", tmp_path, "--out", tmp_path / "a" / "out"]
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    assert "mine.yaml" in str(result.exception)
    assert "field 'name'" in str(result.exception)
    assert not (tmp_path / "a").exists()


def test_a_template_in_published_rows_stays_text_in_the_format_learnt_from_them(tmp_path: Path, marker: Path) -> None:
    """Rows are data: what looks like a template in the prompts that a format is learnt from is part of the prompt."""
    reach = f"{{{{ cycler.__init__.__globals__.os.mkdir('{marker}') }}}}{{% include 'rubric' %}}"
    words = ("oak", "elm", "ash", "fir", "yew", "bay", "box", "rue")
    prompts = [
        f"## Task\n{reach} [RESULT]\n## Question\n{words[i % 8]} {i * 7}\n## Answer\n{words[i * 3 % 8]} {i}\n## End"
        for i in range(24)
    ]
    source = write_jsonl(tmp_path / "rows.jsonl", [{"prompt": each} for each in prompts])
    out = tmp_path / "learnt.yaml"
    result = CliRunner().invoke(
        app, ["format", "learn", str(source), "--prompt", "prompt", "--accept-names", "--out", str(out)]
    )
    assert result.exit_code == 0, (result.output, result.exception)
    shown = CliRunner().invoke(app, ["format", "show", str(out)])
    assert reach in shown.output
    assert not marker.exists()
