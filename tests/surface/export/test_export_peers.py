"""Runs as the logs of Inspect and the samples of lm-evaluation-harness."""

import base64
import hashlib
import json
import math
import os
import re
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

import dikast
from browser import Browser
from dikast.core.errors import UserError
from own_environments import python_of
from ports import free_port
from runs import dikast_here, pairs, rows

HERE = Path(__file__).parent


def graded(folder: Path, judge: Any = "mock:oracle", **options: Any) -> dikast.Run:
    return dikast.grade(rows(40, meta={"topic": "numbers"}), judge, "helpfulness", out=folder, **options)


def fits(value: Any, schema: dict[str, Any], every: dict[str, Any], at: str = "log") -> list[str]:
    """What in a JSON value goes against a JSON schema (types, required, properties, items, anyOf, const, enum)."""
    if "$ref" in schema:
        return fits(value, every[schema["$ref"].rpartition("/")[2]], every, at)
    if "anyOf" in schema or "oneOf" in schema:
        tried = [fits(value, each, every, at) for each in schema.get("anyOf", schema.get("oneOf", []))]
        return [] if [] in tried else min(tried, key=lambda each: (each[0].startswith(f"{at}: "), len(each)))
    kinds: dict[str, Any] = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None),
                             "integer": int, "number": (int, float)}  # fmt: skip
    kind = schema.get("type")
    if kind and (not isinstance(value, kinds[kind]) or (kind in ("integer", "number") and isinstance(value, bool))):
        return [f"{at}: {value!r:.60} is no {kind}"]
    if ("const" in schema and value != schema["const"]) or ("enum" in schema and value not in schema["enum"]):
        return [f"{at}: {value!r:.60} is none of {schema.get('enum', schema.get('const'))}"]
    wrong: list[str] = []
    if isinstance(value, dict):
        known, more = schema.get("properties", {}), schema.get("additionalProperties", not schema.get("properties"))
        wrong += [f"{at}.{name} is missing" for name in schema.get("required", ()) if name not in value]
        for name, each in value.items():
            if name in known:
                wrong += fits(each, known[name], every, f"{at}.{name}")
            elif more is False:
                wrong.append(f"{at}.{name} is unknown")
            elif isinstance(more, dict):
                wrong += fits(each, more, every, f"{at}.{name}")
    if isinstance(value, list) and "items" in schema:
        for number, each in enumerate(value):
            wrong += fits(each, schema["items"], every, f"{at}[{number}]")
    return wrong


def inspect_log(run: dikast.Run, path: Path) -> dict[str, Any]:
    assert dikast.export(run, f"inspect:{path}").rows > 0
    log: dict[str, Any] = json.loads(path.read_text())
    schema = json.loads((HERE / "inspect_log.schema.json").read_text())
    assert fits(log, schema, schema["$defs"]) == []
    return log


def test_the_schema_refuses_what_is_wrong(tmp_path: Path) -> None:
    log = inspect_log(graded(tmp_path / "run"), tmp_path / "log.json")
    schema = json.loads((HERE / "inspect_log.schema.json").read_text())
    log["samples"][3]["scores"]["helpfulness"]["answer"] = 5
    log["samples"][4]["messages"][0]["role"] = "judge"
    del log["eval"]["created"]
    log["results"]["scores"][0]["scorers"] = []
    found = fits(log, schema, schema["$defs"])
    assert len(found) == 4
    assert {each.split(" ")[0].rstrip(":") for each in found} >= {
        "log.eval.created", "log.samples[3].scores.helpfulness.answer", "log.results.scores[0].scorers",
    }  # fmt: skip


def test_an_inspect_log_of_scores_has_failures_unscored(tmp_path: Path) -> None:
    run = graded(tmp_path / "run", "mock:oracle,refused=0.4")
    log = inspect_log(run, tmp_path / "log.json")
    table = list(run.table())
    for sample, row in zip(log["samples"], table, strict=True):
        score = sample["scores"]["helpfulness"]
        assert (sample["id"], sample["input"], sample["output"]["completion"]) == (
            row["id"], row["instruction"], row["response"],
        )  # fmt: skip
        assert sample["metadata"]["topic"] == "numbers"
        if row["status"] == "ok":
            assert (score["value"], score["answer"]) == (row["score"], row["label"])
        else:
            assert math.isnan(score["value"])
            assert score["reason"] == "refusal"
    scored = [row["score"] for row in table if row["score"] is not None]
    (told,) = log["results"]["scores"]
    assert 0 < told["unscored_samples"] == 40 - len(scored)
    assert told["metrics"]["mean"]["value"] == pytest.approx(sum(scored) / len(scored))
    n, mean = len(scored), sum(scored) / len(scored)
    error = math.sqrt(sum((score - mean) ** 2 for score in scored) / (n - 1) / n)
    assert told["metrics"]["stderr"]["value"] == pytest.approx(error)


def test_inspect_logs_of_pairs_panels_and_conversations(tmp_path: Path) -> None:
    compared = dikast.compare(pairs(20), "mock:position-biased", "helpfulness", out=tmp_path / "pairs")
    log = inspect_log(compared, tmp_path / "pairs.json")
    worth = {"a": 1, "b": 0, "tie": 0.5, "disagree": 0.5}
    values = [sample["scores"]["helpfulness"]["value"] for sample in log["samples"]]
    assert values == [worth[str(each.outcome)] for each in compared.preferences]
    assert all(len(sample["messages"]) == 3 for sample in log["samples"])
    panel = inspect_log(graded(tmp_path / "panel", ["mock:oracle", "mock:constant"]), tmp_path / "panel.json")
    assert list(panel["samples"][0]["scores"]) == ["helpfulness/mock:oracle", "helpfulness/mock:constant"]
    turns = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello"}]
    from PIL import Image

    Image.new("RGB", (32, 32)).save(tmp_path / "dot.png")
    items = [
        {"id": "talk", "instruction": turns, "response": "Hi"},
        {"id": "seen", "instruction": "What?", "image": str(tmp_path / "dot.png"), "response": "A dot"},
    ]
    run = dikast.grade(items, "mock:constant", "helpfulness", out=tmp_path / "talk")
    talk, seen = inspect_log(run, tmp_path / "talk.json")["samples"]
    assert [(each["role"], each["content"]) for each in talk["messages"]] == [
        ("system", "Be kind."), ("user", "Hello"), ("assistant", "Hi"),
    ]  # fmt: skip
    parts = {part["type"]: part for part in seen["messages"][0]["content"]}
    assert parts.keys() == {"text", "image"}
    data = base64.b64encode((tmp_path / "dot.png").read_bytes()).decode()
    assert parts["image"]["image"] == f"data:image/png;base64,{data}"  # the viewer shows no files
    (tmp_path / "dot.png").unlink()
    _, gone = inspect_log(run, tmp_path / "gone.json")["samples"]
    assert "dot.png" in json.dumps(gone["messages"][0])
    with pytest.raises(UserError, match=r"name it \.json"):
        dikast.export(run, f"inspect:{tmp_path / 'log.eval'}")


@pytest.mark.slow
def test_an_inspect_log_in_a_folder_has_a_name_that_the_viewer_lists(tmp_path: Path) -> None:
    run = graded(tmp_path / "my run")
    (tmp_path / "logs").mkdir()
    log = inspect_log(run, tmp_path / "logs" / "one.json")
    told = dikast.export(run, f"inspect:{tmp_path / 'logs' / 'one.json'}").notes
    assert any(
        f"only under names that begin with a time: export to inspect:{tmp_path / 'logs'} names" in each for each in told
    )
    for _ in range(2):
        assert not dikast.export(run, f"inspect:{tmp_path / 'logs'}").notes
        named, alone = sorted((tmp_path / "logs").iterdir())
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\+00-00_my-run_[0-9a-f]{12}\.json", named.name)
        assert (alone.name, json.loads(named.read_text("utf-8"))["samples"]) == ("one.json", log["samples"])


@pytest.mark.slow
def test_inspect_itself_reads_the_log_and_its_viewer_shows_it(tmp_path: Path, tab: Browser) -> None:
    python = python_of("inspect", "DIKAST_INSPECT", "make .inspect/ready")
    run = graded(tmp_path / "run", "mock:oracle,refused=0.4")
    dikast.export(run, f"inspect:{tmp_path / 'logs'}")
    (path,) = [each for each in (tmp_path / "logs").iterdir() if each.suffix == ".json"]
    env = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": ""}
    code = (
        "import sys; from inspect_ai.log import read_eval_log; read = read_eval_log(sys.argv[1]); "
        "print(read.status, len(read.samples), read.results.scores[0].name, read.results.scores[0].unscored_samples)"
    )
    read = subprocess.run([str(python), "-c", code, str(path)], capture_output=True, text=True, env=env, check=True)
    failed = sum(verdict.score is None for verdict in run)
    assert read.stdout.split() == ["success", "40", "helpfulness", str(failed)]
    dump = [str(python.parent / "inspect"), "log", "dump", str(path)]
    dumped = json.loads(subprocess.run(dump, capture_output=True, env=env, check=True).stdout)
    assert len(dumped["samples"]) == 40
    port = free_port()
    view = [str(python.parent / "inspect"), "view", "start", "--host", "127.0.0.1", "--port", str(port)]
    server = subprocess.Popen([*view, "--log-dir", str(tmp_path / "logs")], env=env, stdout=subprocess.DEVNULL)
    try:
        address, until = f"http://127.0.0.1:{port}", time.monotonic() + 60
        while not listens(port):
            assert server.poll() is None
            assert time.monotonic() < until, "the viewer does not listen"
            time.sleep(0.1)
        tab.visit(f"{address}/#/logs/{path.name}")
        while "helpfulness" not in (shown := str(tab.run("document.body.innerText"))):
            assert time.monotonic() < until, shown
            time.sleep(0.1)
        assert "run" in shown
    finally:
        server.terminate()
        server.wait(30)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_lm_eval_samples(tmp_path: Path) -> None:
    run = graded(tmp_path / "run", "mock:oracle,refused=0.4")
    done = dikast_here("export", str(run.folder), f"lm-eval:{tmp_path / 'lm'}")
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "lm").iterdir()
    task, date = path.stem.removeprefix("samples_").rsplit("_", 1)
    assert (task, path.suffix, len(date)) == ("run", ".jsonl", len("2026-11-23T05-37-05.123456"))
    samples = [json.loads(line) for line in path.read_text().splitlines()]
    keys = ["doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash",
            "prompt_hash", "target_hash", "helpfulness"]  # fmt: skip
    for number, (sample, row) in enumerate(zip(samples, run.table(), strict=True)):
        assert list(sample)[: len(keys)] == keys
        assert (sample["doc_id"], sample["doc"]["id"], sample["metrics"]) == (number, row["id"], ["helpfulness"])
        assert sample["helpfulness"] == row["score"]
        assert sample["arguments"] == {"gen_args_0": {"arg_0": row["instruction"], "arg_1": {}}}
        assert (sample["resps"], sample["filtered_resps"]) == ([[row["response"]]], [row["response"]])
        assert sample["prompt_hash"] == hashlib.sha256(row["instruction"].encode()).hexdigest()
    assert {sample["judged"]["helpfulness"]["status"] for sample in samples} == {"ok", "refused"}
    again = dikast_here("export", str(run.folder), f"lm-eval:{tmp_path / 'again'}")
    assert again.returncode == 0
    assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()
