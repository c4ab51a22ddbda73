"""Bad input is told before anybody is asked, and forms that no page sends change nothing."""

import asyncio
import os
import re
import resource
import shutil
import socket
import sqlite3
import ssl
import subprocess
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from PIL import Image

import runs
from annotation.labelling_here import Served, label, read, table
from dikast.annotation.assignment import RaterTask, assign
from dikast.annotation.label_store import LabelStore
from dikast.annotation.labelling_questions import read_questions
from dikast.annotation.labelling_server import LabelServer
from dikast.annotation.precision import Left, stop_rule
from dikast.annotation.session import Shares, opened
from dikast.audit.estimate import Estimate
from dikast.core.errors import RunError, UserError
from dikast.core.gold import stated
from dikast.core.records import read_items
from dikast.core.rubric import Rubric, load_rubric
from dikast.corpus.convert import convert_file, records_of
from dikast.prompts.gold import gold_of


def annotate(items: Path, out: Path, *more: object) -> Any:
    return runs.dikast_here("annotate", items, "--out", out, "--export", *more)


def test_a_picture_that_is_not_there_is_named_with_its_line(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "i.jsonl", [*runs.rows(2), *runs.rows(1, id="x", image="gone.png")])
    done = annotate(items, tmp_path / "labels")
    assert done.returncode == 2
    assert "i.jsonl:3" in done.stderr
    assert "gone.png" in done.stderr
    assert not (tmp_path / "labels").exists()


def damaged(folder: Path) -> None:
    (folder / "labels.sqlite").write_bytes(b"no database" * 100)
    for name in ("labels.sqlite-wal", "labels.sqlite-shm"):
        (folder / name).unlink(missing_ok=True)


def newer(folder: Path) -> None:
    database = sqlite3.connect(folder / "labels.sqlite")
    database.execute("pragma user_version=9")
    database.close()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl here to make a certificate")
def test_other_machines_are_served_over_tls_alone(tmp_path: Path) -> None:
    items, cert, key = runs.write_jsonl(tmp_path / "i.jsonl", runs.rows(3)), tmp_path / "c.pem", tmp_path / "k.pem"
    make = ("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
            "/CN=labels", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert)  # fmt: skip
    subprocess.run(make, check=True, capture_output=True)
    served = Served(items, tmp_path / "labels", "--host", "0.0.0.0", "--tls-cert", cert, "--tls-key", key).start()
    host = f"//{socket.gethostname()}:{served.port}/"
    assert all(each.startswith(f"https:{host}") for each in served.links.values())  # not https://0.0.0.0
    link = served.links["1"].replace(host, f"//127.0.0.1:{served.port}/")

    async def ask() -> None:
        trusted = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=cert))
        async with aiohttp.ClientSession(connector=trusted) as session:
            async with session.get(link) as answer:
                mine = read(await answer.text())["task"]
            await label(session, link, "2", mine)
            with pytest.raises(aiohttp.ClientError):
                await session.get(link.replace("https:", "http:"))

    asyncio.run(ask())
    assert served.stop() == 0
    assert [row["human_1"] for row in table(tmp_path / "labels" / "labels.csv")].count("2") == 1


def without_links(folder: Path) -> None:
    (folder / "links.json").unlink()


def without_labels(folder: Path) -> None:
    (folder / "labels.sqlite").unlink()


def emptied(folder: Path) -> None:
    (folder / "labels.sqlite").write_bytes(b"")


def a_folder(folder: Path) -> None:
    (folder / "labels.sqlite").unlink()
    (folder / "labels.sqlite").mkdir()


def a_pipe(folder: Path) -> None:
    (folder / "links.json").unlink()
    os.mkfifo(folder / "links.json")


def test_a_database_without_its_log_replaces_no_labels(tmp_path: Path) -> None:
    items, out = runs.write_jsonl(tmp_path / "i.jsonl", runs.rows(4)), tmp_path / "labels"
    served = Served(items, out).start()
    link = served.links["1"]

    async def one() -> None:
        async with aiohttp.ClientSession() as session, session.get(link) as answer:
            await label(session, link, "2", read(await answer.text())["task"])

    asyncio.run(one())
    assert served.stop() == 0
    whole = {name: (out / name).read_bytes() for name in ("labels.csv", "labelled.jsonl", "trail.csv")}
    assert len(table(out / "trail.csv")) == 1
    (out / "labels.sqlite-wal").unlink()  # as if the database alone had been copied
    for more in (("--export",), ()):
        done = annotate(items, out, *more)
        assert done.returncode == 2
        assert "trail.csv holds 1 event and the database none; labels are in labels.sqlite-wal" in done.stderr
    assert {name: (out / name).read_bytes() for name in whole} == whole


@pytest.mark.parametrize(
    ("harm", "more", "told"),
    [
        (without_labels, (), "labels.sqlite: the labels are gone, though trail.csv shows that there were some"),
        (emptied, (), "labels.sqlite: the labels are gone"),
        (a_folder, (), "labels.sqlite: not a database of labels"),
        (a_pipe, (), "links.json: a pipe or a device"),
        (newer, (), "written by a newer Dikast (form 9"),
        (damaged, (), "not a database of labels"),
        (without_links, (), "links.json"),
        (None, ("--rubric", "Is it polite?"), "began with other items or rubric"),
        (None, ("--raters", 2), "began with other --raters (it was 1)"),
        (None, ("--rater", "anna"), "began with other --rater (it was 1)"),
        (None, ("--rater", "anna", "--rater", "Anna"), "each rater has a name of their own"),
        (None, ("--rater", "owner"), "--rater 'owner'"),
        (None, ("--rater", "a,b"), "--rater 'a,b'"),
        (None, ("--rater", "anna", "--raters", 3), "leave out --raters"),
        (None, ("--seed", 5), "began with other --seed"),
        (None, ("--pairs",), "a pair needs two"),
        (None, ("--training", 500), "only 4 questions have a known label"),
        (None, ("--overlap", 7), "--overlap 7: write a number from 1 to the 1 raters"),
        (None, ("--host", "0.0.0.0"), "--tls-cert"),
        (None, ("--tls-cert", "no.pem", "--tls-key", "no.pem"), "no.pem"),
    ],
)
def test_mistakes(harm: Callable[[Path], None] | None, more: tuple[object, ...], told: str, tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "i.jsonl", runs.rows(4))
    out = tmp_path / "labels"
    if "--overlap" not in more and "--training" not in more:
        assert annotate(items, out).returncode == 0
    if harm is not None:
        harm(out)
        for name in ("labels.csv", "trail.csv"):
            (out / name).write_text("what people said\n")
    done = annotate(items, out, *more)
    assert (done.returncode, told in done.stderr) == (2, True), done.stderr
    if harm is not None:
        assert {(out / name).read_text() for name in ("labels.csv", "trail.csv")} == {"what people said\n"}


def test_an_item_that_changes_while_people_label_is_refused(tmp_path: Path) -> None:
    """Some labels would be of the text before, others of the one after; what nobody has been shown may change."""
    rows = [{**row, "image": "p.png"} for row in runs.rows(4)]
    Image.new("RGB", (32, 32), "white").save(tmp_path / "p.png")
    items, out = runs.write_jsonl(tmp_path / "i.jsonl", rows), tmp_path / "labels"
    assert annotate(items, out).returncode == 0
    runs.write_jsonl(items, [{**row, "system": "x"} for row in rows])
    assert annotate(items, out).returncode == 0
    runs.write_jsonl(items, [*rows[:2], {**rows[2], "response": "Other words."}, rows[3]])
    done = annotate(items, out)
    assert done.returncode == 2
    assert f"i.jsonl:3: item {rows[2]['id']!r} has other texts, pictures or clips than when labelling" in done.stderr
    runs.write_jsonl(items, rows)
    Image.new("RGB", (32, 32), "black").save(tmp_path / "p.png")
    done = annotate(items, out)
    assert (done.returncode, "and 3 more questions" in done.stderr) == (2, True), done.stderr
    with closing(sqlite3.connect(out / "labels.sqlite", isolation_level=None)) as db:
        db.execute("delete from meta where key in ('shown', 'known')")  # as earlier versions wrote it
    assert annotate(items, out).returncode == 0


def test_gold_that_changes_while_people_label_is_refused(tmp_path: Path) -> None:
    """Raters were told the label before after a practice question, and their checks would be against two golds."""
    rows = runs.rows(4)
    items, out = runs.write_jsonl(tmp_path / "i.jsonl", [*rows[:3], {**rows[3], "gold": None}]), tmp_path / "labels"
    assert annotate(items, out).returncode == 0
    runs.write_jsonl(items, rows)  # gold that was not known before
    assert annotate(items, out).returncode == 0
    changed = 5 if rows[1]["gold"] != 5 else 4
    runs.write_jsonl(items, [rows[0], {**rows[1], "gold": changed}, *rows[2:]])
    done = annotate(items, out)
    assert done.returncode == 2
    told = f"i.jsonl:2: item {rows[1]['id']!r} has another known label (gold) than when labelling began: put back what"
    assert told in done.stderr
    runs.write_jsonl(items, rows)
    assert annotate(items, out).returncode == 0


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("update label set value='77'", "a label that the question does not have: '77'"),
        ("update label set value=x'00ff'", "a label that the question does not have"),
        ("update task set question='x'", "a question that is not asked: 'x'"),
        ("update task set kind='x'", "a task of no kind"),
        ("update event set at=1e300", "an event at no time"),
        ("update event set what=x'ff'", "without a text"),
        ("drop table event", "no such table: event"),
        ("update meta set value='x'", "began with other"),
    ],
)
def test_a_database_that_says_what_no_labelling_wrote_is_refused(change: str, told: str, tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "i.jsonl", runs.rows(3))
    questions = read_questions(str(items), {}, load_rubric("helpfulness"), "absolute")
    with opened(tmp_path / "labels", questions, Shares()) as session:
        session.store.keep(1, "3")
    before = (tmp_path / "labels" / "labels.csv").read_bytes()
    database = sqlite3.connect(tmp_path / "labels" / "labels.sqlite")
    with database:
        database.execute(change)
    database.close()
    with pytest.raises(UserError, match=told), opened(tmp_path / "labels", questions, Shares()):
        pass
    assert (tmp_path / "labels" / "labels.csv").read_bytes() == before


def test_a_log_is_damaged_or_cut_off(tmp_path: Path) -> None:
    """SQLite reads a log up to damage, without a word. An end that is missing is what a copy of a moment ago lacks."""
    items = runs.write_jsonl(tmp_path / "i.jsonl", runs.rows(30))
    questions = read_questions(str(items), {}, load_rubric("helpfulness"), "absolute")
    with opened(tmp_path / "labels", questions, Shares()) as session:
        for task in range(1, 21):
            session.store.keep(task, "3")
        log = session.store.log
    whole = log.read_bytes()
    for at in (10, 40, 60, len(whole) // 2, len(whole) // 4 * 3):
        flipped = bytearray(whole)
        flipped[at] ^= 64
        log.write_bytes(flipped)
        with pytest.raises(UserError, match="damaged"), opened(tmp_path / "labels", questions, Shares()):
            pass
    kept, told = [], list[str]()
    for share in range(0, 101, 5):
        log.write_bytes(whole[: len(whole) * share // 100])
        try:
            with opened(tmp_path / "labels", questions, Shares()) as session:
                kept.append(len(session.store.labels()))
        except UserError as refused:  # none is left, though the trail shows them
            told.append(str(refused))
            kept.append(0)
    assert told
    assert all("trail.csv holds 20 events and the database none" in each for each in told)
    assert kept == sorted(kept)
    assert (kept[0], kept[-1]) == (0, 20)


def test_raters_have_names_where_they_are_given(tmp_path: Path) -> None:
    """Links, columns and the trail name them, and the audit takes the columns as people's."""
    items = runs.write_jsonl(tmp_path / "i.jsonl", runs.rows(3))
    names = ("--rater", "anna", "--rater", "ben")
    served = Served(items, tmp_path / "labels", *names).start()
    assert list(served.links) == ["anna", "ben", "progress"]

    async def ask() -> None:
        async with aiohttp.ClientSession() as session:
            for name, value in (("anna", "4"), ("ben", "2")):
                page = await (await session.get(served.links[name])).text()
                while (task := read(page)["task"]) is not None:
                    page = await label(session, served.links[name], value, task)

    asyncio.run(ask())
    assert served.stop() == 0
    rows = table(tmp_path / "labels" / "labels.csv")
    assert [(row["human_anna"], row["human_ben"]) for row in rows] == [("4", "2")] * 3
    assert {row["rater"] for row in table(tmp_path / "labels" / "trail.csv")} == {"anna", "ben"}
    assert annotate(items, tmp_path / "labels", *names).returncode == 0
    again = annotate(items, tmp_path / "labels", "--raters", 2)
    assert "began with other --rater (it was anna, ben)" in again.stderr


@pytest.mark.parametrize(
    ("before", "kept", "after", "told"),
    [
        (Shares(names=("3",)), "3", Shares(raters=3, overlap=1), "--raters (it was 1)"),
        (Shares(raters=3, overlap=1), "3", Shares(names=("3",)), "--raters (it was 3)"),
        (Shares(names=("3",)), "3", Shares(), "--rater (it was 3)"),
        (Shares(names=("3",)), "3", Shares(names=("4",)), "--rater (it was 3)"),
        (Shares(names=("3",)), "3", Shares(names=("3",)), ""),
        (Shares(raters=3, overlap=1), "3", Shares(raters=3, overlap=1), ""),
        (Shares(raters=2, names=("anna", "ben")), "anna, ben", Shares(raters=2, names=("anna", "ben")), ""),
    ],
)
@pytest.mark.parametrize("old", [False, True])
def test_a_name_that_is_a_number_is_no_number_of_raters(
    before: Shares, kept: str, after: Shares, told: str, old: bool, tmp_path: Path
) -> None:
    """Also in folders of earlier versions, which kept either in one place (`kept`)."""
    items = runs.write_jsonl(tmp_path / "i.jsonl", runs.rows(3))
    questions = read_questions(str(items), {}, load_rubric("helpfulness"), "absolute")
    with opened(tmp_path / "labels", questions, before) as session:
        store = session.store.path
    if old:
        with sqlite3.connect(store) as database:
            database.execute("delete from meta where key='rater'")
            database.execute("update meta set value=? where key='raters'", (kept,))
        database.close()
    refused = pytest.raises(UserError, match=re.escape(told)) if told else nullcontext()
    with refused, opened(tmp_path / "labels", questions, after):
        pass


def test_one_process_labels_at_a_time(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "i.jsonl", runs.rows(2))
    served = Served(items, tmp_path / "labels").start()
    done = annotate(items, tmp_path / "labels")
    assert done.returncode == 1
    assert "another process is labelling here" in done.stderr
    assert served.stop() == 0


def test_what_no_page_sends_changes_nothing(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "i.jsonl", runs.rows(3))
    served = Served(items, tmp_path / "labels", "--raters", 2).start()
    one, two, owner = (served.links[name] for name in ("1", "2", "progress"))

    async def ask() -> None:
        async with aiohttp.ClientSession() as session:

            async def status(link: str, headers: dict[str, str] | None = None, **data: str) -> int:
                method = "POST" if data else "GET"
                async with session.request(method, link, data=data or None, headers=headers) as answer:
                    return answer.status

            async with session.get(one) as answer:
                assert "script-src 'sha256-" in answer.headers["Content-Security-Policy"]
                mine = read(await answer.text())["task"]
            assert await status(f"{two}/label", task=mine, value="1") == 400  # the task of another rater
            assert await status(f"{one}/label", task=mine, value="6") == 400
            assert await status(f"{one}/label", task="x", value="1") == 400
            assert await status(f"{one}/label", task=mine, value="") == 400  # a skip without a reason
            assert await status(f"{one}/label", task=mine, value="", reason="x" * 501) == 400
            other = {"Origin": "http://elsewhere.example"}
            assert await status(f"{one}/label", other, task=mine, value="1") == 403
            for kind in ("multipart/form-data", "application/x-www-form-urlencoded; charset=utf-16"):
                assert await status(f"{one}/label", {"Content-Type": kind}, task=mine, value="1") == 400
            for head, body in (("Content-Transfer-Encoding: evil", "1"), ("A: b\r\n" * 5000, "1"), ("no header", "1")):
                part = f'--X\r\nContent-Disposition: form-data; name="task"\r\n{head}\r\n\r\n{body}\r\n--X--\r\n'
                sent = {"Content-Type": "multipart/form-data; boundary=X"}
                async with session.post(f"{one}/label", data=part.encode(), headers=sent) as answer:
                    assert answer.status == 400, head
            assert await status(one[:-1] + ("a" if one[-1] != "a" else "b")) == 404
            assert await status(owner.replace("/o/", "/r/")) == 404  # the owner's word opens no rater's page
            assert await status(one.replace("/r/", "/o/")) == 404
            await label(session, one, "2", mine)
            await label(session, one, "5", mine)  # the second tab: the first label stays
            async with session.get(owner) as answer:
                page = await answer.text()
                assert "too few labels" in page

    asyncio.run(ask())
    assert served.stop() == 0
    (row,) = table(tmp_path / "labels" / "labels.csv")
    assert (row["human_1"], row["human_2"], row["gold"]) == ("2", "", "2")
    assert len(table(tmp_path / "labels" / "trail.csv")) == 1
    mode = (tmp_path / "labels" / "links.json").stat().st_mode & 0o777
    assert mode == 0o600


def test_overlap_is_even_and_repeats_come_later(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "p.jsonl", runs.pairs(60))
    questions = read_questions(str(items), {}, load_rubric("helpfulness"), "pairwise")
    tasks = assign(questions, 3, overlap=2, repeats=0.1, training=6, seed=1)
    assert tasks == assign(questions, 3, overlap=2, repeats=0.1, training=6, seed=1)
    known = {each.key: each.known for each in questions}
    counts: dict[str, int] = {}
    for mine in tasks:
        assert [each.kind for each in mine[:6]] == ["training"] * 6
        assert all(known[each.question] for each in mine[:6])
        own = [each.question for each in mine if each.kind == "item"]
        assert len(own) == len(set(own)) == 36  # 54 questions x 2 raters / 3
        again = [(at, each.question) for at, each in enumerate(mine) if each.kind == "repeat"]
        assert len(again) == 4
        assert all(mine.index(next(m for m in mine if m.question == key)) < at - 1 for at, key in again)
        assert 0.2 < sum(each.swapped for each in mine) / len(mine) < 0.8
        for key in own:
            counts[key] = counts.get(key, 0) + 1
    assert set(counts.values()) == {2}


def test_the_audit_reads_the_labels(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "items.jsonl", [{**runs.rows(1)[0], "id": "=1+1"}, *runs.rows(40)[1:]])
    judged = runs.dikast_here(
        "grade", items, "--judge", "mock:oracle,r=.9", "--rubric", "helpfulness", "--out", tmp_path / "run"
    )
    assert judged.returncode == 0, judged.stderr
    questions = read_questions(str(items), {}, load_rubric("helpfulness"), "absolute")
    with opened(tmp_path / "labels", questions, Shares(raters=2)) as session:
        for rater in (1, 2):
            while (due := session.store.due(rater)) is not None:
                assert session.store.keep(due.id, session.questions[due.question].known)
                assert not session.store.keep(due.id, "1")
    rows = table(tmp_path / "labels" / "labels.csv")
    assert "'=1+1" in [row["item"] for row in rows]
    assert [row["human_1"] for row in rows] == [row["human_2"] for row in rows] == [row["gold"] for row in rows]
    said = runs.dikast_here(
        "audit", tmp_path / "run", "--gold-file", tmp_path / "labels" / "labels.csv", "--gold", "human_1", "--gold",
        "human_2", "--draws", 50,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    assert "Agreement of 40 scores with gold" in said.stdout


@pytest.mark.parametrize("schema", ["argilla", "label-studio"])
def test_labels_teach_and_go_to_other_tools(schema: str, tmp_path: Path) -> None:
    """Grades 2, 3, 3 and 2, 5 teach 3 and 2; choices a, a, b teach a, and a, b teach nothing."""
    said = [["2", "3", "3"], ["2", "5", ""]], [["a", "a", "b"], ["a", "b", ""]]
    for folder, pairs, taught in (("grades", False, [3, 2]), ("pairs", True, ["a"])):
        items = runs.write_jsonl(tmp_path / f"{folder}.jsonl", (runs.pairs if pairs else runs.rows)(2))
        questions = read_questions(str(items), {}, load_rubric("helpfulness"), "pairwise" if pairs else "absolute")
        with opened(tmp_path / folder, questions, Shares(raters=3)) as session:
            for number, rater in enumerate((1, 2, 3)):
                while (due := session.store.due(rater)) is not None:
                    place = [each.key for each in questions].index(due.question)
                    session.store.keep(due.id, said[pairs][place][number], "cannot tell")
        found = list(read_items(tmp_path / folder / "labelled.jsonl"))
        assert [stated(item.gold, "helpfulness", pair=pairs) for item in found] == taught
        rubrics = [item.rubric for item in found if isinstance(item.rubric, Rubric)]
        shown = [gold_of(item, rubric, (0, 1) if pairs else (0,)) for item, rubric in zip(found, rubrics, strict=True)]
        assert [gold.label for gold in shown] == (["first"] if pairs else ["3", "2"])
        assert found[0].gold["raters"] == said[pairs][0]
        convert_file(tmp_path / folder / "labelled.jsonl", tmp_path / f"{folder}.json", to=schema)
        name = "preference" if pairs else "score"
        back = [record["gold"][name] for record, _ in records_of(tmp_path / f"{folder}.json")]
        assert back == [item.gold[name] for item in found]


@pytest.mark.parametrize("by_clock", [1.0, -3600.0])
def test_the_store_takes_back_the_last_label_only(
    by_clock: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the order in which labels arrive, also where the clock of the machine is set back between them."""
    moments = count(1_800_000_000.0, by_clock)
    monkeypatch.setattr("dikast.annotation.label_store.time", SimpleNamespace(time=lambda: next(moments)))
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(3))
    questions = read_questions(str(items), {}, load_rubric("helpfulness"), "absolute")
    with opened(tmp_path / "labels", questions, Shares()) as session:
        store: LabelStore = session.store
        first = store.due(1)
        assert first is not None
        store.keep(first.id, "1")
        second = store.due(1)
        assert second is not None
        store.keep(second.id, "2")
        assert not store.undo(1, first.id)
        assert store.undo(1, second.id)
        assert not store.undo(1, second.id)
        assert store.due(1) == second
        assert store.last(1) == first.id
        assert [event[5] for event in store.trail()] == ["label", "label", "undo"]
        assert [event[6] for event in store.trail()] == ["1", "2", "2"]


def test_labels_that_arrive_together_are_written_together(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(40))
    questions = read_questions(str(items), {}, load_rubric("helpfulness"), "absolute")
    with opened(tmp_path / "labels", questions, Shares()) as session:
        store, sizes, write = session.store, [], session.store.write
        server = LabelServer(store, session.questions, session.owner)

        def counted(changes: Sequence[Callable[[], bool]]) -> list[bool]:
            sizes.append(len(changes))
            return write(changes)

        store.write = counted  # type: ignore[method-assign]

        async def at_once(*changes: Callable[[], bool]) -> list[bool | BaseException]:
            return await asyncio.gather(*map(server._written, changes), return_exceptions=True)

        assert asyncio.run(at_once(*(store.label(task, "2") for task in range(1, 31)), store.label(30, "5")))[-2:] == [
            True, False,
        ]  # fmt: skip
        assert sizes == [31]
        done = asyncio.run(at_once(store.label(31, "2"), store.label(999, "2")))  # no such task: neither is kept
        assert [type(each) for each in done] == [sqlite3.IntegrityError] * 2
        assert [each.value for each in store.labels()] == ["2"] * 30


def test_the_stop_rule() -> None:
    # ±.06 from 30 labels: ±.03 takes 30 (.06/.03)^2 = 120 labels, 90 more
    found = Estimate(0.5, 30, 0.44, 0.56)
    assert stop_rule(found, 0.03, Left("question", 30, 90, 90)) == (
        "labels on 90 more questions bring the interval from ±0.060 to ±0.03"
    )
    assert stop_rule(found, 0.03, Left("question", 30, 89, 89)) == (
        "±0.03 would take labels on 90 more questions, and 89 are left: the interval is ±0.060"
    )
    # the same 30 labels on the claims of 10 responses: 10 (.06/.03)^2 = 40 items, 30 more
    assert stop_rule(found, 0.03, Left("item", 10, 35, 30)).startswith("labels on 30 more items bring")
    assert stop_rule(found, 0.03, Left("item", 10, 10, 0)) == (
        "±0.03 would take labels on 30 more items, and 0 have no label yet, 10 labels on some of their questions only:"
        " the interval is ±0.060"
    )
    assert stop_rule(Estimate(0.5, 30, 0.48, 0.52), 0.03, Left("question", 30, 9, 9)).startswith("enough")
    assert stop_rule(Estimate(0.5, 1), 0.03, Left("question", 1, 9, 9)).startswith("too few labels")


@pytest.mark.parametrize(
    ("row", "pairs", "known"),
    [
        ({"response": "y", "gold": {"score": 4.0, "label": "4", "claims": []}}, False, "4"),  # as worlds write it
        ({"response": "y", "gold": {"helpfulness": 2}}, False, "2"),
        ({"response": "y", "gold": 4.5}, False, ""),  # the mean of two raters is no label
        ({"responses": ["y", "z"], "gold": {"preference": "b", "raters": ["b", "b"]}}, True, "b"),  # labelled.jsonl
        ({"responses": ["y", "z"], "gold": [5, 2]}, True, "a"),
        ({"responses": ["y", "z"], "gold": {"scores": [1, 1]}}, True, "tie"),
    ],
)
def test_gold_in_any_form_is_a_known_label(row: dict[str, Any], pairs: bool, known: str, tmp_path: Path) -> None:
    path = runs.write_jsonl(tmp_path / "i.jsonl", [{"id": "i", "instruction": "x", **row}])
    found = read_questions(str(path), {}, load_rubric("helpfulness"), "pairwise" if pairs else "absolute")
    assert [each.known for each in found] == [known]


@pytest.mark.slow
def test_a_rater_is_told_where_a_label_cannot_be_saved_and_labels_on_when_it_can(tmp_path: Path) -> None:
    Image.new("RGB", (32, 32)).save(tmp_path / "p.png")
    rows = runs.rows(4, image="p.png")
    served = Served(runs.write_jsonl(tmp_path / "i.jsonl", rows), tmp_path / "labels").start()
    assert served.process is not None
    (tmp_path / "p.png").unlink()

    def grow(most: int) -> None:
        assert served.process is not None
        hard = resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, (most, hard))

    async def labelling() -> None:
        link = served.links["1"]
        async with aiohttp.ClientSession() as session:
            async with session.get(link) as answer:
                task = read(await answer.text())["task"]
            async with session.get(f"{link}/picture/{task}/0") as answer:
                assert answer.status == 404
            page = await label(session, link, "2", task)
            task = read(page)["task"]
            grow(1)  # what would go beyond fails as on a full disk
            async with session.post(f"{link}/label", data={"task": task, "value": "3"}) as answer:
                assert answer.status == 507
                assert "Nothing was saved" in await answer.text()
            grow(resource.RLIM_INFINITY)
            (tmp_path / "labels").rename(tmp_path / "away")  # else labels would go to a file that nobody finds
            async with session.post(f"{link}/label", data={"task": task, "value": "3"}) as answer:
                assert answer.status == 507
            (tmp_path / "away").rename(tmp_path / "labels")
            assert read(await label(session, link, "4", task))["task"] != task

    asyncio.run(labelling())
    assert served.stop() == 0
    assert sorted(row["human_1"] for row in table(tmp_path / "labels" / "labels.csv")) == ["2", "4"]


def test_a_full_disk_is_told_as_such_before_the_first_page(tmp_path: Path) -> None:
    """Where the folder can be made and the database cannot be written, or the files beside it."""
    with runs.small_disk(tmp_path / "disk", 2) as disk:
        told = []
        for leave in range(0, 65_536, 8_192):
            out = disk / f"out-{leave}"
            out.mkdir()
            filling = runs.fill(disk, leave)
            store = LabelStore(out)
            try:
                store.begin({}, [("1", "word")], [[RaterTask("q", "item", swapped=False)]])
                store.close()
            except RunError as error:
                told.append(str(error))
            filling.unlink()
        assert 0 < len(told) < 8
        assert all("labels.sqlite" in each and "cannot be" in each for each in told)
