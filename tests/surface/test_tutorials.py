"""The commands of the README and of the tutorials, run as they stand on fresh copies of `examples`.

`sh` and `python` blocks are run in order, each page in a folder of its own; a `text` block after one is what it prints,
whole or, with a line `...`, in part. The API model is a server on loopback, which looks each answer up in a table of
grades.
`DIKAST_WRITE_GOLDEN=1` writes the whole ones anew.
"""

import csv
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any

import pytest

import dikast
import tiny_models
from dikast.testing.faults import FaultServer
from hub_server import served
from stand_in import ROOT, AnyModel, Hub, environment, reply

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "tutorials").glob("*.md"))]
SLOW = ("circle", "five-models", "gate", "last-year", "my-csv", "panel", "reward", "train", "two-models")
WRITE = os.environ.get("DIKAST_WRITE_GOLDEN") == "1"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    with AnyModel(reply) as opened:
        yield opened


@pytest.fixture(scope="module")
def hub() -> Iterator[dict[str, str]]:
    """Variables for the page whose data lie on the Hub: a server that speaks as the Hub does."""
    with served(Hub) as address:
        yield {"HF_ENDPOINT": address, "HF_HUB_OFFLINE": "0"}


def missing(expected: str, printed: str) -> list[str]:
    """The lines that were promised and not printed; all of them in order, unless the block leaves some out."""
    wanted, got = [
        [" ".join(line.split()) for line in text.splitlines() if line.strip()] for text in (expected, printed)
    ]
    if "..." in wanted:
        return [line for line in wanted if line != "..." and line not in got]
    return [] if wanted == got else [f"{a!r} is {b!r}" for a, b in zip_longest(wanted, got) if a != b]


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.slow] * (page.stem in SLOW), id=page.stem) for page in PAGES]
)
def test_the_commands_of_a_page_do_what_it_says(
    page: Path, server: FaultServer, hub: dict[str, str], tmp_path: Path
) -> None:
    shutil.copytree(ROOT / "examples", tmp_path, dirs_exist_ok=True)
    variables = {**environment(server, tmp_path), **(hub if page.stem == "hub" else {})}
    whole = page.read_text("utf-8")
    blocks = BLOCK.findall(whole)
    for (kind, code), (after, expected) in pairwise([*blocks, ("", "")]):
        if kind not in ("sh", "python"):
            continue
        command = ["bash", "-euo", "pipefail", "-c", code] if kind == "sh" else [sys.executable, "-c", code]
        done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True)
        assert done.returncode == 0, f"{code}\n{done.stdout}{done.stderr}"
        if after == "text" and WRITE and "..." not in expected:
            block = f"```{kind}\n{code}```\n\n```text\n"
            whole = whole.replace(f"{block}{expected}```", f"{block}{done.stdout.strip()}\n```")
        elif after == "text":
            assert missing(expected, done.stdout) == [], done.stdout
    if page.stem == "circle":
        the_new_judge_is_better(tmp_path)
    if WRITE:
        page.write_text(whole, "utf-8")


@pytest.mark.slow
def test_the_local_model_of_the_readme(server: FaultServer, tmp_path: Path) -> None:
    """The command as it stands, offline, with a tiny model of the same kind under its name in the Hub's cache."""
    pytest.importorskip("transformers")
    (command,) = [code for _, code in BLOCK.findall(PAGES[0].read_text("utf-8")) if "--judge hf:" in code]
    organisation, model = re.findall(r"--judge hf:([\w.-]+)/([\w.-]+)", command)[0]
    repo = tmp_path / "hf" / "hub" / f"models--{organisation}--{model}"
    (repo / "refs").mkdir(parents=True)
    (repo / "refs" / "main").write_text("a" * 40)
    says_four(tiny_models.build("qwen", repo / "snapshots" / ("a" * 40)))
    shutil.copytree(ROOT / "examples", tmp_path / "here")
    variables = {**environment(server, tmp_path / "here"), "HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=tmp_path / "here",
        env=variables,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "verdicts    24 (24 asked now)" in done.stdout
    (run,) = (tmp_path / "here" / "runs").iterdir()
    verdicts = list(dikast.Run(run))
    assert {verdict.label for verdict in verdicts} == {"4"}
    assert all(verdict.distribution and len(verdict.distribution) == 5 for verdict in verdicts)


def says_four(model: Path) -> None:
    """Give a model weights with which it ends every reply at once, and finds 4 the likeliest label of five."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    told: Any = AutoModelForCausalLM.from_pretrained(model)
    tokens: Any = AutoTokenizer.from_pretrained(model)
    labels = [f" {number}" for number in range(1, 6)]
    tokens.add_tokens(labels)  # as larger vocabularies have them, so that a label is one token
    told.resize_token_embeddings(len(tokens))
    with torch.no_grad():
        for name, weights in told.named_parameters():
            weights.fill_(1.0 if "norm" in name or "embed" in name else 0.0)  # the same state after every token
        head = torch.nn.Linear(told.config.hidden_size, len(tokens), bias=False)
        head.weight.fill_(-1.0)
        for label in labels:
            head.weight[tokens.convert_tokens_to_ids(label)] = 0.12 if label == " 4" else 0.1
        head.weight[told.generation_config.eos_token_id] = 0.13
    told.config.tie_word_embeddings = False
    told.set_output_embeddings(head)
    told.save_pretrained(model)
    tokens.save_pretrained(model)


def the_new_judge_is_better(folder: Path) -> None:
    """On held-out replies that both graded: its correlation with people is higher, and the interval of the paired
    difference excludes 0.
    """
    with (folder / "late/new.csv").open(newline="") as new, (folder / "late/replies.csv").open(newline="") as labelled:
        held_out, seen = ({row["id"] for row in csv.DictReader(each)} for each in (new, labelled))
    assert len(held_out) == 240
    assert not held_out & seen
    runs = [folder / "runs/new-first", folder / "runs/new-own"]
    old, own = (each["audit"]["tables"] for each in dikast.report(runs).numbers["runs"])
    assert figure(own, "agreement", "value")["value"] > figure(old, "agreement", "value")["value"]
    assert figure(own, "rival", "difference")["low"] > 0
    assert figure(own, "rival", "difference")["n"] == 240


def figure(tables: dict[str, Any], table: str, column: str) -> dict[str, Any]:
    """Pearson's correlation, or a difference of two, with its interval."""
    return next(dict(row[column]) for row in tables[table]["rows"] if row["statistic"] == "pearson")
