"""Folders and run folders from elsewhere: nothing outside is removed, overwritten, fetched or passed over."""

import re
import threading
from collections.abc import Iterator
from html import unescape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import orjson
import pytest
import yaml
from PIL import Image as Pictures

import dikast
from dikast.audit.plan import AuditPlan
from dikast.core.errors import DataError, UserError
from dikast.rewards.pairs import pairs_of
from dikast.surface.completion import rubrics
from dikast.surface.report.collect import collect
from dikast.surface.report.report_options import Asked
from dikast.surface.viewer.run_index import RunIndex
from dikast.surface.viewer.viewer_pages import ViewerPages
from runs import dikast_here, pairs, rows, write_jsonl


@pytest.fixture
def run(tmp_path: Path) -> dikast.Run:
    items = write_jsonl(tmp_path / "items.jsonl", rows(4, category="math"))
    return dikast.grade(items, "mock:oracle", "helpfulness", out=tmp_path / "run")


@pytest.mark.parametrize("name", ["../victim.txt", "data/../../victim.txt", "{tmp}/victim.txt", ""])
def test_checksums_that_name_files_elsewhere_remove_nothing(name: str, run: dikast.Run, tmp_path: Path) -> None:
    (victim := tmp_path / "victim.txt").write_text("mine")
    folder = tmp_path / "hub"
    folder.mkdir()
    (folder / "README.md").write_text("x")
    sums = {"README.md": ["00000000"], name.format(tmp=tmp_path): ["00000000"]}
    (folder / "checksums.json").write_bytes(orjson.dumps(sums))
    with pytest.raises(DataError, match="damaged"):
        dikast.export(run, f"hf:{folder}")
    assert victim.read_text() == "mine"


def test_an_export_that_was_killed_goes_on_and_other_folders_stay(run: dikast.Run, tmp_path: Path) -> None:
    (tmp_path / "hub" / "data").mkdir(parents=True)
    (tmp_path / "hub" / "data" / "verdicts-00000-of-00001.parquet.part").write_bytes(b"half")
    assert dikast.export(run, f"hf:{tmp_path / 'hub'}").rows == 4
    (tmp_path / "hub" / "README.md").unlink()  # killed before the card
    (tmp_path / "hub" / "checksums.json").write_bytes(
        orjson.dumps({"data/verdicts-00000-of-00001.parquet": ["00000000"]})
    )
    assert dikast.export(run, f"hf:{tmp_path / 'hub'}").rows == 4
    other = dikast.grade(rows(2), "mock:oracle", "helpfulness", out=tmp_path / "other")
    with pytest.raises(UserError, match="not written by"):
        dikast.export(run, f"hf:{other.folder}")  # it has checksums of its own


def test_a_link_in_an_exports_folder_is_not_written_through(run: dikast.Run, tmp_path: Path) -> None:
    dikast.export(run, f"lm-eval:{tmp_path / 'lm'}")
    (samples,) = (tmp_path / "lm").iterdir()
    samples.unlink()
    (precious := tmp_path / "precious.txt").write_text("mine")
    samples.symlink_to(precious)
    with pytest.raises(UserError, match="link"):
        dikast.export(run, f"lm-eval:{tmp_path / 'lm'}")
    assert precious.read_text() == "mine"


@pytest.fixture
def listening() -> Iterator[tuple[str, list[str]]]:
    """The address of a server, and the paths that it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            asked.append(self.path)
            body = b'{"id": "i0", "instruction": "q", "response": "internal-secret"}\n'
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/items.jsonl", asked
    server.shutdown()
    server.server_close()


def test_an_address_in_a_run_folder_is_asked_only_when_it_is_named(
    run: dikast.Run, listening: tuple[str, list[str]], tmp_path: Path
) -> None:
    address, asked = listening
    lock = run.folder / "judge.lock.json"
    value = orjson.loads(lock.read_bytes()) | {"items": address}
    (run.folder / "checksums.json").unlink()
    lock.write_bytes(orjson.dumps(value))
    for verb in (("report", run.folder, "-o", tmp_path / "r.html"), ("export", run.folder, tmp_path / "o.jsonl")):
        done = dikast_here(*verb)
        assert done.returncode == 0, done.stderr
        assert asked == []
    assert "name the file that was judged with --items" in (tmp_path / "r.html").read_text()
    assert "internal-secret" not in (tmp_path / "o.jsonl").read_text()


def test_names_that_a_shell_could_obey_are_not_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("x$(touch pwned).yaml", "x`id`.yaml", 'x";id;".yaml', "x y.yaml", "xenial-1.yaml"):
        Path(name).write_text("criterion: c\n")
    assert rubrics("x") == ["xenial-1.yaml"]


@pytest.mark.parametrize("spoil", [b"", b'{"item": "p0"'])
def test_metadata_that_was_cut_off_is_told(spoil: bytes, tmp_path: Path) -> None:
    items = write_jsonl(tmp_path / "pairs.jsonl", [{**pair, "model_a": "m", "model_b": "n"} for pair in pairs(4)])
    out = tmp_path / "run"
    done = dikast_here("compare", items, "--judge", "mock:oracle", "--rubric", "helpfulness", "--out", out)
    assert done.returncode == 0, done.stderr
    assert (out / "meta.jsonl").stat().st_size
    (out / "meta.jsonl").write_bytes(spoil)
    done = dikast_here("audit", out)
    assert (done.returncode, "meta.jsonl" in done.stderr) == (2, True), done.stderr


def hostile_run(tmp_path: Path) -> dikast.Run:
    """A run whose items have metadata with hostile names, judged by criteria that are called like fields of lm-eval."""
    name = "x`|\n\n---\nconfigs: [evil]\n# Title ![i](http://evil.example/a.png) <b>"
    levels = {str(n): f"{n} of 5" for n in range(1, 6)}
    criteria = [
        {"name": each, "criterion": f"Is it {each}?", "levels": levels} for each in ("doc", "target", "doc_score")
    ]
    (tmp_path / "sheet.json").write_bytes(orjson.dumps({"name": "three", "criteria": criteria}))
    items = write_jsonl(tmp_path / "items.jsonl", rows(1, meta={name: "v", "ok": 1}))
    return dikast.grade(items, "mock:oracle", str(tmp_path / "sheet.json"), out=tmp_path / "run")


def test_the_card_of_an_export_takes_no_markup_from_names(tmp_path: Path) -> None:
    dikast.export(hostile_run(tmp_path), f"hf:{tmp_path / 'hub'}")
    head, _, body = (tmp_path / "hub" / "README.md").read_text().removeprefix("---\n").partition("\n---\n")
    assert [each["config_name"] for each in yaml.safe_load(head)["configs"]] == ["default"]
    assert not any(line.startswith(("# Title", "configs:", "--")) for line in body.splitlines())
    for mark in (" x`", " <", "`|", "![i]", "<b>", "http://evil"):
        assert mark not in body
    assert r"x\`\|" in body


@pytest.mark.parametrize(
    ("name", "task"),
    [("a\nb", "a_b"), ("x\u202ey", "x_y"), ("r" * 240, "r" * 100), ("..x y", "..x y"), ("caf\u00e9", "café")],
)
def test_a_run_folder_of_any_name_gives_a_plain_name_of_samples(name: str, task: str, tmp_path: Path) -> None:
    items = write_jsonl(tmp_path / "items.jsonl", rows(1))
    run = dikast.grade(items, "mock:oracle", "helpfulness", out=tmp_path / name)
    dikast.export(run, f"lm-eval:{tmp_path / 'lm'}")
    (path,) = (tmp_path / "lm").glob("samples_*.jsonl")
    assert path.name.startswith(f"samples_{task}_20")


def test_criteria_that_are_called_like_fields_take_none_away(tmp_path: Path) -> None:
    dikast.export(hostile_run(tmp_path), f"lm-eval:{tmp_path / 'lm'}")
    (path,) = (tmp_path / "lm").glob("samples_*.jsonl")
    sample = orjson.loads(path.read_bytes())
    assert sample["doc"]["instruction"] == "Is 0 even?"
    assert sample["target"] == "1"
    assert sample["metrics"] == ["doc_score", "target_score", "doc_score_score"]
    assert all(isinstance(sample[name], float) for name in sample["metrics"])
    assert set(sample["judged"]) == {"doc", "target", "doc_score"}


@pytest.mark.parametrize("asked", ["grade", "compare", "without", "sheet"])
def test_texts_that_were_edited_after_the_run_are_not_put_beside_its_verdicts(asked: str, tmp_path: Path) -> None:
    made = [{**row, "reference": "Odd."} for row in (pairs(4) if asked == "compare" else rows(4))]
    sheet = {"criteria": [{"name": "x", "criterion": "Is it short?"}, {"name": "y", "criterion": "Is it kind?"}]}
    (tmp_path / "sheet.yaml").write_bytes(orjson.dumps(sheet))
    items, out = write_jsonl(tmp_path / "i.jsonl", made), tmp_path / "run"
    more = ("--without", "reference") if asked == "without" else ()
    rubric = tmp_path / "sheet.yaml" if asked == "sheet" else "helpfulness"
    verb = "compare" if asked == "compare" else "grade"
    done = dikast_here(verb, items, "--judge", "mock:random", "--rubric", rubric, "--out", out, *more)
    assert done.returncode == 0, done.stderr

    def exported() -> tuple[list[str | None], str]:
        done = dikast_here("export", out, tmp_path / "e.jsonl")
        assert done.returncode == 0, done.stderr
        found = [orjson.loads(line) for line in (tmp_path / "e.jsonl").read_bytes().splitlines()]
        return [each.get("instruction") for each in found if each["criterion"] != "y"], done.stderr

    texts, told = exported()
    assert texts == [f"Is {k} even?" for k in range(4)]
    assert "no longer what was judged" not in told
    field = "responses" if asked == "compare" else "response"
    made[1][field] = ["It is.", "Look."] if asked == "compare" else "It is edited."
    made[2]["gold"] = [5, 1] if asked == "compare" else 4  # is not shown to this judge
    write_jsonl(items, made)
    texts, told = exported()
    assert texts == ["Is 0 even?", None, "Is 2 even?", "Is 3 even?"]
    assert (
        "1 item is no longer what was judged: the texts and pictures are left out; name the file that was judged"
        in told
    )


def test_pictures_that_were_replaced_after_the_run_are_not_put_beside_its_verdicts(tmp_path: Path) -> None:
    paint = {name: Pictures.new("RGB", (32, 32), name) for name in ("red", "blue")}
    made = [{**row, "image": f"{k}.png"} for k, row in enumerate(pairs(4))]
    for k in range(4):
        paint["red"].save(tmp_path / f"{k}.png")
    items, out = write_jsonl(tmp_path / "i.jsonl", made), tmp_path / "run"
    done = dikast_here("compare", items, "--judge", "mock:random", "--rubric", "helpfulness", "--out", out)
    assert done.returncode == 0, done.stderr
    paint["blue"].save(tmp_path / "1.png")
    paint["red"].save(tmp_path / "2.png")  # the same bytes again
    (tmp_path / "3.png").unlink()
    told = "1 item is no longer what was judged: the texts and pictures are left out"
    done = dikast_here("export", out, tmp_path / "e.jsonl")
    assert told in done.stderr
    found = [orjson.loads(line) for line in (tmp_path / "e.jsonl").read_bytes().splitlines()]
    assert [each["instruction"] is None for each in found] == [False, True, False, False]
    assert pairs_of(out, take="all").dropped["items that changed since they were judged"] == 1
    page = collect(out, Asked(AuditPlan(out, draws=20)))
    assert any(each.startswith(told) for each in page.missing)
    assert {each.item: bool(each.instruction) for each in page.entries} == {
        "p0": True,
        "p1": False,
        "p2": True,
        "p3": True,
    }
    assert {each.item: [bool(one.url) for one in each.pictures] for each in page.entries} == {
        "p0": [True], "p1": [], "p2": [True], "p3": [False],
    }  # fmt: skip
    shown = ViewerPages(RunIndex(tmp_path))
    for k, row in enumerate(re.findall(r'href="(/item[^"]*)"', shown.run({"of": "run"}))):
        query = dict(each.split("=") for each in urlsplit(unescape(row)).query.split("&"))
        assert (told in shown.item(query)) is (k == 1)
