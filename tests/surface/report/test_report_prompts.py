"""The prompt that an opened row shows is the one that a server was sent, or it is not shown."""

import base64
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
from dikast.core.part import Video
from dikast.core.records.items import read_items
from dikast.core.rubric import load_rubric
from dikast.prompts.format import format_from, load_format
from dikast.surface.report.collect import collect
from dikast.surface.report.contents import ExactPrompts, Thumbs
from dikast.surface.report.report_options import Asked
from dikast.testing.faults import FaultServer
from videos import make_video

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


def test_the_frames_of_a_clip_that_were_sent_are_shown(tmp_path: Path) -> None:
    """As pictures, and by their seconds in the prompt; also those of a clip whose item says how many."""
    make_video(tmp_path / "long.mp4")
    clip = {"type": "video", "video": "long.mp4"}
    rows = [
        {"id": "set", "instruction": [clip, "Bright?"], "response": "It is."},
        {"id": "own", "instruction": [{**clip, "frames": 12}, "Dark?"], "response": [{**clip, "frames": 2}, "So?"]},
    ]
    items = runs.write_jsonl(tmp_path / "items.jsonl", rows)
    done = runs.dikast_here("grade", items, "--judge", "mock:constant", "--rubric", "helpfulness", "--frames", "4",
                            "--out", tmp_path / "run")  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = {
        each.item: each for each in collect(tmp_path / "run", Asked(AuditPlan(tmp_path / "run", draws=20))).entries
    }
    assert "[clip: 4 frames, at 0, 1, 1.75, 2.75 s]" in found["set"].said[0].prompt
    assert "[clip: 12 frames, at 0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, …, 2.75 s]" in found["own"].said[0].prompt
    assert "[clip: 2 frames, at 0, 2.75 s]" in found["own"].said[0].prompt
    assert [_grey(each.url) for each in found["set"].pictures] == pytest.approx([0, 80, 140, 220], abs=8)
    *shown, more = found["own"].pictures
    assert [_grey(each.url) for each in shown] == pytest.approx([0, 40, 60, 100, 120, 160, 180, 220], abs=8)
    assert more.instead == "and 4 more frames of the clip"
    assert len(found["own"].responses[0][2]) == 2


def test_a_clip_that_is_gone_or_on_the_web_is_named(tmp_path: Path) -> None:
    gone, web = Video(source="gone.mp4", root=str(tmp_path)), Video(source="http://127.0.0.1:9/a.mp4")
    one, other = Thumbs().of((gone, web))
    assert one.instead.startswith("clip not shown: ")
    assert "gone.mp4" in one.instead
    assert other.instead == "clip on the web: http://127.0.0.1:9/a.mp4"


def _grey(url: str) -> int:
    """The level of grey of a picture of one."""
    picture = Picture.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).convert("L")
    return int(picture.getpixel((picture.width // 2, picture.height // 2)))  # type: ignore[arg-type]


def test_an_item_that_was_edited_has_no_prompt(tmp_path: Path) -> None:
    asked(tmp_path, "grade")
    runs.write_jsonl(tmp_path / "items.jsonl", [{**ROWS[0], "instruction": "Say hello."}, ROWS[1]])
    found = shown(tmp_path / "run")
    assert sum(each.startswith("not shown: rendered again it is another prompt") for each in found) == 2
    assert sum("Say bye." in each for each in found) == 2
    assert not any("Say hello." in each for each in found)
    page = collect(tmp_path / "run", Asked(AuditPlan(tmp_path / "run", draws=20)))
    assert any(each.startswith("1 item is no longer what was judged") for each in page.missing)
    assert {entry.item: bool(entry.instruction) for entry in page.entries} == {"a": False, "b": True}


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
