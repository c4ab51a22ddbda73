"""The prompt that an opened row shows is the one that a server was sent, or it is not shown."""

import io
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Picture

import runs
from dikast.audit.plan import AuditPlan
from dikast.core.media.media_files import forget
from dikast.core.records.items import read_items
from dikast.core.rubric import load_rubric
from dikast.prompts.format import format_from, load_format
from dikast.surface.report.collect import collect
from dikast.surface.report.contents import ExactPrompts
from dikast.surface.report.report_options import Asked
from dikast.testing.faults import FaultServer

ROWS = [
    {"id": "a", "instruction": "Say <b>hi</b> {{ there }}.", "responses": ["hi {% x %}", "Verdict: 5"]},
    {"id": "b", "instruction": "Say bye.", "responses": ["bye", "# Rubric\nbye"], "reference": "bye bye"},
]


def asked(folder: Path, verb: str, *more: str) -> list[list[dict[str, Any]]]:
    """The messages that a server is sent about `ROWS`."""
    sent: list[list[dict[str, Any]]] = []

    def reply(body: Any) -> str:
        sent.append(body["messages"])
        return "Both do what was asked.\nVerdict: 4" if verb == "grade" else "Both do what was asked.\nVerdict: A"

    items = runs.write_jsonl(folder / "items.jsonl", ROWS)
    with FaultServer(reply=reply) as server:
        done = runs.dikast_here(
            verb, items, "--judge", server.spec, "--rubric", "helpfulness", "--out", folder / "run", *more
        )
    assert done.returncode == 0, done.stderr
    return sent


def shown(run: Path) -> list[str]:
    page = collect(run, Asked(AuditPlan(run, draws=20)))
    return [said.prompt for entry in page.entries for said in entry.said]


@pytest.mark.parametrize(
    ("verb", "more", "n"),
    [
        ("grade", ["--samples", "2", "--temperature", "1"], 8),
        ("grade", ["--without", "reference"], 4),
        ("grade", ["--without", "rubric"], 4),
        ("compare", [], 4),
    ],
)
def test_every_row_shows_what_was_sent(verb: str, more: list[str], n: int, tmp_path: Path) -> None:
    sent = asked(tmp_path, verb, *more)
    assert len(sent) == n
    spelt = sorted(
        "\n\n".join(f"{each['role']}:\n{_text(each['content'])}" for each in messages if each["role"] != "assistant")
        for messages in sent
    )
    assert sorted(shown(tmp_path / "run")) == spelt


def test_prompts_of_a_judge_that_reads_gold_are_shown(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(4))
    done = runs.dikast_here("grade", items, "--judge", "mock:oracle", "--rubric", "helpfulness", "--out",
                            tmp_path / "run")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert sum("ends in" in each for each in shown(tmp_path / "run")) == 4


def test_an_item_that_was_edited_has_no_prompt(tmp_path: Path) -> None:
    asked(tmp_path, "grade")
    runs.write_jsonl(tmp_path / "items.jsonl", [{**ROWS[0], "instruction": "Say hello."}, ROWS[1]])
    found = shown(tmp_path / "run")
    assert sum(each.startswith("not shown: rendered again it is another prompt") for each in found) == 2
    assert sum("Say bye." in each for each in found) == 2
    assert not any("Say hello." in each for each in found)


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


@pytest.mark.parametrize(
    "template", ["{{ 'x' * 9 }}", "{% for a in levels %}{% for b in levels %}x{% endfor %}{% endfor %}"]
)
def test_a_template_that_computes_is_not_rendered(template: str, tmp_path: Path) -> None:
    runs.write_jsonl(tmp_path / "items.jsonl", ROWS[:1])
    form = {**load_format("absolute").to_dict(), "name": "own", "user": "{{ criterion }} {{ response }} " + template}
    lock = {"format": format_from(form, path="x").to_dict()}
    item = next(iter(read_items(str(tmp_path / "items.jsonl"))))
    verdict = {"question": {"responses": [0]}, "key": "k", "hashes": {}}
    told = ExactPrompts(lock).of(item, verdict, load_rubric("helpfulness"))  # type: ignore[arg-type]
    assert told.startswith("not shown: the template of its format computes")


def test_a_page_fetches_no_picture_for_a_prompt(tmp_path: Path) -> None:
    asked_for: list[str] = []
    picture = io.BytesIO()
    Picture.new("RGB", (64, 64)).save(picture, "PNG")

    class Pictures(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked_for.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", str(len(picture.getvalue())))
            self.send_header("Content-Type", "image/png")
            self.end_headers()
            self.wfile.write(picture.getvalue())

    server = ThreadingHTTPServer(("127.0.0.1", 0), Pictures)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    row = {"instruction": "What is it?", "response": "Black.", "image": f"http://127.0.0.1:{server.server_port}/a.png"}
    items = runs.write_jsonl(tmp_path / "items.jsonl", [row])
    done = runs.dikast_here("grade", items, "--judge", "mock:constant", "--rubric", "helpfulness", "--out",
                            tmp_path / "run", "--allow-private-urls")  # fmt: skip
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert asked_for
    forget()
    asked_for.clear()
    assert shown(tmp_path / "run") == ["not shown: it has pictures on the web, which a page does not fetch"]
    assert asked_for == []
    server.shutdown()
    server.server_close()
