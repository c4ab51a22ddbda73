"""What is chosen to be asked."""

from pathlib import Path

import numpy as np

from dikast.probes.plan import plan
from dikast.probes.run import load_items
from dikast.worlds.settings import Settings
from dikast.worlds.write import write_world


def test_pairs_are_drawn_from_all_items_and_both_probes_ask_the_same(tmp_path: Path) -> None:
    write_world(Settings(domain="text", responses=2, seed=3), 400, tmp_path / "pairs")
    items = list(load_items(str(tmp_path / "pairs" / "items-00000.jsonl")))
    order = {item.id: i for i, item in enumerate(items)}
    found = [
        plan(items, None, tmp_path, calls=300, seed=seed, only=("position", "absolute-pairwise")) for seed in (0, 1)
    ]
    chosen = [[order[ask.set] for ask in each.pairs] for each in found]
    assert chosen[0] != chosen[1]
    for each, places in zip(found, chosen, strict=True):
        assert len(places) == len(set(places)) >= 20
        assert 120 < np.mean(places) < 280  # of 400: not the first ones
        assert {ask.set for ask in each.absolute if ask.variant.startswith("side")} <= {ask.set for ask in each.pairs}
