"""Three raters at once and a server that is killed: no label is lost, doubled or swapped."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import aiohttp
import numpy as np
import pytest

import runs
from annotation.labelling_here import Served, label, press, read, table
from browser import CHROMIUM, browser
from dikast.audit.statistics.rater_agreement import krippendorff_alpha

PAIRS, RATERS, KILLS = 200, 3, 10


def items(folder: Path, n: int) -> Path:
    """Pairs whose texts say which response they are."""
    rows = [
        {"id": f"p{k}", "instruction": f"Question {k}", "response_a": f"first of {k}", "response_b": f"second of {k}"}
        for k in range(n)
    ]
    return runs.write_jsonl(folder / "pairs.jsonl", rows)


def script(rater: str, k: int) -> str:
    """What a rater thinks of pair k, whatever is shown first: mostly alike among raters."""
    draw = random.Random(f"{k}" if random.Random(f"{rater} {k}").random() < 0.7 else f"{rater} {k} own")
    return draw.choice(["a", "b", "tie"])


async def rate(rater: str, link: str, allowed: Callable[[], int] = lambda: 1_000_000) -> None:
    """Label until all is done, and go on after each failure as a person does who reloads the page.

    `allowed` says how many labels there may be so far: the rater waits until it says more.
    """
    given = 0
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(10)) as session:
        for _ in range(20_000):
            try:
                async with session.get(link) as answer:
                    page, busy = read(await answer.text()), answer.headers.get("Retry-After")
                if busy is not None:  # a script is faster than the limit of a rater's requests
                    await asyncio.sleep(float(busy))
                    continue
                if page["task"] is None:
                    return
                while given >= allowed():
                    await asyncio.sleep(0.01)
                given += 1
                left = page["texts"][1]
                wanted = script(rater, int(left.split()[-1]))
                turned = left.startswith("second")
                shown = {"a": "b", "b": "a"}.get(wanted, wanted) if turned else wanted
                sends = [label(session, link, shown, page["task"])]
                if int(page["task"]) % 5 == 0:  # the same form from two tabs
                    sends.append(label(session, link, shown, page["task"]))
                await asyncio.gather(*sends)
            except (aiohttp.ClientError, TimeoutError, OSError):
                await asyncio.sleep(0.05)
    raise AssertionError("labelling does not end")


def rate_in_chromium(rater: str, link: str, allowed: Callable[[], int]) -> None:
    """As `rate`, by the keys of a page."""
    given = 0
    with browser() as tab:
        tab.visit(link)
        for _ in range(20_000):
            with suppress(RuntimeError):  # the page is left while it is asked
                texts = tab.run("[...document.querySelectorAll('.text')].map(each => each.innerText)")
                if tab.run("document.title") == "All done":
                    return
                if len(texts) != 3:  # the server is away
                    tab.visit(link)
                    continue
                while given >= allowed():
                    time.sleep(0.01)
                given += 1
                wanted = script(rater, int(texts[1].split()[-1]))
                turned = texts[1].startswith("second")
                key = {"a": "b", "b": "a"}[wanted] if turned and wanted != "tie" else wanted[0]
                press(tab, key)
                if given % 5 == 0:  # the key is still held down on the next page
                    tab.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=key, autoRepeat=True)
    raise AssertionError("labelling does not end")


@pytest.mark.slow(minutes=5)
@pytest.mark.parametrize("by", ["requests", "Chromium"])
def test_600_labels_of_three_raters_outlive_ten_kills(by: str, tmp_path: Path) -> None:
    if by == "Chromium" and CHROMIUM is None:
        pytest.skip("no Chromium here: install the package `chromium`")
    served = Served(items(tmp_path, PAIRS), tmp_path / "labels", "--pairs", "--raters", RATERS)
    served.start()
    kills = 0

    def allowed() -> int:  # so that there is work to do at each kill, however fast the machine
        return PAIRS * (kills + 1) // (KILLS + 1) if kills < KILLS else 1_000_000

    async def kill() -> None:
        nonlocal kills
        draw = random.Random(1)
        for _ in range(KILLS):
            await asyncio.sleep(draw.uniform(0.05, 0.4) if by == "requests" else draw.uniform(0.5, 3.0))
            await asyncio.to_thread(served.kill)
            await asyncio.to_thread(served.start)
            kills += 1

    def one(rater: str) -> Awaitable[None]:
        link = served.links[rater]
        if by == "requests":
            return rate(rater, link, allowed)
        return asyncio.to_thread(rate_in_chromium, rater, link, allowed)

    async def both() -> None:
        await asyncio.gather(*(one(str(r)) for r in range(1, RATERS + 1)), kill())

    asyncio.run(both())
    assert served.stop() == 0
    rows = table(tmp_path / "labels" / "labels.csv")
    assert len(rows) == PAIRS
    given = [[row[f"human_{r}"] for row in rows] for r in range(1, RATERS + 1)]
    numbers = [int(row["item"][1:]) for row in rows]
    assert given == [[script(str(r), k) for k in numbers] for r in range(1, RATERS + 1)]
    trail = table(tmp_path / "labels" / "trail.csv")
    assert len(trail) == PAIRS * RATERS
    assert set(Counter((row["rater"], row["item"]) for row in trail).values()) == {1}
    codes = {"a": 0.0, "b": 1.0, "tie": 2.0}
    expected = np.array([[codes[script(str(r), k)] for k in range(PAIRS)] for r in range(1, RATERS + 1)])
    found = np.array([[codes[each] for _, each in sorted(zip(numbers, mine, strict=True))] for mine in given])
    assert krippendorff_alpha(found, "nominal") == krippendorff_alpha(expected, "nominal")


def test_raters_at_once_and_one_kill(tmp_path: Path) -> None:
    served = Served(items(tmp_path, 12), tmp_path / "labels", "--pairs", "--raters", 2).start()
    asyncio.run(rate("1", served.links["1"]))
    served.kill()
    served.start()
    asyncio.run(rate("2", served.links["2"]))
    assert served.stop() == 0
    rows = table(tmp_path / "labels" / "labels.csv")
    assert [(row["human_1"], row["human_2"]) for row in rows] == [
        (script("1", int(row["item"][1:])), script("2", int(row["item"][1:]))) for row in rows
    ]
    assert len(rows) == 12
