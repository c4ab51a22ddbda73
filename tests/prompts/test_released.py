"""Released judges: the catalog, and their own formats on first use, from real files and real loopback servers."""

import gzip
import importlib.util
import json
import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from dikast.core.errors import UserError
from dikast.core.item import Item
from dikast.core.rubric import Rubric
from dikast.core.scale import Scale
from dikast.judging.defaults import default_format, default_format_note, model_of
from dikast.judging.judge import Judge
from dikast.prompts.format import load_format
from dikast.prompts.parse import get_dialect
from dikast.prompts.released import catalog as catalog_module
from dikast.prompts.released import first_use, rows
from dikast.prompts.released.catalog import Origin, Prompted, Variant, catalog, find_released
from dikast.prompts.released.first_use import own_format

MODEL = "prometheus-eval/prometheus-7b-v1.0"
LEVELS = tuple((n, f"level {n}") for n in "12345")
RUBRIC = Rubric("r", "Is it right?", Scale.parse("1-5"), LEVELS)
COLUMNS = {
    "instruction": "orig_instruction", "response": "orig_response", "reference": "orig_reference_answer",
    "criterion": "orig_criteria", "levels": "orig_score*_description",
}  # fmt: skip
WORDS = ("alder", "bream", "clove", "dune", "elm", "finch", "gorse", "heath", "iris", "kelp", "loam", "moss")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, no network but loopback."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("DIKAST_CATALOG_DATA", raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return tmp_path


def published_rows(count: int) -> list[dict[str, str]]:
    """Rows in the columns of a published training set; the prompt around them is ours."""
    rng = random.Random(3)
    found = []
    for _ in range(count):
        row = {column: " ".join(rng.choices(WORDS, k=9)) for column in (*COLUMNS.values(),) if "*" not in column}
        row |= {f"orig_score{n}_description": " ".join(rng.choices(WORDS, k=5)) for n in range(1, 6)}
        levels = "\n".join(f"{n}: {row[f'orig_score{n}_description']}" for n in range(1, 6))
        row["instruction"] = (
            f"@@Work@@\nMark it, ending in [RESULT] and a number.\n@@Task@@\n{row['orig_instruction']}\n@@Answer@@\n"
            f"{row['orig_response']}\n@@Model answer@@\n{row['orig_reference_answer']}\n@@Scale@@\n"
            f"{row['orig_criteria']}\n{levels}\n@@Mark@@\n"
        )
        found.append(row)
    return found


def only(monkeypatch: pytest.MonkeyPatch, *origins: Origin, dialect: str = "bracketed") -> None:
    """A catalog whose one judge has its prompt from these origins."""
    judge = catalog()[0]
    prompted = replace(judge.prompts["absolute"], origins=origins, dialect=dialect)
    changed = replace(judge, prompts={"absolute": prompted})
    monkeypatch.setattr(catalog_module, "catalog", lambda: (changed,))


def hub_origin(sha256: tuple[str, ...] = (), way: str = "hub", file: str = "rows.json") -> Origin:
    return Origin(way, "someone/rows", "a" * 40, (Variant("", file, ("instruction",), {}, sha256),), COLUMNS)


def test_every_entry_of_the_catalog_is_whole() -> None:
    models = [model for released in catalog() for model in released.models]
    assert len(models) == len(set(map(str.casefold, models)))
    for released in catalog():
        assert released.about
        assert released.chat
        for kind, prompted in released.prompts.items():
            assert kind in ("absolute", "pairwise")
            get_dialect(prompted.dialect)
            assert bool(prompted.origins) != bool(prompted.without)
            assert not prompted.origins or prompted.cure
            for origin in prompted.origins:
                assert origin.way == "package" or len(origin.revision) == 40
                for variant in origin.variants:
                    assert all(len(digest) == 64 for digest in variant.sha256)
                    assert origin.module or origin.fields or variant.names


def test_a_checkpoint_is_known_in_any_case_and_in_the_cache_of_the_hub() -> None:
    for spelt in (MODEL, MODEL.upper(), "/x/hub/models--prometheus-eval--prometheus-7b-v1.0/snapshots/abc"):
        found = find_released(spelt)
        assert found is not None
        assert found.name == "prometheus"
    assert find_released("someone/prometheus-7b-v1.0") is None


@pytest.mark.parametrize(
    ("spec", "model"),
    [
        ("hf:a/b@main,batch_size=4", "a/b"),
        ("http://127.0.0.1:8000/v1#a/b", "a/b"),
        ("http://127.0.0.1:8000/v1", ""),
        ("openai:a/b", "a/b"),
        ("mock:oracle,r=.8", ""),
    ],
)
def test_the_model_of_a_spec(spec: str, model: str) -> None:
    assert model_of(spec) == model


def test_other_judges_are_asked_as_ever() -> None:
    assert default_format("mock:oracle", "absolute").name == "absolute"
    assert default_format("hf:someone/model", "pairwise").name == "pairwise"
    assert default_format_note("hf:someone/model", "absolute") == ""
    assert Judge("mock:oracle", RUBRIC).compare_format.name == "pairwise"


def test_a_released_judge_without_a_prompt_of_its_own_says_why() -> None:
    spec = "hf:lmms-lab/llava-critic-7b"
    assert default_format(spec, "absolute").name == "absolute"
    assert "it was trained on many prompts" in default_format_note(spec, "absolute")


def test_published_rows_in_a_folder_are_learnt_checked_and_kept(
    recorded: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two files, with a reference and without one, become one format; the catalog's fingerprints hold."""
    data = home / "data" / "prometheus-eval" / "prometheus-eval" / "eval" / "benchmark" / "data"
    data.mkdir(parents=True)
    for name in ("vicuna_eval.json.gz", "hhh_alignment_eval.json.gz"):
        (data / name).symlink_to(recorded / "prometheus" / name)
    monkeypatch.setenv("DIKAST_CATALOG_DATA", str(home / "data"))
    form = default_format(f"hf:{MODEL}", "absolute")
    (first, *_) = json.loads(gzip.decompress((data / "vicuna_eval.json.gz").read_bytes()))
    with_reference, without = (
        form.ask(Item.of("q", "a", **more), RUBRIC, (0,))[0].text for more in ({"reference": "r"}, {})
    )
    head = first["instruction"].partition("\n\n###The instruction")[0]
    assert with_reference.startswith(head)
    assert "###Reference Answer (Score 5):\nr\n\n" in with_reference
    assert "eference" not in without
    monkeypatch.delenv("DIKAST_CATALOG_DATA")
    assert default_format(f"http://h/v1#{MODEL}", "absolute") == form  # from the cache, without the folder
    own = own_format(MODEL, "absolute")
    assert own is not None
    assert "temperature 1.0" in default_format_note(f"hf:{MODEL}", "absolute")
    report = json.loads(own.path.with_suffix(".report.json").read_bytes())
    assert report["notes"][0].endswith("vicuna_eval.json: learnt from 20 prompts, fits 300 others")
    assert report["notes"][1].endswith("as in the catalog")
    own.path.write_text(own.path.read_text().replace("Response", "Reply"))
    with pytest.raises(UserError, match="but is not available"):  # no longer what was kept, and nothing to learn from
        own_format(MODEL, "absolute")


def test_another_prompt_than_the_catalog_expects_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "d" / "someone" / "rows").mkdir(parents=True)
    (home / "d" / "someone" / "rows" / "rows.json").write_text(json.dumps(published_rows(60)))
    monkeypatch.setenv("DIKAST_CATALOG_DATA", str(home / "d"))
    only(monkeypatch, hub_origin(("0" * 64,)))
    with pytest.raises(UserError, match=r"has sha256 [0-9a-f]{64}, the catalog expects 0{64}"):
        own_format(MODEL, "absolute")
    assert not first_use.cache_folder().exists()
    only(monkeypatch, hub_origin())
    own = own_format(MODEL, "absolute")
    assert own is not None
    report = json.loads(own.path.with_suffix(".report.json").read_bytes())
    assert any("trusted on first use" in note for note in report["notes"])


def test_offline_the_error_names_each_way_and_the_one_command_that_cures_it() -> None:
    with pytest.raises(UserError) as caught:
        Judge(f"http://127.0.0.1:9/v1#{MODEL}", RUBRIC).format  # noqa: B018
    text = str(caught.value)
    assert "HF_HUB_OFFLINE is set" in text
    assert text.count("cure: ") == 1
    assert "cure: git clone --depth 1 https://github.com/prometheus-eval/prometheus-eval " in text
    assert "--format absolute" in text
    if importlib.util.find_spec("prometheus_eval") is None:
        with pytest.raises(UserError, match="cure: pip install --no-deps prometheus-eval\n"):
            own_format("prometheus-eval/prometheus-7b-v2.0", "absolute")


class Hub(BaseHTTPRequestHandler):
    """A hub that serves one file of one data set at one commit, in parts, and counts what it is asked."""

    body: ClassVar[bytes] = b""
    asked: ClassVar[list[tuple[str, str]]] = []

    def do_GET(self) -> None:
        wanted = self.headers.get("Range", "")
        Hub.asked.append((self.path, wanted))
        if not self.path.endswith(f"/someone/rows/resolve/{'a' * 40}/rows.json") and "/raw/" not in self.path:
            self.send_error(404)
            return
        body = Hub.body[: int(wanted.rpartition("-")[2]) + 1] if wanted else Hub.body
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def hub() -> Iterator[str]:
    Hub.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


LEARN = """
import sys
from dataclasses import replace
from dikast.prompts.released import catalog as module, first_use, rows
from dikast.prompts.released.catalog import Origin, Variant
judge = module.catalog()[0]
fields = {fields!r}
origin = Origin("hub", "someone/rows", "a" * 40, (Variant("", "rows.json", ("instruction",), {{}}, ()),), fields)
prompted = replace(judge.prompts["absolute"], origins=(origin,))
module.catalog = lambda: (replace(judge, prompts={{"absolute": prompted}}),)
rows._FIRST_BYTES = {most}
print(first_use.own_format({model!r}, "absolute").told)
print(first_use.own_format({model!r}, "absolute").path)
"""


def learn_apart(most: int, **more: str) -> list[str]:
    """In a process of its own, as the Hub's client reads its settings once."""
    known = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **more}
    script = LEARN.format(fields=COLUMNS, most=most, model=MODEL)
    done = subprocess.run([sys.executable, "-c", script], env=known, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow  # imports the Hub's client
def test_a_data_set_of_the_hub_gives_its_first_rows(hub: str, home: Path) -> None:
    pytest.importorskip("huggingface_hub")
    Hub.body = json.dumps(published_rows(200)).encode()
    half = len(Hub.body) // 2  # as of a file too large to fetch whole
    told, path = learn_apart(half, HF_ENDPOINT=hub, HF_HUB_OFFLINE="0", HF_HOME=str(home / "hf"))
    assert f"the data set someone/rows at {'a' * 40}" in told
    asked = [each for each in Hub.asked if each[0].endswith("rows.json")]
    assert asked == [(f"/datasets/someone/rows/resolve/{'a' * 40}/rows.json", f"bytes=0-{half - 1}")]
    item = Item.of("q", "a", reference="r")
    text = load_format(path).ask(item, RUBRIC, (0,))[0].text
    assert text.endswith("Is it right?\n" + "".join(f"{n}: level {n}\n" for n in "12345") + "@@Mark@@\n")


@pytest.mark.slow  # imports the Hub's client
def test_a_data_set_that_lies_in_the_cache_of_the_hub_needs_no_network(home: Path) -> None:
    pytest.importorskip("huggingface_hub")
    folder = home / "hf" / "hub" / "datasets--someone--rows" / "snapshots" / ("a" * 40)
    folder.mkdir(parents=True)
    (folder / "rows.json").write_text(json.dumps(published_rows(60)))
    told, _ = learn_apart(2**20, HF_HUB_OFFLINE="1", HF_HOME=str(home / "hf"))
    assert told.endswith(f"the data set someone/rows at {'a' * 40}")


def test_a_repository_at_one_commit_gives_its_rows(hub: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "GITHUB", f"{hub}/raw")
    monkeypatch.delenv("HF_HUB_OFFLINE")
    Hub.body = "\n".join(map(json.dumps, published_rows(60))).encode()
    only(monkeypatch, hub_origin(way="github", file="data/rows.jsonl"))
    assert own_format(MODEL, "absolute") is not None
    assert Hub.asked == [(f"/raw/someone/rows/{'a' * 40}/data/rows.jsonl", "")]


PACKAGE = '''
import a_package_that_is_not_there

SYSTEM = "You mark."
SCORE_RUBRIC_TEMPLATE = """
<{criteria}>
Score 1: {score1_description}
Score 2: {score2_description}
""".strip()
ONE = """Mark {{it}}.
{instruction} / {response}
{rubric}
[RESULT] """
'''


def test_an_installed_package_is_read_and_never_run(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = home / "site"
    (site / "some_judge").mkdir(parents=True)
    (site / "some_judge" / "__init__.py").write_text("raise RuntimeError('imported')")
    (site / "some_judge" / "prompts.py").write_text(PACKAGE)
    (site / "some_judge-7.1.dist-info").mkdir()
    (site / "some_judge-7.1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: some-judge\nVersion: 7.1\n"
    )
    monkeypatch.syspath_prepend(str(site))
    origin = Origin("package", "some-judge", "", (Variant("", "ONE", (), {}, ()),), {}, "prompts.py", "SYSTEM")
    judge = catalog()[0]
    prompted = replace(judge.prompts["absolute"], origins=(origin,), scale="1-2")
    monkeypatch.setattr(catalog_module, "catalog", lambda: (replace(judge, prompts={"absolute": prompted}),))
    own = own_format(MODEL, "absolute")
    assert own is not None
    assert own.told.endswith("from the installed package some-judge at 7.1")
    rubric = Rubric("r", "Right?", Scale.parse("1-2"), (("1", "no"), ("2", "yes")))
    system, user = own.format.ask(Item.of("{q}", "a"), rubric, (0,))
    assert (system.role, system.text) == ("system", "You mark.")
    assert user.text == "Mark {it}.\n{q} / a\n<Right?>\nScore 1: no\nScore 2: yes\n[RESULT] "
    assert "some_judge.prompts" not in sys.modules


@pytest.mark.slow
def test_the_package_of_prometheus_2(home: Path) -> None:
    """Runs where `prometheus-eval` is installed (`pip install --no-deps prometheus-eval` is enough)."""
    if importlib.util.find_spec("prometheus_eval") is None:
        pytest.skip("prometheus-eval is not installed")
    own = own_format("prometheus-eval/prometheus-7b-v2.0", "absolute")
    assert own is not None
    assert "from the installed package prometheus-eval" in own.told
    prompts = importlib.util.spec_from_file_location("prompts", _module())
    assert prompts is not None
    assert prompts.loader is not None
    module = importlib.util.module_from_spec(prompts)
    prompts.loader.exec_module(module)
    told = {f"score{n}_description": f"level {n}" for n in "12345"}
    rubric = module.SCORE_RUBRIC_TEMPLATE.format(criteria="Is it right?", **told)
    for item, wanted in (
        (Item.of("q {x}", "a"), module.ABSOLUTE_PROMPT_WO_REF.format(instruction="q {x}", response="a", rubric=rubric)),
        (
            Item.of("q", "a\n", reference="r"),
            module.ABSOLUTE_PROMPT.format(instruction="q", response="a\n", rubric=rubric, reference_answer="r"),
        ),
    ):
        system, user = own.format.ask(item, RUBRIC, (0,))
        assert (system.text, user.text) == (module.ABS_SYSTEM_PROMPT, wanted)


def _module() -> str:
    spec = importlib.util.find_spec("prometheus_eval")
    assert spec is not None
    assert spec.submodule_search_locations
    return str(Path(spec.submodule_search_locations[0]) / "prompts.py")


def test_a_prompt_that_is_not_of_this_kind_falls_back() -> None:
    judge = catalog()[0]
    assert "pairwise" not in judge.prompts
    assert isinstance(judge.prompts["absolute"], Prompted)
    assert "it has no pairwise prompt" in default_format_note(f"hf:{MODEL}", "pairwise")
