"""Runs that are killed, interrupted, torn or out of space lose nothing, repeat nothing, and say what happened."""

import random
import shutil
import signal
import time
from pathlib import Path

import orjson
import pytest

from runs import Nursery, lines, nursery, pairs, rows, summary, write_jsonl

LATENCY = 0.004


def whole(run: Path) -> bytes:
    """What was written of the verdicts, up to the last line break."""
    path = run / "verdicts.jsonl"
    raw = path.read_bytes() if path.exists() else b""
    return raw[: raw.rfind(b"\n") + 1]


def keys_in(raw: bytes) -> list[str]:
    return [orjson.loads(line)["key"] for line in raw.splitlines()]


def kill_and_resume(
    children: Nursery, tmp_path: Path, verb: tuple[str, ...], items: Path, kills: int, seed: int
) -> tuple[Path, Path]:
    """Kill a run at `kills` random moments, resume it each time, then let it end; gives it and an unbroken run.

    After each kill what had been written must still be there, and no question whose answer had been written may be
    asked again. A run that ends before its kill, as on a busy machine, has to be whole; another begins in its place, so
    that there are `kills` kills whatever the speed.
    """
    rng = random.Random(seed)
    log, broken, unbroken = tmp_path / "asks.log", tmp_path / "broken", tmp_path / "unbroken"
    common = [*verb, items, "--rubric", "helpfulness", "--quiet"]
    slow = [*common, "--judge", f"mock:oracle,r=0.8,latency={LATENCY},log={log}", "--out", broken]
    began = time.monotonic()
    assert children.run([*common, "--judge", "mock:oracle,r=0.8", "--out", unbroken]) == 0
    longest = time.monotonic() - began
    written, asked, killed, ended, mid_way = b"", 0, 0, 0, 0
    while killed < kills:
        if rng.random() < 0.25:  # anywhere, above all while items are read and the plan is written
            code = children.kill_after(slow, rng.uniform(0, longest / 3))
        else:
            code = children.kill_when(slow, log, rng.randint(1, 8), rng.uniform(0, 2 * LATENCY))
        killed, ended = killed + (code == -signal.SIGKILL), ended + (code == 0)
        assert code in (0, -signal.SIGKILL)
        assert ended <= kills, "most runs ended before their kill: give them more items"
        now = whole(broken)
        assert now.startswith(written), "what had been written is gone"
        new = log.read_text().split()[asked:] if log.exists() else []
        assert not set(new) & set(keys_in(written)), "asked again though its answer was there"
        mid_way += bool(new)
        written, asked = now, asked + len(new)
        if code == 0:
            same_verdicts(broken, unbroken, len(keys_in(whole(unbroken))))
            shutil.rmtree(broken)
            written = b""
    assert mid_way > kills / 2
    assert children.run(slow) == 0
    assert whole(broken).startswith(written)
    assert not set(log.read_text().split()[asked:]) & set(keys_in(written))
    return broken, unbroken


def same_verdicts(broken: Path, unbroken: Path, n: int) -> None:
    """Both hold the same n verdicts, each once, and the same figures."""
    one, other = lines(broken / "verdicts.jsonl"), lines(unbroken / "verdicts.jsonl")
    assert len(one) == len({verdict["key"] for verdict in one}) == n
    assert sorted(one, key=lambda v: str(v["key"])) == sorted(other, key=lambda v: str(v["key"]))
    ours, theirs = summary(broken), summary(unbroken)
    for moving in ("seconds", "asked", "answered_before"):
        del ours[moving], theirs[moving]
    for each in (ours, theirs):  # not told by a run that was killed after its last verdict and asked nothing afterwards
        each.pop("last_verdict", None)
    assert ours == theirs


def test_five_kills(tmp_path: Path) -> None:
    with nursery() as children:
        items = write_jsonl(tmp_path / "items.jsonl", rows(120))
        broken, unbroken = kill_and_resume(children, tmp_path, ("grade",), items, kills=5, seed=1)
        same_verdicts(broken, unbroken, 120)
        moving = ("summary.json", "checksums.json")  # seconds, and the checksum of a file that holds them
        before = {path.name: path.read_bytes() for path in broken.iterdir() if path.name not in moving}
        again = ["grade", items, "--rubric", "helpfulness", "--judge", "mock:oracle,r=0.8", "--out", broken]
        children.kill_after(again, 0.01)
        assert children.run(again) == 0
        assert {path.name: path.read_bytes() for path in broken.iterdir() if path.name in before} == before
        assert not list(broken.glob("*.part"))


@pytest.mark.slow(minutes=2)
def test_a_hundred_kills_of_grade(tmp_path: Path) -> None:
    with nursery() as children:
        items = write_jsonl(tmp_path / "items.jsonl", rows(1000))
        broken, unbroken = kill_and_resume(children, tmp_path, ("grade",), items, kills=100, seed=2)
        same_verdicts(broken, unbroken, 1000)


@pytest.mark.slow
def test_thirty_kills_of_compare(tmp_path: Path) -> None:
    with nursery() as children:
        items = write_jsonl(tmp_path / "items.jsonl", pairs(250))
        broken, unbroken = kill_and_resume(children, tmp_path, ("compare",), items, kills=30, seed=3)
        same_verdicts(broken, unbroken, 500)
        one, other = (sorted((run / "preferences.jsonl").read_bytes().splitlines()) for run in (broken, unbroken))
        assert len(one) == 250
        assert one == other


@pytest.mark.slow
def test_thirty_kills_while_equal_scores_are_drawn_again(tmp_path: Path) -> None:
    verb = ("compare", "--from-absolute", "--equal", "resample", "--temperature", "1")
    with nursery() as children:
        items = write_jsonl(tmp_path / "items.jsonl", pairs(300))
        broken, unbroken = kill_and_resume(children, tmp_path, verb, items, kills=30, seed=4)
        n = len(lines(unbroken / "verdicts.jsonl"))
        assert n > 600
        same_verdicts(broken, unbroken, n)
        one, other = (sorted((run / "preferences.jsonl").read_bytes().splitlines()) for run in (broken, unbroken))
        assert one == other
