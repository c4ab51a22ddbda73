"""Speed and memory of `corpus build`, `check` and `convert`: `python -m benchmarks.corpus [speed | convert | ...]`.

Seconds are of processor time of one process with one thread. The teacher answers at once, so that what is measured is
everything else: prompts, journals, reading of replies, filters, items. `million` needs about 12 GB of disk. In
`pictures` the world of scenes is the teacher, and draws its pictures: 100,000 rows of the recipe `perception`.
"""

import argparse
import random
import resource
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from dikast.core.verdict import Usage
from dikast.corpus.convert import convert_file
from dikast.corpus.dedup.text_dedup import Index
from dikast.corpus.pipeline.build import build
from dikast.corpus.pipeline.recipe_file import load_recipe
from dikast.corpus.pipeline.stage import StageReport
from dikast.corpus.quality.check import check_file
from dikast.corpus.quality.data_card import card
from dikast.engines.base import Completion, Request

LEVELS = {
    str(n): f"About {n} of five parts of what was asked is there, and the rest of it is left out." for n in range(1, 6)
}
WORDS = [
    a + b for a in ("bo", "ka", "li", "mu", "ne", "po", "ra", "su", "ti", "vo") for b in ("den", "lor", "mas", "rit")
]
LENGTH = 100  # words of a response


class Instant:
    """Answers every stage at once, in words drawn by a seed."""

    name = "instant"

    def __init__(self) -> None:
        self._rng = random.Random(0)

    def identity(self) -> Mapping[str, Any]:
        """Its name."""
        return {"engine": self.name}

    def versions(self) -> Mapping[str, str]:
        """None."""
        return {}

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """An answer to each, in order."""
        for request in requests:
            text = self._answer(request.about)
            yield Completion(request.key, text, usage=Usage(tokens_in=900, tokens_out=200))

    def _answer(self, about: Mapping[str, Any]) -> str:
        stage = about["stage"]
        if stage == "regrade":
            return f"The parts are there.\nVerdict: {about['response'].rsplit(' ', 1)[1]}"
        if stage == "rubrics":
            made = [
                {"criterion": f"Does it tell of {self._words(8)}?", "levels": LEVELS} for _ in range(about["count"])
            ]
            return orjson.dumps({"rubrics": made}).decode()
        if stage == "instructions":
            asked = [{"instruction": self._words(25), "reference": self._words(LENGTH)} for _ in range(about["count"])]
            return orjson.dumps({"instructions": asked}).decode()
        response = f"{self._words(LENGTH - 1)} {about['score']}"
        return orjson.dumps({"response": response, "feedback": "Some of it is there and some is missing."}).decode()

    def _words(self, n: int) -> str:
        return " ".join(self._rng.choices(WORDS, k=n))


def recipe(folder: Path, rubrics: int, **values: Any) -> Path:
    """A recipe of `rubrics` x 2 instructions x 5 responses."""
    seeds = [
        {"criterion": "Does it name its sources?", "levels": {str(n): f"{n * 20} in a hundred." for n in range(1, 6)}}
    ]
    (folder / "seeds.yaml").write_bytes(orjson.dumps(seeds))
    told = {
        "recipe": "feedback", "teacher": "mock:constant", "seeds": "seeds.yaml", "rubrics": rubrics, "words": LENGTH,
        "a_call": 10, "rounds": 40, **values,
    }  # fmt: skip
    (folder / "recipe.yaml").write_bytes(orjson.dumps(told))
    return folder / "recipe.yaml"


def speed(rubrics: int = 2000) -> None:
    """Records a second of a whole build, without and with filters of near duplicates, and of their index alone."""
    for title, values in (
        ("without near-duplicate filters, no second grading", {"near": False, "regrade": False}),
        ("without near-duplicate filters", {"near": False}),
        ("with near-duplicate filters", {"near": True}),
    ):
        with tempfile.TemporaryDirectory(prefix="dikast-corpus-") as folder:
            told = load_recipe(recipe(Path(folder), rubrics, **values))
            began = time.process_time()
            built = build(told, Path(folder) / "out", teacher=Instant())
            seconds = time.process_time() - began
            records = sum(stage.records for stage in built.stages)
            print(f"{title}: {built.items:,} items in {seconds:.1f} s, {built.items / seconds:,.0f} items/s,"
                  f" {records / seconds:,.0f} records/s of all stages")  # fmt: skip
    index, teacher, n = Index(), Instant(), 3000
    texts = [teacher._words(LENGTH) for _ in range(n)]
    began = time.process_time()
    for i, text in enumerate(texts):
        index.add(text, str(i))
    print(f"index of near duplicates: {n / (time.process_time() - began):,.0f} texts of {LENGTH} words a second")


def convert(rows: int = 20_000) -> None:
    """Rows a second from items to Feedback-Collection columns and back."""
    with tempfile.TemporaryDirectory(prefix="dikast-corpus-") as folder:
        where = Path(folder)
        built = build(
            load_recipe(recipe(where, rows // 10, near=False, regrade=False)), where / "out", teacher=Instant()
        )
        items, there, back = where / "out" / "items.jsonl", where / "rows.jsonl", where / "back.jsonl"
        for name, source, out, to in (
            ("items to feedback", items, there, "feedback"),
            ("feedback to items", there, back, "dikast"),
        ):
            began = time.process_time()
            convert_file(source, out, to=to)
            seconds = time.process_time() - began
            print(f"{name}: {built.items:,} rows in {seconds:.1f} s, {built.items / seconds:,.0f} rows/s")
        with items.open("rb") as before, back.open("rb") as after:
            assert all(orjson.loads(a) == orjson.loads(b) for a, b in zip(before, after, strict=True))


def million(rubrics: int = 100_000) -> None:
    """Resident memory through a build of a million items, at every tenth of the responses."""
    with tempfile.TemporaryDirectory(prefix="dikast-corpus-") as folder:
        told = load_recipe(recipe(Path(folder), rubrics, near=False, regrade=False))
        steps = rubrics * 10 // 10
        began = time.process_time()

        def tell(report: StageReport) -> None:
            if report.name == "3-responses" and report.accepted % steps == 1:
                print(f"{report.name} {report.accepted:>9,}: {resident():.0f} MB", flush=True)

        built = build(told, Path(folder) / "out", teacher=Instant(), progress=tell)
        print(f"{built.items:,} items, {time.process_time() - began:,.0f} s, at the end {resident():.0f} MB,"
              f" peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB", flush=True)  # fmt: skip
        again = time.process_time()
        build(told, Path(folder) / "out", teacher=Instant())
        print(f"again, asking nothing: {time.process_time() - again:,.0f} s,"
              f" peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")  # fmt: skip


def pictures(rubrics: int = 10_000) -> None:
    """Resident memory through a build of the recipe `perception` by the world of scenes, and through its data card."""
    with tempfile.TemporaryDirectory(prefix="dikast-corpus-") as folder:
        path, out = Path(folder) / "recipe.yaml", Path(folder) / "out"
        told = {"recipe": "perception", "teacher": "world:scenes", "take": rubrics // 2, "per_image": 2,
                "instructions": 2}  # fmt: skip
        path.write_bytes(orjson.dumps(told))
        began, steps = time.process_time(), rubrics

        def tell(report: StageReport) -> None:
            if report.accepted % steps == 1:
                print(f"{report.name} {report.accepted:>9,}: {resident():.0f} MB,"
                      f" {time.process_time() - began:,.0f} s", flush=True)  # fmt: skip

        built = build(load_recipe(path), out, progress=tell)
        seconds = time.process_time() - began
        print(f"{built.items:,} items of {dict(built.dropped)} dropped, {seconds:,.0f} s,"
              f" {built.items / seconds:,.0f} rows/s, at the end {resident():.0f} MB,"
              f" peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB", flush=True)  # fmt: skip
        began = time.process_time()
        print(card(check_file(str(out / "items.jsonl")), title="pictures"))
        print(f"check and card: {time.process_time() - began:,.0f} s, at the end {resident():.0f} MB,"
              f" peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")  # fmt: skip


def resident() -> float:
    """Resident memory of this process, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


MEASURES: dict[str, Callable[..., None]] = {
    "speed": speed, "convert": convert, "million": million, "pictures": pictures,
}  # fmt: skip


def main() -> None:
    """Measure what is named, `speed` and `convert` by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", default=["speed", "convert"], choices=list(MEASURES))
    parser.add_argument("--rubrics", type=int, default=0, help="Rubrics of the build, each with 10 items.")
    told = parser.parse_args()
    for name in told.what:
        size = {"rubrics": told.rubrics} if told.rubrics and name != "convert" else {}
        MEASURES[name](**size)


if __name__ == "__main__":
    main()
