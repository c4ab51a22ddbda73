from dataclasses import replace

import numpy as np
import pytest
from benchmarks.shortcuts import Table, collect, first_slot, information, probe, ridge

from dikast.worlds.settings import Settings


@pytest.mark.parametrize("domain", ["scenes", "clips", "retouch"])
def test_no_probe_finds_anything_in_a_small_world(domain: str) -> None:
    settings = Settings(domain=domain, form=0, scales=("1-5",))
    train, test = collect(settings, 1200), collect(replace(settings, split="fresh"), 1200)
    for each in probe(test, train).probes:
        if domain == "retouch" and each.name == "edits":  # requests have none
            continue
        assert abs(each.r) < 4.5 * each.r_error, each  # ten probes: beyond 4.5 errors once in 15,000 runs
        assert each.bits < 0.03, each


def test_the_probes_find_a_planted_leak() -> None:
    table = collect(Settings(form=0), 1500)
    table.columns["words"] = [w + 8 * g for w, g in zip(table.columns["words"], table.good, strict=True)]
    marked = {each.name: each for each in probe(table).probes}
    assert marked["words"].r > 0.2
    assert marked["words"].bits > 0.02
    leaked = [
        np.unique(np.append(row, int(60000 + 10 * good))) for row, good in zip(table.grams, table.good, strict=True)
    ]
    guess = ridge(leaked[:1000], np.array(table.good[:1000]), leaked[1000:])
    assert np.corrcoef(guess, table.good[1000:])[0, 1] > 0.2


def test_information_by_hand() -> None:
    # A fair coin told outright is one bit. Two cells, two rows, two columns: the correction is -1 / 2n nats.
    x = np.repeat([0.0, 1.0], 5000)
    assert abs(information(x, x.astype(int), np.full(10000, "s")) - (1 + 1 / (2 * 10000 * np.log(2)))) < 1e-9
    rng = np.random.default_rng(0)
    assert abs(information(rng.random(20000), rng.integers(0, 5, 20000), np.full(20000, "s"))) < 2e-3


@pytest.mark.slow
@pytest.mark.parametrize(("domain", "ties"), [("scenes", 33), ("text", 10), ("pictures", 50)])
def test_pairs_are_even(domain: str, ties: int) -> None:
    slots = first_slot(Settings(domain=domain, responses=2, ties=ties), 800)
    assert abs(slots.first - 0.5) < 4 * slots.error
    assert abs(slots.ties - ties / 100) < 4 * (ties / 100 * (1 - ties / 100) / 800) ** 0.5
    for scale, counts in slots.counts.items():
        n, each = sum(counts), 1 / len(counts)
        # responses of a pair are not independent of each other: at worst they count for half as many
        assert all(abs(count - n * each) < 4 * (2 * n * each * (1 - each)) ** 0.5 for count in counts), scale


@pytest.mark.slow(minutes=2)
@pytest.mark.soak(100_000)
@pytest.mark.parametrize("domain", ["scenes", "text", "clips"])
def test_no_shortcut_at_full_size(domain: str, tries: int) -> None:
    settings, n = Settings(domain=domain), max(tries, 30_000)  # of fewer, chance alone correlates by more than .02
    train, test = collect(settings, n), collect(replace(settings, split="fresh"), n)
    report = probe(test, train)
    for each in report.probes:
        assert abs(each.r) <= 0.02, each
        assert each.bits < 0.01, each


def test_an_empty_column_is_unknown() -> None:
    table = Table()
    for sample_good in (0.0, 1.0):
        table.good.append(sample_good)
        table.scale.append("1-5")
        table.level.append(int(sample_good))
    table.columns = {"words": [3.0, 3.0]}
    assert np.isnan(probe(table).probes[0].r)
