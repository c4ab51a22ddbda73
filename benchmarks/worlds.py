"""Figures of docs/measurements/worlds.md: shortcut probes of every domain, re-reading, speed, memory.

`--write` puts them there.

`python -m benchmarks.worlds` measures all of it (some hours on one free core), `python -m benchmarks.worlds charts
speed` only these sections; `--small` runs at a fiftieth of the size. Each section has its place in the page, so that
it can be measured in parts. `scenes-4` and so on are worlds of version 4, with the probes that skip an input.
"""

import argparse
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson

from benchmarks.blindness import States, blind_probes, strongest
from benchmarks.independent_gold import regrade
from benchmarks.shortcuts import Table, collect, first_slot, probe
from dikast.core.item import item_to
from dikast.worlds.domains.protocol import DRAWN
from dikast.worlds.domains.registry import DOMAINS
from dikast.worlds.drawing.raster import png
from dikast.worlds.make import Maker, make
from dikast.worlds.sampling.held_out import HELD_OUT_DOMAIN
from dikast.worlds.settings import Settings

PAGE = Path(__file__).parent.parent / "docs" / "measurements" / "worlds.md"
END = "<!-- end of figures -->"
_MOST = "0-10"  # the scale of most levels, so of fewest items in each


def start_of(section: str) -> str:
    """The line of the page after which a section's figures stand."""
    return f"<!-- figures: python -m benchmarks.worlds {section} --write -->"


def domain_figures(domain: str, scale: int) -> Iterator[str]:
    """Probes and lengths of one domain, under rubrics that need what is shown."""
    yield f"\n### {domain.capitalize()}, rubrics that need what is shown"
    yield from _probes(_fresh(domain), ("image",), 100_000 // scale)


def form(scale: int) -> Iterator[str]:
    """The same under rubrics that the text alone can tell something about; drawn worlds have none of these."""
    for domain in DOMAINS:
        if domain not in DRAWN:
            yield f"\n#### {domain.capitalize()}"
            yield from _probes(_fresh(domain), ("both", "text"), 20_000 // scale)


def version_4(domain: str, scale: int) -> Iterator[str]:
    """A domain in version 4: every probe that skips the picture, the response or the rubric, on the same items."""
    n = 100_000 // scale
    test = replace(_fresh(domain), version=4)
    train = replace(test, split="domain" if domain == HELD_OUT_DOMAIN else "train", seed=10)
    (words, shown), (words_seen, shown_seen) = (_read(each, n) for each in (test, train))
    error = 1 / math.sqrt(n / test.rubrics - 1)
    yield f"\n#### {domain.capitalize()}"
    yield (
        f"\nn = {n:,} items of {n // test.rubrics:,} responses, learnt from as many training items ({test.generator});"
        f" a correlation of 0 has a standard error of {error:.4f}.\n"
    )
    yield "| what is read | Pearson with the score |\n|---|---|"
    for each in probe(words, words_seen).probes:
        yield f"| {each.name} | {'all alike' if each.r != each.r else f'{each.r:+.4f}'} |"
    for blind in blind_probes(shown_seen, shown):
        yield f"| {blind.name}: {_READ[blind.name]} | {blind.r:+.4f} |"
    for name, r, rows in strongest(shown, rubric=True, top=10**6):
        if name in _NAMED:
            yield f"| {_NAMED[name]} (n {rows:,}) | {r:+.4f} |"
    if (inherent := omissions(shown_seen, shown)) is not None:
        yield f"| over all items: the number of things, and whether what is left out is weighed | {inherent:+.4f} |"


def omissions(train: States, test: States) -> float | None:
    """How well the mean score by number of things and weight of what is left out, learnt from `train`, tells `test`.

    None where no rubric weighs that.
    """
    cells, wanted = (
        [
            (weight := row.get("weight completeness", 0.0), shown.get("things", 0.0) if weight else 0.0)
            for row, shown in zip(each.rubric, each.shown, strict=True)
        ]
        for each in (train, test)
    )
    if not any(weight for weight, _ in cells):
        return None
    scores: dict[tuple[float, float], list[float]] = {}
    for cell, good in zip(cells, train.good, strict=True):
        scores.setdefault(cell, []).append(good)
    means, otherwise = {cell: np.mean(good) for cell, good in scores.items()}, np.mean(train.good)
    return float(np.corrcoef([means.get(cell, otherwise) for cell in wanted], test.good)[0, 1])


_READ = {
    "response-blind": "trees on what is shown and the instruction",
    "response-blind, rubric read": "trees on these and the rubric",
    "rubric-blind": "trees on what is wrong with the response",
}
_NAMED = {  # causes of leaks in versions before, and the one that is inherent
    "things | weight completeness": "more things, where what is left out is weighed (inherent)",
    "covered corners | term certainty": "covered corners, where claims on corners are weighed",
    "repeated shapes | term shape": "repeated shapes, where shapes are weighed",
    "high 0 | term extreme": "the highest value, where extremes are weighed",
    "low 0 | term extreme": "the lowest value, where extremes are weighed",
}


def _read(settings: Settings, n: int) -> tuple[Table, States]:
    """The features of the first n samples whose rubric needs the picture (notes count as one)."""
    table, states = Table(), States()
    for sample in make(settings, 10**12):
        if sample.needs == "image":
            table.add(sample)
            states.add(sample)
            if len(states.good) == n:
                break
    return table, states


def default(scale: int) -> Iterator[str]:
    """What the text alone tells of the score in worlds as `make` gives them, whatever a rubric weighs."""
    n = 20_000 // scale
    yield f"\nn = {n:,} each, words learnt from as many training items.\n"
    yield "| worlds as made by default | rubrics that weigh form | length in words | words of response x rubric |"
    yield "|---|---|---|---|"
    for domain in DOMAINS:
        test = _fresh(domain)
        train = replace(test, split="domain" if domain == HELD_OUT_DOMAIN else "train", seed=10)
        anything = ("image", "both", "text")
        held = collect(test, n, needs=anything)
        r = {each.name: each.r for each in probe(held, collect(train, n, needs=anything)).probes}
        formed = np.mean([sample.needs != "image" for sample in make(test, min(n, 1000))])
        told = f"{r['words']:+.3f} | {r['words of response x rubric']:+.3f}"
        yield f"| {domain} | {formed:.0%} | {told} |"


def lengths(scale: int) -> Iterator[str]:
    """Mean lengths by score on the longest scale alone, where each level has the fewest items."""
    n = 50_000 // scale
    yield f"\n| scale {_MOST} alone (n = {n} each) | largest gap of a mean length | standard error of one mean | p |"
    yield "|---|---|---|---|"
    for domain in DOMAINS:
        gap = probe(collect(replace(_fresh(domain), scales=(_MOST,), form=0), n, grams=False)).gaps[_MOST]
        yield f"| {domain} | {gap.largest:.2%} | {gap.error:.2%} | {gap.p:.2f} |"


def _fresh(domain: str) -> Settings:
    """The domain as training has it, with other seeds; the held-out one as tests have it."""
    return Settings(domain=domain, split="domain", seed=1) if domain == HELD_OUT_DOMAIN else Settings(domain, "fresh")


def _probes(test: Settings, needs: tuple[str, ...], n: int) -> Iterator[str]:
    train = replace(test, split="domain" if test.domain == HELD_OUT_DOMAIN else "train", seed=0)
    report = probe(collect(test, n, needs=needs), collect(train, n, needs=needs))
    yield f"\nn = {report.n}, words learnt from as many training items ({Settings().generator}).\n"
    yield "| feature | n | Pearson with the score | standard error | information, bits |"
    yield "|---|---|---|---|---|"
    for each in report.probes:
        if each.r != each.r:
            yield f"| {each.name} | {each.n} | all alike | - | - |"
        else:
            yield f"| {each.name} | {each.n} | {each.r:+.4f} | {each.r_error:.4f} | {each.bits:+.5f} |"
    yield "\n| scale | items per level, best first | largest gap of a mean length | standard error of one mean | p |"
    yield "|---|---|---|---|---|"
    for scale, counts in report.counts.items():
        gap = report.gaps[scale]
        yield f"| {scale} | {', '.join(map(str, counts))} | {gap.largest:.2%} | {gap.error:.2%} | {gap.p:.2f} |"


def pairs(scale: int) -> Iterator[str]:
    """How often the first of two wins, ties, and how even the scores of pairs are."""
    n = 20_000 // scale
    yield f"\n| pairs (n = {n} each) | first slot wins | decided | standard error | ties | winning and being longer |"
    yield "|---|---|---|---|---|---|"
    levels = []
    for domain in DOMAINS:
        slots = first_slot(replace(_fresh(domain), responses=2), n)
        longer = "all alike in length" if slots.length_r != slots.length_r else f"{slots.length_r:+.4f}"
        decided = round(slots.n * (1 - slots.ties))
        yield f"| {domain} | {slots.first:.4f} | {decided} | {slots.error:.4f} | {slots.ties:.1%} | {longer} |"
        levels += [f"| {domain} | {each} | {', '.join(map(str, counts))} |" for each, counts in slots.counts.items()]
    yield "\n| pairs | scale | responses per level, best first |"
    yield "|---|---|---|"
    yield from levels


def reading(scale: int) -> Iterator[str]:
    """How many items the independent reader grades as the maker does."""
    same, n = 0, 105_000 // scale
    for domain in DOMAINS:
        for sample in make(Settings(domain=domain, split="all", seed=9), n // len(DOMAINS)):
            record = orjson.loads(orjson.dumps(item_to(sample.item())))
            same += regrade(record) == [record["gold"]["label"]]
    read = len(DOMAINS) * (n // len(DOMAINS))
    yield f"\nRe-reading: {same} of {read} items of all domains get the same label from the independent reader.\n"


def speed(scale: int) -> Iterator[str]:
    """Items and pictures per second of processor time."""
    n = 4000 // scale
    yield "\n| what | per second of one core |"
    yield "|---|---|"
    for domain in DOMAINS:
        for responses, name in ((1, "items"), (2, "pairs")):
            maker = Maker(Settings(domain=domain, split="all", responses=responses))
            started = time.process_time()
            for i in range(n):
                orjson.dumps(item_to(maker.sample(i).item()))
            rate = n / (time.process_time() - started)
            yield f"| {name} of `{domain}` with text, gold and JSON | {rate:.0f} |"
    for domain, size in (("scenes", 64), *((domain, 96) for domain in DOMAINS if domain != "text")):
        split = "domain" if domain == HELD_OUT_DOMAIN else "train"
        samples = list(make(Settings(domain=domain, split=split, size=size), n // 2))
        for sample in samples[: n // 4]:
            sample.pictures()  # the stamps of shapes are drawn once
        started, drawn = time.process_time(), 0
        for sample in samples[n // 4 :]:
            for picture in sample.pictures():
                png(picture)
                drawn += 1
        rate = drawn / (time.process_time() - started)
        yield f"| pictures of `{domain}`, {size} x {size}, drawn and packed as PNG | {rate:.0f} |"


def memory(scale: int) -> Iterator[str]:
    """A million items of text through the command line, and the memory of the process while it writes them."""
    n = 1_000_000 // scale
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "world"
        arguments = ["world", "make", "--domain", "text", "-n", str(n), "--out", str(out)]
        began = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-m", "dikast", *arguments], stdout=subprocess.DEVNULL)
        curve: dict[int, float] = {}
        shards = -(-n // 10_000)
        while process.poll() is None:
            time.sleep(0.2)
            written = max(0, len(list(out.glob("items-*"))) - 1) if out.exists() else 0
            tenth = written * 10 // shards
            resident = _resident(process.pid)
            if resident and tenth not in curve:
                curve[tenth] = resident
        took = time.perf_counter() - began
        if process.returncode:
            raise SystemExit(f"dikast {' '.join(arguments)} ended with {process.returncode}")
        size = sum(path.stat().st_size for path in out.glob("items-*"))
    rising = ", ".join(f"{mb:.0f}" for _, mb in sorted(curve.items()))
    yield (
        f"\n`dikast world make --domain text -n {n}`: {took:.0f} s on a shared machine,"
        f" {size / 1e6:.0f} MB on disk; resident memory of the process as each tenth begins: {rising} MB.\n"
    )


def _resident(pid: int) -> float:
    """Resident memory of a process in MB; 0 when it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text("utf-8")
    except OSError:
        return 0.0
    line = next((line for line in status.splitlines() if line.startswith("VmRSS:")), "VmRSS: 0 kB")
    return int(line.split()[1]) / 1024


SECTIONS: dict[str, Callable[[int], Iterator[str]]] = {
    **{domain: lambda scale, domain=domain: domain_figures(domain, scale) for domain in DOMAINS},  # type: ignore[misc]
    **{f"{domain}-4": lambda scale, domain=domain: version_4(domain, scale) for domain in DOMAINS},  # type: ignore[misc]
    "form": form,
    "default": default,
    "lengths": lengths,
    "pairs": pairs,
    "reading": reading,
    "speed": speed,
    "memory": memory,
}


def put(section: str, text: str) -> None:
    """Replace a section's figures in the page."""
    page = PAGE.read_text("utf-8")
    before, rest = page.split(start_of(section))
    after = rest.split(END, 1)[1]
    PAGE.write_text(f"{before}{start_of(section)}\n{text}\n{END}{after}", "utf-8")


def main() -> None:
    """Measure, print and, if asked to, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", help=f"of {', '.join(SECTIONS)}; all if none is named")
    parser.add_argument("--small", action="store_true", help="a fiftieth of the size")
    parser.add_argument("--part", type=int, default=1, help="one part in so many of the size")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/measurements/worlds.md")
    options = parser.parse_args()
    if unknown := [name for name in options.sections if name not in SECTIONS]:
        parser.error(f"there is no section {unknown[0]!r}; there are {', '.join(SECTIONS)}")
    for name in options.sections or SECTIONS:
        text = "\n".join(SECTIONS[name](50 if options.small else options.part))
        print(text, flush=True)
        if options.write:
            put(name, text)


if __name__ == "__main__":
    main()
