"""Figures of docs/worlds.md: shortcut probes, re-reading, speed. `python -m benchmarks.worlds --write` puts them there.

`--small` runs everything at a fiftieth of the size. The full run takes about a quarter of an hour on one core.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import orjson

from dikast.core.item import item_to
from dikast.worlds.check import regrade
from dikast.worlds.domains import DOMAINS
from dikast.worlds.leaks import Report, collect, first_slot, probe
from dikast.worlds.make import Maker, make
from dikast.worlds.raster import png
from dikast.worlds.settings import Settings

PAGE = Path(__file__).parent.parent / "docs" / "worlds.md"
START, END = "<!-- figures: python -m benchmarks.worlds --write -->", "<!-- end of figures -->"


def figures(scale: int) -> Iterator[str]:
    for domain in ("scenes", "text"):
        for needs, title, n in (
            (("image",), "need what is shown", 100_000 // scale),
            (("both", "text"), "also weigh what the text alone shows", 20_000 // scale),
        ):
            settings = Settings(domain=domain)
            train, test = collect(settings, n, needs=needs), collect(replace(settings, split="fresh"), n, needs=needs)
            yield from _probes(f"{domain}, rubrics that {title}", probe(test, train))
            print(f"{domain} {needs} done", flush=True)
        slots = first_slot(Settings(domain=domain, responses=2), 20_000 // scale)
        yield (
            f"\nPairs, {domain}: the first slot wins {slots.first:.4f} of"
            f" {round(slots.n * (1 - slots.ties))} decided pairs (standard error {slots.error:.4f});"
            f" {slots.ties:.1%} ties; winning and being longer correlate {slots.length_r:+.4f}.\n"
        )
    yield from _reread(100_000 // scale)
    yield from _speed(4000 // scale)


def _probes(title: str, report: Report) -> Iterator[str]:
    yield f"\n**{title}** (n = {report.n}, fresh seeds; words learnt from as many training items)\n"
    yield "| feature | n | Pearson with the score | standard error | information, bits |"
    yield "|---|---|---|---|---|"
    for each in report.probes:
        yield f"| {each.name} | {each.n} | {each.r:+.4f} | {each.r_error:.4f} | {each.bits:+.5f} |"
    yield "\n| scale | items per level, best first | largest gap of a mean length | standard error of one mean |"
    yield "|---|---|---|---|"
    for scale, counts in report.counts.items():
        gap = report.gaps[scale]
        yield f"| {scale} | {', '.join(map(str, counts))} | {gap.largest:.2%} | {gap.error:.2%} |"


def _reread(n: int) -> Iterator[str]:
    same = 0
    for domain in DOMAINS:
        for sample in make(Settings(domain=domain, split="all", seed=9), n // len(DOMAINS)):
            record = orjson.loads(orjson.dumps(item_to(sample.item())))
            same += regrade(record) == [record["gold"]["label"]]
    read = len(DOMAINS) * (n // len(DOMAINS))
    yield f"\nRe-reading: {same} of {read} items of all domains get the same label from the independent reader.\n"


def _speed(n: int) -> Iterator[str]:
    yield "\n| what | per second, one core |"
    yield "|---|---|"
    for domain in DOMAINS:
        maker = Maker(Settings(domain=domain, split="all"))
        started = time.perf_counter()
        for i in range(n):
            orjson.dumps(item_to(maker.sample(i).item()))
        yield f"| items of `{domain}` with text, gold and JSON | {n / (time.perf_counter() - started):.0f} |"
    for size in (64, 96):
        samples = list(make(Settings(size=size), n))
        for sample in samples[: n // 2]:
            sample.pictures()  # the stamps of shapes are drawn once
        started = time.perf_counter()
        for sample in samples[n // 2 :]:
            png(sample.pictures()[0])
        rate = len(samples[n // 2 :]) / (time.perf_counter() - started)
        yield f"| pictures of {size} x {size}, drawn and packed as PNG | {rate:.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="a fiftieth of the size")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/worlds.md")
    options = parser.parse_args()
    text = "\n".join(figures(50 if options.small else 1))
    print(text)
    if options.write:
        page = PAGE.read_text("utf-8")
        before, rest = page.split(START)
        PAGE.write_text(f"{before}{START}\n{text}\n{END}{rest.split(END)[1]}", "utf-8")


if __name__ == "__main__":
    main()
