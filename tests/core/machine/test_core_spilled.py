"""Values that outgrow memory: the same as those that do not, and no more memory."""

import math
import random
import resource
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dikast.core.machine import spilled
from dikast.core.machine.spilled import GroupedNumbers, sorted_keys, zeros
from dikast.core.records.content_ids import Ids
from dikast.judging.summary import Counts, Rate, Values


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Limits that a test reaches, and the folder of temporary files."""
    monkeypatch.setattr(spilled, "HELD", 1 << 10)
    monkeypatch.setattr(spilled, "_BLOCK", 1 << 4)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_numbers_are_those_that_were_written(small: Path) -> None:
    for n in (0, 5, 127, 128, 129, 5_000):
        view = zeros("Q", n)
        assert view.tolist() == [0] * n
        for i in range(n):
            view[i] = 2**64 - 1 - i
        assert view.tolist() == [2**64 - 1 - i for i in range(n)]
    assert not list(small.iterdir())  # the files have no name


def test_a_full_disk_is_told_with_the_folder(small: Path) -> None:
    numbers = GroupedNumbers("d")

    def fill() -> None:
        for i in range(1 << 12):
            numbers.add(str(i), i)

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 12, hard))
    try:
        told = f"File too large: '{small}'"
        with pytest.raises(OSError, match=told):
            zeros("Q", 1 << 12)
        with pytest.raises(OSError, match=told):
            sorted_keys([b"k" * 32] * (1 << 9), 32)
        with pytest.raises(OSError, match=told):
            fill()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 1_000])
def test_keys_are_sorted(small: Path, n: int) -> None:
    keys = [random.Random(i).randbytes(16).hex().encode() for i in range(n)]
    blocks = [b"".join(keys[at : at + 7]) for at in range(0, n, 7)]
    assert sorted_keys(blocks, 32).tolist() == sorted(keys)


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 1_000])
def test_every_group_is_in_one_part_and_no_number_is_lost(small: Path, n: int) -> None:
    rng = random.Random(n)
    told: dict[int, list[float]] = defaultdict(list)
    found: dict[int, list[float]] = defaultdict(list)
    numbers = GroupedNumbers("d")
    for _ in range(n):
        group, number = f"g{rng.randrange(1 + n // 3)}", rng.random()
        numbers.add(group, number)
        told[hash(group)].append(number)
    assert len(numbers) == n
    for _ in range(2):  # they can be gone through again
        found.clear()
        seen: set[int] = set()
        sizes = []
        for groups, values in numbers:
            assert not seen & set(groups.tolist())
            seen |= set(groups.tolist())
            sizes.append(len(groups))
            for group, value in zip(groups.tolist(), values.tolist(), strict=True):
                found[group].append(value)
        assert {group: sorted(values) for group, values in found.items()} == {
            group: sorted(values) for group, values in told.items()
        }
        assert max(sizes, default=0) <= 200  # of parts of 64 on average


def test_rates_do_not_depend_on_where_their_numbers_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    def rates() -> list[Rate]:
        rng, counts, values = random.Random(1), Counts(), Values()
        for _ in range(1_000):
            item = str(rng.randrange(300))
            counts.add(item, rng.randrange(4))
            values.add(item, rng.random())
        return [counts.share(1), counts.share(1, 2), values.mean(), values.mean((0.0, 0.5))]

    held = rates()
    monkeypatch.setattr(spilled, "_BLOCK", 1 << 4)
    assert rates() == held  # to the last bit
    assert all(each.low is not None and math.isfinite(each.low) for each in held)


def test_ids_are_told_apart_beyond_memory(small: Path) -> None:
    ids = Ids()
    assert [ids.add(f"i{i}", i) for i in range(20_000)] == [None] * 20_000
    assert [ids.add(f"i{i}", 0) for i in range(20_000)] == list(range(20_000))


def allocated() -> int:
    """The bytes of memory that no file holds."""
    status = Path("/proc/self/status").read_text("ascii")
    return 1024 * int(status.partition("RssAnon:")[2].split()[0])


def test_many_criteria_hold_little() -> None:
    each = [GroupedNumbers("d") for _ in range(12)]
    before = allocated()
    for i in range(7 << 15):
        for numbers in each:
            numbers.add("item", i)
    assert allocated() - before < 25e6  # of 44 MB of numbers; 12 MB, and what the allocator keeps


def test_memory_does_not_grow_with_the_numbers() -> None:
    """A million more of each take no more memory."""
    held: list[Any] = []
    numbers = GroupedNumbers("d")
    for i in range(1 << 20):
        numbers.add(str(i), i)
    before = allocated()
    for i in range(1 << 20):
        numbers.add(str(i), i)
    held += [zeros("Q", 1 << 22), sorted_keys((np.arange(1 << 20).astype("S32").tobytes(),), 32)]
    for i in range(0, 1 << 22, 1 << 9):
        held[0][i] = 1
    assert allocated() - before < 10e6  # of 17 MB of numbers, 32 MB each of zeros and keys
