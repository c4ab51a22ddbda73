"""While people label: who sees what, how fast they may ask, what the owner reads, and copies made meanwhile."""

import asyncio
import re
import shutil
import time
from collections.abc import Awaitable, Callable
from html import unescape
from pathlib import Path

import aiohttp
import pytest
from PIL import Image

import runs
from annotation.labelling_here import Served, label, read, table
from dikast.annotation.assignment import RaterTask
from dikast.annotation.label_store import LabelStore
from videos import make_video

Session = aiohttp.ClientSession


def through(served: Served, work: Callable[[Session], Awaitable[None]]) -> None:
    """Do the work as clients of the server, which then writes its files."""

    async def all_of_it() -> None:
        async with Session() as session:
            await work(session)

    try:
        asyncio.run(all_of_it())
    finally:
        assert served.stop() == 0


async def page_of(session: Session, link: str) -> str:
    for _ in range(60):
        async with session.get(link) as answer:
            if answer.status != 429:
                return await answer.text()
            await asyncio.sleep(float(answer.headers["Retry-After"]))
    raise AssertionError("the server answers this rater no more")


@pytest.mark.parametrize("kind", ["pairs", "feedback"])
def test_a_rater_sees_no_name_of_a_model_or_judge_and_no_label_of_another(kind: str, tmp_path: Path) -> None:
    """Every page of the second rater is the same, byte for byte, whether or not the first has labelled."""
    about = {"source": "arena-of-gamma", "category": "hard-set"}
    if kind == "pairs":
        rows = [
            {"id": f"alpha-vs-beta-{k}", "instruction": f"Question {k}", "response_a": f"one of {k}",
             "response_b": f"two of {k}", "model_a": "alpha-7b", "model_b": "beta-9b", "gold": [4, 2], **about}
            for k in range(6)
        ]  # fmt: skip
    else:
        rows = [
            {"id": f"alpha-vs-beta-{k}", "instruction": f"Question {k}", "response": f"one of {k}", "model": "alpha-7b",
             **about}
            for k in range(6)
        ]  # fmt: skip
    items = runs.write_jsonl(tmp_path / "items.jsonl", rows)
    more: list[object] = ["--rubric", "helpfulness", "--rater", "anna", "--rater", "boris"]
    more += ["--pairs"] if kind == "pairs" else ["--ask", "feedback"]
    for seed in (1, 2) if kind == "feedback" else (1,):
        verb = "grade" if kind == "feedback" else "compare"
        out = tmp_path / f"judged-{seed}"
        done = runs.dikast_here(verb, items, "--judge", f"mock:constant,label={seed}" if kind == "feedback" else
                                "mock:oracle", "--rubric", "helpfulness", "--out", out, "-q")  # fmt: skip
        assert done.returncode == 0, done.stderr
        more += ["--feedback" if kind == "feedback" else "--run", out]
    hidden = ("alpha", "beta", "gamma", "hard-set", "mock:", "oracle", "constant", "judged-", "anna", "my own reason")
    served = Served(items, tmp_path / "labels", *more).start()

    async def work(session: Session) -> None:
        first, second = served.links["anna"], served.links["boris"]
        before = await page_of(session, second)
        while (task := read(page := await page_of(session, first))["task"]) is not None:
            assert not [each for each in hidden if each in page]
            answer = ("a", "") if int(task) % 2 else ("", "my own reason")
            await label(session, first, answer[0], task, answer[1])
        assert await page_of(session, second) == before
        n = 0
        while (task := read(page := await page_of(session, second))["task"]) is not None:
            told = page.replace(second.rpartition("/")[2], "")
            assert not [each for each in hidden if each in told]
            n += 1
            await label(session, second, "b", task)
        assert n == 6
        assert not [each for each in hidden if each in await page_of(session, second)]

    through(served, work)


def test_a_rater_who_asks_too_fast_is_told_to_wait_and_nobody_else_is(tmp_path: Path) -> None:
    """300 requests at once and 30 a second are answered; then 429 with the seconds to wait, of this rater alone."""
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(3))
    served = Served(items, tmp_path / "labels", "--rubric", "helpfulness", "--raters", 2).start()

    async def work(session: Session) -> None:
        one, two = served.links["1"], served.links["2"]

        async def status(link: str) -> tuple[int, str | None]:
            async with session.get(link) as answer:
                return answer.status, answer.headers.get("Retry-After")

        task = read(await page_of(session, one))["task"]
        start = time.monotonic()
        found = [each for _ in range(20) for each in await asyncio.gather(*(status(one) for _ in range(50)))]
        seconds = time.monotonic() - start
        answered = sum(code == 200 for code, _ in found)
        assert 250 <= answered <= 300 + 30 * seconds + 1
        assert {each for each in found if each[0] != 200} == {(429, "1")}
        async with session.post(f"{one}/label", data={"task": task, "value": "1"}) as answer:
            assert answer.status == 429
            assert "Try again in a moment" in await answer.text()
        assert (await status(two))[0] == 200
        await asyncio.sleep(1.2)
        await label(session, one, "5", task)

    through(served, work)
    assert [row["value"] for row in table(tmp_path / "labels" / "trail.csv")] == ["5"]


def test_the_owner_reads_how_many_more_labels_the_aim_takes(tmp_path: Path) -> None:
    """Half of the answers are the best level and half the worst, in random order: the number that the page names is by
    the square-root law, falls as labels arrive, and that many more labels do reach the aim.
    """
    n, aim = 200, 0.12
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(n))
    served = Served(items, tmp_path / "labels", "--rubric", "helpfulness", "--aim", aim).start()
    left: list[int] = []

    async def work(session: Session) -> None:
        link, owner = served.links["1"], served.links["progress"]

        async def rate(many: int) -> str:
            for _ in range(many):
                page = await page_of(session, link)
                task = read(page)["task"]
                if task is None:
                    break
                k = int(re.findall(r"Is (\d+) even", page)[0])
                await label(session, link, "5" if k % 2 else "1", task)
            told = unescape(await page_of(session, owner))
            found = re.search(r'class="said" role="status">(.*?)\.</p>', told)
            assert found is not None
            return found[1]

        assert await rate(0) == f"too few labels to estimate how many narrow the interval to ±{aim}"
        for labelled in (30, 45):
            told = re.fullmatch(
                rf"labels on (\d+) more questions bring the interval from ±(0\.\d+) to ±{aim}",
                await rate(labelled - (30 if labelled == 45 else 0)),
            )
            assert told is not None
            wanted = labelled * (float(told[2]) / aim) ** 2 - labelled
            assert abs(int(told[1]) - wanted) <= 0.02 * (wanted + labelled) + 1
            left.append(int(told[1]))
        assert abs(left[0] - left[1] - 15) < 15
        assert (await rate(left[-1] + 15)).startswith("enough: the interval is ±0.1")

    through(served, work)


def test_checks_and_repeats_are_counted_by_hand(tmp_path: Path) -> None:
    """One answer in three to a question with a known label differs from it, one in two repeats from the first."""
    rows = [{**row, "gold": 3} if k < 9 else {key: row[key] for key in ("id", "instruction", "response")}
            for k, row in enumerate(runs.rows(20))]  # fmt: skip
    items = runs.write_jsonl(tmp_path / "items.jsonl", rows)
    served = Served(items, tmp_path / "labels", "--rubric", "helpfulness", "--repeats", 0.4).start()

    async def work(session: Session) -> None:
        link, seen = served.links["1"], dict[int, str]()
        checks = repeats = alike = 0
        while (task := read(page := await page_of(session, link))["task"]) is not None:
            k = int(re.findall(r"Is (\d+) even", page)[0])
            if k in seen:
                repeats += 1
                value = "1" if repeats % 2 else seen[k]
                alike += value == seen[k]
            else:
                checks += k < 9
                value = seen[k] = ("2" if k % 3 == 0 else "3") if k < 9 else "4"
            await label(session, link, value, task)
        assert (checks, repeats) == (9, 8)
        told = unescape(await page_of(session, served.links["progress"]))
        figures = dict(re.findall(r'<th scope="row">([^<]*)</th><td>([^<]*)</td></tr>', told))
        assert figures["same as the known label"].startswith("0.667 ")  # 6 of 9
        assert figures["same as the known label"].endswith("(n = 9)")
        assert figures["same label again (repeats)"].startswith(f"{alike / 8:.3f} ")  # 4 of 8
        assert figures["same label again (repeats)"].endswith("(n = 8)")
        assert alike == 4

    through(served, work)


@pytest.mark.parametrize("first", ["labels.sqlite", "labels.sqlite-wal"])
def test_a_copy_made_while_labels_arrive_holds_all_that_were_acknowledged(first: str, tmp_path: Path) -> None:
    """Plain copies, file by file, with 1,500 labels between the first file and the next: more than SQLite writes back
    to the database by itself (at 1,000 pages), after which it begins its log anew.
    """
    out, n = tmp_path / "labels", 5000
    out.mkdir()
    store = LabelStore(out)
    store.begin({}, [("1", "word")], [[RaterTask(f"q{k}", "item", swapped=False) for k in range(n)]])
    given = 0

    def rate(many: int) -> None:
        nonlocal given
        for _ in range(many):
            given += 1
            assert store.keep(given, str(given % 5 + 1))

    copies = []
    for number in range(3):
        rate(100)
        (there := tmp_path / f"copy-{number}").mkdir()
        copies.append((given, there))
        for name in sorted((each.name for each in out.iterdir()), key=lambda name: name != first):
            shutil.copyfile(out / name, there / name)
            rate(1500 if name == first else 0)
    store.close()
    for acknowledged, there in [*copies, (given, out)]:
        copied = LabelStore(there)
        try:
            assert copied.check() == "ok"
            assert len(copied.labels()) >= acknowledged
            assert len(copied.trail()) == len(copied.labels())
        finally:
            copied.close()


_PNG = b"\x89PNG\r\n\x1a\n"


def _bomb(path: Path) -> None:
    """A picture of a thousand million pixels in some kilobytes."""
    import struct
    import zlib

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = zlib.compress(bytes(32001) * 100)
    path.write_bytes(_PNG + chunk(b"IHDR", struct.pack(">IIBBBBB", 32000, 32000, 8, 0, 0, 0, 0)) + chunk(b"IDAT", rows))


def _in_place_of(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def harm(path: Path) -> None:
        path.unlink()
        make(path)

    return harm


def _holding(data: bytes) -> Callable[[Path], None]:
    return _in_place_of(lambda path: path.write_bytes(data))


HARM: dict[str, Callable[[Path], None]] = {
    "a bomb": _bomb,
    "cut": lambda path: _holding(path.read_bytes()[:200])(path),
    "no picture": _holding(_PNG + b"<script>alert(1)</script>" * 50),
    "a drawing with a script": _holding(b"<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>"),
    "empty": _holding(b""),
    "a folder": _in_place_of(lambda path: path.mkdir()),
    "a device": _in_place_of(lambda path: path.symlink_to("/dev/zero")),
}


@pytest.mark.parametrize("harm", HARM)
def test_a_hostile_picture_is_named_before_anybody_is_asked_and_stops_nobody_later(harm: str, tmp_path: Path) -> None:
    for name in ("good", "bad"):
        Image.effect_noise((64, 48), 40).convert("RGB").save(tmp_path / f"{name}.png")
    rows = [*runs.rows(1, image="good.png"), *runs.rows(1, id="second", image="bad.png")]
    items = runs.write_jsonl(tmp_path / "items.jsonl", rows)
    served = Served(items, tmp_path / "labels", "--rubric", "helpfulness").start()
    HARM[harm](tmp_path / "bad.png")  # while people label

    async def work(session: Session) -> None:
        link = served.links["1"]
        shown = dict[bool, int]()
        while (task := read(page := await page_of(session, link))["task"]) is not None:
            (address,) = re.findall(r'<img src="(/r/[^"]*)"', page)
            start = time.monotonic()
            async with session.get(link.split("/r/")[0] + address) as answer:
                body = await answer.read()
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
                if answer.status == 200:
                    assert answer.headers["Content-Type"] == "image/png"
                    assert body.startswith(_PNG)
                else:
                    assert b"the log of the server says why" in body
                    assert b"bad.png" not in body
                shown[answer.status == 200] = answer.status
            assert time.monotonic() - start < 5
            await label(session, link, "2", task)
        assert shown == {True: 200, False: 404}

    through(served, work)
    assert len(table(tmp_path / "labels" / "trail.csv")) == 2
    done = runs.dikast_here("annotate", items, "--rubric", "helpfulness", "--out", tmp_path / "other", "--export")
    assert done.returncode == 2
    assert "items.jsonl:2" in done.stderr
    assert "bad.png" in done.stderr
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("taken", ["a text", "a link out of the folder", "a device"])
def test_a_file_in_the_place_of_a_clip_is_not_sent_to_raters(taken: str, tmp_path: Path) -> None:
    """It was sent as it was, whatever it held and wherever it lay."""
    root, clip = tmp_path / "items", tmp_path / "items" / "clip.html"  # a name that a browser would take for a page
    root.mkdir()
    make_video(root / "clip.mp4").rename(clip)
    make_video(tmp_path / "own.mp4")
    shown = [{"type": "text", "text": "What happens?"}, {"type": "video", "video": "clip.html"}]
    items = runs.write_jsonl(root / "items.jsonl", runs.rows(1, instruction=shown))
    served = Served(items, tmp_path / "labels", "--rubric", "helpfulness", "--media-root", root).start()

    async def work(session: Session) -> None:
        link = served.links["1"]
        address, *_ = re.findall(r'"(/r/[^"]*/clip/[^"]*)"', await page_of(session, link))
        for sound in (True, False):
            if not sound:
                clip.unlink()
                if taken == "a text":
                    clip.write_text("a private text")
                else:
                    clip.symlink_to(tmp_path / "own.mp4" if "link" in taken else "/dev/zero")
            async with session.get(link.split("/r/")[0] + address) as answer:
                body = await answer.read()
                assert answer.status == (200 if sound else 404)
                assert answer.headers["Content-Type"] == ("video/mp4" if sound else "text/html; charset=utf-8")
                assert (b"ftyp" in body[:16]) is sound
                assert sound or b"the log of the server says why" in body

    through(served, work)
