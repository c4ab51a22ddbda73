"""What doctor finds, on this machine and beside a torchvision that does not load."""

import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benches.own_bench import own
from benches.test_bench_runs import _keys
from dikast.surface import doctor
from dikast.surface.doctor import Finding, matching_torchvision, render
from runs import dikast_here, files_in, flips, write_jsonl

BROKEN = "raise RuntimeError('operator torchvision::nms does not exist')\n"


@pytest.fixture
def broken_torchvision(tmp_path: Path) -> Path:
    """A folder for PYTHONPATH with a torchvision like one that was built for another torch."""
    (tmp_path / "torchvision").mkdir()
    (tmp_path / "torchvision" / "__init__.py").write_text(BROKEN)
    (tmp_path / "torchvision-0.20.0.dist-info").mkdir()
    (tmp_path / "torchvision-0.20.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: torchvision\nVersion: 0.20.0\n"
    )
    return tmp_path


def run(code: str, beside: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(beside), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1"}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300)


def test_a_torchvision_that_does_not_load_is_found_and_cured(broken_torchvision: Path) -> None:
    pytest.importorskip("torch")
    code = "import json, dikast.surface.doctor as d; print(json.dumps(d.as_json(d.examine())))"
    made = run(code, broken_torchvision)
    findings = {each["name"]: each for each in json.loads(made.stdout)}
    vision = findings["torchvision"]
    assert (vision["state"], vision["version"]) == ("broken", "0.20.0")
    assert vision["detail"].endswith("operator torchvision::nms does not exist")
    torch_version = importlib.metadata.version("torch")
    assert f"goes with torchvision {matching_torchvision(torch_version)}.*" in vision["cure"]
    assert findings["torch"]["state"] == "ok", "it harms its own finding, and what imports it"
    assert findings["transformers"]["state"] == "broken"
    assert "torchvision" in findings["transformers"]["cure"]
    for name in ("python", "core"):
        assert findings[name]["state"] == "ok"


def test_the_local_engine_says_the_same(broken_torchvision: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    code = (
        "import sys, tiny_models; from dikast.engines.local.engine import LocalEngine\n"
        f"made = {str(tmp_path / 'model')!r}\n"
        "import transformers\n"
        "LocalEngine(made, device='cpu')\n"
    )
    import tiny_models

    tiny_models.build("llama", tmp_path / "model")
    made = run(code, broken_torchvision)
    assert "UserError: torchvision is installed but does not load" in made.stderr
    assert "install the torchvision that matches your torch" in made.stderr


def test_render_puts_the_cure_below_its_finding() -> None:
    text = render([Finding("torch", "ok", "2.13.0", "no CUDA"), Finding("pyarrow", "missing", cure="pip install it")])
    assert text == "ok      torch    2.13.0  no CUDA\nmissing pyarrow\n        -> pip install it"


def test_torchvision_pairs_with_torch() -> None:
    assert matching_torchvision("2.13.0+cpu") == "0.28"
    assert matching_torchvision("2.6.0") == "0.21"
    assert matching_torchvision("") == ""


def test_a_package_that_crashes_harms_only_its_finding() -> None:
    package = doctor._Package("crash", "import os; os.abort()", "nothing", "reinstall it")
    found = doctor._finding(package, doctor._start(package.proof), "1.0")
    assert (found.state, found.cure) == ("broken", "reinstall it")
    assert "signal 6" in found.detail


def test_the_model_cache_is_where_its_variables_say(tmp_path: Path) -> None:
    found = doctor._cache({"HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": "1"})
    assert found.state == "ok"
    assert found.detail.startswith(str(tmp_path / "hf" / "hub"))
    assert found.detail.endswith("offline (HF_HUB_OFFLINE)")


def test_looking_imports_nothing_into_this_process() -> None:
    made = run("import sys, dikast.surface.doctor; print({'torch', 'transformers'} & set(sys.modules))", Path("."))
    assert made.stdout.strip() == "set()", made.stderr
    assert importlib.util.find_spec("dikast.surface.doctor") is not None


@pytest.mark.soak(1000)
@pytest.mark.parametrize("kind", ["ranked", "bench"])
def test_a_flipped_bit_in_rankings_and_benches_is_found_or_harmless(kind: str, tries: int, tmp_path: Path) -> None:
    """What `dikast doctor` does not find leaves every figure as it was."""
    run, page, judge = tmp_path / "run", tmp_path / "page.json", ("--judge", "mock:random")
    if kind == "ranked":
        three = {"instruction": "Say it.", "responses": ["a", "b", "c"], "gold": [1, 2, 3]}
        file = write_jsonl(tmp_path / "items.jsonl", [{"id": f"r{n}", **three} for n in range(3)])
        made = dikast_here("rank", file, *judge, "--rubric", "helpfulness", "--schedule", "full", "--out", run, "-q")
        shown: tuple[object, ...] = ("report", run, "-o", page)
    else:
        pair = {"response_A": "a", "response_B": "b", "label": "A>B", "source": "u", "response_model": "m"}
        rows = [{"pair_id": f"p{n}", "question": f"q{n}", **pair} for n in range(12)]
        bench = own(tmp_path, rows, **_keys("judgebench"))
        made = dikast_here("bench", "run", bench, *judge, "--data", tmp_path, "--out", run, "-q")
        shown = ("bench", "report", run, "--draws", 20, "-o", page)
    assert made.returncode == 0, made.stderr

    def figures() -> bytes:
        assert dikast_here(*shown).returncode == 0
        return page.read_bytes()

    whole, found = figures(), 0
    assert figures() == whole
    for number, changed in enumerate(flips(run, files_in(run), tries, 11)):
        if dikast_here("doctor", run).returncode == 0:
            assert figures() == whole, (number, changed)
        else:
            found += 1
    assert found >= 0.99 * tries
