"""Plain copies of a folder of labels, made at any time, hold every label that was saved before they began."""

import asyncio
import random
import shutil
import threading
import time
from contextlib import suppress
from pathlib import Path

import aiohttp

import runs
from annotation.labelling_here import Served, label, read
from dikast.annotation.labelling_questions import read_questions
from dikast.annotation.session import Shares, opened
from dikast.core.rubric import load_rubric


class Copier(threading.Thread):
    """Copies a folder again and again, a file after the other in any order, with pauses between."""

    def __init__(self, folder: Path, saved: list[str], seed: int) -> None:
        super().__init__()
        self.folder, self.saved, self.seed, self.done = folder, saved, seed, threading.Event()
        self.copies: list[tuple[int, Path]] = []  # how many labels were saved when it began

    def run(self) -> None:
        draw = random.Random(self.seed)
        while not self.done.is_set():
            there = self.folder.with_name(f"copy-{self.seed}-{len(self.copies)}")
            there.mkdir()
            self.copies.append((len(self.saved), there))
            names = sorted(each.name for each in self.folder.iterdir()) if self.folder.is_dir() else []
            draw.shuffle(names)
            for name in names:
                with suppress(FileNotFoundError):  # a temporary file
                    shutil.copyfile(self.folder / name, there / name)
                time.sleep(0.25 * draw.random())
            time.sleep(0.02)


def test_a_copy_is_whole_while_the_server_starts_works_is_killed_and_stops(tmp_path: Path) -> None:
    items, out = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(60)), tmp_path / "labels"
    saved: list[str] = []
    copiers, served = [Copier(out, saved, seed) for seed in range(4)], Served(items, out)

    def copies() -> int:
        return sum(len(each.copies) for each in copiers)

    async def rate(many: int) -> None:
        async with aiohttp.ClientSession() as session:
            page = await (await session.get(served.links["1"])).text()
            for value in map(str, range(1, many + 1)):
                task = read(page)["task"]
                assert task is not None
                page = await label(session, served.links["1"], value, task)
                saved.append(value)
                begun = copies()
                while copies() == begun:  # a copy begins after each label, however fast the machine is
                    assert all(each.is_alive() for each in copiers)
                    await asyncio.sleep(0.02)

    for each in copiers:
        each.start()
    try:
        for ending in (served.stop, served.kill, served.stop, served.kill, served.stop):
            served.start()
            asyncio.run(rate(5))
            ending()
    finally:
        for each in copiers:
            each.done.set()
            each.join()
    assert saved == ["1", "2", "3", "4", "5"] * 5
    questions = read_questions(str(items), {}, load_rubric("helpfulness"), "absolute")
    told = [(n, there) for each in copiers for n, there in each.copies if n] + [(len(saved), out)]
    assert len({n for n, _ in told}) == len(saved)
    for n, there in told:
        with opened(there, questions, Shares()) as session:
            kept = [each.value for each in session.store.labels()]
        assert kept[:n] == saved[:n]
        assert kept == saved[: len(kept)]
