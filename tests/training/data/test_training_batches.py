"""The examples of each step: once an epoch, siblings together, cut by tokens."""

import numpy as np
import pytest

from dikast.training.data.batches import BatchPlan, Unit, micro_batches


def test_every_example_comes_once_an_epoch_and_the_order_is_a_function_of_the_step() -> None:
    lengths = np.arange(1, 24, dtype=np.int32)
    plan = BatchPlan(lengths, batch_size=5, seed=1, grouped=True)
    assert plan.per_epoch == 5
    epochs = [[[n for (n,) in plan.step(epoch * 5 + i)] for i in range(5)] for epoch in range(2)]
    for epoch in epochs:
        assert sorted(n for step in epoch for n in step) == list(range(23))
        for step in epoch:
            assert [lengths[n] for n in step] == sorted((lengths[n] for n in step), reverse=True)
    assert epochs[0] != epochs[1]
    again = BatchPlan(lengths, batch_size=5, seed=1, grouped=True)
    assert [n for (n,) in again.step(7)] == epochs[1][2]
    assert [n for (n,) in BatchPlan(lengths, batch_size=5, seed=2, grouped=True).step(0)] != epochs[0][0]


@pytest.mark.parametrize("grouped", [False, True])
def test_siblings_stay_in_one_step(grouped: bool) -> None:
    rng = np.random.default_rng(3)
    siblings = rng.permutation(np.repeat(np.arange(10), 3))
    lengths = rng.integers(5, 50, 30).astype(np.int32)
    plan = BatchPlan(lengths, batch_size=6, seed=1, grouped=grouped, siblings=siblings)
    assert plan.per_epoch == 5  # two sets of three a step
    steps = [plan.step(i) for i in range(5)]
    assert sorted(n for step in steps for numbers in step for n in numbers) == list(range(30))
    for step in steps:
        assert [len(numbers) for numbers in step] == [3, 3]
        assert all(len({siblings[n] for n in numbers}) == 1 for numbers in step)


def test_a_set_of_siblings_beyond_a_step_is_divided() -> None:
    plan = BatchPlan(np.full(13, 7, np.int32), batch_size=5, seed=0, grouped=False, siblings=np.zeros(13, np.int64))
    steps = [plan.step(i) for i in range(plan.per_epoch)]
    assert sorted(len(numbers) for step in steps for numbers in step) == [3, 5, 5]
    assert sorted(n for step in steps for numbers in step for n in numbers) == list(range(13))


def test_without_siblings_trees_are_drawn_as_rows() -> None:
    lengths = np.arange(1, 24, dtype=np.int32)
    rows = BatchPlan(lengths, batch_size=5, seed=1, grouped=True)
    trees = BatchPlan(lengths, batch_size=5, seed=1, grouped=True, siblings=np.arange(23))
    assert [rows.step(i) for i in range(10)] == [trees.step(i) for i in range(10)]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("parts", [1, 2])
def test_micro_batches_keep_to_size_and_group(parts: int, packed: bool) -> None:
    lengths = [90, 80, 70, 60, 50, 40, 30, 20, 10, 5]
    groups = [0, 1, 0, 0, 1, 0, 0, 1, 0, 0]
    units = [Unit((n,), lengths[n], groups[n]) for n in range(10)]
    runs = micro_batches(units, 180, parts, packed=packed)
    assert sorted(unit for run in runs for unit in run) == units
    for run in runs:
        assert len({unit.group for unit in run}) == 1
        for part in range(parts):
            mine = [unit.tokens for unit in run[part::parts]]
            assert not mine or (sum(mine) if packed else len(mine) * max(mine)) <= 180
