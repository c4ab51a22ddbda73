"""The server that stands in for an API where the commands of README, tutorials and examples are run."""

import csv
import importlib.metadata
import os
import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import orjson
import yaml
from aiohttp import web

import hub_server
from dikast.engines.http.prices import SHIPPED
from dikast.testing.faults import FaultServer
from engines.provider_servers import OPENAI_FIELDS, openai_error

ROOT = Path(__file__).parents[1]
PLUGIN = "dikast.testing.pytest_plugin"


@cache
def grades() -> dict[str, int]:
    """What the server thinks of each answer of the examples: as people do, but for every fifth, one level apart."""
    with open(ROOT / "examples" / "answers.csv", newline="") as file:
        rows = [(row["answer"], int(row["human_score"])) for row in csv.DictReader(file)]
    for path in sorted((ROOT / "examples" / "five-models").iterdir()):
        if path.stem not in ("north", "south"):  # whose answers are those of answers.csv
            rows += [(row["answer"], row["human_score"]) for row in map(orjson.loads, path.read_bytes().splitlines())]
    late = [*(ROOT / "examples" / "late").glob("*.csv")]
    for path in sorted(late):  # of these it counts sentences
        with open(path, newline="") as file:
            rows += [
                (row["answer"], min(5, len(re.findall(r"[.?!](?: |$)", row["answer"])))) for row in csv.DictReader(file)
            ]
    return {
        text: (score - 1 if score > 3 else score + 1) if k % 5 == 4 else score for k, (text, score) in enumerate(rows)
    }


def text_of(body: Mapping[str, Any]) -> str:
    """All text that a request shows."""
    parts = []
    for message in body["messages"]:
        content = message["content"]
        parts += [content] if isinstance(content, str) else [part.get("text", "") for part in content]
    return "\n".join(parts)


def reply(body: Mapping[str, Any]) -> str:
    """A grade of the one answer that is shown, or the better of two; the first of equals. Other models are too mild."""
    shown = text_of(body)
    every, off = {"llama3.2": (2, 2), "gpt-4.1": (7, 1)}.get(body["model"], (1, 0))
    found = sorted(
        (shown.index(text), min(5, grade + off * (k % every == every - 1)))
        for k, (text, grade) in enumerate(grades().items()) if text in shown
    )  # fmt: skip
    if len(found) < 2:
        return f"It was held against the rubric.\nVerdict: {found[0][1] if found else 3}"
    (_, first), (_, second) = found[:2]
    return f"Both were read.\nVerdict: {'A' if first >= second else 'B'}"


class AnyModel(FaultServer):
    """One server that has every model it is asked for. Those of OpenAI's take the fields of its format alone, and give
    log-probabilities: the pages name models that do not reason.
    """

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = orjson.loads(await request.read())
        if body["model"].startswith("gpt-") and (odd := sorted(body.keys() - OPENAI_FIELDS)):
            wrong = openai_error(f"Unrecognized request argument supplied: {odd[0]}")
            return web.json_response(wrong.body, status=wrong.status)
        self.model = body["model"]
        return await super()._chat(request)


class Hub(hub_server.Hub):
    """A Hub with one data set: the answers of the examples."""

    files: ClassVar[dict[str, dict[str, Any]]] = {
        "your-team/answers": {"data/train.csv": (ROOT / "examples" / "answers.csv").read_text("utf-8")}
    }


def environment(server: FaultServer, folder: Path) -> dict[str, str]:
    """Variables for a command run in `folder`: the API is the server, and the home folder is empty."""
    prices = folder / "home" / ".config" / "dikast" / "prices.yaml"  # by the address none would be known
    prices.parent.mkdir(parents=True, exist_ok=True)
    shipped = yaml.safe_load(SHIPPED.read_text("utf-8"))["openai"].items()
    kept = {model: {key: each[key] for key in ("in", "cached", "out") if key in each} for model, each in shipped}
    prices.write_text(yaml.safe_dump(kept), "utf-8")
    installed = any(each.value == PLUGIN for each in importlib.metadata.entry_points(group="pytest11"))
    return {
        **os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "NO_COLOR": "1",
        "OPENAI_BASE_URL": server.url, "OLLAMA_HOST": server.url.removesuffix("/v1"),
        "OPENAI_API_KEY": "a-key-for-tests", "COLUMNS": "120", "HOME": str(folder / "home"), "PYTEST_ADDOPTS": "",
        "XDG_CONFIG_HOME": str(prices.parents[1]),
        "HF_HUB_DISABLE_XET": "1", "NO_PROXY": "127.0.0.1",
        **({} if installed else {"PYTEST_PLUGINS": PLUGIN}),
    }  # fmt: skip
